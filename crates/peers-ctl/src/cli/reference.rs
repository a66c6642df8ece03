//! The command line as a document, and what it owes its readers.

use clap::{Command, CommandFactory as _};
use peers_testkit::reference;

use super::Cli;

#[test]
fn the_reference_is_up_to_date() {
    reference::up_to_date(
        &Cli::command(),
        "peers-ctl",
        "ctl-reference.md",
        "Command line reference of peers-ctl",
    );
}

#[test]
fn the_commands_of_one_loop_alone_are_known() {
    let theirs = include_str!("../../../../docs/cli-reference.md");
    assert_eq!(reference::alone(theirs, "peers", &Cli::command()), super::OF_ONE_LOOP);
}

#[test]
fn the_command_line_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn every_option_that_takes_a_time_says_what_a_bare_number_is() {
    fn visit(command: &Command) {
        for arg in command.get_arguments() {
            let names = arg.get_value_names().unwrap_or_default();
            if names.iter().any(|name| ["DURATION", "[+]DURATION", "[+]D"].contains(&name.as_str())) {
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.ends_with("a bare number is seconds)"), "{}: {help}", arg.get_id());
            }
        }
        command.get_subcommands().for_each(visit);
    }
    visit(&Cli::command());
}

#[test]
fn every_first_line_of_help_is_an_imperative_without_a_full_stop() {
    reference::first_lines_are_imperatives(&Cli::command());
}
