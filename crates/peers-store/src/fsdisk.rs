//! The real disk: [`SafeDir`] below the trusted store and below `.peers/`.

use std::error::Error;
use std::path::Path;

use peers_sys::append::AppendLog;
use peers_sys::dir::{Entry, FileError, Kind, SafeDir};

use crate::disk::{Area, Disk, DiskError, DiskErrorKind, Fingerprint, free_name};

/// Most names that a directory of ours may have.
const MAX_NAMES: usize = 100_000;

/// Bytes that are made room for before they are read.
const ROOM: u64 = 128 * 1024;

/// The real disk.
#[derive(Debug)]
pub struct FsDisk {
    store: SafeDir,
    peers: Option<SafeDir>,
    open: Vec<((Area, String), AppendLog)>,
}

impl FsDisk {
    /// A disk over two open directories. Without `peers` (a repository that was never initialised)
    /// everything below `.peers/` reads as missing and cannot be written.
    #[must_use]
    pub fn new(store: SafeDir, peers: Option<SafeDir>) -> Self {
        Self { store, peers, open: Vec::new() }
    }

    /// The directory of an area.
    #[must_use]
    pub fn dir(&self, area: Area) -> Option<&SafeDir> {
        match area {
            Area::Store => Some(&self.store),
            Area::Peers => self.peers.as_ref(),
        }
    }

    fn need(&self, area: Area, op: &'static str, path: &str) -> Result<&SafeDir, DiskError> {
        self.dir(area).ok_or_else(|| DiskError {
            kind: DiskErrorKind::NoArea,
            op,
            area,
            path: path.to_owned(),
            detail: "there is no .peers directory".into(),
        })
    }

    fn entries(&self, area: Area, dir: &str) -> Result<Vec<Entry>, DiskError> {
        let fail = |e: FileError| convert(&e, "list", area, dir);
        let Some(root) = self.dir(area) else { return Ok(Vec::new()) };
        let Some(found) = optional(root.open_path(dir)).map_err(fail)? else { return Ok(Vec::new()) };
        Ok(found.list(MAX_NAMES).map_err(fail)?.entries)
    }

    fn forget(&mut self, area: Area, path: &str) {
        self.open.retain(|((a, p), _)| !(*a == area && p == path));
    }

    fn log(&mut self, area: Area, path: &str) -> Result<&mut AppendLog, DiskError> {
        let key = (area, path.to_owned());
        let at = if let Some(at) = self.open.iter().position(|(k, _)| *k == key) {
            at
        } else {
            let dir = self.need(area, "append to", path)?;
            let fail = |e: FileError| convert(&e, "append to", area, path);
            let (parent, name) = dir.create_parent_of(Path::new(path)).map_err(fail)?;
            let log = AppendLog::open(&parent, name).map_err(fail)?;
            self.open.push((key, log));
            self.open.len() - 1
        };
        match self.open.get_mut(at) {
            Some((_, log)) => Ok(log),
            None => Err(DiskError {
                kind: DiskErrorKind::Io,
                op: "append to",
                area,
                path: path.to_owned(),
                detail: "its handle is gone".into(),
            }),
        }
    }
}

/// A file error with the place it belongs to.
#[must_use]
pub fn convert(error: &FileError, op: &'static str, area: Area, path: &str) -> DiskError {
    let kind = match error {
        e if e.is_disk_full() => DiskErrorKind::Full,
        e if e.is_unsafe() => DiskErrorKind::Unsafe,
        FileError::TooLarge { .. } => DiskErrorKind::TooLarge,
        FileError::AlreadyExists { .. } => DiskErrorKind::Exists,
        _ => DiskErrorKind::Io,
    };
    let detail = match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    };
    DiskError { kind, op, area, path: path.to_owned(), detail }
}

/// `None` instead of an error for what is not there.
fn optional<T>(result: Result<T, FileError>) -> Result<Option<T>, FileError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

impl Disk for FsDisk {
    fn locate(&self, area: Area, path: &str) -> Option<std::path::PathBuf> {
        self.dir(area).map(|dir| dir.path().join(path))
    }

    fn read(&mut self, area: Area, path: &str, cap: u64) -> Result<Option<Vec<u8>>, DiskError> {
        let fail = |e: FileError| convert(&e, "read", area, path);
        let Some(dir) = self.dir(area) else { return Ok(None) };
        let Some((parent, name)) = optional(dir.parent_of(path)).map_err(fail)? else { return Ok(None) };
        parent.read_opt(name, cap).map_err(fail)
    }

    fn read_at(&mut self, area: Area, path: &str, offset: u64, len: u64) -> Result<Vec<u8>, DiskError> {
        use std::io::{Read, Seek, SeekFrom};
        let fail = |e: FileError| convert(&e, "read", area, path);
        let Some(dir) = self.dir(area) else { return Ok(Vec::new()) };
        let Some((parent, name)) = optional(dir.parent_of(path)).map_err(fail)? else {
            return Ok(Vec::new());
        };
        let Some(mut file) = optional(parent.open_read(name)).map_err(fail)? else { return Ok(Vec::new()) };
        let io = |e: std::io::Error| DiskError {
            kind: DiskErrorKind::Io,
            op: "read",
            area,
            path: path.to_owned(),
            detail: e.to_string(),
        };
        file.seek(SeekFrom::Start(offset)).map_err(io)?;
        // Most often so much is there; more than this is made room for as it comes.
        let mut bytes = Vec::with_capacity(usize::try_from(len.min(ROOM)).unwrap_or_default());
        file.take(len).read_to_end(&mut bytes).map_err(io)?;
        Ok(bytes)
    }

    fn len(&mut self, area: Area, path: &str) -> Result<Option<u64>, DiskError> {
        Ok(self.fingerprint(area, path)?.map(|f| f.size))
    }

    fn publish(&mut self, area: Area, path: &str, bytes: &[u8], sync: bool) -> Result<(), DiskError> {
        self.forget(area, path);
        let fail = |e: FileError| convert(&e, "write", area, path);
        let (parent, name) = self.need(area, "write", path)?.create_parent_of(path).map_err(fail)?;
        if sync { parent.publish(name, bytes) } else { parent.publish_unsynced(name, bytes) }.map_err(fail)
    }

    fn publish_read_only(&mut self, area: Area, path: &str, bytes: &[u8]) -> Result<(), DiskError> {
        self.forget(area, path);
        let fail = |e: FileError| convert(&e, "write", area, path);
        let (parent, name) = self.need(area, "write", path)?.create_parent_of(path).map_err(fail)?;
        parent.publish_as(name, bytes, 0o444).map_err(fail)
    }

    fn append(&mut self, area: Area, path: &str, bytes: &[u8]) -> Result<(), DiskError> {
        // A handle whose file was moved away or replaced must not be written on.
        let now = self.fingerprint(area, path)?;
        if now.is_none() {
            self.forget(area, path);
        }
        let log = self.log(area, path)?;
        log.append(bytes).map(drop).map_err(|e| convert(&e, "append to", area, path))
    }

    fn sync(&mut self, area: Area, path: &str) -> Result<(), DiskError> {
        self.log(area, path)?.sync().map_err(|e| convert(&e, "sync", area, path))
    }

    fn truncate(&mut self, area: Area, path: &str, len: u64) -> Result<(), DiskError> {
        self.log(area, path)?.truncate(len).map_err(|e| convert(&e, "cut", area, path))
    }

    fn list(&mut self, area: Area, dir: &str) -> Result<Vec<String>, DiskError> {
        let entries = self.entries(area, dir)?.into_iter();
        Ok(entries.filter(|e| e.kind == Kind::File).filter_map(|e| e.name.into_string().ok()).collect())
    }

    fn newest(&mut self, area: Area, dir: &str, suffix: &str) -> Result<Option<String>, DiskError> {
        let fail = |e: FileError| convert(&e, "list", area, dir);
        let Some(root) = self.dir(area) else { return Ok(None) };
        let Some(found) = optional(root.open_path(dir)).map_err(fail)? else { return Ok(None) };
        let mut newest = None;
        for entry in found.list(MAX_NAMES).map_err(fail)?.entries {
            let Some(name) = entry.name.into_string().ok().filter(|name| name.ends_with(suffix)) else {
                continue;
            };
            // One that is gone meanwhile is not the newest.
            let stat = found.stat(&name).map_err(fail)?.filter(|stat| stat.kind == Kind::File);
            newest = newest.max(stat.map(|stat| (stat.changed_ns, name)));
        }
        Ok(newest.map(|(_, name)| name))
    }

    fn irregular(&mut self, area: Area, dir: &str) -> Result<Vec<String>, DiskError> {
        let entries = self.entries(area, dir)?.into_iter();
        let left_out = entries.filter(|e| e.kind != Kind::File || e.name.to_str().is_none());
        Ok(left_out.map(|e| e.name.to_string_lossy().into_owned()).collect())
    }

    fn make_printable(&mut self, area: Area, dir: &str, suffix: &str) -> Result<Vec<String>, DiskError> {
        let mut renamed = Vec::new();
        for entry in self.entries(area, dir)? {
            if entry.name.to_str().is_some() {
                continue;
            }
            let fail = |e: FileError| convert(&e, "move", area, dir);
            let parent = self.need(area, "move", dir)?.open_path(dir).map_err(fail)?;
            let stem = entry.name.to_string_lossy().replace('\u{fffd}', "_");
            let numbered = |number| {
                if number == 1 { format!("{stem}{suffix}") } else { format!("{stem}-{number}{suffix}") }
            };
            let name =
                free_name(numbered, |name| parent.stat(name).map(|stat| stat.is_some())).map_err(fail)?;
            parent.rename(&entry.name, &name).map_err(fail)?;
            renamed.push(name);
        }
        Ok(renamed)
    }

    fn remove(&mut self, area: Area, path: &str) -> Result<(), DiskError> {
        self.forget(area, path);
        let fail = |e: FileError| convert(&e, "remove", area, path);
        let Some(dir) = self.dir(area) else { return Ok(()) };
        let Some((parent, name)) = optional(dir.parent_of(path)).map_err(fail)? else { return Ok(()) };
        parent.remove_file(name).map(drop).map_err(fail)
    }

    fn rename(&mut self, area: Area, from: &str, to: &str) -> Result<(), DiskError> {
        self.forget(area, from);
        self.forget(area, to);
        let fail = |e: FileError| convert(&e, "move", area, from);
        let dir = self.need(area, "move", from)?;
        let (from_dir, from_name) = dir.parent_of(from).map_err(fail)?;
        let (to_dir, to_name) = dir.create_parent_of(to).map_err(fail)?;
        from_dir.rename_into(from_name, &to_dir, to_name).map_err(fail)
    }

    fn fingerprint(&mut self, area: Area, path: &str) -> Result<Option<Fingerprint>, DiskError> {
        let fail = |e: FileError| convert(&e, "look at", area, path);
        let Some(dir) = self.dir(area) else { return Ok(None) };
        let stat = if path.contains('/') {
            let Some((parent, name)) = optional(dir.parent_of(path)).map_err(fail)? else { return Ok(None) };
            parent.stat(name)
        } else {
            // Its directory is open already; this is asked again and again.
            dir.stat(path)
        };
        let Some(stat) = stat.map_err(fail)? else { return Ok(None) };
        Ok(Some(Fingerprint {
            id: (stat.id.dev, stat.id.ino),
            size: stat.size,
            changed: i128::from(stat.changed_ns),
        }))
    }
}
