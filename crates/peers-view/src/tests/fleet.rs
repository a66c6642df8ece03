//! Many loops as a list and as a dashboard.

use super::*;

use super::hostile::EVIL;
use super::row::asked;
use super::row::lock;

/// A row of this world under a name.
fn named(world: &World, name: &str, held: bool) -> LoopRow {
    let path = format!("/srv/{name}");
    let mut asked = asked(world, if held { lock(world) } else { Lock::Free });
    asked.spelling = Spelling::Ctl { name: name.into(), dir: path.clone(), config_dir: None };
    asked.listed = Listed { name: name.into(), path, ..Listed::default() };
    asked.bugs = Sourced::Fresh(Counts::default());
    LoopRow::read(&mut world.disk(), &asked)
}

fn now() -> Timestamp {
    Timestamp::from_millis(super::BEGAN + 200_000)
}

/// One of each kind, not in order.
fn rows() -> Vec<LoopRow> {
    let mut rows = Vec::new();
    let mut world = World::running();
    world.gates(0, vec![judged("tests-pass", 'a', Verdict::Pass)]);
    world.begin_tick(1, "claude");
    rows.push(named(&world, "docs", true));
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    world.gates(
        1,
        vec![judged("tests-pass", 'b', red("3 failed: lex::numbers, lex::strings, lex::comments"))],
    );
    world.exit(StopReason::StuckGate(goal("tests-pass")), "");
    let mut parser = named(&world, "parser", false);
    parser.bugs = Some(Counts { open: OpenBugs { high: 2, ..OpenBugs::default() }, blocking: 2 });
    rows.push(parser);
    let mut world = World::running();
    world.tick(1, "claude", |tick| tick.exit.usage.usd = Some(Usd::from_micros(5_250_000)));
    world.exit(StopReason::Budget(BudgetKind::MaxUsd), "");
    let mut billing = named(&world, "billing", false);
    billing.labels.insert("team".into(), "pay".into());
    rows.push(billing);
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    world.exit(StopReason::Complete, "");
    rows.push(named(&world, "search", false));
    rows.push(named(&World::new(), "new", false));
    let world = World::running();
    let mut gone = asked(&world, Lock::Free);
    gone.listed = Listed {
        name: EVIL.into(),
        path: format!("/srv/{EVIL}"),
        unknown: Some(Unknown {
            since: None,
            outcome: Some("path_missing".into()),
            why: EVIL.into(),
            nobody: false,
        }),
        ..Listed::default()
    };
    gone.spelling = Spelling::Ctl { name: EVIL.into(), dir: EVIL.into(), config_dir: None };
    gone.bugs = Sourced::Unreadable(EVIL.into());
    rows.push(LoopRow::read(&mut world.disk(), &gone));
    let mut world = World::running();
    world.begin_tick(1, "claude");
    rows.push(named(&world, "日本語のとても長い名前のプロジェクト", false));
    rows
}

fn fleet(rows: &[LoopRow]) -> Fleet<'_> {
    Fleet { now: now(), rows, warnings: &[] }
}

#[test]
fn the_most_urgent_come_first_then_by_name_and_in_a_pipe_or_a_list_everything_is_there() {
    let mut rows = rows();
    sort_by_attention(&mut rows);
    insta::assert_snapshot!("list", list_text(&fleet(&rows), Colour::Plain, true));
    insta::assert_snapshot!("dashboard_piped", dashboard_text(&fleet(&rows), None, Colour::Plain));
}

#[test]
fn at_eighty_columns_the_reason_stays_and_a_command_that_does_not_fit_stands_below() {
    let mut rows = rows();
    sort_by_attention(&mut rows);
    insta::assert_snapshot!("dashboard_80", dashboard_text(&fleet(&rows), Some(80), Colour::Plain));
    insta::assert_snapshot!("dashboard_200", dashboard_text(&fleet(&rows), Some(200), Colour::Plain));
}

#[test]
fn no_line_of_a_table_is_wider_than_the_terminal_and_none_steers_it() {
    let mut rows = rows();
    sort_by_attention(&mut rows);
    for width in 20..220 {
        let text = dashboard_text(&fleet(&rows), Some(width), Colour::Plain);
        assert!(is_harmless(&text), "{text:?}");
        if width >= 80 {
            let table = text.lines().filter(|line| !line.starts_with("  →"));
            for line in table {
                assert!(term::width(line) <= width, "{width}: {line}");
            }
        }
    }
    let coloured = dashboard_text(&fleet(&rows), Some(80), Colour::Ansi);
    let plain = dashboard_text(&fleet(&rows), Some(80), Colour::Plain);
    let mut stripped = coloured.clone();
    for code in ["0", "1", "2", "31", "32", "33"] {
        stripped = stripped.replace(&format!("\u{1b}[{code}m"), "");
    }
    assert_eq!(stripped.lines().map(str::trim_end).collect::<Vec<_>>(), plain.lines().collect::<Vec<_>>());
}

#[test]
fn nothing_to_show_is_said() {
    assert_eq!(dashboard_text(&fleet(&[]), Some(80), Colour::Plain), "0 loops\n");
}

#[test]
fn what_is_summed_up_is_a_lower_bound_where_one_of_them_is_unknown() {
    let rows = rows();
    let all = Summary::of(&rows);
    assert_eq!((all.loops, all.act, all.running, all.done, all.crashed), (7, 4, 1, 1, 1));
    assert_eq!(all.usd, Usd::from_micros(6_250_000));
    assert!(!all.at_least);
    let mut rows = rows;
    rows[0].cost = None;
    assert!(Summary::of(&rows).at_least);
}

#[test]
fn programs_get_rows_a_summary_and_all_warnings_in_one_document_or_line() {
    let rows = rows();
    let warnings = [FleetWarning { code: "registry".into(), message: EVIL.into(), project: None }];
    let fleet = Fleet { warnings: &warnings, ..fleet(&rows) };
    for (text, schema) in
        [(dashboard_json(&fleet), "peers-ctl.dashboard/1"), (dashboard_line(&fleet), "peers-ctl.dashboard/1")]
    {
        assert!(is_harmless(&text));
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["schema"], schema);
        assert_eq!(value["generated_at"], "2023-11-14T22:16:40.000Z");
        assert_eq!(value["data"]["projects"].as_array().unwrap().len(), 7);
        assert_eq!(value["data"]["projects"][5]["name"], EVIL);
        assert_eq!(value["data"]["projects"][5]["bugs"], Value::Null);
        assert_eq!(value["data"]["summary"]["act"], 4);
        assert_eq!(value["warnings"][0]["project"], Value::Null);
        assert_eq!(value["warnings"][1]["code"], "bugs");
        assert_eq!(value["warnings"][1]["project"], EVIL);
    }
    assert_eq!(dashboard_line(&fleet).matches('\n').count(), 1);
}

#[test]
fn one_project_shows_what_it_did_last_and_its_open_bugs() {
    let mut world = World::running();
    for tick in 1..=7 {
        world.tick(tick, "claude", |tick| {
            tick.success = tick.iteration.0 % 2 == 0;
            if !tick.success {
                tick.outcome = peers_model::record::TickOutcome::NoHandoff;
                tick.soft_fail_reason = Some(EVIL.into());
            }
        });
    }
    world.exit(StopReason::MaxTicks, "");
    world.another_run("00000000000000bb");
    world.tick(8, "codex", |_| {});
    let row = named(&world, "billing", true);
    let passed = Passed::read(&mut world.disk());
    assert_eq!(passed.value().unwrap().len(), 8);
    let details = ProjectDetails { notes: EVIL.into(), passed, bugs: Sourced::Missing };
    let text = project_text(&row, &details, now(), Colour::Plain);
    assert!(is_harmless(&text), "{text:?}");
    insta::assert_snapshot!("project", text);
    let value: Value = serde_json::from_str(&project_json(&row, &details, now())).unwrap();
    assert_eq!(value["schema"], "peers-ctl.dashboard/1");
    assert_eq!(value["data"]["notes"], EVIL);
    assert_eq!(value["data"]["passed"]["value"][6]["kind"], "exit");
    let unread = ProjectDetails {
        notes: String::new(),
        passed: Sourced::Unreadable("no".into()),
        bugs: Sourced::Unreadable("no".into()),
    };
    let text = project_text(&row, &unread, now(), Colour::Plain);
    assert!(
        text.contains("bugs:      unreadable: no\n") && text.contains("ticks:     unreadable: no\n"),
        "{text}"
    );
}
