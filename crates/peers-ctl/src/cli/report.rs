//! `peers-ctl report`.

use std::process::ExitCode;

use peers_console::error::CommandError;
use peers_fleet::refresh::Seen;
use peers_model::exit;
use peers_sys::term;
use peers_view::{Report, report_json, report_markdown};
use serde_json::{Value, json};

use super::list::row;
use crate::ctl::{Ctl, failed};
use crate::many::Which;

/// Tell what loops did, as Markdown that can be passed on
///
/// How it ended first, then what happened when, gates, bugs and their fixes, reviews, cost by peer and by gate,
/// what was wasted or undone, and what it takes to do it again. It is written into the config directory, as
/// REPORT-NAME.md or REPORT.md, and the path is printed.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Write it there instead; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<std::path::PathBuf>,
    /// `json` is another way to say --json
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let config = ctl.config()?;
    let asked = args.which.selection();
    let loaded = ctl.registry(&config)?;
    let names = if asked.is_empty() && loaded.registry.projects().count() != 1 {
        args.which.or_all().of(&loaded.registry, None).map_err(failed)?
    } else {
        ctl.names(&config, &asked)?
    };
    let (all, warnings) = ctl.seen_of(&config, &names)?;
    let as_json = ctl.json || args.format == Format::Json;
    let (mut rows, mut texts, mut codes) = (Vec::new(), Vec::new(), Vec::new());
    for one in &all {
        match read(ctl, one) {
            Ok(report) => {
                codes.push(exit::OK);
                if as_json {
                    let told: Value = serde_json::from_str(&report_json(&report)).unwrap_or_default();
                    rows.push(json!({"project": row(one), "report": told}));
                } else {
                    let text = ctl.cx(&one.project).out.pasteable(&report_markdown(&report));
                    texts.push(headed(one, &text));
                }
            }
            Err(error) if all.len() == 1 => return Err(error),
            Err(error) => {
                codes.push(error.exit_code());
                rows.push(json!({"project": row(one), "report": null, "error": error.summary()}));
                texts.push(format!(
                    "# {}\n\nIt cannot be read: {}\n",
                    one.project.name,
                    error.render().trim_end()
                ));
            }
        }
    }
    let text = if as_json {
        let warnings: Vec<_> = warnings
            .iter()
            .map(|w| json!({"code": w.code, "message": w.message, "project": w.project}))
            .collect();
        let body = json!({"schema": "peers-ctl.report/1", "generated_at": peers_sys::clock::now(), "data": rows, "warnings": warnings});
        peers_view::terminal_safe(&format!("{body:#}\n"))
    } else {
        texts.join("\n---\n\n")
    };
    write(args, ctl, &config, &all, (&text, as_json))?;
    Ok(ExitCode::from(crate::many::together(&codes)))
}

fn read(ctl: &Ctl, one: &Seen) -> Result<Report, CommandError> {
    peers_fleet::start::located(&one.project, &ctl.env).map_err(failed)?;
    let cx = ctl.cx(&one.project);
    let (place, mut disk) = cx.view()?;
    let mut asked = cx.asked(&place, &mut disk);
    asked.refusals = cx.refusals(&place, &asked.lock);
    Ok(Report::read(&mut disk, &asked))
}

/// The report with the project's name, and what its operator noted, on top.
fn headed(one: &Seen, text: &str) -> String {
    let project = &one.project;
    let mut head = format!("<!-- {} {} -->\n", project.name, project.state.word());
    if !project.notes.is_empty() {
        head.push_str("> ");
        head.push_str(&term::line(&project.notes, 400));
        head.push_str("\n\n");
    }
    head + text
}

fn write(
    args: &Args,
    ctl: &Ctl,
    config: &peers_fleet::ConfigDir,
    all: &[Seen],
    (text, as_json): (&str, bool),
) -> Result<(), CommandError> {
    let to_stdout = args.output.as_deref() == Some(std::path::Path::new("-"));
    if to_stdout || (as_json && args.output.is_none()) {
        return ctl.out.data(text);
    }
    if let Some(file) = &args.output {
        let path = std::path::absolute(peers_sys::env::expand_home(file, &ctl.env))?;
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(CommandError::usage("--output names a file, or `-`"));
        };
        peers_sys::SafeDir::open_shared(dir)?.publish_mode(
            name,
            text.as_bytes(),
            peers_sys::dir::FileMode::Plain,
        )?;
        return ctl.out.line(&term::inline(&path.to_string_lossy()));
    }
    let name = match all {
        [one] => format!("REPORT-{}.md", one.project.name),
        _ => "REPORT.md".to_owned(),
    };
    config.dir().publish(&name, text.as_bytes())?;
    ctl.out.line(&term::inline(&config.dir().path().join(&name).to_string_lossy()))
}
