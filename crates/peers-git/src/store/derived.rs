//! Files beside the objects that only make reading them faster: commit graphs, indexes over several packs,
//! bitmaps. Git makes them again; a bad one makes good objects unreadable.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::error::GitError;
use crate::files;
use crate::guard::GuardSnapshot;

/// Names in one directory of the object store.
const MAX_NAMES: usize = 100_000;
/// Bytes that tell what a file is.
const HEAD: u64 = 4;

/// Such files by their path below the objects, with what tells that they were not written since.
pub(crate) type Derived = BTreeMap<String, String>;

/// What there is.
pub(crate) fn derived(common_dir: &Path) -> Result<Derived, GitError> {
    let objects = common_dir.join("objects");
    let mut found = Derived::new();
    for (dir, all) in
        [("info", false), ("info/commit-graphs", true), ("pack", false), ("pack/multi-pack-index.d", true)]
    {
        let path = objects.join(dir);
        // Nothing, or not a directory: the latter is seen to elsewhere.
        let Ok(fd) = files::open_dir(&path) else { continue };
        let fail = |source: std::io::Error| GitError::io(&path, source);
        for (name, _) in files::list(&fd, MAX_NAMES).map_err(fail)?.unwrap_or_default() {
            let Some(text) = std::str::from_utf8(&name).ok().filter(|text| all || is_derived(text)) else {
                continue;
            };
            if let Some(stat) = files::lstat_at(&fd, &name).map_err(fail)? {
                let stamp = format!(
                    "{} {} {}.{}",
                    stat.st_ino,
                    files::size(&stat),
                    stat.st_ctime,
                    stat.st_ctime_nsec
                );
                found.insert(format!("{dir}/{text}"), stamp);
            }
        }
    }
    Ok(found)
}

fn is_derived(name: &str) -> bool {
    name == "commit-graph"
        || name.starts_with("multi-pack-index") && name != "multi-pack-index.d"
        || [".bitmap", ".rev"].iter().any(|end| name.ends_with(end))
}

/// Whether it begins as git begins such a file.
fn is_of_git(path: &Path) -> bool {
    let name = path.file_name().map(std::ffi::OsStr::as_bytes).unwrap_or_default();
    if name == b"commit-graph-chain" {
        return true;
    }
    let magic: &[u8] = if name.ends_with(b".bitmap") {
        b"BITM"
    } else if name.ends_with(b".rev") {
        b"RIDX"
    } else if name.starts_with(b"multi-pack-index") {
        b"MIDX"
    } else {
        b"CGPH"
    };
    let read = || -> std::io::Result<Vec<u8>> {
        let (file, _) = files::open_regular(rustix::fs::CWD, path.as_os_str().as_bytes())?;
        let mut bytes = Vec::new();
        file.take(HEAD).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().is_ok_and(|bytes| bytes == magic)
}

impl GuardSnapshot {
    /// Removes commit graphs, indexes over several packs and bitmaps that are not as they were: nothing is
    /// lost with them, git makes them again. Returns the names of those that git did not make.
    ///
    /// # Errors
    /// [`GitError::Io`].
    pub fn clear_derived(&self) -> Result<Vec<String>, GitError> {
        let mut odd = Vec::new();
        for (name, stamp) in derived(&self.common_dir)? {
            if self.derived.get(&name) == Some(&stamp) {
                continue;
            }
            let path = self.common_dir.join("objects").join(&name);
            if !is_of_git(&path) {
                odd.push(format!("objects/{name}"));
            }
            files::remove_tree(&path)?;
        }
        Ok(odd)
    }
}
