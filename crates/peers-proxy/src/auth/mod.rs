//! The auth proxy: requests of the agents to the services of models, with a credential that only the proxy holds.
//!
//! A peer asks `/<service>/<path>` on its own socket and shows the bearer of the run. The proxy checks the path
//! against a short list, takes the bearer away, adds the credential and streams bodies both ways. It renews logins,
//! meters tokens, writes one record for each request, and stops forwarding when the budget of tokens is used up.
//!
//! No credential is ever in a log, a record, an error or debug output. The process that calls [`serve`] has to make
//! itself undumpable first, as [`open`] does.
//!
//! Start reading at [`Options`], then `exchange.rs`, which is one request from its head to its last byte.

mod command;
mod credential;
mod exchange;
mod frames;
mod head;
mod headers;
mod intake;
mod ledger;
mod options;
mod outlet;
mod policy;
mod provider;
mod refusal;
mod server;
mod service;
mod service_url;
mod tunnel;
mod upstream;
mod usage;

pub use command::{Start, open};
pub use credential::{Credential, NoCredential, Oauth};
pub use options::{Bearer, Clock, Limits, Options, Peer, WeakBearer};
pub use policy::PolicyError;
pub use provider::Provider;
pub use server::{Handle, Server, serve};
pub use service::{InvalidRule, Rule, Service};
pub use service_url::{BadUrl, PlainHttp, ServiceUrl};
pub use upstream::{NoRoots, system_tls, tls};
