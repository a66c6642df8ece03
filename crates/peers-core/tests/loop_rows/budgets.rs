//! Caps: where they stop the loop, and what they are no part of.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use peers_core::budget::{self, Caps, GivenUsd};
use peers_core::machine::{Effect, Notice};
use peers_model::config::{Budget, PeerBudget, PositiveUsd, UsdMode};
use peers_model::outcome::{BudgetKind, StopReason};
use peers_model::record::{Cap, CapSet, OperatorOp, OperatorRecord};
use peers_model::verdict::Place;
use peers_model::{Timestamp, Usd};

use crate::bench::Bench;
use crate::world::{Turn, goal, peer};

fn dollars(n: u64) -> Usd {
    Usd::from_micros(n * 1_000_000)
}

/// A turn of ten seconds, 100 tokens and one dollar.
fn costly() -> Turn {
    Turn::says("", "").takes(10_000).uses(Some(100), Some(dollars(1)))
}

fn usd(mode: UsdMode) -> Bench {
    let mut bench = Bench::new("ann bob");
    bench.budget(|b| {
        b.max_usd = Some(PositiveUsd(dollars(3)));
        b.max_usd_mode = mode;
    });
    bench.cfg.max_ticks = Some(6);
    bench.play((0..6).map(|_| costly()));
    bench
}

#[test]
fn row_58_each_budget_stops_at_its_limit_and_the_last_tree_is_judged_once() {
    type Change = fn(&mut Budget);
    let cases: [(BudgetKind, Change); 4] = [
        (BudgetKind::MaxIterations, |b| b.max_iterations = NonZeroU64::new(3)),
        (BudgetKind::MaxRuntime, |b| b.max_runtime_s = NonZeroU64::new(30)),
        (BudgetKind::MaxTokens, |b| b.max_tokens = NonZeroU64::new(300)),
        (BudgetKind::MaxUsd, |b| {
            b.max_usd = Some(PositiveUsd(dollars(3)));
            b.max_usd_mode = UsdMode::Hard;
        }),
    ];
    for (kind, change) in cases {
        let mut bench = Bench::new("ann bob");
        bench.budget(change);
        bench.play((0..9).map(|_| costly()));
        let reason = bench.run();
        assert_eq!((reason.clone(), reason.exit_code()), (StopReason::Budget(kind), 10));
        assert_eq!(bench.ticks().len(), 3, "{kind:?}");
        let head = bench.world.tip().id.clone();
        assert_eq!(
            bench.judged(Place::Live).iter().filter(|(_, key)| key.head == head).count(),
            1,
            "{kind:?}"
        );
    }
}

#[test]
fn row_58_wall_time_is_measured_from_the_start_of_the_run() {
    let mut bench = Bench::new("ann bob");
    bench.budget(|b| b.max_wall_s = NonZeroU64::new(60));
    bench.begin();
    bench.until(|b| b.ticks().len() == 2);
    bench.now = bench.now.plus(Duration::from_secs(59));
    bench.until(|b| b.ticks().len() == 3);
    bench.now = bench.now.plus(Duration::from_secs(1));
    assert_eq!(bench.finish(), StopReason::Budget(BudgetKind::MaxWall));
    assert_eq!(bench.ticks().len(), 3);
    bench.cfg.max_ticks = Some(1);
    assert_eq!(bench.run(), StopReason::MaxTicks, "a new run has its own minute");
}

#[test]
fn row_58_failures_in_a_row_stop_and_a_success_in_between_does_not() {
    let failing = || Turn::nothing();
    let stopping = |turns: Vec<Turn>| {
        let mut bench = Bench::new("ann bob");
        bench.budget(|b| b.max_consecutive_failures = NonZeroU32::new(2));
        bench.cfg.max_ticks = Some(4);
        bench.play(turns);
        (bench.run(), bench.ticks().len())
    };
    let failures = StopReason::Budget(BudgetKind::MaxConsecutiveFailures);
    assert_eq!(stopping(vec![failing(), failing()]), (failures, 2));
    let mixed = vec![failing(), Turn::says("", ""), failing(), Turn::says("", "")];
    assert_eq!(stopping(mixed), (StopReason::MaxTicks, 4));
}

#[test]
fn row_58_the_tick_cap_comes_before_the_budgets_and_they_before_stuck_gates() {
    let mut bench = Bench::new("ann bob");
    bench.cfg.stuck_after = 2;
    bench.cfg.stuck_gates = vec![goal("tests-pass")];
    bench.budget(|b| b.max_iterations = NonZeroU64::new(2));
    let mut capped = bench.clone();
    capped.cfg.max_ticks = Some(2);
    assert_eq!(capped.run(), StopReason::MaxTicks);
    assert_eq!(bench.clone().run(), StopReason::Budget(BudgetKind::MaxIterations));
    bench.budget(|b| b.max_iterations = None);
    assert_eq!(bench.run(), StopReason::StuckGate(goal("tests-pass")));
}

#[test]
fn row_58_money_hard_stops_warn_warns_once_and_off_says_nothing() {
    let mut hard = usd(UsdMode::Hard);
    assert_eq!(hard.run(), StopReason::Budget(BudgetKind::MaxUsd));
    assert_eq!((hard.ticks().len(), hard.warned("money cap")), (3, 0));
    let mut warn = usd(UsdMode::Warn);
    assert_eq!(warn.run(), StopReason::MaxTicks);
    assert_eq!((warn.ticks().len(), warn.warned("money cap")), (6, 1));
    assert_eq!(warn.tick(3).usd_warned, Some(dollars(3)));
    let mut off = usd(UsdMode::Off);
    assert_eq!(off.run(), StopReason::MaxTicks);
    assert_eq!((off.ticks().len(), off.warned("money cap")), (6, 0));
}

#[test]
fn row_59_a_cap_that_is_gone_binds_nobody() {
    let mut bench = Bench::new("ann bob");
    bench.budget(|b| b.max_iterations = NonZeroU64::new(2));
    assert_eq!(bench.run(), StopReason::Budget(BudgetKind::MaxIterations));
    bench.cfg.caps = Caps::new(Budget { max_iterations: None, ..Budget::default() });
    bench.cfg.max_ticks = Some(3);
    assert_eq!(bench.run(), StopReason::MaxTicks);
    assert_eq!(bench.ticks().len(), 5);
}

#[test]
fn row_59_what_was_spent_outlives_a_run_until_the_operator_resets_it() {
    let mut bench = Bench::new("ann bob");
    bench.budget(|b| b.max_iterations = NonZeroU64::new(2));
    bench.run();
    assert_eq!(bench.run(), StopReason::Budget(BudgetKind::MaxIterations));
    assert_eq!(bench.ticks().len(), 2);
    bench.world.told(OperatorOp::BudgetReset);
    assert_eq!(bench.run(), StopReason::Budget(BudgetKind::MaxIterations));
    assert_eq!(bench.ticks().len(), 4, "two more");
    assert_eq!(bench.m.state.spent.iterations, 2);
}

#[test]
fn row_59_a_cap_that_the_operator_sets_stands_over_the_configuration_and_a_reset_takes_it_back() {
    let mut bench = Bench::new("ann bob");
    bench.budget(|b| b.max_iterations = NonZeroU64::new(2));
    assert_eq!(bench.run(), StopReason::Budget(BudgetKind::MaxIterations));
    let caps = vec![CapSet { cap: Cap::MaxIterations, value: 5 }];
    bench.world.told(OperatorOp::BudgetSet { caps, until: None });
    assert_eq!(bench.run(), StopReason::Budget(BudgetKind::MaxIterations));
    assert_eq!(bench.ticks().len(), 5, "the raise that waits is taken before the cap is asked");
    bench.world.told(OperatorOp::BudgetReset);
    assert_eq!(bench.run(), StopReason::Budget(BudgetKind::MaxIterations));
    assert_eq!(bench.ticks().len(), 7, "two more, by the configuration");
}

#[test]
fn row_59_a_cap_that_was_set_for_a_time_ends_with_it() {
    let mut bench = Bench::new("ann bob");
    bench.budget(|b| b.max_iterations = NonZeroU64::new(2));
    bench.play((0..9).map(|_| costly()));
    let until = bench.now.plus(Duration::from_mins(1));
    let caps = vec![CapSet { cap: Cap::MaxIterations, value: 9 }];
    bench.world.told(OperatorOp::BudgetSet { caps, until: Some(until) });
    bench.begin();
    bench.until(|b| b.ticks().len() == 4);
    bench.now = until;
    assert_eq!(bench.finish(), StopReason::Budget(BudgetKind::MaxIterations));
    let ticks = bench.ticks().len();
    assert!((4..=5).contains(&ticks), "{ticks}");
}

#[test]
fn every_cap_can_be_set_and_of_it_and_the_money_of_the_command_line_the_later_word_holds() {
    let mut bench = Bench::new("ann bob");
    let all = [
        (Cap::MaxIterations, 1),
        (Cap::MaxRuntimeS, 2),
        (Cap::MaxWallS, 3),
        (Cap::MaxConsecutiveFailures, 4),
        (Cap::MaxTokens, 5),
        (Cap::MaxUsd, 6_000_000),
    ];
    let caps = all.map(|(cap, value)| CapSet { cap, value }).to_vec();
    let record = OperatorRecord { op: OperatorOp::BudgetSet { caps, until: None }, by: "operator".into() };
    bench.m.state.apply(bench.now, None, &peers_model::record::Record::Operator(record)).unwrap();
    let configured = Caps::new(Budget { max_usd: Some(PositiveUsd(dollars(9))), ..Budget::default() });
    let budget = configured.in_force(&bench.m.state, bench.now).budget;
    let n = NonZeroU64::new;
    assert_eq!((budget.max_iterations, budget.max_runtime_s, budget.max_wall_s), (n(1), n(2), n(3)));
    assert_eq!((budget.max_consecutive_failures, budget.max_tokens), (NonZeroU32::new(4), n(5)));
    assert_eq!(budget.max_usd, Some(PositiveUsd(dollars(6))));
    let set = bench.now;
    let cap = |at: Timestamp, now: Timestamp| {
        let given = GivenUsd { usd: dollars(7), at };
        configured.clone().given(Some(given)).in_force(&bench.m.state, now).budget.max_usd
    };
    let later = set.plus(Duration::from_millis(1));
    assert_eq!(cap(later, later), Some(PositiveUsd(dollars(7))), "given after it was set");
    assert_eq!(cap(Timestamp::default(), later), Some(PositiveUsd(dollars(6))), "set after it was given");
}

#[test]
fn row_58_no_turn_begins_after_the_deadline_and_a_running_one_is_cut_at_it() {
    let mut bench = Bench::new("ann bob");
    let deadline = bench.now.plus(Duration::from_mins(1));
    bench.budget(|b| b.deadline = Some(deadline));
    bench.play((0..3).map(|_| costly()));
    bench.begin();
    bench.until(|b| b.ticks().len() == 1);
    bench.now = deadline.plus(Duration::from_secs(1));
    assert_eq!(bench.finish(), StopReason::Budget(BudgetKind::Deadline));
    assert!(bench.ticks().len() <= 2, "{}", bench.ticks().len());
    let ticks = bench.ticks().len();
    assert_eq!(bench.run(), StopReason::Budget(BudgetKind::Deadline), "another run does not move it");
    assert_eq!(bench.ticks().len(), ticks);
    let caps = |deadline| Caps::new(Budget { deadline, ..Budget::default() });
    let at =
        |left: Duration| budget::runtime_left(&caps(Some(bench.now.plus(left))), &bench.m.state, bench.now);
    assert_eq!(at(Duration::from_secs(5)), Some(5));
    assert!(budget::runtime_left(&caps(None), &bench.m.state, bench.now) > Some(5));
    let started = bench.m.state.run.as_ref().unwrap().started_at;
    let wall = Caps::new(Budget { max_wall_s: NonZeroU64::new(100), ..Budget::default() });
    let left = budget::runtime_left(&wall, &bench.m.state, started.plus(Duration::from_secs(93)));
    assert_eq!(left, Some(7), "the wall time of the run ends a turn as well");
}

#[test]
fn row_58_a_peer_over_its_own_cap_takes_no_more_turns_and_the_run_ends_when_none_is_left() {
    let own = |tokens: Option<u64>, usd: Option<u64>| PeerBudget {
        max_tokens: tokens.and_then(NonZeroU64::new),
        max_usd: usd.map(|n| PositiveUsd(dollars(n))),
    };
    let played = |caps: &[(&str, PeerBudget)], mode: UsdMode, ticks: u64| {
        let mut bench = Bench::new("ann bob");
        bench.budget(|b| {
            b.max_usd_mode = mode;
            b.per_peer = caps.iter().map(|(name, cap)| (peer(name), *cap)).collect();
        });
        bench.cfg.max_ticks = Some(ticks);
        bench.play((0..9).map(|_| costly()));
        let reason = bench.run();
        let turns: Vec<_> = bench.ticks().iter().map(|tick| tick.peer.to_string()).collect();
        (reason, turns)
    };
    let (reason, turns) = played(&[("ann", own(Some(200), None))], UsdMode::Auto, 6);
    assert_eq!(reason, StopReason::MaxTicks);
    assert_eq!(turns, ["ann", "bob", "ann", "bob", "bob", "bob"]);
    let both = [("ann", own(None, Some(1))), ("bob", own(Some(300), Some(2)))];
    let (reason, turns) = played(&both, UsdMode::Hard, 9);
    assert_eq!((reason.clone(), reason.exit_code()), (StopReason::Budget(BudgetKind::PerPeer), 10));
    assert_eq!(turns, ["ann", "bob", "bob"]);
    let (reason, turns) = played(&both, UsdMode::Off, 6);
    assert_eq!(reason, StopReason::MaxTicks, "money that is ignored is ignored here too");
    assert_eq!(turns, ["ann", "bob", "ann", "bob", "ann", "bob"]);
}

/// Two peers under a cap of 3.50 dollars: a turn of ann costs a dollar, one of bob has no price.
fn half_priced(change: impl FnOnce(&mut Budget)) -> Bench {
    let mut bench = Bench::new("ann bob");
    bench.budget(|b| {
        b.max_usd = Some(PositiveUsd(Usd::from_micros(3_500_000)));
        b.max_usd_mode = UsdMode::Hard;
        change(b);
    });
    bench.cfg.max_ticks = Some(12);
    // Later turns are bob's.
    bench.play((0..12).map(|n| costly().uses(Some(100), (n < 6 && n % 2 == 0).then(|| dollars(1)))));
    bench
}

fn passed_over(bench: &Bench) -> Vec<String> {
    let of = |effect: &Effect| match effect {
        Effect::Tell(Notice::PeerPassedOver { peer, .. }) => Some(peer.to_string()),
        _ => None,
    };
    bench.effects.iter().filter_map(of).collect()
}

#[test]
fn row_58_a_peer_without_a_price_goes_on_below_a_cap_of_tokens_and_who_is_passed_over_is_told_once() {
    let own = || PeerBudget { max_tokens: NonZeroU64::new(100_000), max_usd: None };
    let caps: [fn(&mut Budget, PeerBudget); 2] =
        [|b, _| b.max_tokens = NonZeroU64::new(100_000), |b, own| b.per_peer = [(peer("bob"), own)].into()];
    for cap in caps {
        let mut bench = half_priced(|b| cap(b, own()));
        assert_eq!(bench.run(), StopReason::MaxTicks);
        assert_eq!((bench.ticks().len(), passed_over(&bench)), (12, vec!["ann".to_owned()]));
    }
}
