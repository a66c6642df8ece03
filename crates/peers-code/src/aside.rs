//! Which lines of a file are there for its tests.

use std::ops::RangeInclusive;

use tree_sitter::Node;

use crate::source::{Source, line, text_of};

impl Source<'_> {
    /// The lines of tests, and of items of Rust that are built for tests alone, with their attributes.
    #[must_use]
    pub fn test_lines(&self) -> Vec<RangeInclusive<usize>> {
        let mut found: Vec<_> = self.tests().0.iter().map(|test| test.line..=test.end).collect();
        self.walk(|node| {
            let item = node.kind().ends_with("_item") || node.kind() == "use_declaration";
            let of_tests = item && attributes(node, self.text()).any(names_tests);
            if of_tests {
                let first = attribute_nodes(node).last().unwrap_or(node);
                found.push(line(first)..=node.end_position().row + 1);
            }
            !of_tests
        });
        found
    }
}

/// Whether an attribute of Rust makes a test of what follows, or has it built for tests alone.
fn names_tests(attribute: &str) -> bool {
    let mut words = attribute.split(|c: char| !c.is_alphanumeric() && c != '_');
    let other = attribute.contains("cfg_attr") || attribute.contains("not(");
    !other && words.any(|word| matches!(word, "test" | "rstest" | "test_case"))
}

/// The attributes before an item of Rust, and comments between them, from the last to the first.
pub(crate) fn attribute_nodes(item: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    std::iter::successors(item.prev_sibling(), Node::prev_sibling)
        .take_while(|node| node.kind() == "attribute_item" || node.kind().ends_with("comment"))
}

/// The attributes before an item of Rust, as they are written.
pub(crate) fn attributes<'t>(item: Node<'_>, text: &'t str) -> impl Iterator<Item = &'t str> {
    let nodes = attribute_nodes(item).filter(|node| node.kind() == "attribute_item");
    nodes.map(move |node| text_of(node, text))
}
