//! One client, from its request to the end of its tunnel.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::denied::shown;
use super::dial::dial;
use super::head::{Head, parse_head};
use super::host::split_authority;
use super::meter::{Budget, Meter, Metered};
use super::reason::Reason;
use super::reply::{ESTABLISHED, Refusal};
use super::shared::{Caller, Facts, Shared};
use super::sni::{ClientHello, client_hello};
use super::tunnel;

/// A client may take so long for its head, and then for its TLS handshake.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves one client and logs its end.
pub(crate) async fn serve<S>(shared: &Shared, caller: Caller, mut client: S)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut facts = Facts::default();
    match talk(shared, &mut client, &mut facts).await {
        Ok(reason) | Err(End::Closed(reason)) => shared.record(caller, facts, reason),
        Err(End::Refused(refusal)) => {
            shared.record(caller, facts, refusal.reason);
            refusal.send(&mut client).await;
        }
        Err(End::Silent) => {}
    }
}

/// Answers a client for whom there is no room.
pub(crate) async fn turn_away<S>(shared: &Shared, caller: Caller, mut client: S)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    shared.record(caller, Facts::default(), Reason::Limit);
    busy().send(&mut client).await;
}

async fn talk<S>(shared: &Shared, client: &mut S, facts: &mut Facts) -> Result<Reason, End>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Opened { upstream, addr, host, port, meter, early } = handshake(shared, client, facts).await?;
    let client = Metered { inner: client, early, meter: meter.clone() };
    let cut = shared.cut(&host, port, addr.ip());
    let reason = tunnel::carry(client, upstream, &shared.limits, cut).await;
    (facts.up, facts.down) = (meter.up(), meter.down());
    Ok(reason)
}

/// From the first byte of a client until its tunnel is open. One of a limited number at a time.
async fn handshake<S>(shared: &Shared, client: &mut S, facts: &mut Facts) -> Result<Opened, End>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Ok(Ok(_permit)) = timeout(PATIENCE, shared.handshakes.acquire()).await else {
        return Err(busy().into());
    };
    let (authority, early) = timeout(PATIENCE, read_head(client)).await.unwrap_or_else(|_late| {
        let hint = "send the whole request head within 10 s";
        Err(Refusal::new(408, Reason::Timeout, "the request head is too slow", hint).into())
    })?;
    let mut opened = open(shared, &authority, facts).await?;
    if client.write_all(ESTABLISHED).await.is_err() {
        return Err(End::Closed(Reason::Ok));
    }
    opened.early = await_hello(client, early, &opened.host, facts).await.map_err(End::Closed)?;
    Ok(opened)
}

/// How a request ends that gets no tunnel.
enum End {
    /// Nothing was asked.
    Silent,
    /// After the answer that opens a tunnel.
    Closed(Reason),
    Refused(Refusal),
}

impl From<Refusal> for End {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Both ends of a tunnel.
struct Opened {
    upstream: TcpStream,
    addr: SocketAddr,
    host: String,
    port: u16,
    meter: Arc<Meter>,
    /// What the client sent so far.
    early: Vec<u8>,
}

async fn open(shared: &Shared, authority: &str, facts: &mut Facts) -> Result<Opened, Refusal> {
    let (host, port) = split_authority(authority)?;
    (facts.host, facts.port) = (Some(shown(host)), Some(port));
    let policy = shared.policy();
    let allowed = policy.decide(host, port)?;
    let host = allowed.host.to_string();
    facts.host = Some(host.clone());
    let spent = shared.spent(allowed.rule);
    let entry = allowed.rule.max_up_bytes();
    if spent.load(Ordering::Relaxed) >= entry {
        let text = format!(
            "the {entry} bytes that may be uploaded to `{}` in a run are used up",
            allowed.rule.name()
        );
        let hint = "the operator can raise `max_up_bytes` of the entry in the policy";
        return Err(Refusal::new(403, Reason::Quota, text, hint));
    }
    let (upstream, addr) = dial(&policy, &host, port).await?;
    facts.addr = Some(addr.ip());
    let budget = Budget { tunnel: shared.limits.tunnel_up, entry, spent };
    Ok(Opened { upstream, addr, host, port, meter: Arc::new(Meter::new(budget)), early: Vec::new() })
}

/// What stands behind `CONNECT`, and the bytes behind the head.
async fn read_head(client: &mut (impl AsyncRead + Unpin)) -> Result<(String, Vec<u8>), End> {
    let mut bytes = Vec::with_capacity(1024);
    loop {
        if let Head::Connect { authority, used } = parse_head(&bytes)? {
            return Ok((authority, bytes.split_off(used)));
        }
        // A client that breaks off has ended its request.
        if client.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            if bytes.is_empty() {
                return Err(End::Silent);
            }
            let hint = "send the whole request head";
            return Err(Refusal::new(400, Reason::Malformed, "the request ends within its head", hint).into());
        }
    }
}

/// The client's first TLS record and all that came with it. The record must name `host`, and come in time.
pub(super) async fn await_hello(
    client: &mut (impl AsyncRead + Unpin),
    early: Vec<u8>,
    host: &str,
    facts: &mut Facts,
) -> Result<Vec<u8>, Reason> {
    timeout(PATIENCE, read_hello(client, early, host, facts)).await.unwrap_or(Err(Reason::Timeout))
}

async fn read_hello(
    client: &mut (impl AsyncRead + Unpin),
    mut early: Vec<u8>,
    host: &str,
    facts: &mut Facts,
) -> Result<Vec<u8>, Reason> {
    early.reserve(2048);
    loop {
        match client_hello(&early) {
            ClientHello::Partial => {}
            ClientHello::Unreadable | ClientHello::Unnamed => return Err(Reason::SniMissing),
            ClientHello::Named(name) => {
                facts.sni = Some(shown(name));
                let same = name.eq_ignore_ascii_case(host);
                return if same { Ok(early) } else { Err(Reason::SniMismatch) };
            }
        }
        if client.read_buf(&mut early).await.unwrap_or(0) == 0 {
            // A tunnel that was opened in advance and never used is no offence.
            return Err(if early.is_empty() { Reason::Ok } else { Reason::SniMissing });
        }
    }
}

fn busy() -> Refusal {
    Refusal::new(503, Reason::Limit, "too many connections are open", "close some, or try again in a second")
}
