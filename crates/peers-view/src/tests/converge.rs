//! What is missing for `complete`, and the soft goals.

use peers_store::planted;

use super::*;

fn kinds(view: &LoopView) -> Vec<&'static str> {
    view.core.value().unwrap().converge.missing.iter().map(|missing| missing.kind).collect()
}

/// A review that passes, of a scope that stays.
fn review(tick: &mut TickRecord) {
    tick.reviews.push(AcceptedReview {
        goal: goal("docs-read"),
        pass: true,
        sha: commit(if tick.peer.as_str() == "claude" { 'c' } else { 'd' }),
        notes: String::new(),
    });
    tick.scopes.insert(goal("docs-read"), ScopeMove { before: "s".into(), after: "s".into() });
}

fn all_green() -> Vec<peers_model::verdict::Judged> {
    vec![judged("tests-pass", 'b', Verdict::Pass), judged("lint-clean", 'b', Verdict::Pass)]
}

fn skeptic_turn(world: &mut World, tick: u64, peer: &str) {
    let mut begun = started(tick, peer);
    begun.skeptic = true;
    world.append(peers_model::record::Record::TickStarted(Box::new(begun)));
    world.end_tick(tick, peer, |tick| tick.skeptic = Some(SkepticVerdict::Clean));
}

#[test]
fn each_step_to_complete_takes_one_thing_off_the_list() {
    let mut world = World::running();
    world.tick(1, "claude", |tick| {
        review(tick);
        tick.dirty = true;
    });
    world.gates(1, vec![judged("tests-pass", 'b', red("x"))]);
    assert_eq!(kinds(&world.view()), ["red", "unmeasured", "dirty", "reviews", "skeptic", "proof"]);
    world.gates(1, all_green());
    assert_eq!(kinds(&world.view()), ["dirty", "reviews", "skeptic", "proof"]);
    world.tick(2, "codex", review);
    assert_eq!(kinds(&world.view()), ["skeptic", "proof"]);
    // Codex may have committed what claude had left uncommitted, so one skeptic is not enough.
    skeptic_turn(&mut world, 3, "claude");
    world.gates(3, all_green());
    assert_eq!(kinds(&world.view()), ["skeptic", "proof"]);
    skeptic_turn(&mut world, 4, "codex");
    world.gates(4, all_green());
    assert_eq!(kinds(&world.view()), ["proof"]);
    world.append(proof(all_green()));
    assert_eq!(kinds(&world.view()), [""; 0]);
    world.exit(StopReason::Complete, "");
    let view = world.view();
    assert!(view.core.value().unwrap().converge.complete);
    let text = status_text(&view, Colour::Plain);
    assert!(text.contains("complete:  nothing is missing\n"), "{text}");
    assert!(!text.contains("next step"), "{text}");
}

#[test]
fn what_is_missing_is_said_in_words() {
    let mut world = World::running();
    world.tick(1, "claude", review);
    world.gates(
        1,
        vec![
            judged("tests-pass", 'b', red("x")),
            judged("lint-clean", 'b', Verdict::Error { diagnostic: "no tool".into() }),
        ],
    );
    insta::assert_snapshot!(world.text());
}

#[test]
fn a_review_of_older_content_counts_no_more() {
    let mut world = World::running();
    world.tick(1, "claude", review);
    world.tick(2, "codex", |tick| {
        tick.scopes.insert(goal("docs-read"), ScopeMove { before: "s".into(), after: "t".into() });
    });
    let text = world.text();
    assert!(
        text.contains(
            "  0/2  docs-read  every peer  claude, codex have not passed it (1 review out of date)\n"
        ),
        "{text}"
    );
}

#[test]
fn a_proof_that_is_red_makes_its_gate_red() {
    let mut world = World::running();
    world.tick(1, "claude", |_| {});
    world.gates(1, all_green());
    world.append(proof(vec![
        judged("tests-pass", 'b', red("needs a cache")),
        judged("lint-clean", 'b', Verdict::Pass),
    ]));
    let view = world.view();
    let gates = &view.core.value().unwrap().gates;
    assert_eq!((gates[0].state, gates[0].diagnostic.as_str()), ("proof-failed", "needs a cache"));
    assert_eq!(gates[1].state, "pass");
    assert!(kinds(&view).contains(&"proof-red"));
    world.append(proof(vec![judged("tests-pass", 'b', Verdict::Error { diagnostic: "?".into() })]));
    assert!(kinds(&world.view()).contains(&"proof-unjudged"));
}

#[test]
fn exempt_gates_need_no_proof_and_are_named() {
    let mut world = World::new();
    let mut some = rules();
    some.gates[0].tree = TreeChoice::Live;
    world.start(some);
    world.tick(1, "claude", |_| {});
    world.gates(1, all_green());
    let text = world.text();
    assert!(text.contains("  - 1 gate has no proof in a clean checkout: lint-clean\n"), "{text}");
    assert!(text.contains("  not proved in a clean checkout (`tree: live`): tests-pass\n"), "{text}");
    assert!(text.contains("  pass  tests-pass  at bbbbbbbb, live only\n"), "{text}");
}

#[test]
fn a_run_that_is_complete_names_exempt_gates_in_its_last_lines() {
    let ended = |exempt: bool| {
        let mut world = World::new();
        let mut some = rules();
        if exempt {
            some.gates[0].tree = TreeChoice::Live;
        }
        world.start(some);
        world.exit(StopReason::Complete, "");
        closing(&world.view())
    };
    assert_eq!(ended(true), ["not proved in a clean checkout (`tree: live`): tests-pass"]);
    assert_eq!(ended(false), Vec::<String>::new());
}

#[test]
fn a_run_that_is_complete_names_what_planted_faults_showed_at_its_commit_and_at_no_other() {
    for (at, due) in [('b', vec!["the gates noticed 18 of 20 faults planted here"]), ('c', vec![])] {
        let mut world = World::new();
        world.start(rules());
        world.exit(StopReason::Complete, "");
        let head = world.view().core.value().unwrap().head.clone().unwrap();
        let head = if at == 'b' { head } else { CommitId::new("9".repeat(40)).unwrap() };
        let tree = TreeId::new("9".repeat(40)).unwrap();
        let accepted = peers_store::accept::read(&mut world.disk()).unwrap().unwrap().digests;
        let accepted = peers_store::accept::together(&accepted);
        let found = planted::Planted::new((head, tree, accepted), Timestamp::default(), 7, (20, 18));
        planted::write(&mut world.disk(), &found).unwrap();
        assert_eq!(closing(&world.view()), due);
        assert_eq!(world.text().contains("18 of 20 faults planted here"), at == 'b');
    }
}

#[test]
fn without_a_gate_it_is_said_that_no_run_completes() {
    let mut world = World::new();
    let mut some = rules();
    some.gates.clear();
    world.start(some);
    assert!(
        world.text().contains("  - there is no gate of your own, so no run can complete\n"),
        "{}",
        world.text()
    );
}

#[test]
fn shipped_gates_alone_prove_nothing() {
    let mut world = World::new();
    let mut some = rules();
    some.gates = vec![gate("bug-hunt-clean")];
    some.gates[0].shipped = true;
    world.start(some);
    assert!(kinds(&world.view()).contains(&"no-real-gate"));
}
