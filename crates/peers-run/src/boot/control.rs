//! What lies in `.peers/` and in the trusted store, before a start relies on it.

use peers_model::command::Step;
use peers_model::request::Worktree;
use std::path::{Path, PathBuf};

use peers_core::state::OpenTick;
use peers_model::record::Record;
use peers_model::{CommitId, RunId, exit};
use peers_store::{Area, FsDisk, commands, layout, runs};
use peers_sys::dir::{Kind, SafeDir};
use peers_sys::lock::FileLock;
use peers_sys::{reap, term};

use super::finding::Finding;
use super::options::RunOptions;
use crate::gitrepo;

use layout::{peers, store};
use peers_place::{PEERS_DIR, Place};

/// Directories and files below `.peers/`; configuration and goals are looked at when they are read.
const PEERS: [(&str, Kind); 13] = [
    ("log", Kind::Dir),
    (peers::INBOX, Kind::Dir),
    (peers::COMMS, Kind::Dir),
    (peers::LOG_PEERS, Kind::Dir),
    (peers::LOG_PROMPTS, Kind::Dir),
    (peers::LOG_GATES, Kind::Dir),
    (peers::LOG_HOOKS, Kind::Dir),
    (peers::MIRROR, Kind::File),
    (peers::STATE, Kind::File),
    (peers::STOP_REASON, Kind::File),
    (peers::HALTED, Kind::File),
    (peers::REPORT, Kind::File),
    (peers::VERIFY, Kind::File),
];

/// The mark of a turn. What else than a directory lies in its place is replaced, once it was told.
const TURN: &str = "git/turn.json";

/// The same of the trusted store; what was accepted is looked at when it is read.
const STORE: [(&str, Kind); 11] = [
    (store::JOURNAL, Kind::Dir),
    (store::RUNS, Kind::Dir),
    (store::COMMANDS, Kind::Dir),
    ("git", Kind::Dir),
    (TURN, Kind::File),
    (store::SNAPSHOT, Kind::File),
    (store::TOOL_HOMES, Kind::File),
    (store::BUGS, Kind::File),
    (store::RUN_LOCK, Kind::File),
    (store::OP_LOCK, Kind::File),
    (store::RESERVE, Kind::File),
];

/// Everything of ours is of the kind that it must be, and no command waits that only a newer program knows.
pub(super) fn files(disk: &mut FsDisk) -> Vec<Finding> {
    let mut out = Vec::new();
    for (area, shown, names) in [(Area::Peers, ".peers/", &PEERS[..]), (Area::Store, "", &STORE[..])] {
        let Some(dir) = disk.dir(area) else { continue };
        for (name, due) in names {
            let wrong = |found: &Kind| found != due && (*name != TURN || *found == Kind::Dir);
            let Some(found) = kind(dir, name).filter(wrong) else { continue };
            let place = if area == Area::Store { " in the trusted store" } else { "" };
            out.push(Finding::new(
                exit::REFUSED,
                format!("{shown}{name}{place} is {}, where {} belongs", word(found), word(*due)),
                "inspect it and move it away; peers creates it anew",
            ));
        }
    }
    if out.is_empty()
        && let Err(error) = commands::refuse_newer(disk)
    {
        out.push(error.into());
    }
    out
}

/// Mends the git directory of a turn or of gates that were cut short, removes locks that a loop which was killed left
/// on references of ours, and returns the run lock that is held for it. Where somebody holds that, or nothing was cut
/// short, nothing is done.
///
/// `adopted` is the lock where it is held already.
pub(super) fn mended(place: &Place, adopted: Option<FileLock>, open: Option<&OpenTick>) -> Option<FileLock> {
    let git_dir = || place.open_store().ok()??.open_path("git").ok();
    let cut_short = git_dir().filter(|dir| open.is_some() || gitrepo::has_gates_mark(dir));
    if cut_short.is_none() && !gitrepo::has_own_lock(place.work_dir()) {
        return adopted;
    }
    let lock = adopted.or_else(|| place.lock("run").ok())?;
    if let Some(git_dir) = cut_short {
        gitrepo::mend_unopened(&git_dir, open);
    }
    gitrepo::remove_own_locks(place.work_dir());
    Some(lock)
}

/// The kind of what is there; nothing where the directory above is wrong already.
fn kind(dir: &SafeDir, name: &str) -> Option<Kind> {
    let (parent, name) = dir.parent_of(name).ok()?;
    Some(parent.stat(name).ok()??.kind)
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "a file",
        Kind::Dir => "a directory",
        Kind::Symlink => "a symbolic link",
        Kind::Special => "a FIFO, a socket or a device",
    }
}

/// A work tree without `.peers/`, though the project has a store.
#[must_use]
pub fn missing(place: &Place) -> Finding {
    let dir = term::inline(&place.work_dir().to_string_lossy());
    let message = format!("{dir} has no {PEERS_DIR} directory");
    let main = place.project_dir();
    let elsewhere = place.is_linked()
        && SafeDir::open_shared(main).ok().and_then(|main| kind(&main, PEERS_DIR)) == Some(Kind::Dir);
    let hint = if elsewhere {
        let main = peers_sys::term::quoted(&main.to_string_lossy());
        format!(
            "this is a linked worktree; the checkout that is set up is {main}: `peers -C {main} run`, or another command there"
        )
        .into()
    } else {
        Step::from("`peers init --upgrade` lays it down again as it was accepted")
    };
    Finding::new(exit::INVALID, message, hint)
}

/// A worktree that was asked for and would lie in a checkout of the project, or where something is.
pub(super) fn worktree(place: &Place, options: &RunOptions) -> Option<Finding> {
    let Some(Worktree::At(dir)) = &options.request.worktree else { return None };
    let dir = Path::new(dir);
    let inside = |dir: &Path| dir.starts_with(place.work_dir()) || dir.starts_with(place.project_dir());
    let real: PathBuf =
        std::path::absolute(dir).map_or_else(|_| dir.to_owned(), |dir| peers_place::resolved(&dir));
    let shown = term::inline(&real.to_string_lossy());
    if inside(&real) {
        let message = format!("the worktree {shown} would lie inside the repository");
        let hint = "name a directory outside: `--worktree=DIR`, or leave DIR out";
        return Some(Finding::new(exit::INVALID, message, hint));
    }
    is_taken(&real).then(|| {
        let message = format!("the worktree {shown} would stand where something is already");
        let hint = "name a directory that is empty or not there yet: `--worktree=DIR`, or leave DIR out";
        Finding::new(exit::CONFLICT, message, hint)
    })
}

/// Whether something is there besides an empty directory.
fn is_taken(dir: &Path) -> bool {
    match SafeDir::open_shared(dir).and_then(|dir| dir.list(1)) {
        Ok(found) => !found.entries.is_empty(),
        Err(_) => SafeDir::id_at(dir).is_some(),
    }
}

/// The copies that the journal says were kept, each with the commit that it is or lies on. A journal that
/// cannot be read is refused by whoever opens it.
pub(super) fn kept_copies(disk: &mut FsDisk) -> Vec<(String, CommitId)> {
    let (mut planned, mut kept) = (None, Vec::new());
    let _read = peers_store::store::read_each(disk, |line| match &line.record {
        Record::CorrectionPlanned(plan) => planned = Some((plan.tick, plan.from.clone())),
        Record::Tick(tick) => {
            let on = planned.take().filter(|(of, _)| *of == tick.iteration).map(|(_, from)| from);
            if let (Some(name), Some(on)) = (&tick.salvage, on) {
                kept.push((name.clone(), on));
            }
        }
        _ => {}
    });
    kept
}

/// Processes that may be left from a run that was killed and carry no mark of it, for people.
pub fn strays(disk: &mut FsDisk, run: &RunId, place: &Place) -> Option<String> {
    let record = runs::all(disk).ok()?.into_iter().find(|record| record.run_id == *run)?;
    // In another life of the machine nothing of it is left.
    if record.boot_id.as_deref() != peers_sys::clock::boot_id() {
        return None;
    }
    let dirs = [place.work_dir(), place.project_dir(), place.store_dir()].map(Path::to_owned);
    let found = reap::strays(&dirs, run, record.starttime?).ok()?;
    let names: Vec<String> = found.iter().take(10).map(|process| process.pid.to_string()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}
