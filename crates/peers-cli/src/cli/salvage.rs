//! `peers salvage`.

use std::process::ExitCode;

use clap::Subcommand;
use peers_git::SalvageRef;
use peers_model::exit;
use peers_run::gitrepo::substrate;
use peers_sys::{clock, term, yaml};
use serde_json::json;

use crate::cx::Cx;
use crate::error::CommandError;
use crate::output::table;

/// List or bring back what peers kept before it undid something
///
/// Nothing is undone without a copy: before a revert, a repair of history, a dry run's reset or `undo`
/// the tip, and the work tree if it was dirty, are kept in the trusted store.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the kept copies
    List {
        /// Print the list as JSON
        #[arg(long)]
        json: bool,
    },
    /// Put a copy into the repository as `refs/peers/salvage/NAME`; no branch and no file changes
    Restore {
        /// Its name in the list
        name: String,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    match &args.what {
        What::List { json } => list(*json, cx),
        What::Restore { name, json } => restore(name, *json, cx),
    }
}

fn list(as_json: bool, cx: &Cx) -> Result<ExitCode, CommandError> {
    let (place, _) = cx.view()?;
    let kept = match cx.control(&place)? {
        Some(control) => control.list_salvage()?,
        None => Vec::new(),
    };
    if as_json {
        let rows: Vec<_> = kept
            .iter()
            .map(|SalvageRef { name, commit, dirty, .. }| json!({"name": name, "commit": commit, "with_work_tree": dirty}))
            .collect();
        cx.out.json("peers.salvage/1", &json!({ "salvages": rows }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if kept.is_empty() {
        cx.out.talk("nothing was undone so far, so nothing is kept");
        return Ok(ExitCode::SUCCESS);
    }
    let row = |kept: &SalvageRef| {
        let what = if kept.dirty { "tip and work tree" } else { "tip" };
        vec![term::inline(&kept.name), kept.commit.short().to_owned(), what.to_owned()]
    };
    cx.out.data(&table(&kept.iter().map(row).collect::<Vec<_>>()))?;
    Ok(ExitCode::SUCCESS)
}

fn restore(name: &str, as_json: bool, cx: &Cx) -> Result<ExitCode, CommandError> {
    cx.operators_alone_here("salvage restore")?;
    let (place, _) = cx.store()?;
    let control = cx.control(&place)?;
    let kept = match &control {
        Some(control) => control.list_salvage()?,
        None => Vec::new(),
    };
    let Some(control) = control.filter(|_| kept.iter().any(|kept| kept.name == name)) else {
        let near = yaml::closest(name, kept.iter().map(|kept| kept.name.as_str()));
        let hint = near.map_or_else(
            || "`peers salvage list` shows them".to_owned(),
            |near| format!("did you mean `{}`?", term::inline(near)),
        );
        return Err(CommandError::new(
            exit::INVALID,
            format!("no salvage is called `{}`", term::inline(name)),
        )
        .hint(hint));
    };
    let commit = control.restore_salvage(name, &Cx::repo(&place)?, &substrate(clock::now()))?;
    let reference = format!("refs/peers/salvage/{name}");
    if as_json {
        cx.out.json("peers.salvage-restore/1", &json!({"name": name, "ref": reference, "commit": commit}))?;
    } else {
        cx.out.line(&format!("{reference} is {}", commit.short()))?;
        cx.out.talk(&format!(
            "look at it with `git show {reference}`, take it over with `git merge` or `git branch`"
        ));
    }
    Ok(ExitCode::SUCCESS)
}
