//! What only the operator does, and what is shown when somebody else did it.

use serde_json::{Value, json};

use crate::support::{Ended, World, goals, heard, program};

/// A script whose first turn runs a command of peers in its repository, then hands off.
fn agent(world: &World, command: &str) {
    let file = world.path("answer");
    let shell = format!(
        "{} {command} >{} 2>&1; echo exit $? >>{}",
        program().display(),
        file.display(),
        file.display()
    );
    let script = json!({"after": "repeat", "turns": [
        [{"shell": shell}, {"handoff": "Work"}],
        [{"handoff": "Work"}],
    ]});
    world.script("ann", &script.to_string());
}

fn answer(world: &World) -> String {
    std::fs::read_to_string(world.path("answer")).unwrap()
}

const COMMANDS: [&str; 12] = [
    "goals accept",
    "goals edit",
    "goals restore",
    "stop",
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
    let accept = format!(
        "env -i HOME=$HOME XDG_STATE_HOME={0}/state XDG_CACHE_HOME={0}/cache XDG_DATA_HOME={0}/data PATH=\"$PATH\" setsid {1} goals accept",
        world.path("home").display(),
        program().display()
    );
    let file = world.path("answer");
    let shell = format!("{accept} >{0} 2>&1; echo exit $? >>{0}", file.display());
    let script = json!({"after": "repeat", "turns": [[{"shell": shell}, {"handoff": "Work"}]]});
    world.script("ann", &script.to_string());
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    let said = answer(&world);
    assert!(said.contains("is for the operator alone") && said.contains(" started it)"), "{said}");
}

#[test]
fn the_operator_is_not_refused_and_what_was_accepted_during_a_run_is_named_to_its_end() {
    let world = World::ready("true");
    let (pipe, go) = (world.fifo("pipe"), world.fifo("go"));
    let wait = format!("echo up > {}; read answer < {}", pipe.display(), go.display());
    let clean = json!({"after": "repeat", "turns": [
        {"on": {"prompt": "# Skeptic turn"}, "steps": [{"skeptic": "clean"}]},
        [{"shell": wait}, {"handoff": "Work"}],
        [{"handoff": "Work"}],
    ]});
    world.script("ann", &clean.to_string());
    let other = json!({"after": "repeat", "turns": [
        {"on": {"prompt": "# Skeptic turn"}, "steps": [{"skeptic": "clean"}]},
        [{"handoff": "Work"}],
    ]});
    world.script("ben", &other.to_string());
    // Red at first, so that the first turn is no skeptic's.
    world.accept_goals(&[("real", "test -e later"), ("more", "true")]);
    let child = world.spawned(&["run", "--max-ticks", "6"]);
    heard(&pipe);
    world.write(".peers/goals.yaml", &goals(&[("real", "true")]));
    let taken = world.accept(&[]);
    taken.out_has("the running loop takes it up");
    std::fs::write(&go, "go\n").unwrap();
    let done = Ended::waited(child).exits(0);
    assert_eq!(done.last_line(), "Stopped: complete", "{}", done.err);
    let words = "goals changed; 1 gate gone: more; 1 gate redefined: real";
    let during = "during tick 1 of ann or the gates after it, by ";
    done.err_has("look at this before you trust the result:");
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
    done.err_has("missing for `complete`:\n  - 1 gate is red: real");
    done.err_has("real is red: first | the last word (exit_code=3)");
}

#[test]
fn a_gate_that_leaves_files_behind_is_told_so_by_verify() {
    let world = World::ready("touch left.pyc; mkdir -p cache; touch cache/x");
    let done = world.peers(&["verify"]).exits(0);
    done.err_has("note: the gates changed the work tree: cache/x, left.pyc;");
    done.out_has("The gates changed the work tree: cache/x, left.pyc");
    let again = world.peers(&["verify", "--json"]).exits(0).json("peers.verify/2");
    assert_eq!((&again["dirtied"], &again["dirtied_count"]), (&json!([]), &0.into()), "as before");
}

#[test]
fn what_gates_did_to_the_work_tree_is_unknown_where_nobody_could_look() {
    let world = World::ready("touch left.pyc");
    let pristine = world.peers(&["verify", "--pristine", "--json"]).exits(0).json("peers.verify/2");
    assert_eq!((&pristine["dirtied"], &pristine["dirtied_count"]), (&Value::Null, &Value::Null));
    let _loop = world.hold_lock(json!({"run_id": "00000000000000aa"}));
    let beside = world.peers(&["verify"]).exits(0);
    beside.out_has("Whether the gates changed the work tree is not known: a loop works here");
    let json = world.peers(&["verify", "--json"]).exits(0).json("peers.verify/2");
    assert_eq!((&json["dirtied"], &json["dirtied_count"]), (&Value::Null, &Value::Null));
}

#[test]
fn an_act_beside_another_command_waits_for_the_next_run_and_says_so() {
    let world = World::ready("true");
    world.write(".peers/goals.yaml", &goals(&[("other", "true")]));
    let land = world.hold_lock(json!({"kind": "command", "command": "land"}));
    let done = world.accept(&[]);
    let words = format!(
        "; `peers land` is at work, process {}, so it waits; the next run takes it up\n",
        land.process.id()
    );
    assert!(done.out.ends_with(&words), "{}", done.out);
    drop(land);
    assert_eq!(world.records("operator").len(), 1, "the one before");
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    assert_eq!(world.records("operator").len(), 2);
    world.write(".peers/goals.yaml", &goals(&[("third", "true")]));
    let _unknown = world.hold_lock(json!({}));
    let said = world.peers(&["ack", "weakening:1", "--reason", "fine"]).exits(0).out;
    assert!(
        said.contains("another process holds the lock") && said.contains("otherwise the next run does"),
        "{said}"
    );
    let json = world.accept(&["--json"]).json("peers.goals-accept/1");
    assert_eq!(json["taken"], "waiting");
}

#[test]
fn a_blocked_peer_is_acknowledged_by_its_name_and_only_while_it_is_blocked() {
    let world = World::ready("true");
    world.script("ann", "turns:\n- - commit: {subject: Stuck, allow_empty: true, trailers: {Peer-Status: blocked, Blocked-On: no database}}\n");
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    world.peers(&["ack", "blocked:zed", "--reason", "up again"]).exits(3).err_has("no peer is called `zed`");
    let refused = world.peers(&["ack", "bug:NOPE", "--reason", "up again"]).exits(3);
    refused.err_has("`peers bug-hunt summary` lists them");
    let refused = world.peers(&["ack", "blocked:ben", "--reason", "up again"]).exits(3);
    refused.err_has("`ben` is not blocked").err_has("who is: ann");
    world.peers(&["ack", "blocked:ann", "--reason", "up again"]).exits(0);
    assert_eq!(world.records("operator").last().unwrap()["target"], json!({"kind": "blocked", "id": "ann"}));
    world.peers(&["ack", "blocked:ann", "--reason", "up again"]).exits(3).err_has("no peer is");
}
