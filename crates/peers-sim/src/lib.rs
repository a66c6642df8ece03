//! A simulated world for the whole loop: it drives the real engine over its ports.
//!
//! Development only. Every operation that touches the world is a numbered point. A schedule says at
//! which point the loop crashes (before or after the operation, with or without what was not
//! synced), or which operation fails, and what becomes of the peer that was running. After each
//! schedule the invariants of [`check`] must hold. Start reading at [`explore`].

pub mod check;
pub mod disk;
pub mod explore;
pub mod fault;
pub mod night;
pub mod repo;
pub mod run;
pub mod scenario;
pub mod world;
