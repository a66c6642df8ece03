//! `peers report`.

use std::process::ExitCode;

use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_model::exit;
use peers_store::layout::peers;
use peers_store::{Area, Disk};
use peers_view::{Report, Spelling, report_json, report_markdown};

/// Report what the loop did, as Markdown
///
/// The report goes to standard output and to `.peers/REPORT.md`. Exit codes: 0, or 1 before the first
/// run (then no file is written), or 3 when the journal cannot be read.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Leave `.peers/REPORT.md` as it is
    #[arg(long)]
    no_write: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let (place, mut disk) = cx.view()?;
    let mut asked = cx.asked_with_refusals(&place, &mut disk);
    let report = Report::read(&mut disk, &asked);
    let code = report.view.exit_code();
    let text = report_markdown(&report);
    if args.json {
        cx.out.data(&report_json(&report))?;
    } else {
        cx.out.data(&text)?;
    }
    if code == exit::NEGATIVE {
        cx.out.nothing_ran(&report.view);
    } else if !args.no_write {
        // Whoever reads the file is in the repository.
        let here = Spelling::Loop { dir: None };
        let kept = if asked.spelling == here {
            text
        } else {
            asked.spelling = here;
            report_markdown(&Report::read(&mut disk, &asked))
        };
        place.open_store_disk()?.publish(Area::Peers, peers::REPORT, kept.as_bytes(), false)?;
    }
    Ok(ExitCode::from(code))
}
