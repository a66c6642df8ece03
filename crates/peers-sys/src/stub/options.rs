//! What the parent tells the stub, and what the stub tells the parent.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::confine::Confine;
use crate::identity::Pid;
use crate::spawn::{RawExit, Within};
use crate::stub::ENTER;

/// As in a shell: the program is not there.
pub(crate) const EXIT_NOT_FOUND: u8 = 127;
/// As in a shell: the program is there, but it cannot be run.
pub(crate) const EXIT_NOT_EXECUTABLE: u8 = 126;

/// Resource limits that the stub sets for good, besides a core size of zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Processes of the user, all of them counted, not only the child's (`RLIMIT_NPROC`).
    pub processes: Option<u64>,
    /// Size of any file that is written, in bytes (`RLIMIT_FSIZE`).
    pub file_bytes: Option<u64>,
    /// Memory that it may map, in bytes (`RLIMIT_AS`).
    pub memory_bytes: Option<u64>,
}

/// A random word known to the stub and its parent, but not to the program: `exec` replaces the
/// command line that held it.
#[derive(Clone, PartialEq, Eq)]
pub struct Mark(String);

/// Why the stub did not become the program.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct StubFailure {
    /// Whether the program itself was at fault.
    pub kind: StubFailureKind,
    /// The system's error number; 0 if there was none.
    pub errno: i32,
    /// The system's words for it and what it is about, without control characters.
    pub message: String,
}

/// The part of the stub that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StubFailureKind {
    /// The program could not be executed.
    Exec,
    /// The child could not be prepared.
    Setup,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StubOptions {
    pub(crate) mark: Mark,
    pub(crate) parent: Pid,
    pub(crate) limits: Limits,
    pub(crate) confine: Confine,
    /// Signals that ask for an end wait: they are for whoever is started in turn.
    pub(crate) holds_signals: bool,
    /// The program is looked up where the stub runs, by `argv0`.
    pub(crate) search: bool,
    /// The program makes a container, which is to be kept.
    pub(crate) keeping: Option<Keeping>,
    pub(crate) exec: PathBuf,
    pub(crate) argv0: OsString,
    pub(crate) args: Vec<OsString>,
}

/// A container to be kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Keeping {
    /// The environment of the program that makes it.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// The words of the second stub.
    pub(crate) words: Vec<OsString>,
    /// See [`crate::spawn::Kept::with_lock`].
    pub(crate) with_lock: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum OptionsError {
    #[error("unknown option")]
    Unknown,
    #[error("option {0} is missing or makes no sense")]
    Bad(&'static str),
}

const MARK: &str = "--mark";
const PARENT: &str = "--parent";
const EXEC: &str = "--exec";
const PROCESSES: &str = "--max-processes";
const FILE_BYTES: &str = "--max-file-bytes";
const MEMORY_BYTES: &str = "--max-memory-bytes";
const HOLD: &str = "--hold-signals";
const SEARCH: &str = "--search";
const KEEP: &str = "--keep";
const KEEPS_ENV: &str = "--keeps-env";
const KEEPS_WORD: &str = "--keeps-word";
const KEEPS_LOCK: &str = "--keeps-lock";
const END: &str = "--";

/// Characters of a failure's message that are kept.
const MESSAGE_CHARS: usize = 200;

impl Mark {
    const BYTES: usize = 16;

    /// A new mark.
    ///
    /// # Errors
    /// If the system gives no random bytes.
    pub fn random() -> io::Result<Self> {
        crate::rand::hex::<{ Self::BYTES }>().map(Self)
    }

    /// What the stub said on `stderr`, if it was the stub that ended with `exit`.
    ///
    /// `stderr` is the beginning of the child's stderr, one line at least. A program that exits 126
    /// or 127 on its own does not know the mark.
    #[must_use]
    pub fn failure(&self, exit: RawExit, stderr: &[u8]) -> Option<StubFailure> {
        if !matches!(exit, RawExit::Code(126 | 127)) {
            return None;
        }
        let line = stderr.split(|b| *b == b'\n').next()?;
        let rest = std::str::from_utf8(line).ok()?.strip_prefix("peers-stub: ")?;
        let (kind, rest) = rest.split_once(' ')?;
        let kind = match kind {
            "exec-failed" => StubFailureKind::Exec,
            "setup-failed" => StubFailureKind::Setup,
            _ => return None,
        };
        let (mark, rest) = rest.split_once(' ')?;
        let (errno, message) = rest.split_once(' ')?;
        (mark == self.0).then_some(())?;
        Some(StubFailure { kind, errno: errno.parse().ok()?, message: tame(message) })
    }

    /// The line that [`Mark::failure`] reads.
    pub(crate) fn line(&self, failure: &StubFailure) -> String {
        let StubFailure { kind, errno, message } = failure;
        let kind = match kind {
            StubFailureKind::Exec => "exec-failed",
            StubFailureKind::Setup => "setup-failed",
        };
        format!("peers-stub: {kind} {} {errno} {}\n", self.0, tame(message))
    }

    fn parse(text: &str) -> Option<Self> {
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        (text.len() == Self::BYTES * 2 && text.bytes().all(hex)).then(|| Self(text.to_owned()))
    }
}

impl fmt::Debug for Mark {
    /// Keeps the mark out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mark")
    }
}

impl StubFailure {
    pub(crate) fn exec(program: &Path, error: &io::Error) -> Self {
        let errno = error.raw_os_error().unwrap_or(0);
        // The path last, for it may be cut.
        let message = tame(&format!("{error}: start {}", program.display()));
        Self { kind: StubFailureKind::Exec, errno, message }
    }

    pub(crate) fn setup(step: &str, error: &io::Error) -> Self {
        // A library wraps what the system said.
        let said = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
        let errno = said.unwrap_or(error).raw_os_error().unwrap_or(0);
        Self { kind: StubFailureKind::Setup, errno, message: tame(&format!("{step}: {error}")) }
    }

    pub(crate) fn exit_code(&self) -> u8 {
        let absent = self.errno == rustix::io::Errno::NOENT.raw_os_error();
        match self.kind {
            StubFailureKind::Exec if absent => EXIT_NOT_FOUND,
            StubFailureKind::Exec | StubFailureKind::Setup => EXIT_NOT_EXECUTABLE,
        }
    }
}

impl StubOptions {
    /// The same by a program that makes a place: a second stub, in that place, puts on what is to be put on. Limits too:
    /// processes are counted for each user namespace.
    pub(crate) fn within(self, within: &Within) -> Self {
        let Within { program, args, stub, kept } = within;
        let Self { mark, parent, .. } = &self;
        if let Some(kept) = kept {
            // The second stub is started by the first process inside, which also sets the limits.
            let keeping = Keeping { env: kept.env.clone(), words: self.to_args(), with_lock: kept.with_lock };
            return Self {
                mark: mark.clone(),
                parent: *parent,
                limits: Limits::default(),
                confine: Confine::default(),
                holds_signals: false,
                search: false,
                keeping: Some(keeping),
                exec: program.clone(),
                argv0: program.clone().into_os_string(),
                args: args.clone(),
            };
        }
        let mut words = args.clone();
        words.extend([stub.clone().into_os_string(), ENTER.into()]);
        Self {
            mark: mark.clone(),
            parent: *parent,
            limits: Limits::default(),
            confine: Confine::default(),
            holds_signals: true,
            search: false,
            keeping: None,
            exec: program.clone(),
            argv0: program.clone().into_os_string(),
            args: words.into_iter().chain(self.to_args()).collect(),
        }
    }

    /// The arguments after the entry word that [`StubOptions::parse`] reads.
    pub(crate) fn to_args(&self) -> Vec<OsString> {
        let Self { mark, parent, limits, confine, holds_signals, search, keeping, exec, argv0, args } = self;
        let Limits { processes, file_bytes, memory_bytes } = limits;
        let mut out: Vec<OsString> = vec![MARK.into(), mark.0.as_str().into()];
        out.extend([PARENT.into(), parent.to_string().into()]);
        out.extend([EXEC.into(), exec.clone().into_os_string()]);
        for (option, limit) in
            [(PROCESSES, processes), (FILE_BYTES, file_bytes), (MEMORY_BYTES, memory_bytes)]
        {
            if let Some(n) = limit {
                out.extend([option.into(), n.to_string().into()]);
            }
        }
        out.extend(confine.to_args());
        out.extend(holds_signals.then(|| OsString::from(HOLD)));
        out.extend(search.then(|| OsString::from(SEARCH)));
        if let Some(Keeping { env, words, with_lock }) = keeping {
            out.push(KEEP.into());
            out.extend(with_lock.then(|| OsString::from(KEEPS_LOCK)));
            for (name, value) in env {
                let mut entry = name.clone();
                entry.push("=");
                entry.push(value);
                out.extend([KEEPS_ENV.into(), entry]);
            }
            out.extend(words.iter().flat_map(|word| [KEEPS_WORD.into(), word.clone()]));
        }
        out.extend([END.into(), argv0.clone()]);
        out.extend(args.iter().cloned());
        out
    }

    pub(crate) fn parse(mut args: impl Iterator<Item = OsString>) -> Result<Self, OptionsError> {
        let (mut mark, mut parent, mut exec) = (None, None, None);
        let (mut limits, mut confine, mut holds_signals) = (Limits::default(), Confine::default(), false);
        let (mut search, mut keeping) = (false, None::<Keeping>);
        loop {
            let option = args.next().ok_or(OptionsError::Bad(END))?;
            match option.to_str() {
                Some(MARK) => mark = text(args.next()).and_then(|t| Mark::parse(&t)),
                Some(PARENT) => parent = text(args.next()).and_then(|t| t.parse().ok()).and_then(Pid::new),
                Some(EXEC) => exec = args.next().map(PathBuf::from),
                Some(PROCESSES) => limits.processes = Some(number(args.next(), PROCESSES)?),
                Some(FILE_BYTES) => limits.file_bytes = Some(number(args.next(), FILE_BYTES)?),
                Some(MEMORY_BYTES) => limits.memory_bytes = Some(number(args.next(), MEMORY_BYTES)?),
                Some(HOLD) => holds_signals = true,
                Some(SEARCH) => search = true,
                Some(KEEP) => drop(keeping.get_or_insert_default()),
                Some(KEEPS_ENV) => {
                    let entry = args.next().and_then(|word| variable(&word));
                    let keeping = keeping.as_mut().ok_or(OptionsError::Bad(KEEPS_ENV))?;
                    keeping.env.push(entry.ok_or(OptionsError::Bad(KEEPS_ENV))?);
                }
                Some(KEEPS_WORD) => {
                    let keeping = keeping.as_mut().ok_or(OptionsError::Bad(KEEPS_WORD))?;
                    keeping.words.push(args.next().ok_or(OptionsError::Bad(KEEPS_WORD))?);
                }
                Some(KEEPS_LOCK) => {
                    keeping.as_mut().ok_or(OptionsError::Bad(KEEPS_LOCK))?.with_lock = true;
                }
                Some(END) => break,
                Some(option) => confine.take(option, &mut args).ok_or(OptionsError::Unknown)?,
                None => return Err(OptionsError::Unknown),
            }
        }
        Ok(Self {
            mark: mark.ok_or(OptionsError::Bad(MARK))?,
            parent: parent.ok_or(OptionsError::Bad(PARENT))?,
            limits,
            confine,
            holds_signals,
            search,
            keeping,
            exec: exec.ok_or(OptionsError::Bad(EXEC))?,
            argv0: args.next().ok_or(OptionsError::Bad(END))?,
            args: args.collect(),
        })
    }
}

fn text(arg: Option<OsString>) -> Option<String> {
    arg?.into_string().ok()
}

/// A variable's name and value.
fn variable(word: &OsStr) -> Option<(OsString, OsString)> {
    let bytes = word.as_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=')?;
    let part = |bytes: Option<&[u8]>| Some(OsStr::from_bytes(bytes?).to_owned());
    Some((part(bytes.get(..at))?, part(bytes.get(at + 1..))?))
}

fn number(arg: Option<OsString>, option: &'static str) -> Result<u64, OptionsError> {
    text(arg).and_then(|t| t.parse().ok()).ok_or(OptionsError::Bad(option))
}

/// One printable line of bounded length.
fn tame(message: &str) -> String {
    message.chars().take(MESSAGE_CHARS).map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;
    use crate::confine::{Files, Filter};

    fn options() -> StubOptions {
        StubOptions {
            mark: Mark::random().unwrap(),
            parent: Pid::of_self(),
            limits: Limits { processes: Some(9), file_bytes: Some(10), memory_bytes: Some(11) },
            confine: Confine {
                files: Some(Files { read: vec!["/usr".into()], write: vec!["/a b".into(), "/c".into()] }),
                filter: Some(Filter::Strict),
                apart: true,
            },
            holds_signals: true,
            search: true,
            keeping: Some(Keeping {
                env: vec![("A".into(), "b=c".into()), ("E".into(), OsString::new())],
                words: vec!["--".into(), "x".into()],
                with_lock: true,
            }),
            exec: PathBuf::from("/bin/x"),
            argv0: "x".into(),
            args: vec!["--".into(), "--mark".into(), OsString::from_vec(vec![0xff, b' '])],
        }
    }

    fn failure() -> StubFailure {
        StubFailure::exec(Path::new("/bin/x"), &io::Error::from_raw_os_error(2))
    }

    #[test]
    fn options_survive_the_command_line() {
        let full = options();
        assert_eq!(StubOptions::parse(full.to_args().into_iter()), Ok(full.clone()));
        let confine = Confine::default();
        let bare = StubOptions {
            limits: Limits::default(),
            confine,
            holds_signals: false,
            search: false,
            keeping: None,
            args: vec![],
            ..full
        };
        assert_eq!(StubOptions::parse(bare.to_args().into_iter()), Ok(bare));
    }

    #[test]
    fn a_cut_command_line_is_refused_wherever_it_is_cut() {
        let args = StubOptions { args: vec![], ..options() }.to_args();
        for end in 0..args.len() {
            let cut = args.iter().take(end).cloned();
            assert!(StubOptions::parse(cut).is_err(), "cut after {end} of {}", args.len());
        }
    }

    #[test]
    fn an_unknown_option_is_refused() {
        let args = ["--nonsense", "--", "x"].map(OsString::from);
        assert_eq!(StubOptions::parse(args.into_iter()), Err(OptionsError::Unknown));
    }

    #[test]
    fn a_failure_is_told_across_the_pipe() {
        let mark = Mark::random().unwrap();
        let line = mark.line(&failure());
        assert_eq!(mark.failure(RawExit::Code(127), line.as_bytes()), Some(failure()));
        assert_eq!(failure().to_string(), "No such file or directory (os error 2): start /bin/x");
    }

    #[test]
    fn the_number_of_a_failed_step_is_found_within_what_a_library_says() {
        #[derive(Debug, Error)]
        #[error("the walls: {0}")]
        struct Walls(#[source] io::Error);
        let number = |error: io::Error| StubFailure::setup("walls", &error).errno;
        assert_eq!(number(io::Error::from_raw_os_error(7)), 7);
        assert_eq!(number(io::Error::other(Walls(io::Error::from_raw_os_error(7)))), 7);
        assert_eq!(number(io::Error::other(Walls(io::Error::other("no number")))), 0);
        assert_eq!(number(io::ErrorKind::Unsupported.into()), 0);
        let told = StubFailure::setup("walls", &io::Error::other(Walls(io::Error::from_raw_os_error(7))));
        assert_eq!(told.message, "walls: the walls: Argument list too long (os error 7)");
    }

    #[test]
    fn another_mark_or_another_exit_is_not_the_stub() {
        let (mark, other) = (Mark::random().unwrap(), Mark::random().unwrap());
        let line = mark.line(&failure());
        assert_eq!(other.failure(RawExit::Code(127), line.as_bytes()), None);
        assert_eq!(mark.failure(RawExit::Code(0), line.as_bytes()), None);
        assert_eq!(mark.failure(RawExit::Signal(9), line.as_bytes()), None);
        let late = format!("program output\n{line}");
        assert_eq!(mark.failure(RawExit::Code(127), late.as_bytes()), None, "the stub speaks first");
    }

    #[test]
    fn a_message_stays_one_printable_line() {
        let mark = Mark::random().unwrap();
        let odd = StubFailure { message: "a\n\u{1b}[31mb".to_owned(), ..failure() };
        let line = mark.line(&odd);
        assert_eq!(line.matches('\n').count(), 1);
        assert_eq!(mark.failure(RawExit::Code(126), line.as_bytes()).unwrap().message, "a??[31mb");
    }

    #[test]
    fn a_mark_is_not_shown() {
        let mark = Mark::random().unwrap();
        assert!(!format!("{mark:?}").contains(&mark.0));
    }
}
