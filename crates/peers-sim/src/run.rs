//! Runs a scenario under a schedule: crash, resume, until the loop has stopped.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use peers_core::machine::{Event, StopRequest};
use peers_model::outcome::{ErrorKind, StopReason};
use peers_model::record::Digests;
use peers_run::engine::Engine;
use peers_store::runs::RunRecord;
use peers_store::{Area, Store, accept, layout};

use crate::disk::SimDisk;
use crate::fault::{Crash, Hit, Kind, Points};
use crate::scenario::{Ask, Scenario};
use crate::world::{Next, SimWorld};

/// Most steps of one process.
const FUEL: u64 = 8000;

/// How a schedule went.
#[derive(Debug)]
pub struct Outcome {
    /// Why the last process stopped.
    pub reason: Option<StopReason>,
    /// Points that each process passed: kind, and whether a peer was alive.
    pub points: Vec<Vec<(Kind, bool)>>,
    /// The disk as it is at the end.
    pub disk: SimDisk,
    /// The world as it is at the end.
    pub world: SimWorld,
    /// What went wrong on the way.
    pub violations: Vec<String>,
}

/// Runs a scenario. `hits[k]` is the fault of the k-th process; after the last of them processes
/// run undisturbed until one stops for good.
#[must_use]
pub fn run(scenario: &Scenario, hits: &[Hit]) -> Outcome {
    let points = Points::default();
    let disk = SimDisk::new(points.clone());
    let world = SimWorld::new(scenario, &points, &disk);
    let digests = accept::digests(b"goals", b"config");
    disk.plant(Area::Peers, layout::peers::GOALS, b"goals");
    disk.plant(Area::Peers, layout::peers::CONFIG, b"config");
    disk.plant(Area::Store, layout::store::RESERVE, b"reserve");
    let mut outcome = Outcome { reason: None, points: Vec::new(), disk, world, violations: Vec::new() };
    let mut process = 0_u64;
    let mut asked = false;
    loop {
        let hit = usize::try_from(process).ok().and_then(|k| hits.get(k)).copied();
        points.begin(hit);
        let result = catch_unwind(AssertUnwindSafe(|| {
            one_process(scenario, &outcome.disk, &outcome.world, process, &digests, &mut asked)
        }));
        outcome.points.push(points.seen());
        process += 1;
        match result {
            Ok(Ok(reason)) => {
                let injected = hit.is_some() && points.fired();
                let disturbed = injected
                    && matches!(
                        reason,
                        StopReason::Error(_) | StopReason::Unjudged(_) | StopReason::ParkedProof
                    );
                outcome.reason = Some(reason);
                // A run that an injected failure ended is started again, as an operator would.
                if !disturbed || process > 12 {
                    break;
                }
                outcome.disk.after_crash(false);
                let orphan = hit.map_or(crate::fault::Orphan::Dies, |h| h.orphan);
                outcome.world.after_crash(orphan);
            }
            Ok(Err(why)) => {
                let injected = hit.is_some() && points.fired();
                if !injected {
                    outcome.violations.push(why);
                    break;
                }
                // The store could not be opened under a fault; the next process tries again.
                outcome.disk.after_crash(false);
            }
            Err(payload) => {
                if payload.downcast_ref::<Crash>().is_none() {
                    resume_unwind(payload);
                }
                outcome.disk.after_crash(points.lost());
                outcome.world.after_crash(hit.map_or(crate::fault::Orphan::Dies, |h| h.orphan));
                if process > 12 {
                    outcome.violations.push("does not come to rest".into());
                    break;
                }
            }
        }
    }
    let violations = std::mem::take(&mut outcome.world.outside.borrow_mut().violations);
    outcome.violations.extend(violations);
    outcome
}

fn one_process(
    scenario: &Scenario,
    disk: &SimDisk,
    world: &SimWorld,
    process: u64,
    digests: &Digests,
    asked: &mut bool,
) -> Result<StopReason, String> {
    let (store, report) = Store::open(disk.clone()).map_err(|e| format!("the store does not open: {e}"))?;
    let mut cfg = scenario.config(process + 1, digests.clone());
    cfg.torn = report.torn;
    world.begin(&cfg.run_id);
    let record = run_record(&cfg.run_id, digests);
    let mut engine = Engine::new(cfg, store, world.clone(), record);
    engine.start().map_err(|e| format!("the run does not start: {e}"))?;
    let mut idle = false;
    for step in 0..FUEL {
        if let Some(reason) = engine.stopped().cloned() {
            // What was ended on the way out reports its end; nobody listens.
            engine.wind_up();
            if reason == StopReason::Error(ErrorKind::Internal) {
                return Err("the loop called something of its own impossible".into());
            }
            return Ok(reason);
        }
        if let Some((at, ask)) = scenario.ask
            && !*asked
            && (step >= at || idle)
        {
            *asked = true;
            engine.feed(Event::Stop(match ask {
                Ask::Graceful => StopRequest::Graceful(15),
                Ask::AfterTick => StopRequest::AfterTick,
            }));
            continue;
        }
        if let Some(event) = engine.next_pending() {
            engine.feed(event);
            continue;
        }
        match world.next() {
            Next::Event(event) => engine.feed(event),
            Next::Acted => {}
            Next::Hangs => {
                // A peer that hangs is ended by its supervisor in the end.
                if idle {
                    use peers_run::ports::{Procs, World};
                    engine.world().procs().end_peer(true);
                }
                idle = true;
            }
            Next::Nothing => return Err(format!("nothing can happen any more in {:?}", phase_word(&engine))),
        }
    }
    Err(format!("out of fuel in {}", phase_word(&engine)))
}

fn phase_word(engine: &Engine<SimWorld>) -> String {
    let text = format!("{:?}", engine.phase());
    text.chars().take(60).collect()
}

fn run_record(id: &peers_model::RunId, digests: &Digests) -> RunRecord {
    RunRecord {
        v: 1,
        run_id: id.clone(),
        argv: Vec::new(),
        request: peers_model::RunRequest::default(),
        version: "sim".into(),
        sandbox: "sim".into(),
        tier: 0,
        credentials: std::collections::BTreeMap::new(),
        digests: digests.clone(),
        branch: None,
        workdir: String::new(),
        own_branch: false,
        into: None,
        base: None,
        pid: 100,
        starttime: None,
        boot_id: None,
        started_at: peers_model::Timestamp::default(),
        ready_at: None,
        ended_at: None,
        reason: None,
        detail: String::new(),
        exit_code: None,
        signal: None,
        iteration: 0,
        ticks_in_run: 0,
        head: None,
        proof: None,
        redactions: 0,
    }
}
