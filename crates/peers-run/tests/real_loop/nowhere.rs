//! Runs that get nowhere, and gates that are green in the work tree alone, with real processes.

use crate::world::{Ran, World};

const HANDOFF: &str = "handoff: Nothing to add";
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
