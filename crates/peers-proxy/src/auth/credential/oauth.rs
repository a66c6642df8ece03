//! Asking a token endpoint for new tokens.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode};
use peers_sys::env::Env;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::time::timeout;

use super::document::Fresh;
use crate::auth::provider::Provider;
use crate::auth::service_url::{BadUrl, PlainHttp, ServiceUrl};
use crate::auth::upstream::{Unreachable, Upstream};

/// The most bytes of an answer.
const ANSWER: usize = 1024 * 1024;
/// For the whole exchange.
const PATIENCE: Duration = Duration::from_secs(30);
/// Characters of an error code.
const CODE: usize = 40;
/// Codes that say that only a new login helps.
const FINAL: [&str; 4] =
    ["invalid_grant", "refresh_token_expired", "refresh_token_reused", "refresh_token_invalidated"];

/// Where and as whom logins are renewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oauth {
    /// The token endpoints. A later one is asked if the one before cannot be reached or does not exist.
    pub urls: Vec<String>,
    /// The public client id of the tool whose login it is.
    pub client_id: String,
    /// Whether an endpoint may be plain HTTP.
    pub plain: PlainHttp,
}

/// Why there are no new tokens.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum Failure {
    #[error("the login is no longer valid")]
    Login,
    #[error(transparent)]
    BadUrl(#[from] BadUrl),
    #[error("{0}")]
    Network(String),
    #[error("the token endpoint answered {status} `{code}`")]
    Status { status: u16, code: String },
    #[error("the answer of the token endpoint holds no token")]
    NoToken,
    #[error("{0}")]
    File(String),
}

/// Whether another endpoint may be asked. One that took the request may have used the refresh token up.
enum Attempt {
    Elsewhere(Failure),
    Ended(Failure),
}

#[derive(Deserialize)]
struct Answer {
    access_token: String,
    refresh_token: Option<String>,
    id_token: Option<String>,
    expires_in: Option<u64>,
}

impl Oauth {
    /// The usual endpoints of `provider`. `AUTH_PROXY_OAUTH_TOKEN_URL` replaces them;
    /// `AUTH_PROXY_OAUTH_ALLOW_LOOPBACK` allows plain HTTP to the loopback.
    #[must_use]
    pub fn new(provider: Provider, env: &Env) -> Self {
        let urls = match env.text("AUTH_PROXY_OAUTH_TOKEN_URL") {
            Some(url) => vec![url.to_owned()],
            None => provider.token_urls().iter().map(|url| (*url).to_owned()).collect(),
        };
        let plain = if env.switch("AUTH_PROXY_OAUTH_ALLOW_LOOPBACK") {
            PlainHttp::Loopback
        } else {
            PlainHttp::Refused
        };
        Self { urls, client_id: provider.client_id().to_owned(), plain }
    }

    /// Trades a refresh token for new tokens. The old one may be used up afterwards, also if this fails.
    pub(super) async fn renew(&self, upstream: &Upstream, refresh: &SecretString) -> Result<Fresh, Failure> {
        let body = json!({
            "grant_type": "refresh_token",
            "refresh_token": refresh.expose_secret(),
            "client_id": self.client_id,
        });
        let body = Bytes::from(body.to_string());
        let mut last = Failure::Network("no token endpoint is known".to_owned());
        for url in &self.urls {
            let endpoint = ServiceUrl::parse(url, self.plain)?;
            let asked = timeout(PATIENCE, ask(upstream, &endpoint, body.clone())).await;
            match asked.unwrap_or_else(|_late| Err(Attempt::Ended(Failure::Network("timed out".to_owned()))))
            {
                Ok(fresh) => return Ok(fresh),
                Err(Attempt::Elsewhere(failure)) => last = failure,
                Err(Attempt::Ended(failure)) => return Err(failure),
            }
        }
        Err(last)
    }
}

async fn ask(upstream: &Upstream, endpoint: &ServiceUrl, body: Bytes) -> Result<Fresh, Attempt> {
    let network = |error: &dyn std::error::Error| Failure::Network(error.to_string());
    let mut opened =
        upstream.open(endpoint).await.map_err(|error: Unreachable| Attempt::Elsewhere(network(&error)))?;
    let request = Request::post(endpoint.path())
        .header(HOST, endpoint.authority())
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json")
        .body(Full::new(body))
        .map_err(|error| Attempt::Ended(network(&error)))?;
    let answer =
        opened.sender.send_request(request).await.map_err(|error| Attempt::Ended(network(&error)))?;
    let status = answer.status();
    if status.is_redirection()
        || matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::GONE)
    {
        let code = "not a token endpoint".to_owned();
        return Err(Attempt::Elsewhere(Failure::Status { status: status.as_u16(), code }));
    }
    let read = Limited::new(answer.into_body(), ANSWER).collect().await;
    // The text may hold tokens: nothing of it goes into an error.
    let text =
        read.map_err(|_| Attempt::Ended(Failure::Network("the answer broke off or is too long".to_owned())))?;
    let text = text.to_bytes();
    if status.is_success() {
        return fresh(&text).ok_or(Attempt::Ended(Failure::NoToken));
    }
    let code = code(&text);
    let refused = status.is_client_error() && FINAL.contains(&code.as_str());
    Err(Attempt::Ended(if refused {
        Failure::Login
    } else {
        Failure::Status { status: status.as_u16(), code }
    }))
}

fn fresh(text: &[u8]) -> Option<Fresh> {
    let Answer { access_token, refresh_token, id_token, expires_in } = serde_json::from_slice(text).ok()?;
    let given = |token: Option<String>| token.filter(|token| !token.is_empty()).map(SecretString::from);
    Some(Fresh {
        access: given(Some(access_token))?,
        refresh: given(refresh_token),
        id: given(id_token),
        lifetime: expires_in.map(Duration::from_secs),
    })
}

/// The `error` of an answer, or the `code` within it; only if it is a plain word.
fn code(text: &[u8]) -> String {
    let answer: Value = serde_json::from_slice(text).unwrap_or_default();
    let error = answer.get("error").unwrap_or(&Value::Null);
    let code = error.as_str().or_else(|| error.get("code").and_then(Value::as_str)).unwrap_or_default();
    let plain = |b: u8| b.is_ascii_lowercase() || b == b'_';
    if (1..=CODE).contains(&code.len()) && code.bytes().all(plain) {
        code.to_owned()
    } else {
        "unknown".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_error_only_a_plain_code_is_kept() {
        for (text, expected) in [
            (r#"{"error":"invalid_grant","error_description":"token sk-ant-x"}"#, "invalid_grant"),
            (r#"{"error":{"code":"refresh_token_reused","message":"m"}}"#, "refresh_token_reused"),
            (r#"{"error":"sk-ant-123"}"#, "unknown"),
            (r#"{"error":{"message":"m"}}"#, "unknown"),
            ("<html>", "unknown"),
            ("", "unknown"),
        ] {
            assert_eq!(code(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(code(format!(r#"{{"error":"{}"}}"#, "a".repeat(CODE + 1)).as_bytes()), "unknown");
    }

    #[test]
    fn an_answer_without_an_access_token_is_none() {
        for text in ["", "{}", r#"{"access_token":""}"#, r#"{"access_token":5}"#] {
            assert!(fresh(text.as_bytes()).is_none(), "{text}");
        }
        let fresh = fresh(br#"{"access_token":"a","refresh_token":"","expires_in":60}"#).unwrap();
        assert!(fresh.refresh.is_none());
        assert_eq!(fresh.lifetime, Some(Duration::from_mins(1)));
    }

    #[test]
    fn the_environment_replaces_the_endpoints() {
        let none: [(&str, &str); 0] = [];
        let usual = Oauth::new(Provider::Anthropic, &Env::from_pairs(none));
        assert_eq!((usual.urls.len(), usual.plain), (2, PlainHttp::Refused));
        assert!(usual.urls.iter().all(|url| ServiceUrl::parse(url, usual.plain).is_ok()));
        let env = Env::from_pairs([
            ("AUTH_PROXY_OAUTH_TOKEN_URL", "http://127.0.0.1:9/t"),
            ("AUTH_PROXY_OAUTH_ALLOW_LOOPBACK", "1"),
        ]);
        let other = Oauth::new(Provider::Anthropic, &env);
        assert_eq!((other.urls, other.plain), (vec!["http://127.0.0.1:9/t".to_owned()], PlainHttp::Loopback));
    }
}
