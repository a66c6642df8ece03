//! Peers whose service refuses them, peers that are blocked, and spending that leads nowhere.

use std::num::NonZeroU64;
use std::time::Duration;

use peers_core::machine::{Effect, Notice};
use peers_model::Usd;
use peers_model::config::{PeerBudget, PositiveUsd, UsdMode};
use peers_model::outcome::{ApiClass, BudgetKind, ExitClass, StopReason};
use peers_model::record::{AckTarget, OperatorOp, TickOutcome};

use crate::bench::Bench;
use crate::world::{Gate, Turn, handoff_text, peer};

const HOUR: u64 = 3_600_000;

fn dollars(n: u64) -> Usd {
    Usd::from_micros(n * 1_000_000)
}

fn capped(bench: &Bench, hours: u64) -> Turn {
    let mut turn = Turn::fails(ExitClass::Nonzero, ApiClass::UsageCap);
    turn.exit.resets_at = Some(bench.now.plus(Duration::from_hours(hours)));
    turn
}

fn blocked(on: &str) -> Turn {
    Turn::commit(on, &format!("what I tried\n\nPeer: {{me}}\nPeer-Status: blocked\nBlocked-On: {on}\n"))
}

#[test]
fn a_peer_at_its_usage_cap_waits_until_it_opens_and_the_other_goes_on() {
    let mut bench = Bench::new("ann bob").up_to(4);
    let cap = capped(&bench, 2);
    let opens = cap.exit.resets_at.unwrap();
    bench.plays([cap, Turn::says("", ""), Turn::says("", ""), Turn::says("", "")]);
    assert_eq!(bench.order(), "ann bob bob bob");
    let first = &bench.ticks()[0];
    assert_eq!((first.outcome, first.classification.as_str()), (TickOutcome::UsageCapped, "usage-cap"));
    let until = bench.health("ann").not_before.unwrap();
    assert!(until >= opens && until.since(opens) <= Duration::from_mins(1), "{until}");
    assert!(bench.health("ann").recent.is_empty(), "it is no failure of the peer");
    assert!(
        bench
            .effects
            .iter()
            .any(|e| matches!(e, Effect::Tell(Notice::PeerWaits(c)) if c.peer == peer("ann")))
    );
}

#[test]
fn when_all_are_at_their_caps_the_loop_waits_for_the_one_that_opens_first() {
    let mut bench = Bench::new("ann bob").up_to(3);
    let (late, soon) = (capped(&bench, 4), capped(&bench, 1));
    bench.plays([late, soon, Turn::says("", "")]);
    assert_eq!(bench.order(), "ann bob bob");
    assert_eq!(bench.waits.len(), 1);
    assert!((HOUR - 30_000..=HOUR + 60_000).contains(&bench.waits[0]), "{:?}", bench.waits);
}

#[test]
fn a_cap_beyond_what_the_operator_allows_makes_the_peer_unavailable() {
    let mut bench = Bench::new("ann bob");
    bench.cfg.max_wait_s = 3600;
    bench.play([capped(&bench, 2)]);
    assert_eq!(bench.run(), StopReason::PeerUnavailable(peer("ann")));
    assert!(bench.stop_detail().contains("usage cap lasts until"), "{}", bench.stop_detail());

    let mut three = Bench::new("ann bob cal");
    three.cfg.max_wait_s = 3600;
    three.cfg.rules.continue_without_peer = true;
    three.cfg.max_ticks = Some(3);
    three.plays([capped(&three, 2), Turn::says("", ""), Turn::says("", "")]);
    assert_eq!(three.order(), "ann bob cal");
    assert_eq!(three.ticks()[0].outcome, TickOutcome::UsageCapped, "it needs nobody: it waits");
}

#[test]
fn a_peer_that_stays_refused_is_given_up_when_its_time_is_over() {
    let mut bench = Bench::new("ann");
    bench.cfg.max_wait_s = 600;
    bench.cfg.max_ticks = Some(40);
    bench.play((0..40).map(|_| Turn::fails(ExitClass::Nonzero, ApiClass::Transient)));
    assert_eq!(bench.run(), StopReason::PeerUnavailable(peer("ann")));
    let waited: u64 = bench.waits.iter().sum();
    assert!((590_000..=660_000).contains(&waited), "{:?}", bench.waits);
}

#[test]
fn a_handoff_before_the_cap_counts_and_the_peer_waits_all_the_same() {
    let mut bench = Bench::new("ann bob").up_to(3);
    let mut turn = Turn::commit("work", &handoff_text("", "")).exit(ExitClass::Nonzero, ApiClass::UsageCap);
    turn.exit.resets_at = Some(bench.now.plus(Duration::from_hours(1)));
    bench.plays([turn, Turn::says("", ""), Turn::says("", "")]);
    assert!(bench.ticks()[0].success && bench.ticks()[0].rescued);
    assert_eq!(bench.order(), "ann bob bob");
}

#[test]
fn who_is_blocked_has_no_turn_until_somebody_else_changes_something() {
    let mut bench = Bench::new("ann bob").up_to(4);
    bench.plays([blocked("no licence"), Turn::says("", ""), Turn::handoff("way"), Turn::says("", "")]);
    assert_eq!(bench.order(), "ann bob bob ann");
    let first = &bench.ticks()[0];
    assert_eq!((first.outcome, first.blocked_on.as_deref()), (TickOutcome::Blocked, Some("no licence")));
    assert!(bench.health("ann").blocked.is_none() && bench.health("ann").recent.len() == 1);
}

#[test]
fn who_says_again_that_it_is_blocked_is_asked_ever_more_seldom() {
    let mut bench = Bench::new("ann bob").up_to(12);
    let work = |n: &str| Turn::handoff(n);
    bench.play([blocked("no licence"), work("a"), blocked("no licence"), work("b"), work("c")]);
    bench.play([blocked("no licence"), work("d"), work("e"), work("f"), work("g"), work("h"), work("i")]);
    bench.begin();
    bench.until(|b| b.ticks().len() == 6);
    assert_eq!(bench.order(), "ann bob ann bob bob ann", "after one turn of another, then after two");
    assert_eq!(bench.health("ann").blocked_times, 3);
    assert_eq!(bench.finish(), StopReason::MaxTicks);
    assert_eq!(bench.order(), "ann bob ann bob bob ann bob bob bob bob ann bob", "after four");
    // It worked: what it says next is said for the first time.
    assert_eq!((bench.health("ann").blocked, bench.health("ann").blocked_times), (None, 0));
}

#[test]
fn who_is_degraded_has_one_turn_while_all_others_wait_for_their_services() {
    for (mends, order) in [(true, "ann ann ann bob ann ann"), (false, "ann ann ann bob ann bob")] {
        let mut bench = Bench::new("ann bob").up_to(6);
        bench.cfg.rules.max_retries = 9;
        let fails = || Turn::fails(ExitClass::Nonzero, ApiClass::None);
        let cap = capped(&bench, 2);
        let last = if mends { Turn::handoff("mended") } else { fails() };
        bench.plays([fails(), fails(), fails(), cap, last, Turn::says("", "")]);
        assert_eq!(bench.order(), order);
        assert_eq!(bench.waits.len(), usize::from(!mends), "who is well again goes on");
    }
}

#[test]
fn when_every_peer_is_blocked_the_run_ends_and_a_new_one_asks_them_again() {
    let mut bench = Bench::new("ann bob");
    bench.play([blocked("no licence"), blocked("the server is down")]);
    let reason = bench.run();
    assert_eq!((reason.to_string().as_str(), reason.exit_code()), ("parked:blocked", 11));
    let detail = bench.stop_detail();
    assert!(
        detail.contains("ann (tick 1): no licence") && detail.contains("bob (tick 2): the server"),
        "{detail}"
    );
    assert_eq!(bench.m.state.spent.consecutive_failures, 0);
    bench.cfg.max_ticks = Some(1);
    bench.plays([Turn::says("", "")]);
}

#[test]
fn an_operator_can_say_that_what_was_in_the_way_is_gone() {
    let mut bench = Bench::new("ann bob cal").up_to(4);
    bench.play([blocked("no licence"), blocked("no network"), Turn::says("", ""), Turn::says("", "")]);
    bench.begin();
    bench.until(|b| b.ticks().len() == 2 && b.m.state.open.is_some());
    let op = OperatorOp::Ack { target: AckTarget::Blocked(peer("ann")), reason: "bought".into() };
    bench.world.told(op);
    assert_eq!(bench.finish(), StopReason::MaxTicks);
    assert_eq!(bench.order(), "ann bob cal ann");
    assert!(bench.health("bob").blocked.is_some(), "nobody said anything of that one");
}

fn spending(money: bool) -> Bench {
    let mut bench = Bench::new("ann bob");
    bench.gate("tests-pass", Gate::Red);
    bench.budget(|b| {
        b.max_usd_mode = UsdMode::Off;
        if money {
            b.max_usd_since_progress = Some(PositiveUsd(dollars(3)));
        } else {
            b.max_tokens_since_progress = NonZeroU64::new(300);
        }
    });
    bench.play((0..20).map(|n| Turn::handoff(&format!("t{n}")).uses(Some(100), Some(dollars(1)))));
    bench
}

#[test]
fn spending_without_progress_ends_the_run() {
    for money in [true, false] {
        let mut bench = spending(money);
        assert_eq!(bench.run(), StopReason::Budget(BudgetKind::NoProgress));
        assert_eq!(bench.ticks().len(), 3, "{money}");
        assert!(
            bench.stop_detail().contains("$3.00 in 3 ticks since the last progress"),
            "{}",
            bench.stop_detail()
        );
        assert!(!bench.stop_detail().contains("at least"), "{}", bench.stop_detail());
    }
}

#[test]
fn what_was_spent_without_progress_is_a_lower_bound_where_a_turn_told_a_part() {
    let said = |part: fn(&mut Turn)| {
        let mut bench = spending(true);
        for turn in &mut bench.script {
            *turn = turn.clone().uses(Some(1500), Some(dollars(1)));
        }
        part(&mut bench.script[1]);
        assert_eq!(bench.run(), StopReason::Budget(BudgetKind::NoProgress));
        bench.stop_detail()
    };
    let both = said(|turn| turn.exit.at_least = true);
    assert!(both.starts_with("at least 4,500 tokens and at least $3.00 in 3 ticks"), "{both}");
    let money = said(|turn| turn.exit.usage.usd = None);
    assert!(money.starts_with("6,000 tokens and at least $3.00 in 4 ticks"), "{money}");
}

#[test]
fn a_gate_that_turns_green_or_a_bug_that_is_closed_starts_the_count_anew() {
    let mut bench = spending(true);
    bench.gate("lint", Gate::At("t1"));
    assert_eq!(bench.run(), StopReason::Budget(BudgetKind::NoProgress));
    assert_eq!(bench.ticks().len(), 5, "two, then green, then three");

    let mut bench = spending(true);
    bench.script[1].bugs_closed = 1;
    assert_eq!(bench.run(), StopReason::Budget(BudgetKind::NoProgress));
    assert_eq!(bench.ticks().len(), 5);
}

#[test]
fn a_gate_that_flaps_is_no_progress() {
    let mut bench = spending(true);
    bench.gate("lint", Gate::At("again"));
    for (n, turn) in bench.script.iter_mut().enumerate() {
        *turn = Turn::handoff(if n % 2 == 0 { "again" } else { "away" }).uses(Some(100), Some(dollars(1)));
    }
    assert_eq!(bench.run(), StopReason::Budget(BudgetKind::NoProgress));
    assert_eq!(bench.ticks().len(), 4, "green once, then three");
}

#[test]
fn a_turn_that_usually_costs_more_than_is_left_is_not_started() {
    let mut bench = Bench::new("ann");
    bench.budget(|b| b.max_tokens = NonZeroU64::new(450));
    bench.play((0..9).map(|_| Turn::says("", "").uses(Some(100), None)));
    assert_eq!(bench.run(), StopReason::Budget(BudgetKind::MaxTokens));
    assert_eq!(bench.ticks().len(), 4);
    let said = "50 tokens are left of `budget.max_tokens`, and a turn of ann usually costs 100 tokens";
    assert_eq!(bench.stop_detail(), said);

    // Another peer that costs less goes on.
    let mut bench = Bench::new("ann bob");
    bench.budget(|b| {
        let cap = PeerBudget { max_tokens: NonZeroU64::new(350), max_usd: None };
        b.per_peer.insert(peer("ann"), cap);
    });
    bench.cfg.max_ticks = Some(9);
    bench.plays((0..9).map(|_| Turn::says("", "").uses(Some(100), None)));
    assert_eq!(bench.order(), "ann bob ann bob ann bob bob bob bob");
}

#[test]
fn a_turn_may_spend_up_to_a_tenth_over_each_cap_that_stops() {
    let mut bench = Bench::new("ann bob");
    bench.budget(|b| {
        b.max_tokens = NonZeroU64::new(1000);
        b.max_usd = Some(PositiveUsd(dollars(10)));
        b.max_usd_mode = UsdMode::Hard;
        let cap = PeerBudget { max_tokens: NonZeroU64::new(500), max_usd: None };
        b.per_peer.insert(peer("bob"), cap);
    });
    bench.cfg.max_ticks = Some(2);
    bench.plays((0..2).map(|_| Turn::says("", "").uses(Some(100), Some(dollars(1)))));
    let ceilings: Vec<_> = bench
        .effects
        .iter()
        .filter_map(|e| match e {
            Effect::RunPeer(run) => Some((run.ceiling.tokens, run.ceiling.usd)),
            _ => None,
        })
        .collect();
    assert_eq!(ceilings, [(Some(1100), Some(dollars(11))), (Some(550), Some(dollars(10)))]);

    let mut soft = Bench::new("ann");
    soft.budget(|b| {
        b.max_usd = Some(PositiveUsd(dollars(10)));
        b.max_usd_mode = UsdMode::Warn;
    });
    soft.cfg.max_ticks = Some(1);
    soft.run();
    assert!(soft.effects.iter().any(|e| matches!(e, Effect::RunPeer(run) if run.ceiling.usd.is_none())));
}

#[test]
fn a_turn_that_is_ended_at_a_cap_is_no_failure_of_its_peer() {
    let mut bench = Bench::new("ann bob");
    bench.budget(|b| b.max_tokens = NonZeroU64::new(1000));
    bench.play([Turn::fails(ExitClass::Budget, ApiClass::None).uses(Some(1100), None)]);
    assert_eq!(bench.run(), StopReason::Budget(BudgetKind::MaxTokens));
    let tick = &bench.ticks()[0];
    assert_eq!((tick.outcome, tick.classification.as_str()), (TickOutcome::Interrupted, "budget-kill"));
    assert!(bench.health("ann").recent.is_empty());
    assert_eq!(bench.m.state.spent.consecutive_failures, 0);

    // Where a cap of its own ended it, the next one has its turn.
    let mut bench = Bench::new("ann bob").up_to(2);
    bench.plays([Turn::fails(ExitClass::Budget, ApiClass::None).uses(Some(1), None), Turn::says("", "")]);
    assert_eq!(bench.order(), "ann bob");
}

#[test]
fn a_wait_ends_at_the_wall_time_of_the_run() {
    let mut bench = Bench::new("ann");
    bench.budget(|b| b.max_wall_s = NonZeroU64::new(600));
    bench.play([capped(&bench, 5)]);
    assert_eq!(bench.run(), StopReason::Budget(BudgetKind::MaxWall));
    assert!(bench.waits[0] <= 600_000, "{:?}", bench.waits);
}

#[test]
fn a_new_run_begins_with_all_the_patience_that_the_operator_allows() {
    let mut bench = Bench::new("ann");
    bench.cfg.max_wait_s = 60;
    bench.cfg.max_ticks = Some(1);
    bench.plays((0..2).map(|_| Turn::fails(ExitClass::Nonzero, ApiClass::Transient)));
    bench.now = bench.now.plus(Duration::from_hours(10));
    assert_eq!(bench.run(), StopReason::MaxTicks, "the night between two runs is no wait");
    let health = bench.health("ann");
    assert!(health.rate_limit_streak == 1 && health.waited_ms < 20_000, "{health:?}");
}

#[test]
fn a_long_turn_of_another_peer_is_no_wait() {
    let mut bench = Bench::new("ann bob");
    bench.cfg.max_wait_s = 60;
    bench.cfg.max_ticks = Some(3);
    bench.play([Turn::fails(ExitClass::Nonzero, ApiClass::Transient)]);
    bench.begin();
    bench.until(|b| b.ticks().len() == 1);
    bench.now = bench.now.plus(Duration::from_hours(1));
    bench.play([Turn::says("", ""), Turn::fails(ExitClass::Nonzero, ApiClass::Transient)]);
    assert_eq!(bench.finish(), StopReason::MaxTicks);
}

#[test]
fn while_only_an_answer_of_one_who_waits_is_missing_nobody_else_has_a_turn() {
    // A second skeptic.
    let mut bench = Bench::green();
    bench.cfg.rules.skeptic_rounds = 2;
    bench.play([Turn::skeptic(), capped(&bench, 2)]);
    assert_eq!(bench.run(), StopReason::Complete);
    assert_eq!(bench.order(), "ann bob bob");
    // A review of the one who did not make the change.
    let mut bench = Bench::converging();
    bench.world.whole_tree = true;
    bench.play([Turn::handoff("good"), capped(&bench, 2)]);
    assert_eq!(bench.run(), StopReason::Complete);
    assert!(bench.order().starts_with("ann bob bob"), "{}", bench.order());
}

#[test]
fn an_answer_that_cannot_come_ends_the_run_and_is_not_asked_of_others_again_and_again() {
    // The wait is longer than the operator allows.
    let mut bench = Bench::green();
    bench.cfg.rules.skeptic_rounds = 3;
    bench.cfg.rules.continue_without_peer = true;
    let rule = bench.cfg.rules.peers[0].clone();
    bench.cfg.rules.peers.push(peers_model::record::PeerRule { name: peer("cal"), ..rule });
    bench.play([Turn::skeptic(), Turn::skeptic(), capped(&bench, 100)]);
    assert_eq!(bench.run(), StopReason::PeerUnavailable(peer("cal")));
    assert_eq!(bench.order(), "ann bob cal");
    // It says that something is in its way.
    let mut bench = Bench::green();
    bench.cfg.rules.skeptic_rounds = 2;
    bench.play([
        Turn::skeptic(),
        Turn::commit("start", "s\n\nPeer: {me}\nPeer-Status: blocked\nBlocked-On: x\n"),
    ]);
    assert_eq!(bench.run(), StopReason::ParkedBlocked);
    assert_eq!(bench.order(), "ann bob");
}
