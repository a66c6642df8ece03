//! The head of a request, checked before HTTP proper reads it.
//!
//! A connection carries one request. Its head is read whole, and whatever two readers could understand differently is
//! refused: two lengths, a length beside a transfer coding, a coding other than `chunked`.

use std::time::Duration;

use bytes::BytesMut;
use httparse::{EMPTY_HEADER, Error, Header, Request, Status};
use hyper::Uri;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::refusal::Refusal;

/// The most headers.
const HEADERS: usize = 64;
/// What is read at once.
const PIECE: usize = 4096;
/// After an answer to a request that was not read, what still comes is dropped for so long.
const LINGER: Duration = Duration::from_secs(1);

/// Reads a head of at most `cap` bytes, and what came in the same pieces.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin), cap: usize) -> Result<BytesMut, Refusal> {
    let mut head = BytesMut::with_capacity(PIECE);
    loop {
        head.reserve(PIECE);
        let before = head.len();
        if !matches!(stream.read_buf(&mut head).await, Ok(1..)) {
            return Err(Refusal::ClientGone);
        }
        let ended = head.get(before..).is_some_and(|piece| piece.contains(&b'\n'));
        match if ended { check(&head)? } else { None } {
            Some(length) if length <= cap => return Ok(head),
            Some(_) => return Err(Refusal::HeadTooLarge),
            None if head.len() >= cap => return Err(Refusal::HeadTooLarge),
            None => {}
        }
    }
}

/// Answers on a connection on which no request was read.
pub(super) async fn refuse(mut stream: impl AsyncRead + AsyncWrite + Unpin, refusal: &Refusal) {
    let answer = async {
        stream.write_all(refusal.raw().as_bytes()).await?;
        stream.shutdown().await?;
        // Closing with unread bytes would take the answer back.
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
    };
    // Whoever does not wait for the answer does not get it.
    let _answered = timeout(LINGER, answer).await;
}

/// The length of the head, `None` while it is not whole.
fn check(bytes: &[u8]) -> Result<Option<usize>, Refusal> {
    let mut headers = [EMPTY_HEADER; HEADERS];
    let mut request = Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(Status::Partial) => Ok(None),
        Ok(Status::Complete(length)) => {
            if request.version != Some(1) {
                return Err(Refusal::Malformed("only HTTP/1.1 is spoken here"));
            }
            let plain =
                |path: &str| path.starts_with('/') && !path.contains('#') && path.parse::<Uri>().is_ok();
            if !request.path.is_some_and(plain) {
                return Err(Refusal::Malformed("the target is not a path"));
            }
            framing(request.headers)?;
            Ok(Some(length))
        }
        Err(Error::TooManyHeaders) => Err(Refusal::HeadTooLarge),
        Err(_) => Err(Refusal::Malformed("the request line or a header cannot be read")),
    }
}

fn framing(headers: &[Header<'_>]) -> Result<(), Refusal> {
    let all = |name: &'static str| {
        headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
    };
    let mut codings = all("transfer-encoding");
    if let Some(coding) = codings.next() {
        if all("content-length").next().is_some() {
            return Err(Refusal::Malformed("Content-Length beside Transfer-Encoding"));
        }
        if codings.next().is_some() || !coding.eq_ignore_ascii_case(b"chunked") {
            return Err(Refusal::Malformed("a Transfer-Encoding other than `chunked`"));
        }
    }
    let mut lengths = all("content-length");
    if let Some(length) = lengths.next() {
        if length.is_empty() || !length.iter().all(u8::is_ascii_digit) {
            return Err(Refusal::Malformed("Content-Length is not a number"));
        }
        if lengths.any(|other| other != length) {
            return Err(Refusal::Malformed("two different Content-Length"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(headers: &str) -> Result<Option<usize>, Refusal> {
        check(format!("POST /a HTTP/1.1\r\nhost: x\r\n{headers}\r\n").as_bytes())
    }

    #[test]
    fn a_body_has_one_length() {
        for good in [
            "",
            "Content-Length: 5\r\n",
            "content-length: 5\r\nContent-Length: 5\r\n",
            "Transfer-Encoding: chunked\r\n",
            "transfer-encoding: CHUNKED\r\n",
        ] {
            assert!(matches!(head(good), Ok(Some(_))), "{good}");
        }
        for bad in [
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            "Content-Length: 5, 5\r\n",
            "Content-Length: +5\r\n",
            "Content-Length: 0x5\r\n",
            "Content-Length: -1\r\n",
            "Content-Length:\r\n",
            "Content-Length: 5 5\r\n",
            "Transfer-Encoding: gzip\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: chunked, gzip\r\n",
            "Transfer-Encoding: identity\r\n",
            "Transfer-Encoding: xchunked\r\n",
            "Transfer-Encoding:\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\ntransfer-encoding: identity\r\n",
            "Transfer-Encoding : chunked\r\n",
            " Transfer-Encoding: chunked\r\n",
            "X: y\r\n Transfer-Encoding: chunked\r\n",
            "X: y\rTransfer-Encoding: chunked\r\n",
            "X\0: y\r\n",
        ] {
            assert!(matches!(head(bad), Err(Refusal::Malformed(_))), "{bad}: {:?}", head(bad));
        }
    }

    #[test]
    fn the_target_is_a_path() {
        for bad in ["http://h/a", "*", "h:443", "a", "/a b", "/a#b"] {
            let text = format!("GET {bad} HTTP/1.1\r\n\r\n");
            assert!(matches!(check(text.as_bytes()), Err(Refusal::Malformed(_))), "{bad}");
        }
        for version in ["HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "http/1.1"] {
            let text = format!("GET /a {version}\r\n\r\n");
            assert!(matches!(check(text.as_bytes()), Err(Refusal::Malformed(_))), "{version}");
        }
    }

    #[tokio::test]
    async fn a_head_is_whole_or_too_large() {
        let text = "GET /a HTTP/1.1\r\nx: y\r\n\r\nbody";
        assert_eq!(&read(&mut text.as_bytes(), 30).await.unwrap()[..], text.as_bytes());
        assert_eq!(read(&mut text.as_bytes(), 20).await, Err(Refusal::HeadTooLarge));
        let cut = "GET /a HTTP/1.1\r\nx: y\r\n";
        assert_eq!(read(&mut cut.as_bytes(), 30).await, Err(Refusal::ClientGone));
        assert_eq!(read(&mut vec![b'x'; 9000].as_slice(), 8192).await, Err(Refusal::HeadTooLarge));
        let many = format!("GET /a HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(HEADERS + 1));
        assert_eq!(read(&mut many.as_bytes(), 32768).await, Err(Refusal::HeadTooLarge));
    }
}
