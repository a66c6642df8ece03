//! The files that `verify` writes when it is asked to.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use peers_model::{exit, limits};
use peers_run::place::Place;
use peers_sys::append::AppendLog;
use peers_sys::dir::{FileError, FileMode, SafeDir};
use peers_sys::env::{self, Env};
use peers_sys::term;

use crate::error::{self, CommandError};

/// Where a job of GitHub Actions collects what it shows on its page.
const SUMMARY: &str = "GITHUB_STEP_SUMMARY";
/// GitHub drops a summary that is larger.
const SUMMARY_MAX: u64 = limits::MIB;
/// Stands at the end of a summary that was cut.
const CUT: &str = "\n\n(cut: a summary holds 1 MiB)\n";

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// JUnit XML.
    Junit,
    /// SARIF.
    Sarif,
}

/// A file that was asked for.
#[derive(Debug)]
pub(super) struct Output {
    kind: Kind,
    path: PathBuf,
}

/// The same with its directory open: whether it can be written is known before gates take their time.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) kind: Kind,
    dir: SafeDir,
    name: OsString,
    path: PathBuf,
}

impl Output {
    /// The files of the command line, as absolute paths.
    pub(super) fn all(junit: Option<&Path>, sarif: Option<&Path>) -> Result<Vec<Self>, CommandError> {
        let here = env::current_dir()?;
        let mut found: Vec<Self> = Vec::new();
        for (kind, flag, path) in [(Kind::Junit, "--junit", junit), (Kind::Sarif, "--sarif", sarif)] {
            let Some(path) = path else { continue };
            if path == Path::new("-") {
                return Err(CommandError::usage(format!(
                    "`{flag}` takes a file: standard output has what `--format` says; for a file of that name: `./-`"
                )));
            }
            let path = here.join(path);
            if !matches!(path.components().next_back(), Some(Component::Normal(_))) {
                return Err(CommandError::usage(format!("`{flag}`: {} is not a file", shown(&path))));
            }
            if found.iter().any(|other| other.path == path) {
                return Err(CommandError::usage("`--junit` and `--sarif` name one file"));
            }
            found.push(Self { kind, path });
        }
        Ok(found)
    }

    /// Opens its directory. Links above the repository are the operator's; in it agents can plant them, so
    /// there none is followed.
    pub(super) fn open(self, place: &Place) -> Result<Opened, CommandError> {
        let Self { kind, path } = self;
        let (above, name) = (path.parent().unwrap_or(Path::new("/")), path.file_name().unwrap_or_default());
        let name = name.to_owned();
        let work = place.work_dir();
        // The part of the path that leads to the work tree, by whatever name.
        let inside = above.ancestors().find(|dir| dir.canonicalize().is_ok_and(|real| real == work));
        let below = inside.and_then(|top| above.strip_prefix(top).ok());
        // What climbs out again is not inside.
        let below = below.filter(|path| path.components().all(|part| matches!(part, Component::Normal(_))));
        let dir = match below {
            Some(below) => place.open_work()?.open_path(below),
            None => SafeDir::open_shared(above),
        };
        let dir = dir.map_err(|error| cannot(&path, &error))?;
        let real = dir.path().canonicalize().is_ok_and(|real| real.starts_with(work));
        if below.is_none() && real {
            return Err(CommandError::new(
                exit::REFUSED,
                format!("{} leads into the repository through a symbolic link", shown(&path)),
            )
            .hint("name its real path"));
        }
        let found = dir.stat(&name).map_err(|error| cannot(&path, &error))?;
        if let Some(kind) = found.map(|stat| stat.kind).filter(|kind| *kind != peers_sys::dir::Kind::File) {
            let what = if kind == peers_sys::dir::Kind::Symlink {
                "is a symbolic link"
            } else {
                "is not a regular file"
            };
            return Err(CommandError::new(exit::REFUSED, format!("{} {what}", shown(&path)))
                .hint("nothing is written through it: look at it, remove it, or name another file"));
        }
        Ok(Opened { kind, dir, name, path })
    }
}

impl Opened {
    /// Replaces the file as a whole.
    pub(super) fn write(&self, text: &str) -> Result<(), CommandError> {
        self.dir
            .publish_mode(&self.name, text.as_bytes(), FileMode::Plain)
            .map_err(|error| cannot(&self.path, &error))
    }
}

/// Adds the report to the summary of the job, if this is one. A summary decides nothing: what stands against
/// it is returned, for a warning.
pub(super) fn summary(env: &Env, markdown: &str) -> Option<String> {
    let path = PathBuf::from(env.var(SUMMARY).filter(|path| !path.is_empty())?);
    let added = || -> Result<(), FileError> {
        let dir = SafeDir::open_shared(path.parent().unwrap_or(Path::new("/")))?;
        let mut log = AppendLog::open(&dir, path.file_name().unwrap_or_default())?;
        let room = usize::try_from(SUMMARY_MAX.saturating_sub(log.len())).unwrap_or(0);
        if let Some(text) = cut(markdown, room) {
            log.append(text.as_bytes())?;
        }
        Ok(())
    };
    let error = added().err()?;
    Some(format!("the summary of the job was not written ({SUMMARY}): {}", error::chain(&error)))
}

/// As much of a text as fits, whole lines; nothing where there is no room at all.
fn cut(text: &str, room: usize) -> Option<String> {
    if text.len() <= room {
        return Some(text.to_owned());
    }
    let most = room.checked_sub(CUT.len())?;
    let kept = peers_core::apply::bounded(text, most);
    let kept = kept.rfind('\n').and_then(|end| kept.get(..=end)).unwrap_or_default();
    Some(format!("{kept}{CUT}"))
}

fn cannot(path: &Path, error: &FileError) -> CommandError {
    let code = if error.is_unsafe() { exit::REFUSED } else { exit::BUG };
    let text = format!("{} cannot be written: {}", shown(path), error::chain(error));
    CommandError::new(code, text).hint_opt(
        error.is_not_found().then_some("make its directory first: `mkdir -p`, as this command makes none"),
    )
}

fn shown(path: &Path) -> String {
    term::line(&path.to_string_lossy(), 400)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_cut_at_a_line_and_says_so() {
        assert_eq!(cut("a\nb\n", 4).as_deref(), Some("a\nb\n"));
        let text = "line\n".repeat(100);
        let kept = cut(&text, 120).unwrap();
        assert!(kept.len() <= 120 && kept.starts_with("line\nline\n") && kept.ends_with(CUT), "{kept}");
        assert_eq!(cut(&text, CUT.len() - 1), None);
        assert_eq!(cut(&text, CUT.len()).as_deref(), Some(CUT));
    }
}
