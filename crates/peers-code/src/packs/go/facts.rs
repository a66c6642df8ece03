//! Imports and idle bodies of Go.

use tree_sitter::Node;

use crate::facts::{Idle, Import, Unfinished};
use crate::source::{line, text_of};
use crate::symbol::children;
use crate::testing::one_line;

pub(super) fn import(node: Node<'_>, text: &str, out: &mut Vec<Import>) {
    if node.kind() == "import_spec"
        && let Some(path) = node.child_by_field_name("path")
    {
        let module = text_of(path, text).trim_matches(['"', '`']).to_owned();
        out.push(Import { line: line(node), module, names: Vec::new() });
    }
}

pub(super) fn idle(node: Node<'_>, text: &str) -> Option<Idle> {
    if !matches!(node.kind(), "function_declaration" | "method_declaration") {
        return None;
    }
    let name = text_of(node.child_by_field_name("name")?, text).to_owned();
    let body = node.child_by_field_name("body")?;
    let mut statements = children(body)
        .flat_map(
            |child| if child.kind() == "statement_list" { children(child).collect() } else { vec![child] },
        )
        .filter(|child| child.kind() != "comment");
    let returns = match statements.next() {
        None => None,
        Some(_) if statements.next().is_some() => return None,
        Some(only) => Some(constant(only, text)?),
    };
    let is_start = matches!(name.as_str(), "main" | "init");
    Some(Idle { name, line: line(node), returns, declares: is_start })
}

/// `return nil`, `return 0, nil`, `return ""`.
fn constant(node: Node<'_>, text: &str) -> Option<String> {
    if node.kind() != "return_statement" {
        return None;
    }
    let values = node.named_child(0)?;
    let is_constant = children(values).all(|value| match value.kind() {
        "nil" | "true" | "false" | "int_literal" | "float_literal" | "interpreted_string_literal" => true,
        "composite_literal" => {
            value.child_by_field_name("body").is_some_and(|body| body.named_child_count() == 0)
        }
        _ => false,
    });
    is_constant.then(|| one_line(text_of(values, text)))
}

pub(super) fn unfinished(node: Node<'_>, text: &str) -> Option<Unfinished> {
    if node.kind() != "call_expression" || text_of(node.child_by_field_name("function")?, text) != "panic" {
        return None;
    }
    let code = one_line(text_of(node, text));
    super::super::says_unfinished(&code).then(|| Unfinished { line: line(node), code, declares: false })
}
