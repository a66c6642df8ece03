//! The operator's configuration, as much of it as a turn gets.
//!
//! Tokens live in `http.*`, `credential.*`, `url.*` and in URLs, so a list says what is taken and all else
//! is not. Filters and drivers are programs of the operator's; they run inside the sandbox.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use git2::{Config, ConfigLevel, Repository, RepositoryOpenFlags};

use crate::error::GitError;
use crate::facts::Identity;
use crate::repo::PeerRepo;

/// Settings in `core` that say how files are stored and shown.
const CORE: &str =
    "autocrlf eol safecrlf filemode ignorecase symlinks quotepath sparsecheckout sparsecheckoutcone";
/// Settings in `core` that a git directory needs to be one.
const FORM: &str = "repositoryformatversion bare worktree";
/// Where a push goes. Nothing can be there.
const NO_PUSH: &str = "/dev/null/no-push-from-a-turn";

/// Files of the operator's own configuration besides that of a repository, the more general first.
///
/// Looks at the home directory; reads nothing.
#[must_use]
pub fn operator_config_files() -> Vec<PathBuf> {
    [Config::find_system(), Config::find_xdg(), Config::find_global()].into_iter().flatten().collect()
}

/// The configuration of a turn, from these files and the checkout's own, and the place of the operator's hooks.
pub(super) fn for_turn(
    checkout: &PeerRepo,
    files: &[PathBuf],
    who: &Identity,
) -> Result<(String, Option<PathBuf>), GitError> {
    let mut out = Filtered::default();
    for file in files.iter().filter(|file| file.is_file()) {
        out.take(&Config::open(file).map_err(fail)?, false)?;
    }
    let nowhere = std::iter::empty::<&std::ffi::OsStr>();
    let repo = Repository::open_ext(checkout.work_dir(), RepositoryOpenFlags::NO_SEARCH, nowhere);
    let config = repo.and_then(|repo| repo.config()).map_err(fail)?;
    for level in [ConfigLevel::Local, ConfigLevel::Worktree] {
        // There need not be one of a work tree.
        if let Ok(level) = config.open_level(level) {
            out.take(&level, false)?;
        }
    }
    for (section, key, value) in [
        ("core", "repositoryformatversion", "0"),
        ("core", "bare", "false"),
        ("gc", "auto", "0"),
        ("commit", "gpgsign", "false"),
        ("user", "name", &who.name),
        ("user", "email", &who.email),
    ] {
        out.add((section, None, key), Some(value));
    }
    out.forbid_pushes();
    Ok((out.text, out.hooks))
}

/// What may be read of a configuration file by those who get no git directory of their own. Of one that cannot be read
/// that is nothing.
#[must_use]
pub fn readable_config(file: &Path) -> String {
    for_submodule(file).unwrap_or_default()
}

/// The configuration of a submodule's git directory, without what a turn must not read.
pub(super) fn for_submodule(file: &Path) -> Result<String, GitError> {
    let mut out = Filtered::default();
    if file.is_file() {
        out.take(&Config::open(file).map_err(fail)?, true)?;
    }
    out.forbid_pushes();
    Ok(out.text)
}

fn fail(source: git2::Error) -> GitError {
    GitError::library("read the operator's configuration", source)
}

/// Section, subsection and key of a name as the library has it.
fn parts(name: &str) -> (&str, Option<&str>, &str) {
    let (section, rest) = name.split_once('.').unwrap_or((name, ""));
    match rest.rsplit_once('.') {
        Some((sub, key)) => (section, Some(sub), key),
        None => (section, None, rest),
    }
}

/// A URL, or what can stand in the place of one, without user, password and query.
fn without_login(url: &str) -> String {
    if let Some((scheme, rest)) = url.split_once("://") {
        let end = rest.find('/').unwrap_or(rest.len());
        let (host, path) = rest.split_at(end);
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let path = path.split_once('?').map_or(path, |(path, _)| path);
        return format!("{scheme}://{host}{path}");
    }
    match url.split_once(':') {
        // `user@host:path`. A path with a colon has a slash before it.
        Some((host, path)) if !host.contains('/') => {
            format!("{}:{path}", host.rsplit_once('@').map_or(host, |(_, host)| host))
        }
        _ => url.to_owned(),
    }
}

/// A configuration file that is being written.
#[derive(Default)]
struct Filtered {
    text: String,
    section: String,
    remotes: BTreeSet<String>,
    /// `core.hooksPath`, the home directory written out.
    hooks: Option<PathBuf>,
}

impl Filtered {
    /// Adds what may be seen of a configuration, in its order.
    fn take(&mut self, config: &Config, submodule: bool) -> Result<(), GitError> {
        let mut entries = config.entries(None).map_err(fail)?;
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(fail)?;
            let name = String::from_utf8_lossy(entry.name_bytes());
            let (section, sub, key) = parts(&name);
            let is_in = |list: &str| list.split(' ').any(|listed| listed == key);
            let taken = match (section, sub) {
                ("core", None) => is_in(CORE) || submodule && is_in(FORM),
                ("extensions", None) => submodule,
                ("filter" | "diff" | "merge" | "branch", _) => true,
                ("submodule", Some(_)) => matches!(key, "url" | "active"),
                ("remote", Some(_)) => matches!(key, "url" | "fetch"),
                _ => false,
            };
            if !taken {
                continue;
            }
            let value = entry.has_value().then(|| String::from_utf8_lossy(entry.value_bytes()));
            let value = match (section, key) {
                ("remote" | "submodule", "url") | ("branch", "remote" | "pushremote") => {
                    value.map(|url| without_login(&url).into())
                }
                _ => value,
            };
            self.add((section, sub, key), value.as_deref());
            if let ("remote", Some(sub)) = (section, sub) {
                self.remotes.insert(sub.to_owned());
            }
        }
        self.hooks = config.get_path("core.hookspath").ok().or_else(|| self.hooks.take());
        Ok(())
    }

    fn forbid_pushes(&mut self) {
        for remote in std::mem::take(&mut self.remotes) {
            self.add(("remote", Some(&remote), "pushurl"), Some(NO_PUSH));
        }
    }

    fn add(&mut self, (section, sub, key): (&str, Option<&str>, &str), value: Option<&str>) {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let header = sub.map_or_else(String::new, |sub| format!(" \"{}\"", quoted(sub)));
        let header = format!("[{section}{header}]\n");
        if header != self.section {
            self.text.push_str(&header);
            self.section = header;
        }
        let value = value.map_or_else(String::new, |value| format!(" = \"{}\"", quoted(value)));
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "\t{key}{value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_loses_user_password_and_query_and_keeps_the_rest() {
        for (url, kept) in [
            ("https://ann:s3cret@host.org:8443/a@b.git", "https://host.org:8443/a@b.git"),
            ("https://x@y:z@host/p?token=1", "https://host/p"),
            ("ssh://git@host/p", "ssh://host/p"),
            ("git@host.org:group/p.git", "host.org:group/p.git"),
            ("/srv/git/a@b:c.git", "/srv/git/a@b:c.git"),
            ("../other", "../other"),
            ("origin", "origin"),
        ] {
            assert_eq!(without_login(url), kept);
        }
    }

    #[test]
    fn only_listed_settings_reach_a_submodule_and_their_values_survive_quoting() {
        let mut all = Filtered::default();
        for (name, value) in [
            ("core.autocrlf", "input"),
            ("core.worktree", "../../../sub"),
            ("core.fsmonitor", "/s3cret"),
            ("core.hookspath", "/s3cret"),
            ("http.extraheader", "Authorization: s3cret"),
            ("http.https://a.b/.extraheader", "s3cret"),
            ("credential.helper", "s3cret"),
            ("url.https://ann:s3cret@h/.insteadof", "x:"),
            ("remote.a \"b\\.url", "https://ann:s3cret@h/p"),
            ("remote.a \"b\\.pushurl", "https://s3cret@h/p"),
            ("filter.lfs.clean", "git-lfs clean -- %f \"a\\b\"\nc"),
        ] {
            all.add(parts(name), Some(value));
        }
        all.add(("branch", Some("main"), "rebase"), None);
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config");
        std::fs::write(&file, &all.text).unwrap();
        let text = for_submodule(&file).unwrap();
        assert!(!text.contains("s3cret"), "{text}");
        std::fs::write(&file, &text).unwrap();
        let read = Config::open(&file).unwrap();
        let value = |name: &str| read.get_string(name).unwrap();
        assert_eq!(value("filter.lfs.clean"), "git-lfs clean -- %f \"a\\b\"\nc");
        assert_eq!(value("remote.a \"b\\.url"), "https://h/p");
        assert_eq!(value("remote.a \"b\\.pushurl"), NO_PUSH);
        assert_eq!(value("core.worktree"), "../../../sub");
        assert!(read.get_bool("branch.main.rebase").unwrap());
    }
}
