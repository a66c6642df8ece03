//! `peers-ctl report`.

use std::collections::BTreeSet;
use std::process::ExitCode;

use peers_console::error::CommandError;
use peers_console::parts::patches;
use peers_fleet::refresh::Seen;
use peers_model::exit;
use peers_sys::term;
use peers_view::{
    FleetWarning, Found, Patches, Report, ReportEntry, ReportHead, reports_html, reports_json,
    reports_markdown,
};

use crate::board::{self, Board, Looked};
use crate::ctl::{Ctl, failed};
use crate::many::{OR_ALL, Which};

/// Report what loops did, as Markdown or as one page of HTML to pass on
///
/// Says how it ended, what happened when, gates, bugs and their fixes, reviews, cost by peer and by gate,
/// what was wasted or undone, and how to repeat it. Writes REPORT-NAME.md or REPORT.md into the config
/// directory and prints the path. With --html REPORT-NAME.html or REPORT.html, a page that needs nothing from
/// anywhere: gates and their timeline, reviews, budget, cost by peer, ticks, bugs, and what the newest turns
/// changed; how to repeat it is in the Markdown alone.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[command(mut_arg("names", |names| names.help(OR_ALL)))]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Write to FILE instead; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<std::path::PathBuf>,
    /// Write a page of HTML
    #[arg(long, conflicts_with_all = ["json", "format"])]
    html: bool,
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
    ctl.bring_up(&config, &asked)?;
    let loaded = ctl.registry(&config)?;
    let several = asked.is_empty() && loaded.registry.projects().count() != 1;
    let names = if several {
        args.which.or_all().of(&loaded.registry, None).map_err(failed)?
    } else {
        ctl.names(&config, &asked)?
    };
    let wanted: BTreeSet<_> = names.iter().collect();
    let Looked { rows, seen, warnings } =
        Board::default().rows(ctl, &config, |project| wanted.contains(&project.name))?;
    let mut warnings: Vec<_> = warnings.iter().map(board::warning).collect();
    let mut read_ones = Vec::new();
    let mut codes = Vec::new();
    for (mut row, one) in rows.into_iter().zip(&seen) {
        match read(ctl, one).map_err(|error| ctl.about(&one.project, error)) {
            Ok(report) => {
                codes.push(exit::OK);
                row.attention.clone_from(&report.view.attention);
                read_ones.push((row, one, report, readme(one), log(&config, one)));
            }
            Err(error) if seen.len() == 1 => return Err(error),
            Err(error) => {
                codes.push(error.exit_code());
                let message = format!("it cannot be read and is left out: {}", error.summary());
                let project = Some(one.project.name.to_string());
                warnings.push(FleetWarning { code: "unreadable".to_owned(), message, project });
            }
        }
    }
    let unsafe_log = read_ones.iter().any(|(.., log)| *log == Found::Unsafe);
    let head = ReportHead {
        generated_at: peers_sys::clock::now(),
        config_dir: config.dir().path().to_string_lossy().into_owned(),
        scope: names.iter().map(peers_fleet::ProjectName::as_str).collect::<Vec<_>>().join(", "),
        warnings,
    };
    let entries: Vec<ReportEntry<'_>> = read_ones
        .iter()
        .map(|(row, one, report, readme, log)| ReportEntry {
            row,
            report,
            notes: &one.project.notes,
            readme,
            log,
        })
        .collect();
    let as_json = ctl.json || args.format == Format::Json;
    let text = match (as_json, args.html) {
        (true, _) => reports_json(&head, &entries),
        (false, true) => {
            let mut all = Patches::new();
            for (_, one, report, ..) in &read_ones {
                let cx = ctl.cx(&one.project);
                let (Ok(place), Some(history)) = (cx.place(), report.history.value()) else { continue };
                let name = one.project.name.to_string();
                all.extend(
                    patches(&cx, &place, history)
                        .into_iter()
                        .map(|(tick, page)| ((name.clone(), tick), page)),
                );
            }
            reports_html(&head, &entries, &all)
        }
        (false, false) => reports_markdown(&head, &entries),
    };
    write(args, ctl, &config, &seen, (&text, as_json))?;
    let code = crate::many::together(&codes);
    Ok(ExitCode::from(if code == exit::OK && unsafe_log { exit::REFUSED } else { code }))
}

fn read(ctl: &Ctl, one: &Seen) -> Result<Report, CommandError> {
    let (_, mut disk, asked) = crate::board::opened(ctl, one)?;
    Ok(Report::read(&mut disk, &asked))
}

/// The README of a project; agents can write there.
fn readme(one: &Seen) -> Found {
    let path = std::path::Path::new(&one.project.path);
    let Ok(dir) = peers_sys::SafeDir::open_shared(path) else { return Found::Missing };
    found(&dir, "README.md")
}

fn log(config: &peers_fleet::ConfigDir, one: &Seen) -> Found {
    match config.logs_if_any() {
        Ok(Some(logs)) => found(&logs, &one.project.log_name()),
        Ok(None) => Found::Missing,
        Err(_) => Found::Unsafe,
    }
}

fn found(dir: &peers_sys::SafeDir, name: &str) -> Found {
    match dir.open_read(name) {
        Ok(_) => Found::Present(dir.path().join(name).to_string_lossy().into_owned()),
        Err(error) if error.is_not_found() => Found::Missing,
        Err(_) => Found::Unsafe,
    }
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
    let end = if args.html { "html" } else { "md" };
    let name = match all {
        [one] => format!("REPORT-{}.{end}", one.project.name),
        _ => format!("REPORT.{end}"),
    };
    config.dir().publish(&name, text.as_bytes())?;
    ctl.out.line(&term::inline(&config.dir().path().join(&name).to_string_lossy()))
}
