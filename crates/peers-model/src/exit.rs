//! Exit codes: one table for all our binaries (`docs/exit-codes.md`, ADR 0009).

/// Done as asked: complete, tick cap, checkpoint, drained.
pub const OK: u8 = 0;
/// A negative answer: gates red, findings, nothing there, operation failed.
pub const NEGATIVE: u8 = 1;
/// The command line makes no sense.
pub const USAGE: u8 = 2;
/// Something is invalid or unknown (config, goals, state, target), or could not be measured.
pub const INVALID: u8 = 3;
/// A conflict: locked, already running, name taken, already there.
pub const CONFLICT: u8 = 4;
/// Refused by policy: tamper, goal mutation, unsafe file, trust.
pub const REFUSED: u8 = 5;
/// The environment lacks something: a CLI, git, credentials.
pub const ENVIRONMENT: u8 = 6;
/// Partial success over several projects.
pub const PARTIAL: u8 = 7;
/// A budget ran out.
pub const BUDGET: u8 = 10;
/// Stuck, or parked for a person.
pub const STUCK: u8 = 11;
/// A peer is unavailable.
pub const PEER: u8 = 13;
/// A bug of ours, or input/output failed.
pub const BUG: u8 = 70;
/// A time limit passed.
pub const TIMEOUT: u8 = 124;

/// The code of a death by signal `signal`: 128 + N.
#[must_use]
pub fn signalled(signal: i32) -> u8 {
    u8::try_from(signal.clamp(0, 127)).unwrap_or(0).saturating_add(128)
}

#[cfg(test)]
mod tests {
    #[test]
    fn signal_codes() {
        assert_eq!(super::signalled(15), 143);
        assert_eq!(super::signalled(1), 129);
    }
}
