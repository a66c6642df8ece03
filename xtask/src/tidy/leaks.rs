//! No path of the machine that somebody worked on.

use std::path::Path;

use super::finding::{Finding, Rule};
use crate::workspace::TextFile;

/// Where the directories of people lie; what follows names one. Joined at compile time, so that this file
/// does not hold them.
const HOMES: [&str; 2] = [concat!("/ho", "me/"), concat!("/Use", "rs/")];
/// People of examples.
const NOBODY: [&str; 6] = ["me", "op", "ann", "ben", "you", "user"];
/// What is always somebody's own.
const OWN: [&str; 1] = [concat!("/ro", "ot/")];
/// A shorter path of the workspace says too little of a machine, and may be a path of an example.
const TELLING: usize = 8;

/// Looks through every text file, comments and strings included. `root` is where the workspace lies on this
/// machine, which no file of it may know either.
pub(crate) fn check(root: &Path, files: &[TextFile]) -> Vec<Finding> {
    let root = root.to_str().filter(|root| root.len() >= TELLING && root.matches('/').count() > 1);
    let mut findings = Vec::new();
    for file in files {
        for (number, line) in (1..).zip(file.text.lines()) {
            let own = OWN.into_iter().chain(root).find(|own| line.contains(own));
            if let Some(leak) = own.map(str::to_owned).or_else(|| home(line)) {
                let message = format!("`{leak}` exists on one machine only");
                findings.push(Finding::at(&file.path, number, Rule::BuildMachine, message));
            }
        }
    }
    findings
}

/// The home directory of somebody that the line names.
fn home(line: &str) -> Option<String> {
    HOMES.into_iter().find_map(|homes| {
        line.match_indices(homes).find_map(|(at, _)| {
            let rest = line.get(at + homes.len()..)?;
            let end = rest.find(|c: char| !(c.is_alphanumeric() || "._-".contains(c)));
            let name = rest.get(..end.unwrap_or(rest.len()))?;
            (!name.is_empty() && !name.starts_with('.') && !NOBODY.contains(&name))
                .then(|| format!("{homes}{name}"))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(root: &str, line: &str) -> usize {
        let files = [TextFile { path: "a.md".to_owned(), text: format!("fine\n{line}\n") }];
        let findings = check(Path::new(root), &files);
        assert!(findings.iter().all(|finding| finding.line == Some(2)));
        findings.len()
    }

    #[test]
    fn the_place_of_the_workspace_and_directories_of_people_are_found() {
        let root = ["", "srv", "builds", "p1"].join("/");
        assert_eq!(found(&root, &format!("see {root}/docs")), 1);
        for homes in HOMES {
            assert_eq!(found("/x", &format!("in {homes}me and {homes}jane/src")), 1);
        }
        for own in OWN {
            assert_eq!(found("/x", &format!("{own}.cargo/bin")), 1);
        }
    }

    #[test]
    fn paths_of_examples_and_short_places_are_no_leaks() {
        let [homes, _] = HOMES;
        assert_eq!(found("/srv", "/work/src /tmp/x /srv/data /workspace"), 0);
        assert_eq!(found("/x", &format!("{homes}me/a.yaml {homes}op/x {homes} /mnt{homes}.config")), 0);
    }
}
