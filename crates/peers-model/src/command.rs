//! Commands that an operator is told to type, as values. Who shows one spells it.

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
            Self::Loop { .. } | Self::Line(_) => {}
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
        self.0.push(Piece::Words(words.into()));
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

impl From<&str> for Step {
    fn from(words: &str) -> Self {
        Self::default().say(words)
    }
}

impl From<String> for Step {
    fn from(words: String) -> Self {
        Self::default().say(words)
    }
}
