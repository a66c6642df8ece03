//! The streams of a peer: one reader each, and one writer for its prompt.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use peers_model::limits;
use peers_store::{artifacts, layout};
use peers_sys::clock;
use peers_sys::spawn::Child;
use peers_tools::{Meter, Omens, PatternScanner, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::child::Turn;
use super::launch::Launch;
use super::output::{Accounts, Output};
use super::tee::{Tee, Written};

/// What the files of standard output and standard error end in.
pub(super) const SUFFIXES: [&str; 2] = [".stream.jsonl", ".stream.err.jsonl"];

/// Bytes read at once.
const CHUNK: usize = 64 * 1024;

/// The readers of a child's output.
pub(super) struct Streams {
    pub(super) output: Rc<RefCell<Output>>,
    /// Something was read.
    pub(super) heard: Rc<Notify>,
    tasks: Vec<JoinHandle<()>>,
    /// Bytes when [`Streams::spoke`] was last asked.
    known: u64,
    pub(super) written: Vec<Written>,
}

impl Streams {
    /// Starts reading.
    pub(super) fn open(turn: &Turn, launched: &Launch, child: &mut Child) -> Self {
        let Turn { site, book, launch, progress, .. } = turn;
        let structured = launched.tool.structured(&launched.argv);
        let scanner = PatternScanner::new(book.patterns.clone(), structured);
        let cap = usize::try_from(book.config.health.buf_cap_bytes.get()).unwrap_or(usize::MAX);
        let decoder = launched.tool.decoder_for(&launched.argv);
        let meter = Meter::new(launched.tool.kind(), launched.asked.clone(), book.prices.clone());
        let idle = Duration::from_secs(book.config.health.idle_timeout_s.get().into());
        let accounts = Accounts::new(meter, launch.ceiling, Omens::of_patience(idle));
        let output = Output::new(decoder, accounts, scanner, &launched.rules, cap, progress.clone());
        let mut streams = Self {
            output: Rc::new(RefCell::new(output)),
            heard: Rc::default(),
            tasks: Vec::new(),
            known: 0,
            written: Vec::new(),
        };
        let pipes = [
            (Stream::Stdout, child.take_stdout().map(OwnedFd::from), SUFFIXES[0]),
            (Stream::Stderr, child.take_stderr().map(OwnedFd::from), SUFFIXES[1]),
        ];
        for (stream, pipe, suffix) in pipes {
            let (tee, written) = match &site.spec.peers {
                Some(peers) if book.config.observability.tee_stream => {
                    let name = artifacts::tick_file(launch.tick, launch.peer.as_str(), suffix);
                    Tee::to(peers, layout::peers::LOG_PEERS, name, limits::STREAM_TEE)
                }
                _ => Tee::off(),
            };
            streams.written.push(written);
            match pipe.map(pipe::Receiver::from_owned_fd) {
                Some(Ok(pipe)) => {
                    let reader =
                        read(pipe, stream, Rc::clone(&streams.output), Rc::clone(&streams.heard), tee);
                    streams.tasks.push(tokio::task::spawn_local(reader));
                }
                Some(Err(error)) => {
                    tracing::error!(%error, "a stream of a peer cannot be read");
                    streams.output.borrow_mut().close(stream);
                }
                None => {
                    streams.output.borrow_mut().close(stream);
                }
            }
        }
        streams
    }

    /// Starts to write the prompt, beside the readers: a child may talk before it listens.
    pub(super) fn prompt(&mut self, text: String, pipe: OwnedFd) {
        self.tasks.push(tokio::task::spawn_local(write_input(text, pipe)));
    }

    /// Whether anything was printed since this was last asked.
    pub(super) fn spoke(&mut self) -> bool {
        let taken = self.output.borrow().taken();
        std::mem::replace(&mut self.known, taken) != taken
    }

    /// Whoever still holds a pipe writes to nobody from now on.
    pub(super) fn stop(&mut self) {
        for task in self.tasks.drain(..) {
            task.abort();
        }
    }
}

async fn read(
    mut pipe: pipe::Receiver,
    stream: Stream,
    output: Rc<RefCell<Output>>,
    heard: Rc<Notify>,
    mut tee: Tee,
) {
    let mut buffer = vec![0; CHUNK];
    loop {
        let n = match pipe.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(n) => n,
        };
        let chunk = buffer.get(..n).unwrap_or_default();
        let clean = output.borrow_mut().take(stream, chunk, clock::mono());
        // Before the disk is asked for anything: silence is measured without it.
        heard.notify_one();
        tee.write(clean).await;
    }
    let rest = output.borrow_mut().close(stream);
    heard.notify_one();
    tee.write(rest).await;
}

/// A child that does not read its input, or not to the end, is no error.
pub(super) async fn write_input(text: String, pipe: OwnedFd) {
    let written = match pipe::Sender::from_owned_fd(pipe) {
        Ok(mut pipe) => pipe.write_all(text.as_bytes()).await,
        Err(error) => Err(error),
    };
    if let Err(error) = written {
        tracing::debug!(%error, "the input of a child was not read to its end");
    }
}
