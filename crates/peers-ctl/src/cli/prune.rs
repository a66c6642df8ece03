//! `peers-ctl prune`.

use std::process::ExitCode;
use std::time::Duration;

use peers_console::error::CommandError;
use peers_fleet::prune::{self, Pruned};
use peers_view::bytes;
use serde_json::json;

use super::duration;
use crate::ctl::{Ctl, failed};
use crate::many::{OR_ALL, Which};

/// Remove old logs of projects that do not run, or containers whose run is gone
///
/// Includes logs of projects that are no longer registered. Repositories and their stores are not touched.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[command(mut_arg("names", |names| names.help(OR_ALL)))]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    #[arg(help = lasting!("Logs that were last written before this time"))]
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "7d")]
    older_than: Duration,
    /// Remove containers of your user whose run is gone, of whatever project, in place of logs
    #[arg(long, conflicts_with_all = ["older_than", "names", "all"])]
    containers: bool,
    /// Show what would be removed
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    if args.containers {
        return containers(args, ctl);
    }
    let config = ctl.config()?;
    let asked = args.which.selection();
    let names = if asked.is_empty() { None } else { Some(ctl.names(&config, &asked)?) };
    let (all, warnings) = peers_fleet::refresh::refresh(&config, &ctl.env, |_| true).map_err(failed)?;
    ctl.warn_ended(&warnings);
    let Pruned { logs, skipped } =
        prune::prune(&config, &all, names.as_deref(), args.older_than, args.dry_run).map_err(failed)?;
    if ctl.json {
        let rows: Vec<_> = logs.iter().map(|log| json!({"name": log.name, "bytes": log.bytes})).collect();
        ctl.document(
            "prune",
            &json!({"removed": rows, "skipped": skipped, "dry_run": args.dry_run}),
            &warnings,
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let verb = if args.dry_run { "would remove" } else { "removed" };
    for log in &logs {
        ctl.out.line(&format!("{verb} {} ({})", log.name, bytes(log.bytes)))?;
    }
    for what in &skipped {
        ctl.say(&format!("warning: {what}"));
    }
    if logs.is_empty() {
        ctl.say("nothing to remove");
    }
    Ok(ExitCode::SUCCESS)
}

fn containers(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let found = peers_acts::containers::prune(&ctl.env, args.dry_run).map_err(failed)?;
    if ctl.json {
        let names: Vec<_> = found.iter().map(|stray| stray.name.as_str()).collect();
        ctl.document("prune", &json!({"containers": names, "dry_run": args.dry_run}), &[])?;
        return Ok(ExitCode::SUCCESS);
    }
    let verb = if args.dry_run { "would remove" } else { "removed" };
    for stray in &found {
        ctl.out.line(&format!("{verb} container {}", peers_sys::term::inline(&stray.name)))?;
    }
    if found.is_empty() {
        ctl.say("nothing to remove");
    }
    Ok(ExitCode::SUCCESS)
}
