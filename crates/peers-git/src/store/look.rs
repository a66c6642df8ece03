//! One look at the packs of the agents' repository: what counts as new, and how much time there is for it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::budget::Budget;
use super::mark::StoreMark;
use crate::cli::LONG_LIMIT;
use crate::snapshot::Stamp;

/// Packs that are looked at in one go. No turn makes as many.
const MOST_PACKS: usize = 2_000;
/// Time for all packs of one look, and how many bytes of packs add a second to it.
pub(crate) const PACK_TIME: Duration = Duration::from_mins(1);
const BYTES_A_SECOND: u64 = 4 << 20;
/// Content beyond this is not taken out of packs that go, nor what is not in this time.
const TAKEN_OUT: usize = if cfg!(test) { 1 << 20 } else { 4 << 30 };
const OUT_TIME: Duration = Duration::from_secs(30);

/// Packs that were looked at by the stamps that they and their indexes had.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) packs: BTreeMap<String, String>,
    /// There was no list yet.
    pub(super) first: bool,
}

impl Seen {
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for (stem, stamps) in &self.packs {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{stamps} {stem}");
        }
        text
    }
}

/// What one look at packs needs to know.
pub(super) struct Look<'a> {
    pub(super) before: Option<&'a StoreMark>,
    pub(super) seen: Seen,
    /// Packs that were found sound now, with their stamps.
    pub(super) sound: BTreeMap<String, String>,
    /// What may be read of packs that go.
    pub(super) out: Budget,
    /// As it was when the look began: nothing that is seen now is less new for it.
    known: BTreeMap<String, String>,
    left: usize,
    until: Option<Instant>,
}

impl<'a> Look<'a> {
    pub(super) fn new(before: Option<&'a StoreMark>, seen: Seen, now: &StoreMark, time: Duration) -> Self {
        let stems = now.packs.keys().filter_map(|name| name.strip_suffix(".pack"));
        let due = stems.filter(|stem| seen.packs.get(*stem) != stamps(stem, now).as_ref());
        let bytes = due.map(|stem| size_of(stem, now)).fold(0, u64::saturating_add);
        let time = time.saturating_add(Duration::from_secs(bytes / BYTES_A_SECOND)).min(LONG_LIMIT);
        Self {
            before,
            known: seen.packs.clone(),
            seen,
            sound: BTreeMap::new(),
            out: Budget::new(TAKEN_OUT, OUT_TIME),
            left: MOST_PACKS,
            until: Instant::now().checked_add(time),
        }
    }

    pub(super) fn was(&self, name: &str) -> Option<&Stamp> {
        self.before.and_then(|before| before.packs.get(name))
    }

    /// Whether a pack is new or changed since the time that is compared with.
    pub(super) fn is_fresh(&self, stem: &str, now: &StoreMark) -> bool {
        match self.before {
            Some(before) => stamps(stem, before) != stamps(stem, now),
            None => !self.seen.first && self.known.get(stem) != stamps(stem, now).as_ref(),
        }
    }

    /// Whether it was not there at that time. Git touches a pack that has what it would have written.
    pub(super) fn is_new(&self, stem: &str, now: &StoreMark) -> bool {
        let was = match self.before {
            Some(before) => stamps(stem, before),
            None => self.known.get(stem).cloned(),
        };
        let same = |(was, now): (String, String)| {
            let (was, now) = (was.split(' '), now.split(' '));
            was.zip(now).all(|(was, now)| Stamp::are_of_same_file(was, now))
        };
        !was.zip(stamps(stem, now)).is_some_and(same)
    }

    /// How much time there is for one more, or why there is none.
    pub(super) fn next(&mut self) -> Result<Duration, &'static str> {
        self.left = self.left.checked_sub(1).ok_or("there are too many new ones")?;
        let left = self.until.map_or(LONG_LIMIT, |until| until.saturating_duration_since(Instant::now()));
        if left.is_zero() { Err("there was no time left for it") } else { Ok(left) }
    }
}

/// How many bytes a pack has.
pub(super) fn size_of(stem: &str, mark: &StoreMark) -> u64 {
    mark.packs.get(&format!("{stem}.pack")).map_or(0, Stamp::size)
}

/// What tells that a pack and its index were not written since.
pub(super) fn stamps(stem: &str, mark: &StoreMark) -> Option<String> {
    let of = |end: &str| mark.packs.get(&format!("{stem}{end}")).map(Stamp::text);
    Some(format!("{} {}", of(".pack")?, of(".idx")?))
}
