//! When the loop may say `complete`, and what is missing until then.

use peers_model::config::Role;
use peers_model::goal::TreeChoice;
use peers_model::record::{GateRule, SoftRuleEntry};
use peers_model::verdict::{Judged, TreeKey};
use peers_model::{CommitId, GoalId, PeerName, TreeId};

use crate::machine::{Facts, LoopConfig};
use crate::phases;
use crate::reviews::{self, RosterEntry};
use crate::state::{PeerState, ProofVerdict, State};

/// How far the loop is at exactly these facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// A gate is not green here, or its proof at this tree is red.
    Red,
    /// Uncommitted changes.
    Dirty,
    /// A review is missing, negative or stale.
    SoftPending(Vec<GoalId>),
    /// Only shipped gates are green: nothing real was measured.
    NoRealGate,
    /// All green; the skeptic has to look.
    SkepticOwed,
    /// So many more ticks in a row with every gate green are asked for.
    Unquiet(u32),
    /// The skeptic found nothing; the proof run is due.
    ProofOwed,
    /// A gate could not be judged in the proof run at this tree.
    ProofUnjudged(GoalId),
    /// Everything holds.
    Complete,
}

/// Answers how far the loop is. The order of the questions is the order in which they cost.
#[must_use]
pub fn standing(cfg: &LoopConfig, state: &State, facts: &Facts) -> Standing {
    if phases::owes_artifact(cfg, state)
        || !state.board.ready(&state.rules, &facts.key())
        || proof_is_red(state, facts)
    {
        return Standing::Red;
    }
    if !facts.is_clean() {
        return Standing::Dirty;
    }
    if cfg.soft_required {
        let pending = soft_pending(state, facts);
        if !pending.is_empty() {
            return Standing::SoftPending(pending);
        }
    }
    if !has_real_gate(state) {
        return Standing::NoRealGate;
    }
    if !skeptic_passed(state, &facts.worktree) {
        return Standing::SkepticOwed;
    }
    let ticks = phases::unquiet(state, facts);
    if ticks > 0 {
        return Standing::Unquiet(ticks);
    }
    let mut owed = false;
    for gate in state.rules.gates.iter().filter(|g| g.tree != TreeChoice::Live) {
        match proof_of(state, gate, facts).map(|p| &p.verdict) {
            None => owed = true,
            Some(verdict) if verdict.is_pass() => {}
            Some(verdict) if verdict.is_error() => return Standing::ProofUnjudged(gate.id.clone()),
            Some(_) => return Standing::Red,
        }
    }
    if owed { Standing::ProofOwed } else { Standing::Complete }
}

/// Whether some gate measures something of this project.
#[must_use]
pub fn has_real_gate(state: &State) -> bool {
    state.rules.gates.iter().any(|g| !g.shipped)
}

/// How many peers have to be skeptics: two at least where nobody knows who of them made the newest change.
#[must_use]
pub fn skeptic_rounds(state: &State) -> u32 {
    match state.rules.skeptic_rounds {
        0 => 0,
        rounds if state.strangers => rounds.max(2),
        rounds => rounds,
    }
}

/// Whether the skeptic has found nothing at this tree, by enough peers.
#[must_use]
pub fn skeptic_passed(state: &State, tree: &TreeId) -> bool {
    let rounds = usize::try_from(skeptic_rounds(state)).unwrap_or(usize::MAX);
    let able = state.rules.peers.len().max(1);
    rounds == 0
        || (state.skeptic.tree.as_ref() == Some(tree) && state.skeptic.passed.len() >= rounds.min(able))
}

/// The kept proof verdict of a gate, if it is about these facts.
fn proof_of<'a>(state: &'a State, gate: &GateRule, facts: &Facts) -> Option<&'a ProofVerdict> {
    proof_at(state, gate, &facts.head, &facts.head_tree)
}

fn proof_at<'a>(
    state: &'a State,
    gate: &GateRule,
    head: &CommitId,
    tree: &TreeId,
) -> Option<&'a ProofVerdict> {
    state
        .proofs
        .verdicts
        .get(&gate.id)
        .filter(|p| !p.earlier && p.gate == gate.digest && p.tree == *tree)
        .filter(|p| !gate.reads_history || p.head == *head)
}

/// Whether the kept proof verdict of a gate is red, and about this commit.
pub(crate) fn proof_is_red_at(state: &State, gate: &GateRule, head: &CommitId, tree: &TreeId) -> bool {
    gate.tree != TreeChoice::Live && proof_at(state, gate, head, tree).is_some_and(|p| p.verdict.is_red())
}

fn proof_is_red(state: &State, facts: &Facts) -> bool {
    !proof_failed(state, facts).is_empty()
}

/// Gates whose proof at these facts is red. An old red of a gate that is exempt by now says nothing.
#[must_use]
pub fn proof_failed(state: &State, facts: &Facts) -> Vec<GoalId> {
    state
        .rules
        .gates
        .iter()
        .filter(|g| g.tree != TreeChoice::Live)
        .filter(|g| proof_of(state, g, facts).is_some_and(|p| p.verdict.is_red()))
        .map(|g| g.id.clone())
        .collect()
}

/// Gates whose proof at this place is green, of whatever run.
#[must_use]
pub fn proved(state: &State, at: &TreeKey) -> Vec<GoalId> {
    let green = |gate: &&GateRule| {
        state.proofs.verdicts.get(&gate.id).is_some_and(|p| {
            let here = p.tree == at.tree && (!gate.reads_history || p.head == at.head);
            p.verdict.is_pass() && p.gate == gate.digest && here
        })
    };
    let gates = state.rules.gates.iter().filter(|g| g.tree != TreeChoice::Live);
    gates.filter(green).map(|g| g.id.clone()).collect()
}

/// Gates whose proof an earlier run left red at this tree.
#[must_use]
pub fn left_red(state: &State, facts: &Facts) -> Vec<GoalId> {
    let left = |gate: &&GateRule| {
        state.proofs.verdicts.get(&gate.id).is_some_and(|p| {
            let here = p.tree == facts.head_tree && (!gate.reads_history || p.head == facts.head);
            p.earlier && p.gate == gate.digest && here
        })
    };
    let gates = state.rules.gates.iter().filter(|g| g.tree != TreeChoice::Live);
    gates.filter(left).map(|g| g.id.clone()).collect()
}

/// Gates that the proof run still has to answer for at these facts.
#[must_use]
pub fn proof_owed(state: &State, facts: &Facts) -> Vec<GoalId> {
    state
        .rules
        .gates
        .iter()
        .filter(|g| g.tree != TreeChoice::Live && proof_of(state, g, facts).is_none())
        .map(|g| g.id.clone())
        .collect()
}

/// Gates that the operator exempted from the proof run.
#[must_use]
pub fn exempt(state: &State) -> Vec<GoalId> {
    state.rules.gates.iter().filter(|g| g.tree == TreeChoice::Live).map(|g| g.id.clone()).collect()
}

/// Whether the verdicts of a proof run are all green.
#[must_use]
pub fn proof_passed(verdicts: &[Judged]) -> bool {
    !verdicts.is_empty() && verdicts.iter().all(|j| j.verdict.is_pass())
}

/// Soft goals without a fresh consensus.
#[must_use]
pub fn soft_pending(state: &State, facts: &Facts) -> Vec<GoalId> {
    let roster = roster(state);
    state
        .rules
        .soft
        .iter()
        .filter(|soft| {
            let scope = facts.scopes.get(&soft.id).map(String::as_str).unwrap_or_default();
            !state
                .soft
                .get(&soft.id)
                .is_some_and(|status| reviews::satisfied(status, soft.rule, &roster, scope).ok)
        })
        .map(|soft| soft.id.clone())
        .collect()
}

/// What is missing at these facts and whose answer it is, for people.
#[must_use]
pub fn missing(state: &State, facts: &Facts, standing: &Standing) -> String {
    let quoted = |ids: &[GoalId]| ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ");
    let peers = |helps: &dyn Fn(&PeerName) -> bool, needed: u32| {
        let names = state.rules.peers.iter().map(|rule| &rule.name).filter(|peer| helps(peer));
        let names: Vec<String> = names.map(ToString::to_string).collect();
        names.join(if usize::try_from(needed).is_ok_and(|needed| needed < names.len()) {
            " or "
        } else {
            " and "
        })
    };
    match standing {
        Standing::Red => match (proof_failed(state, facts), state.board.red(&state.rules)) {
            (failed, red) if red.is_empty() && !failed.is_empty() => format!(
                "{} passes in the work tree and fails in a clean checkout; any peer can fix that",
                quoted(&failed)
            ),
            (_, red) => format!("{} is red; any peer can fix that", quoted(&red)),
        },
        Standing::Dirty => "a clean work tree; any peer can commit or remove what is left there".into(),
        Standing::SoftPending(goals) => {
            let roster = roster(state);
            let line = |goal: &GoalId| {
                let soft = state.rules.soft.iter().find(|soft| soft.id == *goal)?;
                if !may_be_asked(state, facts, soft) {
                    return None;
                }
                let scope = facts.scopes.get(goal).map(String::as_str).unwrap_or_default();
                let status = state.soft.get(goal).cloned().unwrap_or_default();
                let given = reviews::satisfied(&status, soft.rule, &roster, scope);
                let needed = given.need.saturating_sub(given.have);
                let asked = peers(&|peer| reviews::pending(&status, soft.rule, &roster, peer, scope), needed);
                Some(if reviews::objected(&status, &roster, scope) {
                    let by = status.last_reviewer.as_ref().map(ToString::to_string).unwrap_or_default();
                    format!("`{goal}`: {by} objects, and nothing has changed since")
                } else {
                    format!("the review `{goal}` by {asked}")
                })
            };
            goals.iter().filter_map(line).collect::<Vec<_>>().join("; ")
        }
        Standing::NoRealGate => "a gate of your own in goals.yaml".into(),
        Standing::SkepticOwed => {
            let asked = peers(&|peer| !skeptic_answered(state, peer, &facts.worktree), 1);
            format!("a skeptic's verdict by {asked}")
        }
        Standing::Unquiet(ticks) => format!("{ticks} more ticks in a row with every gate green"),
        Standing::ProofOwed | Standing::ProofUnjudged(_) => "the proof run".into(),
        Standing::Complete => "nothing".into(),
    }
}

/// The peers as the review rules see them.
#[must_use]
pub fn roster(state: &State) -> Vec<RosterEntry> {
    state
        .rules
        .peers
        .iter()
        .map(|p| RosterEntry {
            name: p.name.clone(),
            recovery: p.role == Role::Recovery,
            available: !matches!(
                state.peers.get(&p.name).map(|h| h.state).unwrap_or_default(),
                PeerState::Unavailable | PeerState::Halted
            ),
        })
        .collect()
}

/// Whether this peer has found nothing at this tree as a skeptic.
#[must_use]
pub fn skeptic_answered(state: &State, peer: &PeerName, tree: &TreeId) -> bool {
    state.skeptic.tree.as_ref() == Some(tree) && state.skeptic.passed.contains(peer)
}

/// Whether a soft goal may be asked for: all that it needs is green here.
#[must_use]
pub fn may_be_asked(state: &State, facts: &Facts, soft: &SoftRuleEntry) -> bool {
    let roster = roster(state);
    soft.needs.iter().all(|need| {
        if let Some(gate) = state.rules.gates.iter().find(|gate| gate.id == *need) {
            return state.board.fresh(gate, &facts.key()).is_some_and(|judged| judged.verdict.is_pass());
        }
        let other = state.rules.soft.iter().find(|other| other.id == *need);
        let scope = facts.scopes.get(need).map(String::as_str).unwrap_or_default();
        other
            .zip(state.soft.get(need))
            .is_some_and(|(other, status)| reviews::satisfied(status, other.rule, &roster, scope).ok)
    })
}

/// Whether a turn of this peer can bring one of these soft goals further: by a review that counts, or, while
/// somebody objects, by work.
#[must_use]
pub fn review_helps(state: &State, facts: &Facts, goals: &[GoalId], peer: &PeerName) -> bool {
    let roster = roster(state);
    let asked = state.rules.soft.iter().filter(|soft| goals.contains(&soft.id));
    asked.filter(|soft| may_be_asked(state, facts, soft)).any(|soft| {
        let scope = facts.scopes.get(&soft.id).map(String::as_str).unwrap_or_default();
        let status = state.soft.get(&soft.id).cloned().unwrap_or_default();
        reviews::objected(&status, &roster, scope)
            || reviews::pending(&status, soft.rule, &roster, peer, scope)
    })
}

/// Whom the skeptic turn should go to: somebody who did not write the newest product change and has
/// not answered for this tree.
#[must_use]
pub fn skeptic_prefers(state: &State, peer: &PeerName, tree: &TreeId) -> bool {
    !skeptic_answered(state, peer, tree) && state.last_product_author.as_ref() != Some(peer)
}
