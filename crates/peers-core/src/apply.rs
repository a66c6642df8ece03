//! The only way durable state changes.
//!
//! Live code, resume, rebuild and tests all come through here, so that a rebuild cannot drift from
//! a run. A record that makes no sense at its place is an error, never a guess.

mod after_tick;

use peers_model::record::{
    AckTarget, CapSet, ExitRecord, GateRule, OperatorOp, ProofRecord, Record, Rules, RunStarted, TickRecord,
    TickStarted, TrialRecord,
};
use peers_model::{CommitId, PeerName, RunId, TickNo, Timestamp};
use thiserror::Error;

use after_tick::clean_after;

use crate::converge;
use crate::reviews;
use crate::standstill::{Passed, Standstill};
use crate::state::{
    HandoffMark, LastExit, OpenTick, PeerState, Progress, ProofVerdict, Raised, RunInfo, State, Tried,
};

/// A record that cannot stand where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("record `{event}` is not possible here: {why}")]
pub struct IllegalRecord {
    /// Tag of the record.
    pub event: &'static str,
    /// What is wrong.
    pub why: String,
}

impl State {
    /// Folds one record in. On error the state is unchanged.
    ///
    /// # Errors
    /// [`IllegalRecord`] when the record cannot follow what was folded before.
    pub fn apply(
        &mut self,
        ts: Timestamp,
        run: Option<&RunId>,
        record: &Record,
    ) -> Result<(), IllegalRecord> {
        let illegal = |why: String| Err(IllegalRecord { event: record.event(), why });
        match record {
            Record::RunStarted(started) => {
                if self.live_run().is_some_and(|r| Some(&r.id) == run) {
                    return illegal("this run has started already".into());
                }
                let Some(id) = run else { return illegal("it has no run id".into()) };
                self.apply_run_started(ts, id, started);
            }
            Record::TickStarted(started) => {
                if let Some(open) = &self.open {
                    return illegal(format!("tick {} is still open", open.started.tick));
                }
                if started.tick != self.ticks.next() {
                    return illegal(format!("tick {} cannot follow tick {}", started.tick, self.ticks));
                }
                self.apply_tick_started(ts, started);
            }
            Record::PeerSpawned(spawned) => match &mut self.open {
                Some(open) if open.started.tick == spawned.tick && open.spawned.is_none() => {
                    open.spawned = Some(spawned.clone());
                }
                _ => return illegal(format!("tick {} is not waiting for its process", spawned.tick)),
            },
            Record::TurnEnded(ended) => match &mut self.open {
                Some(open) if open.started.tick == ended.tick => open.ended = Some(ended.clone()),
                _ => return illegal(format!("tick {} is not open", ended.tick)),
            },
            Record::CorrectionPlanned(plan) => match &mut self.open {
                Some(open) if open.started.tick == plan.tick && open.correction.is_none() => {
                    open.correction = Some(plan.clone());
                }
                _ => return illegal(format!("tick {} is not open or has its correction", plan.tick)),
            },
            Record::Tick(tick) => {
                let Some(open) = self.open.clone() else { return illegal("no tick is open".into()) };
                if open.started.tick != tick.iteration || open.started.peer != tick.peer {
                    return illegal(format!("tick {} of {} is open", open.started.tick, open.started.peer));
                }
                self.apply_tick(ts, &open, tick);
            }
            Record::Gates(gates) => {
                self.spent.gate_ms = self.spent.gate_ms.saturating_add(gates.took_ms);
                let rules = self.rules.clone();
                self.board.take(&rules, gates.iteration, &gates.verdicts);
                if let Some(green) = gates.green {
                    self.standstill.green(green, rules.gates.len());
                }
                self.note_progress(self.progress.closed);
            }
            Record::Proof(proof) => self.apply_proof(proof),
            Record::Trial(trial) => self.apply_trial(trial),
            Record::Cooling(cooling) => {
                let health = self.peers.entry(cooling.peer.clone()).or_default();
                health.not_before = Some(cooling.until);
                health.rate_limit_streak = cooling.streak;
                let wait = u64::try_from(cooling.until.since(ts).as_millis()).unwrap_or(u64::MAX);
                health.waited_ms = health.waited_ms.saturating_add(wait);
                health.waits_for = Some(cooling.cause);
                health.limited_since = cooling.since;
            }
            Record::Operator(record) => self.apply_operator(ts, &record.op, &record.by),
            Record::CommitsSeen(seen) => {
                self.head = Some(seen.head.clone());
                if seen.while_gates {
                    self.strangers_came();
                }
                if seen.weakens {
                    self.distrusted = Some(self.ticks.max(TickNo(1)));
                }
                // After the exit: the gates that were cut off have ended, and this is all there was.
                if self.live_run().is_none()
                    && let Some(exit) = &mut self.last_exit
                {
                    exit.in_gates = false;
                }
            }
            Record::MirrorRestored(_) | Record::HookFailed(_) => {}
            Record::Checkpoint(checkpoint) => match serde_json::from_value(checkpoint.state.clone()) {
                Ok(state) => *self = state,
                Err(error) => return illegal(format!("its state cannot be read: {error}")),
            },
            Record::Exit(exit) => {
                if self.live_run().is_none_or(|r| Some(&r.id) != run) {
                    return illegal("this run is not live".into());
                }
                self.apply_exit(ts, exit);
            }
        }
        Ok(())
    }

    /// [`State::apply`] by value, for folds.
    ///
    /// # Errors
    /// As [`State::apply`].
    pub fn applied(
        mut self,
        ts: Timestamp,
        run: Option<&RunId>,
        record: &Record,
    ) -> Result<Self, IllegalRecord> {
        self.apply(ts, run, record)?;
        Ok(self)
    }

    fn apply_proof(&mut self, proof: &ProofRecord) {
        self.spent.gate_ms = self.spent.gate_ms.saturating_add(proof.took_ms);
        self.board.take_proof(self.ticks, &proof.verdicts);
        for judged in &proof.verdicts {
            let Some(rule) = self.rules.gates.iter().find(|g| g.id == judged.goal) else { continue };
            let verdict = ProofVerdict {
                head: proof.at.head.clone(),
                tree: proof.at.tree.clone(),
                gate: rule.digest.clone(),
                setup_failed: judged.setup_failed,
                earlier: false,
                verdict: judged.verdict.clone(),
            };
            self.proofs.verdicts.insert(judged.goal.clone(), verdict);
        }
        let proved = converge::proved(self, &proof.at).len();
        self.standstill.proof(proved);
    }

    fn apply_trial(&mut self, trial: &TrialRecord) {
        self.spent.gate_ms = self.spent.gate_ms.saturating_add(trial.took_ms);
        let asked = |rule: &&GateRule| trial.asked.contains(&rule.id);
        let rules = self.rules.gates.iter().filter(asked);
        for GateRule { id, digest, .. } in rules {
            let tried = Tried { gate: digest.clone(), only_here: trial.only_here.contains(id) };
            self.trial.gates.insert(id.clone(), tried);
        }
        self.trial.run = self.run.as_ref().map(|run| run.id.clone());
        self.trial.manifests = trial.verdicts.iter().find_map(|judged| judged.manifests.clone());
    }

    fn apply_run_started(&mut self, ts: Timestamp, id: &RunId, started: &RunStarted) {
        self.take_rules(&started.rules, Some(&started.head));
        for health in self.peers.values_mut() {
            // An operator who starts a run has seen to what only an operator can see to, and may have mended
            // what made a peer fail. One turn each by `tick` are a run of many parts: nothing was mended between.
            let out = matches!(health.state, PeerState::Halted | PeerState::Unavailable);
            if out || (health.state == PeerState::Degraded && started.max_ticks != Some(1)) {
                health.state = PeerState::Degraded;
                health.recovery_due = true;
            }
            // What a run waited says nothing of what the next one may; a wait that is not over goes on.
            health.limited_since = None;
            health.waited_ms = 0;
            health.rate_limit_streak = 0;
            health.unblock();
            health.consecutive_fails = 0;
        }
        self.proofs.verdicts.retain(|_, proof| !proof.verdict.is_error() && !proof.verdict.is_skipped());
        // What `setup` lost is proved again by each turn of `tick`, too: its cause may lie outside of the tree.
        let single = started.max_ticks == Some(1);
        let left = self.proofs.verdicts.values_mut().filter(|proof| proof.verdict.is_red());
        for proof in left.filter(|proof| !single || proof.setup_failed) {
            proof.earlier = true;
        }
        if self.digests != started.digests {
            self.board.forget();
        }
        self.digests = started.digests.clone();
        self.spent.consecutive_failures = 0;
        self.spent.spawn_failures = 0;
        self.skeptic.attempts = 0;
        self.skeptic.unreported = 0;
        // One turn each by `tick` are a run of many parts.
        if started.max_ticks != Some(1) {
            self.standstill = Standstill::default();
        }
        // The operator may have seen to what was missing.
        if started.max_ticks != Some(1) || self.head.as_ref() != Some(&started.head) {
            self.course.tries = 0;
        }
        self.board.start_run(&started.rules, self.ticks);
        if self.open.is_none() {
            self.head = Some(started.head.clone());
            self.branch.clone_from(&started.branch);
        }
        self.run = Some(RunInfo {
            id: id.clone(),
            started_at: ts,
            ticks: 0,
            base: started.head.clone(),
            sandbox: started.sandbox.clone(),
            ended: false,
        });
    }

    /// The operator did something: what is in a peer's way may be gone.
    fn unblock(&mut self) {
        for health in self.peers.values_mut() {
            health.unblock();
        }
        self.standstill.forgive();
    }

    /// Drops proofs that are no answers about a tree: could-not-judge, what was skipped for another's sake, what
    /// `setup` lost. The operator may have mended what was missing.
    fn forget_unproved(&mut self) {
        self.proofs.verdicts.retain(|_, proof| {
            !proof.verdict.is_error() && !proof.verdict.is_skipped() && !proof.setup_failed
        });
    }

    /// Takes rules over. What is known of the peers and goals that stay is kept, the active peer stays
    /// active, and the first contact of each pair is seeded, so that no first handoff is lost.
    fn take_rules(&mut self, rules: &Rules, head: Option<&CommitId>) {
        let active = self.turn_peer().cloned();
        if !rules.gates.iter().map(|g| (&g.id, &g.digest)).eq(self
            .rules
            .gates
            .iter()
            .map(|g| (&g.id, &g.digest)))
        {
            // How many of other gates were green says nothing of these.
            self.progress.greens = 0;
            self.standstill.other_gates();
        }
        self.rules = rules.clone();
        self.turn_index = active.and_then(|a| rules.peers.iter().position(|p| p.name == a)).unwrap_or(0);
        self.peers.retain(|name, _| rules.peers.iter().any(|p| p.name == *name));
        for peer in &rules.peers {
            self.peers.entry(peer.name.clone()).or_default();
        }
        self.soft.retain(|id, _| rules.soft.iter().any(|s| s.id == *id));
        for soft in &rules.soft {
            self.soft.entry(soft.id.clone()).or_default();
        }
        let Some(head) = head else { return };
        for receiver in &rules.peers {
            let marks = self.bookmarks.entry(receiver.name.clone()).or_default();
            for sender in rules.peers.iter().filter(|s| s.name != receiver.name) {
                marks.entry(sender.name.clone()).or_insert_with(|| head.clone());
            }
        }
    }

    fn apply_tick_started(&mut self, ts: Timestamp, started: &TickStarted) {
        if let Some(index) = self.rules.peers.iter().position(|p| p.name == started.peer) {
            self.turn_index = index;
        }
        self.head = Some(started.head_before.clone());
        self.branch.clone_from(&started.branch);
        self.standstill.saw(started.content_before.as_ref().unwrap_or(&started.tree_before));
        if started.skeptic && self.skeptic.tree.as_ref() != Some(&started.tree_before) {
            self.skeptic.tree = Some(started.tree_before.clone());
            self.skeptic.passed.clear();
            self.skeptic.attempts = 0;
        }
        // What a dry run is told in answer does not stay, so that it was asked must not stay either.
        for goal in started.asked.iter().filter(|_| !self.rules.dry_run) {
            self.asked.entry(started.peer.clone()).or_default().insert(goal.clone(), started.tick);
        }
        self.open =
            Some(OpenTick { started: started.clone(), at: ts, spawned: None, ended: None, correction: None });
    }

    fn apply_tick(&mut self, ts: Timestamp, open: &OpenTick, tick: &TickRecord) {
        self.open = None;
        self.ticks = tick.iteration;
        if tick.outside && tick.prewarned {
            self.distrusted = Some(tick.iteration);
        }
        // What it committed may be another's: left uncommitted before it, or brought in from elsewhere.
        let unsure = tick.outside || self.dirty || !tick.foreign.is_empty();
        if let Some(run) = &mut self.run {
            // A tick that a crashed run began is none of this run's.
            run.ticks = run.ticks.saturating_add(u64::from(!tick.recovered && !tick.outside));
        }
        self.head = Some(tick.head_after.clone());
        self.branch.clone_from(&tick.branch);
        self.dirty = tick.dirty;
        self.account(tick);
        self.rotate(tick);
        self.health_after(tick);
        if tick.outcome.read_its_prompt() && !self.rules.dry_run {
            // What the prompt showed counts as delivered only once its tick is durable, and only if
            // somebody can have read it.
            let taken = usize::try_from(open.started.warnings_taken).unwrap_or(usize::MAX);
            self.warnings.drain(..taken.min(self.warnings.len()));
            let marks = self.bookmarks.entry(tick.peer.clone()).or_default();
            for (sender, commit) in &open.started.inbox {
                marks.insert(sender.clone(), commit.clone());
            }
            self.messages.retain(|m| !open.started.messages.contains(m));
        }
        self.take_warnings(ts, tick);
        for path in tick.published.iter().filter(|_| !self.rules.dry_run) {
            self.messages.push_back(path.clone());
            if let Some((pair, number)) = message_number(path) {
                let next = self.message_numbers.entry(pair.to_owned()).or_insert(0);
                *next = (*next).max(number);
            }
        }
        let left_nothing = !tick.tree_changed && tick.commits.is_empty();
        let counts = !(tick.outcome.is_neutral() || (tick.outcome.is_breakdown() && left_nothing));
        if !counts {
            // Nobody could work: no tick of a red streak.
            self.board.pass_over(tick.iteration);
        }
        if tick.tree_changed {
            // What was in the others' way may be gone, if this turn got something done.
            let others = self.peers.iter_mut().filter(|(name, _)| **name != tick.peer);
            for (_, health) in others.filter(|_| tick.success) {
                health.others_moved();
            }
        }
        if tick.product_change {
            self.last_product_author = Some(tick.peer.clone()).filter(|_| !tick.outside);
            self.strangers |= unsure;
        }
        if tick.success && !self.rules.dry_run {
            self.last_handoff = Some(HandoffMark {
                peer: tick.peer.clone(),
                from: tick.head_before.clone(),
                to: tick.head_after.clone(),
            });
        }
        self.clean_ticks = clean_after(self.clean_ticks, tick, self.rules.dry_run);
        let gets_on = !self.rules.dry_run && self.course_after(open, tick, counts);
        self.skeptic_after(open, tick);
        let passed = self.soft_after(tick, unsure);
        if !self.rules.dry_run {
            let passed = passed.iter().map(|(goal, scope)| Passed { goal: goal.as_str(), scope });
            self.standstill.after(tick, passed, counts);
            if gets_on {
                self.standstill.forgive();
            }
        }
        self.strangers |= self.rules.unwatched;
        let rules = self.rules.clone();
        self.board.take(&rules, tick.iteration, &tick.verdicts);
        if let Some(judged) = tick.verdicts.last() {
            self.standstill.green(self.board.greens_at(&rules, &judged.at), rules.gates.len());
        }
        for gate in rules.gates.iter().filter(|_| counts) {
            if converge::proof_is_red_at(self, gate, &tick.head_after, &tick.tree_after) {
                self.board.count_proof(&gate.id, tick.iteration);
            }
        }
        self.note_progress(tick.bugs_closed);
    }

    /// Takes in what a tick brought to phases and steps. Whether it got on by that; a step that was checked off
    /// is progress whatever is red until the last one.
    fn course_after(&mut self, open: &OpenTick, tick: &TickRecord, counts: bool) -> bool {
        let rules = self.rules.clone();
        let gets_on = self.course.after(&rules, &open.started, tick, counts);
        if tick.course.as_ref().is_some_and(|course| course.checked_off) {
            self.board.forgive();
        }
        gets_on
    }

    /// Starts the count of what was spent anew where something is better than ever.
    fn note_progress(&mut self, closed: u32) {
        let greens = self.board.greens(&self.rules);
        let Progress { greens: best, closed: most, .. } = self.progress;
        if greens > best || closed > most {
            self.progress =
                Progress { greens: greens.max(best), closed: closed.max(most), ..Progress::default() };
        }
    }

    /// Commits came in of which nobody saw who made them: any peer may have.
    fn strangers_came(&mut self) {
        self.strangers = true;
        self.last_product_author = None;
        for soft in &self.rules.soft {
            self.soft.entry(soft.id.clone()).or_default().strangers = true;
        }
    }

    fn apply_operator(&mut self, ts: Timestamp, op: &OperatorOp, by: &str) {
        match op {
            OperatorOp::Accepted { new, rules, .. } => {
                self.digests = new.clone();
                self.board.forget();
                self.forget_unproved();
                self.unblock();
                if let Some(rules) = rules {
                    let head = self.head.clone();
                    self.take_rules(rules, head.as_ref());
                    self.board.start_run(rules, self.ticks);
                }
            }
            OperatorOp::BudgetReset => {
                self.raised.clear();
                self.spent = crate::state::Spent::default();
                self.progress = Progress {
                    greens: self.progress.greens,
                    closed: self.progress.closed,
                    ..Progress::default()
                };
            }
            OperatorOp::BudgetSet { caps, until } => {
                for CapSet { cap, value } in caps {
                    let raised = Raised { value: *value, until: *until, at: ts, by: by.to_owned() };
                    self.raised.insert(*cap, raised);
                }
            }
            OperatorOp::Resumed => {
                self.unblock();
                for health in self.peers.values_mut().filter(|health| health.state != PeerState::Healthy) {
                    health.state = PeerState::Degraded;
                    health.recovery_due = true;
                }
            }
            OperatorOp::Ack { target: AckTarget::Blocked(peer), .. } => {
                if let Some(health) = self.peers.get_mut(peer) {
                    health.unblock();
                }
            }
            OperatorOp::Ack { target, .. } => {
                self.unblock();
                self.acks.insert(target.clone());
                if let AckTarget::Weakening(tick) = target {
                    self.distrusted = self.distrusted.filter(|at| at != tick);
                    // What that turn did is meant; the next weakening is a first one again.
                    for health in self.peers.values_mut().filter(|h| h.warned_at == Some(*tick)) {
                        health.prewarned = false;
                        health.warned_at = None;
                    }
                }
                self.board.forget();
            }
            OperatorOp::Undone { to, .. } => {
                self.head = Some(to.clone());
                // What was said of work that is gone is said of nothing.
                for status in self.soft.values_mut() {
                    *status = reviews::SoftStatus::default();
                }
                self.asked.clear();
                self.skeptic = crate::state::Skeptic::default();
                self.course = crate::course::Course::default();
                self.clean_ticks = 0;
                self.last_handoff = None;
                self.last_product_author = None;
                self.strangers_came();
            }
            OperatorOp::Moving(what) => {
                self.moving = Some(crate::state::OpenMove { what: what.clone(), by: by.to_owned() });
            }
            OperatorOp::Moved | OperatorOp::Landed { .. } => self.moving = None,
            OperatorOp::Contract(_) => {
                self.unblock();
                // Verdicts of the plan and of its commands rest on what was frozen before.
                self.board.forget();
            }
            OperatorOp::StoreAttached { .. } => {}
        }
    }

    fn apply_exit(&mut self, ts: Timestamp, exit: &ExitRecord) {
        // As a reader of the journal has it: the text form of a reason does not name the signal.
        let reason = exit.reason.to_string().parse().unwrap_or_else(|_| exit.reason.clone());
        if reason == peers_model::outcome::StopReason::AllPeersDegraded {
            // Who needs its operator still does.
            let others = self.peers.values_mut().filter(|health| health.state != PeerState::Unavailable);
            others.for_each(|health| health.state = PeerState::Halted);
        }
        self.course.checkpointed |= reason == peers_model::outcome::StopReason::Checkpoint;
        if let Some(run) = &mut self.run {
            run.ended = true;
        }
        self.last_exit = Some(LastExit { reason, at: ts, in_gates: exit.in_gates });
    }
}

/// Cuts at a character boundary; never panics.
#[must_use]
pub fn bounded(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let mut end = max;
    while end > 0 && !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}

/// `a-to-b/000012-topic.md` → (`a-to-b`, 12).
fn message_number(path: &str) -> Option<(&str, u64)> {
    let (pair, name) = path.split_once('/')?;
    let (number, _) = name.split_once('-')?;
    Some((pair, number.parse().ok()?))
}

/// Who is in the loop, by name.
#[must_use]
pub fn peer_names(state: &State) -> Vec<PeerName> {
    state.rules.peers.iter().map(|p| p.name.clone()).collect()
}

/// Whether `tick` is the next one.
#[must_use]
pub fn is_next(state: &State, tick: TickNo) -> bool {
    state.ticks.next() == tick
}
