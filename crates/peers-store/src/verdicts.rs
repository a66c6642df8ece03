//! Green answers of gates that may outlive the process (`cacheable: true`).
//!
//! An entry is a digest of everything that the answer was about: gate, definition, place, tree or scope,
//! environment and tools. Whoever runs gates makes that digest; here it is only kept. Losing the file costs
//! a run of these gates and nothing else, so a damaged one counts as empty.

use std::collections::VecDeque;

use peers_model::limits;
use peers_model::{GoalId, Timestamp, TreeId};
use serde::{Deserialize, Serialize};

use crate::disk::{Area, Disk, DiskError};
use crate::layout;

/// The newest version of the file.
const VERSION: u32 = 1;
/// Answers that are kept. With the longest ids they stay below [`limits::STORE_FILE`].
const KEPT: usize = 2000;

/// One green answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pass {
    /// Which gate, for people.
    pub gate: GoalId,
    /// SHA-256 (hex) of all that the answer was about.
    pub about: String,
    /// The tree at which it was measured, for people.
    pub tree: TreeId,
    /// When.
    pub at: Timestamp,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    v: u32,
    passes: VecDeque<Pass>,
}

/// The kept answers, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdicts {
    passes: VecDeque<Pass>,
}

impl Verdicts {
    /// Reads the file; empty where there is none, or where it cannot be used.
    pub fn read<D: Disk>(disk: &mut D) -> Self {
        let bytes = disk.read(Area::Store, layout::store::VERDICTS, limits::STORE_FILE).ok().flatten();
        let file: Option<File> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let passes = file.filter(|file| file.v == VERSION).map(|file| file.passes).unwrap_or_default();
        Self { passes }
    }

    /// Writes the file.
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn write<D: Disk>(&self, disk: &mut D) -> Result<(), DiskError> {
        let file = File { v: VERSION, passes: self.passes.clone() };
        // Plain data: this cannot fail, and losing it costs a run of gates.
        let bytes = serde_json::to_vec(&file).unwrap_or_default();
        disk.publish(Area::Store, layout::store::VERDICTS, &bytes, false)
    }

    /// The answer about exactly this.
    #[must_use]
    pub fn find(&self, gate: &GoalId, about: &str) -> Option<&Pass> {
        self.passes.iter().rev().find(|pass| pass.about == about && pass.gate == *gate)
    }

    /// Keeps an answer; the oldest is dropped where there are too many.
    pub fn keep(&mut self, pass: Pass) {
        self.passes.retain(|old| old.about != pass.about || old.gate != pass.gate);
        self.passes.push_back(pass);
        while self.passes.len() > KEPT {
            self.passes.pop_front();
        }
    }

    /// Drops the answer about exactly this: another one was measured. Whether there was one.
    pub fn forget(&mut self, gate: &GoalId, about: &str) -> bool {
        let before = self.passes.len();
        self.passes.retain(|pass| pass.about != about || pass.gate != *gate);
        self.passes.len() < before
    }

    /// Whether nothing is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.passes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(gate: &str, about: usize) -> Pass {
        Pass {
            gate: GoalId::new(gate).unwrap(),
            about: format!("{about:064x}"),
            tree: TreeId::new("b".repeat(40)).unwrap(),
            at: Timestamp::from_millis(0),
        }
    }

    #[test]
    fn an_answer_is_found_by_gate_and_digest_alone() {
        let mut kept = Verdicts::default();
        kept.keep(pass("lint", 1));
        assert!(kept.find(&GoalId::new("lint").unwrap(), &format!("{:064x}", 1)).is_some());
        assert!(kept.find(&GoalId::new("test").unwrap(), &format!("{:064x}", 1)).is_none());
        assert!(kept.find(&GoalId::new("lint").unwrap(), &format!("{:064x}", 2)).is_none());
    }

    #[test]
    fn only_the_answer_that_was_refuted_is_forgotten() {
        let mut kept = Verdicts::default();
        for (gate, about) in [("lint", 1), ("lint", 2), ("test", 1)] {
            kept.keep(pass(gate, about));
        }
        let (lint, one) = (GoalId::new("lint").unwrap(), format!("{:064x}", 1));
        assert!(kept.forget(&lint, &one) && !kept.forget(&lint, &one));
        assert!(kept.find(&lint, &one).is_none());
        assert!(kept.find(&lint, &format!("{:064x}", 2)).is_some());
        assert!(kept.find(&GoalId::new("test").unwrap(), &one).is_some());
    }

    #[test]
    fn the_oldest_answers_go_and_the_file_stays_below_its_limit() {
        let mut kept = Verdicts::default();
        let long = "g".repeat(64);
        for n in 0..KEPT + 10 {
            kept.keep(pass(&long, n));
        }
        let gate = GoalId::new(&long).unwrap();
        assert!(kept.find(&gate, &format!("{:064x}", 9)).is_none());
        assert!(kept.find(&gate, &format!("{:064x}", 10)).is_some());
        let bytes = serde_json::to_vec(&File { v: VERSION, passes: kept.passes }).unwrap();
        assert!(u64::try_from(bytes.len()).unwrap() < limits::STORE_FILE, "{}", bytes.len());
    }
}
