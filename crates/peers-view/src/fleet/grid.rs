//! A table that fits: columns are left out in a fixed order, and the last one takes what is left.

use peers_sys::term;

use crate::page::{Cell, Page, Tone};

/// Cells between two columns.
const GAP: usize = 2;
/// Terminal cells of a line that is not shown on a terminal.
const UNBOUND: usize = 16 * 1024;

/// One column. The last one has no width of its own.
pub(super) struct Column {
    pub(super) title: &'static str,
    /// Numbers stand to the right.
    pub(super) right: bool,
    /// Cells that it has at most.
    pub(super) most: usize,
    /// When it is left out for want of room, the lowest first; never where absent.
    pub(super) leaves: Option<u8>,
}

impl Column {
    pub(super) const fn new(title: &'static str, most: usize) -> Self {
        Self { title, right: false, most, leaves: None }
    }

    pub(super) const fn right(self) -> Self {
        Self { right: true, ..self }
    }

    pub(super) const fn leaves(self, order: u8) -> Self {
        Self { leaves: Some(order), ..self }
    }
}

/// Which columns stay and how wide they are.
pub(super) struct Grid<'a> {
    /// Index and width of each column that stays but the last.
    kept: Vec<(usize, usize)>,
    columns: &'a [Column],
    /// Cells of the last column.
    pub(super) last: usize,
}

impl<'a> Grid<'a> {
    /// Lays out `rows` in `width` cells, where the last column has `least` of them, if that can be.
    pub(super) fn new(columns: &'a [Column], rows: &[Vec<Cell>], width: Option<usize>, least: usize) -> Self {
        let before = columns.len().saturating_sub(1);
        let wide = |(at, column): (usize, &Column)| {
            let cells = rows.iter().filter_map(|row| row.get(at)).map(Cell::width).max().unwrap_or_default();
            (at, cells.max(term::width(column.title)).min(column.most.max(term::width(column.title))))
        };
        let mut kept: Vec<(usize, usize)> = columns.iter().enumerate().take(before).map(wide).collect();
        let used = |kept: &[(usize, usize)]| kept.iter().map(|(_, width)| width + GAP).sum::<usize>();
        let width = width.unwrap_or(UNBOUND);
        while used(&kept) + least > width {
            let order = |(at, _): &(usize, usize)| columns.get(*at).and_then(|column| column.leaves);
            let next = kept.iter().enumerate().filter_map(|(n, one)| Some((order(one)?, n))).min();
            let Some((_, n)) = next else { break };
            kept.remove(n);
        }
        let rest = width.saturating_sub(used(&kept));
        Self { kept, columns, last: rest }
    }

    /// The titles.
    pub(super) fn head(&self, page: &mut Page) {
        let cells: Vec<Cell> =
            self.columns.iter().map(|column| Cell::new(Tone::Strong, column.title)).collect();
        self.row(page, &cells);
    }

    /// One row. Cells that are too wide are cut.
    pub(super) fn row(&self, page: &mut Page, cells: &[Cell]) {
        let mut line = Vec::new();
        for (at, width) in &self.kept {
            let (Some(cell), Some(column)) = (cells.get(*at), self.columns.get(*at)) else { continue };
            let cell = cell.narrowed(*width);
            let pad = Cell::blank(width.saturating_sub(cell.width()));
            let gap = Cell::blank(GAP);
            line.extend(if column.right { [pad, cell, gap] } else { [cell, pad, gap] });
        }
        line.extend(cells.last().map(|cell| cell.narrowed(self.last)));
        page.trimmed(line);
    }
}
