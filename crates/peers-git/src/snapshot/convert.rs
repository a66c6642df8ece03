//! Line ends and `$Id$`, in both directions, as git does them without any driver.

use std::borrow::Cow;

use git2::Oid;

use crate::snapshot::attrs::{Conversion, Eol};

/// What git would store for the content of a work tree file.
///
/// `stored` is the content that git has for this path now: text that came with CR LF keeps it when the
/// type is only guessed.
pub(crate) fn to_git(
    how: Conversion,
    bytes: &[u8],
    stored: impl FnOnce() -> Option<Vec<u8>>,
) -> Cow<'_, [u8]> {
    let mut out = Cow::Borrowed(bytes);
    if how.eol != Eol::Raw && !bytes.is_empty() {
        let stats = Stats::of(bytes);
        let auto = matches!(how.eol, Eol::Auto | Eol::AutoCrLf);
        let convert = stats.crlf > 0
            && !(auto && (stats.is_binary() || stored().is_some_and(|stored| has_crlf(&stored))));
        if convert {
            out = Cow::Owned(without_cr(bytes));
        }
    }
    if how.ident { collapse(out) } else { out }
}

/// What a checkout writes for stored content.
pub(crate) fn to_work_tree(how: Conversion, bytes: &[u8], id: Oid) -> Cow<'_, [u8]> {
    let mut out = Cow::Borrowed(bytes);
    if how.ident {
        out = expand(bytes, id);
    }
    let auto = how.eol == Eol::AutoCrLf;
    if auto || how.eol == Eol::CrLf {
        let stats = Stats::of(&out);
        let keep = auto && (stats.lone_cr > 0 || stats.crlf > 0 || stats.is_binary());
        if stats.lone_lf > 0 && !keep {
            out = Cow::Owned(with_cr(&out));
        }
    }
    out
}

fn has_crlf(stored: &[u8]) -> bool {
    let stats = Stats::of(stored);
    stats.crlf > 0 && !stats.is_binary()
}

#[derive(Default)]
struct Stats {
    nul: usize,
    lone_cr: usize,
    lone_lf: usize,
    crlf: usize,
    printable: usize,
    other: usize,
}

impl Stats {
    fn of(bytes: &[u8]) -> Self {
        let mut stats = Self::default();
        let mut rest = bytes.iter().copied().peekable();
        while let Some(byte) = rest.next() {
            match byte {
                b'\r' if rest.next_if_eq(&b'\n').is_some() => stats.crlf += 1,
                b'\r' => stats.lone_cr += 1,
                b'\n' => stats.lone_lf += 1,
                0 => {
                    stats.nul += 1;
                    stats.other += 1;
                }
                8 | 9 | 12 | 27 => stats.printable += 1,
                127 | 1..=31 => stats.other += 1,
                _ => stats.printable += 1,
            }
        }
        // An end-of-file mark of old is no sign of binary content.
        if bytes.last() == Some(&0x1a) {
            stats.other = stats.other.saturating_sub(1);
        }
        stats
    }

    fn is_binary(&self) -> bool {
        self.lone_cr > 0 || self.nul > 0 || (self.printable >> 7) < self.other
    }
}

fn without_cr(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\r' || rest.peek() != Some(&b'\n') {
            out.push(byte);
        }
    }
    out
}

fn with_cr(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 16);
    let mut last = 0;
    for &byte in bytes {
        if byte == b'\n' && last != b'\r' {
            out.push(b'\r');
        }
        out.push(byte);
        last = byte;
    }
    out
}

/// `$Id: anything $` becomes `$Id$`.
fn collapse(bytes: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    replace_ids(&bytes, |_| Some(b"$Id$".to_vec())).map_or(bytes, Cow::Owned)
}

/// `$Id$` and our own expansions become `$Id: <hash> $`; somebody else's stay.
fn expand(bytes: &[u8], id: Oid) -> Cow<'_, [u8]> {
    let text = format!("$Id: {id} $").into_bytes();
    let found = replace_ids(bytes, |inner| {
        // Another system's expansion has a blank inside.
        let foreign = inner
            .strip_prefix(b": ")
            .is_some_and(|body| body.strip_suffix(b" ").unwrap_or(body).contains(&b' '));
        (!foreign).then(|| text.clone())
    });
    found.map_or(Cow::Borrowed(bytes), Cow::Owned)
}

/// Replaces each `$Id$` and `$Id:…$` (on one line); the callback gets what stands between `Id` and `$`.
fn replace_ids(bytes: &[u8], mut with: impl FnMut(&[u8]) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut changed = false;
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|b| *b == b'$') {
        let (head, tail) = rest.split_at(at);
        out.extend_from_slice(head);
        let inner =
            tail.strip_prefix(b"$Id").filter(|after| after.starts_with(b"$") || after.starts_with(b":"));
        let found = inner.and_then(|inner| {
            let end = inner.iter().position(|b| matches!(b, b'$' | b'\n'))?;
            (inner.get(end) == Some(&b'$')).then_some((inner.get(..end)?, end))
        });
        let replacement = found.and_then(|(inner, end)| Some((with(inner)?, 3 + end + 1)));
        changed |= replacement.is_some();
        let (text, used) = replacement.unwrap_or_else(|| (vec![b'$'], 1));
        out.extend_from_slice(&text);
        rest = tail.get(used..).unwrap_or(&[]);
    }
    out.extend_from_slice(rest);
    changed.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(eol: Eol, bytes: &[u8], before: Option<&[u8]>) -> Vec<u8> {
        to_git(Conversion { eol, ident: false }, bytes, || before.map(<[u8]>::to_vec)).into_owned()
    }

    #[test]
    fn declared_text_loses_its_carriage_returns() {
        assert_eq!(stored(Eol::Lf, b"a\r\nb\rc\r\n", None), b"a\nb\rc\n");
        assert_eq!(stored(Eol::Raw, b"a\r\n", None), b"a\r\n");
    }

    #[test]
    fn guessed_text_keeps_what_was_stored_with_carriage_returns() {
        assert_eq!(stored(Eol::Auto, b"a\r\n", None), b"a\n");
        assert_eq!(stored(Eol::Auto, b"a\r\n", Some(b"x\r\n")), b"a\r\n");
        assert_eq!(stored(Eol::Auto, b"\0a\r\n", None), b"\0a\r\n");
    }

    #[test]
    fn checkout_adds_carriage_returns_only_where_asked() {
        let id = Oid::hash_object(git2::ObjectType::Blob, b"").unwrap();
        let write = |eol, bytes| to_work_tree(Conversion { eol, ident: false }, bytes, id).into_owned();
        assert_eq!(write(Eol::CrLf, b"a\nb\r\n"), b"a\r\nb\r\n");
        assert_eq!(write(Eol::AutoCrLf, b"a\nb\r\n"), b"a\nb\r\n");
        assert_eq!(write(Eol::Lf, b"a\n"), b"a\n");
    }

    #[test]
    fn ids_expand_and_collapse_to_where_they_were() {
        let id = Oid::hash_object(git2::ObjectType::Blob, b"").unwrap();
        let how = Conversion { eol: Eol::Raw, ident: true };
        let text = b"x $Id$ y $Identity$ $Id: by somebody else $ $Id\n$";
        let out = to_work_tree(how, text, id).into_owned();
        let shown = String::from_utf8(out.clone()).unwrap();
        assert!(shown.contains(&format!("x $Id: {id} $ y $Identity$ $Id: by somebody else $")), "{shown}");
        assert_eq!(to_git(how, &out, || None).as_ref(), b"x $Id$ y $Identity$ $Id$ $Id\n$");
    }

    proptest::proptest! {
        #[test]
        fn any_content_is_converted_without_a_panic(bytes: Vec<u8>, ident: bool) {
            let id = Oid::hash_object(git2::ObjectType::Blob, b"").unwrap();
            for eol in [Eol::Raw, Eol::Lf, Eol::CrLf, Eol::Auto, Eol::AutoCrLf] {
                drop(to_git(Conversion { eol, ident }, &bytes, || None));
                drop(to_work_tree(Conversion { eol, ident }, &bytes, id));
            }
        }
    }
}
