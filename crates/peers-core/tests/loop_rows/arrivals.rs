//! Commits that appear while no tick is open, and proofs under which the tree moves.

use peers_core::converge;
use peers_core::machine::{After, Phase};
use peers_model::outcome::{ApiClass, ExitClass, StopReason, TamperKind};
use peers_model::record::{AckTarget, CommitsSeen, OperatorOp, OperatorRecord, Record};
use peers_model::review::SoftRule;
use peers_model::verdict::Place;

use crate::bench::Bench;
use crate::world::{Gate, Habit, Turn, handoff_text, peer};

fn seen(bench: &Bench) -> Vec<&CommitsSeen> {
    bench.log.iter().filter_map(|r| if let Record::CommitsSeen(s) = r { Some(s) } else { None }).collect()
}

#[test]
fn what_the_operator_commits_between_ticks_is_recorded_before_any_gate_asks_whose_it_is() {
    let mut bench = Bench::new("ann").up_to(2);
    bench.play([Turn::fails(ExitClass::Ok, ApiClass::Transient)]);
    bench.begin();
    bench.until_phase(|p| matches!(p, Phase::CoolingDown));
    bench.world.operator_commits("by hand");
    let judged = bench.judged(Place::Live).len();
    bench.until(|b| !seen(b).is_empty());
    assert_eq!(bench.judged(Place::Live).len(), judged, "recorded first");
    assert_eq!(bench.finish(), StopReason::MaxTicks);
    let found = seen(&bench);
    assert_eq!(found.len(), 1, "once");
    assert_eq!((found[0].commits.len(), found[0].while_gates), (1, false));
    assert_eq!(found[0].head, bench.started()[1].head_before);
}

#[test]
fn commits_that_appear_while_gates_run_and_weaken_tests_stop_the_loop() {
    let mut bench = Bench::green();
    bench.world.gate_commits = vec!["by a gate"];
    bench.world.arrived_weaken = vec!["2 fewer tests in tests/all.rs".into()];
    assert_eq!(bench.run(), StopReason::Tamper(TamperKind::History));
    let detail = bench.exits()[0].detail.clone();
    assert!(detail.contains("2 fewer tests in tests/all.rs") && detail.contains("start again"), "{detail}");
    assert!(seen(&bench)[0].while_gates, "they are recorded, so the next start goes on");
    bench.world.arrived_weaken.clear();
    bench.habit = Habit::Good("by a gate");
    assert_eq!(bench.run(), StopReason::Complete);
}

#[test]
fn what_appears_after_a_run_broke_off_is_nobodys() {
    let mut bench = Bench::new("ann bob").up_to(1);
    bench.begin();
    bench.until_phase(|p| matches!(p, Phase::Judging(..)));
    // A gate commits, and ends the loop before it can look.
    bench.crash();
    bench.world.operator_commits("by a gate");
    bench.run();
    let found = seen(&bench);
    assert_eq!((found.len(), found[0].while_gates), (1, true));
    let starts = bench.log.iter().filter_map(|r| if let Record::RunStarted(s) = r { Some(s) } else { None });
    assert!(starts.into_iter().all(|s| s.operator.is_empty()));
}

#[test]
fn what_a_gate_commits_after_the_turn_is_not_the_peers_even_after_a_crash() {
    let mut bench = Bench::new("ann bob").up_to(1);
    bench.play([Turn::handoff("work")]);
    bench.begin();
    bench.until_phase(|p| matches!(p, Phase::Refreshing(_)));
    let honest = bench.world.tip().id.clone();
    // A gate commits in the name of the peer whose turn it is, and ends the loop.
    bench.world.gate_commit_in_turn("forged", "handoff");
    bench.crash();
    bench.run();
    let tick = bench.tick(1);
    assert!(tick.recovered && tick.success, "how the turn ended is known: {tick:?}");
    assert_eq!((tick.commits.as_slice(), tick.foreign.len()), ([honest].as_slice(), 1));
}

#[test]
fn what_appears_after_a_run_that_ended_in_order_is_the_operators() {
    let mut bench = Bench::new("ann bob").up_to(1);
    bench.run();
    bench.world.operator_commits("by hand");
    bench.run();
    assert!(seen(&bench).is_empty());
    let last =
        bench.log.iter().rev().find_map(|r| if let Record::RunStarted(s) = r { Some(s) } else { None });
    assert_eq!(last.unwrap().operator.len(), 1);
}

/// Runs to the proof of a green tree, lets something happen meanwhile, and goes on.
fn while_proving(act: impl FnOnce(&mut Bench)) -> (StopReason, Bench) {
    let mut bench = Bench::green().up_to(3);
    bench.gate("tests-pass", Gate::At("start"));
    bench.habit = Habit::Empty;
    bench.play([Turn::skeptic()]);
    bench.begin();
    bench.until_phase(|p| matches!(p, Phase::Proving(..)));
    act(&mut bench);
    let reason = bench.finish();
    (reason, bench)
}

#[test]
fn complete_is_impossible_when_something_else_is_checked_out_during_the_proof() {
    let (reason, bench) = while_proving(|b| b.world.operator_commits("other"));
    assert_eq!(reason, StopReason::MaxTicks, "the proof was of another commit");
    assert_eq!(seen(&bench).len(), 1);
}

#[test]
fn complete_is_impossible_when_something_is_left_uncommitted_during_the_proof() {
    let (reason, bench) = while_proving(|b| b.world.work = "edited".into());
    assert_eq!((reason, bench.ticks().len()), (StopReason::Complete, 2), "not before a turn put it away");
}

#[test]
fn complete_is_impossible_when_goals_change_during_the_proof() {
    let changed = peers_core::machine::Mutation { file: "goals.yaml".into(), what: "changed".into() };
    let (reason, _) = while_proving(|b| b.world.mutation = Some(changed));
    assert_eq!(reason, StopReason::GoalMutation("goals.yaml".into()));
}

#[test]
fn a_tree_that_moves_during_every_proof_does_not_hold_the_loop_for_ever() {
    let mut bench = Bench::green().up_to(4);
    bench.world.restless_proofs = u32::MAX;
    bench.habit = Habit::Empty;
    bench.play([Turn::skeptic()]);
    let reason = bench.run();
    // Nothing of the tree differs in the end: the proof of this very tree stands.
    assert!(matches!(reason, StopReason::Complete | StopReason::MaxTicks), "{reason}");
}

#[test]
fn after_an_undo_nothing_that_was_said_of_the_lost_work_counts() {
    let mut bench = Bench::converging();
    assert_eq!(bench.run(), StopReason::Complete);
    let start = bench.started()[0].head_before.clone();
    let op = OperatorOp::Undone {
        run: bench.cfg.run_id.clone(),
        from: bench.world.tip().id.clone(),
        to: start.clone(),
        salvage: "kept".into(),
    };
    bench.world.told(op);
    bench.begin();
    bench.until(|b| b.world.commands.is_empty());
    let state = &bench.m.state;
    assert_eq!(state.head, Some(start));
    assert!(state.soft.values().all(|s| s.history.is_empty() && s.consensus_count == 0));
    assert!(state.skeptic.passed.is_empty() && state.last_handoff.is_none());
}

#[test]
fn a_turn_whose_work_cannot_be_taken_in_is_a_failed_tick_and_the_loop_goes_on() {
    let mut bench = Bench::new("ann bob").up_to(3);
    bench.world.unreadable = Some("the work of tick 1 cannot be read".into());
    bench.plays([Turn::handoff("work")]);
    let tick = bench.tick(1);
    assert!(!tick.success && tick.soft_fail_reason.as_deref().unwrap().contains("cannot be read"));
    assert_eq!(tick.outcome, peers_model::record::TickOutcome::PeerFailed);
    assert!(tick.warnings_emitted[0].contains("cannot be read"), "the next one is told");
}

#[test]
fn what_a_gate_commits_each_time_it_runs_is_seen_before_anybody_has_the_turn() {
    let mut bench = Bench::new("ann bob").up_to(1);
    bench.world.gate_commits = vec!["third", "second", "first"];
    assert_eq!(bench.run(), StopReason::MaxTicks);
    assert_eq!(seen(&bench).len(), 3);
    let by_gates: Vec<_> = seen(&bench).into_iter().flat_map(|s| s.commits.clone()).collect();
    assert!(!bench.tick(1).commits.iter().any(|c| by_gates.contains(c)), "none of them is the peer's");
    assert_eq!(bench.started()[0].head_before, seen(&bench)[2].head);
}

fn says(bench: &mut Bench, label: &str, name: &str, handoff: bool) {
    let end = if handoff { "Peer-Status: handoff\nSelf-Review: pass\n" } else { "" };
    bench
        .world
        .outside_commits(label, &format!("work\n\n## Self-Review\nread it again\n\nPeer: {name}\n{end}"));
}

/// Two peers whose loop has run once, and a turn of `ann` that ran outside since.
fn after_outside() -> Bench {
    after_turn(Turn::handoff("first"))
}

fn after_turn(turn: Turn) -> Bench {
    let mut bench = Bench::new("ann bob").up_to(1);
    bench.plays([turn]);
    let head = bench.m.state.head.clone().unwrap();
    let tree = crate::world::tree(&bench.world.tip().tree);
    bench.cfg.after = Some(After { peer: peer("ann"), head, tree });
    bench
}

#[test]
fn a_turn_that_ran_outside_is_taken_in_first_and_the_next_peer_has_one_after_it() {
    let mut bench = after_outside();
    says(&mut bench, "half", "ann", false);
    bench.world.operator_commits("by hand");
    says(&mut bench, "done", "ann", true);
    assert_eq!(bench.run(), StopReason::MaxTicks);
    assert_eq!(bench.order(), "ann ann bob");
    let tick = bench.tick(2);
    assert!(tick.outside && tick.success && !tick.recovered, "{tick:?}");
    assert_eq!((tick.commits.len(), tick.foreign.len()), (2, 1), "the operator's is not hers");
    assert_eq!((tick.exit.usage.tokens, tick.exit.duration_ms), (None, 0), "what it cost is not known");
    assert_eq!(bench.prompts().len(), 2, "nobody was asked for it");
    // Who takes it in again finds nothing new.
    assert_eq!(bench.run(), StopReason::MaxTicks);
    assert_eq!(bench.ticks().len(), 4);
}

#[test]
fn a_turn_that_ran_outside_reviews_nothing_and_proves_nothing_clean() {
    let mut bench = after_outside();
    bench.soft("docs-read", SoftRule::Other { needed: 1 });
    let review = "## Review\n{\"pass\": true, \"checked\": [\"src/lib.rs:1 read\"]}\n\n";
    let message = handoff_text(review, "Peer-Review-Of: docs-read\n").replace("{me}", "ann");
    bench.world.outside_commits("reviewed", &message);
    let clean = bench.m.state.clean_ticks;
    bench.begin();
    bench.until(|b| b.ticks().len() == 2);
    let tick = bench.tick(2);
    assert!(tick.outside && tick.success, "{tick:?}");
    assert_eq!((tick.soft_reviews_seen, tick.soft_reviews_rejected, tick.reviews.len()), (1, 1, 0));
    assert_eq!(bench.warned("ran outside of the loop"), 1);
    assert_eq!(bench.m.state.clean_ticks, clean);
}

#[test]
fn a_turn_that_ran_outside_and_left_nothing_or_rewrote_history_is_no_turn() {
    let mut bench = after_outside();
    assert_eq!(bench.run(), StopReason::MaxTicks);
    assert_eq!(bench.ticks().len(), 2);
    let mut bench = after_outside();
    says(&mut bench, "done", "ann", true);
    bench.world.intact = false;
    assert_eq!(bench.run(), StopReason::Tamper(TamperKind::History));
    assert_eq!(bench.ticks().len(), 1);
}

#[test]
fn what_ran_outside_charges_and_heals_nobody_and_weakened_tests_there_stop_the_loop() {
    let mut bench = after_turn(Turn::handoff("tests").diff(vec![crate::cheating::test_file()]));
    assert!(bench.health("ann").prewarned);
    says(&mut bench, "done", "ann", true);
    bench.begin();
    bench.until(|b| b.ticks().len() == 2);
    let health = bench.health("ann");
    assert!(health.prewarned && health.recent.len() == 1, "{health:?}");
    // Fewer tests: whose doing it was nobody saw, so nobody is charged and the operator has to look.
    let mut bench = after_outside();
    bench.world.turn = Some(Turn::nothing().measured(crate::cheating::weaker()));
    says(&mut bench, "done", "ann", true);
    assert_eq!(bench.run(), StopReason::Tamper(TamperKind::History));
    let tick = bench.tick(2);
    assert!(tick.prewarned && tick.corrected.is_none(), "{tick:?}");
    assert!(bench.stop_detail().contains("ack weakening:2"), "{}", bench.stop_detail());
    assert!(!bench.health("ann").prewarned);
    // Nothing goes on before the operator has said that he looked.
    says(&mut bench, "more", "ann", true);
    assert_eq!(bench.run(), StopReason::Tamper(TamperKind::History));
    assert_eq!(bench.ticks().len(), 2);
    let op = OperatorOp::Ack { target: AckTarget::Weakening(bench.tick(2).iteration), reason: "mine".into() };
    let record = Record::Operator(OperatorRecord { op, by: "operator".into() });
    let now = bench.now;
    bench.folded.apply(now, None, &record).unwrap();
    bench.cfg.after = None;
    let ended = bench.run();
    assert_eq!(ended, StopReason::MaxTicks, "{}", bench.stop_detail());
}

#[test]
fn where_agents_work_unwatched_what_appears_is_nobodys_and_one_review_is_not_enough() {
    let passed = |unwatched: bool| {
        let mut bench = Bench::bare("ann bob").up_to(1);
        bench.gate("tests-pass", crate::world::Gate::Red);
        bench.soft("docs-read", SoftRule::Other { needed: 1 });
        bench.cfg.rules.unwatched = unwatched;
        bench.run();
        bench.world.operator_commits("in a terminal");
        bench.play([Turn::says("", ""), Turn::review("docs-read", true)]);
        bench.cfg.max_ticks = Some(2);
        bench.run();
        let pending = |b: &Bench| converge::soft_pending(&b.m.state, &b.world.facts(&b.m.state));
        let one = pending(&bench).is_empty();
        bench.plays([Turn::review("docs-read", true), Turn::review("docs-read", true)]);
        (one, pending(&bench).is_empty(), converge::skeptic_rounds(&bench.m.state))
    };
    assert_eq!(passed(false), (true, true, 1), "the operator's own");
    assert_eq!(passed(true), (false, true, 2), "it may be of the one who passed it");
}
