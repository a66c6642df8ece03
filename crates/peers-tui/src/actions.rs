//! From what an operator asks for to the command line that does it, and how much is asked before.

use peers_view::{LoopRow, LoopState, Typed};

use crate::keys::Action;
use crate::model::Options;

/// How much is asked before a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rung {
    /// It only shows something.
    Read,
    /// One key.
    Key,
    /// A word has to be typed: what agents may do, or what counts as proof, changes by it.
    Word,
}

/// Verbs that only show something.
const READS: &[&str] = &[
    "status",
    "report",
    "doctor",
    "replay",
    "logs",
    "peek",
    "review",
    "goals diff",
    "goals lint",
    "state check",
    "verify",
    "verify --pristine",
];
/// Verbs after which something else counts as proof, or work is gone from where it was.
const GRAVE: &[&str] = &["amend", "ack-block", "goals accept", "goals restore", "remove", "undo", "ack"];
/// Shows a file.
const PAGER: &str = "less";
/// Verbs that want a terminal.
const ON_TERMINAL: &[&str] = &["goals edit", "goals edit --config", "goals accept", "init"];

/// How much is asked before this one.
pub(crate) fn rung(verb: &str) -> Rung {
    if READS.contains(&verb) {
        Rung::Read
    } else if GRAVE.contains(&verb) {
        Rung::Word
    } else {
        Rung::Key
    }
}

/// Whether it shows what it is about, and asks, before it does anything.
pub(crate) fn asks_itself(verb: &str, argv: &[String]) -> bool {
    ON_TERMINAL.contains(&verb) || argv.first().is_some_and(|program| program == PAGER)
}

/// The verb of a command line of ours.
pub(crate) fn verb_of(argv: &[String]) -> String {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["peers", "-C", _, "goals", verb, ..] => format!("goals {verb}"),
        ["peers", "-C", _, verb, ..]
        | ["peers-ctl", "--config-dir", _, verb, ..]
        | ["peers-ctl", verb, ..] => (*verb).to_owned(),
        _ => String::new(),
    }
}

/// Whether it needs a terminal of its own: an editor, a pager, a login.
pub(crate) fn on_terminal(typed: &Typed) -> bool {
    typed.verb.is_empty() || ON_TERMINAL.contains(&typed.verb)
}

/// The key that does what is suggested for a loop: the one of its own where there is one, else that of any suggestion.
pub(crate) fn key_for(row: &LoopRow) -> Option<Action> {
    let typed = row.attention.top.commands.first()?;
    Some(match typed.verb {
        "resume" => Action::Resume,
        "start" => Action::Start,
        "budget raise" => Action::Extend,
        "goals diff" => Action::Trust,
        _ => Action::Fix,
    })
}

/// Whether its loop is at work.
pub(crate) fn is_at_work(row: &LoopRow) -> bool {
    row.state == LoopState::Running
}

impl Options {
    /// `peers-ctl VERB WORDS...`, as it is typed here.
    pub(crate) fn controller<S: AsRef<str>>(
        &self,
        verb: &str,
        words: impl IntoIterator<Item = S>,
    ) -> Vec<String> {
        let mut argv = self.controller.clone();
        argv.extend(verb.split_ascii_whitespace().map(str::to_owned));
        argv.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
        argv
    }
}

/// `peers -C DIR VERB WORDS...`.
pub(crate) fn peers(dir: &str, words: &[&str]) -> Vec<String> {
    ["peers", "-C", dir].iter().chain(words).map(|word| (*word).to_owned()).collect()
}

/// A command as it is typed in a shell.
pub(crate) fn shown(argv: &[String]) -> String {
    let words: Vec<String> = argv.iter().map(|word| peers_model::command::word(word)).collect();
    words.join(" ")
}
