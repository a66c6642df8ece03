//! `peers doctor`.

use std::process::ExitCode;

use peers_acts::doctor::{self, Ask};
use peers_console::checkup::{as_json, spelt, text};
use peers_console::cx::Cx;
use peers_console::error::CommandError;

/// Check whether a run can start here and what its peers need; each finding says what fixes it
///
/// Checks the set-up, the repository, `git`, the disk, locks, leftovers of a killed run, the clock, and
/// each peer's program, version, login and arguments. Whatever would make `peers run` refuse is reported
/// in the same words. Nothing is changed, and nothing is spent without `--live`. Programs that only an
/// unaccepted `config.yaml` names are checked and not started.
///
/// Exit codes: 0 when there is no error, else that of the first one: 3 invalid, 4 conflict, 5 refused,
/// 6 the environment lacks something, 13 a peer did not answer.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Ask each peer for one word, in an empty repository, within 120 s; costs as much as a short turn
    #[arg(long)]
    live: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let place = cx.place()?;
    if args.live {
        cx.operators_alone(&place, "doctor --live")?;
        cx.out.talk("each peer is asked for one word, which costs what a short turn costs");
    }
    let ask = if args.live { Ask::EachPeer } else { Ask::Nobody };
    let report = spelt(doctor::examine(&place, &cx.env, ask)?, cx.out.spelling());
    if args.json {
        cx.out.json("peers.doctor/1", &as_json(&report))?;
    } else {
        cx.out.data(&text(&report))?;
    }
    Ok(ExitCode::from(report.exit_code()))
}
