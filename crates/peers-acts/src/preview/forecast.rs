//! What the machine of the loop would do next, asked in memory.

use peers_core::machine::{self, Composing, Effect, Event, Facts, Input, LoopConfig, Machine, Phase};
use peers_core::state::State;
use peers_model::outcome::StopReason;
use peers_model::verdict::{Judged, Place, TreeKey, Verdict};
use peers_model::{GoalId, PeerName, Timestamp, exit};
use peers_run::boot::Finding;
use peers_run::clock::SysClock;
use peers_run::ports::Clock as _;
use peers_store::Authors;

/// Steps of the machine until somebody has the turn; there are never so many.
const STEPS: usize = 16;

/// What the loop would do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// This peer gets a prompt.
    Turn(PeerName),
    /// The gates run in a clean checkout; no prompt is sent if they pass.
    Proof,
    /// Every peer waits; the first may go then.
    Wait(Timestamp),
    /// It stops.
    Stop(StopReason),
}

/// What the machine would do.
pub(super) struct Forecast {
    /// What the prompt rests on.
    pub(super) state: State,
    /// The turn, if there is one.
    pub(super) composing: Option<Composing>,
    pub(super) next: Next,
    /// Gates that would be judged first.
    pub(super) owed: Vec<GoalId>,
}

impl Forecast {
    /// Asks the machine, in memory. Gates that it wants are taken to answer what they last did.
    pub(super) fn of(
        cfg: &LoopConfig,
        state: State,
        (facts, authors): (&Facts, &mut Authors),
        live: bool,
    ) -> Result<Self, Finding> {
        let mut machine = Machine::new(state);
        if live {
            machine.phase = Phase::Surveying(0);
        }
        let mut facts = facts.clone();
        facts.arrived.retain(|commit| authors.of(commit).is_none());
        let mut event = Event::Surveyed(Box::new(facts.clone()));
        let (mut owed, mut before_gates) = (Vec::new(), None);
        for _ in 0..STEPS {
            let before = machine.state.clone();
            let at = SysClock.now();
            let decision = machine::decide(cfg, &machine, &Input { at, event });
            machine
                .commit(at.wall, &cfg.run_id, &decision)
                .map_err(|error| Finding::plain(exit::BUG, error.to_string()))?;
            for record in &decision.records {
                authors.take(record);
            }
            facts.arrived.retain(|commit| authors.of(commit).is_none());
            let done = |state: State, composing: Option<Composing>, next: Next, owed: Vec<GoalId>| {
                let state = before_gates.clone().unwrap_or(state);
                Ok(Self { state, composing, next, owed })
            };
            event = match &machine.phase {
                Phase::Composing(composing) => {
                    let next = Next::Turn(composing.peer.clone());
                    return done(machine.state.clone(), Some(composing.as_ref().clone()), next, owed);
                }
                Phase::Proving(..) => return done(machine.state, None, Next::Proof, owed),
                Phase::CoolingDown => {
                    let timer =
                        |effect: &Effect| if let Effect::SetTimer(at) = effect { Some(*at) } else { None };
                    let until = decision.effects.iter().find_map(timer).unwrap_or(at.wall);
                    return done(machine.state, None, Next::Wait(until), owed);
                }
                Phase::Stopped(reason) => {
                    let next = Next::Stop(reason.clone());
                    return done(before, None, next, owed);
                }
                Phase::Judging(at, _) => {
                    let wanted = decision.effects.into_iter().find_map(wanted).unwrap_or_default();
                    let verdicts = as_before(&machine.state, &wanted, &at.key());
                    before_gates.get_or_insert_with(|| machine.state.clone());
                    owed.extend(wanted);
                    Event::Judged { verdicts, took_ms: 0, moved: false, changed: String::new() }
                }
                Phase::Booting { .. } | Phase::Surveying(_) => Event::Surveyed(Box::new(facts.clone())),
                Phase::Reaping
                | Phase::Running { .. }
                | Phase::Harvesting { .. }
                | Phase::Correcting(_)
                | Phase::Refreshing(_)
                | Phase::AwaitingGates => break,
            };
        }
        Err(Finding::plain(exit::BUG, "what the loop would do next cannot be told"))
    }
}

/// The gates that an effect asks for.
fn wanted(effect: Effect) -> Option<Vec<GoalId>> {
    if let Effect::Judge { gates, .. } = effect { Some(gates) } else { None }
}

/// What these gates answered last, as if they did so here; red where they never ran.
fn as_before(state: &State, gates: &[GoalId], key: &TreeKey) -> Vec<Judged> {
    let answer = |gate: &GoalId| {
        let last = state.board.gates.get(gate).and_then(|standing| standing.last.as_ref());
        let verdict =
            last.map_or_else(|| Verdict::Fail { diagnostic: String::new() }, |last| last.verdict.clone());
        Judged::new(gate.clone(), key.clone(), Place::Live, verdict)
    };
    gates.iter().map(answer).collect()
}
