//! The loopback interface of a network namespace of our own.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};

/// Whether 127.0.0.1 can be reached. Where the interface is down it can be listened on all the same.
#[must_use]
pub fn is_up() -> bool {
    // Who listens need not accept for the connection to stand.
    let reached = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| TcpStream::connect(listener.local_addr()?));
    reached.is_ok()
}

/// Brings the interface `lo` up, by which it also gets 127.0.0.1. One that is up stays so.
///
/// # Errors
/// When this process does not administer its network namespace, or the system has no such thing.
#[cfg(target_os = "linux")]
pub fn bring_up() -> io::Result<()> {
    use rustix::net::netlink::SocketAddrNetlink;
    use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
    // A filter of system calls may refuse raw sockets; to netlink both kinds are one.
    let (family, kind) = (AddressFamily::NETLINK, SocketType::DGRAM);
    // Protocol 0 is `NETLINK_ROUTE`.
    let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    rustix::net::sendto(&socket, &request(), SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = [0; 256];
    let (length, _) = rustix::net::recv(&socket, &mut answer, RecvFlags::empty())?;
    acknowledged(answer.get(..length).unwrap_or(&answer))
}

/// Refuses: this system has no network namespaces.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn bring_up() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// `RTM_NEWLINK` with `IFF_UP` for interface 1, which is `lo` in every namespace (rtnetlink(7)).
#[cfg(any(target_os = "linux", test))]
fn request() -> [u8; 32] {
    const LENGTH: u32 = 32;
    const RTM_NEWLINK: u16 = 16;
    /// `NLM_F_REQUEST`, `NLM_F_ACK`.
    const FLAGS: u16 = 1 | 4;
    const LOOPBACK: u32 = 1;
    const IFF_UP: u32 = 1;
    let halves = |low: u16, high: u16| {
        let ([a, b], [c, d]) = (low.to_ne_bytes(), high.to_ne_bytes());
        [a, b, c, d]
    };
    let words = [
        LENGTH.to_ne_bytes(),
        halves(RTM_NEWLINK, FLAGS),
        // Number of the request, and the port that the kernel chooses.
        1_u32.to_ne_bytes(),
        [0; 4],
        // Family and type: any.
        [0; 4],
        LOOPBACK.to_ne_bytes(),
        // The flag and which flags are meant.
        IFF_UP.to_ne_bytes(),
        IFF_UP.to_ne_bytes(),
    ];
    let mut bytes = [0; 32];
    for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&word);
    }
    bytes
}

/// Reads `NLMSG_ERROR`, which with number 0 is the acknowledgement.
#[cfg(any(target_os = "linux", test))]
fn acknowledged(answer: &[u8]) -> io::Result<()> {
    const NLMSG_ERROR: u16 = 2;
    let kind = answer.get(4..6).and_then(|b| b.try_into().ok()).map(u16::from_ne_bytes);
    let errno = answer.get(16..20).and_then(|b| b.try_into().ok()).map(i32::from_ne_bytes);
    match (kind, errno) {
        (Some(NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(NLMSG_ERROR), Some(errno)) => Err(io::Error::from_raw_os_error(errno.saturating_neg())),
        _ => Err(io::Error::other("the kernel gave no answer about the loopback interface")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn here_the_interface_is_up() {
        assert!(is_up());
    }

    fn error(errno: i32) -> Vec<u8> {
        let head = [&36_u32.to_ne_bytes()[..], &2_u16.to_ne_bytes(), &[0; 10]].concat();
        [head, errno.to_ne_bytes().to_vec(), request().to_vec()].concat()
    }

    #[test]
    fn an_answer_is_an_acknowledgement_or_an_error() {
        assert!(acknowledged(&error(0)).is_ok());
        assert_eq!(acknowledged(&error(-1)).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        for cut in 0..20 {
            assert!(acknowledged(&error(0)[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn a_request_says_its_own_length() {
        let bytes = request();
        assert_eq!(u32::from_ne_bytes(bytes[..4].try_into().unwrap()), 32);
        assert_eq!(bytes.len(), 32);
    }
}
