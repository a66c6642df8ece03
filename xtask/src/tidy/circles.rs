//! Which files of a crate use each other in a circle.
//!
//! A file uses another one when a path or a `use` of it leads to something that the other one defines.
//! Imports are followed: `super::X`, where the parent has `use crate::b::X`, uses `b`. A `mod x;` is no use.

use std::collections::{BTreeMap, BTreeSet};

use super::source::SourceFile;
use super::sources::Place;
use super::syntax::Module;

/// The files of a circle, each with those of the circle that it uses.
pub(crate) type Circle<'a> = BTreeMap<&'a str, Vec<&'a str>>;

/// The circles among the product files of one crate, largest first.
pub(crate) fn of<'a>(files: &[&'a SourceFile<'a>]) -> Vec<Circle<'a>> {
    components(&uses(files))
}

/// A module from the root of its crate on; the file of the root comes first, for a crate may have several.
type Name = Vec<String>;

#[derive(Default)]
struct Tree<'a> {
    modules: BTreeMap<Name, (&'a str, &'a Module)>,
}

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target<'a> {
    Module(Name),
    /// Something that this file defines.
    Item(&'a str),
    Outside,
}

type Graph<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

fn uses<'a>(files: &[&'a SourceFile<'a>]) -> Graph<'a> {
    let mut tree = Tree::default();
    for root in files.iter().filter(|file| is_root(file.path)) {
        tree.grow(files, root, &[root.path.to_owned()]);
    }
    let mut graph = Graph::new();
    for (name, (file, module)) in &tree.modules {
        let targets =
            module.paths.iter().filter_map(|path| match tree.lead(name, &path.segments, &mut Vec::new()) {
                Target::Item(target) if target != *file => Some(target),
                Target::Module(_) | Target::Item(_) | Target::Outside => None,
            });
        graph.entry(file).or_default().extend(targets);
    }
    graph
}

fn is_root(path: &str) -> bool {
    path.ends_with("src/lib.rs") || path.ends_with("src/main.rs") || path.contains("src/bin/")
}

impl<'a> Tree<'a> {
    /// Adds the modules of `file`, which is the module `name`, and of the files below it.
    fn grow(&mut self, files: &[&'a SourceFile<'a>], file: &'a SourceFile<'a>, name: &[String]) {
        for module in &file.facts.modules {
            let name = [name, &module.inside].concat();
            for declared in &module.files {
                let place = Place::of(file.path, declared);
                if let Some(child) = files.iter().find(|file| place.is(file.path)) {
                    self.grow(files, child, &below(&name, &declared.name));
                }
            }
            self.modules.insert(name, (file.path, module));
        }
    }

    /// Follows a path that is written in the module `from`. `open` holds the names that are being looked up.
    fn lead(&self, from: &[String], path: &[String], open: &mut Vec<(Name, bool)>) -> Target<'a> {
        let mut at = Target::Module(from.to_vec());
        for (index, name) in path.iter().enumerate() {
            let Target::Module(module) = &at else { break };
            at = match name.as_str() {
                "*" | "self" => continue,
                "crate" => Target::Module(module.iter().take(1).cloned().collect()),
                "super" => {
                    Target::Module(module.split_last().map_or(Name::new(), |(_, parent)| parent.to_vec()))
                }
                _ => {
                    match (self.named(module, name, index + 1 == path.len(), open), self.modules.get(module))
                    {
                        (Some(target), _) => target,
                        // What is not written in the module comes from a macro there.
                        (None, Some((file, _))) if index > 0 => Target::Item(file),
                        (None, _) => Target::Outside,
                    }
                }
            };
        }
        at
    }

    /// What `name` stands for in a module. At the end of a path it is rather an item than a module.
    fn named(
        &self,
        module: &[String],
        name: &String,
        is_end: bool,
        open: &mut Vec<(Name, bool)>,
    ) -> Option<Target<'a>> {
        let (file, facts) = self.modules.get(module)?;
        let key = below(module, name);
        if open.contains(&(key.clone(), is_end)) {
            return None;
        }
        open.push((key.clone(), is_end));
        let mut found = Vec::new();
        found.extend(self.modules.contains_key(&key).then_some(Target::Module(key)));
        found.extend(facts.items.contains(name).then_some(Target::Item(file)));
        found.extend(facts.imports(name).map(|path| self.lead(module, &path.segments, open)));
        if found.is_empty() {
            found.extend(facts.imports("*").filter_map(|path| {
                match self.lead(module, &path.segments, open) {
                    Target::Module(other) => self.named(&other, name, is_end, open),
                    Target::Item(_) => None,
                    Target::Outside => Some(Target::Outside),
                }
            }));
            found.sort_by_key(|target| *target == Target::Outside);
        }
        open.pop();
        let fitting = found.iter().position(|target| matches!(target, Target::Module(_)) != is_end);
        found.into_iter().nth(fitting.unwrap_or(0))
    }
}

fn below(module: &[String], name: &String) -> Name {
    [module, std::slice::from_ref(name)].concat()
}

/// The strongly connected components of two files or more, largest first.
fn components<'a>(graph: &Graph<'a>) -> Vec<Circle<'a>> {
    let closures: Graph<'_> = graph.keys().map(|file| (*file, closure(graph, file))).collect();
    let reaches = |from: &str, to: &str| closures.get(from).is_some_and(|files| files.contains(to));
    let mut circles: Vec<Circle<'_>> = Vec::new();
    for file in graph.keys().filter(|file| reaches(file, file)) {
        if circles.iter().any(|circle| circle.contains_key(file)) {
            continue;
        }
        let is_in = |other: &&str| reaches(file, other) && reaches(other, file);
        let members = graph.iter().filter(|(other, _)| is_in(other));
        circles.push(
            members.map(|(other, uses)| (*other, uses.iter().copied().filter(is_in).collect())).collect(),
        );
    }
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

/// All that a file uses, straight or through others.
fn closure<'a>(graph: &Graph<'a>, from: &'a str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut pending = vec![from];
    while let Some(file) = pending.pop() {
        pending.extend(graph.get(file).into_iter().flatten().filter(|next| found.insert(**next)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::source::Area;
    use super::super::syntax;
    use super::*;

    /// The uses between files, as "a > b c".
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<_> = files
            .iter()
            .map(|(path, text)| SourceFile {
                path,
                text,
                row: None,
                area: Area::Product,
                facts: syntax::read(text),
            })
            .collect();
        let graph = uses(&sources.iter().collect::<Vec<_>>());
        let arrows = graph.iter().filter(|(_, uses)| !uses.is_empty());
        let short = |path: &str| path.trim_start_matches("src/").trim_end_matches(".rs").to_owned();
        arrows
            .map(|(file, uses)| {
                format!(
                    "{} > {}",
                    short(file),
                    uses.iter().map(|file| short(file)).collect::<Vec<_>>().join(" ")
                )
            })
            .collect()
    }

    const ROOT: (&str, &str) = ("src/lib.rs", "mod a; mod b; pub struct Root;");

    #[test]
    fn a_path_leads_to_the_file_that_defines_its_end() {
        let b = ("src/b.rs", "pub fn f() {} pub enum E { V }");
        for code in [
            "use crate::b::f;",
            "use super::b::{self, E as F};",
            "fn g() { crate::b::f() }",
            "fn g(_: super::b::E) {}",
            "use crate::b::E::*;",
            "use super::b; fn g() { b::f() }",
            "use crate::b::*; fn g() { f() }",
            "fn g() { assert!(crate::b::f()) }",
            "fn g() { use super::b::E; }",
            "mod m { use super::super::b::E; }",
        ] {
            assert_eq!(found(&[ROOT, ("src/a.rs", code), b]), ["a > b"], "{code}");
        }
        for code in [
            "use super::b;",
            "use std::b::f;",
            "use b::f;",
            "fn g() { f(); b.f() }",
            "#[cfg(test)] use crate::b::f;",
        ] {
            assert_eq!(found(&[ROOT, ("src/a.rs", code), b]), Vec::<String>::new(), "{code}");
        }
        assert_eq!(found(&[ROOT, ("src/a.rs", "use super::Root;"), b]), ["a > lib"]);
    }

    #[test]
    fn imports_and_re_exports_are_followed_to_the_definition() {
        let files =
            |root, a| [("src/lib.rs", root), ("src/a.rs", a), ("src/b.rs", "pub struct B; pub fn b() {}")];
        let root = "mod a; mod b; use self::b::B; use serde::Value; pub use b::b;";
        assert_eq!(found(&files(root, "use super::B;")), ["a > b", "lib > b"]);
        assert_eq!(found(&files(root, "use super::b;")), ["a > b", "lib > b"], "the function");
        assert_eq!(found(&files(root, "use super::*; type A = B;")), ["a > b", "lib > b"]);
        assert_eq!(found(&files(root, "use super::Value;")), ["lib > b"], "of another crate");
        assert_eq!(found(&files("mod a; mod b; pub use b::*;", "use crate::B;")), ["a > b"]);
        let other = "mod a; mod b; use serde::*;";
        assert_eq!(found(&files(other, "use super::Value;")), Vec::<String>::new());
        assert_eq!(found(&files("mod a; mod b; names! { N }", "use super::N;")), ["a > lib"], "from a macro");
        let each_other =
            found(&files("mod a; mod b; pub use a::*; type A = X;", "pub use super::*; type A = X;"));
        assert_eq!(each_other, Vec::<String>::new(), "it ends");
    }

    #[test]
    fn modules_are_found_in_their_files() {
        let files = [
            ("src/lib.rs", "mod a; #[path = \"other.rs\"] mod b; #[cfg(test)] mod t;"),
            ("src/a/mod.rs", "mod deep;"),
            ("src/a/deep.rs", "mod deeper; use crate::b::B;"),
            ("src/a/deep/deeper.rs", "use super::super::super::b::B;"),
            ("src/other.rs", "pub struct B;"),
            ("src/main.rs", "mod c; fn f() { c::g() } fn h() {}"),
            ("src/c.rs", "pub fn g() { crate::h() }"),
        ];
        assert_eq!(found(&files), ["a/deep > other", "a/deep/deeper > other", "c > main", "main > c"]);
    }

    #[test]
    fn components_are_whole_and_largest_first() {
        let graph: Graph<'_> = [
            ("a", &["b"][..]),
            ("b", &["a", "c"]),
            ("c", &["d"]),
            ("d", &["e", "x"]),
            ("e", &["c"]),
            ("x", &[]),
            ("y", &["a"]),
        ]
        .into_iter()
        .map(|(file, uses)| (file, uses.iter().copied().collect()))
        .collect();
        let expected = [
            Circle::from([("c", vec!["d"]), ("d", vec!["e"]), ("e", vec!["c"])]),
            Circle::from([("a", vec!["b"]), ("b", vec!["a"])]),
        ];
        assert_eq!(components(&graph), expected);
    }
}
