//! Words in configuration that let something through, whatever the file.

use std::sync::LazyLock;

use regex::Regex;

use super::config::Changed;
use super::diff::FileStatus;
use super::idioms::pattern;

/// Whether such words came, or words that demand something went.
pub(super) fn loosened(lines: &Changed<'_>) -> bool {
    let says = |lines: &[&str], what: &Regex| lines.iter().any(|l| what.is_match(l));
    says(&lines.added, &LOOSENS)
        || leaves_out(lines)
        || (lines.status != FileStatus::Added && says(&lines.removed, &DEMANDS))
        || (matches!(lines.name, ".npmrc" | ".yarnrc" | ".yarnrc.yml") && says(&lines.added, &SHELL))
        || (lines.name.starts_with("rust-toolchain") && says(&lines.added, &TOOLCHAIN))
        || (lines.name == "go.mod" && lines.added.iter().any(|l| l.trim_start().starts_with("ignore ")))
}

/// Words that let something through.
static LOOSENS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r#"(?i)^\s*["']?(?:extend[-_])?(?:per-file-)?ignores?["']?\s*[:=]"#,
        r"|\b(?:ignore_errors|ignore_outcome|ignore_missing_imports|disable_error_code|norecursedirs|exclude_lines|omit)\b",
        r"|\bcontinue-on-error:\s*true|\ballow_failure:\s*true|\bif:\s*(?:\$\{\{\s*)?false\b",
        r"|\|\|\s*(?:true|:|exit 0|echo|/bin/true)(?:\W|$)|;\s*(?:true|:|exit 0)\s*[\x22']?,?\s*$|\bset \+e\b",
        r"|--(?:ignore|deselect|no-verify|passWithNoTests|exit-zero|exclude-pattern|collect-only|noconftest)\b",
        r"|--(?:testPathIgnorePatterns|continue-on-collection-errors|suppress-no-test-exit-code)\b",
        r"|\baddopts\b.*\s-[km]\s|\bPYTEST_ADDOPTS\b|\bcollect_ignore\b|\btestPathIgnorePatterns\b",
        r"|\bpassWithNoTests\b\W*true|\ballowOnly\b\W*true|\bdangerouslyIgnoreUnhandledErrors\b|\btestRunner\b",
        r#"|=\s*(?:\{\s*level\s*=\s*)?["']allow["']|["']off["']"#,
        r"|\bskipTests\b|\bmaven\.test\.skip\b|test\.?failure\.?ignore|\bignoreFailures\b\W*true|\bWILL_FAIL\b",
        r"|\bDISABLED\s+(?:TRUE|ON|1)\b|\bexclude\b.*\bTests?\b",
        r#"|["'](?:jest|vitest|mocha|ava|tap|eslint|typescript|c8|nyc)["']\s*:\s*["'](?:file|link|npm|portal|git):"#,
    ))
});

/// Lines whose removal takes a demand away.
static DEMANDS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r#"(?i)=\s*(?:\{\s*level\s*=\s*)?["'](?:deny|forbid)["']"#,
        r"|\b(?:strict|disallow_\w+|warn_return_any)\s*[:=]\s*true",
        r"|\b(?:enable_testing|add_test|gtest_discover_tests|catch_discover_tests)\s*\(",
    ))
});

/// What npm runs scripts with, and whether it does.
static SHELL: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^\s*(?:script-shell|scriptShell|shell|ignore-scripts|node-options)\s*[:=\s]"));

/// A toolchain that is taken from a directory.
static TOOLCHAIN: LazyLock<Regex> = LazyLock::new(|| pattern(r#"\bpath["']?\s*="#));

static QUOTED: LazyLock<Regex> = LazyLock::new(|| pattern(r#"["'`]([^"'`]*)["'`]"#));

/// Whether a configuration of a script runner leaves out more than what is not the project's own.
fn leaves_out(lines: &Changed<'_>) -> bool {
    let runner = ["jest", "vite", "vitest", "playwright", "cypress"];
    if !runner.iter().any(|r| lines.name.starts_with(r)) {
        return false;
    }
    let mut within = false;
    lines.added.iter().any(|line| {
        let words = line.trim();
        let names = ["exclude", "testIgnore", "excludeSpecPattern", "modulePathIgnorePatterns"]
            .iter()
            .any(|key| words.trim_start_matches(['"', '\'']).starts_with(key));
        let looks = within || names;
        within = looks && !words.contains(']');
        looks && QUOTED.captures_iter(words).filter_map(|c| c.get(1)).any(|path| is_own(path.as_str()))
    })
}

fn is_own(pattern: &str) -> bool {
    let mut parts = pattern.split('/').filter(|p| !matches!(*p, "" | "." | "**" | "*" | "<rootDir>"));
    let others = ["node_modules", "dist", "build", "coverage", ".git", ".next", "exclude", "testIgnore"];
    parts.next().is_some_and(|first| !others.contains(&first))
}

#[cfg(test)]
mod tests {
    use super::super::tests::loosens;

    #[test]
    fn words_that_let_things_through_are_seen() {
        for (path, added) in [
            ("pyproject.toml", "ignore = [\"E501\"]"),
            ("pyproject.toml", "\"extend-ignore\": [1]"),
            ("setup.cfg", "per-file-ignores = x"),
            ("setup.cfg", "omit = tests/*"),
            (".github/workflows/ci.yml", "        continue-on-error: true"),
            (".github/workflows/ci.yml", "    if: ${{ false }}"),
            ("Makefile", "test: ; pytest || true"),
            ("Cargo.toml", "unwrap_used = \"allow\""),
            ("eslint.config.js", "\"no-undef\": \"off\""),
            ("pyproject.toml", "addopts = -q -k fast "),
            (".npmrc", "script-shell=/bin/true"),
            (".npmrc", "ignore-scripts=true"),
            ("rust-toolchain.toml", "path = \"tools\""),
            ("rust-toolchain", "toolchain = { path = \"tools\" }"),
            ("go.mod", "ignore ./internal"),
            ("vitest.config.ts", "exclude: ['src/hard/**'],"),
            ("vite.config.ts", "    exclude: [...configDefaults.exclude, 'src/hard.test.ts'],"),
            ("jest.config.js", "testPathIgnorePatterns: ['hard'],"),
            ("package.json", "\"jest\": {\"passWithNoTests\": true}"),
            ("package.json", "\"jest\": \"file:./fake\""),
            ("pom.xml", "<skipTests>true</skipTests>"),
            ("CMakeLists.txt", "set_tests_properties(a PROPERTIES WILL_FAIL TRUE)"),
        ] {
            assert!(loosens(path, &[], &[added]), "{path}: {added}");
        }
        for (path, added) in [
            ("package.json", "dependencies = [\"x\"]"),
            ("package.json", "name = \"ignored\""),
            ("package.json", "\"test\": \"jest\""),
            ("pyproject.toml", "addopts = -q"),
            ("vitest.config.ts", "exclude: ['**/node_modules/**', 'dist'],"),
            (".npmrc", "registry=https://example.invalid"),
            ("rust-toolchain.toml", "channel = \"1.95\""),
            ("Makefile", "# pytest || true"),
        ] {
            assert!(!loosens(path, &[], &[added]), "{path}: {added}");
        }
    }

    #[test]
    fn patterns_over_several_lines_are_seen() {
        assert!(loosens("vitest.config.ts", &[], &["exclude: [", "  'src/hard/**',", "],"]));
        assert!(!loosens("vitest.config.ts", &[], &["exclude: [", "  '**/dist/**',", "],", "globals: 'x',"]));
    }

    #[test]
    fn taking_a_demand_away_is_seen() {
        for (path, removed) in [
            ("Cargo.toml", "unwrap_used = \"deny\""),
            ("package.json", "  \"test\": \"jest --ci\","),
            ("pyproject.toml", "strict = true"),
            ("pyproject.toml", "addopts = --strict-markers"),
            ("CMakeLists.txt", "enable_testing()"),
        ] {
            assert!(loosens(path, &[removed], &[]), "{removed}");
            assert!(!loosens(path, &[removed], &[removed]), "a moved line is no change");
        }
    }
}
