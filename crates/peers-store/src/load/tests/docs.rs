//! The pages about the two files against the declared keys.

use peers_model::config::Config;
use peers_model::goal::GoalsFile;
use peers_model::keys::{self, Shape, Table};
use serde_json::Value;

fn page(name: &str) -> String {
    let path = format!("{}/../../docs/formats/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every key that the page does not name, and every default that stands in no line about its key.
fn missing(table: &'static Table, path: &str, page: &str, out: &mut Vec<String>) {
    for key in table.keys {
        let path = if path.is_empty() { key.name.to_owned() } else { format!("{path}.{}", key.name) };
        let default = match key.default.map(|default| default()) {
            Some(Value::String(word)) => word,
            Some(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string(),
            _ => String::new(),
        };
        let told = page.lines().any(|line| line.contains(key.name) && line.contains(&default));
        if !told {
            out.push(format!("{path} {default}"));
        }
        let mut inner = &key.shape;
        while let Shape::Maybe(of) | Shape::List { of, .. } | Shape::Named { of, .. } = inner {
            inner = of;
        }
        if let Shape::Table(below) = inner {
            missing(below, &path, page, out);
        }
    }
}

#[test]
fn every_key_and_its_default_stand_in_the_page_about_its_file() {
    let mut out = Vec::new();
    missing(keys::of::<Config>(), "", &page("config.md"), &mut out);
    missing(keys::of::<GoalsFile>(), "", &page("goals.md"), &mut out);
    assert_eq!(out, Vec::<String>::new());
}
