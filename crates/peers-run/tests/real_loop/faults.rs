//! What goes wrong around a turn: a service that refuses, copies that cannot be written, no file
//! descriptors left.

use peers_model::record::TickOutcome;

use crate::world::{FIX, World, program, sh};

#[test]
fn row_23_a_genuine_halt_line_ends_the_run_with_everything_recorded() {
    let w = World::new();
    w.play(
        "idle",
        &[&[
            "write: {path: a.py, text: 'a = 1'}",
            "commit: Half the work",
            "emit: {stderr: ERROR invalid API key}",
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
fn row_66_what_cannot_be_written_in_the_place_of_a_live_copy_holds_nobody_up() {
    for make in ["mkfifo", "mkdir"] {
        let w = World::new();
        let plant = sh(&format!(
            "cd .peers/log/peers && for name in stream.jsonl stderr.log stdout.log; do {make} tick-00002-bob.$name; done"
        ));
        w.play("idle", &[&[&plant, "write: {path: a.py, text: 'a = 1'}", "handoff"], FIX]);
        w.run(&["--max-ticks=2", "--no-skeptic"]).stopped("complete", 0);
        assert!(w.tick(2).success, "{make}: {:?}", w.tick(2));
        w.settled();
    }
}

#[test]
fn too_few_open_files_refuse_the_start_and_enough_do_not() {
    let w = World::new();
    let limited = |files: u32| {
        let mut command = w.bare("/bin/sh");
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

#[test]
fn descriptors_that_run_out_in_a_turn_end_the_run_and_the_next_one_takes_its_work() {
    // With the least nothing opens; the others run out at one place or another of what follows the turn.
    for files in std::iter::once(0).chain(28..36) {
        let w = World::new();
        let (here, go) = (w.fifo("here"), w.fifo("go"));
        w.play("idle", &[&[&here.tell(), &go.wait(), FIX[0], FIX[1]]]);
        let live = w.start(&["--max-ticks=1", "--no-skeptic"]);
        here.told();
        live.may_open(files);
        go.go();
        let ran = live.end();
        assert!(ran.code == 0 || ran.last_line().starts_with("Stopped: error:"), "{files}: {ran:#?}");
        assert!(files > 0 || ran.stdout.contains("journal"), "{ran:#?}");
        w.dead();
        w.play("idle", &[]);
        w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("complete", 0);
        let tick = w.tick(1);
        assert!(tick.success && tick.commits.len() == 1, "{files}: {tick:?}");
        w.settled();
    }
}
