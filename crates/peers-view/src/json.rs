//! The JSON forms: a schema in each, and nothing in them that steers a terminal.

use std::fmt::Write as _;

use peers_model::Timestamp;
use peers_sys::term;
use serde::Serialize;
use serde_json::{Map, Value};

/// Escapes what could steer a terminal in a JSON text, so that nothing is lost and nothing acts.
///
/// Outside of strings JSON holds no such character but line ends, which stay.
#[must_use]
pub fn terminal_safe(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while !rest.is_empty() {
        // Almost all of it, in one go.
        let plain = rest.bytes().position(|b| !matches!(b, b' '..=b'~' | b'\n')).unwrap_or(rest.len());
        let (run, other) = rest.split_at(plain);
        out.push_str(run);
        let mut chars = other.chars();
        let Some(c) = chars.next() else { break };
        rest = chars.as_str();
        if c != '\n' && (c.is_control() || term::invisible(c) || matches!(c, '\u{2028}' | '\u{2029}')) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// What every document of the controller has.
#[derive(Debug, Serialize)]
pub(crate) struct Envelope<D, W> {
    pub(crate) generated_at: Timestamp,
    pub(crate) data: D,
    pub(crate) warnings: W,
}

/// A document of the controller.
pub(crate) fn enveloped(
    schema: &str,
    now: Timestamp,
    data: impl Serialize,
    warnings: impl Serialize,
) -> String {
    document(schema, &Envelope { generated_at: now, data, warnings })
}

/// A document: `schema` and the fields of `value`, indented, keys sorted, a newline at the end.
pub(crate) fn document(schema: &str, value: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(&object(schema, value)).unwrap_or_default();
    terminal_safe(&text) + "\n"
}

/// The same on one line, for streams: the schema first, then the fields as they come.
pub(crate) fn line(schema: &str, value: &impl Serialize) -> String {
    let text = match serde_json::to_string(value) {
        Ok(text) if text.len() > 2 && text.starts_with('{') => {
            format!("{{\"schema\":{},{}", Value::from(schema), text.get(1..).unwrap_or_default())
        }
        _ => object(schema, value).to_string(),
    };
    terminal_safe(&text) + "\n"
}

fn object(schema: &str, value: &impl Serialize) -> Value {
    let mut map = match serde_json::to_value(value) {
        Ok(Value::Object(map)) => map,
        Ok(other) => Map::from_iter([("value".to_owned(), other)]),
        // Our types serialise; should one ever not, its reader must see that.
        Err(error) => Map::from_iter([("error".to_owned(), Value::String(error.to_string()))]),
    };
    map.insert("schema".to_owned(), Value::String(schema.to_owned()));
    let mut value = Value::Object(map);
    value.sort_all_objects();
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steering_characters_are_escaped_and_nothing_is_lost() {
        let hostile = "a\u{1b}\u{9b}\u{202e}\u{e0041}\u{7f}\u{2028}ü日";
        let text = document("x/1", &serde_json::json!({ "t": hostile }));
        assert!(text.chars().all(|c| c == '\n' || !(c.is_control() || term::invisible(c))), "{text:?}");
        let back: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(back["t"], hostile);
        assert_eq!(back["schema"], "x/1");
    }

    #[test]
    fn a_stream_has_one_line_for_each_value() {
        let text = line("x/1", &serde_json::json!({"t": "a\nb"}));
        assert_eq!(text, "{\"schema\":\"x/1\",\"t\":\"a\\nb\"}\n");
    }
}
