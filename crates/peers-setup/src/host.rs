//! Our entries in the stop hooks of the operator's own tools, outside of the repository.
//!
//! The tools are independent of each other, and nothing here is an error of the command: what cannot be done
//! is told. A file is never written through a link, and what was in it is kept beside it first.

use std::path::{Path, PathBuf};

use peers_model::limits;
use peers_modes::hooks::{self, Merged, Tool};
use peers_sys::clock;
use peers_sys::dir::{FileError, FileStat, Kind, SafeDir};
use peers_sys::env::Env;
use peers_sys::error::chain;
use serde::Serialize;

/// What is done about the stop hooks of the operator's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostHooks {
    /// Our entry is added, or brought up to date.
    Install,
    /// Our entries are taken out.
    Uninstall,
}

/// What became of one tool's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Did {
    /// Nothing had to be done.
    Noop,
    /// Our entry was there with another command.
    Updated,
    /// Our entry was added.
    Installed,
    /// Our entries were taken out.
    Removed,
    /// The file was left alone.
    Skipped,
}

impl Did {
    /// The word for people and machines.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Noop => "noop",
            Self::Updated => "updated",
            Self::Installed => "installed",
            Self::Removed => "removed",
            Self::Skipped => "skipped",
        }
    }
}

/// One tool's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostHook {
    /// The tool.
    pub tool: &'static str,
    /// Its file.
    pub file: String,
    /// What became of it.
    pub did: Did,
    /// Why it was left alone, in words that go on after its name.
    pub why: Option<String>,
    /// The name of the copy of what was in it, beside it.
    pub backup: Option<String>,
}

/// Does it for these tools, or with `dry_run` only says what would be done.
pub(super) fn apply(
    act: HostHooks,
    tools: &[Tool],
    (top, env): (&Path, &Env),
    dry_run: bool,
) -> Vec<HostHook> {
    let one = |tool: Tool| {
        let path = place(tool, env)?;
        let done = match (act, hooks::usable(top)) {
            (HostHooks::Install, Some(target)) => install(tool, &path, target, dry_run),
            (HostHooks::Uninstall, Some(target)) => uninstall(&path, target, dry_run),
            (HostHooks::Install, None) => Err("cannot name the path of this repository".to_owned()),
            (HostHooks::Uninstall, None) => Ok((Did::Noop, None)),
        };
        let (did, why, backup) = match done {
            Ok((did, backup)) => (did, None, backup),
            Err(why) => (Did::Skipped, Some(why), None),
        };
        Some(HostHook { tool: tool.name(), file: path.to_string_lossy().into_owned(), did, why, backup })
    };
    tools.iter().copied().filter_map(one).collect()
}

/// The file of a tool; nothing where there is no home.
fn place(tool: Tool, env: &Env) -> Option<PathBuf> {
    match tool {
        Tool::Claude => Some(dir("CLAUDE_CONFIG_DIR", ".claude", env)?.join("settings.json")),
        Tool::Codex => Some(codex_dir(env)?.join("hooks.json")),
    }
}

/// Where codex keeps its configuration.
pub(super) fn codex_dir(env: &Env) -> Option<PathBuf> {
    dir("CODEX_HOME", ".codex", env)
}

fn dir(variable: &str, usual: &str, env: &Env) -> Option<PathBuf> {
    env.absolute(variable).or_else(|| env.home().map(|home| home.join(usual)))
}

type Done = Result<(Did, Option<String>), String>;

fn install(tool: Tool, path: &Path, target: &str, dry_run: bool) -> Done {
    let file = Settings::open(path, !dry_run)?;
    let merged = hooks::merge(file.text.as_deref(), target, tool).map_err(str::to_owned)?;
    let (did, text) = match merged {
        Merged::Same => return Ok((Did::Noop, None)),
        Merged::Updated(text) => (Did::Updated, text),
        Merged::Installed(text) => (Did::Installed, text),
    };
    Ok((did, file.replace(&text, dry_run)?))
}

fn uninstall(path: &Path, target: &str, dry_run: bool) -> Done {
    let file = Settings::open(path, false)?;
    let Some(text) = &file.text else { return Ok((Did::Noop, None)) };
    match hooks::unmerge(text, target).map_err(str::to_owned)? {
        None => Ok((Did::Noop, None)),
        Some(text) => Ok((Did::Removed, file.replace(&text, dry_run)?)),
    }
}

/// A file of settings that may be missing.
struct Settings {
    /// Absent where the directory is not there and was not to be made.
    dir: Option<SafeDir>,
    name: String,
    stat: Option<FileStat>,
    text: Option<String>,
}

impl Settings {
    /// Reads it, if it is a plain file with one name.
    fn open(path: &Path, make: bool) -> Result<Self, String> {
        let said = |error: &FileError| format!("cannot be read: {}", chain(error));
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let above = path.parent().unwrap_or(path);
        let dir = match SafeDir::open_shared(above) {
            Ok(dir) => dir,
            Err(error) if error.is_not_found() && !make => {
                return Ok(Self { dir: None, name, stat: None, text: None });
            }
            Err(error) if error.is_not_found() => {
                SafeDir::create_root(above).map_err(|e| format!("cannot be made: {}", chain(&e)))?
            }
            Err(error) => return Err(said(&error)),
        };
        let stat = dir.stat(&name).map_err(|e| said(&e))?;
        match &stat {
            Some(found) if found.kind == Kind::Symlink => return Err("is a symbolic link".to_owned()),
            Some(found) if found.kind != Kind::File => return Err("is not a regular file".to_owned()),
            Some(found) if found.links != 1 => return Err("has more than one name (a hard link)".to_owned()),
            Some(_) | None => {}
        }
        let text = match dir.read_opt(&name, limits::CONFIG).map_err(|e| said(&e))? {
            Some(bytes) => Some(String::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned())?),
            None => None,
        };
        Ok(Self { dir: Some(dir), name, stat, text })
    }

    /// Writes it anew, or removes it where nothing is left, after a copy of what was in it. The copy's name.
    fn replace(&self, text: &str, dry_run: bool) -> Result<Option<String>, String> {
        let said = |error: FileError| format!("cannot be written: {}", chain(&error));
        let (Some(dir), false) = (&self.dir, dry_run) else { return Ok(None) };
        let mode = self.stat.as_ref().map_or(0o600, |stat| stat.mode & 0o777);
        let mut copy = None;
        if let Some(old) = self.text.as_deref().filter(|old| !old.is_empty()) {
            let name = format!("{}.bak.peers-{}", self.name, stamp());
            match dir.publish_new_as(&name, old.as_bytes(), mode) {
                // Two changes within a second: the older copy is the one from before both.
                Ok(()) | Err(FileError::AlreadyExists { .. }) => copy = Some(name),
                Err(error) => return Err(said(error)),
            }
        }
        if text.is_empty() {
            dir.remove_file(&self.name).map_err(said)?;
        } else {
            dir.publish_as(&self.name, text.as_bytes(), mode).map_err(said)?;
        }
        Ok(copy)
    }
}

/// `20260131T235959`.
fn stamp() -> String {
    let now = clock::now().to_string();
    let plain: String =
        now.chars().take_while(|c| *c != '.' && *c != 'Z').filter(|c| !matches!(c, '-' | ':')).collect();
    plain
}

/// Whether one of the operator's tools has a stop hook for this repository.
#[must_use]
pub fn is_hooked(top: &Path, env: &Env) -> bool {
    let would = apply(HostHooks::Install, &Tool::ALL, (top, env), true);
    would.iter().any(|hook| matches!(hook.did, Did::Noop | Did::Updated))
}

/// Takes our entries out of the stop hooks of the operator's tools, and does nothing else.
#[must_use]
pub fn uninstall_host_hooks(top: &Path, env: &Env, dry_run: bool) -> Vec<HostHook> {
    let top = top.canonicalize().unwrap_or_else(|_| top.to_owned());
    apply(HostHooks::Uninstall, &Tool::ALL, (&top, env), dry_run)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::world::{World, mode};

    fn did(found: &[HostHook]) -> Vec<(Did, Option<&str>)> {
        found.iter().map(|hook| (hook.did, hook.why.as_deref())).collect()
    }

    #[test]
    fn a_file_keeps_its_mode_and_what_was_in_it_is_kept_beside_it() {
        let world = World::new();
        let (repo, dir) = (world.repo("repo"), world.dir("home/.claude"));
        let settings = dir.join("settings.json");
        std::fs::write(&settings, "{\"model\": \"x\"}").unwrap();
        std::fs::set_permissions(&settings, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
        let dry = apply(HostHooks::Install, &Tool::ALL, (&repo, &world.env), true);
        assert_eq!(did(&dry), [(Did::Installed, None), (Did::Installed, None)]);
        assert!(!world.root.join("home/.codex").exists(), "a dry run makes nothing");
        let found = apply(HostHooks::Install, &Tool::ALL, (&repo, &world.env), false);
        assert_eq!(did(&found), [(Did::Installed, None), (Did::Installed, None)]);
        let backup = dir.join(found[0].backup.as_ref().unwrap());
        assert_eq!(std::fs::read_to_string(&backup).unwrap(), "{\"model\": \"x\"}");
        assert_eq!((mode(settings.clone()), mode(backup)), (0o640, 0o640));
        assert_eq!(found[1].backup, None, "there was nothing to keep");
        let again = apply(HostHooks::Install, &Tool::ALL, (&repo, &world.env), false);
        assert_eq!(did(&again), [(Did::Noop, None), (Did::Noop, None)]);
        let gone = apply(HostHooks::Uninstall, &Tool::ALL, (&repo, &world.env), false);
        assert_eq!(did(&gone), [(Did::Removed, None), (Did::Removed, None)]);
        assert_eq!(std::fs::read_to_string(&settings).unwrap(), "{\n  \"model\": \"x\"\n}\n");
        assert!(!world.root.join("home/.codex/hooks.json").exists(), "nothing was in it but ours");
        let none = apply(HostHooks::Uninstall, &Tool::ALL, (&repo, &world.env), false);
        assert_eq!(did(&none), [(Did::Noop, None), (Did::Noop, None)]);
    }

    #[test]
    fn links_and_what_is_no_file_are_skipped_and_stay() {
        let world = World::new();
        let (repo, claude, codex) = (world.repo("repo"), world.dir("home/.claude"), world.dir("home/.codex"));
        std::fs::write(world.root.join("real.json"), "{}").unwrap();
        symlink(world.root.join("real.json"), claude.join("settings.json")).unwrap();
        std::fs::hard_link(world.root.join("real.json"), codex.join("hooks.json")).unwrap();
        for act in [HostHooks::Install, HostHooks::Uninstall] {
            let found = apply(act, &Tool::ALL, (&repo, &world.env), false);
            let why = [Some("is a symbolic link"), Some("has more than one name (a hard link)")];
            assert_eq!(did(&found), why.map(|why| (Did::Skipped, why)));
        }
        assert_eq!(std::fs::read_to_string(world.root.join("real.json")).unwrap(), "{}");
    }

    #[test]
    fn tools_that_were_told_another_place_are_looked_for_there() {
        let env = Env::from_pairs([("HOME", "/h"), ("CLAUDE_CONFIG_DIR", "/c"), ("CODEX_HOME", "relative")]);
        assert_eq!(place(Tool::Claude, &env).unwrap(), Path::new("/c/settings.json"));
        assert_eq!(place(Tool::Codex, &env).unwrap(), Path::new("/h/.codex/hooks.json"));
    }

    #[test]
    fn the_name_of_a_copy_has_the_time_in_it() {
        let stamp = stamp();
        assert_eq!((stamp.len(), stamp.as_bytes().get(8)), (15, Some(&b'T')), "{stamp}");
    }
}
