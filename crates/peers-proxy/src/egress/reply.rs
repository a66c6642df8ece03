//! What the proxy answers.

use std::error::Error;
use std::fmt::Write as _;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::denied::Denied;
use super::reason::Reason;

/// The answer that opens a tunnel.
pub(crate) const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\nProxy-Agent: peers\r\n\r\n";

/// A client that does not read or close may hold its connection so long after a refusal.
const LINGER: Duration = Duration::from_secs(1);
/// Bytes of a refused client that are read, so that closing does not destroy the answer on its way.
const DRAINED: u64 = 64 * 1024;

/// An answer that opens no tunnel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The word for the log.
    pub reason: Reason,
    /// What happened.
    pub text: String,
    /// The next step.
    pub hint: String,
}

impl Refusal {
    pub(crate) fn new(status: u16, reason: Reason, text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { status, reason, text: text.into(), hint: hint.into() }
    }

    /// Answers, and reads on for a moment until the client closes. Errors are the client's loss.
    pub(crate) async fn send(&self, client: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
        let answer = async {
            client.write_all(&self.bytes()).await?;
            client.shutdown().await?;
            tokio::io::copy(&mut client.take(DRAINED), &mut tokio::io::sink()).await
        };
        drop(timeout(LINGER, answer).await);
    }

    fn bytes(&self) -> Vec<u8> {
        let phrase = match self.status {
            400 => "Bad Request",
            403 => "Forbidden",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            502 => "Bad Gateway",
            503 => "Service Unavailable",
            504 => "Gateway Timeout",
            _ => "Refused",
        };
        let extra = match self.status {
            405 => "Allow: CONNECT\r\n",
            503 => "Retry-After: 1\r\n",
            _ => "",
        };
        let body = format!("peers egress proxy: {}\nhint: {}\n", self.text, self.hint);
        format!(
            "HTTP/1.1 {} {phrase}\r\nProxy-Agent: peers\r\n{extra}Connection: close\r\n\
             Content-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\r\n{body}",
            self.status,
            body.len()
        )
        .into_bytes()
    }
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        let status = match denied {
            Denied::Malformed { .. } => 400,
            Denied::IpLiteral { .. }
            | Denied::NotListed { .. }
            | Denied::Port { .. }
            | Denied::PrivateAddr { .. } => 403,
            Denied::Dns { .. } | Denied::Dial { .. } if denied.is_timeout() => 504,
            Denied::Dns { .. } | Denied::Dial { .. } => 502,
        };
        let mut text = denied.to_string();
        if let Some(source) = denied.source() {
            // Writing to a string does not fail.
            let _written = write!(text, ": {source}");
        }
        Self::new(status, denied.reason(), text, denied.hint())
    }
}
