//! Scripted peers that play real tools: limits, tokens and cost are read from what they print.

use crate::support::{World, heard, program};

/// A world whose peers are configured exactly as the documentation of scripts shows.
fn documented(alpha: &str, beta: &str) -> World {
    configured(World::ready("true"), alpha, beta)
}

fn configured(world: World, alpha: &str, beta: &str) -> World {
    let page = include_str!("../../docs/formats/fake-peer.md");
    let block = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let config = block
        .replace("# config.yaml\n", "")
        .replace("[peers, fake-peer", &format!("[{}, fake-peer", program().display()))
        .replace("/home/me", world.path("scripts").to_str().unwrap());
    assert!(config.contains("tool: claude") && config.contains("tool: codex"), "{config}");
    world.write(".peers/config.yaml", &config);
    world.script("alpha", alpha);
    world.script("beta", beta);
    world.accept(&[]);
    world
}

const HONEST: &str =
    "after: repeat\nturns:\n- - write: {path: '{{peer}}.txt', append: '{{turn}}'}\n  - handoff: Work\n";

#[test]
fn a_peer_at_its_usage_cap_waits_and_the_other_goes_on() {
    let cap = "turns:\n- - emit: {usage_cap: {resets_in: 7500}}\nafter: repeat\n";
    let world = documented(cap, HONEST);
    let done = world.peers(&["run", "--max-ticks", "4"]).exits(0);
    assert_eq!(done.last_line(), "Stopped: max_ticks", "{}", done.err);
    let peers: Vec<_> = world.records("tick").iter().map(|tick| tick["peer"].clone()).collect();
    assert_eq!(peers, ["alpha", "beta", "beta", "beta"]);
    let waits = done.err.lines().find(|line| line.contains("alpha waits until ")).unwrap_or_default();
    assert!(waits.contains(" UTC, 2h ") && waits.ends_with(" from now (usage cap)"), "{}", done.err);
    done.err_lacks("no commit");
    world.peers(&["status"]).exits(0).out_has("(usage cap)");
}

#[test]
fn credit_that_is_gone_or_a_cap_of_days_stops_the_run_because_the_peer_is_unavailable() {
    for (alpha, beta, who) in [
        ("turns:\n- - emit: {usage_cap: {resets_in: 259200}}\nafter: repeat\n", HONEST, "alpha"),
        ("turns:\n- - emit: quota\nafter: repeat\n", HONEST, "alpha"),
        (HONEST, "turns:\n- - emit: quota\nafter: repeat\n", "beta"),
    ] {
        let world = documented(alpha, beta);
        let done = world.peers(&["run", "--max-ticks", "6"]).exits(13);
        assert_eq!(done.last_line(), format!("Stopped: peer-unavailable:{who}"), "{}", done.err);
        assert!(!done.err.contains("without `"), "nothing is missing in argv: {}", done.err);
    }
}

#[test]
fn what_a_peer_had_told_before_its_loop_was_killed_is_charged_as_a_lower_bound() {
    let message = r#"{"type":"assistant","message":{"id":"m1","model":"claude-opus-5-5","content":[{"type":"text","text":"x"}],"usage":{"input_tokens":5000,"output_tokens":100}}}"#;
    let world = World::ready("true");
    let pipe = world.fifo("pipe");
    // What was printed is on disk before anybody hears of it.
    let announce =
        format!("until grep -qs opus .peers/log/peers/*; do :; done; echo up > {}", pipe.display());
    let turn = serde_json::json!([{"emit": {"line": message}}, {"shell": announce}, {"hang": "sleep"}]);
    let slow = serde_json::json!({"as": "claude", "turns": [turn], "after": "repeat"}).to_string();
    let world = configured(world, &slow, HONEST);
    let mut child = world.spawned(&["run", "--max-ticks", "1"]);
    heard(&pipe);
    child.kill().unwrap();
    child.wait().unwrap();
    world.script("alpha", HONEST);
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    let tick = world.records("tick")[0].clone();
    assert_eq!((&tick["recovered"], &tick["exit"]["at_least"]), (&true.into(), &true.into()), "{tick}");
    assert_eq!(tick["exit"]["usage"]["tokens"], 5100);
    assert!(tick["exit"]["usage"]["usd"].as_f64().is_some_and(|usd| usd > 0.0), "{tick}");
}

#[test]
fn money_that_a_script_states_counts_against_the_cap_and_stands_in_the_status() {
    let spend =
        HONEST.replace("turns:\n- -", "turns:\n- - emit: {usage: {input: 100, output: 20, usd: 0.75}}\n  -");
    let world = documented(&spend, HONEST);
    let done = world.peers(&["run", "--max-ticks", "9", "--max-usd", "1.5"]).exits(10);
    assert_eq!(done.last_line(), "Stopped: budget:max_usd", "{}", done.err);
    done.err_has("warning: beta (codex): its cost stays unknown, so `max_usd` does not bind it; set its `model: NAME` in ");
    let more = "at least $1.50 of $1.50 are used up: `peers run --max-usd 3` goes on; or raise `budget.max_usd` in .peers/config.yaml";
    done.err_has(&format!("hint: {more}"));
    let text = world.peers(&["status"]).exits(0).out;
    assert!(text.contains(more), "{text}");
    assert!(text.contains("budget:max_usd, at least $1.50 of $1.50"), "{text}");
    let json = world.peers(&["status", "--json"]).exits(0).json("peers.status/1");
    let rows = json["loop"]["value"]["budget"]["rows"].as_array().unwrap().clone();
    let row = |key: &str| rows.iter().find(|row| row["key"] == key).unwrap().clone();
    assert_eq!(
        (row("max_usd")["spent"].as_f64(), row("max_usd")["percent"].as_u64()),
        (Some(1.5), Some(100))
    );
    assert!(row("max_tokens")["spent"].as_u64().unwrap() > 240, "both tools tell tokens");
}

#[test]
fn a_tool_without_its_switch_is_named_at_the_start_and_in_info() {
    let world = World::ready("true");
    let config = world.config("").replacen("tool: plain", "tool: claude", 1);
    world.write(".peers/config.yaml", &config);
    world.accept(&[]);
    let said = "ann runs claude without `--output-format stream-json --verbose`: its tokens, cost and limits stay unknown";
    let done = world.peers(&["run", "--max-ticks", "1"]).exits(0);
    assert_eq!(done.err.matches(&format!("note: {said}")).count(), 1, "{}", done.err);
    assert!(!done.err.contains("ben (plain)"), "no cap, nothing that could be added: {}", done.err);
    let capped = world.peers(&["run", "--max-ticks", "1", "--max-usd", "5"]).exits(0);
    capped.err_has(&format!("warning: {said}, so `max_usd` does not bind it"));
    capped.err_has("warning: ben (plain)");
    assert!(world.peers(&["info"]).exits(0).out.contains(said));
    let json = world.peers(&["info", "--json"]).exits(0).json("peers.info/1");
    assert_eq!(json["peers"][0]["accounting"]["tokens"], false);
    assert_eq!(json["doubts"][0]["loud"], false);
}

#[test]
fn a_variable_that_goals_env_asks_for_and_gates_do_not_get_is_named() {
    let world = World::ready("true");
    world.accept_config("goals: {env: [DATABASE_URL, PGHOST]}\n");
    let policy = world.path("home/config/peers/sandbox.yaml");
    std::fs::create_dir_all(policy.parent().unwrap()).unwrap();
    std::fs::write(&policy, "gates: {env: [PGHOST]}\n").unwrap();
    let named = "gates do not get `DATABASE_URL` of `goals.env`, which `gates.env` does not list";
    let info = world.peers(&["info"]).exits(0).out;
    assert!(info.contains(named) && !info.contains("`PGHOST` of"), "{info}");
    world.peers(&["run", "--max-ticks", "1"]).exits(0).err_has(named);

    // A gate's own list is one more that asks.
    let goals = world.read(".peers/goals.yaml");
    world.write(".peers/goals.yaml", &goals.replacen("cmd:", "env: [LD_PRELOAD, PGHOST, FOO], cmd:", 1));
    let info = world.peers(&["info"]).exits(0).out;
    for own in [
        "`LD_PRELOAD` of its `env`, which is never passed on",
        "`FOO` of its `env`, which `gates.env` does not list",
    ] {
        assert!(info.contains(&format!("does not get {own}")), "{info}");
    }
    assert!(!info.contains("`PGHOST` of"), "{info}");
}
