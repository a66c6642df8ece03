//! `three-class`: what a source file does is tested where it works, at its edges, and where it fails (`modes.md` §3.1).

mod delta;

use std::collections::{BTreeMap, BTreeSet};

use peers_code::{Import, Language, Test, module_name};
use peers_model::check;

use crate::check::Check;
use crate::cx::{CheckCx, CouldNot};
use crate::report::{Finding, Report};
use crate::scan::{Which, answer, nothing_to_scan, scan};

pub(crate) const CHECK: Check = Check {
    name: check::THREE_CLASS.name,
    about: "Each source file has tests of the happy path, of edges, and of failures",
    args: check::THREE_CLASS.args,
    run: |cx, args| {
        if args.is_asked("delta") {
            return delta::run(cx);
        }
        judge(cx, args.number(&check::THREE_CLASS, "min-lines")).unwrap_or_else(Report::from)
    },
};

/// What a test is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Happy,
    Edge,
    Sad,
}

const CLASSES: [(Class, &str); 3] = [(Class::Happy, "happy"), (Class::Edge, "edge"), (Class::Sad, "sad")];

/// Letters of a name that means one thing.
const SAYING: usize = 4;

const HAPPY: [&str; 30] = [
    "happy",
    "ok",
    "success",
    "nominal",
    "baseline",
    "valid",
    "default",
    "minimal",
    "canonical",
    "single",
    "passthrough",
    "alias",
    "green",
    "write",
    "append",
    "create",
    "read",
    "accept",
    "parse",
    "evaluate",
    "support",
    "contain",
    "include",
    "allow",
    "render",
    "roundtrip",
    "pass",
    "work",
    "return",
    "succeed",
];
const EDGE: [&str; 20] = [
    "edge",
    "boundary",
    "empty",
    "max",
    "min",
    "long",
    "unicode",
    "multiple",
    "duplicate",
    "oversized",
    "symlink",
    "concurrent",
    "race",
    "toctou",
    "truncate",
    "bounded",
    "zero",
    "limit",
    "maximum",
    "minimum",
];
const SAD: [&str; 24] = [
    "sad",
    "fail",
    "error",
    "invalid",
    "exception",
    "timeout",
    "broken",
    "refuse",
    "reject",
    "missing",
    "corrupt",
    "garbage",
    "deny",
    "denied",
    "unknown",
    "ignore",
    "wrong",
    "skip",
    "malformed",
    "bad",
    "raise",
    "throw",
    "panic",
    "illegal",
];

/// A source file as far as it matters here.
struct SourceFile {
    /// Its lines, without those of tests in it.
    lines: usize,
    /// The names of what it defines; where it only adds to what others define, all that it names.
    names: BTreeSet<String>,
}

/// A test file, or the tests in a source.
struct TestFile {
    /// The stem of its name, without what makes it a test.
    stem: String,
    imports: Vec<Import>,
    tests: Vec<(BTreeSet<Class>, Vec<String>)>,
    /// Classes that a comment claims: `kind: edge, sad`.
    claimed: BTreeSet<Class>,
    /// All words of it.
    words: BTreeSet<String>,
}

fn judge(cx: &CheckCx, least: usize) -> Result<Report, CouldNot> {
    let sources = scan(cx, Which::Sources, &|_, source| {
        let inside = source.tests().0.iter().map(|test| test.end - test.line + 1).sum::<usize>();
        let symbols = source.symbols();
        let names = symbols.iter().flat_map(|symbol| symbol.path.split('.'));
        let names: BTreeSet<String> = names.filter(|name| name.len() >= SAYING).map(str::to_owned).collect();
        SourceFile {
            lines: source.text().lines().count().saturating_sub(inside),
            names: if symbols.is_empty() { identifiers(source.text()) } else { names },
        }
    })?;
    let files = sources.files();
    if let Some(report) = nothing_to_scan(cx, files) {
        return Ok(report);
    }
    let tests = scan(cx, Which::Tests, &|path, source| test_file(path, source))?;
    let mut findings = Vec::new();
    for (path, source) in sources.found.iter().filter(|(_, source)| source.lines >= least) {
        let name = path.rsplit('/').next().unwrap_or(path);
        if name.starts_with('_') && !name.starts_with("__init__") {
            continue;
        }
        findings.extend(defect(path, source, &tests.found));
    }
    let mut unreadable = sources.unreadable;
    unreadable.extend(tests.unreadable);
    let mut report = answer(files, findings, unreadable, false);
    report.count("test_files", tests.found.len());
    Ok(report)
}

fn defect(path: &str, source: &SourceFile, tests: &[(String, TestFile)]) -> Option<Finding> {
    let mut about: Vec<&TestFile> =
        tests.iter().filter(|(test, file)| is_about(path, test, file)).map(|(_, file)| file).collect();
    if about.iter().all(|file| file.tests.is_empty()) {
        // What a package passes on is tested by its name, through the package.
        about = tests
            .iter()
            .map(|(_, file)| file)
            .filter(|file| !file.words.is_disjoint(&source.names))
            .collect();
    }
    let (mut by_class, mut any) = (BTreeMap::<Class, BTreeSet<&[String]>>::new(), false);
    for file in about {
        any |= !file.tests.is_empty();
        for (classes, asserts) in &file.tests {
            for class in classes {
                by_class.entry(*class).or_default().insert(asserts);
            }
            // Who says what the tests are for is believed as far as there are tests that assert something.
            for class in file.claimed.iter().filter(|_| classes.is_empty() && !asserts.is_empty()) {
                by_class.entry(*class).or_default().insert(asserts);
            }
        }
    }
    if !any {
        let what = format!("{} lines, and no test is about them", source.lines);
        return Some(Finding::at(path, None, "no-tests", &what, None));
    }
    let missing: Vec<&str> =
        CLASSES.iter().filter(|(class, _)| !by_class.contains_key(class)).map(|(_, name)| *name).collect();
    if !missing.is_empty() {
        return Some(Finding::at(
            path,
            None,
            "class",
            &format!("no test of the kind {}", missing.join(", ")),
            None,
        ));
    }
    // One body that was copied is one test.
    let bodies: BTreeSet<&[String]> = by_class.into_values().flatten().collect();
    (bodies.len() < CLASSES.len())
        .then(|| Finding::at(path, None, "class", "its tests of three kinds assert the same things", None))
}

/// Whether tests are about a source file: they stand in it, are called like it, or import it.
fn is_about(path: &str, test: &str, file: &TestFile) -> bool {
    if path == test {
        return true;
    }
    let module = module_name(path);
    let stem = module.rsplit('.').next().unwrap_or(&module);
    if file.stem == stem || file.stem.starts_with(&format!("{stem}_")) {
        return true;
    }
    let same_dir = || path.rsplit_once('/').map(|(dir, _)| dir) == test.rsplit_once('/').map(|(dir, _)| dir);
    match Language::of(path) {
        // Tests of a package are in its directory.
        Some(Language::Go) => same_dir(),
        _ => file.imports.iter().any(|import| imports(import, &module, stem)),
    }
}

fn imports(import: &Import, module: &str, stem: &str) -> bool {
    let last = import.module.rsplit(['.', '/', ':']).find(|part| !part.is_empty()).unwrap_or("index");
    let dotted = import.module.replace("::", ".").replace('/', ".");
    last == stem
        || module.ends_with(dotted.trim_matches('.')) && !dotted.trim_matches('.').is_empty()
        || import.names.iter().any(|name| name == stem)
}

fn test_file(path: &str, source: &peers_code::Source<'_>) -> TestFile {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.split('.').next().unwrap_or(name);
    let stem = stem.strip_prefix("test_").unwrap_or(stem);
    let stem = stem.strip_suffix("_test").or_else(|| stem.strip_suffix("_tests")).unwrap_or(stem);
    let claimed = source.comments().iter().filter_map(|comment| claimed(&comment.text)).flatten().collect();
    let tests = source.tests().0.into_iter();
    TestFile {
        stem: stem.to_owned(),
        imports: source.imports(),
        tests: tests
            .filter(|test| !test.asserts.is_empty())
            .map(|test| (classes(&test), test.asserts))
            .collect(),
        claimed,
        words: identifiers(source.text()),
    }
}

fn identifiers(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| word.len() >= SAYING).map(str::to_owned).collect()
}

/// The classes of a comment `kind: edge, sad`.
fn claimed(comment: &str) -> Option<Vec<Class>> {
    let text = comment.trim_start_matches(['#', '/', '*', ' ']).strip_prefix("kind:")?;
    let words = text.split([',', ' ']).map(str::trim);
    Some(
        words
            .filter_map(|word| CLASSES.iter().find(|(_, name)| *name == word).map(|(class, _)| *class))
            .collect(),
    )
}

/// What a test is about, by the words of its name; a failure only where it asserts one.
fn classes(test: &Test) -> BTreeSet<Class> {
    let words = words(&test.path);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let mut found = BTreeSet::new();
    if has(&EDGE) {
        found.insert(Class::Edge);
    }
    if test.expects_error {
        found.insert(Class::Sad);
    } else if has(&HAPPY) && !has(&SAD) {
        found.insert(Class::Happy);
    } else if found.is_empty() && !has(&SAD) {
        // A test with a name of its own that asserts no failure shows that something works.
        found.insert(Class::Happy);
    }
    found
}

/// The words of an identifier or a title, in lower case and in the singular.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for c in name.chars() {
        let begins = c.is_uppercase() && before.is_lowercase();
        if !c.is_alphanumeric() {
            words.push(String::new());
        } else if begins || words.is_empty() {
            words.push(c.to_lowercase().collect());
        } else if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    for word in &mut words {
        for end in ["ing", "ed", "es", "s"] {
            let known = |stem: &str| [&HAPPY[..], &EDGE, &SAD].iter().any(|list| list.contains(&stem));
            if known(word) {
                break;
            }
            if let Some(stem) = word.strip_suffix(end) {
                let stem = [stem.to_owned(), format!("{stem}e")].into_iter().find(|stem| known(stem));
                if let Some(stem) = stem {
                    *word = stem;
                    break;
                }
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fall_into_whole_words() {
        for (name, due) in [
            ("test_invalid_admin_token", "test invalid admin token"),
            ("TestParsesEmptyInput", "test parse empty input"),
            ("rejects a missing key", "reject a missing key"),
            ("round > fails, rejecting", "round fail reject"),
        ] {
            assert_eq!(words(name).join(" "), due);
        }
    }
}
