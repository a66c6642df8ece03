//! What keeper and first process say to each other.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use crate::spawn::RawExit;

/// The version of all that is said here. An image names it in a label, so that a program of another version is not
/// even started.
pub const PROTO: u32 = 1;

/// Bytes of a plan: more than the kernel takes for arguments and environment.
const CAP: u32 = 16 * 1024 * 1024;

/// What is to run inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) cwd: PathBuf,
    pub(super) env: Vec<(OsString, OsString)>,
    /// The words of the second stub.
    pub(super) words: Vec<OsString>,
}

impl Plan {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut put = |bytes: &[u8]| {
            out.extend_from_slice(bytes);
            // Neither paths nor variables nor arguments can hold it.
            out.push(0);
        };
        put(self.cwd.as_os_str().as_bytes());
        put(self.env.len().to_string().as_bytes());
        for (name, value) in &self.env {
            put(&[name.as_bytes(), b"=", value.as_bytes()].concat());
        }
        self.words.iter().for_each(|word| put(word.as_bytes()));
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut parts = bytes.strip_suffix(&[0])?.split(|byte| *byte == 0);
        let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let cwd = text(parts.next()?).into();
        let count: usize = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
        let mut env = Vec::new();
        for _ in 0..count {
            let entry = parts.next()?;
            let at = entry.iter().position(|byte| *byte == b'=')?;
            env.push((text(entry.get(..at)?), text(entry.get(at + 1..)?)));
        }
        Some(Self { cwd, env, words: parts.map(text).collect() })
    }
}

/// Hands a plan in, with the program's standard streams.
pub(super) fn send(to: &UnixStream, plan: &Plan, streams: [BorrowedFd<'_>; 3]) -> io::Result<()> {
    let body = plan.encode();
    let length = u32::try_from(body.len()).ok().filter(|length| *length <= CAP);
    let length = length.ok_or_else(|| io::Error::other("arguments and environment are too long"))?;
    let head = [PROTO.to_be_bytes(), length.to_be_bytes()].concat();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&streams)) {
        return Err(io::Error::other("no room for three streams"));
    }
    let sent = sendmsg(to, &[IoSlice::new(&head)], &mut control, SendFlags::NOSIGNAL)?;
    if sent != head.len() {
        return Err(io::ErrorKind::WriteZero.into());
    }
    let mut to = to;
    to.write_all(&body)
}

/// Takes a plan, with the program's standard streams.
pub(super) fn receive(from: &UnixStream) -> io::Result<(Plan, [OwnedFd; 3])> {
    let odd = || io::Error::other("what came through the socket is no plan of this version");
    let mut head = [0; 8];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = recvmsg(from, &mut [IoSliceMut::new(&mut head)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut streams = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            streams.extend(fds);
        }
    }
    let streams: [OwnedFd; 3] = streams.try_into().map_err(|_| odd())?;
    let number = |at: usize| Some(u32::from_be_bytes(head.get(at..at + 4)?.try_into().ok()?));
    let (Some(PROTO), Some(length), true) = (number(0), number(4), got.bytes == head.len()) else {
        return Err(odd());
    };
    let mut body = vec![0; usize::try_from(length.min(CAP)).unwrap_or(0)];
    let mut from = from;
    from.read_exact(&mut body)?;
    Ok((Plan::decode(&body).ok_or_else(odd)?, streams))
}

/// How the program ended, in two bytes.
pub(super) fn tell_end(to: &UnixStream, exit: RawExit) -> io::Result<()> {
    let (kind, value) = match exit {
        RawExit::Code(code) => (b'c', code),
        RawExit::Signal(signal) => (b's', signal),
    };
    let mut to = to;
    to.write_all(&[kind, u8::try_from(value).unwrap_or(u8::MAX)])
}

/// Waits for the end of the program; `None` if nobody tells it any more.
pub(super) fn hear_end(from: &UnixStream) -> Option<RawExit> {
    let mut said = [0; 2];
    let mut from = from;
    from.read_exact(&mut said).ok()?;
    match said {
        [b'c', code] => Some(RawExit::Code(code.into())),
        [b's', signal] => Some(RawExit::Signal(signal.into())),
        _ => None,
    }
}

/// Passes a signal on, in one byte.
pub(super) fn tell_signal(to: &UnixStream, number: i32) -> io::Result<()> {
    let mut to = to;
    to.write_all(&[u8::try_from(number).unwrap_or(0)])
}

/// Waits for a signal; `None` once the other side is gone.
pub(super) fn hear_signal(from: &UnixStream) -> Option<i32> {
    let mut said = [0; 1];
    let mut from = from;
    from.read_exact(&mut said).ok()?;
    Some(said.map(i32::from)[0])
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    fn plan() -> Plan {
        let odd = OsString::from_vec(vec![0xff, b'=', b'\n']);
        Plan {
            cwd: "/a b".into(),
            env: vec![("A".into(), odd), ("EMPTY".into(), OsString::new())],
            words: vec!["--mark".into(), "x y".into(), OsString::new()],
        }
    }

    #[test]
    fn a_plan_arrives_whole_with_its_streams_and_signals_and_the_end_pass() {
        let (outside, inside) = UnixStream::pair().unwrap();
        let (read, write) = rustix::pipe::pipe().unwrap();
        send(&outside, &plan(), [read.as_fd(), write.as_fd(), write.as_fd()]).unwrap();
        drop(write);
        let (found, [_, out, err]) = receive(&inside).unwrap();
        assert_eq!(found, plan());
        rustix::io::write(&out, b"hi").unwrap();
        drop((out, err));
        let mut said = String::new();
        std::fs::File::from(read).read_to_string(&mut said).unwrap();
        assert_eq!(said, "hi");
        tell_signal(&outside, 15).unwrap();
        assert_eq!(hear_signal(&inside), Some(15));
        for exit in [RawExit::Code(126), RawExit::Signal(9)] {
            tell_end(&inside, exit).unwrap();
            assert_eq!(hear_end(&outside), Some(exit));
        }
        drop(inside);
        assert_eq!(hear_end(&outside), None);
    }

    #[test]
    fn what_is_no_plan_is_refused() {
        for text in ["", "/", "/\0", "/\x001\0", "/\x001\0A\0"] {
            assert_eq!(Plan::decode(text.as_bytes()), None, "{text:?}");
        }
        let (outside, inside) = UnixStream::pair().unwrap();
        (&outside).write_all(b"nonsense").unwrap();
        assert!(receive(&inside).is_err());
    }
}
