//! Proposals as text for `goals.yaml`.

use std::fmt::Write as _;

use super::Proposal;

/// The entries as they stand below `goals:`.
#[must_use]
pub fn entries(proposals: &[Proposal]) -> String {
    let mut text = String::new();
    for Proposal { id, description, cmd, pass_when, timeout_s, why } in proposals {
        // Writing to a string does not fail.
        let _infallible = write!(
            text,
            "  # From {}\n  - id: {id}\n    type: hard\n    description: {}\n    cmd: {}\n    pass_when: {}\n    timeout_s: {timeout_s}\n",
            named(why),
            scalar(description),
            scalar(cmd),
            scalar(pass_when),
        );
    }
    text
}

/// The same as comments.
#[must_use]
pub fn commented(proposals: &[Proposal]) -> String {
    let text = entries(proposals);
    let mut out = String::new();
    for line in text.lines() {
        let line = line.strip_prefix("  ").unwrap_or(line);
        // A comment in a comment is the comment.
        let line = line.strip_prefix("# ").unwrap_or(line);
        out.extend(["  # ", line, "\n"]);
    }
    out
}

/// A path in a comment: as it is where it is tame, else quoted.
fn named(path: &str) -> String {
    let tame = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
    if path.chars().all(tame) { path.to_owned() } else { quoted(path) }
}

/// A text as a value: bare where nothing of it can mean anything, else quoted.
fn scalar(text: &str) -> String {
    let tame = |c: char| c.is_ascii_alphanumeric() || " ._/=-".contains(c);
    let bare = text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.contains(' ')
        && !text.ends_with(' ')
        && text.chars().all(tame);
    if bare { text.to_owned() } else { quoted(text) }
}

/// A text in double quotes, in printable ASCII alone.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            c => {
                let code = u32::from(c);
                let _infallible =
                    if code <= 0xffff { write!(out, "\\u{code:04x}") } else { write!(out, "\\U{code:08x}") };
            }
        }
    }
    out.push('"');
    out
}
