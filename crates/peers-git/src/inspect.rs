//! Looking at a repository for things that would run, redirect or hide when the operator's own git
//! works in it. They do nothing to us; they are worth a warning.

use std::path::Path;

use crate::error::{GitError, clean};
use crate::files::{self, Small};
use crate::gitconfig::{self, CONFIG_CAP, Setting};
use crate::index_entries::hidden;
use crate::refs;
use crate::repo::PeerRepo;

/// Warnings of one scan.
const MAX_WARNINGS: usize = 200;

/// Something that the operator's git would obey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitWarning {
    /// What kind of thing.
    pub kind: WarningKind,
    /// Its name: a setting, a file, a reference; cleaned for people.
    pub name: String,
    /// Its value, when it has one; cleaned, at most 200 characters.
    pub value: String,
}

/// Kinds of warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarningKind {
    /// A filter, diff or merge driver that names a program.
    Driver,
    /// Another setting that names a program (fsmonitor, hooks path, pager, ssh, …).
    Program,
    /// An alias that starts a shell.
    ShellAlias,
    /// The configuration includes another file.
    Include,
    /// A setting that sends git to another place (work tree, URL rewriting).
    Redirect,
    /// A setting that hides changes.
    Hides,
    /// A hook.
    Hook,
    /// A file that changes how git reads history or objects (grafts, alternates, attributes).
    File,
    /// References that replace objects.
    Replace,
    /// Index entries that git was told not to look at.
    IndexFlags,
}

/// Looks for settings, files and flags that deserve a warning before agents start.
///
/// # Errors
/// [`GitError::Corrupt`] for a configuration that does not follow the syntax, [`GitError::Io`].
pub fn scan(repo: &PeerRepo) -> Result<Vec<GitWarning>, GitError> {
    let mut out = Vec::new();
    let mut configs = vec![repo.common_dir().join("config"), repo.common_dir().join("config.worktree")];
    if repo.git_dir() != repo.common_dir() {
        configs.push(repo.git_dir().join("config.worktree"));
    }
    for path in configs {
        for setting in read_config(&path)? {
            if let Some(kind) = judge(&setting) {
                push(&mut out, kind, &setting.name(), setting.value.as_deref().unwrap_or_default());
            }
        }
    }
    scan_hooks(repo.common_dir(), &mut out)?;
    for name in ["info/attributes", "info/grafts", "objects/info/alternates", "shallow"] {
        let path = repo.common_dir().join(name);
        match files::read_small(&path, CONFIG_CAP).map_err(|source| GitError::io(&path, source))? {
            Small::Absent => {}
            Small::Bytes(bytes) if is_empty(&bytes) => {}
            Small::Bytes(_) | Small::TooLarge => push(&mut out, WarningKind::File, name, ""),
            Small::Special(what) => push(&mut out, WarningKind::File, name, what),
        }
    }
    for (name, _) in refs::matching(&repo.repo, &["refs/replace/*".to_owned()], 50_000)? {
        push(&mut out, WarningKind::Replace, &name, "");
    }
    scan_index(repo, &mut out);
    Ok(out)
}

fn push(out: &mut Vec<GitWarning>, kind: WarningKind, name: &str, value: &str) {
    if out.len() < MAX_WARNINGS {
        out.push(GitWarning { kind, name: clean(name, 200), value: clean(value, 200) });
    }
}

fn read_config(path: &Path) -> Result<Vec<Setting>, GitError> {
    let corrupt =
        |detail: &str| GitError::Corrupt { what: format!("`{}`", path.display()), detail: detail.to_owned() };
    match files::read_small(path, CONFIG_CAP).map_err(|source| GitError::io(path, source))? {
        Small::Absent => Ok(Vec::new()),
        Small::Bytes(bytes) => {
            gitconfig::parse(&bytes).ok_or_else(|| corrupt("it is not a git configuration file"))
        }
        Small::TooLarge => Err(corrupt("it is larger than 1 MiB")),
        Small::Special(what) => Err(corrupt(what)),
    }
}

/// Only comments and blank lines.
fn is_empty(bytes: &[u8]) -> bool {
    bytes.split(|b| *b == b'\n').all(|line| line.trim_ascii().is_empty() || line.starts_with(b"#"))
}

fn judge(setting: &Setting) -> Option<WarningKind> {
    let value = setting.value.as_deref().unwrap_or_default().trim();
    let shell = value.starts_with('!');
    let switch = matches!(value, "true" | "false" | "1" | "0" | "yes" | "no" | "on" | "off");
    Some(match (setting.section.as_str(), setting.key.as_str()) {
        ("filter", "clean" | "smudge" | "process")
        | ("diff", "command" | "textconv" | "external")
        | ("merge", "driver") => WarningKind::Driver,
        ("core", "fsmonitor") if switch => return None,
        ("core", key) if CORE_PROGRAMS.contains(&key) => WarningKind::Program,
        ("submodule", "update") if shell => WarningKind::Program,
        ("sequence", "editor")
        | ("credential", "helper")
        | ("gpg", "program")
        | ("remote", "uploadpack" | "receivepack" | "vcs")
        | ("uploadpack", "packobjectshook")
        | ("difftool" | "mergetool" | "browser" | "man", "cmd" | "path")
        | ("interactive", "difffilter")
        | ("trailer", "command" | "cmd")
        | ("hook", "command")
        | ("pager" | "sendemail", _) => WarningKind::Program,
        ("alias", _) if shell => WarningKind::ShellAlias,
        ("include" | "includeif", "path") => WarningKind::Include,
        ("core", "worktree" | "attributesfile" | "excludesfile")
        | ("url", "insteadof" | "pushinsteadof")
        | ("protocol", "allow")
        | ("extensions", "partialclone")
        | ("remote", "promisor") => WarningKind::Redirect,
        ("status", "showuntrackedfiles") | ("submodule", "ignore") | ("diff", "ignoresubmodules") => {
            WarningKind::Hides
        }
        _ => return None,
    })
}

/// Settings of `core` that name a program.
const CORE_PROGRAMS: &[&str] = &[
    "fsmonitor",
    "hookspath",
    "editor",
    "pager",
    "sshcommand",
    "askpass",
    "gitproxy",
    "alternaterefscommand",
];

fn scan_hooks(common_dir: &Path, out: &mut Vec<GitWarning>) -> Result<(), GitError> {
    let hooks = common_dir.join("hooks");
    let fail = |source| GitError::io(&hooks, source);
    // A symlinked directory of hooks is shared on purpose, and a hook all the same.
    let Ok(real) = std::fs::canonicalize(&hooks) else { return Ok(()) };
    let Ok(dir) = files::open_dir(&real) else { return Ok(()) };
    for (name, _) in files::list(&dir, 10_000).map_err(fail)?.unwrap_or_default() {
        if !name.ends_with(b".sample") {
            push(out, WarningKind::Hook, &format!("hooks/{}", String::from_utf8_lossy(&name)), "");
        }
    }
    Ok(())
}

/// `assume-unchanged` and `skip-worktree`.
fn scan_index(repo: &PeerRepo, out: &mut Vec<GitWarning>) {
    // An index that cannot be read hides nothing from us: we do not use it.
    let Ok(index) = repo.open_index_file() else { return };
    for entry in index.iter().filter(|entry| hidden(entry) != (0, 0)) {
        push(out, WarningKind::IndexFlags, &String::from_utf8_lossy(&entry.path), "");
    }
}
