//! `peers-ctl __complete`: words for completion scripts.

use std::process::ExitCode;

use peers_console::error::CommandError;

use crate::ctl::{Ctl, failed};

/// Print words for a completion script
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Of what
    #[arg(value_enum)]
    what: What,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum What {
    Projects,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let What::Projects = args.what;
    // To look must not make a directory.
    let config = peers_fleet::ConfigDir::look(ctl.config_dir.as_deref(), &ctl.env).map_err(failed)?;
    let Some(config) = config else { return Ok(ExitCode::SUCCESS) };
    for project in peers_fleet::registry::load(&config).map_err(failed)?.registry.projects() {
        ctl.out.line(project.name.as_str())?;
    }
    Ok(ExitCode::SUCCESS)
}
