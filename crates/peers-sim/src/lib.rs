//! A simulated world: fault injection, crash schedules, invariants.
