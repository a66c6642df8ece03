//! What is remembered before a turn, so that what the turn did can be told from what was there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use peers_git::{BusyState, Generation, GitError, GuardSnapshot, IndexMark, PeerRepo, RefValue, Unfinished};
use peers_model::{CommitId, TickNo, TreeId, limits};
use serde::{Deserialize, Serialize};

use super::putback::Stored;
use super::stopped::unimportable;
use super::unopened::Mended;
use super::{GitRepo, PROTECTED, UNREADABLE_REFS};
use crate::ports::RepoFailure;

/// A mark is as large as this and no larger: one that could not be read after a crash is none.
pub(super) const MARK_CAP: u64 = limits::CONFIG * 16;
/// What survives a crash in the middle of a turn.
pub(super) const TURN_FILE: &str = "turn.json";
/// References that are remembered one by one, and stash entries.
const MAX_REFS: usize = 2_000;
const MAX_STASH: usize = 200;
/// Commits that pseudo-references name.
const MAX_PSEUDO: usize = 200;
/// Uncommitted paths that are remembered.
const MAX_DIRTY: usize = 2_000;

/// The repository before a turn.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TurnMark {
    v: u32,
    pub(super) tick: TickNo,
    pub(super) known: Generation,
    pub(super) index_lock: bool,
    /// Locks of references that were there before the turn.
    #[serde(default)]
    pub(super) ref_locks: Vec<PathBuf>,
    /// The full name of the branch; absent when HEAD was detached.
    #[serde(default)]
    pub(super) branch: Option<String>,
    pub(super) guard: GuardSnapshot,
    /// All references, or the branches alone where there are too many.
    #[serde(default)]
    pub(super) refs: BTreeMap<String, RefValue>,
    /// Which references `refs` is about.
    #[serde(default)]
    pub(super) scope: RefScope,
    /// Entries of the stash.
    #[serde(default)]
    pub(super) stash: Vec<CommitId>,
    /// Operations of git that were in progress.
    #[serde(default)]
    pub(super) unfinished: Unfinished,
    /// How the index differed from HEAD.
    #[serde(default)]
    pub(super) index: Option<IndexMark>,
    /// Paths that were not committed; absent when there were too many.
    #[serde(default)]
    pub(super) dirty: Option<BTreeSet<String>>,
    /// The work tree, where it was not the one of HEAD.
    #[serde(default)]
    pub(super) work: Option<TreeId>,
    /// Files of it that could not be stored, tests and gates alone.
    #[serde(default, rename = "left_out_hex", with = "hex_paths")]
    pub(super) left_out: BTreeSet<Vec<u8>>,
    /// Files of it that are weaker than those of HEAD, and for which the turn that left them so answered.
    #[serde(default)]
    pub(super) charged: BTreeSet<String>,
    /// The same at the end of this turn.
    #[serde(default)]
    pub(super) left_weaker: BTreeSet<String>,
    /// What was put back before the repository was opened, after a crash.
    #[serde(default)]
    pub(super) mended: Mended,
}

/// Which references are remembered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RefScope {
    /// All.
    All,
    /// Branches.
    Branches,
    /// None: a mark of an older version, or there are too many of everything.
    #[default]
    Nothing,
}

impl RefScope {
    /// The references as they are now.
    pub(super) fn list(self, peer: &PeerRepo) -> Result<Option<BTreeMap<String, RefValue>>, GitError> {
        match self {
            Self::All => peer.list_refs("refs/", MAX_REFS),
            Self::Branches => peer.list_refs("refs/heads/", MAX_REFS),
            Self::Nothing => Ok(None),
        }
    }
}

/// References that are guarded or ours: not the operator's to lose.
pub(super) fn is_ours(name: &str) -> bool {
    let ours = |pattern: &str| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    };
    PROTECTED.iter().any(|pattern| ours(pattern)) || name.starts_with("refs/replace/")
}

impl TurnMark {
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// The work tree when the turn began at a commit of the tree `from`; nothing where that was not kept.
    pub(super) fn start(&self, from: &TreeId) -> Option<Stored> {
        let clean = self.dirty.as_ref().is_some_and(BTreeSet::is_empty);
        let tree = self.work.clone().or_else(|| clean.then(|| from.clone()))?;
        Some(Stored { tree, left_out: self.left_out.clone() })
    }

    /// All stash entries now.
    pub(super) fn stash_now(peer: &PeerRepo) -> Vec<CommitId> {
        peer.stash(MAX_STASH)
    }
}

impl GitRepo {
    /// Brings in every commit that something names, so that it is known before the turn and stays when
    /// the turn loses it, and remembers how things stand.
    pub(super) fn mark_turn(&mut self, tick: TickNo) -> Result<(), RepoFailure> {
        let (mut mark, head) = self.mark(tick)?;
        mark.dirty = self.uncommitted(&head)?;
        if mark.dirty.as_ref().is_none_or(|dirty| !dirty.is_empty()) {
            let Stored { tree, left_out } = self.stored(&head)?;
            mark.left_out = left_out;
            mark.work = Some(tree);
        }
        mark.charged = self.turn.as_ref().map(|before| before.left_weaker.clone()).unwrap_or_default();
        self.keep_mark(mark)
    }

    /// Writes down what is remembered of a turn.
    pub(super) fn keep_mark(&mut self, mark: TurnMark) -> Result<(), RepoFailure> {
        let bytes = serde_json::to_vec(&mark).map_err(|e| RepoFailure::Git(format!("turn mark: {e}")))?;
        fits(&bytes)?;
        self.git_dir.publish(TURN_FILE, &bytes)?;
        self.turn = Some(mark);
        Ok(())
    }

    /// How things stand, and the commit that HEAD names. Not what is uncommitted.
    pub(super) fn mark(&mut self, tick: TickNo) -> Result<(TurnMark, CommitId), RepoFailure> {
        let peer = self.open()?;
        self.import(&peer).map_err(unimportable)?;
        let (refs, scope) = self.remember_refs(&peer)?;
        let stash = TurnMark::stash_now(&peer);
        self.know(&peer, &refs, &stash)?;
        let patterns: Vec<String> = PROTECTED.iter().map(|p| (*p).to_owned()).collect();
        let guard = GuardSnapshot::take(&peer, &patterns)?;
        let index_lock = peer.busy().contains(&BusyState::IndexLock);
        let known = self.control.generation();
        // A name that is no text cannot be kept; no git of ours or the operator's made it.
        let ref_locks = peer.ref_locks().into_iter().filter(|lock| lock.to_str().is_some()).collect();
        let head = peer.facts().head()?;
        if !std::mem::replace(&mut self.looked_over, true) {
            self.check_tip(&peer, &head.commit, None)?;
        }
        let tree = self.control.facts().tree_of(&head.commit)?;
        let index = Some(peer.index_mark(&self.control, &tree)?);
        let mark = TurnMark {
            v: 1,
            tick,
            known,
            index_lock,
            ref_locks,
            branch: head.branch,
            guard,
            refs,
            scope,
            stash,
            unfinished: peer.unfinished(),
            index,
            dirty: None,
            work: None,
            left_out: BTreeSet::new(),
            charged: BTreeSet::new(),
            left_weaker: BTreeSet::new(),
            mended: Mended::default(),
        };
        Ok((mark, head.commit))
    }

    fn remember_refs(&mut self, peer: &PeerRepo) -> Result<(BTreeMap<String, RefValue>, RefScope), GitError> {
        for scope in [RefScope::All, RefScope::Branches] {
            if let Some(mut refs) = scope.list(peer)? {
                refs.retain(|name, _| !is_ours(name));
                if scope == RefScope::Branches {
                    self.tell_once(format!(
                        "the repository has more than {MAX_REFS} references: only branches are watched and kept, tags and others are not"
                    ));
                }
                return Ok((refs, scope));
            }
        }
        self.tell_once(format!(
            "the repository has more than {MAX_REFS} branches: what a turn does to other branches, tags and stashes is neither told nor kept"
        ));
        Ok((BTreeMap::new(), RefScope::Nothing))
    }

    /// Imports what references, stashes and pseudo-references name.
    fn know(
        &mut self,
        peer: &PeerRepo,
        refs: &BTreeMap<String, RefValue>,
        stash: &[CommitId],
    ) -> Result<(), GitError> {
        let mut commits = stash.to_vec();
        commits.extend(peer.pseudo_commits(MAX_PSEUDO));
        for (name, value) in refs.iter().filter(|(name, _)| !name.starts_with(UNREADABLE_REFS)) {
            // Branches came with the import, or are broken.
            if name.starts_with("refs/heads/") {
                continue;
            }
            commits.extend(self.peel(peer, value));
        }
        self.control.adopt(peer, &commits).map(drop)
    }

    /// The commit behind a value of a reference.
    pub(super) fn peel(&mut self, peer: &PeerRepo, value: &RefValue) -> Option<CommitId> {
        let RefValue::Direct(hash) = value else { return None };
        if let Some(known) = self.peeled.get(hash) {
            return Some(known.clone());
        }
        let found = peer.peel(hash)?;
        if self.peeled.len() > 4 * MAX_REFS {
            self.peeled.clear();
        }
        self.peeled.insert(hash.clone(), found.clone());
        Some(found)
    }

    fn uncommitted(&self, head: &CommitId) -> Result<Option<BTreeSet<String>>, RepoFailure> {
        // Nothing runs between the last look and a turn.
        if self.clean_at.as_ref() == Some(head) {
            return Ok(Some(BTreeSet::new()));
        }
        let state = self.control.tree_state(&self.work_dir, head)?;
        if !state.dirty {
            return Ok(Some(BTreeSet::new()));
        }
        self.check_depth(&state.too_deep)?;
        let files = self.control.dirty_files(&self.work_dir, head, MAX_DIRTY + 1)?;
        Ok((files.len() <= MAX_DIRTY).then(|| files.into_iter().map(|file| file.path).collect()))
    }

    /// A warning for the next tick, once in the life of this process.
    fn tell_once(&mut self, text: String) {
        if self.told.insert(text.clone()) {
            self.to_tell.push(text);
        }
    }
}

/// Refuses a mark that could not be read again.
pub(super) fn fits(bytes: &[u8]) -> Result<(), RepoFailure> {
    if u64::try_from(bytes.len()).is_ok_and(|len| len <= MARK_CAP) {
        return Ok(());
    }
    Err(RepoFailure::Git(format!(
        "what is to be remembered of the repository has {} MiB, more than the {} MiB that are read again after a \
         crash: hooks of many megabytes and tests that cannot be read make it so; move them away",
        bytes.len() >> 20,
        MARK_CAP >> 20
    )))
}

/// Paths as hex text: as numbers they take twice as much.
mod hex_paths {
    use std::collections::BTreeSet;
    use std::fmt::Write as _;

    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(paths: &BTreeSet<Vec<u8>>, out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq(paths.iter().map(|path| {
            path.iter().fold(String::new(), |mut hex, byte| {
                // Writing to a string does not fail.
                let _ = write!(hex, "{byte:02x}");
                hex
            })
        }))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<BTreeSet<Vec<u8>>, D::Error> {
        let bytes = |hex: String| {
            let pairs = hex.as_bytes().chunks(2).map(|pair| {
                let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2);
                pair.and_then(|pair| u8::from_str_radix(pair, 16).ok())
            });
            pairs.collect::<Option<Vec<u8>>>()
        };
        let all: Option<BTreeSet<Vec<u8>>> =
            Vec::<String>::deserialize(input)?.into_iter().map(bytes).collect();
        all.ok_or_else(|| D::Error::custom("not hex"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
    struct Paths(#[serde(with = "hex_paths")] BTreeSet<Vec<u8>>);

    #[test]
    fn paths_take_twice_their_length_in_a_mark_and_a_mark_that_cannot_be_read_again_is_refused() {
        let paths = Paths((0..=255).map(|byte| vec![byte; 4_000]).collect());
        let bytes = serde_json::to_vec(&paths).unwrap();
        assert!(bytes.len() < 256 * 8_010, "{}", bytes.len());
        assert_eq!(serde_json::from_slice::<Paths>(&bytes).unwrap(), paths);
        assert!(serde_json::from_str::<Paths>("[\"0\"]").is_err());
        let most = usize::try_from(MARK_CAP).unwrap();
        assert!(fits(&vec![b' '; most]).is_ok());
        assert!(fits(&vec![b' '; most + 1]).unwrap_err().to_string().contains("more than the 32 MiB"));
    }
}
