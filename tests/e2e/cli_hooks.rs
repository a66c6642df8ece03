//! Hooks of the operator, from the acceptance of the file to the end of a run.

use serde_json::{Value, json};

use crate::support::{World, program};

const KINDS: [&str; 6] = ["pre_turn", "post_turn", "pre_gate", "post_gate", "converge", "halt"];

/// Six hooks, each of which keeps what it is told.
fn hooks(world: &World) -> String {
    let keep = format!("cat >> {}; echo kept by $PEERS_HOOK", world.path("heard").display());
    let hook = |kind: &&str| ((*kind).to_owned(), json!([{"cmd": ["/bin/sh", "-c", keep]}]));
    let all: Value = KINDS.iter().map(hook).collect();
    format!("skeptic: {{enabled: false}}\nhooks: {all}\n")
}

#[test]
fn hooks_are_shown_before_they_are_accepted_and_run_around_everything() {
    let world = World::ready("test -f ben.txt");
    world.write(".peers/config.yaml", &world.config(&hooks(&world)));
    let diff = world.peers(&["goals", "diff", "--json"]).json("peers.goals-diff/1");
    assert_eq!(diff["widening"]["needed"], true);
    let digest = diff["widening"]["digest"].as_str().unwrap().to_owned();
    world.peers(&["goals", "accept"]).exits(5);
    let told = world.peers(&["goals", "diff"]).exits(1).out;
    for kind in KINDS {
        assert!(told.contains(&format!("runs: hook `{kind}` runs")), "{told}");
    }
    assert_eq!(told.matches("/bin/sh -c 'cat >> ").count(), KINDS.len(), "each in full: {told}");
    world.peers(&["goals", "accept", "--widen", &digest]).exits(0);
    world.peers(&["info"]).exits(0).out_has("hooks:").out_has("converge [/bin/sh -c");

    let ran = world.peers(&["run"]).exits(0);
    assert_eq!(ran.last_line(), "Stopped: complete");
    ran.err_lacks("hook `").err_lacks("kept by");
    let capped = world.peers(&["run", "--max-ticks", "1"]);
    let heard = std::fs::read_to_string(world.path("heard")).unwrap();
    let heard: Vec<Value> = heard.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for kind in &KINDS[..5] {
        assert!(heard.iter().any(|event| event["hook"] == *kind), "{kind}: {heard:#?}");
        assert!(heard.iter().all(|event| event["schema"] == "peers.hook/1"));
    }
    assert_eq!(capped.last_line(), "Stopped: complete", "nothing is left to do");
    assert!(world.read(".peers/log/hooks/tick-00001-pre_turn.log").contains("kept by pre_turn\n"));

    world.write("ben.txt.keep", "x");
    world.git(&["rm", "-q", "ben.txt"]);
    world.commit("Break it");
    world.script("ann", "after: repeat\nturns:\n- - handoff: Nothing\n");
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    let heard = std::fs::read_to_string(world.path("heard")).unwrap();
    let last: Value = serde_json::from_str(heard.lines().last().unwrap()).unwrap();
    assert_eq!((&last["hook"], &last["reason"]), (&json!("halt"), &json!("max_ticks")));
}

#[test]
fn the_live_line_says_which_hook_runs() {
    let world = World::ready("true");
    let gate = world.fifo("gate");
    let hook = json!([{"cmd": ["/bin/cat", gate], "timeout_s": 60}]);
    world.accept_config(&format!("hooks: {{halt: {hook}}}\n"));
    let mut command = world.command(program());
    command.args(["run", "--max-ticks", "1"]).env("TERM", "xterm");
    // The hook waits until the line was seen.
    let (code, shown) = World::on_terminal_until(command, "", "hook halt \u{b7} ", || {
        std::fs::write(&gate, "go on").unwrap();
    });
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains(" \u{b7} /bin/cat"), "{shown}");
    assert!(!shown.contains("was ended at its limit"), "{shown}");
}
