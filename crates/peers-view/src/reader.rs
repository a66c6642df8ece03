//! Reads a loop: all of it for one that is asked about, as much as a row shows for one of many.
//!
//! A row is read from the snapshot, what lies behind it, the newest run record and a few KiB of the journal's
//! end, never from the whole journal and never from git; so a thousand of them are read in a second.

use peers_core::budget::{self as core_budget, Caps};
use peers_core::state::State;
use peers_core::turns::{self, Choice};
use peers_model::command::Step;
use peers_model::record::MoveKind;
use peers_model::{PeerName, RunId, Timestamp};
use peers_store::runs::RunRecord;
use peers_store::{Disk, planted, project};

use crate::advice::{self, Attention, Facts, Spelling};
use crate::asked::Asked;
use crate::bugs::BugsView;
use crate::facts::GitFacts;
use crate::gates::{self, GateFact};
use crate::liveness::{self, Confinement, Liveness, Lock};
use crate::loopview::{Alert, InForce, LoopView, PEER, REFUSED, Silence, WAITING};
use crate::notable::{LandedRow, Notable, UndoneRow};
use crate::sourced::Sourced;
use crate::sources::{self, Again, FilesPart, JournalPart, RunPart};
use crate::standing;
use crate::tail::JournalTail;
use crate::words::{self, chain};

/// Reads one loop again and again: what did not change costs a look at its file.
#[derive(Debug, Default)]
pub struct LoopReader {
    journal: JournalPart,
    run: RunPart,
    files: FilesPart,
    /// The gate that is in the way.
    gate: Option<GateFact>,
}

impl LoopView {
    /// Reads everything once. Writes nothing. Nothing here fails: what cannot be read says so.
    pub fn read<D: Disk>(disk: &mut D, asked: &Asked) -> Self {
        let mut alerts = Vec::new();
        let mut reader = LoopReader::default();
        let project = Sourced::from_read(project::read(disk).map_err(|error| chain(&error)));
        reader.journal = JournalPart::whole(disk, asked.ticks, &mut alerts);
        let runs = sources::read_runs(disk, &mut alerts);
        reader.run.record = match &runs {
            Ok(records) => Sourced::from_read(Ok(records.last().cloned())),
            Err(why) => Sourced::Unreadable(why.clone()),
        };
        reader.files.update(disk, Again::Once);
        reader.files.setup.dir.clone_from(&asked.files_in);
        let here = project.value().map_or(".", |project| project.path.as_str());
        reader.look_at_gate(disk, here);
        let runs = runs.unwrap_or_default();
        let (landed, undone) = since(reader.journal.notable.value(), &runs);
        let decided = landed.is_some() || undone.is_some();
        let mut view = Self { project, landed, undone, ..reader.view(asked, &runs, asked.heard) };
        let head = view.core.value().and_then(|core| core.head.as_ref());
        let planted = planted::read(disk).ok().flatten();
        view.planted = planted.filter(|planted| Some(&planted.head) == head);
        reader.alerts(asked, &runs, &view, &mut alerts);
        view.alerts = alerts;
        if let Some(core) = match &mut view.core {
            Sourced::Fresh(core) | Sourced::Stale { value: core, .. } => Some(core),
            Sourced::Missing | Sourced::Unreadable(_) => None,
        } {
            gates::find_logs(disk, asked.gate_logs.as_ref(), &mut core.gates);
        }
        let seek = |facts: Facts<'_>| (advice::attention(&facts), advice::out(&facts));
        let (attention, out) = reader.with_facts(asked, &view, (decided, asked.heard), seek);
        view.alerts.extend(out.into_iter().map(|text| Alert { kind: PEER, text }));
        view.attention = attention;
        view
    }

    /// [`LoopView::read`], again where a loop seems to have crashed only because it began or ended
    /// while it was looked at. `probe` looks at the run lock.
    pub fn settled<D: Disk>(disk: &mut D, asked: &Asked, mut probe: impl FnMut() -> Lock) -> Self {
        let mut view = Self::read(disk, asked);
        for _ in 0..2 {
            if !matches!(view.liveness.value(), Some(Liveness::Crashed { .. })) {
                break;
            }
            view = Self::read(disk, &Asked { lock: probe(), ..asked.clone() });
        }
        view
    }
}

impl LoopReader {
    /// What a row shows of the loop, as it is now.
    pub(crate) fn shallow<D: Disk>(&mut self, disk: &mut D, asked: &Asked, again: Again) -> LoopView {
        let moved = self.journal.update(disk, again);
        let known = self.journal.state.value().and_then(|state| state.run.as_ref()).map(|run| &run.id);
        self.run.update(disk, (known, moved), &asked.lock);
        self.files.update(disk, again);
        if self.files.goals.is_none() && self.journal.state.value().is_some_and(|state| state.run.is_none()) {
            self.files.count_goals(disk);
        }
        if moved {
            self.look_at_gate(disk, &asked.listed.path);
        }
        let held = matches!(asked.lock, Lock::Held { .. });
        let state = self.journal.state.value();
        let heard = asked.heard.or_else(|| sources::heard(disk, state.filter(|_| held)?));
        let decided = sources::decided(disk, self.journal.tail.value(), self.run.record.value());
        self.shown(asked, heard, decided)
    }

    /// The same of a loop that could not be read: only what was brought is in it.
    pub(crate) fn unseen(asked: &Asked) -> LoopView {
        Self::default().shown(asked, None, false)
    }

    /// The newest segment of the journal, once it was read.
    #[must_use]
    pub fn segment(&self) -> Option<String> {
        self.journal.segment()
    }

    fn shown(&self, asked: &Asked, heard: Option<Timestamp>, decided: bool) -> LoopView {
        let runs = self.run.record.value().map(std::slice::from_ref).unwrap_or_default();
        let mut view = self.view(asked, runs, heard);
        view.attention = self.with_facts(asked, &view, (decided, heard), |facts| advice::attention(&facts));
        view
    }

    /// `here`: the directory whose `.peers/` is read.
    fn look_at_gate<D: Disk>(&mut self, disk: &mut D, here: &str) {
        let work = self.run.record.value().map_or(here, |record| record.workdir.as_str());
        let state = self.journal.state.value();
        self.gate = state.and_then(|state| gates::in_the_way(disk, state, (work, here)));
    }

    /// What was read as a view, without alerts and without what it asks.
    fn view(&self, asked: &Asked, runs: &[RunRecord], heard: Option<Timestamp>) -> LoopView {
        let Self { journal, run, files, gate: _ } = self;
        let known = journal.state.value();
        let newest = run.record.value();
        let config = &files.config;
        let in_force = config.as_ref().map(InForce::of);
        let open =
            known.and_then(|state| state.open.as_ref()).filter(|_| matches!(asked.lock, Lock::Held { .. }));
        let silence = open.zip(heard).map(|(open, heard)| {
            let passed = asked.now.since(heard.max(open.at)).as_millis();
            Silence {
                ms: u64::try_from(passed).unwrap_or(u64::MAX),
                limit_ms: in_force.value().map(|config| config.idle_ms),
            }
        });
        let core = |state: &State| standing::core(state, asked.git.value(), config, newest, asked.now);
        LoopView {
            at: asked.now,
            project: Sourced::Missing,
            liveness: self.live(asked, runs),
            confinement: Confinement::of(newest),
            run: run.record.clone(),
            core: journal.state.as_ref().map(core),
            bugs: bugs(&asked.git),
            journal: journal.tail.clone(),
            unverified: journal.unverified,
            notable: journal.notable.clone(),
            landed: None,
            undone: None,
            planted: None,
            setup: files.setup.clone(),
            here: asked.here.clone(),
            gone: asked.gone,
            silence,
            alerts: Vec::new(),
            config: in_force,
            goals: files.goals,
            damage: journal.damage.clone(),
            attention: Attention::default(),
            spelling: asked.spelling.clone(),
        }
    }

    /// Whether the loop runs.
    fn live(&self, asked: &Asked, runs: &[RunRecord]) -> Sourced<Liveness> {
        let state = self.journal.state.value();
        if asked.listed.bare {
            return Sourced::Fresh(Liveness::Fresh);
        }
        if let Some(unknown) = &asked.listed.unknown {
            return Sourced::Unreadable(unknown.why.clone());
        }
        if let (None, None, Some(why)) = (state, self.run.record.value(), self.run.record.why()) {
            return Sourced::Unreadable(why.to_owned());
        }
        let lock = (&asked.lock, asked.gates_since);
        let live = liveness::liveness(lock, state, runs, asked.boot_id.as_deref());
        Sourced::from_read(live.map(|live| Some(live.or_killed(asked.listed.killed.as_ref()))))
    }

    /// What is wrong with the sources, and what keeps the loop from going on.
    fn alerts(&self, asked: &Asked, runs: &[RunRecord], view: &LoopView, alerts: &mut Vec<Alert>) {
        let idle = asked.lock == Lock::Free;
        let state = self.journal.state.value();
        if let Some(torn) = view.journal.value().map(|tail| tail.torn).filter(|torn| *torn > 0 && idle) {
            let text = format!(
                "the journal ends in an unfinished line of {}; the next run keeps it aside",
                words::bytes(torn)
            );
            alerts.push(Alert { kind: "torn", text });
        }
        let seam = view.journal.value().and_then(JournalTail::seam);
        let told = |seam: String| view.says("{}; `peers state check` reads all of it", &[&seam]);
        alerts.extend(seam.map(|seam| Alert { kind: "journal", text: told(seam) }));
        alerts.extend(state.filter(|_| idle).and_then(|state| cut_short(state, view)));
        if let (Some(state), Some(live)) = (state, view.liveness.value()) {
            let caps = self
                .files
                .config
                .value()
                .map(|config| standing::caps(config.clone(), runs.last()).in_force(state, asked.now));
            alerts.extend(waiting(state, live, caps.as_ref(), asked.now));
        }
        if asked.foreign_lock {
            alerts.push(Alert { kind: "foreign-lock", text: advice::FOREIGN_LOCK.to_owned() });
        }
        let refusals: Vec<String> = asked.refusals.iter().map(|step| asked.spelling.tell(step)).collect();
        for refusal in &refusals {
            alerts.push(Alert { kind: REFUSED, text: format!("a start would refuse: {refusal}") });
        }
        let told = |why: &str| refusals.iter().any(|text| text.contains(why));
        if let Some(why) = asked.git.why().filter(|why| !told(why)) {
            alerts.push(Alert { kind: "git", text: format!("the repository cannot be read: {why}") });
        }
    }

    /// Gives what is known of the loop to who seeks advice.
    fn with_facts<T>(
        &self,
        asked: &Asked,
        view: &LoopView,
        (decided, heard): (bool, Option<Timestamp>),
        seek: impl FnOnce(Facts<'_>) -> T,
    ) -> T {
        let moving = self.journal.state.value().and_then(|state| state.moving.as_ref());
        let listed = view.project.value().is_none().then_some(asked.listed.path.as_str());
        let worked = view.run.value().map(|run| run.workdir.as_str());
        view.with_facts(asked, &view.spelling, |facts| {
            seek(Facts {
                gate: self.gate.as_ref(),
                apart: match listed {
                    Some(listed) => worked.filter(|dir| *dir != listed),
                    None => facts.apart,
                },
                project: listed.unwrap_or(facts.project),
                decided,
                moving: moving.map(|moving| &moving.what),
                moved: facts.moved.max(heard),
                ..facts
            })
        })
    }
}

impl LoopView {
    /// One of our own sentences with its values, its commands as the reader types them, see [`Step::text`].
    pub(crate) fn says(&self, sentence: &'static str, values: &[&str]) -> String {
        self.spelling.tell(&Step::text(sentence, values))
    }

    /// Gives what this view knows of its loop to who seeks advice.
    pub(crate) fn with_facts<T>(
        &self,
        asked: &Asked,
        spelling: &Spelling,
        seek: impl FnOnce(Facts<'_>) -> T,
    ) -> T {
        let tail = self.journal.value();
        let run = self.core.value().and_then(|core| core.run.as_ref()).map(|run| &run.id);
        let mirror =
            tail.and_then(|tail| tail.mirror.as_ref()).filter(|(of, ..)| of.is_some() && of.as_ref() == run);
        let above = self.setup.dir.as_ref().map(|dir| format!("{dir}/")).unwrap_or_default();
        let broken: Vec<String> =
            self.setup.broken.iter().map(|file| format!("{above}{}", file.words())).collect();
        seek(Facts {
            asked,
            now: self.at,
            spelling,
            live: self.liveness.as_ref(),
            damage: self.damage.as_deref(),
            core: self.core.value(),
            run: self.run.value(),
            config: self.config.value(),
            gate: None,
            setup: &self.setup,
            broken: &broken,
            apart: self.apart(),
            project: self.project.value().map_or(".", |project| project.path.as_str()),
            ticks: tail.map(|tail| tail.ticks.as_slice()).unwrap_or_default(),
            mirror: mirror.map(|(_, at, tick)| (*at, *tick)),
            decided: self.landed.is_some() || self.undone.is_some(),
            moving: None,
            gone: self.gone,
            moved: tail.and_then(|tail| tail.last.as_ref()).map(|last| last.ts),
        })
    }
}

/// What the operator did with the newest run's branch since that run began. It may be recorded for an
/// earlier run, which made the branch.
fn since(notable: Option<&Notable>, records: &[RunRecord]) -> (Option<LandedRow>, Option<UndoneRow>) {
    let (Some(notable), Some(newest)) = (notable, records.last()) else { return (None, None) };
    let same_branch = |run: &RunId| {
        *run == newest.run_id
            || records.iter().any(|r| r.run_id == *run && r.branch.is_some() && r.branch == newest.branch)
    };
    let landed = notable.landed.iter().rev().find(|row| row.ts >= newest.started_at);
    let undone = notable.undone.iter().rev().find(|row| row.ts >= newest.started_at);
    (
        landed.filter(|row| same_branch(&row.run_id)).cloned(),
        undone.filter(|row| same_branch(&row.run_id)).cloned(),
    )
}

fn bugs(git: &Sourced<GitFacts>) -> Sourced<BugsView> {
    match git {
        Sourced::Fresh(git) | Sourced::Stale { value: git, .. } => git.bugs.as_ref().map(BugsView::of),
        Sourced::Missing => Sourced::Missing,
        Sourced::Unreadable(why) => Sourced::Unreadable(why.clone()),
    }
}

/// That a landing or an undo did not come to its end.
fn cut_short(state: &State, view: &LoopView) -> Option<Alert> {
    let moving = &state.moving.as_ref()?.what;
    let text = match moving.kind {
        MoveKind::Land => view.says("a landing was cut short: `peers land` finishes it", &[]),
        MoveKind::Undo => {
            view.says("an undo was cut short: `peers undo {}` finishes it", &[moving.run.as_str()])
        }
    };
    Some(Alert { kind: "moving", text })
}

/// That the run works on nothing now, since everybody who could have a turn waits.
fn waiting(state: &State, live: &Liveness, caps: Option<&Caps>, now: Timestamp) -> Option<Alert> {
    let idle = matches!(live, Liveness::Running { turn: None, gates_since: None, .. });
    // What a run that has not begun yet will do is decided when it has.
    if !idle || state.live_run().is_none() {
        return None;
    }
    let may = |peer: &PeerName| caps.is_none_or(|caps| core_budget::may_go(caps, state, peer));
    let Choice::Wait(until) = turns::choose_within(state, now, may) else { return None };
    let (until, why) = (words::clock(now, until), turns::why_not(state, now));
    Some(Alert { kind: WAITING, text: format!("no peer can have a turn before {until}: {why}") })
}
