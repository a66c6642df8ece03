//! What each crate may depend on and touch. A new crate or a new edge starts with a row here and an ADR.
//!
//! The table is closed: what is not listed is a violation. The reasons are in
//! `docs/adr/0001-rings-and-dependency-rules.md`.

/// One crate and its rights.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) ring: Ring,
    /// Crates of ours in `[dependencies]` and `[build-dependencies]`; dev-dependencies are free.
    pub(crate) uses: &'static [&'static str],
    pub(crate) third_party: ThirdParty,
    pub(crate) may: &'static [Permit],
}

/// Where a crate stands. Arrows point to lower or, where the table lists it, equal rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ring {
    /// 0 data, 1 pure logic, 2 edges to the world, 3 assemblies, 4 what commands share, 5 commands.
    Product(u8),
    /// Only ever a dev-dependency of the product.
    Development,
}

/// Rules for crates that are not ours, on top of [`OWNERS`].
#[derive(Debug)]
pub(crate) enum ThirdParty {
    /// Nothing but these.
    Only(&'static [&'static str]),
    /// Anything but these.
    Never(&'static [&'static str]),
}

/// A part of the world that a crate may touch outside its tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Permit {
    /// `std::fs`. Everyone else goes through the checked files of `peers-sys`.
    Files,
    /// The wall clock. Everyone else is told the time.
    WallClock,
    /// `std::process::Command`.
    Spawn,
    /// `std::{process, env, net, thread}` and the monotonic clock.
    Ambient,
    /// Standard output and standard error.
    Print,
}

use Permit::{Ambient, Files, Print, Spawn, WallClock};

const ALL: &[Permit] = &[Files, WallClock, Spawn, Ambient, Print];

/// What makes a crate impure: a runtime, the system, git, logs, randomness.
const IMPURE: &[&str] = &[
    "tokio",
    "git2",
    "nix",
    "rustix",
    "tracing",
    "tracing-subscriber",
    "tempfile",
    "rand",
    "getrandom",
    "fastrand",
];

/// Third-party crates that stand for a decision "only here", as (crate, owners). Development crates are exempt.
pub(crate) const OWNERS: &[(&str, &[&str])] = &[
    ("nix", &["peers-sys", "peers-fake"]),
    ("rustix", &["peers-sys", "peers-git"]),
    ("close_fds", &["peers-sys"]),
    ("serde-saphyr", &["peers-sys"]),
    ("granit-parser", &["peers-sys"]),
    ("git2", &["peers-git"]),
    ("tokio", &["peers-run", "peers-acts", "peers-proxy"]),
    ("tree-sitter", &["peers-code"]),
    ("ratatui", &["peers-tui"]),
    ("clap", &["peers-cli", "peers-console", "peers-ctl"]),
    ("anyhow", &["xtask"]),
];

/// Every crate of the workspace.
pub(crate) const TABLE: &[Row] = &[
    Row {
        name: "peers-model",
        ring: Ring::Product(0),
        uses: &[],
        third_party: ThirdParty::Only(&["serde", "serde_json", "jiff", "thiserror"]),
        may: &[],
    },
    Row {
        name: "peers-core",
        ring: Ring::Product(1),
        uses: &["peers-model"],
        third_party: ThirdParty::Never(IMPURE),
        may: &[],
    },
    Row {
        name: "peers-tools",
        ring: Ring::Product(1),
        uses: &["peers-model"],
        third_party: ThirdParty::Never(IMPURE),
        may: &[],
    },
    Row {
        name: "peers-sys",
        ring: Ring::Product(2),
        uses: &["peers-model"],
        third_party: ThirdParty::Never(&["git2", "tokio"]),
        may: &[Files, WallClock, Spawn, Ambient],
    },
    Row {
        name: "peers-git",
        ring: Ring::Product(2),
        uses: &["peers-model", "peers-sys"],
        third_party: ThirdParty::Never(&["tokio"]),
        may: &[Files, Spawn, Ambient],
    },
    Row {
        name: "peers-store",
        ring: Ring::Product(2),
        uses: &["peers-model", "peers-core", "peers-sys"],
        third_party: ThirdParty::Never(&["git2", "tokio"]),
        may: &[Ambient],
    },
    Row {
        name: "peers-code",
        ring: Ring::Product(2),
        uses: &["peers-model"],
        third_party: ThirdParty::Never(IMPURE),
        may: &[Ambient],
    },
    Row {
        name: "peers-sandbox",
        ring: Ring::Product(2),
        uses: &["peers-model", "peers-sys"],
        third_party: ThirdParty::Never(&["git2", "tokio"]),
        may: &[Ambient],
    },
    Row {
        name: "peers-proxy",
        ring: Ring::Product(4),
        uses: &["peers-model", "peers-sys"],
        third_party: ThirdParty::Never(&["git2", "clap", "ratatui"]),
        may: ALL,
    },
    Row {
        name: "peers-modes",
        ring: Ring::Product(3),
        uses: &["peers-model", "peers-sys", "peers-store"],
        third_party: ThirdParty::Never(&["git2", "tokio"]),
        may: &[Ambient],
    },
    Row {
        name: "peers-checks",
        ring: Ring::Product(3),
        uses: &["peers-model", "peers-core", "peers-code", "peers-sys", "peers-git", "peers-store"],
        third_party: ThirdParty::Never(&["tokio", "ratatui"]),
        may: &[Spawn, Ambient],
    },
    Row {
        name: "peers-view",
        ring: Ring::Product(3),
        uses: &["peers-model", "peers-core", "peers-sys", "peers-git", "peers-store"],
        third_party: ThirdParty::Never(&["tokio", "ratatui"]),
        may: &[Ambient],
    },
    Row {
        name: "peers-acp",
        ring: Ring::Product(3),
        uses: &["peers-model", "peers-sys"],
        third_party: ThirdParty::Never(&["git2", "tokio"]),
        may: &[Spawn, Ambient, Print],
    },
    Row {
        name: "peers-fake",
        ring: Ring::Product(3),
        uses: &["peers-model", "peers-sys"],
        third_party: ThirdParty::Never(&["git2", "tokio"]),
        may: ALL,
    },
    Row {
        name: "peers-place",
        ring: Ring::Product(3),
        uses: &["peers-model", "peers-sys", "peers-git", "peers-store"],
        third_party: ThirdParty::Never(&["git2", "tokio", "clap", "ratatui"]),
        may: &[Ambient],
    },
    Row {
        name: "peers-setup",
        ring: Ring::Product(3),
        uses: &[
            "peers-model",
            "peers-core",
            "peers-sys",
            "peers-git",
            "peers-store",
            "peers-modes",
            "peers-place",
        ],
        third_party: ThirdParty::Never(&["git2", "tokio", "clap", "ratatui"]),
        may: &[Ambient],
    },
    Row {
        name: "peers-run",
        ring: Ring::Product(3),
        uses: &[
            "peers-model",
            "peers-core",
            "peers-code",
            "peers-tools",
            "peers-sys",
            "peers-git",
            "peers-sandbox",
            "peers-store",
            "peers-checks",
            "peers-modes",
            "peers-place",
        ],
        third_party: ThirdParty::Never(&["clap", "ratatui", "crossterm"]),
        may: &[Spawn, Ambient],
    },
    Row {
        name: "peers-acts",
        ring: Ring::Product(3),
        uses: &[
            "peers-model",
            "peers-core",
            "peers-code",
            "peers-tools",
            "peers-sys",
            "peers-git",
            "peers-sandbox",
            "peers-store",
            "peers-place",
            "peers-setup",
            "peers-run",
        ],
        third_party: ThirdParty::Never(&["git2", "clap", "ratatui"]),
        may: &[Spawn, Ambient],
    },
    Row {
        name: "peers-tui",
        ring: Ring::Product(4),
        uses: &["peers-model", "peers-view"],
        third_party: ThirdParty::Never(&["git2", "tokio", "clap"]),
        may: &[Ambient],
    },
    Row {
        name: "peers-console",
        ring: Ring::Product(4),
        uses: &[
            "peers-tools",
            "peers-tui",
            "peers-model",
            "peers-core",
            "peers-sys",
            "peers-git",
            "peers-store",
            "peers-checks",
            "peers-view",
            "peers-place",
            "peers-modes",
            "peers-setup",
            "peers-run",
            "peers-acts",
        ],
        third_party: ThirdParty::Never(&["git2", "tokio", "ratatui"]),
        may: &[Spawn, Ambient, Print],
    },
    Row {
        name: "peers-cli",
        ring: Ring::Product(5),
        uses: &[
            "peers-model",
            "peers-core",
            "peers-tools",
            "peers-sys",
            "peers-git",
            "peers-store",
            "peers-checks",
            "peers-view",
            "peers-fake",
            "peers-acp",
            "peers-place",
            "peers-setup",
            "peers-run",
            "peers-acts",
            "peers-proxy",
            "peers-tui",
            "peers-console",
        ],
        third_party: ThirdParty::Never(&["git2", "ratatui"]),
        may: &[Spawn, Ambient, Print],
    },
    Row {
        name: "peers-fleet",
        ring: Ring::Product(4),
        uses: &["peers-model", "peers-core", "peers-sys", "peers-store", "peers-place", "peers-run"],
        third_party: ThirdParty::Never(&["clap", "ratatui", "git2", "tokio"]),
        may: &[Spawn, Ambient],
    },
    Row {
        name: "peers-ctl",
        ring: Ring::Product(5),
        uses: &[
            "peers-model",
            "peers-core",
            "peers-tools",
            "peers-sys",
            "peers-git",
            "peers-store",
            "peers-view",
            "peers-place",
            "peers-setup",
            "peers-run",
            "peers-acts",
            "peers-fleet",
            "peers-proxy",
            "peers-tui",
            "peers-console",
        ],
        third_party: ThirdParty::Never(&["git2", "ratatui", "tokio"]),
        may: &[Ambient, Print],
    },
    Row {
        name: "peers-sim",
        ring: Ring::Development,
        uses: &[
            "peers-model",
            "peers-code",
            "peers-core",
            "peers-tools",
            "peers-sys",
            "peers-store",
            "peers-run",
        ],
        third_party: ThirdParty::Never(&["git2", "nix", "rustix"]),
        may: &[Ambient],
    },
    Row {
        name: "peers-testkit",
        ring: Ring::Development,
        uses: &["peers-model", "peers-sys"],
        third_party: ThirdParty::Never(&[]),
        may: ALL,
    },
    Row {
        name: "peers-e2e",
        ring: Ring::Development,
        uses: &["peers-testkit"],
        third_party: ThirdParty::Never(&[]),
        may: ALL,
    },
    Row {
        name: "xtask",
        ring: Ring::Development,
        uses: &[],
        third_party: ThirdParty::Never(&["tokio", "git2"]),
        may: ALL,
    },
];

/// The row of a crate.
pub(crate) fn row(name: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_arrow_of_the_table_points_inwards() {
        for from in TABLE {
            for name in from.uses {
                let to = row(name).unwrap_or_else(|| panic!("{} uses the unknown {name}", from.name));
                match (from.ring, to.ring) {
                    (Ring::Product(outer), Ring::Product(inner)) => {
                        assert!(inner <= outer, "{} -> {name}", from.name);
                    }
                    (Ring::Product(_), Ring::Development) => panic!("{} -> {name}", from.name),
                    (Ring::Development, _) => {}
                }
            }
        }
    }

    #[test]
    fn the_two_pure_crates_do_not_know_each_other_and_touch_nothing() {
        for name in ["peers-core", "peers-tools"] {
            let row = row(name).unwrap();
            assert_eq!(row.uses, ["peers-model"]);
            assert!(row.may.is_empty(), "{name}");
        }
    }

    #[test]
    fn no_crate_has_two_rows() {
        for row in TABLE {
            assert_eq!(TABLE.iter().filter(|other| other.name == row.name).count(), 1, "{}", row.name);
        }
    }
}
