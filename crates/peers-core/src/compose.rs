//! From state and facts to the next prompt.

use std::collections::{BTreeMap, BTreeSet};

use peers_model::config::{Comm, PositiveUsd};
use peers_model::goal::{GateRun, Goal, GoalKind, SoftGoal, TreeChoice};
use peers_model::verdict::Verdict;
use peers_model::{CommitId, GoalId, PeerName, Timestamp, Usd};

use crate::converge::{self, Standing};
use crate::machine::{ComposeFacts, Composing, LoopConfig};
use crate::phases;
use crate::prompt::{
    self, BudgetLeft, Findings, GateLine, GateState, Prompt, PromptInput, ReviewAsk, StandstillLine, Task,
};
use crate::reviews;
use crate::state::State;
use crate::turns;

/// A prompt and what it took from the queues.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// The prompt.
    pub prompt: Prompt,
    /// Queued warnings that it shows.
    pub warnings_taken: u32,
    /// How far it shows the commits of each other peer.
    pub inbox: BTreeMap<PeerName, CommitId>,
    /// Messages that it shows, by the files that hold them.
    pub messages: Vec<String>,
    /// Reviews that it asks for.
    pub asked: Vec<GoalId>,
}

/// Assembles the prompt of a turn.
#[must_use]
pub fn prepare(
    cfg: &LoopConfig,
    state: &State,
    composing: &Composing,
    facts: &ComposeFacts,
    now: Timestamp,
) -> Prepared {
    let facts = &phases::shown(composing, facts);
    let peer = &composing.peer;
    let health = state.health(peer);
    let role = state.rules.peers.iter().find(|p| p.name == *peer).map(|p| p.role).unwrap_or_default();
    let standing = converge::standing(cfg, state, &composing.facts);
    let task = phases::task(cfg, state, composing);
    let reviews = match task {
        Task::Free => pending_reviews(cfg, state, composing, &standing),
        Task::Given => Vec::new(),
    };
    let limit = turns::idle_limit(cfg.idle_after, &cfg.caps.in_force(state, now), state);
    let standstill = state.standstill.near(limit);
    let (operators, dirty) =
        composing.facts.dirty.iter().cloned().partition(|line| is_operators(&cfg.uncommitted, line));
    let input = PromptInput {
        me: peer.clone(),
        role,
        roster: state.rules.peers.iter().map(|p| p.name.clone()).collect(),
        tick: state.ticks.next(),
        nonce: facts.nonce.clone(),
        max_bytes: cfg.prompt_max,
        gates: gate_lines(cfg, state, composing),
        stuck_after: cfg.stuck_after,
        standstill: standstill.map(|(ticks, of)| StandstillLine {
            ticks,
            of,
            missing: converge::missing(state, &composing.facts, &standing),
        }),
        warnings: state.warnings.clone(),
        reviews: reviews.clone(),
        inbox: facts.inbox.clone(),
        messages: facts.messages.iter().map(|(_, m)| m.clone()).collect(),
        last_handoff: facts.last_handoff.clone(),
        own_last: health.last_run.filter(|r| !r.success).and_then(|r| r.soft_fail_reason),
        budget: budget_left(cfg, state, peer, now),
        dirty,
        operators,
        git_state: composing.facts.git_state.clone(),
        open_bugs: facts.open_bugs.clone(),
        phase: phase_text(cfg, state, composing, &standing),
        task,
        work: composing.work.clone(),
        notes: facts.notes.clone(),
        primers: facts.primers.clone(),
        skeptic: composing.skeptic,
        hybrid: cfg.comm == Comm::Hybrid,
        dry_run: state.rules.dry_run,
    };
    let prompt = prompt::assemble(&input);
    let messages = facts.messages.iter().take(prompt.messages_shown);
    Prepared {
        messages: messages.map(|(path, _)| path.clone()).collect(),
        inbox: facts.bookmarks.clone(),
        prompt,
        warnings_taken: u32::try_from(state.warnings.len()).unwrap_or(u32::MAX),
        asked: reviews.into_iter().map(|r| r.id).collect(),
    }
}

/// What the phase asks for, and that nothing else is missing where quiet ticks alone are.
fn phase_text(cfg: &LoopConfig, state: &State, composing: &Composing, standing: &Standing) -> Option<String> {
    let phase = phases::phase(&cfg.course, state).filter(|_| !composing.skeptic);
    let quiet = match standing {
        Standing::Unquiet(ticks) => Some(format!(
            "Every gate is green. The run is complete when they stay so for {ticks} more turns. Look for what \
             nobody has looked at; change nothing without need, and hand off."
        )),
        _ => None,
    };
    let texts: Vec<&str> =
        phase.map(|phase| phase.prompt.as_str()).into_iter().chain(quiet.as_deref()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// Whether a line of the uncommitted changes, `XY path`, is about something that was there before anybody of
/// the loop had a turn, and that no turn has changed since.
#[must_use]
pub fn is_operators(uncommitted: &[String], line: &str) -> bool {
    line.get(3..).is_some_and(|path| uncommitted.iter().any(|own| own == path))
}

/// Leaves of the operator's uncommitted paths those that a turn left as they were. `lines` are what differs
/// after it, `all` of that or the first of many, and `changed` the paths whose content it changed.
pub fn keep_operators(
    uncommitted: &mut Vec<String>,
    (lines, all): (&[String], bool),
    changed: &BTreeSet<String>,
) {
    uncommitted.retain(|own| {
        let listed = lines.iter().any(|line| line.get(3..) == Some(own.as_str()));
        !changed.contains(own) && (listed || !all)
    });
}

fn pending_reviews(
    cfg: &LoopConfig,
    state: &State,
    composing: &Composing,
    standing: &Standing,
) -> Vec<ReviewAsk> {
    // Where nothing but reviews is missing, nothing is gained by asking later.
    let only = matches!(standing, Standing::SoftPending(_));
    let roster = converge::roster(state);
    let mut asks = Vec::new();
    for goal in &cfg.goals {
        let GoalKind::Soft(soft) = &goal.kind else { continue };
        let Some(status) = state.soft.get(&goal.id) else { continue };
        let scope = composing.facts.scopes.get(&goal.id).map(String::as_str).unwrap_or_default();
        let entry = state.rules.soft.iter().find(|entry| entry.id == goal.id);
        let ready = entry.is_none_or(|entry| converge::may_be_asked(state, &composing.facts, entry));
        if !ready || !reviews::pending(status, soft.rule, &roster, &composing.peer, scope) {
            continue;
        }
        let last = state.asked.get(&composing.peer).and_then(|a| a.get(&goal.id));
        let due =
            only || last.is_none_or(|t| state.ticks.next().0.saturating_sub(t.0) >= u64::from(soft.every));
        if due {
            let findings = findings(state, composing, goal, soft);
            asks.push(ReviewAsk { id: goal.id.clone(), prompt: soft.prompt.clone(), findings });
        }
    }
    asks
}

/// What the check of a review says of the tree that the peer finds. Of another tree it says nothing.
fn findings(state: &State, composing: &Composing, goal: &Goal, soft: &SoftGoal) -> Option<Findings> {
    let GateRun::Check { name, .. } = &soft.check.as_ref()?.run else { return None };
    let digest = state.rules.soft.iter().find(|entry| entry.id == goal.id)?.check.as_deref()?;
    let judged = state.board.answer(&goal.id, digest, &composing.facts.key())?;
    Some(Findings {
        check: name.clone(),
        state: gate_state(&judged.verdict),
        text: judged.verdict.diagnostic().to_owned(),
    })
}

fn gate_lines(cfg: &LoopConfig, state: &State, composing: &Composing) -> Vec<GateLine> {
    let failed = converge::proof_failed(state, &composing.facts);
    cfg.goals
        .iter()
        .filter_map(|goal| {
            let GoalKind::Hard(hard) = &goal.kind else { return None };
            let standing = state.board.gates.get(&goal.id);
            let judged = standing.and_then(|s| s.last.as_ref());
            let mut line = GateLine {
                id: goal.id.clone(),
                about: goal.description.clone(),
                state: judged.map_or(GateState::Unknown, |j| gate_state(&j.verdict)),
                diagnostic: judged.map(|j| j.verdict.diagnostic().to_owned()).unwrap_or_default(),
                reds: standing.map_or(0, |s| s.reds),
                was: standing.and_then(|s| s.before.as_ref()).map(gate_state),
                exempt: hard.tree == TreeChoice::Live,
            };
            if failed.contains(&goal.id) {
                line.state = GateState::ProofFailed;
                if let Some(proof) = state.proofs.verdicts.get(&goal.id) {
                    proof.verdict.diagnostic().clone_into(&mut line.diagnostic);
                }
            }
            // Its words are those of tests, which the author of the step may have written.
            if phases::is_blind(composing) {
                line.diagnostic.clear();
            }
            Some(line)
        })
        .collect()
}

fn gate_state(verdict: &Verdict) -> GateState {
    match verdict {
        Verdict::Pass => GateState::Pass,
        Verdict::Fail { .. } => GateState::Fail,
        Verdict::Timeout { .. } => GateState::Timeout,
        Verdict::Error { .. } => GateState::Error,
        Verdict::Skipped { .. } => GateState::Skipped,
    }
}

/// What this peer may still use: of all caps, and of its own.
fn budget_left(cfg: &LoopConfig, state: &State, peer: &PeerName, now: Timestamp) -> BudgetLeft {
    let caps = cfg.caps.in_force(state, now);
    let b = &caps.budget;
    let spent = &state.spent;
    let own = b.per_peer.get(peer).copied().unwrap_or_default();
    let used = state.health(peer);
    let tokens = |cap: Option<std::num::NonZeroU64>, used: u64| cap.map(|m| m.get().saturating_sub(used));
    let dollars = |cap: Option<PositiveUsd>, used: Usd| {
        cap.map(|m| Usd::from_micros(m.0.as_micros().saturating_sub(used.as_micros())))
    };
    let least_tokens = [tokens(b.max_tokens, spent.tokens.0), tokens(own.max_tokens, used.tokens.0)];
    let least_usd = [dollars(b.max_usd, spent.usd), dollars(own.max_usd, used.usd)];
    BudgetLeft {
        iterations: b.max_iterations.map(|m| m.get().saturating_sub(spent.iterations)),
        runtime_s: crate::budget::runtime_left(&caps, state, now),
        tokens: least_tokens.into_iter().flatten().min(),
        usd: least_usd.into_iter().flatten().min(),
        idle_s: cfg.idle_s,
        absolute_s: cfg.absolute_s,
    }
}
