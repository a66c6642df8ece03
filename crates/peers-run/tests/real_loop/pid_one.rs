//! The loop as the first process of a PID namespace, as in a container.

use std::process::Command;

use peers_model::record::TickOutcome;

use crate::world::{World, program, sh};

/// `unshare` with a PID namespace, where this machine lets us have one.
fn apart(w: &World) -> Option<Command> {
    let flags: &[&str] = &["--pid", "--fork", "--mount-proc"];
    for more in [&[][..], &["--user", "--map-root-user"]] {
        let mut probe = w.bare("unshare");
        let works = probe.args(flags).args(more).arg("true").output().is_ok_and(|out| out.status.success());
        if works {
            let mut command = w.bare("unshare");
            command.args(flags).args(more);
            return Some(command);
        }
    }
    None
}

#[test]
fn row_36_as_pid_one_it_reaps_what_is_orphaned_and_knows_each_exit_code() {
    let w = World::new();
    let Some(mut command) = apart(&w) else {
        // What cannot be had here is had in a container and in the continuous integration.
        eprintln!("no PID namespace can be made here: nothing was tested");
        return;
    };
    // Helpers whose parents are gone end one after the other; the first process gets them all.
    let orphans = sh("for i in 1 2 3 4 5 6 7 8 9 10; do (setsid sh -c 'exit 7' &) ; done");
    // They are gone before the turn is: looked for until so, for as long as the turn may be silent.
    let none = sh("while cat /proc/[0-9]*/stat 2>/dev/null | grep -q ') Z 1 '; do sleep 0.2; done");
    let first = sh("test $(readlink /proc/self) -gt 1 && test -d /proc/1 && ! test -d /proc/4000000");
    let good: &[&str] = &[&first, &orphans, &none, "handoff: Work"];
    let bad: &[&str] = &[&orphans, &none, "exit: 3"];
    w.play("idle", &[good, bad, good, bad]);
    w.config("health: {idle_timeout_s: 30}\nbudget: {max_consecutive_failures: null}\ngoals: {stuck_halt_after: 0}\nmax_retries: 0\nrecovery_interval: 1\n");
    command.arg(program()).arg("run").arg(w.repo()).arg("--max-ticks=4");
    World::out(command).stopped("max_ticks", 0);
    for tick in w.ticks() {
        let fine = tick.iteration.0 % 2 == 1;
        let (outcome, code) = if fine { (TickOutcome::Handoff, 0) } else { (TickOutcome::PeerFailed, 3) };
        assert_eq!((tick.outcome, tick.exit.code), (outcome, Some(code)), "{tick:?}");
        assert!(tick.exit.survivors.is_empty(), "{tick:?}");
    }
    w.settled();
}
