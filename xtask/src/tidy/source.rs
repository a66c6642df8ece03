//! The rules for one Rust file.

use syn::{Attribute, Meta};

use super::finding::{Finding, Rule};
use super::syntax::{self, Facts, MacroCall, PathUse};
use super::table::{Permit, Row};

/// A file is worth a look above this many lines without its tests.
pub(crate) const LONG: usize = 500;
/// A file must be split above this many lines without its tests.
pub(crate) const TOO_LONG: usize = 800;

/// A file with what the rules need to know of it.
pub(crate) struct SourceFile<'a> {
    /// Relative to the root.
    pub(crate) path: &'a str,
    pub(crate) text: &'a str,
    /// The crate it belongs to, if that has a row in the table.
    pub(crate) row: Option<&'static Row>,
    pub(crate) area: Area,
    pub(crate) facts: Facts,
}

/// What a file is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Area {
    /// Compiled into the product.
    Product,
    /// Compiled for tests, benchmarks or by the build only.
    Test,
}

/// A part of std and the permit that it takes.
struct Ban {
    segments: &'static [&'static str],
    anchor: Anchor,
    permit: Permit,
    instead: &'static str,
}

/// Where the segments must stand in a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Anchor {
    /// At its beginning.
    Start,
    /// Anywhere, for names that are usually imported.
    Anywhere,
}

/// In this order; a path is reported once.
const BANS: &[Ban] = &[
    Ban {
        segments: &["std", "fs"],
        anchor: Anchor::Start,
        permit: Permit::Files,
        instead: "use the checked files of peers-sys",
    },
    Ban {
        segments: &["SystemTime", "now"],
        anchor: Anchor::Anywhere,
        permit: Permit::WallClock,
        instead: "take the time from the caller or the clock of peers-sys",
    },
    Ban {
        segments: &["Timestamp", "now"],
        anchor: Anchor::Anywhere,
        permit: Permit::WallClock,
        instead: "take the time from the caller or the clock of peers-sys",
    },
    Ban {
        segments: &["Zoned", "now"],
        anchor: Anchor::Anywhere,
        permit: Permit::WallClock,
        instead: "take the time from the caller or the clock of peers-sys",
    },
    Ban {
        segments: &["process", "Command"],
        anchor: Anchor::Anywhere,
        permit: Permit::Spawn,
        instead: "this crate starts no process",
    },
    Ban {
        segments: &["Instant", "now"],
        anchor: Anchor::Anywhere,
        permit: Permit::Ambient,
        instead: "time comes in with the event",
    },
    Ban {
        segments: &["std", "process"],
        anchor: Anchor::Start,
        permit: Permit::Ambient,
        instead: "this crate is pure",
    },
    Ban {
        segments: &["std", "env"],
        anchor: Anchor::Start,
        permit: Permit::Ambient,
        instead: "this crate is pure",
    },
    Ban {
        segments: &["std", "net"],
        anchor: Anchor::Start,
        permit: Permit::Ambient,
        instead: "this crate is pure",
    },
    Ban {
        segments: &["std", "thread"],
        anchor: Anchor::Start,
        permit: Permit::Ambient,
        instead: "this crate is pure",
    },
    Ban {
        segments: &["std", "*"],
        anchor: Anchor::Start,
        permit: Permit::Files,
        instead: "import what is needed by name",
    },
];

const PRINTING: &[&str] = &["print", "println", "eprint", "eprintln", "dbg"];
const UNFINISHED: &[&str] = &["todo", "unimplemented"];
/// Joined at compile time, so that this file does not hold them.
const MARKERS: [&str; 2] = [concat!("FIX", "ME"), concat!("XX", "X")];

/// Checks one file against every rule for sources.
pub(crate) fn check(file: &SourceFile<'_>) -> Vec<Finding> {
    if let Some((line, error)) = &file.facts.broken {
        let message = format!("this does not read as Rust: {error}");
        return vec![Finding::at(file.path, *line, Rule::Syntax, message)];
    }
    let mut findings = Vec::new();
    findings.extend(module_docs(file));
    findings.extend(length(file));
    findings.extend(unfinished(file));
    findings.extend(file.facts.attributes.iter().filter_map(|found| attribute(file.path, found)));
    if let (Some(row), Area::Product) = (file.row, file.area) {
        findings.extend(banned_paths(file, row));
        findings.extend(printing(file, row));
    }
    findings
}

fn module_docs(file: &SourceFile<'_>) -> Option<Finding> {
    (!file.text.starts_with("//!")).then(|| {
        Finding::at(
            file.path,
            1,
            Rule::ModuleDocs,
            "the first line must be a `//!` that says what this is for",
        )
    })
}

fn length(file: &SourceFile<'_>) -> Option<Finding> {
    let tests: usize = file.facts.tests.iter().map(|lines| lines.clone().count()).sum();
    let lines = file.text.lines().count().saturating_sub(tests);
    let message = format!("{lines} lines without tests; split by concept (above {TOO_LONG} tidy fails)");
    let finding = Finding::whole(file.path, Rule::Length, message);
    if lines <= LONG {
        None
    } else if lines <= TOO_LONG {
        Some(finding.into_warning())
    } else {
        Some(finding)
    }
}

/// Markers stand in comments, which are no part of the syntax: they are looked for in the text.
fn unfinished(file: &SourceFile<'_>) -> Vec<Finding> {
    let calls = file.facts.macros.iter().filter(|call| UNFINISHED.contains(&call.name.as_str()));
    let calls = calls.map(|call| (call.line, format!("`{}!` is not finished", call.name)));
    let markers = (1..).zip(file.text.lines()).flat_map(|(line, text)| {
        let words: Vec<_> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        let found = MARKERS.into_iter().filter(move |marker| words.contains(marker));
        found.map(move |marker| (line, format!("`{marker}`: finish it or file it")))
    });
    let found = calls.chain(markers);
    found.map(|(line, message)| Finding::at(file.path, line, Rule::Marker, message)).collect()
}

fn attribute(path: &str, attribute: &Attribute) -> Option<Finding> {
    let line = attribute.pound_token.span.start().line;
    Some(Finding::at(path, line, Rule::Attribute, complaint(&attribute.meta)?))
}

fn complaint(meta: &Meta) -> Option<&'static str> {
    let path = meta.path();
    match meta {
        Meta::List(list) if path.is_ident("cfg_attr") => {
            syntax::parts(list).iter().skip(1).find_map(complaint)
        }
        Meta::List(_) if path.is_ident("allow") => {
            Some("`allow` hides; use `expect` with a reason, or do what the lint says")
        }
        Meta::List(list) if path.is_ident("expect") => {
            let reason = syntax::parts(list).iter().any(|part| part.path().is_ident("reason"));
            (!reason).then_some("`expect` without `reason = \"...\"`")
        }
        Meta::Path(_) | Meta::List(_) if path.is_ident("ignore") => {
            Some("`ignore` without a reason: write `#[ignore = \"...\"]`, or fix or delete the test")
        }
        Meta::Path(_) | Meta::List(_) | Meta::NameValue(_) => None,
    }
}

fn banned_paths(file: &SourceFile<'_>, row: &Row) -> Vec<Finding> {
    let denied: Vec<_> = BANS.iter().filter(|ban| !row.may.contains(&ban.permit)).collect();
    let paths = file.facts.modules.iter().flat_map(|module| &module.paths);
    paths
        .filter_map(|path| {
            let ban = denied.iter().find(|ban| matches(ban, path))?;
            let message = format!("`{}` in {}: {}", path.segments.join("::"), row.name, ban.instead);
            Some(Finding::at(file.path, path.line, Rule::StdPath, message))
        })
        .collect()
}

fn matches(ban: &Ban, path: &PathUse) -> bool {
    let same = |window: &[String]| window.iter().zip(ban.segments).all(|(have, want)| have == want);
    let mut windows = path.segments.windows(ban.segments.len());
    match ban.anchor {
        Anchor::Start => windows.next().is_some_and(same),
        Anchor::Anywhere => windows.any(same),
    }
}

fn printing(file: &SourceFile<'_>, row: &Row) -> Vec<Finding> {
    if row.may.contains(&Permit::Print) {
        return Vec::new();
    }
    let prints = |call: &&MacroCall| !call.in_test && PRINTING.contains(&call.name.as_str());
    let found = file.facts.macros.iter().filter(prints).map(|MacroCall { name, line, .. }| {
        let message = format!("`{name}!` in {}: return data, or emit a notice; the command prints", row.name);
        Finding::at(file.path, *line, Rule::Print, message)
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::super::table;
    use super::*;

    fn judged_as(krate: &str, area: Area, text: &str) -> Vec<String> {
        let row = Some(table::row(krate).unwrap());
        let file = SourceFile { path: "x.rs", text, row, area, facts: syntax::read(text) };
        check(&file).iter().map(ToString::to_string).collect()
    }

    fn judged(krate: &str, text: &str) -> Vec<String> {
        judged_as(krate, Area::Product, &format!("//! X.\n{text}"))
    }

    fn count(krate: &str, text: &str) -> usize {
        judged(krate, text).len()
    }

    #[test]
    fn a_pure_crate_touches_no_part_of_the_world() {
        for code in [
            "use std::fs;",
            "use std::{collections::BTreeMap, env};",
            "fn f() { std::process::exit(1) }",
            "use std::net::TcpStream;",
            "fn f() { ::std::thread::yield_now() }",
            "fn f() { SystemTime::now(); }",
            "fn f() { std::time::Instant::now(); }",
            "fn f() { jiff::Timestamp::now(); }",
            "use std::*;",
        ] {
            for krate in ["peers-model", "peers-core", "peers-tools"] {
                let findings = judged(krate, code);
                assert_eq!(findings.len(), 1, "{krate}: {code}: {findings:?}");
                assert!(findings[0].starts_with("x.rs:2: [std-path] "), "{findings:?}");
            }
        }
    }

    #[test]
    fn files_are_for_their_two_owners_and_the_fake() {
        let code = "fn f() { std::fs::read(p); }";
        for (krate, expected) in [
            ("peers-store", 1),
            ("peers-run", 1),
            ("peers-cli", 1),
            ("peers-sys", 0),
            ("peers-git", 0),
            ("peers-fake", 0),
        ] {
            assert_eq!(count(krate, code), expected, "{krate}");
        }
    }

    #[test]
    fn comments_strings_and_tests_are_not_code() {
        let code = "// std::fs\n/* std::env */ const A: &str = \"std::fs::read println!()\";\n\
                    #[cfg(test)]\nmod tests { use std::fs; fn f() { println!(); } }";
        assert_eq!(judged("peers-core", code), Vec::<String>::new());
    }

    #[test]
    fn code_behind_the_tests_module_is_still_code() {
        let code = "#[cfg(test)]\nmod tests { fn f() { let s = '}'; } }\nuse std::fs;";
        assert_eq!(count("peers-core", code), 1);
    }

    #[test]
    fn files_of_the_test_area_may_touch_the_world() {
        let text = "//! X.\nuse std::fs;\nfn f() { println!(); }";
        assert_eq!(judged_as("peers-core", Area::Test, text), Vec::<String>::new());
    }

    #[test]
    fn starting_a_process_takes_a_permit() {
        let code = "use std::process::{Command, Stdio};";
        assert_eq!(
            (count("peers-store", code), count("peers-view", code), count("peers-sys", code)),
            (1, 1, 0)
        );
        assert_eq!(count("peers-store", "fn f() { std::process::id(); clap::Command::new(x); }"), 0);
    }

    #[test]
    fn printing_is_for_the_command_and_the_fake() {
        for name in PRINTING {
            let code = format!("fn f() {{ {name}!(\"x\"); }}");
            assert_eq!(
                (count("peers-run", &code), count("peers-cli", &code), count("peers-fake", &code)),
                (1, 0, 0)
            );
        }
    }

    #[test]
    fn unfinished_code_and_markers_are_found_even_in_tests() {
        assert_eq!(count("peers-cli", "#[cfg(test)]\nmod tests { fn f() { todo!() } }"), 1);
        assert_eq!(count("peers-cli", "fn f() { unimplemented!(\"later\") }"), 1);
        let [first, second] = MARKERS;
        let text = format!("/* a\n {first}: b */\n// {second}\n// mktemp x.XXXXXX is not one");
        let findings = judged("peers-cli", &text);
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[0].starts_with("x.rs:3:"), "{findings:?}");
    }

    #[test]
    fn lints_are_expected_with_a_reason_and_never_allowed() {
        for bad in [
            "#[allow(dead_code)] fn f() {}",
            "#![allow(dead_code)]",
            "#[cfg_attr(test, allow(dead_code))] fn f() {}",
            "#[expect(dead_code)] fn f() {}",
        ] {
            assert_eq!(count("peers-cli", bad), 1, "{bad}");
        }
        assert_eq!(
            count("peers-cli", "#[expect(dead_code, reason = \"read by a later version\")] fn f() {}"),
            0
        );
    }

    #[test]
    fn an_ignored_test_says_why() {
        assert_eq!(count("peers-cli", "#[test] #[ignore] fn f() {}"), 1);
        assert_eq!(count("peers-cli", "#[cfg_attr(miri, ignore)] fn f() {}"), 1);
        assert_eq!(count("peers-cli", "#[test] #[ignore = \"needs a terminal\"] fn f() {}"), 0);
        assert_eq!(count("peers-cli", "#[serde(ignore)] struct S;"), 0);
    }

    #[test]
    fn macros_hide_nothing() {
        for code in
            ["assert!(std::fs::exists(p))", "format!(\"{}\", std::env::var::<S>(x))", "m! { use std::fs; }"]
        {
            assert_eq!(count("peers-core", &format!("fn f() {{ {code}; }}")), 1, "{code}");
        }
        assert_eq!(count("peers-run", "fn f() { m!(println!()) }"), 1);
        assert_eq!(count("peers-cli", "m! { #[allow(dead_code)] fn f() {} }"), 1);
    }

    #[test]
    fn a_file_that_is_not_rust_is_one_violation_at_its_line() {
        let findings = judged("peers-core", "use std;\nfn f( {}\n");
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].starts_with("x.rs:3: [syntax] this does not read as Rust: "), "{findings:?}");
    }

    #[test]
    fn a_file_starts_with_its_documentation() {
        for text in ["use x;\nmod m {\n//! X.\n}", "// X.\n", "\n//! X.", ""] {
            let findings = judged_as("peers-cli", Area::Product, text);
            assert_eq!(findings.len(), 1, "{text:?}");
            assert!(findings[0].contains("[module-docs]"), "{findings:?}");
        }
    }

    #[test]
    fn length_counts_code_and_not_the_tests_module() {
        let of = |lines: usize| "// x\n".repeat(lines - 1);
        assert_eq!(judged("peers-cli", &of(LONG)), Vec::<String>::new());
        assert!(judged("peers-cli", &of(LONG + 1))[0].starts_with("warning: x.rs: [length] 501 "));
        assert!(judged("peers-cli", &of(TOO_LONG))[0].starts_with("warning: "));
        assert!(judged("peers-cli", &of(TOO_LONG + 1))[0].starts_with("x.rs: [length] 801 "));
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", of(TOO_LONG));
        assert_eq!(judged("peers-cli", &tests), Vec::<String>::new());
    }
}
