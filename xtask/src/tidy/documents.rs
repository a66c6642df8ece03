//! Decision records, format pages, and links between documents.

use std::path::Path;

use super::finding::{Finding, Rule};
use crate::workspace::TextFile;

const ADR: &str = "docs/adr/";
const FORMATS: &str = "docs/formats/";

/// What a decision record consists of, in this order.
const SECTIONS: &[&str] = &["Context", "Decision", "Consequences", "Alternatives"];

/// Markdown below these goes into other people's repositories or is data for tests; its links are not ours.
const FOREIGN: &[&str] = &["templates/", "modes/", "tests/"];

/// Checks every document.
pub(crate) fn check(root: &Path, files: &[TextFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| is_markdown(&file.path)) {
        if let Some(name) = file.path.strip_prefix(ADR) {
            findings.extend(decision(&file.path, name, &file.text));
        }
        if file.path.starts_with(FORMATS) && file.text.trim().is_empty() {
            findings.push(Finding::whole(&file.path, Rule::Document, "an empty format page"));
        }
        if !FOREIGN.iter().any(|foreign| file.path.starts_with(foreign)) {
            findings.extend(dead_links(root, file));
        }
    }
    findings
}

fn is_markdown(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "md")
}

fn decision(path: &str, name: &str, text: &str) -> Vec<Finding> {
    if name == "README.md" {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let numbered =
        name.split_once('-').is_some_and(|(number, _)| number.len() == 4 && number.parse::<u16>().is_ok());
    if !numbered {
        findings.push(Finding::whole(path, Rule::Document, "a decision record is called NNNN-title.md"));
    }
    let headings: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("## ")).map(str::trim).collect();
    let present: Vec<_> = headings.iter().filter(|heading| SECTIONS.contains(heading)).collect();
    for section in SECTIONS {
        if !headings.contains(section) {
            findings.push(Finding::whole(path, Rule::Document, format!("no heading `## {section}`")));
        }
    }
    if present.len() == SECTIONS.len() && !present.into_iter().eq(SECTIONS) {
        findings.push(Finding::whole(path, Rule::Document, format!("the order is {}", SECTIONS.join(", "))));
    }
    findings
}

fn dead_links(root: &Path, file: &TextFile) -> Vec<Finding> {
    let directory = Path::new(&file.path).parent().unwrap_or(Path::new(""));
    let mut fenced = false;
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for target in links(line) {
            let target = target.split('#').next().unwrap_or_default();
            let elsewhere = target.is_empty() || target.contains(':');
            if !elsewhere && !root.join(directory).join(target).exists() {
                findings.push(Finding::at(
                    &file.path,
                    number,
                    Rule::Link,
                    format!("`{target}` is not there"),
                ));
            }
        }
    }
    findings
}

/// The targets of `[text](target)` outside inline code.
fn links(line: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    // Every second part of a split at backticks is code.
    for prose in line.split('`').step_by(2) {
        for rest in prose.split("](").skip(1) {
            targets.extend(rest.split_once(')').map(|(target, _)| target));
        }
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(path: &str, text: &str) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("docs/adr")).unwrap();
        std::fs::write(dir.path().join("docs/there.md"), "x").unwrap();
        let files = [TextFile { path: path.to_owned(), text: text.to_owned() }];
        check(dir.path(), &files).iter().map(ToString::to_string).collect()
    }

    const WHOLE: &str = "# 1\n## Context\n## Decision\n## Consequences\n## Alternatives\n";

    #[test]
    fn a_decision_record_has_its_four_headings_in_order() {
        assert_eq!(judged("docs/adr/0001-x.md", WHOLE), Vec::<String>::new());
        let without = WHOLE.replace("## Alternatives", "## Notes");
        assert_eq!(
            judged("docs/adr/0001-x.md", &without),
            ["docs/adr/0001-x.md: [document] no heading `## Alternatives`"]
        );
        let shuffled = "## Decision\n## Context\n## Consequences\n## Alternatives\n";
        assert_eq!(judged("docs/adr/0001-x.md", shuffled).len(), 1);
    }

    #[test]
    fn a_decision_record_is_numbered() {
        assert_eq!(judged("docs/adr/rings.md", WHOLE).len(), 1);
        assert_eq!(judged("docs/adr/01-rings.md", WHOLE).len(), 1);
    }

    #[test]
    fn a_format_page_is_not_empty() {
        assert_eq!(
            judged("docs/formats/journal.md", " \n"),
            ["docs/formats/journal.md: [document] an empty format page"]
        );
        assert_eq!(judged("docs/formats/journal.md", "# Journal"), Vec::<String>::new());
    }

    #[test]
    fn links_to_files_that_are_not_there_are_found() {
        assert_eq!(
            judged("docs/a.md", "[x](there.md#y) [z](gone.md)"),
            ["docs/a.md:1: [link] `gone.md` is not there"]
        );
        assert_eq!(judged("docs/adr/README.md", "[x](../there.md)"), Vec::<String>::new());
    }

    #[test]
    fn code_anchors_and_addresses_are_not_links_to_files() {
        let text = "`[a](b)` [c](#d) [e](https://example.invalid/f)\n```\n[g](h)\n```\n";
        assert_eq!(judged("docs/a.md", text), Vec::<String>::new());
        assert_eq!(judged("templates/a.md", "[a](b)"), Vec::<String>::new());
    }
}
