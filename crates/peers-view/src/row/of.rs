//! A row as a projection of a view.

use peers_model::{RunId, Timestamp};
use peers_store::Disk;

use super::{
    Convergence, Gates, HardGates, LastCommit, LoopRow, LoopState, PeerCell, RowWarning, SoftGates,
    StuckGate, Versions, meters,
};
use crate::asked::{Asked, HeadFact};
use crate::gates::REDS;
use crate::liveness::Liveness;
use crate::loopview::{InForce, LoopView};
use crate::reader::LoopReader;
use crate::sourced::Sourced;
use crate::sources::Again;
use crate::standing::Core;
use crate::ticks::TickRow;

impl LoopReader {
    /// The row as it is now. Nothing here fails: what cannot be read says so.
    pub fn row<D: Disk>(&mut self, disk: &mut D, asked: &Asked) -> LoopRow {
        LoopRow::of(&self.shallow(disk, asked, Again::More), asked)
    }
}

impl LoopRow {
    /// Reads one row. Writes nothing. Nothing here fails: what cannot be read says so.
    pub fn read<D: Disk>(disk: &mut D, asked: &Asked) -> Self {
        Self::of(&LoopReader::default().shallow(disk, asked, Again::Once), asked)
    }

    /// The row of a loop that could not be read: only what was brought is in it.
    #[must_use]
    pub fn unseen(asked: &Asked) -> Self {
        Self::of(&LoopReader::unseen(asked), asked)
    }

    /// What a row shows of a view.
    fn of(view: &LoopView, asked: &Asked) -> Self {
        let now = view.at;
        let mut warnings = Warnings::default();
        let core = warnings.of("journal", &view.core);
        let run = warnings.of("run-record", &view.run);
        let config = warnings.of("config", &view.config);
        let head = warnings.of("git", &asked.head);
        let bugs = warnings.of("bugs", &asked.bugs).copied();
        let tail = warnings.of("journal-end", &view.journal);
        if tail.is_some_and(|tail| tail.ends_unreadable) {
            warnings.add("journal-end", "the newest line of the journal cannot be read");
        }
        let live = &view.liveness;
        let running = matches!(live.value(), Some(Liveness::Running { .. }));
        if let (false, Some(core), Some(head)) = (running, core, head)
            && core.head.as_ref().is_some_and(|known| *known != head.sha)
        {
            warnings.add("head-moved", "HEAD moved since the loop's last tick: the gates shown are older");
        }
        let ticks = tail.map(|tail| tail.ticks.as_slice()).unwrap_or_default();
        let newest_run = core.and_then(|core| core.run.as_ref()).map(|run| &run.id);
        let in_run = |of: Option<&RunId>| of.is_some() && of == newest_run;
        let last = tail.and_then(|tail| tail.last.as_ref());
        let (word, ended) = LoopState::of(live.value());
        let unknown = asked.listed.unknown.as_ref().and_then(|unknown| unknown.outcome.clone());
        let seconds = |since: Timestamp| now.since(since).as_secs();
        let open = core.and_then(|core| core.open.as_ref()).filter(|_| running);
        let (pid, since) = process(live.value());
        let mine: Vec<&TickRow> = ticks.iter().filter(|tick| in_run(tick.run_id.as_ref())).collect();
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
            last_commit: last_commit(head, core, ticks, now),
            recent: tail.map(|tail| tail.ticks.clone()),
            gates: core.and_then(|core| gates(core, view.goals)),
            convergence: core.map(|core| Convergence {
                clean: core.converge.clean_ticks,
                needed: config.map(|config| config.needed),
                phase: core.converge.missing.first().map_or("complete", |missing| missing.kind),
            }),
            plan: asked.plan,
            bugs,
            cost: core.map(|core| meters::cost(&core.budget, &burn)),
            budget: core.map(|core| meters::meters(&core.budget, &burn)),
            peers: core.map(|core| peers(core, config, now)),
            last_event: last.cloned(),
            versions: Versions { of_loop: run.map(|run| run.version.clone()) },
            warnings: warnings.0,
            workdir: run.map(|run| run.workdir.clone()),
            attention: view.attention.clone(),
        }
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

/// `goals`: how many a first run would begin with.
fn gates(core: &Core, goals: Option<[u64; 2]>) -> Option<Gates> {
    let n = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let mut total = [n(core.gates.len()), n(core.soft.len())];
    if core.run.is_none() {
        total = goals?;
    }
    // While a turn is open the newest verdicts are about what was there before it; those of another definition
    // say nothing.
    let green = core.gates.iter().filter(|gate| gate.state == "pass" && !gate.redefined).count();
    let stuck = core.gates.iter().filter(|gate| gate.reds >= REDS);
    Some(Gates {
        hard: HardGates {
            green: n(green),
            total: total[0],
            stuck: stuck.map(|gate| StuckGate { id: gate.id.clone(), ticks: gate.reds }).collect(),
        },
        soft: SoftGates { green: n(core.soft.iter().filter(|row| row.ok).count()), total: total[1] },
    })
}

fn peers(core: &Core, config: Option<&InForce>, now: Timestamp) -> Vec<PeerCell> {
    let cell = |peer: &crate::peers::PeerRow| PeerCell {
        name: peer.name.clone(),
        tool: peer.tool.clone(),
        model: config
            .and_then(|config| config.models.iter().find(|(name, _)| *name == peer.name))
            .and_then(|(_, model)| model.clone()),
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
    core: Option<&Core>,
    ticks: &[TickRow],
    now: Timestamp,
) -> Option<LastCommit> {
    let sha = head.map(|head| &head.sha).or_else(|| core?.head.as_ref())?;
    let tick = ticks.iter().rev().find(|tick| tick.commits.contains(sha));
    let made = tick.map(|tick| tick.ts);
    let open = core.and_then(|core| core.open.as_ref()).filter(|open| open.head_before != *sha);
    // What appeared since the open turn began is its peer's, as far as anybody knows.
    let open = open.filter(|_| tick.is_none()).map(|open| open.peer.clone());
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
