//! Whatever an agent writes, no text form steers a terminal and no JSON form loses it.

use super::*;

/// Colour, title, clear screen, C1, direction, zero width, a line end, a bell, table and code marks.
pub(super) const EVIL: &str = "E\u{1b}[31m\u{1b}]0;t\u{7}\u{1b}[2J\u{9b}1m\u{202e}\u{200b}\u{feff}\r\nX\u{0}\u{8}\u{7f}|`</td>[a](b)\u{e0041}!";

fn evil() -> String {
    EVIL.to_owned()
}

/// A journal with hostile text in every field that may hold any.
pub(super) fn world() -> World {
    let mut world = World::running();
    let ack = OperatorOp::Ack { target: peers_model::record::AckTarget::Concern(evil()), reason: evil() };
    world.append(Record::Operator(OperatorRecord { op: ack, by: evil() }));
    world.begin_tick(1, "claude");
    world.append(Record::CorrectionPlanned(CorrectionPlanned {
        tick: TickNo(1),
        kind: CorrectionKind::Revert,
        from: commit('b'),
        to: commit('a'),
        branch: Some(evil()),
        reason: evil(),
    }));
    world.end_tick(1, "claude", |tick| {
        tick.tool = evil();
        fail(tick, TickOutcome::NeedsOperator);
        tick.classification = evil();
        tick.soft_fail_reason = Some(evil());
        tick.exit.class = ExitClass::Nonzero;
        tick.exit.api = ApiClass::Auth;
        tick.exit.model = Some(evil());
        tick.exit.matched =
            Some(Matched { pattern: evil(), key: Some(evil()), snippet: evil(), source: evil() });
        (tick.exit.stdout_tail, tick.exit.stderr_tail) = (evil(), evil());
        tick.branch = Some(evil());
        tick.corrected = Some(CorrectionKind::Revert);
        tick.salvage = Some(evil());
        tick.warnings_emitted = vec![evil()];
        tick.justification = Some(evil());
        tick.git_tampered = vec![evil()];
        tick.published = vec![evil()];
        tick.peer_state_after = evil();
        tick.verdicts = vec![judged("tests-pass", 'b', red(EVIL))];
        tick.reviews =
            vec![AcceptedReview { goal: goal("docs-read"), pass: false, sha: commit('c'), notes: evil() }];
        tick.scopes.insert(goal("docs-read"), ScopeMove { before: evil(), after: evil() });
        tick.gates.insert(goal("tests-pass"), evil());
    });
    world.append(Record::Cooling(Cooling {
        peer: name("claude"),
        until: Timestamp::from_millis(world.now),
        streak: 1,
        cause: peers_model::record::WaitCause::UsageCap,
        since: None,
    }));
    world.append(Record::MirrorRestored(MirrorRestored { tick: None, what: evil() }));
    world.append(Record::HookFailed(HookFailed {
        tick: TickNo(1),
        hook: Hook::PostTurn,
        what: evil(),
        times: 2,
    }));
    world.gates(1, vec![judged("lint-clean", 'b', Verdict::Error { diagnostic: evil() })]);
    world.append(proof(vec![judged("tests-pass", 'b', red(EVIL))]));
    let attached = OperatorOp::StoreAttached { old_path: evil() };
    world.append(Record::Operator(OperatorRecord { op: attached, by: evil() }));
    world.exit(StopReason::GoalMutation(evil()), EVIL);
    world
}

fn report(world: &World) -> Report {
    let message = format!(
        "{EVIL}\n\n## Bug-Report\n{}\n\nBug-Report: B1\n",
        serde_json::json!({"id": "B1", "severity": "high", "title": EVIL, "location": EVIL, "fix_by": EVIL, "description": EVIL})
    );
    let found = LedgerCommit {
        id: commit('c'),
        author: Author::Peer(name("claude")),
        time: Timestamp::from_millis(0),
        message,
        paths: Vec::new(),
        voided: false,
    };
    let mut asked = world.asked(Lock::Free);
    asked.git = Sourced::Fresh(GitFacts {
        branch: Some(evil()),
        head_tree: Some(super::tree('1')),
        worktree: Some(super::tree('2')),
        dirty: Some(Paths { first: vec![evil(), evil()], count: 2, more: false }),
        bugs: Sourced::Fresh(Ledger::read(&[found], &BTreeSet::new())),
        scopes: std::collections::BTreeMap::from([(goal("docs-read"), evil())]),
        ..GitFacts::new(commit('b'))
    });
    Report::read(&mut world.disk(), &asked)
}

#[test]
fn no_text_form_steers_a_terminal() {
    let world = world();
    let report = report(&world);
    let replayed = replay(&mut world.disk(), TickNo(1), None).unwrap().unwrap();
    let items = Feed::default().poll(&mut world.disk()).unwrap().items;
    assert!(items.len() > 9);
    let texts = [
        status_text(&report.view, Colour::Plain),
        report_markdown(&report),
        replay_text(&replayed, Colour::Plain),
        items.iter().map(|item| watch_line(item, Colour::Plain)).collect(),
    ];
    for text in &texts {
        assert!(is_harmless(text), "{text:?}");
    }
    for text in &texts {
        assert!(text.contains("E X"), "nothing hostile came through at all: {text}");
    }
}

#[test]
fn with_colours_only_ours_are_there() {
    let world = world();
    let report = report(&world);
    let replayed = replay(&mut world.disk(), TickNo(1), None).unwrap().unwrap();
    for text in [status_text(&report.view, Colour::Ansi), replay_text(&replayed, Colour::Ansi)] {
        let ours = ["[0m", "[1m", "[2m", "[31m", "[32m", "[33m"];
        for rest in text.split('\u{1b}').skip(1) {
            assert!(ours.iter().any(|code| rest.starts_with(code)), "{rest:?}");
        }
        assert!(is_harmless(&text.replace('\u{1b}', "")));
    }
}

#[test]
fn no_json_form_steers_a_terminal_and_none_loses_anything() {
    let world = world();
    let report = report(&world);
    let replayed = replay(&mut world.disk(), TickNo(1), None).unwrap().unwrap();
    let items = Feed::default().poll(&mut world.disk()).unwrap().items;
    let mut texts = vec![status_json(&report.view), report_json(&report), replay_json(&replayed)];
    texts.extend(items.iter().map(watch_json));
    for text in &texts {
        assert!(is_harmless(text));
        let _value: serde_json::Value = serde_json::from_str(text).unwrap();
    }
    let value: serde_json::Value = serde_json::from_str(&texts[0]).unwrap();
    assert_eq!(value["loop"]["value"]["gates"][0]["diagnostic"], EVIL);
}

#[test]
fn no_foreign_text_changes_the_structure_of_the_report() {
    let text = report_markdown(&report(&world()));
    for line in text.lines().filter(|line| line.starts_with('|')) {
        let bars = line.replace("\\|", "").matches('|').count();
        assert!([5, 6, 7, 8, 9].contains(&bars), "{line}");
    }
    // Outside of code spans nothing foreign is left, so no link, tag or heading of theirs.
    let outside: String = text.lines().flat_map(|line| line.split('`').step_by(2)).collect();
    for mark in ["</td>", "[a](b)", "!"] {
        assert!(!outside.contains(mark), "{mark} in {outside}");
    }
    let headings = text.lines().filter(|line| line.starts_with('#')).count();
    assert_eq!(
        headings,
        text.lines().filter(|line| line.starts_with("## ") || line.starts_with("# peers report")).count()
    );
}

#[test]
fn a_very_long_text_is_cut() {
    let mut world = World::running();
    let long = "x".repeat(1_000_000);
    world.tick(1, "claude", |tick| {
        tick.warnings_emitted = vec![long.clone()];
        tick.soft_fail_reason = Some(long.clone());
        tick.exit.stderr_tail = long.clone();
    });
    world.gates(1, vec![judged("tests-pass", 'b', red(&long))]);
    let report = report(&world);
    let replayed = replay(&mut world.disk(), TickNo(1), None).unwrap().unwrap();
    for text in [
        status_text(&report.view, Colour::Plain),
        report_markdown(&report),
        replay_text(&replayed, Colour::Plain),
    ] {
        assert!(text.len() < 20_000, "{}", text.len());
        assert!(text.contains('…'));
    }
}
