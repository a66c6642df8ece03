//! Gates in the work tree, outside of a loop.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use peers_core::apply::bounded;
use peers_core::scope::Scope;
use peers_git::{ControlDir, Head, PeerRepo, TreeState};
use peers_model::goal::{self, GateRun, Goal, HardGoal};
use peers_model::verdict::{Judged, TreeKey, Verdict};
use peers_model::{CommitId, GoalId, TickNo, limits};
use peers_place::Place;
use peers_run::boot::BootError;
use peers_run::perform::{changed_the_tree, in_order_of_need, next_together};
use peers_run::ports::{GateCopy, GateJob, Round};
use peers_run::procs::Extra;
use peers_sys::clock;
use peers_sys::error::chain;

use super::changed::{Before, Stamps, Written};
use super::{Bench, Judgement, Show};

/// What gates are run on.
pub(super) struct Ground<'a> {
    pub(super) bench: &'a Bench,
    pub(super) place: &'a Place,
    pub(super) control: &'a mut ControlDir,
    pub(super) repo: &'a PeerRepo,
    pub(super) goals: &'a [Goal],
    pub(super) head: &'a CommitId,
    /// The same, with its branch.
    pub(super) branch: &'a Head,
    pub(super) state: &'a TreeState,
    /// Nobody else works here, so what is found may be kept.
    pub(super) alone: bool,
}

/// How the work tree changed while gates ran.
struct Moved {
    now: TreeState,
    /// What was written, for people.
    named: String,
    /// HEAD names something else, or cannot be read: in words.
    head: Option<String>,
}

/// What came of all gates.
#[derive(Default)]
struct Came {
    done: Judgement,
    /// Files of the commit were not what they were after some of the gates: uncommitted paths, for people.
    changed: Option<String>,
    /// Files of the commit that were written and put back.
    rewritten: Vec<String>,
}

impl Ground<'_> {
    /// Runs gates, and then commands. Green answers that may be kept are kept if the tree stood still.
    ///
    /// Where gates change files of the commit no pass stands: one that reads what another one wrote was green
    /// at no tree that has a name. Where they put back what they wrote, that holds for gates that ran together.
    pub(super) fn judge(
        mut self,
        gates: &[GoalId],
        extra: Vec<Extra>,
        show: Show,
    ) -> Result<(Judgement, Vec<String>), BootError> {
        let show = Rc::new(RefCell::new(show));
        let shown = || -> Show {
            let show = Rc::clone(&show);
            Box::new(move |progress| (show.borrow_mut())(progress))
        };
        let Came { mut done, changed, rewritten } = self.round(gates, &shown)?;
        if let Some(named) = changed {
            let why = format!(
                "files of the commit changed while gates ran ({named}), so that no pass is about a tree that is \
                 there; `goals.strict_tree` tells which gate it is, `--pristine` gives each its own checkout"
            );
            doubt(&mut done.gates, &why, |_| true);
        }
        let key = self.key()?;
        Ok((self.then(done, &key, extra, shown())?, rewritten))
    }

    /// Each gate once, together where nothing is against it.
    fn round(&mut self, gates: &[GoalId], shown: &dyn Fn() -> Show) -> Result<Came, BootError> {
        let work_dir = self.place.work_dir();
        let strict = self.bench.book.config().goals.strict_tree;
        let mut key = self.key()?;
        let scopes = self.scopes(gates)?;
        let mut left = in_order_of_need(gates, self.goals);
        let before = Before::with_content(self.control, work_dir, self.head);
        let mut stamps = Stamps::look(self.control, work_dir, self.head);
        let mut around = Before::look(self.control, work_dir, self.head);
        let mut came = Came::default();
        let done = &mut came.done;
        let since = clock::mono();
        while !left.is_empty() && done.signal.is_none() {
            let now = if strict { vec![left.remove(0)] } else { self.together(&mut left) };
            let copied = now.iter().filter_map(|id| goal::gate_of(self.goals, id)).any(HardGoal::in_copy);
            let copy = if copied && !self.state.dirty {
                let objects = self.control.lend(self.repo)?;
                Some(GateCopy::made(self.bench.checkout(self.control, self.head, &objects)?))
            } else {
                None
            };
            let red = done.gates.iter().filter(|judged: &&Judged| !judged.verdict.is_pass());
            let not_green = red.map(|judged| judged.goal.clone()).collect();
            let live = GateJob::live(now, key.clone(), TickNo(0));
            let round = Some(Round { since, of: gates.len(), done: done.gates.len() });
            let job = GateJob { copy, not_green, round, scopes: scopes.clone(), ..live };
            let mut judged = self.bench.judge(job, Vec::new(), shown())?;
            done.signal = judged.signal;
            let written = stamps.written(work_dir);
            let moved = self.moved(&key, written.as_ref(), &around)?;
            if moved.is_some() {
                around = Before::look(self.control, work_dir, self.head);
            }
            self.keep(&judged.gates, moved.is_none() && written.is_none());
            match moved {
                Some(Moved { head: Some(head), .. }) => {
                    doubt(&mut judged.gates, &head, |_| true);
                    let not_run = format!("it was not run: {head}");
                    let cut = left.drain(..).map(|id| unjudged(id, &key, &not_run));
                    judged.gates.extend(cut);
                }
                Some(Moved { now, named, .. }) if strict => {
                    // The next one answers for what it changes, not for this.
                    key.tree = now.key()?;
                    for judged in judged.gates.iter_mut().filter(|judged| !judged.verdict.is_error()) {
                        judged.verdict =
                            Verdict::Fail { diagnostic: changed_the_tree(&named, &judged.verdict) };
                    }
                }
                Some(Moved { named, .. }) if before.files_changed(self.control, work_dir, self.head) => {
                    came.changed = Some(named);
                }
                Some(_) | None => {
                    if let Some(Written { paths }) = written {
                        self.doubt_together(&mut judged.gates, &paths);
                        came.rewritten.extend(paths);
                    }
                }
            }
            done.gates.append(&mut judged.gates);
        }
        // In the order of the file, whatever the order in which they ran.
        done.gates.sort_by_key(|judged| gates.iter().position(|id| *id == judged.goal));
        came.rewritten.sort_unstable();
        came.rewritten.dedup();
        Ok(came)
    }

    /// As [`next_together`], but what the operator wants to have run alone is judged alone, too.
    fn together(&self, left: &mut Vec<GoalId>) -> Vec<GoalId> {
        let (mut now, mut later) = (Vec::new(), Vec::new());
        for id in next_together(left, self.goals) {
            let gate = goal::gate_of(self.goals, &id);
            let waits = gate.is_some_and(|gate| {
                gate.serial || gate.needs.iter().any(|need| later.contains(need) || now.contains(need))
            });
            if waits { later.push(id) } else { now.push(id) }
        }
        if now.is_empty() && !later.is_empty() {
            now.push(later.remove(0));
        }
        left.splice(..0, later);
        now
    }

    /// Files of the commit were written and put back: of commands that ran together none knows what it read.
    fn doubt_together(&self, gates: &mut [Judged], written: &[String]) {
        let command = |judged: &Judged| {
            let gate = goal::gate_of(self.goals, &judged.goal);
            // A check reads commits. What is kept, or needs what is red, did not run.
            judged.attempts > 0 && gate.is_some_and(|gate| !matches!(gate.run, GateRun::Check { .. }))
        };
        if gates.iter().filter(|judged| command(judged)).count() < 2 {
            return;
        }
        let named: Vec<String> = written.iter().take(3).map(|path| peers_sys::term::line(path, 60)).collect();
        let named = if named.is_empty() { "which is not known".to_owned() } else { named.join(", ") };
        let why = format!(
            "files of the commit were written while these gates ran ({named}), and are what they were: nobody \
             knows what another one read meanwhile; `serial: true` lets the gate that writes them run alone, \
             `--pristine` gives each its own checkout"
        );
        doubt(gates, &why, command);
    }

    fn key(&self) -> Result<TreeKey, BootError> {
        Ok(TreeKey { head: self.head.clone(), tree: self.state.key()? })
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
            let held = self.control.facts().scope(self.head, |path| scope.holds(path))?;
            if held.closed {
                scopes.insert(id.clone(), held.hash);
            }
        }
        Ok(scopes)
    }

    /// How the work tree differs from what it was `around` the gates; nothing if it does not.
    fn moved(
        &self,
        key: &TreeKey,
        written: Option<&Written>,
        around: &Before,
    ) -> Result<Option<Moved>, BootError> {
        let work: &Path = self.place.work_dir();
        let now = self.control.tree_state(work, self.head)?;
        let head = self.head_moved();
        if head.is_none() && now.key()? == key.tree {
            return Ok(None);
        }
        let mut paths = written.map(|written| written.paths.clone()).unwrap_or_default();
        let added = around.changed(self.control, work, self.head).unwrap_or_default();
        paths.extend(added.into_iter().filter(|path| !paths.contains(path)).collect::<Vec<_>>());
        let named: Vec<String> = paths.iter().take(3).map(|path| peers_sys::term::line(path, 60)).collect();
        let named =
            if named.is_empty() { "files that were changed before".to_owned() } else { named.join(", ") };
        Ok(Some(Moved { now, named, head }))
    }

    /// What HEAD is instead of what it was.
    fn head_moved(&self) -> Option<String> {
        let while_gates = "while gates ran, so their verdicts are unreliable";
        let head = PeerRepo::open(self.place.work_dir())
            .map_err(peers_git::GitError::from)
            .and_then(|repo| repo.facts().head());
        let branch = |head: &Head| match &head.branch {
            Some(name) => peers_sys::term::line(name.trim_start_matches("refs/heads/"), 60),
            None => "no branch".to_owned(),
        };
        match head {
            Err(error) => {
                Some(format!("the repository cannot be read any more ({}) {while_gates}", chain(&error)))
            }
            Ok(now) if now == *self.branch => None,
            Ok(now) if now.commit == *self.head => Some(format!(
                "another branch was checked out ({}, before {}) {while_gates}",
                branch(&now),
                branch(self.branch)
            )),
            Ok(now) => Some(format!(
                "HEAD moved from {} to {} (on {}, before {}) {while_gates}",
                self.head.short(),
                now.commit.short(),
                branch(&now),
                branch(self.branch)
            )),
        }
    }

    /// Writes down green answers that may outlive this process, and drops those that others refute.
    fn keep(&self, judged: &[Judged], they_stand: bool) {
        let Some(kept) = self.bench.kept(judged, they_stand) else { return };
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

/// No pass of these stands.
fn doubt(gates: &mut [Judged], why: &str, of: impl Fn(&Judged) -> bool) {
    for judged in gates.iter_mut().filter(|judged| judged.verdict.is_pass() && of(judged)) {
        judged.verdict = Verdict::Error { diagnostic: bounded(why, limits::DIAGNOSTIC) };
    }
}

fn unjudged(id: GoalId, key: &TreeKey, why: &str) -> Judged {
    let diagnostic = bounded(why, limits::DIAGNOSTIC);
    Judged::new(id, key.clone(), peers_model::verdict::Place::Live, Verdict::Error { diagnostic })
}
