//! The only place that writes to the terminal: data to standard output, talk to standard error.

use std::borrow::Cow;
use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};

use peers_model::command::Step;
use peers_view::Colour;
use peers_view::Spelling;
pub use peers_view::count as counted;
use serde::Serialize;

use crate::error::CommandError;

/// Where a command writes.
#[derive(Debug, Clone)]
pub struct Out {
    colour: bool,
    live: bool,
    columns: usize,
    /// The width of the terminal that standard output is, in cells.
    page: Option<usize>,
    /// How a command is spelt that works where this one was typed.
    spelling: Spelling,
}

/// Something was written to standard output.
static SAID: AtomicBool = AtomicBool::new(false);

/// A result with the name of its format before everything else.
#[derive(Serialize)]
struct Document<'a, T: Serialize> {
    schema: &'a str,
    #[serde(flatten)]
    body: &'a T,
}

/// Longest answer that is read, bytes.
const ANSWER: u64 = 4096;

/// Widest and narrowest line that is drawn again and again.
const COLUMNS: (usize, usize) = (20, 200);

impl Out {
    /// Looks at the terminal. `NO_COLOR`, pipes and dumb terminals lose nothing but colour.
    #[must_use]
    pub fn new(env: &peers_sys::env::Env, spelling: Spelling) -> Self {
        let dumb = env.text("TERM") == Some("dumb");
        let terminal = io::stderr().is_terminal() && !dumb;
        let told = || env.text("COLUMNS").and_then(|n| n.parse().ok()).unwrap_or(80);
        let columns = peers_sys::term::columns(io::stderr()).unwrap_or_else(told);
        let page = io::stdout().is_terminal().then(|| {
            let columns = peers_sys::term::columns(io::stdout()).unwrap_or_else(told);
            columns.max(COLUMNS.0)
        });
        Self {
            colour: io::stdout().is_terminal() && !dumb && env.text("NO_COLOR").is_none(),
            live: terminal,
            columns: columns.clamp(COLUMNS.0, COLUMNS.1),
            page,
            spelling,
        }
    }

    /// The same, with the width of the terminal as it is now.
    #[must_use]
    pub fn measured(&self) -> Self {
        let now = |known| peers_sys::term::columns(io::stdout()).map_or(known, |now| now.max(COLUMNS.0));
        Self { page: self.page.map(now), ..self.clone() }
    }

    /// How a command is spelt that works where this one was typed.
    #[must_use]
    pub fn spelling(&self) -> &Spelling {
        &self.spelling
    }

    /// Writes the one object that stands for a failed command that was asked for JSON, unless it has
    /// given a result already.
    pub fn failure(error: &CommandError) {
        Self::failed(error, &error.json());
    }

    /// The same with colour, or without, whatever the terminal says; as it says where nothing was said.
    #[must_use]
    pub fn with_colour(self, told: Option<bool>) -> Self {
        Self { colour: told.unwrap_or(self.colour), ..self }
    }

    /// Writes an object of the caller's own that stands for a failed command, unless it has given a result
    /// already.
    pub fn failed(error: &CommandError, object: &str) {
        if !SAID.load(Ordering::Relaxed) && !error.is_silent() {
            // The exit code says it too; whoever closed the pipe does not want to be told.
            let _unheard = io::stdout().lock().write_all(peers_view::terminal_safe(object).as_bytes());
        }
    }

    /// Whether standard output takes colour.
    #[must_use]
    pub fn colour(&self) -> Colour {
        if self.colour { Colour::Ansi } else { Colour::Plain }
    }

    /// Whether a line on standard error can be drawn again.
    #[must_use]
    pub fn live(&self) -> bool {
        self.live
    }

    /// The width of the terminal that standard output is, in cells; `None` where it is none.
    #[must_use]
    pub fn page_width(&self) -> Option<usize> {
        self.page
    }

    /// The width of the terminal in cells.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Writes one line of data.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn line(&self, text: &str) -> Result<(), CommandError> {
        self.data(&format!("{text}\n"))
    }

    /// Writes data for people: folded at the width of the terminal, and whole where there is none.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn page(&self, text: &str) -> Result<(), CommandError> {
        self.data(&self.folded(text))
    }

    /// Text for people, which ends in a newline, as a terminal of this width shows it best.
    #[must_use]
    pub fn folded<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.page {
            Some(columns) => Cow::Owned(format!("{}\n", crate::screen::folded(text, columns))),
            None => Cow::Borrowed(text),
        }
    }

    /// Writes data as it is, in one call.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn data(&self, text: &str) -> Result<(), CommandError> {
        self.bytes(text.as_bytes())
    }

    /// Writes bytes as they are, in one call. A reader that has closed the pipe changes nothing: what the
    /// command found still decides its exit code.
    ///
    /// # Errors
    /// Standard output cannot be written, unless nobody reads it.
    pub fn bytes(&self, bytes: &[u8]) -> Result<(), CommandError> {
        match self.stream(bytes) {
            Err(error) if error.is_silent() => Ok(()),
            written => written,
        }
    }

    /// Writes bytes of something without an end. Fails, silently, when nobody reads it any more.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn stream(&self, bytes: &[u8]) -> Result<(), CommandError> {
        SAID.store(true, Ordering::Relaxed);
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()?;
        Ok(())
    }

    /// Writes a result for machines. `body` serialises to an object.
    ///
    /// # Errors
    /// The result is none that JSON can hold, or standard output cannot be written.
    pub fn json<T: Serialize>(&self, schema: &str, body: &T) -> Result<(), CommandError> {
        let mut text = serde_json::to_string_pretty(&Document { schema, body })
            .map_err(|error| CommandError::of(peers_model::exit::BUG, &error))?;
        text.push('\n');
        self.data(&peers_view::terminal_safe(&text))
    }

    /// Says something to the person in front of the terminal.
    pub fn talk(&self, text: &str) {
        let text = peers_sys::term::block(text);
        crate::screen::say(format!("{text}\n").as_bytes());
    }

    /// The same of what somebody can do: its commands work where this one was typed.
    pub fn advise(&self, step: impl Into<Step>) {
        self.talk(&self.spelling.tell(&step.into()));
    }

    /// Whether a person can be asked.
    #[must_use]
    pub fn can_ask(&self) -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Asks on the terminal and gives the line that was typed; `None` where nobody can be asked.
    ///
    /// # Errors
    /// The terminal cannot be read.
    pub fn ask(&self, question: &str) -> Result<Option<String>, CommandError> {
        if !self.can_ask() {
            return Ok(None);
        }
        crate::screen::say(question.as_bytes());
        let mut answer = Vec::new();
        io::stdin().lock().take(ANSWER).read_until(b'\n', &mut answer)?;
        Ok(Some(String::from_utf8_lossy(&answer).into_owned()))
    }

    /// As [`Out::ask`], for an answer that may come later, or never.
    #[must_use]
    pub fn ask_meanwhile(&self, question: &str) -> Option<Receiver<String>> {
        if !self.can_ask() {
            return None;
        }
        crate::screen::say(question.as_bytes());
        let (told, telling) = mpsc::channel();
        // It ends with the process, should nobody answer.
        let _reader = std::thread::spawn(move || {
            let mut answer = Vec::new();
            if io::stdin().lock().take(ANSWER).read_until(b'\n', &mut answer).is_ok() {
                // Nobody may be waiting any more.
                let _heard = told.send(String::from_utf8_lossy(&answer).into_owned());
            }
        });
        Some(telling)
    }

    /// Says that there was no run yet, and what comes before the first.
    pub fn nothing_ran(&self, view: &peers_view::LoopView) {
        let next = peers_view::next_step(view)
            .unwrap_or_else(|| self.spelling.tell(&"start with `peers run`".into()));
        self.talk(&format!("hint: nothing ran yet; {next}"));
    }

    /// Text for standard error that ends in its own line feeds.
    pub fn complain(text: &str) {
        crate::screen::say(text.as_bytes());
    }
}

/// Columns of text, as wide as their widest cell, two blanks between them.
#[must_use]
pub fn table(rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        for (at, cell) in row.iter().enumerate() {
            let width = peers_sys::term::width(cell);
            match widths.get_mut(at) {
                Some(known) => *known = width.max(*known),
                None => widths.push(width),
            }
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            let missing = width.saturating_sub(peers_sys::term::width(cell)) + 2;
            line.extend(std::iter::repeat_n(' ', missing));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_stands_first() {
        let text =
            serde_json::to_string(&Document { schema: "x/1", body: &serde_json::json!({"a": 1}) }).unwrap();
        assert_eq!(text, r#"{"schema":"x/1","a":1}"#);
    }

    #[test]
    fn a_text_is_folded_at_words_on_a_terminal_only() {
        let out =
            |page| Out { page, ..Out::new(&peers_sys::env::Env::current(), Spelling::Loop { dir: None }) };
        assert_eq!(out(Some(20)).folded("one two three four five\n"), "one two three four\n      five\n");
        assert_eq!(out(None).folded("one two three four five\n"), "one two three four five\n");
    }

    #[test]
    fn one_is_singular() {
        assert_eq!([counted(0, "tick"), counted(1, "tick")], ["0 ticks", "1 tick"]);
        assert_eq!(counted(12_000, "token"), "12,000 tokens");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["a".into(), "bb".into()], vec!["ccc".into(), "d".into()]];
        assert_eq!(table(&rows), "a    bb\nccc  d\n");
    }
}
