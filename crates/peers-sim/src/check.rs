//! The invariants that must hold after every schedule.

use std::collections::{BTreeMap, BTreeSet};

use peers_model::outcome::StopReason;
use peers_model::record::{Record, SkepticVerdict};
use peers_model::step::NotePart;
use peers_model::verdict::Verdict;
use peers_model::{CommitId, PeerName, Usd};
use peers_store::{Area, Disk as _, Journal, JournalError, Position, Store, layout, store};
use peers_sys::digest::sha256_hex;

use crate::run::Outcome;
use crate::scenario::{PLAN, PLAN_DONE, Scenario};
use crate::world::SimWorld;

/// Everything that is wrong with an outcome; empty = all invariants hold.
#[must_use]
pub fn check(scenario: &Scenario, outcome: &mut Outcome) -> Vec<String> {
    let mut wrong = outcome.violations.clone();
    let mut records = Vec::new();
    let mut disk = outcome.disk.clone();
    let read = Journal::open::<_, JournalError>(&mut disk, &Position::default(), false, |read| {
        records.push(read.line.record);
        Ok(())
    });
    if let Err(error) = read {
        wrong.push(format!("the journal does not verify: {error}"));
    }
    contiguous(&records, &mut wrong);
    attribution(outcome, &records, &mut wrong);
    corrections(outcome, &mut wrong);
    spending(&records, &mut wrong);
    folds(outcome, &mut wrong);
    notes(scenario, outcome, &records, &mut wrong);
    if outcome.world.outside.borrow().child.is_some() {
        wrong.push("a peer is alive after the loop has stopped".into());
    }
    match &outcome.reason {
        None => wrong.push("the loop never stopped".into()),
        Some(StopReason::Complete) => complete(scenario, outcome, &records, &mut wrong),
        Some(_) => {}
    }
    wrong
}

/// (1) Ticks are contiguous, each number once.
fn contiguous(records: &[Record], wrong: &mut Vec<String>) {
    let mut next = 1;
    for record in records {
        if let Record::Tick(tick) = record {
            if tick.iteration.0 != next {
                wrong.push(format!("tick {} where {next} was due", tick.iteration));
            }
            next = tick.iteration.0 + 1;
        }
    }
}

/// (2) The fold of the journal is the state, and the snapshot agrees with it.
fn folds(outcome: &mut Outcome, wrong: &mut Vec<String>) {
    let mut disk = outcome.disk.clone();
    match store::compare_snapshot(&mut disk) {
        Ok(None) => {}
        Ok(Some(what)) => wrong.push(format!("the snapshot {what}")),
        Err(error) => wrong.push(format!("the fold fails: {error}")),
    }
    // Opening again for writing must not change what a reader sees.
    let before = store::read(&mut disk).map(|(state, ..)| state);
    match (Store::open(disk), before) {
        (Ok((store, _)), Ok(state)) if *store.state() == state => {}
        (Ok(_), Ok(_)) => wrong.push("opening the store changed the state".into()),
        (Err(error), _) | (_, Err(error)) => wrong.push(format!("the store does not open: {error}")),
    }
}

/// (4) Each reachable commit stands in exactly one record.
fn attribution(outcome: &Outcome, records: &[Record], wrong: &mut Vec<String>) {
    let mut seen: BTreeMap<CommitId, u32> = BTreeMap::new();
    let mut put = |ids: &[CommitId]| {
        for id in ids {
            *seen.entry(id.clone()).or_default() += 1;
        }
    };
    let mut open_head = None;
    for record in records {
        match record {
            Record::RunStarted(started) => put(&started.operator),
            Record::CommitsSeen(seen) => put(&seen.commits),
            Record::TickStarted(started) => {
                open_head = Some(started.head_before.clone());
            }
            Record::Tick(tick) => {
                put(&tick.commits);
                put(&tick.foreign);
                put(&tick.own);
                open_head = None;
            }
            _ => {}
        }
    }
    let by_gates = outcome.world.outside.borrow().gate_commits.clone();
    for record in records {
        let claimed: &[CommitId] = match record {
            Record::RunStarted(started) => &started.operator,
            Record::CommitsSeen(seen) if !seen.while_gates => &seen.commits,
            Record::Tick(tick) => &tick.commits,
            _ => &[],
        };
        for id in claimed.iter().filter(|id| by_gates.contains(id)) {
            wrong.push(format!("commit {} of a gate is attributed by `{}`", id.short(), record.event()));
        }
    }
    for (id, count) in &seen {
        if *count > 1 {
            wrong.push(format!("commit {} is attributed {count} times", id.short()));
        }
    }
    // With a tick left open (git broke, say) its commits wait for the next run.
    if open_head.is_some() {
        return;
    }
    let recorded = records.iter().rev().find_map(|r| match r {
        Record::Tick(tick) => Some(tick.head_after.clone()),
        _ => None,
    });
    let Some(head) = recorded else { return };
    outcome.world.repository().with(|repo| {
        for id in repo.history(&head) {
            let first = repo.commits.get(&id).is_some_and(|c| c.parent.is_none());
            if !first && !seen.contains_key(&id) {
                wrong.push(format!("commit {} belongs to nobody", id.short()));
            }
        }
    });
}

/// (5) A correction happens once.
fn corrections(outcome: &Outcome, wrong: &mut Vec<String>) {
    outcome.world.repository().with(|repo| {
        let mut marks = BTreeSet::new();
        for id in repo.history(&repo.tip()) {
            let message = repo.commits.get(&id).map(|c| c.message.clone()).unwrap_or_default();
            if let Some(mark) = message.lines().find(|l| l.starts_with("Peers-Corrects:"))
                && !marks.insert(mark.to_owned())
            {
                wrong.push(format!("`{mark}` was done twice"));
            }
        }
    });
}

/// (6) Spending is monotone, and each tick is charged once.
fn spending(records: &[Record], wrong: &mut Vec<String>) {
    let mut total = Usd::ZERO;
    for record in records {
        if let Record::Tick(tick) = record {
            total += tick.exit.usage.usd.unwrap_or(Usd::ZERO);
            if tick.spent_usd_total != total {
                wrong.push(format!(
                    "tick {} says {} spent, the ticks say {total}",
                    tick.iteration, tick.spent_usd_total
                ));
            }
        }
    }
}

/// (8) What a record says was sealed is in the store as it says, and a step that was checked off was implemented by
/// one and read by another before.
fn notes(scenario: &Scenario, outcome: &mut Outcome, records: &[Record], wrong: &mut Vec<String>) {
    let mut by: [Option<&PeerName>; 2] = [None, None];
    for tick in records.iter().filter_map(|r| if let Record::Tick(tick) = r { Some(tick) } else { None }) {
        let Some(moved) = &tick.course else { continue };
        if let Some(note) = &moved.note {
            let path = format!("{}/{}", layout::store::NOTES, note.file);
            let kept = outcome.disk.read(Area::Store, &path, 4096).ok().flatten();
            if kept.is_none_or(|bytes| sha256_hex(&bytes) != note.sha256) {
                wrong.push(format!("{path} is not what tick {} says was sealed", tick.iteration));
            }
            by[usize::from(note.part == NotePart::Review)] = Some(&tick.peer);
        }
        let [author, reader] = by;
        if moved.checked_off && (author.is_none() || reader.is_none() || author == reader) {
            wrong.push(format!("tick {}: a step was checked off that nobody else had read", tick.iteration));
        }
    }
    let done = outcome.world.repository().with(|repo| repo.tree(&repo.tip()).get(PLAN).cloned());
    if scenario.has_plan()
        && outcome.reason == Some(StopReason::Complete)
        && done.as_deref() != Some(PLAN_DONE)
    {
        wrong.push("complete with an open step".into());
    }
}

/// (7) `complete` only when everything that it claims is true in the world.
fn complete(scenario: &Scenario, outcome: &Outcome, records: &[Record], wrong: &mut Vec<String>) {
    outcome.world.repository().with(|repo| {
        let head = repo.tip();
        let tree = repo.tree(&head);
        if tree != repo.work {
            wrong.push("complete with uncommitted changes".into());
        }
        for (id, measure) in &scenario.gates {
            if SimWorld::measure(*measure, &tree, false) != Verdict::Pass {
                wrong.push(format!("complete, but gate {id} is not green in a clean checkout"));
            }
        }
        let proved = records.iter().any(|r| {
            matches!(r, Record::Proof(p) if p.passed && repo.tree(&p.at.head) == tree)
        });
        if !proved {
            wrong.push("complete without a proof of this tree".into());
        }
        let skeptic = records.iter().any(|r| {
            matches!(r, Record::Tick(t) if t.skeptic == Some(SkepticVerdict::Clean) && repo.tree(&t.head_after) == tree)
        });
        if !skeptic {
            wrong.push("complete without a skeptic's word about this tree".into());
        }
    });
    if scenario.gates.is_empty() {
        wrong.push("complete without a gate".into());
    }
}
