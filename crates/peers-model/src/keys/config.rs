//! The keys of `config.yaml`.

mod hooks;

use super::{FILLED, Key, Shape, TEXT, Table, Text, U32};
use crate::config::{argument, pattern, reserved, variable};
use crate::ids::PeerName;
use crate::time::Timestamp;

/// A whole number above zero.
const POSITIVE: Shape = Shape::Whole { least: 1, most: U32 };
/// A whole number above zero that may be very large.
const LARGE: Shape = Shape::Whole { least: 1, most: u64::MAX };
const COUNT: Shape = Shape::Whole { least: 0, most: U32 };
const ANY: Shape = Shape::Text(TEXT);
const SAID: Shape = Shape::Text(FILLED);
const NAME: Text = Text {
    pattern: Some("^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$"),
    most: 32,
    filled: true,
    wrong: Some(|text| match PeerName::new(text) {
        Ok(_) => reserved(text),
        Err(error) => Some(format!("is no peer name: {}", error.rule)),
    }),
};
const ARGUMENT: Shape = Shape::Text(Text { wrong: Some(argument), ..TEXT });
const ARGV: Shape = Shape::List { of: &ARGUMENT, least: 1, most: usize::MAX };
const PATTERN: Shape = Shape::Text(Text { most: 1024, ..TEXT });
const PATTERNS: Shape = Shape::List { of: &PATTERN, least: 0, most: 50 };
const GLOB: Shape = Shape::Text(Text { most: 1024, filled: true, wrong: Some(pattern), ..TEXT });
const VARIABLE: Shape =
    Shape::Text(Text { pattern: Some("^[A-Za-z_][A-Za-z0-9_]*$"), wrong: Some(variable), ..TEXT });
const GOAL: Shape = Shape::Text(super::goals::ID);
const MOMENT: Shape = Shape::Text(Text {
    pattern: Some("^\\d{4}-\\d{2}-\\d{2}[Tt ]\\d{2}:\\d{2}:\\d{2}(\\.\\d+)?([Zz]|[+-]\\d{2}:\\d{2})$"),
    wrong: Some(|text| {
        let wrong = || {
            "is no time of the form `2026-03-04T18:00:00Z` or, with its distance from UTC, `2026-03-04T18:00:00+01:00`"
                .to_owned()
        };
        Timestamp::parse(text).err().map(|_| wrong())
    }),
    ..TEXT
});

/// The whole file.
pub const CONFIG: Table = Table {
    keys: &[
        Key {
            default: Some("\"orchestrator\""),
            ..optional(
                "driver",
                word(&[
                    ("orchestrator", "`peers run`"),
                    ("hooks", "the stop hooks of your own sessions of an agent"),
                    ("sessions", "a terminal per agent"),
                ]),
                "Who calls the loop. With `hooks` and `sessions`, commits that appear while no turn runs are nobody's.",
            )
        },
        Key {
            default: Some("\"git\""),
            ..optional(
                "comm",
                word(&[("git", "by commits"), ("hybrid", "also by files in their drop boxes")]),
                "How peers talk to each other.",
            )
        },
        optional(
            "peers",
            Shape::List { of: &Shape::Table(&PEER), least: 2, most: usize::MAX },
            "The agents, in the order of their turns; at least two.",
        ),
        optional(
            "tools",
            Shape::Named { name: NAME, of: &Shape::Table(&TOOL) },
            "The older form of `peers`: one agent per key, in this order. The key is its name and its tool.",
        ),
        optional("health", Shape::Table(&HEALTH), "Supervision of one agent process."),
        optional("budget", Shape::Table(&BUDGET), "Caps. `null` means unlimited, for each of them."),
        optional(
            "goals",
            Shape::Table(&GOALS),
            "Settings of gates and reviews; the goals stand in goals.yaml.",
        ),
        optional("bug_hunt", Shape::Table(&BUG_HUNT), "The bug ledger."),
        Key {
            default: Some("1"),
            ..optional(
                "max_retries",
                COUNT,
                "Further attempts after a failed turn before the next peer takes over.",
            )
        },
        Key {
            default: Some("8"),
            ..optional(
                "recovery_interval",
                COUNT,
                "Ticks until a degraded peer gets one recovery turn; 0 = never.",
            )
        },
        Key {
            default: Some("\"auto\""),
            ..optional(
                "on_peer_unavailable",
                word(&[
                    ("auto", "halt with two peers, continue with more"),
                    ("halt", "stop the loop"),
                    ("continue", "go on with the others while at least two are left"),
                ]),
                "What happens when a peer needs its operator.",
            )
        },
        Key {
            default: Some("21600"),
            ..optional(
                "rate_limit_max_wait_s",
                POSITIVE,
                "Seconds that a peer may wait for its service, rate limits and usage caps alike; beyond that it counts as unavailable.",
            )
        },
        optional(
            "prices",
            Shape::Named { name: MODEL_NAME, of: &Shape::Table(&PRICE) },
            "What models cost, by id, for tools that report tokens alone; each in place of the entry of that id in the built-in table.",
        ),
        optional("skeptic", Shape::Table(&SKEPTIC), "The adversarial turn before `complete`."),
        optional("prompt", Shape::Table(&PROMPT), "How prompts are made."),
        optional("setup", Shape::Table(&SETUP), "What a checkout needs before gates can judge it."),
        Key {
            default: Some("false"),
            ..optional(
                "pipeline_gates",
                Shape::Switch,
                "Gates with `expensive: true` run while the next peer works; only where peers are confined.",
            )
        },
        optional("verify", Shape::Table(&VERIFY), "`peers verify`."),
        optional("hooks", Shape::Table(&hooks::HOOKS), "Commands of yours around turns and gates."),
        optional("observability", Shape::Table(&OBSERVABILITY), "What is kept for looking at."),
    ],
    gone: &[
        ("graphify_mcp", "this version has no `graphify_mcp` yet: remove it"),
        (
            "egress_allow",
            "this version confines no network access yet, so it has no `egress_allow`: remove it",
        ),
        ("research", "this version has no research workflow yet: remove `research`"),
        ("notify", "this version has no `notify` yet: act on the exit code of `peers run`"),
        (
            "sandbox",
            "this version has no `sandbox` yet; what children get of the environment stands in your own ~/.config/peers/sandbox.yaml",
        ),
        ("checks", "this version has no `checks` yet: give a check its `args` in goals.yaml"),
        ("dirty", "this version has no `dirty` yet: uncommitted changes are kept and told"),
    ],
    either: &["peers", "tools"],
};

/// One entry of `peers`.
pub const PEER: Table = Table {
    keys: &[
        Key {
            required: true,
            ..optional(
                "name",
                Shape::Text(NAME),
                "A letter or digit, then at most 31 letters, digits, `_` or `-`; unique.",
            )
        },
        Key {
            null: true,
            ..optional(
                "tool",
                ANY,
                "`claude`, `codex`, `opencode`, `acp` for a program that speaks the Agent Client Protocol, or another word for a program without an adapter of its own; absent: the name.",
            )
        },
        ARGV_KEY,
        PROMPT_MODE,
        Key {
            default: Some("\"default\""),
            ..optional(
                "role",
                word(&[
                    ("default", "takes its turns"),
                    ("recovery", "a spare: takes turns only while no other peer can"),
                    ("witness", "in the rotation, with another task in the prompt: observe and attest"),
                    ("debater", "in the rotation, with another task in the prompt: object"),
                ]),
                "The part that the peer has.",
            )
        },
        MODEL,
        REASONING,
        PROVIDER,
        PERMISSIONS,
    ],
    gone: &[],
    either: &[],
};

/// One entry of `tools`.
pub const TOOL: Table = Table {
    keys: &[ARGV_KEY, PROMPT_MODE, MODEL, REASONING, PROVIDER, PERMISSIONS],
    gone: &[
        ("name", "the key of the entry is its name; write a list `peers` to choose both"),
        ("tool", "the key of the entry is its tool; write a list `peers` to choose both"),
        ("role", "entries of `tools` have no `role`; write a list `peers`"),
    ],
    either: &[],
};

const ARGV_KEY: Key =
    Key { required: true, ..optional("argv", ARGV, "The program and its arguments; no shell is involved.") };
const PROMPT_MODE: Key = Key {
    default: Some("\"stdin\""),
    ..optional(
        "prompt_mode",
        word(&[
            ("stdin", "on standard input"),
            ("file", "the path of a private file replaces `{PROMPT_FILE}` in `argv`"),
            (
                "argv-substitute",
                "the text replaces `{PROMPT}` in every argument, where any process on the machine can read it",
            ),
        ]),
        "How the prompt reaches the program.",
    )
};
const MODEL: Key = Key {
    null: true,
    ..optional(
        "model",
        SAID,
        "The model, for claude, codex and opencode; translated into arguments. What `argv` says itself wins.",
    )
};
const REASONING: Key = Key {
    null: true,
    ..optional(
        "reasoning",
        SAID,
        "claude: low, medium, high, xhigh, max; codex: minimal, low, medium, high, xhigh; opencode: all of these.",
    )
};
const PROVIDER: Key = Key {
    null: true,
    ..optional(
        "provider",
        SAID,
        "claude: anthropic, openrouter; codex: openai, openrouter; opencode: none, write `model: <provider>/<model>`.",
    )
};
const PERMISSIONS: Key = Key {
    null: true,
    ..optional(
        "permissions",
        word(&[("allow", "yes, each time"), ("reject", "no, each time")]),
        "Only for acp: what the agent is answered when it asks whether it may use a tool. Default: allow.",
    )
};

/// `health`.
pub const HEALTH: Table = Table {
    keys: &[
        Key {
            default: Some("900"),
            ..optional(
                "idle_timeout_s",
                POSITIVE,
                "Seconds without a sign of life before the process is ended.",
            )
        },
        Key {
            default: Some("7200"),
            ..optional("absolute_max_runtime_s", POSITIVE, "Seconds before it is ended in any case.")
        },
        Key {
            null: true,
            ..optional(
                "hang_kill_s",
                POSITIVE,
                "Seconds without output after which a process is ended whose whole tree waits for nothing but itself: no thread runs or waits for input, no answer lies unread on a connection. Linux; `null` = off.",
            )
        },
        Key {
            default: Some("2097152"),
            ..optional(
                "buf_cap_bytes",
                POSITIVE,
                "Bytes kept of each output stream, half from its beginning and half from its end.",
            )
        },
        Key {
            null: true,
            ..optional(
                "error_patterns",
                PATTERNS,
                "A line that matches ends the turn as an API error, worth another attempt. Case-sensitive, without look-around. Default: three built-in ones.",
            )
        },
        Key {
            null: true,
            ..optional(
                "halt_patterns",
                PATTERNS,
                "A line that matches stops the loop: a person must act. Default: six built-in ones.",
            )
        },
    ],
    gone: &[],
    either: &[],
};

/// `budget`.
pub const BUDGET: Table = Table {
    keys: &[
        Key { default: Some("200"), ..cap("max_iterations", LARGE, "Ticks, over all runs.") },
        Key {
            default: Some("21600"),
            ..cap("max_runtime_s", LARGE, "Seconds that ticks took, over all runs.")
        },
        cap("max_wall_s", LARGE, "Seconds of wall time of one run, which then ends as at a deadline."),
        cap(
            "deadline",
            MOMENT,
            "The point in time (RFC 3339) after which no turn begins. One that runs then has a minute more.",
        ),
        Key {
            default: Some("5"),
            ..cap(
                "max_consecutive_failures",
                POSITIVE,
                "Failed ticks in a row. Rate-limited ticks do not count.",
            )
        },
        cap("max_tokens", LARGE, "Tokens of all peers, over all runs."),
        cap(
            "max_usd",
            Shape::Amount,
            "US dollars of all peers, over all runs. `peers run --max-usd` overrides it.",
        ),
        Key {
            default: Some("\"auto\""),
            ..optional(
                "max_usd_mode",
                Shape::Word {
                    words: &[
                        ("auto", "as `hard`, whoever pays"),
                        ("hard", "stop"),
                        ("warn", "one warning per cap"),
                        ("off", "ignore"),
                    ],
                    any_case: true,
                },
                "What a reached cap in dollars does.",
            )
        },
        cap(
            "max_tokens_since_progress",
            LARGE,
            "Tokens of all peers since the last progress: one more gate green than ever since the goals were accepted, or a bug closed.",
        ),
        cap(
            "max_usd_since_progress",
            Shape::Amount,
            "US dollars of all peers since the last progress; it binds whatever `max_usd_mode` says.",
        ),
        optional(
            "per_peer",
            Shape::Named { name: NAME, of: &Shape::Table(&PER_PEER) },
            "Caps of single peers, by name. A peer that reached one takes no more turns.",
        ),
    ],
    gone: &[],
    either: &[],
};

/// One entry of `budget.per_peer`.
pub const PER_PEER: Table = Table {
    keys: &[
        cap("max_tokens", LARGE, "Tokens of this peer, over all runs."),
        cap(
            "max_usd",
            Shape::Amount,
            "US dollars of this peer, over all runs; it binds where `max_usd_mode` is `hard`.",
        ),
    ],
    gone: &[],
    either: &[],
};

const MODEL_NAME: Text = Text { most: 200, filled: true, ..TEXT };

/// One entry of `prices`.
pub const PRICE: Table = Table {
    keys: &[
        Key {
            required: true,
            ..optional("input", Shape::Price, "US dollars for a million tokens of input.")
        },
        Key {
            null: true,
            ..optional("cached_input", Shape::Price, "For input that was read from a cache; absent: `input`.")
        },
        Key {
            null: true,
            ..optional("cache_write", Shape::Price, "For input that was written to one; absent: `input`.")
        },
        Key {
            required: true,
            ..optional("output", Shape::Price, "For a million tokens of output, reasoning included.")
        },
    ],
    gone: &[],
    either: &[],
};

/// `goals`.
pub const GOALS: Table = Table {
    keys: &[
        Key {
            default: Some("120"),
            ..optional("timeout_s", POSITIVE, "Seconds for a gate that has no `timeout_s` of its own.")
        },
        Key {
            default: Some("3"),
            ..optional(
                "convergence_n",
                POSITIVE,
                "Clean ticks in a row that a bug hunt asks for; nothing waits for them yet.",
            )
        },
        Key {
            default: Some("5"),
            ..optional(
                "stuck_halt_after",
                COUNT,
                "Stop when a watched gate was red so many ticks in a row; 0 = never.",
            )
        },
        Key {
            null: true,
            default: Some("null"),
            ..optional(
                "stuck_halt_gates",
                Shape::List { of: &GOAL, least: 0, most: usize::MAX },
                "The watched gates; `null`: `tests-pass` and `no-prior-regression`.",
            )
        },
        Key {
            default: Some("3"),
            ..optional(
                "idle_halt_after",
                COUNT,
                "Stop when so many ticks in a row, times the number of peers that may go, made no progress; 0 = never.",
            )
        },
        Key {
            default: Some("600"),
            ..optional(
                "trial_s",
                COUNT,
                "Seconds that the gates may take in a clean checkout before the first turn is paid for; 0 = they are not tried.",
            )
        },
        Key {
            default: Some("true"),
            ..optional("soft_consensus_required", Shape::Switch, "`false`: complete on hard gates alone.")
        },
        Key {
            default: Some("[]"),
            ..optional(
                "env",
                Shape::List { of: &VARIABLE, least: 0, most: usize::MAX },
                "Names of environment variables that gates ask for, besides the usual few; your own sandbox.yaml decides.",
            )
        },
        Key {
            null: true,
            ..optional(
                "parallel",
                POSITIVE,
                "Gates that run at the same time; null = 4, or the number of processors if that is less.",
            )
        },
        Key {
            default: Some("false"),
            ..optional(
                "strict_tree",
                Shape::Switch,
                "A gate that changes the work tree is red; gates run one after the other.",
            )
        },
    ],
    gone: &[
        (
            "describe_convergence_n",
            "this version has no describe mode yet; `convergence_n` counts clean ticks",
        ),
        (
            "stuck_progress_reset_gates",
            "this version has no `stuck_progress_reset_gates` yet; `stuck_halt_after` sets how long a gate may stay red",
        ),
    ],
    either: &[],
};

/// `bug_hunt`.
pub const BUG_HUNT: Table = Table {
    keys: &[Key {
        default: Some("[]"),
        ..optional(
            "test_globs",
            Shape::List { of: &GLOB, least: 0, most: 100 },
            "Further files that are tests, besides those that are known by their names and directories.",
        )
    }],
    gone: &[],
    either: &[],
};

const SKEPTIC: Table = Table {
    keys: &[
        Key { default: Some("true"), ..optional("enabled", Shape::Switch, "Whether there is one.") },
        Key { default: Some("1"), ..optional("rounds", POSITIVE, "Clean skeptic turns that are needed.") },
        Key {
            default: Some("3"),
            ..optional("max_attempts", POSITIVE, "Attempts before the loop stops as stuck.")
        },
    ],
    gone: &[],
    either: &[],
};

const PROMPT: Table = Table {
    keys: &[Key {
        default: Some("65536"),
        ..optional("max_bytes", POSITIVE, "Longest prompt in bytes; optional sections are cut first.")
    }],
    gone: &[],
    either: &[],
};

const VERIFY: Table = Table {
    keys: &[
        Key {
            null: true,
            ..optional("timeout_s", POSITIVE, "Seconds per gate and command; null = `goals.timeout_s`.")
        },
        Key {
            default: Some("[]"),
            ..optional(
                "commands",
                Shape::List { of: &Shape::Table(&COMMAND), least: 0, most: usize::MAX },
                "Further commands, after the hard gates.",
            )
        },
    ],
    gone: &[],
    either: &[],
};

/// `setup`.
const SETUP: Table = Table {
    keys: &[
        Key {
            default: Some("[]"),
            ..optional(
                "commands",
                Shape::List { of: &Shape::Table(&SETUP_COMMAND), least: 0, most: usize::MAX },
                "Run one after the other at the top of each clean checkout and kept copy.",
            )
        },
        Key {
            default: Some("[]"),
            ..optional(
                "paths",
                Shape::List { of: &SETUP_GLOB, least: 0, most: usize::MAX },
                "Globs, of lock files say: a kept copy is set up again when something there changed.",
            )
        },
    ],
    gone: &[("egress", "this version confines no network access yet, so it has no `egress`: remove it")],
    either: &[],
};

/// Globs of the repository.
const SETUP_GLOB: Shape = Shape::Text(Text { wrong: Some(crate::goal::glob), ..FILLED });

const SETUP_COMMAND: Table = Table {
    keys: &[
        Key {
            required: true,
            ..optional(
                "cmd",
                Shape::Text(Text { wrong: Some(argument), ..FILLED }),
                "The command, run by `/bin/sh -c`.",
            )
        },
        Key { null: true, ..optional("timeout_s", POSITIVE, "Seconds; absent: 900.") },
    ],
    gone: &[],
    either: &[],
};

const COMMAND: Table = Table {
    keys: &[
        Key { null: true, ..optional("name", ANY, "Its name; absent: the command.") },
        Key {
            required: true,
            ..optional(
                "cmd",
                Shape::Text(Text { wrong: Some(argument), ..FILLED }),
                "The command, run by `/bin/sh -c`.",
            )
        },
        Key { null: true, ..optional("timeout_s", POSITIVE, "Seconds; absent: `verify.timeout_s`.") },
    ],
    gone: &[],
    either: &[],
};

const OBSERVABILITY: Table = Table {
    keys: &[Key {
        default: Some("true"),
        ..optional(
            "tee_stream",
            Shape::Switch,
            "Write the agents' output to `.peers/log/peers/` while they work.",
        )
    }],
    gone: &[],
    either: &[],
};

const fn optional(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key { name, shape, required: false, null: false, default: None, about }
}

/// A cap, for which `null` means unlimited.
const fn cap(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key { null: true, ..optional(name, shape, about) }
}

const fn word(words: &'static [(&'static str, &'static str)]) -> Shape {
    Shape::Word { words, any_case: false }
}
