//! The kinds of walls there are.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What confines a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// Nothing: a process group of its own and an environment that we chose.
    None,
    /// The kernel's Landlock and seccomp: files that it sees, calls that it may make. No place of its own.
    Landlock,
    /// Bubblewrap: a file system, a network and processes of its own.
    Bwrap,
    /// A container of podman: all that, with the programs of an image and with limits.
    Podman,
}

impl Backend {
    /// All, the best first.
    pub const ALL: [Self; 4] = [Self::Podman, Self::Bwrap, Self::Landlock, Self::None];

    /// Its name in configuration, options and records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Landlock => "landlock",
            Self::Bwrap => "bwrap",
            Self::Podman => "podman",
        }
    }

    /// The backend of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|backend| backend.name() == name)
    }

    /// Whether a child may have a network of its own.
    #[must_use]
    pub fn has_own_network(self) -> bool {
        matches!(self, Self::Bwrap | Self::Podman)
    }

    /// How much it holds: 0 nothing, 1 writes outside, 2 a place of its own, 3 programs of its own and limits.
    #[must_use]
    pub fn tier(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Landlock => 1,
            Self::Bwrap => 2,
            Self::Podman => 3,
        }
    }

    /// Whether things can lie at other places for a child than for us.
    #[must_use]
    pub fn has_mounts(self) -> bool {
        self.tier() >= Self::Bwrap.tier()
    }

    /// Whether it is only taken where somebody names it: its programs are not those of this machine.
    #[must_use]
    pub fn is_by_name(self) -> bool {
        self == Self::Podman
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
