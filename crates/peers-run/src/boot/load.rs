//! Config and goals as accepted, and what follows from them.

use std::path::Path;

use peers_core::lint::{self, Warning};
use peers_core::machine::LoopConfig;
use peers_core::plan::{self, Meta};
use peers_git::PeerRepo;
use peers_model::config::{Config, Driver, OnPeerUnavailable, Setup};
use peers_model::goal::{CHECK_NAMES, Course, GateRun, Goal, GoalKind, HardGoal, PLACEHOLDER, SHIPPED_GATES};
use peers_model::record::{Digests, GateRule, PeerRule, Rules, SoftRuleEntry};
use peers_model::step::CourseRules;
use peers_model::{RunRequest, exit, limits};
use peers_store::accept::{self, Accepted, AcceptedMode};
use peers_store::contracts;
use peers_store::load::{self, LoadError, Source};
use peers_store::{Area, Disk, DiskErrorKind, StoreError, layout};
use peers_sys::digest::sha256_hex;
use peers_sys::env::Env;
use peers_sys::term;

use super::finding::{BootError, Finding};
use super::modes::mode_files;
use super::options::setup_hint;
use crate::engine::Reload;
use crate::env::{Host, LeftOut};
use crate::procs::{Book, OpenBook};

/// What to do about files that are not what was accepted.
pub const ACCEPT: &str = "review with `peers goals diff`, then run `peers goals accept`";

const ACCEPT_OR_RESTORE: &str = "review with `peers goals diff`, then run `peers goals accept`, or undo the change with `peers goals restore`";

/// What the operator wrote, and whether it is what was accepted.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// `config.yaml`.
    pub config: Config,
    /// `goals.yaml`.
    pub goals: Vec<Goal>,
    /// What it says besides goals.
    pub course: Course,
    /// Ticks in a row with every gate green that the frozen plan asks for.
    pub quiet_ticks: u32,
    /// Digests of the files as they are.
    pub digests: Digests,
    /// What was accepted; absent when nothing ever was, or when that cannot be read.
    pub accepted: Option<Accepted>,
    /// Why what was accepted cannot be read; accepting anew mends it.
    pub damaged: Option<Finding>,
}

impl Loaded {
    /// The files that are not what was accepted.
    #[must_use]
    pub fn unaccepted(&self) -> Vec<&'static str> {
        let Some(accepted) = &self.accepted else { return vec![layout::peers::GOALS, layout::peers::CONFIG] };
        let pairs = [
            (layout::peers::GOALS, accepted.digests.goals != self.digests.goals),
            (layout::peers::CONFIG, accepted.digests.config != self.digests.config),
        ];
        pairs.into_iter().filter(|(_, differs)| *differs).map(|(file, _)| file).collect()
    }

    /// Whether `config.yaml` is what was accepted: only then may what it names be started.
    #[must_use]
    pub fn may_start(&self) -> bool {
        self.accepted.as_ref().is_some_and(|accepted| accepted.digests.config == self.digests.config)
    }

    /// Why nothing that `config.yaml` names may be started, as a start of the loop tells it; `None` where it may.
    #[must_use]
    pub fn refused_start(&self) -> Option<Finding> {
        if self.may_start() {
            return None;
        }
        self.damaged.clone().or(self.refused_change())
    }

    /// [`Loaded::changed`] as a refusal.
    #[must_use]
    pub fn refused_change(&self) -> Option<Finding> {
        // Before the first acceptance there is nothing to restore.
        let hint = if self.accepted.is_some() { ACCEPT_OR_RESTORE } else { ACCEPT };
        self.changed().map(|changed| Finding::new(exit::REFUSED, changed, hint))
    }

    /// That files are not what was accepted, for people; `None` when they are.
    #[must_use]
    pub fn changed(&self) -> Option<String> {
        let files = self.unaccepted();
        let how = match files.len() {
            _ if self.accepted.is_none() && self.damaged.is_none() => "were never accepted in this clone",
            1 => "changed since it was accepted",
            _ => "changed since they were accepted",
        };
        (!files.is_empty()).then(|| format!("{} {how}", files.join(" and ")))
    }

    /// Takes the files for accepted if this is their digest ([`accept::together`]): for a machine without the
    /// store in which an acceptance stands. Where there is one, its word stands, and the digest has to fit too.
    ///
    /// # Errors
    /// A [`Finding`], exit 5, when it is another one.
    pub fn named_as_accepted(&mut self, digest: &str) -> Result<(), Finding> {
        let found = accept::together(&self.digests);
        if !digest.eq_ignore_ascii_case(&found) {
            return Err(Finding::new(
                exit::REFUSED,
                format!("goals and config here have the digest {found}, not {}", term::line(digest, 80)),
                "`peers info` prints the right one where they were accepted; before you name another one, look at what changed in .peers/goals.yaml and .peers/config.yaml",
            ));
        }
        if self.accepted.is_none() {
            let (digests, at) = (self.digests.clone(), peers_sys::clock::now());
            self.accepted = Some(Accepted {
                v: 1,
                digests,
                at,
                by: "--accept-digest".into(),
                note: None,
                modes: Vec::new(),
                contracts: None,
            });
        }
        Ok(())
    }

    /// The modes that the accepted goals were made from.
    #[must_use]
    pub fn modes(&self) -> &[AcceptedMode] {
        self.accepted.as_ref().map(|accepted| accepted.modes.as_slice()).unwrap_or_default()
    }

    /// What is allowed and yet most likely not meant.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        load::goal_warnings(&self.goals)
            .into_iter()
            .chain(self.no_own_gate())
            .chain(self.unwatched())
            .collect()
    }

    /// Gates whose program no clean checkout of this work tree has, as long as nothing sets one up.
    #[must_use]
    pub fn not_in_checkouts(&self, work_dir: &Path, env: &Env) -> Vec<Warning> {
        let Some(repo) = PeerRepo::open(work_dir).ok().filter(|_| self.config.setup.commands.is_empty())
        else {
            return Vec::new();
        };
        let excludes = peers_git::operator_excludes();
        let ignored = |path: &str| repo.ignored_dir(path, excludes.as_deref());
        lint::not_in_checkouts(&self.goals, &ignored, setup_hint(self, work_dir, env).as_deref())
    }

    /// The directories on the operator's `PATH` that gates of this work tree do not get.
    #[must_use]
    pub fn left_out(&self, work_dir: &Path, env: &Env) -> Vec<LeftOut> {
        Host::look(env, work_dir).left_out(self.goals.iter().filter_map(Goal::gate))
    }

    /// That nothing of the project itself is measured, which a start refuses.
    fn no_own_gate(&self) -> Option<String> {
        let gates = rules(&self.config, &self.goals, &RunRequest::default()).gates;
        let none = "no hard gate of your own: `peers run` refuses it";
        gates.iter().all(|gate| gate.shipped).then(|| {
            if gates.iter().any(|gate| gate.id.as_str() == PLACEHOLDER) {
                format!("{none}; replace `{PLACEHOLDER}` by a gate that runs your tests")
            } else {
                format!("{none}; add a gate that runs your tests")
            }
        })
    }

    /// That no gate ever stops a run as stuck, where that was asked for by ids that no gate has. Before there
    /// is a gate of the operator's own nothing can be named.
    #[must_use]
    pub fn unwatched(&self) -> Option<String> {
        // Without the key no gate of one's own is left out.
        let watched = self.config.goals.stuck_halt_gates.as_deref()?;
        let gates = rules(&self.config, &self.goals, &RunRequest::default()).gates;
        let asked = self.config.goals.stuck_halt_after > 0 && !watched.is_empty();
        if !asked || gates.iter().all(|gate| gate.shipped || gate.reads_history) {
            return None;
        }
        if gates.iter().any(|gate| watched.contains(&gate.id)) {
            return None;
        }
        let names: Vec<&str> = watched.iter().map(peers_model::GoalId::as_str).collect();
        let (names, none) = match names.as_slice() {
            [one] => ((*one).to_owned(), "has no such gate"),
            [first, second] => (format!("{first} and {second}"), "has neither"),
            more => (more.join(", "), "has none of these"),
        };
        Some(format!(
            "no gate is watched for being stuck: `goals.stuck_halt_gates` names {names}, and goals.yaml {none}; name your gates there, or leave the key out"
        ))
    }
}

fn bytes<D: Disk>(disk: &mut D, file: &str) -> Result<Vec<u8>, Finding> {
    match disk.read(Area::Peers, file, limits::CONFIG) {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => Err(Finding::new(
            exit::INVALID,
            format!(".peers/{file} is missing"),
            "`peers init --upgrade` lays it down again as it was accepted",
        )),
        Err(error) => {
            let code = if error.kind == DiskErrorKind::Unsafe { exit::REFUSED } else { exit::INVALID };
            Err(Finding::plain(code, format!(".peers/{file}: {}", error.detail)))
        }
    }
}

/// Reads and checks `config.yaml` and `goals.yaml`. Both are reported when both are wrong.
///
/// # Errors
/// [`BootError`].
pub fn load<D: Disk>(disk: &mut D) -> Result<Loaded, BootError> {
    let Acceptance { accepted, damaged } = acceptance(disk)?;
    let config_bytes = bytes(disk, layout::peers::CONFIG);
    let goal_bytes = bytes(disk, layout::peers::GOALS);
    let mut findings = Vec::new();
    let config =
        config_bytes.as_ref().map_err(Clone::clone).and_then(|b| parse_config(b).map_err(Finding::from));
    let peers = config.as_ref().map_or(2, |c| c.peers.len());
    let goals =
        goal_bytes.as_ref().map_err(Clone::clone).and_then(|b| parse_goals(b, peers).map_err(Finding::from));
    match (config, goals, config_bytes, goal_bytes) {
        (Ok(config), Ok(goals), Ok(config_bytes), Ok(goal_bytes)) => {
            return Ok(Loaded {
                config,
                goals,
                course: course(&goal_bytes)?,
                quiet_ticks: quiet_ticks(disk),
                digests: accept::digests(&goal_bytes, &config_bytes),
                accepted,
                damaged,
            });
        }
        (config, goals, ..) => {
            findings.extend(config.err());
            findings.extend(goals.err());
        }
    }
    Err(BootError { findings })
}

/// The configuration that stands accepted. What the file in `.peers/` says now is not looked at: agents can write
/// there.
///
/// # Errors
/// A [`Finding`] where nothing was accepted, or where that cannot be read.
pub fn accepted_config<D: Disk>(disk: &mut D) -> Result<Config, Finding> {
    let bytes = match accept::read(disk)? {
        Some(_) => accept::read_bytes(disk, layout::peers::CONFIG)?,
        None => None,
    };
    let Some(bytes) = bytes else {
        return Err(Finding::new(exit::REFUSED, "nothing was accepted yet", ACCEPT));
    };
    Ok(load::load_accepted_config(load::decode(Source::Config, &bytes)?)?)
}

/// What stands accepted, whatever the files are now.
#[derive(Debug, Clone)]
pub struct Acceptance {
    /// What was accepted; absent when nothing ever was, or when that cannot be read.
    pub accepted: Option<Accepted>,
    /// Why what was accepted cannot be read; accepting anew mends it.
    pub damaged: Option<Finding>,
}

impl Acceptance {
    /// Whether nothing was ever accepted.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.accepted.is_none() && self.damaged.is_none()
    }
}

/// Reads what was accepted.
///
/// # Errors
/// [`BootError`] where accepting anew would not mend it.
pub fn acceptance<D: Disk>(disk: &mut D) -> Result<Acceptance, BootError> {
    match accept::sound(disk).and_then(|()| accept::read(disk)) {
        Ok(accepted) => Ok(Acceptance { accepted, damaged: None }),
        Err(error) => Ok(Acceptance { accepted: None, damaged: Some(accept_anew(error)?) }),
    }
}

/// What stands against a start, where accepting anew mends it; else the error.
fn accept_anew(error: StoreError) -> Result<Finding, Finding> {
    let mendable = match &error {
        StoreError::File { .. } => true,
        _ => error.disk().is_some_and(|d| matches!(d.kind, DiskErrorKind::Unsafe | DiskErrorKind::TooLarge)),
    };
    let mut finding = Finding::from(error);
    if !mendable {
        return Err(finding);
    }
    finding.hint =
        Some("review .peers/goals.yaml and .peers/config.yaml, then run `peers goals accept`".into());
    Ok(finding)
}

fn parse_config(bytes: &[u8]) -> Result<Config, LoadError> {
    load::load_config(load::decode(Source::Config, bytes)?)
}

fn parse_goals(bytes: &[u8], peers: usize) -> Result<Vec<Goal>, LoadError> {
    load::load_goals(load::decode(Source::Goals, bytes)?, peers, &CHECK_NAMES)
}

fn course(bytes: &[u8]) -> Result<Course, Finding> {
    Ok(load::load_course(load::decode(Source::Goals, bytes)?)?)
}

/// What the frozen plan says; the default where none is, or where it cannot be read: a gate tells that.
fn quiet_ticks<D: Disk>(disk: &mut D) -> u32 {
    let frozen = contracts::read(disk).ok().flatten();
    let plan = frozen.and_then(|frozen| plan::parse(&frozen.plan).plan);
    plan.map_or(Meta::CONVERGENCE_N, |plan| plan.meta.convergence_n)
}

/// Phases and quiet ticks, as far as folding needs them.
pub(super) fn course_rules(course: &Course, quiet_ticks: u32) -> Option<Box<CourseRules>> {
    let Course { phases, settle } = course;
    let open_ended = phases.last().is_some_and(|phase| phase.artifact.is_none());
    let phases: Vec<String> = phases.iter().map(|phase| phase.name.clone()).collect();
    let asks = !phases.is_empty() || !settle.is_empty();
    asks.then(|| Box::new(CourseRules { phases, open_ended, settle: settle.clone(), quiet_ticks }))
}

/// The rules that a run freezes.
#[must_use]
pub fn rules(config: &Config, goals: &[Goal], request: &RunRequest) -> Rules {
    let peers = config.peers.iter().map(|p| PeerRule {
        name: p.name.clone(),
        tool: p.tool_name().to_owned(),
        role: p.role,
    });
    let mut gates = Vec::new();
    let mut soft_goals = Vec::new();
    for goal in goals {
        match &goal.kind {
            GoalKind::Hard(hard) => gates.push(gate_rule(goal, hard, &config.setup)),
            GoalKind::Soft(soft) => {
                let check = soft.check.as_ref().map(|check| definition(check, &config.setup));
                soft_goals.push(SoftRuleEntry {
                    id: goal.id.clone(),
                    rule: soft.rule,
                    every: soft.every,
                    check,
                    needs: soft.needs.clone(),
                });
            }
        }
    }
    let continue_without_peer = match config.on_peer_unavailable {
        OnPeerUnavailable::Auto => config.peers.len() > 2,
        OnPeerUnavailable::Halt => false,
        OnPeerUnavailable::Continue => true,
    };
    let skeptic = &config.skeptic;
    Rules {
        peers: peers.collect(),
        max_retries: config.max_retries,
        recovery_interval: config.recovery_interval,
        gates,
        soft: soft_goals,
        continue_without_peer,
        skeptic_rounds: if skeptic.enabled && !request.no_skeptic { skeptic.rounds.get() } else { 0 },
        skeptic_attempts: skeptic.max_attempts.get(),
        unwatched: config.driver != Driver::Orchestrator,
        dry_run: request.dry_run,
        course: None,
    }
}

/// What a checkout is set up with is part of what its verdict is about.
fn definition(hard: &HardGoal, setup: &Setup) -> String {
    sha256_hex(format!("{hard:?} {setup:?}").as_bytes())
}

fn gate_rule(goal: &Goal, hard: &HardGoal, setup: &Setup) -> GateRule {
    let (reads_history, idle) = match &hard.run {
        GateRun::Check { .. } => (true, true),
        GateRun::Shell { cmd, .. } => (false, cmd.trim() == "false"),
    };
    GateRule {
        id: goal.id.clone(),
        tree: hard.tree,
        reads_history,
        // A shipped gate that the operator gave a command of his own measures something.
        shipped: idle && SHIPPED_GATES.contains(&goal.id.as_str()),
        digest: definition(hard, setup),
        expensive: hard.expensive,
        group: goal.group.clone(),
        weight: goal.weight,
    }
}

/// Loads goals and config again when an acceptance arrives while the loop runs.
pub(super) struct Reloader {
    pub(super) disk: peers_store::FsDisk,
    pub(super) book: OpenBook,
    pub(super) request: RunRequest,
}

impl Reload for Reloader {
    fn reload(&mut self, old: &LoopConfig) -> Result<LoopConfig, String> {
        let loaded = load(&mut self.disk).map_err(|e| e.to_string())?;
        let modes = mode_files(&mut self.disk, loaded.modes()).map_err(|finding| finding.message)?;
        let book =
            Book::new(loaded.config.clone(), &loaded.goals).map_err(|e| e.to_string())?.with_modes(modes);
        let mut cfg = old.clone();
        cfg.rules = rules(&loaded.config, &loaded.goals, &self.request);
        cfg.rules.course = course_rules(&loaded.course, loaded.quiet_ticks);
        cfg.goals.clone_from(&loaded.goals);
        cfg.course.clone_from(&loaded.course);
        cfg.digests = loaded.digests.clone();
        super::options::settings(&mut cfg, &loaded.config);
        self.book.turn(book);
        Ok(cfg)
    }
}
