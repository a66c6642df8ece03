//! What a turn left in the repository.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use peers_core::cheat::{TurnDiff, Uncommitted};
use peers_core::machine::{CommitSeen, Harvest, HeadFacts, Origin};
use peers_git::{CliError, CommitFact, Generation, GitError, NewCommit, PeerRepo};
use peers_model::claim::{Claimed, CommitClaims};
use peers_model::{CommitId, GoalId, TickNo, TreeId};
use peers_sys::error::chain;
use peers_sys::term;

use super::kept;
use super::mend::{self, aside, quoted};
use super::putback::{Stored, not_back, text, texts};
use super::turn::TurnMark;
use super::{GitRepo, UNREADABLE_REFS, correction_mark, failure, is_substrate, no_space, substrate};
use crate::measure::is_measured;
use crate::ports::{RepoFailure, Scopes};

/// A review that passes: of which goal, and the paths that it may name.
type Passing = (GoalId, Vec<String>);

/// Identities named in a warning about committers.
const COMMITTERS: usize = 5;

/// What is asked about a turn.
#[derive(Clone, Copy)]
struct Asked<'a> {
    tick: TickNo,
    from: &'a CommitId,
    scopes: &'a Scopes,
}

/// The work of a turn, read.
struct Seen {
    at: HeadFacts,
    dirty: Vec<String>,
    ancestor: bool,
    commits: Vec<CommitSeen>,
    diff: TurnDiff,
    uncommitted: Uncommitted,
    scopes: BTreeMap<GoalId, (String, String)>,
    warnings: Vec<String>,
    /// What lies deeper in the work tree than can be read.
    too_deep: Vec<Vec<u8>>,
}

impl GitRepo {
    pub(super) fn harvest_turn(
        &mut self,
        tick: TickNo,
        from: &CommitId,
        scopes: &Scopes,
    ) -> Result<Harvest, RepoFailure> {
        let mark = self.turn.take().filter(|m| m.tick == tick);
        let asked = Asked { tick, from, scopes };
        self.turn = mark;
        let found = self.with_control(|repo| {
            let mark = repo.turn.take();
            let found = repo.harvest_marked(asked, mark.as_ref());
            repo.turn = mark;
            found
        });
        if let Ok(found) = &found {
            self.remember_left(tick, &found.uncommitted)?;
        }
        found.map_err(|failure| match failure {
            RepoFailure::Git(detail) => RepoFailure::Git(format!("after tick {tick}: {detail}")),
            tampered @ RepoFailure::Tampered { .. } => self.keep_before_stop((tick, from), tampered),
            other @ (RepoFailure::DiskFull(_) | RepoFailure::Weakened(_)) => other,
        })
    }

    fn harvest_marked(&mut self, asked: Asked<'_>, mark: Option<&TurnMark>) -> Result<Harvest, RepoFailure> {
        let mut found = Harvest::default();
        // A turn that had one of its own did not reach the git directory of the checkout: what changed there is
        // somebody else's.
        let reached = mark.filter(|_| !self.own_git);
        if let Some(mark) = reached {
            mend::files(mark, &self.git_dir, &mut found)?;
            mark.mended.tell(&mut found);
        }
        let peer = self.open_sound()?;
        if let Some(mark) = reached {
            Self::guarded_refs(&peer, mark, &mut found)?;
            self.take_unfinished(&peer, mark, &mut found)?;
        }
        if !self.own_git {
            mend::debris(&peer, mark, &mut found)?;
        }
        if let Some(mark) = mark {
            self.check_branch(&peer, mark, asked.from)?;
            self.mend_head(&peer, mark, asked.from, &mut found)?;
        }
        let head = peer.facts().head()?.commit;
        self.check_tip(&peer, &head, mark.map(|mark| (mark, asked.from)))?;
        let seen = match (self.see(&peer, asked, mark), mark) {
            (Ok(seen), _) => seen,
            (Err(error), Some(mark)) if is_about_the_work(&error) && !no_space(&error) => {
                // Our own copy may be what cannot be read.
                let again = if self.mend_control(Some((asked.from, mark.known))) {
                    self.see(&peer, asked, Some(mark))
                } else {
                    Err(error)
                };
                match again {
                    Ok(seen) => seen,
                    Err(error) if is_about_the_work(&error) && !no_space(&error) => {
                        self.set_aside(&peer, mark, asked, (&head, &error), &mut found)?;
                        self.see(&peer, asked, Some(mark))?
                    }
                    Err(error) => return Err(failure(error)),
                }
            }
            (Err(error), _) => return Err(failure(error)),
        };
        self.check_depth(&seen.too_deep)?;
        let Seen { at, dirty, ancestor, commits, diff, uncommitted, scopes, warnings, too_deep: _ } = seen;
        if let Some(mark) = mark {
            self.keep_left_branch(&peer, mark, (asked.from, &at.head), &mut found)?;
        }
        if let Some(mark) = reached {
            self.settle_index(&peer, mark, &at, &mut found)?;
            self.lost_refs(&peer, mark, &mut found)?;
        }
        found.warnings.extend(warnings);
        found.warnings.append(&mut self.to_tell);
        Ok(Harvest { at: Some(at), ancestor, commits, diff, uncommitted, dirty, scopes, ..found })
    }

    /// Imports the work and reads everything of it that is asked for later. What cannot be read here would
    /// stop the loop there.
    fn see(&mut self, peer: &PeerRepo, asked: Asked<'_>, mark: Option<&TurnMark>) -> Result<Seen, GitError> {
        let Asked { tick, from, scopes } = asked;
        let head = peer.facts().head()?.commit;
        let ours = self.correction_at(&head, tick, from);
        self.import(peer)?;
        let (at, state) = self.head_facts(peer)?;
        let facts = self.control.facts();
        let mut seen = Seen {
            dirty: self.dirty_names(&at.head, &state),
            ancestor: facts.has(from) && facts.is_ancestor(from, &at.head)?,
            commits: Vec::new(),
            diff: TurnDiff::default(),
            uncommitted: Uncommitted::default(),
            scopes: BTreeMap::new(),
            warnings: Vec::new(),
            too_deep: state.too_deep.clone(),
            at,
        };
        let edited: Vec<String> =
            state.submodules.iter().filter(|m| m.changed).map(|m| m.path.clone()).collect();
        if !edited.is_empty() {
            seen.warnings.push(format!(
                "submodules have uncommitted content, which no commit of this repository can hold: {}",
                quoted(&edited)
            ));
        }
        if facts.has(from) {
            let known = mark.map_or(Generation(0), |m| m.known);
            let old = facts.tree_of(from)?;
            self.control.check_checkout(&old, &seen.at.head_tree)?;
            let new = self.control.new_commits(Some(from), &seen.at.head, known)?;
            seen.warnings.extend(committers(&new, ours.as_ref()));
            seen.commits = self.origins(new, ours.as_ref(), &seen.at.head_tree)?;
            (seen.diff, seen.uncommitted) = self.compared(&old, &seen.at, state.dirty, mark)?;
            seen.warnings.extend(self.tracked_below_peers(from, &seen.at.head)?);
            let then = self.scope_digests(scopes, from)?;
            let mut now = self.scope_digests(scopes, &seen.at.head)?;
            let pair = |(id, before): (GoalId, String)| {
                let after = now.remove(&id).unwrap_or_default();
                (id, (before, after))
            };
            seen.scopes = then.into_iter().map(pair).collect();
        }
        Ok(seen)
    }

    /// What a turn committed, and what lay in the work tree without being committed when it began and when it ended.
    fn compared(
        &self,
        from: &TreeId,
        at: &HeadFacts,
        dirty: bool,
        mark: Option<&TurnMark>,
    ) -> Result<(TurnDiff, Uncommitted), GitError> {
        let (base, head) = (Stored::whole(from.clone()), Stored::whole(at.head_tree.clone()));
        // One that was only committed is clean now: then nothing is new in it.
        let start = mark.map(|mark| Stored {
            tree: mark.work.clone().unwrap_or_else(|| from.clone()),
            left_out: mark.left_out.clone(),
        });
        let end = if dirty && mark.is_some() { Some(self.stored(&at.head)?) } else { None };
        let since = start.as_ref().filter(|_| mark.is_some_and(|mark| mark.work.is_some()));
        let around = start.as_ref().zip(end.as_ref()).filter(|(start, end)| start != end);
        let mut pairs = vec![(&base, &head)];
        pairs.extend(since.map(|start| (start, &head)));
        pairs.extend(around.into_iter().flat_map(|(start, end)| [(&head, end), (start, end)]));
        let mut diffs = self.diffs(&pairs)?.into_iter();
        let diff = diffs.next().unwrap_or_default();
        let since = since.and_then(|_| diffs.next());
        let (left, made) = (diffs.next().unwrap_or_default(), diffs.next().unwrap_or_default());
        let charged = mark.map(|mark| mark.charged.clone()).unwrap_or_default();
        Ok((diff, Uncommitted { since, left, made, charged }))
    }

    /// Puts back what a turn weakened in the work tree and did not commit.
    pub(super) fn undo_what_a_turn_left(
        &mut self,
        tick: TickNo,
        from: &CommitId,
        found: &mut Harvest,
    ) -> Result<(), RepoFailure> {
        let Some(at) = found.at.clone().filter(|_| found.ancestor) else { return Ok(()) };
        let before = self.control.facts().tree_of(from)?;
        let mark = self.turn.as_ref().filter(|mark| mark.tick == tick);
        let Some(start) = mark.and_then(|mark| mark.start(&before)) else { return Ok(()) };
        let target = self.target(&before, &start, &at.head_tree)?;
        let weaker = |repo: &Self, now: &Stored| repo.weaker_left(&at.head_tree, &start, now);
        let Some(done) = self.put_back((tick, "left"), &target, &weaker)? else { return Ok(()) };
        found.warnings.push(format!(
            "tests were weakened in the work tree by a turn that was cut short, at {}: that was undone, {};              commit what is meant",
            quoted(&done.names),
            done.words()
        ));
        let peer = self.open()?;
        let (at, state) = self.head_facts(&peer)?;
        found.dirty = self.dirty_names(&at.head, &state);
        let mark = self.turn.take();
        let compared = self.compared(&before, &at, state.dirty, mark.as_ref());
        self.turn = mark;
        (found.diff, found.uncommitted) = compared?;
        found.at = Some(at);
        self.remember_left(tick, &found.uncommitted)
    }

    /// Remembers what a turn leaves weaker than it is in HEAD: for that the turn answers, and for what was
    /// left so before it somebody else did.
    fn remember_left(&mut self, tick: TickNo, around: &Uncommitted) -> Result<(), RepoFailure> {
        let Some(mut mark) = self.turn.take().filter(|mark| mark.tick == tick) else { return Ok(()) };
        let own = around.left.weaker_since(&around.made);
        let known = |path: &String| mark.charged.contains(path) || own.iter().any(|w| w.path == *path);
        let left: BTreeSet<String> =
            around.left.weaker.iter().map(|w| w.path.clone()).filter(known).collect();
        if left == mark.left_weaker {
            self.turn = Some(mark);
            return Ok(());
        }
        mark.left_weaker = left;
        self.keep_mark(mark)
    }

    /// Work that cannot be read is no work: it is kept where it can be, and branch and work tree go back to
    /// where the turn began.
    fn set_aside(
        &mut self,
        peer: &PeerRepo,
        mark: &TurnMark,
        asked: Asked<'_>,
        (head, error): (&CommitId, &GitError),
        found: &mut Harvest,
    ) -> Result<(), RepoFailure> {
        let Asked { tick, from, .. } = asked;
        self.check_tip(peer, from, None)?;
        let who = substrate(peers_sys::clock::now());
        let mut places = Vec::new();
        let branch_tip = match &mark.branch {
            Some(branch) => peer.facts().reference(branch).ok().flatten(),
            None => None,
        };
        for tip in [Some(head.clone()), branch_tip.clone()].into_iter().flatten() {
            if tip == *from {
                continue;
            }
            let place = if self.control.facts().has(&tip) {
                self.keep(mark.tick, "unreadable", &tip)?
            } else {
                let name = format!("{UNREADABLE_REFS}tick-{:05}-{}", tick.0, tip.short());
                peer.name_commit(&name, &tip, &who)?;
                name
            };
            if !places.contains(&place) {
                places.push(place);
            }
        }
        // The files themselves, as far as they lie in the work tree: a copy first.
        let kept = self.control.salvage(&aside(tick, "work-tree"), from, &self.work_dir, &who);
        peer.publish(&self.control, from)?;
        match &mark.branch {
            Some(branch) => {
                self.set_branch(peer, branch, from)?;
                peer.set_head_branch(branch, &who)?;
            }
            None => peer.detach_head(from, &who)?,
        }
        let tree = self.control.facts().tree_of(from)?;
        match (kept, mark.start(&tree)) {
            (Ok(kept), Some(start)) => {
                if kept.dirty {
                    places.push(kept.name);
                }
                if !kept.left_out.is_empty() {
                    found.warnings.push(format!("could not be copied: {}", quoted(&texts(&kept.left_out))));
                }
                let now = Stored {
                    tree: self.control.facts().tree_of(&kept.commit)?,
                    left_out: self.stored(from)?.left_out,
                };
                let target = self.target(&tree, &start, &tree)?;
                let left_out: HashSet<String> = texts(&kept.left_out).into_iter().collect();
                let tests = self.tests.clone();
                let which = |path: &str| is_measured(&tests, path) || !left_out.contains(path);
                let blocked = self.write_back(peer, (&now, &target), &which)?;
                if blocked.iter().any(|path| is_measured(&tests, &text(path))) {
                    return Err(not_back(&blocked));
                }
                if !blocked.is_empty() {
                    found.warnings.push(format!("could not be put back: {}", quoted(&texts(&blocked))));
                }
            }
            (Ok(_), None) => found.warnings.push(
                "too much was uncommitted before this turn: the work tree was left as it is".to_owned(),
            ),
            (Err(GitError::DiskFull { what }), _) => {
                return Err(RepoFailure::DiskFull(format!("no space left while writing {what}")));
            }
            (Err(error), _) => {
                found.warnings.push(format!("the work tree was left as it is: {}", chain(&error)));
            }
        }
        let places = if places.is_empty() { "nowhere".to_owned() } else { quoted(&places) };
        let why = term::inline(&chain(error));
        found.unreadable = Some(format!(
            "the work of tick {tick} up to {} cannot be read ({why}); kept as {places}",
            head.short()
        ));
        Ok(())
    }

    /// The index goes back to HEAD where this turn left it different: what is staged would go into the next
    /// commit, whoever makes it.
    pub(super) fn settle_index(
        &mut self,
        peer: &PeerRepo,
        mark: &TurnMark,
        at: &HeadFacts,
        found: &mut Harvest,
    ) -> Result<(), RepoFailure> {
        if peer.busy().contains(&peers_git::BusyState::IndexLock) {
            found.warnings.push("the index is locked, so it was not compared with HEAD".into());
            return Ok(());
        }
        if !peer.index_readable() {
            let index = term::quoted(&peer.git_dir().join("index").to_string_lossy());
            let dir = term::quoted(&self.work_dir.to_string_lossy());
            let way = format!("`rm -rf {index} && git -C {dir} reset -q` makes it again from HEAD");
            return Err(RepoFailure::Tampered {
                what: "the index cannot be read".to_owned(),
                way: Some(way),
            });
        }
        let Some(before) = &mark.index else { return Ok(()) };
        let who = substrate(peers_sys::clock::now());
        let name = aside(mark.tick, "index");
        let settled = peer.settle_index(&self.control, &at.head, before, (&name, &who))?;
        if !settled.reset.is_empty() {
            let kept = settled.kept.map_or_else(String::new, |name| {
                format!("; content that is nowhere else is kept as salvage `{name}`")
            });
            found.warnings.push(format!(
                "this turn left changes staged and not committed: the index was set back to HEAD at {}, files stay as they are{kept}",
                quoted(&settled.reset)
            ));
        }
        if !settled.left_out.is_empty() {
            found.warnings.push(kept::staged_left_out(&self.git_dir, mark.tick, &settled.left_out));
        }
        if !settled.unhidden.is_empty() {
            found.warnings.push(format!(
                "this turn told git not to look at {}: that was undone",
                quoted(&settled.unhidden)
            ));
        }
        Ok(())
    }

    /// A warning when this turn put our own directory under version control: whoever resets or switches
    /// then overwrites what the operator accepted.
    fn tracked_below_peers(&self, from: &CommitId, head: &CommitId) -> Result<Option<String>, GitError> {
        let facts = self.control.facts();
        let now = facts.list_below(head, ".peers")?;
        if now.is_empty() {
            return Ok(None);
        }
        let before = facts.list_below(from, ".peers")?;
        let new: Vec<String> =
            now.into_iter().filter(|item| !before.contains(item)).map(|item| item.path).collect();
        Ok((!new.is_empty()).then(|| {
            format!(
                "this turn committed {} below `.peers`: a checkout or reset would overwrite the operator's files; undo it with `git rm -r --cached .peers` and a commit",
                quoted(&new)
            )
        }))
    }

    fn origins(
        &self,
        new: Vec<NewCommit>,
        ours: Option<&CommitId>,
        end: &TreeId,
    ) -> Result<Vec<CommitSeen>, GitError> {
        let mut seen: Vec<(CommitSeen, Vec<Passing>)> = Vec::new();
        for c in new {
            let origin = if ours == Some(&c.fact.id) {
                Origin::Own
            } else if c.known {
                Origin::Known
            } else {
                Origin::Peer
            };
            let passing = if origin == Origin::Peer { passing(&c.fact.message) } else { Vec::new() };
            let paths = if origin == Origin::Peer { self.top_changed(&c.fact)? } else { Vec::new() };
            let CommitFact { id, message, .. } = c.fact;
            seen.push((CommitSeen { id, message, origin, paths, unfounded: Vec::new() }, passing));
        }
        let wanted = seen.iter().flat_map(|(_, passing)| passing).flat_map(|(_, named)| named);
        let there = self.there(end, &wanted.map(String::as_str).collect())?;
        let unfounded = |(mut seen, passing): (CommitSeen, Vec<Passing>)| {
            let lacking =
                passing.into_iter().filter(|(_, named)| !named.iter().any(|path| there.contains(path)));
            seen.unfounded = lacking.map(|(goal, _)| goal).collect();
            seen
        };
        Ok(seen.into_iter().map(unfounded).collect())
    }

    /// The files at the top of the tree that a commit changed.
    fn top_changed(&self, commit: &CommitFact) -> Result<Vec<String>, GitError> {
        let facts = self.control.facts();
        let Some(parent) = commit.parents.first() else { return Ok(Vec::new()) };
        let mut paths = facts.changed_paths(&facts.tree_of(parent)?, &commit.tree)?;
        paths.retain(|path| !path.contains('/'));
        Ok(paths)
    }

    /// Which of these paths a tree has, files and directories: one walk, whatever is asked for.
    fn there(&self, tree: &TreeId, wanted: &HashSet<&str>) -> Result<HashSet<String>, GitError> {
        let mut there = HashSet::new();
        if wanted.is_empty() {
            return Ok(there);
        }
        self.control.facts().each_path(tree, |path| {
            let mut rest = Some(path);
            while let Some(at) = rest {
                if wanted.contains(at) {
                    there.insert(at.to_owned());
                }
                rest = at.rsplit_once('/').map(|(above, _)| above);
            }
        })?;
        Ok(there)
    }

    /// HEAD, when it is our own correction of this tick, from before a crash. Asked before the peer's work
    /// is imported: what the peer made is not in the control dir yet, so it can only forge the mark.
    /// Known work with such a mark is ours only if it restores the very tree, which is harmless.
    fn correction_at(&self, head: &CommitId, tick: TickNo, from: &CommitId) -> Option<CommitId> {
        let facts = self.control.facts();
        let fact = facts.commit(head).ok()?;
        let mark = correction_mark(tick);
        let ours = is_substrate(&fact)
            && fact.message.lines().any(|l| l.trim() == mark)
            && facts.tree_of(from).is_ok_and(|tree| tree == fact.tree);
        ours.then_some(fact.id)
    }
}

fn passing(message: &str) -> Vec<Passing> {
    let claims = CommitClaims::read(message);
    let passing = claims.reviews.iter().flatten().map(Claimed::unverified).filter(|claim| claim.pass);
    passing.map(|claim| (claim.goal.clone(), claim.named().map(str::to_owned).collect())).collect()
}

/// Every peer's git is told who it is: `NAME <NAME@peers.local>`. A commit by another committer was made
/// by the operator meanwhile, fetched from somewhere, or made under a false name; it counts all the same, unless
/// it came when the turn had ended.
fn committers(new: &[NewCommit], ours: Option<&CommitId>) -> Option<String> {
    let mut by: BTreeMap<(String, String), usize> = BTreeMap::new();
    for commit in new.iter().filter(|c| !c.known && ours != Some(&c.fact.id)) {
        let who = &commit.fact.committer;
        *by.entry((who.name.clone(), who.email.clone())).or_default() += 1;
    }
    let told = |(name, email): &(String, String)| *email == format!("{name}@peers.local");
    if by.keys().all(told) && by.len() <= 1 {
        return None;
    }
    let several = by.keys().filter(|who| told(who)).count() > 1;
    let odd: Vec<String> = by
        .iter()
        .filter(|(who, _)| several || !told(who))
        .take(COMMITTERS)
        .map(|((name, email), n)| {
            let plural = if *n == 1 { "commit" } else { "commits" };
            format!("{n} {plural} by `{} <{}>`", term::line(name, 60), term::line(email, 60))
        })
        .collect();
    Some(format!(
        "{} appeared since this turn began; those that were there when it ended count as its peer's",
        odd.join(", ")
    ))
}

/// Whether it is what the turn made that cannot be read, and not our disk or program that fails.
fn is_about_the_work(error: &GitError) -> bool {
    match error {
        GitError::Corrupt { .. }
        | GitError::NotFound { .. }
        | GitError::InvalidName { .. }
        | GitError::TooLarge { .. }
        | GitError::Unsafe { .. }
        | GitError::Library { .. }
        | GitError::Cli(
            CliError::TimedOut { .. } | CliError::OutputTooLarge { .. } | CliError::Failed { .. },
        ) => true,
        GitError::Repo(_)
        | GitError::Cli(_)
        | GitError::Moved { .. }
        | GitError::Exists { .. }
        | GitError::DiskFull { .. }
        | GitError::Io { .. } => false,
    }
}
