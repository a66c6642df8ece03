//! Steps of a plan are given to those who may have them, and to nobody else.

use peers_core::phases;
use peers_core::plan::{Plan, parse};
use peers_core::prompt::BugLine;
use peers_model::BugId;
use peers_model::goal::{Course, Phase};
use peers_model::outcome::{ApiClass, ExitClass, StopReason};
use peers_model::review::SoftRule;
use peers_model::step::{CourseRules, StepRole};

use crate::bench::Bench;
use crate::world::{Gate, Turn, peer};

/// Peers that build a plan of one step. Whoever is asked for notes and hands off has handed them in.
fn building(peers: &str, steps: &str) -> Bench {
    let mut bench = Bench::new(peers);
    bench.cfg.course = Course { phases: vec![phase("build", None)], settle: Vec::new() };
    bench.cfg.rules.course = Some(Box::new(CourseRules {
        phases: vec!["build".into()],
        open_ended: true,
        ..CourseRules::default()
    }));
    bench.world.plan = plan(steps);
    bench
}

fn phase(name: &str, artifact: Option<&str>) -> Phase {
    Phase {
        name: name.into(),
        prompt: "Build it.".into(),
        artifact: artifact.map(str::to_owned),
        least_bytes: 1,
        sections: Vec::new(),
        each_step: false,
        steps: artifact.is_none(),
    }
}

fn plan(steps: &str) -> Option<Plan> {
    let text = format!("# F\n## Meta\nsurfaces: [cli]\nacceptance: true\n## Steps\n{steps}");
    parse(text.as_bytes()).plan
}

const STEP: &str = "- [ ] [STEP-1] a\n  - touches: a\n";

/// Who had which part, in the order of the turns.
fn parts(bench: &Bench) -> String {
    let part = |started: &&peers_model::record::TickStarted| {
        let work = started.course.as_ref().and_then(|course| course.work.as_ref());
        let role = work.map_or("-", |work| work.role.word());
        format!("{}:{role}", started.peer)
    };
    bench.started().iter().map(part).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_step_goes_from_its_author_to_a_reviewer_and_back_when_it_is_not_checked_off() {
    let mut bench = building("ann bob", STEP).up_to(4);
    bench.gate("suite", Gate::Red);
    bench.world.bugs = vec![BugLine {
        id: BugId::new("B-1").unwrap(),
        severity: "high".into(),
        title: "it is all done as STEP-1 says".into(),
        location: "a:1".into(),
        reporter: "ann".into(),
        needs: "a fix".into(),
    }];
    bench.plays(["one", "two", "three", "four"].map(Turn::handoff));
    assert_eq!(parts(&bench), "ann:implement bob:review bob:compare ann:implement");
    let range = |tick: usize| bench.started()[tick].course.clone().unwrap().work.unwrap();
    assert_eq!(range(1).role, StepRole::Review);
    assert_eq!(Some(range(1).base), bench.started().first().map(|started| started.head_before.clone()));
    assert_eq!(range(1).head.as_ref(), Some(&bench.tick(1).head_after));
    let prompts = bench.prompts();
    assert!(prompts[1].contains(&format!("git diff {}..{}", range(1).base, range(1).head.unwrap())));
    assert!(prompts[1].contains("# Your part: review STEP-1"));
    // What its author says is shown to its reviewer only once it has handed in what it read.
    for heading in [
        "## The last handoff",
        "## New commits of the others",
        "## Open bugs that need you",
        "## What the gates said",
    ] {
        assert_eq!([1, 2].map(|turn| prompts[turn].contains(heading)), [false, true], "{heading}");
    }
    assert_eq!([1, 2].map(|turn: usize| bench.started()[turn].inbox.is_empty()), [true, false]);
}

#[test]
fn with_more_peers_all_others_review_and_one_of_them_compares() {
    let mut bench = building("ann bob cyd", STEP).up_to(4);
    bench.plays(["one", "two", "three", "four"].map(Turn::handoff));
    assert_eq!(parts(&bench), "ann:implement bob:review cyd:review bob:compare");
}

#[test]
fn whoever_has_to_review_is_waited_for_and_its_author_never_does() {
    let mut bench = building("ann bob", STEP).up_to(4);
    let refused = || Turn::fails(ExitClass::Nonzero, ApiClass::Transient);
    bench.plays([Turn::handoff("one"), refused(), refused(), Turn::handoff("two")]);
    assert_eq!(parts(&bench), "ann:implement bob:review bob:review bob:review");

    let mut bench = building("ann bob", STEP);
    bench.play([Turn::handoff("one"), Turn::fails(ExitClass::Nonzero, ApiClass::Auth)]);
    assert_eq!(bench.run(), StopReason::PeerUnavailable(peer("bob")));
    assert_eq!(parts(&bench), "ann:implement bob:review");
}

#[test]
fn a_plan_whose_open_steps_are_blocked_is_parked_before_a_turn_is_paid_for() {
    let steps = "- [BLOCKED] [STEP-1] a\n  - touches: a\n  - rationale: no licence\n- [ ] [STEP-2] b\n  - touches: b\n  - depends: STEP-1\n";
    let mut bench = building("ann bob", steps);
    assert_eq!(bench.run(), StopReason::ParkedBlocked);
    assert!(bench.stop_detail().contains("STEP-1: no licence; STEP-2"), "{}", bench.stop_detail());
    assert_eq!(bench.ticks().len(), 0);
    // What is done or acknowledged leaves turns as they always are.
    let mut bench = building("ann bob", "- [x] [STEP-1] a\n  - touches: a\n").up_to(1);
    bench.run();
    assert_eq!(parts(&bench), "ann:-");
}

/// Of each prompt: whether it asks for the review, and whether it leaves the choice to its reader.
fn free(bench: &Bench) -> Vec<(bool, bool)> {
    let asks = |prompt: &&str| {
        (prompt.contains("## Reviews asked of you"), prompt.contains("Choose the step that helps most"))
    };
    bench.prompts().iter().map(asks).collect()
}

#[test]
fn a_turn_with_a_part_of_a_step_is_asked_for_nothing_else_and_the_reviews_come_after_it() {
    let mut bench = building("ann bob", STEP).up_to(3);
    bench.soft("docs-read", SoftRule::Other { needed: 2 });
    bench.plays(["one", "two", "three"].map(Turn::handoff));
    assert_eq!(parts(&bench), "ann:implement bob:review bob:compare");
    assert_eq!(free(&bench), [(false, false); 3]);
    assert!(bench.m.state.asked.is_empty());
    // No step is open: what was owed is asked of each.
    bench.world.plan = plan("- [BLOCKED-ACK] [STEP-1] a\n  - touches: a\n");
    bench.plays(["four", "five", "six"].map(Turn::handoff));
    assert!(parts(&bench).ends_with(":- ann:- bob:-") || parts(&bench).ends_with(":- bob:- ann:-"));
    assert_eq!(free(&bench)[3..], [(true, true); 3]);
}

#[test]
fn a_turn_of_a_phase_with_an_artifact_is_asked_for_that_alone_and_only_its_turns_are_counted() {
    for (artifact, asks, words) in
        [(Some("RECON.md"), false, "ground, 2 of 3 turns used"), (None, true, "ground")]
    {
        let mut bench = building("ann bob", "- [x] [STEP-1] a\n  - touches: a\n").up_to(2);
        bench.soft("docs-read", SoftRule::Other { needed: 2 });
        bench.cfg.course.phases = vec![phase("ground", artifact)];
        let rules = bench.cfg.rules.course.as_mut().unwrap();
        rules.phases = vec!["ground".into()];
        rules.open_ended = artifact.is_none();
        bench.plays(["one", "two"].map(Turn::handoff));
        assert_eq!(free(&bench), [(asks, asks); 2], "{artifact:?}");
        assert_eq!(phases::words(&bench.m.state).as_deref(), Some(words));
    }
}

#[test]
fn green_gates_are_not_complete_while_a_phase_owes_its_file() {
    for (artifact, reason) in [(Some("RECON.md"), StopReason::StuckPhase), (None, StopReason::Complete)] {
        let mut bench = Bench::green();
        bench.cfg.course.phases = vec![phase("ground", artifact)];
        bench.cfg.rules.course = Some(Box::new(CourseRules {
            phases: vec!["ground".into()],
            open_ended: artifact.is_none(),
            ..CourseRules::default()
        }));
        assert_eq!(bench.run(), reason, "{artifact:?}");
    }
}
