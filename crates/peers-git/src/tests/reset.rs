//! Moving a branch together with its work tree.

use super::fixture::{Fixture, substrate};
use crate::{BusyState, ControlDir, GitError, RepoError};
use peers_model::CommitId;

/// Two commits that differ in the files `a` and `z`, both imported; the first one is checked out.
fn two() -> (Fixture, ControlDir, CommitId, CommitId) {
    let fixture = Fixture::new();
    let first = fixture.head();
    fixture.write("a", "two\n");
    fixture.write("z", "last\n");
    let second = fixture.commit("second");
    let control = fixture.imported();
    fixture.git(&["reset", "-q", "--hard", first.as_str()]);
    (fixture, control, first, second)
}

#[test]
fn nothing_moves_before_it_is_applied_and_the_index_is_locked_meanwhile() {
    let (fixture, control, first, second) = two();
    let peer = fixture.open();
    let reset = peer.prepare_reset(&control, Some("main"), &first, &second).unwrap();
    assert_eq!(fixture.head(), first);
    assert!(fixture.exists(".git/index.lock"));
    drop(reset.apply(&substrate()).unwrap());
    assert_eq!((fixture.head(), fixture.read("z")), (second, "last\n".to_owned()));
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
    assert!(!fixture.exists(".git/index.lock"));
}

#[test]
fn a_lock_of_git_refuses_it_and_stays() {
    let (fixture, control, first, second) = two();
    fixture.write(".git/index.lock", "");
    let peer = fixture.open();
    let result = peer.prepare_reset(&control, Some("main"), &first, &second).map(drop);
    assert!(matches!(result, Err(GitError::Repo(RepoError::Busy { state: BusyState::IndexLock, .. }))));
    assert!(!peer.remove_own_index_lock().unwrap() && fixture.exists(".git/index.lock"));
    fixture.write(".git/index.lock", "peers\n");
    assert!(peer.remove_own_index_lock().unwrap() && !fixture.exists(".git/index.lock"));
}

#[test]
fn a_branch_that_is_somewhere_else_refuses_it_before_anything_is_locked() {
    let (fixture, control, first, second) = two();
    fixture.write("b", "x\n");
    fixture.commit("third");
    let peer = fixture.open();
    let result = peer.prepare_reset(&control, Some("main"), &first, &second).map(drop);
    assert!(matches!(result, Err(GitError::Moved { .. })));
    assert!(!fixture.exists(".git/index.lock"));
}

#[test]
fn files_that_cannot_be_written_bring_the_branch_back() {
    let (fixture, control, first, second) = two();
    let peer = fixture.open();
    let reset = peer.prepare_reset(&control, Some("main"), &first, &second).unwrap();
    // The second file is gone from our store by the time it is to be written.
    let blob = fixture.git(&["rev-parse", &format!("{second}:z")]);
    let (dir, name) = blob.trim().split_at(2);
    std::fs::remove_file(control.objects_dir().join(dir).join(name)).unwrap();
    assert!(reset.apply(&substrate()).is_err());
    assert_eq!(fixture.head(), first);
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
    assert_eq!((fixture.read("a"), fixture.exists("z")), ("one\n".to_owned(), false));
    assert!(!fixture.exists(".git/index.lock"));
}
