//! The terminal, the threads, and the loop between them.
//!
//! One thread waits for keys, one reads through the [`Host`], one each runs a command; they send messages. This thread
//! updates the model and draws: at once after a key, at most so many times a second after data. Whatever happens, a
//! panic too, the terminal is left as it was found.

use std::io::{self, Write as _};
use std::panic;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use peers_model::Timestamp;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture, Event, poll, read,
};
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};

use crate::host::{Acts, At, Done, Host};
use crate::message::{Ask, Cmd, Msg, Want};
use crate::model::{Model, Options};
use crate::prefs::Prefs;
use crate::view;

/// How often things are looked at and drawn.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Pictures in a second at most, for data; a key is drawn at once.
    pub fps: u32,
    /// The shortest time between two looks at all loops.
    pub rows: Duration,
    /// The same for parts of one loop, and for events.
    pub parts: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { fps: 10, rows: Duration::from_secs(1), parts: Duration::from_millis(500) }
    }
}

/// A look may take a twentieth of the time: after one that took long there is a longer rest.
const REST: u32 = 20;
/// The longest rest.
const LONGEST: Duration = Duration::from_secs(30);
/// A key is waited for so long before it is looked whether the terminal is another program's.
const KEYS: Duration = Duration::from_millis(100);

/// Signals and the time, which a program of ours is told elsewhere.
pub struct Signals {
    /// The signal that came, if one did. Waits no longer than that.
    pub wait: Box<dyn FnMut(Duration) -> Option<i32> + Send>,
    /// How late it is.
    pub now: fn() -> Timestamp,
    /// The number of the signal that suspends.
    pub suspends: i32,
}

impl std::fmt::Debug for Signals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signals").finish_non_exhaustive()
    }
}

/// How it was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// The operator left.
    Quit,
    /// This signal came.
    Signal(i32),
}

/// Why it ended without anybody leaving.
#[derive(Debug)]
pub enum Failure {
    /// The terminal.
    Terminal(io::Error),
    /// A part of this program broke.
    Broken(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Terminal(error)
    }
}

/// Opens the cockpit on standard output, and stays until the operator leaves.
///
/// # Errors
/// The terminal cannot be used, or a thread panicked; the terminal is as it was before.
pub fn run(
    options: Options,
    pace: Pace,
    host: Box<dyn Host>,
    acts: Arc<dyn Acts>,
    signals: Signals,
) -> Result<Left, Failure> {
    let said = Arc::new(Mutex::new(None));
    let _hook = Hook::set(&said);
    let screen = Screen { keys: Arc::new(Mutex::new(())), mouse: !options.prefs.mouse_off };
    screen.enter()?;
    let _restored = Restored;
    let mut terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
    let mut stage = Stage { screen, acts };
    let model = Model::new(options, (signals.now)());
    let left = drive(&mut terminal, (model, pace), host, signals, &mut stage);
    let broken = said.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (left, broken) {
        (_, Some(broken)) => Err(Failure::Broken(broken)),
        (left, None) => left,
    }
}

/// The terminal when this goes, whichever way.
struct Restored;

impl Drop for Restored {
    fn drop(&mut self) {
        restore();
    }
}

/// Makes the terminal an ordinary one again. Twice does no harm.
fn restore() {
    // One that is gone has nothing to be restored. The mode goes first: who sees that the screen
    // was left may type a line at once.
    let _gone = disable_raw_mode();
    let _gone = execute!(
        io::stdout(),
        DisableMouseCapture,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show
    );
}

/// A panic is told after the terminal is an ordinary one: of this thread at once, of others at the end.
struct Hook;

impl Hook {
    fn set(said: &Arc<Mutex<Option<String>>>) -> Self {
        let drawing = thread::current().id();
        let said = Arc::clone(said);
        let before = Mutex::new(panic::take_hook());
        panic::set_hook(Box::new(move |info| {
            if thread::current().id() == drawing {
                restore();
                let before = before.lock().unwrap_or_else(PoisonError::into_inner);
                before(info);
                return;
            }
            let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
            said.get_or_insert_with(|| info.to_string());
        }));
        Self
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        // Within a panic none can be set.
        if !thread::panicking() {
            let _ours = panic::take_hook();
        }
    }
}

/// The terminal as the cockpit has it.
struct Screen {
    /// Held by whoever reads keys.
    keys: Arc<Mutex<()>>,
    mouse: bool,
}

impl Screen {
    fn enter(&self) -> io::Result<()> {
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste, cursor::Hide)?;
        if self.mouse {
            execute!(io::stdout(), EnableMouseCapture)?;
        }
        Ok(())
    }
}

/// Who has the terminal for a while.
#[derive(Debug)]
pub(crate) enum Lent {
    /// The shell that started this.
    Shell,
    /// A command, and where.
    Command(Vec<String>, At),
}

/// The terminal that is standard output.
struct Stage {
    screen: Screen,
    acts: Arc<dyn Acts>,
}

type Out = CrosstermBackend<io::Stdout>;

impl Stage {
    /// Another program has the terminal for a while; why that could not be started, if so. What is drawn is drawn anew.
    fn lend(&mut self, terminal: &mut Terminal<Out>, to: Lent) -> io::Result<Option<String>> {
        // Keys are the other's meanwhile.
        let keys = Arc::clone(&self.screen.keys);
        let held = keys.lock().unwrap_or_else(PoisonError::into_inner);
        restore();
        let failed = match to {
            Lent::Shell => {
                self.acts.suspend();
                None
            }
            Lent::Command(argv, at) => self.acts.show(&argv, &at).err(),
        };
        self.screen.enter()?;
        drop(held);
        // A terminal that was another's is not what was drawn; one made anew asks it nothing.
        *terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        Ok(failed)
    }

    fn mouse(&mut self, on: bool) -> io::Result<()> {
        self.screen.mouse = on;
        if on {
            execute!(io::stdout(), EnableMouseCapture)
        } else {
            execute!(io::stdout(), DisableMouseCapture)
        }
    }

    /// By the sequence that terminals put on the clipboard (OSC 52).
    fn copy(text: &str) -> io::Result<()> {
        let mut out = io::stdout();
        write!(out, "\u{1b}]52;c;{}\u{7}", base64(text.as_bytes()))?;
        out.flush()
    }

    fn bell() -> io::Result<()> {
        let mut out = io::stdout();
        out.write_all(b"\x07")?;
        out.flush()
    }
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for n in 0..4_usize {
            let at = usize::try_from(bits >> (18 - 6 * n) & 63).unwrap_or_default();
            let sign = SIGNS.get(at).copied().map_or('=', char::from);
            out.push(if n <= chunk.len() { sign } else { '=' });
        }
    }
    out
}

/// What the thread that reads is told.
enum Order {
    Want(Want),
    Ask(Ask),
    Keep(Prefs),
    Refresh,
}

/// Runs the loop until somebody leaves.
fn drive(
    terminal: &mut Terminal<Out>,
    (mut model, pace): (Model, Pace),
    host: Box<dyn Host>,
    mut signals: Signals,
    stage: &mut Stage,
) -> Result<Left, Failure> {
    let (tell, told) = channel();
    let (order, orders) = channel();
    let now = signals.now;
    let suspends = signals.suspends;
    let lock = Arc::clone(&stage.screen.keys);
    start("keys", &tell, move |tell| keys(&lock, tell))?;
    start("reader", &tell, move |tell| reader(host, pace, &orders, tell))?;
    start("told", &tell, move |tell| {
        loop {
            if let Some(signal) = (signals.wait)(Duration::from_mins(1))
                && tell.send(Msg::Signal(signal)).is_err()
            {
                return;
            }
        }
    })?;
    let frame = Duration::from_secs(1) / pace.fps.max(1);
    let second = Duration::from_secs(1);
    let (mut drawn, mut clock) = (Instant::now(), Instant::now());
    paint(terminal, &mut model)?;
    let mut cmds = model.update(Msg::Clock(now()));
    let (mut dirty, mut at_once) = (false, false);
    // Ctrl-C in a program that has the terminal is for that program; it comes here too.
    let mut others = Instant::now();
    loop {
        for cmd in std::mem::take(&mut cmds) {
            match cmd {
                Cmd::Quit(None) => return Ok(Left::Quit),
                Cmd::Quit(Some(signal)) if signal == suspends => {
                    stage.lend(terminal, Lent::Shell)?;
                    at_once = true;
                }
                Cmd::Quit(Some(signal)) => return Ok(Left::Signal(signal)),
                Cmd::Suspend => {
                    stage.lend(terminal, Lent::Shell)?;
                    at_once = true;
                }
                Cmd::Show(argv, at) => {
                    let why = stage.lend(terminal, Lent::Command(argv, at))?;
                    let _sent = tell.send(Msg::Back(why));
                    (at_once, others) = (true, Instant::now() + frame.max(KEYS));
                }
                Cmd::Run(all) => run_all(all, &stage.acts, &tell)?,
                Cmd::Copy(text) => Stage::copy(&text)?,
                Cmd::Bell => Stage::bell()?,
                Cmd::Mouse(on) => stage.mouse(on)?,
                // Should the reader be gone, that is told by its own message.
                Cmd::Want(want) => drop(order.send(Order::Want(want))),
                Cmd::Refresh => drop(order.send(Order::Refresh)),
                Cmd::Ask(ask) => drop(order.send(Order::Ask(ask))),
                Cmd::Keep(prefs) => drop(order.send(Order::Keep(prefs))),
            }
        }
        if at_once || (dirty && drawn.elapsed() >= frame) {
            paint(terminal, &mut model)?;
            (drawn, dirty, at_once) = (Instant::now(), false, false);
            cmds.extend(model.update(Msg::Resize));
            if !cmds.is_empty() {
                continue;
            }
        }
        let until_clock = second.saturating_sub(clock.elapsed());
        let until_frame = if dirty { frame.saturating_sub(drawn.elapsed()) } else { second };
        let msg = match told.recv_timeout(until_clock.min(until_frame)) {
            Ok(msg) => msg,
            Err(RecvTimeoutError::Timeout) => {
                if clock.elapsed() < second {
                    continue;
                }
                clock = Instant::now();
                Msg::Clock(now())
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::Broken("every thread is gone".to_owned()));
            }
        };
        match msg {
            Msg::Gone(why) => return Err(Failure::Broken(why)),
            Msg::Signal(2 | 3) if Instant::now() < others => continue,
            _ => {}
        }
        // Keys are drawn at once, and so is what was waited for.
        at_once |= matches!(
            msg,
            Msg::Key(_) | Msg::Mouse(_) | Msg::Paste(_) | Msg::Resize | Msg::Done(..) | Msg::Back(_)
        );
        dirty = true;
        cmds.extend(model.update(msg));
    }
}

fn paint(terminal: &mut Terminal<Out>, model: &mut Model) -> io::Result<()> {
    let mut hits = view::Hits::default();
    terminal.draw(|frame| hits = view::draw(model, frame))?;
    model.hits = hits;
    Ok(())
}

/// Starts a thread whose end, should it come before everybody's, is told.
fn start(name: &str, tell: &Sender<Msg>, body: impl FnOnce(&Sender<Msg>) + Send + 'static) -> io::Result<()> {
    struct Told(Sender<Msg>, String);
    impl Drop for Told {
        fn drop(&mut self) {
            // Who left does not listen any more.
            let _unheard = self.0.send(Msg::Gone(format!("the thread `{}` ended", self.1)));
        }
    }
    let told = Told(tell.clone(), name.to_owned());
    thread::Builder::new().name(name.to_owned()).spawn(move || body(&told.0))?;
    Ok(())
}

/// Tells keys; the lock is held while the terminal is read.
fn keys(lock: &Mutex<()>, tell: &Sender<Msg>) {
    loop {
        let event = {
            let _mine = lock.lock().unwrap_or_else(PoisonError::into_inner);
            match poll(KEYS) {
                Ok(true) => read(),
                Ok(false) => {
                    // Whoever waits for the terminal gets it.
                    thread::yield_now();
                    continue;
                }
                Err(error) => Err(error),
            }
        };
        let msg = match event {
            Ok(Event::Key(key)) => Msg::Key(key),
            Ok(Event::Mouse(mouse)) => Msg::Mouse(mouse),
            Ok(Event::Paste(text)) => Msg::Paste(text),
            Ok(Event::Resize(..)) => Msg::Resize,
            Ok(Event::FocusGained | Event::FocusLost) => continue,
            // The terminal is gone.
            Err(_) => return,
        };
        if tell.send(msg).is_err() {
            return;
        }
    }
}

/// Runs commands one after the other on a thread of their own; the first that does not end well is the last.
fn run_all(all: Vec<Vec<String>>, acts: &Arc<dyn Acts>, tell: &Sender<Msg>) -> io::Result<()> {
    let (acts, tell) = (Arc::clone(acts), tell.clone());
    thread::Builder::new().name("act".to_owned()).spawn(move || {
        let mut told = (Vec::new(), Done::default());
        for argv in all {
            let Done { code, output } = acts.run(&argv);
            let well = code == Some(0);
            let before =
                if told.1.output.is_empty() { String::new() } else { format!("{}\n", told.1.output) };
            told = (argv, Done { code, output: format!("{before}{output}") });
            if !well {
                break;
            }
        }
        let _unheard = tell.send(Msg::Done(told.0, told.1));
    })?;
    Ok(())
}

/// Reads what is wanted, again and again, as often as it is worth.
fn reader(mut host: Box<dyn Host>, pace: Pace, orders: &Receiver<Order>, tell: &Sender<Msg>) {
    let mut want = Want::default();
    let (mut rows_due, mut parts_due) = (Instant::now(), Instant::now());
    loop {
        let now = Instant::now();
        let due = if want == Want::default() { rows_due } else { rows_due.min(parts_due) };
        match orders.recv_timeout(due.saturating_duration_since(now)) {
            Ok(Order::Want(new)) => (want, parts_due) = (new, Instant::now()),
            Ok(Order::Refresh) => (rows_due, parts_due) = (Instant::now(), Instant::now()),
            Ok(Order::Keep(prefs)) => host.keep(&prefs),
            Ok(Order::Ask(ask)) => {
                let answer = match &ask {
                    Ask::Doctor(names) => Ok(host.doctor(names)),
                    Ask::Compare(names) => host.compare(names),
                };
                if tell.send(Msg::Answer(ask, answer)).is_err() {
                    return;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            // Nobody draws any more.
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if Instant::now() >= rows_due {
            let began = Instant::now();
            if let Some(rows) = host.rows().transpose()
                && tell.send(Msg::Rows(rows)).is_err()
            {
                return;
            }
            rows_due = rest(began, pace.rows);
        }
        if Instant::now() >= parts_due {
            let began = Instant::now();
            if let Some((name, parts)) = &want.of {
                for part in parts {
                    let Some(content) = host.part(name, part).transpose() else { continue };
                    let msg = Msg::Part { name: name.clone(), part: part.clone(), content };
                    if tell.send(msg).is_err() {
                        return;
                    }
                }
            }
            if want.events {
                let events = host.events();
                if !events.is_empty() && tell.send(Msg::Events(events)).is_err() {
                    return;
                }
            }
            parts_due = rest(began, pace.parts);
        }
    }
}

/// When to look again.
fn rest(began: Instant, least: Duration) -> Instant {
    Instant::now() + began.elapsed().saturating_mul(REST).clamp(least, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn what_is_copied_is_spelt_as_the_standard_has_it() {
        // RFC 4648, section 10.
        let all = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(all, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }
}
