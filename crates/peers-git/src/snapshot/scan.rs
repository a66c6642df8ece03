//! The walk over the work tree.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::SystemTime;

use git2::{ObjectType, Odb, Oid};
use rustix::fs::{FileType, Stat};

use crate::copy;
use crate::error::{GitError, clean_bytes};
use crate::files::{self, Small};
use crate::ids;
use crate::objects::{self, Entry, MODE_EXEC, MODE_FILE, MODE_GITLINK, MODE_LINK, MODE_TREE};
use crate::snapshot::attrs::{ATTRS_CAP, AttrFile, Conversion, conversion};
use crate::snapshot::cache::{Known, Stamp};
use crate::snapshot::convert;
use crate::snapshot::ignore::{self, IGNORE_CAP, IgnoreFile, ignored};
use crate::snapshot::state::{DirtyFile, DirtyStatus, SubmoduleState};
use crate::snapshot::submodule::{self, Committed};

/// Entries of a work tree.
const MAX_ENTRIES: usize = 2_000_000;
/// Directories inside directories (each holds a handle while it is visited): as many as a tree that is read
/// may have, so that nothing deeper is ever tracked.
const MAX_DEPTH: usize = 256;
/// Directories that lie deeper are named, so many of them, by a path of at most this length.
const MAX_DEEP: usize = 10_000;
const MAX_PATH: usize = 4_000;
/// What lies in so many directories within each other nobody laid there by honest work.
const NOBODY: usize = 200;
/// Git directories of other repositories in the work tree that are named.
const MAX_NESTED: usize = 10_000;
/// Files up to here are read at once; larger ones are hashed piece by piece and never converted.
const WHOLE_CAP: u64 = 16 << 20;
/// A larger file is not hashed: it counts as changed whenever its stamp changes.
const HASH_CAP: u64 = 2 << 30;
/// All that one walk reads.
const READ_BUDGET: u64 = 8 << 30;
/// A larger file is not kept in the control directory.
const KEEP_CAP: u64 = 64 << 20;

/// What the walk is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The tree's hash.
    Hashes,
    /// The changed paths, at most so many.
    Names(usize),
    /// The objects themselves, written to the store.
    Objects,
}

/// What it found.
pub(crate) struct Outcome {
    pub(crate) tree: Oid,
    /// The same without `.peers`, where the commit has one.
    pub(crate) without_peers: Option<Oid>,
    pub(crate) dirty: Vec<DirtyFile>,
    pub(crate) submodules: Vec<SubmoduleState>,
    pub(crate) unrepresentable: Vec<String>,
    /// Directories that were not looked into because they lie too deep.
    pub(crate) too_deep: Vec<Vec<u8>>,
    /// Where something of the name `.git` lies below the top, at most 10 000.
    pub(crate) nested: Vec<Vec<u8>>,
    /// Files that were not stored.
    pub(crate) left_out: Vec<Vec<u8>>,
}

pub(crate) struct Scan<'a> {
    odb: &'a Odb<'a>,
    old: &'a HashMap<Vec<u8>, Known>,
    new: HashMap<Vec<u8>, Known>,
    wanted: Wanted,
    clock: fn() -> SystemTime,
    ignores: Vec<IgnoreFile>,
    attributes: Vec<AttrFile>,
    /// The directory being visited, with a trailing `/` unless it is the top.
    path: Vec<u8>,
    entries: usize,
    read: u64,
    outcome: Outcome,
}

/// How a directory is visited.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Untracked files count unless ignored.
    Plain,
    /// The directory itself is ignored: tracked files only.
    Ignored,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(
        odb: &'a Odb<'a>,
        old: &'a HashMap<Vec<u8>, Known>,
        wanted: Wanted,
        clock: fn() -> SystemTime,
    ) -> Self {
        let outcome = Outcome {
            tree: Oid::ZERO_SHA1,
            without_peers: None,
            dirty: Vec::new(),
            submodules: Vec::new(),
            unrepresentable: Vec::new(),
            too_deep: Vec::new(),
            nested: Vec::new(),
            left_out: Vec::new(),
        };
        Self {
            odb,
            old,
            new: HashMap::with_capacity(old.len()),
            wanted,
            clock,
            ignores: Vec::new(),
            attributes: Vec::new(),
            path: Vec::new(),
            entries: 0,
            read: 0,
            outcome,
        }
    }

    pub(crate) fn run(
        mut self,
        work_dir: &Path,
        head_tree: Oid,
        excludes: Option<&Path>,
    ) -> Result<(Outcome, HashMap<Vec<u8>, Known>), GitError> {
        let top = files::open_dir(work_dir).map_err(|source| GitError::io(work_dir, source))?;
        self.ignores.extend(ignore::of_operator(excludes));
        let tree = self.dir(&top, Some(head_tree), Mode::Plain, 0)?;
        // A work tree without any file is the empty tree.
        self.outcome.tree = match tree {
            Some(tree) => tree,
            None => self.store(ObjectType::Tree, &[])?,
        };
        Ok((self.outcome, self.new))
    }

    /// Visits a directory and returns its tree, `None` when nothing in it counts.
    fn dir(
        &mut self,
        dir: &OwnedFd,
        head: Option<Oid>,
        mode: Mode,
        depth: usize,
    ) -> Result<Option<Oid>, GitError> {
        if depth > MAX_DEPTH {
            // Nobody gets that deep by honest work; it is told, and the rest of the tree is still judged.
            if self.outcome.unrepresentable.len() < 20 {
                self.outcome.unrepresentable.push(clean_bytes(&self.path));
            }
            self.note_deep();
            return Ok(None);
        }
        let left = MAX_ENTRIES.saturating_sub(self.entries);
        let listed = files::list(dir, left).map_err(|source| self.io(b"", source))?;
        let listed = listed.ok_or_else(|| self.too_large("entries", MAX_ENTRIES))?;
        self.entries += listed.len();
        let mut tracked: HashMap<Vec<u8>, Entry> = match head {
            Some(tree) => {
                objects::read_tree(self.odb, tree)?.into_iter().map(|e| (e.name.clone(), e)).collect()
            }
            None => HashMap::new(),
        };
        let (ignores, attributes) = (self.ignores.len(), self.attributes.len());
        self.read_rules(dir, &listed, mode)?;
        let mut entries = Vec::with_capacity(listed.len());
        for (name, kind) in listed {
            if self.is_special(&name, depth) {
                continue;
            }
            let head = tracked.remove(&name);
            if let Some(entry) = self.entry(dir, &name, kind, head, mode, depth)? {
                entries.push(entry);
            }
        }
        if depth == 0
            && let Some(entry) = tracked.remove(&b".peers"[..])
        {
            // Ours: neither its changes nor its absence say anything about the agents' work.
            self.outcome.without_peers =
                Some(self.store(ObjectType::Tree, &objects::tree_bytes(&mut entries))?);
            entries.push(entry);
        }
        for gone in tracked.into_values() {
            self.report_gone(&gone, depth)?;
        }
        self.ignores.truncate(ignores);
        self.attributes.truncate(attributes);
        if entries.is_empty() {
            return Ok(None);
        }
        self.store(ObjectType::Tree, &objects::tree_bytes(&mut entries)).map(Some)
    }

    /// Notes the directory being visited, or one above it that can be reached by its path.
    fn note_deep(&mut self) {
        let within = self.path.get(..self.path.len().min(MAX_PATH)).unwrap_or_default();
        let end = within.iter().rposition(|b| *b == b'/').unwrap_or(within.len());
        let deep = within.get(..end).unwrap_or_default();
        // One move for all that lies beside each other: they may be very many.
        if let Some(last) = self.outcome.too_deep.last_mut() {
            let shared = last.split(|b| *b == b'/').zip(deep.split(|b| *b == b'/'));
            let parts: Vec<&[u8]> = shared.take_while(|(a, b)| a == b).map(|(part, _)| part).collect();
            if last == deep || parts.len() >= NOBODY {
                *last = parts.join(&b'/');
                return;
            }
        }
        if self.outcome.too_deep.len() < MAX_DEEP {
            self.outcome.too_deep.push(deep.to_vec());
        }
    }

    /// `.git` and our own directory are not part of the tree; other spellings of `.git` cannot be.
    fn is_special(&mut self, name: &[u8], depth: usize) -> bool {
        if name == b".git" || (depth == 0 && name == b".peers") {
            if depth > 0 && self.outcome.nested.len() < MAX_NESTED {
                let path = self.full(name);
                self.outcome.nested.push(path);
            }
            return true;
        }
        if name.eq_ignore_ascii_case(b".git") {
            if self.outcome.unrepresentable.len() < 20 {
                let shown = self.shown(name);
                self.outcome.unrepresentable.push(shown);
            }
            return true;
        }
        false
    }

    fn read_rules(
        &mut self,
        dir: &OwnedFd,
        listed: &[(Vec<u8>, FileType)],
        mode: Mode,
    ) -> Result<(), GitError> {
        for (name, kind) in listed {
            // Git does not follow a symlink here either.
            if *kind != FileType::RegularFile {
                continue;
            }
            if name == b".gitignore" && mode == Mode::Plain {
                if let Small::Bytes(text) = self.small(dir, name, IGNORE_CAP)? {
                    self.ignores.push(IgnoreFile::parse(self.path.len(), &text));
                }
            } else if name == b".gitattributes"
                && let Small::Bytes(text) = self.small(dir, name, ATTRS_CAP)?
            {
                self.attributes.push(AttrFile::parse(self.path.len(), &text));
            }
        }
        Ok(())
    }

    fn small(&self, dir: &OwnedFd, name: &[u8], cap: u64) -> Result<Small, GitError> {
        files::read_small_at(dir, name, cap).map_err(|source| self.io(name, source))
    }

    /// One entry of a directory: its place in the tree, or nothing.
    fn entry(
        &mut self,
        dir: &OwnedFd,
        name: &[u8],
        kind: FileType,
        head: Option<Entry>,
        mode: Mode,
        depth: usize,
    ) -> Result<Option<Entry>, GitError> {
        match kind {
            FileType::Directory => self.sub_dir(dir, name, head.as_ref(), mode, depth),
            FileType::RegularFile | FileType::Symlink => self.leaf(dir, name, head, mode, depth),
            // FIFOs, sockets and devices cannot be committed; where a file was, it is gone.
            _ => {
                if let Some(head) = head {
                    self.report_gone(&head, depth)?;
                }
                Ok(None)
            }
        }
    }

    fn sub_dir(
        &mut self,
        dir: &OwnedFd,
        name: &[u8],
        head: Option<&Entry>,
        mode: Mode,
        depth: usize,
    ) -> Result<Option<Entry>, GitError> {
        if let Some(link) = head.filter(|head| head.mode == MODE_GITLINK) {
            return self.submodule(dir, name, link, depth).map(Some);
        }
        let head_tree = head.filter(|head| head.is_tree()).map(|head| head.id);
        let path = self.full(name);
        let inner_mode = match mode {
            Mode::Plain if ignored(&self.ignores, &path, true) => Mode::Ignored,
            other => other,
        };
        if let Some(head) = head.filter(|head| !head.is_tree()) {
            self.report_gone(head, depth)?;
        }
        if inner_mode == Mode::Ignored && head_tree.is_none() {
            return Ok(None);
        }
        let id = self.inside(dir, name, head_tree, inner_mode, depth)?;
        Ok(id.map(|id| Entry { mode: MODE_TREE, name: name.to_vec(), id }))
    }

    fn inside(
        &mut self,
        dir: &OwnedFd,
        name: &[u8],
        head: Option<Oid>,
        mode: Mode,
        depth: usize,
    ) -> Result<Option<Oid>, GitError> {
        let inner = files::open_dir_at(dir, name).map_err(|error| self.io(name, error.into()))?;
        let length = self.path.len();
        self.path.extend_from_slice(name);
        self.path.push(b'/');
        let result = self.dir(&inner, head, mode, depth + 1);
        self.path.truncate(length);
        result
    }

    /// A submodule: recorded as the commit that it has checked out; its files are hashed beside that,
    /// so that nothing can change in there unseen.
    fn submodule(
        &mut self,
        dir: &OwnedFd,
        name: &[u8],
        link: &Entry,
        depth: usize,
    ) -> Result<Entry, GitError> {
        let inner = files::open_dir_at(dir, name).map_err(|error| self.io(name, error.into()))?;
        let id = submodule::checked_out(&inner).unwrap_or(link.id);
        let shown = self.shown(name);
        // Only hashes, whatever else is wanted: its files are not part of our tree. Its own rules.
        let wanted = std::mem::replace(&mut self.wanted, Wanted::Hashes);
        let (ignores, attributes) = (std::mem::take(&mut self.ignores), std::mem::take(&mut self.attributes));
        let content = self.inside(dir, name, None, Mode::Plain, depth);
        (self.wanted, self.ignores, self.attributes) = (wanted, ignores, attributes);
        let content = content?;
        let changed = self.is_edited(&inner, id, content, depth)?;
        if let Some(content) = content {
            let content = ids::tree_id(content);
            self.outcome.submodules.push(SubmoduleState { path: shown, content, changed });
        }
        if id != link.id || changed {
            self.report(DirtyStatus::Modified, name);
        }
        Ok(Entry { mode: MODE_GITLINK, name: name.to_vec(), id })
    }

    /// Whether the files of a submodule are not those of the commit that it has checked out. What cannot
    /// be told is no.
    fn is_edited(
        &mut self,
        dir: &OwnedFd,
        commit: Oid,
        content: Option<Oid>,
        depth: usize,
    ) -> Result<bool, GitError> {
        // Not checked out at all: its directory is empty.
        let (Some(content), Some(committed)) = (content, Committed::open(dir, commit)) else {
            return Ok(false);
        };
        if content == committed.tree {
            return Ok(false);
        }
        // Tracked files that an ignore file names count as well: looked at again, with its own tree.
        let nothing = HashMap::new();
        let mut scan = Scan::new(&committed.odb, &nothing, Wanted::Hashes, self.clock);
        (scan.entries, scan.read) = (self.entries, self.read);
        let found = scan.dir(dir, Some(committed.tree), Mode::Plain, depth + 1)?;
        (self.entries, self.read) = (scan.entries, scan.read);
        Ok(found != Some(committed.tree))
    }

    fn leaf(
        &mut self,
        dir: &OwnedFd,
        name: &[u8],
        head: Option<Entry>,
        mode: Mode,
        depth: usize,
    ) -> Result<Option<Entry>, GitError> {
        let (leaf, other) = match head {
            Some(head) if head.is_tree() || head.mode == MODE_GITLINK => (None, Some(head)),
            head => (head, None),
        };
        if let Some(other) = other {
            self.report_gone(&other, depth)?;
        }
        let path = self.full(name);
        if leaf.is_none() && (mode == Mode::Ignored || ignored(&self.ignores, &path, false)) {
            return Ok(None);
        }
        let found = files::lstat_at(dir, name).map_err(|source| self.io(name, source))?;
        let Some(found) =
            found.filter(|stat| matches!(files::kind(stat), FileType::RegularFile | FileType::Symlink))
        else {
            // It went away, or became something else, since the directory was listed.
            return Ok(None);
        };
        let id = if files::kind(&found) == FileType::Symlink {
            let target = rustix::fs::readlinkat(dir, OsStr::from_bytes(name), Vec::new())
                .map_err(|error| self.io(name, error.into()))?;
            self.store(ObjectType::Blob, target.as_bytes())?
        } else {
            match self.file(dir, name, path, &found, leaf.as_ref())? {
                Some(id) => id,
                None => return Ok(leaf),
            }
        };
        let mode = match files::kind(&found) {
            FileType::Symlink => MODE_LINK,
            _ if found.st_mode & 0o100 != 0 => MODE_EXEC,
            _ => MODE_FILE,
        };
        match leaf {
            None => self.report(DirtyStatus::Added, name),
            Some(leaf) if leaf.id != id || leaf.mode != mode => self.report(DirtyStatus::Modified, name),
            Some(_) => {}
        }
        Ok(Some(Entry { mode, name: name.to_vec(), id }))
    }

    /// The content hash of a regular file: from the cache when its stamp is the old one. `None` when its
    /// content was to be stored and cannot be.
    fn file(
        &mut self,
        dir: &OwnedFd,
        name: &[u8],
        path: Vec<u8>,
        found: &Stat,
        head: Option<&Entry>,
    ) -> Result<Option<Oid>, GitError> {
        let how = conversion(&self.attributes, &path);
        let stamp = Stamp::of(found);
        if let Some(known) = self.old.get(&path)
            && known.stamp == stamp
            && known.conversion == how.code()
            && (self.wanted != Wanted::Objects || copy::has(self.odb, known.id))
        {
            self.new.insert(path, *known);
            return Ok(Some(known.id));
        }
        let size = files::size(found);
        self.read = self.read.saturating_add(size);
        let cap = if self.wanted == Wanted::Objects { KEEP_CAP } else { HASH_CAP };
        if size > cap || self.read > READ_BUDGET {
            return self.unread(name, &path, found);
        }
        // Before the content is read: what is written later must get a later stamp.
        let now = (self.clock)();
        let (file, opened) = match files::open_regular(dir, name) {
            Ok(opened) => opened,
            // Unreadable files exist; they are different whenever their stamp is.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return self.unread(name, &path, found);
            }
            Err(source) => return Err(self.io(name, source)),
        };
        let (id, guessed) = self.hash(file, name, size, how, head)?;
        // A guess about line ends depends on what is stored: it is made anew each time.
        if Stamp::of(&opened) == stamp && !stamp.is_racy(now) && !guessed {
            self.new.insert(path, Known { stamp, conversion: how.code(), id });
        }
        Ok(Some(id))
    }

    fn hash(
        &mut self,
        mut file: std::fs::File,
        name: &[u8],
        size: u64,
        how: Conversion,
        head: Option<&Entry>,
    ) -> Result<(Oid, bool), GitError> {
        if size > WHOLE_CAP && self.wanted != Wanted::Objects {
            return files::hash_blob(&file)
                .map(|id| (id, false))
                .map_err(|source| GitError::library(format!("hash `{}`", self.shown(name)), source));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
        // It may be growing: what we read is what we hash, within bounds.
        (&mut file).take(KEEP_CAP * 2).read_to_end(&mut bytes).map_err(|source| self.io(name, source))?;
        let mut guessed = false;
        let content = if size > WHOLE_CAP {
            Cow::Borrowed(bytes.as_slice())
        } else {
            convert::to_git(how, &bytes, || {
                guessed = true;
                let head = head.filter(|head| head.mode != MODE_LINK)?;
                let (size, _) = self.odb.read_header(head.id).ok()?;
                let small = u64::try_from(size).is_ok_and(|size| size <= WHOLE_CAP);
                small.then(|| self.odb.read(head.id).ok().map(|blob| blob.data().to_vec()))?
            })
        };
        let id = self.store(ObjectType::Blob, &content)?;
        Ok((id, guessed))
    }

    /// Hashes, and writes when objects are wanted.
    fn store(&self, kind: ObjectType, bytes: &[u8]) -> Result<Oid, GitError> {
        let fail = |source| GitError::library(format!("hash `{}`", clean_bytes(&self.path)), source);
        if self.wanted == Wanted::Objects {
            return self.odb.write(kind, bytes).map_err(fail);
        }
        Oid::hash_object(kind, bytes).map_err(fail)
    }

    /// A file that is not read: where hashes are wanted, one that differs for every stamp and equals no
    /// real content.
    fn unread(&mut self, name: &[u8], path: &[u8], found: &Stat) -> Result<Option<Oid>, GitError> {
        if self.wanted == Wanted::Objects {
            self.outcome.left_out.push(self.full(name));
            return Ok(None);
        }
        let mut text = format!("not read: {:?} ", Stamp::of(found)).into_bytes();
        text.extend_from_slice(path);
        self.store(ObjectType::Blob, &text).map(Some)
    }

    fn report(&mut self, status: DirtyStatus, name: &[u8]) {
        let Wanted::Names(limit) = self.wanted else { return };
        if self.outcome.dirty.len() < limit.saturating_mul(4).max(1000) {
            let path = String::from_utf8_lossy(&self.full(name)).into_owned();
            self.outcome.dirty.push(DirtyFile { status, path });
        }
    }

    /// Everything that the commit has at a place where the work tree has nothing of the kind.
    fn report_gone(&mut self, gone: &Entry, depth: usize) -> Result<(), GitError> {
        let Wanted::Names(limit) = self.wanted else { return Ok(()) };
        if !gone.is_tree() {
            self.report(DirtyStatus::Deleted, &gone.name);
            return Ok(());
        }
        if depth > MAX_DEPTH || self.outcome.dirty.len() >= limit.saturating_mul(4).max(1000) {
            return Ok(());
        }
        let length = self.path.len();
        self.path.extend_from_slice(&gone.name);
        self.path.push(b'/');
        for inner in objects::read_tree(self.odb, gone.id)? {
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                break;
            }
            self.report_gone(&inner, depth + 1)?;
        }
        self.path.truncate(length);
        Ok(())
    }

    fn full(&self, name: &[u8]) -> Vec<u8> {
        let mut path = Vec::with_capacity(self.path.len() + name.len());
        path.extend_from_slice(&self.path);
        path.extend_from_slice(name);
        path
    }

    fn shown(&self, name: &[u8]) -> String {
        clean_bytes(&self.full(name))
    }

    fn io(&self, name: &[u8], source: io::Error) -> GitError {
        GitError::io(Path::new(OsStr::from_bytes(&self.full(name))), source)
    }

    fn too_large(&self, what: &str, cap: usize) -> GitError {
        GitError::TooLarge {
            what: format!("the work tree at `{}`", clean_bytes(&self.path)),
            cap: format!("{cap} {what}"),
        }
    }
}
