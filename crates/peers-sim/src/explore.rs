//! Tries schedules: every point, every fault, every fate of the peer; and pairs of them.

use crate::check::check;
use crate::fault::{Fault, Hit, Kind, Orphan};
use crate::run::run;
use crate::scenario::Scenario;

/// What an exploration did.
#[derive(Debug, Default, Clone)]
pub struct Report {
    /// Schedules tried.
    pub schedules: u64,
    /// What failed: scenario, schedule, what is wrong.
    pub failures: Vec<String>,
}

impl Report {
    /// Takes another report in.
    pub fn join(&mut self, other: Self) {
        self.schedules += other.schedules;
        self.failures.extend(other.failures);
    }
}

/// Tries one schedule. Returns the points that each process passed.
pub fn one(scenario: &Scenario, hits: &[Hit], report: &mut Report) -> Vec<Vec<(Kind, bool)>> {
    let mut outcome = run(scenario, hits);
    report.schedules += 1;
    let mut wrong = check(scenario, &mut outcome);
    let reason = outcome.reason.as_ref().map(ToString::to_string).unwrap_or_default();
    if hits.is_empty() && reason != scenario.ends {
        wrong.push(format!("ends with `{reason}` instead of `{}`", scenario.ends));
    }
    if !wrong.is_empty() && report.failures.len() < 20 {
        report.failures.push(format!("{}: {hits:?}: {} (ended `{reason}`)", scenario.name, wrong.join("; ")));
    }
    outcome.points
}

/// The hits that differ at a point.
fn hits(at: usize, kind: Kind, alive: bool, only: Option<&'static [Fault]>) -> Vec<Hit> {
    let at = u64::try_from(at).unwrap_or(u64::MAX);
    let fates: &[Orphan] = if alive { &Orphan::ALL } else { &[Orphan::Dies] };
    let faults = kind.faults().iter().filter(|f| only.is_none_or(|o| o.contains(f)));
    faults
        .flat_map(|fault| fates.iter().map(move |orphan| Hit { at, fault: *fault, orphan: *orphan }))
        .collect()
}

/// Every point x fault x fate, once.
#[must_use]
pub fn single(scenario: &Scenario) -> Report {
    let mut report = Report::default();
    let points = one(scenario, &[], &mut report).into_iter().next().unwrap_or_default();
    for (at, (kind, alive)) in points.into_iter().enumerate() {
        for hit in hits(at, kind, alive, None) {
            one(scenario, &[hit], &mut report);
        }
    }
    report
}

/// Pairs of faults: every one of the first process, with those of the second. `stride` thins the
/// pairs: 1 = all; n = every n-th, at rotating places, starting at `seed`.
#[must_use]
pub fn nested(scenario: &Scenario, only: Option<&'static [Fault]>, stride: usize, seed: usize) -> Report {
    let mut report = Report::default();
    let points = one(scenario, &[], &mut report).into_iter().next().unwrap_or_default();
    let mut turn = seed;
    for (at, (kind, alive)) in points.into_iter().enumerate() {
        for hit in hits(at, kind, alive, only) {
            let passed = one(scenario, &[hit], &mut report);
            for (again, (kind, alive)) in
                passed.into_iter().nth(1).unwrap_or_default().into_iter().enumerate()
            {
                for next in hits(again, kind, alive, only) {
                    turn += 1;
                    if turn.is_multiple_of(stride.max(1)) {
                        one(scenario, &[hit, next], &mut report);
                    }
                }
            }
        }
    }
    report
}

/// Silences the panics that stand for crashes, and only those.
pub fn quiet_crashes() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.payload().downcast_ref::<crate::fault::Crash>().is_none() {
            before(info);
        }
    }));
}
