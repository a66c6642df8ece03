//! `peers-ctl reconcile`.

use std::process::ExitCode;

use peers_console::error::CommandError;
use peers_fleet::refresh;
use serde_json::json;

use crate::ctl::{Ctl, failed};
use crate::many::{OR_ALL, Which};

/// Update the registry to the actual state of all loops, and print what changed
///
/// `list`, `status`, `dashboard` and others do the same by themselves. Leftover processes of a run
/// that died are ended.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[command(mut_arg("names", |names| names.help(OR_ALL)))]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let config = ctl.config()?;
    let names = ctl.names(&config, &args.which.or_all())?;
    let (all, warnings) =
        refresh::refresh(&config, &ctl.env, |project| names.contains(&project.name)).map_err(failed)?;
    let changes: Vec<_> = all.iter().filter_map(|one| one.change.as_ref()).collect();
    if ctl.json {
        let rows: Vec<_> = changes
            .iter()
            .map(|change| {
                json!({"name": change.name, "from": change.from, "to": change.to.state,
                    "outcome": change.to.outcome, "evidence": change.to.evidence, "swept": change.swept})
            })
            .collect();
        ctl.document("reconcile", &rows, &warnings)?;
        return Ok(ExitCode::SUCCESS);
    }
    for change in &changes {
        ctl.out.page(&format!("{}\n", change.words()))?;
    }
    if changes.is_empty() {
        ctl.say("nothing changed");
    }
    Ok(ExitCode::SUCCESS)
}
