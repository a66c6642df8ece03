//! Ticks as rows.

use peers_model::config::Role;
use peers_model::outcome::{ApiClass, ExitClass};
use peers_model::record::{CorrectionKind, SkepticVerdict, TickOutcome, TickRecord};
use peers_model::{CommitId, PeerName, RunId, TickNo, Timestamp, Tokens, Usd};
use peers_sys::term;
use serde::Serialize;

use crate::death::Death;
use crate::diagnostic::complaint;
use crate::why_failed;
use crate::words;

/// Terminal cells of a warning.
const WARNING: usize = 300;

/// One tick.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "each field is the one of the same name in the tick record")]
#[expect(clippy::struct_excessive_bools, reason = "a flat row, as the record is")]
pub struct TickRow {
    pub tick: TickNo,
    /// When it ended.
    pub ts: Timestamp,
    pub run_id: Option<RunId>,
    pub peer: PeerName,
    pub role: Role,
    pub outcome: TickOutcome,
    pub success: bool,
    pub classification: String,
    /// Why it was no success. Untrusted text.
    pub reason: Option<String>,
    pub duration_ms: u64,
    pub gate_ms: u64,
    pub head_before: CommitId,
    pub head_after: CommitId,
    /// New commits of the peer.
    pub commits: Vec<CommitId>,
    pub corrected: Option<CorrectionKind>,
    pub salvage: Option<String>,
    pub skeptic: Option<SkepticVerdict>,
    pub dirty: bool,
    pub recovered: bool,
    pub rescued: bool,
    /// Tokens, or unknown.
    pub tokens: Option<Tokens>,
    /// Money, or unknown.
    pub usd: Option<Usd>,
    /// What is known of both is a lower bound.
    pub at_least: bool,
    /// Warnings that it left.
    pub warnings: usize,
    /// Guarded files of `.git` that it changed. Untrusted text.
    pub git_tampered: Vec<String>,
    /// How its process ended, and what its service said.
    #[serde(skip)]
    pub(crate) end: (ExitClass, ApiClass),
    /// How it died, if it did.
    #[serde(skip)]
    pub(crate) death: Option<Death>,
    /// When a limit of its service ends, as that said.
    #[serde(skip)]
    pub(crate) resets_at: Option<Timestamp>,
    /// The last line of its standard error, where the process failed. Untrusted text.
    pub complaint: Option<String>,
}

impl TickRow {
    pub(crate) fn of(ts: Timestamp, run_id: Option<&RunId>, tick: &TickRecord) -> Self {
        Self {
            tick: tick.iteration,
            ts,
            run_id: run_id.cloned(),
            peer: tick.peer.clone(),
            role: tick.role,
            outcome: tick.outcome,
            success: tick.success,
            classification: tick.classification.clone(),
            reason: why_failed(tick),
            duration_ms: tick.exit.duration_ms,
            gate_ms: tick.gate_ms,
            head_before: tick.head_before.clone(),
            head_after: tick.head_after.clone(),
            commits: tick.commits.clone(),
            corrected: tick.corrected,
            salvage: tick.salvage.clone(),
            skeptic: tick.skeptic,
            dirty: tick.dirty,
            recovered: tick.recovered,
            rescued: tick.rescued,
            tokens: tick.exit.usage.tokens,
            usd: tick.exit.usage.usd,
            at_least: tick.exit.at_least,
            warnings: tick.warnings_emitted.len(),
            git_tampered: tick.git_tampered.clone(),
            end: (tick.exit.class, tick.exit.api),
            death: Death::of(
                tick.exit.class,
                (tick.exit.signal, tick.exit.code),
                tick.soft_fail_reason.as_deref(),
            ),
            resets_at: tick.exit.resets_at,
            complaint: complaint(tick),
        }
    }

    /// `handoff`, `no-handoff` and so on, with what else happened.
    #[must_use]
    pub fn result(&self) -> String {
        let mut text = outcome_word(self.outcome).to_owned();
        if let Some(kind) = self.corrected {
            text.push_str(", ");
            text.push_str(corrected(kind));
        }
        match self.skeptic {
            Some(SkepticVerdict::Clean) => text.push_str(", skeptic: clean"),
            Some(SkepticVerdict::Found) => text.push_str(", skeptic: found something"),
            Some(SkepticVerdict::Missing) => text.push_str(", skeptic: no verdict"),
            None => {}
        }
        for (set, word) in [
            (self.recovered, ", recovered"),
            (self.rescued, ", rescued"),
            (self.dirty, ", left the tree dirty"),
        ] {
            if set {
                text.push_str(word);
            }
        }
        text
    }

    /// It was a failure: one that counts for nobody is none.
    pub(crate) fn failed(&self) -> bool {
        !self.success && !self.outcome.is_neutral()
    }

    /// How long the peer and the gates of it took, milliseconds.
    pub(crate) fn took_ms(&self) -> u64 {
        self.duration_ms.saturating_add(self.gate_ms)
    }

    /// What it cost, as far as known.
    #[must_use]
    pub fn cost(&self) -> String {
        let least = |known: String| words::at_least(Some(known), self.at_least);
        let tokens = self.tokens.map(|tokens| least(format!("{} tokens", words::thousands(tokens.0))));
        match (tokens, self.usd.map(|usd| least(usd.to_string()))) {
            (None, None) => "cost unknown".to_owned(),
            (Some(tokens), None) => format!("{tokens}, cost unknown"),
            (None, Some(usd)) => usd,
            (Some(tokens), Some(usd)) => format!("{tokens}, {usd}"),
        }
    }
}

/// What a turn is warned of, one line each, fit for a terminal: `warning: TEXT`.
pub fn warnings(tick: &TickRecord) -> impl Iterator<Item = String> {
    tick.warnings_emitted.iter().map(|text| format!("warning: {}", term::line(text, WARNING)))
}

/// What was done about a turn.
pub(crate) fn corrected(kind: CorrectionKind) -> &'static str {
    match kind {
        CorrectionKind::Revert => "reverted",
        CorrectionKind::RestoreHistory => "history restored",
        CorrectionKind::RestoreBranch => "branch restored",
        CorrectionKind::Reset => "reset",
    }
}

/// The word for an outcome.
pub(crate) fn outcome_word(outcome: TickOutcome) -> &'static str {
    match outcome {
        TickOutcome::Handoff => "handoff",
        TickOutcome::NoHandoff => "no-handoff",
        TickOutcome::Corrected => "corrected",
        TickOutcome::PeerFailed => "peer-failed",
        TickOutcome::RateLimited => "rate-limited",
        TickOutcome::UsageCapped => "usage-capped",
        TickOutcome::Blocked => "blocked",
        TickOutcome::NeedsOperator => "needs-operator",
        TickOutcome::Interrupted => "interrupted",
    }
}
