//! Gates: which run when, in what order their verdicts come, what is ended when all are done.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use peers_model::goal::GateRun;
use peers_model::verdict::{Judged, Place, Verdict};
use peers_model::{GoalId, TickNo, limits};
use peers_store::{artifacts, layout};
use peers_sys::clock;
use peers_sys::spawn::{RawExit, Spawn, SpawnError};
use peers_sys::{SafeDir, term};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;

use super::behind::{Ground, Role};
use super::command::{Company, Running};
use super::gate_log::GateLog;
use super::judging;
use super::kept::Worth;
use super::mode_dir::{self, ModeDir};
use super::progress::Progress;
use super::unwritten::Unwritten;
use super::{Book, Gate, Site, runtime, setup};
use crate::env::{self, GateIdentity, Turn, Vars};
use crate::ports::{GateJob, Round};

/// Without a setting no more gates than this run at once.
const MOST: usize = 4;
/// Leftovers of a whole batch are hunted for so long.
const SWEEP: Duration = Duration::from_secs(5);

/// Tells running gates that nobody wants their answer any more.
#[derive(Debug, Clone)]
pub struct Cancel(Option<watch::Receiver<bool>>);

impl Cancel {
    /// Nobody will ask.
    #[must_use]
    pub fn never() -> Self {
        Self(None)
    }

    /// Asked by sending `true`.
    #[must_use]
    pub fn by(asked: watch::Receiver<bool>) -> Self {
        Self(Some(asked))
    }

    pub(super) fn is_asked(&self) -> bool {
        self.0.as_ref().is_some_and(|asked| *asked.borrow())
    }

    /// Comes back once it is asked for. Cancel-safe.
    pub(super) async fn asked(&mut self) {
        if let Some(asked) = &mut self.0
            && asked.wait_for(|asked| *asked).await.is_ok()
        {
            return;
        }
        pending::<()>().await;
    }
}

/// Runs gates and judges them, in the order of the job, several at once. Cancelled ones get no verdict.
///
/// Used inside a `LocalSet`, as [`super::RealProcs`] is.
pub async fn run_gates(
    site: &Rc<Site>,
    book: &Rc<Book>,
    job: &GateJob,
    cancel: Cancel,
    progress: &Progress,
) -> Vec<Judged> {
    run_batch(site, book, job, cancel, (progress, Beside::Nobody)).await
}

/// Runs gates beside a peer: what is not surely theirs is left alone.
pub(super) async fn run_behind(
    site: &Rc<Site>,
    book: &Rc<Book>,
    job: &GateJob,
    cancel: Cancel,
) -> Vec<Judged> {
    run_batch(site, book, job, cancel, (&Progress::default(), Beside::APeer)).await
}

/// Who else works while gates run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nobody,
    APeer,
}

async fn run_batch(
    site: &Rc<Site>,
    book: &Rc<Book>,
    job: &GateJob,
    cancel: Cancel,
    (progress, beside): (&Progress, Beside),
) -> Vec<Judged> {
    let all = || Round { since: clock::mono(), of: job.gates.len(), done: 0 };
    site.kept.begin();
    progress.gates(job.round.unwrap_or_else(all));
    let parallel = book.config.goals.parallel.map_or_else(usual_parallel, NonZeroU32::get);
    let batch = Rc::new(Batch {
        site: Rc::clone(site),
        book: Rc::clone(book),
        job: job.clone(),
        tree: job.dir.clone().unwrap_or_else(|| site.spec.repo.clone()),
        git_config: write_git_config(site, job),
        cancel,
        progress: progress.clone(),
        company: if beside == Beside::Nobody && (parallel == 1 || job.gates.len() == 1) {
            Company::Alone
        } else {
            Company::Others
        },
        beside,
        parallel,
        places: Semaphore::new(usize::try_from(parallel).unwrap_or(MOST)),
        green: RefCell::default(),
        answered: Notify::new(),
        unready: RefCell::default(),
    });
    batch.set_up().await;
    let mut running = JoinSet::new();
    for (at, gate) in job.gates.iter().enumerate() {
        let (batch, gate) = (Rc::clone(&batch), gate.clone());
        running.spawn_local(async move { (at, batch.one(gate).await) });
    }
    let mut found: Vec<(usize, Judged)> = Vec::new();
    while let Some(ended) = running.join_next().await {
        match ended {
            Ok((at, Some(judged))) => found.push((at, judged)),
            Ok((_, None)) => {}
            Err(error) => tracing::error!(%error, "a gate runner broke off"),
        }
    }
    found.sort_by_key(|(at, _)| *at);
    let mut verdicts: Vec<Judged> = found.into_iter().map(|(_, judged)| judged).collect();
    if beside == Beside::Nobody {
        batch.clear(&mut verdicts).await;
    }
    progress.idle();
    verdicts
}

fn usual_parallel() -> u32 {
    let most = std::thread::available_parallelism().map_or(1, usize::from).min(MOST);
    u32::try_from(most).unwrap_or(1)
}

/// The git configuration of gates, or why there is none.
fn write_git_config(site: &Site, job: &GateJob) -> Result<PathBuf, String> {
    let name = if job.copy.is_some() { "gitconfig-gates-copy" } else { "gitconfig-gates" };
    let mut trees: Vec<&Path> = vec![&site.spec.repo];
    trees.extend(job.dir.as_deref());
    trees.extend(job.copy.as_ref().map(|copy| copy.dir.as_path()));
    let scratch = &site.spec.scratch;
    let written = scratch.publish_unsynced(name, &env::gate_git_config(&trees));
    match written.and_then(|()| site.look_at_git()) {
        Ok(()) => Ok(scratch.path().join(name)),
        Err(error) => Err(format!("the git configuration for gates was not written: {error}")),
    }
}

/// Gates that were asked for together.
struct Batch {
    site: Rc<Site>,
    book: Rc<Book>,
    job: GateJob,
    tree: PathBuf,
    git_config: Result<PathBuf, String>,
    cancel: Cancel,
    progress: Progress,
    company: Company,
    beside: Beside,
    parallel: u32,
    places: Semaphore,
    /// What has answered, and whether it is green.
    green: RefCell<BTreeMap<GoalId, bool>>,
    answered: Notify,
    /// Why a tree of ours cannot be judged, by its directory.
    unready: RefCell<BTreeMap<PathBuf, setup::Unready>>,
}

impl Batch {
    /// Sets up the trees of ours, before any gate looks at them.
    async fn set_up(&self) {
        if self.job.place != Place::Pristine {
            setup::forget(&self.site);
        }
        // In a checkout that proves nothing no gate will run.
        let fresh = (self.job.place == Place::Pristine && self.job.unfit.is_none())
            .then_some(self.job.dir.as_ref())
            .flatten();
        for dir in fresh.into_iter().chain(self.job.copy.as_ref().map(|copy| &copy.dir)) {
            let place = if Some(dir) == fresh { Place::Pristine } else { Place::GateTree };
            let tell = (&self.cancel, &self.progress);
            let failed = setup::run(&self.site, &self.book, &self.job, (dir, place), tell).await;
            if let Some(why) = failed {
                self.unready.borrow_mut().insert(dir.clone(), why);
            }
        }
    }

    async fn one(&self, id: GoalId) -> Option<Judged> {
        let gate = self.book.gates.get(&id);
        let lacking = match gate {
            Some(gate) => self.lacking(&gate.hard.needs).await,
            None => None,
        };
        // Never closed.
        let alone = gate.is_some_and(|gate| gate.hard.serial);
        let company = if alone && self.beside == Beside::Nobody { Company::Alone } else { self.company };
        let _place = self.places.acquire_many(if alone { self.parallel } else { 1 }).await.ok()?;
        self.progress.gate_begun(&id);
        let judged = match lacking {
            _ if self.cancel.is_asked() => None,
            Some(need) => {
                let diagnostic = format!("needs `{need}`, which is not green");
                Some(self.unjudged(&id, Verdict::Skipped { diagnostic }))
            }
            None => self.judge(&id, company).await,
        };
        self.progress.gate_done(&id);
        self.green.borrow_mut().insert(id, judged.as_ref().is_some_and(|judged| judged.verdict.is_pass()));
        self.answered.notify_waiters();
        judged
    }

    /// The first of these gates that is not green, once all that run here have answered.
    async fn lacking(&self, needs: &[GoalId]) -> Option<GoalId> {
        for need in needs {
            if self.job.not_green.contains(need) {
                return Some(need.clone());
            }
            // What is neither here nor known to be red may be green.
            while self.job.gates.contains(need) {
                // Nothing else runs between this look and the wait: both are on one thread.
                match self.green.borrow().get(need) {
                    Some(true) => break,
                    Some(false) => return Some(need.clone()),
                    None => {}
                }
                self.answered.notified().await;
            }
        }
        None
    }

    fn unjudged(&self, id: &GoalId, verdict: Verdict) -> Judged {
        Judged::new(id.clone(), self.job.key.clone(), self.place_of(id), verdict)
    }

    /// The directory of a gate's tree.
    fn tree_of(&self, id: &GoalId) -> &Path {
        match (&self.job.copy, self.place_of(id)) {
            (Some(copy), Place::GateTree) => &copy.dir,
            (_, Place::Live | Place::Pristine | Place::GateTree) => &self.tree,
        }
    }

    fn place_of(&self, id: &GoalId) -> Place {
        let in_copy = self.book.gates.get(id).is_some_and(|gate| gate.hard.in_copy());
        match self.job.place {
            Place::Live if in_copy && self.job.copy.is_some() => Place::GateTree,
            place => place,
        }
    }

    async fn judge(&self, id: &GoalId, company: Company) -> Option<Judged> {
        let from = clock::mono();
        let missing = judging::error("the accepted goals have no gate of this name");
        let mut judged = self.unjudged(id, missing);
        if let Some(gate) = self.book.gates.get(id) {
            let home = Home::make(&self.site, gate);
            if self.is_kept(id, gate, &home) {
                judged.verdict = Verdict::Pass;
                judged.cached = true;
                return Some(judged);
            }
            let mut log = GateLog::new(
                self.site.spec.peers.as_ref(),
                layout::peers::LOG_GATES,
                self.log_name(id),
                limits::GATE_LOG,
            );
            // In a clean checkout each attempt gets one of its own, from whoever asked for this one.
            let tried = self.job.tried;
            if tried > 0 {
                log.go_on();
            }
            let retries = if self.job.place == Place::Pristine { 0 } else { gate.hard.retries };
            while judged.attempts <= retries {
                judged.attempts += 1;
                if judged.attempts + tried > 1 {
                    log.attempt(judged.attempts + tried);
                }
                let attempt = self.attempt((id, gate), &home, company, &mut log).await?;
                judged.verdict = attempt.verdict;
                judged.setup_failed = attempt.setup_failed;
                if attempt.setup_failed {
                    // It did not run, and takes none of its attempts.
                    judged.attempts = judged.attempts.saturating_sub(1);
                    break;
                }
                judged.leaked = judged.leaked.saturating_add(attempt.leaked);
                (judged.exit_code, judged.signal) = match attempt.exit {
                    Some(RawExit::Code(code)) => (Some(code), None),
                    Some(RawExit::Signal(signal)) => (None, Some(signal)),
                    None => (None, None),
                };
                // Neither a gate that could not be judged nor one at its limit gets better by haste.
                if !matches!(judged.verdict, Verdict::Fail { .. }) {
                    break;
                }
            }
        }
        judged.duration_ms = u64::try_from(clock::mono().since(from).as_millis()).unwrap_or(u64::MAX);
        Some(judged)
    }

    /// Whether a green answer about exactly this is kept; else remembers what the answer will be about.
    fn is_kept(&self, id: &GoalId, gate: &Gate, home: &Result<Home, String>) -> bool {
        let (Ok(git_config), Ok(home)) = (&self.git_config, home) else { return false };
        let place = self.place_of(id);
        if !gate.hard.cacheable || place == Place::Pristine {
            return false;
        }
        let key = &self.job.key;
        let scope = self.job.scopes.get(id).filter(|_| !gate.hard.paths.is_empty());
        let tree = match scope {
            Some(scope) => format!("{place:?} paths {scope}"),
            None => format!("{place:?} tree {} {}", key.head, key.tree),
        };
        let vars = self.vars(id, gate, git_config, &home.path);
        let about = runtime::about(gate, self.limit(gate).as_secs(), &vars, &tree);
        let worth = match (place, &self.job.copy) {
            (Place::Live, _) => Worth::With(scope.map(|_| gate.hard.paths.clone()).unwrap_or_default()),
            (Place::GateTree, Some(copy)) if copy.fresh => Worth::Keeping,
            (Place::GateTree | Place::Pristine, _) => Worth::Nothing,
        };
        self.site.kept.look(id, &about, &worth, &self.site.spec.repo)
    }

    fn limit(&self, gate: &Gate) -> Duration {
        let own = gate.hard.timeout_s.map(u64::from);
        Duration::from_secs(own.unwrap_or_else(|| self.book.config.goals.timeout_s.get().into()))
    }

    /// One attempt; nothing if it was cancelled.
    async fn attempt(
        &self,
        (id, gate): (&GoalId, &Gate),
        home: &Result<Home, String>,
        company: Company,
        log: &mut GateLog,
    ) -> Option<Attempt> {
        let (git_config, home) = match (&self.git_config, home) {
            (Ok(config), Ok(home)) => (config, &home.path),
            (Err(why), _) | (_, Err(why)) => return Some(Attempt::none(judging::error(why))),
        };
        let tree = self.tree_of(id);
        if let Some(why) = self.unready.borrow().get(tree) {
            let setup_failed = matches!(why, setup::Unready::Failed(_));
            return Some(Attempt { setup_failed, ..Attempt::none(why.verdict()) });
        }
        // A check of ours reads commits and not the tree.
        if let (Some(why), Some(_)) = (&self.job.unfit, &gate.pass_when) {
            return Some(Attempt::none(Verdict::Fail { diagnostic: why.clone() }));
        }
        let mut spawn = match self.spawn(id, gate, git_config, home) {
            Ok(spawn) => spawn,
            Err(diagnostic) => return Some(Attempt::none(Verdict::Fail { diagnostic })),
        };
        let of_mode = self.book.modes.get(id).filter(|_| gate.pass_when.is_some());
        let mode_dir = match of_mode.map(|files| ModeDir::fresh(&self.site.spec.scratch, files)).transpose() {
            Ok(made) => made,
            Err(why) => return Some(Attempt::none(judging::error(&why))),
        };
        spawn.env.extend(mode_dir.iter().map(|dir| (mode_dir::VARIABLE.into(), dir.path().into())));
        if gate.pass_when.is_some() {
            spawn = self.site.confine_gate(spawn, Ground { tree, home, more: None }, Role::Gate);
        }
        let reports = match &gate.pass_when {
            // In the work tree and in kept copies a tool may rightly leave alone what is up to date.
            Some(pass_when) if self.place_of(id) == Place::Pristine => pass_when.json_files(),
            _ => BTreeSet::new(),
        };
        let unwritten = match Unwritten::mark(tree, &reports) {
            Ok(marked) => marked,
            Err(why) => return Some(Attempt::none(judging::error(&why))),
        };
        let running = Running {
            site: &self.site,
            tick: self.job.tick,
            limit: self.limit(gate),
            cancel: self.cancel.clone(),
            company,
        };
        let finished = match running.run(&spawn, log).await {
            Ok(finished) => finished,
            Err(error) => return Some(Attempt::none(not_started(&error))),
        };
        if finished.cancelled {
            return None;
        }
        let verdict = match &gate.pass_when {
            Some(pass_when) => {
                let left_out = self.site.host.left_out([&gate.hard]);
                let left_out = left_out.iter().find(|left_out| left_out.write.is_some());
                judging::shell(&finished, pass_when, (tree, &unwritten), left_out, &self.site.rules)
            }
            None => judging::check(&finished, &self.site.rules),
        };
        Some(Attempt { leaked: finished.leaked, exit: finished.exit, ..Attempt::none(verdict) })
    }

    fn vars(&self, id: &GoalId, gate: &Gate, git_config: &Path, home: &Path) -> Vars {
        let spec = &self.site.spec;
        let turn = Turn { run: &spec.run_id, tick: self.job.tick, git_config };
        let wanted = [self.book.config.goals.env.as_slice(), gate.hard.env.as_slice()].concat();
        let about =
            GateIdentity { goal: Some(id), tree: self.tree_of(id), bin: &spec.bin, home, wanted: &wanted };
        match &gate.hard.run {
            GateRun::Shell { .. } => env::of_gate(&self.site.host, &spec.chosen, turn, about),
            GateRun::Check { .. } => env::of_check(&self.site.host, turn, about),
        }
    }

    /// What to start, or why the tree is not such that it can be.
    fn spawn(&self, id: &GoalId, gate: &Gate, git_config: &Path, home: &Path) -> Result<Spawn, String> {
        let spec = &self.site.spec;
        let vars = self.vars(id, gate, git_config, home);
        let tree = self.tree_of(id);
        match &gate.hard.run {
            GateRun::Shell { cmd, .. } => {
                let mut dir = tree.to_owned();
                if let Some(cwd) = &gate.hard.cwd {
                    let opened = SafeDir::open_shared(tree).and_then(|tree| tree.open_path(cwd));
                    if let Err(error) = opened {
                        let why = if error.is_not_found() { "does not exist" } else { "is not a directory" };
                        return Err(format!("its `cwd` {why}: {}", term::line(cwd, 200)));
                    }
                    dir.push(cwd);
                }
                Ok(shell(&self.site, &dir, cmd, vars))
            }
            GateRun::Check { name, args } => {
                let mut spawn = Spawn::new(spec.stub.clone(), &spec.program, &self.tree);
                spawn.args = vec![
                    "check".into(),
                    name.into(),
                    "--repo".into(),
                    spec.repo.clone().into(),
                    "--json".into(),
                ];
                if self.job.place == Place::Pristine {
                    spawn.args.extend(["--head".into(), self.job.key.head.as_str().into()]);
                }
                spawn.args.extend(args.iter().map(Into::into));
                spawn.env = vars;
                spawn.env.push((WALL.into(), self.site.spec.wall.backend().name().into()));
                Ok(spawn)
            }
        }
    }

    fn log_name(&self, id: &GoalId) -> String {
        artifacts::tick_file(self.job.tick, id.as_str(), artifacts::gate_log_suffix(self.place_of(id)))
    }

    /// Ends what is left when all gates are done, and says whose it was.
    async fn clear(&self, verdicts: &mut [Judged]) {
        let kin = &self.site.kin;
        if !kin.strangers() {
            return;
        }
        let owners = kin.owners(self.job.tick);
        let cleared = kin.clear(self.job.tick, None, SWEEP).await;
        for (owner, count) in owners {
            if let Some(judged) = verdicts.iter_mut().find(|judged| Some(&judged.goal) == owner.as_ref()) {
                judged.leaked = judged.leaked.saturating_add(count);
            } else {
                tracing::warn!(count, "processes that some gate left behind were ended");
            }
        }
        for pid in cleared.survivors {
            tracing::warn!(pid, "a process that a gate left behind could not be ended");
        }
    }
}

/// What came of one attempt.
struct Attempt {
    verdict: Verdict,
    leaked: u32,
    exit: Option<RawExit>,
    setup_failed: bool,
}

impl Attempt {
    /// Nothing ran.
    fn none(verdict: Verdict) -> Self {
        Self { verdict, leaked: 0, exit: None, setup_failed: false }
    }
}

/// The environment of a command of the operator's that is no gate and gets what one gets, in this tree, and the home
/// directory that goes when it is over. `config` is the name of its git configuration.
///
/// # Errors
/// Why there are none.
pub fn surroundings(
    site: &Rc<Site>,
    book: &Book,
    tick: TickNo,
    (tree, config): (&Path, &str),
) -> Result<(Vars, Home), String> {
    let spec = &site.spec;
    let written = spec.scratch.publish_unsynced(config, &env::gate_git_config(&[&spec.repo, tree]));
    let written = written.and_then(|()| site.look_at_git());
    written.map_err(|error| format!("its git configuration was not written: {error}"))?;
    let home = Home::fresh(site)?;
    let turn = Turn { run: &spec.run_id, tick, git_config: &spec.scratch.path().join(config) };
    let wanted = &book.config.goals.env;
    let about = GateIdentity { goal: None, tree, bin: &spec.bin, home: &home.path, wanted };
    Ok((env::of_gate(&site.host, &spec.chosen, turn, about), home))
}

/// A variable by which a check of ours knows which wall its tools are behind.
pub const WALL: &str = "PEERS_SANDBOX";

/// A command in `tree`, in the surroundings of a gate and behind its wall.
#[must_use]
pub fn behind(site: &Site, at: Ground<'_>, cmd: &str, vars: Vars, role: Role) -> Spawn {
    site.confine_gate(shell(site, at.tree, cmd, vars), at, role)
}

/// `/bin/sh -c cmd` in `tree`.
pub(super) fn shell(site: &Site, tree: &Path, cmd: &str, vars: Vars) -> Spawn {
    let mut spawn = Spawn::new(site.spec.stub.clone(), "/bin/sh", tree);
    spawn.args = vec!["-c".into(), cmd.into()];
    spawn.env = vars;
    spawn
}

pub(super) fn not_started(error: &SpawnError) -> Verdict {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    judging::error(&format!("the gate could not be started: {error}{cause}"))
}

/// The home directory of one gate, made for it and removed after it.
#[derive(Debug)]
pub struct Home {
    site: Rc<Site>,
    name: String,
    path: PathBuf,
}

impl Home {
    /// Keeps the directory, which goes with all of the scratch directory.
    pub(super) fn leave(mut self) {
        self.name.clear();
    }

    /// What a command writes that works in `tree` and has this home.
    #[must_use]
    pub fn ground<'a>(&'a self, tree: &'a Path, more: Option<&'a Path>) -> Ground<'a> {
        Ground { tree, home: &self.path, more }
    }

    fn make(site: &Rc<Site>, gate: &Gate) -> Result<Self, String> {
        if let GateRun::Shell { .. } = gate.hard.run {
            return Self::fresh(site);
        }
        // A check is our own program and has its operator's.
        Ok(Self { site: Rc::clone(site), name: String::new(), path: PathBuf::new() })
    }

    fn fresh(site: &Rc<Site>) -> Result<Self, String> {
        let name = format!("home-{}", peers_sys::rand::hex::<8>().map_err(|error| error.to_string())?);
        let made = site.spec.scratch.create_subdir(&name);
        let made = made.and_then(|dir| dir.create_subdir(super::behind::TMP).map(|_| dir));
        let dir = made.map_err(|error| format!("a home directory for a gate was not made: {error}"))?;
        Ok(Self { site: Rc::clone(site), name, path: dir.path().to_owned() })
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            // What stays lies in a private directory that is emptied at the next start.
            let _removed = self.site.spec.scratch.remove_tree(&self.name);
        }
    }
}
