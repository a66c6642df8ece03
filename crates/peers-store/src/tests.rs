//! The store on a real disk: what it refuses, what it keeps, what it mends.

mod copies;
mod files;
mod journal;

use std::fs;
use std::path::PathBuf;

use peers_model::Timestamp;
use peers_model::outcome::StopReason;
use peers_model::record::{Digests, OperatorOp, OperatorRecord, Record};
use peers_model::{RunId, outcome};
use peers_sys::dir::SafeDir;

use crate::runs::RunRecord;
use crate::{FsDisk, Store};

/// A store and a `.peers/` in a temporary directory.
struct World {
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["store", "peers"] {
            SafeDir::create_root(dir.path().join(name)).unwrap();
        }
        Self { dir }
    }

    /// With so many records.
    fn with(records: usize) -> Self {
        let world = Self::new();
        let mut store = Store::open(world.disk()).unwrap().0;
        for _ in 0..records {
            store.append(at(), None, &[reset()]).unwrap();
        }
        store.write_snapshot().unwrap();
        world
    }

    fn disk(&self) -> FsDisk {
        let open = |name: &str| SafeDir::open_root(self.dir.path().join(name)).unwrap();
        FsDisk::new(open("store"), Some(open("peers")))
    }

    fn open(&self) -> Result<crate::OpenReport, String> {
        Store::open(self.disk()).map(|(_, report)| report).map_err(|e| match e.hint() {
            Some(hint) => format!("{e}\n{hint}"),
            None => e.to_string(),
        })
    }

    #[track_caller]
    fn refused(&self, says: &str) {
        let before = self.files();
        let error = self.open().unwrap_err();
        assert!(error.contains(says), "{error}");
        assert_eq!(self.files(), before, "something was written");
    }

    fn store(&self, name: &str) -> PathBuf {
        self.dir.path().join("store").join(name)
    }

    fn peers(&self, name: &str) -> PathBuf {
        self.dir.path().join("peers").join(name)
    }

    fn journal(&self) -> PathBuf {
        self.store("journal/000001.jsonl")
    }

    fn mirror(&self) -> PathBuf {
        self.peers("log/runs.jsonl")
    }

    /// Keeps the first `records` lines of the journal.
    fn cut(&self, records: usize) {
        let text = fs::read_to_string(self.journal()).unwrap();
        let kept: String = text.split_inclusive('\n').take(records).collect();
        fs::write(self.journal(), kept).unwrap();
    }

    /// Name and content of everything.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut todo = vec![self.dir.path().to_owned()];
        while let Some(dir) = todo.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let meta = path.symlink_metadata().unwrap();
                if meta.is_dir() {
                    todo.push(path);
                } else {
                    let bytes = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
                    found.push((path, bytes));
                }
            }
        }
        found.sort();
        found
    }
}

fn at() -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000)
}

fn reset() -> Record {
    Record::Operator(OperatorRecord { op: OperatorOp::BudgetReset, by: "op".into() })
}

/// A line that continues the last one of `text`, but for its number.
fn after(text: &[u8], seq: u64, record: &serde_json::Value) -> Vec<u8> {
    let last = text.split(|b| *b == b'\n').rfind(|line| !line.is_empty()).unwrap();
    let mut line: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(last).unwrap();
    line.retain(|key, _| ["v", "seq", "ts", "prev", "run_id"].contains(&key.as_str()));
    line.extend(record.as_object().unwrap().clone());
    line.insert("seq".into(), seq.into());
    line.insert("prev".into(), peers_sys::digest::sha256_hex(last).into());
    let mut bytes = serde_json::to_vec(&line).unwrap();
    bytes.push(b'\n');
    let parsed = peers_model::record::Line::read(&bytes);
    assert!(parsed.is_ok(), "{parsed:?}");
    bytes
}

fn run(id: &str, iteration: u64) -> RunRecord {
    RunRecord {
        v: 1,
        run_id: RunId::new(id).unwrap(),
        argv: Vec::new(),
        request: peers_model::RunRequest::default(),
        version: "0".into(),
        sandbox: "none".into(),
        tier: 0,
        credentials: std::collections::BTreeMap::new(),
        digests: Digests::default(),
        branch: None,
        workdir: "/w".into(),
        own_branch: false,
        into: None,
        base: None,
        pid: 1,
        starttime: None,
        boot_id: None,
        started_at: at(),
        ready_at: Some(at()),
        ended_at: Some(at()),
        reason: Some(StopReason::Error(outcome::ErrorKind::Io)),
        detail: String::new(),
        exit_code: Some(70),
        signal: None,
        iteration,
        ticks_in_run: iteration,
        head: None,
        proof: None,
        redactions: 0,
    }
}

fn fifo(path: &std::path::Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}
