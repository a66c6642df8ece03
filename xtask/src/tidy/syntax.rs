//! Attributes, test code and paths in a token stream.

use std::ops::Range;

use super::lexer::{Kind, Token};

/// `#[...]` or `#![...]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attribute<'a> {
    pub(crate) inner: bool,
    pub(crate) line: usize,
    /// What stands between the brackets.
    pub(crate) body: &'a [Token],
    /// The index behind the closing bracket.
    end: usize,
}

/// A token stream without its test-only items.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Product {
    pub(crate) tokens: Vec<Token>,
    /// The lines that the cut items cover.
    pub(crate) test_lines: usize,
    /// Modules that exist under test only, in files of their own.
    pub(crate) test_modules: Vec<TestModule>,
}

/// `#[cfg(test)] mod name;`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TestModule {
    pub(crate) name: String,
    /// The value of a `#[path]` attribute.
    pub(crate) path: Option<String>,
}

/// A path as written, `use` trees expanded: `use std::{fs, io::Read}` gives `std::fs` and `std::io::Read`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathUse {
    pub(crate) segments: Vec<String>,
    pub(crate) line: usize,
}

/// Every attribute, in order.
pub(crate) fn attributes(tokens: &[Token]) -> Vec<Attribute<'_>> {
    (0..tokens.len()).filter_map(|start| attribute_at(tokens, start)).collect()
}

fn attribute_at(tokens: &[Token], start: usize) -> Option<Attribute<'_>> {
    let hash = tokens.get(start).filter(|token| token.is_punct('#'))?;
    let inner = tokens.get(start + 1)?.is_punct('!');
    let open = start + if inner { 2 } else { 1 };
    if !tokens.get(open)?.is_punct('[') {
        return None;
    }
    let end = matching_end(tokens, open);
    let body = tokens.get(open + 1..end.checked_sub(1)?)?;
    Some(Attribute { inner, line: hash.line, body, end })
}

/// The index behind the bracket that closes the one at `open`.
fn matching_end(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Punct('(' | '[' | '{') => depth += 1,
            Kind::Punct(')' | ']' | '}') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return index + 1;
                }
            }
            Kind::Ident(_) | Kind::PathSep | Kind::Punct(_) | Kind::Str(_) | Kind::Other => {}
        }
    }
    tokens.len()
}

/// Cuts every item that is compiled for tests only.
pub(crate) fn without_tests(tokens: &[Token]) -> Product {
    let mut product = Product::default();
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        if let Some(attribute) = attribute_at(tokens, index).filter(|attribute| attribute.inner) {
            if is_test_only(&attribute) {
                let test_lines = tokens.last().map_or(0, |last| last.line);
                return Product { test_lines, ..Product::default() };
            }
            index += 1;
            continue;
        }
        let run = attribute_run(tokens, index);
        if !run.iter().any(is_test_only) {
            product.tokens.push(token.clone());
            index += 1;
            continue;
        }
        let item = run.last().map_or(index, |attribute| attribute.end);
        let end = item_end(tokens, item);
        product.test_modules.extend(module_declaration(tokens, item..end, &run));
        let last_line = tokens.get(end - 1).map_or(token.line, |last| last.line);
        product.test_lines += last_line + 1 - token.line;
        index = end;
    }
    product
}

/// The outer attributes that follow each other from `start` on.
fn attribute_run(tokens: &[Token], start: usize) -> Vec<Attribute<'_>> {
    let mut run = Vec::new();
    let mut next = start;
    while let Some(attribute) = attribute_at(tokens, next).filter(|attribute| !attribute.inner) {
        next = attribute.end;
        run.push(attribute);
    }
    run
}

/// Whether a `cfg` attribute holds under test only.
fn is_test_only(attribute: &Attribute<'_>) -> bool {
    match attribute.body {
        [cfg, _, predicate @ .., _] if cfg.is_ident("cfg") => needs_test(predicate),
        _ => false,
    }
}

/// `test`, `all(..., test, ...)` and `any` of nothing but such need it; `not` and a feature do not.
fn needs_test(predicate: &[Token]) -> bool {
    match predicate {
        [word] => word.is_ident("test"),
        [word, open, inside @ .., close] if open.is_punct('(') && close.is_punct(')') => {
            let mut parts = split_at_commas(inside).into_iter();
            match word.ident() {
                Some("all") => parts.any(needs_test),
                Some("any") => parts.len() > 0 && parts.all(needs_test),
                _ => false,
            }
        }
        _ => false,
    }
}

/// The non-empty parts between the commas outside brackets.
fn split_at_commas(tokens: &[Token]) -> Vec<&[Token]> {
    let mut depth = 0_usize;
    tokens
        .split(|token| {
            match token.kind {
                Kind::Punct('(') => depth += 1,
                Kind::Punct(')') => depth = depth.saturating_sub(1),
                Kind::Ident(_) | Kind::PathSep | Kind::Punct(_) | Kind::Str(_) | Kind::Other => {}
            }
            depth == 0 && token.is_punct(',')
        })
        .filter(|part| !part.is_empty())
        .collect()
}

/// The index behind the item at `start`: behind its `;` or its block. A field, variant or argument ends
/// before its comma or the bracket around it.
fn item_end(tokens: &[Token], start: usize) -> usize {
    let is_item = tokens.get(start).and_then(Token::ident).is_some_and(|word| {
        matches!(
            word,
            "pub"
                | "mod"
                | "fn"
                | "use"
                | "impl"
                | "struct"
                | "enum"
                | "trait"
                | "type"
                | "const"
                | "static"
                | "unsafe"
                | "async"
                | "extern"
                | "macro_rules"
                | "let"
        )
    });
    let mut index = start;
    while let Some(token) = tokens.get(index) {
        match token.kind {
            Kind::Punct(';') => return index + 1,
            Kind::Punct('{') => return matching_end(tokens, index),
            Kind::Punct('(' | '[') => index = matching_end(tokens, index),
            Kind::Punct(')' | ']' | '}') => return index,
            Kind::Punct(',') if !is_item => return index,
            Kind::Ident(_) | Kind::PathSep | Kind::Punct(_) | Kind::Str(_) | Kind::Other => index += 1,
        }
    }
    tokens.len()
}

fn module_declaration(tokens: &[Token], item: Range<usize>, run: &[Attribute<'_>]) -> Option<TestModule> {
    let item = tokens.get(item)?;
    let position = item.iter().position(|token| token.is_ident("mod"))?;
    let [name, semicolon] = item.get(position + 1..)? else { return None };
    if !semicolon.is_punct(';') {
        return None;
    }
    let path = run.iter().find_map(|attribute| match attribute.body {
        [word, _, Token { kind: Kind::Str(path), .. }] if word.is_ident("path") => Some(path.clone()),
        _ => None,
    });
    Some(TestModule { name: name.ident()?.to_owned(), path })
}

/// Keywords that may stand before a path with a leading `::` and are no part of it.
const BEFORE_PATHS: &[&str] = &[
    "as", "break", "dyn", "else", "impl", "in", "match", "move", "mut", "if", "ref", "return", "use",
    "while", "yield",
];

/// Every path of one or more segments.
pub(crate) fn paths(tokens: &[Token]) -> Vec<PathUse> {
    let mut found = Vec::new();
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        let starts_path = token.ident().is_some_and(|word| !BEFORE_PATHS.contains(&word));
        index = if starts_path { path_tree(tokens, index, &[], &mut found) } else { index + 1 };
    }
    found
}

/// Reads the path or `use` tree at `start` below `prefix` and returns the index behind it.
fn path_tree(tokens: &[Token], start: usize, prefix: &[String], found: &mut Vec<PathUse>) -> usize {
    let mut segments = prefix.to_vec();
    let mut index = start;
    let mut line = 0;
    while let Some(token) = tokens.get(index) {
        match &token.kind {
            Kind::Ident(name) => {
                // `use a::{self}` names `a`.
                if name != "self" || segments.is_empty() {
                    segments.push(name.clone());
                }
            }
            Kind::Punct('*') if index > start || !prefix.is_empty() => segments.push("*".to_owned()),
            Kind::Punct('{') if index > start => return use_group(tokens, index, &segments, found),
            Kind::PathSep | Kind::Punct(_) | Kind::Str(_) | Kind::Other => break,
        }
        line = token.line;
        index += 1;
        match tokens.get(index) {
            Some(next) if next.kind == Kind::PathSep => index += 1,
            _ => break,
        }
    }
    found.push(PathUse { segments, line });
    index.max(start + 1)
}

/// Reads `{a, b::c as d}` at `open` and returns the index behind it.
fn use_group(tokens: &[Token], open: usize, prefix: &[String], found: &mut Vec<PathUse>) -> usize {
    let mut index = open + 1;
    while let Some(token) = tokens.get(index) {
        if token.is_punct('}') {
            return index + 1;
        }
        if token.is_ident("as") {
            // The new name is no path.
            index += 2;
        } else if token.ident().is_some() || token.is_punct('*') {
            index = path_tree(tokens, index, prefix, found);
        } else {
            index += 1;
        }
    }
    index
}

/// Calls of macros by name, as (name, line).
pub(crate) fn macros(tokens: &[Token]) -> impl Iterator<Item = (&str, usize)> {
    tokens.windows(3).filter_map(|window| match window {
        [name, bang, open] if bang.is_punct('!') && matches!(open.kind, Kind::Punct('(' | '[' | '{')) => {
            Some((name.ident()?, name.line))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::lexer::lex;
    use super::*;

    fn product(source: &str) -> Product {
        without_tests(&lex(source).tokens)
    }

    fn kept(source: &str) -> Vec<String> {
        product(source).tokens.iter().filter_map(|token| token.ident().map(str::to_owned)).collect()
    }

    fn found_paths(source: &str) -> Vec<String> {
        paths(&lex(source).tokens).iter().map(|path| path.segments.join("::")).collect()
    }

    #[test]
    fn the_tests_module_is_cut_by_its_braces_and_the_rest_stays() {
        let source = "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() { if x { \"}\" } }\n}\nfn c() {}";
        assert_eq!(kept(source), ["fn", "a", "fn", "c"]);
        assert_eq!(product(source).test_lines, 4);
    }

    #[test]
    fn other_test_items_are_cut_whole() {
        assert_eq!(kept("#[cfg(test)] use std::fs; a"), ["a"]);
        assert_eq!(kept("#[cfg(test)] #[must_use] fn f<A, B>(x: [u8; 2]) -> A { b } a"), ["a"]);
        assert_eq!(kept("#[derive(X)] #[cfg(test)] struct S; a"), ["a"]);
        assert_eq!(kept("struct S { #[cfg(test)] hook: u8, a: u8 }"), ["struct", "S", "a", "u8"]);
        assert_eq!(kept("struct S { #[cfg(test)] hook: u8 } a"), ["struct", "S", "a"]);
    }

    #[test]
    fn only_a_cfg_that_needs_test_cuts() {
        assert_eq!(kept("#[cfg(all(unix, test))] mod m { b } a"), ["a"]);
        assert_eq!(kept("#[cfg(any(test, all(test, unix)))] mod m { b } a"), ["a"]);
        for stays in
            ["#[cfg(any(test, unix))]", "#[cfg(not(test))]", "#[cfg(unix)]", "#[test]", "#[cfg(any())]"]
        {
            assert!(kept(&format!("{stays} mod m {{ b }}")).contains(&"b".to_owned()), "{stays}");
        }
    }

    #[test]
    fn an_inner_cfg_test_cuts_the_whole_file() {
        assert_eq!(kept("//! x\n#![cfg(test)]\nfn a() {}"), Vec::<String>::new());
    }

    #[test]
    fn test_modules_in_their_own_files_are_named() {
        let modules =
            product("#[cfg(test)] mod a; #[cfg(test)]\n#[path = \"b_tests.rs\"] pub(crate) mod b; mod c;");
        assert_eq!(
            modules.test_modules,
            [
                TestModule { name: "a".to_owned(), path: None },
                TestModule { name: "b".to_owned(), path: Some("b_tests.rs".to_owned()) },
            ]
        );
    }

    #[test]
    fn use_trees_are_expanded() {
        assert_eq!(
            found_paths("use std::{fs, io::{self, Read}, env as e};"),
            ["std::fs", "std::io", "std::io::Read", "std::env"]
        );
        assert_eq!(
            found_paths("use ::std::fs::*; return ::std::env::var(x)"),
            ["std::fs::*", "std::env::var", "x"]
        );
    }

    #[test]
    fn paths_in_expressions_are_read_to_their_end() {
        assert_eq!(
            found_paths("x(std :: fs\n::read(a.b), Vec::<u8>::new())"),
            ["x", "std::fs::read", "a", "b", "Vec", "u8", "new"]
        );
    }

    #[test]
    fn a_struct_expression_is_not_a_use_tree() {
        assert_eq!(found_paths("a::B { c: d::e }"), ["a::B", "c", "d::e"]);
    }

    #[test]
    fn a_macro_call_is_not_an_inequality() {
        let tokens = lex("println!(x); a != (b); todo! {}").tokens;
        assert_eq!(macros(&tokens).map(|(name, _)| name).collect::<Vec<_>>(), ["println", "todo"]);
    }

    #[test]
    fn attributes_are_found_with_their_body() {
        let tokens = lex("#![a]\n#[b(c)] x # y").tokens;
        let found: Vec<_> = attributes(&tokens).iter().map(|a| (a.inner, a.line, a.body.len())).collect();
        assert_eq!(found, [(true, 1, 1), (false, 2, 4)]);
    }
}
