//! Imports and idle bodies of JavaScript and TypeScript.

use tree_sitter::Node;

use crate::facts::{Idle, Import, Unfinished};
use crate::source::{line, text_of};
use crate::symbol::children;
use crate::testing::one_line;

pub(super) fn import(node: Node<'_>, text: &str, out: &mut Vec<Import>) {
    let string = |node: Node<'_>| {
        (node.kind() == "string").then(|| text_of(node, text).trim_matches(['"', '\'']).to_owned())
    };
    match node.kind() {
        "import_statement" | "export_statement" => {
            let Some(module) = node.child_by_field_name("source").and_then(string) else { return };
            let mut names = Vec::new();
            crate::testing::walk(node, &mut |inner| {
                if matches!(inner.kind(), "import_specifier" | "export_specifier") {
                    names
                        .extend(inner.child_by_field_name("name").map(|name| text_of(name, text).to_owned()));
                }
                true
            });
            out.push(Import { line: line(node), module, names });
        }
        "call_expression" => {
            let function = node.child_by_field_name("function").map(|function| text_of(function, text));
            let first = node.child_by_field_name("arguments").and_then(|list| list.named_child(0));
            if let (Some("require" | "import"), Some(module)) = (function, first.and_then(string)) {
                out.push(Import { line: line(node), module, names: Vec::new() });
            }
        }
        _ => {}
    }
}

pub(super) fn idle(node: Node<'_>, text: &str) -> Option<Idle> {
    let named = match node.kind() {
        "function_declaration"
        | "generator_function_declaration"
        | "method_definition"
        | "class_declaration" => node,
        "arrow_function" | "function_expression" => node
            .parent()
            .filter(|parent| matches!(parent.kind(), "variable_declarator" | "public_field_definition"))?,
        _ => return None,
    };
    let body = node.child_by_field_name("body")?;
    let mut statements = children(body).filter(|child| child.kind() != "comment");
    let returns = match (body.kind(), statements.next()) {
        ("statement_block" | "class_body", None) => None,
        ("statement_block", Some(only)) => {
            if only.kind() != "return_statement" || statements.next().is_some() {
                return None;
            }
            Some(constant(only.named_child(0), text)?)
        }
        ("class_body", Some(_)) => return None,
        // An arrow function without braces.
        _ => Some(constant(Some(body), text)?),
    };
    let name = text_of(named.child_by_field_name("name")?, text).to_owned();
    // `constructor(private readonly a: A) {}` declares members.
    let params = node.child_by_field_name("parameters").map(|list| text_of(list, text)).unwrap_or_default();
    let members = ["private ", "public ", "protected ", "readonly "].iter().any(|word| params.contains(word));
    let extends = node.kind() == "class_declaration" && node.named_child_count() > 2;
    Some(Idle { name, line: line(named), returns, declares: members || extends })
}

fn constant(node: Option<Node<'_>>, text: &str) -> Option<String> {
    let Some(node) = node else { return Some("undefined".to_owned()) };
    let node = if node.kind() == "parenthesized_expression" { node.named_child(0)? } else { node };
    let is_constant = match node.kind() {
        "null" | "undefined" | "true" | "false" | "number" | "string" => true,
        "object" | "array" => node.named_child_count() == 0,
        _ => false,
    };
    is_constant.then(|| one_line(text_of(node, text)))
}

pub(super) fn unfinished(node: Node<'_>, text: &str) -> Option<Unfinished> {
    if node.kind() != "throw_statement" {
        return None;
    }
    let code = one_line(text_of(node, text));
    super::super::says_unfinished(&code).then(|| Unfinished { line: line(node), code, declares: false })
}
