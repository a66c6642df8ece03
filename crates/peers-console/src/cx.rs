//! What every subcommand is given.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use peers_git::{ControlDir, Git, PeerRepo};
use peers_model::command::Step;
use peers_model::goal::Goal;
use peers_model::{ProjectId, RunId, Timestamp, limits};
use peers_place::{Holder, PEERS_DIR, Place, is_cut_off, is_gone};
use peers_run::boot::{self, Finding};
use peers_store::{FsDisk, accept, layout, load, runs, store};
use peers_sys::dir::SafeDir;
use peers_sys::env::Env;
use peers_sys::{clock, term};
use peers_view::{Asked, GitFacts, Lock, Sourced};

use crate::error::{self, CommandError};
use crate::ledger;
use crate::output::Out;

/// Log files that are looked at.
const LOGS: usize = 20_000;

/// What every subcommand is given.
#[derive(Debug)]
pub struct Cx {
    /// The environment.
    pub env: Env,
    /// The directory that the command is about.
    pub target: PathBuf,
    /// The project that is known to lie there, where that is known: what its `.git` says does not count then.
    pub project: Option<ProjectId>,
    /// The terminal.
    pub out: Out,
}

impl Cx {
    /// Where the things of the target lie.
    ///
    /// # Errors
    /// The directory, its repository, or the home of the trusted stores cannot be found.
    pub fn place(&self) -> Result<Place, CommandError> {
        Ok(Place::locate(&self.target, &self.env)?.expect(self.project.as_ref())?)
    }

    /// The place with its store, for looking.
    ///
    /// # Errors
    /// The place cannot be found, its store cannot be opened, or `.peers` leads elsewhere.
    pub fn view(&self) -> Result<(Place, FsDisk), CommandError> {
        let place = self.place()?;
        refuse_link(&place)?;
        let disk = place.open_view_disk()?;
        Ok((place, disk))
    }

    /// The place with its store, for a command that writes.
    ///
    /// # Errors
    /// The place cannot be found, or its store cannot be opened for writing.
    pub fn store(&self) -> Result<(Place, FsDisk), CommandError> {
        let place = self.place()?;
        let disk = place.open_store_disk()?;
        Ok((place, disk))
    }

    /// The repository at the target.
    ///
    /// # Errors
    /// There is no repository, or it cannot be read; the hint says which.
    pub fn repo(place: &Place) -> Result<PeerRepo, CommandError> {
        PeerRepo::open(place.work_dir()).and_then(|repo| repo.check_content().map(|()| repo)).map_err(
            |error| {
                let (message, hint) = place.repo_problem(&error);
                CommandError::new(peers_place::repo_exit(&error), message).hint(hint)
            },
        )
    }

    /// The control git directory of the place, with what the operator's own git ignores; `None` while there is none.
    ///
    /// # Errors
    /// There is no `git`, or the directory is unsafe or cannot be opened.
    pub fn control(&self, place: &Place) -> Result<Option<ControlDir>, CommandError> {
        let path = place.control_git_path();
        if !path.exists() {
            return Ok(None);
        }
        let control = ControlDir::open_or_create(&path, self.git()?)?;
        Ok(Some(control.with_excludes(peers_git::operator_excludes())))
    }

    /// The `git` program.
    ///
    /// # Errors
    /// There is no `git` on the search path, or it is too old.
    pub fn git(&self) -> Result<Git, CommandError> {
        Ok(Git::locate(self.env.var("PATH").unwrap_or_default())?)
    }

    /// What a view is asked for: now, the lock, and what a look at the repository shows. The repository
    /// is looked at where the newest run worked.
    pub fn asked(&self, place: &Place, disk: &mut FsDisk) -> Asked {
        let (lock, gates_since) = look(place);
        let mut asked = Asked::new(clock::now(), clock::boot_id().map(str::to_owned), lock);
        asked.gates_since = gates_since;
        asked.foreign_lock = place.foreign_lock().unwrap_or(false);
        asked.spelling = self.out.spelling().clone();
        asked.here = Some(place.work_dir().to_string_lossy().into_owned());
        let worked = newest_work_dir(place, disk);
        asked.gone = worked.as_deref().is_some_and(is_gone);
        if asked.lock == Lock::Free {
            asked.lost =
                boot::gone::lost(place, disk).map(|lost| (lost.message, lost.hint.unwrap_or_default()));
        }
        let worked = worked.filter(|_| !asked.gone);
        let there = worked.as_deref().unwrap_or(place.work_dir());
        let repo = match (&worked, PeerRepo::open(place.work_dir())) {
            // A worktree of the run's own: agents write there, so it must lead to this repository.
            (Some(dir), Ok(main)) => PeerRepo::open_known(dir, main.common_dir()),
            (_, main) => main,
        };
        let unread = |error| {
            if !is_cut_off(there) {
                return error::chain(&error);
            }
            let (message, hint) = place.repo_problem(&error);
            format!("{message}; {hint}")
        };
        let facts = repo.map_err(unread).and_then(|repo| {
            let mut facts = GitFacts::of(&repo).map_err(|error| error::chain(&error))?;
            facts.take_scopes(&repo, &accepted_goals(disk));
            let control = self.control(place);
            if asked.lock == Lock::Free
                && let Ok(Some(control)) = &control
            {
                take_dirty(&mut facts, control, &repo);
            }
            let ledger = ledger::at(there, control, disk);
            facts.bugs = ledger.map_or_else(Sourced::Unreadable, Sourced::Fresh);
            Ok(facts)
        });
        asked.gate_logs = worked.as_deref().and_then(gate_logs);
        asked.git = match facts {
            Ok(facts) => Sourced::Fresh(facts),
            Err(why) => Sourced::Unreadable(why),
        };
        if asked.lock != Lock::Free {
            asked.heard = heard(there, disk);
        }
        asked
    }

    /// The same, with what a start would refuse for now. Both look at once: neither waits for the other.
    pub fn asked_with_refusals(&self, place: &Place, disk: &mut FsDisk) -> Asked {
        let free = lock(place) == Lock::Free;
        let env = &self.env;
        std::thread::scope(|scope| {
            let refusals = free.then(|| scope.spawn(|| boot::refusals(place, env)));
            let mut asked = self.asked(place, disk);
            let refusals =
                refusals.map(|looking| looking.join().unwrap_or_else(|_| boot::refusals(place, env)));
            // Whoever came meanwhile may be in the middle of it.
            if asked.lock == Lock::Free {
                asked.refusals = refusals.into_iter().flatten().map(refusal).collect();
            }
            asked
        })
    }

    /// What a start would refuse for now, each with what to do about it; nothing while somebody works
    /// here, who may be in the middle of it.
    #[must_use]
    pub fn refusals(&self, place: &Place, lock: &Lock) -> Vec<Step> {
        if *lock != Lock::Free {
            return Vec::new();
        }
        boot::refusals(place, &self.env).into_iter().map(refusal).collect()
    }

    /// Who asks, as it is recorded.
    #[must_use]
    pub fn operator(&self) -> String {
        peers_place::operator::name(&self.env)
    }
}

/// The uncommitted paths, as far as the newest commit was imported by a run. While a loop runs they
/// come and go, and it looks for itself.
fn take_dirty(facts: &mut GitFacts, control: &ControlDir, repo: &PeerRepo) {
    // A commit that no run has seen, or a tree that changes meanwhile: then nobody looked.
    let Ok(dirty) = control.dirty_files(repo.work_dir(), &facts.head, GitFacts::COUNTED + 1) else {
        return;
    };
    let exclude = SafeDir::open_shared(repo.common_dir())
        .and_then(|dir| dir.parent_of("info/exclude"))
        .and_then(|(dir, name)| dir.read(name, limits::CONFIG))
        .unwrap_or_default();
    facts.take_dirty(&dirty, &String::from_utf8_lossy(&exclude));
}

/// What to know of a run whose worktree somebody removed by hand.
pub fn gone(disk: &mut FsDisk, run: &RunId) -> Option<String> {
    let (records, _) = runs::list(disk).ok()?;
    let record = records.into_iter().find(|record| record.run_id == *run)?;
    is_gone(Path::new(&record.workdir)).then(|| {
        format!(
            "the worktree {} of run {run} is gone, and what was not committed in it; `git worktree prune` makes git forget it",
            term::inline(&record.workdir)
        )
    })
}

/// Where the newest run worked, if that is another directory than the one that was asked about.
fn newest_work_dir(place: &Place, disk: &mut FsDisk) -> Option<PathBuf> {
    let (records, _) = runs::list(disk).ok()?;
    let dir = PathBuf::from(&records.last()?.workdir);
    (dir != place.work_dir()).then_some(dir)
}

/// The goals in force; none where they cannot be read.
fn accepted_goals(disk: &mut FsDisk) -> Vec<Goal> {
    let read = |disk: &mut FsDisk, name| {
        let bytes = accept::read_bytes(disk, name).ok().flatten()?;
        String::from_utf8(bytes).ok()
    };
    let config = read(disk, layout::peers::CONFIG).and_then(|text| load::load_config(&text).ok());
    let peers = config.map_or(2, |config| config.peers.len());
    let goals = read(disk, layout::peers::GOALS);
    goals.and_then(|text| load::load_goals(&text, peers, peers_checks::names()).ok()).unwrap_or_default()
}

/// When the peer whose turn is open last printed something: the last change of its live logs. Agents can
/// write there, so this is for people only.
fn heard(work_dir: &Path, disk: &mut FsDisk) -> Option<Timestamp> {
    let open = store::read_state(disk).ok()?.open?;
    let prefix = peers_store::artifacts::tick_file(open.started.tick, open.started.peer.as_str(), ".");
    let logs =
        SafeDir::open_shared(work_dir).ok()?.open_path(format!("{PEERS_DIR}/{}", layout::peers::LOG_PEERS));
    // Without a log of this tick nothing was printed yet, or live logs are off.
    let logs = logs.ok()?;
    let names = logs.list(LOGS).ok()?.entries.into_iter().filter_map(|entry| entry.name.into_string().ok());
    let stamps = names
        .filter(|name| name.starts_with(&prefix))
        .filter_map(|name| Some(logs.stat(name).ok()??.modified()));
    stamps.max()
}

/// The logs of gates in another work directory. Agents can write there, so this is for people only.
fn gate_logs(work_dir: &Path) -> Option<BTreeSet<String>> {
    let dir = SafeDir::open_shared(work_dir).ok()?;
    let logs = dir.open_path(format!("{PEERS_DIR}/{}", layout::peers::LOG_GATES)).ok()?;
    let entries = logs.list(LOGS).ok()?.entries;
    Some(entries.into_iter().filter_map(|entry| entry.name.into_string().ok()).collect())
}

/// What a look at the run lock shows.
#[must_use]
pub fn lock(place: &Place) -> Lock {
    look(place).0
}

/// The same, and since when the loop runs gates, if it does.
pub(crate) fn look(place: &Place) -> (Lock, Option<Timestamp>) {
    match place.holder() {
        Ok(None) => (Lock::Free, None),
        Ok(Some(Holder { pid, command: Some(command), .. })) => (Lock::Command { pid, command }, None),
        Ok(Some(Holder { pid, run_id, gates_since, command: None, .. })) => {
            (Lock::Held { pid, run_id }, gates_since)
        }
        Err(error) => (Lock::Unreadable(error::chain(&error)), None),
    }
}

/// Commands that only look refuse a control directory that leads elsewhere.
///
/// # Errors
/// Exit code 5 for a symbolic link; otherwise the work directory cannot be looked at.
pub fn refuse_link(place: &Place) -> Result<(), CommandError> {
    let found = place.open_work()?.stat(peers_place::PEERS_DIR)?;
    if found.is_some_and(|stat| stat.kind == peers_sys::dir::Kind::Symlink) {
        return Err(CommandError::new(peers_model::exit::REFUSED, ".peers is a symbolic link")
            .hint("peers did not create it: inspect it, delete it, and start again"));
    }
    Ok(())
}

/// A refusal with what to do about it, in one line.
#[must_use]
pub fn refusal(Finding { message, hint, .. }: Finding) -> Step {
    // A file that cannot be read is quoted in the lines below the first.
    let message = message.lines().next().unwrap_or_default();
    let refusal = Step::from(message.to_owned());
    match hint {
        Some(hint) => refusal.say("; ").join(hint),
        None => refusal,
    }
}
