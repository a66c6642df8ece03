//! Every path name, in one place. All are relative to their [`Area`](crate::Area).

/// The control directory of a repository.
pub(crate) const PEERS_DIR: &str = ".peers";

/// Below the trusted store.
pub mod store {
    /// Directory of journal segments.
    pub const JOURNAL: &str = "journal";
    /// Cache of the fold.
    pub const SNAPSHOT: &str = "snapshot.json";
    /// What the operator accepted.
    pub const ACCEPTED: &str = "accepted.json";
    /// The accepted bytes.
    pub const ACCEPTED_DIR: &str = "accepted";
    /// The files of accepted modes that have some for their gates.
    pub const ACCEPTED_MODES: &str = "accepted/modes";
    /// The frozen plan and its commands.
    pub const CONTRACTS: &str = "contracts";
    /// Sealed notes about steps.
    pub const NOTES: &str = "notes";
    /// Which repository this is.
    pub const PROJECT: &str = "project.json";
    /// Run records.
    pub const RUNS: &str = "runs";
    /// Operator commands for a running loop.
    pub const COMMANDS: &str = "commands";
    /// Copies of goals and config that an operator edits.
    pub const EDITS: &str = "edits";
    /// Green answers of gates that outlive a process.
    pub const VERDICTS: &str = "verdicts.json";
    /// What planted faults showed of the gates.
    pub const PLANTED: &str = "gates-test.json";
    /// Settings of build tools, as they were when the run began.
    pub const TOOL_HOMES: &str = "tool-homes.json";
    /// How many bugs were open when a loop last looked.
    pub const BUGS: &str = "bugs.json";
    /// What source files were seen to define, by content. No verdict rests on it.
    pub const OUTLINES: &str = "outlines.json";
    /// The files that peers read first, as they were when the run began.
    pub const PRIMERS: &str = "primers.json";
    /// What commits say about bugs, up to one of them.
    pub const LEDGER: &str = "ledger.json";
    /// The run lock.
    pub const RUN_LOCK: &str = "run.lock";
    /// Held while a controller starts, stops or removes.
    pub const OP_LOCK: &str = "op.lock";
    /// The control git dir.
    pub const CONTROL_GIT: &str = "git/control.git";
    /// A small file whose space is freed to write the last record on a full disk.
    pub const RESERVE: &str = "reserve";
}

/// Below `.peers/`.
pub mod peers {
    /// Configuration.
    pub const CONFIG: &str = "config.yaml";
    /// Goals.
    pub const GOALS: &str = "goals.yaml";
    /// The modes that the goals were made from, for people.
    pub const MODES_APPLIED: &str = "modes-applied.txt";
    /// Projection of the state.
    pub const STATE: &str = "state.json";
    /// Mirror of the journal.
    pub const MIRROR: &str = "log/runs.jsonl";
    /// All logs.
    pub const LOG: &str = "log";
    /// Output of peers.
    pub const LOG_PEERS: &str = "log/peers";
    /// Prompts as sent.
    pub const LOG_PROMPTS: &str = "log/prompts";
    /// Output of gates.
    pub const LOG_GATES: &str = "log/gates";
    /// Output of the operator's hooks.
    pub const LOG_HOOKS: &str = "log/hooks";
    /// Drop boxes.
    pub const INBOX: &str = "inbox";
    /// Published messages.
    pub const COMMS: &str = "comms";
    /// Text form of the last stop reason.
    pub const STOP_REASON: &str = "last-stop-reason.txt";
    /// Written when no peer is left.
    pub const HALTED: &str = "HALTED.md";
    /// The report.
    pub const REPORT: &str = "REPORT.md";
    /// The verification.
    pub const VERIFY: &str = "VERIFY.md";
    /// Copy of the frozen plan, for readers.
    pub const PLAN_ORIGINAL: &str = "PLAN.original.md";
    /// Copies of the frozen commands and files, for readers.
    pub const CONTRACTS: &str = "contracts";
    /// A project at first sight, its public names, and the same in short, for peers to read.
    pub const RECON: &str = "recon.md";
    /// See [`RECON`].
    pub const CODEMAP: &str = "CODEMAP.yaml";
    /// See [`RECON`].
    pub const CODEMAP_DIGEST: &str = "codemap.md";
    /// What editors complete the operator's files from.
    pub const SCHEMA: &str = "schema";

    /// The schema of a file.
    #[must_use]
    pub fn schema(of: crate::schema::Described) -> String {
        format!("{SCHEMA}/{}.schema.json", of.word())
    }
}

/// The journal segment with this number.
#[must_use]
pub fn segment(number: u32) -> String {
    format!("{}/{number:06}.jsonl", store::JOURNAL)
}

/// The run record of a run.
#[must_use]
pub fn run_record(id: &peers_model::RunId) -> String {
    format!("{}/{id}.json", store::RUNS)
}
