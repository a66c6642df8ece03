//! What the reports of test runners say of each test.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// What became of a test. Of two answers for one name the larger counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Answer {
    Passed,
    Skipped,
    Failed,
}

/// Tests by name.
pub(crate) type Tests = BTreeMap<String, Answer>;

/// The name of a test without what it stands in, and without the parameters of one run of it.
pub(crate) fn leaf(test: &str) -> &str {
    let test = test.rsplit_once(" > ").map_or(test, |(_, name)| name);
    let test = test.rsplit_once("::").map_or(test, |(_, name)| name);
    test.split_once('[').map_or(test, |(name, _)| name).trim_end()
}

/// A path below the top of the checkout, from there.
fn below<'p>(path: &'p str, top: &str) -> Option<&'p str> {
    path.strip_prefix(top)?.strip_prefix('/')
}

/// Adds a test. Of two answers for one name the worse one stays.
pub(super) fn add(tests: &mut Tests, name: String, answer: Answer) {
    tests.entry(name).and_modify(|known| *known = (*known).max(answer)).or_insert(answer);
}

/// `JUnit` XML: `pytest`, `node --test`, and what the operator's own command writes.
///
/// # Errors
/// Why it is no such report.
pub(crate) fn junit(bytes: &[u8], top: &str) -> Result<Tests, String> {
    let text = str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    let tree = roxmltree::Document::parse(text).map_err(|error| error.to_string())?;
    if !matches!(tree.root_element().tag_name().name(), "testsuites" | "testsuite") {
        return Err("it is no JUnit XML".to_owned());
    }
    let mut tests = Tests::new();
    for case in tree.descendants().filter(|node| node.has_tag_name("testcase")) {
        let name = case.attribute("name").unwrap_or_default();
        // Node's runner gives the name of the file to one that ended before a test in it told anything.
        if let Some(file) = below(name, top) {
            return Err(format!("`{file}` told of no test"));
        }
        // Node's runner says `test` for every class, and nests suites instead.
        let class = case.attribute("classname").filter(|class| !class.is_empty() && *class != "test");
        let above = if let Some(class) = class {
            class.to_owned()
        } else {
            let suites = case.ancestors().filter(|node| node.has_tag_name("testsuite"));
            let mut names: Vec<&str> = suites.filter_map(|suite| suite.attribute("name")).collect();
            names.reverse();
            names.join(" > ")
        };
        let has = |tag: &str| case.children().any(|child| child.has_tag_name(tag));
        // One that is to be written yet may fail.
        let mut skips = case.children().filter(|child| child.has_tag_name("skipped"));
        let mut todo = || skips.any(|skip| skip.attribute("type") == Some("todo"));
        let answer = if (has("failure") || has("error")) && !todo() {
            Answer::Failed
        } else if has("skipped") {
            Answer::Skipped
        } else {
            Answer::Passed
        };
        let name = if above.is_empty() { name.to_owned() } else { format!("{above}::{name}") };
        add(&mut tests, name, answer);
    }
    Ok(tests)
}

/// The JSON of jest, which vitest writes too.
///
/// # Errors
/// Why it is no such report.
pub(crate) fn jest(bytes: &[u8], top: &str) -> Result<Tests, String> {
    let whole: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let files = whole.get("testResults").and_then(Value::as_array).ok_or("it has no `testResults`")?;
    let mut tests = Tests::new();
    for file in files {
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let path = text(file, "name").unwrap_or_default();
        let path = below(&path, top).unwrap_or(&path).to_owned();
        let cases = file.get("assertionResults").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if cases.is_empty() && text(file, "status").as_deref() == Some("failed") {
            add(&mut tests, path.clone(), Answer::Failed);
        }
        for case in cases {
            let answer = match text(case, "status").as_deref() {
                Some("passed") => Answer::Passed,
                Some("pending" | "todo" | "skipped" | "disabled") => Answer::Skipped,
                _ => Answer::Failed,
            };
            let above = case.get("ancestorTitles").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let mut names: Vec<&str> = above.iter().filter_map(Value::as_str).collect();
            let title = text(case, "title").unwrap_or_default();
            names.push(&title);
            add(&mut tests, format!("{path}::{}", names.join(" > ")), answer);
        }
    }
    Ok(tests)
}

/// The JSON of mocha.
///
/// # Errors
/// Why it is no such report.
pub(crate) fn mocha(bytes: &[u8], top: &str) -> Result<Tests, String> {
    let whole: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let mut tests = Tests::new();
    for (key, answer) in
        [("passes", Answer::Passed), ("pending", Answer::Skipped), ("failures", Answer::Failed)]
    {
        let cases = whole.get(key).and_then(Value::as_array).ok_or_else(|| format!("it has no `{key}`"))?;
        for case in cases {
            let text = |key: &str| case.get(key).and_then(Value::as_str).unwrap_or_default();
            let path = below(text("file"), top).unwrap_or_else(|| text("file"));
            let title = text("title");
            let above = text("fullTitle").strip_suffix(title).unwrap_or_default().trim_end();
            let between = if above.is_empty() { "" } else { " > " };
            add(&mut tests, format!("{path}::{above}{between}{title}"), answer);
        }
    }
    Ok(tests)
}

/// What `cargo test` prints, standard error among it: the names of targets stand there. The exit code is not read from it.
///
/// # Errors
/// A target that began and told no result: a test ended the whole process.
pub(crate) fn libtest(bytes: &[u8]) -> Result<Tests, String> {
    let text = String::from_utf8_lossy(bytes);
    let mut tests = Tests::new();
    let mut target = String::new();
    let (mut begun, mut ended) = (0_usize, 0_usize);
    for line in text.lines() {
        let trimmed = line.trim_start();
        if let Some(file) = trimmed.strip_prefix("Running ").and_then(|rest| rest.rsplit_once('/')) {
            let name = file.1.trim_end_matches(')');
            name.rsplit_once('-').map_or(name, |(name, _hash)| name).clone_into(&mut target);
        } else if let Some(name) = trimmed.strip_prefix("Doc-tests ") {
            target = format!("{name} doc");
        } else if line.starts_with("running ") && line.trim_end().ends_with([' ', 's', 't']) {
            begun += usize::from(line.split(' ').nth(1).is_some_and(|n| n.parse::<u32>().is_ok()));
        } else if line.starts_with("test result: ") {
            ended += 1;
        } else if let Some((name, word)) =
            line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... "))
        {
            let answer = match word.split([',', ' ']).next() {
                Some("ok") => Answer::Passed,
                Some("FAILED") => Answer::Failed,
                Some("ignored") => Answer::Skipped,
                _ => continue,
            };
            let name = name.strip_suffix(" - should panic").unwrap_or(name);
            add(&mut tests, format!("{target}::{name}"), answer);
        }
    }
    match (begun, ended) {
        (0, _) => Err("no test binary ran".to_owned()),
        _ if begun != ended => Err(format!("{begun} test binaries began, {ended} told a result")),
        _ => Ok(tests),
    }
}

/// The events of `go test -json`.
///
/// # Errors
/// No event among it.
pub(crate) fn go(bytes: &[u8]) -> Result<Tests, String> {
    let mut tests = Tests::new();
    let mut events = 0_usize;
    // Packages that passed, and those of which a test was told, or said to be missing.
    let (mut passed, mut told) = (BTreeSet::new(), BTreeSet::new());
    for line in bytes.split(|byte| *byte == b'\n') {
        let Ok(event) = serde_json::from_slice::<Value>(line) else {
            // Before Go 1.24 a package that does not build is no event.
            let failed = str::from_utf8(line).ok().and_then(|line| line.strip_prefix("FAIL\t"));
            if let Some((package, _)) = failed.and_then(|rest| rest.split_once(" [")) {
                add(&mut tests, package.to_owned(), Answer::Failed);
            }
            continue;
        };
        events += 1;
        let text = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default();
        let package = text("Package").to_owned();
        if text("Action") == "run" || text("Output").contains("[no tests to run]") {
            told.insert(package.clone());
        }
        let answer = match text("Action") {
            "pass" => Answer::Passed,
            "skip" => Answer::Skipped,
            "fail" | "build-fail" => Answer::Failed,
            _ => continue,
        };
        match text("Test") {
            // A package without a test is skipped as a whole; one that does not build fails as a whole.
            "" if answer == Answer::Failed => {
                let package = if package.is_empty() { text("ImportPath").to_owned() } else { package };
                add(&mut tests, package, answer);
            }
            "" if answer == Answer::Passed => drop(passed.insert(package)),
            "" => {}
            name => add(&mut tests, format!("{package}::{name}"), answer),
        }
    }
    // Its `TestMain` ended it before the first test.
    for silent in passed.difference(&told) {
        add(&mut tests, silent.clone(), Answer::Failed);
    }
    if events > 0 { Ok(tests) } else { Err("there is no event in it".to_owned()) }
}

/// What the tests and packages that failed said, line by line, in the events of `go test -json`.
pub(super) fn go_said(bytes: &[u8], tests: &Tests) -> Vec<String> {
    let said = |line: &[u8]| {
        let event: Value = serde_json::from_slice(line).ok()?;
        let text = |key: &str| event.get(key).and_then(Value::as_str);
        let output = text("Output").filter(|output| !output.starts_with("=== "))?;
        let package = text("Package").or_else(|| text("ImportPath")).unwrap_or_default();
        let name = text("Test").map_or_else(|| package.to_owned(), |test| format!("{package}::{test}"));
        (tests.get(&name) == Some(&Answer::Failed)).then(|| output.trim_end().to_owned())
    };
    bytes.split(|byte| *byte == b'\n').filter_map(said).filter(|line| !line.is_empty()).collect()
}
