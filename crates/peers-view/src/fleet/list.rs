//! `peers-ctl list`.

use super::all::{Fleet, cost_cell, gates_cell};
use super::grid::{Column, Grid};
use crate::advice::Level;
use crate::page::{Cell, Colour, Page, Tone, plain};
use crate::row::{LoopRow, LoopState};

/// Where nobody looks at lines nothing is cut.
const fn columns(why: usize) -> [Column; 11] {
    [
        Column::new("NAME", WHOLE),
        Column::new("STATE", 10),
        Column::new("OUTCOME", 16),
        Column::new("PID", 10).right(),
        Column::new("TICKS", 8).right(),
        Column::new("GATES", 12),
        Column::new("COST", 12).right(),
        Column::new("LABELS", WHOLE),
        Column::new("PATH", WHOLE),
        Column::new("WHY", why),
        Column::new("ACTION", 0),
    ]
}

/// Cells of what is not cut.
const WHOLE: usize = 4096;
/// Cells of a reason on a terminal.
const WHY: usize = 80;

/// The loops as a table for people. Ends in a newline. A line goes over the edge of a terminal, since what is cut
/// in it is of no use; `terminal` cuts long reasons alone.
#[must_use]
pub fn list_text(fleet: &Fleet<'_>, colour: Colour, terminal: bool) -> String {
    let mut page = Page::new();
    let columns = columns(if terminal { WHY } else { WHOLE });
    let cells: Vec<Vec<Cell>> = fleet.rows.iter().map(cells).collect();
    let grid = Grid::new(&columns, &cells, None, 0);
    grid.head(&mut page);
    for row in &cells {
        grid.row(&mut page, row);
    }
    page.text(colour)
}

pub(super) fn tone(row: &LoopRow) -> Tone {
    match row.attention.level() {
        Level::Act => Tone::Bad,
        Level::Watch => Tone::Care,
        Level::Done => Tone::Good,
        Level::Ok => Tone::Plain,
        Level::Idle => Tone::Faint,
    }
}

fn state(row: &LoopRow) -> Cell {
    let tone = match row.state {
        LoopState::Crashed | LoopState::Unknown => Tone::Bad,
        LoopState::Running => Tone::Good,
        LoopState::Stopped => Tone::Plain,
        LoopState::Fresh => Tone::Faint,
    };
    Cell::new(tone, row.state_word())
}

fn pid(row: &LoopRow) -> Cell {
    plain(row.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string()))
}

fn cells(row: &LoopRow) -> Vec<Cell> {
    let labels: Vec<String> = row.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let top = &row.attention.top;
    let or = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    vec![
        Cell::whole(Tone::Plain, &row.name),
        state(row),
        plain(row.outcome.as_deref().unwrap_or("-")),
        pid(row),
        plain(row.ticks.map_or_else(|| "?".to_owned(), |ticks| ticks.to_string())),
        plain(gates_cell(row)),
        plain(cost_cell(row)),
        Cell::whole(Tone::Plain, or(&labels.join(","))),
        Cell::whole(Tone::Plain, &row.path),
        Cell::whole(tone(row), or(&top.why)),
        Cell::whole(Tone::Plain, or(top.action.as_deref().unwrap_or_default())),
    ]
}
