//! `setup`: what a checkout of ours needs before gates can judge it.
//!
//! The commands run as gates do, in the tree itself. A pristine checkout is set up each time; a kept copy
//! when it is first used, and again when a file that `setup.paths` names has changed, or when something
//! that the commands made is no longer as they made it: all but what builds leave goes at each new commit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use peers_model::limits;
use peers_model::time::human;
use peers_model::verdict::{Place, Verdict};
use peers_store::{artifacts, layout};
use peers_sys::SafeDir;
use peers_sys::digest::sha256_hex;
use peers_sys::dir::FileId;
use peers_sys::spawn::RawExit;

use super::command::{Company, Running};
use super::gate_log::GateLog;
use super::gates::{self, Cancel, Home};
use super::ground::{self, Stamps};
use super::{Book, Progress, Site, judging};
use crate::cache::BUILT;
use crate::env::{self, GateIdentity, Turn};
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
    let mark = job.setup.as_ref().map(|paths| sha256_hex(format!("{setup:?} {paths}").as_bytes()));
    if place == Place::GateTree {
        let done = site.set_up.borrow_mut().remove(dir);
        let kept = job.copy.as_ref().is_some_and(|copy| !copy.fresh);
        if let (Some(done), Some(mark)) = (done.filter(|_| kept), &mark)
            && done.mark == *mark
            && done.stands(dir)
        {
            site.set_up.borrow_mut().insert(dir.clone(), done);
            return None;
        }
    }
    let before = (place == Place::GateTree).then(|| Found::look(dir)).flatten();
    let name = artifacts::tick_file(job.tick, "setup", artifacts::gate_log_suffix(place));
    let mut log = GateLog::new(site.spec.peers.as_ref(), layout::peers::LOG_GATES, name, limits::GATE_LOG);
    for command in &setup.commands {
        let limit = command.timeout_s.map_or(USUAL, |s| Duration::from_secs(s.get().into()));
        progress.setup(Some(&command.cmd));
        let failed = one(site, book, job, dir, (&command.cmd, limit), cancel, &mut log).await;
        progress.setup(None);
        if let Some(why) = failed {
            return Some(why.named(&command.cmd));
        }
    }
    if let (Place::GateTree, Some(mark)) = (place, mark) {
        // Without stamps it is set up each time.
        if let Some((before, after)) = before.zip(Found::look(dir)) {
            let made = after.since(&before);
            site.set_up.borrow_mut().insert(dir.clone(), SetUp { mark, made });
        }
    }
    None
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
    let spec = &site.spec;
    let home = Home::fresh(site);
    let config = "gitconfig-setup";
    let written = spec.scratch.publish_unsynced(config, &env::gate_git_config(&[&spec.repo, dir]));
    let at = match (written, &home.path) {
        (Ok(()), Ok(at)) => at,
        (Err(error), _) => return not_run(format!("was not started: {error}")),
        (_, Err(why)) => return not_run(format!("was not started: {why}")),
    };
    let turn = Turn { run: &spec.run_id, tick: job.tick, git_config: &spec.scratch.path().join(config) };
    let wanted = &book.config.goals.env;
    let about = GateIdentity { goal: None, tree: dir, bin: &spec.bin, home: at, wanted };
    let spawn = gates::shell(site, dir, cmd, env::of_gate(&site.host, &spec.chosen, turn, about));
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
        None => not_run("ended nobody knows how".to_owned()),
    }
}
