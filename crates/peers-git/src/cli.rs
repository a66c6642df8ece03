//! The only place that starts a `git` process.
//!
//! It never runs with an agent's git directory: always with our control directory, from a cleared
//! environment, without a terminal, in its own process group, with a deadline and an output cap.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::error::{CliError, clean};

/// The usual limit of one call.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);
/// The limit of a call that moves a whole history.
pub(crate) const LONG_LIMIT: Duration = Duration::from_mins(10);
/// All that one call may print.
const OUTPUT_CAP: usize = 64 * 1024 * 1024;

/// The `git` program.
#[derive(Debug, Clone)]
pub struct Git {
    program: PathBuf,
}

/// A version of git.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GitVersion {
    /// First number.
    pub major: u32,
    /// Second number.
    pub minor: u32,
    /// Third number, 0 when absent.
    pub patch: u32,
}

impl GitVersion {
    /// The oldest version that works.
    pub const MINIMUM: Self = Self { major: 2, minor: 30, patch: 0 };
}

impl std::fmt::Display for GitVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Git {
    /// Finds `git` in a `PATH`-like list. Relative and empty entries are skipped.
    ///
    /// # Errors
    /// [`CliError::Missing`] when no entry has an executable `git`.
    pub fn locate(search: &OsStr) -> Result<Self, CliError> {
        std::env::split_paths(search)
            .filter(|dir| dir.is_absolute())
            .map(|dir| dir.join("git"))
            .find(|program| {
                std::fs::metadata(program).is_ok_and(|meta| {
                    use std::os::unix::fs::PermissionsExt as _;
                    meta.is_file() && meta.permissions().mode() & 0o111 != 0
                })
            })
            .map(|program| Self { program })
            .ok_or(CliError::Missing)
    }

    /// Uses this program, an absolute path.
    #[must_use]
    pub fn at(program: PathBuf) -> Self {
        Self { program }
    }

    /// The program's path.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Asks for the version and checks that it is new enough.
    ///
    /// # Errors
    /// [`CliError::TooOld`], or why it could not be asked.
    pub fn version(&self) -> Result<GitVersion, CliError> {
        let mut call = Call::new(self, None);
        call.arg("version");
        let output = call.run()?;
        let text = String::from_utf8_lossy(&output);
        let version = parse_version(&text)
            .ok_or_else(|| CliError::Unreadable { command: "version".to_owned(), text: clean(&text, 80) })?;
        if version < GitVersion::MINIMUM {
            return Err(CliError::TooOld { found: version.to_string() });
        }
        Ok(version)
    }

    /// A call on our control directory. `home` is an empty directory.
    pub(crate) fn call<'a>(&'a self, control: &'a Path, home: &'a Path) -> Call<'a> {
        Call::new(self, Some((control, home)))
    }
}

fn parse_version(text: &str) -> Option<GitVersion> {
    let mut numbers = text.trim().strip_prefix("git version ")?.split(['.', ' ', '-']);
    let major = numbers.next()?.parse().ok()?;
    let minor = numbers.next()?.parse().ok()?;
    let patch = numbers.next().and_then(|n| n.parse().ok()).unwrap_or(0);
    Some(GitVersion { major, minor, patch })
}

/// One call being built.
pub(crate) struct Call<'a> {
    git: &'a Git,
    place: Option<(&'a Path, &'a Path)>,
    settings: Vec<String>,
    args: Vec<OsString>,
    limit: Duration,
}

impl<'a> Call<'a> {
    fn new(git: &'a Git, place: Option<(&'a Path, &'a Path)>) -> Self {
        Self { git, place, settings: Vec::new(), args: Vec::new(), limit: LIMIT }
    }

    pub(crate) fn arg(&mut self, arg: impl Into<OsString>) -> &mut Self {
        self.args.push(arg.into());
        self
    }

    pub(crate) fn args<'s>(&mut self, args: impl IntoIterator<Item = &'s str>) -> &mut Self {
        self.args.extend(args.into_iter().map(OsString::from));
        self
    }

    /// A setting for this call, `key=value`. (`-c` and not `GIT_CONFIG_COUNT`, which 2.30 lacks.)
    pub(crate) fn setting(&mut self, setting: &str) -> &mut Self {
        self.settings.push(setting.to_owned());
        self
    }

    pub(crate) fn limit(&mut self, limit: Duration) -> &mut Self {
        self.limit = limit;
        self
    }

    /// Runs it and returns what it printed.
    pub(crate) fn run(&self) -> Result<Vec<u8>, CliError> {
        let name = self.args.first().map(|arg| arg.to_string_lossy().into_owned()).unwrap_or_default();
        let mut child = self.command().spawn().map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => CliError::Missing,
            _ => CliError::Spawn { program: self.git.program.clone(), source },
        })?;
        let outcome = collect(&mut child, self.limit);
        let (stdout, stderr, status) = match outcome {
            Ok(done) => done,
            Err(stopped) => {
                end(&mut child);
                return Err(match stopped {
                    Stopped::TimedOut => CliError::TimedOut { command: name, seconds: self.limit.as_secs() },
                    Stopped::Flooded => CliError::OutputTooLarge { command: name, cap: OUTPUT_CAP },
                    Stopped::Io(source) => CliError::Spawn { program: self.git.program.clone(), source },
                });
            }
        };
        if !status.success() {
            let status = match (status.code(), status.signal()) {
                (Some(code), _) => format!("exit {code}"),
                (None, Some(signal)) => format!("signal {signal}"),
                (None, None) => "unknown status".to_owned(),
            };
            let text = String::from_utf8_lossy(stderr.get(..2048).unwrap_or(&stderr)).into_owned();
            return Err(CliError::Failed { command: name, status, stderr: clean(&text, 2048) });
        }
        Ok(stdout)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.git.program);
        command.env_clear().env("PATH", self.search_path());
        for (name, value) in ENVIRONMENT {
            command.env(name, value);
        }
        if let Some((control, home)) = self.place {
            command.env("GIT_DIR", control).env("HOME", home).current_dir(control);
        } else {
            command.env("HOME", "/nonexistent").current_dir("/");
        }
        command.args(["--no-pager", "--literal-pathspecs"]);
        for setting in SETTINGS.iter().copied().chain(self.settings.iter().map(String::as_str)) {
            command.args(["-c", setting]);
        }
        command.args(&self.args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0);
        command
    }

    fn search_path(&self) -> OsString {
        let own = self.git.program.parent().unwrap_or(Path::new("/usr/bin"));
        std::env::join_paths([own, Path::new("/usr/bin"), Path::new("/bin")])
            .unwrap_or_else(|_| "/usr/bin:/bin".into())
    }
}

/// The whole environment besides `PATH`, `HOME` and `GIT_DIR`.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_GRAFT_FILE", "/dev/null"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "/bin/false"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_ADVICE", "0"),
    ("GIT_PROTOCOL_FROM_USER", "0"),
    // Also reach the upload-pack behind our fetch, which drops settings given to its parent.
    ("GIT_ALLOW_PROTOCOL", "file"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_SSH_COMMAND", "/bin/false"),
];

/// Settings of every call. They win over the configuration of the directory, which an agent without a
/// sandbox can write to.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.alternateRefsCommand=",
    "protocol.ext.allow=never",
    "gc.auto=0",
    "maintenance.auto=false",
];

enum Stopped {
    TimedOut,
    Flooded,
    Io(std::io::Error),
}

/// Drains both pipes to the end, then takes the exit status; all before the deadline.
fn collect(child: &mut Child, limit: Duration) -> Result<(Vec<u8>, Vec<u8>, ExitStatus), Stopped> {
    let deadline = Instant::now() + limit;
    let (sender, receiver) = mpsc::channel();
    let out = child.stdout.take();
    let err = child.stderr.take();
    drain(out, sender.clone(), true);
    drain(err, sender, false);
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let left = deadline.saturating_duration_since(Instant::now());
        match receiver.recv_timeout(left) {
            Ok((_, None)) => return Err(Stopped::Flooded),
            Ok((true, Some(bytes))) => stdout = bytes,
            Ok((false, Some(bytes))) => stderr = bytes,
            Err(mpsc::RecvTimeoutError::Timeout) => return Err(Stopped::TimedOut),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    let mut pause = Duration::from_micros(100);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok((stdout, stderr, status)),
            Ok(None) if Instant::now() >= deadline => return Err(Stopped::TimedOut),
            // Both pipes are closed: the process is in its last microseconds.
            Ok(None) => std::thread::sleep(pause),
            Err(source) => return Err(Stopped::Io(source)),
        }
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

type Drained = (bool, Option<Vec<u8>>);

fn drain<R: Read + Send + 'static>(pipe: Option<R>, sender: mpsc::Sender<Drained>, is_stdout: bool) {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let cap = u64::try_from(OUTPUT_CAP).unwrap_or(u64::MAX);
        let read = pipe.map(|pipe| pipe.take(cap + 1).read_to_end(&mut bytes));
        // A pipe that fails to read has ended; the exit status tells the rest.
        drop(read);
        let result = (bytes.len() <= OUTPUT_CAP).then_some(bytes);
        // The receiver is gone when the call timed out: nobody wants this any more.
        drop(sender.send((is_stdout, result)));
    });
}

/// Kills the whole group and reaps the child. The child has not been reaped, so its id is still its own.
fn end(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // The group may be gone already.
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
    // Nothing can be done about a child that cannot be waited for.
    drop(child.wait());
}

/// The text of a failure, for classification.
pub(crate) fn failure_text(error: &CliError) -> Option<&str> {
    match error {
        CliError::Failed { stderr, .. } => Some(stderr),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(body: &str) -> (tempfile::TempDir, Git) {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("git");
        // By another process: what we open for writing a child of another test may still hold when it is started.
        let write = "printf '#!/bin/sh\\n%s\\n' \"$2\" > \"$1\" && chmod +x \"$1\"";
        let mut made = std::process::Command::new("/bin/sh");
        assert!(made.args(["-c", write, "sh"]).arg(&program).arg(body).status().unwrap().success());
        let git = Git::at(program);
        (dir, git)
    }

    #[test]
    fn versions_of_all_vendors_are_read() {
        let v = |major, minor, patch| Some(GitVersion { major, minor, patch });
        assert_eq!(parse_version("git version 2.39.5 (Apple Git-154)\n"), v(2, 39, 5));
        assert_eq!(parse_version("git version 2.47.3"), v(2, 47, 3));
        assert_eq!(parse_version("git version 2.50-rc1"), v(2, 50, 0));
        assert_eq!(parse_version("hub 1"), None);
    }

    #[test]
    fn an_old_git_is_refused() {
        let (_dir, git) = script("echo git version 2.29.9");
        assert!(matches!(git.version(), Err(CliError::TooOld { .. })));
    }

    #[test]
    fn a_call_that_does_not_end_is_killed_with_its_children() {
        use rustix::fs::{CWD, FileType, Mode, OFlags};
        let (dir, git) = script("exec 3>\"$HOME/alive\"; sleep 1000 & wait");
        let alive = dir.path().join("alive");
        rustix::fs::mknodat(CWD, &alive, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut pipe = std::fs::File::from(rustix::fs::openat(CWD, &alive, flags, Mode::empty()).unwrap());
        let mut call = git.call(dir.path(), dir.path());
        call.arg("fetch").limit(Duration::from_millis(500));
        assert!(matches!(call.run(), Err(CliError::TimedOut { .. })));
        // The script and the grandchild hold the pipe; its end comes when both are dead.
        let deadline = Instant::now() + Duration::from_secs(30);
        while pipe.read(&mut [0]).is_err() {
            assert!(Instant::now() < deadline, "the grandchild lives on");
            std::thread::yield_now();
        }
    }

    #[test]
    fn the_environment_of_a_call_is_ours_alone() {
        let (dir, git) = script("env");
        let mut call = git.call(dir.path(), dir.path());
        let text = String::from_utf8(call.arg("x").run().unwrap()).unwrap();
        let mut names: Vec<&str> =
            text.lines().filter_map(|line| line.split_once('=')).map(|p| p.0).collect();
        names.sort_unstable();
        for name in &names {
            let known = ENVIRONMENT.iter().any(|(known, _)| known == name);
            assert!(
                known || ["PATH", "HOME", "GIT_DIR", "PWD", "OLDPWD", "SHLVL", "_"].contains(name),
                "{name}"
            );
        }
        assert!(names.contains(&"GIT_DIR"));
    }

    #[test]
    fn a_failure_carries_its_words_without_control_bytes() {
        let (dir, git) = script("printf 'bad \\033[31m thing' >&2; exit 128");
        let error = git.call(dir.path(), dir.path()).arg("x").run().unwrap_err();
        assert_eq!(error.to_string(), "`git x` failed (exit 128): bad ?[31m thing");
    }

    #[test]
    fn relative_search_entries_are_skipped() {
        let (dir, _git) = script("true");
        assert!(matches!(Git::locate(OsStr::new("bin::./x")), Err(CliError::Missing)));
        assert!(Git::locate(dir.path().as_os_str()).is_ok());
    }
}
