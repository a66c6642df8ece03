//! How many bugs are open.

use peers_model::bug::Severity;
use serde::{Deserialize, Serialize};

use super::Ledger;

/// The bugs that are open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// By severity.
    pub open: OpenBugs,
    /// Those that keep the gate red.
    pub blocking: u64,
}

/// Open bugs by severity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the words of the severities")]
pub struct OpenBugs {
    pub crit: u64,
    pub high: u64,
    pub med: u64,
    pub low: u64,
    pub info: u64,
}

impl Counts {
    /// Counts what a ledger holds.
    #[must_use]
    pub fn of(ledger: &Ledger) -> Self {
        let mut open = OpenBugs::default();
        for bug in ledger.bugs.values().filter(|bug| bug.open.is_some()) {
            *match bug.severity {
                Severity::Crit => &mut open.crit,
                Severity::High => &mut open.high,
                Severity::Med => &mut open.med,
                Severity::Low => &mut open.low,
                Severity::Info => &mut open.info,
            } += 1;
        }
        Self { open, blocking: u64::try_from(ledger.blocking_open().len()).unwrap_or(u64::MAX) }
    }

    /// All that are open.
    #[must_use]
    pub fn total(&self) -> u64 {
        let OpenBugs { crit, high, med, low, info } = self.open;
        [crit, high, med, low, info].into_iter().fold(0, u64::saturating_add)
    }
}
