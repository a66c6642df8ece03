//! `peers-ctl budget`.

use std::process::ExitCode;
use std::time::Duration;

use clap::Subcommand;
use peers_console::error::CommandError;
use peers_console::operator;
use peers_core::budget::Caps;
use peers_fleet::start::{self, RuntimeCap};
use peers_model::record::{Cap, CapSet, OperatorOp};
use peers_model::{Timestamp, Usd};
use peers_run::boot;
use peers_store::{FsDisk, store};
use peers_sys::clock;
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

/// Set caps over those of the configuration, for a time
///
/// A value with a plus is added to the cap that holds now. A running loop takes it up before its next turn.
/// After --for the caps of the configuration hold again.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Raise {
    #[command(flatten)]
    which: Which,
    /// Run time of peers and gates: 4h, +2h
    #[arg(long, value_name = "[+]DURATION", value_parser = super::start::runtime_cap)]
    runtime: Option<RuntimeCap>,
    /// Ticks: 300, +50
    #[arg(long, value_name = "[+]N", value_parser = number)]
    ticks: Option<Step>,
    /// Tokens: 5000000, +1000000
    #[arg(long, value_name = "[+]N", value_parser = number)]
    tokens: Option<Step>,
    /// US dollars: 20, +5
    #[arg(long, value_name = "[+]X", value_parser = money)]
    usd: Option<Step>,
    /// For so long; `never` ends it never
    #[arg(long = "for", value_name = "DURATION", default_value = "24h", value_parser = expiry)]
    span: Expiry,
}

/// A value, or so much more than there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    To(u64),
    By(u64),
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

fn number(text: &str) -> Result<Step, String> {
    let (more, rest) = text.strip_prefix('+').map_or((false, text), |rest| (true, rest));
    match rest.replace('_', "").parse() {
        Ok(n) if n > 0 => Ok(if more { Step::By(n) } else { Step::To(n) }),
        _ => Err("must be a whole number above zero, with a leading + to add to the cap".to_owned()),
    }
}

fn money(text: &str) -> Result<Step, String> {
    let (more, rest) = text.strip_prefix('+').map_or((false, text), |rest| (true, rest));
    let micros = super::start::dollars(rest)?.as_micros();
    Ok(if more { Step::By(micros) } else { Step::To(micros) })
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
        let op = OperatorOp::BudgetSet { caps: raised(args, &mut disk, now)?, until };
        let words = words(&op);
        let data = serde_json::to_value(&op).unwrap_or_default();
        let taken = operator::act(&cx, &place, ("budget raise", op), |_| Ok(()))?;
        Ok(Done::well(
            format!("{name}: {words}{}", taken.said()),
            json!({"set": data, "taken": taken.word()}),
        ))
    })
}

/// The caps that hold now.
fn in_force(disk: &mut FsDisk, now: Timestamp) -> Result<Caps, CommandError> {
    let loaded = boot::load(disk)?;
    let state = store::read_state(disk)?;
    Ok(Caps::new(loaded.config.budget).in_force(&state, now))
}

fn raised(args: &Raise, disk: &mut FsDisk, now: Timestamp) -> Result<Vec<CapSet>, CommandError> {
    let held = in_force(disk, now)?.budget;
    let n = |cap: Option<std::num::NonZeroU64>| cap.map(std::num::NonZeroU64::get);
    let runtime = args.runtime.map(|cap| match cap {
        RuntimeCap::To(seconds) => Step::To(seconds),
        RuntimeCap::By(seconds) => Step::By(seconds),
    });
    let all = [
        (Cap::MaxRuntimeS, runtime, n(held.max_runtime_s)),
        (Cap::MaxIterations, args.ticks, n(held.max_iterations)),
        (Cap::MaxTokens, args.tokens, n(held.max_tokens)),
        (Cap::MaxUsd, args.usd, held.max_usd.map(|usd| usd.0.as_micros())),
    ];
    let mut caps = Vec::new();
    for (cap, step, held) in all {
        let value = match (step, held) {
            (None, _) => continue,
            (Some(Step::To(value)), _) => value,
            (Some(Step::By(more)), Some(held)) => held.saturating_add(more),
            (Some(Step::By(_)), None) => {
                return Err(CommandError::usage(format!("there is no `budget.{}` to add to", cap.key()))
                    .hint("without a plus it sets one"));
            }
        };
        caps.push(CapSet { cap, value });
    }
    Ok(caps)
}

/// The cap of run time, as an act.
pub(crate) fn runtime(disk: &mut FsDisk, cap: RuntimeCap) -> Result<OperatorOp, CommandError> {
    let held = in_force(disk, clock::now())?.budget.max_runtime_s.map_or(0, std::num::NonZeroU64::get);
    let value = match cap {
        RuntimeCap::To(seconds) => seconds,
        RuntimeCap::By(more) => held.saturating_add(more),
    };
    Ok(OperatorOp::BudgetSet { caps: vec![CapSet { cap: Cap::MaxRuntimeS, value }], until: None })
}

/// `max_usd is $25.00 until 2026-...`, for people.
pub(crate) fn words(op: &OperatorOp) -> String {
    let OperatorOp::BudgetSet { caps, until } = op else { return String::new() };
    let value = |set: &CapSet| match set.cap {
        Cap::MaxRuntimeS | Cap::MaxWallS => peers_model::time::human(Duration::from_secs(set.value)),
        Cap::MaxUsd => Usd::from_micros(set.value).to_string(),
        Cap::MaxIterations | Cap::MaxConsecutiveFailures | Cap::MaxTokens => peers_view::thousands(set.value),
    };
    let caps: Vec<String> =
        caps.iter().map(|set| format!("`budget.{}` is {}", set.cap.key(), value(set))).collect();
    let until = until.map_or_else(|| " for good".to_owned(), |until| format!(" until {until}"));
    format!("{}{until}", caps.join(", "))
}
