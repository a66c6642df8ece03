//! Gates and settings that `init` lays down for what it was told, or found.

use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::Agents;

fn tests_pass(options: &mut InitOptions) {
    options.gates = Gates::Tests("make check".to_owned());
}

#[test]
fn a_gate_of_the_command_line_is_laid_down_and_accepted() {
    let world = World::new();
    let repo = world.repo("repo");
    let report = world.try_init(&repo, tests_pass).unwrap();
    assert_eq!(report.notes, ["goals.yaml has the gate `tests-pass`, which runs `make check`".into()]);
    assert!(world.agrees(&repo));
    let goals = std::fs::read_to_string(repo.join(".peers/goals.yaml")).unwrap();
    assert!(goals.contains("    cmd: make check\n") && !goals.contains("placeholder"), "{goals}");
    // Starting over with another one keeps a copy of the first.
    let report = world
        .try_init(&repo, |o| {
            o.existing = Existing::Force;
            o.gates = Gates::Tests("true".to_owned());
        })
        .unwrap();
    assert_eq!(report.outcome, Outcome::Rebuilt);
    assert!(world.agrees(&repo));
    let goals = std::fs::read_to_string(repo.join(".peers/goals.yaml")).unwrap();
    assert!(goals.contains("    cmd: \"true\"\n"), "{goals}");
}

#[test]
fn what_cannot_be_put_into_the_goals_is_refused_before_anything_is_written() {
    let world = World::new();
    let repo = world.repo("repo");
    let none = world.refused(&repo, |o| o.gates = Gates::Detected);
    assert_eq!(none.exit(), exit::NEGATIVE);
    let empty = world.refused(&repo, |o| o.gates = Gates::Tests(" ".to_owned()));
    assert_eq!(empty.exit(), exit::USAGE);
    // Goals that a clone brought along are for their operator to read.
    let cloned = world.repo("cloned");
    std::fs::create_dir(cloned.join(".peers")).unwrap();
    std::fs::write(cloned.join(".peers/goals.yaml"), "goals: []\n").unwrap();
    git(&cloned, &["add", "-f", ".peers"]);
    git(&cloned, &["commit", "-q", "-m", "goals"]);
    let stays = world.refused(&cloned, tests_pass);
    assert!(stays.to_string().contains("--test: goals.yaml exists and is kept"), "{stays}");
}

#[test]
fn gates_that_were_accepted_before_are_not_replaced_unseen() {
    let world = World::new();
    let repo = world.repo("repo");
    world.init(&repo);
    world.deinit(&repo, false).unwrap();
    // Nothing of the operator's own was in it.
    world.try_init(&repo, tests_pass).unwrap();
    assert!(world.agrees(&repo));
    world.deinit(&repo, false).unwrap();
    let other = world.refused(&repo, |o| o.gates = Gates::Tests("true".to_owned()));
    assert!(other.to_string().contains("was accepted here before"), "{other}");
    world.try_init(&repo, tests_pass).unwrap();
    assert!(world.agrees(&repo));
}

#[test]
fn what_is_detected_becomes_gates_without_a_word_of_the_files() {
    let world = World::new();
    let repo = world.repo("repo");
    std::fs::write(repo.join("go.mod"), "module x\n").unwrap();
    let report = world.try_init(&repo, |o| o.gates = Gates::Detected).unwrap();
    assert!(
        report.notes[0].to_string().starts_with("goals.yaml has the gates `tests-pass`"),
        "{:?}",
        report.notes
    );
    assert!(world.agrees(&repo));
    let goals = std::fs::read_to_string(repo.join(".peers/goals.yaml")).unwrap();
    assert!(goals.contains("\n  - id: tests-pass\n") && goals.contains("\n  - id: lint-clean\n"), "{goals}");
}

#[test]
fn codex_is_pinned_to_its_own_model_where_the_configuration_is_new() {
    let world = World::new();
    std::fs::write(world.dir("home/.codex").join("config.toml"), "model = \"gpt-5-codex\"\n").unwrap();
    let models = |repo: &std::path::Path| -> Vec<Option<String>> {
        let text = std::fs::read_to_string(repo.join(".peers/config.yaml")).unwrap();
        load::load_config(&text).unwrap().peers.into_iter().map(|peer| peer.model).collect()
    };
    let repo = world.repo("repo");
    let report = world.init(&repo);
    assert_eq!(models(&repo), [None, Some("gpt-5-codex".to_owned())]);
    assert!(
        report.notes[0].to_string().starts_with("codex is pinned to `gpt-5-codex`, the model in "),
        "{report:?}"
    );
    assert!(world.agrees(&repo));

    let given = world.repo("given");
    let model = PeerSetting { field: Field::Model, text: "codex=o3".to_owned() };
    let report = world.try_init(&given, |o| o.settings = vec![model]).unwrap();
    assert_eq!((models(&given), report.notes), (vec![None, Some("o3".to_owned())], Vec::new()));

    let cloned = world.repo("cloned");
    std::fs::create_dir(cloned.join(".peers")).unwrap();
    std::fs::write(cloned.join(".peers/config.yaml"), CONFIG).unwrap();
    git(&cloned, &["add", "-f", ".peers"]);
    git(&cloned, &["commit", "-q", "-m", "shared"]);
    let report = world.init(&cloned);
    assert_eq!(models(&cloned), [None, None]);
    assert!(!report.notes.iter().map(ToString::to_string).any(|note| note.contains("pinned")), "{report:?}");
}

#[test]
fn a_program_of_a_gate_that_is_not_installed_is_named() {
    let mut world = World::new();
    let bin = world.dir("bin");
    std::fs::write(bin.join("make"), "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(bin.join("make"), std::fs::Permissions::from_mode(0o755)).unwrap();
    world.env = Env::from_pairs(world.env.vars().iter().cloned().chain([("PATH".into(), bin.into())]));
    for (name, cmd, due) in [
        ("a", "tox -e py", true),
        ("b", "make check", false),
        ("c", "./run.sh", false),
        ("d", "cd web && npm test", false),
        ("e", "CI=1 npm test", false),
    ] {
        let repo = world.repo(name);
        let report = world.try_init(&repo, |o| o.gates = Gates::Tests(cmd.to_owned())).unwrap();
        let told =
            report.notes.iter().map(ToString::to_string).any(|note| note.contains("`tox` is not installed"));
        assert_eq!(told, due, "{cmd}: {report:?}");
    }
}

#[test]
fn the_agents_that_are_installed_take_turns_and_in_a_configuration_that_stays_none_is_missed() {
    let mut world = World::new();
    let bin = world.dir("bin");
    std::fs::write(bin.join("codex"), "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(bin.join("codex"), std::fs::Permissions::from_mode(0o755)).unwrap();
    world.env = Env::from_pairs(world.env.vars().iter().cloned().chain([("PATH".into(), bin.into())]));
    let installed = |o: &mut InitOptions| o.agents = Agents::Installed;
    let configured =
        |repo: &std::path::Path| std::fs::read_to_string(repo.join(".peers/config.yaml")).unwrap();
    let top = world.repo("top");
    world.try_init(&top, installed).unwrap();
    let names = load::load_config(&configured(&top)).unwrap().peers;
    assert_eq!(names.iter().map(|peer| peer.name.as_str()).collect::<Vec<_>>(), ["codex", "codex-2"]);
    let cloned = world.repo("cloned");
    std::fs::create_dir(cloned.join(".peers")).unwrap();
    std::fs::write(cloned.join(".peers/config.yaml"), CONFIG).unwrap();
    world.try_init(&cloned, installed).unwrap();
    assert_eq!(configured(&cloned), CONFIG);
}
