//! `bug-ledger` and `bug-hunt`.

use super::{World, no_store};
use crate::{Verdict, bug_hunt, run};

fn report(id: &str, severity: &str) -> String {
    format!(
        "Report {id}\n\n## Bug-Report\n{{\"id\":\"{id}\",\"severity\":\"{severity}\",\"title\":\"off by one\",\
         \"location\":\"src/a.rs:7\"}}\n\nBug-Report: {id}\n"
    )
}

fn resolve(id: &str, status: &str) -> String {
    format!(
        "Resolve {id}\n\n## Bug-Resolution\n{{\"resolves\":\"{id}\",\"status\":\"{status}\",\"note\":\"done\"}}\n\nBug-Resolves: {id}\n"
    )
}

fn verdict(world: &World) -> Verdict {
    world.check("bug-ledger").report.verdict
}

#[test]
fn row_9_an_open_med_fails_and_a_low_does_not() {
    let mut world = World::running();
    world.turn("claude", &report("B1", "low"));
    assert_eq!(verdict(&world), Verdict::Pass);
    world.turn("codex", &report("B2", "med"));
    let outcome = world.check("bug-ledger");
    assert_eq!(outcome.exit_code(), 1);
    let text = outcome.text(50);
    assert!(text.starts_with("bug-ledger: FAIL (1 bug of severity med or worse is open)\n  src/a.rs:7: med: B2: off by one (unresolved; reported by codex in "), "{text}");
    assert_eq!(world.check_with("bug-ledger", &["--min-severity", "high"]).exit_code(), 0);
    assert_eq!(world.check_with("bug-ledger", &["--min-severity=info"]).report.findings.len(), 2);
}

#[test]
fn row_9_a_med_that_is_fixed_with_a_change_is_closed() {
    let mut world = World::running();
    world.turn("claude", &report("B1", "med"));
    world.turn_with("codex", &resolve("B1", "fixed"), &[("src/a.rs", "fixed\n")]);
    assert_eq!(verdict(&world), Verdict::Pass);
}

#[test]
fn row_12_a_history_that_cannot_be_read_is_no_answer() {
    let mut world = World::running();
    let report = world.turn("claude", &report("B1", "low"));
    world.turn("codex", "more work");
    assert_eq!(verdict(&world), Verdict::Pass);
    // The object of a commit between the base and HEAD is gone, or is something else.
    let (dir, name) = report.as_str().split_at(2);
    let object = world.work.join(".git/objects").join(dir).join(name);
    let kept = std::fs::read(&object).unwrap();
    std::fs::remove_file(&object).unwrap();
    assert_eq!(world.check("bug-ledger").exit_code(), 3, "gone");
    std::fs::write(&object, "nothing").unwrap();
    assert_eq!(world.check("bug-ledger").exit_code(), 3, "damaged");
    std::fs::remove_file(&object).unwrap();
    std::fs::write(&object, kept).unwrap();
    assert_eq!(verdict(&world), Verdict::Pass);
}

#[test]
fn a_high_fix_closes_when_another_peer_has_verified_it() {
    let mut world = World::running();
    world.turn("claude", &report("B1", "high"));
    world.turn_with("codex", &resolve("B1", "fixed"), &[("src/a.rs", "fixed\n")]);
    assert_eq!(verdict(&world), Verdict::Fail);
    world.turn("codex", "v\n\nBug-Verified: B1\n");
    assert_eq!(verdict(&world), Verdict::Fail, "not by who fixed it");
    world.turn("claude", "v\n\nBug-Verified: B1\n");
    assert_eq!(verdict(&world), Verdict::Pass);
}

#[test]
fn a_turn_that_ran_outside_can_report_a_bug_and_speak_for_no_fix() {
    let mut world = World::running();
    world.begin_tick("claude");
    let report = world.commit(&report("B1", "high"), &[]);
    world.end_tick("claude", vec![report], |tick| tick.outside = true);
    assert_eq!(verdict(&world), Verdict::Fail);
    world.turn_with("codex", &resolve("B1", "fixed"), &[("src/a.rs", "fixed\n")]);
    let verified = "v\n\nBug-Verified: B1\n";
    world.begin_tick("claude");
    let claimed = world.commit(verified, &[]);
    world.end_tick("claude", vec![claimed], |tick| tick.outside = true);
    assert_eq!(verdict(&world), Verdict::Error, "who verified it is only claimed");
    world.turn("claude", verified);
    assert_eq!(verdict(&world), Verdict::Pass);
}

#[test]
fn a_high_deferral_counts_once_the_operator_agrees() {
    let mut world = World::running();
    world.turn("claude", &report("B1", "high"));
    let reason = "this needs a new release of the parser that comes next month";
    let defer =
        format!("d\n\n## Bug-Defer\n{{\"defers\":\"B1\",\"reason\":\"{reason}\"}}\n\nBug-Defer: B1\n");
    world.turn("codex", &defer);
    assert_eq!(verdict(&world), Verdict::Fail);
    world.ack("B1");
    assert_eq!(verdict(&world), Verdict::Pass);
}

#[test]
fn without_a_store_what_depends_on_authors_is_no_answer() {
    let mut world = World::running();
    world.turn("claude", &report("B1", "high"));
    world.turn_with("codex", &resolve("B1", "fixed"), &[("src/a.rs", "fixed\n")]);
    world.turn("claude", "v\n\nBug-Verified: B1\n");
    let cx = no_store(&world).unwrap();
    let outcome = run("bug-ledger", &cx, &[]).unwrap();
    assert_eq!(outcome.exit_code(), 3, "{}", outcome.text(50));
    assert!(outcome.text(50).contains("hint: there is no trusted store"), "{}", outcome.text(50));
}

#[test]
fn without_a_store_what_needs_no_author_is_judged() {
    let mut world = World::running();
    world.turn("claude", &report("B1", "med"));
    let judged = |world: &World| run("bug-ledger", &no_store(world).unwrap(), &[]).unwrap().exit_code();
    assert_eq!(judged(&world), 1);
    world.turn_with("codex", &resolve("B1", "fixed"), &[("src/a.rs", "fixed\n")]);
    assert_eq!(judged(&world), 0);
}

#[test]
fn reports_from_before_the_base_do_not_count() {
    let mut world = World::new();
    let base = world.commit(&report("B1", "crit"), &[]);
    world.start_run(Vec::new());
    assert_eq!(verdict(&world), Verdict::Fail);
    let mut asked = world.asked();
    asked.base = Some(base.as_str());
    let cx = crate::CheckCx::open(asked, Some(&mut world.disk())).unwrap();
    assert_eq!(run("bug-ledger", &cx, &[]).unwrap().exit_code(), 0);
}

#[test]
fn a_pristine_checkout_and_the_control_directory_give_the_same_answer() {
    let mut world = World::running();
    world.turn("claude", &report("B1", "med"));
    let control = world.control();
    let dir = super::pristine(&world, &control);
    let live = world.check("bug-ledger");
    for control in [None, Some(control)] {
        let asked = crate::Asked { repo: &dir, control, head: None, base: None };
        let cx = crate::CheckCx::open(asked, Some(&mut world.disk())).unwrap();
        let there = run("bug-ledger", &cx, &[]).unwrap();
        assert_eq!(there.report, live.report);
        assert_eq!(there.inputs_digest, live.inputs_digest);
    }
}

#[test]
fn the_gate_of_bug_hunt_is_the_check() {
    let mut world = World::running();
    world.turn("claude", &report("B1", "crit"));
    let (check, gate) = (world.check("bug-ledger"), bug_hunt::gate(&world.cx()));
    assert_eq!(check.report, gate.report);
    assert_eq!(gate.exit_code(), 1);
    assert!(gate.text(50).starts_with("bug-hunt gate: FAIL ("));
}

#[test]
fn a_fix_wants_a_reproducer_that_is_older() {
    let mut world = World::running();
    world.turn("claude", &report("B1", "med"));
    world.turn_with("codex", &resolve("B1", "fixed"), &[("src/a.rs", "fixed\n")]);
    let red = bug_hunt::gate_tdd(&world.cx());
    assert_eq!(red.exit_code(), 1);
    assert!(
        red.text(50).contains("not-reproduced: B1: no commit reproduces it (fixed in "),
        "{}",
        red.text(50)
    );

    let mut world = World::running();
    world.turn("claude", &report("B1", "med"));
    world.turn_with("claude", "t\n\nBug-Reproduce: B1\n", &[("tests/b1.rs", "fails\n")]);
    world.turn_with("codex", &resolve("B1", "fixed"), &[("src/a.rs", "fixed\n")]);
    assert_eq!(bug_hunt::gate_tdd(&world.cx()).exit_code(), 0);
}

#[test]
fn the_summary_has_a_text_and_a_json_form_without_steering_bytes() {
    let mut world = World::running();
    let hostile = "\\u001b]0;x\\u0007 \\u202e\\u009b31m";
    world.turn("claude", &report("B1", "med").replace("off by one", hostile));
    let summary = bug_hunt::summary(&world.cx()).unwrap();
    let text = bug_hunt::summary_text(&summary);
    let json = bug_hunt::summary_json(&summary).unwrap();
    assert!(
        text.starts_with("bug-hunt: 1 blocking open (crit=0 high=0 med=1 low=0 info=0); 1 total reported"),
        "{text}"
    );
    for out in [&text, &json] {
        assert!(
            out.chars().all(|c| c == '\n' || !(c.is_control() || peers_sys::term::invisible(c))),
            "{out:?}"
        );
    }
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["reports"][0]["title"], "\u{1b}]0;x\u{7} \u{202e}\u{9b}31m", "nothing is lost");
    assert_eq!(value["schema_version"], 1);
}

#[test]
fn a_glob_of_the_operator_makes_a_reproducer_of_a_file() {
    let mut world = World::running();
    world.turn("claude", &report("B1", "med"));
    world.turn_with("claude", "t\n\nBug-Reproduce: B1\n", &[("checks/b1.txt", "fails\n")]);
    world.turn_with("codex", &resolve("B1", "fixed"), &[("src/a.rs", "fixed\n")]);
    assert_eq!(bug_hunt::gate_tdd(&world.cx()).exit_code(), 1);
    let accept = |globs: &str| {
        let config = format!(
            "peers: [{{name: a, argv: [x]}}, {{name: b, argv: [y]}}]\nbug_hunt: {{test_globs: [{globs}]}}\n"
        );
        let at = peers_model::Timestamp::default();
        peers_store::accept::write(&mut world.disk(), b"", config.as_bytes(), at, "me", None).unwrap();
        bug_hunt::gate_tdd(&world.cx()).exit_code()
    };
    assert_eq!(accept("'src/*.py'"), 1);
    assert_eq!(accept("'checks/**'"), 0);
}
