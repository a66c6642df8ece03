//! A turn that lays hands on `.git`.

use std::fs;

use peers_model::record::{TickOutcome, TickRecord};

use crate::world::{Ran, World, sh};

/// What the turn does before it wrecks something: honest work, handed over.
const WORK: [&str; 2] = ["write: {path: fixed, text: 'yes'}", "handoff: Fix it"];

fn wreck(w: &World, steps: &[&str]) -> Ran {
    let mut turn = WORK.to_vec();
    turn.extend(steps);
    w.play("idle", &[&turn]);
    w.run(&["--max-ticks=1", "--no-skeptic"])
}

/// The run stopped, told why, and left the tick open; put back, the next run takes it up.
fn stopped_and_recovered(w: &World, ran: &Ran, reasons: &[(&str, i32)], put_back: impl FnOnce()) {
    let told =
        reasons.iter().any(|(r, code)| ran.last_line() == format!("Stopped: {r}") && ran.code == *code);
    assert!(told, "{ran:#?}");
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

const REDIRECTED: (&str, i32) = ("tamper:git-redirected", 5);
const UNREADABLE: (&str, i32) = ("error:git", 70);

#[test]
fn a_git_directory_that_was_deleted_stops_the_run_and_a_copy_of_it_lets_it_go_on() {
    let w = World::new();
    let ran = wreck(&w, &[&sh("cp -a .git ../saved"), "delete_git"]);
    stopped_and_recovered(&w, &ran, &[REDIRECTED, UNREADABLE], || {
        fs::rename(w.path("saved"), w.repo().join(".git")).unwrap();
    });
}

#[test]
fn a_git_directory_that_was_moved_away_stops_the_run_until_it_is_back() {
    for leave in ["nothing", "file", "symlink"] {
        let w = World::new();
        let ran = wreck(&w, &[&format!("move_git: {{leave: {leave}}}")]);
        stopped_and_recovered(&w, &ran, &[REDIRECTED], || {
            let dot = w.repo().join(".git");
            drop(fs::remove_file(&dot));
            fs::rename(w.path("repo.git-moved"), dot).unwrap();
        });
    }
}

#[test]
fn a_git_directory_that_was_swapped_for_a_copy_stops_the_run() {
    let w = World::new();
    let ran = wreck(&w, &[&sh("mv .git ../saved; cp -a ../saved .git; git -C . config core.pager evil")]);
    assert_eq!((ran.last_line(), ran.code), ("Stopped: tamper:git-redirected", 5));
    // Started again as it is, what was planted in the copy goes and the tick is taken up.
    w.play("idle", &[]);
    w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("complete", 0);
    assert_eq!(w.tick(1).git_tampered, ["config"]);
    assert!(!w.get(".git/config").contains("evil"));
    w.settled();
}

#[test]
fn a_head_that_is_garbage_is_put_back() {
    let w = World::new();
    wreck(&w, &["corrupt_git: head"]).stopped("complete", 0);
    assert!(w.tick(1).warnings_emitted.iter().any(|t| t.contains("HEAD")), "{:?}", w.tick(1));
    assert_eq!(w.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    w.settled();
}

#[test]
fn a_branch_that_is_garbage_is_put_back_to_where_the_turn_began_and_the_work_is_kept() {
    let w = World::new();
    let before = w.head();
    let note = sh(&format!("git rev-parse HEAD > {}", w.path("tip").display()));
    wreck(&w, &[&note, "corrupt_git: ref"]).stopped("max_ticks", 0);
    let tick = w.tick(1);
    assert_eq!((w.head(), tick.success, tick.commits.len()), (before, false, 0), "{tick:?}");
    assert!(tick.warnings_emitted.iter().any(|t| t.contains("refs/heads/main") && t.contains("salvage")));
    assert_eq!(w.salvaged()["tick-00001/heads/main"], w.noted("tip"));
    w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("max_ticks", 0);
    w.settled();
}

#[test]
fn a_turn_that_makes_all_objects_garbage_loses_its_own_work_alone() {
    let w = World::new();
    let before = w.head();
    wreck(&w, &["corrupt_git: objects"]).stopped("max_ticks", 0);
    let tick = w.tick(1);
    assert!(!tick.success && tick.commits.is_empty(), "{tick:#?}");
    assert_eq!(w.head(), before);
    assert_eq!(w.get("readme.txt"), "start\n");
    let told = |word: &str| tick.warnings_emitted.iter().any(|t| t.contains(word));
    assert!(told("changed `objects/"), "{tick:#?}");
    assert!(w.try_git(&w.repo(), &["fsck", "--full", "--no-reflogs"]).status.success());
    w.play("idle", &[&[], &WORK]);
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    assert_eq!(w.tick(2).commits.len(), 1, "{:#?}", w.tick(2));
    w.settled();
}

#[test]
fn an_object_that_a_turn_spoils_before_the_other_peer_makes_it_does_not_spoil_its_work() {
    let w = World::new();
    let plant = sh(
        "p=$(echo 'b = 1' | git hash-object -w --stdin | sed 's,^..,.git/objects/&/,'); chmod u+w $p; echo garbage > $p",
    );
    let work = sh("echo 'b = 1' > b.py");
    w.play(
        "idle",
        &[&["write: {path: a.py, text: 'a = 1'}", "handoff: First", &plant], &[&work, "handoff: Work"]],
    );
    w.run(&["--max-ticks=2"]).stopped("max_ticks", 0);
    let bob = w.tick(2);
    assert_eq!((bob.outcome, bob.commits.len()), (TickOutcome::Handoff, 1), "{bob:#?}");
    assert!(w.tick(1).warnings_emitted.iter().any(|t| t.contains("changed `objects/")), "{:#?}", w.tick(1));
    assert_eq!(w.git(&["show", "HEAD:b.py"]), "b = 1");
    w.settled();
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
fn a_garbled_index_does_not_hide_what_was_committed() {
    let w = World::new();
    wreck(&w, &["corrupt_git: index"]).stopped("complete", 0);
    assert!(w.tick(1).warnings_emitted.iter().any(|t| t.contains("index")), "{:?}", w.tick(1));
    assert_eq!(w.status(), "", "the operator's git can read it again");
    w.settled();
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
fn a_merge_that_was_left_is_taken_away_with_a_warning() {
    let w = World::new();
    w.play("idle", &[&["corrupt_git: merge_head"]]);
    w.run(&["--max-ticks=2"]).stopped("max_ticks", 0);
    assert!(w.tick(1).warnings_emitted.iter().any(|t| t.contains("merge") && t.contains("MERGE_HEAD")));
    assert!(w.prompt(2).contains("MERGE_HEAD"));
    assert!(!w.has(".git/MERGE_HEAD"));
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

#[test]
fn a_hook_of_the_operator_that_was_removed_comes_back() {
    let w = World::new();
    let hook = w.repo().join(".git/hooks/pre-push");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
    wreck(&w, &[&sh("rm -rf .git/hooks; ln -s /tmp .git/hooks")]).stopped("complete", 0);
    assert_eq!(fs::read_to_string(&hook).unwrap(), "#!/bin/sh\nexit 1\n");
    w.settled();
}

#[test]
fn pipes_in_place_of_files_of_git_are_removed_and_do_not_hang_the_run() {
    for name in [
        "HEAD",
        "index",
        "logs/HEAD",
        "packed-refs",
        "objects/pack/pack-x.pack",
        "refs/heads/other",
        "refs/tags/other",
    ] {
        let w = World::new();
        wreck(&w, &[&sh(&format!("rm -f .git/{name}; mkfifo .git/{name}"))]).stopped("complete", 0);
        let tick = w.tick(1);
        assert!(tick.success, "{tick:?}");
        assert!(tick.warnings_emitted.iter().any(|t| t.contains(name) && t.contains("FIFO")), "{tick:?}");
        assert_eq!(w.status(), "", "{name}");
        w.settled();
    }
}

#[test]
fn locks_of_references_that_a_turn_left_do_not_stop_the_loop_for_ever() {
    let w = World::new();
    let locks = sh(": > .git/HEAD.lock; : > .git/refs/heads/main.lock; : > .git/packed-refs.lock");
    w.play("idle", &[&["write: {path: a.py, text: 'a = 1'}", "handoff", &locks], &WORK]);
    w.run(&["--max-ticks=2", "--no-skeptic"]).stopped("complete", 0);
    w.settled();
}

/// Two commits of the operator, then ann destroys something, and bob commits so much that git itself has to
/// compare histories. Returns ann's record.
fn destroyed(w: &World, script: &str) -> TickRecord {
    fs::create_dir(w.repo().join("src")).unwrap();
    w.put("src/one.py", "one = 1\n");
    w.commit("One");
    w.put("src/two.py", "two = 2\n");
    w.commit("Two");
    let big = sh("mkdir many; for i in $(seq 400); do echo $i > many/$i; done");
    w.play(
        "idle",
        &[&["write: {path: a.py, text: 'a = 1'}", "handoff: First", &sh(script)], &[&big, "handoff: Much"]],
    );
    w.run(&["--max-ticks=2"]).stopped("max_ticks", 0);
    let (ann, bob) = (w.tick(1), w.tick(2));
    assert_eq!((bob.outcome, bob.commits.len()), (TickOutcome::Handoff, 1), "{bob:#?}");
    let checked = w.try_git(&w.repo(), &["fsck", "--full", "--strict"]);
    assert!(checked.status.success(), "{checked:?}");
    assert_eq!(w.git(&["rev-parse", "HEAD~1"]), ann.head_after.as_str());
    w.settled();
    ann
}

#[test]
fn objects_that_a_turn_destroys_are_written_back_and_told_as_its_doing() {
    let object = |of: &str| {
        format!("o=$(git rev-parse {of}); p=.git/objects/$(echo $o | cut -c-2)/$(echo $o | cut -c3-)")
    };
    for (of, how) in [
        ("HEAD~2", "chmod u+w $p; echo garbage > $p"),
        ("HEAD~1^{tree}", "rm -f $p"),
        ("HEAD~1:src", "chmod u+w $p; : > $p"),
        ("HEAD:src/one.py", "rm -f $p"),
        ("HEAD~1", "chmod u+w $p; echo garbage > $p"),
    ] {
        let w = World::new();
        let ann = destroyed(&w, &format!("{}; {how}", object(of)));
        let told = |t: &String| t.contains("changed `objects/") && t.contains("it was restored");
        assert!(ann.warnings_emitted.iter().any(told), "{of}: {:#?}", ann.warnings_emitted);
    }
}

#[test]
fn what_git_keeps_to_be_faster_cannot_make_work_unreadable() {
    for (name, of_git) in [
        ("info/commit-graph", ""),
        ("info/commit-graphs/commit-graph-chain", ""),
        ("pack/multi-pack-index", ""),
        ("pack/multi-pack-index", "MIDX"),
        ("pack/pack-1111111111111111111111111111111111111111.idx", ""),
    ] {
        let w = World::new();
        let path = format!(".git/objects/{name}");
        let script = format!(
            "mkdir -p $(dirname {path}); {{ printf '{of_git}'; yes garbage | head -c 3000; }} > {path}"
        );
        let ann = destroyed(&w, &script);
        assert!(!w.has(&path), "{name}");
        let told = ann.warnings_emitted.iter().any(|t| t.contains(&format!("changed `objects/{name}`")));
        // One that looks like git's own may be.
        assert_eq!(
            told,
            of_git.is_empty() && !name.ends_with("chain"),
            "{name}: {:#?}",
            ann.warnings_emitted
        );
    }
}

#[test]
fn an_index_of_a_pack_that_a_turn_writes_over_is_made_again() {
    let w = World::new();
    w.git(&["gc", "-q"]);
    let ann = destroyed(&w, "for i in .git/objects/pack/*.idx; do chmod u+w $i; echo garbage > $i; done");
    assert!(ann.warnings_emitted.iter().any(|t| t.contains("changed `objects/pack/pack-")), "{ann:#?}");
}

#[test]
fn a_turn_may_tidy_up_the_object_store() {
    let w = World::new();
    let tidy = "git gc -q --prune=now; git repack -q -a -d --write-midx; git commit-graph write --reachable";
    let ann = destroyed(&w, tidy);
    assert!(ann.warnings_emitted.iter().all(|t| !t.contains("objects")), "{:#?}", ann.warnings_emitted);
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
fn a_pack_that_gives_a_file_other_content_makes_no_gate_green_and_the_turn_is_told_of_it() {
    for end in ["the turn", "a gate"] {
        let w = World::new();
        w.put("fixed", "bad\n");
        w.commit("Bad");
        let plant = planted(&w, &w.git(&["rev-parse", "HEAD:fixed"]), "safe = 1\n");
        let script = w.path("plant.sh");
        let (flag, command) = (w.path("flag"), plant.strip_prefix("shell: ").unwrap());
        fs::write(&script, serde_json::from_str::<String>(command).unwrap()).unwrap();
        let step = if end == "the turn" { plant } else { sh(&format!(": > {}", flag.display())) };
        w.gate(&format!(
            "git show HEAD:fixed | grep -q safe && exit; if rm {} 2>/dev/null; then sh {}; fi; exit 1",
            flag.display(),
            script.display()
        ));
        w.play(
            "idle",
            &[
                &["write: {path: a.py, text: 'a = 1'}", "handoff: First", &step],
                &["write: {path: b.py, text: 'b = 1'}", "handoff: Second"],
            ],
        );
        w.run(&["--max-ticks=3", "--no-skeptic"]).stopped("max_ticks", 0);
        let told = |tick: &TickRecord| {
            tick.warnings_emitted.iter().any(|t| t.contains("objects/pack/pack-") && t.contains(".idx"))
        };
        assert_eq!(w.ticks().iter().any(told), end == "the turn", "{end}: {:#?}", w.ticks());
        assert!(!flag.exists(), "a gate planted it");
        assert_eq!(w.git(&["show", "HEAD:fixed"]), "bad", "{end}");
        assert_eq!(w.tick(2).commits.len(), 1, "{end}: {:#?}", w.tick(2));
        w.settled();
    }
}

#[test]
fn a_pack_that_hides_the_commit_of_head_neither_stops_the_loop_nor_harms_the_next_peer() {
    for name in ["HEAD", "HEAD^{tree}"] {
        let w = World::new();
        w.put("other", "bad\n");
        w.commit("Bad");
        let plant = planted(&w, &w.git(&["rev-parse", name]), "no such thing\n");
        w.play("idle", &[&[&plant], &["write: {path: b.py, text: 'b = 1'}", "handoff: Second"]]);
        w.run(&["--max-ticks=2"]).stopped("max_ticks", 0);
        let (ann, bob) = (w.tick(1), w.tick(2));
        assert!(ann.warnings_emitted.iter().any(|t| t.contains("objects/pack/pack-")), "{name}: {ann:#?}");
        assert_eq!((bob.outcome, bob.commits.len()), (TickOutcome::Handoff, 1), "{name}: {bob:#?}");
        assert!(w.try_git(&w.repo(), &["fsck", "--full"]).status.success());
        w.settled();
    }
}

#[test]
fn a_pack_that_was_planted_between_runs_does_not_count() {
    let w = World::new();
    w.put("fixed", "bad\n");
    w.commit("Bad");
    let plant = planted(&w, &w.git(&["rev-parse", "HEAD:fixed"]), "safe = 1\n");
    let command: String = serde_json::from_str(plant.strip_prefix("shell: ").unwrap()).unwrap();
    w.gate("git show HEAD:fixed | grep -q safe");
    let done =
        std::process::Command::new("sh").args(["-c", &command]).current_dir(w.repo()).status().unwrap();
    assert!(done.success());
    w.play("idle", &[]);
    w.run(&["--max-ticks=2", "--no-skeptic"]).stopped("max_ticks", 0);
    assert_eq!(w.git(&["show", "HEAD:fixed"]), "bad");
    let told = |t: &String| t.contains("objects/pack/pack-") && t.contains("made again");
    assert!(w.tick(1).warnings_emitted.iter().any(told), "{:#?}", w.tick(1));
    w.settled();
}
