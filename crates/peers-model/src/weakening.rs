//! What a change takes from the tests and gates of a repository, as it was measured.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One way in which a change weakened tests or gates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weakening {
    /// The file that it was found in. Untrusted text.
    pub path: String,
    /// What was weakened there.
    pub what: Weakened,
}

/// What was weakened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Weakened {
    /// Fewer tests than before.
    Tests {
        /// How many are missing.
        lost: u64,
    },
    /// Fewer assertions than before, each as often as a table of cases repeats it.
    Assertions {
        /// How many are missing.
        lost: u64,
    },
    /// Assertions say less than before.
    Looser {
        /// How many.
        lost: u64,
    },
    /// Tests are skipped, ignored or expected to fail.
    Skips {
        /// How many more than before.
        added: u64,
    },
    /// A stored expected output was written anew or removed.
    Snapshot,
    /// A number that a gate demands is lower, or gone. All untrusted text.
    Threshold {
        /// The key.
        key: String,
        /// The value before.
        from: String,
        /// The value after, if there is one.
        to: Option<String>,
    },
    /// It could be read before, and cannot be any more: it is no text, too large, or not of its language.
    Unreadable,
    /// A module whose file is still there is no longer compiled.
    Orphan {
        /// Its name. Untrusted text.
        module: String,
    },
    /// Test code takes a hand in what is collected, what counts, or when the run ends.
    Hook,
    /// The configuration of a gate changed.
    GateConfig,
}

impl Weakened {
    /// That it was found in this file.
    #[must_use]
    pub fn at(self, path: &str) -> Weakening {
        Weakening { path: path.to_owned(), what: self }
    }
}

impl fmt::Display for Weakening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = shown(&self.path);
        match &self.what {
            Weakened::Tests { lost } => write!(f, "{lost} fewer tests in {path}"),
            Weakened::Assertions { lost } => write!(f, "{lost} fewer assertions in {path}"),
            Weakened::Looser { lost } => write!(f, "{lost} looser assertions in {path}"),
            Weakened::Skips { added } => write!(f, "{added} more skip marks in {path}"),
            Weakened::Snapshot => write!(f, "snapshot {path} written anew"),
            Weakened::Threshold { key, from, to: Some(to) } => {
                write!(f, "`{}` from {} to {} in {path}", shown(key), shown(from), shown(to))
            }
            Weakened::Threshold { key, from, to: None } => {
                write!(f, "`{}` {} removed from {path}", shown(key), shown(from))
            }
            Weakened::Unreadable => write!(f, "{path} cannot be read any more"),
            Weakened::Orphan { module } => {
                write!(f, "module `{}` of {path} is no longer compiled", shown(module))
            }
            Weakened::Hook => write!(f, "the run of the tests is interfered with in {path}"),
            Weakened::GateConfig => write!(f, "gate configuration {path} edited"),
        }
    }
}

fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).take(160).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_is_called_steers_no_terminal_and_is_cut() {
        let found = Weakened::Orphan { module: "x\u{1b}[2J".into() }.at(&"tests/\u{7}".repeat(99));
        let text = found.to_string();
        assert!(!text.contains(char::is_control) && text.chars().count() < 250, "{text}");
        let json = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<Weakening>(&json).unwrap(), found);
        assert!(serde_json::from_str::<Weakening>(r#"{"path":"a","what":{"kind":"else"}}"#).is_err());
    }
}
