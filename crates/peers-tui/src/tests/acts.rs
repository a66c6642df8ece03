//! What keys do: which command runs, and what is asked before.

use peers_view::Level;

use super::sample::*;
use crate::dialog::Dialog;
use crate::filter::{Filter, Sort};
use crate::host::{At, Event, Snapshot};
use crate::keys::TABLE;
use crate::message::{Ask, Cmd, Msg};
use crate::model::{EVENTS, Model, Screen, Tab};
use crate::theme::ThemeName;

fn fleet() -> Model {
    let mut model = model(ThemeName::Dark, rows());
    drawn(&mut model, (120, 40));
    model
}

fn choose(model: &mut Model, name: &str) {
    model.chosen = Some(name.to_owned());
}

/// The commands that were asked for, as they are typed.
fn ran(cmds: &[Cmd]) -> Vec<String> {
    let run = cmds.iter().flat_map(|cmd| match cmd {
        Cmd::Run(all) => all.clone(),
        Cmd::Show(argv, _) => vec![argv.clone()],
        _ => Vec::new(),
    });
    run.map(|argv| argv.join(" ")).collect()
}

#[test]
fn each_suggestion_has_a_key_that_leads_to_its_command() {
    for (name, keys, command) in [
        ("parser", "ry", "peers-ctl resume parser --start"),
        ("parser", "fy", "peers-ctl resume parser --start"),
        ("mailer", "s<Enter>y", "peers-ctl start mailer"),
        ("mailer", "fy", "peers-ctl start mailer"),
        ("gateway", "+<Tab><Tab><Tab>+5<Enter>y", "peers-ctl budget raise gateway --usd +5"),
        ("gateway", "fy", "peers-ctl budget raise gateway --usd +5"),
        ("billing", "td", "peers -C /srv/billing goals diff"),
        ("billing", "f", "peers -C /srv/billing goals diff"),
        ("legacy", "f", "peers-ctl doctor legacy"),
    ] {
        let mut model = fleet();
        choose(&mut model, name);
        assert_eq!(ran(&press(&mut model, keys)), [command], "{name} {keys}");
    }
}

#[test]
fn what_agents_may_do_changes_only_by_a_word_that_is_typed() {
    for (keys, word, command) in [
        ("X", "docs", "peers-ctl remove docs"),
        ("aSTEP-3<Tab>known<Enter>", "STEP-3", "peers-ctl ack-block docs STEP-3 --reason known"),
        ("Amake ok<Tab>moved<Enter>", "docs", "peers-ctl amend docs --acceptance make ok --reason moved"),
        ("tr", "docs", "peers -C /srv/docs goals restore"),
    ] {
        let mut model = fleet();
        choose(&mut model, "docs");
        assert_eq!(ran(&press(&mut model, keys)), [""; 0], "{keys}");
        // Neither nothing nor something else is enough.
        for not in ["<Enter>", "y<Enter>", "<Back><Enter>"] {
            assert_eq!(ran(&press(&mut model, not)), [""; 0], "{keys} {not}");
        }
        let cmds = press(&mut model, &format!("{word}<Enter>"));
        assert_eq!(ran(&cmds), [command], "{keys}");
    }
}

#[test]
fn a_no_runs_nothing() {
    for keys in
        ["r<Esc>", "rn", "S<Esc>", "Sn", "s<Esc>", "s<Enter>n", "X<Esc>", "N<Esc>", "+<Esc>", "t<Esc>"]
    {
        let mut model = fleet();
        choose(&mut model, "parser");
        assert_eq!(ran(&press(&mut model, keys)), [""; 0], "{keys}");
        assert!(model.dialog.is_none(), "{keys}");
    }
}

#[test]
fn one_that_only_reads_has_no_key_that_changes_anything() {
    let mut model = Model::new(crate::Options { read_only: true, ..options(ThemeName::Dark) }, now());
    model.update(Msg::Rows(Ok(Snapshot { at: now(), rows: rows(), warnings: Vec::new() })));
    for binding in TABLE.iter().filter(|binding| binding.changes()) {
        for key in binding.keys {
            assert_eq!(press(&mut model, key).len(), 0, "{key}");
            assert!(model.dialog.is_none(), "{key}");
        }
    }
}

#[test]
fn marked_loops_are_acted_on_together() {
    let mut model = fleet();
    press(&mut model, "/level:act<Enter>*");
    assert_eq!(model.marked.len(), 5);
    let cmds = press(&mut model, "Sg");
    assert_eq!(ran(&cmds), ["peers-ctl stop billing gateway legacy mailer parser"]);
    assert!(matches!(model.dialog, Some(Dialog::Running(_))));
    // What is at work is not closed.
    press(&mut model, "<Esc>");
    assert!(matches!(model.dialog, Some(Dialog::Running(_))));
    let mut model = fleet();
    assert_eq!(press(&mut model, "c"), []);
    let cmds = press(&mut model, "  c");
    assert!(
        cmds.iter().any(|cmd| matches!(cmd, Cmd::Ask(Ask::Compare(names)) if names.len() == 2)),
        "{cmds:?}"
    );
}

#[test]
fn marks_out_of_sight_are_not_acted_on_and_what_is_about_one_loop_is_about_the_chosen_one() {
    let mut model = fleet();
    choose(&mut model, "parser");
    press(&mut model, " /mailer<Enter>");
    assert_eq!((model.marked.len(), model.chosen.as_deref()), (1, Some("mailer")));
    assert_eq!(ran(&press(&mut model, "SK")), ["peers-ctl stop mailer --now"]);
    let mut model = fleet();
    press(&mut model, "*");
    choose(&mut model, "billing");
    assert_eq!(ran(&press(&mut model, "td")), ["peers -C /srv/billing goals diff"]);
}

#[test]
fn the_word_of_a_choice_is_of_the_loop_that_it_is_about() {
    let mut model = fleet();
    choose(&mut model, "docs");
    press(&mut model, "t");
    // It left the list meanwhile, and another one is chosen.
    choose(&mut model, "parser");
    press(&mut model, "r");
    assert_eq!(ran(&press(&mut model, "parser<Enter>")), [""; 0]);
    press(&mut model, "<Back><Back><Back><Back><Back><Back>");
    assert_eq!(ran(&press(&mut model, "docs<Enter>")), ["peers -C /srv/docs goals restore"]);
}

#[test]
fn what_is_suggested_runs_at_once_only_where_it_shows_something_or_asks_itself() {
    for (verb, argv, asks, at) in [
        ("", &["/bin/sh", "-c", "codex login"][..], true, At::Home),
        ("", &["fuser", "-v", "x"], true, At::Dir("/srv/parser".to_owned())),
        ("", &["less", "x.log"], false, At::Dir("/srv/parser".to_owned())),
        ("goals edit", &["peers", "goals", "edit"], false, At::Dir("/srv/parser".to_owned())),
        ("doctor --live", &["peers-ctl", "doctor", "parser", "--live"], true, At::Here),
        ("doctor", &["peers-ctl", "doctor", "parser"], false, At::Here),
    ] {
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
        let mut all = rows();
        let row = all.iter_mut().find(|row| row.name == "parser").unwrap();
        row.attention.top.commands = vec![peers_view::Typed {
            line: argv.join(" "),
            argv: argv.clone(),
            verb,
            is_line: at == At::Home,
        }];
        let mut model = model(ThemeName::Dark, all);
        choose(&mut model, "parser");
        let mut cmds = press(&mut model, "f");
        assert_eq!(ran(&cmds).is_empty(), asks, "{argv:?}");
        if asks {
            assert!(matches!(model.dialog, Some(Dialog::Confirm(_))));
            cmds = press(&mut model, "y");
        }
        assert_eq!(ran(&cmds), [argv.join(" ")]);
        let shown = cmds.iter().find_map(|cmd| if let Cmd::Show(_, at) = cmd { Some(at) } else { None });
        assert_eq!(shown.unwrap_or(&At::Here), &at, "{argv:?}");
    }
}

#[test]
fn what_a_command_printed_is_folded_and_what_it_found_is_no_failure() {
    let argv = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let done = |code| crate::host::Done { code: Some(code), output: "x".repeat(250) };
    let text = |words: &[&str], code| {
        crate::dialog::Output::of(&argv(words), &done(code), 100).page.text(peers_view::Colour::Plain)
    };
    let found = text(&["peers", "-C", "/srv/docs", "goals", "diff"], 1);
    assert!(found.contains("exit code 1") && !found.contains('\u{2717}'), "{found}");
    assert!(found.lines().all(|line| line.len() <= 100) && found.matches('x').count() == 251, "{found}");
    assert!(text(&["peers-ctl", "stop", "docs"], 3).contains('\u{2717}'));
}

#[test]
fn a_filter_takes_words_keys_lists_and_their_opposites() {
    let names = |text: &str| -> Vec<String> {
        let filter = Filter::read(text);
        rows().iter().filter(|row| filter.takes(row)).map(|row| row.name.clone()).collect()
    };
    assert_eq!(names("parser"), ["parser"]);
    assert_eq!(names("level:watch"), ["search"]);
    assert_eq!(names("state:running,crashed"), ["mailer", "search", "docs"]);
    assert_eq!(names("state:running !search"), ["docs"]);
    assert_eq!(names("tool:claude code:budget"), ["gateway"]);
    // A key that is none is a part of a name or a reason.
    assert_eq!(names("budget:max"), ["gateway"]);
    assert_eq!(names("peer:nobody"), [""; 0]);
    assert_eq!(names("  ! : ").len(), 0);
    assert_eq!(names("").len(), rows().len());
}

#[test]
fn loops_are_sorted_by_each_column_and_the_other_way_round() {
    let mut model = fleet();
    let order = |model: &Model| Model::names(&model.rows());
    let by_attention = order(&model);
    assert_eq!(by_attention[..2], ["billing", "gateway"]);
    press(&mut model, "o");
    assert_eq!(model.prefs.sort, Sort::Name);
    let by_name = order(&model);
    assert!(by_name.is_sorted());
    press(&mut model, "O");
    assert_eq!(order(&model), by_name.into_iter().rev().collect::<Vec<_>>());
}

#[test]
fn the_bell_rings_for_a_loop_that_comes_to_need_somebody_and_for_nothing_else() {
    let mut model = fleet();
    let mut now_needy = rows();
    let take = |model: &mut Model, rows| {
        model.update(Msg::Rows(Ok(Snapshot { at: now(), rows, warnings: Vec::new() })))
    };
    assert!(!take(&mut model, now_needy.clone()).contains(&Cmd::Bell));
    let docs = now_needy.iter().position(|row| row.name == "docs").unwrap();
    now_needy[docs] = needs("docs", (Level::Act, "stuck", "stuck"), &[]);
    assert!(take(&mut model, now_needy.clone()).contains(&Cmd::Bell));
    assert!(!take(&mut model, now_needy.clone()).contains(&Cmd::Bell));
    press(&mut model, "b");
    now_needy[docs] = running("docs");
    take(&mut model, now_needy.clone());
    now_needy[docs] = needs("docs", (Level::Act, "stuck", "stuck"), &[]);
    assert!(!take(&mut model, now_needy).contains(&Cmd::Bell));
}

#[test]
fn what_is_looked_at_is_what_is_read_and_nothing_else() {
    let mut model = fleet();
    choose(&mut model, "docs");
    let cmds = press(&mut model, "2");
    let wants = cmds.iter().any(|cmd| {
        matches!(cmd, Cmd::Want(want) if want.of.as_ref().is_some_and(|(name, parts)| name == "docs" && parts.len() == 2))
    });
    assert!(wants, "{cmds:?}");
    // What comes late of another loop, or of another tick, is not shown.
    press(&mut model, "5");
    fill(&mut model, "x");
    press(&mut model, "[");
    let part = crate::host::Part::Diff(None, None);
    let content = Ok(crate::host::Content::Diff(crate::host::Diff {
        title: "LATE ONE".to_owned(),
        ..Default::default()
    }));
    model.update(Msg::Part { name: "docs".to_owned(), part, content });
    assert!(!text(&drawn(&mut model, (120, 40))).contains("LATE ONE"));
    let back = press(&mut model, "<Esc>");
    assert!(back.iter().any(|cmd| matches!(cmd, Cmd::Want(want) if want.of.is_none())), "{back:?}");
    assert_eq!(model.screen, Screen::Fleet);
}

#[test]
fn events_are_bounded_and_older_ones_stay_where_they_are_looked_at() {
    let mut model = fleet();
    press(&mut model, "e");
    let event = |n: usize| Event {
        name: "docs".to_owned(),
        ts: now(),
        cells: vec![peers_view::Cell::new(peers_view::Tone::Plain, format!("event {n}"))],
    };
    model.update(Msg::Events((0..EVENTS + 100).map(event).collect()));
    assert_eq!(model.events.len(), EVENTS);
    drawn(&mut model, (80, 24));
    press(&mut model, "kkk");
    let before = text(&drawn(&mut model, (80, 24)));
    model.update(Msg::Events(vec![event(9_999), event(9_998)]));
    let after = text(&drawn(&mut model, (80, 24)));
    let body = |text: &str| text.lines().skip(2).take(20).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(body(&before), body(&after));
}

#[test]
fn a_search_goes_on_from_match_to_match() {
    let mut model = fleet();
    choose(&mut model, "docs");
    press(&mut model, "0");
    fill(&mut model, "needle in it");
    drawn(&mut model, (80, 24));
    press(&mut model, "/needle<Enter>");
    assert_eq!(model.one.scroll, 1);
    press(&mut model, "/nowhere<Enter>");
    assert!(model.note.as_deref().is_some_and(|note| note.contains("nowhere")), "{:?}", model.note);
}

#[test]
fn clicks_choose_open_and_sort() {
    use ratatui::crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
    let mut model = fleet();
    let click = |model: &mut Model, column: u16, row: u16| {
        let kind = MouseEventKind::Down(MouseButton::Left);
        model.update(Msg::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }))
    };
    let (area, _) = model.hits.list.unwrap();
    click(&mut model, area.x + 3, area.y + 2);
    let chosen = model.chosen.clone().unwrap();
    assert_eq!(model.rows()[2].name, chosen);
    let (head, sort) = model.hits.heads[0];
    click(&mut model, head.x, head.y);
    assert_eq!(model.prefs.sort, sort);
    drawn(&mut model, (120, 40));
    let at = u16::try_from(model.rows().iter().position(|row| row.name == chosen).unwrap()).unwrap();
    click(&mut model, area.x + 3, area.y + at);
    assert_eq!(model.screen, Screen::Loop);
    drawn(&mut model, (120, 40));
    let (tab, what) = model.hits.tabs[3];
    click(&mut model, tab.x, tab.y);
    assert_eq!((model.one.tab, what), (Tab::Ticks, Tab::Ticks));
}

#[test]
fn pasted_text_is_no_keys() {
    let mut model = fleet();
    assert_eq!(model.update(Msg::Paste("Sn".to_owned())), []);
    assert!(model.dialog.is_none());
    press(&mut model, "/");
    model.update(Msg::Paste("par\nser".to_owned()));
    assert_eq!(model.prefs.filter, "par ser");
}

#[test]
fn the_palette_finds_by_letters_and_does_what_the_key_does() {
    let mut model = fleet();
    choose(&mut model, "parser");
    press(&mut model, ":rsme<Enter>");
    assert!(matches!(model.dialog, Some(Dialog::Confirm(_))), "{:?}", model.dialog);
}

#[test]
fn no_key_has_two_meanings_on_one_screen_that_help_tells() {
    use crate::keys::Spot;
    for screen in [Screen::Fleet, Screen::Loop, Screen::Events, Screen::Doctor, Screen::Compare] {
        for tab in Tab::ALL {
            let spot = Spot { screen, tab, by_name: true, read_only: false };
            let mut known = std::collections::BTreeMap::new();
            for binding in TABLE.iter().filter(|binding| binding.counts(spot)) {
                for key in binding.keys {
                    let other = known.insert(*key, binding.about);
                    assert_eq!(other, None, "{key} on {screen:?} {tab:?}: {}", binding.about);
                }
            }
        }
    }
}
