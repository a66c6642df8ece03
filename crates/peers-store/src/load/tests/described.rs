//! The description of the keys against what reads them: serde, and the JSON Schema made from it.

use std::collections::BTreeSet;
use std::fmt::Debug;

use peers_model::keys::config::CONFIG as KEYS;
use peers_model::keys::goals::GOALS;
use peers_model::keys::{Key, Shape, Table, Text};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::*;
use crate::schema::Described;

/// A mapping of a file: its description, and how it is put into a whole file that is right otherwise.
struct Spot {
    path: String,
    table: &'static Table,
    wrap: Box<dyn Fn(Value) -> Value>,
}

/// Every mapping below `table`.
fn spots(table: &'static Table) -> Vec<Spot> {
    fn inside(
        shape: &'static Shape,
        path: String,
        wrap: std::rc::Rc<dyn Fn(Value) -> Value>,
        out: &mut Vec<Spot>,
    ) {
        match shape {
            Shape::Table(table) => {
                let of = std::rc::Rc::clone(&wrap);
                out.push(Spot { path: path.clone(), table, wrap: Box::new(move |value| of(value)) });
                for key in table.keys {
                    let of = std::rc::Rc::clone(&wrap);
                    let put = move |value: Value| of(with(table, key.name, value));
                    inside(&key.shape, format!("{path}.{}", key.name), std::rc::Rc::new(put), out);
                }
            }
            Shape::List { of, least, .. } => {
                let (of_list, least): (&'static Shape, usize) = (of, *least);
                let put = move |value: Value| {
                    let mut list = vec![value];
                    list.resize_with(least.max(1), || sample(of_list));
                    wrap(Value::Array(list))
                };
                inside(of, path + "[]", std::rc::Rc::new(put), out);
            }
            Shape::Named { of, .. } => {
                inside(
                    of,
                    path + ".*",
                    std::rc::Rc::new(move |value: Value| wrap(json!({"one": value}))),
                    out,
                );
            }
            Shape::Switch
            | Shape::Whole { .. }
            | Shape::Amount
            | Shape::Price
            | Shape::Text(_)
            | Shape::Word { .. } => {}
        }
    }
    let mut out = vec![Spot { path: String::new(), table, wrap: Box::new(|value| value) }];
    for key in table.keys {
        let put = move |value: Value| with(table, key.name, value);
        inside(&key.shape, key.name.to_owned(), std::rc::Rc::new(put), &mut out);
    }
    out
}

/// The smallest mapping that is right, with one key more.
fn with(table: &'static Table, key: &str, value: Value) -> Value {
    let mut out = least(table);
    let taken: Vec<_> =
        table.either.iter().filter(|other| table.either.contains(&key) && **other != key).collect();
    let map = out.as_object_mut().unwrap();
    for other in taken {
        drop(map.remove(*other));
    }
    map.insert(key.to_owned(), value);
    out
}

fn least(table: &'static Table) -> Value {
    let needed = |key: &&Key| key.required || table.either.first() == Some(&key.name);
    Value::Object(
        table.keys.iter().filter(needed).map(|key| (key.name.to_owned(), sample(&key.shape))).collect(),
    )
}

fn sample(shape: &'static Shape) -> Value {
    match shape {
        Shape::Switch => json!(true),
        Shape::Whole { least, .. } => json!(least),
        Shape::Amount | Shape::Price => json!(1.5),
        Shape::Text(text) => {
            let fits = |word: &&&str| text.wrong.is_none_or(|wrong| wrong(word).is_none());
            json!(["one", "2026-03-04T18:00:00Z"].iter().find(fits).unwrap())
        }
        Shape::Word { words, .. } => json!(words[0].0),
        Shape::List { of, least, .. } => Value::Array((0..*least).map(|_| sample(of)).collect()),
        Shape::Table(table) => least(table),
        Shape::Named { .. } => json!({}),
    }
}

/// Values of every kind, and those at the limits of the key.
fn values(shape: &'static Shape) -> Vec<Value> {
    let mut out = vec![
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(-1),
        json!(1.5),
        json!(""),
        json!(" "),
        json!("one"),
        json!("false"),
        json!("7"),
        json!([]),
        json!(["one"]),
        json!([1]),
        json!([[]]),
        json!({}),
        json!({"one": 1}),
        json!("\u{0}"),
        sample(shape),
    ];
    match shape {
        Shape::Whole { least, most } => {
            out.extend([json!(least), json!(most), json!(i128::from(*least) - 1)]);
            out.extend(most.checked_add(1).map(|more| json!(more)));
        }
        Shape::Amount => out.extend([json!(0.01), json!(1e9), json!(1e10), json!(0.0)]),
        Shape::Price => out.extend([json!(0.0), json!(0.01), json!(1e9), json!(1e10), json!(-1.0)]),
        Shape::Word { words, .. } => {
            out.extend(words.iter().flat_map(|(word, _)| [json!(word), json!(word.to_uppercase())]));
        }
        Shape::List { of, most, .. } if *most < 1000 => {
            out.extend([*most, most + 1].map(|n| Value::Array((0..n).map(|_| sample(of)).collect())));
        }
        Shape::Text(Text { most, .. }) if *most < 10_000 => {
            out.extend([*most, most + 1].map(|n| json!("a".repeat(n))));
        }
        _ => {}
    }
    out
}

fn serde_takes<T: DeserializeOwned + Debug>(file: &Value) -> Result<String, String> {
    yaml::from_str::<T>("f", &file.to_string())
        .map(|read| format!("{read:?}"))
        .map_err(|error| error.to_string())
}

fn mistakes(table: &'static Table, file: &Value) -> Vec<String> {
    let text = file.to_string();
    let found = Document::read("f", &text).unwrap().check(table);
    found.mistakes.into_iter().map(|mistake| mistake.message).collect()
}

/// Whether it is a text that YAML knows from another kind only by its quotes, which JSON has already said.
fn is_spelling(shape: &Shape, value: &Value) -> bool {
    match (shape, value) {
        (Shape::Text(_) | Shape::Word { .. }, value) => value.is_number() || value.is_boolean(),
        (Shape::List { of, .. }, Value::Array(list)) => list.iter().any(|each| is_spelling(of, each)),
        _ => false,
    }
}

fn compare<T: DeserializeOwned + Debug>(top: &'static Table, described: Described) {
    let schema = jsonschema::validator_for(&described.schema()).unwrap();
    let mut compared = 0;
    let mut failed: Vec<String> = Vec::new();
    for Spot { path, table, wrap } in spots(top) {
        let sound = wrap(least(table));
        assert_eq!(mistakes(top, &sound), Vec::<String>::new(), "{path}: {sound}");
        for key in table.keys {
            for value in values(&key.shape) {
                let file = wrap(with(table, key.name, value.clone()));
                let at = format!("{path}.{} = {value}", key.name);
                let (told, read) = (mistakes(top, &file), serde_takes::<T>(&file));
                compared += 1;
                // What the description lets through serde reads; where it is stricter it says why.
                if told.is_empty()
                    && let Err(error) = &read
                {
                    failed.push(format!("{at}: only serde refuses it: {error}"));
                }
                let says =
                    |words: &[&str]| words.iter().any(|word| told.iter().any(|told| told.contains(word)));
                let own = [
                    "found nothing",
                    "bytes long",
                    "is empty",
                    "entries, has",
                    "entry, has",
                    "has a NUL",
                    "is no ",
                ];
                if read.is_ok() && !told.is_empty() && !says(&own) {
                    failed.push(format!("{at}: serde takes it: {told:?}"));
                }
                if is_spelling(&key.shape, &value) {
                    continue;
                }
                let valid = schema.is_valid(&file);
                if told.is_empty() && !valid && !path.ends_with("goals[]") {
                    failed.push(format!("{at}: only the schema refuses it"));
                }
                // What a schema cannot say.
                let beyond = ["bytes long", "has a NUL", "is no time", "is a reserved name", "two forms"];
                if valid && !told.is_empty() && !says(&beyond) {
                    failed.push(format!("{at}: the schema lets it through: {told:?}"));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(compared > 300, "{compared}");
}

#[test]
fn config_has_the_same_verdict_from_the_description_from_serde_and_from_the_schema() {
    compare::<Config>(&KEYS, Described::Config);
}

#[test]
fn goals_have_the_same_verdict_from_the_description_from_serde_and_from_the_schema() {
    compare::<GoalsFile>(&GOALS, Described::Goals);
}

/// The keys that serde names when it meets one that it does not know.
fn known_to_serde<T: DeserializeOwned + Debug>(file: &Value) -> BTreeSet<String> {
    let error = serde_json::from_value::<T>(file.clone()).unwrap_err().to_string();
    let (_, list) = error.split_once("expected ").unwrap_or_else(|| panic!("{error}"));
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn same_keys<T: DeserializeOwned + Debug>(top: &'static Table) {
    for Spot { path, table, wrap } in spots(top) {
        let known = known_to_serde::<T>(&wrap(with(table, "zz-nobody-knows", json!(1))));
        let described: BTreeSet<String> = table.keys.iter().map(|key| key.name.to_owned()).collect();
        assert_eq!(known, described, "{path}: what serde takes and what is described differ");
        for (gone, instead) in table.gone {
            assert!(table.key(gone).is_none() && !instead.is_empty(), "{path}.{gone}");
        }
    }
}

#[test]
fn every_key_that_is_read_is_described_and_the_other_way_round() {
    same_keys::<Config>(&KEYS);
    same_keys::<GoalsFile>(&GOALS);
}

#[test]
fn every_default_that_is_described_is_the_one_in_effect() {
    let mut seen = 0;
    for Spot { path, table, wrap } in spots(&KEYS) {
        for key in table.keys {
            let Some(default) = key.default else { continue };
            let default: Value =
                serde_json::from_str(default).unwrap_or_else(|e| panic!("{path}.{}: {e}", key.name));
            let read = |file: Value| {
                serde_takes::<Config>(&file).unwrap_or_else(|e| panic!("{path}.{}: {e}", key.name))
            };
            assert_eq!(
                read(wrap(with(table, key.name, default))),
                read(wrap(least(table))),
                "{path}.{}",
                key.name
            );
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
    let goals = |extra: &str, rest: &str| {
        load_goals(&format!("goals: [{{id: a, {rest}{extra}}}]"), 2, &CHECKS)
            .unwrap_or_else(|e| panic!("{e}"))
    };
    for key in keys::goals::GOAL.keys.iter().filter(|key| key.default.is_some()) {
        let soft = matches!(key.name, "consensus_needed" | "review_interval" | "paths");
        let rest =
            if soft { "type: soft, prompt: p, reviewer: other" } else { "type: hard, check: self-review" };
        let extra = format!(", {}: {}", key.name, key.default.unwrap());
        assert_eq!(goals(&extra, rest), goals("", rest), "{}", key.name);
    }
}

pub(super) fn whole(described: Described, text: &str) -> bool {
    let value: Value = yaml::from_str("f", text).unwrap();
    let value = if value.is_null() { Value::Object(Map::new()) } else { value };
    jsonschema::validator_for(&described.schema()).unwrap().is_valid(&value)
}

#[test]
fn the_templates_are_valid_by_their_schemas_and_name_them() {
    for (described, name) in [(Described::Config, "config.yaml"), (Described::Goals, "goals.yaml")] {
        let text = template(name);
        assert!(whole(described, &text), "{name}");
        let head = format!("# yaml-language-server: $schema={}\n", crate::layout::peers::schema(described));
        assert!(text.starts_with(&head), "{name}: {head}");
    }
}

/// Whole files, and whether they are right.
#[test]
fn whole_files_have_the_same_verdict_from_the_loader_and_from_the_schema() {
    let two = "peers: [{name: a, argv: [x]}, {name: b, argv: [z]}]\n";
    for (rest, right) in [
        ("", true),
        (
            "budget: {max_usd_mode: WARN, deadline: 2026-03-04T18:00:00+01:00, per_peer: {a: {max_usd: 1.5, max_tokens: null}}}\n",
            true,
        ),
        ("budget: {per_peer: {a: {max_usd: 0}}}\n", false),
        ("budget: {per_peer: {a b: {}}}\n", false),
        ("budget: {max_usd_mode: maybe}\n", false),
        ("bug_hunt: {test_globs: [checks/**]}\n", true),
        ("bug_hunt: {test_globs: ['']}\n", false),
        ("verify: {commands: [{cmd: make, timeout_s: 5}]}\n", true),
        ("verify: {commands: [{name: x}]}\n", false),
        ("goals: {stuck_halt_gates: [abcdef12]}\n", false),
        ("goals: {stuck_halt_gates: [tests-pass]}\n", true),
        ("tools: {c: {argv: [x]}, d: {argv: [z]}}\n", false),
        ("health: null\n", false),
        ("nonsense: 1\n", false),
    ] {
        let text = format!("{two}{rest}");
        assert_eq!(load_config(&text).is_ok(), right, "{rest}");
        assert_eq!(whole(Described::Config, &text), right, "{rest}");
    }
    for (text, right) in
        [("{}", false), ("tools: {c: {argv: [x]}, d: {argv: [z]}}", true), ("peers: []", false)]
    {
        assert_eq!(load_config(text).is_ok(), right, "{text}");
        assert_eq!(whole(Described::Config, text), right, "{text}");
    }
    for (entry, right) in [
        ("id: a, type: hard, cmd: x, pass_when: exit_code == 0", true),
        ("id: a, type: hard, cmd: x", false),
        ("id: a, type: hard", false),
        ("id: a, type: hard, cmd: x, check: self-review, pass_when: exit_code == 0", false),
        ("id: a, type: hard, check: self-review, retry_on_fail: 3, tree: live", true),
        ("id: a, type: hard, check: self-review, retry_on_fail: -1", false),
        ("id: a, type: soft, prompt: p, reviewer: other", true),
        ("id: a, type: soft, prompt: p", false),
        ("id: a, type: soft, prompt: '', reviewer: both", false),
        ("id: a, type: soft, prompt: p, reviewer: quorum", false),
        ("id: a, type: soft, prompt: p, reviewer: quorum, quorum: 1/2", true),
        ("id: a, type: soft, prompt: p, reviewer: other, consensus_needed: null", false),
        ("id: abcdef0, type: hard, check: self-review", false),
        ("id: a, type: hard, check: self-reviw", false),
        ("id: a, type: hard, check: self-review, retry_on_fail: 5", true),
        ("id: a, type: hard, check: self-review, retry_on_fail: 6", false),
        ("id: a, type: hard, check: self-review, pass_when: exit_code == 0", false),
        ("id: a, type: hard, check: self-review, pass_when: null", true),
        ("id: a, type: hard, check: self-review, cacheable: true", false),
        ("id: a, type: hard, check: self-review, cacheable: false", true),
        ("id: a, type: hard, check: self-review, tree: copy", false),
        ("id: a, type: hard, check: self-review, cwd: web", false),
        ("id: a, type: hard, check: self-review, env: [A]", false),
        ("id: a, type: hard, check: self-review, expensive: true", false),
        ("id: a, type: hard, check: self-review, prompt: p", false),
        ("id: a, type: hard, check: self-review, review_interval: 2", false),
        ("id: a, type: hard, cmd: x, pass_when: exit_code == 0, args: [y]", false),
        ("id: a, type: hard, cmd: x, pass_when: exit_code == 0, paths: [src]", false),
        ("id: a, type: hard, cmd: x, pass_when: exit_code == 0, paths: [src], cacheable: true", true),
        ("id: a, type: hard, cmd: x, pass_when: exit_code == 0, expensive: true, tree: live", false),
        ("id: a, type: soft, prompt: p, reviewer: other, quorum: 1/2", false),
        ("id: a, type: soft, prompt: p, reviewer: both, consensus_needed: 2", false),
        ("id: a, type: soft, prompt: p, reviewer: other, cmd: x", false),
        ("id: a, type: soft, prompt: p, reviewer: other, timeout_s: 5", false),
        ("id: a, type: soft, prompt: p, reviewer: other, check: self-review, timeout_s: 5", true),
        ("id: a, type: soft, prompt: p, reviewer: other, tree: live", false),
        ("id: a, type: soft, prompt: p, reviewer: other, tree: auto, retry_on_fail: 0, env: []", true),
        ("id: a, type: soft, prompt: p, reviewer: other, retry_on_fail: 1", false),
        ("type: hard, check: self-review", false),
    ] {
        let text = format!("goals: [{{{entry}}}]");
        assert_eq!(load_goals(&text, 2, &CHECKS).is_ok(), right, "{entry}");
        assert_eq!(whole(Described::Goals, &text), right, "{entry}");
    }
}
