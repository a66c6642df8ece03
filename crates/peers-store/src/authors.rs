//! Attribution: which commit came from whom, by observation.
//!
//! An index over the journal. Trailers, author names and notes are claims and play no part.

use std::collections::{BTreeMap, BTreeSet};

use peers_model::reader::RecordReader;
use peers_model::record::{CommitsSeen, OperatorOp, OperatorRecord, Record, RunStarted, TickRecord};
use peers_model::{CommitId, PeerName, TickNo};

/// Who a commit came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Author {
    /// A peer, in this tick.
    Peer {
        /// Who.
        name: PeerName,
        /// When.
        tick: TickNo,
    },
    /// It appeared while no peer was alive.
    Operator,
    /// It was known to the control git dir before the tick in which it became reachable, or it
    /// appeared while gates ran.
    Foreign,
    /// We made it.
    Substrate,
}

/// The index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Authors {
    map: BTreeMap<CommitId, Author>,
    ticks: BTreeMap<TickNo, Vec<CommitId>>,
    voided: BTreeSet<CommitId>,
    unwatched: BTreeSet<CommitId>,
}

impl Authors {
    /// Who the commit came from; `None` when nobody saw it come.
    #[must_use]
    pub fn of(&self, commit: &CommitId) -> Option<&Author> {
        self.map.get(commit)
    }

    /// Whether the commit belongs to a turn whose work was taken back.
    #[must_use]
    pub fn is_voided(&self, commit: &CommitId) -> bool {
        self.voided.contains(commit)
    }

    /// Whether the commit belongs to a turn that ran outside of the loop: whose it is was claimed and not seen.
    #[must_use]
    pub fn is_unwatched(&self, commit: &CommitId) -> bool {
        self.unwatched.contains(commit)
    }

    /// How many commits are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether no commit is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// The commits of a tick's peer, oldest first, and then ours that correct them.
    #[must_use]
    pub fn commits_of_tick(&self, tick: TickNo) -> &[CommitId] {
        self.ticks.get(&tick).map(Vec::as_slice).unwrap_or_default()
    }

    /// All, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (&CommitId, &Author)> {
        self.map.iter()
    }

    /// Takes a record in. The first attribution of a commit stands.
    pub fn take(&mut self, record: &Record) {
        record.tell((), self);
    }

    fn put(&mut self, commits: &[CommitId], author: &Author) {
        for commit in commits {
            self.map.entry(commit.clone()).or_insert_with(|| author.clone());
        }
    }
}

impl RecordReader<()> for Authors {
    fn run_started(&mut self, (): (), started: &RunStarted) {
        self.put(&started.operator, &Author::Operator);
    }

    fn commits_seen(&mut self, (): (), seen: &CommitsSeen) {
        let author = if seen.while_gates { Author::Foreign } else { Author::Operator };
        self.put(&seen.commits, &author);
    }

    fn tick(&mut self, (): (), tick: &TickRecord) {
        // Ours first: a correction that was made again after a crash also stands in the range.
        self.put(&tick.own, &Author::Substrate);
        let author = Author::Peer { name: tick.peer.clone(), tick: tick.iteration };
        self.put(&tick.commits, &author);
        self.put(&tick.foreign, &Author::Foreign);
        if tick.outside {
            self.unwatched.extend(tick.commits.iter().cloned());
        }
        if tick.corrected.is_some() {
            self.voided.extend(tick.commits.iter().cloned());
        }
        let all: Vec<CommitId> = tick.commits.iter().chain(&tick.own).cloned().collect();
        if !all.is_empty() {
            self.ticks.insert(tick.iteration, all);
        }
    }

    fn operator(&mut self, (): (), operator: &OperatorRecord) {
        // A merge commit of ours, or the tip of the run's branch, which has its author already.
        if let OperatorOp::Landed { commit, .. } = &operator.op {
            self.put(std::slice::from_ref(commit), &Author::Substrate);
        }
    }
}
