//! Real processes: peers, gates, leftovers, timers.
//!
//! [`RealProcs`] only hands out work; each peer and each batch of gates is a task of its own on the
//! one thread of the runtime, and what comes of it arrives as an [`Event`] on a channel. Start
//! reading at [`child`](self) (`child.rs`) for peers and at `gates.rs` for gates.

mod behind;
mod capture;
mod child;
mod command;
mod ending;
mod gate_log;
mod gates;
mod git_seen;
mod ground;
mod hooks;
mod judging;
mod kept;
mod launch;
mod leftover;
mod mode_dir;
mod output;
mod probe;
mod progress;
mod recover;
mod runtime;
mod setup;
mod streams;
mod tee;
mod transcript;
mod unwritten;
mod verify;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use peers_core::dsl::{DslError, Expr};
use peers_core::machine::{Event, RunPeer};
use peers_core::watch::StopHow;
use peers_model::config::{Config, Hook};
use peers_model::goal::{GateRun, Goal, HardGoal};
use peers_model::outcome::Usage;
use peers_model::record::{HookFailed, PeerSpawned};
use peers_model::verdict::Judged;
use peers_model::{GoalId, PeerName, ProjectId, RunId, TickNo, Timestamp};
use peers_sandbox::{Mount, Wall};
use peers_store::verdicts::Verdicts;
use peers_store::{artifacts, layout};
use peers_sys::SafeDir;
use peers_sys::clock;
use peers_sys::env::Env;
use peers_sys::redact::Rules;
use peers_sys::spawn::StubProgram;
use peers_tools::patterns::{DEFAULT_ERROR_PATTERNS, DEFAULT_HALT_PATTERNS};
use peers_tools::{PatternError, Patterns, Price, Prices};
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

pub use crate::tool_spec::tool_spec;
pub use behind::{Role, as_gate, as_peer};
pub use capture::Capture;
pub use gates::{Cancel, Home, WALL, behind, run_gates, surroundings};
pub use hooks::HookNews;
pub use launch::ALWAYS_HOLDS;
pub use launch::{Outlook, outlook, required_env};
pub use mode_dir::{Files, ModeFiles};
pub use probe::{Said, ask, program};
pub use progress::{Live, LiveGates, LiveHook, LivePeer, Progress};
pub use recover::reap_run;
pub use verify::{Extra, ExtraResult, run_extra};

use crate::env::{Host, Policy};
use crate::hooks::HookEvent;
use crate::outlets::Outlets;
use crate::ports::{GateJob, Procs};
use command::Company;
use kept::{Kept, Stood};
use leftover::Kin;

/// The end of everything is waited for so long when the loop stops.
const FINISH: Duration = Duration::from_secs(8);
/// A wait on the wall clock is looked at again after this, since that clock can be set.
const TIMER_STEP: Duration = Duration::from_secs(15);

/// What is mounted for a turn. Whoever makes its git directory says it here.
pub type TurnMounts = Rc<RefCell<Vec<Mount>>>;

/// What children are started with and by. The same for the whole process.
#[derive(Debug)]
pub struct SiteSpec {
    /// This run; outside of one a random id.
    pub run_id: RunId,
    /// The project.
    pub project: ProjectId,
    /// The work tree, canonical.
    pub repo: PathBuf,
    /// `.peers/`, for logs; absent where none are to be written.
    pub peers: Option<SafeDir>,
    /// A private directory of ours outside the repository, for files that children read.
    pub scratch: SafeDir,
    /// What becomes the child.
    pub stub: StubProgram,
    /// Our program, to run checks: `/proc/self/exe` where there is one.
    pub program: PathBuf,
    /// Our program under a name that gates can call it by.
    pub bin: PathBuf,
    /// The operator's environment.
    pub operator: Env,
    /// What of it the operator passes on by name.
    pub chosen: Policy,
    /// [`peers_sys::reap::become_subreaper`] has succeeded, so whatever outlives its parent is ours.
    pub subreaper: bool,
    /// Green answers of earlier processes.
    pub verdicts: Verdicts,
    /// The wall that they are behind.
    pub wall: Wall,
    /// The ways out of it.
    pub outlets: Rc<Outlets>,
    /// Directories of git that lie outside of the work tree.
    pub git: Vec<PathBuf>,
    /// What is mounted for the turn that is about to begin: the git directory that was made for it.
    pub turn: TurnMounts,
    /// Objects that the git directories of checkouts borrow.
    pub objects: Vec<PathBuf>,
    /// Where packages are kept that `setup` fetches; absent: where the operator keeps them.
    pub packages: Option<PathBuf>,
    /// Where packages are kept that agents fetch; absent: nobody fetches any.
    pub downloads: Option<SafeDir>,
    /// How long a `setup` that failed in a clean checkout waits before it is tried once more; absent = 30 s.
    pub setup_pause: Option<Duration>,
}

/// [`SiteSpec`], with what follows from it.
#[derive(Debug)]
pub struct Site {
    spec: SiteSpec,
    host: Host,
    kin: Rc<Kin>,
    secrets: Vec<String>,
    rules: Rules,
    kept: Kept,
    /// The kept copies that are set up, and with what.
    set_up: RefCell<BTreeMap<PathBuf, setup::SetUp>>,
    /// What those see in the place of git's configuration who have the git directory of the checkout.
    git_seen: RefCell<Vec<Mount>>,
    /// What `setup` left in the clean checkout of the gates that run there now.
    for_proof: RefCell<Option<setup::ForProof>>,
}

impl Site {
    /// Looks at the machine, once.
    #[must_use]
    pub fn new(mut spec: SiteSpec) -> Self {
        let mut host = Host::look(&spec.operator, &spec.repo);
        if let Some(packages) = &spec.packages {
            host.keep_packages_in(packages);
        }
        let secrets = host.secrets();
        let rules = Rules::new(&secrets);
        let kin = Rc::new(Kin::new(spec.run_id.clone(), spec.subreaper));
        let kept = Kept::new(std::mem::take(&mut spec.verdicts));
        Self {
            spec,
            host,
            kin,
            secrets,
            rules,
            kept,
            set_up: RefCell::default(),
            git_seen: RefCell::default(),
            for_proof: RefCell::default(),
        }
    }

    /// These verdicts stand: the tree did not move while they were found. Gives back the kept green answers
    /// where they are to be written anew.
    #[must_use]
    pub fn stand(&self, verdicts: &[Judged]) -> Option<Verdicts> {
        self.kept.stand(verdicts, Stood::Still, clock::now(), &self.spec.repo)
    }

    /// The same where the tree moved: no green one is kept, and one that is not drops what it refutes.
    #[must_use]
    pub fn fall(&self, verdicts: &[Judged]) -> Option<Verdicts> {
        self.kept.stand(verdicts, Stood::Moved, clock::now(), &self.spec.repo)
    }

    /// From here on no kept answer is taken.
    pub fn ask_anew(&self) {
        self.kept.ask_anew();
    }

    /// The redaction rules with the secrets of the operator's environment.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The settings of build tools that gates are led to.
    #[must_use]
    pub fn tool_settings(&self) -> Vec<PathBuf> {
        self.host.tool_settings()
    }

    /// Of these the ones that agents or gates can write.
    #[must_use]
    pub fn open_settings(&self) -> Vec<PathBuf> {
        let mut settings = self.host.tool_settings();
        if self.is_confined() {
            let Policy { peers, gates, .. } = &self.spec.chosen;
            let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
            let open = peers.write.iter().chain(&gates.write).chain([&self.spec.repo]);
            let open: Vec<PathBuf> = open.map(|dir| real(dir)).collect();
            // What is not there yet lies where its directory does.
            let place = |path: &Path| path.parent().map(real);
            settings.retain(|path| {
                let at = [Some(real(path)), place(path)];
                at.iter().flatten().any(|at| open.iter().any(|dir| at.starts_with(dir)))
            });
        }
        settings
    }

    /// The work tree.
    #[must_use]
    pub fn repo(&self) -> &Path {
        &self.spec.repo
    }
}

/// Configuration and goals in the form in which they are used, compiled once.
#[derive(Debug)]
pub struct Book {
    config: Config,
    modes: ModeFiles,
    gates: BTreeMap<GoalId, Gate>,
    order: Vec<GoalId>,
    patterns: Patterns,
    prices: Prices,
}

/// A hard goal, ready to run.
#[derive(Debug)]
pub(crate) struct Gate {
    hard: HardGoal,
    /// Of a shell gate.
    pass_when: Option<Expr>,
}

/// What does not compile.
#[derive(Debug, Error)]
pub enum BookError {
    /// A condition.
    #[error("goal `{goal}`: pass_when: {source}")]
    PassWhen {
        /// Of which goal.
        goal: GoalId,
        /// Why not.
        #[source]
        source: DslError,
    },
    /// A pattern.
    #[error(transparent)]
    Pattern(#[from] PatternError),
}

impl Book {
    /// Compiles.
    ///
    /// # Errors
    /// [`BookError`], the first in the order of the file.
    pub fn new(config: Config, goals: &[Goal]) -> Result<Self, BookError> {
        let mut gates = BTreeMap::new();
        let mut order = Vec::new();
        for goal in goals {
            let Some(hard) = goal.measured() else { continue };
            let pass_when = match &hard.run {
                GateRun::Shell { pass_when, .. } => Some(
                    Expr::parse(pass_when)
                        .map_err(|source| BookError::PassWhen { goal: goal.id.clone(), source })?,
                ),
                GateRun::Check { .. } => None,
            };
            if goal.gate().is_some() {
                order.push(goal.id.clone());
            }
            gates.insert(goal.id.clone(), Gate { hard: hard.clone(), pass_when });
        }
        let or = |given: &Option<Vec<String>>, usual: &[&str]| {
            given.clone().unwrap_or_else(|| usual.iter().map(|p| (*p).to_owned()).collect())
        };
        let patterns = Patterns::compile(
            &or(&config.health.error_patterns, &DEFAULT_ERROR_PATTERNS),
            &or(&config.health.halt_patterns, &DEFAULT_HALT_PATTERNS),
        )?;
        let prices = prices(&config.prices);
        Ok(Self { config, modes: ModeFiles::new(), gates, order, patterns, prices })
    }

    /// The same with the files of the modes that the gates come from.
    #[must_use]
    pub fn with_modes(mut self, modes: ModeFiles) -> Self {
        self.modes = modes;
        self
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The hard goals, in file order.
    #[must_use]
    pub fn gates(&self) -> &[GoalId] {
        &self.order
    }
}

/// The price table with the operator's entries over it.
fn prices(own: &BTreeMap<String, peers_model::config::Price>) -> Prices {
    let own = own.iter().map(|(model, price)| {
        let peers_model::config::Price { input, cached_input, cache_write, output } = *price;
        let rate = |rate: peers_model::config::Rate| rate.0;
        let price = Price {
            input: rate(input),
            cached_input: cached_input.map(rate),
            cache_write: cache_write.map(rate),
            output: rate(output),
        };
        (model.clone(), price)
    });
    Prices::builtin().with(own)
}

/// The book in force. Whoever reloads goals and configuration turns the page here; what runs already
/// keeps the old one.
#[derive(Debug, Clone)]
pub struct OpenBook(Rc<RefCell<Rc<Book>>>);

impl OpenBook {
    /// Opens a book.
    #[must_use]
    pub fn new(book: Book) -> Self {
        Self(Rc::new(RefCell::new(Rc::new(book))))
    }

    /// The one in force.
    #[must_use]
    pub fn read(&self) -> Rc<Book> {
        Rc::clone(&self.0.borrow())
    }

    /// From the next peer or batch of gates on, `book` is in force.
    pub fn turn(&self, book: Book) {
        self.0.replace(Rc::new(book));
    }
}

/// Where events go.
pub type Events = mpsc::UnboundedSender<Event>;
/// Where events come from.
pub type Arriving = mpsc::UnboundedReceiver<Event>;

/// The channel of events. Unbounded, since each thing that runs sends two at most.
#[must_use]
pub fn channel() -> (Events, Arriving) {
    mpsc::unbounded_channel()
}

/// Gates that run beside a peer.
#[derive(Debug)]
struct Overlapping {
    cancel: watch::Sender<bool>,
    task: JoinHandle<()>,
    gates: Vec<GoalId>,
}

/// Real processes and timers. Used inside a `LocalSet` of a current-thread runtime on the thread
/// that lives as long as the process: the kernel ends children with the thread that started them.
#[derive(Debug)]
pub struct RealProcs {
    site: Rc<Site>,
    book: OpenBook,
    events: Events,
    progress: Progress,
    peer: Option<(mpsc::UnboundedSender<StopHow>, JoinHandle<()>)>,
    gates: Option<(watch::Sender<bool>, JoinHandle<()>)>,
    behind: Option<Overlapping>,
    timer: Option<JoinHandle<()>>,
    hooks: hooks::Queue,
}

impl RealProcs {
    /// Nothing runs yet.
    #[must_use]
    pub fn new(site: Rc<Site>, book: OpenBook, events: Events) -> Self {
        Self {
            site,
            book,
            events,
            progress: Progress::default(),
            peer: None,
            gates: None,
            behind: None,
            timer: None,
            hooks: hooks::Queue::default(),
        }
    }

    /// What runs, for a live line.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Tells when a hook has ended.
    #[must_use]
    pub fn hook_news(&self) -> HookNews {
        self.hooks.news()
    }

    /// Ends what runs but hooks, and waits for it, a few seconds at most. Events that it still sends are nobody's.
    pub fn finish(&mut self) -> impl Future<Output = ()> + use<> {
        if let Some(timer) = self.timer.take() {
            timer.abort();
        }
        self.end_peer(true);
        self.cancel_gates();
        if let Some(behind) = &self.behind {
            // Nobody listens once they have ended.
            let _ended = behind.cancel.send(true);
        }
        let running = [
            self.peer.take().map(|(_, task)| task),
            self.gates.take().map(|(_, task)| task),
            self.behind.take().map(|behind| behind.task),
        ];
        async move {
            for task in running.into_iter().flatten() {
                if tokio::time::timeout(FINISH, task).await.is_err() {
                    tracing::warn!("something still runs that was told to end");
                }
            }
        }
    }
}

impl RealProcs {
    /// Ends gates beside a peer where they would be in the way of these.
    fn end_behind(&mut self, book: &Book, job: &GateJob) -> Option<JoinHandle<()>> {
        let behind = self.behind.take().filter(|behind| !behind.task.is_finished())?;
        let alone = |id: &GoalId| book.gates.get(id).is_some_and(|gate| gate.hard.serial);
        let clash = job.gates.iter().any(|id| behind.gates.contains(id) || alone(id))
            || behind.gates.iter().any(alone);
        if !clash {
            self.behind = Some(behind);
            return None;
        }
        // Nobody listens once they have ended.
        let _ended = behind.cancel.send(true);
        Some(behind.task)
    }
}

impl Procs for RealProcs {
    fn run_peer(&mut self, launch: &RunPeer) {
        let (control, orders) = mpsc::unbounded_channel();
        let turn = child::Turn {
            site: Rc::clone(&self.site),
            book: self.book.read(),
            launch: launch.clone(),
            events: self.events.clone(),
            progress: self.progress.clone(),
        };
        self.peer = Some((control, tokio::task::spawn_local(turn.run(orders))));
    }

    fn end_peer(&mut self, now: bool) {
        if let Some((control, _)) = &self.peer {
            let how = if now { StopHow::Now } else { StopHow::Graceful };
            // Nobody listens once it has ended, which is what was asked for.
            let _ended = control.send(how);
        }
    }

    fn judge(&mut self, job: GateJob) {
        let (cancel, cancelled) = watch::channel(false);
        let (site, book) = (Rc::clone(&self.site), self.book.read());
        let (events, progress) = (self.events.clone(), self.progress.clone());
        let in_the_way = self.end_behind(&book, &job);
        let task = tokio::task::spawn_local(async move {
            let from = clock::mono();
            if let Some(task) = in_the_way {
                // It was told to end; how it ended is its own event.
                let _ended = task.await;
            }
            let verdicts = gates::run_gates(&site, &book, &job, Cancel::by(cancelled), &progress).await;
            let took_ms = u64::try_from(clock::mono().since(from).as_millis()).unwrap_or(u64::MAX);
            // The receiver goes only with the whole loop.
            let _gone =
                events.send(Event::Judged { verdicts, took_ms, moved: false, changed: String::new() });
        });
        self.gates = Some((cancel, task));
    }

    fn judge_behind(&mut self, job: GateJob) {
        let (cancel, cancelled) = watch::channel(false);
        let (site, book, events) = (Rc::clone(&self.site), self.book.read(), self.events.clone());
        let (gates, key) = (job.gates.clone(), job.key.clone());
        let task = tokio::task::spawn_local(async move {
            let from = clock::mono();
            let verdicts = gates::run_behind(&site, &book, &job, Cancel::by(cancelled)).await;
            let took_ms = u64::try_from(clock::mono().since(from).as_millis()).unwrap_or(u64::MAX);
            // The receiver goes only with the whole loop.
            let _gone = events.send(Event::JudgedBehind { key, verdicts, took_ms });
        });
        self.behind = Some(Overlapping { cancel, task, gates });
    }

    fn stand(&mut self, verdicts: &[Judged]) -> Option<Verdicts> {
        self.site.stand(verdicts)
    }

    fn has_hook(&self, hook: Hook) -> bool {
        self.hooks.takes(&self.book.read(), hook)
    }

    fn run_hook(&mut self, event: &HookEvent) {
        let beside = self.behind.as_ref().is_some_and(|behind| !behind.task.is_finished());
        let company = if beside { Company::Others } else { Company::Alone };
        self.hooks.start(&self.site, &self.book.read(), event, (company, &self.progress));
    }

    fn hooks_run(&self) -> bool {
        self.hooks.runs()
    }

    fn end_hooks(&mut self) {
        self.hooks.end();
    }

    fn told_by_hooks(&mut self) -> Vec<HookFailed> {
        self.hooks.told()
    }

    fn cancel_gates(&mut self) {
        if let Some((cancel, _)) = &self.gates {
            // As above: nobody listens once they have ended.
            let _ended = cancel.send(true);
        }
    }

    fn reap(&mut self, run: Option<&RunId>, _: Option<TickNo>, spawned: Option<&PeerSpawned>) -> Vec<u32> {
        recover::reap(run, spawned)
    }

    fn last_sign(&mut self, tick: TickNo, peer: &PeerName) -> Option<Timestamp> {
        // What it said is written as it comes, by a process that died with the loop.
        let dir = self.site.spec.peers.as_ref()?.open_path(layout::peers::LOG_PEERS).ok()?;
        let changed = |suffix: &&str| {
            let stat = dir.stat(artifacts::tick_file(tick, peer.as_str(), suffix)).ok()??;
            Some(Timestamp::from_millis(stat.changed_ns.div_euclid(1_000_000)))
        };
        streams::SUFFIXES.iter().filter_map(changed).max()
    }

    fn used(&mut self, tick: TickNo, peer: &PeerName) -> Usage {
        let dir =
            self.site.spec.peers.as_ref().and_then(|peers| peers.open_path(layout::peers::LOG_PEERS).ok());
        dir.map(|dir| recover::used(&dir, &self.book.read(), tick, peer)).unwrap_or_default()
    }

    fn set_timer(&mut self, at: Timestamp) {
        if let Some(timer) = self.timer.take() {
            timer.abort();
        }
        let events = self.events.clone();
        self.timer = Some(tokio::task::spawn_local(async move {
            loop {
                let left = at.since(clock::now());
                if left.is_zero() {
                    break;
                }
                tokio::time::sleep(left.min(TIMER_STEP)).await;
            }
            // The receiver goes only with the whole loop.
            let _gone = events.send(Event::Timer);
        }));
    }
}
