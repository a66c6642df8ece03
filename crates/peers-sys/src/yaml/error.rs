//! A YAML error with its place, in our words.

use std::fmt;
use std::fmt::Write as _;

use serde_saphyr::Error as Saphyr;

use super::words::explain;
use crate::term;

const MESSAGE_MAX: usize = 400;
/// Cells of a source line shown before the caret, and in all.
const BEFORE: usize = 80;
const WIDTH: usize = 110;

/// Why a document was refused. Shows as `name:line:column: message (hint)`, on one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlError {
    /// The file, as the caller named it.
    pub name: String,
    /// The line, from 1; `None` when the place is unknown.
    pub line: Option<u32>,
    /// The character in the line, from 1.
    pub column: Option<u32>,
    /// What is wrong.
    pub message: String,
    /// What may have been meant.
    pub hint: Option<String>,
    snippet: String,
}

impl YamlError {
    /// The line concerned and the one before it, with a caret below, several lines of plain text
    /// without a final line end; empty when the place is unknown.
    #[must_use]
    pub fn snippet(&self) -> &str {
        &self.snippet
    }

    /// A problem in our own words.
    pub(super) fn told(
        name: &str,
        text: &str,
        at: Option<(u32, u32)>,
        message: &str,
        hint: Option<String>,
    ) -> Self {
        Self {
            name: term::inline(name),
            line: at.map(|at| at.0),
            column: at.map(|at| at.1),
            message: term::line(message, MESSAGE_MAX),
            hint: hint.map(|hint| term::line(&hint, MESSAGE_MAX)),
            snippet: at.map(|(line, column)| snippet(text, line, column)).unwrap_or_default(),
        }
    }

    pub(super) fn new(name: &str, text: &str, error: &Saphyr) -> Self {
        let place = error.location().filter(|at| at.line() > 0);
        let (mut line, mut column) = place.map(|at| place_in(text, at.line(), at.column())).unzip();
        let message = explain(error);
        // The parser names the value before it.
        let tab = line.filter(|_| message.ends_with("found a tab")).and_then(|line| tab_from(text, line));
        let (message, hint) = match tab {
            Some(at) => {
                (line, column) = (Some(at), Some(1));
                ("a tab in the indentation".to_owned(), Some("indent with blanks".to_owned()))
            }
            None => (message, None),
        };
        Self {
            name: term::inline(name),
            line,
            column,
            message: term::line(&message, MESSAGE_MAX),
            hint: hint.map(|hint| term::line(&hint, MESSAGE_MAX)),
            snippet: line.zip(column).map(|(line, column)| snippet(text, line, column)).unwrap_or_default(),
        }
    }
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, line, column, message, hint, snippet: _ } = self;
        f.write_str(name)?;
        for number in [line, column].into_iter().flatten() {
            write!(f, ":{number}")?;
        }
        write!(f, ": {message}")?;
        hint.iter().try_for_each(|hint| write!(f, " ({hint})"))
    }
}

impl std::error::Error for YamlError {}

/// A place of the parser, which also ends a line at a lone carriage return, in the lines of the text. It
/// lies inside of the text whatever the parser says.
pub(super) fn place_in(text: &str, line: u64, column: u64) -> (u32, u32) {
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    for _ in 1..line {
        let Some((at, c)) = chars.by_ref().find(|(_, c)| matches!(c, '\n' | '\r')) else {
            start = text.len();
            break;
        };
        let pair = c == '\r' && chars.next_if(|(_, next)| *next == '\n').is_some();
        start = at + 1 + usize::from(pair);
    }
    let rest = text.get(start..).unwrap_or_default();
    let before = usize::try_from(column).unwrap_or(usize::MAX).saturating_sub(1);
    let taken = rest.chars().take_while(|c| !matches!(c, '\n' | '\r')).take(before);
    let end = start + taken.map(char::len_utf8).sum::<usize>();
    let head = text.get(..end).unwrap_or(text);
    let (above, same) = head.rsplit_once('\n').unwrap_or(("", head));
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let lines = if same.len() == head.len() { 1 } else { above.matches('\n').count() + 2 };
    (number(lines), number(same.chars().count() + 1))
}

/// The first line from this one on that begins with a tab, or with blanks and a tab.
fn tab_from(text: &str, line: u32) -> Option<u32> {
    let before = usize::try_from(line).ok()?.checked_sub(1)?;
    let lines = text.lines().zip(1_u32..).skip(before);
    lines.filter(|(text, _)| text.trim_start_matches(' ').starts_with('\t')).map(|(_, at)| at).next()
}

fn snippet(text: &str, line: u32, column: u32) -> String {
    let index = usize::try_from(line).unwrap_or(usize::MAX).saturating_sub(1);
    let column = usize::try_from(column).unwrap_or(usize::MAX).saturating_sub(1);
    let mut lines = text.lines().skip(index.saturating_sub(1));
    let before = (index > 0).then(|| lines.next().unwrap_or_default());
    let source = lines.next().unwrap_or_default();
    let gutter = line.to_string().len();

    let mut out = String::new();
    if let Some(before) = before {
        let before = term::line(before, WIDTH);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{:>gutter$} | {}", line - 1, before.trim_end());
    }
    let split = source.char_indices().nth(column).map_or(source.len(), |(at, _)| at);
    let (head, tail) = source.split_at_checked(split).unwrap_or((source, ""));
    let mut head = term::inline(head);
    if term::width(&head) > BEFORE {
        let mut kept = 0;
        let start = head.char_indices().rev().find_map(|(at, c)| {
            kept += term::char_width(c);
            (kept >= BEFORE / 2).then_some(at)
        });
        head = format!("...{}", head.get(start.unwrap_or(0)..).unwrap_or_default());
    }
    let indent = term::width(&head);
    let tail = term::line(tail, WIDTH.saturating_sub(indent));
    let shown = format!("{head}{tail}");
    let _ = write!(out, "{line:>gutter$} | {}\n{:>gutter$} | {:>indent$}^", shown.trim_end(), "", "");
    out
}
