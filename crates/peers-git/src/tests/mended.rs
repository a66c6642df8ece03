//! Branches, references, operations that were begun, and what only pseudo-references name.

use std::os::unix::fs::PermissionsExt as _;

use super::fixture::{Fixture, substrate};
use crate::{BranchState, RefValue};

fn dangling(fixture: &Fixture, message: &str) -> peers_model::CommitId {
    let id = fixture.git(&["commit-tree", "-p", "HEAD", "-m", message, "HEAD^{tree}"]);
    peers_model::CommitId::new(id.trim()).unwrap()
}

#[test]
fn a_branch_is_told_for_what_it_is() {
    let fixture = Fixture::new();
    let file = fixture.work.join(".git/refs/heads/main");
    let state = || fixture.open().branch_state("refs/heads/main").unwrap();
    assert_eq!(state(), BranchState::Commit(fixture.head()));
    let missing = "1234567890123456789012345678901234567890";
    for (text, expected) in [
        ("ref: refs/heads/none\n", BranchState::Symbolic("refs/heads/none".into(), None)),
        ("ref: refs/heads/main\n", BranchState::Symbolic("refs/heads/main".into(), None)),
        (missing, BranchState::Dangling(missing.into())),
        ("garbage\n", BranchState::Unreadable),
    ] {
        std::fs::write(&file, text).unwrap();
        assert_eq!(state(), expected, "{text}");
    }
    std::fs::remove_file(&file).unwrap();
    assert_eq!(state(), BranchState::Absent);
}

#[test]
fn a_branch_that_is_another_name_forbids_a_start() {
    let fixture = Fixture::new();
    fixture.git(&["branch", "other"]);
    assert!(fixture.open().preflight().is_empty());
    fixture.git(&["symbolic-ref", "refs/heads/main", "refs/heads/other"]);
    assert!(fixture.open().preflight()[0].to_string().contains("refs/heads/other"));
}

#[test]
fn references_are_listed_as_they_stand_and_peeled() {
    let fixture = Fixture::new();
    fixture.git(&["tag", "-a", "-m", "two", "v2"]);
    fixture.git(&["symbolic-ref", "refs/remotes/o/HEAD", "refs/heads/main"]);
    let (peer, head) = (fixture.open(), fixture.head());
    let refs = peer.list_refs("refs/", 3).unwrap().unwrap();
    assert_eq!(refs["refs/heads/main"], RefValue::Direct(head.to_string()));
    assert_eq!(refs["refs/remotes/o/HEAD"], RefValue::Symbolic("refs/heads/main".into()));
    let RefValue::Direct(tag) = &refs["refs/tags/v2"] else { unreachable!() };
    assert_eq!(peer.peel(tag), Some(head));
    assert_eq!(peer.list_refs("refs/", 2).unwrap(), None, "too many");
}

#[test]
fn commits_that_only_files_name_are_found_adopted_and_known() {
    let fixture = Fixture::new();
    let mut control = fixture.imported();
    let (one, two) = (dangling(&fixture, "one"), dangling(&fixture, "two"));
    fixture.write(".git/FETCH_HEAD", format!("{one}\tnot-for-merge\tbranch 'x' of y\n"));
    fixture.write(".git/ORIG_HEAD", format!("{two}\n"));
    fixture.write("a", "stashed\n");
    fixture.git(&["stash", "-q"]);
    fixture.write("a", "stashed again\n");
    fixture.git(&["stash", "-q"]);
    let peer = fixture.open();
    let mut named = peer.pseudo_commits(10);
    named.sort();
    let mut expected = vec![one.clone(), two.clone(), fixture.head()];
    expected.retain(|c| named.contains(c));
    assert!(named.contains(&one));
    let stash = peer.stash(10);
    assert_eq!(stash, [fixture.rev("stash@{0}"), fixture.rev("stash@{1}")]);
    let before = control.generation();
    let all: Vec<_> = named.into_iter().chain(stash.clone()).chain([two.clone()]).collect();
    assert_eq!(control.adopt(&peer, &all).unwrap(), all);
    assert!(control.generation() > before);
    assert_eq!(control.facts().commit(&stash[1]).unwrap().parents.len(), 2);
    let merge = control.new_commits(Some(&fixture.head()), &two, control.generation()).unwrap();
    assert!(merge.iter().all(|c| c.known));
    let kept = control.keep("tick-1/x", &stash[1], &substrate()).unwrap();
    assert_eq!(control.keep("tick-1/x", &stash[1], &substrate()).unwrap(), kept, "twice is once");
    assert_eq!(control.keep("tick-1/x", &one, &substrate()).unwrap(), "tick-1/x.2");
}

#[test]
fn what_was_begun_in_a_turn_is_taken_away_and_what_was_there_stays() {
    let fixture = Fixture::new();
    let planted = dangling(&fixture, "planted");
    fixture.write(".git/MERGE_MSG", "the operator's\n");
    let peer = fixture.open();
    let before = peer.unfinished();
    fixture.write(".git/MERGE_HEAD", format!("{planted}\n"));
    fixture.write(".git/rebase-merge/orig-head", format!("{planted}\n"));
    fixture.write(".git/sequencer/todo", "pick x\n");
    let (taken, left) = peer.begun_since(&before);
    assert_eq!(taken[1].files, Some(vec![("rebase-merge_orig-head".into(), format!("{planted}\n").into())]));
    assert!(fixture.exists(".git/MERGE_HEAD"), "it is found, not taken");
    for begun in &taken {
        assert!(peer.remove_begun(begun).unwrap());
    }
    let names: Vec<&str> = taken.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["MERGE_HEAD", "rebase-merge", "sequencer"]);
    assert_eq!((taken[0].commits.clone(), taken[1].commits.clone()), (vec![planted.clone()], vec![planted]));
    assert!(left.is_empty() && fixture.exists(".git/MERGE_MSG"));
    assert_eq!(peer.unfinished(), before);
}

#[test]
fn hooks_in_our_own_directory_do_not_run() {
    let fixture = Fixture::new();
    let mut control = fixture.imported();
    let ran = fixture.path("ran");
    let hook = control.path().join("hooks/reference-transaction");
    super::fixture::put(&hook, format!("#!/bin/sh\ntouch {}\n", ran.display()).as_bytes());
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    let setting = format!("[core]\n\thooksPath = {}\n", hook.parent().unwrap().display());
    let config = control.path().join("config");
    std::fs::write(&config, [std::fs::read(&config).unwrap(), setting.into_bytes()].concat()).unwrap();
    for n in 0..400 {
        fixture.write(&format!("f{n}"), format!("{n}"));
    }
    fixture.commit("many");
    let imported = control.import(&fixture.open(), None).unwrap();
    assert_eq!(imported.route, crate::Route::Fetched);
    assert!(!ran.exists(), "it ran");
    assert!(!hook.exists(), "it is gone");
}
