//! `peers-ctl man`.

use std::ffi::OsStr;
use std::process::ExitCode;

use clap::CommandFactory as _;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use peers_console::error::CommandError;
use peers_model::exit;

use crate::ctl::Ctl;

/// Print the manual page, of a command where one is named
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The command, with those below it: `registry check`
    #[arg(value_parser = Word, hide_possible_values = true)]
    command: Vec<String>,
}

/// The commands, in the order of the help.
const COMMANDS: [&str; 28] = [
    "new",
    "add",
    "remove",
    "start",
    "stop",
    "restart",
    "resume",
    "status",
    "list",
    "reconcile",
    "tail",
    "logs",
    "events",
    "wait",
    "watch",
    "prune",
    "registry",
    "budget",
    "dashboard",
    "peek",
    "report",
    "review",
    "compare",
    "replay",
    "doctor",
    "service",
    "completions",
    "man",
];

/// Any word; scripts offer the commands.
#[derive(Clone)]
struct Word;

impl TypedValueParser for Word {
    type Value = String;

    fn parse_ref(
        &self,
        cmd: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(cmd, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue>>> {
        Some(Box::new(COMMANDS.map(PossibleValue::new).into_iter()))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_offer_every_command_that_is_shown() {
        let cli = super::super::Cli::command();
        let shown = cli.get_subcommands().filter(|below| !below.is_hide_set());
        assert_eq!(shown.map(clap::Command::get_name).collect::<Vec<_>>(), COMMANDS);
    }
}
