//! A login that is renewed: ahead of its expiry, and once after the service refused it.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use peers_model::Timestamp;
use peers_sys::FileLock;
use secrecy::{ExposeSecret, SecretString};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::document::{self, Fresh, Tokens};
use super::file::LoginFile;
use super::oauth::{Failure, Oauth};
use crate::auth::provider::Provider;
use crate::auth::refusal::Refusal;
use crate::auth::upstream::Upstream;

/// So long before its expiry a token is renewed, give or take [`JITTER`], so that not all proxies do it at once.
const AHEAD: Duration = Duration::from_mins(10);
const JITTER: Duration = Duration::from_mins(1);
/// After a login was refused for good, the endpoint is not asked for so long; the file is still looked at.
const CIRCUIT: Duration = Duration::from_mins(15);
/// The first and the longest wait after other failures.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(2), Duration::from_mins(5));
/// A token that is younger is not renewed, neither ahead of a near expiry nor because a service refuses it: a new one
/// would not help.
const YOUNG: Duration = Duration::from_mins(1);
/// The least time between two looks ahead.
const LOOK: Duration = Duration::from_secs(1);

/// A login of a tool.
pub(super) struct Login {
    provider: Provider,
    file: LoginFile,
    oauth: Oauth,
    /// Added to the due time.
    jitter: Duration,
    state: Mutex<State>,
    /// Held during a renewal.
    turn: tokio::sync::Mutex<()>,
}

struct State {
    tokens: Tokens,
    /// What the file held when it was last read or written. A renewal that could not be written differs from it.
    in_file: Tokens,
    version: u64,
    /// The service refused this version.
    rejected: bool,
    /// When this version was made here.
    made: Option<Timestamp>,
    trouble: Option<Trouble>,
}

#[derive(Clone)]
struct Trouble {
    failure: Failure,
    count: u32,
    until: Timestamp,
}

/// An access token that can be used.
pub(super) struct Token {
    pub(super) access: SecretString,
    pub(super) account: Option<String>,
    pub(super) version: u64,
}

/// What the state says at one moment.
enum Look {
    Use(Token),
    Refused(Refusal),
    Renew {
        /// Good until it is renewed.
        meanwhile: Option<Token>,
        /// Whether the endpoint may be asked, not only the file.
        ask: bool,
    },
}

/// What a renewal found.
enum Renewed {
    /// Another process had renewed the login.
    Found(Tokens),
    /// The endpoint gave new tokens. `written`: they are in the file too.
    Made { tokens: Tokens, written: bool },
}

impl State {
    fn is_young(&self, now: Timestamp) -> bool {
        self.made.is_some_and(|made| now.since(made) < YOUNG)
    }
}

impl Login {
    pub(super) fn new(provider: Provider, file: LoginFile, oauth: Oauth, tokens: Tokens) -> Self {
        // Without randomness there is no spread; that is all.
        let [high, low] = peers_sys::rand::bytes::<2>().unwrap_or_default();
        let share = u32::from(u16::from_be_bytes([high, low])) * 2;
        let state =
            State { in_file: tokens.clone(), tokens, version: 0, rejected: false, made: None, trouble: None };
        Self {
            provider,
            file,
            oauth,
            jitter: JITTER.saturating_mul(share) / u32::from(u16::MAX),
            state: Mutex::new(state),
            turn: tokio::sync::Mutex::new(()),
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    pub(super) fn token_urls(&self) -> &[String] {
        &self.oauth.urls
    }

    /// A token that can be used now.
    ///
    /// # Errors
    /// [`Refusal::LoginRequired`], [`Refusal::Renewal`], [`Refusal::BadTokenUrl`].
    pub(super) async fn token(self: &Arc<Self>, upstream: &Arc<Upstream>) -> Result<Token, Refusal> {
        // What another process wrote may be due as well: then this one renews it.
        for _ in 0..2 {
            match self.look(upstream.now()) {
                Look::Use(token) => return Ok(token),
                Look::Refused(refusal) => return Err(refusal),
                Look::Renew { meanwhile: Some(token), .. } if self.turn.try_lock().is_err() => {
                    return Ok(token);
                }
                Look::Renew { .. } => {}
            }
            let (login, outside) = (Arc::clone(self), Arc::clone(upstream));
            // A task of its own: the refresh token is used up even if the client goes away meanwhile.
            let renewed = tokio::spawn(async move { login.renew(&outside).await }).await;
            if renewed.is_err() {
                tracing::error!("the renewal of {} broke off", self.path().display());
            }
        }
        match self.look(upstream.now()) {
            Look::Use(token) | Look::Renew { meanwhile: Some(token), .. } => Ok(token),
            Look::Refused(refusal) => Err(refusal),
            Look::Renew { meanwhile: None, .. } => Err(self.refusal(upstream.now())),
        }
    }

    /// The service refused this version of the token.
    pub(super) fn reject(&self, version: u64, now: Timestamp) {
        let mut state = self.state();
        state.rejected |= state.version == version && !state.is_young(now);
    }

    /// Renews ahead of time, as long as there is a time.
    pub(super) async fn keep_fresh(self: &Arc<Self>, upstream: &Arc<Upstream>) {
        loop {
            // Whoever asks next is told if there is no token.
            let _unusable = self.token(upstream).await;
            let next = {
                let state = self.state();
                state.trouble.as_ref().map(|trouble| trouble.until).or_else(|| self.due(&state.tokens))
            };
            let Some(next) = next else { return };
            sleep(next.since(upstream.now()).max(LOOK)).await;
        }
    }

    /// Waits for the renewal that is under way.
    pub(super) async fn settled(&self) {
        drop(self.turn.lock().await);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn due(&self, tokens: &Tokens) -> Option<Timestamp> {
        let ahead = AHEAD.saturating_add(JITTER).saturating_sub(self.jitter);
        let before = |at: Timestamp| {
            Timestamp::from_millis(
                at.as_millis().saturating_sub(i64::try_from(ahead.as_millis()).unwrap_or(0)),
            )
        };
        tokens.expires.map(before).or(tokens.renew_at)
    }

    fn look(&self, now: Timestamp) -> Look {
        let state = self.state();
        let passed = |at: Option<Timestamp>| at.is_some_and(|at| at <= now);
        let token = (!state.rejected && !passed(state.tokens.expires)).then(|| Token {
            access: state.tokens.access.clone(),
            account: state.tokens.account.clone(),
            version: state.version,
        });
        let due = passed(self.due(&state.tokens)) && !state.is_young(now);
        match (token, &state.trouble) {
            (Some(token), _) if !due => Look::Use(token),
            (meanwhile, Some(Trouble { failure: Failure::Login, until, .. })) if now < *until => {
                Look::Renew { meanwhile, ask: false }
            }
            (Some(token), Some(trouble)) if now < trouble.until => Look::Use(token),
            (None, Some(trouble)) if now < trouble.until => Look::Refused(self.told(trouble, now)),
            (meanwhile, _) => Look::Renew { meanwhile, ask: true },
        }
    }

    fn refusal(&self, now: Timestamp) -> Refusal {
        let trouble = self.state().trouble.clone();
        let unknown = || Trouble { failure: Failure::NoToken, count: 0, until: now };
        self.told(&trouble.unwrap_or_else(unknown), now)
    }

    fn told(&self, trouble: &Trouble, now: Timestamp) -> Refusal {
        match &trouble.failure {
            Failure::Login => Refusal::LoginRequired(self.provider.how_to_log_in()),
            Failure::BadUrl(error) => Refusal::BadTokenUrl(*error),
            failure => Refusal::Renewal { why: failure.to_string(), retry: trouble.until.since(now) },
        }
    }

    async fn renew(&self, upstream: &Upstream) {
        let _turn = self.turn.lock().await;
        // Whoever waited for the turn finds the work done.
        let Look::Renew { ask, .. } = self.look(upstream.now()) else { return };
        let (in_file, refresh) = {
            let state = self.state();
            (state.in_file.clone(), state.tokens.refresh.clone().filter(|_| ask))
        };
        let renewed = self.renewed(upstream, in_file, refresh).await;
        self.settle(renewed, upstream.now());
    }

    async fn renewed(
        &self,
        upstream: &Upstream,
        in_file: Tokens,
        refresh: Option<SecretString>,
    ) -> Result<Renewed, Failure> {
        let busy = || Failure::File("another process holds the lock of the login".to_owned());
        let lock = self.with_file(LoginFile::lock).await?.ok_or_else(busy)?;
        if let Some(found) = self.found(&in_file).await? {
            return Ok(Renewed::Found(found));
        }
        let Some(refresh) = refresh else { return Err(Failure::Login) };
        match self.oauth.renew(upstream, &refresh).await {
            Ok(fresh) => Ok(self.keep(lock, fresh, upstream.now()).await),
            // Its own tool, which takes no lock of ours, may have been faster.
            Err(Failure::Login) => self.found(&in_file).await?.map(Renewed::Found).ok_or(Failure::Login),
            Err(failure) => Err(failure),
        }
    }

    /// The tokens in the file if they are not `known`.
    async fn found(&self, known: &Tokens) -> Result<Option<Tokens>, Failure> {
        let text = self.with_file(LoginFile::read).await?;
        let tokens =
            document::tokens(text.expose_secret(), self.provider.login_member()).ok_or(Failure::Login)?;
        Ok((!tokens.are(known)).then_some(tokens))
    }

    /// Writes new tokens into the file. They count even if that fails: the old ones are gone.
    async fn keep(&self, lock: FileLock, fresh: Fresh, now: Timestamp) -> Renewed {
        let tokens = self.state().tokens.renewed(&fresh, now);
        let member = self.provider.login_member();
        let written = self
            .with_file(move |file| {
                let text = file.read()?;
                match document::replace(text.expose_secret(), member, &fresh, now) {
                    Some(new) => file.write(&new, &lock).map(|()| true),
                    None => Ok(false),
                }
            })
            .await;
        if !matches!(written, Ok(true)) {
            let why =
                written.err().map_or_else(|| "it holds no login any more".to_owned(), |e| e.to_string());
            tracing::error!(
                "the login was renewed and cannot be written to {}, so its tool has to log in again: {why}",
                self.path().display()
            );
            return Renewed::Made { tokens, written: false };
        }
        Renewed::Made { tokens, written: true }
    }

    /// Does file work where it holds up nobody else.
    async fn with_file<T: Send + 'static>(
        &self,
        work: impl FnOnce(&LoginFile) -> Result<T, peers_sys::FileError> + Send + 'static,
    ) -> Result<T, Failure> {
        let file = self.file.clone();
        let done = spawn_blocking(move || work(&file)).await;
        let failed = |error: &dyn std::error::Error| Failure::File(error.to_string());
        done.map_err(|broken| failed(&broken))?.map_err(|error| failed(&error))
    }

    fn settle(&self, renewed: Result<Renewed, Failure>, now: Timestamp) {
        let mut state = self.state();
        let (tokens, in_file, made) = match renewed {
            Ok(Renewed::Found(tokens)) => (tokens.clone(), Some(tokens), None),
            Ok(Renewed::Made { tokens, written }) => (tokens.clone(), written.then_some(tokens), Some(now)),
            Err(failure) => {
                let count = state.trouble.as_ref().map_or(0, |trouble| trouble.count);
                let wait = if failure == Failure::Login {
                    CIRCUIT
                } else {
                    BACKOFF.0.saturating_mul(1 << count.min(16)).min(BACKOFF.1)
                };
                // While the circuit is open nothing is asked, so it must not begin anew.
                let open = state.trouble.as_ref().filter(|t| t.failure == failure && now < t.until);
                let until = open.map_or(now.plus(wait), |trouble| trouble.until);
                if open.is_none() {
                    tracing::warn!("cannot renew {}: {failure}", self.path().display());
                }
                state.trouble = Some(Trouble { failure, count: count.saturating_add(1), until });
                return;
            }
        };
        state.tokens = tokens;
        state.in_file = in_file.unwrap_or_else(|| state.in_file.clone());
        (state.version, state.rejected, state.made) = (state.version.saturating_add(1), false, made);
        state.trouble = None;
    }
}
