//! What is said of a run when its work is taken home.

use super::*;

const HERE: Spelling = Spelling::Loop { dir: None };

fn newest(world: &World) -> RunRecord {
    runs::all(&mut world.disk()).unwrap().pop().unwrap()
}

#[test]
fn a_complete_run_without_anything_to_look_at_needs_no_word() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    world.exit(StopReason::Complete, "");
    let caveats = Caveats::of(&world.view(), &newest(&world));
    assert!(
        caveats.complete && caveats.lines(&HERE).is_empty() && caveats.markdown().is_empty(),
        "{caveats:?}"
    );
}

#[test]
fn a_complete_run_that_weakened_tests_says_so() {
    let mut world = World::running();
    world.tick(1, "claude", |tick| {
        tick.prewarned = true;
        tick.warnings_emitted = vec![format!("{WEAKENED}two assertions are gone")];
    });
    world.exit(StopReason::Complete, "");
    let lines = Caveats::of(&world.view(), &newest(&world)).lines(&HERE);
    assert_eq!(lines[0], "look at this before you trust the result:");
    assert!(lines[1].contains("tick 1 of claude weakened tests: two assertions are gone"), "{lines:?}");
}

#[test]
fn a_run_that_is_not_complete_says_how_it_ended_and_what_was_missing() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    world.exit(StopReason::Drained, "");
    let caveats = Caveats::of(&world.view(), &newest(&world));
    let lines = caveats.lines(&HERE);
    assert_eq!(lines[0], "warning: this run did not end complete: drained");
    assert!(lines[1].ends_with("missing for `complete`:") && lines[2].starts_with("  - "), "{lines:?}");
    assert!(caveats.markdown().contains("Missing for `complete`:\n\n- `"), "{}", caveats.markdown());
}

#[test]
fn what_is_missing_now_is_not_said_of_an_older_run() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    world.exit(StopReason::Drained, "");
    let older = newest(&world);
    world.another_run("00000000000000bb");
    let caveats = Caveats::of(&world.view(), &older);
    assert_eq!((caveats.ended.as_deref(), caveats.missing.len()), (Some("drained"), 0));
}

#[test]
fn foreign_text_changes_neither_the_terminal_nor_the_markdown() {
    let mut world = World::running();
    world.exit(StopReason::Drained, "a`\n\n# b \u{1b}[2J[l](http://x)");
    let caveats = Caveats::of(&world.view(), &newest(&world));
    assert!(caveats.lines(&HERE).iter().all(|line| is_harmless(line) && !line.contains('\n')));
    let text = caveats.markdown();
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("**This run did not end complete**: `drained: a'"), "{text}");
    assert!(first.matches('`').count() == 2 && !text.contains("\n# b"), "{text}");
}
