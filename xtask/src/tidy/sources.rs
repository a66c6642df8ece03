//! Finds the Rust files, whose they are, and which of them are test code.

use std::path::Path;

use super::finding::{Finding, Rule};
use super::source::{self, Area, SourceFile};
use super::syntax::{self, ModuleFile};
use super::table::{self, Row};
use crate::Failure;
use crate::workspace::{self, Package, TextFile};

/// Rust files below these are data for tests, not code of ours.
const DATA: &[&str] = &["tests/fixtures/", "tests/golden/"];

/// Names that say where a thing was put and not what it is.
const NAMELESS: &[&str] = &["utils", "util", "helpers", "helper", "misc"];

/// The directory of a crate and its row.
#[derive(Debug)]
pub(crate) struct Home {
    /// Relative to the root, with a closing `/`.
    directory: String,
    row: Option<&'static Row>,
}

/// Where each crate of the workspace lives.
pub(crate) fn homes(root: &Path, packages: &[Package]) -> Result<Vec<Home>, Failure> {
    let mut homes = Vec::new();
    for package in packages {
        let manifest = workspace::relative(root, &package.manifest_path)?;
        let directory = manifest.trim_end_matches("Cargo.toml").to_owned();
        homes.push(Home { directory, row: table::row(&package.name) });
    }
    Ok(homes)
}

/// Reads every Rust file.
pub(crate) fn read<'a>(files: &'a [TextFile], homes: &[Home]) -> Vec<SourceFile<'a>> {
    let mut sources: Vec<_> = files
        .iter()
        .filter(|file| is_rust(&file.path) && !DATA.iter().any(|data| file.path.starts_with(data)))
        .map(|file| open(file, homes))
        .collect();
    let test_only: Vec<_> = sources.iter().flat_map(test_modules).collect();
    for source in &mut sources {
        if test_only.iter().any(|place| place.holds(source.path)) {
            source.area = Area::Test;
        }
    }
    sources
}

fn test_modules(source: &SourceFile<'_>) -> Vec<Place> {
    let modules = source.facts.modules.iter().flat_map(|module| &module.files);
    modules.filter(|module| module.in_test).map(|module| Place::of(source.path, module)).collect()
}

/// Checks every Rust file.
pub(crate) fn check(sources: &[SourceFile<'_>]) -> Vec<Finding> {
    sources.iter().flat_map(|file| name(file.path).into_iter().chain(source::check(file))).collect()
}

fn is_rust(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "rs")
}

fn open<'a>(file: &'a TextFile, homes: &[Home]) -> SourceFile<'a> {
    let home = homes
        .iter()
        .filter(|home| file.path.starts_with(&home.directory))
        .max_by_key(|home| home.directory.len());
    let inside = home.and_then(|home| file.path.strip_prefix(&home.directory));
    let area =
        if inside.is_some_and(|inside| inside.starts_with("src/")) { Area::Product } else { Area::Test };
    let row = home.and_then(|home| home.row);
    SourceFile { path: &file.path, text: &file.text, row, area, facts: syntax::read(&file.text) }
}

fn name(path: &str) -> Option<Finding> {
    let nameless = path.split('/').find(|part| NAMELESS.contains(&part.trim_end_matches(".rs")))?;
    let message = format!("`{nameless}` says nothing; name the module after what it holds");
    Some(Finding::whole(path, Rule::FileName, message))
}

/// Where the file of a module may be: one of two files, or anything below its directory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    file: String,
    below: String,
}

impl Place {
    pub(crate) fn of(declared_in: &str, module: &ModuleFile) -> Self {
        let (directory, file) = declared_in.rsplit_once('/').unwrap_or((".", declared_in));
        let stem = file.trim_end_matches(".rs");
        let base = match (&module.path, stem) {
            (Some(path), _) => format!("{directory}/{}", path.trim_end_matches(".rs")),
            (None, "lib" | "main" | "mod") => format!("{directory}/{}", module.name),
            (None, _) => format!("{directory}/{stem}/{}", module.name),
        };
        Self { file: format!("{base}.rs"), below: format!("{base}/") }
    }

    pub(crate) fn is(&self, path: &str) -> bool {
        path == self.file || path.strip_prefix(&self.below) == Some("mod.rs")
    }

    fn holds(&self, path: &str) -> bool {
        path == self.file || path.starts_with(&self.below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| TextFile { path: (*path).to_owned(), text: format!("//! X.\n{text}") })
            .collect();
        let homes = ["peers-core", "peers-sys"].map(|krate| Home {
            directory: format!("crates/{krate}/"),
            row: Some(table::row(krate).unwrap()),
        });
        check(&read(&files, &homes)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_file_is_judged_by_the_row_of_its_crate() {
        let findings = judged(&[
            ("crates/peers-core/src/a.rs", "use std::fs;"),
            ("crates/peers-sys/src/a.rs", "use std::fs;"),
        ]);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].starts_with("crates/peers-core/src/a.rs:2: "), "{findings:?}");
    }

    #[test]
    fn tests_benches_and_build_scripts_are_not_product_code() {
        let findings = judged(&[
            ("crates/peers-core/tests/a.rs", "use std::fs;"),
            ("crates/peers-core/benches/a.rs", "use std::fs;"),
            ("crates/peers-core/build.rs", "use std::fs;"),
        ]);
        assert_eq!(findings, Vec::<String>::new());
    }

    #[test]
    fn a_test_module_in_its_own_file_is_test_code_with_all_below_it() {
        let declarations = [
            ("crates/peers-core/src/lib.rs", "#[cfg(test)]\nmod checks;"),
            ("crates/peers-core/src/a.rs", "#[cfg(test)]\nmod tests;"),
            ("crates/peers-core/src/b.rs", "#[cfg(test)]\n#[path = \"b_tests.rs\"]\nmod tests;"),
        ];
        let tests = [
            "crates/peers-core/src/checks/mod.rs",
            "crates/peers-core/src/checks/deep.rs",
            "crates/peers-core/src/a/tests.rs",
            "crates/peers-core/src/b_tests.rs",
        ];
        let files: Vec<_> =
            declarations.into_iter().chain(tests.map(|path| (path, "use std::fs;"))).collect();
        assert_eq!(judged(&files), Vec::<String>::new());
        // The same files without the attribute are product code.
        let files: Vec<_> = tests.into_iter().map(|path| (path, "use std::fs;")).collect();
        assert_eq!(judged(&files).len(), tests.len());
    }

    #[test]
    fn nameless_modules_are_violations_and_fixtures_are_not_looked_at() {
        let findings =
            judged(&[("crates/peers-core/src/utils.rs", ""), ("crates/peers-core/src/helpers/mod.rs", "")]);
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert_eq!(judged(&[("tests/fixtures/utils.rs", "fn f() { todo!() }")]), Vec::<String>::new());
    }
}
