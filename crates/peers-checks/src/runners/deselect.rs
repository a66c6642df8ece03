//! What the configuration of test runners leaves out: options, patterns and switches by which tests are not chosen.

use std::collections::{BTreeMap, BTreeSet};

use peers_code::{Language, Setting, Source, is_test};
use peers_model::CommitId;
use peers_sys::yaml;
use serde_json::Value;

use super::adapter::is_of_pytest;
use crate::cx::{CheckCx, CouldNot};
use crate::manifests::is_foreign;
use crate::report::Finding;

/// Bytes of a file of settings.
const MOST: usize = 1024 * 1024;

/// What a setting does to the choice of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Each item leaves tests out.
    LeavesOut,
    /// Nothing but its items is chosen.
    Chooses,
}

/// A setting, and what it says.
#[derive(Debug)]
struct Choice {
    key: String,
    effect: Effect,
    items: Vec<String>,
    line: Option<usize>,
}

impl Choice {
    fn new(key: impl Into<String>, effect: Effect, items: Vec<String>) -> Self {
        Self { key: key.into(), effect, items, line: None }
    }
}

/// Something that leaves tests out, and did not at the base.
#[derive(Debug)]
pub(crate) struct LeftOut {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) what: String,
    /// The line above it.
    pub(crate) above: String,
}

/// A file of settings with what it says.
type Read = (String, String, Vec<Choice>);

/// What the commit that is judged leaves out and the base did not, and the files that cannot be read.
///
/// # Errors
/// [`CouldNot`] for a tree or an object that cannot be read.
pub(crate) fn newly_left_out(
    cx: &CheckCx,
    base: &CommitId,
) -> Result<(Vec<LeftOut>, Vec<Finding>), CouldNot> {
    let mut old: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for (path, _, choices) in read(cx, base)?.0 {
        for choice in choices {
            old.entry((dir(&path), choice.key)).or_default().extend(choice.items);
        }
    }
    let tests: Vec<String> =
        cx.files()?.into_iter().map(|file| file.path).filter(|path| is_test(path)).collect();
    let (files, unreadable) = read(cx, cx.head())?;
    let mut found = Vec::new();
    for (path, text, choices) in files {
        let lines: Vec<&str> = text.lines().collect();
        for Choice { key, effect, items, line } in choices {
            let before = old.get(&(dir(&path), key.clone()));
            let mut tell = |item: &str, what: String| {
                let name = key.rsplit('.').next().unwrap_or(&key);
                let by = |fits: &dyn Fn(&str) -> bool| lines.iter().position(|line| fits(line.trim_start()));
                let at = line
                    .map(|line| line - 1)
                    .or_else(|| by(&|line| line.starts_with(name) && line.contains(item)))
                    .or_else(|| by(&|line| line.starts_with(item)))
                    .or_else(|| by(&|line| line.contains(item)))
                    .or_else(|| by(&|line| line.contains(name)))
                    .unwrap_or(0);
                let above = at.checked_sub(1).and_then(|above| lines.get(above));
                let above = above.copied().unwrap_or_default().to_owned();
                found.push(LeftOut { path: path.clone(), line: at + 1, what, above });
            };
            match (effect, before) {
                (Effect::LeavesOut, before) => {
                    for item in items.iter().filter(|item| !before.is_some_and(|old| old.contains(*item))) {
                        tell(item, format!("{key}: `{item}` was not there at the base"));
                    }
                }
                (Effect::Chooses, Some(before)) => {
                    for item in before.iter().filter(|item| !items.contains(item)) {
                        tell(&key, format!("{key}: `{item}` was chosen at the base"));
                    }
                }
                (Effect::Chooses, None) if !chooses_all(&path, &items, &tests) => {
                    tell(
                        &key,
                        format!(
                            "{key}: nothing but `{}` is chosen, as it was not at the base",
                            items.join(", ")
                        ),
                    );
                }
                (Effect::Chooses, None) => {}
            }
        }
    }
    Ok((found, unreadable))
}

fn dir(path: &str) -> String {
    path.rsplit_once('/').map_or("", |(dir, _)| dir).to_owned()
}

/// Whether each test below the directory of a file of settings is in one of these directories.
fn chooses_all(path: &str, items: &[String], tests: &[String]) -> bool {
    let top = dir(path);
    let python = !matches!(Language::of(path), Some(Language::JavaScript)) && !path.ends_with("package.json");
    let mut below = tests.iter().filter_map(|test| {
        let own = if python { is_of_pytest(test) } else { Language::of(test) == Some(Language::JavaScript) };
        let rest =
            if top.is_empty() { Some(test.as_str()) } else { test.strip_prefix(&top)?.strip_prefix('/') };
        rest.filter(|_| own)
    });
    below.all(|test| {
        items.iter().any(|item| {
            let item = item.trim_start_matches("<rootDir>").trim_start_matches("./").trim_matches('/');
            let rest = test.strip_prefix(item);
            rest.is_some_and(|rest| item.is_empty() || rest.is_empty() || rest.starts_with('/'))
        })
    })
}

/// The files of settings of a commit.
fn read(cx: &CheckCx, commit: &CommitId) -> Result<(Vec<Read>, Vec<Finding>), CouldNot> {
    let (mut found, mut unreadable) = (Vec::new(), Vec::new());
    for file in cx.files_at(commit)? {
        let (dir, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
        let Some(reader) = reader(name).filter(|_| !is_foreign(dir)) else { continue };
        let told = cx.read_at(commit, &file.path, MOST).map_err(|why| why.what).and_then(|bytes| {
            let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
            Ok((reader(name, &text)?, text))
        });
        match told {
            Ok((choices, text)) => found.push((file.path, text, choices)),
            Err(why) => unreadable.push(Finding::at(&file.path, None, "unreadable", &why, None)),
        }
    }
    Ok((found, unreadable))
}

type Reader = fn(&str, &str) -> Result<Vec<Choice>, String>;

/// What reads a file of this name.
fn reader(name: &str) -> Option<Reader> {
    Some(match name {
        "pytest.ini" | ".pytest.ini" | "tox.ini" | "setup.cfg" => |name, text| Ok(ini(name, text)),
        "pyproject.toml" => |_, text| Ok(pyproject(&toml(text)?)),
        "Cargo.toml" => |_, text| Ok(cargo(&toml(text)?)),
        "conftest.py" => javascript_or_python,
        "package.json" => package_json,
        ".mocharc.yml" | ".mocharc.yaml" => |name, text| {
            let value: Value = yaml::from_str(name, text).map_err(|error| error.to_string())?;
            let choices = javascript_or_python(".mocharc.json", &value.to_string())?;
            Ok(choices.into_iter().map(|choice| Choice { line: None, ..choice }).collect())
        },
        _ => {
            let (stem, end) = name.rsplit_once('.')?;
            let known = matches!(
                stem,
                "jest.config"
                    | "vitest.config"
                    | "vite.config"
                    | "vitest.workspace"
                    | "playwright.config"
                    | ".mocharc"
            );
            let read = end.starts_with("json") || Language::of(name) == Some(Language::JavaScript);
            let reader: Reader = javascript_or_python;
            (known && read).then_some(reader)?
        }
    })
}

fn toml(text: &str) -> Result<toml::Table, String> {
    text.parse().map_err(|error: toml::de::Error| error.message().to_owned())
}

/// What a setting of pytest means.
fn of_pytest(key: &str, words: Vec<String>) -> Option<Choice> {
    Some(match key {
        "addopts" => Choice::new(key, Effect::LeavesOut, options(&words)),
        "testpaths" | "python_files" | "python_classes" | "python_functions" => {
            Choice::new(key, Effect::Chooses, words)
        }
        "norecursedirs" | "collect_ignore" | "collect_ignore_glob" => {
            Choice::new(key, Effect::LeavesOut, words)
        }
        _ => return None,
    })
}

/// The options among words of a command by which runners choose tests, each with its value.
fn options(words: &[String]) -> Vec<String> {
    // Of pytest; of jest and vitest; of node; of mocha.
    const LONG: [&str; 18] = [
        "--deselect",
        "--ignore",
        "--ignore-glob",
        "--lf",
        "--last-failed",
        "--sw",
        "--stepwise",
        "--co",
        "--collect-only",
        "--testNamePattern",
        "--testPathIgnorePatterns",
        "--exclude",
        "--test-name-pattern",
        "--test-skip-pattern",
        "--test-only",
        "--grep",
        "--fgrep",
        "--invert",
    ];
    let mut found: Vec<String> = Vec::new();
    let mut open = false;
    for word in words {
        let name = word.split('=').next().unwrap_or(word);
        if word.starts_with('-') {
            let short = ["-k", "-m", "-t", "-g", "-f"].iter().any(|option| word.starts_with(option));
            open = LONG.contains(&name) || short;
            if open {
                found.push(word.clone());
            }
        } else if let Some(last) = found.last_mut().filter(|_| open) {
            *last = format!("{last} {word}");
        }
    }
    found
}

/// The paths among words behind a runner: what runners take as all that they are to run.
fn paths(all: &[String]) -> Vec<String> {
    let before = std::iter::once("").chain(all.iter().map(String::as_str));
    let is_path = |word: &str| !word.starts_with('-') && word.contains(['/', '.', '*']);
    let free = all.iter().zip(before).filter(|(word, before)| is_path(word) && !before.starts_with('-'));
    free.map(|(word, _)| word.clone()).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(|word| word.trim_matches(['"', '\'']).to_owned()).collect()
}

/// Files of sections with `key = value`, the value going on in lines that are indented.
fn ini(name: &str, text: &str) -> Vec<Choice> {
    let section = if name == "setup.cfg" { "[tool:pytest]" } else { "[pytest]" };
    let mut pairs: Vec<(String, Vec<String>)> = Vec::new();
    let mut inside = false;
    for line in text.lines().filter(|line| !line.trim_start().starts_with(['#', ';'])) {
        if line.starts_with('[') {
            inside = line.trim_end() == section;
        } else if !inside {
        } else if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = pairs.last_mut() {
                value.extend(words(line));
            }
        } else if let Some((key, value)) = line.split_once(['=', ':']) {
            pairs.push((key.trim().to_owned(), words(value)));
        }
    }
    pairs.into_iter().filter_map(|(key, value)| of_pytest(&key, value)).collect()
}

fn pyproject(table: &toml::Table) -> Vec<Choice> {
    let pytest = table.get("tool").and_then(|tool| tool.get("pytest"));
    let settings = [pytest.and_then(|of| of.get("ini_options")), pytest];
    let tables = settings.into_iter().flatten().filter_map(toml::Value::as_table);
    tables.flatten().filter_map(|(key, value)| of_pytest(key, texts(value))).collect()
}

/// The words of a text, or the texts of a list.
fn texts(value: &toml::Value) -> Vec<String> {
    match value {
        toml::Value::String(text) => words(text),
        toml::Value::Array(items) => items.iter().filter_map(toml::Value::as_str).flat_map(words).collect(),
        _ => Vec::new(),
    }
}

/// Targets that are not tested, and members that are not.
fn cargo(table: &toml::Table) -> Vec<Choice> {
    let mut found = Vec::new();
    let package = table.get("package");
    if package.and_then(|package| package.get("autotests")) == Some(&toml::Value::Boolean(false)) {
        found.push(Choice::new("package", Effect::LeavesOut, vec!["autotests = false".to_owned()]));
    }
    for kind in ["lib", "bin", "test", "example", "bench"] {
        let targets = match table.get(kind) {
            Some(toml::Value::Array(targets)) => targets.iter().collect(),
            Some(target) => vec![target],
            None => continue,
        };
        for target in targets {
            let name = target.get("name").and_then(toml::Value::as_str).unwrap_or_default();
            let key = if name.is_empty() { kind.to_owned() } else { format!("{kind}.{name}") };
            let off = |switch: &&&str| target.get(**switch) == Some(&toml::Value::Boolean(false));
            let switches = ["test", "doctest", "harness"];
            let switches =
                switches.iter().filter(|switch| **switch != "harness" || kind == "test").filter(off);
            let mut items: Vec<String> = switches.map(|switch| format!("{switch} = false")).collect();
            if kind == "test" && target.get("required-features").is_some() {
                items.push("required-features".to_owned());
            }
            found.push(Choice::new(key, Effect::LeavesOut, items));
        }
    }
    let workspace = |key: &str| table.get("workspace").and_then(|of| of.get(key)).map(texts);
    found
        .extend(workspace("exclude").map(|items| Choice::new("workspace.exclude", Effect::LeavesOut, items)));
    let chosen = workspace("default-members");
    found.extend(chosen.map(|items| Choice::new("workspace.default-members", Effect::Chooses, items)));
    found
}

/// The sections of runners, and the options of the script `test`.
fn package_json(name: &str, text: &str) -> Result<Vec<Choice>, String> {
    let whole: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut found = javascript_or_python(name, text)?;
    let script = whole.pointer("/scripts/test").and_then(Value::as_str).unwrap_or_default();
    let runner = ["vitest", "jest", "mocha", "playwright", "node --test"].iter().find_map(|name| {
        let at = script.find(name)?;
        script.get(at + name.len()..)
    });
    if let Some(rest) = runner {
        found.push(Choice::new("scripts.test", Effect::LeavesOut, options(&words(script))));
        let chosen = paths(&words(rest));
        if !chosen.is_empty() {
            found.push(Choice::new("scripts.test paths", Effect::Chooses, chosen));
        }
    }
    Ok(found)
}

/// JSON is read as an object of JavaScript, so that comments in it are none of its values.
fn javascript_or_python(name: &str, text: &str) -> Result<Vec<Choice>, String> {
    let is_json = Language::of(name).is_none();
    let (path, text) = if is_json { ("a.js", format!("({text})")) } else { (name, text.to_owned()) };
    let source = Source::parse(path, text.as_bytes()).map_err(|error| error.to_string())?;
    let of_runner = |setting: &Setting| {
        name != "package.json"
            || setting.keys.first().is_some_and(|first| ["jest", "mocha", "vitest"].contains(&first.as_str()))
    };
    let choice = |Setting { keys, items, line }: Setting| {
        let (key, above) = keys.split_last()?;
        let within = above.last().map_or("", String::as_str);
        let effect = match (key.as_str(), name.split('.').next().unwrap_or_default()) {
            (_, "conftest") => of_pytest(key, Vec::new())?.effect,
            ("testPathIgnorePatterns" | "testNamePattern" | "testIgnore" | "grepInvert", _) => {
                Effect::LeavesOut
            }
            ("testMatch" | "testRegex" | "roots" | "testDir", _) | ("grep", "playwright") | ("spec", "") => {
                Effect::Chooses
            }
            ("exclude", "vitest" | "vite") if within == "test" => Effect::LeavesOut,
            ("include" | "dir", "vitest" | "vite") if within == "test" => Effect::Chooses,
            // `.mocharc`, and the section of `package.json`.
            ("ignore" | "exclude" | "grep" | "fgrep" | "g" | "f" | "invert", "") => Effect::LeavesOut,
            ("ignore" | "grep" | "fgrep" | "invert", "package") if within == "mocha" => Effect::LeavesOut,
            ("spec", "package") if within == "mocha" => Effect::Chooses,
            _ => return None,
        };
        // What runners leave out by themselves.
        let usual = |item: &String| {
            let bare = item.trim_start_matches("<rootDir>").trim_matches(['*', '/', '.', '\\']);
            matches!(bare, "node_modules" | "dist" | "configDefaults.exclude")
        };
        let items = items.into_iter().filter(|item| effect == Effect::Chooses || !usual(item)).collect();
        Some(Choice { line: Some(line), ..Choice::new(key, effect, items) })
    };
    Ok(source.settings().into_iter().filter(of_runner).filter_map(choice).collect())
}
