//! A WebSocket through the proxy: bytes both ways, and the messages of the service metered beside the way.

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::frames::Frames;
use super::ledger::Entry;
use super::options::Limits;
use super::refusal::Refusal;
use super::upstream::Running;

/// What is read at once.
const PIECE: usize = 16 * 1024;

/// Two connections that are about to become one.
pub(super) struct Tunnel {
    pub(super) client: OnUpgrade,
    pub(super) service: OnUpgrade,
    /// Hands the connection to the service over.
    pub(super) running: Running,
    pub(super) entry: Entry,
}

impl Tunnel {
    /// Carries bytes until a side closes, a limit is reached or the budget is used up.
    pub(super) async fn run(self, limits: &Limits) {
        let Self { client, service, running, mut entry } = self;
        let end = Instant::now() + limits.whole;
        let both = timeout_at(end, async { tokio::try_join!(client, service) }).await;
        drop(running);
        let Ok(Ok((client, service))) = both else {
            entry.cut_off(&Refusal::Upstream(String::new()));
            return;
        };
        let (mut from_client, mut to_client) = split(TokioIo::new(client));
        let (mut from_service, mut to_service) = split(TokioIo::new(service));
        let (mut up, mut down) = (vec![0; PIECE], vec![0; PIECE]);
        let mut frames = Frames::default();
        loop {
            let idle = Instant::now() + limits.socket_idle;
            // Both reads are cancel-safe: what they took is in the buffer of the arm that won.
            tokio::select! {
                read = from_client.read(&mut up) => {
                    entry.count(read.as_ref().copied().unwrap_or(0));
                    if !carry(&up, read, &mut to_service, idle).await {
                        break;
                    }
                }
                read = from_service.read(&mut down) => {
                    let piece = read.as_ref().ok().and_then(|n| down.get(..*n)).unwrap_or_default();
                    // First: an answer that it completes is recorded with it.
                    entry.count(piece.len());
                    let affordable = meter(&mut frames, piece, &mut entry);
                    if !carry(&down, read, &mut to_client, idle).await {
                        break;
                    }
                    if let Err(refusal) = affordable {
                        entry.cut_off(&refusal);
                        return;
                    }
                }
                () = sleep_until(idle.min(end)) => {
                    entry.cut_off(&Refusal::Silent);
                    return;
                }
            }
        }
        entry.complete();
    }
}

/// Writes what was read; false at the end of either side.
async fn carry(
    buffer: &[u8],
    read: std::io::Result<usize>,
    to: &mut (impl AsyncWrite + Unpin),
    until: Instant,
) -> bool {
    let Some(piece) = read.ok().filter(|n| *n > 0).and_then(|n| buffer.get(..n)) else { return false };
    let written = async {
        to.write_all(piece).await?;
        to.flush().await
    };
    matches!(timeout_at(until, written).await, Ok(Ok(())))
}

/// Reads the messages in `piece`. An error if a complete answer used the budget up.
fn meter(frames: &mut Frames, piece: &[u8], entry: &mut Entry) -> Result<(), Refusal> {
    let mut affordable = Ok(());
    frames.feed(piece, |message| {
        if entry.seen.take_in(message) {
            affordable = entry.record_answer().and(affordable.clone());
        }
    });
    affordable
}
