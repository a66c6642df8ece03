//! `peers undo`.

use std::process::ExitCode;

use peers_acts::land::{self, Finished, StartCopy, Undone};
use peers_console::cx::{self, Cx};
use peers_console::error::CommandError;
use peers_model::command::{Command, Step};
use peers_model::exit;
use peers_model::record::MoveKind;
use peers_sys::term;
use serde_json::json;

/// Set a run's branch back to the commit that the run began at
///
/// The current state is kept first; `peers salvage list` shows it. Refused while a loop runs, and if the
/// branch holds commits that the run did not make.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The run: its id, the beginning of it, or `last`
    #[arg(value_name = "RUN")]
    run: String,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let place = cx.place()?;
    cx.operators_alone(&place, "undo")?;
    let undone = land::undo(&place, &cx.env, &args.run, &cx.operator())?;
    if let Some(note) = place.open_view_disk().ok().and_then(|mut disk| cx::gone(&mut disk, &undone.run)) {
        cx.out.talk(&format!("note: {note}"));
    }
    let Undone { run, branch, from, to, commits, salvage, blocked, finished, start, landed } = &undone;
    if let Some(finished) = finished {
        cx.out.talk(&format!("note: {}", finished.words()));
    }
    if args.json {
        let finished = finished.as_ref().map(|Finished { kind, run, branch, to }| {
            let kind = match kind {
                MoveKind::Land => "land",
                MoveKind::Undo => "undo",
            };
            json!({"kind": kind, "run": run, "branch": branch, "to": to})
        });
        let start = start.as_ref().map(|StartCopy { salvage, files, more, command }| {
            json!({"salvage": salvage, "files": files, "more": more, "command": command})
        });
        let body = json!({"run": run, "branch": branch, "from": from, "to": to, "commits": commits,
            "salvage": salvage, "blocked": blocked, "finished": finished, "start": start});
        cx.out.json("peers.undo/1", &body)?;
    } else if let Some(salvage) = salvage {
        cx.out.line(&format!("`{}` is back at {}", term::inline(branch), to.short()))?;
        cx.out.advise(Step::text("the previous state is saved: `peers salvage restore {}`", &[salvage]));
        if let Some(start) = start {
            say_start(start, cx);
        }
        if let Some((into, what)) = landed {
            let revert = Command::git("revert --no-edit").with(what);
            let into = term::inline(into);
            let keeps = format!(
                "warning: the run was landed in `{into}`, which keeps it; with `{into}` checked out "
            );
            cx.out.advise(Step::from(keeps).run(revert).say(" takes them back there"));
        }
    } else {
        cx.out.talk(&format!("`{}` is at {} already", term::inline(branch), to.short()));
    }
    for path in blocked {
        cx.out.talk(&format!("warning: `{path}` could not be put back"));
    }
    Ok(ExitCode::from(if salvage.is_some() { exit::OK } else { exit::NEGATIVE }))
}

fn say_start(start: &StartCopy, cx: &Cx) {
    let named: Vec<String> = start.files.iter().map(|path| term::inline(path)).collect();
    let more = match start.more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    cx.out.talk(&format!(
        "files that were not committed when the run began went with its commits: {}{more}; as they were then they are kept as salvage `{}`; back into the work tree: `{}`",
        named.join(", "),
        start.salvage,
        start.command
    ));
}
