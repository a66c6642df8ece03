//! The checks before a start, in their order.

use std::ffi::OsStr;
use std::path::Path;

use peers_core::state::State;
use peers_git::{ControlDir, Git, GitError, PeerRepo, PlainHead, RepoError};
use peers_model::command::{Command, Step};
use peers_model::config::PeerSpec;
use peers_model::record::Rules;
use peers_model::{Backend, PeerName, RunRequest, exit, limits};
use peers_place::{Place, PlaceError};
use peers_store::runs::{self, RunRecord};
use peers_store::{Area, FsDisk, store};
use peers_sys::dir::SafeDir;
use peers_sys::env::Env;
use peers_sys::error::chain;
use peers_sys::spawn::{SpawnError, resolve_program};
use peers_sys::term::{self, quoted};

use super::control;
use super::finding::{Finding, no_git};
use super::load::Loaded;
use super::options::RunOptions;
use crate::env::Policy;
use crate::procs;

/// The path of the repository can stand in a line of text: in prompts, in records, in hooks.
fn path(place: &Place) -> Option<Finding> {
    [place.work_dir(), place.project_dir()].into_iter().find_map(|dir| {
        let why = peers_place::unusable(dir)?;
        let message = format!("the path {} {why}", term::inline(&dir.to_string_lossy()));
        Some(Finding::new(exit::INVALID, message, "rename the directory"))
    })
}

/// Goals and configuration; `None` where they are not valid.
fn set_up(place: &Place, disk: &mut FsDisk) -> (Option<Loaded>, Vec<Finding>) {
    if disk.dir(Area::Peers).is_none() {
        return (None, vec![control::missing(place)]);
    }
    match super::load::load(disk) {
        Ok(loaded) => {
            let damaged = loaded.damaged.clone().into_iter().collect();
            (Some(loaded), damaged)
        }
        Err(error) => (None, error.findings),
    }
}

/// Goals and config against what was accepted, and whether there is a real gate.
fn accepted(loaded: &Loaded, options: &RunOptions) -> Vec<Finding> {
    let rules = super::load::rules(&loaded.config, &loaded.goals, &RunRequest::default());
    let real = options.request.allow_no_gates || rules.gates.iter().any(|g| !g.shipped);
    let none = (!real).then(|| {
        Finding::new(
            exit::INVALID,
            "goals error: .peers/goals.yaml has no hard gate of your own; without one nothing real is measured and the run can never be `complete`",
            no_gate(&rules),
        )
    });
    // What cannot be compared is told with the files.
    let changed = loaded.damaged.is_none().then(|| loaded.refused_change()).flatten();
    none.into_iter().chain(changed).collect()
}

fn no_gate(rules: &Rules) -> &'static str {
    if rules.gates.iter().any(|gate| gate.shipped) {
        return "replace the gate `placeholder-replace-me` by your test command, then run `peers goals accept` (or pass --allow-no-gates)";
    }
    "add a hard gate that runs your tests, then run `peers goals accept` (or pass --allow-no-gates)"
}

/// Where the disk is full, for people.
#[must_use]
pub fn full(place: &Place) -> Vec<String> {
    space(place).into_iter().map(|finding| finding.message).collect()
}

/// The branch that was asked for cannot be made.
fn branch(repo: &PeerRepo, options: &RunOptions) -> Option<Finding> {
    let error = repo.free_branch(options.request.branch.as_ref()?).err()?;
    Some(match error {
        GitError::Exists { .. } => Finding::new(
            exit::CONFLICT,
            chain(&error),
            "name another one; to go on where that branch stands: check it out, and start without --branch",
        ),
        GitError::InvalidName { .. } => Finding::plain(exit::INVALID, format!("--branch: {}", chain(&error))),
        _ => Finding::plain(exit::INVALID, chain(&error)),
    })
}

/// The state of the last run, where a turn of it was cut short. A damaged journal is found when the
/// store is opened.
fn cut_short(disk: &mut FsDisk) -> Option<State> {
    store::read_state(disk).ok().filter(|state| state.open.is_some())
}

/// A turn that was cut short is taken up first, and where and how it began. Returns whether there is one.
pub(super) fn taken_up(place: &Place, disk: &mut FsDisk, options: &RunOptions) -> Result<bool, Finding> {
    let Some(state) = cut_short(disk) else { return Ok(false) };
    let Some(open) = &state.open else { return Ok(false) };
    let records = runs::all(disk)?;
    let why = if state.rules.dry_run != options.request.dry_run {
        if state.rules.dry_run { "so that nothing of it stays" } else { "so that its work stays" }
    } else if began_elsewhere(&state, &records, place).is_some() {
        "where it began"
    } else if options.request.branch.is_some() || options.request.worktree.is_some() {
        "on the branch where it began"
    } else {
        return Ok(true);
    };
    let what = format!("tick {} of the last run was cut short and is taken up first", open.started.tick);
    Err(Finding::new(exit::CONFLICT, format!("{what}, {why}"), take_up(&state, &records, place)))
}

/// How the turn that was cut short is taken up, as a command for whoever stands in `here`.
#[must_use]
pub fn take_up(state: &State, records: &[RunRecord], here: &Place) -> Step {
    let dry = if state.rules.dry_run { " --dry-run" } else { "" };
    let Some(record) = began_elsewhere(state, records, here) else {
        let run = if state.rules.dry_run { Command::run().with("--dry-run") } else { Command::run() };
        return Step::of(run).say(" takes it up, and goes on");
    };
    let dir = quoted(&record.workdir);
    if !peers_place::is_gone(Path::new(&record.workdir)) {
        return format!("it began in another work tree: `peers -C {dir} run{dry}` takes it up there").into();
    }
    format!(
        "the worktree in which it began is gone; make it again, and it is taken up there: `{} && peers -C \"$d\" run{dry}`",
        record.worktree_again(&here.project_dir().to_string_lossy())
    )
    .into()
}

/// The record of the run whose turn was cut short, if it did not work here.
fn began_elsewhere<'r>(state: &State, records: &'r [RunRecord], here: &Place) -> Option<&'r RunRecord> {
    let run = state.run.as_ref()?;
    let record = records.iter().find(|record| record.run_id == run.id)?;
    (record.workdir != here.work_dir().to_string_lossy()).then_some(record)
}

/// The repository. What a turn that was cut short is in the middle of is seen to when that is taken up.
fn repository(place: &Place, cut_short: bool) -> (Option<PeerRepo>, Vec<Finding>) {
    let repo = match PeerRepo::open(place.work_dir()) {
        Ok(repo) => repo,
        Err(error) => return (None, vec![repo_finding(place, &error)]),
    };
    let mut found = repo.preflight();
    found.retain(|error| !(cut_short && matches!(error, RepoError::Busy { .. })));
    (Some(repo), found.iter().map(|error| repo_finding(place, error)).collect())
}

/// The repository of a place, for one who reads its objects: none of them is cut short.
///
/// # Errors
/// There is none, it cannot be opened, or agents left in it what must not be read.
pub fn open_repo(place: &Place) -> Result<PeerRepo, Finding> {
    PeerRepo::open(place.work_dir())
        .and_then(|repo| repo.check_content().map(|()| repo))
        .map_err(|error| repo_finding(place, &error))
}

/// What is wrong with the repository of a place, with what is known of it.
#[must_use]
pub fn repo_finding(place: &Place, error: &RepoError) -> Finding {
    let (message, hint) = place.repo_problem(error);
    Finding::new(peers_place::repo_exit(error), message, hint)
}

/// What a start looks at, part by part in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// The path of the repository, and of the worktree that was asked for.
    Path,
    /// The trusted store, and what lies in it and in `.peers/`.
    Files,
    /// Goals and configuration.
    Setup,
    /// Whether they are accepted and measure anything.
    Acceptance,
    /// The journal.
    Journal,
    /// The repository, and the branch that was asked for.
    Repository,
    /// The program `git`.
    Git,
    /// What a peer needs.
    Peer(PeerName),
    /// Free disk space.
    Space,
    /// What the work tree lives by.
    WorkTree,
}

/// What a start would say of each part, and what it goes on with where nothing stands against it.
pub struct Examined {
    /// Each part that could be looked at, with what stands against a start.
    pub parts: Vec<(Part, Vec<Finding>)>,
    /// Goals and configuration, where they are valid.
    pub loaded: Option<Loaded>,
    pub(super) disk: Option<FsDisk>,
    pub(super) repo: Option<PeerRepo>,
    pub(super) git: Option<Git>,
    /// The state of the last run, where a turn of it was cut short.
    pub(super) cut_short: Option<State>,
}

impl Examined {
    /// Looks at the first parts of the list: files of ours and of the operator's.
    pub(super) fn files(place: &Place, options: &RunOptions, disk: Result<FsDisk, PlaceError>) -> Self {
        let paths = path(place).into_iter().chain(control::worktree(place, options)).collect();
        let mut found = Self {
            parts: vec![(Part::Path, paths)],
            loaded: None,
            disk: None,
            repo: None,
            git: None,
            cut_short: None,
        };
        match disk {
            Ok(mut disk) => {
                found.parts.push((Part::Files, control::files(&mut disk)));
                let (loaded, errors) = set_up(place, &mut disk);
                found.parts.push((Part::Setup, errors));
                if let Some(loaded) = &loaded {
                    found.parts.push((Part::Acceptance, accepted(loaded, options)));
                }
                found.cut_short = cut_short(&mut disk);
                (found.loaded, found.disk) = (loaded, Some(disk));
            }
            Err(error) => found.parts.push((Part::Files, vec![error.into()])),
        }
        found
    }

    /// Looks at the rest of it: the repository and the machine.
    pub(super) fn machine(
        &mut self,
        place: &Place,
        env: &Env,
        options: &RunOptions,
        git: Result<Git, Finding>,
    ) {
        let (repo, mut errors) = repository(place, self.cut_short.is_some());
        if self.cut_short.is_none() {
            errors.extend(repo.as_ref().and_then(|repo| branch(repo, options)));
        }
        self.repo = repo;
        self.parts.push((Part::Repository, errors));
        match git {
            Ok(git) => {
                self.git = Some(git);
                self.parts.push((Part::Git, Vec::new()));
            }
            Err(finding) => self.parts.push((Part::Git, vec![finding])),
        }
        let programs = programs_by(env, options.request.wall.backend);
        for spec in self.loaded.iter().flat_map(|loaded| &loaded.config.peers) {
            self.parts.push((Part::Peer(spec.name.clone()), peer(place, spec, (env, programs))));
        }
        self.parts.push((Part::Space, space(place)));
    }

    /// All of the list, and what a start finds later, by the checks that write nothing.
    fn all(place: &Place, env: &Env, options: &RunOptions) -> Self {
        // Git takes as long to say its version as the files take to be read.
        let (mut found, git) = std::thread::scope(|scope| {
            let git = scope.spawn(|| git_program(env));
            let mut found = Self::files(place, options, place.open_view_disk());
            if let Some(disk) = &mut found.disk {
                let error = store::read_each(disk, |_| {}).err();
                found.parts.push((Part::Journal, error.map(Finding::from).into_iter().collect()));
            }
            (found, git.join().unwrap_or_else(|_| git_program(env)))
        });
        found.machine(place, env, options, git);
        if let (Some(repo), Some(git), Some(disk), None) =
            (&found.repo, &found.git, &mut found.disk, &found.cut_short)
        {
            let refusal = unfollowed(place, repo, git.clone(), disk);
            found.parts.push((Part::WorkTree, refusal.into_iter().collect()));
        }
        found
    }

    /// What stands against a start.
    pub(super) fn findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.parts).into_iter().flat_map(|(_, findings)| findings).collect()
    }
}

/// Looks at what a start looks at, by the checks that write nothing.
#[must_use]
pub fn examine(place: &Place, env: &Env) -> Examined {
    Examined::all(place, env, &RunOptions::default())
}

/// What a start would refuse for now, by the checks that write nothing. Whether goals are accepted and
/// measure anything is left out.
#[must_use]
pub fn refusals(place: &Place, env: &Env) -> Vec<Finding> {
    let mut found = examine(place, env);
    found.parts.retain(|(part, _)| *part != Part::Acceptance);
    found.findings()
}

/// Of these what a few looks at files find: work tree, repository, branch and programs of peers that are not there, and
/// a repository in the middle of something; all of them before the first run. For who looks at many.
#[must_use]
pub fn quick_refusals(place: &Place, env: &Env, disk: &mut FsDisk) -> Vec<Finding> {
    if runs::any(disk).is_ok_and(|any| !any) {
        return refusals(place, env);
    }
    let mut found = Vec::new();
    let Ok(work) = SafeDir::open_shared(place.work_dir()) else { return found };
    if matches!(work.stat(peers_place::PEERS_DIR), Ok(None)) {
        found.push(control::missing(place));
    }
    let plain = work.subdir(".git").is_ok_and(|git| {
        let there = |name: &&str| !matches!(git.stat(name), Ok(None));
        PlainHead::within(&git).is_some_and(|head| head.commit.is_some())
            && !super::dirty::IN_PROGRESS.iter().any(there)
    });
    if !plain {
        found.extend(repository(place, cut_short(disk).is_some()).1);
    }
    let config = super::load::accepted_config(disk);
    let programs = programs_by(env, None);
    let peers = config.iter().flat_map(|config| &config.peers);
    found.extend(peers.flat_map(|spec| peer(place, spec, (env, programs))));
    found
}

/// What this very start would refuse for. `busy`: somebody works here, and what that one does to journal, repository
/// and work tree is left out.
#[must_use]
pub fn start_refusals(place: &Place, env: &Env, options: &RunOptions, busy: bool) -> Vec<Finding> {
    let mut found = Examined::all(place, env, options);
    found
        .parts
        .retain(|(part, _)| !busy || !matches!(part, Part::Journal | Part::Repository | Part::WorkTree));
    let mut refusals = found.findings();
    if busy {
        refusals.extend(found.repo.as_ref().and_then(|repo| branch(repo, options)));
    } else if let Some(disk) = &mut found.disk {
        refusals.extend(taken_up(place, disk, options).err());
    }
    refusals
}

/// The refusal of a work tree that lives by what is not followed, where an earlier run left a copy of the
/// history to compare it with.
fn unfollowed(place: &Place, repo: &PeerRepo, git: Git, disk: &mut FsDisk) -> Option<Finding> {
    if !place.control_git_path().exists() || !super::dirty::are_operators(&store::read_state(disk).ok()?) {
        return None;
    }
    let control = ControlDir::open_or_create(&place.control_git_path(), git).ok()?;
    let control = control.with_excludes(peers_git::operator_excludes());
    super::dirty::looked_at(&control, repo, &repo.facts().head().ok()?.commit).ok()?.1
}

/// Enough files may be open: what fails for want of one in the middle of something says so badly.
///
/// # Errors
/// [`Finding`].
pub fn open_files() -> Result<(), Finding> {
    let Some(allowed) = peers_sys::env::open_files().filter(|allowed| *allowed < limits::OPEN_FILES) else {
        return Ok(());
    };
    Err(Finding::new(
        exit::ENVIRONMENT,
        format!("only {allowed} files may be open at a time here, and {} are needed", limits::OPEN_FILES),
        "raise the limit first: `ulimit -n 1024`",
    ))
}

/// The program `git`, new enough.
pub(super) fn git_program(env: &Env) -> Result<Git, Finding> {
    let git = super::finding::git_program(env)?;
    git.version().map_err(|error| no_git(&error))?;
    Ok(git)
}

/// Whose programs peers run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Programs {
    /// Those of this machine.
    Here,
    /// Those of an image: whether they are there is seen when a turn begins.
    Image,
}

/// A policy that cannot be read is told elsewhere.
fn programs_by(env: &Env, asked: Option<Backend>) -> Programs {
    let backend = asked.or_else(|| Policy::load(env).ok()?.backend);
    if backend == Some(Backend::Podman) { Programs::Image } else { Programs::Here }
}

/// What a peer cannot start without.
fn peer(place: &Place, peer: &PeerSpec, (env, programs): (&Env, Programs)) -> Vec<Finding> {
    let mut out = Vec::new();
    let Some(program) = peer.argv.first() else { return out };
    let path = env.var("PATH").unwrap_or_default();
    let found = resolve_program(OsStr::new(program), Some(path), place.work_dir());
    if let (Err(error), Programs::Here) = (found, programs) {
        let shown = term::inline(program);
        let first = match &error {
            // The message says what helps.
            SpawnError::NotExecutable { path, .. } if path.is_dir() => String::new(),
            SpawnError::NotExecutable { .. } | SpawnError::NoInterpreter { .. } => "do that, or ".to_owned(),
            // A path names a file of the operator's, not something that can be installed.
            _ if program.contains('/') => format!("make `{shown}`, or "),
            _ => format!("install `{shown}`, or "),
        };
        out.push(Finding::new(
            exit::ENVIRONMENT,
            format!("peer `{}`: {}", peer.name, chain(&error)),
            format!("{first}correct `argv` of this peer in .peers/config.yaml"),
        ));
    }
    for name in procs::required_env(peer) {
        if env.text(&name).is_none_or(|key| key.trim().is_empty()) {
            let name = term::inline(&name);
            out.push(Finding::new(
                exit::ENVIRONMENT,
                format!("peer `{}`: provider openrouter needs {name}", peer.name),
                "set it in the environment of `peers run`",
            ));
        }
    }
    out
}

/// Free space where we write: beside the agents, in the trusted store, in the cache.
fn space(place: &Place) -> Vec<Finding> {
    let (mut out, mut seen) = (Vec::new(), Vec::new());
    for (what, path) in [
        ("the repository", place.work_dir()),
        ("the trusted store", place.store_dir()),
        ("the cache", place.cache_dir()),
    ] {
        // What is not there yet will be made on the file system of the directory above.
        let Some(dir) = path.ancestors().find_map(|dir| SafeDir::open_shared(dir).ok()) else { continue };
        let device = dir.identity().dev;
        if seen.contains(&device) {
            continue;
        }
        seen.push(device);
        if dir.is_read_only().unwrap_or(false) {
            out.push(Finding::new(
                exit::ENVIRONMENT,
                format!("nothing can be written for {what}, at {}", term::inline(&path.to_string_lossy())),
                peers_place::writable_again(dir.path()),
            ));
        }
        if dir.free_bytes().is_ok_and(|free| free < limits::DISK_FREE) {
            out.push(Finding::new(
                exit::ENVIRONMENT,
                format!(
                    "less than {} MiB of disk space are free for {what}, at {}",
                    limits::DISK_FREE / limits::MIB,
                    term::inline(&path.to_string_lossy())
                ),
                "free some space first",
            ));
        }
    }
    out
}
