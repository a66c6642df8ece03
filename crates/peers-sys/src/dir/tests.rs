//! What the operations do on honest files; [`super::attacks`] has the others.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use super::*;
use crate::testing;

fn root() -> (tempfile::TempDir, SafeDir) {
    let tmp = tempfile::tempdir().unwrap();
    let dir = SafeDir::open_root(tmp.path()).unwrap();
    (tmp, dir)
}

fn mode(path: impl AsRef<Path>) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn names(dir: &SafeDir) -> Vec<String> {
    dir.list(1000).unwrap().entries.into_iter().map(|e| e.name.into_string().unwrap()).collect()
}

#[test]
fn what_is_published_is_read_back_with_mode_0600() {
    let (tmp, dir) = root();
    dir.publish("state.json", b"one").unwrap();
    assert_eq!(dir.read("state.json", 100).unwrap(), b"one");
    dir.publish("state.json", b"two, longer").unwrap();
    assert_eq!(dir.read_text("state.json", 100).unwrap(), "two, longer");
    dir.publish_unsynced("state.json", b"3").unwrap();
    assert_eq!(dir.read("state.json", 100).unwrap(), b"3");
    assert_eq!(mode(tmp.path().join("state.json")), 0o600);
    assert_eq!(names(&dir), ["state.json"]);
}

#[test]
fn a_reader_of_the_old_version_keeps_it() {
    use std::io::Read;
    let (_tmp, dir) = root();
    dir.publish("f", b"old").unwrap();
    let mut old = dir.open_read("f").unwrap();
    dir.publish("f", b"new").unwrap();
    let mut text = String::new();
    old.read_to_string(&mut text).unwrap();
    assert_eq!(text, "old");
}

#[test]
fn publish_new_refuses_a_taken_name() {
    let (_tmp, dir) = root();
    dir.publish_new("f", b"one").unwrap();
    assert!(matches!(dir.publish_new("f", b"two").unwrap_err(), FileError::AlreadyExists { .. }));
    assert_eq!(dir.read("f", 10).unwrap(), b"one");
    assert_eq!(names(&dir), ["f"]);
}

#[test]
fn published_modes_are_exact_whatever_the_umask() {
    let (tmp, dir) = root();
    dir.publish_mode("plain", b"", FileMode::Plain).unwrap();
    dir.publish_mode("tool", b"#!", FileMode::Executable).unwrap();
    assert_eq!(mode(tmp.path().join("plain")), 0o644);
    assert_eq!(mode(tmp.path().join("tool")), 0o755);
}

#[test]
fn a_cap_admits_exactly_its_size() {
    let (_tmp, dir) = root();
    dir.publish("f", b"12345").unwrap();
    assert_eq!(dir.read("f", 5).unwrap(), b"12345");
    let error = dir.read("f", 4).unwrap_err();
    assert!(matches!(error, FileError::TooLarge { cap: 4, .. }));
    assert!(!error.is_unsafe());
    dir.publish("empty", b"").unwrap();
    assert_eq!(dir.read("empty", 0).unwrap(), b"");
}

#[test]
fn missing_files_are_none_or_an_error_as_asked() {
    let (_tmp, dir) = root();
    assert_eq!(dir.read_opt("no", 10).unwrap(), None);
    assert_eq!(dir.read_text_opt("no", 10).unwrap(), None);
    let error = dir.read("no", 10).unwrap_err();
    assert!(error.is_not_found() && !error.is_unsafe());
    assert!(error.to_string().ends_with("/no does not exist"), "{error}");
    assert_eq!(dir.stat("no").unwrap(), None);
    assert!(dir.subdir("no").unwrap_err().is_not_found());
}

#[test]
fn text_is_strict() {
    let (_tmp, dir) = root();
    dir.publish("f", b"ab\xff").unwrap();
    assert!(matches!(dir.read_text("f", 10).unwrap_err(), FileError::NotUtf8 { offset: 2, .. }));
}

#[test]
fn a_tail_has_whole_lines_only() {
    let (_tmp, dir) = root();
    dir.publish("log", b"one\ntwo\nthree\n").unwrap();
    let tail = |window| dir.read_tail("log", window).unwrap();
    assert_eq!(tail(100), Tail { bytes: b"one\ntwo\nthree\n".to_vec(), cut: false });
    assert_eq!(tail(14), Tail { bytes: b"one\ntwo\nthree\n".to_vec(), cut: false });
    assert_eq!(tail(13), Tail { bytes: b"two\nthree\n".to_vec(), cut: true });
    assert_eq!(tail(10), Tail { bytes: b"two\nthree\n".to_vec(), cut: true });
    assert_eq!(tail(9), Tail { bytes: b"three\n".to_vec(), cut: true });
    assert_eq!(tail(3), Tail { bytes: Vec::new(), cut: true });
}

#[test]
fn directories_are_made_private_component_by_component() {
    let (tmp, dir) = root();
    let deep = dir.create_path("a/b/c").unwrap();
    deep.publish("f", b"x").unwrap();
    assert_eq!(mode(tmp.path().join("a")), 0o700);
    assert_eq!(mode(tmp.path().join("a/b/c")), 0o700);
    assert_eq!(dir.open_path("a/b/c").unwrap().identity(), deep.identity());
    let (parent, name) = dir.parent_of("a/b/c/f").unwrap();
    assert_eq!(parent.read(name, 10).unwrap(), b"x");
    let (parent, name) = dir.create_parent_of("new/file").unwrap();
    assert_eq!((parent.path(), name.to_str()), (tmp.path().join("new").as_path(), Some("file")));
    assert_eq!(dir.open_path("").unwrap().identity(), dir.identity());
}

#[test]
fn listing_knows_kinds_and_its_limit() {
    let (tmp, dir) = root();
    dir.publish("b", b"").unwrap();
    dir.create_subdir("a").unwrap();
    symlink("b", tmp.path().join("c")).unwrap();
    let listing = dir.list(3).unwrap();
    let kinds: Vec<_> = listing.entries.iter().map(|e| (e.name.to_str().unwrap(), e.kind)).collect();
    assert_eq!(kinds, [("a", Kind::Dir), ("b", Kind::File), ("c", Kind::Symlink)]);
    assert!(!listing.truncated);
    let listing = dir.list(2).unwrap();
    assert_eq!((listing.entries.len(), listing.truncated), (2, true));
}

#[test]
fn renaming_replaces_and_reports_a_missing_source() {
    let (_tmp, dir) = root();
    dir.publish("a", b"a").unwrap();
    dir.publish("b", b"b").unwrap();
    dir.rename("a", "b").unwrap();
    assert_eq!(dir.read("b", 10).unwrap(), b"a");
    assert!(dir.rename("a", "b").unwrap_err().is_not_found());
    let other = dir.create_subdir("other").unwrap();
    dir.rename_into("b", &other, "c").unwrap();
    assert_eq!(other.read("c", 10).unwrap(), b"a");
    dir.publish("f", b"").unwrap();
    assert!(matches!(dir.rename("f", "other").unwrap_err(), FileError::NotRegular { .. }));
}

#[test]
fn removing_a_file_tells_whether_there_was_one() {
    let (_tmp, dir) = root();
    dir.publish("f", b"").unwrap();
    assert!(dir.remove_file("f").unwrap());
    assert!(!dir.remove_file("f").unwrap());
    dir.create_subdir("d").unwrap();
    assert!(matches!(dir.remove_file("d").unwrap_err(), FileError::NotRegular { .. }));
}

#[test]
fn a_tree_is_removed_whatever_its_modes_and_depth() {
    let (tmp, dir) = root();
    let mut deep = dir.create_subdir("tree").unwrap();
    deep.publish("f", b"").unwrap();
    for _ in 0..300 {
        deep = deep.create_subdir("d").unwrap();
        deep.publish("f", b"").unwrap();
    }
    let locked = dir.create_path("tree/locked/inner").unwrap();
    locked.publish("f", b"").unwrap();
    for (path, bits) in [("tree/locked/inner", 0o000), ("tree/locked", 0o500)] {
        fs::set_permissions(tmp.path().join(path), fs::Permissions::from_mode(bits)).unwrap();
    }
    assert!(dir.remove_tree("tree").unwrap());
    assert!(names(&dir).is_empty());
    assert!(!dir.remove_tree("tree").unwrap());
    dir.publish("f", b"").unwrap();
    assert!(dir.remove_tree("f").unwrap());
}

#[test]
fn a_tree_deeper_than_there_are_descriptors_is_removed() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let test = "dir::tests::a_tree_deeper_than_there_are_descriptors_is_removed";
    let Some(place) = testing::in_child(test) else { return };
    let dir = SafeDir::open_root(&place).unwrap();
    let mut deep = dir.create_subdir("tree").unwrap();
    for _ in 0..400 {
        deep = deep.create_subdir("d").unwrap();
    }
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, 100, hard).unwrap();
    assert!(dir.remove_tree("tree").unwrap());
    assert!(names(&dir).is_empty());
}

#[test]
fn old_temporary_files_are_swept_and_nothing_else() {
    let (_tmp, dir) = root();
    for name in ["a.0123456789abcdef.tmp", "b.tmp", ".0123456789abcdef.tmp", "c.0123456789ABCDEF.tmp", "d"] {
        fs::write(dir.path().join(name), "").unwrap();
    }
    dir.create_subdir("e.0123456789abcdef.tmp").unwrap();
    assert_eq!(dir.sweep_temps(crate::clock::now()).unwrap(), 0, "too young");
    let later = crate::clock::now().plus(Duration::from_secs(601));
    assert_eq!(dir.sweep_temps(later).unwrap(), 1);
    assert!(!names(&dir).contains(&"a.0123456789abcdef.tmp".to_owned()));
    assert_eq!(names(&dir).len(), 5);
}

#[test]
fn in_place_writing_keeps_the_inode() {
    let (_tmp, dir) = root();
    dir.write_in_place("f", b"a longer text").unwrap();
    let before = dir.stat("f").unwrap().unwrap();
    dir.write_in_place("f", b"short").unwrap();
    assert_eq!(dir.read("f", 100).unwrap(), b"short");
    assert_eq!(dir.stat("f").unwrap().unwrap().id, before.id);
    assert_eq!(before.mode, 0o600);
}

#[test]
fn files_for_children_append_or_start_over() {
    use std::io::Write;
    let (_tmp, dir) = root();
    for (mode, expected) in
        [(WriteMode::Append, "ab"), (WriteMode::Append, "abab"), (WriteMode::Truncate, "ab")]
    {
        dir.create_file_for_write("log", mode).unwrap().write_all(b"ab").unwrap();
        assert_eq!(dir.read_text("log", 100).unwrap(), expected);
    }
}

#[test]
fn a_publish_that_finds_no_room_leaves_the_old_content_and_no_rest() {
    let test = "dir::tests::a_publish_that_finds_no_room_leaves_the_old_content_and_no_rest";
    let Some(place) = testing::in_child(test) else { return };
    let dir = SafeDir::open_root(&place).unwrap();
    dir.publish("f", b"old").unwrap();
    let error = testing::with_file_size_limit(1000, || dir.publish("f", &[b'x'; 5000]).unwrap_err());
    assert!(error.is_disk_full(), "{error}");
    assert_eq!(dir.read("f", 10_000).unwrap(), b"old");
    assert_eq!(names(&dir), ["f"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_publish_on_a_full_disk_leaves_the_old_content_and_no_rest() {
    let test = "dir::tests::a_publish_on_a_full_disk_leaves_the_old_content_and_no_rest";
    let Some(place) = testing::child_place(test) else {
        let tmp = tempfile::tempdir().unwrap();
        testing::run_in_mount(test, tmp.path(), "mount -t tmpfs -o size=64k none \"$0\"");
        return;
    };
    let dir = SafeDir::open_root(&place).unwrap();
    dir.publish("f", b"old").unwrap();
    for publish in [SafeDir::publish, SafeDir::publish_unsynced, SafeDir::publish_new] {
        let error = publish(&dir, "f", &vec![b'x'; 100_000]).unwrap_err();
        let FileError::Io { source, .. } = &error else { panic!("{error}") };
        assert_eq!(source.kind(), std::io::ErrorKind::StorageFull, "{error}");
        assert!(error.is_disk_full());
        assert_eq!(dir.read("f", 10_000).unwrap(), b"old");
        assert_eq!(names(&dir), ["f"]);
    }
    dir.publish("f", &vec![b'x'; 50_000]).unwrap();
    assert_eq!(dir.read("f", 50_000).unwrap().len(), 50_000, "the room that was taken is free again");
}

/// The bytes of what is published by one that dies.
#[cfg(target_os = "linux")]
const VERSION: usize = 100_000;

/// Publishes in the way, and dies at the call, that the step of this child names.
#[cfg(target_os = "linux")]
fn publish_and_die(place: &Path) {
    use std::os::fd::{AsFd as _, AsRawFd as _};

    use nix::libc;
    use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

    let dir = SafeDir::open_root(place).unwrap();
    let step = testing::child_step();
    let (how, call) = step.split_once(' ').unwrap();
    let fd = u64::try_from(dir.as_fd().as_raw_fd()).unwrap();
    let first_argument = |is: SeccompCmpOp| {
        let is = SeccompCondition::new(0, SeccompCmpArgLen::Dword, is, fd).unwrap();
        vec![SeccompRule::new(vec![is]).unwrap()]
    };
    let any = Vec::new;
    let deadly = match call {
        "open" => vec![(libc::SYS_openat2, any()), (libc::SYS_openat, any())],
        "write" => vec![(libc::SYS_write, any())],
        "fsync of the file" => vec![(libc::SYS_fsync, first_argument(SeccompCmpOp::Ne))],
        "rename" => vec![(libc::SYS_renameat, any()), (libc::SYS_renameat2, any())],
        "link" => vec![(libc::SYS_linkat, any())],
        "unlink" => vec![(libc::SYS_unlinkat, any())],
        "fsync of the directory" => vec![(libc::SYS_fsync, first_argument(SeccompCmpOp::Eq))],
        _ => panic!("{step}"),
    };
    if how == "linked" {
        fs::write(place.join("f.0123456789abcdef.tmp"), vec![b'b'; VERSION]).unwrap();
    }
    if !testing::die_at(deadly) {
        return;
    }
    match how {
        "replaced" => dir.publish("f", &vec![b'b'; VERSION]).unwrap(),
        "new" => dir.publish_new("f", &vec![b'b'; VERSION]).unwrap(),
        // As on a file system that cannot rename without replacing.
        "linked" => {
            let names = ["f.0123456789abcdef.tmp", "f"].map(std::ffi::OsStr::new);
            super::publish::link_noreplace(dir.as_fd(), names[0], names[1]).unwrap();
        }
        _ => panic!("{step}"),
    }
    panic!("{step}: there is no such step");
}

#[cfg(target_os = "linux")]
#[test]
fn a_publisher_killed_at_each_step_leaves_one_whole_version_and_no_rest_that_is_not_swept() {
    use std::os::unix::process::ExitStatusExt as _;

    let test =
        "dir::tests::a_publisher_killed_at_each_step_leaves_one_whole_version_and_no_rest_that_is_not_swept";
    if let Some(place) = testing::child_place(test) {
        return publish_and_die(&place);
    }
    // The step, which version is whole then, and whether a temporary file is left.
    let rows = [
        ("replaced open", Some(b'a'), false),
        ("replaced write", Some(b'a'), true),
        ("replaced fsync of the file", Some(b'a'), true),
        ("replaced rename", Some(b'a'), true),
        ("replaced fsync of the directory", Some(b'b'), false),
        ("new open", None, false),
        ("new write", None, true),
        ("new fsync of the file", None, true),
        ("new rename", None, true),
        ("new fsync of the directory", Some(b'b'), false),
        ("linked link", None, true),
        ("linked unlink", Some(b'b'), true),
    ];
    for (step, whole, rest) in rows {
        let (tmp, dir) = root();
        if step.starts_with("replaced") {
            dir.publish("f", &vec![b'a'; VERSION]).unwrap();
        }
        let ended = testing::run_child(test, tmp.path(), step);
        if ended.status.success() {
            eprintln!("not shown: {}", String::from_utf8_lossy(&ended.stderr));
            return;
        }
        let said = [&ended.stdout[..], &ended.stderr].map(String::from_utf8_lossy).concat();
        assert_eq!(ended.status.signal(), Some(nix::libc::SIGSYS), "{step}: {said}");

        let expected = whole.map(|byte| vec![byte; VERSION]);
        let is_whole = |when: &str| {
            assert!(dir.read_opt("f", 1_000_000).unwrap() == expected, "{step}: {when}");
        };
        if step == "linked unlink" {
            // Both names are those of the one whole file: refused until one of them has gone.
            assert!(matches!(dir.read("f", 1_000_000), Err(FileError::HardLinked { links: 2, .. })));
        } else {
            is_whole("at once");
        }
        assert_eq!(names(&dir).len(), usize::from(whole.is_some()) + usize::from(rest), "{step}");
        let later = crate::clock::now().plus(Duration::from_hours(1));
        assert_eq!(dir.sweep_temps(later).unwrap(), usize::from(rest), "{step}");
        assert_eq!(names(&dir), Vec::from_iter(whole.map(|_| "f")), "{step}");
        is_whole("after the sweep");
    }
}

#[test]
fn a_publisher_killed_at_any_moment_leaves_one_whole_version() {
    let test = "dir::tests::a_publisher_killed_at_any_moment_leaves_one_whole_version";
    if let Some(place) = testing::child_place(test) {
        let dir = SafeDir::open_root(&place).unwrap();
        loop {
            for byte in [b'a', b'b'] {
                dir.publish("f", &vec![byte; 100_000]).unwrap();
                testing::say_ready();
            }
        }
    }
    let (tmp, dir) = root();
    for words in 0..5 {
        let mut child = testing::start_child(test, tmp.path());
        for _ in 0..words {
            child.wait_for_word();
        }
        child.kill();
        let content = dir.read("f", 1_000_000).unwrap();
        assert_eq!(content.len(), 100_000);
        assert!(content.iter().all(|b| *b == content[0]));
    }
    dir.sweep_temps(crate::clock::now().plus(Duration::from_hours(1))).unwrap();
    assert_eq!(names(&dir), ["f"]);
}

#[test]
fn a_directory_is_renamed_only_to_a_name_that_is_free() {
    let (tmp, dir) = root();
    let made = SafeDir::open_shared(tmp.path()).unwrap().make_shared_subdir("new").unwrap();
    made.publish("file", b"x").unwrap();
    let into = dir.create_subdir("into").unwrap();
    for (name, target) in [("empty", None), ("file", Some(false)), ("link", Some(true))] {
        match target {
            None => drop(into.create_subdir(name).unwrap()),
            Some(false) => into.publish(name, b"y").unwrap(),
            Some(true) => symlink("nowhere", into.path().join(name)).unwrap(),
        }
        let taken = dir.rename_new_into("new", &into, name);
        assert!(matches!(taken, Err(FileError::AlreadyExists { .. })), "{name}: {taken:?}");
    }
    dir.rename_new_into("new", &into, "free").unwrap();
    assert_eq!(names(&dir), ["into"]);
    assert!(made.still_at(into.path().join("free")));
    assert!(matches!(dir.rename_new_into("new", &into, "other"), Err(FileError::NotFound { .. })));
    let again = SafeDir::open_shared(tmp.path()).unwrap().make_shared_subdir("into");
    assert!(matches!(again, Err(FileError::AlreadyExists { .. })));
}
