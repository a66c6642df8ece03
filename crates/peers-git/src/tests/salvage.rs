//! Kept copies.

use super::{Fixture, substrate};

#[test]
fn a_dirty_tree_is_kept_with_its_untracked_files_and_comes_back() {
    let fixture = Fixture::new();
    fixture.write(".gitignore", "ignored\n");
    let tip = fixture.commit("tip");
    let control = fixture.imported();
    fixture.write("a", "edited\n");
    fixture.write("untracked/file", "u\n");
    fixture.write("ignored", "i\n");
    let kept = control.salvage("00aa/3-claude", &tip, &fixture.work, &substrate()).unwrap();
    assert!(kept.dirty && kept.left_out.is_empty());
    assert_eq!(control.facts().commit(&kept.commit).unwrap().parents, [tip]);
    assert_eq!(control.list_salvage().unwrap(), std::slice::from_ref(&kept));
    fixture.git(&["checkout", "-q", "--", "a"]);
    fixture.git(&["clean", "-fdq"]);
    let repo = fixture.open();
    assert_eq!(control.restore_salvage("00aa/3-claude", &repo, &substrate()).unwrap(), kept.commit);
    assert_eq!(control.restore_salvage("00aa/3-claude", &repo, &substrate()).unwrap(), kept.commit);
    let restored = "refs/peers/salvage/00aa/3-claude";
    assert_eq!(fixture.git(&["show", &format!("{restored}:untracked/file")]), "u\n");
    assert_eq!(fixture.git(&["show", &format!("{restored}:a")]), "edited\n");
    assert_eq!(fixture.git(&["ls-tree", "-r", "--name-only", restored]), ".gitignore\na\nuntracked/file\n");
    fixture.git(&["fsck", "--strict"]);
}

#[test]
fn a_tip_that_the_peer_threw_away_stays_reachable() {
    let fixture = Fixture::new();
    let first = fixture.head();
    fixture.write("work", "w\n");
    let tip = fixture.commit("work");
    let control = fixture.imported();
    let kept = control.salvage("x/2-b", &tip, &fixture.work, &substrate()).unwrap();
    fixture.git(&["reset", "-q", "--hard", first.as_str()]);
    fixture.git(&["reflog", "expire", "--expire=now", "--all"]);
    fixture.git(&["gc", "-q", "--prune=now"]);
    control.restore_salvage(&kept.name, &fixture.open(), &substrate()).unwrap();
    assert_eq!(fixture.git(&["show", "refs/peers/salvage/x/2-b:work"]), "w\n");
}

#[test]
fn a_dirty_tree_can_be_cleaned_after_it_was_kept() {
    let fixture = Fixture::new();
    let control = fixture.imported();
    let tip = fixture.head();
    fixture.write("a", "edited\n");
    fixture.write("untracked/file", "u\n");
    let kept = control.salvage("x/3-c", &tip, &fixture.work, &substrate()).unwrap();
    let (from, to) = (control.facts().tree_of(&kept.commit).unwrap(), control.facts().tree_of(&tip).unwrap());
    drop(fixture.open().checkout_changed(&control, &from, &to).unwrap());
    assert!(!control.tree_state(&fixture.work, &tip).unwrap().dirty);
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
}

#[test]
fn files_too_large_to_keep_are_named_and_stay_where_they_are() {
    let fixture = Fixture::new();
    let control = fixture.imported();
    let tip = fixture.head();
    std::fs::File::create(fixture.work.join("core")).unwrap().set_len(100 << 20).unwrap();
    fixture.write("note", "n\n");
    let kept = control.salvage("x/4-d", &tip, &fixture.work, &substrate()).unwrap();
    assert_eq!(kept.left_out, [b"core"]);
    let (from, to) = (control.facts().tree_of(&kept.commit).unwrap(), control.facts().tree_of(&tip).unwrap());
    drop(fixture.open().checkout_changed(&control, &from, &to).unwrap());
    assert!(fixture.exists("core") && !fixture.exists("note"));
}
