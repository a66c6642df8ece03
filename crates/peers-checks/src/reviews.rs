//! Review records: lines that a peer other than their author vouches for (`modes.md` §2.5).
//!
//! `Peers-Review: <path>@<blob>[#L<a>[-<b>]]` in a commit says that its author read these lines of the file as it
//! stands in that commit. A record is bound to lines by where each was written: a line that anybody changed since
//! is another line, which nobody reviewed.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::rc::Rc;

use peers_git::{CommitFact, Origin};
use peers_model::trailer::Message;
use peers_model::{CommitId, PeerName};

use crate::attribution::{Whose, Writer};
use crate::cx::{CheckCx, CouldNot};

/// The trailer.
const TRAILER: &str = "Peers-Review";
/// Digits of an object that name it.
const MIN_NAME: usize = 7;

/// A record of a peer that was seen to make it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Record {
    reviewer: PeerName,
    commit: CommitId,
    claim: Claim,
}

/// What a trailer says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Claim {
    path: String,
    of: Of,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Of {
    /// Lines of this content; all of them without a range.
    Lines { blob: String, lines: Option<RangeInclusive<usize>> },
    /// A place that has a name, such as `PLAN.md#STEP-3`.
    Anchor(String),
}

impl Claim {
    fn read(value: &str) -> Option<Self> {
        if let Some((path, rest)) = value.rsplit_once('@') {
            let (blob, lines) = match rest.split_once('#') {
                None => (rest, None),
                Some((blob, range)) => (blob, Some(range_of(range)?)),
            };
            let hex = blob.len() >= MIN_NAME && blob.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            let of = Of::Lines { blob: blob.to_owned(), lines };
            return hex.then(|| Self { path: path.to_owned(), of });
        }
        let (path, anchor) = value.split_once('#')?;
        Some(Self { path: path.to_owned(), of: Of::Anchor(anchor.to_owned()) })
    }
}

/// `L3` or `L3-9`, also `L3-L9`.
fn range_of(text: &str) -> Option<RangeInclusive<usize>> {
    let number = |text: &str| text.strip_prefix('L').unwrap_or(text).parse::<usize>().ok().filter(|n| *n > 0);
    let text = text.strip_prefix('L')?;
    match text.split_once('-') {
        None => number(text).map(|line| line..=line),
        Some((first, last)) => Some(number(first)?..=number(last)?).filter(|range| !range.is_empty()),
    }
}

/// Where the lines of a file at a commit were written.
type Origins = BTreeMap<(CommitId, String), Rc<[Origin]>>;

/// The review records of a history, as far as a peer that was seen to make them stands behind them.
pub struct Reviews<'a> {
    cx: &'a CheckCx,
    whose: Whose<'a>,
    commits: Vec<CommitFact>,
    new: BTreeSet<CommitId>,
    records: Vec<Record>,
    origins: RefCell<Origins>,
}

impl std::fmt::Debug for Reviews<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reviews").field("records", &self.records).finish_non_exhaustive()
    }
}

impl<'a> Reviews<'a> {
    /// Reads the records between base and head.
    ///
    /// # Errors
    /// [`CouldNot`] when the history or the record of its authors cannot be read.
    pub fn read(cx: &'a CheckCx) -> Result<Self, CouldNot> {
        let whose = Whose::new(cx, cx.attribution().map_err(CouldNot::clone)?)?;
        let commits = cx.commits()?;
        let mut records = Vec::new();
        for commit in &commits {
            let Some(reviewer) = whose.speaker(&commit.id) else { continue };
            for claim in Message::parse(&commit.message).trailers.all(TRAILER).filter_map(Claim::read) {
                records.push(Record { reviewer: reviewer.clone(), commit: commit.id.clone(), claim });
            }
        }
        let new = commits.iter().map(|commit| commit.id.clone()).collect();
        Ok(Self { cx, whose, commits, new, records, origins: RefCell::default() })
    }

    /// Whether each of these lines (from 1) of a file at the commit that is judged was reviewed, as it is, by a peer
    /// other than its author. Lines that are not there were not.
    ///
    /// # Errors
    /// [`CouldNot`] when the history of the file cannot be read.
    pub fn is_reviewed(&self, path: &str, lines: RangeInclusive<usize>) -> Result<bool, CouldNot> {
        let origins = self.origins(self.cx.head(), path)?;
        let signed = self.signed(path)?;
        let first = lines.start().checked_sub(1);
        let Some(asked) = first.and_then(|first| origins.get(first..*lines.end())) else { return Ok(false) };
        Ok(!asked.is_empty() && asked.iter().all(|line| signed.contains(line)))
    }

    /// The lines of a file, by origin, that a peer other than their author reviewed.
    pub(crate) fn signed(&self, path: &str) -> Result<BTreeSet<Origin>, CouldNot> {
        let mut signed = BTreeSet::new();
        for Record { reviewer, commit, claim } in
            self.records.iter().filter(|record| record.claim.path == path)
        {
            let Of::Lines { blob, lines } = &claim.of else { continue };
            let fail = |e| CouldNot::git("look up what was reviewed", &e);
            // What it names has to be what stands there, else nobody knows what was read.
            let there = self.cx.facts()?.file_id(commit, path).map_err(fail)?;
            if !there.is_some_and(|id| id.starts_with(blob.as_str())) {
                continue;
            }
            let numbered = (1..).zip(self.origins(commit, path)?.iter().cloned().collect::<Vec<_>>());
            signed.extend(
                numbered
                    .filter(|(number, _)| lines.as_ref().is_none_or(|lines| lines.contains(number)))
                    .map(|(_, line)| line)
                    .filter(|line| self.writer(line).is_other_than(reviewer)),
            );
        }
        Ok(signed)
    }

    /// The peers that reviewed a named place, with their commits.
    pub(crate) fn of_anchor<'s>(
        &'s self,
        path: &'s str,
        anchor: &'s str,
    ) -> impl Iterator<Item = (&'s PeerName, &'s CommitId)> {
        let of = Of::Anchor(anchor.to_owned());
        let fits = move |record: &&Record| record.claim.path == path && record.claim.of == of;
        self.records.iter().filter(fits).map(|record| (&record.reviewer, &record.commit))
    }

    /// The origin of each line of a file at a commit. Empty when there is no such file.
    pub(crate) fn origins(&self, commit: &CommitId, path: &str) -> Result<Rc<[Origin]>, CouldNot> {
        let key = (commit.clone(), path.to_owned());
        if let Some(known) = self.origins.borrow().get(&key) {
            return Ok(Rc::clone(known));
        }
        let found = self.cx.facts()?.blame(commit, path, self.cx.base());
        let found: Rc<[Origin]> = found.map_err(|e| CouldNot::git("follow the lines of a file", &e))?.into();
        self.origins.borrow_mut().insert(key, Rc::clone(&found));
        Ok(found)
    }

    /// Who wrote a line.
    pub(crate) fn writer(&self, line: &Origin) -> Writer {
        if self.is_new(&line.commit) { self.whose.writer(&line.commit) } else { Writer::Operator }
    }

    /// Whether a commit came after the base.
    pub(crate) fn is_new(&self, commit: &CommitId) -> bool {
        self.new.contains(commit)
    }

    /// The commits between base and head, oldest first.
    pub(crate) fn commits(&self) -> &[CommitFact] {
        &self.commits
    }

    /// Who made which.
    pub(crate) fn whose(&self) -> &Whose<'a> {
        &self.whose
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_names_content_and_lines_or_a_place() {
        let blob = "0123abc";
        for (value, lines) in [
            ("src/a.rs@0123abc", Some(None)),
            ("src/a.rs@0123abc#L3", Some(Some(3..=3))),
            ("src/a.rs@0123abc#L3-9", Some(Some(3..=9))),
            ("src/a.rs@0123abc#L3-L9", Some(Some(3..=9))),
            ("src/a.rs@0123abc#L9-3", None),
            ("src/a.rs@0123abc#L0", None),
            ("src/a.rs@0123abc#9", None),
            ("src/a.rs@0123ab", None),
            ("src/a.rs@HEAD", None),
            ("src/a.rs", None),
        ] {
            let due = lines.map(|lines| Claim {
                path: "src/a.rs".to_owned(),
                of: Of::Lines { blob: blob.to_owned(), lines },
            });
            assert_eq!(Claim::read(value), due, "{value}");
        }
        let of = Of::Anchor("STEP-3".to_owned());
        assert_eq!(Claim::read("PLAN.md#STEP-3"), Some(Claim { path: "PLAN.md".to_owned(), of }));
    }
}
