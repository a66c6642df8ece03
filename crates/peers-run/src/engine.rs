//! The engine: one input at a time through `decide`, the journal, and the effects.
//!
//! Synchronous on purpose. Whoever drives it (the tokio loop in production, the simulator in tests)
//! only brings inputs and asks whether it has stopped. Records are durable before any effect that
//! they announce is performed; when they cannot be made durable, no effect is performed at all.

use std::collections::VecDeque;

use peers_core::machine::{self, Effect, Event, Input, LoopConfig, Machine, Notice, Phase, StopRequest};
use peers_core::state::State;
use peers_model::outcome::{ErrorKind, StopReason};
use peers_model::record::{ExitRecord, Record};
use peers_store::{Area, Disk, DiskErrorKind, Store, StoreError, commands, layout, runs};

use crate::perform::Hooking;
use crate::ports::{Clock, Observer, Procs, Round, World};

/// A running loop.
pub struct Engine<W: World> {
    pub(crate) cfg: LoopConfig,
    pub(crate) machine: Machine,
    pub(crate) store: Store<W::Disk>,
    pub(crate) world: W,
    pub(crate) pending: VecDeque<Event>,
    pub(crate) record: runs::RunRecord,
    pub(crate) judging: Option<Judging>,
    /// A new configuration that waits for its record.
    pub(crate) reload: Option<Box<LoopConfig>>,
    pub(crate) reloader: Option<Box<dyn Reload>>,
    pub(crate) last_exit: Option<ExitRecord>,
    /// Why the loop stopped, in more words, whether or not that could be recorded.
    pub(crate) detail: String,
    /// Files in drop boxes whose messages are published and not yet recorded.
    pub(crate) taken: Vec<String>,
    pub(crate) hooking: Hooking,
}

/// What the running gates are about.
#[derive(Debug, Clone)]
pub(crate) struct Judging {
    pub(crate) key: peers_model::verdict::TreeKey,
    pub(crate) place: peers_model::verdict::Place,
    pub(crate) tick: peers_model::TickNo,
    /// These have not begun.
    pub(crate) left: VecDeque<peers_model::GoalId>,
    pub(crate) checkout: Option<std::path::PathBuf>,
    /// The attempts so far of the gate at hand, each in a checkout of its own, as one answer.
    pub(crate) tried: Option<peers_model::verdict::Judged>,
    /// What the others have answered, and how long that took.
    pub(crate) verdicts: Vec<peers_model::verdict::Judged>,
    pub(crate) took_ms: u64,
    /// All of them together.
    pub(crate) round: Option<Round>,
    /// Digest of the manifests and lock files, in a clean checkout.
    pub(crate) manifests: Option<String>,
    /// The tree changed meanwhile.
    pub(crate) moved: bool,
    /// In what, for people.
    pub(crate) changed: String,
}

impl Judging {
    /// Nothing has answered yet.
    pub(crate) fn begun(
        left: Vec<peers_model::GoalId>,
        key: &peers_model::verdict::TreeKey,
        place: peers_model::verdict::Place,
        tick: peers_model::TickNo,
    ) -> Self {
        Self {
            key: key.clone(),
            place,
            tick,
            left: left.into(),
            checkout: None,
            tried: None,
            verdicts: Vec::new(),
            took_ms: 0,
            round: None,
            manifests: None,
            moved: false,
            changed: String::new(),
        }
    }
}

/// Loads goals and config again after the operator accepted new ones while the loop ran.
pub trait Reload {
    /// The configuration that the accepted files now give.
    ///
    /// # Errors
    /// What is wrong with them, for people; the old configuration stays.
    fn reload(&mut self, old: &LoopConfig) -> Result<LoopConfig, String>;
}

impl<W: World> std::fmt::Debug for Engine<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("phase", &self.machine.phase).finish_non_exhaustive()
    }
}

impl<W: World> Engine<W> {
    /// An engine over an open store. Nothing happens before [`Engine::start`].
    pub fn new(cfg: LoopConfig, store: Store<W::Disk>, world: W, record: runs::RunRecord) -> Self {
        let machine = Machine::new(store.state().clone());
        Self {
            cfg,
            machine,
            store,
            world,
            pending: VecDeque::new(),
            record,
            judging: None,
            reload: None,
            reloader: None,
            last_exit: None,
            detail: String::new(),
            taken: Vec::new(),
            hooking: Hooking::default(),
        }
    }

    /// Sets who reloads goals and config.
    #[must_use]
    pub fn with_reloader(mut self, reloader: Box<dyn Reload>) -> Self {
        self.reloader = Some(reloader);
        self
    }

    /// Writes the run record and performs the first effects.
    ///
    /// # Errors
    /// [`StoreError`] when the run record cannot be written.
    pub fn start(&mut self) -> Result<(), StoreError> {
        runs::write(self.store.disk(), &self.record)?;
        let (phase, effects) = machine::start(&self.machine.state);
        self.machine.phase = phase;
        for effect in effects {
            self.perform(&effect);
        }
        Ok(())
    }

    /// Records what the operator asked for too late for the loop to take it: the next reader must not find it
    /// under another run, or after something that was asked later.
    pub fn record_late(&mut self) {
        let at = self.world.clock().now().wall;
        if let Err(error) = commands::record_waiting(&mut self.store, at, Some(&self.cfg.run_id)) {
            tracing::warn!(%error, "what the operator asked for last was not recorded; the next start does it");
        }
        self.machine.state.clone_from(self.store.state());
    }

    /// The folded state.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.machine.state
    }

    /// Where the loop is.
    #[must_use]
    pub fn phase(&self) -> &Phase {
        &self.machine.phase
    }

    /// Why the loop stopped, once it has.
    #[must_use]
    pub fn stopped(&self) -> Option<&StopReason> {
        match &self.machine.phase {
            Phase::Stopped(reason) => Some(reason),
            Phase::Booting { .. }
            | Phase::Reaping
            | Phase::Surveying(_)
            | Phase::Judging(..)
            | Phase::Composing(_)
            | Phase::Running { .. }
            | Phase::Harvesting { .. }
            | Phase::Correcting(_)
            | Phase::Refreshing(_)
            | Phase::Proving(..)
            | Phase::AwaitingGates
            | Phase::CoolingDown => None,
        }
    }

    /// Why the loop stopped, in more words, for people.
    #[must_use]
    pub fn detail(&self) -> String {
        self.detail.clone()
    }

    /// The world, for whoever drives it.
    pub fn world(&mut self) -> &mut W {
        &mut self.world
    }

    /// The store, for whoever inspects it.
    pub fn store(&mut self) -> &mut Store<W::Disk> {
        &mut self.store
    }

    /// An answer of a synchronous effect that was not fed yet.
    pub fn next_pending(&mut self) -> Option<Event> {
        self.pending.pop_front()
    }

    /// Feeds one event, stamped with the time of now.
    pub fn feed(&mut self, event: Event) {
        let Some(event) = self.finish_judging(event) else { return };
        if let Event::Stop(StopRequest::Graceful(_) | StopRequest::Now(_)) = event {
            self.world.procs().end_hooks();
        }
        let at = self.world.clock().now();
        let input = Input { at, event };
        let decision = machine::decide(&self.cfg, &self.machine, &input);
        if !decision.records.is_empty() {
            if let Err(error) = self.store.append(at.wall, Some(&self.cfg.run_id), &decision.records) {
                self.emergency(&error);
                return;
            }
            self.machine.state.clone_from(self.store.state());
            for record in &decision.records {
                if let Record::Exit(exit) = record {
                    self.last_exit = Some(exit.as_ref().clone());
                }
            }
        }
        self.machine.phase = decision.phase;
        self.machine.stop = decision.stop;
        for effect in &decision.effects {
            if let Effect::Tell(Notice::Stopped { detail, .. }) = effect {
                self.detail.clone_from(detail);
            }
        }
        for effect in &decision.effects {
            self.perform(effect);
        }
        if let Some(reload) = self.reload.take() {
            self.cfg = *reload;
        }
    }

    /// The journal cannot be written: nothing that was decided is performed, what runs is ended, and
    /// one last record is tried with the space that was kept for it.
    pub(crate) fn emergency(&mut self, error: &StoreError) {
        let kind = match error.disk().map(|d| d.kind) {
            Some(DiskErrorKind::Full) => ErrorKind::DiskFull,
            Some(
                DiskErrorKind::Unsafe
                | DiskErrorKind::TooLarge
                | DiskErrorKind::Exists
                | DiskErrorKind::NoArea
                | DiskErrorKind::Io,
            ) => ErrorKind::Io,
            None => ErrorKind::Internal,
        };
        let reason = StopReason::Error(kind);
        let detail = error.to_string();
        self.detail.clone_from(&detail);
        self.world.procs().end_peer(true);
        self.world.procs().cancel_gates();
        self.world.procs().end_hooks();
        // Losing the reserve is its purpose.
        let _freed = self.store.disk().remove(Area::Store, layout::store::RESERVE);
        let at = self.world.clock().now();
        if self.machine.state.live_run().is_some_and(|r| r.id == self.cfg.run_id) {
            let exit = Record::Exit(Box::new(ExitRecord {
                reason: reason.clone(),
                detail: peers_core::apply::bounded(&detail, peers_model::limits::WARNING),
                ticks_in_run: self.machine.state.run.as_ref().map_or(0, |r| r.ticks),
                signal: None,
                head: self.machine.state.head.clone(),
                proof: None,
                in_gates: true,
            }));
            // When this fails too, the open run record says what a reader needs: it was not ended.
            let _written = self.store.append(at.wall, Some(&self.cfg.run_id), &[exit]);
            self.machine.state.clone_from(self.store.state());
        }
        self.machine.phase = Phase::Stopped(reason.clone());
        self.finish_run(&reason, &detail);
        let notice = Notice::Stopped { reason, detail };
        let state = self.machine.state.clone();
        self.world.observer().notice(&notice, &state, at);
    }
}
