//! `config.yaml`: every key, its type, its limit and its default.
//!
//! Types refuse what they can while the file is parsed, so that the error shows the line. What
//! needs two keys to be seen together is checked by [`Config::check`].

use std::collections::BTreeSet;
use std::num::{NonZeroU32, NonZeroU64};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::goal::not_a_glob;
use crate::ids::{GoalId, PeerName};
use crate::money::Usd;

/// The whole file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "each field has the meaning of its key; docs/formats/config.md explains them"
)]
pub struct Config {
    #[serde(default)]
    pub driver: Driver,
    #[serde(default)]
    pub comm: Comm,
    #[serde(default)]
    pub peers: Vec<PeerSpec>,
    #[serde(default)]
    pub health: Health,
    #[serde(default)]
    pub budget: Budget,
    #[serde(default)]
    pub goals: GoalSettings,
    #[serde(default = "one")]
    pub max_retries: u32,
    #[serde(default = "eight")]
    pub recovery_interval: u32,
    #[serde(default)]
    pub verify: Verify,
    #[serde(default)]
    pub observability: Observability,
    #[serde(default)]
    pub skeptic: SkepticSettings,
    #[serde(default)]
    pub on_peer_unavailable: OnPeerUnavailable,
    #[serde(default)]
    pub prompt: PromptSettings,
    #[serde(default)]
    pub setup: Setup,
    #[serde(default)]
    pub pipeline_gates: bool,
}

fn one() -> u32 {
    1
}
fn eight() -> u32 {
    8
}
fn yes() -> bool {
    true
}

/// Who calls the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words say it")]
pub enum Driver {
    #[default]
    Orchestrator,
    Hooks,
    Sessions,
}

/// How peers talk to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Comm {
    /// By commits.
    #[default]
    Git,
    /// By commits and by files in `.peers/inbox/`.
    Hybrid,
}

/// One configured agent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "each field has the meaning of its key; docs/formats/config.md explains them"
)]
pub struct PeerSpec {
    pub name: PeerName,
    #[serde(default)]
    pub tool: Option<String>,
    pub argv: Vec<String>,
    #[serde(default)]
    pub prompt_mode: PromptMode,
    #[serde(default)]
    pub role: Role,
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub reasoning: Option<String>,
    #[serde(default)]
    pub provider: Option<String>,
}

impl PeerSpec {
    /// The tool: `tool`, or the peer's name where that is absent.
    #[must_use]
    pub fn tool_name(&self) -> &str {
        self.tool.as_deref().unwrap_or(self.name.as_str())
    }
}

/// How a peer gets its prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptMode {
    /// On standard input.
    #[default]
    Stdin,
    /// In a private file whose path replaces `{PROMPT_FILE}`.
    File,
    /// In place of `{PROMPT}` in the command line.
    ArgvSubstitute,
}

/// A peer's part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Takes its turns.
    #[default]
    Default,
    /// A spare: takes turns only while no default peer can.
    Recovery,
    /// Takes its turns; its prompt asks it to observe and attest.
    Witness,
    /// Takes its turns; its prompt asks it to object.
    Debater,
}

/// Process supervision.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(
    missing_docs,
    reason = "each field has the meaning of its key; docs/formats/config.md explains them"
)]
pub struct Health {
    pub idle_timeout_s: NonZeroU32,
    pub absolute_max_runtime_s: NonZeroU32,
    pub buf_cap_bytes: NonZeroU32,
    pub error_patterns: Option<Vec<String>>,
    pub halt_patterns: Option<Vec<String>>,
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

impl Default for Health {
    fn default() -> Self {
        Self {
            idle_timeout_s: nz32(900),
            absolute_max_runtime_s: nz32(7200),
            buf_cap_bytes: nz32(2 * 1024 * 1024),
            error_patterns: None,
            halt_patterns: None,
        }
    }
}

/// Caps. `null` = unlimited, for every one of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(
    missing_docs,
    reason = "each field has the meaning of its key; docs/formats/config.md explains them"
)]
pub struct Budget {
    pub max_iterations: Option<NonZeroU64>,
    pub max_runtime_s: Option<NonZeroU64>,
    pub max_wall_s: Option<NonZeroU64>,
    pub max_consecutive_failures: Option<NonZeroU32>,
    pub max_tokens: Option<NonZeroU64>,
    pub max_usd: Option<PositiveUsd>,
    pub max_usd_mode: UsdMode,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            max_iterations: Some(nz64(200)),
            max_runtime_s: Some(nz64(21_600)),
            max_wall_s: None,
            max_consecutive_failures: Some(nz32(5)),
            max_tokens: None,
            max_usd: None,
            max_usd_mode: UsdMode::Auto,
        }
    }
}

/// An amount above zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct PositiveUsd(pub Usd);

impl TryFrom<f64> for PositiveUsd {
    type Error = String;
    fn try_from(dollars: f64) -> Result<Self, String> {
        match Usd::from_f64(dollars) {
            Some(usd) if usd > Usd::ZERO => Ok(Self(usd)),
            _ => Err(format!("{dollars} is not an amount of dollars above zero")),
        }
    }
}

impl From<PositiveUsd> for f64 {
    fn from(usd: PositiveUsd) -> f64 {
        usd.0.as_f64()
    }
}

/// What a reached money cap does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UsdMode {
    /// Decided from how the peers are billed.
    #[default]
    Auto,
    /// The loop stops.
    Hard,
    /// One warning for each cap value.
    Warn,
    /// Nothing.
    Off,
}

/// Gate settings.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(
    missing_docs,
    reason = "each field has the meaning of its key; docs/formats/config.md explains them"
)]
pub struct GoalSettings {
    pub timeout_s: NonZeroU32,
    pub convergence_n: NonZeroU32,
    pub stuck_halt_after: u32,
    pub stuck_halt_gates: Vec<GoalId>,
    pub soft_consensus_required: bool,
    pub env: Vec<String>,
    pub parallel: Option<NonZeroU32>,
    pub strict_tree: bool,
}

impl Default for GoalSettings {
    fn default() -> Self {
        let watched = ["tests-pass", "no-prior-regression"];
        Self {
            timeout_s: nz32(120),
            convergence_n: nz32(3),
            stuck_halt_after: 5,
            stuck_halt_gates: watched.iter().filter_map(|id| GoalId::new(*id).ok()).collect(),
            soft_consensus_required: true,
            env: Vec::new(),
            parallel: None,
            strict_tree: false,
        }
    }
}

/// `peers verify`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(
    missing_docs,
    reason = "each field has the meaning of its key; docs/formats/config.md explains them"
)]
pub struct Verify {
    pub timeout_s: Option<NonZeroU32>,
    pub commands: Vec<VerifyCommand>,
}

/// One more command of `peers verify`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "each field has the meaning of its key; docs/formats/config.md explains them"
)]
pub struct VerifyCommand {
    #[serde(default)]
    pub name: Option<String>,
    pub cmd: String,
    #[serde(default)]
    pub timeout_s: Option<NonZeroU32>,
}

/// What a fresh checkout needs before gates can judge it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(
    missing_docs,
    reason = "each field has the meaning of its key; docs/formats/config.md explains them"
)]
pub struct Setup {
    pub commands: Vec<SetupCommand>,
    pub paths: Vec<String>,
}

/// One command of `setup`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "each field has the meaning of its key; docs/formats/config.md explains them"
)]
pub struct SetupCommand {
    pub cmd: String,
    #[serde(default)]
    pub timeout_s: Option<NonZeroU32>,
}

/// What is kept for looking at.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "each field has the meaning of its key; docs/formats/config.md explains them"
)]
pub struct Observability {
    #[serde(default = "yes")]
    pub tee_stream: bool,
}

impl Default for Observability {
    fn default() -> Self {
        Self { tee_stream: true }
    }
}

/// The adversarial turn before `complete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(
    missing_docs,
    reason = "each field has the meaning of its key; docs/formats/config.md explains them"
)]
pub struct SkepticSettings {
    pub enabled: bool,
    pub rounds: NonZeroU32,
    pub max_attempts: NonZeroU32,
}

impl Default for SkepticSettings {
    fn default() -> Self {
        Self { enabled: true, rounds: nz32(1), max_attempts: nz32(3) }
    }
}

/// What happens when a peer needs its operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnPeerUnavailable {
    /// Halt with two peers, continue with more.
    #[default]
    Auto,
    /// Stop the loop.
    Halt,
    /// Go on with the others while at least two are left.
    Continue,
}

/// Prompt assembly.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(
    missing_docs,
    reason = "each field has the meaning of its key; docs/formats/config.md explains them"
)]
pub struct PromptSettings {
    pub max_bytes: NonZeroU32,
}

impl Default for PromptSettings {
    fn default() -> Self {
        Self { max_bytes: nz32(65_536) }
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

/// Longest argument of a program that the kernel takes, in bytes.
const ARGUMENT: usize = 128 * 1024 - 1;

/// Why a text cannot be given to a program as an argument, readable after its name.
pub(crate) fn not_an_argument(text: &str) -> Option<String> {
    if text.contains('\0') {
        return Some("has a NUL character in it, which no program can be given; remove the `\\0`".into());
    }
    (text.len() > ARGUMENT).then(|| {
        format!("is {} bytes long; an argument has at most {ARGUMENT}: put it into a file", text.len())
    })
}

/// Whether this can be the name of an environment variable.
pub(crate) fn is_variable(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_ascii_digit())
}

/// A file that parses but makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{at}: {what}")]
pub struct ConfigError {
    /// Where, as a key path.
    pub at: String,
    /// What is wrong and what to write instead.
    pub what: String,
    /// A text to look for in the file, to find the line.
    pub needle: String,
}

impl Config {
    /// Checks what the types alone cannot.
    ///
    /// # Errors
    /// All problems that were found.
    pub fn check(&self) -> Result<(), Vec<ConfigError>> {
        let mut errors = Vec::new();
        let mut fail =
            |at: String, what: String, needle: String| errors.push(ConfigError { at, what, needle });
        if self.peers.len() < 2 {
            fail(
                "peers".into(),
                format!("needs at least two peers, has {}; one agent cannot review itself", self.peers.len()),
                "peers:".into(),
            );
        }
        let mut seen = BTreeSet::new();
        for (i, peer) in self.peers.iter().enumerate() {
            let at = format!("peers[{i}] ({})", peer.name);
            let needle = format!("name: {}", peer.name);
            if !seen.insert(&peer.name) {
                fail(at.clone(), "this name stands twice; names must be unique".into(), needle.clone());
            }
            if RESERVED_NAMES.iter().any(|r| r.eq_ignore_ascii_case(peer.name.as_str())) {
                fail(
                    at.clone(),
                    format!("`{}` is a reserved name; choose another", peer.name),
                    needle.clone(),
                );
            }
            if peer.argv.is_empty() || peer.argv.first().is_some_and(|a| a.trim().is_empty()) {
                fail(
                    at.clone(),
                    "`argv` is empty; give the program and its arguments".into(),
                    needle.clone(),
                );
            }
            for (n, element) in peer.argv.iter().enumerate() {
                if let Some(what) = not_an_argument(element) {
                    fail(at.clone(), format!("`argv[{n}]` {what}"), needle.clone());
                }
            }
            let has = |mark: &str| peer.argv.iter().any(|a| a.contains(mark));
            let misplaced = match peer.prompt_mode {
                PromptMode::Stdin => (has("{PROMPT}") || has("{PROMPT_FILE}"))
                    .then_some("has a prompt placeholder in `argv`, but `prompt_mode: stdin`; set `prompt_mode: argv-substitute` or `file`, or remove it"),
                PromptMode::File => (!has("{PROMPT_FILE}")).then_some("`prompt_mode: file` needs `{PROMPT_FILE}` in `argv`"),
                PromptMode::ArgvSubstitute => (!has("{PROMPT}")).then_some("`prompt_mode: argv-substitute` needs `{PROMPT}` in `argv`"),
            };
            if let Some(what) = misplaced {
                fail(at.clone(), what.into(), needle.clone());
            }
            self.check_semantic(peer, &at, &needle, &mut fail);
        }
        if self.peers.len() >= 2 && self.peers.iter().filter(|p| p.role != Role::Recovery).count() == 0 {
            fail(
                "peers".into(),
                "every peer has `role: recovery`; at least one must be a default peer".into(),
                "peers:".into(),
            );
        }
        for (key, list) in [
            ("health.error_patterns", &self.health.error_patterns),
            ("health.halt_patterns", &self.health.halt_patterns),
        ] {
            let Some(list) = list else { continue };
            if list.len() > 50 {
                fail(
                    key.into(),
                    format!("has {} entries; at most 50", list.len()),
                    key.trim_start_matches("health.").into(),
                );
            }
            for (i, pattern) in list.iter().enumerate().filter(|(_, p)| p.len() > 1024) {
                fail(
                    format!("{key}[{i}]"),
                    format!("is {} bytes long; at most 1024", pattern.len()),
                    key.trim_start_matches("health.").into(),
                );
            }
        }
        for (i, command) in self.verify.commands.iter().enumerate() {
            if command.cmd.trim().is_empty() {
                fail(format!("verify.commands[{i}]"), "`cmd` is empty".into(), "cmd:".into());
            } else if let Some(what) = not_an_argument(&command.cmd) {
                fail(format!("verify.commands[{i}]"), format!("`cmd` {what}"), "commands:".into());
            }
        }
        for (i, command) in self.setup.commands.iter().enumerate() {
            if command.cmd.trim().is_empty() {
                fail(format!("setup.commands[{i}]"), "`cmd` is empty".into(), "setup:".into());
            } else if let Some(what) = not_an_argument(&command.cmd) {
                fail(format!("setup.commands[{i}]"), format!("`cmd` {what}"), "setup:".into());
            }
        }
        for glob in &self.setup.paths {
            if let Some(what) = not_a_glob(glob) {
                let shown: String = glob.chars().take(60).collect();
                let what = format!("`{}` {what}", shown.escape_debug());
                fail("setup.paths".into(), what, "setup:".into());
            }
        }
        for (i, name) in self.goals.env.iter().enumerate() {
            if !is_variable(name) {
                let shown: String = name.chars().take(40).collect();
                fail(
                    format!("goals.env[{i}]"),
                    format!(
                        "`{}` is no name of an environment variable; give names alone, without values",
                        shown.escape_debug()
                    ),
                    "env:".into(),
                );
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    #[expect(clippy::unused_self, reason = "kept beside `check`, which it is a part of")]
    fn check_semantic(
        &self,
        peer: &PeerSpec,
        at: &str,
        needle: &str,
        fail: &mut impl FnMut(String, String, String),
    ) {
        let semantic = [("model", &peer.model), ("reasoning", &peer.reasoning), ("provider", &peer.provider)];
        for (key, value) in semantic {
            let Some(value) = value else { continue };
            if value.trim().is_empty() {
                fail(at.into(), format!("`{key}` is empty; remove it or give a value"), needle.into());
            }
        }
        let allowed: Option<(&[&str], &[&str])> = match peer.tool_name() {
            "claude" => Some((&["low", "medium", "high", "xhigh", "max"], &["anthropic", "openrouter"])),
            "codex" => Some((&["minimal", "low", "medium", "high", "xhigh"], &["openai", "openrouter"])),
            "opencode" => Some((&["minimal", "low", "medium", "high", "xhigh", "max"], &[])),
            _ => None,
        };
        match allowed {
            None => {
                for (key, value) in semantic {
                    if value.is_some() {
                        fail(
                            at.into(),
                            format!(
                                "`{key}` works for the tools claude, codex and opencode only; put it in `argv`"
                            ),
                            needle.into(),
                        );
                    }
                }
            }
            Some((reasoning, provider)) => {
                for (key, value, words) in
                    [("reasoning", &peer.reasoning, reasoning), ("provider", &peer.provider, provider)]
                {
                    let Some(value) = value else { continue };
                    if !words.contains(&value.trim().to_ascii_lowercase().as_str()) {
                        let hint = if words.is_empty() {
                            "leave it out and write `model: <provider>/<model>`".to_owned()
                        } else {
                            format!("one of: {}", words.join(", "))
                        };
                        fail(
                            at.into(),
                            format!(
                                "`{key}: {}` is unknown for {}; {hint}",
                                value.escape_debug(),
                                peer.tool_name()
                            ),
                            needle.into(),
                        );
                    }
                }
            }
        }
    }
}
