//! Gates: one batch at a time, in the work tree or in clean checkouts, and what is looked at around it.

use std::collections::BTreeMap;

use peers_core::apply::bounded;
use peers_core::machine::{Event, Notice};
use peers_model::goal::{self, Goal, HardGoal};
use peers_model::record::{CommitsSeen, Record};
use peers_model::verdict::{Judged, Place, TreeKey, Verdict};
use peers_model::{GoalId, TickNo, limits};
use peers_sys::term;

use super::failure::Failure;
use crate::engine::{Engine, Judging};
use crate::ports::{Clock, GateJob, Guard, Observer, Procs, Repo, Round, World};

/// Files by which package managers go.
const MANIFESTS: [&str; 28] = [
    "package.json",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "pnpm-workspace.yaml",
    "yarn.lock",
    "bun.lock",
    ".npmrc",
    ".yarnrc.yml",
    "requirements*.txt",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "uv.lock",
    "poetry.lock",
    "Pipfile",
    "Pipfile.lock",
    "Gemfile",
    "Gemfile.lock",
    "*.gemspec",
    "composer.json",
    "composer.lock",
    "go.mod",
    "go.sum",
    "Cargo.toml",
    "Cargo.lock",
    "rust-toolchain.toml",
    "rust-toolchain",
];

/// Paths that are named in a warning.
const NAMED: usize = 3;

/// The first of these paths, which are anybody's text, and how many more there are.
fn named(paths: &[String]) -> String {
    term::first_of(paths.len(), paths.iter().take(NAMED).map(|path| term::line(path, 60)))
}

/// Gates in the order of the file, but none before one that it needs.
#[must_use]
pub fn in_order_of_need(gates: &[GoalId], goals: &[Goal]) -> Vec<GoalId> {
    let needs = |id: &GoalId| goal::gate_of(goals, id).map(|gate| gate.needs.as_slice());
    let mut left: Vec<GoalId> = gates.to_vec();
    let mut ordered = Vec::new();
    while !left.is_empty() {
        let free = left.iter().position(|id| {
            needs(id).unwrap_or_default().iter().all(|need| need == id || !left.contains(need))
        });
        // The goals have no circle; if they had one, the order would not matter.
        ordered.push(left.remove(free.unwrap_or(0)));
    }
    ordered
}

/// Takes from `left`, which is in the order of need, what can be judged together in the work tree. Of gates in
/// a kept copy each runs alone: what one leaves there is taken away before the next.
pub fn next_together(left: &mut Vec<GoalId>, goals: &[Goal]) -> Vec<GoalId> {
    let mut later: Vec<GoalId> = Vec::new();
    let mut now = Vec::new();
    for id in left.drain(..) {
        let gate = goal::gate_of(goals, &id);
        let waits =
            gate.is_some_and(|gate| gate.in_copy() || gate.needs.iter().any(|need| later.contains(need)));
        if waits { later.push(id) } else { now.push(id) }
    }
    *left = later;
    if now.is_empty() && !left.is_empty() {
        now.push(left.remove(0));
    }
    now
}

/// Whether a gate gets another attempt in another clean checkout after this answer. `judged` is the newest
/// attempt with those before it, of which `previous` is the last; `answered` are other gates of this proof.
///
/// Where `setup` failed there is one more, whatever the gate asks for: a network may have been away for a
/// moment. After two failures in a row it was no moment, neither for this gate nor for those after it.
#[must_use]
pub fn one_more(goals: &[Goal], answered: &[Judged], previous: Option<&Judged>, judged: &Judged) -> bool {
    if judged.setup_failed {
        return !previous.into_iter().chain(answered).any(|other| other.setup_failed);
    }
    let retries = goal::gate_of(goals, &judged.goal).map_or(0, |gate| gate.retries);
    // One that did not run is red for a reason that is there the next time too.
    let ran = judged.exit_code.is_some() || judged.signal.is_some();
    matches!(judged.verdict, Verdict::Fail { .. }) && judged.attempts <= retries && ran
}

/// An answer with the attempts that went before it.
#[must_use]
pub fn after(tried: Option<Judged>, mut judged: Judged) -> Judged {
    if let Some(before) = tried {
        judged.attempts = judged.attempts.saturating_add(before.attempts);
        judged.duration_ms = judged.duration_ms.saturating_add(before.duration_ms);
        judged.leaked = judged.leaked.saturating_add(before.leaked);
    }
    judged
}

/// What a gate is told that changed what it judges.
#[must_use]
pub fn changed_the_tree(changed: &str, verdict: &Verdict) -> String {
    let what = if changed.is_empty() { "its files" } else { changed };
    let said = verdict.diagnostic();
    let said = if said.is_empty() { String::new() } else { format!("\n{said}") };
    bounded(&format!("the gate changed the work tree (`strict_tree`): {what}{said}"), limits::DIAGNOSTIC)
}

impl<W: World> Engine<W> {
    pub(super) fn judge(&mut self, gates: &[GoalId], key: &TreeKey, place: Place, tick: TickNo) {
        let left = in_order_of_need(gates, &self.cfg.goals);
        let round = Round { since: self.world.clock().now().mono, of: left.len(), done: 0 };
        let manifests = if place == Place::Pristine { self.manifests(key) } else { None };
        self.judging =
            Some(Judging { round: Some(round), manifests, ..Judging::begun(left, key, place, tick) });
        self.judge_next();
    }

    /// Digest of what decides about the dependencies of a commit; `None` where that cannot be told.
    fn manifests(&mut self, key: &TreeKey) -> Option<String> {
        let usual = MANIFESTS.iter().map(|name| format!("**/{name}"));
        let globs: Vec<String> = usual.chain(self.cfg.setup_paths.iter().cloned()).collect();
        self.world.repo().digest_of(key, &globs).ok().flatten()
    }

    /// Starts what is to be judged next. Gates of a proof run one after the other, each in a checkout of
    /// its own: what they run was written by peers, and must find nothing to alter that another gate reads.
    /// Gates of the kept copy run one after the other too. With `strict_tree` they all run one after the other in the work tree too, so that it is known whose doing
    /// a change is.
    fn judge_next(&mut self) {
        let Some(mut judging) = self.judging.take() else { return };
        let gates: Vec<GoalId> = match judging.place {
            Place::Live | Place::GateTree if !self.cfg.strict_tree => {
                let mut left: Vec<GoalId> = judging.left.drain(..).collect();
                let now = next_together(&mut left, &self.cfg.goals);
                judging.left = left.into();
                now
            }
            Place::Pristine | Place::Live | Place::GateTree => judging.left.pop_front().into_iter().collect(),
        };
        match self.job(&judging, gates) {
            Ok(job) => {
                judging.checkout.clone_from(&job.dir);
                self.judging = Some(judging);
                self.world.guard().before();
                self.world.procs().judge(job);
            }
            Err(failure) => self.pending.push_back(failure.event()),
        }
    }

    /// Starts gates beside the peer that has the next turn. Where they cannot run they are judged later.
    pub(super) fn judge_behind(&mut self, gates: &[GoalId], key: &TreeKey, tick: TickNo) {
        let cut = || Event::JudgedBehind { key: key.clone(), verdicts: Vec::new(), took_ms: 0 };
        let not_green = self.not_green(&Judging::begun(gates.to_vec(), key, Place::Live, tick), gates);
        // What cannot be had now is asked for again before it matters.
        match self.world.repo().gate_copy(key, true) {
            Ok(Some(copy)) => {
                let live = GateJob::live(gates.to_vec(), key.clone(), tick);
                self.world.procs().judge_behind(GateJob { copy: Some(copy), not_green, ..live });
            }
            Ok(None) => self.pending.push_back(cut()),
            Err(failure) => {
                self.tell(&Notice::Warning(format!("gates were not started beside the peer: {failure}")));
                self.pending.push_back(cut());
            }
        }
    }

    /// Everything that the next gates need.
    fn job(&mut self, judging: &Judging, gates: Vec<GoalId>) -> Result<GateJob, Failure> {
        let Judging { key, place, tick, .. } = judging;
        let gate = |id: &GoalId| goal::gate_of(&self.cfg.goals, id);
        let copied = *place == Place::Live && gates.iter().filter_map(gate).any(HardGoal::in_copy);
        let mut globs: Vec<(GoalId, Vec<String>)> = Vec::new();
        if *place != Place::Pristine {
            let scoped = gates.iter().filter_map(|id| Some((id.clone(), gate(id)?.paths.clone())));
            globs.extend(scoped.filter(|(_, paths)| !paths.is_empty()));
        }
        let not_green = self.not_green(judging, &gates);
        let repo = self.world.repo();
        let scopes = if globs.is_empty() { BTreeMap::new() } else { repo.scopes_of(key, &globs)? };
        let copy = if copied { repo.gate_copy(key, false)? } else { None };
        let setup = match (&copy, self.cfg.setup_paths.as_slice()) {
            (None, _) => None,
            (Some(_), []) => Some(String::new()),
            (Some(_), paths) => repo.digest_of(key, paths)?,
        };
        let dir = if *place == Place::Pristine { Some(repo.checkout(&key.head)?) } else { None };
        let unfit = dir.as_ref().map_or(Ok(None), |dir| repo.unfit(&key.head, dir));
        let unfit = unfit.and_then(|unfit| repo.before_gates(*tick).map(|()| unfit));
        let unfit = match unfit {
            Ok(unfit) => unfit,
            Err(failure) => {
                if let Some(dir) = &dir {
                    repo.remove_checkout(dir);
                }
                return Err(failure.into());
            }
        };
        let tried = judging.tried.as_ref().map_or(0, |tried| tried.attempts);
        let round = judging.round.map(|round| Round { done: judging.verdicts.len(), ..round });
        Ok(GateJob {
            dir,
            copy,
            tried,
            round,
            unfit,
            not_green,
            scopes,
            setup,
            place: *place,
            ..GateJob::live(gates, key.clone(), *tick)
        })
    }

    /// Gates besides `gates` that are known not to be green where these are judged.
    fn not_green(&self, judging: &Judging, gates: &[GoalId]) -> Vec<GoalId> {
        let state = &self.machine.state;
        let board = state.rules.gates.iter().filter(|rule| !gates.contains(&rule.id)).filter(|rule| {
            if let Some(now) = judging.verdicts.iter().rev().find(|judged| judged.goal == rule.id) {
                return !now.verdict.is_pass();
            }
            match judging.place {
                Place::Live | Place::GateTree => {
                    state.board.fresh(rule, &judging.key).is_some_and(|judged| !judged.verdict.is_pass())
                }
                // In a proof only its own answers count, and gates that are exempt from it were green.
                Place::Pristine => state.proofs.verdicts.get(&rule.id).is_some_and(|proof| {
                    proof.head == judging.key.head && proof.gate == rule.digest && !proof.verdict.is_pass()
                }),
            }
        });
        board.map(|rule| rule.id.clone()).collect()
    }

    /// When gates have run: was it the same tree all the while? Nothing while more are to run.
    pub(crate) fn finish_judging(&mut self, event: Event) -> Option<Event> {
        let Event::Judged { mut verdicts, took_ms, moved, changed } = event else { return Some(event) };
        let Some(mut judging) = self.judging.take() else {
            return Some(Event::Judged { verdicts, took_ms, moved, changed });
        };
        if let Some(dir) = judging.checkout.take() {
            self.world.repo().remove_checkout(&dir);
        }
        for judged in &mut verdicts {
            judged.manifests.clone_from(&judging.manifests);
        }
        if let Some((kind, detail)) = self.world.guard().after() {
            return Some(self.displaced(None, (kind, format!("while gates ran: {detail}"))).event());
        }
        match self.world.repo().after_gates() {
            Ok(mended) => mended.into_iter().for_each(|text| self.tell(&Notice::Warning(text))),
            Err(failure) => return Some(Failure::from(failure).event()),
        }
        // A proof runs elsewhere, but what peers wrote can find its way from there.
        let now = match self.world.repo().key() {
            Ok(now) => now,
            Err(failure) => return Some(Failure::from(failure).event()),
        };
        let moved = moved || now != judging.key;
        if moved && (judging.changed.is_empty() || self.cfg.strict_tree) {
            judging.changed = named(&self.world.repo().changed_by_gates());
        }
        if moved && self.cfg.strict_tree && judging.place != Place::Pristine {
            for judged in verdicts.iter_mut().filter(|judged| !judged.verdict.is_error()) {
                judged.verdict =
                    Verdict::Fail { diagnostic: changed_the_tree(&judging.changed, &judged.verdict) };
                judged.at = now.clone();
            }
            // What comes next is judged where it runs.
            judging.key = now;
        }
        judging.moved |= moved;
        if !moved
            && let Some(kept) = self.world.procs().stand(&verdicts)
            && let Err(error) = kept.write(self.store.disk())
        {
            tracing::warn!(%error, "green answers are not kept; their gates run again in the next run");
        }
        match self.world.repo().undo_weakening() {
            Ok(undone) => undone.into_iter().for_each(|text| self.tell(&Notice::Warning(text))),
            Err(failure) => return Some(Failure::from(failure).event()),
        }
        if judging.place == Place::Pristine
            && let [judged] = verdicts.as_slice()
        {
            let previous = judging.tried.take();
            let judged = after(previous.clone(), judged.clone());
            let again = one_more(&self.cfg.goals, &judging.verdicts, previous.as_ref(), &judged);
            if again && !judging.moved {
                judging.left.push_front(judged.goal.clone());
                judging.tried = Some(judged);
                verdicts.clear();
            } else {
                verdicts = vec![judged];
            }
        }
        judging.verdicts.extend(verdicts);
        judging.took_ms = judging.took_ms.saturating_add(took_ms);
        if judging.left.is_empty() {
            let Judging { verdicts, took_ms, moved, changed, tick, place, .. } = judging;
            self.hook_after_gates(tick, place, &verdicts, took_ms);
            return Some(Event::Judged { verdicts, took_ms, moved, changed });
        }
        self.judging = Some(judging);
        self.judge_next();
        None
    }

    /// Looks after gates that were cut off by the stop, once all that they started has ended: what they left
    /// in the git directory and in tests is put back. When all of it was, and HEAD is where it was, that is
    /// recorded, so that what is committed from here on is the operator's.
    pub fn wind_up(&mut self) {
        let Some(mut judging) = self.judging.take() else { return };
        if let Some(dir) = judging.checkout.take() {
            self.world.repo().remove_checkout(&dir);
        }
        let at = self.world.clock().now();
        // What cannot be looked at here is looked at by the next start, which takes nobody's word for it.
        let Ok(mended) = self.world.repo().after_gates() else { return };
        let (undone, whole) = match self.world.repo().undo_weakening() {
            Ok(undone) => (undone, true),
            Err(failure) => (vec![failure.to_string()], false),
        };
        for text in mended.into_iter().chain(undone) {
            self.world.observer().notice(&Notice::Warning(text), &self.machine.state, at);
        }
        if !whole {
            return;
        }
        let still = self.machine.state.head.clone();
        let Some(head) =
            self.world.repo().key().ok().map(|key| key.head).filter(|now| Some(now) == still.as_ref())
        else {
            return;
        };
        if self.last_exit.as_ref().is_some_and(|exit| exit.in_gates) {
            let seen = Record::CommitsSeen(CommitsSeen {
                head,
                commits: Vec::new(),
                while_gates: true,
                weakens: false,
            });
            // Lost, it costs the operator's next commits their author.
            let _kept = self.store.append(at.wall, Some(&self.cfg.run_id), &[seen]);
            let _cached = self.store.write_snapshot();
        }
    }
}
