//! `peers run`.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use peers_console::cx::{Cx, refusal};
use peers_console::error::CommandError;
use peers_console::run_args::RunArgs;
use peers_model::command::Step;
use peers_model::outcome::{ErrorKind, StopReason};
use peers_model::{RunId, RunRequest, exit};
use peers_place::{PEERS_DIR, Place, is_gone};
use peers_run::boot::{self, After, Handover, RunOptions, RunSummary};
use peers_run::drive;
use peers_store::layout::peers;
use peers_store::{Area, Disk as _, runs, store};
use peers_sys::detach::Inherited;
use peers_sys::term::quoted;
use peers_sys::{env, term};
use peers_view::LoopView;

use super::init;
use crate::live::Live;
use peers_console::about::{accounting, withheld};

/// Run the loop until a stop reason
///
/// Checks everything before it starts anything, and reports all problems at once. The gates are tried in a
/// clean checkout before the first turn. Then peers take turns, gates run after each turn, and the loop stops
/// when everything is proved, a limit is reached or a person is needed. The last line on standard output is
/// `Stopped: <reason>`; progress goes to standard error. Ctrl-C ends the running turn and stops; pressed
/// twice, it stops at once.
///
/// Agents and gates run behind the best sandbox that holds on this machine: bubblewrap, else Landlock. Where neither
/// does, a run refuses to start (`--sandbox none --i-know` starts it). `peers sandbox explain` shows what they see.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Stop after N ticks of this process
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_ticks: Option<u64>,
    /// Watch it in a live terminal; `q` leaves that, and the loop goes on line by line
    #[arg(long, conflicts_with_all = ["detached", "verbose"])]
    tui: bool,
    /// Run in the background as this run, with what `peers-ctl` hands over on the standard streams
    #[arg(long, value_name = "RUN", hide = true)]
    detached: Option<RunId>,
    /// What that run is asked
    #[arg(long, value_name = "JSON", hide = true, requires = "detached", value_parser = request)]
    request: Option<RunRequest>,
    #[command(flatten)]
    common: Common,
}

/// What `run` and `tick` have in common.
#[derive(Debug, clap::Args)]
pub(crate) struct Common {
    #[command(flatten)]
    run: RunArgs,
    /// Undo each turn afterwards; its work is kept (`peers salvage list`)
    #[arg(long)]
    dry_run: bool,
    /// Show the last lines that each peer printed
    #[arg(short, long)]
    verbose: bool,
}

impl Common {
    /// What they ask of the loop.
    fn request(&self, max_ticks: Option<u64>) -> RunRequest {
        RunRequest { dry_run: self.dry_run, ..self.run.request(max_ticks) }
    }
}

/// An answer is waited for so long before the run stays stopped.
const PATIENCE: Duration = Duration::from_mins(1);

fn request(text: &str) -> Result<RunRequest, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let Some(run_id) = &args.detached else {
        if is_new(cx) && !set_up(cx)? {
            return Ok(ExitCode::from(exit::NEGATIVE));
        }
        if args.tui {
            return crate::cockpit::watch(cx);
        }
        crate::cockpit::shown(cx)?;
        return start_here(args.max_ticks, None, (&args.common, true), cx);
    };
    let mut handover = inherited(run_id)?;
    start(args.request.clone().unwrap_or_default(), None, (false, true), Some(&mut handover), cx)
}

/// Whether this repository was never set up.
fn is_new(cx: &Cx) -> bool {
    let new = |place: &Place| {
        !place.work_dir().join(PEERS_DIR).exists() && place.view_store().is_ok_and(|store| store.is_none())
    };
    cx.place().is_ok_and(|place| new(&place) && Cx::repo(&place).is_ok())
}

/// Sets this repository up by what the operator answers; `false` where nothing was answered.
fn set_up(cx: &Cx) -> Result<bool, CommandError> {
    if !cx.out.can_ask() {
        let missing = CommandError::from(cx.place()?.no_store(false));
        return Err(CommandError::new(missing.exit_code(), missing.message().unwrap_or_default())
            .hint(init::ask::command(cx).join(" sets it up, then `peers run`".into())));
    }
    let Some(asked) = init::ask::ask(cx)? else {
        cx.out.talk("\nnothing was written");
        return Ok(false);
    };
    init::set_up(&asked, cx)?;
    Ok(true)
}

/// Runs the loop in this terminal.
pub(crate) fn start_here(
    max_ticks: Option<u64>,
    after: Option<After>,
    (common, unattended): (&Common, bool),
    cx: &Cx,
) -> Result<ExitCode, CommandError> {
    start(common.request(max_ticks), after, (common.verbose, unattended), None, cx)
}

/// Takes over what a controller hands over. Nothing may have been printed, and no thread started before.
fn inherited(run_id: &RunId) -> Result<Handover, CommandError> {
    let Inherited { lock, ready } = Inherited::take().map_err(|error| {
        CommandError::usage(format!(
            "`--detached` is for `peers-ctl start`, which hands over a lock and a pipe ({error})"
        ))
    })?;
    Ok(Handover { run_id: run_id.clone(), lock: Some(lock), ready: Some(ready) })
}

/// Runs the loop, and says how it ended.
fn start(
    request: RunRequest,
    after: Option<After>,
    (verbose, unattended): (bool, bool),
    handover: Option<&mut Handover>,
    cx: &Cx,
) -> Result<ExitCode, CommandError> {
    let mut argv: Vec<String> = env::args().iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    if handover.is_some() {
        // As a person would ask for it here.
        argv.truncate(1);
        argv.extend(["-C".to_owned(), cx.target.to_string_lossy().into_owned()]);
        argv.extend(request.words());
    }
    let mut options =
        RunOptions { target: cx.target.clone(), request, after, argv, unattended, ..RunOptions::default() };
    let attended = handover.is_none();
    let mut summary = looped(&options, verbose, handover, cx)?;
    if attended && stopped_by_trial(&summary, cx) && goes_on_anyway(cx) {
        // Where it works now, on the branch that it made.
        options = RunOptions {
            target: summary.work_dir.clone(),
            request: RunRequest { anyway: true, ..options.request.again() },
            after: None,
            ..options
        };
        summary = looped(&options, verbose, None, cx)?;
    }
    Ok(ExitCode::from(summary.reason.exit_code()))
}

/// Whether it was the trial that stopped a run, and not a proof, for a gate that is green in the work tree alone.
fn stopped_by_trial(summary: &RunSummary, cx: &Cx) -> bool {
    let tried = || {
        let mut disk = Place::locate(&summary.work_dir, &cx.env).ok()?.open_view_disk().ok()?;
        Some(store::read_state(&mut disk).ok()?.trial.run? == summary.run_id)
    };
    summary.reason == StopReason::ParkedProof && summary.ticks == 0 && tried().unwrap_or(false)
}

/// Asks whoever sits at the terminal; nobody answers for them, and Ctrl-C is a no.
fn goes_on_anyway(cx: &Cx) -> bool {
    let question = "Go on all the same, as with --anyway? No answer in a minute is a no. [y/N] ";
    let Some(telling) = cx.out.ask_meanwhile(question) else { return false };
    let answer = drive::unless_interrupted(PATIENCE, || telling.try_recv().ok());
    let Some(answer) = answer.ok().flatten() else {
        // The line of the question ends.
        cx.out.talk("");
        return false;
    };
    matches!(answer.trim(), "y" | "Y" | "yes")
}

/// Runs the loop with its live view.
pub(crate) fn looped(
    options: &RunOptions,
    verbose: bool,
    mut handover: Option<&mut Handover>,
    cx: &Cx,
) -> Result<RunSummary, CommandError> {
    if options.request.branch.is_none() && options.request.worktree.is_none() {
        left_behind(options, cx);
    }
    let live = Live::new(&cx.out, verbose);
    let observer = Box::new(live.observer(doubts(options, cx)));
    let detached = handover.is_some();
    let ended = boot::run(options, &cx.env, observer, handover.as_deref_mut());
    let waiting = handover.and_then(|handover| handover.ready.take());
    live.close();
    let summary = match ended {
        Ok(summary) => summary,
        Err(error) => {
            // Spelt here: a controller that waits is not where these commands belong.
            let error = CommandError::from(error).spelt(cx.out.spelling());
            // The one refusal that is a stop reason too: another loop is at work.
            let held = |place: &Place| {
                place.holder().is_ok_and(|holder| holder.is_some()) || place.foreign_lock().unwrap_or(false)
            };
            if error.exit_code() == exit::CONFLICT && cx.place().is_ok_and(|place| held(&place)) {
                stopped(&StopReason::LockHeld, cx);
            }
            if let Some(waiting) = waiting {
                waiting.failed(error.exit_code(), &error.json());
            }
            return Err(error);
        }
    };
    let view = end(options, &summary, cx);
    if let Some(view) = view.as_ref().filter(|_| summary.reason == StopReason::AllPeersDegraded)
        && let Err(error) = halted(view, &summary, cx)
    {
        // What the loop itself wrote stands there.
        tracing::warn!(?error, "`.peers/HALTED.md` says less than `peers status`");
    }
    if let Some(red) = peers_view::red_gate(view.as_ref(), &summary.reason, &summary.detail) {
        cx.out.talk(&red);
    } else if !summary.detail.is_empty() {
        let failed = matches!(summary.reason, StopReason::Error(_));
        // The way on stands on a line of its own, and in the hint.
        let said = match &summary.reason {
            StopReason::Tamper(_) if view.is_some() => summary.detail.lines().next().unwrap_or_default(),
            _ => &summary.detail,
        };
        cx.out.talk(&format!("{}{said}", if failed { "error: " } else { "" }));
    }
    if summary.reason == StopReason::Error(ErrorKind::DiskFull)
        && let Ok(place) = Place::locate(&summary.work_dir, &cx.env)
    {
        for text in boot::full(&place) {
            cx.out.talk(&text);
        }
    }
    for line in view.as_ref().map(peers_view::closing).unwrap_or_default() {
        cx.out.talk(&line);
    }
    let next = match &view {
        Some(view) => peers_view::next_step(view),
        None => Some(cx.out.spelling().tell(&"`peers status` says why its state cannot be read".into())),
    };
    // The controller says it with the project's name, and as things are then.
    if let Some(next) = next.filter(|_| !detached) {
        cx.out.talk(&format!("hint: {next}"));
    }
    stopped(&summary.reason, cx);
    Ok(summary)
}

/// Writes what the operator is needed for, in place of the little that the loop itself knows of it.
fn halted(view: &LoopView, summary: &RunSummary, cx: &Cx) -> Result<(), CommandError> {
    let text = peers_view::halted_markdown(view);
    let mut disk = Place::locate(&summary.work_dir, &cx.env)?.open_store_disk()?;
    disk.publish(Area::Peers, peers::HALTED, text.as_bytes(), false)?;
    Ok(())
}

/// How things stand at the end; nothing where that cannot be read, for the stop reason says the rest.
fn end(options: &RunOptions, summary: &RunSummary, cx: &Cx) -> Option<LoopView> {
    let place = Place::locate(&summary.work_dir, &cx.env).ok()?;
    let mut disk = place.open_view_disk().ok()?;
    let mut asked = cx.asked(&place, &mut disk);
    // As `peers status` asks where this was started.
    let started = Place::locate(&options.target, &cx.env);
    asked.refusals = started.map(|place| cx.refusals(&place, &asked.lock)).unwrap_or_default();
    let here = options.target.canonicalize().ok()?;
    // A worktree of the run's own has files of its own.
    asked.files_in = (place.work_dir() != here).then(|| place.work_dir().to_string_lossy().into_owned());
    asked.here = Some(here.to_string_lossy().into_owned());
    Some(LoopView::read(&mut disk, &asked))
}

/// What the operator should know of the configuration before money is spent.
fn doubts(options: &RunOptions, cx: &Cx) -> Vec<String> {
    let loaded = || {
        let place = Place::locate(&options.target, &cx.env).ok()?;
        let mut disk = place.open_view_disk().ok()?;
        Some((boot::load(&mut disk).ok()?, store::read_state(&mut disk).ok()?, place))
    };
    // What cannot be loaded does not start.
    let Some((loaded, state, place)) = loaded() else { return Vec::new() };
    let config = &loaded.config;
    let doubts = peers_view::doubts(config, &accounting(config), options.request.max_usd)
        .into_iter()
        .map(|doubt| format!("{}: {}", if doubt.loud { "warning" } else { "note" }, doubt.text));
    let uncounted = peers_view::uncounted(config, options.request.max_usd, &state);
    let withheld = withheld(config, &loaded.goals, &cx.env);
    let left_out = loaded.left_out(place.work_dir(), &cx.env).into_iter().map(|dir| dir.to_string());
    let warnings = uncounted.into_iter().chain(withheld).chain(left_out).chain(loaded.unwatched());
    let modes = peers_console::modes::changed_since(loaded.modes(), &cx.env);
    let modes = modes.into_iter().map(|text| format!("note: {text}"));
    doubts.chain(warnings.map(|text| format!("warning: {text}"))).chain(modes).collect()
}

/// The newest run worked in a worktree of its own and is not done: a run here does not go on with it.
fn left_behind(options: &RunOptions, cx: &Cx) {
    let newest = || {
        let place = Place::locate(&options.target, &cx.env).ok()?;
        let mut disk = place.open_view_disk().ok()?;
        let record = runs::list(&mut disk).ok()?.0.pop()?;
        let dir = Path::new(&record.workdir);
        let elsewhere = dir != place.work_dir() && dir != place.project_dir();
        // A turn of it that is open is taken up first, or nothing starts.
        let open = store::read_state(&mut disk).ok()?.open.is_some();
        let lost = boot::gone::lost(&place, &mut disk);
        (elsewhere && !open && record.reason != Some(StopReason::Complete)).then_some((record, lost))
    };
    // For people: a start does not depend on it.
    let Some((record, lost)) = newest() else { return };
    let branch = record.branch.as_deref().map(|branch| format!(" on `{}`", term::inline(branch)));
    let (dir, branch) = (term::inline(&record.workdir), branch.unwrap_or_default());
    let what = if let Some(lost) = lost {
        Step::from("and ").join(refusal(lost))
    } else if is_gone(Path::new(&record.workdir)) {
        "and that worktree is gone; this one works here. `git worktree prune` makes git forget it, `peers land` merges its branch".into()
    } else {
        Step::from(format!(
            "and is not complete; this one works here. To go on there: `peers -C {} run`",
            quoted(&record.workdir)
        ))
    };
    cx.out.advise(Step::from(format!("warning: the newest run worked in {dir}{branch} ")).join(what));
}

fn stopped(reason: &StopReason, cx: &Cx) {
    // The exit code says it too, and must not give way to that of a reader who left.
    if let Err(error) = cx.out.line(&format!("Stopped: {reason}")) {
        tracing::debug!(?error, "the stop reason was not printed");
    }
}
