//! `peers deinit`.

use std::process::ExitCode;

use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_model::command::Step;
use peers_setup::DeinitOptions;
use peers_sys::term;

/// Remove what `init` made
///
/// Removes `.peers/`, the ignore line and our entries in the stop hooks of claude and codex. The trusted
/// store stays, so that a later `init` goes on with it; `--purge` removes it too, with every backup,
/// salvage and the cache. What is in git stays either way: branches, the tag `peers-baseline`, notes.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Also remove the trusted store, the cache and the backups
    #[arg(long)]
    purge: bool,
    /// Print what would be removed; remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let Args { purge, dry_run, json } = *args;
    cx.operators_alone_here("deinit")?;
    let options = DeinitOptions { target: cx.target.clone(), purge, dry_run };
    let report = peers_setup::deinit(&options, &cx.env)?;
    for note in &report.notes {
        cx.out.advise(Step::from("note: ").join(note.clone()));
    }
    if json {
        cx.out.json("peers.deinit/1", &report)?;
        return Ok(ExitCode::SUCCESS);
    }
    let did = if dry_run { "Would change" } else { "Changed" };
    cx.out.line(&format!("{did}:"))?;
    for change in &report.changes {
        cx.out.line(&format!("  {} {}", change.action.word(), term::inline(&change.what)))?;
    }
    if dry_run {
        return super::init::would(&report.host, cx).map(|()| ExitCode::SUCCESS);
    }
    super::init::told(&report.host, None, cx)?;
    Ok(ExitCode::SUCCESS)
}
