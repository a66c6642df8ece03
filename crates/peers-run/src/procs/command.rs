//! One command with a time limit: a gate, a check, an extra command of `peers verify`, a hook.
//!
//! ```text
//! running ── exit ──▶ draining (pipes, 2 s) ──▶ leftovers ended, leader reaped
//!    └─ limit or cancel ─▶ TERM ─ 1 s ─▶ KILL ─ 1 s ─▶ given up
//! ```

use std::os::fd::OwnedFd;
use std::time::Duration;

use peers_model::{Mono, TickNo, limits};
use peers_sys::clock;
use peers_sys::redact::{Redactor, Rules};
use peers_sys::signal::Signal;
use peers_sys::spawn::{Child, RawExit, Spawn, SpawnError, StubFailure};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

use super::Site;
use super::capture::Capture;
use super::ending::{Ending, Exit, doze};
use super::gate_log::GateLog;
use super::gates::Cancel;
use super::leftover::Cleared;
use super::streams;

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);
/// Between SIGKILL and giving up; a container is cleared away meanwhile.
const KILL_WAIT: Duration = Duration::from_secs(1);
/// Pipes that somebody holds open after the exit are read for so long.
const DRAIN: Duration = Duration::from_secs(2);
/// Leftovers of one command are hunted for so long.
const SWEEP: Duration = Duration::from_secs(2);
/// Bytes read at once.
const CHUNK: usize = 16 * 1024;

/// How a command ended, and what it said. Facts only.
#[derive(Debug)]
pub(super) struct Finished {
    /// Absent if it could not be ended, or somebody else took its exit.
    pub(super) exit: Option<RawExit>,
    /// Ended by us at its limit.
    pub(super) timed_out: bool,
    /// Ended by us because nobody wants its answer any more.
    pub(super) cancelled: bool,
    /// It never became the program.
    pub(super) stub: Option<StubFailure>,
    pub(super) stdout: Capture,
    pub(super) stderr: Capture,
    /// Processes that it left and that were ended.
    pub(super) leaked: u32,
    pub(super) took: Duration,
}

/// Who else runs: decides how thoroughly leftovers may be hunted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Company {
    /// Nobody, and nothing was left before: whatever is found is this command's.
    Alone,
    /// Other commands, maybe: only what surely belongs to this one is ended, the rest when all are done.
    Others,
}

/// Where a command runs and what watches it.
pub(super) struct Running<'a> {
    pub(super) site: &'a Site,
    pub(super) tick: TickNo,
    pub(super) limit: Duration,
    pub(super) cancel: Cancel,
    pub(super) company: Company,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running { until: Mono },
    Asked { kill_at: Mono },
    Killed { give_up_at: Mono },
    Draining { until: Mono },
    Over,
}

impl Running<'_> {
    /// Runs the command to its end.
    pub(super) async fn run(self, spawn: &Spawn, log: &mut GateLog) -> Result<Finished, SpawnError> {
        self.run_fed(spawn, None, log).await
    }

    /// The same, with something on its standard input, which must be piped then.
    pub(super) async fn run_fed(
        mut self,
        spawn: &Spawn,
        input: Option<String>,
        log: &mut GateLog,
    ) -> Result<Finished, SpawnError> {
        let from = clock::mono();
        let mut child = spawn.start()?;
        let known = self.site.kin.know(child.pid());
        // Beside the readers: it may talk before it listens.
        let fed = input
            .zip(child.take_stdin())
            .map(|(text, pipe)| tokio::task::spawn_local(streams::write_input(text, OwnedFd::from(pipe))));
        let mut command = Command {
            stdout: Side::open(child.take_stdout().map(OwnedFd::from), &self.site.rules),
            stderr: Side::open(child.take_stderr().map(OwnedFd::from), &self.site.rules),
            phase: Phase::Running { until: from.plus(self.limit) },
            exit: Exit::Unseen,
            timed_out: false,
            cancelled: false,
            child,
        };
        command.watch_over(&mut self.cancel, log).await;
        if let Some(fed) = fed {
            fed.abort();
        }
        let open = !command.stdout.closed() || !command.stderr.closed();
        let cleared = self.clear(&command.child, open).await;
        // As long as the leader is not reaped this reaches its group or nobody.
        let _empty = command.child.sweep_group(Signal::Kill);
        // One that could not be ended stays; the next sweep of this run meets it again.
        let _reaped = command.child.reap();
        drop(known);
        command.stdout.finish(log);
        command.stderr.finish(log);
        let Command { stdout, stderr, exit, timed_out, cancelled, child, .. } = command;
        let exit = exit.raw();
        let stub = exit.and_then(|exit| child.stub_failure(exit, stderr.capture.head()));
        Ok(Finished {
            exit,
            timed_out,
            cancelled,
            stub,
            stdout: stdout.capture,
            stderr: stderr.capture,
            leaked: cleared.killed,
            took: clock::mono().since(from),
        })
    }

    /// Ends what the command left. Searches only if something may be there.
    async fn clear(&self, child: &Child, pipes_open: bool) -> Cleared {
        let kin = &self.site.kin;
        // Where orphans do not come to us, an open pipe is the only sign that there are some.
        let suspicious = if kin.adopts() { kin.strangers() } else { pipes_open };
        if !suspicious {
            return Cleared::default();
        }
        let cleared = match self.company {
            Company::Alone => kin.clear(self.tick, Some(child.pid()), SWEEP).await,
            Company::Others => kin.clear_tree(child.pid(), SWEEP).await,
        };
        for pid in &cleared.survivors {
            tracing::warn!(pid, "a process that a gate left behind could not be ended");
        }
        cleared
    }
}

struct Command {
    child: Child,
    stdout: Side,
    stderr: Side,
    phase: Phase,
    exit: Exit,
    timed_out: bool,
    cancelled: bool,
}

impl Command {
    async fn watch_over(&mut self, cancel: &mut Cancel, log: &mut GateLog) {
        let ending = Ending::of(&self.child);
        loop {
            let deadline = match self.phase {
                Phase::Running { until } | Phase::Draining { until } => until,
                Phase::Asked { kill_at } => kill_at,
                Phase::Killed { give_up_at } => give_up_at,
                Phase::Over => return,
            };
            if self.exit != Exit::Unseen && self.stdout.closed() && self.stderr.closed() {
                return;
            }
            let running = matches!(self.phase, Phase::Running { .. });
            // In random order: a flood on one stream starves neither the other nor the limit. Each
            // arm can be dropped at any await; a read that was dropped has taken nothing.
            tokio::select! {
                () = cancel.asked(), if running => {
                    self.cancelled = true;
                    self.ask();
                }
                () = ending.look(), if self.exit == Exit::Unseen => self.look_for_exit(),
                n = self.stdout.read(), if !self.stdout.closed() => self.stdout.take(n, log),
                n = self.stderr.read(), if !self.stderr.closed() => self.stderr.take(n, log),
                _ = doze(deadline) => self.wake(deadline),
            }
        }
    }

    fn look_for_exit(&mut self) {
        self.exit = Exit::look(&mut self.child);
        if self.exit != Exit::Unseen {
            self.phase = Phase::Draining { until: clock::mono().plus(DRAIN) };
        }
    }

    fn wake(&mut self, deadline: Mono) {
        let now = clock::mono();
        if now < deadline {
            return;
        }
        match self.phase {
            Phase::Running { .. } => {
                // It may have ended in time, and we were busy.
                if self.exit == Exit::Unseen {
                    self.look_for_exit();
                }
                if self.exit != Exit::Unseen {
                    return;
                }
                self.timed_out = true;
                self.ask();
            }
            Phase::Asked { .. } => {
                // It may have ended by itself; its exit will be seen.
                let _sent = self.child.kill();
                self.phase = Phase::Killed { give_up_at: now.plus(KILL_WAIT) };
            }
            Phase::Killed { .. } | Phase::Draining { .. } | Phase::Over => self.phase = Phase::Over,
        }
    }

    fn ask(&mut self) {
        // As above.
        let _sent = self.child.terminate();
        self.phase = Phase::Asked { kill_at: clock::mono().plus(GRACE) };
    }
}

/// One stream.
struct Side {
    pipe: Option<pipe::Receiver>,
    buffer: Vec<u8>,
    capture: Capture,
    redactor: Redactor,
    clean: Vec<u8>,
}

impl Side {
    fn open(pipe: Option<OwnedFd>, rules: &Rules) -> Self {
        let half = usize::try_from(limits::GATE_CAPTURE_HALF).unwrap_or(usize::MAX);
        let pipe = pipe.and_then(|pipe| {
            pipe::Receiver::from_owned_fd(pipe)
                .inspect_err(|error| tracing::error!(%error, "a stream of a gate cannot be read"))
                .ok()
        });
        Self {
            pipe,
            buffer: vec![0; CHUNK],
            capture: Capture::new(half, half),
            redactor: rules.redactor(),
            clean: Vec::new(),
        }
    }

    fn closed(&self) -> bool {
        self.pipe.is_none()
    }

    /// The number of bytes read into the buffer; 0 at the end. Cancel-safe.
    async fn read(&mut self) -> usize {
        match &mut self.pipe {
            Some(pipe) => pipe.read(&mut self.buffer).await.unwrap_or(0),
            None => 0,
        }
    }

    fn take(&mut self, n: usize, log: &mut GateLog) {
        if n == 0 {
            self.pipe = None;
            return;
        }
        let chunk = self.buffer.get(..n).unwrap_or_default();
        // Judged is what was printed; kept is what holds no secret.
        self.capture.push(chunk);
        self.clean.clear();
        self.redactor.feed(chunk, &mut self.clean);
        log.write(&self.clean);
    }

    fn finish(&mut self, log: &mut GateLog) {
        self.pipe = None;
        self.clean.clear();
        self.redactor.finish(&mut self.clean);
        log.write(&self.clean);
    }
}
