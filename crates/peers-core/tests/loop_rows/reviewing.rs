//! Soft goals: which reviews count, whose, and for how long.

use peers_core::converge;
use peers_model::outcome::StopReason;
use peers_model::review::SoftRule;
use peers_model::verdict::Place;

use crate::bench::Bench;
use crate::world::{Gate, Habit, Turn, goal, handoff_text};

/// A loop with a red gate, so that it goes on, and one soft goal.
fn bench(peers: &str, rule: SoftRule, turns: Vec<Turn>) -> Bench {
    let mut bench = Bench::new(peers);
    bench.soft("docs-read", rule);
    bench.cfg.max_ticks = Some(u64::try_from(turns.len()).unwrap());
    bench.plays(turns);
    bench
}

impl Bench {
    fn consensus(&self) -> u32 {
        self.m.state.soft.get(&goal("docs-read")).unwrap().consensus_count
    }

    /// Whether every soft goal is green at the world as it is now.
    fn agreed(&self) -> bool {
        converge::soft_pending(&self.m.state, &self.world.facts(&self.m.state)).is_empty()
    }
}

const OTHER: SoftRule = SoftRule::Other { needed: 2 };

#[test]
fn row_50_reviews_are_read_from_sections_and_rejections_are_told() {
    let said = |body: &str, target: &str| {
        let turn = Turn::says(body, &format!("Peer-Review-Of: {target}\n"));
        let bench = bench("ann bob", OTHER, vec![turn]);
        let tick = bench.tick(1);
        (
            tick.soft_reviews_seen,
            tick.soft_reviews_rejected,
            tick.reviews.len(),
            bench.warned("was not counted"),
        )
    };
    let nested = "## Review\n{\"pass\": true, \"checked\": [\"a:1 x\"], \"detail\": {\"pass\": false}}\n\n";
    assert_eq!(said(nested, "docs-read"), (1, 0, 1, 0));
    let fenced = "## Review\n```json\n{\"pass\": false}\n```\n\n";
    assert_eq!(said(fenced, "docs-read"), (1, 0, 1, 0));
    assert_eq!(said("## Review\n{\"pass\": \"true\"}\n\n", "docs-read"), (1, 1, 0, 1), "no boolean");
    assert_eq!(said("{\"pass\": true}\n\n", "docs-read"), (1, 1, 0, 1), "no heading");
    assert_eq!(said(nested, "docs-raed"), (1, 1, 0, 1), "no such goal");
    assert_eq!(said(nested, "0123456789abcdef"), (0, 0, 0, 0), "a commit, which means nothing here");
}

#[test]
fn row_50_a_rejection_stands_in_the_next_prompt() {
    let mut bench = Bench::new("ann bob").up_to(2);
    bench.soft("docs-read", OTHER);
    bench.plays([Turn::says("", "Peer-Review-Of: docs-read\n")]);
    assert!(bench.prompts()[1].contains("was not counted"));
}

#[test]
fn row_50_a_review_in_a_turn_without_a_handoff_still_counts() {
    let text = "look\n\n## Review\n{\"pass\": true, \"checked\": [\"a:1 x\"]}\n\nPeer-Review-Of: docs-read\n";
    let bench = bench("ann bob", OTHER, vec![Turn::nothing().and_commit("start", text)]);
    assert!(!bench.tick(1).success);
    assert_eq!(bench.consensus(), 1);
}

#[test]
fn a_review_is_asked_for_only_where_it_can_help_and_not_too_often() {
    let mut bench = Bench::new("ann bob").up_to(7);
    bench.soft("docs-read", SoftRule::Other { needed: 2 });
    bench.cfg.rules.soft[0].every = 4;
    bench.plays([Turn::review("docs-read", true)]);
    let asked: Vec<u64> = bench.started().iter().filter(|s| !s.asked.is_empty()).map(|s| s.tick.0).collect();
    assert_eq!(asked, [1, 2, 6], "ann has passed; bob is asked every four ticks");
}

#[test]
fn soft_goals_that_are_not_required_are_not_waited_for() {
    let mut bench = Bench::converging();
    bench.habit = Habit::NoReview("good");
    bench.cfg.soft_required = false;
    bench.cfg.rules.soft[0].every = 100;
    assert_eq!(bench.run(), StopReason::Complete);
}

#[test]
fn one_commit_may_review_several_goals() {
    let mut bench = Bench::new("ann bob").up_to(1);
    bench.soft("docs-read", OTHER);
    bench.soft("api-sane", OTHER);
    let body = "## Review\n{\"goal\": \"docs-read\", \"pass\": true, \"checked\": [\"a.md:1\"]}\n\
                {\"goal\": \"api-sane\", \"pass\": false}\n\n";
    let text = handoff_text(body, "Peer-Review-Of: docs-read\nPeer-Review-Of: api-sane\n");
    bench.plays([Turn::nothing().and_commit("start", &text)]);
    let answers: Vec<bool> = bench.tick(1).reviews.iter().map(|r| r.pass).collect();
    assert_eq!(answers, [true, false]);
}

#[test]
fn what_the_check_of_a_review_finds_is_shown_to_its_reviewer_and_decides_nothing() {
    for (says, shown) in [
        (Gate::Green, "The check `bug-ledger` found nothing here."),
        (Gate::Red, "The check `bug-ledger` found something here; judge it as well."),
        (Gate::Cannot, "The check `bug-ledger` could not tell."),
    ] {
        let mut bench = Bench::converging();
        bench.advised("docs-read", says);
        assert_eq!(bench.run(), StopReason::Complete, "{says:?}");
        assert!(bench.prompts().iter().any(|prompt| prompt.contains(shown)), "{says:?}");
        assert!(bench.prompts().iter().all(|prompt| !prompt.contains("- `docs-read`: red")), "{says:?}");
        let proofs = bench.judged(Place::Pristine);
        assert!(proofs.iter().all(|(gates, _)| !gates.contains(&goal("docs-read"))), "{says:?}");
    }
}

#[test]
fn what_another_left_uncommitted_is_not_passed_by_one_alone() {
    let agreed = |first: Turn| {
        let mut bench = Bench::new("ann bob").up_to(3);
        bench.soft("docs-read", SoftRule::Other { needed: 1 });
        bench.world.whole_tree = true;
        bench.plays([first, Turn::handoff("b"), Turn::review("docs-read", true)]);
        let one = bench.agreed();
        bench.play([Turn::review("docs-read", true)]);
        bench.cfg.max_ticks = Some(1);
        bench.run();
        (one, bench.agreed())
    };
    assert_eq!(agreed(Turn::handoff("a")), (true, true), "ann passes what bob made");
    assert_eq!(agreed(Turn::handoff("a").leaves("b")), (false, true), "bob committed what ann left");
}

#[test]
fn a_spare_answers_where_only_its_answer_is_missing() {
    let mut bench = Bench::bare("ann BEN").up_to(9);
    bench.gate("tests-pass", Gate::Green);
    bench.habit = Habit::Good("start");
    bench.cfg.rules.skeptic_rounds = 2;
    assert_eq!(bench.run(), StopReason::Complete);
    assert_eq!(bench.order(), "ann ben");
}

#[test]
fn a_reviewer_who_may_spend_no_more_ends_the_run_and_who_does_not_review_keeps_not_all_turns() {
    let mut bench = Bench::converging();
    bench.world.whole_tree = true;
    bench.budget(|b| {
        let cap =
            peers_model::config::PeerBudget { max_tokens: std::num::NonZeroU64::new(50), max_usd: None };
        b.per_peer.insert(crate::world::peer("bob"), cap);
    });
    bench.habit = Habit::NoReview("good");
    let reason = bench.run();
    assert_eq!(reason.to_string(), "budget:per_peer", "{}", bench.order());
    assert!(bench.stop_detail().contains("only an answer of bob is missing"), "{}", bench.stop_detail());
    let mut bench = Bench::converging().up_to(6);
    bench.world.whole_tree = true;
    bench.habit = Habit::NoReview("good");
    assert_eq!(bench.run(), StopReason::MaxTicks);
    assert_eq!(bench.order(), "ann bob ann bob ann bob");
}

#[test]
fn a_review_is_asked_for_once_all_that_it_needs_is_green() {
    let asked = |bench: &Bench| -> Vec<Vec<String>> {
        bench.started().iter().map(|tick| tick.asked.iter().map(ToString::to_string).collect()).collect()
    };
    let mut bench = Bench::converging();
    bench.soft("docs-good", SoftRule::Other { needed: 1 });
    bench.cfg.rules.soft[0].needs = vec![goal("tests-pass")];
    bench.cfg.rules.soft[1].needs = vec![goal("docs-read")];
    assert_eq!(bench.run(), StopReason::Complete);
    let asked = asked(&bench);
    assert!(asked[0].is_empty(), "its gate is red: {asked:?}");
    let first = |id: &str| asked.iter().position(|ids| ids.iter().any(|asked| asked == id)).unwrap();
    assert!(first("docs-read") < first("docs-good"), "{asked:?}");
    assert!(asked.iter().all(|ids| ids.len() <= 1), "{asked:?}");
}
