//! What lies in a work tree, whether git sees it or not: a green answer found there is about all of it.
//!
//! Content is not read. A file is what its name, identity, size and times say; the time of the last change of
//! an inode is set by the kernel alone.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use peers_core::scope::Scope;
use peers_sys::SafeDir;
use peers_sys::digest::Sha256;
use peers_sys::dir::Kind;

/// Names that are looked at; with more of them nobody can tell in good time.
const MOST: usize = 100_000;
/// Directories inside of each other.
const DEEPEST: usize = 100;

/// A digest of the names and stamps of all files below `dir` that the globs take, all of them without globs;
/// `None` where there are too many, or where one cannot be looked at. Left out are `.git` and `.peers` at the top.
pub(super) fn digest(dir: &Path, globs: &[String]) -> Option<String> {
    let scope = (!globs.is_empty()).then(|| Scope::new(globs));
    let mut hash = Sha256::new();
    walk(dir, &[".peers"], |path, stamps| {
        let shown: Vec<_> = path.iter().map(|name| name.to_string_lossy()).collect();
        if scope.as_ref().is_none_or(|scope| scope.holds(&shown.join("/"))) {
            for name in path {
                hash.update(name.as_encoded_bytes());
                hash.update(b"/");
            }
            // No name holds a NUL.
            hash.update(format!("\0{stamps}\0").as_bytes());
        }
    })?;
    Some(hash.finish_hex())
}

/// Stamps of files, by their paths.
pub(super) type Stamps = BTreeMap<Vec<OsString>, String>;

/// The stamps of all files below `dir`, without those below `.git` and these names at the top; `None` as for
/// [`digest`].
pub(super) fn stamps(dir: &Path, without: &[&str]) -> Option<Stamps> {
    let mut all = Stamps::new();
    walk(dir, without, |path, stamps| drop(all.insert(path.to_vec(), stamps)))?;
    Some(all)
}

fn walk(dir: &Path, without: &[&str], each: impl FnMut(&[OsString], String)) -> Option<()> {
    let top = SafeDir::open_shared(dir).ok()?;
    Walk { left: MOST, without, each }.walk(&top, &mut Vec::new())
}

struct Walk<'a, F> {
    left: usize,
    without: &'a [&'a str],
    each: F,
}

impl<F: FnMut(&[OsString], String)> Walk<'_, F> {
    fn walk(&mut self, dir: &SafeDir, above: &mut Vec<OsString>) -> Option<()> {
        if above.len() > DEEPEST {
            return None;
        }
        let listing = dir.list(self.left).ok()?;
        if listing.truncated {
            return None;
        }
        self.left = self.left.checked_sub(listing.entries.len())?;
        for entry in listing.entries {
            if above.is_empty()
                && (entry.name == ".git" || self.without.iter().any(|name| entry.name == *name))
            {
                continue;
            }
            // Gone by now: the next look finds something else.
            let stat = dir.stat(&entry.name).ok()??;
            above.push(entry.name.clone());
            if stat.kind == Kind::Dir {
                self.walk(&dir.subdir(&entry.name).ok()?, above)?;
            } else {
                let stamps = (stat.kind, stat.id, stat.mode, stat.size, stat.modified_ns, stat.changed_ns);
                (self.each)(above, format!("{stamps:?}"));
            }
            above.pop();
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn any_change_of_any_file_is_another_ground() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |path: &str| tmp.path().join(path);
        let digest = || digest(tmp.path(), &[]).unwrap();
        fs::create_dir_all(at("a/b")).unwrap();
        fs::write(at("a/b/f"), "x").unwrap();
        let first = digest();
        assert_eq!(digest(), first);
        let mut seen = vec![first];
        let mut changed = |what: &str| {
            let now = digest();
            assert!(!seen.contains(&now), "{what}");
            seen.push(now);
        };
        fs::rename(at("a/b/f"), at("a/b/g")).unwrap();
        changed("another name");
        fs::write(at("a/b/g"), "longer").unwrap();
        changed("content");
        std::os::unix::fs::symlink("g", at("a/b/l")).unwrap();
        changed("a link");
        fs::set_permissions(at("a/b/g"), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        changed("mode");
        fs::create_dir(at(".git")).unwrap();
        fs::write(at(".git/f"), "x").unwrap();
        fs::create_dir(at(".peers")).unwrap();
        assert_eq!(digest(), *seen.last().unwrap(), "what is looked at elsewhere");
    }

    #[test]
    fn what_is_too_deep_has_no_digest() {
        let tmp = tempfile::tempdir().unwrap();
        fs::create_dir_all(tmp.path().join("d/".repeat(DEEPEST + 2))).unwrap();
        assert_eq!(digest(tmp.path(), &[]), None);
    }
}
