//! Whether a turn weakened tests or gates, measured from its changed lines.

use std::collections::BTreeSet;
use std::fmt;

use super::config::{self, Lowered};
use super::diff::{FileDiff, FileStatus, TurnDiff, Uncommitted};
use super::groups::{Group, groups};
use super::hiding;
use super::idioms::{Strength, assertion, hook, skip, table_row, test_start};
use super::runnable::is_build_constraint;
use super::rust_modules::Modules;
use crate::classify_path::{PathKind, TestPaths, has_extension, is_code};

/// One way in which a turn weakened tests or gates. Paths are untrusted text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Weakening {
    /// Fewer tests than before.
    Tests {
        /// The file.
        path: String,
        /// How many are missing.
        lost: u64,
    },
    /// Fewer assertions than before.
    Assertions {
        /// The file.
        path: String,
        /// How many are missing.
        lost: u64,
    },
    /// Assertions of equality became looser ones.
    Looser {
        /// The file.
        path: String,
        /// How many.
        lost: u64,
    },
    /// Fewer expected values or cases in tables.
    Expectations {
        /// The file.
        path: String,
        /// How many lines are missing.
        lost: u64,
    },
    /// Tests are skipped, ignored or expected to fail.
    Skips {
        /// The file.
        path: String,
        /// How many more than before.
        added: u64,
    },
    /// A stored expected output was written anew or removed.
    Snapshot {
        /// The file.
        path: String,
    },
    /// A number that a gate demands is lower, or gone.
    Threshold {
        /// The file.
        path: String,
        /// The key.
        key: String,
        /// The value before.
        from: String,
        /// The value after, if there is one.
        to: Option<String>,
    },
    /// A test file can no longer be read: it is no text any more, or too large.
    Unreadable {
        /// The file.
        path: String,
    },
    /// A module whose file is still there is no longer compiled.
    Orphan {
        /// The file that declared it.
        path: String,
        /// Its name.
        module: String,
    },
    /// Test code takes a hand in what is collected, what counts, or when the run ends.
    Hook {
        /// The file.
        path: String,
    },
    /// Tests are hidden from git.
    Hidden {
        /// The file that hides them.
        path: String,
    },
    /// The configuration of a gate changed.
    GateConfig {
        /// The file.
        path: String,
    },
}

impl Weakening {
    /// The file that it was found in. Untrusted text.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::Tests { path, .. }
            | Self::Assertions { path, .. }
            | Self::Looser { path, .. }
            | Self::Expectations { path, .. }
            | Self::Skips { path, .. }
            | Self::Snapshot { path }
            | Self::Threshold { path, .. }
            | Self::Unreadable { path }
            | Self::Orphan { path, .. }
            | Self::Hook { path }
            | Self::Hidden { path }
            | Self::GateConfig { path } => path,
        }
    }
}

impl fmt::Display for Weakening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tests { path, lost } => write!(f, "{lost} fewer tests in {}", shown(path)),
            Self::Assertions { path, lost } => write!(f, "{lost} fewer assertions in {}", shown(path)),
            Self::Looser { path, lost } => write!(f, "{lost} looser assertions in {}", shown(path)),
            Self::Expectations { path, lost } => write!(f, "{lost} fewer expected values in {}", shown(path)),
            Self::Skips { path, added } => write!(f, "{added} more skip marks in {}", shown(path)),
            Self::Snapshot { path } => write!(f, "snapshot {} written anew", shown(path)),
            Self::Threshold { path, key, from, to: Some(to) } => {
                write!(f, "`{key}` from {from} to {to} in {}", shown(path))
            }
            Self::Threshold { path, key, from, to: None } => {
                write!(f, "`{key}` {from} removed from {}", shown(path))
            }
            Self::Unreadable { path } => write!(f, "{} cannot be read any more", shown(path)),
            Self::Orphan { path, module } => {
                write!(f, "module `{}` of {} is no longer compiled", shown(module), shown(path))
            }
            Self::Hook { path } => write!(f, "the run of the tests is interfered with in {}", shown(path)),
            Self::Hidden { path } => write!(f, "tests are hidden by {}", shown(path)),
            Self::GateConfig { path } => write!(f, "gate configuration {} edited", shown(path)),
        }
    }
}

fn shown(path: &str) -> String {
    path.chars().map(|c| if c.is_control() { '?' } else { c }).take(160).collect()
}

/// All weakenings of a turn.
#[must_use]
pub fn weakenings(diff: &TurnDiff) -> Vec<Weakening> {
    let mut found = Vec::new();
    let modules = Modules::of(diff);
    let tests: Vec<&FileDiff> = diff.files.iter().filter(|f| f.kind == PathKind::Test).collect();
    let (snapshots, tests): (Vec<&FileDiff>, Vec<&FileDiff>) =
        tests.into_iter().partition(|f| is_snapshot(&f.path));
    let code: Vec<&FileDiff> = tests.into_iter().filter(|f| is_code(&f.path)).collect();
    for group in groups(&code, &modules) {
        measure(&group, &mut found);
    }
    for (module, path) in modules.orphans() {
        found.push(Weakening::Orphan { path, module });
    }
    for file in diff.files.iter().filter(|f| f.binary && hides_something(f)) {
        found.push(Weakening::Unreadable { path: file.path.clone() });
    }
    // One that only went elsewhere is as it was.
    let new_snapshots: BTreeSet<&Vec<String>> = snapshots
        .iter()
        .filter(|f| f.status == FileStatus::Added && !f.hunks_added.is_empty())
        .map(|f| &f.hunks_added)
        .collect();
    for file in &snapshots {
        let rewritten = match file.status {
            FileStatus::Added => false,
            FileStatus::Modified => file.deleted > 0 || file.binary,
            FileStatus::Deleted => file.binary || !new_snapshots.contains(&file.hunks_removed),
        };
        if rewritten {
            found.push(Weakening::Snapshot { path: file.path.clone() });
        }
    }
    let around = config::Around::of(diff);
    for file in diff.files.iter().filter(|f| f.kind != PathKind::Control && !f.binary) {
        if hiding::hides_tests(file) {
            found.push(Weakening::Hidden { path: file.path.clone() });
        }
        let path = || file.path.clone();
        let numbers = config::lowered(file);
        found.extend(numbers.into_iter().map(|Lowered { key, from, to }| Weakening::Threshold {
            path: path(),
            key,
            from,
            to,
        }));
        if config::is_weaker(file, &around) {
            found.push(Weakening::GateConfig { path: path() });
        }
    }
    found
}

/// Whether the change of a file of this path can be a weakening: such files are to be compared
/// before others when not all can be.
#[must_use]
pub fn is_measured(path: &str) -> bool {
    FileDiff::wants_text(path)
        || config::is_known(path)
        || hiding::is_known(path)
        || crate::classify_path::classify(path) == PathKind::Test
}

impl TestPaths {
    /// Like [`is_measured`], with these tests among the tests.
    #[must_use]
    pub fn is_measured(&self, path: &str) -> bool {
        self.classify(path) == PathKind::Test || is_measured(path)
    }
}

/// The weakenings of a turn that began in a work tree in which something lay already: those of
/// `diff`, from head to head, in files that are also weaker in `since`, from that work tree to the
/// head. What somebody else had left there is not charged.
#[must_use]
pub fn weakenings_since(diff: &TurnDiff, since: &TurnDiff) -> Vec<Weakening> {
    let own = weakenings(since);
    let mut found = weakenings(diff);
    found.retain(|w| own.iter().any(|o| o.path() == w.path()));
    found
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

/// The weakenings that are in the commits of a turn or that it left in the work tree, `left_counts` saying
/// whether the latter are looked at.
#[must_use]
pub fn weakenings_of_turn(diff: &TurnDiff, around: &Uncommitted, left_counts: bool) -> OfTurn {
    let mut of = match &around.since {
        None => OfTurn { own: weakenings(diff), ..OfTurn::default() },
        Some(since) => {
            let own = weakenings_since(diff, since);
            let others = weakenings(diff).into_iter().filter(|w| !own.contains(w));
            let (taken_over, found_there) = others.partition(|w| around.charged.contains(w.path()));
            OfTurn { own, taken_over, found_there }
        }
    };
    if left_counts {
        let left = weakenings_since(&around.left, &around.made);
        of.own.extend(left.into_iter().filter(|w| !weakenings(diff).contains(w)));
    }
    of
}

/// Whether the tests, the gates or what hides them could be told from a file that cannot be read.
fn hides_something(file: &FileDiff) -> bool {
    let decides = config::is_known(&file.path) || hiding::is_known(&file.path);
    if file.status == FileStatus::Added {
        // A new file takes nothing away, unless it has a say in the run.
        return decides || file.path.rsplit('/').next() == Some("conftest.py");
    }
    let tests = file.kind == PathKind::Test && is_code(&file.path) && !is_snapshot(&file.path);
    let may_hold_tests = file.kind == PathKind::Source && has_extension(&file.path, &["rs"]);
    decides || tests || may_hold_tests
}

fn measure(group: &Group<'_>, found: &mut Vec<Weakening>) {
    let path = || group.name.clone();
    let before = found.len();
    if let Some(lost) = group.lost(test_start) {
        found.push(Weakening::Tests { path: path(), lost });
    }
    if let Some(lost) = group.lost(|l| assertion(l).is_some()) {
        found.push(Weakening::Assertions { path: path(), lost });
    } else if let Some(lost) = group.lost(|l| assertion(l) == Some(Strength::Exact)) {
        found.push(Weakening::Looser { path: path(), lost });
    }
    if found.len() == before
        && let Some(lost) = group.lost(table_row)
    {
        found.push(Weakening::Expectations { path: path(), lost });
    }
    if let Some(added) = skips(group) {
        found.push(Weakening::Skips { path: path(), added });
    }
    let enters = |l: &str| has_extension(&group.name, &["rs"]) && l.trim_start().starts_with("fn main(");
    if group.is_one_file() && group.gained(enters).is_some() {
        found.push(Weakening::Hook { path: path() });
    } else if group.gained(hook).is_some() {
        found.push(Weakening::Hook { path: group.where_added(hook).to_owned() });
    }
}

/// How many more marks there are that keep tests from running.
fn skips(group: &Group<'_>) -> Option<u64> {
    if group.is_one_file() {
        return group.gained(|l| skip(l) || is_build_constraint(l));
    }
    let added = group.gained(skip)?;
    if group.took_place_of_others() {
        return Some(added);
    }
    // Marks in a new file matter as far as tests of other files came there.
    let came = group.came(test_start);
    (came > 0).then_some(added.min(came))
}

fn is_snapshot(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let in_dir = path.split('/').any(|p| matches!(p, "__snapshots__" | "golden" | "goldens"));
    in_dir || name.contains(".approved.") || has_extension(name, &["snap", "ambr", "golden"])
}
