//! What cargo is told about tests.

use std::sync::LazyLock;

use regex::Regex;

use super::config::Changed;
use super::idioms::pattern;

static SWITCHED_OFF: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?:^|[\s{,.])(test|autotests|harness|doctest)\s*=\s*false\b"));

static RUNS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?:^|[\s{,.])(?:runner|rustflags|rustdocflags|rustc|rustdoc|rustc-wrapper|rustc-workspace-wrapper)\s*=",
    )
});

static QUOTED: LazyLock<Regex> = LazyLock::new(|| pattern(r#""([^"]*)""#));

/// Whether tests of a package are switched off, or members left out.
pub(super) fn manifest_loosened(lines: &Changed<'_>) -> bool {
    let mut section = "";
    for line in &lines.added {
        let line = line.trim();
        if line.starts_with('[') {
            section = line;
        }
        // Benchmarks bring harnesses of their own.
        let of_a_bench = section.starts_with("[[bench]]") || section.starts_with("[[example]]");
        let of_no_test = of_a_bench || section.starts_with("[[bin]]");
        let switched_off = SWITCHED_OFF
            .captures(line)
            .and_then(|c| c.get(1))
            .is_some_and(|key| !(of_a_bench || (of_no_test && key.as_str() == "doctest")));
        if switched_off || (line.starts_with("required-features") && !of_no_test) {
            return true;
        }
    }
    let members = |lines: &[&str]| -> Vec<String> {
        let named = lines.iter().filter(|l| {
            let line = l.trim_start();
            line.starts_with("members") || line.starts_with("default-members")
        });
        named
            .flat_map(|l| QUOTED.captures_iter(l))
            .filter_map(|c| Some(c.get(1)?.as_str().to_owned()))
            .collect()
    };
    let (before, after) = (members(&lines.removed), members(&lines.added));
    !after.is_empty() && before.iter().any(|member| !after.contains(member))
}

/// Whether what compiles or runs the tests is another thing, or is told something else.
pub(super) fn config_loosened(lines: &Changed<'_>) -> bool {
    lines.added.iter().chain(&lines.removed).any(|l| RUNS.is_match(l))
}

#[cfg(test)]
mod tests {
    use super::super::tests::loosens;

    #[test]
    fn tests_that_are_switched_off_are_seen() {
        for added in [
            &["test = false"][..],
            &["[lib]", "test = false"],
            &["autotests = false"],
            &["harness = false"],
            &["doctest = false"],
            &["[[test]]", "name = \"a\"", "harness = false"],
            &["[[test]]", "required-features = [\"x\"]"],
            &["lib = { test = false }"],
        ] {
            assert!(loosens("Cargo.toml", &[], added), "{added:?}");
        }
        assert!(loosens("Cargo.toml", &["members = [\"a\", \"b\"]"], &["members = [\"a\"]"]));
    }

    #[test]
    fn other_changes_of_the_manifest_are_silent() {
        for added in [
            &["[[bench]]", "name = \"speed\"", "harness = false"][..],
            &["[[bin]]", "required-features = [\"x\"]"],
            &["test = true"],
            &["latest = false"],
            &["serde = \"1\""],
            &["[[test]]", "name = \"b\""],
        ] {
            assert!(!loosens("Cargo.toml", &[], added), "{added:?}");
        }
        assert!(!loosens("Cargo.toml", &["members = [\"a\"]"], &["members = [\"a\", \"b\"]"]));
    }

    #[test]
    fn another_runner_or_other_flags_are_seen() {
        for added in [
            "runner = \"true\"",
            "rustflags = [\"--cfg\", \"x\"]",
            "build.rustflags = \"-Awarnings\"",
            "rustc-wrapper = \"x\"",
        ] {
            assert!(loosens(".cargo/config.toml", &[], &[added]), "{added}");
        }
        assert!(loosens(".cargo/config.toml", &["rustflags = [\"-Dwarnings\"]"], &[]));
        assert!(!loosens(".cargo/config.toml", &[], &["[alias]", "xtask = \"run -p xtask --\""]));
    }
}
