//! `peers codemap` and `peers agents-doc`.

use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;
use peers_checks::codemap::{self, AGENTS, MAP, Refreshed};
use peers_checks::{Asked, CheckCx, CouldNot};
use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_model::command::Step;
use peers_model::{exit, limits};
use peers_run::primer;
use peers_sys::SafeDir;
use peers_sys::dir::FileError;
use peers_sys::term;
use serde_json::json;

/// Entries that are named.
const NAMED: usize = 20;

/// Keep the map of the public names of a project
///
/// `CODEMAP.yaml` at the top of the repository lists every public module, class, function and method of the
/// committed sources, each with a summary that people and agents write.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Put ids, kinds, files, lines and signatures right, and keep the summaries
    ///
    /// Makes CODEMAP.yaml if it is not there. Reads the commit HEAD, so commit the sources first. Names
    /// entries without a summary, and those whose signature is another than the one before: read their
    /// summary again.
    #[command(verbatim_doc_comment)]
    Refresh {
        /// Write nothing; exit 1 if the file would change
        #[arg(long)]
        check: bool,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
}

/// Write the text for agents that CODEMAP.yaml gives
///
/// Modules with their classes, methods and functions, each with its summary, in
/// docs/AGENTS-codemap.md. The same map gives the same bytes.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct AgentsArgs {
    /// Write nothing; exit 1 if the file is not there or differs
    #[arg(long)]
    check: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let What::Refresh { check, json } = args.what;
    let place = cx.place()?;
    let work = place.open_work()?;
    let before = read(&work, MAP)?;
    let mut store = place.open_view_disk().ok();
    let asked = Asked { repo: place.work_dir(), control: None, head: None, base: None };
    let opened = CheckCx::open(asked, store.as_mut()).map_err(could_not)?;
    let mut known = store.as_mut().map(primer::outlines).unwrap_or_default();
    let files = known.len();
    let made = codemap::refresh(&opened, before.as_deref(), &mut known).map_err(could_not)?;
    if let Some(disk) = store.as_mut().filter(|_| made.parsed > 0 || known.len() != files) {
        primer::keep_outlines(disk, &known);
    }
    let changed = before.as_deref() != Some(made.text.as_str());
    if changed && !check {
        work.publish(MAP, made.text.as_bytes())?;
    }
    let Refreshed { entries, blank, stale, unreadable, text: _, parsed: _ } = &made;
    if json {
        let unreadable: Vec<&str> = unreadable.iter().map(|(path, _)| path.as_str()).collect();
        let body = json!({"file": MAP, "changed": changed, "written": changed && !check, "entries": entries,
            "without_summary": blank, "stale": stale, "unreadable": unreadable});
        cx.out.json("peers.codemap/1", &body)?;
    } else {
        let what = match (changed, check) {
            (false, _) => "is up to date",
            (true, true) => "is not up to date",
            (true, false) => "was written",
        };
        cx.out.line(&format!("{MAP} {what}: {entries} entries, {blank} without a summary"))?;
        for id in stale.iter().take(NAMED) {
            cx.out.line(&format!("  signature changed: {}", term::line(id, 200)))?;
        }
        if stale.len() > NAMED {
            cx.out.line(&format!("  and {} more", stale.len() - NAMED))?;
        }
        for (path, why) in unreadable.iter().take(NAMED) {
            cx.out.talk(&format!(
                "warning: {} cannot be read: {}",
                term::line(path, 200),
                term::line(why, 200)
            ));
        }
    }
    Ok(ExitCode::from(if changed && check { exit::NEGATIVE } else { exit::OK }))
}

pub(crate) fn agents(args: &AgentsArgs, cx: &Cx) -> Result<ExitCode, CommandError> {
    let place = cx.place()?;
    let work = place.open_work()?;
    let Some(map) = read(&work, MAP)? else {
        return Err(CommandError::new(exit::INVALID, format!("there is no {MAP}"))
            .hint(Step::text("`peers codemap refresh` makes one", &[])));
    };
    let due = codemap::agents(&map).map_err(could_not)?;
    let (dir, name) = AGENTS.rsplit_once('/').unwrap_or((".", AGENTS));
    let there = match work.subdir(dir) {
        Ok(dir) => read(&dir, name)?,
        Err(FileError::NotFound { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let changed = there.as_deref() != Some(due.as_str());
    if changed && !args.check {
        work.create_subdir(dir)?.publish(name, due.as_bytes())?;
    }
    if args.json {
        let body = json!({"file": AGENTS, "changed": changed, "written": changed && !args.check});
        cx.out.json("peers.agents-doc/1", &body)?;
    } else {
        let what = match (changed, args.check) {
            (false, _) => "is up to date",
            (true, true) => "is not up to date",
            (true, false) => "was written",
        };
        cx.out.line(&format!("{AGENTS} {what}"))?;
    }
    Ok(ExitCode::from(if changed && args.check { exit::NEGATIVE } else { exit::OK }))
}

fn could_not(why: CouldNot) -> CommandError {
    CommandError::new(exit::INVALID, why.what).hint_opt(why.hint)
}

/// A text file that is there.
fn read(dir: &SafeDir, name: &str) -> Result<Option<String>, CommandError> {
    match dir.read(Path::new(name), limits::MIB * 8) {
        Ok(bytes) => String::from_utf8(bytes)
            .map(Some)
            .map_err(|_| CommandError::new(exit::INVALID, format!("{name} is not UTF-8"))),
        Err(FileError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
