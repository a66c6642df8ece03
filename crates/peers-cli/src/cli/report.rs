//! `peers report`.

use std::process::ExitCode;

use peers_checks::{Asked, CheckCx, read_ledger};
use peers_model::exit;
use peers_run::place::Place;
use peers_store::layout::peers;
use peers_store::{Area, Disk, FsDisk};
use peers_view::{Report, Sourced, report_json, report_markdown};

use crate::cx::Cx;
use crate::error::CommandError;

/// Tell what the loop did, as Markdown
///
/// The report goes to standard output and to `.peers/REPORT.md`.
#[derive(Debug, clap::Args)]
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
    let mut asked = Cx::asked(&place);
    if let Sourced::Fresh(facts) = &mut asked.git {
        facts.bugs = match ledger(&place, &mut disk, cx) {
            Ok(ledger) => Sourced::Fresh(ledger),
            Err(why) => Sourced::Unreadable(why),
        };
    }
    let report = Report::read(&mut disk, &asked);
    let code = report.view.exit_code();
    let text = report_markdown(&report);
    if args.json {
        cx.out.data(&report_json(&report))?;
    } else {
        cx.out.data(&text)?;
    }
    if code == exit::NEGATIVE {
        cx.out.talk("hint: nothing ran yet; `peers run` starts the loop");
    } else if !args.no_write {
        place.open_store_disk()?.publish(Area::Peers, peers::REPORT, text.as_bytes(), false)?;
    }
    Ok(ExitCode::from(code))
}

fn ledger(place: &Place, disk: &mut FsDisk, cx: &Cx) -> Result<peers_core::bugs::Ledger, String> {
    let control = cx.control(place).map_err(|error| error.render().trim_end().to_owned())?;
    let asked = Asked { repo: place.work_dir(), control, head: None, base: None };
    let opened = CheckCx::open(asked, Some(disk)).map_err(|why| why.to_string())?;
    read_ledger(&opened).map(|reading| reading.ledger).map_err(|why| why.to_string())
}
