//! A process that outlives whoever starts it, and the one word by which it says that it is up.
//!
//! Who starts it ([`Launch`]) hands it a held lock as its standard input, so that there is no instant at which
//! nobody holds that lock, a pipe as its standard output, and a log as its standard error. Who was started so
//! ([`Inherited::take`]) leaves session and terminal of its starter, takes the lock over
//! ([`crate::lock::FileLock::adopt`]), and says in one line through the pipe that it runs, or why it does not.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::identity::{Pid, ProcIdentity};

/// The longest line that a process says through its pipe, bytes.
const LINE: usize = 64 * 1024;
/// The line of one that runs.
const READY: &str = "ready";
/// How the line of one that does not run begins: `fail:<exit code> <why>`.
const FAIL: &str = "fail:";

/// What a process was handed by whoever launched it.
#[derive(Debug)]
pub struct Inherited {
    /// The open file that is the held lock.
    pub lock: File,
    /// Where it says that it is up.
    pub ready: ReadyPipe,
}

/// The way to say once whether one runs.
#[derive(Debug)]
pub struct ReadyPipe(File);

impl Inherited {
    /// Takes over what stands on the standard streams, and leaves the session of the starter: standard input
    /// is empty then, standard output goes where standard error goes. To be called first of all, on the only
    /// thread.
    ///
    /// # Errors
    /// When this process leads a group already, as under a shell: then nobody launched it so. Or when the
    /// streams cannot be taken.
    pub fn take() -> io::Result<Self> {
        // In a container of its own there is no terminal, and its group is its own already.
        if !crate::identity::is_kept_loop() {
            rustix::process::setsid()?;
        }
        // Who started this may listen for signals in a way that its children inherit.
        nix::sys::signal::SigSet::empty().thread_set_mask().map_err(io::Error::from)?;
        let lock = File::from(rustix::io::fcntl_dupfd_cloexec(io::stdin().as_fd(), 3)?);
        let pipe = File::from(rustix::io::fcntl_dupfd_cloexec(io::stdout().as_fd(), 3)?);
        let null = File::options().read(true).open("/dev/null")?;
        rustix::stdio::dup2_stdin(null)?;
        rustix::stdio::dup2_stdout(io::stderr().as_fd())?;
        Ok(Self { lock, ready: ReadyPipe(pipe) })
    }
}

/// Says on standard output that the process did not begin that was to be launched in a container, and ends with the
/// same exit code.
pub(crate) fn not_begun(why: &str) -> std::process::ExitCode {
    // As an operator sees it: what is missing is missing on this machine.
    const ENVIRONMENT: u8 = 6;
    let said = rustix::io::fcntl_dupfd_cloexec(io::stdout().as_fd(), 3);
    if let Ok(pipe) = said {
        ReadyPipe(File::from(pipe)).failed(ENVIRONMENT, why);
    }
    std::process::ExitCode::from(ENVIRONMENT)
}

impl ReadyPipe {
    /// Says that it runs. Whoever started it may have gone.
    pub fn ready(mut self) {
        let _nobody_listens = self.0.write_all(format!("{READY}\n").as_bytes());
    }

    /// Says that it does not run: the exit code that follows, and why, in one line.
    pub fn failed(mut self, code: u8, why: &str) {
        let mut line = format!("{FAIL}{code} {}", why.replace(['\n', '\r'], " "));
        let end = (0..LINE).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
        line.truncate(end);
        line.push('\n');
        let _nobody_listens = self.0.write_all(line.as_bytes());
    }
}

/// A process to be launched.
#[derive(Debug)]
pub struct Launch {
    /// The program, an absolute path.
    pub program: PathBuf,
    /// The arguments after `argv[0]`.
    pub args: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// The held lock, see [`crate::lock::FileLock::hand_over`]. Closed here once it is handed over.
    pub lock: File,
    /// Where standard error goes, and standard output once the process is up.
    pub log: File,
}

/// A process that was launched. It goes on when this is dropped.
#[derive(Debug)]
pub struct Launched {
    child: Child,
    identity: Option<ProcIdentity>,
    pipe: Option<ChildStdout>,
}

/// What a launched process said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// It runs.
    Ready,
    /// It does not run.
    Failed {
        /// Its exit code.
        code: u8,
        /// Why, in one line. From our own program, and yet not to be printed unsanitised.
        why: String,
    },
    /// It ended, or closed the pipe, without a word.
    Died,
    /// It has said nothing yet.
    Nothing,
}

/// How a launched process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code, if it exited.
    pub code: Option<i32>,
    /// The signal that it died of.
    pub signal: Option<i32>,
}

impl Launch {
    /// Starts it.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start(self) -> io::Result<Launched> {
        let Self { program, args, env, cwd, lock, log } = self;
        let mut child = Command::new(program)
            .args(args)
            .env_clear()
            .envs(env)
            .current_dir(cwd)
            .stdin(Stdio::from(OwnedFd::from(lock)))
            .stdout(Stdio::piped())
            .stderr(Stdio::from(OwnedFd::from(log)))
            .spawn()?;
        let pipe = child.stdout.take();
        let pid = i32::try_from(child.id()).ok().and_then(Pid::new);
        let identity = pid.and_then(|pid| ProcIdentity::of(pid).ok());
        Ok(Launched { child, identity, pipe })
    }
}

impl Launched {
    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Who it is; `None` where that could not be read.
    #[must_use]
    pub fn identity(&self) -> Option<&ProcIdentity> {
        self.identity.as_ref()
    }

    /// Waits up to `timeout` for its one line.
    ///
    /// # Errors
    /// Those of `poll` and of reading the pipe.
    pub fn listen(&mut self, timeout: Duration) -> io::Result<Said> {
        let Some(pipe) = &mut self.pipe else { return Ok(Said::Died) };
        let deadline = Instant::now().checked_add(timeout);
        let mut line = Vec::new();
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if !crate::signal::wait_readable(pipe.as_fd(), left)? {
                return Ok(Said::Nothing);
            }
            let mut part = [0; 4096];
            let got = pipe.read(&mut part)?;
            line.extend_from_slice(part.get(..got).unwrap_or_default());
            let whole = line.iter().position(|byte| *byte == b'\n');
            if got == 0 || whole.is_some() || line.len() > LINE {
                self.pipe = None;
                let text =
                    String::from_utf8_lossy(line.get(..whole.unwrap_or(line.len())).unwrap_or_default());
                return Ok(Said::of(&text));
            }
        }
    }

    /// How it ended, if it has; it is reaped then.
    ///
    /// # Errors
    /// Those of `wait`.
    pub fn ended(&mut self) -> io::Result<Option<Ended>> {
        Ok(self.child.try_wait()?.map(|status| Ended { code: status.code(), signal: status.signal() }))
    }
}

impl Said {
    fn of(line: &str) -> Self {
        if line == READY {
            return Self::Ready;
        }
        let Some((code, why)) = line.strip_prefix(FAIL).and_then(|rest| rest.split_once(' ')) else {
            return Self::Died;
        };
        match code.parse() {
            Ok(code) => Self::Failed { code, why: why.to_owned() },
            Err(_) => Self::Died,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dir::SafeDir;
    use crate::lock::{Acquired, FileLock, Probe, Sharing};

    /// A launched `/bin/sh`, which holds the lock of `dir` as its standard input.
    fn launched(dir: &SafeDir, script: &str) -> Launched {
        // A child of another test, between its fork and its exec, may hold a copy for an instant.
        let Acquired::Held(lock) =
            FileLock::acquire(dir, "run.lock", Sharing::Exclusive, Duration::from_mins(1)).unwrap()
        else {
            panic!("held")
        };
        let log = dir.create_file_for_write("log", crate::dir::WriteMode::Append).unwrap();
        let launch = Launch {
            program: "/bin/sh".into(),
            args: ["-c", script].map(OsString::from).to_vec(),
            env: Vec::new(),
            cwd: dir.path().to_owned(),
            lock: lock.hand_over().unwrap(),
            log,
        };
        launch.start().unwrap()
    }

    fn root() -> (tempfile::TempDir, SafeDir) {
        let tmp = tempfile::tempdir().unwrap();
        let dir = SafeDir::open_root(tmp.path()).unwrap();
        (tmp, dir)
    }

    #[test]
    fn the_lock_is_held_by_who_was_launched_and_by_nobody_once_it_has_ended() {
        let (_tmp, dir) = root();
        let mut child = launched(&dir, "echo ready");
        assert_eq!(child.listen(Duration::from_mins(1)).unwrap(), Said::Ready);
        let ended = loop {
            if let Some(ended) = child.ended().unwrap() {
                break ended;
            }
        };
        assert_eq!((ended.code, ended.signal), (Some(0), None));
        let again = FileLock::acquire(&dir, "run.lock", Sharing::Exclusive, Duration::from_mins(1)).unwrap();
        assert!(matches!(again, Acquired::Held(_)));
    }

    #[test]
    fn what_it_says_is_told_apart() {
        let (_tmp, dir) = root();
        for (script, said) in [
            ("echo ready", Said::Ready),
            ("echo 'fail:5 not accepted'", Said::Failed { code: 5, why: "not accepted".into() }),
            ("echo fail:x y", Said::Died),
            ("echo hello", Said::Died),
            ("printf 'ready'", Said::Ready),
            (":", Said::Died),
        ] {
            let mut child = launched(&dir, script);
            assert_eq!(child.listen(Duration::from_mins(1)).unwrap(), said, "{script}");
            while child.ended().unwrap().is_none() {}
        }
    }

    #[test]
    fn a_silent_one_is_not_waited_for_longer_than_asked() {
        let (_tmp, dir) = root();
        let mut child = launched(&dir, "exec tail -f /dev/null");
        assert_eq!(child.listen(Duration::ZERO).unwrap(), Said::Nothing);
        assert!(matches!(FileLock::probe_shared(&dir, "run.lock").unwrap(), Probe::Held { .. }));
        child.child.kill().unwrap();
        while child.ended().unwrap().is_none() {}
    }

    #[test]
    fn a_reason_is_one_line_and_not_longer_than_it_may_be() {
        let (tmp, dir) = root();
        let file = dir.create_file_for_write("said", crate::dir::WriteMode::Append).unwrap();
        ReadyPipe(file).failed(3, &format!("a\nb {}", "ü".repeat(LINE)));
        let said = std::fs::read_to_string(tmp.path().join("said")).unwrap();
        assert!(said.starts_with("fail:3 a b ü") && said.ends_with("ü\n"), "{}", said.len());
        assert!(said.len() <= LINE + 1 && said.lines().count() == 1);
    }
}
