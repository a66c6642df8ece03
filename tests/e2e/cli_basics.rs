//! The command line itself: help, usage, output.

use crate::support::{Ended, World};

#[test]
fn the_version_is_one_line() {
    let done = World::bare().peers(&["--version"]).exits(0);
    assert_eq!(done.out, format!("peers {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn nothing_at_all_is_a_wrong_use_and_shows_the_commands() {
    let done = World::bare().peers(&[]).exits(2);
    assert!(done.out.is_empty() && done.err.contains("Usage: peers"), "{done:?}");
}

#[test]
fn a_misspelled_command_gets_a_suggestion() {
    World::bare().peers(&["statsu"]).exits(2).err_has("status");
}

#[test]
fn the_target_stands_before_the_subcommand() {
    let world = World::bare();
    world.peers(&["-C", "missing", "status"]).exits(3);
    world.peers(&["status", "-C", "."]).exits(2);
}

#[test]
fn a_target_behind_the_subcommand_is_told_where_it_belongs() {
    let world = World::repo();
    let tip = "`peers -C DIR status`";
    assert!(world.peers(&["status", "-C", "x"]).exits(2).err.contains(tip));
    let failed = world.peers(&["status", "--target=x", "--json"]).exits(2).json("peers.error/1");
    assert!(failed["hint"].as_str().unwrap().contains(tip), "{failed}");
}

#[test]
fn a_repository_that_is_not_set_up_is_told_how() {
    let world = World::repo();
    for command in ["status", "info", "verify", "report"] {
        let done = world.peers(&[command]).exits(3);
        assert!(done.out.is_empty(), "{done:?}");
        assert!(done.err.starts_with("error: "), "{}", done.err);
        done.err_has("hint: run `peers init`");
    }
}

#[test]
fn below_the_top_of_a_repository_the_hint_names_the_top() {
    let world = World::repo();
    world.write("below/file", "");
    let done = world.peers(&["-C", "below", "status"]).exits(3);
    let top = world.at("").canonicalize().unwrap();
    done.err_has(format!("peers -C {}", top.display()).trim_end_matches('/'));
}

#[test]
fn completions_know_the_commands() {
    let world = World::bare();
    for shell in ["bash", "zsh", "fish"] {
        let done = world.peers(&["completions", shell]).exits(0);
        assert!(done.out.contains("bug-hunt") && done.err.is_empty(), "{shell}");
    }
    world.peers(&["completions", "cmd"]).exits(2);
}

#[test]
fn manual_pages_are_written_for_every_command() {
    let world = World::bare();
    assert!(world.peers(&["man"]).exits(0).out.contains(".TH peers 1"));
    world.peers(&["man", "."]).exits(0);
    for page in ["peers.1", "peers-run.1", "peers-goals-accept.1"] {
        assert!(world.read(page).contains(".SH NAME"), "{page}");
    }
    assert!(!world.at("peers-__spawn.1").exists());
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let world = World::bare();
    let mut child = world.spawned(&["completions", "zsh"]);
    drop(child.stdout.take());
    let done = Ended::waited(child).exits(0);
    assert_eq!(done.err, "");
}

#[test]
fn a_failure_of_a_command_that_was_asked_for_json_is_one_object() {
    let world = World::repo();
    for args in [&["status", "--json"][..], &["report", "--json"], &["info", "--json"], &["verify", "--json"]]
    {
        let done = world.peers(args).exits(3);
        let error = done.json("peers.error/1");
        assert_eq!((&error["code"], error["hint"].is_string()), (&3.into(), true), "{error}");
        assert!(done.err.starts_with("error: "), "people are told as well: {}", done.err);
    }
    let usage = world.peers(&["status", "--json", "--nonsense"]).exits(2).json("peers.error/1");
    assert!(usage["message"].as_str().unwrap().contains("--nonsense"), "{usage}");
    assert_eq!(world.peers(&["status"]).exits(3).out, "");
}

#[test]
fn the_hidden_start_of_children_is_reached_before_the_command_line_is_parsed() {
    let done = World::bare().peers(&["__spawn", "--nonsense"]);
    assert!(done.err.starts_with("peers-stub: "), "{done:?}");
    assert!(!World::bare().peers(&["--help"]).out.contains("__spawn"));
}

#[test]
fn examples_of_scripts_are_listed_and_printed() {
    let world = World::bare();
    let list =
        world.peers(&["fake-peer", "--examples", "--json"]).exits(0).json("peers.fake-peer-examples/1");
    for example in list["examples"].as_array().unwrap() {
        let name = example["name"].as_str().unwrap();
        assert!(world.peers(&["fake-peer", "--example", name]).exits(0).out.contains("turns:"), "{name}");
    }
    world.peers(&["fake-peer", "--example", "basik"]).exits(2).err_has("did you mean `basic`?");
}

#[test]
fn an_object_that_is_cut_short_is_told_by_all_who_would_read_it_for_ever() {
    let world = World::ready("true");
    world.cut_head();
    for args in [
        &["run"][..],
        &["status"],
        &["doctor"],
        &["verify"],
        &["check", "bug-ledger"],
        &["codemap", "refresh"],
        &["init", "--upgrade"],
        &["hook", "pre-commit"],
    ] {
        let done = world.peers(args);
        let said = format!("{}{}", done.out, done.err);
        assert!(said.contains("an object that is cut short"), "{args:?}: {said}");
    }
    world.ctl(&["add", "."]).exits(0);
    world.ctl(&["status"]).out_has("an object that is cut short");
    // These are about more than that, and come to an end.
    for args in [&["report"][..], &["dashboard"], &["compare", "repo@1", "repo"]] {
        assert!(world.ctl(args).code.is_some(), "{args:?}");
    }
}
