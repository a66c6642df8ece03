//! Tests of pytest and unittest.

use tree_sitter::Node;

use crate::symbol::children;
use crate::testing::{Assertion, SkipKind, Tests, asserts, walk};

pub(super) fn read(out: &mut Tests<'_>, root: Node<'_>) {
    block(out, root, "");
    walk(root, &mut |node| {
        called(out, node);
        true
    });
    out.skips.sort_by_key(|skip| skip.line);
}

fn block(out: &mut Tests<'_>, node: Node<'_>, prefix: &str) {
    for child in children(node) {
        match child.kind() {
            "decorated_definition" => {
                if let Some(definition) = child.child_by_field_name("definition") {
                    define(out, definition, child, prefix);
                }
            }
            "function_definition" | "class_definition" => define(out, child, child, prefix),
            "if_statement" | "try_statement" | "else_clause" | "elif_clause" | "except_clause"
            | "with_statement" | "block" => block(out, child, prefix),
            "expression_statement" => module_mark(out, child, prefix),
            _ => {}
        }
    }
}

fn define(out: &mut Tests<'_>, node: Node<'_>, whole: Node<'_>, prefix: &str) {
    const DEEPEST: usize = 20;
    let (Some(name), Some(body)) = (out.field(node, "name"), node.child_by_field_name("body")) else {
        return;
    };
    let path = format!("{prefix}{name}");
    let is_class = node.kind() == "class_definition";
    if !is_class && !name.starts_with("test") {
        out.helper(name, body, assertion);
        return;
    }
    for decorator in children(whole).filter(|child| child.kind() == "decorator") {
        if let Some((kind, reason)) = decorator.named_child(0).and_then(|mark| marker(out, mark)) {
            out.skip(kind, decorator, path.clone(), reason, Some(node));
        }
    }
    if !is_class {
        out.test(path, node, body, assertion);
    } else if path.matches('.').count() < DEEPEST {
        block(out, body, &format!("{path}."));
    }
}

/// `pytestmark = ...`, one mark or several.
fn module_mark(out: &mut Tests<'_>, node: Node<'_>, prefix: &str) {
    let Some(node) = node.named_child(0).filter(|node| node.kind() == "assignment") else { return };
    if out.field(node, "left") != Some("pytestmark") {
        return;
    }
    let Some(right) = node.child_by_field_name("right") else { return };
    let marks: Vec<Node<'_>> = match right.kind() {
        "list" | "tuple" => children(right).collect(),
        _ => vec![right],
    };
    for mark in marks {
        if let Some((kind, reason)) = marker(out, mark) {
            out.skip(kind, mark, prefix.trim_end_matches('.'), reason, None);
        }
    }
}

/// What a mark does to what it stands at, and why.
fn marker(out: &Tests<'_>, node: Node<'_>) -> Option<(SkipKind, Option<String>)> {
    let (name, call) = match node.kind() {
        "call" => (out.field(node, "function")?, Some(node)),
        _ => (out.of(node), None),
    };
    let (of, name) = name.rsplit_once('.').unwrap_or(("", name));
    let (kind, place) = match name {
        "skip" => (SkipKind::Skip, 0),
        "skipIf" | "skipUnless" | "skipif" => (SkipKind::Conditional, 1),
        "xfail" | "expectedFailure" => (SkipKind::MayFail, usize::MAX),
        _ => return None,
    };
    // A `skip` of something that has nothing to do with tests.
    let known = of.is_empty() || of.ends_with("mark") || of == "unittest" || of == "pytest" || of == "case";
    let place = if name == "skipif" { usize::MAX } else { place };
    known.then(|| (kind, call.and_then(|call| reason(out, call, place))))
}

/// The literal after `reason=` or `msg=`, or at a place of the arguments.
fn reason(out: &Tests<'_>, call: Node<'_>, place: usize) -> Option<String> {
    let arguments = call.child_by_field_name("arguments")?;
    let named = children(arguments).find(|argument| {
        argument.kind() == "keyword_argument"
            && matches!(out.field(*argument, "name"), Some("reason" | "msg"))
    });
    let value = if let Some(named) = named {
        named.child_by_field_name("value")?
    } else {
        let mut plain = children(arguments).filter(|argument| argument.kind() != "keyword_argument");
        plain.nth(place)?
    };
    literal(out, value)
}

/// The text of a string literal, of several in a row, or of several that are added.
fn literal(out: &Tests<'_>, node: Node<'_>) -> Option<String> {
    match node.kind() {
        "string" => {
            let parts = children(node).filter(|part| part.kind() == "string_content");
            Some(parts.map(|part| out.of(part)).collect())
        }
        "concatenated_string" | "parenthesized_expression" | "binary_operator" => {
            children(node).map(|part| literal(out, part)).collect()
        }
        _ => None,
    }
}

/// Calls within a test that end it: `pytest.skip()`, `self.skipTest()`, `raise SkipTest()`.
fn called(out: &mut Tests<'_>, node: Node<'_>) {
    if node.kind() != "call" {
        return;
    }
    let Some(name) = out.field(node, "function") else { return };
    let kind = match name.rsplit('.').next().unwrap_or(name) {
        "skip" if name == "pytest.skip" => SkipKind::Skip,
        "xfail" if name == "pytest.xfail" => SkipKind::MayFail,
        "skipTest" | "SkipTest" => SkipKind::Skip,
        _ => return,
    };
    let (target, conditional) = inside(out, node);
    let kind = if conditional && kind == SkipKind::Skip { SkipKind::Conditional } else { kind };
    let reason = reason(out, node, 0);
    out.skip(kind, node, target, reason, None);
}

/// The function that a call stands in, and whether a branch stands between.
fn inside(out: &Tests<'_>, node: Node<'_>) -> (String, bool) {
    let (mut names, mut conditional) = (Vec::new(), false);
    let mut above = node.parent();
    while let Some(node) = above {
        match node.kind() {
            "function_definition" | "class_definition" => names.extend(out.field(node, "name")),
            "if_statement" | "except_clause" | "conditional_expression" if names.is_empty() => {
                conditional = true;
            }
            _ => {}
        }
        above = node.parent();
    }
    names.reverse();
    (names.join("."), conditional)
}

fn assertion(out: &Tests<'_>, node: Node<'_>) -> Option<Assertion> {
    const OF_ERROR: [&str; 6] =
        ["raises", "assertRaises", "assertRaisesRegex", "warns", "assertWarns", "assertRaisesMessage"];
    match node.kind() {
        "assert_statement" => Some(Assertion::Plain),
        "call" => {
            let name = out.field(node, "function")?;
            let name = name.rsplit('.').next().unwrap_or(name);
            if OF_ERROR.contains(&name) {
                Some(Assertion::OfError)
            } else {
                (asserts(name) || name == "fail").then_some(Assertion::Plain)
            }
        }
        _ => None,
    }
}
