//! `peers-ctl registry`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Subcommand;
use peers_console::error::CommandError;
use peers_console::output::counted;
use peers_fleet::{ConfigDir, ProjectName, registry};
use peers_model::{Timestamp, exit};
use serde_json::json;

use crate::ctl::{Ctl, failed};

/// Most logs that are looked at.
const FILES: usize = 10_000;

/// Check the registry, or restore a copy of it
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Check the file and list its copies; exit 1 if something in it is wrong, 3 if it cannot be read
    Check,
    /// Replace the registry by a copy; the current one becomes the newest copy
    ///
    /// First prints which projects come back, which go, and how much older the copy is. Exit codes: 0, or
    /// 1 if there is no such copy or the answer is no, or 3 if the copy cannot be read, or 5 without a
    /// terminal and without --yes.
    #[command(verbatim_doc_comment)]
    Restore {
        /// Which copy; 1 is the newest [default: the newest that can be read]
        #[arg(value_name = "N", verbatim_doc_comment)]
        number: Option<usize>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

impl Args {
    /// Its name, where it changes the registry.
    pub(super) fn changes(&self) -> Option<&'static str> {
        match self.what {
            What::Check => None,
            What::Restore { .. } => Some("registry restore"),
        }
    }
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    match args.what {
        What::Check => check(ctl),
        What::Restore { number, yes } => restore(ctl, number, yes),
    }
}

fn check(ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let config = ctl.config()?;
    let copies = registry::backups(&config).map_err(failed)?;
    let read = registry::check(&config);
    let copies_json: Vec<_> = copies
        .iter()
        .map(|copy| {
            let projects = copy.read.as_ref().ok().map(|loaded| loaded.registry.projects().count());
            json!({"number": copy.number, "at": copy.at, "projects": projects})
        })
        .collect();
    let list = || -> Result<(), CommandError> {
        for copy in &copies {
            let what = match &copy.read {
                Ok(loaded) => {
                    counted(u64::try_from(loaded.registry.projects().count()).unwrap_or(u64::MAX), "project")
                }
                Err(_) => "cannot be read".to_owned(),
            };
            ctl.out.line(&format!("copy {}: {}, {what}", copy.number, copy.at))?;
        }
        Ok(())
    };
    let loaded = match read {
        Ok(loaded) => loaded,
        Err(finding) => {
            if !ctl.json {
                list()?;
            }
            return Err(failed(finding));
        }
    };
    let projects = loaded.registry.projects().count();
    if ctl.json {
        let data = json!({"projects": projects, "revision": loaded.registry.revision, "copies": copies_json});
        ctl.document("registry-check", &data, &loaded.warnings)?;
    } else {
        ctl.out.line(&format!(
            "{}, written {}",
            counted(u64::try_from(projects).unwrap_or(u64::MAX), "project"),
            counted(loaded.registry.revision, "time")
        ))?;
        for warning in &loaded.warnings {
            ctl.out.line(&format!("wrong: {}", warning.message))?;
        }
        list()?;
    }
    Ok(ExitCode::from(if loaded.warnings.is_empty() { exit::OK } else { exit::NEGATIVE }))
}

fn restore(ctl: &Ctl, number: Option<usize>, yes: bool) -> Result<ExitCode, CommandError> {
    let config = ctl.config()?;
    let copies = registry::backups(&config).map_err(failed)?;
    let chosen = copies.iter().find(|copy| match number {
        Some(number) => copy.number == number,
        None => copy.read.is_ok(),
    });
    if let Some(copy) = chosen
        && let Ok(loaded) = &copy.read
    {
        let now = registry::load(&config).map(|loaded| loaded.registry).ok();
        for project in loaded.registry.projects() {
            if now.as_ref().is_none_or(|now| now.get(&project.name).is_none()) {
                ctl.say(&format!("comes back: {}", project.name));
            }
        }
        for project in now.iter().flat_map(registry::Registry::projects) {
            if loaded.registry.get(&project.name).is_none() {
                ctl.say(&format!("goes: {}", project.name));
            }
        }
        older(ctl, &config, copy.at);
        for name in logged(&config)? {
            let known = now.as_ref().is_some_and(|now| now.get(&name).is_some());
            if !known && loaded.registry.get(&name).is_none() {
                ctl.say(&ctl.spelt(
                    "has logs, and is in no registry any more: {}; `peers-ctl add PATH --name {}` registers it",
                    &[name.as_str(), name.as_str()],
                ));
            }
        }
        if !yes {
            let answer =
                ctl.out.ask(&format!("Put copy {} of {} in its place? [y/N] ", copy.number, copy.at))?;
            match answer {
                Some(answer) if answer.trim().eq_ignore_ascii_case("y") => {}
                Some(_) => return Ok(ExitCode::from(exit::NEGATIVE)),
                None => {
                    return Err(CommandError::new(
                        exit::REFUSED,
                        "there is no terminal to ask for confirmation",
                    )
                    .hint(format!("`{} --yes` does it without being asked", command(ctl, number))));
                }
            }
        }
    }
    let of = chosen.map(|copy| copy.at);
    let done = registry::restore(&config, number).map_err(failed)?;
    if ctl.json {
        ctl.document("registry-restore", &json!({"restored": done}), &[])?;
    } else {
        let of = of.map(|at| format!(", of {at},")).unwrap_or_default();
        ctl.out.line(&format!(
            "copy {done}{of} is the registry now; the previous registry is kept as copy 1, the newest"
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Says how much older a copy is than what it takes the place of.
fn older(ctl: &Ctl, config: &ConfigDir, at: Timestamp) {
    // Without the file there is nothing that it is older than.
    let Ok(Some(stat)) = config.dir().stat("projects.json") else { return };
    let now = stat.modified();
    if now.since(at) >= Duration::from_secs(1) {
        ctl.say(&format!(
            "this copy is of {at}; what it takes the place of is of {now}, {} later",
            peers_model::time::human(Duration::from_secs(now.since(at).as_secs()))
        ));
    }
}

/// The projects that have logs.
fn logged(config: &ConfigDir) -> Result<Vec<ProjectName>, CommandError> {
    let Some(logs) = config.logs_if_any().map_err(failed)? else { return Ok(Vec::new()) };
    let listing = logs.list(FILES)?;
    let names = listing.entries.into_iter().filter_map(|entry| {
        let file = entry.name.into_string().ok()?;
        ProjectName::new(file.strip_suffix(".log")?).ok()
    });
    let mut names: Vec<ProjectName> = names.collect();
    names.sort();
    Ok(names)
}

/// This command, as it can be typed anywhere.
fn command(ctl: &Ctl, number: Option<usize>) -> String {
    let word = |dir: &PathBuf| peers_sys::term::quoted(&dir.to_string_lossy());
    let files = ctl.config_dir.as_ref().map(|dir| format!(" --config-dir {}", word(dir))).unwrap_or_default();
    let number = number.map(|number| format!(" {number}")).unwrap_or_default();
    format!("peers-ctl{files} registry restore{number}")
}
