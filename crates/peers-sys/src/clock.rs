//! The two clocks and the identity of this boot.

use std::io::Read as _;
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

/// The most bytes that a time zone file may have.
const ZONE: u64 = 64 * 1024;

/// What the local zone is ahead of UTC at `at`, in seconds; `None` where that cannot be told. `tz`: the
/// operator's variable `TZ`, a name of the zone database or empty for UTC; absent: the system's zone.
#[must_use]
pub fn local_offset(tz: Option<&str>, at: Timestamp) -> Option<i32> {
    let name = tz.map(|tz| tz.trim_start_matches(':'));
    if matches!(name, Some("" | "UTC" | "GMT")) {
        return Some(0);
    }
    let path = match name {
        None => "/etc/localtime".to_owned(),
        Some(name) => {
            let tame = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '+');
            if name.starts_with('/') || !name.chars().all(tame) {
                return None;
            }
            format!("/usr/share/zoneinfo/{name}")
        }
    };
    let mut bytes = Vec::new();
    match std::fs::File::open(path) {
        Ok(file) => std::io::Read::take(file, ZONE).read_to_end(&mut bytes).ok()?,
        // A system without a zone runs on UTC.
        Err(error) if name.is_none() && error.kind() == std::io::ErrorKind::NotFound => return Some(0),
        Err(_) => return None,
    };
    let zone = jiff::tz::TimeZone::tzif("local", &bytes).ok()?;
    let at = jiff::Timestamp::from_millisecond(at.as_millis()).ok()?;
    Some(zone.to_offset(at).seconds())
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

    #[test]
    fn the_offset_of_a_zone_is_that_of_its_summer_or_winter() {
        let summer = Timestamp::parse("2026-07-01T12:00:00Z").unwrap();
        let winter = Timestamp::parse("2026-12-01T12:00:00Z").unwrap();
        for tz in ["", "UTC", ":UTC"] {
            assert_eq!(local_offset(Some(tz), summer), Some(0), "{tz}");
        }
        for tz in ["/etc/passwd", "../../../etc/passwd", "No/Such", "a b"] {
            assert_eq!(local_offset(Some(tz), summer), None, "{tz}");
        }
        // Only where the machine has a zone database.
        if std::path::Path::new("/usr/share/zoneinfo/Europe/Berlin").exists() {
            let berlin = |at| local_offset(Some("Europe/Berlin"), at);
            assert_eq!((berlin(summer), berlin(winter)), (Some(7200), Some(3600)));
        }
    }
}
