//! `peers-ctl remove`.

use std::process::ExitCode;

use peers_console::error::CommandError;
use serde_json::json;

use crate::ctl::{Ctl, failed};
use crate::many::{Done, Which, each};

/// Take projects out of the registry
///
/// The repository, its `.peers/` and its trusted store are not touched; `peers-ctl add` registers it again.
/// Refused for a project whose loop runs, or may run.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Even if its loop runs or may run; the loop continues
    #[arg(long)]
    force: bool,
    /// Remove its logs too
    #[arg(long)]
    purge_logs: bool,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let config = ctl.config()?;
    let names = ctl.names(&config, &args.which.selection())?;
    each(ctl, "remove", &names, &[], |name| {
        let removed =
            peers_fleet::roster::remove(&config, &ctl.env, name, args.force, args.purge_logs, ctl.wait);
        let project = removed.map_err(failed)?;
        let path = peers_sys::term::inline(&project.path);
        let what = if peers_place::is_gone(std::path::Path::new(&project.path)) {
            format!("its directory {path} is missing, its history stays in the trusted store")
        } else {
            format!("its repository stays in {path}, its history in the trusted store")
        };
        Ok(Done::well(format!("removed {name}; {what}"), json!({"path": project.path})))
    })
}
