//! The directory for checkouts and scratch, above every clean checkout.
//!
//! Programs look for modules and configuration in the directories above the one they run in, so what
//! lies there takes part in a proof: nothing but ours may.

use std::time::Duration;

use peers_model::RunId;
use peers_sys::digest::sha256_hex;
use peers_sys::dir::{Kind, SafeDir};
use peers_sys::lock::{Acquired, FileLock, Probe, Sharing};
use peers_sys::{FileError, clock};

/// Where the clean checkouts of a loop go.
pub const PRISTINE: &str = "pristine";
/// Where a loop keeps its copy of the commit, for gates that want one.
pub const GATE_TREE: &str = "gate-tree";
/// Directories of a kept copy that outlive the change to another commit: what builds leave.
pub const BUILT: [&str; 9] =
    ["target", "node_modules", ".venv", "venv", "build", "dist", ".pytest_cache", ".mypy_cache", ".next"];
/// Where the children of a loop have their temporary files.
pub const SCRATCH: &str = "scratch";
/// Where the git directory of a turn is made.
pub const TURNS: &str = "turns";
/// Where the tools of peers keep their sessions that hold no login.
pub const TOOLS: &str = "tools";
/// Policies and logs of the proxies.
pub const NET: &str = "net";
/// Where packages are kept that `setup` fetches.
pub const PACKAGES: &str = "packages";
/// Where packages are kept that agents fetch, of each its own.
pub const DOWNLOADS: &str = "downloads";
/// The beginning of the name of what a command outside of a loop works in.
pub const ONESHOT: &str = "oneshot-";
/// The beginning of the name of where such a command makes clean checkouts.
pub const PROOF: &str = "proof-";
/// The lock of whoever works in such a directory.
const OWNED: &str = "owner.lock";
/// Others look at that lock for an instant.
const PATIENCE: Duration = Duration::from_secs(2);
/// A directory that is not older than this is nobody's leftover yet.
const YOUNG: Duration = Duration::from_secs(10);
/// A directory without that lock is a leftover when it is older than this.
const UNOWNED: Duration = Duration::from_hours(1);
/// Names that are looked at in one round.
const LISTED: usize = 10_000;

/// A directory that an agent writes; made anew where it left it in a state in which it cannot be used.
///
/// # Errors
/// [`FileError`].
pub fn usable(dir: &SafeDir, name: &str) -> Result<SafeDir, FileError> {
    dir.create_subdir(name).or_else(|_| {
        dir.remove_tree(name)?;
        dir.create_subdir(name)
    })
}

/// Removes everything that is not ours.
///
/// # Errors
/// [`FileError`].
pub fn clear_foreign(cache: &SafeDir) -> Result<(), FileError> {
    clear_but(cache, |name| {
        [PRISTINE, GATE_TREE, SCRATCH, TURNS, TOOLS, NET, PACKAGES, DOWNLOADS].contains(&name)
            || [ONESHOT, PROOF].iter().any(|prefix| id_of(name, prefix).is_some())
    })
}

/// The run id in such a name.
fn id_of<'a>(name: &'a str, prefix: &str) -> Option<&'a str> {
    name.strip_prefix(prefix).filter(|rest| rest.len() == 16 && rest.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// The id that processes of the command with such a directory carry. No directory can be made that names the
/// processes of a loop: the id is a digest.
#[must_use]
pub fn run_of(id: &str) -> Option<RunId> {
    let digest = sha256_hex(format!("a command of {ONESHOT}{id}").as_bytes());
    RunId::new(digest.get(..16)?.to_owned()).ok()
}

/// Makes the directory of a command outside of a loop. Whoever holds the lock works in it.
///
/// # Errors
/// [`FileError`].
pub fn begin(cache: &SafeDir, name: &str) -> Result<(SafeDir, FileLock), FileError> {
    let dir = cache.create_subdir(name)?;
    match FileLock::acquire(&dir, OWNED, Sharing::Exclusive, PATIENCE)? {
        Acquired::Held(lock) => Ok((dir, lock)),
        Acquired::Busy { .. } => Err(FileError::AlreadyExists { path: dir.path().join(OWNED) }),
    }
}

/// Removes what commands outside of a loop left that were killed, and gives the ids that their processes carry.
///
/// # Errors
/// [`FileError`].
pub fn clear_stale(cache: &SafeDir) -> Result<Vec<RunId>, FileError> {
    let mut ended = Vec::new();
    let entries = cache.list(LISTED)?.entries;
    let names: Vec<&str> = entries.iter().filter_map(|entry| entry.name.to_str()).collect();
    for name in &names {
        if let Some(id) = id_of(name, ONESHOT)
            && is_stale(cache, name)?
        {
            ended.extend(run_of(id));
            remove_leftover(cache, name);
        }
    }
    for name in &names {
        if let Some(id) = id_of(name, PROOF)
            && cache.stat(format!("{ONESHOT}{id}"))?.is_none()
        {
            remove_leftover(cache, name);
        }
    }
    Ok(ended)
}

/// What stays costs disk space only; somebody else may be removing it.
fn remove_leftover(cache: &SafeDir, name: &str) {
    if let Err(error) = cache.remove_tree(name) {
        tracing::warn!(%error, "what a killed command left was not removed");
    }
}

/// Whether whoever made this directory is gone.
fn is_stale(cache: &SafeDir, name: &str) -> Result<bool, FileError> {
    let Some(stat) = cache.stat(name)?.filter(|stat| stat.kind == Kind::Dir) else { return Ok(false) };
    // Its maker may be about to lock it, or to remove it.
    let age = clock::now().since(stat.modified());
    if age <= YOUNG {
        return Ok(false);
    }
    let Ok(dir) = cache.subdir(name) else { return Ok(false) };
    Ok(match FileLock::probe_shared(&dir, OWNED) {
        Ok(Probe::Free { .. }) => true,
        Ok(Probe::Missing) => age > UNOWNED,
        Ok(Probe::Held { .. }) | Err(_) => false,
    })
}

/// Removes everything that is no directory of a `known` name, however much there is.
///
/// # Errors
/// [`FileError`].
pub fn clear_but(dir: &SafeDir, known: impl Fn(&str) -> bool) -> Result<(), FileError> {
    loop {
        let listing = dir.list(LISTED)?;
        let mut removed = false;
        for entry in &listing.entries {
            // A name that is no text is none of ours.
            let ours = entry.name.to_str().is_some_and(&known);
            if !ours || dir.stat(&entry.name)?.is_some_and(|stat| stat.kind != Kind::Dir) {
                removed |= dir.remove_tree(&entry.name)?;
            }
        }
        // A listing that was cut says nothing of the rest.
        if !listing.truncated {
            return Ok(());
        }
        if !removed {
            let what = format!("more than {LISTED} names that look like ours are in it; remove it");
            let source = std::io::Error::other(what);
            return Err(FileError::Io { path: dir.path().to_owned(), op: "look through", source });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn however_much_was_planted_nothing_of_it_stays() {
        let tmp = tempfile::tempdir().unwrap();
        for n in 0..LISTED + 10 {
            fs::write(tmp.path().join(format!("{n:06}")), "").unwrap();
        }
        fs::create_dir_all(tmp.path().join("zz/dep")).unwrap();
        fs::create_dir(tmp.path().join("pristine")).unwrap();
        clear_foreign(&SafeDir::open_shared(tmp.path()).unwrap()).unwrap();
        let left: Vec<_> = fs::read_dir(tmp.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["pristine"]);
    }

    #[test]
    fn more_names_like_ours_than_there_can_be_are_refused() {
        let tmp = tempfile::tempdir().unwrap();
        for n in 0..=LISTED {
            fs::create_dir(tmp.path().join(format!("oneshot-{n:016x}"))).unwrap();
        }
        let error = clear_foreign(&SafeDir::open_shared(tmp.path()).unwrap()).unwrap_err();
        assert!(peers_sys::error::chain(&error).contains("names that look like ours"), "{error}");
    }

    #[test]
    fn what_a_killed_command_left_goes_and_what_a_live_one_has_stays() {
        let tmp = tempfile::tempdir().unwrap();
        let cache = SafeDir::open_shared(tmp.path()).unwrap();
        let (_dir, held) = begin(&cache, "oneshot-00000000000000aa").unwrap();
        drop(begin(&cache, "oneshot-00000000000000bb").unwrap());
        for dir in ["proof-00000000000000aa", "proof-00000000000000bb", "oneshot-00000000000000cc"] {
            fs::create_dir(tmp.path().join(dir)).unwrap();
        }
        let old = std::time::SystemTime::now() - Duration::from_mins(1);
        let age = |name: &str| fs::File::open(tmp.path().join(name)).unwrap().set_modified(old).unwrap();
        age("oneshot-00000000000000aa");
        age("oneshot-00000000000000bb");
        let left = || {
            let mut left: Vec<_> = fs::read_dir(tmp.path())
                .unwrap()
                .map(|e| e.unwrap().file_name().into_string().unwrap())
                .collect();
            left.sort();
            left
        };
        let ended = clear_stale(&cache).unwrap();
        assert_eq!(ended, [run_of("00000000000000bb").unwrap()]);
        assert_ne!(ended, [RunId::new("00000000000000bb").unwrap()], "no name of a directory is a run's id");
        let about_to_begin = "oneshot-00000000000000cc";
        assert_eq!(left(), ["oneshot-00000000000000aa", about_to_begin, "proof-00000000000000aa"]);
        drop(held);
        clear_stale(&cache).unwrap();
        assert_eq!(left(), [about_to_begin]);
    }

    #[test]
    fn only_our_directories_stay() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name);
        for dir in ["pristine", "oneshot-0123456789abcdef/x", "node_modules/dep", "oneshot-x", ".cargo"] {
            fs::create_dir_all(at(dir)).unwrap();
        }
        fs::write(at("scratch"), "no directory").unwrap();
        fs::write(at("conftest.py"), "x").unwrap();
        std::os::unix::fs::symlink("/tmp", at("proof-0123456789abcdef")).unwrap();
        clear_foreign(&SafeDir::open_shared(tmp.path()).unwrap()).unwrap();
        let mut left: Vec<_> = fs::read_dir(tmp.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["oneshot-0123456789abcdef", "pristine"]);
        assert!(at("oneshot-0123456789abcdef/x").exists());
    }
}
