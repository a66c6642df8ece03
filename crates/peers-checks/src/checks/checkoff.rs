//! `checkoff`: who marks a step as done is not who did it (`modes.md` §5.6).
//!
//! A checkoff is any commit in which a step becomes done, whatever it was before. Its peer signs each line that the
//! files of the step got by then and that another one wrote. A line of its own needs another signature: the
//! checkoff of another step by somebody else, or a review record.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use peers_core::plan::{Mark, Plan, Step, StepId, parse};
use peers_git::Origin;
use peers_model::{CommitId, PeerName, check, limits};

use crate::attribution::Writer;
use crate::check::Check;
use crate::cx::{CheckCx, CouldNot};
use crate::plan::{Named, PLAN, Touches, about, at_head, named, steps};
use crate::report::{Finding, Report, Verdict};
use crate::reviews::Reviews;

/// Git's file modes of regular files.
const REGULAR: [u32; 2] = [0o100_644, 0o100_755];

pub(crate) const CHECK: Check = Check {
    name: check::CHECKOFF.name,
    about: "Each step was checked off by a peer that did not write it, or its lines were reviewed by another",
    args: check::CHECKOFF.args,
    run: |cx, _| match at_head(cx) {
        Ok(plan) => judge(cx, &plan).unwrap_or_else(Report::from),
        Err(report) => *report,
    },
};

/// The newest commit in which a step became done.
struct Checkoff<'a> {
    step: &'a Step,
    touches: Touches,
    commit: CommitId,
    /// Absent: the operator's.
    peer: Option<PeerName>,
}

fn judge(cx: &CheckCx, plan: &Plan) -> Result<Report, CouldNot> {
    let done: Vec<&Step> = plan.steps.iter().filter(|step| step.mark == Mark::Done).collect();
    if done.is_empty() {
        return Ok(Report::new(Verdict::Pass, "no step is done yet"));
    }
    let reviews = Reviews::read(cx)?;
    let made = transitions(cx, &reviews)?;
    let mut findings = Vec::new();
    let mut known: Vec<Checkoff<'_>> = Vec::new();
    for step in done.iter().copied() {
        match made.newest.get(&step.id) {
            // Done before the first turn: by the operator.
            None if made.at_base.contains(&step.id) => {}
            None => {
                findings.push(about(step, "no-checkoff", "is done, and no commit since the base made it so"));
            }
            Some(commit) => {
                let peer = reviews.whose().speaker(commit);
                if peer.is_none() && reviews.whose().writer(commit) != Writer::Operator {
                    let what = format!("was checked off in {}, and nobody saw who made that", commit.short());
                    findings.push(about(step, "unattributed", &what));
                } else {
                    let (touches, commit) = (Touches::of(step), commit.clone());
                    known.push(Checkoff { step, touches, commit, peer });
                }
            }
        }
    }
    let book = Book { cx, reviews: &reviews, known: &known, ancestors: RefCell::default() };
    for checkoff in &known {
        if let Some(peer) = &checkoff.peer {
            findings.extend(book.defects(checkoff, peer)?);
        }
    }
    let bad = findings.len();
    let mut report = if bad == 0 {
        Report::new(Verdict::Pass, format!("{} checked off by somebody else", steps(done.len())))
    } else {
        Report::new(Verdict::Fail, "steps were checked off by those who did them, or by nobody known")
    };
    report.count("done", done.len());
    report.hint = (bad > 0).then(|| {
        "the other peer reads the lines and commits `Peers-Review: <path>@<blob id>`, or unchecks the step and checks it off itself"
            .to_owned()
    });
    report.findings = findings;
    Ok(report)
}

/// When steps became done.
struct Transitions {
    newest: BTreeMap<StepId, CommitId>,
    at_base: BTreeSet<StepId>,
}

/// Compares the plan of each commit with those of its parents.
fn transitions(cx: &CheckCx, reviews: &Reviews<'_>) -> Result<Transitions, CouldNot> {
    let facts = cx.facts()?;
    let cap = usize::try_from(limits::CONFIG).unwrap_or(usize::MAX);
    let mut read: BTreeMap<String, BTreeSet<StepId>> = BTreeMap::new();
    let mut done = |commit: &CommitId| -> Result<BTreeSet<StepId>, CouldNot> {
        let fail = |e| CouldNot::git("read the plan of a commit", &e);
        let Some(id) = facts.file_id(commit, PLAN).map_err(fail)? else { return Ok(BTreeSet::new()) };
        if let Some(known) = read.get(&id) {
            return Ok(known.clone());
        }
        // One that is too large or no plan says of nothing that it is done: whoever makes it readable again is who
        // marks its steps.
        let plan = facts.read_object(&id, cap).ok().and_then(|bytes| parse(&bytes).plan);
        let steps = plan.map(|plan| plan.steps).unwrap_or_default();
        let found: BTreeSet<StepId> =
            steps.iter().filter(|step| step.mark == Mark::Done).map(|step| step.id).collect();
        read.insert(id, found.clone());
        Ok(found)
    };
    let mut newest = BTreeMap::new();
    for commit in reviews.commits() {
        let here = done(&commit.id)?;
        if here.is_empty() {
            continue;
        }
        let mut before = BTreeSet::new();
        for parent in &commit.parents {
            before.extend(done(parent)?);
        }
        for step in here.difference(&before) {
            newest.insert(*step, commit.id.clone());
        }
    }
    let at_base = cx.base().map(&mut done).transpose()?.unwrap_or_default();
    Ok(Transitions { newest, at_base })
}

/// What is known of all done steps.
struct Book<'a> {
    cx: &'a CheckCx,
    reviews: &'a Reviews<'a>,
    known: &'a [Checkoff<'a>],
    /// Whether the first of two commits is in the history of the second, as far as it was asked.
    ancestors: RefCell<BTreeMap<(CommitId, CommitId), bool>>,
}

impl Book<'_> {
    /// Lines of a step that nobody but their author signed.
    fn defects(&self, checkoff: &Checkoff<'_>, peer: &PeerName) -> Result<Vec<Finding>, CouldNot> {
        let Checkoff { step, touches, .. } = checkoff;
        if step.touches.is_empty() {
            return self.without_files(step);
        }
        let fail = |e| CouldNot::git("list the files of a step", &e);
        let files = self.cx.facts()?.list_tree(&checkoff.commit).map_err(fail)?;
        let (mut findings, mut new) = (Vec::new(), 0_usize);
        for file in files.iter().filter(|file| REGULAR.contains(&file.mode) && touches.holds(&file.path)) {
            let origins = self.reviews.origins(&checkoff.commit, &file.path)?;
            let added: Vec<(usize, &Origin)> =
                (1..).zip(origins.iter()).filter(|(_, line)| self.reviews.is_new(&line.commit)).collect();
            new += added.len();
            let mut unsigned = Vec::new();
            let mut signed = None;
            for (number, line) in added {
                if self.checked_off_by_other(&file.path, line)? {
                    continue;
                }
                if signed.is_none() {
                    signed = Some(self.reviews.signed(&file.path)?);
                }
                if !signed.as_ref().is_some_and(|signed| signed.contains(line)) {
                    unsigned.push((number, self.reviews.writer(line)));
                }
            }
            findings.extend(unsigned_lines(step, &file.path, &unsigned));
        }
        // Who only took lines away, or named files that are not there, is held by the commit of the step.
        if new == 0 && findings.is_empty() {
            let commits = self.reviews.commits().iter().map(|commit| &commit.id);
            let other = match named(step, commits) {
                Named::Commit(id) => self.reviews.whose().writer(&id).is_other_than(peer),
                Named::Nothing | Named::Unknown => false,
            };
            if !other {
                let what =
                    format!("was checked off by {peer}, added no line, and names no commit of another peer");
                findings.push(about(step, "self-checkoff", &what));
            }
        }
        Ok(findings)
    }

    /// Whether the checkoff of a step with this file, by a peer that did not write the line, came after the line.
    fn checked_off_by_other(&self, path: &str, line: &Origin) -> Result<bool, CouldNot> {
        let writer = self.reviews.writer(line);
        if writer == Writer::Unknown {
            return Ok(false);
        }
        for Checkoff { touches, commit, peer, .. } in self.known {
            let by_other = peer.as_ref().is_none_or(|peer| writer.is_other_than(peer));
            if by_other && touches.holds(path) && self.is_before(&line.commit, commit)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a commit is in the history of another.
    fn is_before(&self, one: &CommitId, other: &CommitId) -> Result<bool, CouldNot> {
        let key = (one.clone(), other.clone());
        if let Some(known) = self.ancestors.borrow().get(&key) {
            return Ok(*known);
        }
        let found = self.cx.facts()?.is_ancestor(one, other);
        let found = found.map_err(|e| CouldNot::git("compare two commits", &e))?;
        self.ancestors.borrow_mut().insert(key, found);
        Ok(found)
    }

    /// A step without files: another peer than the author of its commit says in a later commit that it looked.
    fn without_files(&self, step: &Step) -> Result<Vec<Finding>, CouldNot> {
        let commits = self.reviews.commits().iter().map(|commit| &commit.id);
        let Named::Commit(id) = named(step, commits) else {
            return Ok(vec![about(step, "no-commit", "has no files and names no commit")]);
        };
        let writer = self.reviews.whose().writer(&id);
        for (reviewer, commit) in self.reviews.of_anchor(PLAN, &step.id.to_string()) {
            let after = *commit != id && self.is_before(&id, commit)?;
            if after && writer.is_other_than(reviewer) {
                return Ok(Vec::new());
            }
        }
        let what = format!("has no files, and no other peer commits `Peers-Review: {PLAN}#{}`", step.id);
        Ok(vec![about(step, "unreviewed", &what)])
    }
}

/// A finding for each writer with lines that nobody else signed.
fn unsigned_lines(step: &Step, path: &str, unsigned: &[(usize, Writer)]) -> Vec<Finding> {
    let mut by_writer: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (number, writer) in unsigned {
        let name = match writer {
            Writer::Peer(peer) => peer.to_string(),
            Writer::Operator => "the operator".to_owned(),
            Writer::Unknown => "nobody known".to_owned(),
        };
        by_writer.entry(name).or_insert((*number, 0)).1 += 1;
    }
    let finding = |(writer, (first, count)): (String, (usize, usize))| {
        let lines = if count == 1 { "1 line".to_owned() } else { format!("{count} lines") };
        let what = format!("{}: {lines} written by {writer}, signed by no other peer", step.id);
        Finding::at(path, u64::try_from(first).ok(), "unsigned", &what, None)
    };
    by_writer.into_iter().map(finding).collect()
}
