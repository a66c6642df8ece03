//! Python: pytest by itself or through tox, uv or poetry.

use peers_sys::dir::{Kind, SafeDir};

use super::{Aim, Around, Gate, Place, has_table, has_word};

pub(super) const STACK: &str = "Python";
// Without a test pytest ends with 5, with none but skipped ones with 0. The project may ask for `-q` itself, and
// twice of it leaves the sum out.
pub(super) const PASSED: &str = "exit_code == 0 and regex('[1-9][0-9]* passed', stdout)";
/// Levels below a directory of tests that are looked at.
const LEVELS: usize = 3;
const NAMES: usize = 1_000;

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
    let tests = ["tests", "test"].into_iter().find(|name| has_tests(place.dir, name, LEVELS));
    let uses_tox = tox.as_deref().is_some_and(|text| has_table(text, "tox") || has_table(text, "testenv"))
        || has_table(&project, "tool.tox");
    let (before, run) = runner(place, &project);
    let why = named.or(tests.map(|_| file));
    if uses_tox && run == "python3 -m " {
        let file = if tox.is_some() { "tox.ini" } else { "pyproject.toml" };
        let gate = Gate { aim: Aim::Tests, stack: STACK, cmd: "tox", pass_when: "exit_code == 0", file };
        place.propose(&gate);
    } else if let Some(file) = why {
        let cmd = format!("{before}{run}pytest");
        place.propose(&Gate { aim: Aim::Tests, stack: STACK, cmd: &cmd, pass_when: PASSED, file });
    }
    let ruff = place.first(&["ruff.toml", ".ruff.toml"]);
    if let Some(file) = ruff.or_else(|| has_table(&project, "tool.ruff").then_some("pyproject.toml")) {
        let cmd = format!("{before}{run}ruff check .");
        place.propose(&Gate { aim: Aim::Lint, stack: STACK, cmd: &cmd, pass_when: "exit_code == 0", file });
    }
}

/// What comes before a tool: what installs it, and what runs it.
fn runner(place: &Place<'_>, project: &str) -> (&'static str, &'static str) {
    if place.has("uv.lock") {
        return ("", "uv run --frozen ");
    }
    if has_table(project, "tool.uv") {
        return ("", "uv run ");
    }
    if place.has("poetry.lock") || has_table(project, "tool.poetry") {
        return ("poetry install --no-interaction && ", "poetry run ");
    }
    ("", "python3 -m ")
}

/// The file that names pytest, if one does.
fn named(place: &mut Place<'_>, project: &str, tox: Option<&str>, setup: &str) -> Option<&'static str> {
    let texts = [("pyproject.toml", project), ("tox.ini", tox.unwrap_or_default()), ("setup.cfg", setup)];
    let found = texts.into_iter().find(|(_, text)| has_word(text, "pytest")).map(|(name, _)| name);
    found.or_else(|| {
        ["requirements-dev.txt", "dev-requirements.txt", "requirements.txt"]
            .into_iter()
            .find(|name| place.text(name).is_some_and(|text| has_word(&text, "pytest")))
    })
}

/// Whether a directory holds a file that pytest collects.
fn has_tests(dir: &SafeDir, name: &str, levels: usize) -> bool {
    let Some(dir) =
        dir.stat(name).ok().flatten().filter(|stat| stat.kind == Kind::Dir).and(dir.subdir(name).ok())
    else {
        return false;
    };
    let entries = dir.list(NAMES).map(|listing| listing.entries).unwrap_or_default();
    entries.iter().any(|entry| {
        let Some(name) = entry.name.to_str() else { return false };
        match entry.kind {
            Kind::File => name
                .strip_suffix(".py")
                .is_some_and(|stem| stem.ends_with("_test") || stem.starts_with("test_")),
            Kind::Dir => levels > 1 && has_tests(&dir, name, levels - 1),
            Kind::Symlink | Kind::Special => false,
        }
    })
}
