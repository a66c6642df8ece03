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
fn a_git_directory_that_was_deleted_stops_the_run_and_a_copy_of_it_lets_it_go_on() {
    let w = World::new();
    let ran = wreck(&w, &[&sh("cp -a .git ../saved"), "delete_git"]);
    stopped_and_recovered(&w, &ran, || {
        fs::rename(w.path("saved"), w.repo().join(".git")).unwrap();
    });
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
fn a_configuration_that_is_garbage_is_put_back() {
    let w = World::new();
    let before = fs::read(w.repo().join(".git/config")).unwrap();
    wreck(&w, &["corrupt_git: config"]).stopped("complete", 0);
    assert_eq!(fs::read(w.repo().join(".git/config")).unwrap(), before);
    assert_eq!(w.tick(1).git_tampered, ["config"]);
    w.settled();
}

#[test]
fn a_garbled_index_stops_the_run_until_it_is_made_again_and_hides_nothing() {
    let w = World::new();
    let ran = wreck(&w, &["corrupt_git: index"]);
    stopped_and_recovered(&w, &ran, || w.do_as_told());
    assert_eq!(w.status(), "");
}

#[test]
fn a_stale_lock_of_the_turn_is_removed() {
    let w = World::new();
    wreck(&w, &["corrupt_git: index_lock"]).stopped("complete", 0);
    assert!(!w.has(".git/index.lock"));
    assert!(w.tick(1).warnings_emitted.iter().any(|t| t.contains("index.lock")));
    w.settled();
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
    for (of, how) in [("HEAD:src", "chmod u+w $p; : > $p"), ("HEAD:src/one.py", "rm -f $p")] {
        let w = World::new();
        let ran = after_two(&w, &format!("{}; {how}", object(of)));
        stopped_and_recovered(&w, &ran, || w.do_as_told());
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

/// A pack whose index gives the object `id` other content, with all checksums right; a step that puts it into
/// the repository.
fn planted(w: &World, id: &str, content: &str) -> String {
    let shell = |dir: &std::path::Path, script: &str| {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]).current_dir(dir).env("GIT_CONFIG_GLOBAL", "/dev/null");
        let done = command.env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    let bytes = |hex: &str| -> Vec<u8> {
        (0..20).map(|n| u8::from_str_radix(&hex[2 * n..2 * n + 2], 16).unwrap()).collect()
    };
    let dir = w.path("planted");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("content"), content).unwrap();
    shell(&dir, "git init -q && git hash-object -w content | git pack-objects -q pack && mv pack-*.idx made");
    let mut index = fs::read(dir.join("made")).unwrap();
    let name = bytes(id);
    for first in 0..=255_u8 {
        let at = 8 + 4 * usize::from(first);
        index[at..at + 4].copy_from_slice(&u32::from(first >= name[0]).to_be_bytes());
    }
    index[1032..1052].copy_from_slice(&name);
    let end = index.len() - 20;
    fs::write(dir.join("body"), &index[..end]).unwrap();
    index[end..].copy_from_slice(&bytes(&shell(&dir, "sha1sum body")));
    fs::write(dir.join("made"), &index).unwrap();
    let from = dir.display();
    sh(&format!(
        "mkdir -p .git/objects/pack; p=.git/objects/pack/pack-{id}; cp {from}/pack-*.pack $p.pack; cp {from}/made $p.idx; git show {id} | grep -q '{}'",
        content.trim()
    ))
}

#[test]
fn a_pack_that_gives_a_file_other_content_proves_nothing() {
    for end in ["the turn", "a gate", "nobody"] {
        let w = World::new();
        w.put("fixed", "bad\n");
        w.commit("Bad");
        let plant = planted(&w, &w.git(&["rev-parse", "HEAD:fixed"]), "safe = 1\n");
        let script = w.path("plant.sh");
        let (flag, command) = (w.path("flag"), plant.strip_prefix("shell: ").unwrap());
        fs::write(&script, serde_json::from_str::<String>(command).unwrap()).unwrap();
        if end == "nobody" {
            let mut planting = std::process::Command::new("sh");
            assert!(planting.arg(&script).current_dir(w.repo()).status().unwrap().success());
        }
        let step = match end {
            "the turn" => plant,
            "a gate" => sh(&format!(": > {}", flag.display())),
            _ => sh("true"),
        };
        w.gate(&format!(
            "git show HEAD:fixed | grep -q safe && exit; if rm {} 2>/dev/null; then sh {}; fi; exit 1",
            flag.display(),
            script.display()
        ));
        w.play("idle", &[&["write: {path: a.py, text: 'a = 1'}", "handoff: First", &step]]);
        let ran = w.run(&["--max-ticks=3", "--no-skeptic"]);
        assert_ne!(ran.last_line(), "Stopped: complete", "{end}: {ran:#?}");
        assert!(!flag.exists(), "a gate planted it");
        if end == "nobody" {
            ran.stopped("tamper:git", 5);
        } else {
            w.settled();
        }
    }
}
