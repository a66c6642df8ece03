//! `peers replay`.

use std::process::ExitCode;

use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_git::Facts;
use peers_model::{TickNo, exit, limits};
use peers_store::{Area, Disk, FsDisk};
use peers_sys::term;
use peers_view::{Replay, replay_json, replay_text};

/// Longest diff that is printed, in bytes.
const DIFF: usize = 16 * 1024 * 1024;

/// Show one tick: its records, commits and files, and the state before and after it
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The number of the tick
    #[arg(value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    tick: u64,
    /// Print the prompt as it was sent
    #[arg(long, conflicts_with_all = ["diff", "json"])]
    prompt: bool,
    /// Print what changed between the commits before and after the tick
    #[arg(long, conflicts_with = "json")]
    diff: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let (place, mut disk) = cx.view()?;
    let control = cx.control(&place)?;
    let repo = Cx::repo(&place).ok();
    // What was imported cannot be changed by agents, so it is asked first.
    let facts =
        control.as_ref().map(|control| control.facts()).or_else(|| repo.as_ref().map(|repo| repo.facts()));
    let tick = TickNo(args.tick);
    let Some(replay) = peers_view::replay(&mut disk, tick, facts.as_ref())? else {
        let ticks = peers_store::store::read_state(&mut disk)?.ticks;
        return Err(CommandError::new(
            exit::NEGATIVE,
            format!("there is no tick {tick}; the newest is {ticks}"),
        ));
    };
    if args.prompt {
        cx.out.data(&term::block(&prompt(&replay, &mut disk)?))?;
    } else if args.diff {
        cx.out.data(&diff(&replay, facts.as_ref())?)?;
    } else if args.json {
        cx.out.data(&replay_json(&replay))?;
    } else {
        cx.out.page(&replay_text(&replay, cx.out.colour()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn prompt(replay: &Replay, disk: &mut FsDisk) -> Result<String, CommandError> {
    let file = replay.files.iter().find(|file| file.kind == "prompt");
    let path = file.map(|file| file.path.strip_prefix(".peers/").unwrap_or(&file.path).to_owned());
    let bytes = match path {
        Some(path) => disk.read(Area::Peers, &path, limits::PROMPT_SHOWN)?,
        None => None,
    };
    let bytes = bytes.ok_or_else(|| {
        CommandError::new(exit::NEGATIVE, format!("the prompt of tick {} is no longer kept", replay.tick))
            .hint("old logs are removed to keep within the budget of disk space")
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn diff(replay: &Replay, facts: Option<&Facts<'_>>) -> Result<String, CommandError> {
    let (Some(record), Some(facts)) = (replay.record(), facts) else {
        return Err(CommandError::new(exit::NEGATIVE, format!("tick {} has not ended", replay.tick)));
    };
    let (old, new) = (facts.tree_of(&record.head_before)?, facts.tree_of(&record.head_after)?);
    let found = facts.diff_text(&old, &new, |_| true, DIFF)?;
    let mut text = term::block(&found.text).into_owned();
    if found.cut {
        text.push_str("(and more files)\n");
    }
    Ok(text)
}
