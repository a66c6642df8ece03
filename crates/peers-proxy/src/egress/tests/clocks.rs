//! Time limits, on a clock that jumps.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, DuplexStream, duplex};
use tokio::time::{Instant, advance, sleep};

use super::super::connection::{await_hello, serve};
use super::super::log::Log;
use super::super::meter::{Budget, Meter, Metered};
use super::super::shared::{Facts, Shared};
use super::super::tunnel::carry;
use super::super::{Limits, LogLine, Reason};
use super::world::{Client, hello, policy, run_id, wide};

struct Desk {
    dir: tempfile::TempDir,
    shared: Arc<Shared>,
}

impl Desk {
    fn new(limits: Limits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::open(&dir.path().join("egress.log"), run_id()).unwrap();
        let shared = Arc::new(Shared::new(run_id(), policy(Vec::new()), limits, log));
        Self { dir, shared }
    }

    fn client(&self) -> Client<DuplexStream> {
        let (ours, theirs) = duplex(64 * 1024);
        let shared = self.shared.clone();
        tokio::spawn(async move { serve(&shared, shared.caller(None), theirs).await });
        Client(ours)
    }

    fn lines(&self) -> Vec<LogLine> {
        let text = std::fs::read_to_string(self.dir.path().join("egress.log")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_that_takes_more_than_ten_seconds_is_answered_with_408() {
    let desk = Desk::new(wide());
    let mut client = desk.client();
    tokio::task::yield_now().await;
    let began = Instant::now();
    client.send(b"CONNECT a.example:443 HTTP/1.1\r\n").await;
    for _ in 0..9 {
        advance(Duration::from_secs(1)).await;
        client.send(b"X: y\r\n").await;
    }
    assert_eq!(client.answer().await.0, 408);
    assert_eq!(began.elapsed().as_secs(), 10);
    let lines = desk.lines();
    assert_eq!((lines.len(), lines[0].reason, lines[0].ms / 1000), (1, Reason::Timeout, 10));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_without_a_word_is_not_logged_and_one_that_breaks_off_is() {
    let desk = Desk::new(wide());
    let mut silent = desk.client();
    silent.0.shutdown().await.unwrap();
    assert_eq!(silent.rest().await, b"");
    assert!(desk.lines().is_empty());
    let mut broken = desk.client();
    broken.send(b"CONNECT a.exa").await;
    broken.0.shutdown().await.unwrap();
    assert_eq!(broken.answer().await.0, 400);
    assert_eq!(desk.lines()[0].reason, Reason::Malformed);
}

#[tokio::test(start_paused = true)]
async fn handshakes_beyond_the_limit_wait_for_their_turn() {
    let desk = Desk::new(Limits { handshakes: 2, ..wide() });
    let (mut first, _second) = (desk.client(), desk.client());
    tokio::task::yield_now().await;
    let mut third = desk.client();
    third.send(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n").await;
    sleep(Duration::from_secs(3)).await;
    assert!(desk.lines().is_empty());
    first.send(b"CONNECT b.example:443 HTTP/1.1\r\n\r\n").await;
    assert_eq!(third.answer().await.0, 403);
    let hosts: Vec<_> = desk.lines().into_iter().map(|line| line.host.unwrap()).collect();
    assert_eq!(hosts, ["b.example", "a.example"]);
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_gets_no_turn_in_ten_seconds_is_answered_with_503() {
    let desk = Desk::new(Limits { handshakes: 0, ..wide() });
    let began = Instant::now();
    let (status, head) = desk.client().answer().await;
    assert_eq!((status, head.contains("Retry-After: 1\r\n"), began.elapsed().as_secs()), (503, true, 10));
    assert_eq!(desk.lines()[0].reason, Reason::Limit);
}

#[tokio::test(start_paused = true)]
async fn a_tls_handshake_that_takes_more_than_ten_seconds_ends_the_connection() {
    let (mut client, mut proxy) = duplex(64);
    let began = Instant::now();
    client.write_all(&hello(Some("a.example"))[..50]).await.unwrap();
    let ended = await_hello(&mut proxy, Vec::new(), "a.example", &mut Facts::default()).await;
    assert_eq!((ended, began.elapsed().as_secs()), (Err(Reason::Timeout), 10));
}

/// How a tunnel ends, and its bytes up and down.
type Ended = tokio::task::JoinHandle<(Reason, u64, u64)>;

/// A tunnel between two pipes: the client, the host, and its end.
fn tunnel(limits: &Limits, entry: u64) -> (Client<DuplexStream>, Client<DuplexStream>, Ended) {
    let (client, inner) = duplex(64 * 1024);
    let (upstream, host) = duplex(64 * 1024);
    let budget = Budget { tunnel: limits.tunnel_up, entry, spent: Arc::default() };
    let meter = Arc::new(Meter::new(budget));
    let limits = limits.clone();
    let ended = tokio::spawn(async move {
        let inner = Metered { inner, early: b"early".to_vec(), meter: meter.clone() };
        let reason = carry(inner, upstream, &limits, std::future::pending()).await;
        (reason, meter.up(), meter.down())
    });
    (Client(client), Client(host), ended)
}

#[tokio::test(start_paused = true)]
async fn a_tunnel_is_closed_ten_minutes_after_its_last_byte() {
    let (mut client, mut host, ended) = tunnel(&wide(), u64::MAX);
    let began = Instant::now();
    assert_eq!(host.receive(5).await, b"early");
    for _ in 0..3 {
        advance(Duration::from_secs(599)).await;
        host.send(b"x").await;
        assert_eq!(client.receive(1).await, b"x");
    }
    assert_eq!(ended.await.unwrap(), (Reason::Timeout, 5, 3));
    assert_eq!(began.elapsed().as_secs(), 3 * 599 + 600);
    assert_eq!(client.rest().await, b"");
}

#[tokio::test(start_paused = true)]
async fn a_tunnel_is_closed_after_four_hours() {
    let (mut client, mut host, ended) = tunnel(&wide(), u64::MAX);
    let began = Instant::now();
    assert_eq!(host.receive(5).await, b"early");
    let talk = async {
        loop {
            sleep(Duration::from_secs(59)).await;
            client.send(b"x").await;
            host.receive(1).await;
        }
    };
    let ended = tokio::select! {
        ended = ended => ended.unwrap(),
        () = talk => unreachable!(),
    };
    assert_eq!((ended.0, began.elapsed().as_secs()), (Reason::Timeout, 4 * 3600));
}

#[tokio::test(start_paused = true)]
async fn a_side_that_closes_its_half_leaves_the_other_one_open() {
    let (mut client, mut host, ended) = tunnel(&wide(), u64::MAX);
    client.send(b" and late").await;
    client.0.shutdown().await.unwrap();
    assert_eq!(host.rest().await, b"early and late");
    host.send(b"answer").await;
    host.0.shutdown().await.unwrap();
    assert_eq!(client.rest().await, b"answer");
    assert_eq!(ended.await.unwrap(), (Reason::Ok, 14, 6));
}

#[tokio::test(start_paused = true)]
async fn an_upload_ends_at_the_budget_of_the_tunnel_and_of_the_entry() {
    for (tunnel_up, entry) in [(1000, u64::MAX), (u64::MAX, 1000)] {
        let (mut client, mut host, ended) = tunnel(&Limits { tunnel_up, ..wide() }, entry);
        client.send(&[b'x'; 995]).await;
        assert_eq!(host.receive(1000).await.len(), 1000);
        client.send(b"y").await;
        assert_eq!(host.rest().await, b"", "nothing beyond the budget is passed on");
        assert_eq!(ended.await.unwrap(), (Reason::Quota, 1000, 0));
    }
}
