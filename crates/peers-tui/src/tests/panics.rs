//! Whatever breaks, the terminal is an ordinary one afterwards, and what broke is told on it.

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use peers_model::Timestamp;
use peers_view::Page;
use rustix::termios::{LocalModes, tcgetattr};

use super::sample::{now, options, row};
use crate::host::{Acts, Content, Done, Event, Host, Part, Snapshot};
use crate::runtime::{Failure, Pace, Signals};
use crate::theme::ThemeName;
use crate::{Prefs, run};

/// Names who breaks, for the process that this test starts.
const BREAKS: &str = "PEERS_TUI_TEST_BREAKS";

struct Broken {
    reads: bool,
}

impl Host for Broken {
    fn rows(&mut self) -> Result<Option<Snapshot>, String> {
        assert!(!self.reads, "the reader broke");
        Ok(Some(Snapshot { at: now(), rows: vec![row("docs")], warnings: Vec::new() }))
    }

    fn part(&mut self, _: &str, _: &Part) -> Result<Option<Content>, String> {
        Ok(None)
    }

    fn events(&mut self) -> Vec<Event> {
        Vec::new()
    }

    fn doctor(&mut self, _: &[String]) -> Page {
        Page::default()
    }

    fn compare(&mut self, _: &[String]) -> Result<Page, String> {
        Ok(Page::default())
    }

    fn keep(&mut self, _: &Prefs) {}
}

struct Nothing;

impl Acts for Nothing {
    fn run(&self, _: &[String]) -> Done {
        Done::default()
    }

    fn show(&self, _: &[String], _: &crate::At) -> Result<(), String> {
        Ok(())
    }

    fn suspend(&self) {}
}

/// The time, until somebody asks a second time: the thread that draws does.
fn breaking_clock() -> Timestamp {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    assert!(ASKED.fetch_add(1, Ordering::Relaxed) < 2, "the drawing broke");
    now()
}

/// What the process does that the test starts; in the test itself nothing.
#[test]
fn child_of_the_test_below() {
    let Some(who) = std::env::var_os(BREAKS) else { return };
    let clock = if who == "drawing" { breaking_clock } else { now };
    let signals = Signals {
        wait: Box::new(|most| {
            std::thread::park_timeout(most);
            None
        }),
        now: clock,
        suspends: 20,
    };
    let host = Box::new(Broken { reads: who == "reader" });
    let left = run(options(ThemeName::Dark), Pace::default(), host, Arc::new(Nothing), signals);
    let Err(Failure::Broken(why)) = left else { panic!("{left:?}") };
    println!("told: {why}");
}

#[test]
fn a_panic_of_any_thread_leaves_an_ordinary_terminal_and_is_told() {
    for (who, told) in [("reader", "the reader broke"), ("drawing", "the drawing broke")] {
        let (terminal, inside) = pty_process::blocking::open().unwrap();
        terminal.resize(pty_process::Size::new(24, 80)).unwrap();
        let mut child = pty_process::blocking::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tests::panics::child_of_the_test_below", "--nocapture"])
            .env(BREAKS, who)
            .env("RUST_BACKTRACE", "0")
            .spawn(inside)
            .unwrap();
        let mut shown = Vec::new();
        // The last end of it is closed: an error, as terminals tell it.
        let _closed = (&terminal).read_to_end(&mut shown);
        child.wait().unwrap();
        let mut screen = vt100::Parser::new(24, 80, 0);
        screen.process(&shown);
        let screen = screen.screen();
        let entered = shown.windows(8).any(|part| part == b"\x1b[?1049h");
        assert!(entered, "{who}: it never had its screen: {:?}", String::from_utf8_lossy(&shown));
        let modes = tcgetattr(&terminal).unwrap().local_modes;
        assert!(modes.contains(LocalModes::ECHO | LocalModes::ICANON), "{who}: {modes:?}");
        assert!(!screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste(), "{who}");
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None, "{who}");
        assert!(screen.contents().contains(told), "{who}: {}", screen.contents());
    }
}
