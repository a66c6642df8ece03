//! The files that `verify` writes when it is asked to.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use peers_console::error::{self, CommandError};
use peers_model::{exit, limits};
use peers_place::PEERS_DIR;
use peers_sys::append::AppendLog;
use peers_sys::dir::{FileError, FileMode, Kind as FileKind, SafeDir};
use peers_sys::env::{self, Env};
use peers_sys::term;

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
    /// Where the work tree is.
    work: PathBuf,
}

impl Output {
    /// The files of the command line, as absolute paths, and what is wrong with the others.
    pub(super) fn all(junit: Option<&Path>, sarif: Option<&Path>) -> (Vec<Self>, Result<(), CommandError>) {
        let mut found = Vec::new();
        let checked = Self::collect(junit, sarif, &mut found);
        (found, checked)
    }

    fn collect(
        junit: Option<&Path>,
        sarif: Option<&Path>,
        found: &mut Vec<Self>,
    ) -> Result<(), CommandError> {
        let here = env::current_dir()?;
        let mut wrong = Ok(());
        for (kind, flag, path) in [(Kind::Junit, "--junit", junit), (Kind::Sarif, "--sarif", sarif)] {
            let Some(path) = path else { continue };
            if path == Path::new("-") {
                wrong = Err(CommandError::usage(format!(
                    "`{flag}` takes a file: standard output has what `--format` says; for a file of that name: `./-`"
                )));
                continue;
            }
            let path = here.join(path);
            if !matches!(path.components().next_back(), Some(Component::Normal(_))) {
                wrong = Err(CommandError::usage(format!("`{flag}`: {} is not a file", shown(&path))));
                continue;
            }
            if found.iter().any(|other| other.path == path) {
                wrong = Err(CommandError::usage("`--junit` and `--sarif` name one file"));
                continue;
            }
            found.push(Self { kind, path });
        }
        wrong
    }

    /// Opens its directory and removes what has its name there: whatever happens from now on, nobody takes an
    /// older report, or a forged one, for this one. Links above the work tree are the operator's; in it agents
    /// can plant them, so there none is followed.
    pub(super) fn open(self, work: &Path) -> Result<Opened, CommandError> {
        let Self { kind, path } = self;
        let (above, name) = (path.parent().unwrap_or(Path::new("/")), path.file_name().unwrap_or_default());
        let name = name.to_owned();
        let of_git =
            |path: &Path| path.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git"));
        if of_git(&path) || above.canonicalize().is_ok_and(|real| of_git(&real)) {
            return Err(CommandError::usage(format!("{} cannot hold a report", shown(&path))));
        }
        // The part of the path that leads to the work tree, by whatever name.
        let inside = above.ancestors().find(|dir| dir.canonicalize().is_ok_and(|real| real == work));
        let below = inside.and_then(|top| above.strip_prefix(top).ok());
        // What climbs out again is not inside.
        let below = below.filter(|path| path.components().all(|part| matches!(part, Component::Normal(_))));
        let dir = match below {
            Some(below) => {
                if below.starts_with(PEERS_DIR) {
                    return Err(CommandError::usage(format!("{} cannot hold a report", shown(&path))));
                }
                SafeDir::open_shared(work).and_then(|dir| dir.open_path(below))
            }
            None => SafeDir::open_shared(above.canonicalize().as_deref().unwrap_or(above)),
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
        let refused = |what: &str, hint: &'static str| {
            Err(CommandError::new(exit::REFUSED, format!("{} {what}", shown(&path))).hint(hint))
        };
        let found = dir.stat(&name).map_err(|error| cannot(&path, &error))?.map(|stat| stat.kind);
        // The names of devices and processes are the system's.
        let ours = !["/dev", "/proc"].iter().any(|top| dir.path().starts_with(top));
        match found {
            None => {}
            Some(FileKind::File) if !is_report(kind, &dir, &name) => {
                return refused(
                    "exists and is not a report; it was not changed",
                    "name another file, or remove it",
                );
            }
            Some(FileKind::File) => {
                let _was_there = dir.remove_file(&name).map_err(|error| cannot(&path, &error))?;
            }
            Some(FileKind::Symlink) if ours => {
                let _was_there = dir.remove_file(&name).map_err(|error| cannot(&path, &error))?;
                return refused(
                    "was a symbolic link; it was removed, and nothing was written through it",
                    "peers did not create it: find out who did, and start again",
                );
            }
            Some(_) => {
                return refused(
                    "is not a regular file",
                    "nothing was written to it: inspect it, delete it, or name another file",
                );
            }
        }
        Ok(Opened { kind, dir, name, path, work: work.to_owned() })
    }
}

/// How far into what is there is looked for the beginning of a report, bytes.
const LEAD: u64 = 64 * limits::KIB;

/// Whether what is there can be taken for a report of that kind, by whatever reads it: nothing else is removed.
/// What has further names is not lost with this one.
fn is_report(kind: Kind, dir: &SafeDir, name: &OsStr) -> bool {
    let file = match dir.open_read(name) {
        Ok(file) => file,
        Err(FileError::HardLinked { .. }) => return true,
        Err(_) => return false,
    };
    let mut head = Vec::new();
    let short = |head: &[u8]| head.len() < usize::try_from(LEAD).unwrap_or(usize::MAX);
    let is_blank = |head: &[u8]| !head.iter().any(|byte| !leads(*byte));
    file.take(LEAD).read_to_end(&mut head).is_ok()
        && begins_as(kind, &head)
        && (short(&head) || !is_blank(&head))
}

fn leads(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, 0 | 0xEF | 0xBB | 0xBF | 0xFE | 0xFF)
}

/// Blanks, the marks of an encoding and the empty halves of UTF-16 may stand before the first character. Where
/// nothing else is, there is nothing to lose.
fn begins_as(kind: Kind, head: &[u8]) -> bool {
    let begins = match kind {
        Kind::Junit => b'<',
        Kind::Sarif => b'{',
    };
    head.iter().find(|byte| !leads(**byte)).is_none_or(|byte| *byte == begins)
}

/// Refuses two reports of one name.
pub(super) fn apart(outputs: &[Opened]) -> Result<(), CommandError> {
    let real = |output: &Opened| (output.dir.path().canonicalize().ok(), output.name.clone());
    match outputs {
        [one, other] if real(one) == real(other) => {
            Err(CommandError::usage("`--junit` and `--sarif` name one file"))
        }
        _ => Ok(()),
    }
}

impl Opened {
    /// Replaces the file as a whole, where its path still leads to.
    pub(super) fn write(&self, text: &str) -> Result<(), CommandError> {
        let above = self.path.parent().unwrap_or(Path::new("/"));
        // Links of the operator may lead there; the directory itself must not have become one.
        let in_place =
            || above.canonicalize().is_ok_and(|real| real == self.dir.path() && self.dir.still_at(&real));
        if in_place() {
            self.dir
                .publish_mode(&self.name, text.as_bytes(), FileMode::Plain)
                .map_err(|error| cannot(&self.path, &error))?;
        }
        if in_place() {
            return Ok(());
        }
        // Whatever has the name there now is not ours, and nobody is to read it as a report.
        let found = Output { kind: self.kind, path: self.path.clone() };
        let _removed_or_not_there = found.open(&self.work);
        let text = format!(
            "{} cannot be written: another directory took the place of the one that was there before the gates ran",
            shown(&self.path)
        );
        Err(CommandError::new(exit::BUG, text).hint("a gate or another process did that: find out which"))
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
    CommandError::new(code, text)
        .hint_opt(error.is_not_found().then_some("make its directory first, as this command makes none"))
}

fn shown(path: &Path) -> String {
    term::line(&path.to_string_lossy(), 400)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_known_behind_blanks_and_in_other_encodings() {
        let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        for head in [
            b"<testsuites/>".to_vec(),
            "\n".repeat(60_000).into_bytes(),
            format!("{}<testsuites/>", " \r\n\t".repeat(1000)).into_bytes(),
            "\u{feff} <testsuites/>".into(),
            utf16("\u{feff}<testsuites/>"),
            "\u{feff}\n<testsuites/>".encode_utf16().flat_map(u16::to_be_bytes).collect(),
            Vec::new(),
        ] {
            assert!(begins_as(Kind::Junit, &head), "{head:?}");
        }
        assert!(begins_as(Kind::Sarif, &utf16("\u{feff}\n{}")));
        for head in ["my notes", "{\"version\": 1}", "# <a>"] {
            assert!(!begins_as(Kind::Junit, head.as_bytes()), "{head}");
        }
        assert!(!begins_as(Kind::Sarif, b"<testsuites/>"));
    }

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
