//! `docs/scenarios.md` lists each numbered test, and nothing else, and names tests that there are;
//! `docs/attacks.md` names tests that there are, each in its file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What the sources say.
#[derive(Default)]
struct Found {
    /// Numbers that tests name, as in `row_07_a_branch_without_a_commit`, each with its file.
    numbers: BTreeSet<(u32, String)>,
    /// Functions without parameters, as tests are, and modules of tests, one for each language.
    names: BTreeSet<String>,
    /// The same by file.
    files: BTreeMap<String, BTreeSet<String>>,
}

impl Found {
    fn collect(&mut self, root: &Path, dir: &Path) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                self.collect(root, &path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let file = path.strip_prefix(root).unwrap().to_str().unwrap();
                let text = std::fs::read_to_string(&path).unwrap();
                let functions = text.split("fn ").skip(1).filter_map(|rest| rest.split_once("()"));
                let modules =
                    text.split("in_each_language!(").skip(1).filter_map(|rest| rest.split_once(','));
                for name in functions.chain(modules).map(|(name, _)| name.trim()) {
                    self.numbers.extend(numbers(name).map(|number| (number, file.to_owned())));
                    self.names.insert(name.to_owned());
                    self.files.entry(file.to_owned()).or_default().insert(name.to_owned());
                }
            }
        }
    }
}

/// `row_46_and_47_what_holds` is about two.
fn numbers(name: &str) -> impl Iterator<Item = u32> {
    let words = name.strip_prefix("row_").unwrap_or_default().split('_');
    words
        .enumerate()
        .map_while(|(at, word)| match (at % 2, word.parse()) {
            (0, Ok(number)) => Some(Some(number)),
            (1, _) if word == "and" => Some(None),
            _ => None,
        })
        .flatten()
}

/// What the sources of all crates say; files are named from `crates/`.
fn in_crates(top: &Path) -> Found {
    let mut found = Found::default();
    let crates = top.join("crates");
    for entry in std::fs::read_dir(&crates).unwrap() {
        for part in ["src", "tests"] {
            let dir = entry.as_ref().unwrap().path().join(part);
            if dir.is_dir() {
                found.collect(&crates, &dir);
            }
        }
    }
    found
}

#[test]
fn the_list_of_attacks_names_tests_that_there_are() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = in_crates(top);
    found.collect(top, &top.join("tests/e2e"));
    let (mut rows, mut tests_named) = (0, 0);
    let text = std::fs::read_to_string(top.join("docs/attacks.md")).unwrap();
    for line in text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| Attack |")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        assert_eq!(cells.len(), 5, "three cells: {line}");
        for group in cells[3].split("; ") {
            let (file, list) =
                group.split_once(": ").unwrap_or_else(|| panic!("`file`: `test`, ...: {group}"));
            let file = file.trim_matches('`');
            let tests = found.files.get(file).unwrap_or_else(|| panic!("there is no file {file}: {line}"));
            for name in list.split(", ").map(|name| name.trim_matches('`')) {
                assert!(tests.contains(name), "{file} has no test `{name}`");
                tests_named += 1;
            }
        }
        rows += 1;
    }
    assert!(rows >= 70 && tests_named >= rows, "{rows} attacks, {tests_named} tests");
}

#[test]
fn the_list_of_scenarios_has_the_tests_that_there_are() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = in_crates(top);
    found.collect(top, &top.join("tests/e2e"));
    let mut listed = BTreeSet::new();
    let mut named = 0;
    for line in std::fs::read_to_string(top.join("docs/scenarios.md")).unwrap().lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let Some(last) = cells.get(3).filter(|last| last.starts_with('`')) else { continue };
        let last = last.split(", ").map(|name| name.trim_matches('`').to_owned());
        if let Ok(number) = cells[1].parse() {
            for file in last {
                assert!(listed.insert((number, file.clone())), "{number} of {file} is listed twice");
            }
        } else {
            for name in last {
                assert!(found.names.contains(&name), "there is no test `{name}`");
                named += 1;
            }
        }
    }
    let missing: Vec<_> = found.numbers.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&found.numbers).collect();
    assert!(missing.is_empty() && gone.is_empty(), "not listed: {missing:?}; not there: {gone:?}");
    assert!(found.numbers.len() > 50 && named > 30, "the tests are looked for where they are");
}
