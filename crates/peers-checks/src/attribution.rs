//! Who made which commit, by the journal. Trailers, author names and notes play no part.

use std::collections::BTreeSet;

use peers_core::bugs::Author as LedgerAuthor;
use peers_core::state::{PeerState, State};
use peers_model::outcome::StopReason;
use peers_model::record::{AckTarget, Record};
use peers_model::{BugId, CommitId, PeerName, TickNo};
use peers_store::{Author, Authors, Disk, StoreError, store};

use crate::cx::{CheckCx, CouldNot};

/// What the journal knows of the commits of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attribution {
    authors: Authors,
    acks: BTreeSet<BugId>,
    first_head: Option<CommitId>,
    open: Option<OpenTurn>,
    health: LoopHealth,
    digest: String,
}

/// How the loop is doing, by the fold of the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LoopHealth {
    /// Ticks completed, ever.
    pub(crate) ticks: u64,
    /// Clean ticks in a row.
    pub(crate) clean_ticks: u32,
    /// The peers that need their operator, and why.
    pub(crate) unavailable: Vec<(PeerName, String)>,
}

impl LoopHealth {
    fn of(state: &State) -> Self {
        let mut unavailable: Vec<(PeerName, String)> = state
            .peers
            .iter()
            .filter(|(_, health)| health.state == PeerState::Unavailable)
            .map(|(name, health)| (name.clone(), health.degraded_reason.clone().unwrap_or_default()))
            .collect();
        // What ended the last run holds until the operator begins or resumes one.
        let ended = state.run.as_ref().is_some_and(|run| run.ended);
        let last = state.last_exit.as_ref().filter(|_| ended).map(|exit| &exit.reason);
        if let Some(StopReason::PeerUnavailable(peer)) = last
            && !unavailable.iter().any(|(name, _)| name == peer)
        {
            unavailable.push((peer.clone(), "it ended the last run".to_owned()));
        }
        Self { ticks: state.ticks.0, clean_ticks: state.clean_ticks, unavailable }
    }
}

/// A turn that is not in the record yet. Its gates run before it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenTurn {
    /// Whose.
    pub peer: PeerName,
    /// Its number.
    pub tick: TickNo,
    /// HEAD before it.
    pub from: CommitId,
    /// It ran outside of the loop.
    pub outside: bool,
}

impl Attribution {
    /// Reads the whole journal. Writes nothing.
    ///
    /// # Errors
    /// [`StoreError`] when it is damaged or cannot be read: then nothing is known.
    pub fn read<D: Disk>(disk: &mut D) -> Result<Self, StoreError> {
        let mut found = Self::default();
        let (state, _, at) = store::read_each(disk, |line| {
            found.authors.take(&line.record);
            if let (None, Record::RunStarted(started)) = (&found.first_head, &line.record) {
                found.first_head = Some(started.head.clone());
            }
        })?;
        found.digest = at.hash;
        found.health = LoopHealth::of(&state);
        found.acks = state
            .acks
            .into_iter()
            .filter_map(|ack| if let AckTarget::Bug(id) = ack { Some(id) } else { None })
            .collect();
        found.open = state.open.map(|open| OpenTurn {
            peer: open.started.peer,
            tick: open.started.tick,
            from: open.started.head_before,
            outside: open.started.outside,
        });
        Ok(found)
    }

    /// Bugs whose deferral the operator agreed to.
    #[must_use]
    pub fn acks(&self) -> &BTreeSet<BugId> {
        &self.acks
    }

    /// How the loop is doing.
    pub(crate) fn health(&self) -> &LoopHealth {
        &self.health
    }

    /// The turn that is open.
    #[must_use]
    pub fn open_turn(&self) -> Option<&OpenTurn> {
        self.open.as_ref()
    }

    /// Names the state of the record: the hash of the journal's last line, empty when there is none.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

/// [`Attribution`] seen from one head, with what follows from it although no record says it.
pub(crate) struct Whose<'a> {
    attribution: &'a Attribution,
    /// Reachable from where the first run began: no peer was alive before.
    prior: Prior,
    /// New in the turn that is open.
    turn: BTreeSet<CommitId>,
}

enum Prior {
    /// No run ever began.
    Everything,
    These(BTreeSet<CommitId>),
}

impl<'a> Whose<'a> {
    /// Looks at the commits between the base and the head.
    pub(crate) fn new(cx: &CheckCx, attribution: &'a Attribution) -> Result<Self, CouldNot> {
        let prior = match &attribution.first_head {
            None => Prior::Everything,
            Some(first) => Prior::These(cx.ids(cx.base(), first)?),
        };
        let turn = match &attribution.open {
            Some(open) => cx.ids(Some(&open.from), cx.head())?,
            None => BTreeSet::new(),
        };
        Ok(Self { attribution, prior, turn })
    }

    /// Who made the commit. A commit of the open turn counts as its peer's, which its record will say
    /// too unless the commit turns out to be somebody else's; what nobody saw come is unattributed.
    pub(crate) fn author(&self, commit: &CommitId) -> LedgerAuthor {
        if let Some(known) = self.attribution.authors.of(commit) {
            return match known {
                Author::Peer { name, .. } => LedgerAuthor::Peer(name.clone()),
                Author::Operator => LedgerAuthor::Operator,
                Author::Foreign => LedgerAuthor::Foreign,
                Author::Substrate => LedgerAuthor::Substrate,
            };
        }
        let before_any_run = match &self.prior {
            Prior::Everything => true,
            Prior::These(commits) => commits.contains(commit),
        };
        match &self.attribution.open {
            _ if before_any_run => LedgerAuthor::Operator,
            Some(open) if self.turn.contains(commit) => LedgerAuthor::Peer(open.peer.clone()),
            _ => LedgerAuthor::Unattributed,
        }
    }

    /// Whether whose it is was only claimed. Such a commit can report a bug, and speaks for nobody's work.
    pub(crate) fn is_unwatched(&self, commit: &CommitId) -> bool {
        let of_open = self.attribution.open.as_ref().is_some_and(|open| open.outside);
        self.attribution.authors.is_unwatched(commit) || (of_open && self.turn.contains(commit))
    }

    /// Whether the commit belongs to a turn whose work was taken back.
    pub(crate) fn is_voided(&self, commit: &CommitId) -> bool {
        self.attribution.authors.is_voided(commit)
    }
}
