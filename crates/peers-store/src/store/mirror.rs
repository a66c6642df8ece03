//! The mirror: the newest segment's bytes in the repository, for people.
//!
//! The journal is safe without it, so nothing that happens to the mirror stops anybody.

use peers_model::limits;

use super::{Store, StoreError};
use crate::disk::{Area, Disk, DiskError, free_name};
use crate::journal::Position;
use crate::layout;

/// Which mirrors that differ are kept aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aside {
    /// None: somebody wrote into it while it was ours.
    Never,
    /// One that is longer than the journal: nobody knows who wrote that.
    Longer,
    /// Any.
    Always,
}

impl<D: Disk> Store<D> {
    pub(super) fn extend_mirror(&mut self, bytes: &[u8]) {
        // What somebody else wrote there would never be found out behind a new fingerprint. It is rewritten
        // as a whole when it is next looked at.
        self.mirror_broken = self.mirror_broken || !self.mirror_ends_before(bytes);
        if self.mirror_broken {
            return;
        }
        let done = self.disk.append(Area::Peers, layout::peers::MIRROR, bytes);
        self.mirror_broken |= done.is_err();
        self.mirror = self.disk.fingerprint(Area::Peers, layout::peers::MIRROR).unwrap_or(None);
    }

    /// Whether the mirror is the segment as it was before these bytes. Cheap while nobody has touched it.
    fn mirror_ends_before(&mut self, bytes: &[u8]) -> bool {
        let Ok(now) = self.disk.fingerprint(Area::Peers, layout::peers::MIRROR) else { return false };
        if now == self.mirror {
            return true;
        }
        let Position { segment, offset, .. } = *self.journal.position();
        let before = u64::try_from(bytes.len()).ok().and_then(|len| offset.checked_sub(len));
        let size = now.map_or(0, |found| found.size);
        before == Some(size) && self.mirror_begins(segment, size).unwrap_or(false)
    }

    /// Compares the mirror with the current segment and rewrites it when it differs. Returns what
    /// differed. Cheap while nobody has touched the file. A mirror that cannot be written is only told.
    ///
    /// # Errors
    /// [`StoreError`] when the journal cannot be read.
    pub fn check_mirror(&mut self) -> Result<Option<String>, StoreError> {
        self.mend_mirror(Aside::Never, |_, _| Ok(None))
    }

    /// The same; `before` may refuse once it is known that the mirror differs, or say what differs.
    pub(super) fn mend_mirror(
        &mut self,
        mut aside: Aside,
        before: impl FnOnce(&mut D, &Position) -> Result<Option<String>, StoreError>,
    ) -> Result<Option<String>, StoreError> {
        let at = self.journal.position().clone();
        let mut what = match self.mirror_differs(&at) {
            Ok(what) => what,
            Err(error) if of_mirror(&error) => Some("could not be read".to_owned()),
            Err(error) => return Err(error),
        };
        if what.is_some() {
            match before(&mut self.disk, &at) {
                Err(error) if !of_mirror(&error) => return Err(error),
                Ok(Some(said)) => {
                    what = Some(said);
                    aside = Aside::Always;
                }
                Ok(None) | Err(_) => {}
            }
        }
        let done = match what {
            None => Ok(None),
            Some(what) => self.replace_mirror(&at, what, aside).map(Some),
        };
        let told = match done {
            Ok(what) => {
                self.mirror_broken = false;
                what
            }
            Err(error) if of_mirror(&error) => {
                tracing::warn!(%error, "the mirror of the journal was not written");
                self.mirror_broken = true;
                None
            }
            Err(error) => return Err(error),
        };
        self.mirror = self.disk.fingerprint(Area::Peers, layout::peers::MIRROR).unwrap_or(None);
        // A journal that was never written leaves the empty file that `init` made.
        Ok(told.filter(|_| at.seq > 0))
    }

    /// What differs, if anything does.
    fn mirror_differs(&mut self, at: &Position) -> Result<Option<String>, StoreError> {
        let now = self.disk.fingerprint(Area::Peers, layout::peers::MIRROR)?;
        if now.is_some() && now == self.mirror && !self.mirror_broken {
            return Ok(None);
        }
        let what = match now {
            None if at.seq == 0 => None,
            None => Some("was missing"),
            Some(found) if found.size != at.offset => Some("had another length"),
            Some(_) if !self.mirror_begins(at.segment, at.offset)? => Some("had other content"),
            Some(_) => None,
        };
        Ok(what.map(str::to_owned))
    }

    fn replace_mirror(&mut self, at: &Position, what: String, aside: Aside) -> Result<String, StoreError> {
        let kept = if aside == Aside::Never { None } else { self.move_aside(at, aside)? };
        self.rewrite_mirror(at)?;
        Ok(match kept {
            Some(kept) => format!("{what} (kept as .peers/{kept})"),
            None => what,
        })
    }

    /// Moves the mirror aside if it is no plain file, or as it is asked for.
    fn move_aside(&mut self, at: &Position, aside: Aside) -> Result<Option<String>, StoreError> {
        let path = layout::peers::MIRROR;
        let Some(size) = self.disk.len(Area::Peers, path)? else { return Ok(None) };
        let plain = self.disk.read_at(Area::Peers, path, 0, 1).is_ok();
        if plain && size <= at.offset && aside != Aside::Always {
            return Ok(None);
        }
        // A crash between the first record of a segment and its mirror leaves that of the segment before.
        let before = at.segment.saturating_sub(1);
        if plain && before > 0 && self.mirror_begins(before, size)? {
            return Ok(None);
        }
        let kept = free_name(
            |number| format!("{path}.{number}.kept"),
            |name| self.disk.len(Area::Peers, name).map(|len| len.is_some()),
        )?;
        self.disk.rename(Area::Peers, path, &kept)?;
        Ok(Some(kept))
    }

    /// Whether the first `len` bytes of mirror and segment are the same.
    fn mirror_begins(&mut self, segment: u32, len: u64) -> Result<bool, StoreError> {
        const CHUNK: u64 = 4 * limits::MIB;
        let segment = layout::segment(segment);
        let mut offset = 0;
        while offset < len {
            let size = CHUNK.min(len - offset);
            let truth = self.disk.read_at(Area::Store, &segment, offset, size)?;
            if truth != self.disk.read_at(Area::Peers, layout::peers::MIRROR, offset, size)? {
                return Ok(false);
            }
            offset += size;
        }
        Ok(true)
    }

    fn rewrite_mirror(&mut self, at: &Position) -> Result<(), StoreError> {
        let bytes = if at.seq == 0 {
            Vec::new()
        } else {
            self.disk.read_at(Area::Store, &layout::segment(at.segment), 0, at.offset)?
        };
        self.disk.publish(Area::Peers, layout::peers::MIRROR, &bytes, false)?;
        Ok(())
    }
}

fn of_mirror(error: &StoreError) -> bool {
    error.disk().is_some_and(|DiskError { area, .. }| *area == Area::Peers)
}
