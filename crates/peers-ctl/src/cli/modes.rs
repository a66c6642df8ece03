//! `peers-ctl modes`.

use std::process::ExitCode;

use peers_console::error::CommandError;
use peers_console::modes::{self, Told};
use peers_console::output::Out;
use peers_model::command::Step;

use crate::ctl::Ctl;
use crate::many::{self, Which};

/// List and show modes, and compare those of a project with this version
///
/// A mode is a bundle of goals, with the prompts of its reviews. `peers-ctl new PATH --modes A,B` writes the
/// goals of a stack of modes into .peers/goals.yaml. Modes of your own lie in `$PEERS_MODES_DIR`, else in
/// `~/.config/peers/modes`, one directory each.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
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
    /// Compare the modes that the goals of a project were made from with those of this version; exit 1 on any difference
    Diff(Which),
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    match &args.what {
        What::List => told(modes::list(&ctl.env), &ctl.out, ctl),
        What::Show { name, file } => told(modes::show(name, file.as_deref(), &ctl.env)?, &ctl.out, ctl),
        What::Diff(which) => many::only(ctl, "modes diff", which, |project| {
            let cx = ctl.cx(project);
            told(modes::diff(&cx)?, &cx.out, ctl)
        }),
    }
}

fn told(
    Told { command, body, text, notes, exit }: Told,
    out: &Out,
    ctl: &Ctl,
) -> Result<ExitCode, CommandError> {
    if ctl.json {
        ctl.document(command, &body, &[])?;
    } else {
        ctl.out.data(&text)?;
        for note in notes.into_iter().filter(|_| !ctl.quiet) {
            out.advise(Step::from("note: ").join(note));
        }
    }
    Ok(ExitCode::from(exit))
}
