//! What goes wrong around a turn: a service that refuses, copies that cannot be written, no file
//! descriptors left.

use std::process::Command;

use peers_model::record::TickOutcome;

use crate::world::{World, program, sh};

const FIX: &[&str] = &["write: {path: fixed, text: 'yes'}", "handoff: Fix it"];

#[test]
fn row_23_a_genuine_halt_line_ends_the_run_with_everything_recorded() {
    let w = World::new();
    w.play(
        "idle",
        &[&[
            "write: {path: a.py, text: 'a = 1'}",
            "commit: Half the work",
            "emit: {stderr: ERROR usage limit reached}",
            "exit: 1",
        ]],
    );
    w.run(&["--max-ticks=3"]).stopped("peer-unavailable:ann", 13);
    let tick = w.tick(1);
    assert_eq!((tick.outcome, tick.success, tick.commits.len()), (TickOutcome::NeedsOperator, false, 1));
    assert_eq!(w.ticks().len(), 1);
    assert_eq!(w.exit().reason.to_string(), "peer-unavailable:ann");
    assert_eq!(w.git(&["notes", "--ref", "peers-attest", "show", "HEAD"]), "ann");
    assert!(w.get(".peers/last-stop-reason.txt").starts_with("peer-unavailable:ann"));
    w.settled();
}

#[test]
fn row_66_a_pipe_in_the_place_of_a_live_copy_holds_nobody_up() {
    let w = World::new();
    let plant = sh(
        "cd .peers/log/peers && for name in stream.jsonl stderr.log stdout.log; do mkfifo tick-00002-bob.$name; done",
    );
    w.play("idle", &[&[&plant, "write: {path: a.py, text: 'a = 1'}", "handoff"], FIX]);
    w.run(&["--max-ticks=2", "--no-skeptic"]).stopped("complete", 0);
    assert!(w.tick(2).success, "{:?}", w.tick(2));
    w.settled();
}

#[test]
fn too_few_open_files_refuse_the_start_and_enough_do_not() {
    let w = World::new();
    let limited = |files: u32| {
        let mut command = Command::new("/bin/sh");
        command.env_clear().envs(w.env().vars().iter().cloned());
        command.arg("-c").arg(format!("ulimit -n {files}; exec \"$0\" run \"$1\" --max-ticks=2"));
        command.arg(program()).arg(w.repo());
        World::out(command)
    };
    w.play("idle", &[FIX]);
    for files in [8, 16, 63] {
        limited(files).refused(6, "`ulimit -n 1024`");
    }
    assert!(w.records().is_empty());
    limited(64).stopped("complete", 0);
    w.settled();
}
