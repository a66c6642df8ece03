//! Scenarios: what the peers do, what the gates say, how the loop is configured.

use peers_core::budget::Caps;
use peers_core::machine::LoopConfig;
use peers_model::config::{Budget, Comm, Role};
use peers_model::goal::{Course, GateRun, Goal, GoalKind, HardGoal, Phase, SoftGoal, TreeChoice};
use peers_model::outcome::{ApiClass, ExitClass};
use peers_model::record::{Digests, GateRule, PeerRule, Rules, SoftRuleEntry};
use peers_model::review::SoftRule;
use peers_model::step::CourseRules;
use peers_model::{GoalId, PeerName, RunId};

use crate::repo::Tree;

macro_rules! plan {
    ($mark:literal) => {
        concat!(
            "# Feature: it\n## Meta\nsurfaces: [lib]\nacceptance: sh tests/accept.sh\n",
            "acceptance_files: tests/accept.sh\n## Steps\n- [",
            $mark,
            "] [STEP-1] Do it\n  - touches: src/fix.rs\n"
        )
    };
}

/// The plan of those scenarios that have one.
pub const PLAN: &str = "PLAN.md";
const PLAN_OPEN: &str = plan!(" ");
/// The same with its step checked off.
pub const PLAN_DONE: &str = plan!("x");

/// One thing that a peer does. Each is a point of the schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Writes a file.
    Write(&'static str, &'static str),
    /// Writes a file as it never was before.
    Renew(&'static str),
    /// Puts notes about the first step of the plan into its drop box: `impl` or `review`.
    HandIn(&'static str),
    /// Commits the work tree with this message, `{me}` in it replaced by the peer's name.
    Commit(String),
    /// Makes an ignored file.
    Ignored,
    /// Takes the newest commit away.
    DropTip,
    /// Switches to another branch.
    Switch(&'static str),
    /// Breaks the git directory.
    BreakGit,
    /// Runs until it is ended.
    Hang,
    /// Exits like this.
    Exit(ExitClass, ApiClass),
}

/// A turn of a peer.
pub type Turn = Vec<Act>;

/// What a gate measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Green when the file has that content.
    Has(&'static str, &'static str),
    /// As `Has`; the first run of it in the work tree also makes a commit.
    HasAndCommits(&'static str, &'static str),
    /// As `Has`, or when an ignored file is there (never in a checkout).
    HasOrIgnored(&'static str, &'static str),
    /// Always green.
    True,
    /// Never green.
    False,
    /// Cannot be judged.
    Unjudged,
}

/// What an operator does, by the number of the step in which it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Stop cheaply.
    Graceful,
    /// Stop after the tick.
    AfterTick,
}

/// A scenario.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What the first spawned peers do; then they behave well.
    pub turns: Vec<Turn>,
    /// The real gates.
    pub gates: Vec<(&'static str, Measure)>,
    /// A soft goal.
    pub soft: bool,
    /// Peers.
    pub peers: usize,
    /// Tick cap of a process.
    pub max_ticks: Option<u64>,
    /// Iteration cap.
    pub max_iterations: u64,
    /// Dry run.
    pub dry_run: bool,
    /// Ticks of each peer that may get nowhere.
    pub idle_after: u32,
    /// Gates are tried in a clean checkout before the first turn.
    pub trial: bool,
    /// An operator's request at that step.
    pub ask: Option<(u64, Ask)>,
    /// What the scenario must end with when nothing fails, as text.
    pub ends: &'static str,
}

impl Scenario {
    /// A boring one: two peers, one gate that wants `fix = yes`.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            turns: Vec::new(),
            gates: vec![("tests-pass", Measure::Has("src/fix.rs", "yes"))],
            soft: false,
            peers: 2,
            max_ticks: Some(8),
            max_iterations: 12,
            dry_run: false,
            idle_after: 3,
            trial: false,
            ask: None,
            ends: "complete",
        }
    }

    /// The tree at the start.
    #[must_use]
    pub fn tree(&self) -> Tree {
        let plan = self.has_plan().then(|| (PLAN.to_owned(), PLAN_OPEN.to_owned()));
        [("src/lib.rs".to_owned(), "old".to_owned())].into_iter().chain(plan).collect()
    }

    /// Turns are given out by a plan of one step: a gate asks for it.
    #[must_use]
    pub fn has_plan(&self) -> bool {
        self.gates.iter().any(|(_, measure)| matches!(measure, Measure::Has(PLAN, _)))
    }

    fn course(&self) -> Course {
        let phase = Phase {
            name: "implementation".into(),
            prompt: "build".into(),
            artifact: None,
            least_bytes: 1,
            sections: Vec::new(),
            each_step: false,
            steps: true,
        };
        Course { phases: if self.has_plan() { vec![phase] } else { Vec::new() }, settle: Vec::new() }
    }

    /// Frozen rules.
    #[must_use]
    pub fn rules(&self) -> Rules {
        let names = ["ann", "bob", "cyd", "dan"];
        Rules {
            peers: names
                .iter()
                .take(self.peers)
                .filter_map(|n| PeerName::new(*n).ok())
                .map(|name| PeerRule { name, tool: "sim".into(), role: Role::Default })
                .collect(),
            max_retries: 1,
            recovery_interval: 8,
            gates: self
                .gates
                .iter()
                .filter_map(|(id, measure)| {
                    Some(GateRule {
                        id: GoalId::new(*id).ok()?,
                        tree: TreeChoice::Auto,
                        reads_history: false,
                        shipped: false,
                        digest: format!("{measure:?}"),
                        expensive: false,
                        group: None,
                        weight: 1,
                    })
                })
                .collect(),
            soft: self.soft_rule().into_iter().collect(),
            continue_without_peer: self.peers > 2,
            skeptic_rounds: 1,
            skeptic_attempts: 3,
            unwatched: false,
            dry_run: self.dry_run,
            course: self.has_plan().then(|| {
                Box::new(CourseRules { phases: vec!["implementation".into()], ..Default::default() })
            }),
        }
    }

    fn soft_rule(&self) -> Option<SoftRuleEntry> {
        self.soft.then(|| GoalId::new("reviewed").ok()).flatten().map(|id| SoftRuleEntry {
            id,
            rule: SoftRule::Other { needed: 1 },
            every: 1,
            check: None,
            needs: Vec::new(),
        })
    }

    fn goals(&self) -> Vec<Goal> {
        let hard = self.gates.iter().filter_map(|(id, _)| {
            let run = GateRun::Shell { cmd: "true".into(), pass_when: "exit_code == 0".into() };
            let kind = GoalKind::Hard(HardGoal::new(run));
            Some(Goal { id: GoalId::new(*id).ok()?, description: None, group: None, weight: 1, kind })
        });
        let soft = self.soft_rule().map(|s| Goal {
            id: s.id,
            description: None,
            group: None,
            weight: 1,
            kind: GoalKind::Soft(SoftGoal {
                prompt: "review".into(),
                rule: s.rule,
                every: s.every,
                paths: Vec::new(),
                check: None,
                needs: Vec::new(),
            }),
        });
        hard.chain(soft).collect()
    }

    /// The loop's configuration for the `n`-th process.
    ///
    /// # Panics
    /// Never: the id has the right length.
    #[must_use]
    pub fn config(&self, n: u64, digests: Digests) -> LoopConfig {
        let max_iterations = std::num::NonZeroU64::new(self.max_iterations);
        let budget = Budget { max_iterations, ..Budget::default() };
        LoopConfig {
            run_id: run_id(n),
            pid: 100,
            version: "sim".into(),
            goals: self.goals(),
            rules: self.rules(),
            digests,
            course: self.course(),
            checkpoint: false,
            caps: Caps::new(budget),
            after: None,
            max_ticks: self.max_ticks,
            stuck_after: 5,
            stuck_gates: GoalId::new("tests-pass").into_iter().collect(),
            idle_after: self.idle_after,
            trial_s: if self.trial { 600 } else { 0 },
            anyway: false,
            setup_hint: None,
            soft_required: true,
            overlap: false,
            strict_tree: false,
            setup_paths: Vec::new(),
            allow_no_gates: false,
            comm: Comm::Git,
            prompt_max: 65_536,
            max_wait_s: 21_600,
            idle_s: 900,
            absolute_s: 7200,
            sandbox: "sim".into(),
            torn: None,
            uncommitted: Vec::new(),
        }
    }
}

fn run_id(n: u64) -> RunId {
    RunId::new(format!("{n:016x}")).unwrap_or_else(|_| crate::fault::crash())
}

/// A commit message that hands off.
#[must_use]
pub fn handoff(subject: &str, peer: &PeerName, more: &str) -> String {
    format!(
        "{subject}\n\n{more}## Self-Review\nlooked at it\n\nPeer: {peer}\nPeer-Status: handoff\nSelf-Review: pass\n"
    )
}

/// A handoff that objects in a review, and changes nothing.
fn objection() -> String {
    let ann = PeerName::new("ann").unwrap_or_else(|_| crate::fault::crash());
    let review = "## Review\n{\"pass\": false, \"checked\": [\"src/lib.rs:1\"]}\n\n";
    handoff("no", &ann, review) + "Peer-Review-Of: reviewed\n"
}

const ONE_ASSERTION: &str = "def test_a():\n    assert f() == 1\n";
const TWO_ASSERTIONS: &str = "def test_a():\n    assert f() == 1\n    assert g() == 2\n";

/// The catalogue.
#[must_use]
#[expect(clippy::too_many_lines, reason = "a list, entry by entry")]
pub fn catalogue() -> Vec<Scenario> {
    use Act::{BreakGit, Commit, DropTip, Exit, Hang, Ignored, Switch, Write};
    let ok = || Exit(ExitClass::Ok, ApiClass::None);
    let done = |peer: &str, what: &str| {
        let peer = PeerName::new(peer).unwrap_or_else(|_| crate::fault::crash());
        Commit(handoff(what, &peer, ""))
    };
    let base = Scenario::new;
    vec![
        Scenario { trial: true, ..base("straight") },
        Scenario { soft: true, max_ticks: Some(10), ..base("with-review") },
        Scenario { turns: vec![vec![ok()], vec![Write("src/a.rs", "1"), ok()]], ..base("nothing-committed") },
        Scenario {
            turns: vec![vec![Write("src/a.rs", "1"), Commit("wip".into()), ok()]],
            ..base("no-handoff")
        },
        Scenario {
            turns: vec![
                vec![Write("tests/test_a.py", TWO_ASSERTIONS), done("ann", "tests only"), ok()],
                vec![Write("tests/b.rs", "1"), done("bob", "tests only"), ok()],
                vec![
                    Write("tests/test_a.py", ONE_ASSERTION),
                    Write("src/a.rs", "1"),
                    done("ann", "weaker"),
                    ok(),
                ],
            ],
            ..base("reverted")
        },
        Scenario {
            turns: vec![vec![DropTip, Write("src/a.rs", "1"), done("ann", "rewrote"), ok()]],
            ..base("history-rewritten")
        },
        Scenario { turns: vec![vec![DropTip, ok()]], ..base("history-dropped") },
        Scenario {
            turns: vec![vec![Switch("other"), Write("src/a.rs", "1"), done("ann", "elsewhere"), ok()]],
            ..base("branch-switched")
        },
        Scenario {
            turns: vec![vec![Exit(ExitClass::SpawnFail, ApiClass::None)]],
            ..base("spawn-fails-once")
        },
        Scenario {
            turns: vec![vec![Exit(ExitClass::SpawnFail, ApiClass::None)]; 8],
            ends: "peer-unavailable:ann",
            ..base("spawn-always-fails")
        },
        Scenario {
            turns: vec![vec![Exit(ExitClass::Nonzero, ApiClass::Transient)]; 2],
            ..base("rate-limited")
        },
        Scenario {
            turns: vec![vec![Exit(ExitClass::Nonzero, ApiClass::Auth)]],
            ends: "peer-unavailable:ann",
            ..base("logged-out")
        },
        Scenario {
            turns: vec![vec![Exit(ExitClass::Nonzero, ApiClass::Quota)]],
            peers: 3,
            max_ticks: Some(10),
            ..base("one-of-three-out")
        },
        Scenario {
            turns: vec![vec![
                Write("src/fix.rs", "yes"),
                done("ann", "fix"),
                Exit(ExitClass::Idle, ApiClass::None),
            ]],
            ..base("rescued")
        },
        Scenario {
            gates: vec![("tests-pass", Measure::HasOrIgnored("src/fix.rs", "yes"))],
            turns: vec![vec![Ignored, Write("src/a.rs", "1"), done("ann", "cheap"), ok()]],
            ..base("green-by-ignored-file")
        },
        Scenario {
            gates: vec![
                ("tests-pass", Measure::Has("src/fix.rs", "yes")),
                ("plan-checklist-empty", Measure::Has(PLAN, PLAN_DONE)),
            ],
            max_ticks: Some(12),
            ..base("a-step-of-a-plan")
        },
        Scenario { gates: vec![("g", Measure::Unjudged)], ends: "unjudged:g", ..base("unjudged") },
        Scenario {
            gates: vec![("tests-pass", Measure::False)],
            max_ticks: None,
            ends: "stuck:tests-pass",
            ..base("stuck")
        },
        Scenario {
            gates: vec![("g", Measure::HasOrIgnored("src/never.rs", "yes"))],
            turns: vec![vec![Ignored, Write("src/a.rs", "1"), done("ann", "cheap"), ok()]],
            max_ticks: None,
            max_iterations: 20,
            idle_after: 1,
            ends: "stuck:idle",
            ..base("idle-with-a-red-proof")
        },
        Scenario {
            gates: vec![("g", Measure::True)],
            soft: true,
            turns: vec![vec![done("ann", "says nothing of the review"), ok()]; 4],
            max_ticks: None,
            max_iterations: 20,
            idle_after: 1,
            ends: "stuck:idle",
            ..base("idle-without-a-review")
        },
        Scenario {
            gates: vec![("g", Measure::True)],
            soft: true,
            turns: vec![vec![Commit(objection()), ok()]; 4],
            max_ticks: None,
            max_iterations: 20,
            idle_after: 1,
            ends: "stuck:idle",
            ..base("idle-with-an-objection")
        },
        Scenario {
            gates: vec![("g", Measure::False)],
            max_ticks: None,
            max_iterations: 3,
            ends: "budget:max_iterations",
            ..base("out-of-budget")
        },
        Scenario { max_ticks: Some(2), dry_run: true, ends: "max_ticks", ..base("dry-run") },
        Scenario {
            turns: vec![vec![Hang]],
            ask: Some((6, Ask::Graceful)),
            ends: "interrupted",
            ..base("stopped")
        },
        Scenario { ask: Some((3, Ask::AfterTick)), ends: "drained", ..base("drained") },
        Scenario {
            turns: vec![vec![Write("src/fix.rs", "yes"), done("ann", "fix"), BreakGit, ok()]],
            ends: "error:git",
            ..base("git-broken")
        },
        Scenario { gates: vec![("g", Measure::True)], ..base("green-at-start") },
        Scenario {
            gates: vec![("tests-pass", Measure::HasAndCommits("src/fix.rs", "yes"))],
            ..base("a-gate-commits")
        },
        Scenario {
            gates: vec![
                ("tests-pass", Measure::Has("src/fix.rs", "yes")),
                ("late", Measure::HasAndCommits("src/fix.rs", "yes")),
            ],
            turns: vec![vec![Write("src/fix.rs", "yes"), done("ann", "fix"), ok()]],
            ..base("a-gate-commits-after-a-handoff")
        },
    ]
}
