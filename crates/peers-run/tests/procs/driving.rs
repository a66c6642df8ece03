//! The whole loop over real processes and files, with a repository that never changes, and signals
//! that its peer sends to it.

use std::path::{Path, PathBuf};

use peers_core::budget::Caps;
use peers_core::bugs::LedgerCommit;
use peers_core::cheat::TurnDiff;
use peers_core::machine::{Corrected, Harvest, HeadFacts, LoopConfig, Notice, Now};
use peers_core::prompt::LastHandoff;
use peers_core::state::{HandoffMark, State};
use peers_model::config::Budget;
use peers_model::outcome::StopReason;
use peers_model::record::{CorrectionPlanned, Digests, PeerRule, Rules};
use peers_model::verdict::TreeKey;
use peers_model::{CommitId, PeerName, RunId, TickNo, TreeId};
use peers_run::clock::SysClock;
use peers_run::drive::{drive, on_this_thread};
use peers_run::engine::Engine;
use peers_run::guard::FsGuard;
use peers_run::inputs::Signals;
use peers_run::ports::{Observer, Repo, RepoFacts, RepoFailure, Scopes, World};
use peers_run::procs::{self, OpenBook, RealProcs};
use peers_store::runs::RunRecord;
use peers_store::{Authors, FsDisk, Store, accept};
use peers_sys::SafeDir;

use crate::stage::{Stage, isolated, process, shell_peer};

/// A clean repository in which nothing ever happens.
struct Still;

fn head() -> CommitId {
    CommitId::new("a".repeat(40)).unwrap()
}

fn tree() -> TreeId {
    TreeId::new("b".repeat(40)).unwrap()
}

fn at() -> HeadFacts {
    HeadFacts {
        head: head(),
        head_tree: tree(),
        worktree: tree(),
        content: tree(),
        branch: Some("main".into()),
    }
}

impl Repo for Still {
    fn survey(&mut self, _: Option<&CommitId>, _: &Scopes, _: bool) -> Result<RepoFacts, RepoFailure> {
        Ok(RepoFacts {
            at: at(),
            dirty: Vec::new(),
            since: Vec::new(),
            intact: true,
            scopes: std::collections::BTreeMap::default(),
            git_state: None,
        })
    }
    fn diff(&mut self, _: &CommitId, _: &CommitId) -> Result<TurnDiff, RepoFailure> {
        Ok(TurnDiff::default())
    }
    fn key(&mut self) -> Result<TreeKey, RepoFailure> {
        Ok(TreeKey { head: head(), tree: tree() })
    }
    fn before_turn(&mut self, _: TickNo) -> Result<(), RepoFailure> {
        Ok(())
    }
    fn harvest(&mut self, _: TickNo, _: &CommitId, _: &Scopes) -> Result<Harvest, RepoFailure> {
        Ok(Harvest { at: Some(at()), ancestor: true, ..Harvest::default() })
    }
    fn correct(&mut self, _: &CorrectionPlanned, _: &PeerName, _: &RunId) -> Result<Corrected, RepoFailure> {
        Ok(Corrected { at: at(), own: Vec::new(), salvage: None, told: Vec::new() })
    }
    fn attest(&mut self, _: &[(CommitId, String)]) -> Result<(), RepoFailure> {
        Ok(())
    }
    fn commits_since(&mut self, _: &CommitId) -> Result<Vec<(CommitId, String)>, RepoFailure> {
        Ok(Vec::new())
    }
    fn ledger(&mut self, _: &Authors) -> Result<Vec<LedgerCommit>, RepoFailure> {
        Ok(Vec::new())
    }
    fn last_handoff(&mut self, _: &HandoffMark) -> Result<Option<LastHandoff>, RepoFailure> {
        Ok(None)
    }
    fn checkout(&mut self, _: &CommitId) -> Result<PathBuf, RepoFailure> {
        Err(RepoFailure::Git("nothing to check out".into()))
    }
    fn remove_checkout(&mut self, _: &Path) {}
}

struct Nobody;

impl Observer for Nobody {
    fn notice(&mut self, _: &Notice, _: &State, _: Now) {}
}

struct Real {
    repo: Still,
    procs: RealProcs,
    guard: FsGuard,
    clock: SysClock,
    observer: Nobody,
}

impl World for Real {
    type Disk = FsDisk;
    type Repo = Still;
    type Procs = RealProcs;
    type Guard = FsGuard;
    type Clock = SysClock;
    type Observer = Nobody;

    fn repo(&mut self) -> &mut Still {
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
    fn observer(&mut self) -> &mut Nobody {
        &mut self.observer
    }
}

fn config(run: &RunId, digests: &Digests) -> LoopConfig {
    let rule = |name: &str| PeerRule {
        name: PeerName::new(name).unwrap(),
        tool: "other".into(),
        role: peers_model::config::Role::Default,
    };
    LoopConfig {
        run_id: run.clone(),
        pid: std::process::id(),
        version: "test".into(),
        goals: Vec::new(),
        rules: Rules { peers: vec![rule("a"), rule("b")], max_retries: 9, ..Rules::default() },
        digests: digests.clone(),
        caps: Caps::new(Budget::default()),
        after: None,
        max_ticks: Some(3),
        stuck_after: 0,
        stuck_gates: Vec::new(),
        idle_after: 0,
        trial_s: 0,
        anyway: false,
        setup_hint: None,
        soft_required: true,
        overlap: false,
        strict_tree: false,
        setup_paths: Vec::new(),
        allow_no_gates: true,
        comm: peers_model::config::Comm::Git,
        prompt_max: 65_536,
        max_wait_s: 21_600,
        idle_s: 900,
        absolute_s: 7200,
        sandbox: "none".into(),
        torn: None,
        uncommitted: Vec::new(),
    }
}

fn record(run: &RunId, digests: &Digests) -> RunRecord {
    RunRecord {
        v: 1,
        run_id: run.clone(),
        argv: Vec::new(),
        request: peers_model::RunRequest::default(),
        version: "test".into(),
        sandbox: "none".into(),
        tier: 0,
        digests: digests.clone(),
        branch: None,
        workdir: String::new(),
        own_branch: false,
        into: None,
        base: None,
        pid: std::process::id(),
        starttime: None,
        boot_id: None,
        started_at: peers_sys::clock::now(),
        ready_at: None,
        ended_at: None,
        reason: None,
        detail: String::new(),
        exit_code: None,
        signal: None,
        iteration: 0,
        ticks_in_run: 0,
        head: None,
        proof: None,
        redactions: 0,
    }
}

/// Runs the loop with the script as peer `a`, which has every turn; the reason, and the state after.
fn run(stage: &Stage, script: &str) -> (StopReason, State) {
    std::fs::create_dir_all(stage.at("store")).unwrap();
    for name in ["goals.yaml", "config.yaml"] {
        std::fs::write(stage.repo(".peers").join(name), name).unwrap();
    }
    let digests = accept::digests(b"goals.yaml", b"config.yaml");
    let open = |path: PathBuf| SafeDir::open_root(path).unwrap();
    let (peers, store) = (open(stage.repo(".peers")), open(stage.at("store")));
    let guard = FsGuard::new(peers.try_clone().unwrap(), store.try_clone().unwrap());
    let (store, _) = Store::open(FsDisk::new(store, Some(peers))).unwrap();
    let (events, mut arriving) = procs::channel();
    let book = OpenBook::new(stage.book(&shell_peer(script)));
    let site = stage.site();
    on_this_thread(async {
        let procs = RealProcs::new(site, book, events);
        let world = Real { repo: Still, procs, guard, clock: SysClock, observer: Nobody };
        let mut signals = Signals::take().unwrap();
        let mut engine =
            Engine::new(config(&stage.run, &digests), store, world, record(&stage.run, &digests));
        engine.start().unwrap();
        let reason = drive(&mut engine, &mut arriving, &mut signals).await;
        (reason, engine.state().clone())
    })
    .unwrap()
}

#[test]
fn each_ending_signal_stops_the_peer_with_its_tree_and_leaves_a_closed_run() {
    isolated("driving::each_ending_signal_stops_the_peer_with_its_tree_and_leaves_a_closed_run", || {
        for (name, number) in [("TERM", 15), ("INT", 2), ("HUP", 1), ("QUIT", 3)] {
            let mut stage = Stage::limits(30, 60);
            stage.subreaper = true;
            let script = format!(
                "echo $$ > leader; sh -c 'echo $$ > child; exec tail -f /dev/null' &
                 while [ ! -s child ]; do :; done; kill -{name} $PPID; wait"
            );
            let (reason, after) = run(&stage, &script);
            assert_eq!(reason, StopReason::Interrupted(number), "{name}");
            for file in ["leader", "child"] {
                assert_eq!(process(&stage.repo(file)), None, "{name}: {file}");
            }
            assert!(after.open.is_none() && after.live_run().is_none(), "the tick and the run are closed");
            assert_eq!(after.ticks, TickNo(1));
            let text = stage.read(".peers/last-stop-reason.txt");
            assert!(text.starts_with("interrupted "), "{text}");
        }
    });
}

#[test]
fn a_second_signal_does_not_wait_for_a_peer_that_ignores_the_first() {
    isolated("driving::a_second_signal_does_not_wait_for_a_peer_that_ignores_the_first", || {
        let mut stage = Stage::limits(30, 60);
        stage.subreaper = true;
        let script = "trap 'echo asked > asked; kill -INT $PPID' TERM; echo $$ > leader; kill -TERM $PPID
                      while :; do tail -f /dev/null & wait; done";
        let (reason, _) = run(&stage, script);
        assert_eq!(reason, StopReason::Interrupted(15), "the first one names the exit");
        assert_eq!(stage.read("asked"), "asked\n");
        assert_eq!(process(&stage.repo("leader")), None);
    });
}

#[test]
fn sigusr1_lets_the_tick_end() {
    isolated("driving::sigusr1_lets_the_tick_end", || {
        let mut stage = Stage::limits(30, 60);
        stage.subreaper = true;
        let (reason, after) = run(&stage, "kill -USR1 $PPID; echo finished > finished");
        assert_eq!((reason, after.ticks), (StopReason::Drained, TickNo(1)));
        assert_eq!(stage.read("finished"), "finished\n");
    });
}

#[test]
fn a_loop_that_nobody_stops_goes_on_to_its_cap() {
    isolated("driving::a_loop_that_nobody_stops_goes_on_to_its_cap", || {
        let mut stage = Stage::limits(30, 60);
        stage.subreaper = true;
        let (reason, after) = run(&stage, "echo run >> runs");
        assert_eq!((reason, after.ticks), (StopReason::MaxTicks, TickNo(3)));
        assert_eq!(stage.read("runs").lines().count(), 3);
    });
}

#[test]
fn a_peer_that_touches_the_store_or_swaps_the_control_directory_ends_the_run() {
    isolated("driving::a_peer_that_touches_the_store_or_swaps_the_control_directory_ends_the_run", || {
        for (script, reason) in [
            ("echo '{}' >> ../store/journal/000001.jsonl", "tamper:store"),
            ("mv .peers .old && mkdir .peers && cp .old/*.yaml .peers", "tamper:peer-dir"),
            ("ln -s /etc .peers/hooks", "tamper:peer-dir"),
        ] {
            let mut stage = Stage::limits(30, 60);
            stage.subreaper = true;
            let (found, after) = run(&stage, script);
            assert_eq!((found.to_string().as_str(), after.ticks), (reason, TickNo(1)), "{script}");
        }
    });
}
