//! What one loop, or one run of it, amounts to in numbers.

use std::collections::BTreeMap;

use peers_core::budget::Caps;
use peers_core::state::State;
use peers_model::outcome::StopReason;
use peers_model::reader::RecordReader;
use peers_model::record::{ExitRecord, Line, Record, RunStarted, TickRecord};
use peers_model::{PeerName, RunId, Timestamp, Tokens, Usd};
use peers_store::journal::Journal;
use peers_store::runs;
use peers_store::{Disk, Position, StoreError, store};
use serde::Serialize;

use crate::sources::{self, Stop};
use crate::words;
use peers_core::bugs::Counts;

/// A loop in numbers. What is absent is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Measured {
    /// Ticks.
    pub iterations: u64,
    /// What peers and gates took, milliseconds.
    pub runtime_ms: u64,
    /// The same of its cap, whole per cent.
    pub runtime_pct: Option<u64>,
    /// What failed turns took, milliseconds.
    pub wasted_ms: u64,
    /// Tokens.
    pub tokens: Option<Tokens>,
    /// Money.
    pub usd: Option<Usd>,
    /// Some turns did not tell all that they used.
    pub at_least: AtLeast,
    /// The bugs that are open; of a whole loop alone.
    pub bugs: Option<Counts>,
    /// All bugs that were ever reported; of a whole loop alone.
    pub bugs_total: Option<u64>,
    /// Turns that handed over.
    pub success: u64,
    /// Turns whose process ended well and that did not hand over.
    pub no_handoff: u64,
    /// Turns that were ended after too long a silence.
    pub idle_timeouts: u64,
    /// Turns whose service failed.
    pub api_errors: u64,
    /// How often a peer became degraded.
    pub degraded: u64,
    /// Ticks until the first of the clean ones that it converged with.
    pub ticks_to_convergence: Option<u64>,
    /// Clean ticks in a row at its end; of a run those of its own alone.
    pub clean: u32,
    /// Why it stopped; absent where it has not, or never said so.
    pub stop: Option<StopReason>,
}

/// Of what more was used than is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct AtLeast {
    /// Of tokens.
    pub tokens: bool,
    /// Of money.
    pub usd: bool,
}

impl Measured {
    /// Reads the whole journal; with `run` only that run counts. `None` where there is no such run.
    ///
    /// # Errors
    /// [`StoreError`] when the journal cannot be read as far as that.
    pub fn read<D: Disk>(disk: &mut D, run: Option<&RunId>) -> Result<Option<Self>, StoreError> {
        let mut fold = Fold { wanted: run, ..Fold::default() };
        let read = Journal::open(disk, &Position::default(), false, |read| fold.line(&read.line));
        if let Err(Stop::Store(error)) = read {
            return Err(error);
        }
        if fold.found == 0 && run.is_some() {
            return Ok(None);
        }
        let config = sources::read_config(disk);
        let Fold { state, mut measured, unknown, last, .. } = fold;
        if let Some(config) = config.value() {
            let needed = config.goals.convergence_n.get();
            let converged = measured.stop == Some(StopReason::Complete);
            let before = u64::from(needed.min(state.clean_ticks).max(1));
            measured.ticks_to_convergence = converged
                .then(|| (measured.iterations + 1).saturating_sub(before))
                .filter(|ticks| *ticks > 0);
            // As they were when it wrote last.
            let caps = Caps::new(config.budget.clone()).in_force(&state, last);
            let cap = caps.budget.max_runtime_s.map(|cap| cap.get().saturating_mul(1000));
            measured.runtime_pct = cap.and_then(|cap| words::percent(measured.runtime_ms, cap));
        }
        let [tokens, usd] = unknown;
        let all = |unknown: u64| measured.iterations > 0 && unknown >= measured.iterations;
        (measured.tokens, measured.usd) =
            (measured.tokens.filter(|_| !all(tokens)), measured.usd.filter(|_| !all(usd)));
        Ok(Some(measured))
    }

    /// The same with its bugs.
    #[must_use]
    pub fn with_bugs(self, bugs: Option<Counts>, total: Option<u64>) -> Self {
        Self { bugs, bugs_total: total, ..self }
    }
}

/// Whether there is such a run, by its record or by the journal's.
///
/// # Errors
/// [`StoreError`] when the run records cannot be listed.
pub fn run_named<D: Disk>(disk: &mut D, text: &str) -> Result<Option<RunId>, StoreError> {
    let (records, _) = runs::list(disk)?;
    let mut fitting = records.iter().map(|record| &record.run_id).filter(|id| id.as_str().starts_with(text));
    // The beginning of an id is enough where only one begins so.
    let found = fitting.next().filter(|_| !text.is_empty()).cloned();
    Ok(found.filter(|_| fitting.next().is_none()))
}

#[derive(Default)]
struct Fold<'a> {
    wanted: Option<&'a RunId>,
    state: State,
    measured: Measured,
    /// Ticks whose tokens, and whose money, nobody knows.
    unknown: [u64; 2],
    /// When the newest record was written.
    last: Timestamp,
    /// Records that counted.
    found: u64,
    /// Each peer's standing after its last tick.
    standing: BTreeMap<PeerName, String>,
}

impl Fold<'_> {
    fn line(&mut self, line: &Line) -> Result<(), Stop> {
        let mine = self.wanted.is_none_or(|wanted| line.run_id.as_ref() == Some(wanted));
        if !mine && self.found > 0 && matches!(line.record, Record::RunStarted(_)) {
            return Err(Stop::Enough);
        }
        let before = (self.state.spent.peer_ms, self.state.spent.gate_ms, self.state.spent.wasted_ms);
        let clean_before = self.state.clean_ticks;
        self.last = line.ts;
        store::apply(&mut self.state, line)?;
        if let Record::Tick(tick) = &line.record {
            self.standing(tick, mine);
            let usage = tick.exit.usage;
            self.unknown[0] += u64::from(mine && usage.tokens.is_none());
            self.unknown[1] += u64::from(mine && usage.usd.is_none());
        }
        if !mine {
            return Ok(());
        }
        self.found += 1;
        let spent = &self.state.spent;
        let measured = &mut self.measured;
        // The streak of the loop goes on from run to run.
        let clean = self.state.clean_ticks;
        measured.clean = measured.clean.saturating_add(clean.saturating_sub(clean_before)).min(clean);
        // What is set back to nothing was used all the same.
        let more = |now: u64, before: u64| now.saturating_sub(before);
        measured.runtime_ms = measured
            .runtime_ms
            .saturating_add(more(spent.peer_ms, before.0))
            .saturating_add(more(spent.gate_ms, before.1));
        measured.wasted_ms = measured.wasted_ms.saturating_add(more(spent.wasted_ms, before.2));
        line.record.tell((), measured);
        Ok(())
    }

    fn standing(&mut self, tick: &TickRecord, mine: bool) {
        let was = self.standing.insert(tick.peer.clone(), tick.peer_state_after.clone());
        let became = tick.peer_state_after == "degraded" && was.as_deref() != Some("degraded");
        self.measured.degraded += u64::from(became && mine);
    }
}

impl RecordReader<()> for Measured {
    fn run_started(&mut self, (): (), _run: &RunStarted) {
        self.stop = None;
    }

    fn exit(&mut self, (): (), exit: &ExitRecord) {
        self.stop = Some(exit.reason.clone());
    }

    fn tick(&mut self, (): (), tick: &TickRecord) {
        self.iterations += 1;
        self.success += u64::from(tick.success);
        self.no_handoff += u64::from(!tick.success && tick.classification == "success");
        self.idle_timeouts += u64::from(tick.classification == "idle-timeout");
        self.api_errors += u64::from(tick.classification == "api-error");
        let usage = tick.exit.usage;
        self.tokens = Some(self.tokens.unwrap_or_default() + usage.tokens.unwrap_or_default());
        self.usd = Some(self.usd.unwrap_or_default() + usage.usd.unwrap_or_default());
        self.at_least.tokens |= usage.tokens.is_none() || tick.exit.at_least;
        self.at_least.usd |= usage.usd.is_none() || tick.exit.at_least;
    }
}
