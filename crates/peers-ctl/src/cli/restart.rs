//! `peers-ctl restart`.

use std::process::ExitCode;
use std::time::Duration;

use peers_console::error::CommandError;
use peers_fleet::start;
use peers_fleet::stop::{self, StopOptions};
use peers_model::RunRequest;

use super::duration;
use super::start::{Asked, BudgetArgs};
use crate::ctl::{Ctl, failed};
use crate::many::{Done, Which, each};

/// Stop loops and start them again with the options of their last start
///
/// Run options given here replace all those of the last start.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    budget: BudgetArgs,
    #[arg(help = lasting!("Time for the running loop to end by itself"))]
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    grace: Duration,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    args.asked.check()?;
    let config = ctl.config()?;
    let names = ctl.names(&config, &args.which.selection())?;
    let stopping = StopOptions { grace: args.grace, now: false, wait: ctl.wait };
    each(ctl, "restart", &names, &[], |name| {
        let known = start::project(&config, name).map_err(failed)?;
        let asked = args.asked.request();
        let request = if asked == RunRequest::default() { known.last_request.clone().again() } else { asked };
        let options = args.budget.options(request, ctl);
        // A loop is not ended for a start that is refused.
        if ctl.cx(&known).place().and_then(|place| Ok(place.holder()?)).is_ok_and(|holder| holder.is_some()) {
            super::start::refuse(ctl, &config, name, &options)?;
        }
        let stopped = stop::stop(&config, name, &ctl.env, &stopping).map_err(failed)?;
        let before = super::stop::told(ctl, name, &stopped);
        let started = super::start::started(ctl, &config, name, &options);
        let Done { text, mut data, code } = started.inspect_err(|_| ctl.say(&before.text))?;
        if let Some(map) = data.as_object_mut() {
            map.insert("stopped".to_owned(), before.data);
        }
        Ok(Done { text: format!("{}\n{text}", before.text), data, code })
    })
}
