//! SARIF 2.1.0, for code scanning.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::place::Place;
use super::{Answer, RowState, VerifyReport, VerifyRow};
use crate::json::terminal_safe;

/// Where the schema is published.
const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// What relative paths are relative to; readers put the top of the repository there.
const ROOT: &str = "%SRCROOT%";

/// The report as a SARIF log: a rule for each gate and command, a result for each that is not green.
#[must_use]
pub fn verify_sarif(report: &VerifyReport) -> String {
    let mut rules = Rules::default();
    let mut results = Vec::new();
    let kinds = [("hard", "Hard goal", &report.hard), ("verify", "Verify command", &report.extra)];
    for (prefix, kind, rows) in kinds {
        for row in rows {
            let (id, at) = rules.add(&format!("{prefix}/{}", row.name), &format!("{kind} `{}`", row.name));
            results.extend(result(row, &id, at));
        }
    }
    // Without results a log looks like success.
    if report.answer() == Answer::NothingToCheck {
        let (id, at) = rules.add("nothing-to-check", "There is something to check");
        let text = "there is nothing to check: no hard goal and no verify command";
        let place = Place { path: ".peers/goals.yaml".to_owned(), line: 1 };
        results.push(entry(&id, at, "error", text, &place));
    }
    let caveats = report.caveats().into_iter();
    let caveats: Vec<Value> =
        caveats.map(|text| json!({"level": "warning", "message": {"text": text}})).collect();
    let mut invocation = json!({
        // Whether peers could do its work, not whether it liked what it saw.
        "executionSuccessful": report.rows().all(|row| row.state != RowState::Error),
        "exitCode": report.answer().exit(),
        "toolExecutionNotifications": caveats,
    });
    if let (Some(at), Some(fields)) = (report.at, invocation.as_object_mut()) {
        fields.insert("startTimeUtc".to_owned(), json!(at));
        let rows: Map<String, Value> =
            report.rows().map(|row| (row.name.clone(), json!(row.duration_ms))).collect();
        fields.insert("properties".to_owned(), json!({"duration_ms": rows}));
    }
    let mut log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "peers", "version": report.version, "rules": rules.list}},
            "automationDetails": {"id": "peers/verify/"},
            "invocations": [invocation],
            "columnKind": "unicodeCodePoints",
            "properties": {
                "head": report.head,
                "tree": report.tree,
                "dirty": report.dirty,
                "pristine": report.pristine,
                "digests": report.digests,
                "accept_digest": report.accept_digest,
                "exempt": report.exempt,
                "result": report.answer().word(),
                "whole": report.unasked.is_empty(),
                "left_out": {"hard": report.unasked.hard, "verify": report.unasked.extra},
                "recordless": report.recordless,
                "beside": report.beside,
                "dirtied_count": report.dirtied.as_ref().ok().map(Vec::len),
            },
            "results": results,
        }],
    });
    log.sort_all_objects();
    let text = serde_json::to_string_pretty(&log).unwrap_or_default();
    terminal_safe(&text) + "\n"
}

fn result(row: &VerifyRow, id: &str, at: usize) -> Option<Value> {
    let level = match row.state {
        RowState::Pass => return None,
        RowState::Fail | RowState::Timeout | RowState::Skipped => "error",
        RowState::Error => "warning",
    };
    let text = format!("{}: {}: {}", row.name, row.state.word(), row.cause());
    let mut result = entry(id, at, level, &text, &Place::of(row));
    if let Some(fields) = result.as_object_mut() {
        fields.insert(
            "properties".to_owned(),
            json!({"state": row.state.word(), "attempts": row.attempts, "diagnostic": row.diagnostic}),
        );
    }
    Some(result)
}

fn entry(id: &str, at: usize, level: &str, text: &str, place: &Place) -> Value {
    json!({
        "ruleId": id,
        "ruleIndex": at,
        "level": level,
        "message": {"text": text},
        "locations": [{"physicalLocation": {
            "artifactLocation": {"uri": place.uri(), "uriBaseId": ROOT},
            "region": {"startLine": place.line},
        }}],
        // The same gate is the same alert, wherever its finding moves.
        "partialFingerprints": {"peersGate/v1": id},
    })
}

#[derive(Default)]
struct Rules {
    list: Vec<Value>,
    taken: BTreeSet<String>,
}

impl Rules {
    /// Adds a rule and returns its id and index. Two commands may have one name; two rules may not.
    fn add(&mut self, id: &str, about: &str) -> (String, usize) {
        let mut free = id.to_owned();
        let mut n = 2_u32;
        while !self.taken.insert(free.clone()) {
            free = format!("{id} ({n})");
            n = n.saturating_add(1);
        }
        self.list.push(json!({"id": free, "shortDescription": {"text": about}}));
        (free, self.list.len() - 1)
    }
}
