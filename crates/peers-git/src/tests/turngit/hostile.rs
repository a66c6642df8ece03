//! What a turn may do to its git directory.

use std::os::unix::fs::PermissionsExt as _;

use super::Stage;
use crate::TurnGit;
use crate::tests::{Fixture, cut_short, fifo, link, put};

/// Makes everything in a git directory that git would run write a canary.
fn plant(stage: &Stage) -> std::path::PathBuf {
    let (canary, script) = (stage.fixture.path("canary"), stage.fixture.path("evil.sh"));
    put(&script, format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", canary.display()).as_bytes());
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (git, evil) = (stage.git_dir(), script.display().to_string());
    for hook in ["pre-commit", "post-commit", "post-checkout", "reference-transaction", "post-index-change"] {
        let place = git.join("hooks").join(hook);
        put(&place, &std::fs::read(&script).unwrap());
        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let config = format!(
        "[core]\nrepositoryformatversion = 0\nfsmonitor = {evil}\npager = {evil}\neditor = {evil}\nworktree = /etc\n\
         [filter \"evil\"]\nclean = {evil}\nsmudge = {evil}\nrequired = true\n[diff \"evil\"]\ntextconv = {evil}\n\
         [alias]\nst = !{evil}\n[include]\npath = /dev/zero\n[uploadpack]\npackObjectsHook = {evil}\n"
    );
    put(&git.join("config"), config.as_bytes());
    put(&git.join("config.worktree"), config.as_bytes());
    put(&git.join("info/attributes"), b"* filter=evil diff=evil\n");
    canary
}

#[test]
fn nothing_planted_runs_or_shows_anywhere_else() {
    let mut stage = Stage::new();
    drop(stage.make());
    let tip = stage.work("x", "x\n");
    stage.run(&["replace", "HEAD", "HEAD~1"]);
    put(&stage.git_dir().join("info/grafts"), format!("{tip}\n").as_bytes());
    let canary = plant(&stage);
    stage.fixture.write("a", "changed\n");
    let published = stage.publish();
    assert_eq!((published.moved, stage.fixture.head()), (None, tip.clone()));
    assert_eq!(stage.status(), " M a\n");
    assert_eq!(stage.fixture.git(&["log", "--format=%s"]), "x\nsecond\nfirst\n");
    drop(stage.make());
    assert_eq!(stage.run(&["status", "--porcelain"]), " M a\n");
    assert_eq!(stage.run(&["log", "--format=%s"]), "x\nsecond\nfirst\n");
    assert!(!stage.agent(&["st"]).output().unwrap().status.success());
    stage.work("y", "y\n");
    assert!(!canary.exists());
}

#[test]
fn an_object_that_is_cut_short_is_a_failed_turn_and_the_next_one_works() {
    let mut stage = Stage::new();
    drop(stage.make());
    let tip = stage.work("x", "x\n");
    cut_short(&stage.git_dir(), tip.as_str());
    let (why, aside) = stage.failed();
    assert!(why.ends_with("is an object that is cut short"), "{why}");
    assert!(aside.is_some());
    drop(stage.make());
    stage.work("y", "y\n");
    assert!(stage.publish().moved.is_none());
}

#[test]
fn alternates_of_the_turn_lead_nowhere() {
    let mut stage = Stage::new();
    let secret = Fixture::new();
    secret.write("secret", "s3cret\n");
    let theirs = secret.commit("secret");
    drop(stage.make());
    let store = secret.work.join(".git/objects");
    put(&stage.git_dir().join("objects/info/alternates"), format!("{}\n", store.display()).as_bytes());
    stage.run(&["reset", "-q", "--soft", theirs.as_str()]);
    stage.failed();
    assert!(!stage.control.facts().has(&theirs));
    // The same by a parent of a commit of its own.
    drop(stage.make());
    put(&stage.git_dir().join("objects/info/alternates"), format!("{}\n", store.display()).as_bytes());
    let tree = stage.run(&["write-tree"]);
    let commit = stage.run(&["commit-tree", "-m", "x", "-p", "HEAD", "-p", theirs.as_str(), tree.trim()]);
    stage.run(&["update-ref", "refs/heads/main", commit.trim()]);
    stage.failed();
    assert!(!stage.control.facts().has(&theirs));
    assert!(
        !stage
            .fixture
            .work
            .join(".git/objects")
            .join(&theirs.as_str()[..2])
            .join(&theirs.as_str()[2..])
            .exists()
    );
}

#[test]
fn parents_that_git_was_told_of_do_not_count() {
    let mut stage = Stage::new();
    let tip = stage.fixture.head();
    drop(stage.make());
    // A history of its own, which a graft, a shallow edge and a commit graph put on top of the known tip.
    let tree = stage.run(&["write-tree"]);
    let lone = stage.run(&["commit-tree", "-m", "lone", tree.trim()]);
    let lone = lone.trim();
    stage.run(&["update-ref", "refs/heads/main", lone]);
    put(&stage.git_dir().join("info/grafts"), format!("{lone} {tip}\n").as_bytes());
    drop(stage.agent(&["commit-graph", "write", "--reachable"]).output().unwrap());
    let (why, _) = stage.failed();
    assert!(why.contains("history was rewritten"), "{why}");
}

#[test]
fn a_directory_beyond_bounds_fails_the_turn_and_the_next_one_is_sound() {
    type Deed = fn(&Stage);
    let deeds: [(&str, Deed); 12] = [
        ("emptied", |stage| {
            std::fs::remove_dir_all(stage.git_dir()).unwrap();
            std::fs::create_dir(stage.git_dir()).unwrap();
        }),
        ("a file", |stage| {
            std::fs::remove_dir_all(stage.git_dir()).unwrap();
            put(&stage.git_dir(), b"gitdir: /etc\n");
        }),
        ("a link", |stage| {
            std::fs::remove_dir_all(stage.git_dir()).unwrap();
            link(stage.fixture.work.join(".git").to_str().unwrap(), &stage.git_dir());
        }),
        ("linked objects", |stage| {
            std::fs::remove_dir_all(stage.git_dir().join("objects")).unwrap();
            link(stage.fixture.work.join(".git/objects").to_str().unwrap(), &stage.git_dir().join("objects"));
        }),
        ("FIFO as HEAD", |stage| {
            std::fs::remove_file(stage.git_dir().join("HEAD")).unwrap();
            fifo(&stage.git_dir().join("HEAD"));
        }),
        ("FIFO as reference", |stage| fifo(&stage.git_dir().join("refs/heads/pipe"))),
        ("garbage as HEAD", |stage| put(&stage.git_dir().join("HEAD"), b"\xff\xfe")),
        ("redirected", |stage| put(&stage.git_dir().join("commondir"), b"/etc\n")),
        ("many files", |stage| {
            let dir = stage.git_dir().join("many");
            std::fs::create_dir(&dir).unwrap();
            for n in 0..20_001 {
                std::fs::File::create(dir.join(n.to_string())).unwrap();
            }
        }),
        ("deep", |stage| {
            let mut dir = stage.git_dir();
            for _ in 0..300 {
                dir.push("d");
            }
            std::fs::create_dir_all(dir).unwrap();
        }),
        ("a giant index", |stage| {
            std::fs::File::create(stage.git_dir().join("index")).unwrap().set_len(4 << 30).unwrap();
        }),
        ("a giant file", |stage| {
            std::fs::File::create(stage.git_dir().join("giant")).unwrap().set_len(20 << 30).unwrap();
        }),
    ];
    for (what, deed) in deeds {
        let mut stage = Stage::new();
        drop(stage.make());
        stage.work("x", "x\n");
        let objects = stage.fixture.work.join(".git/objects/info/alternates");
        deed(&stage);
        let (why, _) = stage.failed();
        assert!(!why.is_empty(), "{what}");
        assert!(!objects.exists() && stage.fixture.work.join(".git/config").exists(), "{what}");
        assert_eq!(stage.fixture.git(&["log", "--format=%s"]), "second\nfirst\n");
        drop(stage.make());
        assert_eq!(stage.run(&["log", "--format=%s"]), "second\nfirst\n", "{what}");
        stage.work("y", "y\n");
        drop(stage.accepted());
    }
}

#[test]
fn what_git_alone_uses_may_be_anything() {
    let mut stage = Stage::new();
    drop(stage.make());
    let tip = stage.work("x", "x\n");
    fifo(&stage.git_dir().join("fsmonitor--daemon.ipc"));
    put(&stage.git_dir().join("hooks/x"), b"");
    link("/etc", &stage.git_dir().join("hooks/y"));
    put(&stage.git_dir().join("index"), b"DIRC\0\0\0\x02\xff\xff\xff\xff");
    put(&stage.git_dir().join("index.lock"), b"");
    put(&stage.git_dir().join("HEAD.lock"), b"");
    assert_eq!(stage.accepted().tip, tip);
}

#[test]
fn objects_that_are_damaged_fail_the_turn() {
    let mut stage = Stage::new();
    drop(stage.make());
    let tip = stage.work("x", "x\n");
    let (dir, rest) = tip.as_str().split_at(2);
    let file = stage.git_dir().join("objects").join(dir).join(rest);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::write(&file, b"garbage").unwrap();
    stage.failed();
    assert!(!stage.control.facts().has(&tip));
}

#[test]
fn the_newest_three_failed_ones_are_kept_within_bounds() {
    let mut stage = Stage::new();
    let mut kept = Vec::new();
    for n in 0..5 {
        drop(stage.make());
        stage.run(&["checkout", "-q", "-b", &format!("b{n}")]);
        kept.push(stage.failed().1.unwrap());
    }
    let there: Vec<bool> = kept.iter().map(|dir| dir.join(".git/HEAD").exists()).collect();
    assert_eq!(there, [false, false, true, true, true]);
    // More than all of them together may have.
    drop(stage.make());
    put(&stage.git_dir().join("ballast"), &vec![7; 2 << 20]);
    stage.run(&["checkout", "-q", "-b", "large"]);
    assert_eq!(stage.failed().1, None);
    assert!(kept.iter().all(|dir| !dir.exists()));
}

#[test]
fn a_crash_while_a_failed_one_is_set_aside_is_finished_later() {
    let mut stage = Stage::new();
    drop(stage.make());
    stage.run(&["checkout", "-q", "-b", "elsewhere"]);
    // Moved, and the record of it not yet gone.
    let aside = stage.fixture.path("scratch/turn-git-aside/000001-tick-1");
    std::fs::create_dir(aside.parent().unwrap()).unwrap();
    std::fs::rename(stage.fixture.path("scratch/turn-git"), &aside).unwrap();
    assert_eq!(stage.failed().1.unwrap(), aside);
    assert!(TurnGit::find(&stage.scratch).unwrap().is_none());
}

#[test]
fn odd_files_in_the_work_tree_cost_nothing_and_stop_nothing() {
    let mut stage = Stage::new();
    drop(stage.make());
    let tip = stage.work("x", "x\n");
    std::fs::create_dir(stage.fixture.work.join("odd")).unwrap();
    fifo(&stage.fixture.work.join("odd/.gitignore"));
    std::fs::create_dir(stage.fixture.work.join("big")).unwrap();
    std::fs::File::create(stage.fixture.work.join("big/.gitignore")).unwrap().set_len(3 << 30).unwrap();
    put(&stage.fixture.work.join("closed"), b"x");
    std::fs::set_permissions(stage.fixture.work.join("closed"), std::fs::Permissions::from_mode(0o000))
        .unwrap();
    let accepted = stage.accepted();
    assert_eq!(accepted.tip, tip);
}
