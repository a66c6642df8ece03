//! The two ways out of a sandbox: [`egress`], a proxy of connections to hosts on a list, and [`auth`], a proxy of
//! requests to the services of models that adds the credential, which no sandbox holds.
//!
//! Both listen on unix sockets outside of the sandbox, one socket per peer. [`relay`] runs inside and leads there.

pub mod auth;
pub mod egress;
mod listen;
mod process;
pub mod relay;

pub use listen::{BindError, Endpoint, InvalidEndpoint};
pub use process::{Lifetime, Proxy, StartError};
