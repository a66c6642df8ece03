//! What a message changes. Nothing here waits for anything.

mod acts;
mod dialogs;
mod mouse;

use std::collections::BTreeSet;
use std::sync::Arc;

use peers_view::LoopRow;
use ratatui::crossterm::event::{KeyEvent, KeyEventKind};

use crate::dialog::{Dialog, Output};
use crate::filter::{Filter, Shown};
use crate::host::Snapshot;
use crate::keys::{self, Action};
use crate::loops::{OneLoop, Source};
use crate::message::{Ask, Cmd, Msg};
use crate::model::{EVENTS, Model, Screen, Tab};

impl Model {
    /// Takes one message, and says what has to be done for it.
    pub(crate) fn update(&mut self, msg: Msg) -> Vec<Cmd> {
        let mut cmds = match msg {
            Msg::Key(key) if key.kind != KeyEventKind::Release => self.key(key),
            // Whoever runs this leaves when a thread is gone.
            Msg::Key(_) | Msg::Resize | Msg::Gone(_) => Vec::new(),
            Msg::Mouse(event) => self.mouse(event),
            Msg::Paste(text) => self.paste(&text),
            Msg::Clock(now) => {
                self.now = now;
                Vec::new()
            }
            Msg::Rows(rows) => self.take_rows(rows),
            Msg::Part { name, part, content } => {
                let of_tick = match &self.dialog {
                    Some(Dialog::Tick { tick, what, .. }) => Some((*tick, *what)),
                    _ => None,
                };
                if name == self.one.name {
                    self.one.take(&part, content, of_tick);
                }
                Vec::new()
            }
            Msg::Events(events) => {
                self.take_events(events);
                Vec::new()
            }
            Msg::Answer(Ask::Doctor(_), page) => {
                self.doctor = page.map_or_else(Source::Unreadable, Source::Here);
                Vec::new()
            }
            Msg::Answer(Ask::Compare(_), page) => {
                self.compare = page.map_or_else(Source::Unreadable, Source::Here);
                Vec::new()
            }
            Msg::Done(argv, done) => {
                self.dialog = Some(Dialog::Output(Output::of(
                    &argv,
                    &done,
                    usize::from(self.hits.width.saturating_sub(6)),
                )));
                vec![Cmd::Refresh]
            }
            Msg::Back(why) => {
                self.note = why;
                vec![Cmd::Refresh]
            }
            Msg::Signal(signal) => vec![Cmd::Quit(Some(signal))],
        };
        let want = self.want();
        if want != self.wanted {
            self.wanted = want.clone();
            cmds.push(Cmd::Want(want));
        }
        cmds
    }

    fn take_rows(&mut self, rows: Result<Snapshot, String>) -> Vec<Cmd> {
        let snapshot = match rows {
            Ok(snapshot) => snapshot,
            Err(why) => {
                self.unread = Some(why);
                return Vec::new();
            }
        };
        self.unread = None;
        self.now = self.now.max(snapshot.at);
        let needy: BTreeSet<String> =
            snapshot.rows.iter().filter(|row| Self::is_needy(row)).map(|row| row.name.clone()).collect();
        // What needed somebody when this began is no news.
        let news = self.needy.as_ref().is_some_and(|known| needy.iter().any(|name| !known.contains(name)));
        self.needy = Some(needy);
        self.snapshot = Some(Arc::new(snapshot));
        let names: BTreeSet<&str> =
            self.snapshot.iter().flat_map(|snapshot| &snapshot.rows).map(|row| row.name.as_str()).collect();
        self.marked.retain(|name| names.contains(name.as_str()));
        self.choose_one();
        if news && !self.prefs.bell_off { vec![Cmd::Bell] } else { Vec::new() }
    }

    /// Newest last, bounded.
    fn take_events(&mut self, events: Vec<crate::host::Event>) {
        if self.screen == Screen::Events && self.scroll > 0 {
            // Who looks at older ones goes on looking at them.
            self.scroll = self.scroll.saturating_add(events.len());
        }
        self.events.extend(events);
        let excess = self.events.len().saturating_sub(EVENTS);
        self.events.drain(..excess);
        if self.screen == Screen::Events {
            self.scroll = self.scroll.min(self.events.len());
        }
    }

    /// The chosen loop is one that is shown, as long as any is.
    pub(super) fn choose_one(&mut self) {
        let rows = self.rows();
        if rows.iter().any(|row| Some(&row.name) == self.chosen.as_ref()) {
            return;
        }
        // One that another screen is about stays chosen.
        if self.screen == Screen::Loop {
            return;
        }
        self.chosen = rows.first().map(|row| row.name.clone());
    }

    fn key(&mut self, key: KeyEvent) -> Vec<Cmd> {
        self.note = None;
        if self.dialog.is_some() {
            return self.dialog_key(key);
        }
        match keys::action(key, self.spot()) {
            Some(action) => self.act(action),
            None => Vec::new(),
        }
    }

    /// Does what a key, a click or the palette asks for.
    pub(super) fn act(&mut self, action: Action) -> Vec<Cmd> {
        match action {
            Action::Up => self.go(-1),
            Action::Down => self.go(1),
            Action::PageUp => self.go(-self.height()),
            Action::PageDown => self.go(self.height()),
            Action::First => self.go(i64::MIN),
            Action::Last => self.go(i64::MAX),
            Action::Open => return self.open(),
            Action::Back => return self.back(),
            Action::NextTab => self.go_to_tab(self.one.tab.beside(1)),
            Action::PrevTab => self.go_to_tab(self.one.tab.beside(Tab::ALL.len() - 1)),
            Action::Tab(tab) => self.open_tab(tab),
            Action::Logs => self.open_tab(Tab::Logs),
            Action::Filter => {
                let input = Self::line(&self.prefs.filter);
                self.dialog = Some(Dialog::Line { search: false, input });
            }
            Action::Search => {
                let input = Self::line(&self.search);
                self.dialog = Some(Dialog::Line { search: true, input });
            }
            Action::SearchNext => self.search_on(true),
            Action::SearchBack => self.search_on(false),
            Action::Sort => {
                self.prefs.sort = self.prefs.sort.next();
                return self.keep();
            }
            Action::Reverse => {
                self.prefs.reversed ^= true;
                return self.keep();
            }
            Action::Shown => {
                self.shown = self.shown.next();
                self.choose_one();
            }
            Action::Mark => self.mark(),
            Action::MarkAll => {
                let names: Vec<String> = self.rows().iter().map(|row| row.name.clone()).collect();
                self.marked.extend(names);
            }
            Action::Unmark => self.marked.clear(),
            Action::NextAct => self.next_needy(),
            Action::Earlier => self.one.step(-1),
            Action::Later => self.one.step(1),
            Action::Newest => self.one.go_to_now(),
            Action::Follow => self.one.paused ^= true,
            Action::Kinds => (self.one.kinds, self.one.scroll) = (self.one.kinds.next(), 0),
            Action::NextLog => self.next_log(),
            Action::DiffOf => self.of_tick(Tab::Diff),
            Action::LiveOf => self.of_tick(Tab::Live),
            Action::Mouse => {
                self.prefs.mouse_off ^= true;
                let mut cmds = vec![Cmd::Mouse(!self.prefs.mouse_off)];
                cmds.extend(self.keep());
                return cmds;
            }
            Action::Bell => {
                self.prefs.bell_off ^= true;
                self.note = Some(format!("the bell is {}", if self.prefs.bell_off { "off" } else { "on" }));
                return self.keep();
            }
            Action::Zoom => self.no_preview ^= true,
            Action::Refresh => return vec![Cmd::Refresh],
            Action::Events => self.go_to(Screen::Events),
            Action::Doctor => return self.doctor(),
            Action::Compare => return self.compare(),
            Action::Help => self.dialog = Some(Dialog::Help { scroll: 0 }),
            Action::Palette => self.dialog = Some(Dialog::Palette(crate::palette::Palette::default())),
            Action::Suspend => return vec![Cmd::Suspend],
            Action::Quit => return vec![Cmd::Quit(None)],
            Action::Fix
            | Action::Start
            | Action::Stop
            | Action::Resume
            | Action::AckBlock
            | Action::Amend
            | Action::Trust
            | Action::Extend
            | Action::New
            | Action::Remove
            | Action::Shell
            | Action::Yank => return self.operate(action),
        }
        Vec::new()
    }

    fn keep(&self) -> Vec<Cmd> {
        vec![Cmd::Keep(self.prefs.clone())]
    }

    /// Lines that a page of the keys is long.
    fn height(&self) -> i64 {
        i64::from(self.hits.body.max(2)) - 1
    }

    /// Moves the chosen row, or the text.
    pub(super) fn go(&mut self, by: i64) {
        match self.screen {
            Screen::Fleet => {
                let rows = self.rows();
                let at =
                    rows.iter().position(|row| Some(&row.name) == self.chosen.as_ref()).unwrap_or_default();
                let then = moved(at, by, rows.len().saturating_sub(1));
                self.chosen = rows.get(then).map(|row| row.name.clone());
            }
            Screen::Loop => match self.one.rows() {
                Some(rows) if !(self.one.tab == Tab::Diff && by.unsigned_abs() > 1) => {
                    self.one.at = moved(self.one.at, by, rows.saturating_sub(1));
                }
                _ => {
                    let live = self.one.tab == Tab::Live;
                    // A stream is counted from its newest line.
                    let by = if live { by.saturating_neg() } else { by };
                    self.one.scroll = moved(self.one.scroll, by, self.hits.most);
                }
            },
            Screen::Events => {
                self.scroll = moved(self.scroll, by.saturating_neg(), self.hits.most);
            }
            Screen::Doctor | Screen::Compare => {
                self.scroll = moved(self.scroll, by, self.hits.most);
            }
        }
    }

    fn go_to(&mut self, screen: Screen) {
        if self.screen != screen {
            self.behind.push(self.screen);
            self.screen = screen;
        }
        self.scroll = 0;
    }

    /// Opens what is chosen.
    pub(super) fn open(&mut self) -> Vec<Cmd> {
        match (self.screen, self.one.tab) {
            (Screen::Fleet, _) => self.open_tab(Tab::Overview),
            (Screen::Loop, Tab::Ticks | Tab::Gates) => {
                if let Some(tick) = self.one.tick() {
                    self.one.tick_text = Source::Coming;
                    self.dialog = Some(Dialog::Tick { tick, what: crate::host::TickText::Record, scroll: 0 });
                }
            }
            (Screen::Loop, Tab::Diff) => {
                let file = self.one.diff.value().and_then(|diff| diff.files.get(self.one.at));
                let file = file.map(|file| file.path.clone());
                // The same again shows all of them.
                self.one.diff_file = if self.one.diff_file == file { None } else { file };
                self.one.scroll = 0;
            }
            (Screen::Loop, Tab::Overview) => self.go_to_tab(Tab::Gates),
            _ => {}
        }
        Vec::new()
    }

    /// Goes back; on the first screen there is nothing behind.
    fn back(&mut self) -> Vec<Cmd> {
        if self.screen == Screen::Loop && self.one.diff_file.take().is_some() {
            self.one.scroll = 0;
            return Vec::new();
        }
        if self.screen == Screen::Fleet && (!self.prefs.filter.is_empty() || self.shown != Shown::All) {
            self.set_filter("");
            self.shown = Shown::All;
            return self.keep();
        }
        if let Some(screen) = self.behind.pop() {
            self.screen = screen;
            self.scroll = 0;
            self.choose_one();
        }
        Vec::new()
    }

    pub(super) fn set_filter(&mut self, text: &str) {
        text.clone_into(&mut self.prefs.filter);
        self.filter = Filter::read(text);
        self.choose_one();
    }

    pub(super) fn go_to_tab(&mut self, tab: Tab) {
        if self.one.tab != tab {
            (self.one.at, self.one.scroll) = (0, 0);
        }
        self.one.tab = tab;
    }

    /// Shows this tab of the loop that is meant.
    fn open_tab(&mut self, tab: Tab) {
        let Some(name) = self.meant().map(|row| row.name.clone()) else {
            if self.screen == Screen::Loop {
                self.go_to_tab(tab);
            }
            return;
        };
        if self.one.name != name {
            self.one = OneLoop::of(&name);
        }
        self.chosen = Some(name);
        self.go_to(Screen::Loop);
        self.go_to_tab(tab);
    }

    fn mark(&mut self) {
        let Some(name) = self.chosen.clone() else { return };
        if !self.marked.remove(&name) {
            self.marked.insert(name);
        }
        self.go(1);
    }

    /// The next loop that needs somebody, from the one that is meant on.
    fn next_needy(&mut self) {
        let rows = self.rows();
        let meant = self.meant().map(|row| row.name.clone());
        let at = rows.iter().position(|row| Some(&row.name) == meant.as_ref()).unwrap_or_default();
        let (before, from) = rows.split_at(at.min(rows.len()));
        let found =
            from.iter().skip(1).chain(before).find(|row| Self::is_needy(row)).map(|row| row.name.clone());
        let Some(found) = found else {
            self.note = Some("no other loop needs you".to_owned());
            return;
        };
        if self.screen == Screen::Loop && self.one.name != found {
            let tab = self.one.tab;
            self.one = OneLoop { tab, ..OneLoop::of(&found) };
        }
        self.chosen = Some(found);
    }

    fn next_log(&mut self) {
        let all = crate::host::LogKind::ALL;
        let at = all.iter().position(|kind| *kind == self.one.log_kind).unwrap_or_default();
        self.one.log_kind = all.get((at + 1) % all.len()).copied().unwrap_or_default();
        (self.one.log, self.one.scroll) = (Source::Coming, 0);
    }

    /// Shows another tab about the tick that is meant.
    fn of_tick(&mut self, tab: Tab) {
        let tick = self.one.tick();
        self.go_to_tab(tab);
        if tab == Tab::Diff {
            (self.one.diff_of, self.one.diff_file, self.one.diff) = (tick, None, Source::Coming);
        } else {
            (self.one.live_of, self.one.live) = (tick, Source::Coming);
        }
    }

    fn doctor(&mut self) -> Vec<Cmd> {
        let names: Vec<String> = self.subjects().iter().map(|row| row.name.clone()).collect();
        self.doctor = Source::Coming;
        self.go_to(Screen::Doctor);
        vec![Cmd::Ask(Ask::Doctor(names))]
    }

    fn compare(&mut self) -> Vec<Cmd> {
        let names: Vec<String> = self.marked.iter().cloned().collect();
        if names.len() < 2 {
            self.note = Some("mark two loops or more with Space, then compare them".to_owned());
            return Vec::new();
        }
        self.compare = Source::Coming;
        self.go_to(Screen::Compare);
        vec![Cmd::Ask(Ask::Compare(names))]
    }

    /// Goes to the next line that has what is searched for, or to the one before.
    pub(super) fn search_on(&mut self, on: bool) {
        let wanted = self.search.to_lowercase();
        if wanted.is_empty() {
            return;
        }
        let texts: Vec<String> = match (self.screen, self.one.tab) {
            // Streams are counted from their newest line.
            (Screen::Events, _) => self.events.iter().rev().map(|event| text_of(&event.cells)).collect(),
            (Screen::Loop, Tab::Live) => {
                self.one.said().iter().rev().map(|line| line.cell.text().to_owned()).collect()
            }
            (Screen::Loop, Tab::Diff) => self
                .one
                .diff
                .value()
                .map(|diff| diff.patch.lines().map(text_of).collect())
                .unwrap_or_default(),
            _ => self.page().map(|page| page.lines().map(text_of).collect()).unwrap_or_default(),
        };
        let from = if self.screen == Screen::Loop { self.one.scroll } else { self.scroll };
        let fits = |at: &usize| texts.get(*at).is_some_and(|text| text.to_lowercase().contains(&wanted));
        let found = if on {
            (from + 1..texts.len()).chain(0..=from.min(texts.len())).find(fits)
        } else {
            (0..from).rev().chain((from..texts.len()).rev()).find(fits)
        };
        let Some(found) = found else {
            self.note = Some(format!("nothing here has `{}`", self.search));
            return;
        };
        if self.screen == Screen::Loop {
            self.one.scroll = found;
            self.one.paused |= self.one.tab == Tab::Live;
        } else {
            self.scroll = found;
        }
    }

    /// The loops that an act is about, by name.
    pub(super) fn names(rows: &[&LoopRow]) -> Vec<String> {
        rows.iter().map(|row| row.name.clone()).collect()
    }
}

fn text_of(cells: &[peers_view::Cell]) -> String {
    cells.iter().map(peers_view::Cell::text).collect()
}

/// A place that moved, within what there is.
pub(super) fn moved(at: usize, by: i64, most: usize) -> usize {
    let step = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX);
    let then = if by < 0 { at.saturating_sub(step) } else { at.saturating_add(step) };
    then.min(most)
}
