//! Newtypes with grammars. A value of one of these types has been checked.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A text that does not fit the grammar of the identifier it was meant to be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is not a valid {what}: {rule}")]
pub struct InvalidId {
    /// What kind of identifier was expected.
    pub what: &'static str,
    /// The offending text, cut to 80 characters.
    pub text: String,
    /// The rule that it breaks, readable after a colon.
    pub rule: &'static str,
}

fn invalid(what: &'static str, text: &str, rule: &'static str) -> InvalidId {
    InvalidId {
        what,
        text: text.chars().take(80).map(|c| if c.is_control() { '?' } else { c }).collect(),
        rule,
    }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $rule:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Checks `text` against the grammar.
            ///
            /// # Errors
            /// [`InvalidId`] names the rule that the text breaks.
            pub fn new(text: impl Into<String>) -> Result<Self, InvalidId> {
                let text = text.into();
                let check: fn(&str) -> bool = $check;
                if check(&text) { Ok(Self(text)) } else { Err(invalid($what, &text, $rule)) }
            }

            /// The text itself.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(s: &str) -> Result<Self, InvalidId> {
                Self::new(s)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(s: String) -> Result<Self, InvalidId> {
                Self::new(s)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

fn lower_hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

text_id!(
    /// The name of a configured peer. Reserved names are refused by [`crate::config`], not here.
    PeerName, "peer name", "a letter or digit, then at most 31 letters, digits, `_` or `-`",
    |s| {
        let mut bytes = s.bytes();
        bytes.next().is_some_and(|b| b.is_ascii_alphanumeric())
            && s.len() <= 32
            && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    }
);

text_id!(
    /// The id of a goal, hard or soft. Hex-only ids of 7 to 64 characters are refused, since a
    /// `Peer-Review-Of:` trailer could not tell them from a commit.
    GoalId, "goal id",
    "a lower-case letter or digit, then at most 63 of `a-z 0-9 . _ -`; not 7 or more hex digits alone, which look like a commit",
    |s| {
        let mut bytes = s.bytes();
        let ok = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        bytes.next().is_some_and(ok)
            && s.len() <= 64
            && bytes.all(|b| ok(b) || matches!(b, b'.' | b'_' | b'-'))
            && !((7..=64).contains(&s.len()) && lower_hex(s))
    }
);

/// A hard goal is tested by a gate of the same id.
pub type GateId = GoalId;

text_id!(
    /// The id of a bug report, as its `Peer-Bug:` trailer names it.
    BugId, "bug id", "a letter, then at most 79 of letters, digits and `. _ : / -`",
    |s| {
        let mut bytes = s.bytes();
        bytes.next().is_some_and(|b| b.is_ascii_alphabetic())
            && s.len() <= 80
            && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'/' | b'-'))
    }
);

text_id!(
    /// A full commit hash, lower-case hex, 40 (SHA-1) or 64 (SHA-256) digits.
    CommitId, "commit id", "40 or 64 lower-case hex digits",
    |s| matches!(s.len(), 40 | 64) && lower_hex(s)
);

impl CommitId {
    /// The first eight digits, for people.
    #[must_use]
    pub fn short(&self) -> &str {
        self.0.get(..8).unwrap_or(&self.0)
    }
}

text_id!(
    /// A full tree hash, same shape as a commit hash.
    TreeId, "tree id", "40 or 64 lower-case hex digits",
    |s| matches!(s.len(), 40 | 64) && lower_hex(s)
);

text_id!(
    /// Names one `peers run` process: 16 lower-case hex digits.
    RunId, "run id", "16 lower-case hex digits",
    |s| s.len() == 16 && lower_hex(s)
);

text_id!(
    /// Names a repository's place in the trusted store: 16 hex digits of the SHA-256 of its canonical path.
    ProjectId, "project id", "16 lower-case hex digits",
    |s| s.len() == 16 && lower_hex(s)
);

/// The number of a tick. Ticks are numbered from 1 and each number is used once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TickNo(pub u64);

impl TickNo {
    /// The number after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for TickNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peer_names_are_tame() {
        for good in ["claude", "a", "A-1_b", &"x".repeat(32)] {
            assert!(PeerName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "a b", "a\n", "ä", "a/b", &"x".repeat(33)] {
            assert!(PeerName::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_goal_id_never_looks_like_a_commit() {
        assert!(GoalId::new("deadbeef").is_err());
        assert!(GoalId::new("deadbe").is_ok(), "six digits are too short for a commit");
        assert!(GoalId::new("tests-pass").is_ok());
        assert!(GoalId::new("Tests").is_err());
    }

    #[test]
    fn an_invalid_id_never_carries_control_bytes_into_its_message() {
        let error = PeerName::new("a\u{1b}[31m").unwrap_err();
        assert!(!error.to_string().contains('\u{1b}'));
    }

    #[test]
    fn ids_are_checked_when_deserialised() {
        assert!(serde_json::from_str::<CommitId>("\"../../etc\"").is_err());
        assert!(serde_json::from_str::<CommitId>(&format!("\"{}\"", "a".repeat(40))).is_ok());
    }
}
