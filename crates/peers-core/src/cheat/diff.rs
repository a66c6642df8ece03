//! What a turn changed, and what of it is weaker: numbers that were measured elsewhere.

use std::collections::BTreeSet;

use peers_model::weakening::Weakening;

use crate::classify_path::{PathKind, classify};

/// All files that differ between two trees. Renames are a deletion and an addition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TurnDiff {
    /// The files.
    pub files: Vec<FileDiff>,
    /// What was measured to be weaker.
    pub weaker: Vec<Weakening>,
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

/// One file, or the lines of tests in a file that is tests in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    /// Its path, from the root of the repository, with `/`.
    pub path: String,
    /// What these lines are for.
    pub kind: PathKind,
    /// Lines added.
    pub added: u64,
    /// Lines deleted.
    pub deleted: u64,
    /// It is no text; it counts as changed whatever the numbers say.
    pub binary: bool,
}

impl FileDiff {
    /// The diff of a text file, classified by its path.
    #[must_use]
    pub fn text(path: &str, added: u64, deleted: u64) -> Self {
        Self { path: path.to_owned(), kind: classify(path), added, deleted, binary: false }
    }

    /// How much changed: lines, and at least 1 for what is no text.
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.added.saturating_add(self.deleted).max(u64::from(self.binary))
    }
}

impl TurnDiff {
    /// The lines of a file of the product, as (added, deleted), of which some are tests.
    pub fn divide(&mut self, path: &str, tests: (u64, u64), rest: (u64, u64)) {
        let Some(file) = self.files.iter_mut().find(|f| f.path == path && f.kind == PathKind::Source) else {
            return;
        };
        (file.added, file.deleted) = rest;
        let (added, deleted) = tests;
        let tests = FileDiff { kind: PathKind::Test, added, deleted, ..file.clone() };
        self.files.push(tests);
    }

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

    /// What is weaker, of a turn that began in a work tree in which something lay already: from head to head, in
    /// files that are also weaker in `since`, from that work tree to the head. What somebody else had left there
    /// is not charged.
    #[must_use]
    pub fn weaker_since(&self, since: &Self) -> Vec<Weakening> {
        let also = |w: &&Weakening| since.weaker.iter().any(|own| own.path == w.path);
        self.weaker.iter().filter(also).cloned().collect()
    }
}

/// What was weakened in a turn, by whom.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OfTurn {
    /// By the turn, in what it committed or left uncommitted.
    pub own: Vec<Weakening>,
    /// By a turn before it that left it uncommitted and answered for it: this one only committed it.
    pub taken_over: Vec<Weakening>,
    /// By nobody that is known, and left uncommitted: the turn only committed it.
    pub found_there: Vec<Weakening>,
}

impl OfTurn {
    /// What is in the commits of a turn, and in what it left in the work tree where `left_counts`.
    #[must_use]
    pub fn new(diff: &TurnDiff, around: &Uncommitted, left_counts: bool) -> Self {
        let mut of = match &around.since {
            None => Self { own: diff.weaker.clone(), ..Self::default() },
            Some(since) => {
                let own = diff.weaker_since(since);
                let others = diff.weaker.iter().filter(|w| !own.contains(w)).cloned();
                let (taken_over, found_there) = others.partition(|w| around.charged.contains(&w.path));
                Self { own, taken_over, found_there }
            }
        };
        if left_counts {
            let left = around.left.weaker_since(&around.made);
            of.own.extend(left.into_iter().filter(|w| !diff.weaker.contains(w)));
        }
        of
    }
}
