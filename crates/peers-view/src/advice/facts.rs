//! What is known of a loop when advice is sought.

use peers_model::command::{Command, Step};
use peers_model::record::BranchMove;
use peers_model::{PeerName, TickNo, Timestamp};
use peers_store::runs::RunRecord;

use super::spelling::Spelling;
use crate::asked::Unknown;
use crate::budget::{Amount, BudgetRow};
use crate::gates::GateFact;
use crate::liveness::Liveness;
use crate::peers::PeerRow;
use crate::sourced::Sourced;
use crate::standing::Core;
use crate::ticks::RecentTick;

/// What is known of a loop. What is absent is not known.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own that was looked at")]
pub(crate) struct Facts<'a> {
    /// The gate that the loop stopped for, or that is red for long.
    pub(crate) gate: Option<&'a GateFact>,
    pub(crate) now: Timestamp,
    pub(crate) spelling: &'a Spelling,
    /// Whether it runs, and if not, why.
    pub(crate) live: Sourced<&'a Liveness>,
    /// It has no `.peers/`.
    pub(crate) bare: bool,
    /// What is known where nobody can say how it stands.
    pub(crate) unknown: Option<&'a Unknown>,
    /// What is wrong with the journal.
    pub(crate) damage: Option<&'a str>,
    /// The fold of the journal.
    pub(crate) core: Option<&'a Core>,
    /// The newest run record.
    pub(crate) run: Option<&'a RunRecord>,
    /// Milliseconds of silence after which a peer is ended.
    pub(crate) idle_ms: Option<u64>,
    /// Files that are not what was accepted.
    pub(crate) unaccepted: &'a [&'static str],
    /// The gate of a new file is still there.
    pub(crate) placeholder: bool,
    /// Files that cannot be read as what they are.
    pub(crate) broken: &'a [String],
    /// Whose files these are, if not those of the directory that was asked about.
    pub(crate) files_in: Option<&'a str>,
    /// Where the newest run worked, if that is not the directory that was asked about.
    pub(crate) apart: Option<&'a str>,
    /// The directory of the repository.
    pub(crate) project: &'a str,
    /// The newest ticks, oldest first.
    pub(crate) ticks: &'a [RecentTick],
    /// Clean ticks that `complete` asks for at least, if that is known.
    pub(crate) needed: Option<u32>,
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
    /// Free bytes where the loop works, or where its store lies if that is less.
    pub(crate) free_bytes: Option<u64>,
    /// Where that is, if it is not where the loop works.
    pub(crate) full: Option<&'a str>,
    /// Somebody holds the lock of older systems.
    pub(crate) foreign_lock: bool,
    /// The version of this program.
    pub(crate) version: &'a str,
    /// What a start would refuse for.
    pub(crate) refusals: &'a [Step],
}

impl Facts<'_> {
    /// Whether the newest run was a dry run.
    pub(super) fn is_dry(&self) -> bool {
        self.core.and_then(|core| core.run.as_ref()).is_some_and(|run| run.dry_run)
    }

    /// A start that goes on where the newest run worked, as that was started: who only looked must not be led to a
    /// run that commits, and a cap of money holds for one start.
    pub(super) fn start(&self) -> Command {
        self.as_it_was(Command::run(), self.is_dry())
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
    pub(super) fn replay(&self, fits: impl Fn(&RecentTick) -> bool) -> Command {
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
