//! The report itself.

use peers_core::apply::bounded;
use peers_model::record::Digests;
use peers_model::verdict::{Judged, Verdict};
use peers_model::{CommitId, GoalId, Timestamp, TreeId, exit};
use peers_sys::term;

use crate::words;

/// Cells of a name. A command without one is called by its text, which may be long.
const NAME: usize = 1000;
/// Bytes of a diagnostic.
const DIAGNOSTIC: usize = 64 * 1024;

/// What `peers verify` found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, told by that name")]
pub struct VerifyReport {
    /// The name of the directory that was judged.
    pub dir: String,
    /// The version of the program.
    pub version: &'static str,
    /// When it began. It and the durations are told only if it is there.
    pub at: Option<Timestamp>,
    /// HEAD.
    pub head: CommitId,
    /// The tree that was judged.
    pub tree: TreeId,
    /// The work tree has uncommitted changes.
    pub dirty: bool,
    /// The gates ran in a clean checkout.
    pub pristine: bool,
    /// Nothing to check is fine.
    pub allow_empty: bool,
    /// What was accepted.
    pub digests: Digests,
    /// One digest over both files, as `--accept-digest` takes it.
    pub accept_digest: String,
    /// The hard gates, in file order.
    pub hard: Vec<VerifyRow>,
    /// The extra commands, in file order.
    pub extra: Vec<VerifyRow>,
    /// Gates that the operator exempted from clean checkouts.
    pub exempt: Vec<GoalId>,
    /// Paths that the gates made dirty, or why that is not known.
    pub dirtied: Result<Vec<String>, &'static str>,
    /// Files of the commit that were written while gates ran, and are what they were.
    pub rewritten: Vec<String>,
    /// What was not asked for: with anything here this is no whole verification.
    pub unasked: Unasked,
    /// A loop works in this repository at the same time.
    pub beside: bool,
    /// Gates that were not asked, since they read the record of the runs and it is not here.
    pub recordless: Vec<GoalId>,
}

/// What `--only` left out, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unasked {
    /// Hard goals.
    pub hard: Vec<String>,
    /// Extra commands.
    pub extra: Vec<String>,
}

impl Unasked {
    /// These goals and commands.
    pub fn of<'n>(hard: impl Iterator<Item = &'n str>, extra: impl Iterator<Item = &'n str>) -> Self {
        let shown = |name: &str| term::line(name, NAME);
        Self { hard: hard.map(shown).collect(), extra: extra.map(shown).collect() }
    }

    /// Whether nothing was left out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hard.is_empty() && self.extra.is_empty()
    }

    /// How many of what: `2 hard goals and 1 verify command`.
    fn counted(&self) -> String {
        let [hard, extra] =
            [(&self.hard, "hard goal"), (&self.extra, "verify command")].map(|(names, noun)| match names {
                names if names.is_empty() => String::new(),
                names => words::count_of(names, noun),
            });
        let and = if hard.is_empty() || extra.is_empty() { "" } else { " and " };
        format!("{hard}{and}{extra}")
    }
}

/// One gate or command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyRow {
    /// What it is called. One line.
    pub name: String,
    /// The answer.
    pub state: RowState,
    /// What it said; empty for a pass.
    pub diagnostic: String,
    /// How often it was tried.
    pub attempts: u8,
    /// Wall time of all attempts, milliseconds.
    pub duration_ms: u64,
    /// Where it is defined.
    pub source: Source,
}

/// Where a gate or command is defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Path from the top of the repository.
    pub file: &'static str,
    /// From 1.
    pub line: u64,
}

/// The answer of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowState {
    /// Green.
    Pass,
    /// Red.
    Fail,
    /// Red, at its time limit.
    Timeout,
    /// Could not be judged.
    Error,
    /// Red, since what it needs is: it did not run.
    Skipped,
}

/// The answer of the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Everything is green.
    Pass,
    /// Something is red.
    Fail,
    /// Nothing is red, and something could not be judged.
    NotJudged,
    /// There was nothing to judge, and that was not allowed.
    NothingToCheck,
}

impl VerifyRow {
    /// The row of a gate. This is the one place where a verdict becomes a row.
    #[must_use]
    pub fn gate(judged: &Judged, source: Source) -> Self {
        // What differs between two runs at the same tree with the same answers stays out: how a green answer
        // was come by, and processes that were still there.
        let Judged {
            goal,
            at: _,
            place: _,
            verdict,
            attempts,
            duration_ms,
            leaked: _,
            exit_code: _,
            signal: _,
            cached: _,
            setup_failed: _,
            manifests: _,
        } = judged;
        Self { attempts: (*attempts).max(1), ..Self::new(goal.as_str(), verdict, *duration_ms, source) }
    }

    /// The row of an extra command.
    #[must_use]
    pub fn new(name: &str, verdict: &Verdict, duration_ms: u64, source: Source) -> Self {
        Self {
            name: term::line(name, NAME),
            state: RowState::from(verdict),
            diagnostic: bounded(&term::block(verdict.diagnostic()), DIAGNOSTIC),
            attempts: 1,
            duration_ms,
            source,
        }
    }

    /// What it said, in short: one line.
    #[must_use]
    pub fn cause(&self) -> String {
        term::inline(&crate::cause(&self.diagnostic))
    }
}

impl From<&Verdict> for RowState {
    fn from(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Pass => Self::Pass,
            Verdict::Fail { .. } => Self::Fail,
            Verdict::Timeout { .. } => Self::Timeout,
            Verdict::Error { .. } => Self::Error,
            Verdict::Skipped { .. } => Self::Skipped,
        }
    }
}

impl RowState {
    /// The word that files and views show.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Timeout => "timeout",
            Self::Error => "error",
            Self::Skipped => "skipped",
        }
    }

    /// Whether it is a negative answer; could-not-judge is none.
    #[must_use]
    pub fn is_red(self) -> bool {
        matches!(self, Self::Fail | Self::Timeout | Self::Skipped)
    }
}

impl Answer {
    /// The word for people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::NotJudged => "NOT JUDGED",
            Self::NothingToCheck => "NOTHING TO CHECK",
        }
    }

    /// The exit code.
    #[must_use]
    pub fn exit(self) -> u8 {
        match self {
            Self::Pass => exit::OK,
            Self::Fail | Self::NothingToCheck => exit::NEGATIVE,
            Self::NotJudged => exit::INVALID,
        }
    }
}

impl VerifyReport {
    /// All rows: gates, then commands.
    pub fn rows(&self) -> impl Iterator<Item = &VerifyRow> {
        self.hard.iter().chain(&self.extra)
    }

    /// The answer. Red wins over could-not-judge.
    #[must_use]
    pub fn answer(&self) -> Answer {
        let any = |is: fn(RowState) -> bool| self.rows().any(|row| is(row.state));
        if any(|state| matches!(state, RowState::Fail | RowState::Timeout)) {
            Answer::Fail
        } else if any(|state| state == RowState::Error) {
            Answer::NotJudged
        } else if any(RowState::is_red) {
            // Skipped, though nothing here says why.
            Answer::Fail
        } else if self.is_empty() && !self.allow_empty {
            Answer::NothingToCheck
        } else {
            Answer::Pass
        }
    }

    /// Whether nothing was there to judge.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hard.is_empty() && self.extra.is_empty()
    }

    /// The result in one line: `FAIL (2 of 3 hard goals green)`.
    #[must_use]
    pub fn result(&self) -> String {
        // Most projects have no commands.
        let commands = if self.extra.is_empty() {
            String::new()
        } else {
            format!(", {}", share(&self.extra, "verify command"))
        };
        let left_out = self.unasked.hard.len() + self.unasked.extra.len();
        let only = if left_out == 0 { String::new() } else { format!("; --only left out {left_out}") };
        format!("{} ({}{commands}{only})", self.answer().word(), share(&self.hard, "hard goal"))
    }

    /// What a reader of the result has to know besides it, a sentence each. Names and paths in them are
    /// sanitised for terminals alone.
    #[must_use]
    pub fn caveats(&self) -> Vec<String> {
        let mut found = Vec::new();
        if !self.unasked.is_empty() {
            let names: Vec<String> = self.unasked.hard.iter().chain(&self.unasked.extra).cloned().collect();
            found.push(format!(
                "no whole verification: --only left out {} ({})",
                self.unasked.counted(),
                first(&names)
            ));
        }
        if !self.recordless.is_empty() {
            found.push(format!("{}: {}", NO_RECORD, self.recordless_names()));
        }
        match &self.dirtied {
            Ok(paths) if paths.is_empty() => {}
            Ok(paths) => found.push(format!("the gates changed the work tree: {}", first(paths))),
            // A clean checkout is no work tree.
            Err(_) if self.pristine || self.beside => {}
            Err(why) => found.push(format!("whether the gates changed the work tree is not known: {why}")),
        }
        if !self.rewritten.is_empty() {
            found.push(format!("{REWRITTEN}: {}", first(&self.rewritten)));
        }
        if self.beside {
            found.push(
                "a loop works in this repository at the same time: the tree may have moved under the gates"
                    .to_owned(),
            );
        }
        found
    }

    pub(super) fn recordless_names(&self) -> String {
        let names: Vec<&str> = self.recordless.iter().map(GoalId::as_str).collect();
        names.join(", ")
    }

    /// Gates that did not run, since clean checkouts leave them out.
    pub(super) fn left_out(&self) -> &[GoalId] {
        if self.pristine { &self.exempt } else { &[] }
    }

    /// How long it took and what took longest, for standard error.
    #[must_use]
    pub fn slowest(&self, took_ms: u64) -> String {
        const SHOWN: usize = 3;
        let mut rows: Vec<&VerifyRow> = self.rows().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.duration_ms));
        let named = |row: &&VerifyRow| {
            format!("{} {}", term::line(&row.name, 40), words::duration_ms(row.duration_ms))
        };
        let shown: Vec<String> = rows.iter().take(SHOWN).map(named).collect();
        let took = words::duration_ms(took_ms);
        if shown.len() < 2 {
            format!("took {took}")
        } else {
            format!("took {took}; slowest: {}", shown.join(", "))
        }
    }
}

/// What gates did that left nothing behind.
pub(super) const REWRITTEN: &str = "files of the commit were written while gates ran, and are what they were";

/// Why a gate was not asked.
pub(super) const NO_RECORD: &str =
    "not asked here, where the record of the runs is not: only the machine of the loop has it";

/// The first of them.
fn first(names: &[String]) -> String {
    const SHOWN: usize = 10;
    let mut shown: Vec<String> = names.iter().take(SHOWN).map(|name| term::line(name, 120)).collect();
    if names.len() > SHOWN {
        shown.push(format!("{} more", names.len() - SHOWN));
    }
    shown.join(", ")
}

/// `2 of 3 hard goals green`.
fn share(rows: &[VerifyRow], noun: &str) -> String {
    let green = rows.iter().filter(|row| row.state == RowState::Pass).count();
    format!("{green} of {} green", words::count_of(rows, noun))
}
