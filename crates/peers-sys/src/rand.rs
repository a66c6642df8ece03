//! Randomness from the kernel: names, nonces, bearer tokens.

use std::io;

/// `N` random bytes.
///
/// # Errors
/// Whatever the kernel reports; there is no weaker fallback.
pub fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut out = [0; N];
    fill(&mut out)?;
    Ok(out)
}

/// `2 * N` lower-case hex digits, as hard to guess as `N` random bytes.
///
/// # Errors
/// Whatever the kernel reports.
pub fn hex<const N: usize>() -> io::Result<String> {
    Ok(crate::digest::hex(&bytes::<N>()?))
}

#[cfg(target_os = "linux")]
fn fill(out: &mut [u8]) -> io::Result<()> {
    use rustix::rand::{GetRandomFlags, getrandom};
    let mut done = 0;
    while let Some(rest) = out.get_mut(done..).filter(|rest| !rest.is_empty()) {
        // Requests above 256 bytes may be answered in part.
        done += rustix::io::retry_on_intr(|| getrandom(&mut *rest, GetRandomFlags::empty()))?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn fill(out: &mut [u8]) -> io::Result<()> {
    use std::io::Read;
    std::fs::File::open("/dev/urandom")?.read_exact(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_draws_differ() {
        assert_ne!(bytes::<32>().unwrap(), bytes::<32>().unwrap());
        assert_ne!(bytes::<1000>().unwrap(), [0; 1000]);
    }

    #[test]
    fn hex_has_two_digits_per_byte() {
        let text = hex::<8>().unwrap();
        assert_eq!(text.len(), 16);
        assert!(text.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase()));
    }
}
