//! The real clock.

use peers_core::machine::Now;
use peers_sys::{clock, digest, rand};

use crate::ports::Clock;

/// The clocks and the randomness of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SysClock;

impl Clock for SysClock {
    fn now(&self) -> Now {
        Now { wall: clock::now(), mono: clock::mono() }
    }

    fn nonce(&mut self) -> String {
        rand::hex::<8>().unwrap_or_else(|error| {
            // Guessable, but the loop can go on: the fence is one of several guards.
            tracing::error!(%error, "the system gives no random bytes");
            let now = self.now();
            let text = format!("{}-{}", now.wall.as_millis(), now.mono.as_millis());
            digest::sha256_hex(text.as_bytes()).chars().take(16).collect()
        })
    }
}
