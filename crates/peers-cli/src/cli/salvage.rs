//! `peers salvage`.

use std::process::ExitCode;

use clap::Subcommand;
use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_console::output::table;
use peers_git::SalvageRef;
use peers_model::command::Step;
use peers_model::exit;
use peers_place::Place;
use peers_run::gitrepo::substrate;
use peers_store::FsDisk;
use peers_sys::dir::SafeDir;
use peers_sys::{clock, term, yaml};
use serde_json::json;

/// List or bring back what peers undid, and your uncommitted changes at a start
///
/// Nothing is undone without a copy: before a revert, a repair of history, a dry run's reset or `undo`
/// the tip, and the work tree if it was dirty, are kept in the trusted store. So are, as `start-...`, the
/// changes that you had not committed when a run began.
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
    let (place, mut disk) = cx.view()?;
    not_lost(&place, &mut disk)?;
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

/// After a run there is a control git directory; without it nobody knows what was kept.
fn not_lost(place: &Place, disk: &mut FsDisk) -> Result<(), CommandError> {
    let dir = place.control_git_path();
    let there = SafeDir::open_shared(&dir).is_ok_and(|dir| matches!(dir.stat("HEAD"), Ok(Some(_))));
    // A journal that cannot be read was written by somebody.
    let ran = peers_store::store::read_state(disk).map_or(true, |state| state.run.is_some());
    if there || !ran {
        return Ok(());
    }
    let message = format!(
        "the kept copies are unknown: the control git directory {} is gone",
        term::inline(&dir.to_string_lossy())
    );
    let hint = "restore it from a copy of the trusted store; the next `peers run` makes a new one without those copies";
    Err(CommandError::new(exit::INVALID, message).hint(hint))
}

fn restore(name: &str, as_json: bool, cx: &Cx) -> Result<ExitCode, CommandError> {
    cx.operators_alone_here("salvage restore")?;
    let (place, mut disk) = cx.store()?;
    not_lost(&place, &mut disk)?;
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
        let sentence = "inspect it with `git show {}`, take it over with `git merge {}`, or name it with `git branch NAME {}`";
        cx.out.advise(Step::text(sentence, &[reference.as_str(); 3]));
    }
    Ok(ExitCode::SUCCESS)
}
