//! `peers-ctl add`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use peers_console::error::CommandError;
use peers_fleet::{ProjectName, registry};
use peers_model::exit;
use peers_place::{Place, PlaceError};
use peers_sys::term;
use serde_json::json;

use crate::ctl::{Ctl, failed};

/// Register a repository that is set up, or will be
///
/// PATH with a slash, `.`, `..` or `~` is taken as it stands; a bare word lies below the projects root
/// (`$PEERS_PROJECTS_ROOT`). Nothing in the repository is changed.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The top of the repository
    path: PathBuf,
    /// Name of the project [default: the name of its directory]
    #[arg(long)]
    name: Option<String>,
    /// A label to select it by; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    label: Vec<(String, String)>,
    /// A note for people
    #[arg(long, value_name = "TEXT", default_value = "")]
    notes: String,
}

pub(crate) fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("must be KEY=VALUE")?;
    registry::label(key, value).map_err(|invalid| invalid.to_string())?;
    Ok((key.to_owned(), value.to_owned()))
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let path = peers_fleet::config::project_path(&args.path, &ctl.env).map_err(failed)?;
    let config = ctl.config_made()?;
    let added = peers_fleet::roster::Addition {
        path,
        name: args.name.clone(),
        labels: args.label.iter().cloned().collect(),
        notes: args.notes.clone(),
        replace: false,
    };
    let project = peers_fleet::roster::add(&config, &ctl.env, &added).map_err(failed)?;
    registered(ctl, &project.name, Path::new(&project.path), "add")?;
    Ok(ExitCode::from(exit::OK))
}

/// Tells what was registered, and what comes next.
pub(crate) fn registered(
    ctl: &Ctl,
    name: &ProjectName,
    path: &Path,
    command: &str,
) -> Result<(), CommandError> {
    let shown = term::inline(&path.to_string_lossy());
    let opened = Place::locate(path, &ctl.env).and_then(|place| place.open_view_disk());
    let set_up = opened.is_ok();
    if ctl.json {
        return ctl.document(
            command,
            &json!({"name": name, "path": path.to_string_lossy(), "set_up": set_up}),
            &[],
        );
    }
    ctl.out.line(&format!("{name} -> {shown}"))?;
    if set_up {
        ctl.say(&ctl.spelt("next: `peers-ctl start {}`", &[name.as_str()]));
    } else if let Err(PlaceError::NoStore { was: Some(was), .. }) = &opened {
        let [at, was] = [path, was].map(|path| term::quoted(&path.to_string_lossy()));
        ctl.say(&ctl.spelt(
            "warning: it was moved, and its trusted store is where it was: `peers -C {} store attach {}` takes that along, then `peers-ctl start {}`",
            &[&at, &was, name.as_str()],
        ));
    } else {
        let quoted = term::quoted(&path.to_string_lossy());
        ctl.say(&ctl.spelt(
            "warning: it is not set up yet: `peers -C {} init` does that, then `peers-ctl start {}`",
            &[&quoted, name.as_str()],
        ));
    }
    Ok(())
}
