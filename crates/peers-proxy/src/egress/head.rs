//! The head of a request.

use httparse::{EMPTY_HEADER, Request, Status};

use super::reason::Reason;
use super::reply::Refusal;

/// The most bytes of a head.
const HEAD: usize = 8 * 1024;
/// The most header lines.
const HEADERS: usize = 32;

/// What the bytes of a client say so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// The head goes on after these bytes.
    Partial,
    /// A request for a tunnel.
    Connect {
        /// What stands after `CONNECT`, unchecked.
        authority: String,
        /// Bytes of the head; what follows belongs to the tunnel.
        used: usize,
    },
}

/// Reads the head of a request: at most 8 KiB, 32 header lines. Header lines are not looked at.
///
/// HTTP/1.0 is as good: older Python clients ask for tunnels with it.
///
/// # Errors
/// The answer to a head that asks for something else or cannot be read.
pub fn parse_head(bytes: &[u8]) -> Result<Head, Refusal> {
    const MALFORMED: &str = "send a `CONNECT` request of at most 8 KiB with at most 32 header lines";
    let mut headers = [EMPTY_HEADER; HEADERS];
    let mut request = Request::new(&mut headers);
    let used = match request.parse(bytes.get(..HEAD).unwrap_or(bytes)) {
        Ok(Status::Complete(used)) => used,
        Ok(Status::Partial) if bytes.len() < HEAD => return Ok(Head::Partial),
        Ok(Status::Partial) => {
            return Err(Refusal::new(400, Reason::Malformed, "the request head is too long", MALFORMED));
        }
        Err(error) => {
            let text = format!("the request head cannot be read: {error}");
            return Err(Refusal::new(400, Reason::Malformed, text, MALFORMED));
        }
    };
    let path = request.path.unwrap_or_default();
    match request.method {
        Some("CONNECT") => Ok(Head::Connect { authority: path.to_owned(), used }),
        _ if path.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://")) => Err(Refusal::new(
            403,
            Reason::Method,
            "plain HTTP is not forwarded",
            "use https; for a service on this host, the operator can list its port in `local_ports`",
        )),
        _ => Err(Refusal::new(405, Reason::Method, "only `CONNECT` is served", "use this as an HTTPS proxy")),
    }
}
