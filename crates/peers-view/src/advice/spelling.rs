//! How the commands are spelt that an operator is told to type.

use std::path::Path;

use peers_model::command::{Command, Form, Piece, Step};
use peers_sys::term;

/// Who shows the command, and so how it is spelt. Each command is one line for a POSIX shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spelling {
    /// By name: `peers-ctl start NAME`, and `peers -C DIR goals diff` where only `peers` has the command.
    Ctl {
        /// The project's name.
        name: String,
        /// Where the loop works.
        dir: String,
        /// The directory of the controller's files, where it is not the usual one.
        config_dir: Option<String>,
    },
    /// By `peers-ctl`, of no project: `peers-ctl list`.
    Fleet {
        /// The directory of the controller's files, where it is not the usual one.
        config_dir: Option<String>,
    },
    /// By `peers` alone.
    Loop {
        /// The directory that was asked about, if that is not the one in which the command is typed.
        dir: Option<String>,
    },
}

/// A command that an operator is told to type, as it can be run too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    /// As it is typed, one line for a POSIX shell.
    pub line: String,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Its verb with its fixed options, such as `resume`; empty for another program.
    pub verb: &'static str,
    /// It is a line for a shell, such as a login. It names every path, and goes where no work tree is: what an agent left
    /// there has no say in it.
    pub is_line: bool,
}

/// The commands of these steps that are to be typed now.
fn to_type(steps: &[Step]) -> impl Iterator<Item = &Command> {
    steps.iter().flat_map(Step::pieces).filter_map(|piece| match piece {
        Piece::Type(command) => Some(command),
        Piece::Words(_) | Piece::Mention(_) => None,
    })
}

impl Default for Spelling {
    /// As it is typed in the directory of the loop.
    fn default() -> Self {
        Self::Loop { dir: None }
    }
}

impl Spelling {
    /// A command as it is typed; nothing where this reader has none, or where a name or a path cannot be typed
    /// as a terminal shows it.
    #[must_use]
    pub fn spell(&self, command: &Command) -> Option<String> {
        let typed = |word: &str| (term::inline(word) == word).then(|| term::quoted(word));
        self.line(command, &typed)
    }

    /// What is typed for these steps, `, then ` between them; nothing where a part of it cannot be.
    #[must_use]
    pub fn typed(&self, steps: &[Step]) -> Option<String> {
        let commands: Vec<String> =
            to_type(steps).map(|command| self.spell(command)).collect::<Option<_>>()?;
        (!commands.is_empty()).then(|| commands.join(", then "))
    }

    /// What [`Self::typed`] tells, command by command, as it is run.
    pub(super) fn commands(&self, steps: &[Step]) -> Vec<Typed> {
        let typed = to_type(steps).map(|command| {
            let verb = match (command, self) {
                (Command::Loop { ctl: Some(form), .. }, Self::Ctl { .. })
                | (
                    Command::Controller(form) | Command::Loop { peers: Some(form), .. } | Command::Git(form),
                    _,
                ) => form.verb,
                (Command::Loop { .. } | Command::Tool { .. } | Command::Line(_), _) => "",
            };
            let is_line = matches!(command, Command::Line(_));
            Some(Typed { line: self.spell(command)?, argv: self.argv(command)?, verb, is_line })
        });
        typed.collect::<Option<Vec<_>>>().unwrap_or_default()
    }

    /// A step in words, its commands in backticks; nothing where this reader lacks one of them.
    #[must_use]
    pub fn said(&self, step: &Step) -> Option<String> {
        let said = step.pieces().iter().map(|piece| match piece {
            Piece::Words(words) => Some(words.clone()),
            Piece::Type(command) | Piece::Mention(command) => {
                Some(format!("`{}`", self.line(command, &|word| Some(term::quoted(word)))?))
            }
        });
        said.collect()
    }

    /// The same; as somebody types it in the directory of the loop, where this reader lacks one of the commands.
    #[must_use]
    pub fn tell(&self, step: &Step) -> String {
        self.said(step).unwrap_or_else(|| step.to_string())
    }

    /// For who pointed a command at this directory.
    #[must_use]
    pub fn of_target(target: &Path) -> Self {
        Self::Loop { dir: (target != Path::new(".")).then(|| target.to_string_lossy().into_owned()) }
    }

    /// Whether projects have names here.
    pub(crate) fn is_by_name(&self) -> bool {
        matches!(self, Self::Ctl { .. })
    }

    fn line(&self, command: &Command, word: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let spelt = self.words(command)?.into_iter().map(|part| match part {
            Word::Ours(text) => Some(text),
            Word::Value(text) => word(&text),
        });
        Some(spelt.collect::<Option<Vec<_>>>()?.join(" "))
    }

    /// What runs when a command is typed: the program and its arguments. Nothing where this reader has none.
    #[must_use]
    pub fn argv(&self, command: &Command) -> Option<Vec<String>> {
        if let Command::Line(line) = command {
            return Some(["/bin/sh", "-c", line].map(str::to_owned).to_vec());
        }
        let argv = self.words(command)?.into_iter().flat_map(|part| match part {
            Word::Ours(text) => text.split_ascii_whitespace().map(str::to_owned).collect(),
            Word::Value(text) => vec![text],
        });
        Some(argv.collect())
    }

    /// The words of a command, in order.
    fn words(&self, command: &Command) -> Option<Vec<Word>> {
        let ours = |text: &str| Word::Ours(text.to_owned());
        let values = |form: &Form| form.words.iter().cloned().map(Word::Value).collect::<Vec<_>>();
        let program = |name: &str, dir: Option<&str>| match dir {
            Some(dir) => vec![ours(name), ours("-C"), Word::Value(dir.to_owned())],
            None => vec![ours(name)],
        };
        Some(match (command, self) {
            (Command::Line(line), _) => vec![ours(line)],
            (Command::Loop { ctl: Some(form), .. }, Self::Ctl { name, .. }) => {
                let named = vec![ours(form.verb), Word::Value(name.clone())];
                [self.controller(), named, values(form)].concat()
            }
            (Command::Loop { peers, dir, .. }, _) => {
                let form = peers.as_ref()?;
                let program = program("peers", dir.as_deref().or(self.elsewhere()));
                [program, vec![ours(form.verb)], values(form)].concat()
            }
            (Command::Controller(form), _) => {
                [self.controller(), vec![ours(form.verb)], values(form)].concat()
            }
            (Command::Git(form), _) => {
                [program("git", self.elsewhere()), vec![ours(form.verb)], values(form)].concat()
            }
            (Command::Tool { words, place }, _) => {
                let place =
                    place.map(|place| Word::Value(format!("{}{place}", self.elsewhere().unwrap_or("."))));
                words.iter().cloned().map(Word::Value).chain(place).collect()
            }
        })
    }

    /// `peers-ctl --config-dir DIR`.
    fn controller(&self) -> Vec<Word> {
        let ours = |text: &str| Word::Ours(text.to_owned());
        match self {
            Self::Ctl { config_dir: Some(dir), .. } | Self::Fleet { config_dir: Some(dir) } => {
                vec![ours("peers-ctl"), ours("--config-dir"), Word::Value(dir.clone())]
            }
            _ => vec![ours("peers-ctl")],
        }
    }

    /// The directory that a command has to name.
    fn elsewhere(&self) -> Option<&str> {
        match self {
            Self::Ctl { dir, .. } => Some(dir),
            Self::Fleet { .. } => None,
            Self::Loop { dir } => dir.as_deref(),
        }
    }
}

/// A part of a command.
#[derive(Debug, Clone)]
enum Word {
    /// Words of ours, which need no quotes.
    Ours(String),
    /// One word of a shell.
    Value(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ctl(name: &str, dir: &str) -> Spelling {
        Spelling::Ctl { name: name.into(), dir: dir.into(), config_dir: None }
    }

    fn space() -> Command {
        Command::Tool { words: vec!["df".into(), "-h".into()], place: Some("") }
    }

    #[test]
    fn a_line_for_a_shell_is_told_apart_and_what_is_only_spoken_of_is_not_run() {
        let login =
            Step::of(Command::Line("codex login".to_owned())).mention(Command::Line("/login".to_owned()));
        let commands = Spelling::default().commands(&[login, Step::of(Command::run())]);
        let told: Vec<(&str, bool)> =
            commands.iter().map(|typed| (typed.line.as_str(), typed.is_line)).collect();
        assert_eq!(told, [("codex login", true), ("peers run", false)]);
        assert_eq!(
            commands.first().map(|typed| typed.argv.clone()),
            Some(["/bin/sh", "-c", "codex login"].map(str::to_owned).to_vec())
        );
    }

    #[test]
    fn commands_are_spelt_for_who_shows_them() {
        let diff = Command::peers("goals diff");
        let by_name = ctl("billing", "/srv/a b");
        assert_eq!(by_name.spell(&Command::resume()).unwrap(), "peers-ctl resume billing --start");
        assert_eq!(by_name.spell(&diff).unwrap(), "peers -C '/srv/a b' goals diff");
        assert_eq!(
            by_name.spell(&Command::git("worktree prune")).unwrap(),
            "git -C '/srv/a b' worktree prune"
        );
        assert_eq!(by_name.spell(&space()).unwrap(), "df -h '/srv/a b'");
        let here = Spelling::Loop { dir: None };
        assert_eq!(here.spell(&Command::resume()).unwrap(), "peers run");
        assert_eq!(here.spell(&space()).unwrap(), "df -h .");
        assert_eq!(here.spell(&Command::named("peek")), None);
        let other = Spelling::Loop { dir: Some("/x".into()) };
        assert_eq!(other.spell(&Command::run()).unwrap(), "peers -C /x run");
        assert_eq!(other.spell(&Command::run().at(Some("/y"))).unwrap(), "peers -C /y run");
        let elsewhere = Spelling::Ctl { name: "a".into(), dir: "/r".into(), config_dir: Some("/c d".into()) };
        assert_eq!(elsewhere.spell(&Command::run()).unwrap(), "peers-ctl --config-dir '/c d' start a");
    }

    #[test]
    fn no_shell_sees_more_than_one_word_and_nothing_that_is_not_shown_is_typed() {
        let evil = ctl("a; rm -rf ~", "/x'$(y)`z`");
        assert_eq!(evil.spell(&Command::run()).unwrap(), "peers-ctl start 'a; rm -rf ~'");
        let land = Command::peers("land");
        assert_eq!(evil.spell(&land).unwrap(), r"peers -C '/x'\''$(y)`z`' land");
        for unseen in ["/x\ny", "/x\u{1b}[2J", "/x\u{202e}y", "/x\u{200b}"] {
            let spelling = ctl("a", unseen);
            assert_eq!((spelling.spell(&land), spelling.spell(&space())), (None, None), "{unseen:?}");
            assert!(spelling.spell(&Command::run()).is_some());
            assert!(spelling.said(&Step::of(land.clone())).unwrap().contains("$(printf"), "{unseen:?}");
        }
    }

    #[test]
    fn a_step_says_what_is_typed_and_what_is_not() {
        let steps = [Step::from("look (").run(Command::status()).say(") or ").mention(Command::report())];
        let here = Spelling::Loop { dir: None };
        assert_eq!(here.said(&steps[0]).unwrap(), "look (`peers status`) or `peers report`");
        assert_eq!(here.typed(&steps).unwrap(), "peers status");
    }
}
