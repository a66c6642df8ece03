//! `peers schema`, what `init` lays down of it, and what a real run writes by it.

use serde_json::{Value, json};

use crate::support::World;

/// The schema with every further key refused, so that one that is written and not described is found.
fn closed(world: &World, file: &str) -> Value {
    fn close(schema: &mut Value) {
        match schema {
            Value::Object(map) => {
                if map.contains_key("properties") && map.contains_key("type") {
                    map.insert("additionalProperties".to_owned(), json!(false));
                }
                map.values_mut().for_each(close);
            }
            Value::Array(list) => list.iter_mut().for_each(close),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut schema = serde_json::from_str(&world.peers(&["schema", file]).exits(0).out).unwrap();
    close(&mut schema);
    schema
}

fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(schema).unwrap();
    validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn what_a_run_writes_is_described_by_the_schemas() {
    let world = World::ready("true");
    world.peers(&["run", "--max-ticks", "4"]).exits(0);
    world.peers(&["run"]);
    let state: Value = serde_json::from_str(&world.read(".peers/state.json")).unwrap();
    assert_eq!(faults(&closed(&world, "state"), &state), Vec::<String>::new());
    let schema = closed(&world, "runs");
    let mirror = world.read(".peers/log/runs.jsonl");
    assert!(mirror.lines().count() > 10, "{mirror}");
    for line in mirror.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(faults(&schema, &line), Vec::<String>::new(), "{line}");
    }
}

#[test]
fn init_lays_down_the_schemas_that_the_files_name_and_a_run_does_not_mind() {
    let world = World::ready("true");
    for (file, schema) in [("config", "config.schema.json"), ("goals", "goals.schema.json")] {
        let printed = world.peers(&["schema", file]).exits(0).out;
        assert_eq!(world.read(&format!(".peers/schema/{schema}")), printed);
    }
    let outside = World::bare();
    outside.peers(&["schema", "config"]).exits(0);
    outside.peers(&["schema", "nothing"]).exits(2);
    world.write(".peers/schema/config.schema.json", "{}");
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    world.peers(&["init", "--upgrade"]).exits(0);
    assert_eq!(
        world.read(".peers/schema/config.schema.json"),
        world.peers(&["schema", "config"]).exits(0).out
    );
}

#[test]
fn settings_of_peers_are_written_by_init_and_nothing_is_written_where_they_fit_nobody() {
    let world = World::repo();
    let done = world.peers(&["init", "--peer-model", "gemini=x"]).exits(2);
    done.err_has("--peer-model: no peer has the name or tool of `gemini=x`");
    assert!(!world.at(".peers").exists());
    let settings = ["--peer-reasoning=high", "--peer-model=codex=gpt-5", "--peer-provider=codex=openrouter"];
    world.peers(&[&["init"], &settings[..]].concat()).exits(0);
    let text = world.read(".peers/config.yaml");
    assert_eq!(text.matches("\n    reasoning: high\n").count(), 2, "{text}");
    assert_eq!(text.matches("\n    model: gpt-5\n").count(), 1, "{text}");
    assert_eq!(text.matches("\n    provider: openrouter\n").count(), 1, "{text}");
    assert!(world.peers(&["info"]).exits(0).out.contains("gpt-5"));
}

#[test]
fn the_schema_of_goals_refuses_what_the_program_refuses_of_one_key() {
    let world = World::ready("true");
    let schema = closed(&world, "goals");
    let fits = |key: &str, value: Value| {
        let mut goal = json!({"id": "t", "type": "hard", "cmd": "make", "pass_when": "exit_code == 0"});
        goal[key] = value;
        faults(&schema, &json!({"goals": [goal]})).is_empty()
    };
    for path in ["web", "web/app", ".github", "a/..b", "a b/.gitx"] {
        assert!(fits("cwd", json!(path)), "{path}");
    }
    for path in ["", "/web", "..", "../web", "web/..", "web/../x", "./web", "web/", "web//app", ".git/hooks"]
    {
        assert!(!fits("cwd", json!(path)), "{path}");
    }
    assert!(fits("env", json!(["CI", "_A1"])) && !fits("env", json!(["A-B"])) && !fits("env", json!(["1A"])));
    assert!(!fits("cmd", json!(" ")) && fits("cmd", json!("make")));
}
