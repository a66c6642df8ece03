//! What the cockpit shows of one loop, and how it has commands run: shared by whoever has one loop and by whoever has
//! many.

use std::collections::VecDeque;
use std::io::IsTerminal as _;
use std::time::Duration;

use peers_git::{ChangeKind, Facts};
use peers_model::{Mono, TickNo, exit, limits};
use peers_place::Place;
use peers_store::layout::peers;
use peers_store::{Area, Disk as _, FsDisk, artifacts};
use peers_sys::clock;
use peers_sys::env::Env;
use peers_tui::{
    Content, Diff, DiffFile, Event, Failure, Live, LiveLine, LogKind, Part, Theme, ThemeName, TickText,
};
use peers_view::{
    Asked, Cell, FeedItem, HandoffsAsked, History, Listed, LoopRow, LoopView, Page, Report, TickRow, Tone,
    handoffs, handoffs_page, info_page, plan_page, replay, replay_page, watch_cells,
};

use crate::about;
use crate::cx::{self, Cx};
use crate::error::CommandError;
use crate::peek::{self, Turn, worked_in};

/// Where policies and logs of proxies are, below the cache of a project.
const NET: &str = "net";
/// Most of the patch of one tick in a report, bytes, and ticks that have one there.
const REPORTED: (usize, usize) = (64 * 1024, 20);
/// Lines of an agent that are kept.
const LINES: usize = 5_000;
/// Most pieces of its stream that are read in one look.
const PIECES: usize = 8;
/// Cells of one of them.
const WIDE: usize = 300;
/// Most of a patch that is shown, bytes.
const PATCH: usize = 512 * 1024;
/// Most of what an agent printed, or of a log, that is shown, bytes.
const TAIL: u64 = 256 * limits::KIB;
/// Handoffs that are shown.
const HANDOFFS: usize = 10;
/// What does not change is read again after this, for the times in it.
const AGAIN: Duration = Duration::from_secs(10);

/// The parts of one loop, read again and again.
#[derive(Debug, Default)]
pub struct Parts {
    /// What was read last of each part, and when: it is read again where something has changed since.
    read: Vec<(Part, Stamp, Mono)>,
    live: Option<(Option<TickNo>, Following)>,
    page: Option<(Part, Page)>,
}

/// By what one sees that something has changed.
type Stamp =
    Option<(Option<peers_model::Timestamp>, Option<TickNo>, &'static str, Option<peers_model::CommitId>)>;

#[derive(Debug)]
struct Following {
    turn: Turn,
    lines: VecDeque<LiveLine>,
}

impl Following {
    /// Reads what came since. One that writes without end keeps nobody from the next look.
    fn look(&mut self, disk: &mut FsDisk) -> Result<bool, CommandError> {
        if self.turn.shrank(disk)? {
            self.lines.clear();
        }
        let mut news = false;
        for _ in 0..PIECES {
            let Some(events) = self.turn.poll(disk)? else { break };
            for (kind, text, _) in events.iter().filter_map(peek::words) {
                self.lines.extend(
                    text.lines().map(|line| LiveLine { kind, cell: Cell::cut(Tone::Plain, line, WIDE) }),
                );
                news = true;
            }
            let excess = self.lines.len().saturating_sub(LINES);
            self.lines.drain(..excess);
        }
        Ok(news)
    }
}

impl Parts {
    /// A part as it is now; nothing where it is what was given last. `row` says whether anything has happened.
    ///
    /// # Errors
    /// It cannot be read; why, for people.
    pub fn content(
        &mut self,
        cx: &Cx,
        (row, listed): (Option<&LoopRow>, &Listed),
        part: &Part,
    ) -> Result<Option<Content>, String> {
        let stamp: Stamp = row.map(|row| {
            let head = row.last_commit.as_ref().map(|commit| commit.sha.clone());
            (row.last_event.as_ref().map(|last| last.ts), row.iteration, row.phase, head)
        });
        if !matches!(part, Part::Live(_) | Part::Log(_)) {
            let now = clock::mono();
            let known = self.read.iter().find(|(known, ..)| known == part);
            if known.is_some_and(|(_, known, at)| *known == stamp && now.since(*at) < AGAIN) {
                return Ok(None);
            }
            self.read.retain(|(known, ..)| known != part);
            // What was looked at long ago is read anew when it is looked at again.
            self.read.truncate(8);
            self.read.insert(0, (part.clone(), stamp, now));
        }
        let content =
            self.fresh(cx, listed, part).map_err(|error| error.spelt(cx.out.spelling()).summary())?;
        if let Some(Content::Text(page)) = &content {
            let same = self.page.as_ref().is_some_and(|(known, shown)| known == part && shown == page);
            if same {
                return Ok(None);
            }
            self.page = Some((part.clone(), page.clone()));
        }
        Ok(content)
    }

    /// Forgets what was given, since somebody else is asked about.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    fn fresh(&mut self, cx: &Cx, listed: &Listed, part: &Part) -> Result<Option<Content>, CommandError> {
        let (place, mut disk) = cx.view()?;
        Ok(Some(match part {
            Part::Standing => Content::Standing(Box::new(standing(cx, &place, &mut disk, listed))),
            Part::Live(tick) => return self.live(cx, &place, &mut disk, *tick),
            Part::Tick(tick, what) => Content::Text(tick_text(cx, &place, &mut disk, (*tick, *what))?),
            Part::Diff(tick, file) => Content::Diff(diff(cx, &place, &mut disk, (*tick, file.as_deref()))?),
            Part::Reviews => {
                let control = cx.control(&place)?;
                let facts = control.as_ref().map(|control| control.facts());
                let asked = HandoffsAsked { peer: None, newest: HANDOFFS };
                let found = handoffs(&mut disk, &asked, facts.as_ref())
                    .map_err(|error| CommandError::of(exit::INVALID, &error))?;
                Content::Text(handoffs_page(&found, clock::now()))
            }
            Part::Plan => Content::Text(plan(&place)?),
            Part::Log(kind) => Content::Text(log_page(&place, *kind)?),
            Part::Config => Content::Text(config(cx, &place, &mut disk)?),
        }))
    }

    /// What an agent says: of the turn that is asked for, or of the open or newest one.
    fn live(
        &mut self,
        cx: &Cx,
        place: &Place,
        disk: &mut FsDisk,
        tick: Option<TickNo>,
    ) -> Result<Option<Content>, CommandError> {
        let turn = Turn::find(disk, tick.map(|tick| tick.0))?;
        let Some(turn) = turn else {
            self.live = None;
            return Ok(Some(Content::Live(Live {
                head: "no turn has begun yet".to_owned(),
                ..Live::default()
            })));
        };
        let worked = worked_in(disk, place, &cx.env)?;
        let mut there = worked.as_ref().unwrap_or(place).open_view_disk()?;
        let same = |(asked, known): &(Option<TickNo>, Following)| {
            *asked == tick && known.turn.tick == turn.tick && known.turn.open == turn.open
        };
        let (mut news, mut kept) = match self.live.take().filter(same) {
            Some((_, known)) => (false, known),
            None => (true, Following { turn, lines: VecDeque::new() }),
        };
        news |= kept.look(&mut there)?;
        let Following { turn, lines } = kept;
        let runs = cx::lock(place) != peers_view::Lock::Free;
        let content = news.then(|| {
            let head = format!("tick {} of {}: its words, not facts", turn.tick, turn.peer);
            Content::Live(Live { head, lines: lines.iter().cloned().collect(), open: turn.open && runs })
        });
        self.live = Some((tick, Following { turn, lines }));
        Ok(content)
    }
}

fn standing(cx: &Cx, place: &Place, disk: &mut FsDisk, listed: &Listed) -> Report {
    let asked = Asked { listed: listed.clone(), ..cx.asked_with_refusals(place, disk) };
    let view = LoopView::settled(disk, &asked, || cx::lock(place));
    Report { view, history: History::read(disk) }
}

/// Gives the repository to who asks: what was imported cannot be changed by agents, so it is asked first.
fn with_facts<T>(
    cx: &Cx,
    place: &Place,
    ask: impl FnOnce(&Facts<'_>) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    match cx.control(place)? {
        Some(control) => ask(&control.facts()),
        None => ask(&Cx::repo(place)?.facts()),
    }
}

fn tick_text(
    cx: &Cx,
    place: &Place,
    disk: &mut FsDisk,
    (tick, what): (TickNo, TickText),
) -> Result<Page, CommandError> {
    let control = cx.control(place)?;
    let facts = control.as_ref().map(|control| control.facts());
    let found = replay(disk, tick, facts.as_ref())?;
    let Some(found) = found else {
        return Err(CommandError::new(exit::NEGATIVE, format!("there is no tick {tick}")));
    };
    let Some(record) = found.record().filter(|_| what != TickText::Record) else {
        return Ok(replay_page(&found));
    };
    let (dir, end) = match what {
        TickText::Prompt => (peers::LOG_PROMPTS, ".txt"),
        TickText::Errors => (peers::LOG_PEERS, ".stderr.log"),
        TickText::Output | TickText::Record => (peers::LOG_PEERS, ".stdout.log"),
    };
    let path = format!("{dir}/{}", artifacts::tick_file(tick, record.peer.as_str(), end));
    let worked = worked_in(disk, place, &cx.env)?;
    let mut there = worked.as_ref().unwrap_or(place).open_view_disk()?;
    let len = there.len(Area::Peers, &path)?;
    let mut page = Page::default();
    let Some(len) = len else {
        page.tell(Tone::Faint, "it is no longer kept, or there was nothing");
        return Ok(page);
    };
    let from = len.saturating_sub(TAIL);
    if from > 0 {
        page.tell(Tone::Care, format!("the first {} are left out", peers_view::bytes(from)));
    }
    let bytes = there.read_at(Area::Peers, &path, from, len - from)?;
    raw(&mut page, &String::from_utf8_lossy(&bytes));
    Ok(page)
}

/// Foreign text as it is, made harmless line by line.
fn raw(page: &mut Page, text: &str) {
    for line in text.lines() {
        page.line(&[Cell::whole(Tone::Plain, line)]);
    }
}

fn diff(
    cx: &Cx,
    place: &Place,
    disk: &mut FsDisk,
    (tick, file): (Option<TickNo>, Option<&str>),
) -> Result<Diff, CommandError> {
    let history = History::read(disk);
    let ticks = history.value().map(|history| &history.timeline);
    let changed = |row: &&TickRow| match tick {
        Some(tick) => row.tick == tick,
        None => row.head_before != row.head_after,
    };
    let found = ticks.and_then(|ticks| ticks.iter().rev().find(changed));
    let Some(row) = found else {
        let title = match tick {
            Some(tick) => format!("tick {tick} is not among the newest"),
            None => "no turn has changed anything yet".to_owned(),
        };
        return Ok(Diff { tick, title, ..Diff::default() });
    };
    let title = format!(
        "tick {} of {}: {} → {}",
        row.tick,
        row.peer,
        row.head_before.short(),
        row.head_after.short()
    );
    with_facts(cx, place, |facts| {
        let (old, new) = (facts.tree_of(&row.head_before)?, facts.tree_of(&row.head_after)?);
        let files = facts.diff_trees(&old, &new)?.into_iter().map(|change| DiffFile {
            change: match change.kind {
                ChangeKind::Added => 'A',
                ChangeKind::Deleted => 'D',
                ChangeKind::Modified => 'M',
            },
            path: change.path,
        });
        let patch = patch(facts, row, |path| file.is_none_or(|file| file == path), PATCH)?;
        Ok(Diff { tick: Some(row.tick), title, files: files.collect(), patch })
    })
}

/// What a tick changed in the paths that `include` takes, at most so many bytes of it.
fn patch(
    facts: &Facts<'_>,
    row: &TickRow,
    include: impl Fn(&str) -> bool,
    most: usize,
) -> Result<Page, CommandError> {
    let (old, new) = (facts.tree_of(&row.head_before)?, facts.tree_of(&row.head_after)?);
    let text = facts.diff_text(&old, &new, include, most)?;
    let mut patch = Page::default();
    for line in text.text.lines() {
        let tone = match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] | [b'd', b'i', b'f', b'f', ..] => Tone::Strong,
            [b'+', ..] => Tone::Good,
            [b'-', ..] => Tone::Bad,
            [b'@', ..] => Tone::Care,
            _ => Tone::Plain,
        };
        patch.line(&[Cell::cut(tone, line, WIDE)]);
    }
    if text.cut {
        patch.tell(Tone::Care, "and more, which is left out");
    }
    Ok(patch)
}

/// What the newest ticks of a loop changed, for a report. What cannot be read is left out.
#[must_use]
pub fn patches(cx: &Cx, place: &Place, history: &History) -> Vec<(TickNo, Page)> {
    let changed = history.timeline.iter().rev().filter(|row| row.head_before != row.head_after);
    let read = |row: &TickRow| {
        let page = with_facts(cx, place, |facts| patch(facts, row, |_| true, REPORTED.0)).ok()?;
        (!page.is_empty()).then_some((row.tick, page))
    };
    changed.take(REPORTED.1).filter_map(read).collect()
}

/// The plan at HEAD.
fn plan(place: &Place) -> Result<Page, CommandError> {
    const PLAN: &str = "PLAN.md";
    let repo = Cx::repo(place)?;
    let facts = repo.facts();
    let cap = usize::try_from(limits::CONFIG).unwrap_or(usize::MAX);
    let bytes = facts.read_blob(&facts.head()?.commit, PLAN, cap)?.map(|blob| blob.bytes);
    let mut page = Page::default();
    match bytes {
        Some(bytes) => page.append(plan_page(PLAN, &peers_core::plan::parse(&bytes))),
        None => page.tell(Tone::Faint, "there is no PLAN.md at HEAD; the mode `implement` works by one"),
    }
    Ok(page)
}

/// The log of a proxy, one line for each request: where it is, and its end of so many bytes; nothing where no such
/// proxy has run.
///
/// # Errors
/// It cannot be read.
pub fn proxy_log(
    place: &Place,
    kind: LogKind,
    most: u64,
) -> Result<(std::path::PathBuf, Option<String>), CommandError> {
    let name = if kind == LogKind::Auth { "auth.log" } else { "egress.log" };
    let path = place.cache_dir().join(NET).join(name);
    let dir = peers_sys::SafeDir::open_shared(place.cache_dir()).and_then(|dir| dir.open_path(NET));
    match dir.and_then(|dir| dir.read_tail(name, most)) {
        Ok(tail) => Ok((path, Some(String::from_utf8_lossy(&tail.bytes).into_owned()))),
        Err(error) if error.is_not_found() => Ok((path, None)),
        Err(error) => Err(error.into()),
    }
}

fn log_page(place: &Place, kind: LogKind) -> Result<Page, CommandError> {
    let mut page = Page::default();
    if kind == LogKind::Loop {
        page.tell(Tone::Faint, "the loop says what it does on the terminal that it was started on");
        return Ok(page);
    }
    match proxy_log(place, kind, TAIL)?.1 {
        Some(text) => raw(&mut page, &text),
        None => page.tell(Tone::Faint, "no such proxy has run for this loop"),
    }
    Ok(page)
}

fn config(cx: &Cx, place: &Place, disk: &mut FsDisk) -> Result<Page, CommandError> {
    let (about, changed) = about::of(cx, place, disk)?;
    let mut page = Page::default();
    if let Some(changed) = changed {
        page.tell(Tone::Bad, changed);
    }
    page.append(about.shown(info_page));
    if let Some(history) = History::read(disk).value() {
        let accepted = history.accepted.iter().rev().map(|row| (row.ts, &row.by, &row.what));
        let did = history.operator.iter().rev().map(|row| (row.ts, &row.by, &row.what));
        for (title, rows) in
            [("accepted", accepted.collect::<Vec<_>>()), ("what the operator did", did.collect())]
        {
            if !rows.is_empty() {
                page.heading(title);
                page.table(
                    2,
                    rows.into_iter().map(|(ts, by, what)| {
                        vec![
                            Cell::new(Tone::Faint, ts.to_string()),
                            Cell::new(Tone::Plain, by),
                            Cell::new(Tone::Plain, what),
                        ]
                    }),
                );
            }
        }
    }
    Ok(page)
}

/// Whether there is a terminal for the cockpit to draw on and to be asked from.
#[must_use]
pub fn has_terminal(env: &Env) -> bool {
    std::io::stdin().is_terminal()
        && std::io::stdout().is_terminal()
        && env.text("TERM").is_some_and(|term| term != "dumb")
}

/// How things look; where nothing is said, as the environment says.
#[must_use]
pub fn theme(said: Option<ThemeName>, env: &Env) -> Theme {
    let set = |name: &str| env.text(name).filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
    // Without any, terminals of today have it.
    let utf8 = locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    });
    let usual = if utf8 { ThemeName::Dark } else { ThemeName::Ascii };
    Theme::new(said.unwrap_or(usual), set("NO_COLOR").is_some())
}

/// What the cockpit shows of something that happened: when it was stands before it already.
#[must_use]
pub fn event(name: &str, (ts, item): (peers_model::Timestamp, &FeedItem)) -> Event {
    let mut cells = watch_cells(item);
    if matches!(item, FeedItem::Line(_)) && !cells.is_empty() {
        cells.remove(0);
    }
    Event { name: name.to_owned(), ts, cells }
}

/// Why a cockpit ended by itself. `instead` says what shows the same without one.
#[must_use]
pub fn broken(failure: Failure, instead: &'static str) -> CommandError {
    match failure {
        Failure::Terminal(error) => CommandError::of(exit::ENVIRONMENT, &error).hint(instead),
        Failure::Broken(why) => CommandError::new(exit::BUG, format!("the cockpit broke: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use peers_model::PeerName;
    use peers_sys::dir::SafeDir;

    use super::*;

    #[test]
    fn a_stream_without_end_is_left_after_so_many_pieces_and_taken_up_where_it_was() {
        let tmp = tempfile::tempdir().unwrap();
        let logs = tmp.path().join(peers::LOG_PEERS);
        std::fs::create_dir_all(&logs).unwrap();
        let peer = PeerName::new("ann").unwrap();
        let name = artifacts::tick_file(TickNo(1), peer.as_str(), ".stream.jsonl");
        let mut file = std::fs::File::create(logs.join(name)).unwrap();
        let open = || SafeDir::open_root(tmp.path()).unwrap();
        let mut disk = FsDisk::new(open(), Some(open()));
        let mut kept = Following { turn: Turn::of(TickNo(1), peer, ""), lines: VecDeque::new() };
        file.write_all(b"first\n").unwrap();
        assert!(kept.look(&mut disk).unwrap());
        // A piece is 1 MiB.
        let mib = [b'x'; 1024].repeat(1024);
        for _ in 0..PIECES {
            file.write_all(&mib).unwrap();
        }
        file.write_all(b"\nlast\n").unwrap();
        let last = |kept: &Following| kept.lines.back().map(|line| line.cell.text().to_owned());
        kept.look(&mut disk).unwrap();
        assert_ne!(last(&kept).as_deref(), Some("last"));
        kept.look(&mut disk).unwrap();
        assert_eq!(last(&kept).as_deref(), Some("last"));
        assert!(!kept.look(&mut disk).unwrap());
    }
}
