//! Logins: renewed ahead of time, and once after a service refused them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use peers_proxy::auth::{Provider, Service};
use tokio::io::AsyncWriteExt;
use tokio::sync::Barrier;

use crate::fake::{Answer, Asked, Fake, Once, events, json};
use crate::world::{Setting, Told, World, request, with_key, with_login, with_oauth};

/// 2026-03-01T12:00:00Z, when all worlds begin.
const NOON: i64 = 1_772_366_400_000;
const HOUR: i64 = 3_600_000;

/// A login file that expires so long after noon.
pub(crate) fn login(access: &str, refresh: &str, hours: i64) -> String {
    let expires = NOON + hours * HOUR;
    format!(
        "{{\"other\": [1,  2],\n \"claudeAiOauth\": {{\"accessToken\": \"{access}\", \"refreshToken\": \"{refresh}\", \
         \"expiresAt\": {expires}, \"scopes\": [\"user:inference\"]}}}}\n"
    )
}

/// A token endpoint that gives `a1`, `r1`, then `a2`, `r2`, ...
fn tokens(count: &AtomicUsize) -> Answer {
    let n = count.fetch_add(1, Ordering::Relaxed) + 1;
    json(200, &format!("{{\"access_token\":\"a{n}\",\"refresh_token\":\"r{n}\",\"expires_in\":28800}}"))
}

/// A service that takes only the token of `good`, and renews logins.
async fn strict(good: &'static str) -> Fake {
    Fake::start(only(good)).await
}

fn only(good: &'static str) -> impl Fn(&Asked) -> Answer {
    let count = AtomicUsize::new(0);
    move |asked| match asked.line.as_str() {
        "POST /token" => tokens(&count),
        _ if asked.header("authorization") == format!("Bearer {good}") => json(200, "{}"),
        _ => json(401, "{\"type\":\"error\",\"error\":{\"type\":\"authentication_error\"}}"),
    }
}

/// The same, but the first connections are answered when there are so many of them.
async fn strict_to_a_crowd(good: &'static str, crowd: usize) -> Fake {
    let (count, all) = (AtomicUsize::new(0), Arc::new(Barrier::new(crowd)));
    Fake::start_with(only(good), move |stream| {
        let waits = (count.fetch_add(1, Ordering::Relaxed) < crowd).then(|| Arc::clone(&all));
        async move {
            if let Some(all) = waits {
                all.wait().await;
            }
            Some(stream)
        }
    })
    .await
}

struct Home {
    tmp: tempfile::TempDir,
    file: PathBuf,
}

fn home(text: &str) -> Home {
    let tmp = tempfile::tempdir().unwrap();
    std::fs::create_dir(tmp.path().join("home")).unwrap();
    let file = tmp.path().join("home/login.json");
    std::fs::write(&file, text).unwrap();
    Home { tmp, file }
}

impl Home {
    async fn world(self, fake: &Fake) -> World {
        let service = with_login(Provider::Anthropic, fake, &self.file, "/token");
        self.world_of(service).await
    }

    async fn world_of(self, service: Service) -> World {
        World::start_in(self.tmp, vec![service], Setting::new()).await
    }
}

fn in_file(world: &World) -> String {
    std::fs::read_to_string(world.tmp.path().join("home/login.json")).unwrap()
}

fn write(world: &World, text: &str) {
    std::fs::write(world.tmp.path().join("home/login.json"), text).unwrap();
}

fn renewals(fake: &Fake) -> usize {
    fake.count("POST /token")
}

#[tokio::test]
async fn a_login_is_sent_as_bearer_with_its_beta() {
    let fake = strict("a0").await;
    let world = home(&login("a0", "r0", 8)).world(&fake).await;
    let told = world.ask("POST /anthropic/v1/messages", "Anthropic-Beta: mine\r\n", "{}").await;
    assert_eq!(told.status, 200);
    let asked = &fake.asked()[0];
    assert_eq!(asked.header("anthropic-beta"), "mine,oauth-2025-04-20");
    assert_eq!(asked.header("x-api-key"), "");
    assert_eq!(renewals(&fake), 0);
}

#[tokio::test]
async fn a_refused_login_is_renewed_and_the_request_repeated_once() {
    let fake = strict("a1").await;
    let world = home(&login("a0", "r0", 8)).world(&fake).await;
    let told = world.ask("POST /anthropic/v1/messages", "", "{\"a\":1}").await;
    assert_eq!(told.status, 200);
    let asked = fake.asked();
    let lines: Vec<_> = asked.iter().map(|asked| asked.line.as_str()).collect();
    assert_eq!(lines, ["POST /v1/messages", "POST /token", "POST /v1/messages"]);
    assert_eq!(asked[0].body, asked[2].body);
    let sent: serde_json::Value = serde_json::from_slice(&asked[1].body).unwrap();
    let expected =
        serde_json::json!({"grant_type": "refresh_token", "refresh_token": "r0", "client_id": "client"});
    assert_eq!((sent, asked[1].header("content-type")), (expected, "application/json"));
    let expected = login("a1", "r1", 8);
    assert_eq!(in_file(&world), expected, "all other bytes stay, and the unit of the expiry too");
    assert_eq!(world.recorded(1).await.len(), 1, "one record for one request");
}

#[tokio::test]
async fn a_new_token_that_is_refused_too_is_not_renewed_again() {
    let fake = strict("never").await;
    let world = home(&login("a0", "r0", 8)).world(&fake).await;
    for _ in 0..3 {
        let told = world.message().await;
        assert_eq!((told.status.as_u16(), told.code().as_str()), (401, "authentication_error"));
    }
    assert_eq!((renewals(&fake), fake.count("POST /v1/messages")), (1, 4));
    // Later it may have been revoked.
    world.pass(Duration::from_mins(2));
    world.message().await;
    assert_eq!(renewals(&fake), 2);
}

#[tokio::test]
async fn a_late_refusal_of_an_old_token_says_nothing_of_the_new_one() {
    let fake = strict("a1").await;
    let world = home(&login("a0", "r0", 8)).world(&fake).await;
    let mut late = world.connect().await;
    let text = request("POST /anthropic/v1/messages", "", &"x".repeat(4 * 1024 * 1024));
    // The proxy has to pass this on to take it, so the token is chosen.
    late.write_all(&text.as_bytes()[..text.len() - 1]).await.unwrap();
    assert_eq!(world.message().await.status, 200);
    world.pass(Duration::from_mins(2));
    late.write_all(b"x").await.unwrap();
    assert_eq!(Told::read(late).await.status, 401);
    assert_eq!(world.message().await.status, 200);
    assert_eq!(renewals(&fake), 1);
}

#[tokio::test]
async fn twenty_refusals_at_once_are_one_renewal() {
    let fake = strict_to_a_crowd("a1", 20).await;
    let world = Arc::new(home(&login("a0", "r0", 8)).world(&fake).await);
    let all: Vec<_> = (0..20)
        .map(|_| {
            let world = Arc::clone(&world);
            tokio::spawn(async move { world.message().await.status })
        })
        .collect();
    for asked in all {
        assert_eq!(asked.await.unwrap(), 200);
    }
    assert_eq!(renewals(&fake), 1);
    let sent = |token: &str| {
        let asked = fake.asked();
        let with = asked.iter().filter(|asked| asked.header("authorization") == format!("Bearer {token}"));
        with.count()
    };
    assert_eq!((sent("a0"), sent("a1")), (20, 20), "each was refused once, and repeated once");
    assert_eq!(fake.asked().len(), 41);
}

#[tokio::test]
async fn what_another_process_renewed_is_taken_from_the_file() {
    let fake = strict("b9").await;
    let world = home(&login("a0", "r0", 8)).world(&fake).await;
    write(&world, &login("b9", "s9", 8));
    assert_eq!(world.message().await.status, 200);
    assert_eq!(renewals(&fake), 0);
    assert_eq!(in_file(&world), login("b9", "s9", 8));
}

#[tokio::test]
async fn a_body_that_cannot_be_repeated_leaves_the_second_try_to_the_client() {
    let fake = strict("a1").await;
    let world = home(&login("a0", "r0", 8)).world(&fake).await;
    let body = "x".repeat(2 * 1024 * 1024);
    assert_eq!(world.ask("POST /anthropic/v1/messages", "", &body).await.status, 401);
    assert_eq!(world.ask("POST /anthropic/v1/messages", "", &body).await.status, 200);
    assert_eq!(renewals(&fake), 1);
}

#[tokio::test]
async fn a_login_that_is_about_to_expire_is_renewed_at_the_start() {
    let fake = strict("a1").await;
    let text = login("a0", "r0", 0).replace(&NOON.to_string(), &(NOON + 5 * 60_000).to_string());
    let world = home(&text).world(&fake).await;
    while in_file(&world) == text {
        tokio::task::yield_now().await;
    }
    assert_eq!((renewals(&fake), fake.asked().len()), (1, 1), "without any request");
    assert_eq!(world.message().await.status, 200);
}

#[tokio::test]
async fn a_login_is_renewed_ten_minutes_ahead() {
    let fake = Fake::start({
        let count = AtomicUsize::new(0);
        move |asked| if asked.line == "POST /token" { tokens(&count) } else { json(200, "{}") }
    })
    .await;
    let world = home(&login("a0", "r0", 1)).world(&fake).await;
    world.message().await;
    world.pass(Duration::from_mins(48));
    world.message().await;
    assert_eq!(renewals(&fake), 0);
    world.pass(Duration::from_mins(4));
    world.message().await;
    assert_eq!(renewals(&fake), 1);
    assert_eq!(fake.asked().last().unwrap().header("authorization"), "Bearer a1");
}

#[tokio::test]
async fn a_token_that_lives_for_minutes_is_not_renewed_for_each_request() {
    let fake = Fake::start(|asked| match asked.line.as_str() {
        "POST /token" => json(200, "{\"access_token\":\"a1\",\"expires_in\":300}"),
        _ => json(200, "{}"),
    })
    .await;
    let world = home(&login("a0", "r0", -1)).world(&fake).await;
    for (wait, asked) in [(0, 1), (30, 1), (40, 2), (50, 2)] {
        world.pass(Duration::from_secs(wait));
        assert_eq!(world.message().await.status, 200);
        assert_eq!(renewals(&fake), asked, "after {wait} s more");
    }
    assert!(in_file(&world).contains("\"r0\""), "a refresh token that was not replaced stays");
}

#[tokio::test]
async fn a_login_that_is_gone_says_how_to_log_in_and_asks_only_once_in_a_while() {
    let fake = Fake::start(|asked| match asked.line.as_str() {
        "POST /token" => json(400, "{\"error\":\"invalid_grant\",\"error_description\":\"secret-text\"}"),
        _ if asked.header("authorization") == "Bearer again" => json(200, "{}"),
        _ => json(401, "{}"),
    })
    .await;
    let world = home(&login("a0", "r0", 8)).world(&fake).await;
    for _ in 0..3 {
        let told = world.message().await;
        assert_eq!((told.status.as_u16(), told.code().as_str()), (401, "login-required"));
        assert!(told.body.contains("/login") && !told.body.contains("secret-text"), "{}", told.body);
    }
    assert_eq!(world.reasons(), ["login-required"; 3]);
    assert_eq!(renewals(&fake), 1);
    world.pass(Duration::from_mins(14));
    world.message().await;
    assert_eq!(renewals(&fake), 1);
    world.pass(Duration::from_mins(2));
    world.message().await;
    assert_eq!(renewals(&fake), 2);
    // The operator logs in; nobody has to wait.
    write(&world, &login("again", "new", 8));
    assert_eq!(world.message().await.status, 200);
    assert_eq!(renewals(&fake), 2);
}

#[tokio::test]
async fn a_token_endpoint_that_fails_is_asked_less_and_less_while_the_token_serves() {
    let fake = Fake::start(|asked| match asked.line.as_str() {
        "POST /token" => json(503, "oops secret-text"),
        _ => json(200, "{}"),
    })
    .await;
    let world = home(&login("a0", "r0", 1)).world(&fake).await;
    assert_eq!(world.message().await.status, 200);
    world.pass(Duration::from_mins(55));
    for _ in 0..3 {
        assert_eq!(world.message().await.status, 200, "the token is good for five more minutes");
    }
    assert_eq!(renewals(&fake), 1);
    for (wait, asked) in [(1, 1), (1, 2), (3, 2), (1, 3)] {
        world.pass(Duration::from_secs(wait));
        assert_eq!(world.message().await.status, 200);
        assert_eq!(renewals(&fake), asked, "after {wait} s more");
    }
    world.pass(Duration::from_mins(6));
    world.message().await;
    let told = world.message().await;
    assert_eq!((told.status.as_u16(), told.code().as_str()), (502, "refresh"));
    assert!(told.head.contains("retry-after: ") && !told.body.contains("secret-text"), "{told:?}");
    assert_eq!(renewals(&fake), 4);
}

#[tokio::test]
async fn a_bad_token_url_is_an_answer_and_not_a_crash() {
    let fake = strict("a1").await;
    for url in ["http://token.example/", "not a url", "https://user:pw-secret@host.example/"] {
        let at_home = home(&login("a0", "r0", 8));
        let service = with_oauth(Provider::Anthropic, &fake, &at_home.file, vec![url.to_owned()]);
        let world = at_home.world_of(service).await;
        let told = world.message().await;
        assert_eq!((told.status.as_u16(), told.code().as_str()), (502, "bad-token-url"), "{url}");
        assert!(!told.body.contains("pw-secret"), "{}", told.body);
    }
}

#[tokio::test]
async fn the_second_endpoint_is_asked_if_the_first_is_not_there() {
    let count = AtomicUsize::new(0);
    let fake = Fake::start(move |asked| match asked.line.as_str() {
        "POST /gone" => json(404, "{}"),
        "POST /moved" => {
            let mut answer = json(307, "{}");
            answer.headers_mut().insert("location", "/elsewhere".parse().unwrap());
            answer
        }
        "POST /token" => tokens(&count),
        _ if asked.header("authorization") == "Bearer a1" => json(200, "{}"),
        _ => json(401, "{}"),
    })
    .await;
    let at_home = home(&login("a0", "r0", 8));
    let urls = ["/gone", "/moved", "/token"].map(|path| format!("{}{path}", fake.url()));
    let service = with_oauth(Provider::Anthropic, &fake, &at_home.file, urls.into());
    let world = at_home.world_of(service).await;
    assert_eq!(world.message().await.status, 200);
    assert_eq!((fake.count("POST /elsewhere"), fake.count("POST /moved"), renewals(&fake)), (0, 1, 1));
}

#[tokio::test]
async fn an_endpoint_that_took_the_token_is_the_last_one_asked() {
    let fake = Fake::start(|asked| match asked.line.as_str() {
        "POST /first" => json(500, "{}"),
        _ => json(401, "{}"),
    })
    .await;
    let at_home = home(&login("a0", "r0", 8));
    let urls = ["/first", "/token"].map(|path| format!("{}{path}", fake.url()));
    let service = with_oauth(Provider::Anthropic, &fake, &at_home.file, urls.into());
    let world = at_home.world_of(service).await;
    assert_eq!(world.message().await.code(), "refresh");
    assert_eq!(renewals(&fake), 0);
}

#[tokio::test]
async fn a_new_refresh_token_survives_the_client_that_asked_for_it() {
    let (answer, send, _gone) = events();
    let once = Once::new(vec![answer]);
    let fake = Fake::start(move |asked| match asked.line.as_str() {
        "POST /token" => once.take(),
        _ if asked.header("authorization") == "Bearer late" => json(200, "{}"),
        _ => json(401, "{}"),
    })
    .await;
    let mut world = home(&login("a0", "r0", 8)).world(&fake).await;
    let mut stream = world.connect().await;
    stream.write_all(request("POST /anthropic/v1/messages", "", "{}").as_bytes()).await.unwrap();
    while renewals(&fake) == 0 {
        tokio::task::yield_now().await;
    }
    drop(stream);
    world.recorded(1).await;
    send.send(bytes::Bytes::from(
        "{\"access_token\":\"late\",\"refresh_token\":\"r1\",\"expires_in\":28800}",
    ))
    .unwrap();
    drop(send);
    // Stopping waits for it too.
    world.stop().await;
    assert_eq!(in_file(&world), login("late", "r1", 8));
}

#[tokio::test]
async fn a_key_that_is_refused_is_refused() {
    let fake = Fake::start(|_: &Asked| json(401, "{}")).await;
    let world = World::start(vec![with_key(Provider::Anthropic, &fake)]).await;
    assert_eq!(world.message().await.status, 401);
    assert_eq!(fake.asked().len(), 1);
}

#[tokio::test]
async fn a_login_of_codex_is_sent_with_its_account_and_renewed() {
    let count = AtomicUsize::new(0);
    let fake = Fake::start(move |asked| match asked.line.as_str() {
        "POST /token" => {
            let n = count.fetch_add(1, Ordering::Relaxed) + 1;
            json(200, &format!("{{\"access_token\":\"a{n}\",\"refresh_token\":\"r{n}\"}}"))
        }
        _ if asked.header("authorization") != "Bearer a0" => json(200, "{}"),
        _ => json(401, "{}"),
    })
    .await;
    let text = "{\"OPENAI_API_KEY\":null,\"tokens\":{\"id_token\":\"i\",\"access_token\":\"a0\",\"refresh_token\":\"r0\",\
        \"account_id\":\"acc\"},\"last_refresh\":\"2026-02-28T12:00:00Z\"}";
    let at_home = home(text);
    let service = with_login(Provider::ChatGpt, &fake, &at_home.file, "/token");
    let world = at_home.world_of(service).await;
    let told =
        world.ask("POST /chatgpt/backend-api/codex/responses", "ChatGPT-Account-ID: other\r\n", "{}").await;
    assert_eq!(told.status, 200);
    let last = fake.asked().pop().unwrap();
    assert_eq!(
        (last.line.as_str(), last.header("chatgpt-account-id")),
        ("POST /backend-api/codex/responses", "acc")
    );
    let expected = text
        .replace("\"a0\"", "\"a1\"")
        .replace("\"r0\"", "\"r1\"")
        .replace("2026-02-28T12:00:00Z", "2026-03-01T12:00:00.000Z");
    assert_eq!(in_file(&world), expected);
    // It has no expiry: its age counts.
    world.pass(Duration::from_hours(8 * 24 - 1));
    world.ask("POST /chatgpt/backend-api/codex/responses", "", "{}").await;
    assert_eq!(renewals(&fake), 1);
    world.pass(Duration::from_hours(2));
    world.ask("POST /chatgpt/backend-api/codex/responses", "", "{}").await;
    assert_eq!(renewals(&fake), 2);
}

#[tokio::test]
async fn two_proxies_with_one_login_renew_it_once() {
    let fake = strict("a1").await;
    let first = home(&login("a0", "r0", 8)).world(&fake).await;
    let file = first.tmp.path().join("home/login.json");
    // The second one reads the login before the first one renews it.
    let second = World::start(vec![with_login(Provider::Anthropic, &fake, &file, "/token")]).await;
    assert_eq!(first.message().await.status, 200);
    assert_eq!(second.message().await.status, 200);
    assert_eq!(renewals(&fake), 1);
}
