//! What a turn changed.

use std::collections::BTreeSet;

use super::runnable::Census;
use super::strip::Language;
use crate::classify_path::{PathKind, classify};

/// All files that differ between the trees before and after a turn. Renames are a deletion and an
/// addition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TurnDiff {
    /// The files.
    pub files: Vec<FileDiff>,
}

/// What lay in the work tree around a turn without being committed. Empty where nothing did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Uncommitted {
    /// From the work tree before the turn to the head after it; absent where that work tree was clean.
    pub since: Option<TurnDiff>,
    /// From the head after the turn to the work tree after it.
    pub left: TurnDiff,
    /// From the work tree before the turn to the one after it.
    pub made: TurnDiff,
    /// Paths that were weaker in the work tree before the turn than in its commit, and for which the turn
    /// that left them so answered. What else is committed of that kind was left by nobody that is known.
    pub charged: BTreeSet<String>,
}

impl TurnDiff {
    /// The same, where these files could not be read: `before` it, of which nothing can be said, or `after`
    /// it, of which each counts as changed to something that is no text, `existed` saying whether it was
    /// there before.
    #[must_use]
    pub fn unread(
        mut self,
        before: &BTreeSet<String>,
        after: &BTreeSet<String>,
        existed: &dyn Fn(&str) -> bool,
    ) -> Self {
        self.files.retain(|file| !before.contains(&file.path) && !after.contains(&file.path));
        for path in after.difference(before) {
            let status = if existed(path) { FileStatus::Modified } else { FileStatus::Added };
            self.files.push(FileDiff::opaque(path, status));
        }
        self
    }
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
    /// These are tests that are compiled under a condition only.
    pub conditional: bool,
    /// The deleted lines, without line ends; of tests those that are no longer run. Untrusted.
    pub hunks_removed: Vec<String>,
    /// The added lines, without line ends; of tests those that are now run. Untrusted.
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
            conditional: false,
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

    /// Whether the whole text of both sides is needed to tell what a change of such a file does to
    /// tests: [`FileDiff::divided`] is to be used then, [`FileDiff::text`] for all others.
    #[must_use]
    pub fn wants_text(path: &str) -> bool {
        Self::wants_text_as(classify(path), path)
    }

    /// The same of a file of that kind, whatever its path says.
    #[must_use]
    pub fn wants_text_as(kind: PathKind, path: &str) -> bool {
        match Language::of(path) {
            Some(Language::Rust) => matches!(kind, PathKind::Test | PathKind::Source),
            Some(_) => kind == PathKind::Test,
            None => false,
        }
    }

    /// The diff of a text file of which both texts are known. Lines of tests are compared as they
    /// are run: what moves into a comment, behind a `return` or under `if false` is lost, what only
    /// moves about is not. Of a Rust source file the lines of tests become an entry of their own of
    /// kind [`PathKind::Test`], of tests under a condition a further one.
    #[must_use]
    pub fn divided(path: &str, status: FileStatus, old: Change<'_>, new: Change<'_>) -> Vec<Self> {
        Self::divided_as(classify(path), path, status, old, new)
    }

    /// The same of a file of that kind, whatever its path says.
    #[must_use]
    pub fn divided_as(
        kind: PathKind,
        path: &str,
        status: FileStatus,
        old: Change<'_>,
        new: Change<'_>,
    ) -> Vec<Self> {
        let all = |change: Change<'_>| change.lines.iter().map(|l| l.text.clone()).collect();
        let Some(language) = Language::of(path).filter(|_| Self::wants_text_as(kind, path)) else {
            return vec![Self { kind, ..Self::text(path, status, all(old), all(new)) }];
        };
        if [old, new].into_iter().any(|side| side.text.is_empty() && !side.lines.is_empty()) {
            // A text that could not be read may hold any tests.
            let lines = Self { kind, ..Self::text(path, status, all(old), all(new)) };
            let unread = Self { kind: PathKind::Test, ..Self::opaque(path, status) };
            return if kind == PathKind::Test { vec![unread] } else { vec![lines, unread] };
        }
        let (before, after) = (Census::of(language, kind, old.text), Census::of(language, kind, new.text));
        let mut found = Vec::new();
        let (removed, added) = (before.rest(old.lines), after.rest(new.lines));
        if !(removed.is_empty() && added.is_empty()) {
            found.push(Self { kind, ..Self::text(path, status, removed, added) });
        }
        for conditional in [false, true] {
            let (removed, added) = before.difference(&after, conditional);
            let (deleted, new_lines) =
                (before.changed(old.lines, conditional), after.changed(new.lines, conditional));
            if removed.is_empty() && added.is_empty() && deleted == 0 && new_lines == 0 {
                continue;
            }
            let lines = Self::text(path, status, removed, added);
            found.push(Self { kind: PathKind::Test, conditional, deleted, added: new_lines, ..lines });
        }
        if found.is_empty() {
            found.push(Self { kind, ..Self::text(path, status, Vec::new(), Vec::new()) });
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
