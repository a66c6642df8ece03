//! `peers-ctl review`.

use std::process::ExitCode;

use peers_console::error::CommandError;
use peers_fleet::Project;
use peers_model::{PeerName, exit};
use peers_sys::clock;
use peers_view::{HandoffsAsked, handoffs, handoffs_json, handoffs_text};

use crate::absent;
use crate::ctl::{Ctl, failed};
use crate::many::{self, Which};

/// Show the newest handoff, and what the other peers said about it
///
/// Its author is taken from the record of its turn, not from what it says about itself. Exit code 1 if
/// there is none yet.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Only of this peer
    #[arg(long, value_name = "PEER")]
    peer: Option<PeerName>,
    /// Show the N newest
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    newest: u32,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    many::only(ctl, "review", &args.which, |project| shown(args, ctl, project))
}

/// Shows the handoffs of one project.
fn shown(args: &Args, ctl: &Ctl, project: &Project) -> Result<ExitCode, CommandError> {
    peers_fleet::start::located(project, &ctl.env).map_err(failed)?;
    let cx = ctl.cx(project);
    let (place, mut disk) = cx.view()?;
    let control = cx.control(&place)?;
    let facts = control.as_ref().map(|control| control.facts());
    let newest = usize::try_from(args.newest).unwrap_or(1);
    let asked = HandoffsAsked { peer: args.peer.clone(), newest };
    let found = handoffs(&mut disk, &asked, facts.as_ref())
        .map_err(|error| CommandError::of(exit::INVALID, &error))?;
    let now = clock::now();
    if ctl.json {
        ctl.out.data(&handoffs_json(&found, now))?;
    } else {
        ctl.out.page(&handoffs_text(&found, now, ctl.out.colour()))?;
    }
    if found.is_empty() {
        ctl.say(&match &args.peer {
            Some(peer) => absent::no_peer(&mut disk, peer)?
                .unwrap_or_else(|| format!("{peer} has handed nothing over yet")),
            None => "no turn has ended yet".to_owned(),
        });
    }
    Ok(ExitCode::from(if found.is_empty() { exit::NEGATIVE } else { exit::OK }))
}
