//! `peers schema`.

use std::process::ExitCode;

use clap::ValueEnum;
use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_store::schema::Described;

/// Print the JSON Schema of a file
///
/// For editors and programs (draft 2020-12). Needs no repository. `peers init` lays the first two down in
/// `.peers/schema/`, where the first line of each file points an editor to them.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Which file
    #[arg(value_enum)]
    file: File,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum File {
    /// `.peers/config.yaml`
    Config,
    /// `.peers/goals.yaml`
    Goals,
    /// `.peers/state.json`
    State,
    /// One line of `.peers/log/runs.jsonl`
    Runs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let described = match args.file {
        File::Config => Described::Config,
        File::Goals => Described::Goals,
        File::State => Described::State,
        File::Runs => Described::Runs,
    };
    cx.out.data(&described.text())?;
    Ok(ExitCode::SUCCESS)
}
