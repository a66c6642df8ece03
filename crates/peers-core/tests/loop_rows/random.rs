//! Anything at any time: the machine keeps its promises. [`Bench::feed`] checks them at every step.

use peers_core::machine::{
    ComposeFacts, Corrected, Event, Harvest, Left, Mutation, PendingCommand, Phase, StopRequest,
};
use peers_model::outcome::{ApiClass, ErrorKind, ExitClass, StopReason, TamperKind};
use peers_model::record::{
    AckTarget, Digests, OperatorOp, OperatorRecord, PeerSpawned, Record, SkepticVerdict, TickOutcome,
};
use peers_model::review::SoftRule;
use peers_model::verdict::{Judged, Place, TreeKey};
use peers_model::{TickNo, Timestamp, Usd};
use proptest::prelude::*;

use crate::bench::Bench;
use crate::world::{Gate, Habit, Rewrite, Switch, Turn, exit, goal, handoff_text, source, tree};

const CLASSES: [ExitClass; 8] = [
    ExitClass::SpawnFail,
    ExitClass::Ok,
    ExitClass::Nonzero,
    ExitClass::Signal,
    ExitClass::Idle,
    ExitClass::Absolute,
    ExitClass::Pattern,
    ExitClass::Interrupted,
];
const APIS: [ApiClass; 5] =
    [ApiClass::None, ApiClass::Transient, ApiClass::Auth, ApiClass::Quota, ApiClass::Other];

/// Picks by a seed; wraps.
fn pick<T: Clone>(from: &[T], seed: u64) -> T {
    let at = usize::try_from(seed % u64::try_from(from.len()).unwrap()).unwrap();
    from[at].clone()
}

fn turn(seed: u64) -> Turn {
    let label = pick(&["start", "good", "other", "third"], seed >> 8);
    let mut turn = match seed % 16 {
        0 => Turn::nothing(),
        1 => Turn::commit(label, "wip"),
        2 | 3 => Turn::handoff(label),
        4 => Turn::skeptic(),
        5 => Turn::review("docs-read", seed & 0x100 == 0),
        6 => Turn::review("no-such-goal", true),
        7 => Turn::handoff(label).rewrites(Rewrite::DropTip),
        8 => Turn::nothing().rewrites(Rewrite::Amend),
        9 => Turn::handoff(label).ends_on(pick(&[Switch::Detach, Switch::To("other")], seed >> 9)),
        10 => Turn::handoff(label).diff(vec![crate::cheating::test_file()]),
        11 => Turn::handoff(label).diff(vec![source("src/a.rs"), crate::cheating::test_file()]),
        12 => Turn::says("## Bug-Report\n{\"id\": \"B1\", \"severity\": \"high\"}\n\n", "Bug-Report: B1\n"),
        13 => Turn::says("", "").publishes(&["ann-to-bob/000001-a.md", "not a message"]),
        14 => Turn::commit(label, &handoff_text("", "").replace("pass", "needs-review")),
        _ => Turn::says("", ""),
    };
    if seed & 0x3000 == 0 {
        turn = turn.exit(pick(&CLASSES, seed >> 16), pick(&APIS, seed >> 20));
    }
    if seed & 0x1c000 == 0 {
        turn = turn.leaves("untidy");
    }
    turn.exit.duration_ms = seed >> 40;
    turn.exit.usage.usd = (seed & 0x20_0000 == 0).then(|| Usd::from_micros(seed >> 44));
    turn.exit.retry_after_s = (seed & 0xc0_0000 == 0).then_some(seed);
    turn.exit.truncated = seed & 0x100_0000 == 0;
    turn.quick = seed & 0x200_0000 == 0;
    turn.tamper = (seed & 0x3f00_0000 == 0).then(|| (TamperKind::PeerDir, "swapped".into()));
    turn
}

fn commands(bench: &Bench, seed: u64) -> OperatorOp {
    let mut rules = bench.cfg.rules.clone();
    if seed & 1 == 0 {
        rules.peers.rotate_left(1);
    }
    if seed & 2 == 0 && rules.peers.len() > 1 {
        rules.peers.pop();
    }
    if seed & 4 == 0 {
        rules.gates.reverse();
        rules.gates.truncate(1);
    }
    if seed & 8 == 0 {
        rules.soft.clear();
    }
    let digests = |n: u64| Digests { goals: format!("{n}"), config: "config".into() };
    match (seed >> 8) % 5 {
        0 => OperatorOp::Accepted {
            old: digests(0),
            new: digests(seed),
            note: None,
            rules: Some(Box::new(rules)),
        },
        1 => OperatorOp::Accepted { old: digests(0), new: digests(seed), note: None, rules: None },
        2 => OperatorOp::BudgetReset,
        3 => OperatorOp::Ack { target: AckTarget::Weakening(TickNo(seed >> 60)), reason: "seen".into() },
        _ => OperatorOp::StoreAttached { old_path: "/elsewhere".into() },
    }
}

/// An event that nobody waits for, or an answer to another question.
fn stray(bench: &Bench, seed: u64) -> Event {
    let label = pick(&["start", "good", "other"], seed >> 8);
    let head = bench.world.tip().id.clone();
    let key = TreeKey { head: head.clone(), tree: tree(label) };
    match seed % 12 {
        0 => {
            let mut facts = bench.world.facts(&bench.m.state);
            facts.worktree = tree(label);
            facts.history_intact = seed & 0x100 != 0;
            Event::Surveyed(Box::new(facts))
        }
        1 => Event::OrphansGone(Left {
            survivors: vec![9],
            last_sign: (seed & 0x1000 == 0).then(|| Timestamp::from_millis(5)),
            ..Left::default()
        }),
        2 => {
            let place = pick(&[Place::Live, Place::Pristine, Place::GateTree], seed >> 12);
            let judged = |id: &str| {
                Judged::new(goal(id), key.clone(), place, Gate::Random(seed).judge(&key, Place::Live))
            };
            let verdicts = ["tests-pass", "unknown"].map(judged).to_vec();
            Event::Judged {
                verdicts,
                took_ms: seed >> 50,
                moved: seed & 0x10000 == 0,
                changed: String::new(),
            }
        }
        3 => Event::Composed(Box::default()),
        4 => {
            let tick = TickNo(bench.m.state.ticks.0 + (seed >> 8) % 3);
            Event::PeerSpawned(PeerSpawned { tick, pid: 1, start_time: 1, boot_id: String::new() })
        }
        5 => Event::PeerExited(Box::new(exit(pick(&CLASSES, seed >> 8), pick(&APIS, seed >> 16)))),
        6 => Event::Harvested(Box::default()),
        7 => Event::Harvested(Box::new(Harvest {
            at: Some(bench.world.at()),
            ancestor: true,
            dirty: vec!["?? x".into()],
            warnings: vec!["w".repeat(5000)],
            ..Harvest::default()
        })),
        8 => Event::Corrected(Box::new(Corrected { at: bench.world.at(), own: vec![head], salvage: None })),
        9 if seed & 0x100 == 0 => Event::Outdated,
        9 => Event::Timer,
        10 => Event::Composed(Box::new(ComposeFacts {
            messages: Vec::new(),
            nonce: "n".into(),
            ..ComposeFacts::default()
        })),
        _ => Event::Surveyed(Box::new(bench.world.facts(&bench.m.state))),
    }
}

fn act(bench: &mut Bench, op: u8, seed: u64) {
    match op {
        // Most of the time the world just answers.
        0..=199 => {
            if bench.stopped().is_some() || !bench.has_answers() {
                bench.begin();
            } else {
                bench.advance();
            }
        }
        200..=214 => bench.play([turn(seed)]),
        215..=224 => {
            let event = stray(bench, seed);
            bench.feed(event);
        }
        225..=226 => bench.stop(pick(
            &[
                StopRequest::AfterTick,
                StopRequest::Graceful(2),
                StopRequest::Graceful(15),
                StopRequest::Now(9),
            ],
            seed,
        )),
        227..=230 => {
            bench.crash();
            bench.begin();
        }
        231 => bench.feed(Event::Failed {
            kind: pick(&[ErrorKind::Git, ErrorKind::Io, ErrorKind::DiskFull, ErrorKind::Internal], seed),
            detail: "x".repeat(5000),
        }),
        232 if seed.is_multiple_of(4) => {
            bench.feed(Event::Tampered { kind: TamperKind::Store, detail: "edited".into() });
        }
        232..=235 => bench.world.restless = u32::try_from(seed % 5).unwrap(),
        236..=239 => {
            let record = OperatorRecord { op: commands(bench, seed), by: "operator".into() };
            bench.world.commands.push(PendingCommand { id: format!("{seed}"), record });
        }
        240..=241 => {
            let mutation = Mutation { file: "goals.yaml".into(), what: "changed".into() };
            bench.world.mutation = seed.is_multiple_of(4).then_some(mutation);
        }
        242..=243 => {
            let label = pick(&["good", "start"], seed);
            // Nobody commits by hand while a peer runs.
            if bench.m.state.open.is_none() {
                bench.world.operator_commits(label);
            }
        }
        244..=247 => {
            // Clocks jump, back too, by up to a day.
            let by = i64::try_from(seed % 172_800_000).unwrap() - 86_400_000;
            bench.now = Timestamp::from_millis(bench.now.as_millis() + by);
        }
        248 => bench.gate(pick(&["tests-pass", "lint-clean"], seed), Gate::Random(seed)),
        249 => bench.gate_ms = seed >> 44,
        _ => {
            bench.habit = pick(&[Habit::Good("good"), Habit::Good("start"), Habit::Busy, Habit::Empty], seed);
        }
    }
}

fn promises(bench: &Bench) {
    let numbers: Vec<u64> = bench.ticks().iter().map(|t| t.iteration.0).collect();
    assert!(
        numbers.iter().zip(1..).all(|(n, want)| *n == want),
        "ticks are numbered without gaps: {numbers:?}"
    );
    for tick in bench.ticks() {
        assert!(!(tick.success && tick.outcome != TickOutcome::Handoff), "only a handoff is a success");
        assert!(tick.success || tick.soft_fail_reason.is_some(), "a failure has a reason");
        assert!(tick.success || tick.skeptic != Some(SkepticVerdict::Clean), "only a success is a verdict");
    }
    // `complete` rests on a proof at exactly the tree that it names, a skeptic and a clean tree.
    for (i, record) in bench.log.iter().enumerate() {
        let Record::Exit(exit) = record else { continue };
        if exit.reason != StopReason::Complete {
            assert!(exit.proof.is_none());
            continue;
        }
        let tree = &exit.proof.as_ref().unwrap().tree;
        let before = bench.log.get(..i).unwrap();
        let passed = |r: &Record| match r {
            Record::Proof(p) => p.at.tree == *tree && p.verdicts.iter().any(|v| v.verdict.is_pass()),
            _ => false,
        };
        assert!(before.iter().any(passed), "complete without a proof of its tree");
        let clean = |r: &Record| match r {
            Record::Tick(t) => t.tree_after == *tree && t.skeptic == Some(SkepticVerdict::Clean),
            _ => false,
        };
        assert!(before.iter().any(clean), "complete without a clean skeptic at its tree");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_events_breaks_a_promise(ops in prop::collection::vec((any::<u8>(), any::<u64>()), 1..400)) {
        let mut bench = Bench::new("ann bob cyd");
        bench.gate("tests-pass", Gate::At("good"));
        bench.gate("lint-clean", Gate::Green);
        bench.soft("docs-read", SoftRule::Other { needed: 1 });
        bench.habit = Habit::Good("good");
        bench.cfg.stuck_after = 4;
        bench.cfg.stuck_gates = vec![goal("tests-pass")];
        bench.begin();
        for (op, seed) in ops {
            act(&mut bench, op, seed);
        }
        promises(&bench);
    }

    #[test]
    fn every_undisturbed_loop_comes_to_rest(seeds in prop::collection::vec(any::<u64>(), 0..25), salt: u64) {
        let mut bench = Bench::new("ann bob").up_to(30);
        bench.gate("tests-pass", Gate::Random(salt));
        bench.soft("docs-read", SoftRule::Other { needed: 1 });
        bench.habit = Habit::Good("good");
        bench.cfg.rules.dry_run = salt.is_multiple_of(256);
        bench.play(seeds.into_iter().map(turn));
        bench.run();
        promises(&bench);
        prop_assert!(bench.m.state.open.is_none() || matches!(bench.m.phase, Phase::Stopped(StopReason::Error(_))));
        prop_assert!(bench.ticks().len() <= 30);
    }
}
