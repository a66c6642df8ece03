//! When a limit opens again, read from the prose of an error.
//!
//! Only what is told without a doubt is taken: a clock time in a zone that is not known here, a bare
//! number, a moment in the past or more than eight days ahead are nothing. Text may be hostile: only
//! its beginning is looked at, and each place in it once.

mod read;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::time::Duration;

use peers_model::Timestamp;

use crate::event::{FAILURE_CHARS, FailureKind, WORDS_CHARS};
use crate::lenient::{cut, one_line};
use read::{Reader, month};

/// Seconds of a day.
const DAY: i64 = 24 * 3600;
/// No limit that opens by itself lasts longer: a week, and a day for clocks and zones.
const MOST_S: i64 = 8 * DAY;
/// A moment that has just passed is now: tools leave the seconds out.
const TOLERANCE_S: i64 = 60;
/// How much of a text is looked at, in bytes.
const TEXT_BYTES: usize = 16 * 1024;
/// How much of a text one statement may take, in characters.
const PHRASE_CHARS: usize = 90;

/// When the limit that `text` speaks of opens again, in seconds since the epoch.
///
/// `now` is in the same seconds, `offset_s` what the local zone is ahead of UTC: clock times without
/// a zone are local. Summer time that begins or ends before the reset makes it an hour wrong.
/// `None`: the text does not say it, or not clearly. Never before `now`, never more than eight days
/// after it.
#[must_use]
pub fn reset_at(text: &str, now: i64, offset_s: i32) -> Option<i64> {
    statements(text).find_map(|(_, said)| said.at(now, i64::from(offset_s)))
}

/// When another attempt after a failure can help: as the failure says in numbers, else as its `text`
/// says, see [`reset_at`]. `None` also where only a person can help.
#[must_use]
pub fn opens_at(kind: FailureKind, text: &str, now: i64, offset_s: i32) -> Option<i64> {
    let told = match kind {
        FailureKind::Auth => return None,
        FailureKind::UsageCap { resets_at } => resets_at.filter(|at| *at >= now),
        FailureKind::RateLimit { retry_after } => {
            retry_after.and_then(|wait| now.checked_add(whole_seconds(wait)))
        }
        FailureKind::Quota | FailureKind::Overload | FailureKind::Other => None,
    };
    let told = told.filter(|at| at.checked_sub(now).is_some_and(|wait| wait <= MOST_S));
    told.or_else(|| reset_at(text, now, offset_s))
}

/// The wait that `text` asks for, where it is told as a length of time.
pub(crate) fn wait_in(text: &str) -> Option<Duration> {
    statements(text).find_map(|(_, said)| match said {
        Said::Wait(wait) if whole_seconds(wait) <= MOST_S => Some(wait),
        Said::Wait(_) | Said::Clock { .. } | Said::Epoch(_) => None,
    })
}

/// The moment that `text` tells as seconds since the epoch.
pub(crate) fn epoch_in(text: &str) -> Option<i64> {
    statements(text).find_map(|(_, said)| match said {
        Said::Epoch(at) => Some(at),
        Said::Wait(_) | Said::Clock { .. } => None,
    })
}

/// `text` on one line of at most [`FAILURE_CHARS`] characters, in which what it says of a reset stays
/// even when it comes last. Secrets have to be out of it before.
#[must_use]
pub fn brief(text: &str) -> String {
    cut_around(text, FAILURE_CHARS, one_line)
}

/// What is kept of `text` until secrets are out of it, for [`brief`]: at most [`WORDS_CHARS`] characters as
/// they are.
pub(crate) fn words(text: &str) -> String {
    cut_around(text, WORDS_CHARS, |text, chars| text.trim().chars().take(chars).collect())
}

/// `text` cut by `cut` to `chars` characters, with what it says of a reset.
fn cut_around(text: &str, chars: usize, cut: impl Fn(&str, usize) -> String) -> String {
    let line = cut(text, chars);
    let Some((place, said)) = statements(text).next() else { return line };
    // Not by its words: a longer number that says nothing may contain them.
    if statements(&line).next().is_some_and(|(_, there)| there == said) {
        return line;
    }
    let before = text.get(..place.start).unwrap_or_default();
    let phrase = one_line(text.get(place).unwrap_or_default(), PHRASE_CHARS);
    let room = chars.saturating_sub(phrase.chars().count() + 3);
    format!("{} \u{2026} {phrase}", cut(before, room))
}

fn whole_seconds(wait: Duration) -> i64 {
    let more = i64::from(wait.subsec_nanos() > 0);
    i64::try_from(wait.as_secs()).unwrap_or(i64::MAX).saturating_add(more)
}

/// What a text says of a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Wait(Duration),
    Clock {
        /// Month, day and maybe the year; without it the next such time of day.
        date: Option<(u8, u8, Option<i64>)>,
        /// Seconds since midnight.
        time: i64,
        /// What the named zone is ahead of UTC.
        zone: Option<i64>,
    },
    Epoch(i64),
}

impl Said {
    fn at(self, now: i64, local: i64) -> Option<i64> {
        let earliest = now.checked_sub(TOLERANCE_S)?;
        let at = match self {
            Self::Wait(wait) => now.checked_add(whole_seconds(wait))?,
            Self::Epoch(at) => at,
            Self::Clock { date, time, zone } => {
                let ahead = zone.unwrap_or(local);
                let today = now.checked_add(ahead)?.div_euclid(DAY);
                let moment = |day: i64| day.checked_mul(DAY)?.checked_add(time)?.checked_sub(ahead);
                let mut candidates = match date {
                    None => [today.checked_sub(1), Some(today), today.checked_add(1)],
                    Some((month, day, Some(year))) => [days(year, month, day), None, None],
                    Some((month, day, None)) => {
                        let year = year_of(today)?;
                        [year - 1, year, year + 1].map(|year| days(year, month, day))
                    }
                }
                .into_iter()
                .flatten()
                .filter_map(moment);
                candidates.find(|at| *at >= earliest)?
            }
        };
        (at >= earliest && at <= now.checked_add(MOST_S)?).then_some(at.max(now))
    }
}

/// How many days after the epoch a day of the calendar begins. `None`: there is no such day.
fn days(year: i64, month: u8, day: u8) -> Option<i64> {
    let midnight = Timestamp::parse(&format!("{year:04}-{month:02}-{day:02}T00:00:00Z")).ok()?;
    Some(midnight.as_millis().div_euclid(DAY * 1000))
}

fn year_of(day: i64) -> Option<i64> {
    let date = Timestamp::from_millis(day.checked_mul(DAY * 1000)?).to_string();
    date.get(..4)?.parse().ok()
}

/// The statements of `text` and their places, in order.
fn statements(text: &str) -> impl Iterator<Item = (Range<usize>, Said)> {
    let text = cut(text, TEXT_BYTES);
    let mut before = ' ';
    text.char_indices().filter_map(move |(at, c)| {
        let begins = !before.is_alphanumeric();
        before = c;
        let mut rest = Reader::new(text.get(at..)?);
        let said = match c {
            '|' => rest.epoch(),
            't' | 'T' | 'r' | 'R' | 'a' | 'A' if begins => rest.statement(),
            _ => None,
        }?;
        Some((at..text.len() - rest.left(), said))
    })
}

/// The wait that the header `retry-after` asks for: seconds, or a date as HTTP writes it, read at
/// `now_ms`. `None`: neither, or more than eight days.
pub(crate) fn header_wait(value: &str, now_ms: Option<i64>) -> Option<Duration> {
    let value = value.trim();
    let wait = if let Ok(seconds) = value.parse::<f64>() {
        Duration::try_from_secs_f64(seconds).ok()?
    } else {
        let left = http_date(value)?.as_millis().checked_sub(now_ms?)?;
        Duration::from_millis(u64::try_from(left).unwrap_or(0))
    };
    (whole_seconds(wait) <= MOST_S).then_some(wait)
}

/// `Fri, 20 Nov 2026 07:54:18 GMT`.
fn http_date(text: &str) -> Option<Timestamp> {
    let (_, rest) = text.split_once(", ")?;
    let mut words = rest.split(' ');
    let (day, name, year, time) = (words.next()?, words.next()?, words.next()?, words.next()?);
    if words.next() != Some("GMT") || words.next().is_some() {
        return None;
    }
    Timestamp::parse(&format!("{year}-{:02}-{day}T{time}Z", month(name)?)).ok()
}
