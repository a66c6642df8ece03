//! What a peer may ask of a service.

use std::str::FromStr;
use std::sync::Arc;

use hyper::Method;
use thiserror::Error;

use super::credential::Credential;
use super::provider::Provider;
use super::refusal::Refusal;
use super::service_url::ServiceUrl;

/// A service that peers may use, under the first part of their paths.
#[derive(Debug, Clone)]
pub struct Service {
    /// The first part of the path.
    pub name: String,
    /// Where requests go. Its path comes before what the peer asks for.
    pub url: ServiceUrl,
    /// What may be asked for; all else is refused.
    pub rules: Vec<Rule>,
    /// Whether a connection may become a WebSocket.
    pub websocket: bool,
    /// What is added to requests.
    pub credential: Arc<Credential>,
}

/// A method and the paths that it may ask for: `POST /v1/messages`, or `GET /v1/models/*` for all paths below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    method: Method,
    path: String,
    below: bool,
}

/// A text that is no rule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a method and a path, such as `POST /v1/messages` or `GET /v1/models/*`")]
pub struct InvalidRule(String);

impl Service {
    /// A known service, at its usual address.
    #[must_use]
    pub fn new(provider: Provider, credential: Arc<Credential>) -> Self {
        // That all rules of the table can be read is tested.
        let rules = provider.rules().iter().filter_map(|rule| rule.parse().ok()).collect();
        Self {
            name: provider.name().to_owned(),
            url: ServiceUrl::https(provider.host()),
            rules,
            websocket: provider.has_websocket(),
            credential,
        }
    }

    pub(super) fn allows(&self, method: &Method, path: &str) -> bool {
        self.rules.iter().any(|rule| rule.allows(method, path))
    }
}

impl Rule {
    fn allows(&self, method: &Method, path: &str) -> bool {
        let under = |rest: &str| self.below && rest.len() > 1 && rest.starts_with('/');
        *method == self.method
            && path
                .strip_prefix(&self.path)
                .is_some_and(|rest| if self.below { under(rest) } else { rest.is_empty() })
    }
}

impl FromStr for Rule {
    type Err = InvalidRule;

    fn from_str(text: &str) -> Result<Self, InvalidRule> {
        let invalid = || InvalidRule(text.chars().filter(|c| !c.is_control()).take(80).collect());
        let (method, path) = text.split_once(' ').ok_or_else(invalid)?;
        let (path, below) = path.strip_suffix("/*").map_or((path, false), |path| (path, true));
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| invalid())?;
        let plain = path.is_empty() && below || is_plain(path);
        if !plain || matches!(method, Method::CONNECT | Method::TRACE) {
            return Err(invalid());
        }
        Ok(Self { method, path: path.to_owned(), below })
    }
}

/// Splits `/service/path` into the name of the service and the path, which is at least `/`.
///
/// # Errors
/// [`Refusal::Malformed`] for a path that a service could read as another one: `..`, `//`, percent-encoding.
pub(super) fn split(path: &str) -> Result<(&str, &str), Refusal> {
    if !is_plain(path) {
        return Err(Refusal::Malformed("the path contains `..`, `//`, `%` or an unusual character"));
    }
    let path = path.strip_prefix('/').unwrap_or(path);
    let (name, rest) = path.split_at(path.find('/').unwrap_or(path.len()));
    Ok((name, if rest.is_empty() { "/" } else { rest }))
}

fn is_plain(path: &str) -> bool {
    let plain = |b: u8| {
        b.is_ascii_alphanumeric() || matches!(b, b'/' | b'-' | b'.' | b'_' | b'~' | b':' | b'@' | b'+')
    };
    let Some(rest) = path.strip_prefix('/') else { return false };
    let segments = || rest.strip_suffix('/').unwrap_or(rest).split('/');
    path.bytes().all(plain)
        && (rest.is_empty() || segments().all(|segment| !matches!(segment, "" | "." | "..")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(provider: Provider, request: &str) -> bool {
        let (method, path) = request.split_once(' ').unwrap();
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        provider.rules().iter().any(|rule| rule.parse::<Rule>().unwrap().allows(&method, path))
    }

    #[test]
    fn all_rules_of_the_table_can_be_read() {
        for provider in Provider::ALL {
            assert!(provider.rules().iter().all(|rule| rule.parse::<Rule>().is_ok()), "{provider:?}");
        }
    }

    #[test]
    fn the_table_allows_what_the_tools_ask_for_and_nothing_else() {
        use Provider::{Anthropic, ChatGpt, OpenAi, OpenRouter};
        for (provider, request) in [
            (Anthropic, "POST /v1/messages"),
            (Anthropic, "POST /v1/messages/count_tokens"),
            (Anthropic, "GET /v1/models"),
            (Anthropic, "GET /v1/models/claude-x"),
            (Anthropic, "HEAD /"),
            (OpenAi, "POST /v1/responses"),
            (OpenAi, "POST /v1/chat/completions"),
            (OpenAi, "GET /v1/models"),
            (ChatGpt, "POST /backend-api/codex/responses"),
            (ChatGpt, "GET /backend-api/codex/responses"),
            (ChatGpt, "GET /backend-api/codex/models"),
            (OpenRouter, "POST /api/v1/messages"),
            (OpenRouter, "POST /api/v1/responses"),
            (OpenRouter, "GET /api/v1/models/a/b:free"),
        ] {
            assert!(allows(provider, request), "{provider:?} {request}");
        }
        for (provider, request) in [
            (Anthropic, "GET /v1/messages"),
            (Anthropic, "POST /v1/messages/"),
            (Anthropic, "POST /v1/messages/batches"),
            (Anthropic, "POST /v1/complete"),
            (Anthropic, "GET /v1/modelsx"),
            (Anthropic, "GET /v1/models/"),
            (Anthropic, "GET /"),
            (Anthropic, "POST /v1/oauth/token"),
            (Anthropic, "GET /v1/organizations/me"),
            (OpenAi, "POST /v1/files"),
            (OpenAi, "GET /v1/responses"),
            (ChatGpt, "GET /backend-api/codex"),
            (ChatGpt, "GET /backend-api/me"),
            (ChatGpt, "POST /backend-api/codexx/responses"),
            (ChatGpt, "DELETE /backend-api/codex/responses"),
            (OpenRouter, "GET /api/v1/key"),
        ] {
            assert!(!allows(provider, request), "{provider:?} {request}");
        }
    }

    #[test]
    fn a_path_that_can_be_read_in_two_ways_is_refused() {
        assert_eq!(split("/anthropic/v1/messages"), Ok(("anthropic", "/v1/messages")));
        assert_eq!(split("/anthropic"), Ok(("anthropic", "/")));
        assert_eq!(split("/anthropic/"), Ok(("anthropic", "/")));
        assert_eq!(split("/"), Ok(("", "/")));
        for bad in [
            "",
            "*",
            "anthropic/v1",
            "//anthropic/v1",
            "/anthropic//v1",
            "/anthropic/v1//",
            "/anthropic/../x",
            "/anthropic/v1/messages/..",
            "/anthropic/./v1",
            "/anthropic/%2e%2e/x",
            "/anthropic/v1%2fmessages",
            "/anthropic/v1%2Fmessages",
            "/anthropic\\v1",
            "/anthropic/v1;x",
            "/anthropic/v1/messages%00",
        ] {
            assert!(split(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_rule_is_a_method_and_a_plain_path() {
        for bad in ["", "GET", "GET v1", "GET /a/../b", "CONNECT /a", "GET /a*b", "GET  /a", "G(T /a"] {
            assert!(bad.parse::<Rule>().is_err(), "{bad}");
        }
        assert!("GET /*".parse::<Rule>().unwrap().allows(&Method::GET, "/x/y"));
    }
}
