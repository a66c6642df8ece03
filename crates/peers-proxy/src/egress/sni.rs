//! The host name in the first TLS record of a client (RFC 8446 §4.1.2, RFC 6066 §3).

/// The most bytes of a record's content.
const RECORD: usize = 16 * 1024;
const HEADER: usize = 5;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: usize = 1;
const SERVER_NAME: usize = 0;
const HOST_NAME: usize = 0;

/// What the first TLS record of a client says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientHello<'a> {
    /// The record goes on after these bytes.
    Partial,
    /// Not a `ClientHello` that is whole within the record.
    Unreadable,
    /// It names no host.
    Unnamed,
    /// It names this host, as written.
    Named(&'a str),
}

/// Reads the first TLS record of a client. Looks at no more than 16 KiB and 5 bytes.
///
/// A `ClientHello` that is spread over several records is unreadable: no client in use writes one, and the server
/// could read another name than the one that was checked. With encrypted names (ECH) the outer name counts.
#[must_use]
pub fn client_hello(bytes: &[u8]) -> ClientHello<'_> {
    let starts_wrong = |at: usize, expected: u8| bytes.get(at).is_some_and(|byte| *byte != expected);
    if starts_wrong(0, HANDSHAKE) || starts_wrong(1, 3) {
        return ClientHello::Unreadable;
    }
    let Some((header, content)) = bytes.split_at_checked(HEADER) else { return ClientHello::Partial };
    let length = Fields(header.get(3..).unwrap_or_default()).number(2).unwrap_or_default();
    if length > RECORD {
        return ClientHello::Unreadable;
    }
    let Some(record) = content.get(..length) else { return ClientHello::Partial };
    hello(Fields(record)).unwrap_or(ClientHello::Unreadable)
}

/// `Named` or `Unnamed`; nothing for what is no hello.
fn hello(mut record: Fields<'_>) -> Option<ClientHello<'_>> {
    if record.number(1)? != CLIENT_HELLO {
        return None;
    }
    let mut hello = record.block(3)?;
    let _version_and_random = hello.take(2 + 32)?;
    let _session = hello.block(1)?;
    let _ciphers = hello.block(2)?;
    let _compressions = hello.block(1)?;
    let mut name = None;
    if !hello.is_at_end() {
        let mut extensions = hello.block(2)?;
        while !extensions.is_at_end() {
            let kind = extensions.number(2)?;
            let body = extensions.block(2)?;
            if kind == SERVER_NAME && name.replace(host_name(body)?).is_some() {
                return None;
            }
        }
    }
    let named = name.map_or(ClientHello::Unnamed, ClientHello::Named);
    (hello.is_at_end() && record.is_at_end()).then_some(named)
}

/// The only name of the list.
fn host_name(mut body: Fields<'_>) -> Option<&str> {
    let mut list = body.block(2)?;
    let kind = list.number(1)?;
    let Fields(name) = list.block(2)?;
    (kind == HOST_NAME && list.is_at_end() && body.is_at_end()).then_some(())?;
    std::str::from_utf8(name).ok()
}

/// Bytes that are taken from the front.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// A big-endian number of `width` bytes, at most 3.
    fn number(&mut self, width: usize) -> Option<usize> {
        Some(self.take(width)?.iter().fold(0, |number, byte| (number << 8) | usize::from(*byte)))
    }

    /// What follows a length of `width` bytes.
    fn block(&mut self, width: usize) -> Option<Fields<'a>> {
        let length = self.number(width)?;
        self.take(length).map(Fields)
    }
}
