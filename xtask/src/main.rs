//! Repository chores, run as `cargo xtask COMMAND`.
//!
//! This file only dispatches: one row in [`COMMANDS`] and one module per command. Nothing here is part of
//! the product, and no crate of the product may depend on it.

mod bench;
mod checks;
mod cockpit;
mod codemap;
mod crates;
mod fleet;
mod ground;
mod outcome;
mod proxies;
mod shots;
mod soak;
mod stream;
mod terminal;
mod tidy;
mod workspace;

use std::io::{self, Write};
use std::process::ExitCode;

use outcome::{Failure, Outcome};

struct Command {
    name: &'static str,
    summary: &'static str,
    run: Run,
}

/// How a chore is called.
enum Run {
    /// Without arguments.
    Plain(fn(&mut dyn Write) -> Result<Outcome, Failure>),
    /// With what follows its name.
    With(fn(&[String], &mut dyn Write) -> Result<Outcome, Failure>),
}

/// Every chore, in the order of the usage text.
const COMMANDS: &[Command] = &[
    Command {
        name: "crates",
        summary: "Count the crates of the default build",
        run: Run::Plain(crates::run),
    },
    Command {
        name: "tidy",
        summary: "Check the rules of this repository, list every violation",
        run: Run::Plain(tidy::run),
    },
    Command {
        name: "circles",
        summary: "List the files that use each other in a circle, largest circle first",
        run: Run::Plain(tidy::list_circles),
    },
    Command {
        name: "soak-kill",
        summary: "Kill `peers run` at random moments and restart it (--runs 20 --kills 10 --ticks 30 --seed 1 --sandbox none)",
        run: Run::With(soak::run),
    },
    Command {
        name: "bench",
        summary: "Measure the overhead of a tick (--ticks 40 --files 200 --sandbox none)",
        run: Run::With(bench::run),
    },
    Command {
        name: "bench-stream",
        summary: "Measure a turn with a large stream: under 2 s and 64 MiB (--mb 300 --rounds 3)",
        run: Run::With(stream::stream),
    },
    Command {
        name: "bench-idle",
        summary: "Measure the loop while a peer thinks: under 0.5 % of a core (--seconds 30)",
        run: Run::With(stream::idle),
    },
    Command {
        name: "bench-checks",
        summary: "Measure checks over a long history, with and without what a loop kept (--commits 20000 --kib 10 --rounds 3)",
        run: Run::With(checks::run),
    },
    Command {
        name: "bench-codemap",
        summary: "Measure the code map of a large project: under 1.5 s, 150 ms again (--lines 360000 --rounds 5)",
        run: Run::With(codemap::run),
    },
    Command {
        name: "bench-fleet",
        summary: "Measure peers-ctl over many loops (--projects 50 --ticks 20 --many 1000 --many-ticks 500 --rounds 5 --seconds 30)",
        run: Run::With(fleet::run),
    },
    Command {
        name: "bench-cockpit",
        summary: "Measure the cockpit over many loops that run: a core's share, memory, key to paint (--loops 100 --events 10 --seconds 30 --keys 300)",
        run: Run::With(cockpit::run),
    },
    Command {
        name: "docs-shots",
        summary: "Draw the pictures of docs/cockpit.md anew, from the program",
        run: Run::Plain(shots::run),
    },
    Command {
        name: "bench-proxy",
        summary: "Measure the proxies of a run: 300 MiB/s, first byte within 50 ms (--requests 1000 --mb 2000 --rounds 100)",
        run: Run::With(proxies::run),
    },
];

/// Exit codes: 0 fine, 1 a negative answer, 2 usage, 3 could not measure.
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let code = dispatch(&arguments, &mut io::stdout().lock(), &mut io::stderr().lock());
    ExitCode::from(code)
}

fn dispatch(arguments: &[String], out: &mut dyn Write, talk: &mut dyn Write) -> u8 {
    let mut words = arguments.iter().map(String::as_str);
    let name = words.next();
    if let Some("help" | "--help" | "-h") = name {
        return if usage(out).is_ok() { 0 } else { 3 };
    }
    let command = COMMANDS.iter().find(|command| Some(command.name) == name);
    let complaint = match (name, command, words.next()) {
        (_, Some(Command { run: Run::With(run), .. }), _) => {
            return finish(run(arguments.get(1..).unwrap_or_default(), out), talk);
        }
        (_, Some(Command { run: Run::Plain(run), .. }), None) => return finish(run(out), talk),
        (_, Some(command), Some(extra)) => format!("`{}` takes no argument, got `{extra}`", command.name),
        (Some(name), None, _) => format!("no command `{name}`"),
        (None, None, _) => "which command".to_owned(),
    };
    // A closed stderr leaves only the exit code, which is what a script reads.
    let _ignored = writeln!(talk, "error: {complaint}\n").and_then(|()| usage(talk));
    2
}

fn finish(result: Result<Outcome, Failure>, talk: &mut dyn Write) -> u8 {
    match result {
        Ok(Outcome::Ok) => 0,
        Ok(Outcome::Negative) => 1,
        Err(failure) => {
            // As above: the exit code says it too.
            let _ignored = writeln!(talk, "error: {failure}");
            3
        }
    }
}

fn usage(to: &mut dyn Write) -> io::Result<()> {
    writeln!(to, "Usage: cargo xtask COMMAND\n\nCommands:")?;
    for command in COMMANDS {
        writeln!(to, "  {:<13}{}", command.name, command.summary)?;
    }
    writeln!(to, "  {:<13}Print this text", "help")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dispatched(arguments: &[&str]) -> (u8, String, String) {
        let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        let (mut out, mut talk) = (Vec::new(), Vec::new());
        let code = dispatch(&arguments, &mut out, &mut talk);
        (code, String::from_utf8(out).unwrap(), String::from_utf8(talk).unwrap())
    }

    #[test]
    fn an_unknown_command_exits_2_and_shows_the_usage_on_stderr() {
        let (code, out, talk) = dispatched(&["polish"]);
        assert_eq!((code, out.as_str()), (2, ""));
        assert!(talk.starts_with("error: no command `polish`"), "{talk}");
        assert!(talk.contains("  tidy "), "{talk}");
    }

    #[test]
    fn no_command_and_a_surplus_argument_are_usage_errors() {
        assert_eq!(dispatched(&[]).0, 2);
        assert_eq!(dispatched(&["tidy", "--fix"]).0, 2);
    }

    #[test]
    fn help_goes_to_stdout() {
        let (code, out, talk) = dispatched(&["--help"]);
        assert_eq!((code, talk.as_str()), (0, ""));
        assert!(out.contains("crates"), "{out}");
    }

    #[test]
    fn a_negative_answer_and_a_failure_have_different_exit_codes() {
        let mut talk = Vec::new();
        assert_eq!(finish(Ok(Outcome::Negative), &mut talk), 1);
        assert_eq!(finish(Err("read x".into()), &mut talk), 3);
        assert_eq!(talk, b"error: read x\n");
    }
}
