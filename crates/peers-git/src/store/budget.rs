//! How much is read of what an agent wrote, and for how long.

use std::time::{Duration, Instant};

use git2::{ObjectType, Odb, Oid};

/// What may still be read. A few bytes of a pack can stand for gigabytes, and take hours to unpack.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes: usize,
    until: Option<Instant>,
}

impl Budget {
    pub(crate) fn new(bytes: usize, time: Duration) -> Self {
        Self { bytes, until: Instant::now().checked_add(time) }
    }

    /// Takes this much of it; `false` when there is not so much left, or no time.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let left = self.bytes.checked_sub(bytes).filter(|_| !self.is_late());
        self.bytes = left.unwrap_or(self.bytes);
        left.is_some()
    }

    /// The time is over.
    pub(crate) fn is_late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// The object, its hash checked. Its size is looked at before it is read.
    pub(crate) fn read(&mut self, odb: &Odb<'_>, oid: Oid, cap: usize) -> Bounded {
        match odb.read_header(oid) {
            Err(_) => Bounded::Damaged,
            Ok((size, _)) if size > cap || !self.take(size) => Bounded::TooMuch,
            Ok(_) => readable(odb, oid).map_or(Bounded::Damaged, |(kind, data)| Bounded::Read(kind, data)),
        }
    }
}

/// What came of reading an object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Bounded {
    Read(ObjectType, Vec<u8>),
    /// It is missing, or its content is not what its name says.
    Damaged,
    /// It was not read.
    TooMuch,
}

/// The object, its hash checked; nothing for one that is missing or damaged.
pub(super) fn readable(odb: &Odb<'_>, oid: Oid) -> Option<(ObjectType, Vec<u8>)> {
    let object = odb.read(oid).ok()?;
    Some((object.kind(), object.data().to_vec()))
}

/// The same of a store that is not ours, for an object of at most this size.
pub(super) fn readable_within(odb: &Odb<'_>, oid: Oid, cap: usize) -> Option<(ObjectType, Vec<u8>)> {
    let (size, _) = odb.read_header(oid).ok()?;
    if size <= cap { readable(odb, oid) } else { None }
}
