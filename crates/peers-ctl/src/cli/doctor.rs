//! `peers-ctl doctor`.

use std::process::ExitCode;

use peers_acts::doctor::{self, Ask, Report};
use peers_console::checkup;
use peers_console::error::CommandError;
use peers_fleet::checkup::{Finding, Mark, host};
use peers_fleet::observe::Observation;
use peers_fleet::refresh::Seen;
use peers_fleet::select::Selection;
use peers_fleet::{ConfigDir, Project, ProjectName};
use peers_model::exit;
use peers_view::{Cell, Page, Spelling, Tone};
use serde_json::json;

use crate::ctl::{Ctl, failed};
use crate::many::Which;

/// What is said of names.
const IMPLIED: &str = "Projects by name; `*` and `?` match several [default: that of this directory, or the only one, if there is one]";

/// Check whether this machine and the projects can run loops; each finding says what fixes it
///
/// Checks this machine, the registry, and the selected projects as `peers doctor` does. Changes nothing
/// without --fix, and spends nothing without --live.
///
/// Exit codes: 0 if nothing is wrong, else that of the first error.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[command(mut_arg("names", |names| names.help(IMPLIED)))]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Do what is safe: narrow permissions, end leftovers of dead runs, clear half-done starts
    #[arg(long)]
    fix: bool,
    /// Ask each peer of the projects for one word; this costs what a short turn costs
    #[arg(long)]
    live: bool,
    /// Try from inside the sandbox that a run would take what an agent and a gate must not reach
    ///
    /// Each attempt is a process of its own. Nothing is changed, whether it succeeds or not.
    #[arg(long, verbatim_doc_comment)]
    isolation: bool,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let selection = args.which.selection();
    let (findings, fixed) = host(ctl.config_dir.as_deref(), &ctl.env, args.fix);
    let mut codes: Vec<u8> =
        findings.iter().filter(|finding| finding.mark == Mark::Error).map(|f| f.exit).collect();
    if !ctl.json {
        for line in &fixed {
            ctl.say(&format!("mended: {line}"));
        }
        ctl.out.data(&table(&findings, ctl.out.spelling()))?;
    }
    let mut projects = Vec::new();
    if let Some((config, names)) = meant(ctl, &selection, args.live || args.isolation)? {
        for name in &names {
            let project = peers_fleet::start::project(&config, name).map_err(failed)?;
            let ask = if args.live { Ask::EachPeer } else { Ask::Nobody };
            let seen = Observation::of(&project, &ctl.env);
            let looked = examined(ctl, (&project, &seen), ask, args.isolation);
            match looked {
                Ok(report) => {
                    codes.extend(Some(report.exit_code()).filter(|code| *code != exit::OK));
                    if ctl.json {
                        projects.push(json!({"name": name, "report": checkup::as_json(&report)}));
                    } else {
                        let text = checkup::text(&report);
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
            .map(|f| json!({"about": f.about, "level": f.mark.word(), "message": f.message, "fix": f.fix.as_ref().map(|fix| ctl.out.spelling().tell(fix))}))
            .collect();
        ctl.document("doctor", &json!({"host": rows, "fixed": fixed, "projects": projects}), &[])?;
    }
    Ok(ExitCode::from(codes.first().copied().unwrap_or(exit::OK)))
}

/// What a look at one project finds.
fn examined(
    ctl: &Ctl,
    (project, seen): (&Project, &Observation),
    ask: Ask,
    isolation: bool,
) -> Result<Report, CommandError> {
    crate::adrift::refuse(project, seen)?;
    let place = peers_fleet::start::located(project, &ctl.env).map_err(failed)?;
    let mut report = doctor::examine(&place, &ctl.env, ask)?;
    if isolation {
        let loaded = peers_run::boot::load(&mut place.open_view_disk()?)?;
        report.checks.extend(peers_acts::isolation::examine(&place, &ctl.env, &loaded)?);
    }
    Ok(checkup::spelt(told(report, project), &crate::board::spelling(ctl, project)))
}

/// The same of this machine and of these projects, as lines.
pub(crate) fn page(ctl: &Ctl, all: &[&Seen]) -> Page {
    let mut page = Page::default();
    let (findings, _) = host(ctl.config_dir.as_deref(), &ctl.env, false);
    page.tell(Tone::Strong, "this machine");
    let mut rows = Vec::new();
    for Finding { about, mark, message, fix, exit: _ } in &findings {
        let tone = match mark {
            Mark::Error => Tone::Bad,
            Mark::Warning => Tone::Care,
            Mark::Ok => Tone::Good,
        };
        let cell = |text: &str| Cell::new(Tone::Plain, text);
        rows.push(vec![Cell::new(tone, mark.word()), cell(about), cell(message)]);
        let fix = fix.as_ref().map(|fix| format!("-> {}", ctl.out.spelling().tell(fix)));
        rows.extend(fix.map(|fix| vec![cell(""), cell(""), Cell::whole(Tone::Strong, fix)]));
    }
    page.table(1, rows);
    for one in all {
        page.heading(one.project.name.as_str());
        match examined(ctl, (&one.project, &one.seen), Ask::Nobody, false) {
            Err(error) => page.tell(Tone::Bad, ctl.about(&one.project, error).summary()),
            Ok(report) => page.append(checkup::page(&report)),
        }
    }
    page
}

/// What was found, with what the registry knows where the run lock could not be read.
fn told(mut report: Report, project: &Project) -> Report {
    let alive = project.runtime.as_ref().filter(|runtime| runtime.is_alive()).and_then(|runtime| runtime.pid);
    let (Some(pid), Some(check)) = (alive, report.checks.iter_mut().find(|check| check.is_unseen_lock()))
    else {
        return report;
    };
    check.message = format!("{}; process {pid}, which was started for it, is alive", check.message);
    report
}

/// The projects that are meant. Where nothing is said and none goes without saying, there is still the machine to
/// look at.
fn meant(
    ctl: &Ctl,
    selection: &Selection,
    live: bool,
) -> Result<Option<(ConfigDir, Vec<ProjectName>)>, CommandError> {
    if !selection.is_empty() || live {
        let config = ctl.config()?;
        let names = ctl.names(&config, selection)?;
        return Ok(Some((config, names)));
    }
    // To look must not make a directory; what is wrong with this one is among the findings.
    let Ok(Some(config)) = ConfigDir::look(ctl.config_dir.as_deref(), &ctl.env) else { return Ok(None) };
    ctl.bring_up(&config, selection)?;
    let Ok(loaded) = peers_fleet::registry::load(&config) else { return Ok(None) };
    let Ok(names) = selection.of(&loaded.registry, crate::ctl::here().as_deref()) else {
        if loaded.registry.projects().next().is_some() {
            ctl.say("hint: `peers-ctl doctor --all` looks at every project too");
        }
        return Ok(None);
    };
    Ok(Some((config, names)))
}

fn table(findings: &[Finding], spelling: &Spelling) -> String {
    let mut rows = Vec::new();
    for Finding { about, mark, message, fix, exit: _ } in findings {
        rows.push(vec![mark.word().to_owned(), (*about).to_owned(), message.clone()]);
        rows.extend(
            fix.as_ref().map(|fix| vec![String::new(), String::new(), format!("-> {}", spelling.tell(fix))]),
        );
    }
    peers_console::output::table(&rows)
}
