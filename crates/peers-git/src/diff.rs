//! Differences between trees.
//!
//! Trees are compared by our own walk over the raw objects and only contents go to the library's line
//! comparison: no attribute, driver, rename guess or configuration can change what is counted.

use std::collections::BTreeSet;

use git2::{DiffOptions, Odb, Oid, Patch};
use peers_model::TreeId;

use crate::blob::TreeItem;
use crate::error::GitError;
use crate::facts::Facts;
use crate::objects::{self, Entry, MODE_GITLINK};

/// Contents above this size count as binary: comparing lines would cost too much.
const LINE_CAP: usize = 8 * 1024 * 1024;
/// Paths that one comparison may name.
const MAX_CHANGES: usize = 100_000;
/// Directories inside directories.
const MAX_DEPTH: usize = 256;

/// What happened to a path. A change of type (a file became a symlink) is a modification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// Content or mode differ.
    Modified,
}

/// One changed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathChange {
    /// The path, invalid UTF-8 replaced.
    pub path: String,
    /// What happened.
    pub kind: ChangeKind,
    /// Git's file mode before; 0 for a new path.
    pub old_mode: u32,
    /// Git's file mode after; 0 for a deleted path.
    pub new_mode: u32,
    /// Lines added. 0 for binary content.
    pub added: u64,
    /// Lines removed. 0 for binary content.
    pub deleted: u64,
    /// The content is binary or too large to be compared by lines: changed, whatever the counts say.
    pub binary: bool,
}

/// Sums over a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiffStat {
    /// Paths.
    pub files: u64,
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub deleted: u64,
    /// Paths whose content is not compared by lines.
    pub binary: u64,
}

/// Text of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffText {
    /// Unified diff, invalid UTF-8 replaced.
    pub text: String,
    /// The cap was reached; whole paths are missing at the end.
    pub cut: bool,
}

/// A changed path with what is on both sides.
pub(crate) struct RawChange {
    pub(crate) path: Vec<u8>,
    pub(crate) old: Option<(u32, Oid)>,
    pub(crate) new: Option<(u32, Oid)>,
}

impl Facts<'_> {
    /// Every path that differs between two trees, with line counts, sorted by path.
    ///
    /// # Errors
    /// [`GitError::TooLarge`] beyond 100 000 paths, [`GitError::Corrupt`].
    pub fn diff_trees(&self, old: &TreeId, new: &TreeId) -> Result<Vec<PathChange>, GitError> {
        let odb = objects::odb(self.repo)?;
        let changes = self.raw_changes(&odb, Some(old), new)?;
        changes.iter().map(|change| Ok(patch(&odb, change, 0)?.0)).collect()
    }

    /// The paths that differ between two trees, whatever the difference. Untrusted text.
    ///
    /// # Errors
    /// As [`Facts::diff_trees`].
    pub fn changed_paths(&self, old: &TreeId, new: &TreeId) -> Result<Vec<String>, GitError> {
        let odb = objects::odb(self.repo)?;
        let changes = self.raw_changes(&odb, Some(old), new)?;
        Ok(changes.iter().map(|change| String::from_utf8_lossy(&change.path).into_owned()).collect())
    }

    /// The files that a tree has and another (none: the empty one) has not, or with other content: path, mode and the
    /// hash of the content. No content is read.
    ///
    /// # Errors
    /// As [`Facts::diff_trees`].
    pub fn new_files(&self, old: Option<&TreeId>, new: &TreeId) -> Result<Vec<TreeItem>, GitError> {
        let odb = objects::odb(self.repo)?;
        let changes = self.raw_changes(&odb, old, new)?;
        let file = |change: RawChange| {
            let (mode, id) = change.new?;
            Some(TreeItem::new(&change.path, mode, id))
        };
        Ok(changes.into_iter().filter_map(file).collect())
    }

    /// The lines of `new` that `old` (none: the empty tree) has not, from 1, by path, of those paths that are wanted.
    /// Content that is not compared by lines is left out.
    ///
    /// # Errors
    /// As [`Facts::diff_trees`].
    pub fn new_lines(
        &self,
        old: Option<&TreeId>,
        new: &TreeId,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<(String, BTreeSet<usize>)>, GitError> {
        let odb = objects::odb(self.repo)?;
        let changes = self.raw_changes(&odb, old, new)?;
        let mut found = Vec::new();
        for change in changes.iter().filter(|change| change.new.is_some()) {
            let path = String::from_utf8_lossy(&change.path).into_owned();
            if !wanted(&path) {
                continue;
            }
            let mut lines = BTreeSet::new();
            let mut at = 0;
            for line in patch(&odb, change, 1)?.1.split(|byte| *byte == b'\n') {
                match line.first() {
                    Some(b'@') => at = begins_at(line).unwrap_or_default(),
                    Some(b'+') => {
                        lines.insert(at);
                        at += 1;
                    }
                    Some(b' ') => at += 1,
                    _ => {}
                }
            }
            found.push((path, lines));
        }
        Ok(found)
    }

    /// The sums alone.
    ///
    /// # Errors
    /// As [`Facts::diff_trees`].
    pub fn diffstat(&self, old: &TreeId, new: &TreeId) -> Result<DiffStat, GitError> {
        let mut sum = DiffStat::default();
        for change in self.diff_trees(old, new)? {
            sum.files += 1;
            sum.added = sum.added.saturating_add(change.added);
            sum.deleted = sum.deleted.saturating_add(change.deleted);
            sum.binary += u64::from(change.binary);
        }
        Ok(sum)
    }

    /// A unified diff of the paths that `include` takes, at most `cap` bytes, cut at a path's border.
    ///
    /// # Errors
    /// As [`Facts::diff_trees`].
    pub fn diff_text(
        &self,
        old: &TreeId,
        new: &TreeId,
        include: impl Fn(&str) -> bool,
        cap: usize,
    ) -> Result<DiffText, GitError> {
        let odb = objects::odb(self.repo)?;
        let mut out = DiffText { text: String::new(), cut: false };
        for change in self.raw_changes(&odb, Some(old), new)? {
            if !include(&String::from_utf8_lossy(&change.path)) {
                continue;
            }
            let (facts, body) = patch(&odb, &change, 3)?;
            let text = file_text(&facts, &String::from_utf8_lossy(&body));
            if out.text.len().saturating_add(text.len()) > cap {
                out.cut = true;
                break;
            }
            out.text.push_str(&text);
        }
        Ok(out)
    }

    fn raw_changes(
        &self,
        odb: &Odb<'_>,
        old: Option<&TreeId>,
        new: &TreeId,
    ) -> Result<Vec<RawChange>, GitError> {
        let tree = |tree: &TreeId| objects::require_tree(self.repo, tree);
        raw_changes(odb, old.map(tree).transpose()?, Some(tree(new)?))
    }
}

/// Compares two trees; `None` is the empty one.
pub(crate) fn raw_changes(
    odb: &Odb<'_>,
    old: Option<Oid>,
    new: Option<Oid>,
) -> Result<Vec<RawChange>, GitError> {
    let mut out = Vec::new();
    // Deepest first on an explicit stack; sorted at the end.
    let mut todo = vec![(Vec::new(), old, new, 0)];
    let mut visited = 0;
    while let Some((prefix, old, new, depth)) = todo.pop() {
        if old == new {
            continue;
        }
        // Few objects can describe endlessly many directories.
        visited += 1;
        if depth > MAX_DEPTH || visited > MAX_CHANGES {
            return Err(GitError::TooLarge {
                what: "a tree".to_owned(),
                cap: format!("{MAX_DEPTH} levels, {MAX_CHANGES} directories"),
            });
        }
        let (left, right) = objects::read_apart(odb, old, new)?;
        for (left, right) in pairs(left, right) {
            if left == right {
                continue;
            }
            let name = left.as_ref().or(right.as_ref()).map_or(&[][..], |entry| entry.name.as_slice());
            let mut path = prefix.clone();
            path.extend_from_slice(name);
            let tree = |entry: Option<&Entry>| entry.filter(|e| e.is_tree()).map(|e| e.id);
            let leaf = |entry: Option<&Entry>| entry.filter(|e| !e.is_tree()).map(|e| (e.mode, e.id));
            let (old_leaf, new_leaf) = (leaf(left.as_ref()), leaf(right.as_ref()));
            let (old_tree, new_tree) = (tree(left.as_ref()), tree(right.as_ref()));
            if old_leaf.is_some() || new_leaf.is_some() {
                out.push(RawChange { path: path.clone(), old: old_leaf, new: new_leaf });
            }
            if old_tree != new_tree {
                path.push(b'/');
                todo.push((path, old_tree, new_tree, depth + 1));
            }
            if out.len() > MAX_CHANGES || todo.len() > MAX_CHANGES {
                return Err(GitError::TooLarge {
                    what: "the difference".to_owned(),
                    cap: format!("{MAX_CHANGES} paths"),
                });
            }
        }
    }
    out.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(out)
}

/// The line of the new side at which a hunk begins: `@@ -a,b +c,d @@`.
fn begins_at(header: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(header).ok()?;
    let (_, rest) = text.split_once('+')?;
    rest.split([',', ' ']).next()?.parse().ok()
}

/// Both sides by name.
fn pairs(old: Vec<Entry>, new: Vec<Entry>) -> Vec<(Option<Entry>, Option<Entry>)> {
    let mut by_name: std::collections::BTreeMap<Vec<u8>, (Option<Entry>, Option<Entry>)> =
        std::collections::BTreeMap::new();
    for entry in old {
        let name = entry.name.clone();
        by_name.entry(name).or_default().0 = Some(entry);
    }
    for entry in new {
        let name = entry.name.clone();
        by_name.entry(name).or_default().1 = Some(entry);
    }
    by_name.into_values().collect()
}

/// The facts of one change, and its hunks when `context` lines are wanted.
fn patch(odb: &Odb<'_>, change: &RawChange, context: u32) -> Result<(PathChange, Vec<u8>), GitError> {
    let kind = match (&change.old, &change.new) {
        (None, _) => ChangeKind::Added,
        (_, None) => ChangeKind::Deleted,
        _ => ChangeKind::Modified,
    };
    let mut facts = PathChange {
        path: String::from_utf8_lossy(&change.path).into_owned(),
        kind,
        old_mode: change.old.map_or(0, |(mode, _)| mode),
        new_mode: change.new.map_or(0, |(mode, _)| mode),
        added: 0,
        deleted: 0,
        binary: false,
    };
    let mut body = Vec::new();
    if change.old.map(|(_, id)| id) == change.new.map(|(_, id)| id) {
        return Ok((facts, body));
    }
    let (Some(old), Some(new)) = (content(odb, change.old)?, content(odb, change.new)?) else {
        facts.binary = true;
        return Ok((facts, body));
    };
    if is_binary(&old) || is_binary(&new) {
        facts.binary = true;
        return Ok((facts, body));
    }
    let what = || format!("compare `{}`", crate::error::clean(&facts.path, 200));
    let mut options = DiffOptions::new();
    options.context_lines(context).interhunk_lines(0).force_text(true).indent_heuristic(false);
    let mut patch = Patch::from_buffers(&old, None, &new, None, Some(&mut options))
        .map_err(|source| GitError::library(what(), source))?;
    let (_, added, deleted) = patch.line_stats().map_err(|source| GitError::library(what(), source))?;
    if context > 0 {
        patch
            .print(&mut |_, _, line| {
                match line.origin() {
                    origin @ ('+' | '-' | ' ') => {
                        // The origin is one of three ASCII characters.
                        body.push(u8::try_from(origin).unwrap_or(b' '));
                        body.extend_from_slice(line.content());
                    }
                    'H' | '<' | '>' | '=' => body.extend_from_slice(line.content()),
                    _ => {}
                }
                true
            })
            .map_err(|source| GitError::library(what(), source))?;
    }
    facts.added = u64::try_from(added).unwrap_or(u64::MAX);
    facts.deleted = u64::try_from(deleted).unwrap_or(u64::MAX);
    Ok((facts, body))
}

/// The bytes of one side; `None` = too large to look at. A submodule's side is its commit, as git
/// itself shows it.
fn content(odb: &Odb<'_>, side: Option<(u32, Oid)>) -> Result<Option<Vec<u8>>, GitError> {
    let Some((mode, id)) = side else { return Ok(Some(Vec::new())) };
    if mode == MODE_GITLINK {
        return Ok(Some(format!("Subproject commit {id}\n").into_bytes()));
    }
    let what = || format!("blob {id}");
    let (length, _) = odb.read_header(id).map_err(|source| objects::missing(what(), source))?;
    if length > LINE_CAP {
        return Ok(None);
    }
    let object = odb.read(id).map_err(|source| objects::missing(what(), source))?;
    Ok(Some(object.data().to_vec()))
}

/// Git's own rule: a NUL in the first 8000 bytes.
fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(8000).any(|b| *b == 0)
}

fn file_text(change: &PathChange, body: &str) -> String {
    let PathChange { path, kind, old_mode, new_mode, binary, .. } = change;
    let mode = match kind {
        ChangeKind::Added => format!("new file mode {new_mode:o}\n"),
        ChangeKind::Deleted => format!("deleted file mode {old_mode:o}\n"),
        ChangeKind::Modified if old_mode != new_mode => {
            format!("old mode {old_mode:o}\nnew mode {new_mode:o}\n")
        }
        ChangeKind::Modified => String::new(),
    };
    let content = if *binary {
        "Binary files differ\n".to_owned()
    } else if body.is_empty() {
        String::new()
    } else {
        let old = if *kind == ChangeKind::Added { "/dev/null".to_owned() } else { format!("a/{path}") };
        let new = if *kind == ChangeKind::Deleted { "/dev/null".to_owned() } else { format!("b/{path}") };
        let end = if body.ends_with('\n') { "" } else { "\n" };
        format!("--- {old}\n+++ {new}\n{body}{end}")
    };
    format!("diff --git a/{path} b/{path}\n{mode}{content}")
}
