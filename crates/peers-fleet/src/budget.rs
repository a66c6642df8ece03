//! What a project may spend and has spent, as far as the trusted store says it.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use peers_core::budget::{self, Caps, GivenUsd};
use peers_core::state::State;
use peers_model::command::Step;
use peers_model::outcome::{BudgetKind, StopReason};
use peers_model::record::{Cap, CapSet, OperatorOp, OperatorRecord, Record};
use peers_model::{Timestamp, Usd, exit};
use peers_run::boot::{self, BootError, Finding};
use peers_store::runs::{self, RunRecord};
use peers_store::{FsDisk, commands, store};

use crate::registry::ProjectName;

/// What was spent, and the caps.
#[derive(Debug)]
pub struct Standing {
    caps: Caps,
    state: State,
    newest: Option<RunRecord>,
}

/// A new value of a cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// This much in all.
    To(u64),
    /// So much more than the cap that holds now; where there is none, than what is spent.
    By(u64),
}

/// A cap as it is to be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raise {
    /// Which, and its value.
    pub set: CapSet,
    /// The cap that held before.
    pub held: Option<u64>,
    /// There was no cap, so it was counted from what is spent.
    pub from_spent: Option<u64>,
    /// So much is spent, which is no less than the new cap.
    pub reached: Option<u64>,
}

impl Standing {
    /// Reads it, over the configuration as it was accepted. The cap of money is that of the newest run, whether it lives or has ended.
    ///
    /// # Errors
    /// The files of the operator or the journal cannot be read.
    pub fn read(disk: &mut FsDisk, now: Timestamp) -> Result<Self, BootError> {
        // Of a run whose record is gone nobody knows what it was asked.
        let newest = runs::last(disk).unwrap_or_default();
        let given = newest.as_ref().and_then(RunRecord::given_usd);
        Self::with(disk, given, now).map(|standing| Self { newest, ..standing })
    }

    /// The same for a run that is started with this cap of money.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn with(disk: &mut FsDisk, given: Option<GivenUsd>, now: Timestamp) -> Result<Self, BootError> {
        let config = boot::accepted_config(disk)?;
        let mut state = store::read_state(disk).map_err(Finding::from)?;
        // What was handed to a loop that has not taken it yet counts already. Where it cannot be read, the loop
        // will say so.
        for record in commands::look(disk) {
            after(&mut state, record.op, now);
        }
        Ok(Self { caps: Caps::new(config.budget).given(given), state, newest: None })
    }

    /// As it will be once the operator has done this.
    pub fn after(&mut self, op: OperatorOp, now: Timestamp) {
        after(&mut self.state, op, now);
    }

    /// The cap of ticks that the newest run was given for itself, which no raise changes.
    #[must_use]
    pub fn own_ticks(&self) -> Option<u64> {
        self.newest.as_ref()?.request.max_ticks
    }

    /// The value of a cap after a step.
    #[must_use]
    pub fn raise(&self, cap: Cap, step: Amount, now: Timestamp) -> Raise {
        let (held, spent) = (self.held(cap, now), self.spent(cap));
        let (value, from_spent) = match (step, held) {
            (Amount::To(value), _) => (value, None),
            (Amount::By(more), Some(held)) => (held.saturating_add(more), None),
            (Amount::By(more), None) => (spent.saturating_add(more), Some(spent)),
        };
        Raise { set: CapSet { cap, value }, held, from_spent, reached: (spent >= value).then_some(spent) }
    }

    /// The budget that a run would stop for at once, with what there is to say of it. Failures in a row, and what
    /// a run measures by itself, begin anew with each run.
    #[must_use]
    pub fn exhausted(&self, name: &ProjectName, now: Timestamp) -> Option<Finding> {
        let caps = self.caps.in_force(&self.state, now);
        match budget::exhausted(&caps, &self.state, now) {
            None
            | Some(BudgetKind::MaxConsecutiveFailures | BudgetKind::MaxWall | BudgetKind::NoProgress) => None,
            Some(kind) => Some(exhausted(name, kind, &caps, &self.state)),
        }
    }

    /// The cap that holds now.
    fn held(&self, cap: Cap, now: Timestamp) -> Option<u64> {
        let held = self.caps.in_force(&self.state, now).budget;
        let n = |cap: Option<NonZeroU64>| cap.map(NonZeroU64::get);
        match cap {
            Cap::MaxIterations => n(held.max_iterations),
            Cap::MaxRuntimeS => n(held.max_runtime_s),
            Cap::MaxWallS => n(held.max_wall_s),
            Cap::MaxConsecutiveFailures => held.max_consecutive_failures.map(NonZeroU32::get).map(u64::from),
            Cap::MaxTokens => n(held.max_tokens),
            Cap::MaxUsd => held.max_usd.map(|usd| usd.0.as_micros()),
        }
    }

    /// What is spent of it, over all runs.
    fn spent(&self, cap: Cap) -> u64 {
        let spent = &self.state.spent;
        match cap {
            Cap::MaxIterations => spent.iterations,
            Cap::MaxRuntimeS => seconds(&self.state),
            Cap::MaxTokens => spent.tokens.0,
            Cap::MaxUsd => spent.usd.as_micros(),
            // Of one run.
            Cap::MaxWallS | Cap::MaxConsecutiveFailures => 0,
        }
    }
}

fn after(state: &mut State, op: OperatorOp, now: Timestamp) {
    let record = Record::Operator(OperatorRecord { op, by: String::new() });
    // What the journal will not take has no effect on the budget.
    let _illegal = state.apply(now, None, &record);
}

fn seconds(state: &State) -> u64 {
    state.spent.peer_ms.saturating_add(state.spent.gate_ms) / 1000
}

fn exhausted(name: &ProjectName, kind: BudgetKind, caps: &Caps, state: &State) -> Finding {
    let spent = &state.spent;
    let b = &caps.budget;
    let share = |used: u64, cap: Option<u64>| {
        cap.filter(|cap| *cap > 0)
            .map_or(String::new(), |cap| format!(" ({} %)", used.saturating_mul(100) / cap))
    };
    let seconds = seconds(state);
    let human = |s: u64| peers_model::time::human(Duration::from_secs(s));
    let told = match kind {
        BudgetKind::MaxIterations => {
            let cap = b.max_iterations.map(NonZeroU64::get);
            format!(
                "{} of {} ticks{}",
                spent.iterations,
                cap.unwrap_or_default(),
                share(spent.iterations, cap)
            )
        }
        BudgetKind::MaxRuntime => {
            let cap = b.max_runtime_s.map(NonZeroU64::get);
            format!(
                "{} of {} run time{}",
                human(seconds),
                human(cap.unwrap_or_default()),
                share(seconds, cap)
            )
        }
        BudgetKind::MaxTokens => {
            let cap = b.max_tokens.map(NonZeroU64::get);
            format!("{} of {} tokens{}", spent.tokens, cap.unwrap_or_default(), share(spent.tokens.0, cap))
        }
        BudgetKind::MaxUsd => {
            let cap = b.max_usd.map(|usd| usd.0);
            let of = cap.map(|usd| usd.to_string()).unwrap_or_default();
            format!("{} of {of}{}", spent.usd, share(spent.usd.as_micros(), cap.map(Usd::as_micros)))
        }
        BudgetKind::Deadline => "its deadline is past".to_owned(),
        _ => "every peer has reached a cap of its own".to_owned(),
    };
    Finding::new(
        exit::BUDGET,
        format!("the budget is exhausted ({}): {told}", StopReason::Budget(kind)),
        raised(name, kind, caps, state).say(
            "; or begin anew (--reset-budget), or start it all the same (--force): it stops again after one look",
        ),
    )
}

/// The commands that let the loop go on: enough more of what is used up, and the start.
fn raised(name: &ProjectName, kind: BudgetKind, caps: &Caps, state: &State) -> Step {
    let (spent, caps) = (&state.spent, &caps.budget);
    let n = |cap: Option<NonZeroU64>| cap.map(NonZeroU64::get);
    let (cap, used) = match kind {
        BudgetKind::MaxIterations => (n(caps.max_iterations), spent.iterations),
        BudgetKind::MaxRuntime => (n(caps.max_runtime_s), seconds(state)),
        BudgetKind::MaxTokens => (n(caps.max_tokens), spent.tokens.0),
        BudgetKind::MaxUsd => (caps.max_usd.map(|usd| usd.0.as_micros()), spent.usd.as_micros()),
        _ => (None, 0),
    };
    let Some((option, more)) = budget::more(kind, cap, used) else {
        return "change `budget` in .peers/config.yaml, then `peers goals accept`".into();
    };
    let name = name.as_str();
    Step::text(
        "raise it: `peers-ctl budget raise {} {} {}`, then `peers-ctl resume {} --start`",
        &[name, option, &more, name],
    )
}
