//! The simulator's schedules. Prints how many were tried.
//!
//! A run of the tests takes a sample. `PEERS_SCHEDULES=full` tries every single fault, and `PEERS_NIGHTS=N` goes through
//! so many nights.

use std::num::NonZero;
use std::sync::Mutex;
use std::time::Instant;

use peers_sim::explore::{Report, Sample, faults, one, quiet_crashes};
use peers_sim::night::nights;
use peers_sim::run::run;
use peers_sim::scenario::catalogue;

/// What a run of the tests tries.
const SAMPLE: Sample = Sample { singles: 7, pairs: 499 };
/// What `PEERS_SCHEDULES=full` tries.
const FULL: Sample = Sample { singles: 1, pairs: 499 };
/// The nights that are gone through unless `PEERS_NIGHTS` says otherwise.
const NIGHTS: u64 = 4;

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
fn the_second_turn_that_takes_from_the_tests_is_reverted_here_too() {
    let mut all = catalogue().into_iter();
    let outcome = run(&all.find(|scenario| scenario.name == "reverted").unwrap(), &[]);
    let reverts = outcome.world.repository().with(|repo| {
        let said = repo.commits.values().filter(|commit| commit.message.starts_with("Anti-cheating revert"));
        said.count()
    });
    assert_eq!(reverts, 1);
}

#[test]
fn single_faults_and_pairs_of_them_leave_the_invariants_intact() {
    quiet_crashes();
    let began = Instant::now();
    let full = std::env::var("PEERS_SCHEDULES").is_ok_and(|asked| asked == "full");
    let sample = if full { FULL } else { SAMPLE };
    let (left, report) = (Mutex::new(catalogue().into_iter()), Mutex::new(Report::default()));
    let work = || {
        loop {
            let Some(scenario) = left.lock().unwrap().next() else { return };
            let found = faults(&scenario, sample);
            report.lock().unwrap().join(found);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(work);
        }
    });
    verdict("single faults, and pairs", &report.into_inner().unwrap(), began);
}

#[test]
fn nights_of_limits_hangs_crashes_and_forgeries_end_as_they_were_asked_to() {
    quiet_crashes();
    let began = Instant::now();
    let asked = std::env::var("PEERS_NIGHTS").ok().map(|n| n.parse().unwrap());
    verdict("nights", &nights(0..asked.unwrap_or(NIGHTS)), began);
}
