//! What the program writes, by its schemas.

use peers_core::state::State;
use serde_json::Value;

use super::*;
use crate::Position;
use crate::projection::state_json;

#[test]
fn each_schema_is_one_and_names_itself() {
    for described in Described::ALL {
        let schema = described.schema();
        assert!(jsonschema::meta::is_valid(&schema), "{described:?}");
        assert_eq!(schema["$schema"], keys::schema::DRAFT);
        assert!(
            schema["$id"].as_str().unwrap().starts_with(&format!("urn:peers:schema:{}:", described.word()))
        );
        assert!(described.text().ends_with("}\n"));
        jsonschema::validator_for(&schema).unwrap();
    }
}

#[test]
fn each_key_is_told_and_strangers_are_refused_in_the_files_of_people() {
    fn look(at: &str, schema: &Value) {
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            assert_eq!(schema["additionalProperties"], false, "{at}");
            for (name, value) in properties {
                let at = format!("{at}.{name}");
                let told = value.get("description").and_then(Value::as_str).unwrap_or_default();
                assert!(told.ends_with('.') && told.len() > 8, "{at}: {told}");
                assert_eq!(value["title"], name.as_str(), "{at}");
                look(&at, value);
                value
                    .get("anyOf")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                    .for_each(|each| look(&at, each));
            }
        }
        for below in ["items", "additionalProperties"] {
            schema.get(below).into_iter().for_each(|each| look(&format!("{at}[]"), each));
        }
    }
    for described in [Described::Config, Described::Goals] {
        look(described.word(), &described.schema());
    }
}

/// The schema with every further key refused: a key that is written and not described is found by it.
pub(crate) fn closed(described: Described) -> Value {
    fn close(schema: &mut Value) {
        match schema {
            Value::Object(map) => {
                if map.contains_key("properties") && map.get("type").is_some() {
                    map.insert("additionalProperties".to_owned(), json!(false));
                }
                map.values_mut().for_each(close);
            }
            Value::Array(list) => list.iter_mut().for_each(close),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut schema = described.schema();
    close(&mut schema);
    schema
}

fn faults(described: Described, value: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(&closed(described)).unwrap();
    validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn the_state_before_anything_happened_is_valid() {
    let state = state_json(&State::new(), &Position::default());
    assert_eq!(faults(Described::State, &state), Vec::<String>::new());
    let mut wrong = state;
    wrong["iteration"] = json!(-1);
    assert!(!faults(Described::State, &wrong).is_empty());
}

#[test]
fn old_lines_are_valid_and_broken_ones_are_not() {
    let line = r#"{"v":1,"seq":7,"ts":"2026-03-04T21:15:02.118Z","run_id":"5f1c0d9e8a7b6c43","prev":"","event":"cooling","peer":"codex","until":"2026-03-04T21:15:17.118Z","streak":1}"#;
    let line: Value = serde_json::from_str(line).unwrap();
    assert_eq!(faults(Described::Runs, &line), Vec::<String>::new());
    for (key, value) in
        [("event", json!("warming")), ("seq", json!("7")), ("until", json!("soon")), ("more", json!(1))]
    {
        let mut wrong = line.clone();
        wrong[key] = value;
        assert!(!faults(Described::Runs, &wrong).is_empty(), "{key}");
    }
}
