//! A program on a real pseudo-terminal: keys go in, and what stands on the screen is read back.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::termios::{LocalModes, OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

/// Whatever is waited for comes within this time, on any machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// A program on a terminal.
pub(crate) struct Pty {
    child: Child,
    terminal: pty_process::blocking::Pty,
    said: Receiver<Vec<u8>>,
    screen: vt100::Parser,
}

impl Pty {
    /// Starts it on a terminal of this size. Reads what it writes from then on.
    pub(crate) fn start(command: &Command, (rows, cols): (u16, u16)) -> Self {
        let (terminal, inside) = pty_process::blocking::open().unwrap();
        terminal.resize(pty_process::Size::new(rows, cols)).unwrap();
        let mut attr = tcgetattr(&terminal).unwrap();
        // An ordinary one: what is typed is seen, and comes line by line.
        attr.local_modes |= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        tcsetattr(&terminal, OptionalActions::Now, &attr).unwrap();
        let mut inner = pty_process::blocking::Command::new(command.get_program());
        inner = inner.args(command.get_args()).env_clear();
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                inner = inner.env(name, value);
            }
        }
        if let Some(dir) = command.get_current_dir() {
            inner = inner.current_dir(dir);
        }
        inner = inner.env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
        let child = inner.spawn(inside).unwrap();
        let mut from = std::fs::File::from(rustix::io::dup(&terminal).unwrap());
        let (tell, said) = channel();
        std::thread::spawn(move || {
            let mut bytes = vec![0; 64 * 1024];
            // A terminal that nobody holds any more gives an error.
            while let Ok(n) = from.read(&mut bytes) {
                if n == 0 || tell.send(bytes[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, terminal, said, screen: vt100::Parser::new(rows, cols, 0) }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Types this.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).unwrap();
    }

    /// Makes the terminal another size.
    pub(crate) fn resize(&mut self, rows: u16, cols: u16) {
        // Read from then on as a terminal of that size shows it.
        self.screen.screen_mut().set_size(rows, cols);
        let size = Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.terminal, size).unwrap();
    }

    /// What stands on the screen.
    pub(crate) fn text(&self) -> String {
        self.screen.screen().contents()
    }

    /// Waits until the screen is so.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, is: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let text = self.text();
            if is(&text) {
                return text;
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.said.recv_timeout(left) {
                Ok(bytes) => self.screen.process(&bytes),
                Err(error) => panic!("{what} is not seen ({error}):\n{}", self.text()),
            }
        }
    }

    /// Waits until this stands on the screen.
    #[track_caller]
    pub(crate) fn shows(&mut self, wanted: &str) -> String {
        self.until(wanted, |text| text.contains(wanted))
    }

    /// Waits until this does not stand on the screen any more.
    #[track_caller]
    pub(crate) fn hides(&mut self, gone: &str) -> String {
        self.until(&format!("that `{gone}` is gone"), |text| !text.contains(gone))
    }

    /// What stands on the screen once the picture that is being drawn is there as a whole.
    pub(crate) fn settled(&mut self) -> String {
        while let Ok(bytes) = self.said.recv_timeout(Duration::from_millis(300)) {
            self.screen.process(&bytes);
        }
        self.text()
    }

    /// Waits for the end of the program, and asserts that the terminal is what it was before.
    #[track_caller]
    pub(crate) fn ends(&mut self) -> ExitStatus {
        let status = self.child.wait().unwrap();
        while let Ok(bytes) = self.said.recv_timeout(Duration::from_secs(1)) {
            self.screen.process(&bytes);
        }
        self.is_ordinary();
        status
    }

    /// Asserts that the terminal is an ordinary one.
    #[track_caller]
    pub(crate) fn is_ordinary(&self) {
        let screen = self.screen.screen();
        assert!(!screen.alternate_screen(), "it is on its other screen");
        assert!(!screen.hide_cursor(), "it has no cursor");
        assert!(!screen.bracketed_paste(), "what is pasted is marked");
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        let modes = tcgetattr(&self.terminal).unwrap().local_modes;
        assert!(modes.contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG), "{modes:?}");
    }

    /// Waits until the program has left its screen and is stopped, and asserts that the terminal is what it was before.
    #[track_caller]
    pub(crate) fn is_suspended(&mut self) {
        let end = Instant::now() + PATIENCE;
        while self.screen.screen().alternate_screen() || self.screen.screen().hide_cursor() {
            let left = end.saturating_duration_since(Instant::now());
            let bytes = self.said.recv_timeout(left).expect("it leaves its screen");
            self.screen.process(&bytes);
        }
        let stat = format!("/proc/{}/stat", self.id());
        while !std::fs::read_to_string(&stat).unwrap().rsplit(") ").next().unwrap().starts_with('T') {
            assert!(Instant::now() < end, "it is not stopped");
            std::thread::yield_now();
        }
        self.is_ordinary();
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // One that has ended already is not there.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}
