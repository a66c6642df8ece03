//! Standard error of this process: permanent lines, and on a terminal at most one that is drawn again.

mod pen;

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use peers_sys::env::Env;
use peers_sys::term;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use self::pen::Pen;
use crate::output::Out;

/// So much is held while something else draws on the terminal, bytes.
const HELD: usize = 64 * 1024;
/// A reader who stopped reading is waited for at the end.
const PATIENCE: Duration = Duration::from_secs(5);
/// Erases the line that the cursor is in.
const ERASE: &str = "\r\u{1b}[2K";

/// Standard error with at most one line that is not permanent.
#[derive(Debug, Clone)]
pub struct Screen(Arc<Mutex<Drawn>>);

#[derive(Debug)]
struct Drawn {
    /// Standard error is a terminal.
    live: bool,
    columns: usize,
    /// A live line stands there now.
    on: bool,
    /// Who writes while a loop runs.
    pen: Option<Pen>,
    /// Whoever reads takes lines of a certain form for commands.
    commanded: bool,
    /// The terminal is drawn on by something else: what is said here is held until then, a bounded part of it.
    held: Option<Vec<u8>>,
}

impl Drawn {
    /// Writes at once, or has it written.
    fn put(&mut self, mut bytes: Vec<u8>) {
        if let Some(held) = &mut self.held {
            if held.len() < HELD {
                held.extend_from_slice(&bytes);
            }
            return;
        }
        if self.commanded {
            bytes = peers_view::without_commands(&String::from_utf8_lossy(&bytes)).into_bytes();
        }
        if let Some(pen) = &mut self.pen {
            return pen.write(bytes);
        }
        let mut err = io::stderr().lock();
        // Whoever closed standard error does not want to be told.
        let _unheard = err.write_all(&bytes).and_then(|()| err.flush());
    }
}

impl Screen {
    /// Begins to draw as `out` can show it. What is written does not wait for its reader from here on.
    pub fn open(&self, out: &Out) {
        let mut drawn = self.lock();
        drawn.live = out.live();
        drawn.columns = out.columns();
        // Without a thread the words are written at once.
        drawn.pen = Pen::start(io::stderr()).ok();
    }

    /// Takes the live line away, and waits a little until everything is written. What nobody reads even then
    /// holds up no end.
    pub fn close(&self) {
        self.clear();
        let mut drawn = self.lock();
        drawn.live = false;
        if drawn.pen.as_mut().is_some_and(|pen| pen.settle(PATIENCE)) {
            drawn.pen = None;
        }
    }

    /// Holds what is said from here on, since something else draws on the terminal; or says it all now.
    pub fn hold(&self, on: bool) {
        let mut drawn = self.lock();
        if on {
            drawn.held.get_or_insert_default();
        } else if let Some(bytes) = drawn.held.take() {
            drawn.put(bytes);
        }
    }

    /// Whether a line on it can be drawn again now.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.lock().live
    }

    fn lock(&self) -> MutexGuard<'_, Drawn> {
        // A panic while drawing leaves nothing that matters.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a permanent line. The text is sanitised, and folded on a terminal.
    pub fn line(&self, text: &str) {
        let text = term::block(text);
        let (live, columns) = {
            let drawn = self.lock();
            (drawn.live, drawn.columns)
        };
        let text = if live { folded(&text, columns) } else { text.into_owned() };
        self.raw(format!("{text}\n").as_bytes());
    }

    /// Writes permanent bytes as they are.
    fn raw(&self, bytes: &[u8]) {
        let mut drawn = self.lock();
        let erase = if std::mem::take(&mut drawn.on) { ERASE.as_bytes() } else { b"" };
        if !(erase.is_empty() && bytes.is_empty()) {
            drawn.put([erase, bytes].concat());
        }
    }

    /// Draws the line that is not permanent, unless older words still wait for their reader.
    pub fn draw(&self, text: &str) {
        let mut drawn = self.lock();
        if !drawn.live || drawn.pen.as_ref().is_some_and(|pen| !pen.is_idle()) {
            return;
        }
        let text = term::line(text, drawn.columns.saturating_sub(1));
        drawn.put(format!("{ERASE}{text}").into_bytes());
        drawn.on = true;
    }

    /// Takes the line away that is not permanent.
    pub fn clear(&self) {
        self.raw(b"");
    }
}

/// Breaks lines at blanks, so that words stay whole, and commands, which stand between backticks.
#[must_use]
pub fn folded(text: &str, columns: usize) -> String {
    let mut out = String::with_capacity(text.len());
    let mut used = 0;
    let (mut word, mut quoted) = (String::new(), false);
    for c in text.chars().chain(['\n']) {
        quoted ^= c == '`';
        if c != '\n' && (c != ' ' || quoted || (used == 0 && word.trim().is_empty())) {
            word.push(c);
            continue;
        }
        let width = shown(&word);
        if used > 0 && used + 1 + width > columns {
            out.push_str("\n      ");
            used = 6;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(&word);
        used += width;
        word.clear();
        if c == '\n' {
            out.push('\n');
            (used, quoted) = (0, false);
        }
    }
    out.truncate(out.trim_end_matches('\n').len());
    out
}

/// The cells of a word, in which our colours take none.
fn shown(word: &str) -> usize {
    let mut parts = word.split("\u{1b}[");
    let first = parts.next().map_or(0, term::width);
    let coloured = parts.map(|part| term::width(part.split_once('m').map_or(part, |(_, text)| text)));
    first + coloured.sum::<usize>()
}

/// Log lines keep out of the way of the live line.
impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.raw(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The screen of this process.
#[must_use]
pub fn screen() -> &'static Screen {
    static SCREEN: std::sync::OnceLock<Screen> = std::sync::OnceLock::new();
    SCREEN.get_or_init(|| {
        let drawn = Drawn { live: false, columns: 80, on: false, pen: None, commanded: false, held: None };
        Screen(Arc::new(Mutex::new(drawn)))
    })
}

/// Starts logging to standard error: warnings, or what `PEERS_LOG` asks for.
pub fn log(env: &Env) {
    log_at(env, "warn");
}

/// The same with another level where `PEERS_LOG` asks for none.
pub fn log_at(env: &Env, level: &str) {
    let asked = env.text("PEERS_LOG").unwrap_or(level);
    let filter: Targets = asked.parse().unwrap_or_else(|_| Targets::new().with_default(LevelFilter::WARN));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(|| screen().clone())
        .with_ansi(false)
        .with_target(false)
        .without_time();
    tracing_subscriber::registry().with(lines).with(filter).init();
}

/// Writes to standard error; through the view of a run that nobody reads, without waiting.
pub fn say(bytes: &[u8]) {
    screen().raw(bytes);
}

/// Writes to standard error even where that is held, for who has put the terminal back for a while.
pub fn aloud(text: &str) {
    let mut err = io::stderr().lock();
    // Whoever closed standard error does not want to be told.
    let _unheard = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

/// From here on nothing on standard error is a workflow command, whatever names and output it tells.
pub fn say_no_commands() {
    screen().lock().commanded = true;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_folded_at_blanks_and_a_command_stays_whole() {
        assert_eq!(folded("  one two three", 40), "  one two three");
        assert_eq!(folded("  one two three four", 12), "  one two\n      three\n      four");
        assert_eq!(folded("go on: `peers -C /a/b run`", 20), "go on:\n      `peers -C /a/b run`");
        assert_eq!(folded("one\ntwo", 20), "one\ntwo");
        let coloured = "\u{1b}[1mstate:\u{1b}[0m  \u{1b}[31mred and long\u{1b}[0m";
        assert_eq!(folded(coloured, 20), coloured, "colours take no room");
        assert_eq!(folded("state:  red and long", 15), "state:  red and\n      long");
        assert_eq!(folded("\na  b\n\n", 15), "\na  b");
    }
}
