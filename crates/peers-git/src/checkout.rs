//! Bringing a directory to a tree: a fresh one, one of ours again, or the agents' work tree.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::SystemTime;

use git2::{IndexEntry, IndexTime, Odb, Oid};
use peers_model::TreeId;
use rustix::fs::{FileType, Stat};

use crate::blob::{self, Leaf};
use crate::control::ControlDir;
use crate::diff::{self, RawChange};
use crate::error::{GitError, clean_bytes};
use crate::files;
use crate::index_entries;
use crate::objects::{MODE_EXEC, MODE_FILE, MODE_GITLINK, MODE_LINK};
use crate::place::{Content, Place, check_path, parent_and_name};
use crate::snapshot::{ATTRS_CAP, AttrFile, Known, Stamp, conversion, to_work_tree};

/// Entries of a gate tree.
const MAX_ENTRIES: usize = 5_000_000;
/// A file larger than this is not written out.
const FILE_CAP: usize = 2 << 30;

/// Paths that are named to people.
const MAX_NAMED: usize = 100;

/// What a checkout did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct CheckoutReport {
    /// Paths written.
    pub written: usize,
    /// Paths removed.
    pub removed: usize,
    /// Paths that could not be put in place because a directory with other files is there: all of them, as
    /// they are. Untrusted bytes.
    pub blocked: Vec<Vec<u8>>,
}

impl CheckoutReport {
    /// What could not be put in place, cleaned for people, at most 100.
    #[must_use]
    pub fn blocked_names(&self) -> Vec<String> {
        self.blocked.iter().take(MAX_NAMED).map(|path| clean_bytes(path)).collect()
    }
}

impl ControlDir {
    /// Whether what `to` has and `from` has not can be put on a disk: sane names, sane links, no file of
    /// more than 2 GiB.
    ///
    /// # Errors
    /// [`GitError::Unsafe`], [`GitError::TooLarge`], [`GitError::Corrupt`] for what cannot.
    pub fn check_checkout(&self, from: &TreeId, to: &TreeId) -> Result<(), GitError> {
        let odb = crate::objects::odb(&self.repo)?;
        let (from, to) =
            (crate::objects::require_tree(&self.repo, from)?, crate::objects::require_tree(&self.repo, to)?);
        for change in diff::raw_changes(&odb, Some(from), Some(to))? {
            let Some((mode, id)) = change.new else { continue };
            check_path(&change.path)?;
            match mode {
                MODE_GITLINK => {}
                MODE_LINK => drop(link_target(&odb, id, &change.path)?),
                _ => {
                    let what = || format!("`{}`", clean_bytes(&change.path));
                    let (size, kind) =
                        odb.read_header(id).map_err(|source| crate::objects::missing(what(), source))?;
                    if kind != git2::ObjectType::Blob || size > FILE_CAP {
                        return Err(GitError::TooLarge { what: what(), cap: format!("{FILE_CAP} bytes") });
                    }
                }
            }
        }
        Ok(())
    }
}

fn link_target(odb: &Odb<'_>, id: Oid, path: &[u8]) -> Result<Vec<u8>, GitError> {
    let target = blob::read_capped(odb, id, path, 4095)?;
    if target.is_empty() || target.contains(&0) {
        return Err(GitError::Corrupt {
            what: format!("`{}`", clean_bytes(path)),
            detail: "a symlink without a target".to_owned(),
        });
    }
    Ok(target)
}

/// A leaf as it was written.
pub(crate) struct Laid {
    pub(crate) path: Vec<u8>,
    pub(crate) mode: u32,
    pub(crate) id: Oid,
    pub(crate) stat: Option<Stat>,
}

/// Writes trees out of one store.
pub(crate) struct Writer<'a> {
    odb: &'a Odb<'a>,
    place: Place,
    /// Root of the tree being written: where attributes are looked up.
    tree: Oid,
    attributes: HashMap<Vec<u8>, Option<Vec<u8>>>,
    pub(crate) report: CheckoutReport,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(odb: &'a Odb<'a>, place: Place, tree: Oid) -> Self {
        Self { odb, place, tree, attributes: HashMap::new(), report: CheckoutReport::default() }
    }

    /// Writes one leaf; `None` when something is in the way.
    pub(crate) fn put(&mut self, path: &[u8], mode: u32, id: Oid) -> Result<Option<Stat>, GitError> {
        let done = match mode {
            MODE_GITLINK => self.place.write(path, &Content::Dir)?,
            MODE_LINK => {
                let target = link_target(self.odb, id, path)?;
                self.place.write(path, &Content::Link { target: &target })?
            }
            _ => {
                let bytes = blob::read_capped(self.odb, id, path, FILE_CAP)?;
                let files = self.attribute_files(path)?;
                let bytes = to_work_tree(conversion(&files, path), &bytes, id);
                self.place.write(path, &Content::File { bytes: &bytes, executable: mode == MODE_EXEC })?
            }
        };
        if let Ok(stat) = done {
            self.report.written += 1;
            return Ok(Some(stat));
        }
        self.report.blocked.push(path.to_vec());
        Ok(None)
    }

    pub(crate) fn remove(&mut self, path: &[u8]) -> Result<(), GitError> {
        match self.place.remove(path)? {
            Ok(()) => self.report.removed += 1,
            Err(_) => self.report.blocked.push(path.to_vec()),
        }
        Ok(())
    }

    /// Removes whatever is there. Only below directories of ours.
    pub(crate) fn remove_all(&mut self, path: &[u8]) -> Result<(), GitError> {
        self.place.remove_all(path)?;
        self.report.removed += 1;
        Ok(())
    }

    /// Is what lies at the place of a leaf what [`Writer::put`] would write?
    fn is_unchanged(
        &mut self,
        dir: &Path,
        leaf: &Leaf,
        stat: &Stat,
        known: Option<&Known>,
    ) -> Result<bool, GitError> {
        let fail = |source: io::Error| GitError::io(dir, source);
        let (parent, name) = parent_and_name(&leaf.path);
        match (leaf.mode, files::kind(stat)) {
            (MODE_LINK, FileType::Symlink) => {
                let target =
                    rustix::fs::readlinkat(open_below(dir, parent)?, OsStr::from_bytes(name), Vec::new())
                        .map_err(|error| fail(error.into()))?;
                Ok(target.as_bytes() == blob::read_capped(self.odb, leaf.id, &leaf.path, 4096)?)
            }
            (MODE_FILE | MODE_EXEC, FileType::RegularFile) => {
                let executable = stat.st_mode & 0o100 != 0;
                if executable != (leaf.mode == MODE_EXEC) || stat.st_nlink != 1 {
                    return Ok(false);
                }
                if known.is_some_and(|known| known.id == leaf.id && known.stamp == Stamp::of(stat)) {
                    return Ok(true);
                }
                let stored = blob::read_capped(self.odb, leaf.id, &leaf.path, FILE_CAP)?;
                let files = self.attribute_files(&leaf.path)?;
                let wanted = to_work_tree(conversion(&files, &leaf.path), &stored, leaf.id);
                if u64::try_from(wanted.len()) != Ok(files::size(stat)) {
                    return Ok(false);
                }
                let (file, _) = files::open_regular(open_below(dir, parent)?, name).map_err(fail)?;
                let mut found = Vec::with_capacity(wanted.len());
                file.take(files::size(stat) + 1).read_to_end(&mut found).map_err(fail)?;
                Ok(found == *wanted)
            }
            _ => Ok(false),
        }
    }

    /// The attribute files of the tree that rule over `path`, from the top down.
    fn attribute_files(&mut self, path: &[u8]) -> Result<Vec<AttrFile>, GitError> {
        let mut out = Vec::new();
        let borders = path.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| at + 1);
        for base in std::iter::once(0).chain(borders) {
            let mut name = path.get(..base).unwrap_or(&[]).to_vec();
            name.extend_from_slice(b".gitattributes");
            if !self.attributes.contains_key(&name) {
                let text = match blob::find(self.odb, self.tree, &name)? {
                    Some(entry) if matches!(entry.mode, MODE_FILE | MODE_EXEC) => {
                        let cap = usize::try_from(ATTRS_CAP).unwrap_or(usize::MAX);
                        blob::read_capped(self.odb, entry.id, &name, cap).ok()
                    }
                    _ => None,
                };
                self.attributes.insert(name.clone(), text);
            }
            if let Some(Some(text)) = self.attributes.get(&name) {
                out.push(AttrFile::parse(base, text));
            }
        }
        Ok(out)
    }
}

/// Writes a whole tree into an empty directory of ours.
pub(crate) fn lay_down(odb: &Odb<'_>, tree: Oid, dir: &Path) -> Result<Vec<Laid>, GitError> {
    let mut writer = Writer::new(odb, Place::ours(dir)?, tree);
    let mut out = Vec::new();
    for leaf in blob::leaves(odb, tree)? {
        let stat = writer.put(&leaf.path, leaf.mode, leaf.id)?;
        out.push(Laid { path: leaf.path, mode: leaf.mode, id: leaf.id, stat });
    }
    Ok(out)
}

/// Which files need not be read again.
pub(crate) struct Trust<'a> {
    pub(crate) known: &'a HashMap<Vec<u8>, Known>,
    pub(crate) clock: fn() -> SystemTime,
}

/// What [`bring_back`] did.
pub(crate) struct BroughtBack {
    pub(crate) laid: Vec<Laid>,
    pub(crate) report: CheckoutReport,
    /// Stamps of files whose content was looked at.
    pub(crate) stamps: HashMap<Vec<u8>, Known>,
}

/// Brings a directory of ours back to `tree`: what the tree does not have goes, except below `keep`;
/// files with other content are written again. Files with the stamp that they had when they were last
/// looked at are taken as unchanged; the others are compared, so that build tools see old times.
pub(crate) fn bring_back(
    odb: &Odb<'_>,
    tree: Oid,
    dir: &Path,
    keep: &[&str],
    trust: &Trust<'_>,
) -> Result<BroughtBack, GitError> {
    let leaves = blob::leaves(odb, tree)?;
    let mut writer = Writer::new(odb, Place::ours(dir)?, tree);
    let present = tidy_up(&mut writer, dir, &leaves, keep)?;
    let mut out = BroughtBack { laid: Vec::new(), report: CheckoutReport::default(), stamps: HashMap::new() };
    for leaf in leaves {
        let now = (trust.clock)();
        let stat = match present.get(&leaf.path) {
            Some(stat) if writer.is_unchanged(dir, &leaf, stat, trust.known.get(&leaf.path))? => {
                let stamp = Stamp::of(stat);
                if leaf.mode != MODE_LINK && !stamp.is_racy(now) {
                    let conversion = u8::from(leaf.mode == MODE_EXEC);
                    out.stamps.insert(leaf.path.clone(), Known { stamp, conversion, id: leaf.id });
                }
                Some(*stat)
            }
            _ => {
                writer.remove_all(&leaf.path)?;
                writer.put(&leaf.path, leaf.mode, leaf.id)?
            }
        };
        out.laid.push(Laid { path: leaf.path, mode: leaf.mode, id: leaf.id, stat });
    }
    out.report = writer.report;
    Ok(out)
}

/// Removes what the tree does not have, and returns what is at the places of its leaves.
fn tidy_up(
    writer: &mut Writer<'_>,
    dir: &Path,
    leaves: &[Leaf],
    keep: &[&str],
) -> Result<HashMap<Vec<u8>, Stat>, GitError> {
    let fail = |source| GitError::io(dir, source);
    let wanted: HashSet<&[u8]> = leaves.iter().map(|leaf| leaf.path.as_slice()).collect();
    let borders = |path: &[u8]| -> Vec<usize> {
        path.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| at).collect()
    };
    let wanted_dirs: HashSet<&[u8]> = leaves
        .iter()
        .flat_map(|leaf| borders(&leaf.path).into_iter().filter_map(|at| leaf.path.get(..at)))
        .collect();
    let keep: HashSet<&[u8]> =
        keep.iter().map(|dir| dir.trim_matches('/').as_bytes()).filter(|dir| !dir.is_empty()).collect();
    let mut present = HashMap::new();
    let mut entries = 0_usize;
    let mut todo: Vec<(Vec<u8>, bool)> = vec![(Vec::new(), false)];
    while let Some((path, kept)) = todo.pop() {
        let fd = open_below(dir, &path)?;
        let left = MAX_ENTRIES.saturating_sub(entries);
        let listed = files::list(&fd, left).map_err(fail)?.ok_or_else(|| GitError::TooLarge {
            what: format!("`{}`", dir.display()),
            cap: format!("{MAX_ENTRIES} entries"),
        })?;
        entries += listed.len();
        for (name, kind) in listed {
            if path.is_empty() && name == b".git" {
                continue;
            }
            let mut inner = path.clone();
            if !inner.is_empty() {
                inner.push(b'/');
            }
            inner.extend_from_slice(&name);
            let kept = kept || keep.contains(inner.as_slice());
            let on_the_way = wanted_dirs.contains(inner.as_slice());
            if kind == FileType::Directory && (on_the_way || (kept && borders(&inner).len() < 256)) {
                todo.push((inner, kept));
            } else if wanted.contains(inner.as_slice()) {
                if let Some(stat) = files::lstat_at(&fd, &name).map_err(fail)? {
                    present.insert(inner, stat);
                }
            } else if !kept {
                writer.remove_all(&inner)?;
            }
        }
    }
    Ok(present)
}

pub(crate) fn open_below(dir: &Path, path: &[u8]) -> Result<OwnedFd, GitError> {
    let fail = |source| GitError::io(dir, source);
    let mut fd = files::open_dir(&files::canonical(dir)?).map_err(fail)?;
    for part in path.split(|b| *b == b'/').filter(|part| !part.is_empty()) {
        fd = files::open_dir_at(&fd, part).map_err(|error| fail(error.into()))?;
    }
    Ok(fd)
}

/// An index entry with the stamp of a file; without one, git looks at the content itself.
pub(crate) fn index_entry(path: impl Into<Vec<u8>>, mode: u32, id: Oid, stat: Option<&Stat>) -> IndexEntry {
    // The index keeps the low 32 bits of everything.
    let low = |n: u64| u32::try_from(n & 0xffff_ffff).unwrap_or(0);
    let seconds = |n: i64| i32::try_from(n).unwrap_or(0);
    let stat = stat.filter(|_| mode != MODE_GITLINK);
    let zero = IndexTime::new(0, 0);
    IndexEntry {
        ctime: stat.map_or(zero, |s| IndexTime::new(seconds(s.st_ctime), nanos(s.st_ctime_nsec))),
        mtime: stat.map_or(zero, |s| IndexTime::new(seconds(s.st_mtime), nanos(s.st_mtime_nsec))),
        dev: stat.map_or(0, |s| low(files::device_and_inode(s).0)),
        ino: stat.map_or(0, |s| low(s.st_ino)),
        mode,
        uid: stat.map_or(0, |s| s.st_uid),
        gid: stat.map_or(0, |s| s.st_gid),
        file_size: stat.map_or(0, |s| low(files::size(s))),
        id,
        flags: 0,
        flags_extended: 0,
        path: path.into(),
    }
}

fn nanos<T: TryInto<u32>>(n: T) -> u32 {
    n.try_into().unwrap_or(0)
}

/// Changes from one tree to another, in the order in which they can be made: removals first, since a
/// file may take the place of a directory.
pub(crate) fn ordered_changes(odb: &Odb<'_>, from: Oid, to: Oid) -> Result<Vec<RawChange>, GitError> {
    let mut changes = diff::raw_changes(odb, Some(from), Some(to))?;
    changes.sort_by_key(|change| change.new.is_some());
    Ok(changes)
}

pub(crate) fn write_index(path: &Path, laid: Vec<Laid>) -> Result<(), GitError> {
    let entry = |leaf: Laid| index_entry(leaf.path, leaf.mode, leaf.id, leaf.stat.as_ref());
    index_entries::write(path, laid.into_iter().map(entry).collect())
}
