//! Every screen, at three sizes and in four looks.

use peers_model::{BugId, TickNo};
use peers_view::{BugRow, BugsView, Cell, Sourced, Tone};
use ratatui::style::Color;

use super::sample::*;
use crate::dialog::Dialog;
use crate::host::{Content, Live, LiveLine, Part, TickText};
use crate::message::{Ask, Msg};
use crate::model::{Model, Screen, Tab};
use crate::theme::ThemeName;

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

/// What a screen shows, by its name.
type Shown = (&'static str, fn(ThemeName) -> Model);

fn fleet(theme: ThemeName) -> Model {
    let mut model = model(theme, rows());
    events(&mut model, "a turn runs");
    model
}

fn tab(theme: ThemeName, key: &str) -> Model {
    let mut model = model(theme, rows());
    model.chosen = Some("docs".to_owned());
    press(&mut model, key);
    fill(&mut model, "what it says");
    model
}

fn bugs() -> BugsView {
    let mut report = report();
    let commit = report.history.value().unwrap().timeline[0].head_after.clone();
    let bug =
        |id: &str, severity: peers_model::bug::Severity, open: Option<&'static str>, title: &str| BugRow {
            id: BugId::new(id).unwrap(),
            severity,
            title: title.to_owned(),
            location: Some("src/median.sh:3".to_owned()),
            status: peers_core::bugs::BugStatus::Open,
            open,
            found_by: "alice".to_owned(),
            found_in: commit.clone(),
            found_at: now(),
            resolved_by: None,
            resolved_in: None,
            verified_by: Vec::new(),
            reproduced: true,
        };
    report.view.bugs = Sourced::Missing;
    let rows = vec![
        bug(
            "B-1",
            peers_model::bug::Severity::High,
            Some("not resolved"),
            "negative values sort before positive ones",
        ),
        bug("B-2", peers_model::bug::Severity::Low, None, "a word is misspelt"),
    ];
    BugsView { rows, total: 2, open: 1, blocking: 1, warnings: Vec::new() }
}

fn all() -> Vec<Shown> {
    vec![
        ("fleet", fleet),
        ("fleet_marked", |theme| {
            let mut model = fleet(theme);
            press(&mut model, "  v");
            model
        }),
        ("filter", |theme| {
            let mut model = fleet(theme);
            press(&mut model, "/level:act !pars");
            model
        }),
        ("overview", |theme| tab(theme, "1")),
        ("live", |theme| tab(theme, "2")),
        ("gates", |theme| tab(theme, "3")),
        ("gates_then", |theme| {
            let mut model = tab(theme, "3");
            press(&mut model, "[[[[");
            model
        }),
        ("ticks", |theme| tab(theme, "4")),
        ("diff", |theme| tab(theme, "5")),
        ("bugs", |theme| {
            let mut model = tab(theme, "6");
            let mut report = report();
            report.view.bugs = Sourced::Fresh(bugs());
            standing(&mut model, report);
            model
        }),
        ("reviews", |theme| tab(theme, "7")),
        ("plan", |theme| tab(theme, "8")),
        ("logs", |theme| tab(theme, "9")),
        ("config", |theme| tab(theme, "0")),
        ("damaged", |theme| {
            let mut model = tab(theme, "1");
            standing(&mut model, damaged());
            model
        }),
        ("tick", |theme| {
            let mut model = tab(theme, "4");
            press(&mut model, "<Enter>");
            fill(&mut model, "what its record says");
            model
        }),
        ("events", |theme| {
            let mut model = fleet(theme);
            press(&mut model, "e");
            model
        }),
        ("doctor", |theme| {
            let mut model = fleet(theme);
            press(&mut model, "D");
            let mut page = peers_view::Page::default();
            page.tell(Tone::Good, "ok       git 2.47");
            page.tell(Tone::Bad, "error    claude is not logged in");
            model.update(Msg::Answer(Ask::Doctor(Vec::new()), Ok(page)));
            model
        }),
        ("compare", |theme| {
            let mut model = fleet(theme);
            press(&mut model, "  c");
            model.update(Msg::Answer(
                Ask::Compare(Vec::new()),
                Err("fewer than two of them can be read".to_owned()),
            ));
            model
        }),
    ]
}

fn dialogs() -> Vec<Shown> {
    vec![
        ("help", |theme| {
            let mut model = fleet(theme);
            press(&mut model, "?");
            model
        }),
        ("palette", |theme| {
            let mut model = fleet(theme);
            press(&mut model, ":bud");
            model
        }),
        ("confirm", |theme| {
            let mut model = fleet(theme);
            press(&mut model, "X");
            model
        }),
        ("choice", |theme| {
            let mut model = fleet(theme);
            press(&mut model, "S");
            model
        }),
        ("form", |theme| {
            let mut model = fleet(theme);
            press(&mut model, "N/srv/new<Tab><Tab>make test");
            model
        }),
        ("output", |theme| {
            let mut model = fleet(theme);
            let argv = ["peers-ctl", "start", "docs"].map(str::to_owned).to_vec();
            let output = "error: already running\nhint: `peers-ctl status docs`\n".to_owned();
            model.update(Msg::Done(argv, crate::host::Done { code: Some(4), output }));
            model
        }),
        ("empty", |theme| model(theme, Vec::new())),
    ]
}

#[test]
fn every_screen_is_as_it_was_reviewed() {
    for (name, make) in all().into_iter().chain(dialogs()) {
        for size in SIZES {
            let dark = text(&drawn(&mut make(ThemeName::Dark), size));
            insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), dark);
            // A look changes no word and no place, but for signs that ASCII has not.
            for theme in [ThemeName::Light, ThemeName::Mono] {
                assert_eq!(text(&drawn(&mut make(theme), size)), dark, "{name}");
            }
        }
    }
}

#[test]
fn every_screen_in_ascii_is_as_it_was_reviewed() {
    for (name, make) in all().into_iter().chain(dialogs()) {
        for (width, height) in SIZES {
            let ascii = text(&drawn(&mut make(ThemeName::Ascii), (width, height)));
            assert!(ascii.is_ascii(), "{name}: {ascii}");
            insta::assert_snapshot!(format!("{name}_ascii_{width}x{height}"), ascii);
        }
    }
}

#[test]
fn a_look_without_colours_has_none_and_others_differ() {
    let colours = |theme: ThemeName| {
        let terminal = drawn(&mut fleet(theme), (120, 40));
        let mut all: Vec<Color> = terminal.backend().buffer().content.iter().map(|cell| cell.fg).collect();
        all.sort_by_key(|colour| format!("{colour:?}"));
        all.dedup();
        all
    };
    assert_eq!(colours(ThemeName::Mono), [Color::Reset]);
    assert!(colours(ThemeName::Dark).contains(&Color::LightRed));
    assert!(colours(ThemeName::Light).iter().any(|colour| matches!(colour, Color::Rgb(..))));
    assert_ne!(colours(ThemeName::Dark), colours(ThemeName::Light));
}

#[test]
fn hostile_and_huge_values_steer_nothing_on_any_screen() {
    for (name, make) in all().into_iter().chain(dialogs()) {
        let mut model = make(ThemeName::Dark);
        model.update(Msg::Rows(Ok(crate::host::Snapshot {
            at: now(),
            rows: hostile_rows(),
            warnings: Vec::new(),
        })));
        if model.screen == Screen::Loop {
            model.one.name = hostile_rows()[0].name.clone();
        }
        fill(&mut model, EVIL);
        events(&mut model, EVIL);
        for (width, height) in SIZES {
            let terminal = drawn(&mut model, (width, height));
            for cell in &terminal.backend().buffer().content {
                let bad = |c: char| {
                    c.is_control()
                        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{200b}' | '\u{e0000}'..='\u{e007f}')
                };
                assert!(!cell.symbol().chars().any(bad), "{name}: {:?}", cell.symbol());
            }
        }
    }
}

#[test]
fn any_size_of_terminal_is_drawn_on() {
    for (name, make) in all().into_iter().chain(dialogs()) {
        let mut model = make(ThemeName::Dark);
        for width in [1, 2, 39, 40, 41, 57, 79, 81, 110, 400] {
            for height in [1, 2, 9, 10, 11, 17, 29, 31, 120] {
                let shown = text(&drawn(&mut model, (width, height)));
                assert!(!shown.trim().is_empty(), "{name} at {width}x{height}");
            }
        }
    }
}

#[test]
fn what_cannot_be_read_is_said_and_never_shown_as_nothing() {
    for key in ["1", "3", "4", "6"] {
        let mut model = tab(ThemeName::Dark, key);
        standing(&mut model, damaged());
        let shown = text(&drawn(&mut model, (120, 40)));
        assert!(shown.contains("cannot be read"), "{key}: {shown}");
    }
    for (key, part) in [("2", Tab::Live), ("5", Tab::Diff), ("7", Tab::Reviews), ("9", Tab::Logs)] {
        let mut model = tab(ThemeName::Dark, key);
        assert_eq!(model.one.tab, part);
        let (name, parts) = model.want().of.unwrap();
        for part in parts {
            let content = Err("permission denied".to_owned());
            model.update(Msg::Part { name: name.clone(), part, content });
        }
        let shown = text(&drawn(&mut model, (120, 40)));
        assert!(
            shown.contains("this cannot be read") && shown.contains("permission denied"),
            "{key}: {shown}"
        );
    }
    let mut model = fleet(ThemeName::Dark);
    model.update(Msg::Rows(Err("projects.json line 3 is damaged".to_owned())));
    let shown = text(&drawn(&mut model, (80, 24)));
    // What was known stays, and why there is nothing newer.
    assert!(shown.contains("parser") && shown.contains("projects.json line 3 is damaged"), "{shown}");
    assert!(!shown.contains("as of"), "{shown}");
    model.now = peers_model::Timestamp::from_millis(model.now.as_millis() + 45_000);
    let shown = text(&drawn(&mut model, (120, 24)));
    assert!(shown.contains("as of 45s ago"), "{shown}");
}

#[test]
fn a_tick_in_full_goes_from_text_to_text() {
    let mut model = tab(ThemeName::Dark, "4");
    press(&mut model, "<Enter>");
    for what in [TickText::Prompt, TickText::Output, TickText::Errors, TickText::Record] {
        press(&mut model, "<Right>");
        let Some(Dialog::Tick { tick, what: shown, .. }) = &model.dialog else {
            panic!("{:?}", model.dialog)
        };
        assert_eq!((*tick, *shown), (TickNo(6), what));
    }
}

#[test]
fn what_an_agent_says_is_folded_and_all_of_it_can_be_reached() {
    let mut model = tab(ThemeName::Dark, "2");
    let words = |n: usize| LiveLine {
        kind: "say",
        cell: Cell::new(Tone::Plain, format!("{n:>2}{}", " word".repeat(40))),
    };
    let live = Live { head: "tick 3 of alice".to_owned(), lines: (0..30).map(words).collect(), open: false };
    let (name, part) = (model.one.name.clone(), Part::Live(None));
    model.update(Msg::Part { name, part, content: Ok(Content::Live(live)) });
    let shown = text(&drawn(&mut model, (80, 24)));
    assert!(shown.contains("29 word") && !shown.contains(" 0 word"), "{shown}");
    // Each takes three rows, and none of its words is lost.
    assert_eq!(shown.matches(" word").count(), 5 * 40 + 28, "{shown}");
    press(&mut model, "g");
    let shown = text(&drawn(&mut model, (80, 24)));
    assert!(shown.contains(" 0 word") && !shown.contains("29 word"), "{shown}");
    press(&mut model, "G");
    assert!(text(&drawn(&mut model, (80, 24))).contains("29 word"));
}

#[test]
fn a_gate_that_is_chosen_is_told_in_full_and_its_name_is_not_cut() {
    let mut report = report();
    let Sourced::Fresh(core) = &mut report.view.core else { panic!("a core") };
    core.gates[0].state = "fail";
    core.gates[0].diagnostic = format!("error: first {}last", "word ".repeat(50));
    let mut model = tab(ThemeName::Dark, "3");
    standing(&mut model, report);
    let shown = text(&drawn(&mut model, (80, 24)));
    assert!(shown.contains("self-review-on-handoff "), "{shown}");
    assert!(shown.contains("word last"), "{shown}");
    // Of the past that is not known.
    press(&mut model, "[");
    let shown = text(&drawn(&mut model, (80, 24)));
    assert!(shown.contains("tests-pass now: ") && shown.contains("2/2 reviews now"), "{shown}");
}
