//! A disk that forgets what was not synced.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use peers_store::{Area, Disk, DiskError, DiskErrorKind, Fingerprint};

use crate::fault::{Kind, Points, Verb, crash};

#[derive(Debug, Clone, Default)]
struct File {
    /// What a crash that loses everything unsynced leaves; `None` = no file.
    durable: Option<Vec<u8>>,
    /// What is there now; `None` = no file.
    now: Option<Vec<u8>>,
    /// Counts changes, for fingerprints.
    changes: u64,
}

/// The disk. Clones share their content: it outlives the loop.
#[derive(Debug, Clone)]
pub struct SimDisk {
    files: Rc<RefCell<BTreeMap<(Area, String), File>>>,
    points: Points,
}

impl SimDisk {
    /// An empty disk.
    #[must_use]
    pub fn new(points: Points) -> Self {
        Self { files: Rc::default(), points }
    }

    /// Puts a durable file down, without passing a point.
    pub fn plant(&self, area: Area, path: &str, bytes: &[u8]) {
        let mut files = self.files.borrow_mut();
        let file = files.entry((area, path.to_owned())).or_default();
        file.now = Some(bytes.to_vec());
        file.durable = Some(bytes.to_vec());
        file.changes += 1;
    }

    /// The loop is gone. What was not synced is lost or survives.
    pub fn after_crash(&self, lost: bool) {
        for file in self.files.borrow_mut().values_mut() {
            if lost {
                file.now = file.durable.clone();
            } else {
                file.durable = file.now.clone();
            }
            file.changes += 1;
        }
    }

    fn change(
        &self,
        op: &'static str,
        area: Area,
        path: &str,
        half: impl FnOnce(&mut File),
        whole: impl FnOnce(&mut File),
    ) -> Result<(), DiskError> {
        let verb = self.points.pass(Kind::Write);
        let mut files = self.files.borrow_mut();
        let file = files.entry((area, path.to_owned())).or_default();
        file.changes += 1;
        match verb {
            Verb::Do => whole(file),
            Verb::ThenCrash => {
                whole(file);
                drop(files);
                crash();
            }
            Verb::Half => {
                half(file);
                drop(files);
                crash();
            }
            Verb::Fail { full } => {
                return Err(DiskError {
                    kind: if full { DiskErrorKind::Full } else { DiskErrorKind::Io },
                    op,
                    area,
                    path: path.to_owned(),
                    detail: "injected".into(),
                });
            }
        }
        Ok(())
    }
}

impl Disk for SimDisk {
    fn read(&mut self, area: Area, path: &str, _cap: u64) -> Result<Option<Vec<u8>>, DiskError> {
        Ok(self.files.borrow().get(&(area, path.to_owned())).and_then(|f| f.now.clone()))
    }

    fn read_at(&mut self, area: Area, path: &str, offset: u64, len: u64) -> Result<Vec<u8>, DiskError> {
        let files = self.files.borrow();
        let bytes = files.get(&(area, path.to_owned())).and_then(|f| f.now.as_deref()).unwrap_or_default();
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let end = start.saturating_add(usize::try_from(len).unwrap_or(usize::MAX)).min(bytes.len());
        Ok(bytes.get(start..end).unwrap_or_default().to_vec())
    }

    fn len(&mut self, area: Area, path: &str) -> Result<Option<u64>, DiskError> {
        Ok(self.fingerprint(area, path)?.map(|f| f.size))
    }

    fn publish(&mut self, area: Area, path: &str, bytes: &[u8], sync: bool) -> Result<(), DiskError> {
        // A replaced file is the old one or the new one, never half of it.
        self.change(
            "write",
            area,
            path,
            |_| {},
            |file| {
                file.now = Some(bytes.to_vec());
                if sync {
                    file.durable = Some(bytes.to_vec());
                }
            },
        )
    }

    fn append(&mut self, area: Area, path: &str, bytes: &[u8]) -> Result<(), DiskError> {
        let half = bytes.get(..bytes.len() / 2).unwrap_or_default();
        self.change(
            "append to",
            area,
            path,
            |file| {
                // A torn write reached the disk.
                file.now.get_or_insert_default().extend_from_slice(half);
                file.durable = file.now.clone();
            },
            |file| file.now.get_or_insert_default().extend_from_slice(bytes),
        )
    }

    fn sync(&mut self, area: Area, path: &str) -> Result<(), DiskError> {
        self.change("sync", area, path, |_| {}, |file| file.durable = file.now.clone())
    }

    fn truncate(&mut self, area: Area, path: &str, len: u64) -> Result<(), DiskError> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        self.change(
            "cut",
            area,
            path,
            |_| {},
            |file| {
                if let Some(now) = &mut file.now {
                    now.truncate(len);
                }
            },
        )
    }

    fn list(&mut self, area: Area, dir: &str) -> Result<Vec<String>, DiskError> {
        let prefix = format!("{dir}/");
        Ok(self
            .files
            .borrow()
            .iter()
            .filter(|((a, _), file)| *a == area && file.now.is_some())
            .filter_map(|((_, path), _)| path.strip_prefix(&prefix))
            .filter(|name| !name.contains('/'))
            .map(str::to_owned)
            .collect())
    }

    fn remove(&mut self, area: Area, path: &str) -> Result<(), DiskError> {
        self.change("remove", area, path, |_| {}, |file| file.now = None)
    }

    fn rename(&mut self, area: Area, from: &str, to: &str) -> Result<(), DiskError> {
        let moved = self.files.borrow().get(&(area, from.to_owned())).and_then(|f| f.now.clone());
        self.change("move", area, to, |_| {}, |file| file.now = moved)?;
        if let Some(file) = self.files.borrow_mut().get_mut(&(area, from.to_owned())) {
            file.now = None;
        }
        Ok(())
    }

    fn fingerprint(&mut self, area: Area, path: &str) -> Result<Option<Fingerprint>, DiskError> {
        let files = self.files.borrow();
        Ok(files.get(&(area, path.to_owned())).and_then(|f| {
            let now = f.now.as_ref()?;
            Some(Fingerprint {
                id: (1, 1),
                size: u64::try_from(now.len()).unwrap_or(0),
                changed: i128::from(f.changes),
            })
        }))
    }
}
