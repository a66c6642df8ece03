//! A tick for a terminal.

use peers_core::state::State;
use peers_model::record::{Record, TickRecord};

use super::tick::Replay;
use crate::budget;
use crate::page::{Cell, Colour, Page, Tone, faint, plain};
use crate::ticks::{TickRow, warnings};
use crate::watch::record_cells;
use crate::words::{bytes, count, count_of, duration_ms, thousands};

/// Lines of an output tail.
const TAIL: usize = 20;
/// Terminal cells of a warning, which is cut already.
const WARNING: usize = 400;

/// The tick for a terminal. Ends in a newline.
#[must_use]
pub fn replay_text(replay: &Replay, colour: Colour) -> String {
    replay_page(replay).text(colour)
}

/// The same as lines.
#[must_use]
pub fn replay_page(replay: &Replay) -> Page {
    let mut page = Page::new();
    match replay.record() {
        Some(record) => ended(&mut page, record),
        None => open(&mut page, replay),
    }
    records(&mut page, replay);
    changes(&mut page, replay);
    commits(&mut page, replay);
    files(&mut page, replay);
    tails(&mut page, replay);
    page
}

fn ended(page: &mut Page, record: &TickRecord) {
    let row = TickRow::of(record.started_at, None, record);
    let tone = if record.success { Tone::Good } else { Tone::Care };
    page.field("tick", Tone::Strong, format!("{} of {} ({})", row.tick, row.peer, record.tool));
    page.field("result", tone, row.result());
    if let Some(reason) = &crate::why_failed(record) {
        page.field("because", Tone::Care, reason);
    }
    let exit = &record.exit;
    let code = match (exit.code, exit.signal) {
        (Some(code), _) => format!(", exit code {code}"),
        (None, Some(signal)) => format!(", signal {signal}"),
        (None, None) => String::new(),
    };
    let took = duration_ms(exit.duration_ms);
    page.field("process", Tone::Plain, format!("{}{code}, {took}", record.classification));
    if let Some(matched) = &exit.matched {
        let place = matched.key.as_ref().map(|key| format!("`{key}`, ")).unwrap_or_default();
        let text = format!("{place}{} ({}): {}", matched.pattern, matched.source, matched.snippet);
        page.field("matched", Tone::Care, text);
    }
    page.field("cost", Tone::Plain, row.cost());
    page.field("began", Tone::Plain, record.started_at.to_string());
    let heads = format!("{} -> {}", record.head_before.short(), record.head_after.short());
    page.field("head", Tone::Plain, heads);
    if let Some(salvage) = &record.salvage {
        page.field("kept as", Tone::Plain, salvage);
    }
    for warning in warnings(record) {
        page.line(&[Cell::cut(Tone::Care, warning, WARNING)]);
    }
}

fn open(page: &mut Page, replay: &Replay) {
    let peer = replay.records.iter().find_map(|line| match &line.record {
        Record::TickStarted(started) => Some(started.peer.to_string()),
        _ => None,
    });
    page.field("tick", Tone::Strong, format!("{} of {}", replay.tick, peer.unwrap_or_default()));
    page.field("result", Tone::Care, "it is open: no record of its end");
}

fn records(page: &mut Page, replay: &Replay) {
    page.heading("records");
    for line in &replay.records {
        let mut cells = vec![plain("  ")];
        cells.extend(record_cells(line));
        page.line(&cells);
    }
    if replay.records_left_out > 0 {
        page.say(format!("  and {} more", thousands(replay.records_left_out)));
    }
}

fn changes(page: &mut Page, replay: &Replay) {
    page.heading("state before and after");
    let Some(after) = &replay.after else {
        page.say("  the tick has not ended");
        return;
    };
    page.table(
        2,
        facts(&replay.before)
            .into_iter()
            .zip(facts(after))
            .filter(|(old, new)| old.1 != new.1)
            .map(|((name, old), (_, new))| vec![plain(name), faint(old), plain(format!("-> {new}"))])
            .chain(named_changes(&replay.before, after)),
    );
}

/// What every state has.
fn facts(state: &State) -> Vec<(&'static str, String)> {
    let [money, tokens] = budget::totals(state);
    let short = |id: Option<&str>| id.and_then(|id| id.get(..8)).unwrap_or("-").to_owned();
    vec![
        ("ticks", state.ticks.to_string()),
        ("turn", state.turn_peer().map_or("-".to_owned(), ToString::to_string)),
        ("head", short(state.head.as_ref().map(peers_model::CommitId::as_str))),
        ("work tree", if state.dirty { "dirty" } else { "clean" }.to_owned()),
        ("clean ticks", state.clean_ticks.to_string()),
        ("skeptics passed", state.skeptic.passed.len().to_string()),
        ("failures in a row", state.spent.consecutive_failures.to_string()),
        ("tokens", tokens.words()),
        ("money", money.words()),
        ("run time", duration_ms(state.spent.peer_ms.saturating_add(state.spent.gate_ms))),
        ("warnings waiting", state.warnings.len().to_string()),
    ]
}

/// What goes by a name: peers, gates, reviews.
fn named_changes(before: &State, after: &State) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    let mut row = |name: String, old: String, new: String| {
        if old != new {
            rows.push(vec![plain(name), faint(old), plain(format!("-> {new}"))]);
        }
    };
    for peer in &after.rules.peers {
        let word = |state: &State| state.health(&peer.name).state.word().to_owned();
        row(format!("peer {}", peer.name), word(before), word(after));
    }
    for gate in &after.rules.gates {
        let word = |state: &State| {
            let last = state.board.gates.get(&gate.id).and_then(|standing| standing.last.as_ref());
            last.map_or("unknown", |judged| judged.verdict.word()).to_owned()
        };
        row(format!("gate {}", gate.id), word(before), word(after));
    }
    for soft in &after.rules.soft {
        let kept = |state: &State| {
            state
                .soft
                .get(&soft.id)
                .map_or_else(|| "0".to_owned(), |status| status.consensus_count.to_string())
        };
        row(format!("reviews of {}", soft.id), kept(before), kept(after));
    }
    rows
}

fn commits(page: &mut Page, replay: &Replay) {
    if replay.commits.is_empty() {
        return;
    }
    page.blank();
    let stat = replay
        .diffstat
        .map(|(files, added, deleted)| format!(": {}, +{added} -{deleted}", count(files, "file")));
    let title = format!("{}{}", count_of(&replay.commits, "commit"), stat.unwrap_or_default());
    page.tell(Tone::Strong, title);
    page.table(
        2,
        replay.commits.iter().map(|commit| {
            vec![
                faint(commit.id.short()),
                plain(commit.origin),
                Cell::cut(Tone::Plain, commit.subject.as_deref().unwrap_or("(not looked up)"), 120),
            ]
        }),
    );
}

fn files(page: &mut Page, replay: &Replay) {
    if replay.files.is_empty() {
        return;
    }
    page.heading("files");
    page.table(
        2,
        replay.files.iter().map(|file| {
            vec![
                plain(file.kind),
                faint(file.bytes.map_or_else(|| "not a plain file".to_owned(), bytes)),
                plain(&file.path),
            ]
        }),
    );
}

fn tails(page: &mut Page, replay: &Replay) {
    let Some(record) = replay.record() else { return };
    for (name, text) in
        [("end of stdout", &record.exit.stdout_tail), ("end of stderr", &record.exit.stderr_tail)]
    {
        if text.trim().is_empty() {
            continue;
        }
        page.heading(name);
        let shown = peers_sys::term::block(text);
        let lines: Vec<&str> = shown.lines().collect();
        for line in lines.iter().skip(lines.len().saturating_sub(TAIL)) {
            page.line(&[plain("  | "), plain(line)]);
        }
    }
}
