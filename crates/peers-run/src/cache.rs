//! The directory for checkouts and scratch, above every clean checkout.
//!
//! Programs look for modules and configuration in the directories above the one they run in, so what
//! lies there takes part in a proof: nothing but ours may.

use peers_sys::FileError;
use peers_sys::dir::{Kind, SafeDir};

/// Where the clean checkouts of a loop go.
pub(crate) const PRISTINE: &str = "pristine";
/// Where a loop keeps its copy of the commit, for gates that want one.
pub(crate) const GATE_TREE: &str = "gate-tree";
/// Where the children of a loop have their temporary files.
pub(crate) const SCRATCH: &str = "scratch";
/// The beginning of the name of what a command outside of a loop works in.
pub(crate) const ONESHOT: &str = "oneshot-";
/// The beginning of the name of where such a command makes clean checkouts.
pub(crate) const PROOF: &str = "proof-";
/// Names that are looked at.
const LISTED: usize = 10_000;

/// Removes everything that is not ours.
pub(crate) fn clear_foreign(cache: &SafeDir) -> Result<(), FileError> {
    for entry in cache.list(LISTED)?.entries {
        let name = entry.name.to_string_lossy();
        let known = [PRISTINE, GATE_TREE, SCRATCH].contains(&name.as_ref())
            || [ONESHOT, PROOF].iter().any(|prefix| {
                name.strip_prefix(prefix)
                    .is_some_and(|rest| rest.len() == 16 && rest.bytes().all(|b| b.is_ascii_hexdigit()))
            });
        if !known || cache.stat(&entry.name)?.is_some_and(|stat| stat.kind != Kind::Dir) {
            cache.remove_tree(&entry.name)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

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
