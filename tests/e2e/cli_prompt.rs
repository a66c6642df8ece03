//! `peers prompt`.

use serde_json::Value;

use crate::support::{World, heard};

/// The prompt without what is drawn at random.
fn without_nonce(prompt: &str) -> String {
    let nonce = prompt.split("a line `<<<peers-data ").nth(1).unwrap().split(' ').next().unwrap();
    assert_eq!(nonce.len(), 16, "{prompt}");
    prompt.replace(nonce, "NONCE")
}

#[test]
fn what_is_shown_is_what_is_sent_and_showing_it_writes_nothing() {
    let world = World::ready("true");
    world.accept_config("comm: hybrid\n");
    let leave = serde_json::json!({"shell": "printf 'look at x\\n' > .peers/inbox/ann/to-ben/hello.md"});
    let make = serde_json::json!({"shell": "mkdir -p .peers/inbox/ann/to-ben"});
    world.script(
        "ann",
        &format!("turns:\n- - write: {{path: ann.txt, append: a}}\n  - {make}\n  - {leave}\n  - handoff: Work of ann\n"),
    );
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    world.write("left.txt", "mine\n");
    let before = world.everything();
    let shown = world.peers(&["prompt", "--full"]).exits(0);
    shown.err_has("`real` is judged first");
    world.peers(&["prompt"]).exits(0);
    world.peers(&["prompt", "--json", "--peer", "ann"]).exits(0);
    let after = world.everything();
    let written: Vec<_> = after.iter().filter(|(path, held)| before.get(*path) != Some(held)).collect();
    assert!(written.is_empty() && after.len() == before.len(), "{written:?}");
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    let sent = world.read(".peers/log/prompts/tick-00002-ben.txt");
    assert!(
        sent.contains("look at x") && sent.contains("left.txt") && sent.contains("Work of ann"),
        "{sent}"
    );
    assert_eq!(without_nonce(&shown.out), without_nonce(&sent));
}

#[test]
fn the_sizes_add_up_and_the_turn_is_the_right_one() {
    let world = World::ready("true");
    let found = world.peers(&["prompt", "--json", "--full"]).exits(0).json("peers.prompt/1");
    assert_eq!((&found["peer"], &found["tick"]), (&"ann".into(), &1.into()));
    assert_eq!(found["next"], serde_json::json!({"kind": "turn", "peer": "ann"}));
    assert_eq!((&found["open"], &found["owed"]), (&Value::Null, &serde_json::json!(["real"])));
    let blocks = found["blocks"].as_array().unwrap();
    let sum: u64 = blocks.iter().map(|block| block["bytes"].as_u64().unwrap() + 1).sum();
    assert_eq!(found["bytes"].as_u64().unwrap(), sum - 1, "blocks are joined by one line end");
    let text = found["text"].as_str().unwrap();
    assert_eq!(text.len(), usize::try_from(sum - 1).unwrap());
    assert_eq!(found["tokens"].as_u64().unwrap(), (sum - 1).div_ceil(4));
    let of_ben = world.peers(&["prompt", "--json", "--peer", "ben"]).exits(0).json("peers.prompt/1");
    assert_eq!((&of_ben["peer"], &of_ben["next"]["peer"]), (&"ben".into(), &"ann".into()));
    assert_eq!(of_ben["text"], Value::Null);
    world.peers(&["prompt", "--peer", "bem"]).exits(2).err_has("did you mean `ben`?");
    let page = world.peers(&["prompt"]).exits(0);
    assert!(page.out.starts_with("Prompt of tick 1 for `ann`\n\nblock "), "{}", page.out);
    page.out_has("--full prints all").out_has("`ann` had none yet");
}

#[test]
fn beside_a_loop_it_is_the_prompt_after_the_turn_that_is_open() {
    let world = World::ready("true");
    let (up, go) = (world.fifo("up"), world.fifo("go"));
    let wait = format!("echo up > {}; cat {} > /dev/null", up.display(), go.display());
    let script = serde_json::json!({"turns": [[{"shell": wait}, {"handoff": "Work of ann"}]]});
    world.script("ann", &script.to_string());
    let mut running = world.spawned(&["run", "--max-ticks", "1"]);
    heard(&up);
    let found = world.peers(&["prompt", "--json"]).exits(0).json("peers.prompt/1");
    std::fs::write(&go, "go").unwrap();
    assert!(running.wait().unwrap().success());
    assert_eq!(found["open"], serde_json::json!({"tick": 1, "peer": "ann", "live": true}));
    assert_eq!((&found["peer"], &found["tick"]), (&"ben".into(), &2.into()));
    assert_eq!(world.records("exit").len(), 1, "the loop did not notice");
}

#[test]
fn a_loop_that_would_stop_is_told() {
    let world = World::ready("false");
    world.peers(&["run", "--max-ticks", "1"]).exits(0);
    world.accept_config("budget: {max_iterations: 1}\n");
    let found = world.peers(&["prompt", "--json"]).exits(0);
    found.err_has("no prompt is sent: the loop stops with `budget:max_iterations`");
    assert_eq!(found.json("peers.prompt/1")["next"]["reason"], "budget:max_iterations");
}

#[test]
fn files_that_were_not_accepted_are_shown_with_a_warning() {
    let world = World::ready("true");
    world.write(".peers/config.yaml", &world.config("comm: hybrid\n"));
    let shown = world.peers(&["prompt", "--full"]).exits(0);
    shown.err_has("would refuse: config.yaml changed since it was accepted");
    shown.out_has(".peers/inbox/ann");
    let none = World::repo();
    none.peers(&["prompt"]).exits(3);
}
