//! `peers ack`.

use std::process::ExitCode;
use std::str::FromStr;

use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_console::ledger;
use peers_console::operator;
use peers_core::cheat::TAKEN_OVER;
use peers_model::check;
use peers_model::command::Step;
use peers_model::goal::{GateRun, Goal};
use peers_model::record::{AckTarget, OperatorOp, Record};
use peers_model::{BugId, PeerName, TickNo, exit};
use peers_place::Place;
use peers_run::boot;
use peers_store::FsDisk;
use peers_sys::yaml;
use serde_json::json;

use super::watch;

/// Acknowledge what only a person can: a deferred bug, a turn that weakened tests, an obstacle that is gone
///
/// `bug:ID` lets a bug of severity high stay deferred, so that it no longer blocks; `weakening:TICK`
/// withdraws the warning for this turn, so that the next weakening counts as the first; `blocked:PEER`
/// says that this peer is not blocked any more, so that it gets turns again; `concern:ID` accepts a concern
/// of CONCERNS.md, where a gate asks about them.
///
/// The reason is recorded in the journal with your login name. A running loop applies this before its next
/// tick; if another command such as `land` is at work here, the next run applies it.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// What to acknowledge: `bug:ID`, `weakening:TICK` or `blocked:PEER`
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
        let wanted = "expected `bug:ID`, `weakening:TICK` or `blocked:PEER`";
        let (kind, id) = text.split_once(':').ok_or(wanted)?;
        let target = match kind {
            "bug" => AckTarget::Bug(BugId::new(id).map_err(|error| error.to_string())?),
            "concern" if !id.trim().is_empty() && id.len() <= 200 => AckTarget::Concern(id.to_owned()),
            "weakening" => {
                let tick = id.parse().ok().filter(|tick| *tick > 0);
                AckTarget::Weakening(TickNo(tick.ok_or("the number of a tick stands after `weakening:`")?))
            }
            "blocked" => AckTarget::Blocked(PeerName::new(id).map_err(|error| error.to_string())?),
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
    let standing = standing(&args.target.0, &mut disk)?;
    let taken = operator::act(cx, &place, ("ack", op), |_| Ok(()))?;
    if let Some(others) = &standing {
        cx.out.advise(Step::from("note: ").join(not_cleared(&args.target.0, others)));
    }
    if args.json {
        let cleared = standing.is_none();
        let body = json!({"target": args.target.0, "reason": args.reason, "taken": taken.word(),
            "cleared": cleared, "standing": standing.unwrap_or_default()});
        cx.out.json("peers.ack/1", &body)?;
    } else {
        cx.out.line(&format!("Acknowledged{}", taken.said()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A warning about a weakening that stands.
#[derive(Debug, serde::Serialize)]
struct Warned {
    peer: PeerName,
    tick: TickNo,
}

/// The warnings that stand, where the one that is acknowledged is none of them: of each peer only the
/// newest does.
fn standing(target: &AckTarget, disk: &mut FsDisk) -> Result<Option<Vec<Warned>>, CommandError> {
    let AckTarget::Weakening(tick) = target else { return Ok(None) };
    // What a turn only found there is named, and cleared, by its tick alone.
    let mut found_there = false;
    let (state, ..) = peers_store::store::read_each(disk, |line| {
        if let Record::Tick(record) = &line.record
            && record.iteration == *tick
        {
            found_there = record.warnings_emitted.iter().any(|text| text.starts_with(TAKEN_OVER));
        }
    })?;
    if found_there || state.distrusted == Some(*tick) {
        return Ok(None);
    }
    let warned: Vec<Warned> = state
        .peers
        .iter()
        .filter_map(|(peer, health)| Some(Warned { peer: peer.clone(), tick: health.warned_at? }))
        .collect();
    Ok((!warned.iter().any(|warned| warned.tick == *tick)).then_some(warned))
}

fn not_cleared(target: &AckTarget, others: &[Warned]) -> Step {
    let AckTarget::Weakening(tick) = target else { return Step::default() };
    let tick = tick.to_string();
    let [first, ..] = others else {
        return Step::text(
            "recorded, but no warning about a weakening stands, so tick {} had none to clear",
            &[&tick],
        );
    };
    let rows: Vec<String> =
        others.iter().map(|Warned { peer, tick }| format!("that of {peer} is tick {tick}")).collect();
    Step::text(
        "recorded, but tick {} is not the newest warning of a peer, and only that counts: {}; it stands until `peers ack weakening:{} --reason TEXT`",
        &[&tick, &rows.join(", "), &first.tick.to_string()],
    )
}

/// Whether there is such a thing. What cannot be looked up is taken at its word.
fn known(target: &AckTarget, place: &Place, disk: &mut FsDisk, cx: &Cx) -> Result<(), CommandError> {
    match target {
        AckTarget::Weakening(tick) => {
            let state = peers_store::store::read_state(disk)?;
            let ticks = state.ticks;
            if *tick > ticks && state.distrusted != Some(*tick) {
                let message = format!("there is no tick {tick} yet; the newest is {ticks}");
                return Err(CommandError::new(exit::INVALID, message));
            }
        }
        AckTarget::Bug(id) => {
            let Ok(ledger) = ledger::ledger(place, disk, cx) else { return Ok(()) };
            if !ledger.bugs.contains_key(id) {
                let near = yaml::closest(id.as_str(), ledger.bugs.keys().map(BugId::as_str));
                return Err(CommandError::new(exit::INVALID, format!("no commit reports the bug `{id}`"))
                    .hint_opt(near.map(|near| format!("did you mean `{near}`?")))
                    .hint("`peers bug-hunt summary` lists them"));
            }
        }
        AckTarget::Blocked(peer) => {
            if let Ok(loaded) = boot::load(disk) {
                watch::peer_of(peer.as_str(), &loaded.config).map_err(|e| e.with_exit(exit::INVALID))?;
            }
            let state = peers_store::store::read_state(disk)?;
            if state.health(peer).blocked.is_none() {
                let blocked: Vec<&str> = (state.peers.iter())
                    .filter(|(_, health)| health.blocked.is_some())
                    .map(|(name, _)| name.as_str())
                    .collect();
                let hint = if blocked.is_empty() {
                    "no peer is; a new run asks each of them again anyway".to_owned()
                } else {
                    format!("who is: {}", blocked.join(", "))
                };
                return Err(CommandError::new(exit::INVALID, format!("`{peer}` is not blocked")).hint(hint));
            }
        }
        AckTarget::Concern(_) if boot::load(disk).is_ok_and(|loaded| asks_about_concerns(&loaded.goals)) => {}
        // Recorded it would be, and nobody would ask for it: no grant at all is better than one that
        // does nothing.
        AckTarget::Concern(_) => {
            return Err(CommandError::new(exit::INVALID, "no gate here asks about concerns")
                .hint("add a gate with `check: concerns`; what else can be acknowledged: `bug:ID`, `weakening:TICK` and `blocked:PEER`"));
        }
    }
    Ok(())
}

/// Whether a gate reads `CONCERNS.md`.
fn asks_about_concerns(goals: &[Goal]) -> bool {
    let asks = |run: &GateRun| matches!(run, GateRun::Check { name, .. } if name == check::CONCERNS.name);
    goals.iter().filter_map(Goal::gate).any(|gate| asks(&gate.run))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgement_of_an_older_warning_names_the_ones_that_stand() {
        let warned = |peer: &str, tick| Warned { peer: PeerName::new(peer).unwrap(), tick: TickNo(tick) };
        let target = AckTarget::Weakening(TickNo(3));
        assert_eq!(
            not_cleared(&target, &[warned("ann", 7), warned("ben", 4)]).to_string(),
            "recorded, but tick 3 is not the newest warning of a peer, and only that counts: that of ann is tick 7, that of ben is tick 4; it stands until `peers ack weakening:7 --reason TEXT`"
        );
        assert!(not_cleared(&target, &[]).to_string().contains("tick 3 had none to clear"));
    }
}
