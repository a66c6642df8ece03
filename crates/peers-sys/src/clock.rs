//! The two clocks and the identity of this boot.

use std::sync::OnceLock;
use std::time::SystemTime;

use peers_model::{Mono, Timestamp};
use rustix::time::{ClockId, clock_gettime};

/// The wall time as file systems stamp it.
#[must_use]
pub fn system_now() -> SystemTime {
    SystemTime::now()
}

/// The wall time now. It may jump in both directions; deadlines use [`mono`].
#[must_use]
pub fn now() -> Timestamp {
    from_system_time(SystemTime::now())
}

/// A file time as a wall time, exact to the millisecond; before 1970 is negative.
#[must_use]
pub fn from_system_time(time: SystemTime) -> Timestamp {
    let millis = |d: std::time::Duration| i64::try_from(d.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => millis(after),
        Err(before) => -millis(before.duration()),
    })
}

/// The boot-time clock now: never goes back and counts suspend.
#[must_use]
pub fn mono() -> Mono {
    // On macOS the monotonic clock is the one that counts sleep.
    #[cfg(target_os = "linux")]
    let id = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let id = ClockId::Monotonic;
    let t = clock_gettime(id);
    let s = u64::try_from(t.tv_sec).unwrap_or(0);
    let ms = u64::try_from(t.tv_nsec / 1_000_000).unwrap_or(0);
    Mono::from_millis(s.saturating_mul(1000).saturating_add(ms))
}

/// The kernel's id of this boot (a UUID), read once; `None` where the system has none.
///
/// A process id is only meaningful together with it.
#[must_use]
pub fn boot_id() -> Option<&'static str> {
    static ID: OnceLock<Option<String>> = OnceLock::new();
    ID.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let text = text.trim();
        let plain = |b: u8| b.is_ascii_hexdigit() || b == b'-';
        (!text.is_empty() && text.len() <= 64 && text.bytes().all(plain)).then(|| text.to_owned())
    })
    .as_deref()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_boot_clock_never_goes_back() {
        let first = mono();
        assert!(mono() >= first);
        assert!(first.as_millis() > 0);
    }

    #[test]
    fn file_times_before_the_epoch_are_negative() {
        let t = from_system_time(SystemTime::UNIX_EPOCH - Duration::from_millis(5));
        assert_eq!(t.as_millis(), -5);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_boot_has_an_id() {
        assert_eq!(boot_id().map(str::len), Some(36));
    }
}
