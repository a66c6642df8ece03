//! Tests of `reviews`.

use std::collections::BTreeSet;

use peers_model::record::AcceptedReview;
use peers_model::review::SoftRule;
use peers_model::{CommitId, GoalId, PeerName, TickNo};
use proptest::prelude::*;

use super::*;

fn peer(name: &str) -> PeerName {
    PeerName::new(name).unwrap()
}

fn roster(names: &str) -> Vec<RosterEntry> {
    names
        .chars()
        .map(|c| RosterEntry { name: peer(&c.to_string()), recovery: false, available: true })
        .collect()
}

const OTHER1: SoftRule = SoftRule::Other { needed: 1 };
const OTHER2: SoftRule = SoftRule::Other { needed: 2 };
const BOTH: SoftRule = SoftRule::Both { needed: 1 };
const TURNS2: SoftRule = SoftRule::Alternating { needed: 2 };
const TWO_OF_THREE: SoftRule = SoftRule::Quorum { pass: 2, of: 3 };

struct Board {
    rule: SoftRule,
    roster: Vec<RosterEntry>,
    status: SoftStatus,
    scope: String,
    made: u64,
}

impl Board {
    fn new(rule: SoftRule, names: &str) -> Self {
        Self { rule, roster: roster(names), status: SoftStatus::default(), scope: "s0".into(), made: 0 }
    }

    fn sha(n: u64) -> CommitId {
        CommitId::new(format!("{n:040x}")).unwrap()
    }

    fn review(&mut self, name: &str, pass: bool) -> Ingested {
        self.made += 1;
        let review = AcceptedReview {
            goal: GoalId::new("docs-read").unwrap(),
            pass,
            sha: Self::sha(self.made),
            notes: String::new(),
        };
        let tick = TickNo(self.made);
        ingest(&mut self.status, self.rule, &self.roster, &peer(name), &review, &self.scope, tick)
    }

    fn passes(mut self, names: &str) -> Self {
        for c in names.chars() {
            self.review(&c.to_string().to_lowercase(), c.is_lowercase());
        }
        self
    }

    fn change(mut self, by: &str, to: &str) -> Self {
        scope_changed(&mut self.status, Some(&peer(by)), &self.scope, to);
        self.scope = to.into();
        self
    }

    fn out(mut self, name: &str) -> Self {
        for entry in self.roster.iter_mut().filter(|r| r.name.as_str() == name) {
            entry.available = false;
        }
        self
    }

    fn verdict(&self) -> SoftVerdict {
        satisfied(&self.status, self.rule, &self.roster, &self.scope)
    }

    fn have(&self) -> (u32, bool) {
        let verdict = self.verdict();
        (verdict.have, verdict.ok)
    }

    fn asks(&self) -> String {
        let asked = self
            .roster
            .iter()
            .filter(|r| pending(&self.status, self.rule, &self.roster, &r.name, &self.scope));
        asked.map(|r| r.name.as_str()).collect()
    }
}

/// Rule, peers, reviews of what `a` wrote (upper case objects), how many count, whether they are enough, who is
/// asked, how many are left when `b` changes it.
const MATRIX: &str = "
    other 1|ab||0|no|b|0
    other 1|ab|a|0|no|b|0
    other 1|ab|b|1|yes||0
    other 1|ab|ab|1|yes||0
    other 1|ab|ba|1|yes||0
    other 1|ab|aB|0|no|b|0
    other 1|ab|Ba|0|no|b|0
    other 2|ab||0|no|ab|0
    other 2|ab|a|1|no|b|0
    other 2|ab|b|1|no|a|1
    other 2|ab|ab|2|yes||1
    other 2|ab|ba|2|yes||1
    other 2|ab|aB|0|no|ab|0
    other 2|ab|Ba|0|no|b|0
    both|ab||0|no|ab|0
    both|ab|a|1|no|b|0
    both|ab|b|1|no|a|1
    both|ab|ab|2|yes||1
    both|ab|ba|2|yes||1
    both|ab|aB|0|no|ab|0
    both|ab|Ba|0|no|b|0
    alternating 2|ab||0|no|a|0
    alternating 2|ab|a|1|no|b|0
    alternating 2|ab|b|0|no|a|0
    alternating 2|ab|ab|2|yes||1
    alternating 2|ab|ba|1|no|b|0
    alternating 2|ab|aB|0|no|a|0
    alternating 2|ab|Ba|1|no|b|0
    other 1|abc||0|no|bc|0
    other 1|abc|a|0|no|bc|0
    other 1|abc|b|1|yes||0
    other 1|abc|ab|1|yes||0
    other 1|abc|ba|1|yes||0
    other 1|abc|c|1|yes||0
    other 1|abc|bc|2|yes||0
    other 1|abc|abc|2|yes||0
    other 1|abc|aB|0|no|bc|0
    other 1|abc|Ba|0|no|bc|0
    other 2|abc||0|no|bc|0
    other 2|abc|a|0|no|bc|0
    other 2|abc|b|1|no|c|0
    other 2|abc|ab|1|no|c|0
    other 2|abc|ba|1|no|c|0
    other 2|abc|c|1|no|b|0
    other 2|abc|bc|2|yes||0
    other 2|abc|abc|2|yes||0
    other 2|abc|aB|0|no|bc|0
    other 2|abc|Ba|0|no|bc|0
    both|abc||0|no|abc|0
    both|abc|a|1|no|bc|0
    both|abc|b|1|no|ac|1
    both|abc|ab|2|no|c|1
    both|abc|ba|2|no|c|1
    both|abc|c|1|no|ab|0
    both|abc|bc|2|no|a|1
    both|abc|abc|3|yes||1
    both|abc|aB|0|no|abc|0
    both|abc|Ba|0|no|bc|0
    alternating 2|abc||0|no|a|0
    alternating 2|abc|a|0|no|b|0
    alternating 2|abc|b|0|no|a|0
    alternating 2|abc|ab|1|no|c|0
    alternating 2|abc|ba|0|no|b|0
    alternating 2|abc|c|0|no|a|0
    alternating 2|abc|bc|0|no|a|0
    alternating 2|abc|abc|2|yes||0
    alternating 2|abc|aB|0|no|c|0
    alternating 2|abc|Ba|0|no|b|0
    2 of 3|abc||0|no|abc|0
    2 of 3|abc|a|0|no|bc|0
    2 of 3|abc|b|1|no|ac|0
    2 of 3|abc|ab|1|no|c|0
    2 of 3|abc|ba|1|no|c|0
    2 of 3|abc|c|1|no|ab|0
    2 of 3|abc|bc|2|no|a|0
    2 of 3|abc|abc|2|yes||0
    2 of 3|abc|aB|0|no|bc|0
    2 of 3|abc|Ba|0|no|bc|0
";

#[test]
fn two_and_three_peers_agree_by_every_rule_as_the_matrix_says() {
    let rules = [
        ("other 1", OTHER1),
        ("other 2", OTHER2),
        ("both", BOTH),
        ("alternating 2", TURNS2),
        ("2 of 3", TWO_OF_THREE),
    ];
    let rows: Vec<&str> = MATRIX.trim().lines().map(str::trim).collect();
    assert_eq!(rows.len(), 78);
    for row in rows {
        let cells: Vec<&str> = row.split('|').collect();
        let [what, names, reviews, have, enough, asks, left] = cells[..] else { panic!("{row}") };
        let rule = rules.iter().find(|(name, _)| *name == what).unwrap().1;
        let now = Board::new(rule, names).change("a", "s1").passes(reviews);
        assert_eq!(now.have(), (have.parse().unwrap(), enough == "yes"), "{row}");
        assert_eq!(now.asks(), asks, "{row}");
        assert_eq!(now.change("b", "s2").have(), (left.parse().unwrap(), false), "{row}: stale");
    }
}

#[test]
fn row_51_two_peers_are_two_reviews() {
    assert_eq!(Board::new(OTHER2, "ab").passes("ab").have(), (2, true));
}

#[test]
fn row_51_a_fail_between_gives_none() {
    // Upper case is a fail.
    for reviews in ["aB", "aBa", "abA"] {
        assert_eq!(Board::new(OTHER2, "abc").passes(reviews).have(), (0, false), "{reviews}");
    }
    assert_eq!(Board::new(OTHER2, "abc").passes("aBc").have(), (0, false), "an objection stands");
    assert_eq!(
        Board::new(OTHER2, "abc").passes("aBb").have(),
        (1, false),
        "passes before an objection are gone"
    );
    assert_eq!(Board::new(OTHER2, "abc").passes("aBba").have(), (2, true));
}

#[test]
fn row_51_a_quorum_by_one_reviewer_is_not_green() {
    let board = Board::new(TWO_OF_THREE, "abc").passes("aaa");
    assert_eq!(board.have(), (1, false));
}

#[test]
fn row_52_a_code_change_makes_the_consensus_stale() {
    let board = Board::new(OTHER2, "abc").passes("ab");
    assert!(board.verdict().ok);
    let board = board.change("c", "s1");
    assert_eq!(board.have(), (0, false));
    assert_eq!(board.asks(), "ab", "the author of the change need not be asked");
}

#[test]
fn a_change_that_no_turn_made_voids_everything_too() {
    let mut board = Board::new(OTHER1, "ab").passes("a");
    assert!(board.verdict().ok);
    board.scope = "operator-was-here".into();
    assert_eq!(board.have(), (0, false));
    assert_eq!(board.asks(), "ab");
}

#[test]
fn a_change_of_the_reviewer_himself_takes_his_review_along() {
    let board = Board::new(OTHER2, "ab").passes("ab").change("b", "s1");
    assert_eq!(board.have(), (1, false), "b's review stays, a's is stale");
    assert!(board.passes("a").verdict().ok);
}

#[test]
fn the_newest_author_does_not_count_while_others_are_enough() {
    let board = Board::new(OTHER1, "ab").change("a", "s1").passes("a");
    assert_eq!(board.have(), (0, false));
    assert!(board.passes("b").verdict().ok);
    let board = Board::new(OTHER2, "abc").change("a", "s1").passes("ab");
    assert_eq!(board.have(), (1, false));
    assert!(board.passes("c").verdict().ok);
}

#[test]
fn the_newest_author_never_suffices_alone() {
    let board = Board::new(OTHER1, "ab").out("b").change("a", "s1").passes("a");
    let verdict = board.verdict();
    assert!(!verdict.ok);
    assert!(verdict.why.contains("only the author"), "{}", verdict.why);
}

#[test]
fn alternating_takes_reviews_in_turn_only() {
    let mut board = Board::new(TURNS2, "ab");
    assert_eq!(board.asks(), "a");
    assert_eq!(board.review("b", true), Ingested::NotYourTurn);
    assert_eq!(board.have(), (0, false));
    assert_eq!(board.review("a", true), Ingested::Counted);
    assert_eq!(board.asks(), "b");
    assert_eq!(board.review("a", true), Ingested::NotYourTurn);
    assert_eq!(board.review("b", true), Ingested::Counted);
    assert_eq!(board.have(), (2, true));
    assert_eq!(board.asks(), "");
}

#[test]
fn the_author_fills_a_place_in_a_quorum_but_does_not_pass_it() {
    let board = Board::new(TWO_OF_THREE, "abc").change("a", "s1");
    assert!(!board.passes("abC").verdict().ok);
    let board = Board::new(TWO_OF_THREE, "abc").change("a", "s1");
    assert!(board.passes("abc").verdict().ok);
}

#[test]
fn who_has_answered_is_not_asked_again() {
    assert_eq!(Board::new(OTHER2, "abc").passes("a").asks(), "bc");
    assert_eq!(Board::new(OTHER1, "ab").change("a", "s1").asks(), "b");
    assert_eq!(Board::new(OTHER1, "ab").passes("a").asks(), "", "green asks nobody");
    assert_eq!(Board::new(OTHER2, "abc").passes("Ab").asks(), "ac", "who objects may change his mind");
}

#[test]
fn an_author_who_objects_to_his_own_change_is_asked_again() {
    let board = Board::new(OTHER1, "ab").passes("A").change("a", "s1");
    assert_eq!(board.have(), (0, false));
    assert_eq!(board.asks(), "ab");
    assert!(board.passes("ab").verdict().ok);
}

#[test]
fn reviews_of_a_reverted_turn_are_forgotten() {
    let mut board = Board::new(OTHER2, "ab").passes("ab");
    void(&mut board.status, &BTreeSet::from([Board::sha(2)]));
    assert_eq!(board.have(), (1, false));
    assert_eq!(board.status.last_reviewer, Some(peer("a")));
    assert_eq!(board.status.consensus_count, 1);
}

#[test]
fn the_history_is_bounded_and_drops_stale_reviews_first() {
    let mut board = Board::new(BOTH, "ab").passes("aa");
    board = board.change("c", "s1").passes("b");
    for _ in 0..40 {
        board = board.passes("a");
    }
    assert_eq!(board.status.history.len(), 20);
    assert!(board.status.history.iter().all(|r| r.scope == "s1"));
    assert!(board.verdict().ok, "nobody can push out the answer of another");
}

#[test]
fn repeating_oneself_does_not_wash_an_objection_out() {
    let mut board = Board::new(OTHER2, "abc").passes("bCc");
    for _ in 0..20 {
        board = board.passes("a");
    }
    assert_eq!(board.have(), (2, true), "b passed before c objected, so it does not count");
}

#[test]
fn a_status_survives_serialisation_and_fills_gaps() {
    let board = Board::new(OTHER2, "ab").passes("aB").change("a", "s1");
    let text = serde_json::to_string(&board.status).unwrap();
    assert_eq!(serde_json::from_str::<SoftStatus>(&text).unwrap(), board.status);
    assert_eq!(serde_json::from_str::<SoftStatus>("{}").unwrap(), SoftStatus::default());
}

proptest! {
    /// Whatever happened, a green goal has a pass by somebody who did not make the newest change.
    #[test]
    fn green_always_means_that_somebody_else_passed(
        rule in prop_oneof![Just(OTHER1), Just(OTHER2), Just(BOTH), Just(TURNS2), Just(TWO_OF_THREE)],
        steps in proptest::collection::vec((0..3_usize, 0..4_u8), 0..40),
    ) {
        let names = ["a", "b", "c"];
        let mut board = Board::new(rule, "abc");
        let mut author: Option<&str> = None;
        for (n, (who, what)) in steps.into_iter().enumerate() {
            match what {
                0 => {
                    board = board.change(names[who], &format!("s{}", n + 1));
                    author = Some(names[who]);
                }
                1 => {
                    board.review(names[who], false);
                }
                _ => {
                    board.review(names[who], true);
                }
            }
            prop_assert!(board.status.history.len() <= 20);
            let verdict = board.verdict();
            prop_assert_eq!(verdict.ok, verdict.why.is_empty());
            if verdict.ok {
                prop_assert!(verdict.have >= verdict.need);
                let here = board.status.history.iter().filter(|r| r.scope == board.scope && r.pass);
                prop_assert!(here.clone().any(|r| Some(r.reviewer.as_str()) != author));
                prop_assert_eq!(board.asks(), "");
            }
        }
    }

    /// A goal that is not green always has somebody to ask: it cannot stall.
    #[test]
    fn somebody_can_always_be_asked(
        rule in prop_oneof![Just(OTHER1), Just(OTHER2), Just(BOTH), Just(TURNS2), Just(TWO_OF_THREE)],
        steps in proptest::collection::vec((0..3_usize, 0..3_u8), 0..30),
    ) {
        let names = ["a", "b", "c"];
        let mut board = Board::new(rule, "abc");
        for (n, (who, what)) in steps.into_iter().enumerate() {
            if what == 0 {
                board = board.change(names[who], &format!("s{}", n + 1));
            } else {
                board.review(names[who], what == 1);
            }
        }
        for _ in 0..9 {
            let Some(next) = board.asks().chars().next() else { break };
            board.review(&next.to_string(), true);
        }
        prop_assert!(board.verdict().ok, "{}", board.verdict().why);
    }
}
