//! Goals: what `goals.yaml` may hold.

use std::collections::{BTreeMap, BTreeSet};
use std::num::{NonZeroU8, NonZeroU32};

use thiserror::Error;

use crate::config::{SAID, VARIABLES, not_an_argument};
use crate::ids::GoalId;
use crate::keys::{self, Described, FILLED, Shape, TEXT, Text, keys, of, words};
use crate::review::SoftRule;

/// What is wrong with an empty one the checks say, in their own words.
const SAYING: Shape = Shape::Maybe(&Shape::Text(Text { pattern: Some("\\S"), ..TEXT }));
/// A directory of the repository, written plainly.
const BELOW: Shape = Shape::Maybe(&Shape::Text(Text {
    pattern: Some(r"^(?!(\.{0,2}|\.git)(/|$))[^/]+(/(?!(\.{0,2}|\.git)(/|$))[^/]+)*$"),
    ..FILLED
}));
const RETRIES: Shape = Shape::Whole { least: 0, most: 5 };
const FILLED_TEXT: Shape = Shape::Text(FILLED);
/// A file at the top of the repository.
const ARTIFACT: Shape = Shape::Maybe(&Shape::Text(Text {
    pattern: Some(r"^[A-Za-z0-9][A-Za-z0-9._-]*$"),
    wrong: Some(not_at_top),
    ..FILLED
}));
/// Not `null`.
const CONSENSUS: Shape = NonZeroU8::SHAPE;

keys! {
    /// The file as written.
    pub struct GoalsFile {
        /// What must be true before a run is complete, in the order in which it is shown and run.
        goals: Option<Vec<GoalEntry>> = Some(Vec::new()),
        /// What turns are asked for before anything else, one after the other; the last one stays.
        phases: Vec<Phase> = Vec::new(),
        /// Gates that stay green for two more ticks at the end. With it every gate has to be green for `convergence_n` ticks of the frozen plan in a row before.
        settle: Vec<GoalId> = Vec::new(),
    }
}

keys! {
    /// One phase as written.
    #[derive(PartialEq, Eq)]
    pub struct Phase {
        /// Its name.
        name: String as FILLED_TEXT,
        /// What a turn of it is told, before everything else.
        prompt: String as FILLED_TEXT,
        /// The file at the top of the repository that ends it once a turn has committed it; absent: it does not end.
        artifact: Option<String> as ARTIFACT = None,
        /// Bytes that the artifact has at least.
        least_bytes: u32 = 1,
        /// Headings that the artifact has, each of them.
        sections: Vec<String> = Vec::new(),
        /// The artifact names each step of PLAN.md.
        each_step: bool = false,
        /// Its turns are those of PLAN.md: a step each, with an implementer and a reviewer.
        steps: bool = false,
    }
}

/// What `goals.yaml` says besides goals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Course {
    /// The phases in order.
    pub phases: Vec<Phase>,
    /// The gates that stay green at the end.
    pub settle: Vec<GoalId>,
}

impl Course {
    /// Whether turns are given out by PLAN.md.
    #[must_use]
    pub fn has_steps(&self) -> bool {
        self.phases.iter().any(|phase| phase.steps)
    }

    /// What is wrong with it beside these goals.
    #[must_use]
    pub fn wrong(&self, goals: &[Goal]) -> Option<String> {
        let Self { phases, settle } = self;
        let gate = |id: &GoalId| goals.iter().any(|goal| goal.id == *id && goal.gate().is_some());
        if let Some(id) = settle.iter().find(|id| !gate(id)) {
            return Some(format!("`settle` names `{id}`, which is no gate of this file"));
        }
        for (i, phase) in phases.iter().enumerate() {
            let name = phase.name.escape_debug();
            if phases.iter().take(i).any(|other| other.name == phase.name) {
                return Some(format!("phase `{name}` stands twice"));
            }
            let is_last = i + 1 == phases.len();
            if phase.artifact.is_none() && !is_last {
                return Some(format!(
                    "phase `{name}` has no `artifact`, and only the last one goes on for ever"
                ));
            }
            if phase.steps && (phase.artifact.is_some() || !is_last) {
                return Some(format!(
                    "`steps` is for the last phase, without an `artifact`, not for `{name}`"
                ));
            }
        }
        None
    }
}

keys! {
    /// One entry as written.
    pub struct GoalEntry {
        /// A lower-case letter or digit, then at most 63 of `a-z 0-9 . _ -`; unique; not 7 or more hex digits alone.
        id: GoalId,
        /// Whether it is measured or reviewed.
        r#type: GoalType,
        /// Free text for people.
        description: Option<String> = None,
        /// Hard: a shell command, run at the top of the tree; or `check`.
        cmd: Option<String> as SAYING = None,
        /// Hard: a built-in check; `peers check --list` shows them. Soft: its findings are shown to the reviewers.
        check: Option<String> = None,
        /// Arguments of the check.
        args: Vec<String> = Vec::new(),
        /// Hard, with `cmd`: the condition, for instance `exit_code == 0`.
        pass_when: Option<String> = None,
        /// Seconds; absent: `goals.timeout_s` of config.yaml.
        timeout_s: Option<NonZeroU32> = None,
        /// Hard: further attempts after a red answer; the first green one counts.
        retry_on_fail: u8 as RETRIES = 0,
        /// Hard: where it runs.
        tree: TreeChoice = TreeChoice::Auto,
        /// Hard, with `cmd`: a green answer may outlive the run.
        cacheable: bool = false,
        /// Hard, with `cmd`: it costs much, and runs in a kept copy of the commit.
        expensive: bool = false,
        /// Hard: no other gate runs beside it.
        serial: bool = false,
        /// Goals that must be green first. Hard: other gates; while one is not green, it is skipped. Soft: gates and reviews; while one is not green, it is not asked for.
        needs: Vec<GoalId> = Vec::new(),
        /// Hard, with `cmd`: names of environment variables that it asks for; your own sandbox.yaml decides.
        env: Vec<String> as VARIABLES = Vec::new(),
        /// Hard, with `cmd`: where it starts, from the top of the tree.
        cwd: Option<String> as BELOW = None,
        /// Under what views show it; at most 64 characters.
        group: Option<String> as SAID = None,
        /// How much it counts where views say how far things are.
        weight: Option<NonZeroU32> = NonZeroU32::new(1),
        /// Soft: what the reviewer is asked.
        prompt: Option<String> as SAID = None,
        /// Soft: who reviews.
        reviewer: Option<Reviewer> = None,
        /// Soft: how many different peers must pass it. Default: 1.
        consensus_needed: Option<NonZeroU8> as CONSENSUS = None,
        /// Soft, with `reviewer: quorum`: `N/M`.
        quorum: Option<String> = None,
        /// Soft: ask at most every so many ticks. Default: 5.
        review_interval: Option<NonZeroU32> = None,
        /// Globs from the top of the repository: `*` and `?` stay within one directory, `**` does not, a directory means all below it. Soft: a later change there by somebody else makes the review stale; default: all but documentation, and TASK.md. Hard, with `cacheable`: what a kept answer is about; default: everything.
        paths: Vec<String> = Vec::new(),
    }
    gone {
        "hard" => "write `type: hard`",
        "soft" => "write `type: soft`",
    }
}

/// Keys of reviews alone.
pub const OF_REVIEWS: [&str; 5] = ["prompt", "reviewer", "consensus_needed", "quorum", "review_interval"];
/// Keys of gates alone.
pub const OF_GATES: [&str; 9] =
    ["cmd", "pass_when", "retry_on_fail", "tree", "cacheable", "expensive", "serial", "env", "cwd"];
/// Keys of what runs: of gates, and of reviews that show what a check finds.
pub const OF_CHECKS: [&str; 2] = ["timeout_s", "args"];
/// Keys of gates with a command.
pub const OF_COMMANDS: [&str; 4] = ["cacheable", "expensive", "cwd", "env"];

impl GoalEntry {
    /// The first of these keys that says something else than its absence.
    fn given(&self, names: &[&'static str]) -> Option<&'static str> {
        let said = keys::json(self);
        let absent = |name| of::<Self>().key(name).and_then(|key| key.default).map(|default| default());
        names.iter().copied().find(|name| said.get(name) != absent(name).as_ref())
    }
}

words! {
    /// Hard or soft.
    pub enum GoalType {
        /// a gate measures it
        Hard = "hard",
        /// peers review it
        Soft = "soft",
    }
}

words! {
    /// The tree in which a gate runs.
    #[derive(Default)]
    pub enum TreeChoice {
        /// the work tree while agents work, a fresh checkout in the proof
        #[default]
        Auto = "auto",
        /// a kept copy of the commit in ticks, a fresh checkout in the proof
        Copy = "copy",
        /// the work tree only; exempt from the proof, and named so
        Live = "live",
    }
}

words! {
    /// Who reviews a soft goal.
    pub enum Reviewer {
        /// any peer on its turn
        Other = "other",
        /// every peer
        Both = "both",
        /// one peer after the other
        Alternating = "alternating",
        /// N of the last M reviews, by different peers
        Quorum = "quorum",
    }
}

/// A goal that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field has the meaning of its key in the file")]
pub struct Goal {
    pub id: GoalId,
    pub description: Option<String>,
    /// Under what views show it.
    pub group: Option<String>,
    /// How much it counts where views say how far things are; 1 without the key.
    pub weight: u32,
    pub kind: GoalKind,
}

impl Goal {
    /// The gate, where it is one.
    #[must_use]
    pub fn gate(&self) -> Option<&HardGoal> {
        match &self.kind {
            GoalKind::Hard(hard) => Some(hard),
            GoalKind::Soft(_) => None,
        }
    }

    /// The goals that must be green first.
    #[must_use]
    pub fn needs(&self) -> &[GoalId] {
        match &self.kind {
            GoalKind::Hard(hard) => &hard.needs,
            GoalKind::Soft(soft) => &soft.needs,
        }
    }

    /// What our own code measures for it: the gate, or the check whose findings a reviewer is shown.
    #[must_use]
    pub fn measured(&self) -> Option<&HardGoal> {
        match &self.kind {
            GoalKind::Hard(hard) => Some(hard),
            GoalKind::Soft(soft) => soft.check.as_ref(),
        }
    }
}

/// What is measured for the goal of that id among `goals`.
#[must_use]
pub fn gate_of<'a>(goals: &'a [Goal], id: &GoalId) -> Option<&'a HardGoal> {
    goals.iter().find(|goal| goal.id == *id).and_then(Goal::measured)
}

/// What a goal asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GoalKind {
    /// A gate.
    Hard(HardGoal),
    /// A review.
    Soft(SoftGoal),
}

/// A goal that a gate measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HardGoal {
    /// What runs.
    pub run: GateRun,
    /// Time limit in seconds; `None` = `goals.timeout_s`.
    pub timeout_s: Option<u32>,
    /// Extra attempts after a red answer, at most 5.
    pub retries: u8,
    /// Where it runs.
    pub tree: TreeChoice,
    /// A green answer outlives the process, for as long as nothing that it depends on changes.
    pub cacheable: bool,
    /// It runs in a kept copy of the commit, and beside a confined peer.
    pub expensive: bool,
    /// No other gate runs beside it.
    pub serial: bool,
    /// Gates that must be green first; it is skipped while one is not.
    pub needs: Vec<GoalId>,
    /// What a kept answer is about; empty = the whole tree and the commit.
    pub paths: Vec<String>,
    /// Names of environment variables that it asks for, besides `goals.env`.
    pub env: Vec<String>,
    /// The directory that it starts in, from the top of its tree: plain components only.
    pub cwd: Option<String>,
}

impl HardGoal {
    /// A gate with nothing said but what it runs.
    #[must_use]
    pub fn new(run: GateRun) -> Self {
        Self {
            run,
            timeout_s: None,
            retries: 0,
            tree: TreeChoice::Auto,
            cacheable: false,
            expensive: false,
            serial: false,
            needs: Vec::new(),
            paths: Vec::new(),
            env: Vec::new(),
            cwd: None,
        }
    }

    /// Whether it is measured in a kept copy of the commit rather than in the work tree, in ticks.
    #[must_use]
    pub fn in_copy(&self) -> bool {
        match self.tree {
            TreeChoice::Copy => true,
            TreeChoice::Auto => self.expensive,
            TreeChoice::Live => false,
        }
    }
}

/// What a gate runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateRun {
    /// `/bin/sh -c cmd`, judged by `pass_when`.
    Shell {
        /// The command.
        cmd: String,
        /// The condition (`peers-core::dsl`).
        pass_when: String,
    },
    /// A built-in check, run as a child of our own executable.
    Check {
        /// Its name.
        name: String,
        /// Its arguments.
        args: Vec<String>,
    },
}

/// A goal that peers judge by reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoftGoal {
    /// The instruction.
    pub prompt: String,
    /// When it is green.
    pub rule: SoftRule,
    /// Ask at most every so many ticks.
    pub every: u32,
    /// Globs that the review is about; empty = all files that are no documentation, and TASK.md.
    pub paths: Vec<String>,
    /// A built-in check whose findings the reviewer is shown. They decide nothing.
    pub check: Option<HardGoal>,
    /// Gates and reviews that must be green before it is asked for.
    pub needs: Vec<GoalId>,
}

/// The ids of the goals that `init` ships. A run that has no other hard gate never completes.
pub const SHIPPED_GATES: [&str; 3] = ["self-review-on-handoff", "bug-hunt-clean", PLACEHOLDER];

/// The gate of a new file that is always red, until it is replaced.
pub const PLACEHOLDER: &str = "placeholder-replace-me";

/// The built-in checks that goals may name.
pub const CHECK_NAMES: [&str; crate::check::NAMES.len()] = crate::check::NAMES;

/// A goals file that parses but makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("goal `{goal}`: {what}")]
pub struct GoalError {
    /// Which goal.
    pub goal: String,
    /// What is wrong and what to write instead.
    pub what: String,
    /// The key concerned, to find the line.
    pub key: &'static str,
}

/// Ids that no goal may have: stop reasons are read by them.
const RESERVED_IDS: [&str; 3] = ["skeptic", "idle", "phase"];

/// Checks a parsed file. `peers` is the number of configured peers.
///
/// # Errors
/// All problems that were found, in file order.
pub fn check_goals(
    file: GoalsFile,
    peers: usize,
    known_checks: &[&str],
) -> Result<Vec<Goal>, Vec<GoalError>> {
    let mut goals = Vec::new();
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for entry in file.goals.unwrap_or_default() {
        if !seen.insert(entry.id.clone()) {
            errors.push(GoalError {
                goal: entry.id.to_string(),
                what: "this id stands twice; ids must be unique".into(),
                key: "id",
            });
            continue;
        }
        if let Some(reserved) = RESERVED_IDS.iter().find(|id| **id == entry.id.as_str()) {
            errors.push(GoalError {
                goal: entry.id.to_string(),
                what: format!(
                    "`{reserved}` is a reserved id (`stuck:{reserved}` is a stop reason); choose another"
                ),
                key: "id",
            });
            continue;
        }
        match check_entry(entry, peers, known_checks) {
            Ok(goal) => {
                let wrong = goal.gate().map(|gate| check_hard(&goal.id, gate)).unwrap_or_default();
                let named = |(key, what)| GoalError { goal: goal.id.to_string(), what, key };
                errors.extend(wrong.into_iter().map(named));
                goals.push(goal);
            }
            Err(error) => errors.push(error),
        }
    }
    check_needs(&goals, &seen, &mut errors);
    if errors.is_empty() { Ok(goals) } else { Err(errors) }
}

fn check_entry(entry: GoalEntry, peers: usize, known_checks: &[&str]) -> Result<Goal, GoalError> {
    let id = entry.id.clone();
    let fail = |key: &'static str, what: String| GoalError { goal: id.to_string(), what, key };
    let kind = match entry.r#type {
        GoalType::Hard => {
            if let Some(key) = entry.given(&OF_REVIEWS) {
                return Err(fail(
                    key,
                    format!("`{key}` belongs to soft goals; remove it or write `type: soft`"),
                ));
            }
            let written = (entry.cmd, entry.check, entry.pass_when, entry.args);
            let run = gate_run(written, known_checks).map_err(|(key, what)| fail(key, what))?;
            let hard = HardGoal {
                run,
                timeout_s: entry.timeout_s.map(NonZeroU32::get),
                retries: entry.retry_on_fail,
                tree: entry.tree,
                cacheable: entry.cacheable,
                expensive: entry.expensive,
                serial: entry.serial,
                needs: entry.needs,
                paths: entry.paths,
                env: entry.env,
                cwd: entry.cwd,
            };
            GoalKind::Hard(hard)
        }
        GoalType::Soft => {
            let of_checks: &[&'static str] = if entry.check.is_none() { &OF_CHECKS } else { &[] };
            if let Some(key) = entry.given(&OF_GATES).or_else(|| entry.given(of_checks)) {
                return Err(fail(
                    key,
                    format!("`{key}` belongs to hard goals; remove it or write `type: hard`"),
                ));
            }
            let prompt = entry.prompt.filter(|p| !p.trim().is_empty());
            let Some(prompt) = prompt else {
                return Err(fail("type", "a soft goal needs a `prompt`".into()));
            };
            let Some(reviewer) = entry.reviewer else {
                return Err(fail(
                    "type",
                    "a soft goal needs `reviewer`: other, both, alternating or quorum".into(),
                ));
            };
            check_globs(&entry.paths).map_err(|(key, what)| fail(key, what))?;
            let check = match entry.check {
                None => None,
                Some(name) => {
                    let run = gate_run((None, Some(name), None, entry.args), known_checks)
                        .map_err(|(key, what)| fail(key, what))?;
                    let timeout_s = entry.timeout_s.map(NonZeroU32::get);
                    Some(HardGoal { timeout_s, ..HardGoal::new(run) })
                }
            };
            let needed = entry.consensus_needed.map_or(1, NonZeroU8::get);
            let rule = soft_rule(reviewer, needed, entry.quorum.as_deref(), peers)
                .map_err(|(key, what)| fail(key, what))?;
            GoalKind::Soft(SoftGoal {
                prompt,
                rule,
                every: entry.review_interval.map_or(5, NonZeroU32::get),
                paths: entry.paths,
                check,
                needs: entry.needs,
            })
        }
    };
    if let Some(group) = entry.group.as_deref().filter(|g| g.trim().is_empty() || g.chars().count() > 64) {
        let shown: String = group.chars().take(20).collect();
        return Err(fail("group", format!("`group: {}` needs 1 to 64 characters", shown.escape_debug())));
    }
    let weight = entry.weight.map_or(1, NonZeroU32::get);
    Ok(Goal { id: entry.id, description: entry.description, group: entry.group, weight, kind })
}

/// What the keys of a gate say together.
fn check_hard(id: &GoalId, hard: &HardGoal) -> Vec<(&'static str, String)> {
    let mut wrong: Vec<(&'static str, String)> = Vec::new();
    if let Err(mistake) = check_globs(&hard.paths) {
        wrong.push(mistake);
    } else if !hard.paths.is_empty() && !hard.cacheable {
        wrong.push((
            "paths",
            "`paths` of a gate says what a kept answer is about; add `cacheable: true` or remove it".into(),
        ));
    }
    if hard.needs.contains(id) {
        wrong.push(("needs", "a gate cannot need itself; remove it from `needs`".into()));
    }
    if hard.expensive && hard.tree == TreeChoice::Live {
        wrong.push((
            "expensive",
            "`expensive` gates run in a copy of the commit, `tree: live` only in the work tree; keep one"
                .into(),
        ));
    }
    if hard.cacheable && hard.tree == TreeChoice::Live {
        wrong.push((
            "cacheable",
            "`tree: live` exempts the gate from the proof, so that a kept answer would be the last word on it; \
             keep one of the two"
                .into(),
        ));
    }
    if let GateRun::Check { .. } = hard.run {
        for (key, given) in [
            ("cacheable", hard.cacheable),
            ("expensive", hard.expensive),
            ("cwd", hard.cwd.is_some()),
            ("env", !hard.env.is_empty()),
        ] {
            if given {
                let what =
                    format!("`{key}` does not go with `check`: it reads commits and the store; remove it");
                wrong.push((key, what));
            }
        }
        if hard.tree == TreeChoice::Copy {
            wrong.push(("tree", "`tree: copy` does not go with `check`: it reads commits; remove it".into()));
        }
    } else if let Some(what) = hard.cwd.as_deref().and_then(not_below) {
        wrong.push(("cwd", format!("`cwd` {what}")));
    }
    wrong
}

/// Why a text is no name of a file at the top of the repository.
fn not_at_top(text: &str) -> Option<String> {
    let tame = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let fits = text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(tame);
    (!fits).then(|| "is no plain name of a file at the top of the repository".to_owned())
}

/// Why a path cannot be a directory of the tree, readable after the key.
fn not_below(path: &str) -> Option<&'static str> {
    if path.trim().is_empty() {
        return Some("is empty; remove it, or name a directory from the top of the repository");
    }
    if path.starts_with('/') {
        return Some("is absolute; write it from the top of the repository");
    }
    if path.split('/').any(|part| part == ".." || part == ".git") {
        return Some("leads out of the work tree; name a directory of the repository");
    }
    if path.split('/').any(|part| part.is_empty() || part == ".") {
        return Some("has a `.`, a doubled or a closing `/` in it; write it plainly, as in `web/app`");
    }
    if path.contains(['\0', '\n', '\r']) || path.len() > 1024 {
        return Some("is not a path; name a directory relative to the top of the repository");
    }
    None
}

/// Why a text is no glob of the repository, as a rule of a described key.
pub(crate) fn glob(text: &str) -> Option<String> {
    not_a_glob(text).map(str::to_owned)
}

fn check_globs(globs: &[String]) -> Result<(), (&'static str, String)> {
    for glob in globs {
        if let Some(what) = not_a_glob(glob) {
            let shown: String = glob.chars().take(60).collect();
            return Err(("paths", format!("`{}` in `paths` {what}", shown.escape_debug())));
        }
    }
    Ok(())
}

/// `needs` names goals that are there, of a gate other gates, and nothing waits for itself.
fn check_needs(goals: &[Goal], all: &BTreeSet<GoalId>, errors: &mut Vec<GoalError>) {
    let needs: BTreeMap<&GoalId, &[GoalId]> = goals.iter().map(|goal| (&goal.id, goal.needs())).collect();
    let is_gate = |id: &GoalId| goals.iter().any(|goal| goal.id == *id && goal.gate().is_some());
    let mut fail = |goal: &GoalId, what: String| {
        errors.push(GoalError { goal: goal.to_string(), what, key: "needs" });
    };
    for (id, needed) in &needs {
        let sound = |id: &GoalId| goals.iter().any(|goal| goal.id == *id);
        // What is wrong with a goal that is needed is told of that goal.
        let lacks = |needed: &GoalId| {
            (!sound(needed) && !all.contains(needed)) || (is_gate(id) && sound(needed) && !is_gate(needed))
        };
        if let Some(unknown) = needed.iter().find(|needed| lacks(needed)) {
            let what = if goals.iter().any(|goal| goal.id == *unknown) {
                format!("needs `{unknown}`, which is a review; a gate can only wait for gates")
            } else {
                format!("needs `{unknown}`, which this file does not define; correct the id or remove it")
            };
            fail(id, what);
        }
    }
    for id in needs.keys() {
        // Everything that it waits for, near and far.
        let mut reached: BTreeSet<&GoalId> = BTreeSet::new();
        let mut next: Vec<&GoalId> = needs.get(id).copied().unwrap_or_default().iter().collect();
        while let Some(one) = next.pop() {
            if reached.insert(one) {
                next.extend(needs.get(one).copied().unwrap_or_default());
            }
        }
        // Of a gate that was told already.
        if reached.contains(id) && !(is_gate(id) && needs.get(id).is_some_and(|own| own.contains(id))) {
            fail(id, "waits for itself, over what it needs; break the circle in `needs`".to_owned());
        }
    }
}

/// What a gate runs, as written: `cmd`, `check`, `pass_when`, `args`.
fn gate_run(
    (cmd, check, pass_when, args): (Option<String>, Option<String>, Option<String>, Vec<String>),
    known_checks: &[&str],
) -> Result<GateRun, (&'static str, String)> {
    Ok(match (cmd, check) {
        (Some(_), Some(_)) => {
            return Err(("check", "has both `cmd` and `check`; keep one".into()));
        }
        (None, None) => return Err(("type", "a hard goal needs `cmd` or `check`".into())),
        (Some(cmd), None) => {
            if cmd.trim().is_empty() {
                return Err(("cmd", "`cmd` is empty".into()));
            }
            let Some(pass_when) = pass_when else {
                return Err((
                    "cmd",
                    "`cmd` needs `pass_when`, for instance `pass_when: exit_code == 0`".into(),
                ));
            };
            if let Some(what) = not_an_argument(&cmd) {
                return Err(("cmd", format!("`cmd` {what}")));
            }
            if !args.is_empty() {
                return Err(("args", "`args` belongs to `check`; write the arguments into `cmd`".into()));
            }
            GateRun::Shell { cmd, pass_when }
        }
        (None, Some(name)) => {
            if pass_when.is_some() {
                return Err((
                    "pass_when",
                    "`pass_when` does not go with `check`: a check judges by itself".into(),
                ));
            }
            if !known_checks.contains(&name.as_str()) {
                return Err((
                    "check",
                    format!("there is no check `{name}`; `peers check --list` shows them"),
                ));
            }
            if let Some(what) = args.iter().find_map(|arg| not_an_argument(arg)) {
                return Err(("args", format!("an entry of `args` {what}")));
            }
            GateRun::Check { name, args }
        }
    })
}

/// Why a glob can never match what people mean by it, readable after it.
pub(crate) fn not_a_glob(glob: &str) -> Option<&'static str> {
    const LONGEST: usize = 1024;
    if glob.trim().is_empty() {
        return Some("is empty; remove it");
    }
    if glob.starts_with('/') {
        return Some("is absolute; write it from the top of the repository, without the `/` before it");
    }
    if glob.split('/').any(|part| part == "..") {
        return Some("leads out of the repository by `..`; write it from the top of the repository");
    }
    if glob.contains(['{', '}']) {
        return Some("has a `{` or `}` in it, which would mean itself; write one glob for each choice");
    }
    if glob.contains(['\0', '\n', '\r']) {
        return Some("has a line break or a NUL character in it; remove that");
    }
    (glob.len() > LONGEST).then_some("is longer than 1024 bytes; shorten it")
}

fn soft_rule(
    reviewer: Reviewer,
    needed: u8,
    quorum: Option<&str>,
    peers: usize,
) -> Result<SoftRule, (&'static str, String)> {
    if quorum.is_some() && reviewer != Reviewer::Quorum {
        return Err(("quorum", "`quorum` goes with `reviewer: quorum` only".into()));
    }
    let too_many = |limit: usize| {
        ("consensus_needed", format!("asks for {needed} reviewers, but only {limit} can count"))
    };
    match reviewer {
        Reviewer::Other | Reviewer::Alternating if usize::from(needed) > peers => Err(too_many(peers)),
        Reviewer::Both if needed > 1 => {
            Err(("consensus_needed", "`both` counts each peer once; write `consensus_needed: 1`".into()))
        }
        Reviewer::Other => Ok(SoftRule::Other { needed }),
        Reviewer::Alternating => Ok(SoftRule::Alternating { needed }),
        Reviewer::Both => Ok(SoftRule::Both { needed }),
        Reviewer::Quorum => {
            let parsed = quorum
                .and_then(|q| q.split_once('/'))
                .and_then(|(n, m)| Some((n.trim().parse::<u8>().ok()?, m.trim().parse::<u8>().ok()?)));
            match parsed {
                Some((pass, of)) if pass > 0 && pass <= of && usize::from(of) <= peers => {
                    Ok(SoftRule::Quorum { pass, of })
                }
                Some(_) => Err(("quorum", format!("needs 0 < N <= M <= {peers} (the number of peers)"))),
                None => Err(("quorum", "`reviewer: quorum` needs `quorum: N/M`".into())),
            }
        }
    }
}
