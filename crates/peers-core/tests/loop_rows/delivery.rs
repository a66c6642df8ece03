//! What is carried from one turn to the next: commits, messages, warnings, and what a dry run leaves.

use peers_core::machine::{Effect, Event, Phase};
use peers_model::config::Comm;
use peers_model::outcome::{ApiClass, ExitClass, StopReason};
use peers_model::record::{CorrectionKind, TickOutcome};
use peers_model::review::SoftRule;

use crate::bench::Bench;
use crate::world::{Gate, Habit, Rewrite, Turn, handoff_text, peer, source, tree};

/// For each prompt: whose commits of which ticks it shows, as `ann1 bob2`.
fn shown(bench: &Bench) -> Vec<String> {
    let ticks = bench.ticks();
    let name = |id: &peers_model::CommitId| {
        let tick = ticks.iter().find(|t| t.commits.contains(id)).unwrap();
        format!("{}{}", tick.peer, tick.iteration)
    };
    let inboxes =
        bench.started().into_iter().map(|s| s.inbox.values().map(name).collect::<Vec<_>>().join(" "));
    inboxes.collect()
}

#[test]
fn row_62_config_order_wins_health_is_kept_and_the_active_peer_stays_active() {
    let mut bench = Bench::new("ann bob cyd").up_to(2);
    bench.plays([Turn::nothing(), Turn::says("", "")]);
    assert_eq!((bench.order().as_str(), bench.m.state.turn_peer()), ("ann ann", Some(&peer("bob"))));
    let kept = bench.health("ann");
    let gates = bench.cfg.rules.gates.clone();
    // `cyd` goes, `dan` comes, the order changes.
    bench.cfg.rules = Bench::new("dan ann bob").cfg.rules;
    bench.cfg.rules.gates = gates;
    bench.begin();
    bench.until(|b| b.m.state.open.is_some());
    assert_eq!(bench.m.state.open.as_ref().unwrap().started.peer, peer("bob"));
    assert_eq!(bench.health("ann").recent, kept.recent);
    assert!(!bench.m.state.peers.contains_key(&peer("cyd")));
    bench.cfg.max_ticks = Some(3);
    bench.finish();
    assert_eq!(bench.order(), "ann ann bob dan ann");
}

#[test]
fn row_62_when_the_active_peer_is_gone_the_first_one_begins() {
    let mut bench = Bench::new("ann bob").up_to(1);
    bench.run();
    assert_eq!(bench.m.state.turn_peer(), Some(&peer("bob")));
    bench.cfg.rules.peers = Bench::bare("cyd ann").cfg.rules.peers;
    bench.run();
    assert_eq!(bench.order(), "ann cyd");
}

#[test]
fn row_62_an_open_tick_of_a_peer_that_is_gone_is_still_recorded() {
    let mut bench = Bench::new("ann bob").up_to(2);
    bench.begin();
    bench.until(|b| b.m.state.open.is_some());
    bench.crash();
    bench.cfg.rules.peers = Bench::bare("bob cyd").cfg.rules.peers;
    assert_eq!(bench.run(), StopReason::MaxTicks);
    assert_eq!(bench.order(), "ann bob cyd", "and is none of the two that were asked for");
    assert!(bench.tick(1).recovered);
}

#[test]
fn row_64_three_peers_see_each_commit_of_both_others_once_and_the_first_too() {
    let mut bench = Bench::new("ann bob cyd").up_to(6);
    bench.habit = Habit::Busy;
    bench.run();
    assert_eq!(shown(&bench), ["", "ann1", "ann1 bob2", "bob2 cyd3", "ann4 cyd3", "ann4 bob5"]);
}

#[test]
fn row_64_what_an_interrupted_turn_was_shown_is_shown_again() {
    let mut bench = Bench::new("ann bob").up_to(3);
    bench.habit = Habit::Busy;
    bench.plays([Turn::handoff("one"), Turn::fails(ExitClass::Interrupted, ApiClass::None)]);
    assert_eq!(bench.order(), "ann bob bob");
    assert_eq!(shown(&bench), ["", "ann1", "ann1"]);
}

fn hybrid() -> Bench {
    let mut bench = Bench::new("ann bob cyd").up_to(4);
    bench.cfg.comm = Comm::Hybrid;
    bench
}

#[test]
fn row_63_messages_of_two_senders_have_their_own_numbers_and_arrive_once() {
    let mut bench = hybrid();
    bench.cfg.max_ticks = Some(6);
    bench.plays([
        Turn::says("", "").publishes(&["ann-to-cyd/000001-hello.md", "ann-to-cyd/000002-more.md"]),
        Turn::says("", "").publishes(&["bob-to-cyd/000001-hello.md"]),
    ]);
    let messages: Vec<usize> = bench.started().iter().map(|s| s.messages.len()).collect();
    assert_eq!(messages, [0, 0, 3, 0, 0, 0]);
    assert!(bench.prompts()[2].contains("text of bob-to-cyd/000001-hello.md"));
    assert!(bench.m.state.messages.is_empty());
    let numbers = &bench.m.state.message_numbers;
    assert_eq!((numbers["ann-to-cyd"], numbers["bob-to-cyd"]), (2, 1));
    let archives = |e: &&Effect| matches!(e, Effect::ArchiveMessages(paths) if paths.len() == 3);
    assert_eq!(bench.effects.iter().filter(archives).count(), 1);
}

#[test]
fn row_63_a_number_is_never_given_twice_even_when_the_box_is_empty_again() {
    let mut bench = hybrid();
    bench.plays([Turn::says("", "").publishes(&["ann-to-bob/000007-a.md"]), Turn::says("", "")]);
    assert!(bench.m.state.messages.is_empty());
    assert_eq!(bench.m.state.message_numbers["ann-to-bob"], 7);
}

#[test]
fn row_63_a_crash_before_the_tick_is_durable_delivers_again() {
    let mut bench = hybrid();
    bench.play([Turn::says("", "").publishes(&["ann-to-bob/000001-a.md"])]);
    bench.begin();
    bench.until(|b| b.started().len() == 2);
    assert_eq!(bench.started()[1].messages.len(), 1);
    let archived = |b: &Bench| b.effects.iter().any(|e| matches!(e, Effect::ArchiveMessages(_)));
    bench.until_phase(|p| matches!(p, Phase::Harvesting { .. }));
    assert!(!archived(&bench), "not before its tick is durable");
    assert_eq!(bench.m.state.messages.len(), 1);
    // The turn left nothing, and the loop dies.
    bench.world.commits.pop();
    bench.crash();
    bench.begin();
    bench.until(|b| b.ticks().len() == 2);
    assert_eq!(bench.tick(2).outcome, TickOutcome::Interrupted);
    assert!(!archived(&bench));
    bench.until(|b| b.started().len() == 3);
    assert_eq!(bench.started()[2].messages, ["ann-to-bob/000001-a.md"]);
    bench.until(|b| b.ticks().len() == 3);
    assert!(archived(&bench) && bench.m.state.messages.is_empty());
}

#[test]
fn row_63_what_does_not_fit_the_prompt_comes_next_time() {
    let mut bench = hybrid();
    let paths: Vec<String> = (1..=30).map(|n| format!("ann-to-bob/{n:06}-a.md")).collect();
    bench.play([Turn::says("", "").publishes(&paths.iter().map(String::as_str).collect::<Vec<_>>())]);
    bench.cfg.max_ticks = Some(5);
    bench.run();
    let delivered: Vec<&String> = bench.started().into_iter().flat_map(|s| &s.messages).collect();
    assert_eq!(delivered, paths.iter().collect::<Vec<_>>(), "each once, in order");
    assert_eq!(bench.started().iter().filter(|s| !s.messages.is_empty()).count(), 2);
}

#[test]
fn warnings_reach_exactly_one_prompt() {
    let mut bench = Bench::new("ann bob").up_to(3);
    bench.plays([Turn::handoff("one").leaves("dirt"), Turn::handoff("two")]);
    let has = |n: usize| bench.prompts()[n].contains("uncommitted changes were left by ann");
    assert_eq!((has(0), has(1), has(2)), (false, true, false));
    assert_eq!(bench.m.state.warnings_history.len(), 1, "people can still read it");
}

fn dry() -> Bench {
    let mut bench = Bench::new("ann bob").up_to(2);
    bench.soft("docs-read", SoftRule::Other { needed: 2 });
    bench.cfg.rules.dry_run = true;
    bench
}

/// What `--dry-run` must not touch.
fn lasting(bench: &Bench) -> impl PartialEq + std::fmt::Debug + use<> {
    let state = bench.m.state.clone();
    let world = (bench.world.at(), bench.world.commits.len());
    (
        world,
        state.soft,
        state.asked,
        state.skeptic,
        state.clean_ticks,
        state.last_handoff,
        state.last_product_author,
    )
}

#[test]
fn row_67_a_dry_run_leaves_head_reviews_bugs_and_handoffs_as_they_were() {
    let body = "## Review\n{\"pass\": true, \"checked\": [\"a:1 x\"]}\n\n## Bug-Report\n{\"id\": \"B1\", \"severity\": \"high\"}\n\n";
    let text = handoff_text(body, "Peer-Review-Of: docs-read\nBug-Report: B1\n");
    let mut bench = dry();
    bench.cfg.rules.dry_run = false;
    bench.cfg.max_ticks = Some(1);
    bench.run();
    let before = lasting(&bench);
    bench.cfg.rules.dry_run = true;
    bench.plays([Turn::commit("work", &text)]);
    let tick = bench.tick(2);
    assert_eq!((tick.outcome, tick.success), (TickOutcome::Handoff, true));
    assert_eq!(tick.corrected, Some(CorrectionKind::Reset));
    assert!(tick.salvage.is_some() && tick.commits.is_empty() && tick.reviews.is_empty());
    assert_eq!(tick.head_after, tick.head_before);
    assert_eq!(lasting(&bench), before);
}

#[test]
fn row_67_turns_that_do_not_hand_off_leave_nothing_in_a_dry_run_either() {
    let cases = [
        ("work without a handoff", Turn::commit("work", "wip"), TickOutcome::NoHandoff),
        ("dirt", Turn::nothing().leaves("dirt"), TickOutcome::NoHandoff),
        (
            "a failure",
            Turn::commit("work", "wip").exit(ExitClass::Nonzero, ApiClass::None),
            TickOutcome::PeerFailed,
        ),
        (
            "a rate limit",
            Turn::nothing().leaves("dirt").exit(ExitClass::Ok, ApiClass::Transient),
            TickOutcome::RateLimited,
        ),
        ("lost history", Turn::commit("work", "wip").rewrites(Rewrite::DropTip), TickOutcome::Corrected),
    ];
    for (what, turn, outcome) in cases {
        let mut bench = dry();
        let before = bench.world.at();
        bench.cfg.max_ticks = Some(1);
        bench.play([turn]);
        assert_eq!(bench.run(), StopReason::MaxTicks, "{what}");
        assert_eq!(bench.world.at(), before, "{what}");
        let tick = bench.tick(1);
        assert_eq!((tick.outcome, tick.success, tick.dirty), (outcome, false, false), "{what}");
        assert!(tick.salvage.is_some() && tick.commits.is_empty(), "{what}");
    }
}

#[test]
fn row_67_a_dry_run_moves_no_bookmark_and_delivers_no_message() {
    let mut bench = hybrid();
    bench.cfg.max_ticks = Some(1);
    bench.habit = Habit::Busy;
    bench.plays([Turn::handoff("one").publishes(&["ann-to-bob/000001-a.md"])]);
    let (marks, messages) = (bench.m.state.bookmarks.clone(), bench.m.state.messages.clone());
    bench.cfg.rules.dry_run = true;
    bench.run();
    assert_eq!(bench.order(), "ann bob");
    assert_eq!((bench.started()[1].inbox.len(), bench.started()[1].messages.len()), (1, 1));
    assert_eq!((&bench.m.state.bookmarks, &bench.m.state.messages), (&marks, &messages));
    assert!(!bench.effects.iter().any(|e| matches!(e, Effect::ArchiveMessages(_))));
}

#[test]
fn row_67_a_dry_run_never_completes_on_a_skeptic_of_its_own() {
    let mut bench = Bench::green().up_to(5);
    bench.cfg.rules.dry_run = true;
    assert_eq!(bench.run(), StopReason::MaxTicks, "nor is it stuck on one");
    assert!(bench.m.state.skeptic.passed.is_empty());
}

#[test]
fn row_67_a_dry_run_that_crashed_after_its_reset_puts_nothing_back_twice() {
    let mut bench = dry();
    bench.gate("tests-pass", Gate::At("work"));
    bench.play([Turn::handoff("work").diff(vec![source("src/a.rs")])]);
    bench.begin();
    bench.until(|b| b.effects.iter().any(|e| matches!(e, Effect::Correct { .. })));
    bench.crash();
    bench.cfg.max_ticks = Some(1);
    bench.run();
    assert_eq!(bench.tick(1).tree_after, tree("start"));
    assert_eq!((bench.tick(1).outcome, bench.tick(1).success), (TickOutcome::Interrupted, false));
}

#[test]
fn a_repository_that_moved_before_a_turn_is_looked_at_again_and_no_tick_is_opened() {
    let mut bench = Bench::new("ann bob").up_to(1);
    bench.begin();
    bench.until_phase(|phase| matches!(phase, Phase::Composing(_)));
    bench.feed(Event::Outdated);
    assert!(matches!(bench.m.phase, Phase::Surveying(0)) && bench.m.state.open.is_none());
    bench.finish();
    assert_eq!(bench.order(), "ann", "the turn was not used up");
    // Once a turn has begun it says nothing.
    let mut bench = Bench::new("ann bob");
    bench.begin();
    bench.until_phase(|phase| matches!(phase, Phase::Running { .. }));
    bench.feed(Event::Outdated);
    assert!(matches!(bench.m.phase, Phase::Running { .. }));
}
