//! How a loop is started in the background, so that there is exactly one, and whoever starts it knows that it
//! runs, or why it does not.
//!
//! One after the other: the op lock; the registry once more, now that nobody else changes this project; the run
//! lock, which says across all registries, and against a `peers run` by hand, who may; the budget; a note of
//! what is about to begin; the process, which is born holding the run lock; who it is; its one word. A
//! controller that dies at any of these leaves something that the next look tells right: either nobody holds the
//! run lock, then nothing was begun, or the loop does, then it runs.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use peers_core::budget::GivenUsd;
use peers_model::command::Step;
use peers_model::record::{Cap, OperatorOp};
use peers_model::{Backend, RunId, RunRequest, Timestamp, exit};
use peers_place::{Place, PlaceError};
use peers_run::boot::{self, BootError, Finding, RunOptions};
use peers_store::commands;
use peers_sys::detach::{Launch, Launched, Said};
use peers_sys::env::Env;
use peers_sys::identity::ProcIdentity;
use peers_sys::reap::{ITERATION_MARKER, RUN_MARKER};
use peers_sys::spawn::{Spawn, StubProgram};
use peers_sys::{clock, term};
use serde_json::{Value, json};

use crate::budget::{Amount, Standing};
use crate::config::{ConfigDir, peers_bin};
use crate::ground::Ground;
use crate::observe::Observation;
use crate::oplock::OpLock;
use crate::reconcile::{noted, reconcile};
use crate::registry::{self, Phase, Project, ProjectName, Runtime, RuntimeKind, State};
use crate::{fault, runlog};

/// What the run lock says while a start holds it.
pub const COMMAND: &str = "start";
/// A loop that has said nothing for so long is taken for started, with a warning.
const READY: Duration = Duration::from_secs(15);
/// A process that is to end has so long.
const ENDING: Duration = Duration::from_secs(2);
/// Lines of the log that are shown of a loop that died at once.
const SHOWN: usize = 12;

/// How a loop is to be started.
#[derive(Debug, Clone, Default)]
pub struct StartOptions {
    /// What is asked of the loop.
    pub request: RunRequest,
    /// Where it works, if that is not the project's own directory.
    pub work_dir: Option<PathBuf>,
    /// A cap of run time to be set over the configuration.
    pub max_runtime: Option<Amount>,
    /// What was spent counts as nothing from now on.
    pub reset_budget: bool,
    /// Start although a budget is exhausted.
    pub force: bool,
    /// Wait so long for another controller.
    pub wait: Duration,
    /// The loop is put into a container; absent: it runs on this machine.
    pub container: Option<Container>,
}

/// Puts the loop that is to be started into a container: whatever is started then holds its lock, passes signals on, and
/// is the loop for this machine.
pub type Container = fn(Spawn, (&RunId, &RunRequest), &Place, &Env) -> Result<Spawn, Finding>;

impl StartOptions {
    /// The cap of money, and when it was given: now, unless it was with an earlier start.
    fn given_usd(&self, now: Timestamp) -> Option<GivenUsd> {
        let RunRequest { max_usd, max_usd_since, .. } = self.request;
        max_usd.map(|usd| GivenUsd { usd, at: max_usd_since.unwrap_or(now) })
    }
}

/// A loop that was started.
#[derive(Debug)]
pub struct Started {
    /// Its run.
    pub run_id: RunId,
    /// Its process.
    pub pid: u32,
    /// Where it writes.
    pub log: PathBuf,
    /// What its starter should know.
    pub warning: Option<String>,
    /// The process, for who waits for it.
    pub launched: Launched,
}

/// Starts the loop of a project.
///
/// # Errors
/// Everything that stands against it; nothing runs then.
pub fn start(
    config: &ConfigDir,
    name: &ProjectName,
    env: &Env,
    options: &StartOptions,
) -> Result<Started, BootError> {
    let known = project(config, name)?;
    let place = located(&known, env)?;
    let op = OpLock::take(&place, &format!("peers-ctl start {name}"), options.wait)?;
    fault::point("start.op-locked");
    // What was read before the lock may be from before another start.
    let known = project(config, name)?;
    let seen = Observation::of(&known, env);
    if let crate::observe::Probe::Alive(holder) = &seen.probe {
        return Err(already(name, &holder.to_string()).into());
    }
    if seen.alive {
        return Err(already(name, &format!("{} is alive", noted(&known))).into());
    }
    let bin = peers_bin(env)?;
    let lock = match place.lock(COMMAND) {
        Ok(lock) => lock,
        Err(PlaceError::Locked { holder }) => return Err(already(name, &holder.to_string()).into()),
        Err(error) => return Err(Finding::from(error).into()),
    };
    fault::point("start.run-locked");
    let run_id = boot::new_run_id()?;
    // A start that is refused changes no cap.
    let planned = planned(&place, &run_id, (env, &bin), options)?;
    let since = budget(name, &place, env, options)?;
    fault::point("start.budget-set");
    let now = clock::now();
    // What repeats this start says when the cap was given: what is set in between is the later word.
    let request = RunRequest { max_usd_since: since, ..options.request.clone() };
    let runtime = Runtime {
        run_id: run_id.clone(),
        kind: if options.container.is_some() { RuntimeKind::Container } else { RuntimeKind::Host },
        phase: Phase::Starting,
        pid: None,
        pgid: None,
        starttime: None,
        boot_id: None,
        peers_bin: bin.to_string_lossy().into_owned(),
        version: String::new(),
        request: Some(request.clone()),
        since: now,
        extra: serde_json::Map::new(),
    };
    change(config, name, |project| {
        if let Some(change) = reconcile(project, &seen, now) {
            change.apply(project, now);
        }
        project.runtime = Some(runtime.clone());
        project.last_request.clone_from(&request);
    })?;
    fault::point("start.intent-written");
    let logs = config.logs()?;
    let log_name = known.log_name();
    let log = runlog::open(&logs, &log_name, &run_id, &request, now)?;
    let launched = as_told(planned, &run_id, &request).and_then(|spawn| {
        let Spawn { program, args, env, cwd, .. } = spawn;
        let launch = Launch {
            program: program.into(),
            args,
            env,
            cwd,
            // From here on the lock belongs to the loop: it is free when that has ended.
            lock: lock.hand_over().map_err(|error| Finding::from(&error))?,
            log,
        };
        launch.start().map_err(|error| {
            let bin = term::inline(&runtime.peers_bin);
            Finding::new(
                exit::ENVIRONMENT,
                format!("`{bin}` cannot be started: {error}"),
                "PEERS_CTL_PEERS_BIN names another `peers`",
            )
        })
    });
    let mut launched = match launched {
        Ok(launched) => launched,
        Err(finding) => {
            forget(config, &known, &run_id)?;
            return Err(finding.into());
        }
    };
    fault::point("start.spawned");
    if let Err(finding) = note(config, name, &run_id, &launched) {
        end(&mut launched);
        return Err(finding.into());
    }
    fault::point("start.recorded");
    let warning = up(config, &known, &run_id, &mut launched, (&logs, &log_name))?;
    fault::point("start.done");
    drop(op);
    let log = logs.path().join(&log_name);
    Ok(Started { run_id, pid: launched.pid(), log, warning, launched })
}

/// The loop that a start with these options starts, and the container that it is put into. Nothing is started.
///
/// # Errors
/// A [`Finding`] where it cannot be put there.
pub fn planned(
    place: &Place,
    run_id: &RunId,
    (env, bin): (&Env, &Path),
    options: &StartOptions,
) -> Result<Spawn, Finding> {
    let StartOptions { request, work_dir, container, .. } = options;
    let work_dir = work_dir.as_deref().unwrap_or_else(|| place.work_dir());
    let stub = StubProgram::this_program().map_err(|error| Finding::plain(exit::BUG, error.to_string()))?;
    let mut spawn = Spawn::new(stub, bin, work_dir);
    spawn.env = env.vars().iter().filter(|(name, _)| !is_mark(name)).cloned().collect();
    match container {
        Some(container) => container(spawn, (run_id, request), place, env),
        None => Ok(spawn),
    }
}

/// The same with what the loop is told, as it is launched.
fn as_told(mut spawn: Spawn, run_id: &RunId, request: &RunRequest) -> Result<Spawn, Finding> {
    spawn.args = words(&spawn.cwd, run_id, request);
    if spawn.within.is_some() {
        spawn.args = spawn.words().map_err(|error| Finding::plain(exit::ENVIRONMENT, error.to_string()))?;
        spawn.program = spawn.stub.path().into();
    }
    Ok(spawn)
}

/// Whether a variable says of a process to which run it belongs: a loop that is started belongs to none.
fn is_mark(name: &OsStr) -> bool {
    [RUN_MARKER, ITERATION_MARKER, "PEERS_IN_TICK", "PEERS_PEER_NAME"].into_iter().any(|mark| name == mark)
}

/// Waits until the loop says that it is up, and notes that down. A warning where it has not said any.
fn up(
    config: &ConfigDir,
    known: &Project,
    run_id: &RunId,
    launched: &mut Launched,
    (logs, log): (&peers_sys::SafeDir, &str),
) -> Result<Option<String>, BootError> {
    let warning = match heard(launched) {
        Ok(warning) => warning,
        Err(unheard) => {
            // It has the run lock until it has ended, and whoever starts it again at once should get that.
            let (how, gone) = how(launched);
            if gone {
                // Where that cannot be written, the next look finds that nobody holds the run lock.
                let _seen_later = forget(config, known, run_id);
            }
            return Err(match unheard {
                Unheard::Failed(error) => error,
                Unheard::Died => died(&how, logs, (log, run_id)).into(),
            });
        }
    };
    fault::point("start.ready");
    let begun = clock::now();
    let noted = change(config, &known.name, |project| {
        if let Some(runtime) = project.runtime.as_mut().filter(|runtime| runtime.run_id == *run_id) {
            runtime.phase = Phase::Up;
            runtime.since = begun;
            project.stand(State::Running, begun);
            project.outcome = None;
            project.last_started_at = Some(begun);
        }
    });
    // The loop runs, whatever becomes of the note: the next look makes up for it.
    let unnoted = noted.err().map(|error| {
        format!(
            "it runs, and that could not be noted in the registry, which the next look does: {}",
            error.message
        )
    });
    let warnings: Vec<String> = warning.into_iter().chain(unnoted).collect();
    Ok((!warnings.is_empty()).then(|| warnings.join("; ")))
}

/// The project of this name.
///
/// # Errors
/// A [`Finding`], exit 3, that names one like it.
pub fn project(config: &ConfigDir, name: &ProjectName) -> Result<Project, Finding> {
    let loaded = registry::load(config)?;
    loaded.registry.get(name).cloned().ok_or_else(|| unknown(name.as_str(), &loaded.registry))
}

/// That there is no such project.
#[must_use]
pub fn unknown(name: &str, registry: &registry::Registry) -> Finding {
    let names: Vec<&str> = registry.projects().map(|project| project.name.as_str()).collect();
    let hint = match peers_sys::yaml::closest(name, names.iter().copied()) {
        Some(near) => Step::text("did you mean `{}`?", &[near]),
        None if names.is_empty() => "none is registered yet: `peers-ctl new PATH` sets one up, `peers-ctl add PATH` registers one that is".into(),
        None => "`peers-ctl list` shows those that there are".into(),
    };
    Finding::new(exit::INVALID, format!("no project is called `{}`", term::line(name, 80)), hint)
}

/// Where a project lies, for a loop that works there.
///
/// # Errors
/// A [`Finding`] where there is no directory, or another repository than was registered.
pub fn located(project: &Project, env: &Env) -> Result<Place, Finding> {
    Ground::located(project, env)
}

/// That a loop runs already, or somebody is about to start one. `who`: for people.
#[must_use]
pub fn already(name: &ProjectName, who: &str) -> Finding {
    Finding::new(
        exit::CONFLICT,
        format!("{name} is already running or starting: {who}"),
        Step::text(
            "`peers-ctl status {}` shows it; `peers-ctl stop {}` ends it",
            &[name.as_str(), name.as_str()],
        ),
    )
}

/// Refuses what the loop would refuse or stop for at once, then sets and resets what was asked for. The run lock is
/// held. Returns when the cap of money was given that is among the arguments.
fn budget(
    name: &ProjectName,
    place: &Place,
    env: &Env,
    options: &StartOptions,
) -> Result<Option<Timestamp>, BootError> {
    let mut disk = place.open_store_disk().map_err(Finding::from)?;
    let record =
        |ops: Vec<OperatorOp>| {
            peers_place::operator::record(place, &peers_place::operator::name(env), ops, |_| {
                Ok::<(), Finding>(())
            })
        };
    // What was handed to a loop that ended before it took it was said before what is asked for now.
    // One of a newer program is the loop's to refuse.
    if !commands::look(&mut disk).is_empty() && commands::refuse_newer(&mut disk).is_ok() {
        record(Vec::new())?;
    }
    let now = clock::now();
    let given = options.given_usd(now);
    let since = given.map(|given| given.at);
    let mut standing = match Standing::with(&mut disk, given, now) {
        Ok(standing) => standing,
        // The loop reports all that is wrong at once.
        Err(_) if options.max_runtime.is_none() && !options.reset_budget => return Ok(since),
        Err(error) => return Err(error),
    };
    let ops = acts(&mut standing, options, now);
    if let Some(finding) = standing.exhausted(name, now).filter(|_| !options.force) {
        return Err(finding.into());
    }
    if !ops.is_empty() {
        // A start that is refused changes no cap.
        startable(place, env, options)?;
        record(ops)?;
    }
    Ok(since)
}

/// Whether the loop would take this start where it is to work, as far as that can be seen from here.
fn startable(place: &Place, env: &Env, options: &StartOptions) -> Result<(), BootError> {
    let findings = refusals_there(place, env, options, false);
    if findings.is_empty() { Ok(()) } else { Err(BootError { findings }) }
}

/// What the loop would refuse this start for, as far as that can be seen from here.
fn refusals_there(place: &Place, env: &Env, options: &StartOptions, busy: bool) -> Vec<Finding> {
    let there = match &options.work_dir {
        Some(dir) => Place::locate(dir, env).and_then(|there| there.expect(Some(place.id()))),
        None => Ok(place.clone()),
    };
    match there {
        Ok(there) => {
            let mut request = options.request.clone();
            if options.container.is_some() {
                // Its programs are those of an image.
                request.wall.backend = Some(Backend::Podman);
            }
            let asked = RunOptions { request, ..RunOptions::default() };
            boot::start_refusals(&there, env, &asked, busy)
        }
        Err(error) => vec![error.into()],
    }
}

/// All that a start with these options would be refused for, as far as that can be seen from here; nothing is
/// changed. `place`: where the run lock is. While somebody holds that, what comes and goes with a turn is left out.
#[must_use]
pub fn refusals(name: &ProjectName, place: &Place, env: &Env, options: &StartOptions) -> Vec<Finding> {
    let busy = place.holder().is_ok_and(|holder| holder.is_some());
    let mut found = refusals_there(place, env, options, busy);
    found.extend(exhausted(name, place, options));
    found.extend(place.refuse_foreign_lock().err().map(Finding::from));
    found
}

/// What is done to the budget before the start, and how it stands then.
fn acts(standing: &mut Standing, options: &StartOptions, now: Timestamp) -> Vec<OperatorOp> {
    let mut ops = Vec::new();
    if options.reset_budget {
        ops.push(OperatorOp::BudgetReset);
        standing.after(OperatorOp::BudgetReset, now);
    }
    if let Some(step) = options.max_runtime {
        let caps = vec![standing.raise(Cap::MaxRuntimeS, step, now).set];
        let op = OperatorOp::BudgetSet { caps, until: None };
        standing.after(op.clone(), now);
        ops.push(op);
    }
    ops
}

/// Why a start with these options would be refused for the budget; nothing is changed.
fn exhausted(name: &ProjectName, place: &Place, options: &StartOptions) -> Option<Finding> {
    let now = clock::now();
    let mut disk = place.open_view_disk().ok()?;
    let given = options.given_usd(now);
    let mut standing = Standing::with(&mut disk, given, now).ok()?;
    let _ops = acts(&mut standing, options, now);
    standing.exhausted(name, now).filter(|_| !options.force)
}

/// `-C DIR run --detached RUN --request JSON`.
fn words(work_dir: &Path, run_id: &RunId, request: &RunRequest) -> Vec<OsString> {
    let request = json!(request).to_string();
    let [run, detached, asked] = ["run", "--detached", "--request"].map(OsString::from);
    vec!["-C".into(), work_dir.into(), run, detached, run_id.as_str().into(), asked, request.into()]
}

fn change(config: &ConfigDir, name: &ProjectName, with: impl FnOnce(&mut Project)) -> Result<(), Finding> {
    registry::edit(config, |registry| match registry.get_mut(name) {
        Some(project) => {
            with(project);
            Ok(())
        }
        None => Err(unknown(name.as_str(), registry)),
    })
}

/// Notes down who was started.
fn note(config: &ConfigDir, name: &ProjectName, run_id: &RunId, launched: &Launched) -> Result<(), Finding> {
    change(config, name, |project| {
        let Some(runtime) = project.runtime.as_mut().filter(|runtime| runtime.run_id == *run_id) else {
            return;
        };
        let identity = launched.identity();
        runtime.pid = Some(launched.pid());
        // It makes a group of its own.
        runtime.pgid = Some(launched.pid());
        runtime.starttime = identity.and_then(|identity| identity.start_time);
        runtime.boot_id =
            identity.and_then(|identity| identity.boot_id.as_ref()).map(|boot| boot.as_str().to_owned());
    })
}

/// Takes back that a run is about to begin. It is not what a restart is to repeat.
fn forget(config: &ConfigDir, known: &Project, run_id: &RunId) -> Result<(), Finding> {
    change(config, &known.name, |project| {
        if project.runtime.as_ref().is_some_and(|runtime| runtime.run_id == *run_id) {
            project.runtime = None;
            project.last_request.clone_from(&known.last_request);
        }
    })
}

enum Unheard {
    Failed(BootError),
    Died,
}

/// Waits for the word of the loop. A warning where it has not said any.
fn heard(launched: &mut Launched) -> Result<Option<String>, Unheard> {
    match launched.listen(READY) {
        Ok(Said::Ready) => Ok(None),
        Ok(Said::Failed { code, why }) => Err(Unheard::Failed(told(code, &why))),
        Ok(Said::Died) => Err(Unheard::Died),
        Ok(Said::Nothing) => Ok(Some(format!(
            "it has not said within {} seconds that it is up; a large repository is taken in at its first start. `peers-ctl logs` shows what it does",
            READY.as_secs()
        ))),
        Err(error) => Ok(Some(format!("whether it is up cannot be heard: {error}"))),
    }
}

/// What a loop said that did not start: our own error object.
fn told(code: u8, why: &str) -> BootError {
    let value: Option<Value> = serde_json::from_str(why).ok();
    let problems = value.as_ref().and_then(|value| value.get("problems")).and_then(Value::as_array);
    let text =
        |value: Option<&Value>| value.and_then(Value::as_str).map(|text| term::block(text).into_owned());
    let findings: Vec<Finding> = problems
        .into_iter()
        .flatten()
        .filter_map(|problem| {
            let hints = problem.get("hints").and_then(Value::as_array);
            Some(Finding {
                exit: code,
                message: text(problem.get("message"))?,
                hint: hints.and_then(|hints| text(hints.first())).map(Step::from),
            })
        })
        .collect();
    if findings.is_empty() {
        return Finding::plain(code, term::line(why, 400)).into();
    }
    BootError { findings }
}

/// How a process ended that does not come up, for people, and whether it is gone.
fn how(launched: &mut Launched) -> (String, bool) {
    let deadline = clock::mono().plus(ENDING);
    loop {
        match launched.ended() {
            Ok(Some(ended)) => {
                let how = match (ended.code, ended.signal) {
                    (Some(code), _) => format!("it exited with {code}"),
                    (None, Some(signal)) => format!("it died of signal {signal}"),
                    (None, None) => "it is gone".to_owned(),
                };
                return (how, true);
            }
            Ok(None) if clock::mono() < deadline => std::thread::sleep(Duration::from_millis(20)),
            Ok(None) => return ("it closed its output and goes on".to_owned(), false),
            Err(error) => return (format!("how it ended is not known ({error})"), false),
        }
    }
}

fn died(how: &str, logs: &peers_sys::SafeDir, (log, run): (&str, &RunId)) -> Finding {
    let lines = runlog::of_run(logs, log, run, SHOWN).unwrap_or_default();
    let mut message = format!("the loop did not come up: {how}");
    if lines.is_empty() {
        message.push_str(", and wrote nothing");
    }
    for line in lines {
        message.push_str("\n  ");
        message.push_str(&term::line(&line, 200));
    }
    Finding::new(
        exit::NEGATIVE,
        message,
        format!("its log: {}", term::inline(&logs.path().join(log).to_string_lossy())),
    )
}

/// Ends a loop that was started and cannot be noted down.
fn end(launched: &mut Launched) {
    let identity: Option<ProcIdentity> = launched.identity().cloned();
    for signal in [peers_sys::signal::Signal::Term, peers_sys::signal::Signal::Kill] {
        let deadline = clock::mono().plus(ENDING);
        if let Some(identity) = &identity {
            // It is our child and not reaped: nobody else can have its number.
            let _gone = peers_sys::signal::signal_verified(identity, signal);
        }
        while clock::mono() < deadline {
            if launched.ended().is_ok_and(|ended| ended.is_some()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
