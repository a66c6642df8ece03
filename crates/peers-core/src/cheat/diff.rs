//! What a turn changed.

use std::ops::RangeInclusive;

use crate::classify_path::{PathKind, classify, rust_test_lines};

/// All files that differ between the trees before and after a turn. Renames are a deletion and an
/// addition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TurnDiff {
    /// The files.
    pub files: Vec<FileDiff>,
}

/// One file, or the test lines of a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    /// Its path, from the root of the repository, with `/`.
    pub path: String,
    /// What these lines are for.
    pub kind: PathKind,
    /// What happened to the file.
    pub status: FileStatus,
    /// Lines added.
    pub added: u64,
    /// Lines deleted.
    pub deleted: u64,
    /// It is no text; it counts as changed whatever the numbers say.
    pub binary: bool,
    /// The deleted lines, without line ends. Untrusted.
    pub hunks_removed: Vec<String>,
    /// The added lines, without line ends. Untrusted.
    pub hunks_added: Vec<String>,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileStatus {
    /// It is new.
    Added,
    /// Its content changed.
    Modified,
    /// It is gone.
    Deleted,
}

/// A line that was added or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedLine {
    /// Its number, from 1, in the new text when added, in the old one when deleted.
    pub number: usize,
    /// The line, without its end.
    pub text: String,
}

impl FileDiff {
    /// The diff of a text file, classified by its path.
    #[must_use]
    pub fn text(path: &str, status: FileStatus, removed: Vec<String>, added: Vec<String>) -> Self {
        Self {
            path: path.to_owned(),
            kind: classify(path),
            status,
            added: count(added.len()),
            deleted: count(removed.len()),
            binary: false,
            hunks_removed: removed,
            hunks_added: added,
        }
    }

    /// The diff of a file that is no text, or too large to be looked into.
    #[must_use]
    pub fn opaque(path: &str, status: FileStatus) -> Self {
        let lines = Self::text(path, status, Vec::new(), Vec::new());
        Self { binary: true, ..lines }
    }

    /// The diff of a text file whose test lines may stand among the others: of a Rust source file
    /// the lines of test modules become a second entry of kind [`PathKind::Test`].
    #[must_use]
    pub fn divided(path: &str, status: FileStatus, old: Change<'_>, new: Change<'_>) -> Vec<Self> {
        let is_rust = path.rsplit_once('.').is_some_and(|(_, e)| e.eq_ignore_ascii_case("rs"));
        if classify(path) != PathKind::Source || !is_rust {
            let all = |change: Change<'_>| change.lines.iter().map(|l| l.text.clone()).collect();
            return vec![Self::text(path, status, all(old), all(new))];
        }
        let (old_tests, old_rest) = old.divide();
        let (new_tests, new_rest) = new.divide();
        let has_tests = !(old_tests.is_empty() && new_tests.is_empty());
        let has_rest = !(old_rest.is_empty() && new_rest.is_empty());
        let mut found = Vec::new();
        if has_rest || !has_tests {
            found.push(Self::text(path, status, old_rest, new_rest));
        }
        if has_tests {
            let tests = Self::text(path, status, old_tests, new_tests);
            found.push(Self { kind: PathKind::Test, ..tests });
        }
        found
    }

    /// How much changed: lines, and at least 1 for what is no text.
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.added.saturating_add(self.deleted).max(u64::from(self.binary))
    }
}

/// One side of a change: the whole text, and those of its lines that are only there.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// The whole text.
    pub text: &'a str,
    /// The lines that the other side lacks.
    pub lines: &'a [ChangedLine],
}

impl Change<'_> {
    /// Lines within test modules, and the others.
    fn divide(&self) -> (Vec<String>, Vec<String>) {
        let ranges: Vec<RangeInclusive<usize>> = rust_test_lines(self.text);
        let in_tests = |n: usize| ranges.iter().any(|r| r.contains(&n));
        let (tests, rest): (Vec<&ChangedLine>, Vec<&ChangedLine>) =
            self.lines.iter().partition(|l| in_tests(l.number));
        let owned = |lines: Vec<&ChangedLine>| lines.into_iter().map(|l| l.text.clone()).collect();
        (owned(tests), owned(rest))
    }
}

impl TurnDiff {
    /// Whether the turn changed tests and nothing else (the control directory aside).
    #[must_use]
    pub fn is_test_only(&self) -> bool {
        self.weight(PathKind::Test) > 0
            && self.weight(PathKind::Source) == 0
            && self.weight(PathKind::Doc) == 0
    }

    /// How much changed in files of a kind.
    #[must_use]
    pub fn weight(&self, kind: PathKind) -> u64 {
        self.files.iter().filter(|f| f.kind == kind).fold(0, |sum, f| sum.saturating_add(f.weight()))
    }
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}
