//! The one classifier of paths.

use std::sync::LazyLock;

use regex::bytes::Regex;

use crate::scope::Glob;

/// What a file is for, by its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathKind {
    /// Tests, their fixtures and snapshots.
    Test,
    /// Documentation.
    Doc,
    /// Everything else.
    Source,
    /// The control directory `.peers/`.
    Control,
}

/// Classifies a path, given from the root of the repository with `/` between its parts.
///
/// Tests are what the usual test runners of a language take for tests by the name of the file, all
/// below a directory `tests`, `Tests`, `test`, `__tests__`, `__snapshots__` or `testdata`, code below
/// `spec` or `specs`, and `.snap` files. A `README` among tests is documentation.
#[must_use]
pub fn classify(path: &str) -> PathKind {
    let mut parts: Vec<&str> = path.split('/').filter(|p| !matches!(*p, "" | ".")).collect();
    let Some(name) = parts.pop() else { return PathKind::Source };
    if parts.first().copied().unwrap_or(name) == ".peers" {
        return PathKind::Control;
    }
    if DOCUMENT_NAME.is_match(name.as_bytes()) {
        return PathKind::Doc;
    }
    let is_code = CODE.is_match(name.as_bytes());
    if parts.iter().any(|p| is_test_dir(p) || (is_code && is_code_test_dir(p)))
        || TEST_NAME.is_match(name.as_bytes())
    {
        return PathKind::Test;
    }
    let in_docs = parts.first().is_some_and(|p| matches!(*p, "docs" | "doc"));
    if in_docs || DOCUMENT.is_match(name.as_bytes()) { PathKind::Doc } else { PathKind::Source }
}

/// Further tests that the operator names (`bug_hunt.test_globs`), besides those that [`classify`] knows.
#[derive(Debug, Clone, Default)]
pub struct TestPaths(Vec<Glob>);

impl TestPaths {
    /// Files that one of the globs takes.
    #[must_use]
    pub fn new(globs: &[String]) -> Self {
        Self(globs.iter().filter_map(|glob| Glob::new(glob)).collect())
    }

    /// Like [`classify`], with these tests among the tests.
    #[must_use]
    pub fn classify(&self, path: &str) -> PathKind {
        match classify(path) {
            PathKind::Source | PathKind::Doc if self.0.iter().any(|glob| glob.matches(path)) => {
                PathKind::Test
            }
            kind => kind,
        }
    }
}

/// Whether everything in a directory of this name is tests.
fn is_test_dir(part: &str) -> bool {
    matches!(part, "tests" | "Tests" | "test" | "__tests__" | "__snapshots__" | "testdata")
}

/// Whether code in a directory of this name is tests; other files there may be anything.
fn is_code_test_dir(part: &str) -> bool {
    matches!(part, "spec" | "specs" | "androidTest" | "integration_test")
        || [".Tests", ".Test", "UnitTests", "UITests", "IntegrationTests"]
            .iter()
            .any(|end| part.ends_with(end))
}

// Of bytes, and letters are those of ASCII: every command compiles these at its start, and with the tables of Unicode
// that takes ten times as long.
#[expect(clippy::expect_used, reason = "the patterns are constants, and the tests compile all of them")]
fn constant(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern compiles")
}

/// What runners take for tests by the name of the file.
static TEST_NAME: LazyLock<Regex> = LazyLock::new(|| {
    constant(concat!(
        r"(?s-u)^(?:(?:test_.*|.*_tests?|conftest|tests)\.(?i:pyi?)|(?:tests?|.*_tests?)\.(?i:rs)",
        r"|.*_test\.(?i:go|exs|dart)|(?:test_.*|.*_(?:test|spec))\.(?i:rb)|.*\.(?i:snap|bats)",
        r"|(?:.*(?:Tests?|TestCase|Spec)|.*[a-z]IT|Test[A-Z].*)\.(?i:java|kt|scala|groovy|cs|php|swift)",
        r"|(?:test_.*|.*_(?:tests?|unittest))\.(?i:c|cc|cpp|cxx)",
        r"|.*\.(?:test|spec|cy|[^.]*[-_](?:test|spec))(?:\.[^.]*)*\.(?i:[cm]?[jt]s|[jt]sx|vue|svelte))$",
    ))
});

/// Code, by the name of the file.
static CODE: LazyLock<Regex> = LazyLock::new(|| {
    constant(concat!(
        r"(?i-u)\.(?:pyi?|[cm]?[jt]s|[jt]sx|vue|svelte|rs|go|java|kts?|groovy|scala|rb|c|cc|cpp|cxx|h|hpp",
        r"|cs|php|swift|m|mm|exs?|dart|lua|sh|bats)$",
    ))
});

/// Files that are documentation wherever they lie.
static DOCUMENT_NAME: LazyLock<Regex> = LazyLock::new(|| {
    constant(concat!(
        r"(?i-u)^(?:readme|changelog|changes|license|licence|notice|authors|contributing|code_of_conduct|security)",
        r"(?:-[^.]*)?(?:\.(?:md|txt|rst|adoc)?)?$",
    ))
});

/// The same, but among tests.
static DOCUMENT: LazyLock<Regex> = LazyLock::new(|| constant(r"(?i-u)\.(?:md|markdown|rst|adoc|asciidoc)$"));

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn test_files_are_known_by_name_or_directory() {
        for path in [
            "tests/a.py",
            "pkg/test_a.py",
            "pkg/a_test.py",
            "conftest.py",
            "src/a.test.ts",
            "src/a.spec.jsx",
            "a.test.utils.js",
            "src/__tests__/a.js",
            "crates/x/tests/it.rs",
            "tests/fixtures/data.json",
            "pkg/a_test.go",
            "test/a.js",
            "src/__snapshots__/a.txt",
            "src/snapshots/x.snap",
            "internal/testdata/in.txt",
            "./tests//a",
            "src/tests.rs",
            "src/b/tests.rs",
            "src/test.rs",
            "src/parser_tests.rs",
            "src/parser_test.rs",
            "app/tests.py",
            "spec/models/user_spec.rb",
            "spec/support/login.rb",
            "lib/user_test.rb",
            "Tests/AppTests/Login.swift",
            "Tests/AppTests/expected.json",
            "App.Tests/Login.cs",
            "AppUITests/Login.swift",
            "src/main/FooTest.java",
            "src/TestFoo.java",
            "src/FooIT.java",
            "lib/foo_test.exs",
            "src/foo_test.cc",
            "run.bats",
            "src/app.e2e-spec.ts",
            "cypress/login.cy.ts",
        ] {
            assert_eq!(classify(path), PathKind::Test, "{path}");
        }
    }

    #[test]
    fn lookalikes_are_no_tests() {
        for path in [
            "src/latest.py",
            "src/contest.go",
            "src/testing.py",
            "openapi.spec.yaml",
            "test.js",
            "src/test_a.rs",
            "testsuite/a.c",
            "tests",
            "src/Latest.java",
            "src/Testament.java",
            "src/UNIT.java",
            "spec/openapi.yaml",
            "src/greatest.rb",
            "src/attests.rs",
            "src/MyTests/readme.yaml",
        ] {
            assert_eq!(classify(path), PathKind::Source, "{path}");
        }
    }

    #[test]
    fn documents_are_documents_wherever_they_lie() {
        for path in [
            "README",
            "README.md",
            "tests/README.md",
            "docs/conf.py",
            "doc/a.html",
            "a/b.MD",
            "LICENSE-MIT",
            "CHANGELOG.md",
            "src/notes.rst",
            "test/readme.txt",
        ] {
            assert_eq!(classify(path), PathKind::Doc, "{path}");
        }
        for path in ["requirements.txt", "CMakeLists.txt", "src/docs/a.py", "readme.py", "security.rs"] {
            assert_eq!(classify(path), PathKind::Source, "{path}");
        }
        assert_eq!(classify("tests/expected.md"), PathKind::Test, "a fixture is no document");
    }

    #[test]
    fn the_control_directory_is_its_own_kind() {
        for path in [".peers", ".peers/tests/a.py", "./.peers/README.md", ".peers//x"] {
            assert_eq!(classify(path), PathKind::Control, "{path}");
        }
        assert_eq!(classify("src/.peers/x.py"), PathKind::Source);
        assert_eq!(classify(""), PathKind::Source);
        assert_eq!(classify("spec/design.md"), PathKind::Doc, "specifications are no tests");
    }

    #[test]
    fn globs_of_the_operator_add_tests_and_take_none_away() {
        let tests = TestPaths::new(&["checks/**".to_owned(), "src/*_verify.py".to_owned()]);
        for (path, kind) in [
            ("checks/a.py", PathKind::Test),
            ("checks/deep/notes.md", PathKind::Test),
            ("src/a_verify.py", PathKind::Test),
            ("src/deep/a_verify.py", PathKind::Source),
            ("src/a.py", PathKind::Source),
            ("tests/a.py", PathKind::Test),
            (".peers/checks/a.py", PathKind::Control),
        ] {
            assert_eq!(tests.classify(path), kind, "{path}");
        }
        assert_eq!(TestPaths::default().classify("checks/a.py"), PathKind::Source);
    }

    proptest! {
        #[test]
        fn a_leading_dot_changes_nothing(text in any::<String>()) {
            prop_assert_eq!(classify(&text), classify(&format!("./{text}")));
        }
    }
}
