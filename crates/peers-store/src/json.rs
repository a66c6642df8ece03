//! Small JSON files of the store, each with a version.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::disk::{Area, Disk, free_name};
use crate::store::StoreError;

/// Reads a file of at most `cap` bytes and at most this version; `None` when it is not there. `remedy` says
/// what to do about a damaged one.
pub(crate) fn read<T: DeserializeOwned, D: Disk>(
    disk: &mut D,
    path: &str,
    (cap, newest): (u64, u32),
    remedy: &'static str,
) -> Result<Option<T>, StoreError> {
    let Some(bytes) = disk.read(Area::Store, path, cap)? else { return Ok(None) };
    parse(path, &bytes, newest, remedy).map(Some)
}

/// The content of such a file.
pub(crate) fn parse<T: DeserializeOwned>(
    path: &str,
    bytes: &[u8],
    newest: u32,
    remedy: &'static str,
) -> Result<T, StoreError> {
    #[derive(Deserialize)]
    struct Version {
        v: u64,
    }
    // As we write them the version stands first, and is read without a look at all that follows.
    let known = match bytes.strip_prefix(b"{\"v\":") {
        Some([digit @ b'1'..=b'9', b',', ..]) => u32::from(digit - b'0') <= newest,
        _ => false,
    };
    if !known
        && let Ok(Version { v }) = serde_json::from_slice::<Version>(bytes)
        && v > u64::from(newest)
    {
        return Err(StoreError::Newer { path: path.to_owned(), found: v });
    }
    serde_json::from_slice(bytes).map_err(|e| StoreError::File {
        path: path.to_owned(),
        what: format!("is damaged ({e})"),
        remedy: Some(remedy),
    })
}

/// A name beside `path` that is free: with `.bad` behind it, or `.2.bad` and so on.
pub(crate) fn free_beside<D: Disk>(disk: &mut D, path: &str) -> Result<String, StoreError> {
    let name = |number| if number == 1 { format!("{path}.bad") } else { format!("{path}.{number}.bad") };
    Ok(free_name(name, |name| disk.len(Area::Store, name).map(|len| len.is_some()))?)
}
