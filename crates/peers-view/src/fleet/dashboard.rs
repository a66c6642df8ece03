//! `peers-ctl dashboard`.

use peers_model::Usd;
use peers_sys::term;

use super::all::{Fleet, Summary, cost_cell, gates_cell};
use super::grid::{Column, Grid};
use super::list::tone;
use crate::advice::Level;
use crate::page::{Cell, Colour, Page, Tone, faint, plain};
use crate::row::{LoopRow, LoopState};
use crate::words::count;

/// Columns leave in the order in which those of the terminal interface do: of what was done, of money, of the
/// newest sign of life, of bugs.
const fn columns(name: usize) -> [Column; 8] {
    [
        Column::new("NAME", name),
        Column::new("STATE", 12),
        Column::new("TICKS", 7).right().leaves(0),
        Column::new("GATES", 12),
        Column::new("BLOCKING", 8).right().leaves(3),
        Column::new("COST", 10).right().leaves(1),
        Column::new("LAST", 7).right().leaves(2),
        Column::new("WHY → ACTION", 0),
    ]
}

/// Cells of a name, and of one on a terminal that is not wide.
const NAME: (usize, usize) = (26, 18);
/// So many cells are wide.
const IS_WIDE: usize = 120;

/// Cells that the reason has at least.
const WHY: usize = 36;
/// Cells of a reason before a command that is not cut.
const BEFORE: usize = 24;
/// Cells of a warning.
const LONG: usize = 300;
/// Cells before a command that stands below its row.
const INDENT: usize = 2;

/// How much room there is for a picture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Room {
    /// Cells of a line; without end where absent.
    pub width: Option<usize>,
    /// Lines; without end where absent.
    pub height: Option<usize>,
}

/// The loops as a table for people, with a line about all of them on top. Ends in a newline. Within a width no line
/// of the table is longer; a command that would have to be cut stands below its row, and
/// above it a reason that would have to be. Within a height only the
/// most urgent rows are shown, and how many more there are.
#[must_use]
pub fn dashboard_text(fleet: &Fleet<'_>, room: Room, colour: Colour) -> String {
    let Room { width, height } = room;
    let mut page = Page::new(colour);
    summary(&mut page, fleet.rows, width);
    if fleet.rows.is_empty() {
        return page.finish();
    }
    let cells: Vec<Vec<Cell>> = fleet.rows.iter().map(|row| cells(fleet, row)).collect();
    let columns = columns(if width.is_some_and(|width| width < IS_WIDE) { NAME.1 } else { NAME.0 });
    let grid = Grid::new(&columns, &cells, width, WHY);
    grid.head(&mut page);
    // What stands above and below the rows, and what a row takes.
    let warnings: Vec<String> = fleet
        .warnings
        .iter()
        .map(|warning| term::line(&format!("warning: {}", warning.message), LONG))
        .collect();
    let around = 2 + warnings.iter().map(|text| lines(text, width)).sum::<usize>();
    let mut left = height.map(|height| height.saturating_sub(around));
    for (at, (row, mut cells)) in fleet.rows.iter().zip(cells).enumerate() {
        let (mut reason, whole) = why(row, grid.last);
        let top = &row.attention.top;
        let urgent = top.level < Level::Ok;
        let mut below = Vec::new();
        // A reason of which nothing would be left to read has a line of its own.
        if let Some(width) = width
            && urgent
            && (!whole || top.action.is_none())
            && term::width(&term::inline(&top.why)) > grid.last
        {
            let text = term::line(&top.why, width.saturating_sub(INDENT));
            below.push((tone(row), format!("{}{text}", " ".repeat(INDENT))));
            reason = plain("");
        }
        let action = top.action.as_deref().filter(|_| !whole && urgent);
        below.extend(
            action.map(|action| (Tone::Strong, format!("{}→ {}", " ".repeat(INDENT), term::inline(action)))),
        );
        let lines = 1 + below.iter().map(|(_, text)| lines(text, width)).sum::<usize>();
        // The last line is for how many more there are, unless this row is the last.
        let needed = lines + usize::from(at + 1 < fleet.rows.len());
        if left.is_some_and(|left| left < needed) {
            more(&mut page, fleet.rows.get(at..).unwrap_or_default());
            break;
        }
        left = left.map(|left| left.saturating_sub(lines));
        cells.extend([reason]);
        grid.row(&mut page, &cells);
        for (tone, text) in below {
            page.line(&[Cell::whole(tone, text)]);
        }
    }
    for warning in &warnings {
        page.tell(Tone::Care, warning);
    }
    page.finish()
}

/// Lines of a terminal that a text takes.
fn lines(text: &str, width: Option<usize>) -> usize {
    width.map_or(1, |width| term::width(text).div_ceil(width.max(1)).max(1))
}

/// That there are more rows than fit.
fn more(page: &mut Page, rows: &[LoopRow]) {
    let n = u64::try_from(rows.len()).unwrap_or(u64::MAX);
    let act = rows.iter().filter(|row| row.attention.level() == Level::Act).count();
    let need = match act {
        0 => String::new(),
        1 => ", 1 of them needs you".to_owned(),
        act => format!(", {act} of them need you"),
    };
    let tone = if act > 0 { Tone::Bad } else { Tone::Faint };
    page.tell(tone, format!("... and {} more{need}", count(n, "loop")));
}

fn summary(page: &mut Page, rows: &[LoopRow], width: Option<usize>) {
    let Summary { loops, act, running, watch, done, crashed, usd, usd_per_h, at_least } = Summary::of(rows);
    let mut cells = vec![(Tone::Strong, count(loops, "loop"))];
    let need = if act == 1 { "needs you" } else { "need you" };
    for (n, tone, glyph, word) in [
        (act, Tone::Bad, "▲", need),
        (running, Tone::Plain, "●", "run"),
        (watch, Tone::Care, "◐", "watch"),
        (done, Tone::Good, "✓", "done"),
        (crashed, Tone::Bad, "✗", "crashed"),
    ] {
        if n > 0 {
            cells.push((tone, format!("{glyph}{n} {word}")));
        }
    }
    if usd > Usd::ZERO {
        let least = if at_least { "+" } else { "" };
        let burn = if usd_per_h > Usd::ZERO { format!(" ({usd_per_h}/h)") } else { String::new() };
        cells.push((Tone::Plain, format!("{usd}{least}{burn}")));
    }
    let mut left = width.unwrap_or(usize::MAX);
    let mut line = Vec::new();
    for (tone, text) in cells {
        let needed = term::width(&text) + 2;
        // What does not fit is less than what stands before it.
        if needed > left.saturating_add(2) {
            break;
        }
        left = left.saturating_sub(needed);
        line.extend([Cell::new(tone, text), Cell::blank(2)]);
    }
    page.trimmed(&line);
}

/// All cells but the last.
fn cells(fleet: &Fleet<'_>, row: &LoopRow) -> Vec<Cell> {
    let glyph = match row.attention.level() {
        Level::Act => "▲",
        Level::Watch => "◐",
        Level::Ok => "●",
        Level::Done => "✓",
        Level::Idle => "○",
    };
    let last = row.last_event.as_ref().map(|last| short(fleet.now.since(last.ts).as_secs()));
    let blocking = match row.bugs {
        None => plain("?"),
        Some(bugs) if bugs.blocking > 0 => Cell::new(Tone::Bad, bugs.blocking.to_string()),
        Some(_) => faint("0"),
    };
    vec![
        Cell::new(tone(row), format!("{glyph} {}", row.name)),
        plain(state(row)),
        plain(row.ticks.map_or_else(|| "?".to_owned(), |ticks| ticks.to_string())),
        plain(gates_cell(row)),
        blocking,
        plain(cost_cell(row)),
        plain(last.unwrap_or_else(|| "-".to_owned())),
    ]
}

/// How it ended says more than that it did.
fn state(row: &LoopRow) -> &str {
    match row.state {
        LoopState::Stopped => row.outcome.as_deref().unwrap_or("stopped"),
        _ => row.state_word(),
    }
}

/// The reason, and the command behind it where it fits as a whole; also whether it does.
fn why(row: &LoopRow, width: usize) -> (Cell, bool) {
    let top = &row.attention.top;
    let tone = tone(row);
    let Some(action) = top.action.as_deref().map(term::inline) else {
        return (Cell::whole(tone, &top.why), true);
    };
    let room = width.saturating_sub(term::width(&action) + 3);
    if room < BEFORE.min(term::width(&top.why)) {
        return (Cell::whole(tone, &top.why), false);
    }
    (Cell::whole(tone, format!("{} → {action}", term::line(&top.why, room))), true)
}

/// `45s`, `18m`, `2h11`, `3d`.
fn short(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h{:02}", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d", seconds / 86_400),
    }
}
