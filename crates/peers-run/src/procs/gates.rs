//! Gates: which run when, in what order their verdicts come, what is ended when all are done.

use std::future::pending;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use peers_model::goal::GateRun;
use peers_model::verdict::{Judged, Place, Verdict};
use peers_model::{GoalId, limits};
use peers_store::{artifacts, layout};
use peers_sys::clock;
use peers_sys::spawn::{Spawn, SpawnError};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::command::{Company, Running};
use super::gate_log::GateLog;
use super::judging;
use super::progress::Progress;
use super::{Book, Gate, Site};
use crate::env::{self, GateIdentity, Turn, Vars};
use crate::ports::GateJob;

/// Without a setting no more gates than this run at once.
const MOST: usize = 4;
/// Leftovers of a whole batch are hunted for so long.
const SWEEP: Duration = Duration::from_secs(5);

/// Tells running gates that nobody wants their answer any more.
#[derive(Debug, Clone)]
pub struct Cancel(Option<watch::Receiver<bool>>);

impl Cancel {
    /// Nobody will ask.
    #[must_use]
    pub fn never() -> Self {
        Self(None)
    }

    /// Asked by sending `true`.
    #[must_use]
    pub fn by(asked: watch::Receiver<bool>) -> Self {
        Self(Some(asked))
    }

    fn is_asked(&self) -> bool {
        self.0.as_ref().is_some_and(|asked| *asked.borrow())
    }

    /// Comes back once it is asked for. Cancel-safe.
    pub(super) async fn asked(&mut self) {
        if let Some(asked) = &mut self.0
            && asked.wait_for(|asked| *asked).await.is_ok()
        {
            return;
        }
        pending::<()>().await;
    }
}

/// Runs gates and judges them, in the order of the job, several at once. Cancelled ones get no verdict.
///
/// Used inside a `LocalSet`, as [`super::RealProcs`] is.
pub async fn run_gates(
    site: &Rc<Site>,
    book: &Rc<Book>,
    job: &GateJob,
    cancel: Cancel,
    progress: &Progress,
) -> Vec<Judged> {
    progress.gates(job.gates.len(), clock::mono());
    let parallel =
        book.config.goals.parallel.map_or_else(usual_parallel, |n| usize::try_from(n.get()).unwrap_or(MOST));
    let batch = Rc::new(Batch {
        site: Rc::clone(site),
        book: Rc::clone(book),
        job: job.clone(),
        tree: job.dir.clone().unwrap_or_else(|| site.spec.repo.clone()),
        git_config: write_git_config(site, job),
        cancel,
        progress: progress.clone(),
        company: if parallel == 1 || job.gates.len() == 1 { Company::Alone } else { Company::Others },
        places: Semaphore::new(parallel),
    });
    let mut running = JoinSet::new();
    for (at, gate) in job.gates.iter().enumerate() {
        let (batch, gate) = (Rc::clone(&batch), gate.clone());
        running.spawn_local(async move { (at, batch.one(gate).await) });
    }
    let mut found: Vec<(usize, Judged)> = Vec::new();
    while let Some(ended) = running.join_next().await {
        match ended {
            Ok((at, Some(judged))) => found.push((at, judged)),
            Ok((_, None)) => {}
            Err(error) => tracing::error!(%error, "a gate runner broke off"),
        }
    }
    found.sort_by_key(|(at, _)| *at);
    let mut verdicts: Vec<Judged> = found.into_iter().map(|(_, judged)| judged).collect();
    batch.clear(&mut verdicts).await;
    progress.idle();
    verdicts
}

fn usual_parallel() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MOST)
}

/// The git configuration of gates, or why there is none.
fn write_git_config(site: &Site, job: &GateJob) -> Result<PathBuf, String> {
    let name = "gitconfig-gates";
    let mut trees: Vec<&Path> = vec![&site.spec.repo];
    trees.extend(job.dir.as_deref());
    let scratch = &site.spec.scratch;
    match scratch.publish_unsynced(name, &env::gate_git_config(&trees)) {
        Ok(()) => Ok(scratch.path().join(name)),
        Err(error) => Err(format!("the git configuration for gates was not written: {error}")),
    }
}

/// Gates that were asked for together.
struct Batch {
    site: Rc<Site>,
    book: Rc<Book>,
    job: GateJob,
    tree: PathBuf,
    git_config: Result<PathBuf, String>,
    cancel: Cancel,
    progress: Progress,
    company: Company,
    places: Semaphore,
}

impl Batch {
    async fn one(&self, id: GoalId) -> Option<Judged> {
        // Never closed.
        let _place = self.places.acquire().await.ok()?;
        self.progress.gate_begun(&id);
        let judged = if self.cancel.is_asked() { None } else { self.judge(&id).await };
        self.progress.gate_done(&id);
        judged
    }

    async fn judge(&self, id: &GoalId) -> Option<Judged> {
        let from = clock::mono();
        let mut judged = Judged {
            goal: id.clone(),
            at: self.job.key.clone(),
            place: self.job.place,
            verdict: judging::error("there is no gate of this name in the goals in force"),
            attempts: 0,
            duration_ms: 0,
            leaked: 0,
        };
        if let Some(gate) = self.book.gates.get(id) {
            let home = Home::make(&self.site, gate);
            let mut log = GateLog::new(
                self.site.spec.peers.as_ref(),
                layout::peers::LOG_GATES,
                self.log_name(id),
                limits::GATE_LOG,
            );
            let most = gate.hard.retries.saturating_add(1);
            while judged.attempts < most {
                judged.attempts += 1;
                if judged.attempts > 1 {
                    log.attempt(judged.attempts);
                }
                let (verdict, leaked) = self.attempt(id, gate, &home, &mut log).await?;
                judged.verdict = verdict;
                judged.leaked = judged.leaked.saturating_add(leaked);
                // Neither a gate that could not be judged nor one at its limit gets better by haste.
                if !matches!(judged.verdict, Verdict::Fail { .. }) {
                    break;
                }
            }
        }
        judged.duration_ms = u64::try_from(clock::mono().since(from).as_millis()).unwrap_or(u64::MAX);
        Some(judged)
    }

    /// One attempt: the verdict and the number of leftovers; nothing if it was cancelled.
    async fn attempt(
        &self,
        id: &GoalId,
        gate: &Gate,
        home: &Home,
        log: &mut GateLog,
    ) -> Option<(Verdict, u32)> {
        let (git_config, home) = match (&self.git_config, &home.path) {
            (Ok(config), Ok(home)) => (config, home),
            (Err(why), _) | (_, Err(why)) => return Some((judging::error(why), 0)),
        };
        let spawn = self.spawn(id, gate, git_config, home);
        let own = gate.hard.timeout_s.map(u64::from);
        let seconds = own.unwrap_or_else(|| self.book.config.goals.timeout_s.get().into());
        let running = Running {
            site: &self.site,
            tick: self.job.tick,
            limit: Duration::from_secs(seconds),
            cancel: self.cancel.clone(),
            company: self.company,
        };
        let finished = match running.run(&spawn, log).await {
            Ok(finished) => finished,
            Err(error) => return Some((not_started(&error), 0)),
        };
        if finished.cancelled {
            return None;
        }
        let verdict = match &gate.pass_when {
            Some(pass_when) => judging::shell(&finished, pass_when, &self.tree, &self.site.rules),
            None => judging::check(&finished, &self.site.rules),
        };
        Some((verdict, finished.leaked))
    }

    fn spawn(&self, id: &GoalId, gate: &Gate, git_config: &Path, home: &Path) -> Spawn {
        let spec = &self.site.spec;
        let turn = Turn { run: &spec.run_id, tick: self.job.tick, git_config };
        let about = GateIdentity {
            goal: Some(id),
            tree: &self.tree,
            bin: &spec.bin,
            home,
            wanted: &self.book.config.goals.env,
        };
        match &gate.hard.run {
            GateRun::Shell { cmd, .. } => {
                shell(&self.site, &self.tree, cmd, env::of_gate(&self.site.host, &spec.chosen, turn, about))
            }
            GateRun::Check { name, args } => {
                let mut spawn = Spawn::new(spec.stub.clone(), &spec.program, &self.tree);
                spawn.args = vec![
                    "check".into(),
                    name.into(),
                    "--repo".into(),
                    spec.repo.clone().into(),
                    "--json".into(),
                ];
                if self.job.place == Place::Pristine {
                    spawn.args.extend(["--head".into(), self.job.key.head.as_str().into()]);
                }
                spawn.args.extend(args.iter().map(Into::into));
                spawn.env = env::of_check(&self.site.host, turn, about);
                spawn
            }
        }
    }

    fn log_name(&self, id: &GoalId) -> String {
        artifacts::tick_file(self.job.tick, id.as_str(), artifacts::gate_log_suffix(self.job.place))
    }

    /// Ends what is left when all gates are done, and says whose it was.
    async fn clear(&self, verdicts: &mut [Judged]) {
        let kin = &self.site.kin;
        if !kin.strangers() {
            return;
        }
        let owners = kin.owners(self.job.tick);
        let cleared = kin.clear(self.job.tick, None, SWEEP).await;
        for (owner, count) in owners {
            if let Some(judged) = verdicts.iter_mut().find(|judged| Some(&judged.goal) == owner.as_ref()) {
                judged.leaked = judged.leaked.saturating_add(count);
            } else {
                tracing::warn!(count, "processes that some gate left behind were ended");
            }
        }
        for pid in cleared.survivors {
            tracing::warn!(pid, "a process that a gate left behind could not be ended");
        }
    }
}

/// `/bin/sh -c cmd` in `tree`.
pub(super) fn shell(site: &Site, tree: &Path, cmd: &str, vars: Vars) -> Spawn {
    let mut spawn = Spawn::new(site.spec.stub.clone(), "/bin/sh", tree);
    spawn.args = vec!["-c".into(), cmd.into()];
    spawn.env = vars;
    spawn
}

pub(super) fn not_started(error: &SpawnError) -> Verdict {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    judging::error(&format!("the gate could not be started: {error}{cause}"))
}

/// The home directory of one gate, made for it and removed after it.
pub(super) struct Home {
    site: Rc<Site>,
    name: String,
    pub(super) path: Result<PathBuf, String>,
}

impl Home {
    fn make(site: &Rc<Site>, gate: &Gate) -> Self {
        if let GateRun::Shell { .. } = gate.hard.run {
            return Self::fresh(site);
        }
        // A check is our own program and has its operator's.
        Self { site: Rc::clone(site), name: String::new(), path: Ok(PathBuf::new()) }
    }

    pub(super) fn fresh(site: &Rc<Site>) -> Self {
        let random = match peers_sys::rand::hex::<8>() {
            Ok(random) => random,
            Err(error) => {
                return Self { site: Rc::clone(site), name: String::new(), path: Err(error.to_string()) };
            }
        };
        let name = format!("home-{random}");
        let path = match site.spec.scratch.create_subdir(&name) {
            Ok(dir) => Ok(dir.path().to_owned()),
            Err(error) => Err(format!("a home directory for a gate was not made: {error}")),
        };
        Self { site: Rc::clone(site), name, path }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            // What stays lies in a private directory that is emptied at the next start.
            let _removed = self.site.spec.scratch.remove_tree(&self.name);
        }
    }
}
