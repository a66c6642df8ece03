//! `peers-ctl wait`.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use peers_console::error::CommandError;
use peers_fleet::registry::State;
use peers_fleet::{ConfigDir, Project, ProjectName};
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
/// A project that is unknown in so many looks in a row is not waited for.
const UNKNOWN: u32 = 3;

/// Wait until loops have stopped, or until one needs you
///
/// For scripts. Exit codes: 0 if all of them stopped as they should, else that of the first that did not: 10
/// budget, 11 stuck, 13 peer, 5 refused, 70 failed or died, 128+N stopped by signal N (an operator's stop is
/// 143); 124 if the time is over. If three checks in a row cannot tell whether a loop runs, because its
/// directory or its store is missing, it is not waited for any longer and counts as 5. With --for attention:
/// 0 as soon as one of them needs you.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// What to wait for
    #[arg(long = "for", value_enum, default_value_t = What::Stopped, value_name = "WHAT")]
    what: What,
    #[arg(help = lasting!("Give up after this time"))]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Until none of them runs
    Stopped,
    /// Until one of them needs you
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
    let mut board = Board::live();
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
    let mut unknown: BTreeMap<ProjectName, u32> = BTreeMap::new();
    let mut ended = Vec::new();
    loop {
        let (all, mut warnings) = ctl.seen_of(config, names)?;
        ctl.warn_ended(&warnings);
        ended.extend(Ctl::ended_of(&warnings));
        warnings.retain(|warning| !ended.contains(warning));
        warnings.extend(ended.iter().cloned());
        for one in &all {
            let looks = unknown.entry(one.project.name.clone()).or_default();
            *looks = if one.project.state == State::Unknown { looks.saturating_add(1) } else { 0 };
        }
        let for_good = |name: &ProjectName| unknown.get(name).is_some_and(|looks| *looks >= UNKNOWN);
        let busy = |project: &Project| match project.state {
            State::Running => true,
            State::Unknown => !for_good(&project.name),
            State::Fresh | State::Stopped | State::Crashed => false,
        };
        let over = until.is_some_and(|until| clock::mono() >= until);
        let waiting = all.iter().filter(|one| busy(&one.project)).count();
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
                if let Some(why) = crate::board::unknown(one) {
                    ctl.out.talk(&format!("warning: whether {} runs is not known: {why}", one.project.name));
                }
            }
        }
        if waiting > 0 {
            return Ok(ExitCode::from(exit::TIMEOUT));
        }
        let bad = codes.into_iter().find(|code| *code != exit::OK);
        return Ok(ExitCode::from(bad.unwrap_or(exit::OK)));
    }
}

/// The number of SIGTERM.
const TERM: i32 = 15;

/// The exit code of a loop that is over, as far as it is known.
fn code(project: &Project) -> u8 {
    match project.state {
        // What is kept may be of a run before the one that died.
        State::Crashed => exit::BUG,
        State::Unknown => exit::REFUSED,
        State::Fresh | State::Running => exit::OK,
        State::Stopped => {
            let known = project.last_exit.as_ref();
            let code = known.and_then(|exit| exit.code.or_else(|| exit.signal.map(exit::signalled)));
            // It was told to end, and ended without a last word.
            code.unwrap_or_else(|| exit::signalled(TERM))
        }
    }
}
