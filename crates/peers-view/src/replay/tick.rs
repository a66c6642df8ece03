//! `peers replay N`: everything about one tick, and the state before and after it.

use std::collections::BTreeMap;

use peers_core::state::State;
use peers_git::Facts;
use peers_model::record::{CheckpointRecord, Line, Record, TickRecord};
use peers_model::{CommitId, RunId, TickNo};
use peers_store::journal::Journal;
use peers_store::{Area, Disk, Position, StoreError, layout, store};
use serde::Serialize;

use crate::json;
use crate::sources::Stop;

/// Records of one tick that are kept; more are counted.
const RECORDS: usize = 1000;
/// Commits of one tick that are looked up.
const COMMITS: usize = 200;
/// Files of one tick.
const FILES: usize = 500;

/// One tick.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replay {
    /// Its number.
    pub tick: TickNo,
    /// Its records and those that follow it, up to the next tick; of hooks that failed those of this tick alone,
    /// also from before it and from later.
    pub records: Vec<Line>,
    /// Records that were left out.
    pub records_left_out: u64,
    /// The fold of everything before it.
    pub before: Box<State>,
    /// The fold of everything up to its end; absent while it is open.
    pub after: Option<Box<State>>,
    /// Its commits.
    pub commits: Vec<CommitRow>,
    /// Files, lines added and lines removed between HEAD before and after.
    pub diffstat: Option<(u64, u64, u64)>,
    /// Prompt, output and gate logs that are still there.
    pub files: Vec<Artifact>,
}

/// A commit of a tick.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommitRow {
    /// Its id.
    pub id: CommitId,
    /// `peer`, `foreign` or `own`, as the record says.
    pub origin: &'static str,
    /// First line of its message, if the repository was asked and has it. Untrusted text.
    pub subject: Option<String>,
}

/// A file that a tick left below `.peers/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Artifact {
    /// `prompt`, `output` or `gate`.
    pub kind: &'static str,
    /// From the top of the repository. Untrusted text.
    pub path: String,
    /// Its size; absent for something that is no plain file of ours.
    pub bytes: Option<u64>,
}

/// Reads one tick; `None` when there is no such tick. `git` looks up its commits.
///
/// # Errors
/// [`StoreError`] when the journal is damaged before the tick's end.
pub fn replay<D: Disk>(
    disk: &mut D,
    tick: TickNo,
    git: Option<&Facts<'_>>,
) -> Result<Option<Replay>, StoreError> {
    let mut fold = Fold { tick, state: State::new(), before: Vec::new(), found: None, over: false };
    let read = Journal::open(disk, &Position::default(), false, |read| fold.take(read.line));
    match (read, &fold.found) {
        // What is damaged behind the tick does not concern it.
        (Ok(_) | Err(Stop::Enough), _) | (Err(Stop::Store(_)), Some(Replay { after: Some(_), .. })) => {}
        (Err(Stop::Store(error)), _) => return Err(error),
    }
    let Some(mut replay) = fold.found else { return Ok(None) };
    if let Some(record) = replay.record().cloned() {
        replay.commits = commits(&record, git);
        replay.diffstat = git.and_then(|git| {
            let trees = (git.tree_of(&record.head_before).ok()?, git.tree_of(&record.head_after).ok()?);
            let stat = git.diffstat(&trees.0, &trees.1).ok()?;
            Some((stat.files, stat.added, stat.deleted))
        });
    }
    replay.files = files(disk, tick);
    Ok(Some(replay))
}

/// The tick for programs, schema `peers.replay/1`.
#[must_use]
pub fn replay_json(replay: &Replay) -> String {
    json::document("peers.replay/1", replay)
}

impl Replay {
    /// The run that closed it, unless it is open.
    #[must_use]
    pub fn run(&self) -> Option<&RunId> {
        let closes = |line: &&Line| matches!(&line.record, Record::Tick(tick) if tick.iteration == self.tick);
        self.records.iter().find(closes)?.run_id.as_ref()
    }

    /// Its closing record, unless it is open.
    #[must_use]
    pub fn record(&self) -> Option<&TickRecord> {
        self.records.iter().find_map(|line| match &line.record {
            Record::Tick(tick) if tick.iteration == self.tick => Some(tick.as_ref()),
            _ => None,
        })
    }
}

struct Fold {
    tick: TickNo,
    state: State,
    /// Of hooks that failed before it began.
    before: Vec<Line>,
    found: Option<Replay>,
    /// The next tick has begun.
    over: bool,
}

impl Fold {
    fn take(&mut self, line: Line) -> Result<(), Stop> {
        if self.over {
            match &line.record {
                // What failed in a run is written down by its end.
                Record::RunStarted(_) => return Err(Stop::Enough),
                Record::HookFailed(failed) if failed.tick == self.tick => self.keep(line),
                _ => {}
            }
            return Ok(());
        }
        if let Record::TickStarted(started) = &line.record {
            if started.tick == self.tick {
                self.found = Some(Replay {
                    tick: self.tick,
                    records: std::mem::take(&mut self.before),
                    records_left_out: 0,
                    before: Box::new(self.state.clone()),
                    after: None,
                    commits: Vec::new(),
                    diffstat: None,
                    files: Vec::new(),
                });
            } else if self.found.is_some() {
                self.over = true;
                return Ok(());
            }
        }
        store::apply(&mut self.state, &line)?;
        if let Record::HookFailed(failed) = &line.record
            && failed.tick != self.tick
        {
            return Ok(());
        }
        match &mut self.found {
            None if matches!(line.record, Record::HookFailed(_)) => self.before.push(line),
            None => {}
            Some(found) => {
                if matches!(&line.record, Record::Tick(tick) if tick.iteration == self.tick) {
                    found.after = Some(Box::new(self.state.clone()));
                }
                self.keep(line);
            }
        }
        Ok(())
    }

    fn keep(&mut self, line: Line) {
        let Some(found) = &mut self.found else { return };
        if found.records.len() < RECORDS {
            found.records.push(slim(line));
        } else {
            found.records_left_out += 1;
        }
    }
}

/// A checkpoint says nothing about a tick, and may be large.
fn slim(line: Line) -> Line {
    match line.record {
        Record::Checkpoint(_) => {
            Line { record: Record::Checkpoint(CheckpointRecord { state: serde_json::Value::Null }), ..line }
        }
        _ => line,
    }
}

fn commits(record: &TickRecord, git: Option<&Facts<'_>>) -> Vec<CommitRow> {
    let groups = [("peer", &record.commits), ("foreign", &record.foreign), ("own", &record.own)];
    let all = groups.into_iter().flat_map(|(origin, ids)| ids.iter().map(move |id| (origin, id)));
    all.take(COMMITS)
        .map(|(origin, id)| {
            let fact = git.and_then(|git| git.commit(id).ok());
            let subject = fact.map(|fact| fact.message.lines().next().unwrap_or_default().to_owned());
            CommitRow { id: id.clone(), origin, subject }
        })
        .collect()
}

/// What the tick left below `.peers/`. Agents may have put names there: only those of our form count.
fn files<D: Disk>(disk: &mut D, tick: TickNo) -> Vec<Artifact> {
    let prefix = peers_store::artifacts::tick_file(tick, "", "");
    let places = [
        ("prompt", layout::peers::LOG_PROMPTS),
        ("output", layout::peers::LOG_PEERS),
        ("gate", layout::peers::LOG_GATES),
    ];
    let mut found: BTreeMap<String, Artifact> = BTreeMap::new();
    for (kind, dir) in places {
        // Logs are for people: without them the records still stand.
        let names = disk.list(Area::Peers, dir).unwrap_or_default();
        for name in names.into_iter().filter(|name| name.starts_with(&prefix)) {
            if found.len() >= FILES {
                break;
            }
            let inner = format!("{dir}/{name}");
            let bytes = disk.len(Area::Peers, &inner).ok().flatten();
            found.insert(inner.clone(), Artifact { kind, path: format!(".peers/{inner}"), bytes });
        }
    }
    found.into_values().collect()
}
