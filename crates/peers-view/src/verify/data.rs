//! For programs, schema `peers.verify/2`.

use peers_sys::term;
use serde_json::{Value, json};

use super::{VerifyReport, VerifyRow};
use crate::json;

/// The schema of [`verify_json`].
const SCHEMA: &str = "peers.verify/2";
/// Paths that the gates made dirty, or wrote.
const LISTED: usize = 1000;

/// The report as one JSON object. `exit_code` is what the process exits with: the report's own, or that of a
/// file that was not written.
#[must_use]
pub fn verify_json(report: &VerifyReport, exit_code: u8) -> String {
    let timed = report.at.is_some();
    let rows = |rows: &[VerifyRow]| rows.iter().map(|row| one(row, timed)).collect::<Vec<_>>();
    let dirtied = report.dirtied.as_ref().ok();
    let value = json!({
        "result": report.answer().word().to_lowercase().replace(' ', "-"),
        "exit_code": exit_code,
        "ts": report.at,
        "head": report.head,
        "tree": report.tree,
        "dirty": report.dirty,
        "pristine": report.pristine,
        "digests": report.digests,
        "accept_digest": report.accept_digest,
        "hard": rows(&report.hard),
        "verify": rows(&report.extra),
        "exempt": report.exempt,
        "dirtied": dirtied.map(|paths| paths.iter().take(LISTED).collect::<Vec<_>>()),
        "dirtied_count": dirtied.map(Vec::len),
        "rewritten": report.rewritten.iter().take(LISTED).collect::<Vec<_>>(),
        "whole": report.unasked.is_empty(),
        "left_out": {"hard": report.unasked.hard, "verify": report.unasked.extra},
        "recordless": report.recordless,
        "beside": report.beside,
    });
    json::document(SCHEMA, &value)
}

fn one(row: &VerifyRow, timed: bool) -> Value {
    let VerifyRow { name, state, diagnostic, attempts, duration_ms, source } = row;
    json!({
        "name": name,
        "state": state.word(),
        "cause": row.cause(),
        "diagnostic": term::block(diagnostic),
        "attempts": attempts,
        "duration_ms": timed.then_some(duration_ms),
        "file": source.file,
        "line": source.line,
    })
}
