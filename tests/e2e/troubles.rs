//! Twenty loops, each in a trouble of its own: the cockpit names each, and the key that it suggests leads out.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::ctl_fleet::{Fleet, controller, is_locked, send};
use crate::pty::Pty;
use crate::support::{goals, program};

/// Turns that change something and hand over.
const WORK: &str =
    "after: repeat\nturns:\n- - write: {path: work.txt, append: \"{{turn}}\\n\"}\n  - handoff: Work\n";
/// Turns that never end.
const HANG: &str = "after: repeat\nturns:\n- - hang: sleep\n";

/// A loop in trouble.
struct Trouble {
    name: &'static str,
    /// What the screen says of it, and the key behind that.
    says: &'static str,
    key: &'static str,
    /// What is typed besides that key, each once this stands on the screen.
    then: &'static [(&'static str, &'static str)],
    /// What it is called before, and not afterwards.
    code: &'static str,
}

const fn trouble(
    (name, code): (&'static str, &'static str),
    says: &'static str,
    key: &'static str,
    then: &'static [(&'static str, &'static str)],
) -> Trouble {
    Trouble { name, says, key, then, code }
}

/// Does it, and goes back.
const YES: (&str, &str) = ("do it", "y");
const DONE: (&str, &str) = ("exit code 0", "\r");
/// Comes back from a program that had the terminal.
const BACK: (&str, &str) = ("Enter goes back", "\r");
/// Starts it for one tick more.
const ONE_TICK: [(&str, &str); 3] = [("start ", "1\r"), ("do it", "y"), DONE];

/// Says that the obstacle is gone, and starts.
const RESUME: [(&str, &str); 2] = [YES, DONE];

const ALL: [Trouble; 20] = [
    trouble(("demo", "fresh"), "no run yet", "s", &ONE_TICK),
    // An editor on the terminal, which puts a real gate there.
    trouble(
        ("placeholder", "placeholder"),
        "the gate is still a placeholder",
        "f",
        &[("Type `yes`", "yes\n"), BACK],
    ),
    trouble(("edited", "unaccepted"), "changed and the change was not", "t", &[("accept it", "a"), BACK]),
    trouble(
        ("reworded", "unaccepted"),
        "changed and the change was not",
        "t",
        &[("put the accepted", "r"), ("type reworded", "reworded\r"), DONE],
    ),
    // What is wrong is shown; what was accepted is put back.
    trouble(
        ("garbled", "unreadable-files"),
        "no start takes .peers/goals.yaml",
        "f",
        &[("exit code 3", "\r"), ("fleet", "tr"), ("type garbled", "garbled\r"), DONE],
    ),
    trouble(("ticks", "max-ticks"), "max_ticks", "s", &ONE_TICK),
    trouble(("stuck", "stuck"), "stuck:real", "f", &[DONE, ("fleet", "r"), YES, DONE]),
    trouble(
        ("spent", "budget"),
        "budget:max_iterations: 1 of 1",
        "+",
        &[("raise the", "\t+5\r"), YES, DONE, ("fleet", "r"), YES, DONE],
    ),
    trouble(("toolless", "refused"), "a start would refuse: peer `ann`", "f", &[("exit code", "\r")]),
    trouble(("failing", "budget"), "ended with exit code 3", "f", &[DONE, ("fleet", "r"), YES, DONE]),
    trouble(
        ("login", "peer-unavailable"),
        "not logged in",
        "f",
        &[("exit code", "\r"), ("fleet", "r"), YES, DONE],
    ),
    trouble(("ended", "interrupted"), "interrupted", "s", &ONE_TICK),
    trouble(("crashed", "crashed"), "its process is gone", "s", &ONE_TICK),
    trouble(("blocked", "parked"), "no database", "r", &RESUME),
    trouble(("unjudged", "unjudged"), "unjudged:real", "f", &[DONE, ("fleet", "r"), YES, DONE]),
    trouble(("missing", "unknown"), "its directory is missing", "f", &[("exit code", "\r")]),
    trouble(("damaged", "journal-damaged"), "the journal is damaged", "f", &[("exit code", "\r")]),
    trouble(("held", "foreign-lock"), "another process holds", "f", &[YES, BACK]),
    trouble(("idle", "stuck"), "stuck:idle", "f", &[DONE, ("fleet", "r"), YES, DONE]),
    trouble(("landing", "complete"), "complete", "f", &RESUME),
];

/// A project with a script of its own for both of its peers.
fn project(fleet: &Fleet, name: &str, gate: &str, script: &str, more: &str) -> PathBuf {
    let dir = fleet.another(name);
    rescript(fleet, name, script);
    let mut config = fleet.config(more);
    for peer in ["ann", "ben"] {
        config = config.replace(&format!("scripts/{peer}.yaml"), &format!("scripts/{name}.yaml"));
    }
    std::fs::write(dir.join(".peers/config.yaml"), config).unwrap();
    std::fs::write(dir.join(".peers/goals.yaml"), goals(&[("real", gate)])).unwrap();
    fleet.accept_at(dir.to_str().unwrap(), &[]);
    dir
}

fn rescript(fleet: &Fleet, name: &str, script: &str) {
    std::fs::write(fleet.path(&format!("scripts/{name}.yaml")), script).unwrap();
}

/// Runs it until it stops.
fn ran(fleet: &Fleet, name: &str, more: &[&str]) {
    fleet.ctl(&[&["start", name], more].concat()).exits(0);
    fleet.ctl(&["wait", name, "--timeout", "2m"]);
}

fn append(path: &Path, text: &str) {
    let known = std::fs::read_to_string(path).unwrap();
    std::fs::write(path, known + text).unwrap();
}

/// Makes them all. What is done to one of them beside the keys comes back.
fn make(fleet: &Fleet) {
    let one = |name: &str, gate: &str, script: &str, more: &str| project(fleet, name, gate, script, more);
    let accept = |dir: &Path| {
        fleet.accept_at(dir.to_str().unwrap(), &[]);
    };
    let dir = one("placeholder", "true", WORK, "");
    std::fs::write(dir.join(".peers/goals.yaml"), goals(&[("placeholder-replace-me", "false")])).unwrap();
    accept(&dir);
    for name in ["edited", "reworded"] {
        append(&one(name, "true", WORK, "").join(".peers/goals.yaml"), "# one more\n");
    }
    std::fs::write(one("garbled", "true", WORK, "").join(".peers/goals.yaml"), "goals: [\n").unwrap();
    one("ticks", "true", WORK, "");
    ran(fleet, "ticks", &["--max-ticks", "1"]);
    let watched = "goals: {stuck_halt_gates: [real], stuck_halt_after: 2}\n";
    one("stuck", "test -f ok", WORK, watched);
    one("spent", "false", WORK, "budget: {max_iterations: 1}\n");
    one(
        "failing",
        "false",
        "after: repeat\nturns:\n- - exit: 3\n",
        "budget: {max_consecutive_failures: 2}\n",
    );
    one("login", "false", "after: repeat\nturns:\n- - emit: auth\n", "");
    let blocked = "after: repeat\nturns:\n- - commit: {subject: Blocked, allow_empty: true, trailers: {Peer-Status: blocked, Blocked-On: no database}}\n";
    one("blocked", "false", blocked, "");
    one("unjudged", "exec ./tool", WORK, watched);
    one("idle", "false", "after: repeat\nturns:\n- - handoff: Nothing\n", "goals: {idle_halt_after: 2}\n");
    let done = "after: repeat\nturns:\n- - write: {path: work.txt, append: \"x\\n\"}\n  - handoff: Work\n- - skeptic: clean\n";
    one("landing", "true", done, "");
    for name in ["stuck", "spent", "failing", "login", "blocked", "unjudged", "idle"] {
        ran(fleet, name, &[]);
    }
    ran(fleet, "landing", &["--branch", "work"]);
    for name in ["ended", "crashed"] {
        one(name, "false", HANG, "");
        let started = fleet.data("peers-ctl.start/1", &["start", name], 0);
        let pid = u32::try_from(started[0]["pid"].as_u64().unwrap()).unwrap();
        if name == "crashed" {
            assert!(send(pid, "KILL"));
            while crate::ctl_fleet::lives(pid) {
                std::thread::yield_now();
            }
        } else {
            fleet.ctl(&["stop", name, "--now"]).exits(0);
        }
        rescript(fleet, name, WORK);
    }
    std::fs::rename(one("missing", "true", WORK, ""), fleet.path("elsewhere")).unwrap();
    one("damaged", "true", WORK, "");
    ran(fleet, "damaged", &["--max-ticks", "2"]);
    one("held", "true", WORK, "");
    let dir = one("toolless", "true", WORK, "");
    let config = std::fs::read_to_string(dir.join(".peers/config.yaml")).unwrap();
    let agent = fleet.path("agent");
    let config = config.replace(program().to_str().unwrap(), agent.to_str().unwrap());
    std::fs::write(dir.join(".peers/config.yaml"), config).unwrap();
    accept(&dir);
}

/// What the operator does beside the keys: what stood in the way is gone.
fn helped(fleet: &Fleet, name: &str) {
    let dir = fleet.path(name);
    let at = dir.to_str().unwrap();
    let commit = |file: &str, text: &str| {
        std::fs::write(dir.join(file), text).unwrap();
        fleet.git(&["-C", at, "add", "-A"]);
        fleet.git(&["-C", at, "commit", "-q", "-m", "By hand"]);
    };
    match name {
        "stuck" => commit("ok", ""),
        "unjudged" => {
            commit("tool", "#!/bin/sh\n");
            fleet.git(&["-C", at, "update-index", "--chmod=+x", "tool"]);
            std::fs::set_permissions(dir.join("tool"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
                .unwrap();
            fleet.git(&["-C", at, "commit", "-q", "-m", "It runs"]);
        }
        "failing" | "login" | "blocked" | "idle" => rescript(fleet, name, WORK),
        "toolless" => std::os::unix::fs::symlink(program(), fleet.path("agent")).unwrap(),
        "missing" => std::fs::rename(fleet.path("elsewhere"), &dir).unwrap(),
        _ => {}
    }
}

/// What the controller says of a loop.
fn attention(fleet: &Fleet, name: &str) -> Value {
    fleet.data("peers-ctl.dashboard/1", &["dashboard", name], 0)["projects"][0]["attention"].clone()
}

/// The journal of a project.
fn journal(fleet: &Fleet, name: &str) -> PathBuf {
    let dir = fleet.path(name).canonicalize().unwrap();
    let stores = std::fs::read_dir(fleet.path("home/state/peers")).unwrap();
    let of = |store: &PathBuf| {
        let project: Value = serde_json::from_slice(&std::fs::read(store.join("project.json")).ok()?).ok()?;
        (project["path"] == dir.to_str().unwrap()).then(|| store.join("journal/000001.jsonl"))
    };
    stores.map(|entry| entry.unwrap().path()).find_map(|store| of(&store)).unwrap()
}

#[test]
fn each_of_twenty_troubles_is_named_and_the_key_behind_it_leads_out() {
    let fleet = Fleet::new();
    make(&fleet);
    let damaged = journal(&fleet, "damaged");
    let whole = std::fs::read_to_string(&damaged).unwrap();
    let cut: Vec<&str> =
        whole.split_inclusive('\n').enumerate().filter(|(n, _)| *n != 2).map(|(_, line)| line).collect();
    std::fs::write(&damaged, cut.concat()).unwrap();
    let lock = std::fs::File::create(fleet.path("held/.peers/run.lock")).unwrap();
    lock.lock().unwrap();
    assert!(is_locked(&fleet.path("held/.peers/run.lock")));
    let editor = fleet.executable(
        "editor",
        "#!/bin/sh\nprintf 'goals:\\n- {id: real, type: hard, cmd: \"test -f README.md\", pass_when: exit_code == 0}\\n' > \"$1\"\n",
    );
    let mut command = fleet.command(controller());
    command.arg("tui").env("EDITOR", &editor).env("VISUAL", &editor);
    let mut seen = Pty::start(&command, (40, 200));
    seen.shows("20 loops");
    for Trouble { name, says, key, then, code } in &ALL {
        assert_eq!(attention(&fleet, name)["code"], *code, "{name}: {}", attention(&fleet, name));
        seen.keys(&format!("/name:{name}"));
        seen.shows(&format!("filter: name:{name}"));
        seen.keys("\r");
        seen.shows("1 of 20");
        let shown =
            seen.until(name, |text| text.lines().any(|line| line.contains(says) && line.contains("│")));
        let line = shown
            .lines()
            .find(|line| line.starts_with('│') && line.contains(&format!(" {name} ")))
            .unwrap_or_else(|| panic!("{name}: {shown}"));
        assert!(line.contains(says), "{name}: {line}");
        assert!(line.contains(&format!("→ {key} ")), "{name} → {key}: {line}");
        helped(&fleet, name);
        seen.keys(key);
        for (wanted, keys) in *then {
            // Where a program is not installed, that is said, and nothing else.
            let shown =
                seen.until(wanted, |text| text.contains(wanted) || text.contains("fuser: No such file"));
            if shown.contains(wanted) {
                seen.keys(keys);
            }
        }
        match *name {
            "held" => lock.unlock().unwrap(),
            "damaged" => std::fs::write(&damaged, &whole).unwrap(),
            _ => {}
        }
        let out =
            |found: &Value| found["code"] != *code || (*code == "complete" && found["action"].is_null());
        let mut found = attention(&fleet, name);
        for _ in 0..200 {
            if out(&found) {
                break;
            }
            found = attention(&fleet, name);
        }
        assert!(out(&found), "{name}: {found}\n{}", seen.settled());
        seen.shows("fleet");
        seen.keys("\x1b");
        seen.shows("filter: none");
    }
    seen.keys("q");
    assert!(seen.ends().success());
}
