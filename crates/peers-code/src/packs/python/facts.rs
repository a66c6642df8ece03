//! Imports and idle bodies of Python.

use tree_sitter::Node;

use crate::facts::{Idle, Import, Unfinished};
use crate::source::{line, text_of};
use crate::symbol::children;
use crate::testing::one_line;

pub(super) fn import(node: Node<'_>, text: &str, out: &mut Vec<Import>) {
    let of = |node: Node<'_>| text_of(node, text).to_owned();
    let plain = |node: Node<'_>| of(node.child_by_field_name("name").unwrap_or(node));
    let mut cursor = node.walk();
    let names = node.children_by_field_name("name", &mut cursor).map(plain);
    match node.kind() {
        "import_statement" => {
            out.extend(names.map(|module| Import { line: line(node), module, names: Vec::new() }));
        }
        "import_from_statement" => {
            let module = node.child_by_field_name("module_name").map(of).unwrap_or_default();
            out.push(Import { line: line(node), module, names: names.collect() });
        }
        _ => {}
    }
}

pub(super) fn idle(node: Node<'_>, text: &str) -> Option<Idle> {
    let is_class = node.kind() == "class_definition";
    if !is_class && node.kind() != "function_definition" {
        return None;
    }
    let name = text_of(node.child_by_field_name("name")?, text).to_owned();
    let mut statements = children(node.child_by_field_name("body")?).filter(|child| {
        let inner = child.named_child(0).map(|inner| inner.kind());
        child.kind() != "comment" && !(child.kind() == "expression_statement" && inner == Some("string"))
    });
    let first = statements.next();
    let returns = match first {
        None => None,
        Some(_) if statements.next().is_some() => return None,
        Some(only) => match only.kind() {
            "pass_statement" => None,
            "expression_statement" if only.named_child(0)?.kind() == "ellipsis" => None,
            "return_statement" if !is_class => Some(constant(only.named_child(0), text)?),
            _ => return None,
        },
    };
    let declares =
        if is_class { is_exception(node, text) || is_abstract(node, text) } else { is_declared(node, text) };
    Some(Idle { name, line: line(node), returns, declares })
}

/// A value that depends on nothing: nothing at all, a literal, an empty collection.
fn constant(node: Option<Node<'_>>, text: &str) -> Option<String> {
    let Some(node) = node else { return Some("None".to_owned()) };
    let is_constant = match node.kind() {
        "none" | "true" | "false" | "integer" | "float" => true,
        "string" => children(node).all(|part| part.kind() != "interpolation"),
        "list" | "dictionary" | "tuple" => node.named_child_count() == 0,
        _ => false,
    };
    is_constant.then(|| one_line(text_of(node, text)))
}

pub(super) fn unfinished(node: Node<'_>, text: &str) -> Option<Unfinished> {
    if node.kind() != "raise_statement" {
        return None;
    }
    let code = one_line(text_of(node, text));
    let what = code.strip_prefix("raise ")?.split('(').next()?;
    let mut above = node.parent();
    while let Some(inner) = above.filter(|above| above.kind() != "function_definition") {
        above = inner.parent();
    }
    let declares = above.is_some_and(|function| is_declared(function, text));
    (what == "NotImplementedError").then(|| Unfinished { line: line(node), code, declares })
}

/// An abstract method, an overload, or a method of a class that is abstract or a protocol.
fn is_declared(function: Node<'_>, text: &str) -> bool {
    let whole = function.parent().filter(|parent| parent.kind() == "decorated_definition");
    let marked =
        whole.into_iter().flat_map(children).filter(|child| child.kind() == "decorator").any(|mark| {
            let name = text_of(mark, text).trim_start_matches('@').trim();
            let name = name.rsplit('.').next().unwrap_or(name);
            name.starts_with("abstract") || name == "overload"
        });
    let body = whole.unwrap_or(function).parent();
    let class = body.and_then(|body| body.parent()).filter(|class| class.kind() == "class_definition");
    marked || class.is_some_and(|class| is_abstract(class, text))
}

fn is_abstract(class: Node<'_>, text: &str) -> bool {
    bases(class, text).any(|base| matches!(base, "ABC" | "Protocol" | "ABCMeta"))
}

fn is_exception(class: Node<'_>, text: &str) -> bool {
    bases(class, text).any(|base| ["Error", "Exception", "Warning"].iter().any(|end| base.ends_with(end)))
}

/// The last names of the bases of a class, of its metaclass too.
fn bases<'t>(class: Node<'_>, text: &'t str) -> impl Iterator<Item = &'t str> {
    let list = class.child_by_field_name("superclasses").map(|list| text_of(list, text)).unwrap_or_default();
    list.trim_matches(['(', ')']).split(',').map(|base| {
        let base = base.split('[').next().unwrap_or(base);
        base.rsplit(['.', '=']).next().unwrap_or(base).trim()
    })
}
