//! How a peer's process ended, what its stream said, what the tick meant, why the loop stopped.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::exit;
use crate::ids::{GoalId, PeerName};
use crate::money::{Tokens, Usd};
use crate::time::Timestamp;

/// How the process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExitClass {
    /// It could not be started.
    SpawnFail,
    /// Exit code 0.
    Ok,
    /// Another exit code.
    Nonzero,
    /// Killed by a signal that was not ours.
    Signal,
    /// Ended by us after too long a silence.
    Idle,
    /// Ended by us at its time limit.
    Absolute,
    /// Ended by us on a pattern that the operator configured.
    Pattern,
    /// Ended by us because its stream said that going on is of no use: a login that is refused again and
    /// again, replies without anything in them.
    Hopeless,
    /// Ended by us because a cap or the run's time is used up.
    Budget,
    /// Ended by us because the loop was asked to stop, or found dead after a crash of the loop.
    Interrupted,
}

/// What the tool's interface said about its service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApiClass {
    /// Nothing bad.
    None,
    /// A rate limit or an overload: try later.
    Transient,
    /// The subscription's window is used up; it opens again by itself, often hours later.
    UsageCap,
    /// The operator must log in.
    Auth,
    /// No credit is left.
    Quota,
    /// Another failure of the service.
    Other,
}

impl ApiClass {
    /// Whether only the operator can help.
    #[must_use]
    pub fn needs_operator(self) -> bool {
        matches!(self, Self::Auth | Self::Quota)
    }
}

/// Every label that [`classification`] gives.
pub const CLASSIFICATIONS: [&str; 9] = [
    "success",
    "process-fail",
    "api-error",
    "rate-limited",
    "usage-cap",
    "idle-timeout",
    "absolute-timeout",
    "budget-kill",
    "interrupted",
];

/// The one-word label of logs, derived from the two dimensions.
#[must_use]
pub fn classification(exit: ExitClass, api: ApiClass) -> &'static str {
    match (exit, api) {
        (ExitClass::Interrupted, _) => "interrupted",
        (ExitClass::Budget, ApiClass::None | ApiClass::Transient | ApiClass::UsageCap) => "budget-kill",
        (ExitClass::SpawnFail, _) | (ExitClass::Nonzero | ExitClass::Signal, ApiClass::None) => {
            "process-fail"
        }
        (_, ApiClass::UsageCap) => "usage-cap",
        (_, ApiClass::Auth | ApiClass::Quota | ApiClass::Other)
        | (ExitClass::Pattern, _)
        | (ExitClass::Hopeless, ApiClass::None) => "api-error",
        (ExitClass::Idle, _) => "idle-timeout",
        (ExitClass::Absolute, _) => "absolute-timeout",
        (_, ApiClass::Transient) => "rate-limited",
        (ExitClass::Ok, ApiClass::None) => "success",
    }
}

/// A pattern or a structured event that matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matched {
    /// The pattern, or the name of the structured field.
    pub pattern: String,
    /// Where the operator wrote the pattern, such as `health.error_patterns[1]`; from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// At most 200 characters of what matched. Untrusted text.
    pub snippet: String,
    /// `in-loop`, `post-join`, `structured` or `structured-transient`.
    pub source: String,
}

/// What a peer used. `None` means unknown, which is not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// All tokens, or unknown.
    pub tokens: Option<Tokens>,
    /// Cost, or unknown.
    pub usd: Option<Usd>,
}

/// What the supervisor reports about one peer process. Facts first, classes last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerExit {
    /// How it ended.
    pub class: ExitClass,
    /// What its service said.
    pub api: ApiClass,
    /// Exit code, when it exited by itself.
    pub code: Option<i32>,
    /// Signal number, when it died of one.
    pub signal: Option<i32>,
    /// From spawn to the end of the teardown, milliseconds.
    pub duration_ms: u64,
    /// What it used.
    #[serde(default)]
    pub usage: Usage,
    /// The model that the tool says it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What matched, when the class comes from a match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<Matched>,
    /// Seconds after which the service wants to be asked again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<u64>,
    /// When the subscription's window opens again, as far as its stream or its words tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<Timestamp>,
    /// What it used is a lower bound: it was ended before it gave its own account.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// Times that a session file, not its output, showed it alive.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub session_signs: u32,
    /// The tool call that never came back, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished_tool: Option<String>,
    /// What the next turn and the operator should know of how it ran. Untrusted text in parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Last part of its standard output. Untrusted text.
    #[serde(default)]
    pub stdout_tail: String,
    /// Last part of its standard error. Untrusted text.
    #[serde(default)]
    pub stderr_tail: String,
    /// Output was longer than the capture.
    #[serde(default)]
    pub truncated: bool,
    /// Bytes on standard output.
    #[serde(default)]
    pub bytes_out: u64,
    /// Bytes on standard error.
    #[serde(default)]
    pub bytes_err: u64,
    /// Processes that it left behind and that were ended.
    #[serde(default)]
    pub leaked: u32,
    /// Process ids that could not be ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<u32>,
    /// Secrets that were hidden in its output.
    #[serde(default)]
    pub redactions: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl PeerExit {
    /// The exit of a peer whose end nobody saw.
    #[must_use]
    pub fn interrupted(duration_ms: u64) -> Self {
        Self {
            class: ExitClass::Interrupted,
            api: ApiClass::None,
            code: None,
            signal: None,
            duration_ms,
            usage: Usage::default(),
            model: None,
            matched: None,
            retry_after_s: None,
            resets_at: None,
            at_least: false,
            session_signs: 0,
            unfinished_tool: None,
            remarks: Vec::new(),
            stdout_tail: String::new(),
            stderr_tail: String::new(),
            truncated: false,
            bytes_out: 0,
            bytes_err: 0,
            leaked: 0,
            survivors: Vec::new(),
            redactions: 0,
        }
    }

    /// The legacy label.
    #[must_use]
    pub fn classification(&self) -> &'static str {
        classification(self.class, self.api)
    }
}

/// Which budget ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each is the config key of the same name")]
pub enum BudgetKind {
    MaxIterations,
    MaxRuntime,
    MaxWall,
    Deadline,
    MaxConsecutiveFailures,
    MaxTokens,
    MaxUsd,
    PerPeer,
    NoProgress,
}

impl BudgetKind {
    const ALL: [(Self, &'static str); 9] = [
        (Self::MaxIterations, "max_iterations"),
        (Self::MaxRuntime, "max_runtime"),
        (Self::MaxWall, "max_wall"),
        (Self::Deadline, "deadline"),
        (Self::MaxConsecutiveFailures, "max_consecutive_failures"),
        (Self::MaxTokens, "max_tokens"),
        (Self::MaxUsd, "max_usd"),
        (Self::PerPeer, "per_peer"),
        (Self::NoProgress, "no_progress"),
    ];

    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(k, _)| *k == self).map_or("unknown", |(_, w)| w)
    }
}

/// Why the loop stopped. The text form is what files print; nobody parses prose.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// Converged, and proved in a clean checkout.
    Complete,
    /// The tick cap of this process.
    MaxTicks,
    /// Asked to stop after a tick.
    Drained,
    /// A budget ran out.
    Budget(BudgetKind),
    /// A gate stayed red too long.
    StuckGate(GoalId),
    /// The skeptic gave no verdict.
    StuckSkeptic,
    /// Nothing got on for too many ticks, whatever the gates say.
    StuckIdle,
    /// So many turns of a phase did not bring its artifact.
    StuckPhase,
    /// The operator wanted to look before the last phase begins.
    Checkpoint,
    /// Only what is blocked is left: every peer that could go says that something is in its way, or every open
    /// step of the plan is blocked.
    ParkedBlocked,
    /// The proof run could not judge a gate.
    ParkedProof,
    /// A gate could not be judged three times in a row.
    Unjudged(GoalId),
    /// A peer needs its operator.
    PeerUnavailable(PeerName),
    /// No peer is left.
    AllPeersDegraded,
    /// An accepted file is not what was accepted.
    GoalMutation(String),
    /// The control plane, or known history, was changed by somebody else.
    Tamper(TamperKind),
    /// Ended by a signal.
    Interrupted(i32),
    /// Something unexpected failed.
    Error(ErrorKind),
    /// Another loop holds the lock; nothing was written.
    LockHeld,
}

/// What was tampered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is explained by its text form in docs/stop-reasons.md")]
pub enum TamperKind {
    PeerDir,
    Store,
    History,
    Git,
    ToolHome,
}

/// What failed unexpectedly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is explained by its text form in docs/stop-reasons.md")]
pub enum ErrorKind {
    DiskFull,
    Io,
    Git,
    Sandbox,
    Internal,
}

impl StopReason {
    /// The kind of ending, one word (`docs/stop-reasons.md`).
    #[must_use]
    pub fn outcome(&self) -> &'static str {
        match self {
            Self::Complete => "converged",
            Self::MaxTicks | Self::Budget(_) => "limit",
            Self::Drained | Self::Interrupted(_) => "operator",
            Self::StuckGate(_)
            | Self::StuckSkeptic
            | Self::StuckIdle
            | Self::StuckPhase
            | Self::Unjudged(_) => "stuck",
            Self::ParkedBlocked | Self::ParkedProof | Self::Checkpoint => "paused",
            Self::PeerUnavailable(_) | Self::AllPeersDegraded => "peer",
            Self::GoalMutation(_) | Self::Tamper(_) => "integrity",
            Self::Error(
                ErrorKind::DiskFull
                | ErrorKind::Io
                | ErrorKind::Git
                | ErrorKind::Sandbox
                | ErrorKind::Internal,
            ) => "error",
            Self::LockHeld => "unchanged",
        }
    }

    /// The process exit code (`docs/exit-codes.md`).
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Complete | Self::MaxTicks | Self::Drained | Self::Checkpoint => exit::OK,
            Self::Budget(_) => exit::BUDGET,
            Self::StuckGate(_)
            | Self::StuckSkeptic
            | Self::StuckIdle
            | Self::StuckPhase
            | Self::ParkedBlocked
            | Self::ParkedProof => exit::STUCK,
            Self::Unjudged(_) => exit::INVALID,
            Self::PeerUnavailable(_) | Self::AllPeersDegraded => exit::PEER,
            Self::GoalMutation(_) | Self::Tamper(_) => exit::REFUSED,
            Self::Interrupted(signal) => exit::signalled(*signal),
            Self::Error(ErrorKind::Sandbox) => exit::ENVIRONMENT,
            Self::Error(_) => exit::BUG,
            Self::LockHeld => exit::CONFLICT,
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => f.write_str("complete"),
            Self::MaxTicks => f.write_str("max_ticks"),
            Self::Drained => f.write_str("drained"),
            Self::Budget(kind) => write!(f, "budget:{}", kind.word()),
            Self::StuckGate(id) => write!(f, "stuck:{id}"),
            Self::StuckSkeptic => f.write_str("stuck:skeptic"),
            Self::StuckIdle => f.write_str("stuck:idle"),
            Self::StuckPhase => f.write_str("stuck:phase"),
            Self::Checkpoint => f.write_str("checkpoint:phase-0-complete"),
            Self::ParkedBlocked => f.write_str("parked:blocked"),
            Self::ParkedProof => f.write_str("parked:proof"),
            Self::Unjudged(id) => write!(f, "unjudged:{id}"),
            Self::PeerUnavailable(peer) => write!(f, "peer-unavailable:{peer}"),
            Self::AllPeersDegraded => f.write_str("peer-unavailable:all-peers-degraded"),
            Self::GoalMutation(file) => write!(f, "goal-mutation:{file}"),
            Self::Tamper(TamperKind::PeerDir) => f.write_str("tamper:peer-dir"),
            Self::Tamper(TamperKind::Store) => f.write_str("tamper:store"),
            Self::Tamper(TamperKind::History) => f.write_str("tamper:history"),
            Self::Tamper(TamperKind::Git) => f.write_str("tamper:git"),
            Self::Tamper(TamperKind::ToolHome) => f.write_str("tamper:tool-home"),
            Self::Interrupted(_) => f.write_str("interrupted"),
            Self::Error(ErrorKind::DiskFull) => f.write_str("error:disk-full"),
            Self::Error(ErrorKind::Io) => f.write_str("error:io"),
            Self::Error(ErrorKind::Git) => f.write_str("error:git"),
            Self::Error(ErrorKind::Sandbox) => f.write_str("error:sandbox"),
            Self::Error(ErrorKind::Internal) => f.write_str("error:internal"),
            Self::LockHeld => f.write_str("lock-held"),
        }
    }
}

/// A text that is no stop reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a stop reason")]
pub struct InvalidReason(String);

impl FromStr for StopReason {
    type Err = InvalidReason;

    /// Reads the text form; `interrupted` alone becomes a SIGTERM (the signal is a field of its own).
    fn from_str(text: &str) -> Result<Self, InvalidReason> {
        let bad = || InvalidReason(text.chars().take(80).collect());
        let (head, tail) = text.split_once(':').map_or((text, None), |(h, t)| (h, Some(t)));
        Ok(match (head, tail) {
            ("complete", None) => Self::Complete,
            ("max_ticks", None) => Self::MaxTicks,
            ("drained", None) => Self::Drained,
            ("interrupted", None) => Self::Interrupted(15),
            ("lock-held", None) => Self::LockHeld,
            ("budget", Some(w)) => {
                Self::Budget(BudgetKind::ALL.iter().find(|(_, word)| *word == w).ok_or_else(bad)?.0)
            }
            ("stuck", Some("skeptic")) => Self::StuckSkeptic,
            ("stuck", Some("idle")) => Self::StuckIdle,
            ("stuck", Some("phase")) => Self::StuckPhase,
            ("checkpoint", Some("phase-0-complete")) => Self::Checkpoint,
            ("stuck", Some(id)) => Self::StuckGate(id.parse().map_err(|_| bad())?),
            ("parked", Some("blocked")) => Self::ParkedBlocked,
            ("parked", Some("proof")) => Self::ParkedProof,
            ("unjudged", Some(id)) => Self::Unjudged(id.parse().map_err(|_| bad())?),
            ("peer-unavailable", Some("all-peers-degraded")) => Self::AllPeersDegraded,
            ("peer-unavailable", Some(name)) => Self::PeerUnavailable(name.parse().map_err(|_| bad())?),
            ("goal-mutation", Some(file)) => Self::GoalMutation(file.to_owned()),
            ("tamper", Some("peer-dir")) => Self::Tamper(TamperKind::PeerDir),
            ("tamper", Some("store")) => Self::Tamper(TamperKind::Store),
            ("tamper", Some("history")) => Self::Tamper(TamperKind::History),
            ("tamper", Some("git" | "git-redirected")) => Self::Tamper(TamperKind::Git),
            ("tamper", Some("tool-home")) => Self::Tamper(TamperKind::ToolHome),
            ("error", Some("disk-full")) => Self::Error(ErrorKind::DiskFull),
            ("error", Some("io")) => Self::Error(ErrorKind::Io),
            ("error", Some("git")) => Self::Error(ErrorKind::Git),
            ("error", Some("sandbox")) => Self::Error(ErrorKind::Sandbox),
            ("error", Some("internal")) => Self::Error(ErrorKind::Internal),
            _ => return Err(bad()),
        })
    }
}

impl Serialize for StopReason {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StopReason {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stop_reason_survives_its_text_form() {
        let gate = GoalId::new("tests-pass").unwrap();
        let mut all = vec![
            StopReason::Complete,
            StopReason::MaxTicks,
            StopReason::Drained,
            StopReason::StuckGate(gate.clone()),
            StopReason::StuckSkeptic,
            StopReason::StuckIdle,
            StopReason::StuckPhase,
            StopReason::Checkpoint,
            StopReason::ParkedBlocked,
            StopReason::ParkedProof,
            StopReason::Unjudged(gate),
            StopReason::PeerUnavailable(PeerName::new("claude").unwrap()),
            StopReason::AllPeersDegraded,
            StopReason::GoalMutation("goals.yaml".into()),
            StopReason::Interrupted(15),
            StopReason::LockHeld,
        ];
        all.extend(BudgetKind::ALL.iter().map(|(k, _)| StopReason::Budget(*k)));
        all.extend(
            [
                TamperKind::PeerDir,
                TamperKind::Store,
                TamperKind::History,
                TamperKind::Git,
                TamperKind::ToolHome,
            ]
            .map(StopReason::Tamper),
        );
        all.extend(
            [ErrorKind::DiskFull, ErrorKind::Io, ErrorKind::Git, ErrorKind::Sandbox, ErrorKind::Internal]
                .map(StopReason::Error),
        );
        for reason in all {
            let text = reason.to_string();
            assert!(!text.contains(' '));
            assert_eq!(text.parse::<StopReason>().unwrap(), reason);
        }
        assert!("stuck".parse::<StopReason>().is_err());
    }

    #[test]
    fn exit_codes_follow_the_table() {
        assert_eq!(StopReason::Complete.exit_code(), 0);
        assert_eq!(StopReason::Budget(BudgetKind::MaxUsd).exit_code(), 10);
        assert_eq!(StopReason::StuckSkeptic.exit_code(), 11);
        assert_eq!(StopReason::Interrupted(1).exit_code(), 129);
        assert_eq!(StopReason::GoalMutation("goals.yaml".into()).exit_code(), 5);
    }

    #[test]
    fn an_interrupted_peer_is_never_called_a_failure_of_its_service() {
        assert_eq!(classification(ExitClass::Interrupted, ApiClass::Quota), "interrupted");
        assert_eq!(classification(ExitClass::Ok, ApiClass::Transient), "rate-limited");
        assert_eq!(classification(ExitClass::Ok, ApiClass::Quota), "api-error");
        assert_eq!(classification(ExitClass::Signal, ApiClass::None), "process-fail");
    }

    #[test]
    fn every_end_of_a_process_has_one_of_the_labels_and_every_label_is_used() {
        use std::collections::BTreeSet;
        let exits = [
            ExitClass::SpawnFail,
            ExitClass::Ok,
            ExitClass::Nonzero,
            ExitClass::Signal,
            ExitClass::Idle,
            ExitClass::Absolute,
            ExitClass::Pattern,
            ExitClass::Hopeless,
            ExitClass::Budget,
            ExitClass::Interrupted,
        ];
        let apis = [
            ApiClass::None,
            ApiClass::Transient,
            ApiClass::UsageCap,
            ApiClass::Auth,
            ApiClass::Quota,
            ApiClass::Other,
        ];
        let given: BTreeSet<&str> =
            exits.iter().flat_map(|exit| apis.map(|api| classification(*exit, api))).collect();
        assert_eq!(given, BTreeSet::from(CLASSIFICATIONS));
    }

    #[test]
    fn a_usage_cap_is_neither_a_rate_limit_nor_an_error() {
        for exit in [ExitClass::Ok, ExitClass::Nonzero, ExitClass::Hopeless, ExitClass::Idle] {
            assert_eq!(classification(exit, ApiClass::UsageCap), "usage-cap", "{exit:?}");
        }
        assert!(!ApiClass::UsageCap.needs_operator());
        assert_eq!(classification(ExitClass::Budget, ApiClass::None), "budget-kill");
        assert_eq!(classification(ExitClass::Hopeless, ApiClass::Auth), "api-error");
    }
}
