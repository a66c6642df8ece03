//! `create` cut short at every place that it passes, by a failure and as if it were killed: the next call
//! completes it. A new directory is absent or has its first commit.

use super::*;
use crate::fault::plan::{Cut, run};

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
    for ((at, place), cut) in (1..).zip(&places).flat_map(|place| [(place, Cut::Fail), (place, Cut::Kill)]) {
        let world = super::world();
        let asked = prepare(&world);
        let was_there = asked.target.exists();
        let (done, _) = run(Some((at, cut)), || new(&world, &asked).map(drop));
        match done {
            None => assert_eq!(cut, Cut::Kill, "{place}"),
            Some(done) => {
                let error = done.expect_err(place);
                let half = matches!(&error, ScaffoldError::CutShort { .. });
                if !was_there {
                    assert_eq!(half, asked.target.exists(), "{place}: {error}");
                    assert!(!half || log(&asked.target) == [SCAFFOLD], "{place}");
                }
                assert!(
                    !half || error.hint().unwrap().to_string().contains("same command again"),
                    "{place}: {error}"
                );
            }
        }
        age(&world);
        new(&world, &asked).unwrap_or_else(|error| panic!("after {cut:?} at {place}: {error}"));
        finished(&world, &asked.target);
        assert_eq!(log(&asked.target), commits, "{cut:?} at {place}");
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
fn a_new_project_that_was_cut_short_is_completed_by_the_next_call() {
    everywhere(|world| with_spec(options(world, "new")), &[SCAFFOLD, IGNORE], 18);
}

#[test]
fn a_directory_with_files_that_was_cut_short_is_completed_by_the_next_call() {
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
fn an_empty_directory_that_was_cut_short_is_completed_by_the_next_call() {
    let prepare = |world: &World| {
        let asked = ProjectOptions { into_nonempty: false, ..with_spec(options(world, "empty")) };
        std::fs::create_dir(&asked.target).unwrap();
        asked
    };
    everywhere(prepare, &[SCAFFOLD, IGNORE], 20);
}

#[test]
fn a_repository_without_a_commit_that_was_cut_short_is_completed_by_the_next_call() {
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
fn a_repository_with_a_history_that_was_cut_short_is_completed_by_the_next_call() {
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
fn the_goals_of_a_clone_are_never_accepted_whatever_cuts_the_set_up_short() {
    let world = super::world();
    clone(&world);
    let (done, places) = run(None, || new(&world, &options(&world, "cloned")).map(drop));
    done.unwrap().unwrap();
    for (at, place) in (1..).zip(&places) {
        for cut in [Cut::Fail, Cut::Kill] {
            let world = super::world();
            let path = clone(&world);
            let (done, _) = run(Some((at, cut)), || new(&world, &options(&world, "cloned")).map(drop));
            assert_eq!(done.is_none(), cut == Cut::Kill);
            assert!(done.is_none_or(|done| done.is_err()), "{place}");
            new(&world, &options(&world, "cloned"))
                .unwrap_or_else(|error| panic!("{cut:?} at {place}: {error}"));
            assert!(world.accepted(&path).is_none(), "{place}");
            assert_eq!(log(&path), ["first", "goals", IGNORE]);
        }
    }
}
