//! Tests of the egress proxy: tables for its parts, then the whole of it over real sockets of the loopback.

mod addresses;
mod bytes;
mod clocks;
mod hosts;
mod limits;
mod log;
mod names;
mod process;
mod proxy;
pub(crate) mod world;
