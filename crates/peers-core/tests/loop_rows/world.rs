//! What peers do, what gates say, and the repository that they do it to: one branch, trees by label.

use std::collections::BTreeMap;

use peers_core::cheat::{FileDiff, TurnDiff, Uncommitted};
use peers_core::machine::{
    CommitSeen, Corrected, Facts, Harvest, HeadFacts, Mutation, Origin, PendingCommand,
};
use peers_core::plan::Plan;
use peers_core::prompt::BugLine;
use peers_core::state::State;
use peers_model::outcome::{ApiClass, ExitClass, PeerExit, TamperKind, Usage};
use peers_model::record::{CorrectionKind, CorrectionPlanned, OperatorOp, OperatorRecord, Rules};
use peers_model::verdict::{Place, TreeKey, Verdict};
use peers_model::{BugId, CommitId, GoalId, PeerName, TickNo, Tokens, TreeId, Usd};

pub(crate) fn peer(name: &str) -> PeerName {
    PeerName::new(name).unwrap()
}

pub(crate) fn goal(id: &str) -> GoalId {
    GoalId::new(id).unwrap()
}

/// What the operator does beside the loop.
pub(crate) fn command(op: OperatorOp) -> PendingCommand {
    PendingCommand { id: "01".into(), record: OperatorRecord { op, by: "operator".into() } }
}

/// The tree of a label: equal labels, equal trees.
pub(crate) fn tree(label: &str) -> TreeId {
    let hash = label
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3));
    TreeId::new(format!("{hash:040x}")).unwrap()
}

/// What a gate says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    Green,
    Red,
    Cannot,
    /// Green at one tree alone.
    At(&'static str),
    /// Green where people work, red in a clean checkout.
    ProofRed,
    /// Green where people work, not to be judged in a clean checkout.
    ProofCannot,
    /// Green where people work, red in a clean checkout since `setup` fails there.
    ProofNotSetUp,
    /// Green where people work, and its command is not found in a clean checkout.
    ProofNotFound,
    /// Its command is found nowhere.
    NotFound,
    /// Red where people work, and in a clean checkout since `setup` fails there.
    NotSetUp,
    /// Any answer, but always the same one at the same tree and place.
    Random(u64),
}

impl Gate {
    pub(crate) fn judge(self, key: &TreeKey, place: Place) -> Verdict {
        let fail = || Verdict::Fail { diagnostic: "it is red".into() };
        let error = || Verdict::Error { diagnostic: "no tool".into() };
        match self {
            Self::Cannot => error(),
            Self::At(label) if key.tree == tree(label) => Verdict::Pass,
            Self::Red | Self::NotFound | Self::NotSetUp | Self::At(_) => fail(),
            Self::ProofRed | Self::ProofNotSetUp | Self::ProofNotFound if place == Place::Pristine => fail(),
            Self::ProofCannot if place == Place::Pristine => error(),
            Self::Green | Self::ProofRed | Self::ProofCannot | Self::ProofNotSetUp | Self::ProofNotFound => {
                Verdict::Pass
            }
            Self::Random(salt) => {
                let text = format!("{salt}{}{place:?}", key.tree);
                match tree(&text).as_str().bytes().map(u32::from).sum::<u32>() % 8 {
                    0 => Verdict::Timeout { diagnostic: "too slow".into() },
                    1 => error(),
                    2 | 3 => fail(),
                    _ => Verdict::Pass,
                }
            }
        }
    }
}

/// A commit that a turn makes.
#[derive(Debug, Clone)]
pub(crate) struct Commit {
    pub(crate) id: CommitId,
    pub(crate) tree: String,
    pub(crate) message: String,
    pub(crate) origin: Origin,
    /// In whose turn; nobody's before the first.
    pub(crate) by: Option<PeerName>,
}

/// How known history is lost in a turn, before its commits are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rewrite {
    /// The newest commit is taken away.
    DropTip,
    /// It is replaced by another one with the same tree.
    Amend,
}

/// Where HEAD is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Switch {
    To(&'static str),
    Detach,
}

/// What a peer does in its turn. `{me}` in messages is its name.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    pub(crate) commits: Vec<(Option<String>, String, Origin)>,
    /// The work tree that is left, when it is not the committed one.
    pub(crate) leaves: Option<String>,
    pub(crate) exit: PeerExit,
    pub(crate) rewrite: Option<Rewrite>,
    /// HEAD ends there.
    pub(crate) ends_on: Option<Switch>,
    pub(crate) diff: TurnDiff,
    pub(crate) open_bugs: Vec<BugId>,
    pub(crate) bugs_closed: u32,
    pub(crate) bugs_reported: u32,
    pub(crate) published: Vec<String>,
    pub(crate) tamper: Option<(TamperKind, String)>,
    /// Its commits are made before anybody can end it.
    pub(crate) quick: bool,
}

pub(crate) fn exit(class: ExitClass, api: ApiClass) -> PeerExit {
    let usage = Usage { tokens: Some(Tokens(100)), usd: Some(Usd::from_micros(10_000)) };
    let code = if class == ExitClass::Ok { Some(0) } else { None };
    PeerExit { class, api, code, usage, ..PeerExit::interrupted(5000) }
}

pub(crate) fn source(path: &str) -> FileDiff {
    FileDiff::text(path, 1, 1)
}

/// A message that hands off. `body` holds sections, each ended by a blank line; `trailers` lines.
pub(crate) fn handoff_text(body: &str, trailers: &str) -> String {
    format!(
        "work\n\n{body}## Self-Review\nread it again\n\nPeer: {{me}}\nPeer-Status: handoff\nSelf-Review: pass\n{trailers}"
    )
}

impl Turn {
    /// The process ends well and leaves nothing.
    pub(crate) fn nothing() -> Self {
        Self {
            commits: Vec::new(),
            leaves: None,
            exit: exit(ExitClass::Ok, ApiClass::None),
            rewrite: None,
            ends_on: None,
            diff: TurnDiff::default(),
            open_bugs: Vec::new(),
            bugs_closed: 0,
            bugs_reported: 0,
            published: Vec::new(),
            tamper: None,
            quick: false,
        }
    }

    pub(crate) fn commit(label: &str, message: &str) -> Self {
        Self::nothing().and_commit(label, message).diff(vec![source("src/lib.rs")])
    }

    /// Work that is handed off.
    pub(crate) fn handoff(label: &str) -> Self {
        Self::commit(label, &handoff_text("", ""))
    }

    /// A handoff that changes nothing.
    pub(crate) fn says(body: &str, trailers: &str) -> Self {
        let mut turn = Self::nothing();
        turn.commits.push((None, handoff_text(body, trailers), Origin::Peer));
        turn
    }

    pub(crate) fn skeptic() -> Self {
        Self::says(
            "## Skeptic\n- a race\n- an overflow\n- a leak\n- a timeout\n- a panic\n\n",
            "Skeptic: clean\n",
        )
    }

    pub(crate) fn review(id: &str, pass: bool) -> Self {
        let section = format!("## Review\n{{\"pass\": {pass}, \"checked\": [\"src/lib.rs:1 read\"]}}\n\n");
        Self::says(&section, &format!("Peer-Review-Of: {id}\n"))
    }

    pub(crate) fn fails(class: ExitClass, api: ApiClass) -> Self {
        Self::nothing().exit(class, api)
    }

    pub(crate) fn and_commit(mut self, label: &str, message: &str) -> Self {
        self.commits.push((Some(label.to_owned()), message.to_owned(), Origin::Peer));
        self
    }

    pub(crate) fn exit(mut self, class: ExitClass, api: ApiClass) -> Self {
        self.exit = exit(class, api);
        self
    }

    pub(crate) fn leaves(mut self, label: &str) -> Self {
        self.leaves = Some(label.to_owned());
        self
    }

    pub(crate) fn diff(self, files: Vec<FileDiff>) -> Self {
        self.measured(TurnDiff { files, weaker: Vec::new() })
    }

    pub(crate) fn measured(mut self, diff: TurnDiff) -> Self {
        self.diff = diff;
        self
    }

    pub(crate) fn rewrites(mut self, how: Rewrite) -> Self {
        self.rewrite = Some(how);
        self
    }

    pub(crate) fn ends_on(mut self, switch: Switch) -> Self {
        self.ends_on = Some(switch);
        self
    }

    pub(crate) fn takes(mut self, duration_ms: u64) -> Self {
        self.exit.duration_ms = duration_ms;
        self
    }

    pub(crate) fn uses(mut self, tokens: Option<u64>, usd: Option<Usd>) -> Self {
        self.exit.usage = Usage { tokens: tokens.map(Tokens), usd };
        self
    }

    pub(crate) fn quick(mut self) -> Self {
        self.quick = true;
        self
    }

    pub(crate) fn publishes(mut self, paths: &[&str]) -> Self {
        self.published = paths.iter().map(|p| (*p).to_owned()).collect();
        self
    }
}

/// The repository and what the operator does to it.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) commits: Vec<Commit>,
    /// Label of the work tree.
    pub(crate) work: String,
    pub(crate) branch: Option<String>,
    pub(crate) mutation: Option<Mutation>,
    pub(crate) tamper: Option<(TamperKind, String)>,
    pub(crate) commands: Vec<PendingCommand>,
    pub(crate) intact: bool,
    /// The work tree changes under so many gate runs.
    pub(crate) restless: u32,
    /// The work tree changes under so many proof runs.
    pub(crate) restless_proofs: u32,
    /// A gate run makes commits, with these labels.
    pub(crate) gate_commits: Vec<&'static str>,
    /// Why no work of a turn can be taken in.
    pub(crate) unreadable: Option<String>,
    /// What commits that arrive while gates run weaken.
    pub(crate) arrived_weaken: Vec<String>,
    /// What its package manager goes by.
    pub(crate) manifests: &'static str,
    /// Soft goals that are about the whole tree; all others never change.
    pub(crate) whole_tree: bool,
    /// PLAN.md at HEAD.
    pub(crate) plan: Option<Plan>,
    /// Bugs that every turn is told of.
    pub(crate) bugs: Vec<BugLine>,
    made: u64,
    /// The newest turn: its tick and what was not in commits.
    pub(crate) turn: Option<Turn>,
}

impl World {
    pub(crate) fn new() -> Self {
        let mut world = Self {
            commits: Vec::new(),
            work: "start".into(),
            branch: Some("main".into()),
            mutation: None,
            tamper: None,
            commands: Vec::new(),
            intact: true,
            restless: 0,
            restless_proofs: 0,
            gate_commits: Vec::new(),
            arrived_weaken: Vec::new(),
            unreadable: None,
            manifests: "first",
            whole_tree: true,
            plan: None,
            bugs: Vec::new(),
            made: 0,
            turn: None,
        };
        world.push("root", "before everything", Origin::Known, None);
        world.push("start", "before the run", Origin::Known, None);
        world
    }

    fn push(&mut self, label: &str, message: &str, origin: Origin, by: Option<&PeerName>) -> CommitId {
        self.made += 1;
        let id = CommitId::new(format!("{:040x}", self.made)).unwrap();
        let message = by.map_or_else(|| message.to_owned(), |by| message.replace("{me}", by.as_str()));
        self.commits.push(Commit {
            id: id.clone(),
            tree: label.to_owned(),
            message,
            origin,
            by: by.cloned(),
        });
        id
    }

    /// The operator does this beside the loop, and nothing else.
    pub(crate) fn told(&mut self, op: OperatorOp) {
        self.commands = vec![command(op)];
    }

    /// The operator commits something between turns.
    pub(crate) fn operator_commits(&mut self, label: &str) {
        self.push(label, "by hand", Origin::Known, None);
        label.clone_into(&mut self.work);
    }

    /// Somebody commits while no loop runs.
    pub(crate) fn outside_commits(&mut self, label: &str, message: &str) {
        self.push(label, message, Origin::Known, None);
        label.clone_into(&mut self.work);
    }

    /// A gate commits while the tick of a peer is open.
    pub(crate) fn gate_commit_in_turn(&mut self, label: &str, message: &str) {
        self.push(label, message, Origin::Peer, None);
        label.clone_into(&mut self.work);
    }

    pub(crate) fn tip(&self) -> &Commit {
        self.commits.last().unwrap()
    }

    pub(crate) fn at(&self) -> HeadFacts {
        HeadFacts {
            head: self.tip().id.clone(),
            head_tree: tree(&self.tip().tree),
            worktree: tree(&self.work),
            content: tree(&self.work),
            branch: self.branch.clone(),
        }
    }

    fn dirty(&self) -> Vec<String> {
        if self.work == self.tip().tree { Vec::new() } else { vec![format!(" M src/{}.rs", self.work)] }
    }

    fn scope(&self, label: &str) -> String {
        if self.whole_tree { format!("scope of {label}") } else { "scope".into() }
    }

    pub(crate) fn facts(&self, state: &State) -> Facts {
        let rules = &state.rules;
        let at = self.at();
        let known = state.head.as_ref().and_then(|k| self.commits.iter().position(|c| c.id == *k));
        let after = known.map_or(self.commits.len(), |i| i + 1);
        let arrived = self.commits.iter().skip(after).map(|c| c.id.clone()).collect();
        Facts {
            head: at.head,
            head_tree: at.head_tree,
            worktree: at.worktree,
            content: at.content,
            branch: at.branch,
            dirty: self.dirty(),
            arrived,
            arrived_weaken: self.arrived_weaken.clone(),
            history_intact: self.intact,
            mutation: self.mutation.clone(),
            tamper: self.tamper.clone(),
            scopes: rules.soft.iter().map(|s| (s.id.clone(), self.scope(&self.work))).collect(),
            commands: self.commands.clone(),
            git_state: None,
            unstable: false,
            plan: self.plan.clone(),
        }
    }

    /// A peer does its turn.
    pub(crate) fn play(&mut self, me: &PeerName, turn: Turn) {
        match turn.rewrite {
            Some(Rewrite::DropTip) if self.commits.len() == 1 => {}
            Some(Rewrite::DropTip) => {
                self.commits.pop();
            }
            Some(Rewrite::Amend) => {
                let tip = self.commits.pop().unwrap();
                self.push(&tip.tree, "amended", Origin::Peer, Some(me));
            }
            None => {}
        }
        for (label, message, origin) in &turn.commits {
            let label = label.clone().unwrap_or_else(|| self.tip().tree.clone());
            self.push(&label, message, *origin, Some(me));
        }
        self.work = turn.leaves.clone().unwrap_or_else(|| self.tip().tree.clone());
        match turn.ends_on {
            Some(Switch::To(branch)) => self.branch = Some(branch.to_owned()),
            Some(Switch::Detach) => self.branch = None,
            None => {}
        }
        self.turn = Some(turn);
    }

    /// What is seen after a turn that began at `from`. Reads only.
    pub(crate) fn harvest(&self, from: &CommitId, tree_before: &TreeId, rules: &Rules) -> Harvest {
        let start = self.commits.iter().position(|c| c.id == *from);
        let new = self.commits.get(start.map_or(0, |i| i + 1)..).unwrap_or_default();
        let at = self.at();
        let unchanged = at.head_tree == *tree_before;
        let turn = self.turn.clone().unwrap_or_else(Turn::nothing);
        let label_before = start.and_then(|i| self.commits.get(i)).map_or("lost", |c| c.tree.as_str());
        let scopes = rules
            .soft
            .iter()
            .map(|s| (s.id.clone(), (self.scope(label_before), self.scope(&self.tip().tree))));
        Harvest {
            at: Some(at),
            ancestor: start.is_some(),
            commits: if start.is_none() { Vec::new() } else { new.iter().map(seen).collect() },
            diff: if unchanged { TurnDiff::default() } else { turn.diff },
            uncommitted: Uncommitted::default(),
            dirty: self.dirty(),
            git_tampered: Vec::new(),
            refs_tampered: Vec::new(),
            tamper: turn.tamper,
            scopes: scopes.collect(),
            published: turn.published,
            warnings: Vec::new(),
            open_bugs: turn.open_bugs,
            bugs_closed: turn.bugs_closed,
            bugs_reported: turn.bugs_reported,
            unreadable: self.unreadable.clone(),
            salvage: None,
            artifact: None,
            plan: self.plan.clone(),
            note: None,
        }
    }

    /// Nothing of the newest turn is seen by the next harvest.
    pub(crate) fn forget_turn(&mut self) {
        self.turn = None;
    }

    /// Undoes. `lost` are the commits that were part of history before the turn.
    pub(crate) fn correct(&mut self, plan: &CorrectionPlanned, lost: &[Commit]) -> Corrected {
        let mut own = Vec::new();
        match plan.kind {
            CorrectionKind::Revert => {
                let mark = format!("Peers-Corrects: {}", plan.tick);
                if !self.commits.iter().any(|c| c.message.contains(&mark)) {
                    let to = self.commits.iter().find(|c| c.id == plan.to);
                    let before = to.unwrap_or(self.tip()).tree.clone();
                    own.push(self.push(&before, &mark, Origin::Own, None));
                }
            }
            CorrectionKind::RestoreHistory | CorrectionKind::RestoreBranch | CorrectionKind::Reset => {
                let keep = lost.iter().position(|c| c.id == plan.to).unwrap_or(lost.len() - 1);
                self.commits = lost.get(..=keep).unwrap().to_vec();
                self.branch.clone_from(&plan.branch);
            }
        }
        self.work = self.tip().tree.clone();
        Corrected { at: self.at(), own, salvage: Some(format!("refs/salvage/{}", plan.tick)) }
    }

    /// New commits for a receiver, by sender, since its bookmarks.
    pub(crate) fn inbox(&self, marks: &BTreeMap<PeerName, CommitId>) -> Vec<(PeerName, CommitId)> {
        let mut found = Vec::new();
        for (sender, mark) in marks {
            let after = self.commits.iter().position(|c| c.id == *mark).map_or(0, |i| i + 1);
            for commit in self.commits.iter().skip(after).filter(|c| c.by.as_ref() == Some(sender)) {
                found.push((sender.clone(), commit.id.clone()));
            }
        }
        found
    }
}

fn seen(commit: &Commit) -> CommitSeen {
    CommitSeen {
        id: commit.id.clone(),
        message: commit.message.clone(),
        origin: commit.origin,
        paths: vec!["src/lib.rs".into()],
        unfounded: Vec::new(),
    }
}

/// What peers do when their script is at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Habit {
    /// Brings the tree to this label, reviews what it is asked for, answers as skeptic.
    Good(&'static str),
    /// As `Good`, but gives no verdict as skeptic.
    NoSkeptic(&'static str),
    /// As `Good`, but does not review.
    NoReview(&'static str),
    /// As `Good`, but always leaves something uncommitted.
    Untidy(&'static str),
    /// A handoff that changes nothing.
    Empty,
    /// Something new each time.
    Busy,
}

impl Habit {
    pub(crate) fn turn(self, world: &World, tick: TickNo, skeptic: bool, asked: &[GoalId]) -> Turn {
        let good = |label: &str, asked: &[GoalId]| {
            if skeptic {
                Turn::skeptic()
            } else if world.tip().tree != label {
                Turn::handoff(label)
            } else if let Some(id) = asked.first() {
                Turn::review(id.as_str(), true)
            } else {
                Turn::says("", "")
            }
        };
        match self {
            Self::NoSkeptic(_) if skeptic => Turn::says("", ""),
            Self::Good(label) | Self::NoSkeptic(label) => good(label, asked),
            Self::NoReview(label) => good(label, &[]),
            Self::Untidy(label) => good(label, asked).leaves("untidy"),
            Self::Empty => Turn::says("", ""),
            Self::Busy => Turn::handoff(&format!("work {tick}")),
        }
    }
}
