//! SHA-256, in one piece and incrementally, always shown as 64 lower-case hex digits.

use std::io;

use sha2::Digest as _;

/// The SHA-256 of `bytes`, in hex.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(bytes);
    hasher.finish_hex()
}

/// Lower-case hex digits of `bytes`.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(if nibble < 10 { b'0' + nibble } else { b'a' - 10 + nibble });
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(digit).collect()
}

/// An incremental SHA-256.
#[derive(Debug, Clone, Default)]
pub struct Sha256(sha2::Sha256);

impl Sha256 {
    /// Starts with nothing hashed.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `bytes`.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of everything added.
    #[must_use]
    pub fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }

    /// The digest of everything added, in hex.
    #[must_use]
    pub fn finish_hex(self) -> String {
        hex(&self.finish())
    }
}

/// Hashes whatever is written, so that `io::copy` can feed it.
impl io::Write for Sha256 {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn known_digest() {
        assert_eq!(sha256_hex(b"abc"), ABC);
    }

    #[test]
    fn pieces_give_the_digest_of_the_whole() {
        let mut hasher = Sha256::new();
        hasher.update(b"a");
        io::copy(&mut &b"bc"[..], &mut hasher).unwrap();
        assert_eq!(hasher.finish_hex(), ABC);
    }
}
