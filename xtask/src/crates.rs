//! `cargo xtask crates`: how many crates the default build compiles.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use crate::{Failure, Outcome, workspace};

/// The default build stays below this many crates, ours included, so that a person can still review what
/// runs on their machine and a clean build stays a matter of minutes.
pub(crate) const LIMIT: usize = 250;

pub(crate) fn run(out: &mut dyn Write) -> Result<Outcome, Failure> {
    let count = count(&workspace::root()?)?;
    writeln!(out, "{count} crates in the default build of peers-cli (the limit is below {LIMIT})")?;
    Ok(if count < LIMIT { Outcome::Ok } else { Outcome::Negative })
}

/// Counts the unique packages that a build of `peers-cli` on this platform compiles.
pub(crate) fn count(root: &Path) -> Result<usize, Failure> {
    // Locked: a check must not change the lock file.
    let tree = ["tree", "--locked", "-e", "normal,build", "--prefix", "none", "-p", "peers-cli"];
    Ok(unique_packages(&workspace::cargo(root, &tree)?))
}

/// A line of the tree is `name version` and notes such as `(proc-macro)`, a path, or `(*)` for a repetition.
fn unique_packages(tree: &str) -> usize {
    tree.lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?, words.next()?))
        })
        .collect::<BTreeSet<_>>()
        .len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_package_counts_once_and_two_versions_count_twice() {
        let tree = "peers-cli v0.1.0 (/somewhere)\nserde v1.0.2\nserde_derive v1.0.2 (proc-macro)\n\
                    syn v2.0.0\nsyn v3.0.0\n\nserde v1.0.2 (*)\n";
        assert_eq!(unique_packages(tree), 5);
    }
}
