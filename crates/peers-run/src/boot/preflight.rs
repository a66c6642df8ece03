//! The checks before a start, in their order.

use std::ffi::OsStr;
use std::path::Path;

use peers_core::state::State;
use peers_git::{ControlDir, Git, PeerRepo, RepoError};
use peers_model::config::Config;
use peers_model::record::Rules;
use peers_model::{exit, limits};
use peers_modes::hooks::quoted;
use peers_store::runs::{self, RunRecord};
use peers_store::{Area, FsDisk, store};
use peers_sys::dir::SafeDir;
use peers_sys::env::Env;
use peers_sys::spawn::resolve_program;
use peers_sys::term;

use super::control;
use super::finding::Finding;
use super::load::Loaded;
use super::start::RunOptions;
use crate::gitrepo::chain;
use crate::place::{self, Place};
use crate::procs;

/// The path of the repository can stand in a line of text: in prompts, in records, in hooks.
pub(super) fn path(place: &Place, out: &mut Vec<Finding>) {
    for dir in [place.work_dir(), place.project_dir()] {
        if let Some(why) = place::unusable(dir) {
            let message = format!("the path {} {why}", term::inline(&dir.to_string_lossy()));
            out.push(Finding::new(exit::INVALID, message, "rename the directory"));
            return;
        }
    }
}

/// Goals and config against what was accepted, and whether there is a real gate.
pub(super) fn accepted(loaded: &Loaded, options: &RunOptions, out: &mut Vec<Finding>) {
    let rules = super::load::rules(&loaded.config, &loaded.goals, false, false);
    if !options.allow_no_gates && !rules.gates.iter().any(|g| !g.shipped) {
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
    if let Some(changed) = loaded.changed() {
        out.push(Finding::new(
            exit::REFUSED,
            changed,
            "review with `peers goals diff`, then run `peers goals accept`",
        ));
    }
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
    let why = if state.rules.dry_run != options.dry_run {
        if state.rules.dry_run { "so that nothing of it stays" } else { "so that its work stays" }
    } else if began_elsewhere(&state, &records, place).is_some() {
        "where it began"
    } else if options.branch.is_some() || options.worktree.is_some() {
        "on the branch where it began"
    } else {
        return Ok(true);
    };
    let what = format!("tick {} of the last run was cut short and is taken up first", open.started.tick);
    Err(Finding::new(exit::CONFLICT, format!("{what}, {why}"), take_up(&state, &records, place)))
}

/// How the turn that was cut short is taken up, as a command for whoever stands in `here`.
pub(crate) fn take_up(state: &State, records: &[RunRecord], here: &Place) -> String {
    let dry = if state.rules.dry_run { " --dry-run" } else { "" };
    let Some(record) = began_elsewhere(state, records, here) else {
        return format!("`peers run{dry}` takes it up, and goes on");
    };
    let dir = quoted(&record.workdir);
    if !place::is_gone(Path::new(&record.workdir)) {
        return format!("it began in another work tree: `peers -C {dir} run{dry}` takes it up there");
    }
    format!(
        "the worktree in which it began is gone; make it again, and it is taken up there: `{} && peers -C \"$d\" run{dry}`",
        place::remade(record, here.project_dir())
    )
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
pub(crate) fn repo_finding(place: &Place, error: &RepoError) -> Finding {
    let (message, hint) = place.repo_problem(error);
    Finding::new(place::repo_exit(error), message, hint)
}

/// What a start would refuse for now, by the checks that write nothing. Whether goals are accepted and
/// measure anything is left out.
#[must_use]
pub fn refusals(place: &Place, env: &Env) -> Vec<Finding> {
    let mut out = Vec::new();
    path(place, &mut out);
    let mut disk = match place.open_view_disk() {
        Ok(disk) => disk,
        Err(error) => {
            out.push(error.into());
            return out;
        }
    };
    control::files(&mut disk, &mut out);
    let mut config = None;
    if disk.dir(Area::Peers).is_none() {
        out.push(control::missing(place));
    } else {
        match super::load::load(&mut disk) {
            Ok(loaded) => {
                out.extend(loaded.damaged);
                config = Some(loaded.config);
            }
            Err(error) => out.extend(error.findings),
        }
    }
    if let Err(error) = store::read_each(&mut disk, |_| {}) {
        out.push(error.into());
    }
    let cut_short = cut_short(&mut disk).is_some();
    let repo = repository(place, cut_short, &mut out);
    let git = machine(place, config.as_ref(), env, &mut out);
    if let (Some(repo), Some(git), false) = (repo, git, cut_short) {
        out.extend(unfollowed(place, &repo, git, &mut disk));
    }
    out
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
pub(crate) fn open_files() -> Result<(), Finding> {
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
    let path = env.var("PATH").unwrap_or(OsStr::new(""));
    let git = match Git::locate(path) {
        Ok(git) => match git.version() {
            Ok(_) => Some(git),
            Err(error) => {
                out.push(Finding::new(exit::ENVIRONMENT, chain(&error), "install git 2.30 or newer"));
                None
            }
        },
        Err(error) => {
            out.push(Finding::new(exit::ENVIRONMENT, chain(&error), "install git 2.30 or newer"));
            None
        }
    };
    for peer in config.map(|c| c.peers.as_slice()).unwrap_or_default() {
        let Some(program) = peer.argv.first() else { continue };
        if let Err(error) = resolve_program(OsStr::new(program), Some(path), place.work_dir()) {
            // A path names a file of the operator's, not something that can be installed.
            let get = if program.contains('/') { "make" } else { "install" };
            out.push(Finding::new(
                exit::ENVIRONMENT,
                format!("peer `{}`: {}", peer.name, chain(&error)),
                format!(
                    "{get} `{}`, or correct `argv` of this peer in .peers/config.yaml",
                    term::inline(program)
                ),
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
    space(place, out);
    git
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
