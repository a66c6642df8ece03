//! Who holds the run lock, by what it wrote into it.

use peers_model::{RunId, Timestamp};
use peers_sys::identity::{Pid, ProcIdentity};
use peers_sys::lock::FileLock;
use peers_sys::{clock, term};
use serde::Deserialize as _;
use serde_json::{Value, json};

/// What a run that has not begun yet says of itself.
const STARTING: &str = "starting";

/// Who holds the run lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its process, if it says so and that process is there.
    pub pid: Option<u32>,
    /// The same, told apart from every later process with that number, where it says enough of itself.
    pub identity: Option<ProcIdentity>,
    /// Its run, if it says so.
    pub run_id: Option<String>,
    /// The command that it is, such as `land`; absent for a run.
    pub command: Option<String>,
    /// It is a run that has not begun yet.
    pub starting: bool,
    /// Since when it runs gates, if it does.
    pub gates_since: Option<Timestamp>,
}

impl Holder {
    /// What the holder wrote. What the one before it left says nothing of this one.
    pub(super) fn read(content: &[u8]) -> Self {
        let mut lines = content.split(|b| *b == b'\n').map(serde_json::from_slice::<Value>);
        let (value, doing) = (lines.next().and_then(Result::ok), lines.next().and_then(Result::ok));
        let found = value.as_ref().and_then(there);
        let value = value.filter(|_| found.is_some());
        let told =
            |name: &str| value.as_ref().is_some_and(|value| value.get(name).is_some_and(|v| !v.is_null()));
        let identity = found.filter(|_| told("starttime") && told("boot_id"));
        let doing = doing.filter(|_| value.is_some());
        let field = |name: &str| value.as_ref().and_then(|value| value.get(name));
        let word = |name: &str| field(name).and_then(Value::as_str).map(|text| term::line(text, 40));
        let since = doing.as_ref().and_then(|doing: &Value| doing.get("gates_since"));
        Self {
            pid: field("pid").and_then(Value::as_u64).and_then(|pid| u32::try_from(pid).ok()),
            identity,
            run_id: word("run_id"),
            command: word("command"),
            starting: word("phase").is_some_and(|phase| phase == STARTING),
            gates_since: since.and_then(|at| Timestamp::deserialize(at).ok()),
        }
    }
}

/// The process that wrote this, if it is there: with the start time and in the boot that it names, where it names
/// them.
fn there(value: &Value) -> Option<ProcIdentity> {
    let pid = value.get("pid").and_then(Value::as_i64).and_then(|pid| i32::try_from(pid).ok());
    let found = pid.and_then(Pid::new).and_then(|pid| ProcIdentity::of(pid).ok())?;
    let started = value.get("starttime").and_then(Value::as_u64);
    let boot = value.get("boot_id").and_then(Value::as_str);
    let same = started.is_none_or(|started| found.start_time.is_none_or(|now| now == started))
        && boot.is_none_or(|boot| clock::boot_id().is_none_or(|now| now == boot));
    same.then_some(found)
}

/// Writes into the run lock which command holds it. For views alone: what cannot be written is not told.
pub fn sign(lock: &mut FileLock, command: &str) {
    put(lock, &json!({"kind": "command", "command": command}));
}

/// Writes into the run lock which run is about to begin.
pub(super) fn sign_run(lock: &mut FileLock, run: &RunId) {
    put(lock, &json!({"kind": "host", "phase": STARTING, "run_id": run}));
}

fn put(lock: &mut FileLock, what: &Value) {
    let identity = ProcIdentity::known_as();
    let mut content = json!({"pid": ProcIdentity::known_pid(), "starttime": identity.as_ref().and_then(|i| i.start_time),
        "boot_id": clock::boot_id(), "version": env!("CARGO_PKG_VERSION"), "started_at": clock::now()});
    if let (Some(content), Some(what)) = (content.as_object_mut(), what.as_object()) {
        content.extend(what.clone());
    }
    if let Err(error) = lock.write(format!("{content}\n").as_bytes()) {
        tracing::debug!(%error, "the run lock does not say who holds it");
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.command, &self.run_id, self.pid) {
            (Some(command), _, Some(pid)) => write!(f, "`peers {command}` is at work, process {pid}"),
            (Some(command), _, None) => write!(f, "`peers {command}` is at work"),
            (None, Some(run), Some(pid)) => write!(f, "run {run}, process {pid}"),
            (None, Some(run), None) => write!(f, "run {run}"),
            (None, None, Some(pid)) => write!(f, "process {pid}"),
            (None, None, None) => f.write_str("it does not say which process it is"),
        }
    }
}
