//! What `peers init` lays down in a repository: templates, and modes, which are bundles of goals.
//!
//! Data and text editing only. What is read is the operator's directory of modes; nothing is written.
//! Start reading at [`CONFIG`] and [`GOALS`] for templates, at [`Library`] for modes.

mod bundle;
pub mod hooks;
pub mod ignore;
pub mod key;
mod library;
mod merge;
pub mod peer;
pub mod setup;
mod shipped;
#[cfg(test)]
mod tests;

pub use bundle::{Budget, Bundle, Files, Mode, Origin, Tests, digest, goals};
pub use library::{Library, ModeError, names};
pub use merge::{Merged, course_text, merge, same_goal};

/// `.peers/config.yaml`.
pub const CONFIG: &str = include_str!("../../../templates/config.yaml");

/// `.peers/goals.yaml`.
pub const GOALS: &str = include_str!("../../../templates/goals.yaml");

/// Where the examples for any stack begin in [`GOALS`], and where they end.
const EXAMPLES: (&str, &str) = ("  # The gate that matters most.", "  # Every handoff carries");

/// `.peers/goals.yaml` with these comments in place of the examples for any stack. Each line of `proposals`
/// is a comment already.
#[must_use]
pub fn goals_with(proposals: &str) -> String {
    let cut = GOALS.split_once(EXAMPLES.0).zip(GOALS.split_once(EXAMPLES.1));
    let Some(((before, _), (_, after))) = cut else { return GOALS.to_owned() };
    format!(
        "{before}  # Proposed for this repository (`peers goals detect` shows it again). Remove the `#` before what you
  # want, adapt it, delete the placeholder. `tests-pass` stops the run when it stays red for
  # some ticks (`goals.stuck_halt_after` in config.yaml).
  # The gates of a proof run in a fresh checkout: what they need must be committed or made by the command.
{proposals}
{}{after}",
        EXAMPLES.1
    )
}

/// Where the gates of the operator's own stand in [`GOALS`]: from the placeholder on.
const OWN: &str = "  # Replace this gate by real ones.";
/// What is said of the gate of the tests in [`GOALS`].
const STUCK: &str = "  # `tests-pass` and `no-prior-regression` that stay red";
/// Where the example of that gate begins.
const EXAMPLE: &str = "  # - id: tests-pass";
/// Where the examples of further gates begin.
const FURTHER: &str = "  # Other gates that pay off.";

/// `.peers/goals.yaml` with these gates in place of the placeholder, and with these comments in place of the
/// examples of further gates, where there are some.
#[must_use]
pub fn goals_with_gates(gates: &str, proposals: &str) -> String {
    let between = |from: &str, to: &str| {
        let (_, rest) = GOALS.split_once(from)?;
        let (text, _) = rest.split_once(to)?;
        Some(format!("{from}{text}"))
    };
    let parts = GOALS.split_once(OWN).zip(GOALS.split_once(EXAMPLES.1));
    let said = between(STUCK, EXAMPLE).zip(between(FURTHER, EXAMPLES.1));
    let Some((((before, _), (_, after)), (stuck, further))) = parts.zip(said) else {
        return GOALS.to_owned();
    };
    let further = if proposals.is_empty() {
        further
    } else {
        format!(
            "  # Further gates that fit this repository (`peers goals detect` shows them again). Remove the `#`
  # before what you want.
{proposals}
"
        )
    };
    format!("{before}{stuck}{gates}\n{further}{}{after}", EXAMPLES.1)
}

/// What stands above the review of the task in [`GOALS`], which is a comment there.
const REVIEW: &str =
    "  # With a task in TASK.md: whether it is done, for a reviewer to say. Remove the `#`.\n";

/// Where the goals begin in [`GOALS`].
const BEGIN: &str = "\ngoals:\n";

/// `.peers/goals.yaml` with these gates of the project itself and these goals of modes in place of all that
/// [`GOALS`] asks for.
#[must_use]
pub fn goals_with_modes(gates: &str, modes: &str) -> String {
    let parts = GOALS.split_once(BEGIN).zip(GOALS.split_once(REVIEW));
    let Some(((before, _), (_, review))) = parts else { return GOALS.to_owned() };
    let goals = format!("{gates}{modes}");
    format!("{before}{BEGIN}{}\n{REVIEW}{review}", goals.trim_start_matches('\n'))
}

/// [`CONFIG`], or what was made of it, with these caps.
#[must_use]
pub fn config_with_budget(config: &str, budget: Budget) -> String {
    let Budget { max_runtime_s, max_iterations } = budget;
    let caps = [
        ("max_runtime_s", max_runtime_s.map(|cap| cap.to_string())),
        ("max_iterations", max_iterations.map(|cap| cap.to_string())),
    ];
    caps.iter().fold(config.to_owned(), |text, (key, cap)| {
        let set = cap.as_deref().and_then(|cap| key::set_in(&text, "budget", key, cap));
        set.unwrap_or(text)
    })
}

/// Goals made from [`GOALS`] with the review of the task in effect.
#[must_use]
pub fn goals_with_task(goals: &str) -> String {
    let Some((before, review)) = goals.split_once(REVIEW) else { return goals.to_owned() };
    let review: String = review.split_inclusive('\n').map(|line| line.replacen("  # ", "  ", 1)).collect();
    format!("{before}  # Whether the task in TASK.md is done, for a reviewer to say.\n{review}")
}

/// Where the entries of peers begin in [`CONFIG`], and what stands behind them.
const PEERS: (&str, &str) = ("peers:\n", "  # A third peer.");

/// [`CONFIG`] with an entry for each of these tools; one tool alone has two entries, since turns need two peers.
/// `None` for a tool of which it has no entry.
#[must_use]
pub fn config_with_agents(tools: &[&str]) -> Option<String> {
    let (before, rest) = CONFIG.split_once(PEERS.0)?;
    let (known, after) = rest.split_once(PEERS.1)?;
    let entry = |tool: &str, name: &str| {
        let begins = [format!("  - name: {tool}\n"), format!("  # - name: {tool}\n")];
        let at = begins.iter().find_map(|begins| rest.find(begins.as_str()))?;
        let lines = rest.get(at..)?.lines().skip(1).take_while(|line| !line.trim().is_empty());
        let uncommented = begins.first().is_some_and(|begins| known.contains(begins.as_str()));
        let lines: String =
            lines
                .map(|line| {
                    if uncommented {
                        format!("{line}\n")
                    } else {
                        format!("{}\n", line.replacen("# ", "", 1))
                    }
                })
                .collect();
        Some(format!("  - name: {name}\n{lines}\n"))
    };
    let entries: Option<String> = match tools {
        [tool] => entry(tool, tool).zip(entry(tool, &format!("{tool}-2"))).map(|(one, two)| one + &two),
        tools => tools.iter().map(|tool| entry(tool, tool)).collect(),
    };
    Some(format!("{before}{}{}{}{after}", PEERS.0, entries?, PEERS.1))
}

/// The line that `.gitignore` gets, with its line end.
pub const GITIGNORE: &str = include_str!("../../../templates/gitignore");

/// `.peers/hooks/README.md`.
pub const HOOKS_README: &str = include_str!("../../../templates/hooks/README.md");

#[cfg(test)]
mod texts {
    use super::*;

    #[test]
    fn gates_stand_in_the_place_of_the_placeholder_and_every_other_comment_stays() {
        let gate = "  - id: tests-pass\n    cmd: x\n";
        let text = goals_with_gates(gate, "");
        assert!(!text.contains("placeholder") && !text.contains("cargo test"), "{text}");
        assert!(text.contains("fresh checkout: what they need must be committed or made by the command.\n  - id: tests-pass\n    cmd: x\n\n  # Other gates"), "{text}");
        assert!(text.contains("npm run coverage") && text.contains("\n# Goals:"), "{text}");
        let gone: Vec<_> = GOALS.lines().filter(|line| !text.contains(line)).collect();
        let left_out =
            |line: &&str| GOALS.find(*line) >= GOALS.find(OWN) && GOALS.find(*line) < GOALS.find(FURTHER);
        assert!(gone.iter().all(left_out), "{gone:?}");

        let text = goals_with_gates(gate, "  # - id: lint-clean\n");
        assert!(text.contains("before what you want.\n  # - id: lint-clean\n\n  # Every handoff"), "{text}");
        assert!(!text.contains("npm run coverage"), "{text}");
    }

    #[test]
    fn the_review_of_the_task_can_be_put_in_effect() {
        let text = goals_with_task(&goals_with_gates("  - id: tests-pass\n    cmd: x\n", ""));
        assert!(text.contains("\n  - id: task-done\n    type: soft\n"), "{text}");
        assert!(
            text.ends_with("something else is an issue.\n") && !text.contains("Remove the `#`.\n"),
            "{text}"
        );
    }

    #[test]
    fn each_tool_that_is_asked_for_has_an_entry_and_one_alone_has_two() {
        assert_eq!(config_with_agents(&["claude", "codex"]).as_deref(), Some(CONFIG));
        let text = config_with_agents(&["codex"]).unwrap();
        let names: Vec<&str> = text.lines().filter(|line| line.starts_with("  - name: ")).collect();
        assert_eq!(names, ["  - name: codex", "  - name: codex-2"]);
        let text = config_with_agents(&["opencode", "claude"]).unwrap();
        assert!(
            text.contains("\n  - name: opencode\n    tool: opencode\n    argv: [opencode, run,"),
            "{text}"
        );
        assert_eq!(config_with_agents(&["nobody", "claude"]), None);
    }

    #[test]
    fn proposals_stand_in_the_place_of_the_examples() {
        let text = goals_with("  # - id: tests-pass\n");
        assert!(text.contains("  # - id: tests-pass\n\n  # Every handoff carries"), "{text}");
        assert!(
            text.contains("placeholder-replace-me") && !text.contains("cargo test --workspace"),
            "{text}"
        );
        assert_eq!(text.matches("- id: self-review-on-handoff").count(), 1);
        assert!(text.contains("\n# Goals:") && text.contains("missing kind is an issue.\n"), "{text}");
    }
}
