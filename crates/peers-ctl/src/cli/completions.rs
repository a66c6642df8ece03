//! `peers-ctl completions`, and what its scripts ask while a line is typed.

use std::process::ExitCode;

use clap::{CommandFactory as _, ValueHint};
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};
use peers_console::error::CommandError;
use peers_fleet::{ConfigDir, registry};
use peers_sys::env::Env;

use crate::ctl::Ctl;

/// The variable by which a script asks this program.
const ASKED: &str = "COMPLETE";

/// Print a completion script for a shell
///
/// The script asks peers-ctl while you type, so that it completes the names of registered projects.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    ctl.refuse_json("completions")?;
    let mut script = Vec::new();
    if let Some(shell) = Shells::builtins().completer(&args.shell.to_string()) {
        shell.write_registration(ASKED, "peers_ctl", "peers-ctl", "peers-ctl", &mut script)?;
    }
    ctl.out.bytes(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Answers a completion script and ends, if one asks.
pub(crate) fn answer() {
    CompleteEnv::with_factory(|| hinted(super::Cli::command())).var(ASKED).complete();
}

/// The parser with names of projects and commands; for other values that are no files nothing is offered.
fn hinted(command: clap::Command) -> clap::Command {
    let hinted_arg = |arg: clap::Arg| match arg.get_id().as_str() {
        "names" | "what" | "project" if arg.get_possible_values().is_empty() => {
            arg.add(ArgValueCandidates::new(projects))
        }
        "command" => arg.add(ArgValueCandidates::new(commands)),
        _ if arg.get_action().takes_values() && arg.get_value_hint() == ValueHint::Unknown => {
            arg.value_hint(ValueHint::Other)
        }
        _ => arg,
    };
    command.mut_args(hinted_arg).mut_subcommands(hinted)
}

fn commands() -> Vec<CompletionCandidate> {
    super::Cli::command().get_subcommands().map(|below| CompletionCandidate::new(below.get_name())).collect()
}

/// Nothing where the registry cannot be read, and no directory is made.
fn projects() -> Vec<CompletionCandidate> {
    let config = ConfigDir::look(None, &Env::current()).ok().flatten();
    let loaded = config.and_then(|config| registry::load(&config).ok());
    let registered = loaded.iter().flat_map(|loaded| loaded.registry.projects());
    registered.map(|project| CompletionCandidate::new(project.name.as_str())).collect()
}
