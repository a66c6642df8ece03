//! The credentials: where they are found, how a login is renewed, and what a request gets of them.
//!
//! A login is a file that its own tool writes too. Its refresh token works once, so renewing is done by one at a time
//! in this process and, by a lock file, on this host; whoever gets the lock reads the file again first.

mod document;
mod file;
mod login;
mod oauth;
mod source;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use secrecy::SecretString;

use super::refusal::Refusal;
use super::upstream::Upstream;

pub use oauth::Oauth;
pub use source::NoCredential;

use login::Login;

/// A credential for a service. Debug output shows no secret.
pub struct Credential {
    kind: Kind,
}

enum Kind {
    /// It stays as it is.
    Fixed { scheme: Scheme, secret: SecretString },
    /// It is renewed.
    Login { scheme: Scheme, login: Arc<Login> },
}

/// How a credential is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    /// `x-api-key`.
    ApiKey,
    /// `Authorization: Bearer`.
    Bearer,
    /// The same with the value of `anthropic-beta` that goes with a login.
    AnthropicLogin,
}

/// What one request sends.
#[derive(Debug)]
pub(super) struct Grant {
    pub(super) scheme: Scheme,
    pub(super) secret: SecretString,
    pub(super) account: Option<String>,
    /// Which token of a login this is; `None` for what cannot be renewed.
    pub(super) version: Option<u64>,
}

impl Credential {
    /// What a request sends now; a login is renewed first if that is due.
    ///
    /// # Errors
    /// The login cannot be used: [`Refusal::LoginRequired`], [`Refusal::Renewal`], [`Refusal::BadTokenUrl`].
    pub(super) async fn grant(&self, upstream: &Arc<Upstream>) -> Result<Grant, Refusal> {
        match &self.kind {
            Kind::Fixed { scheme, secret } => {
                Ok(Grant { scheme: *scheme, secret: secret.clone(), account: None, version: None })
            }
            Kind::Login { scheme, login } => {
                let token = login.token(upstream).await?;
                Ok(Grant {
                    scheme: *scheme,
                    secret: token.access,
                    account: token.account,
                    version: Some(token.version),
                })
            }
        }
    }

    /// The service refused what this grant holds.
    pub(super) fn reject(&self, grant: &Grant, upstream: &Upstream) {
        if let (Kind::Login { login, .. }, Some(version)) = (&self.kind, grant.version) {
            login.reject(version, upstream.now());
        }
    }

    /// Renews ahead of time until there is nothing left to renew.
    pub(super) async fn keep_fresh(self: Arc<Self>, upstream: Arc<Upstream>) {
        if let Kind::Login { login, .. } = &self.kind {
            login.keep_fresh(&upstream).await;
        }
    }

    /// The file of a login.
    pub(super) fn file(&self) -> Option<&Path> {
        match &self.kind {
            Kind::Fixed { .. } => None,
            Kind::Login { login, .. } => Some(login.path()),
        }
    }

    /// Where it is renewed.
    pub(super) fn token_urls(&self) -> &[String] {
        match &self.kind {
            Kind::Fixed { .. } => &[],
            Kind::Login { login, .. } => login.token_urls(),
        }
    }

    /// Waits until no renewal is under way.
    pub(super) async fn settled(&self) {
        if let Kind::Login { login, .. } = &self.kind {
            login.settled().await;
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Fixed { scheme, .. } => {
                f.debug_struct("Fixed").field("scheme", scheme).finish_non_exhaustive()
            }
            Kind::Login { scheme, login } => f
                .debug_struct("Login")
                .field("scheme", scheme)
                .field("file", &login.path())
                .finish_non_exhaustive(),
        }
    }
}
