//! The sample project, in two languages: a median that takes the wrong one of two middle numbers.

/// In which language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Rust,
    Shell,
}

impl Kind {
    /// For people.
    pub(super) fn about(self) -> &'static str {
        match self {
            Self::Rust => "a Rust crate with a planted defect and a failing test",
            Self::Shell => "a shell program with a planted defect and a failing test",
        }
    }

    /// The files at the beginning, by path.
    pub(super) fn files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Rust => &[
                ("README.md", README),
                (".gitignore", "/target\nCargo.lock\n"),
                ("Cargo.toml", MANIFEST),
                ("src/lib.rs", RUST_WRONG),
                ("tests/median.rs", RUST_TEST),
            ],
            Self::Shell => &[
                ("README.md", README),
                ("src/median.sh", SHELL_WRONG),
                ("tests/run.sh", SHELL_RUNNER),
                ("tests/cases/median", SHELL_CASES),
            ],
        }
    }

    /// The command that runs all tests.
    pub(super) fn test(self) -> &'static str {
        match self {
            Self::Rust => "cargo test --offline -q",
            Self::Shell => "sh tests/run.sh",
        }
    }

    /// The file that holds the defect, and its line.
    pub(super) fn place(self) -> &'static str {
        match self {
            Self::Rust => "src/lib.rs:7",
            Self::Shell => "src/median.sh:4",
        }
    }

    /// The file of the reproducing test and its content.
    pub(super) fn reproducer(self) -> (&'static str, &'static str) {
        match self {
            Self::Rust => ("tests/even.rs", RUST_REPRODUCER),
            Self::Shell => ("tests/cases/even", SHELL_REPRODUCER),
        }
    }

    /// The file that holds the defect, mended.
    pub(super) fn fix(self) -> (&'static str, &'static str) {
        match self {
            Self::Rust => ("src/lib.rs", RUST_RIGHT),
            Self::Shell => ("src/median.sh", SHELL_RIGHT),
        }
    }
}

const README: &str = "\
# median

The median of a list of numbers: the middle one, or the mean of the two middle ones.

This is the sample project of `peers demo`. Its agents were scripts.
";

const MANIFEST: &str = "\
[package]
name = \"median\"
version = \"0.1.0\"
edition = \"2021\"
publish = false

# A package of its own, wherever the demonstration was laid down.
[workspace]
";

const RUST_WRONG: &str = "\
//! The middle of a list of numbers.

/// The median: the middle number, or the mean of the two middle ones. `None` for an empty list.
pub fn median(numbers: &[f64]) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}
";

const RUST_RIGHT: &str = "\
//! The middle of a list of numbers.

/// The median: the middle number, or the mean of the two middle ones. `None` for an empty list.
pub fn median(numbers: &[f64]) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *sorted.get(middle.checked_sub(1)?)?;
    Some(lower + (upper - lower) / 2.0)
}
";

const RUST_TEST: &str = "\
use median::median;

#[test]
fn the_middle_of_three_is_the_second() {
    assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
}

#[test]
fn the_middle_of_four_is_the_mean_of_two() {
    assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
}

#[test]
fn an_empty_list_has_none() {
    assert_eq!(median(&[]), None);
}
";

const RUST_REPRODUCER: &str = "\
use median::median;

#[test]
fn two_numbers_meet_in_the_middle() {
    assert_eq!(median(&[1.0, 2.0]), Some(1.5));
}
";

const SHELL_WRONG: &str = "\
#!/bin/sh
# Prints the median of its arguments: the middle number, or the mean of the two middle ones.
if [ \"$#\" -eq 0 ]; then echo 'median: no numbers' >&2; exit 1; fi
printf '%s\\n' \"$@\" | sort -n | awk '{ n[NR] = $1 } END { print n[int(NR / 2) + 1] }'
";

const SHELL_RIGHT: &str = "\
#!/bin/sh
# Prints the median of its arguments: the middle number, or the mean of the two middle ones.
if [ \"$#\" -eq 0 ]; then echo 'median: no numbers' >&2; exit 1; fi
printf '%s\\n' \"$@\" | sort -n | awk '
    { n[NR] = $1 }
    END {
        if (NR % 2) print n[(NR + 1) / 2]
        else print (n[NR / 2] + n[NR / 2 + 1]) / 2
    }'
";

const SHELL_RUNNER: &str = "\
#!/bin/sh
# Runs every case below tests/cases: a line `expected = arguments`; `none` expects a failure.
failed=0
for file in tests/cases/*; do
    while IFS='=' read -r expected arguments; do
        expected=$(echo $expected)
        # shellcheck disable=SC2086
        got=$(sh src/median.sh $arguments 2>/dev/null) || got=none
        if [ \"$got\" != \"$expected\" ]; then
            echo \"$file: median of$arguments is $got, expected $expected\" >&2
            failed=1
        fi
    done <\"$file\"
done
exit \"$failed\"
";

const SHELL_CASES: &str = "\
2 = 3 1 2
2.5 = 4 1 3 2
none =
";

const SHELL_REPRODUCER: &str = "\
1.5 = 1 2
";
