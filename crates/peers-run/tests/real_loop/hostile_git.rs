//! A turn that leaves something in `.git` for the next one, for the operator, or for us.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::process::{Child, Command, Stdio};

use peers_model::record::{TickOutcome, TickRecord};

use crate::world::{World, eventually, sh};

const O_NONBLOCK: i32 = 0o4000;
/// Honest work of the other peer, by a plain commit of what lies there.
const PLAIN: [&str; 2] = ["write: {path: b.py, text: 'b = 1'}", "handoff: Work"];

fn warned(tick: &TickRecord, words: &[&str]) {
    let said = tick.warnings_emitted.iter().any(|t| words.iter().all(|word| t.contains(word)));
    assert!(said, "{words:?}: {:#?}", tick.warnings_emitted);
}

fn quiet(tick: &TickRecord, word: &str) {
    assert!(!tick.warnings_emitted.iter().any(|t| t.contains(word)), "{word}: {:?}", tick.warnings_emitted);
}

/// Ann plays `steps`, bob works honestly; returns both records.
fn then_bob(w: &World, steps: &[&str]) -> (TickRecord, TickRecord) {
    let mut turn = vec!["write: {path: a.py, text: 'a = 1'}", "handoff: First"];
    turn.extend(steps);
    w.play("idle", &[&turn, &PLAIN]);
    w.run(&["--max-ticks=2"]).stopped("max_ticks", 0);
    let (ann, bob) = (w.tick(1), w.tick(2));
    assert_eq!((ann.peer.as_str(), bob.peer.as_str()), ("ann", "bob"));
    (ann, bob)
}

#[test]
fn a_merge_that_one_peer_plants_does_not_make_its_commit_the_others() {
    for name in ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"] {
        let w = World::new();
        let plant = sh(&format!(
            "c=$(git commit-tree -p HEAD -m 'Evil\n\nBug-Verified: BUG-1' HEAD^{{tree}}); echo $c > .git/{name}; echo $c > {}",
            w.path("planted").display()
        ));
        let (ann, bob) = then_bob(&w, &[&plant]);
        warned(&ann, &["unfinished", name]);
        let planted = w.noted("planted");
        assert_eq!(w.git(&["log", "-1", "--format=%P", bob.head_after.as_str()]), bob.head_before.as_str());
        assert_eq!(bob.commits.len(), 1, "{bob:?}");
        let kept = format!("tick-00001/{}-1", name.to_lowercase());
        assert_eq!(w.salvaged()[&kept], planted);
        w.settled();
    }
}

#[test]
fn what_one_peer_stages_does_not_go_into_the_others_commit() {
    let w = World::new();
    fs::create_dir(w.repo().join("tests")).unwrap();
    w.put("tests/test_a.py", "def test_a():\n    assert f() == 3\n");
    w.commit("Tests");
    let plant = sh(
        "id=$(echo 'def test_a(): pass' | git hash-object -w --stdin); git update-index --cacheinfo 100644,$id,tests/test_a.py",
    );
    let plain: &[&str] = &["write: {path: b.py, text: 'b = 1'}", "handoff: {files: [b.py]}"];
    w.play("idle", &[&["write: {path: a.py, text: 'a = 1'}", "handoff: First", &plant], plain]);
    w.run(&["--max-ticks=2"]).stopped("max_ticks", 0);
    warned(&w.tick(1), &["staged", "tests/test_a.py", "tick-00001/index"]);
    assert_eq!(w.git(&["show", "--name-only", "--format=", "HEAD"]), "b.py");
    assert_eq!(w.status(), "");
    let kept = &w.salvaged()["tick-00001/index"];
    assert_eq!(w.git_control(&["show", &format!("{kept}:tests/test_a.py")]), "def test_a(): pass");
    w.settled();
}

#[test]
fn references_of_the_operator_that_go_in_a_turn_are_told_and_kept() {
    let w = World::new();
    let make = |branch: &str, file: &str| {
        w.git(&["checkout", "-q", "-b", branch]);
        w.put(file, "x\n");
        let tip = w.commit(branch);
        w.git(&["checkout", "-q", "main"]);
        tip
    };
    let feature = make("feature", "f.py");
    let moved = make("moved", "m.py");
    let tagged = make("gone", "t.py");
    w.git(&["tag", "-a", "-m", "v1", "v1", "gone"]);
    w.git(&["branch", "-q", "-D", "gone"]);
    let mut stashed = Vec::new();
    for text in ["one\n", "two\n"] {
        w.put("readme.txt", text);
        w.git(&["stash", "-q"]);
        stashed.push(w.git(&["rev-parse", "stash"]));
    }
    let drop = sh(
        "git branch -q -D feature; git branch -q -f moved HEAD; git tag -d v1 >/dev/null; git stash clear; git reflog expire --expire=now --all; git gc -q --prune=now",
    );
    let (ann, bob) = then_bob(&w, &[&drop]);
    warned(&ann, &["deleted", "refs/heads/feature", "tick-00001/heads/feature"]);
    warned(&ann, &["moved", "refs/heads/moved", "tick-00001/heads/moved"]);
    warned(&ann, &["deleted", "refs/tags/v1", "tick-00001/tags/v1"]);
    warned(&ann, &["stash", "tick-00001/stash-1"]);
    quiet(&bob, "refs/");
    let kept = w.salvaged();
    assert_eq!(kept["tick-00001/heads/feature"], feature);
    assert_eq!(kept["tick-00001/heads/moved"], moved);
    assert_eq!(kept["tick-00001/tags/v1"], tagged);
    assert_eq!((&kept["tick-00001/stash-0"], &kept["tick-00001/stash-1"]), (&stashed[1], &stashed[0]));
    assert_eq!(w.git_control(&["show", &format!("{}:readme.txt", stashed[0])]), "one");
    w.settled();
}

#[test]
fn a_copy_that_a_peer_planted_is_not_taken_for_ours() {
    let w = World::new();
    let plant = sh(&format!(
        "run=$(ls {0}/runs | head -n 1 | sed 's/.json//'); git -C {0}/git/control.git update-ref refs/salvage/$run/2-bob $(git rev-parse HEAD~1)",
        w.store().display()
    ));
    let note = sh(&format!("git rev-parse HEAD > {}", w.path("tip").display()));
    w.play(
        "idle",
        &[
            &["write: {path: a.py, text: 'a = 1'}", "handoff: First"],
            &["write: {path: b.py, text: 'b = 1'}", "rewrite: amend", &note, &plant],
        ],
    );
    w.run(&["--max-ticks=2"]).stopped("max_ticks", 0);
    let tick = w.tick(2);
    assert_eq!(tick.outcome, TickOutcome::Corrected, "{tick:?}");
    let kept = &w.salvaged()[&tick.salvage.unwrap()];
    assert!(w.git_control(&["rev-list", kept]).contains(&w.noted("tip")));
    w.settled();
}

#[test]
fn both_tips_are_kept_when_a_turn_ends_on_another_branch() {
    let w = World::new();
    let tip = |name: &str| sh(&format!("git rev-parse HEAD > {}", w.path(name).display()));
    let steps = [
        "write: {path: precious.py, text: 'p = 1'}",
        "commit: Precious",
        &tip("precious"),
        "git: [checkout, -q, -b, side, HEAD~1]",
        "write: {path: side.py, text: 's = 1'}",
        "commit: Side",
        &tip("side"),
    ];
    w.play("idle", &[&["write: {path: a.py, text: 'a = 1'}", "handoff: First"], &steps]);
    w.run(&["--max-ticks=2"]).stopped("max_ticks", 0);
    let tick = w.tick(2);
    assert_eq!(tick.outcome, TickOutcome::Corrected);
    assert_eq!(w.head(), w.tick(1).head_after.as_str());
    let kept = w.salvaged();
    assert_eq!(kept[tick.salvage.as_ref().unwrap()], w.noted("side"));
    assert_eq!(kept["tick-00002/heads/main"], w.noted("precious"));
    warned(&tick, &["refs/heads/main", "tick-00002/heads/main"]);
    w.settled();
}

#[test]
fn a_branch_that_was_made_another_name_for_one_stops_the_run_and_the_work_is_kept() {
    for target in ["release", "orphan", "main"] {
        let w = World::new();
        w.git(&["branch", "release"]);
        let before = w.head();
        let note = sh(&format!("git rev-parse HEAD > {}; true", w.path("tip").display()));
        let steps = [
            &*sh(&format!("git symbolic-ref refs/heads/main refs/heads/{target}")),
            "write: {path: fixed, text: 'yes'}",
            &sh("git add -A; git commit -q --no-verify -m 'On another branch' || true"),
            &note,
        ];
        w.play("idle", &[&steps, &PLAIN]);
        w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("tamper:git", 5);
        let named = format!("`refs/heads/main` is another name for `refs/heads/{target}`");
        assert!(w.exit().detail.contains(&named), "{}", w.exit().detail);
        if target == "release" {
            assert_eq!(w.salvaged()["tick-00001/tip"], w.noted("tip"));
        }
        w.do_as_told();
        w.run(&["--max-ticks=1"]);
        assert_eq!((w.tick(1).head_after.as_str(), w.tick(1).commits.len()), (&*before, 0), "{target}");
        assert!(!w.try_git(&w.repo(), &["symbolic-ref", "-q", "refs/heads/main"]).status.success());
        w.settled();
    }
}

/// A script of git plumbing that makes a commit of hostile shape and puts the branch on it.
fn hostile(w: &World, name: &str, script: &str) -> String {
    let path = w.path(name);
    let mut file = fs::File::create(&path).unwrap();
    writeln!(file, "#!/bin/sh\nset -e\n{script}\ngit update-ref refs/heads/main $c\n").unwrap();
    file.set_permissions(fs::Permissions::from_mode(0o755)).unwrap();
    drop(file);
    sh(&path.display().to_string())
}

/// Ann leaves work that cannot be read; the tick fails, nothing of it stays, and bob works on.
fn unreadable(w: &World, script: &str) -> TickRecord {
    let before = w.head();
    w.put("mine.py", "draft\n");
    let evil = hostile(w, "evil.sh", script);
    w.play("idle", &[&["write: {path: made.py, text: 'x'}", &evil], &PLAIN, &PLAIN]);
    w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("max_ticks", 0);
    let tick = w.tick(1);
    assert_eq!((w.head(), tick.success, tick.commits.len()), (before, false, 0), "{tick:?}");
    assert!(tick.soft_fail_reason.as_ref().is_some_and(|r| r.contains("cannot be read")), "{tick:?}");
    assert_eq!(w.status(), "?? mine.py", "what was the operator's stays");
    let aside = w.git(&["for-each-ref", "--format=%(refname)", "refs/salvage-unreadable"]);
    let kept = w.salvaged();
    assert!(!aside.is_empty() || kept.contains_key("tick-00001/unreadable"), "{aside} {kept:?}");
    assert_eq!(w.git_control(&["show", &format!("{}:made.py", kept["tick-00001/work-tree"])]), "x");
    w.run(&["--max-ticks=2", "--no-skeptic"]).stopped("max_ticks", 0);
    assert!(w.tick(2).commits.len() + w.tick(3).commits.len() > 0, "others work on");
    w.settled();
    tick
}

#[test]
fn a_tree_with_a_name_that_git_forbids_is_set_aside() {
    let w = World::new();
    unreadable(
        &w,
        "id=$(echo x | git hash-object -w --stdin)
         t=$( (git ls-tree HEAD; printf '100644 blob %s\\t.GIT\\n' $id) | git mktree)
         c=$(git commit-tree -p HEAD -m Evil $t)",
    );
}

#[test]
fn work_whose_objects_are_borrowed_from_elsewhere_stops_the_run_and_is_given_up_as_the_exit_says() {
    let w = World::new();
    let before = w.head();
    let evil = hostile(
        &w,
        "evil.sh",
        &format!(
            "git init -q --bare {0}; mkdir -p .git/objects/info; echo {0}/objects > .git/objects/info/alternates
             id=$(echo borrowed | git -C {0} hash-object -w --stdin)
             t=$( (git ls-tree HEAD; printf '100644 blob %s\\tborrowed\\n' $id) | git mktree)
             c=$(git commit-tree -p HEAD -m Borrowed $t)",
            w.path("elsewhere").display()
        ),
    );
    w.play("idle", &[&[&evil], &PLAIN]);
    w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("tamper:git", 5);
    assert!(w.exit().detail.contains("there is no copy of it"), "{}", w.exit().detail);
    w.do_as_told();
    w.run(&["--max-ticks=2", "--no-skeptic"]).stopped("max_ticks", 0);
    let (ann, bob) = (w.tick(1), w.tick(2));
    assert_eq!((ann.commits.len(), bob.head_before.as_str(), bob.commits.len()), (0, &*before, 1), "{bob:?}");
    w.settled();
}

#[test]
fn tracked_files_below_peers_are_told() {
    let w = World::new();
    w.play(
        "idle",
        &[&[
            "write: {path: a.py, text: 'a = 1'}",
            &sh("git add -f .peers/goals.yaml a.py"),
            "handoff: {files: none}",
        ]],
    );
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    warned(&w.tick(1), &[".peers/goals.yaml", "git rm -r --cached .peers"]);
    w.settled();
}

#[test]
fn commits_of_another_committer_are_told() {
    let w = World::new();
    let operator = sh(
        "GIT_COMMITTER_NAME=Op GIT_COMMITTER_EMAIL=op@example.invalid git commit -q --allow-empty -m Mine",
    );
    let (ann, bob) = then_bob(&w, &[&operator]);
    warned(&ann, &["1 commit by `Op <op@example.invalid>`"]);
    assert_eq!(ann.commits.len(), 2);
    quiet(&bob, "appeared since this turn began");
    w.settled();
}

#[test]
fn a_directory_too_deep_to_look_into_stops_the_run_until_it_is_gone() {
    let w = World::new();
    let deep = sh("p=deep$(printf '/d%.0s' $(seq 300)); mkdir -p $p; echo x > $p/f");
    w.play("idle", &[&["write: {path: a.py, text: 'a = 1'}", "handoff: First", &deep], &PLAIN]);
    w.run(&["--max-ticks=1"]).stopped("tamper:git", 5);
    assert!(w.exit().detail.contains("goes deeper than can be read"), "{}", w.exit().detail);
    w.do_as_told();
    w.run(&["--max-ticks=2"]).stopped("max_ticks", 0);
    assert!(w.tick(1).success && w.tick(2).success, "{:#?}", w.ticks());
    w.settled();
}

/// Starts a run whose output nobody reads and for which there is no room: it stands still where it tells
/// the end of the first tick.
fn halted(w: &World, args: &[&str]) -> (Child, fs::File) {
    let path = w.path("full");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let open =
        |flags: i32| fs::OpenOptions::new().read(true).write(true).custom_flags(flags).open(&path).unwrap();
    let mut full = open(O_NONBLOCK);
    while full.write(&[b'.'; 512]).is_ok() {}
    let child = w.command(args).stdin(Stdio::null()).stderr(Stdio::null()).stdout(open(0)).spawn().unwrap();
    w.recorded("tick", 1);
    (child, full)
}

/// Lets it go on to its end.
fn go_on(mut child: Child, mut full: fs::File) -> i32 {
    eventually("the run to end", || {
        // Nothing to read is fine.
        drop(full.read(&mut [0; 4096]));
        child.try_wait().unwrap().is_some()
    });
    child.wait().unwrap().code().unwrap()
}

#[test]
fn history_that_is_rewritten_between_ticks_while_no_gate_ran_stops_the_run() {
    let w = World::new();
    w.play("idle", &[&["write: {path: a.py, text: 'a = 1'}", "handoff: First"], &PLAIN]);
    let (child, full) = halted(&w, &["--max-ticks=2"]);
    let gates = w.gate_runs("tests");
    w.git(&["commit", "-q", "--amend", "-m", "Another"]);
    assert_eq!(go_on(child, full), 5);
    assert_eq!(w.exit().reason.to_string(), "tamper:history");
    assert_eq!((w.ticks().len(), w.gate_runs("tests")), (1, gates));
}
