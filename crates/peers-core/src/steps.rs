//! Steps of the plan: who has which next, and as what.
//!
//! One peer implements a step and hands in notes. Each other one reads the commits alone and hands in what it read;
//! then one of them sees all notes and checks the step off, or sends it back. Who checked the last one off
//! implements the next. Nobody ever reviews a step that it implements, also where nobody else is there.

use peers_model::record::{TickRecord, TickStarted};
use peers_model::step::{NotePart, SealedNote, StepRole, StepWork};
use peers_model::{CommitId, PeerName, StepId};
use serde::{Deserialize, Serialize};

use crate::plan::{Mark, Plan, Step};

/// The steps that were given out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StepBook {
    /// The step at hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<CurrentStep>,
    /// Who checked the last one off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<PeerName>,
}

/// The step at hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentStep {
    /// Which.
    pub step: StepId,
    /// Who began it, and ends it.
    pub implementer: PeerName,
    /// HEAD before.
    pub base: CommitId,
    /// The notes of its implementer; absent while it is implemented.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_in: Option<SealedNote>,
    /// What was read in its commits, by whom.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<(PeerName, SealedNote)>,
}

/// What the plan asks for next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Due {
    /// A turn of one of these, the first that can go.
    Turn(StepWork, Vec<PeerName>),
    /// Every step that is open is blocked, or waits for one that is.
    Blocked(Vec<StepId>),
    /// No step is open.
    Nothing,
}

/// Those who share the steps.
#[derive(Debug, Clone, Copy)]
pub struct Team<'a> {
    /// In the order of their turns, whoever has the turn first.
    pub peers: &'a [PeerName],
    /// Those of them who may have a turn in this run, now or later.
    pub able: &'a [PeerName],
}

impl Team<'_> {
    fn is_able(&self, peer: &PeerName) -> bool {
        self.able.contains(peer)
    }
}

/// Says whose turn it is about which step. `head` is where a new step begins.
#[must_use]
pub fn due(plan: &Plan, book: &StepBook, team: Team<'_>, head: &CommitId) -> Due {
    let at_hand = book.current.as_ref().filter(|current| {
        let step = plan.steps.iter().find(|step| step.id == current.step);
        step.is_some_and(|step| !matches!(step.mark, Mark::Blocked | Mark::BlockedAck))
    });
    if let Some(current) = at_hand {
        let (role, who) = part(current, team);
        let head = current.handed_in.as_ref().map(|note| note.head.clone());
        return Due::Turn(StepWork { step: current.step, role, base: current.base.clone(), head }, who);
    }
    let is_done = |id: &StepId| {
        let step = plan.steps.iter().find(|step| step.id == *id);
        step.is_some_and(|step| matches!(step.mark, Mark::Done | Mark::BlockedAck))
    };
    let open = || plan.steps.iter().filter(|step| matches!(step.mark, Mark::Open | Mark::Partial));
    if let Some(step) = open().find(|step| step.depends.iter().all(is_done)) {
        let work = StepWork { step: step.id, role: StepRole::Implement, base: head.clone(), head: None };
        let first = book.next.iter().chain(team.peers);
        let mut able = first.clone().filter(|peer| team.is_able(peer)).chain(first.clone());
        return Due::Turn(work, able.next().cloned().into_iter().collect());
    }
    let left = |step: &&Step| !is_done(&step.id);
    let left: Vec<StepId> = plan.steps.iter().filter(left).map(|step| step.id).collect();
    if left.is_empty() { Due::Nothing } else { Due::Blocked(left) }
}

/// What the step at hand needs, and by whom.
fn part(current: &CurrentStep, team: Team<'_>) -> (StepRole, Vec<PeerName>) {
    let CurrentStep { implementer, handed_in, reviews, .. } = current;
    if handed_in.is_none() {
        return (StepRole::Implement, vec![implementer.clone()]);
    }
    let others = || team.peers.iter().filter(|peer| *peer != implementer);
    let has_read = |peer: &PeerName| reviews.iter().any(|(by, _)| by == peer);
    let missing: Vec<PeerName> =
        others().filter(|peer| team.is_able(peer) && !has_read(peer)).cloned().collect();
    if !missing.is_empty() {
        return (StepRole::Review, missing);
    }
    if reviews.is_empty() {
        return (StepRole::Review, others().cloned().collect());
    }
    let readers = || reviews.iter().map(|(by, _)| by);
    let reader = readers().find(|peer| team.is_able(peer)).or_else(|| readers().next());
    (StepRole::Compare, reader.cloned().into_iter().collect())
}

impl StepBook {
    /// Takes a turn in.
    pub(crate) fn after(&mut self, started: &TickStarted, tick: &TickRecord) {
        let Some(work) = started.course.as_ref().and_then(|course| course.work.as_ref()) else { return };
        let moved = tick.course.as_deref().cloned().unwrap_or_default();
        if work.role == StepRole::Implement
            && self.current.as_ref().is_none_or(|current| current.step != work.step)
            && (!tick.commits.is_empty() || moved.note.is_some())
        {
            // Who began it goes on: its lines are its own.
            self.current = Some(CurrentStep {
                step: work.step,
                implementer: tick.peer.clone(),
                base: work.base.clone(),
                handed_in: None,
                reviews: Vec::new(),
            });
        }
        let Some(current) = self.current.as_mut().filter(|current| current.step == work.step) else { return };
        match (work.role, moved.note) {
            (StepRole::Implement, Some(note)) if note.part == NotePart::Impl => {
                current.handed_in = Some(note);
                current.reviews.clear();
            }
            (StepRole::Review, Some(note)) if note.part == NotePart::Review => {
                if tick.peer != current.implementer {
                    current.reviews.push((tick.peer.clone(), note));
                }
            }
            (StepRole::Compare, _) if moved.checked_off => {
                self.next = Some(tick.peer.clone());
                self.current = None;
            }
            // It is not what it should be: it goes back, and what was read of it is void.
            (StepRole::Compare, _) if tick.success => {
                current.handed_in = None;
                current.reviews.clear();
            }
            (StepRole::Implement | StepRole::Review | StepRole::Compare, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers(names: &[&str]) -> Vec<PeerName> {
        names.iter().map(|name| PeerName::new(*name).unwrap()).collect()
    }

    fn commit(digit: char) -> CommitId {
        CommitId::new(digit.to_string().repeat(40)).unwrap()
    }

    fn note(part: NotePart) -> SealedNote {
        SealedNote {
            step: StepId::new(1).unwrap(),
            part,
            base: commit('a'),
            head: commit('b'),
            words: 20,
            sha256: String::new(),
            file: String::new(),
        }
    }

    fn plan(steps: &str) -> Plan {
        let text = format!("# F\n## Meta\nsurfaces: [cli]\nacceptance: true\n## Steps\n{steps}");
        crate::plan::parse(text.as_bytes()).plan.unwrap_or_else(|| panic!("{text}"))
    }

    /// `role:peer,peer` and the step, or what else is due.
    fn said(plan: &Plan, book: &StepBook, team: &[&str], able: &[&str]) -> String {
        let (all, able) = (peers(team), peers(able));
        match due(plan, book, Team { peers: &all, able: &able }, &commit('c')) {
            Due::Turn(work, who) => {
                let who: Vec<String> = who.iter().map(ToString::to_string).collect();
                format!("{} {} {}", work.step.number(), work.role.word(), who.join(","))
            }
            Due::Blocked(steps) => format!("blocked {}", steps.len()),
            Due::Nothing => "nothing".to_owned(),
        }
    }

    fn at_hand(handed_in: bool, reviewers: &[&str]) -> StepBook {
        StepBook {
            current: Some(CurrentStep {
                step: StepId::new(1).unwrap(),
                implementer: PeerName::new("ann").unwrap(),
                base: commit('a'),
                handed_in: handed_in.then(|| note(NotePart::Impl)),
                reviews: peers(reviewers).into_iter().map(|by| (by, note(NotePart::Review))).collect(),
            }),
            next: None,
        }
    }

    #[test]
    fn a_step_is_implemented_by_one_and_read_by_all_others_who_are_there() {
        let open = plan("- [ ] [STEP-1] a\n  - touches: a\n");
        let (two, three) = (&["ann", "ben"][..], &["ann", "ben", "cid"][..]);
        for (book, team, able, due) in [
            (StepBook::default(), two, two, "1 implement ann"),
            // Who cannot go begins nothing.
            (StepBook::default(), two, &["ben"][..], "1 implement ben"),
            (at_hand(false, &[]), two, two, "1 implement ann"),
            // Whose step it is waits; it goes to nobody else.
            (at_hand(false, &[]), two, &["ben"], "1 implement ann"),
            (at_hand(true, &[]), two, two, "1 review ben"),
            // Never the implementer, also where nobody else is there.
            (at_hand(true, &[]), two, &["ann"], "1 review ben"),
            (at_hand(true, &[]), three, three, "1 review ben,cid"),
            (at_hand(true, &["ben"]), three, three, "1 review cid"),
            (at_hand(true, &["ben"]), three, &["ann", "ben"], "1 compare ben"),
            (at_hand(true, &["cid", "ben"]), three, three, "1 compare cid"),
            (at_hand(true, &["ben"]), two, &["ann"], "1 compare ben"),
        ] {
            assert_eq!(said(&open, &book, team, able), due, "{book:?} {able:?}");
        }
    }

    #[test]
    fn steps_come_in_their_order_and_blocked_ones_block() {
        let two = &["ann", "ben"][..];
        let next = StepBook { current: None, next: Some(PeerName::new("ben").unwrap()) };
        for (steps, book, due) in [
            ("- [x] [STEP-1] a\n  - touches: a\n- [ ] [STEP-2] b\n  - touches: b\n", next, "2 implement ben"),
            (
                "- [ ] [STEP-1] a\n  - touches: a\n  - depends: STEP-2\n- [PARTIAL] [STEP-2] b\n  - touches: b\n",
                StepBook::default(),
                "2 implement ann",
            ),
            (
                "- [ ] [STEP-1] a\n  - touches: a\n  - depends: STEP-2\n- [BLOCKED] [STEP-2] b\n  - touches: b\n",
                StepBook::default(),
                "blocked 2",
            ),
            // A step that turns out to be blocked is put down.
            ("- [BLOCKED] [STEP-1] a\n  - touches: a\n", at_hand(false, &[]), "blocked 1"),
            ("- [BLOCKED-ACK] [STEP-1] a\n  - touches: a\n", at_hand(false, &[]), "nothing"),
            // One that its author marked as done is still to be read by another.
            ("- [x] [STEP-1] a\n  - touches: a\n", at_hand(true, &[]), "1 review ben"),
            ("- [x] [STEP-1] a\n  - touches: a\n", StepBook::default(), "nothing"),
        ] {
            assert_eq!(said(&plan(steps), &book, two, two), due, "{steps}");
        }
    }
}
