//! What is on the screen, as values.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use peers_model::Timestamp;
use peers_view::{Level, LoopRow, Page};
use tui_input::Input;

use crate::dialog::Dialog;
use crate::filter::{Filter, Shown, Sort};
use crate::host::{Event, Part, Snapshot};
use crate::keys::Spot;
use crate::loops::{OneLoop, Source};
use crate::message::Want;
use crate::prefs::Prefs;
use crate::theme::Theme;
use crate::view::Hits;

/// Events that are kept.
pub(crate) const EVENTS: usize = 5_000;

/// How the cockpit is opened.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// How things look.
    pub theme: Theme,
    /// Nothing can be changed from it.
    pub read_only: bool,
    /// The loop that is shown at first.
    pub open: Option<String>,
    /// It is about one loop alone, which lies here and has no name that commands take.
    pub only: Option<String>,
    /// The beginning of each command of the controller: `peers-ctl`, and where its files are if that is not usual.
    pub controller: Vec<String>,
    /// How it was left last time.
    pub prefs: Prefs,
}

/// A screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Screen {
    #[default]
    Fleet,
    Loop,
    Events,
    Doctor,
    Compare,
}

/// A tab of the screen of one loop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tab {
    #[default]
    Overview,
    Live,
    Gates,
    Ticks,
    Diff,
    Bugs,
    Reviews,
    Plan,
    Logs,
    Config,
}

impl Tab {
    pub(crate) const ALL: [Self; 10] = [
        Self::Overview,
        Self::Live,
        Self::Gates,
        Self::Ticks,
        Self::Diff,
        Self::Bugs,
        Self::Reviews,
        Self::Plan,
        Self::Logs,
        Self::Config,
    ];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Overview => "1 Overview",
            Self::Live => "2 Live",
            Self::Gates => "3 Gates",
            Self::Ticks => "4 Ticks",
            Self::Diff => "5 Diff",
            Self::Bugs => "6 Bugs",
            Self::Reviews => "7 Reviews",
            Self::Plan => "8 Plan",
            Self::Logs => "9 Logs",
            Self::Config => "0 Config",
        }
    }

    pub(crate) fn beside(self, by: usize) -> Self {
        let at = Self::ALL.iter().position(|tab| *tab == self).unwrap_or_default();
        Self::ALL.get((at + by) % Self::ALL.len()).copied().unwrap_or_default()
    }
}

/// What is on the screen.
#[derive(Debug)]
pub struct Model {
    pub(crate) options: Options,
    pub(crate) prefs: Prefs,
    pub(crate) now: Timestamp,
    pub(crate) screen: Screen,
    /// The screens behind this one.
    pub(crate) behind: Vec<Screen>,
    pub(crate) snapshot: Option<Arc<Snapshot>>,
    /// Why the loops cannot be read, if they cannot.
    pub(crate) unread: Option<String>,
    pub(crate) filter: Filter,
    pub(crate) shown: Shown,
    /// The loop that is chosen.
    pub(crate) chosen: Option<String>,
    pub(crate) marked: BTreeSet<String>,
    pub(crate) no_preview: bool,
    pub(crate) one: OneLoop,
    pub(crate) events: VecDeque<Event>,
    /// The first line of text that is shown on Events, Doctor and Compare; of Events counted from the newest.
    pub(crate) scroll: usize,
    pub(crate) doctor: Source<Page>,
    pub(crate) compare: Source<Page>,
    pub(crate) dialog: Option<Dialog>,
    /// What is searched for.
    pub(crate) search: String,
    /// One line that goes away with the next key.
    pub(crate) note: Option<String>,
    /// Loops that needed somebody when they were last seen.
    pub(crate) needy: Option<BTreeSet<String>>,
    /// What was drawn, and where.
    pub(crate) hits: Hits,
    pub(crate) wanted: Want,
}

impl Model {
    /// Before anything was read.
    #[must_use]
    pub fn new(options: Options, now: Timestamp) -> Self {
        let prefs = options.prefs.clone();
        let open = options.open.clone().or_else(|| options.only.clone());
        let filter = Filter::read(&prefs.filter);
        Self {
            prefs,
            now,
            screen: if open.is_some() { Screen::Loop } else { Screen::Fleet },
            behind: if open.is_some() && options.only.is_none() { vec![Screen::Fleet] } else { Vec::new() },
            snapshot: None,
            unread: None,
            filter,
            shown: Shown::All,
            one: open.as_deref().map(OneLoop::of).unwrap_or_default(),
            chosen: open,
            marked: BTreeSet::new(),
            no_preview: false,
            events: VecDeque::new(),
            scroll: 0,
            doctor: Source::Coming,
            compare: Source::Coming,
            dialog: None,
            search: String::new(),
            note: None,
            needy: None,
            hits: Hits::default(),
            wanted: Want::default(),
            options,
        }
    }

    /// Where a key counts now.
    pub(crate) fn spot(&self) -> Spot {
        Spot {
            screen: self.screen,
            tab: self.one.tab,
            by_name: self.options.only.is_none(),
            read_only: self.options.read_only,
        }
    }

    /// The loops that are shown, in order.
    pub(crate) fn rows(&self) -> Vec<&LoopRow> {
        let all = self.snapshot.as_ref().map(|snapshot| snapshot.rows.as_slice()).unwrap_or_default();
        let mut rows: Vec<&LoopRow> =
            all.iter().filter(|row| self.shown.takes(row) && self.filter.takes(row)).collect();
        rows.sort_by(|a, b| self.sort().order(a, b));
        if self.prefs.reversed {
            rows.reverse();
        }
        rows
    }

    pub(crate) fn sort(&self) -> Sort {
        self.prefs.sort
    }

    pub(crate) fn row(&self, name: &str) -> Option<&LoopRow> {
        self.snapshot.as_ref()?.rows.iter().find(|row| row.name == name)
    }

    /// The loop that is meant: that of its screen, or the chosen one.
    pub(crate) fn meant(&self) -> Option<&LoopRow> {
        match self.screen {
            Screen::Loop => self.row(&self.one.name),
            _ => self.row(self.chosen.as_deref()?),
        }
    }

    /// The loops that an act is about: the marked ones on the Fleet screen, or else the one that is meant.
    pub(crate) fn subjects(&self) -> Vec<&LoopRow> {
        if self.screen == Screen::Fleet && !self.marked.is_empty() {
            let shown: std::collections::BTreeSet<&str> =
                self.rows().into_iter().map(|row| row.name.as_str()).collect();
            let marked = self.marked.iter().filter(|name| shown.contains(name.as_str()));
            let marked: Vec<&LoopRow> = marked.filter_map(|name| self.row(name)).collect();
            // What a filter hides is out of mind.
            if !marked.is_empty() {
                return marked;
            }
        }
        self.meant().into_iter().collect()
    }

    /// How many loops need somebody.
    pub(crate) fn is_needy(row: &LoopRow) -> bool {
        row.attention.level() == Level::Act
    }

    /// What is looked at again and again.
    pub(crate) fn want(&self) -> Want {
        let tick = match &self.dialog {
            Some(Dialog::Tick { tick, what, .. }) => Some(Part::Tick(*tick, *what)),
            _ => None,
        };
        let mut parts: Vec<Part> = [Part::Standing, self.one.part()].into_iter().chain(tick).collect();
        parts.dedup();
        Want {
            of: (self.screen == Screen::Loop).then(|| (self.one.name.clone(), parts)),
            events: self.screen == Screen::Events || (self.screen == Screen::Fleet && self.hits.events),
        }
    }

    /// The text that is scrolled, where the screen is text.
    pub(crate) fn page(&self) -> Option<&Page> {
        match self.screen {
            Screen::Doctor => self.doctor.value(),
            Screen::Compare => self.compare.value(),
            Screen::Loop => self.one.text().and_then(Source::value),
            Screen::Fleet | Screen::Events => None,
        }
    }

    /// A line to be edited that holds this.
    pub(crate) fn line(text: &str) -> Input {
        Input::new(text.to_owned())
    }
}
