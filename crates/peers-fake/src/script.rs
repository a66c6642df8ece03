//! The script: who is played, in which format, and the turns.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use peers_sys::yaml;
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use thiserror::Error;

use crate::args::Texts;
use crate::step::Step;

/// Longest script, in bytes.
pub const MAX_BYTES: u64 = 1024 * 1024;

/// A script.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The output format; without it the switches of the tool say it.
    #[serde(rename = "as", default)]
    pub dialect: Option<Dialect>,
    /// The peer's name, over the one that the loop gives it.
    #[serde(default)]
    pub peer: Option<String>,
    /// The model that the output names.
    #[serde(default)]
    pub model: Option<String>,
    /// How the turn is known.
    #[serde(default)]
    pub count: Count,
    /// What comes after the last turn.
    #[serde(default)]
    pub after: After,
    /// The turns, in order.
    pub turns: Vec<Turn>,
}

/// Whose output is imitated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// Claude Code with `--output-format stream-json`.
    Claude,
    /// `codex exec --json`.
    Codex,
    /// `opencode run --format json`.
    Opencode,
    /// The Agent Client Protocol, as an agent.
    Acp,
    /// Plain text.
    #[default]
    Plain,
}

impl Dialect {
    /// The format that the switches of a real tool ask for; plain text where they ask for none.
    #[must_use]
    pub fn asked_for(switches: &[String]) -> Self {
        let has = |word: &str| switches.iter().any(|switch| switch == word);
        let format = |name: &str, wanted: &[&str]| {
            let spaced = switches.windows(2).any(
                |pair| matches!(pair, [option, value] if option == name && wanted.contains(&value.as_str())),
            );
            let joined = || switches.iter().filter_map(|switch| switch.strip_prefix(name)?.strip_prefix('='));
            spaced || joined().any(|value| wanted.contains(&value))
        };
        if format("--output-format", &["stream-json", "json"]) {
            Self::Claude
        } else if has("exec") && has("--json") {
            Self::Codex
        } else if has("run") && format("--format", &["json"]) {
            Self::Opencode
        } else if has("acp") || has("--acp") {
            Self::Acp
        } else {
            Self::Plain
        }
    }

    /// The name in scripts.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
            Self::Acp => "acp",
            Self::Plain => "plain",
        }
    }
}

/// How the turn is known: each invocation is a new process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Count {
    /// A counter in the state file, one per peer.
    #[default]
    Turns,
    /// The number of the loop's tick (`PEERS_ITERATION`): turn 3 is played in tick 3, whoever is asked.
    Ticks,
}

/// What comes after the last turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum After {
    /// Say that there is nothing left to do, and end well.
    #[default]
    Idle,
    /// Play the last turn again.
    Repeat,
    /// Begin again with the first turn.
    Cycle,
    /// End with exit code 1.
    Fail,
}

/// One invocation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Turn {
    /// When given, the turn is played whenever this holds, and is left out of the count.
    pub on: Option<Condition>,
    /// What to do.
    pub steps: Vec<Step>,
}

/// Something to look at before a turn or a step. All that is given must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Condition {
    /// The prompt contains each of these texts.
    pub prompt: Texts,
    /// These variables are set: `NAME`, or `NAME=VALUE`.
    pub env: Texts,
    /// These files exist.
    pub file: Texts,
}

impl<'de> Deserialize<'de> for Turn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Long {
            #[serde(default)]
            on: Option<Condition>,
            steps: Vec<Step>,
        }
        struct TurnVisitor;
        impl<'de> Visitor<'de> for TurnVisitor {
            type Value = Turn;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of steps, or a mapping with `on` and `steps`")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Turn, A::Error> {
                let steps = Vec::deserialize(SeqAccessDeserializer::new(seq))?;
                Ok(Turn { on: None, steps })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Turn, A::Error> {
                let Long { on, steps } = Long::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Turn { on, steps })
            }
        }
        deserializer.deserialize_any(TurnVisitor)
    }
}

/// A script that cannot be used.
#[derive(Debug, Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file is too long.
    #[error("{} is longer than {MAX_BYTES} bytes", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// The text is no script.
    #[error(transparent)]
    Invalid(Box<yaml::YamlError>),
}

impl Script {
    /// Reads a script; `name` is for messages.
    ///
    /// # Errors
    /// [`ScriptError::Invalid`] with the place in the text.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScriptError> {
        yaml::from_str(name, text).map_err(|error| ScriptError::Invalid(Box::new(error)))
    }

    /// Reads a script file.
    ///
    /// # Errors
    /// [`ScriptError`] names the file.
    pub fn load(path: &Path) -> Result<Self, ScriptError> {
        let read = |source| ScriptError::Read { path: path.to_owned(), source };
        let mut text = String::new();
        File::open(path).map_err(read)?.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(read)?;
        if u64::try_from(text.len()).unwrap_or(u64::MAX) > MAX_BYTES {
            return Err(ScriptError::TooLong { path: path.to_owned() });
        }
        Self::parse(&path.display().to_string(), &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Script::parse("s.yaml", text).expect_err(text).to_string()
    }

    #[test]
    fn a_turn_is_a_list_of_steps_or_has_a_condition() {
        let script = Script::parse(
            "s.yaml",
            "as: claude\nturns:\n- - say: hi\n  - silent\n- on: {prompt: skeptic}\n  steps: [hang]\n",
        )
        .expect("script");
        assert_eq!(script.dialect, Some(Dialect::Claude));
        assert_eq!(script.turns[0].steps.len(), 2);
        assert_eq!(script.turns[1].on.as_ref().map(|on| on.prompt.0.len()), Some(1));
        assert_eq!((script.after, script.count), (After::Idle, Count::Turns));
    }

    #[test]
    fn the_switches_of_a_tool_say_its_format() {
        let asked = |line: &str| {
            let switches: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            Dialect::asked_for(&switches)
        };
        assert_eq!(asked("-p --output-format stream-json --verbose"), Dialect::Claude);
        assert_eq!(asked("--print --output-format=stream-json"), Dialect::Claude);
        assert_eq!(asked("-c model=\"x\" exec --json --skip-git-repo-check -"), Dialect::Codex);
        assert_eq!(asked("run --format json --auto"), Dialect::Opencode);
        assert_eq!((asked("acp"), asked("-y --acp")), (Dialect::Acp, Dialect::Acp));
        for plain in ["", "-p", "--output-format text", "exec -", "--json"] {
            assert_eq!(asked(plain), Dialect::Plain, "{plain:?}");
        }
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, words) in [
            ("turns:\n- - sey: hi\n", "sey"),
            ("turns:\n- - commit: {subjekt: x}\n", "subjekt"),
            ("turns:\n- - say: hi\n    exit: 3\n", "one step"),
            ("turns: []\nafters: idle\n", "afters"),
            ("turns:\n- - sleep: soon\n", "soon"),
            ("turns:\n- - flood: {bytes: 5 tons}\n", "5 tons"),
            ("turns:\n- - say\n", "say"),
        ] {
            let message = error(text);
            assert!(message.contains(words) && message.starts_with("s.yaml:"), "{text:?}: {message}");
        }
    }
}
