//! `peers status`.

use std::process::ExitCode;

use peers_console::cx::{self, Cx};
use peers_console::error::CommandError;
use peers_model::exit;
use peers_view::{LoopView, status_json, status_text};

/// Show where the loop stands
///
/// Reads the trusted store and writes nothing. Exit codes: 0, or 1 before the first run, or 3 when the
/// journal cannot be read.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let (place, mut disk) = cx.view()?;
    let asked = cx.asked_with_refusals(&place, &mut disk);
    let view = LoopView::settled(&mut disk, &asked, || cx::lock(&place));
    if args.json {
        cx.out.data(&status_json(&view))?;
    } else {
        cx.out.page(&status_text(&view, cx.out.colour()))?;
    }
    let code = view.exit_code();
    if code == exit::NEGATIVE {
        cx.out.nothing_ran(&view);
    }
    Ok(ExitCode::from(code))
}
