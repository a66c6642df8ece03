//! What was asked for, before the target is looked at.

use std::path::{Path, PathBuf};

use peers_core::plan;
use peers_model::{exit, limits};
use peers_place::file_exit;
use peers_sys::dir::{FileError, SafeDir};
use peers_sys::env::{Env, expand_home};

use super::super::ScaffoldError;
use super::error::ProjectError;
use super::{ProjectOptions, shown};

/// The mode that goes with a plan.
const IMPLEMENT: &str = "implement";

/// What is to be written.
#[derive(Debug)]
pub(super) struct Asked {
    /// The text of `SPEC.md`.
    pub(super) spec: Option<String>,
}

/// Refuses what cannot be meant. Reads the files that were named.
pub(super) fn check(options: &ProjectOptions, env: &Env) -> Result<Asked, ScaffoldError> {
    let ProjectOptions { spec, plan, modes, .. } = options;
    if plan.is_some() && spec.is_some() {
        return Err(
            ProjectError::usage("--plan and --spec exclude each other", "a plan says what to do").into()
        );
    }
    let modes = modes.as_deref().map(names).transpose()?.unwrap_or_default();
    let implement = modes.iter().any(|mode| mode == IMPLEMENT);
    if implement && plan.is_none() {
        return Err(ProjectError::usage("the mode `implement` needs a plan", "`--plan FILE`").into());
    }
    if let Some(path) = plan {
        check_plan(path)?;
    }
    if !modes.is_empty() {
        return Err(ProjectError::UnknownMode { names: modes }.into());
    }
    if plan.is_some() {
        return Err(ProjectError::usage(
            "--plan goes with the mode `implement`, which this version does not have yet",
            "the plan has no errors; `--spec` writes a text into SPEC.md",
        )
        .into());
    }
    let spec = spec.as_deref().map(|spec| text_of("--spec", spec, env)).transpose()?;
    Ok(Asked { spec })
}

/// The names of modes in `a,b` and lists of it.
fn names(words: &[String]) -> Result<Vec<String>, ProjectError> {
    let names: Vec<String> = words
        .iter()
        .flat_map(|word| word.split(','))
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    if names.is_empty() {
        return Err(ProjectError::usage("--modes names no mode", "leave it out"));
    }
    Ok(names)
}

fn check_plan(path: &Path) -> Result<(), ScaffoldError> {
    let (dir, name) = parent(path).ok_or_else(|| no_plan(path))?;
    let bytes = match SafeDir::open_shared(&dir).and_then(|dir| dir.read(&name, limits::CONFIG)) {
        Ok(bytes) => bytes,
        Err(FileError::NotFound { .. }) => return Err(no_plan(path).into()),
        Err(error @ FileError::TooLarge { .. }) => {
            let errors = vec![plan::Problem { line: 1, message: error.to_string() }];
            return Err(ProjectError::Plan { path: path.to_owned(), errors }.into());
        }
        Err(error) => return Err(error.into()),
    };
    let plan::Parsed { plan: _, errors, warnings: _ } = plan::parse(&bytes);
    if errors.is_empty() { Ok(()) } else { Err(ProjectError::Plan { path: path.to_owned(), errors }.into()) }
}

/// The text itself that was given with `option`, or that of the file which it names.
///
/// # Errors
/// It says nothing, or looks like the name of a file that is not there or no text.
pub fn text_of(option: &str, spec: &str, env: &Env) -> Result<String, ScaffoldError> {
    if spec.trim().is_empty() {
        return Err(
            ProjectError::usage(format!("{option} says nothing"), "write the task, or name a file").into()
        );
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
        return if like_a_path { Err(no_file(option, &path).into()) } else { Ok(spec.to_owned()) };
    };
    let (dir, name) = parent(&real).ok_or_else(|| no_file(option, &path))?;
    match SafeDir::open_shared(&dir).and_then(|dir| dir.read_text(&name, limits::CONFIG)) {
        Ok(text) if text.trim().is_empty() => {
            Err(ProjectError::File { path, why: "is empty", exit: exit::USAGE }.into())
        }
        Ok(text) => Ok(text),
        // A word may be the name of a directory by chance; one that is written like a path is not.
        Err(FileError::NotRegular { .. }) if !spec.contains('/') && !spec.starts_with(['.', '~']) => {
            Ok(spec.to_owned())
        }
        Err(error @ FileError::NotUtf8 { .. }) => {
            let exit = file_exit(&error);
            Err(ProjectError::File { path, why: "is not UTF-8", exit }.into())
        }
        Err(FileError::NotRegular { .. }) => {
            Err(ProjectError::File { path, why: "is not a file", exit: exit::USAGE }.into())
        }
        Err(error) => Err(error.into()),
    }
}

fn no_plan(path: &Path) -> ProjectError {
    ProjectError::usage(format!("{} does not exist", shown(path)), "name a file that is there: `--plan FILE`")
}

fn no_file(option: &str, path: &Path) -> ProjectError {
    ProjectError::usage(
        format!("{} does not exist", shown(path)),
        format!("a text that begins like a path is read from a file: `{option} FILE`"),
    )
}

/// The directory of a file and its name in there.
fn parent(path: &Path) -> Option<(PathBuf, std::ffi::OsString)> {
    let name = path.file_name()?.to_owned();
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some((dir.to_owned(), name))
}
