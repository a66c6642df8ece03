//! Advisory locks on files.
//!
//! The kernel's lock is the truth, never the existence or the content of the file; so the file is
//! never unlinked, else two holders could lock two inodes of one name. The lock ends with its handle,
//! also when the process dies.

use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::dir::{FileError, FileId, SafeDir, io_error};

const POLL: Duration = Duration::from_millis(50);
/// So much of a lock file's content is read.
const CONTENT_MAX: u64 = 64 * 1024;

/// Who else may hold the lock at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Nobody.
    Exclusive,
    /// Others that share it too.
    Shared,
}

/// A held lock. Its handle is close-on-exec, so that no child inherits it.
#[derive(Debug)]
pub struct FileLock {
    file: File,
    path: PathBuf,
    /// Another handle of the same open file goes on holding it.
    handed_over: bool,
}

/// The answer to asking for a lock.
#[derive(Debug)]
#[must_use]
pub enum Acquired {
    /// It is ours.
    Held(FileLock),
    /// Somebody else kept it until the deadline.
    Busy {
        /// What the holder wrote into it, possibly nothing or half of it.
        content: Vec<u8>,
    },
}

/// What a look at a lock showed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Probe {
    /// Somebody holds it exclusively.
    Held {
        /// What the holder wrote into it, possibly nothing or half of it.
        content: Vec<u8>,
    },
    /// Nobody holds it exclusively.
    Free {
        /// What the last holder wrote.
        content: Vec<u8>,
    },
    /// There is no such file.
    Missing,
}

impl FileLock {
    /// Takes the lock `name` in `dir`, made when it is missing, trying for `patience` (zero: once).
    ///
    /// # Errors
    /// Those with [`FileError::is_unsafe`], [`FileError::Io`].
    pub fn acquire(
        dir: &SafeDir,
        name: impl AsRef<OsStr>,
        sharing: Sharing,
        patience: Duration,
    ) -> Result<Acquired, FileError> {
        let name = name.as_ref();
        let path = dir.full(name);
        let deadline = Instant::now().checked_add(patience);
        loop {
            let (file, stat) = dir.open_regular(name, OFlags::RDWR | OFlags::CREATE)?;
            loop {
                let locked = match sharing {
                    Sharing::Exclusive => file.try_lock(),
                    Sharing::Shared => file.try_lock_shared(),
                };
                match locked {
                    Ok(()) => break,
                    Err(TryLockError::WouldBlock) => {}
                    Err(TryLockError::Error(e)) => return Err(io_error(&path, "lock", e)),
                }
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    return Ok(Acquired::Busy { content: content(&file, &path)? });
                }
                std::thread::sleep(POLL);
            }
            // While we waited the name may have been given to another file; a lock on the old one
            // excludes nobody.
            if still_named(dir, name, stat.id)? {
                return Ok(Acquired::Held(Self { file, path, handed_over: false }));
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(FileError::Swapped { path });
            }
        }
    }

    /// Gives the lock away: whoever has the returned handle, or inherits it, holds it. It is released when the
    /// last such handle is closed; at no instant before that is it free.
    ///
    /// # Errors
    /// [`FileError::Io`] when no handle is left; the lock is released then.
    pub fn hand_over(mut self) -> Result<File, FileError> {
        let file = self.file.try_clone().map_err(|e| io_error(&self.path, "clone the lock", e))?;
        self.handed_over = true;
        Ok(file)
    }

    /// Takes over a lock that was handed over: `file` has to be the file `name` in `dir`, and held through
    /// this very handle.
    ///
    /// # Errors
    /// [`FileError::Swapped`] when it is another file, [`FileError::Io`] when somebody else holds the lock.
    pub fn adopt(dir: &SafeDir, name: impl AsRef<OsStr>, file: File) -> Result<Self, FileError> {
        let name = name.as_ref();
        let path = dir.full(name);
        let stat = rustix::fs::fstat(&file).map_err(|e| io_error(&path, "stat", e))?;
        if !still_named(dir, name, crate::dir::FileStat::new(&stat).id)? {
            return Err(FileError::Swapped { path });
        }
        // For the handle that holds it this changes nothing.
        file.try_lock().map_err(|e| io_error(&path, "take over the lock", std::io::Error::from(e)))?;
        Ok(Self { file, path, handed_over: false })
    }

    /// Looks whether the lock is held, without waiting and without making the file.
    ///
    /// The look itself is a shared lock for an instant.
    ///
    /// # Errors
    /// Those with [`FileError::is_unsafe`], [`FileError::Io`].
    pub fn probe_shared(dir: &SafeDir, name: impl AsRef<OsStr>) -> Result<Probe, FileError> {
        let name = name.as_ref();
        let path = dir.full(name);
        let file = match dir.open_read(name) {
            Ok(file) => file,
            Err(FileError::NotFound { .. }) => return Ok(Probe::Missing),
            Err(e) => return Err(e),
        };
        let locked = file.try_lock_shared();
        let content = content(&file, &path)?;
        match locked {
            Ok(()) => Ok(Probe::Free { content }),
            Err(TryLockError::WouldBlock) => Ok(Probe::Held { content }),
            Err(TryLockError::Error(e)) => Err(io_error(&path, "lock", e)),
        }
    }

    /// Replaces the content, which tells others who holds the lock.
    ///
    /// # Errors
    /// [`FileError::Io`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        // In this order there is no instant at which a reader finds nothing.
        self.file
            .write_all_at(bytes, 0)
            .and_then(|()| self.file.set_len(u64::try_from(bytes.len()).unwrap_or(u64::MAX)))
            .map_err(|e| io_error(&self.path, "write", e))
    }

    /// Whether `name` in `dir` still is the file that this lock is on.
    ///
    /// # Errors
    /// [`FileError::Io`].
    pub fn still_at(&self, dir: &SafeDir, name: impl Into<OsString>) -> Result<bool, FileError> {
        let stat = rustix::fs::fstat(&self.file).map_err(|e| io_error(&self.path, "stat", e))?;
        still_named(dir, &name.into(), crate::dir::FileStat::new(&stat).id)
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if self.handed_over {
            return;
        }
        // Closing releases the lock as well, unless a forked child still has the handle: then this
        // does. When it fails there is nothing better to do.
        drop(self.file.unlock());
    }
}

fn still_named(dir: &SafeDir, name: &OsStr, id: FileId) -> Result<bool, FileError> {
    Ok(dir.stat(name)?.is_some_and(|stat| stat.id == id))
}

fn content(file: &File, path: &std::path::Path) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    file.take(CONTENT_MAX).read_to_end(&mut bytes).map_err(|e| io_error(path, "read", e))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::testing;

    fn root() -> (tempfile::TempDir, SafeDir) {
        let tmp = tempfile::tempdir().unwrap();
        let dir = SafeDir::open_root(tmp.path()).unwrap();
        (tmp, dir)
    }

    fn take(dir: &SafeDir, sharing: Sharing) -> Acquired {
        FileLock::acquire(dir, "run.lock", sharing, Duration::ZERO).unwrap()
    }

    #[test]
    fn a_second_taker_is_told_who_holds_it() {
        let (_tmp, dir) = root();
        let Acquired::Held(mut lock) = take(&dir, Sharing::Exclusive) else { panic!("free") };
        lock.write(b"first, a longer text").unwrap();
        lock.write(b"pid 7").unwrap();
        let Acquired::Busy { content } = take(&dir, Sharing::Exclusive) else { panic!("held") };
        assert_eq!(content, b"pid 7");
        assert_eq!(FileLock::probe_shared(&dir, "run.lock").unwrap(), Probe::Held { content });
    }

    #[test]
    fn release_leaves_the_file_and_its_inode() {
        let (tmp, dir) = root();
        let Acquired::Held(mut lock) = take(&dir, Sharing::Exclusive) else { panic!("free") };
        lock.write(b"old").unwrap();
        let inode = std::fs::metadata(tmp.path().join("run.lock")).unwrap().ino();
        drop(lock);
        assert_eq!(
            FileLock::probe_shared(&dir, "run.lock").unwrap(),
            Probe::Free { content: b"old".to_vec() }
        );
        let Acquired::Held(lock) = take(&dir, Sharing::Exclusive) else { panic!("free again") };
        assert!(lock.still_at(&dir, "run.lock").unwrap());
        assert_eq!(std::fs::metadata(tmp.path().join("run.lock")).unwrap().ino(), inode);
    }

    #[test]
    fn probing_makes_no_file_and_leaves_no_lock() {
        let (_tmp, dir) = root();
        assert_eq!(FileLock::probe_shared(&dir, "run.lock").unwrap(), Probe::Missing);
        assert!(dir.stat("run.lock").unwrap().is_none());
        drop(take(&dir, Sharing::Exclusive));
        assert!(matches!(FileLock::probe_shared(&dir, "run.lock").unwrap(), Probe::Free { .. }));
        assert!(matches!(take(&dir, Sharing::Exclusive), Acquired::Held(_)));
    }

    #[test]
    fn sharers_exclude_only_an_exclusive_taker() {
        let (_tmp, dir) = root();
        let one = take(&dir, Sharing::Shared);
        let two = take(&dir, Sharing::Shared);
        assert!(matches!((&one, &two), (Acquired::Held(_), Acquired::Held(_))));
        assert!(matches!(take(&dir, Sharing::Exclusive), Acquired::Busy { .. }));
        assert!(matches!(FileLock::probe_shared(&dir, "run.lock").unwrap(), Probe::Free { .. }));
    }

    #[test]
    fn a_taker_with_patience_gets_it_when_it_is_released() {
        let (tmp, dir) = root();
        let held = take(&dir, Sharing::Exclusive);
        let waiter = std::thread::spawn({
            let path = tmp.path().to_owned();
            move || {
                let dir = SafeDir::open_root(path).unwrap();
                FileLock::acquire(&dir, "run.lock", Sharing::Exclusive, Duration::from_mins(1)).unwrap()
            }
        });
        drop(held);
        assert!(matches!(waiter.join().unwrap(), Acquired::Held(_)));
    }

    #[test]
    fn a_lock_on_a_replaced_file_counts_for_nothing() {
        let (tmp, dir) = root();
        let Acquired::Held(lock) = take(&dir, Sharing::Exclusive) else { panic!("free") };
        std::fs::rename(tmp.path().join("run.lock"), tmp.path().join("elsewhere")).unwrap();
        assert!(!lock.still_at(&dir, "run.lock").unwrap());
        let Acquired::Held(new) = take(&dir, Sharing::Exclusive) else { panic!("another inode") };
        assert!(new.still_at(&dir, "run.lock").unwrap());
    }

    #[test]
    fn a_waiter_whose_file_was_replaced_locks_the_new_one() {
        let (tmp, dir) = root();
        let held = take(&dir, Sharing::Exclusive);
        let path = tmp.path().to_owned();
        let waiter = std::thread::spawn(move || {
            let dir = SafeDir::open_root(path).unwrap();
            FileLock::acquire(&dir, "run.lock", Sharing::Exclusive, Duration::from_mins(1)).unwrap()
        });
        dir.publish("run.lock", b"new").unwrap();
        drop(held);
        let Acquired::Held(lock) = waiter.join().unwrap() else { panic!("free") };
        assert!(lock.still_at(&dir, "run.lock").unwrap());
    }

    #[test]
    fn a_lock_that_is_handed_over_is_held_all_the_time() {
        let (_tmp, dir) = root();
        let Acquired::Held(lock) = take(&dir, Sharing::Exclusive) else { panic!("free") };
        let handle = lock.hand_over().unwrap();
        assert!(matches!(take(&dir, Sharing::Exclusive), Acquired::Busy { .. }));
        let lock = FileLock::adopt(&dir, "run.lock", handle).unwrap();
        assert!(matches!(take(&dir, Sharing::Exclusive), Acquired::Busy { .. }));
        drop(lock);
        assert!(matches!(take(&dir, Sharing::Exclusive), Acquired::Held(_)));
    }

    #[test]
    fn only_the_lock_itself_is_taken_over() {
        let (tmp, dir) = root();
        let held = take(&dir, Sharing::Exclusive);
        let other = File::options().read(true).write(true).open(tmp.path().join("run.lock")).unwrap();
        assert!(FileLock::adopt(&dir, "run.lock", other).is_err(), "somebody else holds it");
        drop(held);
        std::fs::write(tmp.path().join("other"), "").unwrap();
        let other = File::open(tmp.path().join("other")).unwrap();
        let error = FileLock::adopt(&dir, "run.lock", other).unwrap_err();
        assert!(matches!(error, FileError::Swapped { .. }), "{error}");
    }

    #[test]
    fn a_linked_lock_file_is_refused() {
        let (tmp, dir) = root();
        std::fs::write(tmp.path().join("victim"), "content").unwrap();
        std::os::unix::fs::symlink("victim", tmp.path().join("run.lock")).unwrap();
        let error = FileLock::acquire(&dir, "run.lock", Sharing::Exclusive, Duration::ZERO).unwrap_err();
        assert!(matches!(error, FileError::Symlink { .. }));
        std::fs::remove_file(tmp.path().join("run.lock")).unwrap();
        std::fs::hard_link(tmp.path().join("victim"), tmp.path().join("run.lock")).unwrap();
        let error = FileLock::acquire(&dir, "run.lock", Sharing::Exclusive, Duration::ZERO).unwrap_err();
        assert!(matches!(error, FileError::HardLinked { .. }));
        assert_eq!(std::fs::read(tmp.path().join("victim")).unwrap(), b"content");
    }

    #[test]
    fn the_handle_is_closed_on_exec() {
        let (_tmp, dir) = root();
        let Acquired::Held(lock) = take(&dir, Sharing::Exclusive) else { panic!("free") };
        let flags = rustix::io::fcntl_getfd(&lock.file).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }

    #[test]
    fn a_killed_holder_holds_nothing() {
        let test = "lock::tests::a_killed_holder_holds_nothing";
        if let Some(place) = testing::child_place(test) {
            let dir = SafeDir::open_root(&place).unwrap();
            let held = take(&dir, Sharing::Exclusive);
            assert!(matches!(held, Acquired::Held(_)));
            testing::say_ready_and_wait();
            return;
        }
        let (tmp, dir) = root();
        let mut child = testing::start_child(test, tmp.path());
        assert!(matches!(FileLock::probe_shared(&dir, "run.lock").unwrap(), Probe::Held { .. }));
        child.kill();
        assert!(matches!(take(&dir, Sharing::Exclusive), Acquired::Held(_)));
    }
}
