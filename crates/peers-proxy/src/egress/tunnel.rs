//! An open tunnel, until it ends.

use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};

use super::limits::Limits;
use super::meter::Metered;
use super::reason::Reason;

/// Carries bytes both ways. `cut` ends the tunnel from outside. A side that closes its half leaves the other one open.
pub(crate) async fn carry<C, U>(
    mut client: Metered<C>,
    mut upstream: U,
    limits: &Limits,
    cut: impl Future<Output = Reason>,
) -> Reason
where
    C: AsyncRead + AsyncWrite + Unpin,
    U: AsyncRead + AsyncWrite + Unpin,
{
    let meter = client.meter.clone();
    tokio::select! {
        // A connection that breaks off is an end like any other.
        _ended = copy_bidirectional(&mut client, &mut upstream) => {
            if meter.is_over() { Reason::Quota } else { Reason::Ok }
        }
        () = meter.silence(limits.idle, limits.lifetime) => Reason::Timeout,
        reason = cut => reason,
    }
}
