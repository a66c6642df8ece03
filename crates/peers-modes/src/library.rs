//! The modes that there are, and which of them a project is for.

use std::collections::BTreeMap;
use std::path::Path;

use peers_model::exit;
use peers_sys::dir::{Entry, FileError, Kind, SafeDir};
use peers_sys::env::Env;
use peers_sys::term;
use peers_sys::yaml::closest;
use thiserror::Error;

use crate::bundle::{self, Bundle, Files, MODE, Origin};
use crate::shipped::SHIPPED;

/// Directories of modes that are looked at, and names of one directory.
const NAMES: usize = 1_000;
/// Files of one mode.
const FILES: usize = 256;
/// Directories of one mode, one in the other.
const DEPTH: usize = 4;
/// Bytes of its files.
const MODE_BYTES: u64 = 64 * 1024;
const GOALS_BYTES: u64 = 512 * 1024;
const FILE_BYTES: u64 = 1024 * 1024;

/// Why these modes cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "each is explained by its text")]
pub enum ModeError {
    #[error("--modes names no mode")]
    Empty,
    #[error("unknown mode `{name}`; available: {}", known.join(", "))]
    Unknown { name: String, known: Vec<String>, near: Option<String> },
    #[error("the mode `{by}` requires `{name}`, which does not exist")]
    Missing { by: String, name: String },
    #[error("modes require each other: {}", chain.join(" -> "))]
    Cycle { chain: Vec<String> },
    #[error("the mode `{exclusive}` stacks with no other, and {} asked for too", words(others))]
    Exclusive { exclusive: String, others: Vec<String> },
    #[error("the modes `{one}` and `{other}` do not stack")]
    Conflict { one: String, other: String },
    #[error("the mode `{mode}` is for {}, not for {language}", languages.join(", "))]
    Language { mode: String, languages: Vec<String>, language: String },
    #[error("the modes `{first}` and `{second}` have different goals with the id `{goal}`")]
    Collision { goal: String, first: String, second: String },
}

fn words(others: &[String]) -> String {
    let names: Vec<String> = others.iter().map(|name| format!("`{name}`")).collect();
    format!("{} {}", names.join(", "), if others.len() == 1 { "was" } else { "were" })
}

impl ModeError {
    /// The exit code of the command.
    #[must_use]
    pub fn exit(&self) -> u8 {
        match self {
            Self::Empty | Self::Exclusive { .. } | Self::Conflict { .. } => exit::USAGE,
            Self::Unknown { .. }
            | Self::Missing { .. }
            | Self::Cycle { .. }
            | Self::Language { .. }
            | Self::Collision { .. } => exit::INVALID,
        }
    }
}

/// The names in `a,b` and lists of it, each once.
///
/// # Errors
/// [`ModeError::Empty`].
pub fn names(words: &[String]) -> Result<Vec<String>, ModeError> {
    let mut names: Vec<String> = Vec::new();
    for name in words.iter().flat_map(|word| word.split(',')).map(str::trim).filter(|name| !name.is_empty()) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    if names.is_empty() { Err(ModeError::Empty) } else { Ok(names) }
}

/// All modes: those that ship, and those of the operator.
#[derive(Debug)]
pub struct Library {
    bundles: BTreeMap<String, Bundle>,
    /// What was left out or replaced, and why. Fit for a terminal.
    pub notes: Vec<String>,
}

impl Library {
    /// Reads all modes. What cannot be read is left out and noted.
    #[must_use]
    pub fn load(env: &Env) -> Self {
        let mut library = Self { bundles: BTreeMap::new(), notes: Vec::new() };
        for files in SHIPPED {
            let files: Files =
                files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect();
            match Bundle::read(files, Origin::BuiltIn) {
                Ok(bundle) => drop(library.bundles.insert(bundle.mode.name.clone(), bundle)),
                Err(why) => library.notes.push(format!("a mode that ships is not valid: {why}")),
            }
        }
        let named = env.absolute("PEERS_MODES_DIR");
        let Some(dir) = named.clone().or_else(|| Some(env.config_home()?.join("peers/modes"))) else {
            return library;
        };
        if let Err(error) = library.take(&dir)
            && (named.is_some() || !error.is_not_found())
        {
            library
                .notes
                .push(format!("no modes were read from {}: {error}", term::inline(&dir.to_string_lossy())));
        }
        library
    }

    /// Takes the modes of a directory.
    fn take(&mut self, dir: &Path) -> Result<(), FileError> {
        let root = SafeDir::open_shared(dir)?;
        let mut own: BTreeMap<String, Bundle> = BTreeMap::new();
        for Entry { name, .. } in root.list(NAMES)?.entries {
            let shown = term::line(&name.to_string_lossy(), 80);
            let found = match root.stat(&name)? {
                Some(stat) if stat.kind == Kind::Dir => root.subdir(&name)?,
                Some(stat) if stat.kind == Kind::Symlink => {
                    self.notes.push(format!("left out {shown}: it is a symbolic link"));
                    continue;
                }
                _ => continue,
            };
            if found.stat(MODE)?.is_none() {
                continue;
            }
            let mut files = Files::new();
            let read = collect(&found, "", DEPTH, &mut files);
            let read = read.and_then(|()| Bundle::read(files, Origin::User { shadows: false }));
            match read {
                Ok(bundle) if own.contains_key(&bundle.mode.name) => {
                    self.notes.push(format!(
                        "left out {shown}: another directory holds the mode `{}` too",
                        bundle.mode.name
                    ));
                }
                Ok(bundle) => drop(own.insert(bundle.mode.name.clone(), bundle)),
                Err(why) => self.notes.push(format!("left out {shown}: {why}")),
            }
        }
        for (name, mut bundle) in own {
            let shadows = self.bundles.contains_key(&name);
            bundle.origin = Origin::User { shadows };
            if shadows {
                self.notes.push(format!("the mode `{name}` of yours replaces the one that ships"));
            }
            self.bundles.insert(name, bundle);
        }
        Ok(())
    }

    /// All of them, by name.
    pub fn bundles(&self) -> impl Iterator<Item = &Bundle> {
        self.bundles.values()
    }

    /// The mode of this name.
    ///
    /// # Errors
    /// [`ModeError::Unknown`] lists those that there are.
    pub fn named(&self, name: &str) -> Result<&Bundle, ModeError> {
        self.bundles.get(name).ok_or_else(|| ModeError::Unknown {
            name: term::line(name, 80),
            known: self.bundles.keys().cloned().collect(),
            near: closest(name, self.bundles.keys().map(String::as_str)).map(str::to_owned),
        })
    }

    /// These modes with all that they require, what is required first.
    ///
    /// # Errors
    /// [`ModeError`]: something is unknown, or does not stack, or not with this language.
    pub fn resolve(&self, asked: &[String], languages: &[&str]) -> Result<Vec<&Bundle>, ModeError> {
        let mut stack: Vec<&Bundle> = Vec::new();
        for name in asked {
            self.with_required(self.named(name)?, &mut Vec::new(), &mut stack)?;
        }
        if let Some(alone) = stack.iter().find(|bundle| bundle.mode.exclusive && stack.len() > 1) {
            let others =
                stack.iter().map(|bundle| bundle.mode.name.clone()).filter(|name| *name != alone.mode.name);
            return Err(ModeError::Exclusive {
                exclusive: alone.mode.name.clone(),
                others: others.collect(),
            });
        }
        for bundle in &stack {
            if let Some(other) = stack.iter().find(|other| bundle.mode.conflicts.contains(&other.mode.name)) {
                return Err(ModeError::Conflict {
                    one: bundle.mode.name.clone(),
                    other: other.mode.name.clone(),
                });
            }
            let foreign = languages
                .iter()
                .find(|language| !bundle.mode.languages.iter().any(|known| known == *language));
            if let Some(language) = foreign.filter(|_| !bundle.mode.languages.is_empty()) {
                return Err(ModeError::Language {
                    mode: bundle.mode.name.clone(),
                    languages: bundle.mode.languages.clone(),
                    language: (*language).to_owned(),
                });
            }
        }
        Ok(stack)
    }

    fn with_required<'a>(
        &'a self,
        bundle: &'a Bundle,
        chain: &mut Vec<String>,
        stack: &mut Vec<&'a Bundle>,
    ) -> Result<(), ModeError> {
        let begun = chain.iter().position(|name| *name == bundle.mode.name);
        chain.push(bundle.mode.name.clone());
        if let Some(begun) = begun {
            return Err(ModeError::Cycle { chain: chain.split_off(begun) });
        }
        for name in &bundle.mode.requires {
            let required = self
                .bundles
                .get(name)
                .ok_or_else(|| ModeError::Missing { by: bundle.mode.name.clone(), name: name.clone() })?;
            self.with_required(required, chain, stack)?;
        }
        chain.pop();
        if !stack.iter().any(|known| known.mode.name == bundle.mode.name) {
            stack.push(bundle);
        }
        Ok(())
    }
}

/// Reads all files below a directory. Links and special files are refused, and so is what is too large.
fn collect(dir: &SafeDir, prefix: &str, depth: usize, files: &mut Files) -> Result<(), String> {
    let failed = |error: FileError| error.to_string();
    let listing = dir.list(FILES).map_err(failed)?;
    if listing.truncated {
        return Err(format!("it has more than {FILES} files"));
    }
    for Entry { name, .. } in listing.entries {
        let leaf = name.to_str().ok_or("the name of a file in it is not UTF-8")?;
        let path = format!("{prefix}{leaf}");
        let shown = || term::line(&path, 200);
        match dir.stat(&name).map_err(failed)?.map(|stat| stat.kind) {
            Some(Kind::Dir) if depth == 0 => return Err(format!("{} lies too deep", shown())),
            Some(Kind::Dir) => {
                let below = dir.subdir(&name).map_err(failed)?;
                collect(&below, &format!("{path}/"), depth - 1, files)?;
            }
            Some(Kind::File) => {
                let cap = match path.as_str() {
                    MODE => MODE_BYTES,
                    bundle::GOALS => GOALS_BYTES,
                    _ => FILE_BYTES,
                };
                let bytes = dir.read(&name, cap).map_err(failed)?;
                if files.len() >= FILES {
                    return Err(format!("it has more than {FILES} files"));
                }
                files.insert(path, bytes);
            }
            Some(Kind::Symlink) => return Err(format!("{} is a symbolic link", shown())),
            Some(Kind::Special) => return Err(format!("{} is not a regular file", shown())),
            None => return Err(format!("{} is gone", shown())),
        }
    }
    Ok(())
}
