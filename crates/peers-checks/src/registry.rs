//! The table of checks, and how one of them is run.

use peers_model::check::{Args, NAMES, UsageError};
use peers_sys::{clock, digest, term, yaml};

use crate::check::Check;
use crate::checks::{
    api_stable, architecture_drift, blind, bug_ledger, checkoff, codemap, commented_code, contracts,
    deps_justified, docs, idle, mock_in_impl, mutation_sample, no_regression, no_secrets, no_shortcuts,
    no_skipped_tests, notes, plan, resolve_size, self_review, skip_reasons, state_of_work, step_advice,
    streak, suite, tdd_order, text_advice, three_class,
};
use crate::cx::CheckCx;
use crate::report::Outcome;

const REGISTRY: &[Check] = &[
    self_review::CHECK,
    bug_ledger::CHECK,
    no_secrets::CHECK,
    skip_reasons::CHECK,
    three_class::CHECK,
    idle::NO_EMPTY_BODIES,
    idle::STUB_RETURNS,
    commented_code::CHECK,
    mock_in_impl::CHECK,
    mutation_sample::CHECK,
    deps_justified::CHECK,
    resolve_size::CHECK,
    docs::PRESENT,
    docs::SECTIONS,
    docs::CONVERGED,
    api_stable::CHECK,
    codemap::GROUNDED,
    codemap::SIGNATURES,
    codemap::COMPLETE,
    codemap::SUMMARIES,
    codemap::AGENTS_IN_SYNC,
    codemap::ARCHITECTURE,
    streak::CONVERGENCE,
    streak::PEERS_HEALTHY,
    plan::COMPLETE,
    plan::PRESERVED,
    plan::TRACEABLE,
    plan::BLOCKS,
    contracts::CONTRACTS,
    contracts::ACCEPTANCE,
    contracts::E2E,
    checkoff::CHECK,
    notes::DELIVERY,
    notes::CONCERNS,
    notes::HONESTY,
    notes::HONESTY_EXTRA,
    blind::CHECK,
    no_shortcuts::CHECK,
    state_of_work::CLEAN,
    state_of_work::INTACT,
    step_advice::SIZE,
    step_advice::RATIO,
    text_advice::SKEPSIS,
    text_advice::STITCH,
    text_advice::WEASEL,
    step_advice::CLAIM,
    step_advice::CONFIDENCE,
    architecture_drift::CHECK,
    suite::TESTS,
    suite::LINT,
    suite::TYPES,
    no_regression::CHECK,
    no_skipped_tests::CHECK,
    tdd_order::CHECK,
];

/// All checks.
#[must_use]
pub fn registry() -> &'static [Check] {
    REGISTRY
}

/// The names of all checks, as goals may use them.
#[must_use]
pub fn names() -> &'static [&'static str] {
    &NAMES
}

/// The check of this name.
///
/// # Errors
/// [`UsageError`] that lists the names.
pub fn find(name: &str) -> Result<&'static Check, UsageError> {
    REGISTRY.iter().find(|check| check.name == name).ok_or_else(|| {
        let near = yaml::closest(name, NAMES).map(|near| format!("; did you mean `{near}`?"));
        UsageError(format!(
            "there is no check `{}`{} (checks: {})",
            term::line(name, 80),
            near.unwrap_or_default(),
            NAMES.join(", ")
        ))
    })
}

/// `name` without the mode that old goals put before it (`audit:self-review`).
#[must_use]
pub fn without_mode(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, name)| name)
}

/// Runs a check with its own flags, those that the command knows taken out.
///
/// # Errors
/// [`UsageError`] for an unknown name or flag; whatever goes wrong while measuring is an outcome.
pub fn run(name: &str, cx: &CheckCx, flags: &[String]) -> Result<Outcome, UsageError> {
    let check = find(name)?;
    let args = check.parse(flags)?;
    let begun = clock::mono();
    let report = (check.run)(cx, &args);
    Ok(Outcome {
        check: check.name.to_owned(),
        report,
        base: cx.base().cloned(),
        head: Some(cx.head().clone()),
        inputs_digest: Some(inputs_digest(check, cx, &args)),
        took: clock::mono().since(begun),
    })
}

/// Everything that the answer depends on: the program, the question, the commits, the record.
fn inputs_digest(check: &Check, cx: &CheckCx, args: &Args) -> String {
    let base = cx.base().map_or("-", |base| base.as_str());
    let record = cx.attribution().map_or("no record", |attribution| attribution.digest());
    let fixed = [env!("CARGO_PKG_VERSION"), check.name, cx.head().as_str(), base, record];
    let given = args.given().iter().map(|(name, value)| format!("--{name}={value}"));
    let text = fixed.iter().map(ToString::to_string).chain(given).collect::<Vec<_>>().join("\n");
    digest::sha256_hex(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str, flags: &[&str]) -> Result<Args, UsageError> {
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        find(name).unwrap().parse(&flags)
    }

    #[test]
    fn the_names_are_those_of_the_table() {
        let table: Vec<&str> = registry().iter().map(|check| check.name).collect();
        assert_eq!(table, names());
        for check in registry() {
            let tame = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
            assert!(check.name.bytes().all(tame) && !check.name.starts_with('-'));
        }
    }

    #[test]
    fn row_82_a_name_that_is_none_lists_the_names() {
        for bad in ["../x", "a/b", "-x", "nope", "", "self-revue\u{1b}[31m"] {
            let error = find(bad).unwrap_err().to_string();
            assert!(error.contains("self-review, bug-ledger") && !error.contains('\u{1b}'), "{error}");
        }
        assert!(find("self-revue").unwrap_err().to_string().contains("did you mean `self-review`?"));
    }

    #[test]
    fn a_mode_before_the_name_is_ignored() {
        assert_eq!(without_mode("audit:self-review"), "self-review");
        assert_eq!(without_mode("self-review"), "self-review");
    }

    #[test]
    fn flags_that_oppose_override_and_the_last_one_wins() {
        assert!(parse("self-review", &[]).unwrap().is_on("all-since-base"));
        assert!(!parse("self-review", &["--no-all-since-base"]).unwrap().is_on("all-since-base"));
        let twice = ["--all-since-base=false", "--all-since-base"];
        assert!(parse("self-review", &twice).unwrap().is_on("all-since-base"));
    }

    #[test]
    fn a_value_may_follow_or_be_joined() {
        for flags in [&["--min-severity", "high"][..], &["--min-severity=high"]] {
            assert_eq!(parse("bug-ledger", flags).unwrap().value("min-severity"), Some("high"));
        }
    }

    #[test]
    fn flags_that_make_no_sense_are_named() {
        for (name, flags) in [
            ("self-review", &["--min-severity", "high"][..]),
            ("self-review", &["--all-since-base=maybe"]),
            ("bug-ledger", &["--min-severity"]),
            ("bug-ledger", &["--min-severity", "awful"]),
            ("bug-ledger", &["--no-min-severity"]),
            ("bug-ledger", &["HEAD"]),
            ("lint", &["--cmd"]),
            ("lint", &["--cmd", " "]),
        ] {
            assert!(parse(name, flags).is_err(), "{flags:?}");
        }
    }
}
