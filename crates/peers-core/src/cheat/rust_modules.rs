//! Files of Rust that no `mod` line leads to any more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use super::diff::{FileStatus, TurnDiff};
use super::idioms::pattern;
use crate::classify_path::has_extension;

/// `mod` lines that a turn added or took away.
#[derive(Debug, Default)]
pub(super) struct Modules {
    /// How many more there are than before, by the place of the module's file without its end.
    declared: BTreeMap<String, (i64, String)>,
    /// Places of modules whose file is gone.
    gone: BTreeSet<String>,
}

static DECLARATION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*([;{])"));

impl Modules {
    /// Of all Rust files of a turn.
    pub(super) fn of(diff: &TurnDiff) -> Self {
        let mut found = Self::default();
        for file in diff.files.iter().filter(|f| has_extension(&f.path, &["rs"])) {
            if file.status == FileStatus::Deleted {
                found.gone.insert(module_place(&file.path));
            }
            // What is declared under a condition may not be compiled.
            let added = (!file.conditional).then_some(&file.hunks_added);
            for (lines, step) in [(Some(&file.hunks_removed), -1), (added, 1)] {
                for captures in lines.into_iter().flatten().filter_map(|l| DECLARATION.captures(l)) {
                    let (Some(name), Some(end)) = (captures.get(1), captures.get(2)) else { continue };
                    if step < 0 && end.as_str() == "{" {
                        continue;
                    }
                    let place = format!("{}/{}", base(&file.path), name.as_str());
                    found.declared.entry(place).or_insert_with(|| (0, file.path.clone())).0 += step;
                }
            }
        }
        found
    }

    /// Modules that are no longer declared though their file stays: the name, and where it was
    /// declared.
    pub(super) fn orphans(&self) -> Vec<(String, String)> {
        let lost = self.declared.iter().filter(|(place, (n, _))| *n < 0 && !self.gone.contains(*place));
        lost.map(|(place, (_, by))| (place.rsplit('/').next().unwrap_or(place).to_owned(), by.clone()))
            .collect()
    }

    /// Whether something leads to a new file: it is the root of a target, a `mod` line came with
    /// it, or it takes the place of a file that is gone.
    pub(super) fn is_reached(&self, path: &str) -> bool {
        let place = module_place(path);
        is_root(path) || self.gone.contains(&place) || self.declared.get(&place).is_some_and(|(n, _)| *n > 0)
    }
}

/// Whether cargo finds the file by itself.
fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').filter(|p| !matches!(*p, "" | ".")).collect();
    match parts.as_slice() {
        [.., "src", "lib.rs" | "main.rs"] | [.., "src", "bin", _] | [.., "src", "bin", _, "main.rs"] => true,
        [before @ .., "tests" | "benches" | "examples", _]
        | [before @ .., "tests" | "benches" | "examples", _, "main.rs"] => !before.contains(&"src"),
        _ => false,
    }
}

/// The directory in which the modules of a file lie.
fn base(path: &str) -> String {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    if is_root(path) || matches!(name, "mod.rs" | "lib.rs" | "main.rs") {
        dir.to_owned()
    } else {
        path.trim_end_matches(".rs").to_owned()
    }
}

/// A module by its place: the path of its file without its end.
fn module_place(path: &str) -> String {
    let place = path.strip_suffix("/mod.rs").or_else(|| path.strip_suffix(".rs")).unwrap_or(path);
    if place.contains('/') { place.to_owned() } else { format!("/{place}") }
}

#[cfg(test)]
mod tests {
    use super::super::diff::FileDiff;
    use super::*;

    fn file(path: &str, status: FileStatus, removed: &[&str], added: &[&str]) -> FileDiff {
        let own = |lines: &[&str]| lines.iter().map(|l| (*l).to_owned()).collect();
        FileDiff::text(path, status, own(removed), own(added))
    }

    fn orphans(files: Vec<FileDiff>) -> Vec<String> {
        Modules::of(&TurnDiff { files })
            .orphans()
            .into_iter()
            .map(|(name, by)| format!("{name} of {by}"))
            .collect()
    }

    #[test]
    fn a_module_whose_line_is_gone_and_whose_file_stays_is_an_orphan() {
        use FileStatus::{Added, Deleted, Modified};
        let lost = |path: &str| file(path, Modified, &["pub(crate) mod tests;"], &[]);
        assert_eq!(orphans(vec![lost("src/b.rs")]), ["tests of src/b.rs"]);
        assert_eq!(orphans(vec![lost("src/b/mod.rs"), file("src/c/tests.rs", Deleted, &[], &[])]).len(), 1);
        assert_eq!(
            orphans(vec![lost("src/b.rs"), file("src/c.rs", Modified, &[], &["mod tests;"])]).len(),
            1
        );
        assert_eq!(orphans(vec![lost("tests/it/main.rs")]), ["tests of tests/it/main.rs"]);
        assert_eq!(orphans(vec![file("src/b.rs", Modified, &["mod tests;"], &["// mod tests;"])]).len(), 1);
        for silent in [
            vec![lost("src/b.rs"), file("src/b/tests.rs", Deleted, &[], &[])],
            vec![lost("src/b.rs"), file("src/b/tests/mod.rs", Deleted, &[], &[])],
            vec![file("src/b.rs", Modified, &["mod tests;"], &["#[cfg(test)] mod tests;"])],
            vec![file("src/b.rs", Modified, &["mod tests;"], &["mod tests {"])],
            vec![file("src/b.rs", Modified, &["mod tests {"], &["mod tests;"])],
            vec![
                file("src/b.rs", Deleted, &["mod tests;"], &[]),
                file("src/b/mod.rs", Added, &[], &["mod tests;"]),
            ],
            vec![lost("src/lib.rs"), file("src/main.rs", Modified, &[], &["mod tests;"])],
        ] {
            assert_eq!(orphans(silent.clone()), [""; 0], "{silent:?}");
        }
    }

    #[test]
    fn a_new_file_is_reached_by_a_line_or_by_its_place() {
        use FileStatus::{Added, Deleted, Modified};
        let modules = Modules::of(&TurnDiff {
            files: vec![
                file("src/a.rs", Modified, &[], &["mod tests;"]),
                file("src/c/tests.rs", Deleted, &[], &[]),
                file("lib.rs", Modified, &[], &["mod x;"]),
                file("src/e.rs", Added, &[], &[]),
            ],
        });
        for path in [
            "tests/a.rs",
            "tests/a/main.rs",
            "src/bin/a.rs",
            "src/a/tests.rs",
            "src/a/tests/mod.rs",
            "src/c/tests/mod.rs",
            "x.rs",
        ] {
            assert!(modules.is_reached(path), "{path}");
        }
        for path in ["tests/a/b.rs", "src/b/tests.rs", "src/b/tests/x.rs", "src/e.rs"] {
            assert!(!modules.is_reached(path), "{path}");
        }
    }
}
