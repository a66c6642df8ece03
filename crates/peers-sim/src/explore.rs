//! Tries schedules: points, faults and fates of the peer, one by one and in pairs.

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
fn hits(at: usize, kind: Kind, alive: bool) -> impl Iterator<Item = Hit> {
    let at = u64::try_from(at).unwrap_or(u64::MAX);
    let fates: &[Orphan] = if alive { &Orphan::ALL } else { &[Orphan::Dies] };
    let of = move |fault: &Fault| {
        fates.iter().map({
            let fault = *fault;
            move |orphan| Hit { at, fault, orphan: *orphan }
        })
    };
    kind.faults().iter().flat_map(of)
}

/// Which schedules are tried: every n-th one.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// n for the single faults; 1 = all.
    pub singles: usize,
    /// n for the pairs that begin with one of those; 1 = all, which takes hours.
    pub pairs: usize,
}

/// A sample of the single faults of the first process, and of the pairs that each makes with those of the second.
#[must_use]
pub fn faults(scenario: &Scenario, sample: Sample) -> Report {
    let mut report = Report::default();
    let points = one(scenario, &[], &mut report).into_iter().next().unwrap_or_default();
    let singles = points.into_iter().enumerate().flat_map(|(at, (kind, alive))| hits(at, kind, alive));
    let mut pairs = 0_usize;
    for hit in singles.step_by(sample.singles.max(1)) {
        let passed = one(scenario, &[hit], &mut report).into_iter().nth(1).unwrap_or_default();
        for (again, (kind, alive)) in passed.into_iter().enumerate() {
            for next in hits(again, kind, alive) {
                pairs += 1;
                if pairs.is_multiple_of(sample.pairs.max(1)) {
                    one(scenario, &[hit, next], &mut report);
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
