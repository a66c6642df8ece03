//! What cannot be read is said, and is never a zero.

use super::*;
use std::io::Write as _;

/// The journal with one record changed.
pub(super) fn damage(world: &World) {
    world.tamper("\"prompt_bytes\":4096", "\"prompt_bytes\":4097");
}

#[test]
fn a_damaged_journal_shows_no_numbers() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    world.exit(StopReason::MaxTicks, "");
    damage(&world);
    let view = world.view();
    assert!(
        matches!(&view.core, Sourced::Unreadable(why) if why.contains("hash chain broken")),
        "{:?}",
        view.core
    );
    assert_eq!(view.exit_code(), 3);
    let text = status_text(&view, Colour::Plain);
    assert!(
        text.contains("journal:   unreadable: journal: journal/000001.jsonl line 3 does not continue"),
        "{text}"
    );
    for absent in ["gates\n", "budget\n", "ticks:", "complete:"] {
        assert!(!text.contains(absent), "{absent} in {text}");
    }
    assert!(text.contains("stopped 2m ago, max_ticks"), "the run record still says it: {text}");
    let json: Value = serde_json::from_str(&status_json(&view)).unwrap();
    assert_eq!(json["loop"]["source"], "unreadable");
    assert!(json["loop"].get("value").is_none());
}

#[test]
fn with_a_snapshot_the_state_from_before_the_damage_is_shown_as_stale() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    world.store.write_snapshot().unwrap();
    world.tick(2, "codex", |tick| tick.tool = "find me".into());
    world.tick(3, "claude", |_| {});
    world.tamper("find me", "find us");
    let view = world.view();
    let Sourced::Stale { value, why } = &view.core else { panic!("{:?}", view.core) };
    assert_eq!(value.ticks.0, 2);
    assert!(why.contains("hash chain broken"));
    assert_eq!(view.exit_code(), 3);
    let text = status_text(&view, Colour::Plain);
    assert!(
        text.contains("what follows is from before the damage") && text.contains("ticks:     2"),
        "{text}"
    );
}

#[test]
fn a_damaged_snapshot_is_said_and_costs_nothing() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    std::fs::write(world.path("store/snapshot.json"), "{\"v\":1,").unwrap();
    let view = world.view();
    assert_eq!(view.core.value().unwrap().ticks.0, 1);
    let text = status_text(&view, Colour::Plain);
    assert!(text.contains("alert:     snapshot.json is damaged"), "{text}");
}

#[test]
fn a_torn_tail_is_said_when_nobody_can_be_writing_it() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    let path = world.path("store/journal/000001.jsonl");
    std::fs::OpenOptions::new().append(true).open(path).unwrap().write_all(b"{\"v\":1,\"se").unwrap();
    let view = world.view();
    assert_eq!(view.core.value().unwrap().ticks.0, 1);
    assert!(status_text(&view, Colour::Plain).contains("ends in an unfinished line of 10 bytes"));
    assert_eq!(world.view_held().alerts, []);
}

#[test]
fn caps_that_cannot_be_read_are_not_no_caps() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    std::fs::write(world.path("store/accepted/config.yaml"), "peers: [").unwrap();
    let text = world.text();
    assert!(text.contains("  caps are unreadable: "), "{text}");
    assert!(text.contains("cap not known") && !text.contains("no cap"), "{text}");
}

#[test]
fn a_run_record_that_cannot_be_read_is_named() {
    let world = World::running();
    std::fs::write(world.path("store/runs/ffffffffffffffff.json"), "{").unwrap();
    assert!(world.text().contains("alert:     run records that cannot be read: ffffffffffffffff.json\n"));
}

#[test]
fn a_linked_store_file_is_unreadable_not_followed() {
    let world = World::running();
    std::fs::remove_file(world.path("store/project.json")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", world.path("store/project.json")).unwrap();
    let view = world.view();
    assert!(matches!(view.project, Sourced::Unreadable(_)));
    assert!(status_text(&view, Colour::Plain).starts_with("project:   unreadable: "));
}

#[test]
fn a_lock_that_cannot_be_looked_at_leaves_the_state_open() {
    let world = World::running();
    let lock = Lock::Unreadable("run.lock is a symbolic link".into());
    let view = world.read(&world.asked(lock));
    assert_eq!(view.exit_code(), 3);
    let text = status_text(&view, Colour::Plain);
    assert!(text.contains("state:     not known: run.lock is a symbolic link\n"), "{text}");
}

#[test]
fn a_ledger_that_cannot_be_read_is_not_no_bugs() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    let mut asked = world.asked(Lock::Free);
    asked.git = Sourced::Fresh(GitFacts {
        branch: Some("main".into()),
        bugs: Sourced::Unreadable("git failed".into()),
        ..GitFacts::new(super::commit('b'))
    });
    let view = world.read(&asked);
    assert!(status_text(&view, Colour::Plain).contains("bugs:      unreadable: git failed\n"));
    asked.git = Sourced::Unreadable("no repository".into());
    let view = world.read(&asked);
    assert!(status_text(&view, Colour::Plain).contains("the repository cannot be read: no repository"));
    assert_eq!(view.bugs, Sourced::Unreadable("no repository".into()));
    // The command behind a long path is all there.
    let path = "deep/".repeat(80);
    asked.git = Sourced::Unreadable(format!("`{path}` is gone: `git worktree repair {path}`"));
    let text = status_text(&world.read(&asked), Colour::Plain);
    assert!(text.contains(&format!("`git worktree repair {path}`\n")), "{text}");
}

#[test]
fn a_history_ends_where_the_journal_is_damaged() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    world.tick(2, "codex", |tick| tick.tool = "find me".into());
    world.tick(3, "claude", |_| {});
    world.tamper("find me", "find us");
    let report = world.report();
    let Sourced::Stale { value, .. } = &report.history else { panic!("{:?}", report.history) };
    assert_eq!(value.ticks, 2);
    let text = report_markdown(&report);
    assert!(
        text.contains("**The journal cannot be read**")
            && text.contains("**The history ends where the journal is damaged**"),
        "{text}"
    );
    std::fs::write(world.path("store/journal/000001.jsonl"), "nonsense\n").unwrap();
    assert!(matches!(History::read(&mut world.disk()), Sourced::Unreadable(_)));
    let view = world.view();
    assert_eq!(view.journal.value().unwrap().unreadable, 1);
}
