//! What somebody who has not seen a project may read first: made of a commit, without any model (`gates.md` §9).

use peers_code::{DOCS, Outlines, TreeFile};
use peers_git::{Facts, GitError, TreeItem};
use peers_model::CommitId;
use peers_model::limits::{KIB, MIB};
use serde::{Deserialize, Serialize};

use crate::codemap;

/// Git's file mode of symbolic links.
const LINK: u32 = 0o120_000;
/// Bytes of a document that is quoted.
const DOC: u64 = 256 * KIB;
/// Bytes that `CODEMAP.yaml` may have.
const MAP: u64 = 8 * MIB;

/// Texts about a commit. What stands in them was written by anybody.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Primer {
    /// Languages, beginnings, files, documents.
    pub recon: String,
    /// Every public name, as `CODEMAP.yaml` has them; empty where that would be too long to be read.
    pub map: String,
    /// The same in short.
    pub digest: String,
    /// What the sources define, so that the next primer need not parse them.
    pub outlines: Outlines,
}

/// Makes them. `known` are outlines of before; `roots` are the directories of the sources, if somebody named them.
///
/// # Errors
/// [`GitError`] for a commit that cannot be read.
pub fn primer(
    facts: &Facts<'_>,
    roots: &[String],
    commit: &CommitId,
    known: Outlines,
) -> Result<Primer, GitError> {
    let mut outlines = known;
    let (found, _) = codemap::map_at(facts, roots, commit, &mut outlines)?;
    let map = Some(found.yaml()).filter(|map| u64::try_from(map.len()).is_ok_and(|len| len <= MAP));
    Ok(Primer {
        recon: recon(facts, commit)?,
        map: map.unwrap_or_default(),
        digest: found.digest(),
        outlines,
    })
}

fn recon(facts: &Facts<'_>, commit: &CommitId) -> Result<String, GitError> {
    let tree = facts.list_tree(commit)?;
    let docs: Vec<(&str, Result<String, String>)> = DOCS
        .into_iter()
        .filter_map(|name| Some((name, quoted(facts, tree.iter().find(|file| file.path == name)?))))
        .collect();
    let size = |file: &TreeItem| {
        let wanted = peers_code::Language::of(&file.path).is_some();
        if wanted { facts.object_size(&file.id).unwrap_or_default() } else { 0 }
    };
    let files: Vec<TreeFile> = tree
        .iter()
        .map(|file| TreeFile { path: file.path.clone(), size: size(file), link: file.mode == LINK })
        .collect();
    Ok(peers_code::recon(&files, &docs))
}

/// A document, or why it is not quoted.
fn quoted(facts: &Facts<'_>, file: &TreeItem) -> Result<String, String> {
    if file.mode == LINK {
        return Err("it is a symbolic link".to_owned());
    }
    let cap = usize::try_from(DOC).unwrap_or(usize::MAX);
    match facts.read_object(&file.id, cap) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned()),
        Err(GitError::TooLarge { .. }) => Err(format!("it has more than {} KiB", DOC / KIB)),
        Err(error) => Err(crate::cx::chain(&error)),
    }
}
