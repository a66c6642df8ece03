//! What a loop used, of what, and how fast.

use peers_model::{Timestamp, Tokens, Usd};
use serde::{Serialize, Serializer};

use crate::budget::{Amount, BudgetRow, BudgetView};
use crate::ticks::TickRow;

/// What was used of one cap.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Meter {
    /// So much, if that is known: ticks, seconds, tokens or dollars.
    #[serde(serialize_with = "number")]
    pub used: Option<f64>,
    /// The cap; absent where there is none, or where it cannot be read.
    #[serde(serialize_with = "number")]
    pub max: Option<f64>,
    /// Whole per cent.
    pub pct: Option<u64>,
    /// Seconds until it is reached if the loop goes on as it does.
    pub eta_s: Option<u64>,
}

/// What was used of each cap of the whole loop.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Meters {
    /// Ticks.
    pub iterations: Meter,
    /// Seconds that peers and gates ran.
    pub runtime_s: Meter,
    /// Tokens.
    pub tokens: Meter,
    /// Dollars.
    pub usd: Meter,
    /// What of its tightest cap is used, be it one of these, of failures, of one peer or since progress; whole per
    /// cent.
    pub most_pct: Option<u64>,
}

/// What a loop cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cost {
    /// Money, or unknown.
    pub usd: Option<Usd>,
    /// Money in an hour, while it runs and if that is known.
    pub usd_per_h: Option<Usd>,
    /// Tokens, or unknown.
    pub tokens: Option<Tokens>,
    /// What is known of either is a lower bound.
    pub at_least: bool,
}

/// What a loop uses in one second of the wall clock, by its newest ticks.
#[derive(Debug, Default)]
pub(super) struct Burn {
    ticks: Option<f64>,
    ms: Option<f64>,
    tokens: Option<f64>,
    micros: Option<f64>,
}

impl Burn {
    /// `ticks` are the newest of the run that runs, oldest first.
    pub(super) fn of(ticks: &[&TickRow], running: bool) -> Self {
        let (Some(first), Some(last)) = (ticks.first().filter(|_| running), ticks.last()) else {
            return Self::default();
        };
        let began = first.ts.as_millis().saturating_sub(i64::try_from(first.took_ms()).unwrap_or(i64::MAX));
        let passed = last.ts.since(Timestamp::from_millis(began)).as_secs_f64();
        let rate = |sum: u64| (passed > 0.0).then(|| float(sum) / passed);
        let sum = |of: fn(&TickRow) -> Option<u64>| {
            let known: Vec<u64> = ticks.iter().filter_map(|tick| of(tick)).collect();
            (!known.is_empty()).then(|| known.into_iter().fold(0, u64::saturating_add)).and_then(rate)
        };
        Self {
            ticks: sum(|_| Some(1)),
            ms: sum(|tick| Some(tick.took_ms())),
            tokens: sum(|tick| Some(tick.tokens?.0)),
            micros: sum(|tick| Some(tick.usd?.as_micros())),
        }
    }
}

pub(super) fn cost(budget: &BudgetView, burn: &Burn) -> Cost {
    let row = |key: &str| budget.rows.iter().find(|row| row.key == key);
    let (money, tokens) = (row("max_usd"), row("max_tokens"));
    let known = |row: Option<&BudgetRow>| row.and_then(BudgetRow::known).map(Amount::raw);
    Cost {
        usd: known(money).map(Usd::from_micros),
        usd_per_h: burn.micros.and_then(|micros| Usd::from_f64(micros * 3600.0 / 1e6)),
        tokens: known(tokens).map(Tokens),
        at_least: [money, tokens].into_iter().flatten().any(|row| row.at_least),
    }
}

pub(super) fn meters(budget: &BudgetView, burn: &Burn) -> Meters {
    let meter = |key: &str, unit: f64, rate: Option<f64>| {
        let row = budget.rows.iter().find(|row| row.key == key);
        let used = row.and_then(BudgetRow::known).map(|amount| float(amount.raw()));
        let max = row.and_then(|row| row.cap).map(|cap| float(cap.raw()));
        let left = used.zip(max).map(|(used, max)| (max - used).max(0.0));
        let eta = left.zip(rate.filter(|rate| *rate > 0.0)).map(|(left, rate)| left / rate);
        Meter {
            // Of seconds only whole ones are of use.
            used: used.map(|used| if key == "max_runtime_s" { (used / unit).floor() } else { used / unit }),
            max: max.map(|max| max / unit),
            pct: row.and_then(BudgetRow::percent),
            eta_s: eta.and_then(whole),
        }
    };
    Meters {
        iterations: meter("max_iterations", 1.0, burn.ticks),
        runtime_s: meter("max_runtime_s", 1000.0, burn.ms),
        tokens: meter("max_tokens", 1.0, burn.tokens),
        usd: meter("max_usd", 1e6, burn.micros),
        most_pct: budget.rows.iter().filter_map(BudgetRow::percent).max(),
    }
}

/// A whole number as such.
#[expect(clippy::ref_option, reason = "the signature that serde asks for")]
fn number<S: Serializer>(amount: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match amount {
        None => serializer.serialize_none(),
        Some(amount) if amount.fract() == 0.0 && (0.0..=9e15).contains(amount) =>
        {
            #[expect(
                clippy::as_conversions,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the range is checked"
            )]
            serializer.serialize_u64(*amount as u64)
        }
        Some(amount) => serializer.serialize_f64(*amount),
    }
}

/// For rates and JSON only.
fn float(n: u64) -> f64 {
    #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "display only")]
    let float = n as f64;
    float
}

/// Whole seconds of a year at most: what is further away says nothing.
fn whole(seconds: f64) -> Option<u64> {
    const YEAR: f64 = 365.0 * 86400.0;
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked"
    )]
    let whole = (0.0..=YEAR).contains(&seconds).then_some(seconds as u64);
    whole
}
