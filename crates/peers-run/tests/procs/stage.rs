//! A repository with all that children need around it.

use std::ffi::OsStr;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use peers_core::machine::{Event, RunPeer};
use peers_model::config::{Config, Role};
use peers_model::goal::{GateRun, Goal, GoalKind, HardGoal};
use peers_model::outcome::PeerExit;
use peers_model::record::PeerSpawned;
use peers_model::verdict::{Judged, TreeKey};
use peers_model::{CommitId, GoalId, PeerName, ProjectId, RunId, TickNo, TreeId};
use peers_run::drive::on_this_thread;
use peers_run::env::Policy;
use peers_run::ports::{GateJob, Procs};
use peers_run::procs::{self, Arriving, Book, OpenBook, RealProcs, Site, SiteSpec, TurnMounts};
use peers_sandbox::Wall;
use peers_store::verdicts::Verdicts;
use peers_sys::SafeDir;
use peers_sys::env::Env;
use peers_sys::identity::{Pid, ProcIdentity, is_alive};
use peers_sys::spawn::StubProgram;

pub(crate) const DEADLINE: Duration = Duration::from_mins(1);
/// Runs until it is killed.
pub(crate) const FOREVER: &str = "exec tail -f /dev/null";
pub(crate) const TICK: TickNo = TickNo(7);
/// What a variable of [`NEVER`] holds.
pub(crate) const SENTINEL: &str = "sentinel";
/// Variables that no child gets, at least one of each kind, and one that nobody listed.
pub(crate) const NEVER: [&str; 40] = [
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_SSH_COMMAND",
    "GIT_EXTERNAL_DIFF",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_SYSTEM",
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "PYTHONSTARTUP",
    "PYTHONPATH",
    "NODE_OPTIONS",
    "PERL5OPT",
    "RUBYOPT",
    "JAVA_TOOL_OPTIONS",
    "SSH_AUTH_SOCK",
    "DBUS_SESSION_BUS_ADDRESS",
    "DBUS_SYSTEM_BUS_ADDRESS",
    "XDG_RUNTIME_DIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_PROFILE",
    "KUBECONFIG",
    "DOCKER_HOST",
    "GITHUB_TOKEN",
    "SOMETHING_ELSE",
];

/// A repository, its `.peers`, a scratch directory, and who runs in it.
pub(crate) struct Stage {
    dir: tempfile::TempDir,
    pub(crate) vars: Vec<(String, String)>,
    pub(crate) chosen: Policy,
    pub(crate) settings: String,
    pub(crate) goals: Vec<Goal>,
    pub(crate) subreaper: bool,
    pub(crate) verdicts: Verdicts,
    pub(crate) run: RunId,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["repo/.peers", "scratch", "home"] {
            std::fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        let home = dir.path().join("home").to_str().unwrap().to_owned();
        let path = format!("{}:/usr/bin:/bin", dir.path().join("repo/bin").display());
        Self {
            dir,
            vars: vec![("HOME".into(), home), ("PATH".into(), path)],
            chosen: Policy::default(),
            settings: String::new(),
            goals: Vec::new(),
            subreaper: false,
            verdicts: Verdicts::default(),
            // Other tests must not find our processes, nor we theirs.
            run: RunId::new(peers_sys::rand::hex::<8>().unwrap()).unwrap(),
        }
    }

    /// With limits of a peer, in seconds.
    pub(crate) fn limits(idle: u32, absolute: u32) -> Self {
        let mut stage = Self::new();
        stage.settings = format!("health: {{idle_timeout_s: {idle}, absolute_max_runtime_s: {absolute}}}\n");
        stage
    }

    /// The operator has all of [`NEVER`], and even chose them, but for the last.
    pub(crate) fn with_sentinels() -> Self {
        let mut stage = Self::new();
        stage.vars.extend(NEVER.map(|name| (name.into(), SENTINEL.into())));
        let listed = &NEVER[..NEVER.len() - 1];
        stage.chosen = Policy::passing(listed, listed);
        stage
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn repo(&self, name: &str) -> PathBuf {
        self.at("repo").join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.repo(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn scratch_is_tidy(&self) -> bool {
        let names = std::fs::read_dir(self.at("scratch")).unwrap();
        names.map(|e| e.unwrap().file_name()).all(|name| name.to_string_lossy().starts_with("gitconfig-"))
    }

    pub(crate) fn site(&self) -> Rc<Site> {
        let repo = self.at("repo").canonicalize().unwrap();
        Rc::new(Site::new(SiteSpec {
            outlets: Rc::default(),
            run_id: self.run.clone(),
            project: ProjectId::new("fedcba9876543210").unwrap(),
            peers: Some(SafeDir::open_root(repo.join(".peers")).unwrap()),
            repo,
            scratch: SafeDir::open_root(self.at("scratch")).unwrap(),
            stub: StubProgram::at(child_program()),
            program: child_program(),
            bin: "/opt/peers".into(),
            operator: Env::from_pairs(self.vars.clone()),
            chosen: self.chosen.clone(),
            subreaper: self.subreaper,
            verdicts: self.verdicts.clone(),
            wall: Wall::none(),
            git: Vec::new(),
            objects: Vec::new(),
            turn: TurnMounts::default(),
            packages: None,
            downloads: None,
            setup_pause: Some(Duration::ZERO),
        }))
    }

    /// The book with the peer `a` that runs `argv`, and `b`, which never runs.
    pub(crate) fn book(&self, peer: &str) -> Book {
        let text = format!("peers:\n- {{name: a, {peer}}}\n- {{name: b, argv: [nobody]}}\n{}", self.settings);
        let config: Config =
            peers_sys::yaml::from_str("config.yaml", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        Book::new(config, &self.goals).unwrap()
    }

    /// Runs `body` beside real processes.
    pub(crate) fn with<T, F: Future<Output = T>>(
        &self,
        book: Book,
        body: impl FnOnce(RealProcs, Arriving) -> F,
    ) -> T {
        let site = self.site();
        let (events, arriving) = procs::channel();
        on_this_thread(async {
            let procs = RealProcs::new(site, OpenBook::new(book), events);
            tokio::time::timeout(DEADLINE, body(procs, arriving)).await.expect("it ends before the deadline")
        })
        .unwrap()
    }

    /// A whole turn of a peer that gets `prompt`.
    pub(crate) fn turn(&self, peer: &str, prompt: &str) -> Turn {
        self.with(self.book(peer), async |mut procs, mut arriving| {
            procs.run_peer(&launch(prompt));
            Turn::over(&mut arriving).await
        })
    }

    /// A whole turn of a shell script as a peer of the tool `other`.
    pub(crate) fn shell(&self, script: &str) -> Turn {
        self.turn(&shell_peer(script), "the prompt\n")
    }

    /// Adds a gate that runs `cmd`.
    pub(crate) fn gate(&mut self, id: &str, cmd: &str, pass_when: &str) -> &mut HardGoal {
        let run = GateRun::Shell { cmd: cmd.into(), pass_when: pass_when.into() };
        self.goal(id, run)
    }

    pub(crate) fn goal(&mut self, id: &str, run: GateRun) -> &mut HardGoal {
        let hard = HardGoal::new(run);
        let kind = GoalKind::Hard(hard);
        self.goals.push(Goal {
            id: GoalId::new(id).unwrap(),
            description: None,
            group: None,
            weight: 1,
            kind,
        });
        match &mut self.goals.last_mut().unwrap().kind {
            GoalKind::Hard(hard) => hard,
            GoalKind::Soft(_) => unreachable!("it was made just above"),
        }
    }

    /// All gates, live.
    pub(crate) fn job(&self) -> GateJob {
        let gates = self.goals.iter().map(|goal| goal.id.clone()).collect();
        let key = TreeKey {
            head: CommitId::new("a".repeat(40)).unwrap(),
            tree: TreeId::new("b".repeat(40)).unwrap(),
        };
        GateJob::live(gates, key, TICK)
    }

    pub(crate) fn judge_job(&self, job: GateJob) -> Vec<Judged> {
        self.with(self.book("argv: [nobody]"), async |mut procs, mut arriving| {
            procs.judge(job);
            judged(&mut arriving).await
        })
    }

    /// The verdicts of all gates, live; the green ones that may be kept are.
    pub(crate) fn judge_and_keep(&mut self, job: GateJob) -> Vec<Judged> {
        let (verdicts, kept) = self.with(self.book("argv: [nobody]"), async |mut procs, mut arriving| {
            procs.judge(job);
            let verdicts = judged(&mut arriving).await;
            let kept = procs.stand(&verdicts);
            (verdicts, kept)
        });
        if let Some(kept) = kept {
            self.verdicts = kept;
        }
        verdicts
    }

    /// The verdicts of all gates, live.
    pub(crate) fn judge(&self) -> Vec<Judged> {
        self.judge_job(self.job())
    }
}

/// `tool` and `argv` of a peer that is a shell script.
pub(crate) fn shell_peer(script: &str) -> String {
    let argv = serde_json::to_string(&["/bin/sh", "-c", script]).unwrap();
    format!("tool: other, argv: {argv}")
}

pub(crate) fn launch(prompt: &str) -> RunPeer {
    RunPeer {
        tick: TICK,
        peer: PeerName::new("a").unwrap(),
        role: Role::Default,
        prompt: prompt.into(),
        runtime_left_s: None,
        ceiling: peers_core::machine::Ceiling::default(),
        skeptic: false,
    }
}

pub(crate) async fn judged(arriving: &mut Arriving) -> Vec<Judged> {
    match arriving.recv().await {
        Some(Event::Judged { verdicts, .. }) => verdicts,
        other => panic!("not a verdict: {other:?}"),
    }
}

/// What a turn reported.
pub(crate) struct Turn {
    pub(crate) spawned: Option<PeerSpawned>,
    pub(crate) exit: PeerExit,
}

impl Turn {
    pub(crate) async fn over(arriving: &mut Arriving) -> Self {
        let mut spawned = None;
        loop {
            match arriving.recv().await {
                Some(Event::PeerSpawned(seen)) => assert!(spawned.replace(seen).is_none(), "spawned twice"),
                Some(Event::PeerExited(exit)) => return Self { spawned, exit: *exit },
                other => panic!("not of a turn: {other:?}"),
            }
        }
    }
}

/// A process by the pid that it wrote to a file, as long as it lives.
pub(crate) fn process(path: &Path) -> Option<ProcIdentity> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let pid = Pid::new(text.trim().parse().unwrap()).unwrap();
    ProcIdentity::of(pid).ok().filter(is_alive)
}

/// Lets the runtime work until `done`.
pub(crate) async fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) fn child_program() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let path = exe.parent().and_then(Path::parent).unwrap().join("examples/run_child");
    assert!(path.is_file(), "build the examples first: {} is missing", path.display());
    path
}

/// Runs `body` in a process of its own, in which test `name` is the only one, and which adopts orphans.
pub(crate) fn isolated(name: &str, body: impl FnOnce()) {
    const VARIABLE: &str = "PEERS_RUN_TEST_ALONE";
    if std::env::var_os(VARIABLE).as_deref() == Some(OsStr::new(name)) {
        peers_sys::reap::become_subreaper().unwrap();
        return body();
    }
    let mut child = Command::new("/bin/sh")
        .args(["-c", "exec \"$@\" 2>&1", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(VARIABLE, name)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    // A sweep of another test may take its exit, so what it says decides.
    drop(child.wait());
    assert!(text.contains("test result: ok. 1 passed"), "{text}");
}
