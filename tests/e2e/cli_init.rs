//! `peers init` and `peers deinit`.

use crate::support::{World, goals};

#[test]
fn one_command_writes_the_gate_the_task_and_the_agents_and_accepts_them() {
    let world = World::repo();
    let refused = world.peers(&["run"]).exits(3);
    assert!(
        refused.err.contains(
            "is not set up for peers\nhint: `peers init --test 'make check' --task 'Fix ...' --yes`"
        ),
        "{}",
        refused.err
    );
    world.peers(&["init", "--agents", "codex", "--yes"]).exits(1);
    let done = world
        .peers(&["init", "--agents", "codex", "--test", "true", "--task", "Fix the\nbug", "--yes"])
        .exits(0);
    assert!(!done.err.contains("TASK.md"), "{}", done.err);
    assert_eq!(world.git(&["show", "HEAD:TASK.md"]), "Fix the\nbug");
    assert_eq!(world.git(&["status", "--porcelain"]), "");
    let info = world.peers(&["info", "--json"]).exits(0).json("peers.info/1");
    let names = |key: &str, of: &str| -> Vec<String> {
        info[key].as_array().unwrap().iter().map(|row| row[of].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("peers", "name"), ["codex", "codex-2"]);
    let goals = names("goals", "id");
    assert!(goals.contains(&"tests-pass".into()) && goals.contains(&"task-done".into()), "{goals:?}");
    assert!(info["accept_digest"].is_string());
    // What is there stays.
    let refused = world.peers(&["init", "--force", "--test", "true", "--task", "Another"]).exits(2);
    assert!(refused.err.contains("--task: TASK.md exists and is kept"), "{}", refused.err);
    world.peers(&["init", "--force", "--test", "true", "--task", "Fix the\nbug"]).exits(0);
}

#[test]
fn a_second_init_refuses_and_names_the_two_ways_on() {
    let world = World::repo();
    world.peers(&["init"]).exits(0);
    let done = world.peers(&["init"]).exits(4);
    assert!(done.err.contains("--upgrade") && done.err.contains("--force"), "{}", done.err);
    world.peers(&["init", "--force", "--upgrade"]).exits(2);
    world.peers(&["init", "--upgrade"]).exits(0);
    world.peers(&["init", "--force"]).exits(0);
}

#[test]
fn a_dry_run_writes_nothing() {
    let world = World::repo();
    let report = world.peers(&["init", "--dry-run", "--json"]).exits(0).json("peers.init/1");
    assert_eq!(report["dry_run"], true);
    assert!(!world.at(".peers").exists() && !world.path("home/state").exists());
}

#[test]
fn no_commit_makes_none_and_a_driver_without_hooks_lays_none_down() {
    let world = World::repo();
    let before = world.head();
    world.peers(&["init", "--no-commit", "--driver", "sessions"]).exits(0);
    assert_eq!(world.head(), before);
    assert_eq!(world.git(&["status", "--porcelain"]), "");
    assert!(!world.at(".peers/hooks").exists());
    world.peers(&["init", "--upgrade", "--driver", "nobody"]).exits(2);
}

#[test]
fn stop_hooks_are_laid_down_installed_and_taken_out_again() {
    let world = World::repo();
    std::fs::create_dir(world.path("home/.claude")).unwrap();
    let settings = world.path("home/.claude/settings.json");
    std::fs::write(&settings, r#"{"theme": "dark", "hooks": {"Stop": [{"hooks": [{"command": "say"}]}]}}"#)
        .unwrap();
    for args in [&["init", "--install"][..], &["init", "--install", "--driver=sessions"]] {
        let done = world.peers(args).exits(2);
        assert!(done.err.contains("--install goes with --driver=hooks"), "{}", done.err);
        assert!(!world.path("home/.codex").exists() && !world.at(".peers").exists());
    }

    let done = world.peers(&["init", "--driver=hooks", "--install"]).exits(0);
    let next = "`peers goals accept`, then work in a session of claude or codex; a handoff there calls the next turn\n";
    assert!(done.err.contains(next), "{}", done.err);
    assert!(!done.err.contains("is left out"), "{}", done.err);
    assert!(
        done.out.contains("installed the stop hook of claude in ") && done.out.contains(".bak.peers-"),
        "{}",
        done.out
    );
    assert!(done.err.contains("only once you have trusted it"), "{}", done.err);
    assert!(world.read(".peers/config.yaml").contains("\ndriver: hooks"));
    let top = world.at("").canonicalize().unwrap();
    let top = top.display();
    let read = |path: &str| -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(world.path(path)).unwrap()).unwrap()
    };
    let merged = read("home/.claude/settings.json");
    assert_eq!(
        (&merged["theme"], &merged["hooks"]["Stop"][0]["hooks"][0]["command"]),
        (&"dark".into(), &"say".into())
    );
    let says = format!("peers -C {top} tick --after claude # peers:{top}");
    assert_eq!(merged["hooks"]["Stop"][1]["hooks"][0]["command"], says);
    let snippet = read("repo/.peers/hooks/codex-hooks.json");
    assert_eq!(read("home/.codex/hooks.json"), snippet);

    let again = world.peers(&["init", "--upgrade", "--driver=hooks", "--install", "--json"]).exits(0);
    let again = again.json("peers.init/1");
    assert_eq!(
        (&again["host_hooks"][0]["did"], &again["host_hooks"][1]["did"]),
        (&"noop".into(), &"noop".into())
    );
    let done = world.peers(&["init", "--uninstall"]).exits(0);
    assert!(done.out.contains("removed the stop hook of codex from "), "{}", done.out);
    assert_eq!(read("home/.claude/settings.json")["hooks"]["Stop"].as_array().unwrap().len(), 1);
    assert!(!world.path("home/.codex/hooks.json").exists() && world.at(".peers/hooks").exists());

    world.peers(&["init", "--upgrade", "--driver=hooks", "--install"]).exits(0);
    std::fs::write(world.path("home/.codex/hooks.json"), "{").unwrap();
    let done = world.peers(&["deinit"]).exits(0);
    assert!(done.out.contains("removed the stop hook of claude from "), "{}", done.out);
    assert!(done.err.contains("skipped codex: ") && done.err.contains("is not valid JSON"), "{}", done.err);
    assert_eq!(read("home/.claude/settings.json")["hooks"]["Stop"].as_array().unwrap().len(), 1);
}

#[test]
fn a_tool_that_no_peer_runs_gets_no_stop_hook() {
    let world = World::repo();
    world.peers(&["init"]).exits(0);
    world.write(
        ".peers/config.yaml",
        "driver: orchestrator\npeers:\n- {name: ann, tool: codex, argv: [codex, exec, --json, '-']}\n- {name: claude, tool: codex, argv: [codex, exec, --json, '-']}\n",
    );
    let done = world.peers(&["init", "--upgrade", "--driver=hooks", "--install"]).exits(0);
    assert!(done.err.contains("note: no peer runs claude; its stop hook is left out"), "{}", done.err);
    assert!(!done.err.contains("no peer runs codex"), "{}", done.err);
    assert!(done.out.contains("installed the stop hook of codex in "), "{}", done.out);
    assert!(!world.path("home/.claude/settings.json").exists());
}

#[test]
fn without_a_commit_the_notes_and_the_next_step_say_what_comes_with_the_first_one() {
    let world = World::bare();
    world.git(&["init", "-q", "-b", "main"]);
    let done = world.peers(&["init"]).exits(0);
    assert_eq!(done.err.lines().filter(|line| line.starts_with("note: ")).count(), 2, "{}", done.err);
    assert!(!done.err.contains("no commit yet on"), "{}", done.err);
    assert!(done.err.contains("next: make the first commit, then replace"), "{}", done.err);
}

#[test]
fn a_bug_that_was_reported_before_a_late_upgrade_stays_in_the_ledger() {
    let world = World::bare();
    world.git(&["init", "-q", "-b", "main"]);
    world.peers(&["init"]).exits(0);
    world.write(".peers/goals.yaml", &goals(&[("real", "test -f bug")]));
    let bug =
        "bug_report: {id: BUG-1, severity: high, title: It breaks, description: At once, handoff: true}";
    world.script("ann", &format!("turns:\n- - write: {{path: bug, text: x}}\n  - {bug}\n"));
    world.script("ben", "turns: []\n");
    world.write(".peers/config.yaml", &world.config(""));
    world.accept(&[]);
    world.write("README.md", "# sample\n");
    let first = world.commit("First");
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    assert_eq!(world.git(&["rev-parse", "peers-baseline^{commit}"]), first);
    world.peers(&["check", "bug-ledger"]).exits(1);
    // As a version left it that set the anchor by `init` alone.
    let project = world.store().join("project.json");
    let mut recorded: serde_json::Value = serde_json::from_slice(&std::fs::read(&project).unwrap()).unwrap();
    recorded["base"] = serde_json::Value::Null;
    std::fs::write(&project, recorded.to_string()).unwrap();
    world.git(&["tag", "-d", "peers-baseline"]);
    world.peers(&["init", "--upgrade"]).exits(0);
    world.peers(&["check", "bug-ledger"]).exits(1);
    assert_eq!(world.git(&["rev-parse", "peers-baseline^{commit}"]), first);
}

#[test]
fn init_lists_what_it_changed_and_where_the_store_is() {
    let world = World::repo();
    let at = world.head();
    let done = world.peers(&["init"]).exits(0);
    assert!(done.out.starts_with("Initialized peers control plane in "), "{}", done.out);
    let lines: Vec<&str> = done.out.lines().skip(1).collect();
    let store = world.store().canonicalize().unwrap();
    assert_eq!(
        lines,
        [
            format!("  create the trusted store, {}", store.display()).as_str(),
            &format!("  tag peers-baseline at {}", &at[..8]),
            "  create .peers/",
            "  create .peers/config.yaml",
            "  create .peers/goals.yaml",
            "  accept goals.yaml and config.yaml",
            "  create .gitignore",
            "  commit .gitignore",
        ]
    );
    std::fs::remove_file(world.at(".peers/goals.yaml")).unwrap();
    let done = world.peers(&["init", "--upgrade"]).exits(0);
    assert_eq!(done.out.lines().skip(1).collect::<Vec<_>>(), ["  restore .peers/goals.yaml"]);
}

#[test]
fn deinit_takes_it_away_and_purge_the_store_too() {
    let world = World::repo();
    world.peers(&["deinit"]).exits(1);
    world.peers(&["init"]).exits(0);
    world.peers(&["deinit"]).exits(0);
    assert!(!world.at(".peers").exists() && world.store().exists());
    world.peers(&["init"]).exits(0);
    world.peers(&["deinit", "--purge", "--json"]).exits(0).json("peers.deinit/1");
    assert!(std::fs::read_dir(world.path("home/state/peers")).unwrap().next().is_none());
}
