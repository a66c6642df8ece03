//! A fleet of loops in every standing, over the journal of a real run of `peers demo`.

use std::path::PathBuf;

use peers_model::{TickNo, Timestamp};
use peers_store::FsDisk;
use peers_sys::SafeDir;
use peers_view::{
    Asked, Attention, Cause, Cell, Level, Listed, Lock, LoopRow, LoopState, Page, Report, RowWarning,
    Sourced, Spelling, Tone, Typed,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::host::{Content, Diff, DiffFile, Event, Live, LiveLine, Part, Snapshot};
use crate::message::{Cmd, Msg};
use crate::model::{Model, Options};
use crate::theme::{Theme, ThemeName};
use crate::view;

/// Bytes that steer terminals, turn text round, and take no cell.
pub(super) const EVIL: &str = "a\u{1b}[2J\u{9b}31mb\r\n\u{202e}c\u{200b}\u{e0041}日本\tz";

/// A while after the run.
pub(super) fn now() -> Timestamp {
    Timestamp::parse("2026-11-27T11:30:00Z").unwrap()
}

fn fixture(name: &str) -> SafeDir {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/tests/fixture").join(name);
    SafeDir::open_shared(&dir).unwrap()
}

fn disk() -> FsDisk {
    FsDisk::new(fixture("store"), Some(fixture("peers")))
}

fn asked(name: &str) -> Asked {
    let path = format!("/srv/{name}");
    let listed = Listed { name: name.to_owned(), path: path.clone(), ..Listed::default() };
    let spelling = Spelling::Ctl { name: name.to_owned(), dir: path, config_dir: None };
    Asked { free_bytes: Some(1 << 40), ..Asked::of_row(now(), Lock::Free, listed, spelling) }
}

/// The loop that is complete.
pub(super) fn row(name: &str) -> LoopRow {
    LoopRow { workdir: None, ..LoopRow::read(&mut disk(), &asked(name)) }
}

pub(super) fn report() -> Report {
    let mut report = Report::read(&mut disk(), &Asked { ticks: 20, ..asked("docs") });
    report.view.at = now();
    report
}

/// A loop that asks for something.
pub(super) fn needs(name: &str, (level, code, why): (Level, &'static str, &str), argv: &[&str]) -> LoopRow {
    let mut row = row(name);
    let line = argv.join(" ");
    let verb = ["resume", "start", "budget raise", "goals diff", "goals edit", "doctor", "amend"]
        .into_iter()
        .find(|verb| line.contains(verb))
        .unwrap_or("");
    let typed = Typed {
        line: line.clone(),
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        verb,
        is_line: false,
    };
    let commands = if argv.is_empty() { Vec::new() } else { vec![typed] };
    row.attention = Attention {
        top: Cause {
            level,
            code,
            why: why.to_owned(),
            since: None,
            action: (!argv.is_empty()).then_some(line),
            commands,
            next: None,
            wait_until: None,
        },
        others: Vec::new(),
    };
    row
}

pub(super) fn running(name: &str) -> LoopRow {
    let mut row = needs(name, (Level::Ok, "running", "a turn runs"), &[]);
    (row.state, row.outcome, row.phase) = (LoopState::Running, None, "turn");
    (row.uptime_s, row.tick_age_s) = (Some(4000), Some(190));
    row
}

/// One loop in each standing.
pub(super) fn rows() -> Vec<LoopRow> {
    let mut stuck = needs(
        "parser",
        (Level::Act, "stuck", "stuck:tests-pass: `make test`: 3 failed: lex::numbers, lex::strings"),
        &["peers-ctl", "resume", "parser", "--start"],
    );
    stuck.recent.iter_mut().flatten().for_each(|tick| tick.success = tick.tick.0 % 2 == 0);
    let mut budget = needs(
        "gateway",
        (Level::Act, "budget", "budget:max_usd: $20.01 of $20.00"),
        &["peers-ctl", "budget", "raise", "gateway", "--usd", "+5"],
    );
    budget.budget.as_mut().unwrap().most_pct = Some(100);
    let mut crashed = needs(
        "mailer",
        (Level::Act, "crashed", "crashed in tick 7 of bob: its process is gone"),
        &["peers-ctl", "start", "mailer"],
    );
    (crashed.state, crashed.outcome) = (LoopState::Crashed, Some("killed".to_owned()));
    let changed = needs(
        "billing",
        (Level::Act, "unaccepted", ".peers/goals.yaml changed and the change was not accepted"),
        &["peers", "-C", "/srv/billing", "goals", "diff"],
    );
    let mut watched = running("search");
    watched.attention.top =
        needs("search", (Level::Watch, "no-commit", "no commit for 49m"), &["peers-ctl", "peek", "search"])
            .attention
            .top;
    let mut unread = needs(
        "legacy",
        (Level::Act, "unknown", "it is not known whether the loop runs: its directory is missing"),
        &["peers-ctl", "doctor", "legacy"],
    );
    (unread.state, unread.outcome) = (LoopState::Unknown, None);
    (unread.gates, unread.cost, unread.budget, unread.recent, unread.last_commit) =
        (None, None, None, None, None);
    unread.warnings = vec![RowWarning { code: "journal", message: "the journal cannot be read".to_owned() }];
    vec![stuck, budget, crashed, changed, watched, running("docs"), row("done"), unread]
}

/// The same with hostile and huge values.
pub(super) fn hostile_rows() -> Vec<LoopRow> {
    let mut evil = needs(&format!("evil{EVIL}"), (Level::Act, "stuck", EVIL), &["peers-ctl", "start", EVIL]);
    evil.path = EVIL.to_owned();
    evil.outcome = Some(EVIL.to_owned());
    evil.warnings = vec![RowWarning { code: "git", message: EVIL.repeat(2000) }];
    for tick in evil.recent.iter_mut().flatten() {
        tick.reason = Some(EVIL.repeat(500));
    }
    let mut huge = needs(
        &"n".repeat(3000),
        (Level::Watch, "long", &"why ".repeat(9000)),
        &["peers-ctl", "start", &"w".repeat(20_000)],
    );
    if let Some(cost) = &mut huge.cost {
        cost.usd = Some(peers_model::Usd::from_micros(u64::MAX));
    }
    vec![evil, huge]
}

pub(super) fn options(theme: ThemeName) -> Options {
    Options {
        theme: Theme::new(theme, false),
        controller: vec!["peers-ctl".to_owned()],
        ..Options::default()
    }
}

/// A model over these rows.
pub(super) fn model(theme: ThemeName, rows: Vec<LoopRow>) -> Model {
    let mut model = Model::new(options(theme), now());
    model.update(Msg::Rows(Ok(Snapshot { at: now(), rows, warnings: Vec::new() })));
    model
}

/// Types keys: `Enter`, `Esc`, `Tab` in angle brackets, or letters.
pub(super) fn press(model: &mut Model, keys: &str) -> Vec<Cmd> {
    let mut cmds = Vec::new();
    let mut rest = keys;
    while let Some(c) = rest.chars().next() {
        let (code, left) = match rest.strip_prefix('<').and_then(|named| named.split_once('>')) {
            Some((name, left)) => {
                let code = match name {
                    "Enter" => KeyCode::Enter,
                    "Esc" => KeyCode::Esc,
                    "Tab" => KeyCode::Tab,
                    "Down" => KeyCode::Down,
                    "Right" => KeyCode::Right,
                    "Back" => KeyCode::Backspace,
                    other => panic!("{other}"),
                };
                (code, left)
            }
            None => (KeyCode::Char(c), &rest[c.len_utf8()..]),
        };
        rest = left;
        cmds.extend(model.update(Msg::Key(KeyEvent::new(code, KeyModifiers::NONE))));
    }
    cmds
}

/// Draws it, and keeps what was drawn where, as the loop does.
pub(super) fn drawn(model: &mut Model, (width, height): (u16, u16)) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    for _ in 0..2 {
        let mut hits = view::Hits::default();
        terminal.draw(|frame| hits = view::draw(model, frame)).unwrap();
        model.hits = hits;
        model.update(Msg::Resize);
    }
    terminal
}

/// What stands on the screen, line by line without blanks at their ends.
pub(super) fn text(terminal: &Terminal<TestBackend>) -> String {
    let buffer = terminal.backend().buffer();
    let width = usize::from(buffer.area.width);
    let mut out = String::new();
    for line in buffer.content.chunks(width) {
        let text: String = line.iter().map(ratatui::buffer::Cell::symbol).collect();
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}

pub(super) fn standing(model: &mut Model, report: Report) {
    let name = model.one.name.clone();
    model.update(Msg::Part { name, part: Part::Standing, content: Ok(Content::Standing(Box::new(report))) });
}

fn page(lines: &[(Tone, &str)]) -> Page {
    let mut page = Page::default();
    for (tone, text) in lines {
        page.tell(*tone, text);
    }
    page
}

/// Something for the part that is looked at.
pub(super) fn fill(model: &mut Model, said: &str) {
    let Some((name, parts)) = model.want().of else { return };
    for part in parts {
        let content = match &part {
            Part::Standing => Content::Standing(Box::new(report())),
            Part::Live(_) => Content::Live(Live {
                head: "tick 6 of bob: its words, not facts".to_owned(),
                lines: [
                    ("text", "Everything is green, and I distrust it."),
                    ("tool", "bash"),
                    ("result", "failed"),
                    ("error", said),
                ]
                .map(|(kind, text)| LiveLine { kind, cell: Cell::new(Tone::Plain, text) })
                .to_vec(),
                open: true,
            }),
            Part::Diff(..) => Content::Diff(Diff {
                tick: Some(TickNo(3)),
                title: "tick 3 of alice: 1c32be17 → 2131934a".to_owned(),
                files: vec![
                    DiffFile { path: "src/median.sh".to_owned(), change: 'M' },
                    DiffFile { path: format!("tests/{said}"), change: 'A' },
                ],
                patch: page(&[
                    (Tone::Strong, "diff --git a/src/median.sh"),
                    (Tone::Bad, "-sort"),
                    (Tone::Good, "+sort -n"),
                ]),
            }),
            Part::Tick(..) | Part::Reviews | Part::Plan | Part::Log(_) | Part::Config => {
                Content::Text(page(&[
                    (Tone::Strong, "heading"),
                    (Tone::Plain, said),
                    (Tone::Faint, "the end"),
                ]))
            }
        };
        model.update(Msg::Part { name: name.clone(), part, content: Ok(content) });
    }
}

pub(super) fn events(model: &mut Model, said: &str) {
    let event = |name: &str, tone, text: &str| Event {
        name: name.to_owned(),
        ts: now(),
        cells: vec![Cell::new(Tone::Plain, "tick "), Cell::new(tone, text)],
    };
    model.update(Msg::Events(vec![
        event("docs", Tone::Good, "tick 6 of bob: handoff"),
        event("parser", Tone::Bad, "0 of 3 green; not green: tests-pass"),
        event("search", Tone::Plain, said),
    ]));
}

/// The journal cannot be read.
pub(super) fn damaged() -> Report {
    let mut report = report();
    report.view.core = Sourced::Unreadable("line 12 is not a record this version can read".to_owned());
    report.history = Sourced::Unreadable("line 12 is not a record this version can read".to_owned());
    report.view.bugs = Sourced::Unreadable("the repository cannot be read".to_owned());
    report
}
