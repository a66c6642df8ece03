//! What runs right now, for a line that shows it live.

use std::cell::RefCell;
use std::rc::Rc;

use peers_model::config::Hook;
use peers_model::{GoalId, Mono, PeerName, TickNo};

use crate::ports::Round;

/// Cells of the text of a peer that are kept.
const WORDS: usize = 160;

/// A shared view of what runs; cheap to clone and to read.
#[derive(Debug, Clone, Default)]
pub struct Progress(Rc<RefCell<Option<Live>>>);

/// What runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Live {
    /// A peer.
    Peer(LivePeer),
    /// Gates.
    Gates(LiveGates),
    /// A command of a hook.
    Hook(LiveHook),
}

/// A running command of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveHook {
    /// Of which hook.
    pub hook: Hook,
    /// Its program, one line that is safe to show.
    pub program: String,
    /// When it was started.
    pub since: Mono,
}

/// A running peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LivePeer {
    /// The tick.
    pub tick: TickNo,
    /// Who.
    pub peer: PeerName,
    /// When it was started.
    pub since: Mono,
    /// When it last printed something.
    pub heard: Mono,
    /// Bytes that it printed.
    pub bytes: u64,
    /// What it last said or did, one line that is safe to show; empty at first.
    pub last: String,
}

/// Running gates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveGates {
    /// When the first was started.
    pub since: Mono,
    /// How many there are.
    pub of: usize,
    /// How many have a verdict.
    pub done: usize,
    /// Those that run, in the order in which they were started.
    pub running: Vec<GoalId>,
    /// The command of `setup` that runs before them, one line that is safe to show.
    pub setup: Option<String>,
}

impl Progress {
    /// What runs now.
    #[must_use]
    pub fn now(&self) -> Option<Live> {
        self.0.borrow().clone()
    }

    pub(super) fn peer(&self, tick: TickNo, peer: PeerName, at: Mono) {
        let live = LivePeer { tick, peer, since: at, heard: at, bytes: 0, last: String::new() };
        self.0.replace(Some(Live::Peer(live)));
    }

    pub(super) fn heard(&self, bytes: u64, at: Mono) {
        if let Some(Live::Peer(live)) = &mut *self.0.borrow_mut() {
            live.bytes = live.bytes.saturating_add(bytes);
            live.heard = at;
        }
    }

    /// `words` are untrusted and already without secrets.
    pub(super) fn said(&self, words: &str) {
        let words = words.trim();
        if words.is_empty() {
            return;
        }
        if let Some(Live::Peer(live)) = &mut *self.0.borrow_mut() {
            live.last = peers_sys::term::line(words, WORDS);
        }
    }

    pub(super) fn gates(&self, round: Round) {
        let Round { since, of, done } = round;
        self.0.replace(Some(Live::Gates(LiveGates { since, of, done, running: Vec::new(), setup: None })));
    }

    /// A command of `setup` begins, or they are over.
    pub(super) fn setup(&self, command: Option<&str>) {
        if let Some(Live::Gates(live)) = &mut *self.0.borrow_mut() {
            live.setup = command.map(|command| peers_sys::term::line(command, WORDS));
        }
    }

    pub(super) fn gate_begun(&self, gate: &GoalId) {
        if let Some(Live::Gates(live)) = &mut *self.0.borrow_mut() {
            live.running.push(gate.clone());
        }
    }

    pub(super) fn gate_done(&self, gate: &GoalId) {
        if let Some(Live::Gates(live)) = &mut *self.0.borrow_mut() {
            live.running.retain(|g| g != gate);
            live.done += 1;
        }
    }

    pub(super) fn hook(&self, hook: Hook, program: &str, at: Mono) {
        let program = peers_sys::term::line(program, WORDS);
        self.0.replace(Some(Live::Hook(LiveHook { hook, program, since: at })));
    }

    /// The command of a hook is over. What else runs stays.
    pub(super) fn hook_done(&self) {
        self.0.replace_with(|live| live.take().filter(|live| !matches!(live, Live::Hook(_))));
    }

    pub(super) fn idle(&self) {
        self.0.replace(None);
    }
}
