//! `peers-ctl peek`.

use std::collections::VecDeque;
use std::process::ExitCode;
use std::time::Duration;

use peers_console::error::CommandError;
use peers_console::peek::{Turn, words, worked_in};
use peers_fleet::Project;
use peers_model::command::Step;
use peers_model::exit;
use peers_sys::interrupts::Interrupts;
use peers_sys::{clock, term};
use peers_tools::ToolEvent;
use peers_view::Lock;
use serde_json::{Value, json};

use crate::absent;
use crate::ctl::{Ctl, failed};
use crate::many::{self, Which};

/// How often the output is looked at.
const LOOK: Duration = Duration::from_millis(500);
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
    let worked = worked_in(&mut disk, &place, &ctl.env)?;
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
    if !turn.has_spoken() && args.no_follow {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(open: bool) -> Turn {
        let tick = peers_model::TickNo(3);
        let mut turn = Turn::of(tick, peers_model::PeerName::new("ann").unwrap(), "claude");
        turn.open = open;
        turn
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
