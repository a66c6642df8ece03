//! Turns that weaken tests: the program measures them in a child of its own.

use crate::support::World;

#[test]
fn a_turn_that_takes_an_assertion_out_is_warned_about_and_the_second_one_is_reverted() {
    const STRONG: &str = "def test_f():\n    assert f(1) == 1\n    assert f(2) == 2\n";
    let weak = STRONG.replace("    assert f(2) == 2\n", "");
    let world = World::ready("false");
    world.write("tests/test_f.py", STRONG);
    world.write("tests/test_g.py", &STRONG.replace("f(", "g("));
    world.commit("Tests");
    let turn = |path: &str, text: &str| {
        let write = serde_json::json!({"path": path, "text": text});
        format!("- - write: {write}\n  - write: {{path: ann.txt, append: x}}\n  - handoff: Work\n")
    };
    let (first, second) =
        (turn("tests/test_f.py", &weak), turn("tests/test_g.py", "def test_g():\n    g(1)\n"));
    world.script("ann", &format!("turns:\n{first}{second}"));
    world.peers(&["run", "--max-ticks", "3"]).exits(0);
    let ticks = world.records("tick");
    let said = |tick: usize| serde_json::to_string(&ticks[tick]).unwrap();
    assert!(said(0).contains("weakened tests: 1 fewer assertions in tests/test_f.py"), "{}", said(0));
    assert!(said(2).contains("2 fewer assertions in tests/test_g.py"), "{}", said(2));
    assert_eq!((&ticks[0]["success"], &ticks[2]["corrected"]), (&true.into(), &"revert".into()));
    assert!(world.read("tests/test_g.py").contains("assert g(2) == 2"));
    assert_eq!(world.read("tests/test_f.py"), weak, "the first one stands");
}
