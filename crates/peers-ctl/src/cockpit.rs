//! The cockpit over all projects of the registry: what it reads, by the board that every list reads by.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_console::parts::{Parts, broken, event};
use peers_console::typist::Typist;
use peers_fleet::refresh::Seen;
use peers_fleet::select::Selection;
use peers_fleet::{ConfigDir, Project, ProjectName};
use peers_model::{Mono, exit};
use peers_sys::clock;
use peers_sys::interrupts::{Interrupts, SUSPEND};
use peers_tui::{Content, Event, Host, Left, LogKind, Options, Pace, Part, Prefs, Signals, Snapshot};
use peers_view::{Cell, CompareInput, Listed, LoopRow, Page, Tone, compare, compare_page};

use crate::board::{self, Board, Looked};
use crate::cli::{doctor_page, measured};
use crate::ctl::{Ctl, failed};
use crate::journals::Journals;

/// Where it is kept how the operator arranged the screen.
const PREFS: &str = "cockpit.json";
/// Most of it, bytes.
const PREFS_MOST: u64 = 16 * 1024;
/// Records of each journal that are shown at first.
const EVENTS: usize = 20;
/// Rows are read again after this although nothing has begun, for the times in them.
const AGAIN: Duration = Duration::from_secs(10);
/// Most of the log of a loop that is shown, bytes.
const TAIL: u64 = 256 * 1024;

/// Opens it, and stays until the operator leaves.
///
/// # Errors
/// The registry cannot be read, or the terminal cannot be used.
pub(crate) fn open(ctl: &Ctl, options: Options, only: Selection, pace: Pace) -> Result<Left, CommandError> {
    let config = ctl.config_made()?;
    let prefs = config.dir().read(PREFS, PREFS_MOST).ok();
    let prefs: Prefs = prefs.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    let mut controller = vec!["peers-ctl".to_owned()];
    if let Some(dir) = board::named(ctl.config_dir.as_deref()) {
        controller.extend(["--config-dir".to_owned(), dir]);
    }
    let interrupts = Interrupts::take_with_suspend()?;
    let mut ours = vec![("peers-ctl", peers_sys::env::current_exe()?)];
    ours.extend(peers_fleet::config::peers_bin(&ctl.env).ok().map(|path| ("peers", path)));
    let acts = Arc::new(Typist::new(&ctl.env, ours));
    let host = Cockpit {
        ctl: ctl.clone(),
        config,
        only,
        board: Board::lasting(),
        shown: None,
        seen: BTreeMap::new(),
        rows: BTreeMap::new(),
        parts: (String::new(), Parts::default()),
        journals: Journals::new(EVENTS),
    };
    let signals =
        Signals { wait: Box::new(move |most| interrupts.wait(most)), now: clock::now, suspends: SUSPEND };
    peers_console::screen::screen().hold(true);
    let left = peers_tui::run(Options { prefs, controller, ..options }, pace, Box::new(host), acts, signals);
    peers_console::screen::screen().hold(false);
    left.map_err(|failure| broken(failure, "`peers-ctl dashboard` prints the same on any terminal"))
}

struct Cockpit {
    ctl: Ctl,
    config: ConfigDir,
    only: Selection,
    board: Board,
    /// When rows were given last.
    shown: Option<Mono>,
    seen: BTreeMap<String, Seen>,
    rows: BTreeMap<String, LoopRow>,
    parts: (String, Parts),
    journals: Journals,
}

impl Cockpit {
    fn look(&mut self) -> Result<Option<Snapshot>, CommandError> {
        let now = clock::mono();
        let lately = self.shown.is_some_and(|at| now.since(at) < AGAIN);
        if self.board.rests(&self.config)? && lately {
            return Ok(None);
        }
        let registry = &self.board.registry(&self.config)?.registry;
        let names: BTreeSet<ProjectName> = match self.only.of(registry, None) {
            Ok(names) => names.into_iter().collect(),
            Err(finding) if finding.exit == exit::NEGATIVE => BTreeSet::new(),
            Err(finding) => return Err(failed(finding)),
        };
        let Looked { rows, seen, warnings } =
            self.board.rows(&self.ctl, &self.config, |project: &Project| names.contains(&project.name))?;
        self.seen = seen.into_iter().map(|one| (one.project.name.to_string(), one)).collect();
        self.rows = rows.iter().map(|row| (row.name.clone(), row.clone())).collect();
        self.shown = Some(now);
        Ok(Some(Snapshot { at: clock::now(), rows, warnings: warnings.iter().map(board::warning).collect() }))
    }

    fn one(&mut self, name: &str, part: &Part) -> Result<Option<Content>, CommandError> {
        let Some(one) = self.seen.get(name) else { return Ok(None) };
        crate::adrift::refuse(&one.project, &one.seen)?;
        peers_fleet::start::located(&one.project, &self.ctl.env).map_err(failed)?;
        if *part == Part::Log(LogKind::Loop) {
            return Ok(Some(Content::Text(self.log(&one.project)?)));
        }
        let (cx, listed): (Cx, Listed) = (self.ctl.cx(&one.project), board::listed(one));
        if self.parts.0 != name {
            self.parts = (name.to_owned(), Parts::default());
        }
        let row = self.rows.get(name);
        self.parts.1.content(&cx, (row, &listed), part).map_err(|why| CommandError::new(exit::INVALID, why))
    }

    /// The log of a loop, as the controller keeps it.
    fn log(&self, project: &Project) -> Result<Page, CommandError> {
        let mut page = Page::default();
        let bytes = match self.config.logs_if_any().map_err(failed)? {
            Some(logs) => match logs.read_tail(project.log_name(), TAIL) {
                Ok(tail) => tail.bytes,
                Err(error) if error.is_not_found() => Vec::new(),
                Err(error) => return Err(failed(peers_run::boot::Finding::from(&error))),
            },
            None => Vec::new(),
        };
        let text = String::from_utf8_lossy(&bytes);
        for line in text.lines() {
            page.line(&[Cell::whole(Tone::Plain, line)]);
        }
        if page.is_empty() {
            page.tell(Tone::Faint, "it has no log yet: `peers-ctl start` begins one");
        }
        Ok(page)
    }
}

impl Host for Cockpit {
    fn rows(&mut self) -> Result<Option<Snapshot>, String> {
        self.look().map_err(|error| error.spelt(self.ctl.out.spelling()).summary())
    }

    fn part(&mut self, name: &str, part: &Part) -> Result<Option<Content>, String> {
        self.one(name, part).map_err(|error| error.spelt(self.ctl.out.spelling()).summary())
    }

    fn events(&mut self) -> Vec<Event> {
        let projects: Vec<&Project> = self.seen.values().map(|one| &one.project).collect();
        let (items, unread) = self.journals.poll(&self.ctl.env, &projects);
        let now = clock::now();
        let told = unread.into_iter().map(|(name, why)| Event {
            name,
            ts: now,
            cells: vec![Cell::new(Tone::Bad, format!("its journal cannot be read: {why}"))],
        });
        let shown = items.iter().map(|(ts, name, item)| event(name, (*ts, item)));
        shown.chain(told).collect()
    }

    fn doctor(&mut self, names: &[String]) -> Page {
        let seen: Vec<&Seen> = names.iter().filter_map(|name| self.seen.get(name)).collect();
        doctor_page(&self.ctl, &seen)
    }

    fn compare(&mut self, names: &[String]) -> Result<Page, String> {
        let (mut inputs, mut page) = (Vec::new(), Page::default());
        for one in names.iter().filter_map(|name| self.seen.get(name)) {
            match measured(&self.ctl, &one.project, None) {
                Ok(Some((name, measured))) => inputs.push(CompareInput { name, group: None, measured }),
                Ok(None) => page.tell(Tone::Care, format!("{} has no run yet", one.project.name)),
                Err(error) => page.tell(Tone::Bad, format!("{}: {}", one.project.name, error.summary())),
            }
        }
        if inputs.len() < 2 {
            return Err("fewer than two of them can be read".to_owned());
        }
        page.append(compare_page(&compare(&inputs)));
        Ok(page)
    }

    fn keep(&mut self, prefs: &Prefs) {
        let bytes = serde_json::to_vec(prefs).unwrap_or_default();
        // How a screen was arranged is no loss.
        let _kept = self.config.dir().publish(PREFS, &bytes);
    }
}
