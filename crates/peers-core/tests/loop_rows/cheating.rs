//! Turns that make the tests easier instead of the product better.

use peers_core::cheat::{FileDiff, TurnDiff};
use peers_core::machine::Origin;
use peers_core::state::PeerState;
use peers_model::BugId;
use peers_model::outcome::{ApiClass, ExitClass};
use peers_model::record::{CorrectionKind, TickOutcome};
use peers_model::weakening::Weakened;

use crate::bench::Bench;
use crate::world::{Gate, Turn, handoff_text, source, tree};

/// A new test file.
pub(crate) fn test_file() -> FileDiff {
    FileDiff::text("tests/test_new.py", 1, 0)
}

/// A source change that takes an assertion out of a test.
pub(crate) fn weaker() -> TurnDiff {
    let files = vec![FileDiff::text("tests/test_sum.py", 0, 1), source("src/sum.py")];
    TurnDiff { files, weaker: vec![Weakened::Assertions { lost: 1 }.at("tests/test_sum.py")] }
}

fn tests_only(label: &str, trailers: &str) -> Turn {
    Turn::commit(label, &handoff_text("", trailers)).diff(vec![test_file()])
}

/// Turns of `ann` alone, one after the other.
fn ann(turns: Vec<Turn>) -> Bench {
    let mut bench = Bench::new("ann");
    bench.cfg.max_ticks = Some(u64::try_from(turns.len()).unwrap());
    bench.plays(turns);
    bench
}

#[test]
fn row_47_the_first_test_only_turn_is_accepted_with_a_warning() {
    let bench = ann(vec![tests_only("one", "")]);
    assert!(bench.tick(1).success && bench.tick(1).prewarned);
    assert!(bench.health("ann").prewarned);
    assert_eq!(bench.warned("the next turn of that kind is reverted"), 1);
    assert_eq!(bench.world.tip().tree, "one");
}

#[test]
fn row_47_the_second_is_reverted_by_a_commit_of_our_own() {
    let bench = ann(vec![tests_only("one", ""), tests_only("two", "").leaves("and-dirt")]);
    let tick = bench.tick(2);
    assert_eq!((tick.outcome, tick.success), (TickOutcome::Corrected, false));
    assert_eq!(tick.corrected, Some(CorrectionKind::Revert));
    assert_eq!(tick.tree_after, tree("one"), "the tree is the one from before the turn");
    assert_eq!((tick.commits.len(), tick.own.len()), (1, 1));
    assert_eq!(bench.world.tip().origin, Origin::Own);
    assert!(tick.salvage.is_some() && !tick.tree_changed && !tick.dirty);
    let health = bench.health("ann");
    assert_eq!((health.failed_cheating, health.prewarned), (1, true));
    assert_eq!(health.state, PeerState::Healthy);
}

#[test]
fn row_47_a_reverted_peer_keeps_the_turn() {
    let mut bench = Bench::new("ann bob").up_to(4);
    bench.plays([tests_only("one", ""), Turn::says("", ""), tests_only("two", "")]);
    assert_eq!(bench.order(), "ann bob ann ann");
    assert_eq!(bench.health("ann").consecutive_fails, 0);
}

#[test]
fn row_47_a_reason_is_accepted_and_recorded() {
    let reason = "JUSTIFIED-TEST-ONLY: pins the behaviour that the next change relies on\n";
    let bench = ann(vec![tests_only("one", reason), tests_only("two", reason)]);
    for tick in bench.ticks() {
        assert!(tick.success && !tick.prewarned);
        assert_eq!(tick.justification.as_deref(), Some("pins the behaviour that the next change relies on"));
    }
    assert!(bench.warned("review it") >= 1, "the other peers see the reason");
}

#[test]
fn row_47_a_short_reason_is_none() {
    assert!(ann(vec![tests_only("one", "JUSTIFIED-TEST-ONLY: because\n")]).tick(1).prewarned);
}

#[test]
fn row_47_a_reproducer_of_an_open_bug_is_fine_and_of_another_is_not() {
    for (open, prewarned) in [("B1", false), ("B2", true)] {
        let mut turn = tests_only("one", "Bug-Reproduce: B1\n");
        turn.open_bugs = vec![BugId::new(open).unwrap()];
        let bench = ann(vec![turn]);
        assert!(bench.tick(1).success);
        assert_eq!(bench.tick(1).prewarned, prewarned, "open: {open}");
    }
}

#[test]
fn row_47_an_assertion_taken_out_is_reverted_the_second_time_whatever_the_reason() {
    let text = handoff_text("", "JUSTIFIED-TEST-ONLY: the assertion was wrong from the beginning\n");
    let turn = |label: &str| Turn::commit(label, &text).measured(weaker());
    let bench = ann(vec![turn("one"), turn("two")]);
    assert!(bench.tick(1).success && bench.tick(1).prewarned);
    assert_eq!(bench.tick(2).corrected, Some(CorrectionKind::Revert));
    assert!(bench.tick(2).soft_fail_reason.as_deref().unwrap().contains("fewer assertions"));
}

#[test]
fn row_47_two_reverts_degrade() {
    let mut bench = Bench::new("ann bob").up_to(4);
    bench.plays([tests_only("one", ""), Turn::says("", ""), tests_only("two", ""), tests_only("three", "")]);
    assert_eq!(bench.order(), "ann bob ann ann");
    let health = bench.health("ann");
    assert_eq!((health.state, health.failed_cheating), (PeerState::Degraded, 2));
}

#[test]
fn row_47_a_clean_handoff_clears_both_marks_and_a_failed_tick_the_count() {
    let bench = ann(vec![tests_only("one", ""), tests_only("two", ""), Turn::handoff("three")]);
    assert_eq!((bench.health("ann").failed_cheating, bench.health("ann").prewarned), (0, false));
    let failed = Turn::fails(ExitClass::Nonzero, ApiClass::None);
    let bench = ann(vec![tests_only("one", ""), tests_only("two", ""), failed]);
    assert_eq!((bench.health("ann").failed_cheating, bench.health("ann").prewarned), (0, true));
}

#[test]
fn row_47_a_gate_that_edits_of_tests_alone_turn_green_is_a_weakening_whatever_the_reason() {
    let mut bench = Bench::bare("ann bob").up_to(3);
    bench.gate("tests-pass", Gate::At("good"));
    bench.gate("lint-clean", Gate::Red);
    let text = handoff_text("", "JUSTIFIED-TEST-ONLY: the fixture was wrong from the beginning\n");
    let edit = FileDiff::text("tests/test_limit.py", 1, 1);
    let turn = || Turn::commit("good", &text).diff(vec![edit.clone()]);
    bench.plays([turn(), Turn::handoff("worse"), turn()]);
    assert!(bench.tick(1).success && bench.tick(1).prewarned);
    assert_eq!(bench.tick(3).corrected, Some(CorrectionKind::Revert));
    assert_eq!(bench.tick(3).tree_after, tree("worse"));
    assert!(bench.tick(3).verdicts.is_empty(), "what was measured went with the tree");
    assert!(bench.tick(3).soft_fail_reason.as_deref().unwrap().contains("by edits of tests alone"));
}

#[test]
fn what_a_reverted_turn_claimed_is_void() {
    let mut bench = Bench::new("ann bob").up_to(3);
    bench.soft("docs-read", peers_model::review::SoftRule::Other { needed: 1 });
    let body = "## Review\n{\"pass\": true, \"checked\": [\"a:1 x\"]}\n\n";
    let text = handoff_text(body, "Peer-Review-Of: docs-read\n");
    let claims = Turn::commit("two", &text).diff(vec![test_file()]);
    bench.plays([tests_only("one", ""), Turn::says("", ""), claims]);
    assert_eq!(bench.tick(3).corrected, Some(CorrectionKind::Revert));
    assert!(bench.tick(3).reviews.is_empty() && !bench.tick(3).evidence);
    assert!(bench.m.state.soft.values().all(|s| s.history.is_empty()));
    assert_eq!(bench.m.state.last_product_author, Some(crate::world::peer("ann")), "from tick 1");
}
