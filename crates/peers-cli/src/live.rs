//! What a person sees while the loop runs: permanent lines for what happened, and on a terminal one
//! line, drawn again and again, for what is going on.

mod pen;
mod wording;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use peers_core::machine::{Notice, Now, StopRequest};
use peers_core::state::State;
use peers_model::GoalId;
use peers_model::verdict::{Place, Verdict};
use peers_run::inputs::Signals;
use peers_run::ports::Observer;
use peers_run::procs::{self, Progress};
use peers_sys::env::Env;
use peers_sys::{clock, term};

use self::pen::Pen;
use crate::output::Out;

/// The live line is drawn this often.
const REDRAW: Duration = Duration::from_millis(500);
/// A signal is acknowledged within this time.
const HEARD: Duration = Duration::from_millis(100);
/// A reader who stopped reading is waited for at the end.
const PATIENCE: Duration = Duration::from_secs(5);
/// Erases the line that the cursor is in.
const ERASE: &str = "\r\u{1b}[2K";

/// Standard error with at most one line that is not permanent.
#[derive(Debug, Clone)]
struct Screen(Arc<Mutex<Drawn>>);

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
}

impl Drawn {
    /// Writes at once, or has it written.
    fn put(&mut self, mut bytes: Vec<u8>) {
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
    fn lock(&self) -> MutexGuard<'_, Drawn> {
        // A panic while drawing leaves nothing that matters.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a permanent line. The text is sanitised, and folded on a terminal.
    fn line(&self, text: &str) {
        let text = term::block(text);
        let (live, columns) = {
            let drawn = self.lock();
            (drawn.live, drawn.columns)
        };
        let text = if live { folded(&text, columns) } else { text.into_owned() };
        self.raw(format!("{text}\n").as_bytes());
    }

    fn raw(&self, bytes: &[u8]) {
        let mut drawn = self.lock();
        let erase = if std::mem::take(&mut drawn.on) { ERASE.as_bytes() } else { b"" };
        if !(erase.is_empty() && bytes.is_empty()) {
            drawn.put([erase, bytes].concat());
        }
    }

    /// Draws the line that is not permanent, unless older words still wait for their reader.
    fn draw(&self, text: &str) {
        let mut drawn = self.lock();
        if !drawn.live || drawn.pen.as_ref().is_some_and(|pen| !pen.is_idle()) {
            return;
        }
        let text = term::line(text, drawn.columns.saturating_sub(1));
        drawn.put(format!("{ERASE}{text}").into_bytes());
        drawn.on = true;
    }

    fn clear(&self) {
        self.raw(b"");
    }
}

/// Breaks lines at blanks, so that words stay whole, and commands, which stand between backticks.
pub(crate) fn folded(text: &str, columns: usize) -> String {
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
fn screen() -> &'static Screen {
    static SCREEN: std::sync::OnceLock<Screen> = std::sync::OnceLock::new();
    SCREEN.get_or_init(|| {
        let drawn = Drawn { live: false, columns: 80, on: false, pen: None, commanded: false };
        Screen(Arc::new(Mutex::new(drawn)))
    })
}

/// Starts logging to standard error: warnings, or what `PEERS_LOG` asks for.
pub(crate) fn log(env: &Env) {
    let filter = env.text("PEERS_LOG").unwrap_or("warn");
    let filter = tracing_subscriber::EnvFilter::try_new(filter)
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| screen().clone())
        .with_ansi(false)
        .with_target(false)
        .without_time()
        .init();
}

/// The view of one run.
#[derive(Debug)]
pub(crate) struct Live {
    verbose: bool,
    out: Out,
}

impl Live {
    pub(crate) fn new(out: &Out, verbose: bool) -> Self {
        let mut drawn = screen().lock();
        drawn.live = out.live();
        drawn.columns = out.columns();
        // Without a thread the words are written at once.
        drawn.pen = Pen::start(io::stderr()).ok();
        drop(drawn);
        Self { verbose, out: out.clone() }
    }

    /// Who watches the loop. `notes` are printed once, when it begins.
    pub(crate) fn observer(&self, notes: Vec<String>) -> Watcher {
        let (verbose, out) = (self.verbose, self.out.clone());
        Watcher { verbose, notes, states: BTreeMap::new(), doing: Rc::default(), out }
    }

    /// Takes the live line away, and waits a little until everything is written. What nobody reads even then
    /// holds up no end.
    #[expect(clippy::unused_self, reason = "whoever opened the view closes it")]
    pub(crate) fn close(&self) {
        screen().clear();
        let mut drawn = screen().lock();
        drawn.live = false;
        if drawn.pen.as_mut().is_some_and(|pen| pen.settle(PATIENCE)) {
            drawn.pen = None;
        }
    }
}

/// Writes to standard error; through the view of a run that nobody reads, without waiting.
pub(crate) fn say(bytes: &[u8]) {
    screen().raw(bytes);
}

/// From here on nothing on standard error is a workflow command, whatever names and output it tells.
pub(crate) fn say_no_commands() {
    screen().lock().commanded = true;
}

/// Draws what gates and extra commands are doing; for commands that run gates without a loop.
pub(crate) fn show_gates(progress: &Progress, what: &str) {
    if let Some(procs::Live::Gates(live)) = progress.now() {
        screen().draw(&format!("{what} · {}", wording::gates(&live, clock::mono())));
    }
}

/// Prints what happens.
#[derive(Debug)]
pub(crate) struct Watcher {
    verbose: bool,
    notes: Vec<String>,
    /// The last known word of each gate.
    states: BTreeMap<GoalId, &'static str>,
    doing: Rc<std::cell::RefCell<Doing>>,
    out: Out,
}

impl Watcher {
    /// Writes a permanent line, whose commands work where this one was typed.
    fn line(&self, text: &str) {
        screen().line(&self.out.pasteable(text));
    }
}

/// What the live line says when no child tells more.
#[derive(Debug, Default)]
struct Doing {
    skeptic: bool,
    place: Option<Place>,
    spend: String,
    waiting: Option<peers_model::Timestamp>,
}

impl Observer for Watcher {
    fn notice(&mut self, notice: &Notice, state: &State, at: Now) {
        {
            let mut doing = self.doing.borrow_mut();
            doing.spend = peers_view::spend(state);
            doing.waiting = None;
        }
        match notice {
            Notice::RunStarted => {
                for line in wording::start(state).into_iter().chain(std::mem::take(&mut self.notes)) {
                    self.line(&line);
                }
            }
            Notice::Recovering(recovery) => self.line(&peers_view::recovery_words(recovery)),
            Notice::GatesStarted { place, .. } => self.doing.borrow_mut().place = Some(*place),
            Notice::GatesDone { verdicts, took_ms, place } => {
                self.line(&wording::gates_done(state, verdicts, *took_ms, *place));
                // What the check of a review finds is for its reviewers.
                let gates = &state.rules.gates;
                for judged in verdicts.iter().filter(|judged| gates.iter().any(|g| g.id == judged.goal)) {
                    let word = judged.verdict.word();
                    let before = self.states.insert(judged.goal.clone(), word);
                    let turned = before.is_some_and(|before| before != word);
                    if turned || (before.is_none() && !matches!(judged.verdict, Verdict::Pass)) {
                        self.line(&wording::turned(judged, turned));
                    }
                }
            }
            Notice::TickStarted { tick, peer, skeptic } => {
                self.doing.borrow_mut().skeptic = *skeptic;
                if !screen().lock().live {
                    let part = if *skeptic { " as the skeptic" } else { "" };
                    self.line(&format!("tick {tick}: {peer} begins{part}"));
                }
            }
            Notice::TickEnded(tick) => {
                self.line(&wording::tick(tick, self.doing.borrow().skeptic));
                for warning in peers_view::warnings(tick) {
                    self.line(&format!("  {warning}"));
                }
                for judged in &tick.verdicts {
                    let before = self.states.insert(judged.goal.clone(), judged.verdict.word());
                    if before != Some(judged.verdict.word()) {
                        self.line(&wording::turned(judged, before.is_some()));
                    }
                }
                if self.verbose {
                    for line in wording::tails(tick) {
                        self.line(&line);
                    }
                }
            }
            Notice::PeerDegraded { peer, state, reason } => {
                self.line(&wording::worse(peer, *state, reason));
            }
            Notice::PeerCapped { peer, reached } => {
                self.line(&format!("{peer} takes no more turns: it reached {}", term::line(reached, 200)));
            }
            Notice::PeerWaits(cooling) => {
                let until = peers_view::ahead(at.wall, cooling.until);
                self.line(&format!("{} waits until {until} ({})", cooling.peer, cooling.cause.word()));
            }
            Notice::Waiting { until, why } => {
                self.doing.borrow_mut().waiting = Some(*until);
                let when = peers_view::ahead(at.wall, *until);
                let why = if why.is_empty() { String::new() } else { format!(": {}", term::line(why, 300)) };
                self.line(&format!("nobody can have a turn before {when}{why}"));
            }
            Notice::Warning(text) => self.line(&format!("warning: {}", term::line(text, 300))),
            // Said by whoever started the loop, on standard output.
            Notice::Stopped { .. } => screen().clear(),
        }
    }

    fn progress(&mut self, progress: Progress) {
        acknowledge_signals();
        if !screen().lock().live {
            return;
        }
        let doing = Rc::clone(&self.doing);
        peers_run::pulse::every(REDRAW, move || screen().draw(&wording::live(&progress, &doing.borrow())));
    }
}

/// Says that a signal was heard, at once: what it asks for may take its time.
fn acknowledge_signals() {
    // The loop has its own ear for them; every listener hears each signal.
    let Ok(mut signals) = Signals::take() else { return };
    let mut listening = Box::pin(async move {
        loop {
            let text = match signals.next().await {
                StopRequest::AfterTick => "stopping after this turn",
                StopRequest::Graceful(_) => {
                    "stopping: what runs is ended first; the same again stops at once"
                }
                StopRequest::Now(_) => "stopping at once",
            };
            screen().line(text);
        }
    });
    peers_run::pulse::every(HEARD, move || {
        let mut context = Context::from_waker(Waker::noop());
        // It never ends: each beat looks whether a signal came since the last one.
        let Poll::Pending = listening.as_mut().poll(&mut context);
    });
}

impl Doing {
    fn what(&self) -> &'static str {
        match self.place {
            Some(Place::Pristine) => "proof in a clean checkout",
            Some(Place::Live | Place::GateTree) | None => "gates",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whom_only_the_operator_can_help_is_not_called_degraded() {
        let ann = peers_model::PeerName::new("ann").unwrap();
        let says = |state| wording::worse(&ann, state, "not \u{1b}[31mlogged in");
        assert_eq!(says(peers_core::state::PeerState::Unavailable), "ann is unavailable: not logged in");
        assert_eq!(says(peers_core::state::PeerState::Degraded), "ann is degraded: not logged in");
    }

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
