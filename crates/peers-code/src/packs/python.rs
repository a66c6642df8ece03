//! Python.

mod facts;
mod tests;

use std::collections::HashSet;

use tree_sitter::Node;

use super::Pack;
use crate::facts::{Idle, Import, Unfinished};
use crate::symbol::{Kind, Scope, Symbol, Symbols, children};
use crate::testing::Tests;

pub(crate) struct Python;

impl Pack for Python {
    fn symbols(&self, root: Node<'_>, text: &str) -> Vec<Symbol> {
        let mut out = Symbols::new(text);
        let mut exported = None;
        block(&mut out, root, &Scope::top(), &mut exported);
        if let Some(names) = exported {
            out.publish(|name| names.contains(name));
        }
        out.done()
    }

    fn tests(&self, root: Node<'_>, out: &mut Tests<'_>) {
        tests::read(out, root);
    }

    fn import(&self, node: Node<'_>, text: &str, out: &mut Vec<Import>) {
        facts::import(node, text, out);
    }

    fn idle(&self, node: Node<'_>, text: &str) -> Option<Idle> {
        facts::idle(node, text)
    }

    fn unfinished(&self, node: Node<'_>, text: &str) -> Option<Unfinished> {
        facts::unfinished(node, text)
    }
}

/// The definitions of a block, and of the branches in it.
fn block<'t>(out: &mut Symbols<'t>, node: Node<'_>, scope: &Scope, exported: &mut Option<HashSet<&'t str>>) {
    for child in children(node) {
        match child.kind() {
            "decorated_definition" => {
                if let Some(definition) = child.child_by_field_name("definition") {
                    define(out, definition, scope, exported);
                }
            }
            "function_definition" | "class_definition" => define(out, child, scope, exported),
            "if_statement" | "try_statement" | "else_clause" | "elif_clause" | "except_clause"
            | "finally_clause" | "with_statement" | "block" => block(out, child, scope, exported),
            "expression_statement" => value(out, child, scope, exported),
            _ => {}
        }
    }
}

fn define<'t>(out: &mut Symbols<'t>, node: Node<'_>, scope: &Scope, exported: &mut Option<HashSet<&'t str>>) {
    let Some(name) = out.field(node, "name") else { return };
    let body = node.child_by_field_name("body");
    let public = is_public(name);
    if node.kind() == "class_definition" {
        out.add(scope, (Kind::Class, name, public), node, body, Vec::new());
        let inner = scope.within(name, public, true);
        if let Some(body) = body.filter(|_| !inner.is_too_deep()) {
            block(out, body, &inner, exported);
        }
        return;
    }
    let params = node.child_by_field_name("parameters").map_or_else(Vec::new, |list| {
        let named = children(list).filter_map(|param| parameter(out, param));
        named.skip(usize::from(scope.in_class && !is_static(out, node))).collect()
    });
    out.add(scope, (scope.function(), name, public), node, body, params);
}

/// The name of a parameter, with its stars.
fn parameter(out: &Symbols<'_>, node: Node<'_>) -> Option<String> {
    let name = match node.kind() {
        "identifier" | "list_splat_pattern" | "dictionary_splat_pattern" => out.of(node),
        "default_parameter" | "typed_default_parameter" => out.field(node, "name")?,
        "typed_parameter" => out.of(node.named_child(0)?),
        _ => return None,
    };
    Some(name.to_owned())
}

fn is_static(out: &Symbols<'_>, node: Node<'_>) -> bool {
    let Some(parent) = node.parent().filter(|parent| parent.kind() == "decorated_definition") else {
        return false;
    };
    children(parent).any(|child| child.kind() == "decorator" && out.of(child).trim() == "@staticmethod")
}

/// `NAME = ...` at the top, and the list of what is exported.
fn value<'t>(out: &mut Symbols<'t>, node: Node<'_>, scope: &Scope, exported: &mut Option<HashSet<&'t str>>) {
    let Some(node) = node.named_child(0) else { return };
    if !matches!(node.kind(), "assignment" | "augmented_assignment") {
        return;
    }
    let Some(left) = node.child_by_field_name("left").filter(|left| left.kind() == "identifier") else {
        return;
    };
    let name = out.of(left);
    if name == "__all__" && !scope.in_class {
        let right = node.child_by_field_name("right");
        let names = right.into_iter().flat_map(children).filter(|item| item.kind() == "string");
        let names = names.map(|item| out.of(item).trim_matches(['"', '\'']));
        exported.get_or_insert_default().extend(names);
        return;
    }
    if node.kind() == "assignment" && !scope.in_class {
        let body = node.child_by_field_name("right");
        out.add(scope, (Kind::Value, name, is_public(name)), node, body, Vec::new());
    }
}

fn is_public(name: &str) -> bool {
    !name.starts_with('_') || (name.starts_with("__") && name.ends_with("__") && name.len() > 4)
}
