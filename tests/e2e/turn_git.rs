//! Turns behind `bwrap`, or behind podman with `PEERS_TEST_PODMAN=1`: the git directory of a turn, in whole runs. What it holds of single commands is shown where it
//! is made (`peers-git`, tests/turngit).
#![cfg(target_os = "linux")]

use serde_json::{Value, json};

use crate::support::{Ended, World, heard, tests_podman};

/// A world behind a wall with mounts, in which ann's turn hands over and then runs these commands; absent where this
/// machine has none.
fn world(commands: &[&str]) -> Option<World> {
    behind(World::ready("true"), commands)
}

fn behind(world: World, commands: &[&str]) -> Option<World> {
    let wall = if tests_podman() { "podman" } else { "bwrap" };
    if !world.has_wall(wall) {
        return None;
    }
    world.set_wall(wall);
    let mut steps: Vec<Value> =
        vec![json!({"write": {"path": "ann.txt", "text": "by ann\n"}}), json!({"handoff": "Work of ann"})];
    steps.extend(commands.iter().map(|run| json!({"shell": {"run": run, "expect": 0}})));
    world.script("ann", &json!({"turns": [steps]}).to_string());
    Some(world)
}

/// In this order, so that nothing of it runs in the turn itself.
const PLANT: &str = "echo staged > s; git add s; git rm -q --cached README.md; git reset -q README.md; git replace HEAD HEAD~1; \
    git update-index --assume-unchanged README.md; mkdir -p .git/hooks .git/info; \
    printf '#!/bin/sh\\ntouch ran\\n' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit; \
    echo '* filter=x' > .git/info/attributes; git config filter.x.clean 'touch ran; cat'; \
    git config alias.status '!touch ran'; git config core.fsmonitor 'touch ran; false'";
const RUINS: [&str; 4] = [
    "rm -rf .git/* 2>/dev/null; true",
    "mkfifo .git/objects/pack/pack-x.idx; rm .git/HEAD; mkfifo .git/HEAD; (sleep 1 > .git/HEAD) & true",
    "git commit -qm Work -m 'Peer-Status: handoff' -a --allow-empty; truncate -s 4G .git/index",
    "git commit -qm Work -m 'Peer-Status: handoff' --allow-empty; f=.git/objects/$(git rev-parse HEAD | sed 's|^..|&/|'); \
        head -c 60 $f > cut; chmod u+w $f; cat cut > $f; rm cut",
];
const REWRITE: &str = "git reset -q --hard HEAD~1 && git commit -q --amend -m Other";

fn ticks(world: &World, n: &str) -> Ended {
    world.peers(&["run", "--max-ticks", n]).exits(0)
}

fn outcomes(world: &World) -> Vec<String> {
    let words = |tick: &Value| format!("{} {}", tick["peer"], tick["outcome"]).replace('"', "");
    world.records("tick").iter().map(words).collect()
}

#[test]
fn turn_row_1_what_a_turn_plants_in_its_git_directory_is_gone_with_it() {
    let Some(world) = world(&[PLANT]) else { return };
    let config = world.read(".git/config");
    let done = ticks(&world, "1");
    assert_eq!(world.read(".git/config"), config);
    for planted in [".git/hooks/post-commit", ".git/info/attributes", ".git/refs/replace", "ran"] {
        assert!(!world.at(planted).exists(), "{planted}\n{}", done.err);
    }
    assert!(!done.err.contains("put back"), "nothing had to be: {}", done.err);
    // What was staged and not committed is a file in the work tree, and nobody's next commit.
    assert_eq!(world.git(&["status", "--short"]), "?? s");
    let next = ticks(&world, "1");
    assert_eq!(outcomes(&world), ["ann handoff", "ben handoff"], "{}", next.err);
    assert!(!world.at("ran").exists());
    assert!(world.git(&["log", "--format=%an %s"]).starts_with("ben Work of ben\nann Work of ann\n"));
    world.git(&["fsck", "--strict"]);
}

#[test]
fn turn_row_2_a_git_directory_that_is_emptied_or_filled_is_a_failed_turn_and_the_next_one_begins_in_a_sound_one()
 {
    for ruin in RUINS {
        let Some(world) = world(&[]) else { return };
        let work = json!([{"write": {"path": "ann.txt", "text": "by ann\n"}}, {"handoff": "Work of ann"}]);
        let script = json!({"turns": [[{"shell": ruin}], work]}).to_string();
        world.script("ann", &script);
        let before = world.head();
        let done = ticks(&world, "1");
        assert!(world.git(&["log", "--format=%an"]).lines().count() <= 2, "{ruin}");
        assert_eq!(world.git(&["merge-base", "HEAD", &before]), before, "{ruin}: {}", done.err);
        let done = ticks(&world, "2");
        let last = outcomes(&world);
        assert!(last.iter().any(|outcome| outcome == "ann handoff"), "{ruin}: {last:?}\n{}", done.err);
        world.git(&["fsck", "--strict"]);
    }
}

#[test]
fn turn_row_3_history_that_is_rewritten_or_goes_elsewhere_does_not_move_the_branch() {
    for (way, why) in [
        (REWRITE, "history was rewritten"),
        ("git checkout -q -b elsewhere", "HEAD names"),
        ("git checkout -q --detach", "HEAD names"),
    ] {
        let Some(world) = world(&[way]) else { return };
        let before = world.head();
        let done = ticks(&world, "1");
        done.err_has("the git directory of this turn was not taken in").err_has(why);
        assert_eq!(world.head(), before, "{way}: {}", done.err);
        assert_eq!(world.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
        assert_eq!(world.git(&["branch", "--list", "elsewhere"]), "");
        assert!(!outcomes(&world).contains(&"ann handoff".to_owned()), "{way}");
    }
}

#[test]
fn turn_row_4_a_parent_from_another_repository_that_the_turn_names_is_not_brought_in() {
    let other = World::ready("true");
    other.git(&["commit", "-q", "--allow-empty", "-m", "Of another project"]);
    let foreign = other.head();
    let objects = other.at(".git/objects");
    let plant = format!(
        "tree=$(git rev-parse 'HEAD^{{tree}}'); commit=$(printf 'tree %s\\nparent {foreign}\\nauthor a <a@b> 1 +0000\\ncommitter a <a@b> 1 +0000\\n\\nx\\n' \"$tree\" | git hash-object -t commit -w --stdin --literally); \
         echo {} >> .git/objects/info/alternates; echo \"$commit\" > .git/refs/heads/main",
        objects.display()
    );
    let Some(world) = world(&[&plant]) else { return };
    let before = world.head();
    assert_ne!(before, foreign);
    let done = ticks(&world, "1");
    done.err_has("the git directory of this turn was not taken in");
    assert_eq!(world.head(), before, "{}", done.err);
    for dir in [world.at(".git"), world.store().join("git/control.git")] {
        let has = std::process::Command::new("git")
            .arg("--git-dir")
            .arg(&dir)
            .args(["cat-file", "-e", &foreign])
            .status();
        assert!(!has.unwrap().success(), "{}", dir.display());
    }
}

#[test]
fn turn_row_6_what_the_operator_commits_meanwhile_stays_and_the_turn_is_kept() {
    let Some(world) = world(&[]) else { return };
    let (up, go) = (world.fifo("scripts/up"), world.fifo("scripts/go"));
    let wait = format!("echo up > {}; read x < {}", up.display(), go.display());
    let script = json!({"turns": [[
        {"write": {"path": "ann.txt", "text": "by ann\n"}}, {"handoff": "Work of ann"}, {"shell": wait}
    ]]});
    world.script("ann", &script.to_string());
    let run = world.spawned(&["run", "--max-ticks", "1"]);
    heard(&up);
    world.git(&["commit", "-q", "--allow-empty", "-m", "By the operator"]);
    let operators = world.head();
    std::fs::write(&go, "go\n").unwrap();
    let done = Ended::waited(run).exits(0);
    done.err_has("its work is kept as salvage");
    assert_eq!(world.head(), operators);
    world.peers(&["salvage", "list"]).exits(0).out_has("tick-00001");
}

#[test]
fn turn_row_5_a_loop_that_is_killed_in_a_turn_takes_its_commits_in_at_the_next_start() {
    let Some(world) = world(&[]) else { return };
    let (up, never) = (world.fifo("scripts/up"), world.fifo("scripts/never"));
    let wait = format!("echo up > {}; read x < {}", up.display(), never.display());
    let script = json!({"turns": [[
        {"write": {"path": "ann.txt", "text": "by ann\n"}}, {"handoff": "Work of ann"}, {"shell": wait}
    ]]});
    world.script("ann", &script.to_string());
    let before = world.head();
    let mut run = world.spawned(&["run", "--max-ticks", "1"]);
    heard(&up);
    assert_eq!(world.head(), before, "nothing is published while a turn runs");
    run.kill().unwrap();
    run.wait().unwrap();
    let done = ticks(&world, "1");
    assert!(world.git(&["log", "--format=%s"]).contains("Work of ann"), "{}", done.err);
    assert_eq!(world.read("ann.txt"), "by ann\n");
    world.git(&["fsck", "--strict"]);
}

#[test]
fn turn_row_7_the_checkout_is_packed_and_pruned_meanwhile_and_the_turn_goes_on() {
    let Some(world) = world(&[]) else { return };
    // A commit of its own, that nothing else names.
    let own = world.git(&["commit-tree", "-m", "Elsewhere", "HEAD^{tree}"]);
    world.git(&["branch", "other", own.trim()]);
    let (up, go) = (world.fifo("scripts/up"), world.fifo("scripts/go"));
    let wait = format!("echo up > {}; read x < {}", up.display(), go.display());
    let script = json!({"turns": [[
        {"shell": {"run": wait, "expect": 0}},
        {"shell": {"run": "git log --oneline && ! git cat-file -e refs/heads/other", "expect": 0}},
        {"write": {"path": "ann.txt", "text": "by ann\n"}},
        {"handoff": "Work of ann"}
    ]]});
    world.script("ann", &script.to_string());
    let run = world.spawned(&["run", "--max-ticks", "1"]);
    heard(&up);
    // From here on only a reference of the turn names that commit.
    world.git(&["branch", "-D", "other"]);
    world.git(&["reflog", "expire", "--expire=now", "--all"]);
    world.git(&["repack", "-adq"]);
    world.git(&["gc", "-q", "--prune=now"]);
    std::fs::write(&go, "go\n").unwrap();
    let done = Ended::waited(run).exits(0);
    assert_eq!(outcomes(&world), ["ann handoff"], "{}", done.err);
    assert!(world.git(&["log", "--format=%s"]).starts_with("Work of ann\n"));
    // The object is gone, and where its reference comes back it is left out.
    world.write(".git/refs/heads/other", &own);
    let left_out = json!([
        {"shell": {"run": "! git rev-parse -q --verify refs/heads/other", "expect": 0}},
        {"write": {"path": "ben.txt", "text": "by ben\n"}},
        {"handoff": "Work of ben"}
    ]);
    world.script("ben", &json!({"turns": [left_out]}).to_string());
    let next = ticks(&world, "1");
    assert_eq!(outcomes(&world), ["ann handoff", "ben handoff"], "{}", next.err);
}

#[test]
fn turn_row_8_what_git_does_besides_commits_works_in_a_turn_and_leaves_nothing_behind() {
    let commands = "git gc -q && git repack -adq && git describe --always && git submodule update --init && \
        git worktree add -q wt HEAD && git worktree list && git rebase -q --force-rebase HEAD~1";
    let Some(world) = world(&[commands]) else { return };
    let done = ticks(&world, "1");
    assert_eq!(outcomes(&world), ["ann handoff"], "{}", done.err);
    done.err_has("this turn made a git directory `wt/.git` in the work tree");
    assert!(!world.at("wt/.git").exists() && world.at("wt/README.md").is_file());
    assert_eq!(world.git(&["worktree", "list"]).lines().count(), 1);
    for left in [".git/worktrees", ".git/gc.log", ".git/rebase-merge", ".git/ORIG_HEAD"] {
        assert!(!world.at(left).exists(), "{left}");
    }
    world.git(&["fsck", "--strict"]);
}

#[test]
fn what_the_operator_does_in_the_git_directory_during_a_turn_is_nobody_elses_and_stays() {
    let Some(world) = world(&[]) else { return };
    let (up, go) = (world.fifo("scripts/up"), world.fifo("scripts/go"));
    let wait = format!("echo up > {}; read x < {}", up.display(), go.display());
    let script = json!({"turns": [[
        {"shell": {"run": wait, "expect": 0}},
        {"write": {"path": "ann.txt", "text": "by ann\n"}},
        {"handoff": "Work of ann"}
    ]]});
    world.script("ann", &script.to_string());
    let run = world.spawned(&["run", "--max-ticks", "1"]);
    heard(&up);
    world.git(&["config", "pull.rebase", "true"]);
    world.git(&["tag", "mine"]);
    world.write(".git/hooks/pre-push", "#!/bin/sh\n");
    std::fs::write(&go, "go\n").unwrap();
    let done = Ended::waited(run).exits(0);
    assert_eq!(outcomes(&world), ["ann handoff"], "{}", done.err);
    assert_eq!(world.git(&["config", "pull.rebase"]), "true");
    assert!(world.at(".git/hooks/pre-push").is_file());
    assert!(!done.err.contains("put back") && !done.err.contains("mine"), "{}", done.err);
}

#[test]
fn a_git_directory_that_a_gate_plants_deeper_is_moved_aside_before_the_next_turn() {
    let plant = "mkdir -p sub && printf 'gitdir: ../.git\\n' > sub/.git && git init -q own && git -C own config filter.x.clean 'touch ran'";
    let Some(world) = behind(World::ready(plant), &[]) else { return };
    let done = ticks(&world, "1");
    for planted in ["sub/.git", "own/.git"] {
        done.err_has(&format!("a gate made a git directory `{planted}` in the work tree"));
        assert!(!world.at(planted).exists(), "{planted}");
    }
    let next = ticks(&world, "1");
    assert_eq!(outcomes(&world), ["ann handoff", "ben handoff"], "{}", next.err);
    world.git(&["fsck", "--strict"]);
}

/// The same without mounts: agents have the git directory of the checkout, and what is wrong there afterwards is put
/// right or stops the run.
fn without_mounts(plant: &str) -> Vec<(&'static str, World)> {
    let mut worlds = Vec::new();
    for wall in ["landlock", "none"] {
        let world = World::ready("true");
        if !world.has_wall(wall) {
            continue;
        }
        world.set_wall(wall);
        let work =
            [json!({"write": {"path": "ann.txt", "text": "by ann\n"}}), json!({"handoff": "Work of ann"})];
        let turn = json!([work[0], work[1], {"shell": plant}]);
        world.script("ann", &json!({"turns": [turn]}).to_string());
        worlds.push((wall, world));
    }
    worlds
}

#[test]
fn turn_row_1_without_mounts_what_a_turn_plants_is_put_back_and_told_and_nothing_of_it_runs() {
    for (wall, world) in without_mounts(PLANT) {
        let config = world.read(".git/config");
        let done = ticks(&world, "1");
        assert_eq!(world.read(".git/config"), config, "{wall}");
        for planted in [".git/hooks/post-commit", ".git/info/attributes", "ran"] {
            assert!(!world.at(planted).exists(), "{wall}: {planted}\n{}", done.err);
        }
        for changed in ["config", "hooks/post-commit", "info/attributes"] {
            done.err_has(&format!(
                "this turn changed `{changed}` of the repository's git directory; it was restored"
            ));
        }
        done.err_has("this turn moved the protected ref `refs/replace/");
        assert_eq!(world.git(&["replace", "--list"]), "", "{wall}");
        assert_eq!(world.git(&["status", "--short"]), "?? s", "{wall}");
        assert!(world.git(&["ls-files", "-v", "README.md"]).starts_with('H'), "{wall}");
        let next = ticks(&world, "1");
        assert_eq!(outcomes(&world), ["ann handoff", "ben handoff"], "{wall}: {}", next.err);
        assert!(!world.at("ran").exists(), "{wall}");
        assert!(world.git(&["log", "--format=%an %s"]).starts_with("ben Work of ben\nann Work of ann\n"));
    }
}

#[test]
fn turn_row_2_without_mounts_a_git_directory_that_is_emptied_or_filled_stops_the_run_and_the_work_is_kept() {
    for (ruin, why) in RUINS.into_iter().zip([
        "not the top of a git work tree",
        "is a FIFO",
        "is larger than",
        "is an object that is cut short",
    ]) {
        for (wall, world) in without_mounts(ruin) {
            let copy = |from: &str, to: &str| {
                let done = world.command("cp").arg("-a").args([world.at(from), world.at(to)]).status();
                assert!(done.unwrap().success());
            };
            copy(".git", "../backup");
            let before = world.head();
            let done = world.peers(&["run", "--max-ticks", "1"]).exits(5);
            assert_eq!(done.last_line(), "Stopped: tamper:git", "{wall}: {ruin}");
            done.err_has(why).err_has("kept of the turn: salvage `tick-00001/stopped`");
            // The backup is the operator's; what it lacks comes back by the command that is named.
            std::fs::remove_dir_all(world.at(".git")).unwrap();
            copy("../backup", ".git");
            let fetch = done.err.split('`').find(|word| word.starts_with("tar -C ")).unwrap();
            assert!(world.command("sh").args(["-c", fetch]).status().unwrap().success(), "{fetch}");
            assert_eq!(world.head(), before);
            assert_eq!(world.read("ann.txt"), "by ann\n", "{wall}: {ruin}");
            world.scripts(
                "after: repeat\nturns:\n- - write: {path: ann.txt, append: more}\n  - handoff: Goes on\n",
            );
            let next = ticks(&world, "1");
            assert!(
                outcomes(&world).iter().any(|tick| tick.ends_with(" handoff")),
                "{wall}: {ruin}: {}",
                next.err
            );
            world.git(&["fsck", "--strict"]);
        }
    }
}

#[test]
fn turn_row_3_without_mounts_the_branch_is_set_back_and_where_it_went_is_kept() {
    let left = "HEAD left its branch in this turn; the branch was restored and the tip was kept";
    for (way, why) in [
        (
            REWRITE,
            "history was rewritten: the commits from before this turn are no longer part of HEAD; the branch was set back and the tip was kept",
        ),
        ("git checkout -q -b elsewhere", left),
        ("git checkout -q --detach", left),
    ] {
        for (wall, world) in without_mounts(way) {
            let before = world.head();
            let done = ticks(&world, "1");
            done.err_has(why);
            assert_eq!(world.git(&["symbolic-ref", "HEAD"]), "refs/heads/main", "{wall}: {way}");
            assert_eq!(world.head(), before, "{wall}: {way}");
            assert!(!outcomes(&world).contains(&"ann handoff".to_owned()), "{wall}: {way}");
            world.peers(&["salvage", "list"]).exits(0).out_has("/1-ann  ");
        }
    }
}
