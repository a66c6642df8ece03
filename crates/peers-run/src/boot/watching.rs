//! Whoever watches the loop, and the lock that tells others what it does.

use peers_core::machine::{Notice, Now};
use peers_core::state::State;
use peers_model::Timestamp;
use peers_sys::dir::FileError;
use peers_sys::lock::FileLock;
use serde_json::json;

use crate::ports::Observer;
use crate::procs::Progress;

/// Whoever watches, behind one type.
pub(super) struct Watching {
    pub(super) observer: Box<dyn Observer>,
    pub(super) lock: TellingLock,
}

impl Observer for Watching {
    fn notice(&mut self, notice: &Notice, state: &State, at: Now) {
        match notice {
            Notice::GatesStarted { .. } | Notice::TrialStarted { .. } => self.lock.tell(Some(at.wall)),
            // Nothing else is told while gates run. The guard compares the content as it is in a turn.
            Notice::GatesDone { .. } | Notice::TrialEnded { .. } | Notice::TickEnded(_) => {
                self.lock.tell(None);
            }
            Notice::RunStarted
            | Notice::Recovering(_)
            | Notice::TickStarted { .. }
            | Notice::PeerDegraded { .. }
            | Notice::PeerCapped { .. }
            | Notice::PeerPassedOver { .. }
            | Notice::PeerWaits(_)
            | Notice::Waiting { .. }
            | Notice::Warning(_)
            | Notice::Note(_)
            | Notice::Stopped { .. } => {}
        }
        self.observer.notice(notice, state, at);
    }

    fn progress(&mut self, progress: Progress) {
        self.observer.progress(progress);
    }
}

/// The run lock, whose content tells others who holds it, and what they cannot read in the journal.
pub(super) struct TellingLock {
    pub(super) lock: FileLock,
    pub(super) holder: serde_json::Value,
}

impl TellingLock {
    /// Who holds it is the first line and never changes: whoever reads while it is written finds that. All
    /// texts are of one length.
    pub(super) fn write(&mut self, gates_since: Option<Timestamp>) -> Result<(), FileError> {
        let doing = json!({"gates_since": gates_since}).to_string();
        self.lock.write(format!("{}\n{doing:<48}\n", self.holder).as_bytes())
    }

    fn tell(&mut self, gates_since: Option<Timestamp>) {
        // For views alone: a loop does not stop because it could not be told.
        if let Err(error) = self.write(gates_since) {
            tracing::debug!(%error, "the run lock does not say what runs");
        }
    }
}
