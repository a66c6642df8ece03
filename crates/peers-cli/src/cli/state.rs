//! `peers state`.

use std::process::ExitCode;

use clap::Subcommand;
use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_model::exit;
use peers_store::{Store, projection, store};
use serde_json::json;

/// Check or rebuild what is derived from the journal
///
/// The journal in the trusted store is the truth; the snapshot is a cache of its fold, and
/// `.peers/state.json` and `.peers/log/runs.jsonl` are copies for people.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Read the whole journal and compare the snapshot with it; change nothing
    Check {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Fold the journal again and write snapshot, state.json and mirror
    Rebuild {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    match args.what {
        What::Check { json } => check(json, cx),
        What::Rebuild { json } => rebuild(json, cx),
    }
}

fn check(as_json: bool, cx: &Cx) -> Result<ExitCode, CommandError> {
    let (_, mut disk) = cx.view()?;
    let (state, _, report) = store::read(&mut disk)?;
    let snapshot = store::compare_snapshot(&mut disk)?;
    let sound = snapshot.is_none() && report.torn.is_none();
    if as_json {
        let body =
            json!({"sound": sound, "ticks": state.ticks, "snapshot": snapshot, "torn_bytes": report.torn});
        cx.out.json("peers.state-check/1", &body)?;
    } else {
        if let Some(what) = &snapshot {
            cx.out.line(&format!("snapshot: {}", peers_sys::term::inline(what)))?;
        }
        if let Some(bytes) = report.torn {
            cx.out.line(&format!(
                "journal: its last line is torn ({}); the next run keeps it aside",
                peers_view::bytes(bytes)
            ))?;
        }
        if sound {
            cx.out.line(&format!(
                "sound: the journal folds to tick {}, and the snapshot agrees",
                state.ticks
            ))?;
        } else {
            cx.out.advise("hint: `peers state rebuild` mends it");
        }
    }
    Ok(ExitCode::from(if sound { exit::OK } else { exit::NEGATIVE }))
}

fn rebuild(as_json: bool, cx: &Cx) -> Result<ExitCode, CommandError> {
    let place = cx.place()?;
    cx.operators_alone(&place, "state rebuild")?;
    let lock = place.lock("state rebuild")?;
    let (mut store, report) = Store::open(place.open_store_disk()?)?;
    store.write_snapshot()?;
    let (state, position) = (store.state().clone(), store.position().clone());
    projection::write_state(store.disk(), &state, &position)?;
    drop(lock);
    if as_json {
        let body = json!({"ticks": state.ticks, "records": position.seq, "torn_bytes": report.torn,
            "snapshot_was": report.snapshot, "mirror_was": report.mirror});
        cx.out.json("peers.state-rebuild/1", &body)?;
        return Ok(ExitCode::SUCCESS);
    }
    for (what, found) in [("snapshot", &report.snapshot), ("mirror", &report.mirror)] {
        if let Some(found) = found {
            cx.out.line(&format!("{what}: {}", peers_sys::term::inline(found)))?;
        }
    }
    if let Some(bytes) = report.torn {
        cx.out.line(&format!("journal: {} of a torn last line kept aside", peers_view::bytes(bytes)))?;
    }
    cx.out.line(&format!(
        "rebuilt from {}: tick {}",
        peers_console::output::counted(position.seq, "record"),
        state.ticks
    ))?;
    Ok(ExitCode::SUCCESS)
}
