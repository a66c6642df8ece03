//! `peers-ctl tail`.

use std::process::ExitCode;
use std::time::Duration;

use peers_console::error::CommandError;
use peers_fleet::runlog::Follow;
use peers_fleet::{ConfigDir, ProjectName};
use peers_model::RunId;
use peers_sys::term;
use serde_json::json;

use crate::ctl::{Ctl, failed};
use crate::many::Which;

/// How often a log is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Follow the output of loops
///
/// Prints the last lines of their logs, then every new line until Ctrl-C. With --json, one object per line.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Begin N lines before the end
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    lines: u32,
    /// Follow the records of their journals instead, as `peers-ctl events` prints them
    #[arg(long)]
    events: bool,
    /// Print what exists and exit
    #[arg(long)]
    once: bool,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let config = ctl.config()?;
    let names = ctl.names(&config, &args.which.selection())?;
    if args.events {
        let lines = usize::try_from(args.lines).unwrap_or(usize::MAX);
        return super::events::stream(ctl, config, args.which.selection(), lines, !args.once);
    }
    tail(ctl, &config, &names, usize::try_from(args.lines).unwrap_or(usize::MAX), args.once)
}

/// Follows a run from its beginning to its end, and ends with its exit code.
pub(crate) fn follow(
    ctl: &Ctl,
    config: &ConfigDir,
    name: &ProjectName,
    run: &RunId,
) -> Result<ExitCode, CommandError> {
    let logs = config.logs().map_err(failed)?;
    let project = peers_fleet::start::project(config, name).map_err(failed)?;
    let mut log = Follow::of_run(&logs, &project.log_name(), run.clone()).map_err(failed)?;
    let names = [name.clone()];
    loop {
        let (seen, _) = ctl.seen_of(config, &names)?;
        // What it wrote last is there before it is seen to have ended.
        let runs = seen
            .first()
            .is_some_and(|one| one.project.runtime.as_ref().is_some_and(|runtime| runtime.run_id == *run));
        for line in log.poll(&logs).map_err(failed)? {
            ctl.out.stream(format!("{}\n", term::block(&line)).as_bytes())?;
        }
        if !runs {
            return super::wait::stopped(ctl, config, &names, None);
        }
        std::thread::sleep(LOOK);
    }
}

fn tail(
    ctl: &Ctl,
    config: &ConfigDir,
    names: &[ProjectName],
    lines: usize,
    once: bool,
) -> Result<ExitCode, CommandError> {
    let logs = config.logs().map_err(failed)?;
    let mut all: Vec<(&ProjectName, Follow)> = Vec::new();
    for name in names {
        let project = peers_fleet::start::project(config, name).map_err(failed)?;
        all.push((name, Follow::new(&logs, &project.log_name(), lines).map_err(failed)?));
    }
    loop {
        for (name, log) in &mut all {
            for line in log.poll(&logs).map_err(failed)? {
                let shown = term::block(&line);
                let text = if ctl.json {
                    let line = json!({"schema": "peers-ctl.tail/1", "project": name, "line": shown});
                    peers_view::terminal_safe(&format!("{line}\n"))
                } else if names.len() > 1 {
                    format!("{name}: {shown}\n")
                } else {
                    format!("{shown}\n")
                };
                ctl.out.stream(text.as_bytes())?;
            }
        }
        if once {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(LOOK);
    }
}
