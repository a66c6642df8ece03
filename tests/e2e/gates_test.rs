//! `peers gates test`.

use std::io::Read as _;

use crate::support::{World, goals, heard};

const CODE: &str = "function price(a, rate) {\n  if (a <= 0) { throw new Error('no'); }\n  return a * rate;\n}\nmodule.exports = price;\n";

/// A repository with a source, and gates by name.
fn world(gates: &[(&str, &str)]) -> World {
    let world = World::repo();
    world.write("src/price.js", CODE);
    world.commit("Code");
    world.peers(&["init"]).exits(0);
    world.write(".peers/goals.yaml", &goals(gates));
    world.accept_config("");
    world
}

/// Red as soon as anything in the source is not what it was.
fn knows_all() -> String {
    format!(
        "test \"$(cat src/price.js)\" = \"$(printf '{}')\"",
        CODE.replace('\n', "\\n").replace('\'', "'\\''")
    )
}

#[test]
fn gates_that_check_everything_notice_every_fault_and_each_is_counted() {
    let world = world(&[("tests", &knows_all()), ("loose", "grep -q 'a <= 0' src/price.js")]);
    let done = world.peers(&["gates", "test", "--json", "--seed", "1"]).exits(0);
    let json = done.json("peers.gates-test/1");
    let places = json["places"].as_u64().unwrap();
    assert!(places >= 4, "{json}");
    assert_eq!((&json["noticed"], &json["judged"]), (&places.into(), &places.into()));
    assert_eq!(json["by_gate"]["tests"], places);
    assert!((1..places).contains(&json["by_gate"]["loose"].as_u64().unwrap()), "{json}");
    // The same number chooses the same faults; `--count` cuts.
    let some = |seed: &str| {
        let done = world.peers(&["gates", "test", "--json", "--seed", seed, "--count", "2"]).exits(0);
        done.json("peers.gates-test/1")["mutants"].clone()
    };
    assert_eq!(some("7"), some("7"));
    assert_eq!(some("7").as_array().unwrap().len(), 2);
    // What was found is kept for the tree that it was found at.
    world.peers(&["check", "mutation-sample", "--min", "100"]).exits(0).out_has("2 of 2 planted faults");
    let status = world.peers(&["status", "--json"]).exits(1).json("peers.status/1");
    assert_eq!((&status["planted"]["noticed"], &status["planted"]["judged"]), (&2.into(), &2.into()));
    let text = world.peers(&["gates", "test", "--seed", "7", "--count", "2"]).exits(0);
    assert!(text.out.starts_with("gates test: 2 of 2 faults noticed (seed 7)\n"), "{}", text.out);
    assert_eq!(world.read("src/price.js"), CODE);
    assert!(world.git(&["status", "--porcelain"]).is_empty());
    // While a loop runs a peer could ask until it likes the answer.
    let lock = std::fs::File::open(world.store().join("run.lock")).unwrap();
    lock.lock().unwrap();
    let held = world.peers(&["gates", "test", "--seed", "9", "--count", "1"]).exits(0);
    held.err_has("note: the figure is not kept: ");
    drop(lock);
    world.peers(&["check", "mutation-sample"]).exits(0).out_has("2 of 2 planted faults");
    // With other gates it says nothing.
    world.write(".peers/goals.yaml", &goals(&[("tests", "true")]));
    world.accept_config("");
    world.peers(&["check", "mutation-sample"]).exits(3);
}

#[test]
fn gates_that_check_nothing_are_told_so_in_the_first_line() {
    let world = world(&[("tests", "true")]);
    let done = world.peers(&["gates", "test"]).exits(1);
    assert!(done.out.starts_with("gates test: NONE of "), "{}", done.out);
    done.out_has("survived: src/price.js:2 a <= 0 -> a < 0");
    world
        .peers(&["check", "mutation-sample"])
        .exits(0)
        .out_has("mutation-sample: WARN (the gates noticed 0 of ");
    world.peers(&["check", "mutation-sample", "--min", "50"]).exits(1);
    world.peers(&["gates", "test", "--base", "HEAD"]).exits(3).err_has("changed since");
    world.peers(&["gates", "test", "--base", "nothing"]).exits(3).err_has("names no commit");
    let cut = world.peers(&["gates", "test", "--budget", "0s"]).exits(3);
    cut.out_has("left out: the time was used up");
}

#[test]
fn lines_that_changed_since_a_commit_are_looked_at_and_no_others() {
    let world = world(&[("tests", "true")]);
    let base = world.head();
    world.write("src/price.js", &CODE.replace("a * rate", "a * rate + 1"));
    world.commit("Change");
    world.peers(&["check", "mutation-sample"]).exits(3).out_has("no faults were planted at this tree");
    let done = world.peers(&["gates", "test", "--json", "--base", &base]).exits(1);
    let json = done.json("peers.gates-test/1");
    let lines: Vec<_> = json["mutants"].as_array().unwrap().iter().map(|m| m["line"].clone()).collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line == 3), "{json}");
}

#[test]
fn a_gate_that_is_red_or_writes_the_sources_proves_nothing() {
    let red = world(&[("tests", "false")]);
    red.peers(&["gates", "test"]).exits(3).err_has("the gate tests is not green");
    let writes = world(&[("tests", "echo >> src/price.js")]);
    writes.peers(&["gates", "test"]).exits(3).err_has("change files of the commit (src/price.js)");
    // One that mends what is planted, and one that writes elsewhere once something is.
    let mends = format!("{} || printf '' > src/price.js", knows_all());
    let elsewhere = format!("{} || echo >> README.md", knows_all());
    for (gate, why) in
        [(mends, "a gate wrote this file"), (elsewhere, "another file of the commit (README.md)")]
    {
        let world = world(&[("tests", &gate)]);
        let done = world.peers(&["gates", "test", "--count", "2"]).exits(3);
        assert!(done.out.starts_with("gates test: no fault was judged\n"), "{}", done.out);
        assert_eq!(done.out.matches(why).count(), 2, "{}", done.out);
    }
    let own = world(&[("real", "true")]);
    own.write(
        ".peers/goals.yaml",
        &goals(&[("real", "true")]).replace("type: hard", "type: hard, tree: live"),
    );
    own.accept_config("");
    own.peers(&["gates", "test"]).exits(3).err_has("no hard gate runs a command in a checkout");
}

#[test]
fn ctrl_c_prints_what_is_known_and_leaves_nothing_behind() {
    let here = World::repo();
    let pipe = here.fifo("pipe");
    // The first fault is noticed; in the second the gate hangs.
    let hangs = format!(
        "{} && exit 0; test -e mark || {{ touch mark; exit 1; }}; echo up > {}; exec tail -f /dev/null",
        knows_all(),
        pipe.display()
    );
    here.write("src/price.js", CODE);
    here.commit("Code");
    here.peers(&["init"]).exits(0);
    here.write(".peers/goals.yaml", &goals(&[("tests", &hangs)]));
    here.accept_config("");
    let mut child = here.spawned(&["gates", "test", "--count", "3"]);
    heard(&pipe);
    let sent = here.command("sh").arg("-c").arg(format!("kill -INT {}", child.id())).status().unwrap();
    assert!(sent.success());
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(out.starts_with("gates test: interrupted: 1 of 1 fault noticed until then"), "{out}");
    let left = here.everything().into_keys().filter(|path| path.ends_with("price.js"));
    assert_eq!(left.collect::<Vec<_>>(), [here.at("src/price.js")]);
    assert_eq!(here.read("src/price.js"), CODE);
}
