//! A row, made of what was read.

use peers_core::state::State;
use peers_model::config::Config;
use peers_model::{RunId, Timestamp};
use peers_store::runs::RunRecord;

use super::source::{FilesPart, JournalPart};
use super::{
    Convergence, Gates, HardGates, HeadFact, LastCommit, LoopRow, LoopState, PeerCell, RecentTick, RowAsked,
    RowWarning, SoftGates, StuckGate, Versions, meters,
};
use crate::advice::{self, Facts};
use crate::gates::GateFact;
use crate::liveness::{self, Liveness};
use crate::loopview::{self, Core};
use crate::sourced::Sourced;

/// A gate that is red after so many ticks in a row is named.
const STUCK: u32 = 3;

/// Everything that a row is made of.
pub(super) struct Parts<'a> {
    pub(super) asked: &'a RowAsked,
    pub(super) journal: &'a JournalPart,
    pub(super) record: &'a Sourced<RunRecord>,
    pub(super) files: &'a FilesPart,
    /// The gate that is in the way.
    pub(super) gate: Option<&'a GateFact>,
    pub(super) heard: Option<Timestamp>,
    /// The newest run was landed or undone.
    pub(super) decided: bool,
}

impl Parts<'_> {
    pub(super) fn row(&self) -> LoopRow {
        let Self { asked, journal, record, files, gate, heard, decided } = *self;
        let now = asked.now;
        let mut warnings = Warnings::default();
        let state = warnings.of("journal", &journal.state);
        let run = warnings.of("run-record", record);
        let config = warnings.of("config", &files.config);
        let head = warnings.of("git", &asked.head);
        let bugs = warnings.of("bugs", &asked.bugs).copied();
        let tail = warnings.of("journal-end", &journal.tail);
        if tail.is_some_and(|tail| tail.unreadable) {
            warnings.add("journal-end", "the newest line of the journal cannot be read");
        }
        let live = self.live(state, run);
        let running = matches!(live.value(), Some(Liveness::Running { .. }));
        if let (false, Some(state), Some(head)) = (running, state, head)
            && state.head.as_ref().is_some_and(|known| *known != head.sha)
        {
            warnings.add("head-moved", "HEAD is not where the loop left it: what is said of gates is older");
        }
        let core = state.map(|state| loopview::core(state, None, &files.config, run, now));
        let core = core.as_ref();
        let ticks = tail.map(|tail| tail.ticks.as_slice()).unwrap_or_default();
        let newest_run = state.and_then(|state| state.run.as_ref()).map(|run| &run.id);
        let in_run = |of: Option<&RunId>| of.is_some() && of == newest_run;
        let mirror = tail.and_then(|tail| tail.mirror.as_ref()).filter(|(of, ..)| in_run(of.as_ref()));
        let last = tail.and_then(|tail| tail.last.as_ref());
        let facts = Facts {
            now,
            spelling: &asked.spelling,
            live: live.as_ref(),
            unknown: asked.listed.unknown.as_ref(),
            damage: journal.damage.as_deref(),
            core,
            run,
            idle_ms: config.map(|config| u64::from(config.health.idle_timeout_s.get()) * 1000),
            gate,
            unaccepted: &files.unaccepted,
            placeholder: files.placeholder,
            broken: &files.broken,
            files_in: None,
            apart: run.map(|run| run.workdir.as_str()).filter(|dir| *dir != asked.listed.path),
            project: &asked.listed.path,
            ticks,
            needed: config.map(needed),
            mirror: mirror.map(|(_, at, tick)| (*at, *tick)),
            decided,
            moving: state.and_then(|state| state.moving.as_ref()).map(|moving| &moving.what),
            gone: asked.gone,
            moved: last.map(|last| last.ts).max(heard),
            free_bytes: asked.free_bytes,
            full: asked.full.as_deref(),
            foreign_lock: asked.foreign_lock,
            version: &asked.version,
            refusals: &asked.refusals,
        };
        let attention = advice::attention(&facts);
        let (word, ended) = LoopState::of(live.value());
        let unknown = asked.listed.unknown.as_ref().and_then(|unknown| unknown.outcome.clone());
        let seconds = |since: Timestamp| now.since(since).as_secs();
        let open = core.and_then(|core| core.open.as_ref()).filter(|_| running);
        let (pid, since) = process(live.value());
        let mine: Vec<&RecentTick> = ticks.iter().filter(|tick| in_run(tick.run_id.as_ref())).collect();
        let burn = meters::Burn::of(&mine, running);
        LoopRow {
            name: asked.listed.name.clone(),
            path: asked.listed.path.clone(),
            labels: asked.listed.labels.clone(),
            state: word,
            outcome: ended.map(str::to_owned).or(unknown),
            managed: asked.listed.managed,
            kind: asked.listed.kind.clone(),
            run_id: newest_run.or_else(|| run.map(|run| &run.run_id)).cloned(),
            pid,
            uptime_s: since.map(seconds),
            phase: phase(live.value(), word, core, now),
            mode: None,
            iteration: core.map(|core| open.map_or(core.ticks, |open| open.tick)),
            ticks: core.map(|core| core.ticks),
            current_peer: core.and_then(|core| open.map(|open| &open.peer).or(core.turn.as_ref())).cloned(),
            tick_age_s: open.map(|open| seconds(open.since)),
            recent: tail.map(|tail| tail.ticks.clone()),
            gates: core.zip(state).map(|(core, state)| gates(core, state)),
            convergence: core.map(|core| Convergence {
                clean: core.converge.clean_ticks,
                needed: facts.needed,
                phase: core.converge.missing.first().map_or("complete", |missing| missing.kind),
            }),
            plan: None,
            bugs,
            cost: core.map(|core| meters::cost(&core.budget, &burn)),
            budget: core.map(|core| meters::meters(&core.budget, &burn)),
            peers: core.map(|core| peers(core, config, now)),
            last_commit: last_commit(head, state, ticks, now),
            last_event: last.cloned(),
            versions: Versions { of_loop: run.map(|run| run.version.clone()) },
            warnings: warnings.0,
            workdir: run.map(|run| run.workdir.clone()),
            attention,
        }
    }

    /// Whether the loop runs.
    fn live(&self, state: Option<&State>, run: Option<&RunRecord>) -> Sourced<Liveness> {
        let asked = self.asked;
        if let Some(unknown) = &asked.listed.unknown {
            return Sourced::Unreadable(unknown.why.clone());
        }
        if let (None, Some(why)) = (run, self.record.why())
            && state.is_none()
        {
            return Sourced::Unreadable(why.to_owned());
        }
        let records = run.map(std::slice::from_ref).unwrap_or_default();
        let lock = (&asked.lock, asked.gates_since);
        let live = liveness::liveness(lock, state, records, asked.boot_id.as_deref());
        Sourced::from_read(live.map(|live| Some(live.or_killed(asked.listed.killed.as_ref()))))
    }
}

#[derive(Default)]
struct Warnings(Vec<RowWarning>);

impl Warnings {
    fn add(&mut self, code: &'static str, message: impl Into<String>) {
        self.0.push(RowWarning { code, message: message.into() });
    }

    /// The value, and a warning where it is not as it should be.
    fn of<'a, T>(&mut self, code: &'static str, source: &'a Sourced<T>) -> Option<&'a T> {
        if let Some(why) = source.why() {
            self.add(code, why);
        }
        source.value()
    }
}

/// The clean ticks that a configuration asks for.
fn needed(config: &Config) -> u32 {
    config.goals.convergence_n.get()
}

/// The process that is at work, and since when.
fn process(live: Option<&Liveness>) -> (Option<u32>, Option<Timestamp>) {
    match live {
        Some(Liveness::Running { pid, since, .. }) => (*pid, *since),
        Some(Liveness::Command { pid, .. }) => (*pid, None),
        Some(Liveness::Fresh | Liveness::Stopped { .. } | Liveness::Crashed { .. }) | None => (None, None),
    }
}

fn phase(live: Option<&Liveness>, state: LoopState, core: Option<&Core>, now: Timestamp) -> &'static str {
    let waits = || core.is_some_and(|core| core.peers.iter().any(|peer| peer.waiting(now).is_some()));
    match live {
        Some(Liveness::Running { gates_since: Some(_), .. }) => "gates",
        Some(Liveness::Running { turn: Some(_), .. }) => "turn",
        Some(Liveness::Running { .. }) if waits() => "waiting",
        Some(Liveness::Running { .. }) => "between",
        Some(Liveness::Command { .. }) => "command",
        Some(Liveness::Fresh | Liveness::Stopped { .. } | Liveness::Crashed { .. }) | None => state.word(),
    }
}

fn gates(core: &Core, state: &State) -> Gates {
    let n = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    // While a turn is open the newest verdicts are about what was there before it; those of another definition
    // say nothing.
    let defined = |gate: &crate::gates::GateRow| {
        let rule = state.rules.gates.iter().find(|rule| rule.id == gate.id);
        let standing = state.board.gates.get(&gate.id);
        rule.zip(standing).is_some_and(|(rule, standing)| rule.digest == standing.digest)
    };
    let green = core.gates.iter().filter(|gate| gate.state == "pass" && defined(gate)).count();
    let stuck = core.gates.iter().filter(|gate| gate.reds >= STUCK);
    Gates {
        hard: HardGates {
            green: n(green),
            total: n(core.gates.len()),
            stuck: stuck.map(|gate| StuckGate { id: gate.id.clone(), ticks: gate.reds }).collect(),
        },
        soft: SoftGates {
            green: n(core.soft.iter().filter(|row| row.ok).count()),
            total: n(core.soft.len()),
        },
    }
}

fn peers(core: &Core, config: Option<&Config>, now: Timestamp) -> Vec<PeerCell> {
    let cell = |peer: &crate::peers::PeerRow| PeerCell {
        name: peer.name.clone(),
        tool: peer.tool.clone(),
        model: config
            .and_then(|config| config.peers.iter().find(|spec| spec.name == peer.name))
            .and_then(|spec| spec.model.clone()),
        state: peer.state.word(),
        fails: peer.consecutive_fails,
        unavailable_reason: peer.reason.clone(),
        resets_at: peer.waiting(now).map(|(until, _)| until),
    };
    core.peers.iter().map(cell).collect()
}

/// HEAD; without a look at the repository, as the journal has it.
fn last_commit(
    head: Option<&HeadFact>,
    state: Option<&State>,
    ticks: &[RecentTick],
    now: Timestamp,
) -> Option<LastCommit> {
    let sha = head.map(|head| &head.sha).or_else(|| state?.head.as_ref())?;
    let tick = ticks.iter().rev().find(|tick| tick.commits.contains(sha));
    let made = tick.map(|tick| tick.ts);
    let open = state.and_then(|state| state.open.as_ref()).filter(|open| open.started.head_before != *sha);
    // What appeared since the open turn began is its peer's, as far as anybody knows.
    let open = open.filter(|_| tick.is_none()).map(|open| open.started.peer.clone());
    // The time of a commit is what its author says; it is no later than when the loop saw it.
    let at = match (head.map(|head| head.at), made) {
        (Some(said), Some(seen)) => Some(said.min(seen)),
        (said, seen) => said.or(seen),
    };
    Some(LastCommit {
        sha: sha.clone(),
        subject: head.map(|head| head.subject.clone()),
        peer: tick.map(|tick| tick.peer.clone()).or(open),
        age_s: at.map(|at| now.since(at).as_secs()),
    })
}
