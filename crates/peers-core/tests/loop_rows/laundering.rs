//! Weakened tests in turns that do not hand off, and turns that drown the record of it.

use peers_core::cheat::{TurnDiff, WEAKENED};
use peers_core::machine::Origin;
use peers_model::TickNo;
use peers_model::limits;
use peers_model::outcome::{ApiClass, ExitClass};
use peers_model::record::{AckTarget, CorrectionKind, OperatorOp, Record, TickOutcome};
use peers_model::weakening::Weakened;

use crate::bench::Bench;
use crate::cheating::{test_file, weaker};
use crate::world::{Turn, handoff_text, tree};

/// Each way to end without a handoff, and what it amounts to.
const ENDS: [(ExitClass, ApiClass, TickOutcome); 9] = [
    (ExitClass::Ok, ApiClass::None, TickOutcome::NoHandoff),
    (ExitClass::Nonzero, ApiClass::None, TickOutcome::PeerFailed),
    (ExitClass::Signal, ApiClass::None, TickOutcome::PeerFailed),
    (ExitClass::Idle, ApiClass::None, TickOutcome::PeerFailed),
    (ExitClass::Absolute, ApiClass::None, TickOutcome::PeerFailed),
    (ExitClass::Pattern, ApiClass::Other, TickOutcome::PeerFailed),
    (ExitClass::Nonzero, ApiClass::Transient, TickOutcome::RateLimited),
    (ExitClass::Interrupted, ApiClass::None, TickOutcome::Interrupted),
    (ExitClass::Nonzero, ApiClass::Auth, TickOutcome::NeedsOperator),
];

/// Weakened tests in commits that hand nothing off.
fn gutted(label: &str, class: ExitClass, api: ApiClass) -> Turn {
    Turn::commit(label, "wip").measured(weaker()).exit(class, api)
}

fn ann(turns: Vec<Turn>) -> Bench {
    let mut bench = Bench::new("ann");
    bench.cfg.max_ticks = Some(u64::try_from(turns.len()).unwrap());
    bench.play(turns);
    bench.run();
    bench
}

/// Trailers of reviews that no goal asks for.
fn rejected(count: u32) -> String {
    (0..count).fold(String::new(), |text, n| text + &format!("Peer-Review-Of: no-goal-{n}\n"))
}

fn warned_turn() -> Turn {
    Turn::commit("one", &handoff_text("", "")).measured(weaker())
}

#[test]
fn row_47_a_weakening_is_warned_about_however_the_turn_ended() {
    for (class, api, outcome) in ENDS {
        let bench = ann(vec![gutted("one", class, api)]);
        let tick = bench.tick(1);
        assert_eq!((tick.outcome, tick.success), (outcome, false), "{class:?} {api:?}");
        assert!(tick.prewarned && tick.corrected.is_none(), "{class:?} {api:?}");
        let said = tick.warnings_emitted.first().unwrap();
        assert!(
            said.starts_with(WEAKENED) && said.contains("1 fewer assertions in tests/test_sum.py"),
            "{said}"
        );
        assert_eq!(tick.tree_after, tree("one"), "it stands, once");
    }
}

#[test]
fn row_47_the_second_weakening_is_reverted_however_the_turn_ended() {
    for (class, api, outcome) in ENDS {
        let bench = ann(vec![warned_turn(), gutted("two", class, api)]);
        let tick = bench.tick(2);
        assert_eq!(tick.corrected, Some(CorrectionKind::Revert), "{class:?} {api:?}");
        assert_eq!((tick.success, &tick.tree_after), (false, &tree("one")), "{class:?} {api:?}");
        assert!(tick.salvage.is_some(), "{class:?} {api:?}");
        let reason = tick.soft_fail_reason.as_deref().unwrap();
        if outcome == TickOutcome::NeedsOperator {
            assert!(reason.starts_with("it is not logged in") && reason.contains(WEAKENED), "{reason}");
        } else {
            assert!(reason.starts_with(WEAKENED), "{class:?} {api:?}");
        }
        let kept = if outcome.outlives_correction() { outcome } else { TickOutcome::Corrected };
        assert_eq!(tick.outcome, kept, "{class:?} {api:?}");
        assert!(tick.warnings_emitted[0].starts_with(WEAKENED), "{class:?} {api:?}");
    }
}

#[test]
fn row_47_a_turn_that_a_crash_left_open_is_measured_too() {
    let mut bench = Bench::new("ann");
    bench.play([warned_turn(), gutted("two", ExitClass::Ok, ApiClass::None).quick()]);
    bench.begin();
    bench.until(|b| b.ticks().len() == 1 && b.m.state.open.is_some());
    bench.crash();
    bench.cfg.max_ticks = Some(2);
    bench.run();
    let tick = bench.tick(2);
    assert!(tick.recovered);
    assert_eq!((tick.corrected, &tick.tree_after), (Some(CorrectionKind::Revert), &tree("one")));
}

#[test]
fn row_47_tests_alone_are_no_offence_before_the_handoff() {
    let bench = ann(vec![Turn::commit("one", "wip").diff(vec![test_file()])]);
    assert!(!bench.tick(1).prewarned && bench.tick(1).corrected.is_none());
}

#[test]
fn row_47_the_verdict_on_the_tests_comes_first_and_names_a_few() {
    let weaker = (0..9).map(|n| Weakened::Assertions { lost: 1 }.at(&format!("tests/test_{n}.py"))).collect();
    let diff = TurnDiff { weaker, ..crate::cheating::weaker() };
    let text = handoff_text("", "Peer-Review-Of: no-such-goal\n");
    let bench = ann(vec![
        Turn::commit("one", &text).measured(diff.clone()),
        Turn::commit("two", &text).measured(diff),
    ]);
    let said = bench.tick(1).warnings_emitted.first().unwrap();
    assert!(said.starts_with(WEAKENED) && said.contains("and 4 more"), "{said}");
    let why = bench.tick(2).soft_fail_reason.as_deref().unwrap();
    assert!(why.starts_with(WEAKENED) && why.contains("and 4 more"), "{why}");
}

#[test]
fn a_turn_cannot_fill_its_record_with_warnings() {
    let trailers = rejected(2500);
    let mut turn = Turn::commit("one", &handoff_text("", &trailers));
    for n in 0..60 {
        turn = turn.and_commit(&format!("more {n}"), &handoff_text("", &trailers));
    }
    let bench = ann(vec![turn]);
    let tick = bench.tick(1);
    assert!(tick.soft_reviews_rejected > 60_000, "all were looked at");
    assert_eq!(tick.warnings_emitted.len(), 21);
    assert!(tick.warnings_emitted[20].ends_with("more warnings about this turn"));
    assert!(tick.warnings_emitted.iter().all(|w| w.len() <= limits::WARNING));
    let record = serde_json::to_vec(&Record::Tick(Box::new(tick.clone()))).unwrap();
    assert!(record.len() < 100_000, "{}", record.len());
}

#[test]
fn of_many_reviews_of_a_goal_in_one_turn_the_last_is_kept() {
    let mut bench = Bench::new("ann bob").up_to(1);
    bench.soft("docs-read", peers_model::review::SoftRule::Other { needed: 1 });
    let review = |pass: bool| {
        let section = format!("## Review\n{{\"pass\": {pass}, \"checked\": [\"a:1 x\"]}}\n\n");
        handoff_text(&section, "Peer-Review-Of: docs-read\n")
    };
    let mut turn = Turn::nothing();
    for n in 0..50 {
        turn.commits.push((None, review(n % 2 == 0), Origin::Peer));
    }
    bench.plays([turn]);
    let tick = bench.tick(1);
    assert_eq!((tick.reviews.len(), tick.soft_reviews_seen), (1, 50));
    assert!(!tick.reviews[0].pass);
}

#[test]
fn row_47_a_weakening_that_was_committed_without_a_handoff_is_the_first() {
    for (class, api, _) in ENDS.into_iter().filter(|(_, api, _)| *api != ApiClass::Auth) {
        let bench = ann(vec![gutted("before", class, api), warned_turn()]);
        assert!(bench.tick(1).prewarned, "{class:?} {api:?}");
        assert_eq!(bench.tick(2).corrected, Some(CorrectionKind::Revert), "{class:?} {api:?}");
    }
}

#[test]
fn row_47_a_turn_that_counts_for_nobody_stays_one_when_its_work_is_reverted() {
    for (class, api, outcome) in ENDS.into_iter().filter(|(_, _, o)| o.is_neutral()) {
        let bench = ann(vec![warned_turn(), gutted("two", class, api)]);
        assert_eq!((bench.tick(2).outcome, bench.tick(2).corrected), (outcome, Some(CorrectionKind::Revert)));
        let health = bench.health("ann");
        assert_eq!((health.recent_half_fails(), health.failed_cheating, health.prewarned), (0, 0, true));
        let cooled = bench.log.iter().any(|r| matches!(r, Record::Cooling(_)));
        assert_eq!(cooled, outcome == TickOutcome::RateLimited);
    }
}

/// `ann` weakens tests in each of these ticks; before tick `at` the operator acknowledges `acked`.
fn acknowledged(ticks: u64, at: usize, acked: u64) -> Bench {
    let mut bench = Bench::new("ann");
    bench.cfg.max_ticks = Some(ticks);
    bench.play(
        (0..ticks).map(|n| Turn::commit(&format!("work {n}"), &handoff_text("", "")).measured(weaker())),
    );
    bench.begin();
    // It is taken up once the tick that is open now is recorded.
    bench.until(|b| b.ticks().len() + 2 == at && b.m.state.open.is_some());
    let op = OperatorOp::Ack { target: AckTarget::Weakening(TickNo(acked)), reason: "meant".into() };
    bench.world.told(op);
    bench.finish();
    bench
}

#[test]
fn row_47_an_acknowledged_warning_is_gone_and_the_next_weakening_is_a_first_one() {
    let bench = acknowledged(3, 2, 1);
    assert!(bench.tick(2).prewarned && bench.tick(2).corrected.is_none());
    assert_eq!(bench.tick(3).corrected, Some(CorrectionKind::Revert), "it is no licence");
}

#[test]
fn row_47_an_acknowledged_revert_lets_the_weakening_be_made_again() {
    let bench = acknowledged(4, 3, 2);
    assert_eq!(bench.tick(2).corrected, Some(CorrectionKind::Revert));
    assert!(bench.tick(3).prewarned && bench.tick(3).corrected.is_none());
    assert_eq!(bench.tick(4).corrected, Some(CorrectionKind::Revert));
}
