//! Every way we know to make a file operation touch what it should not.

use std::fs;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::open::{Crossing, open_beneath};
use super::*;
use crate::append::AppendLog;

fn root() -> (tempfile::TempDir, SafeDir) {
    let tmp = tempfile::tempdir().unwrap();
    let dir = SafeDir::open_root(tmp.path()).unwrap();
    (tmp, dir)
}

fn victim(tmp: &tempfile::TempDir) -> std::path::PathBuf {
    let path = tmp.path().join("victim");
    fs::write(&path, "precious").unwrap();
    path
}

/// Every operation that opens the file `f`, by name.
fn openers(dir: &SafeDir) -> Vec<(&'static str, Result<(), FileError>)> {
    vec![
        ("read", dir.read("f", 100).map(drop)),
        ("read_text", dir.read_text("f", 100).map(drop)),
        ("read_tail", dir.read_tail("f", 100).map(drop)),
        ("open_read", dir.open_read("f").map(drop)),
        ("lines", dir.lines("f", 100).map(drop)),
        ("append", dir.create_file_for_write("f", WriteMode::Append).map(drop)),
        ("truncate", dir.create_file_for_write("f", WriteMode::Truncate).map(drop)),
        ("write_in_place", dir.write_in_place("f", b"evil")),
        ("log", AppendLog::open(dir, "f").map(drop)),
    ]
}

#[test]
fn a_symlinked_file_is_refused_and_its_target_untouched() {
    let (tmp, dir) = root();
    let victim = victim(&tmp);
    for target in [victim.to_str().unwrap(), "victim", "nowhere", "/proc/self/environ"] {
        symlink(target, tmp.path().join("f")).unwrap();
        for (op, result) in openers(&dir) {
            let error = result.unwrap_err();
            assert!(matches!(error, FileError::Symlink { .. }), "{op} of {target}: {error}");
            assert!(error.is_unsafe());
        }
        fs::remove_file(tmp.path().join("f")).unwrap();
    }
    assert_eq!(fs::read_to_string(victim).unwrap(), "precious");
    assert!(!tmp.path().join("nowhere").exists());
}

#[test]
fn publishing_over_a_link_replaces_the_link_alone() {
    let (tmp, dir) = root();
    let victim = victim(&tmp);
    symlink(&victim, tmp.path().join("f")).unwrap();
    dir.publish("f", b"ours").unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(dir.read("f", 10).unwrap(), b"ours");
    symlink(&victim, tmp.path().join("g")).unwrap();
    assert!(matches!(dir.publish_new("g", b"x").unwrap_err(), FileError::AlreadyExists { .. }));
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}

#[test]
fn a_symlinked_parent_or_ancestor_is_refused() {
    let (tmp, dir) = root();
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(outside.path().join("b")).unwrap();
    symlink(outside.path(), tmp.path().join("a")).unwrap();
    let errors = [
        dir.subdir("a").unwrap_err(),
        dir.create_subdir("a").unwrap_err(),
        dir.open_path("a/b").unwrap_err(),
        dir.create_path("a/b/c").unwrap_err(),
        dir.parent_of("a/b/f").unwrap_err(),
        dir.create_parent_of("a/b/c/f").unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, FileError::Symlink { .. }), "{error}");
    }
    assert_eq!(fs::read_dir(outside.path().join("b")).unwrap().count(), 0);
}

#[test]
fn the_root_itself_may_be_reached_through_a_link() {
    let (tmp, _) = root();
    let link_home = tempfile::tempdir().unwrap();
    let link = link_home.path().join("link");
    symlink(tmp.path(), &link).unwrap();
    let dir = SafeDir::open_root(&link).unwrap();
    dir.publish("f", b"x").unwrap();
    assert!(tmp.path().join("f").exists());
}

#[test]
fn a_hard_link_is_refused_and_its_other_name_untouched() {
    let (tmp, dir) = root();
    let victim = victim(&tmp);
    fs::hard_link(&victim, tmp.path().join("f")).unwrap();
    for (op, result) in openers(&dir) {
        let error = result.unwrap_err();
        assert!(matches!(error, FileError::HardLinked { links: 2, .. }), "{op}: {error}");
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}

#[test]
fn a_file_swapped_after_opening_is_seen() {
    let (tmp, dir) = root();
    dir.publish("f", b"ours").unwrap();
    let open = || dir.open_at("f".as_ref(), OFlags::RDONLY, Mode::empty()).unwrap();
    let admit = |fd: &std::os::fd::OwnedFd| dir.admit(fd.as_fd(), "f".as_ref(), Kind::File).unwrap_err();

    let fd = open();
    dir.publish("f", b"new").unwrap();
    assert!(matches!(admit(&fd), FileError::Swapped { .. }), "replaced");
    let fd = open();
    fs::rename(tmp.path().join("f"), tmp.path().join("g")).unwrap();
    assert!(matches!(admit(&fd), FileError::Swapped { .. }), "gone");
    symlink("g", tmp.path().join("f")).unwrap();
    assert!(matches!(admit(&fd), FileError::Symlink { .. }), "replaced by a link to itself");

    fs::remove_file(tmp.path().join("f")).unwrap();
    dir.publish("f", b"ours").unwrap();
    let fd = open();
    assert!(dir.admit(fd.as_fd(), "f".as_ref(), Kind::File).is_ok());
    fs::hard_link(tmp.path().join("f"), tmp.path().join("h")).unwrap();
    assert!(matches!(admit(&fd), FileError::HardLinked { links: 2, .. }), "given another name");
}

#[test]
fn a_directory_swapped_after_opening_is_seen() {
    let (tmp, dir) = root();
    let sub = dir.create_subdir("d").unwrap();
    fs::rename(tmp.path().join("d"), tmp.path().join("old")).unwrap();
    fs::create_dir(tmp.path().join("d")).unwrap();
    let error = dir.admit(sub.as_fd(), "d".as_ref(), Kind::Dir).unwrap_err();
    assert!(matches!(error, FileError::Swapped { .. }));
    assert!(!sub.still_at(tmp.path().join("d")));
    assert!(sub.still_at(tmp.path().join("old")));
    sub.publish("f", b"x").unwrap();
    assert!(!tmp.path().join("d/f").exists(), "the handle goes on meaning the old one");
}

#[test]
fn a_directory_swapped_for_a_link_to_itself_is_not_at_its_path_and_a_link_above_it_is_no_matter() {
    let (tmp, dir) = root();
    dir.create_path("up/d").unwrap();
    symlink("up", tmp.path().join("link")).unwrap();
    let path = tmp.path().join("link/d");
    let held = SafeDir::open_root(&path).unwrap();
    assert!(held.still_at(&path) && held.displaced().is_none());
    fs::rename(&path, tmp.path().join("up/was")).unwrap();
    symlink("was", &path).unwrap();
    assert!(!held.still_at(&path));
    assert_eq!(held.displaced().unwrap(), "is now a symbolic link to `was`; it was a directory");
    fs::remove_file(&path).unwrap();
    fs::write(&path, "").unwrap();
    assert_eq!(held.displaced().unwrap(), "is now a file; it was a directory");
}

#[test]
fn a_fifo_is_refused_at_once_with_and_without_a_reader() {
    let (tmp, dir) = root();
    rustix::fs::mknodat(rustix::fs::CWD, tmp.path().join("f"), rustix::fs::FileType::Fifo, Mode::RWXU, 0)
        .unwrap();
    let refused = |when| {
        for (op, result) in openers(&dir) {
            let error = result.unwrap_err();
            assert!(matches!(error, FileError::NotRegular { .. }), "{op} {when}: {error}");
            assert!(error.is_unsafe());
        }
    };
    refused("without a reader");
    let reader =
        rustix::fs::open(tmp.path().join("f"), OFlags::RDWR | OFlags::NONBLOCK, Mode::empty()).unwrap();
    refused("with a reader");
    drop(reader);
}

#[test]
fn sockets_and_directories_are_no_files_and_files_no_directories() {
    let (tmp, dir) = root();
    let socket = std::os::unix::net::UnixListener::bind(tmp.path().join("f")).unwrap();
    for (op, result) in openers(&dir) {
        assert!(matches!(result.unwrap_err(), FileError::NotRegular { .. }), "socket: {op}");
    }
    drop(socket);
    fs::remove_file(tmp.path().join("f")).unwrap();
    fs::create_dir(tmp.path().join("f")).unwrap();
    for (op, result) in openers(&dir) {
        assert!(matches!(result.unwrap_err(), FileError::NotRegular { .. }), "directory: {op}");
    }
    dir.publish("file", b"").unwrap();
    assert!(matches!(dir.subdir("file").unwrap_err(), FileError::NotRegular { .. }));
    assert!(matches!(dir.create_subdir("file").unwrap_err(), FileError::NotRegular { .. }));
    assert!(matches!(SafeDir::open_root(tmp.path().join("file")).unwrap_err(), FileError::NotRegular { .. }));
}

#[test]
fn publishing_over_a_directory_fails_and_leaves_nothing() {
    let (tmp, dir) = root();
    fs::create_dir(tmp.path().join("f")).unwrap();
    fs::write(tmp.path().join("f/inside"), "kept").unwrap();
    assert!(matches!(dir.publish("f", b"x").unwrap_err(), FileError::NotRegular { .. }));
    assert!(matches!(dir.publish_new("f", b"x").unwrap_err(), FileError::AlreadyExists { .. }));
    assert_eq!(dir.list(10).unwrap().entries.len(), 1, "no temporary file is left");
    assert!(tmp.path().join("f/inside").exists());
}

#[test]
fn a_planted_temporary_name_is_neither_opened_nor_followed() {
    let (tmp, dir) = root();
    let victim = victim(&tmp);
    symlink(&victim, tmp.path().join("f.aaaa.tmp")).unwrap();
    fs::hard_link(&victim, tmp.path().join("f.bbbb.tmp")).unwrap();
    let candidates = ["aaaa", "bbbb", "cccc"].map(|hex| Ok(hex.to_owned()));
    let fresh = dir.create_temp("f".as_ref(), candidates.into_iter()).unwrap();
    assert_eq!(fresh.name, "f.cccc.tmp");
    (&fresh.file).write_all(b"evil").unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    drop(fresh);
    assert!(!tmp.path().join("f.cccc.tmp").exists(), "what is not placed is removed");
}

#[test]
fn names_that_are_no_component_are_refused() {
    let (_tmp, dir) = root();
    let long = "x".repeat(256);
    for name in ["", ".", "..", "a/b", "/etc", "a\0b", "../f", &long] {
        let errors = [
            dir.read(name, 10).unwrap_err(),
            dir.publish(name, b"").unwrap_err(),
            dir.subdir(name).unwrap_err(),
            dir.create_subdir(name).unwrap_err(),
            dir.stat(name).unwrap_err(),
            dir.remove_file(name).unwrap_err(),
            dir.remove_tree(name).unwrap_err(),
            dir.rename(name, "x").unwrap_err(),
            dir.rename("x", name).unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, FileError::InvalidName { .. }), "{name:?}: {error}");
        }
    }
    for path in ["..", "a/../b", "/etc"] {
        assert!(matches!(dir.open_path(path).unwrap_err(), FileError::InvalidName { .. }), "{path}");
        assert!(matches!(dir.create_path(path).unwrap_err(), FileError::InvalidName { .. }), "{path}");
    }
    for path in ["", "..", "/", "a/.."] {
        assert!(matches!(dir.parent_of(path).unwrap_err(), FileError::InvalidName { .. }), "{path}");
    }
}

#[test]
fn a_foreign_owner_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return; // Only root can give a file away.
    }
    let (tmp, dir) = root();
    fs::write(tmp.path().join("f"), "").unwrap();
    fs::create_dir(tmp.path().join("d")).unwrap();
    for name in ["f", "d"] {
        std::os::unix::fs::chown(tmp.path().join(name), Some(12_345), None).unwrap();
    }
    for (op, result) in openers(&dir) {
        assert!(matches!(result.unwrap_err(), FileError::WrongOwner { uid: 12_345, .. }), "{op}");
    }
    assert!(matches!(dir.subdir("d").unwrap_err(), FileError::WrongOwner { .. }));
    assert!(matches!(dir.create_subdir("d").unwrap_err(), FileError::WrongOwner { .. }));
}

fn mode(path: impl AsRef<Path>) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn loose(tmp: &tempfile::TempDir) {
    fs::write(tmp.path().join("f"), "").unwrap();
    fs::create_dir_all(tmp.path().join("d")).unwrap();
    fs::set_permissions(tmp.path().join("f"), fs::Permissions::from_mode(0o467)).unwrap();
    fs::set_permissions(tmp.path().join("d"), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(tmp.path(), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn opening_below_a_private_root_narrows_modes_and_never_widens() {
    let (tmp, dir) = root();
    loose(&tmp);
    dir.read("f", 10).unwrap();
    dir.subdir("d").unwrap();
    assert_eq!(mode(tmp.path().join("f")), 0o400);
    assert_eq!(mode(tmp.path().join("d")), 0o700);
    assert_eq!(mode(tmp.path()), 0o755, "the root itself is not ours to change");
}

#[test]
fn opening_below_a_shared_root_changes_no_mode_unless_made_private() {
    let (tmp, _) = root();
    loose(&tmp);
    let dir = SafeDir::open_shared(tmp.path()).unwrap();
    dir.read("f", 10).unwrap();
    let sub = dir.subdir("d").unwrap();
    assert_eq!(mode(tmp.path().join("f")), 0o467);
    assert_eq!(mode(tmp.path().join("d")), 0o777);
    fs::write(tmp.path().join("d/g"), "").unwrap();
    fs::set_permissions(tmp.path().join("d/g"), fs::Permissions::from_mode(0o666)).unwrap();
    sub.into_private().read("g", 10).unwrap();
    assert_eq!(mode(tmp.path().join("d/g")), 0o600);
}

#[test]
fn removing_a_tree_follows_no_link() {
    let (tmp, dir) = root();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("kept"), "").unwrap();
    fs::create_dir_all(tmp.path().join("tree/sub")).unwrap();
    symlink(outside.path(), tmp.path().join("tree/link")).unwrap();
    symlink(outside.path(), tmp.path().join("tree/sub/link")).unwrap();
    symlink(outside.path(), tmp.path().join("direct")).unwrap();
    assert!(dir.remove_tree("tree").unwrap());
    assert!(dir.remove_tree("direct").unwrap());
    assert!(outside.path().join("kept").exists());
    assert!(dir.list(10).unwrap().entries.is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn removing_a_tree_enters_no_other_mount() {
    let slash = SafeDir::open_shared("/").unwrap();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = |crossing| open_beneath(slash.as_fd(), "proc".as_ref(), flags, Mode::empty(), crossing);
    assert_eq!(open(Crossing::Forbidden).unwrap_err(), Errno::XDEV);
    assert!(open(Crossing::Allowed).is_ok());
}

#[test]
fn no_handle_survives_exec() {
    let (_tmp, dir) = root();
    dir.publish("f", b"").unwrap();
    let file = dir.open_read("f").unwrap();
    let copy = dir.try_clone().unwrap();
    for fd in [dir.as_fd(), copy.as_fd(), file.as_fd(), dir.create_subdir("d").unwrap().as_fd()] {
        assert!(rustix::io::fcntl_getfd(fd).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
    }
}
