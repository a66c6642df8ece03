//! The child watch machine: when a running peer is ended, how, and when its tick may go on.
//!
//! A value without clock, process or `async`. The executor feeds it with [`Watch::on`], carries out
//! [`Watch::poll_action`] until that is empty, and sleeps until [`Watch::poll_deadline`] at most.
//! It is over when [`Watch::outcome`] is there.
//!
//! ```text
//! Starting ─▶ Active ─▶ Ending{term ─▶ kill} ─▶ Draining ─▶ Done
//!                └──────── exited ────────────────┘
//! ```
//! - The process group is swept *after* the exit was seen and *before* the leader is reaped: as long
//!   as the zombie is there, its group id cannot belong to somebody else. Nothing is signalled later.
//! - A descendant that holds a pipe costs at most the drain limit.
//! - A process that survives SIGKILL (uninterruptible sleep) is given up: reported, never reaped here.
//! - Inputs of the same instant may come in any order; until the report is made the reason of the end
//!   is the same: a stop request before a seen exit, before a pattern or a hopeless stream, before a cap,
//!   before silence, before the total limit.

use std::collections::VecDeque;
use std::time::Duration;

use peers_model::Mono;

mod ports;
#[cfg(test)]
mod tests;

pub use ports::{EndReason, StopHow, Stream, WatchAct, WatchIn, WatchLimits, WatchOutcome, WatchSignal};

/// At least so long lies between two looks at a child.
const PROBE_APART: Duration = Duration::from_secs(2);

/// One watched child.
#[derive(Debug, Clone)]
pub struct Watch {
    limits: WatchLimits,
    state: State,
    actions: VecDeque<WatchAct>,
    /// Never goes back.
    now: Mono,
    started: Mono,
    /// The last sign of life.
    alive: Mono,
    /// The last byte.
    output: Mono,
    out: StreamState,
    err: StreamState,
    open_tools: u32,
    /// When a halt pattern matched.
    halt: Option<Mono>,
    /// When the child is looked at next, and whether the last look found nothing that moves.
    probe_at: Option<Mono>,
    was_still: bool,
    decided: Option<Decided>,
    killed: bool,
    exited: Option<Mono>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Starting,
    Active,
    Ending(Step),
    Draining { until: Mono },
    Done { drained: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// SIGTERM was sent.
    Term { kill_at: Mono },
    /// SIGKILL was sent.
    Kill { give_up_at: Mono },
}

#[derive(Debug, Clone, Copy)]
struct Decided {
    end: EndReason,
    at: Mono,
    quiet: Duration,
    open_tools: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct StreamState {
    bytes: u64,
    closed: bool,
    /// When an unterminated line is scanned, if bytes came since the last scan.
    tail_at: Option<Mono>,
}

impl Watch {
    /// A child that is about to be started.
    #[must_use]
    pub fn new(limits: WatchLimits, now: Mono) -> Self {
        Self {
            limits,
            state: State::Starting,
            actions: VecDeque::new(),
            now,
            started: now,
            alive: now,
            output: now,
            out: StreamState::default(),
            err: StreamState::default(),
            open_tools: 0,
            halt: None,
            probe_at: None,
            was_still: false,
            decided: None,
            killed: false,
            exited: None,
        }
    }

    /// Takes in an observation. Due deadlines take effect with any input.
    pub fn on(&mut self, now: Mono, input: WatchIn) {
        self.now = self.now.max(now);
        match input {
            WatchIn::Started => self.start(),
            WatchIn::Bytes { stream, n } => self.bytes(stream, n),
            WatchIn::Activity => self.alive = self.now,
            WatchIn::ToolBegun => {
                self.alive = self.now;
                self.open_tools = self.open_tools.saturating_add(1);
            }
            WatchIn::ToolEnded => {
                self.alive = self.now;
                self.open_tools = self.open_tools.saturating_sub(1);
            }
            WatchIn::PatternHit { halt } => self.pattern(halt),
            WatchIn::Hopeless => self.early(EndReason::Hopeless),
            WatchIn::Spent => self.early(EndReason::Budget),
            WatchIn::Probed { still } => self.probed(still),
            WatchIn::Exited => self.exit(),
            WatchIn::PipesClosed { stream } => {
                let state = self.stream(stream);
                state.closed = true;
                state.tail_at = None;
            }
            WatchIn::Stop(how) => self.stop(how),
            WatchIn::Deadline => {}
        }
        self.fire();
    }

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<WatchAct> {
        self.actions.pop_front()
    }

    /// When [`WatchIn::Deadline`] is due at the latest; `None` once it is over.
    #[must_use]
    pub fn poll_deadline(&self) -> Option<Mono> {
        match self.state {
            State::Starting | State::Active => [
                Some(self.idle_at()),
                Some(self.absolute_at()),
                self.budget_at(),
                self.hang_at(),
                self.halt_at(),
                self.out.tail_at,
                self.err.tail_at,
            ]
            .into_iter()
            .flatten()
            .min(),
            State::Ending(Step::Term { kill_at }) => Some(kill_at),
            State::Ending(Step::Kill { give_up_at }) => Some(give_up_at),
            State::Draining { until } => Some(until),
            State::Done { .. } => None,
        }
    }

    /// How it went, once it is over.
    #[must_use]
    pub fn outcome(&self) -> Option<WatchOutcome> {
        let (State::Done { drained }, Some(decided)) = (self.state, self.decided) else { return None };
        Some(WatchOutcome {
            end: decided.end,
            exit_seen: self.exited.is_some(),
            killed: self.killed,
            drained,
            took: self.exited.unwrap_or(self.now).since(self.started),
            quiet: decided.quiet,
            open_tools: decided.open_tools,
            halt_seen: self.halt.is_some() && decided.end != (EndReason::Pattern { halt: true }),
            bytes_out: self.out.bytes,
            bytes_err: self.err.bytes,
        })
    }

    fn start(&mut self) {
        match self.state {
            State::Starting => {
                self.state = State::Active;
                self.started = self.now;
                self.alive = self.now;
                self.output = self.now;
            }
            // The end was decided before there was a group to signal.
            State::Ending(Step::Term { .. }) => self.act(WatchAct::SignalGroup(WatchSignal::Term)),
            State::Ending(Step::Kill { .. }) => self.act(WatchAct::SignalGroup(WatchSignal::Kill)),
            State::Active | State::Draining { .. } | State::Done { .. } => {}
        }
    }

    fn bytes(&mut self, stream: Stream, n: u64) {
        if n == 0 {
            return;
        }
        self.alive = self.now;
        self.output = self.now;
        self.was_still = false;
        self.probe_at = None;
        let scan_at = self.now.plus(self.before_idle(self.limits.tail_quiet));
        let state = self.stream(stream);
        state.bytes = state.bytes.saturating_add(n);
        state.tail_at = Some(scan_at);
    }

    fn pattern(&mut self, halt: bool) {
        match (self.state, halt) {
            (State::Starting | State::Active | State::Ending(_), false) => {
                self.end(EndReason::Pattern { halt: false });
            }
            (State::Starting | State::Active | State::Ending(_), true) => {
                self.halt.get_or_insert(self.now);
            }
            // Once the exit was seen, the whole output is scanned by whoever classifies it.
            (State::Draining { .. } | State::Done { .. }, _) => {}
        }
    }

    /// Ends a child that runs. Once the exit was seen, how it ended is known.
    fn early(&mut self, end: EndReason) {
        if let State::Starting | State::Active = self.state {
            self.end(end);
        }
    }

    /// One look may fall between two moves of a child; two apart that find nothing do not.
    fn probed(&mut self, still: bool) {
        if still && self.was_still {
            self.early(EndReason::Hung);
        }
        self.was_still = still;
        let hang = self.limits.hang.unwrap_or(PROBE_APART);
        let pause = if still { PROBE_APART } else { (hang / 4).max(PROBE_APART) };
        self.probe_at = Some(self.now.plus(pause));
    }

    fn exit(&mut self) {
        match self.state {
            State::Starting | State::Active | State::Ending(_) => {}
            State::Draining { .. } | State::Done { .. } => return,
        }
        self.decide(EndReason::Exited);
        self.exited = Some(self.now);
        self.act(WatchAct::SweepGroup);
        self.act(WatchAct::Reap);
        self.state = State::Draining { until: self.now.plus(self.limits.drain) };
    }

    fn stop(&mut self, how: StopHow) {
        match how {
            StopHow::Graceful => self.end(EndReason::StoppedGraceful),
            StopHow::Now => match self.state {
                State::Starting | State::Active | State::Ending(_) => {
                    self.decide(EndReason::StoppedNow);
                    self.kill();
                }
                State::Draining { .. } => {
                    self.decide(EndReason::StoppedNow);
                    self.finish();
                }
                State::Done { .. } => {}
            },
        }
    }

    /// Begins the end, or settles its reason if it began in this very instant.
    fn end(&mut self, end: EndReason) {
        match self.state {
            State::Starting | State::Active => {
                self.decide(end);
                self.act(WatchAct::SignalGroup(WatchSignal::Term));
                self.state = State::Ending(Step::Term { kill_at: self.now.plus(self.limits.grace) });
            }
            State::Ending(_) | State::Draining { .. } => self.decide(end),
            State::Done { .. } => {}
        }
    }

    fn kill(&mut self) {
        self.killed = true;
        match self.state {
            State::Starting | State::Active | State::Ending(Step::Term { .. }) => {
                self.act(WatchAct::SignalGroup(WatchSignal::Kill));
                self.state = State::Ending(Step::Kill { give_up_at: self.now.plus(self.limits.kill_wait) });
            }
            State::Ending(Step::Kill { .. }) | State::Draining { .. } | State::Done { .. } => {}
        }
    }

    /// The first reason stays, except that one of the same instant with precedence replaces it, and
    /// that a second, impatient stop request replaces the first.
    fn decide(&mut self, end: EndReason) {
        let replace = match self.decided {
            None => true,
            Some(Decided { end: EndReason::StoppedGraceful, .. }) if end == EndReason::StoppedNow => true,
            Some(before) => before.at == self.now && end.rank() < before.end.rank(),
        };
        if replace {
            let quiet = self.now.since(self.alive);
            self.decided = Some(Decided { end, at: self.now, quiet, open_tools: self.open_tools });
        }
    }

    /// Lets every deadline take effect that is due.
    fn fire(&mut self) {
        match self.state {
            State::Starting | State::Active => {
                for stream in [Stream::Out, Stream::Err] {
                    let due = self.stream(stream).tail_at.is_some_and(|at| at <= self.now);
                    if due {
                        self.stream(stream).tail_at = None;
                        self.act(WatchAct::ScanTail(stream));
                    }
                }
                if self.halt_at().is_some_and(|at| at <= self.now) {
                    self.end(EndReason::Pattern { halt: true });
                } else if self.budget_at().is_some_and(|at| at <= self.now) {
                    self.end(EndReason::Budget);
                } else if self.idle_at() <= self.now {
                    self.end(EndReason::Idle);
                } else if self.absolute_at() <= self.now {
                    self.end(EndReason::Absolute);
                } else if self.hang_at().is_some_and(|at| at <= self.now) {
                    // Not asked again before it is answered, or should have been.
                    self.probe_at = Some(self.now.plus(PROBE_APART));
                    self.act(WatchAct::Probe);
                }
            }
            State::Ending(Step::Term { kill_at }) => {
                if kill_at <= self.now {
                    self.kill();
                }
            }
            State::Ending(Step::Kill { give_up_at }) => {
                if give_up_at <= self.now {
                    self.act(WatchAct::SweepGroup);
                    self.finish();
                }
            }
            State::Draining { until } => {
                if until <= self.now || (self.out.closed && self.err.closed) {
                    self.finish();
                }
            }
            State::Done { .. } => {}
        }
    }

    fn finish(&mut self) {
        let drained = self.out.closed && self.err.closed;
        if !drained {
            self.act(WatchAct::StopReading);
        }
        self.act(WatchAct::Report);
        self.state = State::Done { drained };
    }

    fn idle_at(&self) -> Mono {
        self.alive.plus(self.limits.idle)
    }

    fn absolute_at(&self) -> Mono {
        self.started.plus(self.limits.absolute)
    }

    fn budget_at(&self) -> Option<Mono> {
        self.limits.budget.map(|limit| self.started.plus(limit))
    }

    /// When the child is looked at: after so much silence, a session file's moves included.
    fn hang_at(&self) -> Option<Mono> {
        let first = self.alive.plus(self.limits.hang?);
        Some(self.probe_at.map_or(first, |at| at.max(first)))
    }

    fn halt_at(&self) -> Option<Mono> {
        self.halt.map(|hit| hit.max(self.output).plus(self.before_idle(self.limits.halt_quiet)))
    }

    /// A silence that ends no later than half of what counts as idle.
    fn before_idle(&self, quiet: Duration) -> Duration {
        quiet.min(self.limits.idle / 2)
    }

    fn stream(&mut self, stream: Stream) -> &mut StreamState {
        match stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        }
    }

    fn act(&mut self, act: WatchAct) {
        self.actions.push_back(act);
    }
}
