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
}

impl Backend {
    /// All, the best first.
    pub const ALL: [Self; 3] = [Self::Bwrap, Self::Landlock, Self::None];

    /// Its name in configuration, options and records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Landlock => "landlock",
            Self::Bwrap => "bwrap",
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
        self == Self::Bwrap
    }

    /// How much it holds: 0 nothing, 1 writes outside, 2 a place of its own.
    #[must_use]
    pub fn tier(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Landlock => 1,
            Self::Bwrap => 2,
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
