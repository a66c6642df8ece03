//! `peers-ctl resume`.

use std::process::ExitCode;

use peers_console::error::CommandError;
use peers_console::operator::{self, Taken};
use peers_fleet::start;
use peers_model::record::OperatorOp;
use serde_json::json;

use super::start::BudgetArgs;
use crate::ctl::{Ctl, failed};
use crate::many::{Done, Which, each};

/// Let loops continue that wait for a person
///
/// Says that the obstacle is gone: no peer counts as blocked any more, and an unavailable one gets a turn
/// to prove itself. With --start the loop is also started, with the options of its last start.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    budget: BudgetArgs,
    /// Also start the loop
    #[arg(long)]
    start: bool,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let config = ctl.config()?;
    let names = ctl.names(&config, &args.which.selection())?;
    if args.budget.force && !args.start {
        return Err(CommandError::usage("--force is for a start").hint("add --start"));
    }
    each(ctl, "resume", &names, &[], |name| {
        let project = start::project(&config, name).map_err(failed)?;
        start::located(&project, &ctl.env).map_err(failed)?;
        let cx = ctl.cx(&project);
        let place = cx.place()?;
        let (max_runtime, reset) = (args.budget.max_runtime, args.budget.reset_budget);
        // A start that is refused changes nothing.
        if args.start {
            if let Some(holder) = place.holder()? {
                return Err(failed(start::already(name, &holder.to_string())));
            }
            let options = args.budget.options(project.last_request.clone().again(), ctl);
            super::start::refuse(ctl, &config, name, &options)?;
        }
        let mut told = Vec::new();
        if reset {
            let taken = operator::act(&cx, &place, ("resume", OperatorOp::BudgetReset), |_| Ok(()))?;
            told.push(format!("what was spent counts as nothing{}", taken.said()));
        }
        if let Some(cap) = max_runtime {
            let (_, mut disk) = cx.store()?;
            let (op, notes) = super::budget::runtime(&mut disk, cap)?;
            let words = super::budget::words(&op);
            let taken = operator::act(&cx, &place, ("resume", op), |_| Ok(()))?;
            told.push(format!("{words}{}", taken.said()));
            told.extend(notes);
        }
        let taken: Taken = operator::act(&cx, &place, ("resume", OperatorOp::Resumed), |_| Ok(()))?;
        told.push(format!("everybody may have turns again{}", taken.said()));
        let text = format!("{name}: {}", told.join("; "));
        let data = json!({"taken": taken.word(), "did": told});
        if !args.start {
            let next = if taken == Taken::Recorded {
                ctl.spelt("\n  next: `peers-ctl start {}`", &[name.as_str()])
            } else {
                String::new()
            };
            return Ok(Done::well(format!("{text}{next}"), data));
        }
        let asked = BudgetArgs { max_runtime: None, reset_budget: false, ..args.budget.clone() };
        let options = asked.options(project.last_request.again(), ctl);
        let begun = super::start::started(ctl, &config, name, &options)?;
        let mut data = data;
        if let Some(map) = data.as_object_mut() {
            map.insert("started".to_owned(), begun.data);
        }
        Ok(Done { text: format!("{text}\n{}", begun.text), data, code: begun.code })
    })
}
