//! What a tick leaves in the state: spending, the turn, health, warnings, the skeptic, reviews.

use peers_model::outcome::ExitClass;
use peers_model::record::{CorrectionKind, SkepticVerdict, TickOutcome, TickRecord};
use peers_model::{GoalId, Timestamp, limits};

use super::bounded;
use crate::budget;
use crate::failed;
use crate::reviews::{self, Ingested};
use crate::state::{
    Blocked, LastRun, MOST_REVERTED, OpenTick, PeerHealth, PeerState, State, WarningEntry, Wasted,
};

/// So many turns' costs are kept of each peer.
const COSTS: usize = 9;

impl State {
    pub(super) fn account(&mut self, tick: &TickRecord) {
        let spent = &mut self.spent;
        spent.iterations = spent.iterations.saturating_add(1);
        spent.peer_ms = spent.peer_ms.saturating_add(tick.exit.duration_ms);
        spent.gate_ms = spent.gate_ms.saturating_add(tick.gate_ms);
        let usage = tick.exit.usage;
        match usage.tokens {
            Some(tokens) => spent.tokens += tokens,
            None => spent.unknown_usage = spent.unknown_usage.saturating_add(1),
        }
        if let Some(usd) = usage.usd {
            spent.usd = budget::add(spent.usd, usd);
        }
        if tick.usd_warned.is_some() {
            spent.usd_warned_for = tick.usd_warned;
        }
        if tick.outside {
            // Nobody watched it: it shows nothing of its peer.
        } else if tick.success || tick.outcome.is_neutral() {
            // Whom a service refuses did start; who is blocked or was cut short has shown nothing.
            if tick.success || tick.outcome.waits() {
                spent.consecutive_failures = 0;
                spent.spawn_failures = 0;
            }
        } else {
            spent.consecutive_failures = spent.consecutive_failures.saturating_add(1);
            spent.spawn_failures = if tick.exit.class == ExitClass::SpawnFail {
                spent.spawn_failures.saturating_add(1)
            } else {
                0
            };
            spent.wasted_ms = spent.wasted_ms.saturating_add(tick.exit.duration_ms);
            spent.wasted.push_back(Wasted {
                tick: tick.iteration,
                peer: tick.peer.clone(),
                duration_ms: tick.exit.duration_ms,
            });
            while spent.wasted.len() > 20 {
                spent.wasted.pop_front();
            }
        }
        let progress = &mut self.progress;
        progress.ticks = progress.ticks.saturating_add(1);
        if let Some(tokens) = usage.tokens {
            progress.tokens += tokens;
        }
        if let Some(usd) = usage.usd {
            progress.usd = budget::add(progress.usd, usd);
        }
        let health = self.peers.entry(tick.peer.clone()).or_default();
        health.ticks = health.ticks.saturating_add(1);
        // What a refused or shortened turn cost says nothing of what the next one will.
        if tick.exit.class == ExitClass::Ok && !tick.outcome.is_neutral() {
            health.costs.push_back(usage);
            while health.costs.len() > COSTS {
                health.costs.pop_front();
            }
        }
        let vague = |known: bool| u64::from(!known || tick.exit.at_least);
        health.vague_tokens = health.vague_tokens.saturating_add(vague(usage.tokens.is_some()));
        health.vague_usd = health.vague_usd.saturating_add(vague(usage.usd.is_some()));
        if let Some(tokens) = usage.tokens {
            health.tokens += tokens;
        }
        if let Some(usd) = usage.usd {
            health.usd = budget::add(health.usd, usd);
        }
    }

    pub(super) fn rotate(&mut self, tick: &TickRecord) {
        let n = self.rules.peers.len().max(1);
        let Some(index) = self.rules.peers.iter().position(|p| p.name == tick.peer) else { return };
        let max_retries = self.rules.max_retries;
        let health = self.peers.entry(tick.peer.clone()).or_default();
        let pass_on = match tick.outcome {
            _ if tick.outside => true,
            TickOutcome::Handoff
            | TickOutcome::RateLimited
            | TickOutcome::UsageCapped
            | TickOutcome::Blocked
            | TickOutcome::NeedsOperator => {
                health.consecutive_fails = 0;
                true
            }
            // Who used up a cap in one turn does not get the next one as well.
            TickOutcome::Interrupted => tick.exit.class == ExitClass::Budget,
            // A reverted turn is taken again by the same peer; two of them degrade it.
            TickOutcome::Corrected if tick.corrected == Some(CorrectionKind::Revert) => false,
            TickOutcome::Corrected if tick.success => {
                health.consecutive_fails = 0;
                true
            }
            TickOutcome::NoHandoff | TickOutcome::PeerFailed | TickOutcome::Corrected => {
                health.consecutive_fails = health.consecutive_fails.saturating_add(1);
                let pass_on = health.consecutive_fails > max_retries;
                if pass_on {
                    health.consecutive_fails = 0;
                }
                pass_on
            }
        };
        self.turn_index = if pass_on { (index + 1) % n } else { index };
    }

    pub(super) fn health_after(&mut self, tick: &TickRecord) {
        let health = self.peers.entry(tick.peer.clone()).or_default();
        health.last_run = Some(LastRun {
            tick: tick.iteration,
            success: tick.success,
            outcome: Some(tick.outcome),
            classification: tick.classification.clone(),
            duration_ms: tick.exit.duration_ms,
            soft_fail_reason: tick.soft_fail_reason.clone(),
            pattern: tick.exit.matched.as_ref().map(|m| m.pattern.clone()),
        });
        if tick.outside {
            // Whose it was is only claimed: it neither heals nor charges anybody.
            return;
        }
        // A weakening is one however the turn ended.
        if !self.rules.dry_run && (tick.prewarned || tick.corrected == Some(CorrectionKind::Revert)) {
            health.prewarned = true;
            health.warned_at = Some(tick.iteration);
        }
        if tick.outcome.waits() {
            return;
        }
        health.blocked = None;
        if tick.outcome == TickOutcome::Blocked && !self.rules.dry_run {
            let on = tick.blocked_on.clone().unwrap_or_default();
            let on = bounded(&on, limits::WARNING);
            health.blocked = Some(Blocked { tick: tick.iteration, on, changes: 0 });
            health.blocked_times = health.blocked_times.saturating_add(1);
        } else if !tick.outcome.is_neutral() {
            health.blocked_times = 0;
        }
        health.rate_limit_streak = 0;
        health.not_before = None;
        health.waits_for = None;
        health.limited_since = None;
        health.waited_ms = 0;
        if tick.outcome.is_neutral() {
            // A turn that was cut short says nothing; a recovery turn stays due, as after a rate limit.
            return;
        }
        health.recovery_due = false;
        let credit = if tick.success {
            // It stands; who cannot name itself is watched.
            u8::from(tick.misnamed)
        } else if tick.outcome == TickOutcome::NoHandoff && !tick.commits.is_empty() {
            1
        } else {
            2
        };
        health.recent.push_back(credit);
        while health.recent.len() > 5 {
            health.recent.pop_front();
        }
        let cheated =
            tick.outcome == TickOutcome::Corrected && tick.corrected == Some(CorrectionKind::Revert);
        if tick.success {
            heal(health);
            health.failed_cheating = 0;
            if !self.rules.dry_run {
                health.prewarned = tick.prewarned;
                health.warned_at = health.warned_at.filter(|_| tick.prewarned);
            }
            return;
        }
        if tick.outcome == TickOutcome::NeedsOperator {
            health.state = PeerState::Unavailable;
            health.degraded_reason = Some(cause(tick));
            return;
        }
        if cheated {
            health.failed_cheating = health.failed_cheating.saturating_add(1);
        } else {
            health.failed_cheating = 0;
        }
        if health.state == PeerState::Degraded {
            health.recovery_cooldown = Some(tick.iteration);
        } else if health.recent_half_fails() >= 6 || health.failed_cheating >= MOST_REVERTED {
            health.state = PeerState::Degraded;
            health.degraded_at = Some(tick.iteration);
            health.degraded_reason = Some(causes(health, tick));
        }
    }

    pub(super) fn take_warnings(&mut self, ts: Timestamp, tick: &TickRecord) {
        for text in &tick.warnings_emitted {
            let text = bounded(text, limits::WARNING);
            self.warnings.push(text.clone());
            self.warnings_history.push_back(WarningEntry { ts, tick: tick.iteration, text });
        }
        while self.warnings_history.len() > limits::WARNINGS_KEPT {
            self.warnings_history.pop_front();
        }
        let excess = self.warnings.len().saturating_sub(limits::WARNINGS_KEPT);
        self.warnings.drain(..excess);
    }

    pub(super) fn skeptic_after(&mut self, open: &OpenTick, tick: &TickRecord) {
        if tick.tree_changed {
            self.skeptic.passed.clear();
            self.skeptic.tree = None;
            self.skeptic.attempts = 0;
        }
        if !open.started.skeptic || self.rules.dry_run {
            if !self.rules.dry_run && !tick.outcome.is_neutral() && !tick.outside {
                self.skeptic.unreported = 0;
            }
            return;
        }
        match tick.skeptic {
            Some(SkepticVerdict::Clean) if !tick.tree_changed => {
                if self.skeptic.passed.contains(&tick.peer) {
                    // Said again by the same, it is one try more for those who have not answered.
                    self.skeptic.attempts = self.skeptic.attempts.saturating_add(1);
                } else {
                    self.skeptic.passed.push(tick.peer.clone());
                }
                self.skeptic.tree = Some(tick.tree_after.clone());
                if self.skeptic.passed.len() > 1 {
                    self.strangers = false;
                }
            }
            Some(SkepticVerdict::Found) => {
                self.skeptic.passed.clear();
                self.skeptic.tree = None;
                self.skeptic.attempts = 0;
                // To mend what one finds is fine; to mend something for ever and report nothing is not.
                self.skeptic.unreported =
                    if tick.blocking_report { 0 } else { self.skeptic.unreported.saturating_add(1) };
            }
            Some(SkepticVerdict::Clean | SkepticVerdict::Missing) | None => {
                // Whose service refuses it, or who is blocked, has not failed to answer.
                if !tick.outcome.is_neutral() {
                    self.skeptic.attempts = self.skeptic.attempts.saturating_add(1);
                }
            }
        }
    }

    /// Takes the reviews of a tick in. Returns those that count and pass, each with the content that it is about.
    pub(super) fn soft_after(&mut self, tick: &TickRecord, unsure: bool) -> Vec<(GoalId, String)> {
        let mut passed = Vec::new();
        if self.rules.dry_run {
            return passed;
        }
        let rules = self.rules.clone();
        let roster = crate::converge::roster(self);
        for soft in &rules.soft {
            let status = self.soft.entry(soft.id.clone()).or_default();
            if let Some(moved) = tick.scopes.get(&soft.id).filter(|m| m.before != m.after) {
                let by = Some(&tick.peer).filter(|_| !tick.outside);
                reviews::scope_changed(status, by, &moved.before, &moved.after);
                status.strangers |= unsure;
            }
            let scope = tick.scopes.get(&soft.id).map(|m| m.after.as_str()).unwrap_or_default();
            for review in tick.reviews.iter().filter(|r| r.goal == soft.id) {
                let taken =
                    reviews::ingest(status, soft.rule, &roster, &tick.peer, review, scope, tick.iteration);
                if review.pass && taken == Ingested::Counted {
                    passed.push((soft.id.clone(), scope.to_owned()));
                }
            }
            // Once enough have passed it whoever made it, it is as any other content.
            if status.strangers && reviews::satisfied(status, soft.rule, &roster, scope).ok {
                status.strangers = false;
            }
            status.strangers |= rules.unwatched;
        }
        passed
    }
}

fn heal(health: &mut PeerHealth) {
    health.state = PeerState::Healthy;
    health.degraded_reason = None;
    health.degraded_at = None;
    health.recovery_cooldown = None;
}

fn cause(tick: &TickRecord) -> String {
    let why = failed::why(tick).unwrap_or_else(|| "it failed".to_owned());
    // The kind that the stream gave.
    let kind = tick.exit.matched.as_ref().filter(|matched| matched.source.starts_with("structured"));
    let kind = kind.map(|matched| format!(": {}", bounded(&matched.pattern, 60)));
    let line = failed::by_pattern(tick).filter(|line| *line != why).map(|line| format!("; {line}"));
    format!("{}{}", bounded(&why, 200), kind.or(line).unwrap_or_default())
}

/// How many of the newest turns failed, and why the last one did.
fn causes(health: &PeerHealth, tick: &TickRecord) -> String {
    let why = cause(tick);
    match health.recent.iter().rev().take_while(|credit| **credit > 0).count() {
        0 | 1 => format!("its last turn failed ({why})"),
        turns => format!("its last {turns} turns failed (the last one: {why})"),
    }
}

/// The clean-tick counter after a tick (`docs/convergence.md`).
pub(super) fn clean_after(before: u32, tick: &TickRecord, dry_run: bool) -> u32 {
    if dry_run || tick.outcome.is_neutral() {
        before
    } else if !tick.success || tick.blocking_report {
        0
    } else if tick.evidence && !tick.outside {
        before.saturating_add(1)
    } else {
        // A turn that changed nothing and reviewed nothing proves nothing, nor does one that nobody watched.
        before
    }
}
