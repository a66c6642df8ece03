//! Carries the conversation: lines of the agent to the machine, its messages back, its reports out.

use std::io::{self, Read, Write};
use std::process::ExitStatus;

use peers_model::exit;
use peers_model::limits::STREAM_LINE;

use crate::agent::{Agent, Heard, UNREAD, UNREAD_BYTES};
use crate::options::Options;
use crate::talk::{Act, End, Talk};

/// The three standard streams. The agent's standard error is that of this process, not this one.
pub struct Io<'a> {
    /// The prompt, to its end.
    pub stdin: &'a mut dyn Read,
    /// Where the lines go.
    pub stdout: &'a mut dyn Write,
    /// Where it is said what went wrong.
    pub stderr: &'a mut dyn Write,
}

/// Asks the agent one prompt and returns the exit code, as [`crate::main`] says.
///
/// Nothing of the agent's own process is left when it returns. Processes that the agent started may be.
#[must_use = "this is the exit code"]
pub fn run(options: &Options, io: Io<'_>) -> u8 {
    let Io { stdin, stdout, stderr } = io;
    let end = match prompt(stdin) {
        Ok(prompt) => converse(options, prompt, stdout),
        Err(error) => End::Broken(format!("was asked nothing: read the prompt: {error}")),
    };
    match end {
        End::Done => exit::OK,
        End::Negative => exit::NEGATIVE,
        End::Broken(what) => {
            let name = options.argv.first().map(|program| program.to_string_lossy()).unwrap_or_default();
            // Nobody is left to be told when standard error is gone.
            let _gone = writeln!(stderr, "peers: the agent `{name}` {what}");
            exit::INVALID
        }
    }
}

fn prompt(stdin: &mut dyn Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    stdin.take(STREAM_LINE.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > STREAM_LINE {
        return Err(io::Error::other(format!("it is longer than {STREAM_LINE} bytes")));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn converse(options: &Options, prompt: String, stdout: &mut dyn Write) -> End {
    let mut agent = match Agent::start(options) {
        Ok(agent) => agent,
        Err(error) => {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            return End::Broken(format!("cannot be started: {error}{}", cause.unwrap_or_default()));
        }
    };
    let mut talk = Talk::new(options.permissions, prompt, options.cwd.clone());
    agent.send(Talk::open());
    loop {
        let acts = match agent.next() {
            Heard::Line(line) => talk.heard(&line),
            Heard::TooLong => {
                talk.dropped();
                continue;
            }
            Heard::Closed => {
                let how = agent.finish(options.patience);
                return End::Broken(
                    how.map_or_else(|| "closed its output before it answered".to_owned(), gone),
                );
            }
            Heard::Ended(status) => return End::Broken(gone(status)),
        };
        if let Some(end) = acts.into_iter().find_map(|act| perform(act, &agent, stdout)) {
            // How it ended after its last word changes nothing.
            let _status = agent.finish(options.patience);
            return end;
        }
    }
}

/// Some: it is over.
fn perform(act: Act, agent: &Agent, stdout: &mut dyn Write) -> Option<End> {
    match act {
        Act::Send(message) => unread(agent.send(message)),
        Act::Answer(message) => unread(agent.answer(message)),
        Act::Print(report) => {
            let printed = stdout.write_all(&report.line()).and_then(|()| stdout.flush());
            printed.err().map(|error| End::Broken(format!("is not heard any more: {error}")))
        }
        Act::End(end) => Some(end),
    }
}

fn unread(taken: bool) -> Option<End> {
    let what = || {
        format!("asks and does not read the answers: {UNREAD} of them or {UNREAD_BYTES} bytes wait for it")
    };
    (!taken).then(|| End::Broken(what()))
}

fn gone(status: ExitStatus) -> String {
    format!("ended ({status}) before it answered")
}
