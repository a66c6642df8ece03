//! Shell commands that swallow an exit code, by the usual spellings.
//!
//! No shell is parsed: quoted texts, comments and substitutions are blanked, then each spelling is a pattern.
//! What holds `if`, `case`, a function or a here-document is left alone.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// A way to swallow an exit code.
pub(super) struct Flaw {
    pub(super) kind: &'static str,
    /// `{}` stands for what was found.
    pub(super) what: &'static str,
    pub(super) why: &'static str,
    pub(super) write: &'static str,
    /// Whether the exit code of the whole is 0 whatever was found.
    pub(super) always_zero: bool,
    /// In which words of the language are in angle brackets, see [`WORDS`].
    pattern: &'static str,
    /// A command in which this is found has thought of the exit code.
    unless: Option<&'static str>,
}

/// The first that fits is told.
const FLAWS: [Flaw; 7] = [
    Flaw {
        kind: "nothing-runs",
        what: "`cmd` is only `{}`, which cannot fail",
        why: "it measures nothing",
        write: "run what is to be proved",
        always_zero: true,
        pattern: r"^(?:\s*(?:cd|set|export)\s<rest>[;\n])*\s*(?<shown><green>)\s*;?\s*$",
        unless: None,
    },
    Flaw {
        kind: "forced",
        what: "`cmd` ends in `|| {}`",
        why: "its exit code says nothing",
        write: "remove it",
        always_zero: true,
        pattern: r"\|\|\s*[({]?\s*(?<shown><green>)\s*;?\s*[)}]*\s*;?\s*$",
        unless: None,
    },
    Flaw {
        kind: "ends-green",
        what: "`cmd` ends in `{}`",
        why: "the exit code of what comes before it is lost",
        write: "remove it, or join the commands by `&&`",
        always_zero: true,
        pattern: r"[;\n]\s*(?<shown><green>)\s*;?\s*$",
        unless: Some(KEEPS),
    },
    Flaw {
        kind: "background",
        what: "`cmd` ends in `&`",
        why: "the shell does not wait for the command, and the exit code is always 0",
        write: "remove the `&`",
        always_zero: true,
        pattern: r"[^&>|]&\s*$",
        unless: None,
    },
    Flaw {
        kind: "pipe",
        what: "`cmd` ends in a pipe into `{}`",
        why: "the exit code is that of the filter, not of the command before it",
        write: "leave the pipe out (peers keeps all output), or `bash -o pipefail -c '…'`",
        always_zero: true,
        pattern: r"\|\s*(?<shown><filter>)\b<rest>\s*$",
        unless: Some("pipefail"),
    },
    Flaw {
        kind: "early-exit",
        what: "`cmd` has `|| exit 0`",
        why: "a command that fails there makes the gate green",
        write: "write `|| exit 1`",
        always_zero: false,
        pattern: r"\|\|\s*exit\s+0\b",
        unless: None,
    },
    Flaw {
        kind: "lost-exit",
        what: "`cmd` goes on after `{}` whatever it found",
        why: "only the last command decides the exit code",
        write: "join the commands by `&&`, or begin with `set -e`",
        always_zero: false,
        pattern: r"(?:^|[;\n({]|&&|\bdo\b)\s*(?<shown><runner>)<rest>[;\n]\s*[^\s;})]",
        unless: Some(KEEPS),
    },
];

/// `set -e`, a saved exit code, or an exit with one.
const KEEPS: &str = r"\bset\s+-\w*e|\berrexit\b|\$\?|\bexit\s+[1-9$]";

/// Words of the patterns above.
const WORDS: [(&str, &str); 4] = [
    ("<rest>", r"(?:[^;&|\n]|>&)*"),
    ("<green>", r"(?:/bin/)?true|:|exit\s+0|(?:echo|printf)\b[^;&|\n(){}]*"),
    ("<filter>", "tee|cat|head|tail|sort|uniq|tr|cut|wc|nl|less|more|fold|fmt|ts|tac|column"),
    (
        "<runner>",
        concat!(
            r"(?:pytest|tox|nox|mypy|pyright|ruff|flake8|pylint|eslint|tsc|ctest|bats|jest|vitest|mocha|phpunit",
            r"|rspec|shellcheck|golangci-lint|gradle|mvn|npx|bunx|uvx)\b",
            r"|(?:make|just|rake)\s+(?:test|check|lint)\b|cargo\s+(?:test|clippy|check|nextest|fmt)\b",
            r"|(?:npm|pnpm|yarn|bun)\s+(?:run|test|t|lint)\b|(?:go|dotnet|swift|mix|bazel|deno)\s+(?:test|vet)\b",
            r"|(?:uv|poetry|pipenv|pdm|hatch)\s+run\b|bundle\s+exec\b|python3?\s+-m\s+(?:pytest|unittest|mypy)\b",
            r"|(?:sh|bash|python3?|node|ruby|php)\s+[^-\s;]\S*|\.\.?/[^\s;]+",
        ),
    ),
];

static PATTERNS: LazyLock<Vec<(&Flaw, Regex, Option<Regex>)>> = LazyLock::new(|| {
    let spelled = |flaw: &'static Flaw| {
        let pattern = WORDS.iter().fold(flaw.pattern.to_owned(), |text, (word, is)| text.replace(word, is));
        (flaw, constant(&pattern), flaw.unless.map(constant))
    };
    const { &FLAWS }.iter().map(spelled).collect()
});

/// Quoted texts, substitutions, escapes and comments.
static BLANKED: LazyLock<Regex> = LazyLock::new(|| {
    constant(r#"'[^']*'|"(?:\\(?s:.)|[^"\\])*"|`[^`]*`|\$\([^()]*\)|\\(?s:.)|(?:^|(?<blank>\s))#[^\n]*"#)
});

/// What changes how the rest is read.
static BEYOND: LazyLock<Regex> =
    LazyLock::new(|| constant(r#"['"`\\]|\$\(|<<|\(\s*\)|[<>]\(|\b(?:if|case|function)\b"#));

static PROGRAM: LazyLock<Regex> = LazyLock::new(|| {
    constant(concat!(
        r"^\s*(?:set\s[^;&|\n]*[;\n]\s*)?(?:cd\s+(?<dir>[\w./-]+)\s*(?:&&|[;\n])\s*)?",
        r"(?:\w+=\S*\s+|(?:exec|env|command|nice|time)\s+)*(?<word>[\w./+@~-]+)(?:[\s;&|<>]|$)",
    ))
});

#[expect(clippy::expect_used, reason = "the patterns are constants, and a test compiles all of them")]
fn constant(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern compiles")
}

/// What is wrong with the exit code of a command, with the words for it; `None` also where that cannot be told.
pub(super) fn flaw(cmd: &str) -> Option<(&'static Flaw, String)> {
    let text = blanked(cmd)?;
    PATTERNS.iter().find_map(|(flaw, pattern, unless)| {
        if unless.as_ref().is_some_and(|unless| unless.is_match(cmd)) {
            return None;
        }
        let found = pattern.captures(&text)?;
        let shown = found.name("shown").map_or("", |shown| shown.as_str().trim_end());
        let shown = match shown.split_whitespace().next() {
            Some(name @ ("echo" | "printf")) => format!("{name} …"),
            _ => shown.to_owned(),
        };
        Some((*flaw, flaw.what.replace("{}", &shown)))
    })
}

fn blanked(cmd: &str) -> Option<String> {
    let blank = |found: &Captures<'_>| match (found.name("blank"), found.get(0).map(|all| all.as_str())) {
        (Some(blank), _) => blank.as_str().to_owned(),
        (None, Some("\\\n")) => " ".to_owned(),
        (None, Some(comment)) if comment.starts_with('#') => String::new(),
        (None, _) => char::REPLACEMENT_CHARACTER.to_string(),
    };
    let text = BLANKED.replace_all(cmd, blank).into_owned();
    (!BEYOND.is_match(&text)).then_some(text)
}

/// The program that a command begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The directory in which it runs, with a `/` at its end; empty = where the command starts.
    pub dir: String,
    /// As it stands in the command.
    pub word: String,
}

impl Program {
    /// Its path from where the command starts; `None` for one of the search path, and for one that lies
    /// elsewhere.
    #[must_use]
    pub fn path(&self) -> Option<String> {
        let whole = format!("{}{}", self.dir, self.word);
        let parts: Vec<&str> = whole.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        let elsewhere = whole.starts_with(['/', '~']) || parts.contains(&"..");
        (self.word.contains('/') && !elsewhere).then(|| parts.join("/"))
    }
}

/// The first program that a command runs; `None` where that cannot be told.
pub(super) fn program(cmd: &str) -> Option<Program> {
    let text = blanked(cmd)?;
    let found = PROGRAM.captures(&text)?;
    let word = found.name("word")?.as_str();
    let dir = found.name("dir").map(|dir| format!("{}/", dir.as_str())).unwrap_or_default();
    (word != "cd").then(|| Program { dir, word: word.to_owned() })
}
