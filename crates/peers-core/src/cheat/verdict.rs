//! The rules, in their order.

use peers_model::GateId;
use peers_model::bug::reason_chars;

use super::diff::TurnDiff;
use super::measure::{Weakening, weakenings};
use crate::classify_path::PathKind;

/// Shortest justification of a test-only turn, in characters.
pub const MIN_JUSTIFICATION: usize = 20;

/// What the rules need to know besides the diff.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each named where it is set")]
pub struct CheatContext {
    /// The peer's role in this tick is to review.
    pub reviewer: bool,
    /// A commit of the turn names an open bug in `Bug-Reproduce:`.
    pub reproduces_open_bug: bool,
    /// The text of `JUSTIFIED-TEST-ONLY`.
    pub justification: Option<String>,
    /// The peer has been warned about such a turn since its last clean handoff.
    pub prewarned: bool,
    /// The operator has acknowledged that this peer may weaken tests.
    pub weakening_acknowledged: bool,
}

/// What becomes of a turn that handed off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheatVerdict {
    /// Nothing to say.
    Clean,
    /// Tests only, and that is their place: a reproducing test, or a reviewer at work.
    Reproducer,
    /// Tests only, with a reason that the other peers should see.
    Justified {
        /// The reason, at most 500 characters. Untrusted.
        text: String,
    },
    /// Accepted, once.
    Prewarn {
        /// What was wrong, for people.
        why: String,
    },
    /// To be taken back.
    Revert {
        /// What was wrong, for people.
        why: String,
    },
}

/// Judges a turn that handed off properly.
#[must_use]
pub fn judge(diff: &TurnDiff, context: &CheatContext) -> CheatVerdict {
    let warn_or_revert = |why: String| {
        if context.prewarned { CheatVerdict::Revert { why } } else { CheatVerdict::Prewarn { why } }
    };
    if !context.weakening_acknowledged {
        let found = weakenings(diff);
        if !found.is_empty() {
            return warn_or_revert(describe(&found));
        }
    }
    if !diff.is_test_only() {
        return CheatVerdict::Clean;
    }
    if context.reviewer || context.reproduces_open_bug {
        return CheatVerdict::Reproducer;
    }
    match &context.justification {
        Some(text) if reason_chars(text) >= MIN_JUSTIFICATION => {
            CheatVerdict::Justified { text: text.chars().take(500).collect() }
        }
        Some(_) | None => warn_or_revert(format!(
            "the turn changed only tests, without `Bug-Reproduce:` of an open bug and without \
             `JUSTIFIED-TEST-ONLY:` with a reason of {MIN_JUSTIFICATION} characters"
        )),
    }
}

/// The gates that edits of existing tests alone turned from red to green. To be asked once gates
/// have run after the turn; new tests alone are no edits.
#[must_use]
pub fn green_by_test_edits<'a>(
    diff: &TurnDiff,
    red_before: &'a [GateId],
    green_after: &[GateId],
) -> Vec<&'a GateId> {
    let edits = diff.files.iter().any(|f| f.kind == PathKind::Test && (f.deleted > 0 || f.binary));
    if !edits || diff.weight(PathKind::Source) > 0 {
        return Vec::new();
    }
    red_before.iter().filter(|gate| green_after.contains(gate)).collect()
}

fn describe(found: &[Weakening]) -> String {
    const SHOWN: usize = 5;
    let mut parts: Vec<String> = found.iter().take(SHOWN).map(ToString::to_string).collect();
    if found.len() > SHOWN {
        parts.push(format!("and {} more", found.len() - SHOWN));
    }
    format!("the turn weakened tests or gates: {}", parts.join("; "))
}
