//! `peers-ctl list`.

use std::process::ExitCode;

use peers_console::error::CommandError;
use peers_console::output::table;
use peers_fleet::refresh::Seen;
use peers_sys::term;
use serde_json::{Value, json};

use crate::ctl::Ctl;
use crate::many::Which;

/// List the projects
///
/// Looks at each first: whether its loop runs is asked of the lock in its trusted store.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Show outcome, labels and what to do too
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
    /// The last start or stop, newest first
    Changed,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let config = ctl.config()?;
    let selection = args.which.or_all();
    let loaded = ctl.registry(&config)?;
    let names = if loaded.registry.projects().next().is_none() && args.which.selection().is_empty() {
        Vec::new()
    } else {
        selection.of(&loaded.registry, None).map_err(crate::ctl::failed)?
    };
    let (mut all, warnings) = ctl.seen(&config, &names)?;
    all.sort_by(|a, b| {
        let (a, b) = (&a.project, &b.project);
        let changed = |p: &peers_fleet::Project| p.last_stopped_at.max(p.last_started_at);
        let first = match args.sort {
            Sort::Name => std::cmp::Ordering::Equal,
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
    let mut rows = vec![head(args.wide)];
    rows.extend(all.iter().map(|one| cells(one, args.wide)));
    ctl.out.data(&table(&rows))?;
    Ok(ExitCode::SUCCESS)
}

fn head(wide: bool) -> Vec<String> {
    let more: &[&str] = if wide { &["OUTCOME", "LABELS"] } else { &[] };
    ["NAME", "STATE", "PID", "PATH"].iter().chain(more).map(|word| (*word).to_owned()).collect()
}

fn cells(one: &Seen, wide: bool) -> Vec<String> {
    let project = &one.project;
    let pid = project.runtime.as_ref().and_then(|runtime| runtime.pid);
    let mut cells = vec![
        project.name.to_string(),
        project.state.word().to_owned(),
        pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string()),
        term::line(&project.path, 200),
    ];
    if wide {
        let labels: Vec<String> =
            project.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        cells.push(project.outcome.map_or("-", peers_fleet::registry::Outcome::word).to_owned());
        cells.push(if labels.is_empty() { "-".to_owned() } else { term::line(&labels.join(" "), 80) });
    }
    cells
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
        "argv": project.runtime.as_ref().map(|runtime| &runtime.argv),
    })
}
