//! JSON Schemas of what the program writes: `.peers/state.json` and the lines of `.peers/log/runs.jsonl`.
//!
//! Further keys are allowed: a newer program may write some. That real files hold no key that is not
//! described is tested.

mod lines;

use peers_model::config::Config;
use peers_model::goal::{CHECK_NAMES, GoalEntry, GoalsFile, OF_CHECKS, OF_COMMANDS, OF_GATES, OF_REVIEWS};
use peers_model::keys::{self, schema};
use serde_json::{Map, Value, json};

/// A file that has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Described {
    /// `.peers/config.yaml`.
    Config,
    /// `.peers/goals.yaml`.
    Goals,
    /// `.peers/state.json`.
    State,
    /// One line of `.peers/log/runs.jsonl`.
    Runs,
}

impl Described {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Config, Self::Goals, Self::State, Self::Runs];

    /// The word on the command line, and the name of the schema's file without its end.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Goals => "goals",
            Self::State => "state",
            Self::Runs => "runs",
        }
    }

    /// The schema.
    #[must_use]
    pub fn schema(self) -> Value {
        match self {
            Self::Config => schema::of(
                keys::of::<Config>(),
                self.id(),
                "config.yaml of peers",
                "The configuration of one repository (.peers/config.yaml).",
            ),
            Self::Goals => goals(self.id()),
            Self::State => state(self.id()),
            Self::Runs => lines::schema(self.id()),
        }
    }

    /// The schema as a file: pretty, with a line end.
    #[must_use]
    pub fn text(self) -> String {
        let mut schema = self.schema();
        schema.sort_all_objects();
        format!("{schema:#}\n")
    }

    /// Names it, and its version; no address.
    fn id(self) -> &'static str {
        match self {
            Self::Config => "urn:peers:schema:config:1",
            Self::Goals => "urn:peers:schema:goals:1",
            Self::State => "urn:peers:schema:state:3",
            Self::Runs => "urn:peers:schema:runs:1",
        }
    }
}

/// Adds to the keys what depends on the type of a goal.
fn goals(id: &str) -> Value {
    let mut schema = schema::of(
        keys::of::<GoalsFile>(),
        id,
        "goals.yaml of peers",
        "What must be true before a run is complete (.peers/goals.yaml).",
    );
    let filled = |key: &str| json!({"required": [key], "properties": {key: {"not": {"type": "null"}}}});
    // A key that is there, with a value that `value` admits.
    let has = |key: &str, value: Value| json!({"required": [key], "properties": {key: value}});
    // Keys that say nothing: absent, or with the value of their absence.
    let bare = |names: &[&str]| -> Value {
        let absent = |name: &str| keys::of::<GoalEntry>().key(name).and_then(|key| key.default);
        let each = names.iter().map(|name| {
            let nothing = absent(name).map(|default| default()).unwrap_or_default();
            ((*name).to_owned(), json!({"const": nothing}))
        });
        json!({"properties": each.collect::<Map<String, Value>>()})
    };
    let rule = |kind: &str, then: Value| json!({"if": has("type", json!({"const": kind})), "then": then});
    let live = json!({"properties": {"tree": {"not": {"const": "live"}}}});
    let rules = json!([
        rule("hard", json!({"oneOf": [filled("cmd"), filled("check")]})),
        rule("hard", bare(&OF_REVIEWS)),
        rule("hard", json!({"if": has("paths", json!({"minItems": 1})), "then": has("cacheable", json!({"const": true}))})),
        rule("hard", json!({"if": filled("check"), "then": bare(&OF_COMMANDS)})),
        rule("soft", json!({"allOf": [filled("prompt"), filled("reviewer")]})),
        rule("soft", bare(&OF_GATES)),
        rule("soft", json!({"if": filled("check"), "else": bare(&OF_CHECKS)})),
        {"if": filled("cmd"), "then": {"allOf": [filled("pass_when"), bare(&["args"])]}},
        {"if": filled("check"), "then": {"allOf": [bare(&["pass_when"]), {"properties": {"tree": {"not": {"const": "copy"}}}}]}},
        {"if": has("expensive", json!({"const": true})), "then": live},
        {"if": has("reviewer", json!({"const": "quorum"})), "then": filled("quorum"), "else": bare(&["quorum"])},
        {"if": has("reviewer", json!({"const": "both"})), "then": {"properties": {"consensus_needed": {"const": 1}}}},
    ]);
    let goal = schema.pointer_mut("/properties/goals/anyOf/0/items").and_then(Value::as_object_mut);
    if let Some(goal) = goal {
        goal.insert("allOf".to_owned(), rules);
    }
    let check = schema.pointer_mut("/properties/goals/anyOf/0/items/properties/check/anyOf/0");
    if let Some(check) = check.and_then(Value::as_object_mut) {
        check.insert("enum".to_owned(), json!(CHECK_NAMES.as_slice()));
    }
    schema
}

/// A field: its name, its [type](kind), what it means. A `?` behind the name: it may be absent.
type Field = (&'static str, &'static str, &'static str);

/// An object of these fields.
fn object(fields: &[Field]) -> Value {
    let name = |field: &Field| field.0.trim_end_matches('?').to_owned();
    let properties: Map<String, Value> = fields
        .iter()
        .map(|field| {
            let mut value = kind(field.1);
            if let Some(value) = value.as_object_mut() {
                value.insert("title".to_owned(), json!(name(field)));
                value.insert("description".to_owned(), json!(field.2));
            }
            (name(field), value)
        })
        .collect();
    let required: Vec<_> = fields.iter().filter(|field| !field.0.ends_with('?')).map(name).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

/// A type by its short name. A `?` behind it: or null. `[x]`: a list. `{x}`: a mapping by name.
/// `a|b`: one of these words. `#x`: what is defined under that name.
fn kind(short: &str) -> Value {
    let inner = |open: char, close: char| short.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    if let Some(rest) = short.strip_suffix('?') {
        return json!({"anyOf": [kind(rest), {"type": "null"}]});
    }
    if let Some(of) = inner('[', ']') {
        return json!({"type": "array", "items": kind(of)});
    }
    if let Some(of) = inner('{', '}') {
        return json!({"type": "object", "additionalProperties": kind(of)});
    }
    if let Some(name) = short.strip_prefix('#') {
        return json!({"$ref": format!("#/$defs/{name}")});
    }
    match short {
        "int" => json!({"type": "integer", "minimum": 0}),
        "code" => json!({"type": "integer"}),
        "money" | "num" => json!({"type": "number", "minimum": 0}),
        "bool" => json!({"type": "boolean"}),
        "text" => json!({"type": "string"}),
        "any" => json!({}),
        "time" => json!({"type": "string", "format": "date-time", "pattern": "^\\d{4}-\\d{2}-\\d{2}T.*Z$"}),
        "hash" => json!({"type": "string", "pattern": "^([0-9a-f]{40}|[0-9a-f]{64})$"}),
        "sha256" => json!({"type": "string", "pattern": "^([0-9a-f]{64})?$"}),
        "run" => json!({"type": "string", "pattern": "^[0-9a-f]{16}$"}),
        words => json!({"enum": words.split('|').collect::<Vec<_>>()}),
    }
}

const AT: &[Field] = &[
    ("segment", "int", "Segment of the journal."),
    ("offset", "int", "Bytes from the start of the segment."),
    ("seq", "int", "Number of the last line; 0 before the first."),
    ("hash", "sha256", "SHA-256 of the last line; empty before the first."),
];

#[expect(clippy::too_many_lines, reason = "one table")]
fn state(id: &str) -> Value {
    let mut out = object(&[
        ("schema_version", "int", "3."),
        ("at", "#at", "Where in the journal it stands."),
        ("run_id", "run?", "The current or last run; null before the first."),
        ("iteration", "int", "Ticks completed, over all runs."),
        ("turn_index", "int", "Whose turn it is: an index into `peer_order`."),
        ("peer_order", "[text]", "The peers in the order of their turns."),
        ("peer_roles", "{default|recovery|witness|debater}", "By peer."),
        ("consecutive_clean_ticks", "int", "Clean ticks in a row."),
        ("budget", "#budget", "What was spent."),
        ("goals_status", "{#goal}", "By gate: what was measured last."),
        ("stuck_counter", "{int}", "By gate: ticks in a row that ended red."),
        ("soft_status", "{#soft}", "By soft goal: its reviews."),
        ("skeptic", "#skeptic", "The adversarial turn before `complete`."),
        ("peers", "{#peer}", "By peer: its standing."),
        ("warnings", "[text]", "For the next prompt."),
        ("warnings_history", "[#warning]", "The last 500."),
        ("dirty_worktree", "bool", "The last tick left uncommitted changes."),
        ("phase", "text?", "The phase, and the step at hand; null without phases."),
        ("open_tick", "int?", "A tick that began and has not ended."),
        ("last_exit", "#last_exit?", "How the last run ended."),
    ]);
    let defs = json!({
        "at": object(AT),
        "budget": object(&[
            ("spent_iterations", "int", "Ticks."),
            ("spent_runtime_s", "int", "`peer_s` and `gate_s` together."),
            ("peer_s", "int", "Seconds that peers ran."),
            ("gate_s", "int", "Seconds that gates ran."),
            ("wasted_runtime_s", "int", "Seconds of failed ticks."),
            ("consecutive_failures", "int", "Failed ticks in a row."),
            ("spent_tokens", "int", "Tokens, as far as known."),
            ("spent_usd", "money", "US dollars, as far as known."),
            ("ticks_of_unknown_cost", "int", "Ticks whose cost is not known."),
        ]),
        "goal": object(&[
            ("state", "pass|fail|timeout|error|skipped", "`error`: it could not be judged."),
            ("diagnostic", "text", "What the gate said. Untrusted text."),
            ("duration_ms", "int", "Of all attempts together."),
            ("head", "hash", "The commit that the verdict is about."),
            ("tree", "hash", "The tree that the verdict is about."),
        ]),
        "soft": object(&[
            ("consensus_count", "int", "Passes that count."),
            ("last_pass", "bool?", "The newest answer."),
            ("last_reviewer", "text?", "Who gave it."),
            ("history", "[#review]", "The newest reviews."),
            ("alt_cursor", "int", "Whose turn to review it is."),
            ("per_peer", "{#tally}", "By peer."),
            ("scope", "text", "Digest of the content that they are about."),
            ("changed?", "#change?", "Who last changed that content."),
        ]),
        "review": object(&[
            ("pass", "bool", "The answer."),
            ("reviewer", "text", "In whose turn it was given."),
            ("sha", "hash", "The commit that holds it."),
            ("notes?", "text", "Untrusted text."),
            ("scope", "text", "Digest of the content that it is about."),
            ("tick", "int", "In which tick."),
        ]),
        "tally": object(&[
            ("consensus_count", "int", "Passes that count."),
            ("last_pass", "bool?", "The newest answer."),
        ]),
        "change": object(&[("by", "text", "The peer."), ("scope", "text", "Digest of the content after it.")]),
        "skeptic": object(&[
            ("tree", "hash?", "The tree that the answers are about."),
            ("passed", "[text]", "Who found nothing there."),
            ("attempts", "int", "Turns without a usable answer."),
            ("unreported", "int", "Turns in a row that changed something and reported nothing that blocks."),
        ]),
        "peer": object(&[
            ("state", "healthy|degraded|halted|unavailable", "Its standing."),
            ("consecutive_fails", "int", "Failed attempts of the current turn."),
            ("recent_fails", "num", "Failures among its last five ticks; work without a handoff is half of one."),
            ("recent_runs", "[num]", "0 success, 0.5 work without a handoff, 1 failure."),
            ("last_run", "#run?", "Its last tick."),
            ("degraded_reason", "text?", "Why it is degraded."),
            ("degraded_at_iter", "int?", "Since which tick."),
            ("recovery_cooldown_iter", "int?", "The failed recovery turn from which the next interval counts."),
            ("failed_cheating", "int", "Turns of it that were reverted, since its last clean handoff."),
            ("anti_cheat_prewarned", "bool", "It was warned of a turn that changed only tests, or weakened them."),
            ("not_before", "time?", "It waits until then."),
            ("tokens", "int", "Of all its ticks, as far as known."),
            ("usd", "money", "Of all its ticks, as far as known."),
            ("ticks", "int", "Its ticks."),
        ]),
        "run": object(&[
            ("tick", "int", "Which tick."),
            ("success", "bool", "Whether it was a handoff that stood."),
            ("outcome?", lines::OUTCOME, "What the loop made of it."),
            ("classification", lines::CLASSIFICATION, "How its process ended."),
            ("duration_ms", "int", "How long it ran."),
            ("soft_fail_reason?", "text", "Why it was no success."),
            ("pattern?", "text", "The pattern behind an API error."),
        ]),
        "warning": object(&[
            ("ts", "time", "When."),
            ("tick", "int", "At which tick."),
            ("text", "text", "What."),
        ]),
        "last_exit": object(&[
            ("reason", "text", "A stop reason."),
            ("at", "time", "When."),
            ("in_gates", "bool", "Gates were running."),
        ]),
    });
    finish(
        &mut out,
        id,
        "state.json of peers",
        "The state, for people and scripts (.peers/state.json).",
        defs,
    );
    out
}

/// Puts head and definitions to a schema.
fn finish(out: &mut Value, id: &str, title: &str, about: &str, defs: Value) {
    let Some(out) = out.as_object_mut() else { return };
    out.insert("$schema".to_owned(), json!(schema::DRAFT));
    out.insert("$id".to_owned(), json!(id));
    out.insert("title".to_owned(), json!(title));
    out.insert("description".to_owned(), json!(about));
    out.insert("$defs".to_owned(), defs);
}

#[cfg(test)]
mod tests;
