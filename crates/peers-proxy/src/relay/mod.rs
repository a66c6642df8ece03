//! The relay inside of a sandbox: ports of its loopback that lead to unix sockets of the host.
//!
//! A sandbox has no network but its own loopback, and many clients know proxies only as ports. The relay carries bytes
//! both ways and reads none of them. [`run`] stands in for the command that it starts: signals go to that, its exit
//! comes back.

mod command;
mod ports;

pub use command::{RelayError, run};
pub use ports::{Relay, serve};
