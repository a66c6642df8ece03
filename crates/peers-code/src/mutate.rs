//! Small changes of meaning: places at which a test suite that checks the code should turn red.

use std::ops::Range;

use tree_sitter::Node;

use crate::language::Grammar;
use crate::source::{Source, line, text_of};
use crate::symbol::children;
use crate::testing::one_line;

/// What a mutation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MutationKind {
    /// A comparison becomes its opposite, or takes its limit in.
    Comparison,
    /// `and` becomes `or`, and the other way round.
    Connective,
    /// A condition is negated.
    Condition,
    /// A whole number becomes the next one.
    Number,
    /// `true` becomes `false`, and the other way round.
    Boolean,
    /// A call whose result nobody uses is left out.
    Call,
    /// Nothing is returned in place of a value.
    Return,
    /// `+` becomes `-`, `*` becomes `/`, and the other way round.
    Arithmetic,
}

/// A place, and what is written there instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutation {
    /// What it does.
    pub kind: MutationKind,
    /// The line, from 1.
    pub line: usize,
    /// The bytes that are replaced.
    pub range: Range<usize>,
    /// What stands there then.
    pub with: String,
    /// Both, for people: `a < b -> a <= b`.
    pub shown: String,
}

impl Mutation {
    /// The text with the change made.
    #[must_use]
    pub fn apply(&self, text: &str) -> String {
        let before = text.get(..self.range.start).unwrap_or_default();
        let after = text.get(self.range.end..).unwrap_or_default();
        format!("{before}{}{after}", self.with)
    }
}

impl Source<'_> {
    /// The mutations of this file outside of its tests, in the order of its bytes.
    #[must_use]
    pub fn mutations(&self) -> Vec<Mutation> {
        let tests: Vec<Range<usize>> = self.tests().0.into_iter().map(|test| test.body).collect();
        let mut found = Vec::new();
        self.each(|node| {
            if node.is_named() && !tests.iter().any(|test| test.contains(&node.start_byte())) {
                found.extend(mutation(node, self.text(), self.grammar()));
            }
        });
        found.sort_by_key(|mutation| mutation.range.start);
        found
    }
}

fn mutation(node: Node<'_>, text: &str, grammar: Grammar) -> Option<Mutation> {
    let python = grammar == Grammar::Python;
    let (kind, at, with) = match node.kind() {
        "comparison_operator" | "binary_expression" | "boolean_operator" | "binary_operator" => {
            let operator = operator(node)?;
            let (kind, with) = other_operator(text_of(operator, text))?;
            // A sum of texts is no number.
            if kind == MutationKind::Arithmetic && children(node).any(|side| side.kind().contains("string")) {
                return None;
            }
            (kind, operator, with.to_owned())
        }
        "if_statement" | "if_expression" | "elif_clause" | "while_statement" | "while_expression" => {
            let condition = node.child_by_field_name("condition")?;
            // What is a comparison or a connection of some is changed there.
            let inner = if condition.kind() == "parenthesized_expression" {
                condition.named_child(0)?
            } else {
                condition
            };
            if operator(inner).is_some() || inner.kind().contains("let_") || inner.kind().contains("literal")
            {
                return None;
            }
            let code = text_of(inner, text);
            (
                MutationKind::Condition,
                inner,
                if python { format!("not ({code})") } else { format!("!({code})") },
            )
        }
        "integer" | "number" | "integer_literal" | "int_literal" => {
            let digits = text_of(node, text);
            let number: u64 = digits.parse().ok()?;
            (MutationKind::Number, node, number.checked_add(1)?.to_string())
        }
        "true" | "false" | "boolean_literal" => {
            let with = match text_of(node, text) {
                "true" => "false",
                "false" => "true",
                "True" => "False",
                "False" => "True",
                _ => return None,
            };
            (MutationKind::Boolean, node, with.to_owned())
        }
        "expression_statement" => {
            let call = node.named_child(0)?;
            if !matches!(call.kind(), "call" | "call_expression" | "await" | "await_expression") {
                return None;
            }
            (MutationKind::Call, node, if python { "pass" } else { "{}" }.to_owned())
        }
        "return_statement" if grammar != Grammar::Go => {
            let value = node.named_child(0)?;
            let nothing = if python { "None" } else { "undefined" };
            if matches!(text_of(value, text), "None" | "undefined" | "null") {
                return None;
            }
            (MutationKind::Return, value, nothing.to_owned())
        }
        _ => return None,
    };
    // A number of its own says little, and the first line of much code nothing.
    let alone = matches!(kind, MutationKind::Number | MutationKind::Boolean);
    let parent = alone.then(|| node.parent()).flatten();
    let shown = parent.and_then(|parent| shown(parent, at, &with, text));
    let shown = shown
        .or_else(|| self::shown(node, at, &with, text))
        .unwrap_or_else(|| format!("{} -> {with}", one_line(&first_line(text_of(at, text)))));
    Some(Mutation { kind, line: line(at), range: at.byte_range(), with, shown })
}

/// The code around a change, before and after it, in one line; nothing where that line is the same.
fn shown(around: Node<'_>, at: Node<'_>, with: &str, text: &str) -> Option<String> {
    let whole = text_of(around, text);
    let (start, end) = (at.start_byte() - around.start_byte(), at.end_byte() - around.start_byte());
    let changed = format!("{}{with}{}", whole.get(..start)?, whole.get(end..)?);
    let (before, after) = (one_line(&first_line(whole)), one_line(&first_line(&changed)));
    (before != after).then(|| format!("{before} -> {after}"))
}

fn first_line(text: &str) -> String {
    const MOST: usize = 80;
    let first = text.lines().next().unwrap_or_default();
    first.chars().take(MOST).collect()
}

/// The operator of a node with two sides.
fn operator(node: Node<'_>) -> Option<Node<'_>> {
    if let Some(operator) = node.child_by_field_name("operator") {
        return (node.child_by_field_name("left").is_some()).then_some(operator);
    }
    let mut cursor = node.walk();
    let mut all = node.children_by_field_name("operators", &mut cursor);
    let first = all.next();
    // `a < b < c` says two things.
    first.filter(|_| all.next().is_none())
}

fn other_operator(operator: &str) -> Option<(MutationKind, &'static str)> {
    use MutationKind::{Arithmetic, Comparison, Connective};
    Some(match operator {
        "==" => (Comparison, "!="),
        "!=" => (Comparison, "=="),
        "===" => (Comparison, "!=="),
        "!==" => (Comparison, "==="),
        "<" => (Comparison, "<="),
        "<=" => (Comparison, "<"),
        ">" => (Comparison, ">="),
        ">=" => (Comparison, ">"),
        "in" => (Comparison, "not in"),
        "not in" => (Comparison, "in"),
        "is" => (Comparison, "is not"),
        "is not" => (Comparison, "is"),
        "and" => (Connective, "or"),
        "or" => (Connective, "and"),
        "&&" => (Connective, "||"),
        "||" => (Connective, "&&"),
        "+" => (Arithmetic, "-"),
        "-" => (Arithmetic, "+"),
        "*" => (Arithmetic, "/"),
        "/" => (Arithmetic, "*"),
        _ => return None,
    })
}
