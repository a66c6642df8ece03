//! `peers-ctl budget`.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Subcommand;
use peers_console::error::CommandError;
use peers_console::operator::{self, Taken};
use peers_fleet::budget::{Amount, Raise as Raised, Standing};
use peers_fleet::start;
use peers_model::Timestamp;
use peers_model::record::{Cap, CapSet, OperatorOp};
use peers_store::FsDisk;
use peers_sys::clock;
use peers_view::cap_words;
use serde_json::json;

use super::duration;
use crate::ctl::{Ctl, failed};
use crate::many::{Done, Which, each};

/// Raise what loops may spend, without touching their configuration
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Raise(Raise),
}

/// Set caps that override those of the configuration for a time
///
/// A value with a plus is added to the current cap, or, without one, to what is spent. All caps count over
/// all runs. A running loop applies them before its next turn. They also override the --max-usd of an
/// earlier start, even if `restart` or `resume --start` repeats it. After --for the earlier caps apply
/// again.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Raise {
    #[command(flatten)]
    which: Which,
    #[arg(help = lasting!("Run time of peers and gates; with a plus, so much more"))]
    #[arg(long, value_name = "[+]DURATION", value_parser = super::start::runtime_cap)]
    runtime: Option<Amount>,
    /// Ticks over all runs: 300, +50; the --max-ticks of a start is another cap, which counts anew in each run
    #[arg(long, value_name = "[+]N", value_parser = number)]
    ticks: Option<Amount>,
    /// Tokens: 5000000, +1000000
    #[arg(long, value_name = "[+]N", value_parser = number)]
    tokens: Option<Amount>,
    /// US dollars: 20, +5
    #[arg(long, value_name = "[+]X", value_parser = money)]
    usd: Option<Amount>,
    #[arg(help = lasting!("How long it applies; `never` for no end"))]
    #[arg(long = "for", value_name = "DURATION", default_value = "24h", value_parser = expiry)]
    span: Expiry,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Expiry(Option<Duration>);

fn expiry(text: &str) -> Result<Expiry, String> {
    if text == "never" {
        return Ok(Expiry(None));
    }
    match duration(text)? {
        Duration::ZERO => Err("must be above zero, or `never`".to_owned()),
        span => Ok(Expiry(Some(span))),
    }
}

fn number(text: &str) -> Result<Amount, String> {
    let (more, rest) = text.strip_prefix('+').map_or((false, text), |rest| (true, rest));
    match rest.replace('_', "").parse() {
        Ok(n) if n > 0 => Ok(if more { Amount::By(n) } else { Amount::To(n) }),
        _ => Err("must be a whole number above zero, with a leading + to add to the cap".to_owned()),
    }
}

fn money(text: &str) -> Result<Amount, String> {
    let (more, rest) = text.strip_prefix('+').map_or((false, text), |rest| (true, rest));
    let micros = peers_model::Usd::typed(rest)?.as_micros();
    Ok(if more { Amount::By(micros) } else { Amount::To(micros) })
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let What::Raise(args) = &args.what;
    if args.runtime.is_none() && args.ticks.is_none() && args.tokens.is_none() && args.usd.is_none() {
        return Err(CommandError::usage("nothing is to be raised")
            .hint("name one of --runtime, --ticks, --tokens, --usd"));
    }
    let config = ctl.config()?;
    let names = ctl.names(&config, &args.which.selection())?;
    each(ctl, "budget-raise", &names, &[], |name| {
        let project = start::project(&config, name).map_err(failed)?;
        start::located(&project, &ctl.env).map_err(failed)?;
        let cx = ctl.cx(&project);
        let (place, mut disk) = cx.store()?;
        let now = clock::now();
        let until = args.span.0.map(|span| now.plus(span));
        let standing = Standing::read(&mut disk, now)?;
        let (caps, before, notes) = raised(args, &standing, now);
        let op = OperatorOp::BudgetSet { caps, until };
        let words = words(&op);
        let data = serde_json::to_value(&op).unwrap_or_default();
        let taken = operator::act(&cx, &place, ("budget raise", op), |_| Ok(()))?;
        let mut text = format!("{name}: {words}{}", taken.said());
        if !before.is_empty() {
            // A cap that somebody else has put there is seen by that.
            let _infallible = write!(text, "\n  before: {}", before.join(", "));
        }
        for note in &notes {
            let _infallible = write!(text, "\n  note: {note}");
        }
        if taken == Taken::Recorded {
            let start = ctl.spelt(
                "\n  the loop does not run, and is not started by this: `peers-ctl resume {} --start`",
                &[name.as_str()],
            );
            text.push_str(&start);
        }
        Ok(Done::well(text, json!({"set": data, "taken": taken.word(), "notes": notes})))
    })
}

/// What is to be set, what held before, and what a person should know of it.
fn raised(args: &Raise, standing: &Standing, now: Timestamp) -> (Vec<CapSet>, Vec<String>, Vec<String>) {
    let all = [
        (Cap::MaxRuntimeS, args.runtime),
        (Cap::MaxIterations, args.ticks),
        (Cap::MaxTokens, args.tokens),
        (Cap::MaxUsd, args.usd),
    ];
    let (mut caps, mut before, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for (cap, step) in all {
        let Some(step) = step else { continue };
        let raise = standing.raise(cap, step, now);
        notes.extend(remarks(&raise));
        before.extend(raise.held.map(|held| format!("`budget.{}` {}", cap.key(), cap_words(cap, held))));
        caps.push(raise.set);
    }
    if let Some(own) = standing.own_ticks().filter(|_| args.ticks.is_some()) {
        notes.push(format!(
            "the newest run has a cap of its own, --max-ticks {own}, which is not raised: it counts anew in each run"
        ));
    }
    (caps, before, notes)
}

/// From where it was counted, and that it does not help.
fn remarks(Raised { set, held: _, from_spent, reached }: &Raised) -> Vec<String> {
    let from = from_spent.map(|spent| {
        format!(
            "there was no `budget.{}`: counted from what is spent, {}",
            set.cap.key(),
            cap_words(set.cap, spent)
        )
    });
    let reached = reached.map(|spent| {
        format!(
            "{} is spent already, so the loop stops at this cap at once: set a higher one",
            cap_words(set.cap, spent)
        )
    });
    from.into_iter().chain(reached).collect()
}

/// The cap of run time, as an act, and what a person should know of it.
pub(crate) fn runtime(disk: &mut FsDisk, step: Amount) -> Result<(OperatorOp, Vec<String>), CommandError> {
    let now = clock::now();
    let raise = Standing::read(disk, now)?.raise(Cap::MaxRuntimeS, step, now);
    let notes = remarks(&raise);
    Ok((OperatorOp::BudgetSet { caps: vec![raise.set], until: None }, notes))
}

/// `max_usd is $25.00 until 2026-...`, for people.
pub(crate) fn words(op: &OperatorOp) -> String {
    let OperatorOp::BudgetSet { caps, until } = op else { return String::new() };
    let caps: Vec<String> = caps
        .iter()
        .map(|set| format!("`budget.{}` is {}", set.cap.key(), cap_words(set.cap, set.value)))
        .collect();
    let until = until.map_or_else(|| " for good".to_owned(), |until| format!(" until {until}"));
    format!("{}{until}", caps.join(", "))
}
