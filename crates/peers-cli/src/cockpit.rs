//! `peers run --tui`: the cockpit over one loop, which runs as a process of its own beside it.
//!
//! Whatever becomes of the screen, the loop is the one that `peers run` is without it: it has its own signals and
//! sweeps what it leaves behind, and no command that the screen runs is among its children.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_console::parts::{Parts, broken, event, has_terminal, theme};
use peers_console::rows::Watched;
use peers_console::typist::Typist;
use peers_model::exit;
use peers_place::Place;
use peers_sys::identity::{Pid, ProcIdentity};
use peers_sys::interrupts::{Interrupts, SUSPEND};
use peers_sys::signal::{Signal, signal_verified};
use peers_sys::{clock, env, term};
use peers_tui::{Content, Event, Host, Left, LogKind, Options, Pace, Part, Prefs, Signals, Snapshot};
use peers_view::{Cell, Feed, FeedItem, Listed, LoopRow, Page, Tone};

/// Tells the loop which process shows it: it ends with that one.
const SCREEN: &str = "PEERS_SCREEN_PID";
/// The option that asks for it.
const OPTION: &str = "--tui";
/// Lines of the loop that are kept.
const LINES: usize = 5_000;
/// What stands for the end of the loop among signals.
const ENDED: i32 = 0;
/// How often it is looked whether the loop has ended.
const LOOK: Duration = Duration::from_millis(100);
/// Records that are shown at first.
const EVENTS: usize = 50;
/// The row is read again after this although nothing has begun, for the times in it.
const AGAIN: Duration = Duration::from_secs(1);

/// What the loop said on standard error, and what of it is not printed yet.
#[derive(Debug, Default)]
struct Said {
    lines: VecDeque<String>,
    /// Lines before those.
    gone: usize,
    printed: usize,
}

impl Said {
    fn add(&mut self, line: String) {
        self.lines.push_back(line);
        if self.lines.len() > LINES {
            self.lines.pop_front();
            self.gone += 1;
        }
    }

    /// What was said since it was last asked for.
    fn news(&mut self) -> Vec<String> {
        let skip = self.printed.saturating_sub(self.gone);
        self.printed = self.gone + self.lines.len();
        self.lines.iter().skip(skip).cloned().collect()
    }
}

type Shared = Arc<Mutex<Said>>;

fn lock(said: &Shared) -> MutexGuard<'_, Said> {
    // Lines are whole whoever panicked.
    said.lock().unwrap_or_else(PoisonError::into_inner)
}

/// In the loop that a screen shows: if that is killed, nobody watches any more, and it stops.
///
/// # Errors
/// The system does not allow it.
pub(crate) fn shown(cx: &Cx) -> Result<(), CommandError> {
    if let Some(screen) = cx.env.text(SCREEN).and_then(|pid| pid.parse().ok()) {
        peers_sys::signal::end_with_parent(screen)?;
    }
    Ok(())
}

/// Runs the command line without `--tui` as a child, and shows it until it ends or the operator leaves the screen;
/// then its words are printed as it would have printed them.
///
/// # Errors
/// There is no terminal, or the loop cannot be started.
pub(crate) fn watch(cx: &Cx) -> Result<ExitCode, CommandError> {
    if !has_terminal(&cx.env) {
        return Err(CommandError::new(exit::ENVIRONMENT, format!("{OPTION} needs a terminal"))
            .hint(format!("leave out {OPTION}: progress is printed line by line")));
    }
    let place = cx.place()?;
    let interrupts = Interrupts::take_with_suspend()?;
    let program = env::current_exe()?;
    let args = env::args().into_iter().skip(1).filter(|arg| arg != OPTION);
    let mut command = Command::new(&program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env(SCREEN, std::process::id().to_string());
    let mut child = command.spawn()?;
    let identity =
        Pid::new(i32::try_from(child.id()).unwrap_or_default()).and_then(|pid| ProcIdentity::of(pid).ok());
    let said: Shared = Arc::default();
    let heard = child.stderr.take().map(|from| {
        let said = Arc::clone(&said);
        std::thread::spawn(move || {
            for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
                lock(&said).add(String::from_utf8_lossy(&line).into_owned());
            }
        })
    });
    let out = child.stdout.take().map(|mut from| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let _broken = from.read_to_end(&mut text);
            text
        })
    });
    let (tell, ended) = channel();
    let _waiter = std::thread::spawn(move || {
        let status = child.wait();
        // Who does not wait for it any more is not told.
        let _unheard = tell.send(status);
    });
    let mut run = Run { identity, ended, status: None };
    let watched = run.show(cx, &place, (interrupts, Arc::clone(&said)), program);
    let print = || {
        for line in lock(&said).news() {
            cx.out.talk(&line);
        }
    };
    let interrupts = match watched {
        Ok(interrupts) => interrupts,
        Err(error) => {
            // Without a screen it is a run as any other.
            cx.out.talk(&format!("warning: {}", error.summary()));
            None
        }
    };
    if run.status.is_none() {
        cx.out.talk("left the screen; the loop goes on here, and Ctrl-C stops it");
    }
    while run.poll().is_none() {
        print();
        match &interrupts {
            Some(interrupts) => {
                if let Some(signal) = interrupts.lock().unwrap_or_else(PoisonError::into_inner).wait(LOOK) {
                    run.pass(signal);
                }
            }
            None => std::thread::sleep(LOOK),
        }
    }
    let _all = heard.map(std::thread::JoinHandle::join);
    print();
    let text = out.and_then(|out| out.join().ok()).unwrap_or_default();
    cx.out.bytes(&text)?;
    Ok(ExitCode::from(run.code()))
}

/// The loop that runs beside the screen.
struct Run {
    identity: Option<ProcIdentity>,
    ended: Receiver<std::io::Result<ExitStatus>>,
    status: Option<ExitStatus>,
}

/// Signals, for the screen first and for what comes after it.
type Taken = Option<Arc<Mutex<Interrupts>>>;

impl Run {
    /// Shows it until it ends or somebody leaves.
    fn show(
        &mut self,
        cx: &Cx,
        place: &Place,
        (interrupts, said): (Interrupts, Shared),
        program: std::path::PathBuf,
    ) -> Result<Taken, CommandError> {
        let interrupts = Arc::new(Mutex::new(interrupts));
        let path = place.work_dir().to_string_lossy().into_owned();
        let name =
            place.work_dir().file_name().map_or_else(|| path.clone(), |n| n.to_string_lossy().into_owned());
        let host = One {
            cx: Cx {
                env: cx.env.clone(),
                target: cx.target.clone(),
                project: cx.project.clone(),
                out: cx.out.clone(),
            },
            name: name.clone(),
            path: path.clone(),
            watched: Watched::new(place.work_dir(), None),
            row: None,
            shown: None,
            parts: Parts::default(),
            feed: None,
            said,
            page: 0,
        };
        let (tell, over) = channel::<()>();
        let taken = Arc::clone(&interrupts);
        let wait = move |most: Duration| {
            let until = Instant::now() + most;
            loop {
                if over.try_recv() != Err(TryRecvError::Empty) {
                    return Some(ENDED);
                }
                let signal = taken.lock().unwrap_or_else(PoisonError::into_inner).wait(LOOK);
                if signal.is_some() || Instant::now() >= until {
                    return signal;
                }
            }
        };
        let signals = Signals { wait: Box::new(wait), now: clock::now, suspends: SUSPEND };
        let acts = Arc::new(Typist::new(&cx.env, [("peers", program)]));
        let options = Options { theme: theme(None, &cx.env), only: Some(name), ..Options::default() };
        peers_console::screen::screen().hold(true);
        // The end of the loop closes the screen.
        let ended = std::mem::replace(&mut self.ended, channel().1);
        let (quit, gone) = channel::<()>();
        let waiting = std::thread::spawn(move || {
            let status = loop {
                match ended.recv_timeout(LOOK) {
                    Ok(status) => break status.ok(),
                    Err(RecvTimeoutError::Timeout) if gone.try_recv() == Err(TryRecvError::Empty) => {}
                    Err(_) => break None,
                }
            };
            drop(tell);
            (status, ended)
        });
        let left = peers_tui::run(options, Pace::default(), Box::new(host), acts, signals);
        drop(quit);
        if let Ok((status, ended)) = waiting.join() {
            (self.status, self.ended) = (status, ended);
        }
        peers_console::screen::screen().hold(false);
        match left {
            Ok(Left::Signal(signal)) if signal != ENDED => self.pass(signal),
            Ok(_) => {}
            Err(failure) => return Err(broken(failure, "progress is printed line by line from here on")),
        }
        Ok(Some(interrupts))
    }

    /// Passes a signal on. What a terminal sends comes to both.
    fn pass(&self, signal: i32) {
        let signal = match signal {
            1 | 15 => Signal::Term,
            _ => return,
        };
        if let Some(identity) = &self.identity {
            // One that has just ended needs none.
            let _gone = signal_verified(identity, signal);
        }
    }

    fn poll(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.ended.try_recv().ok().and_then(Result::ok);
        }
        self.status
    }

    /// The exit code of the loop is that of this command.
    fn code(&self) -> u8 {
        use std::os::unix::process::ExitStatusExt as _;
        let Some(status) = self.status else { return exit::BUG };
        match (status.code(), status.signal()) {
            (Some(code), _) => u8::try_from(code).unwrap_or(exit::BUG),
            (None, Some(signal)) => exit::signalled(signal),
            (None, None) => exit::BUG,
        }
    }
}

/// The one loop, as the cockpit reads it.
struct One {
    cx: Cx,
    name: String,
    path: String,
    watched: Watched,
    row: Option<LoopRow>,
    shown: Option<peers_model::Mono>,
    parts: Parts,
    feed: Option<Feed>,
    said: Shared,
    /// Lines of the loop that were shown last.
    page: usize,
}

impl One {
    fn listed(&self) -> Listed {
        Listed { name: self.name.clone(), path: self.path.clone(), ..Listed::default() }
    }
}

impl Host for One {
    fn rows(&mut self) -> Result<Option<Snapshot>, String> {
        let now = clock::mono();
        if self.shown.is_some_and(|at| now.since(at) < AGAIN) {
            return Ok(None);
        }
        let spelling = self.cx.out.spelling().clone();
        let row = self.watched.row(&self.cx.env, None, self.listed(), spelling);
        self.row = Some(row.clone());
        self.shown = Some(now);
        Ok(Some(Snapshot { at: clock::now(), rows: vec![row], warnings: Vec::new() }))
    }

    fn part(&mut self, _name: &str, part: &Part) -> Result<Option<Content>, String> {
        if *part != Part::Log(LogKind::Loop) {
            return self.parts.content(&self.cx, (self.row.as_ref(), &self.listed()), part);
        }
        let said = lock(&self.said);
        let all = said.gone + said.lines.len();
        if all == self.page && all > 0 {
            return Ok(None);
        }
        self.page = all;
        let mut page = Page::default();
        for line in &said.lines {
            page.line(&[Cell::whole(Tone::Plain, term::inline(line))]);
        }
        Ok(Some(Content::Text(page)))
    }

    fn events(&mut self) -> Vec<Event> {
        let Ok((_, mut disk)) = self.cx.view() else { return Vec::new() };
        let feed = match &mut self.feed {
            Some(feed) => feed,
            slot => match Feed::tail(&mut disk, EVENTS) {
                Ok(feed) => slot.insert(feed),
                Err(_) => return Vec::new(),
            },
        };
        // What cannot be read its other tabs say.
        let items = feed.poll(&mut disk).map(|polled| polled.items).unwrap_or_default();
        let at = |item: &FeedItem| match item {
            FeedItem::Line(line) => line.ts,
            FeedItem::Unreadable { .. } | FeedItem::Replaced => clock::now(),
        };
        items.iter().map(|item| event(&self.name, (at(item), item))).collect()
    }

    fn doctor(&mut self, _names: &[String]) -> Page {
        let mut page = Page::default();
        let report = self.cx.place().and_then(|place| {
            peers_acts::doctor::examine(&place, &self.cx.env, peers_acts::doctor::Ask::Nobody)
                .map_err(CommandError::from)
        });
        match report {
            Ok(report) => {
                let report = peers_console::checkup::spelt(report, self.cx.out.spelling());
                page.append(peers_console::checkup::page(&report));
            }
            Err(error) => page.tell(Tone::Bad, error.summary()),
        }
        page
    }

    fn compare(&mut self, _names: &[String]) -> Result<Page, String> {
        Err("there is one loop here".to_owned())
    }

    fn keep(&mut self, _prefs: &Prefs) {}
}
