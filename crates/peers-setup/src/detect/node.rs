//! Packages of npm, pnpm, yarn and bun.
//!
//! Of the scripts only the names that are written here get into a command; what they say is looked at,
//! and never quoted.

use serde_json::{Map, Value};

use super::{Aim, Around, Findings, Place};

const FILE: &str = "package.json";
const STACK: &str = "Node.js";

/// Who runs scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manager {
    Npm,
    Pnpm,
    Yarn,
    Bun,
}

/// A workspace of packages, whose parts are tested from its root.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of the manifest")]
#[derive(Debug)]
pub(super) struct Workspace {
    manager: Manager,
    has_test: bool,
    has_lint: bool,
    parts_test: bool,
    parts_lint: bool,
}

pub(super) fn look(place: &mut Place<'_>, around: &mut Around) {
    let Some(text) = place.text(FILE) else { return };
    let Ok(Value::Object(package)) = serde_json::from_str::<Value>(&text) else {
        let shown = place.shown(FILE);
        place.found.note(&format!("{shown} is not a JSON object"));
        return;
    };
    let package = Package { package };
    let tests = package.script("test").filter(|script| !script.contains("no test specified"));
    let tests = tests.filter(|script| proves(place, "test", script));
    let lint = package.script("lint").filter(|script| proves(place, "lint", script));
    if let Some(workspace) = around.node.as_ref().and_then(|root| place.found.workspaces.get_mut(root)) {
        workspace.parts_test |= tests.is_some();
        workspace.parts_lint |= lint.is_some();
        return;
    }
    let manager = package.manager(place);
    if package.package.contains_key("workspaces") || place.has("pnpm-workspace.yaml") {
        around.node = Some(place.path.to_owned());
        place.found.workspaces.insert(
            place.path.to_owned(),
            Workspace {
                manager,
                has_test: tests.is_some(),
                has_lint: lint.is_some(),
                parts_test: false,
                parts_lint: false,
            },
        );
    }
    let mut propose = |aim, cmd: &str, pass_when: &str| {
        place.propose(aim, STACK, cmd, pass_when, FILE);
    };
    if let Some(script) = tests {
        let watches = script.contains("react-scripts test") && !script.contains("--watchAll=false");
        let once = if watches { "CI=true " } else { "" };
        propose(Aim::Tests, &format!("{once}{}", manager.test()), &ran(script));
    }
    if lint.is_some() {
        propose(Aim::Lint, &manager.run("lint"), "exit_code == 0");
    }
    if package.depends_on("typescript") {
        let named = ["typecheck", "type-check", "check-types", "types"];
        let script = named.into_iter().find(|name| package.script(name).is_some());
        let cmd = script.map_or_else(|| manager.exec("tsc --noEmit"), |name| manager.run(name));
        if script.is_some() || place.has("tsconfig.json") {
            place.propose(Aim::Types, STACK, &cmd, "exit_code == 0", FILE);
        }
    }
}

/// What the roots of workspaces do not run themselves is run in all parts from there.
pub(super) fn whole_workspaces(found: &mut Findings) {
    for (path, workspace) in std::mem::take(&mut found.workspaces) {
        let Workspace { manager, has_test, has_lint, parts_test, parts_lint } = workspace;
        let wanted =
            [(parts_test && !has_test, Aim::Tests, "test"), (parts_lint && !has_lint, Aim::Lint, "lint")];
        for (_, aim, script) in wanted.into_iter().filter(|(wanted, ..)| *wanted) {
            let cmd = match manager {
                Manager::Npm => format!("npm run {script} --workspaces --if-present"),
                Manager::Pnpm => format!("pnpm --recursive run {script}"),
                Manager::Yarn | Manager::Bun => {
                    found.note(&format!("the parts of the workspace {path}/{FILE} have a script `{script}`, and its root has none"));
                    continue;
                }
            };
            found.propose(&path, aim, STACK, &cmd, "exit_code == 0", FILE);
        }
    }
}

/// Whether a script can fail; a note where it cannot.
fn proves(place: &mut Place<'_>, name: &str, script: &str) -> bool {
    let says_nothing = peers_core::lint::exit_code_says_nothing(script);
    if says_nothing {
        let shown = place.shown(FILE);
        place
            .found
            .note(&format!("the script `{name}` of {shown} is not proposed: it ends well whatever it finds"));
    }
    !says_nothing
}

/// A condition that a run of nothing does not meet, where the runner tells how much ran.
fn ran(script: &str) -> String {
    let told = if script.contains("node --test") || script.contains("node:test") {
        // `# pass 3` or `ℹ pass 3`.
        Some("regex('(?m)^[^a-zA-Z0-9]*pass [1-9]', stdout)")
    } else if script.contains("mocha") && !script.contains("reporter") && !script.contains(" -R") {
        Some("regex('(?m)^[^a-zA-Z0-9]*[1-9][0-9]* passing', stdout)")
    } else if script.to_ascii_lowercase().contains("passwithnotests") {
        Some("not regex('(?i)no test(s| files) found', stdout + stderr)")
    } else {
        // jest, vitest and ava are red without a test.
        None
    };
    told.map_or_else(|| "exit_code == 0".to_owned(), |told| format!("exit_code == 0 and {told}"))
}

struct Package {
    package: Map<String, Value>,
}

impl Package {
    fn script(&self, name: &str) -> Option<&str> {
        let script = self.package.get("scripts")?.as_object()?.get(name)?.as_str()?;
        Some(script.trim()).filter(|script| !script.is_empty())
    }

    fn dependencies(&self) -> impl Iterator<Item = &Map<String, Value>> {
        ["dependencies", "devDependencies", "optionalDependencies"]
            .into_iter()
            .filter_map(|key| self.package.get(key)?.as_object())
    }

    fn depends_on(&self, name: &str) -> bool {
        self.dependencies().any(|list| list.contains_key(name))
    }

    /// By lock file, else by what the package says of itself.
    fn manager(&self, place: &Place<'_>) -> Manager {
        let said = self.package.get("packageManager").and_then(Value::as_str).unwrap_or_default();
        let locks = [
            ("pnpm-lock.yaml", Manager::Pnpm),
            ("bun.lock", Manager::Bun),
            ("bun.lockb", Manager::Bun),
            ("yarn.lock", Manager::Yarn),
            ("package-lock.json", Manager::Npm),
            ("npm-shrinkwrap.json", Manager::Npm),
        ];
        if let Some((_, manager)) = locks.into_iter().find(|(name, _)| place.has(name)) {
            return manager;
        }
        match said.split('@').next() {
            Some("pnpm") => Manager::Pnpm,
            Some("yarn") => Manager::Yarn,
            Some("bun") => Manager::Bun,
            _ => Manager::Npm,
        }
    }
}

impl Manager {
    fn word(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pnpm => "pnpm",
            Self::Yarn => "yarn",
            Self::Bun => "bun",
        }
    }

    fn test(self) -> String {
        // `bun test` is a runner of its own.
        if self == Self::Bun { self.run("test") } else { format!("{} test", self.word()) }
    }

    fn run(self, script: &str) -> String {
        format!("{} run {script}", self.word())
    }

    fn exec(self, command: &str) -> String {
        match self {
            Self::Npm => format!("npx --no-install {command}"),
            Self::Pnpm => format!("pnpm exec {command}"),
            Self::Yarn => format!("yarn {command}"),
            Self::Bun => format!("bunx --no-install {command}"),
        }
    }
}
