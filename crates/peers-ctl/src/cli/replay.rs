//! `peers-ctl replay`.

use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_fleet::Project;
use peers_model::outcome::CLASSIFICATIONS;
use peers_model::{PeerName, TickNo, exit, limits};
use peers_store::layout::peers;
use peers_store::{Area, Disk as _, FsDisk, artifacts};
use peers_sys::clock;
use peers_view::{RangeAsked, RangeTick, replay_range, replay_range_json, replay_range_text};

use crate::absent;
use crate::ctl::{Ctl, failed};
use crate::many::{self, Which};

/// Longest diff of a tick that is printed, bytes.
const DIFF: usize = 512 * 1024;

/// Show the ticks of a loop one after the other
///
/// `peers -C DIR replay N` shows one of them in full. Exit code 1 where there is none.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// From this tick on
    #[arg(long, value_name = "N")]
    from_tick: Option<u64>,
    /// Up to this tick
    #[arg(long, value_name = "M")]
    to_tick: Option<u64>,
    /// Only those of this peer
    #[arg(long, value_name = "PEER")]
    peer: Option<PeerName>,
    /// Only those whose process ended so
    #[arg(long, value_name = "CLASS", value_parser = PossibleValuesParser::new(CLASSIFICATIONS))]
    class: Option<String>,
    /// Only those that failed
    #[arg(long)]
    failed: bool,
    /// Also print the prompts as they were sent
    #[arg(long, conflicts_with = "json")]
    show_prompts: bool,
    /// Also print what each changed
    #[arg(long, conflicts_with = "json")]
    show_diffs: bool,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    if let (Some(from), Some(to)) = (args.from_tick, args.to_tick)
        && from > to
    {
        return Err(CommandError::usage(format!(
            "no tick lies between: --from-tick {from} is after --to-tick {to}"
        ))
        .hint("give the earlier one to --from-tick"));
    }
    many::only(ctl, "replay", &args.which, |project| shown(args, ctl, project))
}

/// Shows the ticks of one project.
fn shown(args: &Args, ctl: &Ctl, project: &Project) -> Result<ExitCode, CommandError> {
    peers_fleet::start::located(project, &ctl.env).map_err(failed)?;
    let cx = ctl.cx(project);
    let (place, mut disk) = cx.view()?;
    let asked = RangeAsked {
        from: args.from_tick.map(TickNo),
        to: args.to_tick.map(TickNo),
        peer: args.peer.clone(),
        class: args.class.clone(),
        failed: args.failed,
    };
    let range = replay_range(&mut disk, &asked).map_err(|error| CommandError::of(exit::INVALID, &error))?;
    if ctl.json {
        ctl.out.data(&replay_range_json(&range, clock::now()))?;
    } else {
        let control = cx.control(&place)?;
        let repo = Cx::repo(&place).ok();
        // What was imported cannot be changed by agents, so it is asked first.
        let facts = control.as_ref().map(|c| c.facts()).or_else(|| repo.as_ref().map(|repo| repo.facts()));
        let text = replay_range_text(&range, ctl.out.colour(), |tick| {
            let mut more = String::new();
            if args.show_prompts {
                more.push_str(&prompt(&mut disk, tick));
            }
            if args.show_diffs {
                more.push_str(&diff(facts.as_ref(), tick));
            }
            Some(more)
        });
        ctl.out.data(&text)?;
    }
    if range.shown().next().is_none() {
        let unknown = match &args.peer {
            Some(peer) => absent::no_peer(&mut disk, peer)?,
            None => None,
        };
        ctl.say(&match (unknown, range.ticks) {
            (Some(why), _) => why,
            (None, 0) => "no turn has ended yet".to_owned(),
            (None, _) => "no tick is so".to_owned(),
        });
    }
    Ok(ExitCode::from(if range.shown().next().is_none() { exit::NEGATIVE } else { exit::OK }))
}

fn prompt(disk: &mut FsDisk, tick: &RangeTick) -> String {
    let name = artifacts::tick_file(tick.row.tick, tick.row.peer.as_str(), ".txt");
    let path = format!("{}/{name}", peers::LOG_PROMPTS);
    match disk.read(Area::Peers, &path, limits::PROMPT_SHOWN) {
        Ok(Some(bytes)) => format!("prompt:\n{}\n", String::from_utf8_lossy(&bytes)),
        Ok(None) => "prompt: no longer kept\n".to_owned(),
        Err(error) => format!("prompt: it cannot be read: {error}\n"),
    }
}

fn diff(facts: Option<&peers_git::Facts<'_>>, tick: &RangeTick) -> String {
    let Some(facts) = facts else { return "diff: the repository cannot be read\n".to_owned() };
    let found = facts.tree_of(&tick.row.head_before).and_then(|old| {
        let new = facts.tree_of(&tick.row.head_after)?;
        facts.diff_text(&old, &new, |_| true, DIFF)
    });
    match found {
        Ok(found) if found.text.is_empty() => "diff: nothing\n".to_owned(),
        Ok(found) => format!("diff:\n{}{}", found.text, if found.cut { "\n(and more)\n" } else { "\n" }),
        Err(error) => format!("diff: {error}\n"),
    }
}
