//! `peers-ctl amend` and `peers-ctl ack-block`.

use std::process::ExitCode;

use peers_acts::amend;
use peers_console::error::CommandError;
use peers_core::plan::StepId;
use peers_fleet::{ProjectName, start};
use peers_sys::term;
use serde_json::json;

use crate::ctl::{Ctl, failed};
use crate::many::{Done, each};

/// Replace the frozen acceptance command of a project
///
/// Freezes the new command in the trusted store and records who did it and why. Only in the mode `implement`, and
/// while no loop runs.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Amend {
    /// The project
    name: String,
    /// The command that passes when the feature is there
    #[arg(long, value_name = "CMD")]
    acceptance: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// Accept that a step of the plan is blocked
///
/// Rewrites `[BLOCKED]` of this step in PLAN.md to `[BLOCKED-ACK]`, commits that, and records who did it and why;
/// the mark alone counts for nothing. While no loop runs.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct AckBlock {
    /// The project
    name: String,
    /// The step: `STEP-n`
    #[arg(value_parser = step)]
    step: StepId,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

fn step(text: &str) -> Result<StepId, String> {
    text.parse().map_err(|()| "expected `STEP-n`, such as STEP-3".to_owned())
}

fn named(name: &str) -> Result<ProjectName, CommandError> {
    ProjectName::new(name).map_err(|error| CommandError::usage(error.to_string()))
}

pub(crate) fn amend(args: &Amend, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let config = ctl.config()?;
    each(ctl, "amend", &[named(&args.name)?], &[], |name| {
        let project = start::project(&config, name).map_err(failed)?;
        start::located(&project, &ctl.env).map_err(failed)?;
        let cx = ctl.cx(&project);
        cx.operators_alone_here("amend")?;
        let (before, loose) = amend::acceptance(&cx.place()?, &cx.operator(), &args.acceptance, &args.reason)
            .map_err(failed)?;
        let loose = loose
            .iter()
            .map(|path| format!("; `{}` is not frozen, so agents can change it", term::line(path, 200)));
        let loose: String = loose.collect();
        let text = format!("{name}: acceptance was `{before}` and is `{}`{loose}", args.acceptance);
        Ok(Done::well(text, json!({"acceptance": args.acceptance, "before": before, "reason": args.reason})))
    })
}

pub(crate) fn ack_block(args: &AckBlock, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let config = ctl.config()?;
    each(ctl, "ack-block", &[named(&args.name)?], &[], |name| {
        let project = start::project(&config, name).map_err(failed)?;
        start::located(&project, &ctl.env).map_err(failed)?;
        let cx = ctl.cx(&project);
        cx.operators_alone_here("ack-block")?;
        amend::ack_block(&cx.place()?, &cx.operator(), args.step, &args.reason).map_err(failed)?;
        let text = format!("{name}: {} is acknowledged as blocked", args.step);
        Ok(Done::well(text, json!({"step": args.step, "reason": args.reason})))
    })
}
