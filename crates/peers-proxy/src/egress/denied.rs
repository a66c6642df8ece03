//! Why a host cannot be reached, and what the operator can do about it.

use std::io;
use std::net::IpAddr;

use thiserror::Error;

use super::reason::Reason;

/// Bytes of foreign text that a message repeats.
const SHOWN: usize = 260;

/// Why a host cannot be reached.
#[derive(Debug, Error)]
pub enum Denied {
    /// No host name.
    #[error("`{text}` is not a host name and a port")]
    Malformed {
        /// What was asked for, cut.
        text: String,
    },
    /// An IP address, in whatever spelling.
    #[error("`{text}` is an IP address")]
    IpLiteral {
        /// What was asked for, cut.
        text: String,
    },
    /// No entry of the allow-list matches.
    #[error("`{host}` is not on the allow-list")]
    NotListed {
        /// The host.
        host: String,
    },
    /// Entries match, and none has this port.
    #[error("port {port} of `{host}` is not on the allow-list")]
    Port {
        /// The host.
        host: String,
        /// The port that was asked for.
        port: u16,
    },
    /// One of the answers of the name service is forbidden.
    #[error("`{host}` resolves to {addr}, which is a private or special address")]
    PrivateAddr {
        /// The host.
        host: String,
        /// The first forbidden answer.
        addr: IpAddr,
    },
    /// The name service has no answer.
    #[error("resolve `{host}`")]
    Dns {
        /// The host.
        host: String,
        /// What the name service reports.
        #[source]
        source: io::Error,
    },
    /// No answer of the name service led to a connection.
    #[error("connect to `{host}` port {port}")]
    Dial {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// What the last attempt reports.
        #[source]
        source: io::Error,
    },
}

impl Denied {
    /// The word for the log.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::Malformed { .. } => Reason::Malformed,
            Self::IpLiteral { .. } => Reason::IpLiteral,
            Self::NotListed { .. } => Reason::NotListed,
            Self::Port { .. } => Reason::Port,
            Self::PrivateAddr { .. } => Reason::PrivateAddr,
            Self::Dns { .. } => Reason::DnsFail,
            Self::Dial { .. } => Reason::DialFail,
        }
    }

    /// The next step.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Malformed { .. } => "ask for `CONNECT host:port` with an ASCII host name".to_owned(),
            Self::IpLiteral { .. } => {
                "connect by host name; for a service on this host, the operator can list its port in `peers.local_ports`"
                    .to_owned()
            }
            Self::NotListed { host } => format!(
                "the operator can add `{host}` to `peers.allow` in their sandbox.yaml, and start the run again"
            ),
            Self::Port { host, port } => format!(
                "the operator can add `{host}:{port}` to `peers.allow` in their sandbox.yaml, and start the run again"
            ),
            Self::PrivateAddr { host: _, addr } => format!(
                "if this is meant, the operator can add the network of {addr} to `peers.private` in their sandbox.yaml, and start the run again"
            ),
            Self::Dns { .. } => "check the name and the name service of the host".to_owned(),
            Self::Dial { .. } => "check that the service is up; the proxy itself allows this host".to_owned(),
        }
    }

    /// Whether the time limit for connecting or resolving was the cause.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::Dns { source, .. } | Self::Dial { source, .. } => source.kind() == io::ErrorKind::TimedOut,
            Self::Malformed { .. }
            | Self::IpLiteral { .. }
            | Self::NotListed { .. }
            | Self::Port { .. }
            | Self::PrivateAddr { .. } => false,
        }
    }

    pub(crate) fn malformed(text: &str) -> Self {
        Self::Malformed { text: shown(text) }
    }

    pub(crate) fn ip_literal(text: &str) -> Self {
        Self::IpLiteral { text: shown(text) }
    }
}

/// Foreign text, cut and without control characters.
pub(crate) fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(SHOWN).collect()
}
