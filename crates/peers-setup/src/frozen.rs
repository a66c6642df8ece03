//! A plan as it is frozen: read, tried at the base, written into repository and store (`docs/formats/store.md`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use peers_core::plan::{self, Plan};
use peers_core::scope::Glob;
use peers_git::{Author, PeerRepo, RepoError};
use peers_model::command::{Command, Step};
use peers_model::config::Config;
use peers_model::record::{ContractAct, ContractRecord, OperatorOp};
use peers_model::{Timestamp, exit, limits};
use peers_place::{Place, file_exit};
use peers_store::contracts::{self, FILE_CAP, FILES, Frozen};
use peers_store::load::{self, Source};
use peers_sys::dir::{FileError, SafeDir};
use peers_sys::term;

use super::ScaffoldError;
use super::error::shown;
use super::named::{NamedFiles, files_of_head};
use super::report::{Action, Steps};

/// What is said of a command that nobody tried.
const NOT_TRIED: &str = "not tried";

/// What to do about a command whose file may be written by anybody.
const COMMIT_FIRST: &str = "commit it first, in the repository that is set up, and name it in `acceptance_files`; then give the same command again. `--accept-passing` freezes the plan without it";

/// The plan at the top of the repository.
pub(super) const PLAN: &str = "PLAN.md";

/// A valid plan, and what its acceptance command said before anything was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    pub(super) bytes: Vec<u8>,
    pub(super) plan: Plan,
    /// The file that it was read from.
    from: PathBuf,
    /// What the acceptance command said at the base, for the record.
    pub at_base: String,
    /// What the operator should know of its commands.
    notes: Vec<String>,
}

impl Planned {
    /// Reads and checks the file of a plan.
    ///
    /// # Errors
    /// [`ScaffoldError`]: it is not there (2), or no valid plan (3).
    pub fn read(path: &Path) -> Result<Self, ScaffoldError> {
        let bytes = read(path)?;
        let parsed = plan::parse(&bytes);
        match parsed.plan {
            Some(plan) => Ok(Self {
                bytes,
                plan,
                from: path.to_owned(),
                at_base: NOT_TRIED.to_owned(),
                notes: Vec::new(),
            }),
            None => Err(invalid(path, &parsed.errors)),
        }
    }

    /// Looks for the files that its commands name: what HEAD has not, anybody may write later.
    ///
    /// # Errors
    /// [`ScaffoldError`]: a file is not in HEAD (3), unless a step writes it or `anyway` takes that.
    pub fn look_for_files(&mut self, target: &Path, anyway: bool) -> Result<(), ScaffoldError> {
        let head = files_of_head(PeerRepo::open(target).ok().as_ref())?;
        let globs = |globs: &[String]| globs.iter().filter_map(|glob| Glob::new(glob)).collect::<Vec<_>>();
        let frozen = globs(&self.plan.meta.acceptance_files);
        let written: Vec<_> = self.plan.steps.iter().flat_map(|step| globs(&step.touches)).collect();
        let takes = |globs: &[Glob], path: &str| globs.iter().any(|glob| glob.matches(path));
        let meta = &self.plan.meta;
        for command in [Some(&meta.acceptance), meta.e2e.as_ref()].into_iter().flatten() {
            let named = NamedFiles::of(command, &head);
            let (by_a_step, absent) = named.absent.into_iter().partition(|path| takes(&written, path));
            let mut named = NamedFiles { absent, there: named.there };
            if !anyway {
                named.refuse_absent(COMMIT_FIRST)?;
            }
            named.absent.extend::<Vec<_>>(by_a_step);
            named.there.retain(|path| !takes(&frozen, path) && !takes(&written, path));
            for (paths, why) in [
                (named.absent, "is not in HEAD: the agent that writes it decides what it checks"),
                (named.there, "is not frozen, so agents can change it: `acceptance_files` does not name it"),
            ] {
                let note = |path: String| {
                    format!("`{}`, which a command of the plan names, {why}", term::line(&path, 200))
                };
                self.notes.extend(paths.into_iter().map(note));
            }
        }
        Ok(())
    }

    /// What the operator should know once it is frozen.
    pub(super) fn notes(&self, work: &Path) -> Vec<String> {
        let mut notes = self.notes.clone();
        if self.at_base != NOT_TRIED {
            notes.push(format!("the acceptance command, tried at HEAD: {}", self.at_base));
        }
        let real = self.from.canonicalize().ok();
        if let Some(rest) = real.as_ref().and_then(|path| path.strip_prefix(work).ok())
            && rest != Path::new(PLAN)
        {
            notes.push(format!("{} is not needed any more: {PLAN} is the plan now", shown(rest)));
        }
        notes
    }

    /// What it says.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Refuses a plan where another one is, or where it cannot be both committed and accepted.
    pub(super) fn refuse_other(&self, work: &SafeDir, half: bool) -> Result<(), ScaffoldError> {
        if half {
            let hint = "accept them with `peers goals accept`, and leave `--no-commit` out";
            let message = "a plan is frozen beside goals that were accepted, and its PLAN.md is committed";
            return Err(ScaffoldError::refused(exit::USAGE, message, hint));
        }
        match work.read_opt(PLAN, limits::CONFIG)? {
            Some(there) if there != self.bytes => {
                let hint = "move it out of the way, or give that file: `--plan PLAN.md`";
                Err(ScaffoldError::refused(exit::CONFLICT, "PLAN.md exists with other content", hint))
            }
            _ => Ok(()),
        }
    }

    /// Writes `PLAN.md` and commits it: a plan that is not in the history is none for the checks.
    pub(super) fn lay_down(
        &self,
        work: &SafeDir,
        repo: Option<&PeerRepo>,
        now: Timestamp,
        steps: &mut Steps,
    ) -> Result<(), ScaffoldError> {
        if work.stat(PLAN)?.is_none() {
            steps.act(Action::Create, PLAN, || Ok(work.publish(PLAN, &self.bytes)?))?;
        }
        let unborn = |repo: &PeerRepo| repo.preflight().iter().any(|e| matches!(e, RepoError::Unborn { .. }));
        let Some(repo) = repo.filter(|repo| !unborn(repo)) else {
            steps.note(format!("{PLAN} is not committed: make it part of the first commit"));
            return Ok(());
        };
        let committed = repo.facts().head().and_then(|head| {
            let cap = usize::try_from(limits::CONFIG).unwrap_or(usize::MAX);
            repo.facts().read_blob(&head.commit, PLAN, cap)
        })?;
        if committed.is_some_and(|blob| blob.bytes == self.bytes) {
            return Ok(());
        }
        steps.act(Action::Commit, PLAN, || {
            let author = Author::new("peers-init", "peers-init@local", now);
            repo.commit_paths(&[PLAN], "peers init: the plan\n\nPeer: peers-init\n", &author)?;
            Ok(())
        })
    }

    /// The content of `acceptance_files` at HEAD, with the plan and the scripts.
    ///
    /// # Errors
    /// A glob takes no file, or too much.
    pub(super) fn collect(&self, repo: Option<&PeerRepo>) -> Result<Frozen, ScaffoldError> {
        let meta = &self.plan.meta;
        let mut files = BTreeMap::new();
        for glob in &meta.acceptance_files {
            let mut found = false;
            if let Some(repo) = repo {
                found = take(repo, glob, &mut files)?;
            }
            if !found {
                let message =
                    format!("`acceptance_files`: `{}` takes no file of HEAD", term::line(glob, 100));
                let hint =
                    "commit it first, in the repository that is set up; then give the same command again";
                return Err(ScaffoldError::refused(exit::INVALID, message, hint));
            }
        }
        Ok(Frozen {
            plan: self.bytes.clone(),
            acceptance: contracts::script(&meta.acceptance),
            e2e: meta.e2e.as_deref().map(contracts::script),
            files,
        })
    }

    /// Freezes it: the record first, then the files of the store, then the copies for readers.
    pub(super) fn freeze(&self, place: &Place, frozen: &Frozen, by: &str) -> Result<(), ScaffoldError> {
        let change = [
            ("acceptance".to_owned(), self.plan.meta.acceptance.clone()),
            ("at_base".to_owned(), self.at_base.clone()),
        ];
        let record = ContractRecord {
            contract: ContractAct::Init,
            reason: "peers init".to_owned(),
            change: change.into(),
            state: frozen.pins().state(),
        };
        let nothing = |_: &mut peers_store::FsDisk| Ok::<(), ScaffoldError>(());
        peers_place::operator::record(place, by, vec![OperatorOp::Contract(record)], nothing)?;
        let mut disk = place.open_store_disk()?;
        contracts::write(&mut disk, frozen)?;
        contracts::restore_copies(&mut disk, frozen)?;
        Ok(())
    }
}

/// Adds the files of HEAD that a glob takes. Whether there was one.
fn take(repo: &PeerRepo, glob: &str, files: &mut BTreeMap<String, Vec<u8>>) -> Result<bool, ScaffoldError> {
    let Some(matcher) = Glob::new(glob) else { return Ok(false) };
    let facts = repo.facts();
    let head = facts.head()?.commit;
    let cap = usize::try_from(FILE_CAP).unwrap_or(usize::MAX);
    let mut found = false;
    let regular = |mode: u32| mode == 0o100_644 || mode == 0o100_755;
    for item in
        facts.list_tree(&head)?.into_iter().filter(|item| regular(item.mode) && matcher.matches(&item.path))
    {
        if !contracts::may_freeze(&item.path) || files.len() >= FILES {
            let message = format!(
                "`acceptance_files`: `{}` cannot be frozen; at most {FILES} plain files are",
                term::line(&item.path, 200)
            );
            return Err(ScaffoldError::plain(exit::INVALID, message));
        }
        if let Some(blob) = facts.read_blob(&head, &item.path, cap)? {
            files.insert(item.path, blob.bytes);
            found = true;
        }
    }
    Ok(found)
}

/// The configuration of a repository that has none yet: what [`super::init()`] would lay down.
///
/// # Errors
/// [`ScaffoldError`], never with a template that is one.
pub fn usual_config() -> Result<Config, ScaffoldError> {
    let read = load::decode(Source::Config, peers_modes::CONFIG.as_bytes()).and_then(load::load_config);
    read.map_err(|error| ScaffoldError::plain(exit::BUG, error.to_string()))
}

/// The bytes of the file of a plan.
///
/// # Errors
/// [`ScaffoldError`]: it is not there (2), it is too large (3), or a link or no file (5).
pub fn read(path: &Path) -> Result<Vec<u8>, ScaffoldError> {
    let (dir, name) = parent(path).ok_or_else(|| no_plan(path))?;
    match SafeDir::open_shared(&dir).and_then(|dir| dir.read(&name, limits::CONFIG)) {
        Ok(bytes) => Ok(bytes),
        Err(FileError::NotFound { .. }) => Err(no_plan(path)),
        Err(error @ FileError::TooLarge { .. }) => {
            Err(invalid(path, &[plan::Problem { line: 1, message: error.to_string() }]))
        }
        Err(error) => Err(ScaffoldError::plain(file_exit(&error), error.to_string())),
    }
}

/// The file is no plan: all that is wrong with it.
fn invalid(path: &Path, errors: &[plan::Problem]) -> ScaffoldError {
    let lines: Vec<_> = errors
        .iter()
        .map(|error| format!("line {}: {}", error.line, term::line(&error.message, 300)))
        .collect();
    let message = format!("{} is not a valid plan: {}", shown(path), lines.join("; "));
    let check = Command::peers("plan check").with(&path.to_string_lossy());
    let hint = Step::default().mention(check).say(" reads it as often as you like");
    ScaffoldError::refused(exit::INVALID, message, hint)
}

fn no_plan(path: &Path) -> ScaffoldError {
    let message = format!("{} does not exist", shown(path));
    ScaffoldError::refused(exit::USAGE, message, "name a file that exists")
}

/// The directory of a file and its name in there.
pub(super) fn parent(path: &Path) -> Option<(PathBuf, std::ffi::OsString)> {
    let name = path.file_name()?.to_owned();
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some((dir.to_owned(), name))
}
