//! What commits say about bugs, up to one of them: kept so that a long history is not read at every look.
//!
//! It decides verdicts, so it lies where no peer writes, a loop writes it, and the guard of the store watches it. What it
//! says of a commit follows from the commit alone. Losing it costs one look at the whole history.

use peers_model::{CommitId, Timestamp, limits};
use serde::{Deserialize, Serialize};

use crate::disk::{Area, Disk, DiskError};
use crate::layout;

/// The version of the file. Another one counts as none.
const VERSION: u32 = 1;

/// A commit that may say something about bugs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claiming {
    /// The commit.
    pub id: CommitId,
    /// The committer's time.
    pub time: Timestamp,
    /// Its message.
    pub message: String,
    /// What it changed against its first parent.
    pub paths: Vec<String>,
}

/// The commits after `base` up to `head`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// Where it begins; all of it where there is none.
    pub base: Option<CommitId>,
    /// Where it ends.
    pub head: CommitId,
    /// How many commits there are.
    pub commits: usize,
    /// Those that may say something, oldest first.
    pub claiming: Vec<Claiming>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File<H> {
    v: u32,
    history: H,
}

impl History {
    /// Reads the file; `None` where there is none, or where it cannot be used.
    pub fn read<D: Disk>(disk: &mut D) -> Option<Self> {
        Self::parse(&Self::bytes(disk)?)
    }

    /// The bytes of the file, for who may not need them.
    pub fn bytes<D: Disk>(disk: &mut D) -> Option<Vec<u8>> {
        disk.read(Area::Store, layout::store::LEDGER, limits::STORE_CACHE).ok().flatten()
    }

    /// What they say; `None` where that cannot be used.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let file: File<Self> = serde_json::from_slice(bytes).ok()?;
        (file.v == VERSION).then_some(file.history)
    }

    /// Writes the file.
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn write<D: Disk>(&self, disk: &mut D) -> Result<(), DiskError> {
        // Plain data: this cannot fail.
        let bytes = serde_json::to_vec(&File { v: VERSION, history: self }).unwrap_or_default();
        disk.publish(Area::Store, layout::store::LEDGER, &bytes, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_comes_back_and_what_is_damaged_or_of_another_version_is_nothing() {
        let head = CommitId::new("a".repeat(40)).unwrap();
        let claiming = Claiming {
            id: head.clone(),
            time: Timestamp::from_millis(1000),
            message: "Bug-Report: B1\n".to_owned(),
            paths: vec!["a b.rs".to_owned()],
        };
        let history = History { base: None, head, commits: 7, claiming: vec![claiming] };
        let bytes = serde_json::to_vec(&File { v: VERSION, history: &history }).unwrap();
        assert_eq!(History::parse(&bytes), Some(history));
        let text = String::from_utf8(bytes).unwrap();
        for damaged in [
            text.replace("\"v\":1", "\"v\":2"),
            text.replace("\"commits\":7", "\"commits\":-7"),
            text.replace("\"base\"", "\"root\""),
            text.replace(&"a".repeat(40), "main"),
            text[..text.len() - 1].to_owned(),
        ] {
            assert_ne!(damaged, text);
            assert_eq!(History::parse(damaged.as_bytes()), None, "{damaged}");
        }
    }
}
