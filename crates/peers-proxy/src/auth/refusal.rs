//! Why a request is not answered by its service, and what the peer is told instead.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde_json::json;
use thiserror::Error;

/// A request that this proxy answers itself. No variant holds text of a credential or of a token endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum Refusal {
    #[error("malformed request: {0}")]
    Malformed(&'static str),
    #[error("the request head is too large")]
    HeadTooLarge,
    #[error("the request did not arrive in time")]
    Slow,
    #[error("the bearer of this run is missing or wrong")]
    Bearer,
    #[error("this path is not allowed; the operator can add a route")]
    Route,
    #[error("the request body is larger than {0} bytes")]
    BodyTooLarge(u64),
    #[error("the token budget of this run is used up")]
    Budget,
    #[error("too many requests at once")]
    Busy,
    #[error("the login expired or was revoked; {0}")]
    LoginRequired(String),
    #[error("cannot renew the login: {why}")]
    Renewal { why: String, retry: Duration },
    #[error("cannot renew the login: {0}; check AUTH_PROXY_OAUTH_TOKEN_URL")]
    BadTokenUrl(super::service_url::BadUrl),
    #[error("the credential holds characters that no header can carry")]
    Credential,
    #[error("cannot reach the service: {0}")]
    Dial(String),
    #[error("the service failed: {0}")]
    Upstream(String),
    #[error("the service did not answer in time")]
    Silent,
    /// Nobody is left to be told.
    #[error("the client went away")]
    ClientGone,
}

impl Refusal {
    /// The word for records and for the client.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "malformed",
            Self::HeadTooLarge => "head-too-large",
            Self::Slow => "timeout",
            Self::Bearer => "bearer",
            Self::Route => "route",
            Self::BodyTooLarge(_) => "body-too-large",
            Self::Budget => "budget_exhausted",
            Self::Busy => "busy",
            Self::LoginRequired(_) => "login-required",
            Self::Renewal { .. } => "refresh",
            Self::BadTokenUrl(_) => "bad-token-url",
            Self::Credential => "bad-credential",
            Self::Dial(_) => "dial",
            Self::Upstream(_) => "upstream",
            Self::Silent => "upstream-timeout",
            Self::ClientGone => "client-gone",
        }
    }

    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Malformed(_) | Self::ClientGone => StatusCode::BAD_REQUEST,
            Self::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Bearer | Self::LoginRequired(_) => StatusCode::UNAUTHORIZED,
            Self::Route => StatusCode::FORBIDDEN,
            Self::BodyTooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Budget => StatusCode::TOO_MANY_REQUESTS,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Renewal { .. }
            | Self::BadTokenUrl(_)
            | Self::Credential
            | Self::Dial(_)
            | Self::Upstream(_) => StatusCode::BAD_GATEWAY,
            Self::Silent => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    pub(super) fn response(&self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(Bytes::from(self.body())));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = self.retry_after() {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if matches!(self, Self::Budget | Self::LoginRequired(_)) {
            // The tools repeat a 429 for minutes unless they are told that it is final.
            headers.insert("x-should-retry", HeaderValue::from_static("false"));
        }
        response
    }

    /// The same answer as bytes, for connections on which no request was read.
    pub(super) fn raw(&self) -> String {
        let (status, body) = (self.status(), self.body());
        let retry = self.retry_after().map(|s| format!("retry-after: {s}\r\n")).unwrap_or_default();
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{retry}content-length: {}\r\n\
             connection: close\r\n\r\n{body}",
            body.len()
        )
    }

    fn body(&self) -> String {
        let message = format!("peers: {self}");
        json!({ "type": "error", "error": { "type": self.code(), "message": message } }).to_string()
    }

    fn retry_after(&self) -> Option<u64> {
        match self {
            Self::Busy => Some(1),
            Self::Renewal { retry, .. } => Some(retry.as_secs().max(1)),
            _ => None,
        }
    }
}
