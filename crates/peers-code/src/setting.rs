//! Values that a file of settings gives names: of objects of JavaScript, of modules of Python.

use tree_sitter::Node;

use crate::language::Language;
use crate::source::{Source, line, text_of};
use crate::symbol::children;
use crate::testing::one_line;

/// A value with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The names of what it stands in, and its own behind them.
    pub keys: Vec<String>,
    /// What it is: each item of a list, literals without their quotes, all else as it is written.
    pub items: Vec<String>,
    /// Its line, from 1.
    pub line: usize,
}

impl Source<'_> {
    /// The pairs of objects of JavaScript; what Python assigns, adds or appends to a name. None in other languages.
    #[must_use]
    pub fn settings(&self) -> Vec<Setting> {
        let mut found = Vec::new();
        self.each(|node| {
            let value = match (self.language(), node.kind()) {
                (Language::JavaScript, "pair") => node.child_by_field_name("value"),
                (Language::Python, "assignment" | "augmented_assignment") => {
                    node.child_by_field_name("right")
                }
                (Language::Python, "call") => node.child_by_field_name("arguments"),
                _ => None,
            };
            if let Some(value) = value {
                let keys = self.keys(node);
                found.push(Setting { keys, items: self.items(value), line: line(node) });
            }
        });
        found
    }

    /// The names of the pairs that a node stands in, and its own behind them.
    fn keys(&self, node: Node<'_>) -> Vec<String> {
        const DEEPEST: usize = 20;
        let mut keys = Vec::new();
        let mut at = Some(node);
        while let Some(node) = at.filter(|_| keys.len() < DEEPEST) {
            let name = match node.kind() {
                "pair" => node.child_by_field_name("key"),
                "assignment" | "augmented_assignment" => node.child_by_field_name("left"),
                // `names.append(...)` is of `names`.
                "call" => {
                    node.child_by_field_name("function").and_then(|of| of.child_by_field_name("object"))
                }
                _ => None,
            };
            keys.extend(name.map(|name| text_of(name, self.text()).trim_matches(['"', '\'']).to_owned()));
            at = node.parent();
        }
        keys.reverse();
        keys
    }

    fn items(&self, value: Node<'_>) -> Vec<String> {
        let text =
            |node: Node<'_>| one_line(text_of(node, self.text())).trim_matches(['"', '\'', '`']).to_owned();
        match value.kind() {
            "array" | "list" | "tuple" | "argument_list" => children(value)
                .filter(|item| item.kind() != "comment")
                .flat_map(|item| if item.kind() == "list" { self.items(item) } else { vec![text(item)] })
                .collect(),
            _ => vec![text(value)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_told_with_the_names_that_they_stand_in() {
        for (path, text, due) in [
            (
                "a.ts",
                "export default defineConfig({\n  test: { exclude: ['a', ...b], name: `c` },\n  'x': f(1),\n});\n",
                "test.exclude@2=a|...b test.name@2=c x@3=f(1)",
            ),
            ("a.js", "({\"jest\": {\"roots\": [\"a\"]}})", "jest.roots@1=a"),
            (
                "conftest.py",
                "a = ['x', \"y\"]\na += ['z']\nif w:\n    a.append('v')\n    a.extend(['u'])\n",
                "a@1=x|y a@2=z a@4=v a@5=u",
            ),
            ("a.go", "package a\nvar b = 1\n", ""),
        ] {
            let source = Source::parse(path, text.as_bytes()).unwrap();
            let told: Vec<String> = source
                .settings()
                .iter()
                .filter(|setting| {
                    !setting.keys.is_empty() && setting.items.iter().all(|item| !item.starts_with('{'))
                })
                .map(|setting| {
                    format!("{}@{}={}", setting.keys.join("."), setting.line, setting.items.join("|"))
                })
                .collect();
            assert_eq!(told.join(" "), due, "{path}");
        }
    }
}
