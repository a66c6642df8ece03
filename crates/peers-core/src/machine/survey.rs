//! Between ticks: exit rules in their fixed order, gates, convergence, the next turn.

use std::time::Duration;

use peers_model::outcome::{BudgetKind, StopReason, TamperKind};
use peers_model::record::{CommitsSeen, GatesRecord, PeerRule, ProofRecord, Record, TickStarted};
use peers_model::step::StepWork;
use peers_model::verdict::{Judged, Place, TreeKey};
use peers_model::{GoalId, PeerName, Timestamp};

use super::decide::{keep, look, stop_reason, stop_with};
use super::event::{ComposeFacts, Effect, Facts, Input, Notice, RunPeer, StopRequest};
use super::{Behind, Composing, Decision, LoopConfig, Machine, Phase, Purpose, trial};
use crate::budget;
use crate::compose;
use crate::converge::{self, Standing};
use crate::phases;
use crate::standstill::Standstill;
use crate::state::{PeerState, Skeptic, State};
use crate::turns::{self, Choice};

/// So many skeptic turns in a row may mend something without a report.
const MAX_UNREPORTED: u32 = 10;
/// So often gates run again because the tree moved under them.
const MAX_UNSTABLE: u8 = 2;

pub(super) fn on_facts(
    cfg: &LoopConfig,
    m: &Machine,
    facts: &Facts,
    unstable: u8,
    input: &Input,
) -> Decision {
    if let Some(request) = m.stop {
        return stop_with(cfg, m, Some(facts), stop_reason(request), "");
    }
    if let Some((kind, detail)) = &facts.tamper {
        let detail = format!("{detail}{}", after(&m.state));
        return stop_with(cfg, m, Some(facts), StopReason::Tamper(*kind), &detail);
    }
    if !facts.history_intact {
        let detail =
            "the head of the last record is no longer part of HEAD's history, and no peer was running";
        return stop_with(cfg, m, Some(facts), StopReason::Tamper(TamperKind::History), detail);
    }
    if !facts.commands.is_empty() {
        // Recorded first, then dropped, then everything is looked at again.
        let mut d = look(m);
        d.records.extend(facts.commands.iter().map(|c| Record::Operator(c.record.clone())));
        d.effects.insert(0, Effect::DropCommands(facts.commands.iter().map(|c| c.id.clone()).collect()));
        return d;
    }
    if let Some(mutation) = &facts.mutation {
        let detail = format!("{} {} since it was accepted{}", mutation.file, mutation.what, after(&m.state));
        return stop_with(cfg, m, Some(facts), StopReason::GoalMutation(mutation.file.clone()), &detail);
    }
    if !facts.arrived.is_empty() {
        return on_arrived(cfg, m, facts, unstable);
    }
    if let Behind::Answered { verdicts, took_ms } = &m.behind {
        return on_answered_behind(m, facts, verdicts, *took_ms, unstable);
    }
    if unstable > MAX_UNSTABLE {
        // A gate that edits the tree each time would be measured for ever; a tree that never rests is not clean.
        let mut facts = facts.clone();
        facts.dirty.push("?? (a gate changes the work tree each time it runs)".into());
        facts.unstable = true;
        return onwards(cfg, m, &m.state, &facts, unstable, input);
    }
    let mut owed = m.state.board.owed(&m.state.rules, &facts.key(), m.state.ticks);
    if cfg.overlap && facts.is_clean() {
        // Whether these can wait is known when the others have answered.
        owed.retain(|gate| !is_expensive(&m.state, gate));
    }
    if owed.is_empty() {
        return onwards(cfg, m, &m.state, facts, unstable, input);
    }
    judge(m, facts, unstable, owed)
}

fn is_expensive(state: &State, gate: &GoalId) -> bool {
    state.rules.gates.iter().any(|rule| rule.id == *gate && rule.expensive)
}

/// Verdicts of gates that ran beside a peer are recorded, whatever the tree is by now: each names its own, so
/// that of another tree satisfies nothing. One that could not be judged is none: its gate is run again.
fn on_answered_behind(
    m: &Machine,
    facts: &Facts,
    verdicts: &[Judged],
    took_ms: u64,
    unstable: u8,
) -> Decision {
    let mut d = look(m);
    d.phase = Phase::Surveying(unstable);
    d.behind = Behind::Idle;
    let verdicts: Vec<Judged> = verdicts.iter().filter(|j| !j.verdict.is_error()).cloned().collect();
    if !verdicts.is_empty() {
        d.effects.insert(
            0,
            Effect::Tell(Notice::GatesDone { verdicts: verdicts.clone(), took_ms, place: Place::GateTree }),
        );
        let key = facts.key();
        let here = verdicts.iter().all(|judged| judged.at == key).then_some(&key);
        d.records.push(gates_record(&m.state, took_ms, verdicts, here));
    }
    d
}

/// The record of verdicts. With what all gates amount to after them at the tree that is `here`, unless they are
/// about another one.
fn gates_record(state: &State, took_ms: u64, verdicts: Vec<Judged>, here: Option<&TreeKey>) -> Record {
    let (rules, iteration) = (&state.rules, state.ticks);
    let mut board = state.board.clone();
    board.take(rules, iteration, &verdicts);
    let green = here.map(|key| board.greens_at(rules, key));
    let of = green.and_then(|_| u32::try_from(rules.gates.len()).ok());
    Record::Gates(GatesRecord { iteration, took_ms, verdicts, green, of })
}

/// What becomes of the expensive gates that are owed here.
enum Heavy {
    /// None is.
    Settled,
    /// Whatever they say, a peer has the next turn: they may run beside it.
    CanWait(Vec<GoalId>),
    /// What comes next depends on them.
    Needed(Vec<GoalId>),
}

fn heavy(cfg: &LoopConfig, state: &State, facts: &Facts) -> Heavy {
    if !cfg.overlap || !facts.is_clean() {
        return Heavy::Settled;
    }
    let mut owed = state.board.owed(&state.rules, &facts.key(), state.ticks);
    owed.retain(|gate| is_expensive(state, gate));
    if owed.is_empty() {
        return Heavy::Settled;
    }
    let mut hoped = state.clone();
    hoped.board.suppose_green(&state.rules, &facts.key(), &owed);
    match converge::standing(cfg, &hoped, facts) {
        Standing::Red | Standing::Dirty | Standing::SoftPending(_) | Standing::NoRealGate => {
            Heavy::CanWait(owed)
        }
        Standing::SkepticOwed
        | Standing::Unquiet(_)
        | Standing::ProofOwed
        | Standing::ProofUnjudged(_)
        | Standing::Complete => Heavy::Needed(owed),
    }
}

/// Whose turn was the last before something was found, for people.
fn after(state: &State) -> String {
    let last = state
        .peers
        .iter()
        .find(|(_, health)| health.last_run.as_ref().is_some_and(|r| r.tick == state.ticks));
    last.map(|(peer, _)| format!("; found after tick {} of {peer}", state.ticks)).unwrap_or_default()
}

/// Commits are recorded as soon as they are seen: gates that ask whose they are find an answer.
pub(super) fn on_arrived(cfg: &LoopConfig, m: &Machine, facts: &Facts, unstable: u8) -> Decision {
    let while_gates = unstable > 0 || cfg.rules.unwatched;
    let whence = if unstable > 0 {
        "while gates ran or after a run broke off, so a gate may have made them"
    } else {
        "between runs, when agents may work with this `driver`"
    };
    let seen = Record::CommitsSeen(CommitsSeen {
        head: facts.head.clone(),
        commits: facts.arrived.clone(),
        while_gates,
        weakens: cfg.rules.unwatched && !facts.arrived_weaken.is_empty(),
    });
    let mut d = if while_gates && !facts.arrived_weaken.is_empty() {
        let detail = format!(
            "commits appeared {whence}, and they weaken tests ({})\n\
             look at {}, take it back or keep it, and start again",
            facts.arrived_weaken.join("; "),
            facts.head.short()
        );
        stop_with(cfg, m, Some(facts), StopReason::Tamper(TamperKind::History), &detail)
    } else {
        let mut d = look(m);
        d.phase = Phase::Surveying(unstable);
        if while_gates {
            let text = format!(
                "commits up to {} appeared {whence}: they belong to no peer, and no review or bug report in them counts",
                facts.head.short()
            );
            d.effects.insert(0, Effect::Tell(Notice::Warning(text)));
        }
        d
    };
    d.records.insert(0, seen);
    d
}

fn judge(m: &Machine, facts: &Facts, unstable: u8, gates: Vec<GoalId>) -> Decision {
    let mut d = keep(m, Phase::Judging(Box::new(facts.clone()), unstable));
    d.effects.push(Effect::Tell(Notice::GatesStarted { count: gates.len(), place: Place::Live }));
    d.effects.push(Effect::Judge { gates, key: facts.key(), place: Place::Live, tick: m.state.ticks });
    d
}

#[expect(clippy::too_many_arguments, reason = "one input taken apart; a struct would only be unpacked again")]
pub(super) fn on_verdicts(
    cfg: &LoopConfig,
    m: &Machine,
    facts: &Facts,
    unstable: u8,
    verdicts: &[Judged],
    took_ms: u64,
    moved: Option<&str>,
    input: &Input,
) -> Decision {
    let mut kept = verdicts.to_vec();
    if let Some(changed) = moved {
        // The tree changed under the gates: what they measured belongs to no tree that is still there.
        if cfg.strict_tree {
            // Each gate ran by itself: whose doing it was stands in its verdict, and each is about its tree.
        } else if unstable < MAX_UNSTABLE {
            let mut d = keep(m, Phase::Surveying(unstable + 1));
            let changed = if changed.is_empty() { String::new() } else { format!(" ({changed})") };
            d.effects.push(Effect::Tell(Notice::Warning(format!(
                "the work tree changed while gates ran{changed}; they run again"
            ))));
            d.effects.push(Effect::Survey);
            return d;
        }
        // Their passes may not stand once it rests again.
        kept.retain(|j| cfg.strict_tree || !j.verdict.is_pass());
    }
    let key = facts.key();
    let record = gates_record(&m.state, took_ms, kept, Some(&key).filter(|_| moved.is_none()));
    let mut state = m.state.clone();
    if let Err(error) = state.apply(input.at.wall, Some(&cfg.run_id), &record) {
        return stop_with(
            cfg,
            m,
            Some(facts),
            StopReason::Error(peers_model::outcome::ErrorKind::Internal),
            &error.to_string(),
        );
    }
    if moved.is_some() {
        // What is there now is looked at before anybody has the turn.
        let mut d = look(m);
        d.phase = Phase::Surveying(unstable + 1);
        d.records.push(record);
        return d;
    }
    let mut d = onwards(cfg, m, &state, facts, unstable, input);
    d.records.insert(0, record);
    d.effects.insert(
        0,
        Effect::Tell(Notice::GatesDone { verdicts: verdicts.to_vec(), took_ms, place: Place::Live }),
    );
    d
}

#[expect(clippy::too_many_arguments, reason = "one input taken apart; a struct would only be unpacked again")]
pub(super) fn on_proof(
    cfg: &LoopConfig,
    m: &Machine,
    facts: &Facts,
    unstable: u8,
    verdicts: &[Judged],
    took_ms: u64,
    moved: bool,
    input: &Input,
) -> Decision {
    // A verdict about another tree proves nothing about this one.
    let kept: Vec<Judged> = verdicts.iter().filter(|j| j.at == facts.key()).cloned().collect();
    let record = Record::Proof(ProofRecord {
        at: facts.key(),
        verdicts: kept,
        exempt: converge::exempt(&m.state),
        passed: verdicts.iter().all(|j| j.at == facts.key()) && converge::proof_passed(verdicts),
        took_ms,
    });
    let mut state = m.state.clone();
    if let Err(error) = state.apply(input.at.wall, Some(&cfg.run_id), &record) {
        return stop_with(
            cfg,
            m,
            Some(facts),
            StopReason::Error(peers_model::outcome::ErrorKind::Internal),
            &error.to_string(),
        );
    }
    let ahead = Machine { state, phase: m.phase.clone(), stop: m.stop, behind: m.behind.clone() };
    let answered = converge::proof_owed(&ahead.state, facts).is_empty();
    if let Some(why) = trial::blamed(cfg, &ahead.state, facts, verdicts) {
        let ahead = Machine { phase: Phase::Surveying(unstable), ..ahead };
        let mut d = stop_with(cfg, &ahead, Some(facts), StopReason::ParkedProof, &why);
        d.records.insert(0, record);
        return d;
    }
    // A proof takes long. What is said of the work tree is said of it as it is afterwards; what was proved
    // stays proved.
    let mut d = look(&ahead);
    d.phase = Phase::Surveying(if moved || !answered { unstable.saturating_add(1) } else { unstable });
    if moved {
        let text = "the work tree changed during the proof run".to_owned();
        d.effects.insert(0, Effect::Tell(Notice::Warning(text)));
    }
    d.records.insert(0, record);
    d.effects.insert(
        0,
        Effect::Tell(Notice::GatesDone { verdicts: verdicts.to_vec(), took_ms, place: Place::Pristine }),
    );
    d
}

/// All verdicts for these facts are in. `state` is the state with them; `m.state` may be behind.
fn onwards(
    cfg: &LoopConfig,
    m: &Machine,
    state: &State,
    facts: &Facts,
    unstable: u8,
    input: &Input,
) -> Decision {
    // What follows reads `state`; the machine that carries it is only needed for its phase and stop.
    // Gates that ran have answered: an exit from here cuts none of them off.
    let ahead = Machine {
        state: state.clone(),
        phase: Phase::Surveying(unstable),
        stop: m.stop,
        behind: m.behind.clone(),
    };
    let m = &ahead;
    if let Some(request) = m.stop {
        return stop_with(cfg, m, Some(facts), stop_reason(request), "");
    }
    if let Some(gate) = state.board.unjudged(&state.rules) {
        let detail = diagnostic(state, &gate);
        return stop_with(cfg, m, Some(facts), StopReason::Unjudged(gate), &detail);
    }
    let heavy = heavy(cfg, state, facts);
    if let Heavy::Needed(gates) = &heavy {
        // The same are running: their answer is as good.
        if m.behind == Behind::Running(facts.key()) {
            return keep(m, Phase::AwaitingGates);
        }
        return judge(m, facts, unstable, gates.clone());
    }
    let left = converge::left_red(state, facts);
    if !left.is_empty() && state.board.ready(&state.rules, &facts.key()) && facts.is_clean() {
        // What was in its way may be gone, and a turn costs more.
        return prove(m, facts, unstable, left);
    }
    let standing = converge::standing(cfg, state, facts);
    match &standing {
        Standing::Complete => return stop_with(cfg, m, Some(facts), StopReason::Complete, ""),
        Standing::ProofUnjudged(gate) => {
            let detail =
                format!("gate `{gate}` could not be judged in a clean checkout of {}", facts.head.short());
            return stop_with(cfg, m, Some(facts), StopReason::ParkedProof, &detail);
        }
        Standing::ProofOwed => {
            return prove(m, facts, unstable, converge::proof_owed(state, facts));
        }
        Standing::Red
        | Standing::Dirty
        | Standing::SoftPending(_)
        | Standing::NoRealGate
        | Standing::SkepticOwed
        | Standing::Unquiet(_) => {}
    }
    if let Some((reason, detail)) =
        limit(cfg, state, facts, &standing, input).or_else(|| phases::limit(cfg, state, facts))
    {
        return stop_with(cfg, m, Some(facts), reason, &detail);
    }
    let gates = trial::owed(cfg, state);
    if !gates.is_empty() {
        return trial::begin(cfg, m, facts, unstable, gates, input);
    }
    let skeptic = standing == Standing::SkepticOwed;
    if skeptic && state.skeptic.unreported >= MAX_UNREPORTED {
        let detail = format!(
            "{MAX_UNREPORTED} skeptic turns in a row changed something and reported nothing that blocks"
        );
        return stop_with(cfg, m, Some(facts), StopReason::StuckSkeptic, &detail);
    }
    if skeptic && state.skeptic.tree.as_ref() == Some(&facts.worktree) {
        let max = state.rules.skeptic_attempts;
        if state.skeptic.attempts >= max {
            let detail = format!("{max} skeptic turns in a row gave no usable verdict");
            return stop_with(cfg, m, Some(facts), StopReason::StuckSkeptic, &detail);
        }
    }
    let now = input.at.wall;
    let asked_for = asked_for(state, facts, &standing);
    if let Some((work, who)) = phases::work(cfg, state, facts).filter(|_| standing == Standing::Red) {
        return at_step(cfg, m, facts, heavy, (work, who), now);
    }
    let choice = match whom(cfg, state, facts, &standing, &asked_for, now) {
        Ok(choice) => choice,
        Err((reason, detail)) => return stop_with(cfg, m, Some(facts), reason, &detail),
    };
    match choice {
        Choice::Peer(_, peer) => has_turn(m, facts, heavy, (peer, None), skeptic),
        Choice::Wait(until) => {
            let bears = bears_a_failure(cfg, state, skeptic, now);
            let caps = cfg.caps.in_force(state, now);
            let may = |peer: &PeerName| {
                bears
                    && asked_for(peer)
                    && budget::may_go(&caps, state, peer)
                    && budget::short(&caps, state, peer).is_none()
            };
            if let Some(peer) = turns::recovers_meanwhile(state, now, may) {
                return has_turn(m, facts, heavy, (peer, None), skeptic);
            }
            match turns::waits_too_long(state, now, Duration::from_secs(cfg.max_wait_s), &asked_for) {
                // Those who went on without it are out by now.
                Some((peer, why)) => stop_with(cfg, m, Some(facts), StopReason::PeerUnavailable(peer), &why),
                None => wait(cfg, m, until, now),
            }
        }
        Choice::Nobody => {
            let (reason, detail) = nobody(cfg, state, now);
            stop_with(cfg, m, Some(facts), reason, &detail)
        }
    }
}

/// Gates run in a clean checkout.
fn prove(m: &Machine, facts: &Facts, unstable: u8, gates: Vec<GoalId>) -> Decision {
    let mut d = keep(m, Phase::Proving(Box::new(facts.clone()), unstable, Purpose::Proof));
    d.effects.push(Effect::Tell(Notice::GatesStarted { count: gates.len(), place: Place::Pristine }));
    d.effects.push(Effect::Judge { gates, key: facts.key(), place: Place::Pristine, tick: m.state.ticks });
    d
}

/// This peer has the next turn.
fn has_turn(
    m: &Machine,
    facts: &Facts,
    heavy: Heavy,
    (peer, work): (PeerName, Option<StepWork>),
    skeptic: bool,
) -> Decision {
    let composing = Composing { facts: facts.clone(), peer: peer.clone(), skeptic, work };
    let mut d = keep(m, Phase::Composing(Box::new(composing)));
    // One at a time: what runs at an older tree still tells the peers something.
    if let Heavy::CanWait(gates) = heavy
        && m.behind == Behind::Idle
    {
        d.behind = Behind::Running(facts.key());
        d.effects.push(Effect::JudgeBehind { gates, key: facts.key(), tick: m.state.ticks });
    }
    d.effects.push(Effect::Compose { peer });
    d
}

/// A step is given to one of those who may have it, to nobody else: the loop waits for them, or stops.
fn at_step(
    cfg: &LoopConfig,
    m: &Machine,
    facts: &Facts,
    heavy: Heavy,
    (work, who): (StepWork, Vec<PeerName>),
    now: Timestamp,
) -> Decision {
    let state = &m.state;
    let caps = cfg.caps.in_force(state, now);
    let may =
        |peer: &PeerName| budget::may_go(&caps, state, peer) && budget::short(&caps, state, peer).is_none();
    let named = who.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
    let what = format!("{} of {} is for {named}", work.role.word(), work.step);
    match turns::choose_within(state, now, |peer| may(peer) && who.contains(peer)) {
        Choice::Peer(_, peer) => has_turn(m, facts, heavy, (peer, Some(work)), false),
        Choice::Wait(until) => {
            let asked = |peer: &PeerName| who.contains(peer);
            match turns::waits_too_long(state, now, Duration::from_secs(cfg.max_wait_s), asked) {
                Some((peer, why)) => stop_with(cfg, m, Some(facts), StopReason::PeerUnavailable(peer), &why),
                None => wait(cfg, m, until, now),
            }
        }
        Choice::Nobody if turns::asked_is_blocked(state, |peer| who.contains(peer)) => {
            stop_with(cfg, m, Some(facts), StopReason::ParkedBlocked, &blocked_words(state))
        }
        Choice::Nobody => {
            // Nobody else has turns meanwhile in which its recovery could be counted.
            let back = who.iter().find(|peer| turns::may_ever_go(state, peer) && may(peer));
            if let Some(peer) = back {
                return has_turn(m, facts, heavy, (peer.clone(), Some(work)), false);
            }
            let shut = who.iter().find(|peer| turns::may_ever_go(state, peer));
            let reason = match (shut, who.first()) {
                (Some(peer), _) => {
                    let short = budget::short(&caps, state, peer).map(|(kind, _)| kind);
                    StopReason::Budget(short.unwrap_or(BudgetKind::PerPeer))
                }
                (None, Some(peer)) => StopReason::PeerUnavailable(peer.clone()),
                (None, None) => StopReason::AllPeersDegraded,
            };
            stop_with(cfg, m, Some(facts), reason, &format!("{what}, and nobody else may have it"))
        }
    }
}

/// Whether a turn that leads nowhere would not end the run, which only waits.
fn bears_a_failure(cfg: &LoopConfig, state: &State, skeptic: bool, now: Timestamp) -> bool {
    let caps = cfg.caps.in_force(state, now);
    let failures = state.spent.consecutive_failures.saturating_add(1);
    let Skeptic { attempts, unreported, .. } = &state.skeptic;
    let red = match cfg.stuck_after {
        0 => true,
        1 => false,
        after => state.board.stuck(&cfg.stuck_gates, after - 1).is_none(),
    };
    let idle = state.standstill.one_more().is_over(turns::idle_limit(cfg.idle_after, &caps, state));
    let doubts = attempts.saturating_add(1) < state.rules.skeptic_attempts
        && unreported.saturating_add(1) < MAX_UNREPORTED;
    let most = caps.budget.max_consecutive_failures;
    most.is_none_or(|max| failures < max.get()) && red && !idle && (!skeptic || doubts)
}

/// Nobody can have a turn before `until`.
fn wait(cfg: &LoopConfig, m: &Machine, until: Timestamp, now: Timestamp) -> Decision {
    let mut d = keep(m, Phase::CoolingDown);
    d.effects.push(Effect::WriteProjections);
    let why = turns::why_not(&m.state, now);
    d.effects.push(Effect::Tell(Notice::Waiting { until, why }));
    // The run ends at its limits, also while everybody waits.
    let until =
        budget::ends_at(&cfg.caps.in_force(&m.state, now), &m.state).map_or(until, |at| until.min(at));
    d.effects.push(Effect::SetTimer(until));
    d
}

/// Why no peer can have a turn.
fn nobody(cfg: &LoopConfig, state: &State, now: Timestamp) -> (StopReason, String) {
    let caps = cfg.caps.in_force(state, now);
    let short = state.rules.peers.iter().find_map(|rule| budget::short(&caps, state, &rule.name));
    if let Some((kind, detail)) = short.filter(|_| !turns::all_blocked(state) && !turns::all_down(state)) {
        return (StopReason::Budget(kind), detail);
    }
    if turns::all_blocked(state) {
        return (StopReason::ParkedBlocked, blocked_words(state));
    }
    (StopReason::AllPeersDegraded, peers_summary(state))
}

/// Whether the newest turn was of this peer, and ended well.
fn had_last(state: &State, peer: &PeerName) -> bool {
    state
        .peers
        .get(peer)
        .and_then(|health| health.last_run.as_ref())
        .is_some_and(|run| run.success && run.tick == state.ticks)
}

/// Whose answer can help where only answers are missing; else everybody's work can.
fn asked_for<'a>(
    state: &'a State,
    facts: &'a Facts,
    standing: &'a Standing,
) -> Box<dyn Fn(&PeerName) -> bool + 'a> {
    match standing {
        Standing::SkepticOwed => Box::new(|peer| !converge::skeptic_answered(state, peer, &facts.worktree)),
        Standing::SoftPending(goals) => Box::new(|peer| converge::review_helps(state, facts, goals, peer)),
        _ => Box::new(|_| true),
    }
}

/// Who has the next turn. Where only answers are missing, nobody has one whose answer cannot help.
///
/// # Errors
/// Why to stop: those who are asked for say that something is in their way, or may spend no more.
fn whom(
    cfg: &LoopConfig,
    state: &State,
    facts: &Facts,
    standing: &Standing,
    asked_for: &dyn Fn(&PeerName) -> bool,
    now: Timestamp,
) -> Result<Choice, (StopReason, String)> {
    let caps = cfg.caps.in_force(state, now);
    let may =
        |peer: &PeerName| budget::may_go(&caps, state, peer) && budget::short(&caps, state, peer).is_none();
    let first = if *standing == Standing::SkepticOwed {
        let one_round = converge::skeptic_rounds(state) <= 1;
        turns::choose_preferring(state, now, may, |peer| {
            converge::skeptic_prefers(state, peer, &facts.worktree) || (!one_round && asked_for(peer))
        })
    } else {
        turns::choose_within(state, now, may)
    };
    match &first {
        Choice::Peer(_, peer) if !asked_for(peer) => {}
        _ => return Ok(first),
    }
    match turns::choose_within(state, now, |peer| may(peer) && asked_for(peer)) {
        Choice::Nobody if turns::asked_is_blocked(state, asked_for) => {
            Err((StopReason::ParkedBlocked, blocked_words(state)))
        }
        Choice::Nobody => {
            let names = || state.rules.peers.iter().map(|rule| &rule.name);
            let shut = names().find(|peer| asked_for(peer) && turns::may_ever_go(state, peer) && !may(peer));
            match shut {
                Some(peer) => {
                    let own = |what| (BudgetKind::PerPeer, format!("{peer} reached {what}"));
                    let reached = budget::reached(&caps, state, peer).map(own);
                    let (kind, why) = reached
                        .or_else(|| budget::short(&caps, state, peer))
                        .unwrap_or((BudgetKind::PerPeer, "it may spend no more".to_owned()));
                    Err((StopReason::Budget(kind), format!("only an answer of {peer} is missing: {why}")))
                }
                // No answer can help any more: what remains is work.
                None => Ok(first),
            }
        }
        // Who was asked just now and did not answer does not get all turns.
        Choice::Peer(_, peer) if *standing != Standing::SkepticOwed && had_last(state, &peer) => Ok(first),
        chosen => Ok(chosen),
    }
}

/// Who says that something is in its way, and who is down.
fn blocked_words(state: &State) -> String {
    let line = |rule: &PeerRule| {
        let blocked = state.health(&rule.name).blocked?;
        let on = crate::apply::bounded(&blocked.on, 200);
        Some(format!("{} (tick {}): {on}", rule.name, blocked.tick))
    };
    let down = |rule: &PeerRule| {
        let state = state.health(&rule.name).state;
        matches!(state, PeerState::Degraded | PeerState::Halted | PeerState::Unavailable)
            .then(|| format!("{} is {}", rule.name, state.word()))
    };
    let peers = state.rules.peers.iter();
    peers.filter_map(|rule| line(rule).or_else(|| down(rule))).collect::<Vec<_>>().join("; ")
}

/// The first limit that is reached, in the order of the stop-reason table.
fn limit(
    cfg: &LoopConfig,
    state: &State,
    facts: &Facts,
    standing: &Standing,
    input: &Input,
) -> Option<(StopReason, String)> {
    if turns::all_down(state) {
        return Some((StopReason::AllPeersDegraded, peers_summary(state)));
    }
    let in_run = state.run.as_ref().map_or(0, |r| r.ticks);
    if cfg.max_ticks.is_some_and(|max| in_run >= max) {
        return Some((StopReason::MaxTicks, String::new()));
    }
    let caps = cfg.caps.in_force(state, input.at.wall);
    if let Some(kind) = budget::exhausted(&caps, state, input.at.wall) {
        // A streak that is nothing but failed starts is a peer that is not there.
        let failures = state.spent.consecutive_failures;
        if kind == peers_model::outcome::BudgetKind::MaxConsecutiveFailures
            && state.spent.spawn_failures >= failures
            && let Some(w) = state.spent.wasted.back()
        {
            let detail = "every attempt in a row failed to start the program".to_owned();
            return Some((StopReason::PeerUnavailable(w.peer.clone()), detail));
        }
        let detail = match kind {
            peers_model::outcome::BudgetKind::NoProgress => budget::without_progress(state),
            peers_model::outcome::BudgetKind::PerPeer => {
                let over = budget::over(&caps, state);
                over.iter()
                    .map(|(peer, what)| format!("{peer} reached {what}"))
                    .collect::<Vec<_>>()
                    .join("; ")
            }
            _ => String::new(),
        };
        return Some((StopReason::Budget(kind), detail));
    }
    if let Some(detail) = budget::unbounded(&caps, state) {
        return Some((StopReason::Budget(BudgetKind::MaxUsd), detail));
    }
    if let Some(gate) = state.board.stuck(&cfg.stuck_gates, cfg.stuck_after) {
        let detail = diagnostic(state, &gate);
        return Some((StopReason::StuckGate(gate), detail));
    }
    let most = turns::idle_limit(cfg.idle_after, &caps, state);
    state.standstill.is_over(most).then(|| {
        let Standstill { ticks, edits, .. } = &state.standstill;
        let how = if *ticks >= most {
            format!("{ticks} turns in a row made no progress")
        } else {
            format!("{edits} turns in a row changed files and nothing else, with every gate green")
        };
        (StopReason::StuckIdle, format!("{how}; missing: {}", converge::missing(state, facts, standing)))
    })
}

fn diagnostic(state: &State, gate: &GoalId) -> String {
    state
        .board
        .gates
        .get(gate)
        .and_then(|s| s.last.as_ref())
        .map(|j| crate::apply::bounded(j.verdict.diagnostic(), 600))
        .unwrap_or_default()
}

fn peers_summary(state: &State) -> String {
    let line = |p: &peers_model::record::PeerRule| {
        let health = state.health(&p.name);
        let why = health.degraded_reason.unwrap_or_default();
        format!("{} {}: {}", p.name, health.state.word(), crate::apply::bounded(&why, 160))
    };
    state.rules.peers.iter().map(line).collect::<Vec<_>>().join("; ")
}

pub(super) fn on_composed(
    cfg: &LoopConfig,
    m: &Machine,
    composing: &Composing,
    facts: &ComposeFacts,
    now: Timestamp,
) -> Decision {
    if let Some(request @ (StopRequest::Graceful(_) | StopRequest::Now(_) | StopRequest::AfterTick)) = m.stop
    {
        return stop_with(cfg, m, Some(&composing.facts), stop_reason(request), "");
    }
    let caps = cfg.caps.in_force(&m.state, now);
    let prepared = compose::prepare(cfg, &m.state, composing, facts, now);
    let tick = m.state.ticks.next();
    let role =
        m.state.rules.peers.iter().find(|p| p.name == composing.peer).map(|p| p.role).unwrap_or_default();
    let world = &composing.facts;
    let started = TickStarted {
        tick,
        peer: composing.peer.clone(),
        head_before: world.head.clone(),
        tree_before: world.head_tree.clone(),
        content_before: Some(world.content.clone()),
        branch: world.branch.clone(),
        prompt_sha256: prepared.prompt.sha256.clone(),
        prompt_bytes: u64::try_from(prepared.prompt.text.len()).unwrap_or(u64::MAX),
        warnings_taken: prepared.warnings_taken,
        skeptic: composing.skeptic,
        inbox: prepared.inbox,
        messages: prepared.messages,
        asked: prepared.asked,
        outside: false,
        course: phases::asked(cfg, &m.state, composing),
    };
    let mut d = keep(m, Phase::Running { spawned: false });
    d.records.push(Record::TickStarted(Box::new(started)));
    d.effects.push(Effect::Tell(Notice::TickStarted {
        tick,
        peer: composing.peer.clone(),
        skeptic: composing.skeptic,
    }));
    d.effects.push(Effect::RunPeer(Box::new(RunPeer {
        tick,
        peer: composing.peer.clone(),
        role,
        prompt: prepared.prompt.text,
        runtime_left_s: budget::runtime_left(&caps, &m.state, now),
        ceiling: budget::ceiling(&caps, &m.state, &composing.peer),
        skeptic: composing.skeptic,
    })));
    d
}
