//! `peers-ctl start` and what goes with it: exactly one loop, which runs when the command returns, or the reason
//! why none does.

use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::ctl_fleet::{Fleet, controller, hold, lives};
use crate::support::{Ended, Held, World, goals, heard, holds, program};

/// What an operator, or somebody else, does to a project.
type Change = fn(&World);

#[test]
fn start_returns_when_the_loop_runs() {
    let fleet = Fleet::hanging();
    let done = fleet.ctl(&["start"]).exits(0);
    // Nothing was waited for in between.
    let run = fleet.runs().pop().unwrap();
    assert!(run["ready_at"].is_string() && run["ended_at"].is_null(), "{run}");
    let (id, pid) = (run["run_id"].as_str().unwrap(), run["pid"].as_u64().unwrap());
    let first = format!("started demo: run {id}, process {pid}, on main, unconfined\n  log: ");
    assert!(done.out.starts_with(&first), "{}", done.out);
    assert!(fleet.locked());
    let row = fleet.row("demo");
    assert_eq!((&row["state"], &row["phase"], &row["pid"]), (&"running".into(), &"up".into(), &pid.into()));
    assert_eq!((&row["run_id"], &row["managed"]), (&id.into(), &true.into()));
    // It left the session of who started it, and the terminal.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    assert_eq!((fields[2], fields[3], fields[4]), (&*pid.to_string(), &*pid.to_string(), "0"));
    heard(&fleet.path("pipe"));
    fleet.ctl(&["stop"]).exits(0);
    fleet.is_quiet();
}

/// The problems of a failure, without its first word.
fn problems(done: &Ended) -> Vec<String> {
    let lines = done.err.lines().map(|line| at_home(line.strip_prefix("error: ").unwrap_or(line)));
    lines.filter(|line| !line.starts_with("Stopped")).collect()
}

/// A line whose commands are to be typed in the repository: the controller's name it.
fn at_home(line: &str) -> String {
    let mut parts = line.split("`peers -C ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |line, part| format!("{line}`peers {}", part.split_once(' ').unwrap().1))
}

#[test]
fn a_loop_that_refuses_gives_the_problems_and_the_code_of_run_and_leaves_the_registry_as_it_was() {
    let refusals: [(&str, Change); 4] = [
        ("goals that nobody accepted", |world| {
            world.write(".peers/goals.yaml", &goals(&[("real", "true"), ("more", "true")]));
        }),
        ("no gate", |world| {
            world.write(".peers/goals.yaml", "goals: []\n");
            world.accept(&[]);
        }),
        ("a missing program", |world| {
            let none = "peers:\n- {name: ann, tool: plain, argv: [no-such-agent]}\n\
                        - {name: ben, tool: plain, argv: [no-other-agent]}\n";
            world.write(".peers/config.yaml", none);
            world.accept(&[]);
        }),
        ("several at once", |world| {
            world.write(".peers/goals.yaml", "goals: []\n");
            let none = "peers:\n- {name: ann, tool: plain, argv: [no-such-agent]}\n\
                        - {name: ben, tool: plain, argv: [no-other-agent]}\n";
            world.write(".peers/config.yaml", none);
        }),
    ];
    for (what, make) in refusals {
        let fleet = Fleet::new();
        fleet.ran(&["--max-ticks", "1"]);
        make(&fleet);
        let before = fleet.registry();
        let by_hand = fleet.peers(&["run"]);
        let started = fleet.ctl(&["start", "--max-ticks", "2"]);
        assert_ne!(by_hand.code, Some(0), "{what}: {}", by_hand.out);
        assert_eq!(started.code, by_hand.code, "{what}: {}\n{}", started.err, by_hand.err);
        assert_eq!(problems(&started), problems(&by_hand), "{what}");
        let mut after = fleet.registry();
        after["revision"] = before["revision"].clone();
        assert_eq!(after, before, "{what}");
        // Programs get the same list.
        let json = fleet.ctl(&["start", "--json"]);
        let error = json.json("peers-ctl.error/1")["error"].clone();
        assert_eq!(error["code"], i64::from(by_hand.code.unwrap()), "{what}");
        assert!(error["details"].as_array().is_some_and(|list| !list.is_empty()), "{what}: {error}");
        assert_eq!(fleet.runs().len(), 1, "{what}");
        fleet.is_quiet();
    }
}

/// Whether a text names who is in the way: a process, or a run.
fn names_somebody(text: &str) -> bool {
    let after = |word: &str, fits: fn(char) -> bool, least: usize| {
        text.split(word).skip(1).any(|rest| rest.chars().take_while(|c| fits(*c)).count() >= least)
    };
    after("process ", |c| c.is_ascii_digit(), 1) || after("run ", |c| c.is_ascii_hexdigit(), 16)
}

#[test]
fn of_two_hundred_starts_from_two_registries_and_five_runs_by_hand_one_loop_comes() {
    const STARTS: usize = 200;
    let fleet = Fleet::still();
    let dirs = ["one", "two"].map(|dir| fleet.path(dir).to_str().unwrap().to_owned());
    for dir in &dirs {
        fleet.ctl(&["--config-dir", dir, "add", ".", "--name", "demo"]).exits(0);
    }
    let next = AtomicUsize::new(0);
    let (ended, by_hand) = (Mutex::new(Vec::new()), Mutex::new(Vec::<Child>::new()));
    std::thread::scope(|scope| {
        for worker in 0..40 {
            let (fleet, next, ended, by_hand, dirs) = (&fleet, &next, &ended, &by_hand, &dirs);
            scope.spawn(move || {
                if worker % 8 == 3 {
                    let mut run = fleet.command(program());
                    run.arg("run").stdout(Stdio::null()).stderr(Stdio::piped());
                    by_hand.lock().unwrap().push(run.spawn().unwrap());
                }
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= STARTS {
                        return;
                    }
                    let done = fleet.ctl(&["--config-dir", &dirs[at % 2], "start", "demo"]);
                    ended.lock().unwrap().push(done);
                }
            });
        }
    });
    let ended = ended.into_inner().unwrap();
    assert_eq!(ended.len(), STARTS);
    let content = std::fs::read_to_string(fleet.store().join("run.lock")).unwrap();
    let holder: Value = serde_json::from_str(content.lines().next().unwrap()).unwrap();
    let winner = holder["pid"].as_u64().unwrap();
    let started = ended.iter().filter(|done| done.code == Some(0)).count();
    let mut hand_won = 0;
    for child in by_hand.into_inner().unwrap() {
        if u64::from(child.id()) == winner {
            hand_won += 1;
            continue;
        }
        let done = Ended::waited(child).exits(4);
        assert!(names_somebody(&done.err), "{}", done.err);
    }
    assert_eq!(started + hand_won, 1, "{winner} holds the lock: {ended:#?}");
    for done in ended.iter().filter(|done| done.code != Some(0)) {
        assert_eq!(done.code, Some(4), "{}\n{}", done.out, done.err);
        assert!(names_somebody(&done.err), "{}", done.err);
    }
    assert_eq!((fleet.runs().len(), fleet.records("run-started").len()), (1, 1));
    assert!(lives(u32::try_from(winner).unwrap()) && fleet.locked());
    // Whoever started it: each registry sees it, and each can end it.
    for dir in &dirs {
        let rows = fleet.data("peers-ctl.list/1", &["--config-dir", dir, "list"], 0);
        assert_eq!((&rows[0]["state"], &rows[0]["pid"]), (&"running".into(), &winner.into()), "{rows}");
    }
    fleet.ctl(&["--config-dir", &dirs[1], "stop", "demo"]).exits(0);
    for dir in &dirs {
        let rows = fleet.data("peers-ctl.list/1", &["--config-dir", dir, "list"], 0);
        holds(&rows[0], &json!({"state": "stopped", "outcome": "operator"}));
    }
    fleet.is_quiet();
}

#[test]
fn who_holds_a_lock_of_the_repository_is_named_and_nothing_is_started() {
    let fleet = Fleet::new();
    let before = fleet.registry();
    let held = fleet.hold_lock(json!({"kind": "command", "command": "land"}));
    let pid = held.process.id();
    fleet.ctl(&["start"]).exits(4).err_has(&format!("`peers land` is at work, process {pid}"));
    drop(held);
    let held = fleet.hold_lock(json!({"run_id": "0123456789abcdef"}));
    let pid = held.process.id();
    fleet.ctl(&["start"]).exits(4).err_has(&format!("run 0123456789abcdef, process {pid}"));
    drop(held);
    let op =
        |pid: u32| json!({"pid": pid, "op": "peers-ctl remove demo", "since": "2026-03-04T21:10:00.000Z"});
    // What the one before it left, or somebody else wrote, names nobody.
    let lock = hold(&fleet.store().join("op.lock"), &op(4242));
    let who = format!("process {} holds the lock of controllers", lock.process.id());
    fleet.ctl(&["start"]).exits(4).err_has(&who).err_lacks("4242");
    drop(lock);
    let lock = Held::of(&fleet.store().join("op.lock"), |pid| Some(op(pid)));
    let pid = lock.process.id();
    for command in [["start"].as_slice(), &["stop"], &["restart"], &["remove", "demo"]] {
        let done = fleet.ctl(command).exits(4);
        let who = format!("`peers-ctl remove demo` in progress by process {pid} since 2026-03-04T21:10:00");
        assert!(done.err.contains(&who), "{command:?}: {}", done.err);
    }
    // Somebody who waits gets it once it is free.
    let mut waits = fleet.command(controller());
    waits
        .args(["--wait-lock", "2m", "start", "--max-ticks", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let waits = waits.spawn().unwrap();
    drop(lock);
    Ended::waited(waits).exits(0);
    fleet.ctl(&["wait", "--timeout", "2m"]).exits(0);
    let mut after = fleet.registry();
    assert_ne!(after, before);
    after["projects"] = before["projects"].clone();
    after["revision"] = before["revision"].clone();
    assert_eq!(after, before);
}

#[test]
fn a_dry_run_tells_the_command_and_what_stands_against_it_and_starts_nothing() {
    let fleet = Fleet::new();
    let before = (fleet.registry(), fleet.journal());
    let row = fleet.data("peers-ctl.start/1", &["start", "--dry-run", "--max-ticks", "3"], 0)[0].clone();
    let repo = fleet.at("").canonicalize().unwrap();
    let argv = json!([program(), "-C", repo, "run", "--max-ticks=3"]);
    assert_eq!((&row["argv"], &row["refusals"]), (&argv, &json!([])), "{row}");
    let done = fleet.ctl(&["start", "--dry-run", "--max-ticks", "3"]).exits(0);
    assert!(done.out.starts_with("demo: ") && done.out.ends_with(" run '--max-ticks=3'\n"), "{}", done.out);
    let held = fleet.hold_lock(json!({"run_id": "0123456789abcdef"}));
    let done = fleet.ctl(&["start", "--dry-run"]).exits(0);
    done.out_has("would be refused: already running");
    done.out_has("run 0123456789abcdef");
    drop(held);
    fleet.write(".peers/goals.yaml", "goals: []\n");
    let row = fleet.data("peers-ctl.start/1", &["start", "--dry-run"], 0)[0].clone();
    let refusals = row["refusals"].to_string();
    assert!(refusals.contains("no hard gate of your own") && refusals.contains("goals accept"), "{row}");
    let none = fleet.data("peers-ctl.start/1", &["start", "--dry-run", "--allow-no-gates"], 0)[0].clone();
    assert!(!none["refusals"].to_string().contains("no hard gate"), "{none}");
    assert_eq!((fleet.registry(), fleet.journal()), before);
    assert!(fleet.runs().is_empty());
}

#[test]
fn what_stands_against_a_branch_or_a_worktree_is_told_alike_by_a_dry_run_and_a_start() {
    let fleet = Fleet::new();
    let (inside, taken) = (fleet.at("below"), fleet.path("taken"));
    std::fs::create_dir_all(taken.join("something")).unwrap();
    let (inside, taken) = (inside.to_string_lossy(), taken.to_string_lossy());
    let before = (fleet.journal(), fleet.git(&["branch", "--list"]));
    for (args, code, why) in [
        (["--branch", "main"], 4, "branch `main` exists already"),
        (["--branch", "main/next"], 4, "branch `main`, which blocks the name `main/next`,"),
        (["--branch", "a..b"], 3, "--branch: "),
        (["--worktree", &*inside], 3, "would lie inside the repository"),
        (["--worktree", &*taken], 4, "would stand where something is already"),
    ] {
        let args = [args[0], "=", args[1]].concat();
        let row = fleet.data("peers-ctl.start/1", &["start", "--dry-run", &args], 0)[0].clone();
        let refusals: Vec<&str> =
            row["refusals"].as_array().unwrap().iter().map(|r| r.as_str().unwrap()).collect();
        assert!(refusals.len() == 1 && refusals[0].contains(why), "{args}: {refusals:?}");
        let done = fleet.ctl(&["start", &args]).exits(code);
        assert!(done.err.contains(why), "{args}: {}", done.err);
        // A cap is not set by a start that is refused.
        let done = fleet.ctl(&["start", &args, "--max-runtime", "3h"]).exits(code);
        assert!(done.err.contains(why), "{args}: {}", done.err);
    }
    assert_eq!((fleet.journal(), fleet.git(&["branch", "--list"])), before);
    let row = fleet.data("peers-ctl.start/1", &["start", "--dry-run", "--branch", "next"], 0)[0].clone();
    assert_eq!(row["refusals"], json!([]));
}

#[test]
fn a_worktree_lies_where_whoever_typed_its_name_stands() {
    let fleet = Fleet::new();
    let here = fleet.path("here");
    std::fs::create_dir(&here).unwrap();
    let mut command = fleet.command(controller());
    command.current_dir(&here).args(["start", "demo", "--max-ticks", "1", "--worktree=wt"]);
    let done = Ended::of(&command.output().unwrap()).exits(0);
    assert!(here.join("wt/.git").exists(), "{}", done.out);
    fleet.ctl(&["wait", "--timeout", "2m"]);
    assert_eq!(
        fleet.runs()[0]["workdir"],
        here.canonicalize().unwrap().join("wt").to_string_lossy().as_ref()
    );
}

/// The loop of a fleet whose only tick is spent.
fn spent() -> Fleet {
    let fleet = Fleet::new();
    fleet.accept_config("budget:\n  max_iterations: 1\n  max_runtime_s: 1800\n");
    fleet.ctl(&["start"]).exits(0);
    fleet.ctl(&["wait", "--timeout", "2m"]).exits(10);
    assert_eq!(fleet.row("demo")["outcome"], "limit");
    fleet
}

#[test]
fn an_exhausted_budget_is_refused_with_what_was_spent_and_the_ways_on() {
    let fleet = spent();
    let before = fleet.registry();
    let done = fleet.ctl(&["start"]).exits(10);
    done.err_has("the budget is exhausted (budget:max_iterations): 1 of 1 ticks (100 %)");
    for way in ["`peers-ctl budget raise demo --ticks +10`", "--reset-budget", "--force"] {
        assert!(done.err.contains(way), "{way}: {}", done.err);
    }
    let mut after = fleet.registry();
    after["revision"] = before["revision"].clone();
    assert_eq!(after, before);
    assert_eq!(fleet.runs().len(), 1);
    // More run time is no more ticks.
    fleet.ctl(&["start", "--max-runtime", "+2h"]).exits(10);
    // It ends after one look.
    fleet.ctl(&["start", "--force"]).exits(0);
    fleet.ctl(&["wait", "--timeout", "2m"]).exits(10);
    assert_eq!((fleet.runs().len(), fleet.records("tick").len()), (2, 1));
    // Counted anew, with the numbers of ticks going on.
    fleet.ctl(&["start", "--reset-budget"]).exits(0);
    fleet.ctl(&["wait", "--timeout", "2m"]).exits(10);
    let ticks: Vec<Value> = fleet.records("tick").iter().map(|tick| tick["iteration"].clone()).collect();
    assert_eq!(ticks, [json!(1), json!(2)]);
}

#[test]
fn nothing_but_a_budget_is_forced() {
    let fleet = Fleet::new();
    fleet.write(".peers/goals.yaml", &goals(&[("real", "true"), ("more", "true")]));
    let by_hand = fleet.peers(&["run"]);
    let forced = fleet.ctl(&["start", "--force"]);
    assert_eq!((forced.code, problems(&forced)), (by_hand.code, problems(&by_hand)));
}

/// The acts of the operator that set a budget.
fn acts(fleet: &Fleet) -> Vec<Value> {
    let mut all = fleet.records("operator");
    all.retain(|record| record.to_string().contains("budget-"));
    all
}

#[test]
fn a_cap_of_run_time_is_set_or_added_to_what_holds_and_is_recorded() {
    let fleet = Fleet::new();
    fleet.accept_config("budget:\n  max_runtime_s: 1800\n");
    let cap = || {
        fleet.data("peers-ctl.dashboard/1", &["dashboard", "--project", "demo"], 0)["project"]["budget"]["runtime_s"]["max"].clone()
    };
    for (args, seconds) in [("+2h", 9000), ("+1h", 12600), ("4h", 14400)] {
        fleet.ran(&["--max-runtime", args, "--max-ticks", "1"]);
        assert_eq!(cap(), seconds, "{args}");
    }
    assert_eq!(acts(&fleet).len(), 3, "{:#?}", acts(&fleet));
    // What was set by hand is gone with a reset, and is what a plus adds to then.
    fleet.ran(&["--reset-budget", "--max-runtime", "+2h", "--max-ticks", "1"]);
    assert_eq!(cap(), 9000);
}

#[test]
fn a_restart_takes_the_arguments_of_the_last_start_unless_it_is_given_some() {
    let fleet = Fleet::still();
    fleet.start(&["--max-ticks", "7", "--allow-no-gates"]);
    let argv = || fleet.runs().into_iter().find(|run| run["ended_at"].is_null()).unwrap()["argv"].clone();
    let words = |argv: &Value| {
        let all: Vec<String> = serde_json::from_value(argv.clone()).unwrap();
        all.into_iter().skip_while(|word| word != "run").skip(1).collect::<Vec<_>>()
    };
    assert_eq!(words(&argv()), ["--max-ticks=7", "--allow-no-gates"]);
    let first = fleet.row("demo")["pid"].clone();
    let row = fleet.data("peers-ctl.restart/1", &["restart"], 0)[0].clone();
    assert_eq!((&row["stopped"]["result"], &row["ok"]), (&"stopped".into(), &true.into()), "{row}");
    assert_ne!(row["pid"], first);
    assert_eq!(words(&argv()), ["--max-ticks=7", "--allow-no-gates"]);
    fleet.ctl(&["restart", "--max-ticks", "9"]).exits(0);
    assert_eq!(words(&argv()), ["--max-ticks=9"]);
    // One that does not run is started.
    fleet.ctl(&["stop"]).exits(0);
    fleet.ctl(&["restart"]).exits(0).out_has("demo: no loop runs\n").out_has("started demo");
    assert_eq!(words(&argv()), ["--max-ticks=9"]);
    assert_eq!(fleet.runs().iter().filter(|run| run["ended_at"].is_null()).count(), 1);
    fleet.ctl(&["stop"]).exits(0);
    fleet.is_quiet();
}

#[test]
fn resume_says_that_a_person_dealt_with_it_and_starts_where_asked() {
    let fleet = Fleet::still();
    let row = fleet.data("peers-ctl.resume/1", &["resume"], 0)[0].clone();
    assert_eq!((&row["taken"], &row["started"]), (&"recorded".into(), &Value::Null), "{row}");
    assert!(!fleet.locked());
    fleet.ctl(&["resume", "--force"]).exits(2).err_has("--force is for a start");
    fleet.start(&["--max-ticks", "7"]);
    // A loop that runs is told.
    let row = fleet.data("peers-ctl.resume/1", &["resume"], 0)[0].clone();
    assert_eq!(row["taken"], "handed-to-the-loop", "{row}");
    fleet.ctl(&["stop"]).exits(0);
    let row = fleet.data("peers-ctl.resume/1", &["resume", "--start"], 0)[0].clone();
    assert!(row["started"]["pid"].is_u64(), "{row}");
    let argv = fleet.row("demo")["argv"].clone();
    assert_eq!(argv, json!(["run", "--max-ticks=7"]));
    fleet.ctl(&["stop"]).exits(0);
    fleet.is_quiet();
}

#[test]
fn a_raised_budget_holds_for_its_time_whether_the_loop_runs_or_not() {
    let fleet = Fleet::still();
    fleet.accept_config("budget:\n  max_iterations: 5\n  max_usd: 10\n");
    let ticks = || {
        fleet.data("peers-ctl.dashboard/1", &["dashboard", "--project", "demo"], 0)["project"]["budget"]["iterations"]["max"].clone()
    };
    let done = fleet.ctl(&["budget", "raise", "--ticks", "+50", "--usd", "25", "--for", "2h"]).exits(0);
    done.out_has("demo: `budget.max_iterations` is 55, `budget.max_usd` is $25.00 until ");
    assert_eq!(ticks(), 55);
    let info = fleet.peers(&["info"]).exits(0).out;
    assert!(info.contains("raised:    max_iterations 55 until "), "{info}");
    assert!(info.contains("max_usd $25.00 until "), "{info}");
    let status = fleet.data("peers-ctl.status/1", &["status"], 0);
    let set = &status[0]["status"]["loop"]["value"]["budget"]["set"];
    let told = (&set[0]["cap"], &set[0]["value"], &set[1]["cap"], &set[1]["value"], &set[0]["by"]);
    assert_eq!(
        told,
        (&"max_iterations".into(), &55.into(), &"max_usd".into(), &25_000_000.into(), &"tester".into()),
        "{set}"
    );
    assert!(set[0]["until"].is_string(), "{set}");
    // One that runs is told, and takes it up before its next turn.
    fleet.start(&[]);
    let row =
        fleet.data("peers-ctl.budget-raise/1", &["budget", "raise", "--ticks", "+1", "--for", "never"], 0)[0]
            .clone();
    assert_eq!(row["taken"], "handed-to-the-loop", "{row}");
    fleet.ctl(&["stop"]).exits(0);
    fleet.ctl(&["start", "--max-ticks", "1"]).exits(0);
    assert_eq!(ticks(), 56);
    fleet.ctl(&["stop"]).exits(0);
    let text = fleet.ctl(&["status"]).exits(0).out;
    assert!(text.contains("  set over the configuration: max_iterations 56 by tester at "), "{text}");
    assert!(text.contains("\n  set over the configuration: max_usd $25.00 until "), "{text}");
    fleet.ctl(&["budget", "raise"]).exits(2).err_has("name one of --runtime");
    fleet.is_quiet();
}

#[test]
fn of_several_each_is_done_and_each_is_told() {
    let fleet = Fleet::new();
    fleet.another("pay-api");
    fleet.another("pay-web");
    let dir = fleet.path("labelled");
    std::fs::create_dir(&dir).unwrap();
    fleet.git(&["-C", dir.to_str().unwrap(), "init", "-q"]);
    fleet.ctl(&["add", dir.to_str().unwrap(), "--label", "team=pay"]).exits(0);
    for command in ["peek", "replay", "review"] {
        let done = fleet.ctl(&[command, "pay-*"]).exits(2);
        let says = format!("`peers-ctl {command}` shows one project at a time, and 2 were selected");
        done.err_has(&says);
    }
    // One that was never set up is among them.
    let rows = fleet.data("peers-ctl.start/1", &["start", "--all", "--max-ticks", "1"], 7);
    let told: Vec<(Value, Value)> =
        rows.as_array().unwrap().iter().map(|row| (row["name"].clone(), row["ok"].clone())).collect();
    let wanted = [("demo", true), ("labelled", false), ("pay-api", true), ("pay-web", true)];
    let mut told: Vec<(&str, bool)> =
        told.iter().map(|(name, ok)| (name.as_str().unwrap(), ok.as_bool().unwrap())).collect();
    told.sort_unstable();
    assert_eq!(told, wanted);
    let failed = rows.as_array().unwrap().iter().find(|row| row["ok"] == false).unwrap();
    assert_eq!(failed["exit"], 3);
    assert!(failed["error"]["message"].as_str().is_some_and(|text| text.contains("not set up")), "{failed}");
    fleet.ctl(&["wait", "pay-*", "demo", "--timeout", "2m"]).exits(0);
    let names = |args: &[&str]| {
        let rows = fleet.data("peers-ctl.list/1", &[&["list"], args].concat(), 0);
        let names = rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&["pay-*"]), ["pay-api", "pay-web"]);
    assert_eq!(names(&["pay-???", "demo"]), ["demo", "pay-api", "pay-web"]);
    assert_eq!(names(&["--label", "team"]), ["labelled"]);
    assert_eq!(names(&["--label", "team=pay"]), ["labelled"]);
    assert_eq!(names(&["--state", "fresh"]), ["labelled"]);
    assert_eq!(names(&["--state", "stopped"]), ["demo", "pay-api", "pay-web"]);
    // Alone it fails as a command fails, and all that fail alike give that code.
    fleet.ctl(&["start", "labelled"]).exits(3);
    fleet.ctl(&["start", "--label", "team=nobody"]).exits(1);
    fleet.ctl(&["start", "pay"]).exits(3);
    let several = fleet.ctl(&["start"]);
    // In the directory of one of them, that one is meant.
    assert!(several.exits(0).out.starts_with("started demo"));
    fleet.ctl(&["stop", "--all"]).exits(0);
    assert!(fleet.alive().is_empty());
}
