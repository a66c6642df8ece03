//! Peers and gates as real processes: `/bin/sh` in temporary directories.
//!
//! Nothing here sleeps to wait for something: a test waits for events, each with a deadline. Limits
//! under test are real but short; what is asserted is order and outcome, never a duration.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

mod acp;
mod agents;
mod gates;
mod keys;
mod measure;
mod peers;
mod recover;
mod stage;
mod verify;
