//! Rust.

mod facts;
mod tests;

use tree_sitter::Node;

use super::Pack;
use crate::facts::{Idle, Import, Unfinished};
use crate::symbol::{Kind, Scope, Symbol, Symbols, children};
use crate::testing::Tests;

pub(crate) struct Rust;

impl Pack for Rust {
    fn symbols(&self, root: Node<'_>, text: &str) -> Vec<Symbol> {
        let mut out = Symbols::new(text);
        items(&mut out, root, &Scope::top(), false);
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

/// The items of a file or a body; those of a trait, and of its implementations, are as public as it.
fn items(out: &mut Symbols<'_>, node: Node<'_>, scope: &Scope, of_trait: bool) {
    let mut is_test = false;
    for child in children(node) {
        if child.kind() == "attribute_item" {
            is_test |= out.of(child).contains("cfg(test)");
            continue;
        }
        if !matches!(child.kind(), "line_comment" | "block_comment") && !std::mem::take(&mut is_test) {
            item(out, child, scope, of_trait);
        }
    }
}

fn item(out: &mut Symbols<'_>, node: Node<'_>, scope: &Scope, of_trait: bool) {
    let public = of_trait || is_public(out, node);
    let body = node.child_by_field_name("body");
    let name = out.field(node, "name").unwrap_or_default();
    match node.kind() {
        "function_item" | "function_signature_item" => {
            let params = node.child_by_field_name("parameters").map_or_else(Vec::new, |list| {
                let each = children(list).filter(|param| param.kind() == "parameter");
                each.filter_map(|param| out.field(param, "pattern").map(str::to_owned)).collect()
            });
            out.add(scope, (scope.function(), name, public), node, body, params);
        }
        "struct_item" | "union_item" => out.add(scope, (Kind::Class, name, public), node, None, Vec::new()),
        "enum_item" => out.add(scope, (Kind::Class, name, public), node, body, Vec::new()),
        "type_item" | "associated_type" => {
            out.add(scope, (Kind::Class, name, public), node, None, Vec::new());
        }
        "trait_item" => {
            out.add(scope, (Kind::Class, name, public), node, body, Vec::new());
            descend(out, body, &scope.within(name, public, true), true);
        }
        "const_item" | "static_item" => {
            let value = node.child_by_field_name("value");
            out.add(scope, (Kind::Value, name, public), node, value, Vec::new());
        }
        "impl_item" => {
            let of = out.field(node, "type").unwrap_or_default();
            let of = of.split(['<', ' ']).next().unwrap_or_default();
            let of_trait = node.child_by_field_name("trait").is_some();
            // What a trait asks for is declared there.
            if !of_trait {
                descend(out, body, &scope.within(of, true, true), false);
            }
        }
        "mod_item" => {
            if body.is_some() {
                out.add(scope, (Kind::Module, name, public), node, body, Vec::new());
            }
            descend(out, body, &scope.within(name, public, false), false);
        }
        "macro_definition" => {
            let exported = previous_attribute(out, node, "macro_export");
            let rule = children(node).find(|child| child.kind() == "macro_rule");
            out.add(scope, (Kind::Function, &format!("{name}!"), exported), node, rule, Vec::new());
        }
        _ => {}
    }
}

fn descend(out: &mut Symbols<'_>, body: Option<Node<'_>>, scope: &Scope, of_trait: bool) {
    if let Some(body) = body.filter(|_| !scope.is_too_deep()) {
        items(out, body, scope, of_trait);
    }
}

/// Whether something is `pub` without an end of its reach.
fn is_public(out: &Symbols<'_>, node: Node<'_>) -> bool {
    children(node).next().is_some_and(|first| first.kind() == "visibility_modifier" && out.of(first) == "pub")
}

fn previous_attribute(out: &Symbols<'_>, node: Node<'_>, name: &str) -> bool {
    let mut before = node.prev_named_sibling();
    while let Some(sibling) = before.filter(|sibling| sibling.kind() == "attribute_item") {
        if out.of(sibling).contains(name) {
            return true;
        }
        before = sibling.prev_named_sibling();
    }
    false
}
