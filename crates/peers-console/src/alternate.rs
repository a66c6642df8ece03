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
/// Erases what is left of the picture before.
const END: &str = "\u{1b}[J\u{1b}[?2026l";

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
        write(&picture(text, term::rows(io::stdout()).unwrap_or(24)))?;
        Ok(())
    }
}

impl Drop for Alternate {
    fn drop(&mut self) {
        // A terminal that is gone has no screen to come back.
        let _gone = write(LEAVE);
    }
}

/// A text as one write that draws it from the upper left corner, `rows` lines of it.
fn picture(text: &str, rows: usize) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    out.push_str(BEGIN);
    let lines: Vec<&str> = text.lines().collect();
    let fits = lines.len() <= rows;
    let shown = if fits { lines.len() } else { rows.saturating_sub(1) };
    for (at, line) in lines.iter().take(shown).enumerate() {
        let end = if at + 1 == shown && fits { "" } else { "\r\n" };
        // Each line takes away what was left of the older one.
        let _infallible = write!(out, "{line}\u{1b}[K{end}");
    }
    if !fits {
        let _infallible = write!(out, "... and {} more lines\u{1b}[K", lines.len() - shown);
    }
    out.push_str(END);
    out
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
        let drawn = picture("a\nb\nc\n", 3);
        assert_eq!(drawn, format!("{BEGIN}a\u{1b}[K\r\nb\u{1b}[K\r\nc\u{1b}[K{END}"));
        let drawn = picture("a\nb\nc\nd\n", 3);
        assert_eq!(drawn, format!("{BEGIN}a\u{1b}[K\r\nb\u{1b}[K\r\n... and 2 more lines\u{1b}[K{END}"));
        assert_eq!(picture("", 3), format!("{BEGIN}{END}"));
    }
}
