//! The cockpit, driven for real: a terminal, keys, and what stands on it then.

use std::process::Command;

use serde_json::{Value, json};

use crate::ctl_fleet::{Fleet, controller, send};
use crate::pty::Pty;
use crate::support::{World, heard, program};

/// A usual terminal, and a large one.
const USUAL: (u16, u16) = (24, 80);
const LARGE: (u16, u16) = (40, 140);

/// The cockpit of a fleet, with more arguments.
fn cockpit(fleet: &Fleet, args: &[&str], size: (u16, u16)) -> Pty {
    let mut command = fleet.command(controller());
    command.arg("tui").args(args);
    Pty::start(&command, size)
}

/// A fleet of three, of which `demo` has done some turns and stopped.
fn three() -> Fleet {
    let fleet = Fleet::new();
    fleet.scripts(
        &json!({"after": "repeat", "turns": [[
            {"shell": "echo line >> notes.txt"},
            {"say": "a line for the notes"},
            {"handoff": "Add a line"}
        ]]})
        .to_string(),
    );
    fleet.another("billing");
    fleet.another("search");
    fleet.start(&["--max-ticks", "3"]);
    fleet.ctl(&["wait", "demo", "--timeout", "2m"]);
    fleet
}

#[test]
fn it_is_opened_filtered_and_a_loop_in_it_looked_at_and_the_terminal_is_as_before() {
    let fleet = three();
    let mut seen = cockpit(&fleet, &[], USUAL);
    seen.shows("3 loops");
    seen.shows("billing");
    // A filter is shown while it is typed, and kept.
    seen.keys("/demo");
    seen.hides("billing");
    seen.keys("\r");
    seen.shows("filter: demo");
    seen.keys("\r");
    seen.shows("missing for complete");
    seen.keys("3");
    seen.shows("timeline");
    seen.keys("4");
    seen.shows("ticks: the newest");
    seen.keys("\r");
    seen.shows("tick 3: record");
    // A key right behind Esc would be another key.
    seen.keys("\x1b");
    seen.hides("tick 3: record");
    seen.keys("d");
    seen.shows("notes.txt");
    seen.shows("+line");
    seen.keys("[");
    seen.shows("tick 2 of");
    seen.keys("2");
    seen.shows("a line for the notes");
    for (key, what) in
        [("6", "bugs"), ("7", "reviews"), ("8", "PLAN.md"), ("9", "log: loop"), ("0", "config")]
    {
        seen.keys(key);
        seen.shows(what);
    }
    seen.keys("q");
    assert!(seen.ends().success());
    // How it was left is how it is found.
    let mut again = cockpit(&fleet, &[], USUAL);
    again.shows("filter: demo");
    again.shows("1 of 3");
    again.keys("\x03");
    assert!(again.ends().success());
}

#[test]
fn a_tick_of_the_past_is_scrubbed_to_and_now_comes_back() {
    let fleet = three();
    let mut seen = cockpit(&fleet, &["--project", "demo"], LARGE);
    seen.shows("missing for complete");
    seen.keys("3");
    seen.shows("1 to 3");
    seen.keys("[");
    seen.shows("gates at tick 2");
    seen.keys("[");
    seen.shows("gates at tick 1");
    seen.keys("]");
    seen.shows("gates at tick 2");
    seen.keys("\\");
    seen.hides("gates at tick");
    seen.keys("q");
    assert!(seen.ends().success());
}

#[test]
fn a_loop_is_started_and_stopped_by_keys_that_show_their_commands() {
    let fleet = Fleet::hanging();
    let pipe = fleet.path("pipe");
    let mut seen = cockpit(&fleet, &[], USUAL);
    seen.shows("demo");
    seen.keys("s");
    seen.shows("start demo");
    seen.shows("$ peers-ctl start demo");
    seen.keys("5\r");
    seen.shows("$ peers-ctl start demo --max-ticks 5");
    seen.keys("\r");
    // It says `up` once its first turn has begun.
    assert_eq!(std::fs::read_to_string(&pipe).unwrap(), "up\n");
    seen.shows("exit code 0");
    seen.shows("started demo");
    seen.keys("\r");
    seen.shows("●1 run");
    seen.keys("S");
    seen.shows("after the turn that runs");
    seen.keys("K");
    seen.shows("exit code 0");
    seen.keys("\r");
    seen.hides("●1 run");
    seen.keys("q");
    assert!(seen.ends().success());
    fleet.is_quiet();
}

#[test]
fn nothing_is_changed_by_one_that_only_reads() {
    let fleet = Fleet::new();
    let before = fleet.registry();
    let mut seen = cockpit(&fleet, &["--read-only"], USUAL);
    seen.shows("read-only");
    seen.shows("demo");
    seen.keys("sSrfaAt+XN?");
    seen.shows("keys here");
    let help = seen.settled();
    assert!(!help.contains("acting"), "{help}");
    seen.keys("\x1b");
    seen.hides("keys here");
    seen.keys("q");
    assert!(seen.ends().success());
    assert_eq!(fleet.registry(), before);
}

#[test]
fn another_size_a_suspension_and_signals_leave_an_ordinary_terminal() {
    let fleet = Fleet::new();
    let mut seen = cockpit(&fleet, &[], USUAL);
    seen.shows("demo");
    seen.resize(50, 160);
    seen.shows("events");
    seen.resize(8, 30);
    seen.shows("too small");
    seen.resize(24, 80);
    seen.shows("demo");
    // Ctrl-Z, and the signal that asks for the same.
    for ask in [None, Some("TSTP")] {
        match ask {
            None => seen.keys("\x1a"),
            Some(signal) => assert!(send(seen.id(), signal)),
        }
        seen.is_suspended();
        assert!(send(seen.id(), "CONT"));
        seen.shows("demo");
    }
    assert!(send(seen.id(), "TERM"));
    assert_eq!(seen.ends().code(), Some(143));
}

#[test]
fn a_live_dashboard_and_no_command_at_all_are_the_cockpit_and_pipes_are_not() {
    let fleet = Fleet::new();
    for args in [&["dashboard", "--live"][..], &[]] {
        let mut command = fleet.command(controller());
        command.args(args);
        let mut seen = Pty::start(&command, USUAL);
        seen.shows("fleet");
        seen.shows("demo");
        seen.keys("q");
        assert!(seen.ends().success());
    }
    let piped = fleet.ctl(&["dashboard", "--live", "--frames", "1"]).exits(0);
    assert!(piped.out.contains("1 loop") && !piped.out.contains('\u{1b}'), "{piped:?}");
    fleet.ctl(&[]).exits(2).err_has("Usage");
    fleet.ctl(&["tui"]).exits(6).err_has("needs a terminal");
}

/// What `peers-ctl dashboard --json` says of each project.
fn rows(fleet: &Fleet) -> Vec<Value> {
    fleet.data("peers-ctl.dashboard/1", &["dashboard"], 0)["projects"].as_array().unwrap().clone()
}

#[test]
fn the_numbers_on_the_screen_are_those_of_json() {
    let fleet = three();
    let mut seen = cockpit(&fleet, &[], LARGE);
    seen.shows("3 loops");
    seen.shows("BUDGET");
    // A picture is there as a whole when the last column of its last row is.
    let text = seen.until("three rows", |text| {
        let whole = text.lines().filter(|line| line.trim_end_matches([' ', '│']).ends_with('%'));
        whole.count() == 3
    });
    let all = rows(&fleet);
    for row in &all {
        let name = row["name"].as_str().unwrap();
        let line = text.lines().find(|line| line.contains(&format!(" {name} "))).expect(name);
        let gates = &row["gates"]["hard"];
        assert!(line.contains(&format!("{}/{}", gates["green"], gates["total"])), "{line}: {row}");
        let cost = &row["cost"];
        let usd = cost["usd"].as_f64().map_or("?".to_owned(), |usd| format!("${usd:.2}"));
        assert!(line.contains(&usd), "{line}: {cost}");
        let most = row["budget"]["most_pct"].as_u64();
        let shown = most.map_or("-".to_owned(), |most| format!("{most}%"));
        assert!(line.contains(&shown), "{line}: {shown}");
    }
    let act = all.iter().filter(|row| row["attention"]["level"] == "act").count();
    let head = text.lines().next().unwrap();
    assert_eq!(head.contains("need"), act > 0, "{text}");
    // One loop, against what its status says.
    let status = fleet.data("peers-ctl.status/1", &["status", "demo"], 0)[0]["status"].clone();
    seen.keys("/demo\r\r");
    seen.shows("missing for complete");
    seen.shows("last ticks");
    let text = seen.settled();
    let core = &status["loop"]["value"];
    let gates = core["gates"].as_array().unwrap();
    let green = gates.iter().filter(|gate| gate["state"] == "pass").count();
    assert!(text.contains(&format!("gates: {green} of {} green", gates.len())), "{text}");
    for row in core["budget"]["rows"].as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        let name: String = name.chars().take(11).collect();
        let line = text
            .lines()
            .find(|line| line.contains(&format!("│{name}")))
            .unwrap_or_else(|| panic!("{name}: {text}"));
        if let Some(percent) = row["percent"].as_u64() {
            assert!(line.contains(&format!("{percent}%")), "{line}: {row}");
        }
        if row["unit"] == "count" {
            assert!(line.contains(&row["spent"].to_string()), "{line}: {row}");
        }
    }
    for missing in core["converge"]["missing"].as_array().unwrap() {
        let start: String = missing["text"].as_str().unwrap().chars().take(40).collect();
        assert!(text.contains(&start), "{start}: {text}");
    }
    seen.keys("4");
    seen.shows("ticks: the newest 3 of 3");
    let text = seen.settled();
    for tick in status["journal"]["value"]["ticks"].as_array().unwrap() {
        let line = format!("{:>4} {}", tick["tick"].as_u64().unwrap(), tick["peer"].as_str().unwrap());
        assert!(text.contains(&line), "{line}: {text}");
    }
    seen.keys("q");
    assert!(seen.ends().success());
}

#[test]
fn a_frozen_command_is_amended_by_a_key_and_a_word() {
    let world = crate::plan::frozen();
    world.ctl(&["add", "."]).exits(0);
    let mut command = world.command(controller());
    command.arg("tui");
    let mut seen = Pty::start(&command, LARGE);
    seen.shows("1 loop");
    seen.keys("A");
    seen.shows("amend the frozen acceptance command of repo");
    seen.keys("true\tit moved\r");
    seen.shows("$ peers-ctl amend repo --acceptance true --reason 'it moved'");
    // A word that is another does nothing.
    seen.keys("rope\r");
    seen.shows("rope");
    assert!(world.records("operator").iter().all(|record| !record.to_string().contains("it moved")));
    seen.keys("\x7f\x7f\x7f\x7frepo\r");
    seen.shows("exit code 0");
    seen.shows("acceptance was `sh tests/greet.sh` and is `true`");
    seen.keys("\r");
    seen.hides("exit code 0");
    seen.keys("q");
    assert!(seen.ends().success());
    world.peers(&["check", "acceptance"]).exits(0);
}

/// `peers run --tui ARGS` on a terminal.
fn run(world: &World, args: &[&str]) -> Pty {
    let mut command: Command = world.command(program());
    command.args(["run", "--tui"]).args(args);
    Pty::start(&command, LARGE)
}

#[test]
fn a_run_with_its_screen_ends_as_one_without_it() {
    let world = World::ready("true");
    let mut seen = run(&world, &["--max-ticks", "3"]);
    // The screen goes with the loop; what the loop said is printed then.
    seen.shows("Stopped: max_ticks");
    assert!(seen.text().contains("tick 3"), "{}", seen.text());
    assert_eq!(seen.ends().code(), Some(0));
    assert_eq!(world.records("tick").len(), 3);
    world.peers(&["run", "--tui"]).exits(6).err_has("needs a terminal");
}

#[test]
fn a_loop_whose_screen_is_left_goes_on_until_it_is_stopped() {
    let world = World::ready("true");
    let pipe = world.fifo("pipe");
    let announce = format!("echo up > {}", pipe.display());
    world.scripts(&json!({"after": "repeat", "turns": [[{"say": "I am here"}, {"shell": announce}, {"hang": "sleep"}]]}).to_string());
    let mut seen = run(&world, &[]);
    heard(&pipe);
    seen.shows("1 Overview");
    seen.keys("2");
    seen.shows("I am here");
    seen.keys("9");
    seen.shows("log: loop");
    // No other loop has a name here.
    seen.keys("srN");
    seen.keys("?");
    seen.shows("keys here");
    assert!(!seen.settled().contains("set up a project"));
    seen.keys("q");
    seen.hides("keys here");
    seen.keys("q");
    seen.shows("the loop goes on here");
    seen.is_ordinary();
    seen.keys("\x03");
    seen.shows("Stopped: interrupted");
    assert_eq!(seen.ends().code(), Some(130));
}

#[test]
fn a_report_in_html_needs_nothing_from_anywhere_and_has_the_numbers_of_json() {
    let fleet = three();
    let path = fleet.ctl(&["report", "demo", "--html"]).exits(0).out;
    assert!(path.trim_end().ends_with("REPORT-demo.html"), "{path}");
    let page = std::fs::read_to_string(path.trim_end()).unwrap();
    let lower = page.to_lowercase();
    for outside in ["<script", "<img", "<link", "src=", "url(", "@import", "http://", "https://"] {
        let found = lower.match_indices(outside).count();
        assert_eq!(found, 0, "{outside}");
    }
    assert!(page.contains("default-src 'none'"), "{page}");
    let report = fleet.data("peers-ctl.report/1", &["report", "demo"], 0)["projects"][0]["report"].clone();
    let history = &report["history"]["value"];
    for tick in history["timeline"].as_array().unwrap() {
        let row = format!("<tr><td>{}</td><td>{}</td>", tick["tick"], tick["peer"].as_str().unwrap());
        assert!(page.contains(&row), "{row}");
    }
    for gate in report["view"]["loop"]["value"]["gates"].as_array().unwrap() {
        assert!(page.contains(&format!("<td>{}</td>", gate["id"].as_str().unwrap())), "{gate}");
    }
    assert_eq!(page.matches("title=\"tick ").count(), history["gate_ticks"].as_array().unwrap().len());
    assert!(page.contains("+line"), "what a turn changed is there");
}
