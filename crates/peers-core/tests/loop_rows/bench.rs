//! Drives the machine: performs effects at once, feeds their answers one by one, checks each step.

use std::collections::{BTreeMap, VecDeque};

use peers_core::budget::Caps;
use peers_core::machine::{
    self, ComposeFacts, Effect, Event, Input, Left, LoopConfig, Machine, Now, Phase, RunPeer, StopRequest,
};
use peers_core::prompt::{InboxItem, LastHandoff, PeerMessage};
use peers_core::state::{PeerHealth, State};
use peers_model::config::{Budget, Comm, Role};
use peers_model::goal::{Course, GateRun, Goal, GoalKind, HardGoal, SoftGoal, TreeChoice};
use peers_model::outcome::{ErrorKind, ExitClass, StopReason};
use peers_model::record::{
    Digests, ExitRecord, GateRule, LINE_VERSION, Line, PeerRule, PeerSpawned, Record, Rules, SoftRuleEntry,
    TickRecord, TickStarted,
};
use peers_model::review::SoftRule;
use peers_model::step::{SealedNote, StepWork};
use peers_model::verdict::{Judged, Place, TreeKey};
use peers_model::{CommitId, GoalId, Mono, PeerName, RunId, Timestamp};

use crate::world::{Commit, Gate, Habit, Turn, World, exit, goal, peer};

const FUEL: u32 = 5000;

/// A machine and its world.
#[derive(Debug, Clone)]
pub(crate) struct Bench {
    pub(crate) cfg: LoopConfig,
    pub(crate) m: Machine,
    pub(crate) world: World,
    pub(crate) gates: BTreeMap<GoalId, Gate>,
    pub(crate) script: VecDeque<Turn>,
    pub(crate) habit: Habit,
    /// Wall clock.
    pub(crate) now: Timestamp,
    /// What a gate run takes.
    pub(crate) gate_ms: u64,
    /// What a crash left behind.
    pub(crate) left: Left,
    /// The journal.
    pub(crate) log: Vec<Record>,
    /// Everything that was to be performed.
    pub(crate) effects: Vec<Effect>,
    /// How long was waited, milliseconds, each time.
    pub(crate) waits: Vec<u64>,
    /// What is left when the journal is read back and folded.
    pub(crate) folded: State,
    queue: VecDeque<Event>,
    timer: Option<Timestamp>,
    /// The peer that runs.
    running: Option<(PeerName, Turn)>,
    /// History as it was when the open tick began.
    before: Vec<Commit>,
    runs: u64,
    /// Gates beside a peer answer when they are released, not at once.
    pub(crate) hold_behind: bool,
    pub(crate) behind: Option<Event>,
}

/// The notes that a turn about a step hands in.
fn sealed(work: &StepWork, head: CommitId) -> Option<SealedNote> {
    Some(SealedNote {
        step: work.step,
        part: work.role.part()?,
        base: work.base.clone(),
        head: work.head.clone().unwrap_or(head),
        words: 20,
        sha256: String::new(),
        file: String::new(),
    })
}

impl Bench {
    /// Peers by name; a name in capitals is a spare. One real gate `tests-pass`, never green.
    pub(crate) fn new(peers: &str) -> Self {
        let mut bench = Self::bare(peers);
        bench.gate("tests-pass", Gate::Red);
        bench
    }

    /// As [`Bench::new`] without a gate.
    pub(crate) fn bare(peers: &str) -> Self {
        let rule = |name: &str| {
            let spare = name.chars().all(char::is_uppercase);
            let role = if spare { Role::Recovery } else { Role::Default };
            PeerRule { name: peer(&name.to_lowercase()), tool: "scripted".into(), role }
        };
        let rules = Rules {
            peers: peers.split(' ').map(rule).collect(),
            max_retries: 1,
            recovery_interval: 8,
            gates: Vec::new(),
            soft: Vec::new(),
            continue_without_peer: false,
            skeptic_rounds: 1,
            skeptic_attempts: 3,
            unwatched: false,
            dry_run: false,
            course: None,
        };
        let unlimited = Budget {
            max_iterations: None,
            max_runtime_s: None,
            max_consecutive_failures: None,
            ..Budget::default()
        };
        let cfg = LoopConfig {
            run_id: RunId::new("0".repeat(16)).unwrap(),
            pid: 1,
            version: "test".into(),
            goals: Vec::new(),
            rules,
            digests: Digests { goals: "goals".into(), config: "config".into() },
            course: Course::default(),
            checkpoint: false,
            caps: Caps::new(unlimited),
            after: None,
            max_ticks: Some(40),
            stuck_after: 0,
            stuck_gates: Vec::new(),
            idle_after: 0,
            trial_s: 0,
            anyway: false,
            setup_hint: Some("npm ci".into()),
            soft_required: true,
            overlap: false,
            strict_tree: false,
            setup_paths: Vec::new(),
            allow_no_gates: false,
            comm: Comm::Git,
            prompt_max: 65_536,
            max_wait_s: 21_600,
            idle_s: 900,
            absolute_s: 7200,
            sandbox: "none".into(),
            torn: None,
            uncommitted: Vec::new(),
        };
        Self {
            cfg,
            m: Machine::new(State::new()),
            world: World::new(),
            gates: BTreeMap::new(),
            script: VecDeque::new(),
            habit: Habit::Empty,
            now: Timestamp::from_millis(1_700_000_000_000),
            gate_ms: 0,
            left: Left::default(),
            log: Vec::new(),
            effects: Vec::new(),
            waits: Vec::new(),
            folded: State::new(),
            queue: VecDeque::new(),
            timer: None,
            running: None,
            before: Vec::new(),
            runs: 0,
            hold_behind: false,
            behind: None,
        }
    }

    /// A loop that completes: one gate that is green at `good`, one review, one skeptic.
    pub(crate) fn converging() -> Self {
        let mut bench = Self::bare("ann bob");
        bench.gate("tests-pass", Gate::At("good"));
        bench.soft("docs-read", SoftRule::Other { needed: 1 });
        bench.habit = Habit::Good("good");
        bench.cfg.max_ticks = Some(12);
        bench
    }

    /// As [`Bench::converging`], green from the start and without a review.
    pub(crate) fn green() -> Self {
        let mut bench = Self::bare("ann bob");
        bench.gate("tests-pass", Gate::Green);
        bench.habit = Habit::Good("start");
        bench.cfg.max_ticks = Some(12);
        bench
    }

    /// The same with another cap of ticks.
    pub(crate) fn up_to(mut self, ticks: u64) -> Self {
        self.cfg.max_ticks = Some(ticks);
        self
    }

    pub(crate) fn gate(&mut self, id: &str, says: Gate) {
        let known = self.gates.insert(goal(id), says);
        if known.is_none() {
            self.cfg.rules.gates.push(GateRule {
                id: goal(id),
                tree: TreeChoice::Auto,
                reads_history: false,
                shipped: false,
                digest: format!("{id} as first defined"),
                expensive: false,
                group: None,
                weight: 1,
            });
        }
    }

    pub(crate) fn rule(&mut self, id: &str) -> &mut GateRule {
        self.cfg.rules.gates.iter_mut().find(|g| g.id == goal(id)).unwrap()
    }

    pub(crate) fn soft(&mut self, id: &str, rule: SoftRule) {
        self.cfg.rules.soft.push(SoftRuleEntry {
            id: goal(id),
            rule,
            every: 1,
            check: None,
            needs: Vec::new(),
        });
    }

    /// What the check of a review says, which decides nothing.
    pub(crate) fn advised(&mut self, id: &str, says: Gate) {
        let soft = self.cfg.rules.soft.iter_mut().find(|s| s.id == goal(id)).unwrap();
        soft.check = Some("a check".into());
        self.gates.insert(goal(id), says);
    }

    pub(crate) fn budget(&mut self, change: impl FnOnce(&mut Budget)) {
        let mut budget = self.cfg.caps.budget.clone();
        change(&mut budget);
        self.cfg.caps = Caps::new(budget);
    }

    pub(crate) fn play(&mut self, turns: impl IntoIterator<Item = Turn>) {
        self.script.extend(turns);
    }

    /// Plays these turns up to the cap of ticks.
    #[track_caller]
    pub(crate) fn plays(&mut self, turns: impl IntoIterator<Item = Turn>) {
        self.play(turns);
        assert_eq!(self.run(), StopReason::MaxTicks);
    }

    // --- driving ---

    /// Runs a new process until it stops.
    pub(crate) fn run(&mut self) -> StopReason {
        self.begin();
        self.finish()
    }

    /// Starts a new process over what is durable.
    pub(crate) fn begin(&mut self) {
        self.runs += 1;
        self.cfg.run_id = RunId::new(format!("{:016x}", self.runs)).unwrap();
        self.cfg.goals = goals(&self.cfg.rules);
        self.queue.clear();
        self.timer = None;
        self.m = Machine::new(self.folded.clone());
        let (phase, effects) = machine::start(&self.m.state);
        self.m.phase = phase;
        self.perform_all(effects);
    }

    /// The process dies. What its peer was doing dies with it, unless `quick`.
    pub(crate) fn crash(&mut self) {
        self.end_peer();
        if let Some((me, turn)) = self.running.take() {
            self.world.play(&me, turn);
        }
    }

    /// Goes on until the loop stops.
    pub(crate) fn finish(&mut self) -> StopReason {
        self.until(|b| b.stopped().is_some());
        self.stopped().unwrap()
    }

    pub(crate) fn until(&mut self, done: impl Fn(&Self) -> bool) {
        for _ in 0..FUEL {
            if done(self) {
                return;
            }
            self.advance();
        }
        panic!("it does not come to rest: {:?} after tick {}", self.m.phase, self.m.state.ticks);
    }

    pub(crate) fn until_phase(&mut self, is: impl Fn(&Phase) -> bool) {
        self.until(|b| is(&b.m.phase));
    }

    /// Feeds the next answer; when there is none, waits for the timer.
    pub(crate) fn advance(&mut self) {
        let Some(event) = self.queue.pop_front() else {
            let until =
                self.timer.take().unwrap_or_else(|| panic!("nothing can happen in {:?}", self.m.phase));
            self.waits.push(u64::try_from(until.since(self.now).as_millis()).unwrap());
            self.now = self.now.max(until);
            self.feed(Event::Timer);
            return;
        };
        if matches!(event, Event::PeerExited(_))
            && let Some((me, turn)) = self.running.take()
        {
            self.world.play(&me, turn);
        }
        self.feed(event);
    }

    pub(crate) fn has_answers(&self) -> bool {
        !self.queue.is_empty() || self.timer.is_some()
    }

    pub(crate) fn stop(&mut self, request: StopRequest) {
        self.feed(Event::Stop(request));
    }

    /// One input: decided, recorded, folded, performed, and checked.
    pub(crate) fn feed(&mut self, event: Event) {
        let mono = Mono::from_millis(u64::try_from(self.now.as_millis()).unwrap());
        let input = Input { at: Now { wall: self.now, mono }, event };
        let decision = machine::decide(&self.cfg, &self.m, &input);
        assert_eq!(decision, machine::decide(&self.cfg, &self.m, &input), "decide is no function");
        let ours = matches!(decision.phase, Phase::Stopped(StopReason::Error(ErrorKind::Internal)));
        let told = matches!(input.event, Event::Failed { .. }) || self.stopped().is_some();
        assert!(!ours || told, "decide would have written an impossible record");
        let mut again = self.m.clone();
        again.commit(self.now, &self.cfg.run_id, &decision).expect("decide and apply agree");
        self.m.commit(self.now, &self.cfg.run_id, &decision).expect("decide and apply agree");
        assert_eq!(self.m, again, "apply is no function");
        for record in &decision.records {
            self.fold(record);
            self.log.push(record.clone());
        }
        assert_eq!(self.folded, self.m.state, "the journal does not fold to the live state");
        let text = serde_json::to_string(&self.m.state).unwrap();
        let back: State = serde_json::from_str(&text).unwrap();
        assert_eq!(back, self.m.state, "the state does not survive its serialised form");
        self.perform_all(decision.effects);
    }

    /// Folds a record as a reader of the journal file would.
    fn fold(&mut self, record: &Record) {
        let line = Line {
            v: LINE_VERSION,
            seq: u64::try_from(self.log.len()).unwrap() + 1,
            ts: self.now,
            run_id: Some(self.cfg.run_id.clone()),
            prev: String::new(),
            record: record.clone(),
        };
        let line = Line::read(&serde_json::to_vec(&line).unwrap()).unwrap();
        self.folded.apply(line.ts, line.run_id.as_ref(), &line.record).expect("the journal folds");
    }

    fn perform_all(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.perform(&effect);
            self.effects.push(effect);
        }
    }

    fn perform(&mut self, effect: &Effect) {
        let answer = match effect {
            Effect::Survey => Event::Surveyed(Box::new(self.world.facts(&self.m.state))),
            Effect::ReapOrphans { .. } => Event::OrphansGone(self.left.clone()),
            Effect::Judge { gates, key, place, .. } => self.judge(gates, key, *place),
            Effect::JudgeBehind { gates, key, .. } => {
                let verdicts = gates.iter().map(|id| self.one_judged(id, key, Place::GateTree)).collect();
                let event = Event::JudgedBehind { key: key.clone(), verdicts, took_ms: 1 };
                if self.hold_behind {
                    self.behind = Some(event);
                } else {
                    self.queue.push_back(event);
                }
                return;
            }
            Effect::CancelGates => {
                for event in &mut self.queue {
                    if let Event::Judged { verdicts, .. } = event {
                        verdicts.clear();
                    }
                }
                return;
            }
            Effect::Compose { peer } => self.compose(peer),
            Effect::RunPeer(launch) => return self.run_peer(launch),
            Effect::EndPeer { .. } => return self.end_peer(),
            Effect::Harvest { from, .. } => {
                let open = self.m.state.open.clone().unwrap();
                let mut harvest = self.world.harvest(from, &open.started.tree_before, &self.m.state.rules);
                let work = open.started.course.as_ref().and_then(|course| course.work.clone());
                let head = harvest.at.as_ref().map(|at| at.head.clone());
                harvest.note = work.zip(head).and_then(|(work, head)| sealed(&work, head));
                Event::Harvested(Box::new(harvest))
            }
            Effect::Correct { plan, .. } => {
                Event::Corrected(Box::new(self.world.correct(plan, &self.before)))
            }
            Effect::SetTimer(at) => {
                self.timer = Some(*at);
                return;
            }
            Effect::DropCommands(ids) => return self.world.commands.retain(|c| !ids.contains(&c.id)),
            Effect::Attest
            | Effect::ArchiveMessages(_)
            | Effect::WriteProjections
            | Effect::FinishRun
            | Effect::Tell(_) => return,
        };
        self.queue.push_back(answer);
    }

    fn one_judged(&self, id: &GoalId, key: &TreeKey, place: Place) -> Judged {
        let gate = self.gates.get(id).copied().unwrap_or(Gate::Cannot);
        let verdict = gate.judge(key, place);
        let setup_failed = match gate {
            Gate::ProofNotSetUp => verdict.is_red(),
            Gate::NotSetUp => place == Place::Pristine,
            _ => false,
        };
        let not_found = matches!(gate, Gate::ProofNotFound | Gate::NotFound) && verdict.is_red();
        let duration_ms = self.gate_ms;
        Judged {
            attempts: 1,
            duration_ms,
            setup_failed,
            exit_code: not_found.then_some(127),
            manifests: (place == Place::Pristine).then(|| self.world.manifests.to_owned()),
            ..Judged::new(id.clone(), key.clone(), place, verdict)
        }
    }

    /// What runs beside the peer answers now.
    pub(crate) fn release_behind(&mut self) {
        let event = self.behind.take().expect("gates run beside the peer");
        self.feed(event);
    }

    fn judge(&mut self, gates: &[GoalId], key: &TreeKey, place: Place) -> Event {
        let verdicts = gates.iter().map(|id| self.one_judged(id, key, place)).collect();
        let restless = match place {
            Place::Pristine => &mut self.world.restless_proofs,
            Place::Live | Place::GateTree => &mut self.world.restless,
        };
        let mut moved = *restless > 0;
        *restless = restless.saturating_sub(1);
        if let Some(label) = self.world.gate_commits.pop() {
            self.world.operator_commits(label);
            moved = true;
        }
        Event::Judged { verdicts, took_ms: self.gate_ms, moved, changed: String::new() }
    }

    fn compose(&self, peer: &PeerName) -> Event {
        let marks = self.m.state.bookmarks.get(peer).cloned().unwrap_or_default();
        let inbox = self.world.inbox(&marks);
        let to_me = format!("-to-{peer}/");
        let messages = self.m.state.messages.iter().filter(|m| m.contains(&to_me)).map(|path| {
            let from = PeerName::new(path.split("-to-").next().unwrap()).unwrap();
            (path.clone(), PeerMessage { from, name: path.clone(), text: format!("text of {path}") })
        });
        let last_handoff = inbox.iter().next_back().map(|(from, sha)| LastHandoff {
            peer: from.clone(),
            sha: sha.clone(),
            subject: format!("commit {sha}"),
            self_review: "looked at it".into(),
            diffstat: String::new(),
        });
        Event::Composed(Box::new(ComposeFacts {
            nonce: "0123456789abcdef".into(),
            bookmarks: inbox.iter().cloned().collect(),
            inbox: inbox
                .into_iter()
                .map(|(from, sha)| InboxItem { from, subject: format!("commit {sha}"), sha })
                .collect(),
            messages: messages.collect(),
            last_handoff,
            open_bugs: self.world.bugs.clone(),
            notes: Vec::new(),
            primers: Vec::new(),
        }))
    }

    fn run_peer(&mut self, launch: &RunPeer) {
        self.world.forget_turn();
        self.before.clone_from(&self.world.commits);
        let asked = self.started().last().map(|s| s.asked.clone()).unwrap_or_default();
        let habit = self.habit.turn(&self.world, launch.tick, launch.skeptic, &asked);
        let turn = self.script.pop_front().unwrap_or(habit);
        if turn.exit.class != ExitClass::SpawnFail {
            let spawned = PeerSpawned { tick: launch.tick, pid: 7, start_time: 1, boot_id: "boot".into() };
            self.queue.push_back(Event::PeerSpawned(spawned));
        }
        self.queue.push_back(Event::PeerExited(Box::new(turn.exit.clone())));
        self.running = Some((launch.peer.clone(), turn));
    }

    fn end_peer(&mut self) {
        let Some((_, turn)) = &mut self.running else { return };
        let ended = exit(ExitClass::Interrupted, turn.exit.api);
        if !turn.quick {
            *turn = Turn { exit: ended.clone(), ..Turn::nothing() };
        }
        for event in &mut self.queue {
            if let Event::PeerExited(exit) = event {
                **exit = ended.clone();
            }
        }
    }

    // --- what happened ---

    pub(crate) fn stopped(&self) -> Option<StopReason> {
        if let Phase::Stopped(reason) = &self.m.phase { Some(reason.clone()) } else { None }
    }

    pub(crate) fn ticks(&self) -> Vec<&TickRecord> {
        self.log.iter().filter_map(|r| if let Record::Tick(t) = r { Some(&**t) } else { None }).collect()
    }

    /// Tick `n`, counted from 1.
    pub(crate) fn tick(&self, n: usize) -> &TickRecord {
        self.ticks().get(n - 1).copied().unwrap_or_else(|| panic!("there is no tick {n}"))
    }

    pub(crate) fn started(&self) -> Vec<&TickStarted> {
        self.log
            .iter()
            .filter_map(|r| if let Record::TickStarted(t) = r { Some(&**t) } else { None })
            .collect()
    }

    pub(crate) fn exits(&self) -> Vec<&ExitRecord> {
        self.log.iter().filter_map(|r| if let Record::Exit(e) = r { Some(&**e) } else { None }).collect()
    }

    /// The detail of the newest exit.
    pub(crate) fn stop_detail(&self) -> String {
        self.exits().last().map(|exit| exit.detail.clone()).unwrap_or_default()
    }

    /// Whose turn each tick was, as `ann bob ann`.
    pub(crate) fn order(&self) -> String {
        self.ticks().iter().map(|t| t.peer.as_str()).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn health(&self, name: &str) -> PeerHealth {
        self.m.state.health(&peer(name))
    }

    pub(crate) fn prompts(&self) -> Vec<&str> {
        self.effects
            .iter()
            .filter_map(|e| if let Effect::RunPeer(l) = e { Some(l.prompt.as_str()) } else { None })
            .collect()
    }

    /// The gate runs at a place: which gates, at which key.
    pub(crate) fn judged(&self, at: Place) -> Vec<(Vec<GoalId>, TreeKey)> {
        let run = |e: &Effect| match e {
            Effect::Judge { gates, key, place, .. } if *place == at => Some((gates.clone(), key.clone())),
            _ => None,
        };
        self.effects.iter().filter_map(run).collect()
    }

    /// Warnings of the loop, ever.
    pub(crate) fn warned(&self, needle: &str) -> usize {
        self.m.state.warnings_history.iter().filter(|w| w.text.contains(needle)).count()
    }
}

/// The goals that the rules come from.
fn goals(rules: &Rules) -> Vec<Goal> {
    let hard = rules.gates.iter().map(|g| {
        let run = GateRun::Shell { cmd: "true".into(), pass_when: "exit_code == 0".into() };
        let kind = GoalKind::Hard(HardGoal { tree: g.tree, ..HardGoal::new(run) });
        Goal { id: g.id.clone(), description: None, group: None, weight: 1, kind }
    });
    let soft = rules.soft.iter().map(|s| {
        let check = || HardGoal::new(GateRun::Check { name: "bug-ledger".into(), args: Vec::new() });
        let soft = SoftGoal {
            prompt: "read it".into(),
            rule: s.rule,
            every: s.every,
            paths: Vec::new(),
            check: s.check.as_ref().map(|_| check()),
            needs: s.needs.clone(),
        };
        Goal { id: s.id.clone(), description: None, group: None, weight: 1, kind: GoalKind::Soft(soft) }
    });
    hard.chain(soft).collect()
}
