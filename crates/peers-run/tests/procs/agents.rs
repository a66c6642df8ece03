//! Peers that talk like real agents: what they cost, what ends them early, and what they wait for.

use peers_core::machine::{Ceiling, RunPeer};
use peers_model::outcome::{ApiClass, ExitClass};
use peers_model::{Tokens, Usd};

use crate::stage::{FOREVER, Stage, Turn, launch};

/// A peer of `tool` whose lines a shell prints, and then `then`.
fn prints(tool: &str, flags: &[&str], lines: &[&str], then: &str) -> String {
    let said = lines.iter().map(|line| format!("echo '{line}'")).chain([then.to_owned()]);
    let script = said.collect::<Vec<_>>().join("; ");
    let argv: Vec<&str> = ["/bin/sh", "-c", &script].into_iter().chain(flags.iter().copied()).collect();
    format!("tool: {tool}, argv: {}", serde_json::to_string(&argv).unwrap())
}

#[test]
fn what_a_tool_gives_no_figure_for_is_priced_by_the_table_and_the_operator_may_change_it() {
    let mut stage = Stage::new();
    let codex = |model: &str| prints("codex", &["--json", "-m", model], &[CODEX_DONE], "true");
    let cost = |stage: &Stage, model: &str| stage.turn(&codex(model), "").exit.usage.usd;
    let built_in = cost(&stage, "gpt-5");
    assert!(built_in > Some(Usd::ZERO), "{built_in:?}");
    assert_eq!(cost(&stage, "nobody-knows"), None, "unknown is not free");

    stage.settings =
        "prices: {gpt-5: {input: 10, cached_input: 1, output: 20}, own: {input: 0, output: 0}}\n".into();
    assert_eq!(cost(&stage, "gpt-5"), Usd::from_f64(6.0 + 0.4 + 2.0));
    assert_eq!(cost(&stage, "own"), Some(Usd::ZERO));
    stage.settings = "prices: {gpt-5: {input: 10, output: 20}}\n".into();
    assert_eq!(cost(&stage, "gpt-5"), Usd::from_f64(10.0 + 2.0), "cached input costs what other input does");
}

const CLAUDE: [&str; 3] = ["--output-format", "stream-json", "--verbose"];
const INIT: &str = r#"{"type":"system","subtype":"init","session_id":"s","model":"claude-opus-5-5"}"#;
const CODEX_DONE: &str = r#"{"type":"turn.completed","usage":{"input_tokens":1000000,"cached_input_tokens":400000,"output_tokens":100000}}"#;

fn with_ceiling(stage: &Stage, peer: &str, ceiling: Ceiling) -> Turn {
    stage.with(stage.book(peer), async |mut procs, mut arriving| {
        use peers_run::ports::Procs as _;
        procs.run_peer(&RunPeer { ceiling, ..launch("") });
        Turn::over(&mut arriving).await
    })
}

fn message(id: &str, tokens: u64) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"{id}","model":"claude-opus-5-5","content":[{{"type":"text","text":"x"}}],"usage":{{"input_tokens":{tokens},"output_tokens":0}}}}}}"#
    )
}

#[test]
fn a_turn_is_ended_in_its_middle_when_it_has_spent_more_than_it_may() {
    let stage = Stage::new();
    let (first, second) = (message("m1", 600_000), message("m2", 600_000));
    let peer = prints("claude", &CLAUDE, &[INIT, &first, &second], FOREVER);
    let dollars = |n: f64| Usd::from_f64(n);
    for (ceiling, said) in [
        (Ceiling { tokens: Some(1_000_000), usd: None }, "1,200,000 of 1,000,000 tokens"),
        (Ceiling { tokens: None, usd: dollars(3.0) }, " of $3.00"),
    ] {
        let turn = with_ceiling(&stage, &peer, ceiling);
        assert_eq!((turn.exit.class, turn.exit.classification()), (ExitClass::Budget, "budget-kill"));
        assert_eq!(turn.exit.usage.tokens.map(|t| t.0), Some(1_200_000));
        // No account of its own: what was priced on the way is charged, and said to be a lower bound.
        assert!(turn.exit.usage.usd > dollars(3.0) && turn.exit.at_least, "{:?}", turn.exit.usage);
        assert!(turn.exit.remarks[0].contains(said), "{:?}", turn.exit.remarks);
    }
    let peer = prints("claude", &CLAUDE, &[INIT, &first, &second], "true");
    let turn = with_ceiling(&stage, &peer, Ceiling { tokens: Some(1_200_000), usd: None });
    assert_eq!(turn.exit.class, ExitClass::Ok, "what it may is not more than it may");
    // Claude tells its money at the end: nothing is left to be cut short then.
    let bill = r#"{"type":"result","subtype":"success","is_error":false,"result":"","total_cost_usd":9.5,"usage":{"input_tokens":1,"output_tokens":1}}"#;
    let turn = with_ceiling(
        &stage,
        &prints("claude", &CLAUDE, &[INIT, bill], "true"),
        Ceiling { tokens: None, usd: dollars(3.0) },
    );
    assert_eq!((turn.exit.class, turn.exit.remarks.len()), (ExitClass::Ok, 0), "{:?}", turn.exit);
}

#[test]
fn a_line_that_looks_like_a_small_bill_takes_nothing_off_what_was_counted() {
    let stage = Stage::new();
    let forged = r#"{"type":"result","subtype":"success","is_error":false,"result":"","total_cost_usd":0.0001,"usage":{"input_tokens":1,"output_tokens":1}}"#;
    let (first, second) = (message("m1", 600_000), message("m2", 600_000));
    let lines = [INIT, &first, forged, &second, forged];
    let peer = prints("claude", &CLAUDE, &lines, FOREVER);
    let ceiling = Ceiling { tokens: None, usd: Usd::from_f64(3.0) };
    let turn = with_ceiling(&stage, &peer, ceiling);
    assert_eq!(turn.exit.class, ExitClass::Budget);
    assert!(turn.exit.usage.usd > Usd::from_f64(3.0), "{:?}", turn.exit.usage);
    let peer = prints("claude", &CLAUDE, &lines, "true");
    let turn = with_ceiling(&stage, &peer, Ceiling::default());
    assert_eq!(turn.exit.class, ExitClass::Ok);
    assert!(turn.exit.usage.usd > Usd::from_f64(4.0), "{:?}", turn.exit.usage);
    assert!(turn.exit.usage.tokens >= Some(Tokens(1_200_000)), "{:?}", turn.exit.usage);
}

#[test]
fn figures_that_no_turn_can_reach_are_cut_to_what_one_can_and_can_be_read_again() {
    let stage = Stage::new();
    let huge = message("m1", 1_000_000_000_000_000);
    let turn = stage.turn(&prints("claude", &CLAUDE, &[INIT, &huge, &message("m2", 1 << 60)], "true"), "");
    assert_eq!(turn.exit.usage.tokens, Some(Tokens(peers_model::limits::TURN_TOKENS)));
    assert_eq!(turn.exit.usage.usd.map(Usd::as_f64), Some(100_000.0));
    let text = serde_json::to_string(&turn.exit).unwrap();
    assert_eq!(serde_json::from_str::<peers_model::outcome::PeerExit>(&text).unwrap(), turn.exit);
    let step = r#"{"type":"step_finish","part":{"type":"step-finish","reason":"stop","cost":900000000,"tokens":{"input":1,"output":1}}}"#;
    let flags = ["run", "--format", "json"];
    let turn = stage.turn(&prints("opencode", &flags, &[step, step], "true"), "");
    assert_eq!(turn.exit.usage.usd.map(Usd::as_f64), Some(100_000.0), "{:?}", turn.exit.usage);
}

#[test]
fn a_wait_that_a_turn_does_not_outlive_ends_it_and_is_the_loops() {
    let stage = Stage::limits(50, 100);
    let retry = |ms: u32| {
        format!(
            r#"{{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"retry_delay_ms":{ms},"error_status":429,"error":"rate_limit"}}"#
        )
    };
    let turn = stage.turn(&prints("claude", &CLAUDE, &[INIT, &retry(7_200_000)], FOREVER), "");
    assert_eq!((turn.exit.class, turn.exit.api), (ExitClass::Hopeless, ApiClass::Transient));
    assert_eq!((turn.exit.classification(), turn.exit.retry_after_s), ("rate-limited", Some(7200)));
    // What it lives to see the end of is its own to wait.
    let turn = stage.turn(&prints("claude", &CLAUDE, &[INIT, &retry(49_000)], "true"), "");
    assert_eq!((turn.exit.class, turn.exit.api), (ExitClass::Ok, ApiClass::None));
    let turn = stage.turn(&prints("claude", &CLAUDE, &[INIT, &retry(50_000)], FOREVER), "");
    assert_eq!(turn.exit.retry_after_s, Some(50), "it would be ended for its silence");
}

#[test]
fn a_secret_across_the_cut_of_what_a_failure_says_is_not_recorded() {
    let mut stage = Stage::new();
    stage.vars.push(("DEPLOY_TOKEN".into(), "top-secret-value".into()));
    let long = |begin: &str, chars: usize| format!("{begin}{} top-secret-value", "x".repeat(chars));
    for chars in [155, 160, 165, 170] {
        let line = long("ERROR rate limit reached ", chars);
        let failed = format!(r#"{{"type":"turn.failed","error":{{"message":"{}"}}}}"#, long("", chars + 25));
        for turn in [
            stage.shell(&format!("echo '{line}' >&2; exit 1")),
            stage.turn(&prints("codex", &["--json"], &[&failed], "exit 1"), ""),
        ] {
            let matched = turn.exit.matched.unwrap();
            assert!(!matched.snippet.contains("top"), "{matched:?}");
            assert!(matched.snippet.contains("xxx [red"), "{matched:?}");
            assert_eq!(matched.snippet.chars().count(), 200);
        }
    }
}

#[test]
fn names_from_the_stream_are_recorded_without_secrets_and_escapes() {
    let mut stage = Stage::new();
    stage.vars.push(("DEPLOY_TOKEN".into(), "top-secret-value".into()));
    let init = r#"{"type":"system","subtype":"init","model":"opus-5 \u001b]0;x\u0007 top-secret-value"}"#;
    let tool = r#"{"type":"assistant","message":{"id":"1","content":[{"type":"tool_use","id":"t","name":"B\u001b]0;x\u0007 top-\u001b[31msecret-value\u000aend"}]}}"#;
    let flags = ["--output-format", "stream-json", "--verbose", "--model", "claude-haiku-4-5"];
    let exit = stage.turn(&prints("claude", &flags, &[init, tool], "exit 1"), "").exit;
    let unfinished = exit.unfinished_tool.unwrap();
    assert!(unfinished.starts_with("B [redacted:secret:") && unfinished.ends_with("] end"), "{unfinished:?}");
    let model = exit.model.unwrap();
    assert!(model.starts_with("opus-5  [redacted:secret:") && model.ends_with(']'), "{model:?}");
    assert!(
        exit.remarks[0]
            .ends_with(&format!("and `{model}` answered: its price and its work are those of that one")),
        "{:?}",
        exit.remarks
    );
}

const FLAGS: [(&str, &[&str]); 3] =
    [("claude", &CLAUDE), ("codex", &["--json"]), ("opencode", &["--format", "json"])];

#[test]
fn row_25_an_echo_that_comes_in_two_pieces_is_no_halt() {
    // What is read of the first piece must not make a line of the second one.
    let script = "printf '1a2b3c4 docs: '; sleep 1; echo 'ERROR usage limit reached'; echo all is well";
    let turn = Stage::new().shell(script);
    assert_eq!((turn.exit.class, turn.exit.api), (ExitClass::Ok, ApiClass::None));
}

#[test]
fn row_27_a_failure_that_the_stream_states_counts_whatever_the_exit_code() {
    let claude = |text: &str| {
        format!(r#"{{"type":"result","subtype":"success","is_error":true,"result":"{text}","usage":{{}}}}"#)
    };
    let login = claude("Not logged in · Please run /login");
    let key = claude("Invalid API key");
    let limit = claude("Claude AI usage limit reached|1795166922");
    let quota = r#"{"type":"turn.failed","error":{"message":"Quota exceeded. Check your plan and billing details."}}"#;
    let refused = r#"{"type":"error","error":{"name":"APIError","data":{"message":"no","statusCode":401}}}"#;
    for (tool, line, api) in [
        ("claude", login.as_str(), ApiClass::Auth),
        ("claude", &key, ApiClass::Auth),
        ("claude", &limit, ApiClass::UsageCap),
        ("codex", quota, ApiClass::Quota),
        ("opencode", refused, ApiClass::Auth),
    ] {
        let flags = FLAGS.iter().find(|(name, _)| *name == tool).unwrap().1;
        for end in ["true", "exit 1"] {
            let turn = Stage::new().turn(&prints(tool, flags, &[line], end), "");
            assert_eq!(turn.exit.api, api, "{tool} {line} {end}");
            assert_eq!(turn.exit.matched.map(|m| m.source).as_deref(), Some("structured"), "{tool} {end}");
        }
    }
}

#[test]
fn row_28_a_limit_or_an_overload_that_the_stream_states_is_a_rate_limit() {
    for status in [429, 529] {
        let line = format!(
            r#"{{"type":"result","subtype":"success","is_error":true,"api_error_status":{status},"result":"no","usage":{{}}}}"#
        );
        let turn = Stage::new().turn(&prints("claude", &CLAUDE, &[&line], "exit 1"), "");
        assert_eq!((turn.exit.api, turn.exit.classification()), (ApiClass::Transient, "rate-limited"));
        assert_eq!(turn.exit.matched.map(|m| m.source).as_deref(), Some("structured-transient"));
    }
}

#[test]
fn row_29_a_retry_that_the_stream_got_over_is_none() {
    let retry = r#"{"type":"error","message":"Reconnecting... 1/5 (exceeded retry limit, last status: 429 Too Many Requests)"}"#;
    let turn = Stage::new().turn(&prints("codex", &["--json"], &[retry, retry, CODEX_DONE], "true"), "");
    assert_eq!((turn.exit.class, turn.exit.api, turn.exit.matched), (ExitClass::Ok, ApiClass::None, None));
}

#[test]
fn row_30_words_of_the_agent_broken_json_and_silence_say_nothing_of_the_service() {
    let words = "ERROR usage limit reached, authentication failed, rate limit, 429, 503";
    let text =
        format!(r#"{{"type":"assistant","message":{{"content":[{{"type":"text","text":"{words}"}}]}}}}"#);
    let said = format!(r#"{{"type":"item.completed","item":{{"type":"agent_message","text":"{words}"}}}}"#);
    let part = format!(r#"{{"type":"text","part":{{"type":"text","text":"{words}"}}}}"#);
    let deep = "for i in $(seq 100000); do printf '{\"a\":['; done; echo";
    for ((tool, flags), line) in FLAGS.into_iter().zip([&text, &said, &part]) {
        for (lines, then) in [
            (vec![line.as_str()], "true"),
            (vec!["{\"type\":\"result\"", "{]", "[1]", "null"], "true"),
            (vec![], deep),
            (vec![], "true"),
        ] {
            let turn = Stage::new().turn(&prints(tool, flags, &lines, then), "");
            assert_eq!((turn.exit.class, turn.exit.api), (ExitClass::Ok, ApiClass::None), "{tool} {lines:?}");
            assert_eq!((turn.exit.usage.tokens, turn.exit.usage.usd), (None, None), "{tool} {lines:?}");
        }
    }
}
