//! The checks that judge the loop itself, by its journal.

use peers_model::outcome::StopReason;
use peers_model::record::{ExitRecord, OperatorOp, OperatorRecord, Record, TickOutcome, TickRecord};

use super::{World, name_of};
use crate::Verdict;

impl World {
    /// A turn of which a clean tick is left, or what `change` makes of it.
    fn tick(&mut self, change: impl FnOnce(&mut TickRecord)) {
        self.begin_tick("claude");
        self.end_tick("claude", Vec::new(), |tick| {
            tick.evidence = true;
            change(tick);
        });
    }

    fn streak(&self) -> (Verdict, String) {
        let outcome = self.check("convergence");
        (outcome.report.verdict, outcome.report.summary)
    }
}

#[test]
fn row_28_so_many_clean_ticks_in_a_row_are_needed() {
    let mut world = World::running();
    for (done, verdict) in [(1, Verdict::Fail), (2, Verdict::Fail), (3, Verdict::Pass)] {
        world.tick(|_| {});
        let ticks = "clean ticks in a row";
        assert_eq!(world.streak(), (verdict, format!("{done} of 3 {ticks}")));
    }
    assert_eq!(world.check_with("convergence", &["--n", "4"]).report.verdict, Verdict::Fail);
    world.accept_config("goals: {convergence_n: 5}\n");
    world.tick(|_| {});
    assert_eq!(world.streak(), (Verdict::Fail, "4 of 5 clean ticks in a row".to_owned()));
    assert_eq!(world.check_with("convergence", &["--n=4"]).report.verdict, Verdict::Pass);
}

#[test]
fn row_29_what_is_not_in_the_journal_converges_nothing() {
    let mut world = World::running();
    assert_eq!(world.streak().0, Verdict::Fail, "no tick yet");
    assert_eq!(world.check_with("convergence", &["--n", "0"]).report.verdict, Verdict::Fail);
    for _ in 0..2 {
        world.tick(|_| {});
    }
    // What a peer writes into the copy of the state is read by nobody.
    std::fs::create_dir_all(world.work.join(".peers")).unwrap();
    std::fs::write(world.work.join(".peers/state.json"), r#"{"consecutive_clean_ticks": 9}"#).unwrap();
    assert_eq!(world.streak().0, Verdict::Fail);
    assert_eq!(world.without_store("convergence").report.verdict, Verdict::Error);
    let journal = world.path("store/journal/000001.jsonl");
    let forged =
        std::fs::read_to_string(&journal).unwrap().replace("\"evidence\":true", "\"evidence\":false");
    std::fs::write(&journal, forged).unwrap();
    for check in ["convergence", "peers-healthy"] {
        assert_eq!(world.check(check).report.verdict, Verdict::Error, "{check}");
    }
}

#[test]
fn row_30_what_a_turn_does_to_the_streak() {
    type Change = fn(&mut TickRecord);
    let cases: [(&str, Change, u32); 6] = [
        ("a clean turn", |_| {}, 3),
        ("a failed turn", |tick| (tick.outcome, tick.success) = (TickOutcome::PeerFailed, false), 0),
        ("a rate-limited turn", |tick| (tick.outcome, tick.success) = (TickOutcome::RateLimited, false), 2),
        ("a report that does not block", |tick| tick.bugs_reported = 1, 3),
        ("a report that blocks", |tick| tick.blocking_report = true, 0),
        ("a turn without evidence", |tick| tick.evidence = false, 2),
    ];
    for (what, change, left) in cases {
        let mut world = World::running();
        world.tick(|_| {});
        world.tick(|_| {});
        world.tick(change);
        assert_eq!(world.streak().1, format!("{left} of 3 clean ticks in a row"), "{what}");
    }
}

#[test]
fn row_31_a_peer_that_needs_its_operator_is_not_healthy() {
    let mut world = World::running();
    assert_eq!(world.check("peers-healthy").report.verdict, Verdict::Pass, "no tick yet");
    world.tick(|tick| tick.peer_state_after = "degraded".into());
    assert_eq!(world.check("peers-healthy").report.verdict, Verdict::Pass);
    world.append(Record::Exit(Box::new(ExitRecord {
        reason: StopReason::PeerUnavailable(name_of("codex")),
        detail: String::new(),
        ticks_in_run: 1,
        signal: None,
        head: None,
        proof: None,
        in_gates: false,
    })));
    let report = world.check("peers-healthy").report;
    assert_eq!(report.verdict, Verdict::Fail);
    assert!(report.findings[0].message.starts_with("needs its operator"), "{:?}", report.findings);
    let op = OperatorOp::Resumed;
    world.append(Record::Operator(OperatorRecord { op, by: "ann".into() }));
    world.start_run(Vec::new());
    assert_eq!(
        world.check("peers-healthy").report.verdict,
        Verdict::Pass,
        "what came before the resume is over"
    );
}
