//! `peers-ctl restart`.

use std::process::ExitCode;
use std::time::Duration;

use peers_console::error::CommandError;
use peers_fleet::start::{self, StartOptions};
use peers_fleet::stop::{self, StopOptions};
use peers_model::Timestamp;

use super::duration;
use super::start::{BudgetArgs, RunArgs};
use crate::ctl::{Ctl, failed};
use crate::many::{Done, Which, each};

/// Stop loops and start them again, as they were started last
///
/// Arguments for the run given here are taken instead of all those of the last start.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    budget: BudgetArgs,
    #[arg(help = lasting!("Give the running loop so much time to end by itself"))]
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    grace: Duration,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let config = ctl.config()?;
    let names = ctl.names(&config, &args.which.selection())?;
    let stopping = StopOptions { grace: args.grace, now: false, wait: ctl.wait };
    each(ctl, "restart", &names, &[], |name| {
        let known = start::project(&config, name).map_err(failed)?;
        let asked = args.budget.options(&args.run, ctl);
        let options = if args.run.is_empty() { as_last(&known.last_argv, asked)? } else { asked };
        // A loop is not ended for a start that is refused.
        if ctl.cx(&known).place().and_then(|place| Ok(place.holder()?)).is_ok_and(|holder| holder.is_some()) {
            super::start::refuse(ctl, &config, name, &options)?;
        }
        let stopped = stop::stop(&config, name, &ctl.env, &stopping).map_err(failed)?;
        let before = super::stop::told(name, &stopped);
        let started = super::start::started(ctl, &config, name, &options);
        let Done { text, mut data, code } = started.inspect_err(|_| ctl.say(&before.text))?;
        if let Some(map) = data.as_object_mut() {
            map.insert("stopped".to_owned(), before.data);
        }
        Ok(Done { text: format!("{}\n{text}", before.text), data, code })
    })
}

/// The options with the arguments of the last start. A branch or worktree that it made is there by now.
pub(crate) fn as_last(last: &[String], asked: StartOptions) -> Result<StartOptions, CommandError> {
    let argv: Vec<String> = last
        .iter()
        .skip(1)
        .filter(|word| !["--branch", "--worktree", start::SINCE].iter().any(|known| word.starts_with(known)))
        .cloned()
        .collect();
    let given = argv.iter().find_map(|word| word.strip_prefix("--max-usd="));
    let max_usd = match given {
        Some(text) => Some(super::start::dollars(text).map_err(CommandError::usage)?),
        None => asked.max_usd,
    };
    // It was said then: what the operator has set since holds over it. A registry of before this was kept says
    // nothing, and what was set by hand is then the later word.
    let since = last.iter().find_map(|word| word.strip_prefix(start::SINCE));
    let since = since.and_then(|text| Timestamp::parse(text).ok()).unwrap_or_default();
    let max_usd_since = given.map(|_| since);
    Ok(StartOptions { argv, max_usd, max_usd_since, ..asked })
}
