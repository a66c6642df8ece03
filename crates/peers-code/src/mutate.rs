//! Small changes of meaning: places at which a test suite that checks the code should turn red.

use std::ops::Range;

use tree_sitter::Node;

use crate::aside::attributes;
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
        self.walk(|node| {
            if tests.iter().any(|test| test.contains(&node.start_byte()))
                || is_no_matter(node, self.text(), self.grammar())
            {
                return false;
            }
            if node.is_named() {
                found.extend(mutation(node, self.text(), self.grammar()));
            }
            true
        });
        found.sort_by_key(|mutation| mutation.range.start);
        found
    }
}

/// What a test suite rightly does not check, or what no change leaves able to run: types, logging, the entry of a
/// script, what depends on the version that runs it, modules of tests.
fn is_no_matter(node: Node<'_>, text: &str, grammar: Grammar) -> bool {
    let kind = node.kind();
    match kind {
        "if_statement" if grammar == Grammar::Python => condition_names(node, text, &["__name__"]),
        "expression_statement" => is_logging(node, text),
        "mod_item" => is_for_tests(node, text),
        "attribute_item"
        | "inner_attribute_item"
        | "type"
        | "type_arguments"
        | "type_annotation"
        | "interface_declaration"
        | "type_alias_declaration"
        | "ambient_declaration" => true,
        _ => {
            kind.ends_with("_type")
                || (grammar == Grammar::Python
                    && node.parent().is_some_and(|parent| {
                        parent.child_by_field_name("condition") == Some(node)
                            && condition_names(parent, text, &["version_info", "TYPE_CHECKING"])
                    }))
        }
    }
}

fn condition_names(node: Node<'_>, text: &str, names: &[&str]) -> bool {
    let condition = node.child_by_field_name("condition").map(|node| text_of(node, text)).unwrap_or_default();
    condition.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| names.contains(&word))
}

/// `log.debug(x)`, `self.logger.info(x)`, `console.log(x)`, `log::warn!(x)`, `tracing::info!(x)`.
fn is_logging(statement: Node<'_>, text: &str) -> bool {
    let Some(call) = statement.named_child(0) else { return false };
    let called = call.child_by_field_name("function").or_else(|| call.child_by_field_name("macro"));
    let called = called.map(|node| text_of(node, text)).unwrap_or_default();
    let mut parts = called.split(['.', ':']).filter(|part| !part.is_empty()).rev();
    let method = parts.next().unwrap_or_default();
    let logs = |name: &str| {
        let name = name.trim_start_matches('_').to_ascii_lowercase();
        matches!(name.as_str(), "log" | "logger" | "logging" | "console" | "tracing" | "warnings")
    };
    let own = call.kind() == "macro_invocation"
        && matches!(method, "trace" | "debug" | "info" | "warn" | "error" | "eprintln" | "dbg");
    own || parts.next().is_some_and(logs)
}

/// Whether an attribute `#[cfg(test)]` stands before it.
fn is_for_tests(item: Node<'_>, text: &str) -> bool {
    attributes(item, text).any(|attribute| {
        let code = attribute.replace(' ', "");
        code.contains("cfg(test)") || code.contains("cfg(all(test,")
    })
}

fn mutation(node: Node<'_>, text: &str, grammar: Grammar) -> Option<Mutation> {
    let python = grammar == Grammar::Python;
    let (kind, at, with) = match node.kind() {
        "comparison_operator" | "binary_expression" | "boolean_operator" | "binary_operator" => {
            let operator = operator(node)?;
            let (kind, with) = other_operator(text_of(operator, text), python)?;
            // A sum of texts is no number.
            let is_text =
                |side: Node<'_>| side.kind().contains("string") || side.kind() == "reference_expression";
            if kind == MutationKind::Arithmetic && children(node).any(is_text) {
                return None;
            }
            // `a as u8 < b` begins the arguments of a type.
            let cast =
                node.child_by_field_name("left").is_some_and(|left| left.kind() == "type_cast_expression");
            if cast && with == "<" {
                return None;
            }
            (kind, operator, apart(operator, with, text))
        }
        "if_statement" | "if_expression" | "elif_clause" | "while_statement" | "while_expression" => {
            let condition = node.child_by_field_name("condition")?;
            // What is a comparison or a connection of some is changed there.
            let inner =
                if condition.kind() == "parenthesized_expression" { first_of(condition)? } else { condition };
            // `while True` has no condition to get wrong.
            let is_literal = inner.kind().contains("literal")
                || matches!(inner.kind(), "true" | "false" | "integer" | "number");
            if operator(inner).is_some() || inner.kind().contains("let_") || is_literal {
                return None;
            }
            let code = text_of(inner, text);
            (
                MutationKind::Condition,
                inner,
                if python { format!("not ({code})") } else { format!("!({code})") },
            )
        }
        // `pair.0` is a name.
        "integer_literal" if node.parent().is_some_and(|parent| parent.kind() == "field_expression") => {
            return None;
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
            let value = first_of(node)?;
            let nothing = if python { "None" } else { "undefined" };
            if matches!(text_of(value, text), "None" | "undefined" | "null") {
                return None;
            }
            // `return(a)`
            let glued = before(value, text).is_some_and(char::is_alphanumeric);
            (MutationKind::Return, value, format!("{}{nothing}", if glued { " " } else { "" }))
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

/// The first thing in it that is no comment.
fn first_of(node: Node<'_>) -> Option<Node<'_>> {
    children(node).find(|child| !child.is_extra())
}

fn before(node: Node<'_>, text: &str) -> Option<char> {
    text.get(..node.start_byte()).and_then(|text| text.chars().next_back())
}

/// `a+-b` must not become `a--b`.
fn apart(operator: Node<'_>, with: &str, text: &str) -> String {
    let after = text.get(operator.end_byte()..).and_then(|text| text.chars().next());
    let joins = |c: Option<char>| c.is_some_and(|c| "+-*/<>=!&|".contains(c));
    if joins(before(operator, text)) || joins(after) { format!(" {with} ") } else { with.to_owned() }
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

fn other_operator(operator: &str, python: bool) -> Option<(MutationKind, &'static str)> {
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
        "in" if python => (Comparison, "not in"),
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
