//! Budgets of loops in the background: what the operator said last holds.

use serde_json::{Value, json};

use crate::ctl_fleet::{Fleet, controller, lives, pid_in};
use crate::support::{Ended, World, heard, program};

/// A repository whose turns cost one dollar each and never make the gate green.
fn costly() -> Fleet {
    let turn = json!([{"emit": {"usage": {"input": 10, "output": 5, "usd": 1.0}}},
        {"write": {"path": "{{peer}}.txt", "append": "{{turn}}\n"}}, {"handoff": "Work"}]);
    let fleet = Fleet::of(World::ready("test -f never"));
    fleet.scripts(&json!({"after": "repeat", "turns": [turn]}).to_string());
    paid(&fleet, "");
    fleet
}

/// Peers whose tool tells what it cost.
fn paid(fleet: &Fleet, more: &str) {
    let peer = |name: &str| {
        json!({"name": name, "tool": "claude", "argv": [program(), "fake-peer", "--script",
            fleet.path(&format!("scripts/{name}.yaml")), "-p", "--output-format", "stream-json", "--verbose"]})
    };
    let peers = json!([peer("ann"), peer("ben")]);
    fleet.write(".peers/config.yaml", &format!("peers: {peers}\n{more}"));
    fleet.accept(&[]);
}

fn ticks(fleet: &Fleet) -> usize {
    fleet.records("tick").len()
}

fn over(fleet: &Fleet, code: i32) {
    fleet.ctl(&["wait", "--timeout", "2m"]).exits(code);
}

#[test]
fn a_raise_beats_the_cap_of_an_older_start_which_is_repeated_and_yields_to_that_of_a_newer_one() {
    let fleet = costly();
    fleet.start(&["--max-usd", "2"]);
    over(&fleet, 10);
    assert_eq!(ticks(&fleet), 2);
    fleet.ctl(&["status"]).exits(0).out_has("budget:max_usd, $2.00 of $2.00");
    fleet.ctl(&["resume", "--start"]).exits(10).err_has("(budget:max_usd): $2.00 of $2.00 (100 %)");
    // What is added is added to the cap that the last start gave.
    let done = fleet.ctl(&["budget", "raise", "--usd", "+3"]).exits(0);
    done.out_has("`budget.max_usd` is $5.00 until ").out_lacks("note");
    fleet.ctl(&["status"]).exits(0).out_has("$2.00 of $5.00");
    fleet.ctl(&["resume", "--start"]).exits(0);
    over(&fleet, 10);
    assert_eq!(ticks(&fleet), 5);
    // A start of which nothing is known but its arguments says when these were given.
    fleet.ctl(&["restart"]).exits(10).err_has("$5.00 of $5.00");
    fleet.ctl(&["budget", "raise", "--usd", "6"]).exits(0);
    fleet.ctl(&["restart"]).exits(0);
    over(&fleet, 10);
    assert_eq!(ticks(&fleet), 6);
    // Given after it was raised.
    fleet.ctl(&["start", "--max-usd", "3"]).exits(10).err_has("$6.00 of $3.00");
    fleet.ctl(&["start", "--max-usd", "8"]).exits(0);
    over(&fleet, 10);
    assert_eq!(ticks(&fleet), 8);
    fleet.is_quiet();
}

#[test]
fn a_dry_run_says_that_the_budget_is_used_up() {
    let fleet = costly();
    fleet.start(&["--max-usd", "1"]);
    over(&fleet, 10);
    let refused = |args: &[&str]| {
        let rows = fleet.data("peers-ctl.start/1", &[&["start", "--dry-run"], args].concat(), 0);
        rows[0]["refusals"].as_array().unwrap().len()
    };
    assert_eq!((refused(&["--max-usd", "1"]), refused(&["--max-usd", "2"]), refused(&[])), (1, 0, 0));
    let anyway = ["--force", "--reset-budget"].map(|anyway| refused(&["--max-usd", "1", anyway]));
    assert_eq!(anyway, [0, 0]);
    let done = fleet.ctl(&["start", "--dry-run", "--max-usd", "1"]).exits(0);
    done.out_has("would be refused: the budget is exhausted (budget:max_usd): $1.00");
    done.out_lacks("since");
    std::fs::rename(fleet.store(), fleet.path("elsewhere")).unwrap();
    assert_eq!(refused(&[]), 1);
    fleet.ctl(&["start", "--dry-run"]).exits(0).out_has("would be refused: ");
    fleet.ctl(&["start"]).exits(5);
}

/// Turns of two dollars; the first says `up` and waits for a word.
fn waiting() -> (Fleet, std::path::PathBuf) {
    let fleet = costly();
    let (pipe, go) = (fleet.fifo("pipe"), fleet.fifo("go"));
    let cost = json!({"emit": {"usage": {"input": 10, "output": 5, "usd": 2.0}}});
    let work =
        json!([cost, {"write": {"path": "{{peer}}.txt", "append": "{{turn}}\n"}}, {"handoff": "Work"}]);
    let mut first = work.as_array().unwrap().clone();
    first.insert(0, json!({"shell": format!("echo up > {}; read word < {}", pipe.display(), go.display())}));
    fleet.script("ann", &json!({"after": "repeat", "turns": [first, work]}).to_string());
    fleet.script("ben", &json!({"after": "repeat", "turns": [work]}).to_string());
    fleet.start(&["--max-usd", "2"]);
    heard(&pipe);
    (fleet, go)
}

#[test]
fn a_loop_that_runs_takes_up_raises_before_its_next_turn() {
    let (fleet, go) = waiting();
    std::fs::write(&go, "go\n").unwrap();
    over(&fleet, 10);
    assert_eq!(ticks(&fleet), 1);
    let (fleet, go) = waiting();
    for said in ["$4.00", "$6.00"] {
        // The first still waits to be taken up, and counts.
        let done = fleet.ctl(&["budget", "raise", "--usd", "+2"]).exits(0);
        done.out_has(&format!("`budget.max_usd` is {said} until "));
        done.out_has("the running loop takes it up before its next tick");
    }
    std::fs::write(&go, "go\n").unwrap();
    over(&fleet, 10);
    assert_eq!(ticks(&fleet), 3);
    fleet.is_quiet();
}

#[test]
fn what_was_handed_to_a_loop_that_ended_before_it_took_it_counts_at_the_next_start() {
    let fleet = costly();
    fleet.start(&["--max-usd", "2"]);
    over(&fleet, 10);
    let give = |name: &str, v: u32, usd: u64| {
        let command = json!({"v": v, "op": {"op": "budget-set", "caps": [{"cap": "max_usd", "value": usd}]}, "by": "me",
            "at": "2026-01-01T00:00:00.000Z"});
        std::fs::create_dir_all(fleet.store().join("commands")).unwrap();
        std::fs::write(fleet.store().join("commands").join(name), command.to_string()).unwrap();
    };
    give("01.json", 1, 4_000_000);
    let done = fleet.ctl(&["restart", "--max-usd", "1"]).exits(10);
    assert!(done.err.contains("$2.00 of $1.00"), "what is said now is later: {}", done.err);
    fleet.ctl(&["resume", "--start"]).exits(0);
    over(&fleet, 10);
    assert_eq!(ticks(&fleet), 4);
    // What only a newer program knows is left to it.
    give("02.json", 99, 9_000_000);
    give("03.json", 1, 6_000_000);
    fleet.ctl(&["start", "--dry-run"]).exits(0);
    fleet.ctl(&["start", "--max-usd", "9"]).exits(3);
    let left: Vec<_> = std::fs::read_dir(fleet.store().join("commands")).unwrap().flatten().collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn ticks_of_all_runs_are_raised_and_those_of_one_run_count_anew() {
    let fleet = costly();
    paid(&fleet, "budget: {max_iterations: 2}\n");
    fleet.start(&[]);
    over(&fleet, 10);
    let done = fleet.ctl(&["budget", "raise", "--ticks", "+3"]).exits(0);
    done.out_has("`budget.max_iterations` is 5 until ").out_lacks("note");
    fleet.ctl(&["resume", "--start"]).exits(0);
    over(&fleet, 10);
    assert_eq!(ticks(&fleet), 5);
    fleet.ctl(&["budget", "raise", "--ticks", "50"]).exits(0);
    fleet.start(&["--max-ticks", "2"]);
    over(&fleet, 0);
    let done = fleet.ctl(&["budget", "raise", "--ticks", "+1"]).exits(0);
    done.out_has("note: the newest run has a cap of its own, --max-ticks 2,");
    fleet.ctl(&["resume", "--start"]).exits(0);
    over(&fleet, 0);
    assert_eq!(ticks(&fleet), 9);
}

#[test]
fn without_a_cap_more_is_counted_from_what_is_spent() {
    let fleet = costly();
    fleet.start(&["--max-ticks", "2"]);
    over(&fleet, 0);
    let row = |args: &[&str]| -> Value {
        fleet.data("peers-ctl.budget-raise/1", &[&["budget", "raise"], args].concat(), 0)[0].clone()
    };
    let raised = row(&["--usd", "+1.5", "--tokens", "+5"]);
    assert_eq!(
        raised["set"]["caps"],
        json!([{"cap": "max_tokens", "value": 35}, {"cap": "max_usd", "value": 3_500_000}])
    );
    let notes = raised["notes"].to_string();
    assert!(notes.contains("there was no `budget.max_usd`: counted from what is spent, $2.00"), "{notes}");
    let raised = row(&["--usd", "1"]);
    let notes = raised["notes"].to_string();
    assert!(notes.contains("$2.00 is spent already, so the loop stops at this cap at once"), "{notes}");
}

/// A `peers` of which this is done before it becomes the real one.
fn wrapped(fleet: &Fleet, script: &str) -> Ended {
    let bin = fleet.executable("wrapper", &format!("{script}\nexec {} \"$@\"", program().display()));
    let mut command = fleet.command(controller());
    Ended::of(&command.args(["start", "demo"]).env("PEERS_CTL_PEERS_BIN", &bin).output().unwrap())
}

#[test]
fn a_loop_that_runs_is_told_though_the_registry_cannot_be_written_any_more() {
    let fleet = Fleet::hanging();
    let file = fleet.path("home/config/peers-ctl/projects.json");
    let (file, aside) = (file.display(), fleet.path("aside"));
    let aside = aside.display();
    let script =
        format!("until grep -q '\"pid\": *[0-9]' {file}; do :; done\nmv {file} {aside}; mkdir {file}");
    let done = wrapped(&fleet, &script).exits(0);
    assert!(
        done.out.starts_with("started demo: run ") && done.out.contains("warning: it runs, and"),
        "{}",
        done.out
    );
    std::fs::remove_dir(file.to_string()).unwrap();
    std::fs::rename(aside.to_string(), file.to_string()).unwrap();
    heard(&fleet.path("pipe"));
    assert_eq!(fleet.row("demo")["state"], "running");
    // One that runs cannot be started again.
    fleet.ctl(&["resume", "--start"]).exits(4).err_has("demo is already running");
    fleet.ctl(&["stop"]).exits(0);
    fleet.is_quiet();
}

#[test]
fn a_process_that_goes_on_without_a_word_is_not_forgotten() {
    let fleet = Fleet::new();
    wrapped(&fleet, "exec >/dev/null; exec sleep 1000").exits(1).err_has("it closed its output and goes on");
    let runtime = fleet.registry()["projects"][0]["runtime"].clone();
    let pid = pid_in(&runtime);
    assert!(lives(pid), "{runtime}");
    assert!(fleet.locked());
}
