//! Importing the agents' history into the control directory.
//!
//! Small ranges are copied object by object in process. Larger ones, and anything of unusual shape,
//! go through `git fetch` with its consistency check. The fetch does not read the agents' git
//! directory either: it is pointed at a directory of ours that has our configuration, the references
//! as the library read them, and only borrows the agents' object store.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use git2::{ObjectType, Odb, Oid};
use peers_model::CommitId;

use crate::cli::{self, LIMIT, LONG_LIMIT};
use crate::control::ControlDir;
use crate::copy::{self, Copied, Limits, Shape};
use crate::error::{CliError, GitError, clean, clean_bytes};
use crate::files::{self, Small};
use crate::ids;
use crate::known::Generation;
use crate::objects;
use crate::repo::{PeerRepo, peer_shallow};

/// Beyond this `git fetch` is faster, or safer for our memory. (About 60 µs per object in process;
/// a fetch costs about 20 ms before the first one.)
const IN_PROCESS: Limits = Limits { objects: 300, bytes: 32 * 1024 * 1024 };
/// Branches looked at.
const MAX_BRANCHES: usize = 50_000;
/// New commits of one import.
const MAX_COMMITS: usize = 1_000_000;

/// What an import did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Imported {
    /// The commit that `HEAD` named.
    pub head: CommitId,
    /// The generation before this import: what [`ControlDir::new_commits`] is to be asked with.
    pub before: Generation,
    /// How the objects came.
    pub route: Route,
    /// The commits that were not known before, in no particular order. Empty for the first import.
    pub new: Vec<CommitId>,
    /// Branches that could not be read or imported, cleaned for people. They do not count as known.
    pub broken: Vec<String>,
}

/// How an import got its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// No reference moved: nothing was done.
    Unchanged,
    /// In process; this many objects.
    Copied(usize),
    /// By `git fetch`.
    Fetched,
}

/// `HEAD` and all branches, as the library reads them.
struct Tips {
    head: Oid,
    branches: BTreeMap<String, Oid>,
    broken: Vec<String>,
}

impl Tips {
    fn read(peer: &PeerRepo) -> Result<Self, GitError> {
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

    fn text(&self) -> String {
        let mut text = format!("{} HEAD\n", self.head);
        for (name, oid) in &self.branches {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{oid} {name}");
        }
        text
    }
}

impl ControlDir {
    /// The generation of the last import that brought commits.
    #[must_use]
    pub fn generation(&self) -> Generation {
        self.known.generation()
    }

    /// Brings in `HEAD` and all branches of the agents' repository.
    ///
    /// The first import takes the history from `base` on, or all of it without `base`. Does nothing
    /// when no reference moved since the last import.
    ///
    /// # Errors
    /// [`GitError::Corrupt`] when objects that `HEAD` needs are missing, damaged or refused by the
    /// consistency check; [`GitError::Repo`] for a git directory that is unsafe to read.
    pub fn import(&mut self, peer: &PeerRepo, base: Option<&CommitId>) -> Result<Imported, GitError> {
        let mut tips = Tips::read(peer)?;
        let text = tips.text();
        let before = self.generation();
        let previous = self.previous_tips()?;
        if previous.as_deref() == Some(text.as_bytes())
            && self.facts().commit(&ids::commit_id(tips.head)).is_ok()
        {
            return Ok(imported(&tips, before, Route::Unchanged, &[]));
        }
        peer.check_objects()?;
        let (route, new) = if previous.is_none() {
            (self.first_import(peer, &mut tips, base)?, Vec::new())
        } else {
            self.next_import(peer, &mut tips, previous.as_deref().unwrap_or_default())?
        };
        let head = ids::commit_id(tips.head);
        if let Err(error) = self.facts().commit(&head) {
            return Err(GitError::Corrupt {
                what: format!("our copy of commit {}", head.short()),
                detail: error.to_string(),
            });
        }
        // Torn by a crash it differs from every state, and the import is done again.
        files::overwrite(&self.own("tips"), text.as_bytes())?;
        Ok(imported(&tips, before, route, &new))
    }

    /// Fetches the history that a shallow first import left out. Nothing to do when it is complete.
    ///
    /// # Errors
    /// As [`ControlDir::import`].
    pub fn deepen(&mut self, peer: &PeerRepo) -> Result<(), GitError> {
        if !self.repo.is_shallow() {
            return Ok(());
        }
        peer.check_objects()?;
        let tips = Tips::read(peer)?;
        let branches = tips.branches.clone();
        self.write_source(peer, tips.head, &branches)?;
        self.drop_stale_refs(&tips.branches)?;
        self.fetch(&["--unshallow", "--update-shallow"], BRANCHES, LONG_LIMIT)
    }

    fn previous_tips(&self) -> Result<Option<Vec<u8>>, GitError> {
        let path = self.own("tips");
        match files::read_small(&path, 64 << 20).map_err(|source| GitError::io(&path, source))? {
            Small::Bytes(bytes) => Ok(Some(bytes)),
            _ => Ok(None),
        }
    }

    fn next_import(
        &mut self,
        peer: &PeerRepo,
        tips: &mut Tips,
        previous: &[u8],
    ) -> Result<(Route, Vec<Oid>), GitError> {
        let mut new = HashSet::new();
        {
            let (src, dst) = (objects::odb(&peer.repo)?, objects::odb(&self.repo)?);
            unknown_commits(&src, &dst, tips.head, &mut new)?;
            let mut broken = Vec::new();
            for (name, oid) in &tips.branches {
                // A branch that somebody broke must not stop the work on HEAD.
                let mut found = new.clone();
                match unknown_commits(&src, &dst, *oid, &mut found) {
                    Ok(()) => new = found,
                    Err(GitError::Corrupt { .. }) => broken.push(name.clone()),
                    Err(other) => return Err(other),
                }
            }
            tips.drop_branches(&broken);
        }
        let new: Vec<Oid> = new.into_iter().collect();
        self.known.record(&new)?;
        let route = if let Some(written) = self.copy_in(peer, tips, &[])? {
            Route::Copied(written)
        } else {
            self.show_what_we_have(previous)?;
            self.fetch_tips(peer, tips)?;
            Route::Fetched
        };
        Ok((route, new))
    }

    /// Copies in process; `None` when that is not the way to go.
    fn copy_in(&self, peer: &PeerRepo, tips: &mut Tips, boundary: &[Oid]) -> Result<Option<usize>, GitError> {
        let stores = (&objects::odb(&peer.repo)?, &objects::odb(&self.repo)?);
        let mut total = 0;
        match copy::copy_closure(stores, &[tips.head], boundary, IN_PROCESS, Shape::Strict)? {
            Copied::Done(written) => total += written,
            Copied::TooMuch | Copied::Odd(_) => return Ok(None),
        }
        let mut broken = Vec::new();
        for (name, oid) in &tips.branches {
            let left = Limits { objects: IN_PROCESS.objects.saturating_sub(total), ..IN_PROCESS };
            match copy::copy_closure(stores, &[*oid], boundary, left, Shape::Strict) {
                Ok(Copied::Done(written)) => total += written,
                Ok(Copied::TooMuch | Copied::Odd(_)) => return Ok(None),
                Err(GitError::Corrupt { .. }) => broken.push(name.clone()),
                Err(other) => return Err(other),
            }
        }
        tips.drop_branches(&broken);
        Ok(Some(total))
    }

    /// Fetches everything; when that fails, `HEAD` alone.
    fn fetch_tips(&mut self, peer: &PeerRepo, tips: &mut Tips) -> Result<(), GitError> {
        self.drop_stale_refs(&tips.branches)?;
        self.write_source(peer, tips.head, &tips.branches)?;
        match self.fetch(&[], BRANCHES, LIMIT) {
            Err(GitError::Corrupt { .. }) if !tips.branches.is_empty() => {
                self.write_source(peer, tips.head, &BTreeMap::new())?;
                self.fetch(&[], &["+HEAD:refs/peer-head"], LIMIT)?;
                let odb = objects::odb(&self.repo)?;
                let missing: Vec<String> = tips
                    .branches
                    .iter()
                    .filter(|(_, oid)| !copy::has(&odb, **oid))
                    .map(|(name, _)| name.clone())
                    .collect();
                drop(odb);
                tips.drop_branches(&missing);
                Ok(())
            }
            other => other,
        }
    }

    fn first_import(
        &mut self,
        peer: &PeerRepo,
        tips: &mut Tips,
        base: Option<&CommitId>,
    ) -> Result<Route, GitError> {
        let Some(base) = base else {
            if let Some(written) = self.copy_in(peer, tips, &[])? {
                return Ok(Route::Copied(written));
            }
            self.drop_stale_refs(&tips.branches)?;
            self.write_source(peer, tips.head, &tips.branches)?;
            self.fetch(&[], BRANCHES, LONG_LIMIT)?;
            return Ok(Route::Fetched);
        };
        let name = base.short();
        let base = ids::commit_oid(base)?;
        if !objects::odb(&peer.repo)?.exists(base) {
            return Err(GitError::NotFound { what: format!("base {name}") });
        }
        let edge = Edge::find(&objects::odb(&peer.repo)?, tips, base)?;
        if let Some(written) = self.copy_in(peer, tips, &edge.boundary)? {
            self.write_shallow(&edge.shallow)?;
            return Ok(Route::Copied(written));
        }
        // First the edge itself, then what grows from it, then the tips of everything else.
        self.write_source(peer, base, &BTreeMap::new())?;
        self.fetch(&["--depth=1"], &["+HEAD:refs/peers/base"], LONG_LIMIT)?;
        let (grown, apart): (BTreeMap<_, _>, BTreeMap<_, _>) =
            tips.branches.clone().into_iter().partition(|(_, oid)| edge.grown.contains(oid));
        let apart_args: &[&str] = &["--depth=1"];
        if edge.grown.contains(&tips.head) {
            self.write_source(peer, tips.head, &grown)?;
            self.fetch(&[], BRANCHES, LONG_LIMIT)?;
            if !apart.is_empty() {
                self.write_source(peer, base, &apart)?;
                self.fetch(apart_args, &["+refs/heads/*:refs/peer/*"], LONG_LIMIT)?;
            }
        } else {
            self.write_source(peer, tips.head, &tips.branches)?;
            self.fetch(apart_args, BRANCHES, LONG_LIMIT)?;
        }
        Ok(Route::Fetched)
    }

    fn write_shallow(&mut self, shallow: &[Oid]) -> Result<(), GitError> {
        if shallow.is_empty() {
            return Ok(());
        }
        let mut lines: Vec<String> = shallow.iter().map(|oid| format!("{oid}\n")).collect();
        lines.sort_unstable();
        files::replace(&self.path().join("shallow"), lines.concat().as_bytes())?;
        self.reopen()
    }

    /// A directory of ours that a fetch can be pointed at: our configuration, these references, and
    /// the agents' objects.
    fn write_source(
        &self,
        peer: &PeerRepo,
        head: Oid,
        branches: &BTreeMap<String, Oid>,
    ) -> Result<(), GitError> {
        let source = self.own("source");
        for dir in ["", "objects", "objects/info", "refs"] {
            files::ensure_dir(&source.join(dir))?;
        }
        let config = "[core]\n\tbare = true\n\tcommitGraph = false\n\tmultiPackIndex = false\n\
                      [pack]\n\tuseBitmaps = false\n[gc]\n\tauto = 0\n";
        files::replace(&source.join("config"), config.as_bytes())?;
        files::replace(&source.join("HEAD"), format!("{head}\n").as_bytes())?;
        let mut packed = String::from("# pack-refs with: sorted\n");
        for (name, oid) in branches {
            // Writing to a string does not fail.
            let _ = writeln!(packed, "{oid} {name}");
        }
        files::replace(&source.join("packed-refs"), packed.as_bytes())?;
        files::replace(&source.join("objects/info/alternates"), &alternates(&peer.objects_dir())?)?;
        let shallow = source.join("shallow");
        match peer_shallow(peer)? {
            Some(lines) => files::replace(&shallow, lines.as_bytes()),
            None => match std::fs::remove_file(&shallow) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(GitError::io(shallow, error)),
                _ => Ok(()),
            },
        }
    }

    fn fetch(&mut self, options: &[&str], refspecs: &[&str], limit: Duration) -> Result<(), GitError> {
        let home = self.home();
        let mut call = self.call(&home);
        for setting in
            ["protocol.allow=never", "protocol.file.allow=always", "fetch.fsckObjects=true", "gc.auto=0"]
        {
            call.setting(setting);
        }
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
    fn drop_stale_refs(&self, branches: &BTreeMap<String, Oid>) -> Result<(), GitError> {
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
    fn show_what_we_have(&self, previous: &[u8]) -> Result<(), GitError> {
        let branches = parse_tips(previous);
        self.drop_stale_refs(&branches)?;
        let odb = objects::odb(&self.repo)?;
        for (name, oid) in &branches {
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

    /// The branches as they were last imported, by their full names in the agents' repository.
    pub(crate) fn imported_branches(&self) -> Result<BTreeMap<String, Oid>, GitError> {
        let odb = objects::odb(&self.repo)?;
        let mut branches = parse_tips(&self.previous_tips()?.unwrap_or_default());
        branches.retain(|_, oid| copy::has(&odb, *oid));
        Ok(branches)
    }
}

fn parse_tips(text: &[u8]) -> BTreeMap<String, Oid> {
    String::from_utf8_lossy(text)
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(_, name)| name.starts_with("refs/heads/"))
        .filter_map(|(id, name)| Some((name.to_owned(), Oid::from_str(id).ok()?)))
        .collect()
}

fn imported(tips: &Tips, before: Generation, route: Route, new: &[Oid]) -> Imported {
    Imported {
        head: ids::commit_id(tips.head),
        before,
        route,
        new: new.iter().copied().map(ids::commit_id).collect(),
        broken: tips.broken.clone(),
    }
}

const BRANCHES: &[&str] = &["+refs/heads/*:refs/peer/*", "+HEAD:refs/peer-head"];

fn ours(name: &str) -> String {
    name.replacen("refs/heads/", "refs/peer/", 1)
}

fn theirs(name: &str) -> String {
    name.replacen("refs/peer/", "refs/heads/", 1)
}

impl Tips {
    fn drop_branches(&mut self, names: &[String]) {
        for name in names {
            self.branches.remove(name);
            self.note_broken(clean(name, 200));
        }
    }
}

/// Commits reachable from `tip` that `dst` lacks, by their own bytes (grafts do not count).
fn unknown_commits(src: &Odb<'_>, dst: &Odb<'_>, tip: Oid, found: &mut HashSet<Oid>) -> Result<(), GitError> {
    let mut todo = vec![tip];
    while let Some(oid) = todo.pop() {
        if found.contains(&oid) || copy::has(dst, oid) {
            continue;
        }
        let parents = raw_parents(src, oid)?;
        found.insert(oid);
        if found.len() > MAX_COMMITS {
            return Err(GitError::TooLarge {
                what: "the number of new commits".to_owned(),
                cap: MAX_COMMITS.to_string(),
            });
        }
        todo.extend(parents);
    }
    Ok(())
}

fn raw_parents(odb: &Odb<'_>, oid: Oid) -> Result<Vec<Oid>, GitError> {
    let what = || format!("commit {oid}");
    let (size, kind) = odb.read_header(oid).map_err(|source| objects::missing(what(), source))?;
    if kind != ObjectType::Commit || size > objects::META_CAP {
        return Err(GitError::Corrupt { what: what(), detail: format!("a {kind} of {size} bytes") });
    }
    let object = odb.read(oid).map_err(|source| objects::missing(what(), source))?;
    objects::parse_commit(object.data())
        .map(|commit| commit.parents)
        .ok_or_else(|| GitError::Corrupt { what: what(), detail: "not a well-formed commit".to_owned() })
}

/// Where a shallow first import ends.
struct Edge {
    /// Tips that have the base in their history.
    grown: HashSet<Oid>,
    /// Not copied.
    boundary: Vec<Oid>,
    /// Commits whose parents are not copied.
    shallow: Vec<Oid>,
}

impl Edge {
    fn find(src: &Odb<'_>, tips: &Tips, base: Oid) -> Result<Self, GitError> {
        let mut edge = Self { grown: HashSet::new(), boundary: Vec::new(), shallow: Vec::new() };
        edge.cut(src, base)?;
        let all: HashSet<Oid> = tips.branches.values().copied().chain([tips.head]).collect();
        for tip in all.iter().copied() {
            match descends(src, tip, base) {
                Ok(true) => {
                    edge.grown.insert(tip);
                }
                Ok(false) => edge.cut(src, tip)?,
                // Reported as broken when it is copied.
                Err(_) if tip != tips.head => {}
                Err(error) => return Err(error),
            }
        }
        // A tip may itself be the parent of another one. (A side branch that starts before the base and
        // was merged after it is followed to its root: the copy stops at its limits, a fetch takes it.)
        edge.boundary.retain(|oid| *oid != base && !all.contains(oid));
        Ok(edge)
    }

    fn cut(&mut self, src: &Odb<'_>, commit: Oid) -> Result<(), GitError> {
        let parents = raw_parents(src, commit)?;
        if !parents.is_empty() {
            self.shallow.push(commit);
            self.boundary.extend(parents);
        }
        Ok(())
    }
}

/// Has `tip` the commit `base` in its history? Gives up (no) after 20 000 commits.
fn descends(src: &Odb<'_>, tip: Oid, base: Oid) -> Result<bool, GitError> {
    let mut seen = HashSet::new();
    let mut todo = std::collections::VecDeque::from([tip]);
    while let Some(oid) = todo.pop_front() {
        if oid == base {
            return Ok(true);
        }
        if seen.len() >= 20_000 {
            return Ok(false);
        }
        if seen.insert(oid) {
            match raw_parents(src, oid) {
                Ok(parents) => todo.extend(parents),
                // The operator's own clone may be shallow.
                Err(GitError::Corrupt { .. }) if oid != tip => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(false)
}

/// The agents' object store and the stores that it borrows from, all absolute.
fn alternates(objects: &Path) -> Result<Vec<u8>, GitError> {
    let mut stores: Vec<PathBuf> = vec![objects.to_owned()];
    if let Ok(Small::Bytes(bytes)) = files::read_small(&objects.join("info/alternates"), 64 * 1024) {
        for line in bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty() && !l.starts_with(b"#")).take(32) {
            stores.push(objects.join(std::ffi::OsStr::from_bytes(line)));
        }
    }
    let mut out = Vec::new();
    for store in stores {
        let bytes = store.as_os_str().as_bytes();
        if bytes.contains(&b'\n') {
            return Err(GitError::Unsafe { path: clean_bytes(bytes), why: "its name has a line break" });
        }
        out.extend_from_slice(bytes);
        out.push(b'\n');
    }
    Ok(out)
}

fn sort_fetch_error(error: &CliError) -> Option<GitError> {
    let text = cli::failure_text(error)?;
    if text.contains("No space left on device") || text.contains("Disk quota exceeded") {
        return Some(GitError::DiskFull { what: "the control directory".to_owned() });
    }
    Some(GitError::Corrupt { what: "the history to import".to_owned(), detail: clean(text, 500) })
}
