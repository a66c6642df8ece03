//! What goes into a watch and what comes out of it.

use std::time::Duration;

/// The limits of one watched child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchLimits {
    /// Silence on both streams, without activity, after which the child is ended.
    pub idle: Duration,
    /// Time since the start after which the child is ended in any case.
    pub absolute: Duration,
    /// Time since the start after which nothing is left of the run's time: the child is ended, and it is
    /// not its fault.
    pub budget: Option<Duration>,
    /// Silence on both streams after which the executor looks whether the child hangs.
    pub hang: Option<Duration>,
    /// Between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// Between the exit and the end of reading from pipes that others hold open.
    pub drain: Duration,
    /// Between SIGKILL and giving up.
    pub kill_wait: Duration,
    /// Silence after which an unterminated line of a stream is scanned as it is. Half of `idle` if
    /// that is shorter, so that the line is seen before the child is ended for silence.
    pub tail_quiet: Duration,
    /// Silence that confirms a halt pattern while the child runs; likewise half of `idle` if that is
    /// shorter. A false halt costs the whole run, so a child that goes on talking is not ended for one.
    pub halt_quiet: Duration,
}

impl WatchLimits {
    /// The configurable limits, with the fixed ones at their usual values. A graceful stop takes at
    /// most grace + kill wait + drain = 8 s.
    #[must_use]
    pub const fn new(idle: Duration, absolute: Duration) -> Self {
        Self {
            idle,
            absolute,
            budget: None,
            hang: None,
            grace: Duration::from_secs(5),
            drain: Duration::from_secs(2),
            kill_wait: Duration::from_secs(1),
            tail_quiet: Duration::from_secs(2),
            halt_quiet: Duration::from_secs(10),
        }
    }
}

/// An output stream of the child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// How a stop was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopHow {
    /// SIGTERM, grace, SIGKILL.
    Graceful,
    /// SIGKILL at once.
    Now,
}

/// What the executor observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WatchIn {
    /// The child runs; the clocks start here.
    Started,
    /// Bytes were read. Any byte counts, with or without a line end.
    Bytes {
        /// From which stream.
        stream: Stream,
        /// How many; 0 is not output.
        n: u64,
    },
    /// Another sign of life: a decoded event, a session file that moved.
    Activity,
    /// A tool call of the child began. A sign of life; a running call does not stop the idle clock.
    ToolBegun,
    /// A tool call ended.
    ToolEnded,
    /// An error pattern or, with `halt`, a halt pattern matched its output.
    PatternHit {
        /// The operator has to act; confirmed by silence or by the exit.
        halt: bool,
    },
    /// Its stream says that going on is of no use.
    Hopeless,
    /// It has spent what it may.
    Spent,
    /// What a look at the child found ([`WatchAct::Probe`]): nothing in its tree runs or waits for
    /// anything from outside. Anything else is a sign of life for the probe alone.
    Probed {
        /// Nothing moved.
        still: bool,
    },
    /// The child exited and is not reaped yet.
    Exited,
    /// A stream reached its end.
    PipesClosed {
        /// Which.
        stream: Stream,
    },
    /// The child is to be stopped.
    Stop(StopHow),
    /// The time of [`Watch::poll_deadline`](super::Watch::poll_deadline) has come. Too early or too often does no harm.
    Deadline,
}

/// A signal to the process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WatchSignal {
    /// SIGTERM.
    Term,
    /// SIGKILL.
    Kill,
}

/// What the executor is to do, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WatchAct {
    /// Signal the child's process group. Without effect if the child did not start.
    SignalGroup(WatchSignal),
    /// Look whether the child hangs.
    Probe,
    /// Scan the unterminated last line of a stream for patterns.
    ScanTail(Stream),
    /// Kill what is left of the process group.
    SweepGroup,
    /// Collect the exit status. Only after the exit was seen.
    Reap,
    /// Stop reading streams that are still open.
    StopReading,
    /// The outcome is there.
    Report,
}

/// Why the watch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EndReason {
    /// The child exited by itself.
    Exited,
    /// It was silent for too long.
    Idle,
    /// It was silent, and twice in a row nothing in its tree moved.
    Hung,
    /// It ran for too long.
    Absolute,
    /// A cap, or the run's time, is used up.
    Budget,
    /// Its stream said that going on is of no use.
    Hopeless,
    /// A pattern matched.
    Pattern {
        /// It was a halt pattern, confirmed by silence.
        halt: bool,
    },
    /// It was asked to stop.
    StoppedGraceful,
    /// It was killed on request.
    StoppedNow,
}

impl EndReason {
    /// Lower wins among reasons of the same instant.
    pub(super) fn rank(self) -> u8 {
        match self {
            Self::StoppedNow => 0,
            Self::StoppedGraceful => 1,
            Self::Exited => 2,
            Self::Pattern { halt: true } => 3,
            Self::Hopeless => 4,
            Self::Pattern { halt: false } => 5,
            Self::Budget => 6,
            Self::Hung => 7,
            Self::Idle => 8,
            Self::Absolute => 9,
        }
    }
}

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about an end; each combination occurs")]
pub struct WatchOutcome {
    /// Why it ended.
    pub end: EndReason,
    /// The exit was seen and the child may be reaped; otherwise it was given up.
    pub exit_seen: bool,
    /// SIGKILL was needed, or asked for.
    pub killed: bool,
    /// Both streams reached their end; otherwise a descendant held one and reading was stopped.
    pub drained: bool,
    /// From the start to the exit, or to giving up.
    pub took: Duration,
    /// Silence before the end was decided.
    pub quiet: Duration,
    /// Tool calls that were running then.
    pub open_tools: u32,
    /// A halt pattern matched and was not confirmed by silence. It counts if the child also exited
    /// with a failure.
    pub halt_seen: bool,
    /// Bytes from standard output.
    pub bytes_out: u64,
    /// Bytes from standard error.
    pub bytes_err: u64,
}
