//! What a check may see: commits, and the operator's record of them.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as StdError;
use std::path::{Path, PathBuf};
use std::time::Duration;

use peers_core::classify_path::TestPaths;
use peers_git::{CommitFact, ControlDir, DirtyFile, Facts, GitError, PeerRepo, TreeItem, WALK_CAP};
use peers_model::config::{Checks, Config};
use peers_model::{CommitId, PeerName};
use peers_store::contracts::{self, Frozen};
use peers_store::history::History;
use peers_store::layout::peers;
use peers_store::load::{self, Source};
use peers_store::planted::{self, Planted};
use peers_store::{FsDisk, accept, project};
use peers_sys::term;
use thiserror::Error;

use crate::attribution::Attribution;
use crate::tools::{Tool, ToolRan, Tools};

/// Something that could not be measured, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what}")]
pub struct CouldNot {
    /// What, and why not.
    pub what: String,
    /// The next step.
    pub hint: Option<String>,
}

impl CouldNot {
    /// Without a next step.
    #[must_use]
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), hint: None }
    }

    fn with(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: Some(hint.into()) }
    }

    pub(crate) fn git(doing: &str, error: &GitError) -> Self {
        Self::new(format!("cannot {doing}: {}", chain(error)))
    }
}

/// What is asked for.
pub struct Asked<'a> {
    /// The top of a work tree, or of a checkout with a git directory of its own.
    pub repo: &'a Path,
    /// The control git directory of the project, where there is one. What it holds is read there,
    /// since the repository's own files can be prepared to tell a false history.
    pub control: Option<ControlDir>,
    /// The commit to judge: a full id, a branch, a tag or a full reference name. `HEAD` by default.
    pub head: Option<&'a str>,
    /// History up to here is not looked at; same forms. By default what the store recorded;
    /// without one all of it is looked at, since whoever can push can move the tag `peers-baseline`.
    pub base: Option<&'a str>,
}

/// The operator's record.
#[derive(Debug)]
enum Recorded {
    Known(Box<Attribution>),
    /// There is no trusted store.
    Absent(CouldNot),
    /// There is one that cannot be read.
    Damaged(CouldNot),
}

/// What a check may see. Reads only.
pub struct CheckCx {
    top: PathBuf,
    repo: Option<PeerRepo>,
    control: Option<ControlDir>,
    head: CommitId,
    base: Option<CommitId>,
    recorded: Recorded,
    tests: TestPaths,
    settings: Checks,
    planted: Result<Option<Planted>, CouldNot>,
    convergence_n: u32,
    peers: Vec<PeerName>,
    contracts: Contracts,
    history: Option<Vec<u8>>,
    runner: Option<Box<Runner>>,
    tools: Option<Box<Tools>>,
}

/// A copy that is not what was frozen, and what is wrong with it.
pub(crate) type Edited = (String, &'static str);

/// What the store says of contracts.
#[derive(Debug)]
enum Contracts {
    /// They are as they were frozen; which copies in `.peers/` are not.
    Frozen(Box<Frozen>, Vec<Edited>),
    Absent(CouldNot),
    Damaged(CouldNot),
}

/// Runs a frozen script in a clean checkout of the commit that is judged. Checks start nothing themselves.
pub type Runner = dyn Fn(&Contract<'_>) -> Result<Ran, CouldNot>;

/// A frozen script that is to be run.
#[derive(Debug)]
pub struct Contract<'a> {
    /// What it is called.
    pub name: &'static str,
    /// The script.
    pub script: &'a [u8],
    /// Files that are laid over the checkout before.
    pub files: &'a BTreeMap<String, Vec<u8>>,
    /// The commit.
    pub head: &'a CommitId,
    /// How long it may take.
    pub timeout: Duration,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// Whether it ended well, ended otherwise, or ran into its time limit.
    pub end: RanEnd,
    /// The last lines of its output.
    pub tail: Vec<String>,
}

/// How a script ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RanEnd {
    /// With this exit code.
    Exit(i32),
    /// It was killed at its time limit.
    Timeout,
    /// A signal killed it.
    Signal,
}

impl std::fmt::Debug for CheckCx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CheckCx").field("head", &self.head).field("base", &self.base).finish_non_exhaustive()
    }
}

impl CheckCx {
    /// Opens the repository and reads the record. `store` is the project's trusted store, if it has one.
    ///
    /// # Errors
    /// [`CouldNot`] when there is no repository, or no such commit. A record that is missing or damaged
    /// is no error here: it is one for the checks that need it.
    pub fn open(asked: Asked<'_>, mut store: Option<&mut FsDisk>) -> Result<Self, CouldNot> {
        let Asked { repo: path, control, head, base } = asked;
        // The loop names a commit in full, and has looked; its objects are read from the control directory.
        let named_in_full = control.is_some() && head.is_some_and(|name| CommitId::new(name).is_ok());
        let look = |repo: &PeerRepo| if named_in_full { Ok(()) } else { repo.check_content() };
        let repo = PeerRepo::open(path).and_then(|repo| look(&repo).map(|()| repo));
        let head = match (&repo, head) {
            (Ok(repo), None | Some("HEAD")) => {
                repo.facts().head().map_err(|e| CouldNot::git("read HEAD", &e))?.commit
            }
            (Ok(repo), Some(name)) => named(Some(repo), name)?,
            // The control directory can answer for a commit that is named in full.
            (Err(_), Some(name)) if named_in_full => named(None, name)?,
            (Err(error), _) => {
                return Err(CouldNot::with(
                    chain(error),
                    "give the top of a git work tree with `--repo DIR`",
                ));
            }
        };
        let repo = repo.ok();
        let control = control.filter(|control| control.facts().has(&head));
        let explicit = base.map(|name| named(repo.as_ref(), name)).transpose()?;
        let config = store.as_deref_mut().and_then(accepted_config).unwrap_or_default();
        let planted =
            store.as_deref_mut().map_or(Ok(None), planted::read).map_err(|e| CouldNot::new(chain(&e)));
        let tests = TestPaths::new(&config.bug_hunt.test_globs);
        let peers = config.peers.iter().map(|peer| peer.name.clone()).collect();
        let contracts = contracts_of(store.as_deref_mut());
        let history = store.as_deref_mut().and_then(History::bytes);
        let (recorded, stored_base) = recorded(store);
        let convergence_n = config.goals.convergence_n.get();
        let settings = config.checks;
        let mut cx = Self {
            top: path.to_path_buf(),
            repo,
            control,
            head,
            base: None,
            recorded,
            tests,
            settings,
            planted,
            convergence_n,
            peers,
            contracts,
            history,
            runner: None,
            tools: None,
        };
        if !cx.facts()?.has(&cx.head) {
            return Err(CouldNot::new(format!("there is no commit {}", cx.head)));
        }
        // The tag of `init` is no base: whoever can push can move it, and hide everything by that.
        cx.base = explicit.or(stored_base);
        if let Some(base) = cx.base.as_ref().filter(|base| !cx.facts().is_ok_and(|facts| facts.has(base))) {
            return Err(CouldNot::with(
                format!("the base {base} is not in this repository"),
                "a shallow clone lacks it (`git fetch --unshallow`); another base: `--base REF`",
            ));
        }
        Ok(cx)
    }

    /// With something that runs the frozen scripts.
    #[must_use]
    pub fn running(mut self, runner: Box<Runner>) -> Self {
        self.runner = Some(runner);
        self
    }

    /// With something that runs programs of the project.
    #[must_use]
    pub fn with_tools(mut self, tools: Box<Tools>) -> Self {
        self.tools = Some(tools);
        self
    }

    /// Runs a program of the project.
    ///
    /// # Errors
    /// [`CouldNot`] when it cannot be run, here or at all.
    pub(crate) fn tool(&self, tool: &Tool<'_>) -> Result<ToolRan, CouldNot> {
        match &self.tools {
            Some(run) => run(tool),
            None => Err(CouldNot::with(
                "programs of the project run only where peers is set up",
                "run it where `peers init` made a trusted store",
            )),
        }
    }

    /// The peers of the accepted configuration; none where there is none.
    pub(crate) fn peers(&self) -> &[PeerName] {
        &self.peers
    }

    /// What is frozen, and which copies in `.peers/` differ from it.
    ///
    /// # Errors
    /// [`CouldNot`] when nothing is frozen, or what is does not fit its pins or the newest record of it.
    pub(crate) fn frozen(&self) -> Result<(&Frozen, &[Edited]), CouldNot> {
        let (frozen, differences) = match &self.contracts {
            Contracts::Frozen(frozen, differences) => (frozen, differences),
            Contracts::Absent(why) | Contracts::Damaged(why) => return Err(why.clone()),
        };
        let attribution = self.attribution().map_err(CouldNot::clone)?;
        if attribution.contracts() != Some(frozen.pins().state().as_str()) {
            return Err(CouldNot::with(
                "the pins of the contracts are not those of the newest record of them",
                "the store was changed outside of peers: restore it from a copy, or freeze the command anew with `peers-ctl amend`",
            ));
        }
        Ok((frozen, differences))
    }

    /// Runs a frozen script.
    ///
    /// # Errors
    /// [`CouldNot`] when it cannot be run, here or at all.
    pub(crate) fn run_contract(&self, contract: &Contract<'_>) -> Result<Ran, CouldNot> {
        match &self.runner {
            Some(run) => run(contract),
            None => Err(CouldNot::new("nothing here can run a frozen command")),
        }
    }

    /// What else are tests, by the operator's configuration.
    #[must_use]
    pub fn tests(&self) -> &TestPaths {
        &self.tests
    }

    /// What checks look at, by the operator's configuration.
    #[must_use]
    pub fn settings(&self) -> &Checks {
        &self.settings
    }

    /// What planted faults showed of the gates, if that was ever tried.
    ///
    /// # Errors
    /// [`CouldNot`] for a record that cannot be used.
    pub(crate) fn planted(&self) -> Result<Option<&Planted>, CouldNot> {
        self.planted.as_ref().map(Option::as_ref).map_err(Clone::clone)
    }

    /// Clean ticks in a row that the operator's configuration asks for.
    pub(crate) fn convergence_n(&self) -> usize {
        usize::try_from(self.convergence_n).unwrap_or(usize::MAX)
    }

    /// What a loop kept of the history.
    pub(crate) fn history(&self) -> Option<History> {
        History::parse(self.history.as_ref()?)
    }

    /// The files of the commit that is judged, by path.
    ///
    /// # Errors
    /// [`CouldNot`] for a tree that cannot be read.
    pub(crate) fn files(&self) -> Result<Vec<TreeItem>, CouldNot> {
        self.files_at(&self.head)
    }

    /// The files of a commit.
    ///
    /// # Errors
    /// As [`CheckCx::files`].
    pub(crate) fn files_at(&self, commit: &CommitId) -> Result<Vec<TreeItem>, CouldNot> {
        self.facts()?.list_tree(commit).map_err(|e| CouldNot::git("list the files", &e))
    }

    /// The bytes of a file of a commit, at most `cap`.
    ///
    /// # Errors
    /// [`CouldNot`] for an object that is missing or larger.
    pub(crate) fn read_at(&self, commit: &CommitId, path: &str, cap: usize) -> Result<Vec<u8>, CouldNot> {
        let found = self.facts()?.read_blob(commit, path, cap);
        let found = found.map_err(|e| CouldNot::git(&format!("read {}", term::line(path, 200)), &e))?;
        found
            .map(|blob| blob.bytes)
            .ok_or_else(|| CouldNot::new(format!("there is no file {}", term::line(path, 200))))
    }

    /// The files of the work tree that differ from the commit that is judged, at most `limit`.
    ///
    /// # Errors
    /// [`CouldNot`] without a control directory: the repository's own files cannot be trusted to tell.
    pub(crate) fn uncommitted(&self, limit: usize) -> Result<Vec<DirtyFile>, CouldNot> {
        let Some(control) = &self.control else {
            return Err(CouldNot::with(
                "there is no control git directory to compare the work tree with",
                "run it where `peers init` and a first run made one",
            ));
        };
        let found = control.dirty_files(&self.top, &self.head, limit);
        found.map_err(|e| CouldNot::git("compare the work tree", &e))
    }

    /// The commits, from the place that can be trusted most.
    ///
    /// # Errors
    /// [`CouldNot`] when there is none.
    pub fn facts(&self) -> Result<Facts<'_>, CouldNot> {
        match (&self.control, &self.repo) {
            (Some(control), _) => Ok(control.facts()),
            (None, Some(repo)) => Ok(repo.facts()),
            (None, None) => Err(CouldNot::new(format!("nothing here knows the commit {}", self.head))),
        }
    }

    /// The commit that is judged.
    #[must_use]
    pub fn head(&self) -> &CommitId {
        &self.head
    }

    /// History up to here is not looked at.
    #[must_use]
    pub fn base(&self) -> Option<&CommitId> {
        self.base.as_ref()
    }

    /// Who made the commits.
    ///
    /// # Errors
    /// [`CouldNot`] says what is missing.
    pub fn attribution(&self) -> Result<&Attribution, &CouldNot> {
        match &self.recorded {
            Recorded::Known(attribution) => Ok(attribution),
            Recorded::Absent(why) | Recorded::Damaged(why) => Err(why),
        }
    }

    /// Who made the commits, or nothing where nobody ever recorded it.
    ///
    /// # Errors
    /// [`CouldNot`] when there is a record that cannot be read.
    pub(crate) fn attribution_if_any(&self) -> Result<Option<&Attribution>, CouldNot> {
        match &self.recorded {
            Recorded::Known(attribution) => Ok(Some(attribution)),
            Recorded::Absent(_) => Ok(None),
            Recorded::Damaged(why) => Err(why.clone()),
        }
    }

    /// Tells each file that a commit between base and head brought, with its commit, its mode and the hash of its
    /// content.
    ///
    /// # Errors
    /// [`CouldNot`] for a history that cannot be read.
    pub(crate) fn each_new_file(&self, mut tell: impl FnMut(&CommitId, TreeItem)) -> Result<(), CouldNot> {
        let facts = self.facts()?;
        let fail = |e: GitError| CouldNot::git("read the history", &e);
        for commit in self.commits()? {
            let parent =
                commit.parents.first().map(|parent| facts.tree_of(parent)).transpose().map_err(fail)?;
            for file in facts.new_files(parent.as_ref(), &commit.tree).map_err(fail)? {
                tell(&commit.id, file);
            }
        }
        Ok(())
    }

    /// The commits between base and head, oldest first.
    ///
    /// # Errors
    /// [`CouldNot`] for a history that cannot be read.
    pub(crate) fn commits(&self) -> Result<Vec<CommitFact>, CouldNot> {
        self.facts()?
            .walk(self.base.as_ref(), &self.head, WALK_CAP)
            .map_err(|e| CouldNot::git("read the history", &e))
    }

    /// The ids of a range; those of a range whose ends are unknown here are none.
    pub(crate) fn ids(&self, from: Option<&CommitId>, to: &CommitId) -> Result<BTreeSet<CommitId>, CouldNot> {
        let facts = self.facts()?;
        if !facts.has(to) || from.is_some_and(|from| !facts.has(from)) {
            return Ok(BTreeSet::new());
        }
        let walked = facts.walk_ids(from, to, WALK_CAP).map_err(|e| CouldNot::git("read the history", &e))?;
        Ok(walked.into_iter().collect())
    }
}

/// The contracts of the store.
fn contracts_of(store: Option<&mut FsDisk>) -> Contracts {
    let absent = "no plan is frozen here: this check is for the mode `implement`";
    let Some(disk) = store else {
        return Contracts::Absent(CouldNot::new("there is no trusted store, so no frozen plan to judge by"));
    };
    let read = contracts::read(disk).and_then(|frozen| match frozen {
        None => Ok(Contracts::Absent(CouldNot::with(
            absent,
            "`peers init --modes implement --plan FILE` freezes one",
        ))),
        Some(frozen) => {
            let differences = contracts::differences(disk, &frozen)?;
            Ok(Contracts::Frozen(Box::new(frozen), differences))
        }
    });
    read.unwrap_or_else(|error| {
        let hint = error.hint().map(|hint| hint.to_string());
        Contracts::Damaged(CouldNot { what: chain(&error), hint })
    })
}

/// The record of the store, and the base that it names.
fn recorded(store: Option<&mut FsDisk>) -> (Recorded, Option<CommitId>) {
    let Some(disk) = store else {
        let why = CouldNot::with(
            "there is no trusted store, so the authors of the commits are unknown",
            "run it where `peers init` made one; copies of a repository have none",
        );
        return (Recorded::Absent(why), None);
    };
    let damaged = |error: &dyn StdError| {
        Recorded::Damaged(CouldNot::with(
            format!("the trusted store cannot be read: {}", chain(error)),
            "run `peers state check`",
        ))
    };
    let base = match project::read(disk) {
        Ok(project) => project.and_then(|project| project.base),
        Err(error) => return (damaged(&error), None),
    };
    match Attribution::read(disk) {
        Ok(attribution) => (Recorded::Known(Box::new(attribution)), base),
        Err(error) => (damaged(&error), base),
    }
}

/// What else are tests, by the configuration that was accepted. Without one that can be read nothing is:
/// then less counts as a test, and a check is red too often rather than never.
fn accepted_config(disk: &mut FsDisk) -> Option<Config> {
    let bytes = accept::read_bytes(disk, peers::CONFIG).ok().flatten().unwrap_or_default();
    load::decode(Source::Config, &bytes).and_then(load::load_config).ok()
}

/// The commit that a name of the command line means.
fn named(repo: Option<&PeerRepo>, name: &str) -> Result<CommitId, CouldNot> {
    let found = match (repo, CommitId::new(name.to_ascii_lowercase())) {
        (_, Ok(id)) => Some(id),
        (Some(repo), Err(_)) => repo.facts().named(name).ok().flatten(),
        (None, Err(_)) => None,
    };
    found.ok_or_else(|| {
        CouldNot::with(
            format!("`{}` names no commit", term::line(name, 80)),
            "give a full commit id, a branch or a tag",
        )
    })
}

/// An error with its causes, on one line.
pub(crate) fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut at = error.source();
    while let Some(cause) = at {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        at = cause.source();
    }
    term::line(&text, 400)
}
