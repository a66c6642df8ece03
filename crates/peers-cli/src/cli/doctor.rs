//! `peers doctor`.

use std::process::ExitCode;

use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_console::output;
use peers_model::outcome::classification;
use peers_run::doctor::{self, Answer, Ask, Check, Level, Report};
use peers_sys::term;
use serde_json::json;

/// Look whether a run can start here and what its peers need, with what mends each finding
///
/// Looks at the set-up, the repository, `git`, the disk, locks, leftovers of a killed run, the clock, and
/// for each peer at its program, its version, its login and its arguments. What `peers run` would refuse
/// for is told in the same words. Nothing is changed, and nothing is spent without `--live`. What a
/// `config.yaml` names that is not accepted is looked at and not started.
///
/// Exit codes: 0 when there is no error, else that of the first one: 3 invalid, 4 conflict, 5 refused,
/// 6 the environment lacks something, 13 a peer did not answer.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Ask each peer for one word, in an empty repository, within 120 s; this costs what a short turn costs
    #[arg(long)]
    live: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let place = cx.place()?;
    if args.live {
        cx.operators_alone(&place, "doctor --live")?;
        cx.out.talk("each peer is asked for one word, which costs what a short turn costs");
    }
    let ask = if args.live { Ask::EachPeer } else { Ask::Nobody };
    let report = doctor::examine(&place, &cx.env, ask)?;
    if args.json {
        cx.out.json("peers.doctor/1", &as_json(&report))?;
    } else {
        cx.out.data(&cx.out.pasteable(&text(&report)))?;
    }
    Ok(ExitCode::from(report.exit_code()))
}

fn text(report: &Report) -> String {
    let mut rows = Vec::new();
    for Check { about, level, message, fix, .. } in &report.checks {
        // A file that cannot be read is quoted in the lines below the first.
        let mut lines = message.lines().map(|line| term::line(line, 1000));
        let first = lines.next().unwrap_or_default();
        rows.push(vec![level.word().to_owned(), about.clone(), first]);
        let below = |text: String| vec![String::new(), String::new(), text];
        rows.extend(lines.map(below));
        rows.extend(fix.as_ref().map(|fix| below(format!("-> {fix}"))));
    }
    let count = |level: Level| report.checks.iter().filter(|check| check.level == level).count();
    let (errors, warnings) = (count(Level::Error), count(Level::Warning));
    let of = |n: usize, noun: &str| output::counted(u64::try_from(n).unwrap_or(u64::MAX), noun);
    format!("{}{}, {}\n", output::table(&rows), of(errors, "error"), of(warnings, "warning"))
}

fn as_json(report: &Report) -> serde_json::Value {
    let answers: Vec<_> = report
        .answers
        .iter()
        .map(|Answer { peer, exit }| match exit {
            Ok(exit) => json!({
                "peer": peer,
                "classification": classification(exit.class, exit.api),
                "model": exit.model,
                "tokens": exit.usage.tokens,
                "usd": exit.usage.usd,
                "at_least": exit.at_least,
                "duration_ms": exit.duration_ms,
            }),
            Err(why) => json!({"peer": peer, "classification": null, "error": why}),
        })
        .collect();
    json!({"checks": report.checks, "answers": answers, "exit_code": report.exit_code()})
}
