//! Tests of where things lie, on real directories.

mod world;

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use peers_model::{Timestamp, exit};

use self::world::{World, git};
use peers_sys::env::Env;

use super::*;

#[test]
fn siblings_whose_names_begin_alike_are_different_projects() {
    let world = World::new();
    let ids: Vec<_> = ["a", "ab", "a b", "a$(x)"]
        .map(|name| Place::locate(&world.dir(name), &world.env).unwrap().id().clone())
        .into_iter()
        .collect();
    let different: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(different.len(), 4, "{ids:?}");
}

#[test]
fn a_symlinked_target_is_the_directory_behind_it() {
    let world = World::new();
    let real = world.dir("real");
    let link = world.root.join("link");
    symlink(&real, &link).unwrap();
    let place = Place::locate(&link, &world.env).unwrap();
    assert_eq!(place.work_dir(), real);
    assert_eq!(place.id(), Place::locate(&real, &world.env).unwrap().id());
}

#[test]
fn locating_makes_nothing() {
    let world = World::new();
    let dir = world.dir("repo");
    let place = Place::locate(&dir, &world.env).unwrap();
    assert!(place.store_dir().starts_with(world.root.join("state/peers")));
    assert!(place.cache_dir().starts_with(world.root.join("cache/peers")));
    assert!(place.control_git_path().starts_with(place.store_dir()));
    assert_eq!(place.holder().unwrap(), None);
    assert!(!world.root.join("state").exists() && !world.root.join("cache").exists());
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
}

#[test]
fn a_linked_worktree_belongs_to_the_project_of_its_main_one() {
    let world = World::new();
    let main = world.repo("main");
    let linked = world.root.join("linked");
    git(&main, &["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    let place = Place::locate(&linked, &world.env).unwrap();
    assert_eq!(place.work_dir(), linked);
    assert_eq!(place.project_dir(), main);
    assert_eq!(place.id(), Place::locate(&main, &world.env).unwrap().id());
}

#[test]
fn a_git_file_that_leads_elsewhere_is_refused() {
    let world = World::new();
    let victim = world.repo("victim");
    let dir = world.dir("repo");
    std::fs::write(dir.join(".git"), format!("gitdir: {}/.git\n", victim.display())).unwrap();
    let error = Place::locate(&dir, &world.env).unwrap_err();
    assert_eq!(error.exit(), exit::REFUSED, "{error}");
}

#[test]
fn a_store_inside_the_repository_is_refused_even_through_a_symlink() {
    let world = World::new();
    let dir = world.dir("repo");
    let inside = Env::from_pairs([
        ("HOME", world.root.as_os_str()),
        ("XDG_STATE_HOME", dir.join("state").as_os_str()),
    ]);
    let error = Place::locate(&dir, &inside).unwrap_err();
    assert!(matches!(error, PlaceError::Inside { .. }), "{error}");
    assert_eq!(error.exit(), exit::REFUSED);
    std::fs::create_dir(dir.join("real")).unwrap();
    symlink(dir.join("real"), world.root.join("alias")).unwrap();
    let alias = world.root.join("alias/deep");
    let through = Env::from_pairs([("HOME", world.root.as_os_str()), ("XDG_STATE_HOME", alias.as_os_str())]);
    assert!(matches!(Place::locate(&dir, &through), Err(PlaceError::Inside { .. })));
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let world = World::new();
    for path in [world.root.join("nowhere"), {
        let file = world.root.join("file");
        std::fs::write(&file, "").unwrap();
        file
    }] {
        let error = Place::locate(&path, &world.env).unwrap_err();
        assert!(matches!(error, PlaceError::NotADirectory { .. }), "{error}");
        assert_eq!(error.exit(), exit::INVALID);
    }
}

#[test]
fn a_repository_that_was_never_set_up_is_told_apart_from_one_without_its_store() {
    let world = World::new();
    let repo = world.repo("repo");
    let place = Place::locate(&repo, &world.env).unwrap();
    let error = place.open_store_disk().unwrap_err();
    assert!(matches!(error, PlaceError::NotInitialised { top: None, .. }), "{error}");
    assert_eq!(error.exit(), exit::INVALID);
    let below = repo.join("src");
    std::fs::create_dir(&below).unwrap();
    let error = Place::locate(&below, &world.env).unwrap().open_view_disk().unwrap_err();
    assert!(error.hint().unwrap().to_string().contains(repo.to_str().unwrap()), "{:?}", error.hint());
    std::fs::create_dir(repo.join(".peers")).unwrap();
    let error = place.open_store_disk().unwrap_err();
    assert!(matches!(error, PlaceError::NoStore { was: None, .. }), "{error}");
    assert_eq!(error.exit(), exit::REFUSED);
}

#[test]
fn a_moved_repository_is_told_where_it_was() {
    let world = World::new();
    let old = world.repo("old");
    world.init(&old);
    let new = world.root.join("new");
    std::fs::rename(&old, &new).unwrap();
    let error = Place::locate(&new, &world.env).unwrap().open_store_disk().unwrap_err();
    assert_eq!(error.exit(), exit::REFUSED);
    assert_eq!(
        error.hint().unwrap().to_string(),
        format!("it was moved: `peers store attach {}`", old.display())
    );
}

#[test]
fn another_directory_under_the_old_path_does_not_get_the_store() {
    let world = World::new();
    let repo = world.repo("repo");
    world.init(&repo);
    let place = Place::locate(&repo, &world.env).unwrap();
    place.open_store_disk().unwrap();
    // Both exist at once, so that the new one cannot get the inode of the old one.
    std::fs::rename(&repo, world.root.join("aside")).unwrap();
    std::fs::create_dir_all(repo.join(".peers")).unwrap();
    for error in [
        Place::locate(&repo, &world.env).unwrap().open_store_disk().unwrap_err(),
        Place::locate(&repo, &world.env).unwrap().open_view_disk().unwrap_err(),
    ] {
        assert!(matches!(error, PlaceError::Moved { .. }), "{error}");
        assert!(error.to_string().contains("another directory of the same name"), "{error}");
        assert_eq!(error.exit(), exit::REFUSED);
    }
}

#[test]
fn a_new_device_number_alone_is_no_move() {
    let world = World::new();
    let repo = world.repo("repo");
    let place = Place::locate(&repo, &world.env).unwrap();
    let mut found = place.describe(Timestamp::from_millis(0), None);
    found.dev += 1;
    assert!(place.same_project(&found).is_ok());
    found.ino += 1;
    assert!(place.same_project(&found).is_err());
}

#[test]
fn a_symlink_as_control_directory_or_store_is_refused() {
    let world = World::new();
    let repo = world.repo("repo");
    let victim = world.dir("victim");
    symlink(&victim, repo.join(".peers")).unwrap();
    let place = Place::locate(&repo, &world.env).unwrap();
    for error in [
        place.open_peers().unwrap_err(),
        place.open_view_disk().unwrap_err(),
        place.foreign_lock().unwrap_err(),
    ] {
        assert_eq!(error.exit(), exit::REFUSED, "{error}");
    }
    assert_eq!(place.holder().unwrap(), None, "whatever lies there, our own lock says who runs");
    std::fs::remove_file(repo.join(".peers")).unwrap();
    std::fs::create_dir_all(world.root.join("state/peers")).unwrap();
    symlink(&victim, place.store_dir()).unwrap();
    assert_eq!(place.open_store_disk().unwrap_err().exit(), exit::REFUSED);
    assert_eq!(place.create_store().unwrap_err().exit(), exit::REFUSED);
    assert_eq!(std::fs::read_dir(&victim).unwrap().count(), 0);
}

#[test]
fn looking_changes_no_permission_and_writing_takes_others_away() {
    let world = World::new();
    let repo = world.repo("repo");
    world.init(&repo);
    let peers = repo.join(".peers");
    std::fs::set_permissions(&peers, std::fs::Permissions::from_mode(0o755)).unwrap();
    let place = Place::locate(&repo, &world.env).unwrap();
    place.open_view_disk().unwrap();
    place.holder().unwrap();
    assert_eq!(std::fs::metadata(&peers).unwrap().mode() & 0o777, 0o755);
    place.open_store_disk().unwrap();
    assert_eq!(std::fs::metadata(&peers).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn the_run_lock_is_one_for_all_and_names_its_holder() {
    let world = World::new();
    let repo = world.repo("repo");
    world.init(&repo);
    let place = Place::locate(&repo, &world.env).unwrap();
    let mut lock = place.lock("run").unwrap();
    let own = std::process::id();
    lock.write(format!(r#"{{"pid": {own}, "run_id": "0123456789abcdef"}}"#).as_bytes()).unwrap();
    let holder = place.holder().unwrap().unwrap();
    assert_eq!(holder.to_string(), format!("run 0123456789abcdef, process {own}"));
    let error = place.lock("land").unwrap_err();
    assert!(matches!(&error, PlaceError::Locked { holder: found } if **found == holder), "{error}");
    assert_eq!(error.exit(), exit::CONFLICT);
    drop(lock);
    assert_eq!(place.holder().unwrap(), None);
    drop(place.lock("run").unwrap());
}

#[test]
fn a_command_that_holds_the_run_lock_is_named_with_its_process() {
    let world = World::new();
    let repo = world.repo("repo");
    world.init(&repo);
    let place = Place::locate(&repo, &world.env).unwrap();
    let _lock = place.lock("land").unwrap();
    let error = place.lock("run").unwrap_err();
    let at_work = format!("`peers land` is at work, process {}", std::process::id());
    assert!(error.to_string().starts_with(&at_work), "{error}");
    assert!(error.hint().unwrap().to_string().contains("wait until it is done"));
}

#[test]
fn a_process_that_is_gone_or_began_at_another_time_is_never_named() {
    let world = World::new();
    let repo = world.repo("repo");
    world.init(&repo);
    let place = Place::locate(&repo, &world.env).unwrap();
    let mut lock = place.lock("land").unwrap();
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let own = std::process::id();
    for left in [
        format!(r#"{{"pid": {}, "run_id": "0123456789abcdef"}}"#, child.id()),
        format!(r#"{{"pid": {own}, "starttime": 1, "run_id": "0123456789abcdef"}}"#),
        format!(r#"{{"pid": {own}, "boot_id": "another", "command": "undo"}}"#),
    ] {
        lock.write(left.as_bytes()).unwrap();
        let holder = place.holder().unwrap().unwrap();
        assert_eq!(holder.to_string(), "it does not say which process it is", "{left}");
    }
}

#[test]
fn a_lock_held_in_the_control_directory_counts() {
    let world = World::new();
    let repo = world.repo("repo");
    world.init(&repo);
    let file = std::fs::File::create(repo.join(".peers/run.lock")).unwrap();
    let place = Place::locate(&repo, &world.env).unwrap();
    assert!(!place.foreign_lock().unwrap(), "a file alone is no lock");
    file.lock().unwrap();
    assert!(place.foreign_lock().unwrap());
    let error = place.lock("run").unwrap_err();
    let path = repo.join(".peers/run.lock");
    assert!(
        error.exit() == exit::CONFLICT && error.hint().unwrap().to_string().contains(path.to_str().unwrap())
    );
    // Nobody of ours runs, and what begins no run is not kept from its work.
    assert_eq!(place.holder().unwrap(), None);
    place.lock_own("stop").unwrap();
}

#[test]
fn without_a_home_there_is_no_place() {
    let world = World::new();
    let nowhere = Env::from_pairs([("XDG_STATE_HOME", "relative")]);
    // The password database may know a home; then that is used.
    match Place::locate(&world.dir("repo"), &nowhere) {
        Ok(place) => assert!(place.store_dir().is_absolute()),
        Err(error) => assert_eq!(error.exit(), exit::ENVIRONMENT),
    }
}

#[test]
fn a_store_that_is_not_there_is_told_with_where_it_was_looked_for() {
    let world = World::new();
    let repo = world.repo("repo");
    std::fs::create_dir(repo.join(".peers")).unwrap();
    let home = world.dir("home");
    let error = |state: Option<&str>| {
        let pairs =
            [("HOME", home.to_str().unwrap())].into_iter().chain(state.map(|s| ("XDG_STATE_HOME", s)));
        Place::locate(&repo, &Env::from_pairs(pairs)).unwrap().open_store_disk().unwrap_err()
    };
    let unset = error(None).to_string();
    assert!(unset.contains(&format!("there is none at {}/.local/state/peers/", home.display())), "{unset}");
    assert!(unset.contains("(by HOME; XDG_STATE_HOME is not set)"), "{unset}");
    let relative = error(Some("state")).to_string();
    assert!(relative.contains("XDG_STATE_HOME is `state`, which is not an absolute path"), "{relative}");
    let elsewhere = error(world.root.join("state").to_str());
    assert!(elsewhere.to_string().contains("(by XDG_STATE_HOME)"), "{elsewhere}");
    let hint = elsewhere.hint().unwrap().to_string();
    let (attach, force) = (hint.find("peers store attach").unwrap(), hint.find("init --force").unwrap());
    assert!(attach < force, "{hint}");
}
