//! `peers bug-hunt`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use peers_checks::{CheckCx, CouldNot, DEFAULT_LIMIT, Outcome, bug_hunt};
use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_model::exit;

use super::check::Common;

/// Read the bug ledger: what commit messages report, resolve and verify
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Exit 0 exactly if no open bug blocks
    Gate(Ask),
    /// Exit 0 exactly if every blocking bug that is fixed was reproduced by a test first
    GateTdd(Ask),
    /// Print the ledger in numbers and lines
    Summary {
        #[command(flatten)]
        ask: Ask,
        /// The form of the output
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
    },
}

#[derive(Debug, clap::Args)]
struct Ask {
    /// The repository; by default the target
    #[arg(value_name = "DIR")]
    path: Option<PathBuf>,
    /// Judge this commit: a full id, a branch, a tag [default: HEAD]
    #[arg(long, value_name = "REF")]
    head: Option<String>,
    /// Leave out history up to this commit [default: where `peers init` ran, as the store says; without one nothing is left out]
    #[arg(long, value_name = "REF")]
    base: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

impl Ask {
    fn common(&self, cx: &Cx) -> Common {
        Common {
            repo: self.path.clone().unwrap_or_else(|| cx.target.clone()),
            head: self.head.clone(),
            base: self.base.clone(),
            json: self.json,
            limit: DEFAULT_LIMIT,
        }
    }
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    match &args.what {
        What::Gate(ask) => gate("bug-hunt gate", &ask.common(cx), bug_hunt::gate, cx),
        What::GateTdd(ask) => gate("bug-hunt gate-tdd", &ask.common(cx), bug_hunt::gate_tdd, cx),
        What::Summary { ask, format } => summary(&ask.common(cx), ask.json || *format == Format::Json, cx),
    }
}

fn gate(
    name: &str,
    asked: &Common,
    judge: fn(&CheckCx) -> Outcome,
    cx: &Cx,
) -> Result<ExitCode, CommandError> {
    let outcome = match asked.open(cx) {
        Ok(opened) => judge(&opened),
        Err(why) => Outcome::could_not(name, why),
    };
    asked.print(&outcome, cx)
}

fn summary(asked: &Common, as_json: bool, cx: &Cx) -> Result<ExitCode, CommandError> {
    let could_not = |why: CouldNot| CommandError::of(exit::INVALID, &why).hint_opt(why.hint.clone());
    let opened = asked.open(cx).map_err(could_not)?;
    let summary = bug_hunt::summary(&opened).map_err(could_not)?;
    if as_json {
        cx.out.json("peers.bug-hunt/1", &summary)?;
    } else {
        cx.out.data(&bug_hunt::summary_text(&summary))?;
    }
    Ok(ExitCode::SUCCESS)
}
