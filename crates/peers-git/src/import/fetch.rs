//! The fetch behind a large import.
//!
//! It does not read the agents' git directory: it is pointed at a directory of ours that has our
//! configuration and the references as the library read them, and only borrows the agents' object store.
//! So nothing that an agent can set (hidden references, promisor remotes, hooks of the serving side)
//! reaches the two `git` processes.

use std::collections::BTreeMap;
use std::time::Duration;

use git2::Oid;

use crate::bare::{self, Bare};
use crate::cli;
use crate::control::ControlDir;
use crate::copy;
use crate::error::{CliError, GitError, clean};
use crate::objects;
use crate::repo::PeerRepo;

/// All branches and `HEAD`.
pub(super) const BRANCHES: &[&str] = &["+refs/heads/*:refs/peer/*", "+HEAD:refs/peer-head"];

/// What is asked of objects that come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    /// The names of their content, and the shape that git gives them.
    Shape,
    /// The names of their content.
    Names,
}

impl ControlDir {
    /// A directory of ours that a fetch can be pointed at: our configuration, these references, and
    /// the agents' objects.
    pub(super) fn write_source(
        &self,
        peer: &PeerRepo,
        head: Oid,
        branches: &BTreeMap<String, Oid>,
    ) -> Result<(), GitError> {
        let source = self.own("source");
        let config = "[core]\n\tbare = true\n\tcommitGraph = false\n\tmultiPackIndex = false\n\
                      [pack]\n\tuseBitmaps = false\n[gc]\n\tauto = 0\n";
        // Ours first: what we have already is read from there, whatever became of it over there.
        let mut stores = vec![self.objects_dir()];
        stores.extend(bare::stores_of(peer)?);
        let made = Bare {
            config: config.as_bytes(),
            head: &head.to_string(),
            refs: bare::packed_refs(branches),
            stores: bare::alternates(&stores)?,
            shallow: &bare::shallow_of(peer.common_dir())?,
        };
        made.write(&source)
    }

    pub(super) fn fetch(
        &mut self,
        options: &[&str],
        refspecs: &[&str],
        limit: Duration,
    ) -> Result<(), GitError> {
        self.fetch_by(Check::Shape, options, refspecs, limit)
    }

    pub(super) fn fetch_by(
        &mut self,
        check: Check,
        options: &[&str],
        refspecs: &[&str],
        limit: Duration,
    ) -> Result<(), GitError> {
        self.heal()?;
        let home = self.home();
        let mut call = self.call(&home);
        for setting in ["protocol.allow=never", "protocol.file.allow=always"] {
            call.setting(setting);
        }
        call.setting(match check {
            Check::Shape => "fetch.fsckObjects=true",
            Check::Names => "fetch.fsckObjects=false",
        });
        call.arg("fetch").args([
            "--no-tags",
            "--no-recurse-submodules",
            "--no-auto-maintenance",
            "--no-write-fetch-head",
            "--quiet",
        ]);
        call.args(options.iter().copied()).limit(limit);
        call.arg("--end-of-options").arg(self.own("source")).args(refspecs.iter().copied());
        let result = call.run();
        self.reopen()?;
        result.map(drop).map_err(|error| sort_fetch_error(&error).unwrap_or(GitError::Cli(error)))
    }

    /// Our names for the agents' branches that are gone: a new branch `a/b` needs the place of `a`.
    pub(super) fn drop_stale_refs(&self, branches: &BTreeMap<String, Oid>) -> Result<(), GitError> {
        let fail = |source| GitError::library("list imported branches", source);
        for reference in self.repo.references_glob("refs/peer/*").map_err(fail)? {
            let mut reference = reference.map_err(fail)?;
            let gone = match reference.name() {
                Ok(name) => !branches.contains_key(&theirs(name)),
                Err(_) => true,
            };
            if gone {
                reference.delete().map_err(|source| GitError::library("drop an imported branch", source))?;
            }
        }
        Ok(())
    }

    /// Our names for the branches as they were last imported. Only a fetch looks at them, to know what it
    /// need not ask for; so they are moved only before one.
    pub(super) fn show_what_we_have(&self, branches: &BTreeMap<String, Oid>) -> Result<(), GitError> {
        self.drop_stale_refs(branches)?;
        let odb = objects::odb(&self.repo)?;
        for (name, oid) in branches {
            let name = ours(name);
            let same = self.repo.find_reference(&name).ok().and_then(|found| found.target()) == Some(*oid);
            if !same && copy::has(&odb, *oid) {
                self.repo
                    .reference(&name, *oid, true, "import")
                    .map_err(|source| GitError::library(format!("record `{}`", clean(&name, 200)), source))?;
            }
        }
        Ok(())
    }
}

fn ours(name: &str) -> String {
    name.replacen("refs/heads/", "refs/peer/", 1)
}

fn theirs(name: &str) -> String {
    name.replacen("refs/peer/", "refs/heads/", 1)
}

fn sort_fetch_error(error: &CliError) -> Option<GitError> {
    let text = cli::failure_text(error)?;
    if text.contains("No space left on device") || text.contains("Disk quota exceeded") {
        return Some(GitError::DiskFull { what: "the control directory".to_owned() });
    }
    Some(GitError::Corrupt { what: "the history to import".to_owned(), detail: clean(text, 500) })
}
