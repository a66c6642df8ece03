//! Doors to single ports of this host (`local_ports`): bytes both ways, nothing read.

use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::reason::Reason;
use super::shared::{Caller, Facts, Shared};

/// Connecting may take so long.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connects a client to `port` of 127.0.0.1 until one side ends or the server stops, and logs the end.
pub(crate) async fn forward<S>(shared: &Shared, caller: Caller, port: u16, mut client: S)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut facts = known(port);
    let service = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
    let reason = match timeout(PATIENCE, service).await {
        Ok(Ok(mut service)) => {
            facts.addr = Some(Ipv4Addr::LOCALHOST.into());
            tokio::select! {
                _ended = copy_bidirectional(&mut client, &mut service) => {}
                () = shared.stopped() => {}
            }
            Reason::Ok
        }
        Ok(Err(_)) | Err(_) => Reason::DialFail,
    };
    shared.record(caller, facts, reason);
}

/// Logs a client for whom there is no room.
pub(crate) fn turn_away(shared: &Shared, caller: Caller, port: u16) {
    shared.record(caller, known(port), Reason::Limit);
}

fn known(port: u16) -> Facts {
    Facts { host: Some("localhost".to_owned()), port: Some(port), ..Facts::default() }
}
