//! `peers verify`.

use std::path::PathBuf;
use std::process::ExitCode;

use peers_git::{ControlDir, DirtyFile};
use peers_model::verdict::Verdict;
use peers_model::{CommitId, GoalId, exit, goal};
use peers_run::boot::{self, Loaded};
use peers_run::oneshot::{self, Verified, VerifyOptions};
use peers_run::place::{PEERS_DIR, Place};
use peers_store::layout::peers;
use peers_store::{Area, Disk};
use peers_sys::dir::{Kind, SafeDir};
use peers_sys::{term, yaml};
use peers_view::cause;
use serde_json::{Value, json};

use crate::cx::Cx;
use crate::error::CommandError;
use crate::live::{self, Live};
use crate::output::counted;

/// Cells of a diagnostic in a table.
const DIAGNOSTIC: usize = 200;
/// Uncommitted paths that are compared before and after the gates; with more of them nobody can tell.
const COMPARED: usize = 10_000;
/// Paths that the gates made dirty, in JSON and for people.
const LISTED: usize = 1000;
const SHOWN: usize = 10;

/// Run the hard goals once, and then `verify.commands`
///
/// No peer runs, reviews are not asked for, and neither lock nor state plays a part: it works beside a
/// running loop. The result goes to standard output and to `.peers/VERIFY.md`.
///
/// What is judged are the accepted goals, and these stand in the trusted store of this machine. A fresh
/// clone has neither `.peers/` nor a store, so there, as in CI, call the gates' commands themselves.
///
/// Exit codes: 0 all green, 1 something red or nothing to check, 3 something could not be judged, 5
/// goals or config are not what was accepted.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    /// Run this goal or command alone; may be repeated
    #[arg(long, value_name = "ID")]
    only: Vec<String>,
    /// Run the hard goals in a clean checkout of HEAD, as the proof before `complete` does
    #[arg(long)]
    pristine: bool,
    /// Leave `.peers/VERIFY.md` as it is
    #[arg(long)]
    no_write: bool,
    /// Nothing to check is fine
    #[arg(long)]
    allow_empty: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// One line of the result.
struct Row<'a> {
    name: &'a str,
    verdict: &'a Verdict,
    duration_ms: u64,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let (place, mut disk) = cx.view()?;
    refuse_link(&place)?;
    let loaded = boot::load(&mut disk)?;
    known(&args.only, &loaded)?;
    let options = VerifyOptions { only: args.only.clone(), pristine: args.pristine };
    let tree = if args.pristine { Err(ELSEWHERE) } else { Tree::look(&place, cx) };
    let view = Live::new(&cx.out, false);
    let verified = oneshot::verify(
        &place,
        &cx.env,
        &loaded,
        &options,
        Box::new(|progress| live::show_gates(progress, "verify")),
    );
    view.close();
    let verified = verified?;
    if let Some(signal) = verified.signal {
        return Ok(ExitCode::from(exit::signalled(signal)));
    }
    if let Some(holder) = &verified.beside {
        cx.out.talk(&format!(
            "warning: a loop works here at the same time ({holder}); the tree may move under the gates"
        ));
    }
    let dirtied = tree.and_then(Tree::changed);
    let dirtied = if verified.beside.is_some() { Err("a loop works here at the same time") } else { dirtied };
    let report = Report::new(&verified, args.allow_empty, dirtied);
    if let Ok(paths) = &report.dirtied
        && !paths.is_empty()
    {
        cx.out.talk(&format!(
            "note: the gates changed the work tree: {}; such files block `complete`, or an agent commits them: let git ignore them (in .gitignore), or let the command clean up",
            named(paths)
        ));
    }
    let text = report.markdown(&place);
    // First what stays, then what is said: standard output may be full or closed.
    if !args.no_write {
        let mut disk = place.open_store_disk()?;
        disk.publish(Area::Peers, peers::VERIFY, text.as_bytes(), false)?;
    }
    if args.json {
        cx.out.json("peers.verify/1", &report.json())?;
    } else {
        cx.out.data(&text)?;
    }
    Ok(ExitCode::from(report.code))
}

/// The report is written over what is there; a link there is somebody's doing.
fn refuse_link(place: &Place) -> Result<(), CommandError> {
    let dir = place.open_work()?.subdir(PEERS_DIR)?;
    if dir.stat(peers::VERIFY)?.is_some_and(|stat| stat.kind != Kind::File) {
        return Err(CommandError::new(exit::REFUSED, ".peers/VERIFY.md is not a regular file")
            .hint("somebody put it there: look at it, remove it, and start again"));
    }
    Ok(())
}

fn known(only: &[String], loaded: &Loaded) -> Result<(), CommandError> {
    let hard = loaded.goals.iter().filter(|goal| matches!(goal.kind, goal::GoalKind::Hard(_)));
    let commands = loaded.config.verify.commands.iter();
    let names: Vec<&str> = hard
        .map(|goal| goal.id.as_str())
        .chain(commands.map(|command| command.name.as_deref().unwrap_or(&command.cmd)))
        .collect();
    let Some(unknown) = only.iter().find(|only| !names.contains(&only.as_str())) else { return Ok(()) };
    let near = yaml::closest(unknown, names.iter().copied());
    let near = near.map(|near| format!("; did you mean `{}`?", term::inline(near))).unwrap_or_default();
    let known = if names.is_empty() { "there is none".to_owned() } else { names.join(", ") };
    Err(CommandError::usage(format!(
        "no hard goal or command is called `{}`{near} ({})",
        term::line(unknown, 80),
        term::line(&known, 600)
    )))
}

struct Report<'a> {
    verified: &'a Verified,
    hard: Vec<Row<'a>>,
    extra: Vec<Row<'a>>,
    word: &'static str,
    code: u8,
    /// Paths that the gates made dirty, or why that is not known.
    dirtied: Dirtied,
}

/// Paths that the gates made dirty, or why that is not known.
type Dirtied = Result<Vec<String>, &'static str>;

/// The gates ran in a checkout of their own.
const ELSEWHERE: &str = "they ran in a clean checkout";
/// The work tree could not be looked at.
const UNSEEN: &str = "git could not look at it";

/// The work tree before the gates, for what they change.
struct Tree {
    control: ControlDir,
    scratch: Scratch,
    work_dir: PathBuf,
    head: CommitId,
    before: Vec<DirtyFile>,
}

/// A directory that goes with its owner.
struct Scratch {
    parent: SafeDir,
    name: String,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It lies in the cache, which may be emptied at any time.
        let _removed = self.parent.remove_tree(&self.name);
    }
}

impl Tree {
    /// For a note only: where anything is in the way there is none.
    fn look(place: &Place, cx: &Cx) -> Result<Self, &'static str> {
        Self::made(place, cx).ok_or(UNSEEN)
    }

    fn made(place: &Place, cx: &Cx) -> Option<Self> {
        let repo = Cx::repo(place).ok()?;
        let head = repo.facts().head().ok()?.commit;
        let parent = SafeDir::create_root(place.cache_dir()).ok()?;
        let name = format!("look-{}", peers_sys::rand::hex::<8>().ok()?);
        let dir = parent.create_subdir(&name).ok()?;
        let scratch = Scratch { parent, name };
        let mut control = ControlDir::open_or_create(&dir.path().join("control.git"), cx.git().ok()?)
            .ok()?
            .with_excludes(peers_git::operator_excludes());
        let _imported = control.import(&repo, Some(&head)).ok()?;
        let work_dir = place.work_dir().to_owned();
        let before = control.dirty_files(&work_dir, &head, COMPARED + 1).ok()?;
        Some(Self { control, scratch, work_dir, head, before })
    }

    /// The paths that are dirty now and were not.
    fn changed(self) -> Dirtied {
        let Self { control, scratch, work_dir, head, before } = self;
        let after = control.dirty_files(&work_dir, &head, COMPARED + 1);
        drop(scratch);
        added(&before, after.map_err(|_| UNSEEN)?)
    }
}

/// What is in `after` alone. Of a list that was cut nobody knows what it lacks.
fn added(before: &[DirtyFile], after: Vec<DirtyFile>) -> Dirtied {
    if before.len().max(after.len()) > COMPARED {
        return Err("more than 10,000 paths are uncommitted");
    }
    // Both are sorted by their paths.
    let known = |file: &DirtyFile| {
        let from = before.partition_point(|b| b.path < file.path);
        before.iter().skip(from).take_while(|b| b.path == file.path).any(|b| b == file)
    };
    Ok(after.into_iter().filter(|file| !known(file)).map(|file| file.path).collect())
}

/// The first of them, for people.
fn named(paths: &[String]) -> String {
    let shown: Vec<String> = paths.iter().take(SHOWN).map(|path| term::line(path, 120)).collect();
    match paths.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

impl<'a> Report<'a> {
    fn new(verified: &'a Verified, allow_empty: bool, dirtied: Dirtied) -> Self {
        let hard: Vec<Row<'a>> = verified
            .gates
            .iter()
            .map(|judged| Row {
                name: judged.goal.as_str(),
                verdict: &judged.verdict,
                duration_ms: judged.duration_ms,
            })
            .collect();
        let extra: Vec<Row<'a>> = verified
            .extra
            .iter()
            .map(|result| Row {
                name: &result.name,
                verdict: &result.verdict,
                duration_ms: result.duration_ms,
            })
            .collect();
        let verdicts = || hard.iter().chain(&extra).map(|row| row.verdict);
        let (word, code) = if verdicts().any(Verdict::is_red) {
            ("FAIL", exit::NEGATIVE)
        } else if verdicts().any(Verdict::is_error) {
            ("NOT JUDGED", exit::INVALID)
        } else if hard.is_empty() && extra.is_empty() && !allow_empty {
            ("NOTHING TO CHECK", exit::NEGATIVE)
        } else {
            ("PASS", exit::OK)
        };
        Self { verified, hard, extra, word, code, dirtied }
    }

    fn markdown(&self, place: &Place) -> String {
        let Self { verified, hard, extra, word, .. } = self;
        let dir = place.work_dir().file_name().unwrap_or_default().to_string_lossy();
        let green = |rows: &[Row<'_>]| rows.iter().filter(|row| row.verdict.is_pass()).count();
        let state = match (verified.pristine, verified.dirty) {
            (true, _) => "a clean checkout",
            (false, true) => "the work tree, with uncommitted changes",
            (false, false) => "the work tree, clean",
        };
        // Most projects have none.
        let commands = match extra.len() {
            0 => String::new(),
            of => format!(", {}", share(green(extra), of, "verify command")),
        };
        let mut lines = vec![
            format!("# peers verify — {}\n", term::inline(&dir)),
            format!("**Result:** {word} ({}{})\n", share(green(hard), hard.len(), "hard goal"), commands),
            format!("At {}, HEAD {}, tree {}: {state}.", verified.at, verified.head, verified.tree),
            format!("Goals {}, config {}.", verified.digests.goals, verified.digests.config),
        ];
        if hard.is_empty() && extra.is_empty() {
            lines.push(
                "\nThere is nothing to check: no hard goal and no verify command (`--allow-empty` lets that pass)."
                    .to_owned(),
            );
        }
        for (heading, first, rows) in [("Hard goals", "id", hard), ("Verify commands", "name", extra)] {
            if rows.is_empty() {
                continue;
            }
            lines.push(format!("\n## {heading}\n\n| {first} | state | duration (ms) | diagnostic |"));
            lines.push("|---|---|---|---|".to_owned());
            for row in rows {
                let (name, diagnostic) = (cell(row.name), cell(&cause(row.verdict.diagnostic())));
                lines.push(format!(
                    "| {name} | {} | {} | {diagnostic} |",
                    row.verdict.word(),
                    row.duration_ms
                ));
            }
        }
        if !verified.exempt.is_empty() {
            let names: Vec<&str> = verified.exempt.iter().map(GoalId::as_str).collect();
            let count = u64::try_from(names.len()).unwrap_or(u64::MAX);
            lines.push(format!(
                "\nNot proved in a clean checkout, by `tree: live`: {} ({})",
                counted(count, "gate"),
                names.join(", ")
            ));
        }
        match &self.dirtied {
            Ok(paths) if paths.is_empty() => {}
            Ok(paths) => lines.push(format!("\nThe gates changed the work tree: {}", cell(&named(paths)))),
            Err(_) if verified.pristine => {}
            Err(why) => {
                lines.push(format!("\nWhether the gates changed the work tree is not known: {why}"));
            }
        }
        lines.join("\n") + "\n"
    }

    fn json(&self) -> Value {
        let Self { verified, hard, extra, word, .. } = self;
        let dirtied = self.dirtied.as_ref().ok();
        let rows = |rows: &[Row<'_>]| -> Vec<Value> {
            rows.iter()
                .map(|row| {
                    json!({"name": term::inline(row.name), "state": row.verdict.word(),
                        "duration_ms": row.duration_ms, "cause": term::inline(&cause(row.verdict.diagnostic())),
                        "diagnostic": term::block(row.verdict.diagnostic())})
                })
                .collect()
        };
        json!({
            "result": word.to_lowercase().replace(' ', "-"),
            "ts": verified.at,
            "head": verified.head,
            "tree": verified.tree,
            "dirty": verified.dirty,
            "pristine": verified.pristine,
            "digests": verified.digests,
            "hard": rows(hard),
            "verify": rows(extra),
            "exempt": verified.exempt,
            "dirtied": dirtied.map(|paths| paths.iter().take(LISTED).collect::<Vec<_>>()),
            "dirtied_count": dirtied.map(Vec::len),
        })
    }
}

/// `2 of 3 hard goals green`.
fn share(green: usize, of: usize, noun: &str) -> String {
    format!("{green} of {} green", counted(u64::try_from(of).unwrap_or(u64::MAX), noun))
}

/// Foreign text in a table of Markdown.
fn cell(text: &str) -> String {
    term::line(text, DIAGNOSTIC).replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use peers_git::DirtyStatus;

    use super::*;

    fn files(n: usize) -> Vec<DirtyFile> {
        (0..n).map(|n| DirtyFile { status: DirtyStatus::Added, path: format!("{n:06}") }).collect()
    }

    #[test]
    fn what_the_gates_changed_is_told_exactly_or_not_at_all() {
        assert_eq!(added(&files(2), files(2)), Ok(Vec::new()));
        assert_eq!(added(&files(1), files(3)), Ok(vec!["000001".to_owned(), "000002".to_owned()]));
        assert_eq!(added(&files(0), files(COMPARED)).map(|paths| paths.len()), Ok(COMPARED));
        let mut changed = files(2);
        changed[1].status = DirtyStatus::Deleted;
        assert_eq!(added(&files(2), changed), Ok(vec!["000001".to_owned()]));
        // Of a list that was cut nobody knows what it lacks.
        assert!(added(&files(COMPARED + 1), files(COMPARED + 1)).is_err());
        assert!(added(&files(COMPARED + 1), files(1)).is_err() && added(&[], files(COMPARED + 1)).is_err());
    }
}
