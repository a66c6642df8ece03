//! `peers hook`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use peers_checks::staged::{self, Committer};
use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_git::PeerRepo;
use peers_model::command::Step;
use peers_model::{exit, limits};
use peers_place::Place;
use peers_run::boot;
use peers_sys::dir::FileError;
use peers_sys::{SafeDir, term};

/// Look at a commit before it is made
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    PreCommit(PreCommit),
}

/// Refuse a commit with a secret in it, or in which a peer checks off its own step
///
/// For git's hook `pre-commit`. Looks at the staged files that differ from HEAD, and at the steps of PLAN.md
/// that become done: the peer that commits (`PEERS_PEER_NAME`, else `GIT_AUTHOR_EMAIL`) must not be who changed
/// a file of the step last. Only a warning in time: `git commit --no-verify` goes past it, and gates judge what
/// was committed.
///
/// Exit codes: 0 nothing found, 1 the commit is refused, 3 what is staged cannot be read.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
struct PreCommit {
    /// Have git call it in this repository; a hook that is there is kept and called first
    #[arg(long)]
    install: bool,
    /// Take that back
    #[arg(long, conflicts_with = "install")]
    uninstall: bool,
}

/// Git's name for it.
const HOOK: &str = "pre-commit";
/// Where a hook that was there before stays.
const BEFORE: &str = "pre-commit.before-peers";
/// What git runs. Where peers is gone nothing is in the way of a commit.
const SCRIPT: &str = "#!/bin/sh
# Written by `peers hook pre-commit --install`; `--uninstall` takes it away.
before=\"$0.before-peers\"
if [ -x \"$before\" ]; then \"$before\" \"$@\" || exit; fi
command -v peers >/dev/null || exit 0
exec peers hook pre-commit
";

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let What::PreCommit(PreCommit { install, uninstall }) = args.what;
    let top = PeerRepo::find_top(&cx.target).unwrap_or_else(|| cx.target.clone());
    let repo = PeerRepo::open(&top).map_err(peers_git::GitError::from)?;
    match (install, uninstall) {
        (true, _) => self::install(&repo, cx),
        (_, true) => self::uninstall(&repo, cx),
        _ => look(&repo, cx),
    }
}

fn look(repo: &PeerRepo, cx: &Cx) -> Result<ExitCode, CommandError> {
    repo.check_content().map_err(peers_git::GitError::from)?;
    let var = |name| cx.env.var(name).map(|value| value.to_string_lossy().into_owned());
    let who =
        var("PEERS_PEER_NAME").map(Committer::Peer).or_else(|| var("GIT_AUTHOR_EMAIL").map(Committer::Email));
    // Git starts its hooks at the top, and names the index of a partial commit.
    let index = cx.env.var("GIT_INDEX_FILE").map(PathBuf::from).map(|file| repo.work_dir().join(file));
    let mut disk = Place::locate(repo.work_dir(), &cx.env).ok().and_then(|place| place.open_view_disk().ok());
    let config = disk.as_mut().and_then(|disk| boot::accepted_config(disk).ok()).unwrap_or_default();
    let findings = staged::look(repo, index.as_deref(), &config.checks, who.as_ref())
        .map_err(|why| CommandError::new(exit::INVALID, why.what).hint_opt(why.hint))?;
    if findings.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    for found in &findings {
        let line = found.line.map(|line| format!(":{line}")).unwrap_or_default();
        let place = format!("{}{line}", term::line(&found.path, 200));
        cx.out.line(&format!("{place}: {}: {}", found.kind, found.message))?;
    }
    let count =
        if findings.len() == 1 { "1 finding".to_owned() } else { format!("{} findings", findings.len()) };
    Err(CommandError::new(exit::NEGATIVE, format!("the commit was refused: {count}")).hint(Step::text(
        "take it out, or commit all the same by `git commit --no-verify`: gates judge what was committed",
        &[],
    )))
}

fn hooks(repo: &PeerRepo) -> Result<SafeDir, CommandError> {
    let git = SafeDir::open_shared(repo.common_dir())?;
    Ok(match git.make_shared_subdir("hooks") {
        Err(FileError::AlreadyExists { .. }) => git.subdir("hooks")?,
        made => made?,
    })
}

/// The hook that is there.
fn there(hooks: &SafeDir) -> Result<Option<Vec<u8>>, CommandError> {
    Ok(hooks.read_opt(HOOK, limits::MIB)?)
}

fn install(repo: &PeerRepo, cx: &Cx) -> Result<ExitCode, CommandError> {
    let elsewhere = peers_git::scan(repo)?.into_iter().find(|found| found.name == "core.hookspath");
    if let Some(elsewhere) = elsewhere {
        let shown = term::inline(&elsewhere.value);
        return Err(CommandError::new(
            exit::REFUSED,
            format!("git looks for hooks in `{shown}` (core.hooksPath)"),
        )
        .hint(Step::text("call `peers hook pre-commit` in the hook `pre-commit` there", &[])));
    }
    let hooks = hooks(repo)?;
    match there(&hooks)? {
        Some(text) if text == SCRIPT.as_bytes() => {
            cx.out.line("the hook is installed already")?;
            return Ok(ExitCode::SUCCESS);
        }
        Some(_) if hooks.stat(BEFORE)?.is_some() => {
            return Err(CommandError::new(
                exit::CONFLICT,
                format!("there are both hooks/{HOOK} and hooks/{BEFORE}"),
            )
            .hint(Step::text("inspect the two, keep one as `pre-commit`, and install again", &[])));
        }
        Some(_) => hooks.rename(HOOK, BEFORE)?,
        None => {}
    }
    hooks.publish_as(HOOK, SCRIPT.as_bytes(), 0o755)?;
    cx.out.line("installed the hook pre-commit")?;
    Ok(ExitCode::SUCCESS)
}

fn uninstall(repo: &PeerRepo, cx: &Cx) -> Result<ExitCode, CommandError> {
    let hooks = hooks(repo)?;
    if there(&hooks)?.as_deref() != Some(SCRIPT.as_bytes()) {
        cx.out.line("the hook is not installed")?;
        return Ok(ExitCode::from(exit::NEGATIVE));
    }
    hooks.remove_file(HOOK)?;
    if hooks.stat(BEFORE)?.is_some() {
        hooks.rename(BEFORE, HOOK)?;
    }
    cx.out.line("removed the hook pre-commit")?;
    Ok(ExitCode::SUCCESS)
}
