//! Each step does what its reference says.

use std::fs;
use std::os::unix::fs::symlink;

use peers_model::Usd;
use peers_model::bug::BugClaims;
use peers_model::handoff::HandoffClaim;
use peers_model::review::{SkepticClaim, read_reviews};
use peers_tools::{ExitKind, FailureKind, Stream, ToolEvent, ToolKind, ToolReport, adapter};

use crate::step::{EMITS, STEPS};
use crate::testing::{Bench, Played};
use crate::{EXAMPLES, FAILED, UNEXPECTED, UNUSABLE};

fn decode(tool: &str, played: &Played) -> (Vec<ToolEvent>, ToolReport) {
    let mut decoder = adapter(&ToolKind::from_name(tool)).decoder();
    let mut events = Vec::new();
    decoder.feed(Stream::Stdout, &played.stdout, &mut events);
    let report = decoder.finish(ExitKind::Code(played.code.into()), &mut events);
    (events, report)
}

#[test]
fn the_reference_names_every_step_event_and_example() {
    let reference = include_str!("../../../docs/formats/fake-peer.md");
    let rows = |name: &str| {
        reference.lines().any(|line| {
            line.strip_prefix("| ").is_some_and(|row| {
                row.split('|').next().is_some_and(|cell| cell.contains(&format!("`{name}`")))
            })
        })
    };
    for name in STEPS.iter().chain(EMITS) {
        assert!(rows(name), "{name} has no row");
    }
    for (name, _, _) in EXAMPLES {
        assert!(reference.contains(&format!("`{name}` (")), "{name}");
    }
}

#[test]
fn a_handoff_is_what_the_loop_accepts() {
    let bench = Bench::new();
    bench.steps("write: {path: a.txt, text: hi}\n  - handoff: Add a");
    let claim = bench.claims(HandoffClaim::read);
    assert!(claim.is_handoff() && claim.names(&"alpha".parse().expect("name")));
    assert!(claim.self_review_section.is_some_and(|section| section.len() >= 80));
    assert_eq!(bench.git(&["status", "--porcelain"]), "");
    assert_eq!(bench.git(&["log", "-1", "--format=%an <%ae>"]), "alpha <alpha@peers.local>");
}

#[test]
fn a_handoff_needs_no_change_and_a_commit_does() {
    let bench = Bench::new();
    bench.steps("handoff");
    let before = bench.head();
    let played = bench.play("after: repeat\nturns:\n- - commit: Nothing here\n");
    assert_eq!((played.code, bench.head()), (FAILED, before));
    assert!(played.stderr.contains("git commit"), "{}", played.stderr);
    bench.steps("commit: {subject: Still nothing, allow_empty: true}");
    assert_eq!(bench.message(), "Still nothing");
}

#[test]
fn a_commit_takes_the_files_it_is_told_to() {
    let bench = Bench::new();
    bench.steps("write: {path: known.txt, text: one}\n  - commit: {subject: Know it}");
    let prepare = "write: {path: known.txt, text: \"{{turn}}\"}\n  - write: {path: \"new-{{turn}}.txt\", text: x}\n  - commit: ";
    let left = |files: &str| {
        bench.steps(&format!("{prepare}{{subject: s, files: {files}, allow_empty: true}}"));
        let left = bench.git(&["status", "--porcelain"]);
        bench.git(&["reset", "-q", "--hard"]);
        bench.git(&["clean", "-qfd"]);
        left
    };
    assert_eq!(left("all"), "");
    assert_eq!(left("tracked"), "?? new-3.txt");
    assert_eq!(left("none"), " M known.txt\n?? new-4.txt");
    assert_eq!(left("[new-5.txt]"), " M known.txt");
}

#[test]
fn a_commit_has_its_body_sections_and_trailers_in_order() {
    let bench = Bench::new();
    bench.steps(
        "commit:\n      subject: S\n      body: B\n      sections: \"## X\\ntext\"\n      \
         trailers: {Peer: \"{{peer}}\", Bug-Ack: [a-1, a-2]}\n      allow_empty: true",
    );
    assert_eq!(bench.message(), "S\n\nB\n\n## X\ntext\n\nPeer: alpha\nBug-Ack: a-1\nBug-Ack: a-2");
}

#[test]
fn a_raw_message_is_committed_byte_for_byte() {
    let bench = Bench::new();
    bench.steps("commit: {message: \"s\\r\\n\\r\\nPeer: a\\u001eb\\r\\n\", allow_empty: true}");
    let raw = bench.git(&["cat-file", "commit", "HEAD"]);
    assert!(raw.ends_with("\n\ns\r\n\r\nPeer: a\u{1e}b"), "{raw:?}");
}

#[test]
fn files_are_written_appended_numbered_and_removed() {
    let bench = Bench::new();
    bench.steps(
        "write: {path: d/e/a.txt, text: \"{{peer}} {{turn}} {{iteration}}\"}\n  - write: {path: d/e/a.txt, append: \"!\"}\n  \
         - write: {path: n.txt, lines: 3}\n  - remove: d/e",
    );
    assert_eq!(bench.file("n.txt"), "line 1\nline 2\nline 3\n");
    assert!(!bench.repo().join("d/e").exists() && bench.repo().join("d").is_dir());
    bench.steps("write: {path: a.txt, text: \"{{peer}} {{turn}} {{iteration}}\"}\n  - write: {path: a.txt, append: \"!\"}");
    assert_eq!(bench.file("a.txt"), "alpha 2 0!");
    let both = bench.play("after: repeat\nturns:\n- - write: {path: x, text: a, lines: 1}\n");
    assert!(both.stderr.contains("one of") && both.code == FAILED, "{both:?}");
}

#[test]
fn a_shell_runs_in_the_repository_and_may_be_expected_to_end_in_a_way() {
    let bench = Bench::new();
    let played = bench.steps("shell: pwd; exit 4\n  - shell: {run: exit 3, expect: 3}");
    assert!(played.text().contains("repo\n") && played.text().contains("exit code 4"), "{}", played.text());
    let played = bench.play("after: repeat\nturns:\n- - shell: {run: exit 3, expect: 0}\n");
    assert_eq!(played.code, UNEXPECTED);
}

#[test]
fn a_background_job_of_a_shell_does_not_hold_the_turn() {
    let bench = Bench::new();
    let played = bench.steps("shell: sleep 600 & echo \"job $!\"");
    let text = played.text();
    let job = text.lines().find_map(|line| line.strip_prefix("job ")).expect("the job's number");
    bench.steps(&format!("shell: {{run: kill {job}, expect: 0}}"));
}

#[test]
fn turns_are_counted_beside_the_script_for_each_peer() {
    let mut bench = Bench::new();
    let script = "turns:\n- - say: one\n- - say: two\n";
    let said = |bench: &Bench| bench.play(script).text().lines().nth(1).unwrap_or_default().to_owned();
    assert_eq!(said(&bench), "one");
    assert_eq!(said(&bench), "two");
    assert_eq!(said(&bench), "Nothing left to do.");
    bench.peer = Some("beta".to_owned());
    assert_eq!(said(&bench), "one");
    assert!(bench.dir.path().join("script.yaml.beta.state").exists());
    bench.turn = Some(2);
    assert_eq!(said(&bench), "two");
}

#[test]
fn turns_may_follow_the_loops_tick() {
    let mut bench = Bench::new();
    let script = "count: ticks\nturns:\n- - say: one\n- - say: two\n";
    assert_eq!(bench.play(script).code, UNUSABLE, "there is no tick");
    bench.env.push(("PEERS_ITERATION".to_owned(), "2".to_owned()));
    assert!(bench.play(script).text().contains("two"));
    assert!(bench.play(script).text().contains("two"), "nothing was counted");
}

#[test]
fn a_script_in_the_work_tree_needs_a_state_file_elsewhere() {
    let bench = Bench::new();
    let path = bench.repo().join("script.yaml");
    let mut options = bench.options("turns:\n- - say: one\n");
    fs::copy(&options.script, &path).expect("copy");
    options.script = "script.yaml".into();
    let played = bench.play_with(&options);
    assert!(played.code == UNUSABLE && played.stderr.contains("--state"), "{}", played.stderr);
    options.state = Some(bench.dir.path().join("count"));
    assert_eq!(bench.play_with(&options).code, 0);
    assert_eq!(fs::read_to_string(bench.dir.path().join("count")).expect("state"), "1\n");
}

#[test]
fn a_turn_with_a_condition_is_played_when_it_holds_and_not_counted() {
    let mut bench = Bench::new();
    let script =
        "turns:\n- on: {prompt: [review, now]}\n  steps: [{say: reviewing}]\n- - say: one\n- - say: two\n";
    bench.prompt = "please review now".to_owned();
    assert!(bench.play(script).text().contains("reviewing"));
    bench.prompt = "please work".to_owned();
    assert!(bench.play(script).text().contains("one"), "the review was not counted");
}

#[test]
fn a_bad_script_is_reported_with_its_place() {
    let bench = Bench::new();
    let played = bench.play("turns:\n- - dance\n");
    assert_eq!((played.code, played.stdout.len()), (UNUSABLE, 0));
    assert!(played.stderr.contains("script.yaml:2") && played.stderr.contains("dance"), "{}", played.stderr);
}

#[test]
fn the_prompt_is_checked_and_saved() {
    let mut bench = Bench::new();
    bench.prompt = "You are alpha. Open goals: tests-pass".to_owned();
    bench.steps(
        "read_prompt: {expect: [\"You are {{peer}}\", tests-pass], reject: lint, save: ../prompt.txt}",
    );
    let saved = fs::read_to_string(bench.dir.path().join("prompt.txt")).expect("saved");
    assert_eq!(saved, bench.prompt);
    for read in ["expect: lint", "reject: tests-pass"] {
        let played = bench.play(&format!("after: repeat\nturns:\n- - read_prompt: {{{read}}}\n"));
        assert_eq!(played.code, UNEXPECTED, "{}", played.stderr);
    }
}

#[test]
fn a_condition_chooses_between_steps() {
    let mut bench = Bench::new();
    bench.env.push(("MODE".to_owned(), "b".to_owned()));
    let said = |when: &str| {
        let played =
            bench.steps(&format!("when: {{{when}, steps: [{{say: \"yes\"}}], else: [{{say: \"no\"}}]}}"));
        played.text().lines().nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(said("env: MODE"), "yes");
    assert_eq!(said("env: MODE=b, file: .git/HEAD"), "yes");
    assert_eq!(said("env: MODE=a"), "no");
    assert_eq!(said("env: MODE, file: nothing"), "no");
    assert_eq!(said("prompt: absent"), "no");
}

#[test]
fn exit_ends_the_turn_at_once_and_zero_ends_it_well() {
    let bench = Bench::new();
    for (code, ends_well) in [(0, true), (3, false)] {
        let played = bench.play(&format!(
            "as: claude\nafter: repeat\nturns:\n- - exit: {code}\n  - write: {{path: x, text: x}}\n"
        ));
        assert_eq!((i32::from(played.code), bench.repo().join("x").exists()), (code, false));
        let (_, report) = decode("claude", &played);
        assert_eq!(report.terminal.is_some_and(|terminal| terminal.ok), ends_well);
        assert_eq!(report.no_end_event, !ends_well);
    }
}

#[test]
fn silence_hides_all_that_follows_but_not_its_effects() {
    let bench = Bench::new();
    let played = bench.play("as: codex\nturns:\n- - silent\n  - say: psst\n  - write: {path: x, text: x}\n");
    assert_eq!(played.code, 0);
    assert!(!played.text().contains("psst") && !played.text().contains("turn.completed"));
    assert_eq!(bench.file("x"), "x");
}

#[test]
fn a_flood_has_its_size_on_its_stream() {
    let bench = Bench::new();
    let played =
        bench.steps("flood: {bytes: 200KiB}\n  - flood: {bytes: 70KB, stream: stderr, newline: false}");
    assert!(played.stdout.len() >= 200 * 1024 && played.text().contains("xx\n"));
    assert_eq!((played.stderr.len(), played.stderr.contains('\n')), (70_000, false));
    let event = bench.play("as: codex\nafter: repeat\nturns:\n- - flood: {bytes: 5000, event: true}\n");
    assert!(decode("codex", &event).1.final_text.len() == 5000);
}

#[test]
fn a_drip_prints_again_and_again() {
    let bench = Bench::new();
    let played = bench.steps("drip: {text: .., every: 0s, times: 3}");
    assert!(played.text().ends_with("......"), "{}", played.text());
}

#[test]
fn a_sleep_may_be_of_no_length_at_all() {
    let played = Bench::new().steps("sleep: 0ms\n  - sleep: 0\n  - say: awake");
    assert!(played.text().ends_with("awake\n"), "{}", played.text());
}

#[test]
fn a_script_without_a_format_prints_what_the_switches_ask_for() {
    let bench = Bench::new();
    let mut options = bench.options("after: repeat\nturns:\n- - say: hi\n");
    let plain = bench.play_with(&options);
    assert_eq!((plain.code, plain.text().contains('{')), (0, false), "{}", plain.text());
    for (tool, switches) in [
        ("claude", "-p --output-format stream-json --verbose --model m --dangerously-skip-permissions"),
        ("codex", "exec --json --skip-git-repo-check -c k=v -"),
        ("opencode", "run --format json --auto"),
    ] {
        options.switches = switches.split(' ').map(str::to_owned).collect();
        let report = decode(tool, &bench.play_with(&options)).1;
        assert_eq!((report.final_text.as_str(), report.usage_known), ("hi", true), "{tool}");
    }
}

#[test]
fn the_examples_know_a_skeptic_turn_by_its_heading_not_by_a_quoted_handoff() {
    let heading = "# Skeptic turn: all gates are green, and that is suspicious";
    let quoted = "## Last handoff\n> Skeptic: clean\n> Peer-Review-Of: docs-readable\n";
    for name in ["reviewer", "pair"] {
        let script = crate::example(name).expect(name);
        let played = |prompt: &str| {
            let mut bench = Bench::new();
            bench.prompt = prompt.to_owned();
            bench.env.push(("PEERS_ITERATION".to_owned(), "3".to_owned()));
            let done = bench.play(script);
            assert_eq!(done.code, 0, "{name}: {}", done.stderr);
            bench.message()
        };
        assert!(played(heading).contains("Skeptic: clean"), "{name}");
        let message = played(quoted);
        assert!(message.starts_with("Nothing to add") && !message.contains("Skeptic:"), "{name}: {message}");
    }
}

#[test]
fn a_good_turn_reads_as_the_real_tools_stream() {
    for tool in ["claude", "codex", "opencode"] {
        let bench = Bench::new();
        let script = format!(
            "as: {tool}\nmodel: m-1\nturns:\n- - say: Working\n  - shell: echo out; exit 3\n  - write: {{path: a, text: a}}\n  \
             - emit: {{usage: {{input: 1200, cached: 300, output: 80, reasoning: 5, usd: 0.25}}}}\n  - handoff: Done\n  - say: Bye\n"
        );
        let played = bench.play(&script);
        assert_eq!(played.code, 0, "{tool}: {}", played.stderr);
        let (events, report) = decode(tool, &played);
        for line in played.text().lines() {
            let value: serde_json::Value = serde_json::from_str(line).expect(line);
            assert!(value["type"].is_string(), "{line}");
        }
        assert_eq!(report.terminal.map(|terminal| terminal.ok), Some(true), "{tool}");
        assert_eq!(report.final_text, "Bye", "{tool}");
        let usage = &report.usage;
        assert_eq!((usage.input.0, usage.cached_input.0, usage.output.0), (1200, 300, 80), "{tool}");
        assert_eq!((usage.total.0, usage.reasoning.0, report.usage_known), (1280, 5, true), "{tool}");
        assert_eq!(usage.usd.map(Usd::as_micros), (tool != "codex").then_some(250_000), "{tool}");
        assert_eq!(usage.model.as_deref(), (tool == "claude").then_some("m-1"), "{tool}");
        let begun = events.iter().filter(|event| matches!(event, ToolEvent::ToolBegun { .. })).count();
        let errors: Vec<bool> = events
            .iter()
            .filter_map(|event| match event {
                ToolEvent::ToolEnded { is_error, .. } => Some(*is_error),
                _ => None,
            })
            .collect();
        assert_eq!((begun, errors), (3, vec![true, false, false]), "{tool}");
        assert!(report.unfinished_tool.is_none() && report.session.is_some(), "{tool}");
    }
}

/// What a client says until it waits for the answer.
fn client(prompt: &str) -> String {
    let ask = |id: u32, method: &str, params: serde_json::Value| {
        serde_json::json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string() + "\n"
    };
    let text = serde_json::json!({"sessionId": "s", "prompt": [{"type": "text", "text": prompt}]});
    let hello = serde_json::json!({"protocolVersion": 1});
    let open = serde_json::json!({"cwd": "/", "mcpServers": []});
    ask(1, "initialize", hello) + &ask(2, "session/new", open) + &ask(3, "session/prompt", text)
}

#[test]
fn an_agent_of_the_protocol_is_asked_by_it_and_answers_by_it() {
    let mut bench = Bench::new();
    bench.prompt = client("# Skeptic turn");
    let played = bench.play(
        "as: acp\nturns:\n- on: {prompt: Skeptic}\n  steps:\n  - say: Working\n  - shell: exit 3\n  - handoff: Done\n\
         \x20 - emit: {usage: {input: 1200, cached: 300, output: 80, reasoning: 5, usd: 0.25}}\n",
    );
    assert_eq!(played.code, 0, "{}", played.stderr);
    let lines: Vec<serde_json::Value> =
        played.text().lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert_eq!((&lines[0]["id"], &lines[1]["id"]), (&1.into(), &2.into()));
    let session = &lines[1]["result"]["sessionId"];
    let kinds: Vec<_> = lines
        .iter()
        .filter(|line| line["method"] == "session/update")
        .map(|line| {
            assert_eq!(&line["params"]["sessionId"], session);
            line["params"]["update"]["sessionUpdate"].as_str().expect("a kind")
        })
        .collect();
    let call = ["tool_call", "tool_call_update"];
    assert_eq!(kinds, [&["agent_message_chunk"], &call[..], &call[..], &["usage_update"]].concat());
    let last = lines.last().expect("an answer");
    assert_eq!((&last["id"], &last["result"]["stopReason"]), (&3.into(), &"end_turn".into()));
    assert_eq!(last["result"]["usage"]["totalTokens"], 1280);
    assert!(bench.claims(HandoffClaim::read).is_handoff());
}

#[test]
fn an_agent_of_the_protocol_fails_by_an_error() {
    let mut bench = Bench::new();
    bench.prompt = client("go");
    for (fault, code) in [("auth", -32000), ("quota", -32603)] {
        let played = bench.play(&format!("as: acp\nafter: repeat\nturns:\n- - emit: {fault}\n"));
        let text = played.text();
        let last: serde_json::Value =
            serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
        assert_eq!((played.code, &last["error"]["code"]), (FAILED, &code.into()), "{fault}");
    }
    bench.prompt = "no message\n".to_owned();
    assert_eq!(bench.play("as: acp\nturns:\n- - say: hi\n").code, UNUSABLE);
}

#[test]
fn an_unstated_cost_is_still_some_cost() {
    for tool in ["claude", "codex", "opencode"] {
        let played = Bench::new().play(&format!("as: {tool}\nturns:\n- - say: hi\n"));
        let report = decode(tool, &played).1;
        assert!(report.usage_known && report.usage.total.0 > 1000, "{tool}");
    }
}

#[test]
fn each_failure_is_known_by_the_real_tools_decoder() {
    let cap = FailureKind::UsageCap { resets_at: Some(1_900_000_000) };
    let second = std::time::Duration::from_secs(7);
    for (fault, want) in [
        ("auth", FailureKind::Auth),
        ("quota", FailureKind::Quota),
        ("{usage_cap: {resets_at: 1900000000}}", cap),
        ("{rate_limit: {retry_after: 7s}}", FailureKind::RateLimit { retry_after: Some(second) }),
        ("overload", FailureKind::Overload),
        ("{error: nobody knows this}", FailureKind::Other),
    ] {
        for tool in ["claude", "codex", "opencode"] {
            let bench = Bench::new();
            let played = bench
                .play(&format!("as: {tool}\nturns:\n- - emit: {fault}\n  - write: {{path: x, text: x}}\n"));
            assert_eq!((played.code, bench.repo().join("x").exists()), (FAILED, false), "{tool} {fault}");
            let failure = decode(tool, &played).1.failure.expect(fault);
            // Only opencode passes a retry-after on, and codex tells no time in numbers.
            let want = match (want, tool) {
                (FailureKind::RateLimit { .. }, "claude" | "codex") => {
                    FailureKind::RateLimit { retry_after: None }
                }
                (FailureKind::UsageCap { .. }, "codex") => FailureKind::UsageCap { resets_at: None },
                (want, _) => want,
            };
            assert_eq!(failure.kind, want, "{tool} {fault}: {}", failure.text);
        }
    }
}

#[test]
fn codex_tells_the_end_of_a_cap_by_the_clock_of_its_zone() {
    let clock = || peers_sys::clock::now().as_millis().div_euclid(1000);
    for zone in ["UTC", "Etc/GMT-3"] {
        // A machine may have no zones.
        let Some(offset) = peers_sys::clock::local_offset(Some(zone), peers_sys::clock::now()) else {
            continue;
        };
        for hours in [2, 30, 100] {
            let mut bench = Bench::new();
            bench.env.push(("TZ".to_owned(), zone.to_owned()));
            let before = clock();
            let played =
                bench.play(&format!("as: codex\nturns:\n- - emit: {{usage_cap: {{resets_in: {hours}h}}}}\n"));
            let failure = decode("codex", &played).1.failure.expect("a failure");
            let at =
                peers_tools::opens_at(failure.kind, &failure.text, clock(), offset).expect(&failure.text);
            // Its clock has no seconds.
            let (earliest, latest) = (before + hours * 3600 - 60, clock() + hours * 3600);
            assert!((earliest..=latest).contains(&at), "{zone} {hours}: {}", failure.text);
        }
    }
}

#[test]
fn claude_tells_how_long_it_waits_before_it_tries_again() {
    let played = Bench::new().play("as: claude\nturns:\n- - emit: {retry: {why: rate_limit, delay: 2h}}\n");
    let (events, _) = decode("claude", &played);
    let delay = events.iter().find_map(|event| match event {
        ToolEvent::RetryNotice(retry) => retry.delay,
        _ => None,
    });
    assert_eq!(delay, Some(std::time::Duration::from_hours(2)));
}

#[test]
fn a_plain_failure_is_an_error_line_on_standard_error() {
    let patterns = peers_tools::Patterns::defaults().expect("patterns");
    for (fault, class) in [
        ("rate_limit", peers_tools::HitClass::Error),
        ("overload", peers_tools::HitClass::Error),
        ("quota", peers_tools::HitClass::Halt),
        ("auth", peers_tools::HitClass::Halt),
        ("usage_cap", peers_tools::HitClass::Halt),
    ] {
        let played = Bench::new().play(&format!("as: plain\nturns:\n- - emit: {fault}\n"));
        let mut scanner = peers_tools::PatternScanner::new(patterns.clone(), false);
        let mut hits = Vec::new();
        scanner.feed(Stream::Stderr, played.stderr.as_bytes(), &mut hits);
        assert_eq!(hits.first().map(|hit| hit.class), Some(class), "{fault}: {}", played.stderr);
        assert_eq!(played.code, FAILED);
    }
}

#[test]
fn a_retry_notice_is_no_failure() {
    for (tool, notices) in [("claude", 1), ("codex", 1), ("opencode", 0)] {
        let played = Bench::new().play(&format!(
            "as: {tool}\nturns:\n- - emit: {{retry: {{attempt: 2, of: 5, why: auth}}}}\n  - say: on\n"
        ));
        let (events, report) = decode(tool, &played);
        let retries: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                ToolEvent::RetryNotice(retry) => Some((retry.attempt, retry.of, retry.kind)),
                _ => None,
            })
            .collect();
        assert_eq!(retries, vec![(2, 5, FailureKind::Auth); notices], "{tool}");
        assert_eq!((report.failure, played.code), (None, 0), "{tool}");
    }
}

#[test]
fn a_window_and_empty_steps_are_seen() {
    let played = Bench::new().play("as: claude\nturns:\n- - emit: {window: {used: 0.92, resets_in: 1h}}\n");
    let (events, _) = decode("claude", &played);
    let used = events.iter().find_map(|event| match event {
        ToolEvent::PlanWindow { used_percent, rejected, .. } => Some((*used_percent, *rejected)),
        _ => None,
    });
    assert_eq!(used, Some((Some(92), false)));
    let played = Bench::new().play("as: opencode\nturns:\n- - emit: {empty_steps: 3}\n");
    let (events, _) = decode("opencode", &played);
    assert!(events.contains(&ToolEvent::EmptyStep { in_a_row: 3 }));
}

#[test]
fn a_cut_stream_ends_inside_an_event() {
    for tool in ["claude", "codex", "opencode"] {
        let played = Bench::new().play(&format!("as: {tool}\nturns:\n- - emit: cut\n"));
        assert_eq!(played.code, FAILED);
        assert!(!played.text().ends_with('\n') && !played.text().ends_with('}'), "{tool}: {}", played.text());
        assert!(decode(tool, &played).1.no_end_event, "{tool}");
    }
}

#[test]
fn raw_output_is_printed_as_it_is() {
    let bench = Bench::new();
    let played = bench
        .steps("emit: {line: \"raw {{turn}}\"}\n  - emit: {hex: \"ff fe 0a\"}\n  - emit: {stderr: oops}");
    assert!(played.stdout.ends_with(b"raw 1\n\xff\xfe\n"), "{:?}", played.stdout);
    assert_eq!(played.stderr, "oops\n");
}

#[test]
fn a_review_counts_for_the_loop() {
    let bench = Bench::new();
    bench.steps(
        "review: {goal: docs-readable, pass: true, notes: read it, checked: README.md:1, handoff: true}",
    );
    let (reviews, warnings) = bench.claims(read_reviews);
    let review = reviews.first().and_then(|review| review.as_ref().ok()).expect("one review");
    assert_eq!((review.goal.as_str(), review.pass, warnings.len()), ("docs-readable", true, 0));
    assert_eq!((review.notes.as_str(), review.checked.len()), ("read it", 1));
    assert!(bench.claims(HandoffClaim::read).is_handoff());
}

#[test]
fn the_skeptics_verdict_is_complete() {
    let bench = Bench::new();
    bench.steps("skeptic: clean");
    assert!(bench.claims(SkepticClaim::read).is_clean());
    assert!(bench.claims(HandoffClaim::read).is_handoff());
    bench.steps("skeptic: {verdict: findings, excluded: [one]}");
    assert!(!bench.claims(SkepticClaim::read).is_clean());
}

#[test]
fn bugs_are_reported_and_resolved_as_the_ledger_reads_it() {
    let bench = Bench::new();
    bench.steps("bug_report: {id: BUG-1, severity: high, title: T, location: a.rs:3}");
    assert!(bench.claims(BugClaims::read).blocks());
    bench.steps("write: {path: a.rs, text: x}\n  - bug_resolve: {id: BUG-1, note: fixed it}");
    let claims = bench.claims(BugClaims::read);
    let resolution = claims.resolutions.first().expect("one resolution");
    assert_eq!(resolution.body.as_ref().map(|body| body.note.as_str()), Some("fixed it"));
    assert_eq!(bench.git(&["show", "--format=", "--name-only", "HEAD"]), "a.rs");
    bench.steps("bug_report: {id: BUG-2, severity: low, malformed: true}");
    assert!(bench.claims(BugClaims::read).blocks(), "a report that cannot be read blocks");
}

#[test]
fn a_message_lies_in_the_drop_box() {
    let bench = Bench::new();
    bench.steps("message: {to: beta, topic: api, text: \"from {{peer}}\"}");
    assert_eq!(bench.file(".peers/inbox/alpha/to-beta/api.md"), "from alpha");
}

#[test]
fn history_is_rewritten() {
    let bench = Bench::new();
    bench.steps("commit: {subject: One, allow_empty: true}\n  - commit: {subject: Two, allow_empty: true}");
    let two = bench.head();
    bench.steps("rewrite: amend");
    assert!(bench.head() != two && bench.message().contains("Amended by alpha"));
    bench.steps("rewrite: {reset: 2}");
    assert_eq!(bench.message(), "Begin");
    bench.steps("write: {path: a, text: a}\n  - commit: A\n  - rewrite: {reset: 1, mode: soft}");
    assert_eq!(bench.git(&["status", "--porcelain"]), "A  a");
}

#[test]
fn the_branch_is_left() {
    let bench = Bench::new();
    let branch = |bench: &Bench| bench.git(&["rev-parse", "--abbrev-ref", "HEAD"]);
    bench.steps("switch_branch: side-{{turn}}");
    assert_eq!(branch(&bench), "side-1");
    bench.steps("switch_branch: {name: main, existing: true}");
    assert_eq!(branch(&bench), "main");
    bench.steps("switch_branch: {detach: true}");
    assert_eq!(branch(&bench), "HEAD");
}

#[test]
fn goals_are_edited_in_each_way() {
    let bench = Bench::new();
    fs::create_dir(bench.repo().join(".peers")).expect("mkdir");
    fs::write(bench.repo().join(".peers/goals.yaml"), "goals: []\n").expect("write");
    bench.steps("edit_goals");
    assert_eq!(bench.file(".peers/goals.yaml"), "goals: []\n# edited by a peer\n");
    bench.steps("edit_goals: {from: \"[]\", to: \"null\"}");
    assert!(bench.file(".peers/goals.yaml").starts_with("goals: null\n"));
    bench.steps("edit_goals: {file: .peers/config.yaml, text: \"peers: {{peer}}\\n\"}");
    assert_eq!(bench.file(".peers/config.yaml"), "peers: alpha\n");
    let played = bench.play("after: repeat\nturns:\n- - edit_goals: {from: absent, to: x}\n");
    assert_eq!(played.code, FAILED);
}

#[test]
fn the_git_directory_disappears() {
    let bench = Bench::new();
    bench.steps("delete_git");
    assert!(!bench.repo().join(".git").exists());
    for (leave, check) in [("nothing", 0), ("file", 1), ("symlink", 2)] {
        let bench = Bench::new();
        bench.steps(&format!("move_git: {{leave: {leave}}}"));
        assert!(bench.dir.path().join("repo.git-moved/HEAD").exists());
        let left = fs::symlink_metadata(bench.repo().join(".git")).ok();
        let kind = left.map_or(0, |left| if left.is_symlink() { 2 } else { i32::from(left.is_file()) });
        assert_eq!(kind, check, "{leave}");
        if check > 0 {
            assert!(!bench.head().is_empty(), "git still works through what was left");
        }
    }
}

#[test]
fn the_git_directory_is_corrupted_part_by_part() {
    for (part, path) in [
        ("head", ".git/HEAD"),
        ("index", ".git/index"),
        ("config", ".git/config"),
        ("ref", ".git/refs/heads/main"),
        ("index_lock", ".git/index.lock"),
        ("merge_head", ".git/MERGE_HEAD"),
    ] {
        let bench = Bench::new();
        let before = fs::read(bench.repo().join(path)).ok();
        bench.steps(&format!("corrupt_git: {part}"));
        let after = fs::read(bench.repo().join(path)).ok();
        assert!(after.is_some() && after != before, "{part}");
    }
    let bench = Bench::new();
    let head = bench.head();
    bench.steps("corrupt_git: objects");
    let object = bench.repo().join(".git/objects").join(&head[..2]).join(&head[2..]);
    assert!(fs::read(object).expect("object").starts_with(b"\0"));
}

#[test]
fn the_control_directory_becomes_a_link() {
    let bench = Bench::new();
    fs::create_dir(bench.repo().join(".peers")).expect("mkdir");
    fs::write(bench.repo().join(".peers/goals.yaml"), "x").expect("write");
    bench.steps("symlink_peers");
    assert!(fs::symlink_metadata(bench.repo().join(".peers")).expect("link").is_symlink());
    assert_eq!(bench.file(".peers/goals.yaml"), "x", "the link leads to the moved directory");
    assert!(bench.dir.path().join("repo.peers-moved").is_dir());
}

#[test]
fn a_linked_worktree_is_damaged_where_its_git_directory_is() {
    let bench = Bench::new();
    bench.git(&["worktree", "add", "-q", "../linked"]);
    let mut options = bench.options("turns:\n- - corrupt_git: index_lock\n");
    options.cwd = bench.dir.path().join("linked");
    assert_eq!(bench.play_with(&options).code, 0);
    assert!(bench.repo().join(".git/worktrees/linked/index.lock").exists());
    symlink("nowhere", bench.repo().join("x")).expect("a link can be removed too");
    bench.steps("remove: x");
}

#[test]
fn a_note_is_forged() {
    let bench = Bench::new();
    bench.steps("forge_note: \"peer: operator\"");
    assert_eq!(bench.git(&["notes", "--ref", "refs/notes/peers-attest", "show", "HEAD"]), "peer: operator");
    bench.steps("forge_note: {ref: refs/notes/other, commit: HEAD, text: x}");
    assert_eq!(bench.git(&["notes", "--ref", "refs/notes/other", "show", "HEAD"]), "x");
}

#[test]
fn any_git_command_is_run() {
    let bench = Bench::new();
    bench.steps("git: [tag, \"t-{{turn}}\"]");
    assert_eq!(bench.git(&["tag"]), "t-1");
    let played = bench.play("after: repeat\nturns:\n- - git: [frobnicate]\n");
    assert_eq!(played.code, FAILED);
}

#[test]
fn an_identity_given_by_the_environment_is_kept() {
    let mut bench = Bench::new();
    bench.env.push(("GIT_AUTHOR_NAME".to_owned(), "Somebody".to_owned()));
    bench.steps("handoff");
    assert_eq!(bench.git(&["log", "-1", "--format=%an/%cn"]), "Somebody/alpha");
}

#[test]
fn a_script_may_lie_about_its_name() {
    let mut bench = Bench::new();
    bench.peer = None;
    bench.env.push(("PEERS_PEER_NAME".to_owned(), "told".to_owned()));
    let name = |text: &str| bench.play(text).text().lines().next().unwrap_or_default().to_owned();
    assert_eq!(name("turns: [[{say: x}]]\n"), "told: turn 1");
    assert_eq!(name("peer: liar\nturns: [[{say: x}]]\n"), "liar: turn 1");
}

#[test]
fn the_honest_examples_play_to_their_end() {
    for (name, turns) in [("basic", 2), ("bugs", 4), ("pair", 4)] {
        let mut bench = Bench::new();
        let text = EXAMPLES.iter().find(|(known, _, _)| *known == name).expect(name).2;
        for turn in 1..=turns {
            bench.turn = Some(turn);
            let played = bench.play(text);
            assert_eq!(played.code, 0, "{name} turn {turn}: {}", played.stderr);
            assert!(bench.claims(HandoffClaim::read).is_handoff(), "{name} turn {turn}");
        }
    }
    let mut bench = Bench::new();
    let reviewer = EXAMPLES.iter().find(|(known, _, _)| *known == "reviewer").expect("reviewer").2;
    bench.prompt = "trailers `Peer-Review-Of: <goal id>`".to_owned();
    assert_eq!(bench.play(reviewer).code, 0);
    assert!(bench.message().contains("## Review"));
    bench.prompt = "# Skeptic turn: all gates are green".to_owned();
    assert_eq!(bench.play(reviewer).code, 0);
    assert!(bench.claims(SkepticClaim::read).is_clean());
}
