//! `peers man`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::CommandFactory as _;
use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_console::output::counted;
use peers_sys::dir::{FileMode, SafeDir};
use peers_sys::term;

/// Print the manual page, or write the pages of all commands into a directory
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where the pages go; it must exist
    dir: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let mut root = super::Cli::command();
    root.build();
    let Some(dir) = &args.dir else {
        cx.out.bytes(&page(&root)?)?;
        return Ok(ExitCode::SUCCESS);
    };
    let target = SafeDir::open_shared(dir)?;
    let mut pages = Vec::new();
    collect(&root, "peers", &mut pages)?;
    for (name, bytes) in &pages {
        target.publish_mode(format!("{name}.1"), bytes, FileMode::Plain)?;
    }
    let count = u64::try_from(pages.len()).unwrap_or(u64::MAX);
    cx.out.line(&format!("wrote {} to {}", counted(count, "page"), term::inline(&dir.to_string_lossy())))?;
    Ok(ExitCode::SUCCESS)
}

fn collect(
    command: &clap::Command,
    name: &str,
    pages: &mut Vec<(String, Vec<u8>)>,
) -> Result<(), CommandError> {
    pages.push((name.to_owned(), page(command)?));
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        collect(below, &format!("{name}-{}", below.get_name()), pages)?;
    }
    Ok(())
}

fn page(command: &clap::Command) -> Result<Vec<u8>, CommandError> {
    let mut bytes = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut bytes)?;
    Ok(bytes)
}
