//! Changes to the agents' repository.

use peers_model::CommitId;

use super::{Fixture, link, put, substrate};
use crate::{BusyState, GitError, MergeStyle, Merged, RepoError};

#[test]
fn a_revert_is_one_commit_with_the_old_tree_and_spares_other_edits() {
    let fixture = Fixture::new();
    fixture.write("b", "b\n");
    fixture.write("dir/c", "c\n");
    let before = fixture.commit("before");
    fixture.write("b", "cheat\n");
    fixture.remove("dir/c");
    fixture.write("new/deep/file", "x");
    fixture.commit("one");
    fixture.git(&["checkout", "-q", "-b", "side", before.as_str()]);
    fixture.write("side", "s");
    fixture.commit("side");
    fixture.git(&["checkout", "-q", "main"]);
    fixture.git(&["merge", "-q", "--no-ff", "-m", "merge", "side"]);
    let tip = fixture.head();
    let mut control = fixture.control();
    let repo = fixture.open();
    drop(control.import(&repo, Some(&before)).unwrap());
    fixture.write("a", "dirty, somewhere else\n");
    fixture.write("untracked", "u");
    let revert =
        control.revert_commit(&tip, &before, "Revert\n\nPeer: peers-substrate\n", &substrate()).unwrap();
    repo.publish(&control, &revert).unwrap();
    repo.move_head(&tip, &revert, &substrate(), "peers: revert").unwrap();
    let facts = control.facts();
    let report = repo
        .checkout_changed(&control, &facts.tree_of(&tip).unwrap(), &facts.tree_of(&before).unwrap())
        .unwrap();
    assert!(report.blocked.is_empty());
    assert_eq!(fixture.head(), revert);
    assert_eq!(
        fixture.git(&["rev-parse", "HEAD^{tree}"]),
        fixture.git(&["rev-parse", &format!("{before}^{{tree}}")])
    );
    assert_eq!(fixture.git(&["rev-parse", "HEAD^"]).trim(), tip.as_str());
    assert_eq!(fixture.read("b"), "b\n");
    assert_eq!(fixture.read("dir/c"), "c\n");
    assert!(!fixture.exists("new") && !fixture.exists("side"));
    assert_eq!(fixture.git(&["status", "--porcelain"]), " M a\n?? untracked\n");
    assert!(fixture.git(&["log", "-1", "--format=%an %cn"]).starts_with("peers-substrate peers-substrate"));
    assert!(fixture.git(&["reflog", "-1", "main"]).contains("peers: revert"));
    fixture.git(&["fsck", "--strict"]);
}

#[test]
fn a_branch_moves_only_from_where_it_was_expected() {
    let fixture = Fixture::new();
    let first = fixture.head();
    let second = fixture.commit("second");
    let repo = fixture.open();
    let moved = repo.update_branch("main", Some(&first), &first, &substrate(), "x");
    assert!(matches!(moved, Err(GitError::Moved { found: Some(found), .. }) if found == second));
    assert_eq!(fixture.head(), second);
    repo.update_branch("main", Some(&second), &first, &substrate(), "two\nlines\0").unwrap();
    assert_eq!(fixture.head(), first);
    assert!(matches!(
        repo.update_branch("gone", Some(&first), &second, &substrate(), "x"),
        Err(GitError::Moved { found: None, .. })
    ));
    repo.create_branch("new", &second, &substrate()).unwrap();
    assert!(matches!(repo.create_branch("new", &second, &substrate()), Err(GitError::Exists { .. })));
    for (name, why) in [
        ("new", "branch `new` exists already"),
        ("refs/heads/new", "branch `new` exists already"),
        ("new/er", "branch `new`, which blocks the name `new/er`, exists already"),
        ("a..b", "reference name"),
        ("-x", "reference name"),
        ("", "reference name"),
    ] {
        let error = repo.free_branch(name).unwrap_err().to_string();
        assert!(error.contains(why), "{name}: {error}");
    }
    repo.create_branch("deep/er", &second, &substrate()).unwrap();
    let error = repo.free_branch("deep").unwrap_err().to_string();
    assert!(error.contains("branch `deep/er`, which blocks"), "{error}");
    repo.free_branch("news").unwrap();
    assert_eq!(repo.facts().reference("refs/heads/news").unwrap(), None);
    assert_eq!(fixture.rev("new"), second);
}

#[test]
fn hostile_reference_names_are_refused() {
    let fixture = Fixture::new();
    let repo = fixture.open();
    for name in
        ["../../x", "a..b", "-x", "a/-b", "x.lock", "a\0b", "", "a b", "@{", ".git/x", "a/.GIT", "a\n"]
    {
        let result = repo.update_branch(name, None, &fixture.head(), &substrate(), "x");
        assert!(matches!(result, Err(GitError::InvalidName { .. })), "{name:?}");
    }
}

#[test]
fn a_switched_or_detached_head_is_set_back() {
    let fixture = Fixture::new();
    fixture.git(&["checkout", "-q", "-b", "other"]);
    let repo = fixture.open();
    repo.set_head_branch("refs/heads/main", &substrate()).unwrap();
    assert_eq!(repo.facts().head().unwrap().branch.as_deref(), Some("refs/heads/main"));
    fixture.git(&["checkout", "-q", "--detach"]);
    // An agent holding the branch in another worktree does not stop us.
    fixture.git(&["worktree", "add", "-q", fixture.path("other").to_str().unwrap(), "main"]);
    repo.set_head_branch("main", &substrate()).unwrap();
    assert_eq!(fixture.git(&["symbolic-ref", "HEAD"]).trim(), "refs/heads/main");
    assert!(matches!(repo.set_head_branch("nowhere", &substrate()), Err(GitError::NotFound { .. })));
}

#[test]
fn a_reset_brings_branch_index_and_work_tree_back() {
    let fixture = Fixture::new();
    fixture.write("lost", "precious\n");
    let before = fixture.commit("before");
    let mut control = fixture.imported();
    fixture.git(&["reset", "-q", "--hard", "HEAD~1"]);
    fixture.write("junk", "j");
    let tip = fixture.commit("junk");
    let repo = fixture.open();
    drop(control.import(&repo, None).unwrap());
    drop(repo.reset_to(&control, Some("main"), &tip, &before, &substrate()).unwrap());
    assert_eq!(fixture.head(), before);
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
    assert_eq!(fixture.read("lost"), "precious\n");
    fixture.git(&["checkout", "-q", "--detach", tip.as_str()]);
    drop(repo.reset_to(&control, None, &tip, &before, &substrate()).unwrap());
    assert_eq!(fixture.head(), before);
}

#[test]
fn objects_that_a_peer_pruned_are_published_again() {
    let fixture = Fixture::new();
    fixture.write("lost", "precious\n");
    let before = fixture.commit("before");
    let mut control = fixture.imported();
    fixture.git(&["reset", "-q", "--hard", "HEAD~1"]);
    fixture.git(&["reflog", "expire", "--expire=now", "--all"]);
    fixture.git(&["gc", "-q", "--prune=now"]);
    assert!(!fixture.open().facts().has(&before));
    drop(control.import(&fixture.open(), None).unwrap());
    let tip = fixture.head();
    drop(fixture.open().reset_to(&control, Some("main"), &tip, &before, &substrate()).unwrap());
    fixture.git(&["fsck", "--strict"]);
    assert_eq!(fixture.read("lost"), "precious\n");
}

#[test]
fn a_checkout_follows_no_symlink_and_leaves_our_directory_alone() {
    let fixture = Fixture::new();
    fixture.write("dir/file", "1\n");
    fixture.write(".peers/state", "committed by mistake\n");
    let one = fixture.commit("one");
    fixture.write("dir/file", "2\n");
    fixture.write(".peers/state", "changed\n");
    let two = fixture.commit("two");
    let control = fixture.imported();
    std::fs::remove_dir_all(fixture.work.join("dir")).unwrap();
    put(&fixture.path("outside/file"), b"precious");
    link(fixture.path("outside").to_str().unwrap(), &fixture.work.join("dir"));
    let facts = control.facts();
    drop(
        fixture
            .open()
            .checkout_changed(&control, &facts.tree_of(&two).unwrap(), &facts.tree_of(&one).unwrap())
            .unwrap(),
    );
    assert_eq!(std::fs::read(fixture.path("outside/file")).unwrap(), b"precious");
    assert_eq!(fixture.read("dir/file"), "1\n");
    assert_eq!(fixture.read(".peers/state"), "changed\n");
}

#[test]
fn a_tree_with_forbidden_names_changes_nothing() {
    let fixture = Fixture::new();
    let control = fixture.imported();
    // Past the import, as if our own store had been reached.
    let odb = control.repo.odb().unwrap();
    let blob = odb.write(git2::ObjectType::Blob, b"[core]\n").unwrap();
    let mut inner = vec![crate::objects::Entry { mode: 0o100_644, name: b"config".to_vec(), id: blob }];
    let inner = odb.write(git2::ObjectType::Tree, &crate::objects::tree_bytes(&mut inner)).unwrap();
    for name in [&b".git"[..], b".GIT", b".."] {
        let mut top = vec![crate::objects::Entry { mode: 0o040_000, name: name.to_vec(), id: inner }];
        let top = odb.write(git2::ObjectType::Tree, &crate::objects::tree_bytes(&mut top)).unwrap();
        let before = fixture.read(".git/config");
        let from = control.facts().tree_of(&fixture.head()).unwrap();
        let result = fixture.open().checkout_changed(&control, &from, &crate::ids::tree_id(top));
        assert!(matches!(result, Err(GitError::Unsafe { .. })));
        assert_eq!(fixture.read(".git/config"), before);
        assert!(fixture.exists("a"), "nothing was changed");
    }
}

#[test]
fn a_damaged_index_is_refused_and_a_locked_one_is_busy() {
    let fixture = Fixture::new();
    let one = fixture.head();
    fixture.write("a", "two\n");
    let two = fixture.commit("two");
    let control = fixture.imported();
    let (from, to) = (control.facts().tree_of(&two).unwrap(), control.facts().tree_of(&one).unwrap());
    let index = std::fs::read(fixture.work.join(".git/index")).unwrap();
    fixture.write(".git/index", "junk");
    let result = fixture.open().checkout_changed(&control, &from, &to);
    assert!(matches!(result, Err(GitError::Repo(RepoError::Unsafe { .. }))));
    fixture.write(".git/index", index);
    fixture.write(".git/index.lock", "");
    let result = fixture.open().checkout_changed(&control, &from, &to);
    assert_eq!(fixture.read("a"), "two\n", "nothing was changed");
    assert!(matches!(result, Err(GitError::Repo(RepoError::Busy { state: BusyState::IndexLock, .. }))));
}

#[test]
fn committing_paths_leaves_staged_files_staged_and_out_of_the_commit() {
    let fixture = Fixture::new();
    fixture.write("staged", "s");
    fixture.git(&["add", "staged"]);
    fixture.write("a", "edited\n");
    fixture.write(".gitignore", ".peers/\n");
    fixture.write("dir/x", "x");
    let repo = fixture.open();
    let commit = repo.commit_paths(&[".gitignore", "dir/x"], "peers init: ignore\n", &substrate()).unwrap();
    assert_eq!(fixture.head(), commit);
    assert_eq!(fixture.git(&["show", "--name-only", "--format=", "HEAD"]), ".gitignore\ndir/x\n");
    assert_eq!(fixture.git(&["status", "--porcelain"]), " M a\nA  staged\n");
    fixture.remove("dir/x");
    drop(repo.commit_paths(&["dir/x"], "gone\n", &substrate()).unwrap());
    assert_eq!(fixture.git(&["ls-tree", "-r", "--name-only", "HEAD"]), ".gitignore\na\n");
}

#[test]
fn the_configuration_of_the_repository_does_not_count() {
    let fixture = Fixture::new();
    let first = fixture.head();
    let second = fixture.commit("second");
    fixture.git(&["config", "core.logAllRefUpdates", "false"]);
    fixture.git(&["config", "user.name", "Mallory"]);
    std::fs::remove_dir_all(fixture.work.join(".git/logs")).unwrap();
    fixture.open().update_branch("main", Some(&second), &first, &substrate(), "peers: back").unwrap();
    let log = fixture.read(".git/logs/refs/heads/main");
    assert!(log.contains("peers-substrate <peers-substrate@local>") && log.contains("peers: back"), "{log}");
}

#[test]
fn notes_are_written_and_replaced() {
    let fixture = Fixture::new();
    let (first, second) = (fixture.head(), fixture.commit("second"));
    let repo = fixture.open();
    let notes = "refs/notes/peers-attest";
    repo.write_notes(notes, &[(first.clone(), "x".into()), (second.clone(), "claude".into())], &substrate())
        .unwrap();
    repo.write_notes(notes, &[(first.clone(), "codex".into())], &substrate()).unwrap();
    let show = |commit: &CommitId| fixture.git(&["notes", "--ref=peers-attest", "show", commit.as_str()]);
    assert_eq!((show(&first).trim(), show(&second).trim()), ("codex", "claude"));
    assert!(repo.write_notes("refs/heads/main", &[], &substrate()).is_err());
}

#[test]
fn merges_are_made_in_the_control_directory() {
    let fixture = Fixture::new();
    let base = fixture.head();
    fixture.git(&["checkout", "-q", "-b", "work"]);
    fixture.write("b", "b\n");
    let work = fixture.commit("work");
    let control = fixture.imported();
    let merge = |into: &CommitId, from: &CommitId, style| {
        control.merge_trees(into, from, style, "land\n", &substrate()).unwrap()
    };
    assert_eq!(merge(&base, &work, MergeStyle::Merge), Merged::FastForward(work.clone()));
    assert_eq!(merge(&work, &base, MergeStyle::Merge), Merged::UpToDate);
    let Merged::Commit(squashed) = merge(&base, &work, MergeStyle::Squash) else { panic!() };
    assert_eq!(control.facts().commit(&squashed).unwrap().parents, std::slice::from_ref(&base));
    fixture.git(&["checkout", "-q", "main"]);
    fixture.write("c", "c\n");
    let main = fixture.commit("main");
    fixture.write("b", "conflict\n");
    let clash = fixture.commit("clash");
    let control = fixture.imported();
    let Merged::Commit(merged) =
        control.merge_trees(&main, &work, MergeStyle::Merge, "land\n", &substrate()).unwrap()
    else {
        panic!()
    };
    let paths: Vec<_> =
        control.facts().list_tree(&merged).unwrap().into_iter().map(|item| item.path).collect();
    assert_eq!(paths, ["a", "b", "c"]);
    let result = control.merge_trees(&clash, &work, MergeStyle::Merge, "land\n", &substrate()).unwrap();
    assert_eq!(result, Merged::Conflict(vec!["b".to_owned()]));
    assert!(!fixture.open().facts().has(&merged), "nothing leaves the control directory");
    fixture.open().publish(&control, &merged).unwrap();
    fixture.git(&["cat-file", "-e", merged.as_str()]);
}

#[test]
fn an_index_is_brought_to_a_tree_whatever_was_staged() {
    let fixture = Fixture::new();
    fixture.write("b", "b\n");
    fixture.commit("b");
    let control = fixture.imported();
    let tree = control.facts().tree_of(&fixture.head()).unwrap();
    let wanted = fixture.git(&["ls-files", "-s"]);
    fixture.write("staged", "s");
    fixture.git(&["add", "staged"]);
    fixture.remove("staged");
    fixture.git(&["rm", "-q", "--cached", "b"]);
    fixture.git(&["update-index", "--assume-unchanged", "a"]);
    fixture.open().reset_index(&control, &tree).unwrap();
    assert_eq!(fixture.git(&["ls-files", "-s"]), wanted);
    assert_eq!(fixture.git(&["ls-files", "-v", "a"]), "H a\n", "no mark hides a change");
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
    fixture.write(".git/index.lock", "");
    assert!(fixture.open().reset_index(&control, &tree).is_err());
}
