//! The names of what a project depends on, as its manifests declare them.

use std::collections::BTreeSet;

use serde_json::Value;

/// Directories whose manifests are somebody else's.
const FOREIGN: [&str; 7] =
    ["node_modules", "vendor", "third_party", "target", "dist", "fixtures", "testdata"];

/// Whether what lies in a directory is somebody else's.
pub(crate) fn is_foreign(dir: &str) -> bool {
    dir.split('/').any(|part| FOREIGN.contains(&part))
}

/// Whether a file declares dependencies.
pub(crate) fn is_one(path: &str) -> bool {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    let known = matches!(name, "pyproject.toml" | "package.json" | "Cargo.toml" | "go.mod")
        || name
            .strip_prefix("requirements")
            .and_then(|rest| rest.rsplit_once('.'))
            .is_some_and(|(_, end)| end == "txt");
    known && !is_foreign(dir)
}

/// A name as the registries compare it.
pub(crate) fn normal(name: &str) -> String {
    name.trim().to_lowercase().replace(['_', '.'], "-")
}

/// The normal names of what a manifest declares.
///
/// # Errors
/// Why it cannot be read.
pub(crate) fn names(path: &str, bytes: &[u8]) -> Result<BTreeSet<String>, String> {
    let text = str::from_utf8(bytes).map_err(|_| "not UTF-8".to_owned())?;
    let names: Vec<String> = match path.rsplit('/').next().unwrap_or(path) {
        "package.json" => package_json(text)?,
        "Cargo.toml" => cargo(&toml(text)?),
        "pyproject.toml" => pyproject(&toml(text)?),
        "go.mod" => go_mod(text),
        _ => text.lines().filter_map(requirement).collect(),
    };
    Ok(names.iter().map(|name| normal(name)).collect())
}

fn toml(text: &str) -> Result<toml::Table, String> {
    text.parse().map_err(|error: toml::de::Error| error.message().to_owned())
}

fn package_json(text: &str) -> Result<Vec<String>, String> {
    let whole: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let sections = ["dependencies", "devDependencies", "peerDependencies", "optionalDependencies"];
    let names = sections.iter().filter_map(|section| whole.get(section)?.as_object());
    Ok(names.flat_map(|section| section.keys().cloned()).collect())
}

/// The keys of the tables of dependencies, those of targets and of the workspace too.
fn cargo(table: &toml::Table) -> Vec<String> {
    let mut names = Vec::new();
    for (key, value) in table {
        let Some(inner) = value.as_table() else { continue };
        match key.as_str() {
            "dependencies" | "dev-dependencies" | "build-dependencies" => {
                // A crate of the own workspace is not a new one.
                let own = |value: &toml::Value| value.get("path").is_some();
                names.extend(inner.iter().filter(|(_, value)| !own(value)).map(|(name, value)| {
                    let renamed = value.get("package").and_then(toml::Value::as_str);
                    renamed.unwrap_or(name).to_owned()
                }));
            }
            "workspace" => names.extend(cargo(inner)),
            "target" => names.extend(inner.values().filter_map(toml::Value::as_table).flat_map(cargo)),
            _ => {}
        }
    }
    names
}

/// PEP 621, PEP 735, the build system, and poetry.
fn pyproject(table: &toml::Table) -> Vec<String> {
    let at = |path: &[&str]| {
        path.iter().try_fold(None, |found: Option<&toml::Value>, key| {
            Some(Some(found.map_or_else(|| table.get(*key), |value| value.get(key))?))
        })
    };
    let get = |path: &[&str]| at(path).flatten();
    let list = |value: &toml::Value| -> Vec<String> {
        let items = value.as_array().into_iter().flatten().filter_map(toml::Value::as_str);
        items.filter_map(requirement).collect()
    };
    let mut names = Vec::new();
    for path in [&["project", "dependencies"][..], &["build-system", "requires"]] {
        names.extend(get(path).map(list).unwrap_or_default());
    }
    for path in [&["project", "optional-dependencies"][..], &["dependency-groups"]] {
        let groups = get(path).and_then(toml::Value::as_table);
        names.extend(groups.into_iter().flat_map(|groups| groups.values()).flat_map(list));
    }
    let keys = |value: Option<&toml::Value>| -> Vec<String> {
        let table = value.and_then(toml::Value::as_table);
        table.into_iter().flat_map(|table| table.keys().cloned()).filter(|name| name != "python").collect()
    };
    names.extend(keys(get(&["tool", "poetry", "dependencies"])));
    names.extend(keys(get(&["tool", "poetry", "dev-dependencies"])));
    let groups = get(&["tool", "poetry", "group"]).and_then(toml::Value::as_table);
    for group in groups.into_iter().flat_map(|groups| groups.values()) {
        names.extend(keys(group.get("dependencies")));
    }
    names
}

/// The name of a requirement of Python: `Name[extra] >= 1 ; marker`.
fn requirement(line: &str) -> Option<String> {
    let line = line.split('#').next().unwrap_or_default().trim();
    let end = line
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')))
        .unwrap_or(line.len());
    let name = line.get(..end)?;
    // Options (`-r other.txt`), paths and addresses name no package.
    (name.starts_with(|c: char| c.is_ascii_alphanumeric()) && !line.contains("://")).then(|| name.to_owned())
}

/// The modules of `require` that the project itself asks for.
fn go_mod(text: &str) -> Vec<String> {
    let (mut names, mut inside) = (Vec::new(), false);
    for line in text.lines() {
        let line = line.trim();
        let entry = match line.strip_prefix("require") {
            Some(rest) if rest.trim() == "(" => {
                inside = true;
                continue;
            }
            Some(rest) => rest.trim(),
            None if inside && line == ")" => {
                inside = false;
                continue;
            }
            None if inside => line,
            None => continue,
        };
        if !entry.ends_with("// indirect") {
            names.extend(
                entry.split_whitespace().next().filter(|name| !name.starts_with("//")).map(str::to_owned),
            );
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_manifest_names_what_it_asks_for() {
        for (path, text, due) in [
            (
                "pyproject.toml",
                "[project]\ndependencies = [\"PyYAML>=6\", \"requests[socks] ; python_version < '3.9'\"]\n\
                 [project.optional-dependencies]\ndev = [\"pytest\"]\n[build-system]\nrequires = [\"hatchling\"]\n\
                 [dependency-groups]\nlint = [\"ruff\", {include-group = \"dev\"}]\n[tool.poetry.dependencies]\npython = \"^3\"\nzope_x = \"1\"\n\
                 [tool.poetry.group.doc.dependencies]\nsphinx = \"7\"\n[tool.ruff]\nselect = [\"E\"]\n",
                "hatchling pytest pyyaml requests ruff sphinx zope-x",
            ),
            (
                "a/requirements-dev.txt",
                "# c\n-r base.txt\nFlask==3 # web\n\ngit+https://x.invalid/y\n./local\n",
                "flask",
            ),
            (
                "package.json",
                "{\"name\": \"x\", \"dependencies\": {\"a\": \"1\"}, \"devDependencies\": {\"@s/b\": \"2\"}, \"scripts\": {\"c\": \"d\"}}",
                "@s/b a",
            ),
            (
                "Cargo.toml",
                "[dependencies]\nserde = \"1\"\nown = {path = \"../own\"}\nalias = {package = \"real\", version = \"1\"}\n\
                 [target.'cfg(unix)'.dependencies]\nnix = \"0.3\"\n[workspace.dependencies]\ntokio = \"1\"\n",
                "nix real serde tokio",
            ),
            (
                "go.mod",
                "module x\ngo 1.22\nrequire example.com/a v1.0.0\nrequire (\n\texample.com/b v1\n\texample.com/c v1 // indirect\n)\n",
                "example-com/a example-com/b",
            ),
        ] {
            assert!(is_one(path), "{path}");
            let found: Vec<String> = names(path, text.as_bytes()).unwrap().into_iter().collect();
            assert_eq!(found.join(" "), due, "{path}");
        }
        for path in ["node_modules/x/package.json", "package-lock.json", "Cargo.lock", "notes.txt"] {
            assert!(!is_one(path), "{path}");
        }
        assert!(names("package.json", b"{").is_err() && names("Cargo.toml", b"a = [").is_err());
    }
}
