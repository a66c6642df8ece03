//! The flags of the built-in checks, so that goals can be checked before anything runs.

use thiserror::Error;

/// A flag of one check.
#[derive(Debug, Clone, Copy)]
pub struct ArgSpec {
    /// Its name, without the dashes.
    pub name: &'static str,
    /// What it does, as an order: `Run the tests`.
    pub about: &'static str,
    /// What it takes.
    pub kind: ArgKind,
}

/// What a flag takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgKind {
    /// `--name`, `--no-name`, `--name=true`, `--name=false`; on unless said otherwise.
    OnByDefault,
    /// The same; off unless said otherwise.
    OffByDefault,
    /// `--name VALUE` or `--name=VALUE`, one of these.
    OneOf(&'static [&'static str]),
    /// `--name N` or `--name=N`, a whole number; this one unless said otherwise.
    Number(u32),
    /// `--name N` or `--name=N`, a number with at most two decimals; this one unless said otherwise.
    Decimal(&'static str),
    /// `--name A,B` or `--name=A,B`, words; these unless said otherwise.
    Words(&'static str),
    /// `--name TEXT` or `--name=TEXT`.
    Text,
}

impl ArgSpec {
    /// What `--no-name` does, by what the switch does that it turns off.
    #[must_use]
    pub fn off(&self) -> String {
        let (first, rest) = self.about.split_at_checked(1).unwrap_or_default();
        format!("Do not {}{rest}", first.to_ascii_lowercase())
    }
}

impl ArgKind {
    /// Whether it takes this value.
    fn takes(self, value: &str) -> bool {
        match self {
            Self::OnByDefault | Self::OffByDefault => matches!(value, "true" | "false"),
            Self::OneOf(words) => words.contains(&value),
            Self::Number(_) => value.parse::<u32>().is_ok(),
            Self::Decimal(_) => hundredths(value).is_some(),
            Self::Text => !value.trim().is_empty(),
            Self::Words(_) => value
                .split(',')
                .all(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')),
        }
    }

    /// What it takes, for people.
    fn wanted(self) -> String {
        match self {
            Self::OnByDefault | Self::OffByDefault => "`true` or `false`".to_owned(),
            Self::OneOf(words) => format!("one of {}", words.join(", ")),
            Self::Number(_) => "a whole number".to_owned(),
            Self::Decimal(_) => "a number such as 0.5".to_owned(),
            Self::Text => "a text".to_owned(),
            Self::Words(_) => "words with commas between them".to_owned(),
        }
    }
}

/// `0.5` as 50.
fn hundredths(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) || whole.len() > 6 || part.len() > 2 {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let part: u64 = format!("{part:0<2}").parse().ok()?;
    Some(whole * 100 + part)
}

/// A check and its own flags.
#[derive(Debug, Clone, Copy)]
pub struct CheckSpec {
    /// What goals and the command call it.
    pub name: &'static str,
    /// Its own flags.
    pub args: &'static [ArgSpec],
    /// It reads the record of the runs: where that is not, it cannot judge.
    pub reads_record: bool,
}

/// `self-review`.
pub const SELF_REVIEW: CheckSpec = CheckSpec {
    name: "self-review",
    args: &[ArgSpec {
        name: "all-since-base",
        about: "Look at handoffs older than the newest",
        kind: ArgKind::OnByDefault,
    }],
    reads_record: true,
};

/// `bug-ledger`.
pub const BUG_LEDGER: CheckSpec = CheckSpec {
    name: "bug-ledger",
    args: &[ArgSpec {
        name: "min-severity",
        about: "The least severity that counts (default: med)",
        kind: ArgKind::OneOf(&["crit", "high", "med", "low", "info"]),
    }],
    reads_record: false,
};

/// Of checks that give advice: their findings fail a goal only where it asks for that.
const STRICT: ArgSpec =
    ArgSpec { name: "strict", about: "Fail where there are findings", kind: ArgKind::OffByDefault };

/// `skip-reasons`.
pub const SKIP_REASONS: CheckSpec = CheckSpec {
    name: "skip-reasons",
    args: &[ArgSpec {
        name: "min-len",
        about: "Characters that a reason has at least (default: 20)",
        kind: ArgKind::Number(20),
    }],
    reads_record: false,
};

/// `three-class`.
pub const THREE_CLASS: CheckSpec = CheckSpec {
    name: "three-class",
    args: &[
        ArgSpec {
            name: "min-lines",
            about: "Lines that a source file has at least to need tests (default: 50)",
            kind: ArgKind::Number(50),
        },
        ArgSpec {
            name: "delta",
            about: "Judge the tests that each done step of PLAN.md added, not the source files",
            kind: ArgKind::OffByDefault,
        },
    ],
    reads_record: false,
};

/// `no-empty-bodies`.
pub const NO_EMPTY_BODIES: CheckSpec = CheckSpec { name: "no-empty-bodies", args: &[], reads_record: false };

/// `stub-returns`.
pub const STUB_RETURNS: CheckSpec = CheckSpec { name: "stub-returns", args: &[STRICT], reads_record: false };

/// `mutation-sample`.
pub const MUTATION_SAMPLE: CheckSpec = CheckSpec {
    name: "mutation-sample",
    args: &[ArgSpec {
        name: "min",
        about: "Percent of the planted faults that the gates notice at least; without it this is advice",
        kind: ArgKind::Number(0),
    }],
    reads_record: true,
};

/// `commented-code`.
pub const COMMENTED_CODE: CheckSpec = CheckSpec {
    name: "commented-code",
    args: &[
        ArgSpec {
            name: "min-run",
            about: "Lines of comments in a row that count (default: 4)",
            kind: ArgKind::Number(4),
        },
        STRICT,
    ],
    reads_record: false,
};

/// `mock-in-impl`.
pub const MOCK_IN_IMPL: CheckSpec = CheckSpec { name: "mock-in-impl", args: &[STRICT], reads_record: false };

/// `no-secrets`.
pub const NO_SECRETS: CheckSpec = CheckSpec {
    name: "no-secrets",
    args: &[
        ArgSpec {
            name: "history",
            about: "Look at what commits since the base brought and removed again",
            kind: ArgKind::OnByDefault,
        },
        ArgSpec {
            name: "max-bytes",
            about: "Bytes that a file has at most (default: 2097152)",
            kind: ArgKind::Number(2 * 1024 * 1024),
        },
    ],
    reads_record: false,
};

/// `deps-justified`.
pub const DEPS_JUSTIFIED: CheckSpec = CheckSpec {
    name: "deps-justified",
    args: &[ArgSpec {
        name: "min-reason",
        about: "Characters that a reason has at least (default: 20)",
        kind: ArgKind::Number(20),
    }],
    reads_record: false,
};

/// `resolve-size`.
pub const RESOLVE_SIZE: CheckSpec = CheckSpec {
    name: "resolve-size",
    args: &[
        ArgSpec {
            name: "per-path",
            about: "Lines that a fix changes in one file at most (default: 200)",
            kind: ArgKind::Number(200),
        },
        ArgSpec {
            name: "per-bug",
            about: "Lines that all fixes of a bug change at most, tests left out (default: 400)",
            kind: ArgKind::Number(400),
        },
    ],
    reads_record: false,
};

/// `docs-present`.
pub const DOCS_PRESENT: CheckSpec = CheckSpec { name: "docs-present", args: &[], reads_record: false };

/// `docs-sections`.
pub const DOCS_SECTIONS: CheckSpec = CheckSpec { name: "docs-sections", args: &[], reads_record: false };

/// `docs-converged`.
pub const DOCS_CONVERGED: CheckSpec = CheckSpec {
    name: "docs-converged",
    args: &[ArgSpec {
        name: "n",
        about: "Small changes in a row that are needed (default: 2)",
        kind: ArgKind::Number(2),
    }],
    reads_record: false,
};

/// `api-stable`.
pub const API_STABLE: CheckSpec = CheckSpec {
    name: "api-stable",
    args: &[ArgSpec {
        name: "additions",
        about: "Whether new names have to be announced too (default: announce)",
        kind: ArgKind::OneOf(&["allow", "announce"]),
    }],
    reads_record: false,
};

/// `codemap-grounded`.
pub const CODEMAP_GROUNDED: CheckSpec =
    CheckSpec { name: "codemap-grounded", args: &[], reads_record: false };

/// `codemap-signatures`.
pub const CODEMAP_SIGNATURES: CheckSpec =
    CheckSpec { name: "codemap-signatures", args: &[], reads_record: false };

/// `codemap-complete`.
pub const CODEMAP_COMPLETE: CheckSpec =
    CheckSpec { name: "codemap-complete", args: &[], reads_record: false };

/// `codemap-summaries`.
pub const CODEMAP_SUMMARIES: CheckSpec =
    CheckSpec { name: "codemap-summaries", args: &[], reads_record: false };

/// `agents-in-sync`.
pub const AGENTS_IN_SYNC: CheckSpec = CheckSpec { name: "agents-in-sync", args: &[], reads_record: false };

/// `architecture-grounded`.
pub const ARCHITECTURE_GROUNDED: CheckSpec =
    CheckSpec { name: "architecture-grounded", args: &[], reads_record: false };

/// `convergence`.
pub const CONVERGENCE: CheckSpec = CheckSpec {
    name: "convergence",
    args: &[ArgSpec {
        name: "n",
        about: "Clean ticks in a row that are needed (default: `goals.convergence_n`)",
        // Absent it is no number of its own.
        kind: ArgKind::Number(0),
    }],
    reads_record: true,
};

/// `plan-complete`.
pub const PLAN_COMPLETE: CheckSpec = CheckSpec { name: "plan-complete", args: &[], reads_record: true };

/// `plan-preserved`.
pub const PLAN_PRESERVED: CheckSpec = CheckSpec { name: "plan-preserved", args: &[], reads_record: true };

/// `plan-traceable`.
pub const PLAN_TRACEABLE: CheckSpec = CheckSpec { name: "plan-traceable", args: &[], reads_record: true };

/// `no-unresolved-blocks`.
pub const NO_UNRESOLVED_BLOCKS: CheckSpec =
    CheckSpec { name: "no-unresolved-blocks", args: &[], reads_record: true };

/// `contracts`.
pub const CONTRACTS: CheckSpec = CheckSpec { name: "contracts", args: &[], reads_record: true };

/// `acceptance`.
pub const ACCEPTANCE: CheckSpec = CheckSpec {
    name: "acceptance",
    args: &[ArgSpec {
        name: "timeout",
        about: "Seconds that the command may take (default: 600)",
        kind: ArgKind::Number(600),
    }],
    reads_record: true,
};

/// `peers-healthy`.
pub const PEERS_HEALTHY: CheckSpec = CheckSpec { name: "peers-healthy", args: &[], reads_record: true };

/// `e2e`.
pub const E2E: CheckSpec = CheckSpec {
    name: "e2e",
    args: &[ArgSpec {
        name: "timeout",
        about: "Seconds that the command may take (default: 900)",
        kind: ArgKind::Number(900),
    }],
    reads_record: true,
};

/// `checkoff`.
pub const CHECKOFF: CheckSpec = CheckSpec { name: "checkoff", args: &[], reads_record: true };

/// `delivery`.
pub const DELIVERY: CheckSpec = CheckSpec { name: "delivery", args: &[], reads_record: true };

/// `concerns`.
pub const CONCERNS: CheckSpec = CheckSpec { name: "concerns", args: &[], reads_record: true };

/// `honesty-audit`.
pub const HONESTY_AUDIT: CheckSpec = CheckSpec { name: "honesty-audit", args: &[], reads_record: true };

/// `honesty-audit-extra`.
pub const HONESTY_AUDIT_EXTRA: CheckSpec =
    CheckSpec { name: "honesty-audit-extra", args: &[STRICT], reads_record: true };

/// `blind-review`.
pub const BLIND_REVIEW: CheckSpec = CheckSpec { name: "blind-review", args: &[], reads_record: true };

/// `no-shortcuts`.
pub const NO_SHORTCUTS: CheckSpec = CheckSpec {
    name: "no-shortcuts",
    args: &[ArgSpec {
        name: "words",
        about: concat!(
            "Words of comments that say that something is not done (default: TODO,FIX",
            "ME,X",
            "XX,HACK,PLACEHOLDER,STUB)"
        ),
        // Not in one piece: this repository has no such words.
        kind: ArgKind::Words(concat!("TODO,FIX", "ME,X", "XX,HACK,PLACEHOLDER,STUB")),
    }],
    reads_record: false,
};

/// `clean-worktree`.
pub const CLEAN_WORKTREE: CheckSpec = CheckSpec { name: "clean-worktree", args: &[], reads_record: false };

/// `history-intact`.
pub const HISTORY_INTACT: CheckSpec = CheckSpec { name: "history-intact", args: &[], reads_record: true };

/// `step-size`.
pub const STEP_SIZE: CheckSpec = CheckSpec {
    name: "step-size",
    args: &[
        ArgSpec {
            name: "min",
            about: "Lines of code that the commit of a done step adds at least (default: 10)",
            kind: ArgKind::Number(10),
        },
        STRICT,
    ],
    reads_record: false,
};

/// `test-ratio`.
pub const TEST_RATIO: CheckSpec = CheckSpec {
    name: "test-ratio",
    args: &[
        ArgSpec {
            name: "ratio",
            about: "Lines of tests that a done step adds at least for each line of code (default: 0.5)",
            kind: ArgKind::Decimal("0.5"),
        },
        STRICT,
    ],
    reads_record: false,
};

/// `test-skepsis`.
pub const TEST_SKEPSIS: CheckSpec = CheckSpec { name: "test-skepsis", args: &[STRICT], reads_record: false };

/// `stitch`.
pub const STITCH: CheckSpec = CheckSpec { name: "stitch", args: &[STRICT], reads_record: false };

/// `weasel`.
pub const WEASEL: CheckSpec = CheckSpec { name: "weasel", args: &[STRICT], reads_record: false };

/// `claim-vs-diff`.
pub const CLAIM_VS_DIFF: CheckSpec =
    CheckSpec { name: "claim-vs-diff", args: &[STRICT], reads_record: false };

/// `confidence`.
pub const CONFIDENCE: CheckSpec = CheckSpec { name: "confidence", args: &[STRICT], reads_record: true };

/// `architecture-drift`.
pub const ARCHITECTURE_DRIFT: CheckSpec =
    CheckSpec { name: "architecture-drift", args: &[STRICT], reads_record: false };

/// Of checks that run programs of the project.
const TIMEOUT: ArgSpec = ArgSpec {
    name: "timeout",
    about: "Seconds that one run may take (default: 600)",
    kind: ArgKind::Number(600),
};

/// Of checks that run one program which the operator may name.
const CMD: ArgSpec = ArgSpec {
    name: "cmd",
    about: "The command, in place of what the project's files name",
    kind: ArgKind::Text,
};

/// `tests`.
pub const TESTS: CheckSpec = CheckSpec {
    name: "tests",
    args: &[
        TIMEOUT,
        ArgSpec {
            name: "retry",
            about: "Further runs when tests fail or the runner tells nothing (default: 1)",
            kind: ArgKind::Number(1),
        },
    ],
    reads_record: false,
};

/// `lint`.
pub const LINT: CheckSpec = CheckSpec { name: "lint", args: &[CMD, TIMEOUT], reads_record: false };

/// `types`.
pub const TYPES: CheckSpec = CheckSpec { name: "types", args: &[CMD, TIMEOUT], reads_record: false };

/// `no-regression`.
pub const NO_REGRESSION: CheckSpec = CheckSpec {
    name: "no-regression",
    args: &[
        TIMEOUT,
        ArgSpec {
            name: "confirm",
            about: "Further runs that have to show a lost test too (default: 1)",
            kind: ArgKind::Number(1),
        },
    ],
    reads_record: true,
};

/// `no-skipped-tests`.
pub const NO_SKIPPED_TESTS: CheckSpec = CheckSpec {
    name: "no-skipped-tests",
    args: &[
        TIMEOUT,
        ArgSpec {
            name: "runner",
            about: "Run the tests to see which ones the runner skips",
            kind: ArgKind::OnByDefault,
        },
    ],
    reads_record: true,
};

/// `tdd-order`.
pub const TDD_ORDER: CheckSpec = CheckSpec {
    name: "tdd-order",
    args: &[
        ArgSpec {
            name: "execute",
            about: "Run each reproducing test without the fix and with it",
            kind: ArgKind::OnByDefault,
        },
        TIMEOUT,
    ],
    reads_record: false,
};

/// All checks.
pub const CHECKS: [CheckSpec; 54] = [
    SELF_REVIEW,
    BUG_LEDGER,
    NO_SECRETS,
    SKIP_REASONS,
    THREE_CLASS,
    NO_EMPTY_BODIES,
    STUB_RETURNS,
    COMMENTED_CODE,
    MOCK_IN_IMPL,
    MUTATION_SAMPLE,
    DEPS_JUSTIFIED,
    RESOLVE_SIZE,
    DOCS_PRESENT,
    DOCS_SECTIONS,
    DOCS_CONVERGED,
    API_STABLE,
    CODEMAP_GROUNDED,
    CODEMAP_SIGNATURES,
    CODEMAP_COMPLETE,
    CODEMAP_SUMMARIES,
    AGENTS_IN_SYNC,
    ARCHITECTURE_GROUNDED,
    CONVERGENCE,
    PEERS_HEALTHY,
    PLAN_COMPLETE,
    PLAN_PRESERVED,
    PLAN_TRACEABLE,
    NO_UNRESOLVED_BLOCKS,
    CONTRACTS,
    ACCEPTANCE,
    E2E,
    CHECKOFF,
    DELIVERY,
    CONCERNS,
    HONESTY_AUDIT,
    HONESTY_AUDIT_EXTRA,
    BLIND_REVIEW,
    NO_SHORTCUTS,
    CLEAN_WORKTREE,
    HISTORY_INTACT,
    STEP_SIZE,
    TEST_RATIO,
    TEST_SKEPSIS,
    STITCH,
    WEASEL,
    CLAIM_VS_DIFF,
    CONFIDENCE,
    ARCHITECTURE_DRIFT,
    TESTS,
    LINT,
    TYPES,
    NO_REGRESSION,
    NO_SKIPPED_TESTS,
    TDD_ORDER,
];

/// Their names.
pub const NAMES: [&str; CHECKS.len()] = {
    let mut names = [""; CHECKS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = CHECKS[at].name;
        at += 1;
    }
    names
};

/// The check of this name.
#[must_use]
pub fn spec(name: &str) -> Option<&'static CheckSpec> {
    CHECKS.iter().find(|spec| spec.name == name)
}

/// The flags that were given to a check, each of a kind that it knows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Args {
    given: Vec<(&'static str, String)>,
}

impl Args {
    /// Reads the flags of a check.
    ///
    /// # Errors
    /// [`UsageError`] for what it does not know.
    pub fn parse(check: &CheckSpec, flags: &[String]) -> Result<Self, UsageError> {
        let mut args = Self::default();
        let mut words = flags.iter();
        while let Some(word) = words.next() {
            let bad = |what: &str| UsageError(format!("{}: {what}", check.name));
            let Some(flag) = word.strip_prefix("--") else {
                return Err(bad(&format!("takes no argument `{}`", shown(word))));
            };
            let (name, value) = flag.split_once('=').map_or((flag, None), |(n, v)| (n, Some(v)));
            let (name, negated) = match name.strip_prefix("no-") {
                Some(positive) if check.args.iter().any(|spec| spec.name == positive) => (positive, true),
                _ => (name, false),
            };
            let Some(spec) = check.args.iter().find(|spec| spec.name == name) else {
                let own: Vec<String> = check.args.iter().map(|spec| format!("--{}", spec.name)).collect();
                let name = shown(name);
                return Err(bad(&format!("there is no flag `--{name}` (its own: {})", own.join(", "))));
            };
            let value = match spec.kind {
                ArgKind::OnByDefault | ArgKind::OffByDefault => match (value, negated) {
                    (None | Some("true"), false) => "true".to_owned(),
                    (None, true) | (Some("false"), false) => "false".to_owned(),
                    _ => return Err(bad(&format!("`--{name}` is on or off: `--{name}` or `--no-{name}`"))),
                },
                ArgKind::Number(_)
                | ArgKind::OneOf(_)
                | ArgKind::Decimal(_)
                | ArgKind::Words(_)
                | ArgKind::Text => {
                    let given =
                        if negated { None } else { value.or_else(|| words.next().map(String::as_str)) };
                    match given.filter(|given| spec.kind.takes(given)) {
                        Some(given) => given.to_owned(),
                        None => return Err(bad(&format!("`--{name}` takes {}", spec.kind.wanted()))),
                    }
                }
            };
            // The last one wins.
            args.given.retain(|(known, _)| *known != spec.name);
            args.given.push((spec.name, value));
        }
        args.given.sort();
        Ok(args)
    }

    /// The flags that were given, by name.
    #[must_use]
    pub fn given(&self) -> &[(&'static str, String)] {
        &self.given
    }

    /// Whether a switch that is on by default is on.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        self.value(name) != Some("false")
    }

    /// Whether a switch that is off by default was turned on.
    #[must_use]
    pub fn is_asked(&self, name: &str) -> bool {
        self.value(name) == Some("true")
    }

    /// The number of a flag, as given or by default.
    #[must_use]
    pub fn number(&self, spec: &CheckSpec, name: &str) -> usize {
        let default = spec.args.iter().find(|arg| arg.name == name).map(|arg| arg.kind);
        let given = self.value(name).and_then(|value| value.parse().ok());
        let default = || match default {
            Some(ArgKind::Number(default)) => usize::try_from(default).ok(),
            _ => None,
        };
        given.or_else(default).unwrap_or_default()
    }

    /// The decimal of a flag, as given or by default, in hundredths.
    #[must_use]
    pub fn hundredths(&self, spec: &CheckSpec, name: &str) -> u64 {
        let default = spec.args.iter().find(|arg| arg.name == name).map(|arg| arg.kind);
        let default = match default {
            Some(ArgKind::Decimal(default)) => Some(default),
            _ => None,
        };
        self.value(name).or(default).and_then(hundredths).unwrap_or_default()
    }

    /// The words of a flag, as given or by default.
    #[must_use]
    pub fn words<'s>(&'s self, spec: &'s CheckSpec, name: &str) -> Vec<&'s str> {
        let default = spec.args.iter().find(|arg| arg.name == name).map(|arg| arg.kind);
        let default = match default {
            Some(ArgKind::Words(default)) => default,
            _ => "",
        };
        self.value(name).unwrap_or(default).split(',').collect()
    }

    /// The value of a flag, if it was given.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        self.given.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }
}

fn shown(text: &str) -> String {
    text.chars().take(80).collect::<String>().escape_debug().to_string()
}

/// A command line that makes no sense. Exit code 2.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct UsageError(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(spec: &CheckSpec, flags: &[&str]) -> Result<Args, UsageError> {
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        Args::parse(spec, &flags)
    }

    #[test]
    fn of_a_flag_that_stands_twice_the_last_one_counts() {
        let twice = parse(&BUG_LEDGER, &["--min-severity=high", "--min-severity=low"]).unwrap();
        assert_eq!(twice.value("min-severity"), Some("low"));
    }

    #[test]
    fn the_flags_that_every_check_has_on_the_command_line_are_no_arguments_of_a_goal() {
        for flags in [&["--head", "HEAD~3"][..], &["--repo=/tmp"], &["--base=x"], &["--json"], &["--limit=0"]]
        {
            assert!(parse(&BUG_LEDGER, flags).is_err(), "{flags:?}");
        }
        let error = parse(&BUG_LEDGER, &["--\u{1b}[31m"]).unwrap_err().to_string();
        assert!(!error.contains('\u{1b}'), "{error}");
    }

    #[test]
    fn the_names_are_those_that_goals_may_use() {
        assert_eq!(crate::goal::CHECK_NAMES, CHECKS.map(|spec| spec.name));
    }
}
