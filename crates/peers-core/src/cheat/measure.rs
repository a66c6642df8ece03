//! Whether a turn weakened tests or gates, measured from its changed lines.

use std::collections::BTreeMap;
use std::fmt;

use super::config::{ConfigKind, Lowered, config_kind, loosened, lowered, only_numbers};
use super::diff::{FileDiff, FileStatus, TurnDiff};
use super::idioms::{Strength, assertion, skip, table_row, test_start};
use crate::classify_path::PathKind;

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
    /// The configuration of a gate changed.
    GateConfig {
        /// The file.
        path: String,
    },
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
    let tests: Vec<&FileDiff> = diff.files.iter().filter(|f| f.kind == PathKind::Test).collect();
    let (snapshots, tests): (Vec<&FileDiff>, Vec<&FileDiff>) =
        tests.into_iter().partition(|f| is_snapshot(&f.path));
    for group in groups(&tests.into_iter().filter(|f| is_code(&f.path)).collect::<Vec<_>>()) {
        group.measure(&mut found);
    }
    for file in tests_of(diff).filter(|f| f.binary && f.status != FileStatus::Added) {
        found.push(Weakening::Unreadable { path: file.path.clone() });
    }
    for file in snapshots {
        let rewritten = match file.status {
            FileStatus::Added => false,
            FileStatus::Modified => file.deleted > 0 || file.binary,
            FileStatus::Deleted => true,
        };
        if rewritten {
            found.push(Weakening::Snapshot { path: file.path.clone() });
        }
    }
    for file in diff.files.iter().filter(|f| f.kind != PathKind::Control) {
        config(file, &mut found);
    }
    found
}

fn config(file: &FileDiff, found: &mut Vec<Weakening>) {
    let Some(kind) = config_kind(&file.path) else { return };
    let path = || file.path.clone();
    let numbers = lowered(file);
    found.extend(numbers.into_iter().map(|Lowered { key, from, to }| Weakening::Threshold {
        path: path(),
        key,
        from,
        to,
    }));
    let edited = match (kind, file.status) {
        (ConfigKind::Gate, FileStatus::Modified | FileStatus::Deleted) => {
            file.weight() > 0 && !only_numbers(file)
        }
        (ConfigKind::Gate, FileStatus::Added) | (ConfigKind::Mixed, _) => loosened(file),
    };
    if edited {
        found.push(Weakening::GateConfig { path: path() });
    }
}

/// Test files that are measured together: a changed file for itself, and all new and deleted ones,
/// since a moved file is one of each.
struct Group<'a> {
    name: String,
    files: Vec<&'a FileDiff>,
    /// Lines of tests that vanish here and appear elsewhere in the turn (positive), or the other
    /// way round (negative): to be left out of account.
    moved: BTreeMap<String, i64>,
}

fn groups<'a>(files: &[&'a FileDiff]) -> Vec<Group<'a>> {
    let (changed, others): (Vec<&FileDiff>, Vec<&FileDiff>) =
        files.iter().partition(|f| f.status == FileStatus::Modified);
    let mut groups: Vec<Vec<&FileDiff>> = changed.into_iter().map(|f| vec![f]).collect();
    if !others.is_empty() {
        groups.push(others);
    }
    let balances: Vec<BTreeMap<String, i64>> = groups.iter().map(|g| balance(g)).collect();
    let total = |sign: i64| {
        let mut total: BTreeMap<&str, i64> = BTreeMap::new();
        for (line, n) in balances.iter().flatten().filter(|(_, n)| n.signum() == sign) {
            *total.entry(line).or_default() += n.abs();
        }
        total
    };
    let (lost, gained) = (total(-1), total(1));
    let moved = |line: &str| lost.get(line).copied().unwrap_or(0).min(gained.get(line).copied().unwrap_or(0));
    let mut left: BTreeMap<(&str, i64), i64> =
        lost.keys().flat_map(|l| [((*l, -1), moved(l)), ((*l, 1), moved(l))]).collect();
    let mut found = Vec::new();
    for (files, balance) in groups.into_iter().zip(&balances) {
        let mut moved = BTreeMap::new();
        for (line, n) in balance {
            let Some(left) = left.get_mut(&(line.as_str(), n.signum())) else { continue };
            let taken = n.abs().min(*left);
            *left -= taken;
            moved.insert(line.clone(), -n.signum() * taken);
        }
        let first = files.iter().find(|f| f.status == FileStatus::Deleted).or(files.first());
        let name = first.map(|f| f.path.clone()).unwrap_or_default();
        found.push(Group { name, files, moved });
    }
    found
}

/// Of each line that matters, how many more there are than before.
fn balance(files: &[&FileDiff]) -> BTreeMap<String, i64> {
    let mut balance: BTreeMap<String, i64> = BTreeMap::new();
    let matters = |line: &str| test_start(line) || assertion(line).is_some() || table_row(line);
    for (lines, step) in files.iter().flat_map(|f| [(&f.hunks_removed, -1), (&f.hunks_added, 1)]) {
        for line in lines.iter().filter(|l| matters(l)) {
            *balance.entry(normal(line)).or_default() += step;
        }
    }
    balance
}

fn normal(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Group<'_> {
    fn measure(&self, found: &mut Vec<Weakening>) {
        let path = || self.name.clone();
        let before = found.len();
        if let Some(lost) = self.lost(test_start) {
            found.push(Weakening::Tests { path: path(), lost });
        }
        if let Some(lost) = self.lost(|l| assertion(l).is_some()) {
            found.push(Weakening::Assertions { path: path(), lost });
        } else if let Some(lost) = self.lost(|l| assertion(l) == Some(Strength::Exact)) {
            found.push(Weakening::Looser { path: path(), lost });
        }
        if found.len() == before
            && let Some(lost) = self.lost(table_row)
        {
            found.push(Weakening::Expectations { path: path(), lost });
        }
        if let Ok(added) = u64::try_from(self.net(skip, false))
            && added > 0
        {
            found.push(Weakening::Skips { path: path(), added });
        }
    }

    /// How many lines of a kind are missing, moved ones aside; `None` for none.
    fn lost(&self, is: impl Fn(&str) -> bool) -> Option<u64> {
        u64::try_from(-self.net(is, true)).ok().filter(|lost| *lost > 0)
    }

    /// Added minus removed lines of a kind.
    fn net(&self, is: impl Fn(&str) -> bool, moved: bool) -> i64 {
        let count =
            |lines: &[String]| i64::try_from(lines.iter().filter(|l| is(l)).count()).unwrap_or(i64::MAX);
        let net = self.files.iter().fold(0_i64, |sum, f| {
            sum.saturating_add(count(&f.hunks_added)).saturating_sub(count(&f.hunks_removed))
        });
        let moved: i64 =
            if moved { self.moved.iter().filter(|(l, _)| is(l)).map(|(_, n)| *n).sum() } else { 0 };
        net.saturating_add(moved)
    }
}

fn is_snapshot(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let in_dir = path.split('/').any(|p| matches!(p, "__snapshots__" | "golden" | "goldens"));
    in_dir || name.contains(".approved.") || has_extension(name, &["snap", "ambr", "golden"])
}

fn tests_of(diff: &TurnDiff) -> impl Iterator<Item = &FileDiff> {
    diff.files.iter().filter(|f| f.kind == PathKind::Test && is_code(&f.path) && !is_snapshot(&f.path))
}

/// Languages whose tests we can read; fixtures are not among them.
fn is_code(path: &str) -> bool {
    const CODE: [&str; 28] = [
        "py", "pyi", "js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "vue", "svelte", "rs", "go",
        "java", "kt", "rb", "c", "cc", "cpp", "h", "hpp", "cs", "php", "swift", "scala", "ex", "exs",
    ];
    has_extension(path, &CODE)
}

fn has_extension(path: &str, extensions: &[&str]) -> bool {
    path.rsplit_once('.').is_some_and(|(_, e)| extensions.iter().any(|x| e.eq_ignore_ascii_case(x)))
}
