//! Contents and listings at a commit.

use git2::{Odb, Oid};
use peers_model::{CommitId, TreeId};
use sha2::{Digest as _, Sha256};

use crate::error::{GitError, clean_bytes};
use crate::facts::Facts;
use crate::ids;
use crate::objects::{self, Entry, MODE_GITLINK};

/// Paths that one listing may hold.
const MAX_PATHS: usize = 1_000_000;
/// Directories inside directories.
const MAX_DEPTH: usize = 256;

/// One leaf of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeItem {
    /// The path, invalid UTF-8 replaced.
    pub path: String,
    /// Git's file mode: 100644, 100755, 120000 or 160000 (octal).
    pub mode: u32,
    /// The hash of the content, hex.
    pub id: String,
}

/// A file at a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// Git's file mode.
    pub mode: u32,
    /// The content.
    pub bytes: Vec<u8>,
}

impl TreeItem {
    pub(crate) fn new(path: &[u8], mode: u32, id: Oid) -> Self {
        Self { path: String::from_utf8_lossy(path).into_owned(), mode, id: id.to_string() }
    }
}

pub(crate) struct Leaf {
    pub(crate) path: Vec<u8>,
    pub(crate) mode: u32,
    pub(crate) id: Oid,
}

impl Facts<'_> {
    /// The file `path` at `commit`; `None` when there is no such file (a directory or submodule is none).
    ///
    /// # Errors
    /// [`GitError::TooLarge`] above `cap` bytes; nothing of that size is read.
    pub fn read_blob(&self, commit: &CommitId, path: &str, cap: usize) -> Result<Option<Blob>, GitError> {
        self.read_blob_of(&ids::tree_id(objects::commit_tree(self.repo, commit)?), path, cap)
    }

    /// The file `path` of a tree; `None` when there is no such file (a directory or submodule is none).
    ///
    /// # Errors
    /// [`GitError::TooLarge`] above `cap` bytes; nothing of that size is read.
    pub fn read_blob_of(&self, tree: &TreeId, path: &str, cap: usize) -> Result<Option<Blob>, GitError> {
        let odb = objects::odb(self.repo)?;
        let tree = ids::tree_oid(tree)?;
        let Some(entry) = find_file(&odb, tree, path.as_bytes())? else { return Ok(None) };
        let bytes = read_capped(&odb, entry.id, path.as_bytes(), cap)?;
        Ok(Some(Blob { mode: entry.mode, bytes }))
    }

    /// Whether a tree has a file at this path, as it is.
    ///
    /// # Errors
    /// [`GitError::NotFound`], [`GitError::Corrupt`] for a tree that cannot be read.
    pub fn has_file(&self, tree: &TreeId, path: &[u8]) -> Result<bool, GitError> {
        Ok(find_file(&objects::odb(self.repo)?, ids::tree_oid(tree)?, path)?.is_some())
    }

    /// Calls back with the path of each leaf of a tree. One that is no UTF-8 is left out.
    ///
    /// # Errors
    /// [`GitError::TooLarge`] beyond a million paths or 256 levels.
    pub fn each_path(&self, tree: &TreeId, mut each: impl FnMut(&str)) -> Result<(), GitError> {
        for leaf in leaves(&objects::odb(self.repo)?, ids::tree_oid(tree)?)? {
            if let Ok(path) = std::str::from_utf8(&leaf.path) {
                each(path);
            }
        }
        Ok(())
    }

    /// The id of the file `path` at `commit`.
    pub(crate) fn blob_id(&self, commit: &CommitId, path: &str) -> Result<Option<Oid>, GitError> {
        let odb = objects::odb(self.repo)?;
        let found = find_file(&odb, objects::commit_tree(self.repo, commit)?, path.as_bytes())?;
        Ok(found.map(|entry| entry.id))
    }

    /// The content of this hash.
    ///
    /// # Errors
    /// [`GitError::TooLarge`] above `cap` bytes, [`GitError::Corrupt`] for one that is missing or no content.
    pub fn read_object(&self, id: &str, cap: usize) -> Result<Vec<u8>, GitError> {
        let fail = |source| GitError::library(format!("object {}", crate::error::clean(id, 64)), source);
        let odb = objects::odb(self.repo)?;
        read_capped(&odb, Oid::from_str(id).map_err(fail)?, id.as_bytes(), cap)
    }

    /// How many bytes the content of this hash has.
    ///
    /// # Errors
    /// [`GitError::Corrupt`] for one that is missing.
    pub fn object_size(&self, id: &str) -> Result<u64, GitError> {
        let fail = |source| objects::missing(format!("object {}", crate::error::clean(id, 64)), source);
        let odb = objects::odb(self.repo)?;
        let (size, _) = odb.read_header(Oid::from_str(id).map_err(fail)?).map_err(fail)?;
        Ok(u64::try_from(size).unwrap_or(u64::MAX))
    }

    /// Every leaf at `commit`, sorted by path.
    ///
    /// # Errors
    /// [`GitError::TooLarge`] beyond a million paths or 256 levels.
    pub fn list_tree(&self, commit: &CommitId) -> Result<Vec<TreeItem>, GitError> {
        let odb = objects::odb(self.repo)?;
        let leaves = leaves(&odb, objects::commit_tree(self.repo, commit)?)?;
        Ok(leaves.iter().map(|leaf| TreeItem::new(&leaf.path, leaf.mode, leaf.id)).collect())
    }

    /// The paths of all files and links at `commit`, as they are, sorted. Untrusted bytes.
    ///
    /// # Errors
    /// As [`Facts::list_tree`].
    pub fn paths_of_files(&self, commit: &CommitId) -> Result<Vec<Vec<u8>>, GitError> {
        let odb = objects::odb(self.repo)?;
        let leaves = leaves(&odb, objects::commit_tree(self.repo, commit)?)?;
        Ok(leaves.into_iter().filter(|leaf| leaf.mode != MODE_GITLINK).map(|leaf| leaf.path).collect())
    }

    /// Every leaf at `commit` below the top-level directory `dir`, whatever its case; the file itself when
    /// it is one.
    ///
    /// # Errors
    /// As [`Facts::list_tree`].
    pub fn list_below(&self, commit: &CommitId, dir: &str) -> Result<Vec<TreeItem>, GitError> {
        let odb = objects::odb(self.repo)?;
        let mut found = Vec::new();
        for entry in objects::read_tree(&odb, objects::commit_tree(self.repo, commit)?)? {
            if !entry.name.eq_ignore_ascii_case(dir.as_bytes()) {
                continue;
            }
            if !entry.is_tree() {
                found.push(TreeItem::new(&entry.name, entry.mode, entry.id));
                continue;
            }
            found.extend(leaves(&odb, entry.id)?.into_iter().map(|leaf| {
                let path = [entry.name.as_slice(), b"/", &leaf.path].concat();
                TreeItem::new(&path, leaf.mode, leaf.id)
            }));
        }
        Ok(found)
    }

    /// SHA-256, hex, over path, mode and content hash of every leaf at `commit` that `include` takes,
    /// in order of path. Two commits with equal included files have equal hashes, and no others.
    ///
    /// # Errors
    /// As [`Facts::list_tree`].
    pub fn scope_hash(&self, commit: &CommitId, include: impl Fn(&str) -> bool) -> Result<String, GitError> {
        Ok(self.scope(commit, include)?.hash)
    }

    /// As [`Facts::scope_hash`], with what else is to be known of it.
    ///
    /// # Errors
    /// As [`Facts::list_tree`].
    pub fn scope(&self, commit: &CommitId, include: impl Fn(&str) -> bool) -> Result<ScopeFacts, GitError> {
        let odb = objects::odb(self.repo)?;
        let mut hash = Sha256::new();
        let (mut leaves_held, mut plain) = (0, true);
        for leaf in leaves(&odb, objects::commit_tree(self.repo, commit)?)? {
            if include(&String::from_utf8_lossy(&leaf.path)) {
                leaves_held += 1;
                plain &= matches!(leaf.mode, 0o100_644 | 0o100_755);
                // A path holds no NUL, mode and hash have fixed lengths: no two lists look the same.
                hash.update(&leaf.path);
                hash.update([0]);
                hash.update(format!("{:06o}", leaf.mode));
                hash.update(leaf.id.as_bytes());
            }
        }
        Ok(ScopeFacts { hash: ids::hex(&hash.finalize()), closed: plain && leaves_held > 0 })
    }
}

/// What a commit holds of a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeFacts {
    /// [`Facts::scope_hash`].
    pub hash: String,
    /// It holds files, and nothing but files: no link, which leads elsewhere, and no submodule.
    pub closed: bool,
}

/// The entry at `path` below `tree`.
pub(crate) fn find(odb: &Odb<'_>, tree: Oid, path: &[u8]) -> Result<Option<Entry>, GitError> {
    let mut current = tree;
    let mut parts = path.split(|b| *b == b'/').peekable();
    while let Some(part) = parts.next() {
        let Some(entry) = objects::read_tree(odb, current)?.into_iter().find(|e| e.name == part) else {
            return Ok(None);
        };
        if parts.peek().is_none() {
            return Ok(Some(entry));
        }
        if !entry.is_tree() {
            return Ok(None);
        }
        current = entry.id;
    }
    Ok(None)
}

/// The same, of a file or link.
fn find_file(odb: &Odb<'_>, tree: Oid, path: &[u8]) -> Result<Option<Entry>, GitError> {
    Ok(find(odb, tree, path)?.filter(|entry| !entry.is_tree() && entry.mode != MODE_GITLINK))
}

/// Reads a blob of at most `cap` bytes.
pub(crate) fn read_capped(odb: &Odb<'_>, id: Oid, path: &[u8], cap: usize) -> Result<Vec<u8>, GitError> {
    let what = || format!("`{}`", clean_bytes(path));
    let (size, kind) = odb.read_header(id).map_err(|source| objects::missing(what(), source))?;
    if kind != git2::ObjectType::Blob {
        return Err(GitError::Corrupt { what: what(), detail: format!("it is a {kind}") });
    }
    if size > cap {
        return Err(GitError::TooLarge { what: what(), cap: format!("{cap} bytes") });
    }
    let object = odb.read(id).map_err(|source| objects::missing(what(), source))?;
    Ok(object.data().to_vec())
}

/// All leaves below `tree`, sorted by path.
pub(crate) fn leaves(odb: &Odb<'_>, tree: Oid) -> Result<Vec<Leaf>, GitError> {
    let mut out = Vec::new();
    let top = objects::read_tree(odb, tree)?;
    // Few objects can describe endlessly many directories.
    let mut seen = top.len();
    let mut open = vec![(Vec::new(), top.into_iter())];
    while let Some((prefix, entries)) = open.last_mut() {
        let Some(entry) = entries.next() else {
            open.pop();
            continue;
        };
        let mut path = Vec::with_capacity(prefix.len() + entry.name.len() + 1);
        path.extend_from_slice(prefix);
        path.extend_from_slice(&entry.name);
        if !entry.is_tree() {
            out.push(Leaf { path, mode: entry.mode, id: entry.id });
            continue;
        }
        path.push(b'/');
        let inner = objects::read_tree(odb, entry.id)?;
        seen += inner.len();
        open.push((path, inner.into_iter()));
        if seen > MAX_PATHS || open.len() > MAX_DEPTH + 1 {
            return Err(GitError::TooLarge {
                what: "a tree".to_owned(),
                cap: format!("{MAX_PATHS} paths, {MAX_DEPTH} levels"),
            });
        }
    }
    // As git sorts trees they are already.
    out.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(out)
}
