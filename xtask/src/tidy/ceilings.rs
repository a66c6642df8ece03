//! How large each crate may be: its product lines, and its files in circles, against what is recorded.
//!
//! The records are `[workspace.metadata.ceilings]` in `Cargo.toml`. Lines of tests are free.

use std::collections::BTreeMap;

use super::circles;
use super::finding::{Finding, Rule, Severity};
use super::source::{Area, SourceFile};
use super::table::{Ring, Row, TABLE};
use crate::workspace::Ceiling;

/// A crate may shrink by this many lines before its ceiling has to follow.
const SLACK: usize = 150;

/// Compares every crate with its ceiling.
pub(crate) fn check(sources: &[SourceFile<'_>], ceilings: &BTreeMap<String, Ceiling>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for row in TABLE.iter().filter(|row| has_product(row)) {
        let files = product(sources, row.name);
        let lines = files.iter().map(|file| lines(file)).sum();
        let circles = circles::of(&files);
        let in_circles = circles.iter().map(BTreeMap::len).sum();
        let Some(ceiling) = ceilings.get(row.name) else {
            let record = format!("{} = {{ lines = {lines}, in-circles = {in_circles} }}", row.name);
            let message =
                format!("no ceiling: add `{record}` to [workspace.metadata.ceilings] of Cargo.toml");
            findings.push(Finding::whole(row.name, Rule::Ceiling, message));
            continue;
        };
        findings.extend(compare(row.name, "product lines", lines, ceiling.lines, SLACK));
        let mut finding = compare(row.name, "files in circles", in_circles, ceiling.in_circles, 0);
        if let Some(found) = finding.as_mut().filter(|found| found.severity == Severity::Violation) {
            let names: Vec<_> = circles.iter().map(|circle| names(circle.keys())).collect();
            found.message = format!("{}: {}", found.message, names.join("; "));
        }
        findings.extend(finding);
    }
    let stale =
        ceilings.keys().filter(|name| !TABLE.iter().any(|row| has_product(row) && row.name == **name));
    findings
        .extend(stale.map(|name| Finding::whole(name, Rule::Ceiling, "a ceiling of no crate; remove it")));
    findings
}

fn names<'a>(files: impl Iterator<Item = &'a &'a str>) -> String {
    files.copied().collect::<Vec<_>>().join(", ")
}

fn compare(name: &str, what: &str, count: usize, ceiling: usize, slack: usize) -> Option<Finding> {
    let now = format!("{count} {what}, the ceiling is {ceiling}");
    if count > ceiling {
        let message = format!(
            "{now}; make room, or raise it in Cargo.toml: a line of the change, which its reviewer sees"
        );
        Some(Finding::whole(name, Rule::Ceiling, message))
    } else if count + slack < ceiling {
        let message = format!("{now}; lower it to {count} in Cargo.toml");
        Some(Finding::whole(name, Rule::Ceiling, message).into_warning())
    } else {
        None
    }
}

/// The other crates for development are tests from end to end.
pub(crate) fn has_product(row: &Row) -> bool {
    matches!(row.ring, Ring::Product(_)) || row.name == "xtask"
}

/// The files of a crate that are no tests.
pub(crate) fn product<'a>(sources: &'a [SourceFile<'a>], name: &str) -> Vec<&'a SourceFile<'a>> {
    let is_test = |part: &str| ["tests", "testing"].contains(&part.trim_end_matches(".rs"));
    let files = sources.iter().filter(|file| {
        file.row.is_some_and(|row| row.name == name)
            && file.area == Area::Product
            && !file.path.split('/').any(is_test)
    });
    files.collect()
}

fn lines(file: &SourceFile<'_>) -> usize {
    let is_code = |line: &&str| !line.is_empty() && !line.starts_with("//");
    let lines = (1..).zip(file.text.lines().map(str::trim)).filter(|(_, line)| is_code(line));
    lines.filter(|(number, _)| !file.facts.tests.iter().any(|tests| tests.contains(number))).count()
}

#[cfg(test)]
mod tests {
    use super::super::{syntax, table};
    use super::*;

    fn sources<'a>(files: &[(&'a str, &'a str)]) -> Vec<SourceFile<'a>> {
        let row = table::row("peers-sys");
        let source = |(path, text): &(&'a str, &'a str)| SourceFile {
            path,
            text,
            row,
            area: Area::Product,
            facts: syntax::read(text),
        };
        files.iter().map(source).collect()
    }

    /// What is said of `peers-sys` where all other crates are as they should be.
    fn judged(files: &[(&str, &str)], lines: usize, in_circles: usize) -> Vec<String> {
        let empty = Ceiling { lines: 0, in_circles: 0 };
        let mut ceilings: BTreeMap<_, _> =
            TABLE.iter().filter(|row| has_product(row)).map(|row| (row.name.to_owned(), empty)).collect();
        ceilings.insert("peers-sys".to_owned(), Ceiling { lines, in_circles });
        check(&sources(files), &ceilings).iter().map(ToString::to_string).collect()
    }

    const FILE: (&str, &str) = (
        "src/a.rs",
        "//! A.\n\nfn a() {\n    // Why.\n    b()\n}\n\n#[cfg(test)]\nmod tests {\n    fn c() {}\n}\n",
    );

    #[test]
    fn lines_are_neither_blank_nor_comments_nor_tests() {
        assert_eq!(judged(&[FILE], 3, 0), Vec::<String>::new());
        let tests = [("src/tests/b.rs", "fn b() {}"), ("src/testing.rs", "fn b() {}")];
        assert_eq!(judged(&[FILE, tests[0], tests[1]], 3, 0), Vec::<String>::new());
    }

    #[test]
    fn above_its_ceiling_a_crate_fails_and_far_below_it_the_ceiling_follows() {
        let above = judged(&[FILE], 2, 0);
        assert!(
            above[0].starts_with("peers-sys: [ceiling] 3 product lines, the ceiling is 2; "),
            "{above:?}"
        );
        assert_eq!(judged(&[FILE], 3 + SLACK, 0), Vec::<String>::new());
        assert_eq!(
            judged(&[FILE], 4 + SLACK, 0),
            [
                "warning: peers-sys: [ceiling] 3 product lines, the ceiling is 154; lower it to 3 in Cargo.toml"
            ]
        );
    }

    #[test]
    fn files_in_circles_are_named_and_one_less_is_worth_a_look() {
        let files = [
            ("src/lib.rs", "mod a; mod b;"),
            ("src/a.rs", "use crate::b::B; struct A;"),
            ("src/b.rs", "use crate::a::A; struct B;"),
        ];
        let above = judged(&files, 100, 1);
        assert!(
            above[0].starts_with("peers-sys: [ceiling] 2 files in circles, the ceiling is 1; "),
            "{above:?}"
        );
        assert!(above[0].ends_with(": src/a.rs, src/b.rs"), "{above:?}");
        assert_eq!(judged(&files, 100, 2), Vec::<String>::new());
        assert!(judged(&files, 100, 3)[0].ends_with("lower it to 2 in Cargo.toml"));
    }

    #[test]
    fn every_crate_of_the_product_has_a_ceiling_and_nothing_else() {
        let none = check(&sources(&[FILE]), &BTreeMap::new());
        assert_eq!(none.len(), TABLE.iter().filter(|row| has_product(row)).count());
        assert!(
            none.iter().any(|found| found.message.contains("`peers-sys = { lines = 3, in-circles = 0 }`"))
        );
        let ceilings = BTreeMap::from([("peers-sim".to_owned(), Ceiling { lines: 1, in_circles: 0 })]);
        assert_eq!(check(&[], &ceilings).len(), none.len() + 1);
    }
}
