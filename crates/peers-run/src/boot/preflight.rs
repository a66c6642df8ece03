//! The checks before a start, in their order.

use std::ffi::OsStr;
use std::path::Path;

use peers_core::state::State;
use peers_git::{ControlDir, Git, GitError, PeerRepo, RepoError};
use peers_model::command::{Command, Step};
use peers_model::config::{Config, PeerSpec};
use peers_model::record::Rules;
use peers_model::{PeerName, RunRequest, exit, limits};
use peers_place::Place;
use peers_store::runs::{self, RunRecord};
use peers_store::{Area, FsDisk, store};
use peers_sys::dir::SafeDir;
use peers_sys::env::Env;
use peers_sys::error::chain;
use peers_sys::spawn::{SpawnError, resolve_program};
use peers_sys::term::{self, quoted};

use super::control;
use super::finding::Finding;
use super::load::Loaded;
use super::options::RunOptions;
use crate::procs;

/// The path of the repository can stand in a line of text: in prompts, in records, in hooks.
pub(super) fn path(place: &Place, out: &mut Vec<Finding>) {
    for dir in [place.work_dir(), place.project_dir()] {
        if let Some(why) = peers_place::unusable(dir) {
            let message = format!("the path {} {why}", term::inline(&dir.to_string_lossy()));
            out.push(Finding::new(exit::INVALID, message, "rename the directory"));
            return;
        }
    }
}

/// Goals and config against what was accepted, and whether there is a real gate.
pub(super) fn accepted(loaded: &Loaded, options: &RunOptions, out: &mut Vec<Finding>) {
    let rules = super::load::rules(&loaded.config, &loaded.goals, &RunRequest::default());
    if !options.request.allow_no_gates && !rules.gates.iter().any(|g| !g.shipped) {
        out.push(Finding::new(
            exit::INVALID,
            "goals error: .peers/goals.yaml has no hard gate of your own; without one nothing real is measured and the run can never be `complete`",
            no_gate(&rules),
        ));
    }
    if let Some(damaged) = &loaded.damaged {
        out.push(damaged.clone());
        return;
    }
    out.extend(loaded.refused_change());
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
    let mut out = Vec::new();
    space(place, &mut out);
    out.into_iter().map(|finding| finding.message).collect()
}

/// The branch that was asked for can be made.
pub(super) fn branch(repo: &PeerRepo, options: &RunOptions, out: &mut Vec<Finding>) {
    let Some(Err(error)) = options.request.branch.as_ref().map(|branch| repo.free_branch(branch)) else {
        return;
    };
    out.push(match error {
        GitError::Exists { .. } => Finding::new(
            exit::CONFLICT,
            chain(&error),
            "name another one; to go on where that branch stands: check it out, and start without --branch",
        ),
        GitError::InvalidName { .. } => Finding::plain(exit::INVALID, format!("--branch: {}", chain(&error))),
        _ => Finding::plain(exit::INVALID, chain(&error)),
    });
}

/// The state of the last run, where a turn of it was cut short. A damaged journal is found when the
/// store is opened.
pub(super) fn cut_short(disk: &mut FsDisk) -> Option<State> {
    store::read_state(disk).ok().filter(|state| state.open.is_some())
}

/// A turn that was cut short is taken up first, and where and how it began. Returns whether there is one.
pub(super) fn taken_up(place: &Place, disk: &mut FsDisk, options: &RunOptions) -> Result<bool, Finding> {
    let Some(state) = cut_short(disk) else { return Ok(false) };
    let Some(open) = &state.open else { return Ok(false) };
    let records = runs::all(disk).map_err(Finding::from)?;
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
        peers_place::remade(record, here.project_dir())
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
pub(super) fn repository(place: &Place, cut_short: bool, out: &mut Vec<Finding>) -> Option<PeerRepo> {
    let repo = match PeerRepo::open(place.work_dir()) {
        Ok(repo) => repo,
        Err(error) => {
            out.push(repo_finding(place, &error));
            return None;
        }
    };
    let found = repo.preflight().into_iter();
    for error in found.filter(|e| !(cut_short && matches!(e, RepoError::Busy { .. }))) {
        out.push(repo_finding(place, &error));
    }
    Some(repo)
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
    /// The path of the repository.
    Path,
    /// The trusted store, and what lies in it and in `.peers/`.
    Files,
    /// Goals and configuration.
    Setup,
    /// Whether they are accepted and measure anything.
    Acceptance,
    /// The journal.
    Journal,
    /// The repository.
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

/// What a start would say of each part, and what it loads.
#[derive(Debug)]
pub struct Examined {
    /// Each part that could be looked at, with what stands against a start.
    pub parts: Vec<(Part, Vec<Finding>)>,
    /// Goals and configuration, where they are valid.
    pub loaded: Option<Loaded>,
}

/// What a start would refuse for now, by the checks that write nothing. Whether goals are accepted and
/// measure anything is left out.
#[must_use]
pub fn refusals(place: &Place, env: &Env) -> Vec<Finding> {
    let parts = examine(place, env).parts.into_iter();
    parts.filter(|(part, _)| *part != Part::Acceptance).flat_map(|(_, findings)| findings).collect()
}

/// Of these what a few looks at files find: work tree and repository that are not there or in the middle of
/// something; all of them before the first run. For who looks at many.
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
        git.stat("HEAD").is_ok_and(|head| head.is_some()) && !super::dirty::IN_PROGRESS.iter().any(there)
    });
    if !plain {
        repository(place, cut_short(disk).is_some(), &mut found);
    }
    found
}

/// [`refusals`] with whether goals are accepted and measure anything, and with what stands against the branch or
/// the worktree that is asked for: what this very start would refuse for. `busy`: somebody works here, and what that
/// one does to journal, repository and work tree is left out.
#[must_use]
pub fn start_refusals(place: &Place, env: &Env, options: &RunOptions, busy: bool) -> Vec<Finding> {
    let Examined { mut parts, loaded } = examine(place, env);
    parts.retain(|(part, _)| !busy || !matches!(part, Part::Journal | Part::Repository | Part::WorkTree));
    let mut found = Vec::new();
    if let Some(loaded) = &loaded {
        accepted(loaded, options, &mut found);
        found.retain(|finding| Some(finding) != loaded.damaged.as_ref());
    }
    let others = parts.into_iter().filter(|(part, _)| *part != Part::Acceptance);
    found.extend(others.flat_map(|(_, findings)| findings));
    control::worktree(place, options, &mut found);
    let cut_short = place.open_view_disk().ok().map(|mut disk| taken_up(place, &mut disk, options));
    match (cut_short, PeerRepo::open(place.work_dir())) {
        (Some(Err(finding)), _) if !busy => found.push(finding),
        (Some(_), Ok(repo)) if busy => branch(&repo, options, &mut found),
        (Some(Ok(false)), Ok(repo)) => branch(&repo, options, &mut found),
        _ => {}
    }
    found
}

/// Looks at what a start looks at, by the checks that write nothing.
#[must_use]
pub fn examine(place: &Place, env: &Env) -> Examined {
    let mut parts = Vec::new();
    let mut of = |part: Part, look: &mut dyn FnMut(&mut Vec<Finding>)| {
        let mut found = Vec::new();
        look(&mut found);
        parts.push((part, found));
    };
    of(Part::Path, &mut |out| path(place, out));
    let mut disk = match place.open_view_disk() {
        Ok(disk) => disk,
        Err(error) => {
            parts.push((Part::Files, vec![error.into()]));
            return rest(place, env, Examined { parts, loaded: None }, None);
        }
    };
    of(Part::Files, &mut |out| control::files(&mut disk, out));
    let mut loaded = None;
    of(Part::Setup, &mut |out| {
        if disk.dir(Area::Peers).is_none() {
            out.push(control::missing(place));
            return;
        }
        match super::load::load(&mut disk) {
            Ok(found) => {
                out.extend(found.damaged.clone());
                loaded = Some(found);
            }
            Err(error) => out.extend(error.findings),
        }
    });
    if let Some(loaded) = &loaded {
        of(Part::Acceptance, &mut |out| {
            accepted(loaded, &RunOptions::default(), out);
            out.retain(|finding| Some(finding) != loaded.damaged.as_ref());
        });
    }
    of(Part::Journal, &mut |out| {
        if let Err(error) = store::read_each(&mut disk, |_| {}) {
            out.push(error.into());
        }
    });
    rest(place, env, Examined { parts, loaded }, Some(&mut disk))
}

/// The parts that do not need what `init` makes.
fn rest(place: &Place, env: &Env, known: Examined, disk: Option<&mut FsDisk>) -> Examined {
    let Examined { mut parts, loaded } = known;
    let mut of = |part: Part, out: Vec<Finding>| parts.push((part, out));
    let mut disk = disk;
    let cut_short = disk.as_mut().is_some_and(|disk| cut_short(disk).is_some());
    let mut out = Vec::new();
    let repo = repository(place, cut_short, &mut out);
    of(Part::Repository, std::mem::take(&mut out));
    let git = git_program(env, &mut out);
    of(Part::Git, std::mem::take(&mut out));
    for peer in loaded.iter().flat_map(|loaded| &loaded.config.peers) {
        self::peer(place, peer, env, &mut out);
        of(Part::Peer(peer.name.clone()), std::mem::take(&mut out));
    }
    space(place, &mut out);
    of(Part::Space, std::mem::take(&mut out));
    if let (Some(repo), Some(git), Some(disk), false) = (repo, git, disk, cut_short) {
        of(Part::WorkTree, unfollowed(place, &repo, git, disk).into_iter().collect());
    }
    Examined { parts, loaded }
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

/// The machine: git, every peer's program, disk space.
pub(super) fn machine(
    place: &Place,
    config: Option<&Config>,
    env: &Env,
    out: &mut Vec<Finding>,
) -> Option<Git> {
    let git = git_program(env, out);
    for peer in config.map(|c| c.peers.as_slice()).unwrap_or_default() {
        self::peer(place, peer, env, out);
    }
    space(place, out);
    git
}

/// The program `git`, new enough.
fn git_program(env: &Env, out: &mut Vec<Finding>) -> Option<Git> {
    let found = Git::locate(env.var("PATH").unwrap_or_default());
    match found.and_then(|git| git.version().map(|_| git)) {
        Ok(git) => Some(git),
        Err(error) => {
            out.push(Finding::new(exit::ENVIRONMENT, chain(&error), "install git 2.30 or newer"));
            None
        }
    }
}

/// What a peer cannot start without.
fn peer(place: &Place, peer: &PeerSpec, env: &Env, out: &mut Vec<Finding>) {
    let Some(program) = peer.argv.first() else { return };
    let path = env.var("PATH").unwrap_or_default();
    if let Err(error) = resolve_program(OsStr::new(program), Some(path), place.work_dir()) {
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
}

/// Free space where we write: beside the agents, in the trusted store, in the cache.
fn space(place: &Place, out: &mut Vec<Finding>) {
    let mut seen = Vec::new();
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
}
