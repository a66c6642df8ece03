//! Moving aside what came into crowded directories after a moment.
//!
//! The time of a file's last change of state cannot be set by who owns it: what has an older one was there.

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{FileType, Stat};

use crate::aside;
use crate::error::{GitError, clean};
use crate::files;
use crate::guard::GuardSnapshot;
use crate::hygiene::{self, Fault};
use crate::mend::Cleared;

/// Entries of one directory, and directories within each other, that are looked at.
const MAX_ENTRIES: usize = if cfg!(test) { 2_000 } else { 4_000_000 };
const MAX_DEPTH: usize = 200;
/// Directories of git's own layout: they stay, whatever becomes of what is in them.
const LAYOUT: [&str; 8] = [
    "refs/heads",
    "refs/tags",
    "refs/remotes",
    "refs/notes",
    "logs/refs",
    "logs/refs/heads",
    "logs/refs/remotes",
    "objects/info",
];

/// Thins out directories.
pub(crate) struct Thinning<'a> {
    pub(crate) snapshot: &'a GuardSnapshot,
    pub(crate) label: &'a str,
    /// No more than so many new entries are no crowd.
    pub(crate) least: usize,
}

/// What there is below a directory.
struct Below {
    /// Something that was there before.
    old: bool,
    /// Entries that were seen.
    seen: usize,
}

impl Thinning<'_> {
    /// Moves new entries of a directory aside: directories with a crowd of them and nothing old as a whole,
    /// the rest together. Looks in the same way at those that stay.
    pub(crate) fn thin(&self, path: &Path, depth: usize, gone: &mut Vec<Cleared>) -> Result<(), GitError> {
        let Some(since) = self.snapshot.taken else { return Ok(()) };
        if depth > MAX_DEPTH {
            return Ok(());
        }
        let fail = |source| GitError::io(path, source);
        // Gone, or no directory: that was seen to.
        let Ok(dir) = files::open_dir(path) else { return Ok(()) };
        // Of more than that the first go now, and the rest when it is looked at again.
        let (listed, _) = files::list_some(&dir, MAX_ENTRIES).map_err(fail)?;
        let shown = self.snapshot.shown(path);
        // Of what is new by its time of change any may be older: a change of its mode is enough.
        let label = aside::lasting(self.label);
        let (mut few, mut weight, mut inner) = (Vec::new(), 0_usize, Vec::new());
        for (name, kind) in listed {
            if shown == Path::new("objects") && hygiene::is_of_store(&name) {
                continue;
            }
            let child = path.join(std::ffi::OsStr::from_bytes(&name));
            if kind != FileType::Directory {
                let stat = files::lstat_at(&dir, &name).map_err(fail)?;
                if stat.is_some_and(|stat| !is_old(&stat, since)) {
                    few.push(name);
                    weight += 1;
                }
                continue;
            }
            if LAYOUT.iter().any(|layout| self.snapshot.shown(&child) == Path::new(layout)) {
                inner.push(child);
                continue;
            }
            let Ok(below) = files::open_dir_at(&dir, &name) else { continue };
            let below = look(&below, since, depth + 1).map_err(fail)?;
            if below.old {
                inner.push(child);
            } else if below.seen > self.least {
                let shown = self.snapshot.shown(&child);
                let kept = aside::keep(&self.snapshot.common_dir, &child, shown, &label)?;
                gone.push(cleared(shown, kept));
            } else {
                few.push(name);
                weight += 1 + below.seen;
            }
        }
        if weight > self.least {
            let kept = aside::keep_entries(&self.snapshot.common_dir, (&dir, shown), &few, &label)?;
            gone.push(cleared(&shown.join("*"), kept));
        }
        inner.iter().try_for_each(|child| self.thin(child, depth + 1, gone))
    }
}

fn cleared(shown: &Path, kept: Option<String>) -> Cleared {
    Cleared {
        name: clean(&shown.to_string_lossy(), 200),
        what: Fault::Crowded.to_string(),
        kept,
        opened: false,
    }
}

fn is_old(stat: &Stat, since: i64) -> bool {
    let nanos = i64::try_from(stat.st_ctime_nsec).unwrap_or(0);
    stat.st_ctime.saturating_mul(1000).saturating_add(nanos / 1_000_000) < since
}

/// Looks for something old below a directory, until it is found.
fn look(dir: &OwnedFd, since: i64, depth: usize) -> std::io::Result<Below> {
    let mut below = Below { old: false, seen: 0 };
    let (listed, whole) = files::list_some(dir, MAX_ENTRIES)?;
    if !whole {
        // There may be something old among the rest: its new entries go one by one.
        return Ok(Below { old: true, seen: MAX_ENTRIES });
    }
    for (name, kind) in listed {
        below.seen += 1;
        if kind == FileType::Directory {
            if depth <= MAX_DEPTH
                && let Ok(inner) = files::open_dir_at(dir, &name)
            {
                let inner = look(&inner, since, depth + 1)?;
                below.seen += inner.seen;
                below.old = inner.old;
            }
        } else {
            below.old = files::lstat_at(dir, &name)?.is_some_and(|stat| is_old(&stat, since));
        }
        if below.old {
            break;
        }
    }
    Ok(below)
}
