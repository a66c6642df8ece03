//! `peers tick`.

use std::process::ExitCode;

use super::run::{self, Common};
use crate::cx::Cx;
use crate::error::CommandError;

/// Run the loop for one turn
///
/// The same as `run --max-ticks 1`. Called from inside a turn of the same project it ends at once and says
/// nothing, so that no agent and no hook of it starts a loop within the loop.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    if let Some(project) = cx.env.text("PEERS_IN_TICK")
        && cx.place().is_ok_and(|place| place.id().as_str() == project)
    {
        return Ok(ExitCode::SUCCESS);
    }
    run::start(Some(1), &args.common, cx)
}
