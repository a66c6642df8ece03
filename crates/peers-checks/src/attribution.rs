//! Who made which commit, by the journal. Trailers, author names and notes play no part.

use std::collections::{BTreeMap, BTreeSet};

use peers_core::bugs::Author as LedgerAuthor;
use peers_core::plan::Step;
use peers_core::state::{PeerState, State};
use peers_model::outcome::StopReason;
use peers_model::record::{AckTarget, ContractAct, ContractRecord, OperatorOp, OperatorRecord, Record};
use peers_model::step::{NotePart, SealedNote, StepRole};
use peers_model::{BugId, CommitId, PeerName, StepId, TickNo, limits};
use peers_store::{Area, Author, Authors, Disk, StoreError, layout, store};
use peers_sys::digest::sha256_hex;

use crate::cx::{CheckCx, CouldNot};

/// What the journal knows of the commits of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attribution {
    authors: Authors,
    acks: BTreeSet<BugId>,
    concerns: BTreeSet<String>,
    /// Digest of the pins that the operator froze last.
    contracts: Option<String>,
    /// Blocked steps that the operator acknowledged, with the text that each had then.
    blocks: BTreeMap<String, String>,
    /// The sandbox of the newest run.
    sandbox: Option<String>,
    /// The notes of each step that were sealed last.
    notes: BTreeMap<StepId, Pair>,
    first_head: Option<CommitId>,
    /// What the newest run began at, and what it saw since and did not take back.
    kept: Vec<CommitId>,
    open: Option<OpenTurn>,
    health: LoopHealth,
    digest: String,
}

/// The notes about one step: of its author, and of those who read its commits after that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) author: PeerName,
    pub(crate) handed_in: SealedNote,
    pub(crate) reviews: Vec<(PeerName, TickNo, SealedNote)>,
    /// The turn in which they were first shown to somebody.
    pub(crate) revealed: Option<TickNo>,
    /// A file that is not what was sealed.
    pub(crate) damaged: Option<String>,
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
            found.take_notes(&line.record);
            if let Record::RunStarted(started) = &line.record {
                found.first_head.get_or_insert_with(|| started.head.clone());
                found.sandbox = Some(started.sandbox.clone());
                found.kept = vec![started.head.clone()];
            }
            if let Record::Tick(tick) = &line.record
                && tick.corrected.is_none()
            {
                found.kept.extend(tick.commits.iter().cloned());
            }
            if let Record::Operator(OperatorRecord { op: OperatorOp::Contract(act), .. }) = &line.record {
                found.contract(act);
            }
        })?;
        for pair in found.notes.values_mut() {
            let notes = pair.reviews.iter().map(|(.., note)| note).chain([&pair.handed_in]);
            for SealedNote { file, sha256, .. } in notes.cloned().collect::<Vec<_>>() {
                let path = format!("{}/{file}", layout::store::NOTES);
                let bytes = disk.read(Area::Store, &path, 2 * limits::MESSAGE)?;
                if bytes.is_none_or(|bytes| sha256_hex(&bytes) != sha256) {
                    pair.damaged = Some(file);
                }
            }
        }
        found.digest = at.hash;
        found.health = LoopHealth::of(&state);
        for ack in state.acks {
            match ack {
                AckTarget::Bug(id) => {
                    found.acks.insert(id);
                }
                AckTarget::Concern(id) => {
                    found.concerns.insert(id);
                }
                AckTarget::Weakening(_) | AckTarget::Blocked(_) => {}
            }
        }
        found.open = state.open.map(|open| OpenTurn {
            peer: open.started.peer,
            tick: open.started.tick,
            from: open.started.head_before,
            outside: open.started.outside,
        });
        Ok(found)
    }

    fn take_notes(&mut self, record: &Record) {
        if let Record::TickStarted(started) = record {
            let work = started.course.as_ref().and_then(|course| course.work.as_ref());
            let shown = work.filter(|work| work.role == StepRole::Compare);
            if let Some(pair) = shown.and_then(|work| self.notes.get_mut(&work.step)) {
                pair.revealed.get_or_insert(started.tick);
            }
        }
        let Record::Tick(tick) = record else { return };
        let Some(note) = tick.course.as_ref().and_then(|course| course.note.clone()) else { return };
        match note.part {
            NotePart::Impl => {
                let author = tick.peer.clone();
                let pair =
                    Pair { author, handed_in: note, reviews: Vec::new(), revealed: None, damaged: None };
                self.notes.insert(pair.handed_in.step, pair);
            }
            NotePart::Review => {
                if let Some(pair) = self.notes.get_mut(&note.step) {
                    pair.reviews.push((tick.peer.clone(), tick.iteration, note));
                }
            }
        }
    }

    /// The notes of a step that were sealed last.
    pub(crate) fn notes(&self, step: StepId) -> Option<&Pair> {
        self.notes.get(&step)
    }

    fn contract(&mut self, act: &ContractRecord) {
        let ContractRecord { contract, reason: _, change, state } = act;
        let step = change.get("step").cloned().unwrap_or_default();
        match contract {
            ContractAct::Init => {
                self.contracts = Some(state.clone());
                // Another plan: what was acknowledged of the old one says nothing of it.
                self.blocks.clear();
            }
            ContractAct::Amend => self.contracts = Some(state.clone()),
            ContractAct::AckBlock => {
                self.blocks.insert(step, change.get("text").cloned().unwrap_or_default());
            }
            ContractAct::Unblock => {
                self.blocks.remove(&step);
            }
        }
    }

    /// Digest of the contracts that hold, by the newest record of them.
    #[must_use]
    pub fn contracts(&self) -> Option<&str> {
        self.contracts.as_deref()
    }

    /// Whether the operator acknowledged that this step, with this text, is blocked.
    #[must_use]
    pub fn is_block_acknowledged(&self, step: &Step) -> bool {
        self.blocks.get(&step.id.to_string()) == Some(&step.text)
    }

    /// Concerns that the operator acknowledged.
    #[must_use]
    pub fn concerns(&self) -> &BTreeSet<String> {
        &self.concerns
    }

    /// The sandbox of the newest run, as its record names it.
    #[must_use]
    pub fn sandbox(&self) -> Option<&str> {
        self.sandbox.as_deref()
    }

    /// Bugs whose deferral the operator agreed to.
    #[must_use]
    pub fn acks(&self) -> &BTreeSet<BugId> {
        &self.acks
    }

    /// The commits of the newest run that have to be in the history.
    pub(crate) fn kept(&self) -> &[CommitId] {
        &self.kept
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

/// Who wrote a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Writer {
    /// A peer, in a turn that was watched.
    Peer(PeerName),
    /// The operator, or peers itself.
    Operator,
    /// It may be anybody.
    Unknown,
}

impl Writer {
    /// Whether this peer may vouch for it: known, and another one.
    pub(crate) fn is_other_than(&self, signer: &PeerName) -> bool {
        match self {
            Self::Peer(writer) => writer != signer,
            Self::Operator => true,
            Self::Unknown => false,
        }
    }
}

enum Prior {
    /// No run ever began.
    Everything,
    These(BTreeSet<CommitId>),
}

impl<'a> Whose<'a> {
    /// Looks at the commits between the base and the head.
    pub(crate) fn new(cx: &CheckCx, attribution: &'a Attribution) -> Result<Self, CouldNot> {
        Self::of(cx, attribution, None)
    }

    /// The same for who asks of these commits alone.
    pub(crate) fn of(
        cx: &CheckCx,
        attribution: &'a Attribution,
        asked: Option<&[&CommitId]>,
    ) -> Result<Self, CouldNot> {
        let is_recorded = |commit: &&CommitId| attribution.authors.of(commit).is_some();
        let prior = match &attribution.first_head {
            None => Prior::Everything,
            Some(_) if asked.is_some_and(|asked| asked.iter().all(is_recorded)) => {
                Prior::These(BTreeSet::new())
            }
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

    /// The peer that speaks by this commit: it was seen to make it, and its turn stood.
    pub(crate) fn speaker(&self, commit: &CommitId) -> Option<PeerName> {
        match self.author(commit) {
            LedgerAuthor::Peer(peer) if !self.is_unwatched(commit) && !self.is_voided(commit) => Some(peer),
            _ => None,
        }
    }

    /// Who wrote what stands in this commit.
    pub(crate) fn writer(&self, commit: &CommitId) -> Writer {
        match self.author(commit) {
            LedgerAuthor::Peer(peer) if !self.is_unwatched(commit) => Writer::Peer(peer),
            LedgerAuthor::Operator | LedgerAuthor::Substrate => Writer::Operator,
            LedgerAuthor::Peer(_) | LedgerAuthor::Foreign | LedgerAuthor::Unattributed => Writer::Unknown,
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
