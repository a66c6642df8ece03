//! Raw git objects: parsed strictly, without the library's view of grafts, attributes or names.

use git2::{ErrorCode, ObjectType, Odb, Oid, Repository};
use peers_model::{CommitId, TreeId};

use crate::error::GitError;
use crate::ids;

/// A directory in a tree.
pub(crate) const MODE_TREE: u32 = 0o040_000;
/// A plain file.
pub(crate) const MODE_FILE: u32 = 0o100_644;
/// An executable file.
pub(crate) const MODE_EXEC: u32 = 0o100_755;
/// A symlink.
pub(crate) const MODE_LINK: u32 = 0o120_000;
/// A commit of a submodule.
pub(crate) const MODE_GITLINK: u32 = 0o160_000;

/// A tree or commit object larger than this is refused.
pub(crate) const META_CAP: usize = 64 * 1024 * 1024;

/// The links of a commit, as its bytes say.
pub(crate) struct RawCommit {
    pub(crate) tree: Oid,
    pub(crate) parents: Vec<Oid>,
}

/// Parses a commit as strictly as git's own consistency check; `None` = anything unusual.
pub(crate) fn parse_commit(data: &[u8]) -> Option<RawCommit> {
    let mut rest = data;
    let tree = oid_line(&mut rest, b"tree ")?;
    let mut parents = Vec::new();
    while rest.starts_with(b"parent ") {
        parents.push(oid_line(&mut rest, b"parent ")?);
    }
    identity_line(&mut rest, b"author ")?;
    identity_line(&mut rest, b"committer ")?;
    // Further headers (encoding, gpgsig) up to the blank line, or the end of an empty message.
    Some(RawCommit { tree, parents })
}

fn line<'a>(rest: &mut &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let body = rest.strip_prefix(prefix)?;
    let end = body.iter().position(|b| *b == b'\n')?;
    *rest = body.get(end + 1..)?;
    body.get(..end)
}

fn oid_line(rest: &mut &[u8], prefix: &[u8]) -> Option<Oid> {
    let hex = line(rest, prefix)?;
    if hex.len() != 40 || !hex.iter().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b)) {
        return None;
    }
    Oid::from_str(std::str::from_utf8(hex).ok()?).ok()
}

/// `Name <email> seconds +zone`.
fn identity_line(rest: &mut &[u8], prefix: &[u8]) -> Option<()> {
    let text = line(rest, prefix)?;
    let open = text.iter().position(|b| *b == b'<')?;
    let close = text.iter().position(|b| *b == b'>')?;
    let (name, email) = (text.get(..open)?, text.get(open + 1..close)?);
    let when = std::str::from_utf8(text.get(close + 1..)?.strip_prefix(b" ")?).ok()?;
    let (seconds, zone) = when.split_once(' ')?;
    let sign_ok = matches!(zone.as_bytes().first()?, b'+' | b'-');
    let digits = |s: &str, max: usize| {
        !s.is_empty()
            && s.len() <= max
            && s.bytes().all(|b| b.is_ascii_digit())
            && (s == "0" || max == 4 || !s.starts_with('0'))
    };
    let ok = sign_ok
        && (name.is_empty() || name.ends_with(b" "))
        && !email.contains(&b'<')
        && !text.contains(&0)
        && digits(seconds, 11)
        && zone.len() == 5
        && digits(zone.get(1..)?, 4);
    ok.then_some(())
}

/// One entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) mode: u32,
    pub(crate) name: Vec<u8>,
    pub(crate) id: Oid,
}

impl Entry {
    fn of((mode, name, id): &RawEntry<'_>) -> Self {
        Self { mode: normal(*mode), name: name.to_vec(), id: *id }
    }

    pub(crate) fn is_tree(&self) -> bool {
        self.mode == MODE_TREE
    }

    /// The object that must be there with the tree: that of a submodule lies elsewhere.
    pub(crate) fn needed(&self) -> Option<(Oid, ObjectType)> {
        let kind = if self.is_tree() { ObjectType::Tree } else { ObjectType::Blob };
        (self.mode != MODE_GITLINK).then_some((self.id, kind))
    }
}

/// Parses a tree. Modes are brought to the six that git writes. `None` = not a tree.
pub(crate) fn parse_tree(data: &[u8]) -> Option<Vec<Entry>> {
    Some(raw_entries(data)?.iter().map(Entry::of).collect())
}

/// Mode, name and hash of an entry, as they stand there.
type RawEntry<'a> = (u32, &'a [u8], Oid);

fn raw_entries(mut data: &[u8]) -> Option<Vec<RawEntry<'_>>> {
    let mut out = Vec::new();
    while !data.is_empty() {
        let space = data.iter().take(8).position(|b| *b == b' ')?;
        let mode = data
            .get(..space)?
            .iter()
            .try_fold(0_u32, |mode, b| (b'0'..=b'7').contains(b).then(|| mode * 8 + u32::from(b - b'0')))?;
        let rest = data.get(space + 1..)?;
        let nul = rest.iter().position(|b| *b == 0)?;
        let name = rest.get(..nul)?;
        let id = Oid::from_bytes(rest.get(nul + 1..nul + 21)?).ok()?;
        data = rest.get(nul + 21..)?;
        if name.is_empty() || name.contains(&b'/') {
            return None;
        }
        out.push((mode, name, id));
    }
    Some(out)
}

fn normal(mode: u32) -> u32 {
    match mode & 0o170_000 {
        0o040_000 => MODE_TREE,
        0o120_000 => MODE_LINK,
        0o160_000 => MODE_GITLINK,
        _ if mode & 0o100 != 0 => MODE_EXEC,
        _ => MODE_FILE,
    }
}

/// Is this tree one that git's own consistency check would pass without a word?
pub(crate) fn is_plain_tree(data: &[u8]) -> bool {
    let Some(entries) = raw_entries(data) else { return false };
    let modes = [MODE_TREE, MODE_FILE, MODE_EXEC, MODE_LINK, MODE_GITLINK];
    let sane = entries.iter().all(|(mode, name, id)| {
        modes.contains(mode)
            && !forbidden_name(name)
            && name.len() < 4096
            && !id.is_zero()
            && *name != b".gitmodules"
    });
    let sorted = entries.windows(2).all(|pair| match pair {
        [(mode_a, a, _), (mode_b, b, _)] => a != b && sort_key(*mode_a, a) < sort_key(*mode_b, b),
        _ => true,
    });
    // A file `a` and a directory `a` need not be neighbours (`a`, `a.b`, `a/`).
    let mut names: Vec<&[u8]> = entries.iter().map(|(_, name, _)| *name).collect();
    names.sort_unstable();
    sane && sorted && names.windows(2).all(|pair| pair.first() != pair.last())
}

fn sort_key(mode: u32, name: &[u8]) -> Vec<u8> {
    let mut key = name.to_vec();
    if mode == MODE_TREE {
        key.push(b'/');
    }
    key
}

/// Names that never stand in a tree we write, and that we never write to a work tree: `.`, `..` and
/// every spelling that some file system takes for `.git`.
pub(crate) fn forbidden_name(name: &[u8]) -> bool {
    if name.is_empty() || name == b"." || name == b".." || name.contains(&b'/') || name.contains(&0) {
        return true;
    }
    let lower = name.to_ascii_lowercase();
    if lower == b".git" || lower == b"git~1" {
        return true;
    }
    // NTFS drops trailing dots, spaces and stream names, and takes `\` for a separator.
    if let Some(tail) = lower.strip_prefix(b".git")
        && (tail.iter().all(|b| matches!(b, b'.' | b' '))
            || tail.starts_with(b":")
            || tail.starts_with(b"\\"))
    {
        return true;
    }
    // HFS+ ignores some code points.
    let Ok(text) = std::str::from_utf8(name) else { return false };
    if text.is_ascii() {
        return false;
    }
    let visible: String = text
        .chars()
        .filter(|c| !matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}'))
        .collect();
    visible.eq_ignore_ascii_case(".git")
}

/// The bytes of a tree object. Sorts the entries.
pub(crate) fn tree_bytes(entries: &mut [Entry]) -> Vec<u8> {
    entries.sort_by_cached_key(|entry| sort_key(entry.mode, &entry.name));
    let mut out = Vec::new();
    for entry in entries {
        out.extend_from_slice(format!("{:o} ", entry.mode).as_bytes());
        out.extend_from_slice(&entry.name);
        out.push(0);
        out.extend_from_slice(entry.id.as_bytes());
    }
    out
}

/// Reads a tree through the strict parser.
pub(crate) fn read_tree(odb: &Odb<'_>, id: Oid) -> Result<Vec<Entry>, GitError> {
    parse_tree(tree_object(odb, id)?.data()).ok_or_else(|| no_tree(id))
}

/// The entries of two trees (`None` is the empty one) without those that begin or end both: of a directory in which one
/// file changed, that one.
pub(crate) fn read_apart(
    odb: &Odb<'_>,
    old: Option<Oid>,
    new: Option<Oid>,
) -> Result<(Vec<Entry>, Vec<Entry>), GitError> {
    let load = |id: Option<Oid>| id.map(|id| tree_object(odb, id).map(|tree| (id, tree))).transpose();
    let (old, new) = (load(old)?, load(new)?);
    let (old, new) = (all_of(old.as_ref())?, all_of(new.as_ref())?);
    let before = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (old, new) = (old.get(before..).unwrap_or_default(), new.get(before..).unwrap_or_default());
    let behind = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let kept =
        |entries: &[RawEntry<'_>]| entries.iter().take(entries.len() - behind).map(Entry::of).collect();
    Ok((kept(old), kept(new)))
}

fn all_of<'a>(tree: Option<&'a (Oid, git2::OdbObject<'_>)>) -> Result<Vec<RawEntry<'a>>, GitError> {
    let Some((id, object)) = tree else { return Ok(Vec::new()) };
    raw_entries(object.data()).ok_or_else(|| no_tree(*id))
}

fn tree_object<'a>(odb: &'a Odb<'_>, id: Oid) -> Result<git2::OdbObject<'a>, GitError> {
    let what = || format!("tree {id}");
    let (size, kind) = odb.read_header(id).map_err(|source| missing(what(), source))?;
    if kind != ObjectType::Tree {
        return Err(GitError::Corrupt { what: what(), detail: format!("it is a {kind}") });
    }
    if size > META_CAP {
        return Err(GitError::TooLarge { what: what(), cap: format!("{META_CAP} bytes") });
    }
    odb.read(id).map_err(|source| missing(what(), source))
}

fn no_tree(id: Oid) -> GitError {
    GitError::Corrupt { what: format!("tree {id}"), detail: "not a tree".to_owned() }
}

/// The tree of a commit, by the commit's own bytes.
pub(crate) fn commit_tree(repo: &Repository, commit: &CommitId) -> Result<Oid, GitError> {
    let oid = ids::commit_oid(commit)?;
    let found = repo
        .find_commit(oid)
        .map_err(|source| GitError::library(format!("commit {}", commit.short()), source))?;
    Ok(found.tree_id())
}

pub(crate) fn require_tree(repo: &Repository, tree: &TreeId) -> Result<Oid, GitError> {
    let oid = ids::tree_oid(tree)?;
    repo.find_tree(oid).map_err(|source| GitError::library(format!("tree {tree}"), source))?;
    Ok(oid)
}

pub(crate) fn odb(repo: &Repository) -> Result<Odb<'_>, GitError> {
    repo.odb().map_err(|source| GitError::library("open the object store", source))
}

/// A missing object inside a closure is damage, not a wrong question.
pub(crate) fn missing(what: String, source: git2::Error) -> GitError {
    if source.code() == ErrorCode::NotFound {
        return GitError::Corrupt { what, detail: "the object is missing".to_owned() };
    }
    match GitError::library(what, source) {
        GitError::Library { what, source } => {
            GitError::Corrupt { what, detail: crate::error::clean(source.message(), 300) }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_survives_a_round_trip_in_git_order() {
        let id = Oid::hash_object(git2::ObjectType::Blob, b"x").unwrap();
        let entry = |mode, name: &str| Entry { mode, name: name.into(), id };
        let mut entries = vec![
            entry(MODE_TREE, "a"),
            entry(MODE_FILE, "a.b"),
            entry(MODE_FILE, "a0"),
            entry(MODE_LINK, "B"),
        ];
        let bytes = tree_bytes(&mut entries);
        let names: Vec<_> = parse_tree(&bytes).unwrap().into_iter().map(|e| e.name).collect();
        assert_eq!(names, [b"B".to_vec(), b"a.b".to_vec(), b"a".to_vec(), b"a0".to_vec()]);
        assert!(is_plain_tree(&bytes));
    }

    #[test]
    fn unusual_trees_are_left_to_the_consistency_check() {
        let id = Oid::hash_object(git2::ObjectType::Blob, b"x").unwrap();
        let bytes = |entries: &[(u32, &str)]| {
            let mut out = Vec::new();
            for (mode, name) in entries {
                out.extend_from_slice(format!("{mode:o} {name}\0").as_bytes());
                out.extend_from_slice(id.as_bytes());
            }
            out
        };
        for odd in [
            &[(MODE_FILE, ".GIT")][..],
            &[(MODE_FILE, "git~1")],
            &[(MODE_FILE, ".g\u{200c}it")],
            &[(MODE_FILE, "..")],
            &[(0o100_664, "a")],
            &[(MODE_FILE, "b"), (MODE_FILE, "a")],
            &[(MODE_FILE, "a"), (MODE_FILE, "a")],
            &[(MODE_FILE, "a"), (MODE_FILE, "a.b"), (MODE_TREE, "a")],
            &[(MODE_FILE, ".gitmodules")],
        ] {
            assert!(!is_plain_tree(&bytes(odd)), "{odd:?}");
        }
        assert!(is_plain_tree(&bytes(&[(MODE_FILE, ".gitignore"), (MODE_FILE, "a")])));
    }

    #[test]
    fn only_well_formed_commits_are_taken_without_the_consistency_check() {
        let tree = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n";
        let good = format!("{tree}author A <a@b> 1 +0000\ncommitter A <a@b> 1 -0130\n\nm");
        assert!(parse_commit(good.as_bytes()).is_some());
        for bad in [
            format!("{tree}committer A <a@b> 1 +0000\n\nm"),
            format!("{tree}author A <a@b> 01 +0000\ncommitter A <a@b> 1 +0000\n\n"),
            format!("{tree}author A a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\n"),
            format!("{tree}author A <a@b> 99999999999999999999 +0000\ncommitter A <a@b> 1 +0000\n\n"),
            format!("{tree}parent 12\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\n"),
        ] {
            assert!(parse_commit(bad.as_bytes()).is_none(), "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_parsed_or_refused(bytes: Vec<u8>) {
            drop(parse_tree(&bytes));
            drop(parse_commit(&bytes));
            let _ = is_plain_tree(&bytes);
            let _ = forbidden_name(&bytes);
        }
    }
}
