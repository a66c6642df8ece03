//! Commands, run records, acceptance and logs.

use std::fs;
use std::os::unix::fs::symlink;

use peers_model::TickNo;
use peers_model::record::OperatorOp;

use super::{World, at, run};
use crate::commands::{self, Command};
use crate::{StoreError, accept, artifacts, layout, project, runs};

fn drop_command(w: &World, id: &str) {
    let command = Command { v: 1, op: OperatorOp::BudgetReset, by: "op".into(), at: at() };
    commands::drop_command(&mut w.disk(), id, &command).unwrap();
}

/// Nothing blocks, nothing vanishes, and what is sound is taken.
#[test]
fn a_command_that_cannot_be_read_is_moved_aside_and_the_others_are_taken() {
    for kind in ["huge", "hard link", "fifo", "directory", "link", "garbage", "newer"] {
        let w = World::new();
        drop_command(&w, "1");
        drop_command(&w, "3");
        let path = w.store("commands/2.json");
        match kind {
            "huge" => fs::File::create(&path).unwrap().set_len(2 * 1024 * 1024).unwrap(),
            "hard link" => fs::hard_link(w.store("commands/1.json"), &path).unwrap(),
            "fifo" => super::fifo(&path),
            "directory" => fs::create_dir(&path).unwrap(),
            "link" => symlink(w.store("commands/1.json"), &path).unwrap(),
            "newer" => fs::write(&path, "{\"v\": 2, \"op\": \"x\"}").unwrap(),
            _ => fs::write(&path, "{").unwrap(),
        }
        let found = commands::take(&mut w.disk()).unwrap();
        let names: Vec<&str> = found.commands.iter().map(|(name, _)| name.as_str()).collect();
        // A second name makes the first one unreadable as well, until one of the two is gone.
        let due: &[&str] = if kind == "hard link" { &["3.json"] } else { &["1.json", "3.json"] };
        assert_eq!(names, due, "{kind}");
        assert!(found.aside.iter().any(|s| s.contains("commands/2.json.bad")), "{kind}: {:?}", found.aside);
        assert!(w.store("commands/2.json.bad").symlink_metadata().is_ok(), "{kind}");
        assert_eq!(commands::take(&mut w.disk()).unwrap().aside, [""; 0], "{kind}: told once");
    }
}

#[test]
fn a_directory_of_commands_that_is_none_is_refused_by_name() {
    let w = World::new();
    symlink("/tmp", w.store("commands")).unwrap();
    let error = commands::take(&mut w.disk()).unwrap_err();
    assert_eq!(error.disk().map(|d| d.kind), Some(crate::DiskErrorKind::Unsafe));
    assert!(error.to_string().contains("commands"), "{error}");
}

#[test]
fn a_command_of_a_newer_program_forbids_a_start() {
    let w = World::new();
    drop_command(&w, "1");
    commands::refuse_newer(&mut w.disk()).unwrap();
    fs::write(w.store("commands/2.json"), "{\"v\": 2}").unwrap();
    assert!(matches!(commands::refuse_newer(&mut w.disk()), Err(StoreError::Newer { found: 2, .. })));
}

#[test]
fn a_run_record_that_cannot_be_read_is_an_error_for_whoever_decides_by_it() {
    for (text, says) in [
        ("{", "runs/00000000000000bb.json in the trusted store is damaged"),
        ("{\"v\": 2}", "was written by a newer program (version 2)"),
    ] {
        let w = World::new();
        runs::write(&mut w.disk(), &run("00000000000000aa", 0)).unwrap();
        fs::write(w.store("runs/00000000000000bb.json"), text).unwrap();
        let error = runs::all(&mut w.disk()).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
        let (records, bad) = runs::list(&mut w.disk()).unwrap();
        assert_eq!((records.len(), bad), (1, vec!["00000000000000bb.json".to_owned()]));
    }
    let w = World::new();
    runs::write(&mut w.disk(), &run("00000000000000aa", 0)).unwrap();
    fs::copy(w.store("runs/00000000000000aa.json"), w.store("runs/00000000000000cc.json")).unwrap();
    assert!(runs::all(&mut w.disk()).unwrap_err().to_string().contains("under another name"));
    symlink("nowhere", w.store("runs/00000000000000bb.json")).unwrap();
    assert!(runs::all(&mut w.disk()).unwrap_err().to_string().contains("00000000000000bb.json"));
}

#[test]
fn files_of_a_newer_program_are_refused() {
    let w = World::new();
    for name in [layout::store::PROJECT, layout::store::ACCEPTED, layout::store::SNAPSHOT] {
        fs::write(w.store(name), "{\"v\": 2}").unwrap();
    }
    assert!(matches!(project::read(&mut w.disk()), Err(StoreError::Newer { .. })));
    assert!(matches!(accept::read(&mut w.disk()), Err(StoreError::Newer { .. })));
    assert!(matches!(w.open(), Err(error) if error.contains("newer program")));
    let again = accept::write(&mut w.disk(), b"g", b"c", at(), "op", None);
    assert!(matches!(again, Err(StoreError::Newer { .. })), "nor is it written over");
}

#[test]
fn accepting_again_mends_an_acceptance_that_cannot_be_read_and_keeps_the_old_file() {
    let w = World::new();
    let accept = || accept::write(&mut w.disk(), b"goals", b"config", at(), "op", None);
    accept().unwrap();
    fs::write(w.store("accepted.json"), "{").unwrap();
    assert!(accept::sound(&mut w.disk()).unwrap_err().to_string().contains("accepted.json"));
    accept().unwrap();
    accept::sound(&mut w.disk()).unwrap();
    assert_eq!(fs::read_to_string(w.store("accepted.json.bad")).unwrap(), "{");
    fs::remove_file(w.store("accepted.json")).unwrap();
    fs::create_dir(w.store("accepted.json")).unwrap();
    accept().unwrap();
    accept::sound(&mut w.disk()).unwrap();
    assert!(w.store("accepted.json.2.bad").is_dir());
}

#[test]
fn accepted_bytes_that_are_not_what_was_accepted_are_named() {
    let w = World::new();
    let accept = || accept::write(&mut w.disk(), b"goals", b"config", at(), "op", None).unwrap();
    accept();
    assert_eq!(accept::read_bytes(&mut w.disk(), "goals.yaml").unwrap().unwrap(), b"goals");
    fs::write(w.store("accepted/goals.yaml"), "other").unwrap();
    let error = accept::read_bytes(&mut w.disk(), "goals.yaml").unwrap_err().to_string();
    assert!(
        error.contains("accepted/goals.yaml in the trusted store differs from the accepted file"),
        "{error}"
    );
    fs::remove_file(w.store("accepted/goals.yaml")).unwrap();
    let error = accept::sound(&mut w.disk()).unwrap_err().to_string();
    assert!(error.contains("accepted/goals.yaml in the trusted store is missing"), "{error}");
    accept();
    accept::sound(&mut w.disk()).unwrap();
}

#[test]
fn the_oldest_logs_go_until_the_rest_fits_and_the_newest_stay() {
    let w = World::new();
    for group in [layout::peers::LOG_PEERS, layout::peers::LOG_PROMPTS, layout::peers::LOG_GATES] {
        fs::create_dir_all(w.peers(group)).unwrap();
        for tick in 1..=4 {
            let name = artifacts::tick_file(TickNo(tick), "ann", ".log");
            fs::write(w.peers(group).join(name), [b'x'; 10]).unwrap();
        }
    }
    assert_eq!(artifacts::enforce_budget(&mut w.disk(), 120).unwrap(), 0, "it fits");
    assert_eq!(artifacts::enforce_budget(&mut w.disk(), 65).unwrap(), 6);
    for group in [layout::peers::LOG_PEERS, layout::peers::LOG_PROMPTS, layout::peers::LOG_GATES] {
        let mut left: Vec<_> =
            fs::read_dir(w.peers(group)).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["tick-00003-ann.log", "tick-00004-ann.log"], "{group}");
    }
}

#[test]
fn the_text_about_peers_that_are_gone_is_written_once() {
    let w = World::new();
    let state = peers_core::state::State::new();
    crate::projection::write_halted(&mut w.disk(), &state).unwrap();
    assert!(fs::read_to_string(w.peers("HALTED.md")).unwrap().starts_with("# No peer is left"));
    fs::write(w.peers("HALTED.md"), "mine").unwrap();
    crate::projection::write_halted(&mut w.disk(), &state).unwrap();
    assert_eq!(fs::read_to_string(w.peers("HALTED.md")).unwrap(), "mine");
}
