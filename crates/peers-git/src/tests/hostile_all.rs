//! The rest of what this crate can do, done to the repository full of traps, and a look whether that is everything.

use std::collections::BTreeSet;
use std::path::Path;

use git2::{Index, Oid};
use peers_model::CommitId;
use peers_sys::dir::SafeDir;

use super::hostile::Hostile;
use super::turngit::Stage;
use super::{link, program, put, substrate};
use crate::checkout::index_entry;
use crate::objects::MODE_FILE;
use crate::{
    BranchState, BusyState, ControlDir, DirtyFile, DirtyStatus, Facts, Git, GitError, GuardSnapshot,
    HarvestSpec, NestedSeen, PeerRepo, PlainHead, TurnGit, Unfollowed, index_entries, operator_config_files,
    operator_identity, readable_config,
};

/// Public functions that give what they were made with.
const GETTERS: [&str; 6] = ["common_dir", "git_dir", "objects_dir", "path", "program", "work_dir"];

/// Everything that reads commits, trees and files.
fn read_all(facts: &Facts<'_>, first: &CommitId, head: &CommitId) {
    let (old, new) = (facts.tree_of(first).unwrap(), facts.tree_of(head).unwrap());
    assert!(facts.has(head) && facts.is_ancestor(first, head).unwrap());
    assert_eq!(facts.merge_base(first, head).unwrap().as_ref(), Some(first));
    assert_eq!(facts.named(head.as_str()).unwrap().as_ref(), Some(head));
    drop((facts.head(), facts.reference("refs/heads/main").unwrap()));
    assert_eq!(facts.walk_where(None, head, 10, |_| true).unwrap().0, 2);
    assert_eq!(facts.walk_ids(Some(first), head, 10).unwrap(), std::slice::from_ref(head));
    assert_eq!(facts.blame(head, "b", Some(first)).unwrap().len(), 1);

    assert!(facts.changed_paths(&old, &new).unwrap().contains(&"b".to_owned()));
    assert!(!facts.new_files(Some(&old), &new).unwrap().is_empty());
    assert!(!facts.new_lines(Some(&old), &new, |_| true).unwrap().is_empty());
    assert_eq!(facts.list_below(head, "sub").unwrap().len(), 1);
    assert!(facts.paths_of_files(head).unwrap().contains(&b"b".to_vec()));
    assert!(facts.has_file(&new, b"sub/c").unwrap() && facts.scope(head, |_| true).unwrap().closed);
    facts.each_path(&new, |path| assert!(!path.is_empty())).unwrap();
    assert!(facts.read_blob_of(&new, "b", 100).unwrap().is_some());
    let id = facts.file_id(head, "b").unwrap().unwrap();
    assert_eq!((facts.read_object(&id, 100).unwrap(), facts.object_size(&id).unwrap()), (b"b\n".to_vec(), 2));
}

#[test]
fn whoever_reads_its_history_runs_nothing() {
    let hostile = Hostile::new();
    let fixture = &hostile.fixture;
    let (first, head) = (fixture.rev("HEAD~1"), fixture.head());
    let (repo, control) = (fixture.open(), fixture.imported());
    read_all(&repo.facts(), &first, &head);
    read_all(&control.facts(), &first, &head);
    drop((operator_identity(), operator_config_files()));
    Git::locate(&std::env::var_os("PATH").unwrap()).unwrap().version().unwrap();
    assert!(Git::at(program().program().to_owned()).version().is_ok());
    hostile.assert_quiet("reading");
}

#[test]
fn whoever_looks_at_what_is_going_on_in_it_runs_nothing() {
    let hostile = Hostile::new();
    let (fixture, by) = (&hostile.fixture, &substrate());
    let (work, head) = (&fixture.work, fixture.head());
    let control = fixture.imported().with_excludes(None);
    let repo = PeerRepo::open_known(work, &work.join(".git")).unwrap();
    assert_eq!(PeerRepo::find_top(&work.join("sub")).as_ref(), Some(work));
    repo.check_content().unwrap();
    let before = repo.unfinished();
    let mark = repo.index_mark(&control, &control.facts().tree_of(&head).unwrap()).unwrap();
    for name in ["MERGE_HEAD", "ORIG_HEAD", "refs/stash", "refs/heads/other"] {
        fixture.write(&format!(".git/{name}"), format!("{head}\n"));
    }
    fixture.write(".git/refs/heads/other.lock", "");

    assert_eq!(repo.list_refs("refs/heads/", 10).unwrap().unwrap().len(), 2);
    assert_eq!(repo.peel(head.as_str()).as_ref(), Some(&head));
    assert_eq!(repo.branch_state("main").unwrap(), BranchState::Commit(head.clone()));
    repo.name_commit("refs/peers/kept", &head, by).unwrap();
    let only = std::slice::from_ref(&head);
    assert_eq!((repo.pseudo_commits(9), repo.stash(9)), (only.to_vec(), only.to_vec()));
    assert_eq!(repo.reflog("refs/heads/main", 9).len(), 2);
    assert_eq!(PlainHead::of(work), PlainHead::within(&SafeDir::open_root(work.join(".git")).unwrap()));
    hostile.assert_quiet("looking at references");

    assert!(repo.busy().contains(&BusyState::Merge));
    assert!(repo.symbolic_branch("main").is_none() && repo.index_lock().is_none());
    assert!(repo.branch_lock("other").unwrap().is_some() && repo.ref_locks().len() == 1);
    assert_eq!(repo.remove_ref_locks(|_| true).removed, 1);
    let (begun, changed) = repo.begun_since(&before);
    assert!(begun.len() == 1 && changed.is_empty() && repo.remove_begun(&begun[0]).unwrap());
    hostile.assert_quiet("looking at what was begun");

    let state = control.tree_state(work, &head).unwrap();
    drop((state.key().unwrap(), state.content().unwrap()));
    fixture.write("untracked", "u\n");
    let stored = control.keep_work_tree(work, &head).unwrap();
    assert_eq!(control.store_work_tree(work, &head).unwrap(), stored.tree);
    let change = DirtyFile { status: DirtyStatus::Modified, path: "b".to_owned() };
    let found = repo.unfollowed(&head, &[change]);
    assert!(matches!(found, Some((Unfollowed::Attribute(text), _)) if text == "filter=evil"));
    assert_eq!(repo.ignored_dir("sub/c", None), None);
    hostile.assert_quiet("looking at the work tree");

    let place = work.join(".git/index");
    let id = Oid::from_str(&repo.facts().file_id(&head, "b").unwrap().unwrap()).unwrap();
    let planted = index_entry("planted", MODE_FILE, id, None);
    let entries = Index::open(&place).unwrap().iter().chain([planted]).collect();
    index_entries::write(&place, entries).unwrap();
    assert!(repo.index_readable() && repo.staged(None).unwrap().len() == 5);
    let settled = repo.settle_index(&control, &head, &mark, ("tick-1/index", by)).unwrap();
    assert_eq!(settled.reset, ["planted"]);
    hostile.assert_quiet("looking at the index");
}

#[test]
fn whoever_changes_it_runs_nothing() {
    let hostile = Hostile::new();
    let (fixture, by) = (&hostile.fixture, &substrate());
    let (repo, control) = (fixture.open(), fixture.imported());
    let (first, head) = (fixture.rev("HEAD~1"), fixture.head());
    let tree = |commit| control.facts().tree_of(commit).unwrap();
    let (old, new) = (tree(&first), tree(&head));

    repo.detach_head(&first, by).unwrap();
    repo.set_head_branch("main", by).unwrap();
    repo.free_branch("free").unwrap();
    assert_eq!(repo.in_the_way("refs/heads/main/x").unwrap().as_deref(), Some("refs/heads/main"));
    hostile.assert_quiet("moving HEAD");

    control.check_checkout(&old, &new).unwrap();
    let reset = repo.prepare_reset(&control, Some("main"), &head, &first).unwrap();
    let report = reset.apply(by).unwrap();
    assert!(report.removed > 0 && report.blocked_names().is_empty());
    drop(repo.reset_to(&control, Some("main"), &first, &head, by).unwrap());
    fixture.write(".git/index.lock", "peers\n");
    assert!(repo.remove_own_index_lock().unwrap());
    drop(repo.checkout_changed_but(&control, &new, &old, &|path| path == "b").unwrap());
    drop(repo.write_changed_but(&control, &old, &new, &|_| false).unwrap());
    repo.reset_index(&control, &new).unwrap();
    hostile.assert_quiet("moving the branch and its files");

    let mut guard = GuardSnapshot::take(&repo, &[]).unwrap();
    assert!(!guard.is_replaced());
    guard.adopt_places().unwrap();
    assert!(guard.current("config").is_some());
    fixture.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
    fixture.write(".git/hooks/new", "#!/bin/sh\nexit 1\n");
    assert!(guard.keep_aside("hooks/new", "tick-1").unwrap().is_some());
    let changes = guard.compare_files().unwrap();
    assert!(!changes.is_empty() && guard.restore_files(&changes).unwrap().is_empty());
    assert!(guard.can_be_opened());
    hostile.assert_quiet("putting files back");
}

#[test]
fn whoever_mends_our_copy_of_it_runs_nothing() {
    let hostile = Hostile::new();
    let (fixture, by) = (&hostile.fixture, &substrate());
    let mut control = fixture.imported();
    let first = fixture.rev("HEAD~1");
    link("../outside", &fixture.work.join("out"));
    hostile.commit("more", "more\n");
    let (repo, head) = (fixture.open(), fixture.head());

    assert_eq!(control.adopt(&repo, std::slice::from_ref(&head)).unwrap(), std::slice::from_ref(&head));
    drop(control.import(&repo, None).unwrap());
    assert_eq!(control.missing_object(&repo, &head).unwrap(), None);
    let links = control.outward_links(&head, &fixture.work, |_| false).unwrap();
    assert!(links.len() == 1 && control.has_link(&head, &links[0]).unwrap());
    let name = control.keep("run/1", &head, by).unwrap();
    drop(control.name_again(&[(name, head.clone()), ("run/2".to_owned(), head.clone())], by).unwrap());
    hostile.assert_quiet("keeping");

    let file = |id: &str| control.objects_dir().join(&id[..2]).join(&id[2..]);
    drop(std::fs::remove_file(file(&control.facts().file_id(&head, "more").unwrap().unwrap())));
    assert_eq!(control.complete(&repo, std::slice::from_ref(&head)).unwrap().lost, 0);
    assert!(control.works().unwrap() && control.holds_head().unwrap());
    assert_eq!(control.last_head().as_ref(), Some(&head));
    assert_eq!(ControlDir::head_since(control.path(), &first).as_ref(), Some(&head));
    assert!(!control.is_damaged_by(&GitError::InvalidName { what: "x", text: "x".to_owned() }));
    let generation = control.generation();
    assert!(!control.count_from(generation, &head).unwrap());
    drop(control.remake().unwrap());
    let path = control.path().to_owned();
    drop(control);
    let (control, remade) = ControlDir::open_or_remake(&path, program()).unwrap();
    assert!(remade.is_none() && control.facts().has(&head));
    std::fs::write(path.join("HEAD"), "garbage").unwrap();
    drop(control);
    let (mut control, _remade) = ControlDir::open_or_remake(&path, program()).unwrap();
    drop(control.import(&repo, None).unwrap());
    hostile.assert_quiet("mending");
}

#[test]
fn a_turn_in_it_runs_nothing_outside_of_the_turn() {
    let Hostile { fixture, canary } = Hostile::new();
    let control = fixture.imported();
    let mut stage = Stage::with(fixture, control);
    let work = stage.fixture.work.clone();
    let quiet = |what: &str| {
        let text = std::fs::read_to_string(&canary).unwrap_or_default();
        assert!(text.is_empty(), "{what} ran: {text}");
    };
    let (tip, files) = (stage.fixture.head(), [work.join(".git/config")]);
    assert!(readable_config(&files[0]).contains("evil"));
    let seen = NestedSeen::look(&stage.control, &stage.peer(), &tip).unwrap();
    stage.fixture.write("deep/.git/HEAD", "ref: refs/heads/main\n");
    assert_eq!(seen.settle(&stage.control, &stage.peer(), "tick-1").unwrap().len(), 1);
    quiet("looking for git directories deeper in the work tree");

    let mut spec = stage.spec(&tip);
    (spec.commit_hooks, spec.config_files) = (true, &files);
    let made = TurnGit::make(&stage.scratch, &stage.control, &stage.peer(), &spec).unwrap();
    quiet("making a turn");
    // A commit that takes the second one back, made without the filters and hooks that a turn may run.
    let tree = stage.run(&["rev-parse", "HEAD~1^{tree}"]);
    let commit = stage.run(&["commit-tree", "-m", "back", "-p", "HEAD", tree.trim()]);
    put(&made.git.git_dir().join("refs/heads/main"), commit.as_bytes());
    stage.fixture.write("deep/.git/HEAD", "ref: refs/heads/main\n");
    quiet("the agent");

    let spec = HarvestSpec { base: None, label: "tick-1", author: &stage.by };
    let (turn, peer) = (TurnGit::find(&stage.scratch).unwrap().unwrap(), stage.fixture.open());
    let harvest = turn.harvest(&mut stage.control, &peer, &spec).unwrap();
    assert_eq!(harvest.nested.len(), 1);
    let published = harvest.outcome.unwrap().publish(&stage.control, &peer, &spec).unwrap();
    assert_eq!(published.moved, None);
    assert_eq!(stage.fixture.head().as_str(), commit.trim());
    stage.make().git.discard().unwrap();
    quiet("taking in what a turn did");
}

#[test]
fn whoever_makes_a_repository_in_it_or_its_first_commit_runs_nothing() {
    let hostile = Hostile::new();
    let fixture = &hostile.fixture;
    drop(PeerRepo::create(&fixture.work.join("sub"), "main", None).unwrap());
    std::fs::remove_dir_all(fixture.work.join("sub/.git")).unwrap();
    fixture.remove(".git/refs/heads/main");
    let first = fixture.open().commit_first("first\n", &substrate(), None).unwrap();
    assert_eq!(first.commit, fixture.head());
    hostile.assert_quiet("making a first commit");
    let names = fixture.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
    assert_eq!(names, ".gitattributes\na\nb\nsub/c\n");
}

#[test]
fn every_public_function_is_shown_the_hostile_repository() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut public = BTreeSet::new();
    let mut todo = vec![src.clone()];
    while let Some(place) = todo.pop() {
        if place.is_dir() && place != src.join("tests") {
            todo.extend(std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path()));
        } else if place.is_file() {
            let text = std::fs::read_to_string(&place).unwrap();
            let starts = ["pub fn ", "pub const fn "];
            let rest = |line: &str| {
                starts.iter().find_map(|start| line.trim_start().strip_prefix(start).map(str::to_owned))
            };
            let end = |c: char| !c.is_alphanumeric() && c != '_';
            public
                .extend(text.lines().filter_map(rest).map(|rest| rest.split(end).next().unwrap().to_owned()));
        }
    }
    assert!(public.len() > 100, "{public:?}");
    for getter in GETTERS {
        assert!(public.remove(getter), "`{getter}` is no public function any more");
    }
    let shown = [include_str!("hostile.rs"), include_str!("hostile_all.rs")].concat();
    let is_called = |name: &str| {
        let call = format!("{name}(");
        shown.match_indices(&call).any(|(at, _)| {
            let before = shown[..at].chars().next_back();
            before.is_none_or(|c| !c.is_alphanumeric() && c != '_') && !shown[..at].ends_with("fn ")
        })
    };
    let missing: Vec<_> = public.iter().filter(|name| !is_called(name)).collect();
    assert!(missing.is_empty(), "call these in `hostile_all.rs` too: {missing:?}");
}
