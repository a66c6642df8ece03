//! The manifests: why a dependency is there, one version for all crates, lints for all crates.

use super::finding::{Finding, Rule};
use crate::workspace::TextFile;

/// What every Rust programmer knows needs no reason.
const OBVIOUS: &[&str] = &[
    "assert_cmd",
    "clap",
    "insta",
    "proptest",
    "serde",
    "serde_json",
    "sha2",
    "tempfile",
    "thiserror",
    "tokio",
    "tracing",
    "tracing-subscriber",
];

/// Checks the root manifest and those of the crates.
pub(crate) fn check(files: &[TextFile]) -> Vec<Finding> {
    files
        .iter()
        .filter(|file| file.path == "Cargo.toml" || file.path.ends_with("/Cargo.toml"))
        // Data of tests, and a package that is no member of the workspace.
        .filter(|file| !file.path.starts_with("tests/fixtures/") && !file.path.starts_with("fuzz/"))
        .flat_map(|file| if file.path == "Cargo.toml" { reasons(file) } else { member(file) })
        .collect()
}

/// Lines of the file with the section they stand in; comment and blank lines are left out.
fn entries(text: &str) -> impl Iterator<Item = (usize, &str, &str)> {
    let mut section = "";
    (1..).zip(text.lines()).filter_map(move |(number, line)| {
        let line = line.trim();
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']);
            return None;
        }
        (!line.is_empty() && !line.starts_with('#')).then_some((number, section, line))
    })
}

fn reasons(file: &TextFile) -> Vec<Finding> {
    entries(&file.text)
        .filter(|(_, section, line)| *section == "workspace.dependencies" && line.contains('='))
        .filter_map(|(number, _, line)| {
            let name = line.split(['=', '.']).next()?.trim();
            let ours = line.contains("path =");
            (!ours && !OBVIOUS.contains(&name) && !has_comment(line)).then(|| {
                let message = format!("`{name}` has no comment that says why it is here");
                Finding::at(&file.path, number, Rule::Manifest, message)
            })
        })
        .collect()
}

/// A `#` outside quotes.
fn has_comment(line: &str) -> bool {
    // Every second part of a split at quotes is a string.
    line.split('"').step_by(2).any(|part| part.contains('#'))
}

fn member(file: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut lints = false;
    for (number, section, line) in entries(&file.text) {
        let shared = line.replace(' ', "").contains("workspace=true");
        lints |= section == "lints" && shared;
        if section.ends_with("dependencies") && !shared {
            let message =
                "versions and paths live in [workspace.dependencies]; write `name.workspace = true`";
            findings.push(Finding::at(&file.path, number, Rule::Manifest, message));
        }
    }
    if !lints {
        findings.push(Finding::whole(&file.path, Rule::Manifest, "no `[lints] workspace = true`"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(path: &str, text: &str) -> Vec<String> {
        let files = [TextFile { path: path.to_owned(), text: text.to_owned() }];
        check(&files).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_unusual_dependency_says_why_it_is_here() {
        let text = "[workspace.dependencies]\npeers-x = { path = \"crates/x\" }\nserde = \"1\"\n\
                    nix = \"1\" # groups\nrare = { version = \"1\", features = [\"#\"] }\n[workspace.lints.rust]\na = \"b\"\n";
        assert_eq!(
            judged("Cargo.toml", text),
            ["Cargo.toml:5: [manifest] `rare` has no comment that says why it is here"]
        );
    }

    #[test]
    fn a_crate_takes_versions_and_lints_from_the_workspace() {
        let good =
            "[lints]\nworkspace = true\n[dependencies]\nserde.workspace = true\nx = { workspace = true }\n";
        assert_eq!(judged("crates/x/Cargo.toml", good), Vec::<String>::new());
        let own_version = format!("{good}regex = \"1\"\n");
        assert!(
            judged("crates/x/Cargo.toml", &own_version)[0]
                .starts_with("crates/x/Cargo.toml:6: [manifest] versions")
        );
        let no_lints = good.replace("[lints]\nworkspace = true\n", "");
        assert_eq!(
            judged("crates/x/Cargo.toml", &no_lints),
            ["crates/x/Cargo.toml: [manifest] no `[lints] workspace = true`"]
        );
    }

    #[test]
    fn target_and_dev_dependencies_are_held_to_the_same() {
        for section in ["dev-dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"] {
            let text = format!("[lints]\nworkspace = true\n[{section}]\nregex = \"1\"\n");
            assert_eq!(judged("crates/x/Cargo.toml", &text).len(), 1, "{section}");
        }
    }
}
