//! Reads what a text says of a reset, word by word.

use std::time::Duration;

use super::Said;
use crate::lenient::cut;

/// Reads a statement word by word. What does not fit is left where it is.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    /// How many bytes were not taken.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }
}

impl Reader<'_> {
    /// Takes blanks of any kind; tools put narrow ones that do not break before `AM`.
    fn blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Takes a character.
    fn mark(&mut self, mark: char) -> bool {
        match self.rest.strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Takes the letters that come next, if `known` has a meaning for them.
    fn letters<T>(&mut self, known: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let mut after = *self;
        after.blanks();
        let end = after.rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.rest.len());
        let (word, rest) = after.rest.split_at(end.min(12));
        if word.is_empty() || rest.starts_with(char::is_alphabetic) {
            return None;
        }
        let meaning = known(word)?;
        self.rest = rest;
        Some(meaning)
    }

    /// Takes one word.
    fn word(&mut self, expected: &str) -> bool {
        self.letters(|word| word.eq_ignore_ascii_case(expected).then_some(())).is_some()
    }

    /// Takes words one after the other, or none.
    fn phrase(&mut self, expected: &[&str]) -> bool {
        let mut after = *self;
        let all = expected.iter().all(|word| after.word(word));
        if all {
            *self = after;
        }
        all
    }

    /// Takes a run of at most `most` digits.
    fn number(&mut self, most: usize) -> Option<i64> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at_checked(end.min(most + 1))?;
        if digits.is_empty() || digits.len() > most {
            return None;
        }
        self.rest = rest;
        digits.parse().ok()
    }

    /// `|1795166922`.
    pub(super) fn epoch(&mut self) -> Option<Said> {
        let _: bool = self.mark('|');
        self.blanks();
        let at = self.number(10).filter(|at| *at >= 1_000_000_000)?;
        Some(Said::Epoch(at))
    }

    /// `try again at 9:10 AM`, `resets 3am (UTC)`, `retry in 5 minutes`.
    pub(super) fn statement(&mut self) -> Option<Said> {
        let named =
            self.phrase(&["try", "again"]) || self.word("retry") || self.phrase(&["available", "again"]);
        let resets = !named && (self.word("resets") || self.word("reset"));
        if !named && !resets {
            return None;
        }
        if self.word("in") {
            self.wait()
        } else if self.word("after") {
            let mut wait = *self;
            if let Some(said) = wait.wait() {
                *self = wait;
                return Some(said);
            }
            self.clock()
        } else if self.word("at") || self.word("on") || resets {
            self.clock()
        } else {
            None
        }
    }

    /// `3 days 4 hours 12 minutes`, `6m0s`, `7.5s`, `less than a minute`, `an hour`.
    fn wait(&mut self) -> Option<Said> {
        let _: bool = self.phrase(&["less", "than"]) || self.phrase(&["about"]);
        if self.word("a") || self.word("an") {
            return self.letters(unit).map(|ms| Said::Wait(Duration::from_millis(ms)));
        }
        let mut total: Option<u64> = None;
        for _ in 0..6 {
            let mut after = *self;
            after.blanks();
            if total.is_some() {
                let _: bool = after.mark(',');
                let _: bool = after.word("and");
                after.blanks();
            }
            let Some(ms) = after.part() else { break };
            total = Some(total.unwrap_or(0).saturating_add(ms));
            *self = after;
        }
        total.map(|ms| Said::Wait(Duration::from_millis(ms)))
    }

    /// One number with its unit, in milliseconds, rounded up.
    fn part(&mut self) -> Option<u64> {
        let whole = u64::try_from(self.number(9)?).ok()?;
        let mut thousandths = 0;
        let mut after = *self;
        if after.mark('.') {
            let digits = after.rest.len() - after.rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (fraction, rest) = after.rest.split_at(digits);
            let scale = [0, 100, 10, 1].get(digits).copied().unwrap_or(1);
            let kept: u64 = fraction.get(..digits.min(3))?.parse().ok()?;
            thousandths = kept * scale + u64::from(digits > 3);
            self.rest = rest;
        }
        let unit = self.letters(unit)?;
        Some(whole.saturating_mul(unit).saturating_add((thousandths * unit).div_ceil(1000)))
    }

    /// `9:10 AM`, `3pm (UTC)`, `Nov 25th, 2026 9:10 AM`, `Nov 25, 9am`.
    fn clock(&mut self) -> Option<Said> {
        let date = match self.letters(month) {
            Some(month) => Some(self.day_of(month)?),
            None => None,
        };
        self.blanks();
        let hour = self.number(2)?;
        let (minute, second) = if self.mark(':') {
            let minute = self.number(2).filter(|minute| *minute < 60)?;
            let second = if self.mark(':') { self.number(2).filter(|second| *second < 60)? } else { 0 };
            (Some(minute), second)
        } else {
            (None, 0)
        };
        let hour = match (self.half(), minute) {
            (Some(half), _) => half + Some(hour).filter(|hour| (1..=12).contains(hour))? % 12,
            (None, Some(_)) => Some(hour).filter(|hour| *hour < 24)?,
            (None, None) => return None,
        };
        if self.rest.starts_with(char::is_alphanumeric) {
            return None;
        }
        let zone = self.zone().ok()?;
        Some(Said::Clock { date, time: hour * 3600 + minute.unwrap_or(0) * 60 + second, zone })
    }

    fn day_of(&mut self, month: u8) -> Option<(u8, u8, Option<i64>)> {
        self.blanks();
        let day = u8::try_from(self.number(2)?).ok()?;
        let _: Option<()> = self.letters(|word| {
            ["st", "nd", "rd", "th"].iter().any(|end| word.eq_ignore_ascii_case(end)).then_some(())
        });
        let _: bool = self.mark(',');
        let mut after = *self;
        after.blanks();
        let year = after.number(4).filter(|year| *year >= 2000 && !after.rest.starts_with(':'));
        if year.is_some() {
            *self = after;
            let _: bool = self.mark(',');
        }
        let _: bool = self.word("at");
        Some((month, day, year))
    }

    /// The hour at which the half of the day begins: `am`, `PM`, `a.m.`.
    fn half(&mut self) -> Option<i64> {
        let mut after = *self;
        after.blanks();
        let mut letters = after.rest.char_indices().filter(|(_, c)| *c != '.');
        let begins = match letters.next()?.1 {
            'a' | 'A' => 0,
            'p' | 'P' => 12,
            _ => return None,
        };
        let (at, _) = letters.next().filter(|(at, c)| matches!(c, 'm' | 'M') && *at <= 2)?;
        let rest = after.rest.get(at + 1..)?;
        if rest.starts_with(char::is_alphanumeric) {
            return None;
        }
        self.rest = rest;
        Some(begins)
    }

    /// A zone in brackets, or one in capitals. `Err`: one that nobody here knows.
    fn zone(&mut self) -> Result<Option<i64>, ()> {
        let mut after = *self;
        let _: bool = after.mark('.');
        after.blanks();
        if after.mark('(') {
            let (name, _) = cut(after.rest, 40).split_once(')').ok_or(())?;
            self.rest = after.rest.get(name.len() + 1..).unwrap_or_default();
            return universal(name.trim()).map(Some).ok_or(());
        }
        let end = after.rest.find(|c: char| !c.is_ascii_uppercase()).unwrap_or(after.rest.len());
        let (name, rest) = after.rest.split_at(end);
        if !(1..=5).contains(&name.len()) || rest.starts_with(char::is_alphanumeric) {
            return Ok(None);
        }
        if !rest.starts_with(['+', '-', '/'])
            && let Some(zone) = universal(name)
        {
            self.rest = rest;
            return Ok(Some(zone));
        }
        // `9:10 AM. You can ...` begins a sentence; `9:10 AM PST` names a zone.
        if self.rest.starts_with('.') || name.len() == 1 { Ok(None) } else { Err(()) }
    }
}

fn universal(name: &str) -> Option<i64> {
    ["UTC", "GMT", "Z", "Etc/UTC", "Etc/GMT", "Etc/Universal", "Universal"].contains(&name).then_some(0)
}

/// The length of a unit of time, in milliseconds.
fn unit(word: &str) -> Option<u64> {
    let singular = word.strip_suffix(['s', 'S']).filter(|short| short.len() > 1).unwrap_or(word);
    let is = |names: &[&str]| names.iter().any(|name| singular.eq_ignore_ascii_case(name));
    if word.eq_ignore_ascii_case("ms") || is(&["millisecond"]) {
        Some(1)
    } else if is(&["s", "sec", "second"]) {
        Some(1000)
    } else if is(&["m", "min", "minute"]) {
        Some(60 * 1000)
    } else if is(&["h", "hr", "hour"]) {
        Some(3600 * 1000)
    } else if is(&["d", "day"]) {
        Some(24 * 3600 * 1000)
    } else if is(&["w", "week"]) {
        Some(7 * 24 * 3600 * 1000)
    } else {
        None
    }
}

/// The number of a month, from its name or its first three letters.
pub(super) fn month(word: &str) -> Option<u8> {
    const NAMES: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let word = word.to_ascii_lowercase();
    let of = |name: &str| {
        name == word
            || (word.len() == 3 && name.starts_with(&word))
            || (word == "sept" && name == "september")
    };
    NAMES.iter().zip(1..).find(|(name, _)| of(name)).map(|(_, number)| number)
}
