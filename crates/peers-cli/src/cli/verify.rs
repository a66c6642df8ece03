//! `peers verify`.

mod ground;
mod outputs;
#[cfg(test)]
mod shipped;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use peers_model::{exit, goal};
use peers_run::boot::Loaded;
use peers_run::oneshot::{self, Verified, VerifyOptions};
use peers_store::accept;
use peers_sys::{term, yaml};
use peers_view::{
    Lines, VerifyReport, VerifyRow, verify_github, verify_json, verify_junit, verify_markdown, verify_sarif,
};

use self::ground::Ground;
use self::outputs::Output;
use crate::cx::Cx;
use crate::error::CommandError;
use crate::live::{self, Live};

/// Paths that are named in a note.
const SHOWN: usize = 10;

/// Run the hard goals once, and then `verify.commands`
///
/// No peer runs, reviews are not asked for, and neither lock nor state plays a part: it works beside a
/// running loop. The result goes to standard output, to `.peers/VERIFY.md` and to the files that are asked
/// for. The same verdicts on the same tree give the same bytes: times are left out unless `--timings` asks
/// for them, and standard error tells them anyway.
///
/// What is judged are the accepted goals, and these stand in the trusted store of this machine. A fresh
/// clone, as in CI, has none: there `--accept-digest` names what was accepted, by the digest that
/// `peers info` prints where it was.
///
/// Exit codes: 0 all green, 1 something red or nothing to check, 3 something could not be judged, or an
/// error in goals or config, 5 goals or config are not what was accepted, 70 a report cannot be written.
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
    /// Run every gate; take no green answer that was kept (`cacheable`)
    #[arg(long)]
    fresh: bool,
    /// Leave `.peers/VERIFY.md` as it is
    #[arg(long)]
    no_write: bool,
    /// Nothing to check is fine
    #[arg(long)]
    allow_empty: bool,
    /// What goes to standard output
    #[arg(long, value_name = "FORMAT", default_value = "markdown")]
    format: Format,
    /// Print the result as JSON; the same as `--format json`
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Write a JUnit XML report to FILE, too
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write a SARIF 2.1.0 log to FILE, too
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,
    /// Put times and durations into the reports
    #[arg(long)]
    timings: bool,
    /// Without a trusted store: goals and config are accepted if this is their digest
    #[arg(long, value_name = "SHA256")]
    accept_digest: Option<String>,
}

/// What goes to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The text of `.peers/VERIFY.md`
    Markdown,
    /// One object of the schema `peers.verify/2`
    Json,
    /// Annotations for GitHub Actions; the Markdown goes to the job's summary
    Github,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let outputs = Output::all(args.junit.as_deref(), args.sarif.as_deref())?;
    let ground = Ground::open(cx, args.accept_digest.as_deref())?;
    known(&args.only, &ground.loaded)?;
    let outputs =
        outputs.into_iter().map(|output| output.open(&ground.place)).collect::<Result<Vec<_>, _>>()?;
    let options = VerifyOptions { only: args.only.clone(), pristine: args.pristine, fresh: args.fresh };
    let view = Live::new(&cx.out, false);
    let verified = oneshot::verify(
        &ground.place,
        &cx.env,
        &ground.loaded,
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
    if let Ok(paths) = &verified.dirtied
        && !paths.is_empty()
    {
        cx.out.talk(&format!(
            "note: the gates changed the work tree: {}; such files block `complete`, or an agent commits them: let git ignore them (in .gitignore), or let the command clean up",
            named(paths)
        ));
    }
    let took = verified.took_ms;
    let report = report(verified, args, &ground);
    cx.out.talk(&format!("verify: {}, {}", report.result(), report.slowest(took)));
    deliver(&report, args, cx, &ground, &outputs)?;
    Ok(ExitCode::from(report.answer().exit()))
}

/// First what stays, then what is said: standard output may be full or closed. What cannot be written keeps
/// nothing else from being written.
fn deliver(
    report: &VerifyReport,
    args: &Args,
    cx: &Cx,
    ground: &Ground,
    outputs: &[outputs::Opened],
) -> Result<(), CommandError> {
    let markdown = verify_markdown(report);
    let mut failed = if args.no_write { Ok(()) } else { ground.write_report(&markdown) };
    for output in outputs {
        let text = match output.kind {
            outputs::Kind::Junit => verify_junit(report),
            outputs::Kind::Sarif => verify_sarif(report),
        };
        failed = failed.and(output.write(&text));
    }
    let said = match if args.json { Format::Json } else { args.format } {
        Format::Markdown => cx.out.data(&markdown),
        Format::Json => cx.out.data(&verify_json(report)),
        Format::Github => {
            if let Some(why) = outputs::summary(&cx.env, &markdown) {
                cx.out.talk(&format!("warning: {why}"));
            }
            cx.out.data(&verify_github(report))
        }
    };
    failed.and(said)
}

fn report(verified: Verified, args: &Args, ground: &Ground) -> VerifyReport {
    let [goals, config] = &ground.texts;
    let lines = Lines { goals, config };
    let hard = verified.gates.iter().map(|judged| VerifyRow::gate(judged, lines.goal(judged.goal.as_str())));
    let extra = verified.extra.iter().map(|result| {
        VerifyRow::new(&result.name, &result.verdict, result.duration_ms, lines.command(&result.name))
    });
    let dir = ground.place.work_dir().file_name().unwrap_or_default().to_string_lossy().into_owned();
    VerifyReport {
        dir,
        version: env!("CARGO_PKG_VERSION"),
        hard: hard.collect(),
        extra: extra.collect(),
        at: args.timings.then_some(verified.at),
        head: verified.head,
        tree: verified.tree,
        dirty: verified.dirty,
        pristine: verified.pristine,
        allow_empty: args.allow_empty,
        accept_digest: accept::together(&verified.digests),
        digests: verified.digests,
        exempt: verified.exempt,
        dirtied: verified.dirtied,
    }
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

/// The first of them, for people.
fn named(paths: &[String]) -> String {
    let shown: Vec<String> = paths.iter().take(SHOWN).map(|path| term::line(path, 120)).collect();
    match paths.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
