//! Containers: that they end with whoever asked for them, what passes through their tools, and what they hold besides
//! the table of walls.rs. All of it with `PEERS_TEST_PODMAN=1` alone, by tests/podman/run.
#![cfg(target_os = "linux")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Ended, World};

/// Looks at containers until they are as a test waits for; each look is a process of its own.
const LOOKS: usize = 400;

/// A world in which agents and gates are in containers.
fn world() -> Option<World> {
    let world = World::ready("true");
    if !world.has_wall("podman") {
        return None;
    }
    world.set_wall("podman");
    Some(world)
}

/// A world whose loop is put into a container. Behind the wall in there agents have what they have elsewhere.
fn whole() -> Option<World> {
    let world = world()?;
    let dir = crate::support::program().parent().unwrap().to_owned();
    let policy =
        format!("backend: podman\npeers: {{write: [{:?}], read: [{dir:?}]}}\n", world.path("scripts"));
    std::fs::write(world.path("home/config/peers/sandbox.yaml"), policy).unwrap();
    world.ctl(&["add", "."]).exits(0);
    Some(world)
}

fn podman(world: &World, args: &[&str]) -> String {
    Ended::of(&world.command("podman").args(args).output().unwrap()).exits(0).out
}

/// Containers of the run that this world has, or of anybody.
fn containers(world: &World, run: Option<&str>) -> Vec<String> {
    let filter = run.map_or("label=io.peers.keeper".to_owned(), |run| format!("label=io.peers.run={run}"));
    let list = podman(world, &["ps", "--all", "--quiet", "--no-trunc", "--filter", &filter]);
    list.lines().map(str::to_owned).collect()
}

#[track_caller]
fn all_end(world: &World, run: &str) {
    let left = || containers(world, Some(run));
    assert!((0..LOOKS).any(|_| left().is_empty()), "left: {:?}", left());
}

fn run_id(world: &World) -> String {
    world.records("run-started")[0]["run_id"].as_str().unwrap().to_owned()
}

/// Makes ann's turn run this, with a FIFO that is held open as long as anything of it lives.
fn turn(world: &World, then: &str) -> std::path::PathBuf {
    let held = world.fifo("scripts/held");
    // A process of its own session stays too.
    let run = format!("exec 3> {}; setsid sleep 600 & echo up >&3; {then}", held.display());
    world.script("ann", &json!({"turns": [[{"shell": {"run": run}}]]}).to_string());
    held
}

/// Waits for the turn to be there.
fn reader(held: &Path) -> BufReader<std::fs::File> {
    let mut reader = BufReader::new(std::fs::File::open(held).unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    reader
}

#[test]
fn a_loop_that_is_killed_leaves_no_process_and_no_container() {
    let Some(world) = world() else { return };
    let held = turn(&world, "sleep 600");
    let mut run = world.spawned(&["run", "--max-ticks", "1"]);
    let mut held = reader(&held);
    let id = run_id(&world);
    assert_eq!(containers(&world, Some(&id)).len(), 1);
    run.kill().unwrap();
    run.wait().unwrap();
    // The end of the file: nobody inside has it open any more.
    assert_eq!(held.read_to_end(&mut Vec::new()).unwrap(), 0);
    all_end(&world, &id);
}

#[test]
fn a_keeper_that_is_killed_takes_the_container_along_and_the_next_start_clears_what_is_left() {
    let Some(world) = world() else { return };
    let held = turn(&world, "sleep 600");
    let run = world.spawned(&["run", "--max-ticks", "1"]);
    let mut held = reader(&held);
    let id = run_id(&world);
    let container = containers(&world, Some(&id)).remove(0);
    let keeper =
        podman(&world, &["inspect", "--format", "{{index .Config.Labels \"io.peers.keeper\"}}", &container]);
    let keeper = keeper.split('.').next().unwrap().to_owned();
    assert!(Command::new("kill").args(["-9", &keeper]).status().unwrap().success());
    assert_eq!(held.read_to_end(&mut Vec::new()).unwrap(), 0);
    Ended::waited(run);
    world.peers(&["sandbox", "shell", "--gate", "-c", "true"]).exits(0);
    all_end(&world, &id);
}

#[test]
fn a_stop_asks_the_agent_and_ends_it_within_its_grace() {
    let Some(world) = world() else { return };
    // The agent itself hears it.
    let (asked, held) = (world.path("scripts/asked"), world.fifo("scripts/held"));
    let script = format!(
        "exec 3> {}; trap 'echo yes > {}; exit 0' TERM; echo up >&3; while :; do sleep 1; done\n",
        held.display(),
        asked.display()
    );
    std::fs::write(world.path("scripts/agent"), script).unwrap();
    let peer = |name| json!({"name": name, "tool": "plain", "argv": ["sh", world.path("scripts/agent")]});
    world.write(".peers/config.yaml", &json!({"peers": [peer("ann"), peer("ben")]}).to_string());
    world.accept(&[]);
    let run = world.spawned(&["run", "--max-ticks", "1"]);
    let mut held = reader(&held);
    let id = run_id(&world);
    world.peers(&["stop"]).exits(0);
    Ended::waited(run);
    assert_eq!(std::fs::read_to_string(asked).unwrap(), "yes\n");
    assert_eq!(held.read_to_end(&mut Vec::new()).unwrap(), 0);
    all_end(&world, &id);
}

#[test]
fn a_gate_that_takes_too_long_is_ended_with_its_container_and_the_last_line_of_one_is_kept() {
    let Some(world) = world() else { return };
    world.write(
        ".peers/goals.yaml",
        "goals:\n  - {id: slow, type: hard, cmd: \"trap '' TERM; while :; do sleep 1; done\", pass_when: exit_code == 0, timeout_s: 2}\n  \
         - {id: says, type: hard, cmd: 'echo first; echo last; exit 3', pass_when: exit_code == 3}\n",
    );
    world.accept(&[]);
    let done = world.peers(&["verify", "--json"]);
    let report: Value = serde_json::from_str(&done.out).unwrap();
    let text = report.to_string();
    assert!(text.contains("slow") && text.contains("timeout"), "{report:#}");
    assert!(containers(&world, None).is_empty(), "{:?}", containers(&world, None));
    let said = world.peers(&["sandbox", "shell", "--gate", "-c", "seq 20000; echo last; exit 3"]).exits(3);
    assert_eq!((said.out.lines().count(), said.last_line()), (20001, "last"));
}

#[test]
fn how_a_program_ended_is_told_and_one_that_is_not_there_too() {
    let Some(world) = world() else { return };
    let shell = |script: &str| world.peers(&["sandbox", "shell", "-c", script]).code;
    for (script, code) in
        [("exit 125", 125), ("exit 0", 0), ("kill -9 $$", 137), ("kill -TERM $$", 143), ("none-such", 127)]
    {
        assert_eq!(shell(script), Some(code), "{script}");
    }
}

#[test]
fn values_of_variables_are_not_in_what_podman_shows() {
    let Some(world) = world() else { return };
    let policy = "backend: podman\nrequire: 0\npeers: {env: [OWN_API_KEY], write: [SCRIPTS]}\n"
        .replace("SCRIPTS", world.path("scripts").to_str().unwrap());
    std::fs::write(world.path("home/config/peers/sandbox.yaml"), policy).unwrap();
    let (up, go) = (world.fifo("scripts/up"), world.fifo("scripts/go"));
    let run = format!("echo \"$OWN_API_KEY\" > {}; read x < {}", up.display(), go.display());
    world.script("ann", &json!({"turns": [[{"shell": {"run": run}}]]}).to_string());
    let mut command = world.command(crate::support::program());
    let run = command.env("OWN_API_KEY", "secret-value").args(["run", "--max-ticks", "1"]);
    let run = run.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    assert_eq!(std::fs::read_to_string(&up).unwrap(), "secret-value\n", "the agent has it");
    let shown = podman(&world, &["inspect", &containers(&world, Some(&run_id(&world))).remove(0)]);
    assert!(!shown.contains("secret-value"), "{shown}");
    let lines = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = lines.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    assert!(lines.into_iter().all(|line| !String::from_utf8_lossy(&line).contains("secret-value")));
    std::fs::write(&go, "go\n").unwrap();
    Ended::waited(run);
}

#[test]
fn what_is_written_inside_belongs_to_the_operator_outside() {
    use std::os::unix::fs::MetadataExt as _;
    let Some(world) = world() else { return };
    world.peers(&["run", "--max-ticks", "2"]).exits(0);
    let own = world.at("README.md").metadata().unwrap();
    for file in ["ann.txt", ".git/index", ".git/refs/heads/main"] {
        let there = world.at(file).metadata().unwrap();
        assert_eq!((there.uid(), there.gid()), (own.uid(), own.gid()), "{file}");
    }
    assert_eq!(world.git(&["log", "-2", "--format=%an"]), "ben\nann");
    assert_eq!(world.git(&["status", "--short"]), "");
    assert!(containers(&world, Some(&run_id(&world))).is_empty());
}

#[test]
fn a_container_of_ours_whose_keeper_is_gone_is_removed_by_prune_and_by_the_next_start() {
    let Some(world) = world() else { return };
    let stray = || {
        let label = "io.peers.keeper=1.0.none";
        podman(&world, &["create", "--label", label, "localhost/peers:dev", "true"]);
        assert_eq!(containers(&world, None).len(), 1);
    };
    stray();
    world.ctl(&["prune", "--containers"]).exits(0);
    assert!(containers(&world, None).is_empty());
    stray();
    world.peers(&["sandbox", "shell", "--gate", "-c", "true"]).exits(0);
    assert!(containers(&world, None).is_empty());
}

/// What `doctor --isolation` of the specification asks of a container, besides the table of walls.
#[test]
fn a_container_holds_what_the_table_does_not_ask() {
    let Some(world) = world() else { return };
    let inside =
        |who: &[&str], script: &str| world.peers(&[&["sandbox", "shell"], who, &["-c", script]].concat());
    for (who, script) in [
        (&["--gate"][..], "bash -c 'exec 3<>/dev/tcp/1.1.1.1/443'"),
        (&["--gate"], "getent hosts example.org"),
        (
            &["--gate"],
            "perl -MSocket -e 'socket(S, AF_INET, SOCK_DGRAM, 0) && send(S, q(x), 0, sockaddr_in(53, inet_aton(q(1.1.1.1)))) or exit 1'",
        ),
        (&[], "echo x > /usr/x"),
        (&[], "echo x > /etc/x"),
        (&[], "echo x > /x"),
        (&[], "unshare -m mount -t tmpfs none /mnt"),
        (&[], "kill -9 1; test ! -d /proc/1"),
        (&[], "cat /proc/1/environ"),
        (&[], "readlink /proc/1/fd/3"),
        (&[], "find / -xdev -perm /6000 -type f 2>/dev/null | grep -q ."),
        (&[], "grep -q 'Cap...:.*[1-9a-f]' /proc/self/status"),
    ] {
        let done = inside(who, script);
        assert_ne!(done.code, Some(0), "{script}\n{}{}", done.out, done.err);
    }
    inside(&[], "ls /sys/class/net; test -w .").exits(0);
    assert_eq!(inside(&["--gate"], "ls /sys/class/net").exits(0).out, "lo\n");
}

#[test]
fn a_fork_bomb_is_stopped_and_the_next_container_starts() {
    let Some(world) = world() else { return };
    // More than may be there at a time: of the last ones the fork fails.
    let script =
        "bash -c 'for i in $(seq 5000); do sleep 60 & done 2>/dev/null; jobs -r | wc -l' 2>/dev/null";
    let done = world.peers(&["sandbox", "shell", "--gate", "-c", script]);
    let began: u32 = done.out.trim().lines().last().and_then(|line| line.parse().ok()).unwrap_or(0);
    assert!(began < 5000, "{}{}", done.out, done.err);
    world.peers(&["sandbox", "shell", "--gate", "-c", "true"]).exits(0);
}

#[test]
fn an_image_that_is_not_there_or_not_ours_is_refused_with_the_command_that_builds_one() {
    let Some(world) = world() else { return };
    let refused = |image: &str| {
        let policy = format!("backend: podman\nimage: {image}\n");
        std::fs::write(world.path("home/config/peers/sandbox.yaml"), policy).unwrap();
        world.peers(&["run", "--max-ticks", "1"]).exits(6)
    };
    refused("localhost/none-such:1").err_has("`localhost/none-such:1` is not here").err_has("`make image`");
    let base =
        std::env::var("PEERS_TEST_BASE").unwrap_or_else(|_| "localhost/peers-base:bookworm".to_owned());
    refused(&base).err_has("is none of peers");
}

#[test]
fn a_loop_in_the_background_works_in_containers_and_stops() {
    let Some(world) = world() else { return };
    std::fs::remove_file(world.path("home/config/peers/sandbox.yaml")).unwrap();
    world.ctl(&["add", "."]).exits(0);
    world.ctl(&["start", "repo", "--container", "--max-ticks", "1", "--wait"]);
    let record = world.records("run-started");
    assert_eq!(record.len(), 1, "{record:?}");
    world.peers(&["info"]).out_has("podman (tier 3)");
    world.ctl(&["prune", "--containers"]).exits(0);
    assert!(containers(&world, Some(&run_id(&world))).is_empty());
}

#[test]
fn a_whole_loop_in_a_container_works_behind_a_wall_in_there_and_leaves_nothing() {
    use std::os::unix::fs::MetadataExt as _;
    let Some(world) = whole() else { return };
    // What an agent finds of the operator's, and of the loop.
    let look = "cd ..; { ls -A home home/config/peers; cat /proc/[0-9]*/environ; echo x > /usr/x && echo OPEN; \
        cat home/state/peers/*/project.json 2>/dev/null && echo OPEN; \
        cat /etc/shadow && echo OPEN; mount -t tmpfs none /mnt && echo OPEN; echo end; } > scripts/look 2>&1";
    let turn =
        json!([{"shell": {"run": look}}, {"write": {"path": "ann.txt", "text": "x"}}, {"handoff": "Work"}]);
    world.script("ann", &json!({"turns": [turn]}).to_string());
    let said = world.ctl(&["start", "repo", "--whole-loop", "--max-ticks", "2", "--wait"]);
    said.out_has("in a container").out_lacks("unconfined");
    assert_eq!(world.records("run-started").len(), 1, "{said:?}\n{}", log(&world));
    let look = std::fs::read_to_string(world.path("scripts/look")).unwrap();
    assert!(look.ends_with("end\n") && !look.contains("PEERS_KEEPER") && !look.contains("OPEN"), "{look}");
    assert!(!look.contains("sandbox.yaml") && !look.contains("state"), "{look}");
    assert_eq!(world.git(&["log", "-2", "--format=%an"]), "ben\nann", "{}", log(&world));
    assert_eq!(world.git(&["status", "--short"]), "");
    let own = world.at("README.md").metadata().unwrap().uid();
    assert_eq!(world.at("ann.txt").metadata().unwrap().uid(), own);
    // Root without capabilities makes no namespaces for bubblewrap.
    world.peers(&["info"]).out_has(if own == 0 { "landlock (tier 1)" } else { "bwrap (tier 2)" });
    assert!(containers(&world, Some(&run_id(&world))).is_empty());
}

fn log(world: &World) -> String {
    std::fs::read_to_string(world.path("home/config/peers-ctl/logs/repo.log")).unwrap_or_default()
}

/// Starts it so, with a turn that lasts.
fn begun(world: &World) -> BufReader<std::fs::File> {
    let held = turn(world, "sleep 600");
    world.ctl(&["start", "repo", "--whole-loop"]).exits(0);
    reader(&held)
}

#[test]
fn a_whole_loop_is_seen_and_stopped_as_any_other() {
    let Some(world) = whole() else { return };
    let mut held = begun(&world);
    let pid = keeper(&world).to_string();
    world.peers(&["status"]).out_has(&format!("process {pid}"));
    world.ctl(&["list"]).out_has("running").out_has(&pid);
    world.ctl(&["start", "repo", "--whole-loop"]).exits(4).err_has("already running");
    world.ctl(&["start", "repo"]).exits(4);
    world.ctl(&["stop", "repo"]).exits(0).out_has("interrupted");
    assert_eq!(held.read_to_end(&mut Vec::new()).unwrap(), 0);
    all_end(&world, &run_id(&world));
    world.ctl(&["list"]).out_has("stopped");
    // The options of the last start.
    world.script("ann", "turns: [[]]\n");
    world.ctl(&["restart", "repo"]).exits(0).out_has("in a container");
    world.ctl(&["stop", "repo", "--after-tick"]);
    world.ctl(&["wait", "repo"]);
    assert!(!log(&world).contains("SIGKILL"), "{}", log(&world));
}

/// The process that keeps the only container.
fn keeper(world: &World) -> u32 {
    let container = containers(world, Some(&run_id(world))).remove(0);
    let label = "{{index .Config.Labels \"io.peers.keeper\"}}";
    let keeper = podman(world, &["inspect", "--format", label, &container]);
    keeper.split('.').next().unwrap().parse().unwrap()
}

#[test]
fn whoever_kills_the_keeper_of_a_whole_loop_ends_all_of_it_and_the_next_start_goes_on() {
    let Some(world) = whole() else { return };
    let mut held = begun(&world);
    let id = run_id(&world);
    let pid = keeper(&world).to_string();
    assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    assert_eq!(held.read_to_end(&mut Vec::new()).unwrap(), 0);
    // The loop holds its lock until the kernel has ended it, which comes after its agent.
    world.ctl(&["prune", "--containers"]).exits(0);
    all_end(&world, &id);
    world.ctl(&["list"]).out_has("crashed");
    world.script("ann", "turns: [[]]\n");
    world.ctl(&["start", "repo", "--whole-loop", "--max-ticks", "1", "--wait"]);
    assert_eq!(world.records("run-started").len(), 2, "{}", log(&world));
}

#[test]
fn a_whole_loop_that_cannot_be_is_refused_before_anything_is_changed() {
    let Some(world) = whole() else { return };
    let start = |more: &[&str]| world.ctl(&[&["start", "repo", "--whole-loop"], more].concat());
    start(&["--sandbox", "podman"]).exits(2).err_has("there is no podman");
    start(&["--worktree=../there"]).exits(2).err_has("does not have the DIR");
    start(&["--sandbox", "none"]).exits(6).err_has("--i-know");
    start(&["--require", "3"]).exits(6);
    start(&["--dry-run"]).exits(0).out_has("--read-only").out_has("__inside");
    let policy = "image: localhost/none-such:1\n";
    std::fs::write(world.path("home/config/peers/sandbox.yaml"), policy).unwrap();
    start(&[]).exits(6).err_has("`localhost/none-such:1` is not here").err_has("`make image`");
    assert!(world.records("run-started").is_empty());
}
