//! The loop machine against a small world that answers at once.
//!
//! `row_NN_…` names the scenario that a test shows. No time passes unless a timer is waited for, and
//! every step of every test checks that `decide` gives one answer, that the journal folds to the
//! live state, and that the state survives its serialised form.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

mod arrivals;
mod bench;
mod budgets;
mod cheating;
mod choosing;
mod completing;
mod delivery;
mod health;
mod idle;
mod illegal;
mod integrity;
mod laundering;
mod overlap;
mod random;
mod reviewing;
mod skeptics;
mod steps;
mod stopping;
mod streaks;
mod trial;
mod turns;
mod waiting;
mod world;
