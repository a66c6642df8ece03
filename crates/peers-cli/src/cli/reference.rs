//! The command line as a document, and what it owes its readers.

use clap::CommandFactory as _;
use peers_testkit::reference;

use super::Cli;

#[test]
fn the_reference_is_up_to_date() {
    reference::up_to_date(&Cli::command(), "peers-cli", "cli-reference.md", "Command line reference");
}

#[test]
fn the_commands_of_the_controller_alone_are_known() {
    let theirs = include_str!("../../../../docs/ctl-reference.md");
    assert_eq!(reference::alone(theirs, "peers-ctl", &Cli::command()), super::OF_THE_CONTROLLER);
}

#[test]
fn the_command_line_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn every_first_line_of_help_is_an_imperative_without_a_full_stop() {
    reference::first_lines_are_imperatives(&Cli::command());
}
