//! A loop that is told to stop, and one that is killed.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Child;

use crate::support::{Ended, World, heard, holds, program};

/// A world whose first peer announces itself in a pipe and then hangs.
fn hanging() -> World {
    let world = World::ready("true");
    let pipe = world.fifo("pipe");
    let announce = format!("echo up > {}", pipe.display());
    let script =
        serde_json::json!({"turns": [[{"shell": announce}, {"hang": "sleep"}], [{"handoff": "Again"}]]});
    world.script("ann", &script.to_string());
    world
}

/// A running loop whose peer is up.
fn started(world: &World) -> Child {
    let child = world.spawned(&["run", "--max-ticks", "1"]);
    // Opening the pipe waits for the peer to open it.
    heard(&world.path("pipe"));
    child
}

fn signal(world: &World, child: &Child, name: &str) {
    let sent = world.command("sh").arg("-c").arg(format!("kill -{name} {}", child.id())).status().unwrap();
    assert!(sent.success());
}

#[test]
fn a_signal_ends_the_turn_and_the_loop_with_its_code() {
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let world = hanging();
        let mut child = started(&world);
        let running = world.peers(&["status"]).exits(0);
        running.out_has("running");
        signal(&world, &child, name);
        let mut out = String::new();
        child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{name}");
        assert_eq!(out, "Stopped: interrupted\n");
        let exit = world.records("exit").pop().unwrap();
        assert_eq!((&exit["reason"], &exit["signal"]), (&"interrupted".into(), &(code - 128).into()));
        assert_eq!(world.records("tick").pop().unwrap()["classification"], "interrupted");
        assert!(world.read(".peers/last-stop-reason.txt").starts_with("interrupted "));
    }
}

#[test]
fn stop_ends_the_loop_of_this_repository_and_says_why_it_stopped() {
    for more in [&[][..], &["--now"]] {
        let world = hanging();
        let mut child = started(&world);
        let stop = world.peers(&[&["stop"], more].concat()).exits(0);
        assert_eq!(stop.out, "Stopped: interrupted\n", "{}", stop.err);
        assert_eq!(child.wait().unwrap().code(), Some(143));
        assert_eq!(world.records("tick").pop().unwrap()["classification"], "interrupted");
        let none = world.peers(&[&["stop"], more].concat()).exits(1);
        assert_eq!(none.err, "error: no loop is running here\n");
    }
    let world = hanging();
    let mut child = started(&world);
    let json = world.peers(&["stop", "--json"]).exits(0).json("peers.stop/1");
    let run = &world.records("run-started")[0]["run_id"];
    holds(&json, &serde_json::json!({"result": "stopped", "run_id": run, "reason": "interrupted"}));
    child.wait().unwrap();
    // Below the top there is no store, and that is said.
    std::fs::create_dir(world.path("repo/sub")).unwrap();
    world.peers(&["-C", "sub", "stop"]).exits(3).err_has("hint: the repository's top is above: `peers -C ");
    // Another command that holds the lock is no loop, and is left alone.
    let _held = world.hold_lock(serde_json::json!({"command": "land"}));
    world.peers(&["stop"]).exits(1).err_has("no loop is running here: `peers land` is at work");
}

#[test]
fn ctrl_c_in_the_trial_skips_it_and_names_the_gate_that_hung() {
    let world = hanging();
    let (pipe, turn) = (world.fifo("trial"), world.path("pipe"));
    let hangs = format!("test -d .peers || {{ echo up > {}; exec tail -f /dev/null; }}", pipe.display());
    world.accept_goals(&[("real", &hangs)]);
    let mut child = world.spawned(&["run", "--max-ticks", "1"]);
    heard(&pipe);
    signal(&world, &child, "INT");
    // The turn begins.
    heard(&turn);
    signal(&world, &child, "TERM");
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143), "{err}");
    assert!(err.contains("warning: the trial was cut off before `real` answered"), "{err}");
    assert_eq!((world.records("trial").len(), &world.records("trial")[0]["cut"]), (1, &true.into()));
}

#[test]
fn a_killed_loop_is_seen_as_crashed_and_its_turn_is_recovered_once() {
    let world = hanging();
    let mut child = started(&world);
    signal(&world, &child, "KILL");
    child.wait().unwrap();
    assert!(world.peers(&["status"]).exits(0).out.contains("crashed"));
    world.peers(&["undo", "last"]).exits(4);
    // The tick that was cut short is none of those that this run may take.
    let again = world.peers(&["run", "--max-ticks", "1"]).exits(0);
    let killed = world.records("run-started")[0]["run_id"].as_str().unwrap().to_owned();
    let left = "what tick 1 of ann left is judged like any turn, its time and cost are lower bounds";
    again.err_has(&format!("run {killed} was killed or lost: {left}\n"));
    world.peers(&["report"]).exits(0).out_has(&format!("it never ended; {left}"));
    let ticks = world.records("tick");
    assert_eq!(ticks.len(), 2);
    assert_eq!((&ticks[0]["recovered"], &ticks[0]["classification"]), (&true.into(), &"interrupted".into()));
    assert_eq!(ticks[1]["recovered"], false);
    world.peers(&["state", "check"]).exits(0);
}

#[test]
fn a_drained_loop_finishes_its_turn() {
    let world = World::ready("true");
    let (pipe, go) = (world.fifo("pipe"), world.fifo("go"));
    let wait = format!("echo up > {}; read answer < {}", pipe.display(), go.display());
    let script = serde_json::json!({"turns": [[{"shell": wait}, {"handoff": "Done in time"}]]});
    world.script("ann", &script.to_string());
    let mut child = started(&world);
    let stop = world.peers(&["stop", "--after-tick"]).exits(0);
    assert!(stop.out.starts_with("Stopping after the running turn: run "), "{}", stop.out);
    // The turn goes on; that the signal was heard is said at once.
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("stopping after this turn") {
        line.clear();
        assert!(err.read_line(&mut line).unwrap() > 0, "the loop ended without a word");
    }
    std::fs::write(&go, "go\n").unwrap();
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!((child.wait().unwrap().code(), out.as_str()), (Some(0), "Stopped: drained\n"));
    assert_eq!(world.records("tick").pop().unwrap()["outcome"], "handoff");
}

#[test]
fn while_a_turn_runs_nobody_claims_that_the_work_tree_is_clean() {
    let world = World::ready("true");
    let pipe = world.fifo("pipe");
    world.peers(&["run", "--max-ticks", "2"]).exits(0);
    let announce = format!("echo up > {}", pipe.display());
    let script = serde_json::json!({"after": "repeat", "turns": [[{"shell": announce}, {"hang": "sleep"}]]});
    world.scripts(&script.to_string());
    let mut child = started(&world);
    world.write("README.md", "edited in the turn\n");
    world.peers(&["status"]).exits(0).out_has("work tree: not looked at while a turn runs\n");
    let json = world.peers(&["status", "--json"]).exits(0).json("peers.status/1");
    let core = &json["loop"]["value"];
    assert_eq!((core["clean"].is_null(), core["dirty_count"].is_null()), (true, true), "{core}");
    world.peers(&["report"]).exits(0).out_has("work tree not looked at while a turn runs");
    signal(&world, &child, "TERM");
    child.wait().unwrap();
}

#[test]
fn what_a_killed_verify_left_is_ended_and_removed_by_the_next_one() {
    let world = World::ready("true");
    let (heard_at, blocked) = (world.fifo("heard"), world.fifo("blocked"));
    let pid = world.path("pid");
    let inner =
        format!("echo $$ > {}; echo up > {}; cat {}", pid.display(), heard_at.display(), blocked.display());
    let script = world.path("inner.sh");
    std::fs::write(&script, inner).unwrap();
    let text = format!(
        "goals:\n- {{id: hangs, type: hard, tree: copy, cmd: 'sh {}; true', pass_when: exit_code == 0}}\n\
         - {{id: other, type: hard, cmd: 'true', pass_when: exit_code == 0}}\n",
        script.display()
    );
    world.write(".peers/goals.yaml", &text);
    world.accept(&[]).exits(0);
    let mut verify = world.command(program()).args(["verify", "--no-write"]).spawn().unwrap();
    heard(&heard_at);
    verify.kill().unwrap();
    verify.wait().unwrap();
    let pid: u32 = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    let kept = || {
        let cache = std::fs::read_dir(world.path("home/cache/peers")).unwrap();
        let dirs = cache.flat_map(|project| std::fs::read_dir(project.unwrap().path()).unwrap());
        dirs.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(kept().len(), 2, "{:?}", kept());
    // One that is young may be somebody's who is about to lock it.
    let old = std::time::SystemTime::now() - std::time::Duration::from_mins(1);
    for project in std::fs::read_dir(world.path("home/cache/peers")).unwrap() {
        for dir in std::fs::read_dir(project.unwrap().path()).unwrap() {
            std::fs::File::open(dir.unwrap().path()).unwrap().set_modified(old).unwrap();
        }
    }
    world.peers(&["verify", "--only", "other", "--no-write"]).exits(0);
    // What has ended has no command line any more, whoever has still to ask for its exit.
    let left = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    assert!(left.is_empty(), "it lives on: {}", String::from_utf8_lossy(&left));
    assert_eq!(kept(), Vec::<String>::new());
}

#[test]
fn a_verification_that_is_interrupted_says_so_and_leaves_no_older_report() {
    let world = World::ready("true");
    let (up, never) = (world.fifo("up"), world.fifo("never"));
    let gate = format!("echo up > {}; cat {}", up.display(), never.display());
    world.accept_goals(&[("real", &gate)]);
    world.write(".peers/VERIFY.md", "all green");
    let child = world.spawned(&["verify", "--json"]);
    heard(&up);
    signal(&world, &child, "TERM");
    let done = Ended::waited(child).exits(143);
    done.err_has("interrupted by signal 15; no report was written");
    done.json("peers.error/1");
    assert!(!world.at(".peers/VERIFY.md").exists());
}
