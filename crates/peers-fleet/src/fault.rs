//! Places where a test has this process die, to see what the next one makes of what is left.
//!
//! They are there in debug builds alone, which is what tests run; a release build has none.

/// The variable that names the place to die at.
pub const FAULT: &str = "PEERS_CTL_FAULT";

/// Dies here, as by `kill -9`, where a test asked for it.
pub fn point(name: &str) {
    #[cfg(debug_assertions)]
    if peers_sys::env::Env::current().text(FAULT) == Some(name) {
        peers_sys::signal::kill_self();
    }
    #[cfg(not(debug_assertions))]
    let _named = name;
}

/// Every place, in the order of a start, then of a stop.
pub const POINTS: [&str; 14] = [
    "start.op-locked",
    "start.run-locked",
    "start.budget-set",
    "start.intent-written",
    "start.spawned",
    "start.recorded",
    "start.ready",
    "start.done",
    "stop.op-locked",
    "stop.intent-written",
    "stop.signalled",
    "stop.killed",
    "stop.swept",
    "stop.done",
];
