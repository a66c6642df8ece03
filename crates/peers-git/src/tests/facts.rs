//! Facts, ranges, differences, contents.

use super::Fixture;
use crate::{ChangeKind, GitError};

#[test]
fn a_commit_shows_all_its_parts() {
    let fixture = Fixture::new();
    fixture.write("b", "x");
    let first = fixture.head();
    let id = fixture.commit("subject\n\nbody\n\nPeer: claude");
    let control = fixture.imported();
    let fact = control.facts().commit(&id).unwrap();
    assert_eq!(fact.parents, [first]);
    assert_eq!(fact.message, "subject\n\nbody\n\nPeer: claude\n");
    assert_eq!((fact.author.name.as_str(), fact.author.email.as_str()), ("Ann", "ann@example.org"));
    assert_eq!(fact.time.as_millis(), 1_700_000_000_000);
    assert_eq!(fact.tree.as_str(), fixture.git(&["rev-parse", "HEAD^{tree}"]).trim());
    assert!(!fact.message_cut);
}

#[test]
fn hostile_messages_are_cut_and_replaced_never_refused() {
    let fixture = Fixture::new();
    let tree = fixture.git(&["rev-parse", "HEAD^{tree}"]);
    let mut raw =
        format!("tree {tree}author \u{1}\u{1b}[31m <a@b> 1 +0000\ncommitter  <> 2 +0000\n\n").into_bytes();
    raw.extend_from_slice(b"\x1e\xff\xfe");
    raw.resize(raw.len() + 100_000, b'x');
    let id = fixture.object("commit", raw);
    fixture.git(&["update-ref", "refs/heads/main", id.trim()]);
    let control = fixture.imported();
    let fact = control.facts().commit(&fixture.head()).unwrap();
    assert!(fact.message_cut);
    assert!(fact.message.starts_with("\u{1e}\u{fffd}\u{fffd}xxx"));
    assert!(fact.message.len() <= 64 * 1024 + 4096, "its first line and its end");
}

#[test]
fn a_walk_for_some_messages_is_the_whole_walk_without_the_others() {
    let fixture = Fixture::new();
    let first = fixture.head();
    for n in 0..4 {
        fixture.write("a", format!("{n}"));
        fixture.commit(&format!("number {n}\n\n{}", if n % 2 == 0 { "wanted" } else { "other" }));
    }
    let chain = fixture.head();
    fixture.git(&["checkout", "-q", "-b", "side", "HEAD~1"]);
    fixture.write("b", "b");
    fixture.commit("wanted beside");
    fixture.git(&["merge", "-q", "--no-edit", "main"]);
    let merged = fixture.head();
    let control = fixture.imported();
    let facts = control.facts();
    let beside = fixture.rev("HEAD^1");
    for (from, to, due) in [
        (None, &chain, 2),
        (Some(&first), &chain, 2),
        (Some(&chain), &chain, 0),
        (Some(&first), &merged, 3),
        (Some(&chain), &merged, 1),
        // What is left out is no ancestor.
        (Some(&beside), &chain, 0),
    ] {
        let all = facts.walk(from, to, 100).unwrap();
        let of_all: Vec<_> = all.iter().filter(|fact| fact.message.contains("wanted")).cloned().collect();
        let found = facts.walk_where(from, to, 100, |message| message.contains("wanted")).unwrap();
        assert_eq!((of_all.len(), found), (due, (all.len(), of_all)), "{from:?} {to}");
    }
    assert!(facts.walk_where(None, &chain, 3, |_| true).is_err(), "more than the limit");
}

#[test]
fn a_walk_is_oldest_first_and_follows_merges() {
    let fixture = Fixture::new();
    let base = fixture.head();
    fixture.git(&["checkout", "-q", "-b", "side"]);
    fixture.write("s", "s");
    let side = fixture.commit("side");
    fixture.git(&["checkout", "-q", "main"]);
    fixture.write("m", "m");
    let main = fixture.commit("main");
    fixture.git(&["merge", "-q", "--no-ff", "-m", "merge", "side"]);
    let control = fixture.imported();
    let walk = control.facts().walk(Some(&base), &fixture.head(), 10).unwrap();
    let ids: Vec<_> = walk.iter().map(|fact| fact.id.clone()).collect();
    assert_eq!(ids.len(), 3);
    assert!(ids[..2].contains(&side) && ids[..2].contains(&main));
    assert_eq!(ids[2], fixture.head());
    assert_eq!(walk[2].parents, [main, side]);
    let short = control.facts().walk(None, &fixture.head(), 3);
    assert!(matches!(short, Err(GitError::TooLarge { .. })));
}

#[test]
fn replaced_and_grafted_history_is_not_believed() {
    let fixture = Fixture::new();
    let first = fixture.head();
    fixture.write("b", "x");
    let second = fixture.commit("honest");
    fixture.git(&["checkout", "-q", "-b", "forged", first.as_str()]);
    let forged = fixture.commit("forged");
    fixture.git(&["checkout", "-q", "main"]);
    fixture.git(&["replace", second.as_str(), forged.as_str()]);
    assert!(fixture.git(&["log", "-1", "--format=%s"]).contains("forged"), "the trick works on git itself");
    fixture.write(".git/info/grafts", format!("{second}\n"));
    let control = fixture.imported();
    let fact = control.facts().commit(&second).unwrap();
    assert_eq!(fact.message, "honest\n");
    assert!(control.facts().is_ancestor(&first, &second).unwrap());
}

#[test]
fn differences_count_lines_modes_and_binaries_without_guessing_renames() {
    let fixture = Fixture::new();
    fixture.write("keep", "same\n");
    fixture.write("edit", "1\n2\n3\n");
    fixture.write("gone", "a\nb\n");
    fixture.write("moved", "x\ny\nz\n");
    fixture.write("bin", b"a\0b");
    fixture.write("dir/type", "f\n");
    // An attribute must not change what is counted.
    fixture.write(".gitattributes", "edit -diff\nbin diff\n");
    let old = fixture.commit("old");
    fixture.write("edit", "1\nzwei\n3\n4\n");
    fixture.remove("gone");
    std::fs::rename(fixture.work.join("moved"), fixture.work.join("moved2")).unwrap();
    fixture.write("bin", b"a\0c");
    std::fs::remove_dir_all(fixture.work.join("dir")).unwrap();
    fixture.write("dir", "now a file\n");
    let new = fixture.commit("new");
    let control = fixture.imported();
    let facts = control.facts();
    let (old, new) = (facts.tree_of(&old).unwrap(), facts.tree_of(&new).unwrap());
    let changes = facts.diff_trees(&old, &new).unwrap();
    let shown: Vec<_> =
        changes.iter().map(|c| (c.path.as_str(), c.kind, c.added, c.deleted, c.binary)).collect();
    assert_eq!(
        shown,
        [
            ("bin", ChangeKind::Modified, 0, 0, true),
            ("dir", ChangeKind::Added, 1, 0, false),
            ("dir/type", ChangeKind::Deleted, 0, 1, false),
            ("edit", ChangeKind::Modified, 2, 1, false),
            ("gone", ChangeKind::Deleted, 0, 2, false),
            ("moved", ChangeKind::Deleted, 0, 3, false),
            ("moved2", ChangeKind::Added, 3, 0, false),
        ]
    );
    let stat = facts.diffstat(&old, &new).unwrap();
    assert_eq!((stat.files, stat.added, stat.deleted, stat.binary), (7, 6, 7, 1));
}

#[test]
fn a_text_diff_is_what_git_prints_and_stops_at_its_cap() {
    let fixture = Fixture::new();
    fixture.write("b", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    let old = fixture.commit("old");
    fixture.write("b", "1\n2\n3\n4\nfive\n6\n7\n8\n9");
    fixture.write("c", "new\n");
    let new = fixture.commit("new");
    let control = fixture.imported();
    let facts = control.facts();
    let (old, new) = (facts.tree_of(&old).unwrap(), facts.tree_of(&new).unwrap());
    let all = facts.diff_text(&old, &new, |_| true, 1 << 20).unwrap();
    let expected = fixture.git(&["diff", "--no-renames", "HEAD~1", "HEAD"]);
    let without_index: String =
        expected.lines().filter(|line| !line.starts_with("index ")).flat_map(|line| [line, "\n"]).collect();
    assert_eq!(all.text, without_index);
    let some = facts.diff_text(&old, &new, |path| path == "c", 1 << 20).unwrap();
    assert!(some.text.starts_with("diff --git a/c b/c\nnew file mode 100644\n--- /dev/null\n") && !some.cut);
    let cut = facts.diff_text(&old, &new, |_| true, 120).unwrap();
    assert!(cut.cut && cut.text.len() <= 120);
}

#[test]
fn a_scope_hash_depends_on_the_scope_alone() {
    let fixture = Fixture::new();
    fixture.write("src/x.rs", "1");
    let one = fixture.commit("1");
    fixture.write("README", "other");
    let two = fixture.commit("2");
    fixture.write("src/x.rs", "2");
    let three = fixture.commit("3");
    let control = fixture.imported();
    let facts = control.facts();
    let hash = |id| facts.scope_hash(id, |path| path.starts_with("src/")).unwrap();
    assert_eq!(hash(&one), hash(&two));
    assert_ne!(hash(&two), hash(&three));
    assert_eq!(hash(&one).len(), 64);
    let paths: Vec<_> = facts.list_tree(&two).unwrap().into_iter().map(|item| item.path).collect();
    assert_eq!(paths, ["README", "a", "src/x.rs"]);
}

#[test]
fn a_tree_that_unfolds_without_end_is_refused_in_time() {
    let fixture = Fixture::new();
    // Each level names the level below ten times: 10^30 directories out of 30 objects.
    let mut id = fixture.git(&["mktree"]);
    for _ in 0..30 {
        let entry = |n: u32| format!("040000 tree {}\td{n}\n", id.trim());
        let input: String = (0..10).map(entry).collect();
        std::fs::write(fixture.path("in"), input).unwrap();
        let mut command = super::command(&fixture.work, fixture.dir.path(), &["mktree"]);
        command.stdin(std::fs::File::open(fixture.path("in")).unwrap());
        id = String::from_utf8(command.output().unwrap().stdout).unwrap();
    }
    let commit = fixture.git(&["commit-tree", "-m", "bomb", id.trim()]);
    fixture.git(&["update-ref", "refs/heads/main", commit.trim()]);
    let control = fixture.imported();
    let facts = control.facts();
    let head = fixture.head();
    assert!(matches!(facts.list_tree(&head), Err(GitError::TooLarge { .. })));
    let empty = git2::Oid::hash_object(git2::ObjectType::Tree, b"").unwrap();
    let empty = crate::ids::tree_id(empty);
    assert!(facts.diff_trees(&empty, &facts.tree_of(&head).unwrap()).is_err());
    assert!(
        control
            .checkout_pristine(
                &head,
                &fixture.path("out"),
                &crate::SyntheticGit::over_control(&control).unwrap()
            )
            .is_err()
    );
}
