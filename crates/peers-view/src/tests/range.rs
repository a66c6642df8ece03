//! Many ticks, one after the other.

use super::*;

use super::hostile::EVIL;

fn world() -> World {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    world.tick(2, "codex", |tick| {
        fail(tick, TickOutcome::PeerFailed);
        (tick.classification, tick.head_after) = ("idle-timeout".into(), commit('a'));
        tick.soft_fail_reason = Some(EVIL.into());
        tick.peer_state_after = EVIL.into();
    });
    world.exit(StopReason::MaxTicks, "");
    world.another_run("00000000000000bb");
    world.tick(3, "claude", |tick| {
        fail(tick, TickOutcome::RateLimited);
        tick.classification = "rate-limited".into();
    });
    world.tick(4, "codex", |_| {});
    world.exit(StopReason::Drained, "");
    world
}

/// Ticks as their numbers, ends of runs as zero.
fn items(world: &World, asked: &RangeAsked) -> Vec<u64> {
    let range = replay_range(&mut world.disk(), asked).unwrap();
    let number = |item: &RangeItem| match item {
        RangeItem::Tick(tick) => tick.row.tick.0,
        RangeItem::Exit { .. } => 0,
    };
    range.items.iter().map(number).collect()
}

#[test]
fn ticks_are_chosen_by_number_peer_class_and_failure_and_ends_belong_to_the_tick_before() {
    let world = world();
    let all = RangeAsked::default();
    let tick = |n| Some(TickNo(n));
    assert_eq!(items(&world, &all), [1, 2, 0, 3, 4, 0]);
    assert_eq!(items(&world, &RangeAsked { from: tick(2), to: tick(3), ..all.clone() }), [2, 0, 3]);
    assert_eq!(items(&world, &RangeAsked { from: tick(4), ..all.clone() }), [4, 0]);
    assert_eq!(items(&world, &RangeAsked { to: tick(1), ..all.clone() }), [1]);
    assert_eq!(items(&world, &RangeAsked { peer: Some(name("codex")), ..all.clone() }), [2, 0, 4, 0]);
    assert_eq!(items(&world, &RangeAsked { class: Some("rate-limited".into()), ..all.clone() }), [0, 3, 0]);
    assert_eq!(items(&world, &RangeAsked { failed: true, ..all }), [2, 0, 0], "neutral is no failure");
}

#[test]
fn each_tick_is_a_block_and_what_the_caller_adds_is_made_harmless() {
    let world = world();
    let range = replay_range(&mut world.disk(), &RangeAsked::default()).unwrap();
    let text =
        replay_range_text(&range, Colour::Plain, |tick| (tick.row.tick.0 == 2).then(|| EVIL.to_owned()));
    assert!(is_harmless(&text), "{text:?}");
    insta::assert_snapshot!(text);
    let json = replay_range_json(&range, Timestamp::from_millis(0));
    assert!(is_harmless(&json));
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["schema"], "peers-ctl.replay/1");
    assert_eq!(value["data"]["items"][1]["peer_state_after"], EVIL);
    assert_eq!(
        (&value["data"]["items"][1]["kind"], &value["data"]["items"][2]["kind"]),
        (&"tick".into(), &"exit".into())
    );
}

#[test]
fn a_damaged_journal_is_no_shorter_history() {
    let world = world();
    super::unreadable::damage(&world);
    assert!(replay_range(&mut world.disk(), &RangeAsked::default()).is_err());
    assert!(crate::handoffs(&mut world.disk(), &crate::HandoffsAsked::default(), None).is_err());
}
