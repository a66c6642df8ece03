//! Which step comes before which: unknown ones, and those that wait for themselves.

use std::collections::BTreeMap;

use super::problem::Report;
use super::steps::Draft;
use peers_model::StepId;

/// Steps of one circle that are named.
const NAMED: usize = 12;

/// Tells each step that no order can be found for. Of circles that share steps one is told.
pub(super) fn check(drafts: &[Draft], ids: &BTreeMap<StepId, usize>, report: &mut Report) {
    let mut before: BTreeMap<StepId, Vec<StepId>> = BTreeMap::new();
    for draft in drafts {
        let id = draft.step.id;
        let mut known = Vec::new();
        for other in &draft.step.depends {
            if *other == id {
                report.error(draft.depends_at(), format!("{id} depends on itself"));
            } else if ids.contains_key(other) {
                known.push(*other);
            } else {
                report.error(draft.depends_at(), format!("{id} depends on {other}, which does not exist"));
            }
        }
        // An id that stands there twice is told already.
        before.entry(id).or_insert(known);
    }
    let stuck = without_order(&before);
    for circle in circles(&stuck) {
        let line = circle.first().and_then(|id| ids.get(id)).copied().unwrap_or(1);
        report.error(line, format!("steps wait for each other: {}", path(&circle)));
    }
}

/// What is left when each step that waits for nothing is taken away, again and again; of each what it still
/// waits for, which is never nothing.
fn without_order(before: &BTreeMap<StepId, Vec<StepId>>) -> BTreeMap<StepId, Vec<StepId>> {
    let mut waits: BTreeMap<StepId, usize> = BTreeMap::new();
    let mut after: BTreeMap<StepId, Vec<StepId>> = BTreeMap::new();
    for (id, others) in before {
        waits.insert(*id, others.len());
        for other in others {
            after.entry(*other).or_default().push(*id);
        }
    }
    let mut free: Vec<StepId> = waits.iter().filter(|(_, count)| **count == 0).map(|(id, _)| *id).collect();
    while let Some(id) = free.pop() {
        waits.remove(&id);
        for next in after.get(&id).into_iter().flatten() {
            if let Some(count) = waits.get_mut(next) {
                *count -= 1;
                if *count == 0 {
                    free.push(*next);
                }
            }
        }
    }
    let left = |id: &StepId| waits.contains_key(id);
    before
        .iter()
        .filter(|(id, _)| left(id))
        .map(|(id, others)| (*id, others.iter().copied().filter(left).collect()))
        .collect()
}

/// Follows each step to the first one that it waits for, until a circle closes. Each begins at its smallest id.
fn circles(stuck: &BTreeMap<StepId, Vec<StepId>>) -> Vec<Vec<StepId>> {
    let mut circles = Vec::new();
    // In which walk, and where in it, a step was met.
    let mut met: BTreeMap<StepId, (StepId, usize)> = BTreeMap::new();
    for start in stuck.keys() {
        let mut walk = Vec::new();
        let mut at = *start;
        let closes = loop {
            if let Some((of, place)) = met.get(&at) {
                break (of == start).then_some(*place);
            }
            met.insert(at, (*start, walk.len()));
            walk.push(at);
            match stuck.get(&at).and_then(|others| others.first()) {
                Some(next) => at = *next,
                None => break None,
            }
        };
        if let Some(place) = closes {
            let mut circle = walk.split_off(place);
            let smallest = (0..circle.len()).min_by_key(|at| circle.get(*at).copied()).unwrap_or(0);
            circle.rotate_left(smallest);
            circles.push(circle);
        }
    }
    circles
}

/// `STEP-1 -> STEP-2 -> STEP-1`.
fn path(circle: &[StepId]) -> String {
    let mut words: Vec<String> = circle.iter().take(NAMED).map(StepId::to_string).collect();
    if circle.len() > NAMED {
        words.push(format!("{} more", circle.len() - NAMED));
    }
    words.extend(circle.first().map(StepId::to_string));
    words.join(" -> ")
}
