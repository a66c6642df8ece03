//! A parsed file.

use std::cell::RefCell;
use std::fmt;

use tree_sitter::{Node, Parser, Tree, TreeCursor};

use crate::facts::{Comment, Idle, Import, Unfinished};
use crate::gaps::understood;
use crate::language::{Grammar, Language};
use crate::packs;
use crate::symbol::Symbol;
use crate::testing::{Skip, Test, Tests, walk};

/// A longer file is not parsed: 8 MiB.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;

/// Why a file cannot be read as source code. Whoever asks something of it has no answer then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// Its name belongs to none of the languages.
    Unknown,
    /// It has more than [`MAX_BYTES`] bytes.
    TooLarge,
    /// It is not UTF-8; the line, from 1, of the first byte that is not.
    NotUtf8(usize),
    /// It is not of its language; the line, from 1, at which that shows first.
    Syntax(usize),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("not in a language that peers reads"),
            Self::TooLarge => write!(f, "more than {} MiB", MAX_BYTES >> 20),
            Self::NotUtf8(line) => write!(f, "line {line} is not UTF-8"),
            Self::Syntax(line) => write!(f, "syntax error at line {line}"),
        }
    }
}

impl std::error::Error for Unreadable {}

thread_local! {
    /// One parser for all files of a thread: making one costs more than a small file.
    static PARSER: RefCell<Parser> = RefCell::new(Parser::new());
}

/// A parsed file.
pub struct Source<'t> {
    text: &'t str,
    tree: Tree,
    grammar: Grammar,
}

impl<'t> Source<'t> {
    /// Parses a file.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn parse(path: &str, bytes: &'t [u8]) -> Result<Self, Unreadable> {
        Self::parse_loosely(path, bytes)?.whole()
    }

    /// The same where there is no syntax error in it.
    pub(crate) fn whole(self) -> Result<Self, Unreadable> {
        match self.first_error() {
            Some(line) => Err(Unreadable::Syntax(line)),
            None => Ok(self),
        }
    }

    /// The same where a syntax error is no hindrance: what is around it can be read.
    ///
    /// # Errors
    /// [`Unreadable`], but not [`Unreadable::Syntax`].
    pub fn parse_loosely(path: &str, bytes: &'t [u8]) -> Result<Self, Unreadable> {
        let grammar = Grammar::of(path).ok_or(Unreadable::Unknown)?;
        if bytes.len() > MAX_BYTES {
            return Err(Unreadable::TooLarge);
        }
        let text = str::from_utf8(bytes).map_err(|error| {
            let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
            Unreadable::NotUtf8(good.split(|byte| *byte == b'\n').count())
        })?;
        let parsed = |text: &str| {
            PARSER.with_borrow_mut(|parser| {
                parser.set_language(&grammar.load()).ok()?;
                parser.parse(text, None)
            })
        };
        // Only a grammar of another ABI version or a parse that was cancelled ends without a tree.
        let tree = parsed(text).ok_or(Unreadable::Unknown)?;
        let mut source = Self { text, tree, grammar };
        if source.tree.root_node().has_error()
            && let Some(tree) = understood(grammar, text).and_then(|text| parsed(&text))
        {
            source.tree = tree;
        }
        Ok(source)
    }

    /// How many places do not fit the grammar.
    #[must_use]
    pub fn errors(&self) -> usize {
        let mut count = 0;
        self.each(|node| count += usize::from(node.is_error() || node.is_missing()));
        count
    }

    /// The language.
    #[must_use]
    pub fn language(&self) -> Language {
        self.grammar.language()
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// What the file defines, in the order of its lines, nested definitions of functions left out.
    #[must_use]
    pub fn symbols(&self) -> Vec<Symbol> {
        packs::of(self.grammar).symbols(self.root(), self.text)
    }

    /// The tests of the file, and the markers that keep tests from running, each in the order of its lines.
    #[must_use]
    pub fn tests(&self) -> (Vec<Test>, Vec<Skip>) {
        let mut out = Tests::new(self.text);
        packs::of(self.grammar).tests(self.root(), &mut out);
        (out.found, out.skips)
    }

    /// Functions of the file that are no tests, and assert that something fails or give its failure back.
    #[must_use]
    pub fn helpers(&self) -> Vec<String> {
        let mut out = Tests::new(self.text);
        packs::of(self.grammar).tests(self.root(), &mut out);
        out.helpers
    }

    /// The comments of the file; documentation strings of Python are none.
    #[must_use]
    pub fn comments(&self) -> Vec<Comment> {
        let mut found = Vec::new();
        self.each(|node| {
            if matches!(node.kind(), "comment" | "line_comment" | "block_comment") {
                let before = self.text.get(..node.start_byte()).unwrap_or_default();
                let before = before.rsplit('\n').next().unwrap_or_default();
                let text = text_of(node, self.text).trim_end();
                found.push(Comment {
                    line: line(node),
                    end: line(node) + text.matches('\n').count(),
                    text: text.to_owned(),
                    alone: before.trim().is_empty(),
                });
            }
        });
        found
    }

    /// What the file uses of other modules.
    #[must_use]
    pub fn imports(&self) -> Vec<Import> {
        let mut found = Vec::new();
        self.each(|node| packs::of(self.grammar).import(node, self.text, &mut found));
        found
    }

    /// Functions and classes that do nothing, and statements that say that something is not done.
    #[must_use]
    pub fn undone(&self) -> (Vec<Idle>, Vec<Unfinished>) {
        let (mut idle, mut unfinished) = (Vec::new(), Vec::new());
        let pack = packs::of(self.grammar);
        self.each(|node| {
            idle.extend(pack.idle(node, self.text));
            unfinished.extend(pack.unfinished(node, self.text));
        });
        (idle, unfinished)
    }

    /// How many statements the file has, those within others counted too.
    #[must_use]
    pub fn statements(&self) -> usize {
        let mut count = 0;
        self.each(|node| {
            let kind = node.kind();
            let is_statement = kind.ends_with("_statement")
                || kind.ends_with("_declaration")
                || matches!(
                    kind,
                    "function_definition" | "class_definition" | "function_item" | "macro_invocation"
                );
            count += usize::from(is_statement && kind != "block_statement");
        });
        count
    }

    pub(crate) fn grammar(&self) -> Grammar {
        self.grammar
    }

    pub(crate) fn each(&self, mut visit: impl FnMut(Node<'_>)) {
        walk(self.root(), &mut |node| {
            visit(node);
            true
        });
    }

    /// The same, and `visit` says whether what is in a node is visited.
    pub(crate) fn walk(&self, mut visit: impl FnMut(Node<'_>) -> bool) {
        walk(self.root(), &mut visit);
    }

    pub(crate) fn root(&self) -> Node<'_> {
        self.tree.root_node()
    }

    /// The line of the first thing that does not fit the grammar.
    fn first_error(&self) -> Option<usize> {
        let root = self.root();
        if !root.has_error() {
            return None;
        }
        let mut cursor = root.walk();
        // Down along the nodes that have an error in them.
        loop {
            let node = cursor.node();
            if node.is_error() || node.is_missing() || !step_to_error(&mut cursor) {
                return Some(line(node));
            }
        }
    }
}

fn step_to_error(cursor: &mut TreeCursor<'_>) -> bool {
    if !cursor.goto_first_child() {
        return false;
    }
    loop {
        if cursor.node().has_error() || cursor.node().is_missing() {
            return true;
        }
        if !cursor.goto_next_sibling() {
            return false;
        }
    }
}

/// The line on which a node begins, from 1.
pub(crate) fn line(node: Node<'_>) -> usize {
    node.start_position().row + 1
}

/// The text of a node.
pub(crate) fn text_of<'t>(node: Node<'_>, text: &'t str) -> &'t str {
    text.get(node.byte_range()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_told_with_its_line() {
        let why = |path: &str, bytes: &[u8]| Source::parse(path, bytes).err();
        assert_eq!(why("a.txt", b"x"), Some(Unreadable::Unknown));
        assert_eq!(why("a.py", b"x = 1\n\xff\n"), Some(Unreadable::NotUtf8(2)));
        assert_eq!(why("a.py", &vec![b'\n'; MAX_BYTES + 1]), Some(Unreadable::TooLarge));
        for (path, text) in [
            ("a.py", "x = 1\ndef f(:\n    pass\n"),
            ("a.js", "let x;\nfunction f( {\n"),
            ("a.ts", "let x: number;\nfunction f( {\n"),
            ("a.rs", "struct A;\nfn f( {\n"),
            ("a.go", "package a\nfunc f( {\n"),
        ] {
            assert!(matches!(why(path, text.as_bytes()), Some(Unreadable::Syntax(2 | 3))), "{path}");
        }
    }

    #[test]
    fn sources_nested_without_end_neither_crash_nor_hang() {
        let deep = "(".repeat(100_000);
        for path in ["a.py", "a.js", "a.ts", "a.rs", "a.go"] {
            assert!(Source::parse(path, deep.as_bytes()).is_err(), "{path}");
        }
        let class = |n| format!("{}class A{n}:\n", " ".repeat(n));
        let classes = (0..2_000).map(class).collect::<Vec<_>>().concat();
        assert!(
            Source::parse_loosely("a.py", classes.as_bytes())
                .is_ok_and(|source| !source.symbols().is_empty())
        );
    }
}
