//! `peers land`.

use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};

use peers_acts::land::{self, LandOptions, Landed, Landing, Proposal};
use peers_console::cx::{self, Cx};
use peers_console::error::CommandError;
use peers_console::output::counted;
use peers_model::command::{Command, Step};
use peers_model::exit;
use peers_model::verdict::Verdict;
use peers_place::{Place, is_gone};
use peers_run::boot;
use peers_store::{FsDisk, runs};
use peers_sys::spawn::resolve_program;
use peers_sys::{clock, dir::SafeDir, term};
use peers_view::{Asked, Caveats, LoopView, cause};
use serde_json::{Value, json};

use crate::live::{self, Live};

/// Merge the newest run that has a branch of its own into another branch
///
/// The merged tree is made outside of the repository, every hard gate runs on it in a clean checkout,
/// and only then the branch moves, by compare-and-swap. A red gate or a conflict moves nothing (exit
/// code 1); a branch that moved meanwhile, or that is checked out with uncommitted changes, is refused
/// (exit code 4). Only gates decide: a run that did not end complete can be landed too, and what it lacks
/// is printed.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The branch that gets the work; by default the one that the run started from
    #[arg(long, value_name = "BRANCH")]
    into: Option<String>,
    /// Land as one commit
    #[arg(long)]
    squash: bool,
    /// Print title and body of a pull request; move nothing
    #[arg(long)]
    pr: bool,
    /// With --pr: let `gh` open it there; the run's branch must have been pushed
    #[arg(long, value_name = "OWNER/REPO", requires = "pr")]
    repo: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    cx.operators_alone_here("land")?;
    let (place, mut disk) = cx.store()?;
    let loaded = boot::load(&mut disk)?;
    let caveats = caveats(&place, &mut disk);
    let options = LandOptions {
        into: args.into.clone(),
        squash: args.squash,
        propose: args.pr,
        by: cx.operator(),
        notes: caveats.as_ref().map(Caveats::markdown).unwrap_or_default(),
    };
    let view = Live::new(&cx.out, false);
    let landing = land::land(
        &place,
        &cx.env,
        &loaded,
        &options,
        Box::new(|progress| live::show_gates(progress, "land")),
    );
    view.close();
    let landing = landing?;
    if let Landing::Landed(landed) = &landing
        && let Some(note) = cx::gone(&mut disk, &landed.run)
    {
        cx.out.talk(&format!("note: {note}"));
    }
    if args.json {
        let mut document = document(&landing);
        if let Value::Object(map) = &mut document
            && is_about_work(&landing)
        {
            map.insert("caveats".to_owned(), json!(caveats));
        }
        cx.out.json("peers.land/1", &document)?;
    } else {
        say(&landing, cx)?;
        let lines =
            caveats.filter(|_| is_about_work(&landing)).map(|caveats| caveats.lines(cx.out.spelling()));
        for line in lines.unwrap_or_default() {
            cx.out.talk(&line);
        }
    }
    match &landing {
        Landing::Proposed(landed, proposal) => {
            if let Some(repo) = &args.repo {
                return open_request(repo, landed, proposal, cx);
            }
            cx.out.advise(Step::text(
                "push it with `git push origin {}`, then open the request, for instance with `peers land --pr --repo OWNER/REPO`",
                &[&landed.branch],
            ));
            Ok(ExitCode::SUCCESS)
        }
        Landing::Landed(_) => Ok(ExitCode::SUCCESS),
        Landing::Nothing { .. } | Landing::Conflict { .. } => Ok(ExitCode::from(exit::NEGATIVE)),
        Landing::Refused(landed) => {
            let red = landed.gates.iter().any(|judged| judged.verdict.is_red());
            cx.out.advise(Step::from("hint: ").join(after_refusal(red, landed, &place, &mut disk)));
            Ok(ExitCode::from(if red { exit::NEGATIVE } else { exit::INVALID }))
        }
        Landing::Interrupted(signal) => Ok(ExitCode::from(exit::signalled(*signal))),
    }
}

/// How the work goes on that no gate let through. A landing takes only what a run has judged.
fn after_refusal(red: bool, landed: &Landed, place: &Place, disk: &mut FsDisk) -> Step {
    if !red {
        return "see to what the gate needs in order to answer, then `peers land` again".into();
    }
    let branch = term::inline(&landed.branch);
    let (records, _) = runs::list(disk).unwrap_or_default();
    let dir = records.into_iter().find(|record| record.run_id == landed.run).map(|record| record.workdir);
    let apart = dir.filter(|dir| {
        let dir = Path::new(dir);
        dir != place.work_dir() && !is_gone(dir)
    });
    Step::of(Command::run().at(apart.as_deref())).join(Step::text(
        " on `{}` goes on, or mend it there yourself and let a run judge it; then `peers land`",
        &[&branch],
    ))
}

/// Whether a result is one in which it matters how the run ended.
fn is_about_work(landing: &Landing) -> bool {
    match landing {
        Landing::Landed(_) | Landing::Proposed(..) | Landing::Refused(_) => true,
        Landing::Nothing { .. } | Landing::Conflict { .. } | Landing::Interrupted(_) => false,
    }
}

/// What stands against the work that is about to be landed; nothing where that cannot be read, for the
/// landing itself says so then.
fn caveats(place: &Place, disk: &mut FsDisk) -> Option<Caveats> {
    // As the last run left it: what is checked out now need not be its branch.
    let view = LoopView::read(disk, &Asked::new(clock::now(), None, cx::lock(place)));
    let (records, _) = runs::list(disk).ok()?;
    let own = records.iter().rev().find(|record| record.own_branch && record.branch.is_some())?;
    // A later run may have gone on in the same worktree.
    let last = records.iter().rev().find(|record| record.branch == own.branch)?;
    Some(Caveats::of(&view, last))
}

fn say(landing: &Landing, cx: &Cx) -> Result<(), CommandError> {
    match landing {
        Landing::Landed(landed) => {
            let count = counted(u64::try_from(landed.commits).unwrap_or(u64::MAX), "commit");
            let (branch, into) = (term::inline(&landed.branch), term::inline(&landed.into));
            cx.out.line(&format!("`{into}` is at {}: {count} of `{branch}`", landed.commit.short()))?;
            for path in &landed.blocked {
                cx.out.talk(&format!("warning: `{path}` of the work tree could not be brought up to date"));
            }
        }
        Landing::Proposed(_, Proposal { title, body }) => cx.out.data(&format!("{title}\n\n{body}"))?,
        Landing::Nothing { run, into } => {
            cx.out.talk(&format!("`{}` holds everything of run {run} already", term::inline(into)));
        }
        Landing::Conflict { run, into, paths } => {
            cx.out.talk(&format!("run {run} conflicts with `{}`; nothing was moved", term::inline(into)));
            for path in paths {
                cx.out.line(path)?;
            }
        }
        Landing::Refused(landed) => {
            let into = term::inline(&landed.into);
            cx.out.talk(&format!("a gate is not green on the merged tree; `{into}` was not moved"));
            for judged in landed.gates.iter().filter(|judged| !judged.verdict.is_pass()) {
                let diagnostic = term::line(&cause(judged.verdict.diagnostic()), 200);
                cx.out.line(&format!("{}: {}: {diagnostic}", judged.goal, judged.verdict.word()))?;
            }
        }
        Landing::Interrupted(_) => cx.out.talk("interrupted; nothing was moved"),
    }
    Ok(())
}

fn document(landing: &Landing) -> Value {
    match landing {
        Landing::Landed(landed) => described("landed", landed),
        Landing::Proposed(landed, Proposal { title, body }) => {
            let mut value = described("proposed", landed);
            if let Value::Object(map) = &mut value {
                map.insert("title".to_owned(), json!(title));
                map.insert("body".to_owned(), json!(body));
            }
            value
        }
        Landing::Nothing { run, into } => json!({"result": "nothing", "run": run, "into": into}),
        Landing::Conflict { run, into, paths } => {
            json!({"result": "conflict", "run": run, "into": into, "paths": paths})
        }
        Landing::Refused(landed) => described("refused", landed),
        Landing::Interrupted(signal) => json!({"result": "interrupted", "signal": signal}),
    }
}

fn described(result: &str, landed: &Landed) -> Value {
    let Landed { run, branch, into, commit, tree, commits, gates, proved, exempt, blocked } = landed;
    let rows: Vec<Value> = gates
        .iter()
        .map(|judged| {
            let Verdict::Pass = &judged.verdict else {
                return json!({"id": judged.goal, "state": judged.verdict.word(),
                    "cause": term::inline(&cause(judged.verdict.diagnostic())),
                    "diagnostic": term::block(judged.verdict.diagnostic())});
            };
            json!({"id": judged.goal, "state": "pass"})
        })
        .collect();
    json!({"result": result, "run": run, "branch": branch, "into": into, "commit": commit, "tree": tree,
        "commits": commits, "gates": rows, "proved_before": proved, "exempt": exempt, "blocked": blocked})
}

/// Lets `gh` open the request, from an empty directory: nothing of the repository has a say in it.
fn open_request(repo: &str, landed: &Landed, proposal: &Proposal, cx: &Cx) -> Result<ExitCode, CommandError> {
    let here = PathBuf::from("/");
    let gh = resolve_program("gh".as_ref(), cx.env.var("PATH"), &here).map_err(|error| {
        CommandError::of(exit::ENVIRONMENT, &error).hint("install `gh`, or open the request by hand")
    })?;
    let place = cx.place()?;
    let cache = SafeDir::create_root(place.cache_dir())?;
    let random = peers_sys::rand::hex::<8>()
        .map_err(|error| CommandError::new(exit::BUG, format!("random bytes: {error}")))?;
    let name = format!("request-{random}");
    let empty = cache.create_subdir(&name)?;
    let status = process::Command::new(gh)
        .current_dir(empty.path())
        .args(["pr", "create", "--repo", repo, "--head", &landed.branch, "--base", &landed.into])
        .args(["--title", &proposal.title, "--body", &proposal.body])
        .status();
    cache.remove_tree(&name)?;
    let status = status
        .map_err(|error| CommandError::new(exit::ENVIRONMENT, format!("`gh` does not start: {error}")))?;
    Ok(ExitCode::from(if status.success() { exit::OK } else { exit::NEGATIVE }))
}
