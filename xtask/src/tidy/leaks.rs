//! No path of the machine that somebody worked on.

use super::finding::{Finding, Rule};
use crate::workspace::TextFile;

/// Joined at compile time, so that this file does not contain them.
const LEAKS: &[&str] = &[
    concat!("/wor", "k/main"),
    concat!("/wor", "k/shared"),
    concat!("../sha", "red"),
    concat!("/tmp/bash", "_jobs"),
    concat!("/tmp/peers", "-brief"),
    concat!("/root/.", "cargo"),
];

/// Looks through every text file, comments and strings included.
pub(crate) fn check(files: &[TextFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        for (number, line) in (1..).zip(file.text.lines()) {
            for leak in LEAKS {
                if line.contains(leak) {
                    let message = format!("`{leak}` exists on one machine only");
                    findings.push(Finding::at(&file.path, number, Rule::BuildMachine, message));
                }
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_leak_is_found_with_its_line() {
        for leak in LEAKS {
            let files = [TextFile { path: "a.md".to_owned(), text: format!("fine\nsee {leak}/x\n") }];
            let findings = check(&files);
            assert_eq!(findings.len(), 1, "{leak}");
            assert_eq!(findings[0].line, Some(2));
        }
    }

    #[test]
    fn a_working_directory_of_a_container_is_no_leak() {
        let files = [TextFile { path: "a.md".to_owned(), text: "/work/src /tmp/x /workspace".to_owned() }];
        assert_eq!(check(&files), []);
    }
}
