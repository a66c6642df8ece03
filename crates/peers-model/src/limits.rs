//! Every size cap in one place. Bytes, unless the name says otherwise.

/// One KiB.
pub const KIB: u64 = 1024;
/// One MiB.
pub const MIB: u64 = 1024 * 1024;

/// `config.yaml`, `goals.yaml`, `PLAN.md`, registry.
pub const CONFIG: u64 = 2 * MIB;
/// Snapshot and `state.json`.
pub const STATE: u64 = 5 * MIB;
/// One journal line.
pub const JOURNAL_LINE: u64 = 8 * MIB;
/// A journal segment rotates at this size.
pub const JOURNAL_SEGMENT: u64 = 64 * MIB;
/// Single small files of the trusted store, authentication files.
pub const STORE_FILE: u64 = MIB;
/// What is kept in the trusted store so that it need not be measured again.
pub const STORE_CACHE: u64 = 64 * MIB;
/// A hybrid message.
pub const MESSAGE: u64 = 64 * KIB;
/// Commit message as far as claims are read from it.
pub const COMMIT_MESSAGE: u64 = 64 * KIB;
/// Prompt file shown to people.
pub const PROMPT_SHOWN: u64 = 4 * MIB;
/// Nesting of JSON that we parse.
pub const JSON_DEPTH: usize = 64;
/// A prompt, by default (`prompt.max_bytes`).
pub const PROMPT: u64 = 64 * KIB;
/// One warning in the state.
pub const WARNING: usize = 2 * 1024;
/// A gate's diagnostic in the state.
pub const DIAGNOSTIC: usize = 4 * 1024;
/// Review notes in the state.
pub const NOTES: usize = 2 * 1024;
/// Entries of `warnings_history`.
pub const WARNINGS_KEPT: usize = 500;
/// Captured output of one peer stream (`health.buf_cap_bytes`).
pub const STREAM_CAPTURE: u64 = 2 * MIB;
/// Longest wait that a service can ask for, in seconds: a week, and a day for clocks and zones.
pub const SERVICE_WAIT_S: u64 = 8 * 24 * 3600;
/// Tokens of one turn that are believed. A stream may say anything; what is added to the caps of all runs may not.
pub const TURN_TOKENS: u64 = 1_000_000_000;
/// Dollars of one turn that are believed.
pub const TURN_USD: u64 = 100_000;
/// Live tee of one peer stream to disk.
pub const STREAM_TEE: u64 = 64 * MIB;
/// Full gate log on disk.
pub const GATE_LOG: u64 = 64 * MIB;
/// What one command of a hook adds to the log of that hook.
pub const HOOK_LOG: u64 = MIB;
/// Head (and tail) of a gate's output kept in memory.
pub const GATE_CAPTURE_HALF: u64 = 512 * KIB;
/// One line of a tool's structured output.
pub const STREAM_LINE: u64 = 16 * MIB;
/// All logs of one project.
pub const LOG_BUDGET: u64 = 512 * MIB;
/// Free disk space below which nothing starts.
pub const DISK_FREE: u64 = 256 * MIB;
/// Files that a process must be allowed to have open; below it nothing starts.
pub const OPEN_FILES: u64 = 64;
/// Run records kept.
pub const RUN_RECORDS: usize = 200;
