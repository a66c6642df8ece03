//! `peers-ctl completions`.

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;
use peers_console::error::CommandError;

use crate::ctl::Ctl;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::Cli::command(), "peers-ctl", &mut script);
    ctl.out.bytes(&script)?;
    Ok(ExitCode::SUCCESS)
}
