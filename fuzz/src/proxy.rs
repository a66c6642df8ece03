//! The first bytes of a client of the egress proxy: the head of its request, and the TLS record in its tunnel.

use peers_proxy::egress::{ClientHello, Head, client_hello, parse_head};

/// The most bytes of a head.
const HEAD: usize = 8 * 1024;
/// The bytes before the content of a record, and the most bytes with it.
const RECORD_HEADER: usize = 5;
const RECORD: usize = RECORD_HEADER + 16 * 1024;
/// What may come after the bytes that were there.
const MORE: [&[u8]; 4] = [b"x", b"\r\n\r\n", b"\0", b"\x16\x03\x01"];

/// Puts the bytes through both readers.
pub fn check(data: &[u8]) {
    head(data);
    record(data);
    named(data);
}

fn head(data: &[u8]) {
    let read = parse_head(data);
    assert_eq!(read, parse_head(data), "reading is deterministic");
    let with = |more: &[u8]| parse_head(&[data, more].concat());
    match &read {
        Ok(Head::Partial) => {
            assert!(data.len() < HEAD, "a head has an end");
            goes_on(data, |start| parse_head(start) == Ok(Head::Partial));
        }
        Ok(Head::Connect { authority, used }) => {
            assert!(*used <= data.len().min(HEAD));
            let (head, _tunnel) = data.split_at(*used);
            assert!(head.ends_with(b"\n"));
            let text = String::from_utf8_lossy(head);
            assert!(text.trim_start().starts_with(&format!("CONNECT {authority} ")), "as it stands there");
            assert!(!authority.contains(|c: char| c.is_whitespace() || c.is_control()));
            assert_eq!(parse_head(head), read, "what comes after a head is not looked at");
            goes_on(&head[..used - 1], |start| parse_head(start) == Ok(Head::Partial));
            for more in MORE {
                assert_eq!(with(more), read);
            }
        }
        Err(refusal) => {
            assert!(matches!(refusal.status, 400 | 403 | 405));
            for line in [&refusal.text, &refusal.hint] {
                assert!(!line.is_empty() && line.len() < 200 && !line.contains(char::is_control), "{line:?}");
            }
            for more in MORE {
                assert_eq!(with(more), read, "no further byte makes it better");
            }
        }
    }
}

fn record(data: &[u8]) {
    let read = client_hello(data);
    assert_eq!(read, client_hello(data), "reading is deterministic");
    if read == ClientHello::Partial {
        assert!(data.len() < RECORD, "a record has an end");
        return goes_on(data, |start| client_hello(start) == ClientHello::Partial);
    }
    for more in MORE {
        assert_eq!(client_hello(&[data, more].concat()), read, "what comes after a record is not looked at");
    }
    if read != ClientHello::Unreadable {
        let length = usize::from(u16::from_be_bytes([data[3], data[4]]));
        let (record, _later) = data.split_at(RECORD_HEADER + length);
        assert_eq!(client_hello(record), read);
        // Nothing else is known until the record is whole: no other name, and no name too early.
        goes_on(&record[..record.len() - 1], |start| client_hello(start) == ClientHello::Partial);
    }
    if let ClientHello::Named(name) = read {
        let places = data.as_ptr_range();
        let named = name.as_bytes().as_ptr_range();
        assert!(places.start <= named.start && named.end <= places.end, "the name stands in the record");
    }
}

/// The smallest hello that names these bytes.
fn named(data: &[u8]) {
    fn long(width: usize, content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len()).expect("shorter than a record").to_be_bytes();
        [&length[4 - width..], content].concat()
    }
    // Two bytes of version, 32 of random, three lists with one entry each or none.
    const BEFORE: [u8; 41] = {
        let mut before = [3; 41];
        before[34] = 0; // no session
        before[35] = 0;
        before[36] = 2; // one cipher
        before[39] = 1; // one compression
        before
    };
    if data.len() > 16_000 {
        return;
    }
    let name = long(2, &[&[0], long(2, data).as_slice()].concat());
    let extensions = long(2, &[&[0, 0], long(2, &name).as_slice()].concat());
    let hello = [&[1], long(3, &[&BEFORE, extensions.as_slice()].concat()).as_slice()].concat();
    let record = [&[22, 3, 1], long(2, &hello).as_slice()].concat();
    let expected = std::str::from_utf8(data).map_or(ClientHello::Unreadable, ClientHello::Named);
    assert_eq!(client_hello(&record), expected);
    assert_eq!(client_hello(&record[..record.len() - 1]), ClientHello::Partial);
}

/// All beginnings of these bytes are such; of many of them, the shortest and the longest are looked at.
fn goes_on(data: &[u8], is_so: impl Fn(&[u8]) -> bool) {
    const LOOKED_AT: usize = 256;
    for end in (0..=data.len()).filter(|end| *end < LOOKED_AT || data.len() - end < LOOKED_AT) {
        assert!(is_so(&data[..end]), "not so after {end} of {} bytes", data.len());
    }
}
