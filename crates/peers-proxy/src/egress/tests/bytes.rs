//! The two readers of what a client sends: the head of its request, and its first TLS record.

use proptest::prelude::*;

use super::super::{ClientHello, Head, Reason, client_hello, parse_head};
use super::world::{block, extension, hello, hello_with, record};

#[test]
fn a_hello_gives_the_name_it_names() {
    assert_eq!(client_hello(&hello(Some("a.example"))), ClientHello::Named("a.example"));
    assert_eq!(client_hello(&hello(None)), ClientHello::Unnamed);
    assert_eq!(client_hello(&hello_with(&[])), ClientHello::Unnamed);
    let more = [hello(Some("a.example")), b"early data".to_vec()].concat();
    assert_eq!(client_hello(&more), ClientHello::Named("a.example"));
}

#[test]
fn every_beginning_of_a_hello_is_partial() {
    let whole = hello(Some("a.example"));
    for end in 0..whole.len() {
        assert_eq!(client_hello(&whole[..end]), ClientHello::Partial, "{end}");
    }
}

#[test]
fn what_is_no_whole_hello_is_unreadable() {
    let name = |name: &[u8]| block(2, &[&[0][..], &block(2, name)].concat());
    let two_names = block(2, &[&[0][..], &block(2, b"a.example"), &[0], &block(2, b"b.example")].concat());
    let twice = [extension(0, &name(b"a.example")), extension(0, &name(b"b.example"))].concat();
    let whole = hello(Some("a.example"));
    let split = [record(&whole[5..40]), record(&whole[40..])].concat();
    let second_message = record(&[&whole[5..], b"\x01\0\0\0"].concat());
    let table = [
        ("http", b"GET / HTTP/1.1\r\n\r\n".to_vec()),
        ("ssh", b"SSH-2.0-x\r\n".to_vec()),
        ("ssl 2", vec![0x80, 46, 1, 3, 1]),
        ("alert", vec![21, 3, 1, 0, 2, 1, 0]),
        ("version", vec![22, 2, 0, 0, 1, 1]),
        ("record too long", vec![22, 3, 1, 0x40, 1]),
        ("empty record", vec![22, 3, 1, 0, 0]),
        ("server hello", record(&[2, 0, 0, 0])),
        ("split over records", split),
        ("second message", second_message),
        ("two names", hello_with(&extension(0, &two_names))),
        ("name twice", hello_with(&twice)),
        ("other kind of name", hello_with(&extension(0, &block(2, &[1, 0, 1, b'a'])))),
        ("name not text", hello_with(&extension(0, &name(&[0xff])))),
        ("empty list", hello_with(&extension(0, &block(2, &[])))),
        ("bytes behind the list", hello_with(&extension(0, &[name(b"a"), vec![0]].concat()))),
        ("half an extension", hello_with(&[0, 0, 0, 9, 1])),
    ];
    for (what, bytes) in table {
        assert_eq!(client_hello(&bytes), ClientHello::Unreadable, "{what}");
    }
}

#[test]
fn a_head_asks_for_a_tunnel() {
    for version in ["1.1", "1.0"] {
        let head = format!("CONNECT a.example:443 HTTP/{version}\r\nHost: a.example\r\n\r\n");
        let bytes = [head.as_bytes(), b"behind"].concat();
        let expected = Head::Connect { authority: "a.example:443".to_owned(), used: head.len() };
        assert_eq!(parse_head(&bytes), Ok(expected));
        for end in 0..head.len() {
            assert_eq!(parse_head(&bytes[..end]), Ok(Head::Partial), "{end}");
        }
    }
}

#[test]
fn other_heads_are_refused_with_their_status() {
    let long = format!("CONNECT a:1 HTTP/1.1\r\nX: {}", "x".repeat(8 * 1024));
    let many = format!("CONNECT a:1 HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(33));
    let table = [
        ("GET http://a.example/ HTTP/1.1\r\n\r\n", 403, Reason::Method),
        ("POST HTTP://a.example/ HTTP/1.1\r\n\r\n", 403, Reason::Method),
        ("GET / HTTP/1.1\r\n\r\n", 405, Reason::Method),
        ("connect a.example:443 HTTP/1.1\r\n\r\n", 405, Reason::Method),
        ("OPTIONS * HTTP/1.1\r\n\r\n", 405, Reason::Method),
        ("CONNECT a.example:443 HTTP/2.0\r\n\r\n", 400, Reason::Malformed),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, Reason::Malformed),
        ("CONNECT  HTTP/1.1\r\n\r\n", 400, Reason::Malformed),
        ("CONNECT a.example:443\r\n\r\n", 400, Reason::Malformed),
        ("CONNECT a.example:443 HTTP/1.1\r\nno colon\r\n\r\n", 400, Reason::Malformed),
        ("\u{16}\u{3}\u{1}", 400, Reason::Malformed),
        (&long, 400, Reason::Malformed),
        (&many, 400, Reason::Malformed),
    ];
    for (head, status, reason) in table {
        let refusal = parse_head(head.as_bytes()).unwrap_err();
        assert_eq!((refusal.status, refusal.reason), (status, reason), "{head:?}");
    }
    let most = format!("CONNECT a:1 HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(32));
    assert!(matches!(parse_head(most.as_bytes()), Ok(Head::Connect { .. })));
}

proptest! {
    #[test]
    fn both_readers_are_total(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _hello = client_hello(&bytes);
        let _record = client_hello(&record(&bytes));
        let _head = parse_head(&bytes);
    }

    #[test]
    fn a_changed_hello_is_read_or_refused(at in 0_usize..150, byte: u8) {
        let mut bytes = hello(Some("a.example"));
        let at = at % bytes.len();
        bytes[at] = byte;
        let _hello = client_hello(&bytes);
        let _prefix = client_hello(&bytes[..at]);
    }
}
