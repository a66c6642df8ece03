//! `peers-ctl watch`: who is told what, how often, and by whom.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::ctl_fleet::{Fleet, controller, pid_in};
use crate::support::{Ended, World, goals, heard};

/// A loop that was killed, and is to be started again.
pub(crate) fn killed() -> Fleet {
    let fleet = Fleet::hanging();
    let row = fleet.start(&["--restart", "on-crash"]);
    heard(&fleet.path("pipe"));
    fleet.kill(pid_in(&row));
    assert_eq!(fleet.row("demo")["state"], "crashed");
    fleet
}

/// Changes the registry by hand.
fn edit(fleet: &Fleet, change: impl FnOnce(&mut Value)) {
    let mut registry = fleet.registry();
    change(&mut registry["projects"][0]);
    std::fs::write(fleet.path("home/config/peers-ctl/projects.json"), registry.to_string()).unwrap();
}

/// One look, with these options.
pub(crate) fn once(fleet: &Fleet, args: &[&str]) -> Ended {
    fleet.ctl(&[&["watch", "--once"], args].concat()).exits(0)
}

/// What the commands wrote into `told`, line by line; it is empty afterwards.
fn told(fleet: &Fleet) -> Vec<String> {
    let path = fleet.path("told");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let _none = std::fs::remove_file(path);
    text.lines().map(str::to_owned).collect()
}

fn command(fleet: &Fleet, word: &str) -> String {
    format!("echo {word} $PEERS_LEVEL $PEERS_CODE >> {}", fleet.path("told").display())
}

#[test]
fn of_each_thing_each_channel_is_told_once_however_often_somebody_looks() {
    let fleet = killed();
    let (one, two) = (command(&fleet, "one"), command(&fleet, "two"));
    let args = ["--no-restart", "--notify-cmd", &one];
    let done = once(&fleet, &args);
    done.out_has(" act          demo: crashed");
    assert_eq!(told(&fleet), ["one act crashed"]);
    assert_eq!((once(&fleet, &args).out, told(&fleet)), (String::new(), Vec::new()));
    // Another channel has not heard of it.
    once(&fleet, &["--no-restart", "--notify-cmd", &one, "--notify-cmd", &two]);
    assert_eq!(told(&fleet), ["two act crashed"]);
    // It was seen to, and comes again.
    fleet.ctl(&["start"]).exits(0);
    heard(&fleet.path("pipe"));
    once(&fleet, &args);
    fleet.kill(pid_in(&fleet.row("demo")));
    once(&fleet, &args);
    assert_eq!(told(&fleet), ["one act crashed"]);
    // After an hour it is told again to whoever asked for that.
    let file = fleet.path("home/config/peers-ctl/told.json");
    let mut kept: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    kept["projects"][0]["notices"]["attention"]["channels"]
        .as_object_mut()
        .unwrap()
        .values_mut()
        .for_each(|channel| channel["at"] = "2020-01-01T00:00:00.000Z".into());
    std::fs::write(&file, kept.to_string()).unwrap();
    once(&fleet, &args);
    assert_eq!(told(&fleet), Vec::<String>::new());
    let done = once(&fleet, &[&args[..], &["--remind", "1h"]].concat());
    done.out_has("demo: crashed");
    assert_eq!(told(&fleet), ["one act crashed"]);
    once(&fleet, &[&args[..], &["--remind", "1h"]].concat());
    assert_eq!(told(&fleet), Vec::<String>::new());
    // What nobody can read is taken for empty.
    std::fs::write(&file, "\u{1b}[2J{").unwrap();
    once(&fleet, &args);
    assert_eq!(told(&fleet), ["one act crashed"]);
}

#[test]
fn a_channel_that_failed_is_tried_again_and_the_others_are_not_told_twice() {
    let fleet = killed();
    let one = command(&fleet, "one");
    let two = format!("{}; test -f {}", command(&fleet, "two"), fleet.path("works").display());
    let args = ["--no-restart", "--notify-cmd", &one, "--notify-cmd", &two];
    let done = once(&fleet, &args);
    done.err_has("could not be told of demo: it ended with exit code 1");
    assert_eq!(told(&fleet), ["one act crashed", "two act crashed"]);
    // Its time has come.
    let file = fleet.path("home/config/peers-ctl/told.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut kept: Value = serde_json::from_str(&text).unwrap();
    for channel in
        kept["projects"][0]["notices"]["attention"]["channels"].as_object_mut().unwrap().values_mut()
    {
        channel["at"] = "2020-01-01T00:00:00.000Z".into();
    }
    std::fs::write(&file, kept.to_string()).unwrap();
    std::fs::write(fleet.path("works"), "").unwrap();
    assert_eq!(once(&fleet, &args).err, "");
    assert_eq!(told(&fleet), ["two act crashed"]);
    assert_eq!((once(&fleet, &args).err, told(&fleet)), (String::new(), Vec::new()));
}

#[test]
fn a_webhook_is_called_without_settings_of_a_home_and_its_address_is_nobodys() {
    let fleet = killed();
    let script = format!("{{ echo \"$*\"; cat; }} > {}", fleet.path("called").display());
    let curl = fleet.executable("bin/curl", &script);
    let file = fleet.path("hook");
    std::fs::write(&file, "https://example.org/secret\n").unwrap();
    let path = World::search_path(&fleet.path("bin"));
    let watch = || {
        let mut command = fleet.command(controller());
        command.args(["watch", "--once", "--no-restart", "--webhook-file"]).arg(&file).env("PATH", &path);
        Ended::of(&command.output().unwrap())
    };
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
    watch().exits(5).err_has(&format!("hint: chmod 600 {}", file.display()));
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    watch().exits(0);
    let called = std::fs::read_to_string(fleet.path("called")).unwrap();
    assert!(
        called.starts_with("-q --config - ") && !called.lines().next().unwrap().contains("secret"),
        "{called}"
    );
    assert!(
        called.contains("url = \"https://example.org/secret\"\n") && called.contains("peers-ctl.notice/1")
    );
    let kept = std::fs::read_to_string(fleet.path("home/config/peers-ctl/told.json")).unwrap();
    assert!(kept.contains("webhook:") && !kept.contains("secret"), "{kept}");

    // The desktop is a channel of its own, by the program that shows notices there.
    std::fs::rename(&curl, fleet.path("bin/notify-send")).unwrap();
    let mut command = fleet.command(controller());
    command.args(["watch", "--once", "--no-restart", "--desktop"]).env("PATH", &path);
    Ended::of(&command.output().unwrap()).exits(0);
    let called = std::fs::read_to_string(fleet.path("called")).unwrap();
    assert!(called.starts_with("--urgency=critical --app-name=peers "), "{called}");
    assert!(called.contains("peers: demo (act)"), "{called}");
    fleet.ctl(&["watch", "--every", "500ms"]).exits(2);
    assert!(fleet.ctl(&["watch", "--every", "0"]).exits(2).err.contains("--every is at least 1s"));
}

#[test]
fn a_start_that_is_refused_is_no_attempt_and_is_told_once() {
    let fleet = killed();
    edit(&fleet, |project| project["last_stopped_at"] = "2020-01-01T00:00:00.000Z".into());
    fleet.write(".peers/goals.yaml", &goals(&[("real", "true"), ("more", "true")]));
    let one = command(&fleet, "one");
    let args = ["--from", "done", "--notify-cmd", &one];
    let done = once(&fleet, &args);
    done.out_has(" not-restarted demo: it is not started again: ");
    assert!(told(&fleet).contains(&"one act not-restarted".to_owned()));
    let kept = || -> Value {
        let file: PathBuf = fleet.path("home/config/peers-ctl/told.json");
        serde_json::from_slice::<Value>(&std::fs::read(file).unwrap()).unwrap()["projects"][0]["refused"]
            .clone()
    };
    assert_eq!(
        (&kept()["times"], &fleet.registry()["projects"][0]["restart"]["times"]),
        (&json!(1), &Value::Null)
    );
    let done = once(&fleet, &args);
    assert_eq!((done.out.as_str(), told(&fleet).len(), kept()["times"].as_u64()), ("", 0, Some(1)));
    // Once it can be started it is, when its time has come.
    fleet.accept(&[]);
    let file = fleet.path("home/config/peers-ctl/told.json");
    let mut book: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    book["projects"][0]["refused"]["at"] = "2020-01-01T00:00:00.000Z".into();
    std::fs::write(&file, book.to_string()).unwrap();
    let done = once(&fleet, &args);
    done.out_has(" restarted    demo: run ");
    heard(&fleet.path("pipe"));
    assert_eq!(kept(), Value::Null);
    assert_eq!(fleet.registry()["projects"][0]["restart"]["times"].as_array().unwrap().len(), 1);
    fleet.ctl(&["stop"]).exits(0);
    fleet.is_quiet();
}

#[test]
fn that_a_loop_is_given_up_is_told_like_everything_else() {
    let fleet = killed();
    let now = fleet.registry()["projects"][0]["last_stopped_at"].clone();
    edit(&fleet, |project| project["restart"]["times"] = json!([now, now, now, now, now]));
    let one = command(&fleet, "one");
    let done = once(&fleet, &["--notify-cmd", &one]);
    done.out_has(" given-up     demo: it died too often within an hour");
    assert_eq!(told(&fleet), ["one act given-up", "one act crashed"]);
    let done = once(&fleet, &["--notify-cmd", &one]);
    assert_eq!((done.out.as_str(), told(&fleet).len()), ("", 0));
}

#[test]
fn a_world_without_loops_is_no_error() {
    let world = World::bare();
    world.ctl(&["watch", "--once"]).exits(0);
}

#[test]
fn nobody_waits_for_a_project_that_is_gone_and_one_that_died_has_failed() {
    let fleet = Fleet::new();
    fleet.another("other");
    fleet.ctl(&["start", "demo", "other", "--max-ticks", "1"]).exits(0);
    fleet.ctl(&["wait", "--all"]).exits(0);
    std::fs::rename(fleet.path("other"), fleet.path("moved")).unwrap();
    let done = fleet.ctl(&["wait", "other"]).exits(5);
    assert_eq!(done.out, "other: unknown (path_missing)\n");
    done.err_has("whether other runs is not known: its directory is missing");
    fleet.ctl(&["wait", "--all", "--timeout", "8h"]).exits(5);
    // The code that is kept is that of the run before.
    edit(&fleet, |project| {
        assert_eq!(project["last_exit"]["code"], 0, "{project}");
        project["state"] = "crashed".into();
        project["outcome"] = "killed".into();
    });
    fleet.ctl(&["--no-reconcile", "wait", "demo"]).exits(70);
}
