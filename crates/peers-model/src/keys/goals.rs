//! The keys of `goals.yaml`.

use super::{FILLED, Key, Shape, TEXT, Table, Text, U32};
use crate::config::variable;
use crate::ids::GoalId;

/// The id of a goal.
pub const ID: Text = Text {
    // Seven or more hex digits alone are no id: they would look like a commit.
    pattern: Some("^(?![0-9a-f]{7,64}$)[a-z0-9][a-z0-9._-]{0,63}$"),
    most: 64,
    filled: true,
    wrong: Some(|text| match GoalId::new(text) {
        Ok(_) => None,
        Err(error) => Some(format!("is not a valid goal id: {}", error.rule)),
    }),
};

const ANY: Shape = Shape::Text(TEXT);
/// What is wrong with an empty one the checks say, in their own words.
const SAYING: Shape = Shape::Text(Text { pattern: Some("\\S"), ..TEXT });
/// A directory of the repository, written plainly.
const BELOW: Text =
    Text { pattern: Some(r"^(?!(\.{0,2}|\.git)(/|$))[^/]+(/(?!(\.{0,2}|\.git)(/|$))[^/]+)*$"), ..FILLED };
const POSITIVE: Shape = Shape::Whole { least: 1, most: U32 };
const TEXTS: Shape = Shape::List { of: &ANY, least: 0, most: usize::MAX };

/// The whole file.
pub const GOALS: Table = Table {
    keys: &[Key {
        null: true,
        default: Some("[]"),
        ..key(
            "goals",
            Shape::List { of: &Shape::Table(&GOAL), least: 0, most: usize::MAX },
            "What must be true before a run is complete, in the order in which it is shown and run.",
        )
    }],
    gone: &[],
    either: &[],
};

/// One goal.
pub const GOAL: Table = Table {
    keys: &[
        Key {
            required: true,
            ..key(
                "id",
                Shape::Text(ID),
                "A lower-case letter or digit, then at most 63 of `a-z 0-9 . _ -`; unique; not 7 or more hex digits alone.",
            )
        },
        Key {
            required: true,
            ..key(
                "type",
                word(&[("hard", "a gate measures it"), ("soft", "peers review it")]),
                "Whether it is measured or reviewed.",
            )
        },
        text("description", ANY, "Free text for people."),
        text("cmd", SAYING, "Hard: a shell command, run at the top of the tree; or `check`."),
        text(
            "check",
            ANY,
            "Hard: a built-in check; `peers check --list` shows them. Soft: its findings are shown to the reviewers.",
        ),
        Key { default: Some("[]"), ..key("args", TEXTS, "Arguments of the check.") },
        text("pass_when", ANY, "Hard, with `cmd`: the condition, for instance `exit_code == 0`."),
        text("timeout_s", POSITIVE, "Seconds; absent: `goals.timeout_s` of config.yaml."),
        Key {
            default: Some("0"),
            ..key(
                "retry_on_fail",
                Shape::Whole { least: 0, most: 5 },
                "Hard: further attempts after a red answer; the first green one counts.",
            )
        },
        Key {
            default: Some("\"auto\""),
            ..key(
                "tree",
                word(&[
                    ("auto", "the work tree while agents work, a fresh checkout in the proof"),
                    ("copy", "a kept copy of the commit in ticks, a fresh checkout in the proof"),
                    ("live", "the work tree only; exempt from the proof, and named so"),
                ]),
                "Hard: where it runs.",
            )
        },
        switch("cacheable", "Hard, with `cmd`: a green answer may outlive the run."),
        switch("expensive", "Hard, with `cmd`: it costs much, and runs in a kept copy of the commit."),
        switch("serial", "Hard: no other gate runs beside it."),
        Key {
            default: Some("[]"),
            ..key(
                "needs",
                Shape::List { of: &Shape::Text(ID), least: 0, most: usize::MAX },
                "Goals that must be green first. Hard: other gates; while one is not green, it is skipped. Soft: gates and reviews; while one is not green, it is not asked for.",
            )
        },
        Key {
            default: Some("[]"),
            ..key(
                "env",
                Shape::List {
                    of: &Shape::Text(Text {
                        pattern: Some("^[A-Za-z_][A-Za-z0-9_]*$"),
                        wrong: Some(variable),
                        ..FILLED
                    }),
                    least: 0,
                    most: usize::MAX,
                },
                "Hard, with `cmd`: names of environment variables that it asks for; your own sandbox.yaml decides.",
            )
        },
        text("cwd", Shape::Text(BELOW), "Hard, with `cmd`: where it starts, from the top of the tree."),
        text("group", Shape::Text(FILLED), "Under what views show it; at most 64 characters."),
        Key {
            default: Some("1"),
            ..text("weight", POSITIVE, "How much it counts where views say how far things are.")
        },
        text("prompt", Shape::Text(FILLED), "Soft: what the reviewer is asked."),
        text(
            "reviewer",
            word(&[
                ("other", "any peer on its turn"),
                ("both", "every peer"),
                ("alternating", "one peer after the other"),
                ("quorum", "N of the last M reviews, by different peers"),
            ]),
            "Soft: who reviews.",
        ),
        Key {
            default: Some("1"),
            ..key(
                "consensus_needed",
                Shape::Whole { least: 1, most: 255 },
                "Soft: how many different peers must pass it.",
            )
        },
        text("quorum", ANY, "Soft, with `reviewer: quorum`: `N/M`."),
        Key {
            default: Some("5"),
            ..text("review_interval", POSITIVE, "Soft: ask at most every so many ticks.")
        },
        Key {
            default: Some("[]"),
            ..key(
                "paths",
                TEXTS,
                "Globs from the top of the repository: `*` and `?` stay within one directory, `**` does not, a directory means all below it. Soft: a later change there by somebody else makes the review stale; default: all but documentation, and TASK.md. Hard, with `cacheable`: what a kept answer is about; default: everything.",
            )
        },
    ],
    gone: &[("hard", "write `type: hard`"), ("soft", "write `type: soft`")],
    either: &[],
};

const fn key(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key { name, shape, required: false, null: false, default: None, about }
}

/// A key for which `null` is the same as its absence.
const fn text(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key { null: true, ..key(name, shape, about) }
}

const fn switch(name: &'static str, about: &'static str) -> Key {
    Key { default: Some("false"), ..key(name, Shape::Switch, about) }
}

const fn word(words: &'static [(&'static str, &'static str)]) -> Shape {
    Shape::Word { words, any_case: false }
}
