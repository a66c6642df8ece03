//! `peers-ctl doctor`.

use std::process::ExitCode;

use peers_console::checkup;
use peers_console::error::CommandError;
use peers_fleet::checkup::{Finding, Mark, host};
use peers_model::exit;
use peers_run::doctor::{self, Ask};
use serde_json::json;

use crate::ctl::{Ctl, failed};
use crate::many::Which;

/// Look whether this machine and the projects can run loops, with what mends each finding
///
/// Without a name: this machine and the registry. With names, or --all: these projects too, as `peers doctor`
/// looks at them. Nothing is changed without --fix, and nothing is spent without --live.
///
/// Exit codes: 0 when nothing is wrong, else that of the first error.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Do what is safe to do: narrow permissions, end what dead runs left, clear what a start left half done
    #[arg(long)]
    fix: bool,
    /// Ask each peer of the projects for one word; this costs what a short turn costs
    #[arg(long)]
    live: bool,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let selection = args.which.selection();
    if args.live && selection.is_empty() {
        return Err(CommandError::usage("--live asks the peers of projects: name them, or --all"));
    }
    let (findings, fixed) = host(ctl.config_dir.as_deref(), &ctl.env, args.fix);
    let mut codes: Vec<u8> =
        findings.iter().filter(|finding| finding.mark == Mark::Error).map(|f| f.exit).collect();
    if !ctl.json {
        for line in &fixed {
            ctl.say(&format!("mended: {line}"));
        }
        ctl.out.data(&table(&findings))?;
    }
    let mut projects = Vec::new();
    if !selection.is_empty() {
        let config = ctl.config()?;
        let names = ctl.names(&config, &selection)?;
        for name in &names {
            let project = peers_fleet::start::project(&config, name).map_err(failed)?;
            let ask = if args.live { Ask::EachPeer } else { Ask::Nobody };
            let looked = peers_fleet::start::located(&project, &ctl.env)
                .map_err(failed)
                .and_then(|place| Ok(doctor::examine(&place, &ctl.env, ask)?));
            match looked {
                Ok(report) => {
                    codes.extend(Some(report.exit_code()).filter(|code| *code != exit::OK));
                    if ctl.json {
                        projects.push(json!({"name": name, "report": checkup::as_json(&report)}));
                    } else {
                        let text = ctl.by_name(&project, &checkup::text(&report));
                        ctl.out.data(&format!("\n{name}\n{text}"))?;
                    }
                }
                Err(error) => {
                    let error = ctl.about(&project, error);
                    codes.push(error.exit_code());
                    projects.push(json!({"name": name, "report": null, "error": error.summary()}));
                    if !ctl.json {
                        ctl.out.data(&format!("\n{name}\n{}", error.render()))?;
                    }
                }
            }
        }
    }
    if ctl.json {
        let rows: Vec<_> = findings
            .iter()
            .map(|f| json!({"about": f.about, "level": f.mark.word(), "message": f.message, "fix": f.fix}))
            .collect();
        ctl.document("doctor", &json!({"host": rows, "fixed": fixed, "projects": projects}), &[])?;
    }
    Ok(ExitCode::from(codes.first().copied().unwrap_or(exit::OK)))
}

fn table(findings: &[Finding]) -> String {
    let mut rows = Vec::new();
    for Finding { about, mark, message, fix, exit: _ } in findings {
        rows.push(vec![mark.word().to_owned(), (*about).to_owned(), message.clone()]);
        rows.extend(fix.as_ref().map(|fix| vec![String::new(), String::new(), format!("-> {fix}")]));
    }
    peers_console::output::table(&rows)
}
