//! Row 56: a loop that gets nowhere stops, whatever its gates say; one that gets on does not.

use peers_core::machine::Effect;
use peers_model::BugId;
use peers_model::outcome::{ApiClass, ExitClass, StopReason};
use peers_model::record::Record;
use peers_model::review::SoftRule;

use crate::bench::Bench;
use crate::world::{Gate, Habit, Turn, source};

/// Two peers; three ticks each may get nowhere.
fn idle(gate: Gate) -> Bench {
    let mut bench = Bench::bare("ann bob");
    bench.gate("own", gate);
    bench.cfg.idle_after = 3;
    bench.cfg.max_ticks = Some(60);
    bench
}

fn stops_after(bench: &mut Bench, ticks: usize) -> String {
    let reason = bench.run();
    assert_eq!((reason, bench.ticks().len()), (StopReason::StuckIdle, ticks));
    let Some(Record::Exit(exit)) = bench.log.last() else { panic!("no exit record") };
    exit.detail.clone()
}

fn whitespace(n: usize) -> Turn {
    Turn::handoff(&format!("space {n}"))
}

/// A turn that leaves the tree as it is and gives the review `docs-read`.
fn reviews(pass: bool) -> Turn {
    Turn::review("docs-read", pass)
}

/// A turn that leaves the tree as it is and files a bug.
fn reports(severity: &str, n: usize) -> Turn {
    let body = format!(
        "## Bug-Report\n{{\"id\": \"B{n}\", \"severity\": \"{severity}\", \"title\": \"t\", \
         \"location\": \"src/a.rs:1\", \"description\": \"d\"}}\n\n"
    );
    Turn::says(&body, &format!("Bug-Report: B{n}\n"))
}

#[test]
fn row_56_a_red_proof_that_nobody_mends_stops_at_the_sixth_tick_and_names_the_gate() {
    let mut bench = idle(Gate::ProofRed);
    bench.habit = Habit::Good("start");
    let said = stops_after(&mut bench, 7);
    assert_eq!(
        said,
        "6 turns in a row made no progress; missing: `own` passes in the work tree and fails in a clean checkout; \
         any peer can fix that",
        "the skeptic's turn got on"
    );
}

#[test]
fn row_56_a_review_that_is_never_given_stops_at_the_sixth_tick_and_names_who_is_asked() {
    let mut bench = idle(Gate::Green);
    bench.soft("docs-read", SoftRule::Other { needed: 1 });
    bench.habit = Habit::NoReview("start");
    let said = stops_after(&mut bench, 6);
    assert_eq!(said, "6 turns in a row made no progress; missing: the review `docs-read` by ann or bob");
}

#[test]
fn row_56_an_objection_that_nobody_answers_stops_at_the_sixth_tick_and_names_who_objects() {
    let mut bench = idle(Gate::Green);
    bench.soft("docs-read", SoftRule::Other { needed: 1 });
    bench.play((0..60).map(|_| reviews(false)));
    let said = stops_after(&mut bench, 6);
    assert!(said.contains("missing: `docs-read`: ") && said.contains(" objects"), "{said}");
}

#[test]
fn row_56_new_files_alone_hold_a_green_loop_for_four_times_as_many_ticks() {
    let mut bench = idle(Gate::Green);
    bench.soft("docs-read", SoftRule::Other { needed: 1 });
    bench.play((0..60).map(whitespace));
    let said = stops_after(&mut bench, 24);
    assert!(
        said.starts_with("24 turns in a row changed files and nothing else, with every gate green"),
        "{said}"
    );
}

#[test]
fn row_56_files_that_were_there_before_and_bugs_that_do_not_block_are_no_progress() {
    let there_and_back = |n: usize| Turn::handoff(["one", "two"][n % 2]);
    let mut bench = idle(Gate::Red);
    bench.play((0..60).map(there_and_back));
    stops_after(&mut bench, 8);

    let mut bench = idle(Gate::Red);
    bench.play((0..60_usize).map(|n| {
        let mut turn = reports("low", n);
        turn.open_bugs = vec![BugId::new(format!("B-{n}")).unwrap()];
        turn
    }));
    stops_after(&mut bench, 6);
}

#[test]
fn row_56_what_is_uncommitted_or_a_document_is_work_while_a_gate_is_red() {
    let documents = |n: usize| Turn::handoff(&format!("docs {n}")).diff(vec![source("docs/a.md")]);
    let leaves = |n: usize| Turn::says("", "").leaves(&format!("draft {n}"));
    for work in [whitespace, documents, leaves] {
        let mut bench = idle(Gate::Red);
        bench.plays((0..60).map(work));
    }
}

#[test]
fn row_56_a_passed_review_every_fifth_tick_keeps_a_green_loop_going() {
    let mut bench = idle(Gate::Green);
    bench.soft("docs-read", SoftRule::Both { needed: 2 });
    let turn = |n: usize| if n % 5 == 4 { reviews(true) } else { whitespace(n) };
    bench.plays((0..60).map(turn));
}

#[test]
fn row_56_a_blocking_bug_that_is_opened_or_closed_is_progress_once() {
    let mut bench = idle(Gate::Red);
    bench.play((0..40).map(|n| {
        // One is opened in every fourth tick, and closed two ticks later; the fourth time is the last.
        let opened = (n / 4 + 1).min(4);
        let closed = ((n + 2) / 4).min(4);
        let mut turn = if n % 4 == 0 { reports("high", 1) } else { Turn::says("", "") };
        (turn.bugs_reported, turn.bugs_closed) = (opened, closed);
        turn
    }));
    // The last is closed in tick 15; six more got nowhere.
    stops_after(&mut bench, 21);
}

#[test]
fn row_56_more_green_gates_than_ever_are_progress_and_a_gate_that_comes_and_goes_is_not() {
    let mut bench = idle(Gate::Red);
    bench.gate("lint", Gate::At("clean"));
    bench.gate("docs", Gate::At("clean"));
    // Each of these trees is known by the second round.
    let round = |n: usize| Turn::handoff(["clean", "start"][n % 2]);
    bench.play((0..60).map(round));
    stops_after(&mut bench, 7);
}

#[test]
fn row_56_ticks_that_count_for_nobody_are_no_standstill() {
    let limited = || Turn::fails(ExitClass::Nonzero, ApiClass::UsageCap);
    let mut bench = idle(Gate::Red);
    bench.cfg.max_wait_s = 10_000_000;
    bench.plays((0..60).map(|n| if n % 2 == 0 { limited() } else { whitespace(n) }));

    let mut bench = idle(Gate::Red);
    bench.cfg.max_wait_s = 10_000_000;
    bench.play((0..20).map(|_| limited()));
    stops_after(&mut bench, 26);
}

#[test]
fn row_56_zero_never_stops_and_a_third_peer_has_its_share() {
    let mut bench = idle(Gate::Red);
    bench.cfg.idle_after = 0;
    assert_eq!(bench.run(), StopReason::MaxTicks);

    let mut bench = Bench::new("ann bob cyd SPARE");
    bench.cfg.idle_after = 3;
    stops_after(&mut bench, 9);
}

#[test]
fn row_56_half_of_the_way_every_prompt_says_so() {
    let mut bench = idle(Gate::Green);
    bench.soft("docs-read", SoftRule::Other { needed: 1 });
    bench.habit = Habit::NoReview("start");
    stops_after(&mut bench, 6);
    let prompts: Vec<bool> = bench
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::RunPeer(run) => {
                Some(run.prompt.contains("Missing: the review `docs-read` by ann or bob"))
            }
            _ => None,
        })
        .collect();
    assert_eq!(prompts, [false, false, false, true, true, true]);
}

#[test]
fn row_56_work_that_is_undone_each_time_is_none() {
    let mut bench = idle(Gate::Red);
    bench.cfg.rules.dry_run = true;
    bench.cfg.max_ticks = Some(12);
    assert_eq!(bench.run(), StopReason::MaxTicks, "a dry run shows turns, and nothing stays of any");
}
