//! The whole loop on a real disk, with real git, real processes and scripted peers.

mod world;

use world::World;

#[test]
fn two_scripted_peers_drive_a_red_test_to_complete() {
    let w = World::new();
    w.goals("- {id: tests, type: hard, cmd: 'test -f fixed', pass_when: exit_code == 0}\n");
    w.script(
        "as: claude\ncount: ticks\nafter: repeat\nturns:\n- - write: {path: fixed, text: yes}\n  - handoff: Fix it\n- - when:\n      prompt: 'Skeptic: clean'\n      steps: [{skeptic: clean}]\n      else: [{handoff: Nothing to add}]\n",
    );
    let run = w.run(&["--max-ticks=8"]);
    assert_eq!(run.last_line(), "Stopped: complete", "{run:?}");
    assert_eq!(run.code, 0);
    w.verify_journal();
    assert!(w.git(&["notes", "--ref", "peers-attest", "list"]).lines().count() >= 2);
}
