//! A login file: read, locked and replaced by the rules of [`peers_sys::dir`].

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use peers_model::limits;
use peers_sys::lock::{Acquired, Sharing};
use peers_sys::{FileError, FileLock, SafeDir};
use secrecy::{ExposeSecret, SecretString};

/// Longer than one renewal by another process takes.
const PATIENCE: Duration = Duration::from_secs(35);

/// The file of a login. It is opened anew each time: its tool may replace the directory.
#[derive(Debug, Clone)]
pub(super) struct LoginFile {
    path: PathBuf,
    name: OsString,
}

impl LoginFile {
    /// `None` for a path that names no file.
    pub(super) fn new(path: &Path) -> Option<Self> {
        path.file_name().map(|name| Self { path: path.to_owned(), name: name.to_owned() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn read(&self) -> Result<SecretString, FileError> {
        self.dir()?.read_text(&self.name, limits::STORE_FILE).map(SecretString::from)
    }

    /// Takes the lock that all who renew this login hold; `None` if another process did not let go of it.
    pub(super) fn lock(&self) -> Result<Option<FileLock>, FileError> {
        let mut name = self.name.clone();
        name.push(".peers-lock");
        match FileLock::acquire(&self.dir()?, name, Sharing::Exclusive, PATIENCE)? {
            Acquired::Held(lock) => Ok(Some(lock)),
            Acquired::Busy { .. } => Ok(None),
        }
    }

    /// Replaces the content, under the lock. Atomic, except where the file is a mount of its own.
    pub(super) fn write(&self, text: &SecretString, _lock: &FileLock) -> Result<(), FileError> {
        self.write_by(text, |dir, name, bytes| dir.publish(name, bytes))
    }

    fn write_by(
        &self,
        text: &SecretString,
        publish: impl Fn(&SafeDir, &OsString, &[u8]) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        let dir = self.dir()?;
        let bytes = text.expose_secret().as_bytes();
        match publish(&dir, &self.name, bytes) {
            // Nothing can be renamed over a mount. Its readers take the lock as well.
            Err(FileError::Io { source, .. }) if is_mount(source.kind()) => {
                dir.write_in_place(&self.name, bytes)
            }
            result => result,
        }
    }

    fn dir(&self) -> Result<SafeDir, FileError> {
        let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        SafeDir::open_root(parent.unwrap_or(Path::new(".")))
    }
}

fn is_mount(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ResourceBusy | ErrorKind::PermissionDenied | ErrorKind::CrossesDevices)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, LoginFile) {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("login.json");
        std::fs::write(&path, text).unwrap();
        (tmp, LoginFile::new(&path).unwrap())
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_is_private() {
        let (tmp, file) = file("old");
        let before = std::fs::metadata(file.path()).unwrap().ino();
        file.write(&"new".into(), &file.lock().unwrap().unwrap()).unwrap();
        let after = std::fs::metadata(file.path()).unwrap();
        assert_eq!(file.read().unwrap().expose_secret(), "new");
        assert_ne!(after.ino(), before);
        assert_eq!(after.mode() & 0o777, 0o600);
        let names: Vec<_> = std::fs::read_dir(tmp.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "the file and its lock: {names:?}");
    }

    #[test]
    fn a_file_that_cannot_be_renamed_over_is_written_in_place() {
        for kind in [ErrorKind::ResourceBusy, ErrorKind::PermissionDenied, ErrorKind::CrossesDevices] {
            let (_tmp, file) = file("the old and longer text");
            let before = std::fs::metadata(file.path()).unwrap().ino();
            let busy = |dir: &SafeDir, name: &OsString, _: &[u8]| {
                let path = dir.path().join(name);
                Err(FileError::Io { path, op: "rename into place", source: kind.into() })
            };
            file.write_by(&"new".into(), busy).unwrap();
            assert_eq!(file.read().unwrap().expose_secret(), "new");
            assert_eq!(std::fs::metadata(file.path()).unwrap().ino(), before);
        }
    }

    #[test]
    fn other_failures_leave_the_file_alone() {
        let (_tmp, file) = file("old");
        let full = |dir: &SafeDir, name: &OsString, _: &[u8]| {
            let path = dir.path().join(name);
            Err(FileError::Io { path, op: "write", source: ErrorKind::StorageFull.into() })
        };
        assert!(file.write_by(&"new".into(), full).is_err());
        assert_eq!(file.read().unwrap().expose_secret(), "old");
    }

    #[test]
    fn a_linked_file_is_refused() {
        let (tmp, file) = file("text");
        std::fs::hard_link(file.path(), tmp.path().join("other")).unwrap();
        assert!(matches!(file.read(), Err(FileError::HardLinked { .. })));
        std::fs::remove_file(file.path()).unwrap();
        std::os::unix::fs::symlink("other", file.path()).unwrap();
        assert!(matches!(file.read(), Err(FileError::Symlink { .. })));
    }
}
