//! What the controller shows of loops: the same next step wherever it is asked for.

use serde_json::Value;

use crate::ctl_fleet::Fleet;
use crate::support::World;

/// A project whose gate stays red, and says why.
fn stuck() -> Fleet {
    let world = World::ready("echo it is broken; false");
    for peer in ["ann", "ben"] {
        let work = format!("- write: {{path: {peer}.txt, append: \"{{{{turn}}}}\\n\"}}");
        world.script(peer, &format!("after: repeat\nturns:\n- - say: I work\n  {work}\n  - handoff: Work\n"));
    }
    let fleet = Fleet::of(world);
    fleet.configured("goals: {stuck_halt_gates: [real], stuck_halt_after: 2}\n");
    fleet.ctl(&["start"]).exits(0);
    fleet.ctl(&["wait", "--timeout", "2m"]).exits(11);
    fleet
}

#[test]
fn every_view_of_a_loop_has_the_same_next_step_and_it_leads_on() {
    let fleet = stuck();
    let data = fleet.data("peers-ctl.dashboard/1", &["dashboard"], 0);
    let top = &data["projects"][0]["attention"];
    let (why, action) = (top["why"].as_str().unwrap(), top["action"].as_str().unwrap());
    assert!(why.starts_with("stuck:real: `echo it is broken; false`: it is broken"), "{why}");
    let (read, start) = action.split_once(", then ").unwrap();
    assert_eq!(start, "peers-ctl start demo");
    let log = read.strip_prefix("less ").unwrap();
    assert!(std::fs::read_to_string(log).unwrap().contains("it is broken"), "{log}");
    let step = format!("`{read}`, then `{start}`");
    let said = |args: &[&str]| {
        let done = fleet.ctl(args).exits(0);
        done.out + &done.err
    };
    assert!(said(&["list", "--wide"]).contains(action));
    assert!(said(&["dashboard"]).contains(action));
    assert!(said(&["status"]).contains(&format!("\nnext step: {step}\n")));
    assert!(said(&["report", "-o", "-"]).contains(&format!("Next step: {step}\n")));
    let logs = said(&["logs"]);
    assert!(logs.contains(action) && !logs.contains("hint:"), "{logs}");
    let status = fleet.data("peers-ctl.status/1", &["status"], 0);
    assert_eq!(
        (&status[0]["status"]["attention"]["action"], &status[0]["status"]["next_step"]),
        (&Value::from(action), &Value::from(step))
    );
}

#[test]
fn events_tell_changes_and_not_how_things_stand() {
    let fleet = stuck();
    assert!(!fleet.ctl(&["events"]).exits(0).out.contains(" attention "));
}

#[test]
fn files_that_lead_elsewhere_need_somebody_before_anything_ran() {
    let fleet = Fleet::new();
    let goals = fleet.at(".peers/goals.yaml");
    std::fs::remove_file(&goals).unwrap();
    let pipe = fleet.fifo("pipe");
    std::fs::rename(pipe, &goals).unwrap();
    let data = fleet.data("peers-ctl.dashboard/1", &["dashboard"], 0);
    let top = &data["projects"][0]["attention"];
    assert_eq!((&top["level"], &top["code"]), (&"act".into(), &"unreadable-files".into()), "{top}");
    assert!(fleet.ctl(&["status"]).exits(0).out.contains(".peers/goals.yaml"));
}

#[test]
fn the_doctor_finds_nothing_wrong_with_a_project_that_can_run() {
    let fleet = Fleet::new();
    let done = fleet.ctl(&["doctor", "demo"]).exits(0);
    assert!(done.out.contains("\n0 errors, "), "{}", done.out);
    // Without a name it is the only one; each peer is asked through a child of the controller's own.
    let done = fleet.ctl(&["doctor", "--live"]).exits(0);
    assert!(done.out.contains("peer ann") && done.out.matches("it answered in").count() == 2, "{}", done.out);
}

#[test]
fn what_was_asked_for_and_is_not_there_is_an_error() {
    let fleet = Fleet::new();
    let done = fleet.ctl(&["list", "demo", "other*"]).exits(3);
    assert!(done.err.contains("no project fits `other*`"), "{}", done.err);
    fleet.ctl(&["list", "other*"]).exits(1);
    fleet.ctl(&["dashboard", "--project", "zz"]).exits(3);
    fleet.ctl(&["compare", "demo@zzz"]).exits(3);
    fleet.ctl(&["compare", "demo"]).exits(2);
    let none = World::bare();
    let done = none.ctl(&["status"]).exits(1);
    assert!(done.err.contains("hint: `peers-ctl new PATH`"), "{}", done.err);
    let done = none.ctl(&["--json", "list", "--label", "{\n1\n}"]).exits(2);
    let failed: Value = serde_json::from_str(&done.out).unwrap();
    let said = failed["error"]["message"].as_str().unwrap();
    assert!(said.contains("{ 1 }") && said.contains("lower-case letter"), "{said}");
}

#[test]
fn a_peek_at_a_loop_that_does_not_run_comes_to_an_end() {
    let fleet = Fleet::hanging();
    fleet.ctl(&["start"]).exits(0);
    crate::support::heard(&fleet.path("pipe"));
    let run = fleet.row("demo");
    let pid = run["pid"].as_u64().unwrap();
    fleet.ctl(&["peek", "--no-follow"]).exits(0);
    let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    assert!(killed.success());
    fleet.ctl(&["wait", "--timeout", "1m"]);
    // Without --no-follow too.
    let done = fleet.ctl(&["peek"]).exits(0);
    assert!(done.err.contains("was cut off when its run died"), "{}", done.err);
    assert!(done.err.contains("no loop of demo runs, so nothing follows"), "{}", done.err);
}

#[test]
fn to_go_back_to_a_copy_of_the_registry_says_what_that_changes() {
    let fleet = Fleet::new();
    fleet.another("other");
    fleet.ctl(&["remove", "other"]).exits(0);
    // Copy 1 knows `other`, copy 2 does not know it yet.
    let done = fleet.ctl(&["registry", "restore", "1"]).exits(5);
    assert!(done.err.contains("comes back: other"), "{}", done.err);
    assert!(done.err.contains("hint: `peers-ctl registry restore 1 --yes` does it"), "{}", done.err);
    let done = fleet.ctl(&["registry", "restore", "2", "--yes"]).exits(0);
    assert!(done.err.contains("has logs, and is in no registry any more: other"), "{}", done.err);
    assert!(
        done.out.starts_with("what was copy 2, of ") && done.out.contains("is kept as copy 1"),
        "{}",
        done.out
    );
    fleet.ctl(&["registry", "restore", "9", "--yes"]).exits(1);
}
