//! Which lines of a Rust file are tests.
//!
//! A scanner, not a parser: it knows strings, characters, lifetimes and comments, and counts braces.
//! Of text that is no Rust it says something or nothing, and never panics.

/// What a line of a Rust file belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RustLine {
    /// What is no test.
    Rest,
    /// A test, or an item under `#[cfg(test)]`, attributes included.
    Test,
    /// The same, under a further condition: it may not be compiled when tests are.
    Conditional,
}

/// What each line of a Rust file belongs to, in order; `all_tests` when the whole file is tests.
#[must_use]
pub fn rust_lines(text: &str, all_tests: bool) -> Vec<RustLine> {
    let tokens = scan(text);
    let closing = matching(&tokens);
    let count = text.split('\n').count();
    let (mut tests, mut conditional) = (Ranges::new(count), Ranges::new(count));
    if all_tests {
        tests.add(1, count);
    }
    for item in items(&tokens, &closing) {
        if item.meaning.is_test() {
            tests.add(item.first, item.last);
        }
        if item.meaning.is_conditional() {
            conditional.add(item.first, item.last);
        }
    }
    tests
        .covered()
        .zip(conditional.covered())
        .map(|both| match both {
            (false, _) => RustLine::Rest,
            (true, false) => RustLine::Test,
            (true, true) => RustLine::Conditional,
        })
        .collect()
}

/// Ranges of lines, from 1, that may overlap.
struct Ranges {
    steps: Vec<i64>,
}

impl Ranges {
    fn new(count: usize) -> Self {
        Self { steps: vec![0; count + 2] }
    }

    fn add(&mut self, first: usize, last: usize) {
        for (at, step) in [(first, 1), (last + 1, -1)] {
            if let Some(slot) = self.steps.get_mut(at) {
                *slot += step;
            }
        }
    }

    /// For each line whether a range covers it.
    fn covered(&self) -> impl Iterator<Item = bool> {
        let inner = self.steps.get(1..self.steps.len() - 1).unwrap_or_default();
        inner.iter().scan(0_i64, |depth, step| {
            *depth += step;
            Some(*depth > 0)
        })
    }
}

/// An item with an attribute that matters.
struct Marked {
    first: usize,
    last: usize,
    meaning: Meaning,
}

/// What an attribute says of its item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// It is compiled for tests, whenever they are.
    Tests,
    /// It is compiled for tests, if something else holds too.
    SomeTests,
    /// It depends on something else.
    Condition,
    /// Nothing that matters.
    Nothing,
}

impl Meaning {
    fn is_test(self) -> bool {
        matches!(self, Self::Tests | Self::SomeTests)
    }

    fn is_conditional(self) -> bool {
        matches!(self, Self::SomeTests | Self::Condition)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Token {
    line: usize,
    kind: Kind,
}

/// What a part of a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A blank.
    Blank,
    /// A whole comment.
    Comment,
    /// A whole string or character, or a lifetime.
    Text,
    /// A word, a number or a mark.
    Code(Kind),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `cfg`
    Cfg,
    /// `cfg_attr`
    CfgAttr,
    /// `test`
    Test,
    /// The name of another attribute that makes a test.
    TestLike,
    /// `all`
    All,
    /// `any`
    Any,
    /// `not`
    Not,
    /// `unix`
    Unix,
    /// `windows`
    Windows,
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
            "cfg_attr" => Self::CfgAttr,
            "test" => Self::Test,
            "rstest" | "test_case" | "quickcheck" | "wasm_bindgen_test" => Self::TestLike,
            "all" => Self::All,
            "any" => Self::Any,
            "not" => Self::Not,
            "unix" => Self::Unix,
            "windows" => Self::Windows,
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
        if matches!(token.kind, Kind::Mark(b'(' | b'[' | b'{')) {
            open.push(i);
        } else if matches!(token.kind, Kind::Mark(b')' | b']' | b'}'))
            && let Some(slot) = open.pop().and_then(|o| closing.get_mut(o))
        {
            *slot = Some(i);
        }
    }
    closing
}

/// All items with an attribute that matters, nested ones too.
fn items(tokens: &[Token], closing: &[Option<usize>]) -> Vec<Marked> {
    let kind = |i: usize| tokens.get(i).map(|t| t.kind);
    let line = |i: usize| tokens.get(i).or(tokens.last()).map_or(1, |t| t.line);
    let mut found = Vec::new();
    // From the end, so that of several attributes of one item each knows where the next one ends.
    let mut ends: Vec<Option<usize>> = vec![None; tokens.len() + 1];
    // Innermost last: the blocks that are open at a place, by their closing brace.
    let blocks = enclosing(tokens, closing);
    for at in (0..tokens.len()).rev() {
        if kind(at) != Some(Kind::Mark(b'#')) {
            continue;
        }
        let inner = kind(at + 1) == Some(Kind::Mark(b'!'));
        let open = if inner { at + 2 } else { at + 1 };
        if kind(open) != Some(Kind::Mark(b'[')) {
            continue;
        }
        let Some(close) = closing.get(open).copied().flatten() else { continue };
        let end = if inner {
            blocks.get(at).copied().flatten().unwrap_or(tokens.len())
        } else {
            let next = ends.get(close + 1).copied().flatten();
            next.unwrap_or_else(|| item_end(tokens, closing, close + 1))
        };
        if let Some(slot) = ends.get_mut(at).filter(|_| !inner) {
            *slot = Some(end);
        }
        let meaning = meaning(tokens.get(open + 1..close).unwrap_or_default());
        if meaning != Meaning::Nothing {
            found.push(Marked { first: line(at), last: line(end.saturating_sub(1)), meaning });
        }
    }
    found
}

/// For each token the place of the brace that closes the innermost block around it.
fn enclosing(tokens: &[Token], closing: &[Option<usize>]) -> Vec<Option<usize>> {
    let mut open: Vec<Option<usize>> = Vec::new();
    tokens
        .iter()
        .enumerate()
        .map(|(i, token)| {
            if token.kind == Kind::Mark(b'}') {
                open.pop();
            }
            let around = open.last().copied().flatten();
            if token.kind == Kind::Mark(b'{') {
                open.push(closing.get(i).copied().flatten());
            }
            around
        })
        .collect()
}

/// What an attribute says, from what stands between its brackets.
fn meaning(attribute: &[Token]) -> Meaning {
    let kinds: Vec<Kind> = attribute.iter().map(|t| t.kind).collect();
    match kinds.as_slice() {
        [Kind::Cfg, Kind::Mark(b'('), condition @ .., Kind::Mark(b')')] => match holds(condition, 0) {
            Holds::Always => Meaning::Nothing,
            Holds::InTests => Meaning::Tests,
            Holds::InSomeTests => Meaning::SomeTests,
            Holds::Perhaps | Holds::Never => Meaning::Condition,
        },
        [Kind::CfgAttr, rest @ ..] if rest.contains(&Kind::Cfg) => Meaning::Condition,
        [Kind::CfgAttr, ..] => Meaning::Nothing,
        path => {
            let mut path = path.iter().take_while(|k| !matches!(k, Kind::Mark(b'(' | b'=')));
            if path.any(|k| matches!(k, Kind::Test | Kind::TestLike)) {
                Meaning::Tests
            } else {
                Meaning::Nothing
            }
        }
    }
}

/// When a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Always,
    InTests,
    InSomeTests,
    Perhaps,
    Never,
}

/// When a condition holds, on a system of the family that we run on.
fn holds(condition: &[Kind], depth: u8) -> Holds {
    const DEEPEST: u8 = 16;
    let inner = |inner: &[Kind]| -> Vec<Holds> {
        if depth >= DEEPEST {
            return vec![Holds::Perhaps];
        }
        alternatives(inner).into_iter().map(|part| holds(part, depth + 1)).collect()
    };
    match condition {
        [Kind::Test] => Holds::InTests,
        [Kind::Unix] => Holds::Always,
        [Kind::Windows] => Holds::Never,
        [Kind::Not, Kind::Mark(b'('), rest @ .., Kind::Mark(b')')] => match inner(rest).as_slice() {
            [Holds::Never] => Holds::Always,
            [Holds::Always | Holds::InTests] => Holds::Never,
            _ => Holds::Perhaps,
        },
        [Kind::All, Kind::Mark(b'('), rest @ .., Kind::Mark(b')')] => {
            let parts = inner(rest);
            let says = |wanted: Holds| parts.contains(&wanted);
            let unsure = says(Holds::Perhaps) || says(Holds::InSomeTests);
            if says(Holds::Never) {
                Holds::Never
            } else if unsure {
                if says(Holds::InTests) || says(Holds::InSomeTests) {
                    Holds::InSomeTests
                } else {
                    Holds::Perhaps
                }
            } else if says(Holds::InTests) {
                Holds::InTests
            } else {
                Holds::Always
            }
        }
        [Kind::Any, Kind::Mark(b'('), rest @ .., Kind::Mark(b')')] => {
            let parts = inner(rest);
            let order = [Holds::Always, Holds::InTests, Holds::InSomeTests, Holds::Perhaps];
            order.into_iter().find(|wanted| parts.contains(wanted)).unwrap_or(Holds::Never)
        }
        _ => Holds::Perhaps,
    }
}

/// What stands between the commas that are in no brackets.
fn alternatives(list: &[Kind]) -> Vec<&[Kind]> {
    let mut depth = 0_usize;
    list.split(|kind| {
        match kind {
            Kind::Mark(b'(') => depth += 1,
            Kind::Mark(b')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && *kind == Kind::Mark(b',')
    })
    .filter(|part| !part.is_empty())
    .collect()
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
            // The attribute of something else: what began here has no end of its own.
            Kind::Mark(b'#') if i > at => return i,
            Kind::Item => is_item = is_item.or(Some(true)),
            Kind::Mark(_) | Kind::Pub => {}
            Kind::Cfg
            | Kind::CfgAttr
            | Kind::Test
            | Kind::TestLike
            | Kind::All
            | Kind::Any
            | Kind::Not
            | Kind::Unix
            | Kind::Windows
            | Kind::Other => {
                is_item = is_item.or(Some(false));
            }
        }
        i += 1;
    }
    tokens.len()
}

fn scan(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut line = 1;
    for (taken, piece) in pieces(text) {
        if let Piece::Code(kind) = piece {
            tokens.push(Token { line, kind });
        } else if piece == Piece::Text {
            tokens.push(Token { line, kind: Kind::Other });
        }
        line += taken.bytes().filter(|b| *b == b'\n').count();
    }
    tokens
}

/// Cuts a text into its smallest parts. Together they are the text.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = (&str, Piece)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let c = rest.chars().next()?;
        let (length, piece) = next_piece(rest, c);
        let (taken, after) = rest.split_at_checked(length.max(c.len_utf8())).unwrap_or((rest, ""));
        rest = after;
        Some((taken, piece))
    })
}

/// The length of what stands at the start, and what it is.
fn next_piece(rest: &str, c: char) -> (usize, Piece) {
    let word_end = |rest: &str| rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    if c.is_whitespace() {
        return (c.len_utf8(), Piece::Blank);
    }
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), Piece::Comment);
    }
    if rest.starts_with("/*") {
        return (block_comment(rest), Piece::Comment);
    }
    if let Some(length) = string(rest) {
        return (length, Piece::Text);
    }
    if c == '\'' {
        return (quote(rest), Piece::Text);
    }
    if c.is_alphabetic() || c == '_' {
        let length = word_end(rest);
        return (length, Piece::Code(rest.get(..length).map_or(Kind::Other, Kind::of_word)));
    }
    if c.is_ascii_digit() {
        return (word_end(rest), Piece::Code(Kind::Other));
    }
    (c.len_utf8(), Piece::Code(u8::try_from(c).map_or(Kind::Other, Kind::Mark)))
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
    use std::ops::RangeInclusive;

    use proptest::prelude::*;

    use super::*;

    /// The lines of a file that are tests of any kind.
    fn rust_test_lines(text: &str) -> Vec<RangeInclusive<usize>> {
        ranges(text, |line| line != RustLine::Rest)
    }

    fn conditional(text: &str) -> Vec<RangeInclusive<usize>> {
        ranges(text, |line| line == RustLine::Conditional)
    }

    fn ranges(text: &str, is: impl Fn(RustLine) -> bool) -> Vec<RangeInclusive<usize>> {
        let mut found: Vec<RangeInclusive<usize>> = Vec::new();
        for (n, _) in rust_lines(text, false).iter().enumerate().filter(|(_, line)| is(**line)) {
            match found.last_mut() {
                Some(range) if *range.end() == n => *range = *range.start()..=n + 1,
                Some(_) | None => found.push(n + 1..=n + 1),
            }
        }
        found
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
        assert_eq!(rust_test_lines(text), [1..=2, 4..=9], "a `use` ends with its braces");
        assert!(conditional(text).is_empty(), "we run on no other system");
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
            "#[cfg_attr(x, test)]\nfn a() {}\n",
            "#[cfg(any())]\nmod tests {}\n",
            "#[doc(test)]\nfn a() {}\n",
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

    #[test]
    fn a_test_outside_of_a_module_is_a_test() {
        for attribute in ["#[test]", "#[tokio::test(flavor = \"x\")]", "#[rstest]", "#[test_case(1)]"] {
            let text = format!("fn a() {{}}\n{attribute}\n#[ignore]\nfn b() {{\n}}\nfn c() {{}}\n");
            assert_eq!(rust_test_lines(&text), [2..=5], "{attribute}");
        }
    }

    #[test]
    fn a_further_condition_is_known_wherever_it_stands() {
        for (text, lines) in [
            ("#[cfg(all(test, feature = \"x\"))]\nmod a {\n}\n", 1..=3),
            ("#[cfg(feature = \"x\")]\n#[cfg(test)]\nmod a {\n}\n", 2..=4),
            ("#[cfg(test)]\n#[cfg(windows)]\nmod a {\n}\n", 2..=4),
            ("#[cfg(test)]\nmod a {\n#[test]\n#[cfg(miri)]\nfn b() {}\nfn c() {}\n}\n", 4..=5),
            ("#[cfg(test)]\nmod a {\n#![cfg(any())]\nfn b() {}\n}\nfn c() {}\n", 3..=4),
            ("#[cfg(test)]\n#[cfg_attr(x, cfg(any()))]\nmod a {}\n", 2..=3),
        ] {
            assert_eq!(conditional(text), [lines], "{text}");
        }
        for text in [
            "#[cfg(test)]\nmod a {}\n",
            "#[cfg(any(test, feature = \"x\"))]\nmod a {}\n",
            "#[cfg(all(test, not(windows)))]\nmod a {}\n",
        ] {
            assert_eq!((conditional(text), rust_test_lines(text)), (vec![], vec![1..=2]), "{text}");
        }
        let whole = rust_lines("#![cfg(feature = \"x\")]\nfn a() {}", true);
        assert_eq!(whole, [RustLine::Conditional; 2]);
    }

    #[test]
    fn a_condition_of_any_depth_is_read() {
        let deep = format!("#[cfg({}test{})]\nmod a {{}}\n", "all(".repeat(100_000), ")".repeat(100_000));
        assert!(rust_test_lines(&deep).is_empty(), "nobody writes that");
        assert_eq!(rust_test_lines("#[cfg(all(all(any(test))))]\nmod a {}\n"), [1..=2]);
    }

    #[test]
    fn many_attributes_are_scanned_in_one_pass() {
        for text in ["#[cfg(test)]\n".repeat(200_000), "#[cfg(test)] x\n".repeat(200_000)] {
            assert_eq!(rust_lines(&text, false).len(), 200_001);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_scanned_without_panic(text in any::<String>()) {
            prop_assert_eq!(rust_lines(&text, false).len(), text.split('\n').count());
            prop_assert_eq!(pieces(&text).map(|(taken, _)| taken).collect::<String>(), text);
        }

        #[test]
        fn rust_like_text_is_scanned_without_panic(parts in proptest::collection::vec(prop_oneof![
            Just("#[cfg(test)]"), Just("mod a {"), Just("}"), Just("\""), Just("'"), Just("r#\""), Just("\"#"),
            Just("/*"), Just("*/"), Just("//"), Just("\n"), Just("\\"), Just("b'"), Just("é"), Just("("), Just(")"),
            Just("'a"), Just("#"), Just("["), Just("]"), Just("fn x() {}"), Just(";"), Just("r"), Just("1"),
        ], 0..60)) {
            let text = parts.concat();
            prop_assert_eq!(rust_lines(&text, true).len(), text.split('\n').count());
            prop_assert_eq!(pieces(&text).map(|(taken, _)| taken).collect::<String>(), text);
        }
    }
}
