//! Whether compressed files are whole.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZFlush, MZStatus};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::clock;

/// Bytes that are read or unpacked at a time.
const PIECE: usize = 32 * 1024;

/// Bytes that the files of one look unpack to.
const MAX_UNPACKED: u64 = 16 << 30;

thread_local! {
    /// Directories below which all were whole, and when, in seconds.
    static WHOLE: RefCell<HashMap<PathBuf, i64>> = RefCell::default();
}

/// A look at files below a directory, those that were changed since all were found whole.
#[derive(Debug)]
pub struct Streams {
    dir: PathBuf,
    since: i64,
    began: i64,
    left: u64,
}

impl Streams {
    /// Begins one.
    #[must_use]
    pub fn below(dir: &Path) -> Self {
        let since = WHOLE.with_borrow(|whole| whole.get(dir).copied()).unwrap_or(i64::MIN);
        // Clocks of files are coarse, some by two seconds.
        let began = (clock::now().as_millis() / 1000).saturating_sub(3);
        Self { dir: dir.to_owned(), since, began, left: MAX_UNPACKED }
    }

    /// Whether a file by its name below `dir`, as [`is_cut_short`]. One that is gone is not, nor one too short to be
    /// taken for a stream, nor what is no regular file.
    ///
    /// # Errors
    /// What opening and reading says; files of this look that unpack to more than 16 GiB.
    pub fn is_cut_short(&mut self, dir: impl AsFd, name: &[u8]) -> io::Result<bool> {
        let (dir, name) = (dir.as_fd(), OsStr::from_bytes(name));
        let stat = match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(false),
            stat => stat?,
        };
        if stat.st_ctime < self.since || stat.st_size < 2 {
            return Ok(false);
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(dir, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(false),
            opened => File::from(opened?),
        };
        Ok(file.metadata()?.is_file() && is_cut_short(file, &mut self.left)?)
    }

    /// All were looked at, and none was cut short.
    pub fn are_whole(self) {
        WHOLE.with_borrow_mut(|whole| whole.insert(self.dir, self.began));
    }
}

/// Whether a zlib stream (RFC 1950) ends before it says that it does. One that is damaged otherwise is not, nor is one
/// with something behind it: readers see that for themselves. What it unpacks to is taken off `left`, in bytes.
///
/// # Errors
/// What reading says; one that unpacks to more than `left`.
fn is_cut_short(mut stream: impl Read, left: &mut u64) -> io::Result<bool> {
    let mut state = InflateState::new_boxed(DataFormat::Zlib);
    let (mut packed, mut out) = (vec![0; PIECE], vec![0; PIECE]);
    loop {
        let read = match stream.read(&mut packed) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        let mut rest = packed.get(..read).unwrap_or_default();
        loop {
            let done = inflate(&mut state, rest, &mut out, MZFlush::None);
            rest = rest.get(done.bytes_consumed..).unwrap_or_default();
            let unpacked = u64::try_from(done.bytes_written).unwrap_or(u64::MAX);
            *left = left.checked_sub(unpacked).ok_or_else(|| {
                io::Error::new(io::ErrorKind::FileTooLarge, "it unpacks to more than is looked through")
            })?;
            match done.status {
                Ok(MZStatus::Ok) if done.bytes_written > 0 || !rest.is_empty() => {}
                Ok(MZStatus::Ok) | Err(miniz_oxide::MZError::Buf) => break,
                _ => return Ok(false),
            }
        }
        if read == 0 {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use miniz_oxide::deflate::compress_to_vec_zlib;
    use proptest::prelude::*;

    use super::*;

    fn cut(bytes: &[u8]) -> bool {
        is_cut_short(bytes, &mut u64::MAX.clone()).unwrap()
    }

    proptest! {
        #[test]
        fn every_beginning_of_a_stream_is_cut_short_and_the_whole_is_not(text in proptest::collection::vec(any::<u8>(), 0..300), times in 1_usize..800) {
            let packed = compress_to_vec_zlib(&text.repeat(times), 6);
            prop_assert!(!cut(&packed));
            for at in 0..packed.len() {
                prop_assert!(cut(&packed[..at]), "{} of {}", at, packed.len());
            }
            prop_assert!(!cut(&[&*packed, b"more"].concat()));
        }

        #[test]
        fn anything_is_answered(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            cut(&bytes);
        }
    }

    #[test]
    fn a_file_is_looked_at_again_when_it_was_changed() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = File::open(tmp.path()).unwrap();
        let look = || Streams::below(tmp.path()).is_cut_short(&dir, b"f").unwrap();
        assert!(!look(), "nothing is there");
        let packed = compress_to_vec_zlib(b"some text", 6);
        std::fs::write(tmp.path().join("f"), &packed).unwrap();
        assert!(!look());
        Streams::below(tmp.path()).are_whole();
        std::fs::write(tmp.path().join("f"), &packed[..6]).unwrap();
        assert!(look());
        std::fs::write(tmp.path().join("f"), "x").unwrap();
        assert!(!look(), "no stream");
        // Older than the last look.
        std::fs::write(tmp.path().join("f"), &packed[..6]).unwrap();
        let mut later = Streams::below(tmp.path());
        later.since = i64::MAX;
        assert!(!later.is_cut_short(&dir, b"f").unwrap());
        std::fs::remove_file(tmp.path().join("f")).unwrap();
        std::fs::create_dir(tmp.path().join("f")).unwrap();
        assert!(!look(), "no file");
    }

    #[test]
    fn damage_is_for_others_to_tell_and_a_bomb_is_an_error() {
        assert!(!cut(b"garbage"));
        assert!(!cut(b"\0\0") && cut(b"") && cut(b"x"));
        let bomb = compress_to_vec_zlib(&vec![0; 10_000_000], 9);
        let mut left = 1_000_000;
        let error = is_cut_short(&*bomb, &mut left).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        left = 10_000_000;
        assert!(!is_cut_short(&*bomb, &mut left).unwrap());
        assert_eq!(left, 0);
    }
}
