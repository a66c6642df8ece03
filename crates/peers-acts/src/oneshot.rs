//! Gates outside of a loop: `peers verify`, and the proof of `peers land`.
//!
//! Neither lock nor state nor journal is touched here, so it works beside a running loop: what has to
//! be read of the repository is imported into a control git directory that lives as long as the call.

mod changed;
mod live;
mod shallow;

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use peers_core::machine::StopRequest;
use peers_git::{ControlDir, GitError, PeerRepo, SyntheticGit};
use peers_model::check;
use peers_model::goal::{GateRun, Goal, GoalKind, TreeChoice};
use peers_model::record::Digests;
use peers_model::request::AskedWall;
use peers_model::verdict::{Judged, Place as Where, TreeKey};
use peers_model::{CommitId, GoalId, TickNo, Timestamp, TreeId, exit};
use peers_place::{Holder, Place};
use peers_run::boot::{self, BootError, Finding, Loaded};
use peers_run::cache;
use peers_run::drive;
use peers_run::env::{Policy, Vars};
use peers_run::guard::ToolHomes;
use peers_run::inputs::Signals;
use peers_run::outward::{self, Operators};
use peers_run::perform::{after, in_order_of_need, one_more};
use peers_run::ports::{GateJob, Round};
use peers_run::procs::{
    Book, Cancel, Extra, ExtraResult, ModeFiles, Progress, Role, Site, SiteSpec, behind, reap_run, run_extra,
    run_gates, surroundings,
};
use peers_run::pulse;
use peers_sandbox::run_watched;
use peers_store::verdicts::Verdicts;
use peers_sys::clock;
use peers_sys::env::Env;
use peers_sys::error::chain;
use tokio::sync::watch;

use crate::scratch::Scratch;

pub use self::changed::Dirtied;

/// How often whoever shows the progress is called.
const SHOWN: Duration = Duration::from_millis(500);

/// Ending a program at its limit takes no longer.
const ENDING: Duration = Duration::from_secs(30);

/// Called now and then while gates run.
pub type Show = Box<dyn FnMut(&Progress)>;

/// Who is shown how far gates are that make up one round.
pub(crate) struct Audience {
    show: Rc<RefCell<Show>>,
    round: Round,
}

impl Audience {
    /// Of so many gates, of which the first is about to start.
    pub(crate) fn of(show: Show, gates: usize) -> Self {
        let round = Round { since: clock::mono(), of: gates, done: 0 };
        Self { show: Rc::new(RefCell::new(show)), round }
    }

    /// The same when so many more have answered.
    pub(crate) fn after(&self, answered: usize) -> Self {
        let done = self.round.done.saturating_add(answered);
        Self { show: Rc::clone(&self.show), round: Round { done, ..self.round } }
    }

    pub(crate) fn round(&self) -> Round {
        self.round
    }

    pub(crate) fn show(&self) -> Show {
        let show = Rc::clone(&self.show);
        Box::new(move |progress| (show.borrow_mut())(progress))
    }
}

/// What to verify.
#[derive(Debug, Clone, Default)]
pub struct VerifyOptions {
    /// These gates and commands alone; all when empty.
    pub only: Vec<String>,
    /// The hard gates in a clean checkout of HEAD, instead of everything in the work tree.
    pub pristine: bool,
    /// No kept answer is taken.
    pub fresh: bool,
    /// The wall that gates are behind.
    pub wall: AskedWall,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    /// When it began.
    pub at: Timestamp,
    /// HEAD.
    pub head: CommitId,
    /// The tree that was judged: the work tree's, or that of HEAD in a clean checkout.
    pub tree: TreeId,
    /// The work tree has uncommitted changes.
    pub dirty: bool,
    /// The gates ran in a clean checkout.
    pub pristine: bool,
    /// The hard gates, in file order.
    pub gates: Vec<Judged>,
    /// The extra commands; none in a clean checkout.
    pub extra: Vec<ExtraResult>,
    /// Gates that the operator exempted from clean checkouts (`tree: live`).
    pub exempt: Vec<GoalId>,
    /// Gates that read the record of the runs, which is not here: they were not asked.
    pub recordless: Vec<GoalId>,
    /// What was accepted.
    pub digests: Digests,
    /// Paths of the work tree that the gates made dirty, or why that is not known.
    pub dirtied: Dirtied,
    /// Files of the commit that were written while gates ran, and are what they were; the first thousand of
    /// those that ran together.
    pub rewritten: Vec<String>,
    /// Wall time of everything, milliseconds.
    pub took_ms: u64,
    /// A loop works here at the same time.
    pub beside: Option<Holder>,
    /// The signal that cut it short.
    pub signal: Option<i32>,
}

/// Runs the hard goals once, and then the extra commands.
///
/// # Errors
/// [`BootError`] when nothing could be run. Red gates are no error.
pub fn verify(
    place: &Place,
    env: &Env,
    loaded: &Loaded,
    options: &VerifyOptions,
    show: Show,
) -> Result<Verified, BootError> {
    let beside = place.holder()?;
    let repo = boot::open_repo(place)?;
    let mut loaded = loaded.clone();
    if let Some(limit) = loaded.config.verify.timeout_s {
        loaded.config.goals.timeout_s = limit;
    }
    let bench = Bench::new(place, env, &loaded, options.wall)?;
    if options.fresh {
        bench.site.ask_anew();
    }
    let (at, from) = (clock::now(), clock::mono());
    let head = match repo.facts().head() {
        Ok(head) => head,
        Err(peers_git::GitError::Repo(error)) => return Err(boot::repo_finding(place, &error).into()),
        Err(error) => return Err(Finding::from(error).into()),
    };
    let (branch, head) = (head.clone(), head.commit);
    let mut control =
        ControlDir::open_or_create(&bench.scratch().join("control.git"), boot::git_program(env)?)?
            .with_excludes(peers_git::operator_excludes());
    // The newest commit alone; the rest is brought in for a clean checkout only.
    let _imported = control.import(&repo, Some(&head))?;
    let state = control.tree_state(place.work_dir(), &head)?;
    let exempt = exempt(&loaded.goals);
    let chosen = |name: &str| options.only.is_empty() || options.only.iter().any(|only| only == name);
    let mut recordless = recordless(place, &loaded.goals);
    recordless.retain(|id| chosen(id.as_str()));
    let gates = bench.book.gates().iter().filter(|id| chosen(id.as_str()) && !recordless.contains(id));
    let (judgement, dirtied, rewritten) = if options.pristine {
        let gates: Vec<GoalId> = gates.filter(|id| !exempt.contains(id)).cloned().collect();
        let key = TreeKey { head: head.clone(), tree: state.head_tree.clone() };
        let lent = control.lend(&repo)?;
        let judgement = bench.prove(&control, &key, &gates, &lent, &Audience::of(show, gates.len()))?;
        (judgement, Err("they ran in a clean checkout"), Vec::new())
    } else {
        let gates: Vec<GoalId> = gates.cloned().collect();
        let mut extra = Extra::all(&bench.book);
        extra.retain(|command| chosen(&command.name));
        let before = changed::Before::look(&control, place.work_dir(), &head);
        let ground = live::Ground {
            bench: &bench,
            place,
            control: &mut control,
            repo: &repo,
            goals: &loaded.goals,
            head: &head,
            branch: &branch,
            state: &state,
            alone: beside.is_none(),
        };
        let (judgement, rewritten) = ground.judge(&gates, extra, show)?;
        let dirtied = match &beside {
            Some(_) => Err("a loop works here at the same time"),
            None => before.changed(&control, place.work_dir(), &head),
        };
        (judgement, dirtied, rewritten)
    };
    let Judgement { mut gates, extra, signal } = judgement;
    if shallow::is_cut(place, &repo) {
        shallow::doubt(&mut gates, &loaded.goals);
    }
    Ok(Verified {
        at,
        head,
        tree: if options.pristine { state.head_tree } else { state.worktree_tree },
        dirty: state.dirty,
        pristine: options.pristine,
        gates,
        extra,
        exempt,
        recordless,
        digests: loaded.digests,
        dirtied,
        rewritten,
        took_ms: u64::try_from(clock::mono().since(from).as_millis()).unwrap_or(u64::MAX),
        beside,
        signal,
    })
}

/// The gates that clean checkouts leave out.
#[must_use]
pub fn exempt(goals: &[Goal]) -> Vec<GoalId> {
    let live = |goal: &&Goal| matches!(&goal.kind, GoalKind::Hard(hard) if hard.tree == TreeChoice::Live);
    goals.iter().filter(live).map(|goal| goal.id.clone()).collect()
}

/// Gates that cannot judge here, since there is no record of any run: the one that accepted by a digest what
/// this place holds has it elsewhere.
fn recordless(place: &Place, goals: &[Goal]) -> Vec<GoalId> {
    if matches!(place.open_store(), Ok(Some(_)) | Err(_)) {
        return Vec::new();
    }
    let reads = |goal: &&Goal| match goal.gate().map(|gate| &gate.run) {
        Some(GateRun::Check { name, .. }) => check::spec(name).is_some_and(|spec| spec.reads_record),
        _ => false,
    };
    goals.iter().filter(reads).map(|goal| goal.id.clone()).collect()
}

/// What gates answered.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    pub(crate) gates: Vec<Judged>,
    pub(crate) extra: Vec<ExtraResult>,
    pub(crate) signal: Option<i32>,
}

/// A place to run gates in, removed with the value.
pub(crate) struct Bench {
    scratch: Scratch,
    /// Where clean checkouts are made, beside it.
    checkouts: String,
    site: Rc<Site>,
    pub(crate) book: Rc<Book>,
    goals: Vec<Goal>,
    env: Env,
    operators: Operators,
    /// Settings of build tools, as they were before anything ran.
    homes: ToolHomes,
}

impl Bench {
    /// Makes it ready; nothing runs yet.
    pub(crate) fn new(
        place: &Place,
        env: &Env,
        loaded: &Loaded,
        asked: AskedWall,
    ) -> Result<Self, BootError> {
        if let Some(damaged) = &loaded.damaged {
            return Err(damaged.clone().into());
        }
        if let Some(changed) = loaded.refused_change() {
            return Err(changed.into());
        }
        let chosen = Policy::load(env).map_err(|e| Finding::plain(exit::INVALID, chain(&e)))?;
        let chosen = chosen.narrowed(&loaded.config.sandbox);
        let book = Book::new(loaded.config.clone(), &loaded.goals)
            .map_err(|e| Finding::plain(exit::INVALID, format!("goals error: {}", chain(&e))))?;
        // Without a store nothing was accepted that has files.
        let modes = match place.open_view_disk() {
            Ok(mut disk) => boot::mode_files(&mut disk, loaded.modes())?,
            Err(_) => ModeFiles::new(),
        };
        let book = book.with_modes(modes);
        let scratch = Scratch::new(place)?;
        let checkouts = format!("{}{}", cache::PROOF, scratch.id());
        for run in cache::clear_stale(scratch.cache())? {
            reap_run(&run);
        }
        // Without a store nothing was kept.
        let verdicts = place.open_view_disk().map(|mut disk| Verdicts::read(&mut disk)).unwrap_or_default();
        let site =
            Site::new(SiteSpec { verdicts, ..scratch.site(place, env, (chosen, asked), &loaded.config)? });
        let homes = ToolHomes::look(site.open_settings());
        Ok(Self {
            scratch,
            checkouts,
            site: Rc::new(site),
            book: Rc::new(book),
            goals: loaded.goals.clone(),
            env: env.clone(),
            operators: Operators::of(place),
            homes,
        })
    }

    /// No kept answer is taken.
    pub(crate) fn ask_anew(&self) {
        self.site.ask_anew();
    }

    /// A private directory for whoever needs one.
    pub(crate) fn scratch(&self) -> &std::path::Path {
        self.scratch.dir().path()
    }

    /// A fresh clean checkout, in place of the one before.
    pub(crate) fn checkout(
        &self,
        control: &ControlDir,
        head: &CommitId,
        lent: &SyntheticGit,
    ) -> Result<PathBuf, BootError> {
        let cache = self.scratch.cache();
        cache.remove_tree(&self.checkouts)?;
        cache::clear_foreign(cache)?;
        let above = cache.create_subdir(&self.checkouts)?;
        let dir = above.path().join("tree");
        control.checkout_pristine(head, &dir, lent)?;
        Ok(dir)
    }

    /// Runs a command in a checkout, with the surroundings of a gate and `more`; it may write in `written` too.
    pub(crate) fn tool(
        &self,
        (dir, written): (&std::path::Path, Option<&std::path::Path>),
        cmd: &str,
        more: Vars,
        limit: Duration,
    ) -> Result<peers_sandbox::Ran, BootError> {
        let bug = |what: String| Finding::plain(exit::BUG, what);
        let (mut env, home) =
            surroundings(&self.site, &self.book, TickNo(0), (dir, "gitconfig-tool")).map_err(bug)?;
        env.extend(more);
        let spawn = behind(&self.site, home.ground(dir, written), cmd, env, Role::Gate);
        let (tell, told) = channel();
        // The kernel ends the program with this thread, which lasts as long as it, or as this process.
        thread::spawn(move || tell.send(run_watched(&spawn, limit)));
        let patience = limit.saturating_add(ENDING);
        let ran = drive::unless_interrupted(patience, || told.try_recv().ok());
        reap_run(self.scratch.run_id());
        let ran = ran.map_err(|e| bug(format!("signals: {e}")))?;
        let ran = ran.ok_or_else(|| Finding::plain(exit::NEGATIVE, "the program was interrupted"))?;
        ran.map_err(|e| Finding::plain(exit::INVALID, chain(&e)).into())
    }

    /// Why a clean checkout proves nothing.
    fn unfit(
        &self,
        control: &ControlDir,
        head: &CommitId,
        dir: &std::path::Path,
    ) -> Result<Option<String>, BootError> {
        let repo = PeerRepo::open(self.site.repo()).map_err(|e| Finding::from(GitError::from(e)))?;
        let aside = || Some((self.scratch().join("anchor.git"), boot::git_program(&self.env).ok()?));
        Ok(outward::look((control, &repo), &self.operators, (head, dir), aside)?)
    }

    /// What is kept after these verdicts, where it is to be written anew. Green ones are kept only if they stand.
    pub(crate) fn kept(&self, judged: &[Judged], they_stand: bool) -> Option<Verdicts> {
        if they_stand { self.site.stand(judged) } else { self.site.fall(judged) }
    }

    /// Runs gates one after the other, each in a clean checkout of its own, as the loop's proof does:
    /// what they run must find nothing to alter that another gate reads.
    pub(crate) fn prove(
        &self,
        control: &ControlDir,
        key: &TreeKey,
        gates: &[GoalId],
        lent: &SyntheticGit,
        audience: &Audience,
    ) -> Result<Judgement, BootError> {
        let mut all = Judgement::default();
        for gate in in_order_of_need(gates, &self.goals) {
            let not_green = all.gates.iter().filter(|judged| !judged.verdict.is_pass());
            let not_green: Vec<GoalId> = not_green.map(|judged| judged.goal.clone()).collect();
            let mut tried: Option<Judged> = None;
            loop {
                let dir = self.checkout(control, &key.head, lent)?;
                let unfit = self.unfit(control, &key.head, &dir)?;
                let job = GateJob {
                    place: Where::Pristine,
                    dir: Some(dir),
                    not_green: not_green.clone(),
                    unfit,
                    tried: tried.as_ref().map_or(0, |tried| tried.attempts),
                    round: Some(audience.after(all.gates.len()).round),
                    ..GateJob::live(vec![gate.clone()], key.clone(), TickNo(0))
                };
                let mut found = self.judge(job, Vec::new(), audience.show())?;
                all.signal = found.signal;
                let Some(judged) = found.gates.pop() else { break };
                let previous = tried.take();
                let judged = after(previous.clone(), judged);
                let again = one_more(&self.goals, &all.gates, previous.as_ref(), &judged);
                if all.signal.is_some() || !again {
                    all.gates.push(judged);
                    break;
                }
                tried = Some(judged);
            }
            if all.signal.is_some() {
                break;
            }
        }
        all.gates.sort_by_key(|judged| gates.iter().position(|id| *id == judged.goal));
        Ok(all)
    }

    /// Runs gates, then commands. A signal ends what runs; what has answered by then is kept.
    ///
    /// Refused where they changed what build tools do in the gates that come next.
    pub(crate) fn judge(
        &self,
        job: GateJob,
        extra: Vec<Extra>,
        mut show: Show,
    ) -> Result<Judgement, BootError> {
        let (site, book) = (Rc::clone(&self.site), Rc::clone(&self.book));
        let bug = |what: &str, e: std::io::Error| Finding::plain(exit::BUG, format!("{what}: {e}"));
        let done = drive::on_this_thread(async move {
            let mut signals = Signals::take()?;
            let (stop, asked) = watch::channel(false);
            let progress = Progress::default();
            let shown = progress.clone();
            pulse::every(SHOWN, move || show(&shown));
            let work = async {
                let gates = run_gates(&site, &book, &job, Cancel::by(asked.clone()), &progress).await;
                let extra = run_extra(&site, &book, &extra, &Cancel::by(asked)).await;
                (gates, extra)
            };
            tokio::pin!(work);
            let mut signal = None;
            loop {
                // Both arms can be dropped at any await and asked again.
                tokio::select! {
                    (gates, extra) = &mut work => break Ok(Judgement { gates, extra, signal }),
                    request = signals.next() => match request {
                        StopRequest::Graceful(number) | StopRequest::Now(number) => {
                            signal = Some(number);
                            // The gates listen as long as `work` is there.
                            let _heard = stop.send(true);
                        }
                        StopRequest::AfterTick => {}
                    },
                }
            }
        });
        let judged: std::io::Result<Judgement> = done.map_err(|e| bug("the runtime does not start", e))?;
        let judged = judged.map_err(|e| bug("signals", e))?;
        if let Some(what) = self.homes.changed_meanwhile() {
            return Err(Finding::new(
                exit::REFUSED,
                what,
                "look at it, put it back unless it is yours, and run this again; rustup and nvm write a missing \
                 one when they are first used: use them once before",
            )
            .into());
        }
        Ok(judged)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // What stays is in the cache, private, and costs disk space only.
        if let Err(error) = self.scratch.cache().remove_tree(&self.checkouts) {
            tracing::warn!(error = %chain(&error), "a scratch directory was not removed");
        }
    }
}
