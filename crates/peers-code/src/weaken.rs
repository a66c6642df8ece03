//! What the tests of a turn say less than before.
//!
//! The texts of the changed files come in, as they were before and as they are after; counts go out, and nothing is
//! judged. A claim is one thing that a test asserts. Claims are followed into helpers of the same files, and counted as
//! often as a table of cases repeats them; what is never come to, or holds always, is no claim. Claims that are gone
//! from a test may have gone to another one: a claim there pays for one that says at most as much about the same names.

mod claims;
mod measure;

use std::collections::BTreeSet;

use crate::layout::is_test;
use crate::source::Source;
use claims::Claim;
use measure::{Measured, Version};

/// A changed file, as it was and as it is.
#[derive(Debug, Clone, Copy)]
pub struct ChangedText<'t> {
    /// Its path.
    pub path: &'t str,
    /// What was in it; nothing where it is new.
    pub before: Option<&'t [u8]>,
    /// What is in it; nothing where it is gone.
    pub after: Option<&'t [u8]>,
}

/// What the tests of a file say less than before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Weaker {
    /// The file in which they were.
    pub path: String,
    /// Tests of which nothing is left.
    pub tests: u64,
    /// Assertions that are gone.
    pub assertions: u64,
    /// Assertions that say less.
    pub looser: u64,
    /// Cases of tables that are gone.
    pub cases: u64,
    /// Marks that keep a test from running, or from failing.
    pub skips: u64,
    /// It was read before, and cannot be any more.
    pub unreadable: bool,
}

impl Weaker {
    fn is_anything(&self) -> bool {
        let Self { path: _, tests, assertions, looser, cases, skips, unreadable } = self;
        *unreadable || [tests, assertions, looser, cases, skips].into_iter().any(|count| *count > 0)
    }
}

/// Compares all changed files of a turn; files in no language that is read are left out.
#[must_use]
pub fn weaker(files: &[ChangedText<'_>]) -> Vec<Weaker> {
    let mut out: Vec<Weaker> =
        files.iter().map(|file| Weaker { path: file.path.to_owned(), ..Weaker::default() }).collect();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for (at, file) in files.iter().enumerate() {
        // Of what could not be read before nothing can be lost.
        let old = file.before.and_then(|bytes| Source::parse(file.path, bytes).ok());
        let tells = is_test(file.path) || old.as_ref().is_some_and(|source| !source.tests().0.is_empty());
        match file.after.map(|bytes| Source::parse(file.path, bytes)) {
            Some(Ok(source)) => after.push((at, file.path, source)),
            Some(Err(_)) if old.is_some() && tells => {
                if let Some(weaker) = out.get_mut(at) {
                    weaker.unreadable = true;
                }
                continue;
            }
            _ => {}
        }
        before.extend(old.map(|source| (at, file.path, source)));
    }
    let (before, after) = (Version::new(&before).tests(1), Version::new(&after).tests(measure::MOST));
    compare(&before, &after, &mut out);
    out.retain(Weaker::is_anything);
    out
}

/// The claims of a test that nothing pays for yet, with how often.
type Open<'m> = Vec<(&'m Claim, u64)>;

fn compare(before: &[Measured], after: &[Measured], out: &mut [Weaker]) {
    let mut taken = BTreeSet::new();
    let mut pairs: Vec<Option<usize>> = Vec::new();
    let ways: [fn(&Measured, &Measured) -> bool; 2] = [same_place, same_name];
    for same in ways {
        for (at, old) in before.iter().enumerate() {
            if pairs.len() <= at {
                pairs.push(None);
            }
            let Some(pair) = pairs.get_mut(at).filter(|pair| pair.is_none()) else { continue };
            let found = after.iter().enumerate().find(|(at, new)| !taken.contains(at) && same(old, new));
            *pair = found.map(|(at, _)| at);
            taken.extend(*pair);
        }
    }
    let open =
        |test: &'_ Measured| test.claims.iter().map(|(claim, count)| (claim.clone(), *count)).collect();
    // A test that is new and switched off pays for nothing.
    let runs = |at: usize, new: &Measured| taken.contains(&at) || !new.off;
    let mut gained: Vec<Vec<(Claim, u64)>> = after
        .iter()
        .enumerate()
        .map(|(at, new)| if runs(at, new) { open(new) } else { Vec::new() })
        .collect();
    let mut lost: Vec<Open<'_>> = Vec::new();
    for (old, pair) in before.iter().zip(&pairs) {
        let mut left: Open<'_> = old.claims.iter().map(|(claim, count)| (claim, *count)).collect();
        if let Some(new) = pair.and_then(|at| gained.get_mut(at)) {
            pay(&mut left, new, |old, new| old.text == new.text && new.says_as_much(old));
            pay(&mut left, new, |old, new| new.says_as_much(old));
        }
        lost.push(left);
    }
    for left in &mut lost {
        for new in &mut gained {
            pay(left, new, |old, new| new.says_as_much(old) && new.is_about(old));
        }
    }
    for ((old, pair), left) in before.iter().zip(&pairs).zip(&mut lost) {
        let Some(weaker) = out.get_mut(old.file) else { continue };
        let new = pair.and_then(|at| after.get(at));
        weaker.skips += new.map_or(0, |new| new.skips.saturating_sub(old.skips));
        let whole: u64 = old.claims.iter().map(|(_, count)| count).sum();
        let open: u64 = left.iter().map(|(_, count)| count).sum();
        // A test that asserts nothing says that its statements run.
        let runs_elsewhere = || {
            let others =
                after.iter().filter(|new| new.words.intersection(&old.words).count() * 2 >= old.words.len());
            others.into_iter().any(|new| new.skips == 0)
        };
        let Some(new) = new else {
            if open == whole && (whole > 0 || !runs_elsewhere()) {
                weaker.tests += 1;
            } else {
                weaker.assertions += open;
            }
            continue;
        };
        let Some(mine) = pair.and_then(|at| gained.get_mut(at)) else { continue };
        let looser = pay(left, mine, |old, new| old.strength > 0 && new.strength > 0);
        weaker.looser += looser;
        for (claim, count) in left.iter().filter(|(_, count)| *count > 0) {
            if new.claims.iter().any(|(other, times)| other.text == claim.text && *times > 0) {
                weaker.cases += count;
            } else {
                weaker.assertions += count;
            }
        }
    }
}

fn same_place(old: &Measured, new: &Measured) -> bool {
    old.file == new.file && old.path == new.path
}

fn same_name(old: &Measured, new: &Measured) -> bool {
    let last =
        |test: &Measured| test.path.rsplit([':', '.', '>', '/']).next().map(|name| name.trim().to_owned());
    last(old) == last(new)
}

/// Takes as much of what is left as `pays` lets the new claims pay for; how much that was.
fn pay(left: &mut Open<'_>, new: &mut [(Claim, u64)], pays: impl Fn(&Claim, &Claim) -> bool) -> u64 {
    let mut paid = 0;
    for (old, due) in left {
        for (claim, capacity) in new.iter_mut() {
            if *due > 0 && *capacity > 0 && pays(old, claim) {
                let part = (*due).min(*capacity);
                *due -= part;
                *capacity -= part;
                paid += part;
            }
        }
    }
    paid
}

#[cfg(test)]
mod tests;
