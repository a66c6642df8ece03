//! Copies of what is replaced or taken away in the git directory.

use peers_core::machine::Harvest;
use peers_git::{Begun, GuardChange, GuardItem, LeftOut, PeerRepo};
use peers_model::TickNo;
use peers_sys::dir::{FileError, SafeDir};
use peers_sys::error::chain;
use peers_sys::term;

use super::GitRepo;
use super::mend::quoted;
use super::turn::TurnMark;
use crate::ports::RepoFailure;

/// Where copies go, in our directory beside the control git dir.
const KEPT: &str = "kept";
/// Replaced files of one tick that are copied, copies of one name, and ticks whose copies stay.
const MOST_KEPT: usize = 20;
const KEPT_TICKS: usize = 50;
/// Staged files in one warning, and in the list of all of them.
const STAGED_TOLD: usize = 5;
const STAGED_LISTED: usize = 100_000;

/// The directory of the copies of a tick.
fn dir_of(store: &SafeDir, tick: TickNo) -> Result<SafeDir, FileError> {
    store.create_path(format!("{KEPT}/tick-{:05}", tick.0))
}

/// How that directory is called in a warning.
fn place_of(tick: TickNo) -> String {
    format!("git/{KEPT}/tick-{:05}", tick.0)
}

/// Keeps a copy. A later one of the same name in this tick does not take the place of the first.
fn keep(dir: &SafeDir, name: &str, bytes: &[u8]) -> bool {
    let free = (1..MOST_KEPT).map(|n| if n == 1 { name.to_owned() } else { format!("{name}-{n}") });
    for file in free {
        match dir.publish_new(&file, bytes) {
            Ok(()) => return true,
            Err(FileError::AlreadyExists { .. }) => {}
            Err(error) => {
                tracing::warn!(%error, name, "what is replaced in the git directory was not kept");
                return false;
            }
        }
    }
    false
}

/// Copies files that are about to be replaced; what is too large for that is moved aside. What neither can be
/// done with is replaced all the same: it is what the operator's git would obey.
pub(super) fn files(mark: &TurnMark, store: &SafeDir, changes: &[GuardChange]) -> Option<String> {
    let (mut names, mut moved) = (Vec::new(), Vec::new());
    let dir = dir_of(store, mark.tick).ok()?;
    for change in changes {
        let GuardItem::File(name) = &change.item else { continue };
        let bytes = mark.guard.current(name).filter(|_| names.len() < MOST_KEPT);
        if bytes.is_some_and(|bytes| keep(&dir, &name.replace(['/', ':'], "_"), &bytes)) {
            names.push(name.clone());
            continue;
        }
        match mark.guard.keep_aside(name, &format!("tick-{:05}", mark.tick.0)) {
            Ok(to) => moved.extend(to.map(|to| (name.clone(), format!(".git/{to}")))),
            Err(error) => tracing::warn!(error = %chain(&error), name, "what is replaced was not kept"),
        }
    }
    forget_old(store);
    let copied = (!names.is_empty())
        .then(|| format!("what {} held is in the trusted store, in {}", quoted(&names), place_of(mark.tick)));
    let (from, to): (Vec<String>, Vec<String>) = moved.into_iter().unzip();
    let aside = (!from.is_empty()).then(|| format!("what lay at {} is now {}", quoted(&from), quoted(&to)));
    let kept: Vec<String> = copied.into_iter().chain(aside).collect();
    (!kept.is_empty()).then(|| {
        format!(
            "what peers restored after this turn was saved first: {}; if you changed it meanwhile, take your change from there",
            kept.join(", and ")
        )
    })
}

/// Old copies go: the newest are those that somebody misses.
fn forget_old(store: &SafeDir) {
    let Ok(kept) = store.open_path(KEPT) else { return };
    let Ok(listing) = kept.list(10 * KEPT_TICKS) else { return };
    let mut ticks: Vec<_> = listing.entries.into_iter().map(|entry| entry.name).collect();
    ticks.sort();
    let more = ticks.len().saturating_sub(KEPT_TICKS);
    for old in ticks.into_iter().take(more) {
        if let Err(error) = kept.remove_tree(&old) {
            tracing::warn!(%error, "an old copy was not removed");
        }
    }
}

/// What is said of staged content of which there is no copy.
pub(super) fn staged_left_out(store: &SafeDir, tick: TickNo, left_out: &[LeftOut]) -> String {
    let all: String = left_out
        .iter()
        .take(STAGED_LISTED)
        .flat_map(|out| [out.id.as_str(), " ", out.path.as_str(), "\n"])
        .collect();
    let listed = dir_of(store, tick).is_ok_and(|dir| keep(&dir, "staged", all.as_bytes()));
    forget_old(store);
    let shown: Vec<String> = left_out
        .iter()
        .take(STAGED_TOLD)
        .map(|out| format!("`{}` ({})", term::inline(&out.path), out.id))
        .collect();
    let more = match left_out.len().saturating_sub(STAGED_TOLD) {
        0 => String::new(),
        more if listed => format!(" and {more} more, all listed in {} of the trusted store", place_of(tick)),
        more => format!(" and {more} more"),
    };
    format!(
        "what this turn had staged as {}{more} was too much to be kept: until git tidies up, `git cat-file -p HASH` in the repository shows it",
        shown.join(", ")
    )
}

impl GitRepo {
    /// Takes away a merge, rebase or the like that this turn began and did not end: the next plain commit
    /// would conclude it, in the name of somebody else. Only what has been kept goes.
    pub(super) fn take_unfinished(
        &mut self,
        peer: &PeerRepo,
        mark: &TurnMark,
        found: &mut Harvest,
    ) -> Result<(), RepoFailure> {
        let (begun, changed) = peer.begun_since(&mark.unfinished);
        for name in changed {
            found.warnings.push(format!("this turn changed `.git/{name}`, which was there before it"));
        }
        if begun.is_empty() {
            return Ok(());
        }
        let (mut kept, mut taken) = (Vec::new(), Vec::new());
        for thing in begun {
            let here = self.control.adopt(peer, &thing.commits)?;
            for (n, commit) in here.iter().enumerate() {
                kept.push(self.keep(
                    mark.tick,
                    &format!("{}-{}", thing.name.to_lowercase(), n + 1),
                    commit,
                )?);
            }
            if !(self.copy(mark.tick, &thing) && peer.remove_begun(&thing)?) {
                let what = format!("`.git/{}` was left and cannot be copied", thing.name);
                let way = "finish it or abort it (`git status` says how)".to_owned();
                return Err(RepoFailure::Tampered { what, way: Some(way) });
            }
            taken.push(thing.name);
        }
        forget_old(&self.git_dir);
        let named =
            (!kept.is_empty()).then(|| format!("; what it named is kept as salvage {}", quoted(&kept)));
        found.warnings.push(format!(
            "this turn left a merge, rebase or the like unfinished: {} taken away{}; the files are kept in the trusted store, in {}",
            taken.join(", "),
            named.unwrap_or_default(),
            place_of(mark.tick)
        ));
        Ok(())
    }

    /// Whether all of it was copied.
    fn copy(&self, tick: TickNo, thing: &Begun) -> bool {
        let Some(files) = &thing.files else { return false };
        let Ok(dir) = dir_of(&self.git_dir, tick) else { return false };
        files.iter().all(|(name, bytes)| keep(&dir, name, bytes))
    }
}
