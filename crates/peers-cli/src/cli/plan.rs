//! `peers plan`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_core::plan::{Parsed, parse};
use peers_model::exit;
use peers_setup::frozen;
use peers_sys::term;
use peers_view::plan_page;
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
        let name = term::line(&file.to_string_lossy(), 200);
        cx.out.data(&plan_page(&name, &parsed).text(cx.out.colour()))?;
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
