//! Python: pytest where the project uses it, else unittest; by itself or through tox, uv or poetry.

use peers_sys::dir::{Kind, SafeDir};

use super::{Aim, Around, MANIFEST, Place, has_table, has_word};

pub(super) const STACK: &str = "Python";
// Without a test pytest ends with 5, with none but skipped ones with 0. The project may ask for `-q` itself, and
// twice of it leaves the sum out.
pub(super) const PASSED: &str = "exit_code == 0 and regex('[1-9][0-9]* passed', stdout)";
/// Without a test unittest ends well before Python 3.12.
const RAN: &str = "exit_code == 0 and regex('(?m)^Ran [1-9][0-9]* test', stderr)";
/// Levels below a directory of tests that are looked at.
const LEVELS: usize = 3;
const NAMES: usize = 1_000;
/// Files of tests that are read.
const FILES: usize = 200;
/// Where else than in its configuration a project names what it is tested with.
const REQUIREMENTS: [&str; 6] = [
    "requirements-dev.txt",
    "dev-requirements.txt",
    "requirements-test.txt",
    "test-requirements.txt",
    "requirements_dev.txt",
    "requirements.txt",
];

/// Usual virtual environments, and what runs a module in them.
const VENVS: [(&str, &str); 3] =
    [(".venv", ".venv/bin/python -m "), ("venv", "venv/bin/python -m "), ("env", "env/bin/python -m ")];

pub(super) fn look(place: &mut Place<'_>, around: &mut Around) {
    if around.uv {
        return;
    }
    let own = ["pyproject.toml", "setup.py", "setup.cfg", "pytest.ini", "tox.ini"];
    let loose = ["requirements.txt", "requirements-dev.txt", "dev-requirements.txt", "conftest.py"];
    let Some(file) = place.first(&own).or_else(|| place.first(&loose).filter(|_| !around.python)) else {
        return;
    };
    around.python = true;
    let project = place.text("pyproject.toml").unwrap_or_default();
    let tox = place.text("tox.ini");
    let setup = place.text("setup.cfg").unwrap_or_default();
    around.uv = has_table(&project, "tool.uv.workspace");
    let config = if has_table(&project, "tool.pytest") {
        Some("pyproject.toml")
    } else {
        place.first(&["pytest.ini"])
    };
    let named = config.or_else(|| named(place, &project, tox.as_deref(), &setup));
    let tests = ["tests", "test"].into_iter().find_map(|name| Some((name, Tests::below(place.dir, name)?)));
    let uses_tox = tox.as_deref().is_some_and(|text| has_table(text, "tox") || has_table(text, "testenv"))
        || has_table(&project, "tool.tox");
    let run = runner(place, &project);
    let why = named.or(tests.as_ref().filter(|(_, tests)| tests.pytest).map(|_| file));
    if uses_tox && run == "python3 -m " {
        let file = if tox.is_some() { "tox.ini" } else { "pyproject.toml" };
        place.propose(Aim::Tests, STACK, "tox", "exit_code == 0", file);
    } else if let Some(file) = why {
        let cmd = format!("{run}pytest");
        place.propose(Aim::Tests, STACK, &cmd, PASSED, file);
    } else if let Some((name, tests)) = tests.filter(|(_, tests)| tests.unittest) {
        let python = if run.ends_with("-m ") { run.to_owned() } else { format!("{run}python -m ") };
        // From the top it looks into packages alone.
        let within = if tests.package { String::new() } else { format!(" -s {name}") };
        let cmd = format!("{python}unittest discover{within}");
        place.propose(Aim::Tests, STACK, &cmd, RAN, file);
    }
    let ruff = place.first(&["ruff.toml", ".ruff.toml"]);
    if let Some(file) = ruff.or_else(|| has_table(&project, "tool.ruff").then_some("pyproject.toml")) {
        let cmd = format!("{run}ruff check .");
        place.propose(Aim::Lint, STACK, &cmd, "exit_code == 0", file);
    }
}

/// What comes before a tool, to run it.
fn runner(place: &Place<'_>, project: &str) -> &'static str {
    if place.has("uv.lock") {
        return "uv run --frozen ";
    }
    if has_table(project, "tool.uv") {
        return "uv run ";
    }
    if place.has("poetry.lock") || has_table(project, "tool.poetry") {
        return "poetry run ";
    }
    // Only at the top there is a proposal for `setup` too, which makes it anew in a clean checkout.
    let own = VENVS.iter().find(|(dir, _)| {
        place.path.is_empty()
            && subdir(place.dir, dir)
                .is_some_and(|dir| dir.stat("pyvenv.cfg").is_ok_and(|stat| stat.is_some()))
    });
    own.map_or("python3 -m ", |(_, run)| run)
}

/// The file that says that pytest is used, if one does.
fn named(place: &mut Place<'_>, project: &str, tox: Option<&str>, setup: &str) -> Option<&'static str> {
    let texts = [("pyproject.toml", project), ("tox.ini", tox.unwrap_or_default()), ("setup.cfg", setup)];
    let found = texts.into_iter().find(|(_, text)| has_word(text, "pytest")).map(|(name, _)| name);
    found
        .or_else(|| {
            REQUIREMENTS
                .into_iter()
                .find(|name| place.text(name).is_some_and(|text| has_word(&text, "pytest")))
        })
        .or_else(|| place.first(&["conftest.py"]))
}

/// What the files in a directory of tests are written for.
#[derive(Debug, Default)]
struct Tests {
    /// The directory is a package.
    package: bool,
    /// Some are for pytest.
    pytest: bool,
    /// Some are for unittest, where it finds them.
    unittest: bool,
    /// Files that were read.
    files: usize,
}

impl Tests {
    fn below(dir: &SafeDir, name: &str) -> Option<Self> {
        let dir = subdir(dir, name)?;
        let mut tests = Self { package: is_package(&dir), ..Self::default() };
        tests.look(&dir, LEVELS, true);
        Some(tests).filter(|tests| tests.pytest || tests.unittest)
    }

    /// `found`: unittest looks into this directory.
    fn look(&mut self, dir: &SafeDir, levels: usize, found: bool) {
        let entries = dir.list(NAMES).map(|listing| listing.entries).unwrap_or_default();
        for entry in entries {
            let Some(name) = entry.name.to_str() else { continue };
            match entry.kind {
                Kind::File if self.files < FILES => self.read(dir, name, found),
                Kind::Dir if levels > 1 => {
                    if let Some(below) = subdir(dir, name) {
                        let found = found && is_package(&below);
                        self.look(&below, levels - 1, found);
                    }
                }
                Kind::File | Kind::Dir | Kind::Symlink | Kind::Special => {}
            }
        }
    }

    fn read(&mut self, dir: &SafeDir, name: &str, found: bool) {
        let Some(stem) = name.strip_suffix(".py") else { return };
        self.pytest |= stem == "conftest";
        if !stem.starts_with("test") && !stem.ends_with("_test") {
            return;
        }
        self.files += 1;
        // What cannot be read is written for nothing.
        let Some(bytes) = dir.read_opt(name, MANIFEST).ok().flatten() else { return };
        let text = String::from_utf8_lossy(&bytes);
        let imports = |module: &str| {
            let says = [format!("import {module}"), format!("from {module}")];
            text.lines().any(|line| {
                let rest = says.iter().find_map(|says| line.trim_start().strip_prefix(says.as_str()));
                rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
            })
        };
        // A test that is a plain function is found by pytest alone.
        let plain =
            text.lines().any(|line| line.starts_with("def test") || line.starts_with("async def test"));
        self.pytest |= plain || imports("pytest");
        let named = stem.starts_with("test");
        self.unittest |= found && named && imports("unittest") && has_word(&text, "TestCase");
    }
}

fn subdir(dir: &SafeDir, name: &str) -> Option<SafeDir> {
    let stat = dir.stat(name).ok().flatten()?;
    if stat.kind == Kind::Dir { dir.subdir(name).ok() } else { None }
}

fn is_package(dir: &SafeDir) -> bool {
    dir.stat("__init__.py").ok().flatten().is_some_and(|stat| stat.kind == Kind::File)
}
