//! `peers init`.

pub(super) mod ask;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use peers_acts::contract;
use peers_console::agents::{self, Agent};
use peers_console::cx::{self, Cx};
use peers_console::error::CommandError;
use peers_git::{PeerRepo, RepoError};
use peers_model::command::{Command, Step};
use peers_model::config::Driver as ConfigDriver;
use peers_model::{RunRequest, exit};
use peers_run::boot;
use peers_setup::detect::Language;
use peers_setup::frozen::Planned;
use peers_setup::{
    self, Action, Agents, Change, Did, Existing, Field, Gates, HostHook, InitOptions, InitReport, Outcome,
    PeerSetting, WORK_WITH_HOOKS,
};
use peers_sys::term;
use peers_sys::term::quoted;

/// Set a repository up: `.peers/` with configuration and goals, and the trusted store
///
/// Writes `.peers/config.yaml` and `.peers/goals.yaml`, makes the trusted store outside of the
/// repository, tags the current commit as `peers-baseline` (where there is none yet, the first run sets
/// the tag), and ignores `.peers/` with a small commit on the current branch. What it wrote is accepted.
/// A second `init` refuses; `--upgrade` completes what is there, `--force` moves it aside and starts over.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(verbatim_doc_comment)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    /// Move the existing set-up and its run history aside, and start over
    #[arg(long, conflicts_with = "upgrade")]
    force: bool,
    /// Add what is missing; keep configuration, goals, state and logs
    #[arg(long)]
    upgrade: bool,
    /// Print what would be done; write nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// What starts turns; with `hooks` and `sessions`, commits made between turns do not count as the
    /// operator's. `hooks` also writes `.peers/hooks/`
    #[arg(long, value_enum, value_name = "WHO")]
    driver: Option<Driver>,
    /// With --driver=hooks: add a stop hook to the user settings of claude and codex; existing hooks are kept
    #[arg(long, conflicts_with = "uninstall")]
    install: bool,
    /// Remove these stop hooks from the user settings of claude and codex; do nothing else
    #[arg(long, conflicts_with_all = ["force", "upgrade"])]
    uninstall: bool,
    /// Ignore `.peers/` in `.git/info/exclude`, without a commit
    #[arg(long)]
    no_commit: bool,
    /// Write a goal that runs the tests with CMD, in place of the placeholder
    #[arg(long, value_name = "CMD", conflicts_with_all = ["upgrade", "uninstall"])]
    test: Option<String>,
    /// Write the gates that `peers goals detect` proposes; if it finds none, write nothing and exit 1
    #[arg(long, conflicts_with_all = ["test", "upgrade", "uninstall"])]
    detect: bool,
    /// Write the goals of these modes in place of the usual ones; `peers modes list` shows them
    #[arg(long, value_name = "A,B", conflicts_with_all = ["upgrade", "uninstall"])]
    modes: Option<String>,
    /// Language of the project, if no file in it says so
    #[arg(long, value_enum, value_name = "LANGUAGE", conflicts_with_all = ["upgrade", "uninstall"])]
    lang: Option<Lang>,
    /// Write and commit TASK.md with this text, or the text of this file; every prompt names it
    #[arg(long, value_name = "TEXT|FILE", value_hint = clap::ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["upgrade", "uninstall"])]
    task: Option<String>,
    /// Commit this plan as PLAN.md and freeze it with its commands; needs --modes implement
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["upgrade", "uninstall", "task"])]
    plan: Option<PathBuf>,
    /// Freeze the plan although its acceptance command passes already, cannot be run here, or needs a file that HEAD lacks
    #[arg(long, requires = "plan")]
    accept_passing: bool,
    /// Choose the agents that take turns; a single agent becomes two peers [default: claude,codex]
    #[arg(long, value_enum, value_name = "A,B", value_delimiter = ',', conflicts_with_all = ["upgrade", "uninstall"])]
    agents: Vec<Agent>,
    /// Ask nothing: take the agents that are installed and the test command that is detected, unless given
    #[arg(long, conflicts_with_all = ["upgrade", "uninstall"])]
    yes: bool,
    /// Set the model of all peers, or of those whose name or tool is PEER
    #[arg(long, value_name = "[PEER=]MODEL", conflicts_with = "upgrade")]
    peer_model: Vec<String>,
    /// Set the reasoning level of all peers, or of those whose name or tool is PEER
    #[arg(long, value_name = "[PEER=]LEVEL", conflicts_with = "upgrade")]
    peer_reasoning: Vec<String>,
    /// Set the provider of all peers, or of those whose name or tool is PEER
    #[arg(long, value_name = "[PEER=]PROVIDER", conflicts_with = "upgrade")]
    peer_provider: Vec<String>,
}

impl Args {
    fn gates(&self) -> Gates {
        match (&self.test, self.detect) {
            (Some(cmd), _) => Gates::Tests(cmd.clone()),
            (None, true) => Gates::Detected,
            (None, false) => Gates::Placeholder,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Lang {
    Python,
    Js,
    Rust,
    Go,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Driver {
    /// `peers run`
    Orchestrator,
    /// The stop hooks of your own sessions of an agent
    Hooks,
    /// A terminal for each agent
    Sessions,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let found;
    let args = if args.yes {
        found = ask::found(args, cx)?;
        &found
    } else {
        args
    };
    let Args { dry_run, json, driver, install, uninstall, .. } = *args;
    let hooks = matches!(driver, Some(Driver::Hooks));
    if install && !hooks {
        return Err(CommandError::usage("--install goes with --driver=hooks"));
    }
    cx.operators_alone_here("init")?;
    if uninstall {
        return uninstalled(dry_run, json, cx);
    }
    let report = laid_down(args, cx)?;
    let place = cx.place().ok().filter(|_| !report.dry_run);
    let refusals = place.map(|place| cx.refusals(&place, &cx::lock(&place))).unwrap_or_default();
    let unborn = unborn(cx);
    if json {
        cx.out.json("peers.init/1", &Told { report: &report, refusals: &refusals })?;
    } else {
        say(&report, &refusals, (unborn.as_deref(), hooks), cx)?;
        // The reviews of a mode say what is to be done.
        let asks = report.outcome != Outcome::Upgraded && !report.dry_run && args.modes.is_none();
        if asks && !has_task(cx) {
            cx.out.talk(
                "write what the agents should do into TASK.md at the top of the repository and commit it; goals only say when it is done",
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Sets up what was asked for, for a run that begins then.
pub(super) fn set_up(args: &Args, cx: &Cx) -> Result<(), CommandError> {
    cx.operators_alone_here("init")?;
    let report = laid_down(args, cx)?;
    cx.out.talk(&format!("set up {}", term::inline(&report.peers_dir.to_string_lossy())));
    Ok(())
}

/// The plan of `--plan`, with what its acceptance command says before anything is done.
fn planned(path: &Path, args: &Args, cx: &Cx) -> Result<Planned, CommandError> {
    if args.modes.as_deref() != Some("implement") {
        return Err(
            CommandError::usage("--plan goes with the mode `implement`").hint("add `--modes implement`")
        );
    }
    let mut planned = Planned::read(path)?;
    planned.look_for_files(&cx.target, args.accept_passing)?;
    planned.at_base = contract::preflight(&cx.target, &cx.env, planned.plan(), args.accept_passing)?;
    Ok(planned)
}

fn laid_down(args: &Args, cx: &Cx) -> Result<InitReport, CommandError> {
    let settings = [
        (Field::Model, &args.peer_model),
        (Field::Reasoning, &args.peer_reasoning),
        (Field::Provider, &args.peer_provider),
    ];
    let settings = settings
        .into_iter()
        .flat_map(|(field, texts)| texts.iter().map(move |text| PeerSetting { field, text: text.clone() }))
        .collect();
    refuse_no_place(cx)?;
    let plan = args.plan.as_deref().map(|path| planned(path, args, cx)).transpose()?;
    let implements = |modes: &str| modes.split(',').any(|mode| mode.trim() == "implement");
    if plan.is_none() && args.modes.as_deref().is_some_and(implements) {
        return Err(CommandError::usage("the mode `implement` needs a plan").hint("`--plan FILE`"));
    }
    let options = InitOptions {
        target: cx.target.clone(),
        existing: match (args.force, args.upgrade) {
            (true, _) => Existing::Force,
            (_, true) => Existing::Upgrade,
            (false, false) => Existing::Refuse,
        },
        dry_run: args.dry_run,
        driver: args.driver.map(|driver| match driver {
            Driver::Orchestrator => ConfigDriver::Orchestrator,
            Driver::Hooks => ConfigDriver::Hooks,
            Driver::Sessions => ConfigDriver::Sessions,
        }),
        language: args.lang.map(|lang| match lang {
            Lang::Python => Language::Python,
            Lang::Js => Language::Js,
            Lang::Rust => Language::Rust,
            Lang::Go => Language::Go,
        }),
        gates: args.gates(),
        modes: args.modes.clone().map(|modes| vec![modes]),
        agents: match agents::named(&args.agents) {
            None if args.yes => Agents::Installed,
            named => named.map(Agents::Named).unwrap_or_default(),
        },
        task: args.task.as_deref().map(|task| peers_setup::text_of("--task", task, &cx.env)).transpose()?,
        plan,
        no_commit: args.no_commit,
        settings,
        install: args.install,
    };
    let report = peers_setup::init(&options, &cx.env)?;
    for note in &report.notes {
        cx.out.advise(Step::from("note: ").join(note.clone()));
    }
    Ok(report)
}

/// What became of the stop hooks of the operator's tools: what was done is data, what was left alone is talk.
pub(super) fn told(host: &[HostHook], snippets: Option<&str>, cx: &Cx) -> Result<(), CommandError> {
    for HostHook { tool, file, did, why, backup } in host {
        let file = term::inline(file);
        let kept = backup.as_ref().map(|name| format!("; what it was is kept as {}", term::inline(name)));
        let kept = kept.unwrap_or_default();
        match did {
            Did::Installed => cx.out.line(&format!("installed the stop hook of {tool} in {file}{kept}"))?,
            Did::Updated => cx.out.line(&format!("updated the stop hook of {tool} in {file}{kept}"))?,
            Did::Removed => cx.out.line(&format!("removed the stop hook of {tool} from {file}{kept}"))?,
            Did::Noop => cx.out.line(&format!("noop: nothing to change for {tool} in {file}"))?,
            Did::Skipped => {
                let why = why.as_deref().map(|why| term::line(why, 300)).unwrap_or_default();
                let by_hand = snippets.map(|dir| format!("; by hand: {dir}/README.md")).unwrap_or_default();
                cx.out.talk(&format!("skipped {tool}: {file} {why}{by_hand}"));
            }
        }
    }
    if host.iter().any(|hook| hook.tool == "codex" && matches!(hook.did, Did::Installed | Did::Updated)) {
        cx.out.talk("codex runs the hook only once you have trusted it: start `codex`, it asks");
    }
    if !host.is_empty() && host.iter().all(|hook| hook.did == Did::Skipped) {
        cx.out.advise("hint: no stop hook was changed; `peers run` needs none");
    }
    Ok(())
}

/// What would become of them.
pub(super) fn would(host: &[HostHook], cx: &Cx) -> Result<(), CommandError> {
    for HostHook { tool, file, did, .. } in host {
        cx.out.line(&format!("  {} the stop hook of {tool} in {}", did.word(), term::inline(file)))?;
    }
    Ok(())
}

/// `--uninstall`: works also where there is no repository any more.
fn uninstalled(dry_run: bool, json: bool, cx: &Cx) -> Result<ExitCode, CommandError> {
    let host = peers_setup::uninstall_host_hooks(&cx.target, &cx.env, dry_run);
    if json {
        cx.out
            .json("peers.init-uninstall/1", &serde_json::json!({"dry_run": dry_run, "host_hooks": host}))?;
    } else if dry_run {
        would(&host, cx)?;
    } else {
        told(&host, None, cx)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What was set up, and what a run would refuse for all the same.
#[derive(serde::Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    report: &'a InitReport,
    refusals: &'a [Step],
}

/// Refuses a directory that cannot be set up, before anything else is looked for in it.
fn refuse_no_place(cx: &Cx) -> Result<(), CommandError> {
    peers_setup::refuse_no_place(&cx.target, &cx.env)?;
    top_of_a_repository(cx)
}

/// Agents work at the top of a repository; anywhere else everything would be set up in vain.
fn top_of_a_repository(cx: &Cx) -> Result<(), CommandError> {
    // A directory that cannot be looked at is refused by whoever sets it up.
    let Ok(top) = cx.target.canonicalize() else { return Ok(()) };
    // What is wrong with a repository that is there is said there too.
    if !matches!(PeerRepo::open(&top), Err(RepoError::NotARepo { .. })) {
        return Ok(());
    }
    let shown = term::inline(&top.to_string_lossy());
    let found = PeerRepo::find_top(&top);
    if let Some(place) = cx.place().ok().filter(|place| place.control_git_path().is_dir()) {
        return Cx::repo(&place).map(drop);
    }
    if found.as_ref() == Some(&top) {
        // A repository that git does not take for one: nothing is made over it.
        return Err(RepoError::NotARepo { path: top }.into());
    }
    match found {
        Some(above) => Err(CommandError::new(
            exit::INVALID,
            format!("{shown} is inside a repository, and agents work at the top of one"),
        )
        .hint(format!("`peers -C {} init`", quoted(&above.to_string_lossy())))),
        None => Err(CommandError::new(exit::INVALID, format!("{shown} is not a git repository"))
            .hint("run `git init` and commit something first, or name a repository: `peers -C DIR init`")),
    }
}

/// What comes before the first turn, by the goals that are there, and how that turn begins.
fn next(by_hooks: bool, cx: &Cx) -> Step {
    match (before(cx), by_hooks) {
        (Some(steps), true) => Step::from(steps).say(", then ").join(WORK_WITH_HOOKS.into()),
        (Some(steps), false) => Step::from(steps).say(", ").run(Command::run()),
        (None, true) => WORK_WITH_HOOKS.into(),
        (None, false) => Step::of(Command::run()),
    }
}

/// What comes before the first turn.
fn before(cx: &Cx) -> Option<&'static str> {
    const PLACEHOLDER: &str = "replace the placeholder gate in .peers/goals.yaml, `peers goals accept`";
    let Ok((_, mut disk)) = cx.view() else { return Some(PLACEHOLDER) };
    let Ok(loaded) = boot::load(&mut disk) else {
        return Some(
            "fix .peers/goals.yaml and .peers/config.yaml (`peers goals lint` says what is wrong), `peers goals accept`",
        );
    };
    let gates = boot::rules(&loaded.config, &loaded.goals, &RunRequest::default()).gates;
    if !gates.iter().any(|gate| !gate.shipped) {
        let placeholder = gates.iter().any(|gate| gate.id.as_str() == peers_view::PLACEHOLDER);
        return Some(if placeholder {
            PLACEHOLDER
        } else {
            "a hard gate in .peers/goals.yaml that runs your tests, `peers goals accept`"
        });
    }
    (!loaded.unaccepted().is_empty()).then_some(
        "look at .peers/goals.yaml and .peers/config.yaml (`peers goals diff`), `peers goals accept`",
    )
}

/// Whether it is written what the agents are to do.
fn has_task(cx: &Cx) -> bool {
    cx.target.join("TASK.md").exists()
}

/// The changes, one line each. What lies in a directory that was made now is part of it, but for the files
/// that are the operator's.
fn listed(report: &InitReport, cx: &Cx) -> Result<(), CommandError> {
    let made = |what: &str| report.changes.iter().any(|c| c.action == Action::Create && c.what == what);
    let part = |change: &&Change| match change.what.as_str() {
        ".peers/log/" | ".peers/inbox/" | ".peers/log/runs.jsonl" => made(".peers/"),
        schema if schema.starts_with(".peers/schema/") => made(".peers/"),
        "project.json in the trusted store" => made("the trusted store"),
        _ => false,
    };
    for change in report.changes.iter().filter(|change| !part(change)) {
        let store = match change.what.as_str() {
            "the trusted store" => format!(", {}", report.store.to_string_lossy()),
            _ => String::new(),
        };
        cx.out.line(&format!(
            "  {} {}",
            change.action.word(),
            term::inline(&format!("{}{store}", change.what))
        ))?;
    }
    Ok(())
}

/// The refusal of a repository without a commit, where this is one.
fn unborn(cx: &Cx) -> Option<String> {
    let repo = PeerRepo::open(&cx.target.canonicalize().ok()?).ok()?;
    let found = repo.preflight().into_iter().find(|error| matches!(error, RepoError::Unborn { .. }))?;
    Some(found.to_string())
}

fn say(
    report: &InitReport,
    refusals: &[Step],
    (unborn, by_hooks): (Option<&str>, bool),
    cx: &Cx,
) -> Result<(), CommandError> {
    let dir = term::inline(&report.peers_dir.to_string_lossy());
    if report.dry_run {
        cx.out.line(&format!("Would set up {dir}; nothing was written"))?;
        listed(report, cx)?;
        return would(&report.host, cx);
    }
    let done = match report.outcome {
        Outcome::Fresh => "Initialized peers control plane in",
        Outcome::Rebuilt => "Started over in",
        Outcome::Upgraded => "Upgraded",
    };
    cx.out.line(&format!("{done} {dir}"))?;
    listed(report, cx)?;
    if let Some(hooks) = report.where_hooks_are() {
        cx.out.line(&hooks)?;
    }
    told(&report.host, report.hooks.as_deref(), cx)?;
    // A commit is missing: what comes next says it, and a note did.
    let known = |refusal: &Step| unborn.is_some_and(|unborn| refusal.to_string().starts_with(unborn));
    for refusal in refusals.iter().filter(|refusal| !known(refusal)) {
        cx.out.advise(Step::from("warning: a start would refuse: ").join(refusal.clone()));
    }
    if report.outcome == Outcome::Upgraded {
        let loaded = cx.view().ok().and_then(|(_, mut disk)| boot::load(&mut disk).ok());
        if let Some(unwatched) = loaded.and_then(|loaded| loaded.unwatched()) {
            cx.out.talk(&format!("warning: {unwatched}"));
        }
    } else {
        let first = if refusals.iter().any(known) { "make the first commit, then " } else { "" };
        cx.out.advise(Step::from("next: ").say(first).join(next(by_hooks, cx)));
    }
    Ok(())
}
