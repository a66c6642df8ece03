//! Connecting to a host that the policy allows, at an address that was checked.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::denied::Denied;
use super::policy::{Allowed, Policy};
use super::ranges::is_special;

/// All attempts together may take so long.
const PATIENCE: Duration = Duration::from_secs(10);
/// The next address is tried as well when the ones before have not answered after so long.
const STAGGER: Duration = Duration::from_millis(250);
/// Addresses of a name that are tried.
const TRIED: usize = 8;

/// Connects to `host`, if `policy` allows it, and gives the address that was taken.
///
/// The name is resolved once. If any of its addresses is private, special or one of this host, and the rule does not
/// list it in `private_ok`, the whole request is denied: that is what a rebinding attack looks like. The connection
/// goes to an address of that same answer.
///
/// # Errors
/// [`Denied`]; nothing was sent to the host then.
pub async fn dial(policy: &Policy, host: &str, port: u16) -> Result<(TcpStream, SocketAddr), Denied> {
    let allowed = policy.decide(host, port)?;
    let addrs = addresses(policy, &allowed).await?;
    let addrs = taken_in_turns(&addrs).into_iter().take(TRIED).map(|addr| SocketAddr::new(addr, port));
    let (stream, addr) = race(addrs.collect(), TcpStream::connect).await.map_err(|source| Denied::Dial {
        host: allowed.host.to_string(),
        port,
        source,
    })?;
    // Only latency is lost without it.
    let _delayed = stream.set_nodelay(true);
    Ok((stream, addr))
}

/// All addresses of a host, none of them forbidden.
pub(super) async fn addresses(policy: &Policy, allowed: &Allowed<'_>) -> Result<Vec<IpAddr>, Denied> {
    let Allowed { host, .. } = allowed;
    let answers = policy
        .resolver()
        .resolve(host)
        .await
        .map_err(|source| Denied::Dns { host: host.to_string(), source })?;
    let addrs: Vec<IpAddr> = answers.iter().map(IpAddr::to_canonical).collect();
    addrs.iter().try_for_each(|addr| check_address(allowed, *addr))?;
    Ok(addrs)
}

/// Whether `policy` allows a connection to `host` at this address.
pub(crate) fn check(policy: &Policy, host: &str, port: u16, addr: IpAddr) -> Result<(), Denied> {
    check_address(&policy.decide(host, port)?, addr)
}

fn check_address(allowed: &Allowed<'_>, addr: IpAddr) -> Result<(), Denied> {
    if (is_special(addr) || is_own(addr)) && !allowed.rule.is_private_ok(addr) {
        return Err(Denied::PrivateAddr { host: allowed.host.to_string(), addr });
    }
    Ok(())
}

/// Whether `addr` belongs to an interface of this host: the system would then also send from it. Nothing is sent.
pub(super) fn is_own(addr: IpAddr) -> bool {
    let any: IpAddr =
        if addr.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let source = || {
        let socket = UdpSocket::bind((any, 0))?;
        // The port is never used.
        socket.connect((addr, 9))?;
        socket.local_addr()
    };
    // Without a route there will be no connection either.
    source().is_ok_and(|source| source.ip() == addr)
}

/// One address of the family that came first, one of the other, and so on.
pub(super) fn taken_in_turns(addrs: &[IpAddr]) -> Vec<IpAddr> {
    let first_is_v4 = addrs.first().is_some_and(IpAddr::is_ipv4);
    let (first, second): (Vec<IpAddr>, Vec<IpAddr>) =
        addrs.iter().partition(|addr| addr.is_ipv4() == first_is_v4);
    let mut turns = Vec::with_capacity(addrs.len());
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    while turns.len() < addrs.len() {
        turns.extend(first.next());
        turns.extend(second.next());
    }
    turns
}

/// The first connection among attempts that start one after the other.
pub(super) async fn race<S, F>(
    addrs: Vec<SocketAddr>,
    connect: impl Fn(SocketAddr) -> F,
) -> io::Result<(S, SocketAddr)>
where
    S: Send + 'static,
    F: Future<Output = io::Result<S>> + Send + 'static,
{
    let mut rest = addrs.into_iter();
    let mut attempts = JoinSet::new();
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    let all = async {
        loop {
            if let Some(addr) = rest.next() {
                let attempt = connect(addr);
                attempts.spawn(async move { attempt.await.map(|stream| (stream, addr)) });
            }
            // Both arms are cancel-safe: an attempt that ended stays in the set until it is taken.
            tokio::select! {
                ended = attempts.join_next() => match ended {
                    Some(Ok(Ok(connected))) => return Ok(connected),
                    Some(Ok(Err(error))) => last = error,
                    Some(Err(broken)) => last = io::Error::other(broken),
                    None => return Err(last),
                },
                () = sleep(STAGGER), if rest.len() > 0 => {}
            }
        }
    };
    timeout(PATIENCE, all).await.unwrap_or_else(|_late| Err(io::ErrorKind::TimedOut.into()))
}
