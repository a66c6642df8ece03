//! The one classifier of paths, and of test lines within Rust files.

use std::ops::RangeInclusive;

/// What a file is for, by its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathKind {
    /// Tests, their fixtures and snapshots.
    Test,
    /// Documentation.
    Doc,
    /// Everything else.
    Source,
    /// The control directory `.peers/`.
    Control,
}

/// Classifies a path, given from the root of the repository with `/` between its parts.
///
/// Tests are what the test runners of Python, JavaScript and TypeScript, Rust and Go take for
/// tests, all below a directory `tests`, `test`, `__tests__`, `__snapshots__`, `testdata` or
/// `snapshots` with `.snap` files. A `README` among tests is documentation.
#[must_use]
pub fn classify(path: &str) -> PathKind {
    let mut parts: Vec<&str> = path.split('/').filter(|p| !matches!(*p, "" | ".")).collect();
    let Some(name) = parts.pop() else { return PathKind::Source };
    if parts.first().copied().unwrap_or(name) == ".peers" {
        return PathKind::Control;
    }
    if is_document_name(name) {
        return PathKind::Doc;
    }
    if parts.iter().any(|p| is_test_dir(p)) || is_test_name(name) {
        return PathKind::Test;
    }
    let in_docs = parts.first().is_some_and(|p| matches!(*p, "docs" | "doc"));
    if in_docs || is_document_extension(name) { PathKind::Doc } else { PathKind::Source }
}

fn is_test_dir(part: &str) -> bool {
    matches!(part, "tests" | "test" | "__tests__" | "__snapshots__" | "testdata")
}

fn is_test_name(name: &str) -> bool {
    const SCRIPT: [&str; 10] = ["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "vue", "svelte"];
    let Some((stem, extension)) = name.rsplit_once('.') else { return false };
    let extension = extension.to_ascii_lowercase();
    match extension.as_str() {
        "py" | "pyi" => stem == "conftest" || stem.starts_with("test_") || stem.ends_with("_test"),
        "go" => stem.ends_with("_test"),
        "snap" => true,
        script if SCRIPT.contains(&script) => {
            stem.rsplit('.').take(stem.matches('.').count()).any(|word| matches!(word, "test" | "spec"))
        }
        _ => false,
    }
}

/// Files that are documentation wherever they lie.
fn is_document_name(name: &str) -> bool {
    const STEMS: [&str; 10] = [
        "readme",
        "changelog",
        "changes",
        "license",
        "licence",
        "notice",
        "authors",
        "contributing",
        "code_of_conduct",
        "security",
    ];
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let stem = stem.split('-').next().unwrap_or(stem).to_ascii_lowercase();
    let prose = matches!(extension.to_ascii_lowercase().as_str(), "" | "md" | "txt" | "rst" | "adoc");
    prose && STEMS.contains(&stem.as_str())
}

fn is_document_extension(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| {
        matches!(extension.to_ascii_lowercase().as_str(), "md" | "markdown" | "rst" | "adoc" | "asciidoc")
    })
}

/// The lines of a Rust file, from 1, that belong to an item under `#[cfg(test)]` (also within
/// `all(…)` or `any(…)`), attribute included, in order.
///
/// This is a scanner, not a parser: it knows strings, characters, lifetimes and comments, and
/// counts braces. Of text that is no Rust it says something or nothing, and never panics.
#[must_use]
pub fn rust_test_lines(text: &str) -> Vec<RangeInclusive<usize>> {
    let tokens = scan(text);
    let closing = matching(&tokens);
    let mut found: Vec<RangeInclusive<usize>> = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let Some(after) = test_attribute(&tokens, &closing, at) else {
            at += 1;
            continue;
        };
        let end = item_end(&tokens, &closing, after);
        let last = tokens.get(end.saturating_sub(1)).map_or(token.line, |t| t.line);
        match found.last_mut() {
            Some(range) if token.line <= *range.end() => *range = *range.start()..=last.max(*range.end()),
            Some(_) | None => found.push(token.line..=last),
        }
        at = end.max(at + 1);
    }
    found
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Token {
    line: usize,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `cfg`
    Cfg,
    /// `test`
    Test,
    /// `not`
    Not,
    /// `pub`
    Pub,
    /// A word that starts an item.
    Item,
    /// A punctuation character of ASCII.
    Mark(u8),
    /// Another word, a string, a character, a lifetime, a number.
    Other,
}

impl Kind {
    fn of_word(word: &str) -> Self {
        match word {
            "cfg" => Self::Cfg,
            "test" => Self::Test,
            "not" => Self::Not,
            "pub" => Self::Pub,
            "mod" | "fn" | "impl" | "struct" | "enum" | "union" | "trait" | "const" | "static" | "type"
            | "unsafe" | "async" | "extern" | "use" => Self::Item,
            _ => Self::Other,
        }
    }
}

/// For each opening bracket the place of the bracket that closes it.
fn matching(tokens: &[Token]) -> Vec<Option<usize>> {
    let mut closing = vec![None; tokens.len()];
    let mut open = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Mark(b'(' | b'[' | b'{') => open.push(i),
            Kind::Mark(b')' | b']' | b'}') => {
                if let Some(slot) = open.pop().and_then(|o| closing.get_mut(o)) {
                    *slot = Some(i);
                }
            }
            Kind::Mark(_) | Kind::Cfg | Kind::Test | Kind::Not | Kind::Pub | Kind::Item | Kind::Other => {}
        }
    }
    closing
}

/// After the end of a `#[cfg(… test …)]` attribute that starts at `at`.
fn test_attribute(tokens: &[Token], closing: &[Option<usize>], at: usize) -> Option<usize> {
    let kind = |i: usize| tokens.get(i).map(|t| t.kind);
    let start = [Kind::Mark(b'#'), Kind::Mark(b'['), Kind::Cfg, Kind::Mark(b'(')];
    if start.into_iter().zip(at..).any(|(k, i)| kind(i) != Some(k)) {
        return None;
    }
    let end = closing.get(at + 1).copied().flatten()?;
    let says_test = (at + 4..end).any(|i| {
        let negated = kind(i - 2) == Some(Kind::Not) && kind(i - 1) == Some(Kind::Mark(b'('));
        kind(i) == Some(Kind::Test) && !negated && kind(i + 1) != Some(Kind::Mark(b'='))
    });
    says_test.then_some(end + 1)
}

/// After the end of the item at `at`: its closing brace, its semicolon, or, when it is a field, a
/// variant or an arm, its comma.
fn item_end(tokens: &[Token], closing: &[Option<usize>], at: usize) -> usize {
    let close = |i: usize| closing.get(i).copied().flatten();
    let mut is_item = None;
    let mut i = at;
    while let Some(token) = tokens.get(i) {
        match token.kind {
            Kind::Mark(b';') => return i + 1,
            Kind::Mark(b',') if is_item != Some(true) => return i + 1,
            Kind::Mark(b'{') => return close(i).map_or(tokens.len(), |end| end + 1),
            Kind::Mark(b'(' | b'[') => i = close(i).unwrap_or(tokens.len()),
            Kind::Mark(b'}' | b')' | b']') => return i,
            Kind::Item => is_item = is_item.or(Some(true)),
            Kind::Cfg | Kind::Test | Kind::Not | Kind::Other => is_item = is_item.or(Some(false)),
            Kind::Mark(_) | Kind::Pub => {}
        }
        i += 1;
    }
    tokens.len()
}

fn scan(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (length, kind) = next_token(rest, c);
        let (taken, after) = rest.split_at_checked(length.max(c.len_utf8())).unwrap_or((rest, ""));
        if let Some(kind) = kind {
            tokens.push(Token { line, kind });
        }
        line += taken.bytes().filter(|b| *b == b'\n').count();
        rest = after;
    }
    tokens
}

/// The length of what stands at the start, and what it is; `None` for blanks and comments.
fn next_token(rest: &str, c: char) -> (usize, Option<Kind>) {
    if c.is_whitespace() {
        return (c.len_utf8(), None);
    }
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), None);
    }
    if rest.starts_with("/*") {
        return (block_comment(rest), None);
    }
    if let Some(length) = string(rest) {
        return (length, Some(Kind::Other));
    }
    if c == '\'' {
        return (quote(rest), Some(Kind::Other));
    }
    if c.is_alphabetic() || c == '_' {
        let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        return (length, rest.get(..length).map(Kind::of_word));
    }
    if c.is_ascii_digit() {
        return (
            rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len()),
            Some(Kind::Other),
        );
    }
    (c.len_utf8(), Some(u8::try_from(c).map_or(Kind::Other, Kind::Mark)))
}

/// Length of a block comment, which may hold others.
fn block_comment(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut depth = 0_usize;
    let mut i = 0;
    while let Some(pair) = bytes.get(i..i + 2) {
        match pair {
            b"/*" => {
                depth += 1;
                i += 2;
            }
            b"*/" => {
                depth = depth.saturating_sub(1);
                i += 2;
                if depth == 0 {
                    return i;
                }
            }
            _ => i += 1,
        }
    }
    rest.len()
}

/// Length of a string literal of any kind that starts here.
fn string(rest: &str) -> Option<usize> {
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|p| {
        rest.strip_prefix(p)
            .is_some_and(|r| r.starts_with('"') || (p.ends_with('r') && raw_hashes(r).is_some()))
    })?;
    let body = rest.get(prefix.len()..)?;
    if prefix.ends_with('r') {
        let hashes = raw_hashes(body)?;
        let close = format!("\"{}", "#".repeat(hashes));
        let inner = body.get(hashes + 1..)?;
        return Some(
            inner.find(&close).map_or(rest.len(), |end| prefix.len() + hashes + 1 + end + close.len()),
        );
    }
    let mut escaped = false;
    for (i, c) in body.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(prefix.len() + i + 1),
            _ => {}
        }
    }
    Some(rest.len())
}

/// How many `#` stand before the quote of a raw string.
fn raw_hashes(text: &str) -> Option<usize> {
    let hashes = text.bytes().take_while(|b| *b == b'#').count();
    text.get(hashes..)?.starts_with('"').then_some(hashes)
}

/// Length of a character literal, or of the lifetime that starts here.
fn quote(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            // The character after the backslash may itself be a quote.
            let from = chars.next().map_or(rest.len(), |(i, c)| i + c.len_utf8());
            let tail = rest.get(from..).unwrap_or_default();
            tail.find(['\'', '\n']).map_or(rest.len(), |end| from + end + 1)
        }
        Some((i, c)) if rest.get(i + c.len_utf8()..).is_some_and(|r| r.starts_with('\'')) => {
            i + c.len_utf8() + 1
        }
        Some((i, c)) if c.is_alphabetic() || c == '_' => {
            let word = rest.get(i..).unwrap_or_default();
            i + word.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(word.len())
        }
        Some(_) | None => 1,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn test_files_of_the_four_languages_are_tests() {
        for path in [
            "tests/a.py",
            "pkg/test_a.py",
            "pkg/a_test.py",
            "conftest.py",
            "src/a.test.ts",
            "src/a.spec.jsx",
            "a.test.utils.js",
            "src/__tests__/a.js",
            "crates/x/tests/it.rs",
            "tests/fixtures/data.json",
            "pkg/a_test.go",
            "test/a.js",
            "src/__snapshots__/a.txt",
            "src/snapshots/x.snap",
            "internal/testdata/in.txt",
            "./tests//a",
        ] {
            assert_eq!(classify(path), PathKind::Test, "{path}");
        }
    }

    #[test]
    fn lookalikes_are_no_tests() {
        for path in [
            "src/latest.py",
            "src/contest.go",
            "src/tests.rs",
            "src/testing.py",
            "openapi.spec.yaml",
            "test.js",
            "src/test_a.rs",
            "testsuite/a.c",
            "tests",
        ] {
            assert_eq!(classify(path), PathKind::Source, "{path}");
        }
    }

    #[test]
    fn documents_are_documents_wherever_they_lie() {
        for path in [
            "README",
            "README.md",
            "tests/README.md",
            "docs/conf.py",
            "doc/a.html",
            "a/b.MD",
            "LICENSE-MIT",
            "CHANGELOG.md",
            "src/notes.rst",
            "test/readme.txt",
        ] {
            assert_eq!(classify(path), PathKind::Doc, "{path}");
        }
        for path in ["requirements.txt", "CMakeLists.txt", "src/docs/a.py", "readme.py", "security.rs"] {
            assert_eq!(classify(path), PathKind::Source, "{path}");
        }
        assert_eq!(classify("tests/expected.md"), PathKind::Test, "a fixture is no document");
    }

    #[test]
    fn the_control_directory_is_its_own_kind() {
        for path in [".peers", ".peers/tests/a.py", "./.peers/README.md", ".peers//x"] {
            assert_eq!(classify(path), PathKind::Control, "{path}");
        }
        assert_eq!(classify("src/.peers/x.py"), PathKind::Source);
        assert_eq!(classify(""), PathKind::Source);
    }

    #[test]
    fn a_test_module_is_found_with_its_attribute() {
        let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() { if x { y } }\n}\nfn c() {}\n";
        assert_eq!(rust_test_lines(text), [3..=6]);
    }

    #[test]
    fn braces_in_strings_and_comments_do_not_count() {
        let text = r##"#[cfg(test)]
#[allow(dead_code)] // {
mod tests {
    const A: &str = "}"; /* } /* } */ } */
    const B: &str = r#"}" }"#; const C: char = '}'; const D: &[u8] = b"}\"}";
    fn f<'a>(x: &'a str) -> char { '\'' } // }
    const E: u8 = b'}'; const F: &str = "\\";
}
fn after() {}
"##;
        assert_eq!(rust_test_lines(text), [1..=8]);
    }

    #[test]
    fn items_other_than_modules_count_to_their_end() {
        let text = "#[cfg(test)]\nmod tests;\nfn a() {}\n#[cfg(all(test, unix))]\nuse x::{y,\n z};\n#[cfg(test)] fn f(a: [u8; 2])\n{\n}\n";
        assert_eq!(rust_test_lines(text), [1..=2, 4..=6, 7..=9], "a `use` ends with its braces");
    }

    #[test]
    fn a_comma_ends_a_field_but_no_item() {
        assert_eq!(rust_test_lines("#[cfg(test)]\nfn f<A, B>() {\n}\nfn g() {}\n"), [1..=3]);
        assert_eq!(rust_test_lines("struct S {\n#[cfg(test)]\npub a: u8,\nb: u8,\n}\n"), [2..=3]);
    }

    #[test]
    fn other_conditions_are_no_tests() {
        for text in [
            "#[cfg(not(test))]\nmod a {}\n",
            "#[cfg(feature = \"test\")]\nmod a {}\n",
            "#[cfg(test = \"x\")]\nmod a {}\n",
            "// #[cfg(test)]\nmod a {}\n",
            "const X: &str = \"#[cfg(test)] mod a {}\";\n",
            "#[test]\nfn a() {}\n",
        ] {
            assert!(rust_test_lines(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn an_unclosed_module_reaches_to_the_end() {
        assert_eq!(rust_test_lines("#[cfg(test)]\nmod a {\n fn x() {\n"), [1..=3]);
        assert_eq!(rust_test_lines("#[cfg(test)]"), [1..=1]);
        assert!(rust_test_lines("#[cfg(test)").is_empty());
    }

    proptest! {
        #[test]
        fn any_text_is_scanned_without_panic(text in any::<String>()) {
            let lines = text.split('\n').count();
            for range in rust_test_lines(&text) {
                prop_assert!(range.start() <= range.end() && *range.end() <= lines);
            }
            prop_assert_eq!(classify(&text), classify(&format!("./{text}")));
        }

        #[test]
        fn rust_like_text_is_scanned_without_panic(parts in proptest::collection::vec(prop_oneof![
            Just("#[cfg(test)]"), Just("mod a {"), Just("}"), Just("\""), Just("'"), Just("r#\""), Just("\"#"),
            Just("/*"), Just("*/"), Just("//"), Just("\n"), Just("\\"), Just("b'"), Just("é"), Just("("), Just(")"),
            Just("'a"), Just("#"), Just("["), Just("]"), Just("fn x() {}"), Just(";"), Just("r"), Just("1"),
        ], 0..60)) {
            let text = parts.concat();
            let mut last = 0;
            for range in rust_test_lines(&text) {
                prop_assert!(*range.start() >= last);
                last = *range.end();
            }
        }
    }
}
