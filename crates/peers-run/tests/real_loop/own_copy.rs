//! Our own copy of the repository, in the trusted store: damaged, emptied, robbed of its names.

use std::fs;
use std::path::PathBuf;

use peers_model::record::{TickOutcome, TickRecord};

use crate::world::{World, sh};

const FIRST: [&str; 2] = ["write: {path: a.py, text: 'a = 1'}", "handoff: First"];
const PLAIN: [&str; 2] = ["write: {path: b.py, text: 'b = 1'}", "handoff: Work"];

fn told(tick: &TickRecord, word: &str) -> bool {
    tick.warnings_emitted.iter().any(|t| t.contains(word))
}

fn control(w: &World) -> PathBuf {
    w.store().join("git/control.git")
}

/// A script that does something to an object of our copy as a file `$p`.
fn object(w: &World, of: &str, how: &str) -> String {
    format!(
        "o=$(git rev-parse {of}); p={}/objects/$(echo $o | cut -c-2)/$(echo $o | cut -c3-); test -f $p; chmod u+w $p; {how}",
        control(w).display()
    )
}

#[test]
fn objects_that_are_missing_or_damaged_in_our_copy_are_taken_again_and_nobody_is_charged() {
    for (of, how) in [
        ("HEAD~1", "rm -f $p"),
        ("HEAD~1^{tree}", "echo garbage > $p"),
        ("HEAD~1:readme.txt", "echo garbage > $p"),
        ("HEAD~1", ": > $p"),
    ] {
        let w = World::new();
        let damage = sh(&object(&w, of, how));
        w.play("idle", &[&[FIRST[0], FIRST[1], &damage], &PLAIN]);
        w.run(&["--max-ticks=2"]).stopped("max_ticks", 0);
        let (ann, bob) = (w.tick(1), w.tick(2));
        assert_eq!((ann.outcome, ann.commits.len()), (TickOutcome::Handoff, 1), "{of}: {ann:#?}");
        assert_eq!((bob.outcome, bob.commits.len()), (TickOutcome::Handoff, 1), "{of}: {bob:#?}");
        w.settled();
    }
}

/// A world in which ann lost work that was kept, uncommitted changes with it.
fn with_salvage() -> (World, String) {
    let w = World::new();
    let lose: &[&str] =
        &["write: {path: b.py, text: 'b = 1'}", "rewrite: amend", "write: {path: c.py, text: 'c'}"];
    w.play("idle", &[&FIRST, lose]);
    w.run(&["--max-ticks=2"]).stopped("max_ticks", 0);
    let name = w.tick(2).salvage.unwrap();
    assert_eq!(w.git_control(&["show", &format!("refs/salvage/{name}:c.py")]), "c");
    (w, name)
}

#[test]
fn a_copy_that_cannot_be_used_is_moved_aside_and_made_anew_with_what_was_kept() {
    for damage in ["objects", "refs"] {
        let (w, name) = with_salvage();
        let path = control(&w).join(damage);
        fs::rename(&path, w.path("taken")).unwrap();
        fs::write(&path, "not a directory").unwrap();
        w.play("idle", &[&[], &[], &PLAIN]);
        w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
        let tick = w.tick(3);
        assert_eq!((tick.outcome, tick.commits.len()), (TickOutcome::Handoff, 1), "{damage}: {tick:#?}");
        assert!(told(&tick, "made anew"), "{damage}: {:#?}", tick.warnings_emitted);
        assert!(w.store().join("git/control.git.bad-1").is_dir(), "{damage}");
        if damage == "objects" {
            assert!(told(&tick, &format!("lost, names and content: salvage `{name}`")), "{tick:#?}");
        } else {
            assert_eq!(w.git_control(&["show", &format!("refs/salvage/{name}:c.py")]), "c", "{damage}");
        }
        w.settled();
    }
}

#[test]
fn what_a_turn_made_is_not_known_before_it_because_it_destroyed_our_copy() {
    // What is only emptied is filled again by the import itself.
    for (destroy, is_told) in
        [("rm -rf objects peers HEAD", true), ("rm -rf objects/*; echo x > HEAD; rm peers/known", false)]
    {
        let w = World::new();
        let destroy = sh(&format!("cd {} && {destroy}", control(&w).display()));
        w.play(
            "idle",
            &[&FIRST, &[PLAIN[0], PLAIN[1], &destroy], &["write: {path: c.py, text: 'c'}", "handoff"]],
        );
        w.run(&["--max-ticks=2"]).stopped("max_ticks", 0);
        let bob = w.tick(2);
        assert_eq!((bob.commits.len(), bob.foreign.len()), (1, 0), "{bob:#?}");
        w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
        assert_eq!(w.tick(3).commits.len(), 1);
        assert_eq!(w.ticks().iter().any(|tick| told(tick, "our own copy")), is_told, "{destroy}");
        w.settled();
    }
}
