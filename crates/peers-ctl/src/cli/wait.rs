//! `peers-ctl wait`.

use std::process::ExitCode;
use std::time::Duration;

use peers_console::error::CommandError;
use peers_fleet::registry::State;
use peers_fleet::{ConfigDir, ProjectName};
use peers_model::exit;
use peers_sys::{clock, term};
use peers_view::Level;
use serde_json::{Value, json};

use super::duration;
use super::list::row;
use crate::board::{Board, Looked};
use crate::ctl::Ctl;
use crate::many::Which;

/// How often the projects are looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Wait until loops have stopped, or until one needs somebody
///
/// For scripts. Exit codes: 0 when all that were asked for have stopped as they should, else that of the first
/// that did not: 10 budget, 11 stuck, 13 peer, 5 refused, 70 failed or died; 124 when the time is over. With
/// --for attention: 0 as soon as one of them needs somebody.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// For what
    #[arg(long = "for", value_enum, default_value_t = What::Stopped, value_name = "WHAT")]
    what: What,
    /// Give up after so long
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Until none of them runs
    Stopped,
    /// Until somebody has to do something about one of them
    Attention,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let config = ctl.config()?;
    let names = ctl.names(&config, &args.which.selection())?;
    match args.what {
        What::Stopped => stopped(ctl, &config, &names, args.timeout),
        What::Attention => attention(ctl, &config, &names, args.timeout),
    }
}

/// Waits until one of them needs somebody, and says which.
fn attention(
    ctl: &Ctl,
    config: &ConfigDir,
    names: &[ProjectName],
    timeout: Option<Duration>,
) -> Result<ExitCode, CommandError> {
    let until = timeout.map(|timeout| clock::mono().plus(timeout));
    let mut board = Board::default();
    loop {
        let Looked { rows, .. } = board.rows(ctl, config, |project| names.contains(&project.name))?;
        let urgent: Vec<_> = rows.iter().filter(|row| row.attention.level() == Level::Act).collect();
        let over = until.is_some_and(|until| clock::mono() >= until);
        if urgent.is_empty() && !over {
            std::thread::sleep(LOOK);
            continue;
        }
        if ctl.json {
            let told: Vec<Value> =
                urgent.iter().map(|row| json!({"name": row.name, "attention": row.attention})).collect();
            ctl.document("wait", &json!({"timed_out": urgent.is_empty(), "projects": told}), &[])?;
        } else {
            for row in &urgent {
                let top = &row.attention.top;
                let action = top.action.as_deref().map(|action| format!(" -> {action}")).unwrap_or_default();
                ctl.out
                    .page(&format!("{}\n", term::inline(&format!("{}: {}{action}", row.name, top.why))))?;
            }
        }
        return Ok(ExitCode::from(if urgent.is_empty() { exit::TIMEOUT } else { exit::OK }));
    }
}

/// Waits until none of them runs.
pub(crate) fn stopped(
    ctl: &Ctl,
    config: &ConfigDir,
    names: &[ProjectName],
    timeout: Option<Duration>,
) -> Result<ExitCode, CommandError> {
    let until = timeout.map(|timeout| clock::mono().plus(timeout));
    loop {
        let (all, warnings) = ctl.seen_of(config, names)?;
        let busy = |state: State| matches!(state, State::Running | State::Unknown);
        let over = until.is_some_and(|until| clock::mono() >= until);
        let waiting = all.iter().filter(|one| busy(one.project.state)).count();
        if waiting > 0 && !over {
            std::thread::sleep(LOOK);
            continue;
        }
        let codes: Vec<u8> = all.iter().map(|one| code(&one.project)).collect();
        if ctl.json {
            let rows: Vec<Value> = all.iter().map(row).collect();
            ctl.document("wait", &json!({"timed_out": waiting > 0, "projects": rows}), &warnings)?;
        } else {
            for one in &all {
                let outcome =
                    one.project.outcome.map(|outcome| format!(" ({})", outcome.word())).unwrap_or_default();
                ctl.out.line(&format!("{}: {}{outcome}", one.project.name, one.project.state.word()))?;
            }
        }
        if waiting > 0 {
            return Ok(ExitCode::from(exit::TIMEOUT));
        }
        let bad = codes.into_iter().find(|code| *code != exit::OK);
        return Ok(ExitCode::from(bad.unwrap_or(exit::OK)));
    }
}

/// The exit code of a loop that is over, as far as it is known.
fn code(project: &peers_fleet::Project) -> u8 {
    match (&project.last_exit, project.state) {
        (Some(exit), _) if exit.code.is_some() => exit.code.unwrap_or_default(),
        (_, State::Crashed) => exit::BUG,
        _ => exit::OK,
    }
}
