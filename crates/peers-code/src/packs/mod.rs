//! One pack per language: how its grammar says what all checks ask for.

use tree_sitter::Node;

use crate::language::Grammar;
use crate::symbol::Symbol;
use crate::testing::Tests;

mod go;
mod javascript;
mod python;
mod rust;

/// What a language pack knows.
pub(crate) trait Pack: Sync {
    /// What a file defines.
    fn symbols(&self, root: Node<'_>, text: &str) -> Vec<Symbol>;

    /// Its tests, and what keeps them from running.
    fn tests(&self, root: Node<'_>, out: &mut Tests<'_>);
}

pub(crate) fn of(grammar: Grammar) -> &'static dyn Pack {
    match grammar {
        Grammar::Python => &python::Python,
        Grammar::JavaScript | Grammar::TypeScript | Grammar::Tsx => &javascript::JavaScript,
        Grammar::Rust => &rust::Rust,
        Grammar::Go => &go::Go,
    }
}

#[cfg(test)]
mod tests;
