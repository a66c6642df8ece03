//! The gates that are usual for a language, for a work tree that has no manifest yet.

use super::{Aim, Findings, Proposal, go, python, rust};

/// A language that the operator names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the language of that name")]
pub enum Language {
    Python,
    Js,
    Rust,
    Go,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Python, Self::Js, Self::Rust, Self::Go];

    /// The word on a command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Js => "js",
            Self::Rust => "rust",
            Self::Go => "go",
        }
    }
}

/// What is usual.
#[must_use]
pub fn usual(language: Language) -> Vec<Proposal> {
    let (stack, cmd, pass_when) = match language {
        Language::Python => (python::STACK, "python3 -m pytest", python::PASSED),
        Language::Js => ("Node.js", "npm test", "exit_code == 0"),
        Language::Rust => (rust::STACK, "cargo test", rust::PASSED),
        Language::Go => (go::STACK, "go test ./...", go::PASSED),
    };
    let file = format!("--lang {}", language.word());
    let mut found = Findings::default();
    found.propose("", Aim::Tests, stack, cmd, pass_when, &file);
    found.into_detected().proposals
}
