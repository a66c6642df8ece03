//! `peers-ctl status`.

use std::fmt::Write as _;
use std::process::ExitCode;

use peers_console::cx;
use peers_console::error::CommandError;
use peers_fleet::refresh::Seen;
use peers_model::exit;
use peers_sys::term;
use peers_view::{LoopView, status_json, status_text};
use serde_json::{Value, json};

use super::list::row;
use crate::ctl::Ctl;
use crate::many::Which;

/// Show the state of loops, why, and what to do next
///
/// Exit codes: 0, or 3 where the journal of a project cannot be read, or 7 where that is so for some of several.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let config = ctl.config()?;
    let names = ctl.names(&config, &args.which.selection())?;
    let (all, warnings) = ctl.seen_of(&config, &names)?;
    let single = all.len() == 1;
    let (mut rows, mut codes) = (Vec::new(), Vec::new());
    for (at, one) in all.iter().enumerate() {
        let looked = read(ctl, one).map_err(|error| ctl.about(&one.project, error));
        let (code, data) = match looked {
            Ok((view, whole)) => {
                if !ctl.json {
                    let gap = if at > 0 { "\n" } else { "" };
                    ctl.out.page(&format!("{gap}{}", text(ctl, one, &view)))?;
                }
                let status: Value = serde_json::from_str(&status_json(&view)).unwrap_or_default();
                let code = match view.exit_code() {
                    exit::OK | exit::NEGATIVE if !whole => exit::INVALID,
                    exit::NEGATIVE => exit::OK,
                    code => code,
                };
                (code, json!({"project": row(one), "status": status}))
            }
            Err(error) if single => return Err(error),
            Err(error) => {
                if !ctl.json {
                    ctl.out.page(&format!(
                        "{}\n{}: {}\n",
                        head(one),
                        one.project.name,
                        error.render().trim_end()
                    ))?;
                }
                (error.exit_code(), json!({"project": row(one), "status": null, "error": error.summary()}))
            }
        };
        rows.push(data);
        codes.push(code);
    }
    if ctl.json {
        ctl.document("status", &rows, &warnings)?;
    }
    ctl.warn_ended(&warnings);
    Ok(ExitCode::from(crate::many::together(&codes)))
}

/// Everything about one loop, as `peers status` reads it, and whether its journal is whole.
fn read(ctl: &Ctl, one: &Seen) -> Result<(LoopView, bool), CommandError> {
    let (place, mut disk, asked) = crate::board::opened(ctl, one)?;
    // Where nothing is refused, the whole journal was read for that.
    let whole = asked.refusals.is_empty() || peers_store::store::read_each(&mut disk, |_| {}).is_ok();
    let view = LoopView::settled(&mut disk, &asked, || cx::lock(&place));
    Ok((view, whole))
}

fn text(ctl: &Ctl, one: &Seen, view: &LoopView) -> String {
    let status = status_text(view, ctl.out.colour());
    format!("{}\n{status}", head(one))
}

/// `billing: running (run 0123..., process 4242), team=pay`.
fn head(one: &Seen) -> String {
    let project = &one.project;
    let outcome = project.outcome.map(|outcome| format!(" ({})", outcome.word())).unwrap_or_default();
    let mut text = format!("{}: {}{outcome}", project.name, project.state.word());
    if let Some(runtime) = &project.runtime {
        let pid = runtime.pid.map(|pid| format!(", process {pid}")).unwrap_or_default();
        let by_hand = if runtime.peers_bin.is_empty() { ", started by hand" } else { "" };
        let _infallible = write!(text, ", run {}{pid}{by_hand}", runtime.run_id);
    }
    for (key, value) in &project.labels {
        let _infallible = write!(text, ", {key}={}", term::line(value, 40));
    }
    if !project.notes.is_empty() {
        let _infallible = write!(text, "\n  {}", term::line(&project.notes, 200));
    }
    text
}
