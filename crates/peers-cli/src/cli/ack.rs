//! `peers ack`.

use std::process::ExitCode;
use std::str::FromStr;

use peers_model::record::{AckTarget, OperatorOp};
use peers_model::{BugId, TickNo, exit};
use peers_run::place::Place;
use peers_store::FsDisk;
use peers_sys::yaml;
use serde_json::json;

use super::bug_hunt;
use crate::cx::Cx;
use crate::error::CommandError;
use crate::operator;

/// Grant what a gate leaves to a person
///
/// The reason is recorded in the journal with your login name. While a loop runs, it takes the grant up
/// before its next tick.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// What is acknowledged: `bug:ID` or `weakening:TICK`
    #[arg(value_name = "WHAT")]
    target: Target,
    /// Why
    #[arg(long, value_name = "TEXT", required = true, value_parser = reason)]
    reason: String,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone)]
struct Target(AckTarget);

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = "expected `bug:ID` or `weakening:TICK`";
        let (kind, id) = text.split_once(':').ok_or(wanted)?;
        let target = match kind {
            "bug" => AckTarget::Bug(BugId::new(id).map_err(|error| error.to_string())?),
            "concern" if !id.trim().is_empty() && id.len() <= 200 => AckTarget::Concern(id.to_owned()),
            "weakening" => {
                let tick = id.parse().ok().filter(|tick| *tick > 0);
                AckTarget::Weakening(TickNo(tick.ok_or("the number of a tick stands after `weakening:`")?))
            }
            _ => return Err(wanted.to_owned()),
        };
        Ok(Self(target))
    }
}

fn reason(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() { Err("a reason has words".to_owned()) } else { Ok(text.to_owned()) }
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    cx.operators_alone_here("ack")?;
    let (place, mut disk) = cx.view()?;
    known(&args.target.0, &place, &mut disk, cx)?;
    let op = OperatorOp::Ack { target: args.target.0.clone(), reason: args.reason.clone() };
    let taken = operator::act(cx, &place, op, |_| Ok(()))?;
    if args.json {
        let body = json!({"target": args.target.0, "reason": args.reason, "taken": taken.word()});
        cx.out.json("peers.ack/1", &body)?;
    } else {
        cx.out.line(&format!("Acknowledged{}", taken.said()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether there is such a thing. What cannot be looked up is taken at its word.
fn known(target: &AckTarget, place: &Place, disk: &mut FsDisk, cx: &Cx) -> Result<(), CommandError> {
    match target {
        AckTarget::Weakening(tick) => {
            let ticks = peers_store::store::read_state(disk)?.ticks;
            if *tick > ticks {
                let message = format!("there is no tick {tick} yet; the newest is {ticks}");
                return Err(CommandError::new(exit::INVALID, message));
            }
        }
        AckTarget::Bug(id) => {
            let Ok(ledger) = bug_hunt::ledger(place, disk, cx) else { return Ok(()) };
            if !ledger.bugs.contains_key(id) {
                let near = yaml::closest(id.as_str(), ledger.bugs.keys().map(BugId::as_str));
                return Err(CommandError::new(exit::INVALID, format!("no commit reports the bug `{id}`"))
                    .hint_opt(near.map(|near| format!("did you mean `{near}`?"))));
            }
        }
        // Recorded it would be, and nobody would ask for it: no grant at all is better than one that
        // does nothing.
        AckTarget::Concern(_) => {
            return Err(CommandError::new(exit::INVALID, "no gate of this version asks about concerns")
                .hint("what can be acknowledged: `bug:ID` and `weakening:TICK`"));
        }
    }
    Ok(())
}
