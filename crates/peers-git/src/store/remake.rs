//! Making the control directory anew when it cannot be used any more.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use git2::Oid;

use super::budget::readable;
use super::complete::store_at;
use super::loose::write_loose;
use crate::cli::Git;
use crate::control::ControlDir;
use crate::error::GitError;
use crate::files;
use crate::ref_list::hash_at;
use crate::salvage::{PREFIX, SALVAGED};

/// Places that are tried for a directory that is moved aside.
const PLACES: u32 = 10_000;
/// Kept copies that are looked for.
const MAX_SALVAGE: usize = 10_000;
/// Files of ours that are taken over as they are.
const TAKEN_OVER: [&str; 4] = ["peers/known", "peers/tips", SALVAGED, "shallow"];
/// Each of them is read up to here.
const FILE_CAP: u64 = 1 << 30;

/// A control directory that was made anew.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Remade {
    /// Where the old one is now.
    pub aside: Option<PathBuf>,
    /// Objects that could still be read there and were taken over.
    pub objects: usize,
    /// Kept copies that were taken over.
    pub salvage: usize,
}

impl ControlDir {
    /// Opens the directory as [`ControlDir::open_or_create`] does; one that is there and is damaged is
    /// moved aside and made anew from what can still be read of it.
    ///
    /// # Errors
    /// As [`ControlDir::open_or_create`].
    pub fn open_or_remake(path: &Path, git: Git) -> Result<(Self, Option<Remade>), GitError> {
        match Self::open_or_create(path, git.clone()) {
            Ok(control) => Ok((control, None)),
            Err(error) if !is_damage(&error, path) => Err(error),
            Err(_) => {
                let (control, remade) = remake(path, git)?;
                Ok((control, Some(remade)))
            }
        }
    }

    /// Moves the directory aside and makes it anew from what can still be read of it. What is missing then
    /// is for [`ControlDir::complete`].
    ///
    /// # Errors
    /// [`GitError::Io`], [`GitError::DiskFull`].
    pub fn remake(&mut self) -> Result<Remade, GitError> {
        let (control, remade) = remake(self.path(), self.git.clone())?;
        let excludes = self.excludes.take();
        *self = control.with_excludes(excludes);
        Ok(remade)
    }
}

fn is_damage(error: &GitError, path: &Path) -> bool {
    error.is_damage_at(path) || files::canonical(path).is_ok_and(|path| error.is_damage_at(&path))
}

fn remake(path: &Path, git: Git) -> Result<(ControlDir, Remade), GitError> {
    let aside = move_aside(path)?;
    let mut remade = Remade { aside: aside.clone(), objects: 0, salvage: 0 };
    let mut control = ControlDir::open_or_create(path, git.clone())?;
    let Some(old) = aside else { return Ok((control, remade)) };
    for name in TAKEN_OVER {
        if let Ok(Some(bytes)) = files::small(&old.join(name), FILE_CAP) {
            files::replace(&control.path().join(name), &bytes)?;
        }
    }
    if files::open_dir(&old.join("objects")).is_ok() {
        let from = store_at(&old.join("objects"))?;
        let mut all = Vec::new();
        // What cannot be listed cannot be read either.
        let _rest = from.foreach(|oid| {
            all.push(*oid);
            true
        });
        for oid in all {
            if let Some((kind, data)) = readable(&from, oid) {
                write_loose(&control.objects_dir(), oid, kind, &data)?;
                remade.objects += 1;
            }
        }
    }
    let into = control.path().to_owned();
    drop(control);
    control = ControlDir::open_or_create(&into, git)?;
    for (name, oid) in old_salvage(&old) {
        let named = control.repo.find_commit(oid).is_ok()
            && control.repo.reference(&name, oid, false, "salvage: taken over").is_ok();
        remade.salvage += usize::from(named);
    }
    Ok((control, remade))
}

fn move_aside(path: &Path) -> Result<Option<PathBuf>, GitError> {
    let fail = |source: std::io::Error| GitError::io(path, source);
    if files::lstat(path).map_err(fail)?.is_none() {
        return Ok(None);
    }
    let name = path.file_name().ok_or_else(|| fail(std::io::ErrorKind::InvalidInput.into()))?;
    for n in 1..PLACES {
        let mut aside = name.to_owned();
        aside.push(format!(".bad-{n}"));
        let aside = path.with_file_name(aside);
        if files::lstat(&aside).map_err(fail)?.is_none() {
            rustix::fs::renameat(rustix::fs::CWD, path, rustix::fs::CWD, &aside)
                .map_err(|error| fail(error.into()))?;
            return Ok(Some(aside));
        }
    }
    Err(GitError::Exists { what: format!("`{}.bad-{PLACES}`", path.display()) })
}

/// The references to kept copies, by their files: the directory may be unfit to be opened.
fn old_salvage(old: &Path) -> BTreeMap<String, Oid> {
    let mut found = BTreeMap::new();
    let mut note = |name: &[u8], hash: &[u8]| {
        let name = std::str::from_utf8(name).ok().filter(|name| name.starts_with(PREFIX));
        let oid = hash_at(hash, 0).and_then(|hash| Oid::from_str(hash).ok());
        if let (Some(name), Some(oid)) = (name.filter(|name| git2::Reference::is_valid_name(name)), oid) {
            found.insert(name.to_owned(), oid);
        }
    };
    if let Ok(Some(bytes)) = files::small(&old.join("packed-refs"), FILE_CAP) {
        for line in bytes.split(|b| *b == b'\n') {
            note(line.get(41..).unwrap_or_default(), line);
        }
    }
    let mut left = MAX_SALVAGE;
    let mut todo = vec![PREFIX.trim_end_matches('/').as_bytes().to_vec()];
    while let Some(at) = todo.pop() {
        let path = old.join(std::ffi::OsStr::from_bytes(&at));
        let listed = files::open_dir(&path).ok().and_then(|dir| files::list(&dir, left).ok().flatten());
        for (name, kind) in listed.unwrap_or_default() {
            left = left.saturating_sub(1);
            let inner = [&at[..], b"/", &name[..]].concat();
            if kind == rustix::fs::FileType::Directory {
                todo.push(inner);
            } else if let Ok(Some(bytes)) = files::small(&old.join(std::ffi::OsStr::from_bytes(&inner)), 1024)
            {
                note(&inner, &bytes);
            }
        }
    }
    found
}
