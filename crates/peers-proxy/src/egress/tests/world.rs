//! A proxy with a stubbed name service, a host that echoes, and clients.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use peers_model::{PeerName, RunId};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::super::host::HostName;
use super::super::{
    AllowEntry, Handle, Limits, Listen, LogLine, Lookup, LookupFuture, Options, Policy, PolicyFile, Resolver,
    Server, Serves,
};
use crate::listen::Endpoint;

/// A name service that answers from a list; the last answer of a name is repeated.
#[derive(Debug, Default)]
pub(crate) struct Names {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    asked: AtomicUsize,
}

impl Names {
    /// Each name with its answers, one after the other; an answer is a list of addresses.
    pub(crate) fn new(answers: &[(&str, &[&str])]) -> Arc<Self> {
        let addrs = |answer: &&str| answer.split_whitespace().map(|addr| addr.parse().unwrap()).collect();
        let of = |(name, list): &(&str, &[&str])| ((*name).to_owned(), list.iter().map(addrs).collect());
        Arc::new(Self { answers: Mutex::new(answers.iter().map(of).collect()), asked: AtomicUsize::new(0) })
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Lookup for Names {
    fn lookup<'a>(&'a self, host: &'a HostName) -> LookupFuture<'a> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut answers = self.answers.lock().unwrap();
        let answer = answers
            .get_mut(host.as_str())
            .map(|list| if list.len() > 1 { list.remove(0) } else { list[0].clone() });
        Box::pin(async move { answer.ok_or_else(|| io::ErrorKind::NotFound.into()) })
    }
}

/// An entry that may lead to the loopback.
pub(crate) fn entry(host: &str, port: u16) -> AllowEntry {
    AllowEntry {
        host: Some(host.to_owned()),
        ports: Some(vec![port]),
        private_ok: vec!["127.0.0.1/32".to_owned()],
        ..AllowEntry::default()
    }
}

pub(crate) fn policy(allow: Vec<AllowEntry>) -> Policy {
    Policy::new(&PolicyFile { v: 1, allow }).unwrap()
}

pub(crate) fn run_id() -> RunId {
    RunId::new("0123456789abcdef").unwrap()
}

/// Limits that no test meets by accident.
pub(crate) fn wide() -> Limits {
    Limits { per_second: 1_000_000, burst: 100_000, ..Limits::default() }
}

/// A running proxy. Every name resolves to the loopback, where `host` echoes what it gets.
pub(crate) struct World {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) handle: Handle,
    pub(crate) host: Host,
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

impl World {
    /// Names that lead to the loopback.
    pub(crate) const NAMES: [&str; 3] = ["a.example", "b.example", "sub.c.example"];

    pub(crate) async fn new(limits: Limits, allow: impl FnOnce(u16) -> Vec<AllowEntry>) -> Self {
        let host = Host::new().await;
        let local = Self::NAMES.map(|name| (name, &["127.0.0.1"][..]));
        let names = [&local[..], &[("private.example", &["10.1.2.3"][..])]].concat();
        let policy = policy(allow(host.port)).resolving_with(Resolver::new(Names::new(&names)));
        let dir = tempfile::tempdir().unwrap();
        let listen =
            |name: &str, serves| Listen { at: Endpoint::Unix(dir.path().join("run").join(name)), serves };
        let claude = Some(PeerName::new("claude").unwrap());
        let server = Server::bind(Options {
            run: run_id(),
            listen: vec![
                listen("claude.sock", Serves::Proxy(claude)),
                listen("other.sock", Serves::Proxy(None)),
                listen("local.sock", Serves::LocalPort(host.port)),
            ],
            policy,
            log: dir.path().join("egress.log"),
            limits,
        })
        .unwrap();
        let (stop, stopped) = oneshot::channel();
        let handle = server.handle();
        let running = tokio::spawn(server.run(async { drop(stopped.await) }));
        Self { dir, handle, host, stop, running }
    }

    pub(crate) fn socket(&self, name: &str) -> PathBuf {
        self.dir.path().join("run").join(name)
    }

    pub(crate) async fn client(&self) -> Client<UnixStream> {
        Client(UnixStream::connect(self.socket("claude.sock")).await.unwrap())
    }

    /// A client with an open tunnel to `host`.
    pub(crate) async fn tunnel(&self, host: &str) -> Client<UnixStream> {
        let mut client = self.client().await;
        assert_eq!(client.connect(&format!("{host}:{}", self.host.port)).await.0, 200);
        client.send(&hello(Some(host))).await;
        assert_eq!(client.receive(hello(Some(host)).len()).await, hello(Some(host)));
        client
    }

    /// Stops the proxy and gives the text of its log.
    pub(crate) async fn stop(self) -> String {
        self.stop.send(()).unwrap();
        self.running.await.unwrap();
        std::fs::read_to_string(self.dir.path().join("egress.log")).unwrap()
    }

    /// Stops the proxy and gives its log, in the order of the connections.
    pub(crate) async fn lines(self) -> Vec<LogLine> {
        let mut lines: Vec<LogLine> =
            self.stop().await.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        lines.sort_by_key(|line| line.conn);
        lines
    }
}

/// A server that sends back what it gets, and counts.
pub(crate) struct Host {
    pub(crate) port: u16,
    connections: Arc<AtomicUsize>,
    bytes: Arc<AtomicUsize>,
}

impl Host {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (connections, bytes) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let host = Self { port, connections: connections.clone(), bytes: bytes.clone() };
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::Relaxed);
                let bytes = bytes.clone();
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.split();
                    // A reset is the end of a connection too.
                    if let Ok(count) = tokio::io::copy(&mut from, &mut to).await {
                        bytes.fetch_add(usize::try_from(count).unwrap(), Ordering::Relaxed);
                    }
                });
            }
        });
        host
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Bytes on connections that were closed.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

pub(crate) struct Client<S>(pub(crate) S);

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
    }

    pub(crate) async fn receive(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes).await.unwrap();
        bytes
    }

    /// What comes until the other side closes, or breaks off.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        drop(self.0.read_to_end(&mut bytes).await);
        bytes
    }

    /// Asks for a tunnel: the status and the head of the answer.
    pub(crate) async fn connect(&mut self, target: &str) -> (u16, String) {
        self.send(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").as_bytes()).await;
        self.answer().await
    }

    /// The status and the head of an answer.
    pub(crate) async fn answer(&mut self) -> (u16, String) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head)
    }
}

/// A `ClientHello` in one record, with this host name.
pub(crate) fn hello(name: Option<&str>) -> Vec<u8> {
    let extensions =
        name.map(|name| extension(0, &block(2, &[&[0][..], &block(2, name.as_bytes())].concat())));
    hello_with(
        &[extension(43, &[2, 3, 4]), extensions.unwrap_or_default(), extension(16, b"\0\x03\x02h2")].concat(),
    )
}

pub(crate) fn hello_with(extensions: &[u8]) -> Vec<u8> {
    let body = [
        &[3, 3][..],
        &[7; 32],
        &block(1, &[9; 32]),
        &block(2, &[0x13, 1, 0x13, 2]),
        &block(1, &[0]),
        &block(2, extensions),
    ]
    .concat();
    record(&[&[1][..], &block(3, &body)].concat())
}

pub(crate) fn record(content: &[u8]) -> Vec<u8> {
    [&[22, 3, 1][..], &block(2, content)].concat()
}

pub(crate) fn extension(kind: u16, body: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &block(2, body)].concat()
}

/// A length of `width` bytes, then the bytes.
pub(crate) fn block(width: usize, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
    [&length[4 - width..], bytes].concat()
}
