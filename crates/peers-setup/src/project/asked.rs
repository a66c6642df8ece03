//! What was asked for, before the target is looked at.

use std::path::Path;

use peers_model::command::Step;
use peers_model::{exit, limits};
use peers_modes::Merged;
use peers_place::file_exit;
use peers_sys::dir::{FileError, SafeDir};
use peers_sys::env::{Env, expand_home};

use super::super::ScaffoldError;
use super::super::error::shown;
use super::super::frozen::{Planned, parent};
use super::ProjectOptions;

/// The mode that goes with a plan.
const IMPLEMENT: &str = "implement";

/// What is to be written.
#[derive(Debug)]
pub(super) struct Asked {
    /// The text of `SPEC.md`.
    pub(super) spec: Option<String>,
    /// What its modes ask for.
    pub(super) modes: Option<Merged>,
    /// The plan that is frozen.
    pub(super) planned: Option<Planned>,
}

/// Refuses what cannot be meant. Reads the files that were named.
pub(super) fn check(options: &ProjectOptions, env: &Env) -> Result<Asked, ScaffoldError> {
    let ProjectOptions { spec, plan, modes, language, .. } = options;
    if plan.is_some() && spec.is_some() {
        return Err(usage("--plan and --spec exclude each other", "a plan says what to do"));
    }
    let names = modes.as_deref().map(peers_modes::names).transpose()?.unwrap_or_default();
    let implement = names.iter().any(|mode| mode == IMPLEMENT);
    if implement && plan.is_none() {
        return Err(usage("the mode `implement` needs a plan", "`--plan FILE`"));
    }
    let modes = super::super::modes::merged(modes.as_deref(), *language, None, env)?.map(|(modes, _)| modes);
    let planned = match &options.planned {
        Some(planned) => Some(planned.clone()),
        None => plan.as_deref().map(Planned::read).transpose()?,
    };
    if plan.is_some() && !implement {
        return Err(usage("--plan goes with the mode `implement`", "`--modes implement`"));
    }
    let spec = spec.as_deref().map(|spec| text_of("--spec", spec, env)).transpose()?;
    Ok(Asked { spec, modes, planned })
}

/// The text itself that was given with `option`, or that of the file which it names.
///
/// # Errors
/// It says nothing, or looks like the name of a file that is not there or no text.
pub fn text_of(option: &str, spec: &str, env: &Env) -> Result<String, ScaffoldError> {
    if spec.trim().is_empty() {
        return Err(usage(format!("{option} says nothing"), "write the task, or name a file"));
    }
    if spec.contains(['\n', '\0']) {
        return Ok(spec.to_owned());
    }
    let path = expand_home(Path::new(spec), env);
    let Ok(real) = path.canonicalize() else {
        // A word alone with a slash or an ending is no text that says what is wanted.
        let word = !spec.contains(char::is_whitespace);
        let like_a_path = spec.starts_with(['.', '~', '/'])
            || (word && (spec.contains('/') || Path::new(spec).extension().is_some()));
        return if like_a_path { Err(no_file(option, &path)) } else { Ok(spec.to_owned()) };
    };
    let (dir, name) = parent(&real).ok_or_else(|| no_file(option, &path))?;
    let refuse = |exit: u8, why: &str| Err(ScaffoldError::plain(exit, format!("{} {why}", shown(&path))));
    match SafeDir::open_shared(&dir).and_then(|dir| dir.read_text(&name, limits::CONFIG)) {
        Ok(text) if text.trim().is_empty() => refuse(exit::USAGE, "is empty"),
        Ok(text) => Ok(text),
        // A word may be the name of a directory by chance; one that is written like a path is not.
        Err(FileError::NotRegular { .. }) if !spec.contains('/') && !spec.starts_with(['.', '~']) => {
            Ok(spec.to_owned())
        }
        Err(error @ FileError::NotUtf8 { .. }) => refuse(file_exit(&error), "is not UTF-8"),
        Err(FileError::NotRegular { .. }) => refuse(exit::USAGE, "is not a file"),
        Err(error) => Err(error.into()),
    }
}

/// Options that do not go together, or say nothing.
fn usage(why: impl Into<String>, hint: impl Into<Step>) -> ScaffoldError {
    ScaffoldError::refused(exit::USAGE, why, hint)
}

fn no_file(option: &str, path: &Path) -> ScaffoldError {
    usage(
        format!("{} does not exist", shown(path)),
        format!("a text that begins like a path is read from a file: `{option} FILE`"),
    )
}
