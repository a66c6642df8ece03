//! Which changed test files are measured together, and which of their lines only moved.

use std::collections::{BTreeMap, BTreeSet};

use super::diff::{FileDiff, FileStatus};
use super::idioms::{assertion, skip, table_row, test_start};
use super::places::{Place, called, defined, place};
use super::runnable::normal;
use super::rust_modules::Modules;

/// Test files that are measured together: a changed file for itself, and new and deleted ones that
/// a runner finds alike, since a moved file is one of each.
pub(super) struct Group<'a> {
    /// The file that stands for it.
    pub(super) name: String,
    files: Vec<&'a FileDiff>,
    place: Place,
    /// Something that runs calls what is defined here.
    helps: bool,
    /// Lines of tests that vanish here and appear elsewhere in the turn (positive), or the other
    /// way round (negative): to be left out of account.
    moved: BTreeMap<String, i64>,
}

/// The groups of a turn's test files.
pub(super) fn groups<'a>(files: &[&'a FileDiff], modules: &Modules) -> Vec<Group<'a>> {
    let mut groups = Vec::new();
    let new: BTreeSet<String> =
        files.iter().flat_map(|f| &f.hunks_added).filter(|l| matters(l)).map(|l| normal(l)).collect();
    let mut others: BTreeMap<Place, Vec<&FileDiff>> = BTreeMap::new();
    for file in files {
        let place = place(file, modules);
        // A deleted file whose tests are nowhere else is nobody's old name.
        if file.status == FileStatus::Modified
            || (file.status == FileStatus::Deleted && !reappears(file, &new))
        {
            groups.push(Group::new(vec![*file], place));
        } else {
            others.entry(place).or_default().push(file);
        }
    }
    groups.extend(others.into_iter().map(|(place, files)| Group::new(files, place)));
    let found = groups.iter().filter(|g| !g.place.is_hidden()).flat_map(|g| &g.files);
    let calls = called(found.flat_map(|f| &f.hunks_added).map(String::as_str));
    for group in groups.iter_mut().filter(|g| g.place.is_hidden()) {
        let names = defined(group.files.iter().flat_map(|f| &f.hunks_added).map(String::as_str));
        group.helps = !names.is_disjoint(&calls);
    }
    find_moves(&mut groups);
    groups
}

/// Whether a line says something about what is tested.
fn matters(line: &str) -> bool {
    test_start(line) || assertion(line).is_some() || table_row(line) || skip(line)
}

/// Whether at least half of what a deleted file tested is among new lines.
fn reappears(file: &FileDiff, new: &BTreeSet<String>) -> bool {
    let mut lines: Vec<&String> = file.hunks_removed.iter().filter(|l| matters(l)).collect();
    if lines.is_empty() {
        return true;
    }
    lines.sort_unstable();
    lines.dedup();
    let kept = lines.iter().filter(|l| new.contains(&normal(l))).count();
    kept * 2 >= lines.len()
}

/// Where a line came to: a place, or `None` where it counts whatever the place.
type Gained = Option<Place>;

/// What became of one line in all groups.
#[derive(Default)]
struct Moves {
    lost: BTreeMap<Place, i64>,
    gained: BTreeMap<Gained, i64>,
}

impl Moves {
    /// Leaves in both what only moved.
    fn settle(&mut self) {
        let mut lost_moved = BTreeMap::new();
        let mut gained_moved: BTreeMap<Gained, i64> = BTreeMap::new();
        for (from, lost) in self.lost.iter().rev() {
            let mut left = *lost;
            for (to, gained) in &self.gained {
                let taken_before = gained_moved.get(to).copied().unwrap_or(0);
                let taken = left.min(gained - taken_before);
                if taken > 0 && to.is_none_or(|to| from.is_kept_at(to)) {
                    left -= taken;
                    *gained_moved.entry(*to).or_default() += taken;
                }
            }
            lost_moved.insert(*from, lost - left);
        }
        (self.lost, self.gained) = (lost_moved, gained_moved);
    }
}

fn find_moves(groups: &mut [Group<'_>]) {
    let balances: Vec<BTreeMap<String, i64>> = groups.iter().map(Group::balance).collect();
    let mut moves: BTreeMap<&str, Moves> = BTreeMap::new();
    for (group, balance) in groups.iter().zip(&balances) {
        for (line, n) in balance {
            let moves = moves.entry(line).or_default();
            if *n < 0 {
                *moves.lost.entry(group.place).or_default() += n.abs();
            } else {
                *moves.gained.entry(group.gains(line)).or_default() += n;
            }
        }
    }
    moves.values_mut().for_each(Moves::settle);
    for (group, balance) in groups.iter_mut().zip(&balances) {
        for (line, n) in balance {
            let Some(moves) = moves.get_mut(line.as_str()) else { continue };
            let left = if *n < 0 {
                moves.lost.get_mut(&group.place)
            } else {
                moves.gained.get_mut(&group.gains(line))
            };
            let Some(left) = left else { continue };
            let taken = n.abs().min(*left);
            *left -= taken;
            if taken > 0 {
                group.moved.insert(line.clone(), -n.signum() * taken);
            }
        }
    }
}

impl<'a> Group<'a> {
    fn new(files: Vec<&'a FileDiff>, place: Place) -> Self {
        let first = files.iter().find(|f| f.status == FileStatus::Deleted).or(files.first());
        let name = first.map(|f| f.path.clone()).unwrap_or_default();
        Self { name, files, place, helps: false, moved: BTreeMap::new() }
    }

    /// Where a line of this group has come to. A test is run only where a runner finds it; other
    /// lines also where something that runs calls them.
    fn gains(&self, line: &str) -> Gained {
        (!self.helps || test_start(line)).then_some(self.place)
    }

    /// Of each line that matters, how many more there are than before.
    fn balance(&self) -> BTreeMap<String, i64> {
        let mut balance: BTreeMap<String, i64> = BTreeMap::new();
        for (lines, step) in self.files.iter().flat_map(|f| [(&f.hunks_removed, -1), (&f.hunks_added, 1)]) {
            for line in lines.iter().filter(|l| matters(l)) {
                *balance.entry(normal(line)).or_default() += step;
            }
        }
        balance.retain(|_, n| *n != 0);
        balance
    }

    /// Whether it is a file that was there before and still is.
    pub(super) fn is_one_file(&self) -> bool {
        self.files.iter().all(|f| f.status == FileStatus::Modified)
    }

    /// The first file to which lines of a kind were added.
    pub(super) fn where_added(&self, is: impl Fn(&str) -> bool) -> &str {
        let file = self.files.iter().find(|f| f.hunks_added.iter().any(|l| is(l)));
        file.map_or(self.name.as_str(), |f| f.path.as_str())
    }

    /// Whether files of it are gone.
    pub(super) fn took_place_of_others(&self) -> bool {
        self.files.iter().any(|f| f.status == FileStatus::Deleted)
    }

    /// How many lines of a kind are missing, moved ones aside; `None` for none.
    pub(super) fn lost(&self, is: impl Fn(&str) -> bool) -> Option<u64> {
        u64::try_from(-self.net(is)).ok().filter(|lost| *lost > 0)
    }

    /// How many lines of a kind there are more, moved ones aside; `None` for none.
    pub(super) fn gained(&self, is: impl Fn(&str) -> bool) -> Option<u64> {
        u64::try_from(self.net(is)).ok().filter(|gained| *gained > 0)
    }

    /// How many lines of a kind came from other groups.
    pub(super) fn came(&self, is: impl Fn(&str) -> bool) -> u64 {
        let came: i64 = self.moved.iter().filter(|(l, n)| **n < 0 && is(l)).map(|(_, n)| -*n).sum();
        u64::try_from(came).unwrap_or(0)
    }

    /// Added minus removed lines of a kind.
    fn net(&self, is: impl Fn(&str) -> bool) -> i64 {
        let count =
            |lines: &[String]| i64::try_from(lines.iter().filter(|l| is(l)).count()).unwrap_or(i64::MAX);
        let net = self.files.iter().fold(0_i64, |sum, f| {
            sum.saturating_add(count(&f.hunks_added)).saturating_sub(count(&f.hunks_removed))
        });
        let moved: i64 = self.moved.iter().filter(|(l, _)| is(l)).map(|(_, n)| *n).sum();
        net.saturating_add(moved)
    }
}
