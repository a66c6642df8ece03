//! Gates that fit a work tree, read from its manifests.
//!
//! Whatever lies there may have been written by an agent: nothing is run, nothing is followed, sizes and
//! numbers are bounded, and no text of a file gets into a command. What is proposed is in force only
//! once the operator has taken it over and accepted it.

mod go;
mod make;
mod node;
mod python;
mod rust;
#[cfg(test)]
mod tests;
mod usual;
mod yaml;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use peers_model::goal::{GateRun, Goal};
use peers_sys::dir::{Kind, SafeDir};
use peers_sys::term;
use peers_sys::term::quoted;

pub use usual::{Language, usual};
pub use yaml::{commented, entries};

/// Directories below the top that are looked at: so many levels.
const DEPTH: usize = 3;
/// Directories that are looked at.
const DIRS: usize = 2_000;
/// Names of one directory that are looked at.
const NAMES: usize = 5_000;
/// Longest manifest, bytes.
const MANIFEST: u64 = 1024 * 1024;
/// Most proposals.
const PROPOSALS: usize = 40;
/// Most notes.
const NOTES: usize = 20;
/// Directories that hold what others wrote, or what is made again.
const SKIPPED: [&str; 14] = [
    "node_modules",
    "target",
    "vendor",
    "dist",
    "build",
    "venv",
    "__pycache__",
    "site-packages",
    "third_party",
    "bower_components",
    "testdata",
    "fixtures",
    "__fixtures__",
    "coverage",
];

/// A gate that could be written into `goals.yaml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// Its id, taken by no other.
    pub id: String,
    /// What it is about, for people.
    pub description: String,
    /// The command.
    pub cmd: String,
    /// The condition.
    pub pass_when: String,
    /// Time limit in seconds.
    pub timeout_s: u32,
    /// The file from which it was read, from the top of the work tree.
    pub why: String,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Detected {
    /// The proposals, those for the top first.
    pub proposals: Vec<Proposal>,
    /// Goals that run what would be proposed.
    pub there: BTreeSet<String>,
    /// What could not be looked at, or is not proposed, and why. Fit for a terminal.
    pub notes: Vec<String>,
}

/// Looks at a work tree. A gate that `goals` have already, with the same command and condition, is named and
/// not proposed again.
#[must_use]
pub fn detect(work: &SafeDir, goals: &[Goal]) -> Detected {
    let run = |goal: &Goal| match &goal.gate()?.run {
        GateRun::Shell { cmd, pass_when } => {
            Some((cmd.trim().to_owned(), pass_when.trim().to_owned(), goal.id.to_string()))
        }
        GateRun::Check { .. } => None,
    };
    let mut found = Findings {
        ids: goals.iter().map(|goal| goal.id.to_string()).collect(),
        written: goals.iter().filter_map(run).collect(),
        ..Findings::default()
    };
    let top = Around::default();
    let mut queue = VecDeque::new();
    match work.try_clone() {
        Ok(dir) => queue.push_back((dir, String::new(), 0, top)),
        Err(error) => found.note(&format!("the work tree cannot be looked at: {error}")),
    }
    let mut seen = 0;
    while let Some((dir, path, depth, mut around)) = queue.pop_front() {
        seen += 1;
        if seen > DIRS {
            found.note(&format!("only the first {DIRS} directories were looked at"));
            break;
        }
        let mut place = Place { dir: &dir, path: &path, found: &mut found };
        rust::look(&mut place, &mut around);
        node::look(&mut place, &mut around);
        python::look(&mut place, &mut around);
        go::look(&mut place);
        make::look(&mut place);
        if depth == DEPTH {
            continue;
        }
        for (name, below) in place.directories() {
            let path = if path.is_empty() { name } else { format!("{path}/{name}") };
            queue.push_back((below, path, depth + 1, around.clone()));
        }
    }
    node::whole_workspaces(&mut found);
    found.into_detected()
}

/// What the directories above say about one.
#[derive(Debug, Clone, Default)]
struct Around {
    /// A cargo workspace covers it.
    cargo: bool,
    /// The root of the workspace of packages that covers it.
    node: Option<String>,
    /// A project of Python lies above.
    python: bool,
    /// A workspace of uv covers it.
    uv: bool,
}

/// What a gate is for: the beginning of its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Aim {
    Tests,
    Lint,
    Types,
    Format,
}

impl Aim {
    fn id(self) -> &'static str {
        match self {
            Self::Tests => "tests-pass",
            Self::Lint => "lint-clean",
            Self::Types => "types-check",
            Self::Format => "format-clean",
        }
    }

    fn says(self) -> &'static str {
        match self {
            Self::Tests => "The test suite passes",
            Self::Lint => "The linter finds nothing",
            Self::Types => "The types fit",
            Self::Format => "The source is formatted",
        }
    }

    fn timeout_s(self) -> u32 {
        match self {
            Self::Tests => 1_800,
            Self::Lint | Self::Types => 900,
            Self::Format => 120,
        }
    }
}

#[derive(Debug, Default)]
struct Findings {
    proposals: Vec<Proposal>,
    notes: Vec<String>,
    ids: BTreeSet<String>,
    /// Command, condition and id of each gate that the goals have.
    written: Vec<(String, String, String)>,
    there: BTreeSet<String>,
    more: bool,
    workspaces: BTreeMap<String, node::Workspace>,
}

impl Findings {
    fn note(&mut self, text: &str) {
        if self.notes.len() < NOTES {
            self.notes.push(term::line(text, 300));
        }
    }

    /// `file` says so, in the directory `path`.
    fn propose(&mut self, path: &str, aim: Aim, stack: &str, cmd: &str, pass_when: &str, file: &str) {
        let (within, why) = if path.is_empty() {
            (String::new(), file.to_owned())
        } else {
            // What begins with a dash is no option.
            let dashed = if path.starts_with('-') { "./" } else { "" };
            (format!("cd {} && ", quoted(&format!("{dashed}{path}"))), format!("{path}/{file}"))
        };
        let cmd = format!("{within}{cmd}");
        if let Some((.., id)) = self.written.iter().find(|(run, asks, _)| *run == cmd && asks == pass_when) {
            self.there.insert(id.clone());
            return;
        }
        if self.proposals.len() >= PROPOSALS {
            self.more = true;
            return;
        }
        let at = if path.is_empty() { String::new() } else { format!(" in {path}") };
        let id = self.free_id(aim, stack, path);
        self.proposals.push(Proposal {
            id,
            description: format!("{} ({stack}{at})", aim.says()),
            cmd,
            pass_when: pass_when.to_owned(),
            timeout_s: aim.timeout_s(),
            why,
        });
    }

    fn free_id(&mut self, aim: Aim, stack: &str, path: &str) -> String {
        let base = aim.id();
        let stack = stack.to_ascii_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "");
        let words: Vec<String> = path
            .split('/')
            .map(|part| part.to_ascii_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-"))
            .map(|part| part.trim_matches('-').to_owned())
            .filter(|part| !part.is_empty())
            .collect();
        let place: String = words.join("-").chars().take(30).collect();
        let by_place =
            (!place.is_empty()).then(|| [format!("{base}-{place}"), format!("{base}-{stack}-{place}")]);
        let named = [base.to_owned()].into_iter().chain(by_place.into_iter().flatten());
        let numbered = (2..=usize::MAX).map(|n| format!("{base}-{stack}-{n}"));
        let id = named.chain([format!("{base}-{stack}")]).chain(numbered).find(|id| !self.ids.contains(id));
        let id = id.unwrap_or_else(|| base.to_owned());
        self.ids.insert(id.clone());
        id
    }

    fn into_detected(mut self) -> Detected {
        if self.more {
            self.notes.push(format!("more than {PROPOSALS} gates would fit; the first are shown"));
        }
        Detected { proposals: self.proposals, there: self.there, notes: self.notes }
    }
}

/// One directory.
struct Place<'a> {
    dir: &'a SafeDir,
    /// From the top of the work tree; empty there.
    path: &'a str,
    found: &'a mut Findings,
}

impl Place<'_> {
    fn kind(&self, name: &str) -> Option<Kind> {
        self.dir.stat(name).ok().flatten().map(|stat| stat.kind)
    }

    /// Whether a regular file of this name is here.
    fn has(&self, name: &str) -> bool {
        self.kind(name) == Some(Kind::File)
    }

    /// The first of these names that a regular file has.
    fn first<'n>(&self, names: &[&'n str]) -> Option<&'n str> {
        names.iter().copied().find(|name| self.has(name))
    }

    /// The text of a manifest; a note where it is there and cannot be read.
    fn text(&mut self, name: &str) -> Option<String> {
        if self.kind(name)? == Kind::Dir {
            return None;
        }
        match self.dir.read_opt(name, MANIFEST) {
            Ok(bytes) => Some(String::from_utf8_lossy(&bytes?).into_owned()),
            Err(error) => {
                self.found.note(&format!("{} was not read: {error}", self.shown(name)));
                None
            }
        }
    }

    fn shown(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}/{name}", self.path) }
    }

    /// Whether the `.gitignore` of this directory names the file, so that no checkout has it.
    fn ignores(&mut self, name: &str) -> bool {
        let text = self.text(".gitignore").unwrap_or_default();
        text.lines().any(|line| line.trim().trim_start_matches('/') == name)
    }

    fn propose(&mut self, aim: Aim, stack: &str, cmd: &str, pass_when: &str, file: &str) {
        self.found.propose(self.path, aim, stack, cmd, pass_when, file);
    }

    /// The directories below that are looked into, by name. Links are none.
    fn directories(&mut self) -> Vec<(String, SafeDir)> {
        let listing = match self.dir.list(NAMES) {
            Ok(listing) => listing,
            Err(error) => {
                let here = if self.path.is_empty() { "the work tree" } else { self.path };
                self.found.note(&format!("{here} was not listed: {error}"));
                return Vec::new();
            }
        };
        if listing.truncated {
            let here = self.shown("");
            self.found.note(&format!("{here} has more than {NAMES} names; not all were looked at"));
        }
        let mut below = Vec::new();
        for entry in listing.entries.into_iter().filter(|entry| entry.kind == Kind::Dir) {
            let Some(name) = entry.name.to_str() else { continue };
            if name.starts_with('.') || SKIPPED.contains(&name) {
                continue;
            }
            if name.chars().any(|c| c.is_control() || term::invisible(c)) {
                self.found.note(&format!("{} was not looked into because of its name", self.shown(name)));
                continue;
            }
            // One that went away or cannot be opened has nothing to say.
            if let Ok(dir) = self.dir.subdir(name) {
                below.push((name.to_owned(), dir));
            }
        }
        below
    }
}

/// Whether a TOML file has a table of this name or below it, by its headers.
fn has_table(text: &str, name: &str) -> bool {
    text.lines().any(|line| {
        let header = line.trim().trim_start_matches('[');
        let Some((header, _)) = header.split_once(']').filter(|_| line.trim().starts_with('[')) else {
            return false;
        };
        let header = header.trim();
        header == name || header.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
    })
}

/// Whether a text has a word, whatever stands around it.
fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_')).any(|part| part == word)
}
