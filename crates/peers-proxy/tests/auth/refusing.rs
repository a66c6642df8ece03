//! What is refused, before a service hears of it.

use peers_proxy::auth::Provider;
use tokio::io::AsyncWriteExt;

use crate::fake::{Fake, json};
use crate::world::{BEARER, Setting, Told, World, request, with_key};

#[tokio::test]
async fn only_the_bearer_of_the_run_is_let_in() {
    let fake = Fake::start(|_| json(200, "{}")).await;
    let world = World::start(vec![with_key(Provider::Anthropic, &fake)]).await;
    let ask = async |headers: &str| {
        world.raw(format!("GET /anthropic/v1/models HTTP/1.1\r\nHost: x\r\n{headers}\r\n").as_bytes()).await
    };
    let cut = &BEARER[..BEARER.len() - 1];
    for bad in [
        String::new(),
        "Authorization: Bearer \r\n".to_owned(),
        format!("Authorization: Bearer {cut}\r\n"),
        format!("Authorization: Bearer {BEARER}x\r\n"),
        format!("Authorization: Basic {BEARER}\r\n"),
        format!("Authorization: {BEARER}\r\n"),
        format!("X-Api-Key: {cut}\r\n"),
        format!("Cookie: {BEARER}\r\n"),
    ] {
        let told = ask(&bad).await;
        assert_eq!((told.status.as_u16(), told.code().as_str()), (401, "bearer"), "{bad}");
    }
    assert_eq!(fake.asked().len(), 0);
    for good in [
        format!("Authorization: Bearer {BEARER}\r\n"),
        format!("authorization: bearer {BEARER}\r\n"),
        format!("X-Api-Key: {BEARER}\r\n"),
        format!("X-Api-Key: other\r\nAuthorization: Bearer {BEARER}\r\n"),
    ] {
        assert_eq!(ask(&good).await.status, 200, "{good}");
    }
}

#[tokio::test]
async fn only_listed_paths_are_asked_for() {
    let fake = Fake::start(|_| json(200, "{}")).await;
    let world = World::start(vec![with_key(Provider::Anthropic, &fake)]).await;
    for (line, status) in [
        ("POST /anthropic/v1/complete", 403),
        ("GET /anthropic/v1/messages", 403),
        ("DELETE /anthropic/v1/models/x", 403),
        ("GET /anthropic/v1/organizations/me", 403),
        ("POST /openai/v1/responses", 403),
        ("POST /v1/messages", 403),
        ("GET /", 403),
        ("POST /anthropic/v1/messages/../oauth/token", 400),
        ("POST /anthropic/v1//messages", 400),
        ("POST //anthropic/v1/messages", 400),
        ("POST /anthropic/v1%2fmessages", 400),
        ("POST /anthropic/v1/%2e%2e/v1/messages", 400),
        ("POST /anthropic/./v1/messages", 400),
        ("POST /anthropic/v1/messages#fragment", 400),
        ("GET http://api.anthropic.com/anthropic/v1/models", 400),
        ("OPTIONS *", 400),
        ("CONNECT api.anthropic.com:443", 400),
    ] {
        assert_eq!(world.ask(line, "", "").await.status.as_u16(), status, "{line}");
    }
    assert_eq!(fake.asked().len(), 0);
    let first = &world.records()[0];
    assert_eq!((&first["path"], &first["reason"]), (&"/anthropic/v1/complete".into(), &"route".into()));
    assert_eq!(first["route"], serde_json::Value::Null);
}

#[tokio::test]
async fn a_body_that_two_readers_could_cut_differently_is_refused() {
    let fake = Fake::start(|_| json(200, "{}")).await;
    let world = World::start(vec![with_key(Provider::Anthropic, &fake)]).await;
    let head = request("POST /anthropic/v1/messages", "", "").replace("Content-Length: 0\r\n", "@");
    for framing in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: +5\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding:\x0bchunked\r\n",
        "X: y\r\n Transfer-Encoding: chunked\r\n",
    ] {
        let smuggled = "0\r\n\r\nGET /anthropic/v1/models HTTP/1.1\r\n\r\n";
        let told = world.raw(format!("{}{smuggled}", head.replace('@', framing)).as_bytes()).await;
        assert_eq!((told.status.as_u16(), told.code().as_str()), (400, "malformed"), "{framing}");
    }
    assert_eq!(fake.asked().len(), 0);
    let twice = head.replace('@', "Content-Length: 2\r\nContent-Length: 2\r\n");
    assert_eq!(
        world.raw(format!("{twice}{{}}").as_bytes()).await.status,
        200,
        "the same length twice is fine"
    );
}

#[tokio::test]
async fn what_comes_after_a_request_is_not_a_request() {
    let fake = Fake::start(|_| json(200, "{}")).await;
    let world = World::start(vec![with_key(Provider::Anthropic, &fake)]).await;
    let two = request("GET /anthropic/v1/models", "", "").repeat(2);
    assert_eq!(world.raw(two.as_bytes()).await.status, 200);
    assert_eq!(fake.asked().len(), 1);
}

#[tokio::test]
async fn a_body_beyond_the_cap_is_refused() {
    let fake = Fake::start(|_| json(200, "{}")).await;
    let mut setting = Setting::new();
    (setting.limits.body, setting.limits.repeatable) = (2_000_000, 1_000);
    let world = World::start_with(vec![with_key(Provider::Anthropic, &fake)], setting).await;
    let body = "x".repeat(2_000_001);
    let told = world.ask("POST /anthropic/v1/messages", "", &body).await;
    assert_eq!((told.status.as_u16(), told.code().as_str()), (413, "body-too-large"));
    let head = request("POST /anthropic/v1/messages", "Transfer-Encoding: chunked\r\n", "")
        .replace("Content-Length: 0\r\n", "");
    let told = world.raw(format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).as_bytes()).await;
    assert_eq!((told.status.as_u16(), told.code().as_str()), (413, "body-too-large"));
    assert_eq!(fake.asked().len(), 0, "no service got a whole request");
    assert_eq!(world.reasons(), ["body-too-large", "body-too-large"]);
}

#[tokio::test]
async fn a_length_beyond_the_cap_is_refused_before_the_body_comes() {
    let fake = Fake::start(|_| json(200, "{}")).await;
    let world = World::start(vec![with_key(Provider::Anthropic, &fake)]).await;
    let head = request("POST /anthropic/v1/messages", "Expect: 100-continue\r\n", "");
    let told = world.raw(head.replace("Content-Length: 0", "Content-Length: 33554433").as_bytes()).await;
    assert_eq!((told.status.as_u16(), told.code().as_str()), (413, "body-too-large"));
}

#[tokio::test]
async fn a_head_beyond_the_cap_is_refused() {
    let fake = Fake::start(|_| json(200, "{}")).await;
    let world = World::start(vec![with_key(Provider::Anthropic, &fake)]).await;
    let long = format!("X-Long: {}\r\n", "x".repeat(33 * 1024));
    assert_eq!(world.ask("GET /anthropic/v1/models", &long, "").await.status, 431);
    let fits = format!("X-Long: {}\r\n", "x".repeat(30 * 1024));
    assert_eq!(world.ask("GET /anthropic/v1/models", &fits, "").await.status, 200);
}

#[tokio::test]
async fn a_broken_chunk_never_becomes_a_request() {
    let fake = Fake::start(|_| json(200, "{}")).await;
    let world = World::start(vec![with_key(Provider::Anthropic, &fake)]).await;
    let head = request("POST /anthropic/v1/messages", "Transfer-Encoding: chunked\r\n", "")
        .replace("Content-Length: 0\r\n", "");
    for body in ["zz\r\nabc\r\n0\r\n\r\n", "3\r\nabcd\r\n0\r\n\r\n", "-3\r\nabc\r\n0\r\n\r\n"] {
        let mut stream = world.connect().await;
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _ended = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut answer).await;
        assert!(answer.is_empty() || Told::parse(&answer).status == 400, "{body}");
    }
    assert_eq!(fake.asked().len(), 0);
}

#[tokio::test]
async fn refusals_do_not_flood_the_log() {
    let fake = Fake::start(|_| json(200, "{}")).await;
    let world = World::start(vec![with_key(Provider::Anthropic, &fake)]).await;
    tokio::time::pause();
    for _ in 0..80 {
        world.raw(b"GET / HTTP/1.1\r\n\r\n").await;
    }
    assert_eq!(world.records().len(), 50);
    tokio::time::advance(std::time::Duration::from_secs(2)).await;
    tokio::time::resume();
    world.message().await;
    let records = world.records();
    assert_eq!((records.len(), &records[50]["suppressed"]), (52, &30.into()));
}
