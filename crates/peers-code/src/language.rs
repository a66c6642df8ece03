//! The languages that can be read.

use std::fmt;
use std::str::FromStr;

/// A language as an operator names it. TypeScript is JavaScript with types: what holds for one holds for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    /// Python 3.
    Python,
    /// JavaScript and TypeScript.
    JavaScript,
    /// Rust.
    Rust,
    /// Go.
    Go,
}

/// Which grammar a file needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Grammar {
    Python,
    JavaScript,
    TypeScript,
    Tsx,
    Rust,
    Go,
}

/// A name of no language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownLanguage(pub String);

impl fmt::Display for UnknownLanguage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown language `{}`; known: python, js, rust, go", self.0)
    }
}

impl std::error::Error for UnknownLanguage {}

impl Language {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Python, Self::JavaScript, Self::Rust, Self::Go];

    /// The language of a file, by its name.
    #[must_use]
    pub fn of(path: &str) -> Option<Self> {
        Grammar::of(path).map(Grammar::language)
    }

    /// The token of configuration and options.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::JavaScript => "js",
            Self::Rust => "rust",
            Self::Go => "go",
        }
    }

    /// The names of files at the top of a project that tell that it is written in this language.
    #[must_use]
    pub fn manifests(self) -> &'static [&'static str] {
        match self {
            Self::Python => &["pyproject.toml", "setup.py", "setup.cfg"],
            Self::JavaScript => &["package.json"],
            Self::Rust => &["Cargo.toml"],
            Self::Go => &["go.mod"],
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.token())
    }
}

impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.to_ascii_lowercase().as_str() {
            "python" | "py" => Ok(Self::Python),
            "js" | "javascript" | "ts" | "typescript" => Ok(Self::JavaScript),
            "rust" | "rs" => Ok(Self::Rust),
            "go" | "golang" => Ok(Self::Go),
            _ => Err(UnknownLanguage(text.to_owned())),
        }
    }
}

impl Grammar {
    pub(crate) fn of(path: &str) -> Option<Self> {
        let (_, extension) = path.rsplit_once('.')?;
        match extension {
            "py" | "pyi" => Some(Self::Python),
            "js" | "jsx" | "mjs" | "cjs" => Some(Self::JavaScript),
            "ts" | "mts" | "cts" => Some(Self::TypeScript),
            "tsx" => Some(Self::Tsx),
            "rs" => Some(Self::Rust),
            "go" => Some(Self::Go),
            _ => None,
        }
    }

    pub(crate) fn language(self) -> Language {
        match self {
            Self::Python => Language::Python,
            Self::JavaScript | Self::TypeScript | Self::Tsx => Language::JavaScript,
            Self::Rust => Language::Rust,
            Self::Go => Language::Go,
        }
    }

    pub(crate) fn load(self) -> tree_sitter::Language {
        match self {
            Self::Python => tree_sitter_python::LANGUAGE,
            Self::JavaScript => tree_sitter_javascript::LANGUAGE,
            Self::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT,
            Self::Tsx => tree_sitter_typescript::LANGUAGE_TSX,
            Self::Rust => tree_sitter_rust::LANGUAGE,
            Self::Go => tree_sitter_go::LANGUAGE,
        }
        .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_name_and_a_language_by_any_of_its_names() {
        for (path, due) in [
            ("a/b.py", Some(Language::Python)),
            ("a.d.ts", Some(Language::JavaScript)),
            ("x.tsx", Some(Language::JavaScript)),
            ("src/lib.rs", Some(Language::Rust)),
            ("main.go", Some(Language::Go)),
            ("Makefile", None),
            ("py", None),
        ] {
            assert_eq!(Language::of(path), due, "{path}");
        }
        for language in Language::ALL {
            assert_eq!(language.token().parse(), Ok(language));
        }
        assert_eq!("TypeScript".parse(), Ok(Language::JavaScript));
        assert!("perl".parse::<Language>().is_err());
    }
}
