//! Gates: one batch at a time, in the work tree or in clean checkouts, and what is looked at around it.

use peers_core::machine::{Event, Notice};
use peers_model::record::{CommitsSeen, Record};
use peers_model::verdict::{Place, TreeKey};
use peers_model::{GoalId, TickNo};
use peers_sys::term;

use super::Failure;
use crate::engine::{Engine, Judging};
use crate::ports::{Clock, GateJob, Guard, Observer, Procs, Repo, World};

/// Paths that are named in a warning.
const NAMED: usize = 3;

/// The first of these paths, which are anybody's text, and how many more there are.
fn named(paths: &[String]) -> String {
    let shown: Vec<String> = paths.iter().take(NAMED).map(|path| term::line(path, 60)).collect();
    match paths.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

impl<W: World> Engine<W> {
    pub(super) fn judge(&mut self, gates: &[GoalId], key: &TreeKey, place: Place, tick: TickNo) {
        self.judging = Some(Judging {
            key: key.clone(),
            place,
            tick,
            left: gates.to_vec().into(),
            checkout: None,
            verdicts: Vec::new(),
            took_ms: 0,
            moved: false,
            changed: String::new(),
        });
        self.judge_next();
    }

    /// Starts what is to be judged next. Gates of a proof run one after the other, each in a checkout of
    /// its own: what they run was written by peers, and must find nothing to alter that another gate reads.
    fn judge_next(&mut self) {
        let Some(judging) = &mut self.judging else { return };
        let gates: Vec<GoalId> = match judging.place {
            Place::Pristine => judging.left.pop_front().into_iter().collect(),
            Place::Live | Place::GateTree => judging.left.drain(..).collect(),
        };
        if judging.place == Place::Pristine {
            match self.world.repo().checkout(&judging.key.head) {
                Ok(dir) => judging.checkout = Some(dir),
                Err(failure) => {
                    self.judging = None;
                    self.pending.push_back(Failure::from(failure).event());
                    return;
                }
            }
        }
        let job = GateJob {
            gates,
            key: judging.key.clone(),
            place: judging.place,
            dir: judging.checkout.clone(),
            tick: judging.tick,
        };
        if let Err(failure) = self.world.repo().before_gates(job.tick) {
            if let Some(dir) = self.judging.take().and_then(|judging| judging.checkout) {
                self.world.repo().remove_checkout(&dir);
            }
            self.pending.push_back(Failure::from(failure).event());
            return;
        }
        self.world.guard().before();
        self.world.procs().judge(job);
    }

    /// When gates have run: was it the same tree all the while? Nothing while more are to run.
    pub(crate) fn finish_judging(&mut self, event: Event) -> Option<Event> {
        let Event::Judged { verdicts, took_ms, moved, changed } = event else { return Some(event) };
        let Some(mut judging) = self.judging.take() else {
            return Some(Event::Judged { verdicts, took_ms, moved, changed });
        };
        if let Some(dir) = judging.checkout.take() {
            self.world.repo().remove_checkout(&dir);
        }
        if let Some((kind, detail)) = self.world.guard().after() {
            return Some(Event::Tampered { kind, detail: format!("while gates ran: {detail}") });
        }
        match self.world.repo().after_gates() {
            Ok(mended) => mended.into_iter().for_each(|text| self.tell(&Notice::Warning(text))),
            Err(failure) => return Some(Failure::from(failure).event()),
        }
        // A proof runs elsewhere, but what peers wrote can find its way from there.
        match self.world.repo().key() {
            Ok(now) => judging.moved |= moved || now != judging.key,
            Err(failure) => return Some(Failure::from(failure).event()),
        }
        if judging.moved && judging.changed.is_empty() {
            judging.changed = named(&self.world.repo().changed_by_gates());
        }
        match self.world.repo().undo_weakening() {
            Ok(undone) => undone.into_iter().for_each(|text| self.tell(&Notice::Warning(text))),
            Err(failure) => return Some(Failure::from(failure).event()),
        }
        judging.verdicts.extend(verdicts);
        judging.took_ms = judging.took_ms.saturating_add(took_ms);
        if judging.left.is_empty() {
            let Judging { verdicts, took_ms, moved, changed, .. } = judging;
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
            let seen = Record::CommitsSeen(CommitsSeen { head, commits: Vec::new(), while_gates: true });
            // Lost, it costs the operator's next commits their author.
            let _kept = self.store.append(at.wall, Some(&self.cfg.run_id), &[seen]);
            let _cached = self.store.write_snapshot();
        }
    }
}
