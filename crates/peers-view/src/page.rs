//! Text for a terminal, line by line. Whatever comes in is made harmless here, so that no writer of a
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
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

/// A piece of text with its tone.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    tone: Tone,
    text: String,
}

impl Cell {
    /// Sanitises the text; at most `width` terminal cells of it stay.
    pub(crate) fn cut(tone: Tone, text: impl AsRef<str>, width: usize) -> Self {
        Self { tone, text: term::line(text.as_ref(), width) }
    }

    pub(crate) fn new(tone: Tone, text: impl AsRef<str>) -> Self {
        Self::cut(tone, text, WIDEST)
    }

    /// For a path or a command, which are of no use when they are cut.
    pub(crate) fn whole(tone: Tone, text: impl AsRef<str>) -> Self {
        Self::cut(tone, text, LONGEST)
    }

    /// So many spaces.
    pub(crate) fn blank(width: usize) -> Self {
        Self { tone: Tone::Plain, text: " ".repeat(width) }
    }

    /// How many terminal cells it takes.
    pub(crate) fn width(&self) -> usize {
        term::width(&self.text)
    }

    /// The same in at most so many terminal cells.
    pub(crate) fn narrowed(&self, width: usize) -> Self {
        Self { tone: self.tone, text: term::line(&self.text, width) }
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

/// A text in the making.
#[derive(Debug)]
pub(crate) struct Page {
    out: String,
    colour: Colour,
}

impl Page {
    pub(crate) fn new(colour: Colour) -> Self {
        Self { out: String::new(), colour }
    }

    /// One line of pieces, joined as they are.
    pub(crate) fn line(&mut self, cells: &[Cell]) {
        for cell in cells {
            self.put(cell, &cell.text);
        }
        self.out.push('\n');
    }

    /// The same without what is blank at its end.
    pub(crate) fn trimmed(&mut self, cells: &[Cell]) {
        let start = self.out.len();
        for cell in cells {
            self.put(cell, &cell.text);
        }
        let trimmed = self.out.trim_end_matches(' ').len().max(start);
        self.out.truncate(trimmed);
        self.out.push('\n');
    }

    /// A plain line.
    pub(crate) fn say(&mut self, text: impl AsRef<str>) {
        self.tell(Tone::Plain, text);
    }

    /// A line of one piece.
    pub(crate) fn tell(&mut self, tone: Tone, text: impl AsRef<str>) {
        self.line(&[Cell::new(tone, text)]);
    }

    pub(crate) fn blank(&mut self) {
        self.out.push('\n');
    }

    /// The heading of what follows, after a blank line.
    pub(crate) fn heading(&mut self, text: impl AsRef<str>) {
        self.blank();
        self.tell(Tone::Strong, text);
    }

    /// `name:     text`, all texts in one column.
    pub(crate) fn field(&mut self, name: &str, tone: Tone, text: impl AsRef<str>) {
        let name = format!("{:<11}", format!("{name}:"));
        self.line(&[Cell::new(Tone::Strong, name), Cell::new(tone, text)]);
    }

    /// The same for a text of ours with a command in it, which is of no use when it is cut.
    pub(crate) fn whole(&mut self, name: &str, tone: Tone, text: impl AsRef<str>) {
        let name = format!("{:<11}", format!("{name}:"));
        self.line(&[Cell::new(Tone::Strong, name), Cell::cut(tone, text, LONGEST)]);
    }

    /// Rows with aligned columns. The last column is not padded; empty ones at the end cost nothing.
    pub(crate) fn table(&mut self, indent: usize, rows: impl IntoIterator<Item = Vec<Cell>>) {
        let rows: Vec<Vec<Cell>> = rows.into_iter().collect();
        let mut widths: Vec<usize> = Vec::new();
        for row in &rows {
            let padded = row.len().saturating_sub(1);
            for (at, cell) in row.iter().take(padded).enumerate() {
                let width = term::width(&cell.text).min(COLUMN);
                match widths.get_mut(at) {
                    Some(known) => *known = (*known).max(width),
                    None => widths.push(width),
                }
            }
        }
        for row in &rows {
            let start = self.out.len();
            self.out.push_str(&" ".repeat(indent));
            let last = row.len().saturating_sub(1);
            for (at, cell) in row.iter().enumerate() {
                if at == last {
                    self.put(cell, &cell.text);
                    continue;
                }
                let text = term::line(&cell.text, COLUMN);
                let width = widths.get(at).copied().unwrap_or_default();
                let pad = width.saturating_sub(term::width(&text)) + 2;
                self.put(cell, &text);
                self.out.push_str(&" ".repeat(pad));
            }
            let trimmed = self.out.trim_end().len().max(start);
            self.out.truncate(trimmed);
            self.out.push('\n');
        }
    }

    fn put(&mut self, cell: &Cell, text: &str) {
        match (self.colour, cell.tone) {
            (Colour::Plain, _) | (Colour::Ansi, Tone::Plain) => self.out.push_str(text),
            (Colour::Ansi, tone) if !text.is_empty() => {
                self.out.push_str("\u{1b}[");
                self.out.push_str(tone.code());
                self.out.push('m');
                self.out.push_str(text);
                self.out.push_str("\u{1b}[0m");
            }
            (Colour::Ansi, _) => {}
        }
    }

    pub(crate) fn finish(self) -> String {
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_becomes_one_harmless_line() {
        let mut page = Page::new(Colour::Plain);
        page.field("a", Tone::Bad, "x\u{1b}[2J\ny\u{202e}z\u{9b}0m");
        assert_eq!(page.finish(), "a:         x yz\n");
    }

    #[test]
    fn colours_are_ours_alone_and_only_add() {
        let write = |colour| {
            let mut page = Page::new(colour);
            page.line(&[Cell::new(Tone::Bad, "\u{1b}[32mred"), Cell::new(Tone::Plain, " plain")]);
            page.finish()
        };
        assert_eq!(write(Colour::Plain), "red plain\n");
        assert_eq!(write(Colour::Ansi), "\u{1b}[31mred\u{1b}[0m plain\n");
    }

    #[test]
    fn columns_align_by_cells() {
        let mut page = Page::new(Colour::Plain);
        let row = |a: &str, b: &str| vec![Cell::new(Tone::Plain, a), Cell::new(Tone::Plain, b)];
        page.table(2, [row("日本", "x"), row("a", "y"), row("b", "")]);
        assert_eq!(page.finish(), "  日本  x\n  a     y\n  b\n");
    }
}
