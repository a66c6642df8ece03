//! Peers that speak the Agent Client Protocol.

use peers_model::Usd;
use peers_model::record::TickOutcome;

use crate::world::{World, program};

/// Both peers are agents of the protocol that play `script.yaml`.
fn agents(w: &World) {
    let peer = |name: &str| {
        let (program, script) =
            (program().display().to_string(), w.path("script.yaml").display().to_string());
        format!("- {{name: {name}, tool: acp, argv: [{program:?}, fake-peer, {script:?}, {name}, acp]}}\n")
    };
    w.put(".peers/config.yaml", &format!("peers:\n{}{}", peer("ann"), peer("bob")));
    w.accept();
}

#[test]
fn agents_of_the_protocol_hand_over_to_each_other_until_it_is_complete() {
    let w = World::new();
    agents(&w);
    w.script(
        "count: ticks\nafter: repeat\nturns:\n- on: {prompt: '# Skeptic turn'}\n  steps: [{skeptic: clean}]\n\
         - - say: Looking\n  - write: {path: fixed, text: 'yes'}\n  \
         - emit: {usage: {input: 1200, cached: 300, output: 80, usd: 0.25}}\n  - handoff: Fix it\n",
    );
    w.run(&["--max-ticks=8"]).stopped("complete", 0);
    let tick = w.tick(1);
    assert_eq!((tick.outcome, tick.peer.as_str()), (TickOutcome::Handoff, "ann"));
    let usage = tick.exit.usage;
    assert_eq!(usage.tokens.map(|tokens| tokens.0), Some(1280));
    assert_eq!(usage.usd.map(Usd::as_micros), Some(250_000));
    assert_eq!(w.tick(2).peer.as_str(), "bob");
    w.settled();
}
