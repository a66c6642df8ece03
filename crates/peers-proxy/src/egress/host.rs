//! Host names as a client may write them, and no IP address in any spelling.

use std::fmt;

use super::denied::Denied;

/// The most bytes of a name.
const NAME: usize = 253;
/// The most bytes of one label.
const LABEL: usize = 63;

/// A host name: ASCII, lower-case, without a trailing dot. Never an IP address.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostName(String);

impl HostName {
    /// Reads a name. Upper case and one trailing dot are allowed.
    ///
    /// # Errors
    /// [`Denied::IpLiteral`] for whatever a resolver may read as an address: `127.1`, `0x7f000001`, `017700000001`,
    /// `[::1]`. [`Denied::Malformed`] for all other text.
    pub fn parse(text: &str) -> Result<Self, Denied> {
        if !text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b':' | b'[' | b']')) {
            return Err(Denied::malformed(text));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        if text.contains([':', '[', ']']) || name.rsplit('.').next().is_some_and(is_number) {
            return Err(Denied::ip_literal(text));
        }
        if name.len() > NAME || !name.split('.').all(|label| (1..=LABEL).contains(&label.len())) {
            return Err(Denied::malformed(text));
        }
        Ok(Self(name.to_ascii_lowercase()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is a name below `parent`, and not `parent` itself.
    #[must_use]
    pub fn is_below(&self, parent: &Self) -> bool {
        self.0.strip_suffix(parent.as_str()).is_some_and(|rest| rest.ends_with('.'))
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Splits `host:port`.
///
/// # Errors
/// [`Denied::Malformed`] without a port from 1 to 65535 in plain decimal.
pub(crate) fn split_authority(text: &str) -> Result<(&str, u16), Denied> {
    let port = |port: &str| {
        let plain = !port.starts_with('0') && port.bytes().all(|b| b.is_ascii_digit());
        port.parse::<u16>().ok().filter(|_| plain)
    };
    text.rsplit_once(':')
        .and_then(|(host, digits)| port(digits).map(|port| (host, port)))
        .ok_or_else(|| Denied::malformed(text))
}

/// Resolvers read a name whose last label is a number as an IPv4 address; no top-level domain is a number.
fn is_number(label: &str) -> bool {
    let hex = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    match hex {
        Some(digits) => digits.bytes().all(|b| b.is_ascii_hexdigit()),
        None => !label.is_empty() && label.bytes().all(|b| b.is_ascii_digit()),
    }
}
