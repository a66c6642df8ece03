//! Where tests are: how surely a runner finds a file, which modules of Rust are compiled, which lines of a file of Rust are
//! tests, and whose hand is in the run itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use peers_model::weakening::{Weakened, Weakening};
use regex::Regex;

use super::claims::tokens;
use super::measure::is_condition;
use super::settings::{among, pattern};
use super::{File, Inline};
use crate::aside::attributes;
use crate::language::Language;
use crate::layout::{is_test, names_test};
use crate::source::{Source, Unreadable, text_of};

/// How surely a runner finds the tests of a file: 0 not at all, 1 perhaps, 2 always, 3 always and below a directory of
/// tests. Tests that go elsewhere are kept only where they are found as surely as before.
pub(super) fn place(file: &File<'_>, modules: &Modules) -> u8 {
    const LEFT_OUT: &str = "node_modules dist build venv vendor";
    /// Systems and processors after which a file of Go may be named.
    const SYSTEMS: &str =
        "aix android darwin dragonfly freebsd illumos ios js linux netbsd openbsd plan9 solaris wasip1
        windows 386 amd64 arm arm64 loong64 mips mips64 mips64le mipsle ppc64 ppc64le riscv64 s390x wasm";
    if file.told {
        return 2;
    }
    let (dirs, name) = file.path.rsplit_once('/').unwrap_or(("", file.path));
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let below = |left_out: &dyn Fn(&str) -> bool| dirs.split('/').any(left_out);
    let hidden = |dir: &str| among(LEFT_OUT, dir) || dir.starts_with('.');
    match file.source.language() {
        Language::Python | Language::JavaScript if below(&hidden) => 0,
        Language::Python if stem.starts_with("test_") || stem.ends_with("_test") => {
            2 + u8::from(in_tests(&format!("{dirs}/x")))
        }
        // The pattern of `unittest`, which Django uses too.
        Language::Python => u8::from(stem.starts_with("test")),
        Language::JavaScript if names_test(name) || below(&|dir| dir == "__tests__") => 2,
        // Some runners take all of a directory.
        Language::JavaScript => u8::from(file.is_test()),
        Language::Go => {
            let unseen = |dir: &str| dir.starts_with('_') || hidden(dir) || dir == "testdata";
            let Some(stem) =
                stem.strip_suffix("_test").filter(|_| !below(&unseen) && !name.starts_with(['.', '_']))
            else {
                return 0;
            };
            2 - u8::from(stem.rsplit_once('_').is_some_and(|(_, last)| among(SYSTEMS, last)))
        }
        Language::Rust if below(&|dir| among("testdata fixtures", dir)) => 0,
        Language::Rust => 1 + u8::from(!file.new || modules.is_reached(file.path)),
    }
}

/// Whether a file lies where all is tests, or is called as they are.
pub(super) fn in_tests(path: &str) -> bool {
    const DIRS: &str = "tests Tests test __tests__ __snapshots__ testdata spec specs";
    let dirs = path.rsplit_once('/').map_or("", |(dirs, _)| dirs);
    is_test(path) || dirs.split('/').any(|dir| among(DIRS, dir))
}

/// The modules of Rust that changed files declare and are.
#[derive(Debug, Default)]
pub(super) struct Modules {
    /// How many more declarations there are than before, by the place of the module's file, and a file that has them.
    declared: BTreeMap<String, (i64, String)>,
    /// The places of modules whose file is gone.
    gone: BTreeSet<String>,
}

impl Modules {
    pub(super) fn of(before: &[File<'_>], after: &[File<'_>]) -> Self {
        let mut found = Self::default();
        let stays: BTreeSet<&str> = after.iter().map(|file| file.path).collect();
        for (files, step) in [(before, -1), (after, 1)] {
            for file in files.iter().filter(|file| file.source.language() == Language::Rust) {
                if !stays.contains(file.path) {
                    found.gone.insert(module_place(file.path));
                }
                let text = file.source.text();
                file.source.walk(|node| {
                    let name = node.child_by_field_name("name").filter(|_| node.kind() == "mod_item");
                    let compiled = step < 0 || !attributes(node, text).any(is_condition);
                    // One that is written in place declares no file, and may take the place of one.
                    let counts = compiled && (step > 0 || node.child_by_field_name("body").is_none());
                    if let Some(name) = name.filter(|_| counts) {
                        let place = format!("{}/{}", base(file.path), text_of(name, text));
                        found.declared.entry(place).or_insert_with(|| (0, file.path.to_owned())).0 += step;
                    }
                    true
                });
            }
        }
        found
    }

    /// Modules that are no longer declared though their file stays.
    pub(super) fn orphans(&self) -> impl Iterator<Item = Weakening> {
        let lost =
            self.declared.iter().filter(|(place, (count, _))| *count < 0 && !self.gone.contains(*place));
        lost.map(|(place, (_, by))| {
            let module = place.rsplit('/').next().unwrap_or(place).to_owned();
            Weakened::Orphan { module }.at(by)
        })
    }

    /// Whether something leads to a new file: it is the root of a target, it was declared with it, or it takes the place
    /// of a file that is gone.
    fn is_reached(&self, path: &str) -> bool {
        let place = module_place(path);
        is_root(path)
            || self.gone.contains(&place)
            || self.declared.get(&place).is_some_and(|(count, _)| *count > 0)
    }
}

/// Whether cargo finds the file by itself.
fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        [.., "src", "lib.rs" | "main.rs"] | [.., "src", "bin", _] | [.., "src", "bin", _, "main.rs"] => true,
        [before @ .., "tests" | "benches" | "examples", _]
        | [before @ .., "tests" | "benches" | "examples", _, "main.rs"] => !before.contains(&"src"),
        _ => false,
    }
}

/// The directory in which the modules of a file lie.
fn base(path: &str) -> &str {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    let whole = is_root(path) || matches!(name, "mod.rs" | "lib.rs" | "main.rs");
    if whole { dir } else { path.trim_end_matches(".rs") }
}

/// A module by its place: the path of its file without its end.
fn module_place(path: &str) -> String {
    let place = path.strip_suffix("/mod.rs").or_else(|| path.strip_suffix(".rs")).unwrap_or(path);
    if place.contains('/') { place.to_owned() } else { format!("/{place}") }
}

/// A side of a change, parsed as far as it goes.
type Side<'a, 't> = Option<&'a Result<Source<'t>, Unreadable>>;

/// What changed in a file of Rust, its tests apart; nothing where it has none.
pub(super) fn inline(path: &str, before: Side<'_, '_>, after: Side<'_, '_>) -> Option<Inline> {
    if in_tests(path) || Language::of(path) != Some(Language::Rust) {
        return None;
    }
    let ((old_tests, old_rest), (tests, rest)) = (divided(before), divided(after));
    if old_tests.is_empty() && tests.is_empty() {
        return None;
    }
    let (tests, rest) = (change(&old_tests, &tests), change(&old_rest, &rest));
    (tests != (0, 0)).then(|| Inline { path: path.to_owned(), tests, rest })
}

/// The lines of tests, and the others.
fn divided<'t>(side: Side<'_, 't>) -> (Vec<&'t str>, Vec<&'t str>) {
    let (mut of_tests, mut rest) = (Vec::new(), Vec::new());
    let Some(Ok(source)) = side else { return (of_tests, rest) };
    let tests = source.test_lines();
    for (line, text) in (1..).zip(source.text().lines()) {
        let side = if tests.iter().any(|test| test.contains(&line)) { &mut of_tests } else { &mut rest };
        side.push(text);
    }
    (of_tests, rest)
}

/// How many lines came, and how many went.
fn change(old: &[&str], new: &[&str]) -> (u64, u64) {
    let mut lines: BTreeMap<&str, i64> = BTreeMap::new();
    for (side, step) in [(old, -1), (new, 1)] {
        for line in side {
            *lines.entry(line).or_default() += step;
        }
    }
    let all = |sign: i64| lines.values().filter_map(|count| u64::try_from(count * sign).ok()).sum();
    (all(1), all(-1))
}

/// What takes a hand in the run of the tests, in tokens with a space between them.
static HOOK: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r" (?:pytest_(?:collection_modifyitems|ignore_collect|collect_file|collect_directory|pycollect_\w+",
        r"|itemcollected|deselected|runtest_protocol|runtest_call|pyfunc_call|report_teststatus",
        r"|cmdline_(?:main|parse|preparse)|load_initial_conftests|runtestloop)|collect_ignore\w*|def load_tests",
        r"|\. (?:exitstatus|wasxfail|outcome) =|TestCase \. \w+ =|os \. _exit|pytest \. exit|System \. exit",
        r"|sys \. exit \((?: 0)? \)|process \. exit \((?: 0)? \)|process \. exitCode = 0|os \. Exit \( 0",
        r"|process :: exit \( 0) ",
    ))
});

/// Files of tests that take a hand in the run more often than before, where no other one does so less.
pub(super) fn hooks(before: &[File<'_>], after: &[File<'_>]) -> Vec<Weakening> {
    let of = |files: &[File<'_>]| -> BTreeMap<String, usize> {
        let tests = files.iter().filter(|file| file.is_test());
        tests.map(|file| (file.path.to_owned(), HOOK.find_iter(&said(file)).count())).collect()
    };
    let (before, after) = (of(before), of(after));
    if after.values().sum::<usize>() <= before.values().sum() {
        return Vec::new();
    }
    let more = after.iter().filter(|(path, count)| **count > before.get(*path).copied().unwrap_or(0));
    more.map(|(path, _)| Weakened::Hook.at(path)).collect()
}

/// The tokens of a file, without what strings say.
fn said(file: &File<'_>) -> String {
    let mut all = tokens(file.source.root(), file.source.text());
    all.retain(|token| !token.contains(['"', '\'', '`']));
    format!(" {} ", all.join(" "))
}
