//! `peers info`.

use std::process::ExitCode;

use peers_model::config::Config;
use peers_run::boot;
use peers_run::procs::{self, Outlook};
use peers_store::load::goal_warnings;
use peers_sys::term;
use peers_view::{Accounting, Confinement, Info, info_json, info_text};

use crate::cx::{self, Cx};
use crate::error::CommandError;

/// Show what is configured; run nothing
///
/// Checks goals and config as `run` does and prints what is in effect.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// What will be known of the use of each peer.
pub(crate) fn accounting(config: &Config) -> Vec<Accounting> {
    let of = |peer| {
        let Outlook { tokens, money, missing, doubts } = procs::outlook(peer);
        Accounting { tokens, money, missing: missing.map(str::to_owned), doubts }
    };
    config.peers.iter().map(of).collect()
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let (place, mut disk) = cx.view()?;
    let loaded = boot::load(&mut disk)?;
    let info = Info {
        target: &term::inline(&place.work_dir().to_string_lossy()),
        config: &loaded.config,
        goals: &loaded.goals,
        warnings: &goal_warnings(&loaded.goals),
        lock: &cx::lock(&place),
        confinement: Confinement::Unconfined,
        accounting: &accounting(&loaded.config),
    };
    if args.json {
        cx.out.data(&info_json(&info))?;
    } else {
        cx.out.data(&info_text(&info, cx.out.colour()))?;
    }
    let changed = loaded.unaccepted();
    if !changed.is_empty() {
        let files = changed.join(" and ");
        cx.out.talk(&format!("note: {files} changed since it was accepted; `peers goals diff` shows it"));
    }
    Ok(ExitCode::SUCCESS)
}
