//! Names to addresses: the system's resolver behind a time limit and a short cache.

use std::collections::HashMap;
use std::fmt::Debug;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::host::HostName;

/// A lookup may take so long.
const PATIENCE: Duration = Duration::from_secs(5);
/// Answers are used again for so long.
const FRESH: Duration = Duration::from_mins(1);
/// Names in the cache. Below an allowed suffix a client can invent as many as it likes.
const CACHED: usize = 1024;

/// What a [`Lookup`] gives.
pub type LookupFuture<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// A name service.
pub trait Lookup: Debug + Send + Sync {
    /// All addresses of `host`, best first.
    fn lookup<'a>(&'a self, host: &'a HostName) -> LookupFuture<'a>;
}

/// A name service with a time limit of 5 s and a cache of 60 s. Clones share the cache; failures are not cached.
#[derive(Debug, Clone)]
pub struct Resolver {
    lookup: Arc<dyn Lookup>,
    cache: Arc<Mutex<HashMap<HostName, Answer>>>,
}

#[derive(Debug, Clone)]
struct Answer {
    until: Instant,
    addrs: Vec<IpAddr>,
}

impl Resolver {
    /// The system's resolver, which blocks a thread of the runtime for as long as it likes, also after the time limit.
    #[must_use]
    pub fn system() -> Self {
        Self::new(Arc::new(System))
    }

    /// Another name service.
    #[must_use]
    pub fn new(lookup: Arc<dyn Lookup>) -> Self {
        Self { lookup, cache: Arc::default() }
    }

    /// All addresses of `host`, at least one.
    pub(crate) async fn resolve(&self, host: &HostName) -> io::Result<Vec<IpAddr>> {
        if let Some(addrs) = self.cached(host) {
            return Ok(addrs);
        }
        let addrs =
            timeout(PATIENCE, self.lookup.lookup(host)).await.map_err(|_late| io::ErrorKind::TimedOut)??;
        if addrs.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        }
        self.keep(host, &addrs);
        Ok(addrs)
    }

    fn cached(&self, host: &HostName) -> Option<Vec<IpAddr>> {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.get(host).filter(|answer| Instant::now() < answer.until).map(|answer| answer.addrs.clone())
    }

    fn keep(&self, host: &HostName, addrs: &[IpAddr]) {
        let now = Instant::now();
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.len() >= CACHED {
            cache.retain(|_, answer| now < answer.until);
        }
        if cache.len() < CACHED {
            cache.insert(host.clone(), Answer { until: now + FRESH, addrs: addrs.to_vec() });
        }
    }
}

#[derive(Debug)]
struct System;

impl Lookup for System {
    fn lookup<'a>(&'a self, host: &'a HostName) -> LookupFuture<'a> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            Ok(found.map(|addr| addr.ip()).collect())
        })
    }
}
