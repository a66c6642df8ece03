//! The declared keys against what is made of them: the check of a file, its reader, and the JSON Schema.

use peers_model::keys::{Described as Declared, Key, Shape, Table, Text};
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
            Shape::Maybe(of) => inside(of, path, wrap, out),
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
    let needed = |key: &&Key| key.default.is_none() || table.either.first() == Some(&key.name);
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
        Shape::Maybe(of) => sample(of),
    }
}

/// Values of every kind, and those at the limits of the key.
fn values(shape: &'static Shape) -> Vec<Value> {
    let shape = if let Shape::Maybe(of) = shape { of } else { shape };
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

/// What is wrong with a file; a file that is right is read.
fn mistakes<T: Declared + DeserializeOwned>(file: &Value) -> Vec<String> {
    let text = file.to_string();
    let Findings { mistakes, sound } = Document::read("f", &text).unwrap().check(keys::of::<T>());
    if mistakes.is_empty() {
        serde_json::from_value::<T>(sound).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
    mistakes.into_iter().map(|mistake| mistake.message).collect()
}

/// Whether it is a text that YAML knows from another kind only by its quotes, which JSON has already said.
fn is_spelling(shape: &Shape, value: &Value) -> bool {
    match (shape, value) {
        (Shape::Maybe(of), value) => is_spelling(of, value),
        (Shape::Text(_) | Shape::Word { .. }, value) => value.is_number() || value.is_boolean(),
        (Shape::List { of, .. }, Value::Array(list)) => list.iter().any(|each| is_spelling(of, each)),
        _ => false,
    }
}

fn compare<T: Declared + DeserializeOwned>(described: Described) {
    let top = keys::of::<T>();
    let schema = jsonschema::validator_for(&described.schema()).unwrap();
    let mut compared = 0;
    let mut failed: Vec<String> = Vec::new();
    for Spot { path, table, wrap } in spots(top) {
        let sound = wrap(least(table));
        assert_eq!(mistakes::<T>(&sound), Vec::<String>::new(), "{path}: {sound}");
        for key in table.keys {
            for value in values(&key.shape) {
                let file = wrap(with(table, key.name, value.clone()));
                let at = format!("{path}.{} = {value}", key.name);
                let told = mistakes::<T>(&file);
                compared += 1;
                let says =
                    |words: &[&str]| words.iter().any(|word| told.iter().any(|told| told.contains(word)));
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
fn config_has_the_same_verdict_from_its_keys_and_from_the_schema() {
    compare::<Config>(Described::Config);
}

#[test]
fn goals_have_the_same_verdict_from_their_keys_and_from_the_schema() {
    compare::<GoalsFile>(Described::Goals);
}

#[test]
fn a_key_that_is_gone_is_not_there() {
    for Spot { path, table, .. } in
        spots(keys::of::<Config>()).into_iter().chain(spots(keys::of::<GoalsFile>()))
    {
        for (gone, instead) in table.gone {
            assert!(table.key(gone).is_none() && !instead.is_empty(), "{path}.{gone}");
        }
    }
}

pub(super) fn whole(described: Described, text: &str) -> bool {
    let value: Value = yaml::from_str("f", text).unwrap();
    let value = if value.is_null() { Value::Object(Map::new()) } else { value };
    jsonschema::validator_for(&described.schema()).unwrap().is_valid(&value)
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

#[test]
fn what_cannot_be_judged_is_a_mistake_and_never_left_out() {
    for (extra, says) in [
        ("max_retries: !!int 5\n", "`max_retries` has a tag"),
        ("driver: !!str hooks\n", "`driver` has a tag"),
        ("<<: 5\n", "<<"),
        ("<<: [5]\n", "<<"),
    ] {
        let error = config(extra);
        let problem = only(&error);
        assert!(problem.line.is_some() && format!("{problem:?}").contains(says), "{problem:?}");
    }
}
