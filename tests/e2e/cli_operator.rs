//! What only the operator does, and what is shown when somebody else did it.

use crate::support::{World, goals, program};

/// A script whose first turn runs a command of peers in its repository, then hands off.
fn agent(world: &World, command: &str) {
    let file = world.path("answer");
    let shell = format!(
        "{} {command} >{} 2>&1; echo exit $? >>{}",
        program().display(),
        file.display(),
        file.display()
    );
    let script = serde_json::json!({"after": "repeat", "turns": [
        [{"shell": shell}, {"handoff": "Work"}],
        [{"handoff": "Work"}],
    ]});
    world.script("ann", &script.to_string());
}

fn answer(world: &World) -> String {
    std::fs::read_to_string(world.path("answer")).unwrap()
}

const COMMANDS: [&str; 9] = [
    "goals accept",
    "ack weakening:1 --reason x",
    "undo last",
    "land",
    "store attach /nowhere",
    "init --force",
    "deinit --purge",
    "state rebuild",
    "salvage restore x",
];

#[test]
fn an_agent_in_its_turn_is_refused_every_act_of_the_operator() {
    for command in COMMANDS {
        let world = World::ready("true");
        agent(&world, command);
        world.peers(&["run", "--max-ticks", "1"]).exits(0);
        let said = answer(&world);
        assert!(said.contains("is for the operator alone") && said.contains("exit 5"), "{command}: {said}");
        assert!(world.records("operator").len() == 1, "{command}: only the test itself accepted");
    }
}

#[test]
fn without_the_marks_in_its_environment_it_is_known_by_the_loop_that_started_it() {
    let world = World::ready("true");
    world.write("goals.new", &goals(&[("weak", "true")]));
    world.commit("What the agent will put in place");
    let accept = format!(
        "env -i HOME=$HOME XDG_STATE_HOME={0}/state XDG_CACHE_HOME={0}/cache XDG_DATA_HOME={0}/data PATH=\"$PATH\" setsid {1} goals accept",
        world.path("home").display(),
        program().display()
    );
    let file = world.path("answer");
    let shell = format!("{accept} >{0} 2>&1; echo exit $? >>{0}", file.display());
    let script = serde_json::json!({"after": "repeat", "turns": [[{"shell": shell}, {"handoff": "Work"}]]});
    world.script("ann", &script.to_string());
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    let said = answer(&world);
    assert!(said.contains("is for the operator alone") && said.contains(" started it)"), "{said}");
}

#[test]
fn the_operator_is_not_refused_and_what_was_accepted_during_a_run_is_named_to_its_end() {
    let world = World::ready("true");
    let pipe = world.path("pipe");
    let go = world.path("go");
    for path in [&pipe, &go] {
        assert!(world.command("mkfifo").arg(path).status().unwrap().success());
    }
    let wait = format!("echo up > {}; read answer < {}", pipe.display(), go.display());
    let clean = serde_json::json!({"after": "repeat", "turns": [
        {"on": {"prompt": "# Skeptic turn"}, "steps": [{"skeptic": "clean"}]},
        [{"shell": wait}, {"handoff": "Work"}],
        [{"handoff": "Work"}],
    ]});
    world.script("ann", &clean.to_string());
    let other = serde_json::json!({"after": "repeat", "turns": [
        {"on": {"prompt": "# Skeptic turn"}, "steps": [{"skeptic": "clean"}]},
        [{"handoff": "Work"}],
    ]});
    world.script("ben", &other.to_string());
    // Red at first, so that the first turn is no skeptic's.
    world.write(".peers/goals.yaml", &goals(&[("real", "test -e later"), ("more", "true")]));
    world.peers(&["goals", "accept"]).exits(0);
    let child = world
        .command(program())
        .args(["run", "--max-ticks", "6"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(std::fs::File::open(&pipe).unwrap()), &mut line)
        .unwrap();
    world.write(".peers/goals.yaml", &goals(&[("real", "true")]));
    let taken = world.peers(&["goals", "accept"]).exits(0);
    assert!(taken.out.contains("the running loop takes it up"), "{}", taken.out);
    std::fs::write(&go, "go\n").unwrap();
    let done = crate::support::Ended::of(&child.wait_with_output().unwrap()).exits(0);
    assert_eq!(done.last_line(), "Stopped: complete", "{}", done.err);
    let words = "goals changed; 1 gate gone: more; 1 gate redefined: real";
    let during = "during tick 1 of ann or the gates after it, by ";
    assert!(done.err.contains("look at this before you trust the result:"), "{}", done.err);
    for text in [done.err, world.peers(&["status"]).exits(0).out, world.peers(&["report"]).exits(0).out] {
        assert!(text.contains(words) && text.contains(during), "{text}");
    }
}

#[test]
fn without_a_name_the_number_of_the_user_is_recorded() {
    let world = World::ready("true");
    let accept = |user: Option<(&str, &str)>, gate: &str| {
        world.write(".peers/goals.yaml", &goals(&[(gate, "true")]));
        let mut command = world.command(program());
        command.env_remove("USER").args(["goals", "accept"]);
        command.envs(user);
        assert!(command.status().unwrap().success());
        world.records("operator").pop().unwrap()["by"].as_str().unwrap().to_owned()
    };
    assert_eq!(accept(Some(("LOGNAME", "ann")), "one"), "ann");
    let by = accept(None, "two");
    assert!(by.strip_prefix("uid ").is_some_and(|id| id.parse::<u32>().is_ok()), "{by}");
}

#[test]
fn a_stop_that_is_not_complete_says_what_is_missing_and_warnings_are_printed() {
    let world = World::ready("echo first; echo; echo the last word; exit 3");
    let done = world.peers(&["run", "--max-ticks", "1"]).exits(0);
    assert!(done.err.contains("missing for `complete`:\n  - 1 gate is red: real"), "{}", done.err);
    assert!(done.err.contains("real is red: first | the last word (exit_code=3)"), "{}", done.err);
}

#[test]
fn a_gate_that_leaves_files_behind_is_told_so_by_verify() {
    let world = World::ready("touch left.pyc; mkdir -p cache; touch cache/x");
    let done = world.peers(&["verify"]).exits(0);
    assert!(done.err.contains("note: the gates changed the work tree: cache/x, left.pyc;"), "{}", done.err);
    assert!(done.out.contains("The gates changed the work tree: cache/x, left.pyc"), "{}", done.out);
    let again = world.peers(&["verify", "--json"]).exits(0).json("peers.verify/1");
    assert_eq!(again["dirtied"], serde_json::json!([]), "it was there before");
}
