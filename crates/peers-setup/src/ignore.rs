//! The line that keeps `.peers/` out of the history: in `.gitignore`, committed, or in `info/exclude`.

use peers_git::{Author, PeerRepo, RepoError};
use peers_model::{CommitId, Timestamp};
use peers_modes::ignore;
use peers_sys::dir::{FileMode, Kind, SafeDir};

use super::report::{Action, Steps};
use super::{ScaffoldError, fault};

pub(super) const GITIGNORE: &str = ".gitignore";
/// An ignore file larger than this is not one.
const CAP: u64 = 1024 * 1024;

/// `.gitignore` as it is.
#[derive(Debug)]
pub(super) enum Rules {
    /// There is none.
    Absent,
    /// A plain file.
    File { bytes: Vec<u8>, mode: FileMode },
    /// A symlink whose target lists us already: nothing to do.
    LinkThatLists,
}

impl Rules {
    /// Reads it.
    ///
    /// # Errors
    /// [`ScaffoldError::Link`] for a symlink that we would have to write through.
    pub(super) fn read(work: &SafeDir) -> Result<Self, ScaffoldError> {
        let Some(stat) = work.stat(GITIGNORE)? else { return Ok(Self::Absent) };
        if stat.kind == Kind::Symlink {
            return if link_lists(work) {
                Ok(Self::LinkThatLists)
            } else {
                Err(ScaffoldError::Link { name: GITIGNORE })
            };
        }
        let mode = if stat.mode & 0o100 != 0 { FileMode::Executable } else { FileMode::Plain };
        Ok(Self::File { bytes: work.read(GITIGNORE, CAP)?, mode })
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::File { bytes, .. } => bytes,
            Self::Absent | Self::LinkThatLists => b"",
        }
    }

    fn lists(&self) -> bool {
        matches!(self, Self::LinkThatLists) || ignore::lists(self.bytes())
    }

    fn mode(&self) -> FileMode {
        match self {
            Self::File { mode, .. } => *mode,
            Self::Absent | Self::LinkThatLists => FileMode::Plain,
        }
    }
}

/// Whether the file behind the link lists us. Only read, and nothing of it is shown.
fn link_lists(work: &SafeDir) -> bool {
    let read = || {
        let target = work.path().join(GITIGNORE).canonicalize().ok()?;
        let dir = SafeDir::open_shared(target.parent()?).ok()?;
        dir.read(target.file_name()?, CAP).ok()
    };
    read().is_some_and(|bytes| ignore::lists(&bytes))
}

/// Adds the line to `.gitignore` and commits that, if nobody else's change would go with it. `again` commits also
/// a line that was added before, if that is all that changed.
pub(super) fn add(
    work: &SafeDir,
    rules: &Rules,
    repo: Option<&PeerRepo>,
    (now, again): (Timestamp, bool),
    steps: &mut Steps,
) -> Result<Option<CommitId>, ScaffoldError> {
    const SUBJECT: &str = "peers init: ignore .peers/";
    if rules.lists() {
        let ours = again && repo.is_some_and(|repo| is_our_line_alone(repo, rules));
        return if ours { commit(repo, Some(Ok(())), SUBJECT, now, steps) } else { Ok(None) };
    }
    let action = if matches!(rules, Rules::Absent) { Action::Create } else { Action::Edit };
    let committable = repo.map(|repo| committable(repo, rules));
    steps.act(action, GITIGNORE, || {
        work.publish_mode(GITIGNORE, &ignore::added(rules.bytes()), rules.mode())?;
        Ok(())
    })?;
    commit(repo, committable, SUBJECT, now, steps)
}

/// Whether `.gitignore` differs from the commit by nothing but our line.
fn is_our_line_alone(repo: &PeerRepo, rules: &Rules) -> bool {
    let Rules::File { bytes, .. } = rules else { return false };
    let cap = usize::try_from(CAP).unwrap_or(usize::MAX);
    let Ok(head) = repo.facts().head() else { return false };
    let Ok(committed) = repo.facts().read_blob(&head.commit, GITIGNORE, cap) else { return false };
    let before = committed.map(|blob| blob.bytes).unwrap_or_default();
    repo.busy().is_empty() && !ignore::lists(&before) && ignore::added(&before) == *bytes
}

/// The ignore files that hold our line, as they were before anything was done.
#[derive(Debug)]
pub(super) struct Ignored {
    rules: Option<Rules>,
    excludes: Option<Vec<u8>>,
}

impl Ignored {
    /// Reads them. One that cannot be read is left as it is, which is noted.
    pub(super) fn look(work: &SafeDir, repo: Option<&PeerRepo>, steps: &mut Steps) -> Self {
        let rules = match Rules::read(work) {
            Ok(rules) => Some(rules),
            Err(ScaffoldError::Link { .. }) => None,
            Err(error) => {
                steps.note(format!("{GITIGNORE} stays as it is: {error}"));
                None
            }
        };
        let excludes = match repo.map(excludes).transpose() {
            Ok(bytes) => bytes.flatten(),
            Err(error) => {
                steps.note(format!(".git/{EXCLUDE} stays as it is: {error}"));
                None
            }
        };
        Self { rules, excludes }
    }

    /// Takes the line away again. A `.gitignore` that held nothing else goes too.
    pub(super) fn remove(
        &self,
        work: &SafeDir,
        repo: Option<&PeerRepo>,
        now: Timestamp,
        steps: &mut Steps,
    ) -> Result<(), ScaffoldError> {
        if let Some(rules) = &self.rules
            && let Some(left) = ignore::removed(rules.bytes())
        {
            let committable = repo.map(|repo| committable(repo, rules));
            if left.is_empty() {
                steps.act(Action::Remove, GITIGNORE, || {
                    work.remove_file(GITIGNORE)?;
                    Ok(())
                })?;
            } else {
                steps.act(Action::Edit, GITIGNORE, || {
                    work.publish_mode(GITIGNORE, &left, rules.mode())?;
                    Ok(())
                })?;
            }
            commit(repo, committable, "peers deinit: no longer ignore .peers/", now, steps)?;
        }
        let (Some(repo), Some(old)) = (repo, &self.excludes) else { return Ok(()) };
        let Some(left) = ignore::removed(old) else { return Ok(()) };
        let common = SafeDir::open_shared(repo.common_dir())?;
        steps.act(Action::Edit, ".git/info/exclude", || {
            let (info, name) = common.create_parent_of(EXCLUDE)?;
            info.publish_mode(name, &left, FileMode::Plain)?;
            Ok(())
        })
    }
}

/// Why the change of `.gitignore` cannot be committed without something of somebody else's.
fn committable(repo: &PeerRepo, rules: &Rules) -> Result<(), String> {
    if let Some(state) = repo.busy().first() {
        return Err(state.to_string());
    }
    if repo.preflight().iter().any(|error| matches!(error, RepoError::Unborn { .. })) {
        return Err("make it part of the first commit".to_owned());
    }
    let head = repo.facts().head().map_err(|error| error.to_string())?;
    let cap = usize::try_from(CAP).unwrap_or(usize::MAX);
    let committed =
        repo.facts().read_blob(&head.commit, GITIGNORE, cap).map_err(|error| error.to_string())?;
    let same = match (&committed, rules) {
        (None, Rules::Absent) => true,
        (Some(blob), Rules::File { bytes, .. }) => blob.bytes == *bytes,
        _ => false,
    };
    if same { Ok(()) } else { Err("it has other changes that are not committed".to_owned()) }
}

fn commit(
    repo: Option<&PeerRepo>,
    committable: Option<Result<(), String>>,
    subject: &str,
    now: Timestamp,
    steps: &mut Steps,
) -> Result<Option<CommitId>, ScaffoldError> {
    let (Some(repo), Some(committable)) = (repo, committable) else { return Ok(None) };
    if let Err(why) = committable {
        steps.note(format!("the change of .gitignore is not committed: {why}"));
        return Ok(None);
    }
    if steps.dry_run() {
        steps.act(Action::Commit, GITIGNORE, || Ok(()))?;
        return Ok(None);
    }
    fault::at("commit the ignore line")?;
    let author = Author::new("peers-init", "peers-init@local", now);
    match repo.commit_paths(&[GITIGNORE], &format!("{subject}\n\nPeer: peers-init\n"), &author) {
        Ok(commit) => {
            steps.act(Action::Commit, GITIGNORE, || Ok(()))?;
            Ok(Some(commit))
        }
        Err(error) => {
            steps.note(format!("the change of .gitignore is not committed: {error}"));
            Ok(None)
        }
    }
}

const EXCLUDE: &str = "info/exclude";

/// Adds the line to the repository's own excludes, for an operator who wants no commit.
pub(super) fn exclude(
    repo: Option<&PeerRepo>,
    rules: &Rules,
    steps: &mut Steps,
) -> Result<(), ScaffoldError> {
    if rules.lists() {
        return Ok(());
    }
    let Some(repo) = repo else {
        steps.note("without a repository .peers/ cannot be ignored");
        return Ok(());
    };
    let common = SafeDir::open_shared(repo.common_dir())?;
    let old = exclude_bytes(&common)?.unwrap_or_default();
    if ignore::lists(&old) {
        return Ok(());
    }
    steps.act(Action::Edit, ".git/info/exclude", || {
        let (info, name) = common.create_parent_of(EXCLUDE)?;
        info.publish_mode(name, &ignore::added(&old), FileMode::Plain)?;
        Ok(())
    })
}

fn excludes(repo: &PeerRepo) -> Result<Option<Vec<u8>>, ScaffoldError> {
    exclude_bytes(&SafeDir::open_shared(repo.common_dir())?)
}

fn exclude_bytes(common: &SafeDir) -> Result<Option<Vec<u8>>, ScaffoldError> {
    match common.parent_of(EXCLUDE) {
        Ok((info, name)) => Ok(info.read_opt(name, CAP)?),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}
