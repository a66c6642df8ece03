//! `peers tick`.

use std::io::{IsTerminal as _, Read as _};
use std::process::ExitCode;
use std::time::Duration;

use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_model::exit;
use peers_run::boot::{self, BootError, Outside};

use super::run::{self, Common};

/// A hook's message is at most this long, in bytes.
const MESSAGE: u64 = 1024 * 1024;
/// How long the end of a hook's message is waited for.
const MESSAGE_WAIT: Duration = Duration::from_secs(5);

/// Run the loop for one turn
///
/// The same as `run --max-ticks 1`. Called inside a turn of the same project, it exits at once and prints
/// nothing, so that an agent or its hook cannot start a loop within the loop.
///
/// `--after PEER` is for a turn that ran outside of the loop, in a terminal for example: what PEER
/// committed since the last tick is recorded as its turn, then the next peer takes one. An agent's own
/// stop hook calls it (`peers init --driver=hooks`). It exits at once, with nothing on standard output, if
/// no new commit of PEER hands over, if the hook's message names a directory outside of the project, or if
/// another loop is running, which sees the commits itself.
///
/// That turn ran unwatched: its reviews and what it says about other peers' bugs do not count. Gates judge
/// its work like any other.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// First record the turn that this peer, or the peer with this tool, took outside of the loop
    #[arg(long, value_name = "PEER", conflicts_with_all = ["branch", "worktree", "dry_run"])]
    after: Option<String>,
    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    if let Some(project) = cx.env.text("PEERS_IN_TICK")
        && cx.place().is_ok_and(|place| place.id().as_str() == project)
    {
        return Ok(ExitCode::SUCCESS);
    }
    let Some(who) = &args.after else { return run::start_here(Some(1), None, (&args.common, false), cx) };
    let message = message();
    after(args, who, &message, cx).or_else(|error| not_as_usage(error, &message, cx))
}

/// Exit code 2 of a stop hook tells an agent to go on, and what stands on standard error goes to its model: a
/// turn that somebody pays for. A hook is told that nothing is to be done, a person that the name is wrong.
fn not_as_usage(error: CommandError, message: &[u8], cx: &Cx) -> Result<ExitCode, CommandError> {
    if error.exit_code() != exit::USAGE {
        return Err(error);
    }
    if !matches!(serde_json::from_slice(message), Ok(serde_json::Value::Object(_))) {
        return Err(error.with_exit(exit::INVALID));
    }
    cx.out.talk(&format!("note: nothing is taken in: {}", error.summary()));
    Ok(ExitCode::SUCCESS)
}

fn after(args: &Args, who: &str, message: &[u8], cx: &Cx) -> Result<ExitCode, CommandError> {
    let place = cx.place()?;
    if boot::is_inside(message, place.work_dir()) == Some(false) {
        return Ok(ExitCode::SUCCESS);
    }
    if place.holder()?.is_some() || place.foreign_lock()? {
        cx.out.talk("note: another loop is running here; it sees new commits");
        return Ok(ExitCode::SUCCESS);
    }
    let mut disk = place.open_view_disk()?;
    let loaded = boot::load(&mut disk)?;
    let after = match boot::outside(&place, &mut disk, &loaded.config, who).map_err(BootError::from)? {
        Outside::Nothing(peer) => {
            cx.out.talk(&format!("note: there is no new commit of `{peer}`"));
            return Ok(ExitCode::SUCCESS);
        }
        Outside::Unnamed(peer) => {
            cx.out.talk(&format!(
                "note: no new commit says `Peer: {peer}`; a session hands over by a commit with a section `## Self-Review` that ends in `Peer: {peer}`, `Peer-Status: handoff`, `Self-Review: pass`"
            ));
            return Ok(ExitCode::SUCCESS);
        }
        Outside::Unfinished(peer) => {
            cx.out.talk(&format!(
                "note: `{peer}` has committed and not handed over (`Peer-Status: handoff` with `Self-Review: pass`); its turn goes on"
            ));
            return Ok(ExitCode::SUCCESS);
        }
        Outside::Over(after) => after,
    };
    run::start_here(Some(1), Some(after), (&args.common, false), cx)
}

/// What the hook says on standard input; nothing where a person calls, or where nobody ends it in time.
fn message() -> Vec<u8> {
    if std::io::stdin().is_terminal() {
        return Vec::new();
    }
    let (told, telling) = std::sync::mpsc::channel();
    // It ends with the process, should the other side never end.
    let _reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Err(error) = std::io::stdin().lock().take(MESSAGE).read_to_end(&mut bytes) {
            tracing::debug!(%error, "no message on standard input");
        }
        let _heard = told.send(bytes);
    });
    telling.recv_timeout(MESSAGE_WAIT).unwrap_or_default()
}
