//! Effects. Each is idempotent, or leaves a mark that a resumed run finds.

mod composing;
mod failure;
mod hooking;
mod judging;

pub use crate::notes::{Unsealed, sealed as sealed_notes};
pub use composing::{Known, facts as compose_facts, plan_at};
pub(crate) use hooking::Hooking;
pub use judging::{after, changed_the_tree, in_order_of_need, next_together, one_more};

use std::collections::BTreeSet;

use peers_core::bugs::{Bug, Counts, Ledger};
use peers_core::compose;
use peers_core::machine::{
    CommitSeen, ComposeFacts, Effect, Event, Facts, Harvest, Left, Mutation, Notice, PendingCommand, Phase,
};
use peers_core::plan::Plan;
use peers_model::goal::GoalKind;
use peers_model::outcome::{StopReason, TamperKind};
use peers_model::record::{OperatorOp, OperatorRecord};
use peers_model::step::StepRole;
use peers_model::{BugId, CommitId, GoalId, PeerName, TickNo, limits};
use peers_store::bugs;
use peers_store::{Area, Author, Disk, artifacts, commands, contracts, layout, projection, runs};
use peers_sys::term;

use self::failure::Failure;
use crate::engine::Engine;
use crate::gitrepo::DIRTY_SHOWN;
use crate::messages;
use crate::notes;
use crate::ports::{Clock, Guard, Observer, Procs, Repo, World};

/// Bytes of the artifact of a phase.
const ARTIFACT_CAP: usize = 256 * 1024;

/// Whom a note names for commits of ours.
const OURS: &str = "peers-substrate";

impl<W: World> Engine<W> {
    /// Performs one effect. Answers of synchronous effects go to the pending queue.
    pub(crate) fn perform(&mut self, effect: &Effect) {
        if !self.hold(effect) {
            self.perform_now(effect);
        }
    }

    fn perform_now(&mut self, effect: &Effect) {
        match effect {
            Effect::Survey => {
                let event = match self.survey() {
                    Ok(facts) => Event::Surveyed(Box::new(facts)),
                    Err(failure) => failure.event(),
                };
                self.pending.push_back(event);
            }
            Effect::ReapOrphans { tick, spawned } => {
                let run = self.machine.state.run.as_ref().map(|r| r.id.clone());
                let survivors = self.world.procs().reap(run.as_ref(), *tick, spawned.as_ref());
                let open = self.machine.state.open.as_ref().map(|o| (o.started.tick, o.started.peer.clone()));
                let mut left = Left { survivors, ..Left::default() };
                if let Some((tick, peer)) = &open {
                    left.last_sign = self.world.procs().last_sign(*tick, peer);
                    left.usage = self.world.procs().used(*tick, peer);
                }
                self.pending.push_back(Event::OrphansGone(left));
            }
            Effect::Judge { gates, key, place, tick } => self.judge(gates, key, *place, *tick),
            Effect::JudgeBehind { gates, key, tick } => self.judge_behind(gates, key, *tick),
            Effect::CancelGates => {
                if let Some(judging) = &mut self.judging {
                    judging.left.clear();
                }
                self.cancel_held_gates();
                self.world.procs().cancel_gates();
            }
            Effect::Compose { peer } => {
                let event = match self.compose(peer) {
                    Ok(facts) => Event::Composed(Box::new(facts)),
                    Err(failure) => failure.event(),
                };
                self.pending.push_back(event);
            }
            Effect::RunPeer(launch) => {
                self.keep_prompt(launch.tick, &launch.peer, &launch.prompt);
                self.clear_boxes();
                let work = self
                    .machine
                    .state
                    .open
                    .as_ref()
                    .and_then(|open| open.started.course.as_ref()?.work.clone());
                if let Some(work) = work {
                    notes::clear(self.store.disk(), &launch.peer, &work);
                }
                self.world.guard().before();
                if let Err(failure) = self.world.repo().before_turn(launch.tick, &launch.peer) {
                    self.pending.push_back(Failure::from(failure).event());
                    return;
                }
                self.world.procs().run_peer(launch);
            }
            Effect::EndPeer { now } => self.world.procs().end_peer(*now),
            Effect::Harvest { tick, peer, from } => {
                let event = match self.harvest(*tick, peer, from) {
                    Ok(harvest) => Event::Harvested(Box::new(harvest)),
                    Err(failure) => failure.event(),
                };
                self.pending.push_back(event);
            }
            Effect::Correct { plan, peer } => {
                let run = self.cfg.run_id.clone();
                let event = match self.world.repo().correct(plan, peer, &run) {
                    Ok(corrected) => Event::Corrected(Box::new(corrected)),
                    Err(failure) => Failure::from(failure).event(),
                };
                self.pending.push_back(event);
            }
            Effect::SetTimer(at) => self.world.procs().set_timer(*at),
            Effect::Attest => {
                // The tick is recorded, and with it the messages.
                let taken = std::mem::take(&mut self.taken);
                messages::empty(self.store.disk(), &taken);
                self.attest();
            }
            Effect::DropCommands(names) => {
                // A command that stays would be recorded again at each look, for ever.
                if let Err(error) = commands::remove(self.store.disk(), names) {
                    self.pending.push_back(Failure::from(error).event());
                }
            }
            Effect::ArchiveMessages(paths) => messages::archive(self.store.disk(), paths),
            Effect::WriteProjections => self.project(),
            Effect::FinishRun => {
                if let Some(reason) = self.stopped().cloned() {
                    let detail = self.detail();
                    self.finish_run(&reason, &detail);
                }
            }
            Effect::Tell(notice) => {
                self.tell(notice);
                self.hook_after(notice);
            }
        }
    }

    pub(crate) fn tell(&mut self, notice: &Notice) {
        let at = self.world.clock().now();
        let state = &self.machine.state;
        self.world.observer().notice(notice, state, at);
    }

    fn scopes(&self) -> Vec<(GoalId, Vec<String>)> {
        self.cfg
            .goals
            .iter()
            .filter_map(|g| match &g.kind {
                GoalKind::Soft(soft) => Some((g.id.clone(), soft.paths.clone())),
                GoalKind::Hard(_) => None,
            })
            .collect()
    }

    /// A directory is not where it was.
    fn displaced(
        &mut self,
        turn: Option<(TickNo, &CommitId)>,
        (kind, detail): (TamperKind, String),
    ) -> Failure {
        let detail = match kind {
            TamperKind::Git => self.world.repo().before_stop(turn, detail),
            TamperKind::PeerDir | TamperKind::Store | TamperKind::History | TamperKind::ToolHome => detail,
        };
        Failure::Tampered(kind, detail)
    }

    fn survey(&mut self) -> Result<Facts, Failure> {
        let sweep = self.world.guard().sweep().map_err(|tamper| self.displaced(None, tamper))?;
        let mutation = self.mutation();
        let mut pending = Vec::new();
        let waiting = commands::waiting(self.store.disk())?;
        let last = waiting.iter().rposition(|(_, record)| matches!(record.op, OperatorOp::Accepted { .. }));
        for (at, (id, mut record)) in waiting.into_iter().enumerate() {
            let ready = self.prepare_reload(&mut record);
            // `goals edit` says what is accepted before it writes the file. A later acceptance takes the place of one
            // whose file never came.
            if ready || Some(at) != last {
                pending.push(PendingCommand { id, record });
            }
        }
        let settled = self.machine.state.open.is_none();
        let known = self.machine.state.head.clone();
        let scopes = self.scopes();
        let found = self.world.repo().survey(known.as_ref(), &scopes, settled);
        let found = found.map_err(|failure| Failure::or_tamper(failure, sweep.tamper.clone()))?;
        let authors = self.store.authors();
        let mut facts = Facts::from(found);
        facts.arrived.retain(|commit| authors.of(commit).is_none());
        let nobody_saw = match self.machine.phase {
            Phase::Surveying(_) | Phase::Booting { .. } if settled && self.cfg.rules.unwatched => true,
            Phase::Surveying(moved) => moved > 0,
            Phase::Booting { .. } => settled && self.machine.state.unwitnessed(),
            _ => false,
        };
        if let Some(known) = known.filter(|_| nobody_saw && !facts.arrived.is_empty()) {
            let diff = self.world.repo().diff(&known, &facts.head)?;
            facts.arrived_weaken = diff.weaker.iter().map(ToString::to_string).collect();
        }
        facts.history_intact |= !settled;
        facts.mutation = mutation.filter(|_| pending.is_empty());
        facts.plan = composing::plan_at(self.world.repo(), &self.cfg.course, &facts.head)?;
        (facts.tamper, facts.commands) = (sweep.tamper, pending);
        Ok(facts)
    }

    /// The first accepted file that is not what was accepted. Compared with the digests that this
    /// run started with, which it holds in memory.
    fn mutation(&mut self) -> Option<Mutation> {
        let accepted = self.cfg.digests.clone();
        for (file, digest) in
            [(layout::peers::GOALS, accepted.goals), (layout::peers::CONFIG, accepted.config)]
        {
            let what = match self.store.disk().read(Area::Peers, file, limits::CONFIG) {
                Ok(None) => "disappeared".to_owned(),
                Ok(Some(bytes)) if peers_sys::digest::sha256_hex(&bytes) == digest => continue,
                Ok(Some(_)) => "changed".to_owned(),
                Err(error) => format!("became unreadable ({})", error.detail),
            };
            return Some(Mutation { file: file.to_owned(), what });
        }
        None
    }

    /// An acceptance that arrived while the loop runs brings its rules along; goals that do not load
    /// are not taken over, and the survey then stops on the mutation. `false`: the files are still those of this
    /// run, and others were accepted.
    fn prepare_reload(&mut self, record: &mut OperatorRecord) -> bool {
        let OperatorOp::Accepted { new, rules, .. } = &mut record.op else { return true };
        let Some(reloader) = &mut self.reloader else { return true };
        match reloader.reload(&self.cfg) {
            Ok(cfg) if cfg.digests == *new => {
                *rules = Some(Box::new(cfg.rules.clone()));
                self.reload = Some(Box::new(cfg));
                true
            }
            Ok(cfg) => cfg.digests != self.cfg.digests,
            Err(_) => true,
        }
    }

    /// What a turn left of what its phase or its step asked for.
    fn harvest_course(&mut self, tick: TickNo, peer: &PeerName, found: &mut Harvest) -> Result<(), Failure> {
        let asked = self.machine.state.open.as_ref().and_then(|open| open.started.course.clone());
        let (Some(asked), Some(at)) = (asked, found.at.clone()) else { return Ok(()) };
        found.plan = composing::plan_at(self.world.repo(), &self.cfg.course, &at.head)?;
        let phase = self.cfg.course.phases.iter().find(|phase| Some(&phase.name) == asked.phase.as_ref());
        if let Some(artifact) = phase.and_then(|phase| phase.artifact.clone()) {
            let bytes = self.world.repo().file(&at.head, &artifact, ARTIFACT_CAP)?;
            found.artifact = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        }
        if let Some(work) = asked.work.filter(|_| !self.cfg.rules.dry_run) {
            let collected = notes::collect(self.store.disk(), (peer, tick), &work, &at.head);
            found.note = collected.note;
            self.taken.extend(collected.taken);
            found.warnings.extend(collected.warning);
        }
        Ok(())
    }

    fn compose(&mut self, peer: &PeerName) -> Result<ComposeFacts, Failure> {
        let nonce = self.world.clock().nonce();
        let authors = self.store.authors().clone();
        let known = Known { state: &self.machine.state, authors: &authors };
        let mut facts = composing::facts(self.world.repo(), self.store.disk(), known, peer, nonce)?;
        let Phase::Composing(composing) = &self.machine.phase else { return Ok(facts) };
        if composing.work.as_ref().is_some_and(|work| work.role == StepRole::Compare) {
            facts.notes = notes::sealed(self.store.disk(), &self.machine.state.course)?;
        }
        Ok(facts)
    }

    fn ledger(&mut self) -> Result<Ledger, Failure> {
        let authors = self.store.authors().clone();
        let known = Known { state: &self.machine.state, authors: &authors };
        Ok(composing::ledger(self.world.repo(), known)?)
    }

    /// Keeps what views show of HEAD. A loop does not stop because it could not: they look themselves then.
    fn keep_glance(
        &mut self,
        head: &CommitId,
        (ledger, plan): (&Ledger, Option<&Plan>),
        commits: &[CommitSeen],
    ) {
        let made = commits.iter().find(|commit| commit.id == *head);
        let subject = made.map(|commit| {
            let first = commit.message.lines().next().unwrap_or_default();
            peers_core::apply::bounded(first, 400)
        });
        let before = bugs::read(self.store.disk()).ok().flatten();
        let now = self.world.clock().now().wall;
        let counted = bugs::Counted::new(
            head.clone(),
            subject,
            now,
            (Counts::of(ledger), plan.map(Plan::progress)),
            before,
        );
        let _kept = bugs::write(self.store.disk(), &counted);
    }

    /// What gates or a left-over process put into drop boxes is nobody's message. Agents that work in terminals of
    /// their own may leave theirs at any time.
    fn clear_boxes(&mut self) {
        if self.cfg.rules.unwatched {
            return;
        }
        let roster = peers_core::apply::peer_names(&self.machine.state);
        for warning in messages::refuse(self.store.disk(), None, &roster) {
            self.tell(&Notice::Warning(warning));
        }
    }

    fn keep_prompt(&mut self, tick: TickNo, peer: &PeerName, prompt: &str) {
        let name = artifacts::tick_file(tick, peer.as_str(), ".txt");
        let path = format!("{}/{name}", layout::peers::LOG_PROMPTS);
        // For people; a loop does not stop because a copy could not be kept.
        let _kept = self.store.disk().publish(Area::Peers, &path, prompt.as_bytes(), false);
    }

    fn harvest(&mut self, tick: TickNo, peer: &PeerName, from: &CommitId) -> Result<Harvest, Failure> {
        let sweep = self.world.guard().sweep().map_err(|(kind, detail)| {
            self.displaced(Some((tick, from)), (kind, format!("in tick {tick} of {peer}: {detail}")))
        })?;
        let ran = self.machine.state.open.as_ref().is_some_and(|open| open.spawned.is_some());
        if ran && !self.world.repo().remembers(tick) {
            // What is there now is what the next start compares with, once a person has looked.
            self.world.repo().before_turn(tick, peer)?;
            let detail = format!(
                "git/turn.json in the trusted store, which says what tick {tick} of {peer} must not touch, is \
                 lost or damaged\nlook at .git/config and .git/hooks of the repository, then start again"
            );
            return Err(Failure::Tampered(TamperKind::Store, detail));
        }
        let mut tamper = sweep.tamper;
        if tamper.is_none() {
            tamper = self.world.guard().after();
        }
        let scopes = self.scopes();
        let found = self.world.repo().harvest(tick, from, &scopes);
        let mut found = found.map_err(|failure| Failure::or_tamper(failure, tamper.clone()))?;
        if tamper.is_none() && self.nobody_answers(&found.commits) {
            self.world.repo().undo_left(tick, from, &mut found)?;
        }
        let mut warnings = sweep.warnings;
        warnings.append(&mut found.warnings);
        let mut published = Vec::new();
        if tamper.is_none() && self.cfg.rules.dry_run {
            // What a dry run says reaches nobody, now or later.
            let roster = peers_core::apply::peer_names(&self.machine.state);
            self.taken = messages::dropped(self.store.disk(), peer, &roster);
        } else if tamper.is_none() {
            let numbers = self.machine.state.message_numbers.clone();
            let roster = peers_core::apply::peer_names(&self.machine.state);
            let at = self.world.clock().now().wall;
            let collected = messages::collect(self.store.disk(), peer, &roster, &numbers, at);
            published = collected.published;
            self.taken = collected.taken;
            warnings.extend(collected.warnings);
            warnings.extend(messages::refuse(self.store.disk(), Some(peer), &roster));
        }
        if tamper.is_none() {
            self.harvest_course(tick, peer, &mut found)?;
            warnings.append(&mut found.warnings);
        }
        if tamper.is_none()
            && let Some(what) = self.store.check_mirror()?
        {
            warnings.push(format!(
                "the mirror of the journal {what} after this turn and was restored: never write there"
            ));
            let at = self.world.clock().now().wall;
            let record = peers_store::Store::<W::Disk>::mirror_restored(Some(tick), &what);
            self.store.append(at, Some(&self.cfg.run_id), &[record])?;
            self.machine.state.clone_from(self.store.state());
        }
        let ledger = self.ledger().ok();
        if let (Some(ledger), Some(at)) = (&ledger, &found.at) {
            self.keep_glance(&at.head, (ledger, found.plan.as_ref()), &found.commits);
        }
        if let Some(ledger) = ledger {
            (found.open_bugs, found.bugs_closed, found.bugs_reported) =
                (open_ids(&ledger), closed(&ledger), reported(&ledger));
        }
        // What the operator had not committed is nobody's leaving, as long as it is what it was.
        let changed: BTreeSet<String> =
            found.uncommitted.made.files.iter().map(|file| term::inline(&file.path)).collect();
        let all = found.dirty.len() < DIRTY_SHOWN;
        compose::keep_operators(&mut self.cfg.uncommitted, (&found.dirty, all), &changed);
        found.dirty.retain(|line| !compose::is_operators(&self.cfg.uncommitted, line));
        (found.tamper, found.published, found.warnings) = (tamper, published, warnings);
        Ok(found)
    }

    /// Whether what this turn left uncommitted cannot be held against its peer: it was cut short, or it had
    /// ended and gates ran on it when the loop broke off.
    fn nobody_answers(&self, commits: &[CommitSeen]) -> bool {
        let Phase::Harvesting { exit, recovered } = &self.machine.phase else { return false };
        let gates_ran =
            *recovered && self.machine.state.open.as_ref().is_some_and(|open| open.ended.is_some());
        gates_ran || peers_core::harvest::is_cut_short(exit, commits)
    }

    fn attest(&mut self) {
        let tick = self.machine.state.ticks;
        let mut notes = Vec::new();
        for commit in self.store.authors().commits_of_tick(tick) {
            let by = match self.store.authors().of(commit) {
                Some(Author::Peer { name, .. }) => name.to_string(),
                Some(Author::Substrate) => OURS.to_owned(),
                Some(Author::Operator | Author::Foreign) | None => continue,
            };
            notes.push((commit.clone(), by));
        }
        if notes.is_empty() {
            return;
        }
        // Notes are a published copy; the journal decides.
        if let Err(failure) = self.world.repo().attest(&notes) {
            tracing::warn!(%failure, "attribution notes were not written");
        }
    }

    fn project(&mut self) {
        let at = self.store.position().clone();
        let state = self.machine.state.clone();
        // Caches and texts: losing one costs a rewrite at the next tick.
        let snapshot = self.store.write_snapshot();
        let projected = projection::write_state(self.store.disk(), &state, &at);
        for failed in [snapshot.err().map(|e| e.to_string()), projected.err().map(|e| e.to_string())]
            .into_iter()
            .flatten()
        {
            tracing::warn!(%failed, "a projection was not written");
        }
        let copies = contracts::read(self.store.disk()).and_then(|frozen| match frozen {
            Some(frozen) => contracts::restore_copies(self.store.disk(), &frozen),
            None => Ok(Vec::new()),
        });
        // Copies for readers: the check `contracts` judges by the store, and told of them before.
        match copies {
            Ok(restored) if restored.is_empty() => {}
            Ok(restored) => tracing::warn!(?restored, "copies of what is frozen were written again"),
            Err(failed) => tracing::warn!(%failed, "copies of what is frozen were not written"),
        }
        if state.ticks.0.is_multiple_of(16) {
            let budget = artifacts::enforce_budget(self.store.disk(), limits::LOG_BUDGET);
            if let Err(failed) = budget {
                tracing::warn!(%failed, "old logs were not removed");
            }
        }
        self.record.iteration = state.ticks.0;
        self.record.ticks_in_run = state.run.as_ref().map_or(0, |r| r.ticks);
    }

    /// Ends the run record and writes the texts.
    pub(crate) fn finish_run(&mut self, reason: &StopReason, detail: &str) {
        let at = self.world.clock().now().wall;
        self.record.ended_at = Some(at);
        self.record.reason = Some(reason.clone());
        detail.clone_into(&mut self.record.detail);
        self.record.exit_code = Some(reason.exit_code());
        self.record.signal = if let StopReason::Interrupted(signal) = reason { Some(*signal) } else { None };
        self.record.iteration = self.machine.state.ticks.0;
        self.record.ticks_in_run = self.machine.state.run.as_ref().map_or(0, |r| r.ticks);
        self.record.head.clone_from(&self.machine.state.head);
        self.record.proof = self.last_exit.as_ref().and_then(|e| e.proof.clone());
        if let Err(failed) = runs::write(self.store.disk(), &self.record) {
            tracing::error!(%failed, "the run record was not finished; the journal holds the reason");
        }
        let mut texts = vec![projection::write_stop_reason(self.store.disk(), reason, at)];
        if *reason == StopReason::AllPeersDegraded {
            let state = self.machine.state.clone();
            texts.push(projection::write_halted(self.store.disk(), &state));
        }
        for failed in texts.into_iter().filter_map(Result::err) {
            tracing::warn!(%failed, "a text for people was not written");
        }
    }
}

fn open_ids(ledger: &Ledger) -> Vec<BugId> {
    ledger.bugs.iter().filter(|(_, bug)| bug.open.is_some()).map(|(id, _)| id.clone()).collect()
}

/// Bugs whose closing is progress: they blocked, and another than who closed them had a part in it, by the
/// report or by the verification. Else a peer could report and close small things for ever.
fn closed(ledger: &Ledger) -> u32 {
    let counts = |bug: &&Bug| {
        let Some(closer) = bug.resolution.as_ref().map(|resolution| &resolution.by) else { return false };
        let mut others = bug.verified_by.iter().chain([&bug.found_by]).filter(|by| by.is_attested());
        let known = bug.open.is_none() && bug.severity.blocks() && closer.is_attested();
        known && others.any(|by| by != closer)
    };
    u32::try_from(ledger.bugs.values().filter(counts).count()).unwrap_or(u32::MAX)
}

/// Bugs that were ever reported and block.
fn reported(ledger: &Ledger) -> u32 {
    let blocking = ledger.bugs.values().filter(|bug| bug.severity.blocks());
    u32::try_from(blocking.count()).unwrap_or(u32::MAX)
}
