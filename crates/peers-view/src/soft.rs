//! Soft goals: how many reviews count, and what is missing.

use std::collections::BTreeMap;

use peers_core::converge::roster;
use peers_core::reviews::{self, SoftStatus};
use peers_core::state::State;
use peers_model::record::SoftRuleEntry;
use peers_model::review::SoftRule;
use peers_model::{GoalId, PeerName};
use serde::Serialize;

use crate::facts::GitFacts;

/// Why a goal with reviews is not green where nobody knows what it is about now.
const UNREAD: &str = "stale? what it is about could not be read at HEAD";
/// A scope that no review can be about, for goals whose scope nobody knows.
const NO_SCOPE: &str = "?";

/// One soft goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SoftRow {
    /// Its goal.
    pub id: GoalId,
    /// Reviews that count.
    pub have: u32,
    /// Reviews needed.
    pub need: u32,
    /// It is green.
    pub ok: bool,
    /// Why not.
    pub why: String,
    /// The rule, for people.
    pub rule: String,
    /// The newest answer.
    pub last_pass: Option<bool>,
    /// Who gave it.
    pub last_reviewer: Option<PeerName>,
    /// Reviews that are kept.
    pub kept: usize,
    /// Of these, how many are about content that has changed since.
    pub stale: usize,
    /// Of what is there now one reviewer thinks well, and another does not.
    pub split: bool,
}

impl SoftRow {
    /// `1/2`.
    pub(crate) fn share(&self) -> String {
        format!("{}/{}", self.have, self.need)
    }
}

pub(crate) fn rows(state: &State, git: Option<&GitFacts>) -> Vec<SoftRow> {
    let nothing = SoftStatus::default();
    let roster = roster(state);
    let row = |entry: &SoftRuleEntry| {
        let status = state.soft.get(&entry.id).unwrap_or(&nothing);
        // Without a look at the repository: what the loop last recorded.
        let seen = match git {
            Some(git) => git.scopes.get(&entry.id).map_or("", String::as_str),
            None => status.scope.as_str(),
        };
        let unknown = git.is_some() && seen.is_empty();
        let scope = if seen.is_empty() { NO_SCOPE } else { seen };
        let mut verdict = reviews::satisfied(status, entry.rule, &roster, scope);
        if unknown && !status.history.is_empty() {
            UNREAD.clone_into(&mut verdict.why);
        }
        SoftRow {
            id: entry.id.clone(),
            have: verdict.have,
            need: verdict.need,
            ok: verdict.ok,
            why: verdict.why,
            rule: rule_words(entry.rule),
            last_pass: status.last_pass,
            last_reviewer: status.last_reviewer.clone(),
            kept: status.history.len(),
            stale: status.history.iter().filter(|review| review.scope != scope).count(),
            split: split(status, scope),
        }
    };
    state.rules.soft.iter().map(row).collect()
}

/// Whether the newest answers of different reviewers about this scope differ.
fn split(status: &SoftStatus, scope: &str) -> bool {
    let mut newest: BTreeMap<&PeerName, bool> = BTreeMap::new();
    for review in status.history.iter().filter(|review| review.scope == scope) {
        newest.insert(&review.reviewer, review.pass);
    }
    newest.values().any(|pass| *pass) && newest.values().any(|pass| !pass)
}

fn rule_words(rule: SoftRule) -> String {
    match rule {
        SoftRule::Other { needed: 1 } => "any other peer".to_owned(),
        SoftRule::Other { needed } => format!("any {needed} peers"),
        SoftRule::Both { .. } => "every peer".to_owned(),
        SoftRule::Alternating { needed } => format!("{needed} in turn"),
        SoftRule::Quorum { pass, of } => format!("{pass} of the last {of}"),
    }
}
