//! Putting back what a loop that was killed left of guarded files, before anything opens the repository: with a
//! configuration that cannot be read no start would take its turn up.

use std::path::Path;

use peers_core::machine::Harvest;
use peers_core::state::OpenTick;
use peers_git::{GuardChange, GuardItem, PeerRepo};
use peers_model::CommitId;
use peers_sys::dir::SafeDir;
use peers_sys::error::chain;
use serde::{Deserialize, Serialize};

use super::turn::{MARK_CAP, TURN_FILE, TurnMark, fits};
use super::{GitRepo, UNREADABLE_REFS, gates, mend};
use crate::ports::RepoFailure;

/// What survives a crash while gates run.
pub(super) const GATES_FILE: &str = "gates.json";

/// How the names of references begin that nobody but a loop writes.
const LOOPS_OWN: [&str; 3] = ["refs/tags/peers-baseline", "refs/notes/peers-", UNREADABLE_REFS];

/// What was put back before the repository was opened, and is told later.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Mended {
    git_tampered: Vec<String>,
    warnings: Vec<String>,
}

/// What is remembered of gates.
#[derive(Debug, Serialize, Deserialize)]
struct GatesMark {
    /// The repository before them, and the commit that HEAD named; absent in a mark of an older version once it
    /// was put back to that.
    before: Option<(TurnMark, CommitId)>,
    /// What is to be told of them.
    #[serde(default)]
    told: Vec<String>,
}

impl Mended {
    /// Adds what the harvest did not find any more.
    pub(super) fn tell(&self, found: &mut Harvest) {
        for (from, to) in
            [(&self.git_tampered, &mut found.git_tampered), (&self.warnings, &mut found.warnings)]
        {
            let new: Vec<String> = from.iter().filter(|text| !to.contains(text)).cloned().collect();
            to.extend(new);
        }
    }
}

/// Puts back, of the git directory of the turn that is open and of gates that were cut short, what keeps it
/// from being opened. The rest may have been changed by the operator meanwhile, and processes of that turn may
/// be alive: it is seen to once the start was not refused and they are gone. What cannot be put back is left for
/// who opens the repository to tell. Only for who holds the run lock.
pub(crate) fn mend_unopened(git_dir: &SafeDir, open: Option<&OpenTick>) {
    if let Some(mut gates) = read_gates(git_dir)
        && let Some((mark, _)) = &mut gates.before
    {
        let mut found = Harvest::default();
        make_fit(mark, git_dir, &mut found);
        let told = gates::words(&found);
        if !told.is_empty() {
            gates.told.extend(told);
            keep(git_dir, GATES_FILE, &gates);
        }
    }
    let Some(open) = open else { return };
    let turn = read(git_dir, TURN_FILE).and_then(|bytes| TurnMark::read(&bytes));
    let Some(mut turn) = turn.filter(|mark| mark.tick == open.started.tick) else { return };
    let mut found = Harvest::default();
    turn.mended.tell(&mut found);
    let told = (found.git_tampered.len(), found.warnings.len());
    make_fit(&mut turn, git_dir, &mut found);
    if told != (found.git_tampered.len(), found.warnings.len()) {
        turn.mended = Mended { git_tampered: found.git_tampered, warnings: found.warnings };
        keep(git_dir, TURN_FILE, &turn);
    }
}

/// Whether somebody has locked a reference that loops alone write.
pub(crate) fn has_own_lock(work_dir: &Path) -> bool {
    PeerRepo::open(work_dir).is_ok_and(|repo| repo.ref_locks().iter().any(|lock| is_own_lock(&repo, lock)))
}

/// Removes what a loop that was killed left of locks of such references. Only for who holds the run lock.
pub(crate) fn remove_own_locks(work_dir: &Path) {
    let Ok(repo) = PeerRepo::open(work_dir) else { return };
    let done = repo.remove_ref_locks(|lock| is_own_lock(&repo, lock));
    if done.removed > 0 {
        tracing::info!(locks = done.removed, "locks of a loop that was killed were removed");
    }
}

fn is_own_lock(repo: &PeerRepo, lock: &Path) -> bool {
    let name = lock.strip_prefix(repo.common_dir()).unwrap_or(lock).to_string_lossy();
    LOOPS_OWN.iter().any(|own| name.starts_with(own))
}

/// Whether gates were cut short.
pub(crate) fn has_gates_mark(git_dir: &SafeDir) -> bool {
    matches!(git_dir.stat(GATES_FILE), Ok(Some(_)))
}

/// What a start puts back of hooks and settings once it is not refused, as gates of the last run were cut short:
/// whoever changed them reads it at once.
pub(crate) fn changed_since_gates(git_dir: &SafeDir) -> Option<String> {
    let (mut mark, _) = read_gates(git_dir)?.before?;
    let _absent = mark.guard.adopt_places();
    let changes = mark.guard.compare_files().ok()?;
    let name = |change: &GuardChange| match &change.item {
        GuardItem::File(name) => Some(name.clone()),
        GuardItem::GitDir | GuardItem::Modules | GuardItem::Ref(_) => None,
    };
    let names: Vec<String> = changes.iter().filter_map(name).collect();
    (!names.is_empty()).then(|| {
        format!(
            "gates of the last run were cut short, and since they began {} changed in `.git`: that is put back now, \
             whoever did it; what is there now is kept, and the record of the next turn says where",
            mend::quoted(&names)
        )
    })
}

fn make_fit(mark: &mut TurnMark, git_dir: &SafeDir, found: &mut Harvest) {
    // As where the mark is read for the harvest: a directory that is gone is found by who opens it.
    let _absent = mark.guard.adopt_places();
    if mark.guard.can_be_opened() {
        return;
    }
    if let Err(failure) = mend::files(mark, git_dir, found) {
        tracing::warn!(%failure, "the git directory could not be put back before it is opened");
    }
}

fn read(git_dir: &SafeDir, name: &str) -> Option<Vec<u8>> {
    git_dir.read_opt(name, MARK_CAP).ok().flatten()
}

fn read_gates(git_dir: &SafeDir) -> Option<GatesMark> {
    serde_json::from_slice(&read(git_dir, GATES_FILE)?).ok()
}

fn keep(git_dir: &SafeDir, name: &str, mark: &impl Serialize) {
    let kept = serde_json::to_vec(mark).map(|bytes| git_dir.publish(name, &bytes));
    if !matches!(kept, Ok(Ok(()))) {
        tracing::warn!(name, "what was put back before the repository was opened is not told");
    }
}

impl GitRepo {
    /// Writes down what is remembered while gates run.
    pub(super) fn keep_gates_mark(&mut self, mark: TurnMark, head: CommitId) -> Result<(), RepoFailure> {
        let kept = GatesMark { before: Some((mark, head)), told: Vec::new() };
        let bytes = serde_json::to_vec(&kept).map_err(|e| RepoFailure::Git(format!("gates mark: {e}")))?;
        fits(&bytes)?;
        self.git_dir.publish(GATES_FILE, &bytes)?;
        self.gates = kept.before;
        Ok(())
    }

    /// Gates are over, and what they left was seen to.
    pub(super) fn forget_gates_mark(&self) {
        if let Err(error) = self.git_dir.remove_file(GATES_FILE) {
            tracing::warn!(error = %chain(&error), "the mark of gates stays");
        }
    }

    /// Puts back files of the git directory to what they were before gates that a killed run had
    /// begun, and tells that in the next record. For when everything that the gates started has ended.
    pub(super) fn see_to_old_gates(&mut self) {
        if self.gates.is_some() || !has_gates_mark(&self.git_dir) {
            return;
        }
        if let Some(GatesMark { before, told }) = read_gates(&self.git_dir) {
            self.to_tell.extend(told);
            if let Some((mut mark, _)) = before {
                let mut found = Harvest::default();
                let _absent = mark.guard.adopt_places();
                let done = mend::files(&mark, &self.git_dir, &mut found);
                self.to_tell.extend(gates::words(&found));
                if let Err(failure) = done {
                    self.tell(format!("what gates of a killed run left could not be put back: {failure}"));
                }
            }
        }
        // From here on what is different is the operator's.
        self.forget_gates_mark();
    }
}
