//! Connections that become a `WebSocket`.

use peers_proxy::auth::Provider;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};

use crate::fake::{Fake, json as told};
use crate::world::{Setting, World, at, read_until, request, with_login};

const DONE: &str = "{\"type\":\"response.completed\",\"response\":{\"model\":\"gpt-x\",\"usage\":{\"input_tokens\":60,\
    \"input_tokens_details\":{\"cached_tokens\":40},\"output_tokens\":5}}}";
const ASK: &str = "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Extensions: permessage-deflate\r\n";
const TAKEN: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Accept: a\r\nSet-Cookie: a=b\r\n\r\n";

fn frame(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap().to_be_bytes();
    [&[0x81, 126], &length[..], text.as_bytes()].concat()
}

/// Both ends of an open socket, and what the service was asked.
async fn open(setting: Setting) -> (World, UnixStream, TcpStream, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let fake = Fake::start(|_| told(200, "{}")).await;
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("auth.json");
    let login = "{\"tokens\":{\"access_token\":\"tok\",\"refresh_token\":\"ref\",\"account_id\":\"acc\"}}";
    std::fs::write(&file, login).unwrap();
    let service = with_login(Provider::ChatGpt, &fake, &file, "/token");
    let service = at(&format!("http://{}", listener.local_addr().unwrap()), service);
    let world = World::start_in(tmp, vec![service], setting).await;
    let mut client = world.connect().await;
    let text =
        request("GET /chatgpt/backend-api/codex/responses", ASK, "").replace("Content-Length: 0\r\n", "");
    client.write_all(text.as_bytes()).await.unwrap();
    let (mut service, _) = listener.accept().await.unwrap();
    let asked = read_until(&mut service, "\r\n\r\n").await;
    (world, client, service, asked)
}

#[tokio::test]
async fn a_socket_carries_bytes_both_ways_and_its_answers_are_recorded_one_by_one() {
    let (world, mut client, mut service, asked) = open(Setting::new()).await;
    let asked = asked.to_ascii_lowercase();
    assert!(asked.starts_with("get /backend-api/codex/responses http/1.1\r\n"), "{asked}");
    for line in
        ["authorization: bearer tok", "chatgpt-account-id: acc", "upgrade: websocket", "sec-websocket-key: k"]
    {
        assert!(asked.contains(&format!("{line}\r\n")), "{line}: {asked}");
    }
    assert!(!asked.contains("deflate"), "{asked}");
    service.write_all(TAKEN).await.unwrap();
    let head = read_until(&mut client, "\r\n\r\n").await.to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 101 ") && head.contains("sec-websocket-accept: a"), "{head}");
    assert!(!head.contains("set-cookie"), "{head}");
    client.write_all(b"up").await.unwrap();
    read_until(&mut service, "up").await;
    for count in 1..=2 {
        service.write_all(&frame(DONE)).await.unwrap();
        let mut bytes = vec![0; DONE.len() + 4];
        client.read_exact(&mut bytes).await.unwrap();
        assert_eq!(bytes, frame(DONE));
        let record = world.recorded(count).await.pop().unwrap();
        assert_eq!(
            (&record["in"], &record["cache_read"], &record["out"]),
            (&json!(20), &json!(40), &json!(5))
        );
        assert_eq!((&record["status"], &record["model"]), (&json!(101), &json!("gpt-x")));
    }
    drop(client);
    assert_eq!(service.read(&mut [0; 9]).await.unwrap(), 0, "the end is passed on");
    assert_eq!(world.records().len(), 2);
}

#[tokio::test]
async fn a_used_up_budget_closes_the_socket_after_the_answer() {
    let (world, mut client, mut service, _) = open(Setting { token_cap: Some(65), ..Setting::new() }).await;
    service.write_all(TAKEN).await.unwrap();
    read_until(&mut client, "\r\n\r\n").await;
    service.write_all(&frame(DONE)).await.unwrap();
    let mut all = Vec::new();
    client.read_to_end(&mut all).await.unwrap();
    assert_eq!(all, frame(DONE));
    assert_eq!(world.records().len(), 1);
    assert_eq!(world.ask("GET /chatgpt/backend-api/codex/models", "", "").await.status, 429);
}

#[tokio::test]
async fn a_refused_handshake_is_an_answer_like_any_other() {
    let (world, mut client, mut service, _) = open(Setting::new()).await;
    service.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno").await.unwrap();
    let mut all = String::new();
    client.read_to_string(&mut all).await.unwrap();
    assert!(all.starts_with("HTTP/1.1 403 ") && all.ends_with("\r\n\r\nno"), "{all}");
    assert_eq!(world.recorded(1).await[0]["status"], 403);
}

#[tokio::test]
async fn a_socket_that_nobody_uses_is_closed() {
    let (world, mut client, mut service, _) = open(Setting::new()).await;
    service.write_all(TAKEN).await.unwrap();
    read_until(&mut client, "\r\n\r\n").await;
    client.write_all(b"up").await.unwrap();
    read_until(&mut service, "up").await;
    tokio::time::pause();
    let begin = tokio::time::Instant::now();
    assert_eq!(client.read(&mut [0; 9]).await.unwrap(), 0);
    assert!((595..=600).contains(&begin.elapsed().as_secs()), "{:?}", begin.elapsed());
    assert_eq!(world.reasons(), ["upstream-timeout"]);
}

#[tokio::test]
async fn an_answer_that_is_left_counts_after_one_that_was_whole() {
    let (world, mut client, mut service, _) = open(Setting { token_cap: Some(1000), ..Setting::new() }).await;
    service.write_all(TAKEN).await.unwrap();
    read_until(&mut client, "\r\n\r\n").await;
    service.write_all(&frame(DONE)).await.unwrap();
    client.read_exact(&mut vec![0; DONE.len() + 4]).await.unwrap();
    let delta = json!({"type": "response.output_text.delta", "delta": "x".repeat(4000)}).to_string();
    service.write_all(&frame(&delta)).await.unwrap();
    client.read_exact(&mut vec![0; delta.len() + 4]).await.unwrap();
    drop(client);
    assert_eq!(service.read(&mut [0; 9]).await.unwrap(), 0, "the end is passed on");
    let records = world.recorded(2).await;
    assert_eq!((&records[1]["in"], &records[1]["counted"]), (&json!(null), &json!((delta.len() + 4) / 4)));
    assert_eq!(world.ask("GET /chatgpt/backend-api/codex/models", "", "").await.status, 429);
}
