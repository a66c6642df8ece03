//! What the agent of a turn says, decoded as the loop does it. Its words, not facts.

use peers_model::{PeerName, RunId, TickNo};
use peers_place::Place;
use peers_store::layout::peers;
use peers_store::{Area, Disk as _, FsDisk, artifacts, store};
use peers_tools::{Decoder, Stream, ToolEvent, ToolKind, adapter};
use serde_json::{Value, json};

use crate::error::CommandError;

/// So much of it is read at once, bytes.
const PIECE: u64 = 1024 * 1024;
/// Of what is there already only so much before its end is read, bytes.
const BEFORE_END: u64 = 8 * PIECE;

/// A turn whose output is read.
#[derive(Debug)]
pub struct Turn {
    /// Which.
    pub tick: TickNo,
    /// Whose.
    pub peer: PeerName,
    /// The run that it belongs to.
    pub run: Option<RunId>,
    /// It has not ended.
    pub open: bool,
    path: String,
    /// Where the next piece begins; absent before the first.
    offset: Option<u64>,
    /// What was read last did not begin with a line: it is left out up to the next one.
    cut: bool,
    tool: ToolKind,
    decoder: Box<dyn Decoder>,
}

impl Turn {
    /// The turn that is open, or the newest, or the one that is asked for.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn find(disk: &mut FsDisk, wanted: Option<u64>) -> Result<Option<Self>, CommandError> {
        let state = store::read_state(disk)?;
        let open = state.open.as_ref().map(|open| (open.started.tick, open.started.peer.clone()));
        let newest = state.run.as_ref().map(|run| run.id.clone());
        let (tick, peer, run, is_open) = match (wanted.map(TickNo), open) {
            (Some(tick), Some((at, peer))) if at == tick => (tick, peer, newest, true),
            (None, Some((tick, peer))) => (tick, peer, newest, true),
            (wanted, _) => {
                let tick = wanted.unwrap_or(state.ticks);
                let replay = peers_view::replay(disk, tick, None)?;
                let Some((run, record)) =
                    replay.as_ref().and_then(|replay| Some((replay.run(), replay.record()?)))
                else {
                    return Ok(None);
                };
                (tick, record.peer.clone(), run.cloned(), false)
            }
        };
        let tool =
            state.rules.peers.iter().find(|rule| rule.name == peer).map_or("", |rule| rule.tool.as_str());
        Ok(Some(Self { run, open: is_open, ..Self::of(tick, peer, tool) }))
    }

    /// A turn of a peer that has this tool, of which nothing is read yet.
    #[must_use]
    pub fn of(tick: TickNo, peer: PeerName, tool: &str) -> Self {
        let tool = ToolKind::from_name(tool);
        let name = artifacts::tick_file(tick, peer.as_str(), ".stream.jsonl");
        Self {
            tick,
            path: format!("{}/{name}", peers::LOG_PEERS),
            decoder: adapter(&tool).decoder(),
            tool,
            peer,
            run: None,
            open: false,
            offset: None,
            cut: false,
        }
    }

    /// Which turn, and how it stands; `runs`: a loop is at work.
    #[must_use]
    pub fn headline(&self, runs: bool) -> String {
        let now = match (self.open, runs) {
            (true, true) => "runs",
            (true, false) => "was cut off when its run died",
            (false, _) => "is over",
        };
        format!("tick {} of {}, which {now}; what follows is what the agent says", self.tick, self.peer)
    }

    /// Whether something of its output was read.
    #[must_use]
    pub fn has_spoken(&self) -> bool {
        self.offset.is_some_and(|offset| offset > 0)
    }

    /// What the next piece of its output says; `None` where there is no more for now.
    ///
    /// # Errors
    /// Its output cannot be read.
    pub fn poll(&mut self, disk: &mut FsDisk) -> Result<Option<Vec<ToolEvent>>, CommandError> {
        let len = disk.len(Area::Peers, &self.path)?.unwrap_or_default();
        let begin = len.saturating_sub(BEFORE_END);
        let offset = self.offset.unwrap_or(begin);
        // Where a line begins is known of the start alone.
        self.cut |= self.offset.is_none() && begin > 0;
        let size = len.saturating_sub(offset).min(PIECE);
        let bytes = if size > 0 { disk.read_at(Area::Peers, &self.path, offset, size)? } else { Vec::new() };
        if bytes.is_empty() {
            return Ok(None);
        }
        self.offset = Some(offset + u64::try_from(bytes.len()).unwrap_or_default());
        let mut events = Vec::new();
        let whole = match (self.cut, bytes.iter().position(|byte| *byte == b'\n')) {
            (false, _) => bytes.as_slice(),
            (true, Some(end)) => bytes.get(end + 1..).unwrap_or_default(),
            (true, None) => return Ok(Some(events)),
        };
        self.cut = false;
        self.decoder.feed(Stream::Stdout, whole, &mut events);
        Ok(Some(events))
    }

    /// Whether less of it is there than was read. Then it is read from its start again.
    ///
    /// # Errors
    /// Its output cannot be looked at.
    pub fn shrank(&mut self, disk: &mut FsDisk) -> Result<bool, CommandError> {
        let len = disk.len(Area::Peers, &self.path)?.unwrap_or_default();
        if self.offset.is_none_or(|offset| offset <= len) {
            return Ok(false);
        }
        (self.offset, self.cut) = (Some(0), false);
        self.decoder = adapter(&self.tool).decoder();
        Ok(true)
    }
}

/// Where the newest run works, if that is elsewhere.
///
/// # Errors
/// Run records cannot be read, or what lies there is not a worktree of this project.
pub fn worked_in(
    disk: &mut FsDisk,
    place: &Place,
    env: &peers_sys::env::Env,
) -> Result<Option<Place>, CommandError> {
    let record = peers_store::runs::newest(disk, None)?;
    let dir = record.map(|record| std::path::PathBuf::from(record.workdir));
    match dir.filter(|dir| dir != place.work_dir() && !peers_place::is_gone(dir)) {
        // Agents write there: it must be a worktree of this very project.
        Some(dir) => Ok(Some(Place::locate(&dir, env)?.expect(Some(place.id()))?)),
        None => Ok(None),
    }
}

/// Kind, text, and what else there is of it for programs; nothing for what needs no words.
#[must_use]
pub fn words(event: &ToolEvent) -> Option<(&'static str, String, Value)> {
    Some(match event {
        ToolEvent::Text(text) => ("text", text.clone(), Value::Null),
        ToolEvent::ToolBegun { name, id } => ("tool", name.clone(), json!({"tool": name, "id": id})),
        ToolEvent::ToolEnded { id, is_error } => {
            let text = if *is_error { "failed" } else { "done" };
            ("result", text.to_owned(), json!({"id": id, "ok": !is_error}))
        }
        ToolEvent::Usage(delta) => {
            let usd = delta.usd.map(|usd| format!(", {usd}")).unwrap_or_default();
            let text = format!("{} tokens{usd}", peers_view::thousands(delta.total.0));
            ("usage", text, json!({"tokens": delta.total, "usd": delta.usd}))
        }
        ToolEvent::RetryNotice(retry) => {
            let text =
                format!("attempt {} of {}: {} {}", retry.attempt, retry.of, retry.kind.as_str(), retry.text);
            ("retry", text, json!({"failure": retry.kind.as_str()}))
        }
        ToolEvent::Failure(failure) => {
            ("error", failure.text.clone(), json!({"failure": failure.kind.as_str()}))
        }
        ToolEvent::Final { ok, text } => ("final", text.clone(), json!({"ok": ok})),
        ToolEvent::Activity | ToolEvent::EmptyStep { .. } | ToolEvent::PlanWindow { .. } => return None,
    })
}
