//! The next prompt, without sending it: `peers prompt`.
//!
//! The machine of the loop is asked what it would do, in memory: its records are folded into a copy of the
//! state and are never written. What has to be read of the repository is imported into a control git directory
//! that lives as long as the call, so it works beside a running loop. Gates are not run: the prompt shows what
//! they last answered, and [`Preview::owed`] says which of them a loop would ask first.

mod forecast;

use std::collections::{BTreeMap, VecDeque};

use peers_core::classify_path::TestPaths;
use peers_core::compose;
use peers_core::machine::{Composing, Facts};
use peers_core::prompt::Prompt;
use peers_core::state::State;
use peers_core::turns::{self, Choice};
use peers_git::{ControlDir, PeerRepo};
use peers_model::Backend;
use peers_model::goal::{Goal, GoalKind};
use peers_model::outcome::Usage;
use peers_model::record::Record;
use peers_model::step::StepRole;
use peers_model::{CommitId, GoalId, PeerName, RunId, RunRequest, TickNo, Tokens, Usd, exit};
use peers_place::Place;
use peers_place::anchor;
use peers_run::boot::{self, BootError, Finding, Loaded, RunOptions};
use peers_run::clock::SysClock;
use peers_run::gitrepo::{GitRepo, GitRepoParts};
use peers_run::measure::Measurer;
use peers_run::perform::{Known, compose_facts, plan_at, sealed_notes};
use peers_run::ports::{Clock as _, Repo as _, RepoFailure};
use peers_store::{Authors, FsDisk, commands, project, runs, store};
use peers_sys::env::Env;
use peers_sys::error::chain;
use peers_sys::term::quoted;
use peers_sys::{clock, term};

use crate::scratch::Scratch;
use forecast::Forecast;

pub use forecast::Next;

/// Turns of a peer that an estimate rests on.
const TURNS: usize = 10;
/// Gates that a note names.
const NAMED: usize = 8;

/// The next prompt and what is known about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    /// Who would get it.
    pub peer: PeerName,
    /// The tick that it would begin.
    pub tick: TickNo,
    /// It is that of a skeptic turn.
    pub skeptic: bool,
    /// The prompt. Its nonce, and with it its digest, is another one each time.
    pub prompt: Prompt,
    /// What the loop would do next, as far as that is known without running gates.
    pub next: Next,
    /// Gates that would be judged first; the prompt shows their last answers.
    pub owed: Vec<GoalId>,
    /// The open tick, if there is one: the prompt is that of the turn after it, as things stand.
    pub open: Option<Open>,
    /// What turns of this peer cost.
    pub past: Past,
}

/// The open tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// Which.
    pub tick: TickNo,
    /// Whose turn it is.
    pub peer: PeerName,
    /// A loop runs it. Else it was cut short, and the next run sees to it first.
    pub live: bool,
}

/// The last turns of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Past {
    /// How many were looked at.
    pub turns: usize,
    /// The tokens that a turn used.
    pub tokens: Option<Median<Tokens>>,
    /// What it cost.
    pub usd: Option<Median<Usd>>,
}

/// What turns used in the middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Median<T> {
    /// The lower one of two.
    pub middle: T,
    /// It may be more: only a part is known of a turn that used no more than this.
    pub at_least: bool,
    /// Of how many turns something is known.
    pub of: usize,
}

/// Composes the next prompt, of the peer whose turn it is or of the one that was asked for.
///
/// # Errors
/// [`BootError`] where files, journal or repository cannot be read, and exit 4 where the loop that runs works in
/// another work tree.
pub fn next_prompt(
    place: &Place,
    env: &Env,
    loaded: &Loaded,
    asked: Option<&PeerName>,
) -> Result<Preview, BootError> {
    let mut disk = place.open_view_disk()?;
    let Journal { mut state, mut authors, uses } = Journal::read(&mut disk)?;
    let looped = place.holder()?.is_some_and(|holder| holder.command.is_none());
    let running = state.live_run().filter(|_| looped).map(|run| run.id.clone());
    if let Some(run) = &running {
        works_here(place, run, &mut disk)?;
    }
    let repo = boot::open_repo(place)?;
    let head = match repo.facts().head() {
        Ok(head) => head.commit,
        Err(peers_git::GitError::Repo(error)) => return Err(boot::repo_finding(place, &error).into()),
        Err(error) => return Err(Finding::from(error).into()),
    };
    let scratch = Scratch::new(place)?;
    // The run that a start would make has another id; it is in no record.
    let run_id = running.clone().unwrap_or_else(|| scratch.run_id().clone());
    // What comes after a trial is what is asked for.
    let request = RunRequest { anyway: true, ..RunRequest::default() };
    let options = RunOptions { request, ..RunOptions::default() };
    let mut cfg = boot::configured(loaded, &options, &run_id, Backend::None);
    let now = clock::now();
    if running.is_some() {
        // A loop goes by what was accepted when it began, or since.
        cfg.rules = state.rules.clone();
    } else {
        for (_, record) in commands::waiting(&mut disk)? {
            // What does not fit is told by the start that records it.
            let _applied = state.apply(now, None, &Record::Operator(record));
        }
    }
    let open = close(&mut state, running.is_some());
    let base = base(&mut disk, &head)?;
    let mut source = source(&scratch, env, loaded, &repo, base)?;
    if boot::are_operators(&state) {
        cfg.uncommitted = boot::uncommitted_paths(source.control(), &repo, &head)?;
    }
    let scopes: Vec<(GoalId, Vec<String>)> = cfg.goals.iter().filter_map(scope).collect();
    let found = source.survey(state.head.as_ref(), &scopes, true).map_err(unread)?;
    let mut facts = Facts::from(found);
    if open.is_some() {
        // They are the turn's that is open, which nobody has seen to.
        facts.arrived.clear();
    }
    facts.plan = plan_at(&mut source, &cfg.course, &facts.head).map_err(unread)?;
    let forecast = Forecast::of(&cfg, state, (&facts, &mut authors), running.is_some())?;
    let Forecast { state, composing, next, owed } = forecast;
    let skeptic = composing.as_ref().is_some_and(|composing| composing.skeptic);
    let work = composing.as_ref().filter(|composing| asked.is_none_or(|peer| *peer == composing.peer));
    let work = work.and_then(|composing| composing.work.clone());
    let peer =
        asked.cloned().or_else(|| composing.map(|composing| composing.peer)).or_else(|| in_turn(&state));
    let peer = peer.ok_or_else(|| Finding::plain(exit::INVALID, "no peer is configured"))?;
    facts.arrived.clear();
    let composing = Composing { facts, peer: peer.clone(), skeptic, work };
    let known = Known { state: &state, authors: &authors };
    let unread = |error: &dyn std::error::Error| Finding::plain(exit::INVALID, chain(error));
    let mut more = compose_facts(&mut source, &mut disk, known, &peer, SysClock.nonce())
        .map_err(|error| unread(&error))?;
    if composing.work.as_ref().is_some_and(|work| work.role == StepRole::Compare) {
        more.notes = sealed_notes(&mut disk, &state.course).map_err(|error| unread(&error))?;
    }
    let prompt = compose::prepare(&cfg, &state, &composing, &more, now).prompt;
    let past = uses.get(&peer).map(Past::of).unwrap_or_default();
    Ok(Preview { tick: state.ticks.next(), peer, skeptic, prompt, next, owed, open, past })
}

/// What the journal says, read once.
#[derive(Default)]
struct Journal {
    state: State,
    authors: Authors,
    /// Of each peer what its newest turns used, and whether they may have used more, oldest first.
    uses: BTreeMap<PeerName, VecDeque<(Usage, bool)>>,
}

impl Journal {
    fn read(disk: &mut FsDisk) -> Result<Self, Finding> {
        let mut read = Self::default();
        let (state, _, _) = store::read_each(disk, |line| {
            read.authors.take(&line.record);
            if let Record::Tick(tick) = &line.record {
                let uses = read.uses.entry(tick.peer.clone()).or_default();
                uses.push_back((tick.exit.usage, tick.exit.at_least));
                if uses.len() > TURNS {
                    uses.pop_front();
                }
            }
        })?;
        Ok(Self { state, ..read })
    }
}

impl Preview {
    /// What to know of the prompt before it is believed, one sentence each, for people.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(Open { tick, peer, live }) = &self.open {
            notes.push(if *live {
                format!("tick {tick} of `{peer}` runs: this is what the turn after it is told, as things stand")
            } else {
                format!("tick {tick} of `{peer}` was cut short: the next run sees to it first, and it may change this")
            });
        }
        let many = self.owed.len() > 1;
        if !self.owed.is_empty() {
            let names = self.owed.iter().take(NAMED).map(|gate| format!("`{gate}`"));
            let names = term::first_of(self.owed.len(), names);
            let (verb, last) =
                if many { ("are", "their last answers, if any") } else { ("is", "its last answer, if any") };
            notes.push(format!("{names} {verb} judged first: the prompt has {last}"));
        }
        let given = match self.owed.len() {
            0 => String::new(),
            1 => "if that gate answers as it last did, ".to_owned(),
            _ => "if those gates answer as they last did, ".to_owned(),
        };
        match &self.next {
            Next::Turn(peer) if *peer == self.peer => {}
            Next::Turn(peer) => notes.push(format!("{given}it is the turn of `{peer}`")),
            Next::Proof => notes.push(format!(
                "{given}the gates run in a clean checkout next, and no prompt is sent if they pass there"
            )),
            Next::Wait(until) => notes.push(format!("{given}every peer waits, the first one until {until}")),
            Next::Stop(reason) => {
                notes.push(format!("{given}no prompt is sent: the loop stops with `{reason}`"));
            }
        }
        notes
    }

    /// Tokens of the prompt, at four bytes for one. What a tool adds to it is not known.
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        Tokens(u64::try_from(self.prompt.text.len().div_ceil(4)).unwrap_or(u64::MAX))
    }
}

impl Past {
    fn of(uses: &VecDeque<(Usage, bool)>) -> Self {
        let known = uses.iter().map(|(usage, part)| (usage.tokens, usage.usd, *part));
        let tokens = median(known.clone().filter_map(|(tokens, _, part)| Some((tokens?, part))).collect());
        let usd = median(known.filter_map(|(_, usd, part)| Some((usd?, part))).collect());
        Self { turns: uses.len(), tokens, usd }
    }
}

/// The median of what is known, each with whether it is a part. What is above the middle may grow and
/// changes nothing.
fn median<T: Copy + Ord>(mut of: Vec<(T, bool)>) -> Option<Median<T>> {
    of.sort_unstable();
    let (middle, _) = *of.get(of.len().checked_sub(1)? / 2)?;
    let at_least = of.iter().any(|(used, part)| *part && *used <= middle);
    Some(Median { middle, at_least, of: of.len() })
}

/// Refuses where the loop that runs has a work tree of its own: here nothing says what it sees.
fn works_here(place: &Place, run: &RunId, disk: &mut FsDisk) -> Result<(), Finding> {
    let records = runs::all(disk)?;
    let elsewhere = records.into_iter().find(|record| record.run_id == *run).map(|record| record.workdir);
    let Some(dir) = elsewhere.filter(|dir| *dir != place.work_dir().to_string_lossy()) else { return Ok(()) };
    let shown = term::inline(&dir);
    Err(Finding::new(
        exit::CONFLICT,
        format!("the loop that runs works in another work tree, {shown}"),
        format!("`peers -C {} prompt`", quoted(&dir)),
    ))
}

/// Takes the open tick for ended: what it was told counts as read, and nothing else is known of it.
fn close(state: &mut State, live: bool) -> Option<Open> {
    let open = state.open.take()?.started;
    let told = usize::try_from(open.warnings_taken).unwrap_or(usize::MAX).min(state.warnings.len());
    state.warnings.drain(..told);
    state.messages.retain(|message| !open.messages.contains(message));
    state.bookmarks.entry(open.peer.clone()).or_default().extend(open.inbox);
    state.ticks = open.tick;
    if live && let Some(at) = state.rules.peers.iter().position(|rule| rule.name == open.peer) {
        // As after a handoff.
        state.turn_index = (at + 1) % state.rules.peers.len();
    }
    Some(Open { tick: open.tick, peer: open.peer, live })
}

/// Where the history of the loop begins.
fn base(disk: &mut FsDisk, head: &CommitId) -> Result<CommitId, Finding> {
    let known = project::read(disk)?.and_then(|project| project.base);
    let began = match known {
        Some(base) => Some(base),
        None => anchor::of_runs(disk)?,
    };
    Ok(began.unwrap_or_else(|| head.clone()))
}

fn scope(goal: &Goal) -> Option<(GoalId, Vec<String>)> {
    match &goal.kind {
        GoalKind::Soft(soft) => Some((goal.id.clone(), soft.paths.clone())),
        GoalKind::Hard(_) => None,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "handed to `map_err` as it is")]
fn unread(failure: RepoFailure) -> Finding {
    let code = match &failure {
        RepoFailure::Git(_) => exit::INVALID,
        RepoFailure::DiskFull(_) => exit::BUG,
        RepoFailure::Weakened(_) | RepoFailure::Tampered { .. } => exit::REFUSED,
    };
    Finding::plain(code, failure.to_string())
}

/// The peer at whose place the rotation stands.
fn in_turn(state: &State) -> Option<PeerName> {
    match turns::choose(state, clock::now()) {
        Choice::Peer(_, peer) => Some(peer),
        Choice::Wait(_) | Choice::Nobody => state.turn_peer().cloned(),
    }
}

/// The repository as a loop sees it, over a control git directory of our own.
fn source(
    scratch: &Scratch,
    env: &Env,
    loaded: &Loaded,
    repo: &PeerRepo,
    base: CommitId,
) -> Result<GitRepo, BootError> {
    let dir = scratch.dir();
    let control = ControlDir::open_or_create(&dir.path().join("control.git"), boot::git_program(env)?)?
        .with_excludes(peers_git::operator_excludes());
    let parts = GitRepoParts {
        work_dir: repo.work_dir().to_owned(),
        common_dir: repo.common_dir().to_owned(),
        git_dir: dir.create_subdir("marks")?,
        pristine: dir.path().join("none"),
        base: Some(base),
        tests: TestPaths::new(&loaded.config.bug_hunt.test_globs),
        measurer: Measurer::this_program().map_err(|e| Finding::plain(exit::BUG, e.to_string()))?,
        kept: None,
        turns: None,
    };
    let mut source = GitRepo::new(control, parts);
    // What follows reads HEAD there.
    source.bring_in(repo)?;
    Ok(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_an_amount_that_was_there() {
        let middle = |of: &[u64]| {
            median(of.iter().map(|used| (*used, false)).collect()).map(|found| (found.middle, found.of))
        };
        assert_eq!(middle(&[]), None);
        assert_eq!(middle(&[7]), Some((7, 1)));
        assert_eq!(middle(&[9, 1, 5]), Some((5, 3)));
        assert_eq!(middle(&[9, 1]), Some((1, 2)));
    }

    #[test]
    fn a_part_that_may_move_the_median_makes_it_a_lower_bound() {
        let least = |of: &[(u64, bool)]| median(of.to_vec()).map(|found| (found.middle, found.at_least));
        assert_eq!(least(&[(9, false), (1, true), (5, false)]), Some((5, true)));
        assert_eq!(least(&[(9, false), (1, false), (5, true)]), Some((5, true)));
        assert_eq!(
            least(&[(9, true), (1, false), (5, false)]),
            Some((5, false)),
            "more than 9 is above 5 too"
        );
        assert_eq!(least(&[(5, true), (5, false), (1, false)]), Some((5, true)));
    }

    #[test]
    fn turns_whose_use_is_not_known_are_not_counted_as_nothing() {
        let usage = |tokens, usd: Option<u64>| Usage { tokens, usd: usd.map(Usd::from_micros) };
        let uses = [usage(Some(Tokens(10)), None), usage(Some(Tokens(30)), Some(5)), usage(None, None)];
        let past = Past::of(&uses.map(|usage| (usage, usage.usd.is_some())).into());
        assert_eq!(past.turns, 3);
        assert_eq!(past.tokens, Some(Median { middle: Tokens(10), at_least: false, of: 2 }));
        let usd = Usd::from_micros(5);
        assert_eq!(past.usd, Some(Median { middle: usd, at_least: true, of: 1 }));
    }
}
