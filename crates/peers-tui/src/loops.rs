//! What the screen of one loop holds.

use peers_model::TickNo;
use peers_view::{GateTick, History, LoopView, Page, Report, TickRow};

use crate::host::{Content, Diff, Live, LogKind, Part, TickText};
use crate::model::Tab;

/// One loop as far as it was read.
#[derive(Debug, Default)]
pub(crate) struct OneLoop {
    pub(crate) name: String,
    pub(crate) tab: Tab,
    pub(crate) standing: Source<Box<Report>>,
    pub(crate) live: Source<Live>,
    pub(crate) diff: Source<Diff>,
    pub(crate) reviews: Source<Page>,
    pub(crate) plan: Source<Page>,
    pub(crate) log: Source<Page>,
    pub(crate) config: Source<Page>,
    pub(crate) tick_text: Source<Page>,
    /// The tick whose state is shown; now where absent.
    pub(crate) scrub: Option<TickNo>,
    /// The tick whose output, and the one whose changes are shown; the newest where absent.
    pub(crate) live_of: Option<TickNo>,
    pub(crate) diff_of: Option<TickNo>,
    /// The file of it that is shown alone.
    pub(crate) diff_file: Option<String>,
    pub(crate) log_kind: LogKind,
    /// New lines of an agent are followed.
    pub(crate) paused: bool,
    pub(crate) kinds: Kinds,
    /// The row that is chosen: a gate, a tick from the newest, a file, a bug.
    pub(crate) at: usize,
    /// The first line of text that is shown.
    pub(crate) scroll: usize,
}

/// What was read, or why not.
#[derive(Debug, Default)]
pub(crate) enum Source<T> {
    /// It was asked for.
    #[default]
    Coming,
    Here(T),
    /// It could not be read; what was there before is gone with it.
    Unreadable(String),
}

impl<T> Source<T> {
    pub(crate) fn value(&self) -> Option<&T> {
        match self {
            Self::Here(value) => Some(value),
            Self::Coming | Self::Unreadable(_) => None,
        }
    }
}

/// Which of an agent's lines are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Kinds {
    #[default]
    All,
    Words,
    Tools,
    Errors,
}

impl Kinds {
    pub(crate) fn next(self) -> Self {
        match self {
            Self::All => Self::Words,
            Self::Words => Self::Tools,
            Self::Tools => Self::Errors,
            Self::Errors => Self::All,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Words => "words",
            Self::Tools => "tools",
            Self::Errors => "errors",
        }
    }

    pub(crate) fn takes(self, kind: &str) -> bool {
        match self {
            Self::All => true,
            Self::Words => matches!(kind, "text" | "final"),
            Self::Tools => matches!(kind, "tool" | "result"),
            Self::Errors => matches!(kind, "error" | "retry"),
        }
    }
}

impl OneLoop {
    pub(crate) fn of(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// What is looked at for this tab.
    pub(crate) fn part(&self) -> Part {
        match self.tab {
            Tab::Overview | Tab::Gates | Tab::Ticks | Tab::Bugs => Part::Standing,
            Tab::Live => Part::Live(self.live_of),
            Tab::Diff => Part::Diff(self.diff_of, self.diff_file.clone()),
            Tab::Reviews => Part::Reviews,
            Tab::Plan => Part::Plan,
            Tab::Logs => Part::Log(self.log_kind),
            Tab::Config => Part::Config,
        }
    }

    /// Takes what was read, unless something else is looked at by now.
    pub(crate) fn take(
        &mut self,
        part: &Part,
        content: Result<Content, String>,
        of_tick: Option<(TickNo, TickText)>,
    ) {
        fn put<T>(source: &mut Source<T>, content: Result<Option<T>, String>) {
            match content {
                Ok(Some(value)) => *source = Source::Here(value),
                Ok(None) => {}
                Err(why) => *source = Source::Unreadable(why),
            }
        }
        let text = |content: Result<Content, String>| {
            content.map(|content| if let Content::Text(page) = content { Some(page) } else { None })
        };
        match part {
            Part::Standing => put(
                &mut self.standing,
                content
                    .map(|content| if let Content::Standing(report) = content { Some(report) } else { None }),
            ),
            Part::Live(tick) if *tick == self.live_of => put(
                &mut self.live,
                content.map(|content| if let Content::Live(live) = content { Some(live) } else { None }),
            ),
            Part::Diff(tick, file) if *tick == self.diff_of && *file == self.diff_file => put(
                &mut self.diff,
                content.map(|content| if let Content::Diff(diff) = content { Some(diff) } else { None }),
            ),
            Part::Tick(tick, what) if of_tick == Some((*tick, *what)) => {
                put(&mut self.tick_text, text(content));
            }
            Part::Reviews => put(&mut self.reviews, text(content)),
            Part::Plan => put(&mut self.plan, text(content)),
            Part::Log(kind) if *kind == self.log_kind => put(&mut self.log, text(content)),
            Part::Config => put(&mut self.config, text(content)),
            Part::Live(_) | Part::Diff(..) | Part::Tick(..) | Part::Log(_) => {}
        }
    }

    pub(crate) fn view(&self) -> Option<&LoopView> {
        Some(&self.standing.value()?.view)
    }

    pub(crate) fn history(&self) -> Option<&History> {
        self.standing.value()?.history.value()
    }

    /// How the gates stood at the tick that is shown; at the newest where none is chosen.
    pub(crate) fn gates_then(&self) -> Option<&GateTick> {
        let ticks = &self.history()?.gate_ticks;
        match self.scrub {
            Some(tick) => ticks.iter().find(|one| one.tick == tick),
            None => ticks.back(),
        }
    }

    /// The ticks that are listed, the newest first.
    pub(crate) fn ticks(&self) -> Vec<&TickRow> {
        self.history().map(|history| history.timeline.iter().rev().collect()).unwrap_or_default()
    }

    /// The tick that is meant on this tab.
    pub(crate) fn tick(&self) -> Option<TickNo> {
        match self.tab {
            Tab::Ticks => self.ticks().get(self.at).map(|tick| tick.tick),
            Tab::Live => self.live_of.or(self.newest()),
            Tab::Diff => self.diff_of.or(self.diff.value().and_then(|diff| diff.tick)).or(self.newest()),
            _ => self.scrub.or(self.newest()),
        }
    }

    fn newest(&self) -> Option<TickNo> {
        self.history()?.timeline.back().map(|tick| tick.tick)
    }

    /// Moves the tick that is shown: earlier by a negative number, later by another.
    pub(crate) fn step(&mut self, by: i64) {
        match self.tab {
            Tab::Live => {
                self.live_of = self.beside(self.live_of, by);
                (self.live, self.scroll) = (Source::Coming, 0);
            }
            Tab::Diff => {
                let from = self.diff_of.or(self.diff.value().and_then(|diff| diff.tick));
                self.diff_of = self.beside(from, by);
                (self.diff, self.diff_file, self.at, self.scroll) = (Source::Coming, None, 0, 0);
            }
            Tab::Ticks => {
                // The newest stands on top.
                let last = self.ticks().len().saturating_sub(1);
                let at = if by < 0 { self.at.saturating_add(1) } else { self.at.saturating_sub(1) };
                self.at = at.min(last);
            }
            _ => {
                let Some(history) = self.history() else { return };
                let all: Vec<TickNo> = history.gate_ticks.iter().map(|one| one.tick).collect();
                let Some(last) = all.len().checked_sub(1) else { return };
                let now = self.scrub.and_then(|tick| all.iter().position(|one| *one == tick)).unwrap_or(last);
                let then = if by < 0 { now.saturating_sub(1) } else { now + 1 };
                // Behind the newest tick there is now.
                self.scrub = (then < last).then(|| all.get(then).copied()).flatten();
            }
        }
    }

    /// The tick before or behind one, among those that are known; now where there is none behind it.
    fn beside(&self, from: Option<TickNo>, by: i64) -> Option<TickNo> {
        let ticks = self.ticks();
        let newest = ticks.first()?.tick;
        let oldest = ticks.last()?.tick;
        let then = match from {
            None if by < 0 => newest,
            None => return None,
            Some(TickNo(from)) => TickNo(from.checked_add_signed(by).unwrap_or_default()),
        };
        (then <= newest).then(|| then.max(oldest))
    }

    /// Back to what is now.
    pub(crate) fn go_to_now(&mut self) {
        match self.tab {
            Tab::Live => (self.live_of, self.live, self.paused) = (None, Source::Coming, false),
            Tab::Diff => {
                (self.diff_of, self.diff_file, self.diff, self.at) = (None, None, Source::Coming, 0);
            }
            Tab::Ticks => self.at = 0,
            _ => self.scrub = None,
        }
        self.scroll = 0;
    }

    /// The text of this tab, where it is text.
    pub(crate) fn text(&self) -> Option<&Source<Page>> {
        match self.tab {
            Tab::Reviews => Some(&self.reviews),
            Tab::Plan => Some(&self.plan),
            Tab::Logs => Some(&self.log),
            Tab::Config => Some(&self.config),
            _ => None,
        }
    }

    /// What an agent said, of the kinds that are shown.
    pub(crate) fn said(&self) -> Vec<&crate::host::LiveLine> {
        let lines = self.live.value().map(|live| live.lines.as_slice()).unwrap_or_default();
        lines.iter().filter(|line| self.kinds.takes(line.kind)).collect()
    }

    /// How many rows can be chosen from on this tab; nothing where there is text.
    pub(crate) fn rows(&self) -> Option<usize> {
        let core = || self.view().and_then(|view| view.core.value());
        match self.tab {
            Tab::Gates => Some(core().map_or(0, |core| core.gates.len() + core.soft.len())),
            Tab::Ticks => Some(self.ticks().len()),
            Tab::Diff => Some(self.diff.value().map_or(0, |diff| diff.files.len())),
            Tab::Bugs => {
                Some(self.view().and_then(|view| view.bugs.value()).map_or(0, |bugs| bugs.rows.len()))
            }
            Tab::Overview | Tab::Live | Tab::Reviews | Tab::Plan | Tab::Logs | Tab::Config => None,
        }
    }
}
