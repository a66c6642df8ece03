//! The adversarial turn before `complete`.

use peers_model::outcome::{ApiClass, ExitClass, StopReason};
use peers_model::record::SkepticVerdict;

use crate::bench::Bench;
use crate::world::{Gate, Habit, Turn, handoff_text, peer, source};

const FIVE: &str = "## Skeptic\n- a race\n- an overflow\n- a leak\n- a timeout\n- a panic\n\n";

fn high_bug() -> Turn {
    Turn::says(
        "## Bug-Report\n{\"id\": \"B1\", \"severity\": \"high\", \"title\": \"t\"}\n\n",
        "Bug-Report: B1\n",
    )
}

#[test]
fn row_53_green_at_the_start_takes_one_skeptic_tick() {
    let mut bench = Bench::green();
    assert_eq!(bench.run(), StopReason::Complete);
    assert_eq!(bench.ticks().len(), 1);
    assert!(bench.started()[0].skeptic);
    assert_eq!(bench.tick(1).skeptic, Some(SkepticVerdict::Clean));
    assert!(bench.prompts()[0].contains("Skeptic: clean"), "the prompt asks for it");
    let proof = bench.exits()[0].proof.as_ref().unwrap();
    assert_eq!((proof.tree.clone(), proof.exempt.len()), (crate::world::tree("start"), 0));
}

#[test]
fn row_53_the_skeptic_is_whoever_did_not_write_the_newest_change() {
    let mut bench = Bench::bare("ann bob cyd");
    bench.gate("tests-pass", Gate::At("good"));
    bench.habit = Habit::Good("good");
    // `ann` makes it green; `bob` and `cyd` are the others.
    assert_eq!(bench.run(), StopReason::Complete);
    assert_eq!(bench.order(), "ann bob");
    assert_eq!(bench.m.state.last_product_author, Some(peer("ann")));
    // When only the author is left, he has to do.
    let mut bench = Bench::bare("ann bob");
    bench.cfg.rules.continue_without_peer = true;
    bench.cfg.rules.max_retries = 9;
    bench.cfg.rules.recovery_interval = 0;
    bench.gate("tests-pass", Gate::At("good"));
    bench.habit = Habit::Good("good");
    bench.play([Turn::says("", "")]);
    bench.play((0..3).map(|_| Turn::fails(ExitClass::Nonzero, ApiClass::None)));
    assert_eq!(bench.run(), StopReason::Complete);
    assert_eq!(bench.order(), "ann bob bob bob ann ann");
}

#[test]
fn row_53_two_rounds_are_by_two_peers() {
    let mut bench = Bench::green();
    bench.cfg.rules.skeptic_rounds = 2;
    assert_eq!(bench.run(), StopReason::Complete);
    assert_eq!(bench.order(), "ann bob");
    assert!(bench.started().iter().all(|s| s.skeptic));
}

#[test]
fn row_53_without_a_skeptic_the_proof_comes_at_once() {
    let mut bench = Bench::green();
    bench.cfg.rules.skeptic_rounds = 0;
    assert_eq!(bench.run(), StopReason::Complete);
    assert!(bench.ticks().is_empty());
}

#[test]
fn row_54_a_turn_without_a_usable_verdict_arms_the_skeptic_again() {
    let clean = handoff_text(FIVE, "Skeptic: clean\n");
    let four = FIVE.replace("- a panic\n", "");
    let cases = [
        ("crashes", Turn::fails(ExitClass::Nonzero, ApiClass::None)),
        ("times out", Turn::fails(ExitClass::Idle, ApiClass::None)),
        ("is rate-limited", Turn::fails(ExitClass::Nonzero, ApiClass::Transient)),
        ("commits nothing", Turn::nothing()),
        ("says nothing of it", Turn::says("", "")),
        ("has a section alone", Turn::says(FIVE, "")),
        ("has a trailer alone", Turn::says("", "Skeptic: clean\n")),
        ("names four failure modes", Turn::says(&four, "Skeptic: clean\n")),
        ("takes it back", Turn::says(FIVE, "Skeptic: clean\nSkeptic: unsure\n")),
        (
            "does not hand off",
            Turn::nothing().and_commit("start", &clean.replace("Peer-Status: handoff\n", "")),
        ),
    ];
    for (what, turn) in cases {
        let mut bench = Bench::green();
        bench.play([turn]);
        assert_eq!(bench.run(), StopReason::Complete, "{what}");
        assert_eq!(bench.ticks().len(), 2, "{what}");
        assert!(bench.started()[1].skeptic, "{what}: asked again");
        assert_eq!(bench.tick(1).skeptic, Some(SkepticVerdict::Missing), "{what}");
    }
}

#[test]
fn row_54_three_of_them_are_stuck() {
    let turns: [fn() -> Turn; 2] =
        [|| Turn::says("", ""), || Turn::fails(ExitClass::Nonzero, ApiClass::None)];
    for turn in turns {
        let mut bench = Bench::green();
        bench.play((0..3).map(|_| turn()));
        let reason = bench.run();
        assert_eq!((reason.to_string().as_str(), reason.exit_code()), ("stuck:skeptic", 11));
        assert_eq!(bench.ticks().len(), 3);
        // The operator starts it again: three more attempts.
        assert_eq!(bench.run(), StopReason::Complete);
    }
}

#[test]
fn row_54_a_blocking_report_resets_everything_and_the_loop_goes_on() {
    let mut bench = Bench::green();
    bench.play([Turn::says("", ""), Turn::says("", ""), high_bug(), Turn::says("", ""), Turn::says("", "")]);
    assert_eq!(bench.run(), StopReason::Complete, "two attempts before and two after are not three in a row");
    assert_eq!(bench.tick(3).skeptic, Some(SkepticVerdict::Found));
    assert!(bench.tick(3).success && bench.tick(3).blocking_report);
    assert_eq!(bench.ticks().len(), 6);
}

#[test]
fn row_54_a_clean_verdict_beside_a_blocking_report_is_none() {
    let mut bench = Bench::green();
    let report = "## Bug-Report\n{\"id\": \"B1\", \"severity\": \"med\", \"title\": \"t\"}\n\n";
    bench.play([Turn::says(&format!("{FIVE}{report}"), "Skeptic: clean\nBug-Report: B1\n")]);
    bench.run();
    assert_eq!(bench.tick(1).skeptic, Some(SkepticVerdict::Found));
    assert_eq!(bench.ticks().len(), 2);
}

#[test]
fn row_54_a_skeptic_that_changes_the_product_has_found_something() {
    let mut bench = Bench::green();
    bench.habit = Habit::Good("fixed");
    let text = handoff_text(FIVE, "Skeptic: clean\n");
    bench.play([Turn::commit("fixed", &text).diff(vec![source("src/lib.rs")])]);
    assert_eq!(bench.run(), StopReason::Complete);
    assert_eq!(bench.tick(1).skeptic, Some(SkepticVerdict::Found));
    assert_eq!(bench.order(), "ann bob", "and the other one looks at the change");
}

#[test]
fn row_54_a_skeptic_whose_turn_does_not_stand_has_said_nothing() {
    // It handed off, but its service says that only the operator can help: no success.
    let mut bench = Bench::green();
    bench.cfg.rules.continue_without_peer = true;
    bench.cfg.rules.peers = Bench::bare("ann bob cyd").cfg.rules.peers;
    bench.play([Turn::skeptic().exit(ExitClass::Nonzero, ApiClass::Quota)]);
    assert_eq!(bench.run(), StopReason::Complete);
    assert!(!bench.tick(1).success);
    assert_eq!(bench.tick(1).skeptic, Some(SkepticVerdict::Missing));
    assert_eq!(bench.ticks().len(), 2);
}

#[test]
fn row_54_a_passed_skeptic_is_void_when_the_tree_changes_by_hand() {
    let mut bench = Bench::green().up_to(1);
    bench.gate("tests-pass", Gate::ProofRed);
    assert_eq!(bench.run(), StopReason::MaxTicks, "the skeptic passed, the proof did not");
    bench.world.operator_commits("by hand");
    bench.gate("tests-pass", Gate::Green);
    bench.habit = Habit::Good("by hand");
    assert_eq!(bench.run(), StopReason::Complete);
    assert_eq!(bench.ticks().len(), 2);
    assert!(bench.started()[1].skeptic, "the new tree is looked at anew");
}

#[test]
fn a_skeptic_verdict_survives_a_crash_before_the_proof() {
    let mut bench = Bench::green();
    bench.begin();
    bench.until(|b| b.ticks().len() == 1);
    bench.crash();
    assert_eq!(bench.run(), StopReason::Complete);
    assert_eq!(bench.ticks().len(), 1);
}
