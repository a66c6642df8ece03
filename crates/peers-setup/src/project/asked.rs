//! What was asked for, before the target is looked at.

use std::path::Path;

use peers_model::command::Step;
use peers_model::{exit, limits};
use peers_place::file_exit;
use peers_sys::dir::{FileError, SafeDir};
use peers_sys::env::{Env, expand_home};
use peers_sys::term;

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
    /// The plan that is frozen.
    pub(super) planned: Option<Planned>,
}

/// Refuses what cannot be meant. Reads the files that were named.
pub(super) fn check(options: &ProjectOptions, env: &Env) -> Result<Asked, ScaffoldError> {
    let ProjectOptions { spec, plan, modes, .. } = options;
    if plan.is_some() && spec.is_some() {
        return Err(usage("--plan and --spec exclude each other", "a plan says what to do"));
    }
    let modes = modes.as_deref().map(names).transpose()?.unwrap_or_default();
    let implement = modes.iter().any(|mode| mode == IMPLEMENT);
    if implement && plan.is_none() {
        return Err(usage("the mode `implement` needs a plan", "`--plan FILE`"));
    }
    if implement && modes.len() > 1 {
        return Err(usage("the mode `implement` goes with no other mode", "`--modes implement`"));
    }
    let planned = plan.as_deref().map(Planned::read).transpose()?;
    let planned = planned.map(|planned| Planned { at_base: options.at_base.clone(), ..planned });
    if !modes.is_empty() && !implement {
        let named: Vec<_> = modes.iter().map(|name| format!("`{}`", term::line(name, 60))).collect();
        return Err(ScaffoldError::refused(
            exit::INVALID,
            format!("there is no mode {}; this version has none yet", named.join(", ")),
            "leave `--modes` out: goals are written into .peers/goals.yaml",
        ));
    }
    if plan.is_some() && !implement {
        return Err(usage("--plan goes with the mode `implement`", "`--modes implement`"));
    }
    let spec = spec.as_deref().map(|spec| text_of("--spec", spec, env)).transpose()?;
    Ok(Asked { spec, planned })
}

/// The names of modes in `a,b` and lists of it.
fn names(words: &[String]) -> Result<Vec<String>, ScaffoldError> {
    let names: Vec<String> = words
        .iter()
        .flat_map(|word| word.split(','))
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    if names.is_empty() {
        return Err(usage("--modes names no mode", "leave it out"));
    }
    Ok(names)
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
