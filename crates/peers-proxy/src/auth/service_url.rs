//! Where requests go: scheme, host, port and the beginning of the path.

use hyper::Uri;
use thiserror::Error;

/// Whether plain HTTP counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainHttp {
    /// Never.
    Refused,
    /// To exactly `127.0.0.1`, `[::1]` or `localhost`. The policy is not asked there.
    Loopback,
}

/// A URL that requests may go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceUrl {
    tls: bool,
    host: String,
    port: u16,
    path: String,
}

/// Why a URL is refused. The URL itself may hold a secret and is not repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the URL {0}")]
pub struct BadUrl(&'static str);

impl ServiceUrl {
    /// Reads `https://host[:port][/path]`, or `http://` to the loopback where `plain` allows it.
    ///
    /// # Errors
    /// [`BadUrl`] for other schemes, for user information and without a host.
    pub fn parse(url: &str, plain: PlainHttp) -> Result<Self, BadUrl> {
        let uri: Uri = url.parse().map_err(|_| BadUrl("is malformed"))?;
        let authority = uri.authority().ok_or(BadUrl("has no host"))?;
        if authority.as_str().contains('@') {
            return Err(BadUrl("contains user information"));
        }
        let host = authority.host();
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") if plain == PlainHttp::Loopback && is_loopback(host) => false,
            _ => return Err(BadUrl("is not https")),
        };
        let port = match (authority.port(), authority.port_u16()) {
            (None, _) if authority.as_str() == host => default_port(tls),
            (Some(_), Some(port)) if port > 0 => port,
            _ => return Err(BadUrl("has no valid port")),
        };
        if host.is_empty() {
            return Err(BadUrl("has no host"));
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Self { tls, host: host.to_owned(), port, path })
    }

    /// `https://host/`.
    pub(super) fn https(host: &str) -> Self {
        Self { tls: true, host: host.to_owned(), port: default_port(true), path: "/".to_owned() }
    }

    /// Whether the connection is encrypted; if not, the host is the loopback.
    pub(super) fn is_tls(&self) -> bool {
        self.tls
    }

    /// The host, an IPv6 address in brackets.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Path and query.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The value of the header `Host`.
    pub(super) fn authority(&self) -> String {
        if self.port == default_port(self.tls) {
            self.host.clone()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

fn default_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

fn is_loopback(host: &str) -> bool {
    matches!(host, "127.0.0.1" | "[::1]" | "localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_needs_a_host_and_no_user_information() {
        let good =
            ServiceUrl::parse("https://platform.claude.com/v1/oauth/token?a=b", PlainHttp::Refused).unwrap();
        assert_eq!(
            (good.host(), good.port(), good.path()),
            ("platform.claude.com", 443, "/v1/oauth/token?a=b")
        );
        assert_eq!(good.authority(), "platform.claude.com");
        let other = ServiceUrl::parse("https://h.example:8443", PlainHttp::Refused).unwrap();
        assert_eq!((other.authority().as_str(), other.path()), ("h.example:8443", "/"));
        for bad in [
            "",
            "https://",
            "/v1/token",
            "h.example",
            "ftp://h.example/",
            "https://user:pw@h.example/",
            "https://user@h.example/",
            "https://user@h.example:443/",
            "https://h.example:0/",
            "https://h.example:99999/",
            "https://h.example:/",
            "http://h.example/",
            "http://127.0.0.1/",
            "https://h example/",
        ] {
            assert!(ServiceUrl::parse(bad, PlainHttp::Refused).is_err(), "{bad}");
        }
    }

    #[test]
    fn plain_http_goes_to_the_exact_loopback_alone() {
        for good in ["http://127.0.0.1:9/t", "http://localhost/", "http://[::1]:9/"] {
            assert!(ServiceUrl::parse(good, PlainHttp::Loopback).is_ok(), "{good}");
        }
        for bad in [
            "http://127.0.0.2/",
            "http://localhost.example/",
            "http://127.0.0.1.example/",
            "http://a@127.0.0.1/",
        ] {
            assert!(ServiceUrl::parse(bad, PlainHttp::Loopback).is_err(), "{bad}");
        }
    }
}
