//! The rules, in their order.

use peers_model::GateId;
use peers_model::bug::reason_chars;
use peers_model::weakening::Weakening;

use super::diff::TurnDiff;
use crate::classify_path::PathKind;

/// Shortest justification of a test-only turn, in characters.
pub const MIN_JUSTIFICATION: usize = 20;

/// How every sentence about a weakening begins, in warnings and reasons of records.
pub const WEAKENED: &str = "weakened tests: ";

/// How the sentence about a weakening begins that a turn committed and somebody else had left in the work
/// tree of whom nothing is known: a gate, the operator, a program that went its own way.
pub const TAKEN_OVER: &str = "weakened tests: not by this turn, it only committed what lay there: ";

/// What the rules need to know besides the diff.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheatContext {
    /// The peer's role in this tick is to review.
    pub reviewer: bool,
    /// A commit of the turn names an open bug in `Bug-Reproduce:`.
    pub reproduces_open_bug: bool,
    /// The text of `JUSTIFIED-TEST-ONLY`.
    pub justification: Option<String>,
    /// The peer has been warned about such a turn since its last clean handoff.
    pub prewarned: bool,
}

/// What becomes of a turn.
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

/// Judges a turn that handed off properly, and in which this was weakened.
#[must_use]
pub fn judge(diff: &TurnDiff, found: &[Weakening], context: &CheatContext) -> CheatVerdict {
    let weakened = judge_unfinished(found, context.prewarned);
    if weakened != CheatVerdict::Clean || !diff.is_test_only() {
        return weakened;
    }
    if context.reviewer || context.reproduces_open_bug {
        return CheatVerdict::Reproducer;
    }
    match &context.justification {
        Some(text) if reason_chars(text) >= MIN_JUSTIFICATION => {
            CheatVerdict::Justified { text: text.chars().take(500).collect() }
        }
        Some(_) | None => warn_or_revert(
            context.prewarned,
            format!(
                "changed only tests: without `Bug-Reproduce:` of an open bug and without \
                 `JUSTIFIED-TEST-ONLY:` with a reason of {MIN_JUSTIFICATION} characters"
            ),
        ),
    }
}

/// Judges a turn that ended in any other way and left commits: they stay, so what they weaken is
/// measured all the same. Tests alone are no offence there: the work may go on in the next turn.
#[must_use]
pub fn judge_unfinished(found: &[Weakening], prewarned: bool) -> CheatVerdict {
    if found.is_empty() { CheatVerdict::Clean } else { warn_or_revert(prewarned, weakened_words(found)) }
}

fn warn_or_revert(prewarned: bool, why: String) -> CheatVerdict {
    if prewarned { CheatVerdict::Revert { why } } else { CheatVerdict::Prewarn { why } }
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

/// Says what was found: [`WEAKENED`] and at most five items.
#[must_use]
pub fn weakened_words(found: &[Weakening]) -> String {
    const SHOWN: usize = 5;
    let mut parts: Vec<String> = found.iter().take(SHOWN).map(ToString::to_string).collect();
    if found.len() > SHOWN {
        parts.push(format!("and {} more", found.len() - SHOWN));
    }
    format!("{WEAKENED}{}", parts.join("; "))
}
