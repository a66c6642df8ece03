//! `peers init --modes`.

use peers_model::goal::{CHECK_NAMES, GateRun};
use peers_store::layout::peers;

use super::*;
use crate::Gates;

fn with(modes: &str) -> impl FnOnce(&mut InitOptions) {
    let modes = modes.to_owned();
    move |options| options.modes = Some(vec![modes])
}

fn read(repo: &std::path::Path, name: &str) -> String {
    std::fs::read_to_string(repo.join(".peers").join(name)).unwrap()
}

/// The ids of the goals, with the command of each gate that has one.
fn goals(repo: &std::path::Path) -> Vec<(String, String)> {
    let goals = load::load_goals(&read(repo, peers::GOALS), 2, &CHECK_NAMES).unwrap();
    let cmd = |goal: &peers_model::goal::Goal| match goal.gate().map(|gate| &gate.run) {
        Some(GateRun::Shell { cmd, .. }) => cmd.clone(),
        _ => String::new(),
    };
    goals.iter().map(|goal| (goal.id.to_string(), cmd(goal))).collect()
}

#[test]
fn the_goals_of_a_stack_are_written_and_accepted_with_their_digests() {
    let world = World::new();
    let repo = world.repo("repo");
    let report = world.try_init(&repo, |options| {
        with("thorough")(options);
        options.gates = Gates::Tests("sh test.sh".to_owned());
    });
    let report = report.unwrap_or_else(|e| panic!("{e}"));
    assert!(has(&report, Action::Create, ".peers/modes-applied.txt"), "{:?}", report.changes);
    assert!(world.agrees(&repo));
    let goals = goals(&repo);
    assert_eq!(goals[0], ("tests-pass".to_owned(), "sh test.sh".to_owned()));
    for id in ["bug-hunt-clean", "no-secrets-committed", "convergence-reached", "skeptic-pass"] {
        assert!(goals.iter().any(|(known, _)| known == id), "{id}: {goals:?}");
    }
    let config = load::load_config(&read(&repo, peers::CONFIG)).unwrap();
    assert_eq!(config.budget.max_runtime_s.map(std::num::NonZero::get), Some(28_800));
    let modes = world.accepted(&repo).unwrap().modes;
    let names: Vec<_> = modes.iter().map(|mode| mode.name.as_str()).collect();
    assert_eq!(names, ["audit", "thorough"]);
    for mode in &modes {
        let line = format!("  {}  v{}  sha256={}\n", mode.name, mode.version, mode.sha256);
        assert!(read(&repo, peers::MODES_APPLIED).contains(&line), "{line}");
    }
    assert!(modes[1].gates.iter().any(|gate| gate.as_str() == "convergence-reached"));
}

#[test]
fn the_tests_are_a_gate_where_a_mode_wants_them() {
    let world = World::new();
    for (name, modes, manifest, gate) in [
        (
            "detected",
            "audit",
            Some(("Cargo.toml", "[package]\nname = \"x\"\n")),
            Some(("tests-pass", "cargo test")),
        ),
        ("documents", "describe", Some(("Cargo.toml", "[package]\nname = \"x\"\n")), None),
    ] {
        let repo = world.repo(name);
        if let Some((file, text)) = manifest {
            std::fs::write(repo.join(file), text).unwrap();
        }
        world.try_init(&repo, with(modes)).unwrap();
        let own = goals(&repo).into_iter().find(|(_, cmd)| !cmd.is_empty());
        match (own, gate) {
            (None, None) => {}
            (Some((id, cmd)), Some((due, begins))) => {
                assert!(id == due && cmd.starts_with(begins), "{name}: {id} {cmd}");
            }
            (own, _) => panic!("{name}: {own:?}"),
        }
    }
}

#[test]
fn what_cannot_be_had_is_refused_before_anything_is_written() {
    let world = World::new();
    let repo = world.repo("repo");
    for (modes, code) in [
        (" , ", exit::USAGE),
        ("describe,audit", exit::USAGE),
        ("adit", exit::INVALID),
        ("audit,nothing", exit::INVALID),
        // Nothing here says how the tests are run.
        ("audit", exit::NEGATIVE),
    ] {
        assert_eq!(world.refused(&repo, with(modes)).exit(), code, "{modes}");
    }
    world.init(&repo);
    // Goals that are there stay.
    assert_eq!(world.refused(&repo, with("describe")).exit(), exit::CONFLICT);
}

#[test]
fn another_acceptance_keeps_the_modes_and_starting_over_drops_them() {
    let world = World::new();
    let repo = world.repo("repo");
    world.try_init(&repo, with("describe")).unwrap();
    let mut disk = world.place(&repo).open_store_disk().unwrap();
    let config = read(&repo, peers::CONFIG);
    accept::write(&mut disk, b"goals: []\n", config.as_bytes(), Timestamp::default(), "op", None).unwrap();
    assert_eq!(world.accepted(&repo).unwrap().modes.len(), 1);
    world.force(&repo);
    assert_eq!(world.accepted(&repo).unwrap().modes, []);
}

#[test]
fn the_task_has_its_review_beside_the_goals_of_modes() {
    let world = World::new();
    let repo = world.repo("repo");
    world
        .try_init(&repo, |options| {
            with("describe")(options);
            options.task = Some("Describe it.\n".to_owned());
        })
        .unwrap();
    assert_eq!(goals(&repo).last().unwrap().0, "task-done");
}
