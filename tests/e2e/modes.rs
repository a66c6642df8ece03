//! Whole runs of the modes that ship, by scripted peers.

use serde_json::{Value, json};

use crate::samples::{PYTHON, Sample, in_each_language};
use crate::support::{Ended, World, program};

fn script(world: &World, peer: &str, turns: &Value) {
    world.script(peer, &json!({"as": "plain", "after": "repeat", "turns": turns}).to_string());
}

/// Passes every one of these reviews that is asked for, then hands off.
fn reviews(goals: &[&str], checked: &str) -> Vec<Value> {
    let review = |goal: &&str| {
        json!({"when": {"prompt": format!("`{goal}`"), "steps": [
            {"review": {"goal": goal, "pass": true, "notes": "Read from the first line to the last and tried with odd input.",
                "checked": [format!("{checked}:1 read and tried")]}}]}})
    };
    let mut steps: Vec<Value> = goals.iter().map(review).collect();
    steps.push(json!({"handoff": "Answer the reviews"}));
    steps
}

/// What each peer does in a skeptic turn.
fn skeptic(checked: &str) -> Value {
    let excluded: Vec<String> =
        ["empty input", "huge input", "text for a number", "two calls at once", "a missing file"]
            .map(|mode| format!("{checked}: {mode}, tried"))
            .into();
    json!({"on": {"prompt": "# Skeptic turn"}, "steps": [{"skeptic": {"verdict": "clean", "excluded": excluded}}]})
}

/// What an honest peer does about the flaws.
fn mend(of: &Sample) -> Value {
    let Sample { price, wrong, login, test, unskip, .. } = of;
    json!([
        {"bug_report": {"id": "BUG-first-price", "severity": "med", "title": "The first price is left out",
            "description": "total([1, 2]) is 2, and 3 is expected: it begins at the second.", "location": format!("{price}:2")}},
        {"write": {"path": "tests/run.sh", "append": format!("! grep -q '{wrong}' {price}\n")}},
        {"shell": {"run": "sh tests/run.sh", "expect": 1}},
        {"commit": {"subject": "Show that the first price is left out", "trailers": {"Bug-Reproduce": "BUG-first-price"}}},
        {"write": {"path": price, "text": of.right_total}},
        {"shell": {"run": "sh tests/run.sh", "expect": 0}},
        {"bug_resolve": {"id": "BUG-first-price", "note": "All prices are added."}},
        {"write": {"path": login, "text": of.asked_key}},
        {"commit": "Read the key from the environment"},
        {"shell": {"run": format!("sed -i '{unskip}' {test}"), "expect": 0}},
        {"handoff": "Run the test of the total again"},
    ])
}

const AUDIT: [&str; 3] = ["bug-hunt-round-1-deep", "bug-hunt-round-2-cross-review", "tests-3-class-review"];

/// Runs it to its end: the number of ticks.
fn complete(world: &World) -> usize {
    let done = world.peers(&["run"]);
    let ticks = world.records("tick");
    let told: Vec<String> = ticks
        .iter()
        .map(|tick| format!("{} {} {}", tick["iteration"], tick["peer"], tick["outcome"]))
        .collect();
    assert_eq!(done.code, Some(0), "{told:#?}\n{}\n{}", done.out, done.err);
    assert!(done.out.starts_with("Stopped: complete\n"), "{told:#?}\n{}\n{}", done.out, done.err);
    ticks.len()
}

/// The gates that are red at HEAD.
fn red(world: &World) -> Vec<String> {
    let found = world.peers(&["verify", "--json", "--no-write"]).json("peers.verify/2");
    let of = |gate: &Value| (gate["state"] == "fail").then(|| gate["name"].as_str().unwrap().to_owned());
    found["hard"].as_array().unwrap().iter().filter_map(of).collect()
}

/// An honest pair, of which the first does the work.
fn honest(world: &World, of: &Sample, goals: &[&str]) {
    let (reviews, skeptic) = (reviews(goals, of.price), skeptic(of.price));
    script(world, "ann", &json!([skeptic, mend(of), reviews]));
    script(world, "ben", &json!([skeptic, reviews]));
    world.accept_config("");
}

fn audited(of: &Sample) {
    let world = of.flawed();
    world.peers(&["init", "--modes", "audit", "--test", "sh tests/run.sh"]).exits(0);
    honest(&world, of, &AUDIT);
    assert_eq!(red(&world), ["tests-no-unjustified-skip-or-fail", "no-secrets-committed"]);
    let ticks = complete(&world);
    assert!(ticks <= 8, "{ticks}");
    assert_eq!(world.peers(&["bug-hunt", "summary", "--json"]).exits(0).json("peers.bug-hunt/1")["fixed"], 1);
    assert_eq!(red(&world), Vec::<String>::new());
}

in_each_language!(an_audit_finds_and_mends_three_flaws_in_eight_turns, audited);

fn thorough(of: &Sample) {
    let world = of.flawed();
    world.peers(&["init", "--modes", "thorough", "--test", "sh tests/run.sh"]).exits(0);
    honest(&world, of, &[&AUDIT[..], &["skeptic-pass", "aggressive-honesty"]].concat());
    let ticks = complete(&world);
    assert!(ticks <= 12, "{ticks}");
    // The tick that filed the bug begins the streak anew, so three others follow before the skeptic.
    let records = world.records("tick");
    let skeptic = records.iter().position(|tick| tick["skeptic"] == "clean").unwrap();
    assert!(skeptic >= 4, "{skeptic}");
    let status = world.peers(&["status", "--json"]).exits(0).json("peers.status/1");
    assert!(status["loop"]["value"]["converge"]["clean_ticks"].as_u64().unwrap() >= 3, "{status}");
}

in_each_language!(a_thorough_run_waits_for_three_clean_ticks_and_for_skeptics_of_its_own, thorough);

const DOCS: [&str; 2] = ["describe-skeptic-pass", "describe-tradeoff-honesty"];

/// A document with these sections, in which each sentence stands once, or the same one again and again.
fn document(sections: &[&str], price: &str, padded: bool) -> String {
    let mut text = "# Shop\n".to_owned();
    for section in sections {
        text.extend(["\n## ", section, "\n\n"]);
        for n in 0..8 {
            let of = if padded { "the shop".to_owned() } else { format!("point {n} of {section}") };
            text.extend(["This says what holds for ", &of, " in ", price, ".\n"]);
        }
    }
    text
}

/// The turn that writes the documents.
fn describe(price: &str, padded: bool) -> Value {
    let write = |path: &str, sections: &[&str]| json!({"write": {"path": path, "text": document(sections, price, padded)}});
    json!([
        write("SPEC.md", &["Threat Model", "Invariants", "API"]),
        write("ARCHITECTURE.md", &["Components", "Data Flow"]),
        write("DESIGN.md", &["Decisions", "Tradeoffs"]),
        {"handoff": "Describe the shop"},
    ])
}

/// A turn with a small change to them, and with reviews.
fn touch(peer: &str) -> Vec<Value> {
    let line = format!("Read again by {peer}.\n");
    let mut steps = vec![
        json!({"write": {"path": "SPEC.md", "append": line}}),
        json!({"commit": "Say who read the specification"}),
    ];
    steps.extend(reviews(&DOCS, "SPEC.md"));
    steps
}

fn describing(of: &Sample, padded: bool) -> World {
    let world = of.flawed();
    world.peers(&["init", "--modes", "describe"]).exits(0);
    let (again, doubt) = (reviews(&DOCS, "SPEC.md"), skeptic("SPEC.md"));
    script(&world, "ann", &json!([doubt, describe(of.price, padded), touch("ann"), again]));
    script(&world, "ben", &json!([doubt, touch("ben"), again]));
    world.accept_config("");
    world
}

fn described(of: &Sample) {
    let world = describing(of, false);
    let ticks = complete(&world);
    assert!(ticks <= 7, "{ticks}");
    world.read("DESIGN.md");
}

in_each_language!(three_documents_are_written_and_agreed_on_in_seven_turns, described);

in_each_language!(padded_documents_are_refused, padded);

fn padded(of: &Sample) {
    let world = describing(of, true);
    world.peers(&["run", "--max-ticks", "4"]).exits(0).out_lacks("Stopped: complete");
    assert_eq!(red(&world), ["description-files-present"]);
    world.peers(&["check", "docs-present"]).exits(1).out_has("stand there already");
}

const MAPS: [&str; 2] = ["summaries-cross-review", "architecture-cross-review"];

/// The turn that makes the map, with this summary for each entry.
fn map_the_shop(of: &Sample, summary: &str) -> Value {
    let modules: Vec<String> = of.modules.iter().map(|module| format!("[[{module}]]")).collect();
    let peers = program().display().to_string();
    let architecture = format!("# Shop\n\nWhat somebody buys is added up here: {}.\n", modules.join(", "));
    json!([
        {"shell": format!("'{peers}' codemap refresh && sed -i 's/summary: \"\"/summary: \"{summary}\"/' CODEMAP.yaml && '{peers}' agents-doc")},
        {"write": {"path": "ARCHITECTURE.md", "text": architecture}},
        {"handoff": "Map the shop"},
    ])
}

fn mapping(of: &Sample, summary: &str) -> World {
    let world = of.flawed();
    world.peers(&["init", "--modes", "document"]).exits(0);
    let (again, doubt) = (reviews(&MAPS, "CODEMAP.yaml"), skeptic("CODEMAP.yaml"));
    script(&world, "ann", &json!([doubt, map_the_shop(of, summary), again]));
    script(&world, "ben", &json!([doubt, again]));
    world.accept_config("");
    world
}

fn mapped(of: &Sample) {
    let world = mapping(of, "Says what this part of the shop does");
    let ticks = complete(&world);
    assert!(ticks <= 7, "{ticks}");
    world.peers(&["codemap", "refresh", "--check"]).exits(0).out_has("is up to date");
    world.peers(&["agents-doc", "--check", "--json"]).exits(0).json("peers.agents-doc/1");
    // Whoever changes the code has to change the map.
    world.write(of.price, of.rated_total);
    world.commit("A rate");
    let json = world.peers(&["codemap", "refresh", "--check", "--json"]).exits(1).json("peers.codemap/1");
    assert_eq!(json["stale"], json!([of.total]));
}

in_each_language!(a_map_is_made_and_agreed_on_in_seven_turns, mapped);

in_each_language!(a_map_whose_summaries_say_nothing_is_refused, unsaid);

fn unsaid(of: &Sample) {
    let world = mapping(of, "TBD");
    world.peers(&["run", "--max-ticks", "4"]).exits(0).out_lacks("Stopped: complete");
    assert_eq!(red(&world), ["codemap-summaries-complete"]);
}

#[test]
fn row_42_modes_that_do_not_stack_or_do_not_exist_leave_nothing_behind() {
    let world = World::repo();
    let modes = world.path("modes");
    let mode = |name: &str, cmd: &str| {
        let dir = modes.join(name);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("mode.yaml"), format!("name: {name}\n")).unwrap();
        let goal = format!("goals:\n- {{id: same, type: hard, cmd: '{cmd}', pass_when: exit_code == 0}}\n");
        std::fs::write(dir.join("goals.yaml"), goal).unwrap();
    };
    mode("one", "true");
    mode("two", "exit 0");
    let everything = || {
        let mut all = world.everything();
        all.retain(|path, _| !path.starts_with(world.path("home/config")));
        all
    };
    let before = everything();
    for (asked, code, says) in [
        ("describe,audit", 2, "the mode `describe` stacks with no other, and `audit` was asked for too"),
        (",,", 2, "--modes names no mode"),
        (
            "nonsense",
            3,
            "unknown mode `nonsense`; available: audit, audit-deep, describe, document, implement, one, thorough, two",
        ),
        ("one,two", 3, "the modes `one` and `two` have different goals with the id `same`"),
    ] {
        let mut init = world.command(program());
        init.env("PEERS_MODES_DIR", &modes).args(["init", "--modes", asked]);
        Ended::of(&init.output().unwrap()).exits(code).err_has(says);
        let mut new = world.command(program().with_file_name("peers-ctl"));
        new.env("PEERS_MODES_DIR", &modes).args(["new", "./", "--modes", asked, "--agents", "claude"]);
        Ended::of(&new.output().unwrap()).exits(code).err_has(says);
        assert!(!world.at(".peers").exists(), "{asked}");
    }
    assert_eq!(everything(), before);
}

#[test]
fn modes_are_listed_shown_and_compared_by_both_commands() {
    let world = World::repo();
    world.peers(&["modes", "list"]).exits(0).out_has("audit     ").out_has("built-in");
    let list = world.peers(&["modes", "list", "--json"]).exits(0).json("peers.modes-list/1");
    let names: Vec<&str> =
        list["modes"].as_array().unwrap().iter().map(|mode| mode["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["audit", "audit-deep", "describe", "document", "implement", "thorough"]);
    let ctl = world.ctl(&["modes", "list", "--json"]).exits(0).json("peers-ctl.modes-list/1");
    assert_eq!(ctl["data"]["modes"], list["modes"]);
    world
        .peers(&["modes", "show", "thorough"])
        .exits(0)
        .out_has("Requires: audit\n")
        .out_has("convergence-reached");
    world
        .peers(&["modes", "show", "audit", "prompts/tests-3-class-review.md"])
        .exits(0)
        .out_has("Judge the tests");
    world.peers(&["modes", "show", "adit"]).exits(3).err_has("did you mean `audit`?");

    world.ctl(&["new", ".", "--name", "shop", "--modes", "describe", "--agents", "claude"]).exits(0);
    world.peers(&["modes", "diff"]).exits(0).out_has("describe  same  version 1\n");
    world.ctl(&["modes", "diff", "shop"]).exits(0).out_has("describe  same  version 1\n");
    let goals = world.read(".peers/goals.yaml");
    world.write(".peers/goals.yaml", &goals.replacen("check: docs-converged", "check: docs-present", 1));
    world.peers(&["modes", "diff"]).exits(1).out_has("  description-converged: different in goals.yaml\n");
    // It takes a reason to weaken what a mode asks for.
    let note = "a gate of the mode `describe` is dropped or changed: description-converged";
    world.peers(&["goals", "accept"]).exits(5).err_has(note);
    world.peers(&["goals", "accept", "--note", "one file only"]).exits(0);
}

/// The commands of the blocks of a page, each with the exit code that it says.
fn commands(page: &str) -> Vec<(String, i32)> {
    let mut found = Vec::new();
    for block in page.split("```sh\n").skip(1) {
        let block = block.split("```").next().unwrap();
        for line in block.lines().filter(|line| !line.trim().is_empty()) {
            let (command, remark) = line.split_once(" # ").unwrap_or((line, ""));
            found.push((command.trim().to_owned(), i32::from(remark.contains("exits 1"))));
        }
    }
    found
}

/// Both agents by the names that `init` configures, played by these scripts.
pub(crate) fn agents(world: &World, claude: &Value, codex: &Value) {
    for (peer, format, turns) in [("claude", "claude", claude), ("codex", "codex", codex)] {
        let script = json!({"as": format, "after": "repeat", "turns": turns}).to_string();
        world.script(peer, &script);
        let (program, path) = (program(), world.path(&format!("scripts/{peer}.yaml")));
        let run = format!("exec {} fake-peer --script {} \"$@\"", program.display(), path.display());
        world.executable(&format!("bin/{peer}"), &run);
    }
}

/// Runs a page from its first command to its last, as somebody would paste them.
pub(crate) fn pasted(world: &World, page: &str) {
    let path =
        format!("{}:{}", program().parent().unwrap().display(), World::search_path(&world.path("bin")));
    for (command, code) in commands(page).iter().filter(|(command, _)| !command.starts_with("cd ")) {
        let mut shell = world.command("sh");
        shell.arg("-c").arg(command).env("PATH", &path);
        let done = Ended::of(&shell.output().unwrap());
        assert_eq!(done.code, Some(*code), "{command}\n{}\n{}", done.out, done.err);
        if command.starts_with("peers run") {
            assert!(done.out.starts_with("Stopped: complete\n"), "{}\n{}", done.out, done.err);
        }
    }
}

const DEEP: [&str; 7] = [
    "spec-conformance",
    "critical-fix-review",
    "honesty-self-check",
    "performance-review",
    "api-drift-review",
    "defer-discipline",
    "docs-sync-review",
];

#[test]
fn every_command_of_the_pages_about_audits_works_as_it_stands_there() {
    for page in [
        include_str!("../../docs/modes/audit.md"),
        include_str!("../../docs/modes/thorough.md"),
        include_str!("../../docs/modes/audit-deep.md"),
        include_str!("../../docs/howto/audit-an-existing-application.md"),
    ] {
        let world = PYTHON.flawed();
        let all = [&AUDIT[..], &["skeptic-pass", "aggressive-honesty"], &DEEP].concat();
        let (reviews, skeptic) = (reviews(&all, PYTHON.price), skeptic(PYTHON.price));
        agents(&world, &json!([skeptic, mend(&PYTHON), reviews]), &json!([skeptic, reviews]));
        pasted(&world, page);
    }
}

#[test]
fn every_command_of_the_pages_about_documents_works_as_it_stands_there() {
    let first = map_the_shop(&PYTHON, "Says what this part of the shop does");
    let (again, doubt) = (reviews(&MAPS, "CODEMAP.yaml"), skeptic("CODEMAP.yaml"));
    let world = PYTHON.flawed();
    agents(&world, &json!([doubt, first, again]), &json!([doubt, again]));
    pasted(&world, include_str!("../../docs/modes/document.md"));

    let world = PYTHON.flawed();
    let (first, small, again) = (describe(PYTHON.price, false), touch, reviews(&DOCS, "SPEC.md"));
    let doubt = skeptic("SPEC.md");
    agents(&world, &json!([doubt, first, small("claude"), again]), &json!([doubt, small("codex"), again]));
    pasted(&world, include_str!("../../docs/modes/describe.md"));
}

#[test]
fn a_mode_that_changed_after_it_was_applied_is_told_and_changes_nothing() {
    let world = World::repo();
    let mode = world.path("modes/mine");
    std::fs::create_dir_all(&mode).unwrap();
    std::fs::write(mode.join("mode.yaml"), "name: mine\n").unwrap();
    let goals = "goals:\n- {id: real, type: hard, cmd: 'test -f README.md', pass_when: exit_code == 0}\n";
    std::fs::write(mode.join("goals.yaml"), goals).unwrap();
    let peers = |args: &[&str]| {
        let mut command = world.command(program());
        Ended::of(&command.env("PEERS_MODES_DIR", world.path("modes")).args(args).output().unwrap())
    };
    peers(&["init", "--modes", "mine"]).exits(0);
    world.scripts("after: repeat\nturns:\n- - handoff\n");
    world.accept_config("");
    peers(&["modes", "diff"]).exits(0);
    std::fs::write(mode.join("goals.yaml"), goals.replace("README.md", "absent")).unwrap();
    let diff = peers(&["modes", "diff"]).exits(1);
    diff.out_has("mine  changed  version 1\n  real: different in goals.yaml\n");
    let run = peers(&["run", "--max-ticks", "1"]).exits(0);
    run.err_has("the mode `mine` changed since it was applied, and goals.yaml did not");
    run.err_has("1 of 1 gate green");
    std::fs::remove_dir_all(&mode).unwrap();
    peers(&["modes", "diff"]).exits(1).out_has("mine  gone");
}

#[test]
fn modes_go_with_the_other_ways_to_set_a_project_up() {
    let world = World::repo();
    world.executable("bin/claude", "exit 0");
    let mut init = world.command(program());
    init.env("PATH", World::search_path(&world.path("bin")));
    init.args(["init", "--modes", "audit", "--test", "make check", "--task", "Fix it", "--yes"]);
    Ended::of(&init.output().unwrap()).exits(0);
    let goals = world.read(".peers/goals.yaml");
    for part in ["cmd: make check\n", "- id: no-secrets-committed", "- id: task-done"] {
        assert!(goals.contains(part), "{part}: {goals}");
    }
    assert_eq!(world.read("TASK.md").trim(), "Fix it");

    let new = ["new", "../fresh", "--modes", "audit", "--lang", "python", "--agents", "claude"];
    world.ctl(&new).exits(0);
    let goals = std::fs::read_to_string(world.path("fresh/.peers/goals.yaml")).unwrap();
    assert!(goals.contains("- id: tests-pass") && goals.contains("pytest"), "{goals}");
    let nothing = ["new", "../other", "--modes", "audit", "--agents", "claude"];
    world.ctl(&nothing).exits(1).err_has("name the command: `--test CMD`");
    assert!(!world.path("other").exists());
}

/// A mode of the operator's whose gate is a script of its own, applied here.
fn scripted(script: &str) -> World {
    let world = World::repo();
    let mode = world.path("home/config/peers/modes/mine");
    std::fs::create_dir_all(mode.join("checks")).unwrap();
    std::fs::write(mode.join("mode.yaml"), "name: mine\n").unwrap();
    let cmd = "'\"$PEERS_MODE_DIR/checks/here.sh\"'";
    let goals = format!(
        "goals:\n- {{id: here, type: hard, cmd: {cmd}, pass_when: exit_code == 0, retry_on_fail: 1}}\n"
    );
    std::fs::write(mode.join("goals.yaml"), goals).unwrap();
    std::fs::write(mode.join("checks/here.sh"), format!("#!/bin/sh\n{script}\n")).unwrap();
    world.peers(&["init", "--modes", "mine"]).exits(0);
    world.scripts("after: repeat\nturns:\n- - handoff\n");
    world.accept_config("");
    world
}

#[test]
fn the_scripts_of_a_mode_run_as_they_were_accepted() {
    let world = scripted("test -f README.md");
    // The operator's own copy is not what runs.
    std::fs::remove_dir_all(world.path("home/config/peers/modes")).unwrap();
    world.peers(&["verify"]).exits(0);
    world.peers(&["verify", "--pristine"]).exits(0);
    world.peers(&["run", "--max-ticks", "1"]).exits(0).err_has("1 of 1 gate green");
    let script = world.store().join("accepted/modes/mine/checks/here.sh");
    std::fs::write(&script, "#!/bin/sh\ntrue\n").unwrap();
    let not_those = "the files of the mode `mine` in the trusted store are not those that were accepted";
    world.peers(&["verify"]).exits(5).err_has(not_those);
    world.peers(&["run"]).exits(5).err_has(not_those);
    std::fs::remove_file(&script).unwrap();
    world.peers(&["run"]).exits(3).err_has("is missing");
}

#[test]
fn what_a_gate_does_to_the_script_of_its_mode_is_gone_at_the_next_attempt() {
    let world = scripted("chmod u+w \"$0\" && printf 'exit 0\\n' > \"$0\"; exit 1");
    assert_eq!(red(&world), ["here"]);
}
