//! `config.yaml`: every key, its type, its limit, its default and what it means.
//!
//! Each is declared once, here ([`crate::keys`]). What needs two keys to be seen together is checked by
//! [`Config::check`].

mod check;
mod hooks;
mod tools;
mod values;

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};

use crate::ids::{GoalId, PeerName};
use crate::keys::{Described, FILLED, Shape, TEXT, Text, keys, words};
use crate::time::Timestamp;

pub use check::{ConfigError, Step, check_hooks, check_peers};
pub(crate) use check::{argument, directory, file, not_an_argument, pattern, reserved, sha256, variable};
pub use hooks::{Hook, HookCommand, Hooks};
pub use tools::ToolSpec;
pub use values::{PositiveUsd, Rate};

const PEERS: Shape = Shape::List { of: &PeerSpec::SHAPE, least: 2, most: usize::MAX };
const ARGUMENT: Shape = Shape::Text(Text { wrong: Some(argument), ..TEXT });
const ARGV: Shape = Shape::List { of: &ARGUMENT, least: 1, most: usize::MAX };
/// A text that says something, or nothing at all.
pub(crate) const SAID: Shape = Shape::Maybe(&Shape::Text(FILLED));
const COMMAND: Shape = Shape::Text(Text { wrong: Some(argument), ..FILLED });
const PATTERNS: Shape =
    Shape::Maybe(&Shape::List { of: &Shape::Text(Text { most: 1024, ..TEXT }), least: 0, most: 50 });
const TEST_GLOBS: Shape = Shape::List {
    of: &Shape::Text(Text { most: 1024, wrong: Some(pattern), ..FILLED }),
    least: 0,
    most: 100,
};
const LAYOUT: Shape = Shape::List {
    of: &Shape::Text(Text { most: 1024, wrong: Some(directory), ..FILLED }),
    least: 0,
    most: 100,
};
const TEST_COMMAND: Shape = Shape::Maybe(&COMMAND);
const TEST_REPORT: Shape = Shape::Maybe(&Shape::Text(Text { most: 1024, wrong: Some(file), ..FILLED }));
const DIGESTS: Shape = Shape::List {
    of: &Shape::Text(Text { pattern: Some("^[0-9a-f]{64}$"), wrong: Some(sha256), ..TEXT }),
    least: 0,
    most: 1000,
};
const SETUP_GLOBS: Shape = Shape::List {
    of: &Shape::Text(Text { wrong: Some(crate::goal::glob), ..FILLED }),
    least: 0,
    most: usize::MAX,
};
/// Names of environment variables.
pub(crate) const VARIABLES: Shape = Shape::List {
    of: &Shape::Text(Text { pattern: Some("^[A-Za-z_][A-Za-z0-9_]*$"), wrong: Some(variable), ..TEXT }),
    least: 0,
    most: usize::MAX,
};
const TIER: Shape = Shape::Whole { least: 0, most: 3 };
const PRICES: Shape = Shape::Named { name: Text { most: 200, ..FILLED }, of: &Price::SHAPE };

keys! {
    /// The whole file.
    pub struct Config: Default {
        /// Who calls the loop. With `hooks` and `sessions`, commits that appear while no turn runs are nobody's.
        driver: Driver = Driver::Orchestrator,
        /// How peers talk to each other.
        comm: Comm = Comm::Git,
        /// The agents, in the order of their turns; at least two.
        peers: Vec<PeerSpec> as PEERS = Vec::new(),
        /// The older form of `peers`: one agent per key, in this order. The key is its name and its tool.
        tools: BTreeMap<PeerName, ToolSpec> = BTreeMap::new(),
        /// Supervision of one agent process.
        health: Health = Health::default(),
        /// Caps. `null` means unlimited, for each of them.
        budget: Budget = Budget::default(),
        /// Settings of gates and reviews; the goals stand in goals.yaml.
        goals: GoalSettings = GoalSettings::default(),
        /// Gates with `expensive: true` run while the next peer works; only where peers are confined.
        pipeline_gates: bool = false,
        /// The bug ledger.
        bug_hunt: BugHunt = BugHunt::default(),
        /// What the built-in checks look at.
        checks: Checks = Checks::default(),
        /// Further attempts after a failed turn before the next peer takes over.
        max_retries: u32 = 1,
        /// Ticks until a degraded peer gets one recovery turn; 0 = never.
        recovery_interval: u32 = 8,
        /// What happens when a peer needs its operator.
        on_peer_unavailable: OnPeerUnavailable = OnPeerUnavailable::Auto,
        /// Seconds that a peer may wait for its service, rate limits and usage caps alike; beyond that it counts as unavailable.
        rate_limit_max_wait_s: NonZeroU32 = nz32(21_600),
        /// What models cost, by id, for tools that report tokens alone; each in place of the entry of that id in the built-in table.
        prices: BTreeMap<String, Price> as PRICES = BTreeMap::new(),
        /// The adversarial turn before `complete`.
        skeptic: SkepticSettings = SkepticSettings::default(),
        /// How prompts are made.
        prompt: PromptSettings = PromptSettings::default(),
        /// What a checkout needs before gates can judge it.
        setup: Setup = Setup::default(),
        /// `peers verify`.
        verify: Verify = Verify::default(),
        /// Commands of yours around turns and gates.
        hooks: Hooks = Hooks::default(),
        /// What is kept for looking at.
        observability: Observability = Observability::default(),
        /// What the project asks for beyond the operator's own sandbox.yaml; it loosens nothing.
        sandbox: Narrower = Narrower::default(),
    }
    gone {
        "graphify_mcp" => "this version has no `graphify_mcp` yet: remove it",
        "egress_allow" => "hosts are listed in your own ~/.config/peers/sandbox.yaml, under `peers.allow`: remove `egress_allow`",
        "research" => "this version has no research workflow yet: remove `research`",
        "notify" => "this version has no `notify` yet: act on the exit code of `peers run`",
        "dirty" => "this version has no `dirty` yet: uncommitted changes are kept and told",
    }
    either ["peers", "tools"]
}

words! {
    /// Who calls the loop.
    #[derive(Default)]
    pub enum Driver {
        /// `peers run`
        #[default]
        Orchestrator = "orchestrator",
        /// the stop hooks of your own sessions of an agent
        Hooks = "hooks",
        /// a terminal per agent
        Sessions = "sessions",
    }
}

words! {
    /// How peers talk to each other.
    #[derive(Default)]
    pub enum Comm {
        /// by commits
        #[default]
        Git = "git",
        /// also by files in their drop boxes
        Hybrid = "hybrid",
    }
}

keys! {
    /// One configured agent.
    #[derive(PartialEq, Eq)]
    pub struct PeerSpec {
        /// A letter or digit, then at most 31 letters, digits, `_` or `-`; unique.
        name: PeerName,
        /// `claude`, `codex`, `opencode`, `acp` for a program that speaks the Agent Client Protocol, or another word for a program without an adapter of its own; absent: the name.
        tool: Option<String> = None,
        /// The program and its arguments; no shell is involved.
        argv: Vec<String> as ARGV,
        /// How the prompt reaches the program.
        prompt_mode: PromptMode = PromptMode::Stdin,
        /// The part that the peer has.
        role: Role = Role::Default,
        /// The model, for claude, codex and opencode; translated into arguments. What `argv` says itself wins.
        model: Option<String> as SAID = None,
        /// claude: low, medium, high, xhigh, max; codex: minimal, low, medium, high, xhigh; opencode: all of these.
        reasoning: Option<String> as SAID = None,
        /// claude: anthropic, openrouter; codex: openai, openrouter; opencode: none, write `model: <provider>/<model>`.
        provider: Option<String> as SAID = None,
        /// Only for acp: what the agent is answered when it asks whether it may use a tool. Default: allow.
        permissions: Option<Permissions> = None,
    }
}

impl PeerSpec {
    /// The tool: `tool`, or the peer's name where that is absent.
    #[must_use]
    pub fn tool_name(&self) -> &str {
        self.tool.as_deref().unwrap_or(self.name.as_str())
    }
}

words! {
    /// What an agent is answered that asks whether it may use a tool.
    #[derive(Default)]
    pub enum Permissions {
        /// yes, each time
        #[default]
        Allow = "allow",
        /// no, each time
        Reject = "reject",
    }
}

words! {
    /// How a peer gets its prompt.
    #[derive(Default)]
    pub enum PromptMode {
        /// on standard input
        #[default]
        Stdin = "stdin",
        /// the path of a private file replaces `{PROMPT_FILE}` in `argv`
        File = "file",
        /// the text replaces `{PROMPT}` in every argument, where any process on the machine can read it
        ArgvSubstitute = "argv-substitute",
    }
}

words! {
    /// A peer's part.
    #[derive(Default)]
    pub enum Role {
        /// takes its turns
        #[default]
        Default = "default",
        /// a spare: takes turns only while no other peer can
        Recovery = "recovery",
        /// in the rotation, with another task in the prompt: observe and attest
        Witness = "witness",
        /// in the rotation, with another task in the prompt: object
        Debater = "debater",
    }
}

const fn nz32(n: u32) -> NonZeroU32 {
    match NonZeroU32::new(n) {
        Some(n) => n,
        None => NonZeroU32::MIN,
    }
}
const fn nz64(n: u64) -> NonZeroU64 {
    match NonZeroU64::new(n) {
        Some(n) => n,
        None => NonZeroU64::MIN,
    }
}

keys! {
    /// Process supervision.
    pub struct Health: Default {
        /// Seconds without a sign of life before the process is ended.
        idle_timeout_s: NonZeroU32 = nz32(900),
        /// Seconds before it is ended in any case.
        absolute_max_runtime_s: NonZeroU32 = nz32(7200),
        /// Seconds without output after which a process is ended whose whole tree waits for nothing but itself: no thread runs or waits for input, no answer lies unread on a connection. Linux; `null` = off.
        hang_kill_s: Option<NonZeroU32> = None,
        /// Bytes kept of each output stream, half from its beginning and half from its end.
        buf_cap_bytes: NonZeroU32 = nz32(2 * 1024 * 1024),
        /// A line that matches ends the turn as an API error, worth another attempt. Case-sensitive, without look-around. Default: three built-in ones.
        error_patterns: Option<Vec<String>> as PATTERNS = None,
        /// A line that matches stops the loop: a person must act. Default: six built-in ones.
        halt_patterns: Option<Vec<String>> as PATTERNS = None,
    }
}

keys! {
    /// Caps. `null` = unlimited, for every one of them.
    #[derive(PartialEq)]
    pub struct Budget: Default {
        /// Ticks, over all runs.
        max_iterations: Option<NonZeroU64> = Some(nz64(200)),
        /// Seconds that ticks took, over all runs.
        max_runtime_s: Option<NonZeroU64> = Some(nz64(21_600)),
        /// Seconds of wall time of one run, which then ends as at a deadline.
        max_wall_s: Option<NonZeroU64> = None,
        /// The point in time (RFC 3339) after which no turn begins. One that runs then has a minute more.
        deadline: Option<Timestamp> = None,
        /// Failed ticks in a row. Rate-limited ticks do not count.
        max_consecutive_failures: Option<NonZeroU32> = Some(nz32(5)),
        /// Tokens of all peers, over all runs.
        max_tokens: Option<NonZeroU64> = None,
        /// US dollars of all peers, over all runs. `peers run --max-usd` overrides it.
        max_usd: Option<PositiveUsd> = None,
        /// What a reached cap in dollars does.
        max_usd_mode: UsdMode = UsdMode::Auto,
        /// Tokens of all peers since the last progress: one more gate green than ever since the goals were accepted, or a bug closed.
        max_tokens_since_progress: Option<NonZeroU64> = None,
        /// US dollars of all peers since the last progress; it binds whatever `max_usd_mode` says.
        max_usd_since_progress: Option<PositiveUsd> = None,
        /// Caps of single peers, by name. A peer that reached one takes no more turns.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        per_peer: BTreeMap<PeerName, PeerBudget> = BTreeMap::new(),
    }
}

keys! {
    /// Caps of one peer, over all runs.
    #[derive(Copy, PartialEq, Eq)]
    pub struct PeerBudget: Default {
        /// Tokens of this peer, over all runs.
        max_tokens: Option<NonZeroU64> = None,
        /// US dollars of this peer, over all runs; it binds where `max_usd_mode` is `hard`.
        max_usd: Option<PositiveUsd> = None,
    }
}

words! {
    /// What a reached money cap does.
    #[derive(Default)]
    pub enum UsdMode [any_case] {
        /// as `hard`, whoever pays
        #[default]
        Auto = "auto",
        /// stop
        Hard = "hard",
        /// one warning per cap
        Warn = "warn",
        /// ignore
        Off = "off",
    }
}

keys! {
    /// What a model costs, in dollars for one million tokens.
    #[derive(Copy, PartialEq, Eq)]
    pub struct Price {
        /// US dollars for a million tokens of input.
        input: Rate,
        /// For input that was read from a cache; absent: `input`.
        cached_input: Option<Rate> = None,
        /// For input that was written to one; absent: `input`.
        cache_write: Option<Rate> = None,
        /// For a million tokens of output, reasoning included.
        output: Rate,
    }
}

keys! {
    /// Gate settings.
    pub struct GoalSettings: Default {
        /// Seconds for a gate that has no `timeout_s` of its own.
        timeout_s: NonZeroU32 = nz32(120),
        /// Clean ticks in a row that `check: convergence` asks for, which the mode `thorough` uses.
        convergence_n: NonZeroU32 = nz32(3),
        /// Stop when a watched gate was red so many ticks in a row; 0 = never.
        stuck_halt_after: u32 = 5,
        /// Stop when so many ticks in a row, times the number of peers that may go, made no progress; 0 = never.
        idle_halt_after: u32 = 3,
        /// Seconds that the gates may take in a clean checkout before the first turn is paid for; 0 = they are not tried.
        trial_s: u32 = 600,
        /// The watched gates; `null`: `tests-pass` and `no-prior-regression`.
        stuck_halt_gates: Option<Vec<GoalId>> = None,
        /// `false`: complete on hard gates alone.
        soft_consensus_required: bool = true,
        /// Names of environment variables that gates ask for, besides the usual few; your own sandbox.yaml decides.
        env: Vec<String> as VARIABLES = Vec::new(),
        /// Gates that run at the same time; null = 4, or the number of processors if that is less.
        parallel: Option<NonZeroU32> = None,
        /// A gate that changes the work tree is red; gates run one after the other.
        strict_tree: bool = false,
    }
    gone {
        "describe_convergence_n" => "write it into the goal: `check: docs-converged`, `args: [--n, \"2\"]`",
        "stuck_progress_reset_gates" => "this version has no `stuck_progress_reset_gates` yet; `stuck_halt_after` sets how long a gate may stay red",
    }
}

keys! {
    /// The bug ledger.
    pub struct BugHunt: Default {
        /// Further files that are tests, besides those that are known by their names and directories.
        test_globs: Vec<String> as TEST_GLOBS = Vec::new(),
    }
}

keys! {
    /// What the built-in checks look at.
    #[derive(PartialEq, Eq)]
    pub struct Checks: Default {
        /// Directories of the sources, from the top of the repository; empty: by the rules of each language.
        layout: Vec<String> as LAYOUT = Vec::new(),
        /// A check that finds no source file is skipped; else it fails, since it looked at nothing.
        allow_empty: bool = false,
        /// What `no-secrets` finds and is none: the number that it prints.
        allow_secrets: Vec<String> as DIGESTS = Vec::new(),
        /// The command that runs all tests, by `/bin/sh -c`; absent: what the manifests name.
        test_command: Option<String> as TEST_COMMAND = None,
        /// The `JUnit` report that it writes, from the top of the repository; absent: its exit code says everything.
        test_report: Option<String> as TEST_REPORT = None,
    }
}

keys! {
    /// `peers verify`.
    pub struct Verify: Default {
        /// Seconds per gate and command; null = `goals.timeout_s`.
        timeout_s: Option<NonZeroU32> = None,
        /// Further commands, after the hard gates.
        commands: Vec<VerifyCommand> = Vec::new(),
    }
}

keys! {
    /// One more command of `peers verify`.
    #[derive(PartialEq, Eq)]
    pub struct VerifyCommand {
        /// Its name; absent: the command.
        name: Option<String> = None,
        /// The command, run by `/bin/sh -c`.
        cmd: String as COMMAND,
        /// Seconds; absent: `verify.timeout_s`.
        timeout_s: Option<NonZeroU32> = None,
    }
}

keys! {
    /// What a fresh checkout needs before gates can judge it.
    #[derive(PartialEq, Eq)]
    pub struct Setup: Default {
        /// Run one after the other at the top of each clean checkout and kept copy.
        commands: Vec<SetupCommand> = Vec::new(),
        /// Globs, of lock files say: a kept copy is set up again when something there changed.
        paths: Vec<String> as SETUP_GLOBS = Vec::new(),
    }
    gone {
        "egress" => "`setup` has the network of this machine: remove `egress`",
    }
}

keys! {
    /// One command of `setup`.
    #[derive(PartialEq, Eq)]
    pub struct SetupCommand {
        /// The command, run by `/bin/sh -c`.
        cmd: String as COMMAND,
        /// Seconds; absent: 900.
        timeout_s: Option<NonZeroU32> = None,
    }
}

keys! {
    /// What is kept for looking at.
    pub struct Observability: Default {
        /// Write the agents' output to `.peers/log/peers/` while they work.
        tee_stream: bool = true,
    }
}

keys! {
    /// What the project asks for beyond the operator's own `sandbox.yaml`.
    #[derive(PartialEq, Eq)]
    pub struct Narrower: Default {
        /// The least tier of a sandbox: 1 landlock, 2 bwrap, 3 podman.
        require: u8 as TIER = 0,
        /// What agents reach at most; absent: what the operator says.
        net: Option<NarrowNet> = None,
    }
}

words! {
    /// What agents reach at most.
    pub enum NarrowNet {
        /// their models and hosts that the operator lists; and gates have no network
        Proxy = "proxy",
        /// nothing, and gates and `setup` have no network
        None = "none",
    }
}

keys! {
    /// The adversarial turn before `complete`.
    #[derive(PartialEq, Eq)]
    pub struct SkepticSettings: Default {
        /// Whether there is one.
        enabled: bool = true,
        /// Clean skeptic turns that are needed.
        rounds: NonZeroU32 = nz32(1),
        /// Attempts before the loop stops as stuck.
        max_attempts: NonZeroU32 = nz32(3),
    }
}

words! {
    /// What happens when a peer needs its operator.
    #[derive(Default)]
    pub enum OnPeerUnavailable {
        /// halt with two peers, continue with more
        #[default]
        Auto = "auto",
        /// stop the loop
        Halt = "halt",
        /// go on with the others while at least two are left
        Continue = "continue",
    }
}

keys! {
    /// Prompt assembly.
    pub struct PromptSettings: Default {
        /// Longest prompt in bytes; optional sections are cut first.
        max_bytes: NonZeroU32 = nz32(65_536),
    }
}

/// Names that no peer may have.
pub const RESERVED_NAMES: [&str; 13] = [
    "peers-substrate",
    "peers-init",
    "operator",
    "foreign",
    "archive",
    "comms",
    "log",
    "logs",
    "checks",
    "hooks",
    "queue",
    "inbox",
    // A stop reason is read by it.
    "all-peers-degraded",
];
