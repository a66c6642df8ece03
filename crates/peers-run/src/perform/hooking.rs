//! The operator's hooks, and what waits for them.
//!
//! Whatever looks at the repository or lets others work in it waits until no hook runs. What a hook changed is
//! then found by the next look, with no tick open and no gate running: it is the operator's, and no peer's.

use std::collections::{BTreeMap, VecDeque};

use peers_core::machine::{Effect, Event, Notice, Phase};
use peers_model::config::Hook;
use peers_model::record::{HookFailed, Record};
use peers_model::verdict::{Judged, Place, TreeKey};
use peers_model::{PeerName, TickNo};

use crate::engine::Engine;
use crate::hooks::{HookAbout, HookEvent};
use crate::ports::{Clock as _, Procs, Repo, World};

/// What the engine remembers of hooks.
#[derive(Debug, Default)]
pub(crate) struct Hooking {
    /// Effects that wait, in order.
    held: VecDeque<Effect>,
    /// The repository when the hooks that run began.
    before: Option<TreeKey>,
    /// The turn before which `pre_turn` has run.
    prepared: Option<(TickNo, PeerName)>,
    failures: Failures,
}

/// Hooks that failed, of which one record is made for each hook and tick, and one at the end for what is left:
/// one that fails whenever it runs must not fill the journal.
#[derive(Debug, Default)]
struct Failures(BTreeMap<Hook, Failure>);

#[derive(Debug)]
struct Failure {
    /// The tick of its newest record.
    recorded: TickNo,
    /// What came since then.
    more: Option<HookFailed>,
}

impl Failures {
    /// The record to make now, if one is to be made.
    fn take(&mut self, mut failed: HookFailed) -> Option<HookFailed> {
        let Some(known) = self.0.get_mut(&failed.hook) else {
            let first = Failure { recorded: failed.tick, more: None };
            // There was none.
            let _none = self.0.insert(failed.hook, first);
            return Some(failed);
        };
        if let Some(before) = known.more.take() {
            failed.times = failed.times.saturating_add(before.times);
        }
        if known.recorded == failed.tick {
            known.more = Some(failed);
            return None;
        }
        known.recorded = failed.tick;
        Some(failed)
    }

    /// What stands in no record yet.
    fn rest(&mut self) -> Vec<HookFailed> {
        self.0.values_mut().filter_map(|known| known.more.take()).collect()
    }
}

/// Whether the repository must rest for this.
fn waits(effect: &Effect) -> bool {
    match effect {
        Effect::Survey
        | Effect::Judge { .. }
        | Effect::JudgeBehind { .. }
        | Effect::Compose { .. }
        | Effect::Correct { .. } => true,
        // Before a turn its prompt waited, and a turn starts no hook.
        Effect::RunPeer(_)
        | Effect::Harvest { .. }
        | Effect::ReapOrphans { .. }
        | Effect::CancelGates
        | Effect::EndPeer { .. }
        | Effect::SetTimer(_)
        | Effect::Attest
        | Effect::DropCommands(_)
        | Effect::ArchiveMessages(_)
        | Effect::WriteProjections
        | Effect::FinishRun
        | Effect::Tell(_) => false,
    }
}

impl<W: World> Engine<W> {
    /// Starts the hook that comes before this effect, and keeps the effect for later while one runs.
    pub(super) fn hold(&mut self, effect: &Effect) -> bool {
        if !waits(effect) {
            return false;
        }
        match effect {
            Effect::Compose { peer } => self.before_peer(peer),
            Effect::Judge { gates, place, tick, .. } => {
                let about = HookAbout::PreGate { gates: gates.clone(), place: *place };
                self.hook(&HookEvent { tick: *tick, about });
            }
            _ => {}
        }
        let busy = self.world.procs().hooks_run();
        if busy {
            self.hooking.held.push_back(effect.clone());
        }
        busy
    }

    fn before_peer(&mut self, peer: &PeerName) {
        let turn = (self.machine.state.ticks.next(), peer.clone());
        // Looked at again, it is the same turn still.
        if self.hooking.prepared.as_ref() == Some(&turn) {
            return;
        }
        let skeptic = matches!(&self.machine.phase, Phase::Composing(composing) if composing.skeptic);
        let about = HookAbout::PreTurn { peer: peer.clone(), skeptic };
        self.hook(&HookEvent { tick: turn.0, about });
        self.hooking.prepared = Some(turn);
    }

    /// Starts a hook, where the operator wants one.
    fn hook(&mut self, event: &HookEvent) {
        if !self.world.procs().has_hook(event.about.hook()) {
            return;
        }
        if !self.world.procs().hooks_run() {
            // Where it cannot be looked at, whoever looks next says so.
            self.hooking.before = self.world.repo().key().ok();
        }
        self.world.procs().run_hook(event);
    }

    /// The hook that comes after something that was told.
    pub(super) fn hook_after(&mut self, notice: &Notice) {
        if let Notice::TickEnded(record) = notice {
            self.hook(&HookEvent::turn(record));
        }
    }

    /// The hook that comes after gates.
    pub(super) fn hook_after_gates(&mut self, tick: TickNo, place: Place, verdicts: &[Judged], took_ms: u64) {
        if self.world.procs().has_hook(Hook::PostGate) {
            self.hook(&HookEvent::gates(tick, place, verdicts, took_ms));
        }
    }

    /// The hook at the end of the loop, once it has stopped. A run that never began has none.
    pub fn last_hook(&mut self) {
        let began = self.machine.state.run.as_ref().is_some_and(|run| run.id == self.cfg.run_id);
        let Some(reason) = self.stopped().cloned().filter(|_| began) else { return };
        let (tick, detail) = (self.machine.state.ticks, self.detail());
        let event = HookEvent::stop(tick, &reason, &detail, self.last_exit.as_ref());
        self.world.procs().run_hook(&event);
    }

    /// Tells what is to be told of hooks, and goes on with what waited when none runs any more.
    pub fn after_hooks(&mut self) {
        for failed in self.world.procs().told_by_hooks() {
            self.tell(&Notice::Warning(failed.words()));
            if let Some(failed) = self.hooking.failures.take(failed) {
                self.record_failure(failed);
            }
        }
        if self.stopped().is_some() {
            for failed in self.hooking.failures.rest() {
                self.record_failure(failed);
            }
        }
        if self.world.procs().hooks_run() {
            return;
        }
        let moved = self.moved_by_hooks();
        if self.stopped().is_some() {
            self.hooking.held.clear();
        }
        for effect in std::mem::take(&mut self.hooking.held) {
            match &effect {
                // What was found is no longer there.
                Effect::Compose { .. } if moved => self.pending.push_back(Event::Outdated),
                // A proof is about a commit, wherever HEAD is.
                Effect::Judge { place: Place::Live | Place::GateTree, .. } if moved => {
                    let changed = "by a hook".to_owned();
                    let verdicts = Vec::new();
                    self.pending.push_back(Event::Judged { verdicts, took_ms: 0, moved: true, changed });
                }
                _ => self.perform_now(&effect),
            }
        }
    }

    /// Makes it durable, for who does not see what is told.
    fn record_failure(&mut self, failed: HookFailed) {
        let at = self.world.clock().now().wall;
        match self.store.append(at, Some(&self.cfg.run_id), &[Record::HookFailed(failed)]) {
            Ok(()) => self.machine.state.clone_from(self.store.state()),
            Err(error) if self.stopped().is_some() => {
                tracing::warn!(%error, "that a hook failed was not recorded");
            }
            Err(error) => self.emergency(&error),
        }
    }

    /// Whether the repository moved while hooks ran, which is told.
    fn moved_by_hooks(&mut self) -> bool {
        let Some(before) = self.hooking.before.take() else { return false };
        let Ok(now) = self.world.repo().key() else { return false };
        if now == before {
            return false;
        }
        let what = if now.head == before.head {
            "the work tree changed".to_owned()
        } else {
            format!("HEAD moved from {} to {}", before.head.short(), now.head.short())
        };
        self.tell(&Notice::Warning(format!(
            "{what} while a hook ran: that counts as yours and as no peer's; hooks had better leave the repository alone"
        )));
        true
    }

    /// Gates that wait for a hook are not wanted any more.
    pub(super) fn cancel_held_gates(&mut self) {
        let before = self.hooking.held.len();
        self.hooking.held.retain(|effect| !matches!(effect, Effect::Judge { .. }));
        if self.hooking.held.len() < before {
            let (verdicts, changed) = (Vec::new(), String::new());
            self.pending.push_back(Event::Judged { verdicts, took_ms: 0, moved: false, changed });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_that_fails_again_and_again_has_one_record_in_a_tick_and_none_is_lost() {
        let failed =
            |hook, tick| HookFailed { tick: TickNo(tick), hook, what: "`note` died".into(), times: 1 };
        let mut failures = Failures::default();
        let times = |taken: Option<HookFailed>| taken.map(|failed| failed.times);
        assert_eq!(times(failures.take(failed(Hook::PreGate, 1))), Some(1));
        assert_eq!(times(failures.take(failed(Hook::PreTurn, 1))), Some(1));
        for _ in 0..100 {
            assert_eq!(failures.take(failed(Hook::PreGate, 1)), None);
        }
        assert_eq!(times(failures.take(failed(Hook::PreGate, 2))), Some(101));
        assert_eq!(failures.take(failed(Hook::PreGate, 2)), None);
        let rest: Vec<u32> = failures.rest().iter().map(|failed| failed.times).collect();
        assert_eq!((rest, failures.rest()), (vec![1], Vec::new()));
    }
}
