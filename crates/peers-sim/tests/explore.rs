//! The simulator's schedules. Prints how many were tried.

use std::time::Instant;

use peers_sim::explore::{Report, nested, one, quiet_crashes};
use peers_sim::night::nights;
use peers_sim::scenario::catalogue;

/// Every so many pairs of faults are tried; all of them would take hours.
const STRIDE: usize = 499;

fn verdict(what: &str, report: &Report, began: Instant) {
    use std::io::Write as _;
    let line = format!("{what}: {} schedules in {:.1} s", report.schedules, began.elapsed().as_secs_f32());
    // Past the test harness's capture: how many were tried is to be seen in any run.
    let _shown = writeln!(std::io::stderr(), "{line}");
    assert!(
        report.failures.is_empty(),
        "{} of {}:\n{}",
        report.failures.len(),
        report.schedules,
        report.failures.join("\n")
    );
}

#[test]
fn every_scenario_ends_as_it_must_when_nothing_fails() {
    quiet_crashes();
    let began = Instant::now();
    let mut report = Report::default();
    for scenario in catalogue() {
        one(&scenario, &[], &mut report);
    }
    verdict("undisturbed", &report, began);
}

#[test]
fn every_single_fault_and_a_sample_of_pairs_leave_the_invariants_intact() {
    quiet_crashes();
    let began = Instant::now();
    let mut report = Report::default();
    for scenario in catalogue() {
        report.join(nested(&scenario, None, STRIDE, 0));
    }
    verdict("every single fault, and pairs", &report, began);
}

/// The nights that are gone through: this many, or as many as `PEERS_NIGHTS` says.
const NIGHTS: u64 = 20;

#[test]
fn nights_of_limits_hangs_crashes_and_forgeries_end_as_they_were_asked_to() {
    quiet_crashes();
    let began = Instant::now();
    let asked = std::env::var("PEERS_NIGHTS").ok().map(|n| n.parse().unwrap());
    let report = nights(0..asked.unwrap_or(NIGHTS));
    verdict("nights", &report, began);
}
