//! References that keep another from being written: `a` where `a/b` is to be, and the other way round.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use crate::aside;
use crate::error::{BusyState, GitError, RepoError};
use crate::files::{self, Small};
use crate::ref_list::RefValue;
use crate::refs;
use crate::repo::PeerRepo;
use crate::write::Author;

/// References in the way that are listed.
const MAX_LISTED: usize = 500;
/// Packed references are read up to here.
const PACKED_CAP: u64 = 128 << 20;
/// Directories that are looked through for a file.
const MAX_DIRS: usize = 10_000;

/// What keeps a reference from being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InTheWay {
    /// The references, at most 500. What is no reference is not among them.
    pub refs: Vec<(String, RefValue)>,
    name: String,
    /// Files and directories of references and of their logs.
    places: Vec<PathBuf>,
    /// Some are packed.
    packed: bool,
}

impl PeerRepo {
    /// What keeps a reference of this name from being written, whatever made it: references above or below
    /// it, loose or packed, and logs of such. Nothing for a name that is free to be written.
    ///
    /// # Errors
    /// [`GitError::InvalidName`], [`GitError::Io`].
    pub fn in_the_way(&self, name: &str) -> Result<Option<InTheWay>, GitError> {
        refs::check_name(name)?;
        let common = self.common_dir();
        let mut places = Vec::new();
        for top in [common.to_owned(), common.join("logs")] {
            for above in above(name) {
                let path = top.join(above);
                let stat = files::lstat(&path).or_else(nothing_below_a_file);
                let stat = stat.map_err(|source| GitError::io(&path, source))?;
                if stat.is_some_and(|stat| files::kind(&stat) != FileType::Directory) {
                    places.push(path);
                }
            }
            let below = top.join(name);
            if holds_a_file(&below)? {
                places.push(below);
            }
        }
        let (_, gone) = self.packed_but(name)?;
        if places.is_empty() && gone.is_empty() {
            return Ok(None);
        }
        let mut found: Vec<String> = above(name).map(str::to_owned).collect();
        let below = format!("{name}/");
        if let Ok(list) = self.repo.references_glob(&format!("{below}*")) {
            let names = list.flatten().filter_map(|found| found.name().ok().map(str::to_owned));
            found.extend(names.take(MAX_LISTED));
        }
        let value = |name: String| {
            let found = self.repo.find_reference(&name).ok()?;
            let value = match (found.target(), found.symbolic_target().ok().flatten()) {
                (Some(oid), _) => RefValue::Direct(oid.to_string()),
                (None, Some(target)) => RefValue::Symbolic(target.to_owned()),
                (None, None) => return None,
            };
            Some((name, value))
        };
        let refs = found.into_iter().filter_map(value).take(MAX_LISTED).collect();
        Ok(Some(InTheWay { refs, name: name.to_owned(), places, packed: !gone.is_empty() }))
    }

    /// Moves what is in the way to where git does not look, as [`PeerRepo::move_aside`] does, under names
    /// that begin with `label`. A `HEAD` that names one of these references is detached where it is. Returns
    /// where everything is now, from the git directory. What these references named is to be kept before.
    ///
    /// # Errors
    /// [`RepoError::Busy`] when the packed references are locked, [`GitError::Repo`], [`GitError::Io`].
    pub fn make_way(&self, way: &InTheWay, label: &str, author: &Author) -> Result<Vec<String>, GitError> {
        self.check_writable()?;
        if let Ok(head) = self.facts().head()
            && head.branch.as_deref().is_some_and(|branch| is_in_the_way(branch, &way.name))
        {
            self.detach_head(&head.commit, author)?;
        }
        let mut moved = Vec::new();
        if way.packed {
            moved.extend(self.unpack(&way.name, label)?);
        }
        for path in &way.places {
            let shown = path.strip_prefix(self.common_dir()).unwrap_or(path);
            moved.extend(aside::keep(self.common_dir(), path, shown, label)?);
        }
        Ok(moved)
    }

    /// Takes what is in the way out of the packed references; those lines are kept.
    fn unpack(&self, name: &str, label: &str) -> Result<Option<String>, GitError> {
        use std::io::Write as _;
        let path = self.common_dir().join("packed-refs");
        let lock = self.common_dir().join("packed-refs.lock");
        let fail = |source| GitError::io(&path, source);
        let mut file = files::create_new(&lock).map_err(|source| match source.kind() {
            std::io::ErrorKind::AlreadyExists => GitError::Repo(RepoError::Busy {
                path: self.work_dir().to_owned(),
                state: BusyState::RefLock,
                lock: Some(lock.clone()),
            }),
            _ => fail(source),
        })?;
        let mut write = || -> Result<Option<String>, GitError> {
            let (kept, gone) = self.packed_but(name)?;
            file.write_all(&kept).map_err(fail)?;
            let hex = files::random_hex().map_err(fail)?;
            let copy = self.git_dir().join(format!("packed-refs.peers-{hex}"));
            files::replace(&copy, &gone)?;
            let to = aside::keep(self.common_dir(), &copy, Path::new("packed-refs"), label)?;
            rustix::fs::renameat(rustix::fs::CWD, &lock, rustix::fs::CWD, &path)
                .map_err(|error| fail(error.into()))?;
            Ok(to)
        };
        write().inspect_err(|_| {
            // The first error is the one that matters.
            let _ = rustix::fs::unlinkat(rustix::fs::CWD, &lock, rustix::fs::AtFlags::empty());
        })
    }

    /// The packed references without those that are in the way, and those.
    fn packed_but(&self, name: &str) -> Result<(Vec<u8>, Vec<u8>), GitError> {
        let path = self.common_dir().join("packed-refs");
        let found = files::read_small(&path, PACKED_CAP).map_err(|source| GitError::io(&path, source))?;
        let Small::Bytes(bytes) = found else { return Ok((Vec::new(), Vec::new())) };
        let (mut kept, mut gone, mut last_gone) = (Vec::new(), Vec::new(), false);
        for line in bytes.split_inclusive(|b| *b == b'\n') {
            // What a tag leads to stands behind it.
            if !line.starts_with(b"^") {
                let text = line.get(41..).map(<[u8]>::trim_ascii_end);
                let text = text.and_then(|text| std::str::from_utf8(text).ok());
                last_gone = !line.starts_with(b"#") && text.is_some_and(|text| is_in_the_way(text, name));
            }
            if last_gone { &mut gone } else { &mut kept }.extend_from_slice(line);
        }
        Ok((kept, gone))
    }
}

/// The names above one, but for `refs` itself.
fn above(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('/').skip(1).filter_map(|(at, _)| name.get(..at))
}

fn is_in_the_way(other: &str, name: &str) -> bool {
    let below =
        |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'));
    below(other, name) || below(name, other)
}

fn nothing_below_a_file(error: std::io::Error) -> std::io::Result<Option<rustix::fs::Stat>> {
    if error.kind() == std::io::ErrorKind::NotADirectory { Ok(None) } else { Err(error) }
}

/// Whether this is a directory with anything but empty directories in it. Those go when a reference is written.
fn holds_a_file(path: &Path) -> Result<bool, GitError> {
    let mut todo = vec![path.to_owned()];
    let mut seen = 0;
    while let Some(path) = todo.pop() {
        let Ok(dir) = files::open_dir(&path) else { continue };
        seen += 1;
        let listed = files::list(&dir, MAX_DIRS).map_err(|source| GitError::io(&path, source))?;
        let Some(listed) = listed.filter(|_| seen < MAX_DIRS) else { return Ok(true) };
        for (name, kind) in listed {
            if kind != FileType::Directory {
                return Ok(true);
            }
            todo.push(path.join(std::ffi::OsStr::from_bytes(&name)));
        }
    }
    Ok(false)
}
