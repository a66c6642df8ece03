//! A turn that lays hands on `.git`.

use std::fs;

use crate::world::{Ran, World, sh};

/// What the turn does before it wrecks something: honest work, handed over.
const WORK: [&str; 2] = ["write: {path: fixed, text: 'yes'}", "handoff: Fix it"];

fn wreck(w: &World, steps: &[&str]) -> Ran {
    let mut turn = WORK.to_vec();
    turn.extend(steps);
    w.play("idle", &[&turn]);
    w.run(&["--max-ticks=1", "--no-skeptic"])
}

/// The run stopped and left the tick open; put back, the next run takes it up.
#[track_caller]
fn stopped_and_recovered(w: &World, ran: &Ran, put_back: impl FnOnce()) {
    ran.stopped("tamper:git", 5);
    assert!(w.dead().open.is_some(), "the tick stays open");
    assert!(w.ticks().is_empty());
    put_back();
    w.play("idle", &[]);
    w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("complete", 0);
    let tick = w.tick(1);
    assert!(tick.recovered && tick.success, "{tick:?}");
    assert_eq!(tick.commits.iter().map(peers_model::CommitId::as_str).collect::<Vec<_>>(), [w.head()]);
    w.settled();
}

#[test]
fn a_git_directory_that_was_deleted_is_made_again_as_the_exit_says_and_no_file_is_lost() {
    let w = World::new();
    let before = w.head();
    wreck(&w, &["delete_git"]).stopped("tamper:git", 5);
    let kept = w.salvaged()["tick-00001/stopped"].clone();
    assert_eq!(w.git_control(&["show", &format!("{kept}:fixed")]), "yes");
    w.do_as_told();
    assert_eq!((w.head(), w.status()), (before, "?? fixed".to_owned()));
    w.play("idle", &[&[], &WORK]);
    w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("complete", 0);
    assert!(w.tick(1).recovered);
    w.settled();
}

#[test]
fn a_repository_that_leads_elsewhere_is_moved_away_by_what_the_exit_says_and_never_followed() {
    let w = World::new();
    let plant = format!(
        "h=.git/hooks/reference-transaction; mkdir -p .git/hooks; echo '#!/bin/sh' > $h; echo touch {} >> $h
        chmod +x $h; mv .git ../planted; echo gitdir: $(cd ..; pwd)/planted > .git",
        w.path("ran").display()
    );
    wreck(&w, &[&sh(&plant)]).stopped("tamper:git", 5);
    w.do_as_told();
    assert!(!w.path("ran").exists());
    w.play("idle", &[&[], &WORK]);
    w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("complete", 0);
    w.settled();
}

#[test]
fn what_lies_in_the_place_of_a_lock_or_of_a_message_stops_the_run_in_the_turn_of_who_put_it_there() {
    for plant in
        ["mkdir -p .git/index.lock/x", "mkdir -p .git/refs/heads/main.lock/x", "mkfifo .git/COMMIT_EDITMSG"]
    {
        let w = World::new();
        let ran = wreck(&w, &[&sh(&format!("rm -f .git/COMMIT_EDITMSG; {plant}"))]);
        stopped_and_recovered(&w, &ran, || match plant {
            "mkfifo .git/COMMIT_EDITMSG" => fs::remove_file(w.repo().join(".git/COMMIT_EDITMSG")).unwrap(),
            _ => w.do_as_told(),
        });
    }
}

#[test]
fn a_git_directory_that_was_swapped_for_a_copy_stops_the_run() {
    let w = World::new();
    let ran = wreck(&w, &[&sh("mv .git ../saved; cp -a ../saved .git; git -C . config core.pager evil")]);
    assert_eq!((ran.last_line(), ran.code), ("Stopped: tamper:git", 5));
    // Started again as it is, what was planted in the copy goes and the tick is taken up.
    w.play("idle", &[]);
    w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("complete", 0);
    assert_eq!(w.tick(1).git_tampered, ["config"]);
    assert!(!w.get(".git/config").contains("evil"));
    w.settled();
}

#[test]
fn a_head_that_is_garbage_stops_the_run_until_it_names_the_branch_again() {
    let w = World::new();
    let ran = wreck(&w, &["corrupt_git: head"]);
    stopped_and_recovered(&w, &ran, || w.do_as_told());
    assert_eq!(w.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
}

#[test]
fn a_garbled_index_stops_the_run_until_it_is_made_again_and_hides_nothing() {
    let w = World::new();
    let ran = wreck(&w, &["corrupt_git: index"]);
    stopped_and_recovered(&w, &ran, || w.do_as_told());
    assert_eq!(w.status(), "");
}

#[test]
fn what_was_planted_for_the_operators_own_git_is_put_back_with_a_warning() {
    let w = World::new();
    let plant = sh(concat!(
        "git config core.hooksPath /tmp/evil; git config include.path evil; ",
        "printf '#!/bin/sh\\nevil\\n' > .git/hooks/pre-push; chmod +x .git/hooks/pre-push; ",
        "mkdir -p .git/info; echo '* filter=evil' > .git/info/attributes; echo deadbeef > .git/info/grafts; ",
        "mkdir -p .git/objects/info; echo /tmp > .git/objects/info/alternates"
    ));
    let before = fs::read(w.repo().join(".git/config")).unwrap();
    wreck(&w, &[&plant]).stopped("complete", 0);
    let tick = w.tick(1);
    let mut files = tick.git_tampered.clone();
    files.sort();
    assert_eq!(
        files,
        ["config", "hooks/pre-push", "info/attributes", "info/grafts", "objects/info/alternates"]
    );
    assert_eq!(fs::read(w.repo().join(".git/config")).unwrap(), before);
    for name in ["hooks/pre-push", "info/attributes", "info/grafts", "objects/info/alternates"] {
        assert!(!w.has(&format!(".git/{name}")), "{name}");
        assert!(tick.warnings_emitted.iter().any(|t| t.contains(name)), "{name}");
    }
    w.settled();
}

/// Two commits of the operator, and a turn that works and does this.
fn after_two(w: &World, script: &str) -> Ran {
    w.put("src/one.py", "one = 1\n");
    w.commit("One");
    w.put("src/two.py", "two = 2\n");
    w.commit("Two");
    wreck(w, &[&sh(script)])
}

#[test]
fn an_object_that_the_tip_needs_and_a_turn_destroys_stops_the_run_and_comes_back_as_the_exit_says() {
    let object = |of: &str| {
        format!("o=$(git rev-parse {of}); p=.git/objects/$(echo $o | cut -c-2)/$(echo $o | cut -c3-)")
    };
    for (of, how) in [
        ("HEAD:src", "chmod u+w $p; : > $p"),
        ("HEAD:src/one.py", "rm -f $p"),
        ("HEAD:src/one.py", "rm -f $p; echo mine > ../precious; ln -s ../../../../precious $p"),
        ("HEAD:src/one.py", "rm -f $p; mkfifo $p"),
    ] {
        let w = World::new();
        let ran = after_two(&w, &format!("{}; {how}", object(of)));
        stopped_and_recovered(&w, &ran, || w.do_as_told());
        assert!(
            fs::read_to_string(w.path("precious")).is_ok_and(|text| text == "mine\n")
                || !how.contains("precious")
        );
        w.git(&["fsck", "--full", "--strict"]);
    }
}

#[test]
fn ordinary_work_with_git_does_not_stop_the_run() {
    for act in [
        "git gc -q --prune=now; git repack -q -a -d --write-midx; git commit-graph write --reachable; git prune",
        "git pack-refs --all; git multi-pack-index write; : > .git/objects/pack/tmp_pack_x; : > .git/gc.pid",
        "echo x >> readme.txt; git stash -q; git stash pop -q; git checkout -q readme.txt; git worktree add -q ../beside",
        "git commit -q --allow-empty -m More; GIT_EDITOR=true git rebase -q -i --force-rebase HEAD~1",
        "git clone -q --bare . ../other.git; git fetch -q --depth=1 file://$(cd ..; pwd)/other.git main",
        "git tag -a -m t t; git notes add -m n; git branch side HEAD~1; git branch -q -D side; git reflog expire --expire=now --all",
    ] {
        let w = World::new();
        after_two(&w, act).stopped("complete", 0);
        assert!(w.tick(1).success, "{act}: {:#?}", w.tick(1));
        w.git(&["fsck", "--full", "--strict"]);
        w.settled();
    }
}
