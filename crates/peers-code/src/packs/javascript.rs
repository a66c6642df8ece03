//! JavaScript and TypeScript.

mod facts;
mod tests;

use std::collections::HashSet;

use tree_sitter::Node;

use super::Pack;
use crate::facts::{Idle, Import, Unfinished};
use crate::symbol::{Kind, Scope, Symbol, Symbols, children};
use crate::testing::Tests;

pub(crate) struct JavaScript;

/// What a file lets others use beyond what it exports where it declares it.
#[derive(Default)]
struct Exports<'t> {
    names: HashSet<&'t str>,
}

impl Pack for JavaScript {
    fn symbols(&self, root: Node<'_>, text: &str) -> Vec<Symbol> {
        let mut out = Symbols::new(text);
        let mut exports = Exports::default();
        for node in children(root) {
            statement(&mut out, node, &Scope::top(), false, &mut exports);
        }
        out.publish(|name| exports.names.contains(name));
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

fn statement<'t>(
    out: &mut Symbols<'t>,
    node: Node<'_>,
    scope: &Scope,
    exported: bool,
    exports: &mut Exports<'t>,
) {
    let name = out.field(node, "name");
    let body = node.child_by_field_name("body");
    if let Some(name) = name.filter(|_| exported) {
        exports.names.insert(name);
    }
    match node.kind() {
        "export_statement" => export(out, node, scope, exports),
        "ambient_declaration" => {
            for child in children(node) {
                statement(out, child, scope, exported, exports);
            }
        }
        "function_declaration" | "generator_function_declaration" | "function_signature" => {
            let name = name.unwrap_or("default");
            out.add(scope, (Kind::Function, name, true), node, body, params(out, node));
        }
        "class_declaration" | "abstract_class_declaration" | "class" => {
            class(out, node, scope, name.unwrap_or("default"));
        }
        "interface_declaration" | "enum_declaration" => {
            out.add(scope, (Kind::Class, name.unwrap_or_default(), true), node, body, Vec::new());
        }
        "type_alias_declaration" => {
            out.add(scope, (Kind::Class, name.unwrap_or_default(), true), node, None, Vec::new());
        }
        "internal_module" | "module" => {
            let name = name.unwrap_or_default();
            out.add(scope, (Kind::Module, name, true), node, body, Vec::new());
            let inner = scope.within(name, true, false);
            for child in body.into_iter().flat_map(children).filter(|_| !inner.is_too_deep()) {
                statement(out, child, &inner, false, exports);
            }
        }
        "lexical_declaration" | "variable_declaration" => {
            for declared in children(node).filter(|declared| declared.kind() == "variable_declarator") {
                variable(out, declared, scope, exported, exports);
            }
        }
        "expression_statement" => {
            for inner in children(node) {
                match inner.kind() {
                    "internal_module" => statement(out, inner, scope, exported, exports),
                    "assignment_expression" => assigned(out, inner, scope, exports),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// `export ...`: a declaration, a list of names, or what has no name.
fn export<'t>(out: &mut Symbols<'t>, node: Node<'_>, scope: &Scope, exports: &mut Exports<'t>) {
    let whole = out.of(node);
    if let Some(declared) = node.child_by_field_name("declaration") {
        if declared.child_by_field_name("name").is_none() && whole.contains("default") {
            exports.names.insert("default");
        }
        statement(out, declared, scope, true, exports);
        return;
    }
    if let Some(value) = node.child_by_field_name("value") {
        if value.kind() == "identifier" {
            exports.names.insert(out.of(value));
        } else {
            exports.names.insert("default");
            let kind = if is_function(value) { Kind::Function } else { Kind::Value };
            out.add(
                scope,
                (kind, "default", true),
                value,
                value.child_by_field_name("body"),
                params(out, value),
            );
        }
        return;
    }
    // `export {a, b as c} from "./x"` passes on what is declared there.
    let passes_on = node.child_by_field_name("source").is_some();
    for specifier in children(node).filter(|clause| clause.kind() == "export_clause").flat_map(children) {
        let Some(name) = out.field(specifier, "name") else { continue };
        let seen_as = out.field(specifier, "alias").unwrap_or(name);
        exports.names.insert(if passes_on { seen_as } else { name });
        if passes_on {
            out.add(scope, (Kind::Value, seen_as, true), specifier, None, Vec::new());
        }
    }
}

/// `module.exports = ...` and `exports.name = ...`.
fn assigned<'t>(out: &mut Symbols<'t>, node: Node<'_>, scope: &Scope, exports: &mut Exports<'t>) {
    let (Some(left), Some(right)) = (out.field(node, "left"), node.child_by_field_name("right")) else {
        return;
    };
    let own = left.strip_prefix("module.exports").or_else(|| left.strip_prefix("exports"));
    let Some(rest) = own else { return };
    if let Some(name) = rest.strip_prefix('.') {
        exports.names.insert(name);
        if right.kind() != "identifier" {
            let kind = if is_function(right) { Kind::Function } else { Kind::Value };
            let body = right.child_by_field_name("body").or(Some(right).filter(|_| kind == Kind::Value));
            out.add(scope, (kind, name, true), node, body, params(out, right));
        }
        return;
    }
    match right.kind() {
        "identifier" => drop(exports.names.insert(out.of(right))),
        "class" => {
            exports.names.insert("default");
            class(out, right, scope, "default");
        }
        _ if is_function(right) => {
            exports.names.insert("default");
            let body = right.child_by_field_name("body");
            out.add(scope, (Kind::Function, "default", true), right, body, params(out, right));
        }
        "object" => {
            for entry in children(right) {
                match entry.kind() {
                    "shorthand_property_identifier" => drop(exports.names.insert(out.of(entry))),
                    "pair" | "method_definition" => {
                        let key = out.field(entry, "key").or_else(|| out.field(entry, "name"));
                        let Some(key) = key else { continue };
                        exports.names.insert(key);
                        let value = entry.child_by_field_name("value");
                        if value.is_none_or(|value| value.kind() != "identifier" || out.of(value) != key) {
                            out.add(scope, (Kind::Value, key, true), entry, None, Vec::new());
                        }
                    }
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

fn variable<'t>(
    out: &mut Symbols<'t>,
    node: Node<'_>,
    scope: &Scope,
    exported: bool,
    exports: &mut Exports<'t>,
) {
    let Some(left) = node.child_by_field_name("name").filter(|left| left.kind() == "identifier") else {
        return;
    };
    let name = out.of(left);
    if exported {
        exports.names.insert(name);
    }
    match node.child_by_field_name("value") {
        Some(value) if is_function(value) => {
            let body = value.child_by_field_name("body");
            out.add(scope, (Kind::Function, name, true), node, body, params(out, value));
        }
        Some(value) if value.kind() == "class" => class(out, value, scope, name),
        value => out.add(scope, (Kind::Value, name, true), node, value, Vec::new()),
    }
}

fn class(out: &mut Symbols<'_>, node: Node<'_>, scope: &Scope, name: &str) {
    let body = node.child_by_field_name("body");
    out.add(scope, (Kind::Class, name, true), node, body, Vec::new());
    let inner = scope.within(name, true, true);
    for member in body.into_iter().flat_map(children) {
        if !matches!(member.kind(), "method_definition" | "method_signature" | "abstract_method_signature") {
            continue;
        }
        let Some(name) = out.field(member, "name") else { continue };
        let hidden = name.starts_with('#')
            || children(member)
                .any(|part| part.kind() == "accessibility_modifier" && out.of(part) != "public");
        let body = member.child_by_field_name("body");
        out.add(&inner, (Kind::Method, name, !hidden), member, body, params(out, member));
    }
}

fn is_function(node: Node<'_>) -> bool {
    matches!(node.kind(), "arrow_function" | "function_expression" | "generator_function")
}

/// The names of the parameters; a pattern as it is written.
fn params(out: &Symbols<'_>, node: Node<'_>) -> Vec<String> {
    if let Some(only) = node.child_by_field_name("parameter") {
        return vec![out.of(only).to_owned()];
    }
    let each = node.child_by_field_name("parameters").into_iter().flat_map(children);
    each.filter(|param| param.kind() != "comment")
        .map(|param| {
            let pattern = param.child_by_field_name("pattern").or_else(|| param.child_by_field_name("left"));
            out.of(pattern.unwrap_or(param)).to_owned()
        })
        .filter(|name| name != "this")
        .collect()
}
