//! `three-class`: what a source file does is tested where it works, at its edges, and where it fails (`modes.md` §3.1).

mod delta;

use std::collections::{BTreeMap, BTreeSet};

use peers_code::{Import, Language, Test, is_test, module_name};
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

/// Words of code that can fail.
fn fails_by(language: Language) -> &'static [&'static str] {
    match language {
        Language::Python => &["raise"],
        Language::JavaScript => &["throw", "reject", "Error"],
        Language::Rust => &["Err", "Error", "panic", "bail", "todo", "unimplemented"],
        Language::Go => &["error", "errors", "Errorf", "panic"],
    }
}

/// Values at an end of what there is, in any of the languages.
const ENDS: [&str; 10] = [
    "MAX",
    "MIN",
    "maxsize",
    "MAX_SAFE_INTEGER",
    "MIN_SAFE_INTEGER",
    "Infinity",
    "NaN",
    "inf",
    "nan",
    "MAX_VALUE",
];

/// A source file as far as it matters here.
struct SourceFile {
    /// Its lines, without those of tests in it.
    lines: usize,
    /// The names of what others can use of it, and of what it takes of its own package; without any all that it names.
    names: BTreeSet<String>,
    /// Something in it can fail.
    fails: bool,
}

/// A test file, or the tests in a source.
struct TestFile {
    /// The stem of its name, without what makes it a test.
    stem: String,
    imports: Vec<Import>,
    tests: Vec<Tested>,
    /// Functions of it that are no tests and assert that something fails, or give the failure back.
    helpers: BTreeSet<String>,
    /// Classes that a comment claims: `kind: edge, sad`.
    claimed: BTreeSet<Class>,
    /// All words of it.
    words: BTreeSet<String>,
}

/// A test as far as it matters here.
struct Tested {
    classes: BTreeSet<Class>,
    asserts: Vec<String>,
    words: BTreeSet<String>,
}

impl Tested {
    /// A test that calls a helper by which something fails asserts that, wherever the helper stands.
    fn with(&mut self, helpers: &BTreeSet<String>) {
        if let Some(helper) = self.words.intersection(helpers).next() {
            self.classes.remove(&Class::Happy);
            self.classes.insert(Class::Sad);
            self.asserts.push(helper.clone());
        }
    }
}

fn judge(cx: &CheckCx, least: usize) -> Result<Report, CouldNot> {
    let sources = scan(cx, Which::Sources, &|_, source| source_file(source))?;
    let files = sources.files();
    if let Some(report) = nothing_to_scan(cx, files) {
        return Ok(report);
    }
    let mut tests = scan(cx, Which::Tests, &|path, source| test_file(path, source))?;
    let helpers: BTreeSet<String> = tests.found.iter().flat_map(|(_, file)| file.helpers.clone()).collect();
    for (_, file) in &mut tests.found {
        file.tests.iter_mut().for_each(|test| test.with(&helpers));
        file.tests.retain(|test| !test.asserts.is_empty());
    }
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

fn source_file(source: &peers_code::Source<'_>) -> SourceFile {
    let symbols = source.symbols();
    let mut names: BTreeSet<String> = symbols
        .iter()
        .filter(|symbol| symbol.public)
        .flat_map(|symbol| symbol.path.split('.').map(str::to_owned))
        .collect();
    // `impl Display for Version` is tested as something of `Version`.
    let own = |import: &Import| ["crate", "super", "."].iter().any(|own| import.module.starts_with(own));
    names.extend(source.imports().into_iter().filter(own).flat_map(|import| import.names));
    names.retain(|name| name.len() >= SAYING && !name.starts_with('_'));
    // Neither tests that stand in it nor comments are what has to be tested: where these begin and end.
    let mut turns: BTreeMap<usize, i64> = BTreeMap::new();
    let tests = source.tests().0.into_iter().map(|test| (test.line, test.end));
    let comments = source.comments().into_iter().filter(|comment| comment.alone);
    for (line, end) in tests.chain(comments.map(|comment| (comment.line, comment.end))) {
        *turns.entry(line).or_default() += 1;
        *turns.entry(end + 1).or_default() -= 1;
    }
    let mut within = 0;
    let mut code = Vec::new();
    for (line, at) in source.text().lines().zip(1..) {
        within += turns.get(&at).copied().unwrap_or_default();
        if within == 0 {
            code.push(line);
        }
    }
    let fails = fails_by(source.language());
    SourceFile {
        lines: code.len(),
        names: if names.is_empty() { identifiers(source.text()) } else { names },
        fails: code.iter().any(|line| parts(line).any(|word| fails.contains(&word))),
    }
}

fn defect(path: &str, source: &SourceFile, tests: &[(String, TestFile)]) -> Option<Finding> {
    let direct: Vec<&TestFile> =
        tests.iter().filter(|(test, file)| is_about(path, test, file)).map(|(_, file)| file).collect();
    let found = lacking(path, source, &direct)?;
    // What a package passes on is tested by its name, through the package, or through a file such as `tests/util.rs`.
    let mut sought = source.names.clone();
    for (test, file) in tests.iter().filter(|(test, file)| is_test(test) && file.tests.is_empty()) {
        if !file.words.is_disjoint(&source.names) {
            sought.extend(module_name(test).rsplit('.').next().map(str::to_owned));
        }
    }
    let named = tests.iter().map(|(_, file)| file).filter(|file| !file.words.is_disjoint(&sought));
    let wider: Vec<&TestFile> = direct.iter().copied().chain(named).collect();
    if wider.len() == direct.len() { Some(found) } else { lacking(path, source, &wider) }
}

/// What these tests leave open of a source file.
fn lacking(path: &str, source: &SourceFile, about: &[&TestFile]) -> Option<Finding> {
    let (mut by_class, mut any) = (BTreeMap::<Class, BTreeSet<&[String]>>::new(), false);
    for file in about {
        any |= !file.tests.is_empty();
        for Tested { classes, asserts, .. } in &file.tests {
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
    // What cannot fail needs no test of a failure.
    let due: Vec<&(Class, &str)> =
        CLASSES.iter().filter(|(class, _)| *class != Class::Sad || source.fails).collect();
    let missing: Vec<&str> =
        due.iter().filter(|(class, _)| !by_class.contains_key(class)).map(|(_, name)| *name).collect();
    if !missing.is_empty() {
        let what = format!("no test of the kind {}", missing.join(", "));
        return Some(Finding::at(path, None, "class", &what, None));
    }
    // One body that was copied is one test.
    let bodies: BTreeSet<&[String]> = by_class.into_values().flatten().collect();
    (bodies.len() < due.len())
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
    let text = |test: &Test| source.text().get(test.body.clone()).unwrap_or_default();
    let tests = source.tests().0.into_iter().map(|test| Tested {
        classes: classes(&test, text(&test)),
        words: identifiers(text(&test)),
        asserts: test.asserts,
    });
    TestFile {
        stem: stem.to_owned(),
        imports: source.imports(),
        tests: tests.collect(),
        helpers: source.helpers().into_iter().collect(),
        claimed,
        words: identifiers(source.text()),
    }
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
}

fn identifiers(text: &str) -> BTreeSet<String> {
    parts(text).filter(|word| word.len() >= SAYING).map(str::to_owned).collect()
}

/// Whether a test tries what stands at an end: nothing, the largest, the smallest, what is in no alphabet.
fn tries_an_end(body: &str) -> bool {
    const NOTHING: [&str; 15] = [
        "(\"\")",
        "(\"\",",
        ", \"\")",
        "('')",
        "('',",
        ", '')",
        "(``)",
        "([])",
        "([],",
        ", [])",
        "({})",
        "({},",
        "String::new()",
        "Vec::new()",
        "vec![]",
    ];
    NOTHING.iter().any(|text| body.contains(*text))
        || parts(body)
            .any(|word| ENDS.contains(&word) || word.starts_with("MaxInt") || word.starts_with("MinInt"))
        || body.contains(".repeat(")
        || !body.is_ascii()
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

/// What a test is about, by the words of its name and the values that it tries; a failure only where it asserts one.
fn classes(test: &Test, body: &str) -> BTreeSet<Class> {
    let words = words(&test.path);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let mut found = BTreeSet::new();
    if has(&EDGE) || tries_an_end(body) {
        found.insert(Class::Edge);
    }
    if test.expects_error {
        found.insert(Class::Sad);
    } else if has(&HAPPY) && !has(&SAD) {
        found.insert(Class::Happy);
    } else if !has(&EDGE) && !has(&SAD) {
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
