//! Recorded streams of the real programs, decoded as a whole and in pieces.

mod cases;

use peers_model::outcome::{ApiClass, ExitClass};
use peers_model::{Tokens, Usd};
use proptest::prelude::*;

use self::cases::{CASES, Case};
use crate::classify::{Facts, classify};
use crate::cost::{CostFrom, Meter, cost};
use crate::event::{FailureKind, Stream, ToolEvent, ToolReport, UsageDelta};
use crate::omens::Omens;
use crate::patterns::{PatternScanner, Patterns};
use crate::prices::Prices;
use crate::registry::adapter;
use crate::reset::{opens_at, reset_at};
use crate::tool::{ExitKind, ToolKind};

fn case(tool: &str, name: &str) -> &'static Case {
    CASES.iter().find(|case| (case.tool, case.name) == (tool, name)).expect("a case of this name")
}

fn bytes(tool: &str, name: &str) -> &'static [u8] {
    case(tool, name).stdout
}

/// The run as it was recorded.
fn replay(case: &Case) -> (Vec<ToolEvent>, ToolReport) {
    let mut decoder = adapter(&ToolKind::from_name(case.tool)).decoder();
    let mut events = Vec::new();
    decoder.feed(Stream::Stdout, case.stdout, &mut events);
    decoder.feed(Stream::Stderr, case.stderr.as_bytes(), &mut events);
    let report = decoder.finish(case.exit, &mut events);
    (events, report)
}

fn decode(tool: &str, chunks: &[&[u8]], exit: ExitKind) -> (Vec<ToolEvent>, ToolReport) {
    let mut decoder = adapter(&ToolKind::from_name(tool)).decoder();
    let mut events = Vec::new();
    for chunk in chunks {
        decoder.feed(Stream::Stdout, chunk, &mut events);
    }
    let report = decoder.finish(exit, &mut events);
    (events, report)
}

fn report(tool: &str, case: &str) -> ToolReport {
    decode(tool, &[bytes(tool, case)], ExitKind::Code(1)).1
}

/// (input, cached, output, total, micro-dollars, known)
type Bill = (u64, u64, u64, u64, Option<u64>, bool);

fn bill(report: &ToolReport) -> Bill {
    let usage = &report.usage;
    let usd = usage.usd.map(Usd::as_micros);
    (usage.input.0, usage.cached_input.0, usage.output.0, usage.total.0, usd, report.usage_known)
}

#[test]
fn a_good_run_gives_its_exact_usage_and_its_last_words() {
    for (tool, want) in [
        ("claude", (4500, 900, 240, 4740, Some(19_380), true)),
        ("codex", (4500, 900, 240, 4740, None, true)),
        ("opencode", (4500, 900, 240, 4740, Some(14_670), true)),
    ] {
        for case in ["ok", "cut_once", "rate429_once", "resume"] {
            let report = report(tool, case);
            assert_eq!(bill(&report), want, "{tool} {case}");
            assert_eq!(report.terminal.map(|t| t.ok), Some(true), "{tool} {case}");
            assert_eq!((report.failure, report.no_end_event), (None, false), "{tool} {case}");
            assert_eq!(report.final_text, "Committed one line.", "{tool} {case}");
            assert_eq!((report.retrying, report.unfinished_tool), (None, None), "{tool} {case}");
            assert!(report.session.is_some(), "{tool} {case}");
        }
    }
    assert_eq!(report("claude", "ok").usage.model.as_deref(), Some("claude-opus-5-5"));
    assert_eq!(report("claude", "ok").usage.turns, 3);
}

#[test]
fn a_resumed_session_costs_only_its_own_part_where_the_stream_tells_it() {
    assert_eq!(bill(&report("claude", "resume_2")), (4500, 900, 240, 4740, Some(19_380), true));
    assert_eq!(bill(&report("opencode", "resume_2")), (4500, 900, 240, 4740, Some(14_670), true));
    // codex counts the whole thread and gives no means to tell; the session's name is there for it.
    assert_eq!(bill(&report("codex", "resume_2")), (9000, 1800, 480, 9480, None, true));
    assert_eq!(report("codex", "resume").session, report("codex", "resume_2").session);
}

/// `opencode acp` behind the bridge. Its tokens are those of the last step, its cost is that of all.
#[test]
fn a_real_agent_of_the_protocol_is_understood() {
    let calls = |events: &[ToolEvent]| {
        let begun = events.iter().filter(|event| matches!(event, ToolEvent::ToolBegun { .. })).count();
        let failed = events
            .iter()
            .filter(|event| matches!(event, ToolEvent::ToolEnded { is_error: true, .. }))
            .count();
        (begun, failed)
    };
    for (case, words, tools, micros) in [
        ("ok", "Committed one line.", (2, 0), 14_670),
        ("ask", "Committed one line.", (2, 0), 14_670),
        ("reject", "", (1, 1), 4_890),
        ("tool_fail", "It failed.", (1, 0), 9_780),
    ] {
        let (events, report) = decode("acp", &[bytes("acp", case)], ExitKind::Code(0));
        assert_eq!(report.terminal.map(|t| t.ok), Some(true), "{case}");
        assert_eq!((report.final_text.as_str(), calls(&events)), (words, tools), "{case}");
        assert_eq!(bill(&report), (1500, 300, 80, 1580, Some(micros), false), "{case}");
        assert!(report.session.is_some_and(|id| id.starts_with("ses_")), "{case}");
        assert_eq!((report.failure, report.unfinished_tool, report.no_end_event), (None, None, false));
        let said = events.iter().any(|event| *event == ToolEvent::Text(words.to_owned()));
        assert_eq!(said, !words.is_empty(), "{case}: a message is put together");
    }
}

#[test]
fn each_recorded_run_is_judged_by_its_terminal_event() {
    for case in CASES {
        let (tool, name) = (case.tool, case.name);
        let (_, report) = replay(case);
        let exit = match case.exit {
            ExitKind::Code(0) => ExitClass::Ok,
            ExitKind::Code(_) => ExitClass::Nonzero,
            ExitKind::Signal(_) | ExitKind::NotStarted | ExitKind::Unknown => ExitClass::Signal,
        };
        let verdict = classify(Facts { exit, report: &report, hit: None, omen: None });
        assert_eq!((verdict.label(), verdict.kind), (case.label, case.kind), "{tool} {name}: {report:?}");
        let api = case.kind.map_or(ApiClass::None, ApiClass::from);
        assert_eq!(verdict.api, api, "{tool} {name}");
        let needed = |kind: FailureKind| kind.halts() && !matches!(kind, FailureKind::UsageCap { .. });
        assert_eq!(api.needs_operator(), case.kind.is_some_and(needed), "{tool} {name}");
        let ended = match case.exit {
            ExitKind::Code(code) => Some(code == 0),
            ExitKind::Signal(_) | ExitKind::NotStarted | ExitKind::Unknown => None,
        };
        assert_eq!(report.terminal.map(|terminal| terminal.ok), ended, "{tool} {name}");
        assert_eq!(report.no_end_event, ended.is_none(), "{tool} {name}");
        if let Some(failure) = &report.failure {
            assert!(failure.structured && !failure.text.is_empty(), "{tool} {name}");
        }
    }
}

#[test]
fn no_recorded_run_matches_a_pattern() {
    for case in CASES {
        let mut scanner = PatternScanner::new(Patterns::defaults().expect("patterns"), true);
        let mut hits = Vec::new();
        scanner.feed(Stream::Stdout, case.stdout, &mut hits);
        scanner.feed(Stream::Stderr, case.stderr.as_bytes(), &mut hits);
        scanner.flush_tail(&mut hits);
        assert_eq!(hits, [], "{} {}", case.tool, case.name);
    }
}

#[test]
fn what_a_plan_limit_says_of_its_end_is_found() {
    // Recorded on 2026-11-20 at 07:52 and 07:58, where the local zone was UTC.
    for (tool, name, now, at) in [
        ("codex", "quota_plan", 1_795_161_120, 1_795_166_520),
        ("claude", "quota_plan_oauth", 1_795_161_480, 1_795_166_922),
    ] {
        let failure = replay(case(tool, name)).1.failure.expect(name);
        assert_eq!(opens_at(failure.kind, &failure.text, now, 0), Some(at), "{tool}: {}", failure.text);
        let words = reset_at(&failure.text, now, 0).expect("the words say it, too");
        assert!((0..60).contains(&(at - words)), "{tool}: {}", failure.text);
    }
}

#[test]
fn a_meter_ends_with_what_the_report_says() {
    for case in CASES {
        let kind = ToolKind::from_name(case.tool);
        let asked = Some("openai/gpt-5");
        let mut meter = Meter::new(kind.clone(), asked.map(str::to_owned), Prices::builtin());
        let (events, report) = replay(case);
        let mut before = Tokens::default();
        for event in &events {
            meter.feed(event);
            let (tokens, _) = meter.spent();
            assert!(tokens >= before);
            before = tokens;
        }
        let (usd, from) = cost(&kind, &report, asked, &Prices::builtin());
        assert_eq!(meter.spent().1, usd, "{} {}: {from:?}", case.tool, case.name);
        let sure = match (case.tool, report.usage_known, report.no_end_event) {
            // Its tokens are those of one step, its money is that of all.
            ("acp", ..) if report.usage.usd.is_some() => CostFrom::Tool,
            (_, false, _) | ("opencode", ..) if report.usage.total == Tokens(0) => CostFrom::Unknown,
            (_, false, _) | (_, _, true) => CostFrom::AtLeast,
            ("codex", true, false) => CostFrom::Table,
            _ => CostFrom::Tool,
        };
        assert_eq!(from, sure, "{} {}", case.tool, case.name);
    }
}

#[test]
fn reasoning_is_a_part_of_the_output_in_each_release_of_opencode() {
    let step = |tokens: &str| {
        let line =
            format!(r#"{{"type":"step_finish","part":{{"reason":"stop","tokens":{tokens},"cost":0.1}}}}"#);
        let usage = decode("opencode", &[line.as_bytes()], ExitKind::Code(0)).1.usage;
        (usage.input.0, usage.output.0, usage.reasoning.0, usage.total.0)
    };
    assert_eq!(step(r#"{"total":180,"input":100,"output":50,"reasoning":30}"#), (100, 80, 30, 180));
    assert_eq!(step(r#"{"total":150,"input":100,"output":50,"reasoning":30}"#), (100, 50, 30, 150));
    assert_eq!(step(r#"{"input":100,"output":50,"reasoning":30}"#), (100, 80, 30, 180));
    assert_eq!(
        step(r#"{"total":9000,"input":100,"output":50,"reasoning":30}"#).1,
        80,
        "not more than it can be"
    );
}

#[test]
fn a_failure_that_the_tool_recovered_from_is_none() {
    for (tool, case) in [("codex", "rate429_once"), ("codex", "bad_event"), ("claude", "cut_once")] {
        let (events, report) = decode(tool, &[bytes(tool, case)], ExitKind::Code(0));
        assert_eq!(report.failure, None, "{tool} {case}");
        assert!(!events.iter().any(|event| matches!(event, ToolEvent::Failure(_))), "{tool} {case}");
        let verdict = classify(Facts { exit: ExitClass::Ok, report: &report, hit: None, omen: None });
        assert_eq!(verdict.label(), "success", "{tool} {case}");
    }
}

#[test]
fn a_failed_tool_is_the_agents_business() {
    for (tool, total) in [("claude", 25_601), ("codex", 20_378), ("opencode", 15_648)] {
        let (events, report) = decode(tool, &[bytes(tool, "tool_fail")], ExitKind::Code(0));
        let errors: Vec<bool> = events
            .iter()
            .filter_map(|event| match event {
                ToolEvent::ToolEnded { is_error, .. } => Some(*is_error),
                _ => None,
            })
            .collect();
        assert_eq!(errors, [true], "{tool}");
        assert_eq!((report.failure, report.usage.total.0), (None, total), "{tool}");
    }
}

#[test]
fn a_killed_stream_has_no_end_event_and_only_a_lower_bound_of_usage() {
    for (tool, case) in [("claude", "hang"), ("claude", "stall"), ("codex", "hang"), ("codex", "stall")] {
        let report = decode(tool, &[bytes(tool, case)], ExitKind::Signal(15)).1;
        assert!(report.no_end_event && !report.usage_known, "{tool} {case}");
        assert_eq!((report.terminal, report.failure), (None, None), "{tool} {case}");
        assert_eq!(report.usage.usd, None, "{tool} {case}: unknown money is never zero");
    }
    assert_eq!(report("claude", "stall").usage.input.0, 3000, "what each message stated is counted");
    assert!(report("opencode", "stall").no_end_event);
}

#[test]
fn a_run_killed_while_retrying_says_why_it_retried() {
    let report = decode("codex", &[bytes("codex", "rate429_long")], ExitKind::Signal(15)).1;
    let retry = report.retrying.expect("the last line is a retry notice");
    assert_eq!((retry.attempt, retry.of), (1, 5));
    assert_eq!(retry.kind, FailureKind::RateLimit { retry_after: None });
}

#[test]
fn retries_on_bad_credentials_are_announced_at_once() {
    for tool in ["claude", "codex"] {
        let (events, _) = decode(tool, &[bytes(tool, "auth401")], ExitKind::Code(1));
        let first = events.iter().find_map(|event| match event {
            ToolEvent::RetryNotice(retry) => Some(retry.kind),
            _ => None,
        });
        assert_eq!(first, Some(FailureKind::Auth), "{tool}");
    }
}

#[test]
fn a_hopeless_run_is_known_long_before_its_end() {
    let omen_of = |tool: &str, stdout: &[u8]| {
        let mut decoder = adapter(&ToolKind::from_name(tool)).decoder();
        let mut omens = Omens::default();
        let mut found = Vec::new();
        for (number, line) in stdout.split_inclusive(|&b| b == b'\n').enumerate() {
            let mut events = Vec::new();
            decoder.feed(Stream::Stdout, line, &mut events);
            found.extend(events.iter().filter_map(|event| omens.feed(event)).map(|omen| (number + 1, omen)));
        }
        found
    };
    for (tool, name, line, kind, text) in [
        ("claude", "auth401", 3, FailureKind::Auth, "authentication_failed (status 401)"),
        ("claude", "auth401_late", 5, FailureKind::Auth, "authentication_failed (status 401)"),
        ("codex", "auth401", 5, FailureKind::Auth, "unexpected status 401 Unauthorized: "),
        ("codex", "auth401_late", 7, FailureKind::Auth, "unexpected status 401 Unauthorized: "),
        ("codex", "forbidden403", 5, FailureKind::Auth, "unexpected status 403 Forbidden: "),
        ("opencode", "bad_json", 40, FailureKind::Overload, "20 model steps in a row"),
    ] {
        let found = omen_of(tool, bytes(tool, name));
        let [(at, omen)] = &found[..] else { panic!("{tool} {name}: {found:?}") };
        assert_eq!((*at, omen.kind), (line, kind), "{tool} {name}");
        assert!(omen.text.contains(text), "{tool} {name}: {}", omen.text);
    }
    for case in CASES {
        let hopeless = matches!((case.tool, case.kind), (_, Some(FailureKind::Auth)) | ("opencode", None));
        assert!(hopeless || omen_of(case.tool, case.stdout).is_empty(), "{} {}", case.tool, case.name);
    }
    let billing =
        r#"{"type":"system","subtype":"api_retry","attempt":1,"error_status":400,"error":"billing_error"}"#;
    let found = omen_of("claude", format!("{billing}\n{billing}\n").as_bytes());
    assert_eq!(found.first().map(|(at, omen)| (*at, omen.kind)), Some((2, FailureKind::Quota)));
}

#[test]
fn steps_that_bring_nothing_are_counted() {
    let (events, report) = decode("opencode", &[bytes("opencode", "bad_json")], ExitKind::Signal(9));
    let steps: Vec<u32> = events
        .iter()
        .filter_map(|event| match event {
            ToolEvent::EmptyStep { in_a_row } => Some(*in_a_row),
            _ => None,
        })
        .collect();
    assert_eq!(steps, (1..=35).collect::<Vec<_>>());
    assert!(report.no_end_event);
}

#[test]
fn a_subscription_window_is_reported() {
    let (events, _) = decode("claude", &[bytes("claude", "quota_plan_oauth")], ExitKind::Code(1));
    let window = ToolEvent::PlanWindow { rejected: true, used_percent: None, resets_at: Some(1_795_166_922) };
    assert!(events.contains(&window));
    let line = br#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":5,"utilization":0.92}}"#;
    let (events, _) = decode("claude", &[line], ExitKind::Code(0));
    let pace = ToolEvent::PlanWindow { rejected: false, used_percent: Some(92), resets_at: Some(5) };
    assert_eq!(events, [pace]);
}

#[test]
fn the_increments_of_usage_add_up_to_the_report() {
    for Case { tool, name: case, stdout, .. } in CASES {
        let (events, report) = decode(tool, &[stdout], ExitKind::Code(0));
        let mut sum = UsageDelta::default();
        for event in events {
            if let ToolEvent::Usage(more) = event {
                sum.input += more.input;
                sum.cached_input += more.cached_input;
                sum.cache_write += more.cache_write;
                sum.output += more.output;
                sum.reasoning += more.reasoning;
                sum.total += more.total;
                if let Some(usd) = more.usd {
                    sum.usd = Some(sum.usd.unwrap_or_default() + usd);
                }
            }
        }
        let usage = report.usage;
        let want = UsageDelta {
            input: usage.input,
            cached_input: usage.cached_input,
            cache_write: usage.cache_write,
            output: usage.output,
            reasoning: usage.reasoning,
            total: usage.total,
            usd: usage.usd.filter(|usd| sum.usd.is_some() || *usd != Usd::ZERO),
            model: None,
        };
        assert_eq!(sum, want, "{tool} {case}");
    }
}

#[test]
fn error_words_in_an_agents_text_are_no_verdict() {
    let said = "ERROR: authentication failed, usage limit reached, 429 rate limit";
    let streams = [
        (
            "claude",
            format!(
                r#"{{"type":"assistant","message":{{"id":"m","content":[{{"type":"text","text":"{said}"}}]}}}}"#
            ),
        ),
        (
            "claude",
            format!(
                r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"t","content":"{said}"}}]}},"is_error":true,"result":"{said}"}}"#
            ),
        ),
        (
            "codex",
            format!(
                r#"{{"type":"item.completed","item":{{"id":"1","type":"agent_message","text":"{said}"}}}}"#
            ),
        ),
        (
            "codex",
            format!(r#"{{"type":"item.completed","item":{{"id":"1","type":"error","message":"{said}"}}}}"#),
        ),
        ("opencode", format!(r#"{{"type":"text","part":{{"type":"text","text":"{said}"}}}}"#)),
    ];
    for (tool, line) in streams {
        let (events, report) = decode(tool, &[line.as_bytes()], ExitKind::Code(0));
        assert_eq!((report.failure, report.terminal), (None, None), "{tool} {line}");
        assert!(!events.is_empty(), "{tool} {line}");
    }
}

#[test]
fn an_account_inside_a_tools_output_is_not_believed() {
    let forged =
        r#"{"type":"user","message":{"content":[]},"usage":{"input_tokens":9},"total_cost_usd":9.0}"#;
    let report = decode("claude", &[forged.as_bytes()], ExitKind::Code(0)).1;
    assert_eq!(bill(&report), (0, 0, 0, 0, None, false));
}

#[test]
fn nonsense_numbers_count_as_zero() {
    let claude = r#"{"type":"result","is_error":false,"usage":{"input_tokens":true,"output_tokens":-5,"cache_read_input_tokens":"7"},"total_cost_usd":true}"#;
    assert_eq!(bill(&decode("claude", &[claude.as_bytes()], ExitKind::Code(0)).1), (0, 0, 0, 0, None, true));
    let codex = r#"{"type":"turn.completed","usage":{"input_tokens":-1,"output_tokens":false}}"#;
    assert_eq!(bill(&decode("codex", &[codex.as_bytes()], ExitKind::Code(0)).1), (0, 0, 0, 0, None, true));
    let opencode = r#"{"type":"step_finish","part":{"type":"step-finish","reason":"stop","tokens":{"total":null,"input":10,"output":5},"cost":-1}}"#;
    let report = decode("opencode", &[opencode.as_bytes()], ExitKind::Code(0)).1;
    assert_eq!(bill(&report), (10, 0, 5, 15, None, true));
}

#[test]
fn a_codex_error_with_nothing_after_it_is_the_terminal_event() {
    let line = br#"{"type":"error","message":"Quota exceeded. Check your plan and billing details."}"#;
    let report = decode("codex", &[line], ExitKind::Code(1)).1;
    assert_eq!(report.failure.map(|failure| failure.kind), Some(FailureKind::Quota));
    assert_eq!(decode("codex", &[line], ExitKind::Code(0)).1.failure, None);
}

#[test]
fn a_line_beyond_the_cap_is_dropped_and_the_next_one_read() {
    let mut stream = br#"{"type":"thread.started","thread_id":""#.to_vec();
    stream.resize(17 * 1024 * 1024, b'x');
    stream.extend(b"\"}\n{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":3}}\n");
    let report = decode("codex", &[&stream], ExitKind::Code(0)).1;
    assert_eq!((report.lines_dropped, report.usage.input.0), (1, 3));
}

#[test]
fn an_endless_line_is_held_up_to_the_cap_and_no_further() {
    let chunk = vec![b'x'; 1024 * 1024];
    for (tool, cap) in [("claude", (16 * 1024 + 16) * 1024), ("other", 2 * 4096)] {
        let mut decoder = adapter(&ToolKind::from_name(tool)).decoder();
        let mut scanner = PatternScanner::new(Patterns::defaults().expect("patterns"), true);
        for stream in [Stream::Stdout, Stream::Stderr] {
            for _ in 0..20 {
                decoder.feed(stream, &chunk, &mut Vec::new());
                scanner.feed(stream, &chunk, &mut Vec::new());
            }
        }
        assert_eq!(decoder.held(), cap, "{tool}");
        assert_eq!(scanner.held(), 2 * 64 * 1024);
    }
}

#[test]
fn a_depth_bomb_is_no_event() {
    let bomb = format!("{{\"message\":{}", "{\"content\":[".repeat(200_000));
    for tool in ["claude", "codex", "opencode", "acp"] {
        let (events, report) = decode(tool, &[bomb.as_bytes()], ExitKind::Code(0));
        assert!(events.is_empty() && report.terminal.is_none(), "{tool}");
    }
}

fn pieces<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    at.extend([0, bytes.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

proptest! {
    #[test]
    fn decoding_does_not_depend_on_the_chunks(
        which in any::<prop::sample::Index>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let Case { tool, stdout: bytes, .. } = which.get(CASES);
        let whole = decode(tool, &[bytes], ExitKind::Code(1));
        prop_assert_eq!(decode(tool, &pieces(bytes, &cuts), ExitKind::Code(1)), whole);
    }

    #[test]
    fn decoders_survive_arbitrary_bytes(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        for tool in ["claude", "codex", "opencode", "acp", "other"] {
            let whole = decode(tool, &[&bytes], ExitKind::Code(0));
            prop_assert_eq!(decode(tool, &pieces(&bytes, &cuts), ExitKind::Code(0)), whole);
        }
    }

    #[test]
    fn decoders_survive_damaged_streams(
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        drop in 0usize..40,
    ) {
        let Case { tool, stdout: bytes, .. } = which.get(CASES);
        let at = at.index(bytes.len() + 1);
        let mut damaged = bytes[..at].to_vec();
        damaged.push(byte);
        damaged.extend(&bytes[(at + drop).min(bytes.len())..]);
        let (_, report) = decode(tool, &[&damaged], ExitKind::Unknown);
        prop_assert!(report.failure.is_none_or(|failure| failure.text.chars().count() <= crate::event::WORDS_CHARS));
    }
}
