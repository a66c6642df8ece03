//! What is known of a loop when advice is sought.

use peers_model::command::Command;
use peers_model::record::BranchMove;
use peers_model::{PeerName, TickNo, Timestamp};
use peers_store::runs::RunRecord;

use super::spelling::Spelling;
use crate::asked::Asked;
use crate::budget::{Amount, BudgetRow};
use crate::gates::GateFact;
use crate::liveness::Liveness;
use crate::loopview::InForce;
use crate::peers::PeerRow;
use crate::setup::Setup;
use crate::sourced::Sourced;
use crate::standing::Core;
use crate::ticks::TickRow;

/// What is known of a loop. What is absent is not known.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    /// What the caller brought.
    pub(crate) asked: &'a Asked,
    /// The gate that the loop stopped for, or that is red for long.
    pub(crate) gate: Option<&'a GateFact>,
    pub(crate) now: Timestamp,
    pub(crate) spelling: &'a Spelling,
    /// Whether it runs, and if not, why.
    pub(crate) live: Sourced<&'a Liveness>,
    /// What is wrong with the journal.
    pub(crate) damage: Option<&'a str>,
    /// The fold of the journal.
    pub(crate) core: Option<&'a Core>,
    /// The newest run record.
    pub(crate) run: Option<&'a RunRecord>,
    /// What is accepted of the configuration.
    pub(crate) config: Option<&'a InForce>,
    /// The operator's files.
    pub(crate) setup: &'a Setup,
    /// Those of them that cannot be read as what they are.
    pub(crate) broken: &'a [String],
    /// Where the newest run worked, if that is not the directory that was asked about.
    pub(crate) apart: Option<&'a str>,
    /// The directory of the repository.
    pub(crate) project: &'a str,
    /// The newest ticks, oldest first.
    pub(crate) ticks: &'a [TickRow],
    /// The mirror of the journal was changed by somebody else in the newest run: when, and in which tick.
    pub(crate) mirror: Option<(Timestamp, Option<TickNo>)>,
    /// The newest run was landed or undone.
    pub(crate) decided: bool,
    /// A landing or an undo has begun and not ended.
    pub(crate) moving: Option<&'a BranchMove>,
    /// The directory in which the newest run worked is gone.
    pub(crate) gone: bool,
    /// When the journal or the output of a peer moved last.
    pub(crate) moved: Option<Timestamp>,
}

impl Facts<'_> {
    /// Whether the newest run was a dry run.
    pub(super) fn is_dry(&self) -> bool {
        self.core.and_then(|core| core.run.as_ref()).is_some_and(|run| run.dry_run)
    }

    /// A start that goes on where the newest run worked, as that was started: who only looked must not be led to a
    /// run that commits, and a cap of money holds for one start.
    pub(super) fn start(&self) -> Command {
        let start = self.as_it_was(Command::run(), self.is_dry());
        // Without it what it passed over would stop the next one.
        if self.run.is_some_and(|run| run.request.anyway) { start.with("--anyway") } else { start }
    }

    /// The same once the operator has seen to what it stopped for.
    pub(super) fn resume(&self) -> Command {
        self.as_it_was(Command::resume(), self.is_dry())
    }

    pub(super) fn as_it_was(&self, command: Command, dry: bool) -> Command {
        let command = command.at(self.apart);
        let command = if dry { command.with_peers("--dry-run") } else { command };
        let held = self.cap("max_usd").and_then(|row| row.cap);
        // One that was raised since is not to come back.
        let given = self.run.and_then(RunRecord::given_usd).map(|given| given.usd);
        match given.filter(|usd| held.is_none_or(|held| held == Amount::Usd(*usd))) {
            Some(usd) => {
                let usd = usd.to_string().trim_start_matches('$').replace(',', "");
                command.with_peers("--max-usd").with_peers(&usd)
            }
            None => command,
        }
    }

    /// The row of a cap of everybody.
    pub(super) fn cap(&self, key: &str) -> Option<&BudgetRow> {
        self.core?.budget.rows.iter().find(|row| row.peer.is_none() && row.key == key)
    }

    pub(super) fn peers(&self) -> &[PeerRow] {
        self.core.map(|core| core.peers.as_slice()).unwrap_or_default()
    }

    pub(super) fn peer(&self, name: &PeerName) -> Option<&PeerRow> {
        self.peers().iter().find(|row| row.name == *name)
    }

    /// Shows the newest turn that fits; without one, looks whether peers can have turns at all.
    pub(super) fn replay(&self, fits: impl Fn(&TickRow) -> bool) -> Command {
        match self.ticks.iter().rev().find(|tick| fits(tick)) {
            Some(tick) => replay(tick.tick),
            None => Command::doctor(),
        }
    }
}

/// Shows one turn.
pub(super) fn replay(tick: TickNo) -> Command {
    let tick = tick.to_string();
    Command::either("replay", "replay").with_peers(&tick).with_ctl("--from-tick").with_ctl(&tick)
}
