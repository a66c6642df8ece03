//! What a crashed loop left, and timers.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use peers_core::machine::Event;
use peers_model::record::PeerSpawned;
use peers_model::{RunId, Timestamp};
use peers_run::ports::Procs;
use peers_sys::identity::{Pid, ProcIdentity, is_alive};
use peers_sys::signal::{Signal, signal_verified};

use crate::stage::{Stage, TICK, shell_peer};

/// A process of a run whose parent has gone: nobody of ours tracks it. Its script writes its pid.
fn orphan(run: &RunId, script: &str) -> ProcIdentity {
    let mut parent = Command::new("/bin/sh")
        .args(["-c", "setsid /bin/sh -c \"$1\" &", "sh", script])
        .env("PEERS_RUN_ID", run.as_str())
        .env("PEERS_ITERATION", TICK.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    // A sweep of another test may take its exit, which says nothing anyway.
    drop(parent.wait());
    ProcIdentity::of(Pid::new(line.trim().parse().unwrap()).unwrap()).unwrap()
}

fn reap(stage: &Stage, run: Option<&RunId>, spawned: Option<&PeerSpawned>) -> Vec<u32> {
    stage.with(stage.book(&shell_peer("true")), async |mut procs, _arriving| {
        procs.reap(run, Some(TICK), spawned)
    })
}

#[test]
fn a_leftover_is_found_by_its_marker_alone() {
    let stage = Stage::new();
    let identity = orphan(&stage.run, "echo $$; exec tail -f /dev/null >/dev/null");
    assert_eq!(reap(&stage, Some(&stage.run), None), Vec::<u32>::new());
    assert!(!is_alive(&identity));
}

#[test]
fn a_process_that_only_has_the_recorded_number_is_left_alone() {
    let stage = Stage::new();
    let identity = orphan(&stage.run, "echo $$; exec tail -f /dev/null >/dev/null");
    let boot_id = identity.boot_id.clone().unwrap().to_string();
    let pid = u32::try_from(identity.pid.get()).unwrap();
    let start_time = identity.start_time.unwrap();
    let other = RunId::new("00000000deadbeef").unwrap();
    for spawned in [
        PeerSpawned { tick: TICK, pid, start_time: start_time - 1, boot_id: boot_id.clone() },
        PeerSpawned { tick: TICK, pid, start_time, boot_id: "another boot".into() },
    ] {
        assert_eq!(reap(&stage, Some(&other), Some(&spawned)), Vec::<u32>::new());
        assert!(is_alive(&identity), "{spawned:?}");
    }
    signal_verified(&identity, Signal::Kill).unwrap();
}

#[test]
fn a_timer_reports_once_and_a_new_one_replaces_it() {
    let stage = Stage::new();
    stage.with(stage.book(&shell_peer("true")), async |mut procs, mut arriving| {
        let now = peers_sys::clock::now();
        procs.set_timer(Timestamp::from_millis(now.as_millis() + 3_600_000));
        procs.set_timer(now);
        assert_eq!(arriving.recv().await, Some(Event::Timer));
        assert!(arriving.try_recv().is_err());
    });
}
