//! `peers-ctl dashboard`.

use std::process::ExitCode;
use std::time::Duration;

use peers_console::error::CommandError;
use peers_console::ledger;
use peers_console::output::Out;
use peers_fleet::ProjectName;
use peers_fleet::refresh::Seen;
use peers_model::exit;
use peers_sys::clock;
use peers_sys::interrupts::Interrupts;
use peers_view::{
    Fleet, Passed, ProjectDetails, Sourced, dashboard_json, dashboard_line, dashboard_text, project_json,
    project_text, sort_by_attention,
};

use crate::board::{self, Board, Looked};
use crate::ctl::{Ctl, failed};
use crate::many::{OR_ALL, Which};

/// Show what all loops do, and which of them need you
///
/// All of them if none is named, the most urgent first, each with why and with the next command. GATES
/// counts green gates of all gates, then the same for reviews (`2/3 0/1`). With --live on a
/// terminal it is the cockpit (`peers-ctl tui`); into a pipe it is printed again and again, with --json
/// one line for each frame.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[command(mut_arg("names", |names| names.help(OR_ALL)))]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Redraw it until Ctrl-C
    #[arg(long)]
    live: bool,
    /// Poll every S seconds
    #[arg(long, value_name = "S", default_value = "2.0", value_parser = seconds, requires = "live")]
    refresh_s: Duration,
    /// Exit after N frames; an unchanged picture is redrawn only every ten seconds
    #[arg(long, value_name = "N", requires = "live", value_parser = clap::value_parser!(u64).range(1..))]
    frames: Option<u64>,
    /// Show one project in more detail
    #[arg(long, value_name = "NAME", conflicts_with_all = ["names", "all", "label", "state"])]
    project: Option<ProjectName>,
}

/// A picture in which nothing changed is drawn anew after this, for the times in it.
const REDRAW: Duration = Duration::from_secs(10);

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if time >= Duration::from_millis(100) && time <= Duration::from_hours(1) => Ok(time),
        _ => Err("must be between 0.1 and 3600".to_owned()),
    }
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let config = ctl.config()?;
    if let Some(name) = &args.project {
        let known = ctl.registry(&config)?;
        if known.registry.get(name).is_none() {
            return Err(failed(peers_fleet::start::unknown(name.as_str(), &known.registry)));
        }
    }
    let board = if args.live { Board::live() } else { Board::default() };
    let mut drawing = Drawing { args, ctl, config, board };
    if !args.live {
        let frame = drawing.frame(false)?;
        ctl.out.data(&frame)?;
        if ctl.out.page_width().is_some() && !ctl.json {
            ctl.say("hint: `peers-ctl dashboard --live` draws it anew");
        }
        return Ok(ExitCode::SUCCESS);
    }
    // On a terminal that is the cockpit; so many frames, JSON and pipes are for programs.
    if !ctl.json && args.frames.is_none() && peers_console::parts::has_terminal(&ctl.env) {
        return super::tui::live(ctl, &args.which, args.project.as_ref(), args.refresh_s);
    }
    let interrupts = Interrupts::take()?;
    let mut left = args.frames;
    let mut drawn = None;
    loop {
        let size = ctl.out.measured().page_width();
        let now = clock::mono();
        let due = drawn.is_none_or(|(at, of)| of != size || now.since(at) >= REDRAW);
        // Every line of JSON is wanted, and one project is looked at in more than its row.
        let always = ctl.json || args.project.is_some();
        if due || always || !drawing.board.rests(&drawing.config)? {
            let frame = drawing.frame(true)?;
            ctl.out.stream(frame.as_bytes())?;
            drawn = Some((now, size));
            left = left.map(|left| left.saturating_sub(1));
        }
        if left == Some(0) {
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(signal) = interrupts.wait(args.refresh_s) {
            return Ok(ExitCode::from(exit::signalled(signal)));
        }
    }
}

struct Drawing<'a> {
    args: &'a Args,
    ctl: &'a Ctl,
    config: peers_fleet::ConfigDir,
    board: Board,
}

impl Drawing<'_> {
    /// What is to be shown now.
    fn frame(&mut self, live: bool) -> Result<String, CommandError> {
        let Self { args, ctl, config, board } = self;
        // Its width may have changed since.
        let out = ctl.out.measured();
        let now = clock::now();
        if let Some(name) = &args.project {
            let Looked { rows, seen, .. } = board.rows(ctl, config, |project| project.name == *name)?;
            let (Some(row), Some(seen)) = (rows.first(), seen.first()) else { return Ok(String::new()) };
            let details = details(ctl, seen);
            if ctl.json {
                return Ok(project_json(row, &details, now));
            }
            return Ok(out.folded(&project_text(row, &details, now, out.colour())).into_owned());
        }
        let asked = args.which.or_all();
        ctl.bring_up(config, &asked)?;
        let registry = &board.registry(config)?.registry;
        let names: std::collections::BTreeSet<ProjectName> = match asked.of(registry, None) {
            Ok(names) => names.into_iter().collect(),
            // None is registered, or of those that are looked at again and again none is in that state now.
            Err(finding)
                if finding.exit == exit::NEGATIVE
                    && (live
                        || (args.which.selection().is_empty() && registry.projects().next().is_none())) =>
            {
                std::collections::BTreeSet::new()
            }
            Err(finding) => return Err(failed(finding)),
        };
        let Looked { mut rows, warnings, .. } =
            board.rows(ctl, config, |project| names.contains(&project.name))?;
        sort_by_attention(&mut rows);
        let warnings: Vec<_> = warnings.iter().map(board::warning).collect();
        let fleet = Fleet { now, rows: &rows, warnings: &warnings };
        Ok(match (ctl.json, live) {
            (true, true) => dashboard_line(&fleet),
            (true, false) => dashboard_json(&fleet),
            (false, _) => text(&out, &fleet),
        })
    }
}

fn text(out: &Out, fleet: &Fleet<'_>) -> String {
    let mut text = dashboard_text(fleet, out.page_width(), out.colour());
    if fleet.rows.is_empty() {
        text.push_str("no project fits: `peers-ctl new PATH` sets one up, `peers-ctl list` shows all\n");
    }
    text
}

/// What is shown of one project besides its row.
fn details(ctl: &Ctl, one: &Seen) -> ProjectDetails {
    let notes = one.project.notes.clone();
    let cx = ctl.cx(&one.project);
    match cx.view() {
        Ok((place, mut disk)) => {
            let passed = Passed::read(&mut disk);
            let bugs = ledger::ledger(&place, &mut disk, &cx)
                .map_or_else(Sourced::Unreadable, |ledger| Sourced::Fresh(peers_view::BugsView::of(&ledger)));
            ProjectDetails { notes, passed, bugs }
        }
        Err(error) => {
            let why = error.summary();
            ProjectDetails { notes, passed: Sourced::Unreadable(why.clone()), bugs: Sourced::Unreadable(why) }
        }
    }
}
