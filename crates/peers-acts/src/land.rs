//! Bringing a run's branch home, and taking a run back.
//!
//! Both hold the run lock, so no loop works meanwhile. A branch is moved only by compare-and-swap, and
//! by `land` only to a tree whose gates were green in a clean checkout.

mod gone;
mod intent;
mod moving;
mod undo;

use std::path::Path;

use peers_git::{ControlDir, GitError, MergeStyle, Merged, PeerRepo, RepoError};
use peers_model::command::Step;
use peers_model::goal::TreeChoice;
use peers_model::record::{OperatorOp, OperatorRecord, Record};
use peers_model::request::AskedWall;
use peers_model::verdict::{Judged, TreeKey};
use peers_model::{CommitId, GoalId, RunId, RunRequest, TreeId, exit};
use peers_place::{Place, is_gone};
use peers_run::boot::{self, BootError, Finding, Loaded};
use peers_run::gitrepo::substrate;
use peers_store::runs::{self, RunRecord};
use peers_store::{FsDisk, Store, commands, project};
use peers_sys::clock;
use peers_sys::env::Env;
use peers_sys::lock::FileLock;
use peers_sys::{term, yaml};

use crate::oneshot::{self, Audience, Bench, Judgement, Show};
use intent::Found;
use moving::{advance, already, complete, refuse_locked};

pub use undo::{Finished, StartCopy, Undone, undo};

/// Runs named in a hint.
const RUNS: usize = 5;
/// Uncommitted files that are looked at for why a branch cannot be moved.
const DIRTY: usize = 1000;
/// Commits named in a message or a proposal.
const NAMED: usize = 50;

/// What to land, and how.
#[derive(Debug, Clone, Default)]
pub struct LandOptions {
    /// Into this branch; absent: the one that the run started from.
    pub into: Option<String>,
    /// As one commit.
    pub squash: bool,
    /// Move nothing, only say what a pull request would say.
    pub propose: bool,
    /// Login name of who asks.
    pub by: String,
    /// What a proposal says of the run besides, as Markdown that foreign text cannot change.
    pub notes: String,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Landing {
    /// The branch holds the work.
    Landed(Landed),
    /// It was to be proposed only.
    Proposed(Landed, Proposal),
    /// The branch holds it already.
    Nothing {
        /// Which run.
        run: RunId,
        /// The branch.
        into: String,
    },
    /// The two sides do not fit together.
    Conflict {
        /// Which run.
        run: RunId,
        /// The branch.
        into: String,
        /// Where, cleaned for people.
        paths: Vec<String>,
    },
    /// A gate is not green on the merged tree.
    Refused(Landed),
    /// A signal came.
    Interrupted(i32),
}

/// A run's work on a branch.
#[derive(Debug, Clone, PartialEq)]
pub struct Landed {
    /// Which run.
    pub run: RunId,
    /// Its branch.
    pub branch: String,
    /// The branch it goes into.
    pub into: String,
    /// The commit that the branch gets.
    pub commit: CommitId,
    /// Its tree.
    pub tree: TreeId,
    /// The run's commits.
    pub commits: usize,
    /// The verdicts of the gates that ran now.
    pub gates: Vec<Judged>,
    /// Gates that were proved at this very tree before.
    pub proved: Vec<GoalId>,
    /// Gates that the operator exempted.
    pub exempt: Vec<GoalId>,
    /// Paths of the work tree that could not be brought up to date, cleaned for people.
    pub blocked: Vec<String>,
}

/// The words of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// One line.
    pub title: String,
    /// Markdown. Subjects of commits in it are the agents' words.
    pub body: String,
}

/// The project, locked.
struct Ground {
    place: Place,
    repo: PeerRepo,
    control: ControlDir,
    store: Store<FsDisk>,
    records: Vec<RunRecord>,
    _lock: FileLock,
}

impl Ground {
    /// Takes the lock and brings the repository's branches in.
    fn take(place: &Place, env: &Env, command: &str) -> Result<Self, BootError> {
        let lock = place.lock(command)?;
        let (mut store, _) = Store::open(place.open_store_disk()?)?;
        let records = runs::all(store.disk())?;
        commands::record_waiting(&mut store, clock::now(), None)?;
        if let Some(open) = &store.state().open {
            return Err(Finding::new(
                exit::CONFLICT,
                format!("tick {} of the last run was cut short and is taken up first", open.started.tick),
                boot::take_up(store.state(), &records, place),
            )
            .into());
        }
        let base = project::read(store.disk())?.and_then(|project| project.base);
        let repo = boot::open_repo(place)?;
        // Before the first run there is none.
        if let Some(dir) = place.open_store()? {
            dir.create_subdir("git")?;
        }
        let mut control = ControlDir::open_or_create(&place.control_git_path(), boot::git_program(env)?)?
            .with_excludes(peers_git::operator_excludes());
        let _imported = control.import(&repo, base.as_ref()).map_err(|error| match error {
            GitError::Repo(error) => boot::repo_finding(place, &error),
            other => other.into(),
        })?;
        Ok(Self { place: place.clone(), repo, control, store, records, _lock: lock })
    }

    /// The work tree in which a branch is checked out, if it is checked out where we can know it.
    fn holder_of(&self, branch: &str, record: &RunRecord) -> Option<PeerRepo> {
        let places = [self.place.work_dir(), self.place.project_dir(), Path::new(&record.workdir)];
        self.checked_out(branch, places)
    }

    /// The first of these work trees of the repository that has a branch checked out.
    fn checked_out<const N: usize>(&self, branch: &str, places: [&Path; N]) -> Option<PeerRepo> {
        let full = full(branch);
        places.into_iter().find_map(|dir| {
            let repo = self.known(dir).ok()?;
            let head = repo.facts().head().ok()?;
            (head.branch.as_deref() == Some(full.as_str())).then_some(repo)
        })
    }

    /// Another work tree of the repository.
    fn known(&self, dir: &Path) -> Result<PeerRepo, RepoError> {
        PeerRepo::open_known(dir, self.repo.common_dir())
    }

    /// Where a branch is, if it is there.
    fn tip(&self, branch: &str) -> Result<Option<CommitId>, Finding> {
        self.repo.facts().reference(&full(branch)).map_err(Finding::from)
    }

    /// Removes a lock of the index that a landing or an undo left when it was killed: whoever makes one
    /// holds the run lock, which we hold.
    fn unlock(work: &PeerRepo) -> Result<(), Finding> {
        if work.remove_own_index_lock()? {
            tracing::info!(
                "a lock that was left in {} was removed",
                term::inline(&work.work_dir().to_string_lossy())
            );
        }
        Ok(())
    }

    fn refuse_dirty(&self, work: &PeerRepo, head: &CommitId, branch: &str) -> Result<(), Finding> {
        let state = self.control.tree_state(work.work_dir(), head)?;
        if !state.dirty {
            return Ok(());
        }
        let dir = term::inline(&work.work_dir().to_string_lossy());
        let found = self.control.dirty_files(work.work_dir(), head, DIRTY)?;
        let (what, hint) = match work.unfollowed(head, &found) {
            Some((why, path)) => (
                format!("where {}", boot::differs(&why, &path)),
                Step::from(format!(
                    "`git -C {} switch --detach` leaves the branch free to move, and the files alone",
                    term::quoted(&work.work_dir().to_string_lossy())
                )),
            ),
            None => ("with uncommitted changes".to_owned(), "commit or stash them first".into()),
        };
        let branch = term::inline(branch);
        Err(Finding::new(exit::CONFLICT, format!("`{branch}` is checked out in {dir} {what}"), hint))
    }

    fn record(&mut self, op: OperatorOp, by: &str) -> Result<(), Finding> {
        record(&mut self.store, op, by)
    }
}

fn record(store: &mut Store<FsDisk>, op: OperatorOp, by: &str) -> Result<(), Finding> {
    let record = Record::Operator(OperatorRecord { op, by: by.to_owned() });
    store.append(clock::now(), None, &[record])?;
    // A cache of the journal, where it stands.
    let _cached = store.write_snapshot();
    Ok(())
}

/// Takes the newest run with a branch of its own into a branch.
///
/// # Errors
/// [`BootError`]; nothing was moved then, and nothing recorded.
pub fn land(
    place: &Place,
    env: &Env,
    loaded: &Loaded,
    options: &LandOptions,
    show: Show,
) -> Result<Landing, BootError> {
    let bench = Bench::new(place, env, loaded, AskedWall::default())?;
    let mut ground = Ground::take(place, env, "land")?;
    let finished = match ground.take_up()? {
        Found::Moved(moving, blocked) if complete(&mut ground, &moving)? => Some((moving, blocked)),
        Found::Moved(..) | Found::Nothing => None,
    };
    let own = |record: &&RunRecord| record.own_branch && record.branch.is_some();
    let Some(record) = ground.records.iter().rev().find(own).cloned() else {
        return Err(Finding::new(
            exit::NEGATIVE,
            "no run has a branch of its own, so there is nothing to land",
            "`peers run --branch NAME` and `peers run --worktree` make one",
        )
        .into());
    };
    if let Some((moving, blocked)) = finished.filter(|(moving, _)| moving.what.run == record.run_id)
        && !options.propose
    {
        return already(&ground, loaded, &record, (&moving.what, blocked)).map(Landing::Landed);
    }
    let run = record.run_id.clone();
    let branch = record.branch.clone().unwrap_or_default();
    let into = options.into.clone().or_else(|| record.into.clone()).filter(|into| !into.is_empty());
    let Some(into) = into.map(|into| into.strip_prefix("refs/heads/").unwrap_or(&into).to_owned()) else {
        let message = format!("run {run} did not start from a branch");
        return Err(Finding::new(exit::USAGE, message, "name one with --into").into());
    };
    if into == branch {
        let message = format!("`{}` is the branch of run {run} itself", term::inline(&into));
        return Err(Finding::new(exit::USAGE, message, "name another one with --into").into());
    }
    let Some(from) = ground.tip(&branch)? else { return Err(ground.branch_gone(&branch, &record).into()) };
    let Some(target) = ground.tip(&into)? else {
        return Err(ground.target_gone(&into, &record, options.into.is_some()).into());
    };
    ended_at(&ground, &record, &branch, &from)?;
    let work = ground.holder_of(&into, &record);
    if !options.propose {
        if let Some(work) = &work {
            Ground::unlock(work)?;
        }
        refuse_locked(&ground.repo, work.as_ref(), &into)?;
        if let Some(work) = &work {
            ground.refuse_dirty(work, &target, &into)?;
        }
    }
    let subjects = subjects(&ground, &target, &from)?;
    let style = if options.squash { MergeStyle::Squash } else { MergeStyle::Merge };
    let message = message(&run, &branch, &subjects, style);
    let commit = match merge(&mut ground, (&target, &from), style, &message)? {
        Merged::UpToDate => return Ok(Landing::Nothing { run, into }),
        Merged::Conflict(paths) => return Ok(Landing::Conflict { run, into, paths }),
        Merged::FastForward(commit) | Merged::Commit(commit) => commit,
    };
    let tree = ground.control.facts().tree_of(&commit)?;
    let exempt = oneshot::exempt(&loaded.goals);
    let merged = TreeKey { head: commit.clone(), tree: tree.clone() };
    let from_tree = ground.control.facts().tree_of(&from)?;
    let owed = Owed::new(&ground, loaded, &merged, &TreeKey { head: from, tree: from_tree });
    let Judgement { gates, signal, .. } = prove(&bench, &mut ground, &owed, show)?;
    let proved = owed.proved;
    if let Some(signal) = signal {
        return Ok(Landing::Interrupted(signal));
    }
    let green = gates.iter().all(|judged| judged.verdict.is_pass());
    let commits = subjects.len();
    let mut landed =
        Landed { run, branch, into, commit, tree, commits, gates, proved, exempt, blocked: Vec::new() };
    if !green {
        return Ok(Landing::Refused(landed));
    }
    if options.propose {
        let proposal = proposal(&landed, &subjects, &options.notes);
        return Ok(Landing::Proposed(landed, proposal));
    }
    landed.blocked = advance(&mut ground, work.as_ref(), &landed, (&target, &options.by))?;
    Ok(Landing::Landed(landed))
}

/// What a run left is what it judged: nothing else is landed in its name.
fn ended_at(ground: &Ground, record: &RunRecord, branch: &str, tip: &CommitId) -> Result<(), Finding> {
    let on_it: Vec<&RunRecord> =
        ground.records.iter().filter(|r| r.branch.as_deref() == Some(branch)).collect();
    // Where it began nothing is on it, as after an `undo`.
    if record.base.as_ref() == Some(tip) || on_it.iter().any(|r| r.head.as_ref() == Some(tip)) {
        return Ok(());
    }
    let shown = term::inline(branch);
    let ended = on_it.iter().rev().find_map(|r| r.head.as_ref());
    let message = match ended {
        Some(ended) => format!(
            "`{shown}` is at {}, and run {} ended at {}: no run has judged its current commit",
            tip.short(),
            record.run_id,
            ended.short()
        ),
        None => format!("run {} has no recorded end", record.run_id),
    };
    let dir = peers_sys::term::quoted(&record.workdir);
    let again = if is_gone(Path::new(&record.workdir)) {
        format!(
            "make its worktree again and run once more: `{} && peers -C \"$d\" run`",
            record.worktree_again(&ground.place.project_dir().to_string_lossy())
        )
    } else {
        format!("run once more: `peers -C {dir} run`")
    };
    let hint = format!("{again}; or set the branch back to where the run ended");
    Err(Finding::new(exit::CONFLICT, message, hint))
}

fn merge(
    ground: &mut Ground,
    (into, from): (&CommitId, &CommitId),
    style: MergeStyle,
    message: &str,
) -> Result<Merged, Finding> {
    let who = substrate(clock::now());
    let tried = ground.control.merge_trees(into, from, style, message, &who);
    if let Err(GitError::NotFound { .. }) = tried {
        // The common history lies before what was imported.
        ground.control.deepen(&ground.repo)?;
        return ground.control.merge_trees(into, from, style, message, &who).map_err(Finding::from);
    }
    tried.map_err(Finding::from)
}

/// The gates that have to run, and those that were proved before at the very same place.
struct Owed {
    merged: TreeKey,
    on_tree: Vec<GoalId>,
    from: TreeKey,
    on_history: Vec<GoalId>,
    proved: Vec<GoalId>,
}

impl Owed {
    /// A gate that reads history answers at the run's own tip: it is about what agents committed, and
    /// nobody has recorded yet who made the commits on the other side.
    fn new(ground: &Ground, loaded: &Loaded, merged: &TreeKey, from: &TreeKey) -> Self {
        let proofs = &ground.store.state().proofs.verdicts;
        let (merged, from) = (merged.clone(), from.clone());
        let mut owed = Self { merged, on_tree: Vec::new(), from, on_history: Vec::new(), proved: Vec::new() };
        for gate in boot::rules(&loaded.config, &loaded.goals, &RunRequest::default()).gates {
            if gate.tree == TreeChoice::Live {
                continue;
            }
            let at = if gate.reads_history { &owed.from } else { &owed.merged };
            let known = proofs.get(&gate.id).is_some_and(|proof| {
                let same = proof.gate == gate.digest && proof.tree == at.tree;
                same && (!gate.reads_history || proof.head == at.head) && proof.verdict.is_pass()
            });
            match (known, gate.reads_history) {
                (true, _) => owed.proved.push(gate.id),
                (false, true) => owed.on_history.push(gate.id),
                (false, false) => owed.on_tree.push(gate.id),
            }
        }
        owed
    }
}

/// Runs gates in clean checkouts of commits that need not be in any repository but ours.
fn prove(bench: &Bench, ground: &mut Ground, owed: &Owed, show: Show) -> Result<Judgement, BootError> {
    let audience = Audience::of(show, owed.on_tree.len().saturating_add(owed.on_history.len()));
    let mut all = Judgement::default();
    if owed.on_tree.is_empty() && owed.on_history.is_empty() {
        return Ok(all);
    }
    let lent = ground.control.lend(&ground.repo)?;
    for (key, gates) in [(&owed.merged, &owed.on_tree), (&owed.from, &owed.on_history)] {
        if all.signal.is_some() {
            break;
        }
        let now = audience.after(all.gates.len());
        let judged = bench.prove(&ground.control, key, gates, &lent, &now)?;
        all.gates.extend(judged.gates);
        all.signal = judged.signal;
    }
    Ok(all)
}

/// Subjects of the commits that come with a branch, newest last, fit for a terminal.
fn subjects(ground: &Ground, into: &CommitId, from: &CommitId) -> Result<Vec<String>, Finding> {
    let walked = ground.control.facts().walk(Some(into), from, peers_git::WALK_CAP)?;
    let line = |message: &str| term::line(message.lines().next().unwrap_or_default(), 100);
    Ok(walked.iter().map(|fact| format!("{} {}", fact.id.short(), line(&fact.message))).collect())
}

fn message(run: &RunId, branch: &str, subjects: &[String], style: MergeStyle) -> String {
    let branch = term::inline(branch);
    let what = match style {
        MergeStyle::Merge => format!("Merge branch '{branch}'"),
        MergeStyle::Squash => format!("Land branch '{branch}'"),
    };
    format!("{what}\n\n{}\nPeers-Run: {run}\nPeer: peers-substrate\n", listed(subjects))
}

/// A list of commits, `- ` before each.
fn listed(subjects: &[String]) -> String {
    let mut lines: Vec<String> =
        subjects.iter().rev().take(NAMED).map(|subject| format!("- {subject}")).collect();
    if subjects.len() > NAMED {
        lines.push(format!("- and {} more", subjects.len() - NAMED));
    }
    lines.join("\n") + "\n"
}

fn proposal(landed: &Landed, subjects: &[String], notes: &str) -> Proposal {
    let Landed { run, branch, commits, gates, proved, exempt, .. } = landed;
    let mut lines = vec![format!("Work of run {run} on `{}`.\n\n{}", term::inline(branch), listed(subjects))];
    if !notes.is_empty() {
        lines.push(format!("{}\n", notes.trim_end()));
    }
    lines.push("Gates in a clean checkout of the merged tree:\n".to_owned());
    lines.extend(gates.iter().map(|judged| &judged.goal).chain(proved).map(|id| format!("- [x] {id}")));
    lines.extend(exempt.iter().map(|id| format!("- [ ] {id} (exempt: judged in the work tree only)")));
    let plural = if *commits == 1 { "" } else { "s" };
    let title = format!("{}: {commits} commit{plural}", term::line(branch, 60));
    Proposal { title, body: lines.join("\n") + "\n" }
}

fn full(branch: &str) -> String {
    if branch.starts_with("refs/heads/") { branch.to_owned() } else { format!("refs/heads/{branch}") }
}

/// The record of a run that is named by its id, by the beginning of one, or as `last`.
fn find<'r>(records: &'r [RunRecord], name: &str) -> Result<&'r RunRecord, Finding> {
    let fits = |record: &&RunRecord| record.run_id.as_str().starts_with(name);
    let found: Vec<&RunRecord> = match name {
        "last" => records.last().into_iter().collect(),
        "" => Vec::new(),
        _ => records.iter().filter(fits).collect(),
    };
    match found.as_slice() {
        [record] => Ok(record),
        [] if records.is_empty() => Err(Finding::plain(exit::NEGATIVE, "there was no run yet")),
        [] => {
            let near = yaml::closest(name, records.iter().map(|record| record.run_id.as_str()));
            let hint = near.map_or_else(
                || {
                    let newest: Vec<&str> =
                        records.iter().rev().take(RUNS).map(|record| record.run_id.as_str()).collect();
                    format!("the newest runs, `last` first: {}", newest.join(", "))
                },
                |near| format!("did you mean `{near}`?"),
            );
            Err(Finding::new(exit::INVALID, format!("there is no run `{}`", term::line(name, 40)), hint))
        }
        several => Err(Finding::plain(
            exit::USAGE,
            format!("{} runs begin with `{}`; give more of the id", several.len(), term::line(name, 40)),
        )),
    }
}
