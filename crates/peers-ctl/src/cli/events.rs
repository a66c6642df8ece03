//! `peers-ctl events`.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use peers_console::error::CommandError;
use peers_fleet::refresh::Seen;
use peers_fleet::select::Selection;
use peers_fleet::{ConfigDir, Project};
use peers_model::{Timestamp, exit};
use peers_place::Place;
use peers_store::{FsDisk, JournalError};
use peers_sys::clock;
use peers_sys::interrupts::Interrupts;
use peers_view::{Feed, FeedItem, watch_json, watch_line};
use serde_json::{Value, json};

use crate::board::{Board, Looked};
use crate::ctl::{Ctl, failed};
use crate::many::{OR_ALL, Which};

/// How often the journals are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// Records that are brought into order together.
const TOGETHER: usize = 10_000;

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
        lines,
        feeds: BTreeMap::new(),
        unread: BTreeMap::new(),
        board: Board::live(),
        asked: BTreeMap::new(),
    };
    loop {
        events.look()?;
        if !follow {
            return Ok(ExitCode::from(if events.unread.is_empty() { exit::OK } else { exit::PARTIAL }));
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
    /// Records before the end of each journal.
    lines: usize,
    feeds: BTreeMap<String, Followed>,
    /// Why journals cannot be read, as it was told.
    unread: BTreeMap<String, String>,
    board: Board,
    /// What each loop asked for last.
    asked: BTreeMap<String, String>,
}

/// A journal that is followed.
struct Followed {
    path: String,
    /// Where it was left; known once it could be read.
    feed: Option<Feed>,
    /// Opened anew after it could not be read.
    disk: Option<FsDisk>,
}

/// Something to tell of a project.
type Item = (Timestamp, String, FeedItem);

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
        let Self { ctl, lines, feeds, unread, .. } = self;
        let projects: BTreeMap<&str, &Project> =
            seen.iter().map(|one| (one.project.name.as_str(), &one.project)).collect();
        // What the registry has elsewhere by now is another journal.
        feeds.retain(|name, followed| {
            projects.get(name.as_str()).is_some_and(|project| followed.path == project.path)
        });
        unread.retain(|name, _| projects.contains_key(name.as_str()));
        let mut items: Vec<Item> = Vec::new();
        for (name, project) in projects {
            let followed = feeds.entry(name.to_owned()).or_insert_with(|| Followed::of(project));
            let Err(error) = followed.poll(ctl, *lines, project, &mut items) else {
                unread.remove(name);
                continue;
            };
            followed.disk = None;
            let why = CommandError::of(exit::INVALID, &error).summary();
            if unread.insert(name.to_owned(), why.clone()).is_none_or(|before| before != why) {
                tell(ctl, name, "journal-unreadable", &why, &json!({"why": why}))?;
            }
        }
        items.sort_by_key(|(at, ..)| *at);
        for (_, name, item) in &items {
            tell_item(ctl, name, item)?;
        }
        Ok(())
    }
}

impl Followed {
    fn of(project: &Project) -> Self {
        Self { path: project.path.clone(), feed: None, disk: None }
    }

    /// Brings what has come since the last look.
    fn poll(
        &mut self,
        ctl: &Ctl,
        lines: usize,
        project: &Project,
        items: &mut Vec<Item>,
    ) -> Result<(), JournalError> {
        if self.disk.is_none() {
            let opened = Place::locate(std::path::Path::new(&self.path), &ctl.env)
                .and_then(|place| place.expect(project.project_id.as_ref()))
                .and_then(|place| place.open_view_disk());
            // One that cannot be opened has no journal to be followed; its row says so.
            self.disk = opened.ok();
        }
        let Some(disk) = &mut self.disk else { return Ok(()) };
        let feed = match &mut self.feed {
            Some(feed) => feed,
            slot => slot.insert(Feed::tail(disk, lines)?),
        };
        loop {
            let polled = feed.poll(disk)?;
            items.extend(polled.items.into_iter().map(|item| {
                let at = match &item {
                    FeedItem::Line(line) => line.ts,
                    FeedItem::Unreadable { .. } | FeedItem::Replaced => clock::now(),
                };
                (at, project.name.to_string(), item)
            }));
            if !polled.more || items.len() > TOGETHER {
                return Ok(());
            }
        }
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
