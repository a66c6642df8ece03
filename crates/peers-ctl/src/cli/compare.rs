//! `peers-ctl compare`.

use std::process::ExitCode;

use peers_console::error::CommandError;
use peers_console::ledger;
use peers_core::bugs::Counts;
use peers_fleet::select::{is_pattern, matches};
use peers_fleet::{Project, ProjectName};
use peers_model::exit;
use peers_sys::{clock, term};
use peers_view::{
    CompareInput, FleetWarning, Measured, compare, compare_csv, compare_json, compare_text, run_named,
};

use crate::ctl::{Ctl, failed};

/// Compare loops, or single runs of them, side by side
///
/// `NAME` is a whole loop, `NAME@RUN` one run of it (the beginning of its id is enough), a pattern the median
/// of all that it matches. What differs from the first is told with it.
///
/// `wasted` is the duration of failed turns. `clean` counts the last ticks in a row, of a run only its own, that
/// succeeded with a change or a review and reported no bug that stands against the goals.
///
/// Exit codes: 0, or 3 if fewer than two can be found and read, or 7 if one is left out.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Two or more
    #[arg(value_name = "NAME[@RUN]", required = true, num_args = 1..)]
    what: Vec<String>,
    /// Print it as CSV; `true` below `NAME (at least)` means that NAME may have used more than the value
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let config = ctl.config()?;
    let registry = ctl.registry(&config)?.registry;
    let (mut inputs, mut missing) = (Vec::new(), Vec::new());
    for what in &args.what {
        let (name, run) = match what.split_once('@') {
            Some((name, run)) => (name, Some(run)),
            None => (what.as_str(), None),
        };
        let group = is_pattern(name).then(|| what.clone());
        let found: Vec<&Project> =
            registry.projects().filter(|project| matches(name, project.name.as_str())).collect();
        if found.is_empty() {
            missing.push(not_found(what));
        }
        for project in found {
            match measured(ctl, project, run) {
                Ok(Some((title, measured))) => {
                    inputs.push(CompareInput { name: title, group: group.clone(), measured });
                }
                Ok(None) => missing.push(not_found(what)),
                Err(error) => missing.push(FleetWarning {
                    code: UNREADABLE.to_owned(),
                    message: format!("{} is left out: {}", project.name, error.summary()),
                    project: Some(project.name.to_string()),
                }),
            }
        }
    }
    let comparison = compare(&inputs);
    if comparison.columns.len() < 2 && missing.is_empty() {
        return Err(CommandError::usage("there is one column: to compare takes two at least")
            .hint("`NAME@RUN` is one run of a project, and a pattern is one column of all that it fits"));
    }
    if comparison.columns.len() < 2 {
        // What is not found the error itself names.
        for left in missing.iter().filter(|left| left.code == UNREADABLE) {
            ctl.say(&format!("warning: {}", left.message));
        }
        let names: Vec<&str> = missing.iter().filter_map(|left| left.project.as_deref()).collect();
        let message = format!("there is nothing to compare: {} cannot be found or read", names.join(", "));
        return Err(CommandError::new(exit::INVALID, message)
            .hint("`peers-ctl list` shows the projects, `peers-ctl replay NAME` the runs"));
    }
    for left in &missing {
        ctl.say(&format!("warning: {}", left.message));
    }
    if ctl.json {
        ctl.out.data(&compare_json(&comparison, &missing, clock::now()))?;
    } else if args.csv {
        ctl.out.data(&compare_csv(&comparison))?;
    } else {
        ctl.out.data(&compare_text(&comparison, ctl.out.colour()))?;
    }
    Ok(ExitCode::from(if missing.is_empty() { exit::OK } else { exit::PARTIAL }))
}

/// The code of what is there and cannot be read.
const UNREADABLE: &str = "unreadable";

fn not_found(what: &str) -> FleetWarning {
    let what = term::line(what, 80);
    let message = format!("{what} cannot be found, and is left out");
    FleetWarning { code: "not-found".to_owned(), message, project: Some(what) }
}

/// What a loop, or a run of it, amounts to, with its title; `None` where there is no such run.
pub(crate) fn measured(
    ctl: &Ctl,
    project: &Project,
    run: Option<&str>,
) -> Result<Option<(String, Measured)>, CommandError> {
    peers_fleet::start::located(project, &ctl.env).map_err(failed)?;
    let cx = ctl.cx(project);
    let (place, mut disk) = cx.view()?;
    let name: &ProjectName = &project.name;
    let Some(run) = run else {
        let Some(measured) = Measured::read(&mut disk, None)? else { return Ok(None) };
        let bugs = ledger::ledger(&place, &mut disk, &cx).ok();
        let total = bugs.as_ref().map(|ledger| u64::try_from(ledger.bugs.len()).unwrap_or(u64::MAX));
        return Ok(Some((name.to_string(), measured.with_bugs(bugs.as_ref().map(Counts::of), total))));
    };
    let Some(id) = run_named(&mut disk, run)? else { return Ok(None) };
    let measured = Measured::read(&mut disk, Some(&id))?;
    Ok(measured.map(|measured| (format!("{name}@{id}"), measured)))
}
