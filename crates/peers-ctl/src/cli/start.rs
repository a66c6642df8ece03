//! `peers-ctl start`.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::process::ExitCode;

use clap::builder::{PossibleValue, TypedValueParser};
use peers_acts::whole_loop;
use peers_console::error::CommandError;
use peers_console::run_args::RunArgs;
use peers_fleet::ProjectName;
use peers_fleet::budget::Amount;
use peers_fleet::registry::{self, Restart, RestartPolicy};
use peers_fleet::start::{self, StartOptions, Started};
use peers_model::command::Step;
use peers_model::request::Worktree;
use peers_model::{Backend, RunId, RunRequest, exit};
use peers_place::Place;
use peers_run::boot::{BootError, Finding};
use peers_store::runs;
use peers_sys::term;
use serde_json::json;

use super::duration;
use crate::ctl::{Ctl, failed};
use crate::many::{Done, Which, each};

/// Start loops in the background
///
/// Returns when the loop has passed every check and runs, or says why it does not. Exactly one loop runs
/// on a repository, whoever starts it: a second start exits with code 4 and names the first. Options of
/// earlier starts are not repeated; `peers-ctl restart` and `peers-ctl resume --start` repeat them.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    budget: BudgetArgs,
    /// What `peers-ctl watch` does when the loop dies: `never`, `on-crash`, or `on-crash:N` for at most N times
    /// in an hour; it is kept for later starts
    #[arg(long, value_name = "POLICY", value_parser = Policy, hide_possible_values = true, verbatim_doc_comment)]
    restart: Option<Restart>,
    /// Stream its output until it exits, and exit with its code; Ctrl-C detaches, the loop keeps running
    #[arg(long, conflicts_with_all = ["json", "dry_run"])]
    follow: bool,
    /// Wait until they have stopped, and exit with their code
    #[arg(long, conflicts_with_all = ["follow", "dry_run", "json"])]
    wait: bool,
    /// Print what would be started and what would be refused; start nothing, exit 0
    #[arg(long)]
    dry_run: bool,
}

/// What is asked of the loop.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(mut_arg("worktree", |arg| arg.require_equals(true)))]
pub(crate) struct Asked {
    /// Stop after N ticks of this run; `budget raise --ticks` is about all runs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_ticks: Option<u64>,
    /// Put agents and gates into containers: the same as `--sandbox podman`
    #[arg(long, conflicts_with = "sandbox")]
    container: bool,
    /// Put the loop itself into one container, with agents and gates behind a wall in there
    ///
    /// For a machine without tool chains: programs are those of the image. The container has the repository, what peers
    /// keeps of it, and the logins of its tools, which agents do not see. It holds less than `--container`: `--sandbox`
    /// names the wall in there.
    #[arg(long)]
    whole_loop: bool,
    #[command(flatten)]
    run: RunArgs,
}

impl Asked {
    /// As the loop is handed it.
    pub(crate) fn request(&self) -> RunRequest {
        let mut request = self.run.request(self.max_ticks);
        if self.whole_loop {
            request.wall.whole_loop = true;
        } else if self.container {
            request.wall.backend = Some(Backend::Podman);
        }
        request
    }

    /// Refuses what makes no sense together.
    pub(crate) fn check(&self) -> Result<(), CommandError> {
        let request = self.request();
        if !request.wall.whole_loop {
            return Ok(());
        }
        if request.wall.backend == Some(Backend::Podman) {
            return Err(CommandError::usage("in the container of --whole-loop there is no podman").hint(
                "leave out --sandbox podman, or --whole-loop: each turn and gate then has a container",
            ));
        }
        if matches!(request.worktree, Some(Worktree::At(_))) {
            return Err(CommandError::usage(
                "the container of --whole-loop does not have the DIR of --worktree",
            )
            .hint("`--worktree` alone makes it below `$XDG_DATA_HOME/peers/worktrees`, which it has"));
        }
        Ok(())
    }
}

/// What is done to the budget before.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct BudgetArgs {
    #[arg(help = lasting!("Set the cap of run time to D, or with a plus to D more than it is"))]
    #[arg(long, value_name = "[+]D", value_parser = runtime_cap)]
    pub(crate) max_runtime: Option<Amount>,
    /// Count spending from zero again, and drop caps set by hand
    #[arg(long)]
    pub(crate) reset_budget: bool,
    /// Start although a budget is exhausted; nothing else is forced
    #[arg(long)]
    pub(crate) force: bool,
}

/// What [`restart_policy`] takes; scripts offer the two words.
#[derive(Clone)]
struct Policy;

impl TypedValueParser for Policy {
    type Value = Restart;

    fn parse_ref(
        &self,
        cmd: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Restart, clap::Error> {
        restart_policy.parse_ref(cmd, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue>>> {
        Some(Box::new(["never", "on-crash"].map(PossibleValue::new).into_iter()))
    }
}

fn restart_policy(text: &str) -> Result<Restart, String> {
    let (word, most) = match text.split_once(':') {
        Some((word, most)) => (word, Some(most)),
        None => (text, None),
    };
    let max_per_hour = match most.map(str::parse::<u32>) {
        None => None,
        Some(Ok(n)) if n > 0 => Some(n),
        Some(_) => return Err("the number behind the colon is above zero".to_owned()),
    };
    match (word, max_per_hour) {
        ("never", None) => Ok(Restart::default()),
        ("on-crash", _) => Ok(Restart { policy: RestartPolicy::OnCrash, max_per_hour, times: Vec::new() }),
        _ => Err("must be never, on-crash or on-crash:N".to_owned()),
    }
}

pub(crate) fn runtime_cap(text: &str) -> Result<Amount, String> {
    let (more, rest) = match text.strip_prefix('+') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let seconds = duration(rest)?.as_secs();
    if seconds == 0 {
        return Err("must be above zero: 90s, 10m, 2h, 1h30m, with a leading + to add to the cap".to_owned());
    }
    Ok(if more { Amount::By(seconds) } else { Amount::To(seconds) })
}

impl Args {
    /// Its name, unless it only says what it would do.
    pub(super) fn changes(&self) -> Option<&'static str> {
        (!self.dry_run).then_some("start")
    }
}

impl BudgetArgs {
    /// The options of a start with these arguments.
    pub(crate) fn options(&self, request: RunRequest, ctl: &Ctl) -> StartOptions {
        StartOptions {
            container: request.wall.whole_loop.then_some(whole_loop::contain),
            request,
            work_dir: None,
            max_runtime: self.max_runtime,
            reset_budget: self.reset_budget,
            force: self.force,
            wait: ctl.wait,
        }
    }
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    args.asked.check()?;
    let config = ctl.config()?;
    let names = ctl.names(&config, &args.which.selection())?;
    if args.follow && names.len() > 1 {
        return Err(CommandError::usage("--follow follows one loop").hint("`peers-ctl tail` follows several"));
    }
    let options = args.budget.options(args.asked.request(), ctl);
    let mut begun = None;
    let ended = each(ctl, "start", &names, &[], |name| {
        if args.dry_run {
            return planned(ctl, &config, name, &options);
        }
        let done = started(ctl, &config, name, &options)?;
        begun = done.data.get("run_id").and_then(|id| RunId::new(id.as_str()?).ok());
        if let Some(restart) = &args.restart {
            keep(&config, name, restart)?;
        }
        Ok(done)
    })?;
    if let (true, [name], Some(run)) = (args.follow, names.as_slice(), &begun) {
        return super::tail::follow(ctl, &config, name, run);
    }
    if args.wait && ended == ExitCode::SUCCESS {
        return super::wait::stopped(ctl, &config, &names, None);
    }
    Ok(ended)
}

/// Notes down what becomes of a loop that dies.
fn keep(config: &peers_fleet::ConfigDir, name: &ProjectName, restart: &Restart) -> Result<(), CommandError> {
    registry::edit(config, |registry| {
        if let Some(project) = registry.get_mut(name) {
            project.restart.clone_from(restart);
        }
        Ok(())
    })
    .map_err(failed)
}

/// Starts one, where it goes on.
pub(crate) fn launch(
    ctl: &Ctl,
    config: &peers_fleet::ConfigDir,
    name: &ProjectName,
    options: &StartOptions,
) -> Result<Started, CommandError> {
    let options = StartOptions { work_dir: going_on(ctl, config, name, options)?, ..options.clone() };
    Ok(start::start(config, name, &ctl.env, &options)?)
}

/// Refuses what a start with these options would be refused for, as far as that can be seen from here.
pub(crate) fn refuse(
    ctl: &Ctl,
    config: &peers_fleet::ConfigDir,
    name: &ProjectName,
    options: &StartOptions,
) -> Result<(), CommandError> {
    let project = start::project(config, name).map_err(failed)?;
    let place = start::located(&project, &ctl.env).map_err(failed)?;
    let options = StartOptions { work_dir: going_on(ctl, config, name, options)?, ..options.clone() };
    let findings = start::refusals(name, &place, &ctl.env, &options);
    if findings.is_empty() { Ok(()) } else { Err(BootError { findings }.into()) }
}

/// Starts one and says so.
pub(crate) fn started(
    ctl: &Ctl,
    config: &peers_fleet::ConfigDir,
    name: &ProjectName,
    options: &StartOptions,
) -> Result<Done, CommandError> {
    // Asked before: whatever becomes of the registry, a loop that runs is told.
    let project = start::project(config, name).map_err(failed)?;
    let place = start::located(&project, &ctl.env).map_err(failed)?;
    let Started { run_id, pid, log, warning, launched: _ } = launch(ctl, config, name, options)?;
    let record =
        place.open_view_disk().ok().and_then(|mut disk| runs::get(&mut disk, &run_id).ok().flatten());
    let branch = record.as_ref().and_then(|record| record.branch.clone());
    let work_dir = record.as_ref().map(|record| record.workdir.clone());
    let unconfined = record.as_ref().is_none_or(|record| record.tier == 0);
    let log = log.to_string_lossy().into_owned();
    let mut text = format!("started {name}: run {run_id}, process {pid}");
    if options.container.is_some() {
        text.push_str(", in a container");
    }
    if let Some(branch) = &branch {
        let _infallible = write!(text, ", on {}", term::inline(branch));
    }
    if let Some(dir) = work_dir.as_ref().filter(|dir| **dir != project.path) {
        let _infallible = write!(text, ", in {}", term::inline(dir));
    }
    if unconfined {
        text.push_str(", unconfined");
    }
    let _infallible = write!(text, "\n  log: {}", term::inline(&log));
    if let Some(warning) = &warning {
        let _infallible = write!(text, "\n  warning: {warning}");
    }
    let data = json!({"run_id": run_id, "pid": pid, "log": log, "branch": branch, "workdir": work_dir,
        "unconfined": unconfined, "warning": warning});
    Ok(Done::well(text, data))
}

/// The worktree of the newest run, where that is neither landed nor undone: a plain start goes on there. Where
/// somebody removed it, the start is refused: nobody asked for work in the checkout.
fn going_on(
    ctl: &Ctl,
    config: &peers_fleet::ConfigDir,
    name: &ProjectName,
    options: &StartOptions,
) -> Result<Option<std::path::PathBuf>, CommandError> {
    if options.request.branch.is_some() || options.request.worktree.is_some() {
        return Ok(None);
    }
    let project = start::project(config, name).map_err(failed)?;
    let cx = ctl.cx(&project);
    let Ok((place, mut disk)) = cx.view() else { return Ok(None) };
    let record = runs::last(&mut disk).map_err(|error| {
        CommandError::new(
            exit::REFUSED,
            format!("where {name} worked is not known: {}", peers_console::error::chain(&error)),
        )
        .hint(Step::text("begin in a worktree: `peers-ctl start {} --worktree`", &[name.as_str()]))
    })?;
    let Some(record) = record else { return Ok(None) };
    let dir = std::path::PathBuf::from(&record.workdir);
    if dir == place.work_dir() || !record.own_branch {
        return Ok(None);
    }
    let asked = cx.asked(&place, &mut disk);
    let view = peers_view::LoopView::read(&mut disk, &asked);
    if view.landed.is_some() || view.undone.is_some() {
        return Ok(None);
    }
    if let Some(lost) = peers_run::boot::gone::lost(&place, &mut disk) {
        return Err(BootError { findings: vec![Finding { exit: exit::REFUSED, ..lost }] }.into());
    }
    if peers_place::is_gone(&dir) {
        let shown = term::inline(&record.workdir);
        return Err(CommandError::new(
            exit::REFUSED,
            format!(
                "{name} worked in {shown}, which is gone, and run {} is neither landed nor undone",
                record.run_id
            ),
        )
        .hint(Step::text(
            "make it again: {}; or begin beside it: `peers-ctl start {} --worktree`",
            &[&format!("`{}`", record.worktree_again(&place.project_dir().to_string_lossy())), name.as_str()],
        )));
    }
    // What a record says, and what lies there, is no place to start in before it is known to be this project's.
    let there = Place::locate(&dir, &ctl.env).and_then(|there| there.expect(Some(place.id())));
    if there.as_ref().is_ok_and(|there| there.work_dir() == dir) {
        return Ok(Some(dir));
    }
    let (shown, run) = (term::inline(&record.workdir), &record.run_id);
    let why = there.err().map_or_else(|| "it leads elsewhere".to_owned(), |error| error.to_string());
    Err(CommandError::new(
        exit::REFUSED,
        format!("{name} worked in {shown}, which is not the worktree of run {run} any more: {why}"),
    )
    .hint(Step::text("put it back, or begin beside it: `peers-ctl start {} --worktree`", &[name.as_str()])))
}

/// What would be started.
fn planned(
    ctl: &Ctl,
    config: &peers_fleet::ConfigDir,
    name: &ProjectName,
    options: &StartOptions,
) -> Result<Done, CommandError> {
    let project = start::project(config, name).map_err(failed)?;
    let place = start::located(&project, &ctl.env).map_err(failed)?;
    let bin = peers_fleet::config::peers_bin(&ctl.env).map_err(failed)?;
    let going_on = going_on(ctl, config, name, options);
    let work_dir = going_on.as_ref().ok().cloned().flatten();
    let options = StartOptions { work_dir, ..options.clone() };
    let dir = options.work_dir.clone().unwrap_or_else(|| place.work_dir().to_owned());
    let mut argv = vec![bin.to_string_lossy().into_owned(), "-C".into(), dir.to_string_lossy().into_owned()];
    argv.extend(options.request.words());
    let mut unfit = None;
    if options.container.is_some() {
        let run = peers_run::boot::new_run_id().map_err(failed)?;
        match start::planned(&place, &run, (&ctl.env, &bin), &options) {
            Ok(spawn) => {
                let words = whole_loop::command(&spawn).into_iter();
                argv = words.map(|word| word.to_string_lossy().into_owned()).collect();
            }
            Err(finding) => unfit = Some(finding),
        }
    }
    let holder = place.holder().map_err(peers_run::boot::Finding::from).map_err(failed)?;
    let spelling = crate::board::spelling(ctl, &project);
    let refusals = if let Some(holder) = holder {
        vec![format!("already running or starting: {holder}")]
    } else if let Err(error) = going_on {
        vec![error.spelt(&spelling).summary()]
    } else {
        let found = start::refusals(name, &place, &ctl.env, &options).into_iter().chain(unfit);
        found.map(|finding| spelling.tell(&peers_console::cx::refusal(finding))).collect()
    };
    let shown: Vec<String> = argv.iter().map(|word| term::quoted(word)).collect();
    let mut text = format!("{name}: {}", shown.join(" "));
    for refusal in &refusals {
        let _infallible = write!(text, "\n  would be refused: {refusal}");
    }
    Ok(Done::well(text, json!({"argv": argv, "cwd": dir.to_string_lossy(), "refusals": refusals})))
}
