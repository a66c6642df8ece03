//! The bridge with agents of every kind, each a small shell script.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail the test")]

use std::ffi::OsString;
use std::time::Duration;

use peers_acp::{Io, Options};
use peers_model::config::Permissions;
use peers_sys::env::Env;
use serde_json::{Value, json};

/// What one run gave.
struct Ran {
    code: u8,
    lines: Vec<Value>,
    said: String,
}

impl Ran {
    fn types(&self) -> Vec<&str> {
        self.lines.iter().map(|line| line["type"].as_str().unwrap()).collect()
    }

    fn last(&self) -> &Value {
        self.lines.last().expect("a line")
    }
}

/// Reads a request, answers it.
const HELLO: &str = r#"
say() { printf '%s\n' "$1"; }
hear() { read -r line || exit 9; }
hear; say '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"sh","version":"7"}}}'
"#;
const SESSION: &str = r#"hear; say '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1"}}'
hear
"#;
const DONE: &str = r#"say '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
"#;

fn update(update: &str) -> String {
    format!(
        r#"say '{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s1","update":{update}}}}}'
"#
    )
}

fn agent(script: &str, permissions: Permissions, prompt: &[u8]) -> Ran {
    let options = Options {
        permissions,
        argv: ["sh", "-c", script].map(OsString::from).to_vec(),
        cwd: std::env::temp_dir(),
        env: Env::from_pairs([("PATH", "/usr/bin:/bin")]),
        patience: Duration::from_millis(300),
    };
    bridge(&options, prompt)
}

fn bridge(options: &Options, mut prompt: &[u8]) -> Ran {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = peers_acp::run(options, Io { stdin: &mut prompt, stdout: &mut out, stderr: &mut err });
    let lines = String::from_utf8(out).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    Ran { code, lines, said: String::from_utf8(err).unwrap() }
}

/// An agent whose turn is `turn`, after a greeting and a session.
fn turn(turn: &str) -> Ran {
    agent(&format!("{HELLO}{SESSION}{turn}"), Permissions::Allow, b"the prompt")
}

#[test]
fn a_good_turn_is_told_line_by_line() {
    let script = [
        update(r#"{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}"#),
        update(r#"{"sessionUpdate":"tool_call","toolCallId":"t1","title":"make test","kind":"execute","status":"pending"}"#),
        update(r#"{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"in_progress"}"#),
        update(r#"{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"failed"}"#),
        update(r#"{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"done"}}"#),
        update(r#"{"sessionUpdate":"usage_update","used":10,"size":100,"cost":{"amount":0.5,"currency":"USD"}}"#),
        r#"say '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"totalTokens":9,"inputTokens":4,"outputTokens":5}}}'
"#
        .to_owned(),
    ]
    .concat();
    let ran = turn(&script);
    assert_eq!((ran.code, ran.said.as_str()), (0, ""));
    assert_eq!(
        ran.lines,
        [
            json!({"type": "agent", "name": "sh", "version": "7"}),
            json!({"type": "session", "id": "s1"}),
            json!({"type": "thought"}),
            json!({"type": "tool", "id": "t1", "kind": "execute", "title": "make test"}),
            json!({"type": "other", "kind": "tool_call_update"}),
            json!({"type": "tool_end", "id": "t1", "error": true}),
            json!({"type": "text", "message": "m", "text": "done"}),
            json!({"type": "usage", "context": 10, "window": 100, "cost": 0.5, "currency": "USD"}),
            json!({"type": "usage", "input": 4, "output": 5, "total": 9}),
            json!({"type": "end", "reason": "end_turn", "skipped": 0, "dropped": 0}),
        ]
    );
}

#[test]
fn the_agent_is_asked_what_the_protocol_says_and_offered_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let script = format!("{HELLO}{SESSION}{DONE}").replace("|| exit 9;", "|| exit 9; say \"$line\" >&3;");
    let options = Options {
        permissions: Permissions::Allow,
        argv: ["sh", "-c", &format!("exec 3> said; {script}")].map(OsString::from).to_vec(),
        cwd: dir.path().to_owned(),
        env: Env::from_pairs([("PATH", "/usr/bin:/bin")]),
        patience: Options::PATIENCE,
    };
    let prompt = format!("two\nlines, \"quotes\" and {}", "much ".repeat(40_000));
    assert_eq!(bridge(&options, prompt.as_bytes()).code, 0);
    let said = std::fs::read_to_string(dir.path().join("said")).unwrap();
    let said: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let methods: Vec<_> = said.iter().map(|request| request["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["initialize", "session/new", "session/prompt"]);
    assert!(said.iter().all(|request| request["jsonrpc"] == "2.0"));
    let hello = &said[0]["params"];
    assert_eq!(hello["protocolVersion"], 1);
    let offered = &hello["clientCapabilities"];
    assert_eq!(offered["fs"], json!({"readTextFile": false, "writeTextFile": false}));
    assert_eq!(offered["terminal"], false);
    assert_eq!(said[1]["params"], json!({"cwd": dir.path(), "mcpServers": []}));
    assert_eq!(said[2]["params"], json!({"sessionId": "s1", "prompt": [{"type": "text", "text": prompt}]}));
}

fn asks(options: &str, permissions: Permissions) -> (Ran, Value) {
    let ask = format!(
        r#"say '{{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{{"sessionId":"s1","toolCall":{{"toolCallId":"t","title":"rm x"}},"options":[{options}]}}}}'
hear; printf '%s\n' "$line" >&2
{DONE}"#
    );
    let dir = tempfile::tempdir().unwrap();
    let script = format!("exec 2> answer\n{HELLO}{SESSION}{ask}");
    let options = Options {
        permissions,
        argv: ["sh", "-c", &script].map(OsString::from).to_vec(),
        cwd: dir.path().to_owned(),
        env: Env::from_pairs([("PATH", "/usr/bin:/bin")]),
        patience: Options::PATIENCE,
    };
    let ran = bridge(&options, b"");
    let answer = std::fs::read_to_string(dir.path().join("answer")).unwrap();
    (ran, serde_json::from_str(&answer).unwrap())
}

#[test]
fn a_permission_is_answered_by_policy_and_never_for_good_where_once_will_do() {
    let of = |kinds: &[&str]| {
        let option = |kind: &&str| format!(r#"{{"optionId":"id-{kind}","name":"x","kind":"{kind}"}}"#);
        kinds.iter().map(option).collect::<Vec<_>>().join(",")
    };
    let all = ["allow_always", "reject_always", "reject_once", "allow_once"];
    for (permissions, offered, expected) in [
        (Permissions::Allow, &all[..], "allow_once"),
        (Permissions::Allow, &all[..3], "allow_always"),
        (Permissions::Allow, &all[1..3], "cancelled"),
        (Permissions::Reject, &all[..], "reject_once"),
        (Permissions::Reject, &all[..2], "cancelled"),
        (Permissions::Reject, &[], "cancelled"),
    ] {
        let (ran, answer) = asks(&of(offered), permissions);
        let told = json!({"type": "permission", "tool": "rm x", "answer": expected});
        assert!(ran.lines.contains(&told), "{offered:?}: {:?}", ran.lines);
        let outcome = if expected == "cancelled" {
            json!({"outcome": "cancelled"})
        } else {
            json!({"outcome": "selected", "optionId": format!("id-{expected}")})
        };
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": "q", "result": {"outcome": outcome}}));
        assert_eq!(ran.code, 0);
    }
}

#[test]
fn what_was_not_offered_is_not_found() {
    let ran = turn(&format!(
        r#"say '{{"jsonrpc":"2.0","id":0,"method":"fs/read_text_file","params":{{"sessionId":"s1","path":"/etc/passwd"}}}}'
hear; case $line in *'"id":0'*'"code":-32601'*) ;; *) exit 8;; esac
say '{{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{{}}}}'
hear; case $line in *'"id":1'*'"code":-32602'*) ;; *) exit 8;; esac
say '{{"jsonrpc":"2.0","method":"something/new","params":{{"x":1}}}}'
{DONE}"#
    ));
    assert_eq!(ran.code, 0, "{}", ran.said);
    assert_eq!(ran.types(), ["agent", "session", "other", "other", "other", "end"]);
    assert_eq!(ran.lines[2]["kind"], "fs/read_text_file");
}

#[test]
fn a_turn_that_ends_otherwise_is_a_negative_answer() {
    for reason in ["refusal", "max_tokens", "max_turn_requests", "cancelled"] {
        let ran = turn(&DONE.replace("end_turn", reason));
        assert_eq!((ran.code, ran.last()["reason"].as_str()), (1, Some(reason)));
    }
    let ran = turn(&DONE.replace("end_turn", "tired"));
    assert_eq!(ran.code, 3, "{:?}", ran.lines);
    assert!(ran.said.contains("answered `session/prompt` with something else"), "{}", ran.said);
}

#[test]
fn an_error_of_the_agent_is_told_with_its_code_and_words() {
    let ran = turn(
        r#"say '{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"no quota","data":{"a":[1]}}}'
"#,
    );
    assert_eq!(ran.code, 1);
    assert_eq!(
        *ran.last(),
        json!({"type": "error", "code": -32603, "message": "no quota", "data": "{\"a\":[1]}"})
    );
    let login = format!(
        r#"{HELLO}hear; say '{{"jsonrpc":"2.0","id":2,"error":{{"code":-32000,"message":"Authentication required"}}}}'
"#
    );
    let ran = agent(&login, Permissions::Allow, b"");
    assert_eq!((ran.code, &ran.last()["code"]), (1, &json!(-32000)));
    let ran = turn(
        r#"say '{"jsonrpc":"2.0","id":3,"error":"odd"}'
"#,
    );
    assert_eq!((ran.code, &ran.last()["type"]), (1, &json!("error")));
}

#[test]
fn an_agent_that_cannot_begin_is_named_with_the_reason() {
    for (script, words) in [
        ("exit 4", "ended (exit status: 4) before it answered"),
        ("read -r line; kill -9 $$", "ended (signal: 9"),
        (
            r#"read -r line; echo '{"id":1,"error":{"code":-32603,"message":"broken"}}'"#,
            "refused `initialize`: broken",
        ),
        (r#"read -r line; echo '{"id":1,"result":{"protocolVersion":9}}'"#, "speaks version 9"),
        (r#"read -r line; echo '{"id":1,"result":{}}'"#, "answered `initialize` with something else"),
        (r#"read -r line; echo '{"id":1}'"#, "answered `initialize` with something else"),
    ] {
        let ran = agent(script, Permissions::Allow, b"p");
        assert_eq!(ran.code, 3, "{script}");
        assert!(ran.said.starts_with("peers: the agent `sh` ") && ran.said.contains(words), "{}", ran.said);
    }
    let options = Options {
        permissions: Permissions::Allow,
        argv: vec!["no-such-agent".into()],
        cwd: std::env::temp_dir(),
        env: Env::from_pairs([("PATH", "/usr/bin:/bin")]),
        patience: Options::PATIENCE,
    };
    let ran = bridge(&options, b"p");
    assert_eq!(ran.code, 3);
    assert_eq!(
        ran.said,
        "peers: the agent `no-such-agent` cannot be started: start no-such-agent: not found\n"
    );
}

#[test]
fn an_agent_that_dies_in_its_turn_is_noticed_even_where_a_child_of_it_holds_its_output() {
    let ran = turn("exit 5\n");
    assert_eq!((ran.code, ran.types()), (3, vec!["agent", "session"]));
    assert!(ran.said.contains("ended (exit status: 5) before it answered"), "{}", ran.said);
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let ran = turn(&format!("tail -f /dev/null & echo $! > {}; exit 6\n", pid.display()));
    let left = std::fs::read_to_string(pid).unwrap();
    let killed = std::process::Command::new("kill").arg(left.trim()).status().unwrap();
    assert!(killed.success(), "the child of the agent lived on");
    assert_eq!(ran.code, 3);
    assert!(ran.said.contains("ended (exit status: 6) before it answered"), "{}", ran.said);
}

#[test]
fn an_agent_that_closes_its_output_and_lives_on_is_ended() {
    let ran = turn("exec > /dev/null tail -f /dev/null\n");
    assert_eq!(ran.code, 3);
    assert!(ran.said.contains("closed its output before it answered"), "{}", ran.said);
}

#[test]
fn an_agent_that_does_not_end_after_its_turn_is_ended() {
    let ran = turn(&format!("trap '' TERM\n{DONE}while :; do :; done\n"));
    assert_eq!((ran.code, ran.said.as_str()), (0, ""));
}

#[test]
fn lines_that_are_no_messages_are_skipped_and_counted() {
    let noise = [
        "say 'Loading model...'; say ''",
        "say '[]'; say '{\"id\":77,\"result\":1}'; say '{\"id\":1,\"result\":1}'",
        "printf '{\"method\":\"\\377\"}\\n'",
        &update("{\"sessionUpdate\":\"agent_message_chunk\"}"),
        &update("{\"sessionUpdate\":\"of another age\",\"x\":1}"),
    ]
    .join("\n");
    let ran = turn(&format!("{noise}\n{DONE}"));
    assert_eq!(ran.code, 0);
    assert_eq!(ran.types(), ["agent", "session", "other", "other", "end"]);
    assert_eq!(ran.last()["skipped"], 5, "an empty line is none");
}

#[test]
fn an_agent_that_prints_nothing_but_noise_is_ended() {
    let ran = turn("yes noise\n");
    assert_eq!(ran.code, 3);
    assert!(ran.said.contains("10000 lines in a row"), "{}", ran.said);
}

#[test]
fn a_line_of_two_hundred_megabytes_is_dropped_and_the_turn_goes_on() {
    let ran = turn(&format!("head -c 200000000 /dev/zero | tr '\\0' x; echo\n{DONE}"));
    assert_eq!((ran.code, &ran.last()["dropped"]), (0, &json!(1)));
}

#[test]
fn deep_json_is_skipped_wherever_it_is() {
    let deep = "head -c 100000 /dev/zero | tr '\\0' '['";
    let ran = turn(&format!(
        "{deep}; echo\n\
         printf '{{\"method\":\"session/update\",\"params\":'; {deep}; echo '}}'\n\
         printf '{{\"method\":\"session/update\",\"params\":'; {deep}; {}; echo '}}'\n\
         printf '{{\"id\":3,\"error\":{{\"code\":1,\"message\":\"m\",\"data\":'; {deep}; {}; echo '}}}}'\n",
        deep.replace('[', "]"),
        deep.replace('[', "]"),
    ));
    assert_eq!((ran.code, &ran.last()["type"]), (1, &json!("error")), "{}", ran.said);
}

#[test]
fn every_text_that_is_passed_on_is_bounded() {
    let many = |n: usize| format!("head -c {n} /dev/zero | tr '\\0' a");
    let ran = turn(&format!(
        "printf '{{\"method\":\"session/update\",\"params\":{{\"sessionId\":\"s1\",\"update\":{{\"sessionUpdate\":\
         \"agent_message_chunk\",\"content\":{{\"type\":\"text\",\"text\":\"'; {}; echo '\"}}}}}}}}'\n\
         printf '{{\"method\":\"session/update\",\"params\":{{\"sessionId\":\"s1\",\"update\":{{\"sessionUpdate\":\
         \"tool_call\",\"toolCallId\":\"'; {}; printf '\",\"title\":\"'; {}; echo '\"}}}}}}'\n\
         printf '{{\"method\":\"'; {}; echo '\"}}'\n{DONE}",
        many(1_000_000),
        many(100_000),
        many(100_000),
        many(100_000),
    ));
    assert_eq!(ran.types(), ["agent", "session", "text", "tool", "other", "end"]);
    let lengths: Vec<usize> = ran.lines.iter().map(|line| line.to_string().len()).collect();
    assert!(lengths.iter().all(|length| *length < 4300), "{lengths:?}");
}

#[test]
fn an_agent_that_asks_for_ever_and_reads_no_answer_is_ended() {
    let ran = turn("exec yes '{\"id\":1,\"method\":\"terminal/create\",\"params\":{}}'\n");
    assert_eq!(ran.code, 3);
    assert!(ran.said.contains("does not read the answers"), "{}", ran.said);
}

#[test]
fn another_session_is_not_the_turns_own() {
    let foreign = update(r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}"#)
        .replace("\"s1\"", "\"s2\"");
    let ran = turn(&format!("{foreign}{DONE}"));
    assert_eq!(ran.types(), ["agent", "session", "other", "end"]);
}

#[test]
fn nobody_who_listens_ends_the_agent() {
    struct Deaf;
    impl std::io::Write for Deaf {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let script = format!("{HELLO}exec tail -f /dev/null");
    let options = Options {
        permissions: Permissions::Allow,
        argv: ["sh", "-c", &script].map(OsString::from).to_vec(),
        cwd: std::env::temp_dir(),
        env: Env::from_pairs([("PATH", "/usr/bin:/bin")]),
        patience: Duration::from_millis(100),
    };
    let mut prompt: &[u8] = b"";
    let code =
        peers_acp::run(&options, Io { stdin: &mut prompt, stdout: &mut Deaf, stderr: &mut Vec::new() });
    assert_eq!(code, 3);
}

#[test]
fn an_id_that_would_be_given_back_and_is_too_long_ends_the_agent() {
    let (fits, long) = ("i".repeat(1024), "i".repeat(1025));
    let permission = |option: &str| {
        format!(
            r#"say '{{"id":1,"method":"session/request_permission","params":{{"sessionId":"s1","toolCall":{{"toolCallId":"t"}},"options":[{{"optionId":"{option}","name":"x","kind":"allow_once"}}]}}}}'
hear; case $line in *'"optionId":"{option}"'*) ;; *) exit 8;; esac
"#
        )
    };
    let request = |id: &str| {
        format!(
            r#"say '{{"id":"{id}","method":"terminal/create"}}'
hear; case $line in *'"id":"{id}"'*) ;; *) exit 8;; esac
"#
        )
    };
    let session = |id: &str| SESSION.replace("s1", id);
    let talk = |session: &str, turn: &str| {
        agent(&format!("{HELLO}{session}{turn}{DONE}"), Permissions::Allow, b"the prompt")
    };
    // The quotes of a request's id count.
    let good = talk(&session(&fits), "");
    assert_eq!((good.code, good.said.as_str()), (0, ""));
    let good = talk(SESSION, &format!("{}{}", permission(&fits), request(&fits[2..])));
    assert_eq!((good.code, good.said.as_str()), (0, ""));
    for (broken, what) in [
        (talk(&session(&long), ""), "its session"),
        (talk(SESSION, &permission(&long)), "an option of a permission"),
        (talk(SESSION, &request(&fits)), "a request"),
    ] {
        let said = format!("peers: the agent `sh` gave {what} an id of more than 1024 bytes\n");
        assert_eq!((broken.code, broken.said), (3, said));
    }
}

#[test]
fn an_agent_that_reads_its_answers_may_ask_for_as_long_as_it_likes() {
    let id = "i".repeat(1000);
    let ran = turn(&format!(
        r#"n=0
while [ $n -lt 400 ]; do say '{{"id":"{id}","method":"terminal/create"}}'; hear; n=$((n + 1)); done
{DONE}"#
    ));
    assert_eq!((ran.code, ran.said.as_str()), (0, ""));
}
