//! What is built aside, and what is swept away.

use std::ffi::OsStr;

use peers_sys::clock;
use peers_sys::lock::{Acquired, FileLock, Sharing};

use super::super::aside::{is_aside, sweep};
use super::*;

fn projects(world: &World) -> SafeDir {
    SafeDir::open_shared(world.dir("projects")).unwrap()
}

fn name() -> &'static OsStr {
    OsStr::new("neu")
}

#[test]
fn nothing_that_appeared_meanwhile_is_replaced() {
    let world = world();
    let dir = projects(&world);
    let aside = Aside::make(&dir, name()).unwrap();
    world.dir("projects/neu");
    let before = snapshot(&world.root);
    let error = aside.place(&dir, name()).unwrap_err();
    assert_eq!((error.exit(), snapshot(&world.root)), (exit::CONFLICT, before));
    aside.remove();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn only_what_a_dead_call_for_this_name_left_is_swept_away() {
    let world = world();
    let dir = projects(&world);
    let make = |tail: &str, locked: bool| {
        let path = world.dir(&format!("projects/.neu{tail}"));
        if locked {
            std::fs::write(path.join("lock"), "").unwrap();
            std::fs::set_permissions(path.join("lock"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
                .unwrap();
        }
        path
    };
    let dead = make(".peers-new-0123456789abcdef", true);
    let young = make(".peers-new-1123456789abcdef", false);
    let alive = make(".peers-new-2123456789abcdef", true);
    let others = [
        make(".peers-new-012345678 abcdef", true),
        make("er.peers-new-0123456789abcdef", true),
        make(".peers-new-0123456789abcde", true),
    ];
    symlink(&others[0], dir.path().join(".neu.peers-new-4123456789abcdef")).unwrap();
    let held = SafeDir::open_shared(&alive).unwrap();
    let lock = FileLock::acquire(&held, "lock", Sharing::Exclusive, std::time::Duration::ZERO).unwrap();
    assert!(matches!(lock, Acquired::Held(_)));
    sweep(&dir, name(), clock::now());
    assert!(!dead.exists() && young.exists() && alive.exists());
    sweep(&dir, name(), clock::now().plus(std::time::Duration::from_mins(11)));
    assert!(!young.exists() && alive.exists());
    assert!(others.iter().all(|path| path.exists()));
    assert!(dir.path().join(".neu.peers-new-4123456789abcdef").symlink_metadata().is_ok());
    drop(lock);
    sweep(&dir, name(), clock::now());
    assert!(!alive.exists());
}

#[test]
fn a_long_name_has_room_for_the_rest() {
    let world = world();
    let dir = projects(&world);
    let long = "n".repeat(255);
    let asked = options(&world, &long);
    new(&world, &asked).unwrap();
    finished(&world, &asked.target);
    let aside = Aside::make(&dir, long.as_ref()).unwrap();
    let outer = aside.tree().path().parent().unwrap().file_name().unwrap().to_owned();
    assert!(is_aside(&outer, long.as_ref()) && !is_aside(&outer, "n".as_ref()));
}
