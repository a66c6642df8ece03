//! The whole command line as a document, kept in step by a test.

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};

use super::Cli;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ctl-reference.md");

fn document() -> String {
    let mut text = String::from(
        "# Command line reference of peers-ctl\n\n\
         What `peers-ctl COMMAND --help` prints, for every command. This file is generated: after a change of the\n\
         command line run `PEERS_UPDATE=1 cargo test -p peers-ctl the_reference_is_up_to_date`.\n",
    );
    describe(&Cli::command(), &["peers-ctl"], &mut text);
    text
}

fn describe(command: &Command, path: &[&str], text: &mut String) {
    let level = if path.len() == 1 { "##" } else { "###" };
    // What the parser itself prints: it is more compact where there is little to say.
    let asked = path.iter().copied().chain(["--help"]);
    let help = Cli::command().try_get_matches_from(asked).unwrap_err().render().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    write!(text, "\n{level} {}\n\n```text\n{}\n```\n", path.join(" "), lines.join("\n").trim_end()).unwrap();
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        describe(below, &[path, &[below.get_name()]].concat(), text);
    }
}

#[test]
fn the_reference_is_up_to_date() {
    let now = document();
    if std::env::var_os("PEERS_UPDATE").is_some() {
        std::fs::write(DOCUMENT, &now).unwrap();
    }
    let kept = std::fs::read_to_string(DOCUMENT).unwrap_or_default();
    let first = kept.lines().zip(now.lines()).find(|(kept, now)| kept != now);
    assert!(
        kept == now,
        "docs/ctl-reference.md is not what the command line says; first difference: {first:?}\n\
         run `PEERS_UPDATE=1 cargo test -p peers-ctl the_reference_is_up_to_date`"
    );
}

#[test]
fn the_commands_of_one_loop_alone_are_known() {
    let reference = include_str!("../../../../docs/cli-reference.md");
    let theirs = reference.lines().filter_map(|line| line.strip_prefix("### peers "));
    let cli = Cli::command();
    let alone: Vec<&str> =
        theirs.filter(|name| !name.contains(' ') && cli.find_subcommand(name).is_none()).collect();
    assert_eq!(alone, super::OF_ONE_LOOP);
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
    fn visit(command: &Command) {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        assert!(!about.is_empty(), "{} says nothing", command.get_name());
        assert!(!about.ends_with('.'), "{}: {about}", command.get_name());
        command.get_subcommands().for_each(visit);
    }
    visit(&Cli::command());
}
