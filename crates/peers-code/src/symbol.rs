//! What a file defines.

use serde::{Deserialize, Serialize};
use tree_sitter::Node;

use crate::source::line;

/// What kind of thing is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A module within the file.
    Module,
    /// A class, or what stands for one: a struct, an enum, a trait, an interface, a type.
    Class,
    /// A function.
    Function,
    /// A function of a class.
    Method,
    /// A constant or a variable that others can see.
    Value,
}

/// A definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Symbol {
    /// What it is.
    pub kind: Kind,
    /// Its name with those that it stands in, joined by dots: `Class.method`.
    pub path: String,
    /// The line on which it begins, from 1, its decorators and attributes left out.
    pub line: usize,
    /// The line on which it ends.
    pub end: usize,
    /// Whether others can use it.
    pub public: bool,
    /// How it is declared, in one line: everything before the body.
    pub signature: String,
    /// The names of its parameters, in order, with those of `self` and receivers left out.
    pub params: Vec<String>,
}

/// Where a definition stands.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    /// Dotted names, with a dot at the end; empty at the top.
    prefix: String,
    /// Whether everything around it is public.
    pub(crate) public: bool,
    /// Whether that is a class.
    pub(crate) in_class: bool,
}

/// How deep definitions are followed into each other.
const MAX_DEPTH: usize = 200;

/// Collects the definitions of a file.
pub(crate) struct Symbols<'t> {
    pub(crate) text: &'t str,
    found: Vec<Symbol>,
}

impl Scope {
    pub(crate) fn top() -> Self {
        Self { prefix: String::new(), public: true, in_class: false }
    }

    pub(crate) fn within(&self, name: &str, public: bool, in_class: bool) -> Self {
        Self { prefix: format!("{}{name}.", self.prefix), public: self.public && public, in_class }
    }

    pub(crate) fn is_too_deep(&self) -> bool {
        self.prefix.matches('.').count() > MAX_DEPTH
    }

    pub(crate) fn function(&self) -> Kind {
        if self.in_class { Kind::Method } else { Kind::Function }
    }
}

impl<'t> Symbols<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, found: Vec::new() }
    }

    pub(crate) fn done(self) -> Vec<Symbol> {
        self.found
    }

    /// The text of a node.
    pub(crate) fn of(&self, node: Node<'_>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    /// The text of a field of a node.
    pub(crate) fn field(&self, node: Node<'_>, field: &str) -> Option<&'t str> {
        node.child_by_field_name(field).map(|node| self.of(node))
    }

    /// Adds a definition that begins at `node` and is declared up to `body`.
    pub(crate) fn add(
        &mut self,
        scope: &Scope,
        (kind, name, public): (Kind, &str, bool),
        node: Node<'_>,
        body: Option<Node<'_>>,
        params: Vec<String>,
    ) {
        let end = body.map_or(node.end_byte(), |body| body.start_byte());
        let declared = self.text.get(node.start_byte()..end).unwrap_or_default();
        self.found.push(Symbol {
            kind,
            path: format!("{}{name}", scope.prefix),
            line: line(node),
            end: node.end_position().row + 1,
            public: scope.public && public,
            signature: one_line(declared),
            params,
        });
    }

    /// Marks the definitions at the top as public exactly where `is` says so.
    pub(crate) fn publish(&mut self, is: impl Fn(&str) -> bool) {
        for symbol in &mut self.found {
            let (top, rest) = symbol.path.split_once('.').unwrap_or((&symbol.path, ""));
            if rest.is_empty() {
                symbol.public = is(top);
            } else {
                symbol.public &= is(top);
            }
        }
    }
}

/// A text with each run of white space as one space, at most 400 characters, without what opens a body.
fn one_line(text: &str) -> String {
    const MOST: usize = 400;
    let text = text.trim_end().trim_end_matches([':', '{', '=']).trim_end();
    let mut line = String::with_capacity(text.len().min(MOST));
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > MOST {
            let cut = line.floor_char_boundary(MOST);
            line.truncate(cut);
            line.push('…');
            break;
        }
    }
    line
}

/// The named children of a node.
pub(crate) fn children(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let mut cursor = node.walk();
    let mut more = cursor.goto_first_child();
    std::iter::from_fn(move || {
        while more {
            let child = cursor.node();
            more = cursor.goto_next_sibling();
            if child.is_named() {
                return Some(child);
            }
        }
        None
    })
}
