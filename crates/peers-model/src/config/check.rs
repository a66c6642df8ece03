//! What can be said of single texts, and what needs several keys to be seen together.

use std::collections::BTreeSet;

use thiserror::Error;

use super::{Config, Hook, Hooks, PeerSpec, PromptMode, RESERVED_NAMES, Role};
use crate::ids::PeerName;

/// Longest argument of a program that the kernel takes, in bytes.
const ARGUMENT: usize = 128 * 1024 - 1;

/// Why a text cannot be given to a program as an argument, readable after its name.
pub(crate) fn not_an_argument(text: &str) -> Option<String> {
    if text.contains('\0') {
        return Some("has a NUL character in it, which no program can be given; remove the `\\0`".into());
    }
    (text.len() > ARGUMENT).then(|| {
        format!("is {} bytes long; an argument has at most {ARGUMENT}: put it into a file", text.len())
    })
}

/// The same, as a rule of a described key.
pub(crate) fn argument(text: &str) -> Option<String> {
    not_an_argument(text)
}

/// Why a text is no name of an environment variable.
pub(crate) fn variable(text: &str) -> Option<String> {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let plain = text.starts_with(letter) && text.chars().all(|c| letter(c) || c.is_ascii_digit());
    (!plain).then(|| "is not the name of an environment variable; list names only, without values".to_owned())
}

/// Why a text is no number that `no-secrets` prints.
pub(crate) fn sha256(text: &str) -> Option<String> {
    let hex = |b: u8| b.is_ascii_digit() || matches!(b, b'a'..=b'f');
    (text.len() != 64 || !text.bytes().all(hex)).then(|| "is not 64 digits of 0-9 and a-f".to_owned())
}

/// Why no peer may have this name.
pub(crate) fn reserved(text: &str) -> Option<String> {
    RESERVED_NAMES
        .iter()
        .any(|name| name.eq_ignore_ascii_case(text))
        .then(|| "is a reserved name; choose another".to_owned())
}

/// Why a glob cannot match a file of the repository.
pub(crate) fn pattern(glob: &str) -> Option<String> {
    let what = if glob.starts_with('/') {
        "is absolute; write it from the top of the repository, without the `/` before it"
    } else if glob.split('/').any(|part| part == "..") {
        "leads out of the repository by `..`; write it from the top of the repository"
    } else if glob.contains(['\0', '\n', '\r']) {
        "has a line break or a NUL character in it; remove that"
    } else if matches!(glob, "*" | "**" | "**/*" | "**/**") {
        "takes every file for a test; name the directories or names of tests"
    } else {
        return None;
    };
    Some(what.to_owned())
}

/// Why a path cannot be a directory of the repository.
pub(crate) fn directory(path: &str) -> Option<String> {
    let leads_out = path.starts_with('/') || path.split('/').any(|part| part == "..");
    let odd = path.contains(['*', '?', '\0', '\n', '\r']);
    (leads_out || odd)
        .then(|| "is not a directory written from the top of the repository, such as `src`".to_owned())
}

/// What is wrong with the path of a file, if anything.
pub(crate) fn file(path: &str) -> Option<String> {
    let wrong = || {
        directory(path)
            .map(|_| "is not a file written from the top of the repository, such as `out.xml`".to_owned())
    };
    argument(path).or_else(wrong)
}

/// A file whose keys are right by themselves and make no sense together.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{at}: {what}")]
pub struct ConfigError {
    /// Where, for people.
    pub at: String,
    /// What is wrong and what to write instead.
    pub what: String,
    /// Where, as keys and numbers of entries, from the top of the file.
    pub path: Vec<Step>,
}

/// One step from the top of a file to a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Into a mapping.
    Key(String),
    /// Into a list, from 0.
    Entry(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for Step {
    fn from(entry: usize) -> Self {
        Self::Entry(entry)
    }
}

impl Config {
    /// Checks what the keys one by one cannot say.
    ///
    /// # Errors
    /// All problems that were found.
    pub fn check(&self) -> Result<(), Vec<ConfigError>> {
        let peers: Vec<_> = self.peers.iter().map(Some).collect();
        let capped: Vec<_> = self.budget.per_peer.keys().collect();
        let mut errors = check_peers(&peers, !self.tools.is_empty(), &capped);
        errors.extend(check_hooks(&self.hooks));
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}

/// Checks peers with each other. One that is wrong by itself is a gap, and nothing is said that depends
/// on it. `capped` are the names in `budget.per_peer`.
#[must_use]
pub fn check_peers(peers: &[Option<&PeerSpec>], from_tools: bool, capped: &[&PeerName]) -> Vec<ConfigError> {
    let mut errors = Vec::new();
    if peers.len() < 2 {
        errors.push(ConfigError {
            at: "peers".into(),
            what: format!("needs at least two peers, has {}; one agent cannot review itself", peers.len()),
            path: vec![if from_tools { "tools" } else { "peers" }.into()],
        });
    }
    let mut seen = BTreeSet::new();
    for (i, peer) in peers.iter().enumerate() {
        let Some(peer) = peer else { continue };
        let (at, path): (_, Vec<Step>) = if from_tools {
            (format!("tools.{}", peer.name), vec!["tools".into(), peer.name.as_str().into()])
        } else {
            (format!("peers[{i}] ({})", peer.name), vec!["peers".into(), i.into()])
        };
        let mut fail = |key: &str, what: String| {
            let path = path.iter().cloned().chain([key.into()]).collect();
            errors.push(ConfigError { at: at.clone(), what, path });
        };
        if !seen.insert(&peer.name) {
            fail("name", "this name stands twice; names must be unique".into());
        }
        one_peer(peer, &mut fail);
    }
    let known: Vec<_> = peers.iter().flatten().collect();
    if known.len() < peers.len() {
        return errors;
    }
    if known.len() >= 2 && known.iter().all(|p| p.role == Role::Recovery) {
        errors.push(ConfigError {
            at: "peers".into(),
            what: "every peer has `role: recovery`; at least one must be a default peer".into(),
            path: vec!["peers".into()],
        });
    }
    for name in capped.iter().filter(|name| !seen.contains(**name)) {
        errors.push(ConfigError {
            at: format!("budget.per_peer.{name}"),
            what: "no peer has this name".into(),
            path: vec!["budget".into(), "per_peer".into(), name.as_str().into()],
        });
    }
    errors
}

/// Commands of hooks that name no program.
#[must_use]
pub fn check_hooks(hooks: &Hooks) -> Vec<ConfigError> {
    let mut errors = Vec::new();
    for hook in Hook::ALL {
        for (i, command) in hooks.of(hook).iter().enumerate() {
            if command.cmd.first().is_none_or(|program| program.trim().is_empty()) {
                errors.push(ConfigError {
                    at: format!("hooks.{}[{i}]", hook.word()),
                    what: "`cmd` names no program; give the program and its arguments".into(),
                    path: vec!["hooks".into(), hook.word().into(), i.into(), "cmd".into()],
                });
            }
        }
    }
    errors
}

fn one_peer(peer: &PeerSpec, fail: &mut impl FnMut(&str, String)) {
    if peer.argv.first().is_none_or(|program| program.trim().is_empty()) {
        fail("argv", "`argv` is empty; give the program and its arguments".into());
    }
    let has = |mark: &str| peer.argv.iter().any(|a| a.contains(mark));
    let misplaced = match peer.prompt_mode {
        PromptMode::Stdin => (has("{PROMPT}") || has("{PROMPT_FILE}")).then_some(
            "has a prompt placeholder in `argv`, but `prompt_mode: stdin`; set `prompt_mode: argv-substitute` or `file`, or remove it",
        ),
        PromptMode::File if !has("{PROMPT_FILE}") => {
            Some("`prompt_mode: file` needs `{PROMPT_FILE}` in `argv`")
        }
        PromptMode::File => has("{PROMPT}").then_some("`{PROMPT}` in `argv` goes with `prompt_mode: argv-substitute`, not with `file`"),
        PromptMode::ArgvSubstitute if !has("{PROMPT}") => {
            Some("`prompt_mode: argv-substitute` needs `{PROMPT}` in `argv`")
        }
        PromptMode::ArgvSubstitute => has("{PROMPT_FILE}").then_some("`{PROMPT_FILE}` in `argv` goes with `prompt_mode: file`, not with `argv-substitute`"),
    };
    if let Some(what) = misplaced {
        fail("argv", what.into());
    }
    if peer.tool_name() == "acp" {
        acp(peer, fail);
    } else {
        if peer.permissions.is_some() {
            fail(
                "permissions",
                "`permissions` works for the tool acp only; others are told by their own switches in `argv`"
                    .into(),
            );
        }
        semantic(peer, fail);
    }
}

/// What makes no sense for an agent that is spoken to by the protocol.
fn acp(peer: &PeerSpec, fail: &mut impl FnMut(&str, String)) {
    let fields = [("model", &peer.model), ("reasoning", &peer.reasoning), ("provider", &peer.provider)];
    for (key, _) in fields.iter().filter(|(_, value)| value.is_some()) {
        fail(key, format!("the tool acp has no `{key}`; set it in the agent's own configuration"));
    }
    if peer.prompt_mode != PromptMode::Stdin {
        fail("prompt_mode", "the tool acp gets its prompt by the protocol; leave `prompt_mode` out".into());
    }
}

/// `model`, `reasoning` and `provider`.
fn semantic(peer: &PeerSpec, fail: &mut impl FnMut(&str, String)) {
    let fields = [("model", &peer.model), ("reasoning", &peer.reasoning), ("provider", &peer.provider)];
    let (reasoning, provider): (&[&str], &[&str]) = match peer.tool_name() {
        "claude" => (&["low", "medium", "high", "xhigh", "max"], &["anthropic", "openrouter"]),
        "codex" => (&["minimal", "low", "medium", "high", "xhigh"], &["openai", "openrouter"]),
        "opencode" => (&["minimal", "low", "medium", "high", "xhigh", "max"], &[]),
        _ => {
            for (key, _) in fields.iter().filter(|(_, value)| value.is_some()) {
                fail(
                    key,
                    format!("`{key}` works for the tools claude, codex and opencode only; put it in `argv`"),
                );
            }
            return;
        }
    };
    for (key, value, words) in
        [("reasoning", &peer.reasoning, reasoning), ("provider", &peer.provider, provider)]
    {
        let Some(value) = value else { continue };
        if !words.contains(&value.trim().to_ascii_lowercase().as_str()) {
            let hint = if words.is_empty() {
                "leave it out and write `model: <provider>/<model>`".to_owned()
            } else {
                format!("one of: {}", words.join(", "))
            };
            let shown: String = value.chars().take(60).collect();
            fail(
                key,
                format!("`{key}: {}` is unknown for {}; {hint}", shown.escape_debug(), peer.tool_name()),
            );
        }
    }
}
