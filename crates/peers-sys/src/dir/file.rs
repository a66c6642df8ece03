//! Reading files and writing them in place.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;

use super::{FileError, FileStat, SafeDir, io_error};

/// What happens to the content of a file opened for writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// It stays, writes go to the end.
    Append,
    /// It is dropped, after the file was checked.
    Truncate,
}

/// The end of a file of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tail {
    /// Whole lines, except that the last one may lack its end.
    pub bytes: Vec<u8>,
    /// Whether something came before them.
    pub cut: bool,
}

impl SafeDir {
    /// The content of `name`, at most `cap` bytes.
    ///
    /// # Errors
    /// [`FileError::NotFound`], [`FileError::TooLarge`], and those with [`FileError::is_unsafe`].
    pub fn read(&self, name: impl AsRef<OsStr>, cap: u64) -> Result<Vec<u8>, FileError> {
        let name = name.as_ref();
        let (file, stat) = self.open_regular(name, OFlags::RDONLY)?;
        read_capped(file, &stat, cap, &self.full(name))
    }

    /// Like [`SafeDir::read`], `None` when there is no such file.
    ///
    /// # Errors
    /// As [`SafeDir::read`] without [`FileError::NotFound`].
    pub fn read_opt(&self, name: impl AsRef<OsStr>, cap: u64) -> Result<Option<Vec<u8>>, FileError> {
        match self.read(name, cap) {
            Err(FileError::NotFound { .. }) => Ok(None),
            result => result.map(Some),
        }
    }

    /// Like [`SafeDir::read`] for text.
    ///
    /// # Errors
    /// As [`SafeDir::read`]; [`FileError::NotUtf8`], nothing is repaired.
    pub fn read_text(&self, name: impl AsRef<OsStr>, cap: u64) -> Result<String, FileError> {
        let name = name.as_ref();
        String::from_utf8(self.read(name, cap)?)
            .map_err(|e| FileError::NotUtf8 { path: self.full(name), offset: e.utf8_error().valid_up_to() })
    }

    /// Like [`SafeDir::read_text`], `None` when there is no such file.
    ///
    /// # Errors
    /// As [`SafeDir::read_text`] without [`FileError::NotFound`].
    pub fn read_text_opt(&self, name: impl AsRef<OsStr>, cap: u64) -> Result<Option<String>, FileError> {
        match self.read_text(name, cap) {
            Err(FileError::NotFound { .. }) => Ok(None),
            result => result.map(Some),
        }
    }

    /// The whole lines among the last `window` bytes of `name`, however long the file is.
    ///
    /// # Errors
    /// [`FileError::NotFound`], and those with [`FileError::is_unsafe`].
    pub fn read_tail(&self, name: impl AsRef<OsStr>, window: u64) -> Result<Tail, FileError> {
        let name = name.as_ref();
        let (mut file, stat) = self.open_regular(name, OFlags::RDONLY)?;
        let skipped = stat.size.saturating_sub(window);
        let mut bytes = Vec::new();
        // One byte more: it tells whether the window begins at the beginning of a line.
        file.seek(SeekFrom::Start(skipped.saturating_sub(1)))
            .and_then(|_| file.take(window.saturating_add(1)).read_to_end(&mut bytes))
            .map_err(|e| io_error(&self.full(name), "read", e))?;
        let cut = skipped > 0;
        if cut {
            let partial = bytes.iter().position(|&b| b == b'\n').map_or(bytes.len(), |i| i + 1);
            bytes.drain(..partial);
        }
        Ok(Tail { bytes, cut })
    }

    /// Opens `name` for reading as a stream.
    ///
    /// # Errors
    /// [`FileError::NotFound`], and those with [`FileError::is_unsafe`].
    pub fn open_read(&self, name: impl AsRef<OsStr>) -> Result<File, FileError> {
        Ok(self.open_regular(name.as_ref(), OFlags::RDONLY)?.0)
    }

    /// Opens `name` for writing, made with mode 0600 when it is missing: for logs and for the output
    /// of children.
    ///
    /// # Errors
    /// Those with [`FileError::is_unsafe`], [`FileError::Io`].
    pub fn create_file_for_write(&self, name: impl AsRef<OsStr>, mode: WriteMode) -> Result<File, FileError> {
        let name = name.as_ref();
        let flags = OFlags::WRONLY | OFlags::CREATE;
        match mode {
            WriteMode::Append => Ok(self.open_regular(name, flags | OFlags::APPEND)?.0),
            WriteMode::Truncate => {
                let (file, _) = self.open_regular(name, flags)?;
                file.set_len(0).map_err(|e| io_error(&self.full(name), "truncate", e))?;
                Ok(file)
            }
        }
    }

    /// Sets the time of the last change of `name` and returns the file as it is then: a file system may
    /// keep the time less exactly than it was asked to.
    ///
    /// # Errors
    /// [`FileError::NotFound`], and those with [`FileError::is_unsafe`].
    pub fn set_modified(&self, name: impl AsRef<OsStr>, at: Duration) -> Result<FileStat, FileError> {
        let name = name.as_ref();
        let (file, _) = self.open_regular(name, OFlags::RDONLY)?;
        let at = SystemTime::UNIX_EPOCH + at;
        file.set_modified(at).map_err(|e| io_error(&self.full(name), "set the time of", e))?;
        let stat = rustix::fs::fstat(&file).map_err(|e| io_error(&self.full(name), "stat", e))?;
        Ok(FileStat::new(&stat))
    }

    /// Replaces the content of `name` in the same inode and syncs it. Not atomic: only for files that
    /// cannot be renamed over, such as a file that is a mount point of its own.
    ///
    /// # Errors
    /// Those with [`FileError::is_unsafe`], [`FileError::Io`].
    pub fn write_in_place(&self, name: impl AsRef<OsStr>, bytes: &[u8]) -> Result<(), FileError> {
        let name = name.as_ref();
        let mut file = self.create_file_for_write(name, WriteMode::Truncate)?;
        file.write_all(bytes)
            .and_then(|()| file.sync_all())
            .map_err(|e| io_error(&self.full(name), "write", e))
    }
}

/// Everything in `file` from its position on, refused when longer than `cap`.
pub(crate) fn read_capped(file: File, stat: &FileStat, cap: u64, path: &Path) -> Result<Vec<u8>, FileError> {
    let too_large = || FileError::TooLarge { path: path.to_owned(), cap };
    if stat.size > cap {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(stat.size).unwrap_or(0).saturating_add(1));
    // It may have grown since.
    file.take(cap.saturating_add(1)).read_to_end(&mut bytes).map_err(|e| io_error(path, "read", e))?;
    if u64::try_from(bytes.len()).is_ok_and(|len| len <= cap) { Ok(bytes) } else { Err(too_large()) }
}
