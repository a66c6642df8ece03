//! Plurals, durations, sizes and shares, for every text that people read.

use std::time::Duration;

pub use peers_model::money::thousands;
use peers_model::{Timestamp, time};
pub(crate) use peers_sys::term::quoted;

/// `1 gate`, `3 gates`; the plural is made with `s` unless the word ends in `s`, `x` or `ch`.
#[must_use]
pub fn count(n: u64, word: &str) -> String {
    if n == 1 {
        return format!("1 {word}");
    }
    let end = if word.ends_with(['s', 'x']) || word.ends_with("ch") { "es" } else { "s" };
    format!("{} {word}{end}", thousands(n))
}

/// `2 of 3 gates green in 1s; not green: lint`. Not green may be more than are named.
#[must_use]
pub fn gates_green((green, of): (u64, u64), took_ms: u64, others: &[String]) -> String {
    let green = format!("{} of {} green in {}", thousands(green), count(of, "gate"), duration_ms(took_ms));
    if others.is_empty() { green } else { format!("{green}; not green: {}", list(others, 8)) }
}

/// [`count`] for a length.
pub(crate) fn count_of<T>(items: &[T], word: &str) -> String {
    count(u64::try_from(items.len()).unwrap_or(u64::MAX), word)
}

/// `3m 20s`; `0s` for nothing.
#[must_use]
pub fn duration_ms(ms: u64) -> String {
    if ms == 0 { "0s".to_owned() } else { time::human(Duration::from_millis(ms)) }
}

/// `2h 5m ago`; `just now` below a second, and for a time that is not past.
#[must_use]
pub fn ago(now: Timestamp, then: Timestamp) -> String {
    let passed = now.since(then);
    if passed < Duration::from_secs(1) {
        "just now".to_owned()
    } else {
        format!("{} ago", time::human(passed))
    }
}

/// `18:30 UTC`, with its date where that is not the one of today.
#[must_use]
pub fn clock(now: Timestamp, at: Timestamp) -> String {
    let (today, text) = (now.to_string(), at.to_string());
    let (day, time) = text.split_once('T').unwrap_or_default();
    let time = time.get(..5).unwrap_or_default();
    if today.starts_with(day) { format!("{time} UTC") } else { format!("{day} {time} UTC") }
}

/// `18:30 UTC, 2h from now`.
#[must_use]
pub fn ahead(now: Timestamp, at: Timestamp) -> String {
    let left = at.since(now);
    // Milliseconds of a wait say nothing.
    let left = if left < Duration::from_secs(1) { left } else { Duration::from_secs(left.as_secs()) };
    format!("{}, {} from now", clock(now, at), time::human(left))
}

/// `700 bytes`, `1.5 KiB`, `64.0 MiB`.
#[must_use]
pub fn bytes(n: u64) -> String {
    if n < 1024 {
        return count(n, "byte");
    }
    let mut unit = "KiB";
    let mut size = n;
    for larger in ["MiB", "GiB", "TiB"] {
        if size < 1024 * 1024 {
            break;
        }
        size /= 1024;
        unit = larger;
    }
    format!("{}.{} {unit}", size / 1024, size % 1024 * 10 / 1024)
}

/// Whole per cent, rounded down; nothing for a whole of nothing.
#[must_use]
pub fn percent(part: u64, whole: u64) -> Option<u64> {
    let share = u128::from(part).saturating_mul(100).checked_div(u128::from(whole))?;
    Some(u64::try_from(share).unwrap_or(u64::MAX))
}

/// `a, b, c and 4 more`.
pub(crate) fn list(items: &[String], shown: usize) -> String {
    let head = items.iter().take(shown).cloned().collect::<Vec<_>>().join(", ");
    match items.len().saturating_sub(shown) {
        0 => head,
        more => format!("{head} and {more} more"),
    }
}

/// [`list`] of the first of `total` items, which are that many or, with `true`, more.
pub(crate) fn list_of(first: &[String], shown: usize, (total, more): (u64, bool)) -> String {
    let shown = shown.min(first.len());
    let head = first.iter().take(shown).cloned().collect::<Vec<_>>().join(", ");
    match total.saturating_sub(u64::try_from(shown).unwrap_or(u64::MAX)) {
        0 => head,
        left if more => format!("{head} and more than {} more", thousands(left)),
        left => format!("{head} and {} more", thousands(left)),
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn listed(items: &[String]) -> String {
    match items.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => items.concat(),
    }
}

/// An amount of which more may be than is known; unknown is not zero.
pub(crate) fn at_least(known: Option<String>, least: bool) -> String {
    match known {
        None => "unknown".to_owned(),
        Some(known) if least => format!("at least {known}"),
        Some(known) => known,
    }
}

/// An error with its causes, on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut at = error.source();
    while let Some(cause) = at {
        let cause_text = cause.to_string();
        // Some errors show their cause already.
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        at = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plurals_and_thousands() {
        assert_eq!(count(1, "gate"), "1 gate");
        assert_eq!(count(0, "gate"), "0 gates");
        assert_eq!(count(1200, "patch"), "1,200 patches");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(thousands(999), "999");
    }

    #[test]
    fn green_gates_are_counted_among_all() {
        assert_eq!(gates_green((1, 1), 1000, &[]), "1 of 1 gate green in 1s");
        assert_eq!(gates_green((2, 3), 0, &["lint".into()]), "2 of 3 gates green in 0s; not green: lint");
    }

    #[test]
    fn sizes_and_shares() {
        assert_eq!(bytes(1), "1 byte");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(64 * 1024 * 1024), "64.0 MiB");
        assert_eq!(percent(1, 3), Some(33));
        assert_eq!(percent(u64::MAX, 1), Some(u64::MAX));
        assert_eq!(percent(1, 0), None);
    }

    #[test]
    fn a_clock_that_jumped_is_just_now() {
        let at = Timestamp::from_millis;
        assert_eq!(ago(at(1000), at(9000)), "just now");
        assert_eq!(ago(at(7_500_000), at(0)), "2h 5m ago");
    }

    #[test]
    fn a_time_of_another_day_has_its_date() {
        let at = |minutes: i64| Timestamp::from_millis(minutes * 60_000);
        assert_eq!(clock(at(5), at(65)), "01:05 UTC");
        assert_eq!(clock(at(5), at(24 * 60)), "1970-01-02 00:00 UTC");
    }

    #[test]
    fn long_lists_are_counted() {
        let items: Vec<String> = (0..5).map(|n| n.to_string()).collect();
        assert_eq!(list(&items, 3), "0, 1, 2 and 2 more");
        assert_eq!(list(&items, 9), "0, 1, 2, 3, 4");
        assert_eq!([0, 1, 2, 3].map(|n| listed(&items[..n])), ["", "0", "0 and 1", "0, 1 and 2"]);
        assert_eq!(list_of(&items, 9, (5, false)), "0, 1, 2, 3, 4");
        assert_eq!(list_of(&items, 2, (1200, false)), "0, 1 and 1,198 more");
        assert_eq!(list_of(&items, 2, (1000, true)), "0, 1 and more than 998 more");
    }
}
