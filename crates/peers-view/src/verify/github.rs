//! Workflow commands of GitHub Actions.

use std::fmt::Write as _;

use peers_core::apply::bounded;
use peers_sys::term;

use super::place::Place;
use super::{Answer, RowState, VerifyReport};

/// Bytes of one message.
const MESSAGE: usize = 4 * 1024;

/// One line for the result, one for each caveat, and an annotation for each row that is not green. Every line is a command of
/// ours: no text of a gate can begin one.
#[must_use]
pub fn verify_github(report: &VerifyReport) -> String {
    let level = if report.answer() == Answer::Pass { "notice" } else { "error" };
    // Writing to a string cannot fail, here and below.
    let mut out = format!("::{level} title=peers verify::{}\n", message(&report.result()));
    for caveat in report.caveats() {
        let _ = writeln!(out, "::warning title=peers verify::{}", message(&caveat));
    }
    for row in report.rows().filter(|row| row.state != RowState::Pass) {
        let Place { path, line } = Place::of(row);
        let cause = row.cause();
        // Most causes are a part of the diagnostic; a short one is all of it.
        let more =
            if row.diagnostic.trim() == cause { String::new() } else { format!("\n{}", row.diagnostic) };
        let text = format!("{}: {cause}{more}", row.state.word());
        let _ = writeln!(
            out,
            "::error file={},line={line},title={}::{}",
            property(&path),
            property(&format!("peers: {}", term::line(&row.name, 120))),
            message(&text)
        );
    }
    out
}

/// Text for the other stream, which the runner reads as well: nothing in it is a command, neither of the form
/// `::name::` at the beginning of a line nor of the older one, `##[name]` anywhere in it.
#[must_use]
pub fn without_commands(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if (c == ':' && out.ends_with(':')) || (c == '[' && out.ends_with("##")) {
            out.push(' ');
        }
        out.push(c);
    }
    out
}

/// What stands behind the second `::`.
fn message(text: &str) -> String {
    let text = bounded(&term::block(text), MESSAGE).replace("##[", "## [");
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// What stands behind a `=`.
fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}
