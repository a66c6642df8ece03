//! A program on a pseudo-terminal, and what stands on it.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::Failure;

/// A program on a terminal; it ends with this.
pub(crate) struct Terminal {
    child: Child,
    pty: pty_process::blocking::Pty,
    said: Receiver<Vec<u8>>,
    parser: vt100::Parser,
}

impl Terminal {
    /// Starts it on a terminal of this size.
    pub(crate) fn start(command: &Command, (rows, cols): (u16, u16)) -> Result<Self, Failure> {
        let (pty, inside) = pty_process::blocking::open().map_err(|error| error.to_string())?;
        pty.resize(pty_process::Size::new(rows, cols)).map_err(|error| error.to_string())?;
        let mut inner =
            pty_process::blocking::Command::new(command.get_program()).args(command.get_args()).env_clear();
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                inner = inner.env(name, value);
            }
        }
        inner = inner.env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
        if let Some(dir) = command.get_current_dir() {
            inner = inner.current_dir(dir);
        }
        let child = inner.spawn(inside).map_err(|error| error.to_string())?;
        let fd = std::os::fd::AsFd::as_fd(&pty).try_clone_to_owned()?;
        let mut from = std::fs::File::from(fd);
        let (tell, said) = channel();
        std::thread::spawn(move || {
            let mut bytes = vec![0; 64 * 1024];
            while let Ok(n @ 1..) = from.read(&mut bytes) {
                if tell.send(bytes.get(..n).unwrap_or_default().to_vec()).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, pty, said, parser: vt100::Parser::new(rows, cols, 0) })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn screen(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    /// Types this.
    pub(crate) fn keys(&mut self, keys: &str) -> Result<(), Failure> {
        Ok(self.pty.write_all(keys.as_bytes())?)
    }

    /// Reads until the screen is so; fails after a while.
    pub(crate) fn until(&mut self, what: &str, is: impl Fn(&vt100::Screen) -> bool) -> Result<(), Failure> {
        let end = Instant::now() + Duration::from_secs(30);
        while !is(self.parser.screen()) {
            let left = end.saturating_duration_since(Instant::now());
            let Ok(bytes) = self.said.recv_timeout(left) else {
                return Err(format!("{what} is not seen:\n{}", self.parser.screen().contents()).into());
            };
            self.parser.process(&bytes);
        }
        Ok(())
    }

    /// Reads what comes for so long.
    pub(crate) fn rest(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while let Ok(bytes) = self.said.recv_timeout(end.saturating_duration_since(Instant::now())) {
            self.parser.process(&bytes);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // One that has ended already is not there.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}
