//! A proxy with one peer, and the peer's side of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use hyper::StatusCode;
use peers_model::{PeerName, Timestamp};
use peers_proxy::Endpoint;
use peers_proxy::auth::{
    Bearer, Clock, Credential, Limits, Oauth, Options, Peer, PlainHttp, Provider, Server, Service,
    ServiceUrl, tls,
};
use peers_proxy::egress::{Policy, PolicyFile};
use peers_sys::env::Env;
use peers_sys::{AppendLog, SafeDir};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::fake::Fake;

pub(crate) const BEARER: &str = "run-bearer-0123456789abcdef0123456789abcdef";
pub(crate) const KEY: &str = "sk-ant-api03-the-key-of-the-operator";
pub(crate) const ROOT: &[u8] = include_bytes!("pki/root.der");

/// A proxy and its directory.
pub(crate) struct World {
    pub(crate) tmp: tempfile::TempDir,
    pub(crate) clock: Arc<AtomicI64>,
    stop: Option<oneshot::Sender<()>>,
    running: Option<JoinHandle<()>>,
}

/// What is different in one test.
pub(crate) struct Setting {
    pub(crate) limits: Limits,
    pub(crate) token_cap: Option<u64>,
    pub(crate) policy: Policy,
}

impl Setting {
    pub(crate) fn new() -> Self {
        let policy = Policy::new(&PolicyFile { v: 1, allow: Vec::new() }).unwrap();
        Self { limits: Limits::default(), token_cap: None, policy }
    }
}

/// The service at `fake`, with a key.
pub(crate) fn with_key(provider: Provider, fake: &Fake) -> Service {
    let names = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"];
    let env = Env::from_pairs(names.map(|name| (name, KEY)).into_iter().chain([("HOME", "/nonexistent")]));
    let credential = Credential::find(provider, None, &env, &Oauth::new(provider, &env)).unwrap();
    at(&fake.url(), Service::new(provider, credential))
}

/// The service at `fake`, with the login in `file`, which is renewed at `path` of the same fake.
pub(crate) fn with_login(provider: Provider, fake: &Fake, file: &Path, path: &str) -> Service {
    let urls = vec![format!("{}{path}", fake.url())];
    with_oauth(provider, fake, file, urls)
}

pub(crate) fn with_oauth(provider: Provider, fake: &Fake, file: &Path, urls: Vec<String>) -> Service {
    let oauth = Oauth { urls, client_id: "client".to_owned(), plain: PlainHttp::Loopback };
    let env = Env::from_pairs([("HOME", "/nonexistent")]);
    let credential = Credential::find(provider, Some(file), &env, &oauth).unwrap();
    at(&fake.url(), Service::new(provider, credential))
}

pub(crate) fn at(url: &str, service: Service) -> Service {
    Service { url: ServiceUrl::parse(url, PlainHttp::Loopback).unwrap(), ..service }
}

/// Options for one peer on a unix socket below `dir`.
pub(crate) fn options(dir: &Path, services: Vec<Service>, setting: Setting, clock: Clock) -> Options {
    let Setting { limits, token_cap, policy } = setting;
    Options {
        run: "0123456789abcdef".parse().unwrap(),
        peers: vec![Peer {
            name: PeerName::new("claude").unwrap(),
            listen: Endpoint::Unix(dir.join("run/auth.sock")),
            bearer: Bearer::new(BEARER.into()).unwrap(),
            services,
        }],
        policy,
        tls: tls(vec![ROOT.into()]).unwrap(),
        limits,
        token_cap,
        log: AppendLog::open(&SafeDir::open_root(dir).unwrap(), "usage.jsonl").unwrap(),
        clock,
    }
}

/// A clock that stands still.
pub(crate) fn frozen() -> Clock {
    Arc::new(|| Timestamp::from_millis(1_000))
}

impl World {
    pub(crate) async fn start(services: Vec<Service>) -> Self {
        Self::start_with(services, Setting::new()).await
    }

    pub(crate) async fn start_with(services: Vec<Service>, setting: Setting) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), services, setting).await
    }

    /// In a directory that holds something already.
    pub(crate) async fn start_in(tmp: tempfile::TempDir, services: Vec<Service>, setting: Setting) -> Self {
        let noon = Timestamp::parse("2026-03-01T12:00:00Z").unwrap();
        let clock = Arc::new(AtomicI64::new(noon.as_millis()));
        let mut world = Self { tmp, clock, stop: None, running: None };
        world.run(services, setting).await;
        world
    }

    async fn run(&mut self, services: Vec<Service>, setting: Setting) {
        let now = Arc::clone(&self.clock);
        let clock = Arc::new(move || Timestamp::from_millis(now.load(Ordering::Relaxed)));
        let server = Server::bind(options(self.tmp.path(), services, setting, clock)).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        self.stop = Some(stop);
        self.running = Some(tokio::spawn(server.run(async move {
            let _stopped = stopped.await;
        })));
        // It begins to serve.
        tokio::task::yield_now().await;
    }

    /// Ends the proxy and waits until it has ended.
    pub(crate) async fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(running) = self.running.take() {
            running.await.unwrap();
        }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.tmp.path().join("run/auth.sock")
    }

    /// Moves the wall clock.
    pub(crate) fn pass(&self, by: Duration) {
        self.clock.fetch_add(i64::try_from(by.as_millis()).unwrap(), Ordering::Relaxed);
    }

    pub(crate) async fn connect(&self) -> UnixStream {
        UnixStream::connect(self.socket()).await.unwrap()
    }

    /// Sends a text and reads until the proxy closes.
    pub(crate) async fn raw(&self, text: &[u8]) -> Told {
        let mut stream = self.connect().await;
        // A proxy that refuses early may not read all of it.
        let _sent = stream.write_all(text).await;
        Told::read(stream).await
    }

    /// A request with the bearer of the run.
    pub(crate) async fn ask(&self, line: &str, headers: &str, body: &str) -> Told {
        self.raw(request(line, headers, body).as_bytes()).await
    }

    /// A usual request to the Messages API.
    pub(crate) async fn message(&self) -> Told {
        self.ask("POST /anthropic/v1/messages", "", "{\"model\":\"m\"}").await
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.tmp.path().join("usage.jsonl")).unwrap()
    }

    pub(crate) fn records(&self) -> Vec<Value> {
        self.log().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What the log says of reasons, in order.
    pub(crate) fn reasons(&self) -> Vec<String> {
        self.records().iter().map(|record| record["reason"].as_str().unwrap_or("ok").to_owned()).collect()
    }

    /// Waits until the log has so many records.
    pub(crate) async fn recorded(&self, count: usize) -> Vec<Value> {
        while self.records().len() < count {
            tokio::task::yield_now().await;
        }
        self.records()
    }
}

/// The text of a request with the bearer of the run.
pub(crate) fn request(line: &str, headers: &str, body: &str) -> String {
    format!(
        "{line} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAuthorization: Bearer {BEARER}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
}

/// An answer of the proxy.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) status: StatusCode,
    pub(crate) head: String,
    pub(crate) body: String,
    /// Whether it ended as its head announced.
    pub(crate) whole: bool,
}

impl Told {
    pub(crate) async fn read(mut stream: impl tokio::io::AsyncRead + Unpin) -> Self {
        let mut bytes = Vec::new();
        let _ended = stream.read_to_end(&mut bytes).await;
        Self::parse(&bytes)
    }

    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (head, rest) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let head = head.to_ascii_lowercase();
        let (body, whole) = if head.contains("transfer-encoding: chunked") {
            unchunk(rest)
        } else {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            (rest.to_owned(), length.is_none_or(|length| length.parse() == Ok(rest.len())))
        };
        Self { status, head, body, whole }
    }

    /// The word for what was wrong.
    pub(crate) fn code(&self) -> String {
        let value: Value = serde_json::from_str(&self.body).unwrap_or_default();
        value["error"]["type"].as_str().unwrap_or_default().to_owned()
    }
}

fn unchunk(mut text: &str) -> (String, bool) {
    let mut body = String::new();
    loop {
        let Some((length, rest)) = text.split_once("\r\n") else { return (body, false) };
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            return (body, rest == "\r\n");
        }
        let Some(piece) = rest.get(..length) else { return (body + rest, false) };
        body += piece;
        text = rest.get(length + 2..).unwrap_or_default();
    }
}

/// Reads until `needle` has come.
pub(crate) async fn read_until(stream: &mut (impl tokio::io::AsyncRead + Unpin), needle: &str) -> String {
    let mut all = Vec::new();
    loop {
        assert!(stream.read_buf(&mut all).await.unwrap() > 0, "ended before `{needle}`");
        let text = String::from_utf8_lossy(&all).into_owned();
        if text.contains(needle) {
            return text;
        }
    }
}
