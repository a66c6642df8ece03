//! A whole command line as a document, kept in step by a test.

use std::fmt::Write as _;
use std::path::Path;

use clap::Command;

/// Compares the document at `docs/FILE` with what `PROGRAM COMMAND --help` prints for every command, or writes it
/// where `PEERS_UPDATE` is set.
pub fn up_to_date(cli: &Command, krate: &str, file: &str, title: &str) {
    let program = cli.get_name();
    let renew = format!("PEERS_UPDATE=1 cargo test -p {krate} the_reference_is_up_to_date");
    let mut now = format!(
        "# {title}\n\n\
         What `{program} COMMAND --help` prints, for every command. This file is generated: after a change of the\n\
         command line run `{renew}`.\n"
    );
    describe(cli, cli, &[program], &mut now);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(file);
    if std::env::var_os("PEERS_UPDATE").is_some() {
        std::fs::write(&path, &now).expect("the document can be written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let first = kept.lines().zip(now.lines()).find(|(kept, now)| kept != now);
    assert!(
        kept == now,
        "docs/{file} is not what the command line says; first difference: {first:?}\nrun `{renew}`"
    );
}

fn describe(cli: &Command, command: &Command, path: &[&str], text: &mut String) {
    let level = if path.len() == 1 { "##" } else { "###" };
    // What the parser itself prints: it is more compact where there is little to say.
    let asked = path.iter().copied().chain(["--help"]);
    let help = cli.clone().try_get_matches_from(asked).expect_err("help is no match").render().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    let help = lines.join("\n");
    write!(text, "\n{level} {}\n\n```text\n{}\n```\n", path.join(" "), help.trim_end()).expect("memory");
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        describe(cli, below, &[path, &[below.get_name()]].concat(), text);
    }
}

/// The commands that the reference of another program has and `cli` lacks, in its order.
#[must_use]
pub fn alone<'a>(reference: &'a str, program: &str, cli: &Command) -> Vec<&'a str> {
    let heading = format!("### {program} ");
    let theirs = reference.lines().filter_map(|line| line.strip_prefix(&heading));
    theirs.filter(|name| !name.contains(' ') && cli.find_subcommand(name).is_none()).collect()
}

/// Every command says what it does, without a full stop.
pub fn first_lines_are_imperatives(command: &Command) {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    assert!(!about.is_empty(), "{} says nothing", command.get_name());
    assert!(!about.ends_with('.'), "{}: {about}", command.get_name());
    command.get_subcommands().for_each(first_lines_are_imperatives);
}
