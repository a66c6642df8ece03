//! Go.

mod facts;
mod tests;

use tree_sitter::Node;

use super::Pack;
use crate::facts::{Idle, Import, Unfinished};
use crate::symbol::{Kind, Scope, Symbol, Symbols, children};
use crate::testing::Tests;

pub(crate) struct Go;

impl Pack for Go {
    fn symbols(&self, root: Node<'_>, text: &str) -> Vec<Symbol> {
        let mut out = Symbols::new(text);
        for node in children(root) {
            declaration(&mut out, node);
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

fn declaration(out: &mut Symbols<'_>, node: Node<'_>) {
    let top = Scope::top();
    match node.kind() {
        "function_declaration" => function(out, node, &top),
        "method_declaration" => {
            let receiver = out.field(node, "receiver").unwrap_or_default();
            let of = receiver.trim_matches(['(', ')']).split_whitespace().last().unwrap_or_default();
            let of = of.trim_start_matches('*');
            let of = of.split('[').next().unwrap_or_default();
            function(out, node, &top.within(of, is_public(of), true));
        }
        "type_declaration" => {
            for spec in children(node).filter(|spec| matches!(spec.kind(), "type_spec" | "type_alias")) {
                let Some(name) = out.field(spec, "name") else { continue };
                let body = spec.child_by_field_name("type").filter(|of| of.kind() == "struct_type");
                out.add(&top, (Kind::Class, name, is_public(name)), spec, body, Vec::new());
                let of = spec.child_by_field_name("type").filter(|of| of.kind() == "interface_type");
                let scope = top.within(name, is_public(name), true);
                for method in
                    of.into_iter().flat_map(children).filter(|method| method.kind() == "method_elem")
                {
                    function(out, method, &scope);
                }
            }
        }
        "const_declaration" | "var_declaration" => values(out, node, &top),
        _ => {}
    }
}

fn values(out: &mut Symbols<'_>, node: Node<'_>, top: &Scope) {
    for spec in children(node) {
        match spec.kind() {
            "var_spec_list" => values(out, spec, top),
            "const_spec" | "var_spec" => {
                let value = spec.child_by_field_name("value");
                let mut cursor = spec.walk();
                for name in spec.children_by_field_name("name", &mut cursor).filter(Node::is_named) {
                    let name = out.of(name);
                    out.add(top, (Kind::Value, name, is_public(name)), spec, value, Vec::new());
                }
            }
            _ => {}
        }
    }
}

fn function(out: &mut Symbols<'_>, node: Node<'_>, scope: &Scope) {
    let Some(name) = out.field(node, "name") else { return };
    let mut params = Vec::new();
    for list in node.child_by_field_name("parameters").into_iter().flat_map(children) {
        let mut cursor = list.walk();
        params.extend(list.children_by_field_name("name", &mut cursor).map(|name| out.of(name).to_owned()));
    }
    let body = node.child_by_field_name("body");
    out.add(scope, (scope.function(), name, is_public(name)), node, body, params);
}

fn is_public(name: &str) -> bool {
    name.chars().next().is_some_and(char::is_uppercase)
}
