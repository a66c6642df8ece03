//! Gates in the work tree, outside of a loop.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use peers_core::scope::Scope;
use peers_git::{ControlDir, PeerRepo, TreeState};
use peers_model::goal::{self, Goal, HardGoal};
use peers_model::verdict::{Judged, TreeKey, Verdict};
use peers_model::{CommitId, GoalId, TickNo};

use super::{Bench, Judgement, Show, git};
use crate::boot::BootError;
use crate::gitrepo::chain;
use crate::perform::{changed_the_tree, in_order_of_need};
use crate::place::Place;
use crate::ports::GateJob;
use crate::procs::Extra;

/// What gates are run on.
pub(super) struct Ground<'a> {
    pub(super) bench: &'a Bench,
    pub(super) place: &'a Place,
    pub(super) control: &'a mut ControlDir,
    pub(super) repo: &'a PeerRepo,
    pub(super) goals: &'a [Goal],
    pub(super) head: &'a CommitId,
    pub(super) state: &'a TreeState,
    /// Nobody else works here, so what is found may be kept.
    pub(super) alone: bool,
}

impl Ground<'_> {
    /// Runs gates, and then commands. Green answers that may be kept are kept if the tree stood still.
    pub(super) fn judge(
        &mut self,
        gates: Vec<GoalId>,
        extra: Vec<Extra>,
        show: Show,
    ) -> Result<Judgement, BootError> {
        let mut key = TreeKey { head: self.head.clone(), tree: self.state.key().map_err(git)? };
        let copied = gates.iter().filter_map(|id| goal::gate_of(self.goals, id)).any(HardGoal::in_copy);
        let copy = if copied && !self.state.dirty {
            let lent = self.control.lend(self.repo).map_err(git)?;
            Some(self.bench.checkout(self.control, self.head, &lent)?)
        } else {
            None
        };
        let scopes = self.scopes(&gates)?;
        let job = GateJob { copy, scopes, ..GateJob::live(gates, key.clone(), TickNo(0)) };
        let show = Rc::new(RefCell::new(show));
        let shown = |show: &Rc<RefCell<Show>>| -> Show {
            let show = Rc::clone(show);
            Box::new(move |progress| (show.borrow_mut())(progress))
        };
        if !self.bench.book.config().goals.strict_tree {
            let done = self.bench.judge(job, Vec::new(), shown(&show))?;
            if self.moved(&key)?.is_none() {
                self.keep(&done.gates);
            }
            return self.then(done, &key, extra, shown(&show));
        }
        let mut done = Judgement::default();
        for gate in in_order_of_need(&job.gates, self.goals) {
            let red = done.gates.iter().filter(|judged: &&Judged| !judged.verdict.is_pass());
            let not_green = red.map(|judged| judged.goal.clone()).collect();
            let one = GateJob { gates: vec![gate], key: key.clone(), not_green, ..job.clone() };
            let mut judged = self.bench.judge(one, Vec::new(), shown(&show))?;
            match self.moved(&key)? {
                None => self.keep(&judged.gates),
                Some((now, changed)) => {
                    // The next one answers for what it changes, not for this.
                    key = now;
                    for judged in judged.gates.iter_mut().filter(|judged| !judged.verdict.is_error()) {
                        let diagnostic = changed_the_tree(&changed, &judged.verdict);
                        judged.verdict = Verdict::Fail { diagnostic };
                    }
                }
            }
            done.gates.append(&mut judged.gates);
            done.signal = judged.signal;
            if done.signal.is_some() {
                break;
            }
        }
        // In the order of the file, whatever the order in which they ran.
        done.gates.sort_by_key(|judged| job.gates.iter().position(|id| *id == judged.goal));
        self.then(done, &key, extra, shown(&show))
    }

    /// The commands after the gates.
    fn then(
        &self,
        gates: Judgement,
        key: &TreeKey,
        extra: Vec<Extra>,
        show: Show,
    ) -> Result<Judgement, BootError> {
        if gates.signal.is_some() || extra.is_empty() {
            return Ok(gates);
        }
        let none = GateJob::live(Vec::new(), key.clone(), TickNo(0));
        let done = self.bench.judge(none, extra, show)?;
        Ok(Judgement { gates: gates.gates, ..done })
    }

    /// What kept answers of gates with `paths` are about; nothing with uncommitted changes.
    fn scopes(&self, gates: &[GoalId]) -> Result<BTreeMap<GoalId, String>, BootError> {
        let mut scopes = BTreeMap::new();
        for id in gates {
            let gate = goal::gate_of(self.goals, id);
            let Some(gate) = gate.filter(|gate| !gate.paths.is_empty() && !self.state.dirty) else {
                continue;
            };
            let scope = Scope::new(&gate.paths);
            let digest = self.control.facts().scope_hash(self.head, |path| scope.holds(path)).map_err(git)?;
            scopes.insert(id.clone(), digest);
        }
        Ok(scopes)
    }

    /// What the work tree is now, and uncommitted paths for people; nothing if it is what it was.
    fn moved(&self, key: &TreeKey) -> Result<Option<(TreeKey, String)>, BootError> {
        let work: &Path = self.place.work_dir();
        let state = self.control.tree_state(work, self.head).map_err(git)?;
        let now = TreeKey { head: self.head.clone(), tree: state.key().map_err(git)? };
        if now == *key {
            return Ok(None);
        }
        let dirty = self.control.dirty_files(work, self.head, 4).map_err(git)?;
        let named: Vec<String> =
            dirty.iter().take(3).map(|file| peers_sys::term::line(&file.path, 60)).collect();
        Ok(Some((now, named.join(", "))))
    }

    /// Writes down green answers that may outlive this process. That this cannot be done costs a run of them.
    fn keep(&self, judged: &[Judged]) {
        let Some(kept) = self.bench.stand(judged) else { return };
        if !self.alone {
            return;
        }
        // The file is the loop's: it is written by whoever holds the lock.
        let written = self.place.lock("verify").map_err(|error| chain(&error)).and_then(|_lock| {
            let mut disk = self.place.open_store_disk().map_err(|error| chain(&error))?;
            kept.write(&mut disk).map_err(|error| chain(&error))
        });
        if let Err(error) = written {
            tracing::debug!(error, "green answers are not kept");
        }
    }
}
