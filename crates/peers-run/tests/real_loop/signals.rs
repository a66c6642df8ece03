//! Signals to the loop while a peer runs.

use peers_model::record::TickOutcome;
use peers_sys::signal::Signal;

use crate::world::{World, sh};

/// A peer that commits, leaves a helper in a session of its own and hangs; then the signal comes.
fn interrupted(signal: Signal, code: i32, number: i32, stubborn: bool) {
    let w = World::new();
    let here = w.fifo("here");
    let tell = here.tell();
    let mut steps =
        vec!["write: {path: a.py, text: 'a = 1'}", "commit: Half the work", "fork: {what: setsid}", &tell];
    if stubborn {
        steps.insert(0, "ignore_term");
    }
    steps.push("hang");
    w.play("idle", &[&steps]);
    let live = w.start(&[]);
    here.told();
    w.recorded("peer-spawned", 1);
    live.signal(signal);
    live.end().stopped("interrupted", code);
    let state = w.settled();
    let tick = w.tick(1);
    assert_eq!((tick.outcome, tick.success, tick.commits.len()), (TickOutcome::Interrupted, false, 1));
    assert_eq!((w.exit().signal, w.exit().ticks_in_run), (Some(number), 1));
    let run = w.runs().pop().unwrap();
    assert_eq!((run.exit_code.map(i32::from), run.signal), (Some(code), Some(number)));
    assert!(w.get(".peers/last-stop-reason.txt").starts_with("interrupted "));
    // It says nothing about the peer, and the loop goes on where it was.
    assert_eq!(state.spent.consecutive_failures, 0);
    w.play("idle", &[&[], &["write: {path: fixed, text: 'yes'}", "handoff"]]);
    w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("complete", 0);
    assert_eq!(w.tick(2).peer.as_str(), "ann", "the turn was not used up");
    w.settled();
}

#[test]
fn row_37_sigterm_ends_the_peers_tree_and_leaves_a_record() {
    interrupted(Signal::Term, 143, 15, false);
}

#[test]
fn row_37_sighup_ends_even_a_peer_that_ignores_polite_signals() {
    interrupted(Signal::Hup, 129, 1, true);
}

#[test]
fn row_37_a_second_signal_ends_a_stubborn_peer_at_once_and_the_first_names_the_exit() {
    let w = World::new();
    let here = w.fifo("here");
    w.play("idle", &[&["ignore_term", "fork: {what: daemon}", &here.tell(), "hang: spin"]]);
    let live = w.start(&[]);
    here.told();
    w.recorded("peer-spawned", 1);
    live.signal(Signal::Int);
    live.signal(Signal::Term);
    let code = live.end().code;
    // Two signals of different numbers may arrive in either order.
    assert!(code == 130 || code == 143, "{code}");
    assert_eq!(w.exit().signal, Some(code - 128));
    w.settled();
}

#[test]
fn row_37_sigusr1_lets_the_tick_end() {
    let w = World::new();
    let (here, go) = (w.fifo("here"), w.fifo("go"));
    w.play("repeat", &[&[&here.tell(), &go.wait(), "handoff: Nothing to add"]]);
    let live = w.start(&[]);
    here.told();
    live.signal(Signal::Usr1);
    go.go();
    live.end().stopped("drained", 0);
    assert_eq!(w.ticks().len(), 1);
    assert!(w.tick(1).success);
    w.settled();
}

#[test]
fn row_37_a_signal_while_a_gate_runs_ends_the_gate() {
    let w = World::new();
    let here = w.fifo("here");
    w.gate(&format!("echo here > {}; exec tail -f /dev/null", w.path("here").display()));
    let live = w.start(&[]);
    here.told();
    live.signal(Signal::Term);
    live.end().stopped("interrupted", 143);
    assert!(w.ticks().is_empty());
    assert_eq!(w.exit().signal, Some(15));
    w.settled();
}

#[test]
fn row_34_what_a_peer_leaves_behind_is_dead_before_its_turn_is_judged() {
    let w = World::new();
    let writer = |what: &str, clean: bool| {
        let task = format!("echo $$ >> {}; while :; do echo x >> late.py; done", w.path("pids").display());
        format!("fork: {{what: {what}, clean_env: {clean}, shell: {}}}", serde_json::Value::from(task))
    };
    let kinds = ["holds-pipe", "setsid", "daemon"];
    let writers: Vec<String> =
        kinds.iter().flat_map(|kind| [writer(kind, false), writer(kind, true)]).collect();
    let mut steps: Vec<&str> = writers.iter().map(String::as_str).collect();
    let settled = sh(&format!("until [ \"$(wc -l < {0})\" = 6 ]; do :; done", w.path("pids").display()));
    steps.extend([&*settled, "write: {path: fixed, text: 'yes'}", "handoff: {files: [fixed]}"]);
    w.play("idle", &[&steps]);
    w.run(&["--max-ticks=1", "--no-skeptic"]).stopped("max_ticks", 0);
    let tick = w.tick(1);
    assert!(tick.success && tick.dirty && tick.exit.survivors.is_empty(), "{tick:?}");
    w.settled();
    for pid in w.noted("pids").lines() {
        let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(!command.contains("late.py"), "process {pid} lives");
    }
}
