//! `peers check` and `peers bug-hunt`.

use crate::support::{World, goals};

const REPORT: &str = "Report a bug\n\n## Bug-Report\n{\"id\": \"BUG-1\", \"severity\": \"high\", \"title\": \"It breaks\"}\n\nBug-Report: BUG-1\nPeer: ann\n";

#[test]
fn a_check_passes_fails_and_cannot_measure_with_three_codes() {
    let world = World::ready("true");
    world.peers(&["check", "bug-ledger"]).exits(0);
    world.git(&["commit", "-q", "--allow-empty", "-m", REPORT]);
    let done = world.peers(&["check", "bug-ledger"]).exits(1);
    assert!(done.out.starts_with("bug-ledger: FAIL ("), "{}", done.out);
    let json = world
        .peers(&["check", "bug-ledger", "--min-severity", "crit", "--json"])
        .exits(0)
        .json("peers.check/1");
    assert_eq!((&json["check"], &json["verdict"]), (&"bug-ledger".into(), &"pass".into()));
    let done = World::bare().peers(&["check", "bug-ledger"]).exits(3);
    assert!(done.out.starts_with("bug-ledger: ERROR ("), "{}", done.out);
}

#[test]
fn an_unknown_check_or_flag_is_a_wrong_use() {
    let world = World::ready("true");
    assert!(world.peers(&["check", "bug-leger"]).exits(2).err.contains("did you mean `bug-ledger`?"));
    world.peers(&["check", "bug-ledger", "--nonsense"]).exits(2);
    world.peers(&["check"]).exits(2);
    world.peers(&["run-check", "audit:self-review"]).exits(0);
    let listed = world.peers(&["check", "--list"]).exits(0).out;
    assert!(listed.contains("self-review"), "{listed}");
    // What is listed as `--no-...` is told as what that does.
    for line in listed.lines().filter(|line| line.starts_with("  --no-")) {
        assert!(line.contains("  Do not "), "{line}");
    }
    assert!(listed.contains("  Do not run each reproducing test without the fix and with it\n"), "{listed}");
    world.peers(&["check", "--list", "--json"]).exits(0).json("peers.checks/1");
}

#[test]
fn all_checks_of_a_mode_run_and_the_worst_answer_is_the_exit_code() {
    let world = World::ready("true");
    let listed = world.peers(&["check", "--list", "--mode", "describe"]).exits(0).out;
    assert!(listed.contains("docs-present") && !listed.contains("plan-complete"), "{listed}");
    let done = world.peers(&["check", "--all", "--mode", "describe"]).exits(1);
    assert!(done.out.contains("docs-present: FAIL ("), "{}", done.out);
    // Without a plan what judges by one cannot be measured.
    let done = world.peers(&["check", "--all", "--mode", "implement", "--json"]).exits(3);
    let names: Vec<String> = done
        .out
        .lines()
        .map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["schema"], "peers.check/1");
            line["check"].as_str().unwrap().to_owned()
        })
        .collect();
    assert!(
        names.contains(&"contracts".to_owned()) && names.contains(&"no-shortcuts".to_owned()),
        "{names:?}"
    );
    world.peers(&["check", "--all"]).exits(2);
    world.peers(&["check", "--all", "--mode", "nothing"]).exits(3);
    world.peers(&["check", "--all", "--mode", "describe,implement"]).exits(2);
}

#[test]
fn the_ledger_answers_as_a_gate_and_as_a_summary() {
    let world = World::ready("true");
    world.peers(&["bug-hunt", "gate"]).exits(0);
    world.git(&["commit", "-q", "--allow-empty", "-m", REPORT]);
    world.peers(&["bug-hunt", "gate"]).exits(1);
    world.peers(&["bug-hunt", "gate-tdd"]).exits(0);
    let text = world.peers(&["bug-hunt", "summary"]).exits(0).out;
    assert!(text.starts_with("bug-hunt: 1 blocking open (crit=0 high=1"), "{text}");
    for args in [["bug-hunt", "summary", "--json"].as_slice(), &["bug-hunt", "summary", "--format", "json"]] {
        let json = world.peers(args).exits(0).json("peers.bug-hunt/1");
        assert_eq!((&json["total"], &json["reports"][0]["id"]), (&1.into(), &"BUG-1".into()));
    }
    World::bare().peers(&["bug-hunt", "gate"]).exits(3);
    world.peers(&["bug-hunt"]).exits(2);
}

#[test]
fn what_the_check_of_a_review_finds_stands_in_the_prompt_of_the_reviewer() {
    let world = World::ready("true");
    let review = "  - {id: read, type: soft, prompt: Read it, reviewer: other, check: bug-ledger}\n";
    world.write(".peers/goals.yaml", &(goals(&[("real", "false")]) + review));
    world.accept(&[]);
    world.git(&["commit", "-q", "--allow-empty", "-m", REPORT]);
    assert!(
        world.peers(&["info"]).exits(0).out.contains("asked at most every 5 ticks, with check bug-ledger")
    );
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    let prompts = std::fs::read_dir(world.at(".peers/log/prompts")).unwrap();
    let first = prompts.map(|entry| entry.unwrap().path()).min().unwrap();
    let prompt = std::fs::read_to_string(first).unwrap();
    assert!(prompt.contains("The check `bug-ledger` found something here; judge it as well."), "{prompt}");
    assert!(prompt.contains("check bug-ledger for read\n") && prompt.contains("BUG-1"), "{prompt}");
    world.peers(&["verify"]).exits(1).out_lacks("read");
}

#[test]
fn a_planted_script_does_not_shadow_a_check() {
    let world = World::ready("true");
    world.git(&["commit", "-q", "--allow-empty", "-m", REPORT]);
    world.write(".peers/checks/bug-ledger.py", "raise SystemExit(0)\n");
    world.peers(&["check", "bug-ledger"]).exits(1);
}
