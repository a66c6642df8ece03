//! `peers demo`.

use std::process::Stdio;

use crate::support::World;

#[test]
fn the_demonstration_completes_and_leaves_a_project_to_look_at() {
    let world = World::bare();
    let dir = world.path("demo");
    let done = world.peers(&["demo", "--language", "shell", "--dir", dir.to_str().unwrap()]).exits(0);
    assert!(done.out.starts_with("Stopped: complete\n"), "{}", done.out);
    done.err_has("are scripts");
    let repo = dir.join("project");
    let at = |args: &[&str]| world.peers(&[&["-C", repo.to_str().unwrap()], args].concat());
    let status = at(&["status"]).exits(0).out;
    assert!(status.contains("complete"), "{status}");
    assert!(at(&["replay", "3", "--diff"]).exits(0).out.contains("median.sh"));
    assert_eq!(at(&["bug-hunt", "summary", "--json"]).exits(0).json("peers.bug-hunt/1")["fixed"], 1);
    at(&["verify", "--pristine"]).exits(0);
    at(&["state", "check"]).exits(0);
    at(&["report"]).exits(0).out_has("BUG-median-even");

    // What the scripts print is read as the output of the tools that they play.
    let info = at(&["info", "--json"]).exits(0).json("peers.info/1");
    assert_eq!(info["doubts"], serde_json::json!([]));
    let json = at(&["status", "--json"]).exits(0).json("peers.status/1");
    let budget = &json["loop"]["value"]["budget"];
    assert_eq!(budget["unknown_usage"], 0, "{budget}");
    let money = budget["rows"].as_array().unwrap().iter().find(|row| row["key"] == "max_usd").unwrap();
    assert!(money["spent"].as_f64().unwrap() > 0.0, "{money}");
    let own = crate::support::program();
    assert!(
        done.out.contains(&format!("{} -C ", own.display())),
        "not on PATH, so by its path: {}",
        done.out
    );

    let ticks = world.records("tick");
    assert!(ticks.iter().all(|tick| tick["exit"]["usage"]["tokens"].is_u64()), "{ticks:?}");
    let outcomes: Vec<_> = ticks.iter().map(|tick| tick["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["handoff"; 6]);
    assert_eq!(ticks[5]["skeptic"], "clean");
    assert_eq!(world.records("proof")[0]["passed"], true);
}

#[test]
fn without_keep_nothing_is_left() {
    let world = World::bare();
    world.peers(&["demo", "--language", "shell", "--no-keep"]).exits(0);
    let left: Vec<_> =
        std::fs::read_dir(world.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
    assert!(std::fs::read_dir(world.path("home/state/peers")).unwrap().next().is_none());
}

#[test]
fn a_directory_that_holds_something_is_refused() {
    let world = World::repo();
    world.peers(&["demo", "--dir", "."]).exits(4).err_has("is not empty");
}

#[test]
fn a_rust_project_is_made_where_cargo_is() {
    let world = World::bare();
    // Without what says where toolchains are there is nothing to build with; they are only read here.
    let named = ["HOME", "RUSTUP_HOME", "CARGO_HOME"].map(|name| Some((name, std::env::var_os(name)?)));
    let toolchains: Vec<_> = named.into_iter().flatten().collect();
    let dir = world.path("demo");
    let cargo =
        world.command("cargo").envs(toolchains.clone()).arg("--version").stderr(Stdio::null()).output();
    assert!(
        cargo.is_ok_and(|done| done.status.success()),
        "what was built by cargo is tested where cargo is"
    );
    let mut command = world.command(crate::support::program());
    command.envs(toolchains).args(["demo", "--dir"]).arg(&dir);
    let done = crate::support::Ended::of(&command.output().unwrap()).exits(0);
    assert!(done.out.starts_with("Stopped: complete\n"), "{}", done.out);
    assert!(dir.join("project/Cargo.toml").exists());
}
