//! What is said of a run's branch that is not there any more.

use peers_model::{CommitId, RunId, exit};
use peers_run::boot::Finding;
use peers_run::boot::gone::of_run;
use peers_store::runs::RunRecord;
use peers_sys::term;
use peers_sys::term::quoted;

use super::Ground;

impl Ground {
    /// What is said where the branch of a run is gone.
    pub(super) fn branch_gone(&self, branch: &str, record: &RunRecord) -> Finding {
        let shown = term::inline(branch);
        let Some(head) = self.ended(branch, record) else {
            return Finding::plain(exit::INVALID, format!("there is no branch `{shown}`"));
        };
        of_run(&self.repo, &self.place, branch, (&record.run_id, &head))
    }

    /// What is said where the branch that a run's work is to go into is gone.
    pub(super) fn target_gone(&self, into: &str, record: &RunRecord, asked: bool) -> Finding {
        let message = format!("there is no branch `{}`", term::inline(into));
        if asked {
            return Finding::plain(exit::INVALID, message);
        }
        let dir = quoted(&self.place.project_dir().to_string_lossy());
        Finding::new(
            exit::INVALID,
            format!("{message}, from which run {} started", record.run_id),
            format!("name the one that gets the work: `peers -C {dir} land --into BRANCH`"),
        )
    }

    /// Where a run left its branch, by the newest run on it; where a run that was killed was seen last.
    fn ended(&self, branch: &str, record: &RunRecord) -> Option<CommitId> {
        let newest = self.records.iter().rev().find(|one| one.branch.as_deref() == Some(branch));
        let newest = newest.unwrap_or(record);
        let state = self.store.state();
        let live = |run: &RunId| state.run.as_ref().is_some_and(|state| state.id == *run);
        let seen = newest.head.clone().or_else(|| state.head.clone().filter(|_| live(&newest.run_id)));
        seen.or_else(|| record.head.clone()).or_else(|| record.base.clone())
    }
}
