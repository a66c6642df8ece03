//! What passes, and how.

use bytes::Bytes;
use peers_proxy::Endpoint;
use peers_proxy::auth::{Provider, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::fake::{Fake, Once, answer, events, json};
use crate::world::{BEARER, KEY, Setting, Told, World, read_until, request, with_key};

#[tokio::test]
async fn a_request_reaches_its_service_with_the_key_and_without_the_bearer() {
    let fake = Fake::start(|_| {
        let mut answer = json(200, "{\"usage\":{\"input_tokens\":1}}");
        answer.headers_mut().insert("set-cookie", "a=b".parse().unwrap());
        answer.headers_mut().insert("request-id", "req_1".parse().unwrap());
        answer
    })
    .await;
    let world = World::start(vec![with_key(Provider::Anthropic, &fake)]).await;
    let headers = "Cookie: c\r\nX-Forwarded-For: 1\r\nAnthropic-Version: v\r\nConnection: x-mine\r\nX-Mine: 1\r\n\
        Accept-Encoding: gzip\r\n";
    let told = world.ask("POST /anthropic/v1/messages?beta=true&x=%2f..", headers, "{\"a\":1}").await;
    assert_eq!((told.status.as_u16(), told.whole), (200, true));
    assert!(!told.head.contains("set-cookie") && told.head.contains("request-id: req_1"), "{}", told.head);
    let [asked] = &fake.asked()[..] else { panic!("one request") };
    assert_eq!(asked.line, "POST /v1/messages?beta=true&x=%2f..");
    assert_eq!(asked.body, "{\"a\":1}");
    assert_eq!(asked.header("x-api-key"), KEY);
    assert_eq!(asked.header("host"), fake.address.to_string());
    assert_eq!((asked.header("anthropic-version"), asked.header("content-length")), ("v", "7"));
    assert_eq!(asked.header("accept-encoding"), "identity");
    for name in ["authorization", "cookie", "x-forwarded-for", "x-mine", "connection"] {
        assert_eq!(asked.header(name), "", "{name}");
    }
    assert!(!format!("{asked:?}").contains(BEARER));
}

#[tokio::test]
async fn each_service_has_its_own_paths_and_form_of_key() {
    let fake = Fake::start(|_| json(200, "{}")).await;
    let all = [Provider::Anthropic, Provider::OpenAi, Provider::OpenRouter];
    let world = World::start(all.map(|provider| with_key(provider, &fake)).into()).await;
    for line in [
        "POST /openai/v1/responses",
        "POST /openai/v1/chat/completions",
        "GET /openai/v1/models",
        "POST /openrouter/api/v1/messages",
        "POST /openrouter/api/v1/responses",
        "HEAD /anthropic",
        "HEAD /anthropic/",
        "GET /anthropic/v1/models/claude-x",
        "POST /anthropic/v1/messages/count_tokens",
    ] {
        assert_eq!(world.ask(line, "", "").await.status, 200, "{line}");
    }
    let asked = fake.asked();
    assert_eq!(asked[0].line, "POST /v1/responses");
    assert_eq!(asked[0].header("authorization"), format!("Bearer {KEY}"));
    assert_eq!(asked[3].line, "POST /api/v1/messages");
    assert_eq!(asked[6].line, "HEAD /");
}

#[tokio::test]
async fn an_event_passes_while_the_answer_is_still_open() {
    let (answer, send, _gone) = events();
    let once = Once::new(vec![answer]);
    let fake = Fake::start(move |_| once.take()).await;
    let world = World::start(vec![with_key(Provider::Anthropic, &fake)]).await;
    let mut stream = world.connect().await;
    stream.write_all(request("POST /anthropic/v1/messages", "", "{}").as_bytes()).await.unwrap();
    for piece in ["data: {\"n\":1}\n\n", "data: {\"n\":2}\n\n"] {
        send.send(Bytes::from(piece)).unwrap();
        // Nothing else is sent until this has come.
        read_until(&mut stream, piece).await;
    }
    drop(send);
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    assert!(rest.ends_with("0\r\n\r\n"), "{rest}");
}

#[tokio::test]
async fn a_body_in_chunks_is_framed_anew() {
    let fake = Fake::start(|_| json(200, "{}")).await;
    let world = World::start(vec![with_key(Provider::Anthropic, &fake)]).await;
    let head = request("POST /anthropic/v1/messages", "Transfer-Encoding: chunked\r\n", "")
        .replace("Content-Length: 0\r\n", "");
    let told =
        world.raw(format!("{head}3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nX-Trailer: 1\r\n\r\n").as_bytes()).await;
    assert_eq!(told.status, 200);
    let [asked] = &fake.asked()[..] else { panic!("one request") };
    assert_eq!(asked.body, "abcdefg");
    assert_eq!((asked.header("content-length"), asked.header("transfer-encoding")), ("7", ""));
}

#[tokio::test]
async fn a_large_body_is_passed_on_as_it_comes() {
    let fake = Fake::start(|asked| json(200, &format!("{{\"length\":{}}}", asked.body.len()))).await;
    let world = World::start(vec![with_key(Provider::Anthropic, &fake)]).await;
    let body = "x".repeat(3 * 1024 * 1024);
    let told = world.ask("POST /anthropic/v1/messages", "", &body).await;
    assert_eq!(told.body, "{\"length\":3145728}");
    let head = request("POST /anthropic/v1/messages", "Transfer-Encoding: chunked\r\n", "")
        .replace("Content-Length: 0\r\n", "");
    let told = world.raw(format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).as_bytes()).await;
    assert_eq!(told.body, "{\"length\":3145728}");
    let framing = |n: usize| fake.asked()[n].headers.clone();
    assert_eq!(framing(0).get("content-length").unwrap(), "3145728");
    assert_eq!(framing(1).get("transfer-encoding").unwrap(), "chunked");
}

#[tokio::test]
async fn a_client_that_waits_for_a_go_ahead_gets_it_from_the_proxy() {
    let fake = Fake::start(|_| json(200, "{}")).await;
    let world = World::start(vec![with_key(Provider::Anthropic, &fake)]).await;
    let mut stream = world.connect().await;
    let text = request("POST /anthropic/v1/messages", "Expect: 100-continue\r\n", "{\"a\":1}");
    let (head, body) = text.split_at(text.len() - 7);
    stream.write_all(head.as_bytes()).await.unwrap();
    read_until(&mut stream, "HTTP/1.1 100 Continue\r\n\r\n").await;
    stream.write_all(body.as_bytes()).await.unwrap();
    assert_eq!(Told::read(stream).await.status, 200);
    assert_eq!(fake.asked()[0].header("expect"), "");
}

#[tokio::test]
async fn errors_of_a_service_pass_as_they_are() {
    let fake = Fake::start(|_| answer(529, "application/json", "{\"type\":\"error\"}")).await;
    let world = World::start(vec![with_key(Provider::Anthropic, &fake)]).await;
    let told = world.message().await;
    assert_eq!((told.status.as_u16(), told.body.as_str()), (529, "{\"type\":\"error\"}"));
    assert_eq!(fake.asked().len(), 1, "nothing is repeated");
}

#[tokio::test]
async fn a_client_that_goes_away_ends_the_answer() {
    let (answer, send, gone) = events();
    let once = Once::new(vec![answer]);
    let fake = Fake::start(move |_| once.take()).await;
    let world = World::start(vec![with_key(Provider::Anthropic, &fake)]).await;
    let mut stream = world.connect().await;
    stream.write_all(request("POST /anthropic/v1/messages", "", "{}").as_bytes()).await.unwrap();
    let start = "data: {\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":9}}}\n\n";
    send.send(Bytes::from(start)).unwrap();
    read_until(&mut stream, start).await;
    drop(stream);
    // Its body is dropped though the service itself did not end it.
    gone.await.unwrap_err();
    let [record] = &world.recorded(1).await[..] else { panic!("one record") };
    assert_eq!(
        (&record["reason"], &record["in"], &record["status"]),
        (&"client-gone".into(), &9.into(), &200.into())
    );
}

#[tokio::test]
async fn a_client_that_goes_away_before_the_answer_ends_the_request() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let fake = Fake::start(|_| json(200, "{}")).await;
    let url = format!("http://{}", listener.local_addr().unwrap());
    let service = crate::world::at(&url, with_key(Provider::Anthropic, &fake));
    let world = World::start(vec![service]).await;
    let mut stream = world.connect().await;
    stream.write_all(request("POST /anthropic/v1/messages", "", "{}").as_bytes()).await.unwrap();
    let (mut service, _) = listener.accept().await.unwrap();
    read_until(&mut service, "\r\n\r\n{}").await;
    drop(stream);
    let mut rest = Vec::new();
    assert_eq!(service.read_to_end(&mut rest).await.unwrap_or(0), 0);
    assert_eq!(world.recorded(1).await[0]["reason"], "client-gone");
}

#[tokio::test]
async fn a_port_of_the_loopback_serves_too() {
    let fake = Fake::start(|_| json(200, "{}")).await;
    let tmp = tempfile::tempdir().unwrap();
    let service = with_key(Provider::Anthropic, &fake);
    let mut options =
        crate::world::options(tmp.path(), vec![service], Setting::new(), crate::world::frozen());
    options.peers[0].listen = Endpoint::Loopback(0);
    let server = Server::bind(options).unwrap();
    let Endpoint::Loopback(port) = server.endpoints()[0] else { panic!("{:?}", server.endpoints()) };
    tokio::spawn(server.run(std::future::pending()));
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(request("GET /anthropic/v1/models", "", "").as_bytes()).await.unwrap();
    assert_eq!(Told::read(stream).await.status, 200);
}
