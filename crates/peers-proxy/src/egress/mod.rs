//! The egress proxy: tunnels to the hosts of an allow-list, and to nothing else.
//!
//! A client asks with `CONNECT host:port`. The proxy looks the pair up in a [`Policy`], resolves the name itself,
//! refuses the request if any answer is a private or special address, and connects to the address that it checked.
//! The first TLS record of the client must name the same host. TLS is not opened.
//!
//! Start reading at [`Policy::decide`] and [`dial`], which the auth proxy uses too, then at [`Server`].

mod command;
mod connection;
mod denied;
mod dial;
mod head;
mod host;
mod limits;
mod local;
mod log;
mod meter;
mod policy;
mod ranges;
mod reason;
mod reply;
mod resolve;
mod server;
mod shared;
mod sni;
mod tunnel;

pub use command::{Start, open};
pub use denied::Denied;
pub use dial::dial;
pub use head::{Head, parse_head};
pub use host::HostName;
pub use limits::Limits;
pub use log::{LogLine, Suppressed};
pub use policy::{AllowEntry, Allowed, Policy, PolicyError, PolicyFile, Rule};
pub use ranges::{Cidr, InvalidCidr};
pub use reason::{Reason, Verdict};
pub use reply::Refusal;
pub use resolve::{Lookup, LookupFuture, Resolver};
pub use server::{Handle, Listen, Options, Server, Serves, serve};
pub use sni::{ClientHello, client_hello};

#[cfg(test)]
mod tests;
