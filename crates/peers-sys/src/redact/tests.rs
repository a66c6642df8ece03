//! Tests of `redact`.

use proptest::prelude::*;

use super::*;

fn run(rules: &Rules, chunks: &[&[u8]]) -> (String, u64) {
    let mut redactor = rules.redactor();
    let mut out = Vec::new();
    for chunk in chunks {
        redactor.feed(chunk, &mut out);
    }
    redactor.finish(&mut out);
    (String::from_utf8(out).unwrap(), redactor.count())
}

fn key(len: usize) -> String {
    "aB3dE6gH9j".chars().cycle().take(len).collect()
}

fn pem(lines: usize) -> String {
    let body = format!("{}\n", key(64)).repeat(lines);
    format!("-----BEGIN RSA PRIVATE KEY-----\n{body}{}\n-----END RSA PRIVATE KEY-----", key(20))
}

fn secrets() -> Vec<(&'static str, String)> {
    vec![
        ("anthropic-key", format!("sk-ant-api03-{}", key(40))),
        ("api-key", format!("sk-proj-{}", key(40))),
        ("api-key", "sk-aaaaaaaaaaaaaaaaaaaa".to_owned()),
        ("github-token", format!("ghp_{}", key(36))),
        ("github-token", format!("github_pat_{}", key(40))),
        ("aws-key", "AKIAIOSFODNN7EXAMPLE".to_owned()),
        ("jwt", format!("eyJ{}.eyJ{}.{}", key(20), key(30), key(43))),
        ("private-key", pem(3)),
    ]
}

#[test]
fn every_pattern_is_replaced_by_its_kind_and_digest() {
    for (kind, secret) in secrets() {
        let digest = &crate::digest::sha256_hex(secret.as_bytes())[..4];
        let text = format!("before \"{secret}\" after {secret}");
        let tag = format!("[redacted:{kind}:{digest}]");
        assert_eq!(redact_text(&text), format!("before \"{tag}\" after {tag}"));
    }
}

#[test]
fn a_bearer_token_keeps_its_word() {
    let token = key(20);
    let digest = &crate::digest::sha256_hex(token.as_bytes())[..4];
    assert_eq!(
        redact_text(&format!("Authorization: Bearer {token}\r\n")),
        format!("Authorization: Bearer [redacted:bearer:{digest}]\r\n")
    );
    let token = format!("sk-ant-{}", key(30));
    assert!(redact_text(&format!("bearer {token}")).starts_with("bearer [redacted:anthropic-key:"));
}

#[test]
fn near_misses_stay() {
    for text in [
        "sk-short",
        "sk-ant-",
        "ghp_abc",
        "AKIA1234",
        "Bearer of bad news",
        "eyJhbGciOi",
        "eyJhbGciOiJIUzI1NiJ9 and more",
        "task-12-implement-the-parser-for-real",
        "the disk-usage-of-the-whole-thing",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "if text.contains(\"-----BEGIN PRIVATE KEY-----\") { return Err(()) }",
    ] {
        assert_eq!(redact_text(text), text);
        assert!(matches!(redact_text(text), Cow::Borrowed(_)));
    }
}

#[test]
fn a_key_glued_to_a_word_is_still_a_key() {
    assert!(redact_text(&format!("\\nsk-{}", key(48))).starts_with("\\n[redacted:api-key:"));
}

#[test]
fn known_values_are_found_anywhere_and_in_json() {
    let rules = Rules::new(["p\"ss\nword!", "  hunter2hunter2\n", "tiny"]);
    let text = "a hunter2hunter2b p\"ss\nword! {\"x\":\"p\\\"ss\\nword!\"} tiny";
    let out = rules.redact(text);
    let tag = tag("secret", b"p\"ss\nword!");
    assert_eq!(out.matches(&tag).count(), 2, "{out}");
    assert!(!out.contains("hunter2") && !out.contains("word!"));
    assert!(out.ends_with(" tiny"), "too short to be hunted");
}

#[test]
fn a_known_value_that_overlaps_a_pattern_leaves_no_tail() {
    let token = format!("sk-{}", key(30));
    let known = format!("{}!end-of-secret", &token[25..]);
    let rules = Rules::new([&known]);
    let text = format!("{token}!end-of-secret.");
    for cut in 0..text.len() {
        let (out, count) = run(&rules, &[&text.as_bytes()[..cut], &text.as_bytes()[cut..]]);
        assert!(!out.contains("end-of") && out.ends_with("]."), "{cut}: {out}");
        assert_eq!(count, 1);
    }
}

#[test]
fn clean_lines_are_not_held_back() {
    let mut redactor = Redactor::new(vec!["known-secret-value".to_owned()]);
    let mut out = Vec::new();
    redactor.feed(b"plain line\n", &mut out);
    assert_eq!(out, b"plain line\n");
    redactor.feed(b"ends in s", &mut out);
    assert_eq!(out, b"plain line\nends in ", "one byte may begin a key");
    redactor.finish(&mut out);
    assert_eq!(out, b"plain line\nends in s");
}

#[test]
fn a_token_beyond_every_limit_never_shows_its_end() {
    let text = format!("x sk-ant-{} y", key(100_000));
    for size in [1000, 4096, 5000, 200_000] {
        let chunks: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
        let (out, count) = run(Rules::patterns(), &chunks);
        assert!(
            out.starts_with("x [redacted:anthropic-key:") && out.ends_with("] y"),
            "{size}: {}",
            out.len()
        );
        assert!(out.len() < 60);
        assert_eq!(count, 1);
    }
}

#[test]
fn memory_stays_bounded_on_endless_candidates() {
    let mut redactor = Redactor::new(Vec::new());
    let mut out = Vec::new();
    for piece in ["eyJ", "sk-", "-----BEGIN PRIVATE KEY-----\n{", "Bearer "] {
        redactor.feed(piece.as_bytes(), &mut out);
        for _ in 0..100 {
            redactor.feed(&[b'A'; 1000], &mut out);
            assert!(redactor.held.len() <= 17 * 1024);
        }
        redactor.feed(b" \n", &mut out);
    }
}

#[test]
fn a_private_key_may_fill_sixteen_kib() {
    let text = format!("a {} b", pem(240));
    assert!(text.len() > 15_000 && text.len() < 16_384);
    let chunks: Vec<&[u8]> = text.as_bytes().chunks(777).collect();
    let (out, count) = run(Rules::patterns(), &chunks);
    assert!(out.starts_with("a [redacted:private-key:") && out.ends_with("] b"));
    assert_eq!(count, 1);
}

#[test]
fn a_private_key_that_was_cut_off_is_still_one() {
    let text = pem(5);
    let cut = &text[..text.len() - 60];
    let out = redact_text(cut);
    assert!(out.starts_with("[redacted:private-key:") && !out.contains("aB3"), "{out}");
    let out = redact_text("-----BEGIN PRIVATE KEY----- is the marker.\nMore text\n");
    assert_eq!(out, "-----BEGIN PRIVATE KEY----- is the marker.\nMore text\n");
}

#[test]
fn a_private_key_inside_a_json_string_is_found() {
    let text = serde_json::Value::from(pem(4)).to_string();
    let out = redact_text(&text);
    assert!(out.starts_with("\"[redacted:private-key:") && out.ends_with("]\""), "{out}");
}

#[test]
fn known_values_never_show_in_debug_output() {
    let rules = Rules::new(["known-secret-value"]);
    assert!(!format!("{rules:?} {:?}", rules.redactor()).contains("known-secret"));
}

proptest! {
    #[test]
    fn a_known_value_never_survives_any_chunking(
        noise in "[a-z \n-]{0,40}",
        secret in "[A-Za-z0-9+/=-]{12,60}",
        rest in "[a-z \nsk-]{0,40}",
        size in 1_usize..50,
    ) {
        let text = format!("{noise}{secret}{rest}{secret}");
        let rules = Rules::new([&secret]);
        let chunks: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
        let (out, _) = run(&rules, &chunks);
        prop_assert!(!out.contains(&secret));
        prop_assert_eq!(out, rules.redact(&text));
    }

    #[test]
    fn chunking_never_changes_the_result(
        parts in proptest::collection::vec(prop_oneof![
            Just("-----BEGIN PRIVATE KEY-----\n".to_owned()),
            Just("-----END PRIVATE KEY-----".to_owned()),
            Just("-----BEGIN ".to_owned()),
            Just("sk-".to_owned()),
            Just("sk-ant-".to_owned()),
            Just("Bearer ".to_owned()),
            Just("eyJ".to_owned()),
            Just("ghp_".to_owned()),
            Just("AKIA".to_owned()),
            Just("known-secret-value".to_owned()),
            Just("known-".to_owned()),
            "[A-Za-z0-9_.-]{1,50}",
            "[ \n\"{]",
        ], 0..30),
        sizes in proptest::collection::vec(1_usize..60, 1..8),
    ) {
        let rules = Rules::new(["known-secret-value", "value\nsk-and-more"]);
        let text = parts.concat();
        let mut rest = text.as_bytes();
        let mut chunks = Vec::new();
        for size in sizes.iter().cycle() {
            let (chunk, after) = rest.split_at((*size).min(rest.len()));
            chunks.push(chunk);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(run(&rules, &chunks).0, rules.redact(&text));
    }
}
