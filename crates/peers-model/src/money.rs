//! Money and token counts.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// US dollars as whole micro-dollars. Serialised as a JSON number with at most six decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Usd(u64);

impl Usd {
    /// No money.
    pub const ZERO: Self = Self(0);

    /// The most that is told: a billion dollars. Nothing adds up to more, so that what is written can be read.
    pub const MAX: Self = Self(1_000_000_000_000_000);

    /// From micro-dollars, [`MAX`](Self::MAX) at most.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        if micros > Self::MAX.0 { Self::MAX } else { Self(micros) }
    }

    /// In micro-dollars.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// From a float as tools report it. `None` when it is negative, not finite or above a billion.
    #[must_use]
    pub fn from_f64(dollars: f64) -> Option<Self> {
        if !dollars.is_finite() || !(0.0..=1e9).contains(&dollars) {
            return None;
        }
        #[expect(
            clippy::as_conversions,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range was checked just above; the value is at most 1e15"
        )]
        Some(Self((dollars * 1e6).round() as u64))
    }

    /// From what an operator types: `20`, `2.5` or `$20`.
    ///
    /// # Errors
    /// A text that is no amount above zero and up to a billion.
    pub fn typed(text: &str) -> Result<Self, String> {
        let amount =
            text.strip_prefix('$').unwrap_or(text).parse().map_err(|_| "not an amount of dollars")?;
        Self::from_f64(amount)
            .filter(|usd| *usd > Self::ZERO)
            .ok_or_else(|| "must be above zero and at most a billion".to_owned())
    }

    /// As an operator types it: `2.50`.
    #[must_use]
    pub fn digits(self) -> String {
        self.to_string().split_off(1)
    }

    /// As a float, for JSON and display only.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "display only")]
        let micros = self.0 as f64;
        micros / 1e6
    }
}

impl Add for Usd {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::from_micros(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Usd {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Usd {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Usd {
    /// `$1.25`; four decimals below one cent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 > 0 && self.0 < 10_000 {
            write!(f, "${}.{:04}", self.0 / 1_000_000, self.0 % 1_000_000 / 100)
        } else {
            write!(f, "${}.{:02}", self.0 / 1_000_000, self.0 % 1_000_000 / 10_000)
        }
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_f64(self.as_f64())
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(d)?;
        Self::from_f64(dollars)
            .ok_or_else(|| serde::de::Error::custom(format!("{dollars} is not an amount of dollars")))
    }
}

/// A number of model tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tokens(pub u64);

impl Add for Tokens {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl fmt::Display for Tokens {
    /// `1,234,567`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&thousands(self.0))
    }
}

/// `1,234,567`.
#[must_use]
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sum_is_more_than_can_be_read_again() {
        let most = Usd::from_f64(9e8).unwrap();
        for sum in [most + most, Usd::from_micros(u64::MAX), [most; 9].into_iter().sum()] {
            assert_eq!(sum, Usd::MAX);
            assert_eq!(serde_json::from_str::<Usd>(&serde_json::to_string(&sum).unwrap()).unwrap(), sum);
        }
    }

    #[test]
    fn tokens_are_shown_in_thousands_and_kept_as_numbers() {
        let shown: Vec<String> = [0, 999, 1000, 1_234_567].map(|n| Tokens(n).to_string()).into();
        assert_eq!(shown, ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(serde_json::to_string(&Tokens(1_234_567)).unwrap(), "1234567");
    }

    #[test]
    fn dollars_survive_json_exactly() {
        for micros in [0, 1, 999_999, 1_000_000, 123_456_789, 999_999_999_999] {
            let usd = Usd::from_micros(micros);
            let back: Usd = serde_json::from_str(&serde_json::to_string(&usd).unwrap()).unwrap();
            assert_eq!(back, usd);
        }
    }

    #[test]
    fn nonsense_amounts_are_refused() {
        for bad in [f64::NAN, f64::INFINITY, -0.01, 1e12] {
            assert_eq!(Usd::from_f64(bad), None);
        }
    }
}
