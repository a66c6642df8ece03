//! The ring rule and the third-party rule, on what cargo says of the manifests.

use super::finding::{Finding, Rule};
use super::table::{self, OWNERS, Ring, Row, ThirdParty};
use crate::workspace::{Dependency, DependencyKind, Package};

/// Compares every direct dependency with the table.
pub(crate) fn check(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let Some(row) = table::row(&package.name) else {
            let message = "this crate has no row: add one to xtask/src/tidy/table.rs and say why in an ADR";
            findings.push(Finding::whole(&package.name, Rule::Ring, message));
            continue;
        };
        for dependency in &package.dependencies {
            let ours =
                packages.iter().any(|other| other.name == dependency.name) && dependency.source.is_none();
            let found = if ours { edge(row, dependency) } else { foreign(row, dependency) };
            findings.extend(found.map(|(rule, message)| Finding::whole(&package.name, rule, message)));
        }
    }
    findings
}

fn is_dev(dependency: &Dependency) -> bool {
    dependency.kind == Some(DependencyKind::Dev)
}

fn edge(row: &Row, dependency: &Dependency) -> Option<(Rule, String)> {
    let name = dependency.name.as_str();
    if is_dev(dependency) || row.uses.contains(&name) {
        return None;
    }
    let development = table::row(name).is_some_and(|to| to.ring == Ring::Development);
    let message = match (row.ring, development) {
        (Ring::Product(_), true) => format!("`{name}` is for [dev-dependencies] only"),
        (Ring::Product(ring), false) => {
            format!("ring {ring}: must not depend on `{name}`; a new edge needs an ADR")
        }
        (Ring::Development, _) => format!("must not depend on `{name}`; a new edge needs a row in the table"),
    };
    Some((Rule::Ring, message))
}

fn foreign(row: &Row, dependency: &Dependency) -> Option<(Rule, String)> {
    let name = dependency.name.as_str();
    let message = match dependency.source.as_deref() {
        None => format!("`{name}` comes from a path outside the workspace"),
        Some(source) if source.starts_with("git+") => {
            format!("`{name}` comes from git; take a released version")
        }
        Some(_) if is_dev(dependency) => return None,
        Some(_) => third_party(row, name)?,
    };
    Some((Rule::ThirdParty, message))
}

fn third_party(row: &Row, name: &str) -> Option<String> {
    match row.third_party {
        ThirdParty::Only(list) if !list.contains(&name) => {
            return Some(format!("`{name}` is not allowed here; only {}", list.join(", ")));
        }
        ThirdParty::Never(list) if list.contains(&name) => {
            return Some(format!("must never depend on `{name}`"));
        }
        ThirdParty::Only(_) | ThirdParty::Never(_) => {}
    }
    let (_, owners) = OWNERS.iter().find(|(owned, _)| *owned == name)?;
    (matches!(row.ring, Ring::Product(_)) && !owners.contains(&row.name))
        .then(|| format!("`{name}` is for {} only; go through it", owners.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Metadata;

    /// Name, kind, source.
    type Fake<'a> = (&'a str, &'a str, &'a str);

    /// Judges crates with their dependencies, given as cargo prints them.
    fn judged(crates: &[(&str, &[Fake<'_>])]) -> Vec<String> {
        let packages: Vec<_> = crates
            .iter()
            .map(|(name, dependencies)| {
                let dependencies: Vec<_> = dependencies
                    .iter()
                    .map(|(name, kind, source)| {
                        let kind = if *kind == "normal" { None } else { Some(kind) };
                        let source = if *source == "ours" { None } else { Some(source) };
                        serde_json::json!({"name": name, "kind": kind, "source": source, "optional": false})
                    })
                    .collect();
                serde_json::json!({
                    "name": name, "manifest_path": format!("/r/{name}/Cargo.toml"), "dependencies": dependencies,
                })
            })
            .collect();
        let metadata: Metadata = serde_json::from_value(serde_json::json!({ "packages": packages })).unwrap();
        check(&metadata.packages).iter().map(ToString::to_string).collect()
    }

    const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

    #[test]
    fn the_allowed_edges_pass() {
        let findings = judged(&[
            ("peers-model", &[("serde", "normal", REGISTRY)]),
            ("peers-core", &[("peers-model", "normal", "ours"), ("regex", "normal", REGISTRY)]),
            ("peers-sys", &[("peers-model", "normal", "ours"), ("rustix", "normal", REGISTRY)]),
        ]);
        assert_eq!(findings, Vec::<String>::new());
    }

    #[test]
    fn an_arrow_outwards_is_a_violation_also_as_a_build_dependency() {
        for kind in ["normal", "build"] {
            let findings = judged(&[("peers-core", &[("peers-sys", kind, "ours")]), ("peers-sys", &[])]);
            assert_eq!(
                findings,
                ["peers-core: [ring] ring 1: must not depend on `peers-sys`; a new edge needs an ADR"]
            );
        }
    }

    #[test]
    fn siblings_that_must_not_know_each_other_are_told_apart() {
        let findings = judged(&[("peers-git", &[("peers-store", "normal", "ours")]), ("peers-store", &[])]);
        assert_eq!(findings.len(), 1, "{findings:?}");
        let findings = judged(&[("peers-tools", &[("peers-core", "normal", "ours")]), ("peers-core", &[])]);
        assert_eq!(findings.len(), 1, "{findings:?}");
    }

    #[test]
    fn the_simulator_is_a_dev_dependency_and_nothing_else() {
        let with = |kind| judged(&[("peers-run", &[("peers-sim", kind, "ours")]), ("peers-sim", &[])]);
        assert_eq!(with("dev"), Vec::<String>::new());
        assert_eq!(with("normal"), ["peers-run: [ring] `peers-sim` is for [dev-dependencies] only"]);
    }

    #[test]
    fn an_unknown_crate_asks_for_a_row() {
        let findings = judged(&[("peers-hub", &[])]);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].contains("table.rs"), "{findings:?}");
    }

    #[test]
    fn the_model_takes_nothing_that_is_not_listed() {
        let findings = judged(&[("peers-model", &[("regex", "normal", REGISTRY)])]);
        assert_eq!(
            findings,
            [
                "peers-model: [third-party] `regex` is not allowed here; only serde, serde_json, jiff, thiserror"
            ]
        );
    }

    #[test]
    fn a_forbidden_crate_is_named_but_free_in_tests() {
        let with = |kind| judged(&[("peers-core", &[("tokio", kind, REGISTRY)])]);
        assert_eq!(with("normal"), ["peers-core: [third-party] must never depend on `tokio`"]);
        assert_eq!(with("dev"), Vec::<String>::new());
    }

    #[test]
    fn a_crate_with_an_owner_stays_with_it() {
        let findings = judged(&[("peers-run", &[("git2", "normal", REGISTRY)])]);
        assert_eq!(findings, ["peers-run: [third-party] `git2` is for peers-git only; go through it"]);
    }

    #[test]
    fn git_and_stray_path_sources_are_violations_even_in_tests() {
        let findings = judged(&[(
            "peers-core",
            &[("regex", "dev", "git+https://example.invalid/regex#1"), ("elsewhere", "dev", "ours")],
        )]);
        assert_eq!(findings.len(), 2, "{findings:?}");
    }
}
