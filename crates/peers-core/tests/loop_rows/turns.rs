//! What a turn amounts to, and whose turn is next.

use peers_core::machine::{Effect, Origin, Phase};
use peers_core::state::PeerState;
use peers_model::outcome::{ApiClass, BudgetKind, ExitClass, StopReason};
use peers_model::record::{CorrectionKind, TickOutcome};

use crate::bench::Bench;
use crate::world::{Rewrite, Switch, Turn, handoff_text, peer, tree};

/// One tick of `ann` with this turn.
fn one(turn: Turn) -> Bench {
    let mut bench = Bench::new("ann bob").up_to(1);
    bench.plays([turn]);
    assert_eq!(bench.order(), "ann");
    bench
}

#[test]
fn row_01_two_peers_that_hand_off_alternate_until_the_tick_cap() {
    let mut bench = Bench::new("ann bob").up_to(4);
    let reason = bench.run();
    assert_eq!((reason.to_string().as_str(), reason.exit_code()), ("max_ticks", 0));
    assert_eq!(bench.order(), "ann bob ann bob");
    assert!(bench.ticks().iter().all(|t| t.success && t.outcome == TickOutcome::Handoff));
    assert_eq!(bench.exits().len(), 1);
    assert_eq!(bench.exits()[0].ticks_in_run, 4);
}

#[test]
fn row_08_a_turn_without_a_commit_is_a_soft_failure_and_keeps_the_turn() {
    let bench = one(Turn::nothing());
    let tick = bench.tick(1);
    assert_eq!((tick.outcome, tick.success), (TickOutcome::NoHandoff, false));
    assert_eq!(tick.classification, "success");
    assert_eq!(tick.soft_fail_reason.as_deref(), Some("no commit by peer this turn"));
    assert_eq!(bench.health("ann").consecutive_fails, 1);
    assert_eq!(bench.m.state.spent.consecutive_failures, 1);
    assert_eq!(bench.m.state.turn_peer(), Some(&peer("ann")));
    assert_eq!(bench.health("ann").recent_half_fails(), 2);
}

#[test]
fn row_09_uncommitted_work_is_a_soft_failure_that_the_next_prompt_warns_about() {
    let mut bench = Bench::new("ann bob").up_to(2);
    bench.plays([Turn::nothing().leaves("half-done"), Turn::handoff("done")]);
    assert!(bench.tick(1).dirty && !bench.tick(1).success);
    let prompts = bench.prompts();
    assert!(!prompts[0].contains("The work tree is not clean"));
    assert!(prompts[1].contains("The work tree is not clean"));
    assert!(prompts[1].contains("src/half-done.rs"));
    assert!(prompts[1].contains("uncommitted changes were left by ann"));
    assert!(!bench.tick(2).dirty && !bench.m.state.dirty);
}

#[test]
fn row_10_needs_review_is_a_failed_tick_of_a_good_process_at_half_credit() {
    let text = handoff_text("", "").replace("Self-Review: pass", "Self-Review: needs-review");
    let bench = one(Turn::commit("work", &text));
    let tick = bench.tick(1);
    assert_eq!((tick.classification.as_str(), tick.success), ("success", false));
    assert_eq!(bench.health("ann").recent_half_fails(), 1);
    assert_eq!(tick.commits.len(), 1);
}

#[test]
fn row_11_a_commit_after_the_handoff_takes_nothing_from_it() {
    let bench = one(Turn::handoff("work").and_commit("tidier", "fix a typo"));
    assert!(bench.tick(1).success);
    assert_eq!(bench.tick(1).commits.len(), 2);
    assert_eq!(bench.tick(1).tree_after, tree("tidier"));
}

#[test]
fn row_14_a_co_author_paragraph_does_not_hide_the_handoff() {
    let text = handoff_text("", "\nCo-Authored-By: Somebody <some@body.example>\n");
    assert!(one(Turn::commit("work", &text)).tick(1).success);
}

#[test]
fn row_15_a_commit_belongs_to_who_ran_whatever_its_trailer_says() {
    let text = handoff_text("", "").replace("Peer: {me}", "Peer: bob");
    let bench = one(Turn::commit("work", &text));
    let tick = bench.tick(1);
    assert_eq!((tick.peer.as_str(), tick.commits.len()), ("ann", 1));
    assert_eq!(bench.warned("it counts as ann's, who ran"), 1);
    assert!(tick.success, "the trailer is no evidence against the turn either");
}

#[test]
fn row_15_what_was_known_before_is_foreign_and_what_we_made_is_ours() {
    let mut turn = Turn::handoff("work");
    turn.commits.push((None, "pulled in".into(), Origin::Known));
    turn.commits.push((None, "from us".into(), Origin::Own));
    let tick = one(turn).tick(1).clone();
    assert_eq!((tick.commits.len(), tick.foreign.len(), tick.own.len()), (1, 1, 1));
}

#[test]
fn row_15_a_handoff_that_somebody_else_wrote_is_no_handoff() {
    let mut turn = Turn::nothing();
    turn.commits.push((Some("work".into()), handoff_text("", ""), Origin::Known));
    assert!(!one(turn).tick(1).success);
}

#[test]
fn row_16_lost_history_and_lost_branches_are_put_back() {
    let cases = [
        ("amend", Turn::nothing().rewrites(Rewrite::Amend), CorrectionKind::RestoreHistory),
        (
            "amend with a handoff",
            Turn::handoff("work").rewrites(Rewrite::Amend),
            CorrectionKind::RestoreHistory,
        ),
        ("reset", Turn::nothing().rewrites(Rewrite::DropTip), CorrectionKind::RestoreHistory),
        (
            "reset with commits",
            Turn::handoff("work").rewrites(Rewrite::DropTip),
            CorrectionKind::RestoreHistory,
        ),
        (
            "reset and switch",
            Turn::nothing().rewrites(Rewrite::DropTip).ends_on(Switch::Detach),
            CorrectionKind::RestoreHistory,
        ),
        ("switch", Turn::handoff("work").ends_on(Switch::To("other")), CorrectionKind::RestoreBranch),
        ("detach", Turn::nothing().ends_on(Switch::Detach), CorrectionKind::RestoreBranch),
    ];
    for (what, turn, kind) in cases {
        let bench = one(turn);
        let tick = bench.tick(1);
        assert_eq!((tick.outcome, tick.success), (TickOutcome::Corrected, false), "{what}");
        assert_eq!(tick.corrected, Some(kind), "{what}");
        assert_eq!(tick.head_after, tick.head_before, "{what}");
        assert_eq!(tick.branch.as_deref(), Some("main"), "{what}");
        assert!(tick.salvage.is_some() && tick.soft_fail_reason.is_some(), "{what}");
        assert!(tick.commits.is_empty(), "{what}: what is gone is attributed to nobody");
        assert_eq!(bench.health("ann").recent_half_fails(), 2, "{what}: a whole failure");
        assert_eq!(bench.world.tip().tree, "start", "{what}");
    }
}

#[test]
fn row_16_a_correction_is_planned_in_the_journal_before_it_is_done() {
    let mut bench = Bench::new("ann bob");
    bench.play([Turn::nothing().rewrites(Rewrite::DropTip)]);
    bench.begin();
    bench.until(|b| b.effects.iter().any(|e| matches!(e, Effect::Correct { .. })));
    let open = bench.m.state.open.as_ref().unwrap();
    assert_eq!(open.correction.as_ref().unwrap().kind, CorrectionKind::RestoreHistory);
}

#[test]
fn row_16_a_crash_after_the_correction_does_not_hide_why_it_was_made() {
    let text = handoff_text("", "");
    let tests = || vec![crate::cheating::test_file()];
    for (turn, kind) in [
        (Turn::nothing().rewrites(Rewrite::DropTip), CorrectionKind::RestoreHistory),
        (Turn::commit("work", &text).diff(tests()), CorrectionKind::Revert),
    ] {
        let mut bench = Bench::new("ann bob").up_to(1);
        if kind == CorrectionKind::Revert {
            bench.cfg.max_ticks = Some(3);
            bench.play([Turn::commit("tested", &text).diff(tests()), Turn::says("", "")]);
        }
        bench.play([turn]);
        bench.begin();
        bench.until(|b| b.effects.iter().any(|e| matches!(e, Effect::Correct { .. })));
        bench.crash();
        bench.run();
        let tick = bench.ticks().into_iter().find(|t| t.corrected.is_some()).unwrap();
        assert_eq!((tick.corrected, tick.outcome, tick.success), (Some(kind), TickOutcome::Corrected, false));
        let why = tick.soft_fail_reason.clone().unwrap_or_default();
        let word = if kind == CorrectionKind::Revert { "only tests" } else { "history was rewritten" };
        assert!(why.contains(word), "{kind:?}: `{why}`");
        let undone = bench.ticks().iter().filter(|t| t.corrected.is_some()).count();
        assert_eq!(undone, 1);
    }
}

#[test]
fn row_19_a_handoff_before_an_idle_kill_counts_as_rescued() {
    for class in
        [ExitClass::Idle, ExitClass::Absolute, ExitClass::Nonzero, ExitClass::Signal, ExitClass::Interrupted]
    {
        let bench = one(Turn::handoff("work").exit(class, ApiClass::None));
        let tick = bench.tick(1);
        assert_eq!(
            (tick.outcome, tick.success, tick.rescued),
            (TickOutcome::Handoff, true, true),
            "{class:?}"
        );
        assert_eq!(bench.warned("its handoff was complete and counts"), 1, "{class:?}");
    }
    assert!(!one(Turn::handoff("work")).tick(1).rescued);
}

#[test]
fn row_19_without_a_handoff_an_idle_kill_is_a_whole_failure_even_with_commits() {
    let bench = one(Turn::commit("work", "wip").exit(ExitClass::Idle, ApiClass::None));
    assert_eq!(bench.tick(1).outcome, TickOutcome::PeerFailed);
    assert_eq!(bench.tick(1).soft_fail_reason.as_deref(), Some("run classification idle-timeout"));
    assert_eq!(bench.health("ann").recent_half_fails(), 2);
}

#[test]
fn row_35_a_program_that_cannot_start_is_a_failed_process() {
    let mut turn = Turn::fails(ExitClass::SpawnFail, ApiClass::None);
    turn.exit.code = Some(126);
    let bench = one(turn);
    let tick = bench.tick(1);
    assert_eq!((tick.outcome, tick.classification.as_str()), (TickOutcome::PeerFailed, "process-fail"));
    assert_eq!(tick.exit.code, Some(126));
    assert_eq!(bench.m.state.spent.spawn_failures, 1);
}

#[test]
fn row_35_a_streak_of_nothing_but_failed_starts_is_a_missing_peer_not_a_budget() {
    let stops_with = |turns: Vec<Turn>| {
        let mut bench = Bench::new("ann bob");
        bench.budget(|b| b.max_consecutive_failures = std::num::NonZeroU32::new(2));
        bench.play(turns);
        bench.run()
    };
    let absent = || Turn::fails(ExitClass::SpawnFail, ApiClass::None);
    let failing = || Turn::fails(ExitClass::Nonzero, ApiClass::None);
    assert_eq!(stops_with(vec![absent(), absent()]), StopReason::PeerUnavailable(peer("ann")));
    for mixed in [vec![absent(), failing()], vec![failing(), absent()]] {
        assert_eq!(stops_with(mixed), StopReason::Budget(BudgetKind::MaxConsecutiveFailures));
    }
}

#[test]
fn row_40_after_its_retries_the_turn_passes_on_and_the_counter_is_reset() {
    let mut bench = Bench::new("ann bob").up_to(3);
    bench.plays([Turn::nothing(), Turn::nothing()]);
    assert_eq!(bench.order(), "ann ann bob");
    assert_eq!(bench.health("ann").consecutive_fails, 0);
    assert_eq!(bench.health("ann").state, PeerState::Healthy);
}

#[test]
fn a_tick_cut_short_by_a_crash_is_neutral_and_its_commits_are_attributed() {
    let mut bench = Bench::new("ann bob").up_to(2);
    bench.play([Turn::commit("work", "wip").quick()]);
    bench.begin();
    bench.until(|b| b.m.state.open.as_ref().is_some_and(|o| o.spawned.is_some()));
    bench.crash();
    bench.run();
    let tick = bench.tick(1);
    assert_eq!((tick.outcome, tick.recovered), (TickOutcome::Interrupted, true));
    assert_eq!((tick.classification.as_str(), tick.commits.len()), ("interrupted", 1));
    assert_eq!(bench.m.state.spent.consecutive_failures, 0);
    assert!(bench.health("ann").recent.iter().all(|half| *half == 0));
    assert_eq!(bench.tick(2).peer.as_str(), "ann", "it keeps its turn");
}

#[test]
fn what_a_dead_loop_left_running_is_ended_before_anything_is_looked_at() {
    // In a tick there may be a peer, between ticks gates; after a run that ended there is nothing.
    for (ticks, open) in [(0, true), (1, false)] {
        let mut bench = Bench::new("ann bob");
        bench.begin();
        bench.until(|b| b.ticks().len() == ticks && b.m.state.open.is_some() == open && !b.log.is_empty());
        bench.crash();
        let seen = bench.effects.len();
        bench.begin();
        assert!(matches!(bench.m.phase, Phase::Reaping));
        let Some(Effect::ReapOrphans { tick, .. }) = bench.effects.get(seen) else {
            panic!("nothing is reaped")
        };
        assert_eq!(tick.is_some(), open);
        assert_eq!(bench.effects.len(), seen + 1);
        bench.cfg.max_ticks = Some(2);
        assert_eq!(bench.finish(), StopReason::MaxTicks);
        let seen = bench.effects.len();
        bench.begin();
        assert!(matches!(bench.effects.get(seen), Some(Effect::Survey)));
    }
}

#[test]
fn a_peer_that_needs_its_operator_stops_two_and_leaves_three_to_go_on() {
    for (api, peers, goes_on) in [
        (ApiClass::Auth, "ann bob", false),
        (ApiClass::Quota, "ann bob", false),
        (ApiClass::Quota, "ann bob cyd", true),
    ] {
        let mut bench = Bench::new(peers).up_to(4);
        bench.cfg.rules.continue_without_peer = goes_on;
        bench.play([Turn::commit("work", "wip").exit(ExitClass::Nonzero, api)]);
        let reason = bench.run();
        assert_eq!(bench.tick(1).outcome, TickOutcome::NeedsOperator);
        assert_eq!(bench.tick(1).commits.len(), 1, "the halted turn is attributed and accounted");
        assert!(bench.m.state.spent.tokens.0 > 0);
        assert_eq!(bench.health("ann").state, PeerState::Unavailable);
        if goes_on {
            assert_eq!((reason, bench.order().as_str()), (StopReason::MaxTicks, "ann bob cyd bob"));
        } else {
            assert_eq!((reason.exit_code(), bench.order().as_str()), (13, "ann"));
            assert_eq!(reason, StopReason::PeerUnavailable(peer("ann")));
        }
    }
}
