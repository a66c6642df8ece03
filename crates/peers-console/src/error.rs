//! Why a command failed, and how that is shown.

use std::error::Error;
use std::fmt::Write as _;
use std::io;

use peers_git::{CliError, GitError, RepoError};
use peers_model::command::Step;
use peers_model::exit;
use peers_place::{FREE_SPACE, PlaceError, file_exit, file_hint, repo_exit, repo_hint, store_exit};
use peers_run::boot::BootError;
use peers_setup::ScaffoldError;
use peers_store::{DiskError, StoreError};
use peers_sys::dir::FileError;
use peers_sys::term;
use peers_view::Spelling;
use serde_json::json;

/// What a command ends with when it cannot do what was asked.
#[derive(Debug)]
pub struct CommandError {
    kind: Kind,
    problems: Vec<Problem>,
}

/// Decides the exit code, alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A row of the table of exit codes.
    Exit(u8),
    /// The reader of our output is gone: nothing to say, and nobody to say it to.
    BrokenPipe,
}

#[derive(Debug)]
struct Problem {
    message: String,
    hints: Vec<Step>,
}

impl CommandError {
    /// From a message of ours; foreign text in it has passed the sanitiser.
    #[must_use]
    pub fn new(exit: u8, message: impl Into<String>) -> Self {
        let problem = Problem { message: message.into(), hints: Vec::new() };
        Self { kind: Kind::Exit(exit), problems: vec![problem] }
    }

    /// From an error of a library, with its causes.
    #[must_use]
    pub fn of(exit: u8, error: &dyn Error) -> Self {
        Self::new(exit, chain(error))
    }

    /// A wrong use of the command line that the parser cannot see.
    #[must_use]
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(exit::USAGE, message)
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Step>) -> Self {
        if let Some(last) = self.problems.last_mut() {
            last.hints.push(hint.into());
        }
        self
    }

    /// Adds what to do about it, if that is known.
    #[must_use]
    pub fn hint_opt(self, hint: Option<impl Into<Step>>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// The same with commands as whoever reads it types them. What was spelt before stays.
    #[must_use]
    pub fn spelt(mut self, spelling: &Spelling) -> Self {
        for hint in self.problems.iter_mut().flat_map(|problem| &mut problem.hints) {
            *hint = spelling.tell(hint).into();
        }
        self
    }

    /// The same with another exit code.
    #[must_use]
    pub fn with_exit(mut self, exit: u8) -> Self {
        self.kind = Kind::Exit(exit);
        self
    }

    /// What happened and what to do, in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        let texts = self.problems.iter().flat_map(|Problem { message, hints }| {
            std::iter::once(message.clone()).chain(hints.iter().map(Step::to_string))
        });
        texts.collect::<Vec<_>>().join("; ")
    }

    /// The exit code.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self.kind {
            Kind::Exit(code) => code,
            Kind::BrokenPipe => exit::OK,
        }
    }

    /// Whether there is nobody to tell.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.kind == Kind::BrokenPipe
    }

    /// What happened: the first problem.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.problems.first().map(|problem| problem.message.as_str())
    }

    /// What to do about the first problem.
    #[must_use]
    pub fn first_hint(&self) -> Option<&Step> {
        self.problems.first()?.hints.first()
    }

    /// All problems for machines, each with its hints.
    #[must_use]
    pub fn problems_json(&self) -> Vec<serde_json::Value> {
        let row = |Problem { message, hints }: &Problem| json!({"message": message, "hints": hints});
        self.problems.iter().map(row).collect()
    }

    /// The failure for machines, schema `peers.error/1`, with its line end.
    #[must_use]
    pub fn json(&self) -> String {
        let body = json!({
            "schema": "peers.error/1",
            "code": self.exit_code(),
            "message": self.message(),
            "hint": self.first_hint(),
            "problems": self.problems_json(),
        });
        format!("{body:#}\n")
    }

    /// The text for standard error, line ends included; empty when there is nothing to say.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = String::new();
        if self.kind == Kind::BrokenPipe {
            return text;
        }
        for Problem { message, hints } in &self.problems {
            let message = term::block(message);
            // Each problem of a file names itself already.
            let named = ["config error: ", "goals error: "].iter().any(|word| message.starts_with(word));
            let prefix = if named { "" } else { "error: " };
            // Writing to a string does not fail.
            let _infallible = writeln!(text, "{prefix}{message}");
            for hint in hints {
                let _infallible = writeln!(text, "hint: {}", term::block(&hint.to_string()));
            }
        }
        text
    }
}

/// What the parser of the command line says is wrong, in one line: without usage and advice, which stand below. An
/// argument in it may have lines of its own.
#[must_use]
pub fn parsing(text: &str) -> String {
    let ends = ["\n\nUsage:", "\n\n  tip:", "\n  [possible values:", "\n\nFor more information"];
    let end = ends.iter().filter_map(|end| text.find(end)).min().unwrap_or(text.len());
    let said = text.get(..end).unwrap_or(text).trim_end();
    term::line(said.strip_prefix("error: ").unwrap_or(said), 400)
}

/// What helps whoever asked one program for a command that only `other` has, of these.
#[must_use]
pub fn of_other(command: &str, other: &str, commands: &[&str]) -> Option<String> {
    commands.contains(&command).then(|| format!("`{command}` is a command of {other}: `{other} {command}`"))
}

/// An error with its causes, in one line. A cause that its parent quotes already is left out.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut at = error.source();
    while let Some(cause) = at {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        at = cause.source();
    }
    text
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self { kind: Kind::BrokenPipe, problems: Vec::new() };
        }
        Self::new(exit::BUG, format!("write the output: {error}"))
    }
}

impl From<PlaceError> for CommandError {
    fn from(error: PlaceError) -> Self {
        Self::of(error.exit(), &error).hint_opt(error.hint())
    }
}

impl From<ScaffoldError> for CommandError {
    fn from(error: ScaffoldError) -> Self {
        Self::of(error.exit(), &error).hint_opt(error.hint())
    }
}

impl From<BootError> for CommandError {
    fn from(error: BootError) -> Self {
        let kind = Kind::Exit(error.exit_code());
        let problems = error
            .findings
            .into_iter()
            .map(|finding| Problem { message: finding.message, hints: finding.hint.into_iter().collect() })
            .collect();
        Self { kind, problems }
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        Self::of(store_exit(&error), &error).hint_opt(error.hint())
    }
}

impl From<DiskError> for CommandError {
    fn from(error: DiskError) -> Self {
        StoreError::Disk(error).into()
    }
}

impl From<FileError> for CommandError {
    fn from(error: FileError) -> Self {
        Self::of(file_exit(&error), &error).hint_opt(file_hint(&error))
    }
}

impl From<RepoError> for CommandError {
    fn from(error: RepoError) -> Self {
        Self::of(repo_exit(&error), &error).hint(repo_hint(&error))
    }
}

impl From<CliError> for CommandError {
    fn from(error: CliError) -> Self {
        Self::of(exit::ENVIRONMENT, &error)
    }
}

impl From<GitError> for CommandError {
    fn from(error: GitError) -> Self {
        match error {
            GitError::Repo(error) => error.into(),
            GitError::Cli(error) => error.into(),
            GitError::Exists { .. } | GitError::Moved { .. } => Self::of(exit::CONFLICT, &error),
            GitError::Unsafe { .. } => Self::of(exit::REFUSED, &error),
            GitError::DiskFull { .. } => Self::of(exit::BUG, &error).hint(FREE_SPACE),
            _ => Self::of(exit::INVALID, &error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_with_its_hints_below() {
        let error = CommandError::new(exit::REFUSED, "goals.yaml changed since it was accepted")
            .hint("review the diff, then run `peers goals accept`");
        assert_eq!(error.exit_code(), 5);
        assert_eq!(
            error.render(),
            "error: goals.yaml changed since it was accepted\nhint: review the diff, then run `peers goals accept`\n"
        );
    }

    #[test]
    fn its_commands_are_those_of_who_reads_it_and_are_spelt_once() {
        let error =
            CommandError::new(exit::INVALID, "x").hint("`peers run`, or `peers-ctl list`, or `git status`");
        let there = Spelling::Loop { dir: Some("a b".into()) };
        let told = "error: x\nhint: `peers -C 'a b' run`, or `peers-ctl list`, or `git -C 'a b' status`\n";
        let spelt = error.spelt(&there);
        assert_eq!(spelt.render(), told);
        assert_eq!(spelt.spelt(&Spelling::Loop { dir: Some("elsewhere".into()) }).render(), told);
        let config_dir = Some("/c".into());
        let by_name = Spelling::Ctl { name: "ann".into(), dir: "/r".into(), config_dir };
        let error = CommandError::new(exit::INVALID, "x").hint("`peers run`, or `peers-ctl list`");
        assert_eq!(
            error.spelt(&by_name).render(),
            "error: x\nhint: `peers-ctl --config-dir /c start ann`, or `peers-ctl --config-dir /c list`\n"
        );
    }

    #[test]
    fn a_closed_pipe_says_nothing_and_is_no_failure() {
        let error = CommandError::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!((error.exit_code(), error.render().as_str()), (0, ""));
    }

    #[test]
    fn a_failure_for_machines_is_one_object_with_all_problems() {
        let error = CommandError::new(exit::CONFLICT, "taken").hint("take another").hint("or wait");
        let value: serde_json::Value = serde_json::from_str(&error.json()).unwrap();
        assert_eq!((&value["schema"], &value["code"]), (&"peers.error/1".into(), &4.into()));
        assert_eq!((&value["message"], &value["hint"]), (&"taken".into(), &"take another".into()));
        assert_eq!(value["problems"][0]["hints"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn foreign_text_cannot_steer_the_terminal() {
        let error = CommandError::new(exit::INVALID, "no run `\u{1b}[2Jx`");
        assert_eq!(error.render(), "error: no run `x`\n");
    }

    #[test]
    fn an_argument_with_lines_of_its_own_is_told_whole() {
        let text = "error: invalid value '{\n  \"a\": 1\n}' for '--ticks <N>': no number\n\nFor more information, try '--help'.\n";
        assert_eq!(parsing(text), "invalid value '{   \"a\": 1 }' for '--ticks <N>': no number");
        let text =
            "error: unexpected argument '--x{y}' found\n\n  tip: a similar argument exists\n\nUsage: peers\n";
        assert_eq!(parsing(text), "unexpected argument '--x{y}' found");
    }

    #[test]
    fn a_cause_that_is_quoted_already_is_not_repeated() {
        #[derive(Debug, thiserror::Error)]
        #[error("read x: gone")]
        struct Quoting(#[source] Gone);
        #[derive(Debug, thiserror::Error)]
        #[error("gone")]
        struct Gone;
        assert_eq!(chain(&Quoting(Gone)), "read x: gone");
    }
}
