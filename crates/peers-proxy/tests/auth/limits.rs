//! Times and counts. The clock of the runtime stands still until nothing else is left to do.

use std::time::Duration;

use bytes::Bytes;
use peers_proxy::auth::Provider;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use crate::fake::{Fake, Once, events, json};
use crate::world::{Setting, Told, World, at, read_until, request, with_key};

async fn silent() -> (tokio::net::TcpListener, World) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let fake = Fake::start(|_| json(200, "{}")).await;
    let url = format!("http://{}", listener.local_addr().unwrap());
    let world = World::start(vec![at(&url, with_key(Provider::Anthropic, &fake))]).await;
    (listener, world)
}

#[tokio::test]
async fn a_head_has_ten_seconds() {
    let (_listener, world) = silent().await;
    tokio::time::pause();
    let mut stream = world.connect().await;
    stream.write_all(b"GET /anthropic/v1/models HTTP/1.1\r\nHost").await.unwrap();
    let begin = Instant::now();
    let told = Told::read(stream).await;
    assert_eq!((told.status.as_u16(), begin.elapsed().as_secs()), (408, 10));
    assert_eq!(world.reasons(), ["timeout"]);
}

#[tokio::test]
async fn a_body_may_not_stall() {
    let (_listener, world) = silent().await;
    tokio::time::pause();
    let mut stream = world.connect().await;
    let text = request("POST /anthropic/v1/messages", "", "{\"a\":1}");
    stream.write_all(&text.as_bytes()[..text.len() - 3]).await.unwrap();
    let begin = Instant::now();
    let told = Told::read(stream).await;
    assert_eq!((told.status.as_u16(), begin.elapsed().as_secs()), (408, 30));
}

#[tokio::test]
async fn a_body_that_trickles_in_has_ten_minutes() {
    let fake = Fake::start(|_| json(200, "{}")).await;
    let mut setting = Setting::new();
    // So that no piece is missed in this time.
    setting.limits.body_idle = Duration::from_hours(9);
    let world = World::start_with(vec![with_key(Provider::Anthropic, &fake)], setting).await;
    tokio::time::pause();
    let mut stream = world.connect().await;
    let text = request("POST /anthropic/v1/messages", "", "{\"a\":1}");
    stream.write_all(&text.as_bytes()[..text.len() - 3]).await.unwrap();
    let begin = Instant::now();
    let told = Told::read(stream).await;
    assert_eq!((told.status.as_u16(), begin.elapsed().as_secs()), (408, 600));
}

#[tokio::test]
async fn a_client_that_does_not_read_its_answer_does_not_keep_the_service() {
    let (answer, send, gone) = events();
    let once = Once::new(vec![answer]);
    let fake = Fake::start(move |_| once.take()).await;
    let world = World::start(vec![with_key(Provider::Anthropic, &fake)]).await;
    let mut stream = world.connect().await;
    stream.write_all(request("POST /anthropic/v1/messages", "", "{}").as_bytes()).await.unwrap();
    send.send(Bytes::from("data: {}\n\n")).unwrap();
    read_until(&mut stream, "data: {}\n\n").await;
    for _ in 0..64 {
        send.send(Bytes::from(vec![b'x'; 1024 * 1024])).unwrap();
    }
    tokio::time::pause();
    gone.await.unwrap_err();
    assert_eq!(world.recorded(1).await[0]["reason"], "client-gone");
}

#[tokio::test]
async fn a_service_has_ten_minutes_for_its_first_byte() {
    let (listener, world) = silent().await;
    let mut stream = world.connect().await;
    stream.write_all(request("POST /anthropic/v1/messages", "", "{}").as_bytes()).await.unwrap();
    let (mut service, _) = listener.accept().await.unwrap();
    read_until(&mut service, "\r\n\r\n{}").await;
    tokio::time::pause();
    let begin = Instant::now();
    let told = Told::read(stream).await;
    assert_eq!((told.status.as_u16(), told.code().as_str()), (504, "upstream-timeout"));
    assert!((595..=600).contains(&begin.elapsed().as_secs()), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn an_answer_may_not_stall() {
    let (answer, send, _gone) = events();
    let once = Once::new(vec![answer]);
    let fake = Fake::start(move |_| once.take()).await;
    let world = World::start(vec![with_key(Provider::Anthropic, &fake)]).await;
    let mut stream = world.connect().await;
    stream.write_all(request("POST /anthropic/v1/messages", "", "{}").as_bytes()).await.unwrap();
    send.send(Bytes::from("data: {}\n\n")).unwrap();
    let head = read_until(&mut stream, "data: {}\n\n").await;
    tokio::time::pause();
    let begin = Instant::now();
    let mut rest = head.into_bytes();
    let _ended = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut rest).await;
    assert!(!Told::parse(&rest).whole, "it ends as a broken answer");
    assert!((295..=300).contains(&begin.elapsed().as_secs()), "{:?}", begin.elapsed());
    assert_eq!(world.recorded(1).await[0]["reason"], "upstream-timeout");
}

#[tokio::test]
async fn a_connection_too_many_is_told_so() {
    let (_listener, world) = silent().await;
    let mut waiting = Vec::new();
    for _ in 0..32 {
        waiting.push(world.connect().await);
    }
    let told = world.message().await;
    assert_eq!((told.status.as_u16(), told.code().as_str()), (503, "busy"));
    assert!(told.head.contains("retry-after: 1"), "{}", told.head);
    drop(waiting.pop());
    // The place is free once the proxy has seen that the client is gone.
    world.recorded(1).await;
    assert_eq!(world.ask("GET /anthropic", "", "").await.status, 403);
}

#[tokio::test]
async fn all_peers_together_have_a_limit_too() {
    let fake = Fake::start(|_| json(200, "{}")).await;
    let mut setting = Setting::new();
    (setting.limits.per_peer, setting.limits.total) = (9, 2);
    let world = World::start_with(vec![with_key(Provider::Anthropic, &fake)], setting).await;
    let _waiting = [world.connect().await, world.connect().await];
    assert_eq!(world.message().await.status, 503);
}

#[tokio::test]
async fn requests_under_way_are_cut_off_at_the_end() {
    let (answer, send, gone) = events();
    let once = Once::new(vec![answer]);
    let fake = Fake::start(move |_| once.take()).await;
    let mut world = World::start(vec![with_key(Provider::Anthropic, &fake)]).await;
    let mut stream = world.connect().await;
    stream.write_all(request("POST /anthropic/v1/messages", "", "{}").as_bytes()).await.unwrap();
    send.send(Bytes::from("data: {}\n\n")).unwrap();
    read_until(&mut stream, "data: {}\n\n").await;
    world.stop().await;
    gone.await.unwrap_err();
    assert_eq!(world.records().len(), 1);
}
