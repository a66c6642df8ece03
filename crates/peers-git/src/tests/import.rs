//! Importing history.

use super::{Fixture, cut_short};
use crate::{GitError, Route};

fn shas(list: &[peers_model::CommitId]) -> Vec<String> {
    let mut out: Vec<String> = list.iter().map(ToString::to_string).collect();
    out.sort();
    out
}

#[test]
fn nothing_is_done_while_no_reference_moves() {
    let fixture = Fixture::new();
    let mut control = fixture.control();
    assert!(matches!(control.import(&fixture.open(), None).unwrap().route, Route::Copied(_)));
    assert_eq!(control.import(&fixture.open(), None).unwrap().route, Route::Unchanged);
    fixture.write("a", "two\n");
    fixture.commit("second");
    assert_eq!(control.import(&fixture.open(), None).unwrap().route, Route::Copied(3));
}

#[test]
fn new_commits_are_told_from_known_ones_across_a_restart() {
    let fixture = Fixture::new();
    let base = fixture.head();
    fixture.git(&["checkout", "-q", "-b", "operator"]);
    let operator = fixture.commit("made before the tick");
    fixture.git(&["checkout", "-q", "main"]);
    let mut control = fixture.imported();
    let before = control.generation();
    fixture.write("work", "x");
    let own = fixture.commit("made in the tick");
    fixture.git(&["merge", "-q", "--no-ff", "-m", "merge", "operator"]);
    let merge = fixture.head();
    let imported = control.import(&fixture.open(), None).unwrap();
    assert_eq!(imported.before, before);
    assert_eq!(shas(&imported.new), shas(&[own.clone(), merge.clone()]));
    // A crash here: the next process asks again, with the generation that it wrote down.
    let mut control = fixture.control();
    assert_eq!(control.import(&fixture.open(), None).unwrap().route, Route::Unchanged);
    let found = control.new_commits(Some(&base), &merge, before).unwrap();
    let known = |id| found.iter().find(|c| c.fact.id == id).unwrap().known;
    assert!(known(operator) && !known(own) && !known(merge.clone()));
    assert!(control.new_commits(Some(&base), &merge, control.generation()).unwrap().iter().all(|c| c.known));
    let ahead = crate::Generation(control.generation().0 + 1);
    assert!(matches!(control.new_commits(Some(&base), &merge, ahead), Err(GitError::Corrupt { .. })));
}

#[test]
fn a_shallow_first_import_starts_at_the_base_and_deepens_on_demand() {
    let fixture = Fixture::new();
    let first = fixture.head();
    let old = fixture.commit("old");
    fixture.git(&["branch", "stale", first.as_str()]);
    let base = fixture.commit("base");
    let tip = fixture.commit("tip");
    let mut control = fixture.control();
    drop(control.import(&fixture.open(), Some(&base)).unwrap());
    let facts = control.facts();
    let walked: Vec<_> = facts.walk(None, &tip, 10).unwrap().into_iter().map(|c| c.id).collect();
    assert_eq!(walked, [base.clone(), tip.clone()]);
    assert!(!facts.has(&old) && facts.has(&first), "the tip of the other branch, and nothing between");
    assert!(facts.is_ancestor(&base, &tip).unwrap());
    let next = fixture.commit("next");
    drop(control.import(&fixture.open(), Some(&base)).unwrap());
    assert_eq!(control.facts().walk(Some(&base), &next, 10).unwrap().len(), 2);
    control.deepen(&fixture.open()).unwrap();
    assert_eq!(control.facts().walk(None, &next, 10).unwrap().len(), 5);
    assert!(control.facts().is_ancestor(&first, &next).unwrap());
    control.deepen(&fixture.open()).unwrap();
}

fn branches(control: &crate::ControlDir) -> Vec<String> {
    control.imported_branches().unwrap().into_keys().collect()
}

/// More objects than are copied in process.
fn grow(fixture: &Fixture, files: usize) {
    for n in 0..files {
        fixture.write(&format!("d{}/f{n}", n % 7), format!("{n}\n"));
    }
}

#[test]
fn a_damaged_copy_of_ours_is_named_as_such() {
    let fixture = Fixture::new();
    let mut control = fixture.imported();
    let head = fixture.head();
    let (dir, file) = head.as_str().split_at(2);
    let place = control.objects_dir().join(dir).join(file);
    std::fs::remove_file(&place).unwrap();
    std::fs::write(&place, b"").unwrap();
    control.reopen().unwrap();
    let error = control.import(&fixture.open(), None).unwrap_err();
    assert!(error.to_string().starts_with("our copy of commit"), "{error}");
}

#[test]
fn branches_come_go_and_take_each_others_places() {
    let fixture = Fixture::new();
    fixture.git(&["branch", "a"]);
    let mut control = fixture.imported();
    fixture.git(&["branch", "-D", "a"]);
    fixture.git(&["branch", "a/b"]);
    let imported = control.import(&fixture.open(), None).unwrap();
    assert!(imported.broken.is_empty());
    assert_eq!(branches(&control), ["refs/heads/a/b", "refs/heads/main"]);
    // And by a fetch, which keeps them as references.
    grow(&fixture, 400);
    fixture.commit("big");
    assert_eq!(control.import(&fixture.open(), None).unwrap().route, Route::Fetched);
    assert!(control.facts().reference("refs/peer/a/b").unwrap().is_some());
    fixture.git(&["branch", "-D", "a/b"]);
    fixture.git(&["branch", "a"]);
    for n in 0..400 {
        fixture.write(&format!("more/{n}"), n.to_string());
    }
    fixture.commit("big again");
    assert_eq!(control.import(&fixture.open(), None).unwrap().route, Route::Fetched);
    assert!(control.facts().reference("refs/peer/a").unwrap().is_some());
    assert!(control.facts().reference("refs/peer/a/b").unwrap().is_none());
}

#[test]
fn missing_and_damaged_objects_below_head_are_corruption_and_heal() {
    let fixture = Fixture::new();
    let mut control = fixture.imported();
    fixture.write("a", "two\n");
    fixture.commit("second");
    let blob = fixture.git(&["rev-parse", "HEAD:a"]);
    let (dir, file) = blob.trim().split_at(2);
    let place = fixture.work.join(".git/objects").join(dir).join(file);
    let bytes = std::fs::read(&place).unwrap();
    std::fs::remove_file(&place).unwrap();
    assert!(matches!(control.import(&fixture.open(), None), Err(GitError::Corrupt { .. })));
    std::fs::write(&place, b"not zlib").unwrap();
    assert!(matches!(control.import(&fixture.open(), None), Err(GitError::Corrupt { .. })));
    // The content of another object under this name.
    let other = fixture.git(&["rev-parse", "HEAD~1:a"]);
    let (dir, file) = other.trim().split_at(2);
    let wrong = std::fs::read(fixture.work.join(".git/objects").join(dir).join(file)).unwrap();
    std::fs::write(&place, wrong).unwrap();
    assert!(matches!(control.import(&fixture.open(), None), Err(GitError::Corrupt { .. })));
    std::fs::write(&place, bytes).unwrap();
    assert!(control.import(&fixture.open(), None).is_ok());
}

#[test]
fn what_the_consistency_check_refuses_is_corruption() {
    let fixture = Fixture::new();
    let mut control = fixture.imported();
    let tree = fixture.git(&["rev-parse", "HEAD^{tree}"]);
    for raw in [
        format!("tree {tree}author A <a@b 1 +0000\ncommitter A <a@b> 1 +0000\n\nx"),
        format!("tree {tree}author A <a@b> 01 +0000\ncommitter A <a@b> 1 +0000\n\nx"),
    ] {
        fixture.write(".git/refs/heads/main", fixture.object("commit", raw));
        assert!(matches!(control.import(&fixture.open(), None), Err(GitError::Corrupt { .. })));
    }
}

#[test]
fn a_tree_with_a_git_directory_in_it_is_refused() {
    let fixture = Fixture::new();
    let mut control = fixture.imported();
    let blob = fixture.git(&["rev-parse", "HEAD:a"]);
    let mut raw = b"100644 .GIT\0".to_vec();
    raw.extend_from_slice(git2::Oid::from_str(blob.trim()).unwrap().as_bytes());
    let tree = fixture.object("tree", raw);
    let commit = fixture.git(&["commit-tree", "-m", "x", tree.trim()]);
    fixture.write(".git/refs/heads/main", commit);
    assert!(matches!(control.import(&fixture.open(), None), Err(GitError::Corrupt { .. })));
}

#[test]
fn a_broken_side_branch_does_not_stop_the_import_of_head() {
    let fixture = Fixture::new();
    let mut control = fixture.imported();
    let second = fixture.commit("second");
    fixture.write(".git/refs/heads/gone", format!("{}\n", "1".repeat(40)));
    fixture.write(".git/refs/heads/garbage", "what\n");
    let imported = control.import(&fixture.open(), None).unwrap();
    assert_eq!(imported.head, second);
    // The library does not even list the one that is no reference at all.
    assert_eq!(imported.broken, ["refs/heads/gone"]);
    // Also when the range is fetched.
    grow(&fixture, 400);
    let third = fixture.commit("third");
    let imported = control.import(&fixture.open(), None).unwrap();
    assert_eq!((imported.head, imported.route), (third, Route::Fetched));
}

#[test]
fn special_files_among_the_objects_are_refused() {
    let fixture = Fixture::new();
    let mut control = fixture.imported();
    fixture.commit("second");
    std::fs::create_dir_all(fixture.work.join(".git/objects/00")).unwrap();
    super::fifo(&fixture.work.join(".git/objects/00").join("0".repeat(38)));
    assert!(matches!(control.import(&fixture.open(), None), Err(GitError::Repo(_))));
}

#[test]
fn a_planted_shallow_file_or_hidden_references_do_not_change_what_is_imported() {
    let fixture = Fixture::new();
    let first = fixture.head();
    let mut control = fixture.imported();
    let second = fixture.commit("second");
    grow(&fixture, 400);
    let third = fixture.commit("third");
    fixture.write(".git/shallow", format!("{second}\n"));
    fixture.git(&["config", "transfer.hideRefs", "refs/heads"]);
    fixture.git(&["config", "uploadpack.hideRefs", "HEAD"]);
    let imported = control.import(&fixture.open(), None).unwrap();
    assert_eq!((imported.head, imported.route), (third.clone(), Route::Fetched));
    assert!(control.facts().is_ancestor(&first, &third).unwrap());
}

#[test]
fn an_object_that_is_cut_short_is_refused_by_its_name_before_the_library_reads_it() {
    for what in ["HEAD", "HEAD^{tree}", "HEAD:b"] {
        let fixture = Fixture::new();
        let mut control = fixture.imported();
        fixture.write("b", "line\n".repeat(100));
        fixture.commit("second");
        let id = fixture.git(&["rev-parse", what]);
        cut_short(&fixture.work.join(".git"), id.trim());
        for control in [&mut control, &mut fixture.control()] {
            let error = control.import(&fixture.open(), None).unwrap_err();
            let said = error.to_string();
            assert!(said.contains(&id.trim()[2..]) && said.contains("an object that is cut short"), "{said}");
        }
    }
}
