//! The agents' object store at one moment.

use std::collections::{BTreeMap, HashMap};

use git2::Oid;
use rustix::fs::FileType;

use crate::error::GitError;
use crate::files;
use crate::listings;
use crate::repo::PeerRepo;
use crate::snapshot::Stamp;

/// Objects with a file of their own that are remembered. Git packs them long before.
const MAX_LOOSE: usize = if cfg!(test) { 300 } else { 30_000 };
/// Files beside packs. A store with more is refused elsewhere.
const MAX_PACKS: usize = 1_000_000;

/// Which objects have a file of their own, which packs there are, and what tells that they were not
/// written since.
#[derive(Debug, Default)]
pub struct StoreMark {
    pub(super) loose: HashMap<Oid, Stamp>,
    /// Packs and their indexes by file name.
    pub(super) packs: BTreeMap<String, Stamp>,
    /// No object was left out.
    pub(super) whole: bool,
    /// No pack was left out.
    pub(super) all_packs: bool,
}

impl StoreMark {
    /// Bytes of all packs and their indexes. An index has as much per object as a small object in a pack, and
    /// many objects cost more than much content.
    pub(crate) fn pack_bytes(&self) -> u64 {
        let cost = |(name, stamp): (&String, &Stamp)| {
            stamp.size().saturating_mul(if name.strip_suffix(".idx").is_some() { 64 } else { 1 })
        };
        self.packs.iter().map(cost).fold(0, u64::saturating_add)
    }
}

impl PeerRepo {
    /// Looks at the files of the object store; reads none of them.
    ///
    /// # Errors
    /// [`GitError::Io`].
    pub fn store_mark(&self) -> Result<StoreMark, GitError> {
        let objects = self.objects_dir();
        let fail = |source: std::io::Error| GitError::io(&objects, source);
        let mut mark = StoreMark { whole: true, all_packs: true, ..StoreMark::default() };
        let top = files::open_dir(&objects).map_err(fail)?;
        for (fan_out, kind) in files::list(&top, 10_000).map_err(fail)?.unwrap_or_default() {
            if kind != FileType::Directory || fan_out.len() != 2 {
                continue;
            }
            let left = MAX_LOOSE.saturating_sub(mark.loose.len());
            let Ok(listed) = listings::list(&top, &fan_out, left) else { continue };
            let Some(listed) = listed else {
                mark.whole = false;
                break;
            };
            for (rest, _) in listed.iter() {
                let name: Vec<u8> = [&fan_out[..], &rest[..]].concat();
                let oid = std::str::from_utf8(&name).ok().filter(|name| name.len() == 40);
                let Some(oid) = oid.and_then(|name| Oid::from_str(name).ok()) else { continue };
                let path = [&fan_out[..], b"/", &rest[..]].concat();
                if let Some(stat) = files::lstat_at(&top, &path).map_err(fail)? {
                    mark.loose.insert(oid, Stamp::of(&stat));
                }
            }
        }
        let Ok(dir) = files::open_dir(&objects.join("pack")) else { return Ok(mark) };
        let Some(listed) = files::list(&dir, MAX_PACKS).map_err(fail)? else {
            mark.all_packs = false;
            return Ok(mark);
        };
        for (name, _) in listed {
            let Some(text) = std::str::from_utf8(&name).ok() else { continue };
            if [".pack", ".idx"].iter().any(|end| text.ends_with(end))
                && let Some(stat) = files::lstat_at(&dir, &name).map_err(fail)?
            {
                mark.packs.insert(text.to_owned(), Stamp::of(&stat));
            }
        }
        Ok(mark)
    }
}
