//! `peers doctor`: whether a run could start here and what its peers need, each finding with what mends it.
//!
//! What a start refuses for is asked of the start itself ([`peers_run::boot::examine`]), so both say the same
//! words. What comes on top is about the programs of the peers, leftovers and the clock. Nothing is changed.

mod check;
mod hooks;
mod live;
mod peers;

use std::path::PathBuf;
use std::rc::Rc;

use peers_git::{Git, PeerRepo};
use peers_model::command::Step;
use peers_model::request::AskedWall;
use peers_model::{PeerName, Timestamp, exit};
use peers_place::{Holder, Place, PlaceError};
use peers_run::boot::walls::Found;
use peers_run::boot::{self, BootError, Examined, Finding, Loaded, Part};
use peers_run::drive;
use peers_run::env::{Policy, peer_email};
use peers_run::procs::{Site, SiteSpec, tool_spec};
use peers_store::{layout, store};
use peers_sys::dir::SafeDir;
use peers_sys::env::Env;
use peers_sys::error::chain;
use peers_sys::{clock, reap, term};

use crate::scratch::Scratch;

pub use check::{Answer, Check, Level};

/// Processes that a finding names.
const NAMED: usize = 10;

/// Everything that was looked at, in checking order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// What was found.
    pub checks: Vec<Check>,
    /// What the peers answered, if they were asked.
    pub answers: Vec<Answer>,
}

impl Report {
    /// The exit code: that of the first error, else 0.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        self.checks.iter().map(|check| check.exit).find(|code| *code != exit::OK).unwrap_or(exit::OK)
    }
}

/// Whether peers are asked for a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// No: nothing is spent.
    Nobody,
    /// Each peer, in an empty repository of our own. It costs what one short turn costs.
    EachPeer,
}

/// Looks at everything.
///
/// # Errors
/// [`BootError`] where not even a private directory can be made to look from.
pub fn examine(place: &Place, env: &Env, ask: Ask) -> Result<Report, BootError> {
    let holder = place.holder()?;
    let Examined { parts, loaded, .. } = boot::examine(place, env);
    let scratch = Scratch::new(place)?;
    let mut report = Report::default();
    let mut runnable = Vec::new();
    for (part, findings) in parts {
        if holder.is_some() && matches!(part, Part::Repository | Part::WorkTree) {
            // Somebody may be in the middle of it.
            continue;
        }
        let about = word(&part);
        if findings.is_empty() {
            if let Part::Peer(peer) = &part {
                runnable.push(peer.clone());
            }
            report.checks.extend(fine(&part, &about, place, env, loaded.as_ref()));
        }
        report.checks.extend(findings.into_iter().map(|finding| Check::found(&about, finding)));
    }
    if let Some(loaded) = &loaded {
        report.checks.extend(hooks::look(place, env, &loaded.config));
        let left_out = loaded.left_out(place.work_dir(), env);
        report.checks.extend(left_out.iter().map(|dir| Check::warning("gates", dir.what(), dir.remedy())));
    }
    let lost = holder.is_none().then(|| boot::gone::lost(place, &mut place.open_view_disk().ok()?)).flatten();
    report.checks.extend(lost.map(|finding| Check::found("branch", finding)));
    let unseen_lock = store_is_gone(place) && holder.is_none();
    report.checks.push(if unseen_lock { unseen(place) } else { lock(holder.as_ref()) });
    report.checks.extend(foreign_lock(place));
    report.checks.extend(leftovers(place, holder.as_ref()));
    report.checks.extend(journal_clock(place));
    if let Some(loaded) = &loaded {
        ask_peers(place, env, (loaded, &runnable), &scratch, (ask, &mut report))?;
    }
    Ok(report)
}

/// The part of a set-up, for people.
fn word(part: &Part) -> String {
    match part {
        Part::Path => "path".to_owned(),
        Part::Files => "store".to_owned(),
        Part::Setup => "set-up".to_owned(),
        Part::Acceptance => "acceptance".to_owned(),
        Part::Journal => "journal".to_owned(),
        Part::Repository => "repository".to_owned(),
        Part::Git => "git".to_owned(),
        Part::Peer(name) => format!("peer {name}"),
        Part::Space => "disk".to_owned(),
        Part::WorkTree => "work tree".to_owned(),
    }
}

/// What is said of a part against which nothing stands.
fn fine(part: &Part, about: &str, place: &Place, env: &Env, loaded: Option<&Loaded>) -> Option<Check> {
    let text = match part {
        // Nothing worth a line; of peers there is more to say.
        Part::Path | Part::WorkTree | Part::Peer(_) => return None,
        Part::Files => {
            format!("the trusted store is {}", term::inline(&place.store_dir().to_string_lossy()))
        }
        Part::Setup => {
            let loaded = loaded?;
            format!(
                "goals.yaml and config.yaml are valid; goals: {}, peers: {}",
                loaded.goals.len(),
                loaded.config.peers.len()
            )
        }
        Part::Acceptance => "both are what was accepted, and there is a gate of your own".to_owned(),
        Part::Journal => "the journal is whole".to_owned(),
        Part::Repository => {
            let repo = PeerRepo::open(place.work_dir()).ok()?;
            let head = repo.facts().head().ok()?;
            let branch = head.branch.as_deref().map(|name| name.trim_start_matches("refs/heads/"));
            let on = branch
                .map_or_else(|| "a detached HEAD".to_owned(), |name| format!("`{}`", term::line(name, 80)));
            let who =
                loaded.and_then(|loaded| loaded.config.peers.first()).map_or_else(String::new, |peer| {
                    format!(
                        "; each peer commits under its own name (`{} <{}>`)",
                        peer.name,
                        peer_email(&peer.name)
                    )
                });
            format!("on {on} at {}, nothing in progress{who}", head.commit.short())
        }
        Part::Git => {
            let git = Git::locate(env.var("PATH").unwrap_or_default()).ok()?;
            format!("{}, version {}", term::inline(&git.program().to_string_lossy()), git.version().ok()?)
        }
        Part::Space => "there is room where peers writes".to_owned(),
    };
    Some(Check::ok(about, text))
}

/// The repository is set up, and its trusted store, in which the run lock lies, is not there.
fn store_is_gone(place: &Place) -> bool {
    let peers = SafeDir::open_shared(place.work_dir()).and_then(|dir| dir.subdir(peers_place::PEERS_DIR));
    let set_up = || peers.and_then(|dir| dir.stat(layout::peers::GOALS)).is_ok_and(|goals| goals.is_some());
    matches!(place.view_store(), Ok(None)) && set_up()
}

/// Nobody could look at the run lock.
fn unseen(place: &Place) -> Check {
    let store = term::inline(&place.store_dir().to_string_lossy());
    Check::warning(
        "lock",
        format!("cannot tell whether a loop runs: its lock is in the trusted store, and {store} is missing"),
        "before anything else make sure that none does (`ps`): one goes on without its store until it next writes",
    )
}

fn lock(holder: Option<&Holder>) -> Check {
    let Some(Holder { pid, run_id, command, .. }) = holder else {
        return Check::ok("lock", "the run lock is free");
    };
    let pid = pid.map(|pid| format!(", process {pid}")).unwrap_or_default();
    match (command, run_id) {
        (Some(command), _) => Check::ok("lock", format!("`peers {command}` works here{pid}")),
        (None, Some(run)) => {
            Check::ok("lock", format!("run {run} works here{pid}; the repository is not looked at"))
        }
        (None, None) => Check::ok("lock", format!("a loop works here{pid}; the repository is not looked at")),
    }
}

/// That somebody holds the lock of older systems.
fn foreign_lock(place: &Place) -> Option<Check> {
    let error = place.refuse_foreign_lock().err()?;
    // Whatever else is wrong there was told with the files.
    matches!(error, PlaceError::ForeignLock { .. }).then(|| Check::found("foreign-lock", error.into()))
}

/// Processes of a run that is over, and those that may be.
fn leftovers(place: &Place, holder: Option<&Holder>) -> Option<Check> {
    let mut disk = place.open_view_disk().ok().filter(|_| holder.is_none())?;
    let run = store::read_state(&mut disk).ok()?.run?;
    let found = reap::marked(&run.id, None, None).unwrap_or_default();
    // Whoever runs this from inside of a turn carries the mark, too.
    let me = std::process::id();
    let marked: Vec<String> = found
        .iter()
        .map(|process| process.pid.to_string())
        .filter(|pid| *pid != me.to_string())
        .take(NAMED)
        .collect();
    if !marked.is_empty() {
        let pids = marked.join(" ");
        return Some(Check::warning(
            "leftovers",
            format!("processes of run {} are alive and no loop is: {}", run.id, marked.join(", ")),
            Step::text(
                "`kill {}`; where that run was killed, the next `peers run` ends them first",
                &[&pids],
            ),
        ));
    }
    if run.ended {
        return Some(Check::ok("leftovers", "no process of the last run is left"));
    }
    match boot::strays(&mut disk, &run.id, place) {
        Some(names) => Some(Check::warning(
            "leftovers",
            format!("unknown processes work here; they started after the run that was killed: {names}"),
            "look at them (`ps`), and end those that are left from it",
        )),
        None => Some(Check::ok("leftovers", "no process of the run that was killed is left")),
    }
}

/// Times of records decide budgets and waits.
fn journal_clock(place: &Place) -> Option<Check> {
    let mut disk = place.open_view_disk().ok()?;
    let mut last: Option<Timestamp> = None;
    store::read_each(&mut disk, |line| last = Some(line.ts)).ok()?;
    Some(clock_check(last?, clock::now()))
}

fn clock_check(last: Timestamp, now: Timestamp) -> Check {
    if last > now {
        Check::warning(
            "clock",
            format!(
                "it is {now} here, and the journal has a record of {last}: waits and budgets count from there"
            ),
            "set the clock: `timedatectl set-ntp true`",
        )
    } else {
        Check::ok("clock", format!("it is {now}, after every record of the journal"))
    }
}

/// The wall that agents and gates are behind.
fn sandbox(found: &Found) -> Check {
    let backend = found.wall.backend();
    let tier = backend.tier();
    if let [remark, ..] = found.wall.remarks() {
        let message = format!("{backend} holds here (tier {tier}); {}", found.wall.remarks().join("; "));
        let fix = format!(
            "it works without; {}",
            remark.split_once(": ").map_or("nothing has to be done", |(_, fix)| fix)
        );
        return Check::warning("sandbox", message, fix);
    }
    if found.better.is_empty() {
        // Without any wall that is what the operator asks for.
        let words = if tier > 0 {
            format!("{backend} holds here (tier {tier})")
        } else {
            "none, by your sandbox.yaml: agents and gates run as you".to_owned()
        };
        return Check::ok("sandbox", words);
    }
    let missing = found.better.join("; ");
    Check::warning(
        "sandbox",
        format!("{backend} (tier {tier}); a better one does not hold here: {missing}"),
        if tier == 0 { "a run asks for tier 1: install what is missing" } else { "install what is missing" },
    )
}

/// What is asked of the programs of the peers.
fn ask_peers(
    place: &Place,
    env: &Env,
    (loaded, runnable): (&Loaded, &[PeerName]),
    scratch: &Scratch,
    (ask, report): (Ask, &mut Report),
) -> Result<(), BootError> {
    let chosen = match Policy::load(env) {
        Ok(chosen) => chosen.narrowed(&loaded.config.sandbox),
        Err(error) => {
            let fix = "correct it: docs/formats/sandbox.md has its form";
            report.checks.push(Check::error("policy", exit::INVALID, chain(&error), fix));
            return Ok(());
        }
    };
    match scratch.wall(env, &chosen, AskedWall::default()) {
        Ok(found) => report.checks.push(sandbox(&found)),
        Err(error) => {
            report.checks.extend(error.findings.into_iter().map(|found| Check::found("sandbox", found)));
            return Ok(());
        }
    }
    let site = |repo: PathBuf| -> Result<Rc<Site>, BootError> {
        let spec = scratch.site(place, env, (chosen.clone(), AskedWall::default()), &loaded.config)?;
        Ok(Rc::new(Site::new(SiteSpec { repo, ..spec })))
    };
    // Nothing of the repository is in it, so that no program finds settings there.
    let empty = scratch.dir().create_subdir("empty")?;
    let empty = site(empty.path().to_owned())?;
    let at = report.checks.iter().rposition(|check| check.about.starts_with("peer ")).map(|at| at + 1);
    let start = peers::Start::of(loaded);
    let mut more = Vec::new();
    for peer in loaded.config.peers.iter().filter(|peer| runnable.contains(&peer.name)) {
        let looked = peers::look(&empty, place, env, (&loaded.config, peer), start);
        more.extend(
            drive::on_this_thread(looked)
                .map_err(|e| Finding::plain(exit::BUG, format!("the runtime does not start: {e}")))?,
        );
    }
    let at = at.or_else(|| report.checks.iter().position(|check| check.about == "disk"));
    let at = at.unwrap_or(report.checks.len());
    report.checks.splice(at..at, more);
    if ask == Ask::EachPeer {
        for peer in loaded.config.peers.iter().filter(|peer| runnable.contains(&peer.name)) {
            if start == peers::Start::Refused {
                let (name, why) = (peer.name.clone(), peers::NOT_STARTED);
                report.checks.push(Check::error(&format!("peer {name}"), exit::REFUSED, why, boot::ACCEPT));
                report.answers.push(Answer { peer: name, exit: Err(why.to_owned()) });
                continue;
            }
            let dir = scratch.dir().create_subdir(format!("live-{}", peer.name))?;
            let repo = live::repository(&dir, env)?;
            let answer = live::ask(site(repo)?, loaded, peer)?;
            report.checks.push(live::check(&answer, &tool_spec(peer).kind));
            report.answers.push(answer);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_back_behind_the_journal_is_told() {
        let at = Timestamp::from_millis;
        assert_eq!(clock_check(at(5), at(5)).level, Level::Ok);
        let behind = clock_check(at(6), at(5));
        assert_eq!(behind.level, Level::Warning);
        assert!(behind.fix.is_some_and(|fix| fix.to_string().contains("timedatectl")));
    }

    #[test]
    fn the_exit_code_is_that_of_the_first_error() {
        let of = |exit| Check::error("x", exit, "", "");
        let checks = vec![Check::ok("x", ""), Check::warning("x", "", ""), of(6), of(3)];
        assert_eq!(Report { checks, answers: Vec::new() }.exit_code(), 6);
        assert_eq!(Report::default().exit_code(), 0);
    }
}
