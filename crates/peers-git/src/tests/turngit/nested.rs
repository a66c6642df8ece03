//! Git directories that a turn makes deeper in the work tree.

use super::Stage;
use crate::NestedGit;
use crate::tests::{git_in, put};

fn harvested(stage: &mut Stage) -> Vec<NestedGit> {
    let harvest = stage.harvest();
    harvest.outcome.unwrap().git.discard().unwrap();
    harvest.nested
}

#[test]
fn one_that_a_turn_made_is_moved_aside_and_its_files_stay() {
    let mut stage = Stage::new();
    let home = stage.fixture.path("");
    let before = stage.fixture.work.join("before");
    std::fs::create_dir(&before).unwrap();
    git_in(&before, &home, &["init", "-q"]);
    drop(stage.make());
    let inner = stage.fixture.work.join("deep/inner");
    std::fs::create_dir_all(&inner).unwrap();
    git_in(&inner, &home, &["init", "-q"]);
    let canary = stage.fixture.path("canary");
    git_in(&inner, &home, &["config", "filter.x.clean", &format!("touch {}; cat", canary.display())]);
    put(&inner.join(".gitattributes"), b"* filter=x\n");
    put(&inner.join("f"), b"f\n");
    stage.fixture.write("odd/.git", "gitdir: ../plain\n");
    put(&stage.fixture.work.join("kept.log/.git/HEAD"), b"ref: refs/heads/x\n");
    let moved = harvested(&mut stage);
    let paths: Vec<_> = moved.iter().map(|nested| nested.path.as_str()).collect();
    assert_eq!(paths.len(), 2, "{paths:?}");
    assert!(paths.contains(&"deep/inner/.git") && paths.contains(&"odd/.git"));
    for nested in &moved {
        let place = stage.fixture.work.join(".git").join(&nested.aside);
        assert!(place.exists());
        let note = std::fs::read_to_string(format!("{}.path", place.display())).unwrap();
        assert_eq!(note.trim(), nested.path);
    }
    assert!(!inner.join(".git").exists() && inner.join("f").exists());
    assert!(before.join(".git/HEAD").exists(), "that was there before");
    assert!(stage.fixture.exists("kept.log/.git/HEAD"), "git does not look into what is ignored");
    drop(stage.make());
    stage.run(&["status", "--porcelain"]);
    stage.run(&["add", "-A", "deep"]);
    assert!(!canary.exists());
}

#[test]
fn a_worktree_of_the_turn_in_the_work_tree_does_not_outlive_it() {
    let mut stage = Stage::new();
    drop(stage.make());
    stage.run(&["worktree", "add", "-q", "copy", "HEAD"]);
    let moved = harvested(&mut stage);
    assert_eq!(moved.len(), 1);
    assert!(stage.fixture.exists("copy/a") && !stage.fixture.exists("copy/.git"));
}

#[test]
fn a_file_that_names_a_git_directory_is_as_it_was() {
    let mut stage = Stage::new();
    stage.fixture.write("sub/.git", "gitdir: ../elsewhere\n");
    drop(stage.make());
    stage.fixture.write("sub/.git", "gitdir: /tmp/evil\n");
    let moved = harvested(&mut stage);
    assert!(matches!(moved.as_slice(), [NestedGit { restored: true, .. }]));
    assert_eq!(stage.fixture.read("sub/.git"), "gitdir: ../elsewhere\n");
    drop(stage.make());
    assert!(harvested(&mut stage).is_empty());
}
