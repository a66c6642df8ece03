//! `peers stop`.

use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::Duration;

use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_model::command::Step;
use peers_model::outcome::StopReason;
use peers_model::{RunId, exit};
use peers_place::{Holder, Place};
use peers_run::boot::{BootError, Finding};
use peers_run::stopping::{self, LOOK};
use peers_store::runs;
use peers_sys::clock;
use peers_sys::signal::Signal;
use serde_json::json;

/// A loop that ends its turn in an orderly way has ended by then.
const PATIENCE: Duration = Duration::from_mins(1);
/// One that is to end at once has ended by then.
const HURRY: Duration = Duration::from_secs(15);
/// A process of a loop that ended may hold the lock an instant longer.
const SETTLING: Duration = Duration::from_secs(5);

/// Stop the loop that runs on this repository
///
/// The loop ends the running turn, records it and stops; this command waits for that and prints the stop
/// reason. It exits with 1 where no loop runs. It does what Ctrl-C does in the terminal of `peers run`.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Kill the running turn at once; its work is kept
    #[arg(long, conflicts_with = "after_tick")]
    now: bool,
    /// Let the running turn and its gates finish; return without waiting
    #[arg(long)]
    after_tick: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let place = cx.place()?;
    cx.operators_alone(&place, "stop")?;
    // Where there is no store, that is what is wrong.
    place.open_view_disk()?;
    let grasped = stopping::grasp("a loop", &place, || look(&place)).map_err(failed)?;
    let (holder, process) = match grasped {
        ControlFlow::Continue(held) => held,
        ControlFlow::Break(other) => {
            let other = other.map(|holder| format!(": {holder}")).unwrap_or_default();
            return Err(CommandError::new(exit::NEGATIVE, format!("no loop is running here{other}")));
        }
    };
    let run_id = holder.run_id.as_deref().and_then(|id| RunId::new(id).ok());
    let done = |result: &str, reason: Option<&StopReason>, said: &str| {
        if args.json {
            let reason = reason.map(ToString::to_string);
            cx.out.json("peers.stop/1", &json!({"result": result, "run_id": run_id, "reason": reason}))?;
        } else {
            cx.out.line(said)?;
        }
        Ok(ExitCode::SUCCESS)
    };
    if args.after_tick {
        stopping::tell(&process, Signal::Usr1).map_err(failed)?;
        return done("after-tick", None, &format!("Stopping after the running turn: {holder}"));
    }
    let (patience, slow) = if args.now {
        stopping::hurry(&process).map_err(failed)?;
        let kill = holder.pid.map(|pid| {
            Step::text("`kill -KILL {}`, then `peers run` takes up the turn again", &[&pid.to_string()])
        });
        (HURRY, kill)
    } else {
        stopping::tell(&process, Signal::Term).map_err(failed)?;
        cx.out.talk(&format!("waiting for the end of the running turn: {holder}"));
        (PATIENCE, Some("`peers stop --now` kills the running turn".into()))
    };
    if !stopping::ended(&process, patience).map_err(failed)? {
        let message = format!("the loop has not ended after {} s: {holder}", patience.as_secs());
        return Err(CommandError::new(exit::NEGATIVE, message).hint_opt(slow));
    }
    settled(&place, &holder)?;
    let record = run_id.as_ref().and_then(|id| runs::get(&mut place.open_view_disk().ok()?, id).ok()?);
    let reason = record.and_then(|record| record.reason);
    let said = reason.as_ref().map_or_else(
        || "Stopped without a last word; `peers run` takes up the turn again".to_owned(),
        |reason| format!("Stopped: {reason}"),
    );
    done("stopped", reason.as_ref(), &said)
}

/// The loop that holds the run lock; else who else does.
fn look(place: &Place) -> Result<ControlFlow<Option<Holder>, Holder>, Finding> {
    Ok(match place.holder()? {
        Some(holder) if holder.command.is_none() => ControlFlow::Continue(holder),
        other => ControlFlow::Break(other),
    })
}

/// Waits until the lock is free, or held by another loop.
fn settled(place: &Place, ended: &Holder) -> Result<(), CommandError> {
    let until = clock::mono().plus(SETTLING);
    while place.holder()?.is_some_and(|now| now.pid.is_none() || now.pid == ended.pid) {
        if clock::mono() >= until {
            return Err(CommandError::new(
                exit::NEGATIVE,
                "the loop has ended, and the run lock is still held",
            )
            .hint("a process that it started has the lock; run `peers stop` again"));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

fn failed(finding: Finding) -> CommandError {
    BootError::from(finding).into()
}
