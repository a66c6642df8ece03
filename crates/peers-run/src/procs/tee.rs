//! The live copy of a stream on disk.
//!
//! A disk that hangs must not look like a silent agent, so the file is opened and written by a
//! thread of its own behind a bounded queue. The first problem ends the copy with one warning.

use std::io::Write;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use peers_sys::SafeDir;
use peers_sys::dir::WriteMode;
use tokio::sync::oneshot;

/// Chunks that may wait for the disk.
const QUEUE: usize = 64;
/// So long a full queue is waited for, once.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(10);

/// The live copy of one stream.
#[derive(Debug)]
pub(super) struct Tee {
    queue: Option<SyncSender<Vec<u8>>>,
    left: u64,
    name: String,
}

/// Resolves when everything is written that will be.
#[derive(Debug)]
pub(super) struct Written(Option<oneshot::Receiver<()>>);

impl Tee {
    /// No copy.
    pub(super) fn off() -> (Self, Written) {
        (Self { queue: None, left: 0, name: String::new() }, Written(None))
    }

    /// A copy of at most `cap` bytes to the file `name` below `log/peers` of `peers`. The file is
    /// made when the first byte comes.
    pub(super) fn to(peers: &SafeDir, dir: &'static str, name: String, cap: u64) -> (Self, Written) {
        let peers = match peers.try_clone() {
            Ok(peers) => peers,
            Err(error) => return gave_up(&name, &error),
        };
        let (queue, chunks) = sync_channel::<Vec<u8>>(QUEUE);
        let (done, written) = oneshot::channel();
        let file = name.clone();
        let body = move || {
            let Ok(first) = chunks.recv() else { return };
            let opened =
                peers.create_path(dir).and_then(|dir| dir.create_file_for_write(&file, WriteMode::Append));
            let mut out = match opened {
                Ok(out) => out,
                Err(error) => {
                    warn(&file, &error);
                    return;
                }
            };
            for chunk in std::iter::once(first).chain(chunks) {
                if let Err(error) = out.write_all(&chunk) {
                    warn(&file, &error);
                    return;
                }
            }
            // Nobody may be left to tell.
            let _told = done.send(());
        };
        match thread::Builder::new().name("peers-tee".into()).spawn(body) {
            Ok(_detached) => (Self { queue: Some(queue), left: cap, name }, Written(Some(written))),
            Err(error) => gave_up(&name, &error),
        }
    }

    /// Copies the next bytes. Waits for the disk a little when it is behind, once; then the copy ends.
    pub(super) async fn write(&mut self, mut chunk: Vec<u8>) {
        if chunk.is_empty() || self.queue.is_none() {
            return;
        }
        let room = usize::try_from(self.left).unwrap_or(usize::MAX);
        chunk.truncate(room);
        self.left = self.left.saturating_sub(u64::try_from(chunk.len()).unwrap_or(u64::MAX));
        let full = self.left == 0;
        if full {
            chunk.extend_from_slice(b"\n[peers: the live copy ends here, it has reached its limit]\n");
        }
        self.send(chunk).await;
        if full {
            self.queue = None;
        }
    }

    async fn send(&mut self, mut chunk: Vec<u8>) {
        let mut waited = Duration::ZERO;
        let Some(queue) = self.queue.take() else { return };
        loop {
            match queue.try_send(chunk) {
                Ok(()) => break,
                Err(TrySendError::Full(back)) if waited < PATIENCE => chunk = back,
                Err(TrySendError::Full(_)) => {
                    tracing::warn!(
                        file = self.name,
                        "the disk does not keep up; the live copy of this output ends here"
                    );
                    return;
                }
                // The writer has said why.
                Err(TrySendError::Disconnected(_)) => return,
            }
            tokio::time::sleep(PAUSE).await;
            waited += PAUSE;
        }
        self.queue = Some(queue);
    }
}

impl Written {
    /// Waits at most `limit`.
    pub(super) async fn within(self, limit: Duration) {
        if let Some(written) = self.0 {
            // Either way nothing more can be done about the copy.
            let _in_time = tokio::time::timeout(limit, written).await;
        }
    }
}

fn gave_up(name: &str, error: &dyn std::error::Error) -> (Tee, Written) {
    warn(name, error);
    Tee::off()
}

fn warn(file: &str, error: &dyn std::error::Error) {
    let cause = error.source().map(ToString::to_string).unwrap_or_default();
    tracing::warn!(file, %error, cause, "no live copy of this output");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
    }

    #[test]
    fn everything_arrives_in_order_up_to_the_cap() {
        let dir = tempfile::tempdir().unwrap();
        let peers = SafeDir::open_root(dir.path()).unwrap();
        run(async {
            let (mut tee, written) = Tee::to(&peers, "log/peers", "a.jsonl".into(), 10);
            for chunk in ["abcd", "", "efgh", "ijkl", "mnop"] {
                tee.write(chunk.into()).await;
            }
            drop(tee);
            written.within(Duration::from_secs(30)).await;
        });
        let text = std::fs::read_to_string(dir.path().join("log/peers/a.jsonl")).unwrap();
        assert!(text.starts_with("abcdefghij\n[peers: the live copy ends here"), "{text}");
    }

    #[test]
    fn a_silent_stream_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let peers = SafeDir::open_root(dir.path()).unwrap();
        run(async {
            let (tee, written) = Tee::to(&peers, "log/peers", "a.jsonl".into(), 10);
            drop(tee);
            written.within(Duration::from_secs(30)).await;
        });
        assert!(!dir.path().join("log").exists());
    }

    #[test]
    fn a_copy_that_cannot_be_made_costs_nothing_but_the_copy() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("log"), "in the way").unwrap();
        let peers = SafeDir::open_root(dir.path()).unwrap();
        run(async {
            let (mut tee, written) = Tee::to(&peers, "log/peers", "a.jsonl".into(), 1 << 20);
            for _ in 0..1000 {
                tee.write(b"flood".to_vec()).await;
            }
            written.within(Duration::from_secs(30)).await;
            assert!(tee.queue.is_none(), "the writer has gone");
        });
    }
}
