//! What the agents' references say.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use git2::Oid;

use crate::error::{GitError, clean, clean_bytes};
use crate::ids;
use crate::repo::PeerRepo;

/// Branches looked at.
const MAX_BRANCHES: usize = 50_000;

/// `HEAD` and all branches, as the library reads them.
pub(super) struct Tips {
    pub(super) head: Oid,
    pub(super) branches: BTreeMap<String, Oid>,
    pub(super) broken: Vec<String>,
}

impl Tips {
    pub(super) fn read(peer: &PeerRepo) -> Result<Self, GitError> {
        let head = ids::commit_oid(&peer.facts().head()?.commit)?;
        let mut tips = Self { head, branches: BTreeMap::new(), broken: Vec::new() };
        let refs = peer
            .repo
            .references_glob("refs/heads/*")
            .map_err(|source| GitError::library("list branches", source))?;
        for (count, reference) in refs.enumerate() {
            if count >= MAX_BRANCHES {
                return Err(GitError::TooLarge {
                    what: "the number of branches".to_owned(),
                    cap: MAX_BRANCHES.to_string(),
                });
            }
            // A reference that cannot be parsed is reported and otherwise does not exist.
            let Ok(reference) = reference else {
                tips.note_broken("an unreadable reference".to_owned());
                continue;
            };
            let target = reference.resolve().ok().and_then(|resolved| resolved.target());
            match (reference.name(), target) {
                (Ok(name), Some(oid)) => {
                    tips.branches.insert(name.to_owned(), oid);
                }
                _ => tips.note_broken(clean_bytes(reference.name_bytes())),
            }
        }
        Ok(tips)
    }

    fn note_broken(&mut self, name: String) {
        if self.broken.len() < 20 {
            self.broken.push(name);
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!("{} HEAD\n", self.head);
        for (name, oid) in &self.branches {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{oid} {name}");
        }
        text
    }

    pub(super) fn drop_branches(&mut self, names: &[String]) {
        for name in names {
            self.branches.remove(name);
            self.note_broken(clean(name, 200));
        }
    }
}

/// The branches in a text of [`Tips`].
pub(crate) fn parse_tips(text: &[u8]) -> BTreeMap<String, Oid> {
    String::from_utf8_lossy(text)
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(_, name)| name.starts_with("refs/heads/"))
        .filter_map(|(id, name)| Some((name.to_owned(), Oid::from_str(id).ok()?)))
        .collect()
}
