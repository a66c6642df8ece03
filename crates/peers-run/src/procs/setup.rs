//! `setup`: what a checkout of ours needs before gates can judge it.
//!
//! The commands run as gates do, in the tree itself. For a proof they run once: what they left is copied away and
//! put back, at the same path, before each gate that runs a command. A kept copy is set up when it is first used, and again when a file that `setup.paths` names has changed, or when something
//! that the commands made is no longer as they made it: all but what builds leave goes at each new commit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use peers_model::time::human;
use peers_model::verdict::{Place, Verdict};
use peers_model::{Mono, limits};
use peers_store::{artifacts, layout};
use peers_sys::digest::sha256_hex;
use peers_sys::dir::FileId;
use peers_sys::spawn::RawExit;
use peers_sys::{FileError, SafeDir};

use super::behind::Role;
use super::command::{Company, Running};
use super::gate_log::GateLog;
use super::gates::{self, Cancel};
use super::ground::{self, Stamps};
use super::{Book, Gate, Progress, Site, judging};
use crate::cache::BUILT;
use crate::env::PACKAGES;
use crate::ports::GateJob;

/// Time limit of a command without one of its own: package managers are slow.
const USUAL: Duration = Duration::from_mins(15);
/// Characters of its output in a reason.
const TAIL: usize = 600;

/// Why a tree cannot be judged as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unready {
    /// A command ran and failed: what it runs is in the tree, and whoever works on that can mend it.
    Failed(String),
    /// A command could not be run.
    NotRun(String),
}

impl Unready {
    fn named(self, cmd: &str) -> Self {
        let text = |why: &str| format!("setup of the checkout failed: `{cmd}` {why}");
        match self {
            Self::Failed(why) => Self::Failed(text(&why)),
            Self::NotRun(why) => Self::NotRun(text(&why)),
        }
    }

    /// What every gate of that tree is told.
    pub(super) fn verdict(&self) -> Verdict {
        match self {
            Self::Failed(why) => judging::red(why),
            Self::NotRun(why) => judging::error(why),
        }
    }
}

/// What the commands left in a kept copy.
#[derive(Debug)]
pub(super) struct SetUp {
    /// What they depend on.
    mark: String,
    /// Files that they made or changed.
    made: Found,
}

/// What is looked at around the commands.
#[derive(Debug)]
struct Found {
    /// Files, without those of builds.
    files: Stamps,
    /// The directories of builds themselves; what is in them changes with each build.
    built: BTreeMap<&'static str, FileId>,
}

impl Found {
    /// Nothing where there is too much.
    fn look(dir: &Path) -> Option<Self> {
        let files = ground::stamps(dir, &BUILT)?;
        let top = SafeDir::open_shared(dir).ok()?;
        let there = |name: &&'static str| Some((*name, top.stat(name).ok()??.id));
        Some(Self { files, built: BUILT.iter().filter_map(there).collect() })
    }

    /// What is there that was not, or was another.
    fn since(mut self, before: &Self) -> Self {
        self.files.retain(|path, stamps| before.files.get(path) != Some(stamps));
        self.built.retain(|name, id| before.built.get(name) != Some(id));
        self
    }
}

impl SetUp {
    /// All of it is as it was left.
    fn stands(&self, dir: &Path) -> bool {
        let Found { files, built } = &self.made;
        if files.is_empty() && built.is_empty() {
            return true;
        }
        Found::look(dir).is_some_and(|now| {
            files.iter().all(|(path, stamps)| now.files.get(path) == Some(stamps))
                && built.iter().all(|(name, id)| now.built.get(name) == Some(id))
        })
    }
}

/// What `setup` left in a clean checkout.
#[derive(Debug)]
pub(super) struct ForProof {
    /// When the first of the gates was started that this is for.
    since: Mono,
    /// The checkout.
    dir: PathBuf,
    left: Left,
}

#[derive(Debug)]
enum Left {
    /// A copy lies in [`KEPT`], and these are the stamps of its files: gates run as the same user.
    Copy(Stamps),
    /// It failed, this often.
    Failed(Unready, u8),
}

/// Where the copy lies, below the scratch directory.
const KEPT: &str = "setup";
/// The copy itself.
const TREE: &str = "tree";
/// A copy that is being put back, beside the checkout.
const COMING: &str = "coming";
/// Bytes of a checkout of which a copy is kept. The loop waits while it is made; above it, `setup` runs for each
/// gate.
const MOST: u64 = 4 << 30;
/// How long a failed `setup` waits before it is tried once more: a network may be away for a moment.
const PAUSE: Duration = Duration::from_secs(30);

/// Sets up the clean checkout of a gate that runs a command, by what is kept where these gates have it.
async fn for_proof(
    site: &Rc<Site>,
    book: &Book,
    job: &GateJob,
    dir: &PathBuf,
    tell: (&Cancel, &Progress),
) -> Option<Unready> {
    let runs = |id| book.gates.get(id).is_some_and(|gate: &Gate| gate.pass_when.is_some());
    if !job.gates.iter().any(runs) {
        // A check of ours reads commits.
        return None;
    }
    let since = job.round.map(|round| round.since);
    let known = site.for_proof.take().filter(|known| Some(known.since) == since && known.dir == *dir);
    let mut failures = 0;
    match known {
        Some(known) => match &known.left {
            Left::Failed(why, 2..) => {
                let why = why.clone();
                site.for_proof.replace(Some(known));
                return Some(why);
            }
            Left::Failed(_, times) => {
                failures = *times;
                let mut cancel = tell.0.clone();
                // Both arms can be dropped at any await.
                tokio::select! {
                    () = tokio::time::sleep(site.spec.setup_pause.unwrap_or(PAUSE)) => {}
                    () = cancel.asked() => return Some(Unready::NotRun("setup of the checkout was cut off".into())),
                }
            }
            Left::Copy(stamps) if put_back(site, dir, stamps) => {
                site.for_proof.replace(Some(known));
                return None;
            }
            Left::Copy(_) => {}
        },
        None => forget(site),
    }
    let failed = commands(site, book, job, (dir, Place::Pristine), tell).await;
    let more = job.round.is_some_and(|round| round.done + 1 < round.of);
    let left = match &failed {
        Some(why) => Some(Left::Failed(why.clone(), failures + 1)),
        None if more => keep(site, dir).map(Left::Copy),
        None => None,
    };
    site.for_proof.replace(since.zip(left).map(|(since, left)| ForProof { since, dir: dir.clone(), left }));
    failed
}

/// Copies a checkout away. `None` where it cannot be, or cannot be known again: then `setup` runs for each gate.
fn keep(site: &Site, dir: &Path) -> Option<Stamps> {
    let scratch = &site.spec.scratch;
    let copied = || {
        scratch.remove_tree(KEPT)?;
        let above = SafeDir::open_shared(dir.parent().unwrap_or(dir))?;
        above.copy_tree(dir.file_name().unwrap_or_default(), &scratch.create_subdir(KEPT)?, TREE, MOST)
    };
    if let Err(error) = copied() {
        tracing::warn!(%error, "what `setup` left is not kept; it runs again for the next gate");
        forget(site);
        return None;
    }
    ground::all_stamps(&scratch.path().join(KEPT))
}

/// Puts a copy in the place of the checkout, if it is as it was made. Otherwise the checkout is left as it was: it
/// is replaced only by a copy that is whole.
fn put_back(site: &Site, dir: &Path, stamps: &Stamps) -> bool {
    let kept = site.spec.scratch.path().join(KEPT);
    if ground::all_stamps(&kept).as_ref() != Some(stamps) {
        tracing::warn!("what `setup` left was changed by a gate; it runs again");
        return false;
    }
    let name = dir.file_name().unwrap_or_default();
    let copied = || {
        let above = SafeDir::open_shared(dir.parent().unwrap_or(dir))?;
        above.remove_tree(COMING)?;
        SafeDir::open_shared(&kept)?.copy_tree(TREE, &above, COMING, MOST).or_else(|error| {
            above.remove_tree(COMING)?;
            Err(error)
        })?;
        above.remove_tree(name)?;
        above.rename(COMING, name)
    };
    match copied() {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(%error, "what `setup` left could not be put back; it runs again");
            false
        }
    }
}

/// Removes what is kept for gates that have answered.
pub(super) fn forget(site: &Site) {
    site.for_proof.take();
    if let Err(error) = site.spec.scratch.remove_tree(KEPT) {
        tracing::warn!(%error, "what `setup` left was not removed; it goes at the next start");
    }
}

/// Sets up one tree. Says why it cannot be judged where that failed.
pub(super) async fn run(
    site: &Rc<Site>,
    book: &Book,
    job: &GateJob,
    (dir, place): (&PathBuf, Place),
    (cancel, progress): (&Cancel, &Progress),
) -> Option<Unready> {
    let setup = &book.config.setup;
    if setup.commands.is_empty() {
        return None;
    }
    if place == Place::Pristine {
        return for_proof(site, book, job, dir, (cancel, progress)).await;
    }
    let mark = job.setup.as_ref().map(|paths| sha256_hex(format!("{setup:?} {paths}").as_bytes()));
    let done = site.set_up.borrow_mut().remove(dir);
    let kept = job.copy.as_ref().is_some_and(|copy| !copy.fresh);
    if let (Some(done), Some(mark)) = (done.filter(|_| kept), &mark)
        && done.mark == *mark
        && done.stands(dir)
    {
        site.set_up.borrow_mut().insert(dir.clone(), done);
        return None;
    }
    let before = Found::look(dir);
    if let Some(why) = commands(site, book, job, (dir, place), (cancel, progress)).await {
        return Some(why);
    }
    // Without stamps it is set up each time.
    if let Some((mark, (before, after))) = mark.zip(before.zip(Found::look(dir))) {
        let made = after.since(&before);
        site.set_up.borrow_mut().insert(dir.clone(), SetUp { mark, made });
    }
    None
}

/// Runs the commands, up to the first that fails.
async fn commands(
    site: &Rc<Site>,
    book: &Book,
    job: &GateJob,
    (dir, place): (&Path, Place),
    (cancel, progress): (&Cancel, &Progress),
) -> Option<Unready> {
    if let Err(error) = empty_packages(site) {
        return Some(Unready::NotRun(format!("packages of an earlier setup were not removed: {error}")));
    }
    let name = artifacts::tick_file(job.tick, "setup", artifacts::gate_log_suffix(place));
    let mut log = GateLog::new(site.spec.peers.as_ref(), layout::peers::LOG_GATES, name, limits::GATE_LOG);
    for command in &book.config.setup.commands {
        let limit = command.timeout_s.map_or(USUAL, |s| Duration::from_secs(s.get().into()));
        progress.setup(Some(&command.cmd));
        let failed = one(site, book, job, dir, (&command.cmd, limit), cancel, &mut log).await;
        progress.setup(None);
        if let Some(why) = failed {
            return Some(why.named(&command.cmd));
        }
    }
    None
}

/// What an earlier commit's `setup` fetched goes: code of that commit may have written there, and a proof rests on
/// nothing but the tree that it judges.
fn empty_packages(site: &Site) -> Result<(), FileError> {
    let Some(packages) = &site.spec.packages else { return Ok(()) };
    // What stands on them is set up again.
    site.set_up.borrow_mut().clear();
    let (Some(above), Some(name)) = (packages.parent(), packages.file_name()) else { return Ok(()) };
    let above = SafeDir::open_root(above)?;
    above.remove_tree(name)?;
    let fresh = above.create_subdir(name)?;
    for (_, below) in PACKAGES {
        fresh.create_subdir(below)?;
    }
    Ok(())
}

async fn one(
    site: &Rc<Site>,
    book: &Book,
    job: &GateJob,
    dir: &Path,
    (cmd, limit): (&str, Duration),
    cancel: &Cancel,
    log: &mut GateLog,
) -> Option<Unready> {
    let not_run = |why: String| Some(Unready::NotRun(why));
    let (vars, home) = match gates::surroundings(site, book, job.tick, (dir, "gitconfig-setup")) {
        Ok(found) => found,
        Err(why) => return not_run(format!("was not started: {why}")),
    };
    let spawn = gates::behind(site, home.ground(dir, None), cmd, vars, Role::SetUp);
    let running = Running { site, tick: job.tick, limit, cancel: cancel.clone(), company: Company::Alone };
    let finished = match running.run(&spawn, log).await {
        Ok(finished) => finished,
        Err(error) => return not_run(format!("was not started: {error}")),
    };
    let said = || {
        let text = [&finished.stdout, &finished.stderr].map(|side| judging::tail(side, TAIL, &site.rules));
        let text: Vec<String> = text.into_iter().filter(|text| !text.is_empty()).collect();
        if text.is_empty() { String::new() } else { format!(": {}", text.join("\n")) }
    };
    let failed = |why: String| Some(Unready::Failed(why));
    match finished.exit {
        _ if finished.cancelled => not_run("was cut off".to_owned()),
        _ if finished.stub.is_some() => not_run(format!("was not started{}", said())),
        _ if finished.timed_out => failed(format!("reached its limit of {}{}", human(limit), said())),
        Some(RawExit::Code(0)) => None,
        Some(RawExit::Code(code)) => failed(format!("ended with exit code {code}{}", said())),
        Some(RawExit::Signal(signal)) => failed(format!("died of signal {signal}{}", said())),
        None => not_run("ended in an unknown way".to_owned()),
    }
}
