//! What a rule reports.

use std::fmt;

/// One violation, or one thing worth a look.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    /// A file relative to the root, or a crate.
    pub(crate) place: String,
    pub(crate) line: Option<usize>,
    pub(crate) rule: Rule,
    pub(crate) message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// Listed, does not fail the run.
    Warning,
    /// Fails the run.
    Violation,
}

/// The rules, by the name under which they are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rule {
    /// A crate may use only what its row in the table lists.
    Ring,
    /// A third-party crate where it has no business.
    ThirdParty,
    /// A part of std that the crate must not touch.
    StdPath,
    /// Printing outside the crates that own a terminal.
    Print,
    /// A file that has grown too long.
    Length,
    /// A crate that outgrew what is recorded of it.
    Ceiling,
    /// A file that is not Rust.
    Syntax,
    /// A file without its opening `//!`.
    ModuleDocs,
    /// Unfinished code.
    Marker,
    /// `allow`, or `expect` and `ignore` without a reason.
    Attribute,
    /// A path of the machine that somebody worked on.
    BuildMachine,
    /// Too many crates in the default build.
    CrateCount,
    /// A document that lacks what its kind must have.
    Document,
    /// A link to a file that is not there.
    Link,
    /// A file name that says nothing.
    FileName,
    /// A dependency without its reason, or with its own version.
    Manifest,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ring => "ring",
            Self::ThirdParty => "third-party",
            Self::StdPath => "std-path",
            Self::Print => "print",
            Self::Length => "length",
            Self::Ceiling => "ceiling",
            Self::Syntax => "syntax",
            Self::ModuleDocs => "module-docs",
            Self::Marker => "marker",
            Self::Attribute => "attribute",
            Self::BuildMachine => "build-machine",
            Self::CrateCount => "crate-count",
            Self::Document => "document",
            Self::Link => "link",
            Self::FileName => "file-name",
            Self::Manifest => "manifest",
        })
    }
}

impl Finding {
    /// A violation that concerns a whole file or crate.
    pub(crate) fn whole(place: &str, rule: Rule, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { severity: Severity::Violation, place: place.to_owned(), line: None, rule, message }
    }

    /// A violation at a line (1-based).
    pub(crate) fn at(place: &str, line: usize, rule: Rule, message: impl Into<String>) -> Self {
        Self { line: Some(line), ..Self::whole(place, rule, message) }
    }

    /// The same as a warning.
    pub(crate) fn into_warning(self) -> Self {
        Self { severity: Severity::Warning, ..self }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { severity, place, line, rule, message } = self;
        if *severity == Severity::Warning {
            f.write_str("warning: ")?;
        }
        match line {
            Some(line) => write!(f, "{place}:{line}: [{rule}] {message}"),
            None => write!(f, "{place}: [{rule}] {message}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_as_place_rule_message() {
        let finding = Finding::at("a.rs", 3, Rule::StdPath, "no");
        assert_eq!(finding.to_string(), "a.rs:3: [std-path] no");
        assert_eq!(finding.into_warning().to_string(), "warning: a.rs:3: [std-path] no");
    }
}
