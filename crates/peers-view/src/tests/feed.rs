//! Following the journal.

use super::*;
use std::io::Write as _;

fn drain(feed: &mut Feed, world: &World) -> Vec<FeedItem> {
    let mut disk = world.disk();
    let mut items = Vec::new();
    loop {
        let polled = feed.poll(&mut disk).unwrap();
        items.extend(polled.items);
        if !polled.more {
            return items;
        }
    }
}

fn events(items: &[FeedItem]) -> Vec<&str> {
    items
        .iter()
        .map(|item| match item {
            FeedItem::Line(line) => line.record.event(),
            FeedItem::Unreadable { .. } => "unreadable",
            FeedItem::Replaced => "replaced",
        })
        .collect()
}

fn append_raw(world: &World, segment: &str, bytes: &[u8]) {
    let path = world.path("store/journal").join(segment);
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

/// The lines that a tick would append, without them in the file: the loop itself sets aside what
/// somebody else wrote before it appends.
fn lines_of_a_tick(world: &mut World) -> Vec<u8> {
    let path = world.path("store/journal/000001.jsonl");
    let before = std::fs::read(&path).unwrap();
    world.tick(1, "claude", |_| {});
    let after = std::fs::read(&path).unwrap();
    std::fs::write(&path, &before).unwrap();
    after[before.len()..].to_vec()
}

/// A second segment, as the loop makes it.
fn rotate(world: &World, more: &[Record]) {
    let mut disk = world.disk();
    let mut journal =
        Journal::open(&mut disk, &Position::default(), false, |_| Ok::<(), JournalError>(())).unwrap();
    journal.rotate();
    let state = serde_json::to_value(world.store.state()).unwrap();
    let mut records = vec![Record::Checkpoint(CheckpointRecord { state })];
    records.extend(more.iter().cloned());
    let at = peers_model::Timestamp::from_millis(world.now);
    journal.append(&mut disk, at, Some(&world.run), &records).unwrap();
}

#[test]
fn what_comes_later_is_given_once() {
    let mut world = World::running();
    let mut feed = Feed::default();
    assert_eq!(events(&drain(&mut feed, &world)), ["run-started"]);
    assert_eq!(events(&drain(&mut feed, &world)), [""; 0]);
    world.tick(1, "claude", |_| {});
    assert_eq!(events(&drain(&mut feed, &world)), ["tick-started", "tick"]);
    world.exit(StopReason::MaxTicks, "");
    assert_eq!(events(&drain(&mut feed, &world)), ["exit"]);
}

#[test]
fn a_journal_that_is_not_there_yet_is_waited_for() {
    let mut world = World::new();
    let mut feed = Feed::tail(&mut world.disk(), 5).unwrap();
    assert_eq!(events(&drain(&mut feed, &world)), [""; 0]);
    world.start(super::rules());
    assert_eq!(events(&drain(&mut feed, &world)), ["run-started"]);
}

#[test]
fn the_tail_begins_so_many_records_before_the_end() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    for (lines, expected) in [
        (0, &[][..]),
        (1, &["tick"][..]),
        (2, &["tick-started", "tick"]),
        (99, &["run-started", "tick-started", "tick"]),
    ] {
        let mut feed = Feed::tail(&mut world.disk(), lines).unwrap();
        assert_eq!(events(&drain(&mut feed, &world)), expected, "{lines}");
    }
}

#[test]
fn an_unfinished_line_waits_for_its_end() {
    let mut world = World::running();
    let mut feed = Feed::default();
    drain(&mut feed, &world);
    world.begin_tick(1, "claude");
    let path = world.path("store/journal/000001.jsonl");
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 20]).unwrap();
    assert_eq!(events(&drain(&mut feed, &world)), [""; 0]);
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(events(&drain(&mut feed, &world)), ["tick-started"]);
}

#[test]
fn a_torn_line_that_is_cut_off_and_written_anew_is_no_trouble() {
    let mut world = World::running();
    let mut feed = Feed::default();
    drain(&mut feed, &world);
    append_raw(&world, "000001.jsonl", b"{\"v\":1,\"torn");
    assert_eq!(events(&drain(&mut feed, &world)), [""; 0]);
    let store = peers_store::Store::open(world.disk()).unwrap().0;
    world.store = store;
    world.begin_tick(1, "claude");
    assert_eq!(events(&drain(&mut feed, &world)), ["tick-started"]);
}

#[test]
fn a_new_segment_is_gone_over_to() {
    let mut world = World::running();
    let mut feed = Feed::default();
    drain(&mut feed, &world);
    world.tick(1, "claude", |_| {});
    let more = [
        Record::TickStarted(Box::new(super::started(2, "codex"))),
        Record::Tick(Box::new(tick_record(2, "codex"))),
    ];
    rotate(&world, &more);
    let items = drain(&mut feed, &world);
    assert_eq!(events(&items), ["tick-started", "tick", "checkpoint", "tick-started", "tick"]);
    let view = world.view();
    let tail = view.journal.value().unwrap();
    assert_eq!(tail.ticks.iter().map(|tick| tick.tick.0).collect::<Vec<_>>(), [1, 2], "both segments");
    assert_eq!(tail.records, 6);
    assert_eq!(view.core.value().unwrap().ticks.0, 2);
}

#[test]
fn a_line_that_cannot_be_read_is_said_and_passed() {
    let mut world = World::running();
    let lines = lines_of_a_tick(&mut world);
    let mut feed = Feed::default();
    drain(&mut feed, &world);
    append_raw(&world, "000001.jsonl", b"\x1b[31mnonsense\n{\"v\":99}\n");
    let items = drain(&mut feed, &world);
    assert_eq!(events(&items), ["unreadable", "unreadable"]);
    append_raw(&world, "000001.jsonl", &lines);
    let text = watch_line(&items[0], Colour::Plain);
    assert!(
        text.starts_with("unreadable: the line at byte ") && text.contains("of segment 1 is not a record"),
        "{text}"
    );
    assert!(watch_json(&items[0]).contains("\"kind\":\"unreadable\""));
    assert_eq!(events(&drain(&mut feed, &world)), ["tick-started", "tick"]);
}

#[test]
fn a_record_that_does_not_follow_is_said() {
    let world = World::running();
    let mut feed = Feed::default();
    drain(&mut feed, &world);
    let text = std::fs::read_to_string(world.path("store/journal/000001.jsonl")).unwrap();
    append_raw(&world, "000001.jsonl", text.as_bytes());
    let items = drain(&mut feed, &world);
    assert!(
        matches!(&items[..], [FeedItem::Unreadable { why, .. }] if why.contains("has number 1, but 2 is next")),
        "{items:?}"
    );
}

#[test]
fn a_journal_that_became_shorter_is_another_one() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    let mut feed = Feed::default();
    drain(&mut feed, &world);
    let path = world.path("store/journal/000001.jsonl");
    let first = std::fs::read_to_string(&path).unwrap().lines().next().unwrap().to_owned() + "\n";
    std::fs::write(&path, first).unwrap();
    assert_eq!(events(&drain(&mut feed, &world)), ["replaced", "run-started"]);
    std::fs::remove_dir_all(world.path("store/journal")).unwrap();
    assert_eq!(events(&drain(&mut feed, &world)), ["replaced"]);
    assert_eq!(events(&drain(&mut feed, &world)), [""; 0]);
}

#[test]
fn a_line_longer_than_any_record_is_passed_without_being_held() {
    let mut world = World::running();
    let lines = lines_of_a_tick(&mut world);
    let mut feed = Feed::default();
    drain(&mut feed, &world);
    let chunk = vec![b'x'; 3 << 20];
    for _ in 0..4 {
        append_raw(&world, "000001.jsonl", &chunk);
    }
    assert_eq!(events(&drain(&mut feed, &world)), [""; 0]);
    append_raw(&world, "000001.jsonl", b"\n");
    let items = drain(&mut feed, &world);
    assert!(
        matches!(&items[..], [FeedItem::Unreadable { why, .. }] if why.contains("is longer than")),
        "{items:?}"
    );
    append_raw(&world, "000001.jsonl", &lines);
    assert_eq!(events(&drain(&mut feed, &world)), ["tick-started", "tick"]);
}

#[test]
fn each_record_has_one_line_in_words_and_one_in_json() {
    let mut world = World::running();
    world.tick(1, "claude", |tick| tick.soft_fail_reason = Some("two\nlines".into()));
    world.exit(StopReason::MaxTicks, "");
    let items = drain(&mut Feed::default(), &world);
    let lines: String = items.iter().map(|item| watch_line(item, Colour::Plain)).collect();
    insta::assert_snapshot!(lines);
    for item in &items {
        let json = watch_json(item);
        assert_eq!(json.matches('\n').count(), 1);
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&value["schema"], &value["kind"]), (&"peers.watch/1".into(), &"record".into()));
        assert!(value["record"]["event"].is_string());
    }
}

#[test]
fn the_state_of_a_checkpoint_is_what_follows_from_it() {
    // The fixture's rotation must be one that the fold accepts, else the tests above prove nothing.
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    rotate(&world, &[]);
    let state = peers_store::store::read_state(&mut world.disk()).unwrap();
    assert_eq!(state, *world.store.state());
    assert_ne!(state, State::new());
}
