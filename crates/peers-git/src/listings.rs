//! Listings of directories that were not changed since they were read.
//!
//! The object store of a repository has 256 directories that nearly never change, and is looked through
//! several times in a turn. A directory whose stamp is that of an earlier look has the same names in it, and
//! of the same types: adding, removing and replacing an entry all change the directory. What is in a file
//! that keeps its name is not told by this.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::rc::Rc;

use peers_sys::clock;
use rustix::fs::FileType;

use crate::files::{self, Listing, device_and_inode as key};
use crate::snapshot::Stamp;

/// Directories that are remembered, and entries of one.
const MOST: usize = 4096;
const ENTRIES: usize = 4096;

/// A listing under the stamp that its directory had before it was read.
type Seen = (Stamp, Rc<Listing>);

thread_local! {
    /// By device and inode: a path may come to lead elsewhere.
    static SEEN: RefCell<HashMap<(u64, u64), Seen>> = RefCell::default();
}

/// The names and types in the directory `name` below `dir`; `None` when there are more than `cap`.
///
/// # Errors
/// What the system says; something else than a directory is an error too.
pub(crate) fn list<Fd: AsFd>(dir: Fd, name: &[u8], cap: usize) -> io::Result<Option<Rc<Listing>>> {
    let known = files::lstat_at(&dir, name)?.filter(|stat| files::kind(stat) == FileType::Directory);
    if let Some(stat) = &known
        && let Some(seen) = remembered(key(stat), Stamp::of(stat))
    {
        return Ok((seen.len() <= cap).then_some(seen));
    }
    let opened = files::open_dir_at(&dir, name)?;
    let now = clock::system_now();
    let stat = rustix::fs::fstat(&opened)?;
    let Some(listing) = files::list(&opened, cap)? else { return Ok(None) };
    let listing = Rc::new(listing);
    let stamp = Stamp::of(&stat);
    if listing.len() <= ENTRIES && !stamp.is_racy(now) {
        SEEN.with_borrow_mut(|seen| {
            if seen.len() >= MOST {
                seen.clear();
            }
            seen.insert(key(&stat), (stamp, Rc::clone(&listing)));
        });
    }
    Ok(Some(listing))
}

fn remembered(key: (u64, u64), stamp: Stamp) -> Option<Rc<Listing>> {
    SEEN.with_borrow(|seen| {
        seen.get(&key).filter(|(then, _)| *then == stamp).map(|(_, listing)| Rc::clone(listing))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn names(dir: &std::path::Path) -> Vec<(Vec<u8>, FileType)> {
        let top = files::open_dir(dir).unwrap();
        let mut all = list(&top, b"d", 100).unwrap().unwrap().as_ref().clone();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    #[test]
    fn every_change_of_names_and_types_is_seen_also_at_once() {
        let tmp = tempfile::tempdir().unwrap();
        let file = |name: &str| tmp.path().join("d").join(name);
        fs::create_dir(tmp.path().join("d")).unwrap();
        fs::write(file("a"), "1").unwrap();
        assert_eq!(names(tmp.path()), [(b"a".to_vec(), FileType::RegularFile)]);
        fs::write(file("b"), "2").unwrap();
        assert_eq!(names(tmp.path()).len(), 2);
        fs::remove_file(file("a")).unwrap();
        std::os::unix::fs::symlink("b", file("a")).unwrap();
        assert_eq!(names(tmp.path())[0], (b"a".to_vec(), FileType::Symlink));
        fs::rename(file("a"), file("b")).unwrap();
        assert_eq!(names(tmp.path()), [(b"b".to_vec(), FileType::Symlink)]);
        fs::remove_dir_all(tmp.path().join("d")).unwrap();
        fs::write(tmp.path().join("d"), "no directory").unwrap();
        assert!(list(files::open_dir(tmp.path()).unwrap(), b"d", 100).is_err());
    }

    #[test]
    fn a_directory_that_has_rested_is_remembered_until_it_changes() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path().join("d");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("a"), "1").unwrap();
        let top = files::open_dir(tmp.path()).unwrap();
        let stat = files::lstat(&dir).unwrap().unwrap();
        // As after a rest: the listing that is remembered is another one, to tell it from the real.
        let planted = Rc::new(vec![(b"remembered".to_vec(), FileType::RegularFile)]);
        SEEN.with_borrow_mut(|seen| seen.insert(key(&stat), (Stamp::of(&stat), Rc::clone(&planted))));
        assert!(Rc::ptr_eq(&list(&top, b"d", 100).unwrap().unwrap(), &planted));
        assert!(list(&top, b"d", 0).unwrap().is_none(), "the cap holds");
        fs::write(dir.join("b"), "2").unwrap();
        assert_eq!(names(tmp.path()).len(), 2);
    }
}
