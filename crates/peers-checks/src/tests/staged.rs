//! What a pre-commit hook finds in what is staged.

use peers_git::PeerRepo;

use super::World;
use super::plan::{plan, step};
use crate::staged::{Committer, look};

/// Put together here, so that no file of this repository holds one.
fn token() -> String {
    ["gh", "p_"].concat() + "aB3dE6gH9jK1mN4pQ7sT0vW2yZaB3dE6gH9j"
}

fn put(world: &World, name: &str, text: &str) {
    let path = world.work.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Path and kind of each finding.
fn found(world: &World, who: Option<&Committer>) -> Vec<(String, &'static str)> {
    let repo = PeerRepo::open(&world.work).unwrap();
    let findings = look(&repo, None, world.cx().settings(), who).unwrap();
    findings.into_iter().map(|found| (found.path, found.kind)).collect()
}

#[test]
fn a_secret_counts_once_it_is_staged_and_until_it_is_taken_out() {
    let mut world = World::new();
    world.commit("old", &[("old.txt", &token())]);
    put(&world, "key.txt", &token());
    assert_eq!(found(&world, None), [], "not staged, and what HEAD has is the gate's business");
    world.git(&["add", "key.txt"]);
    put(&world, "key.txt", "nothing\n");
    assert_eq!(found(&world, None), [("key.txt".to_owned(), "secret")], "as it was staged");
    let repo = PeerRepo::open(&world.work).unwrap();
    let message = look(&repo, None, world.cx().settings(), None).unwrap().remove(0).message;
    assert!(!message.contains(&token()), "{message}");
    let number = message.rsplit(' ').next().unwrap().trim_end_matches(')');
    world.accept_config(&format!("checks: {{allow_secrets: [{number}]}}\n"));
    assert_eq!(found(&world, None), []);
    // As git gives it for `git commit PATH`.
    let index = world.path("other-index");
    std::fs::copy(world.work.join(".git/index"), &index).unwrap();
    world.git(&["add", "key.txt"]);
    world.accept_config("");
    let of = |index| look(&repo, index, world.cx().settings(), None).unwrap().len();
    assert_eq!((of(None), of(Some(index.as_path()))), (0, 1));
}

#[test]
fn a_step_is_not_checked_off_by_who_changed_its_files_last() {
    let plan = |mark: &str| plan(&[&step(1, mark, None)]);
    let world = World::new();
    world.commit("plan", &[("PLAN.md", &plan(" ")), ("src/s1.rs", "one\n")]);
    let commit = |name: &str| {
        let author = format!("--author={name} <{name}@peers.local>");
        world.git(&["commit", "-qam", "work", &author]);
    };
    put(&world, "src/s1.rs", "two\n");
    commit("ann");
    put(&world, "b.txt", "b\n");
    world.git(&["add", "b.txt"]);
    commit("bob");
    let peer = |name: &str| Committer::Peer(name.to_owned());
    assert_eq!(found(&world, Some(&peer("ann"))), [], "no mark is staged");
    put(&world, "PLAN.md", &plan("x"));
    world.git(&["add", "PLAN.md"]);
    let refused = [("PLAN.md".to_owned(), "self-checkoff")];
    assert_eq!(found(&world, Some(&peer("ann"))), refused);
    assert_eq!(found(&world, Some(&Committer::Email("ann@peers.local".to_owned()))), refused);
    assert_eq!(found(&world, Some(&peer("bob"))), []);
    assert_eq!(found(&world, None), [], "who is not known may be a person");
    world.git(&["commit", "-qm", "checked off"]);
    put(&world, "PLAN.md", &(plan("x") + "\n"));
    world.git(&["add", "PLAN.md"]);
    assert_eq!(found(&world, Some(&peer("ann"))), [], "it was done before");
}

#[test]
fn before_the_first_commit_everything_is_new() {
    let dir = tempfile::tempdir().unwrap();
    super::git_in(dir.path(), dir.path(), &["init", "-q"]);
    std::fs::write(dir.path().join("key.txt"), token()).unwrap();
    super::git_in(dir.path(), dir.path(), &["add", "key.txt"]);
    let repo = PeerRepo::open(dir.path()).unwrap();
    let findings = look(&repo, None, &peers_model::config::Checks::default(), None).unwrap();
    assert_eq!(findings.len(), 1);
    std::fs::write(dir.path().join(".git/index"), "no index").unwrap();
    assert!(look(&repo, None, &peers_model::config::Checks::default(), None).is_err());
}
