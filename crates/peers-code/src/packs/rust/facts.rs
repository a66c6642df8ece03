//! Imports and idle bodies of Rust.

use tree_sitter::Node;

use crate::facts::{Idle, Import, Unfinished};
use crate::source::{line, text_of};
use crate::symbol::children;
use crate::testing::one_line;

pub(super) fn import(node: Node<'_>, text: &str, out: &mut Vec<Import>) {
    if node.kind() == "use_declaration"
        && let Some(tree) = node.child_by_field_name("argument")
    {
        used(tree, "", line(node), text, out);
    }
}

/// The leaves of a tree of uses, each with its whole path.
fn used(node: Node<'_>, prefix: &str, at: usize, text: &str, out: &mut Vec<Import>) {
    let joined = |name: &str| if prefix.is_empty() { name.to_owned() } else { format!("{prefix}::{name}") };
    let path = node.child_by_field_name("path").map(|path| text_of(path, text));
    match node.kind() {
        "scoped_use_list" | "use_list" => {
            let inner = path.map_or_else(|| prefix.to_owned(), joined);
            let list = node.child_by_field_name("list").unwrap_or(node);
            for child in children(list) {
                used(child, &inner, at, text, out);
            }
        }
        "use_as_clause" => {
            if let Some(path) = node.child_by_field_name("path") {
                used(path, prefix, at, text, out);
            }
        }
        "use_wildcard" => {
            let of = node.named_child(0).map(|of| text_of(of, text)).unwrap_or_default();
            out.push(Import { line: at, module: joined(of), names: Vec::new() });
        }
        "self" => out.push(Import { line: at, module: prefix.to_owned(), names: Vec::new() }),
        "scoped_identifier" => {
            let name = node.child_by_field_name("name").map(|name| text_of(name, text)).unwrap_or_default();
            out.push(Import {
                line: at,
                module: joined(path.unwrap_or_default()),
                names: vec![name.to_owned()],
            });
        }
        _ if prefix.is_empty() => {
            out.push(Import { line: at, module: text_of(node, text).to_owned(), names: Vec::new() });
        }
        _ => out.push(Import {
            line: at,
            module: prefix.to_owned(),
            names: vec![text_of(node, text).to_owned()],
        }),
    }
}

pub(super) fn idle(node: Node<'_>, text: &str) -> Option<Idle> {
    if node.kind() != "function_item" {
        return None;
    }
    let name = text_of(node.child_by_field_name("name")?, text).to_owned();
    let body = node.child_by_field_name("body")?;
    let mut statements =
        children(body).filter(|child| !matches!(child.kind(), "line_comment" | "block_comment"));
    let returns = match statements.next() {
        None if node.child_by_field_name("return_type").is_some() => return None,
        None => None,
        Some(_) if statements.next().is_some() => return None,
        Some(only) => Some(constant(only, text)?),
    };
    // What a trait asks for may well be to do nothing.
    let of_trait = node
        .parent()
        .and_then(|list| list.parent())
        .is_some_and(|item| item.kind() == "trait_item" || item.child_by_field_name("trait").is_some());
    let is_main = name == "main";
    Some(Idle { name, line: line(node), returns, declares: of_trait || is_main })
}

fn constant(node: Node<'_>, text: &str) -> Option<String> {
    let node = match node.kind() {
        "expression_statement" | "return_expression" => return constant(node.named_child(0)?, text),
        _ => node,
    };
    let code = one_line(text_of(node, text));
    let is_constant = match node.kind() {
        "boolean_literal" | "integer_literal" | "float_literal" | "string_literal" | "unit_expression" => {
            true
        }
        _ => {
            matches!(
                code.as_str(),
                "None"
                    | "Ok(())"
                    | "Default::default()"
                    | "Self::default()"
                    | "Vec::new()"
                    | "String::new()"
                    | "vec![]"
                    | "Some(())"
                    | "Ok(Default::default())"
                    | "Ok(None)"
                    | "Ok(Vec::new())"
            )
        }
    };
    is_constant.then_some(code)
}

pub(super) fn unfinished(node: Node<'_>, text: &str) -> Option<Unfinished> {
    if node.kind() != "macro_invocation" {
        return None;
    }
    let name = text_of(node.child_by_field_name("macro")?, text);
    let name = name.rsplit("::").next().unwrap_or(name);
    let code = one_line(text_of(node, text));
    let says =
        matches!(name, "todo" | "unimplemented") || (name == "panic" && super::super::says_unfinished(&code));
    says.then(|| Unfinished { line: line(node), code, declares: false })
}
