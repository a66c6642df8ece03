//! `create` cut short at every place that it passes: by a failure, after which nothing of it is left, and as if
//! it were killed, after which the next call completes it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::*;
use crate::fault::plan::{Cut, run};

/// What is there, without what a repository and the home of all stores may keep.
fn visible(world: &World) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let empty = [world.root.join("state"), world.root.join("state/peers")];
    let mut found = snapshot(&world.root);
    found.retain(|path, _| {
        let text = path.to_string_lossy();
        !empty.contains(path) && !text.contains("/.git/objects") && !text.contains("/.git/logs")
    });
    found
}

/// What a killed call left before it could lock it is old enough to go.
fn age(world: &World) {
    for path in snapshot(&world.root).into_keys() {
        if path.to_string_lossy().contains(".peers-new-") && path.is_dir() {
            let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
            std::fs::File::open(path).unwrap().set_modified(long_ago).unwrap();
        }
    }
}

/// Cuts it at each place in turn. `commits` is the history of a project that is done.
fn everywhere(prepare: impl Fn(&World) -> ProjectOptions, commits: &[&str], least: usize) {
    let world = super::world();
    let asked = prepare(&world);
    let (done, places) = run(None, || new(&world, &asked).map(drop));
    done.unwrap().unwrap();
    assert!(places.len() >= least, "{places:?}");
    for (at, place) in (1..).zip(&places) {
        let world = super::world();
        let asked = prepare(&world);
        let before = visible(&world);
        let (done, _) = run(Some((at, Cut::Fail)), || new(&world, &asked).map(drop));
        let error = done.unwrap().expect_err(place);
        assert!(!error.to_string().contains("could not be taken back"), "{place}: {error}");
        let (after, gone) = (visible(&world), format!("{place}: {error}"));
        assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>(), "{gone}");
        assert!(after == before, "{gone}: a file changed");
        new(&world, &asked).unwrap_or_else(|error| panic!("after a failure at {place}: {error}"));
        finished(&world, &asked.target);
        assert_eq!(log(&asked.target), commits, "{place}");

        let world = super::world();
        let asked = prepare(&world);
        let (done, _) = run(Some((at, Cut::Kill)), || new(&world, &asked).map(drop));
        assert!(done.is_none(), "{place}");
        age(&world);
        new(&world, &asked).unwrap_or_else(|error| panic!("after a kill at {place}: {error}"));
        finished(&world, &asked.target);
        assert_eq!(log(&asked.target), commits, "{place}");
    }
}

fn with_spec(asked: ProjectOptions) -> ProjectOptions {
    ProjectOptions {
        spec: Some("What is wanted.".to_owned()),
        driver: Some(Driver::Sessions),
        language: Some(Language::Go),
        settings: vec![PeerSetting { field: Field::Model, text: "m".to_owned() }],
        into_nonempty: true,
        ..asked
    }
}

#[test]
fn a_new_project_is_whole_or_absent() {
    everywhere(|world| with_spec(options(world, "new")), &[SCAFFOLD, IGNORE], 18);
}

#[test]
fn a_directory_with_files_is_a_project_or_as_it_was() {
    let prepare = |world: &World| {
        let asked = with_spec(options(world, "files"));
        std::fs::create_dir(&asked.target).unwrap();
        std::fs::write(asked.target.join("a"), "a").unwrap();
        std::fs::write(asked.target.join(".gitignore"), "b\n").unwrap();
        asked
    };
    everywhere(prepare, &[SCAFFOLD, IGNORE], 20);
}

#[test]
fn a_repository_without_a_commit_is_a_project_or_as_it_was() {
    let prepare = |world: &World| {
        let asked = with_spec(options(world, "unborn"));
        std::fs::create_dir(&asked.target).unwrap();
        git(&asked.target, &["init", "-q", "-b", "main"]);
        std::fs::write(asked.target.join("a"), "a").unwrap();
        git(&asked.target, &["add", "a"]);
        asked
    };
    everywhere(prepare, &[SCAFFOLD, IGNORE], 15);
}

#[test]
fn a_repository_with_a_history_is_set_up_or_as_it_was() {
    let prepare = |world: &World| {
        let path = world.repo("projects/old");
        std::fs::write(path.join(".gitignore"), "b\n").unwrap();
        git(&path, &["add", ".gitignore"]);
        git(&path, &["commit", "-q", "-m", "second"]);
        options(world, "old")
    };
    everywhere(prepare, &["first", "second", IGNORE], 10);
}

#[test]
fn a_clone_that_brings_goals_along_is_set_up_or_as_it_was_and_never_accepted() {
    let world = super::world();
    clone(&world);
    let (done, places) = run(None, || new(&world, &options(&world, "cloned")).map(drop));
    done.unwrap().unwrap();
    // Permissions of a control directory are narrowed by whoever opens it.
    let contents = |world: &World| -> Vec<_> {
        visible(world).into_iter().map(|(path, (_, bytes))| (path, bytes)).collect()
    };
    for (at, place) in (1..).zip(&places) {
        for cut in [Cut::Fail, Cut::Kill] {
            let world = super::world();
            let path = clone(&world);
            let before = contents(&world);
            let (done, _) = run(Some((at, cut)), || new(&world, &options(&world, "cloned")).map(drop));
            assert_eq!(done.is_none(), cut == Cut::Kill);
            if let Some(done) = done {
                done.expect_err(place);
                assert!(contents(&world) == before, "{place}");
            }
            new(&world, &options(&world, "cloned"))
                .unwrap_or_else(|error| panic!("{cut:?} at {place}: {error}"));
            assert!(world.accepted(&path).is_none(), "{place}");
            assert_eq!(log(&path), ["first", "goals", IGNORE]);
        }
    }
}
