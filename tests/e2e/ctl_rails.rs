//! What the controller goes by, whatever agents write where they can write.

use crate::ctl_fleet::{Fleet, send};
use crate::support::heard;

/// A loop that was killed, whose turn hangs.
fn kill(fleet: &Fleet) {
    let pid = fleet.row("demo")["pid"].as_u64().unwrap();
    send(u32::try_from(pid).unwrap(), "KILL");
    fleet.ctl(&["wait", "--timeout", "2m"]);
    assert_eq!(fleet.row("demo")["state"], "crashed");
}

#[test]
fn caps_are_counted_from_what_was_accepted_and_a_refused_start_sets_none() {
    let fleet = Fleet::hanging();
    fleet.configured("budget:\n  max_runtime_s: 3600\n  max_usd: 10\n");
    fleet.start(&[]);
    heard(&fleet.path("pipe"));
    fleet.write(
        ".peers/config.yaml",
        &fleet.config("budget:\n  max_runtime_s: 9000000\n  max_usd: 90000\n"),
    );
    let done = fleet.ctl(&["budget", "raise", "--runtime", "+1h", "--usd", "+5"]).exits(0);
    assert!(
        done.out.contains("`budget.max_runtime_s` is 2h, `budget.max_usd` is $15.00 until "),
        "{}",
        done.out
    );
    fleet.ctl(&["stop"]).exits(0);
    let said = || fleet.records("operator").len();
    let before = said();
    for args in [&["--max-runtime", "+1h"][..], &["--reset-budget"], &["--max-runtime", "+1h", "--force"]] {
        let done = fleet.ctl(&[&["start"], args].concat()).exits(5);
        assert!(done.err.contains("config.yaml changed since it was accepted"), "{}", done.err);
    }
    // What the loop did not take before it ended is all that was recorded.
    assert_eq!(fleet.records("operator").iter().filter(|r| r["op"] == "budget-set").count(), 1);
    assert!(said() <= before + 1);
    // A cap that is reached at once is not set either.
    fleet.configured("budget:\n  max_runtime_s: 3600\n");
    let before = said();
    fleet.start(&["--max-runtime", "3h"]);
    heard(&fleet.path("pipe"));
    assert_eq!(said(), before + 1);
    fleet.ctl(&["stop"]).exits(0);
    fleet.is_quiet();
}

#[test]
fn of_a_second_crash_somebody_is_told_though_nobody_looked_in_between() {
    let fleet = Fleet::hanging();
    let once = || fleet.ctl(&["watch", "--once", "--no-restart"]).exits(0).out;
    for _ in 0..2 {
        fleet.start(&[]);
        heard(&fleet.path("pipe"));
        kill(&fleet);
        let said = once();
        assert!(said.contains(" act          demo: crashed"), "{said}");
        assert_eq!(once(), "");
    }
}

#[test]
fn what_changed_names_its_project_once() {
    let fleet = Fleet::hanging();
    let pid = fleet.start(&[])["pid"].as_u64().unwrap();
    heard(&fleet.path("pipe"));
    send(u32::try_from(pid).unwrap(), "KILL");
    while fleet.locked() {
        std::thread::yield_now();
    }
    let said = fleet.ctl(&["watch", "--once", "--no-restart"]).exits(0).out;
    assert!(said.contains(" state        demo: running -> crashed (killed): run "), "{said}");
}
