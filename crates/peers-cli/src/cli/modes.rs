//! `peers modes`.

use std::process::ExitCode;

use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_console::modes::{self, Told};
use peers_model::command::Step;

/// List and show modes, and compare those of a project with this version
///
/// A mode is a bundle of goals, with the prompts of its reviews. `peers init --modes A,B` writes the goals of
/// a stack of modes into .peers/goals.yaml; from then on they are the operator's, as all goals. Modes of your
/// own lie in `$PEERS_MODES_DIR`, else in `~/.config/peers/modes`, one directory each.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
    /// Print the result as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// List the modes that `--modes` takes
    List,
    /// Show what a mode asks for, or print one of its files
    Show {
        /// Name of the mode
        name: String,
        /// Print this file of it, such as `prompts/skeptic-pass.md`
        file: Option<String>,
    },
    /// Compare the modes that the goals were made from with those of this version; exit 1 on any difference
    Diff,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let Told { command, body, text, notes, exit } = match &args.what {
        What::List => modes::list(&cx.env),
        What::Show { name, file } => modes::show(name, file.as_deref(), &cx.env)?,
        What::Diff => modes::diff(cx)?,
    };
    if args.json {
        cx.out.json(&format!("peers.{command}/1"), &body)?;
    } else {
        cx.out.data(&text)?;
        for note in notes {
            cx.out.advise(Step::from("note: ").join(note));
        }
    }
    Ok(ExitCode::from(exit))
}
