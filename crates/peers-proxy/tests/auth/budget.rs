//! Records of tokens, and the cap.

use bytes::Bytes;
use peers_proxy::auth::Provider;
use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::fake::{Fake, Once, answer, events, json as told};
use crate::world::{Setting, World, at, read_until, request, with_key};

const STREAM: &str = "data: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-x\",\"usage\":\
    {\"input_tokens\":7,\"cache_read_input_tokens\":30,\"cache_creation_input_tokens\":2,\"output_tokens\":1}}}\n\n\
    data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":50}}\n\n";

fn capped(cap: u64) -> Setting {
    Setting { token_cap: Some(cap), ..Setting::new() }
}

#[tokio::test]
async fn each_request_leaves_one_record() {
    let fake = Fake::start(|asked| {
        let mut answer = match asked.line.as_str() {
            "POST /v1/messages" => answer(200, "text/event-stream", STREAM),
            "POST /v1/responses" => {
                told(200, "{\"model\":\"gpt-x\",\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}")
            }
            _ => told(404, "{}"),
        };
        answer.headers_mut().insert("request-id", "req_1".parse().unwrap());
        answer
    })
    .await;
    let services = [Provider::Anthropic, Provider::OpenAi].map(|provider| with_key(provider, &fake));
    let world = World::start(services.into()).await;
    world.message().await;
    world.ask("POST /openai/v1/responses", "", "{}").await;
    world.ask("GET /openai/v1/models", "", "").await;
    let records = world.recorded(3).await;
    let expected = json!({
        "ts": "2026-03-01T12:00:00.000Z", "run": "0123456789abcdef", "peer": "claude", "route": "anthropic",
        "model": "claude-x", "status": 200, "in": 7, "out": 50, "cache_read": 30, "cache_write": 2,
        "counted": 89, "ms": records[0]["ms"], "req_id": "req_1",
    });
    assert_eq!(records[0], expected);
    assert_eq!(
        (&records[1]["in"], &records[1]["out"], &records[1]["route"]),
        (&json!(9), &json!(1), &json!("openai"))
    );
    assert_eq!((&records[2]["status"], &records[2]["in"]), (&json!(404), &json!(null)));
    assert_eq!(records.len(), 3);
}

#[tokio::test]
async fn a_used_up_budget_ends_requests_before_they_are_forwarded() {
    let fake = Fake::start(|_| answer(200, "text/event-stream", STREAM)).await;
    let world = World::start_with(vec![with_key(Provider::Anthropic, &fake)], capped(100)).await;
    // 89 tokens each: the second one begins below the cap.
    for _ in 0..2 {
        assert_eq!(world.message().await.status, 200);
    }
    let refused = world.message().await;
    assert_eq!((refused.status.as_u16(), refused.code().as_str()), (429, "budget_exhausted"));
    assert!(refused.head.contains("x-should-retry: false"), "{}", refused.head);
    assert_eq!(fake.asked().len(), 2);
    assert_eq!(world.reasons(), ["ok", "ok", "budget_exhausted"]);
}

#[tokio::test]
async fn an_answer_that_hides_its_usage_counts_by_its_bytes() {
    let fake = Fake::start(|_| told(200, &format!("{{\"text\":\"{}\"}}", "x".repeat(4000)))).await;
    let world = World::start_with(vec![with_key(Provider::Anthropic, &fake)], capped(1000)).await;
    assert_eq!(world.ask("POST /anthropic/v1/messages/count_tokens", "", "{}").await.status, 200);
    assert_eq!(world.ask("GET /anthropic/v1/models", "", "").await.status, 200);
    assert_eq!(world.message().await.status, 200, "neither counting nor listing costs tokens");
    assert_eq!(world.message().await.status, 429);
    assert_eq!(world.records()[2]["in"], json!(null), "the record says that nothing is known");
}

#[tokio::test]
async fn a_failed_request_costs_nothing() {
    let fake = Fake::start(|_| told(500, &"x".repeat(4000))).await;
    let world = World::start_with(vec![with_key(Provider::Anthropic, &fake)], capped(10)).await;
    for _ in 0..3 {
        assert_eq!(world.message().await.status, 500);
    }
}

/// A stream up to where it would tell its usage.
fn begun(text: usize) -> String {
    let (start, _) = STREAM.split_once("\n\n").unwrap();
    let delta =
        json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "x".repeat(text)}});
    format!("{start}\n\ndata: {delta}\n\n")
}

#[tokio::test]
async fn a_stream_that_is_left_before_it_tells_its_usage_counts_by_its_text() {
    let (stream, send, gone) = events();
    let once = Once::new(vec![stream]);
    let fake = Fake::start(move |_| once.take()).await;
    let world = World::start_with(vec![with_key(Provider::Anthropic, &fake)], capped(1000)).await;
    let mut client = world.connect().await;
    client.write_all(request("POST /anthropic/v1/messages", "", "{}").as_bytes()).await.unwrap();
    send.send(Bytes::from(begun(4000))).unwrap();
    read_until(&mut client, "xxx\"").await;
    drop(client);
    gone.await.unwrap_err();
    let record = &world.recorded(1).await[0];
    assert_eq!((&record["reason"], &record["out"]), (&json!("client-gone"), &json!(1)));
    assert!((1000..1100).contains(&record["counted"].as_u64().unwrap()), "{record}");
    assert_eq!(world.message().await.status, 429);
}

#[tokio::test]
async fn a_request_that_nobody_waits_for_counts_by_its_body() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let fake = Fake::start(|_| told(200, "{}")).await;
    let services = vec![at(&url, with_key(Provider::Anthropic, &fake))];
    let world = World::start_with(services, capped(1000)).await;
    let mut client = world.connect().await;
    let body = format!("{{\"text\":\"{}\"}}", "x".repeat(4000));
    client.write_all(request("POST /anthropic/v1/messages", "", &body).as_bytes()).await.unwrap();
    let (mut service, _) = listener.accept().await.unwrap();
    read_until(&mut service, "xxx\"}").await;
    drop(client);
    assert_eq!(world.recorded(1).await[0]["counted"], 1002);
    assert_eq!(world.message().await.status, 429);
}

#[tokio::test]
async fn clients_that_come_and_go_do_not_fill_the_log() {
    let fake = Fake::start(|_| told(200, "{}")).await;
    let world = World::start(vec![with_key(Provider::Anthropic, &fake)]).await;
    tokio::time::pause();
    for _ in 0..300 {
        drop(world.connect().await);
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(world.records().len(), 50);
}
