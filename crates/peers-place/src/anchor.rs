//! The commit from which the agents' history is counted.

use peers_git::{Author, PeerRepo};
use peers_model::record::Record;
use peers_model::{CommitId, Timestamp};
use peers_store::{Disk, StoreError, runs, store};

/// The tag from which agents look for what changed.
pub const BASELINE: &str = "peers-baseline";

/// Where the oldest run that is known began; `None` when none was ever recorded. What came after it may be
/// an agent's, so that nothing later is an anchor.
///
/// # Errors
/// [`StoreError`] for a journal that cannot be read.
pub fn of_runs<D: Disk>(disk: &mut D) -> Result<Option<CommitId>, StoreError> {
    let mut oldest: Option<(Timestamp, CommitId)> = None;
    let mut take = |at: Timestamp, commit: &CommitId| {
        if oldest.as_ref().is_none_or(|(known, _)| at < *known) {
            oldest = Some((at, commit.clone()));
        }
    };
    store::read_each(disk, |line| {
        if let Record::RunStarted(started) = &line.record {
            take(line.ts, &started.head);
        }
    })?;
    // A record outlives a journal that was moved aside; the journal outlives a record that was removed.
    for record in runs::list(disk)?.0 {
        if let Some(base) = &record.base {
            take(record.started_at, base);
        }
    }
    Ok(oldest.map(|(_, commit)| commit))
}

/// What became of the tag.
#[derive(Debug, PartialEq, Eq)]
pub enum Tagged {
    /// It is there already.
    Already,
    /// It is set.
    Now,
    /// It is not set, or stands elsewhere; in words.
    Not(String),
}

/// Tags the anchor, unless there is a tag of that name, which is never moved. `set` is false to look only.
#[must_use]
pub fn tag(repo: &PeerRepo, anchor: &CommitId, who: &Author, set: bool) -> Tagged {
    let not = |why: &dyn std::fmt::Display| Tagged::Not(format!("the tag `{BASELINE}` was not set: {why}"));
    match repo.facts().reference(&format!("refs/tags/{BASELINE}")) {
        Ok(Some(at)) if at == *anchor => return Tagged::Already,
        Ok(Some(at)) => {
            let (at, anchor) = (at.short(), anchor.short());
            return Tagged::Not(format!(
                "the tag {BASELINE} is at {at} and stays there; history counts from {anchor}"
            ));
        }
        Ok(None) if repo.facts().has(anchor) => {}
        Ok(None) => return not(&format!("commit {} is gone", anchor.short())),
        Err(error) => return not(&error),
    }
    if set && let Err(error) = repo.tag_if_absent(BASELINE, anchor, who) {
        return not(&error);
    }
    Tagged::Now
}
