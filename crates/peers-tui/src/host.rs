//! What the cockpit is given: what is there to be seen, and the way to have something done.

use peers_model::{TickNo, Timestamp};
use peers_view::{Cell, FleetWarning, LoopRow, Page, Report};

use crate::prefs::Prefs;

/// Reads what is shown. It is called on a thread of its own, so it may wait for a disk; it writes nothing but
/// [`Host::keep`].
pub trait Host: Send {
    /// All loops as they are now; nothing where nothing has begun or ended since the last call.
    ///
    /// # Errors
    /// The registry cannot be read; why, for people.
    fn rows(&mut self) -> Result<Option<Snapshot>, String>;

    /// A part of one loop; nothing where it is what the last call for the same part gave.
    ///
    /// # Errors
    /// It cannot be read; why, for people.
    fn part(&mut self, name: &str, part: &Part) -> Result<Option<Content>, String>;

    /// What has happened in all loops since the last call, oldest first; at first the newest of each.
    fn events(&mut self) -> Vec<Event>;

    /// What keeps this machine and these loops from running, if something does.
    fn doctor(&mut self, names: &[String]) -> Page;

    /// These loops side by side.
    ///
    /// # Errors
    /// Fewer than two can be read.
    fn compare(&mut self, names: &[String]) -> Result<Page, String>;

    /// Keeps how the operator arranged the screen. Losing it is no harm.
    fn keep(&mut self, prefs: &Prefs);
}

/// Where a command runs on the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// Where this program is.
    Here,
    /// In the operator's home.
    Home,
    /// In this directory.
    Dir(String),
}

/// Does what an operator asks for, each as a command line. Called on threads of its own.
pub trait Acts: Send + Sync {
    /// Runs a command to its end, without a terminal.
    fn run(&self, argv: &[String]) -> Done;

    /// Runs a command on the terminal, which is an ordinary one meanwhile. No words are the operator's shell.
    ///
    /// # Errors
    /// It cannot be started; why, for people.
    fn show(&self, argv: &[String], at: &At) -> Result<(), String>;

    /// Stops this process until somebody continues it, as Ctrl-Z does.
    fn suspend(&self);
}

/// All loops at one moment.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// When.
    pub at: Timestamp,
    /// The loops, in the order of the registry.
    pub rows: Vec<LoopRow>,
    /// What is wrong besides what the rows say themselves.
    pub warnings: Vec<FleetWarning>,
}

/// What of one loop is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// How it stands and how it came to be so: gates, peers, budget, ticks.
    Standing,
    /// What an agent says: in the turn that is open, or else the newest; or in this tick.
    Live(Option<TickNo>),
    /// One tick.
    Tick(TickNo, TickText),
    /// What a tick changed, or the newest that changed something: all of it, or one file.
    Diff(Option<TickNo>, Option<String>),
    /// The newest handoffs and what was said of them.
    Reviews,
    /// The steps of the plan.
    Plan,
    /// A log.
    Log(LogKind),
    /// What is configured and accepted.
    Config,
}

/// What of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TickText {
    /// Its records.
    Record,
    /// The prompt as it was sent.
    Prompt,
    /// What the agent printed.
    Output,
    /// What it printed on standard error.
    Errors,
}

impl TickText {
    pub(crate) const ALL: [Self; 4] = [Self::Record, Self::Prompt, Self::Output, Self::Errors];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Prompt => "prompt",
            Self::Output => "output",
            Self::Errors => "stderr",
        }
    }
}

/// Which log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogKind {
    /// That of the loop, as the controller keeps it.
    #[default]
    Loop,
    /// That of the proxy that lets hosts through.
    Egress,
    /// That of the proxy that keeps the keys.
    Auth,
}

impl LogKind {
    pub(crate) const ALL: [Self; 3] = [Self::Loop, Self::Egress, Self::Auth];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Loop => "loop",
            Self::Egress => "egress proxy",
            Self::Auth => "auth proxy",
        }
    }
}

/// What was read of a part.
#[derive(Debug, Clone)]
pub enum Content {
    /// Of [`Part::Standing`].
    Standing(Box<Report>),
    /// Of [`Part::Live`].
    Live(Live),
    /// Of [`Part::Diff`].
    Diff(Diff),
    /// Of every other.
    Text(Page),
}

/// What an agent said.
#[derive(Debug, Clone, Default)]
pub struct Live {
    /// Which tick, whose, and whether it goes on.
    pub head: String,
    /// What it said, oldest first. The newest 5,000.
    pub lines: Vec<LiveLine>,
    /// The turn is open: more may follow.
    pub open: bool,
}

/// One thing that an agent said or did. Its word, not a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveLine {
    /// `text`, `tool`, `result`, `usage`, `retry`, `error` or `final`.
    pub kind: &'static str,
    /// What, fit for a terminal.
    pub cell: Cell,
}

/// What changed between two commits.
#[derive(Debug, Clone, Default)]
pub struct Diff {
    /// The tick.
    pub tick: Option<TickNo>,
    /// Which tick, whose, and from where to where.
    pub title: String,
    /// The files that changed.
    pub files: Vec<DiffFile>,
    /// The patch, of all files or of the one that was asked for.
    pub patch: Page,
}

/// A file that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffFile {
    /// Its path. Untrusted text.
    pub path: String,
    /// One letter: `A`, `M`, `D` or `R`.
    pub change: char,
}

/// Something that happened in a loop.
#[derive(Debug, Clone)]
pub struct Event {
    /// Whose.
    pub name: String,
    /// When.
    pub ts: Timestamp,
    /// What.
    pub cells: Vec<Cell>,
}

/// What came of a command.
#[derive(Debug, Clone, Default)]
pub struct Done {
    /// Its exit code; absent where it could not be started, or a signal ended it.
    pub code: Option<i32>,
    /// What it printed on both streams, at most 64 KiB.
    pub output: String,
}
