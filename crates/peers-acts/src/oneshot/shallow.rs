//! Built-in checks where neither the record nor the history is there.

use peers_git::PeerRepo;
use peers_model::goal::{GateRun, Goal, GoalKind};
use peers_model::verdict::{Judged, Verdict};
use peers_place::Place;
use peers_sys::dir::SafeDir;

/// Whether only the end of history is there, and no record that says where it has to begin. What cannot be
/// looked at counts as cut.
pub(super) fn is_cut(place: &Place, repo: &PeerRepo) -> bool {
    let git = SafeDir::open_shared(repo.common_dir());
    let shallow = git.and_then(|dir| dir.stat("shallow")).map_or(true, |found| found.is_some());
    shallow && !matches!(place.open_store(), Ok(Some(_)))
}

/// A check that reads commits passes where it sees none: no pass of one stands.
pub(super) fn doubt(gates: &mut [Judged], goals: &[Goal]) {
    let checks = |goal: &&Goal| matches!(&goal.kind, GoalKind::Hard(hard) if matches!(hard.run, GateRun::Check { .. }));
    for goal in goals.iter().filter(checks) {
        for judged in gates.iter_mut().filter(|judged| judged.goal == goal.id && judged.verdict.is_pass()) {
            judged.verdict = Verdict::Error {
                diagnostic: "this is a shallow clone and the check reads history: fetch the rest with `git fetch --unshallow`".to_owned(),
            };
        }
    }
}
