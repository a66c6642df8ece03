//! What a change takes from the tests and gates of a repository.
//!
//! The texts of the changed files come in, as they were before and as they are after; counts go out, and nothing is
//! judged. A claim is one thing that a test asserts. Claims are followed into helpers of the same files, and counted as
//! often as a table of cases repeats them; what is never come to, or holds always, is no claim. Claims that are gone
//! from a test may have gone to another one: a claim there pays for one that says at most as much about the same names,
//! where a runner finds it as surely as before.
//!
//! What is hostile here makes this crash at worst: it runs in a process of its own.

mod claims;
mod measure;
mod places;
mod said;
mod settings;

use std::collections::BTreeSet;

use peers_model::weakening::{Weakened, Weakening};
use serde::{Deserialize, Serialize};

use crate::language::Language;
use crate::layout::is_test;
use crate::source::{Source, Unreadable};
use claims::Claim;
use measure::{Measured, Version};

/// A changed file, as it was and as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    /// Its path.
    pub path: String,
    /// What was in it.
    pub before: Side,
    /// What is in it.
    pub after: Side,
    /// The operator says that it holds tests, whatever it is called.
    pub told: bool,
}

/// One side of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// There is no such file.
    Absent,
    /// There is one, and it is no text or too large to be read.
    Unread,
    /// Its text.
    Text(String),
}

impl Side {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Absent | Self::Unread => None,
        }
    }

    fn parse(&self, path: &str) -> Option<Result<Source<'_>, Unreadable>> {
        self.text().map(|text| Source::parse_loosely(path, text.as_bytes()))
    }
}

/// What a change takes from tests and gates.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Weaker {
    /// What is weaker.
    pub found: Vec<Weakening>,
    /// What changed in files of Rust that hold tests beside the product.
    pub inline: Vec<Inline>,
}

/// Changed lines of a file that is tests in part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inline {
    /// Its path.
    pub path: String,
    /// Lines of tests that were added, and deleted.
    pub tests: (u64, u64),
    /// Other lines that were added, and deleted.
    pub rest: (u64, u64),
}

/// A side of a file that can be parsed.
struct File<'t> {
    /// Which of all changed files it is.
    at: usize,
    path: &'t str,
    told: bool,
    /// Nothing was there before.
    new: bool,
    source: Source<'t>,
}

impl File<'_> {
    fn is_test(&self) -> bool {
        self.told || is_test(self.path)
    }
}

/// Whether [`weaker`] has something to say of a file of this path, besides files of tests.
#[must_use]
pub fn is_measured(path: &str) -> bool {
    is_test(path)
        || is_snapshot(path)
        || settings::is_known(path)
        || Language::of(path) == Some(Language::Rust)
}

/// Compares all changed files of a turn.
#[must_use]
pub fn weaker(files: &[ChangedFile]) -> Weaker {
    let mut out = Weaker::default();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for (at, file) in files.iter().enumerate() {
        let new = file.before == Side::Absent;
        let (old, now) = (file.before.parse(&file.path), file.after.parse(&file.path));
        out.inline.extend(places::inline(&file.path, old.as_ref(), now.as_ref()));
        let old = old.map(|source| source.and_then(Source::whole));
        let now = now.map(|source| source.and_then(Source::whole));
        // Of what could not be read before nothing can be lost.
        let old = old.and_then(Result::ok);
        let tells = file.told
            || is_test(&file.path)
            || old.as_ref().is_some_and(|source| !source.tests().0.is_empty());
        let side = |source| File { at, path: &file.path, told: file.told, new, source };
        match now {
            Some(Ok(source)) => after.push(side(source)),
            Some(Err(_)) if old.is_some() && tells => {
                out.found.push(Weakened::Unreadable.at(&file.path));
                continue;
            }
            _ if is_unread(file) => out.found.push(Weakened::Unreadable.at(&file.path)),
            _ => {}
        }
        before.extend(old.map(side));
    }
    let modules = places::Modules::of(&before, &after);
    let (old, new) = (Version::new(&before), Version::new(&after));
    let (old, new) = (old.tests(1, &modules), new.tests(measure::MOST, &modules));
    let mut counts = vec![Counts::default(); files.len()];
    compare(&old, &new, &mut counts);
    for (file, counts) in files.iter().zip(counts) {
        out.found.extend(counts.found().map(|what| what.at(&file.path)));
    }
    out.found.extend(modules.orphans());
    out.found.extend(places::hooks(&before, &after));
    whole_files(files, &mut out.found);
    settings::weaker(files, &mut out.found);
    out
}

/// Whether tests or gates could be told from a file that cannot be read.
fn is_unread(file: &ChangedFile) -> bool {
    let unread = file.before == Side::Unread || file.after == Side::Unread;
    // A new file takes nothing away, unless it has a say in the run.
    let decides = settings::is_known(&file.path) || file.path.rsplit('/').next() == Some("conftest.py");
    let code = Language::of(&file.path).is_some() || is_other_code(&file.path);
    unread && (decides || (code && file.before != Side::Absent && !is_snapshot(&file.path)))
}

fn is_snapshot(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    path.split('/').any(|dir| matches!(dir, "__snapshots__" | "golden" | "goldens"))
        || name.contains(".approved.")
        || [".snap", ".ambr", ".golden"].iter().any(|end| name.ends_with(end))
}

/// Whether a file is code in a language that is not read.
fn is_other_code(path: &str) -> bool {
    const ENDS: &str =
        "vue svelte java kt kts groovy scala rb c cc cpp cxx h hpp cs php swift m mm ex exs dart lua sh bats";
    path.rsplit_once('.').is_some_and(|(_, end)| settings::among(ENDS, end))
}

/// Stored outputs that were written anew, and tests in other languages that are gone. What only went elsewhere is as it
/// was.
fn whole_files(files: &[ChangedFile], out: &mut Vec<Weakening>) {
    let came: BTreeSet<&str> = files
        .iter()
        .filter(|file| file.before == Side::Absent)
        .filter_map(|file| file.after.text())
        .collect();
    for file in files.iter().filter(|file| file.before != Side::Absent) {
        let (before, after) = (file.before.text(), file.after.text().unwrap_or_default());
        let gone = after.trim().is_empty() && before.is_none_or(|before| !came.contains(before));
        let kept: BTreeSet<&str> = after.lines().collect();
        let rewritten = || before.is_none_or(|before| before.lines().any(|line| !kept.contains(line)));
        let said = before.is_some_and(|before| !before.trim().is_empty());
        if is_snapshot(&file.path) && (gone || (file.after != Side::Absent && rewritten())) {
            out.push(Weakened::Snapshot.at(&file.path));
        } else if gone && said && is_other_code(&file.path) && (file.told || places::in_tests(&file.path)) {
            out.push(Weakened::Tests { lost: 1 }.at(&file.path));
        }
    }
}

/// What the tests of a file say less than before.
#[derive(Debug, Clone, Default)]
struct Counts {
    tests: u64,
    assertions: u64,
    looser: u64,
    skips: u64,
}

impl Counts {
    fn found(self) -> impl Iterator<Item = Weakened> {
        let Self { tests, assertions, looser, skips } = self;
        let all = [
            (tests, Weakened::Tests { lost: tests }),
            (assertions, Weakened::Assertions { lost: assertions }),
            (looser, Weakened::Looser { lost: looser }),
            (skips, Weakened::Skips { added: skips }),
        ];
        all.into_iter().filter(|(count, _)| *count > 0).map(|(_, what)| what)
    }
}

/// The claims of a test that nothing pays for yet, with how often.
type Open<'m> = Vec<(&'m Claim, u64)>;

fn compare(before: &[Measured], after: &[Measured], out: &mut [Counts]) {
    let mut taken = BTreeSet::new();
    let mut pairs: Vec<Option<usize>> = vec![None; before.len()];
    let own_name =
        |test: &'_ Measured| test.path.rsplit([':', '.', '>', '/']).next().map(|name| name.trim().to_owned());
    for in_place in [true, false] {
        let same = |old: &Measured, new: &Measured| {
            let here = if in_place {
                old.file == new.file && old.path == new.path
            } else {
                own_name(old) == own_name(new)
            };
            here && new.place >= old.place
        };
        for (old, pair) in before.iter().zip(&mut pairs).filter(|(_, pair)| pair.is_none()) {
            let mut all = after.iter().enumerate();
            *pair = all.find(|(at, new)| !taken.contains(at) && same(old, new)).map(|(at, _)| at);
            taken.extend(*pair);
        }
    }
    // A test that is new and switched off pays for nothing.
    let runs = |at: usize, new: &Measured| taken.contains(&at) || !new.off;
    let claims = |(at, new): (usize, &Measured)| if runs(at, new) { new.claims.clone() } else { Vec::new() };
    let mut gained: Vec<Vec<(Claim, u64)>> = after.iter().enumerate().map(claims).collect();
    let mut lost: Vec<Open<'_>> = Vec::new();
    for (old, pair) in before.iter().zip(&pairs) {
        let mut left: Open<'_> = old.claims.iter().map(|(claim, count)| (claim, *count)).collect();
        if let Some(new) = pair.and_then(|at| gained.get_mut(at)) {
            pay(&mut left, new, |old, new| old.text == new.text && new.says_as_much(old));
            pay(&mut left, new, |old, new| new.says_as_much(old));
        }
        lost.push(left);
    }
    for (left, old) in lost.iter_mut().zip(before) {
        for (claims, new) in gained.iter_mut().zip(after) {
            if new.place >= old.place {
                pay(left, claims, |old, new| new.says_as_much(old) && new.is_about(old));
            }
        }
    }
    for ((old, pair), left) in before.iter().zip(&pairs).zip(&mut lost) {
        let Some(weaker) = out.get_mut(old.file) else { continue };
        weaker.skips +=
            pair.and_then(|at| after.get(at)).map_or(0, |new| new.skips.saturating_sub(old.skips));
        let whole: u64 = old.claims.iter().map(|(_, count)| count).sum();
        let sum = |left: &Open<'_>| left.iter().map(|(_, count)| count).sum::<u64>();
        let open = sum(left);
        // A test that asserts nothing says that its statements run.
        let runs_elsewhere = || {
            let others =
                after.iter().filter(|new| new.words.intersection(&old.words).count() * 2 >= old.words.len());
            others.into_iter().any(|new| new.skips == 0 && new.place >= old.place)
        };
        if let Some(mine) = pair.and_then(|at| gained.get_mut(at)) {
            weaker.looser += pay(left, mine, |_, _| true);
            weaker.assertions += sum(left);
        } else if open == whole && (whole > 0 || !runs_elsewhere()) {
            weaker.tests += 1;
        } else {
            weaker.assertions += open;
        }
    }
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
