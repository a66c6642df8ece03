//! Peers that fail: who is left out, who comes back, who waits.

use peers_core::machine::Effect;
use peers_core::state::PeerState;
use peers_model::outcome::{ApiClass, ExitClass, Matched, StopReason};

use crate::bench::Bench;
use crate::world::{Turn, handoff_text, peer};

fn failing() -> Turn {
    Turn::fails(ExitClass::Nonzero, ApiClass::None)
}

fn limited() -> Turn {
    Turn::fails(ExitClass::Nonzero, ApiClass::Transient)
}

/// `ann` fails until she is degraded at tick 3; `max_retries` keeps the turn with her.
fn ann_degraded(peers: &str) -> Bench {
    ann_degraded_with(peers, 8)
}

fn ann_degraded_with(peers: &str, recovery_interval: u32) -> Bench {
    let mut bench = Bench::new(peers);
    bench.cfg.rules.max_retries = 9;
    bench.cfg.rules.recovery_interval = recovery_interval;
    bench.play([failing(), failing(), failing()]);
    bench.begin();
    bench.until(|b| b.health("ann").state == PeerState::Degraded);
    assert_eq!(bench.order(), "ann ann ann");
    bench
}

#[test]
fn row_12_productive_turns_without_a_handoff_cost_half() {
    let mut bench = Bench::new("ann bob").up_to(4);
    bench.cfg.rules.max_retries = 9;
    bench.plays((0..4).map(|n| Turn::commit(&format!("wip {n}"), "wip")));
    assert_eq!(bench.order(), "ann ann ann ann");
    assert_eq!(bench.health("ann").recent_half_fails(), 4);
    assert_eq!(bench.health("ann").state, PeerState::Healthy);
}

#[test]
fn row_12_three_real_failures_degrade() {
    let bench = ann_degraded("ann bob");
    let health = bench.health("ann");
    assert_eq!((health.recent_half_fails(), health.degraded_at.unwrap().0), (6, 3));
    let why = health.degraded_reason.unwrap();
    assert_eq!(why, "its last 3 turns failed (the last one: its process ended as process-fail)");
    assert_eq!(bench.tick(2).peer_state_after, "healthy");
    assert_eq!(bench.tick(3).peer_state_after, "degraded");
}

#[test]
fn row_41_a_degraded_peer_is_skipped_eight_ticks_then_gets_one_turn() {
    let mut bench = ann_degraded("ann bob");
    bench.cfg.max_ticks = Some(12);
    bench.play((0..8).map(|_| Turn::says("", "")));
    bench.finish();
    assert_eq!(bench.order(), "ann ann ann bob bob bob bob bob bob bob bob ann");
    let health = bench.health("ann");
    assert_eq!(health.state, PeerState::Healthy);
    assert_eq!((health.degraded_reason, health.degraded_at, health.recovery_cooldown), (None, None, None));
}

#[test]
fn row_41_a_failed_recovery_turn_costs_eight_more() {
    let mut bench = ann_degraded("ann bob");
    bench.cfg.max_ticks = Some(21);
    bench.play((0..8).map(|_| Turn::says("", "")));
    // Even half a failure does.
    bench.play([Turn::commit("work", "wip")]);
    bench.finish();
    let bobs = ["bob"; 8].join(" ");
    assert_eq!(bench.order(), format!("ann ann ann {bobs} ann {bobs} ann"));
    assert_eq!(bench.health("ann").state, PeerState::Healthy);
}

#[test]
fn row_41_an_interval_of_zero_never_tries_again() {
    let mut bench = ann_degraded_with("ann bob", 0);
    bench.cfg.max_ticks = Some(30);
    bench.finish();
    assert!(bench.ticks().iter().skip(3).all(|t| t.peer.as_str() == "bob"));
}

#[test]
fn row_42_a_degraded_third_is_skipped() {
    let mut bench = ann_degraded("ann bob cyd");
    bench.cfg.max_ticks = Some(7);
    bench.finish();
    assert_eq!(bench.order(), "ann ann ann bob cyd bob cyd");
}

#[test]
fn row_42_a_spare_goes_only_when_all_others_are_out() {
    let mut bench = Bench::new("ann bob SPARE").up_to(9);
    bench.cfg.rules.max_retries = 9;
    bench.cfg.rules.recovery_interval = 0;
    bench.play([Turn::says("", ""), Turn::says("", "")]);
    bench.plays((0..6).map(|_| failing()));
    assert_eq!(bench.order(), "ann bob ann ann ann bob bob bob spare");
}

#[test]
fn row_43_when_all_are_degraded_the_run_ends_and_a_restart_heals() {
    let mut bench = Bench::new("ann bob").up_to(20);
    bench.play((0..6).map(|_| failing()));
    let reason = bench.run();
    assert_eq!((reason.clone(), reason.exit_code()), (StopReason::AllPeersDegraded, 13));
    assert_eq!(bench.order(), "ann ann bob bob ann bob");
    assert_eq!(bench.exits().len(), 1);
    assert!(
        bench.exits()[0].detail.contains("ann degraded") && bench.exits()[0].detail.contains("bob degraded")
    );
    assert!(bench.m.state.peers.values().all(|p| p.state == PeerState::Halted));
    // The cause is fixed: both get a turn at once, and one good turn heals each.
    bench.cfg.max_ticks = Some(4);
    assert_eq!(bench.run(), StopReason::MaxTicks);
    assert_eq!(bench.ticks().len(), 10);
    for name in ["ann", "bob"] {
        assert_eq!(bench.health(name).state, PeerState::Healthy, "{name}");
        assert!(bench.ticks().iter().skip(6).any(|t| t.peer.as_str() == name), "{name} went at once");
    }
}

#[test]
fn row_44_rate_limits_wait_15_30_60_120_seconds_and_never_count_as_failures() {
    let mut bench = Bench::new("ann");
    bench.budget(|b| b.max_consecutive_failures = std::num::NonZeroU32::new(1));
    bench.cfg.max_ticks = Some(11);
    bench.plays((0..10).map(|_| limited()));
    // Each by up to a fifth more or less, so that loops that were refused together come back apart.
    let about = [15_000, 30_000, 60_000].into_iter().chain([120_000; 7]);
    assert_eq!(bench.waits.len(), 10);
    for (waited, about) in bench.waits.iter().zip(about) {
        assert!((about * 8 / 10..=about * 12 / 10).contains(waited), "{:?}", bench.waits);
    }
    assert_eq!(bench.m.state.spent.consecutive_failures, 0);
    assert!(bench.health("ann").recent.iter().all(|half| *half == 0));
    assert_eq!(bench.m.state.spent.wasted_ms, 0);
    assert_eq!(bench.m.state.spent.iterations, 11);
}

#[test]
fn row_44_a_healthy_peer_does_not_wait_for_a_limited_one() {
    let mut bench = Bench::new("ann bob").up_to(3);
    bench.plays([limited(), Turn::says("", ""), Turn::says("", "")]);
    assert_eq!(bench.order(), "ann bob bob");
    assert_eq!(bench.waits, [0_u64; 0]);
}

#[test]
fn row_44_each_peer_has_its_own_streak_and_nobody_waits_while_another_can_go() {
    let mut bench = Bench::new("ann bob").up_to(9);
    bench.plays((0..8).map(|_| limited()));
    assert!(bench.order().starts_with("ann bob "), "{}", bench.order());
    let refused = |name: &str| bench.order().split(' ').take(8).filter(|peer| *peer == name).count();
    assert!(refused("ann") >= 3 && refused("bob") >= 3, "{}", bench.order());
    // Whoever can go first goes: the waits of two come to less than those of one.
    let all: u64 = bench.waits.iter().sum();
    assert!((180_000..=360_000).contains(&all), "{:?}", bench.waits);
}

#[test]
fn row_44_any_other_tick_ends_the_streak() {
    let mut bench = Bench::new("ann").up_to(5);
    bench.play([limited(), limited(), Turn::says("", ""), limited()]);
    bench.begin();
    bench.until(|b| b.ticks().len() == 4);
    assert_eq!(bench.health("ann").rate_limit_streak, 1);
    bench.finish();
    for (waited, about) in bench.waits.iter().zip([15_000, 30_000, 15_000]) {
        assert!((about * 8 / 10..=about * 12 / 10).contains(waited), "{:?}", bench.waits);
    }
    assert_eq!(bench.waits.len(), 3);
}

#[test]
fn row_44_a_wait_that_the_service_asks_for_is_kept_within_six_hours() {
    for (asked, reason) in [
        (7, StopReason::MaxTicks),
        (6 * 3600, StopReason::MaxTicks),
        (6 * 3600 + 1, StopReason::PeerUnavailable(peer("ann"))),
        (u64::MAX, StopReason::PeerUnavailable(peer("ann"))),
    ] {
        let mut bench = Bench::new("ann").up_to(2);
        let mut turn = limited();
        turn.exit.retry_after_s = Some(asked);
        bench.play([turn]);
        assert_eq!(bench.run(), reason);
        for waited in &bench.waits {
            assert!((asked * 1000..=asked * 1100).contains(waited), "{asked}: {waited}");
        }
    }
}

#[test]
fn row_44_the_wait_is_durable_before_it_begins_and_outlives_a_crash() {
    let mut bench = Bench::new("ann bob").up_to(3);
    bench.play([limited(), limited()]);
    bench.begin();
    bench.until(|b| b.effects.iter().any(|e| matches!(e, Effect::SetTimer(_))));
    bench.crash();
    bench.run();
    assert_eq!(bench.waits.len(), 1);
    assert!((12_000..=18_000).contains(&bench.waits[0]), "{:?}", bench.waits);
}

#[test]
fn a_failure_that_the_stream_told_is_named_by_its_words_and_not_by_the_exit_code() {
    let mut bench = Bench::new("ann bob").up_to(1);
    let mut turn = Turn::fails(ExitClass::Nonzero, ApiClass::Other);
    turn.exit.code = Some(1);
    turn.exit.matched = Some(Matched {
        pattern: "other".into(),
        key: None,
        snippet: "bad request: no such model".into(),
        source: "structured".into(),
    });
    bench.plays([turn]);
    let why = peers_core::failed::why(bench.tick(1)).unwrap();
    assert_eq!(why, "its service refused it: bad request: no such model");
}

#[test]
fn a_pattern_that_matched_is_named_by_its_place_and_the_line_and_not_by_itself() {
    let mut bench = Bench::new("ann bob").up_to(2);
    let mut turn = Turn::fails(ExitClass::Pattern, ApiClass::Auth);
    turn.exit.matched = Some(Matched {
        pattern: "^[^a-z]+login".into(),
        key: Some("health.halt_patterns[1]".into()),
        snippet: format!("no login: {}", "x".repeat(300)),
        source: "in-loop".into(),
    });
    bench.play([turn.clone(), turn]);
    bench.run();
    let said = "its output matched `health.halt_patterns[1]`: no login: xxx";
    let halted = bench.health("ann").degraded_reason.clone().unwrap();
    let so = format!("it is not logged in; only the operator can help; {said}");
    assert!(halted.starts_with(&so) && halted.len() < 400 && !halted.contains("[^a-z]"), "{halted}");
    let mut old = bench.tick(1).clone();
    old.soft_fail_reason = Some("run classification api-error".into());
    let why = peers_core::failed::why(&old).unwrap();
    assert!(why.starts_with(said) && why.len() < 300, "{why}");
    old.exit.matched.as_mut().unwrap().key = None;
    let why = peers_core::failed::why(&old).unwrap();
    assert_eq!(why, "its process printed what `health` calls an error and was ended");
}

#[test]
fn a_handoff_that_names_another_peer_or_none_stands_and_counts_as_half_a_failure() {
    for trailer in ["Peer: bob\n", "Peer: operator\n", ""] {
        let mut bench = Bench::new("ann bob").up_to(1);
        let text = handoff_text("", "").replace("Peer: {me}\n", trailer);
        bench.plays([Turn::commit("work", &text)]);
        let tick = &bench.ticks()[0];
        assert!(tick.success && tick.misnamed, "{trailer:?}");
        assert!(tick.warnings_emitted.iter().any(|text| text.contains("write `Peer: ann`")), "{trailer:?}");
        assert_eq!(bench.health("ann").recent, [1]);
    }
}
