//! The state of a work tree, compared with what the program says.

use std::path::Path;

use proptest::prelude::*;

use super::{Fixture, command, fifo, link, put};
use crate::DirtyStatus::{Added, Deleted, Modified};
use crate::{ControlDir, DirtyStatus, TreeState};

/// `git add -A && git write-tree` with a fresh index.
fn by_program(fixture: &Fixture) -> String {
    let index = fixture.path("index");
    drop(std::fs::remove_file(&index));
    for args in [&["read-tree", "HEAD"][..], &["add", "-A"]] {
        let output =
            command(&fixture.work, fixture.dir.path(), args).env("GIT_INDEX_FILE", &index).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let mut command = command(&fixture.work, fixture.dir.path(), &["write-tree"]);
    let output = command.env("GIT_INDEX_FILE", &index).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn state(fixture: &Fixture, control: &ControlDir) -> TreeState {
    control.tree_state(&fixture.work, &fixture.head()).unwrap()
}

fn dirty(fixture: &Fixture, control: &ControlDir) -> Vec<(DirtyStatus, String)> {
    let files = control.dirty_files(&fixture.work, &fixture.head(), 100).unwrap();
    files.into_iter().map(|file| (file.status, file.path)).collect()
}

#[test]
fn a_clean_tree_is_clean_and_each_kind_of_change_is_named() {
    let fixture = Fixture::new();
    fixture.write("dir/b", "b");
    fixture.write("dir/c", "c");
    fixture.write("gone/x/y", "y");
    fixture.commit("more");
    let control = fixture.imported();
    assert!(!state(&fixture, &control).dirty);
    fixture.write("dir/b", "B");
    fixture.remove("dir/c");
    std::fs::remove_dir_all(fixture.work.join("gone")).unwrap();
    fixture.write("new/file", "n");
    let after = state(&fixture, &control);
    assert!(after.dirty);
    assert_eq!(after.worktree_tree.as_str(), by_program(&fixture));
    let expected = [
        (Modified, "dir/b".to_owned()),
        (Deleted, "dir/c".to_owned()),
        (Deleted, "gone/x/y".to_owned()),
        (Added, "new/file".to_owned()),
    ];
    assert_eq!(dirty(&fixture, &control), expected);
    assert_eq!(control.dirty_files(&fixture.work, &fixture.head(), 2).unwrap().len(), 2);
}

#[test]
fn modes_links_and_changes_of_type_count() {
    let fixture = Fixture::new();
    let control = fixture.imported();
    std::fs::set_permissions(fixture.work.join("a"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    assert_eq!(dirty(&fixture, &control), [(DirtyStatus::Modified, "a".to_owned())]);
    assert_eq!(state(&fixture, &control).worktree_tree.as_str(), by_program(&fixture));
    fixture.remove("a");
    link("one\n", &fixture.work.join("a"));
    assert_eq!(state(&fixture, &control).worktree_tree.as_str(), by_program(&fixture));
    fixture.remove("a");
    fixture.write("a/inner", "x");
    assert_eq!(state(&fixture, &control).worktree_tree.as_str(), by_program(&fixture));
    assert_eq!(dirty(&fixture, &control).len(), 2);
}

#[test]
fn an_edit_in_the_same_instant_with_the_same_size_and_an_old_time_is_seen() {
    let fixture = Fixture::new();
    let control = fixture.imported();
    let clean = state(&fixture, &control);
    assert!(!clean.dirty);
    for round in 0..50 {
        let text = if round % 2 == 0 { "two\n" } else { "one\n" };
        let before = std::fs::metadata(fixture.work.join("a")).unwrap().modified().unwrap();
        fixture.write("a", text);
        std::fs::File::options()
            .write(true)
            .open(fixture.work.join("a"))
            .unwrap()
            .set_modified(before)
            .unwrap();
        assert_eq!(state(&fixture, &control).dirty, round % 2 == 0, "round {round}");
    }
}

#[test]
fn nothing_in_the_agents_git_directory_hides_a_change() {
    let fixture = Fixture::new();
    fixture.write("b", "b");
    fixture.commit("b");
    let control = fixture.imported();
    fixture.git(&["update-index", "--assume-unchanged", "a"]);
    fixture.git(&["update-index", "--skip-worktree", "b"]);
    fixture.git(&["config", "status.showUntrackedFiles", "no"]);
    fixture.git(&["config", "core.fileMode", "false"]);
    fixture.git(&["config", "core.excludesFile", fixture.path("excludes").to_str().unwrap()]);
    put(&fixture.path("excludes"), b"*\n");
    fixture.write(".git/info/exclude", "*\n");
    fixture.write("a", "changed");
    fixture.write("b", "changed");
    fixture.write("untracked", "x");
    assert_eq!(fixture.git(&["status", "--porcelain"]), "", "the tricks work on git itself");
    assert_eq!(dirty(&fixture, &control).len(), 3);
}

#[test]
fn ignore_files_of_the_tree_and_of_the_operator_count_and_tracked_files_are_never_ignored() {
    let fixture = Fixture::new();
    fixture.write("kept.log", "tracked");
    fixture.commit("log");
    fixture.write(".gitignore", "*.log\nbuild/\n");
    fixture.commit("ignore");
    let control = fixture.imported();
    fixture.write("new.log", "x");
    fixture.write("build/out", "x");
    assert!(!state(&fixture, &control).dirty);
    fixture.write("kept.log", "changed");
    assert_eq!(dirty(&fixture, &control), [(DirtyStatus::Modified, "kept.log".to_owned())]);
    fixture.write("kept.log", "tracked");
    fixture.write("x.swp", "editor");
    assert!(state(&fixture, &control).dirty);
    put(&fixture.path("excludes"), b"*.swp\n");
    let control = control.with_excludes(Some(fixture.path("excludes")));
    assert!(!state(&fixture, &control).dirty);
}

#[test]
fn the_directory_that_keeps_a_file_out_of_every_checkout_is_named() {
    let fixture = Fixture::new();
    fixture.write("build/kept", "tracked");
    fixture.commit("kept");
    fixture.write(".gitignore", "build/\n/.venv\n");
    fixture.write("web/.gitignore", "node_modules\n");
    fixture.write("env/.gitignore", "*\n");
    fixture.commit("ignore");
    put(&fixture.path("excludes"), b"out/\n");
    let repo = fixture.open();
    for (path, expected) in [
        (".venv/bin/pytest", Some(".venv")),
        ("build/test", Some("build")),
        ("build/kept", None),
        ("web/node_modules/.bin/vitest", Some("web/node_modules")),
        ("env/bin/pytest", Some("env/bin")),
        ("out/test", Some("out")),
        ("sub/.venv/bin/pytest", None),
        ("a", None),
        ("", None),
    ] {
        assert_eq!(repo.ignored_dir(path, Some(&fixture.path("excludes"))).as_deref(), expected, "{path}");
    }
}

#[test]
fn our_own_directory_never_counts_even_when_it_is_committed() {
    let fixture = Fixture::new();
    fixture.write(".peers/config.yaml", "x");
    let with = fixture.commit("peers");
    let control = fixture.imported();
    fixture.write(".peers/config.yaml", "changed");
    fixture.write(".peers/log/runs.jsonl", "x");
    assert!(!state(&fixture, &control).dirty);
    std::fs::remove_dir_all(fixture.work.join(".peers")).unwrap();
    let after = control.tree_state(&fixture.work, &with).unwrap();
    assert!(!after.dirty && after.head_tree == after.worktree_tree);
    fixture.write("sub/.peers/x", "only the one at the top is ours");
    assert!(state(&fixture, &control).dirty);
}

#[test]
fn special_files_are_neither_opened_nor_counted() {
    let fixture = Fixture::new();
    let control = fixture.imported();
    fifo(&fixture.work.join("fifo"));
    fifo(&fixture.work.join(".gitignore"));
    fifo(&fixture.work.join(".gitattributes"));
    assert!(!state(&fixture, &control).dirty);
    fixture.remove("a");
    fifo(&fixture.work.join("a"));
    assert_eq!(dirty(&fixture, &control), [(DirtyStatus::Deleted, "a".to_owned())]);
}

#[test]
fn a_repository_inside_the_repository_hides_nothing() {
    let fixture = Fixture::new();
    let control = fixture.imported();
    std::fs::create_dir(fixture.work.join("inner")).unwrap();
    super::git_in(&fixture.work.join("inner"), fixture.dir.path(), &["init", "-q", "--template="]);
    fixture.write("inner/file", "1");
    let one = state(&fixture, &control);
    assert!(one.dirty);
    fixture.write("inner/file", "2");
    assert_ne!(one.worktree_tree, state(&fixture, &control).worktree_tree);
    // Its own `.git` is never opened, whatever it is.
    std::fs::remove_dir_all(fixture.work.join("inner/.git")).unwrap();
    fifo(&fixture.work.join("inner/.git"));
    assert!(state(&fixture, &control).dirty);
}

#[test]
fn other_spellings_of_the_git_directory_make_the_tree_dirty() {
    let fixture = Fixture::new();
    let control = fixture.imported();
    fixture.write(".GIT/config", "x");
    let state = state(&fixture, &control);
    assert!(state.dirty);
    assert_eq!(state.unrepresentable, [".GIT"]);
}

#[test]
fn a_submodule_is_its_commit_and_its_files_are_hashed_beside() {
    let module = Fixture::new();
    let fixture = Fixture::new();
    fixture.git(&["submodule", "add", "-q", module.work.to_str().unwrap(), "sub"]);
    fixture.commit("submodule");
    let control = fixture.imported();
    let before = state(&fixture, &control);
    assert!(!before.dirty);
    assert_eq!(before.submodules.len(), 1);
    fixture.git(&["config", "submodule.sub.ignore", "all"]);
    fixture.write("sub/a", "changed\n");
    let after = state(&fixture, &control);
    assert!(after.dirty && after.submodules[0].changed && !before.submodules[0].changed);
    assert_eq!(after.worktree_tree, before.worktree_tree, "what would be committed is the same");
    assert_ne!(before.submodules[0].content, after.submodules[0].content);
    assert_eq!(before.key().unwrap(), before.worktree_tree);
    assert_ne!(after.key().unwrap(), after.worktree_tree);
    assert_eq!(dirty(&fixture, &control), [(DirtyStatus::Modified, "sub".to_owned())]);
    super::git_in(&fixture.work.join("sub"), fixture.dir.path(), &["commit", "-q", "-am", "inside"]);
    let bumped = state(&fixture, &control);
    assert!(bumped.dirty);
    assert_eq!(bumped.worktree_tree.as_str(), by_program(&fixture));
    assert_eq!(dirty(&fixture, &control), [(DirtyStatus::Modified, "sub".to_owned())]);
}

#[test]
fn nothing_is_written_to_the_agents_repository_and_no_objects_to_ours() {
    let fixture = Fixture::new();
    let control = fixture.imported();
    fixture.write("new", "x");
    let list = |dir: &Path| {
        let mut out = Vec::new();
        let mut todo = vec![dir.to_owned()];
        while let Some(dir) = todo.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let entry = entry.unwrap();
                out.push((entry.path(), entry.metadata().unwrap().modified().unwrap()));
                if entry.file_type().unwrap().is_dir() {
                    todo.push(entry.path());
                }
            }
        }
        out.sort();
        out
    };
    let git = list(&fixture.work.join(".git"));
    let objects = list(&control.objects_dir());
    assert!(state(&fixture, &control).dirty);
    assert_eq!(git, list(&fixture.work.join(".git")));
    assert_eq!(objects, list(&control.objects_dir()));
}

#[test]
fn a_directory_deeper_than_any_handle_limit_makes_the_tree_dirty_and_is_named() {
    let fixture = Fixture::new();
    let control = fixture.imported();
    let mut dir = fixture.work.clone();
    for _ in 0..400 {
        dir.push("d");
        std::fs::create_dir(&dir).unwrap();
    }
    let state = control.tree_state(&fixture.work, &fixture.head()).unwrap();
    assert!(state.dirty && state.unrepresentable.len() == 1, "{state:?}");
    assert_eq!(state.too_deep, [vec![b"d".to_vec(); 257].join(&b'/')]);
}

#[test]
fn the_cache_survives_a_restart_and_its_loss() {
    let fixture = Fixture::new();
    let control = fixture.imported();
    let first = state(&fixture, &control);
    assert_eq!(state(&fixture, &fixture.control()), first);
    for entry in std::fs::read_dir(control.path().join("peers")).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("stamps-") {
            std::fs::write(path, b"junk").unwrap();
        }
    }
    assert_eq!(state(&fixture, &fixture.control()), first);
}

#[test]
fn a_trusted_stamp_saves_the_reading_unless_the_conversion_changed() {
    let fixture = Fixture::new();
    let mut control = fixture.imported();
    control.clock = super::tomorrow;
    let honest = state(&fixture, &control);
    let lie = git2::Oid::hash_object(git2::ObjectType::Blob, b"lie").unwrap();
    control.cache.borrow_mut().as_mut().unwrap().entries.get_mut(&b"a"[..]).unwrap().id = lie;
    assert!(state(&fixture, &control).dirty, "the cache was asked");
    fixture.write(".gitattributes", "a text\n");
    fixture.commit("attributes");
    drop(control.import(&fixture.open(), None).unwrap());
    assert!(!state(&fixture, &control).dirty, "it was not asked about another conversion");
    assert_ne!(state(&fixture, &control).head_tree, honest.head_tree);
}

/// A path of few letters, so that files and directories collide.
fn path() -> impl Strategy<Value = String> {
    proptest::collection::vec("[abx]|b\\.log|k\\.txt", 1..4).prop_map(|parts| parts.join("/"))
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(b"plain\n".to_vec()),
        Just(b"a\r\nb\r\n".to_vec()),
        Just(b"mixed\r\nlines\n".to_vec()),
        Just(b"lone\rcr\r\n".to_vec()),
        Just(b"$Id: x $ and $Id$\r\n".to_vec()),
        Just(b"bin\0\r\n".to_vec()),
        Just(Vec::new()),
        proptest::collection::vec(any::<u8>(), 0..40),
    ]
}

fn ignore_lines() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("*.log".to_owned()),
        Just("!b.log".to_owned()),
        Just("/a".to_owned()),
        Just("a/".to_owned()),
        Just("b/x".to_owned()),
        Just("**/x/".to_owned()),
        Just("a/**".to_owned()),
        Just("!a/b".to_owned()),
        Just("*".to_owned()),
        Just("!*/".to_owned()),
        Just("[!a]".to_owned()),
        Just("x  ".to_owned()),
        Just("# c\r".to_owned()),
        "[abx*?/!\\[\\]\\\\]{1,6}",
    ];
    proptest::collection::vec(line, 0..4).prop_map(|lines| lines.join("\n") + "\n")
}

fn attribute_lines() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("* text=auto"),
        Just("*.txt text"),
        Just("*.log -text"),
        Just("a eol=crlf"),
        Just("b text=auto eol=crlf"),
        Just("x ident"),
        Just("b/* binary"),
        Just("[attr]mine text ident"),
        Just("x mine"),
        Just("a !text"),
        Just("*.txt crlf=input"),
        Just("\"a\" text filter=evil diff=evil"),
    ];
    proptest::collection::vec(line, 0..4).prop_map(|lines| lines.join("\n") + "\n")
}

#[derive(Debug, Clone)]
enum Step {
    Write(String, Vec<u8>),
    Ignore(String, String),
    Attributes(String, String),
    Link(String),
    Executable(String),
    Remove(String),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (path(), content()).prop_map(|(p, c)| Step::Write(p, c)),
        1 => (path(), ignore_lines()).prop_map(|(p, c)| Step::Ignore(p, c)),
        1 => ignore_lines().prop_map(|c| Step::Ignore(String::new(), c)),
        1 => (path(), attribute_lines()).prop_map(|(p, c)| Step::Attributes(p, c)),
        1 => attribute_lines().prop_map(|c| Step::Attributes(String::new(), c)),
        1 => path().prop_map(Step::Link),
        1 => path().prop_map(Step::Executable),
        2 => path().prop_map(Step::Remove),
    ]
}

/// Makes room for a path and does the step; what is in the way goes.
fn apply(work: &Path, step: &Step) {
    let clear = |path: &Path| match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(path).unwrap(),
        Ok(_) => std::fs::remove_file(path).unwrap(),
        Err(_) => {}
    };
    let room = |name: &str| {
        let path = work.join(name);
        for parent in path.ancestors().skip(1).take_while(|parent| *parent != work) {
            if parent.symlink_metadata().is_ok_and(|meta| !meta.is_dir()) {
                std::fs::remove_file(parent).unwrap();
            }
        }
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        clear(&path);
        path
    };
    let inside =
        |dir: &str, name: &str| if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") };
    match step {
        Step::Write(name, bytes) => std::fs::write(room(name), bytes).unwrap(),
        Step::Ignore(dir, text) => std::fs::write(room(&inside(dir, ".gitignore")), text).unwrap(),
        Step::Attributes(dir, text) => std::fs::write(room(&inside(dir, ".gitattributes")), text).unwrap(),
        Step::Link(name) => link("some/where", &room(name)),
        Step::Executable(name) => {
            let path = room(name);
            std::fs::write(&path, "#!\n").unwrap();
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        Step::Remove(name) => clear(&work.join(name)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_state_of_any_small_tree_is_what_the_program_writes(
        first in proptest::collection::vec(step(), 1..12),
        second in proptest::collection::vec(step(), 0..8),
    ) {
        let fixture = Fixture::unborn();
        for step in &first {
            apply(&fixture.work, step);
        }
        fixture.commit("first");
        let mut control = fixture.imported();
        // Even the youngest stamps are trusted: the cache is in use. (The program runs in between.)
        control.clock = super::tomorrow;
        let before = state(&fixture, &control);
        prop_assert_eq!(before.worktree_tree.as_str(), by_program(&fixture));
        for step in &second {
            apply(&fixture.work, step);
        }
        // Twice: without and with what the first look left in the cache.
        for _ in 0..2 {
            let after = state(&fixture, &control);
            prop_assert_eq!(after.worktree_tree.as_str(), by_program(&fixture));
            prop_assert_eq!(after.dirty, !dirty(&fixture, &control).is_empty());
        }
    }
}
