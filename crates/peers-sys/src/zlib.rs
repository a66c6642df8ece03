//! Whether compressed files are whole.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZFlush, MZStatus};
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags};
use rustix::io::Errno;

use crate::clock;
use crate::dir::{FileId, FileStat};

/// Bytes that are read or unpacked at a time.
const PIECE: usize = 32 * 1024;

/// Bytes that the files of one look unpack to.
const MAX_UNPACKED: u64 = 16 << 30;

/// Directories of a store that hold streams: those of two hex digits.
const FAN_OUT: usize = 256;

thread_local! {
    /// When all streams of a directory were whole, in nanoseconds. Not by path: another directory may come to have it,
    /// which does not change the files in it.
    static WHOLE: RefCell<HashMap<FileId, i64>> = RefCell::default();
}

/// The first loose object of git's below `objects` that ends before its stream does. Not looked at: files that were not
/// changed since an earlier look of this thread found their directory whole, those that are gone meanwhile or are too
/// short to be taken for a stream, and what is no regular file.
///
/// # Errors
/// What opening and reading says; files that unpack to more than 16 GiB together.
pub fn cut_short_object(objects: &Path) -> io::Result<Option<PathBuf>> {
    let mut left = MAX_UNPACKED;
    for number in 0..FAN_OUT {
        let path = objects.join(format!("{number:02x}"));
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = match rustix::fs::openat(CWD, &path, flags, Mode::empty()) {
            Err(Errno::NOENT) => continue,
            opened => Dir::new(opened?)?,
        };
        if let Some(name) = cut_short_in(opened, &mut left)? {
            return Ok(Some(path.join(std::ffi::OsStr::from_bytes(&name))));
        }
    }
    Ok(None)
}

/// The same in one directory.
fn cut_short_in(mut dir: Dir, left: &mut u64) -> io::Result<Option<Vec<u8>>> {
    let id = FileStat::new(&dir.stat()?).id;
    let since = WHOLE.with_borrow(|whole| whole.get(&id).copied()).unwrap_or(i64::MIN);
    // Clocks of files are coarse, some by two seconds.
    let began = clock::now().as_millis().saturating_sub(3000).saturating_mul(1_000_000);
    while let Some(entry) = dir.read() {
        let entry = entry?;
        let name = entry.file_name();
        let stat = match rustix::fs::statat(dir.fd()?, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => continue,
            stat => FileStat::new(&stat?),
        };
        if !matches!(name.to_bytes().len(), 38 | 62) || stat.changed_ns < since || stat.size < 2 {
            continue;
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(dir.fd()?, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => continue,
            opened => File::from(opened?),
        };
        if file.metadata()?.is_file() && is_cut_short(file, left)? {
            return Ok(Some(name.to_bytes().to_vec()));
        }
    }
    WHOLE.with_borrow_mut(|whole| whole.insert(id, began));
    Ok(None)
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

    const NAME: &str = "a1/00112233445566778899001122334455667788";

    #[test]
    fn an_object_is_looked_at_again_when_it_or_its_directory_was_changed() {
        let tmp = tempfile::tempdir().unwrap();
        let look = || cut_short_object(tmp.path()).unwrap();
        let file = tmp.path().join(NAME);
        let (dir, aside) = (tmp.path().join("a1"), tmp.path().join("aside"));
        let put = |bytes: &[u8]| std::fs::write(&file, bytes).unwrap();
        let known = |since| {
            let id = FileStat::new(&rustix::fs::stat(&dir).unwrap()).id;
            WHOLE.with_borrow_mut(|whole| whole.insert(id, since))
        };
        assert_eq!(look(), None, "nothing is there");
        std::fs::create_dir(&dir).unwrap();
        let packed = compress_to_vec_zlib(b"some text", 6);
        put(&packed);
        assert_eq!(look(), None);
        put(&packed[..6]);
        assert_eq!(look().as_deref(), Some(&*file));
        put(b"x");
        assert_eq!(look(), None, "no stream");
        put(&packed[..6]);
        assert_eq!(known(i64::MAX).map(|since| since > i64::MIN), Some(true), "it was found whole before");
        assert_eq!(look(), None, "older than the last look");
        // A directory that is put there in its place keeps its files as they were.
        std::fs::create_dir(&aside).unwrap();
        std::fs::copy(&file, aside.join(&NAME[3..])).unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
        std::fs::rename(&aside, &dir).unwrap();
        assert_eq!(look().as_deref(), Some(&*file));
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        std::fs::write(dir.join("tmp_obj_1"), &packed[..6]).unwrap();
        assert_eq!(look(), None, "no file, and none of git's");
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
