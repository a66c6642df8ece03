//! `peers-ctl new`, and the gates that `--test` and `--detect` lay down.

use std::os::unix::fs::symlink;
use std::process::Command;

use crate::support::{Ended, Held, World, program};

/// Reviews all that the template asks for, once there is something; before, makes it.
const AGENT: &str = r##"
turns:
- on: {prompt: "# Skeptic turn"}
  steps: [{skeptic: clean}]
- on: {prompt: "Peer-Review-Of: <goal id>", file: work.txt}
  steps:
  - review: {goal: bug-hunt-round-1, pass: true, notes: "Read as an attacker would", checked: ["work.txt:1 read"]}
  - review: {goal: bug-hunt-round-2, pass: true, notes: "Read as a caller would", checked: ["work.txt:1 read"]}
  - review: {goal: test-coverage-3-class, pass: true, notes: "Nothing to test", checked: ["work.txt:1 read"], handoff: true}
- - write: {path: work.txt, text: "done\n"}
  - handoff: The work
"##;

/// `peers-ctl ARGS` with scripts in the place of the agents that the template names.
fn ctl(world: &World, args: &[&str]) -> Ended {
    let bin = world.path("bin");
    if !bin.exists() {
        for agent in ["claude", "codex"] {
            world.script(agent, AGENT);
            let script = world.path(&format!("scripts/{agent}.yaml"));
            let (peers, script) = (program().display().to_string(), script.display());
            let text = format!("exec '{peers}' fake-peer --script '{script}' \"$@\"");
            world.executable(&format!("bin/{agent}"), &text);
        }
    }
    Ended::of(&command(world, args).env("PATH", World::search_path(&bin)).output().unwrap())
}

fn command(world: &World, args: &[&str]) -> Command {
    let mut command = world.command(program().with_file_name("peers-ctl"));
    command.args(args);
    command
}

/// What is to be done, in its order.
fn steps(done: &Ended) -> Vec<&str> {
    done.err.lines().filter(|line| line.starts_with("next: ") || line.starts_with("then: ")).collect()
}

/// Refused with this code, and nothing was written.
#[track_caller]
fn refused(world: &World, args: &[&str], code: i32, says: &str) {
    let before = world.everything();
    let done = world.ctl(args).exits(code);
    assert!(done.out.is_empty() && done.err.contains(says), "{args:?}: {}", done.err);
    assert!(!done.err.contains('\u{1b}') && !done.err.contains('\u{7}'), "{:?}", done.err);
    let after = world.everything();
    let changed: Vec<_> = after.iter().filter(|(path, held)| before.get(*path) != Some(held)).collect();
    assert!(changed.is_empty() && before.len() == after.len(), "{args:?} wrote {changed:?}");
}

fn names(world: &World) -> Vec<String> {
    let list = world.ctl(&["list", "--json"]).exits(0).json("peers-ctl.list/1");
    let text = |row: &serde_json::Value| row["name"].as_str().unwrap().to_owned();
    let rows = list["data"].as_array().or_else(|| list["data"]["projects"].as_array());
    rows.unwrap().iter().map(text).collect()
}

#[test]
fn three_commands_lead_from_nothing_to_a_supervised_run_that_completes() {
    let world = World::repo();
    let head = world.head();
    let made = ctl(&world, &["new", ".", "--test", "test -f work.txt"]).exits(0);
    let top = world.at("").canonicalize().unwrap();
    assert!(made.out.starts_with(&format!("repo -> {}\n", top.display())), "{}", made.out);
    made.out_has("the repository that was there\n").out_has(", accepted; ");
    made.err_has("the gate `tests-pass`, which runs `test -f work.txt`");
    let next: Vec<_> = steps(&made);
    assert!(next[0].starts_with("next: write what the agents should do into TASK.md"), "{next:?}");
    assert_eq!(next[1..], ["then: `peers-ctl start repo`"]);
    assert_eq!(world.git(&["rev-parse", "HEAD~1"]), head);
    assert_eq!(world.git(&["status", "--porcelain"]), "");

    ctl(&world, &["start"]).exits(0);
    let status = ctl(&world, &["status"]).exits(0);
    assert!(status.out.starts_with("repo: "), "{}", status.out);

    ctl(&world, &["wait", "repo", "--timeout", "5m"]).exits(0);
    ctl(&world, &["status"]).exits(0).out_has("complete");
    assert_eq!(world.read("work.txt"), "done\n");
}

#[test]
fn a_new_project_is_started_in_the_same_command() {
    let world = World::bare();
    let made = ctl(&world, &["new", "./fresh", "--test", "test -f work.txt", "--start", "--json"]).exits(0);
    let made = made.json("peers-ctl.new/1");
    assert_eq!((&made["data"]["name"], &made["data"]["how"]), (&"fresh".into(), &"made".into()));
    assert!(made["data"]["started"]["pid"].as_u64().is_some_and(|pid| pid > 0), "{made}");
    ctl(&world, &["wait", "fresh", "--timeout", "5m"]).exits(0);
    assert!(world.at("fresh/work.txt").exists());
}

#[test]
fn a_start_that_fails_leaves_a_project_that_is_registered() {
    let world = World::repo();
    let done = world.ctl(&["new", ".", "--start"]).exits(3);
    done.err_has("set up and registered; starting it failed");
    done.err_has("placeholder-replace-me");
    assert_eq!(names(&world), ["repo"]);
}

#[test]
fn without_a_gate_and_without_agents_it_says_what_is_missing() {
    let world = World::repo();
    let empty = world.path("scripts");
    let run = command(&world, &["new", "."]).env("PATH", &empty).output().unwrap();
    let done = Ended::of(&run).exits(0);
    let next = steps(&done);
    let next = &next[1..];
    let top = world.at("").canonicalize().unwrap();
    let edit = format!("`peers -C {} goals edit`", top.display());
    let over = format!("`peers -C {} init --force --test CMD`", top.display());
    assert!(
        next[0].contains("placeholder") && next[0].contains(&edit) && next[0].contains(&over),
        "{next:?}"
    );
    for says in ["`claude`", "`codex`", "git"] {
        assert!(next.iter().any(|line| line.contains(says)), "{says}: {next:?}");
    }
    assert_eq!(next.last(), Some(&"then: `peers-ctl start repo`"));
    // What it says helps.
    world.peers(&["init", "--force", "--test", "true"]).exits(0);
    assert!(ctl(&world, &["start", "--dry-run"]).exits(0).out.contains("run"));
    ctl(&world, &["start", "--dry-run"]).exits(0).out_lacks("would be refused");
}

#[test]
fn where_stop_hooks_call_the_loop_it_says_where_they_are_and_names_no_start() {
    let world = World::bare();
    let new = |name: &str, driver: &str| ctl(&world, &["new", name, "--driver", driver, "--test", "true"]);
    let done = new("./hooked", "hooks").exits(0);
    done.out_has(".peers/hooks; its README.md says where they go\n");
    let last = "then: work in a session of claude or codex; a handoff there calls the next turn";
    assert_eq!(steps(&done).last(), Some(&last));
    done.err_lacks("peers-ctl start");
    let done = new("./sessions", "sessions").exits(0);
    assert_eq!(steps(&done).last(), Some(&"then: `peers-ctl start sessions`"));
    done.out_lacks("hooks");
}

#[test]
fn a_bare_word_lies_below_the_projects_root_which_is_made_on_first_use() {
    let world = World::bare();
    let root = world.path("all/projects");
    let new = |word: &str| {
        let done = command(&world, &["new", word]).env("PEERS_PROJECTS_ROOT", &root).output().unwrap();
        Ended::of(&done)
    };
    let bad = new("a b").exits(2);
    assert!(bad.err.contains("--name NAME") && !root.exists(), "{}", bad.err);
    new("one").exits(0);
    new("two").exits(0);
    for name in ["one", "two"] {
        assert!(root.join(name).join(".git").is_dir() && root.join(name).join(".peers").is_dir());
    }
    assert_eq!(names(&world), ["one", "two"]);
    assert!(!world.at("one").exists());
}

#[test]
fn what_is_refused_writes_nothing() {
    let world = World::repo();
    world.ctl(&["new", "."]).exits(0);
    world.ctl(&["new", "../moved"]).exits(0);
    std::fs::rename(world.path("moved"), world.path("elsewhere")).unwrap();
    std::fs::create_dir(world.path("full")).unwrap();
    std::fs::write(world.path("full/x"), "x").unwrap();
    symlink(world.at(""), world.path("same")).unwrap();
    std::fs::write(world.path("plan.md"), "# no plan\n").unwrap();
    world.write("src/x", "x");
    for (args, code, says) in [
        (&["../repo"][..], 4, "is registered already, as `repo`"),
        (&["../repo", "--name", "other"], 4, "is registered already, as `repo`"),
        (&["../same", "--name", "other"], 4, "is registered already, as `repo`"),
        (&["../elsewhere"], 4, "is registered already, as `moved`"),
        (&["../new", "--name", "repo"], 4, "--name"),
        (&["../full"], 4, "--into-nonempty"),
        (&["../repo", "--replace-registration"], 4, "is set up for peers already"),
        (&["../new", "--plan", "../plan.md", "--spec", "x"], 2, "--plan and --spec exclude each other"),
        (&["../new", "--plan", "../plan.md", "--modes", "implement"], 3, "is not a valid plan"),
        (&["../new", "--plan", "../absent.md"], 2, "hint: name a file that exists"),
        (&["../new", "--spec", "../absent.md"], 2, "is read from a file: `--spec FILE`"),
        (&["./src"], 3, &format!("`peers-ctl new {}`", world.at("").canonicalize().unwrap().display())),
        (&["../new", "--modes", "implement"], 2, "needs a plan"),
        (&["../new", "--test", "a\u{1b}[2Jb"], 2, "cannot be seen"),
        (&["../new", "--test", "x", "--detect"], 2, "cannot be used with"),
        (&["../new", "--notes", &"x".repeat(5_000)], 2, "longer than 4 KiB"),
        (&[""], 2, "PATH"),
        (&["../\u{1b}[31mred\u{7}"], 2, "call it by another name"),
        (&["../a;b"], 2, "call it by another name"),
        (&["../-x"], 2, "call it by another name"),
        (&["../x", "--name", "../x"], 2, "the project name"),
    ] {
        refused(&world, &[&["new"], args].concat(), code, says);
    }
    assert_eq!(names(&world), ["moved", "repo"]);
}

#[test]
fn a_name_that_steers_a_terminal_reaches_none() {
    let world = World::bare();
    let done = world.ctl(&["new", "./\u{1b}[31mred\u{7}", "--name", "red", "--test", "true"]).exits(0);
    let list = world.ctl(&["list"]).exits(0);
    for text in [&done.out, &done.err, &list.out, &list.err] {
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    }
    assert!(world.at("\u{1b}[31mred\u{7}/.peers").is_dir());
}

#[test]
fn a_name_gives_way_where_that_is_asked_for_and_its_loop_does_not_run() {
    let world = World::repo();
    world.ctl(&["new", "."]).exits(0);
    world.ctl(&["new", "../inner", "--name", "repo", "--replace-registration", "--label", "a=b"]).exits(0);
    assert_eq!(names(&world), ["repo"]);
    let made = world.ctl(&["new", ".", "--name", "outer", "--overwrite-peers", "--json"]).exits(0);
    let made = made.json("peers-ctl.new/1");
    assert_eq!(made["data"]["init"]["outcome"], "rebuilt");
    assert_eq!(names(&world), ["outer", "repo"]);
}

#[test]
fn whether_a_loop_runs_is_looked_at_before_its_name_is_given_away() {
    let world = World::repo();
    world.ctl(&["new", "."]).exits(0);
    let replace = ["new", "../inner", "--name", "repo", "--replace-registration"];
    // Started by hand, so that the registry knows nothing of it.
    let held = world.hold_lock(serde_json::json!({"run_id": "0123456789abcdef"}));
    refused(&world, &["new", "../inner", "--name", "repo"], 4, "there is a project `repo` already");
    let running = world.ctl(&replace).exits(4);
    assert!(running.err.contains("is not replaced") && !world.path("inner").exists(), "{}", running.err);
    drop(held);
    // What the registry remembers of it now is no longer so.
    world.ctl(&replace).exits(0);
    assert_eq!(names(&world), ["repo"]);
}

#[test]
fn files_that_look_like_secrets_are_told() {
    let world = World::bare();
    world.write(".env", "A=1\n");
    let done = world.ctl(&["new", ".", "--into-nonempty", "--detect", "--lang", "rust"]).exits(0);
    done.err_has("warning: ").err_has(".env");
    done.err_has("`tests-pass`, which runs `cargo test`");
    done.out_has("a new repository, with the files that were there, first commit ");
}

#[test]
fn an_agent_or_another_controller_gets_nothing_accepted() {
    let world = World::repo();
    world.ctl(&["new", "."]).exits(0);
    world.ctl(&["remove", "repo"]).exits(0);
    let project = world.store().file_name().unwrap().to_owned();
    let again = ["new", ".", "--overwrite-peers", "--test", "true"];
    let inside = command(&world, &again).env("PEERS_IN_TICK", project).output().unwrap();
    assert!(Ended::of(&inside).exits(5).err.contains("is for the operator alone"));
    let lock = Held::of(&world.store().join("op.lock"), |_| None);
    let who = format!("process {} holds the lock of controllers", lock.process.id());
    assert!(world.ctl(&again).exits(4).err.contains(&who));
    drop(lock);
    assert!(world.read(".peers/goals.yaml").contains("placeholder"));
    world.ctl(&again).exits(0);
}

#[test]
fn what_was_made_and_could_not_be_registered_is_told_with_the_command_that_does_it() {
    let world = World::repo();
    world.ctl(&["new", "../first"]).exits(0);
    let lock = std::fs::File::create(world.path("home/config/peers-ctl/.lock")).unwrap();
    lock.lock().unwrap();
    let done = world.ctl(&["new", ".", "--name", "it", "--label", "a=b c"]).exits(4);
    drop(lock);
    done.err_has("is set up, and not registered: ");
    let add = done.err.split("`peers-ctl ").nth(1).unwrap().split('`').next().unwrap();
    assert!(add.ends_with(" --name it --label 'a=b c'"), "{add}");
    let line = format!("'{}' {add}", program().with_file_name("peers-ctl").display());
    assert!(world.command("sh").args(["-c", &line]).output().unwrap().status.success());
    assert_eq!(names(&world), ["first", "it"]);
}

#[test]
fn bare_on_a_terminal_it_asks_and_nowhere_else() {
    let world = World::repo();
    world.write("go.mod", "module x\n");
    world.commit("Go");
    world.ctl(&["new"]).exits(2).err_has("PATH").err_has("`peers-ctl new .`");

    let before = world.everything();
    let (code, shown) = World::on_terminal(command(&world, &["new"]), "\n\u{4}");
    assert!(code == Some(1) && shown.contains("nothing was written\n"), "{shown}");
    assert_eq!(before.len(), world.everything().len());

    let (code, shown) = World::on_terminal(command(&world, &["new", "--label", "a=b"]), "\n\n\n\n\n");
    assert_eq!(code, Some(0), "{shown}");
    let top = world.at("").canonicalize().unwrap();
    let line = format!("peers-ctl new {} --name repo --test 'go test ./...' --label 'a=b'\n", top.display());
    assert!(shown.contains(&line) && shown.contains("repo -> "), "{shown}");
    assert!(world.read(".peers/goals.yaml").contains("\n    cmd: go test ./...\n"));
    assert_eq!(names(&world), ["repo"]);
}

#[test]
fn a_gate_whose_program_is_not_there_is_named_and_a_parent_that_is_missing_too() {
    let world = World::repo();
    world.write("TASK.md", "x\n");
    world.write("Cargo.toml", "[package]\nname = \"x\"\n");
    world.commit("Task");
    let empty = world.path("scripts");
    let run = command(&world, &["new", ".", "--detect"]).env("PATH", &empty).output().unwrap();
    let done = Ended::of(&run).exits(0);
    let steps = steps(&done);
    assert!(
        steps[0].starts_with(
            "next: install `cargo`, which is missing, or change the commands that start with it: `"
        ),
        "{steps:?}"
    );
    let done = ctl(&world, &["new", "./wor/king"]).exits(2);
    let parent = world.at("").canonicalize().unwrap().join("wor");
    let said = format!("error: {0} does not exist\nhint: `mkdir -p {0}` makes it\n", parent.display());
    assert_eq!(done.err, said);
}

#[test]
fn a_bare_word_that_is_a_directory_here_is_refused_with_the_path_that_sets_it_up() {
    let world = World::bare();
    std::fs::create_dir(world.at("app")).unwrap();
    let done = Ended::of(&command(&world, &["new", "app"]).output().unwrap()).exits(2);
    done.err_has("`./app` is a directory here");
    done.err_has("hint: to set up that directory: `peers-ctl new ./app`");
    let asked = command(&world, &["new", "app", "--test", "true"]);
    let (code, said) = World::on_terminal(asked, "y\n");
    assert_eq!(code, Some(0), "{said}");
    assert!(world.at("app/.peers/goals.yaml").exists(), "{said}");
}
