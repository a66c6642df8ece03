//! An agent that speaks the Agent Client Protocol, behind the bridge.

use peers_model::Usd;
use peers_model::outcome::{ApiClass, ExitClass};

use crate::stage::{FOREVER, Stage, process};

/// Greets, opens a session, and reads the prompt into `$line`.
const BEGIN: &str = r#"say() { printf '%s\n' "$1"; }
read -r line; say '{"id":1,"result":{"protocolVersion":1}}'
read -r line; say '{"id":2,"result":{"sessionId":"s"}}'
read -r line
"#;

fn peer(script: &str) -> String {
    let argv = serde_json::to_string(&["/bin/sh", "-c", &format!("{BEGIN}{script}")]).unwrap();
    format!("tool: acp, argv: {argv}")
}

#[test]
fn a_turn_of_an_agent_is_that_of_any_peer() {
    let stage = Stage::new();
    let script = r#"printf '%s\n' "$line" > asked
say '{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":0.5,"currency":"USD"}}}}'
say '{"id":3,"result":{"stopReason":"end_turn","usage":{"totalTokens":12,"inputTokens":5,"outputTokens":7}}}'
echo talk >&2
"#;
    let turn = stage.turn(&peer(script), "the prompt");
    assert_eq!((turn.exit.class, turn.exit.api, turn.exit.code), (ExitClass::Ok, ApiClass::None, Some(0)));
    assert_eq!(turn.exit.usage.tokens.map(|tokens| tokens.0), Some(12));
    assert_eq!(turn.exit.usage.usd, Usd::from_f64(0.5));
    assert_eq!(turn.exit.stderr_tail, "talk\n");
    assert!(stage.read("asked").contains("\"text\":\"the prompt\""));
    let stream = stage.read(".peers/log/peers/tick-00007-a.stream.jsonl");
    assert!(stream.ends_with("{\"type\":\"end\",\"reason\":\"end_turn\",\"skipped\":0,\"dropped\":0}\n"));
}

#[test]
fn an_agent_that_wants_a_login_or_is_limited_is_known_by_what_it_says() {
    let stage = Stage::new();
    for (code, message, api) in [
        (-32000, "Authentication required", ApiClass::Auth),
        (-32603, "Internal error: Rate limit reached for requests.", ApiClass::Transient),
        (-32603, "Internal error", ApiClass::Other),
    ] {
        let error = format!("say '{{\"id\":3,\"error\":{{\"code\":{code},\"message\":\"{message}\"}}}}'\n");
        let turn = stage.turn(&peer(&error), "");
        assert_eq!((turn.exit.class, turn.exit.api), (ExitClass::Nonzero, api), "{message}");
    }
}

#[test]
fn a_silent_agent_is_ended_with_its_bridge() {
    let stage = Stage::limits(1, 60);
    let turn = stage.turn(&peer(&format!("echo $$ > agent; echo $PPID > bridge; {FOREVER}")), "");
    assert_eq!(turn.exit.class, ExitClass::Idle);
    for name in ["agent", "bridge"] {
        assert_eq!(process(&stage.repo(name)), None, "{name}");
    }
}

#[test]
fn an_agent_asks_and_is_answered_as_its_peer_is_configured() {
    let ask = r#"say '{"id":"q","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[{"optionId":"y","name":"y","kind":"allow_once"},{"optionId":"n","name":"n","kind":"reject_once"}]}}'
read -r line; printf '%s' "$line" > answer
say '{"id":3,"result":{"stopReason":"end_turn"}}'
"#;
    for (permissions, option) in [("", "y"), (", permissions: allow", "y"), (", permissions: reject", "n")] {
        let stage = Stage::new();
        let turn = stage.turn(&format!("{}{permissions}", peer(ask)), "");
        assert_eq!(turn.exit.class, ExitClass::Ok);
        assert!(stage.read("answer").contains(&format!("\"optionId\":\"{option}\"")), "{permissions}");
    }
}
