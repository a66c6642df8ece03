//! `peers-ctl man`.

use std::process::ExitCode;

use clap::CommandFactory as _;
use peers_console::error::CommandError;
use peers_model::exit;

use crate::ctl::Ctl;

/// Print the manual page, or that of one command
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The command, with those below it: `registry check`
    command: Vec<String>,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    ctl.refuse_json("man")?;
    let mut root = super::Cli::command();
    root.build();
    let mut at = &root;
    for word in &args.command {
        at = at.find_subcommand(word).ok_or_else(|| {
            CommandError::new(
                exit::USAGE,
                format!("there is no command `{}`", peers_sys::term::line(word, 40)),
            )
        })?;
    }
    let mut bytes = Vec::new();
    clap_mangen::Man::new(at.clone()).render(&mut bytes)?;
    ctl.out.bytes(&bytes)?;
    Ok(ExitCode::SUCCESS)
}
