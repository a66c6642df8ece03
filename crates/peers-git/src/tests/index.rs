//! The index after a turn.

use git2::{Index, IndexEntry, IndexTime};
use peers_model::CommitId;

use super::fixture::{Fixture, substrate};
use crate::checkout::index_entry;
use crate::index_entries::{self, ASSUME, NEW, SKIP, STAGE};
use crate::{ControlDir, IndexMark, IndexSettled};

fn mark(fixture: &Fixture, control: &ControlDir) -> IndexMark {
    let tree = control.facts().tree_of(&fixture.head()).unwrap();
    fixture.open().index_mark(control, &tree).unwrap()
}

fn settle(fixture: &Fixture, control: &ControlDir, before: &IndexMark) -> IndexSettled {
    let name = ("tick-1/index", &substrate());
    fixture.open().settle_index(control, &fixture.head(), before, name).unwrap()
}

fn stage(fixture: &Fixture, path: &str, text: &str) {
    fixture.write("../staged", text);
    let id = fixture.git(&["hash-object", "-w", "../staged"]);
    fixture.git(&["update-index", "--add", "--cacheinfo", &format!("100644,{},{path}", id.trim())]);
}

#[test]
fn what_was_staged_behind_a_clean_work_tree_is_unstaged_and_kept() {
    let fixture = Fixture::new();
    let control = fixture.imported();
    let before = mark(&fixture, &control);
    stage(&fixture, "a", "gutted\n");
    stage(&fixture, "new", "planted\n");
    let settled = settle(&fixture, &control, &before);
    assert_eq!(settled.reset, ["a", "new"]);
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
    assert_eq!(fixture.read("a"), "one\n");
    let kept = control.list_salvage().unwrap();
    assert_eq!(settled.kept.as_deref(), Some(kept[0].name.as_str()));
    let blob = |path: &str| control.facts().read_blob(&kept[0].commit, path, 100).unwrap().unwrap().bytes;
    assert_eq!((blob("a"), blob("new")), (b"gutted\n".to_vec(), b"planted\n".to_vec()));
}

#[test]
fn staged_content_that_is_too_much_to_be_kept_is_named_and_the_rest_is_kept() {
    let fixture = Fixture::new();
    let control = fixture.imported();
    let before = mark(&fixture, &control);
    for (path, size) in [("a", 1_025), ("b", 900), ("c", 901), ("d", 902), ("e", 40)] {
        stage(&fixture, path, &path.repeat(size));
    }
    let settled = settle(&fixture, &control, &before);
    let out: Vec<&str> = settled.left_out.iter().map(|out| out.path.as_str()).collect();
    assert_eq!(out, ["a", "d"], "one for its size, one for the sum");
    assert_eq!(fixture.git(&["cat-file", "-p", &settled.left_out[0].id]), "a".repeat(1_025));
    let kept = &control.list_salvage().unwrap()[0].commit;
    let size =
        |path: &str| control.facts().read_blob(kept, path, 9_999).unwrap().map(|blob| blob.bytes.len());
    assert_eq!((size("b"), size("c"), size("d"), size("e")), (Some(900), Some(901), None, Some(40)));
}

#[test]
fn all_sides_of_a_staged_conflict_are_kept() {
    let fixture = Fixture::new();
    let control = fixture.imported();
    let before = mark(&fixture, &control);
    let mut lines = String::from("0 0000000000000000000000000000000000000000\ta\n");
    for side in 1..=3 {
        fixture.write("../side", format!("side {side}\n"));
        let id = fixture.git(&["hash-object", "-w", "../side"]);
        lines = format!("{lines}100644 {} {side}\ta\n", id.trim());
    }
    fixture.write("../lines", &lines);
    let mut update =
        super::fixture::command(&fixture.work, fixture.dir.path(), &["update-index", "--index-info"]);
    update.stdin(std::fs::File::open(fixture.path("lines")).unwrap());
    assert!(update.status().unwrap().success());
    let settled = settle(&fixture, &control, &before);
    assert_eq!((settled.reset, settled.left_out), (vec!["a".to_owned()], vec![]));
    let kept = &control.list_salvage().unwrap()[0].commit;
    for side in 1..=3 {
        let blob = control.facts().read_blob(kept, &format!("a.stage-{side}"), 99).unwrap().unwrap();
        assert_eq!(blob.bytes, format!("side {side}\n").into_bytes());
    }
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
}

#[test]
fn what_the_operator_had_staged_stays_staged() {
    let fixture = Fixture::new();
    fixture.write("b", "b\n");
    fixture.write("gone", "x\n");
    fixture.commit("second");
    let control = fixture.imported();
    stage(&fixture, "a", "mine\n");
    fixture.git(&["rm", "-q", "--cached", "gone"]);
    let before = mark(&fixture, &control);
    stage(&fixture, "b", "theirs\n");
    let settled = settle(&fixture, &control, &before);
    assert_eq!(settled.reset, ["b"]);
    assert_eq!(fixture.git(&["diff", "--cached", "--name-status"]), "M\ta\nD\tgone\n");
}

#[test]
fn flags_that_hide_changes_are_cleared_unless_the_operator_set_them() {
    let fixture = Fixture::new();
    for name in ["b", "c", "d"] {
        fixture.write(name, "x\n");
    }
    fixture.commit("second");
    let control = fixture.imported();
    fixture.git(&["update-index", "--skip-worktree", "d"]);
    let before = mark(&fixture, &control);
    fixture.git(&["update-index", "--assume-unchanged", "b"]);
    fixture.git(&["update-index", "--skip-worktree", "c"]);
    fixture.write("late", "x\n");
    fixture.git(&["add", "-N", "late"]);
    let settled = settle(&fixture, &control, &before);
    assert_eq!(settled.unhidden, ["b", "c"]);
    assert_eq!(settled.reset, ["late"]);
    assert_eq!(fixture.git(&["ls-files", "-v"]), "H a\nH b\nH c\nS d\n");
    assert_eq!(fixture.git(&["status", "--porcelain"]), "?? late\n");
}

#[test]
fn an_index_that_nobody_touched_is_not_written() {
    let fixture = Fixture::new();
    let control = fixture.imported();
    let before = mark(&fixture, &control);
    let bytes = std::fs::read(fixture.work.join(".git/index")).unwrap();
    assert_eq!(settle(&fixture, &control, &before), IndexSettled::default());
    assert_eq!(std::fs::read(fixture.work.join(".git/index")).unwrap(), bytes);
}

/// Replaces a directory's hash in the index's own list of trees: git would take the next commit's tree
/// from there.
fn forge_tree_cache(fixture: &Fixture, from: &str, to: &str) {
    let path = fixture.work.join(".git/index");
    let mut bytes = std::fs::read(&path).unwrap();
    let raw = |hex: &str| -> Vec<u8> {
        (0..20).map(|n| u8::from_str_radix(&hex[2 * n..2 * n + 2], 16).unwrap()).collect()
    };
    let (from, to) = (raw(from), raw(to));
    let at = bytes.windows(20).position(|w| w == from).unwrap();
    bytes[at..at + 20].copy_from_slice(&to);
    let end = bytes.len() - 20;
    let sum = std::process::Command::new("sha1sum")
        .arg("-")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .and_then(|mut child| {
            use std::io::Write as _;
            child.stdin.take().unwrap().write_all(&bytes[..end])?;
            child.wait_with_output()
        })
        .unwrap();
    let sum = raw(&String::from_utf8(sum.stdout).unwrap()[..40]);
    bytes[end..].copy_from_slice(&sum);
    std::fs::write(&path, bytes).unwrap();
}

#[test]
fn a_forged_tree_in_the_index_does_not_reach_the_next_commit() {
    let fixture = Fixture::new();
    fixture.write("tests/t", "assert\n");
    fixture.commit("second");
    let honest = fixture.git(&["rev-parse", "HEAD:tests"]);
    let control = fixture.imported();
    fixture.git(&["read-tree", "HEAD"]);
    fixture.git(&["status"]);
    let before = mark(&fixture, &control);
    stage(&fixture, "tests/t", "pass\n");
    let evil = fixture.git(&["write-tree"]);
    let evil = fixture.git(&["rev-parse", &format!("{}:tests", evil.trim())]);
    fixture.git(&["read-tree", "HEAD"]);
    forge_tree_cache(&fixture, honest.trim(), evil.trim());
    let next = |fixture: &Fixture| -> CommitId {
        fixture.write("a", "more\n");
        fixture.git(&["commit", "-q", "-m", "next", "a"]);
        fixture.head()
    };
    settle(&fixture, &control, &before);
    next(&fixture);
    assert_eq!(fixture.git(&["show", "HEAD:tests/t"]), "assert\n");
}

/// An index without a checksum, as git writes it when it is told to leave that out.
fn crafted(version: u32, count: u32, names: &[u8]) -> Vec<u8> {
    [&b"DIRC"[..], &version.to_be_bytes(), &count.to_be_bytes(), names, &[0; 20]].concat()
}

/// Entries of which each but the first has only the end of its path.
fn entries_of_version_4(count: u32, shared: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for n in 0..count {
        out.extend([0; 24]);
        out.extend(0o100_644_u32.to_be_bytes());
        out.extend([0; 12]);
        out.extend([1; 20]);
        out.extend(0xfff_u16.to_be_bytes());
        if n == 0 {
            out.push(0);
            out.extend(b"a/".repeat(shared / 2));
        } else {
            out.push(8);
        }
        out.extend(format!("{n:08}\0").bytes());
    }
    out
}

fn extension(name: &[u8], content: &[u8]) -> Vec<u8> {
    [name, &u32::try_from(content.len()).unwrap().to_be_bytes(), content].concat()
}

#[test]
fn an_index_that_stands_for_too_much_is_unreadable() {
    let deep = b"x\0-1 1\n".repeat(100_000);
    let no_end = [&[1; 60][..], &[0, 1], &[1; 400]].concat();
    for (what, bytes, readable) in [
        ("few", crafted(4, 100, &entries_of_version_4(100, 4_000)), true),
        ("names", crafted(4, 4_000, &entries_of_version_4(4_000, 4_000)), false),
        ("entries", crafted(4, 5_001, &entries_of_version_4(5_001, 2)), false),
        ("count", crafted(2, u32::MAX, b""), false),
        ("children", crafted(2, 0, &extension(b"TREE", b"\0-1 2147483647\n")), false),
        ("depth", crafted(2, 0, &extension(b"TREE", &deep)), false),
        ("no end", crafted(2, 1, &no_end), false),
    ] {
        let fixture = Fixture::new();
        let control = fixture.imported();
        let wanted = fixture.git(&["ls-files", "-s"]);
        let before = mark(&fixture, &control);
        fixture.write(".git/index", &bytes);
        assert_eq!(fixture.open().index_readable(), readable, "{what}");
        if readable {
            assert_eq!(settle(&fixture, &control, &before).reset.len(), 101);
        } else {
            assert_eq!(settle(&fixture, &control, &before), IndexSettled::default(), "{what}");
            let tree = control.facts().tree_of(&fixture.head()).unwrap();
            assert!(fixture.open().reset_index(&control, &tree).is_err(), "{what}");
            fixture.remove(".git/index");
            fixture.git(&["reset", "-q"]);
        }
        assert_eq!(fixture.git(&["ls-files", "-s"]), wanted, "{what}");
    }
}

#[test]
fn every_form_that_git_gives_an_index_can_be_read() {
    let fixture = Fixture::new();
    for n in 0..300 {
        fixture.write(&format!("{}/{n}", "long-name/".repeat(n % 7)), "x");
    }
    fixture.write("link-with-é", "x");
    fixture.commit("many");
    fixture.git(&["status"]);
    for version in ["2", "3", "4"] {
        fixture.git(&["update-index", "--index-version", version]);
        fixture.git(&["update-index", "--skip-worktree", "a"]);
        fixture.git(&["read-tree", "HEAD"]);
        fixture.git(&["-c", "core.untrackedCache=true", "status"]);
        assert!(fixture.open().index_readable(), "{version}");
        fixture.git(&["update-index", "--no-skip-worktree", "a"]);
        assert!(fixture.open().index_readable(), "{version}");
    }
    fixture.git(&[
        "-c",
        "index.threads=4",
        "-c",
        "index.recordOffsetTable=true",
        "update-index",
        "--refresh",
    ]);
    assert!(fixture.open().index_readable());
    fixture.remove("a");
    fixture.git(&["rm", "-q", "--cached", "a"]);
    assert!(fixture.open().index_readable());
}

#[test]
fn what_is_written_as_an_index_is_read_as_it_was_by_git_and_by_the_library() {
    let fixture = Fixture::new();
    let id = fixture.git(&["rev-parse", "HEAD:a"]).trim().parse().unwrap();
    let path = fixture.work.join(".git/index");
    let entry = |(path, (flags, flags_extended)): &(String, (u16, u16))| IndexEntry {
        flags: *flags,
        flags_extended: *flags_extended,
        dev: 1,
        ino: u32::MAX,
        uid: 7,
        mtime: IndexTime::new(-3, 4),
        ..index_entry(path.as_bytes(), 0o100_644, id, None)
    };
    let shown = |entry: &IndexEntry| {
        let stamp = (entry.dev, entry.ino, entry.mode, entry.uid, entry.mtime.seconds());
        let flags = (entry.flags & (ASSUME | STAGE), entry.flags_extended & (SKIP | NEW));
        (entry.path.clone(), flags, stamp, entry.id)
    };
    let plain: Vec<_> = (1..20).map(|n| ("x".repeat(n), (ASSUME, 0))).collect();
    let odd = [
        (format!("{}x", "long/".repeat(900)), (0, SKIP)),
        ("new".to_owned(), (0, NEW)),
        ("both".to_owned(), (0x2000, 0)),
        ("both".to_owned(), (0x1000, 0)),
    ];
    let all = odd.into_iter().chain(plain.clone()).collect();
    for (version, entries) in [(2, plain), (3, all)] {
        index_entries::write(&path, entries.iter().map(entry).collect()).unwrap();
        assert!(fixture.open().hides_files().unwrap());
        let mut right: Vec<_> = entries.iter().map(|found| shown(&entry(found))).collect();
        right.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
        let index = Index::open(&path).unwrap();
        assert_eq!(index.version(), version);
        assert_eq!(index.iter().map(|found| shown(&found)).collect::<Vec<_>>(), right);
        let lines = fixture.git(&["ls-files", "--stage"]);
        let paths = lines.lines().filter_map(|line| line.split('\t').next_back());
        assert!(paths.map(str::as_bytes).eq(right.iter().map(|found| found.0.as_slice())));
        fixture.git(&["fsck", "--no-dangling"]);
    }
    index_entries::write(&path, vec![entry(&("a".to_owned(), (0, 0)))]).unwrap();
    assert!(!fixture.open().hides_files().unwrap());
}
