//! A picture that is drawn again and again in the place of the terminal's text, which comes back at the end.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};

use peers_sys::env::Env;
use peers_sys::term;

use crate::error::CommandError;

/// Another screen, without a cursor.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l";
/// The cursor, and the screen of before.
const LEAVE: &str = "\u{1b}[?25h\u{1b}[?1049l";
/// What follows is shown at once, when it has come whole.
const BEGIN: &str = "\u{1b}[?2026h\u{1b}[H";
/// All of it is there.
const END: &str = "\u{1b}[?2026l";
/// Erases what stands in the line of the cursor behind it.
const ERASE: &str = "\u{1b}[K";
/// Erases that and everything below.
const DOWN: &str = "\u{1b}[J";

/// A terminal that does not say how large it is.
const ROWS: usize = 24;
const COLUMNS: usize = 80;

/// The other screen of the terminal; the one of before comes back when this is dropped.
#[derive(Debug)]
pub struct Alternate(());

impl Alternate {
    /// Goes over to it; `None` where standard output is no terminal that has one.
    #[must_use]
    pub fn enter(env: &Env) -> Option<Self> {
        if !io::stdout().is_terminal() || env.text("TERM").is_none_or(|term| term == "dumb") {
            return None;
        }
        write(ENTER).ok()?;
        Some(Self(()))
    }

    /// Draws a picture over the one before, as much of it as fits.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn draw(&self, text: &str) -> Result<(), CommandError> {
        let columns = term::columns(io::stdout()).unwrap_or(COLUMNS);
        write(&picture(text, Self::rows(), columns))?;
        Ok(())
    }

    /// How many lines it has now.
    #[must_use]
    pub fn rows() -> usize {
        term::rows(io::stdout()).unwrap_or(ROWS)
    }
}

impl Drop for Alternate {
    fn drop(&mut self) {
        // A terminal that is gone has no screen to come back.
        let _gone = write(LEAVE);
    }
}

/// A text as one write that draws it from the upper left corner, as much of it as `rows` lines of `columns` cells
/// hold.
fn picture(text: &str, rows: usize, columns: usize) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    out.push_str(BEGIN);
    let lines: Vec<(&str, usize)> = text.lines().map(|line| (line, height(line, columns))).collect();
    let all: usize = lines.iter().map(|(_, height)| height).sum();
    let room = if all <= rows { rows } else { rows.saturating_sub(1) };
    let (mut used, mut shown) = (0, 0);
    for (line, height) in &lines {
        if used + height > room {
            break;
        }
        if shown > 0 {
            out.push_str("\r\n");
        }
        // What is left of the older picture goes first: behind a line that fills its last cell there is no place
        // from which to erase.
        out.push_str(ERASE);
        for _ in 1..*height {
            let _infallible = write!(out, "\r\n{ERASE}");
        }
        if *height > 1 {
            let _infallible = write!(out, "\u{1b}[{}A\r", height - 1);
        }
        out.push_str(line);
        (used, shown) = (used + height, shown + 1);
    }
    if shown < lines.len() {
        let gap = if shown > 0 { "\r\n" } else { "" };
        let _infallible = write!(out, "{gap}{ERASE}... and {} more lines", lines.len() - shown);
    }
    // The rest of the screen, from the line below.
    if used.max(1) < rows && shown == lines.len() {
        let _infallible = write!(out, "\r\n{DOWN}");
    }
    out.push_str(END);
    out
}

/// How many lines of the terminal a line of text takes, which may hold colours. A wide character that does not fit
/// at the end of one begins the next.
fn height(line: &str, columns: usize) -> usize {
    let (mut lines, mut used) = (1, 0);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            // Ours are all of the form `ESC [ numbers m`.
            let _colour = chars.by_ref().find(char::is_ascii_alphabetic);
            continue;
        }
        let width = term::width(c.encode_utf8(&mut [0; 4]));
        if used + width > columns.max(1) {
            (lines, used) = (lines + 1, 0);
        }
        used += width;
    }
    lines
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_one_write_without_a_scroll() {
        let drawn = picture("a\nb\nc\n", 3, 80);
        assert_eq!(drawn, format!("{BEGIN}{ERASE}a\r\n{ERASE}b\r\n{ERASE}c{END}"));
        let drawn = picture("a\nb\nc\nd\n", 3, 80);
        assert_eq!(drawn, format!("{BEGIN}{ERASE}a\r\n{ERASE}b\r\n{ERASE}... and 2 more lines{END}"));
        assert_eq!(picture("", 1, 80), format!("{BEGIN}{END}"));
        assert_eq!(picture("a\n", 3, 80), format!("{BEGIN}{ERASE}a\r\n{DOWN}{END}"));
    }

    #[test]
    fn a_line_that_the_terminal_folds_counts_as_often_as_it_is_folded() {
        // Five cells in two lines of four.
        assert_eq!(
            picture("abcde\nf\n", 3, 4),
            format!("{BEGIN}{ERASE}\r\n{ERASE}\u{1b}[1A\rabcde\r\n{ERASE}f{END}")
        );
        assert_eq!(
            picture("abcde\nf\ng\n", 3, 4),
            format!("{BEGIN}{ERASE}\r\n{ERASE}\u{1b}[1A\rabcde\r\n{ERASE}... and 2 more lines{END}")
        );
        let heights =
            [("", 1), ("abcd", 1), ("abcde", 2), ("日本", 1), ("a日本", 2), ("\u{1b}[31mabcd\u{1b}[0m", 1)];
        for (line, lines) in heights {
            assert_eq!(height(line, 4), lines, "{line:?}");
        }
    }
}
