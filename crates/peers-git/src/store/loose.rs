//! Writing one object as a file of its own, whatever the library thinks is there already.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use git2::{ObjectType, Oid};

use crate::error::GitError;
use crate::files;

/// Most bytes of one stored block.
const BLOCK: usize = 65_535;

/// Writes an object below `objects`, in place of what is there under its name. The library leaves an
/// object alone that it finds, damaged or not.
pub(crate) fn write_loose(objects: &Path, oid: Oid, kind: ObjectType, data: &[u8]) -> Result<(), GitError> {
    let what = || format!("{kind} {oid}");
    let hash = Oid::hash_object(kind, data).map_err(|source| GitError::library(what(), source))?;
    if hash != oid {
        return Err(GitError::Corrupt { what: what(), detail: format!("its content hashes to {hash}") });
    }
    let name = oid.to_string();
    let (fan_out, rest) = name.split_at(2);
    let dir = objects.join(fan_out);
    files::ensure_dir(&dir)?;
    let path = dir.join(rest);
    let mut plain = format!("{kind} {}\0", data.len()).into_bytes();
    plain.extend_from_slice(data);
    files::replace(&path, &stored(&plain))?;
    // As git leaves them. Whoever owns the directory can still replace it.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444))
        .map_err(|source| GitError::io(&path, source))
}

/// The bytes as a zlib stream that compresses nothing.
fn stored(plain: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let mut blocks = plain.chunks(BLOCK).peekable();
    while let Some(block) = blocks.next() {
        let len = u16::try_from(block.len()).unwrap_or(u16::MAX);
        out.push(u8::from(blocks.peek().is_none()));
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&(!len).to_le_bytes());
        out.extend_from_slice(block);
    }
    out.extend_from_slice(&adler32(plain).to_be_bytes());
    out
}

fn adler32(bytes: &[u8]) -> u32 {
    let (mut a, mut b) = (1_u32, 0_u32);
    for byte in bytes {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    (b << 16) | a
}
