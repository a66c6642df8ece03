//! Commands that an operator is told to type, as values. Who shows one spells it.

use std::fmt;

use serde::{Serialize, Serializer};

/// Options of git for a line that an operator runs with one key: what lies in the repository has no say in it.
pub const NO_HOOKS: &str = "-c core.hooksPath=/dev/null";

/// A command line without the name of its program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    /// The command and its fixed options, such as `goals edit --config`.
    pub verb: &'static str,
    /// What follows, each one word of a shell.
    pub words: Vec<String>,
}

impl From<&'static str> for Form {
    fn from(verb: &'static str) -> Self {
        Self { verb, words: Vec::new() }
    }
}

/// A command that somebody can type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// One about a loop.
    Loop {
        /// What `peers` has for it.
        peers: Option<Form>,
        /// What `peers-ctl` has for it: the name of the project follows the verb.
        ctl: Option<Form>,
        /// Where `peers` has to work, if that is not where the reader is.
        dir: Option<String>,
    },
    /// One of `peers-ctl` that names its project itself, or needs none.
    Controller(Form),
    /// One of git, in the directory of the loop.
    Git(Form),
    /// Another program with its words; `place` follows the directory of the loop as the last word.
    Tool {
        /// The program and its words.
        words: Vec<String>,
        /// A path below the directory of the loop, or nothing for the directory itself.
        place: Option<&'static str>,
    },
    /// A line that is spelt already, since nobody has a shorter one.
    Line(String),
}

impl Command {
    /// `peers VERB`, which the controller does not have.
    #[must_use]
    pub fn peers(verb: &'static str) -> Self {
        Self::Loop { peers: Some(verb.into()), ctl: None, dir: None }
    }

    /// `peers VERB`, and `peers-ctl CTL NAME` for who has names.
    #[must_use]
    pub fn either(verb: &'static str, ctl: &'static str) -> Self {
        Self::Loop { peers: Some(verb.into()), ctl: Some(ctl.into()), dir: None }
    }

    /// `peers-ctl VERB NAME`, for who has names alone.
    #[must_use]
    pub fn named(verb: &'static str) -> Self {
        Self::Loop { peers: None, ctl: Some(verb.into()), dir: None }
    }

    /// `git VERB`.
    #[must_use]
    pub fn git(verb: &'static str) -> Self {
        Self::Git(verb.into())
    }

    /// Another program.
    #[must_use]
    pub fn tool(words: &[&str]) -> Self {
        Self::Tool { words: words.iter().map(|word| (*word).to_owned()).collect(), place: None }
    }

    /// Starts a loop, or goes on with it.
    #[must_use]
    pub fn run() -> Self {
        Self::either("run", "start")
    }

    /// Starts one whose operator has seen to what it stopped for.
    #[must_use]
    pub fn resume() -> Self {
        Self::either("run", "resume").with_ctl("--start")
    }

    /// Shows how it stands.
    #[must_use]
    pub fn status() -> Self {
        Self::either("status", "status")
    }

    /// Tells what happened.
    #[must_use]
    pub fn report() -> Self {
        Self::either("report", "report")
    }

    /// Looks whether the loop can run.
    #[must_use]
    pub fn doctor() -> Self {
        Self::either("doctor", "doctor")
    }

    /// The same, and asks each peer for a word.
    #[must_use]
    pub fn doctor_live() -> Self {
        Self::either("doctor", "doctor").with("--live")
    }

    /// The same with one more word.
    #[must_use]
    pub fn with(self, word: &str) -> Self {
        self.with_peers(word).with_ctl(word)
    }

    /// The same with one more word for `peers`, git or another program.
    #[must_use]
    pub fn with_peers(mut self, word: &str) -> Self {
        match &mut self {
            Self::Loop { peers: Some(form), .. } | Self::Git(form) => form.words.push(word.to_owned()),
            Self::Tool { words, .. } => words.push(word.to_owned()),
            Self::Loop { .. } | Self::Controller(_) | Self::Line(_) => {}
        }
        self
    }

    /// The same with one more word for `peers-ctl`.
    #[must_use]
    pub fn with_ctl(mut self, word: &str) -> Self {
        if let Self::Loop { ctl: Some(form), .. } = &mut self {
            form.words.push(word.to_owned());
        }
        self
    }

    /// The same where `peers` works in another directory than the one of the reader.
    #[must_use]
    pub fn at(mut self, elsewhere: Option<&str>) -> Self {
        if let (Self::Loop { dir, .. }, Some(elsewhere)) = (&mut self, elsewhere) {
            *dir = Some(elsewhere.to_owned());
        }
        self
    }
}

/// A part of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Words for people.
    Words(String),
    /// A command to be typed now.
    Type(Command),
    /// A command that is only spoken of: another way, or what comes later.
    Mention(Command),
}

/// What somebody does next: words around commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step(Vec<Piece>);

impl Step {
    /// One that begins with a command.
    #[must_use]
    pub fn of(command: Command) -> Self {
        Self(vec![Piece::Type(command)])
    }

    /// Adds words.
    #[must_use]
    pub fn say(mut self, words: impl Into<String>) -> Self {
        match self.0.last_mut() {
            Some(Piece::Words(said)) => said.push_str(&words.into()),
            _ => self.0.push(Piece::Words(words.into())),
        }
        self
    }

    /// Adds another step.
    #[must_use]
    pub fn join(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Adds a command to be typed.
    #[must_use]
    pub fn run(mut self, command: Command) -> Self {
        self.0.push(Piece::Type(command));
        self
    }

    /// Adds a command that is only spoken of.
    #[must_use]
    pub fn mention(mut self, command: Command) -> Self {
        self.0.push(Piece::Mention(command));
        self
    }

    /// The same, whose commands are all only spoken of.
    #[must_use]
    pub fn spoken(self) -> Self {
        let spoken = |piece| match piece {
            Piece::Type(command) => Piece::Mention(command),
            other => other,
        };
        Self(self.0.into_iter().map(spoken).collect())
    }

    /// Its parts, in order.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.0
    }
}

impl Step {
    /// One of our own sentences. Each `{}` takes the next value. What stands in backticks and begins with the name of
    /// a program of ours, or of git, is a command, unless it says itself in which directory; a value in it is a part of
    /// one word. Values are never looked into: a text from elsewhere cannot become a command.
    #[must_use]
    pub fn text(sentence: &'static str, values: &[&str]) -> Self {
        let mut step = Self::default();
        let mut values = values.iter();
        for (at, part) in sentence.split('`').enumerate() {
            if let Some((program, line)) = known(part).filter(|_| at % 2 == 1) {
                step = step.mention(program.command(line, &mut values));
            } else {
                let tick = if at % 2 == 1 { "`" } else { "" };
                step = step.say(format!("{tick}{}{tick}", filled(part, &mut values)));
            }
        }
        step
    }
}

/// Whose command it is.
#[derive(Clone, Copy)]
enum Program {
    Peers,
    Controller,
    Git,
}

/// The program and what follows its name.
fn known(part: &'static str) -> Option<(Program, &'static str)> {
    let (name, line) = part.split_once(' ')?;
    let program = match name {
        "peers" => Program::Peers,
        "peers-ctl" => Program::Controller,
        "git" => Program::Git,
        _ => return None,
    };
    let placed = line.starts_with("-C ") || line.starts_with("--config-dir ");
    (!placed).then_some((program, line))
}

impl Program {
    fn command<'a>(self, line: &'static str, values: &mut impl Iterator<Item = &'a &'a str>) -> Command {
        // The words from the first with a value on are words of their own.
        let fixed = line.find('{').map_or(line.len(), |open| {
            line.get(..open).and_then(|before| before.rfind(' ')).unwrap_or_default()
        });
        let (verb, words) = line.split_at_checked(fixed).unwrap_or((line, ""));
        let words = words.split_ascii_whitespace().map(|word| filled(word, values)).collect();
        let form = Form { verb, words };
        match self {
            Self::Git => Command::Git(form),
            Self::Controller => Command::Controller(form),
            Self::Peers => match line {
                "run" => Command::run(),
                "status" => Command::status(),
                "report" => Command::report(),
                "doctor" => Command::doctor(),
                "doctor --live" => Command::doctor_live(),
                _ => Command::Loop { peers: Some(form), ctl: None, dir: None },
            },
        }
    }
}

/// A text whose gaps are filled.
fn filled<'a>(text: &str, values: &mut impl Iterator<Item = &'a &'a str>) -> String {
    let mut parts = text.split("{}");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        whole.push_str(values.next().copied().unwrap_or_default());
        whole.push_str(part);
    }
    whole
}

impl From<&'static str> for Step {
    /// One of our own sentences, see [`Step::text`].
    fn from(sentence: &'static str) -> Self {
        Self::text(sentence, &[])
    }
}

/// As somebody types it who stands in the directory of the loop, has one registry, and knows the project's name.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &self.0 {
            match piece {
                Piece::Words(words) => f.write_str(words)?,
                Piece::Type(command) | Piece::Mention(command) => write!(f, "`{command}`")?,
            }
        }
        Ok(())
    }
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (program, form) = match self {
            Self::Loop { peers: Some(form), .. } => ("peers", form),
            Self::Loop { peers: None, ctl: Some(form), .. } | Self::Controller(form) => ("peers-ctl", form),
            Self::Git(form) => ("git", form),
            Self::Loop { .. } => return Ok(()),
            Self::Tool { words, place } => {
                let words: Vec<_> = words.iter().map(|text| word(text)).collect();
                f.write_str(&words.join(" "))?;
                return place.map_or(Ok(()), |place| write!(f, " .{place}"));
            }
            Self::Line(line) => return f.write_str(line),
        };
        write!(f, "{program} {}", form.verb)?;
        form.words.iter().try_for_each(|text| write!(f, " {}", word(text)))
    }
}

/// `text` as one word of a POSIX shell. What a terminal should not be sent stands there as it is.
#[must_use]
pub fn word(text: &str) -> String {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ':' | ',' | '@');
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

impl From<String> for Step {
    fn from(words: String) -> Self {
        Self::default().say(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_in_a_sentence_is_one_and_a_value_never_becomes_one() {
        let step = Step::text("`{}` is gone: `peers undo {}`, or `rm {}`", &["`peers land`", "a b", "x"]);
        let commands: Vec<_> =
            step.pieces().iter().filter(|piece| !matches!(piece, Piece::Words(_))).collect();
        assert_eq!(commands, [&Piece::Mention(Command::peers("undo").with_peers("a b"))]);
        assert_eq!(step.to_string(), "``peers land`` is gone: `peers undo 'a b'`, or `rm x`");
    }

    #[test]
    fn a_command_that_names_its_directory_is_left_alone() {
        for line in ["see `peers -C DIR init`", "see `peers-ctl --config-dir DIR list`", "see `codex login`"]
        {
            assert_eq!(Step::text(line, &[]).pieces(), [Piece::Words(line.to_owned())]);
        }
        let known = Step::from("`peers run`, `peers-ctl list`, `git status`");
        assert_eq!(known.to_string(), "`peers run`, `peers-ctl list`, `git status`");
        assert_eq!(known.pieces().iter().filter(|piece| matches!(piece, Piece::Mention(_))).count(), 3);
    }
}
