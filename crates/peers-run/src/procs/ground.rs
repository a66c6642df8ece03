//! What lies in a work tree, whether git sees it or not: a green answer found there is about all of it.
//!
//! Content is not read. A file is what its name, identity, size and times say; the time of the last change of
//! an inode is set by the kernel alone.

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
    let mut walk = Walk { hash: Sha256::new(), left: MOST, scope };
    let top = SafeDir::open_shared(dir).ok()?;
    walk.walk(&top, &mut Vec::new())?;
    Some(walk.hash.finish_hex())
}

struct Walk {
    hash: Sha256,
    left: usize,
    scope: Option<Scope>,
}

impl Walk {
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
            if above.is_empty() && (entry.name == ".git" || entry.name == ".peers") {
                continue;
            }
            // Gone by now: the next look finds something else.
            let stat = dir.stat(&entry.name).ok()??;
            above.push(entry.name.clone());
            if stat.kind == Kind::Dir {
                self.walk(&dir.subdir(&entry.name).ok()?, above)?;
            } else {
                let path: Vec<_> = above.iter().map(|name| name.to_string_lossy()).collect();
                if self.scope.as_ref().is_none_or(|scope| scope.holds(&path.join("/"))) {
                    for name in above.iter() {
                        self.hash.update(name.as_encoded_bytes());
                        self.hash.update(b"/");
                    }
                    let stamps =
                        (stat.kind, stat.id, stat.mode, stat.size, stat.modified_ns, stat.changed_ns);
                    // No name holds a NUL.
                    self.hash.update(format!("\0{stamps:?}\0").as_bytes());
                }
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
