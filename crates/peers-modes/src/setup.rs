//! The command that sets up a checkout, by the manifests at the top of a repository and where gates change to.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use peers_sys::SafeDir;
use peers_sys::env::Env;
use peers_sys::spawn::resolve_program;

/// Bytes of a manifest that are looked at.
const MOST: u64 = 1024 * 1024;
/// Files in which projects of Python list packages, in the order in which they are installed.
const REQUIREMENTS: [&str; 8] = [
    "requirements.txt",
    "requirements-dev.txt",
    "requirements_dev.txt",
    "requirements-test.txt",
    "requirements-tests.txt",
    "dev-requirements.txt",
    "requirements/test.txt",
    "requirements/tests.txt",
];
/// What the extra for tests is usually called.
const EXTRAS: [&str; 5] = ["test", "tests", "testing", "dev", "develop"];

/// The usual command, for gates that run `commands`; `None` where nothing has to be installed, or nobody can tell.
/// `installed` says whether a program can be called here.
#[must_use]
pub fn usual(work: &SafeDir, commands: &[&str], installed: &dyn Fn(&str) -> bool) -> Option<String> {
    let below = |cmd: &&str| cmd.strip_prefix("cd ")?.split_once(" && ").map(|(dir, _)| dir.to_owned());
    let dirs: BTreeSet<String> = commands.iter().filter_map(below).collect();
    let of_dir = |dir: String| {
        let start = format!("cd {dir} && ");
        let there: Vec<&str> = commands.iter().filter_map(|cmd| cmd.strip_prefix(&start)).collect();
        Some(format!("(cd {dir} && {})", here(&work.subdir(&dir).ok()?, &there, installed)?))
    };
    let lines: Vec<String> =
        here(work, commands, installed).into_iter().chain(dirs.into_iter().filter_map(of_dir)).collect();
    (!lines.is_empty()).then(|| lines.join(" && "))
}

/// The same for one directory.
fn here(work: &SafeDir, commands: &[&str], installed: &dyn Fn(&str) -> bool) -> Option<String> {
    let text = |name: &str| match name.split_once('/') {
        Some((dir, name)) => work.subdir(dir).ok()?.read_text(name, MOST).ok(),
        None => work.read_text(name, MOST).ok(),
    };
    // A lock file that git ignores is in no checkout.
    let ignored = text(".gitignore").unwrap_or_default();
    let has = |name: &str| {
        let listed = ignored.lines().any(|line| line.trim().trim_start_matches('/') == name);
        let there = |dir: &SafeDir, name: &str| matches!(dir.stat(name), Ok(Some(_)));
        let found = match name.split_once('/') {
            Some((dir, name)) => work.subdir(dir).is_ok_and(|dir| there(&dir, name)),
            None => there(work, name),
        };
        !listed && found
    };
    let found = node(&has, &text).or_else(|| python(&has, &text, commands, installed));
    let found = found.or_else(|| {
        let fixed = [
            ("Gemfile", "bundle install"),
            ("composer.json", "composer install --no-interaction"),
            ("go.sum", "go mod download"),
            ("Cargo.lock", "cargo fetch --locked"),
            ("Cargo.toml", "cargo fetch"),
        ];
        fixed.iter().find(|(name, _)| has(name)).map(|(_, cmd)| (*cmd).to_owned())
    })?;
    // A command that sees to it by itself needs no other.
    let mut words = found.split(' ');
    let begins = [words.next(), words.next()].into_iter().flatten().collect::<Vec<_>>().join(" ");
    (!commands.iter().any(|cmd| cmd.contains(&begins))).then_some(found)
}

/// Whether a program is on the operator's `PATH`.
pub fn installed(env: &Env) -> impl Fn(&str) -> bool + use<> {
    let path = env.var("PATH").map(OsStr::to_owned);
    move |program| resolve_program(OsStr::new(program), path.as_deref(), Path::new("/")).is_ok()
}

/// The configuration with this command in its `setup`; `None` where that has another form than the template's.
#[must_use]
pub fn write(config: &str, cmd: &str) -> Option<String> {
    const EMPTY: &str = "\nsetup:\n  commands: []\n";
    let quoted = serde_json::Value::from(cmd);
    let filled = format!("\nsetup:\n  commands:\n    - cmd: {quoted}\n");
    config.contains(EMPTY).then(|| config.replacen(EMPTY, &filled, 1))
}

fn node(has: &dyn Fn(&str) -> bool, text: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let package: serde_json::Value = serde_json::from_str(&text("package.json")?).ok()?;
    let some =
        |key: &str| package.get(key).and_then(|value| value.as_object()).is_some_and(|map| !map.is_empty());
    if !["dependencies", "devDependencies", "optionalDependencies"].into_iter().any(some)
        && package.get("workspaces").is_none()
        && !has("pnpm-workspace.yaml")
    {
        return None;
    }
    let by_lock = [
        ("pnpm-lock.yaml", "pnpm install --frozen-lockfile"),
        ("bun.lock", "bun install --frozen-lockfile"),
        ("bun.lockb", "bun install --frozen-lockfile"),
        ("package-lock.json", "npm ci"),
        ("npm-shrinkwrap.json", "npm ci"),
    ];
    let cmd = match by_lock.iter().find(|(lock, _)| has(lock)) {
        Some((_, cmd)) => cmd,
        None if has("yarn.lock") && has(".yarnrc.yml") => "yarn install --immutable",
        None if has("yarn.lock") => "yarn install --frozen-lockfile",
        None => match package.get("packageManager").and_then(|said| said.as_str()?.split('@').next()) {
            Some("pnpm") => "pnpm install",
            Some("yarn") => "yarn install",
            Some("bun") => "bun install",
            _ => "npm install",
        },
    };
    Some(cmd.to_owned())
}

fn python(
    has: &dyn Fn(&str) -> bool,
    text: &dyn Fn(&str) -> Option<String>,
    commands: &[&str],
    installed: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let by_lock = [
        ("uv.lock", "uv sync --frozen"),
        ("poetry.lock", "poetry install --no-interaction"),
        ("Pipfile.lock", "pipenv sync --dev"),
    ];
    let poetry = text("pyproject.toml").is_some_and(|text| text.contains("[tool.poetry"));
    let locked = by_lock.iter().find(|(lock, _)| has(lock) || (poetry && *lock == "poetry.lock"));
    if let Some((_, cmd)) = locked.filter(|(_, cmd)| cmd.split(' ').next().is_some_and(installed)) {
        return Some((*cmd).to_owned());
    }
    let listed: Vec<&str> = REQUIREMENTS.into_iter().filter(|name| has(name)).collect();
    let project =
        text("pyproject.toml").filter(|text| text.contains("[project]") || text.contains("[build-system]"));
    let package = project.is_some() || has("setup.py");
    // Without a virtual environment in the commands nothing says that one is wanted.
    let own = [".venv", "venv", "env"].into_iter().find(|dir| {
        let bin = format!("{dir}/bin/");
        commands.iter().any(|cmd| cmd.contains(&bin))
    });
    let dir = own?;
    let mut wanted: Vec<String> = listed.iter().map(|name| format!("-r {name}")).collect();
    let mut tested = listed.iter().filter_map(|name| text(name)).any(|text| text.contains("pytest"));
    if package {
        let project = project.unwrap_or_default();
        let extra = EXTRAS.into_iter().find(|extra| is_extra(&project, extra));
        tested |= extra.is_some();
        wanted.push(extra.map_or_else(|| "-e .".to_owned(), |extra| format!("-e '.[{extra}]'")));
    }
    if !tested && commands.iter().any(|cmd| cmd.contains("pytest")) {
        wanted.push("pytest".to_owned());
    }
    let install = if wanted.is_empty() {
        String::new()
    } else {
        format!(" && {dir}/bin/pip install --quiet {}", wanted.join(" "))
    };
    Some(format!("python3 -m venv {dir}{install}"))
}

/// Whether a `pyproject.toml` has this extra.
fn is_extra(project: &str, extra: &str) -> bool {
    let mut inside = false;
    project.lines().map(str::trim).any(|line| {
        if line.starts_with('[') {
            inside = line == "[project.optional-dependencies]";
        }
        let key = line.split_once('=').map(|(key, _)| key.trim().trim_matches('"'));
        inside && key == Some(extra)
    })
}

#[cfg(test)]
mod tests {
    use crate::CONFIG;

    use super::*;

    fn with(files: &[(&str, &str)], cmd: &str) -> Option<String> {
        let tmp = tempfile::tempdir().unwrap();
        for dir in ["web", "requirements"] {
            std::fs::create_dir(tmp.path().join(dir)).unwrap();
        }
        for (name, text) in files {
            std::fs::write(tmp.path().join(name), text).unwrap();
        }
        usual(&SafeDir::open_shared(tmp.path()).unwrap(), &[cmd], &|program| program != "uv")
    }

    #[test]
    fn each_package_manager_has_its_line() {
        let package = ("package.json", r#"{"devDependencies": {"vitest": "1"}}"#);
        let pyproject = (
            "pyproject.toml",
            "[project]\nname = \"a\"\n[project.optional-dependencies]\ntest = [\"pytest\"]\n",
        );
        let of_pnpm = ("package.json", r#"{"packageManager": "pnpm@9", "dependencies": {"a": "1"}}"#);
        for (files, cmd, line) in [
            (vec![package, ("package-lock.json", "{}")], "npm test", "npm ci"),
            (vec![package, ("pnpm-lock.yaml", "")], "pnpm test", "pnpm install --frozen-lockfile"),
            (vec![package, ("yarn.lock", "")], "yarn test", "yarn install --frozen-lockfile"),
            (vec![package, ("yarn.lock", ""), (".yarnrc.yml", "")], "yarn test", "yarn install --immutable"),
            (vec![package], "npm test", "npm install"),
            (vec![of_pnpm], "pnpm test", "pnpm install"),
            (vec![("package.json", r#"{"workspaces": ["a"]}"#)], "npm test", "npm install"),
            (
                vec![("Cargo.lock", ""), ("web/package.json", package.1), ("web/package-lock.json", "{}")],
                "cd web && npm test",
                "cargo fetch --locked && (cd web && npm ci)",
            ),
            (
                vec![("pyproject.toml", "[tool.poetry]\n")],
                "poetry run pytest",
                "poetry install --no-interaction",
            ),
            (vec![("poetry.lock", "")], "poetry run pytest", "poetry install --no-interaction"),
            (
                vec![("requirements.txt", "requests\n")],
                "venv/bin/python -m pytest",
                "python3 -m venv venv && venv/bin/pip install --quiet -r requirements.txt pytest",
            ),
            (
                vec![("setup.py", ""), ("requirements/tests.txt", "pytest==7\n")],
                ".venv/bin/python -m pytest",
                "python3 -m venv .venv && .venv/bin/pip install --quiet -r requirements/tests.txt -e .",
            ),
            (
                vec![pyproject],
                ".venv/bin/pytest",
                "python3 -m venv .venv && .venv/bin/pip install --quiet -e '.[test]'",
            ),
            (
                vec![
                    ("uv.lock", ""),
                    ("pyproject.toml", "[project]\n[dependency-groups]\ndev = ['pytest']\n"),
                ],
                ".venv/bin/pytest",
                "python3 -m venv .venv && .venv/bin/pip install --quiet -e . pytest",
            ),
            (vec![("Gemfile", "")], "rake test", "bundle install"),
            (vec![("composer.json", "{}")], "phpunit", "composer install --no-interaction"),
            (vec![("go.sum", "")], "go test ./...", "go mod download"),
            (vec![("Cargo.lock", "")], "cargo test", "cargo fetch --locked"),
            (
                vec![("Cargo.lock", ""), ("Cargo.toml", ""), (".gitignore", "/Cargo.lock\n")],
                "cargo test",
                "cargo fetch",
            ),
            (
                vec![package, ("package-lock.json", "{}"), (".gitignore", "package-lock.json\n")],
                "npm test",
                "npm install",
            ),
        ] {
            assert_eq!(with(&files, cmd).as_deref(), Some(line), "{files:?}");
        }
    }

    #[test]
    fn nothing_is_proposed_where_nothing_is_to_be_installed_or_the_command_does_it() {
        let package = ("package.json", r#"{"devDependencies": {"vitest": "1"}}"#);
        let lock = ("package-lock.json", "{}");
        for (files, cmd) in [
            (vec![("package.json", "{}"), lock], "npm test"),
            (vec![package, lock], "npm ci && npm test"),
            (vec![("web/package.json", package.1)], "cd web && npm install && npm test"),
            (vec![("web/package.json", package.1)], "cd web/../.. && npm test"),
            (vec![("requirements.txt", "requests\n")], "python3 -m pytest"),
            (vec![("go.mod", "module a\n")], "go test ./..."),
            (vec![], "make test"),
        ] {
            assert_eq!(with(&files, cmd), None, "{files:?}");
        }
    }

    #[test]
    fn a_line_gets_into_the_template_whatever_is_in_it() {
        for cmd in ["npm ci", "pip install -e '.[test]' \"a: b\""] {
            let config = peers_store::load::load_config(&write(CONFIG, cmd).unwrap()).unwrap();
            assert_eq!(config.setup.commands[0].cmd, cmd);
        }
        assert_eq!(write("setup: {commands: [{cmd: make}]}\n", "npm ci"), None);
    }
}
