//! One pack per language: how its grammar says what all checks ask for.

use tree_sitter::Node;

use crate::facts::{Idle, Import, Unfinished};
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

    /// What a node imports.
    fn import(&self, node: Node<'_>, text: &str, out: &mut Vec<Import>);

    /// A function or a class that does nothing.
    fn idle(&self, node: Node<'_>, text: &str) -> Option<Idle>;

    /// A statement that says that something is not done.
    fn unfinished(&self, node: Node<'_>, text: &str) -> Option<Unfinished>;
}

pub(crate) fn of(grammar: Grammar) -> &'static dyn Pack {
    match grammar {
        Grammar::Python => &python::Python,
        Grammar::JavaScript | Grammar::TypeScript | Grammar::Tsx => &javascript::JavaScript,
        Grammar::Rust => &rust::Rust,
        Grammar::Go => &go::Go,
    }
}

/// Whether a message says that something is not done.
pub(crate) fn says_unfinished(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let word = |word: &str| lower.split(|c: char| !c.is_ascii_alphanumeric()).any(|found| found == word);
    ["not implemented", "notimplemented", "unimplemented", "not yet implemented"]
        .iter()
        .any(|s| lower.contains(s))
        || word("todo")
        || word("fixme")
}

#[cfg(test)]
mod tests;
