//! What a check stands on.

use peers_model::Timestamp;
use peers_store::planted::{self, Planted};
use peers_store::project::{self, Project};

use super::{World, handoff, pristine};
use crate::{Asked, CheckCx, Outcome, run};

fn open(asked: Asked<'_>) -> Result<CheckCx, crate::CouldNot> {
    CheckCx::open(asked, None)
}

#[test]
fn what_is_no_repository_is_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    let why = open(Asked { repo: dir.path(), control: None, head: None, base: None }).unwrap_err();
    let outcome = Outcome::could_not("bug-ledger", why);
    assert_eq!(outcome.exit_code(), 3);
    let text = outcome.text(50);
    assert!(
        text.starts_with("bug-ledger: ERROR (") && text.contains("\n  hint: give the top of a git work tree"),
        "{text}"
    );
}

#[test]
fn a_head_is_named_by_id_branch_tag_or_full_name() {
    let world = World::new();
    let first = world.head();
    world.git(&["tag", "-a", "-m", "t", "v1"]);
    world.git(&["branch", "old"]);
    world.commit("second", &[]);
    let asked = |head| Asked { head: Some(head), ..world.asked() };
    for name in [first.as_str(), "v1", "old", "refs/heads/old", "refs/tags/v1"] {
        assert_eq!(*open(asked(name)).unwrap().head(), first, "{name}");
    }
    assert_eq!(*open(asked("HEAD")).unwrap().head(), world.head());
    for bad in ["nope", "refs/heads/nope", "-x", "a..b", "\u{1b}[31m", "", &"0".repeat(40)] {
        let error = open(asked(bad)).unwrap_err().to_string();
        assert!(!error.contains('\u{1b}'), "{error}");
    }
}

#[test]
fn the_base_of_the_store_counts_and_never_a_tag_that_whoever_pushes_can_move() {
    let world = World::new();
    let first = world.head();
    let second = world.commit("second", &[]);
    world.git(&["tag", "peers-baseline", second.as_str()]);
    assert_eq!(world.cx().base(), Some(&first));
    assert_eq!(open(world.asked()).unwrap().base(), None, "without a store all of history is looked at");
    let named = Asked { base: Some("peers-baseline"), ..world.asked() };
    assert_eq!(open(named).unwrap().base(), Some(&second), "whoever names it means it");
    let why = open(Asked { base: Some(&"0".repeat(40)), ..world.asked() }).unwrap_err();
    assert!(why.what.contains("is not in this repository"), "{why}");
}

#[test]
fn where_the_store_has_no_base_a_tag_that_a_peer_may_have_set_hides_nothing() {
    let world = World::new();
    let mut disk = world.disk();
    let project = project::read(&mut disk).unwrap().unwrap();
    project::write(&mut disk, &Project { base: None, ..project }).unwrap();
    world.git(&["tag", "peers-baseline", "HEAD"]);
    assert_eq!(world.cx().base(), None);
}

#[test]
fn a_commit_named_in_full_is_read_from_the_control_directory_alone() {
    let mut world = World::running();
    world.turn("claude", &handoff("work"));
    let control = world.control();
    let (head, nowhere) = (world.head(), world.path("nowhere"));
    let asked = Asked { repo: &nowhere, control: Some(control), head: Some(head.as_str()), base: None };
    let cx = CheckCx::open(asked, Some(&mut world.disk())).unwrap();
    assert_eq!(run("self-review", &cx, &[]).unwrap().exit_code(), 0);
}

#[test]
fn a_control_directory_that_is_behind_is_not_asked() {
    let world = World::new();
    let control = world.control();
    let newer = world.commit("second", &[]);
    let cx = CheckCx::open(Asked { control: Some(control), ..world.asked() }, None).unwrap();
    assert_eq!(*cx.head(), newer);
    assert!(cx.facts().unwrap().has(&newer));
}

#[test]
fn a_pristine_checkout_is_a_repository() {
    let mut world = World::running();
    world.turn("claude", &handoff("work"));
    let control = world.control();
    let dir = pristine(&world, &control);
    let asked = Asked { repo: &dir, control: None, head: None, base: None };
    let cx = CheckCx::open(asked, Some(&mut world.disk())).unwrap();
    assert_eq!(*cx.head(), world.head());
    assert_eq!(run("self-review", &cx, &[]).unwrap().exit_code(), 0);
}

#[test]
fn the_digest_of_the_inputs_moves_with_each_of_them() {
    let mut world = World::running();
    let digest = |world: &World, flags: &[&str]| world.check_with("bug-ledger", flags).inputs_digest.unwrap();
    let first = digest(&world, &[]);
    assert_eq!(first, digest(&world, &[]), "the same question has the same digest");
    assert_ne!(first, digest(&world, &["--min-severity", "low"]));
    assert_ne!(first, world.check("self-review").inputs_digest.unwrap());
    world.ack("B1");
    let acked = digest(&world, &[]);
    assert_ne!(first, acked);
    world.commit("second", &[]);
    assert_ne!(acked, digest(&world, &[]));
}

#[test]
fn a_check_changes_neither_commits_nor_records() {
    let mut world = World::running();
    world.turn("claude", &handoff("work"));
    let listing = |dir: &std::path::Path| {
        let mut todo = vec![dir.to_owned()];
        let mut found = Vec::new();
        while let Some(dir) = todo.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let entry = entry.unwrap();
                let meta = entry.metadata().unwrap();
                if meta.is_dir() {
                    todo.push(entry.path());
                }
                // What a look at the work tree remembers of it for the next one is no record.
                let name = entry.file_name().into_string().unwrap();
                let holds = if meta.is_dir() { None } else { Some((meta.len(), meta.modified().unwrap())) };
                if !name.starts_with("stamps-") {
                    found.push((entry.path(), holds));
                }
            }
        }
        found.sort();
        found
    };
    let control = world.control();
    let tree = control.facts().tree_of(&world.head()).unwrap();
    let found = Planted::new((world.head(), tree, String::new()), Timestamp::default(), 7, (20, 18));
    planted::write(&mut world.disk(), &found).unwrap();
    let before = listing(world.dir.path());
    let asked = Asked { control: Some(control), ..world.asked() };
    let cx = CheckCx::open(asked, Some(&mut world.disk())).unwrap();
    for name in crate::names() {
        // Where no plan is frozen, what judges by one cannot be measured.
        // Nor can the tests, where there are none.
        let by_plan =
            ["contracts", "acceptance", "e2e", "honesty-audit-extra", "confidence", "tests"].contains(name);
        assert_eq!(run(name, &cx, &[]).unwrap().exit_code() > 1, by_plan, "{name}");
    }
    assert_eq!(listing(world.dir.path()), before);
}
