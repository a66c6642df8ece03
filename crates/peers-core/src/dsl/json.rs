//! Paths, pointers and the strict reader for the JSON files that an expression looks at.

use std::fmt;

use peers_model::limits;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::ast::JsonStep;

/// Largest JSON file that an expression may read, bytes.
pub const MAX_JSON_BYTES: usize = 2 * 1024 * 1024;

/// Parses a JSON file the way expressions want it: UTF-8, at most [`MAX_JSON_BYTES`], nested at
/// most [`limits::JSON_DEPTH`] deep, no duplicate keys (a second key could hide the first), no NaN
/// or infinity, nothing after the value.
///
/// # Errors
/// A sentence fragment that says what is wrong; it names duplicate keys but quotes no values.
pub fn strict_json(bytes: &[u8]) -> Result<Value, String> {
    if bytes.len() > MAX_JSON_BYTES {
        return Err(format!("larger than {MAX_JSON_BYTES} bytes"));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "not UTF-8".to_owned())?;
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Strict { depth_left: limits::JSON_DEPTH }
        .deserialize(&mut reader)
        .map_err(|e| format!("not acceptable JSON: {e}"))?;
    reader.end().map_err(|e| format!("not acceptable JSON: {e}"))?;
    Ok(value)
}

struct Strict {
    depth_left: usize,
}

impl Strict {
    fn deeper<E: serde::de::Error>(&self) -> Result<Self, E> {
        self.depth_left
            .checked_sub(1)
            .map(|depth_left| Self { depth_left })
            .ok_or_else(|| E::custom("nested too deep"))
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_f64<E: serde::de::Error>(self, v: f64) -> Result<Value, E> {
        Number::from_f64(v).map(Value::Number).ok_or_else(|| E::custom("a number that is not finite"))
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(Value::String(v.to_owned()))
    }

    fn visit_string<E>(self, v: String) -> Result<Value, E> {
        Ok(Value::String(v))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self.deeper()?)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if object.contains_key(&key) {
                let shown: String = key.chars().filter(|c| !c.is_control()).take(40).collect();
                return Err(A::Error::custom(format!("duplicate key `{shown}`")));
            }
            let value = map.next_value_seed(self.deeper()?)?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

/// Normalises the path of `json(path)`: relative, below the root of the gate's tree.
pub(crate) fn relative_path(path: &str) -> Result<String, String> {
    if path.starts_with('/') {
        return Err("the path of json() must be relative to the repository".into());
    }
    if path.chars().any(char::is_control) {
        return Err("the path of json() must not hold control characters".into());
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.contains(&"..") {
        return Err("the path of json() must not hold `..`".into());
    }
    if parts.is_empty() {
        return Err("the path of json() names no file".into());
    }
    Ok(parts.join("/"))
}

/// Splits a JSON pointer (RFC 6901).
pub(crate) fn pointer(text: &str) -> Result<Vec<JsonStep>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let Some(rest) = text.strip_prefix('/') else {
        return Err("a JSON pointer starts with `/`".into());
    };
    rest.split('/')
        .map(|token| {
            let mut plain = String::new();
            let mut chars = token.chars();
            while let Some(c) = chars.next() {
                match (c, c == '~') {
                    (_, false) => plain.push(c),
                    (_, true) => match chars.next() {
                        Some('0') => plain.push('~'),
                        Some('1') => plain.push('/'),
                        _ => return Err("in a JSON pointer write `~0` for `~` and `~1` for `/`".to_owned()),
                    },
                }
            }
            Ok(JsonStep::Token(plain))
        })
        .collect()
}

/// Follows the steps of a reference. The error names the step, never the content of the file.
pub(crate) fn follow<'v>(root: &'v Value, steps: &[JsonStep], path: &str) -> Result<&'v Value, String> {
    let mut here = root;
    for step in steps {
        here = match (step, here) {
            (JsonStep::Key(key) | JsonStep::Token(key), Value::Object(object)) => {
                object.get(key).ok_or_else(|| format!("no key `{key}` in {path}"))?
            }
            (JsonStep::Token(index), Value::Array(items)) => array_index(index)
                .and_then(|i| items.get(i))
                .ok_or_else(|| format!("no element `{index}` in {path}"))?,
            (JsonStep::Key(key) | JsonStep::Token(key), other) => {
                return Err(format!("cannot look up `{key}` in {} of {path}", kind(other)));
            }
        };
    }
    Ok(here)
}

fn array_index(text: &str) -> Option<usize> {
    let canonical = text == "0" || (!text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit()));
    if canonical { text.parse().ok() } else { None }
}

/// How a message names a JSON value.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a bool",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
