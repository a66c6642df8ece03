//! Accepted files, the control plane and known history.

use peers_core::machine::{Effect, Event, Mutation, PendingCommand, Phase};
use peers_model::outcome::{ErrorKind, StopReason, TamperKind};
use peers_model::record::{AckTarget, Digests, OperatorOp, Record, Rules};
use peers_model::verdict::Place;

use crate::bench::Bench;
use crate::world::{Gate, Turn, command, goal, peer};

fn mutation(file: &str, what: &str) -> Mutation {
    Mutation { file: file.into(), what: what.into() }
}

fn accepted(rules: Option<Rules>) -> PendingCommand {
    let digests = |goals: &str| Digests { goals: goals.into(), config: "config".into() };
    command(OperatorOp::Accepted {
        old: digests("goals"),
        new: digests("new goals"),
        note: None,
        rules: rules.map(Box::new),
    })
}

#[test]
fn row_69_what_is_accepted_beside_the_loop_may_mend_what_setup_lost() {
    let mut bench = Bench::green();
    bench.gate("tests-pass", Gate::ProofNotSetUp);
    bench.begin();
    bench.until(|b| b.ticks().len() == 2);
    bench.gate("tests-pass", Gate::Green);
    bench.world.commands.push(accepted(Some(bench.cfg.rules.clone())));
    assert_eq!(bench.finish(), StopReason::Complete);
    assert_eq!(bench.judged(Place::Pristine).len(), 2);
}

#[test]
fn row_45_a_file_that_is_not_the_accepted_one_stops_the_loop_before_any_gate() {
    for (file, what) in [
        ("goals.yaml", "changed"),
        ("goals.yaml", "disappeared"),
        ("goals.yaml", "became unreadable (3 MiB)"),
        ("config.yaml", "changed"),
    ] {
        let mut bench = Bench::new("ann bob");
        bench.begin();
        bench.until(|b| b.m.state.open.is_some());
        // In the turn of `ann`, with source in the same commit or not.
        bench.world.mutation = Some(mutation(file, what));
        bench.until(|b| b.ticks().len() == 1);
        let judged = bench.judged(Place::Live).len();
        let reason = bench.finish();
        assert_eq!(reason, StopReason::GoalMutation(file.into()), "{what}");
        assert_eq!((reason.to_string(), reason.exit_code()), (format!("goal-mutation:{file}"), 5));
        assert_eq!(bench.judged(Place::Live).len(), judged, "{what}: no gate ran on changed goals");
        assert_eq!(bench.order(), "ann", "the tick itself is recorded");
        assert!(bench.exits()[0].detail.contains(what));
    }
}

#[test]
fn row_45_a_mutation_comes_before_convergence() {
    let mut bench = Bench::green();
    bench.world.mutation = Some(mutation("goals.yaml", "changed"));
    assert_eq!(bench.run(), StopReason::GoalMutation("goals.yaml".into()));
    assert!(bench.ticks().is_empty() && bench.judged(Place::Live).is_empty());
}

#[test]
fn row_46_new_goals_are_taken_over_and_everything_is_judged_again() {
    let mut bench = Bench::new("ann bob").up_to(2);
    bench.gate("lint-clean", Gate::Green);
    bench.begin();
    bench.until(|b| b.m.state.open.is_some());
    // While `ann` works the operator drops a gate and changes another one.
    let mut rules = bench.cfg.rules.clone();
    rules.gates.retain(|g| g.id == goal("lint-clean"));
    rules.gates[0].digest = "as defined later".into();
    bench.world.commands = vec![accepted(Some(rules))];
    bench.until(|b| b.log.iter().any(|r| matches!(r, Record::Operator(_))));
    let before = bench.judged(Place::Live).len();
    bench.until(|b| b.ticks().len() == 2);
    assert!(bench.world.commands.is_empty(), "recorded, then dropped");
    let recorded = bench.log.iter().position(|r| matches!(r, Record::Operator(_))).unwrap();
    let ticks_before = bench.log.iter().take(recorded).filter(|r| matches!(r, Record::Tick(_))).count();
    assert_eq!(ticks_before, 1, "at the tick boundary");
    assert_eq!(bench.m.state.digests.goals, "new goals");
    let runs = bench.judged(Place::Live);
    assert_eq!(runs[before].0, [goal("lint-clean")], "the pass of the old definition is gone");
    assert!(!bench.m.state.board.gates.contains_key(&goal("tests-pass")), "so is the dropped gate");
}

#[test]
fn row_46_the_record_is_durable_before_the_command_is_dropped() {
    let mut bench = Bench::new("ann bob");
    bench.world.commands = vec![accepted(Some(bench.cfg.rules.clone()))];
    bench.begin();
    bench.until(|b| b.log.iter().any(|r| matches!(r, Record::Operator(_))));
    let drops = |e: &Effect| matches!(e, Effect::DropCommands(ids) if *ids == ["01".to_owned()]);
    assert_eq!(bench.effects.iter().filter(|e| drops(e)).count(), 1);
    assert!(matches!(bench.m.phase, Phase::Surveying(0)), "and then everything is looked at again");
}

#[test]
fn row_46_goals_that_do_not_load_keep_the_old_set_and_stop() {
    let mut bench = Bench::new("ann bob");
    bench.begin();
    bench.until(|b| b.m.state.open.is_some());
    // The acceptance came without rules, so the files are still not what this run began with.
    bench.world.commands = vec![accepted(None)];
    bench.world.mutation = Some(mutation("goals.yaml", "changed"));
    assert_eq!(bench.finish(), StopReason::GoalMutation("goals.yaml".into()));
    assert_eq!(bench.m.state.rules, bench.cfg.rules);
    assert!(bench.log.iter().any(|r| matches!(r, Record::Operator(_))));
}

#[test]
fn row_46_an_acknowledgement_has_everything_judged_again() {
    let target = AckTarget::Concern("c1".into());
    for (acks, judged) in [(false, 1), (true, 2)] {
        let mut bench = Bench::green();
        bench.play([Turn::nothing(), Turn::nothing()]);
        bench.begin();
        bench.until(|b| b.m.state.open.is_some());
        if acks {
            let ack = OperatorOp::Ack { target: target.clone(), reason: "seen".into() };
            bench.world.told(ack);
        }
        bench.until(|b| b.ticks().len() == 2);
        assert_eq!(bench.judged(Place::Live).len(), judged, "a check may read acknowledgements");
        assert_eq!(bench.m.state.acks.contains(&target), acks);
    }
}

#[test]
fn row_46_a_reload_keeps_the_turn_with_its_peer_and_opens_inboxes_for_new_ones() {
    let mut bench = Bench::new("ann bob").up_to(3);
    bench.begin();
    bench.until(|b| b.m.state.open.is_some());
    let mut rules = Bench::new("bob cyd ann").cfg.rules;
    rules.gates.clone_from(&bench.cfg.rules.gates);
    bench.world.commands = vec![accepted(Some(rules))];
    bench.finish();
    assert_eq!(bench.order(), "ann bob cyd");
    let shown = &bench.started()[2].inbox;
    assert_eq!(shown.keys().collect::<Vec<_>>(), [&peer("bob")], "cyd reads what bob did");
}

#[test]
fn tampering_that_a_survey_finds_stops_before_any_gate_and_before_goals_are_compared() {
    let mut bench = Bench::green();
    bench.world.tamper = Some((TamperKind::PeerDir, "`.peers` is another directory".into()));
    bench.world.mutation = Some(mutation("goals.yaml", "changed"));
    assert_eq!(bench.run(), StopReason::Tamper(TamperKind::PeerDir));
    assert!(bench.judged(Place::Live).is_empty());
}

#[test]
fn row_06_tampering_in_a_turn_ends_the_run_but_the_tick_is_recorded() {
    let mut bench = Bench::new("ann bob");
    let mut turn = Turn::handoff("work");
    turn.tamper = Some((TamperKind::PeerDir, "`.peers` was swapped".into()));
    bench.play([turn]);
    let judged_before = 1;
    assert_eq!(bench.run(), StopReason::Tamper(TamperKind::PeerDir));
    assert_eq!(bench.order(), "ann");
    assert_eq!(bench.judged(Place::Live).len(), judged_before, "no gate runs after it");
    assert!(bench.exits()[0].detail.contains("in tick 1 of ann"));
}

#[test]
fn known_history_that_vanished_between_turns_is_tampering() {
    let mut bench = Bench::new("ann bob");
    bench.world.intact = false;
    let reason = bench.run();
    assert_eq!((reason.to_string().as_str(), reason.exit_code()), ("tamper:history", 5));
}

#[test]
fn an_effect_that_fails_ends_the_run_and_leaves_the_tick_to_the_next_one() {
    let mut bench = Bench::new("ann bob").up_to(2);
    bench.begin();
    bench.until_phase(|p| matches!(p, Phase::Harvesting { .. }));
    bench.feed(Event::Failed { kind: ErrorKind::Git, detail: "the index is gone".into() });
    assert_eq!(bench.stopped(), Some(StopReason::Error(ErrorKind::Git)));
    assert!(bench.m.state.open.is_some() && bench.exits().len() == 1);
    assert_eq!(bench.run(), StopReason::MaxTicks);
    assert!(bench.tick(1).recovered && bench.tick(1).success, "its handoff still counts");
}

#[test]
fn a_failure_ends_what_runs() {
    let failed = || Event::Failed { kind: ErrorKind::Io, detail: String::new() };
    let mut bench = Bench::new("ann bob");
    bench.begin();
    bench.until_phase(|p| matches!(p, Phase::Running { .. }));
    bench.feed(failed());
    assert!(bench.effects.iter().any(|e| matches!(e, Effect::EndPeer { now: true })));
    let mut bench = Bench::new("ann bob");
    bench.begin();
    bench.until_phase(|p| matches!(p, Phase::Judging(..)));
    bench.feed(failed());
    assert!(bench.effects.iter().any(|e| matches!(e, Effect::CancelGates)));
}
