//! The auth proxy against services that the tests play: real sockets on the loopback, no sleeps.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

mod budget;
mod fake;
mod files;
mod limits;
mod login;
mod passing;
mod refusing;
mod secrets;
mod tls;
mod websocket;
mod world;
