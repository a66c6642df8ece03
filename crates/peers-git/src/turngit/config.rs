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
const CORE: [&str; 9] = [
    "autocrlf",
    "eol",
    "safecrlf",
    "filemode",
    "ignorecase",
    "symlinks",
    "quotepath",
    "sparsecheckout",
    "sparsecheckoutcone",
];
/// Settings in `core` that a git directory needs to be one.
const FORM: [&str; 3] = ["repositoryformatversion", "bare", "worktree"];
/// Where a push goes. Nothing can be there.
const NO_PUSH: &str = "/dev/null/no-push-from-a-turn";

/// Files of the operator's own configuration besides that of a repository, the more general first.
///
/// Looks at the home directory; reads nothing.
#[must_use]
pub fn operator_config_files() -> Vec<PathBuf> {
    [Config::find_system(), Config::find_xdg(), Config::find_global()].into_iter().flatten().collect()
}

/// Settings in the order in which they were read.
#[derive(Default)]
pub(super) struct Settings {
    /// Name and value.
    all: Vec<(String, Option<String>)>,
    /// `core.hooksPath`, the home directory written out.
    pub(super) hooks: Option<PathBuf>,
}

impl Settings {
    /// Of these files and then of the checkout, includes followed.
    pub(super) fn read(checkout: &PeerRepo, files: &[PathBuf]) -> Result<Self, GitError> {
        let mut all = Self::default();
        for file in files.iter().filter(|file| file.is_file()) {
            all.add(&Config::open(file).map_err(fail)?)?;
        }
        let nowhere = std::iter::empty::<&std::ffi::OsStr>();
        let repo = Repository::open_ext(checkout.work_dir(), RepositoryOpenFlags::NO_SEARCH, nowhere);
        let config = repo.and_then(|repo| repo.config()).map_err(fail)?;
        for level in [ConfigLevel::Local, ConfigLevel::Worktree] {
            // There need not be one of a work tree.
            if let Ok(level) = config.open_level(level) {
                all.add(&level)?;
            }
        }
        Ok(all)
    }

    /// Of one file.
    pub(super) fn of_file(file: &Path) -> Result<Self, GitError> {
        let mut all = Self::default();
        all.add(&Config::open(file).map_err(fail)?)?;
        Ok(all)
    }

    fn add(&mut self, config: &Config) -> Result<(), GitError> {
        let mut entries = config.entries(None).map_err(fail)?;
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(fail)?;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let value = entry.has_value().then(|| text(entry.value_bytes()));
            self.all.push((text(entry.name_bytes()), value));
        }
        if let Ok(path) = config.get_path("core.hookspath") {
            self.hooks = Some(path);
        }
        Ok(())
    }

    /// The configuration of a turn.
    pub(super) fn for_turn(&self, who: &Identity) -> String {
        let mut out = Text::default();
        out.add(("core", None, "repositoryformatversion"), Some("0"));
        out.add(("core", None, "bare"), Some("false"));
        self.write(&mut out, &|section, _| section != "extensions");
        out.add(("gc", None, "auto"), Some("0"));
        out.add(("commit", None, "gpgsign"), Some("false"));
        out.add(("user", None, "name"), Some(&who.name));
        out.add(("user", None, "email"), Some(&who.email));
        out.text
    }

    /// The configuration of a submodule's git directory, without what a turn must not read.
    pub(super) fn for_submodule(&self) -> String {
        let mut out = Text::default();
        self.write(&mut out, &|section, key| section != "core" || !FORM.contains(&key));
        for (name, value) in &self.all {
            let parts = parts(name);
            if matches!(parts, ("core", None, key) if FORM.contains(&key)) || parts.0 == "extensions" {
                out.add(parts, value.as_deref());
            }
        }
        out.text
    }

    fn write(&self, out: &mut Text, wanted: &dyn Fn(&str, &str) -> bool) {
        let mut remotes = BTreeSet::new();
        for (name, value) in &self.all {
            let (section, sub, key) = parts(name);
            let taken = match (section, sub) {
                ("core", None) => CORE.contains(&key),
                ("filter" | "diff" | "merge" | "branch", _) => true,
                ("submodule", Some(_)) => matches!(key, "url" | "active"),
                ("remote", Some(_)) => matches!(key, "url" | "fetch"),
                _ => false,
            };
            if !taken || !wanted(section, key) {
                continue;
            }
            let is_url = matches!(
                (section, key),
                ("remote" | "submodule", "url") | ("branch", "remote" | "pushremote")
            );
            let value =
                value.as_deref().map(|value| if is_url { without_login(value) } else { value.to_owned() });
            out.add((section, sub, key), value.as_deref());
            if let ("remote", Some(sub)) = (section, sub) {
                remotes.insert(sub);
            }
        }
        for remote in remotes {
            out.add(("remote", Some(remote), "pushurl"), Some(NO_PUSH));
        }
    }
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
struct Text {
    text: String,
    section: String,
}

impl Text {
    fn add(&mut self, (section, sub, key): (&str, Option<&str>, &str), value: Option<&str>) {
        let header = match sub {
            Some(sub) => format!("[{section} \"{}\"]\n", sub.replace('\\', "\\\\").replace('"', "\\\"")),
            None => format!("[{section}]\n"),
        };
        if header != self.section {
            self.text.push_str(&header);
            self.section = header;
        }
        // Writing to a string does not fail.
        let _ = match value {
            None => writeln!(self.text, "\t{key}"),
            Some(value) => {
                let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
                writeln!(self.text, "\t{key} = \"{value}\"")
            }
        };
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
    fn only_listed_settings_reach_a_turn_and_their_values_survive_quoting() {
        let setting = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
        let all = vec![
            setting("core.autocrlf", "input"),
            setting("core.fsmonitor", "/evil"),
            setting("core.hookspath", "/evil"),
            setting("http.extraheader", "Authorization: s3cret"),
            setting("http.https://a.b/.extraheader", "s3cret"),
            setting("credential.helper", "s3cret"),
            setting("url.https://ann:s3cret@h/.insteadof", "x:"),
            setting("include.path", "/s3cret"),
            setting("remote.a \"b\\.url", "https://ann:s3cret@h/p"),
            setting("remote.a \"b\\.pushurl", "https://s3cret@h/p"),
            setting("filter.lfs.clean", "git-lfs clean -- %f \"a\\b\"\nc"),
            ("branch.main.rebase".to_owned(), None),
        ];
        let text =
            Settings { all, hooks: None }.for_turn(&Identity { name: "p".into(), email: "p@x".into() });
        assert!(!text.contains("s3cret") && !text.contains("evil"), "{text}");
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("c"), &text).unwrap();
        let read = Settings::of_file(&dir.path().join("c")).unwrap();
        let last = |name: &str| read.all.iter().rev().find(|(found, _)| found == name).unwrap().1.as_deref();
        assert_eq!(last("filter.lfs.clean"), Some("git-lfs clean -- %f \"a\\b\"\nc"));
        assert_eq!(last("remote.a \"b\\.url"), Some("https://h/p"));
        assert_eq!(last("remote.a \"b\\.pushurl"), Some(NO_PUSH));
        assert_eq!(last("user.name"), Some("p"));
        assert!(read.all.contains(&("branch.main.rebase".to_owned(), None)));
    }
}
