//! Whether a loop runs, and if not, why. The run lock is the truth, never a process id.

use std::collections::BTreeMap;

use peers_core::state::State;
use peers_model::outcome::StopReason;
use peers_model::{Backend, CommitId, PeerName, RunId, TickNo, Timestamp, exit};
use peers_store::runs::RunRecord;
use serde::Serialize;

/// The signal that nobody can answer.
const KILL: i32 = 9;

/// What a look at the run lock showed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Lock {
    /// Somebody holds it.
    Held {
        /// Its process, if it says so.
        pid: Option<u32>,
        /// Its run, if it says so.
        run_id: Option<String>,
    },
    /// A command that is no run holds it.
    Command {
        /// Its process, if it says so.
        pid: Option<u32>,
        /// Which, such as `land`.
        command: String,
    },
    /// Nobody does.
    #[default]
    Free,
    /// It cannot be looked at.
    Unreadable(String),
}

/// Whether a loop runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Liveness {
    /// The lock is held.
    Running {
        /// Its process, if it says so.
        pid: Option<u32>,
        /// Its run, if it says so.
        run_id: Option<String>,
        /// When the run began.
        since: Option<Timestamp>,
        /// The turn that is open. Its peer has ended where gates run.
        turn: Option<OpenTurn>,
        /// Since when gates run, if they do.
        gates_since: Option<Timestamp>,
    },
    /// A command that is no run is at work and holds the lock.
    Command {
        /// Its process, if it says so.
        pid: Option<u32>,
        /// Which, such as `land`.
        command: String,
    },
    /// No run ever began.
    Fresh,
    /// The last run ended by itself.
    Stopped {
        /// Why.
        reason: StopReason,
        /// For people. Untrusted text.
        detail: String,
        /// When.
        at: Timestamp,
        /// What the process returned.
        exit_code: u8,
    },
    /// The last run never ended.
    Crashed {
        /// Which.
        run_id: RunId,
        /// When it began.
        since: Timestamp,
        /// As far as it is known.
        how: CrashKind,
        /// The turn that was open.
        turn: Option<OpenTurn>,
    },
}

/// A turn that has begun and not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OpenTurn {
    /// Its number.
    pub tick: TickNo,
    /// Whose.
    pub peer: PeerName,
    /// Since when.
    pub since: Timestamp,
    /// It is a skeptic turn.
    pub skeptic: bool,
    /// The peer's process is known to have started.
    pub spawned: bool,
    /// HEAD when it began.
    #[serde(skip)]
    pub(crate) head_before: CommitId,
}

impl OpenTurn {
    /// The turn that is open.
    pub(crate) fn of(state: &State) -> Option<Self> {
        state.open.as_ref().map(|open| Self {
            tick: open.started.tick,
            peer: open.started.peer.clone(),
            since: open.at,
            skeptic: open.started.skeptic,
            spawned: open.spawned.is_some(),
            head_before: open.started.head_before.clone(),
        })
    }
}

/// What became of a run that never ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrashKind {
    /// Its process is gone without a word.
    Killed,
    /// The machine was started anew since.
    HostRebooted,
    /// Nothing is known.
    Lost,
}

impl CrashKind {
    /// The word in files and views.
    #[must_use]
    pub fn outcome(self) -> &'static str {
        match self {
            Self::Killed => "killed",
            Self::HostRebooted => "host_rebooted",
            Self::Lost => "lost",
        }
    }

    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Killed => "its process is gone without a word",
            Self::HostRebooted => "the machine was restarted since",
            Self::Lost => "what became of its process is not known",
        }
    }
}

impl Liveness {
    /// The end of a run as its record tells it.
    fn told(record: &RunRecord) -> Option<Self> {
        let (reason, at) = (record.reason.clone()?, record.ended_at?);
        let exit_code = record.exit_code.unwrap_or_else(|| reason.exit_code());
        Some(Self::Stopped { reason, detail: record.detail.clone(), at, exit_code })
    }

    /// A run that its operator had killed has not crashed: it was ended.
    pub(crate) fn or_killed(self, killed: Option<&(RunId, Timestamp)>) -> Self {
        match (self, killed) {
            (Self::Crashed { run_id, .. }, Some((killed, at))) if run_id == *killed => Self::Stopped {
                reason: StopReason::Interrupted(KILL),
                detail: "its operator had it killed; the turn that was open is taken up by the next start"
                    .to_owned(),
                at: *at,
                exit_code: exit::signalled(KILL),
            },
            (live, _) => live,
        }
    }
}

/// What the run at the end of the store and the journal amount to. `records` are the run records,
/// oldest first; `boot` is the id of this boot.
pub(crate) fn liveness(
    (lock, gates_since): (&Lock, Option<Timestamp>),
    state: Option<&State>,
    records: &[RunRecord],
    boot: Option<&str>,
) -> Result<Liveness, String> {
    let newest = records.last();
    let turn = state.and_then(OpenTurn::of);
    match lock {
        Lock::Unreadable(why) => return Err(why.clone()),
        Lock::Held { pid, run_id } => {
            let since = state.and_then(State::live_run).map(|run| run.started_at);
            let since = since.or_else(|| newest.filter(|r| r.ended_at.is_none()).map(|r| r.started_at));
            return Ok(Liveness::Running { pid: *pid, run_id: run_id.clone(), since, turn, gates_since });
        }
        Lock::Command { pid, command } => {
            return Ok(Liveness::Command { pid: *pid, command: command.clone() });
        }
        Lock::Free => {}
    }
    // A run that the journal holds open has crashed; so has one that never came to its first record.
    let open = state.and_then(State::live_run);
    let ended = state.and_then(|state| state.run.as_ref()).filter(|run| run.ended);
    let record = match open {
        Some(run) => records.iter().find(|r| r.run_id == run.id),
        // One whose end the journal knows only lacks its last touch.
        None => newest.filter(|r| r.ended_at.is_none() && ended.is_none_or(|run| run.id != r.run_id)),
    };
    // Whoever killed it wrote its end into its record; the journal holds it open until the next start.
    let unsaid = newest.filter(|r| open.is_none() && ended.is_some_and(|run| run.id != r.run_id));
    let unsaid = unsaid.filter(|record| record.says_more_than_the_journal(false));
    let told = record.filter(|record| record.says_more_than_the_journal(open.is_some())).or(unsaid);
    if let Some(stopped) = told.and_then(Liveness::told) {
        return Ok(stopped);
    }
    if open.is_some() || record.is_some() {
        let how = match (record.and_then(|r| r.boot_id.as_deref()), boot) {
            (Some(then), Some(now)) if then == now => CrashKind::Killed,
            (Some(_), Some(_)) => CrashKind::HostRebooted,
            _ => CrashKind::Lost,
        };
        let begun = open.map(|run| (run.id.clone(), run.started_at));
        if let Some((run_id, since)) = begun.or_else(|| record.map(|r| (r.run_id.clone(), r.started_at))) {
            return Ok(Liveness::Crashed { run_id, since, how, turn });
        }
    }
    let exit = state.and_then(|state| state.last_exit.as_ref());
    let Some(exit) = exit else {
        // The journal cannot be read, but the run records can.
        // That it is complete is proved by the journal or not at all.
        let said = newest.filter(|record| record.reason != Some(StopReason::Complete));
        return match (state, said.and_then(Liveness::told)) {
            (_, Some(stopped)) => Ok(stopped),
            (Some(_), None) => Ok(Liveness::Fresh),
            (None, None) => Err("neither the journal nor a run record says anything".to_owned()),
        };
    };
    let record = newest.filter(|r| r.reason.as_ref() == Some(&exit.reason));
    Ok(Liveness::Stopped {
        reason: exit.reason.clone(),
        detail: record.map(|r| r.detail.clone()).unwrap_or_default(),
        at: exit.at,
        exit_code: record.and_then(|r| r.exit_code).unwrap_or_else(|| exit.reason.exit_code()),
    })
}

/// Whether peers are confined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Confinement {
    /// No run says anything yet.
    Unknown,
    /// Peers run with the rights of the operator.
    Unconfined,
    /// Peers run in a sandbox.
    Confined {
        /// Which one.
        backend: String,
        /// How strong it is, from 1.
        tier: u8,
        /// How each peer comes to its model, as [`RunRecord::credentials`].
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        credentials: BTreeMap<PeerName, String>,
    },
}

impl Confinement {
    /// As the record of the newest run has it.
    #[must_use]
    pub fn of(record: Option<&RunRecord>) -> Self {
        match record {
            None => Self::Unknown,
            Some(record) if record.tier == 0 => Self::Unconfined,
            Some(record) => Self::Confined {
                backend: record.sandbox.clone(),
                tier: record.tier,
                credentials: record.credentials.clone(),
            },
        }
    }

    /// For people, one line.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Unknown => "not known before the first run".to_owned(),
            Self::Unconfined => "unconfined: peers run without a sandbox".to_owned(),
            Self::Confined { backend, tier, credentials } => {
                let who = |how: &str, said: &str| {
                    let all = credentials.iter().filter(|(_, is)| *is == how);
                    let who: Vec<&str> = all.map(|(peer, _)| peer.as_str()).collect();
                    (!who.is_empty()).then(|| format!("{said}: {}", who.join(", ")))
                };
                let logins = [who("proxy", "without a login"), who("mounted", "with its tool's login")];
                let first = format!("{backend} (tier {tier})");
                std::iter::once(first).chain(logins.into_iter().flatten()).collect::<Vec<_>>().join("; ")
            }
        }
    }
}

/// What a backend means for the machine, one line.
#[must_use]
pub fn wall_words(backend: &str) -> String {
    match Backend::named(backend) {
        Some(Backend::Bwrap) => {
            "sandbox bwrap: agents and gates see this repository, their own state and the programs of this machine".to_owned()
        }
        Some(Backend::Podman) => {
            "sandbox podman: agents and gates see this repository, their own state and the programs of an image".to_owned()
        }
        Some(Backend::Landlock) => {
            "sandbox landlock: agents and gates write this repository and their own state alone; `.git`, `.peers/` and the network are open to them".to_owned()
        }
        Some(Backend::None) | None => {
            "unconfined: agents and gates run as you, without a sandbox".to_owned()
        }
    }
}
