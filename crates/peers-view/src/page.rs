//! Text for people, line by line. Whatever comes in is made harmless here, so that no writer of a
//! view has to think of it.

use peers_sys::term;

/// Whether a text may hold colours. They only add: without them nothing is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// No escape sequence at all.
    Plain,
    /// ANSI colours.
    Ansi,
}

/// What a piece of text is, for its colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words say it")]
pub enum Tone {
    #[default]
    Plain,
    Good,
    Bad,
    Care,
    Faint,
    Strong,
}

impl Tone {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Good => "32",
            Self::Bad => "31",
            Self::Care => "33",
            Self::Faint => "2",
            Self::Strong => "1",
        }
    }
}

/// A piece of text with its tone, fit for a terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cell {
    tone: Tone,
    text: String,
}

impl Cell {
    /// Sanitises the text; at most `width` terminal cells of it stay.
    pub fn cut(tone: Tone, text: impl AsRef<str>, width: usize) -> Self {
        Self { tone, text: term::line(text.as_ref(), width) }
    }

    /// The same, in at most 300 terminal cells.
    pub fn new(tone: Tone, text: impl AsRef<str>) -> Self {
        Self::cut(tone, text, WIDEST)
    }

    /// For a path or a command, which are of no use when they are cut.
    pub fn whole(tone: Tone, text: impl AsRef<str>) -> Self {
        Self::cut(tone, text, LONGEST)
    }

    /// So many spaces.
    pub(crate) fn blank(width: usize) -> Self {
        Self { tone: Tone::Plain, text: " ".repeat(width) }
    }

    /// What it is.
    #[must_use]
    pub fn tone(&self) -> Tone {
        self.tone
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many terminal cells it takes.
    #[must_use]
    pub fn width(&self) -> usize {
        term::width(&self.text)
    }

    /// The same in at most so many terminal cells.
    pub(crate) fn narrowed(&self, width: usize) -> Self {
        Self { tone: self.tone, text: term::line(&self.text, width) }
    }

    fn put(&self, out: &mut String, colour: Colour) {
        match (colour, self.tone) {
            (Colour::Plain, _) | (Colour::Ansi, Tone::Plain) => out.push_str(&self.text),
            (Colour::Ansi, tone) if !self.text.is_empty() => {
                out.push_str("\u{1b}[");
                out.push_str(tone.code());
                out.push('m');
                out.push_str(&self.text);
                out.push_str("\u{1b}[0m");
            }
            (Colour::Ansi, _) => {}
        }
    }
}

/// A piece without a colour.
pub(crate) fn plain(text: impl AsRef<str>) -> Cell {
    Cell::new(Tone::Plain, text)
}

/// A piece that matters less.
pub(crate) fn faint(text: impl AsRef<str>) -> Cell {
    Cell::new(Tone::Faint, text)
}

/// Terminal cells of one piece of text.
const WIDEST: usize = 300;
/// Terminal cells of a text that holds a command with paths.
const LONGEST: usize = 16 * 1024;
/// Terminal cells of a column that is not the last one.
const COLUMN: usize = 40;

/// A line in rows of at most so many terminal cells, between words where that is possible. What follows the first row
/// stands below its text; the mark of foreign text stands before each.
#[must_use]
pub fn fold(cells: &[Cell], width: usize) -> Vec<Vec<Cell>> {
    let mut chars: Vec<(char, Tone)> =
        cells.iter().flat_map(|cell| cell.text.chars().map(|c| (c, cell.tone))).collect();
    while chars.last().is_some_and(|(c, _)| *c == ' ') {
        chars.pop();
    }
    let wide = |chars: &[(char, Tone)]| chars.iter().map(|(c, _)| term::char_width(*c)).sum::<usize>();
    if wide(&chars) <= width {
        return vec![cells.to_vec()];
    }
    let before = match cells.first().filter(|cell| cells.len() > 1 && cell.width() <= width / 3) {
        Some(mark) if mark.text.trim() == "|" => mark.clone(),
        Some(name) => Cell::blank(name.width()),
        None => Cell::blank(2),
    };
    let mut rows = Vec::new();
    let mut rest = chars.as_slice();
    while !rest.is_empty() {
        let room = if rows.is_empty() { width } else { width.saturating_sub(before.width()) };
        let mut used = 0;
        let fits = rest.iter().take_while(|(c, _)| {
            used += term::char_width(*c);
            used <= room
        });
        let most = fits.count().max(1);
        let space = rest.iter().take(most).rposition(|(c, _)| *c == ' ').filter(|at| *at > most / 2);
        let end = if most < rest.len() { space.map_or(most, |at| at + 1) } else { most };
        let (row, next) = rest.split_at(end);
        let mut row: Vec<Cell> = row
            .chunk_by(|a, b| a.1 == b.1)
            .map(|same| Cell {
                tone: same.first().map(|(_, tone)| *tone).unwrap_or_default(),
                text: same.iter().map(|(c, _)| *c).collect(),
            })
            .collect();
        if !rows.is_empty() {
            row.insert(0, before.clone());
        }
        rows.push(row);
        rest = next;
    }
    rows
}

/// A text of lines, each of pieces with a tone. How it is coloured is for whoever shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    lines: Vec<Line>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Line {
    cells: Vec<Cell>,
    /// Without what is blank at its end.
    trimmed: bool,
}

impl Page {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// One line of pieces, joined as they are.
    pub fn line(&mut self, cells: &[Cell]) {
        self.lines.push(Line { cells: cells.to_vec(), trimmed: false });
    }

    /// The same without what is blank at its end.
    pub(crate) fn trimmed(&mut self, cells: Vec<Cell>) {
        self.lines.push(Line { cells, trimmed: true });
    }

    /// A plain line.
    pub(crate) fn say(&mut self, text: impl AsRef<str>) {
        self.tell(Tone::Plain, text);
    }

    /// A line of one piece.
    pub fn tell(&mut self, tone: Tone, text: impl AsRef<str>) {
        self.line(&[Cell::new(tone, text)]);
    }

    /// An empty line.
    pub fn blank(&mut self) {
        self.lines.push(Line::default());
    }

    /// The heading of what follows, after a blank line.
    pub fn heading(&mut self, text: impl AsRef<str>) {
        self.blank();
        self.tell(Tone::Strong, text);
    }

    /// `name:     text`, all texts in one column.
    pub fn field(&mut self, name: &str, tone: Tone, text: impl AsRef<str>) {
        let name = format!("{:<11}", format!("{name}:"));
        self.line(&[Cell::new(Tone::Strong, name), Cell::new(tone, text)]);
    }

    /// The same for a text of ours with a command in it, which is of no use when it is cut.
    pub(crate) fn whole(&mut self, name: &str, tone: Tone, text: impl AsRef<str>) {
        let name = format!("{:<11}", format!("{name}:"));
        self.line(&[Cell::new(Tone::Strong, name), Cell::cut(tone, text, LONGEST)]);
    }

    /// Rows with aligned columns, the first of them after `indent` blanks. The last column is not padded; empty ones
    /// at the end cost nothing.
    pub fn table(&mut self, indent: usize, rows: impl IntoIterator<Item = Vec<Cell>>) {
        let rows: Vec<Vec<Cell>> = rows.into_iter().collect();
        let mut widths: Vec<usize> = Vec::new();
        for row in &rows {
            let padded = row.len().saturating_sub(1);
            for (at, cell) in row.iter().take(padded).enumerate() {
                let width = cell.width().min(COLUMN);
                match widths.get_mut(at) {
                    Some(known) => *known = (*known).max(width),
                    None => widths.push(width),
                }
            }
        }
        for row in rows {
            let last = row.len().saturating_sub(1);
            let mut cells = vec![Cell::blank(indent)];
            for (at, cell) in row.into_iter().enumerate() {
                if at == last {
                    cells.push(cell);
                    continue;
                }
                let cell = cell.narrowed(COLUMN);
                let width = widths.get(at).copied().unwrap_or_default();
                let pad = Cell::blank(width.saturating_sub(cell.width()) + 2);
                cells.extend([cell, pad]);
            }
            self.trimmed(cells);
        }
    }

    /// What another page has, behind what this one has.
    pub fn append(&mut self, mut other: Self) {
        self.lines.append(&mut other.lines);
    }

    /// Its lines, each as its pieces.
    #[must_use]
    pub fn lines(&self) -> impl ExactSizeIterator<Item = &[Cell]> {
        self.lines.iter().map(|line| line.cells.as_slice())
    }

    /// The first of its newest lines that, folded to so many cells, all fit into so many rows.
    #[must_use]
    pub fn last_top(&self, width: usize, height: usize) -> usize {
        let mut left = height;
        let fits = self.lines.iter().rev().take_while(|line| {
            let rows = fold(&line.cells, width).len();
            let fits = rows <= left;
            left = left.saturating_sub(rows);
            fits
        });
        self.lines.len() - fits.count().max(1).min(self.lines.len())
    }

    /// Whether nothing stands on it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// All of it as text, each line with its end.
    #[must_use]
    pub fn text(&self, colour: Colour) -> String {
        let mut out = String::new();
        for Line { cells, trimmed } in &self.lines {
            let start = out.len();
            for cell in cells {
                cell.put(&mut out, colour);
            }
            if *trimmed {
                let end = out.trim_end().len().max(start);
                out.truncate(end);
            }
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_becomes_one_harmless_line() {
        let mut page = Page::new();
        page.field("a", Tone::Bad, "x\u{1b}[2J\ny\u{202e}z\u{9b}0m");
        assert_eq!(page.text(Colour::Plain), "a:         x yz\n");
    }

    #[test]
    fn colours_are_ours_alone_and_only_add() {
        let write = |colour| {
            let mut page = Page::new();
            page.line(&[Cell::new(Tone::Bad, "\u{1b}[32mred"), Cell::new(Tone::Plain, " plain")]);
            page.text(colour)
        };
        assert_eq!(write(Colour::Plain), "red plain\n");
        assert_eq!(write(Colour::Ansi), "\u{1b}[31mred\u{1b}[0m plain\n");
    }

    #[test]
    fn what_is_folded_is_all_there_and_keeps_the_mark_of_foreign_text() {
        let folded = |cells: &[Cell], width| -> Vec<String> {
            fold(cells, width).iter().map(|row| row.iter().map(Cell::text).collect()).collect()
        };
        let foreign = [faint("  | "), plain("one two three pass")];
        assert_eq!(folded(&foreign, 14), ["  | one two ", "  | three pass"]);
        let named = [Cell::new(Tone::Strong, "why: "), plain("日本日本日本")];
        assert_eq!(folded(&named, 15), ["why: 日本日本日", "     本"]);
        assert_eq!(folded(&[plain("abcdefgh")], 6), ["abcdef", "  gh"]);
        assert_eq!(folded(&[plain("abc"), Cell::blank(9)], 6), ["abc         "]);
        assert_eq!(folded(&[plain("日本")], 1).len(), 2);
        let mut page = Page::new();
        page.say("1");
        page.say("2 2 2 2 2 2");
        page.say("3");
        assert_eq!([8, 4, 1].map(|height| page.last_top(6, height)), [0, 1, 2]);
        assert_eq!(Page::new().last_top(6, 2), 0);
    }

    #[test]
    fn columns_align_by_cells() {
        let mut page = Page::new();
        let row = |a: &str, b: &str| vec![Cell::new(Tone::Plain, a), Cell::new(Tone::Plain, b)];
        page.table(2, [row("日本", "x"), row("a", "y"), row("b", "")]);
        assert_eq!(page.text(Colour::Plain), "  日本  x\n  a     y\n  b\n");
    }
}
