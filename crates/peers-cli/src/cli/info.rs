//! `peers info`.

use std::process::ExitCode;

use peers_console::about;
use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_model::command::Step;
use peers_view::{info_json, info_text};

/// Show what is configured; run nothing
///
/// Checks goals and config as `run` does and prints every setting as it is in effect; `(default)` marks
/// what `.peers/config.yaml` does not set.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let (place, mut disk) = cx.view()?;
    let (info, changed) = about::of(cx, &place, &mut disk)?;
    info.shown(|info| {
        if args.json { cx.out.data(&info_json(info)) } else { cx.out.data(&info_text(info, cx.out.colour())) }
    })?;
    if let Some(changed) = changed {
        cx.out.advise(Step::text("note: {}; `peers goals diff` shows it", &[&changed]));
    }
    Ok(ExitCode::SUCCESS)
}
