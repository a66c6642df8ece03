//! Tests, and what keeps them from running.

use std::ops::Range;

use tree_sitter::Node;

use crate::source::line;

/// A test, as its runner would find it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// Its name with those that it stands in, joined as its runner joins them.
    pub path: String,
    /// The line on which it begins, from 1.
    pub line: usize,
    /// The line on which it ends.
    pub end: usize,
    /// The bytes of its body.
    pub body: Range<usize>,
    /// What it asserts: each assertion in one line.
    pub asserts: Vec<String>,
    /// It asserts that something fails.
    pub expects_error: bool,
}

/// How a marker keeps a test from telling anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipKind {
    /// It is not run.
    Skip,
    /// It is not run under a condition.
    Conditional,
    /// It is run, and may fail.
    MayFail,
    /// The others are not run.
    Only,
}

/// A marker that keeps tests from running, or from failing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    /// What it does.
    pub kind: SkipKind,
    /// Its line, from 1.
    pub line: usize,
    /// The marker, in one line.
    pub marker: String,
    /// The test, the class or the group that it is about; empty for the whole file.
    pub target: String,
    /// The reason that it gives, where that is a literal.
    pub reason: Option<String>,
    /// The bytes of what it is about; empty for the whole file and for a call within a test.
    pub guarded: Range<usize>,
}

/// Collects the tests and markers of a file.
pub(crate) struct Tests<'t> {
    pub(crate) text: &'t str,
    pub(crate) found: Vec<Test>,
    pub(crate) skips: Vec<Skip>,
    /// Functions that are no tests, and by which something is asserted to fail.
    pub(crate) helpers: Vec<String>,
}

impl<'t> Tests<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, found: Vec::new(), skips: Vec::new(), helpers: Vec::new() }
    }

    pub(crate) fn of(&self, node: Node<'_>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    pub(crate) fn field(&self, node: Node<'_>, field: &str) -> Option<&'t str> {
        node.child_by_field_name(field).map(|node| self.of(node))
    }

    /// Adds a test whose assertions `look` finds in its body.
    pub(crate) fn test(
        &mut self,
        path: String,
        node: Node<'_>,
        body: Node<'_>,
        look: impl Fn(&Self, Node<'_>) -> Option<Assertion>,
    ) {
        let (mut asserts, mut expects_error) = (Vec::new(), false);
        walk(body, &mut |inner| {
            let Some(found) = look(self, inner) else { return true };
            expects_error |= found != Assertion::Plain;
            if found != Assertion::Hint {
                asserts.push(self.stated(inner));
            }
            // What stands inside of an assertion is a part of it.
            found == Assertion::Hint
        });
        let (line, end) = (line(node), node.end_position().row + 1);
        self.found.push(Test { path, line, end, body: body.byte_range(), asserts, expects_error });
    }

    /// What an assertion says: it, and the condition of the `if` that it alone is for.
    fn stated(&self, node: Node<'_>) -> String {
        let mut above = node.parent();
        while let Some(node) =
            above.filter(|node| matches!(node.kind(), "expression_statement" | "statement_list" | "block"))
        {
            above = node.parent();
        }
        let guard = above.filter(|node| node.kind() == "if_statement");
        let part = |field| guard.and_then(|guard| self.field(guard, field));
        let all = [part("initializer"), part("condition"), Some(self.of(node))];
        one_line(&all.into_iter().flatten().collect::<Vec<_>>().join("; "))
    }

    /// Adds a function that is no test, where `look` finds an assertion of a failure in its body.
    pub(crate) fn helper(
        &mut self,
        name: &str,
        body: Node<'_>,
        look: impl Fn(&Self, Node<'_>) -> Option<Assertion>,
    ) {
        let mut of_error = false;
        walk(body, &mut |inner| {
            of_error |= look(self, inner) == Some(Assertion::OfError);
            !of_error
        });
        if of_error {
            self.helpers.push(name.to_owned());
        }
    }

    pub(crate) fn skip(
        &mut self,
        kind: SkipKind,
        marker: Node<'_>,
        target: impl Into<String>,
        reason: Option<String>,
        guarded: Option<Node<'_>>,
    ) {
        self.skips.push(Skip {
            kind,
            line: line(marker),
            marker: one_line(self.of(marker)),
            target: target.into(),
            reason,
            guarded: guarded.map_or(0..0, |node| node.byte_range()),
        });
    }
}

/// What a node says of the test that it stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Assertion {
    /// Something is so.
    Plain,
    /// Something fails.
    OfError,
    /// What is asserted around it is about a failure.
    Hint,
}

/// Whether a function asserts something, by its name.
pub(crate) fn asserts(name: &str) -> bool {
    const WORDS: [&str; 7] = ["assert", "expect", "require", "should", "check", "verify", "ensure"];
    let lower = name.to_ascii_lowercase();
    WORDS.iter().any(|word| lower.starts_with(word))
}

/// Visits a node and all below it, from the first on, as deep as `visit` says.
pub(crate) fn walk<'n>(node: Node<'n>, visit: &mut dyn FnMut(Node<'n>) -> bool) {
    let mut cursor = node.walk();
    loop {
        if visit(cursor.node()) && cursor.goto_first_child() {
            continue;
        }
        loop {
            // A cursor does not leave the node that it was made for.
            if cursor.goto_next_sibling() {
                break;
            }
            if !cursor.goto_parent() {
                return;
            }
        }
    }
}

/// A text with each run of white space as one space.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
