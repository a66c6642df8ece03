//! `config.yaml`: every key, its type, its limit and its default.
//!
//! [`crate::keys::config`] describes the same keys as data; the reader of the file tells by it every
//! mistake at its place. What needs two keys to be seen together is checked by [`Config::check`].

mod check;
mod hooks;
mod tools;

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};

use serde::{Deserialize, Deserializer, Serialize};

use crate::ids::{GoalId, PeerName};
use crate::money::Usd;
use crate::time::Timestamp;

pub use check::{ConfigError, Step, check_hooks, check_peers};
pub(crate) use check::{argument, not_an_argument, pattern, reserved, variable};
pub use hooks::{Hook, HookCommand, Hooks};
pub use tools::Tools;

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
    /// The older form of `peers`; see [`Config::promote`].
    #[serde(default)]
    pub tools: Tools,
    #[serde(default)]
    pub health: Health,
    #[serde(default)]
    pub budget: Budget,
    #[serde(default)]
    pub goals: GoalSettings,
    #[serde(default)]
    pub bug_hunt: BugHunt,
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
    #[serde(default = "six_hours")]
    pub rate_limit_max_wait_s: NonZeroU32,
    #[serde(default)]
    pub prices: BTreeMap<String, Price>,
    #[serde(default)]
    pub prompt: PromptSettings,
    #[serde(default)]
    pub setup: Setup,
    #[serde(default)]
    pub pipeline_gates: bool,
    #[serde(default)]
    pub hooks: Hooks,
}

fn one() -> u32 {
    1
}
fn eight() -> u32 {
    8
}
fn six_hours() -> NonZeroU32 {
    nz32(21_600)
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
    /// Of the tool `acp` alone.
    #[serde(default)]
    pub permissions: Option<Permissions>,
}

/// What an agent is answered that asks whether it may use a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permissions {
    /// Yes, each time: nobody is there to be asked.
    #[default]
    Allow,
    /// No, each time.
    Reject,
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
    pub hang_kill_s: Option<NonZeroU32>,
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
            hang_kill_s: None,
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
    pub deadline: Option<Timestamp>,
    pub max_consecutive_failures: Option<NonZeroU32>,
    pub max_tokens: Option<NonZeroU64>,
    pub max_usd: Option<PositiveUsd>,
    pub max_usd_mode: UsdMode,
    pub max_tokens_since_progress: Option<NonZeroU64>,
    pub max_usd_since_progress: Option<PositiveUsd>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub per_peer: BTreeMap<PeerName, PeerBudget>,
}

/// Caps of one peer, over all runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(
    missing_docs,
    reason = "each field has the meaning of its key; docs/formats/config.md explains them"
)]
pub struct PeerBudget {
    pub max_tokens: Option<NonZeroU64>,
    pub max_usd: Option<PositiveUsd>,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            max_iterations: Some(nz64(200)),
            max_runtime_s: Some(nz64(21_600)),
            max_wall_s: None,
            deadline: None,
            max_consecutive_failures: Some(nz32(5)),
            max_tokens: None,
            max_usd: None,
            max_usd_mode: UsdMode::Auto,
            max_tokens_since_progress: None,
            max_usd_since_progress: None,
            per_peer: BTreeMap::new(),
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
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

impl<'de> Deserialize<'de> for UsdMode {
    /// In any case of letters.
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        Ok(match text.to_ascii_lowercase().as_str() {
            "auto" => Self::Auto,
            "hard" => Self::Hard,
            "warn" => Self::Warn,
            "off" => Self::Off,
            _ => return Err(serde::de::Error::unknown_variant(&text, &["auto", "hard", "warn", "off"])),
        })
    }
}

/// What a model costs, in dollars for one million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "each field has the meaning of its key; docs/formats/config.md explains them"
)]
pub struct Price {
    pub input: Rate,
    #[serde(default)]
    pub cached_input: Option<Rate>,
    #[serde(default)]
    pub cache_write: Option<Rate>,
    pub output: Rate,
}

/// A price, zero included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Rate(pub Usd);

impl TryFrom<f64> for Rate {
    type Error = String;
    fn try_from(dollars: f64) -> Result<Self, String> {
        Usd::from_f64(dollars).map(Self).ok_or_else(|| format!("{dollars} is no price in dollars"))
    }
}

impl From<Rate> for f64 {
    fn from(rate: Rate) -> f64 {
        rate.0.as_f64()
    }
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
    /// `None`: the gates that are usually called so.
    pub stuck_halt_gates: Option<Vec<GoalId>>,
    pub idle_halt_after: u32,
    pub trial_s: u32,
    pub soft_consensus_required: bool,
    pub env: Vec<String>,
    pub parallel: Option<NonZeroU32>,
    pub strict_tree: bool,
}

impl Default for GoalSettings {
    fn default() -> Self {
        Self {
            timeout_s: nz32(120),
            convergence_n: nz32(3),
            stuck_halt_after: 5,
            stuck_halt_gates: None,
            idle_halt_after: 3,
            trial_s: 600,
            soft_consensus_required: true,
            env: Vec::new(),
            parallel: None,
            strict_tree: false,
        }
    }
}

/// The bug ledger.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(
    missing_docs,
    reason = "each field has the meaning of its key; docs/formats/config.md explains them"
)]
pub struct BugHunt {
    pub test_globs: Vec<String>,
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
