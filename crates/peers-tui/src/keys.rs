//! What each key does, and where: the one table behind keys, footers, help and the command palette.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::model::{Screen, Tab};

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    Open,
    Back,
    NextTab,
    PrevTab,
    Tab(Tab),
    Filter,
    Search,
    SearchNext,
    SearchBack,
    Sort,
    Reverse,
    Shown,
    Mark,
    MarkAll,
    Unmark,
    NextAct,
    Fix,
    Start,
    Stop,
    Resume,
    AckBlock,
    Amend,
    Trust,
    Extend,
    New,
    Remove,
    Logs,
    Shell,
    Yank,
    Events,
    Doctor,
    Compare,
    Earlier,
    Later,
    Newest,
    Follow,
    Kinds,
    NextLog,
    DiffOf,
    LiveOf,
    Mouse,
    Bell,
    Zoom,
    Refresh,
    Palette,
    Help,
    Suspend,
    Quit,
}

/// Where a key counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spot {
    pub(crate) screen: Screen,
    pub(crate) tab: Tab,
    /// Loops have names, and can be started and stopped by them.
    pub(crate) by_name: bool,
    /// Nothing may be changed.
    pub(crate) read_only: bool,
}

/// One row of the table.
#[derive(Debug)]
pub(crate) struct Binding {
    /// Its keys, the first is the one that is shown.
    pub(crate) keys: &'static [&'static str],
    pub(crate) action: Action,
    /// For people, as short as a footer wants it.
    pub(crate) about: &'static str,
    on: On,
}

/// On which screens.
#[derive(Debug, Clone, Copy)]
enum On {
    Any,
    Fleet,
    Loop,
    /// Where there is a loop that is meant.
    OfLoop,
    /// The same, and it changes something.
    Act,
    /// The same, for loops that have names.
    ActByName,
    /// On screens of many loops.
    ByName,
    /// Within these tabs of a loop.
    Tabs(&'static [Tab]),
    /// Where there is text.
    Text,
}

const TEXTS: &[Tab] = &[Tab::Live, Tab::Diff, Tab::Reviews, Tab::Plan, Tab::Logs, Tab::Config];
const HISTORY: &[Tab] = &[Tab::Overview, Tab::Gates, Tab::Ticks];

const fn key(keys: &'static [&'static str], action: Action, about: &'static str, on: On) -> Binding {
    Binding { keys, action, about, on }
}

/// All of them. The first that fits counts.
pub(crate) const TABLE: &[Binding] = &[
    key(&["?", "F1"], Action::Help, "help", On::Any),
    key(&["Enter"], Action::Open, "open", On::Any),
    key(&["f"], Action::Fix, "do what is suggested", On::Act),
    key(&["s"], Action::Start, "start", On::ActByName),
    key(&["S"], Action::Stop, "stop", On::Act),
    key(&["r"], Action::Resume, "resume, or restart", On::ActByName),
    key(&["+"], Action::Extend, "raise the budget", On::ActByName),
    key(&["a"], Action::AckBlock, "accept a blocked step", On::ActByName),
    key(&["A"], Action::Amend, "amend the acceptance command", On::ActByName),
    key(&["t"], Action::Trust, "review changed goals", On::Act),
    key(&["/"], Action::Filter, "filter", On::Fleet),
    key(&["/"], Action::Search, "search", On::Text),
    key(&["n"], Action::SearchNext, "next match", On::Text),
    key(&["N"], Action::SearchBack, "previous match", On::Text),
    key(&["o"], Action::Sort, "sort by the next column", On::Fleet),
    key(&["O"], Action::Reverse, "reverse the order", On::Fleet),
    key(&["v"], Action::Shown, "all, need you, running", On::Fleet),
    key(&["."], Action::NextAct, "next loop that needs you", On::ByName),
    key(&["Space"], Action::Mark, "mark", On::Fleet),
    key(&["*"], Action::MarkAll, "mark all shown", On::Fleet),
    key(&["u"], Action::Unmark, "unmark all", On::Fleet),
    key(&["N"], Action::New, "set up a project", On::Fleet),
    key(&["X"], Action::Remove, "take out of the registry", On::ActByName),
    key(&["["], Action::Earlier, "a tick back", On::Tabs(HISTORY)),
    key(&["]"], Action::Later, "a tick on", On::Tabs(HISTORY)),
    key(&["\\"], Action::Newest, "back to now", On::Tabs(HISTORY)),
    key(&["["], Action::Earlier, "an earlier tick", On::Tabs(&[Tab::Live, Tab::Diff])),
    key(&["]"], Action::Later, "a later tick", On::Tabs(&[Tab::Live, Tab::Diff])),
    key(&["\\"], Action::Newest, "the newest tick", On::Tabs(&[Tab::Live, Tab::Diff])),
    key(&["p"], Action::Follow, "pause, or follow", On::Tabs(&[Tab::Live])),
    key(&["i"], Action::Kinds, "all, words, tools, errors", On::Tabs(&[Tab::Live])),
    key(&["d"], Action::DiffOf, "what it changed", On::Tabs(&[Tab::Ticks, Tab::Gates])),
    key(&["w"], Action::LiveOf, "what its agent said", On::Tabs(&[Tab::Ticks, Tab::Gates])),
    key(&["p"], Action::NextLog, "next log", On::Tabs(&[Tab::Logs])),
    key(&["z"], Action::Zoom, "hide or show the preview", On::Fleet),
    key(&["L"], Action::Logs, "logs", On::OfLoop),
    key(&["x"], Action::Shell, "a shell in its repository", On::Act),
    key(&["y"], Action::Yank, "copy the suggested command", On::OfLoop),
    key(&["e"], Action::Events, "events", On::ByName),
    key(&["D"], Action::Doctor, "doctor", On::Any),
    key(&["c"], Action::Compare, "compare the marked", On::ByName),
    key(&["j", "Down"], Action::Down, "down", On::Any),
    key(&["k", "Up"], Action::Up, "up", On::Any),
    key(&["PgDn", "C-d"], Action::PageDown, "a page down", On::Any),
    key(&["PgUp", "C-u"], Action::PageUp, "a page up", On::Any),
    key(&["g", "Home"], Action::First, "first", On::Any),
    key(&["G", "End"], Action::Last, "last", On::Any),
    key(&["l", "Tab", "Right"], Action::NextTab, "next tab", On::Loop),
    key(&["h", "S-Tab", "Left"], Action::PrevTab, "previous tab", On::Loop),
    key(&["1"], Action::Tab(Tab::Overview), "overview", On::OfLoop),
    key(&["2"], Action::Tab(Tab::Live), "live", On::OfLoop),
    key(&["3"], Action::Tab(Tab::Gates), "gates", On::OfLoop),
    key(&["4"], Action::Tab(Tab::Ticks), "ticks", On::OfLoop),
    key(&["5"], Action::Tab(Tab::Diff), "diff", On::OfLoop),
    key(&["6"], Action::Tab(Tab::Bugs), "bugs", On::OfLoop),
    key(&["7"], Action::Tab(Tab::Reviews), "reviews", On::OfLoop),
    key(&["8"], Action::Tab(Tab::Plan), "plan", On::OfLoop),
    key(&["9"], Action::Tab(Tab::Logs), "logs", On::OfLoop),
    key(&["0"], Action::Tab(Tab::Config), "config", On::OfLoop),
    key(&["m"], Action::Mouse, "mouse on or off", On::Any),
    key(&["b"], Action::Bell, "bell on or off", On::ByName),
    key(&["R"], Action::Refresh, "look again now", On::Any),
    key(&[":", "C-p"], Action::Palette, "all commands", On::Any),
    key(&["Esc", "Backspace"], Action::Back, "back", On::Any),
    key(&["C-z"], Action::Suspend, "suspend", On::Any),
    key(&["q", "C-c"], Action::Quit, "quit; loops keep running", On::Any),
];

impl Binding {
    /// Whether it counts there.
    pub(crate) fn counts(&self, spot: Spot) -> bool {
        let Spot { screen, tab, by_name, read_only } = spot;
        let of_loop = matches!(screen, Screen::Fleet | Screen::Loop);
        let fits = match self.on {
            On::Any => true,
            On::Fleet => screen == Screen::Fleet,
            On::Loop => screen == Screen::Loop,
            On::OfLoop | On::Act => of_loop,
            On::ActByName => of_loop && by_name,
            On::ByName => by_name,
            On::Tabs(tabs) => screen == Screen::Loop && tabs.contains(&tab),
            On::Text => match screen {
                Screen::Fleet => false,
                Screen::Loop => TEXTS.contains(&tab),
                Screen::Events | Screen::Doctor | Screen::Compare => true,
            },
        };
        fits && !(read_only && self.changes())
    }

    /// Whether it may change something.
    pub(crate) fn changes(&self) -> bool {
        matches!(self.on, On::Act | On::ActByName) || self.action == Action::New
    }
}

/// What a key asks for there.
pub(crate) fn action(event: KeyEvent, spot: Spot) -> Option<Action> {
    let name = name(event)?;
    let fits = |binding: &&Binding| binding.keys.contains(&name.as_str()) && binding.counts(spot);
    TABLE.iter().find(fits).map(|binding| binding.action)
}

/// `j`, `C-p`, `S-Tab`, `PgDn`.
fn name(event: KeyEvent) -> Option<String> {
    let control = event.modifiers.contains(KeyModifiers::CONTROL);
    Some(match event.code {
        KeyCode::Char(' ') => "Space".to_owned(),
        KeyCode::Char(c) if control => format!("C-{}", c.to_ascii_lowercase()),
        KeyCode::Char(c) => c.to_string(),
        KeyCode::Enter => "Enter".to_owned(),
        KeyCode::Esc => "Esc".to_owned(),
        KeyCode::Backspace => "Backspace".to_owned(),
        KeyCode::BackTab => "S-Tab".to_owned(),
        KeyCode::Tab if event.modifiers.contains(KeyModifiers::SHIFT) => "S-Tab".to_owned(),
        KeyCode::Tab => "Tab".to_owned(),
        KeyCode::Up => "Up".to_owned(),
        KeyCode::Down => "Down".to_owned(),
        KeyCode::Left => "Left".to_owned(),
        KeyCode::Right => "Right".to_owned(),
        KeyCode::PageUp => "PgUp".to_owned(),
        KeyCode::PageDown => "PgDn".to_owned(),
        KeyCode::Home => "Home".to_owned(),
        KeyCode::End => "End".to_owned(),
        KeyCode::F(n) => format!("F{n}"),
        _ => return None,
    })
}

/// The key that is shown for an action.
pub(crate) fn shown(action: Action) -> &'static str {
    TABLE
        .iter()
        .find(|binding| binding.action == action)
        .and_then(|binding| binding.keys.first())
        .copied()
        .unwrap_or_default()
}
