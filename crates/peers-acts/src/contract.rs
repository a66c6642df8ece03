//! A frozen command, run in a clean checkout as the proof runs a gate.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use peers_core::plan::Plan;
use peers_core::test_output;
use peers_git::{ControlDir, PeerRepo, SyntheticGit};
use peers_model::config::Config;
use peers_model::goal::{Course, GateRun, Goal, GoalKind, HardGoal};
use peers_model::record::Digests;
use peers_model::request::AskedWall;
use peers_model::verdict::{Judged, Place as Where, TreeKey, Verdict};
use peers_model::{CommitId, GoalId, TickNo, Timestamp, exit};
use peers_place::Place;
use peers_run::boot::{self, BootError, Finding, Loaded};
use peers_run::ports::GateJob;
use peers_setup::frozen;
use peers_store::accept::Accepted;
use peers_sys::dir::SafeDir;
use peers_sys::env::Env;
use peers_sys::error::chain;
use peers_sys::term;

use crate::oneshot::{Audience, Bench};

/// How long the acceptance command may take before anything is done.
const PREFLIGHT: Duration = Duration::from_mins(1);
/// Lines of output that are shown.
const LINES: usize = 20;
const NO_COMMIT: &str = "no commit to try it at";

/// The condition under which a command passes.
const PASSES: &str = "exit_code == 0";

/// A command, where and how it runs.
#[derive(Debug)]
pub struct Script<'a> {
    /// What it is called.
    pub name: &'a str,
    /// For `/bin/sh -c`.
    pub text: &'a str,
    /// Files that are laid over the checkout before, by path.
    pub files: &'a BTreeMap<String, Vec<u8>>,
    /// The commit.
    pub head: &'a CommitId,
    /// How long it may take.
    pub timeout: Duration,
}

/// Runs a command in a clean checkout. Nothing of the work tree, the store or the journal is touched.
///
/// # Errors
/// [`BootError`] when nothing could be run. A command that fails is no error.
pub fn run(place: &Place, env: &Env, config: &Config, script: &Script<'_>) -> Result<Judged, BootError> {
    let ground = Ground::new(place, env, config, script)?;
    lay_over(&ground.dir, script.files)?;
    ground.judge()
}

/// A clean checkout of a commit, and a command that is asked there as a gate is.
pub(crate) struct Ground {
    pub(crate) bench: Bench,
    pub(crate) dir: PathBuf,
    id: GoalId,
    key: TreeKey,
    /// The checkout reads objects there.
    _control: ControlDir,
    _lent: SyntheticGit,
}

impl Ground {
    /// Makes the checkout. Nothing ran in it yet, `setup` neither.
    pub(crate) fn new(
        place: &Place,
        env: &Env,
        config: &Config,
        script: &Script<'_>,
    ) -> Result<Self, BootError> {
        let id = GoalId::new(script.name).map_err(|e| Finding::plain(exit::BUG, e.to_string()))?;
        let mut hard =
            HardGoal::new(GateRun::Shell { cmd: script.text.to_owned(), pass_when: PASSES.to_owned() });
        hard.timeout_s = u32::try_from(script.timeout.as_secs()).ok();
        let goal =
            Goal { id: id.clone(), description: None, group: None, weight: 1, kind: GoalKind::Hard(hard) };
        let bench = Bench::new(place, env, &alone(config.clone(), goal), AskedWall::default())?;
        let repo = boot::open_repo(place)?;
        let path = bench.scratch().join("control.git");
        let mut control = ControlDir::open_or_create(&path, boot::git_program(env)?)?;
        let _imported = control.import(&repo, Some(script.head))?;
        let lent = control.lend(&repo)?;
        let dir = bench.checkout(&control, script.head, &lent)?;
        let key = TreeKey { head: script.head.clone(), tree: control.facts().tree_of(script.head)? };
        Ok(Self { bench, dir, id, key, _control: control, _lent: lent })
    }

    /// Runs `setup`, then the command.
    pub(crate) fn judge(&self) -> Result<Judged, BootError> {
        let job = GateJob {
            place: Where::Pristine,
            dir: Some(self.dir.clone()),
            ..GateJob::live(vec![self.id.clone()], self.key.clone(), TickNo(0))
        };
        let show = Audience::of(Box::new(|_| {}), 1).show();
        let judged = self.bench.judge(job, Vec::new(), show)?.gates.pop();
        judged.ok_or_else(|| Finding::plain(exit::NEGATIVE, "the command was interrupted").into())
    }
}

/// Tries the acceptance command of a plan before anything is done: in a clean checkout of HEAD it has to fail.
/// Returns how it ended and its last words, for the record of what is frozen.
///
/// # Errors
/// It passes (exit 1), or nothing is measured by its failure: the shell found no program, or it ran into its time
/// limit (exit 3). `accept_passing` takes either.
pub fn preflight(target: &Path, env: &Env, plan: &Plan, accept_passing: bool) -> Result<String, BootError> {
    let Ok(repo) = PeerRepo::open(target) else { return Ok(NO_COMMIT.to_owned()) };
    let Ok(head) = repo.facts().head() else { return Ok(NO_COMMIT.to_owned()) };
    let place = Place::locate(target, env)?;
    let config = frozen::usual_config().map_err(|e| Finding::plain(exit::BUG, chain(&e)))?;
    let (text, files) = (&plan.meta.acceptance, BTreeMap::new());
    let script = Script { name: "acceptance", text, files: &files, head: &head.commit, timeout: PREFLIGHT };
    let judged = run(&place, env, &config, &script)?;
    let said = match (&judged.verdict, judged.exit_code) {
        (Verdict::Timeout { .. }, _) => format!("no end within {} s", PREFLIGHT.as_secs()),
        (_, Some(code)) => format!("exit {code}"),
        (verdict, None) => verdict.word().to_owned(),
    };
    let words = test_output::tails(judged.verdict.diagnostic())
        .map(|(_, out, err)| test_output::lines(out, err).join(" | "))
        .filter(|words| !words.is_empty());
    let at_base = words.map_or(said.clone(), |words| format!("{said}, `{}`", term::line(&words, 200)));
    if accept_passing {
        return Ok(at_base);
    }
    let output = tail(&judged.verdict).join("\n");
    let shown = if output.is_empty() { String::new() } else { format!(": {}", term::line(&output, 400)) };
    let refuse = |exit, message: String| {
        let hint = "`--accept-passing` freezes it all the same";
        Err(Finding::new(exit, message, hint).into())
    };
    match (&judged.verdict, judged.exit_code) {
        (Verdict::Pass, _) => refuse(
            exit::NEGATIVE,
            "already implemented: the acceptance command passes before anything is done".to_owned(),
        ),
        (Verdict::Fail { .. }, code) if !matches!(code, Some(126 | 127)) => Ok(at_base),
        _ => refuse(exit::INVALID, format!("the acceptance command measures nothing: {said}{shown}")),
    }
}

/// The last lines that a command said.
#[must_use]
pub fn tail(verdict: &Verdict) -> Vec<String> {
    let lines: Vec<&str> = verdict.diagnostic().lines().collect();
    lines.iter().skip(lines.len().saturating_sub(LINES)).map(|line| (*line).to_owned()).collect()
}

/// As if this goal alone had been accepted.
fn alone(config: Config, goal: Goal) -> Loaded {
    let digests = Digests::default();
    let accepted = Accepted {
        v: 1,
        digests: digests.clone(),
        at: Timestamp::default(),
        by: String::new(),
        note: None,
        modes: Vec::new(),
        contracts: None,
    };
    Loaded {
        config,
        goals: vec![goal],
        course: Course::default(),
        quiet_ticks: 0,
        digests,
        accepted: Some(accepted),
        damaged: None,
    }
}

/// Writes files into a checkout, in place of what is there.
fn lay_over(dir: &Path, files: &BTreeMap<String, Vec<u8>>) -> Result<(), Finding> {
    if files.is_empty() {
        return Ok(());
    }
    let fail = |e: peers_sys::dir::FileError| Finding::plain(exit::BUG, chain(&e));
    let tree = SafeDir::open_shared(dir).map_err(fail)?;
    for (path, bytes) in files {
        let (parent, name) = tree.create_parent_of(path).map_err(fail)?;
        // What the commit has there may be a link or a directory of the same name.
        parent.remove_tree(&name).map_err(fail)?;
        parent.publish_as(name, bytes, 0o755).map_err(fail)?;
    }
    Ok(())
}
