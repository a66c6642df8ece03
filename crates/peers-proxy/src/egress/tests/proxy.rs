//! The whole proxy, over its sockets.

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpStream, UnixStream};

use super::super::{
    AllowEntry, Limits, Listen, LogLine, Options, Reason, Server, Serves, Suppressed, Verdict,
};
use super::world::{Client, World, entry, hello, policy, run_id, wide};
use crate::listen::{BindError, Endpoint};

fn all(port: u16) -> Vec<AllowEntry> {
    World::NAMES.iter().map(|name| entry(name, port)).collect()
}

#[tokio::test]
async fn a_tunnel_carries_bytes_both_ways_and_is_logged_at_its_end() {
    let world = World::new(wide(), all).await;
    let port = world.host.port;
    let mut client = world.tunnel("a.example").await;
    client.send(b"hello").await;
    assert_eq!(client.receive(5).await, b"hello");
    client.0.shutdown().await.unwrap();
    assert_eq!(client.rest().await, b"");
    let lines = world.lines().await;
    let [LogLine { run, conn, peer, verdict, reason, host, port: logged, addr, sni, up, down, .. }] =
        &lines[..]
    else {
        panic!("{lines:?}")
    };
    let bytes = u64::try_from(hello(Some("a.example")).len()).unwrap() + 5;
    assert_eq!((run, *conn, peer.as_ref().unwrap().as_str()), (&run_id(), 1, "claude"));
    assert_eq!((*verdict, *reason), (Verdict::Allow, Reason::Ok));
    assert_eq!(
        (host.as_deref(), *logged, sni.as_deref()),
        (Some("a.example"), Some(port), Some("a.example"))
    );
    assert_eq!((addr.unwrap().to_string().as_str(), *up, *down), ("127.0.0.1", bytes, bytes));
}

#[tokio::test]
async fn every_request_gets_the_answer_and_the_line_that_belong_to_it() {
    let world = World::new(wide(), |port| {
        let mut allow = all(port);
        allow.push(entry("private.example", port));
        allow.push(entry("nowhere.example", port));
        allow
    })
    .await;
    let port = world.host.port;
    let connect = |host: &str, port: u16| format!("CONNECT {host}:{port} HTTP/1.1\r\n\r\n");
    let table = [
        (connect("pypi.org", 443), 403, Reason::NotListed, "add `pypi.org` to `peers.allow`"),
        (connect("a.example", 22), 403, Reason::Port, "port 22"),
        (connect("127.0.0.1", port), 403, Reason::IpLiteral, "is an IP address"),
        (connect("[::1]", port), 403, Reason::IpLiteral, "is an IP address"),
        (connect("private.example", port), 403, Reason::PrivateAddr, "10.1.2.3"),
        (connect("nowhere.example", port), 502, Reason::DnsFail, "resolve `nowhere.example`"),
        (connect("a@b.example", port), 400, Reason::Malformed, "is not a host name"),
        ("GET http://a.example/ HTTP/1.1\r\n\r\n".to_owned(), 403, Reason::Method, "plain HTTP"),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 405, Reason::Method, "only `CONNECT`"),
        ("\r\n\r\nnonsense\r\n\r\n".to_owned(), 400, Reason::Malformed, "cannot be read"),
    ];
    let connections = world.host.connections();
    for (request, status, _, says) in &table {
        let mut client = world.client().await;
        client.send(request.as_bytes()).await;
        let (answered, head) = client.answer().await;
        let body = String::from_utf8(client.rest().await).unwrap();
        assert_eq!(answered, *status, "{request}");
        assert!(head.contains("Proxy-Agent: peers\r\n") && !head.contains("Via"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
        assert!(body.contains(says) && body.contains("\nhint: "), "{body}");
    }
    assert_eq!(world.host.connections(), connections);
    let reasons: Vec<Reason> = world.lines().await.iter().map(|line| line.reason).collect();
    assert_eq!(reasons, table.map(|(_, _, reason, _)| reason));
}

#[tokio::test]
async fn a_tunnel_without_the_right_name_in_its_handshake_reaches_nobody() {
    let world = World::new(wide(), all).await;
    let target = format!("a.example:{}", world.host.port);
    let table: [(Vec<u8>, Reason, Option<&str>); 6] = [
        (hello(Some("b.example")), Reason::SniMismatch, Some("b.example")),
        (hello(Some("x.a.example")), Reason::SniMismatch, Some("x.a.example")),
        (hello(Some("a.example.")), Reason::SniMismatch, Some("a.example.")),
        (hello(None), Reason::SniMissing, None),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), Reason::SniMissing, None),
        (hello(Some("a.example"))[..20].to_vec(), Reason::SniMissing, None),
    ];
    for (bytes, _, _) in &table {
        let mut client = world.client().await;
        assert_eq!(client.connect(&target).await.0, 200);
        client.send(bytes).await;
        client.0.shutdown().await.unwrap();
        assert_eq!(client.rest().await, b"");
    }
    let mut unused = world.client().await;
    assert_eq!(unused.connect(&target).await.0, 200);
    unused.0.shutdown().await.unwrap();
    assert_eq!(unused.rest().await, b"");
    assert_eq!(world.host.bytes(), 0);
    let lines = world.lines().await;
    for (line, (_, reason, sni)) in lines.iter().zip(&table) {
        assert_eq!((line.reason, line.sni.as_deref(), line.up), (*reason, *sni, 0));
    }
    assert_eq!(lines[6].reason, Reason::Ok, "opened in advance and never used");
}

#[tokio::test]
async fn bytes_that_come_with_the_head_belong_to_the_tunnel() {
    let world = World::new(wide(), all).await;
    let mut client = world.client().await;
    let hello = hello(Some("A.EXAMPLE"));
    let head = format!("CONNECT A.example.:{} HTTP/1.0\r\n\r\n", world.host.port);
    client.send(&[head.as_bytes(), &hello, b"more"].concat()).await;
    assert_eq!(client.answer().await.0, 200);
    assert_eq!(client.receive(hello.len() + 4).await, [&hello[..], b"more"].concat());
    assert_eq!(world.lines().await[0].host.as_deref(), Some("a.example"));
}

#[tokio::test]
async fn the_sixty_fifth_connection_is_turned_away_until_one_ends() {
    let world = World::new(wide(), all).await;
    let mut tunnels = Vec::new();
    for _ in 0..64 {
        tunnels.push(world.tunnel("a.example").await);
    }
    let (status, head) = world.client().await.answer().await;
    assert_eq!((status, head.contains("Retry-After: 1\r\n")), (503, true));
    drop(tunnels.pop());
    // The proxy notices the end by and by.
    let mut again = 503;
    for _ in 0..10_000 {
        let mut client = world.client().await;
        again = client.connect("c.example:1").await.0;
        if again != 503 {
            break;
        }
    }
    assert_eq!(again, 403);
    for tunnel in &mut tunnels {
        tunnel.send(b"still here").await;
        assert_eq!(tunnel.receive(10).await, b"still here");
    }
    drop(tunnels);
    assert!(world.lines().await.iter().any(|line| line.reason == Reason::Limit && line.host.is_none()));
}

#[tokio::test]
async fn sixty_four_tunnels_carry_at_once() {
    let world = World::new(wide(), all).await;
    let mut tunnels = Vec::new();
    for at in 0_u8..64 {
        let (socket, port) = (world.socket("other.sock"), world.host.port);
        tunnels.push(tokio::spawn(async move {
            let mut client = Client(UnixStream::connect(socket).await.unwrap());
            assert_eq!(client.connect(&format!("b.example:{port}")).await.0, 200);
            let sent = [hello(Some("b.example")), vec![at; 200_000]].concat();
            let (mut from, mut to) = client.0.into_split();
            let writer = {
                let sent = sent.clone();
                tokio::spawn(async move {
                    to.write_all(&sent).await.unwrap();
                    to
                })
            };
            let mut got = vec![0; sent.len()];
            tokio::io::AsyncReadExt::read_exact(&mut from, &mut got).await.unwrap();
            assert!(got == sent);
            drop(writer.await.unwrap());
        }));
    }
    for tunnel in tunnels {
        tunnel.await.unwrap();
    }
    let lines = world.lines().await;
    assert_eq!(lines.len(), 64);
    assert!(lines.iter().all(|line| line.reason == Reason::Ok && line.up == line.down && line.up > 200_000));
    assert!(lines.iter().all(|line| line.peer.is_none()));
}

#[tokio::test]
async fn a_thousand_allowed_and_a_thousand_denied_requests_get_their_verdicts() {
    let world = World::new(Limits { connections: 4000, ..wide() }, all).await;
    let port = world.host.port;
    let mut workers = Vec::new();
    for worker in 0..10 {
        let socket = world.socket("claude.sock");
        workers.push(tokio::spawn(async move {
            for n in 0..200 {
                let mut client = Client(UnixStream::connect(&socket).await.unwrap());
                if (n + worker) % 2 == 0 {
                    assert_eq!(client.connect(&format!("a.example:{port}")).await.0, 200);
                    client.send(&hello(Some("a.example"))).await;
                    client.receive(10).await;
                } else {
                    assert_eq!(client.connect(&format!("evil{n}.a.example:{port}")).await.0, 403);
                }
            }
        }));
    }
    for worker in workers {
        worker.await.unwrap();
    }
    assert_eq!(world.host.connections(), 1000);
    let (mut allowed, mut denied, mut suppressed) = (0, 0, 0);
    for line in world.stop().await.lines() {
        match serde_json::from_str::<LogLine>(line) {
            Ok(line) if line.verdict == Verdict::Allow => allowed += 1,
            Ok(line) => {
                assert_eq!(line.reason, Reason::NotListed);
                denied += 1;
            }
            Err(_) => suppressed += serde_json::from_str::<Suppressed>(line).unwrap().suppressed,
        }
    }
    assert_eq!((allowed, denied + suppressed), (1000, 1000));
}

#[tokio::test]
async fn an_upload_budget_counts_over_all_tunnels_of_its_entry() {
    let size = u64::try_from(hello(Some("a.example")).len()).unwrap();
    let limited = AllowEntry { max_up_bytes: Some(2 * size + 10), ..AllowEntry::default() };
    let world = World::new(wide(), |port| {
        let first = AllowEntry { max_up_bytes: limited.max_up_bytes, ..entry("a.example", port) };
        vec![first, entry("b.example", port)]
    })
    .await;
    let (mut first, mut second) = (world.tunnel("a.example").await, world.tunnel("a.example").await);
    first.send(&[b'x'; 11]).await;
    assert_eq!(first.rest().await, b"", "one byte too many: nothing is passed on");
    second.send(&[b'x'; 10]).await;
    assert_eq!(second.receive(10).await, [b'x'; 10]);
    let mut third = world.client().await;
    let target = format!("a.example:{}", world.host.port);
    assert_eq!(third.connect(&target).await.0, 403);
    assert!(String::from_utf8(third.rest().await).unwrap().contains("max_up_bytes"));
    drop(world.tunnel("b.example").await);
    drop(second);
    let reasons: Vec<Reason> = world.lines().await.iter().map(|line| line.reason).collect();
    assert_eq!(reasons, [Reason::Quota, Reason::Ok, Reason::Quota, Reason::Ok]);
}

#[tokio::test]
async fn a_reload_closes_the_tunnels_of_removed_hosts_and_no_others() {
    let world = World::new(wide(), all).await;
    let port = world.host.port;
    let (mut kept, mut removed, mut moved) = (
        world.tunnel("a.example").await,
        world.tunnel("b.example").await,
        world.tunnel("sub.c.example").await,
    );
    let no_private = AllowEntry { private_ok: Vec::new(), ..entry("sub.c.example", port) };
    world.handle.reload(policy(vec![entry("a.example", port), no_private]));
    assert_eq!(removed.rest().await, b"");
    assert_eq!(moved.rest().await, b"");
    kept.send(b"still here").await;
    assert_eq!(kept.receive(10).await, b"still here");
    assert_eq!(world.client().await.connect(&format!("b.example:{port}")).await.0, 403);
    world.handle.reload(policy(all(port)));
    drop(world.tunnel("b.example").await);
    drop(kept);
    let reasons: Vec<Reason> = world.lines().await.iter().map(|line| line.reason).collect();
    assert_eq!(reasons, [Reason::Ok, Reason::NotListed, Reason::PrivateAddr, Reason::NotListed, Reason::Ok]);
}

#[tokio::test]
async fn stopping_closes_and_logs_open_tunnels() {
    let world = World::new(wide(), all).await;
    let mut client = world.tunnel("a.example").await;
    let lines = world.lines().await;
    assert_eq!(client.rest().await, b"");
    assert_eq!((lines.len(), lines[0].reason), (1, Reason::Ok));
}

#[tokio::test]
async fn a_local_port_is_reached_through_its_own_socket() {
    let world = World::new(wide(), |_| Vec::new()).await;
    let port = world.host.port;
    let mut client = Client(UnixStream::connect(world.socket("local.sock")).await.unwrap());
    client.send(b"no TLS here").await;
    client.0.shutdown().await.unwrap();
    assert_eq!(client.rest().await, b"no TLS here");
    let lines = world.lines().await;
    assert_eq!(
        (lines[0].host.as_deref(), lines[0].port, lines[0].reason),
        (Some("localhost"), Some(port), Reason::Ok)
    );
}

fn options(dir: &std::path::Path, at: Endpoint) -> Options {
    Options {
        run: run_id(),
        listen: vec![Listen { at, serves: Serves::Proxy(None) }],
        policy: policy(Vec::new()),
        log: dir.join("egress.log"),
        limits: Limits::default(),
    }
}

#[tokio::test]
async fn a_path_that_is_too_long_for_a_socket_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let far = Endpoint::Unix(dir.path().join("run").join("x".repeat(108)));
    let error = Server::bind(options(dir.path(), far)).unwrap_err();
    assert!(matches!(error, BindError::Listen { .. }), "{error}");
}

#[tokio::test]
async fn a_loopback_port_serves_too() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::bind(options(dir.path(), Endpoint::Loopback(0))).unwrap();
    let Endpoint::Loopback(port) = server.endpoints()[0] else { panic!("{:?}", server.endpoints()) };
    let running = tokio::spawn(server.run(std::future::pending()));
    let mut client = Client(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
    assert_eq!(client.connect("a.example:443").await.0, 403);
    running.abort();
}
