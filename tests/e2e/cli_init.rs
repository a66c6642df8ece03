//! `peers init` and `peers deinit`.

use crate::support::{World, goals};

#[test]
fn one_command_writes_the_gate_the_task_and_the_agents_and_accepts_them() {
    let world = World::repo();
    let refused = world.peers(&["run"]).exits(3);
    refused.err_has("is not set up for peers\nhint: `peers init --test 'make check' --task 'Fix ...' --yes`");
    world.peers(&["init", "--agents", "codex", "--yes"]).exits(1);
    let done = world
        .peers(&["init", "--agents", "codex", "--test", "true", "--task", "Fix the\nbug", "--yes"])
        .exits(0);
    done.err_lacks("TASK.md");
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
    refused.err_has("--task: TASK.md exists and is kept");
    world.peers(&["init", "--force", "--test", "true", "--task", "Fix the\nbug"]).exits(0);
}

#[test]
fn a_second_init_refuses_and_names_the_two_ways_on() {
    let world = World::repo();
    world.peers(&["init"]).exits(0);
    world.peers(&["init"]).exits(4).err_has("--upgrade").err_has("--force");
    world.peers(&["init", "--force", "--upgrade"]).exits(2);
    world.peers(&["init", "--upgrade"]).exits(0);
    world.peers(&["init", "--force"]).exits(0);
}

#[test]
fn stop_hooks_are_laid_down_installed_and_taken_out_again() {
    let world = World::repo();
    std::fs::create_dir(world.path("home/.claude")).unwrap();
    let settings = world.path("home/.claude/settings.json");
    std::fs::write(&settings, r#"{"theme": "dark", "hooks": {"Stop": [{"hooks": [{"command": "say"}]}]}}"#)
        .unwrap();
    for args in [&["init", "--install"][..], &["init", "--install", "--driver=sessions"]] {
        world.peers(args).exits(2).err_has("--install goes with --driver=hooks");
        assert!(!world.path("home/.codex").exists() && !world.at(".peers").exists());
    }

    let done = world.peers(&["init", "--driver=hooks", "--install"]).exits(0);
    let next = "`peers goals accept`, then work in a session of claude or codex; a handoff there calls the next turn\n";
    done.err_has(next);
    done.err_lacks("is left out");
    done.out_has("installed the stop hook of claude in ").out_has(".bak.peers-");
    done.err_has("only once you have trusted it");
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
    world.peers(&["init", "--uninstall"]).exits(0).out_has("removed the stop hook of codex from ");
    assert_eq!(read("home/.claude/settings.json")["hooks"]["Stop"].as_array().unwrap().len(), 1);
    assert!(!world.path("home/.codex/hooks.json").exists() && world.at(".peers/hooks").exists());

    world.peers(&["init", "--upgrade", "--driver=hooks", "--install"]).exits(0);
    std::fs::write(world.path("home/.codex/hooks.json"), "{").unwrap();
    let done = world.peers(&["deinit"]).exits(0);
    done.out_has("removed the stop hook of claude from ");
    done.err_has("skipped codex: ").err_has("is not valid JSON");
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
    done.err_has("note: no peer runs claude; its stop hook is left out");
    done.err_lacks("no peer runs codex");
    done.out_has("installed the stop hook of codex in ");
    assert!(!world.path("home/.claude/settings.json").exists());
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
    world.accept_config("");
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
