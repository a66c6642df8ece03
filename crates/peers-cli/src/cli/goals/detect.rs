//! `peers goals detect`.

use std::process::ExitCode;

use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_console::output::counted;
use peers_model::exit;
use peers_model::goal::Goal;
use peers_run::boot;
use peers_setup::detect::{self, Proposal};
use peers_sys::dir::SafeDir;
use peers_sys::term;
use serde_json::{Value, json};

/// Propose gates for this project, as YAML for goals.yaml; exit 1 if nothing was found
///
/// Reads manifests (Cargo.toml, package.json, pyproject.toml, go.mod, Makefile and similar), three
/// directories deep; runs and writes nothing. If a tool reports how many tests ran, zero tests do not
/// pass. A proposal has no effect until it is in .peers/goals.yaml and accepted.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let work = SafeDir::open_shared(&cx.target)?;
    let found = detect::detect(&work, &written(cx));
    if args.json {
        let rows: Vec<Value> = found.proposals.iter().map(row).collect();
        cx.out.json(
            "peers.goals-detect/1",
            &json!({"proposals": rows, "there": found.there, "notes": found.notes}),
        )?;
    } else {
        cx.out.data(&detect::entries(&found.proposals))?;
        for note in &found.notes {
            cx.out.talk(&format!("note: {note}"));
        }
        let there: Vec<&str> = found.there.iter().map(String::as_str).collect();
        if !there.is_empty() {
            cx.out.talk(&format!("note: in goals.yaml already: {}", there.join(", ")));
        }
        if found.proposals.is_empty() && !there.is_empty() {
            cx.out.talk("nothing more to propose");
        } else if found.proposals.is_empty() {
            cx.out.talk("no manifest of a known stack was found; write a gate by hand: .peers/goals.yaml");
        } else {
            let gates = counted(u64::try_from(found.proposals.len()).unwrap_or(u64::MAX), "gate");
            cx.out.talk(&format!(
                "{gates} proposed; paste what you want below `goals:` in .peers/goals.yaml, then `peers goals accept`"
            ));
        }
    }
    Ok(ExitCode::from(if found.proposals.is_empty() && found.there.is_empty() {
        exit::NEGATIVE
    } else {
        exit::OK
    }))
}

fn row(proposal: &Proposal) -> Value {
    let Proposal { id, description, cmd, pass_when, timeout_s, why } = proposal;
    json!({"id": id, "type": "hard", "description": term::inline(description), "cmd": cmd, "pass_when": pass_when,
        "timeout_s": timeout_s, "why": term::inline(why)})
}

/// The goals that are here already, where they can be read.
fn written(cx: &Cx) -> Vec<Goal> {
    let loaded = cx.view().ok().and_then(|(_, mut disk)| boot::load(&mut disk).ok());
    loaded.map(|loaded| loaded.goals).unwrap_or_default()
}
