//! The end of a tick: what must be undone, and its one record.

use std::time::Duration;

use peers_model::config::UsdMode;
use peers_model::outcome::{ApiClass, PeerExit, StopReason, TamperKind};
use peers_model::record::{
    Cooling, CorrectionKind, CorrectionPlanned, Record, ScopeMove, SkepticVerdict, TickOutcome, TickRecord,
};
use peers_model::step::CourseMoved;
use peers_model::{PeerName, Timestamp, limits};

use super::decide::{look, stop_reason, stop_with};
use super::event::{Effect, Input, Notice, StopRequest};
use super::{Decision, Draft, LoopConfig, Machine, Phase};
use crate::apply::bounded;
use crate::budget::{self, Caps};
use crate::phases;
use crate::state::{OpenTick, PeerState, State};
use crate::turns;
use crate::waiting::{self, Wait};

/// What the judgement of a turn asks to be undone, as a plan.
pub(super) fn plan_correction(open: &OpenTick, draft: &Draft) -> Option<CorrectionPlanned> {
    let (kind, reason) = draft.judgement.undo.clone()?;
    let at = draft.harvest.at.as_ref()?;
    let started = &open.started;
    // A reset of nothing needs no plan.
    let same =
        at.head == started.head_before && at.worktree == started.tree_before && at.branch == started.branch;
    if kind == CorrectionKind::Reset && same {
        return None;
    }
    Some(CorrectionPlanned {
        tick: started.tick,
        kind,
        from: at.head.clone(),
        to: started.head_before.clone(),
        branch: started.branch.clone(),
        reason,
    })
}

/// Writes the tick's record and says what comes next.
pub(super) fn settle(cfg: &LoopConfig, m: &Machine, draft: &Draft, input: &Input) -> Decision {
    let Some(open) = &m.state.open else { return super::decide::ignore(m) };
    let draft = &waited_too_long(cfg, m, open, draft, input);
    let tick = record(cfg, &m.state, open, draft, input.at.wall);
    let mut after = m.state.clone();
    let mut records = vec![Record::Tick(Box::new(tick.clone()))];
    let cooling = cooling(cfg, m, &tick, input);
    records.extend(cooling.clone().map(Record::Cooling));
    for record in &records {
        if let Err(error) = after.apply(input.at.wall, Some(&cfg.run_id), record) {
            let kind = peers_model::outcome::ErrorKind::Internal;
            return stop_with(cfg, m, None, StopReason::Error(kind), &error.to_string());
        }
    }
    let worse = worsened(&m.state, &after, &tick);
    let capped = capped(cfg, &m.state, &after, &tick);
    let passed = passed_over(cfg, &m.state, &after, input.at.wall);
    // Gates that ran have answered: an exit from here cuts none of them off.
    let phase = Phase::Surveying(u8::from(draft.moved));
    let ahead = Machine { state: after, phase, stop: m.stop, behind: m.behind.clone() };
    let mut d = next(cfg, &ahead, was_out(&m.state, &tick.peer), draft, &tick, input);
    records.append(&mut d.records);
    d.records = records;
    let mut effects = vec![Effect::Attest];
    let delivered: Vec<String> = open.started.messages.clone();
    if !delivered.is_empty() && tick.outcome.read_its_prompt() && !m.state.rules.dry_run {
        effects.push(Effect::ArchiveMessages(delivered));
    }
    effects.push(Effect::WriteProjections);
    effects.push(Effect::Tell(Notice::TickEnded(Box::new(tick))));
    effects.extend(cooling.map(|cooling| Effect::Tell(Notice::PeerWaits(cooling))));
    effects.extend(worse);
    effects.extend(capped);
    effects.extend(passed);
    effects.append(&mut d.effects);
    d.effects = effects;
    d
}

fn wait(cfg: &LoopConfig, state: &State, open: &OpenTick, exit: &PeerExit, input: &Input) -> Wait {
    let at = (open.started.tick, cfg.run_id.as_str());
    waiting::after(state, &open.started.peer, at, exit, Duration::from_secs(cfg.max_wait_s), input.at.wall)
}

/// A peer that would wait longer than the operator allows needs its operator, unless enough others go on.
fn waited_too_long(cfg: &LoopConfig, m: &Machine, open: &OpenTick, draft: &Draft, input: &Input) -> Draft {
    let mut draft = draft.clone();
    if draft.judgement.outcome.waits()
        && let Wait::TooLong { why, .. } = wait(cfg, &m.state, open, &draft.exit, input)
        && !others_go_on(cfg, &m.state, &open.started.peer, input)
    {
        draft.judgement.outcome = TickOutcome::NeedsOperator;
        draft.judgement.reason = Some(why);
    }
    draft
}

/// Whether the loop did without `peer` before its turn: it was out for its failures, nobody started the run to
/// see whether it is well again, and another one is well.
fn was_out(before: &State, peer: &PeerName) -> bool {
    let health = before.health(peer);
    let well = |name: &PeerName| {
        let other = before.health(name);
        *name != *peer
            && other.state == PeerState::Healthy
            && other.blocked.is_none_or(|blocked| blocked.changes > 0)
    };
    health.state == PeerState::Degraded
        && !health.recovery_due
        && before.rules.peers.iter().any(|rule| well(&rule.name))
}

/// Whether the loop goes on without `peer`: the operator said that it may, and two others can have turns, now
/// or after a wait that the operator allows.
fn others_go_on(cfg: &LoopConfig, state: &State, peer: &PeerName, input: &Input) -> bool {
    let latest = input.at.wall.plus(Duration::from_secs(cfg.max_wait_s));
    let goes = |name: &PeerName| {
        let health = state.health(name);
        turns::may_ever_go(state, name)
            && health.blocked.is_none_or(|blocked| blocked.changes > 0)
            && health.not_before.is_none_or(|at| at <= latest)
            && budget::may_go(&cfg.caps, state, name)
    };
    let others = state.rules.peers.iter().filter(|rule| rule.name != *peer && goes(&rule.name));
    state.rules.continue_without_peer && others.count() >= 2
}

/// The wait of a peer whose service refused it, also where its turn had handed off before.
fn cooling(cfg: &LoopConfig, m: &Machine, tick: &TickRecord, input: &Input) -> Option<Cooling> {
    let refused = matches!(tick.exit.api, ApiClass::Transient | ApiClass::UsageCap);
    if !(tick.outcome.waits() || tick.success && refused) {
        return None;
    }
    match wait(cfg, &m.state, m.state.open.as_ref()?, &tick.exit, input) {
        Wait::Until(cooling) => Some(cooling),
        Wait::TooLong { cooling, .. } => tick.outcome.waits().then_some(cooling),
    }
}

fn worsened(before: &State, after: &State, tick: &TickRecord) -> Option<Effect> {
    let (old, new) = (before.health(&tick.peer), after.health(&tick.peer));
    (old.state == PeerState::Healthy && new.state != PeerState::Healthy).then(|| {
        Effect::Tell(Notice::PeerDegraded {
            peer: tick.peer.clone(),
            state: new.state,
            reason: new.degraded_reason.unwrap_or_else(|| new.state.word().to_owned()),
        })
    })
}

/// That this tick brought its peer to a cap of its own.
fn capped(cfg: &LoopConfig, before: &State, after: &State, tick: &TickRecord) -> Option<Effect> {
    let peer = &tick.peer;
    let reached = budget::reached(&cfg.caps, after, peer)?;
    budget::may_go(&cfg.caps, before, peer)
        .then(|| Effect::Tell(Notice::PeerCapped { peer: peer.clone(), reached }))
}

/// Who is passed over from this tick on, for less is left of a cap than its turns usually cost.
fn passed_over(cfg: &LoopConfig, before: &State, after: &State, now: Timestamp) -> Vec<Effect> {
    let caps = cfg.caps.in_force(after, now);
    let new = |peer: &PeerName| {
        let (_, why) = budget::short(&caps, after, peer).filter(|_| budget::may_go(&caps, after, peer))?;
        let told = budget::short(&caps, before, peer).is_some();
        (!told).then(|| Effect::Tell(Notice::PeerPassedOver { peer: peer.clone(), why }))
    };
    after.rules.peers.iter().filter_map(|rule| new(&rule.name)).collect()
}

/// What follows a tick. `m.state` is the state after it; `spared`: the loop did without its peer before.
fn next(
    cfg: &LoopConfig,
    m: &Machine,
    spared: bool,
    draft: &Draft,
    tick: &TickRecord,
    input: &Input,
) -> Decision {
    if let Some((kind, detail)) = &draft.harvest.tamper {
        return stop_with(
            cfg,
            m,
            None,
            StopReason::Tamper(*kind),
            &format!("in tick {} of {}: {detail}", tick.iteration, tick.peer),
        );
    }
    if let Some(why) = &draft.judgement.distrust {
        let detail = format!(
            "before tick {}, while no loop ran: {why}; look at {}, take it back or keep it, and say so by `peers ack weakening:{} --reason TEXT`",
            tick.iteration,
            tick.head_after.short(),
            tick.iteration
        );
        return stop_with(cfg, m, None, StopReason::Tamper(TamperKind::History), &detail);
    }
    match m.stop {
        Some(request @ (StopRequest::Graceful(_) | StopRequest::Now(_))) => {
            return stop_with(cfg, m, None, stop_reason(request), "");
        }
        // `AfterTick` is answered by the next survey.
        Some(StopRequest::AfterTick) | None => {}
    }
    let spared = spared || others_go_on(cfg, &m.state, &tick.peer, input);
    if tick.outcome == TickOutcome::NeedsOperator && !spared {
        let detail = tick.soft_fail_reason.clone().unwrap_or_default();
        return stop_with(cfg, m, None, StopReason::PeerUnavailable(tick.peer.clone()), &detail);
    }
    let mut d = look(m);
    if draft.moved {
        d.phase = Phase::Surveying(1);
    }
    d
}

#[expect(clippy::too_many_lines, reason = "one record, field by field")]
fn record(cfg: &LoopConfig, state: &State, open: &OpenTick, draft: &Draft, now: Timestamp) -> TickRecord {
    let started = &open.started;
    let j = &draft.judgement;
    let corrected = draft.correction.as_ref();
    let at = corrected.map(|c| c.at.clone()).or_else(|| draft.harvest.at.clone());
    let head_after = at.as_ref().map_or_else(|| started.head_before.clone(), |a| a.head.clone());
    let content_after = at.as_ref().map(|a| a.content.clone());
    let tree_after = at.as_ref().map_or_else(|| started.tree_before.clone(), |a| a.head_tree.clone());
    let undone = draft.corrected;
    // After history was put back, the turn's commits are no longer reachable: nothing to attribute.
    let gone = matches!(
        undone,
        Some(CorrectionKind::RestoreHistory | CorrectionKind::RestoreBranch | CorrectionKind::Reset)
    );
    let mut own = j.own.clone();
    if let Some(corrected) = corrected {
        own.extend(corrected.own.iter().filter(|c| !j.own.contains(c)).cloned().collect::<Vec<_>>());
    }
    let dirty = corrected.map_or(!draft.harvest.dirty.is_empty(), |c| c.at.head_tree != c.at.worktree);
    let rule = state.rules.peers.iter().find(|p| p.name == started.peer);
    let usage = draft.exit.usage;
    let spent_tokens_total = usage.tokens.map_or(state.spent.tokens, |t| state.spent.tokens + t);
    let spent_usd_total = usage.usd.map_or(state.spent.usd, |u| budget::add(state.spent.usd, u));
    let tree_changed = tree_after != started.tree_before;
    let mut warnings = j.warnings.clone();
    let usd_warned = usd_crossed(&cfg.caps.in_force(state, now), state, spent_usd_total);
    if let Some(cap) = usd_warned {
        warnings.push(format!("the money cap of {cap} is reached ({spent_usd_total} spent); `max_usd_mode: warn` lets the run go on"));
    }
    if draft.exit.truncated {
        warnings.push("output was longer than the capture; its middle was dropped".into());
    }
    warnings.extend(draft.exit.remarks.iter().map(|text| bounded(text, limits::WARNING)));
    if !draft.exit.survivors.is_empty() {
        warnings.push(format!("processes of this turn could not be ended: {:?}", draft.exit.survivors));
    }
    let success = j.success
        && !matches!(
            undone,
            Some(CorrectionKind::Revert | CorrectionKind::RestoreHistory | CorrectionKind::RestoreBranch)
        );
    let outcome = match undone {
        Some(CorrectionKind::Reset) | None => j.outcome,
        Some(CorrectionKind::Revert) if j.undo.is_some() && j.outcome.outlives_correction() => j.outcome,
        // Whatever a plan from before a crash undid: who is not logged in now has to be.
        Some(_) if j.outcome == TickOutcome::NeedsOperator => j.outcome,
        Some(CorrectionKind::Revert | CorrectionKind::RestoreHistory | CorrectionKind::RestoreBranch) => {
            TickOutcome::Corrected
        }
    };
    // A correction from before a crash: what it left behind no longer says why it was made.
    let reason = match &open.correction {
        Some(plan) if j.undo.is_none() && outcome == TickOutcome::Corrected => Some(plan.reason.clone()),
        Some(_) | None => j.reason.clone(),
    };
    let voided = undone.is_some();
    let (moved, lacks) = phases::moved(cfg, open, &draft.harvest, success);
    warnings.extend(lacks.filter(|_| !voided));
    let mut gates: std::collections::BTreeMap<_, _> = state
        .rules
        .gates
        .iter()
        .filter_map(|g| {
            Some((g.id.clone(), state.board.gates.get(&g.id)?.last.as_ref()?.verdict.word().to_owned()))
        })
        .collect();
    for verdict in &draft.verdicts {
        gates.insert(verdict.goal.clone(), verdict.verdict.word().to_owned());
    }
    let mut tick = TickRecord {
        iteration: started.tick,
        peer: started.peer.clone(),
        tool: rule.map(|r| r.tool.clone()).unwrap_or_default(),
        role: rule.map(|r| r.role).unwrap_or_default(),
        outcome,
        success,
        classification: draft.exit.classification().to_owned(),
        soft_fail_reason: reason,
        exit: draft.exit.clone(),
        recovered: draft.recovered,
        outside: started.outside,
        rescued: j.rescued && success,
        started_at: open.at,
        gate_ms: draft.gate_ms,
        head_before: started.head_before.clone(),
        head_after,
        tree_after,
        content_after,
        branch: at.map_or_else(|| started.branch.clone(), |a| a.branch),
        commits: if gone { Vec::new() } else { j.commits.clone() },
        foreign: if gone { Vec::new() } else { j.foreign.clone() },
        own,
        corrected: undone,
        salvage: corrected.and_then(|c| c.salvage.clone()).or_else(|| draft.harvest.salvage.clone()),
        dirty,
        product_change: j.product_change && tree_changed,
        tree_changed,
        evidence: j.evidence && !voided,
        blocking_report: j.blocking_report,
        warnings_emitted: warnings,
        reviews: if voided { Vec::new() } else { j.reviews.clone() },
        soft_reviews_seen: j.reviews_seen,
        soft_reviews_rejected: j.reviews_rejected,
        scopes: if voided {
            std::collections::BTreeMap::new()
        } else {
            let moved = |(b, a): &(String, String)| ScopeMove { before: b.clone(), after: a.clone() };
            draft.harvest.scopes.iter().map(|(id, s)| (id.clone(), moved(s))).collect()
        },
        // Only a turn that stands has given a verdict.
        skeptic: match j.skeptic {
            Some(_) if voided => Some(SkepticVerdict::Missing),
            Some(SkepticVerdict::Clean) if !success => Some(SkepticVerdict::Missing),
            said => said,
        },
        blocked_on: j.blocked_on.clone().filter(|_| outcome == TickOutcome::Blocked),
        bugs_closed: draft.harvest.bugs_closed,
        bugs_reported: draft.harvest.bugs_reported,
        prewarned: j.prewarned,
        misnamed: j.misnamed,
        justification: j.justification.clone(),
        verdicts: draft.verdicts.clone(),
        git_tampered: draft.harvest.git_tampered.clone(),
        published: draft.harvest.published.clone(),
        prompt_bytes: started.prompt_bytes,
        usd_warned,
        course: (!voided && moved != CourseMoved::default()).then(|| Box::new(moved)),
        gates,
        spent_tokens_total,
        spent_usd_total,
        peer_state_after: String::new(),
    };
    let mut after = state.clone();
    let folded =
        after.apply(open.at, state.run.as_ref().map(|r| &r.id), &Record::Tick(Box::new(tick.clone())));
    tick.peer_state_after = match folded {
        Ok(()) => after.health(&tick.peer).state.word().to_owned(),
        Err(_) => "unknown".to_owned(),
    };
    tick
}

/// The soft money cap, when this tick is the one that reached it.
fn usd_crossed(caps: &Caps, state: &State, total: peers_model::Usd) -> Option<peers_model::Usd> {
    if caps.usd_mode != UsdMode::Warn {
        return None;
    }
    let mut ahead = state.clone();
    ahead.spent.usd = total;
    budget::usd_warning(caps, &ahead)
}
