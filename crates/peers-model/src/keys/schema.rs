//! JSON Schema, draft 2020-12, of a described file.

use serde_json::{Map, Value, json};

use super::{Key, Shape, Table, Text};

/// The dialect.
pub const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The schema of a file whose top is `table`.
///
/// It is as strict as a schema can be: what needs two keys to be seen together, and how a text is
/// quoted, only the program that reads the file can say.
#[must_use]
pub fn of(table: &Table, id: &str, title: &str, about: &str) -> Value {
    let mut out = Map::new();
    out.insert("$schema".to_owned(), json!(DRAFT));
    out.insert("$id".to_owned(), json!(id));
    out.insert("title".to_owned(), json!(title));
    out.insert("description".to_owned(), json!(about));
    mapping(table, &mut out);
    // An empty file is an empty mapping.
    Value::Object(out)
}

fn mapping(table: &Table, out: &mut Map<String, Value>) {
    let keys: Map<String, Value> =
        table.keys.iter().map(|key| (key.name.to_owned(), entry(key, table))).collect();
    let required: Vec<_> =
        table.keys.iter().filter(|key| key.default.is_none()).map(|key| key.name).collect();
    out.insert("type".to_owned(), json!("object"));
    out.insert("additionalProperties".to_owned(), json!(false));
    out.insert("properties".to_owned(), Value::Object(keys));
    if !required.is_empty() {
        out.insert("required".to_owned(), json!(required));
    }
    if !table.either.is_empty() {
        let each: Vec<_> = table.either.iter().map(|name| json!({"required": [name]})).collect();
        out.insert("oneOf".to_owned(), json!(each));
    }
}

fn entry(key: &Key, table: &Table) -> Value {
    let mut out = Map::new();
    out.insert("title".to_owned(), json!(key.name));
    out.insert("description".to_owned(), json!(key.about));
    let default = key.default.filter(|_| !table.either.contains(&key.name)).map(|default| default());
    // What a missing mapping stands for its own keys say, and of `null` the text.
    if let Some(default) = default.filter(|value| !value.is_null() && !value.is_object()) {
        out.insert("default".to_owned(), default);
    }
    shape(&key.shape, &mut out);
    Value::Object(out)
}

fn value(of: &Shape) -> Value {
    let mut out = Map::new();
    shape(of, &mut out);
    Value::Object(out)
}

fn shape(of: &Shape, out: &mut Map<String, Value>) {
    let mut set = |key: &str, value: Value| {
        out.insert(key.to_owned(), value);
    };
    match of {
        Shape::Switch => set("type", json!("boolean")),
        Shape::Whole { least, most } => {
            set("type", json!("integer"));
            set("minimum", json!(least));
            set("maximum", json!(most));
        }
        Shape::Amount => {
            set("type", json!("number"));
            set("exclusiveMinimum", json!(0));
            set("maximum", json!(1_000_000_000));
        }
        Shape::Price => {
            set("type", json!("number"));
            set("minimum", json!(0));
            set("maximum", json!(1_000_000_000));
        }
        Shape::Text(of) => text(of, out),
        Shape::Word { words, any_case } => {
            let each: Vec<_> =
                words.iter().map(|(word, about)| json!({"const": word, "description": about})).collect();
            set("oneOf", json!(each));
            if *any_case {
                set("type", json!("string"));
                let words: Vec<_> = words.iter().map(|(word, _)| any_case_pattern(word)).collect();
                out.remove("oneOf");
                out.insert("pattern".to_owned(), json!(format!("^({})$", words.join("|"))));
                let plain: Vec<_> = each.iter().filter_map(|each| each.get("const")).collect();
                out.insert("examples".to_owned(), json!(plain));
            }
        }
        Shape::List { of, least, most } => {
            set("type", json!("array"));
            set("items", value(of));
            if *least > 0 {
                set("minItems", json!(least));
            }
            if *most < usize::MAX {
                set("maxItems", json!(most));
            }
        }
        Shape::Table(table) => mapping(table, out),
        Shape::Maybe(of) => set("anyOf", json!([value(of), {"type": "null"}])),
        Shape::Named { name, of } => {
            set("type", json!("object"));
            set("additionalProperties", value(of));
            let mut names = Map::new();
            text(name, &mut names);
            set("propertyNames", Value::Object(names));
        }
    }
}

fn text(of: &Text, out: &mut Map<String, Value>) {
    let Text { pattern, most, filled, wrong: _ } = of;
    out.insert("type".to_owned(), json!("string"));
    if let Some(pattern) = pattern {
        out.insert("pattern".to_owned(), json!(pattern));
    } else if *filled {
        out.insert("pattern".to_owned(), json!("\\S"));
    }
    if *most < usize::MAX {
        // The limit is one of bytes; a text has at most as many characters.
        out.insert("maxLength".to_owned(), json!(most));
    }
}

fn any_case_pattern(word: &str) -> String {
    let letter = |c: char| match (c.to_ascii_uppercase(), c.to_ascii_lowercase()) {
        (upper, lower) if upper != lower => format!("[{upper}{lower}]"),
        _ => c.to_string(),
    };
    word.chars().map(letter).collect()
}
