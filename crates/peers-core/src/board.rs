//! The gate board: which verdict belongs to which tree.
//!
//! A verdict is a function of the tree, so a stale green cannot converge: every question names the
//! key that it is about. A red is counted once a tick, however often it is measured; after a tick that counts for
//! nobody, not at all.

use std::collections::BTreeMap;

use peers_model::record::{GateRule, Rules};
use peers_model::verdict::{Judged, Place, TreeKey, Verdict};
use peers_model::{GoalId, TickNo};
use serde::{Deserialize, Serialize};

/// All gates.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GateBoard {
    /// By goal.
    pub gates: BTreeMap<GoalId, GateStanding>,
}

/// What is known of one gate.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GateStanding {
    /// The newest verdict.
    pub last: Option<Judged>,
    /// Digest of the definition that it was measured with.
    pub digest: String,
    /// Ticks completed when it was measured.
    pub measured_at: TickNo,
    /// Ticks in a row that ended red.
    pub reds: u32,
    /// The tick up to which reds are counted, or were passed over.
    pub counted_at: TickNo,
    /// Could-not-judge answers in a row.
    pub errors: u32,
    /// Ticks in a row after which its proof was red.
    #[serde(default)]
    pub proof_reds: u32,
    /// The tick up to which these are counted.
    #[serde(default)]
    pub proof_counted_at: TickNo,
    /// When it was last green.
    pub last_green: Option<TickNo>,
    /// The newest verdict of an earlier tick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Verdict>,
}

impl GateBoard {
    /// The verdict for exactly this key and definition, if there is one.
    #[must_use]
    pub fn fresh(&self, gate: &GateRule, key: &TreeKey) -> Option<&Judged> {
        self.answer(&gate.id, &gate.digest, key)
    }

    /// What was found for exactly this key and definition: of a gate, or of the check of a soft goal.
    #[must_use]
    pub fn answer(&self, goal: &GoalId, digest: &str, key: &TreeKey) -> Option<&Judged> {
        let standing = self.gates.get(goal)?;
        standing.last.as_ref().filter(|j| j.at == *key && standing.digest == digest)
    }

    /// The gates, and checks of soft goals, that must run now. A pass holds for its tree; anything else holds until the next tick.
    #[must_use]
    pub fn owed(&self, rules: &Rules, key: &TreeKey, ticks: TickNo) -> Vec<GoalId> {
        rules
            .measured()
            .filter(|(goal, digest)| match self.answer(goal, digest, key) {
                None => true,
                Some(judged) => {
                    !judged.verdict.is_pass() && self.gates.get(goal).is_none_or(|s| s.measured_at < ticks)
                }
            })
            .map(|(goal, _)| goal.clone())
            .collect()
    }

    /// Gates whose newest verdict is red.
    #[must_use]
    pub fn red(&self, rules: &Rules) -> Vec<GoalId> {
        rules
            .gates
            .iter()
            .filter(|g| {
                self.gates.get(&g.id).and_then(|s| s.last.as_ref()).is_some_and(|j| j.verdict.is_red())
            })
            .map(|g| g.id.clone())
            .collect()
    }

    /// How many gates are green by their newest verdicts.
    #[must_use]
    pub fn greens(&self, rules: &Rules) -> u32 {
        let green = |g: &&GateRule| {
            self.gates.get(&g.id).and_then(|s| s.last.as_ref()).is_some_and(|j| j.verdict.is_pass())
        };
        u32::try_from(rules.gates.iter().filter(green).count()).unwrap_or(u32::MAX)
    }

    /// How many gates pass at exactly this key.
    #[must_use]
    pub fn greens_at(&self, rules: &Rules, key: &TreeKey) -> u32 {
        let green = |gate: &&GateRule| self.fresh(gate, key).is_some_and(|j| j.verdict.is_pass());
        u32::try_from(rules.gates.iter().filter(green).count()).unwrap_or(u32::MAX)
    }

    /// Whether every hard gate passes at exactly this key. An empty list is not green.
    #[must_use]
    pub fn ready(&self, rules: &Rules, key: &TreeKey) -> bool {
        !rules.gates.is_empty()
            && rules.gates.iter().all(|gate| self.fresh(gate, key).is_some_and(|j| j.verdict.is_pass()))
    }

    /// The first gate that could not be judged three times in a row.
    #[must_use]
    pub fn unjudged(&self, rules: &Rules) -> Option<GoalId> {
        rules
            .gates
            .iter()
            .find(|g| self.gates.get(&g.id).is_some_and(|s| s.errors >= 3))
            .map(|g| g.id.clone())
    }

    /// The watched gate that has been red for at least `after` ticks in a row; the worst one.
    #[must_use]
    pub fn stuck(&self, watched: &[GoalId], after: u32) -> Option<GoalId> {
        if after == 0 {
            return None;
        }
        watched
            .iter()
            .filter_map(|id| self.gates.get(id).map(|s| (s.reds.max(s.proof_reds), id)))
            .filter(|(reds, _)| *reds >= after)
            .max_by_key(|(reds, _)| *reds)
            .map(|(_, id)| id.clone())
    }

    /// Takes verdicts in. `ticks` is the number of ticks completed.
    pub(crate) fn take(&mut self, rules: &Rules, ticks: TickNo, verdicts: &[Judged]) {
        for judged in verdicts {
            let Some((_, digest)) = rules.measured().find(|(goal, _)| **goal == judged.goal) else {
                continue;
            };
            let standing = self.gates.entry(judged.goal.clone()).or_default();
            if standing.measured_at < ticks {
                standing.before = standing.last.as_ref().map(|j| j.verdict.clone());
            }
            if judged.verdict.is_pass() {
                standing.reds = 0;
                standing.errors = 0;
                standing.last_green = Some(ticks);
            } else if judged.verdict.is_error() {
                standing.errors = standing.errors.saturating_add(1);
            } else if judged.verdict.is_red() {
                standing.errors = 0;
                if ticks > standing.counted_at {
                    standing.reds = standing.reds.saturating_add(1);
                    standing.counted_at = ticks;
                }
            }
            standing.last = Some(judged.clone());
            digest.clone_into(&mut standing.digest);
            standing.measured_at = ticks;
        }
    }

    /// Something else got on: no gate has been red for long.
    pub(crate) fn forgive(&mut self) {
        for standing in self.gates.values_mut() {
            standing.reds = 0;
            standing.proof_reds = 0;
        }
    }

    /// Tick `ticks` counts for nobody: what is red after it is no longer red than before.
    pub(crate) fn pass_over(&mut self, ticks: TickNo) {
        for standing in self.gates.values_mut() {
            standing.counted_at = ticks;
            standing.proof_counted_at = ticks;
        }
    }

    /// Takes the answers of a proof run in: a gate that is red there counts as red, however green it
    /// is in the work tree.
    pub(crate) fn take_proof(&mut self, ticks: TickNo, verdicts: &[Judged]) {
        for judged in verdicts {
            if judged.verdict.is_red() {
                self.count_proof(&judged.goal, ticks);
            } else if let Some(standing) = self.gates.get_mut(&judged.goal)
                && judged.verdict.is_pass()
            {
                standing.proof_reds = 0;
            }
        }
    }

    /// A gate's proof is red after tick `ticks`: counted once a tick, as any red.
    pub(crate) fn count_proof(&mut self, gate: &GoalId, ticks: TickNo) {
        let Some(standing) = self.gates.get_mut(gate).filter(|s| ticks > s.proof_counted_at) else { return };
        standing.proof_reds = standing.proof_reds.saturating_add(1);
        standing.proof_counted_at = ticks;
    }

    /// A run starts: streaks measure one run, and a red that is there already is nobody's tick.
    /// Everything is measured again: what was wrong, or right, may have been outside the tree. A green answer
    /// that may outlive the process lies where the gates are run (`cacheable`).
    /// Gates that are no longer configured are dropped, so that their verdicts cannot count.
    pub(crate) fn start_run(&mut self, rules: &Rules, ticks: TickNo) {
        self.gates.retain(|id, _| rules.measured().any(|(goal, _)| goal == id));
        for standing in self.gates.values_mut() {
            standing.reds = 0;
            standing.proof_reds = 0;
            standing.errors = 0;
            standing.counted_at = ticks;
            standing.proof_counted_at = ticks;
            standing.last = standing.last.take().filter(|j| j.verdict.is_pass());
            standing.digest.clear();
        }
        for gate in &rules.gates {
            let standing = self.gates.entry(gate.id.clone()).or_default();
            standing.counted_at = ticks;
        }
    }

    /// The board as it would be with these gates green at `key`.
    pub(crate) fn suppose_green(&mut self, rules: &Rules, key: &TreeKey, gates: &[GoalId]) {
        for rule in rules.gates.iter().filter(|rule| gates.contains(&rule.id)) {
            let standing = self.gates.entry(rule.id.clone()).or_default();
            standing.last = Some(Judged::new(rule.id.clone(), key.clone(), Place::GateTree, Verdict::Pass));
            standing.digest.clone_from(&rule.digest);
        }
    }

    /// Something outside the tree changed (an acknowledgement, say): nothing measured holds any more.
    pub(crate) fn forget(&mut self) {
        for standing in self.gates.values_mut() {
            standing.last = None;
        }
    }
}
