//! What forbids a start, and what a start finds and mends.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;

use peers_sys::signal::Signal;

use crate::world::{FIX, World, eventually, files};

/// Two peers of which nothing can be run; each case below spoils something else.
const PEER: &str = "- {name: ann, tool: claude, argv: [claude, --output-format, stream-json]}";

#[test]
fn row_02_a_configuration_that_makes_no_sense_stops_the_start_and_nothing_is_written() {
    for (text, says) in [
        ("peers: [", "line 1"),
        (&format!("peers:\n{PEER}\n"), "`peers` needs at least 2 entries, has 1"),
        (&format!("peers:\n{PEER}\n{PEER}\n"), "this name stands twice"),
        (&format!("peers:\n{PEER}\nbuget: {{}}\n"), "unknown key `buget`"),
        (
            &format!("peers:\n{PEER}\nbudget: {{max_iterations: 0}}\n"),
            "`budget.max_iterations` must be a whole number",
        ),
        (&format!("peers:\n{PEER}\nskeptic: {{enabled: 'false'}}\n"), "write it without quotes"),
    ] {
        let w = World::new();
        w.put(".peers/config.yaml", text);
        w.accept();
        let before = files(&w.store());
        w.run(&[]).refused(3, says).refused(3, "config error: .peers/config.yaml");
        assert_eq!(files(&w.store()), before, "{says}");
    }
}

#[test]
fn row_03_a_running_loop_keeps_a_second_one_out_and_nothing_is_written() {
    let w = World::new();
    let here = w.fifo("here");
    w.play("idle", &[&[&here.tell(), "hang"]]);
    let first = w.start(&[]);
    here.told();
    w.recorded("peer-spawned", 1);
    let before = files(&w.store());
    let run = w.runs()[0].run_id.to_string();
    w.run(&[]).refused(4, &run);
    assert_eq!(files(&w.store()), before, "owner, journal and run records");
    first.signal(Signal::Term);
    first.end().stopped("interrupted", 143);
    w.settled();
}

#[test]
fn row_03_a_lock_that_an_older_system_holds_in_the_repository_counts_too() {
    let w = World::new();
    w.play("idle", &[&["write: {path: fixed, text: 'yes'}", "handoff"]]);
    let path = w.repo().join(".peers/run.lock");
    let own = std::process::id().to_string();
    fs::write(&path, format!("{{\"pid\": {own}, \"run_id\": \"old\"}}")).unwrap();
    let theirs = File::open(&path).unwrap();
    theirs.lock().unwrap();
    let before = files(&w.store());
    w.run(&[]).refused(4, "another process holds `.peers/run.lock`, the lock of an older version");
    assert_eq!(files(&w.store()), before);
    // Held is what the kernel says; that the file exists means nothing.
    drop(theirs);
    let inode = fs::metadata(&path).unwrap().ino();
    w.run(&["--max-ticks=4"]).stopped("complete", 0);
    assert_eq!(fs::metadata(&path).unwrap().ino(), inode, "left alone");
    w.settled();
}

#[test]
fn row_04_an_unlocked_lock_file_with_garbage_is_taken_over_in_place() {
    let w = World::new();
    let lock = w.store().join("run.lock");
    fs::write(&lock, b"\xff\x00 garbage").unwrap();
    let inode = fs::metadata(&lock).unwrap().ino();
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    assert_eq!(fs::metadata(&lock).unwrap().ino(), inode);
    w.settled();
}

#[test]
fn row_04_a_view_that_looks_at_the_lock_is_waited_for() {
    let w = World::new();
    let lock = w.store().join("run.lock");
    let looking = File::options().create(true).append(true).open(&lock).unwrap();
    looking.lock_shared().unwrap();
    let live = w.start(&["--max-ticks=1"]);
    // Somebody else has opened the file, so it waits.
    eventually("the lock file is open", || opened_elsewhere(&lock));
    drop(looking);
    live.end().stopped("max_ticks", 0);
    w.settled();
}

/// Whether another process than this one has the file open.
fn opened_elsewhere(path: &Path) -> bool {
    let own = std::process::id().to_string();
    let open = |process: std::io::Result<fs::DirEntry>| {
        let process = process.ok()?;
        let mut fds = fs::read_dir(process.path().join("fd")).ok()?;
        let open = fds.any(|fd| fd.is_ok_and(|fd| fs::read_link(fd.path()).is_ok_and(|to| to == path)));
        (open && process.file_name() != own.as_str()).then_some(())
    };
    fs::read_dir("/proc").unwrap().any(|process| open(process).is_some())
}

#[test]
fn row_05_a_directory_where_a_file_belongs_and_the_other_way_round_stop_the_start() {
    for (name, is_dir) in [
        ("state.json", true),
        ("last-stop-reason.txt", true),
        ("log/runs.jsonl", true),
        ("log", false),
        ("inbox", false),
        ("log/prompts", false),
    ] {
        let w = World::new();
        let path = w.repo().join(".peers").join(name);
        drop(fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path)));
        if is_dir {
            fs::create_dir(&path).unwrap();
        } else {
            fs::write(&path, "mine").unwrap();
        }
        w.run(&[]).refused(5, &format!(".peers/{name} is a")).refused(5, "inspect it and move it away");
        assert!(w.lines().is_empty(), "{name}");
    }
}

#[test]
fn row_05_a_second_name_of_a_control_file_stops_the_start() {
    let w = World::new();
    let target = w.path("target");
    fs::write(&target, "mine\n").unwrap();
    fs::hard_link(&target, w.repo().join(".peers/state.json")).unwrap();
    w.run(&[]).refused(5, "state.json");
    assert_eq!(fs::read_to_string(&target).unwrap(), "mine\n");
}

#[test]
fn row_05_a_fifo_or_a_link_in_place_of_any_file_of_ours_stops_the_start_and_hangs_nothing() {
    for name in [
        ".peers/config.yaml",
        ".peers/goals.yaml",
        ".peers/state.json",
        ".peers/log/runs.jsonl",
        ".peers/last-stop-reason.txt",
        "accepted.json",
        "project.json",
        "snapshot.json",
        "tool-homes.json",
        "run.lock",
        "verdicts.json",
    ] {
        for fifo in [true, false] {
            let w = World::new();
            w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
            let at = if name.starts_with(".peers") { w.repo().join(name) } else { w.store().join(name) };
            let target = w.path("target");
            drop(fs::rename(&at, &target));
            if fifo {
                assert!(std::process::Command::new("mkfifo").arg(&at).status().unwrap().success());
            } else {
                symlink(&target, &at).unwrap();
            }
            let before = fs::read(&target).ok();
            let ran = w.run(&["--max-ticks=1"]);
            if name == "verdicts.json" {
                // A cache: what cannot be read holds no answer.
                ran.stopped("max_ticks", 0);
            } else {
                ran.refused(5, name);
            }
            assert_eq!(fs::read(&target).ok(), before, "{name}");
        }
    }
}

#[test]
fn row_07_a_branch_without_a_commit_stops_the_start() {
    let w = World::new();
    w.git(&["symbolic-ref", "HEAD", "refs/heads/nothing"]);
    w.run(&[]).refused(3, "git commit --allow-empty");
    assert!(w.lines().is_empty());
}

#[test]
fn row_07_a_directory_that_is_no_repository_stops_the_start() {
    let w = World::new();
    fs::rename(w.repo().join(".git"), w.path("git")).unwrap();
    w.run(&[]).refused(3, "git init");
    assert!(w.lines().is_empty());
}

#[test]
fn row_07_below_the_top_of_the_repository_only_the_way_up_is_told() {
    let w = World::new();
    let below = w.repo().join("src");
    fs::create_dir(&below).unwrap();
    let ran = w.run_in(&below, &[]);
    ran.refused(3, &format!("peers -C {}", w.repo().canonicalize().unwrap().display()));
    assert_eq!(ran.stderr.matches("hint: ").count(), 1, "{ran:#?}");
    assert!(!ran.stderr.contains("git init"), "{ran:#?}");
}

#[test]
fn row_07_a_lock_that_a_crashed_git_left_is_told_with_its_remedy() {
    let w = World::new();
    fs::write(w.repo().join(".git/index.lock"), "").unwrap();
    w.run(&[]).refused(4, "if no git runs there, remove it: `rm \"$(git -C ");
    assert!(w.repo().join(".git/index.lock").exists());
}

#[test]
fn row_07_without_its_control_directory_the_way_back_is_told() {
    let w = World::new();
    fs::remove_dir_all(w.repo().join(".peers")).unwrap();
    w.run(&[]).refused(3, "peers init --upgrade");
    assert!(!w.has(".peers"));
    let w = World::new();
    let linked = w.path("linked");
    w.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    w.run_in(&linked, &[]).refused(3, &format!("peers -C {}", w.repo().canonicalize().unwrap().display()));
}

#[test]
fn a_halted_text_of_an_earlier_run_is_archived() {
    let w = World::new();
    w.put(".peers/HALTED.md", "no peer is left\n");
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    assert!(!w.has(".peers/HALTED.md"));
    let kept: Vec<_> = files(&w.repo().join(".peers/log"))
        .into_iter()
        .filter(|(path, _)| path.file_name().unwrap().to_string_lossy().starts_with("HALTED-"))
        .collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].1, b"no peer is left\n");
}

#[test]
fn row_07_a_machine_without_git_stops_the_start() {
    let w = World::new();
    let mut command = w.command(&[]);
    command.env("PATH", w.path("nowhere"));
    World::out(command).refused(6, "install git");
    assert!(w.lines().is_empty());
}

#[test]
fn row_07_a_missing_program_of_a_peer_stops_the_start() {
    let w = World::new();
    w.put(".peers/config.yaml", NO_PROGRAMS);
    w.accept();
    w.run(&[]).refused(6, "peer `ann`").refused(6, "peer `bob`");
    assert!(w.lines().is_empty());
}

#[test]
fn row_07_everything_that_forbids_a_start_is_said_at_once() {
    let w = World::new();
    w.put(".peers/config.yaml", NO_PROGRAMS);
    w.accept();
    w.put(".peers/goals.yaml", "goals: []\n");
    w.git(&["symbolic-ref", "HEAD", "refs/heads/nothing"]);
    let mut command = w.command(&[]);
    command.env("PATH", w.path("nowhere"));
    let ran = World::out(command);
    for says in [
        "no hard gate",
        "goals.yaml changed",
        "--allow-empty",
        "install git",
        "peer `ann`",
        "install `no-such-program-at-all`",
        "peer `bob`",
        "make `./nor-this-one`",
    ] {
        ran.refused(3, says);
    }
    assert!(w.lines().is_empty());
}

const NO_PROGRAMS: &str = "peers:\n- {name: ann, tool: claude, argv: [no-such-program-at-all, --output-format, stream-json]}\n\
     - {name: bob, tool: claude, argv: [./nor-this-one, --output-format, stream-json]}\n";

#[test]
fn row_39_an_earlier_complete_is_nowhere_said_again_after_a_crash() {
    let w = World::new();
    w.play("idle", &[&["write: {path: fixed, text: 'yes'}", "handoff"]]);
    w.run(&["--max-ticks=4"]).stopped("complete", 0);
    assert!(w.get(".peers/last-stop-reason.txt").starts_with("complete "));
    fs::remove_file(w.repo().join("fixed")).unwrap();
    w.commit("Break it again");
    let here = w.fifo("here");
    w.play("repeat", &[&[&here.tell(), "hang"]]);
    let second = w.start(&[]);
    here.told();
    second.crash();
    assert!(!w.has(".peers/last-stop-reason.txt"));
    let newest = w.runs().pop().unwrap();
    assert_eq!((newest.reason, newest.ended_at, newest.exit_code), (None, None, None));
    w.play("idle", &[]);
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    w.settled();
}

#[test]
fn the_first_run_of_a_repository_that_was_set_up_without_a_commit_sets_the_anchor_where_it_begins() {
    let w = World::new();
    w.unanchor();
    w.play("idle", &[FIX]);
    let head = w.head();
    w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
    assert_ne!(w.head(), head);
    assert_eq!(w.anchor().unwrap(), head);
    assert_eq!(w.git(&["rev-parse", "peers-baseline"]), head);
}

#[test]
fn an_anchor_that_is_set_late_lies_before_the_oldest_run() {
    for upgraded in [true, false] {
        let w = World::new();
        let head = w.head();
        w.play("repeat", &[&["write: {path: 'some-{{turn}}', text: 'x'}", "handoff"]]);
        for _ in 0..2 {
            w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
            // As a version left it that set none.
            w.unanchor();
        }
        assert_ne!(w.head(), head);
        if upgraded {
            assert_eq!(w.upgrade().base.unwrap().as_str(), head);
        } else {
            w.run(&["--max-ticks=1"]).stopped("max_ticks", 0);
        }
        assert_eq!(w.anchor().unwrap(), head, "{upgraded}");
        assert_eq!(w.git(&["rev-parse", "peers-baseline"]), head);
    }
}
