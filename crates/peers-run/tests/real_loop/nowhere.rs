//! Runs that get nowhere, and gates that are green in the work tree alone, with real processes.

use crate::world::{Ran, World};

const HANDOFF: &str = "handoff: Nothing to add";
const ASKED: &str = "- {id: read, type: soft, reviewer: other, review_interval: 1, prompt: 'Read it.'}\n";

/// Gates `own`, green in the work tree, and what else is asked; each turn is this.
fn idle(command: &str, more: &str, turn: &[&str]) -> (World, Ran) {
    let w = World::new();
    w.config("skeptic: {enabled: false}\n");
    w.put(".gitignore", ".peers/\nbuilt\n");
    w.put("built", "");
    w.commit("Ignore what is built");
    let cmd = format!("{command:?}");
    w.goals(&format!("- {{id: own, type: hard, cmd: {cmd}, pass_when: exit_code == 0}}\n{more}"));
    w.play("repeat", &[turn]);
    let ran = w.run(&["--max-ticks=40"]);
    (w, ran)
}

#[test]
fn row_56_a_loop_whose_proof_stays_red_stops_at_the_sixth_tick() {
    let (w, ran) = idle("test -f built", "", &[HANDOFF]);
    ran.stopped("stuck:idle", 11);
    assert_eq!((w.ticks().len(), w.proofs().len()), (6, 1));
    assert!(w.exit().detail.contains("missing: `own` passes in the work tree and fails in a clean checkout"));
    assert!(w.prompt(4).contains("The run gets nowhere: 3 turns in a row"), "{}", w.prompt(4));
    w.settled();
}

#[test]
fn row_56_a_loop_whose_review_nobody_gives_stops_at_the_sixth_tick() {
    let (w, ran) = idle("true", ASKED, &[HANDOFF]);
    ran.stopped("stuck:idle", 11);
    assert_eq!(w.ticks().len(), 6);
    assert!(w.exit().detail.contains("missing: the review `read` by ann or bob"), "{}", w.exit().detail);
    w.settled();
}

#[test]
fn row_56_a_loop_whose_objection_nobody_answers_stops_at_the_sixth_tick() {
    let no = "review: {goal: read, pass: false, issues: ['no'], handoff: true}";
    let (w, ran) = idle("true", ASKED, &[no]);
    ran.stopped("stuck:idle", 11);
    assert_eq!(w.ticks().len(), 6);
    assert!(w.exit().detail.contains(" objects, and nothing has changed since"), "{}", w.exit().detail);
    w.settled();
}

#[test]
fn a_gate_that_is_green_in_the_work_tree_alone_stops_before_a_turn_is_paid_for() {
    let w = World::new();
    w.put(".gitignore", ".peers/\nnode_modules\n");
    w.put("package.json", "{\"devDependencies\": {\"tool\": \"1\"}}");
    w.put("package-lock.json", "{}");
    w.put("node_modules/tool", "");
    w.commit("A package");
    w.config("skeptic: {enabled: false}\n");
    w.goals("- {id: own, type: hard, cmd: 'test -f node_modules/tool', pass_when: exit_code == 0}\n");
    w.play("repeat", &[&[HANDOFF]]);
    w.run(&["--trial"]).stopped("parked:proof", 11);
    assert!(w.ticks().is_empty());
    let detail = w.exit().detail;
    assert!(detail.starts_with("`own` passes in the work tree and not in a clean checkout of "), "{detail}");
    assert!(detail.contains("`setup: {commands: [{cmd: npm ci}]}`"), "{detail}");
    assert!(w.proofs().iter().all(|proof| !proof.passed), "a trial proves nothing");
    // With what the message asks for it is proved; nothing else is missing, so nothing is tried again.
    w.config("skeptic: {enabled: false}\nsetup: {commands: [{cmd: 'mkdir node_modules && : > node_modules/tool'}]}\n");
    w.run(&["--trial", "--max-ticks=1"]).stopped("complete", 0);
    w.recorded("trial", 1);
    w.settled();
}
