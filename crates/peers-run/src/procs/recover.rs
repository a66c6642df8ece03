//! After a crash of the loop: ending what it left running.

use std::io::{ErrorKind, Read as _};
use std::time::Duration;

use peers_model::outcome::Usage;
use peers_model::record::PeerSpawned;
use peers_model::{PeerName, RunId, TickNo, limits};
use peers_store::artifacts;
use peers_sys::SafeDir;
use peers_sys::identity::{Pid, ProcIdentity, is_alive};
use peers_sys::reap::{self, Guard, ReapError};
use peers_sys::signal::{ProcHandle, Signal};
use peers_tools::{ExitKind, Meter, Stream, adapter};

use super::Book;
use super::child::believed;
use super::leftover::number;
use super::streams::SUFFIXES;
use crate::tool_spec::tool_spec;

/// Bytes of a stream that are decoded at once.
const PIECE: usize = 64 * 1024;

/// Between asking and killing. Shorter than for a living peer: nobody reads its output any more.
const GRACE: Duration = Duration::from_secs(2);

/// Ends what `run` left, peers and gates of whatever tick, by recorded identity and by environment
/// marker, in that order: the loop is gone, so nothing of it may live.
/// Returns the processes that could not be ended.
///
/// It blocks, a few seconds at most: nothing else happens before they are gone.
pub(super) fn reap(run: Option<&RunId>, spawned: Option<&PeerSpawned>) -> Vec<u32> {
    let leader = spawned.and_then(identity);
    let list = || targets(run, leader.as_ref());
    ask(&list);
    match reap::tear_down(list, Guard::default(), reap::SWEEP_DEADLINE) {
        Ok(report) => report.survivors.into_iter().map(number).collect(),
        Err(error) => {
            tracing::error!(%error, "leftovers of the last run were not looked for");
            // What cannot be looked for may live.
            leader.filter(is_alive).map(|leader| number(leader.pid)).into_iter().collect()
        }
    }
}

/// Ends what a command outside of a loop left that was killed, gates and what they started.
pub fn reap_run(run: &RunId) {
    let survivors = reap(Some(run), None);
    if !survivors.is_empty() {
        tracing::warn!(?survivors, "processes of a killed command could not be ended");
    }
}

/// What the live copy of a peer's output says that it used. The copy lies where agents can write, so this is as
/// much a claim as the stream itself was; what is not there was not used as far as anybody knows.
pub(super) fn used(dir: &SafeDir, book: &Book, tick: TickNo, peer: &PeerName) -> Usage {
    let Some(peer) = book.config.peers.iter().find(|spec| spec.name == *peer) else {
        return Usage::default();
    };
    let name = artifacts::tick_file(tick, peer.name.as_str(), SUFFIXES[0]);
    let Ok(copy) = dir.open_read(name) else { return Usage::default() };
    let mut copy = copy.take(limits::STREAM_TEE);
    let spec = tool_spec(peer);
    let tool = adapter(&spec.kind);
    let mut decoder = tool.decoder_for(&peer.argv);
    let mut meter = Meter::new(spec.kind.clone(), tool.model_asked(&spec), book.prices.clone());
    let mut events = Vec::new();
    let mut piece = vec![0; PIECE];
    loop {
        let read = match copy.read(&mut piece) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => break,
            Ok(n) => piece.get(..n).unwrap_or_default(),
        };
        decoder.feed(Stream::Stdout, read, &mut events);
        events.drain(..).for_each(|event| meter.feed(&event));
    }
    decoder.finish(ExitKind::Unknown, &mut events);
    events.drain(..).for_each(|event| meter.feed(&event));
    let (tokens, usd) = meter.spent();
    believed(Usage { tokens: (tokens.0 > 0).then_some(tokens), usd })
}

/// Asks everybody to end, and waits a little for the first of them.
fn ask(list: &impl Fn() -> Result<Vec<ProcIdentity>, ReapError>) {
    let found = list().unwrap_or_default();
    let handles: Vec<ProcHandle> = found
        .iter()
        .filter(|identity| !is_above_us(identity.pid))
        // Gone or somebody else: nothing to ask.
        .filter_map(|identity| ProcHandle::open(identity).ok())
        .filter(|handle| handle.send(Signal::Term).is_ok())
        .collect();
    if let Some(first) = handles.first() {
        // The kill that follows needs no answer.
        let _ended = first.wait_ended(GRACE);
    }
}

/// Whether `pid` is ours or one of our ancestors, which carry a marker when we were started by an agent.
fn is_above_us(pid: Pid) -> bool {
    let me = Pid::of_self();
    pid == me || !reap::descendants(pid).is_ok_and(|below| below.iter().all(|process| process.pid != me))
}

fn targets(run: Option<&RunId>, leader: Option<&ProcIdentity>) -> Result<Vec<ProcIdentity>, ReapError> {
    let mut found = Vec::new();
    if let Some(leader) = leader.filter(|leader| is_alive(leader)) {
        found.push(leader.clone());
        found.extend(reap::descendants(leader.pid)?);
    }
    if let Some(run) = run {
        for marked in reap::marked(run, None, None)? {
            if !found.iter().any(|f| f.pid == marked.pid) {
                found.push(marked);
            }
        }
    }
    Ok(found)
}

fn identity(spawned: &PeerSpawned) -> Option<ProcIdentity> {
    let pid = Pid::new(i32::try_from(spawned.pid).ok()?)?;
    let boot_id = serde_json::from_value(serde_json::Value::String(spawned.boot_id.clone())).ok();
    Some(ProcIdentity {
        pid,
        start_time: Some(spawned.start_time),
        boot_id,
        pgid: Some(pid),
        session: Some(pid),
    })
}
