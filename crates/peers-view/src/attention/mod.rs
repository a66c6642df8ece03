//! What a loop asks of its operator: the one place that decides it, for every view.
//!
//! Each cause has a level, a word, a reason in words, and the command that comes next. The most urgent one
//! stands for the loop; the others are listed. What is not known here causes nothing, but for one thing: that
//! it is not known whether the loop lives.

mod running;
mod spelling;
mod stopped;

use peers_model::record::{BranchMove, MoveKind};
use peers_model::{TickNo, Timestamp};
use peers_store::runs::RunRecord;
use serde::{Deserialize, Serialize};

use crate::liveness::Liveness;
use crate::loopview::Core;
use crate::row::{RecentTick, Unknown};
use crate::sourced::Sourced;
use crate::words;

pub(crate) use crate::gates::GateFact;
pub use spelling::Spelling;
pub(crate) use stopped::{is_alarming, level_of};

/// So little space is left that a loop may stop for it soon, bytes.
const LITTLE_SPACE: u64 = 1024 * 1024 * 1024;
/// So long a loop may be not known of before somebody has to look, milliseconds.
const UNKNOWN_MS: u64 = 120_000;

/// The code of a project that has no `.peers/`.
pub(crate) const NOT_SET_UP: &str = "not-set-up";
/// What is said where somebody holds the lock of older systems: nothing of what it says of itself.
pub(crate) const FOREIGN_LOCK: &str = "somebody holds `.peers/run.lock`, the lock of an older system, which agents can hold too: nothing starts before that is free";

/// How urgent something is, the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Somebody has to do something.
    Act,
    /// Look when there is time.
    Watch,
    /// It works.
    Ok,
    /// It is done.
    Done,
    /// Nothing is asked of anybody.
    Idle,
}

impl Level {
    /// The word in views.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Act => "act",
            Self::Watch => "watch",
            Self::Ok => "ok",
            Self::Done => "done",
            Self::Idle => "idle",
        }
    }
}

/// One thing that a loop asks of its operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// How urgent it is.
    pub level: Level,
    /// What it is, one word.
    pub code: &'static str,
    /// For people, one line. Untrusted text in parts.
    pub why: String,
    /// Since when, if that is known.
    pub since: Option<Timestamp>,
    /// What is typed next: a line for a POSIX shell, or several with `, then ` between them; absent where nothing
    /// helps.
    pub action: Option<String>,
}

/// What a loop asks of its operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attention {
    /// The most urgent.
    #[serde(flatten)]
    pub top: Cause,
    /// Further ones that are urgent, the most urgent first.
    pub others: Vec<Cause>,
}

impl Default for Attention {
    /// Nothing is known and nothing asked.
    fn default() -> Self {
        let top =
            Cause { level: Level::Idle, code: "nothing", why: String::new(), since: None, action: None };
        Self { top, others: Vec::new() }
    }
}

impl Attention {
    /// Whether the most urgent is how the loop stands or ended, and nothing besides.
    pub(crate) fn is_standing(&self) -> bool {
        let besides = [
            "journal-damaged",
            "cut-short",
            "mirror-changed",
            "unreadable-files",
            "placeholder",
            "unaccepted",
            "disk-low",
            "foreign-lock",
            "refused",
        ];
        !besides.contains(&self.top.code)
    }

    /// How urgent it is.
    #[must_use]
    pub fn level(&self) -> Level {
        self.top.level
    }

    fn of(mut all: Vec<Cause>) -> Self {
        all.sort_by_key(|cause| cause.level);
        let mut all = all.into_iter();
        let top = all.next().unwrap_or_else(|| Self::default().top);
        let others = all.filter(|cause| cause.level < Level::Ok).collect();
        Self { top, others }
    }
}

/// What is known of a loop. What is absent is not known.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own that was looked at")]
pub(crate) struct Facts<'a> {
    /// The gate that the loop stopped for, or that is red for long.
    pub(crate) gate: Option<&'a GateFact>,
    pub(crate) now: Timestamp,
    pub(crate) spelling: &'a Spelling,
    /// Whether it runs, and if not, why.
    pub(crate) live: Sourced<&'a Liveness>,
    /// What is known where nobody can say how it stands.
    pub(crate) unknown: Option<&'a Unknown>,
    /// What is wrong with the journal.
    pub(crate) damage: Option<&'a str>,
    /// The fold of the journal.
    pub(crate) core: Option<&'a Core>,
    /// The newest run record.
    pub(crate) run: Option<&'a RunRecord>,
    /// Milliseconds of silence after which a peer is ended.
    pub(crate) idle_ms: Option<u64>,
    /// Files that are not what was accepted.
    pub(crate) unaccepted: &'a [&'static str],
    /// The gate of a new file is still there.
    pub(crate) placeholder: bool,
    /// Files that cannot be read as what they are.
    pub(crate) broken: &'a [String],
    /// The newest ticks, oldest first.
    pub(crate) ticks: &'a [RecentTick],
    /// Clean ticks that `complete` asks for at least, if that is known.
    pub(crate) needed: Option<u32>,
    /// The mirror of the journal was changed by somebody else in the newest run: when, and in which tick.
    pub(crate) mirror: Option<(Timestamp, Option<TickNo>)>,
    /// The newest run was landed or undone.
    pub(crate) decided: bool,
    /// A landing or an undo has begun and not ended.
    pub(crate) moving: Option<&'a BranchMove>,
    /// The directory in which the newest run worked is gone.
    pub(crate) gone: bool,
    /// When the journal or the output of a peer moved last.
    pub(crate) moved: Option<Timestamp>,
    /// Free bytes where the loop works, or where its store lies if that is less.
    pub(crate) free_bytes: Option<u64>,
    /// Where that is, if it is not where the loop works.
    pub(crate) full: Option<&'a str>,
    /// Somebody holds the lock of older systems.
    pub(crate) foreign_lock: bool,
    /// The version of this program.
    pub(crate) version: &'a str,
    /// What a start would refuse for.
    pub(crate) refusals: &'a [String],
}

/// What the loop asks of its operator.
pub(crate) fn attention(facts: &Facts<'_>) -> Attention {
    // Among equals the first one stands for the loop, so that comes first what has to be seen to first.
    let mut found: Vec<Cause> = damage(facts).into_iter().collect();
    let idle = !matches!(facts.live.value(), Some(Liveness::Running { .. } | Liveness::Command { .. }));
    if idle {
        found.extend(cut_short(facts));
    }
    let base = match facts.live.value() {
        Some(live) => stopped::base(facts, live),
        None => unknown(facts),
    };
    let code = base.code;
    let files = files(facts, code);
    // What is typed next fails for that, whatever it is; but that somebody meddled is looked at first.
    let first = idle && files.is_none() && !facts.live.value().is_some_and(|live| stopped::is_first(live));
    found.extend(refused(facts).filter(|_| first));
    found.extend(facts.live.value().filter(|_| first).and_then(|live| stopped::exhausted(facts, live)));
    found.push(base);
    found.extend(facts.live.value().into_iter().flat_map(|live| running::causes(facts, live)));
    found.extend(foreign_lock(facts));
    found.extend(mirror(facts));
    found.extend(files);
    found.extend(space(facts, idle));
    if idle && !first {
        found.extend(refused(facts));
    }
    Attention::of(found)
}

/// Nobody can say whether it runs.
fn unknown(facts: &Facts<'_>) -> Cause {
    let why = facts.live.why().unwrap_or("nobody looked");
    let since = facts.unknown.and_then(|unknown| unknown.since);
    // Who does not say since when has no memory, and would never tell.
    let fresh = since.is_some_and(|since| facts.now.since(since).as_millis() <= u128::from(UNKNOWN_MS));
    Cause {
        level: if fresh { Level::Watch } else { Level::Act },
        code: "unknown",
        why: if facts.unknown.is_some_and(|unknown| unknown.nobody) {
            format!("{why}, and no loop runs")
        } else {
            format!("it is not known whether the loop runs: {why}")
        },
        since,
        action: facts.spelling.either(("doctor", ""), "doctor"),
    }
}

fn damage(facts: &Facts<'_>) -> Option<Cause> {
    Some(Cause {
        level: Level::Act,
        code: "journal-damaged",
        why: format!("the journal is damaged: {}", facts.damage?),
        since: None,
        action: facts.spelling.peers("state check"),
    })
}

fn mirror(facts: &Facts<'_>) -> Option<Cause> {
    let (at, tick) = facts.mirror?;
    let when = tick.map_or_else(|| "while no loop ran".to_owned(), |tick| format!("in tick {tick}"));
    Some(Cause {
        level: Level::Act,
        code: "mirror-changed",
        why: format!("somebody changed `.peers/log/runs.jsonl` {when}; it was written anew from the journal"),
        since: Some(at),
        action: facts.spelling.either(("report", ""), "report"),
    })
}

/// Goals or configuration that no start takes. `told`: the code of what is said of the loop anyway.
fn files(facts: &Facts<'_>, told: &str) -> Option<Cause> {
    if !facts.broken.is_empty() {
        return Some(Cause {
            level: Level::Act,
            code: "unreadable-files",
            why: format!("no start takes {}", words::listed(facts.broken)),
            since: None,
            action: facts.spelling.peers("goals lint"),
        });
    }
    if told == "goal-mutation" {
        return None;
    }
    if facts.placeholder && told == "fresh" {
        return Some(Cause {
            level: Level::Act,
            code: "placeholder",
            why: "the gate is still a placeholder: put your test command in its place".to_owned(),
            since: None,
            action: facts.spelling.peers("goals edit"),
        });
    }
    if facts.unaccepted.is_empty() {
        return None;
    }
    let files: Vec<String> = facts.unaccepted.iter().map(|file| format!(".peers/{file}")).collect();
    Some(Cause {
        level: Level::Act,
        code: "unaccepted",
        why: format!("{} changed and nobody accepted that", words::listed(&files)),
        since: None,
        action: facts.spelling.peers("goals diff"),
    })
}

fn space(facts: &Facts<'_>, idle: bool) -> Option<Cause> {
    let free = facts.free_bytes.filter(|free| *free < LITTLE_SPACE)?;
    let at = facts.full.map(|_| " for its trusted store").unwrap_or_default();
    Some(Cause {
        level: Level::Act,
        code: "disk-low",
        why: format!("only {} of disk space are free{at}", words::bytes(free)),
        since: None,
        action: if idle { stopped::space(facts) } else { facts.spelling.space(facts.full) },
    })
}

/// Somebody holds a lock that lies where agents write. Which process it says it is says nothing.
fn foreign_lock(facts: &Facts<'_>) -> Option<Cause> {
    facts.foreign_lock.then(|| Cause {
        level: Level::Act,
        code: "foreign-lock",
        why: FOREIGN_LOCK.to_owned(),
        since: None,
        action: facts.spelling.lock_holder(),
    })
}

/// A landing or an undo that did not come to its end.
fn cut_short(facts: &Facts<'_>) -> Option<Cause> {
    let moving = facts.moving?;
    let (what, command) = match moving.kind {
        MoveKind::Land => ("a landing", "land".to_owned()),
        MoveKind::Undo => ("an undo", format!("undo {}", moving.run)),
    };
    Some(Cause {
        level: Level::Act,
        code: "cut-short",
        why: format!("{what} was cut short"),
        since: None,
        action: facts.spelling.peers(&command),
    })
}

fn refused(facts: &Facts<'_>) -> Option<Cause> {
    let first = facts.refusals.first()?;
    let more = match facts.refusals.len() {
        0 | 1 => String::new(),
        n => format!(" (and {} more)", n - 1),
    };
    Some(Cause {
        level: Level::Act,
        code: "refused",
        why: format!("a start would refuse: {first}{more}"),
        since: None,
        action: facts.spelling.either(("doctor", ""), "doctor"),
    })
}
