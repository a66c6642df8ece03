//! Values that the configuration has of its own, and what the file holds for them.

use serde::{Deserialize, Serialize};

use super::reserved;
use crate::ids::{GoalId, PeerName};
use crate::keys::{Described, Shape, TEXT, Text};
use crate::money::Usd;
use crate::time::Timestamp;

/// An amount above zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct PositiveUsd(pub Usd);

impl Described for PositiveUsd {
    const SHAPE: Shape = Shape::Amount;
}

impl TryFrom<f64> for PositiveUsd {
    type Error = String;
    fn try_from(dollars: f64) -> Result<Self, String> {
        match Usd::from_f64(dollars) {
            Some(usd) if usd > Usd::ZERO => Ok(Self(usd)),
            _ => Err(format!("{dollars} is not an amount of dollars above zero")),
        }
    }
}

impl From<PositiveUsd> for f64 {
    fn from(usd: PositiveUsd) -> f64 {
        usd.0.as_f64()
    }
}

/// A price, zero included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Rate(pub Usd);

impl Described for Rate {
    const SHAPE: Shape = Shape::Price;
}

impl TryFrom<f64> for Rate {
    type Error = String;
    fn try_from(dollars: f64) -> Result<Self, String> {
        Usd::from_f64(dollars).map(Self).ok_or_else(|| format!("{dollars} is not a price in dollars"))
    }
}

impl From<Rate> for f64 {
    fn from(rate: Rate) -> f64 {
        rate.0.as_f64()
    }
}

impl Described for PeerName {
    const SHAPE: Shape = Shape::Text(Text {
        pattern: Some("^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$"),
        most: 32,
        filled: true,
        wrong: Some(|text| match PeerName::new(text) {
            Ok(_) => reserved(text),
            Err(error) => Some(format!("is not a peer name: {}", error.rule)),
        }),
    });
}

impl Described for GoalId {
    const SHAPE: Shape = Shape::Text(Text {
        // Seven or more hex digits alone are no id: they would look like a commit.
        pattern: Some("^(?![0-9a-f]{7,64}$)[a-z0-9][a-z0-9._-]{0,63}$"),
        most: 64,
        filled: true,
        wrong: Some(|text| match GoalId::new(text) {
            Ok(_) => None,
            Err(error) => Some(format!("is not a valid goal id: {}", error.rule)),
        }),
    });
}

impl Described for Timestamp {
    const SHAPE: Shape = Shape::Text(Text {
        pattern: Some("^\\d{4}-\\d{2}-\\d{2}[Tt ]\\d{2}:\\d{2}:\\d{2}(\\.\\d+)?([Zz]|[+-]\\d{2}:\\d{2})$"),
        wrong: Some(|text| {
            let form = "is not a time of the form `2026-03-04T18:00:00Z` or, with its distance from UTC, `2026-03-04T18:00:00+01:00`";
            Timestamp::parse(text).err().map(|_| form.to_owned())
        }),
        ..TEXT
    });
}
