//! What the scripted peers do, and what is asked of them.

use serde_json::json;

use super::project::Kind;

const BUG: &str = "BUG-median-even";
/// The bug hunt that each peer owes, and the review that one who did not write the fix owes.
const HUNT: &str = "bug-hunt";
const READABLE: &str = "readable";

/// Goals: one real gate, the two shipped checks, two reviews.
pub(super) fn goals(kind: Kind) -> String {
    format!(
        "\
# The goals of the demonstration. `peers goals diff` shows what you change here.
goals:
  - id: tests-pass
    type: hard
    description: The whole test suite passes
    cmd: {test}
    pass_when: exit_code == 0
    timeout_s: 600

  - id: self-review-on-handoff
    type: hard
    description: Every handoff was reviewed by its author
    check: self-review

  - id: bug-hunt-clean
    type: hard
    description: No blocking bug is open
    check: bug-ledger

  - id: {HUNT}
    type: soft
    description: Every peer hunted for bugs in the other's work
    reviewer: both
    consensus_needed: 1
    review_interval: 1
    prompt: |
      Hunt for bugs in what the other peer changed since the tag peers-baseline. Report every finding.
      Pass only after a hunt that you can describe.

  - id: {READABLE}
    type: soft
    description: Somebody who did not write it can read it
    reviewer: other
    consensus_needed: 1
    review_interval: 1
    prompt: |
      Read the program as if you saw it for the first time. Pass if its purpose and its edges are clear.
",
        test = kind.test()
    )
}

/// Configuration: the two scripts as peers.
pub(super) fn config(program: &str, scripts: &str) -> String {
    let argv = |peer: &str, switches: &[&str]| {
        let mut argv = vec![json!(program), json!("fake-peer"), json!("--script")];
        argv.push(json!(format!("{scripts}/{peer}.yaml")));
        argv.extend(switches.iter().map(|switch| json!(switch)));
        serde_json::Value::from(argv)
    };
    format!(
        "\
# The configuration of the demonstration: two scripts that print what claude and codex would print.
# The switches behind the script are those of the tools; tokens and cost are read from such output only.
driver: orchestrator
comm: git
peers:
  - name: alice
    tool: claude
    argv: {}
  - name: bob
    tool: codex
    argv: {}
health:
  idle_timeout_s: 600
  absolute_max_runtime_s: 1200
budget:
  max_iterations: 20
",
        argv("alice", &["-p", "--output-format", "stream-json", "--verbose"]),
        argv("bob", &["exec", "--json", "-"])
    )
}

/// The scripts, by peer. JSON is YAML, and quotes what must be quoted.
pub(super) fn scripts(kind: Kind) -> [(&'static str, String); 2] {
    let text = |script: &serde_json::Value| format!("{script:#}\n");
    [("alice", text(&every_second(alice(kind), 0))), ("bob", text(&every_second(bob(kind), 1)))]
}

/// Finds the bug, fixes it, and reviews at last.
fn alice(kind: Kind) -> serde_json::Value {
    let (fixed, right) = kind.fix();
    let run = json!({"shell": kind.test()});
    json!({
        "as": "claude",
        "count": "ticks",
        "after": "repeat",
        "turns": [
            [
                {"read_prompt": {"expect": "tests-pass"}},
                {"say": "A gate is red. I run the tests and look for the cause before I touch anything."},
                run,
                {"bug_report": {
                    "id": BUG,
                    "severity": "high",
                    "title": "The median of an even number of values is wrong",
                    "description": "Of two middle values the upper one is returned; the mean of both is expected. Median of 4 1 3 2: 3, expected 2.5.",
                    "location": kind.place(),
                    "fix_by": "alice",
                    "handoff": true,
                }},
            ],
            [
                {"say": "Bob has a test that shows the bug. I fix the cause."},
                {"write": {"path": fixed, "text": right}},
                {"shell": {"run": kind.test(), "expect": 0}},
                {"bug_resolve": {
                    "id": BUG,
                    "note": "The mean of the two middle values is taken when there are two.",
                    "handoff": true,
                }},
            ],
            [
                {"say": "My fix is verified. I hunt for bugs in what bob wrote."},
                {"review": {
                    "goal": HUNT,
                    "pass": true,
                    "notes": "The test of bob states one behaviour and fails without the fix; nothing else changed.",
                    "checked": [format!("{}:1 read, and run against the old version", kind.reproducer().0)],
                    "handoff": true,
                }},
            ],
            [{"handoff": "Nothing to add"}],
        ],
    })
}

/// Turns by the number of the tick, for who takes each second one: behind a wall a script has nowhere to count.
fn every_second(script: serde_json::Value, first: usize) -> serde_json::Value {
    let mut script = script;
    let Some(turns) = script.get_mut("turns").and_then(serde_json::Value::as_array_mut) else {
        return script;
    };
    let idle = json!([{"handoff": "Nothing to add"}]);
    let (answers, played): (Vec<_>, Vec<_>) = turns.drain(..).partition(|turn| turn.get("on").is_some());
    turns.extend(answers);
    turns.extend(std::iter::repeat_n(idle.clone(), first));
    let more = played.len().saturating_sub(1);
    for (at, turn) in played.into_iter().enumerate() {
        turns.push(turn);
        turns.extend((at < more).then(|| idle.clone()));
    }
    script
}

/// Reproduces the bug, verifies the fix, reviews, and is the skeptic.
fn bob(kind: Kind) -> serde_json::Value {
    let (file, content) = kind.reproducer();
    let (fixed, _) = kind.fix();
    json!({
        "as": "codex",
        "count": "ticks",
        "after": "repeat",
        "turns": [
            {
                "on": {"prompt": "# Skeptic turn"},
                "steps": [
                    {"say": "Everything is green, and I distrust it."},
                    {"shell": {"run": kind.test(), "expect": 0}},
                    {"skeptic": {
                        "verdict": "clean",
                        "excluded": [
                            format!("{fixed}: an empty list is answered without a number, tried"),
                            format!("{fixed}: one value is its own median, tried"),
                            format!("{fixed}: unsorted input is sorted first, tried with descending values"),
                            format!("{fixed}: equal values give that value, tried"),
                            format!("{fixed}: negative values sort before positive ones, tried"),
                        ],
                    }},
                ],
            },
            [
                {"say": format!("I reproduce {BUG} with the smallest test that shows it.")},
                {"write": {"path": file, "text": content}},
                {"shell": kind.test()},
                {"handoff": {
                    "subject": format!("Reproduce {BUG}: two numbers meet in the middle"),
                    "body": "The test fails now and states what is expected.",
                    "trailers": {"Bug-Reproduce": BUG},
                }},
            ],
            [
                {"say": "I check the fix against the report, not against the words of its author."},
                {"shell": {"run": kind.test(), "expect": 0}},
                {"commit": {
                    "subject": format!("Verify the fix of {BUG}"),
                    "body": "The reproducing test fails on the old version and passes on the new one.",
                    "allow_empty": true,
                    "trailers": {"Bug-Verified": BUG, "Peer": "{{peer}}"},
                }},
                {"review": {
                    "goal": HUNT,
                    "pass": true,
                    "notes": "Tried empty, single, even, odd, negative and repeated values on the new version.",
                    "checked": [format!("{fixed}:1 read from the first line to the last")],
                }},
                {"review": {
                    "goal": READABLE,
                    "pass": true,
                    "notes": "Purpose and edges stand in the first lines.",
                    "checked": [format!("{fixed}:1 read from the first line to the last")],
                    "handoff": true,
                }},
            ],
            [{"handoff": "Nothing to add"}],
        ],
    })
}

#[cfg(test)]
mod tests {
    use peers_fake::Script;
    use peers_store::load;

    use super::*;

    #[test]
    fn what_is_laid_down_is_valid() {
        for kind in [Kind::Rust, Kind::Shell] {
            let config =
                load::load_config(&config("/bin/peers", "/tmp/a 'b'")).unwrap_or_else(|e| panic!("{e}"));
            let goals = load::load_goals(&goals(kind), config.peers.len(), peers_checks::names());
            assert_eq!(goals.unwrap_or_else(|e| panic!("{e}")).len(), 5);
            for (peer, script) in scripts(kind) {
                let script = Script::parse(peer, &script).unwrap_or_else(|e| panic!("{e}"));
                assert!(script.turns.len() >= 4, "{peer}");
            }
        }
    }
}
