//! `peers-ctl list`.

use peers_model::RunRequest;
use std::collections::BTreeSet;
use std::process::ExitCode;

use peers_console::error::CommandError;
use peers_console::output::table;
use peers_fleet::refresh::Seen;
use peers_sys::term;
use peers_view::NOT_SET_UP;
use serde_json::{Value, json};

use crate::board::{Board, Looked};
use crate::ctl::Ctl;
use crate::many::{OR_ALL, Which};

/// List the projects
///
/// All of them if none is named. Looks at each first: the lock in its trusted store says whether its loop
/// runs. With --wide, GATES counts green gates of all gates, then the same for reviews (`2/3 0/1`).
/// --wide changes nothing in --json; `peers-ctl dashboard --json` has the rest.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[command(mut_arg("names", |names| names.help(OR_ALL)))]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Also show what each did, what it cost, and what it needs
    #[arg(long)]
    wide: bool,
    /// Sort by this
    #[arg(long, value_enum, default_value_t = Sort::Name)]
    sort: Sort,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Sort {
    /// The name
    Name,
    /// The state
    State,
    /// The last start or stop, newest first; with --wide the newest record of the journal
    Changed,
    /// The most urgent first; for --wide without --json
    Attention,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let config = ctl.config()?;
    if matches!(args.sort, Sort::Attention) && (!args.wide || ctl.json) {
        return Err(CommandError::usage(
            "--sort attention goes with --wide for people, which looks what each asks for",
        ));
    }
    let selection = args.which.or_all();
    ctl.bring_up(&config, &selection)?;
    let loaded = ctl.registry(&config)?;
    let names = if loaded.registry.projects().next().is_none() && args.which.selection().is_empty() {
        Vec::new()
    } else {
        selection.of(&loaded.registry, None).map_err(crate::ctl::failed)?
    };
    if args.wide && !ctl.json {
        return wide(args, ctl, &config, &names);
    }
    let (mut all, warnings) = ctl.seen_of(&config, &names)?;
    all.sort_by(|a, b| {
        let (a, b) = (&a.project, &b.project);
        let changed = |p: &peers_fleet::Project| p.last_stopped_at.max(p.last_started_at);
        let first = match args.sort {
            Sort::Name | Sort::Attention => std::cmp::Ordering::Equal,
            Sort::State => a.state.word().cmp(b.state.word()),
            Sort::Changed => changed(b).cmp(&changed(a)),
        };
        first.then_with(|| a.name.cmp(&b.name))
    });
    if ctl.json {
        let rows: Vec<Value> = all.iter().map(row).collect();
        ctl.document("list", &rows, &warnings)?;
        return Ok(ExitCode::SUCCESS);
    }
    if all.is_empty() {
        ctl.say("no project is registered: `peers-ctl new PATH` sets one up, `peers-ctl add PATH` registers one that is");
        return Ok(ExitCode::SUCCESS);
    }
    ctl.warn_ended(&warnings);
    let head = ["NAME", "STATE", "PID", "PATH"].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(all.iter().map(cells)).collect();
    ctl.out.data(&table(&rows))?;
    Ok(ExitCode::SUCCESS)
}

/// The list with what each loop did and needs.
fn wide(
    args: &Args,
    ctl: &Ctl,
    config: &peers_fleet::ConfigDir,
    names: &[peers_fleet::ProjectName],
) -> Result<ExitCode, CommandError> {
    let names: BTreeSet<_> = names.iter().collect();
    let Looked { mut rows, warnings, .. } =
        Board::default().rows(ctl, config, |project| names.contains(&project.name))?;
    match args.sort {
        Sort::Name => rows.sort_by(|a, b| a.name.cmp(&b.name)),
        Sort::State => rows.sort_by(|a, b| (a.state.word(), &a.name).cmp(&(b.state.word(), &b.name))),
        Sort::Changed => {
            let at = |row: &peers_view::LoopRow| row.last_event.as_ref().map(|last| last.ts);
            rows.sort_by(|a, b| (at(b), &a.name).cmp(&(at(a), &b.name)));
        }
        Sort::Attention => peers_view::sort_by_attention(&mut rows),
    }
    ctl.warn(&warnings);
    let fleet = peers_view::Fleet { now: peers_sys::clock::now(), rows: &rows, warnings: &[] };
    let text = peers_view::list_text(&fleet, ctl.out.colour(), ctl.out.page_width().is_some());
    ctl.out.data(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn cells(one: &Seen) -> Vec<String> {
    let project = &one.project;
    let pid = project.runtime.as_ref().and_then(|runtime| runtime.pid);
    vec![
        project.name.to_string(),
        if one.seen.bare { NOT_SET_UP } else { project.state.word() }.to_owned(),
        pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string()),
        term::line(&project.path, 200),
    ]
}

/// A project for programs: the entry of the registry, and whether its loop is ours.
pub(crate) fn row(one: &Seen) -> Value {
    let project = &one.project;
    let managed = project.runtime.as_ref().map(|runtime| !runtime.peers_bin.is_empty());
    json!({
        "name": project.name, "path": project.path, "state": project.state, "outcome": project.outcome,
        "labels": project.labels, "notes": project.notes, "log_path": project.log_path,
        "added_at": project.added_at, "last_started_at": project.last_started_at,
        "last_stopped_at": project.last_stopped_at, "last_exit": project.last_exit,
        "restart": project.restart, "managed": managed,
        "run_id": project.runtime.as_ref().map(|runtime| &runtime.run_id),
        "pid": project.runtime.as_ref().and_then(|runtime| runtime.pid),
        "phase": project.runtime.as_ref().map(|runtime| runtime.phase),
        "argv": project.runtime.as_ref().map(|runtime| runtime.request.as_ref().map(RunRequest::words).unwrap_or_default()),
    })
}
