//! The start itself.

use peers_model::request::Worktree;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use peers_core::classify_path::TestPaths;
use peers_core::machine::Notice;
use peers_git::{ControlDir, Git, PeerRepo};
use peers_model::config::{Config, Driver};
use peers_model::outcome::{StopReason, TamperKind};
use peers_model::record::{MoveKind, OperatorOp, OperatorRecord, Record};
use peers_model::{Backend, CommitId, RunId, exit};
use peers_place::anchor::{self, Tagged};
use peers_place::{Place, PlaceError};
use peers_store::project::Project;
use peers_store::runs::{self, RunRecord};
use peers_store::verdicts::Verdicts;
use peers_store::{Area, Disk, FsDisk, Store, commands, layout, project};
use peers_sys::detach::ReadyPipe;
use peers_sys::dir::{FileError, SafeDir};
use peers_sys::env::Env;
use peers_sys::error::chain;
use peers_sys::identity::ProcIdentity;
use peers_sys::lock::FileLock;
use peers_sys::spawn::StubProgram;
use peers_sys::term;
use serde_json::json;

use super::finding::{BootError, Finding};
use super::load::{Loaded, Reloader};
use super::modes::mode_files;
use super::options::{RunOptions, configured, setup_hint};
use super::preflight::{self, Examined};
use super::walls::{self, Found, Ours, downloads, outside_of, packages};
use super::watching::{TellingLock, Watching};
use super::{control, dirty};
use crate::cache;
use crate::clock::SysClock;
use crate::drive;
use crate::engine::Engine;
use crate::env::{Net, Policy};
use crate::gitrepo::{self, GitRepo, GitRepoParts, Turns, open_control, substrate};
use crate::guard::{FsGuard, ToolHomes};
use crate::inputs::Signals;
use crate::measure::Measurer;
use crate::outlets;
use crate::ports::{Clock as _, Guard as _, Observer, Sweep, World};
use crate::primer::Making;
use crate::procs::{self, Book, OpenBook, RealProcs, Site, SiteSpec, TurnMounts};

/// Bytes kept free for the last record on a full disk.
const RESERVE: usize = 64 * 1024;

/// What a loop is handed that `peers-ctl` started in the background.
#[derive(Debug)]
pub struct Handover {
    /// Its run, as whoever started it noted it down.
    pub run_id: RunId,
    /// The open file that is the held run lock; taken by [`run`].
    pub lock: Option<peers_sys::OpenFile>,
    /// Where it says that it is up. It is still there after a start that failed: whoever tells the user says it
    /// there too.
    pub ready: Option<ReadyPipe>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// Why it stopped.
    pub reason: StopReason,
    /// For people.
    pub detail: String,
    /// Ticks of this process.
    pub ticks: u64,
    /// Which run.
    pub run_id: RunId,
    /// Where it worked.
    pub work_dir: PathBuf,
}

/// The real world.
struct RealWorld {
    repo: GitRepo,
    procs: RealProcs,
    guard: FsGuard,
    clock: SysClock,
    observer: Watching,
}

impl World for RealWorld {
    type Disk = FsDisk;
    type Repo = GitRepo;
    type Procs = RealProcs;
    type Guard = FsGuard;
    type Clock = SysClock;
    type Observer = Watching;

    fn repo(&mut self) -> &mut GitRepo {
        &mut self.repo
    }
    fn procs(&mut self) -> &mut RealProcs {
        &mut self.procs
    }
    fn guard(&mut self) -> &mut FsGuard {
        &mut self.guard
    }
    fn clock(&mut self) -> &mut SysClock {
        &mut self.clock
    }
    fn observer(&mut self) -> &mut Watching {
        &mut self.observer
    }
}

/// Whoever typed a command that was not meant to be typed is told so.
fn not_handed_over(error: PlaceError) -> Finding {
    match error {
        PlaceError::File(FileError::Swapped { .. }) => Finding::new(
            exit::USAGE,
            "`--detached` is for `peers-ctl start`, which passes its lock on stdin; stdin is something else",
            "`peers-ctl start NAME` starts a loop in the background, `peers run` one in this terminal",
        ),
        error => error.into(),
    }
}

/// Runs the loop until it stops. One that was started in the background has a handover: the run lock is held already,
/// and when the loop is up it says so.
///
/// # Errors
/// [`BootError`] when it does not start, also when what was handed over is not the lock of this project; nothing was
/// spawned then.
pub fn run(
    options: &RunOptions,
    env: &Env,
    observer: Box<dyn Observer>,
    mut handover: Option<&mut Handover>,
) -> Result<RunSummary, BootError> {
    preflight::open_files()?;
    let place = Place::locate(&options.target, env)?;
    let adopted = match handover.as_mut() {
        Some(Handover { run_id, lock, .. }) => {
            lock.take().map(|lock| place.adopt_lock(lock, run_id)).transpose().map_err(not_handed_over)?
        }
        None => None,
    };
    let disk = match place.open_store_disk() {
        // Everything else would be said of a directory that was not meant.
        Err(error @ PlaceError::NotInitialised { top: Some(_), .. }) => {
            return Err(Finding::from(error).into());
        }
        disk => disk,
    };
    let mut found = Examined::files(&place, options, disk);
    let open = found.cut_short.as_ref().and_then(|state| state.open.as_ref());
    let held = control::mended(&place, adopted, open);
    found.machine(&place, env, options, preflight::git_program(env));
    let mut findings = found.findings();
    let chosen = Policy::load(env);
    if let Err(error) = &chosen {
        findings.push(Finding::plain(exit::INVALID, chain(error)));
    }
    let Examined { disk, loaded, repo, git, .. } = found;
    let (Some(mut disk), Some(loaded), Some(repo), Some(git), Ok(chosen), true) =
        (disk, loaded, repo, git, chosen, findings.is_empty())
    else {
        return Err(BootError { findings });
    };
    let chosen = chosen.narrowed(&loaded.config.sandbox);
    let book = Book::new(loaded.config.clone(), &loaded.goals)
        .map_err(|e| Finding::plain(exit::INVALID, format!("goals error: {}", chain(&e))))?
        .with_modes(mode_files(&mut disk, loaded.modes())?);
    let (stub, bin) = ours(options)?;
    let canary = place.store_dir().join(layout::store::PROJECT);
    let ours = Ours { stub: &stub, bin: &bin, canary: &canary };
    let usual = if options.unattended { walls::UNATTENDED } else { 0 };
    let found = walls::find(&chosen, options.request.wall, usual, env, ours)?;
    let lock = match held {
        Some(lock) => lock,
        None => place.lock("run")?,
    };
    let resumes = preflight::taken_up(&place, &mut disk, options)?;
    let ground = Ground { resumes, place, disk, loaded, repo, git, chosen, book, lock, found, stub, bin };
    drive::on_this_thread(ground.run(options, env, observer, handover))
        .map_err(|e| Finding::plain(exit::BUG, format!("the runtime does not start: {e}")))?
}

/// What a start stands on once every check has passed.
struct Ground {
    /// A turn that was cut short is taken up.
    resumes: bool,
    place: Place,
    disk: FsDisk,
    loaded: Loaded,
    repo: PeerRepo,
    git: Git,
    chosen: Policy,
    book: Book,
    lock: FileLock,
    found: Found,
    stub: StubProgram,
    bin: PathBuf,
}

impl Ground {
    #[expect(clippy::too_many_lines, reason = "one start, step by step, in the order that matters")]
    async fn run(
        self,
        options: &RunOptions,
        env: &Env,
        observer: Box<dyn Observer>,
        handover: Option<&mut Handover>,
    ) -> Result<RunSummary, BootError> {
        let Self { resumes, place, mut disk, loaded, repo, git, chosen, book, lock, found: walls, stub, bin } =
            self;
        let wall = walls.wall.backend();
        let remarks = walls.wall.remarks().iter().map(|remark| format!("sandbox {wall}: {remark}"));
        let remarks: Vec<String> = remarks.collect();
        let run_id = match &handover {
            Some(handover) => handover.run_id.clone(),
            None => new_run_id()?,
        };
        let store_dir = need(place.open_store()?, "the trusted store")?;
        let peers_dir = need(place.open_peers()?, ".peers")?;
        let mut guard = FsGuard::new(peers_dir, store_dir.try_clone()?);
        if let Err((_, what)) | Ok(Sweep { tamper: Some((_, what)), .. }) = guard.sweep() {
            return Err(Finding::new(
                exit::REFUSED,
                what,
                "peers did not create it: inspect it, fix or delete it, and start again",
            )
            .into());
        }
        let git_dir = store_dir.create_subdir("git")?;
        let found = project::read(&mut disk)?;
        let found = need(found, "project.json")?;
        let unanchored = found.base.is_none();
        let base = match &found.base {
            Some(base) => base.clone(),
            // Set up before the first commit. What agents made since the first run is theirs.
            None => match anchor::of_runs(&mut disk)? {
                Some(began) => began,
                None => repo.facts().head().map_err(|e| git_finding(&e))?.commit,
            },
        };
        let base = Some(base);
        let recorded = control::kept_copies(&mut disk);
        let (control, mended) = open_control(&place.control_git_path(), git, &repo, &recorded)
            .map_err(|e| Finding::plain(exit::BUG, chain(&e)))?;
        let mut control = control.with_excludes(peers_git::operator_excludes());

        let (place, repo, own_branch) =
            where_to_work((place, repo), &mut control, options, env, &run_id, base.as_ref())?;
        let peers_dir = need(place.open_peers()?, ".peers")?;
        let disk = FsDisk::new(store_dir.try_clone()?, Some(peers_dir.try_clone()?));
        let (mut store, mut report) = Store::open(disk)?;
        commands::record_waiting(&mut store, peers_sys::clock::now(), None)?;
        unfinished_move(&mut store, &repo, &place)?;
        let newest = runs::list(store.disk())?.0.pop();
        if newest.is_none_or(|run| run.workdir != place.work_dir().to_string_lossy()) {
            // The copy here was made by nobody yet, or stands where the last run that worked here left it.
            report.mirror = None;
        }
        // What an open turn left is its own: it is put back, or told as its peer's.
        let changes = if resumes {
            Ok((Vec::new(), None))
        } else {
            dirty::uncommitted(&mut control, &repo, base.as_ref())
        };
        if options.request.dry_run && !changes.as_ref().map_err(git_finding)?.0.is_empty() {
            return Err(Finding::new(
                exit::CONFLICT,
                "a dry run puts everything back, and there are uncommitted changes that it would touch",
                "commit them first, or leave out --dry-run",
            )
            .into());
        }
        let records = runs::all(store.disk())?;
        if resumes && let Some(open) = &store.state().open {
            let last = dirty::last_sign(&peers_dir, open);
            let run = store.state().run.as_ref().map(|run| run.id.clone());
            dirty::refuse_begun_since(repo.git_dir(), last, run.as_ref(), open.started.tick)?;
            dirty::refuse_switched(&repo, &place, open)?;
        }
        let killed = store.state().live_run().map(|run| run.id.clone());
        let was_killed = killed.is_some();
        let strays = killed.and_then(|run| control::strays(store.disk(), &run, &place));
        let (changes, refusal) = changes.unwrap_or_default();
        let theirs = dirty::are_operators(store.state());
        if let Some(refusal) = refusal.filter(|_| theirs) {
            return Err(refusal.into());
        }
        let kept = dirty::keep(&control, &repo, &changes, &run_id).map_err(|e| git_finding(&e))?;
        fresh_texts(store.disk());

        let identity = ProcIdentity::known_as();
        let content = json!({"run_id": run_id, "pid": ProcIdentity::known_pid(), "pgid": identity.as_ref().map(|i| i.pgid),
            "starttime": identity.as_ref().map(|i| i.start_time), "boot_id": peers_sys::clock::boot_id(),
            "kind": "host", "version": env!("CARGO_PKG_VERSION"), "started_at": peers_sys::clock::now()});
        let mut lock = TellingLock { lock, holder: content };
        lock.write(None)?;
        if store
            .disk()
            .len(Area::Store, layout::store::RESERVE)
            .map_err(|e| Finding::from(peers_store::StoreError::from(e)))?
            .is_none()
        {
            // Without the reserve a full disk costs one record; that is no reason not to start.
            let _kept =
                store.disk().publish(Area::Store, layout::store::RESERVE, &vec![b'.'; RESERVE], false);
        }
        if let Some(what) = &report.mirror {
            let record = Store::<FsDisk>::mirror_restored(None, what);
            store.append(peers_sys::clock::now(), Some(&run_id), &[record])?;
        }
        runs::prune(store.disk())?;
        let untagged = match &base {
            Some(at) if unanchored => {
                let anchored = Project { base: base.clone(), ..found };
                project::write(store.disk(), &anchored)?;
                anchor::tag(&repo, at, &substrate(peers_sys::clock::now()), true)
            }
            _ => Tagged::Already,
        };

        let head = repo.facts().head().map_err(|e| Finding::plain(exit::INVALID, chain(&e)))?;
        let mut cfg = configured(&loaded, options, &run_id, wall);
        cfg.torn = report.torn;
        cfg.setup_hint = setup_hint(&loaded, place.work_dir(), env);
        if theirs {
            cfg.uncommitted = changes.iter().map(|path| term::inline(path)).collect();
        }
        let began_at = head.commit.clone();
        let branch = head.branch.map(|b| b.strip_prefix("refs/heads/").unwrap_or(&b).to_owned());
        let last = store.state().run.as_ref().map(|run| run.id.clone());
        let last = records.iter().find(|record| Some(&record.run_id) == last.as_ref());
        let own_branch = own_branch.or_else(|| went_on(last?, &place, branch.as_deref()));
        let mut record = RunRecord {
            v: 1,
            run_id: run_id.clone(),
            argv: options.argv.clone(),
            request: options.request.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            sandbox: wall.name().into(),
            tier: wall.tier(),
            credentials: BTreeMap::new(),
            digests: loaded.digests.clone(),
            branch: branch.clone(),
            workdir: place.work_dir().to_string_lossy().into_owned(),
            own_branch: own_branch.is_some(),
            into: own_branch,
            base: Some(head.commit.clone()),
            pid: ProcIdentity::known_pid(),
            starttime: identity.as_ref().and_then(|i| i.start_time),
            boot_id: peers_sys::clock::boot_id().map(str::to_owned),
            started_at: peers_sys::clock::now(),
            ready_at: Some(peers_sys::clock::now()),
            ended_at: None,
            reason: None,
            detail: String::new(),
            exit_code: None,
            signal: None,
            iteration: store.state().ticks.0,
            ticks_in_run: 0,
            head: Some(head.commit),
            proof: None,
            redactions: 0,
        };
        let checkouts = peers_sys::dir::SafeDir::create_root(place.cache_dir())?;
        // Leftovers of a run that was killed.
        for old in [cache::PRISTINE, cache::GATE_TREE, cache::SCRATCH] {
            checkouts.remove_tree(old)?;
        }
        cache::clear_foreign(&checkouts)?;
        for run in cache::clear_stale(&checkouts)? {
            crate::procs::reap_run(&run);
        }
        let pristine = checkouts.create_subdir(cache::PRISTINE)?;
        let scratch = checkouts.create_subdir(cache::SCRATCH)?;
        let behind = walls.wall.with_settings(&scratch)?;
        let subreaper = peers_sys::reap::become_subreaper().is_ok();
        let verdicts = Verdicts::read(store.disk());
        let running = match &options.stub {
            Some(path) => path.clone(),
            None => peers_sys::env::running_exe().map_err(|e| Finding::plain(exit::BUG, e.to_string()))?,
        };
        let measurer = Measurer::new(stub.clone(), running.clone());
        let making = Making {
            stub: stub.clone(),
            program: running.clone(),
            control: place.control_git_path(),
            store: place.store_dir().to_owned(),
            head: began_at,
            roots: loaded.config.checks.layout.clone(),
        };
        let mut primers = FsDisk::new(store_dir.try_clone()?, Some(peers_dir.try_clone()?));
        // What a turn that was cut short committed is not known yet.
        let is_known = control.facts().has(&making.head);
        let gates_reach = (wall.has_own_network() && chosen.gates.net == Some(Net::Host))
            .then(|| Notice::Note("gates have the network of this machine (`gates.net: host`)".to_owned()));
        let (outlets, hints) = outlets::start(outlets::Start {
            env,
            policy: &chosen,
            peers: &loaded.config.peers,
            backend: wall,
            run: &run_id,
            stub: &stub,
            program: &bin,
            cache: &checkouts,
        })?;
        record.credentials = match wall {
            Backend::None => BTreeMap::new(),
            _ => outlets.credentials(&loaded.config.peers),
        };
        let all_inside = loaded.config.driver == Driver::Orchestrator;
        let mounts = TurnMounts::default();
        // What a turn left in its own git directory outlives a crash, and another wall.
        let turns = checkouts.create_subdir(cache::TURNS)?;
        let turns = Turns { dir: turns, make: wall.has_mounts(), all_inside, mounts: Rc::clone(&mounts) };
        let site = Rc::new(Site::new(SiteSpec {
            run_id: run_id.clone(),
            project: place.id().clone(),
            repo: place.work_dir().to_owned(),
            peers: Some(peers_dir.try_clone()?),
            scratch,
            program: stub.path().to_owned(),
            stub,
            // Behind a wall other processes are not seen, and so not their files.
            bin: walls::bin(wall, running, bin),
            operator: env.clone(),
            downloads: downloads(&behind, &chosen, &checkouts)?,
            chosen,
            subreaper,
            verdicts,
            git: outside_of(place.work_dir(), &repo),
            objects: vec![control.objects_dir(), repo.common_dir().join("objects")],
            packages: packages(&behind, &loaded.config, &checkouts)?,
            turn: Rc::clone(&mounts),
            wall: behind,
            outlets: Rc::new(outlets),
            setup_pause: options.setup_pause,
        }));
        // A run that was killed may have been behind no wall.
        let settings = if all_inside && !was_killed { site.open_settings() } else { site.tool_settings() };
        let mut homes = ToolHomes::look(settings);
        if was_killed {
            homes = homes.as_kept_in(&store_dir);
        }
        homes.keep(&store_dir)?;
        let open_book = OpenBook::new(book);
        let (events, mut arriving) = procs::channel();
        let real = RealProcs::new(site, open_book.clone(), events);
        let mut observer = Watching { observer, lock };
        observer.progress(real.progress());
        let mirror =
            report.mirror.map(|what| format!(
                ".peers/log/runs.jsonl, a copy of the journal for people, {what} and was written again; the journal itself is whole"
            ));
        let dirty = dirty::warning(&changes, theirs, kept.as_deref());
        let strays = strays.map(|names| {
            format!(
                "processes of nobody known work in this repository and began after the run that was killed: {names}; \
                 if they are left from it, end them: what they commit counts as the turn's in which it appears"
            )
        });
        let untagged = match untagged {
            Tagged::Not(why) => Some(why),
            Tagged::Already | Tagged::Now => None,
        };
        let better = (options.request.wall.backend.is_none() && !walls.better.is_empty()).then(|| {
            format!("a better sandbox than `{wall}` does not hold here: {}", walls.better.join("; "))
        });
        let waits = (loaded.config.pipeline_gates && !cfg.overlap).then(|| {
            "`pipeline_gates` takes effect only where peers are confined, and here they are not: expensive gates run between turns".to_owned()
        });
        let gates = gitrepo::changed_since_gates(&git_dir);
        let submodules = hollow(&repo, &loaded.config);
        let warnings = better
            .into_iter()
            .chain(remarks)
            .chain(waits)
            .chain(mirror)
            .chain(dirty)
            .chain(strays)
            .chain(untagged);
        let warnings = warnings.chain(gates).chain(submodules);
        let warnings = warnings.chain(mended.iter().cloned()).map(Notice::Warning);
        for notice in warnings.chain(hints).chain(gates_reach) {
            observer.notice(&notice, store.state(), SysClock.now());
        }
        let mut guard = FsGuard::new(peers_dir.try_clone()?, store_dir.try_clone()?)
            .with_homes(homes)
            .walled(wall != Backend::None && all_inside)
            .holding(TamperKind::Store, git_dir.try_clone()?);
        for (kind, path) in [
            (TamperKind::PeerDir, place.work_dir()),
            (TamperKind::PeerDir, place.project_dir()),
            (TamperKind::Git, repo.git_dir()),
            (TamperKind::Git, repo.common_dir()),
        ] {
            guard = guard.holding(kind, SafeDir::open_shared(path)?);
        }
        let parts = GitRepoParts {
            work_dir: repo.work_dir().to_owned(),
            common_dir: repo.common_dir().to_owned(),
            git_dir,
            pristine: pristine.path().to_owned(),
            base,
            tests: TestPaths::new(&loaded.config.bug_hunt.test_globs),
            measurer,
            kept: Some(FsDisk::new(store_dir.try_clone()?, None)),
            turns: Some(turns),
        };
        let mut git_repo = GitRepo::new(control, parts);
        for text in mended {
            git_repo.tell(text);
        }
        let world = RealWorld { repo: git_repo, procs: real, guard, clock: SysClock, observer };
        let reloader = Reloader {
            disk: FsDisk::new(store_dir, Some(peers_dir)),
            book: open_book,
            request: options.request.clone(),
        };
        let mut signals = Signals::take().map_err(|e| Finding::plain(exit::BUG, format!("signals: {e}")))?;
        let mut engine = Engine::new(cfg, store, world, record).with_reloader(Box::new(reloader));
        engine.start()?;
        if let Some(ready) = handover.and_then(|handover| handover.ready.take()) {
            ready.ready();
        }
        if is_known && let Some(why) = making.refresh(&options.request, &mut primers) {
            engine.tell(&Notice::Warning(why));
        }
        let reason = drive::drive(&mut engine, &mut arriving, &mut signals).await;
        engine.record_late();
        let summary = RunSummary {
            detail: engine.detail(),
            ticks: engine.state().run.as_ref().map_or(0, |r| r.ticks),
            reason,
            run_id,
            work_dir: place.work_dir().to_owned(),
        };
        // Held to the very end: lock held = running.
        drop(engine);
        Ok(summary)
    }
}

fn need<T>(found: Option<T>, what: &str) -> Result<T, Finding> {
    found.ok_or_else(|| Finding::plain(exit::BUG, format!("{what} vanished during the start")))
}

/// A landing or an undo that was cut short after it moved the branch left a work tree that looks as if
/// somebody had taken the work back: no peer may commit that.
fn unfinished_move(store: &mut Store<FsDisk>, repo: &PeerRepo, place: &Place) -> Result<(), Finding> {
    let Some(moving) = store.state().moving.clone() else { return Ok(()) };
    let what = &moving.what;
    let tip = repo.facts().reference(&format!("refs/heads/{}", what.branch)).map_err(|e| git_finding(&e))?;
    if tip.is_none() {
        return Err(super::gone::of_move(repo, place, what));
    }
    if tip.as_ref() == Some(&what.from) {
        // Nothing was moved. Closed, for the branch may well come to stand there while a turn is open, and
        // no landing and no undo follows up anything then.
        let record = OperatorRecord { op: OperatorOp::Moved, by: moving.by };
        return store
            .append(peers_sys::clock::now(), None, &[Record::Operator(record)])
            .map_err(Finding::from);
    }
    if tip.as_ref() != Some(&what.to) {
        return Ok(());
    }
    let (word, command) = match what.kind {
        MoveKind::Land => ("landing", "peers land".to_owned()),
        MoveKind::Undo => ("undo", format!("peers undo {}", what.run)),
    };
    Err(Finding::new(
        exit::CONFLICT,
        format!(
            "a {word} was cut short: `{}` was moved to {} and its work tree may not have followed",
            term::inline(&what.branch),
            what.to.short()
        ),
        format!("`{command}` finishes it"),
    ))
}

/// What becomes a child, and this program under a name at which it can be bound.
fn ours(options: &RunOptions) -> Result<(StubProgram, PathBuf), Finding> {
    match &options.stub {
        Some(path) => Ok((StubProgram::at(path), path.clone())),
        None => walls::this_program(),
    }
}

/// An id for a run.
///
/// # Errors
/// A [`Finding`] when the system gives no random bytes.
pub fn new_run_id() -> Result<RunId, Finding> {
    let hex =
        peers_sys::rand::hex::<8>().map_err(|e| Finding::plain(exit::BUG, format!("random bytes: {e}")))?;
    RunId::new(hex).map_err(|e| Finding::plain(exit::BUG, e.to_string()))
}

/// The last run's texts must not be taken for this one's.
fn fresh_texts<D: Disk>(disk: &mut D) {
    // Texts for people; one that stays is replaced at the end of the run.
    let _gone = disk.remove(Area::Peers, layout::peers::STOP_REASON);
    if let Ok(Some(_)) = disk.len(Area::Peers, layout::peers::HALTED) {
        let stamp = peers_sys::clock::now().to_string().replace([':', '.'], "-");
        let _moved = disk.rename(Area::Peers, layout::peers::HALTED, &format!("log/HALTED-{stamp}.md"));
    }
}

fn git_finding(error: &peers_git::GitError) -> Finding {
    let code =
        if matches!(error, peers_git::GitError::Exists { .. }) { exit::CONFLICT } else { exit::INVALID };
    Finding::plain(code, chain(error))
}

/// The branch to land into, for a run that goes on where the last one worked, with a branch of its own.
fn went_on(last: &RunRecord, place: &Place, branch: Option<&str>) -> Option<String> {
    let there = last.workdir == place.work_dir().to_string_lossy() && last.branch.as_deref() == branch;
    (there && branch.is_some() && last.own_branch).then(|| last.into.clone().unwrap_or_default())
}

/// Makes the branch or the worktree that was asked for. Returns the branch to land into.
fn where_to_work(
    (place, repo): (Place, PeerRepo),
    control: &mut ControlDir,
    options: &RunOptions,
    env: &Env,
    run_id: &RunId,
    base: Option<&CommitId>,
) -> Result<(Place, PeerRepo, Option<String>), BootError> {
    let git = |e: peers_git::GitError| git_finding(&e);
    if options.request.branch.is_none() && options.request.worktree.is_none() {
        return Ok((place, repo, None));
    }
    let imported = control.import(&repo, base).map_err(git)?;
    let head = imported.head;
    let who = substrate(peers_sys::clock::now());
    let from = repo.facts().head().map_err(git)?.branch;
    let from = from.map(|b| b.strip_prefix("refs/heads/").unwrap_or(&b).to_owned());
    if let Some(branch) = &options.request.branch {
        repo.create_branch(branch, &head, &who).map_err(git)?;
        repo.set_head_branch(branch, &who).map_err(git)?;
        return Ok((place, repo, from.or(Some(String::new()))));
    }
    let dir = match &options.request.worktree {
        Some(Worktree::At(dir)) => PathBuf::from(dir),
        Some(Worktree::Default) | None => place.worktrees_dir().join(run_id.as_str()),
    };
    peers_sys::dir::SafeDir::create_root(&dir)?;
    let branch = format!("peers/{run_id}");
    let linked = repo.add_linked(control, &dir, run_id.as_str(), &branch, &head, &who).map_err(git)?;
    let there = Place::locate(linked.work_dir(), env)?;
    lay_down_accepted(&place, &there)?;
    Ok((there, linked, from.or(Some(String::new()))))
}

/// A worktree of a run's own gets `.peers/` from the accepted bytes.
fn lay_down_accepted(place: &Place, there: &Place) -> Result<(), BootError> {
    let mut from = place.open_store_disk()?;
    let peers = there.open_work()?.create_subdir(peers_place::PEERS_DIR)?;
    for file in [layout::peers::CONFIG, layout::peers::GOALS] {
        let bytes = peers_store::accept::read_bytes(&mut from, file)?;
        peers.publish(file, &need(bytes, file)?)?;
    }
    for dir in ["log", "inbox"] {
        peers.create_subdir(dir)?;
    }
    Ok(())
}

/// A warning where gates miss in each checkout of ours what submodules hold in the work tree.
fn hollow(repo: &PeerRepo, config: &Config) -> Option<String> {
    let work = peers_sys::dir::SafeDir::open_shared(repo.work_dir()).ok()?;
    let there = work.stat(".gitmodules").ok()?.is_some();
    (there && config.setup.commands.is_empty()).then(|| {
        "this repository has submodules, which are empty in the checkouts of a proof: where gates need them, \
         let `setup` in .peers/config.yaml fetch them"
            .to_owned()
    })
}
