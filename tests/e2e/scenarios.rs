//! `docs/scenarios.md` lists each numbered test, and nothing else.

use std::collections::BTreeSet;
use std::path::Path;

/// The numbers that the tests of a file name, as in `row_07_a_branch_without_a_commit`.
fn numbers(text: &str) -> BTreeSet<u32> {
    let names = text.split("fn row_").skip(1);
    names.filter_map(|rest| rest.split('_').next()?.parse().ok()).collect()
}

fn collect(root: &Path, dir: &Path, found: &mut BTreeSet<(u32, String)>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap();
            let numbers = numbers(&std::fs::read_to_string(&path).unwrap());
            found.extend(numbers.into_iter().map(|number| (number, name.to_owned())));
        }
    }
}

#[test]
fn the_list_of_scenarios_has_the_tests_that_there_are() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = BTreeSet::new();
    let crates = top.join("crates");
    for entry in std::fs::read_dir(&crates).unwrap() {
        for part in ["src", "tests"] {
            let dir = entry.as_ref().unwrap().path().join(part);
            if dir.is_dir() {
                collect(&crates, &dir, &mut found);
            }
        }
    }
    let mut listed = BTreeSet::new();
    for line in std::fs::read_to_string(top.join("docs/scenarios.md")).unwrap().lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let Some(number) = cells.get(1).and_then(|cell| cell.parse().ok()) else { continue };
        let files = cells[3].split(", ").map(|file| file.trim_matches('`').to_owned());
        for file in files {
            assert!(listed.insert((number, file.clone())), "{number} of {file} is listed twice");
        }
    }
    let missing: Vec<_> = found.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&found).collect();
    assert!(missing.is_empty() && gone.is_empty(), "not listed: {missing:?}; not there: {gone:?}");
    assert!(found.len() > 50, "the tests are looked for where they are");
}
