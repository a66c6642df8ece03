//! Readers that need only some kinds of records.

use crate::record::{
    CommitsSeen, Cooling, CorrectionPlanned, ExitRecord, GatesRecord, HookFailed, MirrorRestored,
    OperatorRecord, ProofRecord, Record, RunStarted, TickRecord, TickStarted,
};

/// Takes the kinds of records that it implements and passes over all others. `C` is what comes with each record,
/// such as its line.
#[expect(missing_docs, reason = "each method takes the record of the same name")]
pub trait RecordReader<C> {
    fn run_started(&mut self, _with: C, _run: &RunStarted) {}
    fn tick_started(&mut self, _with: C, _tick: &TickStarted) {}
    fn correction_planned(&mut self, _with: C, _plan: &CorrectionPlanned) {}
    fn tick(&mut self, _with: C, _tick: &TickRecord) {}
    fn gates(&mut self, _with: C, _gates: &GatesRecord) {}
    fn proof(&mut self, _with: C, _proof: &ProofRecord) {}
    fn cooling(&mut self, _with: C, _cooling: &Cooling) {}
    fn commits_seen(&mut self, _with: C, _seen: &CommitsSeen) {}
    fn operator(&mut self, _with: C, _operator: &OperatorRecord) {}
    fn mirror_restored(&mut self, _with: C, _restored: &MirrorRestored) {}
    fn hook_failed(&mut self, _with: C, _failed: &HookFailed) {}
    fn exit(&mut self, _with: C, _exit: &ExitRecord) {}
}

impl Record {
    /// Gives the record to `reader`. A new kind of record is either added to [`RecordReader`] or named among those
    /// that no reader takes.
    pub fn tell<C>(&self, with: C, reader: &mut impl RecordReader<C>) {
        match self {
            Self::RunStarted(run) => reader.run_started(with, run),
            Self::TickStarted(tick) => reader.tick_started(with, tick),
            Self::CorrectionPlanned(plan) => reader.correction_planned(with, plan),
            Self::Tick(tick) => reader.tick(with, tick),
            Self::Gates(gates) => reader.gates(with, gates),
            Self::Proof(proof) => reader.proof(with, proof),
            Self::Cooling(cooling) => reader.cooling(with, cooling),
            Self::CommitsSeen(seen) => reader.commits_seen(with, seen),
            Self::Operator(operator) => reader.operator(with, operator),
            Self::MirrorRestored(restored) => reader.mirror_restored(with, restored),
            Self::HookFailed(failed) => reader.hook_failed(with, failed),
            Self::Exit(exit) => reader.exit(with, exit),
            Self::PeerSpawned(_) | Self::TurnEnded(_) | Self::Trial(_) | Self::Checkpoint(_) => {}
        }
    }
}
