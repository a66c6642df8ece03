//! What a peer is told of the others' commits.

use crate::world::{World, program};

fn three() -> World {
    let w = World::new();
    let peer = |name: &str| {
        format!(
            "- name: {name}\n  tool: claude\n  argv: [{:?}, fake-peer, {:?}, {name}, --output-format, stream-json]\n",
            program().display().to_string(),
            w.path("script.yaml").display().to_string()
        )
    };
    w.put(".peers/config.yaml", &format!("peers:\n{}{}{}", peer("ann"), peer("bob"), peer("cyd")));
    w.accept();
    w
}

/// The commits that the prompt of a tick shows, by sender and subject.
fn shown(w: &World, tick: u64) -> Vec<String> {
    let prompt = w.prompt(tick);
    let mut lines: Vec<String> = prompt
        .lines()
        .filter_map(|line| line.trim().strip_prefix('[')?.split_once("] "))
        .filter(|(from, _)| ["ann", "bob", "cyd"].contains(from))
        .map(|(from, rest)| {
            format!("{from}: {}", rest.rsplit_once(" (").map_or(rest, |(subject, _)| subject))
        })
        .collect();
    lines.sort();
    lines
}

#[test]
fn row_64_three_peers_see_each_commit_of_both_others_once_and_the_first_too() {
    let w = three();
    w.play(
        "repeat",
        &[&["write: {path: 'src/a{{iteration}}.py', text: 'a = 1'}", "handoff: 'Work {{iteration}}'"]],
    );
    w.run(&["--max-ticks=6"]).stopped("max_ticks", 0);
    let order: Vec<String> = w.ticks().iter().map(|t| t.peer.to_string()).collect();
    assert_eq!(order, ["ann", "bob", "cyd", "ann", "bob", "cyd"]);
    let all: Vec<String> = (1..=6).map(|tick| shown(&w, tick).join(", ")).collect();
    assert_eq!(
        all,
        [
            "",
            "ann: Work 1",
            "ann: Work 1, bob: Work 2",
            "bob: Work 2, cyd: Work 3",
            "ann: Work 4, cyd: Work 3",
            "ann: Work 4, bob: Work 5",
        ]
    );
    w.settled();
}

#[test]
fn row_64_what_an_interrupted_turn_was_shown_is_shown_again() {
    let w = World::new();
    let here = w.fifo("here");
    w.play("idle", &[&["write: {path: a.py, text: 'a = 1'}", "handoff: One"], &[&here.tell(), "hang"]]);
    let live = w.start(&[]);
    here.told();
    w.recorded("peer-spawned", 2);
    live.crash();
    w.play("idle", &[]);
    w.run(&["--max-ticks=2"]).stopped("max_ticks", 0);
    assert_eq!((w.tick(2).recovered, w.tick(3).peer.as_str()), (true, "bob"));
    assert_eq!((shown(&w, 2), shown(&w, 3)), (vec!["ann: One".to_owned()], vec!["ann: One".to_owned()]));
    w.settled();
}
