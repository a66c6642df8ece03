//! What lies in a work tree, whether git sees it or not: a green answer found there is about all of it.
//!
//! Content is not read. A file is what its name, identity, size and times say; the time of the last change of
//! an inode is set by the kernel alone. A file that a link leads to is a part of it wherever it lies.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use peers_core::scope::Scope;
use peers_sys::SafeDir;
use peers_sys::digest::Sha256;
use peers_sys::dir::{FileStat, Kind};

/// Names that are looked at; with more of them nobody can tell in good time.
const MOST: usize = 100_000;
/// Directories inside of each other.
const DEEPEST: usize = 100;
/// Directories at the top that are looked at elsewhere, or that belong to nobody's answer.
const LEFT_OUT: &[&str] = &[".git", ".peers"];

/// A digest of the names and stamps of all files below `dir` that the globs take, all of them without globs;
/// `None` where there are too many, or where one cannot be looked at. Left out are `.git` and `.peers` at the top.
///
/// A link to a file that is not looked at anyway stands for that file; with one to anything else there is none.
pub(super) fn digest(dir: &Path, globs: &[String]) -> Option<String> {
    let scope = (!globs.is_empty()).then(|| Scope::new(globs));
    let top = dir.canonicalize().ok()?;
    let mut hash = Sha256::new();
    let mut told = true;
    walk(dir, LEFT_OUT, |path, stat| {
        if stat.kind == Kind::Dir {
            return;
        }
        let shown: Vec<_> = path.iter().map(|name| name.to_string_lossy()).collect();
        if scope.as_ref().is_some_and(|scope| !scope.holds(&shown.join("/"))) {
            return;
        }
        for name in path {
            hash.update(name.as_encoded_bytes());
            hash.update(b"/");
        }
        // No name holds a NUL.
        hash.update(format!("\0{}\0", stamps_of(stat)).as_bytes());
        if stat.kind == Kind::Symlink {
            match leads_to(&top, path, scope.as_ref()) {
                Some(there) => hash.update(format!("{there}\0").as_bytes()),
                None => told = false,
            }
        }
    })?;
    told.then(|| hash.finish_hex())
}

/// What a link leads to; `None` where nobody can tell what a reader of it finds.
fn leads_to(top: &Path, link: &[OsString], scope: Option<&Scope>) -> Option<String> {
    let link: PathBuf = top.iter().chain(link.iter().map(OsString::as_os_str)).collect();
    let real = match link.canonicalize() {
        Ok(real) => real,
        // What comes there one day is seen then.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Some("nowhere".to_owned());
        }
        Err(_) => return None,
    };
    let below =
        real.strip_prefix(top).ok().filter(|below| !LEFT_OUT.iter().any(|name| below.starts_with(name)));
    // Two names that differ in what is no UTF-8 are told apart by the stamps.
    let at = real.to_string_lossy().into_owned();
    if below.is_some() && scope.is_none() {
        return Some(at);
    }
    let stat = SafeDir::open_shared(real.parent()?).ok()?.stat(real.file_name()?).ok()??;
    // Of a directory nobody looks at what lies in it.
    (stat.kind == Kind::File).then(|| format!("{at} {}", stamps_of(&stat)))
}

/// What only the kernel writes, and what else tells one state of a file from another.
fn stamps_of(stat: &FileStat) -> String {
    format!("{:?}", (stat.kind, stat.id, stat.mode, stat.size, stat.modified_ns, stat.changed_ns))
}

/// Stamps of files, by their paths.
pub(super) type Stamps = BTreeMap<Vec<OsString>, String>;

/// The stamps of all files below `dir`, without those below `.git` and these names at the top; `None` as for
/// [`digest`].
pub(super) fn stamps(dir: &Path, without: &[&str]) -> Option<Stamps> {
    let mut all = Stamps::new();
    walk(dir, without, |path, stat| {
        if stat.kind != Kind::Dir {
            all.insert(path.to_vec(), stamps_of(stat));
        }
    })?;
    Some(all)
}

/// The stamps of all that lies below `dir`, directories too; `None` as for [`digest`].
pub(super) fn all_stamps(dir: &Path) -> Option<Stamps> {
    let mut all = Stamps::new();
    walk(dir, &[], |path, stat| drop(all.insert(path.to_vec(), stamps_of(stat))))?;
    Some(all)
}

fn walk(dir: &Path, without: &[&str], each: impl FnMut(&[OsString], &FileStat)) -> Option<()> {
    let top = SafeDir::open_shared(dir).ok()?;
    Walk { left: MOST, without, each }.walk(&top, &mut Vec::new())
}

struct Walk<'a, F> {
    left: usize,
    without: &'a [&'a str],
    each: F,
}

impl<F: FnMut(&[OsString], &FileStat)> Walk<'_, F> {
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
            (self.each)(above, &stat);
            if stat.kind == Kind::Dir {
                self.walk(&dir.subdir(&entry.name).ok()?, above)?;
            }
            above.pop();
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

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
        symlink("g", at("a/b/l")).unwrap();
        changed("a link");
        fs::set_permissions(at("a/b/g"), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        changed("mode");
        fs::create_dir(at(".git")).unwrap();
        fs::write(at(".git/f"), "x").unwrap();
        fs::create_dir(at(".peers")).unwrap();
        assert_eq!(digest(), *seen.last().unwrap(), "what is looked at elsewhere");
    }

    #[test]
    fn a_file_that_a_link_leads_to_is_a_part_of_the_ground() {
        let (tmp, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = |path: &str| tmp.path().join(path);
        let digest = |globs: &[&str]| {
            let globs: Vec<String> = globs.iter().map(|glob| (*glob).to_owned()).collect();
            digest(tmp.path(), &globs)
        };
        let link = |to: &Path, name: &str| {
            drop(fs::remove_file(at(name)));
            symlink(to, at(name)).unwrap();
        };
        let there = out.path().join("there");
        link(&there, "l");
        let nowhere = digest(&[]).unwrap();
        assert_eq!(digest(&[]).unwrap(), nowhere);
        fs::write(&there, "x").unwrap();
        let first = digest(&[]).unwrap();
        assert_ne!(first, nowhere);
        assert_eq!(digest(&[]).unwrap(), first);
        fs::write(&there, "longer").unwrap();
        let second = digest(&[]).unwrap();
        assert_ne!(second, first);
        // Another one on the way.
        fs::write(out.path().join("other"), "longer").unwrap();
        symlink(&there, out.path().join("way")).unwrap();
        link(&out.path().join("way"), "l");
        let by_way = digest(&[]).unwrap();
        fs::remove_file(out.path().join("way")).unwrap();
        symlink(out.path().join("other"), out.path().join("way")).unwrap();
        assert_ne!(digest(&[]).unwrap(), by_way);
        // What lies in a directory elsewhere is not looked at.
        link(out.path(), "l");
        assert_eq!(digest(&[]), None);
        link(Path::new("/dev/null"), "l");
        assert_eq!(digest(&[]), None);
        assert!(digest(&["src"]).is_some(), "not below the globs");
        // Inside all of it is looked at, with globs what they take alone.
        fs::create_dir_all(at("src")).unwrap();
        fs::create_dir_all(at("d")).unwrap();
        fs::write(at("d/f"), "x").unwrap();
        link(Path::new("d"), "l");
        assert!(digest(&[]).is_some());
        link(Path::new("../d/f"), "src/l");
        let before = digest(&["src"]).unwrap();
        fs::write(at("d/f"), "longer").unwrap();
        assert_ne!(digest(&["src"]).unwrap(), before);
        link(Path::new("../d"), "src/l");
        assert_eq!(digest(&["src"]), None);
        fs::create_dir(at(".git")).unwrap();
        link(Path::new("../.git"), "src/l");
        assert_eq!(digest(&[]), None);
    }

    #[test]
    fn what_is_too_deep_has_no_digest() {
        let tmp = tempfile::tempdir().unwrap();
        fs::create_dir_all(tmp.path().join("d/".repeat(DEEPEST + 2))).unwrap();
        assert_eq!(digest(tmp.path(), &[]), None);
    }
}
