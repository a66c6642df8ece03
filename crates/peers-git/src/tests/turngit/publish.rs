//! Publishing the work of a turn.

use std::path::Path;

use peers_model::CommitId;
use sha2::{Digest as _, Sha256};

use super::Stage;
use crate::tests::{Fixture, put};
use crate::turngit::STEPS;
use crate::{GitError, HarvestSpec, RepoError, TurnGit};

/// Something of everything: changed, new, gone, made executable; and left uncommitted.
fn do_work(fixture: &Fixture, git: impl Fn(&[&str])) {
    fixture.write("a", "changed\n");
    fixture.write("new/file", "new\n");
    fixture.remove("gone");
    fixture.git(&["--version"]);
    std::os::unix::fs::symlink("a", fixture.work.join("link")).unwrap();
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "work"]);
    fixture.write("new/file", "later\n");
    fixture.write("left", "left\n");
    fixture.remove("dir/b");
}

fn stage() -> Stage {
    let fixture = Fixture::new();
    fixture.write("dir/b", "two\n");
    fixture.write("gone", "g\n");
    fixture.write("same", "s\n");
    fixture.commit("second");
    Stage::over(fixture)
}

#[test]
fn the_checkout_is_as_after_a_commit_there() {
    let mut stage = stage();
    let twin = stage_twin();
    do_work(&twin, |args| drop(twin.git(args)));
    drop(stage.make());
    do_work(&stage.fixture, |args| drop(stage.run(args)));
    stage.age();
    assert_eq!(stage.publish(), crate::Published::default());
    for args in [&["status", "--porcelain"][..], &["ls-files", "--stage"], &["log", "-1", "--format=%T"]] {
        assert_eq!(stage.fixture.git(args), twin.git(args));
    }
    // Without a look at the content: those with another stamp than in the index.
    assert_eq!(stage.fixture.git(&["diff-files", "--name-only"]), "dir/b\nnew/file\n");
    assert_eq!(stage.fixture.git(&["fsck", "--strict"]), "");
    assert!(TurnGit::find(&stage.scratch).unwrap().is_none() && !stage.git_dir().exists());
    assert!(stage.fixture.git(&["reflog", "-1"]).contains("commit: work"));
}

fn stage_twin() -> Fixture {
    stage().fixture
}

#[test]
fn interrupted_after_each_step_it_is_done_again_to_the_same_end() {
    let mut ends = Vec::new();
    for steps in 0..=STEPS {
        let mut stage = stage();
        drop(stage.make());
        do_work(&stage.fixture, |args| drop(stage.run(args)));
        let oid = lfs_object(&stage.git_dir(), b"large");
        let accepted = stage.accepted();
        let spec = HarvestSpec { base: None, label: "tick-1", author: &stage.by };
        drop(accepted.steps(&stage.control, &stage.peer(), &spec, steps).unwrap());
        drop(accepted);
        if steps == STEPS - 1 {
            // What a kill between the last two leaves.
            put(&stage.fixture.work.join(".git/index.lock"), b"peers\n");
        }
        stage.control = stage.fixture.control();
        let published = stage.publish();
        assert_eq!((published.moved, published.lfs_refused), (None, Vec::new()));
        let lfs = stage.fixture.work.join(".git/lfs/objects").join(&oid[..2]).join(&oid[2..4]).join(&oid);
        assert_eq!(std::fs::read(lfs).unwrap(), b"large");
        let fixture = &stage.fixture;
        assert!(!fixture.exists(".git/index.lock"));
        ends.push((
            fixture.git(&["log", "--format=%s %T"]),
            stage.status(),
            fixture.git(&["ls-files", "--stage"]),
            fixture.git(&["fsck"]),
            TurnGit::find(&stage.scratch).unwrap().is_none(),
        ));
    }
    ends.dedup();
    assert_eq!(ends.len(), 1);
    assert!(ends[0].4);
}

/// Stores something in a git directory as git-lfs does.
fn lfs_object(git_dir: &Path, content: &[u8]) -> String {
    let oid = crate::ids::hex(&Sha256::digest(content));
    put(&git_dir.join("lfs/objects").join(&oid[..2]).join(&oid[2..4]).join(&oid), content);
    oid
}

#[test]
fn lfs_files_are_copied_when_they_are_what_their_name_says() {
    let mut stage = stage();
    drop(stage.make());
    stage.work("x", "pointer\n");
    let good = lfs_object(&stage.git_dir(), b"good");
    let bad = lfs_object(&stage.git_dir(), b"bad");
    let place = |git: &Path, oid: &str| git.join("lfs/objects").join(&oid[..2]).join(&oid[2..4]).join(oid);
    put(&place(&stage.git_dir(), &bad), b"forged");
    assert_eq!(stage.publish().lfs_refused, std::slice::from_ref(&bad));
    let git = stage.fixture.work.join(".git");
    assert_eq!(std::fs::read(place(&git, &good)).unwrap(), b"good");
    assert!(!place(&git, &bad).exists());
    assert_eq!(std::fs::read_dir(place(&git, &bad).parent().unwrap()).unwrap().count(), 0);
}

#[test]
fn a_branch_that_the_operator_moved_stays_and_the_work_is_kept() {
    for args in
        [&["commit", "-q", "--allow-empty", "-m", "theirs"][..], &["commit", "-q", "--amend", "-m", "z"]]
    {
        let mut stage = stage();
        drop(stage.make());
        let work = stage.work("x", "x\n");
        stage.fixture.git(args);
        let theirs = stage.fixture.head();
        let moved = stage.publish().moved.unwrap();
        assert_eq!((moved.found, stage.fixture.head()), (Some(theirs.clone()), theirs));
        let kept = stage.control.list_salvage().unwrap();
        assert!(kept.iter().any(|kept| kept.name == moved.kept && kept.commit == work));
        assert!(TurnGit::find(&stage.scratch).unwrap().is_none());
    }
}

#[test]
fn a_checkout_that_is_on_another_branch_keeps_its_index() {
    let mut stage = stage();
    drop(stage.make());
    let work = stage.work("x", "x\n");
    stage.fixture.git(&["checkout", "-q", "-b", "theirs"]);
    assert_eq!(stage.publish().moved, None);
    assert_eq!(stage.fixture.rev("main"), work);
    assert_eq!(stage.fixture.git(&["diff", "--cached"]), "");
}

#[test]
fn what_the_operator_staged_at_the_same_path_stays_staged() {
    let mut stage = stage();
    drop(stage.make());
    stage.work("a", "by the turn\n");
    stage.fixture.write("a", "by the operator\n");
    stage.fixture.write("same", "staged too\n");
    stage.fixture.git(&["add", "a", "same"]);
    assert_eq!(stage.publish().staged, ["a"]);
    assert_eq!(stage.status(), "M  a\nM  same\n");
    assert_eq!(stage.fixture.git(&["show", ":a", "HEAD:a"]), "by the operator\nby the turn\n");
}

#[test]
fn a_locked_index_is_an_error_and_nothing_is_lost() {
    let mut stage = stage();
    drop(stage.make());
    let work = stage.work("x", "x\n");
    let lock = stage.fixture.work.join(".git/index.lock");
    put(&lock, b"");
    let accepted = stage.accepted();
    let spec = HarvestSpec { base: None, label: "tick-1", author: &stage.by };
    let error = accepted.publish(&stage.control, &stage.peer(), &spec).unwrap_err();
    assert!(matches!(error, GitError::Repo(RepoError::Busy { .. })), "{error}");
    std::fs::remove_file(lock).unwrap();
    assert_eq!(stage.publish().moved, None);
    assert_eq!((stage.fixture.head(), stage.status()), (work, String::new()));
}

#[test]
fn a_detached_head_moves_with_the_work() {
    let mut stage = stage();
    stage.fixture.git(&["checkout", "-q", "--detach"]);
    stage.branch = None;
    drop(stage.make());
    let work = stage.work("x", "x\n");
    assert_eq!(stage.publish().moved, None);
    assert_eq!((stage.fixture.head(), stage.status()), (work, String::new()));
    // The operator goes back to a branch meanwhile: that is not moved.
    drop(stage.make());
    stage.work("y", "y\n");
    stage.fixture.git(&["checkout", "-q", "-b", "theirs"]);
    let at = stage.fixture.head();
    assert!(stage.publish().moved.is_some());
    assert_eq!(stage.fixture.head(), at);
}

#[test]
fn a_turn_without_a_commit_changes_nothing() {
    let mut stage = stage();
    drop(stage.make());
    stage.fixture.write("a", "edited\n");
    stage.run(&["add", "-A"]);
    let before: CommitId = stage.fixture.head();
    assert_eq!(stage.publish(), crate::Published::default());
    assert_eq!((stage.fixture.head(), stage.status()), (before, " M a\n".to_owned()));
}
