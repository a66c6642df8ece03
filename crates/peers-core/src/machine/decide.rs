//! The transition function.

use std::time::Duration;

use peers_model::claim::CommitClaims;
use peers_model::outcome::{ErrorKind, ExitClass, PeerExit, StopReason, TamperKind, Usage};
use peers_model::record::{CommitsSeen, ExitProof, ExitRecord, Record, RunStarted, TickStarted, TurnEnded};
use peers_model::verdict::{Judged, TreeKey};
use peers_model::{GoalId, TickNo};

use super::event::{Effect, Event, Facts, Harvest, Input, Left, Notice, Origin, Recovery, StopRequest};
use super::{Behind, Decision, Draft, LoopConfig, Machine, Phase, Purpose, settle, survey, trial};
use crate::apply::bounded;
use crate::budget;
use crate::cheat::green_by_test_edits;
use crate::converge;
use crate::harvest as judging;
use crate::state::{OpenTick, State};

/// The signal of Ctrl-C.
const SIGINT: i32 = 2;

/// The first phase and effects of a process. What a crashed loop left running is ended before
/// anything is looked at: it could still be writing, and looking may fail.
#[must_use]
pub fn start(state: &State) -> (Phase, Vec<Effect>) {
    let spawned = state.open.as_ref().and_then(|open| open.spawned.clone());
    let tick = state.open.as_ref().map(|open| open.started.tick);
    // A run that was not ended may also have left gates.
    if tick.is_some() || state.live_run().is_some() {
        return (Phase::Reaping, vec![Effect::ReapOrphans { tick, spawned }]);
    }
    (Phase::Booting(Left::default()), vec![Effect::Survey])
}

/// Says what follows from an input. Pure: the same machine and input give the same answer.
///
/// First the pairs of phase and event that do something, then what each event means in all other phases.
pub fn decide(cfg: &LoopConfig, m: &Machine, input: &Input) -> Decision {
    match (&m.phase, &input.event) {
        (Phase::Reaping, Event::OrphansGone(left)) => look_at_start(m, left),
        (Phase::Booting(left), Event::Surveyed(facts)) => on_booted(cfg, m, facts, left, input),
        (Phase::Surveying(unstable), Event::Surveyed(facts)) => {
            survey::on_facts(cfg, m, facts, *unstable, input)
        }
        (Phase::Judging(facts, unstable), Event::Judged { verdicts, took_ms, moved, changed }) => {
            let moved = moved.then_some(changed.as_str());
            survey::on_verdicts(cfg, m, facts, *unstable, verdicts, *took_ms, moved, input)
        }
        (Phase::Proving(facts, unstable, purpose), Event::Judged { verdicts, took_ms, moved, .. }) => {
            match purpose {
                Purpose::Proof => {
                    survey::on_proof(cfg, m, facts, *unstable, verdicts, *took_ms, *moved, input)
                }
                Purpose::Trial => {
                    trial::on_answer(cfg, m, facts, *unstable, (verdicts, *took_ms, *moved), input)
                }
            }
        }
        (Phase::Composing(composing), Event::Composed(facts)) => {
            survey::on_composed(cfg, m, composing, facts, input.at.wall)
        }
        // The first word about the process of the open tick is recorded, and no other.
        (Phase::Running { spawned: false }, Event::PeerSpawned(spawned))
            if m.state.open.as_ref().is_some_and(|open| open.started.tick == spawned.tick) =>
        {
            let mut d = keep(m, Phase::Running { spawned: true });
            d.records.push(Record::PeerSpawned(spawned.clone()));
            d
        }
        (Phase::Running { .. }, Event::PeerExited(exit)) => harvest_now(m, exit.as_ref().clone(), false),
        (Phase::Harvesting { exit, recovered }, Event::Harvested(harvest)) => {
            on_harvested(cfg, m, exit, *recovered, harvest, input)
        }
        (Phase::Correcting(draft), Event::Corrected(corrected)) => {
            let mut draft = draft.as_ref().clone();
            draft.correction = Some(corrected.as_ref().clone());
            settle::settle(cfg, m, &draft, input)
        }
        (Phase::Refreshing(draft), Event::Judged { verdicts, took_ms, moved, .. }) => {
            on_refreshed(cfg, m, draft, verdicts, *took_ms, *moved, input)
        }
        (Phase::Composing(_), Event::Outdated) | (Phase::CoolingDown, Event::Timer) => look(m),
        // It may take no longer.
        (Phase::Proving(.., Purpose::Trial), Event::Timer) => skip_trial(m),

        (_, Event::Stop(request)) => on_stop(cfg, m, *request),
        (_, Event::Failed { kind, detail }) => on_failed(cfg, m, StopReason::Error(*kind), detail),
        (_, Event::Tampered { kind, detail }) => on_failed(cfg, m, StopReason::Tamper(*kind), detail),
        (_, Event::JudgedBehind { key, verdicts, took_ms }) => on_judged_behind(m, key, verdicts, *took_ms),
        // An answer that nobody waits for any more.
        (
            _,
            Event::Surveyed(_)
            | Event::OrphansGone(_)
            | Event::Judged { .. }
            | Event::Composed(_)
            | Event::Outdated
            | Event::PeerSpawned(_)
            | Event::PeerExited(_)
            | Event::Harvested(_)
            | Event::Corrected(_)
            | Event::Timer,
        ) => ignore(m),
    }
}

/// What gates beside a peer say waits for the next survey: no tick is open then, and the tree is known.
fn on_judged_behind(m: &Machine, key: &TreeKey, verdicts: &[Judged], took_ms: u64) -> Decision {
    // The verdicts of superseded gates are dropped.
    if m.behind != Behind::Running(key.clone()) {
        return ignore(m);
    }
    let mut d = if m.phase == Phase::AwaitingGates { look(m) } else { ignore(m) };
    d.behind = Behind::Answered { verdicts: verdicts.to_vec(), took_ms };
    d
}

/// Nothing changes.
pub(super) fn ignore(m: &Machine) -> Decision {
    keep(m, m.phase.clone())
}

/// Nothing but the phase changes.
pub(super) fn keep(m: &Machine, phase: Phase) -> Decision {
    Decision { records: Vec::new(), phase, stop: m.stop, behind: m.behind.clone(), effects: Vec::new() }
}

/// Surveys again.
pub(super) fn look(m: &Machine) -> Decision {
    let mut d = keep(m, Phase::Surveying(0));
    d.effects.push(Effect::Survey);
    d
}

/// Ends the run. Every exit goes through here, so every exit leaves its record.
pub(super) fn stop_with(
    cfg: &LoopConfig,
    m: &Machine,
    facts: Option<&Facts>,
    reason: StopReason,
    detail: &str,
) -> Decision {
    let proof = match (&reason, facts) {
        (StopReason::Complete, Some(facts)) => {
            Some(ExitProof { tree: facts.head_tree.clone(), exempt: converge::exempt(&m.state) })
        }
        _ => None,
    };
    let signal = if let StopReason::Interrupted(signal) = reason { Some(signal) } else { None };
    let live = m.state.live_run().is_some_and(|r| r.id == cfg.run_id);
    let record = ExitRecord {
        reason: reason.clone(),
        detail: bounded(detail, peers_model::limits::WARNING),
        ticks_in_run: m.state.run.as_ref().filter(|r| r.id == cfg.run_id).map_or(0, |r| r.ticks),
        signal,
        head: facts.map(|f| f.head.clone()).or_else(|| m.state.head.clone()),
        proof,
        in_gates: matches!(
            m.phase,
            Phase::Surveying(1..)
                | Phase::Judging(..)
                | Phase::Proving(..)
                | Phase::Refreshing(_)
                | Phase::AwaitingGates
        ) || matches!(m.behind, Behind::Running(_)),
    };
    Decision {
        records: if live { vec![Record::Exit(Box::new(record))] } else { Vec::new() },
        phase: Phase::Stopped(reason.clone()),
        stop: None,
        behind: Behind::Idle,
        effects: vec![
            Effect::WriteProjections,
            Effect::FinishRun,
            Effect::Tell(Notice::Stopped { reason, detail: detail.to_owned() }),
        ],
    }
}

/// What a pending stop request asks for now, when no tick is open.
pub(super) fn stop_reason(request: StopRequest) -> StopReason {
    match request {
        StopRequest::AfterTick => StopReason::Drained,
        StopRequest::Graceful(signal) | StopRequest::Now(signal) => StopReason::Interrupted(signal),
    }
}

fn on_stop(cfg: &LoopConfig, m: &Machine, request: StopRequest) -> Decision {
    // The more urgent request wins; the first signal names the exit.
    let request = match m.stop {
        Some(StopRequest::Graceful(first) | StopRequest::Now(first))
            if matches!(request, StopRequest::Now(_)) =>
        {
            StopRequest::Now(first)
        }
        Some(held @ StopRequest::Graceful(_)) if matches!(request, StopRequest::Graceful(_)) => held,
        Some(held) if held > request => held,
        _ => request,
    };
    if matches!(m.phase, Phase::Proving(.., Purpose::Trial)) && request == StopRequest::Graceful(SIGINT) {
        // Ctrl-C skips it; the next one stops.
        return skip_trial(m);
    }
    let mut d = ignore(m);
    d.stop = Some(request);
    let urgent = !matches!(request, StopRequest::AfterTick);
    match &m.phase {
        Phase::Stopped(_) => d.stop = None,
        // A stop before the run has begun leaves no trace but the exit code.
        Phase::Booting { .. } => return stop_with(cfg, m, None, stop_reason(request), ""),
        Phase::Surveying(_) | Phase::Composing(_) | Phase::CoolingDown | Phase::AwaitingGates => {
            if urgent || !matches!(m.phase, Phase::Composing(_)) {
                return stop_with(cfg, m, None, stop_reason(request), "");
            }
        }
        // No tick runs in a trial.
        Phase::Judging(..) | Phase::Proving(..) => {
            if urgent || matches!(m.phase, Phase::Proving(.., Purpose::Trial)) {
                let mut stop = stop_with(cfg, m, None, stop_reason(request), "");
                stop.effects.insert(0, Effect::CancelGates);
                return stop;
            }
        }
        Phase::Running { .. } => {
            if urgent {
                d.effects.push(Effect::EndPeer { now: matches!(request, StopRequest::Now(_)) });
            }
        }
        Phase::Refreshing(_) => {
            if urgent {
                d.effects.push(Effect::CancelGates);
            }
        }
        Phase::Reaping | Phase::Harvesting { .. } | Phase::Correcting(_) => {}
    }
    d
}

/// Ends a trial: what has answered by then is taken.
fn skip_trial(m: &Machine) -> Decision {
    let mut d = ignore(m);
    d.effects.push(Effect::CancelGates);
    d
}

fn on_failed(cfg: &LoopConfig, m: &Machine, reason: StopReason, detail: &str) -> Decision {
    if matches!(m.phase, Phase::Stopped(_)) {
        return ignore(m);
    }
    // An open tick stays open: what its turn left is harvested by the next run, so nothing is lost.
    let mut d = stop_with(cfg, m, None, reason, detail);
    if matches!(m.phase, Phase::Judging(..) | Phase::Proving(..) | Phase::Refreshing(_)) {
        d.effects.insert(0, Effect::CancelGates);
    } else if matches!(m.phase, Phase::Running { .. }) {
        d.effects.insert(0, Effect::EndPeer { now: true });
    }
    d
}

fn on_booted(cfg: &LoopConfig, m: &Machine, facts: &Facts, left: &Left, input: &Input) -> Decision {
    let open = m.state.open.as_ref();
    let unwitnessed = m.state.unwitnessed();
    let distrusted = m.state.distrusted.filter(|_| open.is_none());
    let outside = outside(cfg, m, facts).filter(|_| open.is_none() && !unwitnessed && distrusted.is_none());
    let nobodys = unwitnessed || cfg.rules.unwatched;
    let record = RunStarted {
        pid: cfg.pid,
        version: cfg.version.clone(),
        branch: facts.branch.clone(),
        head: facts.head.clone(),
        // What is new while a tick is open belongs to that tick; its harvest will say so.
        operator: if open.is_some() || nobodys || outside.is_some() || distrusted.is_some() {
            Vec::new()
        } else {
            facts.arrived.clone()
        },
        digests: cfg.digests.clone(),
        sandbox: cfg.sandbox.clone(),
        max_ticks: cfg.max_ticks,
        rules: cfg.rules.clone(),
        torn: cfg.torn,
    };
    let record = Record::RunStarted(Box::new(record));
    let mut d = match open {
        None if let Some(tick) = distrusted => distrusts(cfg, m, facts, tick),
        None if let Some(started) = &outside => took_place(m, started),
        None if nobodys && !facts.arrived.is_empty() => {
            let mut state = m.state.clone();
            if let Err(error) = state.apply(input.at.wall, Some(&cfg.run_id), &record) {
                return stop_with(cfg, m, None, StopReason::Error(ErrorKind::Internal), &error.to_string());
            }
            let ahead = Machine { state, phase: m.phase.clone(), stop: m.stop, behind: m.behind.clone() };
            survey::on_arrived(cfg, &ahead, facts, u8::from(unwitnessed))
        }
        None => {
            let mut d = look(m);
            d.effects.insert(0, Effect::WriteProjections);
            d
        }
        Some(open) => {
            // While nothing ran, nothing was spent. A turn that never said anything would have been ended for that.
            let silent = open.at.plus(Duration::from_secs(cfg.idle_s.max(1)));
            let until = left.last_sign.unwrap_or(silent).min(input.at.wall);
            let elapsed = u64::try_from(until.since(open.at).as_millis()).unwrap_or(u64::MAX);
            // Where the turn was over and gates ran, how it ended is known.
            let ended = open.ended.as_ref().map(|ended| ended.exit.as_ref().clone());
            let mut exit = ended.unwrap_or_else(|| PeerExit {
                usage: left.usage,
                at_least: left.usage != Usage::default(),
                ..PeerExit::interrupted(elapsed)
            });
            exit.survivors.extend(left.survivors.iter().copied());
            harvest_now(m, exit, true)
        }
    };
    d.records.insert(0, record);
    for (peer, reached) in budget::over(&cfg.caps, &m.state) {
        d.effects.insert(0, Effect::Tell(Notice::PeerCapped { peer, reached }));
    }
    if let Some(recovery) = recovery(&m.state) {
        d.effects.insert(0, Effect::Tell(Notice::Recovering(recovery)));
    }
    d.effects.insert(0, Effect::Tell(Notice::RunStarted));
    d
}

/// What an earlier run left half done, if it did.
fn recovery(before: &State) -> Option<Recovery> {
    let (run, open) = (before.run.as_ref()?, before.open.as_ref());
    let killed = !run.ended;
    (killed || open.is_some()).then(|| Recovery {
        run: run.id.clone(),
        killed,
        turn: open.map(|open| (open.started.tick, open.started.peer.clone())),
        done: open.is_some_and(|open| open.ended.is_some()),
    })
}

/// Nothing goes on before the operator has said what becomes of tests that were weakened unseen.
fn distrusts(cfg: &LoopConfig, m: &Machine, facts: &Facts, tick: TickNo) -> Decision {
    let detail = format!(
        "tests were weakened before or in tick {tick}, and nobody saw by whom; look at {}, take it back or keep \
         it, and say so by `peers ack weakening:{tick} --reason TEXT`",
        facts.head.short()
    );
    let mut d = stop_with(cfg, m, Some(facts), StopReason::Tamper(TamperKind::History), &detail);
    if !facts.arrived.is_empty() {
        let (head, commits) = (facts.head.clone(), facts.arrived.clone());
        d.records
            .insert(0, Record::CommitsSeen(CommitsSeen { head, commits, while_gates: true, weakens: false }));
    }
    d
}

/// The turn that ran outside, where there is something of it.
fn outside(cfg: &LoopConfig, m: &Machine, facts: &Facts) -> Option<TickStarted> {
    let after = cfg.after.as_ref()?;
    let listed = cfg.rules.peers.iter().any(|rule| rule.name == after.peer);
    if !listed || facts.arrived.is_empty() || !facts.history_intact || facts.tamper.is_some() {
        return None;
    }
    Some(TickStarted {
        tick: m.state.ticks.next(),
        peer: after.peer.clone(),
        head_before: after.head.clone(),
        tree_before: after.tree.clone(),
        content_before: None,
        branch: facts.branch.clone(),
        prompt_sha256: String::new(),
        prompt_bytes: 0,
        warnings_taken: 0,
        skeptic: false,
        inbox: std::collections::BTreeMap::new(),
        messages: Vec::new(),
        asked: Vec::new(),
        outside: true,
        course: None,
    })
}

/// A turn that is over before the loop hears of it: what it left is looked at as after any other.
fn took_place(m: &Machine, started: &TickStarted) -> Decision {
    let mut exit = PeerExit::interrupted(0);
    exit.class = ExitClass::Ok;
    let mut d = keep(m, Phase::Harvesting { exit: Box::new(exit), recovered: false });
    d.records.push(Record::TickStarted(Box::new(started.clone())));
    d.effects.push(Effect::Tell(Notice::TickStarted {
        tick: started.tick,
        peer: started.peer.clone(),
        skeptic: false,
    }));
    d.effects.push(Effect::Harvest {
        tick: started.tick,
        peer: started.peer.clone(),
        from: started.head_before.clone(),
    });
    d
}

/// Looks at the repository for the first time, once nothing of an earlier run is left.
fn look_at_start(m: &Machine, left: &Left) -> Decision {
    let mut d = keep(m, Phase::Booting(left.clone()));
    d.effects.push(Effect::Survey);
    d
}

fn harvest_now(m: &Machine, exit: PeerExit, recovered: bool) -> Decision {
    let Some(open) = &m.state.open else { return ignore(m) };
    let mut d = keep(m, Phase::Harvesting { exit: Box::new(exit), recovered });
    d.effects.push(Effect::Harvest {
        tick: open.started.tick,
        peer: open.started.peer.clone(),
        from: open.started.head_before.clone(),
    });
    d
}

/// The gates that were red before the handoff have answered. One that edits of tests alone turned
/// green is a weakening: warned about once, then taken back.
fn on_refreshed(
    cfg: &LoopConfig,
    m: &Machine,
    draft: &Draft,
    verdicts: &[Judged],
    took_ms: u64,
    moved: bool,
    input: &Input,
) -> Decision {
    let Some(open) = &m.state.open else { return ignore(m) };
    let mut draft = draft.clone();
    draft.gate_ms = took_ms;
    draft.moved = moved;
    // Where each gate runs by itself, each verdict names the tree that it left behind.
    if !moved || cfg.strict_tree {
        draft.verdicts = verdicts.to_vec();
    }
    let green: Vec<GoalId> =
        draft.verdicts.iter().filter(|j| j.verdict.is_pass()).map(|j| j.goal.clone()).collect();
    let red = m.state.board.red(&m.state.rules);
    let turned = green_by_test_edits(&draft.harvest.diff, &red, &green);
    if let Some(gate) = turned.first() {
        let why = format!("gate `{gate}` turned green by edits of tests alone");
        judging::weakened(&m.state, open, &mut draft.judgement, &why);
    }
    let Some(plan) = settle::plan_correction(open, &draft) else {
        return settle::settle(cfg, m, &draft, input);
    };
    draft.corrected = Some(plan.kind);
    // What was measured belongs to a tree that is about to go.
    draft.verdicts.clear();
    let mut d = keep(m, Phase::Correcting(Box::new(draft)));
    d.records.push(Record::CorrectionPlanned(plan.clone()));
    d.effects.push(Effect::Correct { plan, peer: open.started.peer.clone() });
    d
}

fn on_harvested(
    cfg: &LoopConfig,
    m: &Machine,
    exit: &PeerExit,
    recovered: bool,
    harvest: &Harvest,
    input: &Input,
) -> Decision {
    let Some(open) = &m.state.open else { return ignore(m) };
    let mut exit = exit.clone();
    if recovered {
        // Wall time of a crashed tick is bounded by what the tick could have run.
        exit.duration_ms = exit.duration_ms.min(cfg.absolute_s.saturating_mul(1000));
    }
    let harvest = &if open.started.outside { claimed(open, harvest) } else { witnessed(open, harvest) };
    let mut judgement = judging::judge(&m.state, open, &exit, harvest);
    if let Some(why) = &harvest.unreadable {
        judgement.lose(why);
    }
    let mut draft = Draft {
        exit,
        recovered,
        harvest: harvest.clone(),
        corrected: None,
        judgement,
        correction: None,
        verdicts: Vec::new(),
        gate_ms: 0,
        moved: false,
    };
    // A plan from before a crash is carried out as it was made; else what the judgement asks for.
    let planned = open.correction.clone();
    let fresh = planned.is_none();
    let plan = planned.or_else(|| settle::plan_correction(open, &draft));
    if let Some(plan) = plan {
        draft.corrected = Some(plan.kind);
        let mut d = keep(m, Phase::Correcting(Box::new(draft)));
        if fresh {
            d.records.push(Record::CorrectionPlanned(plan.clone()));
        }
        d.effects.push(Effect::Correct { plan, peer: open.started.peer.clone() });
        return d;
    }
    let (Some(at), true) =
        (&harvest.at, draft.judgement.success && m.stop.is_none() && harvest.tamper.is_none())
    else {
        return settle::settle(cfg, m, &draft, input);
    };
    // A gate that asks whose commits there are finds no answer before the tick is recorded.
    let settled = harvest.commits.is_empty();
    let mut red = m.state.board.red(&m.state.rules);
    red.retain(|id| settled || !m.state.rules.gates.iter().any(|g| g.id == *id && g.reads_history));
    if red.is_empty() {
        return settle::settle(cfg, m, &draft, input);
    }
    let key = peers_model::verdict::TreeKey { head: at.head.clone(), tree: at.worktree.clone() };
    let tick = open.started.tick;
    let ended = Box::new(draft.exit.clone());
    let mut d = keep(m, Phase::Refreshing(Box::new(draft)));
    d.effects.push(Effect::Tell(Notice::GatesStarted {
        count: red.len(),
        place: peers_model::verdict::Place::Live,
    }));
    d.effects.push(Effect::Judge { gates: red, key, place: peers_model::verdict::Place::Live, tick });
    if open.ended.is_none() {
        d.records.push(Record::TurnEnded(TurnEnded { tick, head: at.head.clone(), exit: ended }));
    }
    d
}

/// Nobody watched a turn that ran outside, so the commits that name its peer are its peer's, and all others
/// are nobody's.
fn claimed(open: &OpenTick, harvest: &Harvest) -> Harvest {
    let mut harvest = harvest.clone();
    for commit in harvest.commits.iter_mut().filter(|c| c.origin != Origin::Own) {
        let claims = CommitClaims::read(&commit.message);
        let names = claims.handoff.unverified().names(&open.started.peer);
        commit.origin = if names { Origin::Peer } else { Origin::Known };
    }
    harvest
}

/// After a crash: what appeared after the turn was looked at may be the work of a gate, and counts as
/// nobody's.
fn witnessed(open: &OpenTick, harvest: &Harvest) -> Harvest {
    let mut harvest = harvest.clone();
    let Some(ended) = &open.ended else { return harvest };
    let within = harvest.commits.iter().position(|c| c.id == ended.head).map_or(0, |at| at + 1);
    for commit in harvest.commits.iter_mut().skip(within).filter(|c| c.origin == Origin::Peer) {
        commit.origin = Origin::Known;
    }
    harvest
}
