//! `peers-ctl logs`.

use std::process::ExitCode;

use peers_console::error::CommandError;
use peers_fleet::{ConfigDir, ProjectName, runlog};
use peers_model::exit;
use peers_store::artifacts::tick_file;
use peers_store::layout::peers;
use peers_store::{Area, Disk as _};
use peers_sys::term;
use peers_tui::LogKind;
use peers_view::Level;
use serde_json::json;

use crate::absent;
use crate::board::Board;
use crate::ctl::{Ctl, failed};
use crate::many::Which;

/// Print the log of a loop, or what a peer printed in one tick
///
/// Without --tick, prints the log of the loop itself: what it said about its turns, and why it did not start.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// The last N lines
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    lines: u32,
    /// Only the log of this run
    #[arg(long, value_name = "RUN", conflicts_with = "tick")]
    run: Option<String>,
    /// The requests that a proxy of its agents led through, or refused; one JSON object each
    #[arg(long, value_enum, value_name = "PROXY", conflicts_with_all = ["tick", "run"])]
    proxy: Option<Proxy>,
    /// What was printed in this tick
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    tick: Option<u64>,
    /// Printed by this peer instead of the one whose tick it was
    #[arg(long, value_name = "PEER", requires = "tick")]
    peer: Option<String>,
    /// Its standard error
    #[arg(long, requires = "tick")]
    stderr: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Proxy {
    /// Connections to listed hosts
    Egress,
    /// Requests to the services of models
    Auth,
}

/// Most of a log that is read, bytes.
const WINDOW: u64 = 32 * 1024 * 1024;

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let config = ctl.config()?;
    let names = ctl.names(&config, &args.which.selection())?;
    let lines = usize::try_from(args.lines).unwrap_or(usize::MAX);
    let mut rows = Vec::new();
    let mut found = false;
    for name in &names {
        let project = peers_fleet::start::project(&config, name).map_err(failed)?;
        let read = match (args.tick, args.proxy) {
            (Some(tick), _) => of_tick(args, ctl, &project, tick),
            (None, Some(proxy)) => of_proxy(ctl, &project, proxy),
            (None, None) => of_loop(args, &config, &project),
        };
        let (path, text) = read.map_err(|error| ctl.about(&project, error))?;
        let all: Vec<&str> = text.lines().collect();
        let shown: Vec<String> = all
            .iter()
            .skip(all.len().saturating_sub(lines))
            .map(|line| term::block(line).into_owned())
            .collect();
        found |= !shown.is_empty();
        if ctl.json {
            rows.push(json!({"name": name, "path": path, "lines": shown}));
            continue;
        }
        if names.len() > 1 {
            ctl.out.line(&format!("==> {name} <=="))?;
        }
        for line in &shown {
            ctl.out.line(line)?;
        }
        if args.tick.is_some() && !args.stderr && shown.iter().any(|line| line.starts_with('{')) {
            let n = args.tick.unwrap_or_default().to_string();
            ctl.say(&ctl.spelt(
                "hint: `peers-ctl peek {} --tick {} --no-follow` has it in words",
                &[name.as_str(), &n],
            ));
        }
        if shown.is_empty() {
            ctl.say(&format!("{name}: nothing in {path}"));
        }
    }
    if ctl.json {
        ctl.document("logs", &rows, &[])?;
    }
    if args.tick.is_none() {
        next(ctl, &config, &names)?;
    }
    Ok(ExitCode::from(if found { exit::OK } else { exit::NEGATIVE }))
}

/// Says what those need that need somebody: a log tells how things were.
fn next(ctl: &Ctl, config: &ConfigDir, names: &[ProjectName]) -> Result<(), CommandError> {
    if ctl.json || ctl.quiet {
        return Ok(());
    }
    let looked = Board::default().rows(ctl, config, |project| names.contains(&project.name))?;
    ctl.warn_ended(&looked.warnings);
    for row in looked.rows.iter().filter(|row| row.attention.level() < Level::Ok) {
        let top = &row.attention.top;
        let action = top.action.as_deref().map(|action| format!(" -> {action}")).unwrap_or_default();
        ctl.say(&term::inline(&format!("{}: {}: {}{action}", row.name, top.level.word(), top.why)));
    }
    Ok(())
}

/// The log of the loop: path and text.
fn of_loop(
    args: &Args,
    config: &peers_fleet::ConfigDir,
    project: &peers_fleet::Project,
) -> Result<(String, String), CommandError> {
    let Some(logs) = config.logs_if_any().map_err(failed)? else {
        return Ok((project.log_path.clone(), String::new()));
    };
    let name = project.log_name();
    let path = logs.path().join(&name).to_string_lossy().into_owned();
    let bytes = match logs.read_tail(&name, WINDOW) {
        Ok(tail) => tail.bytes,
        Err(error) if error.is_not_found() => Vec::new(),
        Err(error) => return Err(failed(peers_run::boot::Finding::from(&error))),
    };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let Some(run) = &args.run else { return Ok((path, text)) };
    let mut inside = false;
    let mut of_run = String::new();
    for line in text.lines() {
        if let Some(header) = line.strip_prefix(runlog::HEADER) {
            inside = header.split_whitespace().any(|word| word.trim_end_matches(':') == run);
        }
        if inside {
            of_run.push_str(line);
            of_run.push('\n');
        }
    }
    if of_run.is_empty() {
        return Err(CommandError::new(
            exit::NEGATIVE,
            format!("run {} wrote nothing into {}", term::line(run, 40), term::inline(&path)),
        )
        .hint("older logs lie beside it, with a number behind the name"));
    }
    Ok((path, of_run))
}

/// The log of a proxy: path and text.
fn of_proxy(
    ctl: &Ctl,
    project: &peers_fleet::Project,
    proxy: Proxy,
) -> Result<(String, String), CommandError> {
    let kind = match proxy {
        Proxy::Egress => LogKind::Egress,
        Proxy::Auth => LogKind::Auth,
    };
    let place = ctl.cx(project).place()?;
    let (path, text) = peers_console::parts::proxy_log(&place, kind, WINDOW)?;
    Ok((path.to_string_lossy().into_owned(), text.unwrap_or_default()))
}

/// What a peer printed in a tick: path and text.
fn of_tick(
    args: &Args,
    ctl: &Ctl,
    project: &peers_fleet::Project,
    tick: u64,
) -> Result<(String, String), CommandError> {
    let cx = ctl.cx(project);
    let (_, mut disk) = cx.view()?;
    let number = peers_model::TickNo(tick);
    let peer = if let Some(peer) = &args.peer {
        peers_model::PeerName::new(peer.as_str()).map_err(|e| CommandError::usage(e.to_string()))?
    } else {
        let replay = peers_view::replay(&mut disk, number, None)?;
        let row = replay.as_ref().and_then(peers_view::Replay::record).map(|record| record.peer.clone());
        row.ok_or_else(|| absent::no_tick(&project.name, tick))?
    };
    let kind = if args.stderr { "stderr" } else { "stdout" };
    let file = format!("{}/{}", peers::LOG_PEERS, tick_file(number, peer.as_str(), &format!(".{kind}.log")));
    let bytes = disk.read(Area::Peers, &file, WINDOW)?;
    // What one that is no longer there has left can be read.
    if bytes.is_none()
        && let Some(why) = absent::no_peer(&mut disk, &peer)?
    {
        return Err(CommandError::new(exit::NEGATIVE, why));
    }
    let bytes = bytes.unwrap_or_default();
    Ok((format!(".peers/{file}"), String::from_utf8_lossy(&bytes).into_owned()))
}
