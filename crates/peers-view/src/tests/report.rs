//! `peers report`.

use super::*;

fn report(world: &World) -> Report {
    world.report()
}

fn line<'a>(text: &'a str, start: &str) -> &'a str {
    text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("no `{start}` in {text}"))
}

/// The end of a run that was shown complete.
fn complete() -> Record {
    Record::Exit(Box::new(ExitRecord {
        reason: StopReason::Complete,
        detail: String::new(),
        ticks_in_run: 1,
        signal: None,
        head: Some(commit('b')),
        proof: Some(ExitProof { tree: tree('1'), exempt: vec![super::goal("tests-pass")] }),
        in_gates: false,
    }))
}

#[test]
fn the_outcome_comes_first() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    world.append(complete());
    let text = world.page();
    assert!(text.starts_with("# peers report\n\n**Complete**: `stopped 2023-11-14T22:13:24.000Z, complete (exit 0)`\n\nSandbox: **unconfined: peers run without a sandbox**\n"), "{text}");
    assert!(text.contains("Every gate passed in a clean checkout of tree `111111111111`, but for these, which were judged in the work tree only: tests-pass\n"), "{text}");
}

#[test]
fn a_stop_that_wants_somebody_says_so_with_the_next_step() {
    let mut world = World::running();
    world.exit(StopReason::GoalMutation("goals.yaml".into()), "goals.yaml changed");
    let text = world.page();
    assert!(
        text.contains(
            "**Stopped: look before you do anything else**: `stopped 2023-11-14T22:13:22.000Z, goal-mutation:goals.yaml"
        ),
        "{text}"
    );
    assert!(text.contains("\nNext step: `peers run` goes on\n"), "{text}");
    let json: Value = serde_json::from_str(&report_json(&report(&world))).unwrap();
    assert_eq!(json["schema"], "peers.report/1");
    assert_eq!(json["outcome"]["attention"]["level"], "act");
    assert_eq!(json["outcome"]["attention"]["code"], "goal-mutation");
    assert_eq!(json["outcome"]["kind"], "integrity");
}

#[test]
fn the_timeline_has_the_last_fifty_ticks() {
    let mut world = World::running();
    for tick in 1..=60 {
        world.tick(tick, "claude", |_| {});
    }
    let report = report(&world);
    let history = report.history.value().unwrap();
    assert_eq!((history.ticks, history.timeline.len()), (60, 50));
    assert_eq!(history.timeline.front().unwrap().tick, TickNo(11));
    let text = squeezed(&report_markdown(&report));
    assert!(text.contains("60 ticks in 1 run; the last 50, newest first."), "{text}");
    assert!(
        line(&text, "| 60 |")
            .contains("| claude | handoff | 1 commit, `bbbbbbbb` | 3m | 1,500 tokens, $0.50 |")
    );
}

fn ledger_commit(id: char, author: &str, message: &str, paths: &[&str]) -> LedgerCommit {
    LedgerCommit {
        id: commit(id),
        author: Author::Peer(name(author)),
        time: Timestamp::from_millis(0),
        message: message.to_owned(),
        paths: paths.iter().map(|path| PathTouched::of(*path)).collect(),
        voided: false,
    }
}

#[test]
fn several_loops_are_one_document_with_a_table_of_them_on_top() {
    use super::hostile::EVIL;
    use crate::{
        Found, LoopRow, Patches, ReportEntry, ReportHead, reports_html, reports_json, reports_markdown,
    };
    let first = super::hostile::world();
    let mut second = World::running();
    second.tick(1, "claude", |_| {});
    second.append(complete());
    let read = |world: &World, name: &str| {
        let mut asked = super::row::asked(world, Lock::Free);
        (asked.listed.name, asked.bugs) = (name.into(), Sourced::Unreadable(EVIL.into()));
        (LoopRow::read(&mut world.disk(), &asked), report(world))
    };
    let (one, two) = (read(&first, EVIL), read(&second, "search"));
    let (there, not) = (Found::Present(EVIL.into()), Found::Unsafe);
    let entries = [
        ReportEntry { row: &one.0, report: &one.1, notes: EVIL, readme: &there, log: &not },
        ReportEntry { row: &two.0, report: &two.1, notes: "", readme: &Found::Missing, log: &there },
    ];
    let head = ReportHead {
        generated_at: Timestamp::from_millis(0),
        config_dir: EVIL.into(),
        scope: "all".into(),
        warnings: Vec::new(),
    };
    let text = reports_markdown(&head, &entries);
    assert!(is_harmless(&text));
    let squeezed = squeezed(&text);
    assert!(
        squeezed.starts_with("# peers-ctl report\n\nMade 1970-01-01T00:00:00.000Z, of `all`, from `E X"),
        "{squeezed}"
    );
    assert!(line(&squeezed, "| `search` |").starts_with("| `search` | done | stopped (converged) | 1 | ? | 2023-11-14T22:13:23.000Z | missing | present: `E X"), "{squeezed}");
    let headings: Vec<&str> = squeezed.lines().filter(|line| line.starts_with("## ")).collect();
    assert_eq!(headings.len(), 3, "warnings and two projects: {headings:?}");
    assert!(
        squeezed.contains("\n## `search`\n\n**done**: `complete`\n") && squeezed.contains("\n### Timeline\n"),
        "{squeezed}"
    );
    let outside: String = text.lines().flat_map(|line| line.split('`').step_by(2)).collect();
    for mark in ["</td>", "[a](b)", "!"] {
        assert!(!outside.contains(mark), "{mark} in {outside}");
    }
    let html = reports_html(&head, &entries, &Patches::new());
    assert!(is_harmless(&html) && !html.contains("</td>[a]"), "{html}");
    let proof = "<p class=\"good\">Every gate passed in a clean checkout of tree 111111111111, but for these, which were judged in the work tree only: tests-pass</p>";
    assert!(html.contains(proof), "{html}");
    assert!(
        html.contains("<h3>Reviews</h3>") && html.contains("<td>docs-read</td><td class=\"care\">0/2</td>"),
        "{html}"
    );
    let json = reports_json(&head, &entries);
    assert!(is_harmless(&json));
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["schema"], "peers-ctl.report/1");
    assert_eq!(value["data"]["projects"][0]["notes"], EVIL);
    assert_eq!(value["data"]["projects"][1]["report"]["outcome"]["kind"], "converged");
    assert_eq!(value["data"]["projects"][1]["controller_log"]["kind"], "present");
}

#[test]
fn an_empty_project_has_a_report_too() {
    let world = World::new();
    let report = report(&world);
    assert_eq!(report.history, Sourced::Missing);
    let text = squeezed(&report_markdown(&report));
    assert!(text.contains("**No run yet**") && !text.contains("Timeline"), "{text}");
    assert!(is_harmless(&report_json(&report)));
}

#[test]
fn a_cap_that_was_raised_while_the_loop_ran_is_named_with_who_did_it() {
    use peers_model::record::{Cap, CapSet};
    let raise = |world: &mut World, value: u64| {
        let caps = vec![CapSet { cap: Cap::MaxIterations, value }];
        world.alone(super::operator(OperatorOp::BudgetSet { caps, until: None }));
    };
    let mut world = World::new();
    raise(&mut world, 20);
    world.start(super::rules());
    let said = |world: &World| [world.text(), report_markdown(&report(world))];
    for text in said(&world) {
        assert!(text.contains("max_iterations 20 by "), "{text}");
        assert!(!text.contains("since the run began"), "{text}");
    }
    raise(&mut world, 55);
    for text in said(&world) {
        assert!(text.contains("max_iterations 55 by ") && text.contains(", since the run began"), "{text}");
    }
}

#[test]
fn every_cap_that_was_raised_has_a_line_of_its_own() {
    use peers_model::record::{Cap, CapSet};
    let mut world = World::running();
    let raised = [
        (Cap::MaxRuntimeS, 3600, "max_runtime_s 1h until "),
        (Cap::MaxIterations, 301, "max_iterations 301 until "),
        (Cap::MaxTokens, 5_000_001, "max_tokens 5,000,001 until "),
        (Cap::MaxUsd, 26_000_000, "max_usd $26.00 until "),
    ];
    let caps = raised.iter().map(|(cap, value, _)| CapSet { cap: *cap, value: *value }).collect();
    let until = Some(peers_model::Timestamp::from_millis(world.now + 86_400_000));
    world.alone(super::operator(OperatorOp::BudgetSet { caps, until }));
    let report = report_markdown(&report(&world));
    assert!(report.contains("Set over the configuration:\n\n- `max_"), "{report}");
    let status = world.text();
    for (_, _, words) in raised {
        for (text, begins) in [(&status, "  set over the configuration: "), (&report, "- `")] {
            let line = text.lines().find(|line| line.starts_with(&format!("{begins}{words}")));
            assert!(
                line.is_some_and(|line| line.trim_end_matches('`').ends_with(", since the run began")),
                "{words}: {text}"
            );
        }
    }
}

#[test]
fn a_cap_that_was_set_for_a_time_is_not_named_after_it_though_no_loop_runs() {
    use peers_model::record::{Cap, CapSet};
    let mut world = World::running();
    let caps = vec![CapSet { cap: Cap::MaxIterations, value: 55 }];
    // A view is looked at two minutes after the last record.
    let until = Some(peers_model::Timestamp::from_millis(world.now + 60_000));
    world.alone(super::operator(OperatorOp::BudgetSet { caps, until }));
    world.exit(peers_model::outcome::StopReason::MaxTicks, "");
    let text = world.text();
    assert!(text.contains("max_ticks") && !text.contains("max_iterations 55"), "{text}");
}

/// Gates that went red and green, turns that failed or were undone, a run that was lost, reviews that differ, bugs,
/// and what the operator did.
fn eventful() -> World {
    let mut world = World::running();
    let digests = |c: &str| Digests { goals: c.repeat(64), config: "f".repeat(64) };
    let mut changed = rules();
    changed.gates.remove(1);
    world.append(operator(OperatorOp::Accepted {
        old: digests("1"),
        new: digests("2"),
        note: Some("lint is no goal".into()),
        rules: Some(Box::new(changed)),
    }));
    world.gates(0, vec![judged("tests-pass", 'a', Verdict::Pass)]);
    for (tick, peer, pass, sha) in [
        (1, "claude", true, 'c'),
        (2, "codex", false, 'd'),
        (3, "claude", true, 'e'),
        (4, "codex", true, 'f'),
    ] {
        world.tick(tick, peer, |tick| {
            let notes = format!("said by {peer}");
            tick.reviews = vec![AcceptedReview { goal: goal("docs-read"), pass, sha: commit(sha), notes }];
        });
    }
    world.gates(4, vec![judged("tests-pass", 'b', red("3 | failed"))]);
    world.another_run("00000000000000bb");
    world.begin_tick(5, "claude");
    world.append(Record::CorrectionPlanned(CorrectionPlanned {
        tick: TickNo(5),
        kind: CorrectionKind::Revert,
        from: commit('b'),
        to: commit('a'),
        branch: Some("main".into()),
        reason: "a test-only turn after a warning".into(),
    }));
    world.end_tick(5, "claude", |tick| {
        fail(tick, TickOutcome::Corrected);
        tick.corrected = Some(CorrectionKind::Revert);
        tick.salvage = Some("refs/peers/salvage/00000000000000bb/5-claude".into());
    });
    let what = "had other content".into();
    world.append(Record::MirrorRestored(MirrorRestored { tick: Some(TickNo(5)), what }));
    world.gates(5, vec![judged("tests-pass", 'b', red("2 failed"))]);
    world.tick(6, "codex", |tick| fail(tick, TickOutcome::PeerFailed));
    let reason = "the limit was wrong".into();
    world.append(operator(OperatorOp::Ack { target: AckTarget::Weakening(TickNo(3)), reason }));
    world.exit(StopReason::Drained, "");
    world.amend(|record| record.argv = ["peers", "run", "--branch", "a b"].map(str::to_owned).to_vec());
    world
}

#[test]
fn a_report_tells_how_it_came_about() {
    let world = eventful();
    let bug = |id: &str, severity: &str| {
        format!(
            "r\n\n## Bug-Report\n{{\"id\":\"{id}\",\"severity\":\"{severity}\",\"title\":\"t {id}\"}}\n\nBug-Report: {id}\n"
        )
    };
    let fix = "f\n\n## Bug-Resolution\n{\"resolves\":\"B1\",\"status\":\"fixed\",\"note\":\"n\"}\n\nBug-Resolves: B1\n";
    let commits = [
        ledger_commit('c', "claude", &bug("B1", "med"), &[]),
        ledger_commit('d', "codex", fix, &["src/a.rs"]),
        ledger_commit('e', "codex", &bug("B2", "high"), &[]),
    ];
    let mut asked = world.asked(Lock::Free);
    let bugs = Sourced::Fresh(Ledger::read(&commits, &BTreeSet::new()));
    asked.git = Sourced::Fresh(GitFacts { branch: Some("main".into()), bugs, ..GitFacts::new(commit('b')) });
    let report = Report::read(&mut world.disk(), &asked);
    insta::assert_snapshot!(report_markdown(&report));
    let status = status_text(&report.view, Colour::Plain);
    let bugs = "bugs:      1 open, 1 of them blocking; 2 reported\n  high  B2  -  t B2 (unresolved)\n";
    assert!(status.contains(bugs), "{status}");
    let json: Value = serde_json::from_str(&report_json(&report)).unwrap();
    assert_eq!(json["history"]["value"]["starts"][0]["version"], "0.1.0");
}
