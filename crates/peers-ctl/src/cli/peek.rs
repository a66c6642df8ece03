//! `peers-ctl peek`.

use std::collections::VecDeque;
use std::process::ExitCode;
use std::time::Duration;

use peers_console::error::CommandError;
use peers_fleet::Project;
use peers_model::command::Step;
use peers_model::{PeerName, RunId, TickNo, exit};
use peers_place::Place;
use peers_store::layout::peers;
use peers_store::{Area, Disk as _, FsDisk, artifacts, store};
use peers_sys::interrupts::Interrupts;
use peers_sys::{clock, term};
use peers_tools::{Decoder, Stream, ToolEvent, ToolKind, adapter};
use peers_view::Lock;
use serde_json::{Value, json};

use crate::absent;
use crate::ctl::{Ctl, failed};
use crate::many::{self, Which};

/// How often the output is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// So much of it is read at once, bytes.
const PIECE: u64 = 1024 * 1024;
/// Of what is there already only so much before its end is read, bytes.
const BEFORE_END: u64 = 8 * PIECE;
/// Characters of a text that are shown.
const TEXT: usize = 200;

/// Watch what the agent of the running turn says and does
///
/// Decodes its output as the loop does: what it writes, which tools it uses, what it spends. Ends with the
/// run, or by Ctrl-C; if no loop runs, it shows the newest turn. These are the agent's words, not facts.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Show this tick
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    tick: Option<u64>,
    /// Begin N events before the end
    #[arg(long, value_name = "N", default_value_t = 50)]
    last: usize,
    /// Print what exists and exit
    #[arg(long)]
    no_follow: bool,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    many::only(ctl, "peek", &args.which, |project| shown(args, ctl, project))
}

/// Shows the turn of one project.
fn shown(args: &Args, ctl: &Ctl, project: &Project) -> Result<ExitCode, CommandError> {
    let name = &project.name;
    let place = peers_fleet::start::located(project, &ctl.env).map_err(failed)?;
    let mut disk = ctl.cx(project).view()?.1;
    let worked = worked_in(&mut disk, &place, ctl)?;
    disk = worked.as_ref().unwrap_or(&place).open_view_disk()?;
    let runs = || peers_console::cx::lock(&place) != Lock::Free;
    let interrupts = Interrupts::take()?;
    let Some(mut turn) = Turn::find(&mut disk, args.tick)? else {
        return Err(match args.tick {
            Some(tick) => absent::no_tick(name, tick),
            None => CommandError::new(exit::NEGATIVE, format!("{name} has no turn to peek at"))
                .hint(Step::text("`peers-ctl status {}` says where it stands", &[name.as_str()])),
        });
    };
    ctl.say(&turn.headline(runs()));
    // Only what is asked for is kept: a turn may have printed any amount.
    let mut last = VecDeque::new();
    while let Some(events) = turn.poll(&mut disk)? {
        last.extend(events);
        last.drain(..last.len().saturating_sub(args.last));
        if let Some(signal) = interrupts.wait(Duration::ZERO) {
            return Ok(ExitCode::from(exit::signalled(signal)));
        }
    }
    for event in &last {
        tell(ctl, &turn, event)?;
    }
    if turn.offset.is_none_or(|offset| offset == 0) && args.no_follow {
        ctl.say("it has printed nothing yet, or `observability.tee_stream` is off");
    }
    if args.no_follow {
        return Ok(ExitCode::SUCCESS);
    }
    loop {
        // What came before the run ended is there when it has.
        let over = !runs();
        if turn.shrank(&mut disk)? {
            ctl.say(&format!(
                "the output of tick {} is shorter than it was: it is read from its start again",
                turn.tick
            ));
        }
        while let Some(events) = turn.poll(&mut disk)? {
            for event in &events {
                tell(ctl, &turn, event)?;
            }
            if let Some(signal) = interrupts.wait(Duration::ZERO) {
                return Ok(ExitCode::from(exit::signalled(signal)));
            }
        }
        if args.tick.is_none()
            && let Some(next) = Turn::find(&mut disk, None)?
            && next.tick != turn.tick
        {
            turn = next;
            ctl.say(&turn.headline(!over));
            continue;
        }
        if over {
            ctl.say(&format!("no loop of {name} runs, so nothing follows"));
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(signal) = interrupts.wait(LOOK) {
            return Ok(ExitCode::from(exit::signalled(signal)));
        }
    }
}

/// Where the newest run works, if that is elsewhere.
fn worked_in(disk: &mut FsDisk, place: &Place, ctl: &Ctl) -> Result<Option<Place>, CommandError> {
    let record = peers_store::runs::newest(disk, None)?;
    let dir = record.map(|record| std::path::PathBuf::from(record.workdir));
    match dir.filter(|dir| dir != place.work_dir() && !peers_place::is_gone(dir)) {
        // Agents write there: it must be a worktree of this very project.
        Some(dir) => Ok(Some(Place::locate(&dir, &ctl.env)?.expect(Some(place.id()))?)),
        None => Ok(None),
    }
}

/// A turn whose output is read.
#[derive(Debug)]
struct Turn {
    tick: TickNo,
    peer: PeerName,
    run: Option<RunId>,
    open: bool,
    path: String,
    /// Where the next piece begins; absent before the first.
    offset: Option<u64>,
    /// What was read last did not begin with a line: it is left out up to the next one.
    cut: bool,
    tool: ToolKind,
    decoder: Box<dyn Decoder>,
}

impl Turn {
    fn find(disk: &mut FsDisk, wanted: Option<u64>) -> Result<Option<Self>, CommandError> {
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
        let tool = ToolKind::from_name(tool);
        let name = artifacts::tick_file(tick, peer.as_str(), ".stream.jsonl");
        Ok(Some(Self {
            tick,
            path: format!("{}/{name}", peers::LOG_PEERS),
            decoder: adapter(&tool).decoder(),
            tool,
            peer,
            run,
            open: is_open,
            offset: None,
            cut: false,
        }))
    }

    fn headline(&self, runs: bool) -> String {
        let now = match (self.open, runs) {
            (true, true) => "runs",
            (true, false) => "was cut off when its run died",
            (false, _) => "is over",
        };
        format!("tick {} of {}, which {now}; what follows is what the agent says", self.tick, self.peer)
    }

    /// What the next piece of its output says; `None` where there is no more for now.
    fn poll(&mut self, disk: &mut FsDisk) -> Result<Option<Vec<ToolEvent>>, CommandError> {
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
    fn shrank(&mut self, disk: &mut FsDisk) -> Result<bool, CommandError> {
        let len = disk.len(Area::Peers, &self.path)?.unwrap_or_default();
        if self.offset.is_none_or(|offset| offset <= len) {
            return Ok(false);
        }
        (self.offset, self.cut) = (Some(0), false);
        self.decoder = adapter(&self.tool).decoder();
        Ok(true)
    }
}

fn tell(ctl: &Ctl, turn: &Turn, event: &ToolEvent) -> Result<(), CommandError> {
    match line(turn, event, ctl.json) {
        Some(line) => ctl.out.stream(line.as_bytes()),
        None => Ok(()),
    }
}

/// An event as a line, in which nothing that an agent says steers a terminal.
fn line(turn: &Turn, event: &ToolEvent, as_json: bool) -> Option<String> {
    let (kind, text, more) = words(event)?;
    let text = term::line(&text, TEXT);
    Some(if as_json {
        let mut line = json!({"schema": "peers-ctl.peek/1", "ts": clock::now(), "run_id": turn.run, "tick": turn.tick,
            "peer": turn.peer, "kind": kind, "text": text});
        if let (Some(line), Value::Object(more)) = (line.as_object_mut(), more) {
            line.extend(more);
        }
        peers_view::terminal_safe(&format!("{line}\n"))
    } else {
        format!("{} {kind:<6} {text}\n", turn.peer)
    })
}

/// Kind, text, and what else there is of it for programs; nothing for what needs no words.
fn words(event: &ToolEvent) -> Option<(&'static str, String, Value)> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(open: bool) -> Turn {
        Turn {
            tick: TickNo(3),
            peer: PeerName::new("ann").unwrap(),
            run: None,
            open,
            path: String::new(),
            offset: None,
            cut: false,
            tool: ToolKind::from_name("claude"),
            decoder: adapter(&ToolKind::from_name("claude")).decoder(),
        }
    }

    #[test]
    fn nothing_that_an_agent_says_steers_a_terminal() {
        let evil = "a\u{1b}[2J\u{9b}31m\rb\nc\u{202e}d\u{200b}\u{7}";
        let events = [
            ToolEvent::Text(evil.to_owned()),
            ToolEvent::ToolBegun { name: evil.to_owned(), id: evil.to_owned() },
            ToolEvent::ToolEnded { id: evil.to_owned(), is_error: true },
            ToolEvent::Final { ok: true, text: evil.to_owned() },
        ];
        let odd = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{200b}' | '\u{202e}');
        for event in &events {
            for as_json in [false, true] {
                let line = line(&turn(true), event, as_json).unwrap();
                assert_eq!(line.find(odd), None, "{line:?}");
                assert_eq!(line.matches('\n').count(), 1, "{line:?}");
            }
        }
        assert_eq!(line(&turn(true), &events[0], false).unwrap(), "ann text   a b cd\n");
    }

    #[test]
    fn a_turn_whose_run_died_does_not_run() {
        let says = |open, runs| turn(open).headline(runs).split(';').next().unwrap_or_default().to_owned();
        assert_eq!(says(true, true), "tick 3 of ann, which runs");
        assert_eq!(says(true, false), "tick 3 of ann, which was cut off when its run died");
        assert_eq!(says(false, true), "tick 3 of ann, which is over");
    }
}
