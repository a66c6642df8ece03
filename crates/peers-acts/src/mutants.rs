//! `peers gates test`: what the gates notice, shown by faults that are planted one at a time.
//!
//! A gate that is green says something only if it would be red were the code wrong. Small faults ([`peers_code::Mutation`])
//! are planted into the lines that changed, in one clean checkout, and the gates are asked about each. Gates that read
//! commits ([`GateRun::Check`]) cannot see them and are left out, as are those of the work tree alone.

use std::path::Path;
use std::time::Duration;

use peers_code::{MAX_BYTES, MutationKind, Source, is_source};
use peers_git::{ControlDir, DirtyStatus, PeerRepo, SyntheticGit};
use peers_model::command::Step;
use peers_model::goal::{GateRun, GoalKind};
use peers_model::record::Record;
use peers_model::request::AskedWall;
use peers_model::verdict::{Judged, Place as Where, TreeKey, Verdict};
use peers_model::{CommitId, GoalId, Mono, TickNo, Timestamp, TreeId, exit};
use peers_place::Place;
use peers_run::boot::{self, BootError, Finding, Loaded};
use peers_run::perform::in_order_of_need;
use peers_run::ports::GateJob;
use peers_store::store;
use peers_sys::dir::SafeDir;
use peers_sys::env::Env;
use peers_sys::{clock, digest, term};

use crate::oneshot::{Audience, Bench, Show, exempt};

/// Bytes of all sources that are read for faults.
const MOST_BYTES: usize = 256 * 1024 * 1024;
/// Uncommitted paths of the checkout that are looked through for files of the commit.
const COMPARED: usize = 10_000;

/// What to plant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MutantOptions {
    /// Faults at most.
    pub count: usize,
    /// None is begun after this.
    pub budget: Duration,
    /// Chooses them.
    pub seed: u32,
    /// Lines that changed since this commit (full id, branch, tag); absent: since the last run began, or all where there
    /// was none.
    pub base: Option<String>,
}

/// A fault, and who noticed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutant {
    /// The file. Untrusted text.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// What kind of change it is.
    pub kind: MutationKind,
    /// The code before and after. Untrusted text.
    pub shown: String,
    /// What came of it.
    pub fate: Fate,
}

/// What came of a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// These gates were red.
    Noticed(Vec<GoalId>),
    /// Every gate was green.
    Survived,
    /// No gate was red, and not every one answered.
    Unknown(String),
}

/// What came of all.
#[derive(Debug, Clone, PartialEq)]
pub struct Tested {
    /// When it began.
    pub at: Timestamp,
    /// HEAD.
    pub head: CommitId,
    /// Its tree.
    pub tree: TreeId,
    /// The lines that changed since here were looked at; absent: all lines.
    pub base: Option<CommitId>,
    /// What chose the faults.
    pub seed: u32,
    /// Faults that could have been planted.
    pub places: usize,
    /// Those that were.
    pub mutants: Vec<Mutant>,
    /// The gates that were asked.
    pub gates: Vec<GoalId>,
    /// Gates that read commits or the work tree, and cannot see a fault in a checkout.
    pub blind: Vec<GoalId>,
    /// What of the gates is not green without any fault. Then nothing was planted.
    pub red: Vec<Judged>,
    /// Faults that were left out since the time was used up.
    pub cut: usize,
    /// Wall time, milliseconds.
    pub took_ms: u64,
    /// The signal that cut it short.
    pub signal: Option<i32>,
}

impl Tested {
    /// Faults that some gate noticed.
    #[must_use]
    pub fn noticed(&self) -> usize {
        self.mutants.iter().filter(|mutant| matches!(mutant.fate, Fate::Noticed(_))).count()
    }

    /// Faults of which it is known whether they were noticed.
    #[must_use]
    pub fn judged(&self) -> usize {
        self.mutants.iter().filter(|mutant| !matches!(mutant.fate, Fate::Unknown(_))).count()
    }

    /// How many of them a gate noticed.
    #[must_use]
    pub fn noticed_by(&self, gate: &GoalId) -> usize {
        let by = |mutant: &&Mutant| matches!(&mutant.fate, Fate::Noticed(gates) if gates.contains(gate));
        self.mutants.iter().filter(by).count()
    }
}

/// A fault that can be planted.
struct Plan {
    path: String,
    /// The whole file with it.
    text: String,
    mutant: Mutant,
    /// Where it comes in the order that the seed makes.
    order: String,
}

/// Plants faults and asks the gates. `told` hears of each fault that was judged, with how many were and will be.
///
/// # Errors
/// [`BootError`] when there is no gate to ask, no place for a fault, or the checkout cannot be made.
pub fn test(
    place: &Place,
    env: &Env,
    loaded: &Loaded,
    options: &MutantOptions,
    show: Show,
    told: &mut dyn FnMut(&Mutant, (usize, usize)),
) -> Result<Tested, BootError> {
    let (at, from) = (clock::now(), clock::mono());
    let repo = boot::open_repo(place)?;
    let bench = Bench::new(place, env, loaded, AskedWall::default())?;
    bench.ask_anew();
    let head = repo.facts().head().map_err(Finding::from)?.commit;
    let mut control =
        ControlDir::open_or_create(&bench.scratch().join("control.git"), boot::git_program(env)?)?
            .with_excludes(peers_git::operator_excludes());
    let _imported = control.import(&repo, Some(&head))?;
    let lent = control.lend(&repo)?;
    let tree = control.facts().tree_of(&head).map_err(Finding::from)?;
    let base = match &options.base {
        Some(name) => Some(named(&repo, &control, name)?),
        None => run_base(place).filter(|base| *base != head),
    };
    let (gates, blind) = gates(loaded);
    if gates.is_empty() {
        return Err(Finding::new(
            exit::INVALID,
            "no hard gate runs a command in a checkout, so there is none to test",
            Step::text(
                "add a goal with `cmd:` to .peers/goals.yaml: `peers goals detect` proposes some",
                &[],
            ),
        )
        .into());
    }
    let mut plans = plans(&control, (base.as_ref(), &head), &loaded.config.checks.layout, options.seed)?;
    let places = plans.len();
    if places == 0 {
        let what = match &base {
            Some(base) => {
                format!("no source line in which a fault can be planted changed since {}", base.short())
            }
            None => "there is no source line in which a fault can be planted".to_owned(),
        };
        let hint =
            "`--base COMMIT` looks at more lines; sources are what `checks.layout` in config.yaml says";
        return Err(Finding::new(exit::INVALID, what, Step::text(hint, &[])).into());
    }
    plans.truncate(options.count);
    let planned = plans.len();
    let ground = Ground {
        dir: bench.checkout(&control, &head, &lent)?,
        control: &control,
        lent: &lent,
        key: TreeKey { head: head.clone(), tree: tree.clone() },
        gates: in_order_of_need(&gates, &loaded.goals),
        audience: Audience::of(show, gates.len()),
        bench: &bench,
    };
    let mut tested = Tested {
        at,
        head,
        tree,
        base,
        seed: options.seed,
        places,
        mutants: Vec::new(),
        gates,
        blind,
        red: Vec::new(),
        cut: 0,
        took_ms: 0,
        signal: None,
    };
    let (unmutated, signal) = ground.ask()?;
    tested.red = unmutated.into_iter().filter(|judged| !judged.verdict.is_pass()).collect();
    tested.signal = signal;
    if tested.signal.is_none() && tested.red.is_empty() {
        ground.stands_still()?;
    }
    // Nothing was written before this second.
    let mut last = seconds();
    for plan in plans {
        if tested.signal.is_some() || !tested.red.is_empty() {
            break;
        }
        if clock::mono().since(from) >= options.budget {
            tested.cut = planned - tested.mutants.len();
            break;
        }
        let (fate, signal) = ground.plant(&plan, &mut last)?;
        tested.signal = signal;
        if tested.signal.is_none() {
            let mutant = Mutant { fate, ..plan.mutant };
            told(&mutant, (tested.mutants.len() + 1, planned));
            tested.mutants.push(mutant);
        }
    }
    tested.took_ms = since(from);
    Ok(tested)
}

fn since(from: Mono) -> u64 {
    u64::try_from(clock::mono().since(from).as_millis()).unwrap_or(u64::MAX)
}

fn named(repo: &PeerRepo, control: &ControlDir, name: &str) -> Result<CommitId, Finding> {
    let found = repo.facts().named(name)?.filter(|commit| control.facts().has(commit));
    found.ok_or_else(|| {
        Finding::new(
            exit::INVALID,
            format!("`{}` names no commit of the history of HEAD", term::line(name, 80)),
            "give a full commit id, a branch or a tag",
        )
    })
}

/// Where the last run began.
fn run_base(place: &Place) -> Option<CommitId> {
    let mut disk = place.open_view_disk().ok()?;
    let mut base = None;
    let _state = store::read_each(&mut disk, |line| {
        if let Record::RunStarted(started) = &line.record {
            base = Some(started.head.clone());
        }
    })
    .ok()?;
    base
}

/// The gates that can see a fault in a checkout, and those that cannot.
fn gates(loaded: &Loaded) -> (Vec<GoalId>, Vec<GoalId>) {
    let live = exempt(&loaded.goals);
    let hard = loaded.goals.iter().filter(|goal| matches!(goal.kind, GoalKind::Hard(_)));
    let sees = |goal: &&peers_model::goal::Goal| {
        !live.contains(&goal.id) && matches!(goal.gate().map(|gate| &gate.run), Some(GateRun::Shell { .. }))
    };
    let (seeing, blind): (Vec<_>, Vec<_>) = hard.partition(sees);
    let ids = |goals: Vec<&peers_model::goal::Goal>| goals.into_iter().map(|goal| goal.id.clone()).collect();
    (ids(seeing), ids(blind))
}

/// The faults of all lines that changed, in the order that the seed makes: of each file one, then of each the next.
fn plans(
    control: &ControlDir,
    (base, head): (Option<&CommitId>, &CommitId),
    layout: &[String],
    seed: u32,
) -> Result<Vec<Plan>, Finding> {
    let facts = control.facts();
    let base = base.filter(|base| facts.has(base)).map(|base| facts.tree_of(base)).transpose()?;
    let tree = facts.tree_of(head)?;
    let mut by_file: Vec<Vec<Plan>> = Vec::new();
    let mut read = 0;
    for (path, lines) in facts.new_lines(base.as_ref(), &tree, |path| is_source(path, layout))? {
        let Some(blob) = facts.read_blob(head, &path, MAX_BYTES)? else { continue };
        read += blob.bytes.len();
        if read > MOST_BYTES {
            break;
        }
        let Ok(source) = Source::parse(&path, &blob.bytes) else { continue };
        let mut plans: Vec<Plan> = Vec::new();
        for mutation in source.mutations().into_iter().filter(|mutation| lines.contains(&mutation.line)) {
            let text = mutation.apply(source.text());
            let key = format!("{seed} {path} {} {}", mutation.range.start, mutation.with);
            let mutant = Mutant {
                path: path.clone(),
                line: mutation.line,
                kind: mutation.kind,
                shown: mutation.shown,
                fate: Fate::Survived,
            };
            plans.push(Plan { path: path.clone(), text, mutant, order: digest::sha256_hex(key.as_bytes()) });
        }
        plans.sort_by(|a, b| a.order.cmp(&b.order));
        by_file.push(plans);
    }
    let mut ranked: Vec<(usize, Plan)> =
        by_file.into_iter().flat_map(|plans| plans.into_iter().enumerate()).collect();
    ranked.sort_by(|(a, plan), (b, other)| a.cmp(b).then_with(|| plan.order.cmp(&other.order)));
    Ok(ranked.into_iter().map(|(_, plan)| plan).collect())
}

/// The checkout, and who is asked about it.
struct Ground<'a> {
    dir: std::path::PathBuf,
    control: &'a ControlDir,
    lent: &'a SyntheticGit,
    key: TreeKey,
    gates: Vec<GoalId>,
    audience: Audience,
    bench: &'a Bench,
}

impl Ground<'_> {
    /// What the gates say of the checkout as it is, one after the other.
    fn ask(&self) -> Result<(Vec<Judged>, Option<i32>), BootError> {
        let mut answers: Vec<Judged> = Vec::new();
        for gate in &self.gates {
            let not_green = answers.iter().filter(|judged| !judged.verdict.is_pass());
            let job = GateJob {
                place: Where::Pristine,
                dir: Some(self.dir.clone()),
                not_green: not_green.map(|judged| judged.goal.clone()).collect(),
                round: Some(self.audience.after(answers.len()).round()),
                ..GateJob::live(vec![gate.clone()], self.key.clone(), TickNo(0))
            };
            let found = self.bench.judge(job, Vec::new(), self.audience.show())?;
            answers.extend(found.gates);
            if found.signal.is_some() {
                return Ok((answers, found.signal));
            }
        }
        Ok((answers, None))
    }

    /// Plants a fault, asks, and puts the file back. `last` is the time that the file written last has, seconds.
    fn plant(&self, plan: &Plan, last: &mut u64) -> Result<(Fate, Option<i32>), BootError> {
        let (dir, name) = self.parent(&plan.path)?;
        let original = dir.read(name, u64::try_from(MAX_BYTES).unwrap_or(u64::MAX))?;
        write(&dir, name, plan.text.as_bytes(), last)?;
        let asked = self.ask();
        let found = dir.read(name, u64::try_from(MAX_BYTES).unwrap_or(u64::MAX));
        write(&dir, name, &original, last)?;
        let (answers, signal) = asked?;
        if !found.is_ok_and(|found| found == plan.text.as_bytes()) {
            return Ok((
                Fate::Unknown("a gate wrote this file, so that the fault was not there".to_owned()),
                signal,
            ));
        }
        if signal.is_none()
            && let Some(edited) = self.edited()?
        {
            let _same_place = self.bench.checkout(self.control, &self.key.head, self.lent)?;
            let why =
                format!("a gate changed another file of the commit ({edited}); the checkout was made anew");
            return Ok((Fate::Unknown(why), signal));
        }
        Ok((fate(&answers), signal))
    }

    /// Refuses gates that change files of the commit by themselves.
    fn stands_still(&self) -> Result<(), Finding> {
        let Some(edited) = self.edited()? else { return Ok(()) };
        let what = format!(
            "the gates change files of the commit ({}), so a planted fault cannot be told from what they write",
            term::line(&edited, 200)
        );
        Err(Finding::new(exit::INVALID, what, "let them check, or write to files that git ignores"))
    }

    /// A file of the commit that is not what it was.
    fn edited(&self) -> Result<Option<String>, Finding> {
        let files = self.control.dirty_files(&self.dir, &self.key.head, COMPARED + 1)?;
        if files.len() > COMPARED {
            let what = "more than 10,000 files of the checkout are not of the commit, so nobody can tell whether gates \
                        change those that are";
            return Err(Finding::new(
                exit::INVALID,
                what.to_owned(),
                "let git ignore what `setup` and gates make",
            ));
        }
        Ok(files.into_iter().find(|file| file.status != DirtyStatus::Added).map(|file| file.path))
    }

    fn parent<'p>(&self, path: &'p str) -> Result<(SafeDir, &'p str), BootError> {
        let path = Path::new(path);
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let mut dir = SafeDir::open_shared(&self.dir)?;
        for part in path.parent().into_iter().flat_map(Path::components) {
            dir = dir.subdir(part.as_os_str())?;
        }
        Ok((dir, name))
    }
}

/// Writes a file so that every build tool sees that it changed: its time is later than before by whole seconds, which
/// is as exact as some of them look.
fn write(dir: &SafeDir, name: &str, bytes: &[u8], last: &mut u64) -> Result<(), BootError> {
    dir.write_in_place(name, bytes)?;
    *last = seconds().max(*last + 1);
    let _stat = dir.set_modified(name, Duration::from_secs(*last))?;
    Ok(())
}

fn seconds() -> u64 {
    u64::try_from(clock::now().as_millis() / 1000).unwrap_or_default()
}

fn fate(answers: &[Judged]) -> Fate {
    let red: Vec<GoalId> =
        answers.iter().filter(|judged| judged.verdict.is_red()).map(|judged| judged.goal.clone()).collect();
    if !red.is_empty() {
        return Fate::Noticed(red);
    }
    let unknown = answers.iter().find_map(|judged| match &judged.verdict {
        Verdict::Error { diagnostic } => Some(format!("{}: {diagnostic}", judged.goal)),
        Verdict::Skipped { .. } => Some(format!("{} was not asked", judged.goal)),
        Verdict::Pass | Verdict::Fail { .. } | Verdict::Timeout { .. } => None,
    });
    unknown.map_or(Fate::Survived, Fate::Unknown)
}
