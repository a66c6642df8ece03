//! `--modes`: the goals of a stack of modes in place of those of the template.

use std::fmt::Write as _;

use peers_model::Timestamp;
use peers_modes::{Library, Merged};
use peers_sys::dir::SafeDir;
use peers_sys::env::Env;

use super::ScaffoldError;
use super::detect::Language;

/// The manifests by which a project says what it is written in.
const MANIFESTS: [(&str, Language); 5] = [
    ("pyproject.toml", Language::Python),
    ("setup.py", Language::Python),
    ("package.json", Language::Js),
    ("Cargo.toml", Language::Rust),
    ("go.mod", Language::Go),
];

/// What the modes of a command line ask for, and what their operator should know; `None` where none is asked for.
///
/// # Errors
/// [`ScaffoldError::Mode`] for modes that are unknown, do not stack or do not suit the project. Nothing was
/// written then.
pub(super) fn merged(
    words: Option<&[String]>,
    language: Option<Language>,
    work: Option<&SafeDir>,
    env: &Env,
) -> Result<Option<(Merged, Vec<String>)>, ScaffoldError> {
    let Some(words) = words else { return Ok(None) };
    let names = peers_modes::names(words)?;
    let library = Library::load(env);
    let there = |name: &str| work.is_some_and(|work| work.stat(name).is_ok_and(|found| found.is_some()));
    let languages: Vec<&str> = match language {
        Some(language) => vec![language.word()],
        None => {
            MANIFESTS.iter().filter(|(file, _)| there(file)).map(|(_, language)| language.word()).collect()
        }
    };
    let merged = peers_modes::merge(&library.resolve(&names, &languages)?)?;
    Ok(Some((merged, library.notes)))
}

/// `.peers/modes-applied.txt`, for people.
pub(super) fn applied(merged: &Merged, now: Timestamp) -> String {
    let mut text = String::new();
    for mode in &merged.applied {
        let _infallible = writeln!(text, "{now}  {}  v{}  sha256={}", mode.name, mode.version, mode.sha256);
    }
    text
}
