//! A git directory that a turn left unfit to be opened, and what only pseudo-references name.

use std::os::unix::fs::PermissionsExt as _;

use super::fixture::{Fixture, command, fifo, substrate};
use crate::{BranchState, Cleared, GuardSnapshot, RefValue};

fn dangling(fixture: &Fixture, message: &str) -> peers_model::CommitId {
    let id = fixture.git(&["commit-tree", "-p", "HEAD", "-m", message, "HEAD^{tree}"]);
    peers_model::CommitId::new(id.trim()).unwrap()
}

#[test]
fn pipes_in_place_of_files_go_and_the_repository_opens_again() {
    let fixture = Fixture::new();
    let snapshot = GuardSnapshot::take(&fixture.open(), &[]).unwrap();
    let git = fixture.work.join(".git");
    for name in ["index", "logs/HEAD"] {
        std::fs::remove_file(git.join(name)).unwrap();
    }
    std::fs::create_dir_all(git.join("objects/pack")).unwrap();
    for name in ["index", "logs/HEAD", "packed-refs", "objects/pack/x.pack", "refs/heads/p", "refs/tags/q"] {
        fifo(&git.join(name));
    }
    let mut gone: Vec<String> =
        snapshot.clear_unsafe("tick-1").unwrap().into_iter().map(|gone| gone.name).collect();
    gone.sort();
    let expected =
        ["index", "logs/HEAD", "objects/pack/x.pack", "packed-refs", "refs/heads/p", "refs/tags/q"];
    assert_eq!(gone, expected);
    let _imported = fixture.control().import(&fixture.open(), None).unwrap();
}

#[test]
fn the_object_store_is_never_removed() {
    let fixture = Fixture::new();
    let snapshot = GuardSnapshot::take(&fixture.open(), &[]).unwrap();
    let objects = fixture.work.join(".git/objects");
    std::fs::rename(&objects, fixture.path("aside")).unwrap();
    super::fixture::link(fixture.path("aside").to_str().unwrap(), &objects);
    assert!(snapshot.clear_unsafe("tick-1").unwrap().is_empty());
    assert!(objects.is_symlink());
}

#[test]
fn a_broken_head_is_written_again_and_a_sound_one_left() {
    let fixture = Fixture::new();
    let snapshot = GuardSnapshot::take(&fixture.open(), &[]).unwrap();
    let (head, at) = (fixture.work.join(".git/HEAD"), fixture.head());
    assert!(!snapshot.mend_head_file(Some("refs/heads/main"), &at).unwrap());
    for text in ["", "junk\n", "ref: ../../x\n", "ref: refs/heads/..\n"] {
        std::fs::write(&head, text).unwrap();
        assert!(snapshot.mend_head_file(Some("refs/heads/main"), &at).unwrap(), "{text}");
        assert_eq!(std::fs::read_to_string(&head).unwrap(), "ref: refs/heads/main\n");
    }
    std::fs::remove_file(&head).unwrap();
    fifo(&head);
    assert!(snapshot.mend_head_file(None, &at).unwrap());
    assert_eq!(fixture.head(), at);
}

#[test]
fn packed_references_lose_only_the_lines_that_are_none() {
    let fixture = Fixture::new();
    fixture.git(&["tag", "v1"]);
    fixture.git(&["tag", "-a", "-m", "two", "v2"]);
    fixture.git(&["pack-refs", "--all"]);
    let snapshot = GuardSnapshot::take(&fixture.open(), &[]).unwrap();
    assert_eq!(snapshot.mend_packed_refs().unwrap(), 0);
    let path = fixture.work.join(".git/packed-refs");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend_from_slice(b"\0\xff garbage\nand more");
    std::fs::write(&path, bytes).unwrap();
    assert!(fixture.open().list_refs("refs/", 10).is_err());
    assert_eq!(snapshot.mend_packed_refs().unwrap(), 2);
    let names: Vec<String> = fixture.open().list_refs("refs/", 10).unwrap().unwrap().into_keys().collect();
    assert_eq!(names, ["refs/heads/main", "refs/tags/v1", "refs/tags/v2"]);
    assert_eq!(fixture.rev("v2^{}"), fixture.head());
}

#[test]
fn packed_references_lose_what_stands_in_the_wrong_place() {
    let fixture = Fixture::new();
    fixture.git(&["tag", "v1"]);
    fixture.git(&["tag", "-a", "-m", "two", "v2"]);
    fixture.git(&["pack-refs", "--all"]);
    let snapshot = GuardSnapshot::take(&fixture.open(), &[]).unwrap();
    let path = fixture.work.join(".git/packed-refs");
    let text = std::fs::read_to_string(&path).unwrap();
    let peeled = format!("^{}\n", fixture.head());
    // In first place, twice in a row, and behind a reference that is none.
    for (broken, gone) in [
        (format!("{peeled}{text}"), 2),
        (text.replace(&peeled, &peeled.repeat(2)), 1),
        (text.replace("refs/tags/v2", "refs/tags/v2..x"), 2),
    ] {
        std::fs::write(&path, &broken).unwrap();
        assert_eq!(snapshot.mend_packed_refs().unwrap(), gone, "{broken}");
        fixture.git(&["for-each-ref"]);
        assert_eq!(fixture.rev("v1"), fixture.head());
    }
}

#[test]
fn a_branch_is_told_for_what_it_is_and_can_be_set_whatever_it_is() {
    let fixture = Fixture::new();
    let first = fixture.head();
    let file = fixture.work.join(".git/refs/heads/main");
    let state = || fixture.open().branch_state("refs/heads/main").unwrap();
    assert_eq!(state(), BranchState::Commit(first.clone()));
    let missing = "1234567890123456789012345678901234567890";
    for (text, expected) in [
        ("ref: refs/heads/none\n", BranchState::Symbolic("refs/heads/none".into(), None)),
        ("ref: refs/heads/main\n", BranchState::Symbolic("refs/heads/main".into(), None)),
        (missing, BranchState::Dangling(missing.into())),
        ("garbage\n", BranchState::Unreadable),
    ] {
        std::fs::write(&file, text).unwrap();
        assert_eq!(state(), expected, "{text}");
        fixture.open().force_branch("refs/heads/main", &first, &substrate()).unwrap();
        assert_eq!(state(), BranchState::Commit(first.clone()));
    }
    fixture.git(&["pack-refs", "--all"]);
    std::fs::write(&file, "ref: refs/heads/none\n").unwrap();
    fixture.open().force_branch("refs/heads/main", &first, &substrate()).unwrap();
    assert_eq!((state(), fixture.head()), (BranchState::Commit(first.clone()), first));
    assert!(fixture.open().preflight().is_empty());
    fixture.git(&["branch", "other"]);
    std::fs::write(&file, "ref: refs/heads/other\n").unwrap();
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
fn a_large_or_odd_commit_is_adopted_by_a_fetch_and_a_broken_one_left_out() {
    let fixture = Fixture::new();
    let mut control = fixture.imported();
    fixture.git(&["checkout", "-q", "--detach"]);
    for n in 0..80 {
        for m in 0..50 {
            fixture.write(&format!("d{n}/f{m}"), format!("{n} {m}\n"));
        }
    }
    let large = fixture.commit("large");
    fixture.git(&["checkout", "-q", "main"]);
    let evil = fixture.path("evil");
    std::fs::write(&evil, "x").unwrap();
    let blob = fixture.git(&["hash-object", "-w", evil.to_str().unwrap()]);
    let spec = format!("100644 blob {}\t.GIT\n", blob.trim());
    let mut child = command(&fixture.work, fixture.dir.path(), &["mktree"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    {
        use std::io::Write as _;
        child.stdin.take().unwrap().write_all(spec.as_bytes()).unwrap();
    }
    let tree = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let broken = fixture.git(&["commit-tree", "-m", "broken", tree.trim()]);
    let broken = peers_model::CommitId::new(broken.trim()).unwrap();
    let here = control.adopt(&fixture.open(), &[broken.clone(), large.clone()]).unwrap();
    assert_eq!(here, [large]);
    assert!(!control.facts().has(&broken));
    assert!(control.adopt(&fixture.open(), &[broken]).unwrap().is_empty());
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
fn what_was_begun_and_cannot_be_copied_is_found_without_its_files_and_can_be_moved_aside() {
    let fixture = Fixture::new();
    let peer = fixture.open();
    let before = peer.unfinished();
    fixture.write(".git/MERGE_HEAD", "x".repeat(2 << 20));
    fixture.write(".git/rebase-merge/deep/er", "x");
    fixture.write(".git/rebase-apply/odd name", "x");
    for n in 0..200 {
        fixture.write(&format!(".git/sequencer/{n}"), "x");
    }
    let (begun, _) = peer.begun_since(&before);
    assert_eq!(begun.len(), 4);
    for thing in &begun {
        assert_eq!(thing.files, None, "{}", thing.name);
        let to = peer.move_begun_aside(thing, "tick-1").unwrap().unwrap();
        assert_eq!(fixture.read(&format!(".git/{to}.path")), format!(".git/{}\n", thing.name));
    }
    assert_eq!(peer.unfinished(), before);
}

#[test]
fn what_was_begun_is_not_removed_when_it_is_not_what_was_copied() {
    let fixture = Fixture::new();
    let peer = fixture.open();
    fixture.write(".git/MERGE_MSG", "one\n");
    let (begun, _) = peer.begun_since(&crate::Unfinished::default());
    fixture.write(".git/MERGE_MSG", "two\n");
    assert!(!peer.remove_begun(&begun[0]).unwrap());
    assert!(fixture.exists(".git/MERGE_MSG"));
}

#[test]
fn places_that_were_crowded_before_stay_and_the_repository_is_refused() {
    for dir in ["refs/remotes/origin", "logs/refs/heads/side"] {
        let fixture = Fixture::new();
        let mut snapshot = GuardSnapshot::take(&fixture.open(), &[]).unwrap();
        for n in 0..1_001 {
            fixture.write(&format!(".git/{dir}/r{n}"), format!("{}\n", fixture.head()));
            if n == 900 {
                drop(fixture.open());
            }
        }
        snapshot.taken = Some(i64::MAX);
        assert_eq!(snapshot.clear_unsafe("tick-1").unwrap(), []);
        assert!(fixture.exists(&format!(".git/{dir}/r1000")));
        let refused = crate::PeerRepo::open(&fixture.work).err().unwrap();
        assert!(refused.to_string().contains("crowded"), "{refused}");
        snapshot.taken = None;
        assert_eq!(snapshot.clear_unsafe("tick-1").unwrap(), [], "nothing is new since no time");
    }
}

/// The place where something is now.
fn kept(fixture: &Fixture, gone: &Cleared) -> std::path::PathBuf {
    fixture.work.join(".git").join(gone.kept.as_ref().unwrap())
}

#[test]
fn a_new_directory_that_is_crowded_is_moved_aside_and_what_is_beside_it_stays() {
    for dir in ["refs/x", "refs/heads/x/y", "logs/refs/heads/x"] {
        let fixture = Fixture::new();
        fixture.write(".git/refs/remotes/o/main", format!("{}\n", fixture.head()));
        // Read first, so that it is the last straw.
        fixture.write(".git/logs/refs/remotes/o/main", "");
        let snapshot = after_all(&fixture);
        fixture.write("a", "two\n");
        fixture.commit("second");
        for n in 0..1_001 {
            fixture.write(&format!(".git/{dir}/r{n}"), "");
        }
        let gone = snapshot.clear_unsafe("tick-1").unwrap();
        assert_eq!(gone.len(), 1, "{gone:?}");
        assert!(
            kept(&fixture, &gone[0]).join("r1000").exists()
                || kept(&fixture, &gone[0]).join("y/r1000").exists()
        );
        assert_eq!(fixture.open().list_refs("refs/", 10).unwrap().unwrap().len(), 2);
        assert_eq!(fixture.rev("main"), fixture.head());
    }
}

#[test]
fn of_a_crowded_directory_that_was_there_only_what_is_new_is_moved_aside() {
    let fixture = Fixture::new();
    fixture.write(".git/refs/tags/old", format!("{}\n", fixture.head()));
    let snapshot = after_all(&fixture);
    for n in 0..1_001 {
        fixture.write(&format!(".git/refs/tags/r{n}"), "");
    }
    let gone = snapshot.clear_unsafe("tick-1").unwrap();
    assert_eq!((gone.len(), gone[0].name.as_str()), (1, "refs/tags/*"));
    assert!(gone[0].kept.as_ref().unwrap().starts_with("peers-aside/kept-tick-1-"), "it may be older");
    assert!(kept(&fixture, &gone[0]).join("r1000").exists());
    assert_eq!(fixture.rev("old"), fixture.head());
    drop(fixture.open());
}

#[test]
fn of_a_directory_with_more_than_is_looked_at_at_once_what_is_new_is_moved_aside_all_the_same() {
    for dir in ["refs/heads", "refs/x/y"] {
        let fixture = Fixture::new();
        fixture.write(&format!(".git/{dir}/old"), format!("{}\n", fixture.head()));
        let snapshot = after_all(&fixture);
        for n in 0..5_000 {
            fixture.write(&format!(".git/{dir}/r{n}"), "");
        }
        assert!(snapshot.clear_unsafe("tick-1").unwrap().len() > 1, "{dir}");
        assert_eq!(fixture.rev(&format!("{dir}/old")), fixture.head());
        let left = std::fs::read_dir(fixture.work.join(".git").join(dir)).unwrap().count();
        assert!(left < 1_000, "{left} in {dir}");
        drop(fixture.open());
    }
}

#[test]
fn directories_that_crowd_the_object_store_are_moved_aside() {
    let fixture = Fixture::new();
    let snapshot = after_all(&fixture);
    for n in 0..1_001 {
        std::fs::create_dir(fixture.work.join(format!(".git/objects/d{n}"))).unwrap();
    }
    let gone = snapshot.clear_unsafe("tick-1").unwrap();
    assert_eq!((gone.len(), gone[0].name.as_str()), (1, "objects/*"));
    assert!(kept(&fixture, &gone[0]).join("d1000").exists());
    let _imported = fixture.control().import(&fixture.open(), None).unwrap();
}

#[test]
fn directories_deeper_than_any_reference_are_moved_aside_whole() {
    for (dir, deep, name) in [
        ("refs/heads", "a/".repeat(220), "refs/heads/a/a"),
        ("logs", "a/".repeat(205), "logs/a/a/a"),
        ("refs/tags", format!("{}/", "x".repeat(250)).repeat(12), "refs/tags"),
    ] {
        let fixture = Fixture::new();
        let snapshot = GuardSnapshot::take(&fixture.open(), &[]).unwrap();
        let path = format!(".git/{dir}/{deep}");
        std::fs::create_dir_all(fixture.work.join(&path)).unwrap();
        assert!(crate::PeerRepo::open(&fixture.work).is_err());
        let gone = snapshot.clear_unsafe("tick-1").unwrap();
        assert_eq!(gone.len(), 1, "{gone:?}");
        assert!(gone[0].name.starts_with(name), "{gone:?}");
        assert!(gone[0].what.contains("deeper"), "{gone:?}");
        assert!(kept(&fixture, &gone[0]).is_dir());
        let _imported = fixture.control().import(&fixture.open(), None).unwrap();
    }
}

#[test]
fn more_special_files_than_are_mended_at_once_go_all_the_same() {
    let fixture = Fixture::new();
    let snapshot = GuardSnapshot::take(&fixture.open(), &[]).unwrap();
    std::fs::create_dir(fixture.work.join(".git/refs/x")).unwrap();
    for n in 0..35 {
        fifo(&fixture.work.join(format!(".git/refs/x/{n}")));
    }
    assert_eq!(snapshot.clear_unsafe("tick-1").unwrap().len(), 35);
    drop(fixture.open());
}

#[test]
fn what_has_the_name_of_the_place_for_things_moved_aside_gets_another() {
    for plant in ["file", "link"] {
        let fixture = Fixture::new();
        let snapshot = GuardSnapshot::take(&fixture.open(), &[]).unwrap();
        if plant == "file" {
            fixture.write(".git/peers-aside", "x");
        } else {
            super::fixture::link("/tmp", &fixture.work.join(".git/peers-aside"));
        }
        fixture.write(".git/refs/heads/large", "x".repeat(70_000));
        let gone = snapshot.clear_unsafe("tick-1").unwrap();
        assert_eq!(std::fs::metadata(kept(&fixture, &gone[0])).unwrap().len(), 70_000);
        let names = std::fs::read_dir(fixture.work.join(".git")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert_eq!(names.filter(|name| name.starts_with("peers-aside-")).count(), 1, "{plant}");
        drop(fixture.open());
    }
}

/// A snapshot that is younger than everything that is there, and older than what comes: the clock of files
/// goes in steps.
fn after_all(fixture: &Fixture) -> GuardSnapshot {
    use std::os::unix::fs::MetadataExt as _;
    let probe = fixture.path("probe");
    let changed = || {
        std::fs::write(&probe, "x").unwrap();
        let meta = std::fs::metadata(&probe).unwrap();
        meta.ctime() * 1000 + meta.ctime_nsec() / 1_000_000
    };
    let first = changed();
    let next = std::iter::repeat_with(changed).find(|now| *now > first).unwrap();
    let next = peers_model::Timestamp::from_millis(next);
    GuardSnapshot::take(&fixture.open(), &[]).unwrap().taken_at(next)
}

#[test]
fn many_directories_of_references_are_no_crowd_and_logs_do_not_count_as_references() {
    let fixture = Fixture::new();
    for n in 0..450 {
        fixture.write(&format!(".git/refs/remotes/r{n}/main"), format!("{}\n", fixture.head()));
        fixture.write(&format!(".git/logs/refs/remotes/r{n}/main"), "");
    }
    let snapshot = GuardSnapshot::take(&fixture.open(), &[]).unwrap();
    assert_eq!(snapshot.clear_unsafe("tick-1").unwrap(), []);
}

#[test]
fn what_has_content_and_cannot_stay_is_moved_aside() {
    let fixture = Fixture::new();
    let snapshot = GuardSnapshot::take(&fixture.open(), &[]).unwrap();
    fixture.write(".git/refs/heads/large", "x".repeat(70_000));
    std::fs::remove_file(fixture.work.join(".git/index")).unwrap();
    fixture.write(".git/index/inner", "x");
    let gone = snapshot.clear_unsafe("tick-1").unwrap();
    let kept = |n: usize| format!(".git/{}", gone[n].kept.clone().unwrap());
    assert_eq!((gone.len(), gone[0].name.as_str(), gone[1].name.as_str()), (2, "index", "refs/heads/large"));
    assert_eq!(fixture.read(&format!("{}/inner", kept(0))), "x");
    assert_eq!(fixture.read(&kept(1)).len(), 70_000);
    assert_eq!(fixture.read(&format!("{}.path", kept(1))), ".git/refs/heads/large\n");
    drop(fixture.open());
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
