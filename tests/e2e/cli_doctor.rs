//! `peers doctor`.

use std::process::Stdio;

use serde_json::Value;

use crate::support::{Ended, World, program};

/// Lays down a program in a directory that stands first in `PATH`.
fn tool(world: &World, name: &str, script: &str) {
    world.executable(&format!("bin/{name}"), script);
}

fn doctor(world: &World, vars: &[(&str, &str)]) -> Ended {
    let mut command = world.command(program());
    let path = World::search_path(&world.path("bin"));
    command.args(["doctor", "--json"]).env("PATH", path).envs(vars.iter().copied());
    Ended::of(&command.output().unwrap())
}

/// The messages about one thing, each with its level.
fn about(found: &Value, what: &str) -> Vec<(String, String)> {
    let checks = found["checks"].as_array().unwrap().iter().filter(|check| check["about"] == what);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    checks.map(|check| (text(&check["level"]), text(&check["message"]))).collect()
}

/// Asserts that a message of this level says this.
#[track_caller]
fn says(told: &[(String, String)], level: &str, text: &str) {
    assert!(told.iter().any(|(of, said)| of == level && said.contains(text)), "{level} {text}: {told:?}");
}

#[test]
fn a_repository_that_is_ready_has_nothing_to_mend() {
    let world = World::ready("true");
    let page = world.peers(&["doctor"]).exits(0);
    assert_eq!(page.last_line(), "0 errors, 0 warnings");
    page.out_has("peer ann").out_has("its version is not asked");
    let found = world.peers(&["doctor", "--json"]).exits(0).json("peers.doctor/1");
    assert!(found["checks"].as_array().unwrap().iter().all(|check| check["level"] == "ok"), "{found}");
    assert_eq!((&found["answers"], &found["exit_code"]), (&serde_json::json!([]), &0.into()));
}

#[test]
fn what_a_run_would_refuse_for_is_told_in_its_words_and_with_its_code() {
    type Break = fn(&World);
    let missing: Break = |world| {
        world.write(".peers/config.yaml", &world.config("").replacen("\"fake-peer\"", "\"x\"", 1));
        let config =
            world.read(".peers/config.yaml").replacen(program().to_str().unwrap(), "no-such-agent", 1);
        world.write(".peers/config.yaml", &config);
        world.accept(&[]);
    };
    let unaccepted: Break = |world| world.write(".peers/config.yaml", &world.config("comm: hybrid\n"));
    let invalid: Break = |world| world.write(".peers/config.yaml", &world.config("colour: red\n"));
    let locked: Break = |world| world.write(".git/index.lock", "");
    for (harm, code) in [(missing, 6), (unaccepted, 5), (invalid, 3), (locked, 4)] {
        let world = World::ready("true");
        harm(&world);
        let refused = world.peers(&["run", "--max-ticks", "1"]).exits(code);
        let found = world.peers(&["doctor", "--json"]).exits(code).json("peers.doctor/1");
        let checks = found["checks"].as_array().unwrap().clone();
        let errors: Vec<&Value> = checks.iter().filter(|check| check["level"] == "error").collect();
        assert_eq!(errors.len(), 1, "{found}");
        let first = errors[0]["message"].as_str().unwrap().lines().next().unwrap();
        assert!(refused.err.contains(first), "{first}\n{}", refused.err);
        if let Some(fix) = errors[0]["fix"].as_str() {
            assert!(refused.err.contains(fix), "{fix}\n{}", refused.err);
        }
        let page = world.peers(&["doctor"]).exits(code);
        assert_eq!(page.last_line(), "1 error, 0 warnings");
    }
}

#[test]
fn a_directory_that_is_not_set_up_is_looked_at_all_the_same() {
    let world = World::bare();
    world.git(&["init", "-q", "-b", "main"]);
    let page = world.peers(&["doctor"]).exits(3);
    for says in ["run `peers init`", "has no commit yet", "ok     git"] {
        assert!(page.out.contains(says), "{says}: {}", page.out);
    }
}

/// A world with `claude` and `codex`, as scripts that answer what a doctor asks.
fn with_tools(argv_of_codex: &str) -> World {
    let world = World::ready("true");
    tool(&world, "claude", "[ \"$1\" = --version ] && echo '9.8.7 (Claude Code)'");
    tool(
        &world,
        "codex",
        "case \"$*\" in --version) echo codex-cli 1.2.3;; *--bogus*) echo \"error: unexpected argument '--bogus' found\" >&2; exit 2;; *--help) ;; *) exit 9;; esac",
    );
    world.write(
        ".peers/config.yaml",
        &format!(
            "peers:\n- {{name: claude, argv: [claude, -p, --dangerously-skip-permissions, --output-format, stream-json, --verbose]}}\n\
             - {{name: codex, argv: [{argv_of_codex}]}}\n"
        ),
    );
    world.accept(&[]);
    world
}

#[test]
fn programs_versions_logins_and_arguments_of_known_tools_are_looked_at() {
    let world = with_tools("codex, exec, --json, '-'");
    let root = world.command("id").arg("-u").output().unwrap().stdout == b"0\n";
    let found = doctor(&world, &[("IS_SANDBOX", "1")]).exits(0).json("peers.doctor/1");
    let claude = about(&found, "peer claude");
    assert!(claude[0].1.ends_with("/bin/claude, version 9.8.7 (Claude Code)"), "{claude:?}");
    says(&claude, "warning", "no login");
    assert_eq!(claude.iter().any(|(_, text)| text.contains("this is root")), root);
    let codex = about(&found, "peer codex");
    assert!(codex.contains(&("ok".into(), "it takes its arguments".into())), "{codex:?}");
    says(&codex, "ok", "its tokens will be known, its cost will not; set its `model: NAME` in ");

    std::fs::create_dir_all(world.path("elsewhere")).unwrap();
    std::fs::write(world.path("elsewhere/auth.json"), r#"{"auth_mode":"chatgpt"}"#).unwrap();
    let home = world.path("elsewhere");
    let vars = [("ANTHROPIC_API_KEY", "k"), ("CODEX_HOME", home.to_str().unwrap())];
    let done = doctor(&world, &vars);
    let found = done.json("peers.doctor/1");
    let (claude, codex) = (about(&found, "peer claude"), about(&found, "peer codex"));
    assert!(claude.iter().any(|(_, text)| text == "it has a key: every turn is paid for"), "{claude:?}");
    let file = format!("it is logged in with a subscription ({})", home.join("auth.json").display());
    assert!(codex.iter().any(|(_, text)| *text == file), "{codex:?}");
    let refuses = claude.iter().any(|(level, text)| level == "error" && text.contains("as root"));
    assert_eq!((refuses, done.code), (root, Some(if root { 6 } else { 0 })));
}

#[test]
fn how_codex_is_billed_is_told_and_the_key_that_does_not_log_it_in() {
    let world = with_tools("codex, exec, --json, '-'");
    let codex = |vars: &[(&str, &str)]| {
        let vars = [vars, &[("IS_SANDBOX", "1")]].concat();
        about(&doctor(&world, &vars).exits(0).json("peers.doctor/1"), "peer codex")
    };
    let alone = codex(&[("OPENAI_API_KEY", "k")]);
    says(&alone, "warning", "no login of it is found but OPENAI_API_KEY");
    let paid = ("ok".to_owned(), "it has a key (CODEX_API_KEY): every turn is paid for".to_owned());
    for vars in [&[("CODEX_API_KEY", "k")][..], &[("CODEX_API_KEY", "k"), ("OPENAI_API_KEY", "k")]] {
        assert!(codex(vars).contains(&paid), "{:?}", codex(vars));
    }
    let home = world.path("elsewhere");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("auth.json"), r#"{"auth_mode":"apikey","OPENAI_API_KEY":"k"}"#).unwrap();
    let file = codex(&[("CODEX_HOME", home.to_str().unwrap()), ("OPENAI_API_KEY", "k")]);
    let paid = format!("it has a key ({}): every turn is paid for", home.join("auth.json").display());
    assert!(file.iter().any(|(_, text)| *text == paid), "{file:?}");
}

#[test]
fn an_agent_of_the_protocol_is_asked_to_begin_a_session_or_says_why_not() {
    let world = World::ready("true");
    let config =
        world.config("").replacen("tool: plain", "tool: acp", 2).replace("yaml\"]", "yaml\",\"acp\"]");
    world.write(".peers/config.yaml", &config);
    world.accept(&[]);
    world.scripts("after: repeat\nturns:\n- - say: OK\n");
    let found = world.peers(&["doctor", "--json"]).exits(0).json("peers.doctor/1");
    let ann = about(&found, "peer ann");
    assert!(ann.iter().any(|(_, text)| text.contains("Agent Client Protocol") && text.contains("not tried")));
    let found = world.peers(&["doctor", "--live", "--json"]).exits(0).json("peers.doctor/1");
    let ann = about(&found, "peer ann");
    let began = "it began a session by the Agent Client Protocol and answered in ";
    says(&ann, "ok", began);
    // It answers, and in no protocol.
    tool(&world, "gamma", "echo hello");
    let gamma = world.path("bin/gamma");
    let entry = format!("peers:\n  - {{name: gamma, tool: acp, argv: [{}]}}\n", gamma.display());
    world.write(".peers/config.yaml", &config.replacen("peers:\n", &entry, 1));
    world.accept(&[]);
    let found = world.peers(&["doctor", "--live", "--json"]).exits(6).json("peers.doctor/1");
    let checks = found["checks"].as_array().unwrap();
    let failed =
        checks.iter().find(|check| check["about"] == "peer gamma" && check["level"] == "error").unwrap();
    assert!(
        failed["fix"].as_str().unwrap().contains("speaks the Agent Client Protocol, version 1"),
        "{failed}"
    );
}

#[test]
fn arguments_that_a_tool_refuses_and_a_program_that_does_not_run_are_errors() {
    let world = with_tools("codex, exec, --bogus, '-'");
    tool(&world, "claude", "echo broken >&2; exit 1");
    let found = doctor(&world, &[("IS_SANDBOX", "1")]).exits(6).json("peers.doctor/1");
    let claude = about(&found, "peer claude");
    assert!(claude[0].0 == "error" && claude[0].1.ends_with("does not run: broken"), "{claude:?}");
    let codex = about(&found, "peer codex");
    says(&codex, "error", "'--bogus' found");
    says(&codex, "warning", "without structured output");
}

#[test]
fn a_script_of_node_needs_one_that_is_not_old() {
    let world = with_tools("codex, exec, --json, '-'");
    tool(&world, "node", "echo v16.20.0");
    let claude = world.path("bin/claude");
    std::fs::write(claude, "#!/usr/bin/env node\n").unwrap();
    let found = doctor(&world, &[("IS_SANDBOX", "1")]).json("peers.doctor/1");
    let claude = about(&found, "peer claude");
    says(&claude, "warning", "v16.20.0");
}

#[test]
fn a_peer_that_is_asked_answers_or_says_why_not() {
    let world = World::ready("true");
    let head = world.head();
    let config = world.config("").replacen("tool: plain", "tool: claude", 1);
    let config = config.replacen("\"]\n", "\",\"--output-format\",\"stream-json\",\"--verbose\"]\n", 1);
    world.write(".peers/config.yaml", &config);
    world.accept(&[]);
    world.script(
        "ann",
        "after: repeat\nturns:\n- - emit: {usage: {input: 100, output: 20, usd: 0.25}}\n  - say: OK\n",
    );
    let done = world.peers(&["doctor", "--live", "--json"]).exits(0);
    done.err_has("costs what a short turn costs");
    let found = done.json("peers.doctor/1");
    let ann = &found["answers"][0];
    assert_eq!((&ann["peer"], &ann["classification"]), (&"ann".into(), &"success".into()));
    assert_eq!((&ann["tokens"], &ann["usd"]), (&120.into(), &0.25.into()));
    assert_eq!(found["answers"][1]["usd"], Value::Null);
    assert_eq!((world.head(), world.records("run-started").len()), (head, 0), "nothing is done here");
    world.script("ann", "after: repeat\nturns:\n- - emit: quota\n");
    world.peers(&["doctor", "--live"]).exits(13).out_has("no answer after").out_has("(api-error)");
    world.script("ann", "after: repeat\nturns:\n- - exit: 3\n");
    world.peers(&["doctor", "--live"]).exits(6);
}

#[test]
fn whoever_works_here_and_what_a_run_left_are_told() {
    let world = World::ready("true");
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    let run = world.records("run-started").pop().unwrap()["run_id"].as_str().unwrap().to_owned();
    let mut left = world
        .command("cat")
        .envs([("PEERS_RUN_ID", run.as_str()), ("PEERS_ITERATION", "1")])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let found = world.peers(&["doctor", "--json"]).exits(0).json("peers.doctor/1");
    let checks = found["checks"].as_array().unwrap();
    let told = checks.iter().find(|check| check["about"] == "leftovers").unwrap();
    assert_eq!(told["level"], "warning", "{found}");
    assert!(told["fix"].as_str().unwrap().contains(&format!("`kill {}`", left.id())), "{told}");
    drop(left.stdin.take());
    left.wait().unwrap();
    let found = world.peers(&["doctor", "--json"]).exits(0).json("peers.doctor/1");
    assert_eq!(about(&found, "leftovers")[0].0, "ok");

    world.write(".git/index.lock", "");
    let held = world.hold_lock(serde_json::json!({"run_id": run}));
    let found = world.peers(&["doctor", "--json"]).exits(0).json("peers.doctor/1");
    let lock = &about(&found, "lock")[0].1;
    assert!(lock.contains(&run) && lock.contains(&held.process.id().to_string()), "{lock}");
    assert!(about(&found, "repository").is_empty(), "whoever works here may hold that lock: {found}");
}

/// A configuration that nobody accepted, whose programs leave a mark where they are started: `claude`,
/// `codex`, one that node runs, and what speaks a protocol. Returns where the mark would be.
fn with_traps(world: &World) -> std::path::PathBuf {
    let mark = world.path("started");
    let leaves = format!("echo \"$0 $*\" >> '{}'", mark.display());
    for name in ["claude", "codex", "node", "gamma"] {
        tool(world, name, &leaves);
    }
    std::fs::write(world.path("bin/claude"), "#!/usr/bin/env node\n").unwrap();
    let bin = world.path("bin");
    let bin = bin.display();
    world.write(
        ".peers/config.yaml",
        &format!(
            "peers:\n- {{name: claude, argv: [{bin}/claude, -p]}}\n\
             - {{name: codex, argv: [{bin}/codex, exec, --json, '-']}}\n\
             - {{name: gamma, tool: acp, argv: [{bin}/gamma, acp]}}\n"
        ),
    );
    mark
}

#[test]
fn what_an_unaccepted_configuration_names_is_looked_at_and_not_started() {
    let world = World::ready("true");
    let mark = with_traps(&world);
    let found = doctor(&world, &[("IS_SANDBOX", "1")]).exits(5).json("peers.doctor/1");
    for name in ["claude", "codex"] {
        let said = about(&found, &format!("peer {name}"));
        let left_out = ("warning".to_owned(), "not started: config.yaml is not accepted".to_owned());
        assert!(said.contains(&left_out), "{said:?}");
        assert!(said.iter().any(|(_, text)| text.contains(&format!("/bin/{name}"))), "{said:?}");
        assert!(said.iter().any(|(_, text)| text.starts_with("no login")), "{said:?}");
    }
    let fixes = found["checks"].as_array().unwrap().iter().filter_map(|check| check["fix"].as_str());
    assert!(fixes.filter(|fix| fix.contains("`peers goals accept`")).count() >= 3, "{found}");
    assert!(!mark.exists(), "{}", std::fs::read_to_string(mark).unwrap());

    let done = world.peers(&["doctor", "--live", "--json"]).exits(5);
    let found = done.json("peers.doctor/1");
    let answers = found["answers"].as_array().unwrap();
    assert_eq!(answers.len(), 3, "{found}");
    for answer in answers {
        assert_eq!(answer["error"], "not started: config.yaml is not accepted", "{answer}");
        assert_eq!(answer["classification"], Value::Null);
    }
    assert!(!mark.exists(), "{}", std::fs::read_to_string(mark).unwrap());

    // The trap works.
    world.accept(&[]);
    doctor(&world, &[("IS_SANDBOX", "1")]);
    assert!(std::fs::read_to_string(mark).unwrap().contains("codex --version"));
}

#[test]
fn a_hook_without_its_program_and_a_driver_that_nobody_calls_for_are_told() {
    let world = World::ready("true");
    let config = "driver: hooks\nhooks: {halt: [{cmd: [call-me-not-there]}], converge: [{cmd: [true]}]}\n"
        .replace("[true]", "[\"true\"]");
    world.accept_config(&config);
    let found = world.peers(&["doctor", "--json"]).exits(0).json("peers.doctor/1");
    let missing = "`halt` starts `call-me-not-there`, which is not found".to_owned();
    assert_eq!(about(&found, "hooks"), [("warning".to_owned(), missing)]);
    let uncalled = "`driver: hooks`, but no stop hook is installed".to_owned();
    assert_eq!(about(&found, "driver"), [("warning".to_owned(), uncalled)]);
    let top = world.at("").canonicalize().unwrap();
    let command = format!("peers -C {0} tick --after claude # peers:{0}", top.display());
    let settings =
        serde_json::json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}});
    std::fs::create_dir_all(world.path("home/.claude")).unwrap();
    std::fs::write(world.path("home/.claude/settings.json"), settings.to_string()).unwrap();
    let found = world.peers(&["doctor", "--json"]).exits(0).json("peers.doctor/1");
    assert_eq!(about(&found, "driver"), []);
}
