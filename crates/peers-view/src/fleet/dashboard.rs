//! `peers-ctl dashboard`.

use peers_sys::term;

use super::all::{Fleet, Summary, cost_cell, gates_cell};
use super::grid::{Column, Grid};
use super::list::tone;
use crate::advice::Level;
use crate::page::{Cell, Colour, Page, Tone, faint, plain};
use crate::row::{LoopRow, LoopState};

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
/// Cells before a command that stands below its row.
const INDENT: usize = 2;

/// The loops as a table for people, with a line about all of them on top. Ends in a newline. Within a `width` no
/// line of the table is longer; a command that would have to be cut stands below its row, and above it a reason that
/// would have to be.
#[must_use]
pub fn dashboard_text(fleet: &Fleet<'_>, width: Option<usize>, colour: Colour) -> String {
    let mut page = Page::new();
    summary(&mut page, fleet.rows, width);
    if fleet.rows.is_empty() {
        return page.text(colour);
    }
    let cells: Vec<Vec<Cell>> = fleet.rows.iter().map(|row| cells(fleet, row)).collect();
    let columns = columns(if width.is_some_and(|width| width < IS_WIDE) { NAME.1 } else { NAME.0 });
    let grid = Grid::new(&columns, &cells, width, WHY);
    grid.head(&mut page);
    for (row, mut cells) in fleet.rows.iter().zip(cells) {
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
        cells.extend([reason]);
        grid.row(&mut page, &cells);
        for (tone, text) in below {
            page.line(&[Cell::whole(tone, text)]);
        }
    }
    for warning in fleet.warnings {
        page.tell(Tone::Care, format!("warning: {}", warning.message));
    }
    page.text(colour)
}

fn summary(page: &mut Page, rows: &[LoopRow], width: Option<usize>) {
    let mut left = width.unwrap_or(usize::MAX);
    let mut line = Vec::new();
    for (tone, text) in Summary::of(rows).cells() {
        let needed = term::width(&text) + 2;
        // What does not fit is less than what stands before it.
        if needed > left.saturating_add(2) {
            break;
        }
        left = left.saturating_sub(needed);
        line.extend([Cell::new(tone, text), Cell::blank(2)]);
    }
    page.trimmed(line);
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
