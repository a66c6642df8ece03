//! Since when the control directory knows a commit.
//!
//! Every import that brings commits is a generation. The list is written before the objects arrive, so
//! however a process ends, no commit is there without its line. It is not synced (several milliseconds
//! per tick): when the machine loses power, lines may be lost, and a generation that was noted elsewhere
//! is then ahead of the list, which is an error and never an answer.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use git2::Oid;
use serde::{Deserialize, Serialize};

use crate::error::GitError;
use crate::files::{self, Small};

/// Counts the imports that brought commits. Zero is the first import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Generation(pub u64);

pub(crate) struct Known {
    path: PathBuf,
    last: u64,
    since: HashMap<Oid, u64>,
}

impl Known {
    pub(crate) fn load(path: &Path) -> Result<Self, GitError> {
        let bytes = match files::read_small(path, 1 << 30).map_err(|source| GitError::io(path, source))? {
            Small::Bytes(bytes) => bytes,
            Small::Absent => Vec::new(),
            Small::TooLarge | Small::Special(_) => {
                return Err(GitError::Corrupt {
                    what: format!("`{}`", path.display()),
                    detail: "not a file of ours".to_owned(),
                });
            }
        };
        let mut known = Self { path: path.to_owned(), last: 0, since: HashMap::new() };
        // A torn last line belongs to an import that never happened.
        for line in String::from_utf8_lossy(&bytes).split_inclusive('\n').filter_map(|l| l.strip_suffix('\n'))
        {
            let Some((generation, id)) = line.split_once(' ') else { continue };
            if let (Ok(generation), Ok(oid)) = (generation.parse::<u64>(), Oid::from_str(id)) {
                known.last = known.last.max(generation);
                known.since.entry(oid).or_insert(generation);
            }
        }
        Ok(known)
    }

    pub(crate) fn generation(&self) -> Generation {
        Generation(self.last)
    }

    /// Starts a generation with these commits.
    pub(crate) fn record(&mut self, commits: &[Oid]) -> Result<(), GitError> {
        if commits.is_empty() {
            return Ok(());
        }
        let next = self.last.saturating_add(1);
        // The leading newline ends a line that a crash left torn.
        let mut text = String::from("\n");
        for oid in commits {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{next} {oid}");
        }
        files::append(&self.path, text.as_bytes())?;
        self.last = next;
        for oid in commits {
            self.since.entry(*oid).or_insert(next);
        }
        Ok(())
    }

    /// All that are listed.
    pub(crate) fn commits(&self) -> impl Iterator<Item = Oid> {
        self.since.keys().copied()
    }

    /// Goes on with this generation, as one that brought this commit.
    pub(crate) fn raise(&mut self, generation: Generation, oid: Oid) -> Result<(), GitError> {
        files::append(&self.path, format!("\n{} {oid}\n", generation.0).as_bytes())?;
        self.last = self.last.max(generation.0);
        self.since.entry(oid).or_insert(generation.0);
        Ok(())
    }

    /// Was this commit here at the end of that generation?
    pub(crate) fn at(&self, oid: Oid, generation: Generation) -> bool {
        self.since.get(&oid).is_none_or(|since| *since <= generation.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_survive_a_reload_and_a_torn_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("known");
        let oid = |n: u8| Oid::from_bytes(&[n; 20]).unwrap();
        let mut known = Known::load(&path).unwrap();
        known.record(&[oid(1)]).unwrap();
        known.record(&[]).unwrap();
        known.record(&[oid(2)]).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend_from_slice(b"3 0303");
        std::fs::write(&path, bytes).unwrap();
        let mut known = Known::load(&path).unwrap();
        assert_eq!(known.generation(), Generation(2));
        known.record(&[oid(4)]).unwrap();
        let known = Known::load(&path).unwrap();
        assert_eq!(known.generation(), Generation(3));
        assert!(known.at(oid(1), Generation(1)) && !known.at(oid(2), Generation(1)));
        assert!(!known.at(oid(4), Generation(2)), "the line after a torn one counts");
        assert!(known.at(oid(9), Generation(0)), "what was never listed came with the first import");
    }
}
