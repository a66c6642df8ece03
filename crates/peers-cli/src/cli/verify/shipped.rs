//! What `docs/ci/` ships is what this program takes.

use std::collections::BTreeSet;

use clap::CommandFactory as _;
use serde_json::Value;

use crate::cli::Cli;

const FILES: [(&str, &str); 3] = [
    ("action.yml", include_str!("../../../../../docs/ci/action.yml")),
    ("github.yml", include_str!("../../../../../docs/ci/github.yml")),
    ("gitlab.yml", include_str!("../../../../../docs/ci/gitlab.yml")),
];
const README: &str = include_str!("../../../../../docs/ci/README.md");

fn parsed(name: &str) -> Value {
    let (_, text) = FILES.iter().find(|(file, _)| *file == name).unwrap();
    peers_sys::yaml::from_str(name, text).unwrap_or_else(|error| panic!("{error}"))
}

/// Every text in a document.
fn texts(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, into)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, into)),
        _ => {}
    }
}

/// The words that begin with two dashes and a letter.
fn flags(text: &str) -> BTreeSet<String> {
    let word = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
    let flag = |word: &&str| word.len() > 3 && word.starts_with("--") && !word.starts_with("---");
    text.split(word).filter(flag).map(|word| word.trim_start_matches('-').to_owned()).collect()
}

fn known() -> BTreeSet<String> {
    let command = Cli::command();
    let verify = command.get_subcommands().find(|command| command.get_name() == "verify").unwrap();
    verify.get_arguments().filter_map(|arg| arg.get_long().map(str::to_owned)).collect()
}

#[test]
fn every_flag_of_the_shipped_files_is_one_of_the_command() {
    let mut used = BTreeSet::new();
    for (name, _) in FILES {
        let mut all = Vec::new();
        texts(&parsed(name), &mut all);
        used.extend(all.iter().flat_map(|text| flags(text)));
    }
    for flag in ["accept-digest", "junit", "sarif", "format", "no-write", "pristine", "timings"] {
        assert!(used.contains(flag), "`--{flag}` is not used");
    }
    used.extend(flags(README));
    // Of `peers check`.
    used.remove("list");
    let known = known();
    let unknown: Vec<_> = used.difference(&known).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn the_command_line_of_the_shipped_files_is_understood() {
    let mut all = Vec::new();
    for name in ["action.yml", "gitlab.yml"] {
        texts(&parsed(name), &mut all);
    }
    let digest = "0".repeat(64);
    let lines: Vec<String> = all
        .iter()
        .flat_map(|text| text.replace("\\\n", " ").lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let calls: Vec<&String> = lines.iter().filter(|line| line.contains(" verify ")).collect();
    assert_eq!(calls.len(), 2, "{calls:?}");
    for call in calls {
        let words = call.split_whitespace().map(|word| match word.trim_matches('"') {
            "$DIGEST" | "$PEERS_DIGEST" => digest.clone(),
            "${flags[@]}" => "--timings".to_owned(),
            word => word.to_owned(),
        });
        let parsed = Cli::command().try_get_matches_from(words);
        assert!(parsed.is_ok(), "{call}: {:?}", parsed.err());
    }
}

#[test]
fn the_action_declares_what_it_uses() {
    let action = parsed("action.yml");
    let mut all = Vec::new();
    texts(&action, &mut all);
    let text = all.join("\n");
    let named = |after: &str| -> BTreeSet<String> {
        let end = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
        text.split(after).skip(1).map(|rest| rest.split(end).next().unwrap_or_default().to_owned()).collect()
    };
    let keys = |field: &str| action[field].as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(named("inputs."), keys("inputs"));
    assert_eq!(named("steps.verify.outputs."), keys("outputs"));
    for step in action["runs"]["steps"].as_array().unwrap() {
        assert_eq!(step["shell"], "bash");
        // An expression in a script would be code of whoever chose the value.
        assert!(!step["run"].as_str().unwrap().contains("${{"), "{step}");
    }
    let with = parsed("github.yml");
    let with = with["jobs"]["verify"]["steps"][1]["with"].as_object().unwrap().clone();
    assert!(with.keys().all(|key| keys("inputs").contains(key)), "{with:?}");
    assert!(parsed("gitlab.yml")["peers"]["artifacts"]["reports"]["junit"].is_string());
}
