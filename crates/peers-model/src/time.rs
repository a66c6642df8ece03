//! Wall time, monotonic time and human durations. The two clocks do not convert into each other.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// The last moment that RFC 3339 can say, in milliseconds, within the range of calendars.
const MOST: i64 = 253_402_207_200_000;

/// A point in wall time, milliseconds since the Unix epoch. Serialised as RFC 3339 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From milliseconds since the Unix epoch.
    #[must_use]
    pub const fn from_millis(ms: i64) -> Self {
        if ms > MOST {
            return Self(MOST);
        }
        Self(if ms < -MOST { -MOST } else { ms })
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Parses RFC 3339, any offset.
    ///
    /// # Errors
    /// [`InvalidTime`] when the text is not RFC 3339.
    pub fn parse(text: &str) -> Result<Self, InvalidTime> {
        text.parse::<jiff::Timestamp>()
            .map(|t| Self(t.as_millisecond()))
            .map_err(|_| InvalidTime(text.chars().take(64).collect()))
    }

    /// This instant moved forward.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self::from_millis(self.0.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }

    /// How much later this is than `earlier`; zero when it is not later (clocks jump).
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(t) => write!(f, "{t:.3}"),
            Err(_) => write!(f, "1970-01-01T00:00:00.000Z"),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// A text that is no RFC 3339 time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not an RFC 3339 time")]
pub struct InvalidTime(pub String);

/// A point on the monotonic clock that also counts suspend (boot time), in milliseconds.
/// Only differences within one boot mean anything; it is never written to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Mono(u64);

impl Mono {
    /// From milliseconds of the boot-time clock.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms)
    }

    /// Milliseconds of the boot-time clock.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// This instant moved forward.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX)))
    }

    /// How much later this is than `earlier`; zero when it is not later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// Formats a duration for people: `850ms`, `12s`, `3m 20s`, `2h 5m`, `4d 1h`.
#[must_use]
pub fn human(duration: Duration) -> String {
    let ms = duration.as_millis();
    let s = duration.as_secs();
    if ms < 1000 {
        format!("{ms}ms")
    } else if s < 60 {
        format!("{s}s")
    } else if s < 3600 {
        if s.is_multiple_of(60) { format!("{}m", s / 60) } else { format!("{}m {}s", s / 60, s % 60) }
    } else if s < 86_400 {
        if s % 3600 / 60 == 0 {
            format!("{}h", s / 3600)
        } else {
            format!("{}h {}m", s / 3600, s % 3600 / 60)
        }
    } else if s % 86_400 / 3600 == 0 {
        format!("{}d", s / 86_400)
    } else {
        format!("{}d {}h", s / 86_400, s % 86_400 / 3600)
    }
}

/// Parses `90`, `90s`, `15m`, `2h`, `1d`, `1h30m`: whole numbers, seconds when no unit is given.
///
/// # Errors
/// [`InvalidDuration`] on anything else, on zero length input and on overflow.
pub fn parse_duration(text: &str) -> Result<Duration, InvalidDuration> {
    let bad = || InvalidDuration(text.chars().take(64).collect());
    let text_trim = text.trim();
    let mut total: u64 = 0;
    let mut digits = String::new();
    let mut any = false;
    for c in text_trim.chars() {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        let unit = match c {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            _ => return Err(bad()),
        };
        let n: u64 = digits.parse().map_err(|_| bad())?;
        digits.clear();
        any = true;
        total = n.checked_mul(unit).and_then(|n| total.checked_add(n)).ok_or_else(bad)?;
    }
    if !digits.is_empty() {
        if any {
            return Err(bad());
        }
        total = digits.parse().map_err(|_| bad())?;
        any = true;
    }
    if any { Ok(Duration::from_secs(total)) } else { Err(bad()) }
}

/// A text that is no duration.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a duration; write it like `90s`, `15m`, `2h` or `1h30m`")]
pub struct InvalidDuration(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_round_trip_as_rfc_3339() {
        let t = Timestamp::from_millis(1_763_632_800_123);
        assert_eq!(t.to_string(), "2025-11-20T10:00:00.123Z");
        assert_eq!(Timestamp::parse(&t.to_string()).unwrap(), t);
        assert!(Timestamp::parse("yesterday").is_err());
    }

    #[test]
    fn a_clock_that_jumps_back_gives_zero_not_a_panic() {
        assert_eq!(Timestamp::from_millis(5).since(Timestamp::from_millis(9)), Duration::ZERO);
        assert_eq!(Mono::from_millis(5).since(Mono::from_millis(9)), Duration::ZERO);
    }

    #[test]
    fn durations_read_and_print_as_people_write_them() {
        assert_eq!(parse_duration("1h30m").unwrap(), Duration::from_mins(90));
        assert_eq!(parse_duration("90").unwrap(), Duration::from_secs(90));
        for bad in ["", "h", "1h30", "-1s", "1w", "99999999999999999999s"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
        assert_eq!(human(Duration::from_mins(90)), "1h 30m");
        assert_eq!(human(Duration::from_millis(20)), "20ms");
    }
}
