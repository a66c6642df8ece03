//! `peers-ctl stop`.

use std::process::ExitCode;
use std::time::Duration;

use peers_console::error::CommandError;
use peers_fleet::ProjectName;
use peers_fleet::stop::{self, StopOptions, Stopped};
use serde_json::json;

use super::duration;
use crate::ctl::{Ctl, failed};
use crate::many::{Done, Which, each};

/// Stop loops
///
/// Sends SIGTERM: the loop ends the running turn, writes its records and exits within eight seconds. One
/// that does not is signalled again, then killed with everything it started. Only a process that is known
/// to hold the lock of the repository is ever signalled. Stopping a loop that does not run is no error.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    #[arg(help = lasting!("Time to end by itself"))]
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    grace: Duration,
    /// Kill the running turn at once; its work is kept
    #[arg(long, conflicts_with = "after_tick")]
    now: bool,
    /// Let the running turn and its gates finish, then stop
    #[arg(long, conflicts_with = "grace")]
    after_tick: bool,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let config = ctl.config()?;
    let names = ctl.names(&config, &args.which.selection())?;
    let options = StopOptions { grace: args.grace, now: args.now, wait: ctl.wait };
    each(ctl, "stop", &names, &[], |name| {
        let stopped = if args.after_tick {
            stop::stop_after_tick(&config, name, &ctl.env, ctl.wait)
        } else {
            stop::stop(&config, name, &ctl.env, &options)
        };
        Ok(told(ctl, name, &stopped.map_err(failed)?))
    })
}

/// What came of a stop.
pub(crate) fn told(ctl: &Ctl, name: &ProjectName, stopped: &Stopped) -> Done {
    let run =
        |id: &Option<peers_model::RunId>| id.as_ref().map(|id| format!(" (run {id})")).unwrap_or_default();
    match stopped {
        Stopped::NotRunning { what, swept } => Done::well(
            format!("{name}: {what}{}", left(swept)),
            json!({"result": "not-running", "detail": what, "swept": swept}),
        ),
        Stopped::Ended { run_id, reason, swept } => {
            let why = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            Done::well(
                format!("stopped {name}{}{why}{}", run(run_id), left(swept)),
                json!({"result": "stopped", "run_id": run_id, "reason": reason, "swept": swept}),
            )
        }
        Stopped::Killed { run_id, swept } => Done::well(
            format!(
                "killed {name}{}, which did not end by itself{}\n  the turn that was open is taken up by the next start",
                run(run_id),
                left(swept)
            ),
            json!({"result": "killed", "run_id": run_id, "swept": swept}),
        ),
        Stopped::AfterTick { run_id } => Done::well(
            ctl.spelt(
                "{} stops after the turn that runs{}; `peers-ctl wait {}` waits for it",
                &[name.as_str(), &run(run_id), name.as_str()],
            ),
            json!({"result": "after-tick", "run_id": run_id}),
        ),
    }
}

/// That processes of a loop outlived it, and are ended.
fn left(swept: &[u32]) -> String {
    match u64::try_from(swept.len()).unwrap_or(u64::MAX) {
        0 => String::new(),
        n => format!("; {} of it ended too", peers_console::output::counted(n, "process")),
    }
}
