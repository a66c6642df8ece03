//! `peers-ctl events`.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use peers_console::error::CommandError;
use peers_fleet::refresh::Seen;
use peers_fleet::select::Selection;
use peers_fleet::{ConfigDir, Project};
use peers_model::exit;
use peers_sys::clock;
use peers_sys::interrupts::Interrupts;
use peers_view::{FeedItem, watch_json, watch_line};
use serde_json::{Value, json};

use crate::board::{Board, Looked};
use crate::ctl::{Ctl, failed};
use crate::journals::Journals;
use crate::many::{OR_ALL, Which};

/// How often the journals are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Print what happens in all loops, in one stream
///
/// Prints journal records and state changes, and, with --follow, what loops come to need. `peers-ctl list
/// --wide` shows the current state. With --json, one object per line.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[command(mut_arg("names", |names| names.help(OR_ALL)))]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Begin N records before the end of each journal
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    lines: usize,
    /// Continue until Ctrl-C
    #[arg(short, long)]
    follow: bool,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    stream(ctl, ctl.config()?, args.which.or_all(), args.lines, args.follow)
}

/// Tells what happens in these projects.
pub(crate) fn stream(
    ctl: &Ctl,
    config: ConfigDir,
    which: Selection,
    lines: usize,
    follow: bool,
) -> Result<ExitCode, CommandError> {
    let interrupts = Interrupts::take()?;
    let mut events = Events {
        ctl,
        config,
        which,
        journals: Journals::new(lines),
        board: Board::live(),
        asked: BTreeMap::new(),
    };
    loop {
        events.look()?;
        if !follow {
            return Ok(ExitCode::from(if events.journals.some_unread() { exit::PARTIAL } else { exit::OK }));
        }
        if let Some(signal) = interrupts.wait(LOOK) {
            return Ok(ExitCode::from(exit::signalled(signal)));
        }
    }
}

struct Events<'a> {
    ctl: &'a Ctl,
    config: ConfigDir,
    which: Selection,
    journals: Journals,
    board: Board,
    /// What each loop asked for last.
    asked: BTreeMap<String, String>,
}

impl Events<'_> {
    fn look(&mut self) -> Result<(), CommandError> {
        let Self { ctl, config, which, board, .. } = self;
        ctl.bring_up(config, which)?;
        let registry = peers_fleet::registry::load(config).map_err(failed)?.registry;
        let names = match which.of(&registry, crate::ctl::here().as_deref()) {
            Ok(names) => names,
            Err(finding) if finding.exit == exit::NEGATIVE => Vec::new(),
            Err(finding) => return Err(failed(finding)),
        };
        let Looked { rows, seen, .. } = board.rows(ctl, config, |project| names.contains(&project.name))?;
        self.records(&seen)?;
        let Self { ctl, asked, .. } = self;
        for change in seen.iter().filter_map(|one| one.change.as_ref()) {
            tell(
                ctl,
                change.name.as_str(),
                "state",
                &change.words(),
                &json!({"from": change.from, "to": change.to.state, "outcome": change.to.outcome}),
            )?;
        }
        for row in &rows {
            let top = &row.attention.top;
            let key = format!("{} {}", top.level.word(), top.code);
            let action = top.action.as_deref().map(|action| format!(" -> {action}")).unwrap_or_default();
            let known = asked.insert(row.name.clone(), key.clone());
            // How things stand is what `list` says: what is told here is that it changed.
            if known.is_some_and(|known| known != key) {
                tell(
                    ctl,
                    &row.name,
                    "attention",
                    &format!("{}: {}{action}", top.level.word(), top.why),
                    &serde_json::to_value(top).unwrap_or_default(),
                )?;
            }
        }
        Ok(())
    }

    /// Tells what has come in the journals, and of each that cannot be read why, once.
    fn records(&mut self, seen: &[Seen]) -> Result<(), CommandError> {
        let projects: Vec<&Project> = seen.iter().map(|one| &one.project).collect();
        let (items, unread) = self.journals.poll(&self.ctl.env, &projects);
        for (name, why) in unread {
            tell(self.ctl, &name, "journal-unreadable", &why, &json!({"why": why}))?;
        }
        for (_, name, item) in &items {
            tell_item(self.ctl, name, item)?;
        }
        Ok(())
    }
}

fn tell_item(ctl: &Ctl, name: &str, item: &FeedItem) -> Result<(), CommandError> {
    if ctl.json {
        let record: Value = serde_json::from_str(&watch_json(item)).unwrap_or_default();
        let mut map = record.as_object().cloned().unwrap_or_default();
        map.insert("schema".to_owned(), json!("peers-ctl.events/1"));
        map.insert("project".to_owned(), json!(name));
        let line = Value::Object(map).to_string() + "\n";
        return ctl.out.stream(peers_view::terminal_safe(&line).as_bytes());
    }
    let line = format!("{name}: {}", watch_line(item, ctl.out.colour()));
    ctl.out.stream(ctl.out.folded(&line).as_bytes())
}

fn tell(ctl: &Ctl, name: &str, kind: &str, text: &str, data: &Value) -> Result<(), CommandError> {
    let text = peers_sys::term::line(text, 1000);
    let line = if ctl.json {
        let line = json!({"schema": "peers-ctl.events/1", "project": name, "kind": kind, "ts": clock::now(), "text": text, "data": data});
        peers_view::terminal_safe(&format!("{line}\n"))
    } else {
        format!("{name}: {} {kind:<18} {text}\n", clock::now())
    };
    ctl.out.stream(ctl.out.folded(&line).as_bytes())
}
