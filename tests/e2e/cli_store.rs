//! `peers store` and `peers state`.

use std::fs;

use crate::support::World;

#[test]
fn a_moved_repository_gets_its_store_back() {
    let world = World::ready("true");
    world.peers(&["tick"]).exits(0);
    let (old, new) = (world.at(""), world.path("moved"));
    fs::rename(&old, &new).unwrap();
    fs::create_dir(&old).unwrap();
    let at = |args: &[&str]| world.peers(&[&["-C", new.to_str().unwrap()], args].concat());
    at(&["status"]).exits(5).err_has(" store attach ");
    let done =
        at(&["store", "attach", old.to_str().unwrap(), "--json"]).exits(0).json("peers.store-attach/1");
    assert!(world.store().ends_with(done["project"].as_str().unwrap()));
    assert_eq!(world.records("operator").pop().unwrap()["op"], "store-attached");
    at(&["run", "--max-ticks", "1"]).exits(0);
    assert_eq!(world.records("tick").len(), 2);
}

#[test]
fn a_copy_cannot_take_the_store_of_the_original() {
    let world = World::ready("true");
    let copy = world.path("copy");
    let status = world.command("cp").args(["-r", "."]).arg(&copy).status().unwrap();
    assert!(status.success());
    let original = world.at("");
    let done =
        world.peers(&["-C", copy.to_str().unwrap(), "store", "attach", original.to_str().unwrap()]).exits(5);
    done.err_has("still is at");
    world.peers(&["info"]).exits(0);
}

#[test]
fn an_unknown_old_path_is_invalid() {
    let world = World::repo();
    world.peers(&["store", "attach", "/nowhere/at/all"]).exits(3);
    let world = World::ready("true");
    world.peers(&["store", "attach", "/nowhere/at/all"]).exits(3);
}

#[test]
fn the_snapshot_is_checked_against_the_journal_and_rebuilt() {
    let world = World::ready("true");
    world.peers(&["tick"]).exits(0);
    world.peers(&["state", "check"]).exits(0);
    let snapshot = world.store().join("snapshot.json");
    let text = fs::read_to_string(&snapshot).unwrap();
    let wrong = text.replacen("\"ticks\":1", "\"ticks\":9", 1);
    assert_ne!(text, wrong);
    fs::write(&snapshot, wrong).unwrap();
    fs::write(world.at(".peers/state.json"), "{}").unwrap();
    let check = world.peers(&["state", "check", "--json"]).exits(1).json("peers.state-check/1");
    assert_eq!(check["sound"], false);
    world.peers(&["state", "rebuild"]).exits(0);
    world.peers(&["state", "check"]).exits(0);
    assert!(world.read(".peers/state.json").contains("\"iteration\": 1"));
}

#[test]
fn a_damaged_journal_is_refused_and_not_mended() {
    let world = World::ready("true");
    world.peers(&["tick"]).exits(0);
    let path = world.store().join("journal/000001.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("tester", "nobody", 1)).unwrap();
    world.peers(&["state", "check"]).exits(3);
    world.peers(&["status"]).exits(3).out_has("the journal is damaged: record 2 does not continue");
    world.peers(&["state", "rebuild"]).exits(3);
    world.peers(&["run"]).exits(3);
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), text.lines().count());
}
