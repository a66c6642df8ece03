//! Texts that are hardly YAML, and what is said of them.

use super::*;

/// Rows: bytes behind the smallest configuration, line, message as it is shown, without the snippet.
#[test]
fn odd_texts_are_told_in_plain_words() {
    let long = format!("# {}\n", "x".repeat(70));
    let mut failed = Vec::new();
    for (extra, line, says) in [
        (&b"\tdriver: git\n"[..], Some(7), "tab"),
        (b"goals:\n\ttimeout_s: 5\n", Some(8), "tab"),
        (
            b"---\ndriver: sessions\n",
            Some(8),
            "a second document begins; the file must be a single one (remove the `---` or `...` before it)",
        ),
        (
            b"goals: {timeout_s: 99999999999}\n",
            Some(7),
            "`goals.timeout_s` must be a whole number from 1 to 4294967295, found the number `99999999999`",
        ),
        (b"goals: 5\n", Some(7), "`goals` must be a mapping (`key: value`), found the number `5`"),
        (b"goals: {env: A}\n", Some(7), "`goals.env` must be a list (`- entry`), found the text `A`"),
        (
            b"skeptic: {enabled: 'yes'}\n",
            Some(7),
            "`skeptic.enabled` must be `true` or `false`, found the text `yes`; write it without quotes",
        ),
        (
            b"skeptic: {enabled: 1}\n",
            Some(7),
            "`skeptic.enabled` must be `true` or `false`, found the number `1`",
        ),
        (b"comm: [git]\n", Some(7), "`comm` must be one of `git`, `hybrid`, found a list"),
        (b"comm:\n", Some(7), "`comm` must be one of `git`, `hybrid`, found nothing"),
        (
            b"budget: {deadline: tomorrow}\n",
            Some(7),
            "`budget.deadline`: `tomorrow` is not a time of the form `2026-03-04T18:00:00Z` or, with its distance from UTC, `2026-03-04T18:00:00+01:00`",
        ),
        (b"budget: {deadline: 3600}\n", Some(7), "`budget.deadline`: `3600` is not a time of the form"),
        (b"[a, b]: x\n", Some(7), "a key must be a word, found a list or a mapping"),
        (
            b"goals: *nowhere\n",
            Some(7),
            "an alias (`*name`) without an anchor (`&name`) before it; text that begins with `*` needs quotes",
        ),
        (b"goals: !custom {}\n", Some(7), ""),
        (b"driver: \"orchestrator\n", None, ""),
        (b"goals: [\n", None, ""),
        (b"driver: \xff\n", Some(7), "byte 0xff is not UTF-8"),
    ] {
        let bytes = [CONFIG.as_bytes(), extra].concat();
        let error = decode(Source::Config, &bytes).and_then(load_config).unwrap_err();
        let problem = only(&error);
        let placed = problem.line.is_some() && problem.snippet.ends_with('^');
        if !problem.message.contains(says) || !(line.is_none() || problem.line == line) || !placed {
            failed.push(format!("{}: {error}", String::from_utf8_lossy(extra)));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    assert!(load_config(&format!("{long}{CONFIG}")).is_ok());
}

#[test]
fn what_is_no_whole_number_is_told_by_its_kind() {
    for (written, found) in [
        ("on", "`on`, which is `true`"),
        ("1.0", "the number `1.0`"),
        ("1e3", "the number `1e3`"),
        ("'5'", "the text `5`; write it without quotes"),
        ("five", "the text `five`"),
        ("", "nothing"),
        ("[5]", "a list"),
    ] {
        let error = config(&format!("goals: {{timeout_s: {written}}}\n"));
        let says = format!("`goals.timeout_s` must be a whole number of at least 1, found {found}");
        assert_eq!((only(&error).line, &only(&error).message), (Some(7), &says), "{error}");
    }
}

#[test]
fn windows_line_ends_a_byte_order_mark_and_yaml_1_1_booleans_are_read() {
    let text =
        format!("\u{feff}{CONFIG}skeptic: {{enabled: off}}\ngoals: {{soft_consensus_required: Yes}}\n");
    let text = text.replace('\n', "\r\n");
    let config = load_config(&text).unwrap_or_else(|e| panic!("{e}"));
    assert!(!config.skeptic.enabled && config.goals.soft_consensus_required);
    assert_eq!(config.peers.len(), 2);
    // A mistake behind them is still found in its place.
    let error = load_config(&text.replace("Yes", "maybe")).unwrap_err();
    assert_eq!((only(&error).line, only(&error).column), (Some(8), Some(34)), "{error}");
}

#[test]
fn anchors_and_merges_work_and_are_looked_into_where_they_are_used() {
    let text = "\
peers:
  - &one
    name: one
    argv: &run [x]
  - name: two
    argv: *run
  - <<: *one
    name: three
";
    assert_eq!(load_config(text).unwrap_or_else(|e| panic!("{e}")).peers.len(), 3);
    let error = load_config(&text.replace("    name: three\n", "")).unwrap_err();
    assert_eq!(only(&error).message, "peers[2] (one): this name stands twice; names must be unique");
    let error = load_config(&text.replace("argv: *run", "tool: *run\n    argv: [y]")).unwrap_err();
    assert_eq!(only(&error).message, "`peers[1].tool` must be text, found a list");
    assert_eq!(only(&error).line, Some(6));
}

#[test]
fn an_accepted_configuration_reads_as_one_that_is_checked() {
    let text = include_str!("../../../../../templates/config.yaml");
    let checked = format!("{:?}", load_config(text).unwrap());
    assert_eq!(format!("{:?}", load_accepted_config(text).unwrap()), checked);
    for broken in ["peers: [", "peers: []\nbudgte: {}\n"] {
        assert_eq!(load_accepted_config(broken).unwrap_err(), load_config(broken).unwrap_err());
    }
}
