//! Runs every rule over the tree and prints what they found.

use std::cmp::Reverse;
use std::io::Write;
use std::path::Path;

use super::finding::{Finding, Rule, Severity};
use super::table::TABLE;
use super::{ceilings, circles, dependencies, documents, leaks, manifests, sources};
use crate::{Failure, Outcome, crates, workspace};

pub(crate) fn run(out: &mut dyn Write) -> Result<Outcome, Failure> {
    let root = workspace::root()?;
    let metadata = workspace::metadata(&root)?;
    let files = workspace::text_files(&root)?;
    let homes = sources::homes(&root, &metadata.packages)?;
    let sources = sources::read(&files, &homes);

    let mut findings = dependencies::check(&metadata.packages);
    findings.extend(sources::check(&sources));
    findings.extend(ceilings::check(&sources, &metadata.metadata.unwrap_or_default().ceilings));
    findings.extend(documents::check(&root, &files));
    findings.extend(leaks::check(&root, &files));
    findings.extend(manifests::check(&files));
    let crates = check_crate_count(&root, &mut findings);

    findings.sort();
    for finding in &findings {
        writeln!(out, "{finding}")?;
    }
    let warnings = findings.iter().filter(|finding| finding.severity == Severity::Warning).count();
    let violations = findings.len() - warnings;
    let seen = match crates {
        Some(crates) => format!("{} files, {crates} crates in the default build", files.len()),
        None => format!("{} files", files.len()),
    };
    writeln!(out, "tidy: {seen}: {}, {}", counted(violations, "violation"), counted(warnings, "warning"))?;
    Ok(if violations == 0 { Outcome::Ok } else { Outcome::Negative })
}

/// `cargo xtask circles`: the files that use each other in a circle, largest circle first.
pub(crate) fn list_circles(out: &mut dyn Write) -> Result<Outcome, Failure> {
    let root = workspace::root()?;
    let files = workspace::text_files(&root)?;
    let sources = sources::read(&files, &sources::homes(&root, &workspace::metadata(&root)?.packages)?);
    let mut circles = Vec::new();
    for row in TABLE.iter().filter(|row| ceilings::has_product(row)) {
        circles.extend(
            circles::of(&ceilings::product(&sources, row.name)).into_iter().map(|circle| (row.name, circle)),
        );
    }
    circles.sort_by_key(|(_, circle)| Reverse(circle.len()));
    for (name, circle) in &circles {
        writeln!(out, "{name}: {} files", circle.len())?;
        for (file, uses) in circle {
            writeln!(out, "  {file} uses {}", uses.join(", "))?;
        }
    }
    Ok(Outcome::Ok)
}

fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// A tree that cargo cannot resolve is a violation too, and must not hide the others.
fn check_crate_count(root: &Path, findings: &mut Vec<Finding>) -> Option<usize> {
    match crates::count(root) {
        Ok(count) => {
            findings.extend(over_limit(count));
            Some(count)
        }
        Err(failure) => {
            findings.push(Finding::whole("Cargo.lock", Rule::CrateCount, failure.to_string()));
            None
        }
    }
}

fn over_limit(count: usize) -> Option<Finding> {
    let limit = crates::LIMIT;
    (count >= limit).then(|| {
        let message = format!(
            "{count} crates in the default build, the limit is below {limit}; drop one or widen by ADR"
        );
        Finding::whole("Cargo.lock", Rule::CrateCount, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_itself_is_already_too_many_crates() {
        assert_eq!(over_limit(crates::LIMIT - 1), None);
        assert_eq!(over_limit(crates::LIMIT).unwrap().rule, Rule::CrateCount);
    }

    #[test]
    fn one_violation_is_singular() {
        assert_eq!(counted(1, "violation"), "1 violation");
        assert_eq!(counted(0, "warning"), "0 warnings");
    }
}
