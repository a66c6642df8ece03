//! `self-review`.

use peers_model::record::CorrectionKind;

use super::{World, handoff, no_store};
use crate::{Verdict, run};

fn kinds(world: &World) -> (Verdict, Vec<&'static str>) {
    let report = world.check("self-review").report;
    (report.verdict, report.findings.iter().map(|finding| finding.kind).collect())
}

#[test]
fn a_handoff_with_trailers_and_section_passes() {
    let mut world = World::running();
    world.turn("claude", &handoff("work"));
    let outcome = world.check("self-review");
    assert_eq!(outcome.report.verdict, Verdict::Pass, "{}", outcome.text(50));
    assert_eq!(outcome.text(50), "self-review: pass (1 handoff reviewed)\n");
}

#[test]
fn a_handoff_without_a_section_fails_and_names_the_commit() {
    let mut world = World::running();
    let id = world.turn("claude", "work\n\nPeer-Status: handoff\nSelf-Review: pass\n");
    world.turn("codex", &handoff("more"));
    let outcome = world.check("self-review");
    assert_eq!(outcome.exit_code(), 1);
    let finding = &outcome.report.findings[0];
    assert_eq!((finding.kind, finding.commit.as_ref()), ("missing-section", Some(&id)));
    assert!(
        outcome
            .text(50)
            .starts_with("self-review: FAIL (1 of 2 handoffs has no full self-review)\n  commit ")
    );
}

#[test]
fn row_01_each_handoff_carries_trailer_and_section_and_work_without_a_handoff_is_none() {
    let section = "work\n\n## Self-Review\nRead the whole diff again and ran the tests; looked at the error paths and each limit.\n\n";
    for (message, due, found) in [
        (handoff("work"), Verdict::Pass, vec![]),
        (
            "work\n\nPeer-Status: handoff\nSelf-Review: pass\n".to_owned(),
            Verdict::Fail,
            vec!["missing-section"],
        ),
        (format!("{section}Peer-Status: handoff\n"), Verdict::Fail, vec!["missing-trailer"]),
        (format!("{section}Self-Review: pass\n"), Verdict::Fail, vec!["no-handoff"]),
        ("work".to_owned(), Verdict::Fail, vec!["no-handoff"]),
    ] {
        let mut world = World::running();
        assert_eq!(kinds(&world), (Verdict::Pass, vec![]), "before the first tick");
        world.turn("claude", &message);
        assert_eq!(kinds(&world), (due, found), "{message}");
    }
}

#[test]
fn a_missing_trailer_and_a_short_section_fail() {
    let mut world = World::running();
    world.turn("claude", "work\n\n## Self-Review\nlooked at it\n\nPeer-Status: handoff\n");
    world.turn("codex", "work\n\n## Self-Review\nlooked at it\n\nPeer-Status: handoff\nSelf-Review: pass\n");
    assert_eq!(kinds(&world), (Verdict::Fail, vec!["missing-trailer", "short-section"]));
}

#[test]
fn row_2_the_last_of_two_marks_wins() {
    let mut world = World::running();
    let message = handoff("work").replace("Self-Review: pass", "Self-Review: fail\nSelf-Review: pass");
    world.turn("claude", &message);
    assert_eq!(kinds(&world).0, Verdict::Pass);
}

#[test]
fn an_honest_doubt_stands_until_its_author_hands_over_again() {
    let mut world = World::running();
    world.turn("claude", &handoff("half").replace("Self-Review: pass", "Self-Review: needs-review"));
    world.turn("codex", &handoff("other work"));
    assert_eq!(kinds(&world), (Verdict::Fail, vec!["not-passed"]));
    world.turn("claude", &handoff("the other half"));
    assert_eq!(kinds(&world).0, Verdict::Pass);
}

#[test]
fn a_missing_section_is_made_good_by_its_author_naming_the_commit() {
    let mut world = World::running();
    let id = world.turn("claude", "work\n\nPeer-Status: handoff\nSelf-Review: pass\n");
    let amends = handoff("review").replace("Read the", &format!("On {}: read the", id.short()));
    world.turn("codex", &amends);
    assert_eq!(kinds(&world).0, Verdict::Fail, "another peer's word does not count");
    world.turn("claude", &handoff("more"));
    assert_eq!(kinds(&world).0, Verdict::Fail, "a review that names nothing does not count");
    world.turn("claude", &amends);
    assert_eq!(kinds(&world).0, Verdict::Pass);
}

#[test]
fn work_that_nobody_handed_over_fails() {
    let mut world = World::running();
    world.turn("claude", "work\n\nPeer: claude\n");
    assert_eq!(kinds(&world), (Verdict::Fail, vec!["no-handoff"]));
}

#[test]
fn without_any_commit_of_a_peer_it_passes() {
    let mut world = World::new();
    world.commit("by hand", &[]);
    assert_eq!(kinds(&world).0, Verdict::Pass, "no run yet");
    world.start_run(Vec::new());
    assert_eq!(kinds(&world).0, Verdict::Pass);
    let text = world.check("self-review").text(50);
    assert_eq!(text, "self-review: pass (no commit of a peer since the base)\n");
}

#[test]
fn what_was_there_when_the_first_run_began_is_the_operators() {
    let mut world = World::new();
    world.commit("work before\n\nPeer-Status: handoff\n", &[]);
    world.start_run(Vec::new());
    world.turn("claude", &handoff("work"));
    assert_eq!(kinds(&world).0, Verdict::Pass);
}

#[test]
fn a_commit_that_nobody_saw_come_cannot_be_judged() {
    let mut world = World::running();
    world.turn("claude", &handoff("work"));
    let id = world.commit("from nowhere\n\nPeer: claude\n", &[]);
    let outcome = world.check("self-review");
    assert_eq!(outcome.exit_code(), 3, "{}", outcome.text(50));
    assert_eq!(outcome.report.findings[0].commit.as_ref(), Some(&id));
    world.start_run(vec![id]);
    assert_eq!(kinds(&world).0, Verdict::Pass, "the next run recorded it as the operator's");
}

#[test]
fn a_violation_outweighs_a_commit_of_unknown_origin() {
    let mut world = World::running();
    world.turn("claude", "work\n\nPeer-Status: handoff\nSelf-Review: pass\n");
    world.commit("from nowhere", &[]);
    assert_eq!(kinds(&world), (Verdict::Fail, vec!["missing-section", "unattributed"]));
}

#[test]
fn commits_of_the_turn_that_is_open_count_as_its_peers() {
    let mut world = World::running();
    world.turn("claude", &handoff("work"));
    world.begin_tick("codex");
    world.commit(&handoff("more"), &[]);
    assert_eq!(kinds(&world).0, Verdict::Pass);
    world.commit("again\n\nPeer-Status: handoff\nSelf-Review: pass\n", &[]);
    let (verdict, found) = kinds(&world);
    assert_eq!((verdict, found), (Verdict::Fail, vec!["missing-section"]));
}

#[test]
fn a_forged_peer_trailer_or_author_changes_nothing() {
    let mut world = World::running();
    world.turn("claude", &handoff("work"));
    world.begin_tick("claude");
    let foreign = world.commit("s\n\nPeer: claude\nPeer-Status: handoff\nSelf-Review: pass\n", &[]);
    world.end_tick("claude", Vec::new(), |tick| tick.foreign = vec![foreign]);
    assert_eq!(kinds(&world).0, Verdict::Pass);
}

#[test]
fn what_was_taken_back_hands_nothing_over() {
    let mut world = World::running();
    world.turn("claude", &handoff("work"));
    world.begin_tick("codex");
    let bad = world.commit("cheat\n\nPeer-Status: handoff\nSelf-Review: pass\n", &[]);
    world.end_tick("codex", vec![bad], |tick| tick.corrected = Some(CorrectionKind::Revert));
    assert_eq!(kinds(&world).0, Verdict::Pass);
}

#[test]
fn the_newest_handoff_alone_can_be_asked_for() {
    let mut world = World::running();
    world.turn("claude", "work\n\nPeer-Status: handoff\nSelf-Review: pass\n");
    world.turn("codex", &handoff("more"));
    let outcome = world.check_with("self-review", &["--no-all-since-base"]);
    assert_eq!(outcome.report.verdict, Verdict::Pass);
}

#[test]
fn without_a_store_it_says_what_is_missing() {
    let world = World::running();
    let outcome = run("self-review", &no_store(&world).unwrap(), &[]).unwrap();
    assert_eq!(outcome.exit_code(), 3);
    assert!(outcome.text(50).contains("there is no trusted store"), "{}", outcome.text(50));
}

#[test]
fn a_damaged_journal_is_no_answer() {
    let mut world = World::running();
    world.turn("claude", &handoff("work"));
    let journal = world.path("store/journal/000001.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap().replace("\"claude\"", "\"codex\"");
    std::fs::write(&journal, text).unwrap();
    for check in ["self-review", "bug-ledger"] {
        let outcome = world.check(check);
        assert_eq!(outcome.exit_code(), 3, "{}", outcome.text(50));
        assert!(outcome.text(50).contains("the trusted store cannot be read"));
    }
}

#[test]
fn hostile_bytes_of_a_message_never_reach_the_text() {
    let mut world = World::running();
    world.turn(
        "claude",
        "w\n\n## Self-Review\nx\n\nPeer-Status: handoff\nSelf-Review: \u{1b}]0;x\u{7}\u{202e}no\n",
    );
    let outcome = world.check("self-review");
    let text = outcome.text(50) + &outcome.json(50);
    assert!(text.contains("says `Self-Review: no`"), "{text}");
    assert!(text.chars().all(|c| c == '\n' || !(c.is_control() || peers_sys::term::invisible(c))));
}
