//! `peers watch`: the journal, decoded line by line.

use peers_model::record::{CorrectionKind, Line, Record, RunStarted};
use peers_model::verdict::Judged;
use peers_sys::term;
use serde_json::json;

use crate::diagnostic::stop_detail;
use crate::feed::FeedItem;
use crate::history::{operator_words, seen_words};
use crate::json;
use crate::page::{Cell, Colour, Page, Tone, faint};
use crate::ticks::TickRow;
use crate::words::{self, count_of, duration_ms};

/// Terminal cells of one line's text.
const TEXT: usize = 240;

/// One line for a terminal, with its end.
#[must_use]
pub fn watch_line(item: &FeedItem, colour: Colour) -> String {
    let mut page = Page::new();
    page.line(&watch_cells(item));
    page.text(colour)
}

/// The same as pieces.
#[must_use]
pub fn watch_cells(item: &FeedItem) -> Vec<Cell> {
    match item {
        FeedItem::Line(line) => record_cells(line).to_vec(),
        FeedItem::Unreadable { segment, offset, why } => {
            let text = format!("the line at byte {offset} of segment {segment} {why}");
            vec![Cell::new(Tone::Bad, "unreadable: "), Cell::cut(Tone::Plain, text, TEXT)]
        }
        FeedItem::Replaced => {
            vec![Cell::new(Tone::Care, "the journal is another one; it is shown from its start")]
        }
    }
}

/// When, what kind, and what it says.
pub(crate) fn record_cells(line: &Line) -> [Cell; 3] {
    let (tone, text) = words_of(line);
    [
        faint(format!("{} ", line.ts)),
        Cell::new(tone, format!("{:<18} ", line.record.event())),
        Cell::cut(Tone::Plain, text, TEXT),
    ]
}

/// One line of NDJSON, schema `peers.watch/1`, with its end.
#[must_use]
pub fn watch_json(item: &FeedItem) -> String {
    match item {
        FeedItem::Line(line) => json::line("peers.watch/1", &json!({"kind": "record", "record": line})),
        FeedItem::Unreadable { segment, offset, why } => json::line(
            "peers.watch/1",
            &json!({"kind": "unreadable", "segment": segment, "offset": offset, "why": why}),
        ),
        FeedItem::Replaced => json::line("peers.watch/1", &json!({"kind": "replaced"})),
    }
}

/// What a record says, one line.
pub(crate) fn text(line: &Line) -> String {
    term::line(&words_of(line).1, TEXT)
}

fn words_of(line: &Line) -> (Tone, String) {
    match &line.record {
        Record::RunStarted(run) => (Tone::Strong, started(run)),
        Record::TickStarted(tick) => {
            let kind = if tick.skeptic { " as skeptic" } else { "" };
            let at = tick.head_before.short();
            (
                Tone::Plain,
                format!(
                    "tick {}: {}{kind} at {at}, prompt of {}",
                    tick.tick,
                    tick.peer,
                    words::bytes(tick.prompt_bytes)
                ),
            )
        }
        Record::PeerSpawned(spawned) => {
            (Tone::Plain, format!("tick {}: process {}", spawned.tick, spawned.pid))
        }
        Record::TurnEnded(ended) => (
            Tone::Faint,
            format!("tick {}: the turn ended at {}, gates follow", ended.tick, ended.head.short()),
        ),
        Record::CorrectionPlanned(plan) => {
            let what = match plan.kind {
                CorrectionKind::Revert => "revert to",
                CorrectionKind::RestoreHistory => "restore history to",
                CorrectionKind::RestoreBranch => "restore the branch at",
                CorrectionKind::Reset => "reset to",
            };
            (Tone::Care, format!("tick {}: {what} {} ({})", plan.tick, plan.to.short(), plan.reason))
        }
        Record::Tick(tick) => {
            let row = TickRow::of(line.ts, None, tick);
            let why = row.reason.as_deref().map(|why| format!("; {why}")).unwrap_or_default();
            let text = format!(
                "tick {}: {} {}, {}, {}, {}{why}",
                row.tick,
                row.peer,
                row.result(),
                count_of(&row.commits, "commit"),
                duration_ms(row.duration_ms),
                row.cost()
            );
            (if row.success { Tone::Good } else { Tone::Care }, text)
        }
        Record::Gates(gates) => verdicts(&gates.verdicts, gates.took_ms, gates.green.zip(gates.of)),
        Record::Proof(proof) => {
            let (tone, text) = verdicts(&proof.verdicts, proof.took_ms, None);
            let result = if proof.passed { "passed" } else { "did not pass" };
            (tone, format!("{result} at {}: {text}", proof.at.head.short()))
        }
        Record::Trial(trial) => {
            let (tone, text) = verdicts(&trial.verdicts, trial.took_ms, None);
            let cut = if trial.cut { "cut off, " } else { "" };
            (
                tone,
                format!(
                    "before the first turn, in a clean checkout of {}: {cut}{text}",
                    trial.at.head.short()
                ),
            )
        }
        Record::Cooling(cooling) => (
            Tone::Care,
            format!(
                "{} waits until {} ({}, {} in a row)",
                cooling.peer,
                words::ahead(line.ts, cooling.until),
                cooling.cause.word(),
                cooling.streak
            ),
        ),
        Record::CommitsSeen(seen) if seen.commits.is_empty() => {
            (Tone::Faint, "the gates that were cut off have committed nothing".to_owned())
        }
        Record::CommitsSeen(seen) => {
            let who = if seen.while_gates { "somebody" } else { "the operator" };
            (Tone::Strong, format!("{who} {}", seen_words(seen)))
        }
        Record::Operator(op) => (Tone::Strong, format!("{} {}", op.by, operator_words(&op.op))),
        Record::MirrorRestored(restored) => {
            let tick = restored.tick.map(|tick| format!(" after tick {tick}")).unwrap_or_default();
            (Tone::Care, format!("the mirror{tick} {}", restored.what))
        }
        Record::HookFailed(failed) => {
            let times = if failed.times > 1 { format!(" ({} times)", failed.times) } else { String::new() };
            (Tone::Care, format!("tick {}: {}{times}", failed.tick, failed.words()))
        }
        Record::Checkpoint(_) => (Tone::Faint, "the journal goes on in a new segment".to_owned()),
        Record::Exit(exit) => {
            let detail = stop_detail(Some(&exit.reason), &exit.detail);
            let detail = if detail.is_empty() { detail } else { format!(": {detail}") };
            (
                Tone::Strong,
                format!("{} after {}{detail}", exit.reason, words::count(exit.ticks_in_run, "tick")),
            )
        }
    }
}

fn started(run: &RunStarted) -> String {
    let branch = run.branch.as_deref().unwrap_or("a detached HEAD");
    let confined =
        if run.sandbox == "none" { "unconfined".to_owned() } else { format!("sandbox {}", run.sandbox) };
    let peers: Vec<String> = run.rules.peers.iter().map(|p| p.name.to_string()).collect();
    format!(
        "at {} on {branch}, {}, {}; {confined}",
        run.head.short(),
        count_of(&run.rules.gates, "gate"),
        peers.join(" and ")
    )
}

/// `counted` is how many gates are green and how many there are; where no record says so, of those that ran.
fn verdicts(verdicts: &[Judged], took_ms: u64, counted: Option<(u32, u32)>) -> (Tone, String) {
    if verdicts.is_empty() {
        // The tree moved under the gates, or they were cut off.
        return (Tone::Care, format!("no verdict stands, after {}", duration_ms(took_ms)));
    }
    let n = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let others: Vec<String> = verdicts
        .iter()
        .filter(|judged| !judged.verdict.is_pass())
        .map(|judged| format!("{} ({})", judged.goal, judged.verdict.word()))
        .collect();
    let ran = (n(verdicts.len() - others.len()), n(verdicts.len()));
    let (green, of) = counted.map_or(ran, |(green, of)| (green.into(), of.into()));
    let tone = match others.is_empty() {
        true if green == of => Tone::Good,
        true => Tone::Plain,
        false => Tone::Bad,
    };
    (tone, words::gates_green((green, of), took_ms, &others))
}
