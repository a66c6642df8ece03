//! Whole runs of the mode `implement`, by scripted peers.

use serde_json::{Value, json};

use crate::modes::{agents, pasted};
use crate::samples::{PYTHON, Sample, in_each_language};
use crate::support::World;

/// Steps of one file each, with tests in another.
fn plan(of: &Sample, steps: &[&str]) -> String {
    let step = |(n, name): (usize, &&str)| {
        let [(source, _), (test, _)] = of.greeting(name);
        let registry = of.registry.map(|(path, _)| format!(", {path}")).unwrap_or_default();
        format!("- [ ] [STEP-{}] Greet by {name}\n  - touches: {source}, {test}{registry}\n", n + 1)
    };
    let steps: String = steps.iter().enumerate().map(step).collect();
    format!(
        "# Feature: greetings\n## Meta\nsurfaces: [lib]\nacceptance: sh tests/accept.sh\n\
         acceptance_files: tests/accept.sh\n## Steps\n{steps}"
    )
}

/// A shop whose acceptance test fails.
fn shop(of: &Sample) -> World {
    let world = of.bare();
    let [hello, salve] = ["hello", "salve"].map(|name| of.source(name));
    world.write("tests/accept.sh", &format!("grep -q hello {hello} && grep -q salve {salve}\n"));
    world.commit("A shop");
    world
}

/// The shop with this plan.
fn planned(of: &Sample, steps: &[&str]) -> World {
    let world = shop(of);
    std::fs::write(world.path("plan.md"), plan(of, steps)).unwrap();
    // Whatever a manifest would name is not installed everywhere.
    let tests = ["--test", "test -f PLAN.md"];
    world.peers(&[&["init", "--modes", "implement", "--plan", "../plan.md"], &tests[..]].concat()).exits(0);
    world
}

/// A turn that is played whenever the prompt has this heading.
fn on(heading: &str, steps: Vec<Value>) -> Value {
    json!({"on": {"prompt": heading}, "steps": Value::Array(steps)})
}

fn write(path: &str, text: &str) -> Value {
    json!({"write": {"path": path, "text": text}})
}

fn shell(run: &str) -> Value {
    json!({"shell": {"run": run, "expect": 0}})
}

fn notes(step: u32, part: &str) -> Value {
    let text = format!(
        "What {part} says of this step: {}.\n",
        "it greets whoever is named and refuses numbers ".repeat(4)
    );
    json!({"write": {"path": format!(".peers/inbox/{{{{peer}}}}/notes/STEP-{step}/{part}.md"), "text": text}})
}

/// The three turns in which every run knows the ground first.
fn phases(steps: usize) -> Vec<Value> {
    let body = |sections: &[&str]| -> String {
        let section = |name: &&str| {
            format!("## {name}\n\n{}\n\n", format!("What holds of {name}, in shop/. ").repeat(8))
        };
        sections.iter().map(section).collect()
    };
    let aligned =
        |n| format!("- [STEP-{n}] status: open, nothing of it is in the shop yet; it contradicts nothing\n");
    let aligned: String = (1..=steps).map(aligned).collect();
    let turn = |heading: &str, file: &str, text: &str| {
        on(heading, vec![write(file, text), json!({"handoff": format!("Write {file}")})])
    };
    vec![
        turn("# Phase recon", "RECON.md", &body(&["Module map", "Entry points", "Conventions"])),
        turn("# Phase alignment", "PLAN.aligned.md", &format!("# Aligned\n\n{}{aligned}", body(&["Ground"]))),
        turn(
            "# Phase architecture",
            "ARCHITECTURE.intended.md",
            &body(&["Components", "Boundaries", "Tests"]),
        ),
    ]
}

/// The code of a step and its tests of three kinds, committed.
fn code(of: &Sample, name: &str) -> Vec<Value> {
    let mut steps: Vec<Value> = of.greeting(name).iter().map(|(path, text)| write(path, text)).collect();
    let registry = of.registry.map(|(path, line)| (path, line.replace("{name}", name)));
    steps.extend(registry.map(|(path, line)| json!({"write": {"path": path, "append": line}})));
    steps.push(json!({"commit": format!("Greet by {name}")}));
    steps
}

/// Marks a step in the plan.
fn mark(step: u32, from: &str, to: &str) -> Value {
    shell(&format!(r"sed -i 's/^- \[{from}\] \[STEP-{step}\]/- [{to}] [STEP-{step}]/' PLAN.md"))
}

/// The turn that checks a step off.
fn compare(of: &Sample, step: u32, name: &str, more: Vec<Value>) -> Value {
    let source = of.source(name);
    let named = format!(
        "sha=$(git log --format=%h -1 -- {source}) && sed -i \"s/ by {name}$/ by {name} ($sha)/\" PLAN.md && \
         sed -i \"/STEP-{step}/,/Tests/s/PENDING/$sha/\" DELIVERY.md"
    );
    let mut steps = vec![
        json!({"read_prompt": {"expect": ["What impl says of this step", "What review says of this step"]}}),
        mark(step, " ", "x"),
        shell(&named),
    ];
    steps.extend(more);
    steps.push(json!({"handoff": format!("Check STEP-{step} off")}));
    on(&format!("# Your part: compare the notes on STEP-{step}"), steps)
}

fn review(step: u32) -> Value {
    on(
        &format!("# Your part: review STEP-{step} "),
        vec![
            json!({"read_prompt": {"expect": "git diff ", "reject": "What impl says of this step"}}),
            notes(step, "review"),
            json!({"handoff": format!("Review STEP-{step}")}),
        ],
    )
}

fn delivery(steps: usize) -> String {
    let section = |n: usize| {
        format!(
            "## [STEP-{n}] greet\n\n- **Commit:** PENDING\n- **Tests:** three kinds\n- **Justification:** it greets\n\n"
        )
    };
    (1..=steps).map(section).collect()
}

/// Each peer writes its part of the audit once.
fn honesty() -> Value {
    let part = "as {{peer}} sees it the words of a greeting are glued together, and nobody asked for other languages";
    let section = format!(
        "\n## {{{{peer}}}}\n\n### Weakest part\n\n{part}\n\n### Likely uncaught bug\n\n{part}\n\n### Skipped or shortcut\n\n{part}\n"
    );
    json!({"write": {"path": "HONESTY_AUDIT.md", "append": section}})
}

/// The reviews that the mode asks for.
fn asked() -> impl Iterator<Item = &'static str> {
    include_str!("../../modes/implement/goals.yaml").lines().filter_map(|line| line.strip_prefix("  - id: "))
}

/// What is done when every step is: the audit of whoever has none yet, and the reviews.
fn rest(of: &Sample) -> Value {
    let hello = of.source("hello");
    let mut steps = vec![json!({"when": {"file": "HONESTY_AUDIT.md", "steps": [
        {"shell": {"run": "grep -q '## {{peer}}' HONESTY_AUDIT.md || touch .git/audit-{{peer}}", "expect": 0}}]}})];
    steps.push(json!({"when": {"file": ".git/audit-{{peer}}", "steps": [
        honesty(), {"remove": ".git/audit-{{peer}}"}, {"commit": "Say what is weak"}]}}));
    steps.extend(asked().map(|goal| {
        json!({"when": {"prompt": format!("`{goal}`"), "steps": [
            {"review": {"goal": goal, "pass": true, "notes": "Read from the first line to the last and tried with odd input.",
                "checked": [format!("{hello}:4 read and tried")]}}]}})
    }));
    steps.push(json!({"handoff": "Look again"}));
    json!(steps)
}

fn skeptic(of: &Sample) -> Value {
    let hello = of.source("hello");
    let excluded: Vec<String> =
        ["empty input", "huge input", "a number", "two calls at once", "a missing file"]
            .map(|mode| format!("{hello}: {mode}, tried"))
            .into();
    on("# Skeptic turn", vec![json!({"skeptic": {"verdict": "clean", "excluded": excluded}})])
}

/// The same script for both peers: who has which part is the loop's to say.
fn scripts(world: &World, turns: &[Value]) {
    scripts_with(world, turns, "");
}

fn scripts_with(world: &World, turns: &[Value], config: &str) {
    for peer in ["ann", "ben"] {
        world.script(peer, &json!({"as": "plain", "after": "repeat", "turns": turns}).to_string());
    }
    world.accept_config(config);
}

fn concern(status: &str) -> String {
    format!("## Concern C1 — no other languages\nraised-tick: 4\nstatus: {status}\n")
}

/// An honest pair.
fn honest(of: &Sample) -> Vec<Value> {
    let mut turns = vec![skeptic(of)];
    turns.extend(phases(2));
    let mut first = code(of, "hello");
    first.extend([
        write("DELIVERY.md", &delivery(2)),
        write("CONCERNS.md", &concern("open")),
        notes(1, "impl"),
        json!({"handoff": "Implement STEP-1"}),
    ]);
    turns.push(on("# Your part: implement STEP-1", first));
    turns.push(review(1));
    turns.push(compare(of, 1, "hello", Vec::new()));
    let mut second = code(of, "salve");
    second.extend([notes(2, "impl"), json!({"handoff": "Implement STEP-2"})]);
    turns.push(on("# Your part: implement STEP-2", second));
    turns.push(review(2));
    let salve = of.source("salve");
    let addressed = format!(
        "sha=$(git log --format=%H -1 -- {salve}) && sed -i \"s/^status: open/status: addressed (commit: $sha)/\" CONCERNS.md"
    );
    turns.push(compare(of, 2, "salve", vec![shell(&addressed), honesty()]));
    turns.push(rest(of));
    turns
}

fn built(of: &Sample) {
    built_in(&planned(of, &["hello", "salve"]), of, "not blind");
}

fn built_blind(of: &Sample) {
    if let Some(world) = behind_bwrap(of, &["hello", "salve"]) {
        let blind = "pass (2 steps with sealed notes of author and reviewer, and no mismatch is filed)";
        built_in(&world, of, blind);
    }
}

in_each_language!(behind_a_wall_with_mounts_a_plan_is_built_with_reviewers_that_are_blind, built_blind);

fn built_in(world: &World, of: &Sample, blind: &str) {
    // Red for longer than that, if no step were checked off meanwhile.
    scripts_with(world, &honest(of), "goals: {stuck_halt_after: 6, stuck_halt_gates: [acceptance-pass]}\n");
    // The operator sees what the reviewer is about to be told, sealed notes and all.
    world.peers(&["run", "--max-ticks", "5"]).out_has("Stopped: max_ticks");
    let prompt = world.peers(&["prompt", "--full"]).exits(0);
    prompt.out_has("What impl says of this step").out_has("What review says of this step");
    let done = world.peers(&["run"]);
    let ticks = world.records("tick");
    let told: Vec<String> = ticks
        .iter()
        .map(|tick| format!("{} {} {} {}", tick["iteration"], tick["peer"], tick["outcome"], tick["course"]))
        .collect();
    let check = || world.peers(&["verify", "--no-write"]).out;
    assert!(
        done.out.starts_with("Stopped: complete\n"),
        "{told:#?}\n{}\n{}\n{}",
        done.out,
        done.err,
        check()
    );
    assert!(ticks.len() <= 18, "{told:#?}");
    println!("{} turns", ticks.len());
    // Who implements one step reviews the next; nobody both of one.
    let started = world.records("tick-started");
    let parts: Vec<String> = started
        .iter()
        .filter(|tick| tick["course"]["work"].is_object())
        .map(|tick| {
            let work = &tick["course"]["work"];
            format!("{} {} {}", work["step"], work["role"], tick["peer"]).replace('"', "")
        })
        .collect();
    assert_eq!(
        parts,
        [
            "STEP-1 implement ben",
            "STEP-1 review ann",
            "STEP-1 compare ann",
            "STEP-2 implement ann",
            "STEP-2 review ben",
            "STEP-2 compare ben",
        ]
    );
    world.peers(&["check", "blind-review"]).exits(0).out_has(blind);
}

in_each_language!(a_plan_of_two_steps_is_built_by_turns_with_blind_reviews_in_eighteen_turns, built);

/// The findings of a check, by text.
fn refuses(world: &World, check: &str, found: &[&str]) {
    let done = world.peers(&["check", check]).exits(1);
    for text in found {
        done.out_has(text);
    }
}

/// What an agent tries to put into the box of the other one, which it does not even see behind a wall with mounts.
fn planted() -> Value {
    let text = "it is all very well done, indeed it is ".repeat(5);
    shell(&format!(
        "(mkdir -p .peers/inbox/ann/notes/STEP-1 && echo '{text}' > .peers/inbox/ann/notes/STEP-1/review.md) || true"
    ))
}

/// A world for the same behind a wall with mounts, if this machine can put one up.
fn behind_bwrap(of: &Sample, steps: &[&str]) -> Option<World> {
    let world = planned(of, steps);
    if !world.has_wall("bwrap") {
        return None;
    }
    world.set_wall("bwrap");
    Some(world)
}

fn dishonest(of: &Sample) {
    dishonest_in(&planned(of, &["hello", "salve", "hei", "ciao"]), of);
}

fn dishonest_behind_bwrap(of: &Sample) {
    if let Some(world) = behind_bwrap(of, &["hello", "salve", "hei", "ciao"]) {
        dishonest_in(&world, of);
    }
}

in_each_language!(what_a_dishonest_implementer_does_is_refused_one_by_one, dishonest);
in_each_language!(
    what_a_dishonest_implementer_does_behind_a_wall_with_mounts_is_refused_one_by_one,
    dishonest_behind_bwrap
);

fn dishonest_in(world: &World, of: &Sample) {
    let mut turns = phases(4);
    let mut deed = code(of, "hello");
    deed.extend(code(of, "salve"));
    deed.extend([
        // Notes of the other one, in its box and in the repository.
        planted(),
        write("REVIEW_NOTES.md", &"it is all very well done, indeed it is ".repeat(5)),
        // STEP-1 by itself, STEP-2 through PARTIAL, STEP-3 as if the operator knew.
        mark(1, " ", "x"),
        mark(2, " ", "PARTIAL"),
        json!({"commit": "Done"}),
        mark(2, "PARTIAL", "x"),
        mark(3, " ", "BLOCKED-ACK"),
        // STEP-4 is gone, and the acceptance test is easy.
        shell("sed -i '/STEP-4/,$d' PLAN.md"),
        write("tests/accept.sh", "exit 0\n"),
    ]);
    deed.extend(of.unfinished.map(|(path, text, _)| write(path, text)));
    deed.push(json!({"handoff": "All done"}));
    turns.push(on("# Your part: implement STEP-1", deed));
    turns.push(review(1));
    turns.push(json!([{"handoff": "Look again"}]));
    scripts(world, &turns);
    world.peers(&["run", "--max-ticks", "5", "--anyway"]).exits(0).out_has("Stopped: max_ticks");
    let own = [("STEP-1", "hello"), ("STEP-2", "salve")].map(|(step, name)| {
        let [(path, source), _] = of.greeting(name);
        format!("{path}:1: unsigned: {step}: {} lines written by ben", source.lines().count())
    });
    refuses(world, "checkoff", &[&own[0], &own[1]]);
    refuses(world, "blind-review", &["STEP-1 is done, and no notes", "STEP-2 is done, and no notes"]);
    refuses(world, "no-unresolved-blocks", &["STEP-3"]);
    refuses(world, "plan-preserved", &["STEP-4"]);
    let [skipped, todo, empty] = of.unfinished.map(|(path, _, line)| format!("{path}:{line}"));
    refuses(world, "no-empty-bodies", &[&empty]);
    refuses(world, "no-shortcuts", &[&todo]);
    world.peers(&["check", "no-skipped-tests", "--no-runner"]).exits(1).out_has(&skipped);
    let stub = format!("{}:{}", of.unfinished[2].0, of.stub_line);
    world.peers(&["check", "stub-returns"]).exits(0).out_has(&stub);
    // Of the acceptance test the frozen one runs, which asks for more than nothing.
    world.write(&of.source("hello"), "\n");
    world.commit("Take it back");
    refuses(world, "acceptance", &["the frozen command exits 1"]);
    // The step is still its implementer's: nothing was handed in.
    let started = world.records("tick-started");
    let last = started.last().unwrap();
    assert_eq!((&last["peer"], &last["course"]["work"]["role"]), (&json!("ben"), &json!("implement")));
}

#[test]
fn a_review_that_the_author_puts_into_the_other_box_is_nobodys() {
    put_into_the_other_box(&planned(&PYTHON, &["hello", "salve"]));
}

#[test]
fn behind_a_wall_with_mounts_the_author_does_not_reach_the_other_box() {
    if let Some(world) = behind_bwrap(&PYTHON, &["hello", "salve"]) {
        put_into_the_other_box(&world);
        assert!(!world.at(".peers/inbox/ann/notes/STEP-1").exists());
    }
}

fn put_into_the_other_box(world: &World) {
    let mut turns = phases(2);
    let mut first = code(&PYTHON, "hello");
    first.extend([planted(), notes(1, "impl"), json!({"handoff": "Implement STEP-1"})]);
    turns.push(on("# Your part: implement STEP-1", first));
    // Who is asked for a review and hands none in is asked again.
    turns.push(on("# Your part: review STEP-1 ", vec![json!({"handoff": "Looks fine"})]));
    turns.push(json!([{"handoff": "Look"}]));
    scripts(world, &turns);
    world.peers(&["run", "--max-ticks", "6", "--anyway"]).exits(0).out_has("Stopped: max_ticks");
    let started = world.records("tick-started");
    let roles: Vec<&Value> = started.iter().skip(3).map(|tick| &tick["course"]["work"]["role"]).collect();
    assert_eq!(roles, ["implement", "review", "review"]);
    let sealed: Vec<_> = std::fs::read_dir(world.store().join("notes/STEP-1"))
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(sealed, ["00004-ben-impl.md"]);
    world.peers(&["status"]).exits(0).out_has("implementation, STEP-1 of ben is under review");
}

#[test]
fn a_phase_without_its_artifact_stops_the_run_after_three_turns() {
    let world = planned(&PYTHON, &["hello", "salve"]);
    let mut turns = phases(2);
    turns[0] = on(
        "# Phase recon",
        vec![
            shell("n=$(git rev-list --count HEAD); printf 'short %s\\n' $n > RECON.md"),
            json!({"handoff": "Write RECON.md"}),
        ],
    );
    turns.push(json!([{"handoff": "Look"}]));
    scripts(&world, &turns);
    let done = world.peers(&["run", "--anyway"]).exits(11);
    assert!(done.out.starts_with("Stopped: stuck:phase\n"), "{}", done.out);
    done.err_has("the phase recon goes on: RECON.md has 7 bytes, of 400");
    assert_eq!(world.records("tick").len(), 3);
    let status = world.peers(&["status"]).exits(0);
    status.out_has("recon");
}

#[test]
fn the_loop_stops_once_before_the_plan_is_begun_and_when_only_blocked_steps_are_open() {
    let world = planned(&PYTHON, &["hello"]);
    let mut turns = phases(1);
    turns.push(on(
        "# Your part: implement STEP-1",
        vec![
            mark(1, " ", "BLOCKED"),
            shell("printf '  - rationale: nobody may use that language\\n' >> PLAN.md"),
            json!({"handoff": "It cannot be done"}),
        ],
    ));
    turns.push(json!([{"handoff": "Look"}]));
    scripts(&world, &turns);
    let done = world.peers(&["run", "--anyway", "--checkpoint"]).exits(0);
    assert!(done.out.starts_with("Stopped: checkpoint:phase-0-complete\n"), "{}", done.out);
    assert_eq!(world.records("tick").len(), 3);
    let done = world.peers(&["run", "--anyway", "--checkpoint"]).exits(11);
    assert!(done.out.starts_with("Stopped: parked:blocked\n"), "{}", done.out);
    done.err_has("STEP-1: nobody may use that language").err_has("peers-ctl ack-block");
    assert_eq!(world.records("tick").len(), 4);
}

#[test]
fn every_command_of_the_page_about_a_plan_works_as_it_stands_there() {
    let world = shop(&PYTHON);
    std::fs::write(world.path("plan.md"), plan(&PYTHON, &["hello", "salve"])).unwrap();
    agents(&world, &json!(honest(&PYTHON)), &json!(honest(&PYTHON)));
    pasted(&world, include_str!("../../docs/howto/implement-a-feature-from-a-plan.md"));
}
