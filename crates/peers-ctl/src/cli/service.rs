//! `peers-ctl service`.

use std::process::ExitCode;

use clap::Subcommand;
use peers_console::error::CommandError;
use peers_fleet::service::{self, Installed};
use peers_sys::term;
use serde_json::json;

use crate::ctl::{Ctl, failed};

/// Run `peers-ctl watch` in the background, from login on
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Install the service for this user and start it
    ///
    /// On Linux a systemd user unit, enabled and started. On macOS the file for launchd is written, and the command
    /// that loads it is printed. A file that is not ours is left alone.
    #[command(verbatim_doc_comment)]
    Install {
        /// More arguments for `peers-ctl watch`, behind `--`
        #[arg(last = true, value_name = "ARGS")]
        watch: Vec<String>,
    },
    /// Stop and remove it
    Remove,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    match &args.what {
        What::Install { watch } => {
            let done = service::install(ctl.config_dir.as_deref(), watch, &ctl.env).map_err(failed)?;
            told(ctl, "service-install", &done)
        }
        What::Remove => {
            let done = service::remove(&ctl.env).map_err(failed)?;
            told(ctl, "service-remove", &done)
        }
    }
}

fn told(ctl: &Ctl, command: &str, done: &Installed) -> Result<ExitCode, CommandError> {
    let Installed { file, did, next } = done;
    let file = term::inline(&file.to_string_lossy());
    if ctl.json {
        ctl.document(command, &json!({"file": file, "did": did, "next": next}), &[])?;
    } else {
        for line in did {
            ctl.out.line(line)?;
        }
        for line in next {
            ctl.say(&format!("next: {line}"));
        }
    }
    Ok(ExitCode::SUCCESS)
}
