//! Expensive gates beside a peer (`pipeline_gates`): which answers are used, and which are not.

use peers_core::machine::{Behind, Effect, Event, Phase};
use peers_model::GoalId;
use peers_model::outcome::StopReason;
use peers_model::record::Record;
use peers_model::review::SoftRule;
use peers_model::verdict::{Place, TreeKey, Verdict};

use crate::bench::Bench;
use crate::world::{Gate, Habit, Turn, goal};

/// A cheap gate and an expensive one, both green, and a review that is missing: peers have to come first.
fn overlapping() -> Bench {
    let mut bench = Bench::green();
    bench.gate("heavy", Gate::Green);
    bench.rule("heavy").expensive = true;
    bench.soft("docs-read", SoftRule::Other { needed: 1 });
    bench.cfg.overlap = true;
    bench
}

fn behind(bench: &Bench) -> Vec<(Vec<GoalId>, TreeKey)> {
    let of = |effect: &Effect| match effect {
        Effect::JudgeBehind { gates, key, .. } => Some((gates.clone(), key.clone())),
        _ => None,
    };
    bench.effects.iter().filter_map(of).collect()
}

/// How often the expensive gate was run while everything else waited.
fn waited_for(bench: &Bench) -> usize {
    bench.judged(Place::Live).iter().filter(|(gates, _)| gates.contains(&goal("heavy"))).count()
}

#[test]
fn row_65_without_confined_peers_nothing_runs_beside_them() {
    let mut bench = overlapping();
    bench.cfg.overlap = false;
    assert_eq!(bench.run(), StopReason::Complete);
    assert!(behind(&bench).is_empty() && waited_for(&bench) > 0);
}

#[test]
fn row_65_an_expensive_gate_runs_beside_the_peer_that_has_to_work_anyway() {
    let mut bench = overlapping();
    assert_eq!(bench.run(), StopReason::Complete);
    let (gates, key) = &behind(&bench)[0];
    assert_eq!(gates, &[goal("heavy")], "cheap ones are waited for");
    // Recorded as what it is: a verdict in a copy, at the tree that was there then.
    let recorded = bench.log.iter().any(|record| match record {
        Record::Gates(gates) => gates.verdicts.iter().any(|j| j.place == Place::GateTree && j.at == *key),
        _ => false,
    });
    assert!(recorded);
}

#[test]
fn row_65_an_answer_about_the_same_tree_is_used() {
    let mut bench = overlapping();
    bench.hold_behind = true;
    bench.play([Turn::nothing()]);
    bench.begin();
    bench.until(|b| matches!(b.m.phase, Phase::Running { .. }));
    bench.release_behind();
    assert!(matches!(bench.m.behind, Behind::Answered { .. }));
    let key = behind(&bench)[0].1.clone();
    // The turn leaves no trace: the tree is the same when it is looked at next.
    bench.until(|b| !matches!(b.m.phase, Phase::Running { .. }));
    bench.until(|b| matches!(b.m.phase, Phase::Running { .. }));
    let again = behind(&bench).iter().filter(|(_, at)| *at == key).count();
    assert_eq!((again, waited_for(&bench)), (1, 0), "neither beside a peer again nor before it");
}

#[test]
fn row_65_an_answer_about_another_tree_satisfies_nothing() {
    let mut bench = overlapping();
    bench.hold_behind = true;
    bench.habit = Habit::Good("good");
    bench.gate("heavy", Gate::At("start"));
    bench.begin();
    bench.until(|b| matches!(b.m.phase, Phase::Running { .. }));
    // Green where the peer began, and red where it ends: what it answers is about the beginning.
    bench.release_behind();
    for _ in 0..6 {
        if bench.stopped().is_some() {
            break;
        }
        bench.until(|b| {
            matches!(b.m.phase, Phase::Running { .. } | Phase::AwaitingGates) || b.stopped().is_some()
        });
        if bench.behind.is_some() {
            bench.release_behind();
        } else {
            bench.advance();
        }
    }
    assert_ne!(bench.stopped(), Some(StopReason::Complete));
    let red_here = bench.log.iter().any(|record| match record {
        Record::Gates(gates) => gates
            .verdicts
            .iter()
            .any(|j| j.goal == goal("heavy") && matches!(j.verdict, Verdict::Fail { .. })),
        _ => false,
    });
    assert!(red_here, "it was measured where things stand now");
    let behind = |j: &peers_model::verdict::Judged| j.place == Place::GateTree;
    let counted = bench.log.iter().find_map(|record| match record {
        Record::Gates(gates) if gates.verdicts.iter().any(behind) => Some((gates.green, gates.of)),
        _ => None,
    });
    assert_eq!(counted, Some((None, None)), "of a tree that is gone nothing is counted");
}

#[test]
fn row_65_what_could_not_be_judged_beside_a_peer_is_run_again() {
    let mut bench = overlapping();
    bench.hold_behind = true;
    bench.begin();
    bench.until(|b| b.behind.is_some());
    if let Some(Event::JudgedBehind { verdicts, .. }) = &mut bench.behind {
        verdicts[0].verdict = Verdict::Error { diagnostic: "no tool".into() };
    }
    bench.hold_behind = false;
    bench.release_behind();
    assert_eq!(bench.finish(), StopReason::Complete);
    let errors = bench.log.iter().any(|record| match record {
        Record::Gates(gates) => gates.verdicts.iter().any(|j| j.verdict.is_error()),
        _ => false,
    });
    assert!(!errors, "and counts for nothing");
}

#[test]
fn row_65_when_everything_else_is_done_the_running_gates_are_waited_for() {
    let mut bench = overlapping();
    bench.hold_behind = true;
    bench.begin();
    bench.until(|b| b.behind.is_some());
    let before = bench.effects.len();
    // The review comes without a commit that changes the tree; whatever is still out is waited for or run.
    bench.until(|b| b.stopped().is_some() || matches!(b.m.phase, Phase::AwaitingGates) || waited_for(b) > 0);
    assert_ne!(bench.stopped(), Some(StopReason::Complete), "{:?}", &bench.effects[before..]);
}

#[test]
fn row_65_a_stop_while_gates_are_waited_for_is_heeded_at_once() {
    let mut bench = overlapping();
    bench.cfg.soft_required = false;
    bench.begin();
    bench.until(|b| b.stopped().is_some() || matches!(b.m.phase, Phase::Running { .. }));
    assert!(behind(&bench).is_empty(), "with everything else green there is nothing to run beside");
    let mut bench = overlapping();
    bench.hold_behind = true;
    bench.begin();
    bench.until(|b| b.behind.is_some());
    bench.m.phase = Phase::AwaitingGates;
    bench.stop(peers_core::machine::StopRequest::Graceful(15));
    assert_eq!(bench.stopped(), Some(StopReason::Interrupted(15)));
}
