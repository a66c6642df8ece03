//! The rules for one Rust file.

use super::finding::{Finding, Rule};
use super::lexer::{Comment, Kind, Lexed, Token};
use super::syntax::{self, Attribute, PathUse, Product};
use super::table::{Permit, Row};

/// A file is worth a look above this many lines without its tests.
pub(crate) const LONG: usize = 500;
/// A file must be split above this many lines without its tests.
pub(crate) const TOO_LONG: usize = 800;

/// A file with what the rules need to know of it.
#[derive(Debug)]
pub(crate) struct SourceFile<'a> {
    /// Relative to the root.
    pub(crate) path: &'a str,
    pub(crate) text: &'a str,
    /// The crate it belongs to, if that has a row in the table.
    pub(crate) row: Option<&'static Row>,
    pub(crate) area: Area,
    pub(crate) lexed: Lexed,
    /// The file without its test-only items.
    pub(crate) product: Product,
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
const MARKERS: &[&str] = &["FIXME", "XXX"];

/// Checks one file against every rule for sources.
pub(crate) fn check(file: &SourceFile<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(module_docs(file));
    findings.extend(length(file));
    findings.extend(unfinished(file));
    findings.extend(
        syntax::attributes(&file.lexed.tokens).iter().filter_map(|found| attribute(file.path, found)),
    );
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
    let lines = file.text.lines().count().saturating_sub(file.product.test_lines);
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

fn unfinished(file: &SourceFile<'_>) -> Vec<Finding> {
    let calls = syntax::macros(&file.lexed.tokens)
        .filter(|(name, _)| UNFINISHED.contains(name))
        .map(|(name, line)| Finding::at(file.path, line, Rule::Marker, format!("`{name}!` is not finished")));
    let markers = file.lexed.comments.iter().flat_map(|comment| marked(file.path, comment));
    calls.chain(markers).collect()
}

fn marked(path: &str, comment: &Comment) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, text) in (comment.line..).zip(comment.text.split('\n')) {
        let words: Vec<_> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        for marker in MARKERS {
            if words.contains(marker) {
                findings.push(Finding::at(
                    path,
                    line,
                    Rule::Marker,
                    format!("`{marker}`: finish it or file it"),
                ));
            }
        }
    }
    findings
}

fn attribute(path: &str, attribute: &Attribute<'_>) -> Option<Finding> {
    let body = attribute.body;
    let calls = |name: &str| {
        body.windows(2).any(|pair| matches!(pair, [word, open] if word.is_ident(name) && open.is_punct('(')))
    };
    let message = if calls("allow") {
        "`allow` hides; use `expect` with a reason, or do what the lint says"
    } else if calls("expect") && !body.iter().any(|token| token.is_ident("reason")) {
        "`expect` without `reason = \"...\"`"
    } else if ignores_without_reason(body) {
        "`ignore` without a reason: write `#[ignore = \"...\"]`, or fix or delete the test"
    } else {
        return None;
    };
    Some(Finding::at(path, attribute.line, Rule::Attribute, message))
}

/// `ignore` alone or at the end of a `cfg_attr`.
fn ignores_without_reason(body: &[Token]) -> bool {
    let is_attribute_name = |position: usize| match position
        .checked_sub(1)
        .and_then(|before| body.get(before))
    {
        None => true,
        Some(before) => before.is_punct(',') && body.first().is_some_and(|word| word.is_ident("cfg_attr")),
    };
    body.iter().enumerate().any(|(position, token)| {
        token.is_ident("ignore")
            && is_attribute_name(position)
            && !matches!(body.get(position + 1..), Some([equals, Token { kind: Kind::Str(_), .. }, ..]) if equals.is_punct('='))
    })
}

fn banned_paths(file: &SourceFile<'_>, row: &Row) -> Vec<Finding> {
    let denied: Vec<_> = BANS.iter().filter(|ban| !row.may.contains(&ban.permit)).collect();
    syntax::paths(&file.product.tokens)
        .iter()
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
    syntax::macros(&file.product.tokens)
        .filter(|(name, _)| PRINTING.contains(name))
        .map(|(name, line)| {
            let message =
                format!("`{name}!` in {}: return data, or emit a notice; the command prints", row.name);
            Finding::at(file.path, line, Rule::Print, message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::{lexer, table};
    use super::*;

    fn judged_as(krate: &str, area: Area, text: &str) -> Vec<String> {
        let lexed = lexer::lex(text);
        let product = syntax::without_tests(&lexed.tokens);
        let row = Some(table::row(krate).unwrap());
        check(&SourceFile { path: "x.rs", text, row, area, lexed, product })
            .iter()
            .map(ToString::to_string)
            .collect()
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
        let findings = judged("peers-cli", "/* a\n FIXME: b */\n// XXX\n// mktemp x.XXXXXX is not one");
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
    fn a_file_starts_with_its_documentation() {
        for text in ["use x;\n//! X.", "// X.\n", "\n//! X.", ""] {
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
