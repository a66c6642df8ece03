//! `peers verify`.

mod ground;
mod outputs;
#[cfg(test)]
mod shipped;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use peers_acts::oneshot::{self, Verified, VerifyOptions};
use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_console::run_args::WallArgs;
use peers_console::screen;
use peers_model::{exit, goal};
use peers_run::boot::Loaded;
use peers_store::accept;
use peers_sys::{term, yaml};
use peers_view::{
    Lines, Unasked, VerifyReport, VerifyRow, verify_github, verify_json, verify_junit, verify_markdown,
    verify_sarif,
};

use self::ground::Ground;
use self::outputs::Output;
use crate::live::{self, Live};

/// Paths that are named in a note.
const SHOWN: usize = 10;

/// Run the hard goals once, and then `verify.commands`
///
/// Starts no peer and asks for no review. It needs no lock, so it works beside a running loop. The result
/// goes to standard output, to `.peers/VERIFY.md` and to the files that options name. The same verdicts on
/// the same tree give the same bytes: times are on standard error, and in reports only with `--timings`.
///
/// Older report files are removed first, so that a refusal, an error or a signal leaves no stale report.
/// With `--only` every report says that it is partial, and `.peers/VERIFY.md` is not written.
///
/// Only accepted goals are judged, and the trusted store of this machine says what was accepted. A fresh
/// clone, as in CI, has no store: there, pass `--accept-digest` with the digest that `peers info` prints
/// where the goals were accepted.
///
/// Exit codes: 0 all green, 1 something red or nothing to check, 3 something could not be judged, or an
/// error in goals or config, 5 goals or config are not what was accepted, or a gate changed a setting of a
/// build tool outside of the repository, 70 a report cannot be written.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    /// Run only this goal or command, and the goals it needs; may be repeated
    #[arg(long, value_name = "ID")]
    only: Vec<String>,
    /// Run the hard goals in a clean checkout of HEAD, as the proof before `complete` does
    #[arg(long)]
    pristine: bool,
    /// Run every gate: ignore cached green results (`cacheable`), and drop those that prove wrong
    #[arg(long)]
    fresh: bool,
    /// Leave `.peers/VERIFY.md` as it is
    #[arg(long)]
    no_write: bool,
    /// Exit 0 if there is nothing to check
    #[arg(long)]
    allow_empty: bool,
    /// Format of standard output
    #[arg(long, value_name = "FORMAT", default_value = "markdown")]
    format: Format,
    /// Print the result as JSON; the same as `--format json`
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Also write a JUnit XML report to FILE
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Also write a SARIF 2.1.0 log to FILE
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,
    /// Include times and durations in the reports
    #[arg(long)]
    timings: bool,
    /// For machines without the trusted store: accept goals and config that have this digest
    #[arg(long, value_name = "SHA256")]
    accept_digest: Option<String>,
    #[command(flatten)]
    wall: WallArgs,
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
    if !args.json && args.format == Format::Github {
        screen::say_no_commands();
    }
    // First of all what is there goes away: no early end leaves an older report in the place of this one.
    let (outputs, named) = Output::all(args.junit.as_deref(), args.sarif.as_deref());
    let place = cx.place();
    let work = place.as_ref().map_or_else(|_| cx.target.clone(), |place| place.work_dir().to_owned());
    let outputs: Vec<_> = outputs.into_iter().map(|output| output.open(&work)).collect();
    let writes = !args.no_write && args.only.is_empty();
    let cleared = match &place {
        Ok(place) if writes => ground::clear_report(place),
        _ => Ok(()),
    };
    named?;
    let ground = Ground::open(cx, args.accept_digest.as_deref())?;
    known(&args.only, &ground.loaded)?;
    if args.pristine {
        runs_in_a_checkout(&args.only, &ground.loaded)?;
    }
    let outputs = outputs.into_iter().collect::<Result<Vec<_>, _>>()?;
    outputs::apart(&outputs)?;
    cleared?;
    let only = with_needs(&args.only, &ground.loaded.goals);
    let options = VerifyOptions {
        only: only.clone(),
        pristine: args.pristine,
        fresh: args.fresh,
        wall: args.wall.asked(),
    };
    for dir in ground.loaded.left_out(ground.place.work_dir(), &cx.env) {
        cx.out.talk(&format!("note: {dir}"));
    }
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
        let code = exit::signalled(signal);
        return Err(CommandError::new(
            code,
            format!("interrupted by signal {signal}; no report was written"),
        ));
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
            listed(paths)
        ));
    }
    let took = verified.took_ms;
    let report = report(verified, (args, &only), &ground);
    if !args.only.is_empty() && !args.no_write {
        cx.out.talk("note: .peers/VERIFY.md is left as it is, by `--only`");
    }
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
    let writes = !args.no_write && args.only.is_empty();
    let mut failed = if writes { ground.write_report(&markdown) } else { Ok(()) };
    for output in outputs {
        let text = match output.kind {
            outputs::Kind::Junit => verify_junit(report),
            outputs::Kind::Sarif => verify_sarif(report),
        };
        failed = failed.and(output.write(&text));
    }
    let code = failed.as_ref().err().map_or_else(|| report.answer().exit(), CommandError::exit_code);
    let said = match if args.json { Format::Json } else { args.format } {
        Format::Markdown => cx.out.data(&markdown),
        Format::Json => cx.out.data(&verify_json(report, code)),
        Format::Github => {
            if let Some(why) = outputs::summary(&cx.env, &markdown) {
                cx.out.talk(&format!("warning: {why}"));
            }
            cx.out.data(&verify_github(report))
        }
    };
    failed.and(said)
}

fn report(verified: Verified, (args, only): (&Args, &[String]), ground: &Ground) -> VerifyReport {
    let unasked = unasked(only, &verified, &ground.loaded);
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
        rewritten: verified.rewritten,
        unasked,
        beside: verified.beside.is_some(),
        recordless: verified.recordless,
    }
}

/// What was chosen, and the goals that it needs: one that needs another says nothing without it.
fn with_needs(only: &[String], goals: &[goal::Goal]) -> Vec<String> {
    let mut chosen = only.to_vec();
    let mut at = 0;
    while let Some(name) = chosen.get(at) {
        let gate = goals.iter().find(|goal| goal.id.as_str() == name).and_then(goal::Goal::gate);
        let needs: Vec<String> =
            gate.into_iter().flat_map(|gate| &gate.needs).map(ToString::to_string).collect();
        for need in needs {
            if !chosen.contains(&need) {
                chosen.push(need);
            }
        }
        at += 1;
    }
    chosen
}

/// What `--only` left out. What a clean checkout leaves out is said by itself.
fn unasked(only: &[String], verified: &Verified, loaded: &Loaded) -> Unasked {
    if only.is_empty() {
        return Unasked::default();
    }
    let out = |name: &&str| !only.iter().any(|only| only == name);
    let exempt = |name: &&str| verified.pristine && verified.exempt.iter().any(|id| id.as_str() == *name);
    let hard = loaded.goals.iter().filter(|goal| goal.gate().is_some()).map(|goal| goal.id.as_str());
    let commands = loaded.config.verify.commands.iter().filter(|_| !verified.pristine);
    let commands = commands.map(|command| command.name.as_deref().unwrap_or(&command.cmd));
    Unasked::of(hard.filter(out).filter(|name| !exempt(name)), commands.filter(out))
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

/// What was asked for runs in a clean checkout: gates that never do are told among those left out, as long as
/// another gate does; a command is one of the work tree, and nobody who names it wants it left out.
fn runs_in_a_checkout(only: &[String], loaded: &Loaded) -> Result<(), CommandError> {
    let exempt = oneshot::exempt(&loaded.goals);
    let hard = |name: &str| loaded.goals.iter().any(|goal| goal.gate().is_some() && goal.id.as_str() == name);
    let why_not = |name: &String| {
        if exempt.iter().any(|id| id.as_str() == name) {
            Some(format!("`{}` is `tree: live`", term::line(name, 80)))
        } else if !hard(name) {
            Some(format!("`{}` is one of `verify.commands`", term::line(name, 80)))
        } else {
            None
        }
    };
    let commands = only.iter().filter(|name| !hard(name)).count();
    let mut reasons: Vec<String> = only.iter().filter_map(why_not).collect();
    if commands == 0 && (only.is_empty() || reasons.len() < only.len()) {
        return Ok(());
    }
    if commands > 0 {
        reasons = only.iter().filter(|name| !hard(name)).filter_map(why_not).collect();
    }
    let verb = if reasons.len() == 1 { "does" } else { "do" };
    let text = format!("{} and {verb} not run in a clean checkout", reasons.join(", "));
    Err(CommandError::usage(text).hint("without `--pristine` it runs in the work tree"))
}

/// The first of them, for people.
fn listed(paths: &[String]) -> String {
    let shown: Vec<String> = paths.iter().take(SHOWN).map(|path| term::line(path, 120)).collect();
    match paths.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
