//! `peers plan`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_core::plan::{Mark, Parsed, Plan, Step, parse};
use peers_model::exit;
use peers_setup::frozen;
use peers_sys::term;
use serde_json::{Value, json};

/// Read a plan for the mode `implement`
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print what peers understands of a plan, and all that is wrong with it
    ///
    /// Needs no repository. Exit codes: 0 a valid plan, 3 not.
    Check {
        /// The file
        #[arg(value_hint = clap::ValueHint::FilePath)]
        file: PathBuf,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let What::Check { file, json } = &args.what;
    let parsed = parse(&frozen::read(file)?);
    if *json {
        cx.out.json("peers.plan-check/1", &data(&parsed))?;
    } else {
        cx.out.data(&text(file, &parsed))?;
    }
    Ok(if parsed.plan.is_some() { ExitCode::SUCCESS } else { ExitCode::from(exit::INVALID) })
}

fn data(parsed: &Parsed) -> Value {
    let Parsed { plan, errors, warnings } = parsed;
    let mut data = plan.as_ref().map_or_else(|| json!({}), |plan| json!(plan));
    if let Some(map) = data.as_object_mut() {
        map.insert("errors".to_owned(), json!(errors));
        map.insert("warnings".to_owned(), json!(warnings));
    }
    data
}

fn text(file: &Path, parsed: &Parsed) -> String {
    let Parsed { plan, errors, warnings } = parsed;
    let name = term::line(&file.to_string_lossy(), 200);
    let mut out = plan.as_ref().map(understood).unwrap_or_default();
    for (word, problems) in [("error", errors), ("warning", warnings)] {
        for problem in problems {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{name}:{}: {word}: {}", problem.line, term::line(&problem.message, 300));
        }
    }
    out
}

fn understood(plan: &Plan) -> String {
    let Plan { title, meta, steps } = plan;
    let surfaces: Vec<&str> = meta.surfaces.iter().map(|surface| surface.word()).collect();
    let mut out = format!("{}\n", term::line(title, 200));
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(out, "  {name}: {}", term::line(value, 200));
    };
    row("surfaces", &surfaces.join(", "));
    row("acceptance", &meta.acceptance);
    if let Some(e2e) = &meta.e2e {
        row("e2e", e2e);
    }
    if !meta.acceptance_files.is_empty() {
        row("acceptance files", &meta.acceptance_files.join(", "));
    }
    row("green ticks in a row", &meta.convergence_n.to_string());
    let done = steps.iter().filter(|step| step.mark == Mark::Done).count();
    row("steps", &format!("{} ({done} done)", steps.len()));
    for step in steps {
        let _ = writeln!(out, "  {}", term::line(&step_row(step), 300));
    }
    out
}

fn step_row(step: &Step) -> String {
    let mut row = format!("[{}] {} {}", step.mark.written(), step.id, step.text);
    if !step.touches.is_empty() {
        let _ = write!(row, "; touches {}", step.touches.join(", "));
    }
    if !step.depends.is_empty() {
        let before: Vec<String> = step.depends.iter().map(ToString::to_string).collect();
        let _ = write!(row, "; after {}", before.join(", "));
    }
    row
}
