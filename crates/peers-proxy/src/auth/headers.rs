//! Which headers cross the proxy, and the credential that is added.

use hyper::HeaderMap;
use hyper::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, FORWARDED, HOST, HeaderName,
    HeaderValue, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use secrecy::ExposeSecret;

use super::credential::{Grant, Scheme};
use super::refusal::Refusal;

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const BETA: HeaderName = HeaderName::from_static("anthropic-beta");
const ACCOUNT: HeaderName = HeaderName::from_static("chatgpt-account-id");
/// The value of `anthropic-beta` without which the service takes no login.
const OAUTH_BETA: &str = "oauth-2025-04-20";

/// Those of one connection, besides what `Connection` names.
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("proxy-authenticate"),
    HeaderName::from_static("proxy-authorization"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Those of a request that the proxy makes itself or that nobody should see.
const NOT_FORWARDED: [HeaderName; 9] = [
    HOST,
    AUTHORIZATION,
    API_KEY,
    ACCOUNT,
    COOKIE,
    FORWARDED,
    EXPECT,
    CONTENT_LENGTH,
    // Only plain extensions can be read: usage is metered beside the way of the bytes.
    HeaderName::from_static("sec-websocket-extensions"),
];

/// What becomes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handshake {
    /// It carries one answer.
    None,
    /// It becomes a WebSocket.
    WebSocket,
}

/// The bearers that a client may mean: of `Authorization` and of `x-api-key`.
pub(super) fn shown_bearers(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let authorization = headers.get_all(AUTHORIZATION).into_iter().filter_map(|value| {
        let (scheme, token) = value.as_bytes().split_at_checked(7)?;
        scheme.eq_ignore_ascii_case(b"bearer ").then_some(token)
    });
    authorization.chain(headers.get_all(API_KEY).into_iter().map(HeaderValue::as_bytes))
}

/// Whether a client asks for a WebSocket.
pub(super) fn asks_for_websocket(headers: &HeaderMap) -> bool {
    let named =
        headers.get_all(CONNECTION).into_iter().any(|value| names(value).any(|name| name == "upgrade"));
    named && headers.get(UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// The headers of a request as the service gets them, still without credential.
pub(super) fn clean_request(headers: &mut HeaderMap, handshake: Handshake) {
    remove_hop_by_hop(headers);
    for name in NOT_FORWARDED {
        headers.remove(name);
    }
    let forged: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with("x-forwarded-")).cloned().collect();
    for name in forged {
        headers.remove(name);
    }
    // Usage is read from the answer, which therefore must not be compressed.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if handshake == Handshake::WebSocket {
        shake(headers);
    }
}

/// The headers of an answer as the client gets them.
pub(super) fn clean_answer(headers: &mut HeaderMap, handshake: Handshake) {
    remove_hop_by_hop(headers);
    headers.remove(SET_COOKIE);
    if handshake == Handshake::WebSocket {
        shake(headers);
    }
}

/// Adds the credential.
///
/// # Errors
/// [`Refusal::Credential`].
pub(super) fn add_credential(headers: &mut HeaderMap, grant: &Grant) -> Result<(), Refusal> {
    let secret = |text: &str| {
        let mut value = HeaderValue::from_str(text).map_err(|_| Refusal::Credential)?;
        value.set_sensitive(true);
        Ok(value)
    };
    let token = grant.secret.expose_secret();
    match grant.scheme {
        Scheme::ApiKey => {
            headers.insert(API_KEY, secret(token)?);
        }
        Scheme::Bearer => {
            headers.insert(AUTHORIZATION, secret(&format!("Bearer {token}"))?);
        }
        Scheme::AnthropicLogin => {
            headers.insert(AUTHORIZATION, secret(&format!("Bearer {token}"))?);
            let mut betas: Vec<&str> =
                headers.get_all(BETA).into_iter().filter_map(|value| value.to_str().ok()).collect();
            if !betas.iter().flat_map(|value| value.split(',')).any(|beta| beta.trim() == OAUTH_BETA) {
                betas.push(OAUTH_BETA);
            }
            let betas = HeaderValue::from_str(&betas.join(",")).map_err(|_| Refusal::Credential)?;
            headers.insert(BETA, betas);
        }
    }
    if let Some(account) = &grant.account {
        headers.insert(ACCOUNT, secret(account)?);
    }
    Ok(())
}

fn shake(headers: &mut HeaderMap) {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<String> = headers.get_all(CONNECTION).into_iter().flat_map(names).collect();
    for name in named {
        headers.remove(name.as_str());
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}

fn names(value: &HeaderValue) -> impl Iterator<Item = String> {
    let text = value.to_str().unwrap_or_default();
    text.split(',').map(|name| name.trim().to_ascii_lowercase()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let value = |text| HeaderValue::from_static(text);
        pairs.iter().map(|(name, text)| (HeaderName::from_static(name), value(text))).collect()
    }

    fn left(headers: &HeaderMap) -> Vec<String> {
        let mut all: Vec<_> =
            headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        all.sort();
        all
    }

    fn grant(scheme: Scheme, account: Option<&str>) -> Grant {
        Grant { secret: "s3cret".into(), scheme, account: account.map(str::to_owned), version: None }
    }

    #[test]
    fn what_belongs_to_the_connection_or_to_the_peer_is_not_forwarded() {
        let mut all = headers(&[
            ("host", "127.0.0.1:8080"),
            ("authorization", "Bearer run"),
            ("x-api-key", "run"),
            ("chatgpt-account-id", "other"),
            ("cookie", "a=b"),
            ("connection", "keep-alive, X-Private"),
            ("connection", "x-second"),
            ("x-private", "1"),
            ("x-second", "2"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("trailer", "x"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("proxy-authorization", "x"),
            ("forwarded", "for=1"),
            ("x-forwarded-for", "1"),
            ("x-forwarded-host", "h"),
            ("content-length", "5"),
            ("expect", "100-continue"),
            ("accept-encoding", "gzip"),
            ("anthropic-version", "2023-06-01"),
            ("content-type", "application/json"),
        ]);
        clean_request(&mut all, Handshake::None);
        assert_eq!(
            left(&all),
            ["accept-encoding: identity", "anthropic-version: 2023-06-01", "content-type: application/json"]
        );
    }

    #[test]
    fn a_handshake_keeps_its_key_and_loses_compression() {
        let mut all = headers(&[
            ("connection", "Upgrade"),
            ("upgrade", "WebSocket"),
            ("sec-websocket-key", "k"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-extensions", "permessage-deflate"),
        ]);
        assert!(asks_for_websocket(&all));
        clean_request(&mut all, Handshake::WebSocket);
        let expected = [
            "accept-encoding: identity",
            "connection: upgrade",
            "sec-websocket-key: k",
            "sec-websocket-version: 13",
            "upgrade: websocket",
        ];
        assert_eq!(left(&all), expected);
        assert!(!asks_for_websocket(&headers(&[("upgrade", "websocket")])));
        assert!(!asks_for_websocket(&headers(&[("upgrade", "h2c"), ("connection", "upgrade")])));
    }

    #[test]
    fn an_answer_loses_cookies() {
        let mut all = headers(&[
            ("set-cookie", "a=b"),
            ("set-cookie", "c=d"),
            ("transfer-encoding", "chunked"),
            ("request-id", "r"),
        ]);
        clean_answer(&mut all, Handshake::None);
        assert_eq!(left(&all), ["request-id: r"]);
    }

    #[test]
    fn a_credential_takes_the_form_that_its_service_expects() {
        let mut all = HeaderMap::new();
        add_credential(&mut all, &grant(Scheme::ApiKey, None)).unwrap();
        assert_eq!(left(&all), ["x-api-key: s3cret"]);
        let mut all = HeaderMap::new();
        add_credential(&mut all, &grant(Scheme::Bearer, Some("acc"))).unwrap();
        assert_eq!(left(&all), ["authorization: Bearer s3cret", "chatgpt-account-id: acc"]);
        assert!(!format!("{all:?}").contains("s3cret"));
    }

    #[test]
    fn a_login_adds_its_beta_once_and_keeps_the_others() {
        let cases: [(&[(&str, &str)], &str); 4] = [
            (&[], "oauth-2025-04-20"),
            (&[("anthropic-beta", "a,b")], "a,b,oauth-2025-04-20"),
            (&[("anthropic-beta", "a"), ("anthropic-beta", "b")], "a,b,oauth-2025-04-20"),
            (&[("anthropic-beta", "a, oauth-2025-04-20")], "a, oauth-2025-04-20"),
        ];
        for (given, expected) in cases {
            let mut all = headers(given);
            add_credential(&mut all, &grant(Scheme::AnthropicLogin, None)).unwrap();
            let betas: Vec<_> = all.get_all("anthropic-beta").into_iter().collect();
            assert_eq!(betas, [expected], "{given:?}");
        }
    }

    #[test]
    fn bearers_are_found_in_both_headers() {
        let all =
            headers(&[("authorization", "bEARER one"), ("authorization", "Basic x"), ("x-api-key", "two")]);
        assert_eq!(shown_bearers(&all).collect::<Vec<_>>(), [b"one", b"two"]);
    }
}
