//! Why a request ended as it did, in the words of the log.

use serde::{Deserialize, Serialize};

/// Why a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The tunnel was open until one side closed it or the proxy stopped.
    Ok,
    /// The host is not on the allow-list, or was taken off it while the tunnel was open.
    NotListed,
    /// The host is on the allow-list with other ports.
    Port,
    /// An IP address in place of a host name.
    IpLiteral,
    /// The name resolves to a private or special address.
    PrivateAddr,
    /// The name does not resolve.
    DnsFail,
    /// No connection to the host.
    DialFail,
    /// The TLS handshake of the client names another host.
    SniMismatch,
    /// No TLS handshake, or one that names no host.
    SniMissing,
    /// The upload budget is used up.
    Quota,
    /// Too many connections.
    Limit,
    /// Not a request that this proxy can read.
    Malformed,
    /// Another method than `CONNECT`.
    Method,
    /// The request head was too slow, or the tunnel was idle or open for too long.
    Timeout,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It had its tunnel.
    Allow,
    /// The proxy refused it or cut it off.
    Deny,
    /// It was allowed and failed.
    Error,
}

impl Reason {
    /// The verdict that belongs to this reason.
    #[must_use]
    pub fn verdict(self) -> Verdict {
        match self {
            Self::Ok => Verdict::Allow,
            Self::DnsFail | Self::DialFail | Self::Timeout => Verdict::Error,
            Self::NotListed
            | Self::Port
            | Self::IpLiteral
            | Self::PrivateAddr
            | Self::SniMismatch
            | Self::SniMissing
            | Self::Quota
            | Self::Limit
            | Self::Malformed
            | Self::Method => Verdict::Deny,
        }
    }
}
