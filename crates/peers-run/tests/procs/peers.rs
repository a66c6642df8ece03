//! One peer: limits, streams, patterns, leftovers, stops.

use peers_model::outcome::{ApiClass, ExitClass};
use peers_model::{Tokens, Usd};
use peers_run::ports::Procs;
use peers_run::procs::Live;

use crate::stage::{FOREVER, Stage, Turn, launch, process, shell_peer, until};

#[test]
fn a_peer_gets_its_prompt_and_its_output_is_kept() {
    let stage = Stage::new();
    let turn = stage.shell("cat; echo oops >&2; pwd");
    let repo = stage.at("repo").canonicalize().unwrap();
    let expected = format!("the prompt\n{}\n", repo.display());
    assert_eq!((turn.exit.class, turn.exit.api, turn.exit.code), (ExitClass::Ok, ApiClass::None, Some(0)));
    assert_eq!(
        (turn.exit.stdout_tail.as_str(), turn.exit.stderr_tail.as_str()),
        (expected.as_str(), "oops\n")
    );
    assert_eq!(turn.exit.bytes_out, u64::try_from(expected.len()).unwrap());
    let spawned = turn.spawned.unwrap();
    assert!(spawned.pid > 1 && spawned.start_time > 0 && !spawned.boot_id.is_empty());
    for name in ["stdout.log", "stream.jsonl"] {
        assert_eq!(stage.read(&format!(".peers/log/peers/tick-00007-a.{name}")), expected, "{name}");
    }
    assert_eq!(stage.read(".peers/log/peers/tick-00007-a.stderr.log"), "oops\n");
    assert!(stage.scratch_is_tidy());
}

#[test]
fn a_silent_peer_leaves_no_log_and_no_copy_is_made_where_none_is_wanted() {
    let mut stage = Stage::new();
    stage.settings = "observability: {tee_stream: false}\n".into();
    stage.shell("echo words");
    let names: Vec<_> =
        std::fs::read_dir(stage.repo(".peers/log/peers")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["tick-00007-a.stdout.log"]);
}

#[test]
fn row_17_silence_beyond_the_limit_ends_the_whole_tree() {
    let stage = Stage::limits(1, 60);
    let turn = stage.shell("tail -f /dev/null & echo $! > child; echo $$ > leader; exec tail -f /dev/null");
    assert_eq!(turn.exit.class, ExitClass::Idle);
    for name in ["child", "leader"] {
        assert_eq!(process(&stage.repo(name)), None, "{name}");
    }
}

#[test]
fn row_17_endless_output_ends_at_the_total_limit() {
    let stage = Stage::limits(60, 1);
    let turn = stage.shell("while :; do echo more; done");
    assert_eq!(turn.exit.class, ExitClass::Absolute);
    assert!(turn.exit.bytes_out > 0);
}

#[test]
fn row_18_dots_without_a_line_end_keep_a_peer_alive() {
    let stage = Stage::limits(3, 60);
    let turn = stage.shell("for i in 1 2 3 4 5 6 7; do printf .; sleep 0.6; done");
    assert_eq!((turn.exit.class, turn.exit.stdout_tail.as_str()), (ExitClass::Ok, "......."));
}

#[test]
fn row_20_a_silent_claude_that_writes_its_session_is_alive_and_a_silent_codex_is_not() {
    let stage = Stage::limits(2, 60);
    let repo = stage.at("repo").canonicalize().unwrap();
    let name: String =
        repo.to_str().unwrap().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let session = stage.at("home").join(".claude/projects").join(name);
    std::fs::create_dir_all(&session).unwrap();
    let script = format!(
        "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i >> '{}/s.jsonl'; sleep 0.4; done",
        session.display()
    );
    for (tool, class) in [("claude", ExitClass::Ok), ("codex", ExitClass::Idle)] {
        let argv = serde_json::to_string(&["/bin/sh", "-c", &script]).unwrap();
        let turn = stage.turn(&format!("tool: {tool}, argv: {argv}"), "");
        assert_eq!(turn.exit.class, class, "{tool}");
        assert_eq!(
            turn.exit.session_signs > 0,
            class == ExitClass::Ok,
            "{tool}: counted where it kept one alive"
        );
        std::fs::remove_file(session.join("s.jsonl")).unwrap();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn row_21_a_tree_that_waits_for_nothing_but_itself_is_ended_and_one_that_reads_or_computes_is_kept() {
    let mut stage = Stage::new();
    stage.settings = "health: {hang_kill_s: 1, idle_timeout_s: 600}\n".into();
    // Beyond two looks, each ends by itself.
    let spin = "end=$(( $(date +%s) + 5 )); while [ $(date +%s) -lt $end ]; do :; done";
    let reads = "(sleep 5; echo) | (read line)";
    let waits = "sleep 600 & wait";
    for (what, script, class) in [
        ("waits", waits, ExitClass::Idle),
        ("reads", reads, ExitClass::Ok),
        ("computes", spin, ExitClass::Ok),
    ] {
        let turn = stage.shell(script);
        assert_eq!(turn.exit.class, class, "{what}: {:?}", turn.exit);
        assert!(turn.exit.survivors.is_empty(), "{what}");
        let said = turn.exit.remarks.iter().any(|text| text.contains("silent for 1s (`health.hang_kill_s`)"));
        assert_eq!(said, class == ExitClass::Idle, "{what}: {:?}", turn.exit.remarks);
    }
}

#[test]
fn row_33_a_large_prompt_and_a_talkative_child_do_not_wait_for_each_other() {
    let stage = Stage::limits(30, 60);
    let script = "head -c 1048576 /dev/zero | tr '\\0' x; wc -c";
    let turn = stage.turn(&shell_peer(script), &"y".repeat(1 << 20));
    assert_eq!(turn.exit.class, ExitClass::Ok);
    assert!(turn.exit.stdout_tail.ends_with("x1048576\n"), "{}", turn.exit.stdout_tail);
}

#[test]
fn row_33_a_nul_in_the_prompt_is_left_out() {
    let turn = Stage::new().turn(&shell_peer("od -An -c"), "a\0b");
    assert_eq!(turn.exit.stdout_tail.split_whitespace().collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn row_33_a_prompt_that_is_too_long_for_an_argument_goes_through_a_private_file() {
    let stage = Stage::new();
    let script = "file=$(printf %s \"$1\" | sed 's/.* in the file \\(.*\\)\\. Read.*/\\1/'); \
                  stat -c %a \"$file\"; wc -c < \"$file\"";
    let argv = serde_json::to_string(&["/bin/sh", "-c", script, "sh", "{PROMPT}"]).unwrap();
    let peer = format!("tool: other, prompt_mode: argv-substitute, argv: {argv}");
    let turn = stage.turn(&peer, &"z".repeat(200_000));
    assert_eq!((turn.exit.class, turn.exit.stdout_tail.as_str()), (ExitClass::Ok, "600\n200000\n"));
    assert!(stage.scratch_is_tidy(), "the file is gone");
}

#[cfg(target_os = "linux")]
#[test]
fn a_prompt_by_stdin_by_file_or_too_long_for_an_argument_is_in_no_command_line() {
    // A word, and a pattern for it that is not found by itself.
    let word = || {
        let word = peers_sys::rand::hex::<8>().unwrap();
        let (start, end) = word.split_at(15);
        let pattern = format!("{start}[{end}]");
        (word, pattern)
    };
    let ((word, pattern), (known, known_pattern)) = (word(), word());
    let look = |pattern: &str| {
        format!("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c '{pattern}'")
    };
    let looks = format!("{}; {}", look(&pattern), look(&known_pattern));
    let piped = format!("grep -c '{pattern}'");
    let in_file = format!("{piped} \"$1\"");
    let spilled = format!(
        "file=$(printf %s \"$1\" | sed 's/.* in the file \\(.*\\)\\. Read.*/\\1/'); {piped} \"$file\""
    );
    let long = format!("{word}\n{}", "z\n".repeat(100_000));
    for (mode, argument, reads, prompt) in [
        ("stdin", "nothing", piped, &word),
        ("file", "{PROMPT_FILE}", in_file, &word),
        ("argv-substitute", "{PROMPT}", spilled, &long),
    ] {
        let script = format!("{reads}; {looks}");
        let argv = serde_json::to_string(&["/bin/sh", "-c", &script, "sh", argument, &known]).unwrap();
        let turn = Stage::new().turn(&format!("tool: other, prompt_mode: {mode}, argv: {argv}"), prompt);
        let said: Vec<&str> = turn.exit.stdout_tail.lines().collect();
        let [read, found, known] = said[..] else { panic!("{mode}: {:?}", turn.exit) };
        assert_eq!((read, found), ("1", "0"), "{mode}: {:?}", turn.exit);
        assert_ne!(known, "0", "{mode}: the look finds an argument that is there");
    }
}

#[test]
fn row_35_a_program_that_is_not_there_or_cannot_be_run_never_starts() {
    let stage = Stage::new();
    std::fs::write(stage.repo("text"), "no program").unwrap();
    for (argv, code, why) in [
        ("[no-such-program]", 127, "start no-such-program: not found"),
        ("[./text]", 126, "not executable: `chmod +x /"),
    ] {
        let turn = stage.turn(&format!("tool: other, argv: {argv}"), "");
        assert_eq!((turn.exit.class, turn.exit.code), (ExitClass::SpawnFail, Some(code)), "{argv}");
        assert!(turn.spawned.is_none() && turn.exit.stderr_tail.starts_with(why), "{:?}", turn.exit);
        assert_eq!(turn.exit.classification(), "process-fail");
    }
}

#[test]
fn a_program_in_the_repository_does_not_shadow_one_on_the_path() {
    use std::os::unix::fs::PermissionsExt as _;
    let stage = Stage::new();
    std::fs::create_dir(stage.repo("bin")).unwrap();
    std::fs::write(stage.repo("bin/true"), "#!/bin/sh\necho planted\n").unwrap();
    std::fs::set_permissions(stage.repo("bin/true"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let turn = stage.turn("tool: other, argv: ['true']", "");
    assert_eq!((turn.exit.class, turn.exit.stdout_tail.as_str()), (ExitClass::Ok, ""));
}

#[test]
fn exit_code_and_signal_are_told_apart() {
    let stage = Stage::new();
    let turn = stage.shell("exit 3");
    assert_eq!((turn.exit.class, turn.exit.code, turn.exit.signal), (ExitClass::Nonzero, Some(3), None));
    let turn = stage.shell("kill -9 $$");
    assert_eq!((turn.exit.class, turn.exit.code, turn.exit.signal), (ExitClass::Signal, None, Some(9)));
}

#[test]
fn row_22_an_error_pattern_ends_a_peer_that_would_go_on() {
    let stage = Stage::limits(30, 60);
    let turn = stage.shell(&format!("echo 'ERROR rate limit reached' >&2; {FOREVER}"));
    assert_eq!((turn.exit.class, turn.exit.api), (ExitClass::Pattern, ApiClass::Transient));
    assert_eq!(turn.exit.classification(), "api-error");
    let matched = turn.exit.matched.unwrap();
    assert_eq!((matched.source.as_str(), matched.snippet.as_str()), ("in-loop", "ERROR rate limit reached"));
    assert_eq!(matched.key.as_deref(), Some("health.error_patterns[0]"));
}

#[test]
fn row_26_an_unterminated_error_line_is_found_before_silence_ends_the_peer() {
    let stage = Stage::limits(2, 60);
    let turn = stage.shell(&format!("printf 'ERROR rate limit' >&2; {FOREVER}"));
    assert_eq!((turn.exit.class, turn.exit.classification()), (ExitClass::Pattern, "api-error"));
}

#[test]
fn row_24_a_quoted_halt_line_of_a_peer_that_ends_well_is_none() {
    let turn = Stage::new().shell("echo '> ERROR usage limit reached'; echo all is well");
    assert_eq!((turn.exit.class, turn.exit.api), (ExitClass::Ok, ApiClass::None));
}

#[test]
fn row_31_usage_of_a_structured_stream_is_read_even_where_the_capture_lost_it() {
    let mut stage = Stage::new();
    stage.settings = "health: {buf_cap_bytes: 65536}\n".into();
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"done","num_turns":1,"total_cost_usd":0.25,"usage":{"input_tokens":10,"output_tokens":5}}"#;
    let flood = r"head -c 3000000 /dev/zero | tr '\0' x >&2; head -c 3000000 /dev/zero | tr '\0' x; echo";
    let script = format!("{flood}; echo '{result}'; {flood}");
    let argv = serde_json::to_string(&["/bin/sh", "-c", &script, "--output-format", "stream-json"]).unwrap();
    let turn = stage.turn(&format!("tool: claude, argv: {argv}"), "");
    assert_eq!(turn.exit.usage.tokens, Some(Tokens(15)));
    assert_eq!(turn.exit.usage.usd, Usd::from_f64(0.25));
    assert!(turn.exit.truncated);
    assert_eq!(
        (turn.exit.bytes_out, turn.exit.bytes_err),
        (6_000_000 + 2 + u64::try_from(result.len()).unwrap() + 1, 6_000_000)
    );
    let kept = stage.read(".peers/log/peers/tick-00007-a.stdout.log");
    assert!(kept.len() < 70_000 && kept.contains("bytes left out"));
}

#[test]
fn row_32_invalid_bytes_and_escapes_fail_nothing_and_reach_no_record() {
    let turn = Stage::new().shell(r"printf 'a\377b\303\244\033[2Jc\007\n'");
    assert_eq!((turn.exit.class, turn.exit.stdout_tail.as_str()), (ExitClass::Ok, "a\u{fffd}bäc\n"));
}

#[test]
fn git_in_a_peers_turn_commits_in_the_peers_name() {
    let turn = Stage::new().shell("git config --get user.email; echo $GIT_AUTHOR_NAME $PEERS_PEER_NAME; git config --list --show-scope | grep -c ^system");
    assert_eq!(turn.exit.stdout_tail, "a@peers.local\na a\n0\n");
}

#[test]
fn nothing_that_must_not_pass_is_in_the_environment_of_a_real_peer() {
    for tool in ["other", "claude", "codex"] {
        let stage = Stage::with_sentinels();
        let argv = ["/bin/sh", "-c", "env | grep -c sentinel; test -n \"$PATH\""];
        let argv = serde_json::to_string(&argv).unwrap();
        let turn = stage.turn(&format!("tool: {tool}, argv: {argv}"), "");
        assert_eq!((turn.exit.class, turn.exit.stdout_tail.as_str()), (ExitClass::Ok, "0\n"), "{tool}");
    }
}

#[test]
fn row_34_a_grandchild_that_holds_the_pipe_is_ended_with_the_turn() {
    let stage = Stage::limits(30, 60);
    let turn = stage.shell("setsid sh -c 'echo $$ > daemon; exec tail -f /dev/null' & while [ ! -s daemon ]; do :; done; echo bye");
    assert_eq!(
        (turn.exit.class, turn.exit.stdout_tail.as_str(), turn.exit.leaked),
        (ExitClass::Ok, "bye\n", 1)
    );
    assert_eq!(process(&stage.repo("daemon")), None);
    assert!(turn.exit.survivors.is_empty());
}

#[test]
fn row_34_a_background_writer_does_not_outlive_the_turn() {
    let stage = Stage::limits(30, 60);
    let turn = stage.shell("(echo started > noise; while :; do echo x >> noise; done) >/dev/null 2>&1 & while [ ! -s noise ]; do :; done; echo $! > writer");
    assert_eq!((turn.exit.class, turn.exit.leaked), (ExitClass::Ok, 1));
    assert_eq!(process(&stage.repo("writer")), None);
}

fn stopped(stage: &Stage, script: &str, how: &[bool]) -> Turn {
    stage.with(stage.book(&shell_peer(script)), async |mut procs, mut arriving| {
        procs.run_peer(&launch(""));
        until(|| stage.repo("ready").exists()).await;
        for now in how {
            procs.end_peer(*now);
        }
        Turn::over(&mut arriving).await
    })
}

#[test]
fn a_stopped_peer_may_tidy_up() {
    let stage = Stage::limits(30, 60);
    let script = "trap 'echo tidied; exit 0' TERM; : > ready; while :; do tail -f /dev/null & wait; done";
    let turn = stopped(&stage, script, &[false]);
    assert_eq!((turn.exit.class, turn.exit.stdout_tail.as_str()), (ExitClass::Interrupted, "tidied\n"));
    assert_eq!(turn.exit.classification(), "interrupted");
}

#[test]
fn the_runs_time_budget_shortens_a_turn_but_leaves_time_to_hand_over() {
    let stage = Stage::limits(30, 60);
    let turn = stage.with(stage.book(&shell_peer("echo fine")), async |mut procs, mut arriving| {
        let mut ask = launch("");
        ask.runtime_left_s = Some(0);
        procs.run_peer(&ask);
        Turn::over(&mut arriving).await
    });
    assert_eq!(turn.exit.class, ExitClass::Ok);
}

#[test]
fn a_live_line_shows_what_the_peer_says_without_its_secrets() {
    let mut stage = Stage::limits(30, 60);
    stage.vars.push(("DEPLOY_TOKEN".into(), "top-secret-value".into()));
    let script = format!("printf 'one\\n\\033[1mtwo top-secret-value\\n'; {FOREVER}");
    stage.with(stage.book(&shell_peer(&script)), async |mut procs, mut arriving| {
        let progress = procs.progress();
        procs.run_peer(&launch(""));
        let words = || match progress.now() {
            Some(Live::Peer(live)) => live.last,
            _ => String::new(),
        };
        until(|| words().starts_with("two [redacted:")).await;
        procs.end_peer(true);
        Turn::over(&mut arriving).await;
        assert_eq!(progress.now(), None);
    });
}

#[test]
fn finishing_ends_a_peer_that_still_runs() {
    let stage = Stage::limits(30, 60);
    stage.with(
        stage.book(&shell_peer(&format!("echo $$ > leader; : > ready; {FOREVER}"))),
        async |mut procs, _arriving| {
            procs.run_peer(&launch(""));
            until(|| stage.repo("ready").exists()).await;
            let finished = procs.finish();
            finished.await;
            assert_eq!(process(&stage.repo("leader")), None);
        },
    );
}
