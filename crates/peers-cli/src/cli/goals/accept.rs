//! `peers goals accept`.

use std::process::ExitCode;

use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_console::{modes, operator};
use peers_model::command::Step as Hint;
use peers_model::record::{Digests, OperatorOp};
use peers_model::{exit, limits};
use peers_run::boot;
use peers_store::layout::peers;
use peers_store::{Area, Disk, accept, load};
use peers_sys::clock;
use serde_json::json;

use super::changes::{self, Change};
use super::widening::{self, Asked, To, Widening};

/// Accept goals and config as they are now
///
/// A change to what runs as you (a gate's `cmd`, a peer's `argv`, tool or provider, `setup.commands`,
/// `hooks`, `verify.commands`, `goals.env`) needs a `yes` typed on a terminal, or the digest that
/// `peers goals diff` prints: `--widen DIGEST`. A gate of a mode that is dropped or changed needs `--note`.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Reason, for the record
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Accept exactly the changed commands for which `peers goals diff` printed this digest
    #[arg(long, value_name = "DIGEST")]
    widen: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// What an acceptance changes.
pub(super) struct Step {
    pub(super) changes: Vec<Change>,
    pub(super) set: Widening,
    /// Other commands run than before.
    pub(super) wider: bool,
    /// There is nothing that the files could be compared with, so that `changes` says nothing.
    pub(super) blind: bool,
}

impl Step {
    /// From what was accepted to these files. With the `first` acceptance everything begins.
    pub(super) fn to<D: Disk>(first: bool, disk: &mut D, goals: &[u8], config: &[u8]) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let read = |disk: &mut D, name| {
            accept::read_bytes(disk, name).ok().flatten().map(|b| text(&b)).unwrap_or_default()
        };
        let old = (read(disk, peers::GOALS), read(disk, peers::CONFIG));
        let new = (text(goals), text(config));
        let of = |(goals, config): &(String, String)| {
            let config = load::load_config(config).ok()?;
            let goals = load::load_goals(goals, config.peers.len(), peers_checks::names()).ok()?;
            Some(Widening::of(&config, &goals))
        };
        let set = of(&new).unwrap_or_default();
        // What was accepted and cannot be read any more is no beginning.
        let was = of(&old);
        let blind = was.is_none();
        let wider = !first && set.exceeds(&was.unwrap_or_default());
        Self { changes: changes::between((&old.0, &old.1), (&new.0, &new.1)), set, wider, blind }
    }
}

pub(super) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let Args { note, widen, json: as_json } = args;
    cx.operators_alone_here("goals accept")?;
    let (place, mut disk) = cx.store()?;
    // Only what is valid can be accepted.
    let loaded = boot::load(&mut disk)?;
    let old = loaded.accepted.as_ref().map(|accepted| accepted.digests.clone()).unwrap_or_default();
    let new = loaded.digests.clone();
    if old == new {
        if *as_json {
            cx.out.json("peers.goals-accept/1", &json!({"changed": false, "digests": new, "taken": null}))?;
        } else {
            cx.out.talk("goals and config are accepted already");
        }
        return Ok(ExitCode::SUCCESS);
    }
    let (goals, config) = files(&mut disk)?;
    unchanged(&goals, &config, &new)?;
    modes::refuse_unexplained(&mut disk, &goals, note.as_deref())?;
    let first = loaded.accepted.is_none() && loaded.damaged.is_none();
    let step = Step::to(first, &mut disk, &goals, &config);
    for warning in loaded.warnings() {
        cx.out.talk(&format!("warning: {warning}"));
    }
    if step.wider {
        // Without what was accepted there is no difference to look at.
        let look = if loaded.damaged.is_some() { "look at the files" } else { "look at `peers goals diff`" };
        let accept = Hint::text(", then `peers goals accept --widen {}`", &[&step.set.digest()]);
        let asked = Asked {
            to: To::Commands,
            digest: step.set.digest(),
            given: widen.as_deref(),
            // The yes is to the files as they are, whatever asks for it.
            changes: step.changes.iter().collect(),
            can_answer: !*as_json,
            remedy: Hint::from(look).join(accept),
        };
        widening::agreed(cx, asked)?;
        // Typing takes a while.
        let (goals, config) = files(&mut disk)?;
        unchanged(&goals, &config, &new)?;
    }
    let op = OperatorOp::Accepted { old, new: new.clone(), note: note.clone(), rules: None };
    let by = cx.operator();
    let taken = operator::act(cx, &place, ("goals accept", op), |disk| {
        accept::write(disk, &goals, &config, clock::now(), &by, note.as_deref())?;
        Ok(())
    })?;
    if *as_json {
        cx.out
            .json("peers.goals-accept/1", &json!({"changed": true, "digests": new, "taken": taken.word()}))?;
    } else {
        cx.out.line(&format!("Accepted {}{}", named(&new), taken.said()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A pair of digests for people.
pub(super) fn named(Digests { goals, config }: &Digests) -> String {
    let short = |digest: &str| digest.chars().take(12).collect::<String>();
    format!("goals {} and config {}", short(goals), short(config))
}

fn files<D: Disk>(disk: &mut D) -> Result<(Vec<u8>, Vec<u8>), CommandError> {
    let goals = disk.read(Area::Peers, peers::GOALS, limits::CONFIG)?.unwrap_or_default();
    let config = disk.read(Area::Peers, peers::CONFIG, limits::CONFIG)?.unwrap_or_default();
    Ok((goals, config))
}

fn unchanged(goals: &[u8], config: &[u8], digests: &Digests) -> Result<(), CommandError> {
    if accept::digests(goals, config) == *digests {
        return Ok(());
    }
    Err(CommandError::new(exit::CONFLICT, "goals or config changed while they were read").hint("try again"))
}
