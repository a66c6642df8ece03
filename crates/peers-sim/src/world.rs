//! Processes, clock and guard of the simulated world. What runs outlives the loop that started it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use peers_core::machine::{Event, Notice, Now, RunPeer};
use peers_core::state::State;
use peers_model::outcome::{ApiClass, ExitClass, PeerExit, TamperKind, Usage};
use peers_model::record::PeerSpawned;
use peers_model::verdict::{Judged, Place, Verdict};
use peers_model::{CommitId, GoalId, Mono, PeerName, RunId, TickNo, Timestamp, Tokens, Usd};
use peers_run::ports::{Clock, GateJob, Guard, Observer, Procs, Sweep, World};
use peers_store::{Area, layout};

use crate::disk::SimDisk;
use crate::fault::{Kind, Orphan, Points, Verb, crash};
use crate::repo::{SimRepo, Tree};
use crate::scenario::{Act, Measure, PLAN, PLAN_DONE, Scenario, Turn, handoff};

/// A peer's process.
#[derive(Debug, Clone)]
pub struct Child {
    /// The loop that started it.
    pub run: Option<RunId>,
    /// Its tick.
    pub tick: TickNo,
    /// Who.
    pub peer: PeerName,
    /// What it will do.
    pub acts: VecDeque<Act>,
    /// The loop that started it is gone.
    pub orphan: bool,
}

/// What lives outside the loop.
#[derive(Debug)]
pub struct Outside {
    /// The one child, while it is alive.
    pub child: Option<Child>,
    /// Peers started, ever.
    pub started: usize,
    /// An ignored file is there.
    pub ignored: bool,
    /// Wall clock, milliseconds.
    pub wall: i64,
    /// Things that must never happen and did.
    pub violations: Vec<String>,
    /// Money that peers really used.
    pub used: Usd,
    /// What gates committed.
    pub gate_commits: Vec<CommitId>,
}

/// What happens next outside.
#[derive(Debug)]
pub enum Next {
    /// The loop hears of it.
    Event(Event),
    /// The child did something that the loop does not hear of.
    Acted,
    /// The child does nothing any more and lives.
    Hangs,
    /// Nothing can happen any more.
    Nothing,
}

/// The world. Clones share what is outside.
#[derive(Debug, Clone)]
pub struct SimWorld {
    repo: SimRepo,
    pub(crate) outside: Rc<RefCell<Outside>>,
    pub(crate) points: Points,
    procs: SimProcs,
    guard: SimGuard,
    clock: SimClock,
    observer: SimObserver,
}

/// Processes and timers of one loop.
#[derive(Debug, Clone)]
pub struct SimProcs {
    outside: Rc<RefCell<Outside>>,
    repo: SimRepo,
    disk: SimDisk,
    points: Points,
    scenario: Rc<Scenario>,
    queue: Rc<RefCell<VecDeque<Event>>>,
    timer: Rc<RefCell<Option<Timestamp>>>,
    run: Rc<RefCell<Option<RunId>>>,
}

/// Finds nothing wrong.
#[derive(Debug, Clone)]
pub struct SimGuard;

/// Virtual time.
#[derive(Debug, Clone)]
pub struct SimClock(Rc<RefCell<Outside>>);

/// Watches nothing.
#[derive(Debug, Clone)]
pub struct SimObserver;

impl SimWorld {
    /// The repository.
    #[must_use]
    pub fn repository(&self) -> &SimRepo {
        &self.repo
    }

    /// A new world.
    #[must_use]
    pub fn new(scenario: &Scenario, points: &Points, disk: &SimDisk) -> Self {
        let repo = SimRepo::new(points.clone(), scenario.tree());
        let outside = Rc::new(RefCell::new(Outside {
            child: None,
            started: 0,
            ignored: false,
            wall: 1_700_000_000_000,
            violations: Vec::new(),
            used: Usd::ZERO,
            gate_commits: Vec::new(),
        }));
        let procs = SimProcs {
            outside: outside.clone(),
            repo: repo.clone(),
            disk: disk.clone(),
            points: points.clone(),
            scenario: Rc::new(scenario.clone()),
            queue: Rc::default(),
            timer: Rc::default(),
            run: Rc::default(),
        };
        Self {
            repo,
            clock: SimClock(outside.clone()),
            outside,
            points: points.clone(),
            procs,
            guard: SimGuard,
            observer: SimObserver,
        }
    }

    /// A loop begins with this id, which marks the environment of what it starts.
    pub fn begin(&self, run: &RunId) {
        *self.procs.run.borrow_mut() = Some(run.clone());
    }

    /// The loop died: its queue and timers are gone, its child is an orphan.
    pub fn after_crash(&self, orphan: Orphan) {
        self.procs.queue.borrow_mut().clear();
        *self.procs.timer.borrow_mut() = None;
        let Some(mut child) = self.outside.borrow_mut().child.take() else { return };
        self.points.alive(orphan == Orphan::Lives);
        child.orphan = true;
        match orphan {
            Orphan::Dies => {}
            Orphan::Lives => self.outside.borrow_mut().child = Some(child),
            Orphan::Finishes => {
                while let Some(act) = child.acts.pop_front() {
                    if matches!(act, Act::Hang) || self.procs.act(&child, &act).is_some() {
                        break;
                    }
                }
            }
        }
    }

    /// The next thing that happens outside: a queued answer, an act of the child, a timer.
    #[must_use]
    pub fn next(&self) -> Next {
        self.outside.borrow_mut().wall += 1000;
        if let Some(event) = self.procs.queue.borrow_mut().pop_front() {
            return Next::Event(event);
        }
        let child = self.outside.borrow().child.clone();
        if let Some(mut child) = child.filter(|c| !c.orphan) {
            let Some(act) = child.acts.pop_front() else { return Next::Hangs };
            if act == Act::Hang {
                return Next::Hangs;
            }
            // The child's own acts are points too: the loop may die between any two of them.
            let verb = self.points.pass(Kind::Peer);
            let end = self.procs.act(&child, &act);
            self.points.alive(end.is_none());
            self.outside.borrow_mut().child = if end.is_some() { None } else { Some(child) };
            if !matches!(verb, Verb::Do | Verb::Fail { .. }) {
                crash();
            }
            return match end {
                Some(exit) => Next::Event(Event::PeerExited(Box::new(exit))),
                None => Next::Acted,
            };
        }
        let Some(at) = self.procs.timer.borrow_mut().take() else { return Next::Nothing };
        let mut outside = self.outside.borrow_mut();
        outside.wall = outside.wall.max(at.as_millis());
        Next::Event(Event::Timer)
    }

    /// What a gate says of a tree, in truth.
    #[must_use]
    pub fn measure(measure: Measure, tree: &Tree, ignored: bool) -> Verdict {
        let has = |path: &str, want: &str| tree.get(path).is_some_and(|c| c == want);
        let pass = match measure {
            Measure::Has(path, want) | Measure::HasAndCommits(path, want) => has(path, want),
            Measure::HasOrIgnored(path, want) => ignored || has(path, want),
            Measure::True => true,
            Measure::False => false,
            Measure::Unjudged => return Verdict::Error { diagnostic: "no tool".into() },
        };
        if pass { Verdict::Pass } else { Verdict::Fail { diagnostic: "red".into() } }
    }
}

impl SimProcs {
    /// What some gates do besides judging, once.
    fn commit_by_gate(&self, job: &GateJob) {
        let commits = |goal: &GoalId| {
            let gate = self.scenario.gates.iter().find(|(id, _)| *id == goal.as_str());
            gate.is_some_and(|(_, m)| matches!(m, Measure::HasAndCommits(..)))
        };
        let mut outside = self.outside.borrow_mut();
        if outside.gate_commits.is_empty() && job.gates.iter().any(commits) {
            let made = self.repo.with(|repo| {
                repo.work.insert("made.rs".into(), "by a gate".into());
                repo.commit("By a gate")
            });
            outside.gate_commits.push(made);
        }
    }

    /// Carries one act out. Returns the exit when it was the last.
    fn act(&self, child: &Child, act: &Act) -> Option<PeerExit> {
        match act {
            Act::Write(path, content) => {
                self.repo.with(|r| r.work.insert((*path).to_owned(), (*content).to_owned()));
            }
            Act::Renew(path) => {
                let n = self.outside.borrow().started;
                self.repo.with(|r| r.work.insert((*path).to_owned(), format!("turn {n}")));
            }
            Act::HandIn(part) => {
                let path = format!("{}/{}/notes/STEP-1/{part}.md", layout::peers::INBOX, child.peer);
                let text = format!("what {} says of it in the {part}", child.peer);
                self.disk.plant(Area::Peers, &path, text.as_bytes());
            }
            Act::Commit(message) => {
                let message = message.replace("{me}", child.peer.as_str());
                self.repo.with(|r| r.commit(&message));
            }
            Act::Ignored => self.outside.borrow_mut().ignored = true,
            Act::DropTip => self.repo.with(|r| {
                let tip = r.tip();
                if let Some(parent) = r.commits.get(&tip).and_then(|c| c.parent.clone()) {
                    r.branches.insert(r.head.clone(), parent);
                }
            }),
            Act::Switch(branch) => self.repo.with(|r| {
                let tip = r.tip();
                r.branches.entry((*branch).to_owned()).or_insert(tip);
                (*branch).clone_into(&mut r.head);
            }),
            Act::BreakGit => self.repo.with(|r| r.broken = true),
            Act::Hang => {}
            Act::Exit(class, api) => {
                let usd = Usd::from_micros(10_000);
                self.outside.borrow_mut().used += usd;
                let mut exit = PeerExit::interrupted(5000);
                exit.class = *class;
                exit.api = *api;
                exit.usage = Usage { tokens: Some(Tokens(100)), usd: Some(usd) };
                return Some(exit);
            }
        }
        let _ = child;
        None
    }

    /// A peer that behaves well: fixes what is red, reviews what it is asked to, answers as skeptic.
    fn good(&self, launch: &RunPeer) -> Turn {
        let fixed = self.repo.with(|r| r.work.get("src/fix.rs").is_some_and(|c| c == "yes"));
        let mut more = String::new();
        if launch.prompt.contains("reviewed") {
            more.push_str("## Review\n{\"pass\": true, \"checked\": [\"src/lib.rs:1\"]}\n\n");
        }
        if launch.skeptic {
            more.push_str("## Skeptic\n- a\n- b\n- c\n- d\n- e\n\n");
        }
        let mut message = handoff("work", &launch.peer, &more);
        if launch.skeptic {
            message.push_str("Skeptic: clean\n");
        }
        if launch.prompt.contains("reviewed") {
            message.push_str("Peer-Review-Of: reviewed\n");
        }
        let mut turn = Vec::new();
        let part = |part: &str| launch.prompt.contains(&format!("# Your part: {part}"));
        let reads = part("review") || part("compare");
        if !fixed && !launch.skeptic && !reads {
            turn.push(Act::Write("src/fix.rs", "yes"));
        }
        if part("implement") {
            turn.push(Act::HandIn("impl"));
        } else if part("review") {
            turn.push(Act::HandIn("review"));
        } else if part("compare") {
            turn.push(Act::Write(PLAN, PLAN_DONE));
        }
        turn.push(Act::Commit(message));
        turn.push(Act::Exit(ExitClass::Ok, ApiClass::None));
        turn
    }
}

impl Procs for SimProcs {
    fn run_peer(&mut self, launch: &RunPeer) {
        let verb = self.points.pass(Kind::Other);
        if let Verb::Fail { .. } = verb {
            let mut exit = PeerExit::interrupted(0);
            exit.class = ExitClass::SpawnFail;
            exit.usage = Usage { tokens: Some(Tokens(0)), usd: Some(Usd::ZERO) };
            self.queue.borrow_mut().push_back(Event::PeerExited(Box::new(exit)));
            return;
        }
        let mut outside = self.outside.borrow_mut();
        if let Some(other) = &outside.child {
            let what = format!("tick {} starts while tick {} is alive", launch.tick, other.tick);
            outside.violations.push(what);
        }
        let n = outside.started;
        outside.started += 1;
        drop(outside);
        let turn = self.scenario.turns.get(n).cloned().unwrap_or_else(|| self.good(launch));
        if let Some(Act::Exit(ExitClass::SpawnFail, _)) = turn.first() {
            let mut exit = PeerExit::interrupted(0);
            exit.class = ExitClass::SpawnFail;
            exit.usage = Usage { tokens: Some(Tokens(0)), usd: Some(Usd::ZERO) };
            self.queue.borrow_mut().push_back(Event::PeerExited(Box::new(exit)));
        } else {
            let run = self.run.borrow().clone();
            let child =
                Child { run, tick: launch.tick, peer: launch.peer.clone(), acts: turn.into(), orphan: false };
            self.outside.borrow_mut().child = Some(child);
            self.points.alive(true);
            let spawned = PeerSpawned { tick: launch.tick, pid: 200, start_time: 1, boot_id: "sim".into() };
            self.queue.borrow_mut().push_back(Event::PeerSpawned(spawned));
        }
        if verb != Verb::Do {
            crash();
        }
    }

    fn end_peer(&mut self, _now: bool) {
        if self.outside.borrow_mut().child.take().is_some() {
            self.points.alive(false);
            let mut exit = PeerExit::interrupted(1000);
            exit.class = ExitClass::Interrupted;
            self.queue.borrow_mut().push_back(Event::PeerExited(Box::new(exit)));
        }
    }

    fn judge(&mut self, job: GateJob) {
        let verb = self.points.pass(Kind::Other);
        if job.round.is_none_or(|round| round.done + job.gates.len() > round.of) {
            self.outside
                .borrow_mut()
                .violations
                .push(format!("{:?} is no part of {:?}", job.gates, job.round));
        }
        let ignored = self.outside.borrow().ignored && job.place == Place::Live;
        let tree = match job.place {
            Place::Live => self.repo.with(|r| r.work.clone()),
            Place::GateTree | Place::Pristine => self.repo.with(|r| r.tree(&job.key.head)),
        };
        if job.place == Place::Live && !matches!(verb, Verb::Fail { .. }) {
            self.commit_by_gate(&job);
        }
        let verdicts = job
            .gates
            .iter()
            .map(|goal| {
                let measure =
                    self.scenario.gates.iter().find(|(id, _)| *id == goal.as_str()).map(|(_, m)| *m);
                let verdict = match (verb, measure) {
                    (Verb::Fail { .. }, _) | (_, None) => Verdict::Error { diagnostic: "injected".into() },
                    (Verb::Do | Verb::Half | Verb::ThenCrash, Some(m)) => {
                        SimWorld::measure(m, &tree, ignored)
                    }
                };
                Judged {
                    attempts: 1,
                    duration_ms: 1,
                    ..Judged::new(goal.clone(), job.key.clone(), job.place, verdict)
                }
            })
            .collect();
        self.queue.borrow_mut().push_back(Event::Judged {
            verdicts,
            took_ms: 1,
            moved: false,
            changed: String::new(),
        });
        if matches!(verb, Verb::Half | Verb::ThenCrash) {
            crash();
        }
    }

    fn judge_behind(&mut self, job: GateJob) {
        let verb = self.points.pass(Kind::Other);
        let tree = self.repo.with(|r| r.tree(&job.key.head));
        let judged = |goal: &GoalId| {
            let measure = self.scenario.gates.iter().find(|(id, _)| *id == goal.as_str()).map(|(_, m)| *m);
            let verdict = match (verb, measure) {
                (Verb::Fail { .. }, _) | (_, None) => Verdict::Error { diagnostic: "injected".into() },
                (Verb::Do | Verb::Half | Verb::ThenCrash, Some(m)) => SimWorld::measure(m, &tree, false),
            };
            Judged::new(goal.clone(), job.key.clone(), Place::GateTree, verdict)
        };
        let verdicts = job.gates.iter().map(judged).collect();
        self.queue.borrow_mut().push_back(Event::JudgedBehind { key: job.key.clone(), verdicts, took_ms: 1 });
        if matches!(verb, Verb::Half | Verb::ThenCrash) {
            crash();
        }
    }

    fn cancel_gates(&mut self) {}

    fn reap(
        &mut self,
        run: Option<&RunId>,
        tick: Option<TickNo>,
        _spawned: Option<&PeerSpawned>,
    ) -> Vec<u32> {
        let verb = self.points.pass(Kind::Other);
        let mut outside = self.outside.borrow_mut();
        // Found by the marker in its environment.
        if outside.child.as_ref().is_some_and(|c| c.run.as_ref() == run) {
            let stray = outside.child.as_ref().is_some_and(|c| Some(c.tick) != tick);
            if stray {
                outside.violations.push("a peer lives whose tick is not open".into());
            }
            outside.child = None;
            self.points.alive(false);
        }
        drop(outside);
        if matches!(verb, Verb::Half | Verb::ThenCrash) {
            crash();
        }
        Vec::new()
    }

    fn set_timer(&mut self, at: Timestamp) {
        *self.timer.borrow_mut() = Some(at);
    }
}

impl Guard for SimGuard {
    fn sweep(&mut self) -> Result<Sweep, (TamperKind, String)> {
        Ok(Sweep::default())
    }
    fn before(&mut self) {}
    fn after(&mut self) -> Option<(TamperKind, String)> {
        None
    }
}

impl Clock for SimClock {
    fn now(&self) -> Now {
        let wall = self.0.borrow().wall;
        Now { wall: Timestamp::from_millis(wall), mono: Mono::from_millis(u64::try_from(wall).unwrap_or(0)) }
    }
    fn nonce(&mut self) -> String {
        "0123456789abcdef".into()
    }
}

impl Observer for SimObserver {
    fn notice(&mut self, _notice: &Notice, _state: &State, _at: Now) {}
}

impl World for SimWorld {
    type Disk = SimDisk;
    type Repo = SimRepo;
    type Procs = SimProcs;
    type Guard = SimGuard;
    type Clock = SimClock;
    type Observer = SimObserver;

    fn repo(&mut self) -> &mut SimRepo {
        &mut self.repo
    }
    fn procs(&mut self) -> &mut SimProcs {
        &mut self.procs
    }
    fn guard(&mut self) -> &mut SimGuard {
        &mut self.guard
    }
    fn clock(&mut self) -> &mut SimClock {
        &mut self.clock
    }
    fn observer(&mut self) -> &mut SimObserver {
        &mut self.observer
    }
}
